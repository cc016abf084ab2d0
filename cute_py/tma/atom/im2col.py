"""im2col copies: TMA reads the input of a convolution as the matrix of its patches.

The global tensor is ((w,h,d,n), c) or (c, (w,h,d,n)). One instruction moves `range_c` channels of `range_whdn` pixels.
The corners of the window define a bounding box in the image, and the instruction walks the pixels of this bounding box
along W first. The box of one instruction therefore has two modes, channels and pixels. They are the first two modes in
the order of shared memory, and each must step by one along a mode of the tensor. An offset (s,r,t) moves the sampled
pixel by the filter's position. The coordinate tensor maps (output pixel, (channel, filter position)) to (c, (w,h,d), n,
(s,r,t)). This map is not linear in the index of the output pixel, so the coordinate tensor has a composed layout.

Source: cute/atom/copy_traits_sm90_im2col.hpp, make_im2col_tma_copy, make_tma_atom_im2col and
make_im2col_tma_copy_desc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.arith_tuple.arith_tuple import ArithTuple, E, ScaledBasis, basis_get, basis_value
from cute_py.arith_tuple.iterators import ArithTupleIterator
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import GBasisError, InvalidValueError, TmaLimitError
from cute_py.layout.arguments import Leaf, Tree
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each, size
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int, as_leaf, trunc_div
from cute_py.layout.modes import flatten, take
from cute_py.layout.swizzle import Swizzle, get_nonswizzle_portion
from cute_py.layout.tiling import logical_divide
from cute_py.layout.trees import leaves, modes, rank_of
from cute_py.tensor.tensor import Tensor, make_identity_layout
from cute_py.tma.atom.gbasis import REASONS, Stages, Tiler, as_shared_layout, as_tiler, make_cta_v_map
from cute_py.tma.atom.make import as_global_tensor, engine_swizzle
from cute_py.tma.atom.op import Op, as_op, check_op, cta_count, swizzle_row, tensor_map_format
from cute_py.tma.atom.tile_atom import TileAtom
from cute_py.tma.descriptor.data_types import Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.request import OpRow, TensorMapIm2col, as_member
from cute_py.tma.descriptor.violations import listed_violations


@dataclass(frozen=True, slots=True)
class Im2colWindow:
    """The window of a convolution for im2col; each field has one value per spatial mode, W first.

    Attributes:
        lower_corner, upper_corner: the bounding box of base pixels, relative to the image's first and last pixel.
        lower_padding, upper_padding: start and end of the filter, relative to the same pixels.
        stride: traversal strides; lower_srt: filter offset of the first position; stride_srt: dilation, negative if the
            filter is walked backwards.

    Each value is static (`Int`) or known only at run time (`int`). Values computed from it inherit this property.

    >>> Im2colWindow((-1, -1), (-1, -1), (-1, -1), (1, 1), (1, 1), (0, 0), (1, 1)).lower_corner
    (-1, -1)
    """

    lower_corner: tuple[int, ...]
    upper_corner: tuple[int, ...]
    lower_padding: tuple[int, ...]
    upper_padding: tuple[int, ...]
    stride: tuple[int, ...]
    lower_srt: tuple[int, ...]
    stride_srt: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in self.__slots__:
            numbers = expect(getattr(self, name), tuple, name)
            object.__setattr__(self, name, tuple([_number(n, f"{name}[{i}]") for i, n in enumerate(numbers)]))

    @property
    def spatial(self) -> int:
        return len(self.lower_corner)


def _number(value: Leaf, name: str) -> int:
    """Check one value of a window and return it; an `Int` stays static."""
    number = expect_integer(value, name)
    return value if isinstance(value, Int) else number


def window(spatial: int, **given: Any) -> Im2colWindow:
    """Make a window; omitted arguments get CuTe's defaults (no padding, stride 1, a 1x1 filter, all static).

    Raises:
        InvalidValueError: a tuple has the wrong length, a stride is below 1, or a dilation is 0.
    """
    defaults = {name: Int(1 if name in ("stride", "stride_srt") else 0) for name in Im2colWindow.__slots__}
    values = {}
    for name, default in defaults.items():
        value = given.get(name)
        value = tuple(value) if isinstance(value, list) else value
        numbers = (
            (default,) * spatial if value is None else tuple([_number(n, f"a number of {name}") for n in modes(value)])
        )
        if len(numbers) != spatial:
            raise InvalidValueError(f"{name} has {len(numbers)} numbers; must have one for each of {spatial} modes")
        values[name] = numbers
    if any(n < 1 for n in values["stride"]):
        raise InvalidValueError(f"stride = {values['stride']}; must be at least 1")
    if any(n == 0 for n in values["stride_srt"]):
        raise InvalidValueError(f"stride_srt = {values['stride_srt']}; must not be 0")
    return Im2colWindow(**values)


@record
class Im2colPlan:
    """Sizes, strides and ranges of an im2col tensor map, and its coordinate tensor.

    `dims` (elements) and `strides` (bytes, modes 1..) are in C, W, H, D, N order. The instruction of one CTA moves
    `range_c` channels of `range_whdn` pixels. `num_val_src` counts the elements that all CTAs of a multicast move
    together.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("((8,8,2),64):((64,512,4096),_1)"))
    >>> plan = cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", x, "(_64,_64):(_64,_1)").plan
    >>> plan.range_c, plan.range_whdn
    (64, 64)
    """

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    range_c: int
    range_whdn: int
    num_val_src: int
    num_multicast: int
    tma_layout: Layout
    tma_tensor: Tensor
    window: Im2colWindow

    @property
    def box(self) -> tuple[int, int]:
        """(channels, pixels) of one instruction."""
        return self.range_c, self.range_whdn

    def __repr__(self) -> str:
        return f"<im2col plan: {self.range_c} channels of {self.range_whdn} pixels of a tensor {self.dims}>"


@dataclass(frozen=True, slots=True, repr=False)
class GemmCoordinates:
    """A layout of GEMM coordinates that accepts an arithmetic tuple.

    It is the outer function of the composed layout of the TMA tensor.
    """

    layout: Layout

    def __call__(self, coord: Any) -> Any:
        return self.layout(coord.as_tuple() if isinstance(coord, ArithTuple) else coord)

    def __str__(self) -> str:
        return str(self.layout)

    def __repr__(self) -> str:
        return f"<GEMM coordinates {self.layout}>"


@dataclass(frozen=True, slots=True)
class Im2colTrace(Stages):
    """The stages that lead to the box of an im2col copy."""

    reasons: ClassVar[Mapping[str, str]] = {
        **REASONS,
        "tma_gbasis": "its first two modes: channels and pixels of one box",
    }

    cta_v_map: Layout
    inv_smem_layout: Layout
    sidx2gmode_full: Layout
    tma_gbasis: Layout


@dataclass(frozen=True, slots=True)
class Im2colBasis:
    """The G-basis of an im2col copy.

    `layout` is the box that all CTAs of a multicast move together (box shape : global modes). `trace` has the stages of
    its construction.
    """

    layout: Layout
    trace: Im2colTrace = field(repr=False)

    def __str__(self) -> str:
        return str(self.layout)


def im2col_basis(smem: Layout, cta_v_map: Layout, shape: Tree) -> Im2colBasis:
    """Return the box of a tile: its channels and pixels, as modes of the global tensor.

    Args:
        smem: plain layout of the tile in shared memory.
        cta_v_map: the map of a CTA's values to modes of the tensor.
        shape: the shape of the global tensor, ((w,h,d,n), c) or (c, (w,h,d,n)).
    Raises:
        GBasisError: a condition of CuTe fails; the message is CuTe's.
    """
    if product_each(smem.shape) != product_each(cta_v_map.shape):
        raise GBasisError(
            "TMA requires CTA_Tile and SLayout top-level shape equivalence.",
            {"shared layout": smem, "CTA V-map": cta_v_map},
        )
    inverse = right_inverse(smem)
    walk = coalesce(composition(cta_v_map, inverse))
    full = flatten(composition(make_identity_layout(product_each(shape)), walk))
    unit = [isinstance(v, Int) and v == 1 for v in map(basis_value, modes(full.stride))]
    if unit[:2] != [True, True]:
        raise GBasisError(
            "IM2COL expects at least 2 modes of the smem to vectorize with gmem.",
            {"shared layout": smem, "shared index -> global mode": full},
        )
    box = take(full, 0, 2)
    return Im2colBasis(box, Im2colTrace(cta_v_map, inverse, walk, box))


def plan_im2col(
    gtensor: Tensor,
    smem_layout: Layout | ComposedLayout | Tensor,
    cta_v_map: Layout,
    win: Im2colWindow,
    num_multicast: int,
) -> Im2colPlan:
    """Compute the sizes, strides and ranges of an im2col tensor map, and its coordinate tensor.

    Args:
        gtensor: ((w,h,d,n), c) or (c, (w,h,d,n)); smem_layout: the tile, rank 2.
    Raises:
        GBasisError: a condition of CuTe fails; the message is CuTe's.
    """
    shape: Any = gtensor.shape
    stride = gtensor.stride
    if rank_of(shape) != 2 or sorted(rank_of(m) > 1 for m in shape) != [False, True]:
        raise InvalidValueError(
            "an im2col tensor must have the modes ((w,h,d,n), c) or (c, (w,h,d,n))", {"tensor": gtensor}
        )
    box = im2col_basis(get_nonswizzle_portion(smem_layout), cta_v_map, shape).layout
    total = int(size(box))
    if num_multicast < 1 or total % num_multicast:
        raise InvalidValueError.of_value(
            "num_multicast", num_multicast, f"divide the {total} elements of the box", "CTAs"
        )
    split = logical_divide(box, Layout(Int(total // num_multicast)))  # the part of each CTA
    split_shape: Any = split.shape
    split_stride: Any = split.stride
    if not isinstance(split_stride[0], tuple):
        facts = {"box": box, "elements of a CTA": total // num_multicast}
        raise InvalidValueError(f"num_multicast = {num_multicast} CTAs; each CTA must load more than one pixel", facts)
    inner, outer = split_stride[0]
    sizes = (*leaves(basis_get(inner, shape)), *leaves(basis_get(outer, shape)))
    steps = (*leaves(basis_get(inner, stride)), *leaves(basis_get(outer, stride)))
    spatial = len(sizes) - 2
    if spatial != win.spatial:
        raise InvalidValueError(f"the window has {win.spatial} spatial modes, but the tensor has {spatial}")
    bits = gtensor.element_type.bits
    range_c, range_whdn = (int(n) for n in split_shape[0])
    return Im2colPlan(
        tuple(int(n) for n in sizes),
        tuple(int(d) * bits // 8 for d in steps[1:]),
        (1, *map(int, win.stride), 1),
        range_c,
        range_whdn,
        total,
        num_multicast,
        split,
        _tma_tensor(sizes, win, outer, inner),
        win,
    )


def _divided(a: Leaf, b: Leaf) -> int:
    return trunc_div(as_leaf(a), as_leaf(b))  # type: ignore[return-value]


def _require_counts(what: str, counts: Sequence[Any], win: Im2colWindow) -> None:
    """Check that the window leaves 0 or more pixels or filter positions in each spatial mode."""
    for i, count in enumerate(counts):
        if int(count) < 0:
            names = ("lower_corner", "upper_corner", "lower_padding", "upper_padding")
            facts = {f"{name}_whd": getattr(win, name) for name in names}
            raise InvalidValueError.of_value(f"{what} of spatial mode {i}", int(count), "not be negative", "", facts)


def _tma_tensor(sizes: tuple[int, ...], win: Im2colWindow, outer: ScaledBasis, inner: ScaledBasis) -> Tensor:
    """Make the coordinate tensor: a GEMM layout with basis strides, composed with a linearized identity layout."""
    corners = list(zip(sizes[1:-1], win.lower_corner, win.upper_corner, win.stride, strict=True))
    pixels = tuple([_divided(n + up - low - Int(1), step) + Int(1) for n, low, up, step in corners])
    _require_counts("pixels", pixels, win)
    mn = (*pixels, sizes[-1])
    taps = []
    for i in range(win.spatial):
        step = win.stride_srt[i]
        pad = win.upper_padding[i] - win.upper_corner[i] if step > 0 else win.lower_corner[i] - win.lower_padding[i]
        taps.append(Int(1) + _divided(pad, step))
    _require_counts("filter positions", taps, win)
    k = (sizes[0], *taps)
    spatial = range(win.spatial)
    mn_stride = (*[win.stride[i] * E(1, i) for i in spatial], E(2))
    k_stride = (E(0), *[win.stride_srt[i] * E(3, i) for i in spatial])

    def ordered(first: Tree, second: Tree) -> tuple[Tree, Tree]:
        both = (first, second)
        return basis_get(outer, both), basis_get(inner, both)

    gemm = Layout(ordered(mn, k), ordered(mn_stride, k_stride))
    linear = make_identity_layout(ordered(size(mn), k))
    zero = ArithTuple(*ordered(Int(0), (Int(0),) * (win.spatial + 1)))
    start = ArithTuple(Int(0), win.lower_corner, Int(0), win.lower_srt)
    return Tensor(ArithTupleIterator(start), ComposedLayout(GemmCoordinates(gemm), zero, linear))


@dataclass(frozen=True, repr=False)
class Im2colAtom(TileAtom):
    """An im2col copy. It has the attributes of `TmaAtom`; `plan` has the ranges and the window.

    `reduction` is the operation that a store uses to combine elements with global memory (add, min, ...), or "" for a
    store that overwrites. CuTe has no operation for im2col reductions; they use the tensor map of the store.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("((8,8,2),64):((64,512,4096),_1)"))
    >>> atom = cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", x, "(_64,_64):(_64,_1)")
    >>> atom.request.channels_per_pixel, atom.request.pixels_per_column
    (64, 64)
    """

    op: Op
    gtensor: Tensor
    smem_layout: Layout | ComposedLayout
    cta_tiler: Any
    plan: Im2colPlan
    request: TensorMapIm2col
    swizzle: Swizzle
    dtype: DType
    arch: str = "sm_90a"
    reduction: str = ""

    @property
    def instruction(self) -> OpRow:
        """The instruction that this copy issues."""
        row = self.op.row
        return replace(row, direction="reduce", reduction=self.reduction) if self.reduction else row

    @cached_property
    def internal_dtype(self) -> DType:
        return self.dtype

    @property
    def num_bits_per_tma(self) -> int:
        return self.plan.num_val_src * self.dtype.bits

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes that one instruction delivers: all channels of all pixels, including pixels outside the image."""
        return self.plan.range_c * self.plan.range_whdn * self.dtype.bits // 8

    @cached_property
    def gbasis(self) -> Im2colBasis:
        """The box (channels and pixels, by global mode), with the stages of its construction."""
        v_map = make_cta_v_map(product_each(self.gtensor.shape), self.cta_tiler)
        return im2col_basis(self.tile, v_map, self.gtensor.shape)

    @property
    def g_stride(self) -> Tree:
        """Basis strides of the coordinate tensor: (output pixels, (channels, filter positions))."""
        stride: Tree = self.plan.tma_tensor.layout.outer.layout.stride
        return stride

    def explain(self) -> str:
        """Describe the operands, stages, window, tensor map, instructions, bytes and alignment."""
        plan, win = self.plan, self.plan.window
        middle = ["", "window, W first"]
        for name in win.__slots__:
            middle.append(f"  {name:<14} ({', '.join(str(int(n)) for n in getattr(win, name))})")
        middle += ["", "tensor map, innermost mode first"]
        for i, extent in enumerate(plan.dims):
            step = "contiguous" if i == 0 else f"{plan.strides[i - 1]} bytes apart"
            middle.append(f"  mode {i}: {extent} elements, {step}, traversal stride {plan.element_strides[i]}")
        middle.append(f"  one instruction: {plan.range_c} channels of {plan.range_whdn} pixels")
        slots = f"  {self.instructions} per tile and CTA; the coordinates come from {self.get_tma_tensor()}"
        return "\n".join(self._sections("a tile of patches", "", middle, [slots], "pixels outside the image"))

    def check(self) -> list[Diagnostic]:
        """List the differences between the copy that the TMA engine makes and the layouts.

        The list also has an entry for a store whose window begins before the image or ends after it, because such a
        store traps (measured).
        """
        low, high = self.request.pixel_box_lower_corner, self.request.pixel_box_upper_corner
        found = TileAtom.check(self)
        if self.instruction.direction in ("store", "reduce") and (min(low) < 0 or max(high) > 0):
            text = "an im2col store traps with a lower corner below 0 or an upper corner above 0"
            found.append(Diagnostic("im2col store", text=text, facts={"lower corner": low, "upper corner": high}))
        return found

    def get_tma_tensor(self, shape: Tree | None = None) -> Tensor:
        """Return the coordinate tensor (output pixels, (channels, filter positions)).

        The tensor and the window determine its shape; `shape` is ignored.
        """
        return self.plan.tma_tensor


