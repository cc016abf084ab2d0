"""Explain a composition, and check whether its result equals the composed function.

CuTe C++ computes composition(A, B) by divisions whose conditions are not sufficient: even if they hold, the result R
may differ from A(B(i)) when B's steps do not divide A's modes. Every explanation of a composition ends with this
comparison.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from cute_py.errors import (
    CompositionMismatchError,
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    given,
    unless_refused,
)
from cute_py.layout.arguments import IntTuple, LayoutLike, Tiler
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition, tiler_text
from cute_py.layout.coordinate import idx2crd, slice_, slice_and_offset
from cute_py.layout.int_tuple import elem_less, is_static
from cute_py.layout.layout import Layout, domain_of, has_numbers, static
from cute_py.layout.leaf import Int
from cute_py.layout.steps import explained, steps
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import is_underscore, leaves
from cute_py.notation.parse import Parsed, parse

if TYPE_CHECKING:
    from cute_py.atom.copy_atom import CopyAtom
    from cute_py.atom.mma_atom import MmaAtom


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
    """Explain a string `A o B` of a layout and a layout, a size or a tiler, or of a swizzle and a layout; None for any
    other string. Several operands are composed from left to right."""
    parts = [part.strip() for part in text.split(" o ")]
    if not 2 <= len(parts) <= MOST_NESTED or "\n" in text.strip():
        return None
    found = [unless_refused(parse, part) for part in parts]  # (layout,) for `((4,8):(8,1))`
    if any(one is None for one in found):
        return None
    left, right, *others = (one[0] if isinstance(one, tuple) and len(one) == 1 else one for one in found)
    if others:
        return _spelled_chain([left, right, *others])
    if isinstance(left, Swizzle) and isinstance(right, (Layout, ComposedLayout)):
        whole = ComposedLayout(left, Int(0), right)
        return (
            f"{left} o {right}: the composition of a swizzle with a layout, written without the offset.\n  As CuTe "
            f"prints it, with the offset between them: {whole}\n  composition({left!r}, {right!r}) makes it."
        )
    if not isinstance(left, Layout) or not _is_tiler(right):
        return None
    head = f"composition(A, B) with A = {left}, B = {tiler_text(right)}"
    try:
        return f"{head}\n{composition_text(left, right)}"
    except CuteError as error:
        return f"{head}\nis refused: {error}"


def _is_tiler(operand: object) -> TypeGuard[Tiler]:
    """Whether the right operand of a composition is a layout, a size, `_` or a tuple of them."""
    if isinstance(operand, tuple):
        return bool(operand) and all(map(_is_tiler, operand))
    return isinstance(operand, (Layout, int)) or is_underscore(operand)


def _spelled_chain(operands: Sequence[Parsed | None]) -> str | None:
    """Explain a composition of a layout with layouts and tilers; the last of them may be a size. None for other
    operands: a number between two layouts is the offset of a composed layout."""
    first, *others = operands
    if any(isinstance(one, int) for one in others[:-1]) or not all(map(_is_tiler, others)):
        return None
    made: Any = first if isinstance(first, Layout) else None
    answers: list[str] = []
    for right in others if made is not None else ():
        answers.append(spelled_composition(f"{made} o {tiler_text(right)}") or "")
        made = unless_refused(composition, made, right)
        if not isinstance(made, Layout):
            break
    return "\n\n".join(answers) or None


LAYOUT_ATOM: Final = r"(?:cute::)?(?:GMMA|UMMA)::Layout_\w{1,40}_Atom<[\w:]{1,80}>(?:\s?\{\})?"
"""Matches a layout atom of wgmma or tcgen05 in C++ source: its type, or an object of it."""
_ATOM: Final = re.compile(rf"\s*{LAYOUT_ATOM}\s*")
_NAME: Final = r"(?:cute(?:_py)?(?:\.|::))?(?P<name>\w{1,40})(?:<(?P<template>[\w:, ]{1,120})>)?"
_SOURCE: Final = re.compile(rf"\s*{_NAME}\s?\((?P<operands>.{{1,4000}})\)\s*", re.DOTALL)
"""A call in source code, with template arguments if there are any: `group<0,2>(L)`."""
MOST_NESTED: Final = 12
"""Maximum depth of calls that are operands of calls, and number of operands of a composition."""


def layout_mode(layout: Layout, *mode: int) -> Layout:
    """Return a mode of a layout, as C++'s `layout<0>(L)` and `get<0>(L)` do.

    Raises:
        InvalidTypeError: the first operand has no modes.

    >>> print(layout_mode(Layout(((2, 3), 4)), 0, 1))
    3:2
    """
    if not hasattr(layout, "__getitem__"):
        raise InvalidTypeError(
            f"the first operand of layout and get must be a layout, not {given(layout)}",
            hint="if this is a call of a variable, define the variable in the same text: layout = (4,8):(8,1); "
            "layout(2, 3)",
        )
    for index in mode:
        layout = layout[index]
    return layout


def _operation(name: str) -> Callable[..., LayoutLike | Parsed] | None:
    """The operation of the layout algebra with this name whose calls are evaluated."""
    from cute_py import layout as algebra
    from cute_py.tensor.partition import local_tile
    from cute_py.tensor.tensor import make_identity_layout, make_identity_tensor

    named: dict[str, Callable[..., LayoutLike | Parsed]] = {
        "layout": layout_mode,
        "get": layout_mode,
        "slice": slice_,
        "local_tile": local_tile,
        "make_identity_layout": make_identity_layout,
        "make_identity_tensor": make_identity_tensor,
    }
    if name in named:
        return named[name]
    if name in _TILED:
        from cute_py import atom

        return getattr(atom, name)  # type: ignore[no-any-return]
    if name in _EVALUATED:
        return getattr(algebra, name)  # type: ignore[no-any-return]
    return next((one for one in explained() if one.__name__ == name), None)


_TILED: Final = ("make_tiled_mma", "make_tiled_copy")
"""Operations that make a tiled operation of an atom."""
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
    parts = _positioned(operation, [part for part in parts if not _MODE.fullmatch(part)])
    template = [part.strip() for part in (found["template"] or "").split(",") if part.strip()]
    chosen: list[Any] = [int(part) if part.isdecimal() else part for part in template]
    operands = [source_layout(part, nested + 1) for part in parts]
    if found["name"] == "make_ordered_layout" and found[0].lstrip().startswith("cute."):
        operands = [static(one) for one in operands]  # the numbers of CuTe DSL's source code are static
    if parts and parts[0].isidentifier() and found["name"] not in _OF_NUMBERS:
        raise InvalidValueError(f"{found['name']}: the layout {parts[0]} is not known")
    given = f"<{','.join(template)}>" if template else ""
    shown = [*(getattr(one, "op", None) or printed(one) for one in operands), *(mode[0] for mode in modes)]
    head = f"{found['name']}{given}({', '.join(shown)})"
    chosen += [int(n) for mode in modes for n in mode["numbers"].split(",") if n.strip()]
    if found["name"] in ("append", "prepend") and chosen:  # append<3>(L): up to rank 3
        operands = [*operands, None] if len(operands) == 1 else operands
        return _Call(operation, [*operands, *chosen], head)
    return _Call(operation, [*operands[:1], *chosen, *operands[1:]], head)


KEYWORD: Final = "keyword"
"""The id of the rule that an operation has a parameter with the name of each keyword argument."""
_KEYWORD: Final = re.compile(r"(?P<name>[A-Za-z_]\w{0,40})\s?=(?!=)\s?(?P<value>.{1,4000})", re.DOTALL)
"""A keyword argument of Python: `order=(1, 0)`."""


def _positioned(operation: Callable[..., LayoutLike | Parsed], parts: Sequence[str]) -> list[str]:
    """The operands of a call in the order of the parameters, which their keywords name.

    Raises:
        InvalidValueError: the operation has no parameter of this name, or the call leaves one out.
    """
    named = [keyword for part in parts if (keyword := _KEYWORD.fullmatch(part))]
    placed = [part for part in parts if not _KEYWORD.fullmatch(part)]
    if not named:
        return placed
    given_as = {keyword["name"]: keyword["value"] for keyword in named}
    names = list(inspect.signature(operation).parameters)[len(placed) : len(placed) + len(named)]
    if wrong := sorted(set(given_as) - set(names)):
        raise InvalidValueError(f"{operation.__name__} has no argument {' or '.join(wrong)} here").of_rule(KEYWORD)
    return [*placed, *(given_as[name] for name in names)]


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

    if (operation := _OPERATION.fullmatch(text)) is not None:
        return _atom(operation)
    if _ATOM.fullmatch(text):
        name = text.strip().removesuffix("{}").strip().removeprefix("cute::")
        return (gmma_layout if name.startswith("GMMA") else umma_layout)(name)
    call = _read_call(_SOURCE.fullmatch(text), nested)
    if call is None:
        return parse(text.strip().removeprefix("cute::"))
    if (wrong := _misfit(call.operation, call.operands)) is not None:
        raise InvalidValueError(f"{call.head}: {wrong}")
    return call.operation(*call.operands)


def _atom(found: re.Match[str]) -> MmaAtom | CopyAtom:
    """The atom of an operation in source code, with the value type of a `Copy_Atom`.

    Raises:
        CuteError: no atom has this name.
    """
    from cute_py.atom.copy_atoms import copy_atom
    from cute_py.atom.mma_atoms import mma_atom
    from cute_py.atom.template_name import split_template
    from cute_py.explanation.atoms import traits_operation

    name = (found["name"] or found["plain"]).strip()
    if found["kind"] != "Copy_Atom":
        for atom in (unless_refused(mma_atom, name), unless_refused(copy_atom, name)):
            if atom is not None:
                return atom
        raise InvalidValueError(f"CuTe has no MMA or copy operation named {given(name)}")
    _, (operation, *types) = split_template(f"Copy_Atom<{name}>")
    operation = traits_operation(operation)[0]
    return copy_atom(operation, *(re.sub(r"^(?:cute|cutlass)::", "", one) for one in types[:1]))


_OPERATION: Final = re.compile(
    r"\s*(?:cute::)?(?:(?P<kind>MMA_Atom|Copy_Atom)<(?P<name>[^{}()]{1,400})>"
    r"|(?P<plain>(?:SM[0-9]{2,3}_|Universal(?:Copy|FMA)\b|AutoVectorizingCopy|DefaultCopy)[^{}()]{0,400}))"
    r"\s?(?:\{\s?\}|\(\s?\))?\s*"
)
"""An operation of MMA_ATOMS or COPY_ATOMS, or an atom of it, in C++ source: its type, or an object of it."""


def spelled_atom(text: str) -> str | None:
    """Explain a string that is the C++ type of an atom, or its definition with `using`. None for any other string.

    >>> print(spelled_atom("using Atom = MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>;").splitlines()[0])
    SM80_16x8x16_F32F16F16F32_TN
    """
    written = re.sub(r"\A\s{0,9}using \w{1,60}\s?=\s?", "", text).strip().removesuffix(";")
    found = _OPERATION.fullmatch(written)
    if found is None or not found["kind"]:
        return None
    from cute_py.explanation.atoms import atom_text, tma_atom_text

    if found["kind"] == "Copy_Atom" and (of_tma := unless_refused(tma_atom_text, found["name"])):
        return of_tma
    atom = unless_refused(_atom, found)
    return None if atom is None else atom_text(atom)


def _misfit(operation: Callable[..., LayoutLike | Parsed], operands: Sequence[Parsed]) -> str | None:
    """Why an operation does not take this number of operands; None if it does."""
    try:
        inspect.signature(operation).bind(*operands)
    except TypeError as error:
        return str(error)
    return None


class _Place(NamedTuple):
    """A layout and a coordinate."""

    layout: Layout | ComposedLayout
    coord: Any


def _place(text: str) -> _Place | None:
    """A layout and the coordinate that follows it; None for any other string."""
    text = text.strip()
    begin = _last_bracket(text)
    if not begin:
        return None
    layout, coord = (unless_refused(parse, part) for part in (text[:begin], text[begin:]))
    if not isinstance(layout, (Layout, ComposedLayout)) or not isinstance(coord, tuple):
        return None
    return _Place(layout, coord[0] if len(coord) == 1 else coord)


def spelled_place(text: str) -> str | None:
    """Explain a string that is a layout followed by a coordinate: the offset, or the slice. None for any other string.

    >>> print(spelled_place("((2,2),8):((16,1),32)(13)"))
    ((2,2),8):((16,1),32) at the coordinate 13
      natural coordinate: ((1,0),3)
      offset: 1 * 16 + 0 * 1 + 3 * 32 = 112
    """
    from cute_py.arith_tuple.cells import text as printed

    if (read := _place(text)) is None:
        return None
    layout, place = read
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
    r"(?:using |(?:static |constexpr |const ){0,3}(?:auto|int|size_t|Layout|Shape|Stride|TiledMMA|TiledCopy) "
    r"(?:const )?)?"
    r"(?P<name>[A-Za-z_]\w{0,40})\s?=\s?(?P<value>[^=\s].{0,4000})",
    re.DOTALL,
)
"""A definition of a variable in C++ or Python, without the semicolon."""
_PRINTED: Final = re.compile(
    r"(?:cute(?:\.|::))?print(?:f\(\s?\"[^\"\n]{0,400}\"\s?,|(?:_layout|_latex)?\()(?P<value>.{1,4000})\)", re.DOTALL
)
_OUTPUT: Final = re.compile(
    r"(?:import|from) \w[^\n;]{0,200}|using namespace [\w:]{1,80}|[0-9]{1,4000}"
    r"|(?:cute(?:\.|::))?printf?\(\s?[\"'][^\"'\n]{0,400}[\"']\s?\)"
)
"""A number that a program printed, an import, or a statement that prints only a string."""
_ASSERTED: Final = re.compile(
    r"(?:CUTE_(?:STATIC_)?ASSERT(?:_V)?|(?:static_)?assert)\b\s?(?P<condition>[^\s].{0,4000})", re.DOTALL
)
"""An assertion in C++ or Python."""
_ONE_THREAD: Final = re.compile(r"\bif\s?\((?:cute::)?thread0?\([0-9, ]{0,20}\)\)\s?")
"""CuTe's condition for one thread, before a statement that prints."""
_TYPE_OF: Final = re.compile(r"(?:decltype|int)\((?P<value>.{1,4000})\)", re.DOTALL)
"""The type of an expression, or its value as an integer."""
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
    if "=" not in text or len(text) > LONGEST_PLACE:
        return None
    parts = [one for one in _statements(text) if not _OUTPUT.fullmatch(one)]
    *before, last = parts or [""]
    known = _Definitions()
    answers: list[str] = []
    for statement in before:
        shown = known.shown(statement)
        answers += shown or []
        if not shown and (shown is not None or not (known.define(statement) or known.uses_tiled(statement))):
            return None
    if (shown := known.shown(last)) is None:
        defined = _DEFINITION.fullmatch(last)
        last = defined["value"].strip().removesuffix("{}") if defined else last
        answer = known.answer(last)
        # Other readers explain a refused call, and a type, if they are alone.
        alone = defined and "\nis refused: " not in (answer or "") and not _TYPE_OF.fullmatch(last)
        shown = [answer] if answer is not None and (before or alone) else []
    elif not before:
        return None
    return "\n".join([*known.lines(), *answers, *shown]) if shown else None


