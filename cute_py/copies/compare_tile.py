"""Compare a user kernel's dump of one tile of shared memory with the bytes that the copy engine writes.

    dump = expected?  ->  equal
    otherwise the first difference: coordinate, byte, bank; and one of these causes, if it explains the dump

        other swizzle, other major, other box order      the same elements at other offsets
        shifted by one tile, exchanged coordinates       elements of another tile
        stale phase                                      some or all elements come from an earlier tile
        not yet arrived                                  bytes that no load has written

A cause is reported only if it reproduces every byte of the dump.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cute_py.argument_checks import expect, expect_having, expect_integer
from cute_py.copies.copy import execute
from cute_py.copies.emulated_copy import emulated_tile
from cute_py.diagnostics import Scope
from cute_py.errors import CuteError, InvalidValueError, counted, unless_refused
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, domain_of
from cute_py.layout.leaf import Int
from cute_py.layout.offsets import offsets
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves
from cute_py.tma.atom.smem_layout import SPANS, make_smem_layout
from cute_py.tma.atom.tiles import Instructions, instructions, known
from cute_py.tma.descriptor.data_types import TensorMapSwizzle
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.emulator.memory import Bytes, Integers, as_bytes

if TYPE_CHECKING:
    import numpy as np

    from cute_py.tensor.array_views import ArrayLike
    from cute_py.tma.atom.atom import TmaAtom
    from cute_py.tma.emulator.trace import Difference
else:
    from cute_py.optional_packages import numpy as np

MOST_EARLIER: Final = 64
"""Number of earlier tiles that are tried as the contents of a stale stage."""


@dataclass(frozen=True, slots=True)
class TileComparison:
    """Result of comparing a dump of a tile with its layout.

    Attributes:
        equal: whether all bytes that the loads write are as expected.
        difference: the first byte that differs, with the element that is expected there; None if equal.
        cause: the first cause that explains this dump: 'other swizzle', 'other major', 'other box order', 'shifted by
            one tile', 'exchanged coordinates', 'stale phase' or 'not yet arrived'; empty if equal or unknown.
        detail: a sentence that describes the cause with its values.
        scope: the bytes that were compared and the causes that were tried. It also lists the bytes that no load writes,
            and the causes that were not tried, with the reason.

    >>> import numpy
    >>> import cute_py as cute
    >>> x = numpy.arange(64 * 64, dtype="float32").reshape(64, 64)
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, "(_32,_32):(_32,_1)")
    >>> found = cute.tma.compare_tile(atom, x, (0, 1), cute.tma.execute(atom, x, (1, 0)).smem)
    >>> found.equal, found.cause
    (False, 'exchanged coordinates')
    """

    equal: bool
    difference: Difference | None = None
    cause: str = ""
    detail: str = ""
    scope: Scope = field(default_factory=Scope, repr=False, compare=False)

    def __post_init__(self) -> None:
        expect(self.equal, bool, "equal")
        if self.difference is not None:
            expect_having(self.difference, ("byte",), "the difference of two tiles")
        for text in (self.cause, self.detail):
            expect(text, str, "the cause of a difference, and its detail")
        expect(self.scope, Scope, "scope")

    def __str__(self) -> str:
        if self.equal:
            return f"equal in every byte that the loads write\n{self.scope}"
        why = f"{self.cause}: {self.detail}" if self.cause else "no known cause gives these bytes"
        return f"{self.difference}\n  cause : {why}\n{self.scope}"


@dataclass(frozen=True, slots=True, eq=False)  # arrays have an elementwise ==
class _Tile:
    """The dump and the expected bytes; `written` marks the bytes that the loads write."""

    atom: TmaAtom
    source: ArrayLike
    work: Instructions
    number: int
    expected: Bytes
    found: Bytes
    written: Bytes
    untried: list[str] = field(default_factory=list)
    """Causes that can't be tried on this tile, or only on a part of it, with the reason."""

    def matches(self, candidate: Bytes) -> bool:
        """Whether the dump equals this candidate and the candidate differs from the expected bytes."""
        where = self.written != 0
        same = np.array_equal(candidate[where], self.found[where])
        return same and not np.array_equal(candidate[where], self.expected[where])

    def bytes_of(self, number: int) -> Bytes:
        return execute(self.atom, self.source, number).smem

    @property
    def linear(self) -> Bytes:
        """The expected bytes without the swizzle."""
        return self.expected[_swizzled(len(self.expected), self.atom.swizzle.bits)]


