"""Arrays of PyTorch and CuPy on the second device while the first is current, and the other way round."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from benchmarks.kernels.groups import prepare_groups
from cute_py import Int, Layout, LayoutRight
from cute_py.copies.prepared import prepare_copy
from cute_py.errors import DeviceError
from cute_py.gpu.arrays import array_view
from cute_py.gpu.device import Device, device_count, open_device

SHAPE = (1024, 512)


@pytest.fixture
def other(device: Device) -> Device:
    """The second device, with the first one current."""
    if device_count() < 2:
        pytest.skip("needs two GPUs")
    return open_device(1)


@pytest.fixture
def torch(other: Device) -> Any:
    torch = pytest.importorskip("torch")
    torch.cuda.set_device(0)
    yield torch
    torch.cuda.set_device(0)


def test_a_device_leaves_the_current_one_as_it_was(device: Device, other: Device) -> None:
    with device.current():
        with other.current():
            assert open_device().ordinal == 1
        assert open_device().ordinal == 0


def test_torch_arrays_of_the_other_device(other: Device, torch: Any) -> None:
    a = torch.randn(SHAPE, device="cuda:1", dtype=torch.bfloat16)
    b = torch.zeros_like(a)
    torch.cuda.synchronize(1)
    assert torch.cuda.current_device() == 0
    assert array_view(a).device == 1
    result = cute.tma.copy(None, a, b, backend="cuda")
    assert result.equal
    assert torch.equal(a, b)
    assert torch.cuda.current_device() == 0
    assert cute.tma.copy(None, a, backend="cuda").destination.device.index == 1
    tuned = cute.tma.copy(None, a, torch.zeros_like(a), backend="cuda", tune=True, report=True)
    assert tuned.equal
    assert tuned.details["report"].microseconds > 0
    assert torch.cuda.current_device() == 0


def test_an_atoms_copy_on_the_other_device(other: Device, torch: Any) -> None:
    a = torch.randn(SHAPE, device="cuda:1", dtype=torch.float16)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", a, Layout((Int(64), Int(64)), LayoutRight))
    result = cute.tma.copy(atom, a, backend="both")
    assert result.equal
    assert result.destination.device.index == 1
    tile = cute.tma.execute(atom, a, (1, 2), backend="cuda")
    assert np.array_equal(tile.smem.view(np.float16).reshape(64, 64), a[64:128, 128:192].cpu().numpy())
    assert torch.cuda.current_device() == 0


def test_launches_on_default_and_own_streams(other: Device, torch: Any) -> None:
    a = torch.randint(0, 1 << 30, SHAPE, device="cuda:1", dtype=torch.int32)
    b = torch.zeros_like(a)
    torch.cuda.synchronize(1)
    prepared = prepare_copy(a, b)
    assert prepared.device.ordinal == 1
    for current in (0, 1):
        torch.cuda.set_device(current)
        b.zero_()
        torch.cuda.synchronize(1)
        prepared.launch()
        prepared.check()
        assert torch.equal(a, b)
        assert torch.cuda.current_device() == current
    torch.cuda.set_device(0)
    stream = torch.cuda.Stream(device=1)
    b.zero_()
    torch.cuda.synchronize(1)
    prepared.launch(stream)
    prepared.check(stream)
    assert torch.equal(a, b)
    with pytest.raises(DeviceError, match="the stream belongs to device 0, but the copy runs on device 1"):
        prepared.launch(torch.cuda.Stream(device=0))


def test_a_ring_on_the_other_device(other: Device, torch: Any) -> None:
    from cute_py.copies.boxes import Tuning

    a = torch.randint(0, 1 << 30, (4096, 1024), device="cuda:1", dtype=torch.int32)
    b = torch.zeros_like(a)
    torch.cuda.synchronize(1)
    prepared = prepare_copy(a, b, tuning=Tuning(form="ring"))
    for _ in range(3):
        prepared.launch()
    prepared.check()
    assert torch.equal(a, b)


def test_groups_on_the_other_device(other: Device, torch: Any) -> None:
    pairs = [(torch.randn(64, 128, device="cuda:1"), torch.zeros(64, 128, device="cuda:1")) for _ in range(4)]
    torch.cuda.synchronize(1)
    prepared = prepare_groups(pairs)
    prepared.launch()
    prepared.check()
    assert all(torch.equal(a, b) for a, b in pairs)


def test_two_devices_in_one_call(other: Device, torch: Any) -> None:
    a, b = torch.zeros(SHAPE, device="cuda:0"), torch.zeros(SHAPE, device="cuda:1")
    for call in (lambda: cute.tma.copy(None, a, b, backend="cuda"), lambda: prepare_copy(b, a)):
        with pytest.raises(DeviceError, match=r"on device 0 and the .* on device 1; must be on one device"):
            call()


def test_host_and_other_device(other: Device, torch: Any) -> None:
    host = np.arange(SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
    there = torch.zeros(SHAPE, device="cuda:1")
    assert cute.tma.copy(None, host, there, backend="cuda").equal
    assert np.array_equal(there.cpu().numpy(), host)
    back = np.zeros_like(host)
    assert cute.tma.copy(None, there, back, backend="cuda").equal
    assert np.array_equal(back, host)


def test_a_thread_that_never_used_a_device(other: Device, torch: Any) -> None:
    a = torch.randn(SHAPE, device="cuda:1")
    b = torch.zeros_like(a)
    torch.cuda.synchronize(1)
    prepared = prepare_copy(a, b)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            prepared.launch()
            prepared.check()
        except BaseException as problem:
            failures.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures
    assert torch.equal(a, b)


def test_torch_that_used_the_other_device_alone(other: Device) -> None:
    """PyTorch's current device is 0 and has no context: only PyTorch itself can make 1 its current one."""
    import subprocess
    import sys

    pytest.importorskip("torch")
    program = (
        "import torch, cute_py as cute\n"
        "a = torch.randn(1024, 512, device='cuda:1'); b = torch.zeros_like(a); torch.cuda.synchronize(1)\n"
        "assert torch.cuda.current_device() == 0\n"
        "assert cute.tma.copy(None, a, b, backend='cuda').equal and torch.equal(a, b)\n"
        "assert torch.cuda.current_device() == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_cupy_arrays_of_the_other_device(other: Device) -> None:
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(1):
        a = cupy.arange(SHAPE[0] * SHAPE[1], dtype=cupy.float32).reshape(SHAPE)
        cupy.cuda.Device(1).synchronize()
    with cupy.cuda.Device(0):
        result = cute.tma.copy(None, a, backend="cuda")
        assert result.equal
        assert result.destination.device.id == 1
        assert cupy.cuda.Device().id == 0


class Interface:
    """A device array that has nothing but `__cuda_array_interface__`."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": tuple(array.shape),
            "typestr": "<f4",
            "data": (array.data_ptr(), False),
            "strides": None,
            "version": 3,
        }


def test_an_array_interface_of_the_other_device(other: Device, torch: Any) -> None:
    a, b = torch.randn(SHAPE, device="cuda:1"), torch.zeros(SHAPE, device="cuda:1")
    torch.cuda.synchronize(1)
    assert array_view(Interface(a)).device == 1
    prepared = prepare_copy(Interface(a), Interface(b))
    prepared.launch()
    prepared.check()
    assert torch.equal(a, b)