class _Definitions:
    """Variables that statements of source code define, and the answers to statements that use them."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._expressions: dict[str, str] = {}
        self._tiled: set[str] = set()
        self._answered: set[str] = set()

    def lines(self) -> list[str]:
        """One line for each variable that no answer explains."""
        return [f"{name} = {value}" for name, value in self._values.items() if name not in self._answered]

    def define(self, statement: str) -> bool:
        """Add the variable that a statement defines. Return False for any other statement. An atom or tiled operation
        keeps its expression, because its printed text does not name its operation."""
        from cute_py.arith_tuple.cells import text as printed
        from cute_py.explanation.atoms import is_atom

        one = _DEFINITION.fullmatch(statement)
        value = None if one is None else self.value(one["value"])
        if one is None:
            return False
        spelled = self._replaced(one["value"]).strip()
        refused = value is None and (call := _CALL.fullmatch(spelled)) is not None and call["name"] in _TILED
        tiled = is_atom(value) or (refused and spelled_call(spelled) is not None)
        if not tiled and (value is None or unless_refused(parse, printed(value)) != value):
            return False
        self._expressions[one["name"]] = spelled
        self._values[one["name"]] = spelled if tiled or value is None else printed(value)
        if tiled:
            self._tiled.add(one["name"])
        return True

    def uses_tiled(self, statement: str) -> bool:
        """Whether a statement uses a tiled operation, or a variable made of one: `auto thr = mma.get_slice(0)`. Such a
        statement needs no value."""
        if not any(re.search(rf"\b{name}\b", statement) for name in self._tiled):
            return False
        left, equals, _ = statement.partition("=")
        made = left.split()[-1:] if equals else []
        self._tiled.update(name for name in made if name.isidentifier() and name not in self._values)
        return True

    def value(self, expression: str) -> LayoutLike | Parsed | None:
        """The value of an expression; None if it is not known."""
        spelled = self._replaced(expression)
        value = unless_refused(source_layout, spelled)
        place = None if value is not None else _place(spelled)
        return value if place is None else unless_refused(place.layout, place.coord)

    def answer(self, expression: str, is_printed: bool = False) -> str | None:
        """Explain an expression: of a variable, the steps of its definition. None if it has no explanation."""
        from cute_py.explanation.atoms import atom_text, is_atom
        from cute_py.explanation.layouts import any_layout

        spelled = self._expressions.get(expression, self._replaced(expression))
        found = spelled_composition(spelled) or spelled_call(spelled) or spelled_place(spelled)
        if found is not None:
            self._answered.add(expression)
        elif is_printed:
            value = unless_refused(source_layout, spelled)
            found = any_layout(value) if isinstance(value, Layout) else atom_text(value) if is_atom(value) else None
        return found

    def shown(self, statement: str) -> list[str] | None:
        """Explain what a statement prints or asserts: an empty list if this is not known, and None if the statement
        does neither."""
        from cute_py.notation.argument_lists import matching_bracket, split_operands

        if one := _ASSERTED.fullmatch(statement):
            condition = one["condition"].strip()
            if condition.startswith("(") and matching_bracket(condition, 1) == len(condition) - 1:
                condition = condition[1:-1]
            left, _, right = split_operands(condition)[0].partition("==")
            values = self.value(left.strip()), self.value(right.strip())
            answer = self.answer(left.strip())
            if answer is None or None in values:
                return []
            return [
                answer,
                f"  the assertion that it is {right.strip()} {'holds' if values[0] == values[1] else 'fails'}",
            ]
        if (one := _PRINTED.fullmatch(statement)) is None:
            return None
        parts = [part.removesuffix("{}") for part in split_operands(one["value"]) if not part.startswith(('"', "'"))]
        answers = [self.answer(part, is_printed=True) for part in parts]
        return [] if None in answers else [answer for answer in answers if answer is not None]

    def _replaced(self, part: str) -> str:
        """The expression with the values of its variables."""

        def attribute(one: re.Match[str]) -> str:
            if one["name"] not in self._values:
                return one[0]
            return f"layout<{one['mode']}>({one['name']})" if one["mode"] else f"{one['attribute']}({one['name']})"

        part = _ATTRIBUTE.sub(attribute, part)
        if kind := _TYPE_OF.fullmatch(part.strip()):
            part = kind["value"]
        return re.sub(r"\b([A-Za-z_]\w*)(?:\{\})?", lambda word: self._values.get(word[1], word[0]), part)


def undefined_call(text: str) -> str | None:
    """The name of the layout that a short text calls with a coordinate, but does not define; None if there is none.

    >>> undefined_call("print(layout(3, 5))"), undefined_call("layout = (4,8):(8,1); print(layout(3, 5))")
    ('layout', None)
    >>> undefined_call("range(0, 5)"), undefined_call("size(x); x(0, 5)")
    (None, 'x')
    """
    if len(text) > LONGEST_CALL:
        return None
    for one in _CALLED.finditer(text):
        name = one["name"]
        if re.search(rf"\b{name}\s?=(?!=)", text) is None and (_LAYOUT_NAME.fullmatch(name) or _is_used(name, text)):
            return name
    return None


def _is_used(name: str, text: str) -> bool:
    """Whether the text uses a variable as a layout: it is an operand of the layout algebra, or has a shape."""
    operands = re.finditer(rf"(?<![\w.])(?P<operation>[A-Za-z_]\w{{0,40}}+)\s?\([^()]{{0,80}}\b{name}\b(?!\s?\()", text)
    known = any(_operation(one["operation"]) is not None for one in operands)
    return known or re.search(rf"\b{name}\.(?:shape|stride|layout)\b", text) is not None


LONGEST_CALL: Final = 120
"""Longest text, in characters, that may be a call of a variable which is not defined."""
_LAYOUT_NAME: Final = re.compile(r"(?i:\w{0,40}layout\w{0,40})|[ABCDLST]|[stgrc][A-D]|t[A-D](?:[stgrc][A-D])?")
"""A name that code gives to layouts and tensors."""
_CALLED: Final = re.compile(
    r"(?<![\w.:>])(?!print)(?P<name>[A-Za-z_]\w{0,40}+)\((?:\s?[0-9_]{1,9}\s?,){1,8}\s?[0-9_]{1,9}\s?\)"
)


_ORDERED: Final = re.compile(
    r"\s*(?:cute(?:_py)?\.)?make_layout\s?\((?P<operands>.{1,4000}\border\s?=(?!=).{1,400})\)\s*", re.DOTALL
)
"""A call of make_layout with an order of its modes."""


def spelled_call(text: str) -> str | None:
    """Explain a string that is a call of the layout algebra: its steps and its result. None for any other string.

    >>> print(spelled_call("max_common_vector((_4,_8):(_1,_4), (_4,_8):(_1,_8))"))
    max_common_vector((_4,_8):(_1,_4), (_4,_8):(_1,_8))
    result: _4
    """
    from cute_py.arith_tuple.cells import text as printed

    if ordered := _ORDERED.fullmatch(text):
        shown = spelled_call(f"cute.make_ordered_layout({ordered['operands']})")
        return shown and f"make_layout of CuTe DSL and C++ has no argument order; make_ordered_layout has it.\n{shown}"
    found = _CALL.fullmatch(text)
    try:
        call = _read_call(found)
    except CuteError as error:
        if error.rule == KEYWORD:
            return f"{text.strip()}\nis refused: {error}"
        if found is None or found["name"] not in _TILED or not _OPERATION.match(found["operands"]):
            return None
        return f"{text.strip()}\nis refused: {error}"
    if call is None:
        return None
    operation, operands, head = call
    if (wrong := _misfit(operation, operands)) is not None:
        return f"{head}\nis refused: {wrong}"
    stepped = next((one for one in explained() if one is operation), None)
    try:
        if operation is composition and len(operands) == 2:
            return f"{head}\n{composition_text(operands[0], operands[1])}"
        if stepped:
            return "\n".join([head, *map(str, steps(stepped, *operands)), *static_lines(operation, *operands)])
        made = operation(*operands)
        if operation.__name__ in _TILED:
            from cute_py.explanation.atoms import atom_text

            return f"{head}\n{atom_text(made)}"
        return "\n".join([head, f"result: {printed(made)}", *static_lines(operation, *operands)])
    except CuteError as error:
        return f"{head}\nis refused: {error}"
    except (TypeError, IndexError) as error:
        return f"{head}\nis refused: {error}"
