"""Copies that compute on a GPU: the bytes of the host, from numpy arrays and from memory of PyTorch and CuPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.copies.prepared import prepare_copy
from cute_py.copies.scaled.prepared import prepare_scaled
from cute_py.errors import CuteError, DeviceError, InvalidValueError
from cute_py.formats import Format, ScaledTensor
from cute_py.gpu.device import Device, DeviceBuffer
from tests.contract.scaled_cases import BF16, CASES, numbers, same, unset

BOTH_AXES = (formats.mxfp8(), formats.mxfp8(axis=0, transposed=True))


def bytes_of(array: Any) -> Any:
    """The bytes of an array of any library, on the host."""
    if type(array).__module__.partition(".")[0] == "torch":
        import torch

        return array.contiguous().view(torch.uint8).cpu().numpy().reshape(-1)
    host = array.get() if hasattr(array, "get") else array
    return np.ascontiguousarray(host).view(np.uint8).reshape(-1)


def equal(got: ScaledTensor, want: ScaledTensor) -> bool:
    return all(
        np.array_equal(bytes_of(a), bytes_of(b)) for a, b in ((got.data, want.data), (got.scales, want.scales))
    ) and (got.tensor_scale, got.shape) == (want.tensor_scale, want.shape)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def on_gpu(torch: Any, host: Any) -> Any:
    from cute_py.torch.arrays import as_torch

    return as_torch(host).cuda()


@pytest.mark.parametrize(("form", "shape", "dtype"), CASES, ids=[str(case[0]) for case in CASES])
def test_quantised_and_back_as_the_host_does(device: Device, form: Format, shape: tuple[int, int], dtype: Any) -> None:
    x = numbers(shape, dtype, form.scale_rule != "nvfp4")
    want = cute.copy(x, form)
    made = cute.copy(x, form, backend="cuda")
    assert same(made, want)
    assert (made.data.shape, made.data.dtype, made.scales.shape, made.scales.dtype) == (
        *(want.data.shape, want.data.dtype),
        *(want.scales.shape, want.scales.dtype),
    )
    got = unset(want)
    result = cute.copy(x, got, backend="cuda")
    assert result.destination is got
    if form.tensor_scale:
        again = unset(want)
        cute.copy(x, again)
        want = again
    assert same(got, want)
    assert result.equal
    if not form.transposed:
        here, there = (np.zeros(shape, dtype) for _ in range(2))
        cute.copy(want, here)
        cute.copy(got, there, backend="cuda")
        assert same(here, there)


def test_equal_is_found_by_comparison(device: Device, torch: Any) -> None:
    """A byte that differs from the host's copy is seen, in data, in scales and in rows that an index names."""
    x, form = numbers((50, 96), BF16), formats.mxfp8()
    index = np.random.default_rng(1).permutation(50)
    held = cute.copy(x, form)
    for part in ("data", "scales"):
        got = ScaledTensor(on_gpu(torch, held.data), on_gpu(torch, held.scales), form, None, held.shape)
        assert cute.copy(on_gpu(torch, x), got).equal
        result = cute.copy(on_gpu(torch, x), got)
        getattr(got, part).view(torch.uint8).reshape(-1)[5] ^= 1
        assert not result.equal
    out = torch.zeros(60, 96, dtype=torch.bfloat16, device="cuda")
    assert cute.copy(on_gpu(torch, x), out, into_rows=index).equal
    out[59] = 1  # no row of the index
    result = cute.copy(on_gpu(torch, x), out, into_rows=index)
    assert result.equal
    result = cute.copy(on_gpu(torch, x), out, into_rows=torch.from_numpy(index).cuda())
    out[index[7], 3] += 1
    assert not result.equal


@pytest.mark.parametrize("form", [formats.mxfp8(), formats.nvfp4(), formats.fp8((1, 128))], ids=repr)
def test_memory_of_torch_is_allocated_where_the_source_lies(device: Device, torch: Any, form: Format) -> None:
    x = numbers((130, 256), BF16, form.scale_rule != "nvfp4")
    made: Any = cute.copy(on_gpu(torch, x), form)
    assert made.data.is_cuda
    assert made.scales.is_cuda
    assert equal(made, cute.copy(x, form))
    (one,) = cute.copy(on_gpu(torch, x), (form,))
    assert equal(one, made)


def test_memory_of_cupy_is_allocated_where_the_source_lies(device: Device) -> None:
    cupy = pytest.importorskip("cupy")
    x = numbers((40, 96), np.float32)
    made = cute.copy(cupy.asarray(x), formats.mxfp8())
    assert type(made.data) is cupy.ndarray
    assert equal(made, cute.copy(x, formats.mxfp8()))


def test_rows_and_columns_at_once(device: Device, torch: Any) -> None:
    x = numbers((128, 96), BF16)
    want = cute.copy(x, BOTH_AXES)
    for source in (x, on_gpu(torch, x)):
        got = cute.copy(source, BOTH_AXES, backend="cuda")
        assert isinstance(got, tuple)
        assert all(equal(a, b) for a, b in zip(got, want, strict=True))


def test_rows_by_an_index_and_scales_in_another_order(device: Device, torch: Any) -> None:
    x, form = numbers((50, 96), BF16), formats.mxfp8()
    index = np.random.default_rng(0).integers(-1, 50, 70)
    want = cute.copy(x, form, rows=index)
    for source, rows in ((x, index), (on_gpu(torch, x), index), (on_gpu(torch, x), torch.from_numpy(index).cuda())):
        assert equal(cute.copy(source, form, rows=rows, backend="cuda"), want)
    other = formats.mxfp8(scales="8x4")
    held = cute.copy(x, form)
    moved = ScaledTensor(on_gpu(torch, held.data), on_gpu(torch, held.scales), form, None, held.shape)
    assert equal(cute.copy(moved, other), cute.copy(held, other))


