"""Copy on the host with a format on either side, with rows by an index, or with pages by a table.

    array        -> Format, tuple of Formats    quantise (each from the same array)
    ScaledTensor -> array                       dequantise
    ScaledTensor -> Format, ScaledTensor        change the order of the scales, not the bytes of the data
    array        -> array, cast=True            cast
    rows=, into_rows=, pages=                   gather, scatter, pages of a cache; -1 gives rows of `fill`

`cute_py.formats` does the arithmetic; this module decides which functions a copy needs.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from cute_py.argument_checks import expect, expect_integer_array
from cute_py.copies.host_copy import copy_paired
from cute_py.copies.operands import Operand, paired, side
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.formats.format import Format
from cute_py.formats.numbers import cast as cast_to
from cute_py.formats.numbers import codes, number
from cute_py.formats.scaled_tensor import (
    ScaledTensor,
    dequantized,
    expect_numbers,
    moved_data,
    pads_data,
    quantized,
    scale_places,
    scatter_scales,
    stored_scales,
    stored_shape,
)
from cute_py.layout.analysis import overlaps
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout
from cute_py.tensor.array_views import host_view
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

IndexOfRows: TypeAlias = "NDArray[np.integer[Any]] | Sequence[int]"
ScaledOperand: TypeAlias = "ScaledTensor | Format | NDArray[Any] | tuple[Format, ...]"

SAME_BYTES: Final = (
    "element",
    "block",
    "scale_rule",
    "scale",
    "packing",
    "axis",
    "padding",
    "tensor_scale",
    "transposed",
)
"""Fields of a format that determine its data bytes; the order of the scales does not."""


class ScaledOptions(TypedDict, total=False):
    """Options of a copy with a format, an index or a cast; see `copy`."""

    rows: Any
    into_rows: Any
    pages: Any
    fill: float | None
    requantize: bool
    cast: bool


@dataclass(frozen=True, eq=False)
class ScaledCopyResult:
    """The result of a copy into existing memory.

    Attributes:
        destination: the destination argument. bytes: bytes of its elements and scales. plan: a text of the steps.

    `equal` compares both sides when it is first used, and waits for the device.
    """

    destination: Any
    bytes: int
    plan: str
    _compare: Callable[[], bool] = field(repr=False)

    @functools.cached_property
    def equal(self) -> bool:
        """Whether the destination holds the bytes that the definition gives for the source."""
        return self._compare()


def takes(source: object, destination: object, options: ScaledOptions) -> bool:
    """Whether this module handles a copy.

    >>> takes(1, 2, {"rows": None, "cast": False})
    False
    """
    sides = (source, *(destination if _formats(destination) else (destination,)))  # type: ignore[misc]
    return any(isinstance(one, (Format, ScaledTensor)) for one in sides) or any(
        value is not None and value is not False for value in options.values()
    )


def computes(source: object, destination: object, options: Mapping[str, Any]) -> bool:
    """Whether a copy between existing memory computes or uses an index: `takes`, or a tuple of ScaledTensors."""
    parts = destination if isinstance(destination, tuple) else (destination,)
    if any(isinstance(one, (Format, ScaledTensor)) for one in (source, *parts)):
        return True
    return any(value is not None and value is not False for value in options.values())


def refuse_layout_options(*options: object) -> None:
    """Refuse options of a copy between layouts, in a copy that computes. An option that is not set is None."""
    if any(value is not None for value in options):
        raise InvalidValueError("hints, tuning and dtype apply to a copy between layouts, not to one that computes")


def _formats(thing: object) -> bool:
    return isinstance(thing, tuple) and bool(thing) and all(isinstance(one, Format) for one in thing)


def scaled_copy(
    source: Any,
    destination: Any,
    backend: str,
    *,
    rows: Any = None,
    into_rows: Any = None,
    pages: Any = None,
    fill: float | None = None,
    requantize: bool = False,
    cast: bool = False,
) -> Any:
    """Copy on the host; `copy` documents the arguments."""
    options = ScaledOptions(rows=rows, into_rows=into_rows, pages=pages, fill=fill, requantize=requantize, cast=cast)
    _expect_options(backend, options)
    if isinstance(source, Format):
        raise InvalidTypeError("the source of the copy is a Format, which has no data", hint="copy(array, format)")
    if _has_layout(source):
        source = _elements(source, "source")
    if _has_layout(destination):
        return _into_layout(source, destination, options)
    source, destination = (_host_array(thing) for thing in (source, destination))
    _refuse_aliases(source, destination)
    masked = None
    if isinstance(source, ScaledTensor) and rows is not None and fill:
        masked = index_of_rows(rows, source.shape[0], "rows") < 0
    source = _gathered(source, rows, pages, fill)
    if isinstance(destination, tuple) and destination and all(isinstance(one, ScaledTensor) for one in destination):
        return tuple(_into_scaled(source, one, into_rows, fill, requantize) for one in destination)
    if _formats(destination):
        if into_rows is not None:
            raise InvalidValueError("into_rows scatters into memory, but the destination is a tuple of formats")
        return tuple(_to_format(source, one, fill, requantize) for one in destination)
    if isinstance(destination, Format):
        if into_rows is not None:
            raise InvalidValueError("into_rows scatters into memory, but the destination is a Format")
        return _to_format(source, destination, fill, requantize)
    if isinstance(destination, ScaledTensor):
        return _into_scaled(source, destination, into_rows, fill, requantize)
    if not isinstance(destination, np.ndarray):
        raise InvalidTypeError(f"the destination must be an array, Format or ScaledTensor, got {given(destination)}")
    return _into_array(source, destination, into_rows, cast, masked, fill)


def _expect_options(backend: str, options: ScaledOptions) -> None:
    if backend not in ("auto", "host"):
        raise InvalidValueError(
            f"backend = {given(backend)}; must be 'auto' or 'host' for a copy with a format, an index or a cast"
        )
    expect(options["requantize"], bool, "requantize")
    expect(options["cast"], bool, "cast")
    expect_fill(options["fill"])
    if options["rows"] is not None and options["pages"] is not None:
        raise InvalidValueError(
            "rows and pages can't be combined, because a table of pages is already an index of rows"
        )


def expect_fill(fill: float | None) -> None:
    """Refuse a `fill` that is neither None nor a number."""
    if isinstance(fill, (bool, np.bool_)) or not isinstance(fill, (int, float, np.integer, np.floating, NoneType)):
        raise InvalidTypeError(f"fill must be a number, got {given(fill)}")


def _has_layout(thing: ScaledOperand | Operand) -> bool:
    """Whether an operand is a tensor over memory, or a pair (memory, layout)."""
    pair = isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[1], (Layout, ComposedLayout))
    return pair or isinstance(thing, Tensor)


def _elements(operand: Operand, role: str) -> NDArray[np.generic]:
    """The elements of an operand with a layout, as an array with the sizes of its modes."""
    one = side(operand, role)
    made = np.empty(tuple(map(int, product_each(one.layout.shape))), one.view.dtype.numpy)
    _copy_elements(operand, made)
    return made


def _copy_elements(source: Operand, destination: Operand) -> None:
    for one in (source, destination):
        if isinstance(one, Tensor) and not isinstance(one.engine, ArrayEngine):
            raise InvalidValueError(
                "a tensor at an address whose memory is unknown; must be a tensor of an array", {"engine": one.engine}
            )
    a, b = side(source, "source"), side(destination, "destination")
    copy_paired(paired(a, b), a.view.address, b.view.address)


def _into_layout(source: Operand | ScaledTensor, destination: Operand, options: ScaledOptions) -> ScaledCopyResult:
    """Copy into an operand with a layout: compute the elements, and write each one at its offset in the layout."""
    made = _elements(destination, "destination")
    result = scaled_copy(source, made, "host", **options)
    _copy_elements(made, destination)

    def compare() -> bool:
        return bool(result.equal) and same_elements(made, _elements(destination, "destination"))

    return ScaledCopyResult(destination, result.bytes, result.plan, compare)


def _host_array(thing: Any) -> Any:
    """View another library's array in host memory as numpy; return any other object unchanged.

    Raises:
        InvalidValueError: the array is on a device.
    """
    if isinstance(thing, np.ndarray) or not (
        hasattr(thing, "__dlpack__") or hasattr(thing, "__cuda_array_interface__")
    ):
        return thing
    view = host_view(thing)
    if view is None:
        raise InvalidValueError(
            "this copy with a format, an index or a cast runs on the host, but an array is on a device"
        )
    element = view.element_bytes
    span = sum((size - 1) * abs(step) for size, step in zip(view.shape, view.strides, strict=True)) + 1
    if any(step < 0 for step in view.strides):
        raise InvalidValueError("the array has negative strides", {"shape": view.shape, "strides": view.strides})
    if not view.count:
        return np.zeros(view.shape, view.dtype.numpy)
    memory = (ctypes.c_char * (span * element)).from_address(view.address)
    steps = tuple(step * element for step in view.strides)
    made: NDArray[Any] = np.ndarray(view.shape, view.dtype.numpy, memoryview(memory).cast("B"), 0, steps)
    made.flags.writeable = not view.readonly
    return made


def _memory(thing: Any) -> list[NDArray[Any]]:
    if isinstance(thing, ScaledTensor):
        return [thing.data, thing.scales]
    return [thing] if isinstance(thing, np.ndarray) else []


def _refuse_aliases(source: Any, destination: Any) -> None:
    for one in _memory(source):
        for other in _memory(destination):
            if np.shares_memory(one, other):
                raise InvalidValueError(
                    "the source and the destination overlap, but this copy does not work in place"
                ).of_rule("overlap")
    outputs = _memory(destination)
    if len(outputs) == 2 and np.shares_memory(outputs[0], outputs[1]):
        raise InvalidValueError("the data and the scales of the destination overlap").of_rule("overlap")
    for one in outputs:
        if not one.flags.writeable:
            raise InvalidValueError("the destination is read-only").of_rule("read_only")
        if one.size and overlaps(Layout(one.shape, one.strides)):
            raise InvalidValueError("the destination overlaps itself: several elements have one address").of_rule(
                "overlap"
            )


def index_of_rows(index: IndexOfRows, count: int, name: str, masked: bool = True) -> NDArray[np.int64]:
    """Check an index of rows: each entry is -1 (a masked row) or a number below `count`.

    Raises:
        InvalidValueError: an entry is out of range.
    """
    found = expect_integer_array(index, name)
    low = -1 if masked else 0
    wrong = np.flatnonzero((found.reshape(-1) < low) | (found.reshape(-1) >= count))
    if len(wrong):
        first = int(wrong[0])
        raise InvalidValueError.of_value(
            f"{name}[{first}]", int(found.reshape(-1)[first]), f"be {low} to {count - 1}", "", {"rows": count}
        ).of_rule("row_index")
    return found


def list_of_rows(index: IndexOfRows, count: int, name: str) -> NDArray[np.int64]:
    """Check an index that lists rows in one mode; see `index_of_rows`."""
    found = index_of_rows(index, count, name)
    if found.ndim != 1:
        raise InvalidValueError(f"{name} has {found.ndim} modes; must have 1, a list of rows")
    return found


def _gathered(source: Any, rows: Any, pages: Any, fill: float | None) -> Any:
    """The rows that an index or a table of pages names."""
    if rows is None and pages is None:
        return source
    if isinstance(source, ScaledTensor):
        return _gathered_scaled(source, rows, pages, fill)
    if not isinstance(source, np.ndarray) or source.ndim < 1:
        raise InvalidTypeError(f"rows and pages need an array or a ScaledTensor as the source, got {given(source)}")
    if pages is not None:
        if source.ndim < 2:
            raise InvalidValueError("a paged cache must be an array (pages, page_size, ...)")
        table = index_of_rows(pages, len(source), "pages")
        taken = _taken(source, table.reshape(-1), fill).reshape(*table.shape, *source.shape[1:])
        return taken.reshape(*table.shape[:-1], table.shape[-1] * source.shape[1], *source.shape[2:])
    return _taken(source, list_of_rows(rows, len(source), "rows"), fill)


def _taken(source: NDArray[Any], index: NDArray[np.int64], fill: float | None) -> NDArray[Any]:
    places = np.maximum(index, 0)
    # `take` copies a source that is not contiguous, such as a broadcast one, as a whole.
    made = source.take(places, axis=0) if source.flags.c_contiguous else source[places]
    if (index < 0).any():
        made[index < 0] = fill_value(fill, source.dtype)
    return made


def fill_value(fill: float | None, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """Return `fill` as an array of zero dimensions, rounded to a type, and saturated if the type has no infinity.

    Raises:
        InvalidValueError: the type is an integer type that can't represent `fill`.

    >>> fill_value(1e9, number("e4m3").dtype.numpy).item(), fill_value(None, np.dtype(np.int32)).item()
    (448.0, 0)
    """
    if fill is None or fill == 0:
        return np.zeros((), dtype)
    kind = as_dtype(dtype)
    if kind.kind in ("int", "uint"):
        low, high = (
            (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if kind.kind == "int" else (0, (1 << kind.bits) - 1)
        )
        if not (math.isfinite(fill) and low <= fill <= high and fill == int(fill)):
            raise InvalidValueError(f"fill = {fill} for elements of {kind}; must be a whole number, {low} to {high}")
        return np.asarray(int(fill)).astype(dtype)
    try:
        row = number(kind)
    except InvalidValueError:  # a type that casts do not support, such as complex64
        return np.asarray(fill).astype(dtype)
    return cast_to(np.asarray(fill, np.float64), row, saturate=row.infinite is None)


def _expect_rows(form: Format, shape: tuple[int, ...], what: str) -> None:
    rows = "all" if form.block[0] is None else form.block[0]
    wrong = f"of {len(shape)} modes" if len(shape) != 2 else "that is transposed" if form.transposed else ""
    if wrong or rows != 1:
        raise InvalidValueError(
            f"{what} can't index a ScaledTensor {wrong or f'with blocks of {rows} rows'}; must be (M, K) with one row "
            "per block, not transposed",
            {"shape": shape, "format": form},
        )


def _gathered_scaled(source: ScaledTensor, rows: Any, pages: Any, fill: float | None) -> ScaledTensor:
    """Gather rows of data and scales without computing. A masked row is a row of `fill` in the format; by default its
    data and scales are zero bytes."""
    if pages is not None:
        raise InvalidValueError(
            "pages index an array (pages, page_size, ...), but the source is a ScaledTensor", hint="rows="
        )
    form = source.format
    _expect_rows(form, source.shape, "rows")
    if form.order.given_layout is not None or not form.order.is_layout:
        raise InvalidValueError(
            f"the order of the scales, {form.order}, has no rows of a fixed size; must be an order for any size"
        )
    index = list_of_rows(rows, source.shape[0], "rows")
    if not len(index):
        raise InvalidValueError("rows has no entries; must have at least 1, because a ScaledTensor has at least 1 row")
    shape = (len(index), source.shape[1])
    data = np.zeros(stored_shape(form, shape), source.data.dtype)
    data.view(np.uint8)[: len(index)] = _taken(source.data[: source.shape[0]].view(np.uint8), index, 0)
    grid = _taken(codes(stored_scales(source.scales, form))[scale_places(form, source.shape)], index, 0)
    if fill and (index < 0).any():
        row = np.full((1, shape[1]), fill, np.float32)
        filled = quantized(row, form.with_(scales="linear"), total=source.tensor_scale)
        data.view(np.uint8)[: len(index)][index < 0] = filled.data.view(np.uint8)[0]
        grid[index < 0] = codes(stored_scales(filled.scales, filled.format))
    return ScaledTensor(data, scatter_scales(grid, form, shape), form, source.tensor_scale, shape)


def fill_byte(fill: float | None, form: Format) -> int:
    """The byte that pads the scales: `fill` in the type of the scales; default 0. float32 scales are padded with 0."""
    if fill is None or form.scale == "float32":
        return 0
    return int(codes(cast_to(np.array([fill], np.float32), number(form.scale)))[0])


def _to_format(source: Any, form: Format, fill: float | None, requantize: bool, total: Any = None) -> ScaledTensor:
    """The source in a format, with zeros in the padding of the data; total: the tensor scale of the destination
    memory."""
    if not isinstance(source, ScaledTensor):
        return quantized(expect_numbers(source, "source"), form, fill_byte(fill, form), total)
    if _same_elements_and_scales(source.format, form):
        grid = codes(stored_scales(source.scales, source.format))[scale_places(source.format, source.shape)]
        scales = scatter_scales(grid, form, source.shape, fill_byte(fill, form))
        whole = same_bytes(source.format, form) and not pads_data(form, source.shape)
        data = source.data.copy() if whole else moved_data(source, form)
        return ScaledTensor(data, scales, form, source.tensor_scale, source.shape)
    if not requantize:
        raise InvalidValueError(
            "the formats differ in more than the order of their scales",
            {"source": source.format, "destination": form, "differ in": ", ".join(_differing(source.format, form))},
            "requantize=True dequantises and quantises again",
        ).of_rule("requantize")
    return quantized(dequantized(source), form, fill_byte(fill, form), total)


def _differing(a: Format, b: Format) -> list[str]:
    return [name for name in SAME_BYTES if getattr(a, name) != getattr(b, name)]


def same_bytes(a: Format, b: Format) -> bool:
    """Whether both formats store the same bytes for the same data, for any rule that chooses the scales."""
    return all(name == "scale_rule" for name in _differing(a, b)) and a.scale == b.scale


def _same_elements_and_scales(a: Format, b: Format) -> bool:
    """Whether both formats have the same elements and scales for the same data, stored in any way."""
    return a.scale == b.scale and {"scale_rule", "packing", "padding", "transposed"}.issuperset(_differing(a, b))


def _into_scaled(
    source: Any, destination: ScaledTensor, into_rows: Any, fill: float | None, requantize: bool
) -> ScaledCopyResult:
    form = destination.format
    if into_rows is not None:
        return _scattered_into(source, destination, into_rows, requantize)
    made = _to_format(source, form, fill, requantize, destination.tensor_scale)
    if made.shape != destination.shape:
        raise InvalidValueError(
            f"the source has the shape {made.shape} and the destination {destination.shape}; they must be equal"
        )
    _expect_tensor_scale(made, destination)
    destination.data.view(np.uint8)[...] = made.data.view(np.uint8)
    stored_scales_view(destination)[...] = made.scales.reshape(-1)
    compare = functools.partial(same_scaled, made, destination)
    return ScaledCopyResult(destination, destination.nbytes, _plan(source, destination), compare)


def stored_scales_view(scaled: ScaledTensor) -> NDArray[Any]:
    """The scales of a destination as a flat array of their type, sharing its memory."""
    if not scaled.scales.flags.c_contiguous:
        raise InvalidValueError("the scales of the destination are not dense")
    return scaled.scales.reshape(-1).view(scaled.format.scale_dtype.numpy)


def _expect_tensor_scale(made: ScaledTensor, destination: ScaledTensor) -> None:
    if made.tensor_scale is None and destination.tensor_scale is None:
        return
    if destination.tensor_scale is None or np.float32(made.tensor_scale) != np.float32(destination.tensor_scale):
        raise InvalidValueError(
            f"the source has the tensor scale {made.tensor_scale} and the destination "
            f"{destination.tensor_scale}; they must be equal",
            hint="copy(source, format) makes a ScaledTensor with its own tensor scale",
        ).of_rule("tensor_scale")


def same_scaled(made: ScaledTensor, destination: ScaledTensor) -> bool:
    """Whether two scaled tensors of one format hold the same bytes."""
    return bool(
        np.array_equal(made.data.view(np.uint8), destination.data.view(np.uint8))
        and np.array_equal(codes(made.scales.reshape(-1)), codes(stored_scales_view(destination)))
    )


def _scattered_into(source: Any, destination: ScaledTensor, into_rows: Any, requantize: bool) -> ScaledCopyResult:
    """Quantise rows, and write the data and scales of each row to the row of its index; -1 skips a row."""
    form = destination.format
    _expect_rows(form, destination.shape, "into_rows")
    made = _to_format(source, form.with_(scales="linear"), None, requantize, destination.tensor_scale)
    index = list_of_rows(into_rows, destination.shape[0], "into_rows")
    if made.shape != (len(index), destination.shape[1]):
        raise InvalidValueError(
            f"the source has the shape {made.shape}; must be {(len(index), destination.shape[1])} for this index"
        )
    expect_once(index)
    _expect_tensor_scale(made, destination)
    kept = np.flatnonzero(index >= 0)
    grid = codes(stored_scales(made.scales, made.format)).reshape(made.shape[0], -1)
    places = scale_places(form, destination.shape)[index[kept]]
    destination.data.view(np.uint8)[index[kept]] = made.data.view(np.uint8)[kept]
    raw = codes(stored_scales_view(destination))
    raw[places] = grid[kept]

    def compare() -> bool:
        data = destination.data.view(np.uint8)[index[kept]]
        return bool((raw[places] == grid[kept]).all() and (data == made.data.view(np.uint8)[kept]).all())

    return ScaledCopyResult(destination, made.nbytes, f"quantise, scatter {len(kept)} rows", compare)


def expect_once(index: NDArray[np.int64]) -> None:
    kept = index[index >= 0]
    found, counts = np.unique(kept, return_counts=True)
    if (counts > 1).any():
        row = int(found[counts > 1][0])
        raise InvalidValueError(f"into_rows lists row {row} {int(counts.max())} times; must list it once").of_rule(
            "row_index"
        )


def _into_array(
    source: Any,
    destination: NDArray[Any],
    into_rows: Any,
    convert: bool,
    masked: NDArray[np.bool_] | None,
    fill: float | None,
) -> ScaledCopyResult:
    """Copy into a plain array. masked: the rows of a ScaledTensor source that get exactly `fill`."""
    if isinstance(source, ScaledTensor):
        values = dequantized(source, destination.dtype)
        if masked is not None:
            values[masked] = fill_value(fill, destination.dtype)
    elif isinstance(source, np.ndarray):
        values = source
        if source.dtype != destination.dtype:
            if not convert:
                text = f"source dtype {source.dtype} differs from destination dtype {destination.dtype}"
                raise InvalidValueError(text, hint="cast=True converts").of_rule("dtype")
            values = cast_to(source, number(destination.dtype))
    else:
        raise InvalidTypeError(f"the source must be an array or a ScaledTensor, got {given(source)}")
    if into_rows is None:
        if values.shape != destination.shape:
            raise InvalidValueError(
                f"the source has the shape {values.shape} and the destination {destination.shape}; they must be equal"
            )
        written: Any = ...
    else:
        index = list_of_rows(into_rows, len(destination), "into_rows")
        wanted = len(index), *destination.shape[1:]
        if values.shape != wanted:
            raise InvalidValueError(f"the source has the shape {values.shape}; must be {wanted} for this index")
        expect_once(index)
        values, written = values[index >= 0], index[index >= 0]
    destination[written] = values

    def compare() -> bool:
        return same_elements(values, destination[written])

    return ScaledCopyResult(destination, int(values.nbytes), _plan(source, destination), compare)


def same_elements(values: NDArray[np.generic], destination: NDArray[np.generic]) -> bool:
    """Whether two arrays hold the same bytes."""
    a, b = (np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in (values, destination))
    return np.array_equal(a, b)


def _plan(source: Any, destination: Any) -> str:
    if isinstance(source, ScaledTensor):
        if isinstance(destination, ScaledTensor):
            if same_bytes(source.format, destination.format):
                return "reorder the scales"
            moved = _same_elements_and_scales(source.format, destination.format)
            return "move the elements, reorder the scales" if moved else "dequantise, quantise"
        return "dequantise"
    return (
        "quantise" if isinstance(destination, ScaledTensor) else "rows" if source.dtype == destination.dtype else "cast"
    )
