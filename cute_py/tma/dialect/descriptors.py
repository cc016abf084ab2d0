"""The tiled and im2col descriptors of the dialect as values, and the functions that build them.

A descriptor has the arguments that its 128 bytes are encoded from. Axes are innermost first.

A builder makes a descriptor from a tensor and a plain static layout, or raises an error that lists all broken rules. It
first checks the rules of the TMA Atoms reference page: global memory, rank 1 to 5, no composed layout, a static layout.
Then it checks the rules of stage 3b of the TMA load walkthrough: the pointer, the box, the shared layout and padding.
Finally, it checks the limits of a tensor map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from cute_py.argument_checks import (
    expect,
    expect_fields,
    expect_integer,
    expect_integers,
    expect_items,
    record,
    wrong_type,
)
from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each, size
from cute_py.layout.layout import Layout, make_ordered_layout
from cute_py.layout.leaf import Int, as_leaf, is_static
from cute_py.layout.recast import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import at, leaves, rank_of
from cute_py.layout.trees import modes as tree_modes
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.gbasis import construct_tma_gbasis, make_cta_v_map
from cute_py.tma.atom.im2col import Im2colAtom, make_im2col_tma_copy
from cute_py.tma.atom.make import check_map, make_tma_atom
from cute_py.tma.atom.op import (
    SWIZZLE_MODES,
    Op,
    check_op,
    movable_type,
    swizzle_row,
    tensor_map_format,
    why_not_swizzle,
)
from cute_py.tma.atom.tile_atom import plan_tiled
from cute_py.tma.descriptor.data_types import L2Promotion, TensorMapDataType
from cute_py.tma.descriptor.describe import describe
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import CORNER_BOUNDS, GPUS
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled, corners_of
from cute_py.tma.descriptor.violations import violations
from cute_py.tma.dialect import diagnostics, modes
from cute_py.tma.dialect.modes import CacheMode, TmaLoadMode, TmaStoreMode

__all__ = [
    "TmaDescriptorIm2col",
    "TmaDescriptorTiled",
    "build_tma_descriptor",
    "build_tma_descriptor_im2col",
]

SharedLayout: TypeAlias = Layout | ComposedLayout
"""Layout of a tile in shared memory, with or without a swizzle."""


class SupportsDLPack(Protocol):
    """Interface of an array that supports DLPack: numpy, torch, cupy or JAX."""

    def __dlpack_device__(self) -> tuple[int, int]: ...


def in_global_memory(tensor: Tensor) -> bool:
    """Whether an object is a tensor in global memory: over a global pointer or an array, not over coordinates."""
    engine = tensor.engine
    return isinstance(engine, (Pointer, ArrayEngine)) and getattr(engine, "space", "gmem") == "gmem"


def is_static_layout(layout: Layout | None) -> bool:
    """Whether all sizes and strides of a layout are static.

    >>> is_static_layout(Layout((Int(8), Int(4)))), is_static_layout(Layout((8, Int(4)), (Int(4), Int(1))))
    (True, False)
    """
    numbers = [] if layout is None else [*leaves(layout.shape), *leaves(layout.stride)]
    return all(is_static(as_leaf(x)) for x in numbers)


def mode_sizes(layout: Layout) -> tuple[Tree, ...]:
    """Return the sizes of the top-level modes of a layout; an integer shape is one mode.

    >>> mode_sizes(Layout((Int(4), (Int(2), Int(3)))))
    (Int(4), Int(6))
    """
    shape = layout.shape
    return product_each(shape) if type(shape) is tuple else (size(layout),)


def names_leaves(shape: Tree, basis: Tree) -> bool:
    """Whether every basis element among the strides names a leaf of this shape.

    >>> from cute_py.arith_tuple.arith_tuple import E
    >>> names_leaves(((4, 2), 8), (E(0, 1), E(1))), names_leaves(((4, 2), 8), (E(0),)), names_leaves((8,), (E(0, 0),))
    (True, False, False)
    """
    for leaf in leaves(basis):
        path = tuple(getattr(leaf, "modes", ()))
        if type(shape) is not tuple and not path:
            continue
        parent = at(shape, path[:-1])
        if type(parent) is not tuple or not path or path[-1] >= len(parent) or type(parent[path[-1]]) is tuple:
            return False
    return True


def half_of_pair(layout: SharedLayout) -> SharedLayout | None:
    """Return the half of a tile that belongs to the first of two CTAs; None if the size of mode 0 is odd.

    CuTe's two-CTA MMAs split A and B along mode 0.

    >>> print(half_of_pair(Layout((Int(128), Int(64)), (Int(64), Int(1)))))
    (_64,_64):(_64,_1)
    """
    rows, *others = mode_sizes(layout.inner if isinstance(layout, ComposedLayout) else layout)
    if not isinstance(rows, int) or rows % 2:
        return None
    half: SharedLayout = composition(layout, (Int(int(rows) // 2), *others))
    return half


def image_of(layout: Layout) -> Layout | None:
    """Return an image layout in im2col form, ((w,h,d,n), c) or (c, (w,h,d,n)).

    The argument has this form, or the flat modes C, W, (H, (D,)) N. The result is None for other layouts.

    >>> print(image_of(Layout((64, 16, 8, 2))))
    ((16,8,2),64):((64,1024,8192),_1)
    """
    shape, stride = tree_modes(layout.shape), tree_modes(layout.stride)
    ranks = [rank_of(mode) for mode in shape]
    if len(ranks) == 2 and min(ranks) == 1 and max(ranks) + 1 in CORNER_BOUNDS:
        return layout
    if len(ranks) not in CORNER_BOUNDS or max(ranks) > 1:
        return None
    return Layout((tuple(shape[1:]), shape[0]), (tuple(stride[1:]), stride[0]))


def swizzled_layout(plain: Layout, code: int, dtype: DType) -> SharedLayout:
    """Compose a shared-memory layout with the swizzle that has this driver code."""
    if not code:
        return plain
    row = next(row for row in SWIZZLE_MODES if row.code == code)
    return ComposedLayout(Swizzle(row.bits, row.base, row.shift or 3), smem_ptr_flag(dtype.bits), plain)


def movable_format(dtype: DType) -> TensorMapDataType | None:
    """Return the format that elements move in: their own, or the format of equally wide integers; None if TMA has
    neither.

    >>> movable_format(as_dtype("int16")), movable_format(as_dtype("complex64"))
    (TensorMapDataType.UINT16, None)
    """
    try:
        return None if dtype.kind == "complex" else tensor_map_format(as_dtype(movable_type(dtype)))
    except StaticAssertError:
        return None


class _Descriptor:
    """Base class of both descriptors, with properties that read the tensor and the request of the tensor map."""

    __slots__ = ()
    mnemonic: ClassVar[str]
    tensor: Tensor
    request: TensorMap

    @property
    def base(self) -> int:
        """Address of the tensor in bytes."""
        return self.request.global_address

    @property
    def element_bits(self) -> int:
        """Width of an element in bits."""
        return as_dtype(self.tensor.element_type).bits

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per axis."""
        return self.request.global_dim

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of axes 1 and up in bytes."""
        return self.request.global_strides

    @property
    def element_strides(self) -> tuple[int, ...]:
        """Element stride of each axis."""
        return self.request.element_strides

    @property
    def swizzle(self) -> int:
        """The driver's swizzle code."""
        return self.request.swizzle

    @property
    def rank(self) -> int:
        """Number of axes."""
        return self.request.rank

    def explain(self) -> str:
        """Describe the tensor map, field by field."""
        return f"{self}\n{describe(self.request)}"

    def __str__(self) -> str:
        return self.mnemonic


