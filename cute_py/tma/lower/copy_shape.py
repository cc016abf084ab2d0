"""What the lowering needs to know of one copy: its tile, element type, box, mode and where the bytes are counted.

A `CopyShape` is plain data, so that a copy can be lowered without an atom; `atom_shape.copy_shape_of` reads one from an
atom. Sizes are in elements and outermost first here, as programs write them; tensor maps and instructions count
innermost first.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect_choice, expect_fields, expect_integer, expect_integers, expect_name
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given, integer_text
from cute_py.tma.descriptor.formats import TensorMapSwizzle
from cute_py.tma.lower.forms_tensor import REDUCE_KINDS

SWIZZLE_SPAN_BYTES: dict[TensorMapSwizzle, int] = {
    TensorMapSwizzle.B32: 32,
    TensorMapSwizzle.B64: 64,
    TensorMapSwizzle.B128: 128,
    TensorMapSwizzle.B128_ATOM_32B: 128,
    TensorMapSwizzle.B128_ATOM_32B_FLIP_8B: 128,
    TensorMapSwizzle.B128_ATOM_64B: 128,
}
"""Longest innermost box extent in bytes. Source: CUDA 13.0 driver API, cuTensorMapEncodeTiled, swizzle."""

MAX_CLUSTER = 16
"""CTAs of one cluster. Source: CUDA programming guide, thread block clusters (non-portable size)."""

MAX_BOXES = 232_448 // 16
"""Boxes of one tile: a box has 16 bytes or more, and a CTA 227 KiB of shared memory."""

MAX_BOX_EXTENT = 256
"""Elements of one box mode. Source: CUDA 13.0 driver API, cuTensorMapEncodeTiled, boxDim."""

LOAD_MODES = ("tile", "im2col", "im2col::w", "im2col::w::128", "tile::gather4")
STORE_MODES = ("tile", "im2col_no_offs", "tile::scatter4")
DIRECTIONS = ("load", "store", "reduce")
AXIS_NAMES = {1: ("N",), 2: ("M", "K"), 3: ("L", "M", "K"), 4: ("N", "H", "W", "C"), 5: ("N", "D", "H", "W", "C")}
"""Names of the axes in traces, outermost first."""


@dataclass(frozen=True, slots=True)
class CopyShape:
    """One copy between a global tensor and a shared-memory tile.

    Args:
        direction: "load", "store" or "reduce".
        tile: extents of the tile in elements, outermost first; the copy of one CTA.
        dtype: element type (name, numpy or ml_dtypes type).
        box: extents of one instruction's box, outermost first; None takes the largest that can be encoded.
        mode: the instruction's mode: "tile", "im2col", ...
        swizzle: of the tensor map.
        multicast: CTAs that receive a load; the transaction bytes are per receiving CTA.
        reduce_kind: "add" ... for direction "reduce".
        tensor: name of the global tensor in traces. axes: names of its axes, outermost first.
        cache_hint: a policy operand is there. cta_group: 0, or the `.cta_group::N` of a 2-SM load.
        device_descriptor: the tensor map is made on the device, not passed as a kernel parameter.
        im2col_offsets: the offset immediates of an im2col load, W first.
        tx_bytes: transaction bytes of the whole tile, for modes whose bytes are not rows x columns (im2col with
            padding); None computes them from the box.
        origins: first element of each instruction's box inside the tile, outermost first; () lays the boxes over the
            tile, the innermost mode slowest. offsets: where each goes in shared memory, in bytes from the tile's start;
            () puts one box behind the other.
    Raises:
        InvalidValueError: a field has no meaning (a direction, an extent below 1, a rank outside 1..5).
    """

    direction: str
    tile: tuple[int, ...]
    dtype: DType
    box: tuple[int, ...] | None = None
    mode: str = "tile"
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    multicast: int = 1
    reduce_kind: str = "add"
    tensor: str = "A"
    axes: tuple[str, ...] = ()
    cache_hint: bool = False
    cta_group: int = 0
    device_descriptor: bool = False
    im2col_offsets: tuple[int, ...] = ()
    tx_bytes: int | None = None
    origins: tuple[tuple[int, ...], ...] = ()
    offsets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "dtype", as_dtype(self.dtype))
        put(self, "tile", _extents(self.tile, "tile"))
        put(self, "swizzle", _swizzle(self.swizzle))
        rank = len(self.tile)
        if not 1 <= rank <= 5:
            raise InvalidValueError(f"a tile of rank {rank}; a tensor map has rank 1 to 5")
        put(self, "axes", self.axes or AXIS_NAMES[rank] if isinstance(self.axes, tuple) else self.axes)
        if self.box is not None:
            put(self, "box", _extents(self.box, "box"))
        expect_fields(self)
        if self.direction not in DIRECTIONS:
            raise InvalidValueError(f"direction {given(self.direction)}; expected one of {', '.join(DIRECTIONS)}")
        if any(extent < 1 for extent in self.tile):
            raise InvalidValueError(f"tile {self.tile}; every extent is at least 1")
        modes = LOAD_MODES if self.direction == "load" else STORE_MODES
        if self.mode not in modes:
            raise InvalidValueError(
                f"mode {given(self.mode)} of a {self.direction}; expected one of {', '.join(modes)}"
            )
        if self.rows_by_index and (rank != 2 or self.tile[0] != 4):
            raise InvalidValueError(f"tile {self.tile} in mode {self.mode}; expected 4 rows of a matrix")
        if self.box is not None and (len(self.box) != rank or any(extent < 1 for extent in self.box)):
            raise InvalidValueError(f"box {self.box}; expected {rank} extents of at least 1")
        self._check_rest()

    def _check_rest(self) -> None:
        """Names, counts, and the boxes against the tile."""
        for name in (self.tensor, *self.axes):
            expect_name(name, "the name of a tensor or axis")
        if len(self.axes) != self.rank:
            raise InvalidValueError(f"{len(self.axes)} names of axes; the tile has rank {self.rank}")
        expect_choice(self.reduce_kind, REDUCE_KINDS, "reduce_kind")
        expect_integer(self.multicast, "multicast", 1, MAX_CLUSTER, "CTAs")
        expect_integer(self.cta_group, "cta_group", 0, 2)
        if self.tx_bytes is not None:
            expect_integer(self.tx_bytes, "tx_bytes", 0, unit="bytes")
        for origin in self.origins:
            expect_integers(origin, "an origin", 0, count=self.rank)
        count = self.num_boxes
        if count > MAX_BOXES:
            raise InvalidValueError(f"{integer_text(count)} boxes; shared memory has room for at most {MAX_BOXES}")
        if self.offsets:
            expect_integers(self.offsets, "offsets", 0, unit="bytes", count=count)

    @property
    def rank(self) -> int:
        """Modes of the tensor map."""
        return len(self.tile)

    @property
    def rows_by_index(self) -> bool:
        """gather4 and scatter4: one column coordinate and four row coordinates."""
        return self.mode in ("tile::gather4", "tile::scatter4")

    def instruction_origin(self, box: int) -> tuple[int, ...]:
        """What box number `box` adds to each coordinate of its instruction, innermost first."""
        origins = self.box_origins
        origin = origins[expect_integer(box, "the number of a box", 0, len(origins) - 1)][::-1]
        return (origin[0], 0, 0, 0, 0) if self.rows_by_index else origin

    @property
    def tile_bytes(self) -> int:
        """Bytes of the tile: the product of its extents times the element width."""
        return math.prod(self.tile) * self.dtype.bits // 8

    @property
    def instruction_box(self) -> tuple[int, ...]:
        """The box of one instruction, outermost first: the given box, cut to what a tensor map can hold.

        >>> copy_shape("load", (128, 128), "bf16", swizzle=3).instruction_box
        (128, 64)
        """
        wanted = self.tile if self.box is None else self.box
        if self.origins:
            return wanted
        # An im2col map has no box: pixels and channels have limits of their own.
        limits = [MAX_BOX_EXTENT if self.mode.startswith("tile") else extent for extent in wanted]
        span = SWIZZLE_SPAN_BYTES.get(self.swizzle)
        if span is not None:
            limits[-1] = min(limits[-1], span * 8 // self.dtype.bits)
        return tuple(_largest_divisor(extent, limit) for extent, limit in zip(wanted, limits, strict=True))

    @property
    def was_split(self) -> str:
        """Why the box of one instruction is smaller than the box that was asked for; '' if it is not."""
        wanted = self.tile if self.box is None else self.box
        if wanted == self.instruction_box:
            return ""
        reasons = []
        row = wanted[-1] * self.dtype.bits // 8
        span = SWIZZLE_SPAN_BYTES.get(self.swizzle)
        if span is not None and row > span:
            reasons.append(
                f"a row of {wanted[-1]} x {self.dtype.name} is {row} bytes, and a {span}B-swizzled row is at most "
                f"{span} bytes"
            )
        reasons += [f"a box extent is at most {MAX_BOX_EXTENT}; got {extent}" for extent in wanted if extent > 256]
        count = self.num_boxes
        return (
            f"box [{_list(wanted)}] can't be encoded, split into {count} boxes of [{_list(self.instruction_box)}]: "
            + "; ".join(reasons)
        )

    @property
    def num_boxes(self) -> int:
        """Instructions that move the tile."""
        if self.origins:
            return len(self.origins)
        return math.prod(-(-t // b) for t, b in zip(self.tile, self.instruction_box, strict=True))

    @property
    def box_bytes(self) -> int:
        """Bytes that one instruction moves: the box's extents times the element width."""
        return math.prod(self.instruction_box) * self.dtype.bits // 8

    @property
    def row_pitch(self) -> int:
        """Bytes from one row of a box to the next in shared memory: a swizzled row takes its whole span.

        Source: measured on NVIDIA H200, driver 580.159.04.
        """
        row = self.instruction_box[-1] * self.dtype.bits // 8
        return max(row, SWIZZLE_SPAN_BYTES.get(self.swizzle, 0))

    @property
    def box_smem_bytes(self) -> int:
        """Bytes of shared memory that one box takes, gaps between short swizzled rows included."""
        return self.row_pitch * math.prod(self.instruction_box[:-1])

    def box_offset(self, box: int) -> int:
        """Where box number `box` starts in shared memory, in bytes from the tile's start."""
        box = expect_integer(box, "the number of a box", 0, self.num_boxes - 1)
        return self.offsets[box] if self.offsets else box * self.box_smem_bytes

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that the tile takes."""
        last = max(self.offsets) if self.offsets else (self.num_boxes - 1) * self.box_smem_bytes
        return last + self.box_smem_bytes

    @property
    def transaction_bytes(self) -> int:
        """Bytes that the loads of this tile deposit in one CTA: what `expect_tx` announces.

        Swizzling permutes bytes and changes no count; multicast counts per receiving CTA.
        """
        if self.tx_bytes is not None:
            return self.tx_bytes
        return self.box_bytes * self.num_boxes

    @property
    def box_origins(self) -> tuple[tuple[int, ...], ...]:
        """Origin of each box inside the tile in elements, outermost first; the innermost mode varies slowest.

        The boxes lie one after the other in shared memory in this order.
        """
        return self.origins or _laid(self.tile, self.instruction_box)


@functools.lru_cache(maxsize=64)
def _laid(tile: tuple[int, ...], box: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Origins of the boxes that cover a tile, the innermost mode slowest."""
    origins: list[tuple[int, ...]] = [()]
    for extent, step in zip(reversed(tile), reversed(box), strict=True):
        # The innermost mode is taken first, so that it varies slowest.
        origins = [(start, *origin) for origin in origins for start in range(0, extent, step)]
    return tuple(origins)


