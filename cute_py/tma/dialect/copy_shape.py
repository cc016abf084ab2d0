"""What the lowering needs to know of one copy: its tile, element type, box, mode and where the bytes are counted.

A `CopyShape` is plain data, so that a copy can be lowered without an atom; `atom_shape.copy_shape_of` reads one from an
atom. Sizes are in elements and outermost first here, as programs write them; tensor maps and instructions count
innermost first.

Which hardware copy moves a tile: the copy-atom witness, chosen from the architecture, the memory space and the tile.

The names are those of the TMA load walkthrough: sm_70/75 `ldg_128`, sm_80..89 `cp_async_4`, sm_90a and later
`tma_load`. The walkthrough lists sm_90a, sm_100 and sm_120; every architecture from sm_90 on has the instruction, so
all of them choose it here. A witness names a family: multicast, cache hint and im2col select among its PTX forms.

Reading a `CopyShape` from an atom: its tile, its box, and where each of its instructions goes.

An atom from `make_tma_copy` knows the coordinates and the place in shared memory of every instruction; they are taken
from it. Anything else with `.op` and `.request` (an im2col atom, a stand-in) is read by its numbers: bytes of a tile
divided by bytes of a box.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect, expect_choice, expect_fields, expect_integer, expect_integers, expect_name
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaBuildError, given, integer_text
from cute_py.ptx.forms_copy import REDUCE_KINDS
from cute_py.targets import MAX_CLUSTER, architecture
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.tile_atom import TileAtom, expect_fits
from cute_py.tma.atom.tiles import instructions
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.formats import FORMATS, TensorMapSwizzle
from cute_py.tma.descriptor.limits import SWIZZLE_SPAN, bounds
from cute_py.tma.descriptor.limits import architecture as shared_memory_of
from cute_py.tma.descriptor.request import TensorMapTiled

MLIR_TYPES: dict[str, str] = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "tfloat32": "tf32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
    "bool": "i1",
}
"""Element types as the traces write them; integers are i8, i16, i32, i64."""


def mlir_type(dtype: DType) -> str:
    """The element type's spelling in the traces: bf16, f32, i8.

    >>> from cute_py.dtypes import as_dtype
    >>> mlir_type(as_dtype("bfloat16")), mlir_type(as_dtype("uint8"))
    ('bf16', 'i8')
    """
    return MLIR_TYPES.get(dtype.name, f"i{dtype.bits}")


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """One generation of copy hardware, as the capability table of the walkthrough has it.

    lowest, highest: architecture numbers. stage3: the operation that the copy becomes. mnemonic: of its PTX, as
    printed there; `instruction` is what an assembler takes.
    """

    lowest: int
    highest: int
    name: str
    is_tma: bool
    stage3: str
    mnemonic: str
    instruction: str


WITNESSES: tuple[WitnessRow, ...] = (
    WitnessRow(70, 79, "sm70_ldg_128_{t}", False, "nv_tileas.tiled_load", "ld.global.nc.v4.b32", "ld.global.nc.v4.b32"),
    WitnessRow(
        80,
        89,
        "sm80_cp_async_4_{t}",
        False,
        "nv_tileas.async.cp_async",
        "cp.async.ca.shared.global.4",
        "cp.async.ca.shared.global",
    ),
    WitnessRow(
        90,
        129,
        "sm90_tma_load_{r}d_{t}",
        True,
        "nv_tileas.async.tiled_tma_load",
        "cp.async.bulk.tensor.{r}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.{r}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    ),
)
"""The capability cross-check of the walkthrough. `{t}` element type, `{r}` rank.

