"""The operands of a copy that computes, as sides of a plan with their addresses: arrays, scaled tensors and indices.

array                 a matrix with contiguous rows or columns; other shapes if their leading modes merge
ScaledTensor          the matrix of its data, and the address of its scales
rows=, into_rows=     this module checks an index in host memory; the kernel checks an index on a device
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from cute_py.argument_checks import expect
from cute_py.copies.operands import view_of_memory
from cute_py.copies.scaled.host import expect_fill, expect_once, fill_byte, fill_value, index_of_rows
from cute_py.copies.scaled.plan import MatrixSide, RowIndex, ScaledLaunch, kind_of, plan_scaled, refused
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.formats.format import Format
from cute_py.formats.numbers import codes
from cute_py.formats.scaled_tensor import ScaledTensor
from cute_py.tensor.array_views import ArrayView, overlap

INDEX_TYPES: Final = {"int32": 4, "int64": 8}
"""Element types of an index, and their bytes."""


@dataclass(frozen=True, slots=True)
class ScaledWork:
    """A planned copy with its memory.

    Attributes:
        launch: the kernel and its parameters. views: views of 'source' and 'scales'. outputs: (data, scales) of each
        output. indices: 'rows' and 'into_rows', if given. limits: number of rows that each index may name.
    """

    launch: ScaledLaunch
    views: Mapping[str, ArrayView]
    outputs: tuple[tuple[ArrayView, ArrayView | None], ...]
    indices: Mapping[str, ArrayView] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)

    def parameters(self, record: int) -> bytes:
        """The parameter block. record: address where a kernel records the first out-of-range index."""
        addresses = {name: view.address for name, view in {**self.views, **self.indices}.items()}
        outputs = [(data.address, scales.address if scales else 0) for data, scales in self.outputs]
        return self.launch.parameters({**addresses, "record": record}, outputs)

    @property
    def places(self) -> dict[str, ArrayView]:
        """All views, by the names of their pointers in the parameter block."""
        found = {**self.views, **self.indices}
        for i, (data, scales) in enumerate(self.outputs):
            found[f"data {i}"] = data
            if scales is not None:
                found[f"scales {i}"] = scales
        return found


def memory_view(array: Any) -> ArrayView:
    """Return the view of an array. Some versions of PyTorch do not export one-byte float types, so their memory is
    viewed as bytes."""
    kind = type(array)
    if kind.__module__.partition(".")[0] == "torch" and str(getattr(array, "dtype", "")).startswith("torch.float8"):
        torch = sys.modules["torch"]
        return replace(view_of_memory(array.view(torch.uint8)), dtype=as_dtype(str(array.dtype)))
    return view_of_memory(array)


def device_of(array: Any) -> int | None:
    """The device of an array; None for host memory and for other objects."""
    if isinstance(array, np.ndarray) or not (
        isinstance(array, ArrayView) or hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")
    ):
        return None
    return memory_view(array).device


def lies_on_device(source: Any, destination: Any) -> bool:
    """Whether an operand's memory is on a device."""
    parts = [source, *(destination if isinstance(destination, tuple) else (destination,))]
    arrays = [
        one for part in parts for one in ((part.data, part.scales) if isinstance(part, ScaledTensor) else (part,))
    ]
    return any(device_of(one) is not None for one in arrays if not isinstance(one, Format))


def _alignment(address: int) -> int:
    return min(16, address & -address) if address else 16


def _joined(view: ArrayView, role: str) -> tuple[int, int, int, int]:
    """(rows, columns, row stride, column stride) in elements; the leading modes are joined. An array without elements
    has no rows."""
    if not view.count:
        return 0, 1, 1, 1
    modes = [(n, d) for n, d in zip(view.shape, view.strides, strict=True) if n != 1]
    inner = modes[-1:] if len(view.shape) != 2 else [(view.shape[1], view.strides[1])]
    if len(view.shape) == 2:
        outer = [(view.shape[0], view.strides[0])]
    else:
        outer = modes[:-1]
    while len(outer) > 1:
        (n, d), (below, step) = outer[-2], outer[-1]
        if d != below * step:
            raise refused(
                f"a {role} of shape {view.shape} with strides {view.strides}",
                "a matrix, or an array whose leading modes merge into one",
            )
        outer[-2:] = [(n * below, step)]
    (rows, row_step), (columns, column_step) = (outer or [(1, 0)])[0], (inner or [(1, 1)])[0]
    return rows, columns, row_step, column_step


