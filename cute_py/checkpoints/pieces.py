"""The bytes of converted tensors, a piece of rows at a time, so that memory is bounded by a piece and the scales of a
tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cute_py.copies.scaled.operands import expect_device_format
from cute_py.copies.scaled.prepared import copy_by_device
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidValueError
from cute_py.formats.buffers import are_nan
from cute_py.formats.format import Format
from cute_py.formats.numbers import codes, number
from cute_py.formats.scale_rules import tensor_scale
from cute_py.formats.scaled_tensor import (
    ScaledTensor,
    dequantized,
    largest_magnitude,
    quantized,
    scale_places,
    scatter_scales,
    stored_elements,
    stored_scales,
    stored_shape,
)
from cute_py.formats.stored_weights import (
    Convention,
    StoredWeight,
    read_scales,
    read_total,
    read_weight,
    stored_data,
    stored_scale_array,
    stored_scale_shape,
    stored_total,
)
from cute_py.gpu.device import open_device
from cute_py.mesh.stored_tensors import StoredTensor

PIECE: Final = 1 << 23
"""Elements of a piece: 16 MiB of bfloat16, and several times as much during the computation."""

Write = Callable[[str, NDArray[Any]], None]
"""Called with the name of a tensor and its next elements."""


@dataclass(frozen=True, slots=True)
class Source:
    """A weight of the source checkpoint: a tensor of floats, or a quantised weight with its tensors."""

    name: str
    shape: tuple[int, ...]
    tensors: Mapping[str, StoredTensor]
    """By part: only 'data', or also 'scales' and 'total'."""

    weight: StoredWeight | None = None

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def dtype(self) -> str:
        """The element type of a tensor of floats. For a quantised weight, the type before quantisation if the file
        names it, otherwise bfloat16."""
        if self.weight is None:
            return self.tensors["data"].dtype.name
        return self.weight.dtype or "bfloat16"

    def stored_rows(self, plane: int, first: int, count: int) -> NDArray[Any]:
        """Some rows of the stored elements."""
        data = self.tensors["data"]
        *lead, rows, columns = data.shape if self.weight is None else stored_shape(self.weight.format, self.shape)
        flat = replace(data, shape=(math.prod(lead) * rows, columns)).rows(plane * rows + first, count).mapped()
        return flat.reshape(count, columns)


@dataclass(frozen=True, slots=True)
class Written:
    """The result for a weight: the bits of its tensor scale, and the statement that some of its numbers are NaN; "" if
    none is, or if the numbers were not judged."""

    bits: int | None = None
    nan: str = ""


Rows = Callable[[int, int, int], NDArray[Any]]
"""Called with a plane, a first row and a number of rows."""


def total_of(source: Source) -> np.float32 | None:
    """The tensor scale of a quantised weight, or None."""
    if source.weight is None or "total" not in source.tensors:
        return None
    return read_total(source.weight, source.tensors["total"].mapped())


def _grid_of(source: Source, weight: StoredWeight) -> NDArray[Any]:
    """The scales of a quantised weight as a plain grid of blocks, in their stored type."""
    flat = stored_scales(read_scales(weight, source.tensors["scales"].mapped()), weight.format)
    return flat[scale_places(weight.format, source.shape)]


def _scaled_rows(source: Source, weight: StoredWeight) -> Callable[[int, int, int], ScaledTensor]:
    """A function that returns some rows of a quantised weight, whose format `streams`, with linear scales."""
    total, form = total_of(source), weight.format
    planes, plain = _grid_of(source, weight).reshape(-1, *_blocks(form, source.shape)), form.with_(scales="linear")

    def rows(plane: int, first: int, count: int) -> ScaledTensor:
        height = form.block[0] or 1
        scales = np.ascontiguousarray(planes[plane, first // height : -(-(first + count) // height)])
        part = codes(np.ascontiguousarray(source.stored_rows(plane, first, count)))
        return ScaledTensor(stored_elements(part, form), scales, plain, total, (count, source.shape[-1]))

    return rows


def _dequantised(part: ScaledTensor, dtype: DType, device: str) -> NDArray[Any]:
    """The values of some rows, rounded once to a type."""
    if device == "host":
        return dequantized(part, dtype)
    values = np.empty(part.shape, dtype.numpy)
    copy_by_device(part, values)
    return values


def rows_of(source: Source, dtype: DType | None = None, device: str = "host") -> Rows:
    """A function that returns some rows of a weight as plain values: the stored values, or those of a quantised weight
    rounded once to a type (default float32)."""
    weight, dtype = source.weight, dtype or as_dtype("float32")
    if weight is None:
        return source.stored_rows
    if not streams(weight.format):
        arrays = {part: tensor.mapped().reshape(tensor.shape) for part, tensor in source.tensors.items()}
        whole = dequantized(read_weight(weight, arrays), dtype).reshape(-1, *source.shape[-2:])
        return lambda plane, first, count: whole[plane, first : first + count]
    parts = _scaled_rows(source, weight)
    return lambda plane, first, count: _dequantised(parts(plane, first, count), dtype, device)


def _blocks(form: Format, shape: tuple[int, ...]) -> tuple[int, int]:
    M, K = shape[-2:]
    rows, columns = form.blocks(M, K)
    return -(-M // rows), -(-K // columns)


def _walk(source: Source, height: int) -> Iterator[tuple[int, int, int]]:
    """(plane, first row, rows) of the pieces of a weight; the number of rows is a multiple of `height`, except in the
    last piece."""
    *lead, M, K = source.shape
    step = max(1, PIECE // max(1, K * height)) * height
    for plane in range(math.prod(lead)):
        for first in range(0, M, step):
            yield plane, first, min(step, M - first)


def streams(form: Format) -> bool:
    """Whether a format can be made in pieces of rows: blocks have a fixed number of rows, and the data is not
    transposed.

    >>> streams(cute.formats.nvfp4()), streams(cute.formats.fp8("column"))
    (True, False)
    """
    return form.block[0] is not None and not form.transposed and form.padding[0] == 1


def expect_on_device(to: Format | DType, quantised: Iterable[Format]) -> None:
    """Refuse a conversion that is not supported on a GPU.

    Args:
        to: the format or type of the result. quantised: the formats that the conversion dequantises.
    Raises:
        DeviceError: there is no GPU. InvalidValueError: a format can't be processed in pieces of rows, or has elements
            that the kernels do not support.
    """
    for form in (*quantised, *([to] if isinstance(to, Format) else [])):
        if not streams(form):
            raise InvalidValueError(
                f"conversion to or from {form} is not supported on a device; must be a format with a fixed number of "
                "rows per block, whose data is not transposed"
            ).of_rule("device")
        expect_device_format(form)
    open_device()


def _quantised(values: NDArray[Any], form: Format, largest: float, device: str) -> ScaledTensor:
    """Quantise some rows. `largest` is the largest magnitude of the whole weight."""
    if device == "host":
        return quantized(values, form, largest=largest)
    if not form.tensor_scale:
        made: ScaledTensor = copy_by_device(values, form)
        return made
    total = tensor_scale(largest, form.like)[0]
    data = np.zeros(stored_shape(form, values.shape), np.uint8)
    scales = np.zeros(int(form.scale_size(*values.shape)), np.uint8).view(form.scale_dtype.numpy)
    goal = ScaledTensor(data, scales, form, total, values.shape)
    copy_by_device(values, goal)
    return goal


def quantise(
    source: Source,
    form: Format,
    row: Convention,
    names: Mapping[str, str],
    write: Write,
    device: str = "host",
) -> Written:
    """Write a weight in a format."""
    rows, weight = rows_of(source, device=device), source.weight
    height = math.lcm(form.block[0] or 1, 1 if weight is None else weight.format.block[0] or 1)
    largest = 0.0
    if form.tensor_scale:
        for plane, first, count in _walk(source, height):
            largest = max(largest, largest_magnitude(rows(plane, first, count)))
    if not streams(form):
        whole = [rows(plane, 0, source.shape[-2]) for plane in range(math.prod(source.shape[:-2]))]
        made = quantized(np.stack(whole).reshape(source.shape), form, largest=largest)
        write(names["data"], stored_data(made.data, form))
        write(names["scales"], stored_scale_array(made.scales, row, form, source.shape))
        nan = _nan_weight(int(np.isnan(made.scale_grid()).sum()), _count_nan(form, made.data))
        return Written(_write_total(made.tensor_scale, row, names, write), nan)
    plain, grids, wrong = form.with_(scales="linear"), [], 0
    for plane, first, count in _walk(source, height):
        made = _quantised(np.ascontiguousarray(rows(plane, first, count)), plain, largest, device)
        write(names["data"], stored_data(made.data, form))
        wrong += _count_nan(form, made.data)
        grids.append(made.scales)
    grid = np.concatenate(grids).reshape(*source.shape[:-2], *_blocks(form, source.shape))
    scales = scatter_scales(grid, form, source.shape)
    write(names["scales"], stored_scale_array(scales, row, form, source.shape))
    total = tensor_scale(largest, form.like)[0] if form.tensor_scale else None
    nan = _nan_weight(int(number(form.scale).is_nan(codes(grid)).sum()), wrong)
    return Written(_write_total(total, row, names, write), nan)


def _count_nan(form: Format, data: NDArray[np.generic]) -> int:
    """The number of NaN among stored elements of a format."""
    return int(form.number.is_nan(codes(data)).sum()) if form.number.nan is not None else 0


def _nan_weight(scales: int, elements: int) -> str:
    """The statement that some scales are NaN, otherwise that some elements are."""
    if scales:
        return are_nan(scales, "scale")
    return are_nan(elements, "element") if elements else ""


def _write_total(total: Any, row: Convention, names: Mapping[str, str], write: Write) -> int | None:
    if total is None:
        return None
    write(names["total"], stored_total(total, row))
    return int(np.float32(total).view(np.uint32))


def reorder(source: Source, form: Format, row: Convention, names: Mapping[str, str], write: Write) -> Written:
    """Write a quantised weight with other names and another order of its scales; its elements do not change."""
    nan = ""
    if source.weight is not None:
        wrong = 0

        def judged(name: str, values: NDArray[np.generic]) -> None:
            nonlocal wrong
            wrong += _count_nan(form, values)
            write(name, values)

        copied(source.tensors["data"], names["data"], judged)
        grid = codes(_grid_of(source, source.weight))
        scales = scatter_scales(grid, form, source.shape)
        write(names["scales"], stored_scale_array(scales, row, form, source.shape))
        nan = _nan_weight(int(number(form.scale).is_nan(grid).sum()), wrong)
    return Written(_write_total(total_of(source), row, names, write), nan)


def dequantise(source: Source, dtype: DType, name: str, write: Write, device: str = "host") -> Written:
    """Dequantise a weight, round each value once to a type, and write the values under a name."""
    rows, kind, wrong = rows_of(source, dtype, device), number(dtype), 0
    height = 1 if source.weight is None else source.weight.format.block[0] or 1
    for plane, first, count in _walk(source, height):
        values = rows(plane, first, count)
        wrong += int(kind.is_nan(codes(values)).sum())
        write(name, values)
    return Written(nan=are_nan(wrong, "value") if wrong else "")


def copied(tensor: StoredTensor, name: str, write: Write) -> None:
    """Write a tensor unchanged, under a name."""
    for at in range(0, tensor.nbytes, PIECE):
        write(name, tensor.part(at, min(PIECE, tensor.nbytes - at)))


def shapes_of(
    form: Format, row: Convention, names: Mapping[str, str], shape: tuple[int, ...]
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The (element type, shape) of each tensor that a row stores for a weight, by name."""
    data = form.dtype.name if form.number.bits == 8 else "uint8"
    scales = row.scale_types[0] if row.scale_types else form.scale_dtype.name
    made = {
        names["data"]: (data, stored_shape(form, shape)),
        names["scales"]: (scales, stored_scale_shape(row, form, shape)),
    }
    if form.tensor_scale:
        made[names["total"]] = ("float32", row.total_shape)
    return made
