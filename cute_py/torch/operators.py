"""PyTorch operators: torch.ops.cute_py.quantize, dequantize, convert, gather_rows, scatter_rows_, relayout.

    quantize(x, "mxfp8()")                          -> (data, scales, tensor_scale)
    dequantize(data, scales, tensor_scale, "mxfp8()", shape, dtype)  -> x
    convert(data, scales, tensor_scale, "mxfp8()", "mxfp8(scales='8x4')", shape)  -> (data, scales, tensor_scale)
    gather_rows(x, index, fill)                     -> rows; -1 gives a row of `fill`
    scatter_rows_(destination, rows, index)         writes into the destination, as its schema declares
    relayout(x, source, destination)                -> memory in another layout

Pass a format as a string, because graphs can contain strings but not objects. Each operator has a fake implementation,
so that torch.compile traces it without a graph break. On a GPU, the kernels of `cute.copy` run on PyTorch's current
stream, in memory from its allocator. No operator has a gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.copies.layout_copy import copy
from cute_py.copies.scaled.host import index_of_rows, same_bytes
from cute_py.errors import InvalidValueError, given
from cute_py.formats.array_shapes import array_shapes
from cute_py.formats.format import Format, as_format
from cute_py.formats.numbers import codes, number, of_codes
from cute_py.formats.scaled_tensor import ScaledTensor, dequantized, quantized, scaled_of_bits
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, cosize
from cute_py.notation.parse import parse
from cute_py.torch.arrays import as_numpy, as_torch, torch_dtype, torch_module

if TYPE_CHECKING:
    import torch

    from cute_py.copies.prepared_copy import Owned

    Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

OPERATORS: Final = {
    "quantize": ("(Tensor x, str format, Tensor? tensor_scale=None) -> (Tensor, Tensor, Tensor)", ()),
    "dequantize": (
        "(Tensor data, Tensor scales, Tensor? tensor_scale, str format, SymInt[] shape, ScalarType dtype) -> Tensor",
        (),
    ),
    "convert": (
        "(Tensor data, Tensor scales, Tensor? tensor_scale, str source, str destination, SymInt[] shape) "
        "-> (Tensor, Tensor, Tensor)",
        (),
    ),
    "gather_rows": ("(Tensor x, Tensor index, float fill=0.0) -> Tensor", ()),
    "scatter_rows_": ("(Tensor(a!) destination, Tensor rows, Tensor index) -> ()", ("destination",)),
    "relayout": ("(Tensor x, str source, str destination) -> Tensor", ()),
}
"""Name -> (schema, arguments that it writes)."""


@functools.cache
def parsed_layout(text: str) -> Layout | ComposedLayout:
    """Parse the text of a layout.

    Raises:
        InvalidValueError: the text is not a layout.
    """
    made = parse(text)
    if not isinstance(made, (Layout, ComposedLayout)):
        raise InvalidValueError(f"{given(text)} is not a layout")
    return made


def _kinds(form: Format) -> tuple[Any, Any]:
    """Return PyTorch's types of data and scales; packed elements are bytes."""
    torch = torch_module("an operator of cute_py")
    return (torch_dtype(form.dtype) if form.number.bits == 8 else torch.uint8), torch_dtype(form.scale_dtype)


# ---- the host


def operands_of(scaled: ScaledTensor) -> Triple:
    """Return (data, scales, tensor scale) of a ScaledTensor as tensors that share its memory. The tensor scale is 1 if
    the ScaledTensor has none."""
    torch = torch_module("operands_of")
    data, scales = _kinds(scaled.format)
    total = 1.0 if scaled.tensor_scale is None else float(scaled.tensor_scale)
    flat = of_codes(np.ascontiguousarray(scaled.scales), scaled.format.scale_dtype)
    stored = codes(np.ascontiguousarray(scaled.data))
    shape = array_shapes(scaled.format, scaled.shape)[1]
    return (
        as_torch(stored).view(data),
        as_torch(flat.reshape(shape)).view(scales),
        torch.tensor(total, dtype=torch.float32),
    )


