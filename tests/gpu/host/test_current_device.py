"""One device a call, whatever device is current: the array's own is current for what is done on it, and the one before
it afterwards. The driver is made up: two devices, and a record of where each call went."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cute_py.tma as run
from benchmarks.kernels.groups import prepare_groups
from cute_py.copies.report import median_times
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, DeviceError, InvalidTypeError, InvalidValueError
from cute_py.gpu import arrays as gpu_arrays
from cute_py.gpu import device as gpu_device
from cute_py.gpu import launch as gpu_launch
from cute_py.gpu.arrays import array_view, device_of_array
from cute_py.gpu.device import DeviceBuffer, common_device, open_device, require_stream
from cute_py.gpu.kernels.copy import copy_once
from cute_py.gpu.kernels.walk import cover
from cute_py.gpu.launch import LoadedKernel, Parameters, PreparedLaunch
from cute_py.gpu.nvrtc import CompiledKernel
from cute_py.tensor.array_views import CUDA, ArrayView
from tests.gpu.host.test_arrays import OnDevice, OverDlpack

CONTEXTS = (100, 101)
"""Of device 0 and 1."""


class Code(int):
    name = "CUDA_SUCCESS"


VALUED = ("cuMemAlloc", "cuEventCreate", "cuEventElapsedTime", "cuThreadExchangeStreamCaptureMode")
"""Calls that return a value."""


class TwoDevices:
    """A driver with two devices; `went` lists (call, context that was current)."""

    def __init__(self, current: int = CONTEXTS[0]) -> None:
        self.current = current
        self.went: list[tuple[str, int]] = []
        self.streams = {7: CONTEXTS[0], 8: CONTEXTS[1], 9: 555}
        self.CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_CONTEXT=1)
        self.CUlaunchConfig = SimpleNamespace
        self.CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
        self.CUstream = self.CUfunction = int

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def anything(*arguments: Any) -> tuple[Any, ...]:
            self.went.append((name, self.current))
            return (Code(0), 4096) if name in VALUED else (Code(0),)

        return anything

    def cuInit(self, flags: int) -> tuple[Code]:
        return (Code(0),)

    def cuDriverGetVersion(self) -> tuple[Code, int]:
        return Code(0), 13000

    def cuDeviceGetCount(self) -> tuple[Code, int]:
        return Code(0), 2

    def cuDeviceGet(self, ordinal: int) -> tuple[Code, int]:
        return Code(0), ordinal

    def cuDevicePrimaryCtxRetain(self, handle: int) -> tuple[Code, int]:
        return Code(0), CONTEXTS[handle]

    def cuCtxGetCurrent(self) -> tuple[Code, int]:
        return Code(0), self.current

    def cuCtxSetCurrent(self, context: int) -> tuple[Code]:
        self.current = context
        return (Code(0),)

    def cuCtxGetDevice(self) -> tuple[Code, int]:
        return Code(0), {100: 0, 101: 1, 555: 1}[self.current]

    def cuStreamGetCtx(self, stream: int) -> tuple[Code, int]:
        return (Code(0), self.streams[stream]) if stream in self.streams else (Code(400), 0)

    def cuPointerGetAttribute(self, kind: int, address: int) -> tuple[Code, int]:
        return (Code(0), CONTEXTS[1]) if address >= 1 << 40 else (Code(1), 0)


def made_up_core(name: str = "Made Up {}", capability: tuple[int, int] = (9, 0)) -> Any:
    """What cuda.core says of a device."""
    facts = SimpleNamespace(
        multiprocessor_count=132, l2_cache_size=62_914_560, max_shared_memory_per_block_optin=232_448
    )

    def device(ordinal: int) -> Any:
        return SimpleNamespace(name=name.format(ordinal), compute_capability=capability, properties=facts)

    return SimpleNamespace(Device=device)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoDevices]:
    made = TwoDevices()
    for module in (gpu_device, gpu_arrays, gpu_launch, sys.modules["cute_py.copies.report"]):
        monkeypatch.setattr(module, "driver", lambda: made)
    monkeypatch.setattr(gpu_device, "core", made_up_core)
    gpu_device._open.cache_clear()
    yield made
    gpu_device._open.cache_clear()


def test_a_device_is_current_in_its_block_alone(api: TwoDevices) -> None:
    device = open_device(1)
    assert (device.ordinal, device.name, api.current) == (1, "Made Up 1", CONTEXTS[0]), "opening changes nothing"
    with device.current():
        assert api.current == CONTEXTS[1]
        with open_device(0).current():
            assert api.current == CONTEXTS[0]
        assert api.current == CONTEXTS[1]
    assert api.current == CONTEXTS[0]
    with pytest.raises(RuntimeError, match="in the block"), device.current():
        raise RuntimeError("in the block")
    assert api.current == CONTEXTS[0]


def test_a_thread_without_a_context_keeps_the_first(api: TwoDevices) -> None:
    api.current = 0
    device = open_device(1)
    assert api.current == CONTEXTS[1]
    api.current = 0
    with device.current():
        assert api.current == CONTEXTS[1]
    assert api.current == CONTEXTS[1]
    assert open_device().ordinal == 1


def test_memory_and_times_are_of_their_device(api: TwoDevices) -> None:
    device = open_device(1)
    buffer = DeviceBuffer(device, 64)
    buffer.write(bytes(64))
    buffer.read()
    buffer.fill(1)
    buffer.close()
    assert median_times(device, [lambda: None], 1, 1) == [4096_000.0]
    device.synchronize()
    assert {name for name, _ in api.went} >= {"cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"}
    filled = [name for name, _ in api.went].index("cuMemsetD8Async")
    assert api.went[filled + 1][0] == "cuStreamSynchronize"
    assert {context for _, context in api.went} == {CONTEXTS[1]}
    assert api.current == CONTEXTS[0]


class Strict(OverDlpack):
    """An array of device 1 whose library exports it only while that device is current."""

    def __init__(self, array: Any, api: TwoDevices) -> None:
        super().__init__(array)
        self.api = api

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 1

    def __dlpack__(self, stream: Any = None) -> Any:
        if self.api.current != CONTEXTS[1]:
            raise BufferError("Can't export tensors on a different CUDA device index. Expected: 1. Current device: 0.")
        return super().__dlpack__(stream)


def test_an_array_gives_its_memory_whatever_device_is_current(api: TwoDevices) -> None:
    view = array_view(Strict(np.zeros((4, 8), np.float32), api))
    assert view.shape == (4, 8)
    assert api.current == CONTEXTS[0]


def test_the_device_of_an_array_interface_is_asked_of_the_driver(api: TwoDevices) -> None:
    assert array_view(OnDevice((3, 4), address=1 << 40)).device == 1
    assert array_view(OnDevice((3, 4), address=4096)).device == 0
    assert api.current == CONTEXTS[0]


def test_the_library_of_an_array_has_its_device_current_too(api: TwoDevices, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's current device need not be the driver's: a device without a context can be PyTorch's current one."""
    entered: list[int] = []

    @contextmanager
    def device(ordinal: int) -> Iterator[None]:
        entered.append(ordinal)
        yield
        entered.append(-ordinal)

    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(device=device)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    kind = type("Tensor", (Strict,), {"__module__": "torch"})
    parameter = type("Mine", (kind,), {"__module__": "mine"})
    array_view(parameter(np.zeros(4, np.float32), api))
    assert entered == [1, -1]
    with device_of_array(np.zeros(4), None):
        pass
    assert entered == [1, -1]


