"""What is said where there is no usable GPU; single instructions and lists that are refused; calls in a child process.

The driver is made up here, so that each kind of machine can be met anywhere.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.kernels.blackwell import load_pair
from benchmarks.kernels.groups import group_row
from benchmarks.kernels.jobs import Job, check_job, run_jobs
from cute_py.copies.device_copy import SWITCHES, require_options
from cute_py.copies.prepared import packed, regular_walk
from cute_py.dtypes import as_dtype
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.gpu import bindings as gpu_bindings
from cute_py.gpu import device as gpu_device
from cute_py.gpu.device import Device, device_available, open_device
from cute_py.gpu.isolate import call_isolated
from cute_py.gpu.kernels.copy import copy_once
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.gpu.kernels.walk import TileWalk, cover
from cute_py.gpu.launch import Parameters, target_arch
from cute_py.tensor.array_views import ArrayView, row_major
from tests.gpu.host.test_current_device import made_up_core


class Code(int):
    name = "CUDA_SUCCESS"


def made_up(version: int = 13000, count: int = 1) -> Any:
    """A driver with one kind of device."""
    ok = Code(0)
    return SimpleNamespace(
        cuInit=lambda flags: (ok,),
        cuDriverGetVersion=lambda: (ok, version),
        cuDeviceGetCount=lambda: (ok, count),
        cuDeviceGet=lambda ordinal: (ok, ordinal),
        cuCtxGetCurrent=lambda: (ok, 0),
        cuCtxSetCurrent=lambda context: (ok,),
        cuDevicePrimaryCtxRetain=lambda handle: (ok, 77),
    )


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(capability: tuple[int, int] = (9, 0), **kind: int) -> None:
        monkeypatch.setattr(gpu_device, "driver", lambda: made_up(**kind))
        monkeypatch.setattr(gpu_device, "core", lambda: made_up_core("Made Up", capability))
        gpu_device._open.cache_clear()

    yield put
    gpu_device._open.cache_clear()


def test_a_hopper_is_opened(machine: Any) -> None:
    machine()
    device = open_device()
    assert (device.name, device.arch, device.multiprocessors, device.shared_bytes) == (
        "Made Up",
        "sm_90a",
        132,
        232_448,
    )
    assert device_available()


@pytest.mark.parametrize(
    ("kind", "ordinal", "text"),
    [
        (
            {"capability": (8, 0)},
            None,
            "Made Up has compute capability 8.0; TMA needs 9.0 or newer\n"
            "  known : 9.0, 10.0, 10.3, 11.0, 12.0, 12.1\n"
            "  hint  : use backend='emulator'",
        ),
        (
            {"version": 11080},
            None,
            "the driver supports CUDA 11.8; TMA needs 12.0 or newer\n  hint : update the NVIDIA driver",
        ),
        ({"count": 2}, 2, "device 2 does not exist; the driver lists 2\n  devices : 2"),
        ({"count": 0}, None, "device 0 does not exist; the driver lists 0\n  devices : 0"),
    ],
)
def test_machines_without_tma(machine: Any, kind: dict[str, Any], ordinal: int | None, text: str) -> None:
    machine(**kind)
    with pytest.raises(DeviceError) as caught:
        open_device(ordinal)
    assert str(caught.value) == text
    assert device_available() == (ordinal is not None)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(flags: int) -> Any:
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    missing.__name__ = "cuInit"
    monkeypatch.setattr(gpu_device, "driver", lambda: SimpleNamespace(cuInit=missing))
    with pytest.raises(DeviceError) as caught:
        open_device()
    assert str(caught.value) == (
        "starting the driver: can't load the library that provides cuInit\n"
        "  cause : Failed to dlopen libcuda.so.1\n"
        "  hint  : install the NVIDIA driver; for NVRTC, pip install 'cute-py[gpu]'"
    )
    assert not device_available()


def test_a_trap_says_what_can_have_caused_it() -> None:
    code = SimpleNamespace(name="CUDA_ERROR_ILLEGAL_INSTRUCTION")
    error = gpu_bindings.driver_failure(code, "waiting")
    assert error.facts["context"] == "this process can't use it again"
    assert error.hint == "run it with isolate=True, in a separate process"
    assert gpu_bindings.driver_failure(SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE"), "asking").hint is None


def hopper() -> Device:
    return Device(0, "Made Up", (9, 0), "sm_90a", 132, 2**26, 232_448, 13000, None)


def test_kernels_for_newer_devices_are_refused() -> None:
    assert target_arch(copy_once(cover((64, 64), (32, 8)), 2048), hopper()) == "sm_90a"
    with pytest.raises(DeviceError) as caught:
        target_arch(load_pair(), hopper())
    assert str(caught.value) == (
        "kernel 'load_pair' is for sm_100a; device 0 (Made Up) is sm_90a\n"
        "  evidence : cute_py assembles forms of sm_100 but does not execute them"
    )


def test_parameters_lie_where_the_copy_engine_wants_them() -> None:
    import ctypes

    maps = [bytes([i]) * 128 for i in (1, 2)]
    block = Parameters((maps[0], 2**40 + 5, maps[1], ctypes.c_uint32(7)))
    pointers = (ctypes.c_void_p * 4).from_address(block.address)
    assert [pointer % 128 for pointer in pointers[::2]] == [0, 0]
    assert [ctypes.string_at(pointer, 128) for pointer in pointers[::2]] == maps
    assert ctypes.c_uint64.from_address(pointers[1]).value == 2**40 + 5
    assert ctypes.c_uint32.from_address(pointers[3]).value == 7
    with pytest.raises(InvalidValueError, match="tensor map = 64 bytes; must be 128"):
        Parameters((bytes(64),))


LOAD, STORE = CopyOp("load", 2), CopyOp("store", 2)


@pytest.mark.parametrize(
    ("job", "reasons"),
    [
        (Job(LOAD, bytes(128), (8, -3)), []),
        (Job(LOAD, bytes(128), (9, 0), window=bytes(4096), expected=2**20 - 1), []),
        (Job(STORE, bytes(128), (-(2**31), 2**31 - 1)), []),
        (Job(STORE, bytes(128), (0, -(2**31) - 1)), ["coordinate -2147483649 does not fit in 32 bits"]),
        (
            Job(LOAD, bytes(64), (0,), window=bytes(8), expected=2**20, im2col_offsets=(1,)),
            [
                "descriptor = 64 bytes; must be 128",
                f"1 coordinates; {LOAD.instruction} takes 2",
                f"1 im2col offsets; {LOAD.instruction} takes 0",
                "window = 8 bytes; must be a multiple of 16",
                "expected = 1048576 bytes; a barrier counts at most 1048575",
            ],
        ),
        (
            Job(
                CopyOp("load", 3, "im2col"),
                bytes(128),
                (0, 5, 2**31),
                im2col_offsets=(65536,),
            ),
            [
                "coordinate 2147483648 does not fit in 32 bits",
                "im2col offset 65536 is not in 0 to 65535",
            ],
        ),
        (
            Job(CopyOp("store", 3, "im2col"), bytes(128), (0, 0, 0), im2col_offsets=(0,)),
            ["1 im2col offsets; cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group takes 0"],
        ),
    ],
)
def test_instructions_that_are_not_launched(job: Job, reasons: list[str]) -> None:
    assert [found.message for found in check_job(job)] == reasons
    if reasons:
        with pytest.raises(InvalidValueError) as caught:
            run_jobs([job])
        assert str(caught.value).startswith(f"instruction 0: {reasons[0]}; nothing was launched")


def view(shape: tuple[int, ...], strides: tuple[int, ...] | None = None, address: int = 4096) -> ArrayView:
    return ArrayView(address, shape, strides or row_major(shape), as_dtype("float16"), 0)


def test_a_group_record_has_sizes_innermost_first() -> None:
    row = group_row(view((3, 4, 64), (1024, 128, 1)), view((3, 4, 64), address=8192))
    assert row == (4096, 8192, 256, 2048, 0, 0, 128, 512, 0, 0, 64, 4, 3, 1, 1, 0)


def test_all_that_is_wrong_with_a_group_is_told() -> None:
    with pytest.raises(TmaLimitError) as caught:
        group_row(view((4, 60), (60, 1), 4098), view((4, 60), (120, 2)))
    assert str(caught.value) == (
        "source address 0x1002; must be a multiple of 16\n"
        "  and 1 : source stride = 120 bytes; must be a multiple of 16 and not negative\n"
        "  and 2 : destination innermost stride = 2 elements; must be 1\n"
        "  and 3 : destination row = 120 bytes; must be a multiple of 16"
    )
    assert len(caught.value.violations) == 4


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
def test_regular_lists_are_recognised(counts: list[int], data: st.DataObject) -> None:
    rank = len(counts)
    steps = tuple(data.draw(st.integers(1, 40)) for _ in counts)
    order = tuple(data.draw(st.permutations(range(rank))))
    walk = TileWalk(tuple(counts), steps, order)
    coords = [walk.coordinates(tile) for tile in range(walk.tiles)]
    found = regular_walk(coords, rank)
    assert found is not None
    assert [found.coordinates(tile) for tile in range(found.tiles)] == coords
    if walk.tiles > 2:
        swapped = [coords[0], *reversed(coords[1:])]
        other = regular_walk(swapped, rank)
        assert other is None or [other.coordinates(t) for t in range(other.tiles)] == swapped


IRREGULAR = {
    "another start": [(8, 0), (16, 0)],
    "a step back": [(0, 0), (-8, 0), (-16, 0)],
    "two modes at once": [(0, 0), (8, 4)],
    "the last one is missing": [(0, 0), (8, 0), (0, 4), (8, 4), (0, 8)],
    "a row that starts elsewhere": [(0, 0), (8, 0), (0, 4), (16, 4)],
    "one mode that begins again": [(0, 0), (8, 0), (0, 4), (8, 4), (0, 0), (8, 0), (0, 4), (8, 4)],
    "no tile": [],
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_an_irregular_list_of_tiles_is_no_walk(name: str) -> None:
    assert regular_walk(np.array(IRREGULAR[name], np.int64).reshape(-1, 2), 2) is None


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"shape": 1}, InvalidValueError, "unknown option 'shape'"),
        *(({name: 1}, InvalidTypeError, f"option {name}") for name in SWITCHES),
        ({"seconds": 0}, InvalidValueError, "option seconds"),
        ({"seconds": 86_401.0}, InvalidValueError, "option seconds"),
        ({"seconds": "1"}, InvalidTypeError, "option seconds"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_are_checked(options: Any, error: type[Exception], text: str) -> None:
    names = (*SWITCHES, "stream", "seconds")
    with pytest.raises(error, match=text):
        require_options(options, names)
    require_options({"verify": True, "seconds": 2, "stream": 0}, names)


def test_coordinates_are_packed_the_same_from_lists_and_arrays() -> None:
    rows = [(0, -1), (2**31 - 1, -(2**31))]
    assert packed(rows, 2) == packed(np.array(rows), 2)
    for bad in ([(2**31, 0)], np.array([[2**31, 0]])):
        with pytest.raises(InvalidValueError, match="32 bits"):
            packed(bad, 2)
    with pytest.raises(InvalidValueError, match="must be"):
        packed(np.zeros((2, 3)), 2)


def test_a_call_in_a_child_process_gives_its_result() -> None:
    assert call_isolated(np.add, 2, 3) == 5


def test_errors_come_back_with_their_type() -> None:
    with pytest.raises(InvalidValueError) as caught:
        call_isolated(as_dtype, "no such type")
    assert caught.value.facts["process"] == "isolated; the context of this process is untouched"
    assert str(caught.value).startswith("unknown element type 'no such type'")


def test_a_child_that_dies_is_an_error() -> None:
    with pytest.raises(DeviceError, match="_exit ended its process without a result") as caught:
        call_isolated(os._exit, 3)
    assert caught.value.facts["exit status"] == 3


def test_a_child_that_does_not_end_is_ended() -> None:
    import time

    with pytest.raises(DeviceError, match=r"sleep took more than 0\.5 s"):
        call_isolated(time.sleep, 30, seconds=0.5)
