"""Collect the data of one copy that its traces and verifiers need, from its atom, tensor and attributes.

Direction and mode come from the atom's operation, box and swizzle from its request, and the position of each box from
its list of instructions. A request without an atom is treated as a load of one box. Sizes are in elements.

A trace names the tensor's modes in the tensor's own order, `M, K` for rank 2. A run-time size prints as an argument of
the kernel, `%M`, and a static size as an integer. A run-time stride prints as the product of the sizes of the modes
inside it, `%K`, if it equals that product; otherwise it is an argument of its own, `%sm`. Tile, coordinates and boxes
are outermost first: the last mode of the tensor map comes first. `dim_map` gives the mode of the tensor for each mode
of the tile:

    (256,128):(128,1), tile 64x32    shape = [%M, %K], stride = [%K, 1]    tile = [64, 32], dim_map = [0, 1]
    (256,128):(1,256), tile 64x32    shape = [%M, %K], stride = [1, %M]    tile = [32, 64], dim_map = [1, 0]
    (256,100):(128,1), tile 64x32    shape = [%M, %K], stride = [%sm, 1]   tile = [64, 32], dim_map = [0, 1]

Modes are the modes of the tensor map: merged modes count as one mode, and modes of static size 1 are omitted.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.argument_checks import expect, expect_choice, expect_integer, expect_integers, expect_items, is_integer
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CoordinateError, InvalidValueError, TmaBuildError, counted
from cute_py.layout.leaf import Int
from cute_py.layout.tiling import zipped_divide
from cute_py.layout.trees import at, leaves, modes
from cute_py.ptx.render import traits_modifiers
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.atom.op import as_op
from cute_py.tma.atom.partition import tile_layout
from cute_py.tma.atom.tile_atom import ExecutableCopy, TileAtom, expect_fits
from cute_py.tma.atom.tiles import as_coordinate, first_tile, tile_number, tile_start
from cute_py.tma.descriptor.data_types import FORMATS, TensorMapSwizzle
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.limits import SWIZZLE_SPAN
from cute_py.tma.descriptor.request import (
    W128_PIXELS,
    HasTraits,
    OpRow,
    TensorMap,
    TensorMapTiled,
    TmaCopyTraits,
    load_mode_of,
    request_of,
)
from cute_py.tma.dialect.atoms import ExecTmaAtom, NonExecTmaAtom
from cute_py.tma.dialect.descriptors import TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.diagnostics import (
    DESCRIPTOR_BYTES,
    check_atom,
    check_operands,
    mlir_type,
    refuse_operation,
    short_repr,
)
from cute_py.tma.dialect.modes import as_reduce_kind, check_reduction

if TYPE_CHECKING:
    from cute_py.layout.arguments import Tree

MEM_SEMANTICS: Final = ("weak", "relaxed", "acquire", "release", "acq_rel")
OPERATIONS: Final = ("load", "store", "reduce")
AXIS_NAMES: Final = ("N", "MK", "LMK", "NHWC", "NDHWC")
"""Names of the axes in traces, outermost first, by rank."""
_ROWS_BY_INDEX: Final = ("gather4", "scatter4")

Places: TypeAlias = tuple[tuple[int, ...], ...]


def enumerator(member: Enum) -> str:
    """Return the driver's spelling of an enum member whose name gives a number of bytes.

    >>> enumerator(TensorMapSwizzle.B128_ATOM_32B), enumerator(TensorMapSwizzle.NONE)
    ('128B_ATOM_32B', 'NONE')
    """
    return re.sub(r"^B(\d+)", r"\1B", member.name)


@dataclass(frozen=True, slots=True)
class TensorView:
    """The global tensor as traces print it: names, sizes and strides (in elements) of its modes, in its own order.

    dim_map: the mode of the tensor for each mode of the tile, outermost first. values: the values of the run-time
    arguments, '%M = 256, ...'.
    """

    axes: tuple[str, ...]
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    dim_map: tuple[int, ...]
    values: str = ""

    def outer_first(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Reorder one string per tensor mode into the order of the tile's modes."""
        return tuple([texts[mode] for mode in self.dim_map])


