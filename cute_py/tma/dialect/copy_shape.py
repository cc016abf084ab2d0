"""What the lowering needs to know of one copy, the hardware copy that moves it, and how both are read from an atom.

A `CopyShape` is plain data, so that a copy can be lowered without an atom; `copy_shape_of` reads one from an atom.
Sizes are in elements and outermost first here, as programs write them; tensor maps and instructions count innermost
first.

A `Witness` is the copy-atom witness, chosen from the architecture, the memory space and the tile. Its names are those
of the TMA load walkthrough: sm_70/75 `ldg_128`, sm_80..89 `cp_async_4`, sm_90a and later `tma_load`. The walkthrough
lists sm_90a, sm_100 and sm_120; every architecture from sm_90 on has the instruction, so all of them choose it here. A
witness names a family: multicast, cache hint and im2col select among its PTX forms.

An atom from `make_tma_copy` knows the coordinates and the place in shared memory of every instruction; they are taken
from it. Anything else with `.op` and `.request` (an im2col atom, a stand-in) is read by its numbers: bytes of a tile
divided by bytes of a box.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias, TypedDict, cast

from cute_py.argument_checks import (
    expect,
    expect_choice,
    expect_fields,
    expect_integer,
    expect_integers,
    expect_name,
    record,
)
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaBuildError, integer_text
from cute_py.ptx.forms_copy import REDUCE_KINDS
from cute_py.targets import MAX_CLUSTER, architecture
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.op import as_op
from cute_py.tma.atom.tile_atom import TileAtom, expect_fits
from cute_py.tma.atom.tiles import first_tile
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.formats import FORMATS, TensorMapSwizzle
from cute_py.tma.descriptor.limits import BY_NAME, SWIZZLE_SPAN, bounds
from cute_py.tma.descriptor.limits import architecture as shared_memory_of
from cute_py.tma.descriptor.request import HasTraits, TensorMap, TensorMapTiled, TmaCopyTraits

__all__ = ["CopyShape", "Witness", "choose_witness", "copy_shape", "copy_shape_of"]


def mlir_type(dtype: DType) -> str:
    """The element type's spelling in the traces: bf16, f32, i8.

    >>> from cute_py.dtypes import as_dtype
    >>> [mlir_type(as_dtype(name)) for name in ("bfloat16", "float8_e4m3fn", "uint8", "bool")]
    ['bf16', 'f8E4M3FN', 'i8', 'i1']
    """
    if dtype.kind != "float":
        return "i1" if dtype.kind == "bool" else f"i{dtype.bits}"
    name, *fields = dtype.name.split("_")
    return name.replace("float", "f") + "".join(fields[:1]).upper()


def enumerator(member: Enum) -> str:
    """The driver's spelling of a member that counts bytes.

    >>> enumerator(TensorMapSwizzle.B128_ATOM_32B), enumerator(TensorMapSwizzle.NONE)
    ('128B_ATOM_32B', 'NONE')
    """
    return re.sub(r"^B(\d+)", r"\1B", member.name)


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


_LDG = "ld.global.nc.v4.b32"
_CP_ASYNC = "cp.async.ca.shared.global"
_BULK = "cp.async.bulk.tensor.{r}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"

WITNESSES: Final[tuple[WitnessRow, ...]] = (
    WitnessRow(70, 79, "sm70_ldg_128_{t}", False, "nv_tileas.tiled_load", _LDG, _LDG),
    WitnessRow(80, 89, "sm80_cp_async_4_{t}", False, "nv_tileas.async.cp_async", f"{_CP_ASYNC}.4", _CP_ASYNC),
    WitnessRow(90, 129, "sm90_tma_load_{r}d_{t}", True, "nv_tileas.async.tiled_tma_load", _BULK, _BULK),
)
"""The capability cross-check of the walkthrough. `{t}` element type, `{r}` rank.

