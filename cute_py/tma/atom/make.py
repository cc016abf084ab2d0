"""make_tma_atom and make_tma_copy: the atom of a global tensor, a shared layout and a tile, as CuTe C++ makes it.

Source: cute/atom/copy_traits_sm90_tma.hpp, make_tma_atom, make_tma_copy_atom, make_tma_copy_desc. Differs: what C++
asserts, or leaves to the driver, is raised with all reasons; `check=False` gives the atom all the same.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect
from cute_py.dtypes import as_dtype
from cute_py.errors import GBasisError, InvalidTypeError, InvalidValueError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout, domain_of, static
from cute_py.layout.leaf import Int
from cute_py.layout.recast import recast_layout
from cute_py.layout.swizzle import Swizzle, get_nonswizzle_portion, get_swizzle_portion
from cute_py.layout.trees import rank_of
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor, make_tensor, swizzle_of
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.check import reasons, refusal
from cute_py.tma.atom.collapsed import why_not_collapsed
from cute_py.tma.atom.fixes import find_fixes
from cute_py.tma.atom.formats import tensor_map_format
from cute_py.tma.atom.gbasis import GBasis, construct_tma_gbasis, make_cta_v_map
from cute_py.tma.atom.multicast import multicast_count
from cute_py.tma.atom.op import Op, as_op, why_not_on
from cute_py.tma.atom.plan import TmaPlan, plan_tiled
from cute_py.tma.atom.swizzle_mode import swizzle_row
from cute_py.tma.descriptor.formats import Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapTiled


def as_global_tensor(gtensor: Any) -> Tensor:
    """A tensor over global memory: a tensor of a pointer, or an array.

    Raises:
        InvalidTypeError: coordinates, shared memory, or a composed layout.
    """
    tensor = gtensor if isinstance(gtensor, Tensor) else make_tensor(gtensor)
    if not isinstance(tensor.engine, (Pointer, ArrayEngine)) or getattr(tensor.engine, "space", "gmem") != "gmem":
        raise InvalidTypeError(
            "a TMA atom is made of a tensor in global memory",
            {"tensor": tensor},
            "make_tensor(make_gmem_ptr(...), ...)",
        )
    if not isinstance(tensor.layout, Layout):
        raise InvalidTypeError("the global tensor of a TMA atom has a plain layout", {"layout": tensor.layout})
    return tensor


def byte_swizzle(smem_layout: Any) -> Swizzle:
    """The swizzle that a shared layout asks of the engine, in bytes; see api notes on swizzle units."""
    if isinstance(smem_layout, Tensor):
        if isinstance(smem_layout.layout, ComposedLayout):
            return get_swizzle_portion(smem_layout.layout)
        return swizzle_of(smem_layout)
    return get_swizzle_portion(smem_layout)


def make_tma_atom(
    op: Any,
    gtensor: Any,
    smem_layout: Any,
    cta_tiler: Any = None,
    num_multicast: Any = 1,
    internal_dtype: Any = None,
    arch: str = "sm_90a",
    *,
    cta_v_map: Layout | None = None,
    check: bool = True,
    split_oversize: bool = False,
    suggest: bool = True,
    l2_promotion: L2Promotion | int = L2Promotion.B128,
    oob_fill: OobFill | int = OobFill.NONE,
) -> TmaAtom:
    """The TMA atom of one tile.

    Args:
        op: an `Op` or its name.
        gtensor: the whole global tensor (a tensor of `make_gmem_ptr`, or an array), elements of its type.
        smem_layout: layout of one tile in shared memory, static; composed with a swizzle for a swizzled tile.
        cta_tiler: the tile, by mode (sizes or layouts); modes beyond it are not part of the tile. Default: the shape of
            the shared layout, mode by mode.
        num_multicast: CTAs of a cluster that share the load (an int, or a shape or layout whose size counts).
        internal_dtype: the type that TMA counts in, for types that it has no format for; default the tensor's own.
        arch: the architecture whose rules apply.
        cta_v_map: the CTA's value map where it is not the identity composed with the tiler.
        check: raise what CuTe asserts, what the driver refuses, and a box that is not the tile's (see `collapsed`).
        split_oversize: cut box modes above 256, and boxes over collapsed modes, into several instructions.
        suggest: when refused, look for changes that work, try them, and tell them.
        l2_promotion, oob_fill: as the driver's arguments.
    Raises:
        GBasisError: no TMA box fits the tile and the shared layout.
        StaticAssertError: a swizzle or an element type that TMA has not.
        TmaLimitError: a limit of the tensor map, all at once.
        InvalidValueError: the operation is not on this architecture, or the multicast count does not fit it.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = cute.tma.make_smem_layout("K", "128B", "float16", (128, 64))
    >>> atom = cute.tma.make_tma_atom("SM90_TMA_LOAD", x, smem)
    >>> print(atom.gbasis, atom.transaction_bytes)
    (_64,_128):(_1@1,_1@0) 16384
    """
    op = as_op(op)
    for name, switch in (("check", check), ("split_oversize", split_oversize), ("suggest", suggest)):
        expect(switch, bool, name)
    count = multicast_count(num_multicast)
    reason = why_not_on(op, arch, count)
    if reason is not None:
        raise InvalidValueError(reason)
    tensor = as_global_tensor(gtensor)
    dtype = as_dtype(tensor.element_type)
    internal = dtype if internal_dtype is None else as_dtype(internal_dtype)
    swizzle = byte_swizzle(smem_layout)
    layout = smem_layout.layout if isinstance(smem_layout, Tensor) else smem_layout
    smem = get_nonswizzle_portion(layout)
    tiler = product_each(smem.shape) if cta_tiler is None else cta_tiler
    v_map = make_cta_v_map(tensor.shape, tiler) if cta_v_map is None else cta_v_map
    gmem = domain_of(tensor)
    basis = construct_tma_gbasis(gmem, smem, v_map, internal.name, dtype=dtype.name, split_oversize=split_oversize)
    plan = _plan(op, gmem, basis, dtype, internal, count)
    request = TensorMapTiled(
        tensor_map_format(internal),
        int(tensor.engine.address),
        plan.dims,
        plan.strides,
        plan.box,
        plan.element_strides,
        Interleave.NONE,
        TensorMapSwizzle(swizzle_row(swizzle).code),
        l2_promotion,
        oob_fill,
    )
    if check:
        found = reasons(plan, request, gmem, arch)
        inexact = why_not_collapsed(recast_layout(gmem, dtype, internal), plan.gbasis)
        if inexact is not None:
            found.append((*inexact, None))
        if found:
            arguments = {
                "op": op,
                "gtensor": tensor,
                "smem_layout": layout,
                "cta_tiler": cta_tiler,
                "num_multicast": count,
                "internal_dtype": internal.name,
                "arch": arch,
                "suggest": False,
            }
            fixes = find_fixes(make_tma_atom, arguments) if suggest and cta_v_map is None else []
            raise refusal(found, plan, gmem, [f.words for f in fixes])
    return TmaAtom(op, tensor, layout, tiler, basis, plan, request, swizzle, dtype, internal, arch)


def _plan(op: Op, gmem: Layout, basis: GBasis, dtype: Any, internal: Any, count: int) -> TmaPlan:
    layout, factor = basis.layout, 1
    if op.row.mode in ("gather4", "scatter4"):
        if rank_of(layout._shape) != 2:
            raise GBasisError("TMA Gather/Scatter only supports 2D tensors", {"G-basis": layout})
        layout = composition(layout, (layout.shape[0], Int(1)))
        factor = 4
    return plan_tiled(gmem, layout, dtype, internal, count, factor)


def make_tma_copy(
    op: Any,
    gtensor: Any,
    smem_layout: Any,
    cta_tiler: Any = None,
    num_multicast: Any = 1,
    internal_dtype: Any = None,
    arch: str = "sm_90a",
    **options: Any,
) -> TmaAtom:
    """C++'s make_tma_copy: the atom, with the tile given or taken from the shared layout.

    Plain ints in the tile are taken as static, as C++ needs them.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = cute.tma.make_smem_layout("K", "128B", "float16", (128, 64))
    >>> print(cute.tma.make_tma_copy(cute.tma.Op.SM90_TMA_STORE, x, smem).get_tma_tensor())
    ArithTuple(_0,_0) o (1024,512):(_1@1,_1@0)
    """
    tiler = None if cta_tiler is None else static(cta_tiler)
    return make_tma_atom(op, gtensor, smem_layout, tiler, num_multicast, internal_dtype, arch, **options)