def scaled_of(
    data: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor | None,
    format: Format | str,
    shape: Sequence[int],
) -> ScaledTensor:
    """Make a ScaledTensor from tensors in host memory; it shares their memory if they are contiguous.

    Raises:
        InvalidValueError: the sizes do not fit the format.
    """
    total = None if tensor_scale is None else float(tensor_scale)
    return scaled_of_bits(as_numpy(data.contiguous()), as_numpy(scales.contiguous()), total, as_format(format), shape)


def _quantize(x: torch.Tensor, format: str, tensor_scale: torch.Tensor | None = None) -> Triple:
    if x.device.type != "cpu":
        return _device_quantize(x, format, tensor_scale)
    form = as_format(format)
    total = np.float32(float(tensor_scale)) if tensor_scale is not None and form.tensor_scale else None
    return operands_of(quantized(as_numpy(x.contiguous()), form, total=total))


def _dequantize(
    data: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor | None,
    format: str,
    shape: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    if data.device.type != "cpu":
        return _device_dequantize(data, scales, tensor_scale, format, shape, dtype)
    made = dequantized(scaled_of(data, scales, tensor_scale, format, shape), number(str(dtype)).dtype)
    return as_torch(np.ascontiguousarray(made))


def _convert(
    data: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor | None,
    source: str,
    destination: str,
    shape: Sequence[int],
) -> Triple:
    if data.device.type != "cpu":
        return _device_convert(data, scales, tensor_scale, source, destination, shape)
    made = copy(scaled_of(data, scales, tensor_scale, source, shape), as_format(destination), requantize=True)
    return operands_of(made)


def _gather_rows(x: torch.Tensor, index: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
    made = x.new_empty((index.shape[0], *x.shape[1:]))
    if x.device.type != "cpu":
        _on_stream(x.detach(), made, x.device, rows=index, fill=fill)
    elif made.numel():
        copy(as_numpy(x), as_numpy(made), rows=index_of_rows(as_numpy(index), x.shape[0], "index"), fill=fill)
    return made


def _scatter_rows(destination: torch.Tensor, rows: torch.Tensor, index: torch.Tensor) -> None:
    if destination.device.type != "cpu":
        _on_stream(rows.detach(), destination.detach(), rows.device, into_rows=index)
        return
    copy(as_numpy(rows.contiguous()), as_numpy(destination), into_rows=as_numpy(index))


def _relayout(x: torch.Tensor, source: str, destination: str) -> torch.Tensor:
    torch = torch_module("relayout")
    ours, theirs = parsed_layout(source), parsed_layout(destination)
    made = torch.zeros(int(cosize(theirs)), dtype=x.dtype, device=x.device)
    if x.device.type != "cpu":
        _on_stream((x, ours), (made, theirs), x.device)
        return made
    flat, memory = as_numpy(x.contiguous()).reshape(-1), as_numpy(made)
    copy((codes(flat), ours), (codes(memory), theirs))
    return made


# ---- a device: `cute.copy` on the current stream


_CAPTURED: Final[list[tuple[Owned, ...]]] = []
"""Kernels and device memory of copies in CUDA graphs. The nodes of a graph hold their addresses, so they live as long
as the process. The arrays belong to PyTorch, which keeps what its graphs use."""


def _capturing() -> bool:
    return bool(torch_module("an operator of cute_py").cuda.is_current_stream_capturing())


def _on_stream(source: Any, destination: Any, device: torch.device, **options: Any) -> None:
    """Copy on PyTorch's current stream. If the stream is being captured, the kernels become nodes of its graph."""
    stream = torch_module("an operator of cute_py").cuda.current_stream(device)
    if not _capturing():
        copy(source, destination, stream=stream, **options)
        return
    from cute_py.copies.prepared import prepare_copy  # The host's operators import no code of a GPU.
    from cute_py.gpu.device import during_capture

    with during_capture():
        prepared = prepare_copy(source, destination, **options)
        prepared.launch(stream)
    _CAPTURED.append(prepared.owned())


def _host_scale(total: torch.Tensor | None, form: Format) -> float | None:
    """Return the tensor scale as a number on the host; None if the format has none. The call waits for a scale that is
    on a device.

    Raises:
        InvalidValueError: rule 'capture': a stream is being captured, and the scale is on a device or must be computed
            there.
    """
    if total is None or not form.tensor_scale:
        return None
    if total.device.type != "cpu" and _capturing():
        text = "the tensor scale is on the device, but the host can't read it during the capture of a CUDA graph"
        raise InvalidValueError(text, hint="pass a tensor_scale in host memory").of_rule("capture")
    return float(total)


def _device_scaled(form: Format, shape: Sequence[int], device: Any) -> tuple[Any, Any]:
    """Allocate data and scales on a device; the padding is 0."""
    torch = torch_module("an operator of cute_py")
    kinds, shapes = _kinds(form), array_shapes(form, shape)
    data = torch.zeros(shapes[0], dtype=torch.uint8, device=device)
    width = kinds[1].itemsize
    scales = torch.zeros((*shapes[1][:-1], shapes[1][-1] * width), dtype=torch.uint8, device=device).view(kinds[1])
    return data.view(kinds[0]), scales


def _view(data: Any, scales: Any, form: Format, total: float | None, shape: Sequence[int]) -> ScaledTensor:
    said = None if total is None or not form.tensor_scale else np.float32(total)
    return ScaledTensor(data, scales, form, said, tuple(map(int, shape)))


def _scale_of(total: float | None, device: Any) -> torch.Tensor:
    """Return the tensor scale as a tensor on a device; it is 1 if the format has none."""
    torch = torch_module("an operator of cute_py")
    made: Any = torch.full((), 1.0 if total is None else total, dtype=torch.float32, device=device)
    return made


def _device_quantize(x: torch.Tensor, format: str, tensor_scale: torch.Tensor | None) -> Triple:
    """Quantise on a device. The host reads a tensor scale that you do not pass, or that is on the device, and waits for
    it."""
    form = as_format(format)
    if tensor_scale is None and form.tensor_scale:
        tensor_scale = x.detach().abs().amax().float() / (448.0 * 6.0)
    total = _host_scale(tensor_scale, form)
    data, scales = _device_scaled(form, x.shape, x.device)
    _on_stream(x.detach(), _view(data, scales, form, total, x.shape), x.device)
    return data, scales, _scale_of(total, x.device)


def _device_dequantize(
    data: torch.Tensor, scales: torch.Tensor, total: torch.Tensor | None, format: str, shape: Sequence[int], dtype: Any
) -> torch.Tensor:
    torch = torch_module("an operator of cute_py")
    made: Any = torch.empty(tuple(shape), dtype=dtype, device=data.device)
    form = as_format(format)
    _on_stream(_view(data, scales, form, _host_scale(total, form), shape), made, data.device)
    return made


def _device_convert(
    data: torch.Tensor, scales: torch.Tensor, total: torch.Tensor | None, source: str, to: str, shape: Sequence[int]
) -> Triple:
    torch = torch_module("an operator of cute_py")
    ours, form = as_format(source), as_format(to)
    if not same_bytes(ours, form):
        return _device_quantize(_device_dequantize(data, scales, total, source, shape, torch.float32), to, None)
    made, scale = _device_scaled(form, shape, data.device), _host_scale(total, ours)
    _on_stream(_view(data, scales, ours, scale, shape), _view(*made, form, scale, shape), data.device)
    return *made, _scale_of(scale if form.tensor_scale else None, data.device)


# ---- fake implementations: shapes and types alone


def _fake_triple(like: torch.Tensor, form: Format, shape: Sequence[Any]) -> Triple:
    torch = torch_module("an operator of cute_py")
    (data, scales), kinds = array_shapes(form, shape), _kinds(form)
    return (
        like.new_empty(data, dtype=kinds[0]),
        like.new_empty(scales, dtype=kinds[1]),
        like.new_empty((), dtype=torch.float32),
    )


def _fake_quantize(x: torch.Tensor, format: str, tensor_scale: torch.Tensor | None = None) -> Triple:
    return _fake_triple(x, as_format(format), x.shape)


def _fake_dequantize(data: Any, scales: Any, tensor_scale: Any, format: str, shape: Any, dtype: Any) -> torch.Tensor:
    as_format(format)
    return data.new_empty(tuple(shape), dtype=dtype)


def _fake_convert(data: Any, scales: Any, tensor_scale: Any, source: str, destination: str, shape: Any) -> Triple:
    return _fake_triple(data, as_format(destination), shape)


def _fake_gather_rows(x: torch.Tensor, index: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
    return x.new_empty((index.shape[0], *x.shape[1:]))


def _fake_scatter_rows(destination: torch.Tensor, rows: torch.Tensor, index: torch.Tensor) -> None:
    return None


def _fake_relayout(x: torch.Tensor, source: str, destination: str) -> torch.Tensor:
    parsed_layout(source)
    return x.new_empty((int(cosize(parsed_layout(destination))),))


_BODIES: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "quantize": (_quantize, _fake_quantize),
    "dequantize": (_dequantize, _fake_dequantize),
    "convert": (_convert, _fake_convert),
    "gather_rows": (_gather_rows, _fake_gather_rows),
    "scatter_rows_": (_scatter_rows, _fake_scatter_rows),
    "relayout": (_relayout, _fake_relayout),
}


@functools.cache
def register() -> None:
    """Register the operators with PyTorch; a second call does nothing."""
    torch = torch_module("an operator of cute_py")
    for name, (schema, written) in OPERATORS.items():
        body, fake = _BODIES[name]
        made = torch.library.custom_op(f"cute_py::{name}", body, mutates_args=written, schema=schema)
        made.register_fake(fake)


# ---- the same as functions


def _operators() -> Any:
    """Return the registered operators. It uses an import statement, because torch.compile can trace it, unlike
    `torch_module`."""
    import torch

    return torch.ops.cute_py


def _text(format: Format | str) -> str:
    return format if isinstance(format, str) else repr(format)


def quantize(x: torch.Tensor, format: Format | str, tensor_scale: torch.Tensor | None = None) -> Triple:
    """Quantise a tensor to a format, and return (data, scales, tensor scale). The tensor scale is 1 if the format has
    none."""
    made: Triple = _operators().quantize(x, _text(format), tensor_scale)
    return made


def dequantize(
    data: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor | None,
    format: Format | str,
    shape: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """Dequantise a tensor in a format, and return its values, rounded once to `dtype`."""
    return _operators().dequantize(data, scales, tensor_scale, _text(format), shape, dtype)


def convert_scaled(
    data: torch.Tensor,
    scales: torch.Tensor,
    tensor_scale: torch.Tensor | None,
    source: Format | str,
    destination: Format | str,
    shape: Sequence[int],
) -> Triple:
    """Convert a quantised tensor to another format. If only the order of the scales differs, the data is not
    changed."""
    made: Triple = _operators().convert(data, scales, tensor_scale, _text(source), _text(destination), shape)
    return made


def gather_rows(x: torch.Tensor, index: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
    """Return the rows that an index selects; -1 gives a row of `fill`."""
    return _operators().gather_rows(x, index, fill)


def scatter_rows_(destination: torch.Tensor, rows: torch.Tensor, index: torch.Tensor) -> None:
    """Replace the rows of the destination that an index selects by `rows`, in place; -1 skips a row."""
    _operators().scatter_rows_(destination, rows, index)


def relayout(x: torch.Tensor, source: str, destination: str) -> torch.Tensor:
    """Copy a tensor to another layout: `source` is the layout of x's memory, and `destination` is the layout of the
    flat result."""
    return _operators().relayout(x, source, destination)
