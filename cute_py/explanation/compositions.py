"""Explain a composition, and check whether its result equals the composed function.

CuTe C++ computes composition(A, B) by divisions whose conditions are not sufficient: even if they hold, the result R
may differ from A(B(i)) when B's steps do not divide A's modes. Every explanation of a composition ends with this
comparison.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from cute_py.errors import CompositionMismatchError, CuteError, InvalidValueError, unless_refused
from cute_py.layout.arguments import IntTuple, LayoutLike, Tiler
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition, tiler_text
from cute_py.layout.coordinate import idx2crd, slice_, slice_and_offset
from cute_py.layout.int_tuple import elem_less, is_static
from cute_py.layout.layout import Layout, domain_of, has_numbers, static
from cute_py.layout.leaf import Int
from cute_py.layout.steps import explained, steps
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves
from cute_py.notation.parse import Parsed, parse


def whether_function(left: LayoutLike, right: Tiler) -> str:
    """One sentence that states whether composition(left, right) is the function left(right(i)).

    >>> from cute_py import Int, Layout
    >>> a = Layout((Int(6), Int(4)), (Int(4), Int(1)))
    >>> print(whether_function(a, Layout(Int(2), Int(3))))
    judged: R(i) = A(B(i)) for every i
    >>> print(whether_function(a, Layout(Int(4), Int(5))))
    R differs from A(B(i)): R(2) = 1, A(B(2)) = 17. CuTe C++ computes R without a check; strict=True refuses it.
    """
    try:
        composition(left, right, strict=True)
    except CompositionMismatchError as error:
        found = error.difference or error.headline
        return f"R differs from A(B(i)): {found}. CuTe C++ computes R without a check; strict=True refuses it."
    except CuteError as error:
        return f"not checked: whether R(i) = A(B(i)) for every i ({error.headline})"
    return "judged: R(i) = A(B(i)) for every i"


def static_lines(operation: Callable[..., Any], *operands: Any) -> list[str]:
    """One line with the result for static operands, if it differs from the result for run-time operands.

    CuTe C++ does not know run-time sizes and strides at compile time, so it neither merges nor inverts the modes that
    have them.
    """
    if not all(isinstance(x, (int, tuple)) or (isinstance(x, Layout) and has_numbers(x)) for x in operands):
        return []
    known = unless_refused(lambda: [static(x) for x in operands])
    if known is None or unless_refused(lambda: all(map(is_static, operands))) is not False:  # or a coordinate with `_`
        return []
    made = unless_refused(operation, *known)
    if made is None or operation(*operands) == made:
        return []
    name = getattr(operation, "__name__", "the operation")
    return [f"C++ does not use run-time numbers here; with cute.static operands {name} gives {made}"]


def composition_text(left: LayoutLike, right: Tiler) -> str:
    """The steps of a composition, and the sentence of `whether_function`."""
    lines = [str(step) for step in steps(composition, left, right)]
    return "\n".join([*lines, whether_function(left, right)])


def spelled_composition(text: str) -> str | None:
    """Explain a string `A o B` of two layouts, or of a swizzle and a layout; None for any other string."""
    parts = [part.strip() for part in text.split(" o ")]
    if len(parts) != 2 or "\n" in text.strip():
        return None
    found = [unless_refused(parse, part) for part in parts]  # (layout,) for `((4,8):(8,1))`
    left, right = (one[0] if isinstance(one, tuple) and len(one) == 1 else one for one in found)
    if isinstance(left, Swizzle) and isinstance(right, (Layout, ComposedLayout)):
        whole = ComposedLayout(left, Int(0), right)
        return (
            f"{left} o {right}: the composition of a swizzle with a layout, written without the offset.\n  As CuTe "
            f"prints it, with the offset between them: {whole}\n  composition({left!r}, {right!r}) makes it."
        )
    if not isinstance(left, Layout) or not isinstance(right, Layout):
        return None
    head = f"composition(A, B) with A = {left}, B = {tiler_text(right)}"
    try:
        return f"{head}\n{composition_text(left, right)}"
    except CuteError as error:
        return f"{head}\nis refused: {error}"


LAYOUT_ATOM: Final = r"(?:cute::)?(?:GMMA|UMMA)::Layout_\w{1,40}_Atom<[\w:]{1,80}>(?:\s?\{\})?"
"""Matches a layout atom of wgmma or tcgen05 in C++ source: its type, or an object of it."""
_ATOM: Final = re.compile(rf"\s*{LAYOUT_ATOM}\s*")
_NAME: Final = r"(?:cute(?:_py)?(?:\.|::))?(?P<name>\w{1,40})(?:<(?P<template>[\w:, ]{1,120})>)?"
_SOURCE: Final = re.compile(rf"\s*{_NAME}\s?\((?P<operands>.{{1,4000}})\)\s*", re.DOTALL)
"""A call in source code, with template arguments if there are any: `group<0,2>(L)`."""
MOST_NESTED: Final = 12
"""Maximum depth of calls that are operands of calls."""


def layout_mode(layout: Layout, *mode: int) -> Layout:
    """Return a mode of a layout, as C++'s `layout<0>(L)` and `get<0>(L)` do.

    >>> print(layout_mode(Layout(((2, 3), 4)), 0, 1))
    3:2
    """
    for index in mode:
        layout = layout[index]
    return layout


def _operation(name: str) -> Callable[..., LayoutLike | Parsed] | None:
    """The operation of the layout algebra with this name whose calls are evaluated."""
    from cute_py import layout as algebra
    from cute_py.tensor.partition import local_tile
    from cute_py.tensor.tensor import make_identity_layout

    named: dict[str, Callable[..., LayoutLike | Parsed]] = {
        "layout": layout_mode,
        "get": layout_mode,
        "slice": slice_,
        "local_tile": local_tile,
        "make_identity_layout": make_identity_layout,
    }
    if name in named:
        return named[name]
    if name in _EVALUATED:
        return getattr(algebra, name)  # type: ignore[no-any-return]
    return next((one for one in explained() if one.__name__ == name), None)


_EVALUATED: Final = frozenset(
    (
        *("nullspace", "max_common_layout", "max_common_vector", "size", "cosize", "rank", "depth", "shape", "stride"),
        *("flatten", "unflatten", "filter", "filter_zeros", "group", "group_modes", "take", "select", "append"),
        *("prepend", "with_shape", "recast_layout", "upcast", "downcast", "tile_to_shape", "crd2idx"),
        *("idx2crd", "slice_", "dice", "ceil_div", "shape_div", "elem_less", "congruent", "compatible"),
        *("weakly_congruent", "make_layout_like", "make_ordered_layout", "max_alignment"),
    )
)
"""Names of the algebra's operations whose calls are evaluated, in addition to those with steps."""
_OF_NUMBERS: Final = frozenset(("crd2idx", "idx2crd", "ceil_div", "shape_div", "elem_less", "size", "slice", "slice_"))
"""Operations whose first operand may be a name; the others take a layout, so a name there is an unknown variable."""


