"""explain: which words an object gets.

`explain(tensor)` of a coordinate tensor answers what its printed form leaves open: what the iterator is, what each
stride means and why it has the value that it has, and which logical coordinate gives which element.

Words for one basis element, such as 1@0.

Explanation: a text that a terminal prints and a notebook shows with headings, lists of facts and code apart.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from html import escape
from types import ModuleType
from typing import Any

from cute_py.arith_tuple.scaled_basis import ScaledBasis
from cute_py.draw.picture import Picture
from cute_py.errors import CuteError, InvalidTypeError, ParseError, given, shortened
from cute_py.explanation.coordinates import (
    basis_layout,
    coordinates,
    counting,
    is_basis_layout,
    is_coordinates,
    is_counting,
)
from cute_py.explanation.definitions import class_words, function_words, is_function, module_words
from cute_py.explanation.instances import instance_words, member_words, picture_words
from cute_py.explanation.layouts import (
    composed_words,
    integer_layout,
    is_integer_layout,
    is_map,
    map_words,
    stored,
    swizzle_words,
)
from cute_py.explanation.public_names import constant_words, found_by_name, is_constant
from cute_py.explanation.refusals import error_class_words, error_words
from cute_py.explanation.wording import is_ours
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.leaf import Int
from cute_py.layout.steps import explained, steps
from cute_py.layout.swizzle import Swizzle
from cute_py.notation.parse import parse
from cute_py.tensor.tensor import Tensor


def basis_words(element: ScaledBasis) -> str:
    """What a basis element is, and what it does as a stride.

    >>> from cute_py.arith_tuple.scaled_basis import E
    >>> print(basis_words(8 * E(1)).splitlines()[2])
    A basis element: 8 in mode 1 of a coordinate, 0 in every other mode.
    """
    where = " of ".join(f"mode {mode}" for mode in reversed(element.modes)) or "the only mode"
    known = "known at compile time" if isinstance(element.value, Int) else "known at run time"
    step = shortened(str(element.as_arith_tuple()))
    lines = [
        str(element),
        "",
        f"A basis element: {element.value} in {where} of a coordinate, 0 in every other mode.",
        f"Before the first @ stands how far ({known}), after it where, modes counted from 0.",
    ]
    if len(element.modes) > 1:
        lines.append("Modes within modes are written from the inside out.")
    lines += [
        "",
        "As a stride",
        f"  one step along its mode adds {step} to the coordinate. A layout with such strides",
        "  gives coordinates in place of offsets, which is what a TMA instruction is given.",
    ]
    return "\n".join(lines)


_PROSE = 'style="margin-top:.4em;white-space:pre-wrap"'
_PRE = 'style="margin:.2em 0 .6em 1em;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace"'


class Explanation(str):
    """The words of `explain`. It is a string; a notebook shows its HTML form.

    >>> words = Explanation("4:1\\n\\nAs a whole\\n  4 elements")
    >>> print(words.splitlines()[0], len(words) == len(str(words)))
    4:1 True
    >>> words._repr_html_().count("<pre")
    1
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        first, *rest = str(self).split("\n\n")
        parts = [f'<div style="font-weight:bold;font-family:monospace;white-space:pre-wrap">{escape(first)}</div>']
        return f'<div class="cute-explanation">{"".join([*parts, *map(_block, rest)])}</div>'


def _block(text: str) -> str:
    """A paragraph: lines without indent are prose, the others, and all from the first `>>>` on, stay as they are."""
    out: list[str] = []
    kept: list[str] = []
    code = is_code = False
    for line in [*text.split("\n"), None]:
        code = code or (line is not None and line.startswith(">>> "))
        of_code = code or (line is not None and line.startswith(" "))
        if kept and (line is None or of_code != is_code):
            words = escape("\n".join(kept))
            out.append(f"<pre {_PRE}>{words}</pre>" if is_code else f"<div {_PROSE}>{words}</div>")
            kept = []
        if line is not None:
            kept.append(line)
        is_code = of_code
    return "".join(out)


