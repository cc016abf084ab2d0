"""The text for layouts, tensors, basis elements, swizzles and tensor maps.

Of a layout it says what each stride means and why it has the value that it has, and which logical coordinate gives
which element; of a tensor, what its iterator is too: `explain(tensor)` of a coordinate tensor answers what its printed
form leaves open. Of more than `MOST_MODES` modes the first ones are explained and the others counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from cute_py.arith_tuple.arith_tuple import ArithTuple, ScaledBasis
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.arith_tuple.ratio import Ratio
from cute_py.errors import CuteError, shortened
from cute_py.layout.analysis import footprint, is_injective
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import rank, size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int
from cute_py.layout.recast import SmemPtrFlag, as_position_independent_swizzle_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.tensor.tensor import Tensor

Path = tuple[int, ...]

MOST_MODES: Final = 32
"""Modes that are explained one by one. A coordinate of more is longer than a line, and each line would have one."""


class _Mode(NamedTuple):
    """A leaf of a layout: where it is, its size, and its stride; `axis` None: a step is an integer's."""

    path: Path
    size: Any
    axis: Path | None
    step: Any

    @property
    def stride(self) -> str:
        return str(self.step) + "".join([f"@{i}" for i in reversed(self.axis or ())])


def _flat_modes(layout: Layout) -> list[_Mode]:
    def walk(shape: Any, stride: Any, path: Path) -> Iterator[_Mode]:
        if isinstance(shape, tuple):
            for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
                yield from walk(s, d, (*path, i))
        elif getattr(stride, "modes", None):
            yield _Mode(path, shape, tuple(stride.modes), stride.value)
        else:
            yield _Mode(path, shape, None, stride)

    return list(walk(layout.shape, layout.stride, ()))


def is_coordinates(thing: Any) -> bool:
    """A tensor of implicit coordinates."""
    return isinstance(thing, Tensor) and isinstance(thing.engine, ArithTupleIterator)


def is_counting(thing: Any) -> bool:
    """A tensor of implicit integers."""
    return isinstance(thing, Tensor) and isinstance(thing.engine, CountingIterator)


def is_basis_layout(thing: Any) -> bool:
    """A layout of which some stride is a basis element."""
    return isinstance(thing, Layout) and any(mode.axis is not None for mode in _flat_modes(thing))


def _dotted(path: Path) -> str:
    return ".".join(map(str, path)) if path else "0"


def _plain(value: Any) -> str:
    """A number without the underscore of static ones."""
    if isinstance(value, (tuple, ArithTuple)):
        return "(" + ",".join(map(_plain, value)) + ")"
    if isinstance(value, Int):
        return str(int(value))
    if isinstance(value, Ratio):
        return f"{value.numerator}/{value.denominator}"
    return str(value)


def _known(*numbers: Any) -> bool:
    return all(isinstance(n, int) for n in numbers)


def _is(value: Any, number: int) -> bool:
    """A known number, and this one."""
    return isinstance(value, int) and value == number


def _meaning(mode: _Mode, scalar: str) -> str:
    """What one step along a mode does."""
    step = mode.step
    if _is(mode.size, 1):
        return "a single index, so it never moves"
    if _is(step, 0):
        return "a step moves nowhere: every index gives the same element"
    where = scalar if mode.axis is None else f"coordinate mode {_dotted(mode.axis)}"
    if isinstance(step, Ratio):
        return f"{step.denominator} steps add {step.numerator} to {where} (between them, rounded toward zero)"
    if _known(step) and step < 0:
        return f"a step takes {-int(step)} from {where}"
    return f"a step adds {_plain(step)} to {where}"