def matrix(view: ArrayView, role: str, kind: str, raw: int = 1) -> MatrixSide:
    """The side of an array. raw: bytes of an element, if elements are copied as bytes."""
    rows, columns, down, over = _joined(view, role)
    element = view.element_bytes
    by_columns = over != 1 and columns > 1 and (down == 1 or rows == 1)
    if over != 1 and columns > 1 and not by_columns:
        raise refused(f"a {role} with strides {(down, over)}", "a matrix whose rows or columns are contiguous")
    lines, along, step = (columns, rows, over) if by_columns else (rows, columns, down)
    if lines == 1:
        step = along
    alignment = _alignment(view.address)
    return MatrixSide(kind, lines, along * raw, step * element, by_columns, alignment)


def expect_same_lines(source: MatrixSide, destination: MatrixSide) -> None:
    """Refuse matrices of bytes that are not both stored by rows or both by columns."""
    if source.by_columns != destination.by_columns:
        raise refused("a transposed cast of a type to itself", "a copy without cast=True, which keeps all bytes")


def _rows_of_bytes(view: ArrayView, role: str) -> MatrixSide:
    """A side whose first mode counts rows of contiguous bytes."""
    step, element = 1, view.element_bytes
    for n, d in reversed(list(zip(view.shape[1:], view.strides[1:], strict=True))):
        if n != 1 and d != step:
            raise refused(f"rows of a {role} with strides {view.strides}", "rows whose elements are contiguous")
        step *= n
    rows = view.shape[0]
    pitch = view.strides[0] * element if rows > 1 else step * element
    return MatrixSide("raw", rows, step * element, pitch, False, _alignment(view.address))


def scaled_side(one: ScaledTensor, fill: float | None, role: str) -> tuple[MatrixSide, ArrayView, ArrayView]:
    """The side of a scaled tensor, and its data and scales."""
    form = one.format
    if len(one.shape) != 2:
        raise refused(
            f"a {role} of {len(one.shape)} modes", "scaled tensors (M, K); copy each matrix of a batch separately"
        )
    expect_device_format(form)
    elements = codes(one.data) if isinstance(one.data, np.ndarray) and form.number.bits < 8 else one.data
    data, scales = memory_view(elements), memory_view(one.scales)
    rows, _, down, over = _joined(data, role)
    step = 1
    for n, d in reversed(list(zip(scales.shape, scales.strides, strict=True))):
        if n != 1 and d != step:
            raise refused(f"scales of the {role} with strides {scales.strides}", "scales that are dense")
        step *= n
    if over != 1 and data.shape[1] > 1:
        raise refused(f"data of the {role} with strides {(down, over)}", "data whose rows are contiguous")
    M, K = one.shape
    lines, along = form.data_shape(M, K)
    width = data.shape[1] * data.element_bytes
    side = MatrixSide(
        form.element,
        lines,
        along,
        down * data.element_bytes if rows > 1 else width,
        form.transposed,
        _alignment(data.address),
        _alignment(scales.address),
        form,
        (M, K),
        None if one.tensor_scale is None else float(one.tensor_scale),
        None,
        fill_byte(fill, form),
    )
    return side, data, scales


def expect_device_format(form: Format) -> None:
    """Refuse a format with elements that the kernels do not support."""
    wanted = "pairs" if form.element == "e2m1" else "bytes"
    if form.packing != wanted:
        raise refused(
            f"elements of {form.element}, packed as {form.packing}",
            f"packing={wanted!r}, or a copy on the host",
            format=form,
        )


