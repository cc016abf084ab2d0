"""A tensor in a block-scaled format: its data and scales, and the numpy reference code that quantises and dequantises
it.

    quantize     amax of each block -> scale (scale_rules) -> element = x * factor, rounded (numbers) -> packed
    dequantize   element * (scale * tensor scale), in float32

The rows are processed in stripes that fit in a core's cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, TypeAlias

from cute_py.argument_checks import expect, expect_integers, has
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given
from cute_py.formats.format import Format
from cute_py.formats.numbers import Buffers, cast, codes, expect_array, number, of_codes, rounding_of, to_float32
from cute_py.formats.packing import pack_elements, packed_width, unpack_elements
from cute_py.formats.scale_rules import POWER_RULES, amax_scales, nvfp4_scales, power_scales, scale_values, tensor_scale
from cute_py.formats.threads import BATCH, in_threads, thread_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

SHORT_ROW: Final = 128
"""Number of elements from which `_row_peaks` reduces a row without halving it first."""

QUIET: Final = 0x400000
"""Bit of a float32 that makes a NaN quiet."""
NEW_NAN: Final = 0xFFC00000
"""NaN of a product of two numbers, such as infinity x 0."""

Floats: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, eq=False)
class ScaledTensor:
    """The data and scales of a tensor in a block-scaled format.

    Attributes:
        data: the elements, row-major as in `format.data_layout`: (rows, columns) or (L, rows, columns), or uint8 bytes
            if they are packed. Data and scales are numpy arrays, or device arrays of another library for `copy` and
            `prepare_copy`.
        scales: the scales, in the order of `format.scale_layout`; in a batch, the scales of one tensor follow the
            scales of the previous tensor.
        tensor_scale: the float32 scale of the whole tensor, or None. shape: the logical (M, K) or (L, M, K); by default
            it is computed from the data.

    >>> import numpy as np
    >>> import cute_py as cute
    >>> scaled = cute.copy(np.ones((4, 64), np.float32), cute.formats.mxfp8())
    >>> scaled.data.shape, scaled.scales.size
    ((4, 64), 512)
    """

    data: NDArray[Any]
    scales: NDArray[Any]
    format: Format
    tensor_scale: Any = None
    shape: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("data", "scales"):
            one = getattr(self, name)
            if not isinstance(one, np.ndarray) and not has(one, "shape", "__dlpack__"):
                raise InvalidTypeError(f"{name} must be an array, got {given(one)}")
        expect(self.format, Format, "format")
        if len(self.data.shape) not in (2, 3):
            raise InvalidValueError(
                f"data has {len(self.data.shape)} modes; must be (rows, columns) or (L, rows, columns)"
            )
        if not expect(self.shape, tuple, "shape"):
            object.__setattr__(self, "shape", self._shape_of_data())
        if len(expect_integers(self.shape, "shape", 1)) != len(self.data.shape):
            raise InvalidValueError(f"shape = {given(self.shape)}; must have {self.data.ndim} modes, like the data")
        total = self.tensor_scale
        if total is not None and not isinstance(total, (float, np.floating)):
            raise InvalidTypeError(f"tensor_scale must be a float, or None, got {given(total)}")
        if total is not None and not self.format.tensor_scale:
            raise InvalidValueError(
                f"tensor_scale = {total}, but the format {self.format} has no scale of the tensor; must be None"
            ).of_rule("tensor_scale")
        for found in (wrong_data_type(self.data, self.format), wrong_scale_type(self.scales, self.format)):
            if found:
                raise InvalidTypeError(found)
        wanted = stored_shape(self.format, self.shape)
        if tuple(self.data.shape) != wanted:
            raise InvalidValueError(
                f"data has the shape {tuple(self.data.shape)}; must be {wanted}",
                {"logical shape": self.shape, "format": self.format},
            ).of_rule("data_shape")
        self._expect_contiguous()
        need = int(self.format.scale_size(*extents(self.shape)))
        have = math.prod(self.scales.shape) * self.scales.dtype.itemsize
        if have != need * self.format.scale_dtype.numpy.itemsize:
            raise InvalidValueError(
                f"the scales have {have} bytes; must have {need * self.format.scale_dtype.numpy.itemsize}",
                {"logical shape": self.shape, "order": self.format.order, "scales": need},
            ).of_rule("scale_size")

    def _expect_contiguous(self) -> None:
        """Refuse scales whose order in memory is not that of their indices, if the order of the format is an order in
        memory."""
        scales = self.scales
        if self.format.order.name == "linear" or not isinstance(scales, np.ndarray) or scales.flags.c_contiguous:
            return
        raise InvalidValueError(
            f"the scales are not contiguous, but {self.format.order} is an order in memory",
            {"shape": scales.shape, "strides": scales.strides},
            "scales.T is contiguous, with the same memory"
            if scales.flags.f_contiguous
            else "pass the buffer that the scales are a view of",
        ).of_rule("scale_strides")

    def _shape_of_data(self) -> tuple[int, ...]:
        width = {"pairs": 2, "dense": 4 / 3}.get(self.format.packing, 1)
        rows, columns = self.data.shape[-2], int(self.data.shape[-1] * width)
        return (*map(int, self.data.shape[:-2]), *((columns, rows) if self.format.transposed else (rows, columns)))

    def __repr__(self) -> str:
        parts = f"data={tuple(self.data.shape)}, scales={tuple(self.scales.shape)}"
        return f"ScaledTensor(shape={self.shape}, format={self.format}, {parts})"

    @property
    def nbytes(self) -> int:
        """The total size of data, scales and tensor scale, in bytes."""
        sizes = [math.prod(one.shape) * one.dtype.itemsize for one in (self.data, self.scales)]
        return sum(sizes) + (0 if self.tensor_scale is None else 4)

    def _expect_host(self) -> None:
        for name, one in (("data", self.data), ("scales", self.scales)):
            if not isinstance(one, np.ndarray):
                raise InvalidTypeError(
                    f"{name} must be a numpy array for this method, got {type(one).__name__}",
                    hint="use copy(scaled, array) on a device",
                )

    def elements(self) -> NDArray[Any]:
        """The elements (..., M, K) in the element type, each in one byte, without padding."""
        self._expect_host()
        stored = self.data if self.format.packing != "bytes" else of_codes(self.data, self.format.element)
        M, K = self.shape[-2:]
        columns = self.format.data_shape(M, K)[1]
        whole = unpack_elements(stored, columns, self.format.packing, self.format.element)
        if self.format.transposed:
            whole = np.swapaxes(whole, -1, -2)
        return whole[..., :M, :K]

    def scale_grid(self) -> Floats:
        """The scales of the blocks as float32, in the shape (..., ceil(M / block rows), ceil(K / block columns)).

        >>> x = np.ones((2, 64), np.float32)
        >>> cute.copy(x, cute.formats.mxfp8()).scale_grid().tolist()
        [[0.00390625, 0.00390625], [0.00390625, 0.00390625]]
        """
        self._expect_host()
        return scale_values(
            stored_scales(self.scales, self.format)[scale_places(self.format, self.shape)], self.format.scale
        )

    def dequantize(self, dtype: DTypeLike = "float32") -> NDArray[Any]:
        """Compute the values element x (scale x tensor scale) in float32.

        >>> x = np.float32([[1.5] * 32])
        >>> cute.copy(x, cute.formats.mxfp8()).dequantize()[0, :2].tolist()
        [1.5, 1.5]
        """
        return dequantized(self, dtype)


def wrong_data_type(data: NDArray[np.generic], form: Format) -> str:
    """Describe what is wrong with the type of stored data; return an empty string if it is the element type, or
    bytes."""
    return _wrong_type("data", data, form.dtype, (1,))


def wrong_scale_type(scales: NDArray[np.generic], form: Format) -> str:
    """Describe what is wrong with the type of stored scales; return an empty string if it is the scale type, or an
    integer type of one or four bytes with the bits of scales."""
    return _wrong_type("scales", scales, form.scale_dtype, (1, 4))


def _wrong_type(what: str, array: NDArray[np.generic], wanted: DType, widths: tuple[int, ...]) -> str:
    size = array.dtype.itemsize
    try:
        kind = as_dtype(array.dtype)
    except CuteError:  # a packed type of another library, such as torch.float4_e2m1fn_x2
        return "" if size == 1 else f"{what} has elements of type {array.dtype}; must be {wanted}"
    if kind.name == wanted.name or (kind.kind in ("int", "uint") and size in widths):
        return ""
    whole = " or ".join(f"int{8 * width}" for width in widths)
    return f"{what} has elements of type {kind}; must be {wanted}, or its bits as {whole}"


def extents(shape: tuple[int, ...]) -> tuple[int, int, int | None]:
    """(M, K, L) of a logical shape."""
    return shape[-2], shape[-1], shape[0] if len(shape) == 3 else None


def stored_shape(form: Format, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the data array for a logical shape."""
    rows, columns = form.data_shape(*shape[-2:])
    return (*shape[:-2], rows, packed_width(columns, form.packing, form.number))