def expect_descriptor(
    value: TmaDescriptorTiled | TmaDescriptorIm2col, rule: str
) -> TmaDescriptorTiled | TmaDescriptorIm2col:
    """Return the value if it is a TMA descriptor; `rule` is the text of the error, up to what was given."""
    if not isinstance(value, (TmaDescriptorTiled, TmaDescriptorIm2col)):
        raise wrong_type(rule, value)
    return value


def repr_of_descriptor(descriptor: TmaDescriptorTiled | TmaDescriptorIm2col) -> str:
    """Return the box, tensor and swizzle of a descriptor as one line."""
    d, kind = descriptor, type(descriptor).__name__
    return f"<{kind}: box {d.box} of {d.shape} x {d.element_bits} bits, swizzle {int(d.swizzle)}>"


def check_segments(sizes: tuple[int, ...], rank: int, paddings: int) -> list[Diagnostic]:
    """Check the operand counts of an operation that builds a descriptor for a tensor of this rank.

    The counts are for the operands tensor, layout, shapes, strides and paddings.

    >>> print(*check_segments((1, 1, 2, 1, 0), 2, 0), *check_segments((9, 9, 9, 9, 9), 2, 0))
    operand_segment_sizes = (9, 9, 9, 9, 9); must be 1, 1, 0 or 2, 0 or 1 or 2, 0
    """
    allowed = ((1,), (1,), (0, rank), (0, *range(max(rank - 1, 1), rank + 1)), (paddings,))
    fits = len(sizes) == len(allowed) and all(n in some for n, some in zip(sizes, allowed, strict=True))
    musts = ", ".join(" or ".join(map(str, some)) for some in allowed)
    text = f"operand_segment_sizes = {sizes}; must be {musts}"
    return diagnostics.broken((not fits, "operand_segment_sizes", text))


