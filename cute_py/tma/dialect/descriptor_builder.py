"""The descriptor builder of the dialect: from a tensor and a plain static layout to a descriptor, or all its refusals.

Requirements in the order of the TMA Atoms reference page: global memory, rank 1 to 5, no composed layout, a static
layout; then what the TMA load walkthrough's stage 3b says about the pointer, the box, the shared layout and padding;
then the limits of a tensor map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect_integer, expect_integers, expect_items, is_integer
from cute_py.arith_tuple.scaled_basis import ScaledBasis
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, rank_of
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.gbasis import construct_tma_gbasis, make_cta_v_map
from cute_py.tma.atom.op import architecture_number, swizzle_row, why_not_swizzle
from cute_py.tma.atom.plan import TmaPlan, plan_tiled
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.dialect import diagnostics as say
from cute_py.tma.dialect.descriptors import TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.diagnostics import Finding, refuse
from cute_py.tma.dialect.modes import (
    IM2COL_GATE,
    MULTICAST_GATE,
    TMA_GATE,
    as_load_mode,
    as_store_mode,
    why_not_gate,
)
from cute_py.tma.dialect.verifier_operands import mode_sizes, names_leaves
from cute_py.tma.dialect.verifier_steps import static_layout

DESCRIPTOR_BYTES: Final = 128
"""Alignment of a descriptor, bytes."""
GRANULARITY_BITS: Final = 128
"""Bits; the innermost box row is a multiple of it."""

CORNER_LIMITS: Final = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
"""rank -> pixel box corners. Source: CUDA 13.0 driver API, cuTensorMapEncodeIm2col."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A tensor in global memory with a plain layout whose numbers are known."""

    tensor: Tensor
    layout: Layout
    dtype: DType

    @property
    def base(self) -> int:
        return int(self.tensor.engine.address)


def _source(tensor: Any, found: list[Finding]) -> _Source | None:
    """The tensor, or None with the requirements that it breaks."""
    if not isinstance(tensor, Tensor):
        tensor = make_tensor(tensor)
    engine = tensor.engine
    if not isinstance(engine, (Pointer, ArrayEngine)) or getattr(engine, "space", "gmem") != "gmem":
        found.append(Finding(say.NOT_GLOBAL, str(tensor)))
    rank = rank_of(tensor.shape)
    if not 1 <= rank <= MAX_RANK:
        found.append(Finding(f"rank(tensor) = {rank} modes; must be 1 to {MAX_RANK}"))
    if not isinstance(tensor.layout, Layout):
        found.append(Finding(say.COMPOSED_LAYOUT, str(tensor.layout)))
    if found:
        return None
    return _Source(tensor, tensor.layout, as_dtype(tensor.element_type))


def _reshaped(source: _Source, shapes: tuple[Any, ...], strides: tuple[Any, ...]) -> _Source:
    """The tensor with the shape and stride operands of the operation in place of its own numbers."""
    layout = source.layout
    rank = rank_of(layout.shape)
    if not shapes and not strides:
        return source
    if len(leaves(layout.shape)) != rank:
        raise InvalidValueError("shape and stride operands need a tensor of flat modes", {"layout": layout})
    if shapes and len(shapes) != rank:
        raise InvalidValueError(f"shapes() of {len(shapes)} values; must be {rank}, one per mode of the tensor")
    new = tuple(leaves(layout.stride))
    if strides:
        units = [i for i, d in enumerate(new) if isinstance(d, int) and d == 1]
        if len(strides) == rank:
            new = strides
        elif len(strides) == rank - 1 and units:
            new = (*strides[: units[0]], Int(1), *strides[units[0] :])
        else:
            raise InvalidValueError(
                f"strides() of {len(strides)} values; must be {rank - 1}, one per mode but the contiguous one"
            )
    changed = Layout(shapes or tuple(leaves(layout.shape)), new)
    return _Source(Tensor(source.tensor.engine, changed), changed, source.dtype)


