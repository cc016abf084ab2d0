"""Read errors of PyTorch, NumPy and einops about shapes and strides that do not fit each other.

`shape_errors.toml` lists the messages whose numbers need no list. Here are the messages that print whole shapes: a
reshape to another number of elements, shapes that do not broadcast, a view outside its storage, and the sizes and
strides that compiled code expects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import combinations, zip_longest
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.explanation.messages import messages_of
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.rows.known_texts import rows

Sizes = tuple[int, ...]
_SIZE: Final = r"(?:-?[0-9]{1,12}|newaxis)"
_SIZES: Final = rf"[\[(]({_SIZE}(?:, ?{_SIZE}){{0,11}}),?[\])]"
_RESHAPE: Final = re.compile(
    rf"shape '{_SIZES}' is invalid for input of size (?P<torch>[0-9]{{1,18}})"
    rf"|cannot reshape array of size (?P<numpy>[0-9]{{1,18}}) into shape {_SIZES}"
)
_BROADCAST: Final = re.compile(rf"could not be broadcast together with shapes {_SIZES} {_SIZES}(?: {_SIZES})?")
_EXPAND: Final = re.compile(
    r"The expanded size of the tensor \([0-9]{1,12}\) must match the existing size \([0-9]{1,12}\) at non-singleton "
    rf"dimension [0-9]{{1,2}}\.\s{{1,4}}Target sizes: {_SIZES}\.\s{{1,4}}Tensor sizes: {_SIZES}"
)
_CHUNKS: Final = re.compile(r"can't divide axis of length (?P<axis>[0-9]{1,12}) in chunks of (?P<part>[0-9]{1,12})")
_CHECKPOINT: Final = re.compile(
    rf"copying a param with shape torch\.Size\({_SIZES}\) from checkpoint, the shape in current model is "
    rf"torch\.Size\({_SIZES}\)"
)
_PACKED: Final = {
    2: "two values of 4 bits in a byte, as NVFP4 and MXFP4 weights are stored",
    4: "four values of 8 bits in an int32",
    8: "eight values of 4 bits in an int32, as GPTQ and AWQ weights are stored",
}
"""How many times fewer elements a mode of a checkpoint has -> how its values are packed."""
_STORAGE: Final = re.compile(
    rf"sizes {_SIZES}, strides {_SIZES}, storage offset (?P<offset>[0-9]{{1,18}}), and itemsize (?P<item>[0-9]{{1,3}}) "
    r"requiring a storage size of [0-9]{1,18} are out of bounds for storage of size (?P<held>[0-9]{1,18})"
)
_EXPECTED: Final = re.compile(
    r"expected size ([0-9]{1,12})==([0-9]{1,12}), stride (-?[0-9]{1,18})==(-?[0-9]{1,18}) at dim=([0-9]{1,2})"
)
_ALSO: Final = re.compile(rf";\s{{1,9}}{_EXPECTED.pattern}")
_ASSERTED: Final = re.compile(rf"assert_size_stride\(\w{{1,60}}, {_SIZES}, {_SIZES}[,)]")


def read_shape_errors(text: str) -> list[Reading]:
    """Read every error in `text` about shapes or strides that do not fit."""
    readings = messages_of(text, rows("shape_errors"))
    for pattern, read in _READERS:
        readings += [reading for match in some(pattern.finditer(text), 8) if (reading := read(match)) is not None]
    return [*readings, *_expected(text)]


def _sizes(text: str) -> Sizes:
    """The numbers of a shape; NumPy prints -1 as newaxis."""
    return tuple([int(n) for n in text.replace("newaxis", "-1").split(",")])


def _written(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _reading(
    match: re.Match[str], program: str, rule: str, said: str, lines: Sequence[str], change: str = ""
) -> Reading:
    broken = Diagnostic(rule, text=said)
    message = f"message: {' '.join(match[0].split())}"
    return Reading(f"An error from {program}", *match.span(), [message, *lines], [broken], [change] if change else [])


def _reshape(match: re.Match[str]) -> Reading | None:
    """A reshape to another number of elements."""
    program = "PyTorch" if match["torch"] else "NumPy"
    count = int(match["torch"] or match["numpy"])
    sizes = _sizes(match[1] or match[4])
    known = math.prod([n for n in sizes if n != -1])
    if sizes.count(-1) > 1 or min(sizes) < -1 or known <= 0 or count <= 0:
        return None
    if -1 in sizes:
        others = [n for n in sizes if n != -1]
        product = f"{_written(others)} = " if len(others) > 1 else ""
        said = f"{product}{known} does not divide the number of elements, {count}"
        low = count // known
        return _reading(match, program, "reshape", said, [f"{count} = {low} x {known} + {count - low * known}"])
    product = f"{_written(sizes)} = " if len(sizes) > 1 else ""
    said = f"{product}{known} elements, but the tensor has {count}"
    lines = []
    if count % known == 0:
        lines.append(f"the tensor has {count // known} times as many elements")
    elif known % count == 0:
        lines.append(f"the shape has {known // count} times as many elements")
    fits = [
        f"{count // (known // n)} in place of {n} at mode {i}"
        for i, n in enumerate(sizes)
        if count % (known // n) == 0 and len(sizes) > 1
    ]
    if fits:
        lines.append(f"with the other modes unchanged, the number of elements fits {', or '.join(fits)}")
    padded = (*sizes[:-2], -(-sizes[-2] // 128) * 128, -(-sizes[-1] // 4) * 4) if len(sizes) > 1 else sizes
    if math.prod(padded) == count:
        lines.append(
            f"{_written(padded)} has {count} elements too: if these are scales of MXFP8, MXFP4 or NVFP4, the order "
            "32_4_4 pads the rows to 128 and the scales of a row to 4"
        )
    return _reading(match, program, "reshape", said, lines)


def _unequal(first: Sizes, second: Sizes) -> list[int]:
    """The modes, counted from the last one as -1, where two shapes do not broadcast."""
    pairs = zip_longest(reversed(first), reversed(second), fillvalue=1)
    return [-i for i, (a, b) in enumerate(pairs, 1) if a != b and 1 not in (a, b)]


def _broadcast(match: re.Match[str]) -> Reading | None:
    """Shapes that do not broadcast: the first two of them that differ."""
    shapes = [_sizes(text) for text in match.groups() if text is not None]
    first, second = next((pair for pair in combinations(shapes, 2) if _unequal(*pair)), shapes[:2])
    modes = _unequal(first, second)
    if not modes:
        return None
    at = ", ".join(f"at mode {i} the sizes are {first[i]} and {second[i]}" for i in modes)
    said = f"the shapes are aligned at their last modes, and a size of 1 is repeated; {at}, and neither is 1"
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    places = [i for i in range(len(shorter) + 1) if not _unequal(longer, (*shorter[:i], 1, *shorter[i:]))]
    change = ""
    if len(places) == 1 and len(shorter) < len(longer) and len(shapes) == 2:
        made = (*shorter[: places[0]], 1, *shorter[places[0] :])
        same = [len(longer) - len(made) + i for i in range(len(made)) if i != places[0]]
        named = f"{'mode' if len(same) == 1 else 'modes'} {' and '.join(map(str, same))}"
        change = f"if {shorter} belongs to {named} of {longer}: reshape it to {made}"
    return _reading(match, "NumPy", "broadcast", said, (), change)


def _expand(match: re.Match[str]) -> Reading | None:
    """A tensor that does not expand to a shape. A target of -1 keeps the size."""
    target, sizes = _sizes(match[1]), _sizes(match[2])
    modes = [-i for i, n in enumerate(reversed(sizes), 1) if i > len(target) or (n != 1 and target[-i] not in (n, -1))]
    if not modes:
        return None
    at = ", ".join(f"mode {i} has {sizes[i]} in place of {target[i]}" for i in modes if -i <= len(target))
    said = f"expand repeats modes of size 1 and adds modes in front; {at or 'the target has fewer modes'}"
    return _reading(match, "PyTorch", "broadcast", said, ())


def _chunks(match: re.Match[str]) -> Reading | None:
    """An axis of einops that its named parts do not divide."""
    axis, part = int(match["axis"]), int(match["part"])
    if not part or axis % part == 0:
        return None
    said = (
        f"the axis has {axis} elements, and the named axes of its group multiply to {part}: "
        f"{axis} = {axis // part} x {part} + {axis % part}"
    )
    return _reading(match, "einops", "axis", said, ())


def _checkpoint(match: re.Match[str]) -> Reading | None:
    """A parameter whose shape in a checkpoint differs from that in the model."""
    held, wanted = _sizes(match[1]), _sizes(match[2])
    if held == wanted:
        return None
    lines = []
    if sorted(held) == sorted(wanted):
        lines.append("the same sizes in another order: the checkpoint may hold the transpose")
    elif math.prod(held) == math.prod(wanted):
        lines.append("both have the same number of elements, so one may be a reshape of the other")
    modes = (
        [i for i, (n, m) in enumerate(zip(held, wanted, strict=False)) if n != m] if len(held) == len(wanted) else []
    )
    if len(modes) == 1 and 0 < held[modes[0]] < wanted[modes[0]] and wanted[modes[0]] % held[modes[0]] == 0:
        fewer = wanted[modes[0]] // held[modes[0]]
        lines.append(f"the checkpoint has {fewer} times fewer elements at mode {modes[0]}")
        if fewer in _PACKED:
            lines.append(f"it may be quantised: {_PACKED[fewer]}. Its element type and its config decide this")
    said = f"the parameter is {_written(held)} in the checkpoint, but {_written(wanted)} in the model"
    return _reading(match, "PyTorch", "parameter", said, lines)


def _storage(match: re.Match[str]) -> Reading | None:
    """A view that ends outside its storage."""
    sizes, strides = _sizes(match[1]), _sizes(match[2])
    if len(sizes) != len(strides) or min(sizes) < 1:
        return None
    offset, item, held = (int(match[name]) for name in ("offset", "item", "held"))
    last = offset + sum((n - 1) * d for n, d in zip(sizes, strides, strict=True))
    if (last + 1) * item <= held:
        return None
    shown = f"({','.join(map(str, sizes))}):({','.join(map(str, strides))})"
    said = f"the last element is {last}, and ends at byte {(last + 1) * item}; the storage has {held} bytes"
    lines = [f"as CuTe writes it: {shown}, cosize {last - offset + 1}, from element {offset} on"]
    return _reading(match, "PyTorch", "storage", said, lines)


def _expected(text: str) -> list[Reading]:
    """Read the sizes and strides of a tensor that differ from those that code of torch.compile was made for."""
    found: list[Reading] = []
    at = 0
    while len(found) < 8 and (match := _EXPECTED.search(text, at)) is not None:
        parts, at = [match], match.end()
        while len(parts) < 12 and (more := _ALSO.match(text, at)) is not None:
            parts.append(more)
            at = more.end()
        modes = [tuple(map(int, part.groups())) for part in parts]
        said = [
            f"mode {mode} has "
            + " and ".join(
                f"{name} {have}, not {want}" for name, have, want in (("size", n, m), ("stride", d, e)) if have != want
            )
            for n, m, d, e, mode in modes
            if (n, d) != (m, e)
        ]
        if not said:
            continue
        lines = ["the left number of each pair is the tensor's, the right one is the number that the code was made for"]
        asserted = some(_ASSERTED.finditer(text[: match.start()]))[-1:]
        if asserted:
            sizes, strides = (asserted[0][i].replace(" ", "") for i in (1, 2))
            lines.append(f"the code was made for ({sizes}):({strides}), as CuTe writes it")
        lines.append(
            "a custom operator has this error if its fake (meta) function returns another shape or other strides than "
            "the operator itself; torch.library.opcheck compares them"
        )
        broken = [Diagnostic("strides of compiled code", text=line) for line in said]
        found.append(Reading("An error from torch.compile", match.start(), at, lines, broken))
    return found


_READERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Reading | None]], ...]] = (
    (_RESHAPE, _reshape),
    (_BROADCAST, _broadcast),
    (_EXPAND, _expand),
    (_CHUNKS, _chunks),
    (_CHECKPOINT, _checkpoint),
    (_STORAGE, _storage),
)