class _Call(NamedTuple):
    """A call: the operation, its operands, and the call as text."""

    operation: Callable[..., LayoutLike | Parsed]
    operands: list[Any]
    head: str


def _read_call(found: re.Match[str] | None, nested: int = 0) -> _Call | None:
    """Evaluate the operands of a call that `_SOURCE` or `_CALL` matched. Template arguments follow the first operand,
    and so do the numbers of `mode=[0]`. None if the operation is not evaluated.

    Raises:
        CuteError: an operand is not static or not known.
    """
    from cute_py.arith_tuple.cells import text as printed
    from cute_py.notation.argument_lists import split_operands

    operation = _operation(found["name"]) if found is not None and nested < MOST_NESTED else None
    if found is None or operation is None:
        return None
    parts = [part for part in split_operands(found["operands"], angles=True) if part]
    modes = [mode for part in parts if (mode := _MODE.fullmatch(part))]
    parts = [part for part in parts if not _MODE.fullmatch(part)]
    template = [part.strip() for part in (found["template"] or "").split(",") if part.strip()]
    chosen: list[Any] = [int(part) if part.isdecimal() else part for part in template]
    operands = [source_layout(part, nested + 1) for part in parts]
    if parts and parts[0].isidentifier() and found["name"] not in _OF_NUMBERS:
        raise InvalidValueError(f"{found['name']}: the layout {parts[0]} is not known")
    given = f"<{','.join(template)}>" if template else ""
    shown = [*map(printed, operands), *(mode[0] for mode in modes)]
    head = f"{found['name']}{given}({', '.join(shown)})"
    chosen += [int(n) for mode in modes for n in mode["numbers"].split(",") if n.strip()]
    if found["name"] in ("append", "prepend") and chosen:  # append<3>(L): up to rank 3
        operands = [*operands, None] if len(operands) == 1 else operands
        return _Call(operation, [*operands, *chosen], head)
    return _Call(operation, [*operands[:1], *chosen, *operands[1:]], head)