def _padding(paddings: tuple[Any, ...], is_store: bool) -> list[Finding]:
    """Only zeros: no mode of this dialect supports another fill."""
    bad = [p for p in paddings if not (is_integer(p) or isinstance(p, float)) or p != 0]
    if not bad:
        return []
    return [Finding(say.STORE_PADDING if is_store else say.ZERO_PADDING_ONLY, f"paddings({given(bad[0])})")]


def _pointer(alignment: int) -> list[Finding]:
    alignment = expect_integer(alignment, "alignment", unit="bytes")
    if alignment >= DESCRIPTOR_BYTES and alignment % DESCRIPTOR_BYTES == 0:
        return []
    return [Finding(say.DESCRIPTOR_ALIGNMENT, f"{alignment} bytes")]


def _box_row(elements: int, bits: int) -> list[Finding]:
    elements = expect_integer(elements, "the inner side of the box", unit="elements")
    if elements * bits % GRANULARITY_BITS == 0:
        return []
    return [Finding(say.BOX_GRANULARITY, f"{elements} elements x {bits} bits = {elements * bits / 8:g} bytes")]


def _width(bits: int | None, dtype: DType) -> list[Finding]:
    if bits is None or expect_integer(bits, "elementBitWidth") == dtype.bits:
        return []
    return [Finding(f"elementBitWidth = {bits} bits; must be the {dtype.bits} of {dtype.name}")]


def box_basis(gmem: Layout, layout: Layout) -> Layout:
    """The box over global modes: the layout itself if it has basis strides, else the G-basis of a tile in shared
    memory that has this layout.

    Raises:
        CuteError: there is no such box.
    """
    if any(isinstance(d, ScaledBasis) for d in leaves(layout.stride)):
        if not names_leaves(gmem._shape, layout._stride):
            raise StaticAssertError("every basis stride names a mode of the tensor", {"layout": layout})
        return layout
    return construct_tma_gbasis(gmem, layout, make_cta_v_map(gmem.shape, mode_sizes(layout))).layout


def swizzle_findings(swizzle: Swizzle, row_bits: int) -> list[Finding]:
    """Why the box can't lie in shared memory with this swizzle on bytes: no such mode, or rows longer than its span."""
    reason = why_not_swizzle(swizzle)
    if reason is not None:
        return [Finding(say.SMEM_NOT_COMPATIBLE, f"{swizzle}: {reason}")]
    row = swizzle_row(swizzle)
    if row.code and row_bits > row.span * 8:
        return [
            Finding(say.SMEM_NOT_COMPATIBLE, f"box rows of {row_bits // 8} bytes; at most {row.span} with {row.name}")
        ]
    return []