def copy_shape(direction: str, tile: tuple[int, ...], dtype: object, *, swizzle: int = 0, **fields: Any) -> CopyShape:
    """A `CopyShape` from a dtype's name and a swizzle number."""
    unknown = set(fields) - {field.name for field in dataclasses.fields(CopyShape)}
    if unknown:
        raise InvalidTypeError(f"a copy has no field {', '.join(sorted(unknown))}")
    return CopyShape(direction, tile, as_dtype(dtype), swizzle=_swizzle(swizzle), **fields)


def _extents(extents: Any, what: str) -> tuple[int, ...]:
    if not isinstance(extents, (tuple, list)):
        raise InvalidTypeError(f"{what} = {given(extents)}; must be a tuple of integers")
    return tuple([expect_integer(extent, f"an extent of the {what}") for extent in extents])


def _swizzle(number: Any) -> TensorMapSwizzle:
    code = expect_integer(number, "swizzle")
    if code not in {int(swizzle) for swizzle in TensorMapSwizzle}:
        known = ", ".join([str(int(swizzle)) for swizzle in TensorMapSwizzle])
        raise InvalidValueError(f"swizzle = {code}; must be a number of the driver's", {"known": known})
    return TensorMapSwizzle(code)


def _list(extents: tuple[int, ...]) -> str:
    return ", ".join(str(extent) for extent in extents)


def _largest_divisor(extent: int, limit: int) -> int:
    """The largest divisor of `extent` that is at most `limit`, so that boxes tile the tile without overlap."""
    if extent <= limit:
        return extent
    return next(size for size in range(limit, 0, -1) if extent % size == 0)