@dataclass(frozen=True, eq=False)
class TracedCopy:
    """The data of one copy that its traces and verifiers need.

    Attributes:
        instruction: the instruction of the copy; request: the request of its tensor map.
        dtype: the type of the elements that it moves.
        multicast: number of CTAs that share the tile; cta: the CTA that issues the boxes.
        tile: extents, outermost first. With multicast, it is the tile that all CTAs move together.
        origins, offsets: the start of each box in the tile (elements, outermost first) and in shared memory (bytes).
        transaction_bytes: bytes that one CTA receives.
        tensor: the tensor's name; view: the tensor.
        dtypes: the element types of the view and of the tile.
        operation: the operation that the program requests: load, store or reduce.
        in_bounds: for each mode of the tile, whether the tile is inside the tensor.
        box_rank: rank of the atom's box.
        im2col_offsets: offsets of the instruction, W first.
        cache_hint: whether the copy has an L2 policy.
        device: whether the descriptor is made on the device.
        alignment: alignment of the descriptor's address, bytes.
        fill: the value of elements outside the tensor.
        start: the coordinates of the tile's first element, innermost first; None if no tile was given.
        coordinate_type: the type of the coordinates.
        prefetch: whether the copy first prefetches its descriptor.
    """

    instruction: OpRow
    request: TensorMap
    dtype: DType
    multicast: int
    tile: tuple[int, ...]
    origins: Places
    offsets: tuple[int, ...]
    transaction_bytes: int
    tensor: str
    view: TensorView
    dtypes: tuple[DType, DType]
    operation: str
    in_bounds: tuple[bool, ...]
    box_rank: int
    im2col_offsets: tuple[int, ...] = ()
    cache_hint: bool = False
    device: bool = False
    mem_semantic: str = "relaxed"
    alignment: int = DESCRIPTOR_BYTES
    fill: float = 0
    start: tuple[int, ...] | None = None
    coordinate_type: str = "index"
    cta: int = 0
    prefetch: bool = False

    @property
    def descriptor(self) -> bytes:
        """The 128 bytes of the tensor map."""
        return encode(self.request)

    @property
    def direction(self) -> str:
        """'load', 'store' or 'reduce'."""
        return self.instruction.direction

    @property
    def mode(self) -> str:
        """Mode of the instruction, as PTX writes it."""
        return str(self.modifiers["mode"])

    @property
    def reduce_kind(self) -> str:
        """The reduction: 'add', 'min', ..."""
        return self.instruction.reduction or "add"

    @property
    def rank(self) -> int:
        """Number of modes of the tensor map."""
        return self.request.rank

    @property
    def rows_by_index(self) -> bool:
        """Whether the copy is a gather4 or scatter4, with one column coordinate and four row coordinates."""
        return self.instruction.mode in _ROWS_BY_INDEX

    @property
    def swizzle(self) -> TensorMapSwizzle:
        """Swizzle of the tensor map."""
        return TensorMapSwizzle(self.request.swizzle)

    @property
    def box(self) -> tuple[int, ...]:
        """Extents of the box that one instruction moves, outermost first."""
        return box_of(self.instruction, self.request)

    @property
    def num_boxes(self) -> int:
        """Number of instructions that one CTA issues for the tile."""
        return len(self.origins)

    @property
    def box_bytes(self) -> int:
        """Bytes that one instruction moves."""
        return math.prod(self.box) * self.dtype.bits // 8

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of a box."""
        return self.box[-1] * self.dtype.bits // 8

    @property
    def span(self) -> int:
        """Bytes of the swizzle span, which is the longest row that a box may have; 0 without a swizzle.

        The driver's swizzles 4 to 6, which permute larger chunks, also have a span of 128 bytes.
        """
        return SWIZZLE_SPAN.get(self.swizzle, 128) or 0

    @property
    def row_pitch(self) -> int:
        """Bytes from one row of a box to the next in shared memory. A swizzled row occupies a full span.

        Source: measured on NVIDIA H200, driver 580.159.04.
        """
        return max(self.row_bytes, self.span)

    @property
    def box_smem_bytes(self) -> int:
        """Bytes of shared memory that one box occupies, including the gaps between short swizzled rows."""
        return self.row_pitch * math.prod(self.box[:-1])

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that the tile occupies."""
        return max(self.offsets) + self.box_smem_bytes

    @property
    def is_regular(self) -> bool:
        """Whether the boxes cover the tile one after the other in shared memory, innermost mode slowest."""
        behind = range(0, self.box_smem_bytes * self.num_boxes, self.box_smem_bytes)
        return self.origins == laid(self.tile, self.box) and list(self.offsets) == list(behind)

    @property
    def modifiers(self) -> dict[str, Any]:
        """PTX modifiers of the instruction that moves one box."""
        own = {"multicast": self.multicast > 1, "cache_hint": self.cache_hint}
        return {name: choice for name, choice in traits_modifiers(self, own)[1].items() if choice}

    @property
    def swizzle_name(self) -> str:
        """The name of the swizzle: `swizzle_128B`, `swizzle_128B_atom_32B`."""
        return "swizzle_" + re.sub("[A-Z]{2,}", lambda found: found[0].lower(), enumerator(self.swizzle))

    @property
    def atom_name(self) -> str:
        """Direction, rank, element type, and multicast as a suffix: `load_2d_bf16`."""
        kind = f"reduce_{self.reduce_kind}" if self.direction == "reduce" else self.direction
        return f"{kind}_{self.rank}d_{mlir_type(self.dtype)}{'_mcast' if self.multicast > 1 else ''}"

    def instruction_origin(self, box: int) -> tuple[int, ...]:
        """Return the values that box number `box` adds to the coordinates of the tile, innermost first."""
        origin = self.origins[expect_integer(box, "box", 0, len(self.origins) - 1)][::-1]
        return (origin[0], 0, 0, 0, 0) if self.rows_by_index else origin

    def __str__(self) -> str:
        tile = "x".join([*map(str, self.tile), mlir_type(self.dtype)])
        return f"{self.atom_name} of {tile}, {counted(self.num_boxes, 'instruction')} of {list(self.box)}"

    __repr__ = short_repr


