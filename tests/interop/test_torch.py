"""Tensors of PyTorch in host memory. On a GPU: tests/gpu/test_streams.py and the end of this file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError
from cute_py.gpu.arrays import array_view
from cute_py.gpu.device import device_available

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "interop.md"
TILE = Layout((Int(32), Int(32)), LayoutRight)
DTYPES = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "uint8": np.uint8,
    "int8": np.int8,
    "int32": np.int32,
    "int64": np.int64,
}


def as_numpy(x: Any) -> np.ndarray[Any, Any]:
    """The same memory as numpy, as the page has it."""
    name = str(x.dtype).removeprefix("torch.")
    if not name.startswith(("bfloat", "float8")):
        return x.numpy()
    integer = torch.uint8 if x.element_size() == 1 else torch.uint16
    return x.view(integer).numpy().view(DTYPES[name])


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_is_copied_bit_by_bit(name: str) -> None:
    x = torch.arange(64 * 64).remainder(100).reshape(64, 64).to(getattr(torch, name))
    tensor = cute.make_tensor(x)
    assert tensor.element_type.name == name
    assert tensor.engine.address == x.data_ptr()
    assert float(tensor(1, 2)) == float(x[1, 2])
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, TILE)
    result = cute.tma.copy(atom, as_numpy(x))
    assert result.equal
    integer = torch.from_numpy(result.destination.view(f"u{x.element_size()}"))
    assert torch.equal(integer.view(x.dtype).float(), x.float())


VIEWS = {
    "transposed": lambda x: x.t(),
    "window": lambda x: x[4:20, 8:24],
    "every other row": lambda x: x[::2],
    "every other column": lambda x: x[:, ::2],
    "expanded": lambda x: x[:1].expand(5, 64),
    "permuted": lambda x: x.reshape(4, 8, 64).permute(2, 0, 1),
    "unfolded": lambda x: x.reshape(-1).unfold(0, 8, 4),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_its_own_strides(name: str) -> None:
    x = VIEWS[name](torch.arange(32 * 64, dtype=torch.float32).reshape(32, 64))
    tensor, view = cute.make_tensor(x), array_view(x)
    assert view.address == tensor.engine.address == x.data_ptr()
    assert view.strides == tuple(x.stride())
    assert cute.offsets(tensor.layout).shape == tuple(x.shape)
    last = tuple(n - 1 for n in x.shape)
    assert tensor(*last) == x[last]


def test_writing_goes_to_the_tensor() -> None:
    x = torch.zeros(4, 4)
    cute.make_tensor(x)[1, 2] = 5
    assert x[1, 2] == 5


def test_a_tensor_without_modes() -> None:
    assert cute.make_tensor(torch.tensor(3.0))(()) == 3
    assert array_view(torch.tensor(3.0)).shape == ()


def test_a_tensor_that_requires_a_gradient_is_detached_first() -> None:
    x = torch.zeros(4, 4, requires_grad=True)
    with pytest.raises(InvalidValueError, match="detach"):
        array_view(x)
    assert array_view(x.detach()).address == x.data_ptr()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.ones(3, dtype=torch.complex64).conj(), "resolve_conj"),
        (lambda: torch.ones(3, dtype=torch.complex64).conj().imag, "resolve_neg"),
        (lambda: torch.ones(4, device="meta"), "through DLPack"),
        (lambda: torch.ones(3, 3).to_sparse(), "through DLPack"),
    ],
)
def test_tensors_whose_memory_does_not_hold_their_values_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidTypeError, match=words):
        cute.make_tensor(make())


def test_the_emulator_says_what_to_give_it() -> None:
    x = torch.zeros(64, 64)
    with pytest.raises(InvalidTypeError, match=r"numpy\.from_dlpack"):
        cute.tma.copy(cute.tma.make_tma_copy("SM90_TMA_LOAD", x, TILE), x)


def test_the_page_without_a_gpu() -> None:
    (block,) = re.findall(r"^```python no-run\n(import torch.*?)\non_gpu", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"cute": cute, "np": np, "ml_dtypes": ml_dtypes, "tile": TILE}
    exec(block, names)
    assert names["result"].equal
    assert names["back"].dtype == torch.bfloat16
    assert torch.equal(names["back"], names["x"])


def test_streams_of_torch_are_known() -> None:
    from cute_py.tensor.array_views import stream_handle

    class Stand:
        """What torch.cuda.Stream has, on a machine that has none."""

        cuda_stream = 77

    assert hasattr(torch.cuda.Stream, "cuda_stream") or not torch.cuda.is_available()
    assert stream_handle(Stand()) == 77


@pytest.mark.gpu
@pytest.mark.skipif(not device_available(), reason="no GPU with TMA (or no driver, or no cuda-python)")
def test_the_page_on_a_gpu() -> None:
    x = torch.arange(1024 * 512, device="cuda").remainder(251).reshape(1024, 512).to(torch.bfloat16)
    assert cute.make_tensor(x.to(torch.float8_e5m2)).element_type.name == "float8_e5m2"
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, TILE)
    result = cute.tma.copy(atom, x, backend="cuda")
    assert result.equal
    assert isinstance(result.destination, torch.Tensor)
    y, stream = torch.empty_like(x), torch.cuda.Stream()
    torch.cuda.synchronize()
    assert cute.tma.copy(atom, x, y, backend="cuda", stream=stream).equal is None
    stream.synchronize()
    assert torch.equal(x, y)
    host = torch.arange(64 * 64).reshape(64, 64).float()
    of_host = cute.tma.make_tma_copy("SM90_TMA_LOAD", host, TILE)
    assert cute.tma.copy(of_host, host.numpy(), backend="both").equal
    with pytest.raises(DeviceError, match="Tensor is in host memory"):
        cute.tma.copy(of_host, host, backend="cuda")