def _swizzled(count: int, bits: int) -> Integers:
    """Map each byte offset to its offset after the swizzle of 16 << bits bytes. The map is its own inverse."""
    place = np.arange(count, dtype=np.int64)
    return place ^ ((place >> 7 & (1 << bits) - 1) << 4)


def compare_tile(
    atom: TmaAtom, source: ArrayLike, coord: Tree, dump: Bytes | bytes, *, stages: int | None = None
) -> TileComparison:
    """Compare a dump of one stage of shared memory with the bytes that the engine writes.

    Args:
        atom: the atom of a load; source: the array in global memory.
        coord: the tile, as an index or a coordinate in the tile modes.
        dump: uint8 array of the bytes from the start of the stage, at least as many as `execute` returns.
        stages: the number of stages of the ring, if there is one. A stage that still holds tile `coord - stages` is
            stale. Without `stages`, a complete neighbouring tile counts as shifted by one, and any other complete
            earlier tile as stale.
    Raises:
        InvalidValueError: the dump has too few bytes, or the tile does not exist. InvalidTypeError: an argument is not
            an atom or not bytes.

    >>> import numpy as np
    >>> x = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.tma.make_smem_layout("K", "128B", "uint16", (32, 64)))
    >>> dump = cute.tma.execute(atom, x, (0, 0)).smem
    >>> print(compare_tile(atom, x, (1, 0), dump).cause)
    shifted by one tile
    """
    expect_having(atom, ("gbasis", "plan", "swizzle"), "a TMA atom")
    found = as_bytes(np.frombuffer(dump, np.uint8) if isinstance(dump, bytes) else dump, "dump", writable=False)
    first, second = (execute(atom, source, coord, poison=poison) for poison in (0, 255))
    work = instructions(atom)
    expected, written = first.smem, (first.smem == second.smem).astype(np.uint8)
    size = len(found)
    if size < len(expected):
        raise InvalidValueError(f"the dump has {size} bytes; must have at least {len(expected)}, the size of the tile")
    if stages is not None:
        stages = expect_integer(stages, "stages", 1)
    found = np.where(written != 0, found[: len(expected)], expected)
    from cute_py.tma.emulator.trace import Trace  # only programs of copies need this module

    difference = Trace(atom.descriptor, first.coords, first.smem_offsets).first_difference(found, expected)
    compared = int(written.sum())
    judged, left = [counted(compared, "byte")], []
    if compared < len(expected):
        left.append(f"{counted(len(expected) - compared, 'byte')} of the tile that no load writes")
    if size > len(expected):
        left.append(f"{counted(size - len(expected), 'byte')} of the dump after the tile")
    if difference is None:
        return TileComparison(True, scope=Scope(tuple(judged), tuple(left)))
    index = Layout(known(work.tile_shape))(coord) if isinstance(coord, tuple) else coord
    number = expect_integer(index, "the index of a tile")
    tile = _Tile(atom, source, work, number, expected, found, written)
    cause, detail, tried = _find_cause(tile, stages)
    judged.append(f"{counted(len(tried), 'cause')} ({'; '.join(tried)})")
    behind = [name for name, _ in _CAUSES if name not in tried]
    if behind:
        left.append(f"{counted(len(behind), 'cause')}, because an earlier cause explains the dump: {', '.join(behind)}")
    return TileComparison(False, difference, cause, detail, Scope(tuple(judged), (*left, *tile.untried)))


def _find_cause(tile: _Tile, stages: int | None) -> tuple[str, str, list[str]]:
    """Return (first cause that explains the dump, its detail, causes that were tried); the first two are empty if no
    cause explains it."""
    if stages is not None and tile.number >= stages and tile.matches(tile.bytes_of(tile.number - stages)):
        before = tile.number - stages
        detail = f"all bytes belong to tile {before}, which the stage held {counted(stages, 'stage')} earlier"
        return "stale phase", detail, ["stale phase"]
    tried = []
    for name, find in _CAUSES:
        tried.append(name)
        detail = next(find(tile), "")
        if detail:
            return name, detail, tried
    return "", "", tried