def _index(index: Any, limit: int, role: str) -> tuple[ArrayView, int]:
    """An index and its length."""
    if isinstance(index, (list, tuple, range)) or np.isscalar(index):
        index = np.ascontiguousarray(np.asarray(index, np.int64))
    view = memory_view(index)
    if view.dtype.name not in INDEX_TYPES:
        raise InvalidTypeError(f"{role} has elements of {view.dtype}; must be int32 or int64")
    if len(view.shape) != 1 or (view.count > 1 and view.strides[0] != 1):
        raise InvalidValueError(f"{role} has the shape {view.shape} and strides {view.strides}; must be a dense list")
    if view.device is None:
        index_of_rows(index, limit, role)
    return view, view.count


def _pattern(fill: float | None, view: ArrayView) -> int:
    """The value of masked elements, repeated to 32 bits."""
    if not fill:
        return 0
    if view.element_bytes > 4:
        raise refused(f"fill = {fill} for elements of {view.element_bytes} bytes", "fill=0 for them")
    one = int(codes(fill_value(fill, view.dtype.numpy).reshape(1))[0])
    bits = 8 * view.element_bytes
    return sum(one << at for at in range(0, 32, bits))


def _refuse_overlaps(inputs: Sequence[ArrayView], outputs: Sequence[ArrayView]) -> None:
    for number, one in enumerate(outputs):
        if one.readonly:
            raise InvalidValueError("the destination is read-only").of_rule("read_only")
        for other in (*inputs, *outputs[:number]):
            if overlap(one, other):
                raise InvalidValueError("a destination overlaps the source or another destination").of_rule("overlap")


def scaled_work(
    source: Any,
    destination: Any,
    *,
    rows: Any = None,
    into_rows: Any = None,
    pages: Any = None,
    fill: float | None = None,
    requantize: bool = False,
    cast: bool = False,
    gain: float | None = None,
) -> ScaledWork:
    """Plan a copy that computes, between existing memory.

    For the arguments, see `copy`. gain: the reciprocal of the outputs' tensor scale, if the variant of the format
    uses a number other than 1 / tensor scale.

    Raises:
        InvalidValueError: shapes differ, operands overlap, or the device does not support the copy.
    """
    outputs = destination if isinstance(destination, tuple) else (destination,)
    if any(isinstance(one, Format) for one in (source, *outputs)):
        raise InvalidTypeError("a Format has no memory", hint="ScaledTensor(data, scales, format, shape=(M, K))")
    for name, flag in (("cast", cast), ("requantize", requantize)):
        expect(flag, bool, name)
    expect_fill(fill)
    if requantize:
        raise refused("requantize=True", "two copies: dequantise, then quantise")
    if rows is not None and pages is not None:
        raise InvalidValueError(
            "rows and pages can't be combined, because a table of pages is already an index of rows"
        )
    if pages is not None and into_rows is not None:
        raise refused("pages and into_rows together", "one of them")
    if isinstance(source, ScaledTensor):
        return _from_scaled(source, outputs, rows, pages, into_rows, fill)
    view = memory_view(_expect_array(source, "source"))
    scaled = [isinstance(one, ScaledTensor) for one in outputs]
    if all(scaled):
        return _quantised_work(view, outputs, rows, into_rows, pages, fill, gain)
    if any(scaled) or len(outputs) != 1:
        raise refused("outputs that are not all ScaledTensors", "a tuple of ScaledTensors, or one array")
    return _array_work(view, memory_view(_expect_array(outputs[0], "destination")), rows, into_rows, pages, fill, cast)


def expect_unique(index: Any) -> None:
    """Refuse an index of the destination that names a row twice."""
    expect_once(np.asarray(index).reshape(-1))


def _expect_array(thing: Any, role: str) -> Any:
    """Refuse an object that is not an array."""
    if isinstance(thing, (ScaledTensor, Format)) or thing is None:
        raise InvalidTypeError(f"the {role} must be an array, got {given(thing)}")
    return thing