_MODE: Final = re.compile(r"mode\s?=\s?[\[(]?(?P<numbers>[0-9 ,]{1,40})[\])]?")
"""Python's keyword for a mode: `mode=[0]`."""


def source_layout(text: str, nested: int = 0) -> Any:
    """Evaluate an expression of source code: a call of the layout algebra, a layout atom of wgmma or tcgen05, or what
    `parse` reads.

    Raises:
        CuteError: a part is not static or not known, or the operation refuses its operands.

    >>> print(source_layout("tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_128,_64>{})"))
    Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))
    """
    from cute_py.atom.smem_layouts import gmma_layout, umma_layout

    if _ATOM.fullmatch(text):
        name = text.strip().removesuffix("{}").strip().removeprefix("cute::")
        return (gmma_layout if name.startswith("GMMA") else umma_layout)(name)
    call = _read_call(_SOURCE.fullmatch(text), nested)
    if call is None:
        return parse(text.strip().removeprefix("cute::"))
    if (wrong := _misfit(call.operation, call.operands)) is not None:
        raise InvalidValueError(f"{call.head}: {wrong}")
    return call.operation(*call.operands)


def _misfit(operation: Callable[..., LayoutLike | Parsed], operands: Sequence[Parsed]) -> str | None:
    """Why an operation does not take this number of operands; None if it does."""
    try:
        inspect.signature(operation).bind(*operands)
    except TypeError as error:
        return str(error)
    return None


def spelled_place(text: str) -> str | None:
    """Explain a string that is a layout followed by a coordinate: the offset, or the slice. None for any other string.

    >>> print(spelled_place("((2,2),8):((16,1),32)(13)"))
    ((2,2),8):((16,1),32) at the coordinate 13
      natural coordinate: ((1,0),3)
      offset: 1 * 16 + 0 * 1 + 3 * 32 = 112
    """
    from cute_py.arith_tuple.cells import text as printed

    text = text.strip()
    begin = _last_bracket(text)
    if not begin:
        return None
    layout, coord = (unless_refused(parse, part) for part in (text[:begin], text[begin:]))
    if not isinstance(layout, (Layout, ComposedLayout)) or not isinstance(coord, tuple):
        return None
    place: Any = coord[0] if len(coord) == 1 else coord
    head = f"{layout} at the coordinate {printed(place)}"
    try:
        found = layout(place)
    except CuteError as error:
        return f"{head}\nis refused: {error}"
    if isinstance(found, (Layout, ComposedLayout)):
        start = unless_refused(lambda: slice_and_offset(place, layout)) if isinstance(layout, Layout) else None
        offset = f"\n  offset: {printed(start[1])}" if start is not None else ""
        return f"{head}\n  slice: {found}{offset}"
    lines = [head]
    natural = unless_refused(idx2crd, place, domain_of(layout).shape)
    if natural is not None and natural != place:
        lines.append(f"  natural coordinate: {printed(natural)}")
    if isinstance(layout, Layout) and natural is not None:
        pairs = zip(leaves(natural), leaves(layout.stride), strict=True)
        terms = [f"{printed(n)} * {printed(d)}" for n, d in pairs]
        lines.append(f"  offset: {' + '.join(terms) or printed(found)}" + (f" = {printed(found)}" if terms else ""))
    else:
        lines.append(f"  offset: {printed(found)}")
    shape = domain_of(layout).shape
    if natural is not None and not _inside(natural, shape):
        lines.append(f"  the coordinate is outside the shape {printed(shape)}, which CuTe does not check")
    return "\n".join(lines)


