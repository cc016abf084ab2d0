"""Explain layouts, tensors, basis elements, swizzles and tensor maps.

The explanation of a layout has each stride with the reason for its value, and sample coordinates with their elements.
The explanation of a tensor also describes its iterator, which the printed form of a coordinate tensor does not explain.
If a layout has more than `MOST_MODES` modes, only the first ones are explained, and the others are counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cute_py.argument_checks import is_integer
from cute_py.arith_tuple import text as shown
from cute_py.arith_tuple.arith_tuple import ArithTuple, ScaledBasis
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.arith_tuple.ratio import Ratio
from cute_py.errors import CuteError, counted, shortened
from cute_py.explanation.definitions import Thing
from cute_py.layout.analysis import footprint, is_injective
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import rank, size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int, is_symbolic
from cute_py.layout.recast import SmemPtrFlag, as_position_independent_swizzle_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import is_underscore, leaves
from cute_py.tensor.tensor import Tensor

if TYPE_CHECKING:
    from sympy import Expr

    from cute_py.notation.parse import Parsed

Path = tuple[int, ...]

MOST_MODES: Final = 32
"""Maximum number of modes that are explained one by one. A coordinate with more modes is longer than a line, and every
line would have one."""


Number: TypeAlias = "int | Int | Ratio | Expr"
"""A size or a step, static, known at run time, or symbolic."""
Coordinate: TypeAlias = "Number | ArithTuple | tuple[Coordinate, ...]"


class _Mode(NamedTuple):
    """A leaf of a layout: its path, its size, and its stride. If `axis` is None, the stride is an integer."""

    path: Path
    size: Number
    axis: Path | None
    step: Number

    @property
    def stride(self) -> str:
        return str(self.step) + "".join([f"@{i}" for i in reversed(self.axis or ())])


def _flat_modes(layout: Layout) -> list[_Mode]:
    def walk(shape: Tree, stride: Thing, path: Path) -> Iterator[_Mode]:
        if isinstance(shape, tuple):
            for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
                yield from walk(s, d, (*path, i))
        elif getattr(stride, "modes", None):
            yield _Mode(path, shape, tuple(stride.modes), stride.value)
        else:
            yield _Mode(path, shape, None, stride)

    return list(walk(layout.shape, layout.stride, ()))


def is_coordinates(thing: Thing) -> bool:
    """Whether an object is a tensor of implicit coordinates."""
    return isinstance(thing, Tensor) and isinstance(thing.engine, ArithTupleIterator)


def is_counting(thing: Thing) -> bool:
    """Whether an object is a tensor of implicit integers."""
    return isinstance(thing, Tensor) and isinstance(thing.engine, CountingIterator)


def is_basis_layout(thing: Layout | ComposedLayout) -> bool:
    """Whether a layout has at least one stride that is a basis element."""
    return isinstance(thing, Layout) and any(mode.axis is not None for mode in _flat_modes(thing))


def _dotted(path: Path) -> str:
    return ".".join(map(str, path)) if path else "0"


def _plain(value: Coordinate) -> str:
    """A number or coordinate as text, without the underscores of static numbers."""
    if isinstance(value, (tuple, ArithTuple)):
        return "(" + ",".join(map(_plain, value)) + ")"
    if isinstance(value, Int):
        return str(int(value))
    if isinstance(value, Ratio):
        return f"{value.numerator}/{value.denominator}"
    return str(value)


def _is(value: Number, number: int) -> bool:
    """Whether a value is a known integer equal to `number`."""
    return isinstance(value, int) and value == number


def _meaning(mode: _Mode, scalar: str) -> str:
    """Describe the effect of one step along a mode."""
    step = mode.step
    if _is(mode.size, 1):
        return "a single index, so it never moves"
    if _is(step, 0):
        return "a step moves nowhere: every index gives the same element"
    where = scalar if mode.axis is None else f"coordinate mode {_dotted(mode.axis)}"
    if isinstance(step, Ratio):
        return f"{step.denominator} steps add {step.numerator} to {where} (rounded toward zero in between)"
    if isinstance(step, int) and step < 0:
        return f"a step takes {-int(step)} from {where}"
    return f"a step adds {_plain(step)} to {where}"


def _reason(mode: _Mode, flat: list[_Mode]) -> str:
    """Explain the stride of a mode by the range that the modes with smaller strides on the same axis cover."""
    size, step = mode.size, mode.step
    if not isinstance(size, int) or not isinstance(step, int) or size == 1 or step == 0:
        return ""
    width, finer, covered = abs(int(step)), [], 1
    for m in flat:
        if m.axis != mode.axis or not isinstance(m.size, int) or not isinstance(m.step, int):
            continue
        if m.size > 1 and 0 < abs(m.step) < width:
            finer.append(m)
            covered += (int(m.size) - 1) * abs(int(m.step))
    if not finer:
        return "" if width == 1 else f"only one position in {width} is reached"
    names = " and ".join([f"mode {_dotted(m.path)} ({_plain(m.size)} x {m.stride})" for m in finer])
    there = f"{names} {'covers' if len(finer) == 1 else 'cover'} {covered} there, so"
    if covered == width:
        return f"{there} a step goes to the next block of {width}"
    if covered < width:
        return f"{there} a step skips {width - covered}"
    return f"{there} blocks overlap by {covered - width}"


def _mode_lines(layout: Layout, scalar: str) -> list[str]:
    """One line per mode with its size, its stride and the effect of a step; a second line gives the reason for the
    stride."""
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
        lines.append(f"  ... and {counted(len(flat) - len(explained), 'more mode')}")
    return lines


def _coordinate(shape: Tree, chosen: dict[Path, int], path: Path = ()) -> Coordinate:
    """The natural coordinate with the given indices at some leaves and 0 elsewhere."""
    if isinstance(shape, tuple):
        return tuple([_coordinate(s, chosen, (*path, i)) for i, s in enumerate(shape)])
    return chosen.get(path, 0)


def _sample_lines(layout: Layout, element: Callable[[Coordinate], Coordinate]) -> list[str]:
    """Sample coordinates with their elements: the first one, one step along each mode of size above 1, and the last
    one."""
    flat = _flat_modes(layout)
    if len(flat) > MOST_MODES:
        return [f"  omitted: a coordinate has more than {MOST_MODES} numbers"]
    known = [int(mode.size) for mode in flat if isinstance(mode.size, int)]
    chosen: dict[str, dict[Path, int]] = {"first": {}}
    chosen |= {
        f"one step in mode {_dotted(m.path)}": {m.path: 1} for m in flat if not isinstance(m.size, int) or m.size > 1
    }
    if len(known) == len(flat) and min(known, default=0) > 0:
        chosen["last"] = {mode.path: n - 1 for mode, n in zip(flat, known, strict=True)}
    samples = {name: _coordinate(layout.shape, indices) for name, indices in chosen.items()}
    width, places = max(map(len, samples)), max(len(_plain(c)) for c in samples.values())
    return [f"  {name:<{width}} : {_plain(c):<{places}} -> {_plain(element(c))}" for name, c in samples.items()]


def _formula(layout: Layout, start: Coordinate) -> list[str]:
    """One line for each axis of the codomain: its start, and the term that each mode adds."""
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


def _coordinate_leaves(coordinate: Coordinate, path: Path = ()) -> list[tuple[Path, Number]]:
    """(path, number) of every leaf of a coordinate."""
    if isinstance(coordinate, ArithTuple):
        return [leaf for i, x in enumerate(coordinate) for leaf in _coordinate_leaves(x, (*path, i))]
    return [(path, coordinate)]


def _about(
    head: list[str],
    layout: Layout,
    element: Callable[[Coordinate], Coordinate],
    kind: str,
    scalar: str,
    facts: list[str] | None = None,
) -> list[str]:
    """Describe any layout: its strides and their reasons, then the offsets of some coordinates.

    Args:
        head: lines that describe the kind of object; facts: lines about the whole layout. element: the function from a
            coordinate to its element; kind: the noun for an element; scalar: the noun for the value that an integer
            stride changes.
    """
    lines = [*head, "", f"The strides {str(layout).split(':', 1)[1]}", *_mode_lines(layout, scalar)]
    lines += ["", "In all", *facts] if facts else []
    return [*lines, "", f"Logical coordinate -> {kind}", *_sample_lines(layout, element)]


_PERMUTES = "{} permutes the bits of an element's byte address, after its offset is added."
_COMPUTED = "No element is stored; each is computed from its coordinate."
_INTEGERS = f"A tensor of implicit integers. {_COMPUTED}"


def coordinate_tensor(tensor: Tensor) -> str:
    """Describe a tensor of coordinates: its iterator, its strides with reasons, samples, and a formula for each
    coordinate."""
    layout, start = domain_of(tensor.layout), tensor.engine.coord
    numbers = _coordinate_leaves(start)
    first = tensor(_coordinate(layout.shape, {}))  # strides may reach modes that the iterator lacks
    out = [str(tensor), ""]
    if isinstance(start, ArithTuple):
        out.append(f"A tensor of coordinates of {counted(len(_coordinate_leaves(first)), 'mode')}. {_COMPUTED}")
        out.append("A TMA instruction takes an element as the position of its box; mode 0 is the contiguous one.")
    else:
        out.append(_INTEGERS)
    out += ["", f"The iterator {tensor.engine}"]
    out.append(f"  starts at {_plain(start)}; an element is this plus the value of the layout at its coordinate.")
    if not all(_is(number, 0) for _, number in numbers):
        out.append("  It is not the origin: the tensor is a slice or a tile of a larger one.")
    out.append("  Numbers with an underscore are known at compile time, the others at run time.")
    out = _about([*out, *_through(tensor.layout)], layout, tensor, "element", "the integer")
    few = len(_flat_modes(layout)) <= MOST_MODES
    if isinstance(start, ArithTuple) and not isinstance(tensor.layout, ComposedLayout) and few:
        out += ["", "With cI the index in mode I", *_formula(layout, first)]
    return "\n".join(out)


def _through(layout: Layout | ComposedLayout) -> list[str]:
    """Describe the outer function of a composed layout, such as a swizzle. Empty for a plain layout."""
    if not isinstance(layout, ComposedLayout):
        return []
    if isinstance(layout.offset, SmemPtrFlag):
        elements = as_position_independent_swizzle_layout(layout)
        return [
            "",
            _PERMUTES.format(layout.outer),
            f"Counted in elements it is {elements}, from an aligned address on.",
        ]
    says = f"{layout.outer} is applied after the strides: it takes {layout.offset} + their sum, and returns the offset."
    return ["", says]


def counting(tensor: Tensor) -> str:
    """Describe a tensor of implicit integers."""
    engine = tensor.engine
    head = [str(tensor), "", _INTEGERS, "", f"The iterator {engine}"]
    head += [f"  counts from {engine.value} on, in {engine.dtype}.", *_through(tensor.layout)]
    return "\n".join(_about(head, domain_of(tensor.layout), tensor, "element", "the integer"))


def any_layout(layout: Layout) -> str:
    """Describe a layout of integers: its strides with reasons, its coverage, and samples; or a layout whose values are
    coordinates."""
    if is_basis_layout(layout):
        head = [str(layout), "", "A layout whose values are coordinates: its strides are basis elements, `value@mode`."]
        return "\n".join(_about(head, layout, layout, "value", "the integer"))
    head = [str(layout), "", "A layout: it turns a coordinate into an offset, the sum of index times stride."]
    return "\n".join(_about(head, layout, layout, "offset", "the offset", facts_of_layout(layout)))


def stored(tensor: Tensor, typed: bool = True) -> str:
    """Describe a tensor of stored elements: its address and its layout.

    typed: whether the element type is known, and not only its width.
    """
    layout, swizzle = tensor.layout, getattr(tensor.engine, "swizzle", None)
    element = tensor.element_type if typed else f"{tensor.element_type.bits} bits"
    head = [str(tensor), "", f"Elements of {element}, stored at {tensor.engine}."]
    if isinstance(swizzle, Swizzle):
        head.append(_PERMUTES.format(swizzle))
    if not isinstance(layout, ComposedLayout):
        return "\n".join([*head, "", any_layout(layout)])
    head += _through(layout)
    flagged = isinstance(layout.offset, SmemPtrFlag)
    elements = as_position_independent_swizzle_layout(layout) if flagged else layout
    return "\n".join(_about(head, domain_of(layout), elements, "offset", "the sum", facts_of_layout(layout)))


def facts_of_layout(layout: Layout | ComposedLayout) -> list[str]:
    """Size and cosize of a layout of integers, and whether elements share offsets or leave gaps."""
    try:
        where = footprint(layout)
        one_to_one = is_injective(layout)
    except CuteError:
        return []  # symbols, and run-time values that numpy can't count
    count = int(size(layout))
    gaps = where.highest - where.lowest + 1 - where.distinct
    modes = counted(int(rank(layout)), "mode")
    reached = "each element has a different offset"
    if not one_to_one:
        reached = f"{counted(count, 'element')} share {counted(where.distinct, 'offset')}"
    unused = f"{counted(gaps, 'offset')} between them {'are' if gaps > 1 else 'is'} not used" if gaps else "no gaps"
    head = f"{counted(count, 'element')}, {modes}, offsets {where.lowest} to {where.highest}"
    return [f"  {line}" for line in (head, reached, unused)]


def modes_text(parts: Parsed) -> str:
    """Describe a tuple of sizes, layouts and underscores as a slice, a tiler or a shape; "" for any other object.

    >>> print(modes_text((Int(128), 64)))
    (_128,64)
    <BLANKLINE>
    A tuple of 2 modes: a shape, a tiler, a stride or a coordinate, depending on where it is used.
      as a shape: 8192 elements, compact (_128,64):(_1,_128)
    """
    if not isinstance(parts, tuple):
        return ""
    flat = leaves(parts)
    if not flat or not all(is_underscore(x) or is_symbolic(x) or isinstance(x, (int, Layout)) for x in flat):
        return ""
    head = f"A tuple of {counted(len(parts), 'mode')}"
    kept = sum(map(is_underscore, flat))
    if kept and not any(isinstance(part, Layout) for part in flat):
        lines = [f"{head}: a coordinate that keeps {counted(kept, 'mode')} and fixes the others at an index."]
    elif any(isinstance(part, Layout) for part in flat):
        lines = [f"{head}: a tiler, whose part i divides mode i of a layout."]
        lines += [f"  mode {i} : {_tile_text(part)}, {shown(part)}" for i, part in enumerate(parts)]
    else:
        lines = [f"{head}: a shape, a tiler, a stride or a coordinate, depending on where it is used."]
        with contextlib.suppress(CuteError):  # not a shape, because a size is negative
            lines.append(f"  as a shape: {_elements(size(parts))}, compact {Layout(parts)}")
    return "\n".join([shown(parts), "", *lines])


def _tile_text(part: Parsed) -> str:
    """The part of a mode that an entry of a tiler selects, as text, such as 'whole' or 'a tile of 64 elements'."""
    if is_underscore(part):
        return "whole"
    if isinstance(part, tuple) and any(map(is_underscore, leaves(part))):
        return "tiles of its own modes"
    return f"a tile of {_elements(size(part))}"


def _elements(count: object) -> str:
    """A number of elements as text. The number may be a symbol."""
    return counted(int(count), "element") if is_integer(count) else f"{count} elements"  # type: ignore[call-overload]


def basis_text(element: ScaledBasis) -> str:
    """Describe a basis element, and its effect as a stride.

    >>> from cute_py.arith_tuple.arith_tuple import E
    >>> print(basis_text(8 * E(1)).splitlines()[2])
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
            f"The distance comes before the first @ ({known}), the mode after it, counted from 0.",
            *nested,
            "",
            "As a stride",
            f"  one step along its mode adds {step} to the coordinate. A layout with such strides",
            "  gives coordinates instead of offsets, as a TMA instruction needs them.",
        ]
    )


def swizzle_text(swizzle: Swizzle) -> str:
    """Describe the bits that a swizzle combines, and the swizzle mode of the TMA engine with the same parameters."""
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


def composed_text(layout: ComposedLayout) -> str:
    """Describe the steps that a composed layout takes to compute an offset, in order."""
    out = [
        str(layout),
        "",
        "A composition: a coordinate passes through its functions from right to left.",
        f"  {layout.inner} maps it to an offset,",
    ]
    offset = layout.offset
    if isinstance(offset, SmemPtrFlag):
        elements = as_position_independent_swizzle_layout(layout)
        out += [
            f"  in elements of {offset.bits} bits from an address that is not known yet,",
            f"  and {layout.outer} permutes the bits of the byte address.",
            f"  Counted in elements it is {elements}; offsets() and pictures show that function.",
            f"  A call applies {layout.outer} to element offsets unchanged, as in C++.",
        ]
    else:
        out.append(f"  {offset} is added, and {layout.outer} is applied to the sum, in elements.")
    if isinstance(layout.outer, Swizzle):
        out += ["", swizzle_text(layout.outer)]
    return "\n".join(out)