Numbers: TypeAlias = int | Sequence[int] | None
"""A number of the window for each spatial mode, W first; a single number for one mode; None: the value of a 1x1
filter."""


def make_im2col_tma_copy(
    op: Op | str,
    gtensor: Any,
    smem_layout: Layout | ComposedLayout | Tensor | str,
    cta_tiler: Tiler | str | None = None,
    num_multicast: int | tuple[int, ...] | Layout = 1,
    lower_corner_whd: Numbers = None,
    upper_corner_whd: Numbers = None,
    lower_padding_whd: Numbers = None,
    upper_padding_whd: Numbers = None,
    stride_whd: Numbers = None,
    lower_srt: Numbers = None,
    stride_srt: Numbers = None,
    arch: str | None = None,
    *,
    check: bool = True,
    l2_promotion: L2Promotion | int | str = L2Promotion.NONE,
    oob_fill: OobFill | int | str = OobFill.NONE,
) -> Im2colAtom:
    """Make the TMA atom of an im2col copy, as CuTe C++'s make_im2col_tma_copy does.

    Args:
        gtensor: the global tensor, ((w,h,d,n), c) or (c, (w,h,d,n)), in elements.
        smem_layout: the tile in shared memory, static, rank 2. cta_tiler: the tile by mode; default: the shape of
            `smem_layout`.
        lower_corner_whd ... stride_srt: see `Im2colWindow`; the defaults are the values of a 1x1 filter.
    Raises:
        GBasisError, StaticAssertError, TmaLimitError, InvalidValueError: see `make_tma_atom`.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("((8,8,2),64):((64,512,4096),_1)"))
    >>> atom = make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", x, "(_64,_64):(_64,_1)")
    >>> atom.transaction_bytes
    8192
    """
    op = as_op(op)
    arch = f"sm_{op.row.arch}a" if arch is None else arch
    expect(check, bool, "check")
    count = cta_count(num_multicast)
    if unfit := check_op(op, arch, count):
        refuse(InvalidValueError, unfit)
    if op.row.mode != "im2col":
        raise InvalidValueError(f"{op} is not an im2col operation")
    tensor = as_global_tensor(gtensor)
    dtype = as_dtype(tensor.element_type)
    smem_layout = as_shared_layout(smem_layout)
    layout = smem_layout.layout if isinstance(smem_layout, Tensor) else smem_layout
    smem = domain_of(smem_layout)
    tiler = product_each(smem.shape) if cta_tiler is None else as_tiler(cta_tiler)
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
    plan = plan_im2col(tensor, layout, v_map, win, count)
    swizzle = engine_swizzle(smem_layout)
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
        as_member(L2Promotion, l2_promotion, "l2_promotion"),
        as_member(OobFill, oob_fill, "oob_fill"),
    )
    found = listed_violations(request, arch) if check else []
    several = f"the im2col tensor map breaks {len(found)} rules"
    refuse(TmaLimitError, found, several)
    return Im2colAtom(op, tensor, layout, tiler, plan, request, swizzle, dtype, arch)