@pytest.mark.parametrize("bad", [-7, 50, 2**31 - 1, -(2**31)])
def test_the_first_bad_index_is_named_and_forgotten(device: Device, torch: Any, bad: int) -> None:
    x = on_gpu(torch, numbers((50, 96), BF16))
    index = torch.arange(70, device="cuda") % 50
    index[60], index[40] = 99, bad
    out = torch.ones(70, 96, dtype=torch.bfloat16, device="cuda")
    prepared = prepare_copy(x, out, rows=index)
    prepared.launch()
    with pytest.raises(InvalidValueError, match=rf"rows\[40\] = {bad}; must be -1 to 49") as caught:
        prepared.check()
    assert caught.value.rule == "row_index"
    prepared.check()
    good = torch.ones(70, dtype=torch.bool)
    good[[40, 60]] = False
    assert torch.equal(out[good.cuda()].view(torch.int16), x[index[good.cuda()]].view(torch.int16))
    assert not out[40].any()
    with pytest.raises(InvalidValueError, match=r"rows\[40\]"):
        cute.copy(x, out, rows=index)
    stream = torch.cuda.Stream()
    cute.copy(x, out, rows=index, stream=stream)  # enqueued, not waited for
    stream.synchronize()


def test_a_row_that_is_named_twice_is_found_before_the_launch(device: Device, torch: Any) -> None:
    x, out = on_gpu(torch, numbers((4, 32), BF16)), torch.zeros(9, 32, dtype=torch.bfloat16, device="cuda")
    for dtype in (torch.int32, torch.int64):
        twice = torch.tensor([1, 5, 1, -1], device="cuda", dtype=dtype)
        with pytest.raises(InvalidValueError, match="into_rows lists row 1 2 times"):
            cute.copy(x, out, into_rows=twice, unique=True)
        assert not out.any()
        cute.copy(x[1:], out, into_rows=twice[1:], unique=True)
        assert torch.equal(out[[5, 1]].view(torch.int16), x[1:3].view(torch.int16))
        out.zero_()


@pytest.mark.parametrize("like", ["torchao", "te", "flashinfer"])
def test_a_tensor_scale_is_found_on_the_device(device: Device, torch: Any, like: str) -> None:
    x, form = numbers((20, 96), np.float32, False), formats.nvfp4(like=like)
    want = cute.copy(x, form)
    stream = torch.cuda.Stream()
    source = on_gpu(torch, x)
    torch.cuda.synchronize()
    made = cute.copy(source, form, stream=stream)
    stream.synchronize()
    assert equal(made, want)
    assert equal(cute.copy(x, form, backend="cuda"), want)


def refusals(torch: Any, device: Device) -> Iterator[tuple[Any, type[CuteError], str]]:
    x = numbers((64, 96), BF16)
    there, form = on_gpu(torch, x), formats.mxfp8()
    out = torch.empty_like(there)
    yield lambda: cute.copy(there, x.copy(), cast=True), DeviceError, "some operands are in host memory"
    yield lambda: cute.copy(there, form, into_rows=np.arange(64)), InvalidValueError, "destination is a Format"
    unknown = "^a GPU copy does not support several outputs or selected rows if the tensor scale is unknown"
    nvfp4 = formats.nvfp4()
    yield lambda: cute.copy(there, nvfp4, rows=np.arange(3)), InvalidValueError, unknown
    yield lambda: cute.copy(there, (nvfp4, nvfp4)), InvalidValueError, unknown
    yield lambda: cute.copy(there.view(2, 32, 96), form), InvalidValueError, "a source of 3 modes"
    yield lambda: cute.copy(there.view(-1), form), InvalidValueError, "a source of 1 mode"
    yield lambda: prepare_copy(there, out, rows=np.arange(64), hints=True), InvalidValueError, "hints, tuning and dtype"
    yield lambda: prepare_scaled(there, x.copy(), cast=True), DeviceError, "host memory"


def test_refused_on_a_device(device: Device, torch: Any) -> None:
    for call, error, text in refusals(torch, device):
        with pytest.raises(error, match=text):
            call()


def test_what_a_prepared_copy_owns(device: Device, torch: Any) -> None:
    """The record of an index and an index that came from the host stay alive as long as the copy."""
    x = on_gpu(torch, numbers((50, 96), BF16))
    out = torch.empty_like(x)
    index = np.random.default_rng(3).permutation(50)
    prepared = prepare_copy(x, out, rows=index)
    owned = [one for one in prepared.owned() if isinstance(one, DeviceBuffer)]
    assert {prepared._index.buffer.address, prepared.work.indices["rows"].address} <= {  # type: ignore[attr-defined]
        address for one in owned for address in range(one.address, one.address + one.size)
    }
    assert prepared.blocks == tuple(launch.blocks for launch in [prepared.work.launch])  # type: ignore[attr-defined]
    stream = torch.cuda.Stream()
    prepared.prepare(stream)
    prepared.launch(stream)
    prepared.check(stream)
    assert torch.equal(out.view(torch.int16), x[torch.from_numpy(index).cuda()].view(torch.int16))


def test_a_prepared_copy_runs_on_the_machine_with_its_options(device: Device, torch: Any) -> None:
    x, index = numbers((50, 96), BF16), np.random.default_rng(3).integers(-1, 50, 70)
    out = np.ones((70, 96), BF16)
    prepared = prepare_copy(on_gpu(torch, x), on_gpu(torch, out), rows=index, fill=2.5)
    prepared.launch()
    prepared.check()
    want = out.copy()
    cute.copy(x, want, rows=index, fill=2.5)
    assert cute.run_ptx(prepared, args=(x, out), schedule="eager").ok
    assert same(out, want)
