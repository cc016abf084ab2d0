"""JAX functions that call `cute.copy` through jax.pure_callback. They work under jit and vmap, and their results have
fixed types.

    quantize(x, "mxfp8()")                                  -> (data, scales, tensor_scale)
    dequantize(data, scales, tensor_scale, "mxfp8()", shape, dtype)  -> x
    convert_scaled(data, scales, tensor_scale, source, destination, shape)
    gather_rows(x, index, fill), scatter_rows(destination, rows, index), relayout(x, source, destination)

Features that JAX lacks, and what this module does instead:

    packed e2m1      JAX's float4_e2m1fn has one element per byte on the host, so packed data is uint8
    writes           JAX has no mutation, so scatter_rows returns a new array
    a GPU            the callback moves the arrays to the host and back; jax.ffi needs a compiled handler, which is not
                     part of this package
    gradients        pure_callback has none
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cute_py.copies.layout_copy import copy
from cute_py.copies.scaled.host import index_of_rows
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidValueError, given, imported
from cute_py.formats.array_shapes import array_shapes
from cute_py.formats.format import Format, as_format
from cute_py.formats.numbers import codes, of_codes
from cute_py.formats.scaled_tensor import ScaledTensor, dequantized, quantized, scaled_of_bits
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, cosize
from cute_py.notation.parse import parse

INSTALL: Final = "pip install jax"
Array = Any
Triple = tuple[Array, Array, Array]


def _jax() -> Any:
    return imported("jax", "a function of cute_py.jax", "jax", INSTALL)


def _call(body: Callable[..., Any], results: Any, *arrays: Array) -> Any:
    """Call a host function through jax.pure_callback. `results` is the (shape, type) of the result, or of each of
    several results."""
    jax = _jax()
    several = isinstance(results, list)
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (results if several else [results])]
    return jax.pure_callback(
        lambda *given_arrays: body(*map(np.asarray, given_arrays)),
        tuple(shapes) if several else shapes[0],
        *arrays,
        vmap_method="sequential",
    )


def _results(form: Format, shape: Sequence[int]) -> list[tuple[tuple[int, ...], Any]]:
    data, scales = array_shapes(form, shape)
    kind = form.dtype.numpy if form.number.bits == 8 else np.dtype(np.uint8)
    return [(data, kind), (scales, form.scale_dtype.numpy), ((), np.dtype(np.float32))]


def _arrays(scaled: ScaledTensor) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    results = _results(scaled.format, scaled.shape)
    total = np.float32(1 if scaled.tensor_scale is None else scaled.tensor_scale)
    stored = codes(np.ascontiguousarray(scaled.data)).view(results[0][1])
    flat = of_codes(np.ascontiguousarray(scaled.scales), scaled.format.scale_dtype)
    return stored, flat.reshape(results[1][0]), np.asarray(total)


def scaled_of(
    data: Array, scales: Array, tensor_scale: Array | None, format: Format | str, shape: Sequence[int]
) -> ScaledTensor:
    """Make a ScaledTensor in host memory from JAX's arrays."""
    form = as_format(format)
    return scaled_of_bits(np.ascontiguousarray(data), np.ascontiguousarray(scales), tensor_scale, form, shape)


def quantize(x: Array, format: Format | str, tensor_scale: Array | None = None) -> Triple:
    """Quantise an array to a format, and return (data, scales, tensor scale). The tensor scale is 1 if the format has
    none."""
    form = as_format(format)

    def body(values: NDArray[Any], *total: NDArray[Any]) -> Any:
        said = np.float32(total[0]) if total and form.tensor_scale else None
        return _arrays(quantized(np.ascontiguousarray(values), form, total=said))

    more = () if tensor_scale is None else (tensor_scale,)
    made: Triple = _call(body, _results(form, x.shape), x, *more)
    return made


def dequantize(
    data: Array, scales: Array, tensor_scale: Array, format: Format | str, shape: Sequence[int], dtype: DTypeLike
) -> Array:
    """Dequantise an array in a format, and return its values, rounded once to `dtype`."""
    row = as_dtype(dtype)

    def body(stored: NDArray[Any], grid: NDArray[Any], total: NDArray[Any]) -> Any:
        return dequantized(scaled_of(stored, grid, total, format, shape), row)

    return _call(body, (tuple(shape), row.numpy), data, scales, tensor_scale)


def convert_scaled(
    data: Array,
    scales: Array,
    tensor_scale: Array,
    source: Format | str,
    destination: Format | str,
    shape: Sequence[int],
) -> Triple:
    """Convert a quantised array to another format. If only the order of the scales differs, the data is not changed."""
    goal = as_format(destination)

    def body(stored: NDArray[Any], grid: NDArray[Any], total: NDArray[Any]) -> Any:
        return _arrays(copy(scaled_of(stored, grid, total, source, shape), goal, requantize=True))

    made: Triple = _call(body, _results(goal, shape), data, scales, tensor_scale)
    return made


def gather_rows(x: Array, index: Array, fill: float = 0.0) -> Array:
    """Return the rows that an index selects; -1 gives a row of `fill`."""

    def body(values: NDArray[Any], rows: NDArray[Any], masked: NDArray[Any]) -> Any:
        made = np.empty((len(rows), *values.shape[1:]), values.dtype)
        return copy(values, made, rows=rows, fill=float(masked)).destination

    masked = np.float32(fill) if isinstance(fill, (int, float)) else fill
    return _call(body, ((index.shape[0], *x.shape[1:]), np.dtype(x.dtype)), x, index, masked)


def scatter_rows(destination: Array, rows: Array, index: Array) -> Array:
    """Return a copy of the destination where `rows` replace the rows that an index selects; -1 skips a row."""

    def body(old: NDArray[Any], values: NDArray[Any], places: NDArray[Any]) -> Any:
        made = old.copy()
        index_of_rows(places, len(made), "index")
        copy(values, made, into_rows=places)
        return made

    return _call(body, (tuple(destination.shape), np.dtype(destination.dtype)), destination, rows, index)


@functools.cache
def _layout(text: str) -> Layout | ComposedLayout:
    made = parse(text)
    if not isinstance(made, (Layout, ComposedLayout)):
        raise InvalidValueError(f"{given(text)} is not a layout")
    return made


def relayout(x: Array, source: str, destination: str) -> Array:
    """Copy an array to another layout: `source` is the layout of x's memory, and `destination` is the layout of the
    flat result."""
    ours, theirs = _layout(source), _layout(destination)

    def body(values: NDArray[Any]) -> Any:
        made = np.zeros(int(cosize(theirs)), values.dtype)
        copy((codes(np.ascontiguousarray(values)).reshape(-1), ours), (codes(made), theirs))
        return made

    return _call(body, ((int(cosize(theirs)),), np.dtype(x.dtype)), x)
