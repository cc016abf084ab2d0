"""The operands of the partition verifier, and the values derived from them, each computed when it is first used.

The steps of the verifier use the values in order, so that nothing expensive is computed for operands of the wrong kind.

The verifier has two dialects. `seed` follows the TMA Atoms reference page in the order of steps and operands, and
prints types without quotes. `dsl` follows the observed behaviour of the builder of CuTe DSL 4.8.1. This builder checks
the multicast first, prints the global operand before the shared operand, prints types in quotes, and prints run-time
integers of the shared layout and the CTA value map as `?`. It does not check descriptor limits. Failures of steps 2, 8,
9 and 10 were not observed in CuTe DSL; for these, `dsl` has the texts of the reference page in the style of the
dialect. cute_py prints the sizes and strides of a global tensor in both dialects; all tensors that were observed in
CuTe DSL had static shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from cute_py.argument_checks import expect_integer
from cute_py.arith_tuple.arith_tuple import E
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given, unless_refused
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, cosize, has_numbers, static
from cute_py.layout.leaf import Int
from cute_py.layout.recast import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle, get_swizzle_portion
from cute_py.layout.trees import leaves, rank_of
from cute_py.layout.trees import modes as modes_of
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.pointers import Pointer, make_gmem_ptr
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.gbasis import GBasis, construct_tma_gbasis, make_cta_v_map
from cute_py.tma.atom.im2col import Im2colAtom, Im2colBasis, im2col_basis, make_im2col_tma_copy
from cute_py.tma.atom.make import check_map, make_tma_atom
from cute_py.tma.atom.op import Op, check_op, movable_type
from cute_py.tma.atom.partition import tma_tensor
from cute_py.tma.atom.tile_atom import multicast_box, shape_and_stride, tma_strides
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from cute_py.tma.dialect import modes
from cute_py.tma.dialect.descriptors import (
    SharedLayout,
    SupportsDLPack,
    TmaDescriptorIm2col,
    TmaDescriptorTiled,
    half_of_pair,
    image_of,
    in_global_memory,
    map_swizzle,
    mode_sizes,
    movable_format,
    names_leaves,
    rules_of,
)
from cute_py.tma.dialect.diagnostics import broken
from cute_py.tma.dialect.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode
from cute_py.tmem.execute import S2TDescriptorView

__all__ = ["DIALECTS"]

COMPANION_TEXT: Final = "got num_multicast of "
"""Second text of step 11: the mode is not a multicast, but the count is not 1. The message ends with the count."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect of the verifier: order of the steps, printed form of the operands, and extent of the checks.

    The defaults come from the reference page.

    Attributes:
        known: whether run-time integers of the shared layout and the CTA value map print as integers, not as `?`.
        quote: the quote around each type. pair: the text between two types.
        trio: the order of three operands.
        companion: the text of step 11 for a multicast count with a mode that is not a multicast mode.
        limits: whether to check descriptor limits too: at most five modes (step 1), strides in multiples of 16 bytes
            (step 4), a swizzle that TMA supports (step 5), a box that a descriptor can have (step 9).
        split_oversize: whether box modes above 256 elements are cut into several instructions.
    """

    name: str
    order: tuple[int, ...] = tuple(range(1, 12))
    known: bool = True
    quote: str = ""
    pair: str = ", and "
    trio: tuple[str, ...] = ("smem", "gmem", "v_map")
    companion: str = COMPANION_TEXT + "{count}"
    limits: bool = True
    split_oversize: bool = False


SEED: Final = Dialect("seed")
DSL: Final = Dialect(
    "dsl",
    order=(11, *range(1, 11)),
    known=False,
    quote="'",
    pair=" and ",
    trio=("gmem", "smem", "v_map"),
    companion="expects a return TMA load type with multicast for num_multicast of {count} but got a return TMA load "
    "type does not support multicast",
    limits=False,
    split_oversize=True,
)
DIALECTS: Final = (SEED, DSL)


def as_dialect(name: Dialect | str) -> Dialect:
    """Return the dialect with this name.

    Raises:
        InvalidValueError: the dialect does not exist.
    """
    for dialect in DIALECTS:
        if name is dialect or (isinstance(name, str) and name == dialect.name):
            return dialect
    raise InvalidValueError(f"unknown dialect {given(name)}", {"known": ", ".join(d.name for d in DIALECTS)})


_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")


@dataclass(frozen=True)
class PartitionOperands:
    """The operands of one partition as the caller passed them, with derived values as properties.

    Attributes:
        smem: the tile in shared memory: a layout, a composed layout, or a tensor of a shared pointer.
        gtensor: the global tensor. partitioner: the tile; None: the shape of the shared layout.
        explicit_v_map: the CTA value map, if it is not the identity composed with the partitioner.
        num_multicast: the number of CTAs that share the load; None if the operand is absent. descriptor: the descriptor
            of the operation.
        s2t: the shared-memory descriptor for the copy to tensor memory.
    """

    smem: SharedLayout | Tensor
    gtensor: Tensor | SupportsDLPack
    partitioner: Tree | None
    explicit_v_map: Layout | None
    load_mode: TmaLoadMode | None
    store_mode: TmaStoreMode | None
    reduce_kind: TmaReduceKind | None
    num_multicast: int | None
    arch: str = "sm_90a"
    dialect: Dialect = SEED
    descriptor: TmaDescriptorTiled | TmaDescriptorIm2col | None = None
    s2t: S2TDescriptorView | None = None

    @property
    def kind(self) -> str:
        """'load', 'store' or 'reduce'."""
        if self.reduce_kind is not None:
            return "reduce"
        return "load" if self.store_mode is None else "store"

    @property
    def is_im2col(self) -> bool:
        """Whether the transfer is im2col. For a store, the mode decides; for a load, the descriptor decides."""
        if self.store_mode is None:
            return isinstance(self.descriptor, TmaDescriptorIm2col)
        return self.store_mode.is_im2col

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs load the tile, one half each."""
        return self.load_mode is TmaLoadMode.TWO_CTA

    @property
    def multicast(self) -> int:
        """Number of CTAs that share the load: 1 unless it is a multicast load with a count above 1."""
        if self.kind != "load" or self.load_mode is None or not self.load_mode.is_multicast:
            return 1
        return max(1, self.num_multicast or 1)

    @property
    def operation(self) -> Op:
        """CuTe's operation for this kind and mode. For an im2col reduction, it is the store through the same map."""
        return modes.operation_of(self.load_mode, self.store_mode, self.reduce_kind, self.is_im2col)

    @cached_property
    def gmem(self) -> Tensor | None:
        """The global tensor; None if the operand is not a tensor in global memory."""
        found = self.gtensor
        if not isinstance(found, Tensor):
            if not any(hasattr(found, name) for name in _ARRAYS):
                return None
            found = make_tensor(found)
        return found if in_global_memory(found) else None

    @cached_property
    def shown_gmem(self) -> Tensor | SupportsDLPack:
        """Printed form of the global operand."""
        return self.gtensor if self.gmem is None else self.gmem

    @cached_property
    def gmem_layout(self) -> Layout | None:
        """The layout of the global tensor; None if it is not plain."""
        layout = None if self.gmem is None else self.gmem.layout
        return layout if isinstance(layout, Layout) else None

    @cached_property
    def image_layout(self) -> Layout | None:
        """The global layout of an im2col transfer in im2col form; see `image_of`."""
        return None if self.gmem_layout is None else image_of(self.gmem_layout)

    @cached_property
    def dtype(self) -> DType:
        """Type of the global tensor's elements."""
        return as_dtype(None if self.gmem is None else self.gmem.element_type)

    @cached_property
    def whole_smem(self) -> SharedLayout:
        """The shared operand as a layout or composed layout; an operand of another kind is unchanged."""
        if not isinstance(self.smem, Tensor):
            return self.smem
        swizzle = getattr(self.smem.engine, "swizzle", None)
        if isinstance(swizzle, Swizzle) and swizzle.bits and isinstance(self.smem.layout, Layout):
            return ComposedLayout(swizzle, smem_ptr_flag(self.smem.element_type.bits), self.smem.layout)
        layout: SharedLayout = self.smem.layout
        return layout

    @cached_property
    def smem_layout(self) -> SharedLayout:
        """The shared-memory layout of one CTA's part.

        The layout of a tile of two CTAs is halved like their value map.
        """
        whole, plain, v_map = self.whole_smem, plain_layout(self.whole_smem), self.cta_v_map
        if not self.is_pair or plain is None or v_map is None or self.explicit_v_map is not None:
            return whole
        half = half_of_pair(plain)
        if not isinstance(half, Layout) or mode_sizes(half) != mode_sizes(v_map):
            return whole
        return ComposedLayout(whole.outer, whole.offset, half) if isinstance(whole, ComposedLayout) else half

    @cached_property
    def plain_smem(self) -> Layout | None:
        """The shared layout without its swizzle; None if it is not plain."""
        return plain_layout(self.smem_layout)

    @cached_property
    def swizzle(self) -> Swizzle:
        """Swizzle of the shared operand."""
        return get_swizzle_portion(self.whole_smem)

    @property
    def cu_swizzle(self) -> int:
        """The driver's swizzle code; 0 if TMA does not support the swizzle (a dialect without limits accepts it)."""
        return map_swizzle(self.swizzle)[0]

    @cached_property
    def cta_v_map(self) -> Layout | None:
        """The CTA value map (value index -> global mode); None if the operands define no such map.

        For a pair of CTAs, it is the map of the first CTA's half. An explicit map describes one CTA, as in CuTe's
        two-CTA MMAs.
        """
        if self.explicit_v_map is not None:
            return self.explicit_v_map if isinstance(self.explicit_v_map, Layout) else None
        whole = self.whole_v_map
        half = None if whole is None or not self.is_pair else half_of_pair(whole)
        return half if isinstance(half, Layout) else whole

    @cached_property
    def whole_v_map(self) -> Layout | None:
        """The value map of the whole tile that a CTA, or a pair of CTAs, loads."""
        tiler = self.tiler
        image = self.image_layout if self.is_im2col else None
        shape = getattr(self.shown_gmem, "shape", None) if image is None else mode_sizes(image)
        if shape is None or tiler is None:
            return None
        return unless_refused(make_cta_v_map, shape, tiler)

    @property
    def same_type(self) -> bool:
        """Whether the elements of a shared tensor and of the global tensor have the same width."""
        engine = getattr(self.smem, "engine", None)
        return not isinstance(engine, Pointer) or self.gmem is None or engine.dtype.bits == self.dtype.bits

    @property
    def tiler(self) -> Tree | None:
        """The tile with static sizes, by default the shape of the shared layout; None if it is not a tile."""
        if self.partitioner is not None:
            return unless_refused(static, self.partitioner)
        plain = plain_layout(self.whole_smem)
        return None if plain is None else static(mode_sizes(plain))

    @cached_property
    def gbasis(self) -> GBasis | Im2colBasis | None:
        """The G-basis of the tile, or None if there is none."""
        if self.gmem_layout is None or self.plain_smem is None or self.cta_v_map is None:
            return None
        operands = (self.gmem_layout, self.plain_smem, self.cta_v_map)
        try:
            if self.is_im2col:
                image = self.image_layout
                return None if image is None else im2col_basis(*operands[1:], image.shape)
            full = construct_tma_gbasis(*operands)
            split = self.dialect.split_oversize and static_extents(full.layout)
            return construct_tma_gbasis(*operands, split_oversize=True) if split else full
        except CuteError:
            return None

    @property
    def uncollapsed_rank(self) -> int:
        """Number of modes of the G-basis before modes are collapsed, including modes outside the tile."""
        if not isinstance(self.gbasis, GBasis):
            return 0
        tile, full = self.gbasis.trace.tma_gbasis_tile, self.gbasis.layout
        return rank_of(tile.shape) + len(leaves(full.stride)) - len(leaves(tile.stride))

    @cached_property
    def box(self) -> tuple[int, ...]:
        """The box that one CTA issues; empty if an extent is not static.

        A multicast count that does not fit leaves the box undivided.
        """
        if self.gbasis is None or not static_extents(self.gbasis.layout):
            return ()
        if isinstance(self.made, Im2colAtom):
            return self.made.plan.range_c, self.made.plan.range_whdn
        full = [math.prod(leaves(mode)) for mode in modes_of(self.gbasis.layout.shape)]
        cut, problem = multicast_box(full, self.multicast)
        return tuple(full if problem is not None else cut)

    @cached_property
    def made(self) -> TmaAtom | Im2colAtom | CuteError:
        """The atom that CuTe C++ makes from these operands, or the error if it makes none.

        The tensor map of the atom may break rules.
        """
        arch = None if check_op(self.operation, self.arch) else rules_of(self.arch)
        smem, gmem, v_map = self.smem_layout, self.gmem, self.cta_v_map
        if gmem is None or v_map is None:
            return InvalidValueError("an atom needs a global tensor and a V-map")
        tiler = static(mode_sizes(v_map)) if self.is_pair else self.tiler
        layout = self.image_layout if self.is_im2col else self.gmem_layout
        try:
            # Keep only the address of an array: an atom outlives the arrays that it was made for.
            tensor = make_tensor(make_gmem_ptr(int(gmem.engine.address), self.dtype), layout)
            if self.is_im2col:
                corners: dict[str, Any] = {}
                if isinstance(self.descriptor, TmaDescriptorIm2col):
                    # The atom has one filter position; the instruction has its offsets.
                    for name, corner in zip(("lower", "upper"), self.descriptor.corners, strict=True):
                        corners |= {f"{name}_corner_whd": corner, f"{name}_padding_whd": corner}
                    corners["stride_whd"] = self.descriptor.element_strides[1:-1]
                shared = (tiler, self.multicast)
                made = make_im2col_tma_copy(self.operation, tensor, smem, *shared, arch=arch, check=False, **corners)
                return made if self.reduce_kind is None else replace(made, reduction=self.reduce_kind.ptx)
            movable = self.dtype.name if movable_format(self.dtype) is None else movable_type(self.dtype)
            return make_tma_atom(
                *(self.operation, tensor, smem, tiler, self.multicast, movable, arch),
                cta_v_map=v_map,
                check=False,
                split_oversize=self.dialect.split_oversize,
                suggest=False,
            )
        except CuteError as error:
            return error

    @cached_property
    def map_rules(self) -> list[Diagnostic]:
        """The reasons why no tensor map can be made from these operands.

        The rules are the same as in `make_tma_atom`; the map must also agree with the operation's own descriptor if it
        has one.
        """
        made, arch = self.made, rules_of(self.arch)
        found: list[Diagnostic]
        if isinstance(made, Im2colAtom):
            found = violations(made, arch=arch)
        elif isinstance(made, TmaAtom):
            found = check_map(made.plan, made.request, arch)
        elif self.gbasis is None or self.is_im2col or movable_format(self.dtype) is None or not self.is_unknown:
            return [Diagnostic("no_atom", text=made.headline)]
        else:  # unknown values pass
            rank, full = len(self.box), [math.prod(leaves(mode)) for mode in modes_of(self.gbasis.layout.shape)]
            numbers = (movable_format(self.dtype), 0, (1,) * rank, (16,) * (rank - 1), self.box)
            problem = multicast_box(full, self.multicast)[1]
            found = [*violations(TensorMapTiled(*numbers, swizzle=self.cu_swizzle), arch=arch)]
            found += [] if problem is None else [problem]
        if not isinstance(made, CuteError) and self.store_mode is not None:
            try:
                modes.bounded_along_w(made.request, self.store_mode)
            except InvalidValueError as error:
                found.append(Diagnostic("wide_corners", text=error.headline))
        if self.uncollapsed_rank > MAX_RANK:
            text = f"{self.uncollapsed_rank} modes before any collapse; must be at most {MAX_RANK}"
            found.append(Diagnostic("uncollapsed_rank", text=text))
        return [*found, *self._contradictions, *self._unreadable]

    @property
    def described(self) -> TmaDescriptorTiled | TmaDescriptorIm2col | None:
        """The descriptor of the tensor map; if no map can be made, the operation's own descriptor."""
        made = self.made
        if isinstance(made, CuteError):
            return self.descriptor
        if isinstance(made, TmaAtom):
            state = (self.load_mode, self.store_mode, self.multicast)
            return TmaDescriptorTiled(made.gtensor, made.plan.gbasis, made.request, *state)
        request = modes.bounded_along_w(made.request, self.store_mode)
        return TmaDescriptorIm2col(made.gtensor, request, self.store_mode)

    @property
    def is_unknown(self) -> bool:
        """Whether sizes or strides are unknown, or a cluster can't have that many CTAs.

        The walk checks neither.
        """
        return self.gmem_layout is None or not has_numbers(self.gmem_layout) or self.multicast > MAX_CLUSTER

    @property
    def _contradictions(self) -> list[Diagnostic]:
        """The fields that differ between the operation's descriptor and the descriptor of the tile and the tensor."""
        made, other = self.made, self.descriptor
        if other is None or isinstance(made, CuteError):
            return []
        ours, theirs = modes.bounded_along_w(made.request, self.store_mode), other.request
        if ours.FIELDS != theirs.FIELDS:
            return [Diagnostic("descriptor", text=f"{other} for a map that is {ours.KIND}")]
        pairs = zip(ours.FIELDS, theirs.field_values(), ours.field_values(), strict=True)
        texts = ((a != b, f"the descriptor's {name} = {a}; the tile makes {b}") for name, a, b in pairs)
        return broken(*((differs, "descriptor", text) for differs, text in texts))

    @property
    def _unreadable(self) -> list[Diagnostic]:
        """The differences between the descriptor `s2t` and the tile that the copy leaves in shared memory."""
        if self.s2t is None or self.plain_smem is None:
            return []
        plan, held = self.s2t.plan, int(cosize(self.plain_smem)) * self.dtype.bits // 8
        swizzles = f"s2t reads with swizzle {int(plan.swizzle)}; the tile has {self.cu_swizzle}"
        rows, *others = [expect_integer(n, "a size of the tile") for n in mode_sizes(self.plain_smem)]
        read, tile = (plan.rows, plan.bytes_per_row), (rows, math.prod(others) * self.dtype.bits // 8)
        shapes = "s2t reads {} rows of {} bytes; the tile has {} of {}".format(*read, *tile)
        return broken(
            (int(plan.swizzle) != self.cu_swizzle, "s2t", swizzles),
            (read != tile, "s2t", shapes),
            (plan.smem_bytes > held, "s2t", f"s2t reads {plan.smem_bytes} bytes; the tile has {held}"),
        )

    @property
    def other_transfer(self) -> list[Diagnostic]:
        """The differences between the transfers of the descriptor and the operation: mode, or number of CTAs."""
        other, loads = self.descriptor, self.kind == "load"
        if other is None:
            return []
        mode = getattr(other, "mode", self.load_mode)  # an im2col descriptor is for any load
        theirs = mode if other.store_mode is None else other.store_mode
        ours = self.load_mode if self.store_mode is None else self.store_mode
        names = ["a load" if m is None else m.name for m in (theirs, ours)]
        count, operands = self.count_of_descriptor, self.num_multicast or 1
        text = f"the descriptor is for {count} CTAs, but the operation has num_multicast = {operands}"
        return broken(
            (theirs is not ours, "mode", f"the descriptor is for {names[0]}, but the operation is {names[1]}"),
            (loads and count != operands, "num_multicast", text),
        )

    @property
    def count_of_descriptor(self) -> int:
        """Number of CTAs that share the descriptor's box.

        For an im2col descriptor, this is the count of the operation.
        """
        if isinstance(self.descriptor, TmaDescriptorTiled):
            return self.descriptor.num_multicast
        return self.num_multicast or 1

    @cached_property
    def steps(self) -> list[int] | None:
        """The stride of each TMA mode in global memory in elements; None if one is unknown."""
        if self.gbasis is None or self.gmem_layout is None:
            return None
        try:
            return shape_and_stride(self.gmem_layout, self.gbasis.layout)[1]
        except InvalidTypeError:
            return None

    @cached_property
    def tma_layout(self) -> Layout | None:
        """The layout of the coordinate tensor; None if the G-basis does not name leaf modes of the global tensor."""
        gmem, basis = self.gmem_layout, self.gbasis
        if self.is_im2col and self.image_layout is not None:
            return walk_of_image(self.image_layout)
        if gmem is None or basis is None or not names_leaves(gmem.shape, basis.layout.stride):
            return None
        bits, rank = self.dtype.bits, rank_of(basis.layout.shape)
        byte_steps = [d * bits // 8 for d in self.steps or [0] * rank]
        steps = unless_refused(tma_strides, gmem, gmem, basis.layout, byte_steps, (bits, bits))
        tensor = None if steps is None else unless_refused(tma_tensor, gmem.shape, steps, rank)
        return tensor.layout if tensor is not None and isinstance(tensor.layout, Layout) else None


def plain_layout(layout: SharedLayout) -> Layout | None:
    """Return a layout without its swizzle; None if the result is not plain."""
    inner = getattr(layout, "inner", layout)
    return inner if isinstance(inner, Layout) else None


def walk_of_image(image: Layout) -> Layout:
    """Return the layout that maps an element of an image to its coordinates C, W, (H, (D,)) N.

    >>> print(walk_of_image(Layout(((16, 8, 2), 64))))
    ((16,8,2),64):((_1@1,_1@2,_1@3),_1@0)
    """
    ranks = [rank_of(mode) for mode in modes_of(image.shape)]
    pixels = tuple([E(1 + i) for i in range(max(ranks))])
    return Layout(image.shape, (pixels, E(0)) if ranks[0] > 1 else (E(0), pixels))


def static_extents(layout: Layout) -> bool:
    """Whether all sizes of a layout are static."""
    return all(type(s) is Int for s in leaves(layout.shape))
