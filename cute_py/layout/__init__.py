"""Layout algebra: CuTe's, value for value and text for text. Read `leaf`, `layout`, `coalesce`, `composition` first."""

from __future__ import annotations

from cute_py.layout.access import BankConflicts, Coalescing, bank_conflicts, coalescing
from cute_py.layout.analysis import Footprint, footprint, is_bijective, is_injective, overlaps
from cute_py.layout.coalesce import coalesce, filter, filter_zeros
from cute_py.layout.complement import complement
from cute_py.layout.composed import ComposedLayout, make_composed_layout
from cute_py.layout.composition import composition
from cute_py.layout.coordinate import crd2crd, crd2idx, idx2crd
from cute_py.layout.coprofile import coprofile, coshape, cosize
from cute_py.layout.derived import (
    domain_distribute,
    get_nonswizzle_portion,
    get_swizzle_portion,
    make_layout_like,
    max_alignment,
)
from cute_py.layout.divide import ceil_div, flat_divide, logical_divide, tiled_divide, zipped_divide
from cute_py.layout.int_tuple import (
    compatible,
    congruent,
    depth,
    elem_less,
    elem_scale,
    evenly_divides,
    inner_product,
    is_static,
    product,
    product_each,
    rank,
    round_up,
    shape,
    shape_div,
    size,
    stride,
    weakly_compatible,
    weakly_congruent,
)
from cute_py.layout.inverse import left_inverse, max_common_layout, max_common_vector, nullspace, right_inverse
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, make_layout, make_ordered_layout, static
from cute_py.layout.leaf import Int, IntegerModule
from cute_py.layout.leaf import underscore as _
from cute_py.layout.linear import LinearLayout, linear, same_function
from cute_py.layout.modes import append, flatten, group, group_modes, prepend, replace, select, take, unflatten
from cute_py.layout.offsets import offsets
from cute_py.layout.pointer_flagged import (
    SmemPtrFlag,
    as_position_independent_swizzle_layout,
    byte_swizzle,
    element_swizzle,
    smem_ptr_flag,
)
from cute_py.layout.preimage import coordinates
from cute_py.layout.product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from cute_py.layout.recast import downcast, recast_layout, upcast
from cute_py.layout.slicing import dice, domain_offset, slice_, slice_and_offset
from cute_py.layout.steps import Step, explained, steps
from cute_py.layout.swizzle import Swizzle, make_swizzle
from cute_py.moved import forward

__getattr__ = forward(__name__, "cute_py")

__all__ = [
    "BankConflicts",
    "Coalescing",
    "ComposedLayout",
    "Footprint",
    "Int",
    "IntegerModule",
    "Layout",
    "LayoutLeft",
    "LayoutRight",
    "LinearLayout",
    "SmemPtrFlag",
    "Step",
    "Swizzle",
    "_",
    "append",
    "as_position_independent_swizzle_layout",
    "bank_conflicts",
    "blocked_product",
    "byte_swizzle",
    "ceil_div",
    "coalesce",
    "coalescing",
    "compatible",
    "complement",
    "composition",
    "congruent",
    "coordinates",
    "coprofile",
    "coshape",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "dice",
    "domain_distribute",
    "domain_offset",
    "downcast",
    "elem_less",
    "elem_scale",
    "element_swizzle",
    "evenly_divides",
    "explained",
    "filter",
    "filter_zeros",
    "flat_divide",
    "flat_product",
    "flatten",
    "footprint",
    "get_nonswizzle_portion",
    "get_swizzle_portion",
    "group",
    "group_modes",
    "idx2crd",
    "inner_product",
    "is_bijective",
    "is_injective",
    "is_static",
    "left_inverse",
    "linear",
    "logical_divide",
    "logical_product",
    "make_composed_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "make_swizzle",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "offsets",
    "overlaps",
    "prepend",
    "product",
    "product_each",
    "raked_product",
    "rank",
    "recast_layout",
    "replace",
    "right_inverse",
    "round_up",
    "same_function",
    "select",
    "shape",
    "shape_div",
    "size",
    "slice_",
    "slice_and_offset",
    "smem_ptr_flag",
    "static",
    "steps",
    "stride",
    "take",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "unflatten",
    "upcast",
    "weakly_compatible",
    "weakly_congruent",
    "zipped_divide",
    "zipped_product",
]