def _reason(mode: _Mode, flat: list[_Mode]) -> str:
    """Why the step is as large as it is: what the finer modes of the same axis cover."""
    if not _known(mode.size, mode.step) or mode.size == 1 or mode.step == 0:
        return ""
    same_axis = [m for m in flat if m.axis == mode.axis and _known(m.size, m.step) and m.size > 1]
    finer = [m for m in same_axis if 0 < abs(m.step) < abs(mode.step)]
    width = abs(int(mode.step))
    if not finer:
        return "" if width == 1 else f"only every one in {width} is reached, none of those between"
    covered = 1 + sum((int(m.size) - 1) * abs(int(m.step)) for m in finer)
    names = " and ".join([f"mode {_dotted(m.path)} ({_plain(m.size)} x {m.stride})" for m in finer])
    there = f"{names} {'covers' if len(finer) == 1 else 'cover'} {covered} there, so"
    if covered == width:
        return f"{there} a step goes to the next block of {width}"
    if covered < width:
        return f"{there} a step leaves {width - covered} out"
    return f"{there} blocks overlap by {covered - width}"


def _mode_lines(layout: Layout, scalar: str) -> list[str]:
    """One mode a line: size, stride, what a step does; then why it is as large as it is."""
    flat = _flat_modes(layout)
    explained = flat[:MOST_MODES]
    width = max((len(_dotted(mode.path)) for mode in explained), default=0)
    lines = []
    for mode in explained:
        name = f"  mode {_dotted(mode.path):<{width}} : "
        lines.append(f"{name}size {_plain(mode.size)}, stride {mode.stride}: {_meaning(mode, scalar)}")
        reason = _reason(mode, flat)
        if reason:
            lines.append(" " * len(name) + reason)
    if len(flat) > len(explained):
        lines.append(f"  ... and {len(flat) - len(explained)} modes more")
    return lines


def _coordinate(shape: Any, chosen: dict[Path, int], path: Path = ()) -> Any:
    """The natural coordinate with given indices at some leaves, 0 elsewhere."""
    if isinstance(shape, tuple):
        return tuple([_coordinate(s, chosen, (*path, i)) for i, s in enumerate(shape)])
    return chosen.get(path, 0)


def _sample_lines(layout: Layout, element: Callable[[Any], Any]) -> list[str]:
    """The first element, one step along each mode that moves, the last element."""
    flat = _flat_modes(layout)
    if len(flat) > MOST_MODES:
        return [f"  left out: a coordinate has more than {MOST_MODES} numbers"]
    chosen: dict[str, dict[Path, int]] = {"first": {}}
    chosen |= {f"one step in mode {_dotted(m.path)}": {m.path: 1} for m in flat if not _known(m.size) or m.size > 1}
    if flat and all(_known(mode.size) and mode.size > 0 for mode in flat):
        chosen["last"] = {mode.path: int(mode.size) - 1 for mode in flat}
    samples = {name: _coordinate(layout.shape, indices) for name, indices in chosen.items()}
    width, places = max(map(len, samples)), max(len(_plain(c)) for c in samples.values())
    return [f"  {name:<{width}} : {_plain(c):<{places}} -> {_plain(element(c))}" for name, c in samples.items()]


def _formula(layout: Layout, start: Any) -> list[str]:
    """One line for each codomain axis: where it starts and what each mode adds."""
    axes: dict[Path, list[str]] = {}
    for mode in _flat_modes(layout):
        if mode.axis is not None and not _is(mode.size, 1):
            factor = "" if _is(mode.step, 1) else f"{_plain(mode.step)} * "
            axes.setdefault(mode.axis, []).append(f"{factor}c{_dotted(mode.path)}")
    lines = []
    for axis, value in _coordinate_leaves(start):
        terms = axes.get(axis, [])
        begin = [] if terms and _is(value, 0) else [_plain(value)]
        lines.append(f"  coordinate mode {_dotted(axis)} = {' + '.join([*begin, *terms])}")
    return lines