def box_of(row: OpRow, request: TensorMap) -> tuple[int, ...]:
    """Return the extents that one instruction moves, outermost first.

    For a tiled map, these are the box extents divided by the element strides. For im2col, they are the pixels (without
    halo pixels) and the channels.
    """
    if not isinstance(request, TensorMapTiled):
        is_128 = row.direction == "load" and load_mode_of(request) == "im2col::w::128"
        pixels = W128_PIXELS if is_128 else request.pixels_per_column
        return (*(1,) * (request.rank - 2), pixels, request.channels_per_pixel)
    pairs = zip(request.box_dim, request.element_strides, strict=True)
    box = tuple([-(-extent // stride) for extent, stride in pairs])[::-1]
    return (4, box[-1]) if row.mode in _ROWS_BY_INDEX else box


def laid(tile: tuple[int, ...], box: tuple[int, ...]) -> Places:
    """List the origins of the boxes that cover a tile, innermost mode slowest.

    >>> laid((4, 8), (2, 4))
    ((0, 0), (2, 0), (0, 4), (2, 4))
    """
    ranges = [range(0, extent, step) for extent, step in zip(tile, box, strict=True)]
    return tuple([origin[::-1] for origin in itertools.product(*reversed(ranges))])


def _placed(atom: TmaAtom, box: tuple[int, ...], cta: int) -> tuple[tuple[int, ...], Places, tuple[int, ...]]:
    """Return the tile, and the origins and offsets of its boxes, from the instructions of a tiled atom.

    All CTAs of a multicast move the tile together; the boxes belong to CTA `cta`.
    """
    first = first_tile(atom)
    lowest = [min(column) for column in zip(*first.rows, strict=True)]
    starts = [tuple(c - low for c, low in zip(row, lowest, strict=True))[::-1] for row in first.rows]
    offsets = [place - first.places[0] for place in first.places]
    mine = len(starts) // atom.num_multicast
    tile = tuple([max(along) + extent for along, extent in zip(zip(*starts, strict=True), box, strict=True)])
    own = slice(cta * mine, (cta + 1) * mine)
    return tile, tuple(starts[own]), tuple(offsets[own])


def _placed_patches(
    atom: Im2colAtom, box: tuple[int, ...], cta: int
) -> tuple[tuple[int, ...], Places, tuple[int, ...]]:
    """Return the tile, and the origins and offsets of its boxes, from an im2col atom.

    The boxes of a CTA differ only in their channels.

    Raises:
        TmaBuildError: a box does not begin at the first pixel of the tile. Its coordinates then follow the bounding
            box, so that they are not the sum of tile and box, and depend on the first pixel of the tile.
    """
    slots, v_map = tile_layout(atom.tile, atom.num_val_src), atom.gbasis.trace.cta_v_map
    ctas, shape = atom.num_multicast, modes(atom.gtensor.shape)
    channel_mode = int(type(shape[0]) is tuple)
    firsts = [
        int(slots((cta * (atom.num_val_src // ctas), i))) for cta in range(ctas) for i in range(atom.instructions)
    ]
    walked: list[Any] = [v_map(first) for first in firsts]
    starts = [[int(c) for c in coord.as_tuple()] + [0] for coord in walked]
    channels, pixels = ([start[mode] for start in starts] for mode in (channel_mode, 1 - channel_mode))
    mine = range(cta * atom.instructions, (cta + 1) * atom.instructions)
    if pixel := next((pixels[i] for i in mine if pixels[i] != pixels[mine[0]]), 0):
        text = (
            f"a box of an im2col tile begins at pixel {pixel} of the tile, whose coordinates depend on the "
            f"coordinates of the tile"
        )
        hint = "use the .ptx() of a tma_load or tma_store, which has the coordinates of its tile"
        raise TmaBuildError(text, {"box": f"{box[-2]} pixels of {box[-1]} channels"}, hint)
    offsets = tuple([int(atom.tile(firsts[i])) * atom.dtype.bits // 8 for i in mine])
    # The first pixel of a later CTA is not a sum either, so only a CTA that begins with the tile has origins.
    if mine[0] and pixels[mine[0]]:
        text = (
            f"CTA {cta} begins at pixel {pixels[mine[0]]} of an im2col tile, whose coordinates depend on the "
            f"coordinates of the tile"
        )
        raise TmaBuildError(text, hint="use the .ptx() of a tma_load, which has the coordinates of its tile")
    origins = tuple([(*(0,) * (len(box) - 1), channels[i]) for i in mine])
    return (*box[:-2], max(pixels) + box[-2], max(channels) + box[-1]), origins, offsets


Copyable: TypeAlias = TileAtom | ExecutableCopy | TmaCopyTraits | HasTraits | TensorMap
"""Source of a copy: an atom, bound or not; an operation or a descriptor of the reference pages; or a request."""


def _tensor_order(atom: object, rank: int) -> tuple[list[int], list[bool]]:
    """Return the modes of the tensor map in the tensor's own order, and which of them are static."""
    if not isinstance(atom, TmaAtom) or atom.plan.rank != rank:
        return list(range(rank))[::-1], [False] * rank
    paths, static = [], []
    gmem = atom.gtensor.layout
    for mode in modes(atom.plan.gbasis.stride):
        own = [tuple(getattr(d, "modes", ())) for d in leaves(mode)]
        paths.append(min(own))
        static.append(all(type(at(tree, path)) is Int for path in own for tree in (gmem.shape, gmem.stride)))
    return sorted(range(rank), key=paths.__getitem__), static


def view_of(atom: object, request: TensorMap, bits: int) -> TensorView:
    """Describe the tensor of a copy, from its atom and the request of its tensor map.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.Layout((256, 128), (cute.Int(1), 256)))
    >>> at = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.Layout((cute.Int(64), cute.Int(32))))
    >>> found = view_of(at, at.request, 16)
    >>> found.strides, found.dim_map, found.values
    (('1', '%M'), (1, 0), '%M = 256, %K = 128')
    """
    rank = request.rank
    order, static = _tensor_order(atom, rank)
    axes = AXIS_NAMES[rank - 1]
    dims, steps = request.global_dim, (1, *(stride * 8 // bits for stride in request.global_strides))
    values: dict[str, int] = {}

    def number(mode: int, name: str, value: int) -> str:
        """Format a size or stride: as an integer if it is static, otherwise as a name."""
        if static[mode]:
            return str(value)
        values[name] = value
        return name

    sizes = {mode: number(mode, f"%{axis}", dims[mode]) for axis, mode in zip(axes, order, strict=True)}
    strides = {0: "1"}
    for axis, mode in zip(axes, order, strict=True):
        inside = [m for m in order if m == 0 or (m != mode and steps[m] < steps[mode])]
        if mode and not static[mode] and math.prod([dims[m] for m in inside]) == steps[mode]:
            strides[mode] = "*".join([sizes[m] for m in inside])
        elif mode:
            strides[mode] = number(mode, f"%s{axis.lower()}", steps[mode])
    said = ", ".join(f"{name} = {value}" for name, value in values.items())
    dim_map = tuple([order.index(mode) for mode in reversed(range(rank))])
    return TensorView(tuple(axes), tuple([sizes[m] for m in order]), tuple([strides[m] for m in order]), dim_map, said)


def _start(
    atom: object, request: TensorMap, tile: tuple[int, ...], dtype: DType, tile_coord: Tree
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the coordinates of a tile's first element, innermost first, and the offsets of an im2col load, W first.

    `tile_coord` is the argument of `execute`: an index, or a coordinate in the tile modes of the divided tensor. For a
    copy without a divided tensor, such as a request without an atom, it counts tiles, outermost first.

    Raises:
        TmaBuildError: the request is an im2col request without an atom.
    """
    tiles = tile_coord if type(tile_coord) is tuple else (tile_coord,)
    work = first_tile(atom) if isinstance(atom, TmaAtom) and atom.plan.rank == len(tile) else None
    patches: Any = zipped_divide(atom.get_tma_tensor(), atom.cta_tiler) if isinstance(atom, Im2colAtom) else None
    if (work or patches) is None and not isinstance(request, TensorMapTiled):
        hint = "an atom of make_im2col_tma_copy knows the convolution, and its tiles"
        raise TmaBuildError("tiles of an im2col map have no index, because they follow the bounding box", hint=hint)
    shape: Any = tile if work is None else work.tile_shape
    shape = shape if patches is None else patches.shape[1]
    if shape is tile or type(tile_coord) is tuple:
        for wrong in check_operands(len(modes(shape)), len(tiles), (dtype, dtype)):
            raise CoordinateError(wrong.text)
    if patches is not None:
        *pixel, offsets = patches((0, tile_number(shape, tile_coord))).as_tuple()
        return tuple(map(int, leaves(tuple(pixel)))), tuple(map(int, leaves(offsets)))
    if work is None:
        numbers = [expect_integer(c, "a coordinate of a tile") for c in tiles]
        return tuple([c * t for c, t in zip(numbers, tile, strict=True)])[::-1], ()
    step = tile_start(work, tile_number(shape, tile_coord), len(tile))
    return tuple([begin + moved for begin, moved in zip(work.rows[0], step, strict=True)]), ()


def _is_inside(
    row: OpRow, request: TensorMap, tile: tuple[int, ...], start: tuple[int, ...] | None
) -> tuple[bool, ...]:
    """Return for each mode, outermost first, whether the tile is inside the tensor.

    Without a start, return whether every tile is.
    """
    if not isinstance(request, TensorMapTiled) or row.mode in _ROWS_BY_INDEX:
        return (True,) * len(tile)
    sizes = request.global_dim[::-1]
    if start is None:
        return tuple([n % t == 0 for n, t in zip(sizes, tile, strict=True)])
    places = zip(start[::-1], tile, sizes, strict=True)
    return tuple([first >= 0 and first + extent <= size for first, extent, size in places])


def _element(atom: object, request: TensorMap) -> DType:
    """Return the type of the elements that an atom moves: the type of the atom, or the type of its tensor map."""
    row = FORMATS[int(request.data_type or 0)]
    dtype = as_dtype(getattr(atom, "dtype", None) or row.dtypes[0])
    return dtype if dtype.bits == row.bits else as_dtype(getattr(atom, "internal_dtype", None) or row.dtypes[0])


def trace_copy(
    atom: Copyable | TracedCopy,
    tile_coord: Tree | None = None,
    *,
    tensor: str = "A",
    device_descriptor: bool = False,
    mem_semantic: str = "relaxed",
    in_bounds: Sequence[bool] | None = None,
    alignment: int | None = None,
    operation: str | None = None,
    im2col_offsets: Sequence[int] | None = None,
) -> TracedCopy:
    """Collect the data of a copy from its atom and the attributes of its operation.

    Args:
        atom: an atom, bound or not; an operation or a descriptor of the reference pages (a descriptor is a copy of one
            box); or a request. A `TracedCopy` is returned unchanged.
        tile_coord: the tile, as for `execute`; the default comes from the operation.
        tensor: the tensor's name in traces.
        device_descriptor: whether the tensor map is made on the device.
        alignment: alignment of the tensor map's address, bytes; default: the alignment of the descriptor.
        mem_semantic: one of `MEM_SEMANTICS`.
        in_bounds: one value per mode of the tile. The default is true if the operation promises it, otherwise whether
            the tile is inside the tensor.
        operation: load, store or reduce, as the program requests it; default: the operation of the atom.
        im2col_offsets: offsets of an im2col load, W first; default: the offsets of the operation, or of the tile.
    Raises:
        TmaBuildError: the argument is not an atom or is a prefetch, values contradict each other, the rank of the box
            differs from the rank of the atom's box ('tmaBoxDim and atomBoxDim length mismatch'), the part of one CTA of
            a multicast has fewer than 128 bytes, an im2col tile has several boxes of pixels, or a tile is given for an
            im2col request without an atom.
        TmaLimitError: the tile does not fit into the shared memory of a block.
        CoordinateError: the number of coordinates is wrong.
        InvalidValueError: the tile does not exist.
    """
    if isinstance(atom, TracedCopy):
        return atom
    tile_coord = None if tile_coord is None else as_coordinate(tile_coord)
    bound: Any = getattr(atom, "exec_atom", atom)
    given: Any = atom.atom if isinstance(atom, ExecutableCopy) else getattr(atom, "traits", atom)
    if isinstance(given, TileAtom):
        expect_fits(given)
    request, row = _request_and_row(given)
    refuse_operation(check_extents(request))
    if hasattr(bound, "traits"):  # for a store along W, the reference pages' operation has the wide map
        request = request_of(bound)
    box_rank = getattr(getattr(given, "plan", None), "rank", request.rank)
    dtype, box = _element(given, request), box_of(row, request)
    per_box = math.prod(box) * dtype.bits // 8
    multicast, total = (
        int(getattr(given, name, n)) for name, n in (("num_multicast", 1), ("transaction_bytes", per_box))
    )
    cta = int(getattr(atom, "cta", 0))
    if row.direction == "reduce":
        refuse_operation(check_reduction(as_reduce_kind(row.reduction or "add"), dtype.name))
    # The positions of the instructions are unknown if the atom's request has another rank, or if parts are too small.
    refuse_operation(check_atom("load", request.rank, box_rank, per_box, multicast))
    if total % max(per_box, 1):
        facts = {"box": f"{per_box} bytes, {' x '.join(map(str, box))}"}
        raise TmaBuildError.of_value("transaction bytes", total, "be a multiple of one box", "", facts)
    if isinstance(given, TmaAtom):
        tile, origins, offsets = _placed(given, box, cta)
    elif isinstance(given, Im2colAtom):
        tile, origins, offsets = _placed_patches(given, box, cta)
    else:  # each CTA of a multicast issues its slice, and receives the slices of all
        tile = (*box[:-1], box[-1] * max(1, total // per_box // multicast))
        origins = laid(tile, box)
        pitch = max(box[-1] * dtype.bits // 8, SWIZZLE_SPAN.get(TensorMapSwizzle(request.swizzle), 128) or 0)
        offsets = tuple(range(0, len(origins) * pitch * math.prod(box[:-1]), pitch * math.prod(box[:-1])))
    offered: tuple[int, ...] = next((copy.im2col_offsets for copy in getattr(atom, "copies", ())), ())
    start = _start_of_operation(atom, row)
    if tile_coord is not None:
        start, offered = _start(given, request, tile, dtype, tile_coord)
    numbers = tile_coord if isinstance(tile_coord, tuple) else (tile_coord,)
    widths = {8 * int(getattr(number, "itemsize", 8)) for number in numbers} - {64}
    named = str(getattr(atom, "name", ""))
    asked = named.removeprefix("atom.tma_") if named.startswith("atom.tma_") else row.direction
    promised = tile_coord is None and bool(getattr(atom, "inBounds", False))
    inside = (True,) * len(tile) if promised else _is_inside(row, request, tile, start)
    described = descriptor_of(atom)
    fills = [p for p in getattr(described, "paddings", ()) if p != 0]
    placed = getattr(described, "alignment", DESCRIPTOR_BYTES) if alignment is None else alignment
    if im2col_offsets is not None:
        offered = expect_integers(im2col_offsets, "im2col_offsets")
    return TracedCopy(
        *(row, request, dtype, multicast, tile, origins, offsets, total, tensor),
        view=view_of(given, request, dtype.bits),
        dtypes=(as_dtype(getattr(given, "dtype", dtype)), as_dtype(getattr(given, "internal_dtype", dtype))),
        operation=asked if operation is None else expect_choice(operation, OPERATIONS, "operation"),
        in_bounds=inside if in_bounds is None else expect_flags(in_bounds),
        box_rank=box_rank,
        im2col_offsets=offered if row.direction == "load" else (),
        cache_hint=getattr(bound, "cache_hint", None) is not None,
        device=expect(device_descriptor, bool, "device_descriptor"),
        mem_semantic=expect_choice(mem_semantic, MEM_SEMANTICS, "mem_semantic"),
        alignment=expect_integer(placed, "alignment", 0, unit="bytes"),
        fill=math.nan if getattr(request, "oob_fill", 0) else next(iter(fills), 0),
        start=start,
        coordinate_type=f"i{min(widths)}" if widths else "index",
        cta=cta,
        prefetch=bool(getattr(atom, "prefetch", False)),
    )


def descriptor_of(atom: object) -> TmaDescriptorTiled | TmaDescriptorIm2col | None:
    """Return the dialect's descriptor of an atom, bound or not, or of an operation; None if there is none."""
    found: Any = getattr(atom, "exec_atom", atom)
    found = found.atom if isinstance(found, ExecTmaAtom) else found
    found = found.descriptor if isinstance(found, NonExecTmaAtom) else found
    return found if isinstance(found, (TmaDescriptorTiled, TmaDescriptorIm2col)) else None


def _start_of_operation(atom: object, row: OpRow) -> tuple[int, ...] | None:
    """Return the coordinates of the first element of an operation's tile, innermost first.

    The result is None if there is no operation, or if its coordinates are unknown.
    """
    coord = getattr(atom, "coord", None)
    if not isinstance(coord, tuple) or row.mode in _ROWS_BY_INDEX or not all(is_integer(c) for c in coord):
        return None
    return tuple([int(c) for c in coord])


def check_extents(request: TensorMap) -> list[Diagnostic]:
    """Check that the extents and the element strides of a box are 1 or more; otherwise no bytes can be counted."""
    fields = ("box_dim", "element_strides", "channels_per_pixel", "pixels_per_column")
    found = []
    for name in fields:
        held = getattr(request, name, ())
        numbers = held if isinstance(held, tuple) else (held,)
        wrong = min(numbers, default=1) < 1
        text = f"{name} = {', '.join(map(str, numbers))}; must be 1 or more"
        found += [Diagnostic("box_extent", text=text)] * wrong
    return found


def _request_and_row(given: Any) -> tuple[TensorMap, OpRow]:
    """Return the request of the tensor map, and the properties of the instruction.

    Raises:
        TmaBuildError: the argument is not an atom, or it is a prefetch.
        InvalidValueError: the driver has no such swizzle.
    """
    if isinstance(given, TensorMap):
        row = OpRow("load", "tile" if isinstance(given, TensorMapTiled) else "im2col")
    else:
        missing = [name for name in ("op", "request") if not hasattr(given, name)]
        if missing:
            text = f"expected an atom, but the argument has no attribute {', '.join(missing)}"
            raise TmaBuildError(text, {"got": type(given).__name__})
        op = as_op(str(getattr(given.op, "name", given.op)))
        row = getattr(given, "instruction", op.row)
        if row.direction == "prefetch":
            raise TmaBuildError(f"{op} has no tile in shared memory: it is one instruction, ptx('prefetch', ...)")
    request = request_of(given)
    if request.swizzle not in list(TensorMapSwizzle):
        known = ", ".join([str(int(swizzle)) for swizzle in TensorMapSwizzle])
        text = f"swizzle = {int(request.swizzle)}; must be a swizzle number of the driver"
        raise InvalidValueError(text, {"known": known})
    return request, row


def expect_flags(flags: Sequence[bool]) -> tuple[bool, ...]:
    """Return in_bounds as a tuple of booleans."""
    return tuple([expect(flag, bool, "an element of in_bounds") for flag in expect_items(flags, "in_bounds")])