def build_tma_descriptor(
    tensor: Any,
    layout: Any,
    shapes: tuple[Any, ...] = (),
    strides: tuple[Any, ...] = (),
    paddings: tuple[Any, ...] = (),
    *,
    mode: Any = None,
    store_mode: Any = None,
    elementBitWidth: int | None = None,
    swizzle: Swizzle | None = None,
    num_multicast: int = 1,
    alignment: int = DESCRIPTOR_BYTES,
    arch: str = "sm_90a",
) -> TmaDescriptorTiled:
    """A descriptor of tiled movement.

    Args:
        tensor: in global memory, rank 1 to 5.
        layout: plain and static: the layout of the tile in shared memory, in elements and in the tensor's mode order,
            or the box over global modes (a G-basis).
        shapes: elements, one per mode of the tensor, in place of its own. strides: elements, one per mode but the
            contiguous one (or all).
        paddings: what out-of-bounds elements are filled with; zeros.
        mode: a load mode; 'tiled' is NO_MULTICAST. store_mode: the descriptor is for a store or a reduction.
        elementBitWidth: bits; the tensor's own if not given. swizzle: on bytes. alignment: of the descriptor, bytes.
    Raises:
        TmaBuildError: a requirement is broken; the headline is the first one's text, the facts list the others.
    """
    found: list[Finding] = []
    source = _source(tensor, found)
    if isinstance(layout, ComposedLayout):
        found.append(Finding(say.COMPOSED_LAYOUT, str(layout)))
    elif not isinstance(layout, Layout):
        raise InvalidTypeError(f"a TMA descriptor takes a layout, got {type(layout).__name__} {given(layout)}")
    elif not static_layout(layout):
        found.append(Finding(say.NOT_STATIC, str(layout)))
    refuse(found)
    if source is None:
        raise InvalidTypeError(f"a TMA descriptor takes a tensor, got {given(tensor)}")
    for name, numbers in (("shapes", shapes), ("strides", strides)):
        if not isinstance(numbers, (tuple, list)):
            raise InvalidTypeError(f"{name} of a TMA descriptor are a tuple of integers, got {given(numbers)}")
    paddings = expect_items(paddings, "paddings")
    num_multicast = expect_integer(num_multicast, "num_multicast", 1, unit="CTAs")
    source = _reshaped(source, tuple(shapes), tuple(strides))
    store = None if store_mode is None else as_store_mode(store_mode)
    load = None if store is not None else as_load_mode("tiled" if mode is None else mode)
    number = architecture_number(arch)
    gates = [TMA_GATE, *([MULTICAST_GATE] if num_multicast > 1 else [])]
    found += [Finding(reason) for gate in gates if (reason := why_not_gate(gate, number)) is not None]
    found += _pointer(alignment) + _width(elementBitWidth, source.dtype)
    plan = _plan(source, layout, num_multicast, found)
    byte_swizzle = Swizzle(0, 4, 3) if swizzle is None else swizzle
    if plan is not None:
        found += _box_row(plan.box[0], source.dtype.bits)
        found += swizzle_findings(byte_swizzle, plan.box[0] * source.dtype.bits)
        found += [Finding(b.message) for b in plan.broken]
        if source.base % 16:
            found.append(Finding(f"global address = {source.base:#x}; must be a multiple of 16 bytes"))
    found += _padding(tuple(paddings), store is not None)
    refuse(found)
    if plan is None:
        raise InvalidValueError("no descriptor can be planned for this layout", {"layout": layout})
    return TmaDescriptorTiled(
        source.tensor,
        plan.gbasis,
        source.base,
        source.dtype.bits,
        plan.dims,
        plan.strides,
        plan.box,
        swizzle_row(byte_swizzle).code,
        load,
        store,
        num_multicast,
        tuple(paddings),
        alignment=alignment,
        operand_segment_sizes=(1, 1, len(shapes), len(strides), len(paddings)),
    )


def _plan(source: _Source, layout: Layout, num_multicast: int, found: list[Finding]) -> TmaPlan | None:
    """The numbers of the descriptor, or None with the reason why the shared layout has none."""
    try:
        basis = box_basis(source.layout, layout)
    except CuteError as error:
        found.append(Finding(say.SMEM_NOT_COMPATIBLE, f"{layout}: {error.headline}"))
        return None
    return plan_tiled(source.layout, basis, source.dtype, source.dtype, num_multicast)