def _inside(natural: IntTuple, shape: IntTuple) -> bool:
    """Whether a natural coordinate is inside a shape, or this is unknown because of symbols."""
    negative = any(isinstance(n, int) and n < 0 for n in leaves(natural))
    return not negative and unless_refused(elem_less, natural, shape) is not False


LONGEST_PLACE: Final = 4000
"""Longest text, in characters, that may be a layout with a coordinate."""


def _last_bracket(text: str) -> int:
    """Position of the bracket that opens the last group of a text; 0 if the text does not end with a group."""
    if not text.endswith(")") or len(text) > LONGEST_PLACE:
        return 0
    level = 0
    for i in range(len(text) - 1, -1, -1):
        level += {")": 1, "(": -1}.get(text[i], 0)
        if level == 0:
            return i
    return 0


_CALL: Final = re.compile(rf"\s*(?:explain\(\s*(?=\w+\s*,))?{_NAME}\s*[(,](?P<operands>.{{1,4000}})\)\s*")
"""A call such as `nullspace((4,8):(0,1))` or `explain(nullspace, (4,8):(0,1))`."""


_DEFINITION: Final = re.compile(
    r"(?:using |(?:static |constexpr |const ){0,3}(?:auto|int|size_t|Layout|Shape|Stride) (?:const )?)?"
    r"(?P<name>[A-Za-z_]\w{0,40})\s?=\s?(?P<value>[^=\s].{0,4000})",
    re.DOTALL,
)
"""A definition of a variable in C++ or Python, without the semicolon."""
_PRINTED: Final = re.compile(r"(?:cute(?:\.|::))?print(?:_layout|_latex)?\((?P<value>.{1,4000})\)", re.DOTALL)
_ONE_THREAD: Final = re.compile(r"\bif\s?\((?:cute::)?thread0?\([0-9, ]{0,20}\)\)\s?")
"""CuTe's condition for one thread, before a statement that prints."""
_TYPE_OF: Final = re.compile(r"decltype\((?P<value>.{1,4000})\)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(
    r"\b(?P<name>[A-Za-z_]\w{0,40})(?:\[(?P<mode>[0-9]{1,3})\]|\.(?P<attribute>shape|stride|size|cosize|rank|depth)\b(?:\(\))?)"
)
"""A mode, or an attribute or method, of a variable: `L[0]`, `L.shape`, `L.size()`."""


def _statements(text: str) -> list[str]:
    """Split source code at semicolons and line breaks outside brackets. Comments, empty statements, and conditions for
    one thread are left out; a block in braces counts as its statements."""
    found: list[str] = []
    level = begin = 0
    text = re.sub(r"(?://|#)[^\n]{0,400}", "", text) + "\n"
    text = re.sub(r"(?<=\w) {1,8}<", "<", text)  # `Shape <_2,_3>`
    for i, letter in enumerate(text):
        level += (letter in "([{") - (letter in ")]}")
        if letter in ";\n" and level <= 0:
            one = _ONE_THREAD.sub("", text[begin:i]).strip()
            found += _statements(one[1:-1]) if one.startswith("{") and one.endswith("}") else [one]
            begin = i + 1
    return [one for one in found if one]