def _other_swizzle(tile: _Tile) -> Iterator[str]:
    """Try the same rows with the chunks of 16 bytes permuted by another pattern."""
    linear, own = tile.linear, tile.atom.swizzle_row.name
    for row in SPANS:
        candidate = linear[_swizzled(len(linear), row.bits)]
        if row.bits != tile.atom.swizzle.bits and (tile.matches(candidate) or _repacked(tile, row.bits)):
            yield f"the dump has swizzle {row.name}, but the map has {own}"


def _repacked(tile: _Tile, bits: int) -> bool:
    """Whether a tensor map with another swizzle, and possibly with rows closer together, produces this dump."""
    try:
        other = replace(
            tile.atom,
            request=replace(tile.atom.request, swizzle=TensorMapSwizzle(bits)),
            swizzle=Swizzle(bits, 4, 3),
            smem_layout=_with_swizzle(tile.atom.smem_layout, bits),
        )
        candidate = execute(other, tile.source, tile.number).smem
    except CuteError:
        return False
    return len(candidate) == len(tile.expected) and tile.matches(candidate)


def _with_swizzle(layout: Layout | ComposedLayout, bits: int) -> Layout | ComposedLayout:
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(Swizzle(bits, 4, 3), layout.offset, layout.inner)
    return layout


def _values(tile: _Tile) -> tuple[Bytes, tuple[int, ...], int] | None:
    """Return (elements of the tile as rows of bytes, in logical order; shape of the tile; bytes per element)."""
    width = tile.atom.dtype.bits // 8
    plain = domain_of(tile.atom.tile)
    if not width or tile.atom.dtype.bits % 8 or len(tile.linear) % width:
        return None
    shape = tuple(int(n) for n in product_each(plain.shape))
    cells = tile.linear.reshape(-1, width)
    places = np.asarray(offsets(plain)).reshape(-1, order="F") if len(shape) > 1 else np.asarray(offsets(plain))
    if places.min() < 0 or places.max() >= len(cells):
        return None
    return cells[places], shape, width