@dataclass(frozen=True, slots=True)
class TmaDescriptorTiled(_Descriptor):
    """A descriptor of tiled movement.

    Attributes:
        tensor: the global tensor; layout: the box over global modes (the G-basis).
        request: the arguments of cuTensorMapEncodeTiled. Address, shape, strides, box and swizzle come from it.
        num_multicast: number of CTAs that share the box.
        paddings: fill values, as given; cache_policy: the default policy.
        alignment: alignment of the descriptor itself, in bytes.
        operand_segment_sizes: counts of the operands tensor, layout, shapes, strides and paddings of the building
            operation. None: the counts of an operation that takes shape and strides from the tensor.

    Raises:
        TmaBuildError: no operation that builds a descriptor for this tensor has these operand counts.

    >>> import cute_py as cute
    >>> x = make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> made = build_tma_descriptor(x, Layout((Int(128), Int(64)), (Int(64), Int(1))))
    >>> made.shape, made.strides, made.box, made.num_multicast
    ((512, 1024), (1024,), (64, 128), 1)
    """

    tensor: Tensor
    layout: Layout
    request: TensorMapTiled
    mode: TmaLoadMode | None
    store_mode: TmaStoreMode | None
    num_multicast: int = 1
    paddings: tuple[int | float, ...] = ()
    cache_policy: CacheMode = CacheMode.CG
    alignment: int = 128
    operand_segment_sizes: tuple[int, ...] | None = None

    mnemonic: ClassVar[str] = "!cute_nvgpu.tma_descriptor_tiled"

    def __post_init__(self) -> None:
        expect_fields(self)
        sizes = (1, 1, 0, 0, len(self.paddings)) if self.operand_segment_sizes is None else self.operand_segment_sizes
        object.__setattr__(self, "operand_segment_sizes", sizes)
        diagnostics.refuse_operation(check_segments(sizes, rank_of(self.tensor.shape), len(self.paddings)))

    @property
    def box(self) -> tuple[int, ...]:
        """Elements per axis of the box that one CTA issues."""
        return self.request.box_dim

    @property
    def traits(self) -> TmaAtom:
        """CuTe's atom for a copy of one box, which is compact in shared memory.

        Raises:
            CuteError: see `make_tma_atom`; for example, the box is not a tile of the tensor's modes.
        """
        sizes, strides = mode_sizes(self.layout), leaves(self.layout.stride)
        owner = {tuple(getattr(d, "modes", ())): i for i, d in enumerate(strides)}
        paths = [(i,) for i in range(rank_of(self.tensor.shape))]
        if len(strides) != len(sizes) or set(owner) != set(paths):
            raise InvalidValueError("a box over nested modes defines no tile; make an atom", {"box": self.layout})
        order = [owner[path] for path in paths]
        plain = make_ordered_layout(tuple([sizes[i] for i in order]), tuple([Int(i) for i in order]))
        name = modes.operation_of(self.mode, self.store_mode, None, False)
        dtype = as_dtype(self.tensor.element_type)
        smem = swizzled_layout(plain, self.swizzle, dtype)
        return make_tma_atom(name, self.tensor, smem, None, self.num_multicast, movable_type(dtype))

    @property
    def attributes(self) -> dict[str, TmaLoadMode | TmaStoreMode | int | None]:
        """The attributes as the building operation prints them."""
        mode = self.mode if self.store_mode is None else self.store_mode
        return {"mode": mode, "elementBitWidth": self.element_bits, "num_multicast": self.num_multicast}

    __repr__ = repr_of_descriptor