def test_without_a_driver_the_array_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise DeviceError("no driver")

    monkeypatch.setattr(gpu_device, "driver", missing)
    monkeypatch.setattr(gpu_arrays, "driver", missing)
    assert array_view(OverDlpack(np.zeros(4, np.float32))).device == 3
    assert array_view(OnDevice((3, 4))).device == 0


def view(device: int | None, address: int = 4096) -> ArrayView:
    return ArrayView(address, (64, 64), (64, 1), as_dtype("float32"), device)


A, B = view(0), view(1, 1 << 40)


@pytest.mark.parametrize(
    "call",
    [
        lambda: run.prepare_copy(A, B),
        lambda: run.tuned_copy(A, B),
        lambda: run.copy_array(A, B),
        lambda: run.copy(None, A, B, backend="cuda"),
        lambda: run.copy(None, A, B, backend="cuda", tune=True),
    ],
    ids=["prepare_copy", "tuned_copy", "copy_array", "copy", "copy, tuned"],
)
def test_arrays_of_two_devices_are_refused_by_name(api: TwoDevices, call: Callable[[], Any]) -> None:
    with pytest.raises(DeviceError) as caught:
        call()
    assert str(caught.value) == (
        "the source is on device 0 and the destination on device 1; must be on one device\n"
        "  device 0 : Made Up 0\n"
        "  device 1 : Made Up 1\n"
        "  hint     : move one of them first, with its own library"
    )
    assert api.current == CONTEXTS[0]