def _coordinate_leaves(coordinate: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """(where, number) of every leaf of a coordinate."""
    if isinstance(coordinate, ArithTuple):
        return [leaf for i, x in enumerate(coordinate) for leaf in _coordinate_leaves(x, (*path, i))]
    return [(path, coordinate)]


def _about(
    head: list[str],
    layout: Layout,
    element: Callable[[Any], Any],
    kind: str,
    scalar: str,
    facts: list[str] | None = None,
) -> list[str]:
    """What every layout has: its strides and their reasons, then elements of some coordinates.

    Args:
        head: lines that say what it is; facts: lines on the layout as a whole.
        element: coordinate -> what it gives, which the text calls `kind`; scalar: to what an integer step is added.
    """
    lines = [*head, "", f"The strides {str(layout).split(':', 1)[1]}", *_mode_lines(layout, scalar)]
    lines += ["", "As a whole", *facts] if facts else []
    return [*lines, "", f"Logical coordinate -> {kind}", *_sample_lines(layout, element)]


_INTEGERS = "A tensor of implicit integers. Nothing is stored: an element is computed from where it is."


def coordinates(tensor: Any) -> str:
    """A tensor of coordinates: its iterator, its strides and why, samples, a formula for each coordinate."""
    layout, start = domain_of(tensor.layout), tensor.engine.coord
    numbers = _coordinate_leaves(start)
    out = [str(tensor), ""]
    if isinstance(start, ArithTuple):
        modes = f"{len(numbers)} mode" if len(numbers) == 1 else f"{len(numbers)} modes"
        out.append(f"A tensor of coordinates of {modes}. Nothing is stored: an element is computed from where it is.")
        out.append("To a TMA instruction such an element says where the box lies; its mode 0 is the contiguous one.")
    else:
        out.append(_INTEGERS)
    out += ["", f"The iterator {tensor.engine}"]
    out.append(f"  stands at {_plain(start)}; an element is this plus the value of the layout at its coordinate.")
    if not all(_is(number, 0) for _, number in numbers):
        out.append("  It is not the origin: the tensor begins there, as a slice or a tile of a larger one does.")
    out.append("  Numbers with an underscore are known at compile time, the others at run time.")
    out = _about([*out, *_through(tensor.layout)], layout, tensor, "element", "the integer")
    few = len(_flat_modes(layout)) <= MOST_MODES
    if isinstance(start, ArithTuple) and not isinstance(tensor.layout, ComposedLayout) and few:
        out += ["", "With cI the index in mode I", *_formula(layout, tensor(_coordinate(layout.shape, {})))]
    return "\n".join(out)


def _through(layout: Any) -> list[str]:
    """What is between the strides and the iterator, if anything is."""
    if not isinstance(layout, ComposedLayout):
        return []
    return ["", f"{layout.outer} comes after the strides: it gets {layout.offset} + their sum, and gives the offset."]


def counting(tensor: Any) -> str:
    """A tensor of implicit integers."""
    engine = tensor.engine
    head = [str(tensor), "", _INTEGERS, "", f"The iterator {engine}"]
    head += [f"  counts from {engine.value} on, in {engine.dtype}.", *_through(tensor.layout)]
    return "\n".join(_about(head, domain_of(tensor.layout), tensor, "element", "the integer"))


def any_layout(layout: Any) -> str:
    """A layout of integers: strides and why, what it covers, samples; or one whose values are coordinates."""
    if is_basis_layout(layout):
        head = [str(layout), "", "A layout whose values are coordinates: its strides are basis elements, `value@mode`."]
        return "\n".join(_about(head, layout, layout, "value", "the integer"))
    head = [str(layout), "", "A layout: it turns a coordinate into an offset, the sum of index times stride."]
    return "\n".join(_about(head, layout, layout, "offset", "the offset", facts_of_layout(layout)))


def stored(tensor: Any) -> str:
    """A tensor of stored elements: where it is, and its layout."""
    place = f"Elements of {tensor.element_type}, stored at {tensor.engine}."
    return "\n".join([str(tensor), "", place, "", any_layout(domain_of(tensor.layout))])


def facts_of_layout(layout: Layout) -> list[str]:
    """Size and cosize of a layout of integers, and whether elements share offsets or leave gaps."""
    try:
        where = footprint(layout)
        one_to_one = is_injective(layout)
    except CuteError:
        return []  # Symbols and run-time values that numpy can't count.
    count = int(size(layout))
    gaps = where.highest - where.lowest + 1 - where.distinct
    return [
        f"  {count} elements, {int(rank(layout))} mode(s), offsets {where.lowest} to {where.highest}",
        "  every element has an offset of its own"
        if one_to_one
        else f"  {count} elements share {where.distinct} offsets",
        f"  {gaps} offsets between them are not used" if gaps else "  no offset between them is left out",
    ]


def basis_words(element: ScaledBasis) -> str:
    """What a basis element is, and what it does as a stride.

    >>> from cute_py.arith_tuple.arith_tuple import E
    >>> print(basis_words(8 * E(1)).splitlines()[2])
    A basis element: 8 in mode 1 of a coordinate, 0 in every other mode.
    """
    where = " of ".join(f"mode {mode}" for mode in reversed(element.modes)) or "the only mode"
    known = "known at compile time" if isinstance(element.value, Int) else "known at run time"
    step = shortened(str(element.as_arith_tuple()))
    nested = ["Modes within modes are written from the inside out."] if len(element.modes) > 1 else []
    return "\n".join(
        [
            str(element),
            "",
            f"A basis element: {element.value} in {where} of a coordinate, 0 in every other mode.",
            f"Before the first @ stands how far ({known}), after it where, modes counted from 0.",
            *nested,
            "",
            "As a stride",
            f"  one step along its mode adds {step} to the coordinate. A layout with such strides",
            "  gives coordinates in place of offsets, which is what a TMA instruction is given.",
        ]
    )


def swizzle_words(swizzle: Swizzle) -> str:
    """Which bits a swizzle combines, and the bytes of the engine's mode with these numbers."""
    bits, base, shift = swizzle.bits, swizzle.base, swizzle.shift
    if not bits:
        return f"{swizzle}\n\nThe identity: no bit is changed."
    source, target = (base + shift, base) if shift > 0 else (base, base - shift)
    moved = f"{1 << bits} of them are permuted within {1 << (base + bits)}"
    if shift < 0:
        moved = f"and move by multiples of {1 << target}"
    out = [
        f"{swizzle}",
        "",
        f"An offset keeps all bits but {_range(target, bits)}, which are combined by XOR with {_range(source, bits)}.",
        f"  units of {1 << base} stay whole, {moved},",
        f"  and the pattern repeats after {1 << (base + abs(shift) + bits)}. It is its own inverse.",
    ]
    if base == 4 and shift == 3 and bits <= 3:
        out.append(f"  On byte addresses it is the {16 << bits}B swizzle of TMA, wgmma and tcgen05.")
    return "\n".join(out)


def _range(low: int, bits: int) -> str:
    return f"bit {low}" if bits == 1 else f"bits {low} to {low + bits - 1}"


def composed_words(layout: ComposedLayout) -> str:
    """The order in which a composed layout computes an offset."""
    out = [
        str(layout),
        "",
        "A composition: a coordinate goes from right to left.",
        f"  {layout.inner} gives an offset,",
    ]
    offset = layout.offset
    if isinstance(offset, SmemPtrFlag):
        elements = as_position_independent_swizzle_layout(layout)
        out += [
            f"  of elements of {offset.bits} bits from an address that is not known yet,",
            f"  and {layout.outer} permutes the bits of the byte address.",
            f"  Counted in elements it is {elements}; offsets() and pictures show that function.",
            f"  A call applies {layout.outer} to element offsets as it stands, as in C++.",
        ]
    else:
        out.append(f"  {offset} is added, and {layout.outer} is applied to the sum, in elements.")
    if isinstance(layout.outer, Swizzle):
        out += ["", swizzle_words(layout.outer)]
    return "\n".join(out)