def _other_major(tile: _Tile) -> Iterator[str]:
    """Try layouts where another mode is contiguous: compact or canonical layouts, with any swizzle."""
    held = _values(tile)
    if held is None:
        tile.untried.append("other major: an element does not have whole bytes of its own")
        return
    values, shape, width = held
    sizes = tuple(Int(n) for n in shape)
    layouts = [(Layout(sizes, LayoutLeft), "mode 0"), (Layout(sizes, LayoutRight), f"mode {len(shape) - 1}")]
    for major in ("K", "MN"):
        for row in SPANS:
            canonical = unless_refused(make_smem_layout, major, row.name, tile.atom.dtype, sizes)
            if canonical is not None:
                layouts.append((domain_of(canonical), f"{'mode 1' if major == 'K' else 'mode 0'} ({major}-major)"))
    for layout, name in layouts:
        places = np.asarray(offsets(layout)).reshape(-1, order="F")
        cells = np.zeros((len(tile.expected) // width, width), np.uint8)
        if places.max() >= len(cells):
            continue
        cells[places] = values
        for bits in range(4):
            if tile.matches(cells.reshape(-1)[_swizzled(len(tile.expected), bits)]):
                yield f"{name} is contiguous in the dump, but another mode in {tile.atom.tile}"


def _chunks(tile: _Tile, memory: Bytes) -> list[bytes]:
    """Return the chunks that each instruction wrote, as if there were no swizzle."""
    linear = memory[_swizzled(len(memory), tile.atom.swizzle.bits)]
    starts = [int(n) for n in tile.work.smem_offsets]
    return [linear[at : at + tile.atom.bytes_per_instruction].tobytes() for at in starts]


def _other_order(tile: _Tile) -> Iterator[str]:
    """Try the boxes of the tile in a different order, or the rows of a box with two of its modes exchanged."""
    want, have = _chunks(tile, tile.expected), _chunks(tile, tile.found)
    if len(want) > 1 and len(set(want)) == len(want) and sorted(want) == sorted(have) and want != have:
        order = [want.index(chunk) for chunk in have]
        yield f"the boxes are in the order {', '.join(map(str, order[:16]))}"
    box, width = tile.atom.plan.box, tile.atom.internal_dtype.bits // 8
    if len(box) < 3 or not width or np.prod(box) * width != len(tile.expected):
        return
    outer = tile.linear.reshape(*box[::-1], width)
    for a in range(len(box) - 1):
        for b in range(a + 1, len(box) - 1):
            moved = np.ascontiguousarray(np.swapaxes(outer, a, b)).reshape(-1)
            if tile.matches(moved[_swizzled(len(moved), tile.atom.swizzle.bits)]):
                yield f"modes {len(box) - 1 - a} and {len(box) - 1 - b} of the box are swapped"


def _shifted(tile: _Tile) -> Iterator[str]:
    for number, mode, step in _neighbours(tile):
        if tile.matches(tile.bytes_of(number)):
            yield f"the dump is tile {number}, {step:+d} along tile mode {mode}"


def _neighbours(tile: _Tile) -> Iterator[tuple[int, int, int]]:
    """Return (number, mode, step) of each tile next to this one."""
    shape = [expect_integer(n, "tiles") for n in leaves(known(tile.work.tile_shape))]
    stride = 1
    for mode, size in enumerate(shape):
        index = tile.number // stride % size
        for step in (-1, 1):
            if 0 <= index + step < size:
                yield tile.number + step * stride, mode, step
        stride *= size


def _exchanged(tile: _Tile) -> Iterator[str]:
    """Try boxes whose coordinates are in the order of the array's modes, outermost first."""
    first = tile.number * tile.work.per_tile
    coords = tile.work.coords[first : first + tile.work.per_tile]
    made = unless_refused(emulated_tile, tile.atom, tile.source, coords[:, ::-1], tile.work, 0)
    # If all bytes are zero, it is also possible that no load has written the stage.
    if made is None:
        tile.untried.append("exchanged coordinates: a load there traps")
    if made is not None and made.smem.any() and tile.matches(made.smem):
        reversed_, meant = (", ".join(map(str, row)) for row in (coords[0, ::-1].tolist(), coords[0].tolist()))
        yield f"the dump was loaded at ({reversed_}); TMA takes the innermost coordinate first: ({meant})"


def _stale(tile: _Tile) -> Iterator[str]:
    """Try a complete earlier tile, or the expected tile with some units of an earlier tile."""
    units = _units(tile)
    beside = {number for number, _, _ in _neighbours(tile)}
    for number in range(tile.number - 1, max(-1, tile.number - 1 - MOST_EARLIER), -1):
        old = tile.bytes_of(number)
        from_old = [np.array_equal(old[unit], tile.found[unit]) for unit in units]
        as_new = [np.array_equal(tile.expected[unit], tile.found[unit]) for unit in units]
        if not all(a or b for a, b in zip(from_old, as_new, strict=True)):
            continue
        stale = sum(not new for new in as_new)
        if stale < len(units) or number not in beside:
            yield (
                f"{stale} of {len(units)} units of {STORE_UNIT} bytes belong to tile {number}, from an earlier phase"
            )
    if tile.number > MOST_EARLIER:
        tile.untried.append(f"stale phase: only the {MOST_EARLIER} tiles before this one were tried")


def _units(tile: _Tile) -> list[Integers]:
    """Return the offsets of the written bytes in each 16-byte unit."""
    places = np.flatnonzero(tile.written)
    return np.split(places, np.flatnonzero(np.diff(places // STORE_UNIT)) + 1)


def _not_arrived(tile: _Tile) -> Iterator[str]:
    """Try the expected tile with some units of one repeated byte, as in memory that was filled but not written."""
    units = _units(tile)
    wrong = [unit for unit in units if not np.array_equal(tile.expected[unit], tile.found[unit])]
    fill = int(tile.found[wrong[0][0]])
    if all((tile.found[unit] == fill).all() for unit in wrong) and sum(map(len, wrong)) >= STORE_UNIT:
        yield f"{len(wrong)} of {len(units)} units of {STORE_UNIT} bytes contain only 0x{fill:02x}"


_CAUSES: Final = (
    ("other swizzle", _other_swizzle),
    ("other major", _other_major),
    ("other box order", _other_order),
    ("shifted by one tile", _shifted),
    ("exchanged coordinates", _exchanged),
    ("stale phase", _stale),
    ("not yet arrived", _not_arrived),
)
"""Causes, in the order of the attempts; each function yields the details if the cause explains the dump."""