def test_groups_name_the_pair(api: TwoDevices) -> None:
    both = "the source of pair 0 is on device 0 and the destination of pair 1 on device 1"
    with pytest.raises(DeviceError, match=both):
        prepare_groups([(A, view(0, 1 << 20)), (view(0, 1 << 21), B)])


def test_the_device_of_several_arrays() -> None:
    assert common_device({}) is common_device({"source": None}) is None
    assert common_device({"source": None, "destination": 1}) == common_device({"a": 1, "b": 1}) == 1


@pytest.mark.parametrize("device", [0, "cuda:1", np.zeros(2)], ids=["int", "str", "array"])
def test_what_is_no_device(api: TwoDevices, device: Any) -> None:
    with pytest.raises(InvalidTypeError, match="device must be a Device"):
        run.prepare_copy(view(1), B, device=device)
    with pytest.raises(InvalidTypeError, match="the index of a device must be an integer"):
        open_device("0")  # type: ignore[arg-type]


def test_a_stream_of_another_device_is_refused(api: TwoDevices) -> None:
    device = open_device(1)
    for stream in (0, 1, 2, 8, 9, 12345):  # default, of this device, of another context of it, no stream at all
        require_stream(device, stream)
    with pytest.raises(DeviceError, match="the stream belongs to device 0, but the copy runs on device 1"):
        require_stream(device, 7)
    assert api.current == CONTEXTS[0]


def launched(stream: int) -> PreparedLaunch:
    compiled = CompiledKernel(copy_once(cover((64, 64), (32, 8)), 2048), "sm_90a", b"", "13.0", "made up", 0.0)
    return PreparedLaunch(
        LoadedKernel(open_device(1), compiled, SimpleNamespace(handle=77)), 16, Parameters(()), stream
    )


def test_a_launch_goes_to_the_device_of_its_kernel(api: TwoDevices) -> None:
    """The default stream is that of the current device: CUDA driver API, cuLaunchKernel."""
    launched(0).launch()
    assert api.went == [("cuLaunchKernelEx", CONTEXTS[1])]
    assert api.current == CONTEXTS[0]
    launched(8).launch()
    assert api.went[1:] == [("cuLaunchKernelEx", CONTEXTS[0])], "a stream of its own brings its context with it"
    with pytest.raises(DeviceError, match="the stream belongs to device 0"):
        launched(7)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"hints": 1}, InvalidTypeError),
        ({"verify": np.zeros(2)}, InvalidTypeError),
        ({"report": "yes"}, InvalidTypeError),
        ({"stream": "7"}, InvalidTypeError),
        ({"stream": -1}, InvalidValueError),
        ({"seconds": 4}, InvalidValueError),
    ],
)
def test_options_that_are_none(options: dict[str, Any], kind: type[CuteError]) -> None:
    with pytest.raises(kind):
        run.copy(None, A, view(0, 1 << 20), backend="cuda", **options)