The pages' `cp.async.ca.shared.global.4` writes the size as a modifier; the assembler takes it as an operand.
"""


@dataclass(frozen=True, slots=True)
class Witness:
    """The choice for one copy: `name`, whether it is a TMA atom, the swizzle beside it, and why it was chosen."""

    name: str
    is_tma: bool
    row: WitnessRow
    swizzle: str
    reasons: tuple[str, ...]

    def __post_init__(self) -> None:
        expect_fields(self)


SWIZZLE_NAMES: dict[TensorMapSwizzle, str] = {
    TensorMapSwizzle.NONE: "swizzle_none",
    TensorMapSwizzle.B32: "swizzle_32B",
    TensorMapSwizzle.B64: "swizzle_64B",
    TensorMapSwizzle.B128: "swizzle_128B",
    TensorMapSwizzle.B128_ATOM_32B: "swizzle_128B_atom_32B",
    TensorMapSwizzle.B128_ATOM_32B_FLIP_8B: "swizzle_128B_atom_32B_flip_8B",
    TensorMapSwizzle.B128_ATOM_64B: "swizzle_128B_atom_64B",
}


def tma_ineligible(shape: CopyShape, address_space: int = 1) -> tuple[str, ...]:
    """Why a copy can't be a TMA copy whatever the architecture; () if it can.

    Source: TMA load walkthrough, box-dim invariants; CUDA 13.0 driver API, cuTensorMapEncodeTiled.
    """
    found = []
    row_bits = shape.instruction_box[-1] * shape.dtype.bits
    if row_bits % 128:
        found.append(f"the innermost box extent is {row_bits} bits; must be a multiple of 16 bytes")
    if address_space != 1:
        found.append(f"the source is in address space {address_space}; must be 1 (global)")
    return tuple(found)


def _row_for(number: int) -> WitnessRow:
    return next(row for row in WITNESSES if row.lowest <= number <= row.highest)


def choose_witness(shape: CopyShape, arch: str, *, address_space: int = 1, allow_tma: bool = True) -> Witness:
    """The copy atom for this copy on this architecture, with the reasons.

    Args:
        arch: "sm_70" .. "sm_121a".
        address_space: of the source: 1 global, 3 shared.
        allow_tma: the attribute of the load; False falls back to plain ldg.

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
    >>> choose_witness(copy_shape("load", (128, 128), "bf16", swizzle=3), "sm_90a").name
    'sm90_tma_load_2d_bf16'

    Raises:
        InvalidValueError: no such architecture.
    """
    expect(shape, CopyShape, "the shape of a copy")
    expect_integer(address_space, "address_space", 0)
    expect(allow_tma, bool, "allow_tma")
    target = architecture(arch)
    row = _row_for(target.number)
    reasons = [f"{arch}: compute capability {target.number // 10}.{target.number % 10}, {target.chip}"]
    if row.is_tma:
        blockers = [] if allow_tma else ["allow_tma = false"]
        blockers += tma_ineligible(shape, address_space)
        if blockers:
            row = WITNESSES[0]
            reasons += [f"not TMA: {blocker}" for blocker in blockers]
            reasons.append("falls back to plain ldg")
        else:
            reasons.append("the tile meets the TMA eligibility rules: 16-byte rows, global source")
            if shape.was_split:
                reasons.append(shape.was_split)
    elif row.lowest == 80:
        reasons.append("no TMA before sm_90: cp.async, one 4-byte word per thread and instruction")
    else:
        reasons.append("no TMA and no cp.async: vector loads through registers")
    name = row.name.format(t=mlir_type(shape.dtype), r=shape.rank)
    if row.is_tma:
        name = _tma_name(shape)
    return Witness(name, row.is_tma, row, SWIZZLE_NAMES[shape.swizzle] if row.is_tma else "", tuple(reasons))


def _tma_name(shape: CopyShape) -> str:
    """The TMA witness: direction, rank, element type; multicast as a suffix."""
    kind = {"load": "load", "store": "store", "reduce": f"reduce_{shape.reduce_kind}"}[shape.direction]
    suffix = "_mcast" if shape.multicast > 1 else ""
    return f"sm90_tma_{kind}_{shape.rank}d_{mlir_type(shape.dtype)}{suffix}"


def field_atom(shape: CopyShape) -> str:
    """The descriptor-side atom of stage 3: `load_2d_bf16, swizzle_128B`."""
    kind = {"load": "load", "store": "store", "reduce": f"reduce_{shape.reduce_kind}"}[shape.direction]
    suffix = "_mcast" if shape.multicast > 1 else ""
    return f"{kind}_{shape.rank}d_{mlir_type(shape.dtype)}{suffix}, {SWIZZLE_NAMES[shape.swizzle]}"


def witness_row(arch: str) -> WitnessRow:
    """The capability row of an architecture.

    Raises:
        InvalidValueError: no such architecture.
    """
    number = architecture(arch).number
    if not any(row.lowest <= number <= row.highest for row in WITNESSES):
        raise InvalidValueError(f"no copy-atom witness for {arch}")
    return _row_for(number)


def _direction(op: str) -> tuple[str, str]:
    """Direction and reduction of an operation by its name.

    Raises:
        TmaBuildError: a prefetch, which has no tile in shared memory.
    """
    if "PREFETCH" in op:
        raise TmaBuildError(f"{op} has no tile in shared memory: it is one instruction, ptx('prefetch', ...)")
    if "REDUCE" in op:
        return "reduce", op.rsplit("_", 1)[-1].lower()
    return ("store", "add") if "STORE" in op or "SCATTER" in op else ("load", "add")


def _mode(op: str, direction: str) -> str:
    if "IM2COL" in op:
        return "im2col" if direction == "load" else "im2col_no_offs"
    return "tile::gather4" if "GATHER4" in op else "tile::scatter4" if "SCATTER4" in op else "tile"


def _box(request: Any) -> tuple[int, ...]:
    """Extents that one instruction moves, outermost first: the box over the element strides, or pixels x channels."""
    if isinstance(request, TensorMapTiled):
        extents = zip(request.box_dim, request.element_strides, strict=True)
        return tuple(-(-extent // stride) for extent, stride in extents)[::-1]
    return (*(1,) * (request.rank - 2), request.pixels_per_column, request.channels_per_pixel)


def _placed(atom: TmaAtom) -> dict[str, Any]:
    """Tile, origins and offsets of a tiled atom, from its own list of instructions.

    The tile is what all CTAs of a multicast move together; the origins are those of the first CTA.
    """
    listed = instructions(atom)
    first = listed.coords[: listed.per_tile]
    lowest = first.min(axis=0)
    starts = [tuple(int(x) for x in reversed(row - lowest)) for row in first]
    box = _box(atom.request)
    tile = tuple(max(start[mode] for start in starts) + box[mode] for mode in range(len(box)))
    mine = listed.per_tile // atom.num_multicast
    base = int(listed.smem_offsets[0])
    offsets = tuple(int(offset) - base for offset in listed.smem_offsets[:mine])
    return {"tile": tile, "origins": tuple(starts[:mine]), "offsets": offsets}


def _simplest(fields: dict[str, Any], shape: CopyShape) -> CopyShape:
    """Without origins and offsets if they are what a plain shape has anyway."""
    plain = CopyShape(**{**fields, "origins": (), "offsets": ()})
    same = plain.instruction_box == shape.instruction_box and plain.box_origins == shape.box_origins
    if same and all(plain.box_offset(box) == shape.box_offset(box) for box in range(shape.num_boxes)):
        return plain
    return shape


def copy_shape_of(atom: Any, *, tensor: str = "A") -> CopyShape:
    """Read a `CopyShape` from an atom.

    Args:
        atom: a `TmaAtom`, an im2col atom, a `CopyShape` (returned as it is), or anything with `.op` (an enum or text
            with CuTe's name), `.request` (a TensorMap request) and `.transaction_bytes` (bytes that one CTA receives);
            optional `.num_multicast`, `.dtype`, and `.tile_shape` (elements that one CTA issues, outermost first; else
            its boxes are laid along the innermost mode).
    Raises:
        TmaBuildError: the atom has no request, its numbers contradict each other, or it is a prefetch.
        InvalidValueError: an instruction of the atom starts at an address that TMA does not take.
        TmaLimitError: its tile fits into no block's shared memory.
    """
    if isinstance(atom, CopyShape):
        return atom
    if isinstance(atom, TileAtom):
        expect_fits(atom)
    missing = [name for name in ("op", "request") if not hasattr(atom, name)]
    if missing:
        raise TmaBuildError(f"not an atom: no attribute {', '.join(missing)}", {"got": type(atom).__name__})
    op = str(getattr(atom.op, "name", atom.op))
    direction, kind = _direction(op)
    mode = _mode(op, direction)
    row = FORMATS[int(atom.request.data_type)]
    dtype = as_dtype(getattr(atom, "dtype", None) or row.dtypes[0])
    if dtype.bits != row.bits:
        dtype = as_dtype(getattr(atom, "internal_dtype", None) or row.dtypes[0])
    box = _box(atom.request)
    if mode in ("tile::gather4", "tile::scatter4"):
        box = (4, box[-1])
    per_box = math.prod(box) * dtype.bits // 8
    total = int(getattr(atom, "transaction_bytes", per_box) or per_box)
    multicast = int(getattr(atom, "num_multicast", 1) or 1)
    if total % per_box:
        raise TmaBuildError(
            f"transaction bytes = {total}; must be a multiple of one box",
            {"box": f"{per_box} bytes, {' x '.join(map(str, box))}"},
        )
    # Each CTA of a multicast issues its slice, and receives the slices of all.
    issued = max(1, total // per_box // multicast)
    fields: dict[str, Any] = {
        "direction": direction,
        "tile": tuple(getattr(atom, "tile_shape", None) or (*box[:-1], box[-1] * issued)),
        "dtype": dtype,
        "box": box,
        "mode": mode,
        "swizzle": atom.request.swizzle,
        "multicast": multicast,
        "reduce_kind": kind,
        "tensor": tensor,
        "cta_group": 2 if "2SM" in op else 0,
        "tx_bytes": total,
    }
    if isinstance(atom, TmaAtom) and mode == "tile":
        fields |= _placed(atom)
    return _simplest(fields, CopyShape(**fields))


SWIZZLE_SPAN_BYTES: dict[TensorMapSwizzle, int] = {
    swizzle: SWIZZLE_SPAN.get(swizzle) or 128 for swizzle in TensorMapSwizzle if swizzle
}
"""Longest innermost box extent in bytes. Source: CUDA 13.0 driver API, cuTensorMapEncodeTiled, swizzle."""

MAX_BOXES = shared_memory_of("sm_90a").block_shared_memory_bytes // 16
"""Boxes of one tile: a box has 16 bytes or more, and a CTA 227 KiB of shared memory."""

MAX_BOX_EXTENT = bounds("box")[1]

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
        if not 1 <= rank <= MAX_RANK:
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
        reasons += [
            f"a box extent is at most {MAX_BOX_EXTENT}; got {extent}" for extent in wanted if extent > MAX_BOX_EXTENT
        ]
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