def build_tma_descriptor_im2col(
    tensor: Any,
    lower_corner: tuple[int, ...],
    upper_corner: tuple[int, ...],
    channels_per_pixel: int,
    pixels_per_column: int,
    paddings: tuple[Any, ...] = (),
    *,
    element_strides: tuple[int, ...] | None = None,
    store_mode: Any = None,
    elementBitWidth: int | None = None,
    swizzle: Swizzle | None = None,
    alignment: int = DESCRIPTOR_BYTES,
    arch: str = "sm_90a",
) -> TmaDescriptorIm2col:
    """A descriptor of im2col movement.

    Args:
        tensor: in global memory, modes C, W, (H, (D,)) N with C contiguous; rank 3 to 5.
        lower_corner, upper_corner: offsets of the pixel box's corners along W, H, D.
        channels_per_pixel, pixels_per_column: the box, 1 to 256 and 1 to 1024.
        element_strides: one per mode, 1 to 8; default 1.
    Raises:
        TmaBuildError: a requirement is broken; the headline is the first one's text, the facts list the others.
    """
    found: list[Finding] = []
    source = _source(tensor, found)
    refuse(found)
    if source is None:
        raise InvalidTypeError(f"a TMA descriptor takes a tensor, got {given(tensor)}")
    shape, strides = _flat_numbers(source.layout)
    rank, bits = len(shape), source.dtype.bits
    lower_corner = expect_integers(lower_corner, "lower_corner")
    upper_corner = expect_integers(upper_corner, "upper_corner")
    channels_per_pixel = expect_integer(channels_per_pixel, "channels_per_pixel")
    pixels_per_column = expect_integer(pixels_per_column, "pixels_per_column")
    steps = (1,) * rank if element_strides is None else expect_integers(element_strides, "element_strides")
    paddings = expect_items(paddings, "paddings")
    number = architecture_number(arch)
    if (reason := why_not_gate(IM2COL_GATE, number)) is not None:
        found.append(Finding(reason))
    if rank not in CORNER_LIMITS:
        found.append(Finding(f"rank of an im2col tensor = {rank} modes; must be 3 to 5"))
    refuse(found)
    found += _pointer(alignment) + _width(elementBitWidth, source.dtype) + _box_row(channels_per_pixel, bits)
    byte_swizzle = Swizzle(0, 4, 3) if swizzle is None else swizzle
    found += swizzle_findings(byte_swizzle, channels_per_pixel * bits)
    if strides[0] != 1:
        found.append(Finding(f"stride of mode 0 = {strides[0]} elements; channels must be contiguous"))
    found += [
        Finding(f"stride of axis {i} = {d * bits / 8:g} bytes; must be a multiple of 16")
        for i, d in enumerate(strides)
        if i and d * bits % 128
    ]
    low, high = CORNER_LIMITS[rank]
    for name, corner in (("lower", lower_corner), ("upper", upper_corner)):
        if len(corner) != rank - 2:
            found.append(Finding(f"{name} corner of {len(corner)} offsets; must be {rank - 2} at rank {rank}"))
        bad = [c for c in corner if not low <= c <= high]
        if bad:
            found.append(Finding(f"{name} corner {bad[0]} elements; must be {low} to {high} at rank {rank}"))
    for name, value, limit in (("channels", channels_per_pixel, 256), ("pixels", pixels_per_column, 1024)):
        if not 1 <= value <= limit:
            found.append(Finding(f"{name} of the box = {value}; must be 1 to {limit}"))
    if len(steps) != rank or not all(1 <= s <= 8 for s in steps):
        found.append(Finding(f"element strides {steps}; must be {rank} numbers from 1 to 8"))
    store = None if store_mode is None else as_store_mode(store_mode)
    found += _padding(tuple(paddings), store is not None)
    refuse(found)
    return TmaDescriptorIm2col(
        source.tensor,
        source.base,
        bits,
        shape,
        tuple(d * bits // 8 for d in strides[1:]),
        lower_corner,
        upper_corner,
        channels_per_pixel,
        pixels_per_column,
        steps,
        swizzle_row(byte_swizzle).code,
        tuple(paddings),
        alignment=alignment,
    )


def _flat_numbers(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides of flat modes as known numbers."""
    numbers = [*leaves(layout.shape), *leaves(layout.stride)]
    if not all(isinstance(n, int) for n in numbers):
        raise InvalidTypeError("a descriptor needs known numbers", {"layout": layout}, "use .subs() first")
    half = len(numbers) // 2
    return tuple(int(n) for n in numbers[:half]), tuple(int(n) for n in numbers[half:])