def _quantised_work(
    view: ArrayView,
    outputs: Sequence[Any],
    rows: Any,
    into_rows: Any,
    pages: Any,
    fill: float | None,
    gain: float | None,
) -> ScaledWork:
    if pages is not None:
        raise refused("pages in a quantising copy", "rows=, with a table of pages as an index of rows")
    side = matrix(view, "source", kind_of(view.dtype))
    height, width = (side.along, side.lines) if side.by_columns else (side.lines, side.along)
    count, indices, index = height, dict[str, ArrayView](), RowIndex()
    if rows is not None:
        if side.by_columns:
            raise refused("rows of a source stored by columns", "a source whose rows are contiguous")
        indices["rows"], count = _index(rows, height, "rows")
        index = replace(index, rows=True, masked=_pattern(fill, view))
    made = [scaled_side(one, fill, "destination") for one in outputs]
    if into_rows is not None:
        indices["into_rows"], named = _index(into_rows, made[0][0].lines, "into_rows")
        if named != count or len(made) != 1:
            raise InvalidValueError(
                f"into_rows has {named} entries; must have {count}, one for each row of the one output"
            )
        index = replace(index, into=True)
    for one, (form_side, _, _) in zip(outputs, made, strict=True):
        wanted = (one.shape[0] if index.into else count, width)
        if one.shape != wanted:
            raise InvalidValueError(
                f"the source has the shape {wanted} and the destination {one.shape}; they must be equal"
            )
        if one.format.tensor_scale and one.tensor_scale is None:
            raise refused(
                "a format with an unknown tensor scale",
                "ScaledTensor(..., tensor_scale=), computed from the largest magnitude of the tensor",
            )
        del form_side
    index = _of_widths(index, indices)
    launch = plan_scaled(side, [replace(one[0], gain=gain) for one in made], (count, width), index)
    pairs = tuple((data, scales) for _, data, scales in made)
    _refuse_overlaps([view, *indices.values()], [one for pair in pairs for one in pair])
    return ScaledWork(launch, {"source": view}, pairs, indices, {"rows": height, "into_rows": made[0][0].lines})


def _of_widths(index: RowIndex, indices: Mapping[str, ArrayView]) -> RowIndex:
    widths = {INDEX_TYPES[view.dtype.name] for view in indices.values()}
    if len(widths) > 1:
        raise InvalidTypeError("rows and into_rows have different element types; the types must be equal")
    return replace(index, width=widths.pop() if widths else 8)


def _array_work(
    a: ArrayView, b: ArrayView, rows: Any, into_rows: Any, pages: Any, fill: float | None, cast: bool
) -> ScaledWork:
    same = a.dtype == b.dtype
    if not same and not cast:
        text = f"source dtype {a.dtype} differs from destination dtype {b.dtype}"
        raise InvalidValueError(text, hint="cast=True converts").of_rule("dtype")
    indices, index = dict[str, ArrayView](), RowIndex()
    by_rows = rows is not None or into_rows is not None or pages is not None
    if not by_rows:
        if a.shape != b.shape:
            raise InvalidValueError(
                f"the source has the shape {a.shape} and the destination {b.shape}; they must be equal"
            )
        # A cast to the same type keeps all bytes, also of infinity and of NaN, which a cast changes.
        kinds = ("raw", "raw") if same else (kind_of(a.dtype), kind_of(b.dtype))
        raw = a.element_bytes if same else 1
        first, second = matrix(a, "source", kinds[0], raw), matrix(b, "destination", kinds[1], raw)
        if same:
            expect_same_lines(first, second)
        shape = (first.along, first.lines) if first.by_columns else (first.lines, first.along)
        launch = plan_scaled(first, [second], shape)
        _refuse_overlaps([a], [b])
        return ScaledWork(launch, {"source": a}, ((b, None),))
    if not a.shape or not b.shape:
        raise InvalidValueError("rows, into_rows and pages index arrays of at least one mode")
    count, inner = a.shape[0], a.shape[1:]
    if pages is not None:
        table = pages.reshape(-1) if hasattr(pages, "reshape") else np.asarray(pages, np.int64).reshape(-1)
        indices["rows"], count = _index(table, a.shape[0], "pages")
        if b.count != count * math.prod(inner):
            raise InvalidValueError(f"the destination has {b.count} elements; must have {count * math.prod(inner)}")
        b = replace(b, shape=(count, math.prod(inner)), strides=(math.prod(inner), 1)) if _is_dense(b) else b
        if len(b.shape) != 2:
            raise refused("pages into a destination with gaps", "a dense destination")
        a = replace(a, shape=(a.shape[0], math.prod(inner)), strides=(a.strides[0], 1)) if _inner_dense(a) else a
        inner, index = a.shape[1:], replace(index, rows=True, masked=_pattern(fill, a))
    elif rows is not None:
        indices["rows"], count = _index(rows, a.shape[0], "rows")
        index = replace(index, rows=True, masked=_pattern(fill, a))
    if into_rows is not None:
        indices["into_rows"], named = _index(into_rows, b.shape[0], "into_rows")
        if named != count:
            raise InvalidValueError(f"into_rows has {named} entries; must have {count}, one for each row")
        index = replace(index, into=True)
    wanted = (b.shape[0] if index.into else count, *inner)
    if b.shape != wanted:
        raise InvalidValueError(f"the destination has the shape {b.shape}; must be {wanted}")
    if same:
        first, second = _rows_of_bytes(a, "source"), _rows_of_bytes(b, "destination")
    else:
        first, second = matrix(a, "source", kind_of(a.dtype)), matrix(b, "destination", kind_of(b.dtype))
        if first.by_columns:
            raise refused("rows of a source stored by columns", "a source whose rows are contiguous")
    launch = plan_scaled(first, [second], (count, first.along), _of_widths(index, indices))
    _refuse_overlaps([a, *indices.values()], [b])
    limits = {"rows": a.shape[0], "into_rows": b.shape[0]}
    return ScaledWork(launch, {"source": a}, ((b, None),), indices, limits)