@record
class TmaDescriptorIm2col(_Descriptor):
    """A descriptor of im2col movement over axes C, W, (H, (D,)) N.

    Attributes:
        request: the arguments of cuTensorMapEncodeIm2col; for a store along W, of cuTensorMapEncodeIm2colWide.
        For the other attributes, see `TmaDescriptorTiled`.

    >>> import cute_py as cute
    >>> x = make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((64, 8, 8, 2), (Int(1), 64, 512, 4096)))
    >>> build_tma_descriptor_im2col(x, (-1, -1), (-1, -1), 64, 128).corners
    ((-1, -1), (-1, -1))
    """

    tensor: Tensor
    request: TensorMapIm2col | TensorMapIm2colWide
    store_mode: TmaStoreMode | None = None
    paddings: tuple[int | float, ...] = ()
    cache_policy: CacheMode = CacheMode.CG
    alignment: int = 128

    mnemonic = "!cute_nvgpu.tma_descriptor_im2col"

    @property
    def corners(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lower and the upper corner of the pixel box, in elements along W, H, D."""
        wide = isinstance(self.request, TensorMapIm2colWide)
        return corners_of(self.request.as_im2col() if wide else self.request)  # type: ignore[union-attr]

    @property
    def box(self) -> tuple[int, int]:
        """(channels, pixels), the two modes of an im2col box."""
        return (self.request.channels_per_pixel, self.request.pixels_per_column)

    @property
    def traits(self) -> Im2colAtom:
        """CuTe's atom for a copy of one box (pixels by channels) at the first filter position."""
        dtype, (channels, pixels) = as_dtype(self.tensor.element_type), self.box
        plain = Layout((Int(pixels), Int(channels)), (Int(channels), Int(1)))
        name = modes.operation_of(None, self.store_mode, None, True)
        image = Tensor(self.tensor.engine, expect(image_of(self.tensor.layout), Layout, "the layout of an image"))
        smem, steps = swizzled_layout(plain, self.swizzle, dtype), self.element_strides[1:-1]
        return make_im2col_tma_copy(name, image, smem, None, 1, *self.corners, *self.corners, steps)

    @property
    def attributes(self) -> dict[str, str | int]:
        """The attributes as the building operation prints them."""
        return {"mode": "im2col", "elementBitWidth": self.element_bits}

    __repr__ = repr_of_descriptor


def check_source(source: Tensor) -> list[Diagnostic]:
    """Check that a tensor can be described: it must be in global memory, of rank 1 to 5, with a plain layout."""
    rank = rank_of(source.shape)
    return diagnostics.broken(
        (not in_global_memory(source), "not_global", str(source)),
        (not 1 <= rank <= MAX_RANK, "rank", f"rank(tensor) = {rank} modes; must be 1 to {MAX_RANK}"),
        (not isinstance(source.layout, Layout), "composed_layout", str(source.layout)),
    )


def _reshaped(tensor: Tensor, shapes: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """Return the tensor with its sizes and strides replaced by the shape and stride operands of the operation."""
    layout = tensor.layout
    rank = rank_of(layout.shape)
    if not shapes and not strides:
        return tensor
    if len(leaves(layout.shape)) != rank:
        raise InvalidValueError("shape and stride operands need a tensor of flat modes", {"layout": layout})
    if shapes and len(shapes) != rank:
        raise InvalidValueError(f"shapes() has {len(shapes)} values; must have {rank}, one per mode of the tensor")
    new = tuple(leaves(layout.stride))
    units = [i for i, d in enumerate(new) if isinstance(d, int) and d == 1]
    if len(strides) == rank:
        new = strides
    elif len(strides) == rank - 1 and units and strides:
        new = (*strides[: units[0]], Int(1), *strides[units[0] :])
    elif strides:
        text = f"strides() has {len(strides)} values; must have {rank - 1}, one for each mode except the contiguous one"
        raise InvalidValueError(text)
    return Tensor(tensor.engine, Layout(shapes or tuple(leaves(layout.shape)), new))


def _check_form(op: Op, count: int, arch: str, alignment: int, bits: int | None, dtype: DType) -> list[Diagnostic]:
    """Check architecture, descriptor alignment and element width. Both builders do this before they check the box."""
    found = check_op(op, arch, count) + diagnostics.check_pointer(expect_integer(alignment, "alignment", unit="bytes"))
    wrong = bits is not None and expect_integer(bits, "elementBitWidth") != dtype.bits
    text = f"elementBitWidth = {bits} bits; must be the {dtype.bits} of {dtype.name}"
    return found + diagnostics.broken((wrong, "width", text))


def box_basis(gmem: Layout, layout: Layout, pair: bool = False) -> Layout:
    """Return the box as a layout over global modes.

    A layout with basis strides is the box itself. Any other layout is a tile in shared memory, and the box is its
    G-basis. For the tile of a `pair` of CTAs, this is the box of one CTA.

    Raises:
        CuteError: no box exists for this tile.
    """
    if any(isinstance(d, ScaledBasis) for d in leaves(layout.stride)):
        if not names_leaves(gmem.shape, layout.stride):
            raise StaticAssertError("every basis stride names a mode of the tensor", {"layout": layout})
        return layout
    tile = (half_of_pair(layout) or layout) if pair else layout
    smem = expect(tile, Layout, "the layout of a tile")
    return construct_tma_gbasis(gmem, smem, make_cta_v_map(gmem.shape, mode_sizes(smem))).layout


_TEXT_OF = {"inner_bytes": "box_granularity", "inner_span": "smem_not_compatible"}
"""Rule of a tensor map -> the page's text for it."""


def check_request(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """List the rules that a map breaks: first the rules of the reference pages, with the texts of the pages."""
    rows = [(_TEXT_OF.get(rule.rule, ""), rule) for rule in found]
    named = [d for text, rule in rows for d in diagnostics.broken((bool(text), text, rule.message))]
    return [*named, *[rule for text, rule in rows if not text]]


def rules_of(arch: str) -> str:
    """Return the architecture whose rules apply to a map: `arch`, or sm_90a if `arch` has no TMA."""
    return arch if arch in GPUS else "sm_90a"


def map_swizzle(swizzle: Swizzle | None) -> tuple[int, list[Diagnostic]]:
    """Return the driver's code of a swizzle on bytes, and the reasons why TMA does not support the swizzle."""
    swizzle = Swizzle(0, 4, 3) if swizzle is None else swizzle
    reason = why_not_swizzle(swizzle)
    if reason is not None:
        return 0, diagnostics.broken((True, "smem_not_compatible", f"{swizzle}: {reason}"))
    return swizzle_row(swizzle).code, []


def build_tma_descriptor(
    tensor: Tensor | SupportsDLPack,
    layout: SharedLayout,
    shapes: Sequence[int] = (),
    strides: Sequence[int] = (),
    paddings: Sequence[int | float] = (),
    *,
    mode: TmaLoadMode | int | str | None = None,
    store_mode: TmaStoreMode | int | str | None = None,
    elementBitWidth: int | None = None,
    swizzle: Swizzle | None = None,
    num_multicast: int = 1,
    alignment: int = diagnostics.DESCRIPTOR_BYTES,
    arch: str = "sm_90a",
) -> TmaDescriptorTiled:
    """Build a descriptor of tiled movement.

    Args:
        tensor: a tensor in global memory, rank 1 to 5.
        layout: a plain static layout. It is the layout of the tile in shared memory, in elements and in the tensor's
            mode order, or the box over global modes (a G-basis).
        shapes: elements, one per mode of the tensor; overrides its own shape.
        strides: elements, one per mode except the contiguous mode (or one per mode).
        paddings: fill values of out-of-bounds elements; only zeros are allowed.
        mode: a load mode; 'tiled' is NO_MULTICAST.
        store_mode: a store mode, if the descriptor is for a store or a reduction.
        elementBitWidth: bits; default: the width of the tensor's elements.
        swizzle: the swizzle, on bytes.
        alignment: alignment of the descriptor, bytes.
    Raises:
        TmaBuildError: a rule is broken. The headline of the error is the text of the first broken rule; the facts list
            the others.

    >>> import cute_py as cute
    >>> x = make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> build_tma_descriptor(x, Layout((Int(128), Int(64)), (Int(64), Int(1)))).box
    (64, 128)
    """
    tensor = tensor if isinstance(tensor, Tensor) else make_tensor(tensor)
    found = check_source(tensor)
    if not isinstance(layout, Layout):
        if isinstance(layout, ComposedLayout):
            diagnostics.refuse_operation([*found, *diagnostics.broken((True, "composed_layout", str(layout)))])
        raise InvalidTypeError(f"a TMA descriptor takes a layout, got {type(layout).__name__} {given(layout)}")
    diagnostics.refuse_operation(
        [*found, *diagnostics.broken((not is_static_layout(layout), "not_static", str(layout)))]
    )
    dtype = as_dtype(tensor.element_type)
    for name, numbers in (("shapes", shapes), ("strides", strides)):
        if not isinstance(numbers, (tuple, list)):
            raise InvalidTypeError(f"{name} of a TMA descriptor must be a tuple of integers, got {given(numbers)}")
    paddings = expect_items(paddings, "paddings")
    num_multicast = expect_integer(num_multicast, "num_multicast", 1, unit="CTAs")
    tensor = _reshaped(tensor, tuple(shapes), tuple(strides))
    store = None if store_mode is None else modes.as_store_mode(store_mode)
    default = "tiled" if num_multicast == 1 else TmaLoadMode.W_MULTICAST
    load = None if store is not None else modes.as_load_mode(default if mode is None else mode)
    op = modes.operation_of(load, store, None, False)
    found = _check_form(op, num_multicast, arch, alignment, elementBitWidth, dtype)
    code, refused = map_swizzle(swizzle)
    found += refused
    sizes = (1, 1, len(shapes), len(strides), len(paddings))
    made = None
    try:
        basis = box_basis(tensor.layout, layout, load is TmaLoadMode.TWO_CTA)
        plan = plan_tiled(tensor.layout, basis, dtype, dtype, num_multicast)
    except CuteError as error:
        found += diagnostics.broken((True, "smem_not_compatible", f"{layout}: {error.headline}"))
    else:
        place = (movable_format(dtype), int(tensor.engine.address))
        shape = (plan.dims, plan.strides, plan.box)
        request = TensorMapTiled(*place, *shape, swizzle=code, l2_promotion=L2Promotion.B128)
        everything = (tensor, plan.gbasis, request, load, store, num_multicast, paddings)
        found += check_segments(sizes, rank_of(tensor.shape), len(paddings))
        found += check_request(check_map(plan, request, rules_of(arch)))
        if not found:
            made = TmaDescriptorTiled(*everything, alignment=alignment, operand_segment_sizes=sizes)
    diagnostics.refuse_operation(found + diagnostics.check_padding(paddings, store is not None))
    return expect(made, TmaDescriptorTiled, "the descriptor")


def build_tma_descriptor_im2col(
    tensor: Tensor | SupportsDLPack,
    lower_corner: Sequence[int],
    upper_corner: Sequence[int],
    channels_per_pixel: int,
    pixels_per_column: int,
    paddings: Sequence[int | float] = (),
    *,
    element_strides: Sequence[int] | None = None,
    store_mode: TmaStoreMode | int | str | None = None,
    elementBitWidth: int | None = None,
    swizzle: Swizzle | None = None,
    alignment: int = diagnostics.DESCRIPTOR_BYTES,
    arch: str = "sm_90a",
) -> TmaDescriptorIm2col:
    """Build a descriptor of im2col movement.

    Args:
        tensor: a tensor in global memory, modes C, W, (H, (D,)) N with C contiguous; rank 3 to 5.
        lower_corner, upper_corner: offsets of the pixel box's corners along W, H, D.
        channels_per_pixel, pixels_per_column: the box, 1 to 256 and 1 to 1024.
        element_strides: one per mode, 1 to 8; default 1.
    Raises:
        TmaBuildError: a rule is broken. The headline of the error is the text of the first broken rule; the facts list
            the others.

    >>> import cute_py as cute
    >>> x = make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((64, 8, 8, 2), (Int(1), 64, 512, 4096)))
    >>> build_tma_descriptor_im2col(x, (0, 0), (0, 0), 64, 128).box
    (64, 128)
    """
    tensor = tensor if isinstance(tensor, Tensor) else make_tensor(tensor)
    diagnostics.refuse_operation(check_source(tensor))
    shape, strides = _flat_numbers(tensor.layout)
    rank, dtype = len(shape), as_dtype(tensor.element_type)
    bits = dtype.bits
    lower_corner = expect_integers(lower_corner, "lower_corner")
    upper_corner = expect_integers(upper_corner, "upper_corner")
    channels_per_pixel = expect_integer(channels_per_pixel, "channels_per_pixel")
    pixels_per_column = expect_integer(pixels_per_column, "pixels_per_column")
    steps = (1,) * rank if element_strides is None else expect_integers(element_strides, "element_strides")
    paddings = expect_items(paddings, "paddings")
    store = None if store_mode is None else modes.as_store_mode(store_mode)
    op = modes.operation_of(None, store, None, True)
    found = _check_form(op, 1, arch, alignment, elementBitWidth, dtype)
    text = f"rank of an im2col tensor = {rank} modes; must be 3 to 5"
    if wrong := diagnostics.broken((rank not in CORNER_BOUNDS, "rank", text)):
        diagnostics.refuse_operation([*found, *wrong])
    code, refused = map_swizzle(swizzle)
    text = f"stride of mode 0 = {strides[0]} elements; channels must be contiguous"
    found += refused + diagnostics.broken((strides[0] != 1, "stride", text))
    address, byte_strides = int(tensor.engine.address), tuple(-(-d * bits // 8) for d in strides[1:])
    box = (lower_corner, upper_corner, channels_per_pixel, pixels_per_column)
    request = TensorMapIm2col(movable_format(dtype), address, shape, byte_strides, *box, steps, swizzle=code)
    found += check_request(violations(request, arch=rules_of(arch)))
    diagnostics.refuse_operation(found + diagnostics.check_padding(paddings, store is not None))
    return TmaDescriptorIm2col(tensor, modes.bounded_along_w(request, store), store, paddings, alignment=alignment)


def _flat_numbers(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides of flat modes as integers."""
    numbers = [*leaves(layout.shape), *leaves(layout.stride)]
    if not all(isinstance(n, int) for n in numbers):
        raise InvalidTypeError("a descriptor needs known numbers", {"layout": layout}, "use .subs() first")
    half = len(numbers) // 2
    return tuple(int(n) for n in numbers[:half]), tuple(int(n) for n in numbers[half:])