def pads_data(form: Format, shape: tuple[int, ...]) -> bool:
    """Whether the stored data has padding: rows or columns beyond the logical shape, or bits after the last element of
    a row.

    >>> pads_data(cute.formats.mxfp8(), (4, 64)), pads_data(cute.formats.nvfp4(padding=(1, 1)), (4, 63))
    (False, True)
    """
    M, K = shape[-2:]
    stored = form.data_shape(M, K)
    group = {"pairs": 2, "dense": 4}.get(form.packing, 1)
    return stored != ((K, M) if form.transposed else (M, K)) or stored[1] % group != 0


def stored_scales(scales: NDArray[Any], form: Format) -> NDArray[Any]:
    """Scales as a flat array of the format's scale type; bytes and int32 words are reinterpreted."""
    return of_codes(np.ascontiguousarray(scales).reshape(-1), form.scale_dtype)


def scale_places(form: Format, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The index of the first scale of each block, in the shape (..., ceil(M / block rows), ceil(K / block columns))."""
    M, K, L = extents(shape)
    rows, columns = form.blocks(M, K)
    m, k = np.arange(0, M, rows), np.arange(0, K, columns)
    index = form.scale_index(M, K, L)
    if L is None:
        return index(m[:, None], k[None, :])
    return index(m[None, :, None], k[None, None, :], np.arange(L)[:, None, None])


def scale_indices(form: Format, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The index of every scale that is in use. If each row has its own scales, a block of several rows has one index
    per row; with `axis` 0, a block of several columns has one per column."""
    M, K, L = extents(shape)
    if not form.order.each_row:
        return scale_places(form, shape)
    rows, columns = form.blocks(M, K)
    m = np.arange(0, M, rows) if form.axis == 0 else np.arange(M)
    k = np.arange(K) if form.axis == 0 else np.arange(0, K, columns)
    index = form.scale_index(M, K, L)
    lead = () if L is None else (np.arange(L)[:, None, None],)
    return index(m[:, None], k[None, :], *lead)


def scatter_scales(grid: NDArray[Any], form: Format, shape: tuple[int, ...], fill: int = 0) -> NDArray[Any]:
    """Store the grid of scales in the order of the format; the padding gets the code `fill`.

    Raises:
        InvalidValueError: the order is a layout that gives two blocks the same index.
    """
    M, K, L = extents(shape)
    kind = form.scale_dtype.numpy
    made = np.full(int(form.scale_size(M, K, L)), fill, f"u{kind.itemsize}").view(kind)
    rows, columns = form.blocks(M, K)
    raw, values = codes(made), codes(grid) if grid.dtype.kind != "u" else grid
    if form.order.each_row:
        m = np.arange(0, M, rows) if form.axis == 0 else np.arange(M)
        k = np.arange(K) if form.axis == 0 else np.arange(0, K, columns)
        values = values[..., m // rows, :][..., k // columns]
    places = scale_indices(form, shape)
    if form.order.given_layout is not None and len(np.unique(places)) != places.size:
        raise InvalidValueError(
            f"the scale layout {form.order} gives several blocks one index; each block of {rows} x {columns} elements "
            "must have its own"
        ).of_rule("scale_layout")
    raw[places] = values
    if form.order.name == "linear":
        blocks = (-(-K // columns), -(-M // rows)) if form.transposed else (-(-M // rows), -(-K // columns))
        return made.reshape(*shape[:-2], *blocks)
    return made


def expect_numbers(values: Any, what: str) -> NDArray[Any]:
    """Return the array if it has 2 or 3 modes and elements that casts support."""
    array = expect_array(values, f"the {what}")
    if array.dtype.kind == "b" or (array.dtype.kind in "iu" and array.dtype.itemsize > 1):
        raise InvalidValueError(
            f"the {what} has elements of {array.dtype}, which casts don't support",
            hint="array.astype('float32') holds integers of magnitude up to 2^24 exactly",
        )
    number(array.dtype)
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise InvalidValueError(
            f"the {what} has the shape {array.shape}; must be (M, K) or (L, M, K), each at least 1",
            hint="array.reshape(-1, array.shape[-1]) merges the leading modes"
            if array.size and array.ndim > 3
            else None,
        )
    return array


def largest_magnitude(values: NDArray[Any]) -> float:
    """The largest magnitude of an array, or 0 if all elements are NaN.

    >>> largest_magnitude(np.float32([1.0, np.nan, -3.0]))
    3.0
    """
    largest = float(np.fmax.reduce(np.abs(to_float32(values)), axis=None))
    return 0.0 if np.isnan(largest) else largest


def stored_elements(bits: NDArray[Any], form: Format) -> NDArray[Any]:
    """Convert stored bits to the array of a ScaledTensor: numbers of the element type if each fills a byte, otherwise
    bytes."""
    return of_codes(bits, form.element) if form.packing == "bytes" else bits


def moved_data(source: ScaledTensor, form: Format) -> NDArray[np.generic]:
    """Convert the data of a scaled tensor to another format that differs only in the packing, padding or transposition
    of the data."""
    elements = codes(np.ascontiguousarray(source.elements()))
    M, K = source.shape[-2:]
    columns, rows = form.data_shape(M, K) if form.transposed else form.data_shape(M, K)[::-1]
    stored = np.zeros((*source.shape[:-2], rows, columns), np.uint8)
    stored[..., :M, :K] = elements
    if form.transposed:
        stored = np.ascontiguousarray(np.swapaxes(stored, -1, -2))
    return stored_elements(pack_elements(stored, form.packing, form.element), form)


def scaled_of_bits(
    data: NDArray[Any], scales: NDArray[Any], total: SupportsFloat | None, form: Format, shape: Sequence[int]
) -> ScaledTensor:
    """Make a ScaledTensor from contiguous arrays of any type that hold the bits of its data and scales.

    total: the tensor scale; ignored if the format has none.

    Raises:
        InvalidValueError: the sizes of the arrays do not fit the format.
    """
    return ScaledTensor(
        stored_elements(codes(data), form),
        of_codes(codes(scales).reshape(-1), form.scale_dtype),
        form,
        None if total is None or not form.tensor_scale else np.float32(total),
        tuple(map(int, shape)),
    )


def quantized(
    values: NDArray[Any], form: Format, fill: int = 0, total: Any = None, largest: float | None = None
) -> ScaledTensor:
    """Quantise a tensor to a format.

    Args:
        values: (M, K), or (L, M, K) with one tensor scale for the whole batch. fill: the code for the padding of the
            scales.
        total: the tensor scale, if the format has one; by default it is computed from the largest magnitude of the
            values.
        largest: the largest magnitude of the whole tensor, if the values are a part of it.
    Raises:
        InvalidValueError: the given tensor scale is not a positive number.
    """
    expect_numbers(values, "source")
    gain = np.float32(1)
    if not form.tensor_scale:
        total = None
    elif total is None:
        total, gain = tensor_scale(largest_magnitude(values) if largest is None else largest, form.like)
    else:
        total = np.float32(total)
        if not (np.isfinite(total) and total > 0):
            raise InvalidValueError(
                f"tensor_scale = {total}; must be a positive number, such as the largest magnitude / 2688"
            ).of_rule("tensor_scale")
        with np.errstate(all="ignore"):
            gain = np.float32(1) / total
    planes = values if values.ndim == 3 else values[None]
    made = [_plane(plane, form, total, gain) for plane in planes]
    data, grid = (np.stack(parts) if values.ndim == 3 else parts[0] for parts in zip(*made, strict=True))
    return ScaledTensor(
        stored_elements(data, form), scatter_scales(grid, form, values.shape, fill), form, total, values.shape
    )


class _Stripes:
    """The blocks of an (M, K) array as float32, in stripes of rows, padded with zeros to whole blocks."""

    def __init__(self, values: NDArray[Any], form: Format) -> None:
        self.values, (self.M, self.K) = values, values.shape
        self.rows, self.columns = form.blocks(self.M, self.K)
        self.down, self.across = -(-self.M // self.rows), -(-self.K // self.columns)
        self.height = min(max(1, BATCH // (self.K * self.rows)), self.down) * self.rows
        self.width = self.across * self.columns
        self.count = -(-self.M // self.height)

    def of(self, part: slice, room: NDArray[np.float32]) -> Iterator[tuple[int, int, Floats, Floats]]:
        """Yield (first row, rows, blocks, buffer of the same size) of each stripe in a range; blocks have the axes
        (block, row, block, column). `room` has the elements of a stripe."""
        for top in range(part.start * self.height, min(part.stop * self.height, self.M), self.height):
            stripe = self.values[top : top + self.height]
            count = -(-len(stripe) // self.rows) * self.rows
            tile = to_float32(stripe)
            if (count, self.width) != tile.shape:
                tile = np.pad(tile, ((0, count - len(stripe)), (0, self.width - self.K)))
            shape = count // self.rows, self.rows, self.across, self.columns
            blocks = np.ascontiguousarray(tile).reshape(shape)
            yield top, len(stripe), blocks, room[: blocks.size].reshape(shape)


def _plane(values: NDArray[Any], form: Format, total: Any, gain: np.float32) -> tuple[NDArray[Any], NDArray[Any]]:
    """Quantise one (M, K) array. Return the packed data, and the grid of scales as codes or float32."""
    stripes = _Stripes(values, form)
    threads = min(thread_count(values.size, 4 * BATCH), stripes.count)
    # Allocated once and in this thread, because new memory costs more than the arithmetic.
    rooms = [np.empty(stripes.height * stripes.width, np.float32) for _ in range(threads)]
    peaks = np.empty((stripes.down, stripes.across), np.float32)

    def find_peaks(part: slice, room: Floats) -> None:
        for top, _, blocks, magnitudes in stripes.of(part, room):
            bits = np.bitwise_and(blocks.view(np.uint32), np.uint32(0x7FFFFFFF), out=magnitudes.view(np.uint32))
            peak = _row_peaks(bits[:, 0] if stripes.rows == 1 else bits.max(axis=1))
            peaks[top // stripes.rows : top // stripes.rows + len(peak)] = peak.view(np.float32)

    in_threads([functools.partial(find_peaks, room=room) for room in rooms], stripes.count)
    grid, factor = _scales(peaks, form, total, gain)
    shape = form.data_shape(*values.shape)
    stored = np.zeros(shape[::-1] if form.transposed else shape, np.uint8)
    rounding = rounding_of(form.number, peaks.dtype, True)
    divide = form.scale_rule == "amax" and form.like == "cute"

    def round_scaled(part: slice, room: Floats, out: NDArray[np.uint8], buffers: Buffers) -> None:
        for top, count, blocks, scaled in stripes.of(part, room):
            first = top // stripes.rows
            rows = slice(first, first + len(blocks))
            usual = bool(np.isfinite(peaks[rows]).all() and np.isfinite(factor[rows]).all())
            _scale(blocks, factor[rows, None, :, None], scaled, divide=divide, usual=usual)
            rounding(scaled.reshape(-1), out[: scaled.size], buffers)
            elements = out[: scaled.size].reshape(-1, stripes.width)
            stored[top : top + count, : stripes.K] = elements[:count, : stripes.K]

    works = [
        functools.partial(
            round_scaled, room=room, out=np.empty(room.size, np.uint8), buffers=rounding.buffers(min(room.size, BATCH))
        )
        for room in rooms
    ]
    in_threads(works, stripes.count)
    if form.transposed:
        stored = np.ascontiguousarray(stored.T)
    return pack_elements(stored, form.packing, form.element), grid


def _scale(values: Floats, factor: Floats, out: Floats, *, divide: bool = False, usual: bool = False) -> None:
    """Write values x factor, or values / factor, to `out`, which may be `values`.

    A value that is NaN stays the same NaN, and any other value gets the NaN of its factor, as on a device. If both are
    NaN, numpy chooses one by the place of the value in the array and by the processor. The NaN of two numbers is
    negative, as on x86.

    usual: whether each factor is finite, and no product of two numbers is NaN, so that numpy follows this rule.
    """
    operate = np.divide if divide else np.multiply
    with np.errstate(all="ignore"):
        if usual:
            operate(values, factor, out=out)
            return
        bits, nan = np.broadcast_to(factor, out.shape).view(np.uint32) | np.uint32(QUIET), np.isnan(factor)
        bits = np.where(np.isnan(values), values.view(np.uint32) | np.uint32(QUIET), np.where(nan, bits, NEW_NAN))
        operate(values, factor, out=out)
    wrong = np.isnan(out)
    out.view(np.uint32)[wrong] = bits[wrong]


def _row_peaks(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The largest number of each row.

    numpy runs one loop for each row, so short rows are first halved: one loop over all rows compares neighbours.
    """
    while bits.shape[-1] % 2 == 0 and bits.shape[-1] < SHORT_ROW:
        bits = np.maximum(bits[..., ::2], bits[..., 1::2])
    peaks: NDArray[np.uint32] = bits.max(axis=-1)
    return peaks


def _scales(peak: Floats, form: Format, total: Any, gain: np.float32) -> tuple[NDArray[Any], Floats]:
    if form.scale_rule in POWER_RULES:
        exponent, factor = power_scales(peak, form.scale_rule, form.number)
        if form.scale == "float32":
            return scale_values(exponent, "ue8m0"), factor
        return exponent, factor
    if form.scale_rule == "amax":
        return amax_scales(peak, form.number, form.like)
    return nvfp4_scales(peak, total, gain, form.like)


def dequantized(source: ScaledTensor, dtype: DTypeLike = "float32") -> NDArray[Any]:
    """Dequantise a scaled tensor to a type. Values are computed in float32, and rounded once more if the type is
    narrower.

    Raises:
        InvalidValueError: the format has a tensor scale, but the tensor was made without it.
    """
    row = number(dtype)
    if source.format.tensor_scale and source.tensor_scale is None:
        raise InvalidValueError(
            f"the format {source.format} has a scale of the tensor, but tensor_scale is None",
            hint="ScaledTensor(..., tensor_scale=), or nvfp4(tensor_scale=False) for one level of scales",
        ).of_rule("tensor_scale")
    M, K = source.shape[-2:]
    rows, columns = source.format.blocks(M, K)
    scales = source.scale_grid()
    if source.tensor_scale is not None:
        _scale(scales, np.full(1, source.tensor_scale, np.float32), scales)
    values = to_float32(np.ascontiguousarray(source.elements()))
    usual = bool(np.isfinite(scales).all() and (source.format.number.infinite is None or scales.all()))
    down, across = -(-M // rows), -(-K // columns)
    if (down * rows, across * columns) == (M, K):
        blocks = values.reshape(*values.shape[:-2], down, rows, across, columns)
        _scale(blocks, scales[..., :, None, :, None], blocks, usual=usual)
    else:
        each = scales[..., np.arange(M) // rows, :][..., np.arange(K) // columns]
        _scale(values, each, values, usual=usual)
    return values if row.name == "float32" else cast(values, row)