def _inner_dense(view: ArrayView) -> bool:
    step = 1
    for n, d in reversed(list(zip(view.shape[1:], view.strides[1:], strict=True))):
        if n != 1 and d != step:
            return False
        step *= n
    return True


def _is_dense(view: ArrayView) -> bool:
    inner = math.prod(view.shape[1:])
    return _inner_dense(view) and (view.shape[0] == 1 or view.strides[0] == inner)


def _from_scaled(
    source: ScaledTensor, outputs: Sequence[Any], rows: Any, pages: Any, into_rows: Any, fill: float | None
) -> ScaledWork:
    if pages is not None or into_rows is not None or len(outputs) != 1:
        raise refused("pages, into_rows or several outputs of a ScaledTensor", "rows=, and one destination")
    side, data, scales = scaled_side(source, None, "source")
    views, index, indices = {"source": data, "scales": scales}, RowIndex(), dict[str, ArrayView]()
    (M, K), height = source.shape, source.shape[0]
    if rows is not None:
        if fill:
            raise refused(f"fill = {fill} for masked rows of a ScaledTensor", "fill=0")
        indices["rows"], M = _index(rows, height, "rows")
        index = RowIndex(rows=True)
        if source.format.transposed or source.format.block[0] != 1:
            raise refused(
                "rows of a ScaledTensor that is transposed, or whose blocks have several rows", "block=(1, 32)"
            )
    limits = {"rows": height}
    to = outputs[0]
    if isinstance(to, ScaledTensor):
        other, there, its = scaled_side(to, None if rows is not None else fill, "destination")
        if to.shape != (M, K):
            raise InvalidValueError(
                f"the source has the shape {(M, K)} and the destination {to.shape}; they must be equal"
            )
        if source.tensor_scale != to.tensor_scale:
            raise InvalidValueError(
                f"the source has the tensor scale {source.tensor_scale} and the destination {to.tensor_scale}; "
                "they must be equal"
            ).of_rule("tensor_scale")
        launch = plan_scaled(side, [other], (M, K), _of_widths(index, indices))
        _refuse_overlaps([data, scales, *indices.values()], [there, its])
        return ScaledWork(launch, views, ((there, its),), indices, limits)
    if rows is not None:
        raise refused(
            "dequantised rows of a ScaledTensor", "a ScaledTensor as the destination, which you dequantise afterwards"
        )
    b = memory_view(_expect_array(to, "destination"))
    if b.shape != source.shape:
        raise InvalidValueError(
            f"the source has the shape {source.shape} and the destination {b.shape}; they must be equal"
        )
    second = matrix(b, "destination", kind_of(as_dtype(b.dtype)))
    launch = plan_scaled(side, [second], (M, K))
    _refuse_overlaps([data, scales], [b])
    return ScaledWork(launch, views, ((b, None),))
