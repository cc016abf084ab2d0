"""Atoms on device arrays: torch and cupy tensors where they lie, streams, reports, isolation, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, InvalidValueError, TmaLimitError


def tile(*shape: int) -> Any:
    return Layout(tuple(Int(n) for n in shape), LayoutRight)


def on_device(array: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array).cuda()


def atom_of(shape: tuple[int, ...], dtype: str, *box: int) -> Any:
    strides = (*[int(np.prod(shape[i + 1 :])) for i in range(len(shape) - 1)], Int(1))
    x = cute.make_tensor(cute.make_gmem_ptr(1 << 40, dtype), Layout(shape, strides))
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", x, tile(*box))


def test_torch_tensors_are_copied_where_they_lie() -> None:
    array = np.arange(192 * 256, dtype=np.float32).reshape(192, 256)
    source = on_device(array)
    result = cute.tma.copy(atom_of((192, 256), "float32", 32, 32), source, backend="cuda")
    assert result.equal
    assert type(result.destination) is type(source)
    assert result.destination.is_cuda
    assert np.array_equal(result.destination.cpu().numpy(), array)


def test_both_backends_on_a_torch_tensor() -> None:
    source = on_device(np.arange(64 * 128, dtype=np.int32).reshape(64, 128))
    x = atom_of((64, 128), "int32", 32, 32)
    assert cute.tma.copy(x, source, backend="both").equal


def test_a_stream_is_neither_waited_for_nor_compared() -> None:
    torch = pytest.importorskip("torch")
    source = on_device(np.arange(256 * 256, dtype=np.float16).reshape(256, 256))
    target, stream = torch.zeros_like(source), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    result = cute.tma.copy(atom_of((256, 256), "float16", 64, 64), source, target, backend="cuda", stream=stream)
    assert result.equal is None
    stream.synchronize()
    assert torch.equal(source, target)


def test_a_report_compares_with_a_memcpy() -> None:
    source = on_device(np.zeros((1024, 1024), np.float32))
    result = cute.tma.copy(atom_of((1024, 1024), "float32", 32, 32), source, backend="cuda", report=True)
    report = result.details["report"]
    assert report.bytes == 4 << 20
    assert report.microseconds > 0
    assert 0 < report.percent_of_memcpy < 400
    assert report.kernels


def test_tuning_keeps_the_result() -> None:
    torch = pytest.importorskip("torch")
    source = on_device(np.random.default_rng(0).standard_normal((2048, 1024)).astype(np.float32))
    target = torch.zeros_like(source)
    result = cute.tma.copy(None, source, target, backend="cuda", tune=True)
    assert result.equal
    assert torch.equal(source, target)


def test_one_tile_in_a_process_of_its_own() -> None:
    array = np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)
    x = cute.tma.make_tma_copy("SM90_TMA_LOAD", array, tile(32, 32))
    here = cute.tma.execute(x, array, (1, 0), backend="cuda", poison=0xCD)
    there = cute.tma.execute(x, array, (1, 0), backend="both", poison=0xCD, isolate=True)
    assert np.array_equal(here.smem, there.smem)
    assert np.array_equal(here.smem.reshape(32, 32), array[32:, :32])


def test_what_is_refused_before_a_launch() -> None:
    torch = pytest.importorskip("torch")
    source = on_device(np.zeros((64, 64), np.float32))
    x = atom_of((64, 64), "float32", 32, 32)
    with pytest.raises(InvalidValueError, match="overlap"):
        cute.tma.copy(x, source, source, backend="cuda")
    with pytest.raises(CuteError):
        cute.tma.copy(x, source.cpu(), source, backend="cuda")
    with pytest.raises(InvalidValueError):
        cute.tma.copy(x, source.half(), backend="cuda")
    shifted = torch.zeros(64 * 64 + 1, device="cuda")[1:].view(64, 64)
    with pytest.raises(TmaLimitError, match="past a multiple of 16"):
        cute.tma.copy(x, shifted, source, backend="cuda")
    assert cute.tma.copy(x, source, backend="cuda").equal