def explain(thing: Any, *operands: Any) -> Explanation:
    """The object, or what an operation does to its operands, in words, several lines.

    `explain(composition, a, b)` tells the steps of `composition(a, b)` with their values; `cute.steps` gives them
    as data. Of a function, class or table it gives the definition, of an error its long form: the rule, why there is
    such a rule, the source, and what to do.

    Args:
        thing: a layout, a composed layout, a swizzle, a tensor, an atom, a tensor map (a request, or 64 or 128 bytes),
            an error of this library, or anything with a method `explain()`; any other object, function, class or
            table of this library, or the name of one ("tma.SWIZZLE_MODES"); "LBO" or "SBO", offsets of a descriptor;
            a text that `parse` reads ("1@0"); or an operation of the layout algebra.
        operands: of the operation.
    Returns:
        a string; a notebook shows it as HTML.
    Raises:
        InvalidTypeError: nothing is known about such an object; of a text, why `parse` can't read it.

    >>> print(explain(coalesce, Layout((Int(2), Int(6)), (Int(1), Int(2)))))
    merge: _2:_1 and _6:_2 are one mode _12:_1: _2 * _1 = _2
    result: (_2,_6):(_1,_2) is _12:_1
    >>> print(explain(make_identity_tensor((4, 5))).splitlines()[0])
    ArithTuple(_0,_0) o (4,5):(_1@0,_1@1)
    """
    if operands:
        return Explanation("\n".join(str(step) for step in steps(thing, *operands)))
    if isinstance(thing, str) and thing in ("LBO", "SBO"):
        from cute_py.atom.smem_descriptor import offset_words

        return Explanation(offset_words(thing))
    if isinstance(thing, str) and (named := found_by_name(thing)) is not None:
        name, value = named
        return Explanation(constant_words(name, value)) if is_constant(value) else explain(value)
    for takes, text in _KINDS:
        if takes(thing):
            return Explanation(text(thing))
    facts = {
        "takes": "layouts, swizzles, tensors, atoms, tensor maps, errors of this library, objects with explain(), "
        "names of this library, texts that `parse` reads"
    }
    if isinstance(thing, str):
        try:
            return explain(parse(thing))
        except ParseError as error:
            facts["parse"] = error.headline
        except CuteError:
            pass
    raise InvalidTypeError(f"explain has no words for {type(thing).__name__} {given(thing)}", facts)


def _own_words(thing: Any) -> str:
    return str(thing.explain())


def _operation_words(operation: Any) -> str:
    names = {1: "a", 2: "a, b"}[1 if operation.__name__ in ("coalesce", "right_inverse", "left_inverse") else 2]
    hint = f"The steps with their values: explain({operation.__name__}, {names})"
    return f"{function_words(operation)}\n\n{hint}"


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any], str]], ...] = (
    (lambda thing: any(thing is operation for operation in explained()), _operation_words),
    (lambda thing: isinstance(thing, type) and issubclass(thing, CuteError), error_class_words),
    (lambda thing: isinstance(thing, type) and is_ours(thing), class_words),
    (lambda thing: isinstance(thing, ModuleType) and thing.__name__.split(".")[0] == "cute_py", module_words),
    (is_function, function_words),
    (lambda thing: isinstance(thing, type), lambda thing: _no_words(thing)),
    (is_coordinates, coordinates),
    (is_counting, counting),
    (is_basis_layout, basis_layout),
    (is_integer_layout, integer_layout),
    (lambda thing: isinstance(thing, Swizzle), swizzle_words),
    (lambda thing: isinstance(thing, ScaledBasis), basis_words),
    (lambda thing: isinstance(thing, ComposedLayout), composed_words),
    (lambda thing: isinstance(thing, Tensor), stored),
    (lambda thing: isinstance(thing, Picture), picture_words),
    (lambda thing: isinstance(thing, CuteError), error_words),
    (is_map, map_words),
    (lambda thing: callable(getattr(thing, "explain", None)), _own_words),
    (lambda thing: isinstance(thing, enum.Enum) and is_ours(type(thing)), member_words),
    (is_constant, lambda thing: constant_words(None, thing)),
    (lambda thing: is_ours(type(thing)), instance_words),
)
"""(does it take this object?, its words), the first that does; other kinds of objects are added here."""


def _no_words(thing: Any) -> str:
    raise InvalidTypeError(
        f"explain has no words for {type(thing).__name__} {given(thing)}",
        {"takes": "layouts, swizzles, tensors, atoms, tensor maps, errors of this library, objects with explain()"},
    )
