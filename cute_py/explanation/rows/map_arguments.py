"""Read the arguments of a call that encodes a tensor map: each argument by itself, and all of them by their positions.

An argument may be a number, a list, an expression of constants, or a variable. Source code may define a variable as a
list, or set its elements one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Final

from cute_py.explanation.readings import type_bits
from cute_py.explanation.rows.source_constants import SourceConstants, Used
from cute_py.notation.source_numbers import Value, read_value
from cute_py.tma.descriptor.limits import bounds
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled

SOME_ELEMENTS: Final = "[...]"
"""Follows the name of an array whose elements code sets to values that are not constants."""
_MAKER: Final = (
    r"(?:\([\w: ]{1,60}\[\w{0,40}\]\s?\)|(?:std::)?(?:array|vector)\s?(?:<[^<>;{}]{0,80}>)?"
    r"|\(\s?[\w.]{1,40}\s?\*\s?[\w() ]{1,40}\)|(?:np|numpy|torch)\.(?:array|asarray|tensor)\(|tuple\(|list\()\s{0,9}"
)
"""Text before a list that makes an array of it: `(cuuint64_t[]){1024, 512}`, `(c_uint64 * 2)(1024, 512)`."""
_LIST: Final = r"\{[^{}\[\]]{0,300}\}|[\[(][^{}\[\]\n]{0,300}[\])]"
_MADE: Final = re.compile(rf"{_MAKER}(?P<list>{_LIST})(?:,[^()]{{0,80}})?\)?")
_BRACKETED: Final = re.compile(r"\(\s{0,9}(?P<list>\{[^{}]{0,300}\})\s{0,9}\)")
_LENGTH: Final = r"\s{0,80}+(?:\[[^\]\n]{0,400}\])?\s{0,80}+"
"""The length of an array that a declaration may give after its name."""
_CONSTRUCTED: Final = _LENGTH + (
    r"(?P<list>\{[^{}\[\]]{0,300}\}|\((?:\{[^{}()]{0,300}\}|[^(){}\[\]\n;]{0,300})\))\s{0,80}[;,\n)]"
)
_ASSIGNED: Final = _LENGTH + (
    rf"=(?!=)\s{{0,80}}+(?:{_MAKER}(?P<made>{_LIST})(?:,[^()\n]{{0,80}})?\)?"
    rf"|(?:\([\w ]+\))?\s{{0,80}}+(?P<list>{_LIST}|[-\w]{{1,100}}))\s{{0,80}}(?:[;,\n)]|\Z)"
)
"""Matches the text after the name of a variable where source code defines it."""


def known_value(written: str, constants: SourceConstants, used: Used) -> Value:
    """The number or the list that an expression of constants denotes, or the string itself.

    >>> known_value("(uint64_t[]){4 * 4, sizeof(int)}", SourceConstants(""), Used())
    (16, 4)
    """
    made = _MADE.fullmatch(written.strip()) or _BRACKETED.fullmatch(written.strip())
    before = len(used.overflows)
    text = constants.evaluate(made["list"] if made else written, used)
    return text if len(used.overflows) > before else read_value(text, type_bits)


def argument_value(part: str, text: str, used: Used, constants: SourceConstants) -> Value:
    """The value of one argument: a number, a list, or the string itself. For a variable, the value that `text` assigns
    to it; for an array whose elements are not constants, its name and `SOME_ELEMENTS`."""
    part = re.sub(r"^\w{1,80}\s{0,80}=\s{0,80}(?!=)", "", part.strip())
    value = known_value(part, constants, used)
    name = re.sub(r"^&|\+\s{0,80}1$|\.data\(\)$", "", part.replace(" ", "")).strip()
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return value
    found = _assigned_value(name, text, used, constants)
    if found is None:
        return value
    if isinstance(found, int) and part.startswith("&"):
        return (found,)
    return found[1:] if isinstance(found, tuple) and part.replace(" ", "").endswith("+1") else found


def _assigned_value(name: str, text: str, used: Used, constants: SourceConstants) -> Value | None:
    """The value that source code assigns to a variable; None if it assigns none."""
    if constants.sets_elements(name):
        listed = constants.elements(name, used)
        return f"{name}{SOME_ELEMENTS}" if listed is None else read_value(listed, type_bits)
    variable = rf"(?<![\w.]){re.escape(name)}"
    assigned = re.search(variable + _ASSIGNED, text)
    constructed = re.search(variable + _CONSTRUCTED, text)
    first = min((one for one in (assigned, constructed) if one is not None), key=re.Match.start, default=None)
    if first is None:
        return None
    written = first["list"] or first["made"]
    if written[0] not in "{[(" and constants.is_filled(name):
        return None
    found = known_value(written, constants, used)
    call = constants.call_with(name)
    if call is not None and isinstance(found, tuple) and not any(found):
        return f"{name}{SOME_ELEMENTS}"  # the call fills the array
    used.spans.append(first.span())
    if call is not None and isinstance(found, tuple):
        used.notes.append(f"{name} = {written}, as defined; not judged: whether `{call}` changes it")
    return found


def positional_arguments(parts: Sequence[Value], im2col: bool) -> dict[str, Value] | None:
    """Name the arguments of a call in the driver's order. The map may be absent, because some bindings return it."""
    first, *others = (TensorMapIm2col if im2col else TensorMapTiled).FIELDS
    order = ("map", first, "rank", *others)
    if len(parts) == len(order) - 1:
        order = order[1:]
    return dict(zip(order, parts, strict=False)) if len(parts) == len(order) else None


def packed_arguments(parts: Sequence[Value], im2col: bool) -> dict[str, Value] | None:
    """Name the arguments of a packed call of TVM: one argument per mode, with the stride of mode 0."""
    pairs = enumerate(pairwise(parts))
    start = next((i for i, (a, b) in pairs if isinstance(a, int) and isinstance(b, int)), None)
    if start is None or len(parts) < start + 3:
        return None
    kind, rank, address, *rest = parts[start:]
    numbers = [part for part in rest if isinstance(part, int)]
    low, high = bounds("rank")
    if not isinstance(rank, int) or not low <= rank <= high or len(numbers) != len(rest):
        return None
    cut = iter(numbers)

    def take(count: int) -> tuple[int, ...]:
        return tuple(islice(cut, count))

    fields: dict[str, Value] = {"data_type": kind, "rank": rank, "global_address": address}
    fields |= {"global_dim": take(rank), "global_strides": take(rank)}
    if im2col:
        fields["element_strides"] = take(rank)
        fields["pixel_box_lower_corner"], fields["pixel_box_upper_corner"] = take(rank - 2), take(rank - 2)
        pixels = take(2)
        if len(pixels) == 2:
            fields["pixels_per_column"], fields["channels_per_pixel"] = pixels
    else:
        fields["box_dim"], fields["element_strides"] = take(rank), take(rank)
    tail = numbers[-4:]
    if len(numbers) != (3 * rank + 2 * max(rank - 2, 0) + 6 if im2col else 4 * rank + 4):
        return None
    return fields | dict(zip(("interleave", "swizzle", "l2_promotion", "oob_fill"), tail, strict=True))