def spelled_statements(text: str) -> str | None:
    """Explain definitions of layouts, and the expression after them that uses the layouts. None for any other string.

    >>> print(spelled_statements("auto L = make_layout(make_shape(4, 8), make_stride(8, 1)); print(L(_, 2));"))
    L = (4,8):(8,1)
    (4,8):(8,1) at the coordinate (_,2)
      slice: (4):(8)
      offset: 2
    """
    from cute_py.arith_tuple.cells import text as printed
    from cute_py.explanation.layouts import any_layout

    if "=" not in text or len(text) > LONGEST_PLACE:
        return None
    *before, last = _statements(text) or [""]
    names: dict[str, str] = {}
    expressions: dict[str, str] = {}

    def attribute(one: re.Match[str]) -> str:
        if one["name"] not in names:
            return one[0]
        return f"layout<{one['mode']}>({one['name']})" if one["mode"] else f"{one['attribute']}({one['name']})"

    def replaced(part: str) -> str:
        part = _ATTRIBUTE.sub(attribute, part)
        if kind := _TYPE_OF.fullmatch(part.strip()):
            part = kind["value"]
        return re.sub(r"\b([A-Za-z_]\w*)(?:\{\})?", lambda word: names.get(word[1], word[0]), part)

    for statement in before:
        one = _DEFINITION.fullmatch(statement)
        value = None if one is None else unless_refused(source_layout, replaced(one["value"]))
        if one is None or value is None or unless_refused(parse, printed(value)) != value:
            return None
        expressions[one["name"]] = replaced(one["value"])
        names[one["name"]] = printed(value)
    defined, shown = _DEFINITION.fullmatch(last), _PRINTED.fullmatch(last)
    if chosen := defined or shown:
        last = chosen["value"].strip().removesuffix("{}")
    expression = expressions.get(last, replaced(last))  # of a variable, the steps of its definition
    answer = spelled_composition(expression) or spelled_call(expression) or spelled_place(expression)
    if answer is not None:
        names.pop(last, None)
    elif shown:
        value = unless_refused(source_layout, expression)
        answer = any_layout(value) if isinstance(value, Layout) else None
    # Other readers explain a refused call, and a type, if they are alone.
    alone = defined and "\nis refused: " not in (answer or "") and not _TYPE_OF.fullmatch(last)
    if answer is None or not (before or alone):
        return None
    return "\n".join([*(f"{name} = {value}" for name, value in names.items()), answer])


def spelled_call(text: str) -> str | None:
    """Explain a string that is a call of the layout algebra: its steps and its result. None for any other string.

    >>> print(spelled_call("max_common_vector((_4,_8):(_1,_4), (_4,_8):(_1,_8))"))
    max_common_vector((_4,_8):(_1,_4), (_4,_8):(_1,_8))
    result: _4
    """
    from cute_py.arith_tuple.cells import text as printed

    call = unless_refused(_read_call, _CALL.fullmatch(text))
    if call is None:
        return None
    operation, operands, head = call
    if (wrong := _misfit(operation, operands)) is not None:
        return f"{head}\nis refused: {wrong}"
    stepped = next((one for one in explained() if one is operation), None)
    try:
        if operation is composition and len(operands) == 2:
            return f"{head}\n{composition_text(operands[0], operands[1])}"
        made = map(str, steps(stepped, *operands)) if stepped else [f"result: {printed(operation(*operands))}"]
        return "\n".join([head, *made, *static_lines(operation, *operands)])
    except CuteError as error:
        return f"{head}\nis refused: {error}"
    except (TypeError, IndexError) as error:
        return f"{head}\nis refused: {error}"
