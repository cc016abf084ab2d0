"""The TMA atoms of the reference pages, without and with run-time state, and the instructions that they lower to.

The partition verifier makes the non-exec atom. It has all data of a TMA copy of a tile that do not depend on a barrier
or a cache policy: the box of one instruction, the number of instructions that one CTA issues for a tile, and the
shared-memory position and start coordinates of each instruction. The executable atom adds the run-time state. It lowers
to a descriptor prefetch, a byte expectation and bulk tensor copies, which can be written as PTX or run on the emulator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from cute_py.argument_checks import (
    expect,
    expect_fields,
    expect_having,
    expect_integer,
    expect_items,
    is_integer,
    record,
    wrong_type,
)
from cute_py.arith_tuple.arith_tuple import ArithTuple, as_arith_tuple
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaBuildError, counted, given
from cute_py.layout.arguments import Tree
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int, as_leaf, is_symbolic
from cute_py.layout.trees import leaves
from cute_py.ptx.render import Value, ptx, traits_modifiers
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.atom.op import Op
from cute_py.tma.atom.partition import tile_layout, tma_tensor
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, corners_of
from cute_py.tma.dialect.descriptors import SharedLayout, TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.diagnostics import short_repr
from cute_py.tma.dialect.mlir_text import layout_text, mlir_tree, type_text
from cute_py.tma.dialect.modes import CacheMode, TmaLoadMode, TmaReduceKind, TmaStoreMode, bounded_along_w, operation_of
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tma.emulator.memory import Memory, Window
from cute_py.tmem.execute import S2TDescriptorView

__all__ = [
    "BulkTensorCopy",
    "ExecTmaAtom",
    "ExpectTx",
    "NonExecTmaAtom",
    "PrefetchDescriptor",
    "TmaTensorType",
    "TransactionBarrier",
]

if TYPE_CHECKING:
    import sympy

    Number: TypeAlias = int | sympy.Expr
else:
    Number = object
"""A coordinate, or an expression of symbols."""


@dataclass(frozen=True, slots=True)
class TmaTensorType:
    """The type of the coordinate tensor: the global shape, with strides along the modes of the descriptor.

    `kind` is 'load', 'store' or 'reduce'; `rank` is the rank of the descriptor.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> print(cute.tma.partition(tile, gmem, (128, 64))[0].tensor_type)
    !cute.coord_tensor<(0,0),(1024,512),(1@1,1@0)>
    """

    kind: str
    dtype: str
    layout: Layout
    rank: int

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_integer(self.rank, "TmaTensorType.rank", 1, 5, "modes")

    @property
    def tensor(self) -> Tensor:
        """The coordinate tensor, with a static zero origin."""
        return tma_tensor(self.layout.shape, self.layout.stride, self.rank)

    def __str__(self) -> str:
        return type_text(self.tensor)


@dataclass(frozen=True, slots=True)
class TileInstruction:
    """One TMA instruction of a tile: its position in shared memory and its coordinates relative to the tile.

    The position is in elements from the tile's start. Coordinates are innermost first. Each is an integer, or an
    expression if it depends on an unknown stride.
    """

    smem_offset: int
    coord: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class NonExecTmaAtom:
    """A TMA copy without its run-time state.

    Attributes:
        kind: 'load', 'store' or 'reduce'.
        load_mode, store_mode, reduce_kind: the mode of a load, the mode of a store, and the reduction; None for other
            kinds.
        smem_layout: the tile in shared memory, with its swizzle.
        gmem_layout: the layout of the global tensor, in elements.
        gbasis: the G-basis (box shape : global modes), before a multicast divides the box.
        box: the box that one CTA issues, in elements, innermost mode first.
        cu_swizzle: the driver's swizzle code.
        verified: whether the partition verifier accepted the atom.
        descriptor: the descriptor operand of the operation, or else the descriptor of its tensor map; None if sizes or
            strides are unknown.
        traits: CuTe's atom of the same copy, which has the request, the bytes and the instruction; None if sizes or
            strides are unknown.
        s2t: the descriptor for a later copy of the tile from shared to tensor memory, if there is one.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> atom = cute.tma.non_exec_tiled_tma_load(gmem, tile)
    >>> atom.kind, atom.dtype, atom.box
    ('load', 'float16', (64, 128))
    """

    kind: str
    load_mode: TmaLoadMode | None
    store_mode: TmaStoreMode | None
    reduce_kind: TmaReduceKind | None
    dtype: str
    element_bits: int
    smem_layout: SharedLayout
    gmem_layout: Layout
    cta_v_map: Layout
    gbasis: Layout
    box: tuple[int, ...]
    num_multicast: int
    cu_swizzle: int
    tensor_type: TmaTensorType
    verified: bool = False
    descriptor: TmaDescriptorTiled | TmaDescriptorIm2col | None = None
    traits: TmaAtom | Im2colAtom | None = field(default=None, compare=False, repr=False)
    s2t: S2TDescriptorView | None = None

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_integer(self.num_multicast, "NonExecTmaAtom.num_multicast", 1, unit="CTAs")

    @property
    def operation(self) -> Op:
        """CuTe's operation for this kind and mode."""
        is_im2col = isinstance(self.descriptor, TmaDescriptorIm2col)
        return operation_of(self.load_mode, self.store_mode, self.reduce_kind, is_im2col)

    @property
    def known_traits(self) -> TmaAtom | Im2colAtom:
        """Return CuTe's atom of this copy.

        Raises:
            TmaBuildError: sizes or strides of the tensor are unknown.
        """
        if self.traits is None:
            raise TmaBuildError("a tensor map needs known numbers", {"atom": self}, "use .subs() first")
        return self.traits

    @property
    def request(self) -> TensorMap:
        """The request of the tensor map. Errors as `known_traits`."""
        return bounded_along_w(self.known_traits.request, self.store_mode)

    @property
    def rank(self) -> int:
        """The descriptor's rank."""
        return self.tensor_type.rank

    @property
    def no_offsets(self) -> tuple[int, ...]:
        """The offsets of an im2col load at the first filter position; empty for a tiled load."""
        return (0,) * (self.rank - 2 if isinstance(self.descriptor, TmaDescriptorIm2col) else 0)

    @property
    def tile_elements(self) -> int:
        """Number of elements of the tile."""
        return expect_integer(size(domain_of(self.smem_layout)), "the size of the tile", 0, unit="elements")

    @property
    def slot_elements(self) -> int:
        """Number of elements of one instruction slot, for all CTAs of a multicast together."""
        if self.traits is not None:
            return self.traits.num_val_src
        return math.prod(expect_integer(s, "a size of the G-basis") for s in leaves(self.gbasis.shape))

    @property
    def instructions(self) -> int:
        """Number of instructions that one CTA issues for a tile."""
        return -(-self.tile_elements // self.slot_elements)

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes of the box that one CTA issues, including out-of-bounds elements."""
        return math.prod(self.box) * self.element_bits // 8

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a receiving CTA's barrier must expect for one tile.

        The count includes the full slot of each instruction, whichever CTA issues it. If several CTAs divide a load
        without multicast, the count is the CTA's own slice.
        """
        alone = self.kind == "load" and self.load_mode is TmaLoadMode.NO_MULTICAST
        return self.instructions * self.slot_elements * self.element_bits // 8 // (self.num_multicast if alone else 1)

    def instruction(self, index: int, cta: int = 0) -> TileInstruction:
        """Return instruction `index` of a tile, as issued by CTA `cta` of a multicast.

        Raises:
            InvalidValueError: the instruction or the CTA does not exist.
        """
        for name, value, count in (("instruction", index, self.instructions), ("CTA", cta, self.num_multicast)):
            expect_integer(value, f"the number of the {name}", 0, count - 1)
        smem = domain_of(self.smem_layout)
        slots = tile_layout(smem, self.slot_elements)
        element = int(slots((cta * (self.slot_elements // self.num_multicast), index)))
        return TileInstruction(int(smem(element)), self.tma_coord(self.cta_v_map(element)))

    def place(self, start: Sequence[Number], index: int, cta: int = 0) -> tuple[Number, ...]:
        """Return the coordinates of instruction `index` of CTA `cta` for a tile at `start`, innermost first.

        For an im2col tile, `start` is its first pixel. The other pixels follow in the bounding box, along W first.

        Raises:
            InvalidValueError: an im2col instruction does not start at the first pixel of its tile, and its start can't
                be computed; or `start` does not have one coordinate per mode.
            InvalidTypeError: a coordinate is not an integer.
        """
        part = self.instruction(index, cta).coord
        start = expect_items(start, "the start of a tile", "a sequence of coordinates")
        if len(start) != self.rank:
            raise InvalidValueError(
                f"the start of a tile has {counted(len(start), 'coordinate')}; must have {self.rank}"
            )
        for number in start:
            expect_having(number, ("__add__", "__mul__", "__neg__"), "a coordinate of a tile's start")
            if getattr(number, "shape", ()):
                raise wrong_type("a coordinate of a tile's start must be a single number", number)
        request = self.request if isinstance(self.traits, Im2colAtom) else None
        first = start
        if isinstance(request, (TensorMapIm2col, TensorMapIm2colWide)) and part[1]:
            numbers = [expect_integer(c, "a coordinate of an im2col tile") for c in start]
            first = tuple(_next_pixel(request, numbers, expect_integer(part[1], "a pixel")))
            part = (part[0], *(0,) * (self.rank - 1))
        return tuple(int(c) + d if is_integer(c) else c + d for c, d in zip(first, part, strict=True))

    def explain(self) -> str:
        """Describe the mode of the copy, and then CuTe's atom for it."""
        return str(self) if self.traits is None else f"{self}\n\n{self.traits.explain()}"

    def tma_coord(self, coord: Tree) -> tuple[Number, ...]:
        """Map a coordinate of the global tensor to the coordinates of the instruction, innermost first."""
        tensor = self.tensor_type.tensor
        given: Any = as_arith_tuple(coord)  # type: ignore[arg-type]
        given = given if isinstance(given, ArithTuple) else ArithTuple(given)  # an integer is a coordinate of mode 0
        every = _filled(given.as_tuple(), tensor.shape if type(tensor.shape) is tuple else (tensor.shape,))
        found: Any = tensor(every if type(tensor.shape) is tuple else every[0])
        return tuple([int(c) if isinstance(c, int) else c for c in leaves(found.as_tuple())])

    def __str__(self) -> str:
        mode = next((m.name for m in (self.reduce_kind, self.store_mode, self.load_mode) if m is not None), "no mode")
        moved = f"{counted(self.instructions, 'instruction')}, {self.transaction_bytes} bytes per tile"
        box = f"box {mlir_tree(self.box)} of {self.dtype} by {layout_text(self.gbasis)}"
        return f"non-exec TMA {self.kind}, {mode}: {box}, {moved}"

    __repr__ = short_repr


def _filled(coord: Tree, shape: Tree) -> Any:
    """Extend a coordinate by zeros for the modes that it omits, at every level of nesting."""
    if type(coord) is not tuple or type(shape) is not tuple or len(coord) > len(shape):
        return coord
    named = [*coord, *[Int(0)] * (len(shape) - len(coord))]
    return tuple([_filled(c, s) for c, s in zip(named, shape, strict=True)])


def _next_pixel(request: TensorMapIm2col | TensorMapIm2colWide, start: list[int], count: int) -> list[int]:
    """Return the pixel that is `count` pixels after `coords` in the walk through the bounding box.

    >>> image = TensorMapIm2col(6, 4096, (64, 4, 3, 2), (128, 512, 1536), (-1, 0), (0, 0), 64, 16)
    >>> _next_pixel(image, [0, 2, 0, 0], 3)
    [0, 0, 1, 0]
    """
    lower, upper = corners_of(request)
    corners = [*zip(lower, upper, strict=True), *[(0, 0)] * (len(start) - 2 - len(lower))]
    out, left = list(start), count
    for i, (low, high) in enumerate(corners, 1):
        step = request.element_strides[i]
        extent = (request.global_dim[i] - 1 + high - low) // step + 1
        left += (start[i] - low) // step
        out[i], left = low + left % extent * step, left // extent
    out[-1] += left * request.element_strides[-1]
    return out


@runtime_checkable
class TransactionBarrier(Protocol):
    """Interface of a barrier whose current phase can expect more bytes.

    >>> from cute_py.tma.emulator import Mbarrier
    >>> barrier: TransactionBarrier = Mbarrier(1)
    >>> barrier.expect_tx(1024)
    >>> print(barrier)
    phase 0: 1 of 1 arrival pending, 0 of 1024 bytes arrived
    """

    def expect_tx(self, nbytes: int, /) -> None: ...


@runtime_checkable
class HasSpace(Protocol):
    """Interface of an object with its memory space as `space`, such as a pointer."""

    @property
    def space(self) -> str | Enum: ...


@runtime_checkable
class HasMemorySpace(Protocol):
    """Interface of an object with its memory space as `memory_space`, as in CuTe DSL."""

    @property
    def memory_space(self) -> str | Enum: ...


Place: TypeAlias = Tensor | HasSpace | HasMemorySpace
Coordinates: TypeAlias = Sequence[Number] | ArithTuple


@record
class ExecTmaAtom:
    """A verified atom with its run-time state. `multicast` is the mask of the receiving CTAs, or None.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> atom = cute.tma.non_exec_tiled_tma_load(gmem, tile, load_mode="W_MULTICAST", num_multicast=2)
    >>> cute.tma.make_exec_tma(atom, cute.tma.Mbarrier(1), multicast=0b11).multicast
    3
    """

    atom: NonExecTmaAtom
    barrier: Place | TransactionBarrier | None
    cache_mode: CacheMode
    multicast: int | None = None

    @property
    def cache_hint(self) -> int | None:
        """The L2 policy operand, or None."""
        return self.cache_mode.cache_hint

    @property
    def traits(self) -> TmaAtom | Im2colAtom | None:
        """CuTe's atom for the same copy."""
        return self.atom.traits

    @property
    def request(self) -> TensorMap:
        """The request of the tensor map."""
        return self.atom.request

    def explain(self) -> str:
        """Describe the atom and the state that it is bound to."""
        mask = "" if self.multicast is None else f", multicast mask {self.multicast:#06x}"
        return f"{self.atom.explain()}\n\nbound to\n  cache mode {self.cache_mode.value}{mask}"

    def __str__(self) -> str:
        return f"executable {self.atom}"

    __repr__ = short_repr


@record
class PrefetchDescriptor:
    """The prefetch of a descriptor into the descriptor cache.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> descriptor = cute.tma.build_tma_descriptor(gmem, cute.parse("(_128,_64):(_64,_1)"))
    >>> PrefetchDescriptor(descriptor).descriptor.request.rank
    2
    """

    descriptor: TmaDescriptorTiled | TmaDescriptorIm2col | TensorMap | None

    def ptx(self, arch: str | None = None) -> str:
        """Return the PTX instruction; %rd_desc is the address of the tensor map."""
        return ptx("prefetch.tensormap", operands={"map": "[%rd_desc]"}, arch=arch)

    def __str__(self) -> str:
        return "prefetch_tma_desc"

    __repr__ = short_repr


def store_bounds(arch: str | None) -> tuple[list[str], list[str]]:
    """Return the PTX lines that come before and after the copies of a store or a reduction.

    Before the copies, a fence makes the tile visible to the asynchronous proxy. After the copies, the thread commits
    the bulk group, and waits until the engine has read the tile.
    """
    waits = ptx("bulk.wait_group", read=True, operands={"groups": 0}, arch=arch)
    fence = ptx("fence.proxy.async", spaces="shared::cta", arch=arch)
    return [fence], [ptx("bulk.commit_group", arch=arch), waits]


@record
class ExpectTx:
    """An arrival at a barrier that also adds `nbytes` to the bytes that the barrier expects.

    >>> ExpectTx(16384).nbytes
    16384
    """

    nbytes: int

    def ptx(self, arch: str | None = None) -> str:
        """Return the PTX instruction; %r_mbar is the address of the barrier."""
        operands: dict[str, Value] = {"state": "_", "barrier": "[%r_mbar]", "bytes": self.nbytes}
        return ptx("mbarrier.arrive.expect_tx", spaces="shared", operands=operands, arch=arch)

    def __str__(self) -> str:
        return f"expect_tx {self.nbytes} bytes"


@dataclass(frozen=True, slots=True)
class BulkTensorCopy:
    """One cp.async.bulk.tensor or cp.reduce.async.bulk.tensor instruction with its operands.

    Attributes:
        exec_atom: the executable atom, which has the descriptor, the barrier, the cache policy and the multicast mask.
        coord: coordinates, innermost first.
        smem_offset: offset from the start of the tile in shared memory, elements.
        smem: shared-memory address in bytes; None if it is unknown.
        im2col_offsets: offsets of an im2col load, W first.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> atom = cute.tma.non_exec_tiled_tma_store(gmem, tile)
    >>> [copy] = cute.tma.lower_tma_store(cute.tma.make_exec_tma(atom, cute.tma.Mbarrier(1)), where, (0, 128))
    >>> copy.coord, copy.smem_offset
    ((0, 128), 0)
    """

    exec_atom: ExecTmaAtom = field(repr=False)
    coord: tuple[Number, ...]
    smem_offset: int
    smem: int | None = field(default=None, compare=False)
    im2col_offsets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)
        for c in self.coord:
            if not (isinstance(as_leaf(c), int) or is_symbolic(c)):
                raise InvalidTypeError(f"a coordinate must be a number or an expression, got {given(c)}")
        plain = tuple([int(c) if is_integer(c) and not isinstance(c, int) else c for c in self.coord])
        object.__setattr__(self, "coord", plain)

    @property
    def atom(self) -> NonExecTmaAtom:
        """The non-exec atom."""
        return self.exec_atom.atom

    @property
    def kind(self) -> str:
        """'load', 'store' or 'reduce'."""
        return self.atom.kind

    @property
    def nbytes(self) -> int:
        """Bytes of this CTA's box."""
        return self.atom.bytes_per_instruction

    @property
    def cache_hint(self) -> int | None:
        """The L2 policy operand, or None."""
        return self.exec_atom.cache_hint

    @property
    def multicast(self) -> int | None:
        """The mask of the receiving CTAs, or None."""
        return self.exec_atom.multicast

    @property
    def reduce_kind(self) -> TmaReduceKind | None:
        """The reduction; None for other operations."""
        return self.atom.reduce_kind

    @property
    def barrier(self) -> Place | TransactionBarrier | None:
        """The barrier that counts the bytes of a load."""
        return self.exec_atom.barrier if self.kind == "load" else None

    @property
    def descriptor(self) -> TmaDescriptorTiled | TmaDescriptorIm2col | None:
        """The descriptor that the copy uses."""
        return self.atom.descriptor

    @property
    def request(self) -> TensorMap:
        """The request of its tensor map."""
        return self.exec_atom.request

    @property
    def smem_bytes(self) -> int:
        """Offset from the start of the tile in shared memory, in bytes."""
        return self.smem_offset * self.atom.element_bits // 8

    def ptx(self, arch: str | None = None) -> str:
        """Return the PTX instruction; %rd_desc, %r_smem and %r_mbar are the addresses of tensor map, tile and barrier.

        Raises:
            EmissionError: `arch` does not have the instruction.
            TmaBuildError: sizes or strides of the tensor are unknown.
        """
        offset, is_load = self.smem_bytes, self.kind == "load"
        operands: dict[str, Value] = {"tensor": "%rd_desc", "coords": [*map(_shown, self.coord)]}
        operands["destination" if is_load else "source"] = f"%r_smem+{offset}" if offset else "%r_smem"
        operands |= {"barrier": "%r_mbar"} if is_load else {}
        modifiers: dict[str, Any] = traits_modifiers(self.atom.known_traits)[1]
        # Only a multicast mode may have a mask, and a mask makes the load a multicast.
        if is_load:
            modifiers["multicast"] = self.multicast is not None
        if self.multicast is not None:
            operands["mask"] = self.multicast
        if self.reduce_kind is not None:
            modifiers["op"] = self.reduce_kind.ptx
        if self.im2col_offsets:
            operands["offsets"] = self.im2col_offsets
        if self.cache_hint is not None:
            operands["policy"], modifiers["cache_hint"] = self.cache_hint, True
        return ptx(self.kind, operands=operands, arch=arch, **modifiers)

    def run(self, emulator: Emulator, gmem: Memory, smem: Window, *, gmem_base: int = 0) -> int:
        """Run the copy on the emulator and return its transaction bytes.

        Args:
            gmem, smem, gmem_base: see `Emulator.load`. The copy uses its own position in shared memory. If
                the address of the tile is unknown, the tile starts at byte 0 of `smem`.
        Raises:
            TmaTrap: see `Emulator.load`.
            InvalidTypeError: a coordinate is not an integer.
        """
        expect(emulator, Emulator, "an emulator")
        raw, coords = encode(self, arch=emulator.arch), [expect_integer(c, "a coordinate") for c in self.coord]
        place = self.smem_bytes if self.smem is None else self.smem
        operands = (raw, gmem, coords, smem)
        if self.reduce_kind is not None:
            return int(emulator.reduce(self.reduce_kind.ptx, *operands, smem_offset=place, gmem_base=gmem_base))
        if self.kind == "store":
            return int(emulator.store(*operands, smem_offset=place, gmem_base=gmem_base))
        counter = self.barrier if isinstance(self.barrier, Mbarrier) else address_of(self.barrier)
        return int(
            emulator.load(
                *operands,
                smem_offset=place,
                im2col_offsets=self.im2col_offsets,
                barrier=counter,
                multicast_mask=self.multicast,
                cta_group=self.atom.operation.row.ctas,
                gmem_base=gmem_base,
            )
        )

    def __str__(self) -> str:
        name = self.kind if self.reduce_kind is None else f"reduce.{self.reduce_kind.ptx}"
        coord = ", ".join(map(_shown, self.coord))
        return f"cp.async.bulk.tensor {name} ({coord}), element {self.smem_offset}, {self.nbytes} bytes"


def _shown(number: Number) -> str:
    return str(int(number)) if isinstance(number, int) else str(number)


def address_of(place: Place | TransactionBarrier | None) -> int | None:
    """Return the shared-memory address of a pointer or tensor in bytes; None if it is unknown."""
    found = getattr(place.engine if isinstance(place, Tensor) else place, "address", None)
    return None if found is None or not is_integer(found) else int(found)


def memory_space_of(value: object) -> str | None:
    """Return the memory space ('smem', 'gmem', ...) of a pointer, a tensor, or another object.

    The space is read from the attribute `memory_space` or `space`. The result is None if the object has neither.

    >>> from cute_py.tensor.pointers import make_smem_ptr
    >>> memory_space_of(make_smem_ptr(0, "float16"))
    'smem'
    """
    found = value.engine if isinstance(value, Tensor) else value
    space = getattr(found, "memory_space", getattr(found, "space", None))
    text = getattr(space, "name", space)
    if not isinstance(text, str):
        return None
    return "smem" if text.lower() in ("smem", "shared", "shared_memory") else text
