"""make_im2col_tma_copy: the atom of an im2col load or store.

Source: cute/atom/copy_traits_sm90_im2col.hpp, make_im2col_tma_copy.

What an im2col atom is and why, in words: operands, stages, window, tensor map, instructions, bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cute_py.argument_checks import expect
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidValueError, TmaLimitError
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import domain_of, static
from cute_py.layout.leaf import Tree
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, rank_of
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.check import why_not_fits, why_not_units
from cute_py.tma.atom.formats import tensor_map_format
from cute_py.tma.atom.gbasis import make_cta_v_map
from cute_py.tma.atom.im2col import Im2colBasis, Im2colPlan, im2col_basis, plan_im2col, window
from cute_py.tma.atom.make import as_global_tensor, byte_swizzle
from cute_py.tma.atom.multicast import multicast_count
from cute_py.tma.atom.op import Op, as_op, why_not_on, why_not_shared
from cute_py.tma.atom.swizzle_mode import swizzle_row
from cute_py.tma.atom.tile_atom import TileAtom
from cute_py.tma.descriptor.formats import Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapIm2col
from cute_py.tma.descriptor.violations import violations


def explain_im2col(atom: Im2colAtom) -> str:
    """The whole story of an im2col atom, a section each."""
    plan, win = atom.plan, atom.plan.window
    lines = [
        f"{atom.op}: {atom.op.row.direction} of a tile of patches, {atom.arch}",
        "",
        "operands",
        f"  global tensor  {atom.gtensor}  ({atom.dtype})",
        f"  shared tile    {atom.smem_layout}",
        f"  swizzle        {atom.swizzle} on bytes = mode {atom.swizzle_row.name}",
        f"  multicast      {atom.num_multicast} CTA(s)",
        "",
        "from the tile to the box",
        *[f"  {name:<16} {value}\n  {'':<16} ({why})" for name, value, why in atom.gbasis.trace.steps()],
        "",
        "window, W first",
        *[f"  {name:<14} ({', '.join(str(int(n)) for n in getattr(win, name))})" for name in win.__slots__],
        "",
        "tensor map, innermost mode first",
    ]
    for i, extent in enumerate(plan.dims):
        step = "contiguous" if i == 0 else f"{plan.strides[i - 1]} bytes apart"
        lines.append(f"  mode {i}: {extent} elements, {step}, traversal stride {plan.element_strides[i]}")
    lines += [
        f"  one instruction: {plan.range_c} channels of {plan.range_whdn} pixels",
        "",
        "instructions",
        f"  {atom.instructions} per tile and CTA; coordinates are those of {atom.get_tma_tensor()}",
        "",
        "bytes",
        f"  one instruction delivers {atom.bytes_per_instruction} bytes to each CTA that receives it",
        f"  a CTA's barrier expects {atom.transaction_bytes} bytes a tile, pixels outside the image included",
        f"  the tile in shared memory is aligned to {atom.alignment} bytes",
    ]
    reason = atom.why_not()
    if reason is not None:
        lines += ["", "where it differs from its layouts", f"  {reason}"]
    return "\n".join(lines)


@dataclass(frozen=True)
class Im2colAtom(TileAtom):
    """An im2col copy. The attributes are those of `TmaAtom`; `plan` has the ranges and the window."""

    op: Op
    gtensor: Tensor
    smem_layout: Any
    cta_tiler: Any
    plan: Im2colPlan
    request: TensorMapIm2col
    swizzle: Swizzle
    dtype: DType
    arch: str = "sm_90a"

    @property
    def internal_dtype(self) -> DType:
        return self.dtype

    @property
    def num_val_src(self) -> int:
        """Elements of one instruction slot, all CTAs of a multicast together."""
        return self.plan.num_val_src

    @property
    def num_bits_per_tma(self) -> int:
        return self.plan.num_val_src * self.dtype.bits

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes that one instruction delivers: channels x pixels, whatever lies outside the image included."""
        return self.plan.range_c * self.plan.range_whdn * self.dtype.bits // 8

    @cached_property
    def gbasis(self) -> Im2colBasis:
        """The box, channels and pixels by global mode, with the stages that led to it."""
        v_map = make_cta_v_map(product_each(self.gtensor.shape), self.cta_tiler)
        return im2col_basis(self.tile, v_map, self.gtensor.shape)

    @property
    def g_stride(self) -> Tree:
        """Basis strides of the coordinate tensor: (output pixels, (channels, filter positions))."""
        stride: Tree = self.plan.tma_tensor.layout.outer.layout.stride
        return stride

    def why_not(self) -> str | None:
        """What about this atom does not do what its layouts say, or None, as of a `TmaAtom`.

        See `shared_fit`, `swizzle_units`, `why_not_shared`.
        """
        return (
            why_not_fits(self)
            or why_not_units(self.smem_layout, self.dtype.bits)
            or why_not_shared(self.op, self.num_multicast)
        )

    def explain(self) -> str:
        """Operands, stages with values, the window, the tensor map, instructions, bytes and alignment."""
        return explain_im2col(self)

    def get_tma_tensor(self, shape: Any = None) -> Tensor:
        """The coordinate tensor (output pixels, (channels, filter positions)); the shape is the convolution's own."""
        return self.plan.tma_tensor


