"""Buffers and regions of them: what a copy is asked for.

smem = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
tmem = Buffer("tmem", (32, 16), "uint8", "tmem", demo_layout, allocated_addr=TmemAllocation(n_cols=32))
smem[0:32, 0:16]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields, expect_integer, expect_integers, expect_name
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, given
from cute_py.tmem.copy_plan import check_columns
from cute_py.tmem.swizzled_layout import ComposeLayout, Layout
from cute_py.tmem.tile_layout import TileLayout


@dataclass(frozen=True, slots=True)
class TmemAllocation:
    """Columns of tensor memory that tcgen05.alloc gave, and the name of the shared word that holds their address.

    Args:
        n_cols: columns: 32, 64, 128, 256 or 512.
    Raises:
        TmemError: any other number of columns; the text says which number to take.
    """

    n_cols: int
    name: str = "tmem_addr"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_cols", check_columns(self.n_cols))
        expect_name(self.name, "the name of an allocation")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tile in one memory.

    Args:
        shape: extents, slowest first.
        scope: "global", "shared" (or "shared.dyn", ...), "local" or "tmem".
        layout: where the elements lie; elements on the axis `m`, or on TLane and TCol.
        allocated_addr: for tensor memory, its allocation.
        align: bytes that a shared buffer is aligned to.
    Raises:
        InvalidValueError: the name is no identifier, or the alignment no power of two of at least 16 bytes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    scope: str
    layout: Layout | None
    allocated_addr: TmemAllocation | None
    align: int

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: object,
        scope: str,
        layout: Layout | None = None,
        allocated_addr: TmemAllocation | None = None,
        align: int = 1024,
    ) -> None:
        if layout is not None and not isinstance(layout, TileLayout | ComposeLayout):
            raise InvalidTypeError(f"the layout of a buffer is a TileLayout or a ComposeLayout, got {given(layout)}")
        if not isinstance(shape, (tuple, list)):
            raise InvalidTypeError(f"the shape of a buffer is a tuple of integers, got {given(shape)}")
        extents = expect_integers(shape, "shape", 1)
        expect_name(name, "the name of a buffer")
        expect(scope, str, "the scope of a buffer")
        if allocated_addr is not None:
            expect(allocated_addr, TmemAllocation, "allocated_addr")
        align = expect_integer(align, "align", unit="bytes")
        if align < 16 or align & (align - 1):
            raise InvalidValueError(f"align = {align} bytes; must be a power of two, at least 16")
        for field, value in (
            ("name", name),
            ("shape", extents),
            ("dtype", as_dtype(dtype)),
            ("scope", scope),
            ("layout", layout),
            ("allocated_addr", allocated_addr),
            ("align", align),
        ):
            object.__setattr__(self, field, value)

    def __getitem__(self, key: slice | tuple[slice, ...]) -> BufferRegion:
        """A region: one slice for each dimension, without a step; open ends are those of the shape."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.shape):
            raise CoordinateError(f"{len(keys)} slices of {self.name}, which has {len(self.shape)} dimensions")
        ranges = []
        for one, extent in zip(keys, self.shape, strict=True):
            if not isinstance(one, slice) or one.step is not None:
                raise InvalidTypeError(f"a region is made of slices begin:end, got {given(one)}")
            ranges.append((0 if one.start is None else one.start, extent if one.stop is None else one.stop))
        return BufferRegion(self, tuple(ranges))

    def whole(self) -> BufferRegion:
        """The region of all elements."""
        return BufferRegion(self, tuple((0, extent) for extent in self.shape))


@dataclass(frozen=True, slots=True)
class BufferRegion:
    """`region[d] = (begin, end)` in each dimension of a buffer."""

    buffer: Buffer
    region: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        expect_fields(self)

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{', '.join(f'{begin}:{end}' for begin, end in self.region)}]"