The pages' `cp.async.ca.shared.global.4` writes the size as a modifier; the assembler takes it as an operand.
"""


@record
class Witness:
    """The choice for one copy: `name`, whether it is a TMA atom, the swizzle beside it, and why it was chosen."""

    name: str
    is_tma: bool
    row: WitnessRow
    swizzle: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


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
    Source:
        of what keeps a tile from TMA: TMA load walkthrough, box-dim invariants; CUDA 13.0 driver API,
        cuTensorMapEncodeTiled.
    """
    expect(shape, CopyShape, "the shape of a copy")
    expect_integer(address_space, "address_space", 0)
    expect(allow_tma, bool, "allow_tma")
    target = architecture(arch)
    row = next(row for row in WITNESSES if row.lowest <= target.number <= row.highest)
    reasons = [f"{arch}: compute capability {target.number // 10}.{target.number % 10}, {target.chip}"]
    if row.is_tma:
        blockers = [] if allow_tma else ["allow_tma = false"]
        row_bits = shape.instruction_box[-1] * shape.dtype.bits
        if row_bits % (8 * BY_NAME["inner_bytes"].multiple):
            blockers.append(f"the innermost box extent is {row_bits} bits; must be a multiple of 16 bytes")
        if address_space != 1:
            blockers.append(f"the source is in address space {address_space}; must be 1 (global)")
        if blockers:
            reasons += [*(f"not TMA: {blocker}" for blocker in blockers), "falls back to plain ldg"]
            row = WITNESSES[0]
        else:
            reasons.append("the tile meets the TMA eligibility rules: 16-byte rows, global source")
            reasons += [shape.was_split] if shape.was_split else []
    elif row.lowest == 80:
        reasons.append("no TMA before sm_90: cp.async, one 4-byte word per thread and instruction")
    else:
        reasons.append("no TMA and no cp.async: vector loads through registers")
    if row.is_tma:
        return Witness(f"sm90_tma_{atom_name(shape)}", True, row, swizzle_name(shape), tuple(reasons))
    return Witness(row.name.format(t=mlir_type(shape.dtype)), False, row, "", tuple(reasons))


LOAD_MODES: Final = ("tile", "im2col", "im2col::w", "im2col::w::128", "tile::gather4")
STORE_MODES: Final = ("tile", "im2col_no_offs", "tile::scatter4")
AXIS_NAMES: Final = ("N", "MK", "LMK", "NHWC", "NDHWC")
"""Names of the axes in traces, outermost first, by rank."""

MAX_BOXES: Final = shared_memory_of("sm_90a").block_shared_memory_bytes // BY_NAME["inner_bytes"].multiple
"""Boxes of one tile: a box has 16 bytes or more, and a CTA 227 KiB of shared memory."""