def make_im2col_tma_copy(
    op: Any,
    gtensor: Any,
    smem_layout: Any,
    cta_tiler: Any = None,
    num_multicast: Any = 1,
    lower_corner_whd: Any = None,
    upper_corner_whd: Any = None,
    lower_padding_whd: Any = None,
    upper_padding_whd: Any = None,
    stride_whd: Any = None,
    lower_srt: Any = None,
    stride_srt: Any = None,
    arch: str = "sm_90a",
    *,
    check: bool = True,
    l2_promotion: L2Promotion | int = L2Promotion.NONE,
    oob_fill: OobFill | int = OobFill.NONE,
) -> Im2colAtom:
    """The atom of an im2col copy.

    Args:
        gtensor: ((w,h,d,n), c) or (c, (w,h,d,n)), elements.
        smem_layout: the tile, rank 2, static; cta_tiler: its shape by default.
        lower_corner_whd ... stride_srt: see `Im2colWindow`; left out, those of a 1x1 filter.
    Raises:
        GBasisError, StaticAssertError, TmaLimitError, InvalidValueError: as `make_tma_atom`.
    """
    op = as_op(op)
    expect(check, bool, "check")
    count = multicast_count(num_multicast)
    reason = why_not_on(op, arch, count)
    if reason is None and op.row.mode != "im2col":
        reason = f"{op} is no im2col operation"
    if reason is not None:
        raise InvalidValueError(reason)
    tensor = as_global_tensor(gtensor)
    dtype = as_dtype(tensor.element_type)
    smem = domain_of(smem_layout)
    tiler = product_each(smem.shape) if cta_tiler is None else static(cta_tiler)
    v_map = make_cta_v_map(product_each(tensor.shape), tiler)
    spatial = max(1, len(leaves(tensor.shape)) - 2) if rank_of(tensor.shape) == 2 else 1
    win = window(
        spatial,
        lower_corner=lower_corner_whd,
        upper_corner=upper_corner_whd,
        lower_padding=lower_padding_whd,
        upper_padding=upper_padding_whd,
        stride=stride_whd,
        lower_srt=lower_srt,
        stride_srt=stride_srt,
    )
    plan = plan_im2col(tensor, smem_layout, v_map, win, count)
    swizzle = byte_swizzle(smem_layout)
    request = TensorMapIm2col(
        tensor_map_format(dtype),
        int(tensor.engine.address),
        plan.dims,
        plan.strides,
        tuple(map(int, win.lower_corner)),
        tuple(map(int, win.upper_corner)),
        plan.range_c,
        plan.range_whdn,
        plan.element_strides,
        Interleave.NONE,
        TensorMapSwizzle(swizzle_row(swizzle).code),
        l2_promotion,
        oob_fill,
    )
    found = violations(request, arch=arch) if check else []
    if found:
        raise TmaLimitError(
            f"{len(found)} rule(s) of the im2col tensor map broken: {found[0].message}",
            {str(i + 1): v.message for i, v in enumerate(found)},
            violations=found,
        )
    return Im2colAtom(op, tensor, smem_layout, tiler, plan, request, swizzle, dtype, arch)
