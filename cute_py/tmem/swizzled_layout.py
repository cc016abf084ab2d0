"""ComposeLayout: a tile layout in linear memory, followed by the XOR swizzle of shared memory.

    place -> x = place >> per_element;  x ^= (x & mask) >> atom_len;  place = x << per_element | low bits

with `mask` = swizzle_len bits from bit atom_len on. With per_element = log2(elements in 16 bytes) and atom_len = 3
this is, in bytes, always the same function: bits [7, 7 + swizzle_len) are XORed onto bits [4, 4 + swizzle_len), which
CuTe writes Sw<swizzle_len, 4, 3>.

`swizzle_inner=False` is the mirrored function, x ^= (x & low mask) << atom_len; no descriptor of the hardware has it.
Source: semantics of TVM's TIRx ComposeLayout, measured on apache-tvm 0.27.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.errors import LayoutError
from cute_py.tmem.axes import Axis, axis_name
from cute_py.tmem.tile_layout import Region, TileLayout

if TYPE_CHECKING:
    import numpy


MAX_BITS = 20
"""Of each of the three counts, so that places stay within 64 bits; the hardware's are at most 5."""


@dataclass(frozen=True, slots=True)
class ComposeLayout:
    """`tile` in elements on the axis `m`, then the swizzle.

    Args:
        per_element: log2 of the elements in one 16-byte unit.
        swizzle_len: bits that are XORed: 0 none, 1 for rows of 32 bytes, 2 for 64, 3 for 128.
        atom_len: distance between the two groups of bits; 3 in every layout of the hardware.
        tile: the layout in front.
        swizzle_inner: False for the mirrored function.
    Raises:
        LayoutError: a count is negative, the groups of bits overlap, or the tile has other axes than `m`.

    >>> from cute_py.tmem.spec import S
    >>> ComposeLayout(3, 3, 3, S[8, 64]).apply((1, 0), (8, 64))    # row 1 of 128-byte rows starts in unit 1
    {'m': 72}
    """

    per_element: int
    swizzle_len: int
    atom_len: int
    tile: TileLayout
    swizzle_inner: bool = True

    def __post_init__(self) -> None:
        expect_fields(self)
        for name in ("per_element", "swizzle_len", "atom_len"):
            value = getattr(self, name)
            if not 0 <= value <= MAX_BITS:
                raise LayoutError(f"{name} = {value}; must be within 0..{MAX_BITS}")
        if self.atom_len < self.swizzle_len:
            raise LayoutError(
                f"atom_len = {self.atom_len}; must be at least swizzle_len = {self.swizzle_len}, "
                "or the swizzle is no permutation"
            )
        if set(self.tile.axes) - {"m"}:
            raise LayoutError("a swizzle acts on the axis m alone", {"axes": ", ".join(self.tile.axes)})

    def __repr__(self) -> str:
        tail = "" if self.swizzle_inner else ", swizzle_inner=False"
        return f"ComposeLayout({self.per_element}, {self.swizzle_len}, {self.atom_len}, {self.tile!r}{tail})"

    @property
    def replica(self) -> tuple[object, ...]:
        return self.tile.replica

    def swizzle(self, place: Any) -> Any:
        """The swizzled place of an int, or of every entry of an integer array, in elements."""
        if getattr(getattr(place, "dtype", None), "kind", "") not in ("i", "u"):
            place = expect_integer(place, "a place")
        units = place >> self.per_element
        bits = (1 << self.swizzle_len) - 1
        if self.swizzle_inner:
            units = units ^ ((units & (bits << self.atom_len)) >> self.atom_len)
        else:
            units = units ^ ((units & bits) << self.atom_len)
        return (units << self.per_element) | (place & ((1 << self.per_element) - 1))

    def size(self) -> int:
        return self.tile.size()

    def span(self, axis: Axis | str | None = None) -> int:
        """The span of the tile; the swizzle permutes inside blocks and does not reach further than the next block."""
        return self.tile.span(axis)

    def apply(
        self, coord: Sequence[int] | int, *more: Sequence[int] | int, shape: Sequence[int] | None = None
    ) -> dict[str, int]:
        """The place of one element in linear memory, in elements; the arguments are those of `TileLayout.apply`."""
        return {"m": self.swizzle(self.tile.apply(coord, *more, shape=shape).get("m", 0))}

    def positions(self, axis: Axis | str = "m") -> numpy.ndarray[Any, numpy.dtype[numpy.int64]]:
        """The place of every element, in row-major order: int64 of shape (size,)."""
        placed = self.tile.positions(axis)
        swizzled: numpy.ndarray[Any, numpy.dtype[numpy.int64]] = (
            self.swizzle(placed) if axis_name(axis) == "m" else placed
        )
        return swizzled

    def canonicalize(self) -> ComposeLayout:
        return replace(self, tile=self.tile.canonicalize())

    def slice(self, shape: Sequence[int], region: Region) -> ComposeLayout | None:
        """The layout of a region: the tile is cut, the swizzle stays on the whole memory. None as for TileLayout."""
        part = self.tile.slice(shape, region)
        return None if part is None else replace(self, tile=part)

    def tiled_by(self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> ComposeLayout:
        """The tile repeated as `outer` says, under the same swizzle."""
        return replace(self, tile=self.tile.tile(outer, outer_shape, inner_shape))


Layout = TileLayout | ComposeLayout