MAX_BOX_EXTENT: Final = bounds("box")[1]
"""Elements of one box mode."""


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
        tx_bytes: transaction bytes of the tile, for modes whose bytes are not rows x columns (im2col with
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
        put(self, "tile", expect_integers(self.tile, "tile", 1))
        put(self, "swizzle", _swizzle(self.swizzle))
        rank = len(self.tile)
        if not 1 <= rank <= MAX_RANK:
            raise InvalidValueError(f"a tile of rank {rank}; a tensor map has rank 1 to 5")
        put(self, "axes", self.axes or tuple(AXIS_NAMES[rank - 1]) if isinstance(self.axes, tuple) else self.axes)
        if self.box is not None:
            put(self, "box", expect_integers(self.box, "box", 1, count=rank))
        expect_fields(self)
        expect_choice(self.direction, ("load", "store", "reduce"), "direction")
        expect_choice(self.mode, LOAD_MODES if self.direction == "load" else STORE_MODES, f"mode of a {self.direction}")
        if self.rows_by_index and (rank != 2 or self.tile[0] != 4):
            raise InvalidValueError(f"tile {self.tile} in mode {self.mode}; expected 4 rows of a matrix")
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
        return self.mode in _MODES.values()

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
        if span := span_of(self):
            limits[-1] = min(limits[-1], span * 8 // self.dtype.bits)
        return tuple(_largest_divisor(extent, limit) for extent, limit in zip(wanted, limits, strict=True))

    @property
    def was_split(self) -> str:
        """Why the box of one instruction is smaller than the requested box; '' if it is not."""
        wanted, boxes, span = self.tile if self.box is None else self.box, self.instruction_box, span_of(self)
        if wanted == boxes:
            return ""
        row, limit = wanted[-1] * self.dtype.bits // 8, f"a {span}B-swizzled row is at most {span} bytes"
        reasons = [f"a row of {wanted[-1]} x {self.dtype.name} is {row} bytes, and {limit}"] * (0 < span < row)
        reasons += [f"a box extent is at most {MAX_BOX_EXTENT}; got {n}" for n in wanted if n > MAX_BOX_EXTENT]
        split = f"split into {self.num_boxes} boxes of [{_list(boxes)}]"
        return f"box [{_list(wanted)}] can't be encoded, {split}: {'; '.join(reasons)}"

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
        """Bytes from one row of a box to the next in shared memory: a swizzled row takes a full span.

        Source: measured on NVIDIA H200, driver 580.159.04.
        """
        return max(row_bytes(self), span_of(self))

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


def shape_of(copy: CopyShape | TileAtom) -> CopyShape:
    """The shape of what an export takes: an atom's, or itself."""
    return copy_shape_of(copy) if isinstance(copy, TileAtom) else expect(copy, CopyShape, "the shape of a copy")


class Modifiers(TypedDict, total=False):
    """Of the instruction of a copy, as `ptx` takes them."""

    dim: int
    mode: str
    op: str
    multicast: bool
    cache_hint: bool
    cta_group: int


def modifiers_of(shape: CopyShape) -> Modifiers:
    """The modifiers of the instruction that moves one box."""
    found: Modifiers = {"dim": shape.rank, "mode": shape.mode}
    if shape.direction == "reduce":
        found["op"] = shape.reduce_kind
    if shape.cache_hint:
        found["cache_hint"] = True
    if shape.multicast > 1:
        found["multicast"] = True
    if shape.cta_group:
        found["cta_group"] = shape.cta_group
    return found


def swizzle_name(shape: CopyShape) -> str:
    """`swizzle_128B`, `swizzle_128B_atom_32B`."""
    return "swizzle_" + re.sub("[A-Z]{2,}", lambda found: found[0].lower(), enumerator(shape.swizzle))


def atom_name(shape: CopyShape) -> str:
    """`load_2d_bf16`: direction, rank, element type; multicast as a suffix."""
    kind = f"reduce_{shape.reduce_kind}" if shape.direction == "reduce" else shape.direction
    return f"{kind}_{shape.rank}d_{mlir_type(shape.dtype)}{'_mcast' if shape.multicast > 1 else ''}"


def span_of(shape: CopyShape) -> int:
    """Bytes of a swizzled row, the longest that a box may have; 0 without a swizzle. The driver's swizzles of larger
    chunks, 4 to 6, permute within 128 bytes too."""
    return SWIZZLE_SPAN.get(shape.swizzle, 128) or 0


def row_bytes(shape: CopyShape) -> int:
    """Bytes of one row of a box."""
    return shape.instruction_box[-1] * shape.dtype.bits // 8


@functools.lru_cache(maxsize=64)
def _laid(tile: tuple[int, ...], box: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Origins of the boxes that cover a tile, the innermost mode slowest."""
    ranges = [range(0, extent, step) for extent, step in zip(tile, box, strict=True)]
    return tuple(origin[::-1] for origin in itertools.product(*reversed(ranges)))


def copy_shape(direction: str, tile: tuple[int, ...], dtype: object, *, swizzle: int = 0, **fields: Any) -> CopyShape:
    """A `CopyShape` from a dtype's name and a swizzle number."""
    unknown = set(fields) - {field.name for field in dataclasses.fields(CopyShape)}
    if unknown:
        raise InvalidTypeError(f"a copy has no field {', '.join(sorted(unknown))}")
    return CopyShape(direction, tile, as_dtype(dtype), swizzle=_swizzle(swizzle), **fields)


def _swizzle(number: int) -> TensorMapSwizzle:
    code = expect_integer(number, "swizzle")
    try:
        return TensorMapSwizzle(code)
    except ValueError:
        known = ", ".join([str(int(swizzle)) for swizzle in TensorMapSwizzle])
        raise InvalidValueError(f"swizzle = {code}; must be a number of the driver's", {"known": known}) from None


def _list(extents: tuple[int, ...]) -> str:
    return ", ".join(map(str, extents))


def _largest_divisor(extent: int, limit: int) -> int:
    """The largest divisor of `extent` that is at most `limit`, so that boxes tile the tile without overlap."""
    return next(size for size in range(min(extent, limit), 0, -1) if extent % size == 0)


_MODES: Final = {"gather4": "tile::gather4", "scatter4": "tile::scatter4"}


def _box(request: TensorMap) -> tuple[int, ...]:
    """Extents that one instruction moves, outermost first: the box over the element strides, or pixels x channels."""
    if isinstance(request, TensorMapTiled):
        extents = zip(request.box_dim, request.element_strides, strict=True)
        return tuple(-(-extent // stride) for extent, stride in extents)[::-1]
    return (*(1,) * (request.rank - 2), request.pixels_per_column, request.channels_per_pixel)


def _placed(atom: TmaAtom) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Tile, origins and offsets of a tiled atom, from its own list of instructions.

    The tile is what all CTAs of a multicast move together; the origins are those of the first CTA.
    """
    first, box = first_tile(atom), _box(atom.request)
    starts = [tuple(start[::-1]) for start in (first.coords - first.coords.min(axis=0)).tolist()]
    offsets = first.smem_offsets - first.smem_offsets[0]
    mine = len(starts) // atom.num_multicast
    tile = tuple(max(along) + extent for along, extent in zip(zip(*starts, strict=True), box, strict=True))
    return tile, tuple(starts[:mine]), tuple(offsets[:mine].tolist())


Copyable: TypeAlias = CopyShape | TileAtom | TmaCopyTraits | HasTraits
"""What a `CopyShape` is read from."""


def copy_shape_of(atom: Copyable, *, tensor: str = "A") -> CopyShape:
    """Read a `CopyShape` from an atom.

    Args:
        atom: a `TmaAtom`, an im2col atom, an operation or a descriptor of the reference pages (a descriptor is a copy
            of one box), a `CopyShape` (returned as it is), or anything with `.op` (an enum or text
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
    atom = cast("TileAtom | TmaCopyTraits", getattr(atom, "traits", atom))
    if isinstance(atom, TileAtom):
        expect_fits(atom)
    missing = [name for name in ("op", "request") if not hasattr(atom, name)]
    if missing:
        raise TmaBuildError(f"not an atom: no attribute {', '.join(missing)}", {"got": type(atom).__name__})
    named = getattr(atom, "op", None)
    op = as_op(str(getattr(named, "name", named)))
    if op.row.direction == "prefetch":
        raise TmaBuildError(f"{op} has no tile in shared memory: it is one instruction, ptx('prefetch', ...)")
    mode = _MODES.get(op.row.mode, op.row.mode)
    if mode == "im2col" and op.row.direction != "load":
        mode = "im2col_no_offs"
    row = FORMATS[int(atom.request.data_type or 0)]
    dtype = as_dtype(getattr(atom, "dtype", None) or row.dtypes[0])
    if dtype.bits != row.bits:
        dtype = as_dtype(getattr(atom, "internal_dtype", None) or row.dtypes[0])
    box = _box(atom.request)
    if op.row.mode in _MODES:
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
    tile = tuple(getattr(atom, "tile_shape", None) or (*box[:-1], box[-1] * issued))
    origins: tuple[tuple[int, ...], ...] = ()
    offsets: tuple[int, ...] = ()
    if isinstance(atom, TmaAtom) and mode == "tile":
        tile, origins, offsets = _placed(atom)
    shape = CopyShape(
        *(op.row.direction, tile, dtype, box, mode, _swizzle(atom.request.swizzle), multicast),
        reduce_kind=op.row.reduction or "add",
        tensor=tensor,
        cta_group=2 if op.row.ctas == 2 else 0,
        tx_bytes=total,
        origins=origins,
        offsets=offsets,
    )
    # Without origins and offsets if they are what a plain shape has anyway.
    plain = dataclasses.replace(shape, origins=(), offsets=())
    same = plain.instruction_box == shape.instruction_box and plain.box_origins == shape.box_origins
    same = same and all(plain.box_offset(box) == shape.box_offset(box) for box in range(shape.num_boxes))
    return plain if same else shape
