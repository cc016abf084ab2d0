"""Whole arrays, in every form of kernel: each byte arrives, and no byte around the destination changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.copies import device_copy
from cute_py.copies.boxes import Tuning
from cute_py.copies.device_copy import copy_array
from cute_py.copies.prepared import prepare_copy, prepare_tiles
from cute_py.copies.report import measure_copy
from cute_py.dtypes import as_dtype
from cute_py.errors import DeviceError, InvalidValueError, TmaLimitError
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.tensor.array_views import ArrayView, row_major

POISON = 0xA5
GUARD = 4096


class Place:
    """A device buffer with a guard on both sides, and the arrays in it."""

    def __init__(self, device: Device, content: NDArray[Any]) -> None:
        self.device = device
        self.host = np.ascontiguousarray(content).view(np.uint8).reshape(-1)
        self.buffer = DeviceBuffer(device, self.host.size + 2 * GUARD)
        self.buffer.fill(POISON)
        self.buffer.write(self.host.tobytes(), GUARD)

    def view(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, offset: int = 0
    ) -> ArrayView:
        """An array that starts `offset` elements into the content."""
        width = as_dtype(dtype).bits // 8
        address = self.buffer.address + GUARD + offset * width
        return ArrayView(address, shape, strides or row_major(shape), as_dtype(dtype), self.device.ordinal)

    def bytes(self) -> NDArray[np.uint8]:
        return np.frombuffer(bytes(self.buffer.read()), np.uint8)


def strided(host: NDArray[np.uint8], width: int, view: ArrayView, base: int) -> NDArray[Any]:
    flat = host.view(f"u{width}") if width > 1 else host
    start = (view.address - base) // width
    return np.lib.stride_tricks.as_strided(flat[start:], view.shape, tuple(s * width for s in view.strides))


def run(device: Device, source: tuple[Place, ArrayView], destination: tuple[Place, ArrayView], **options: Any) -> str:
    """Copy, compare the whole destination buffer with what numpy makes of it, and say the form."""
    (from_place, a), (to_place, b) = source, destination
    width = a.element_bytes
    before = from_place.bytes().copy()
    wanted = to_place.bytes().copy()
    strided(wanted, width, b, to_place.buffer.address)[...] = strided(before, width, a, from_place.buffer.address)
    prepared = prepare_copy(a, b, device=device, **options)
    prepared.launch()
    prepared.check()
    got = to_place.bytes()
    bad = np.flatnonzero(got != wanted)
    assert bad.size == 0, (bad.size, bad[:8] - GUARD, [plan.form for plan in prepared.plans])
    return prepared.plans[0].form if prepared.plans else prepared.plan.kernel


def fresh(count: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


@pytest.mark.parametrize("size", [16, 48, 512, 4096, 4096 + 16, 100_003, 3 * 2**20 + 7])
@pytest.mark.parametrize("hints", [False, True])
def test_contiguous_runs(device: Device, size: int, hints: bool) -> None:
    a, b = Place(device, fresh(size)), Place(device, np.full(size, POISON, np.uint8))
    form = run(device, (a, a.view("uint8", (size,))), (b, b.view("uint8", (size,))), hints=hints)
    assert form in ("once", "runs", "tile"), "what is shorter than a line is not the copy engine's"


@pytest.mark.parametrize(
    "tuning",
    [
        Tuning(form="ring"),
        Tuning(form="ring", stages=2, stores=0, rows=8),
        Tuning(form="ring", stages=3, stores=2, per_multiprocessor=2),
        Tuning(form="once", per_block=4),
        Tuning(form="once", per_block=3, rows=4),
    ],
)
@pytest.mark.parametrize("rows", [1, 131, 5000])
def test_forms_and_stages(device: Device, tuning: Tuning, rows: int) -> None:
    """Launched twice: the ring's counter is back at zero after a launch."""
    size = rows * 1040
    a, b = Place(device, fresh(size)), Place(device, np.full(size, POISON, np.uint8))
    views = (a, a.view("bfloat16", (rows, 520))), (b, b.view("bfloat16", (rows, 520)))
    prepared = prepare_copy(views[0][1], views[1][1], device=device, tuning=tuning)
    for _ in range(3):
        b.buffer.fill(POISON)
        prepared.launch()
        prepared.check()
        assert bytes(b.buffer.read(size, GUARD)) == a.host.tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 48), (300, 1000), (7, 33, 80), (3, 5, 7, 64), (2, 3, 4, 5, 32)])
def test_slices(device: Device, dtype: str, shape: tuple[int, ...]) -> None:
    """A dense destination from a source whose rows are twice as far apart, and one of whose modes is stepped over."""
    width = as_dtype(dtype).bits // 8
    wide = (*shape[:-1], 2 * shape[-1])
    a = Place(device, fresh(int(np.prod(wide)) * width * 2))
    b = Place(device, np.full(int(np.prod(shape)) * width, POISON, np.uint8))
    strides = list(row_major(wide))
    strides[0] *= 2
    if shape[-1] * width % 16:
        pytest.skip("rows of whole 16 bytes")
    source = a.view(dtype, shape, tuple(strides))
    run(device, (a, source), (b, b.view(dtype, shape)))


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", [(128, 128), (16, 16), (200, 336), (1000, 48), (48, 1000)])
def test_transposes(device: Device, width: int, shape: tuple[int, int]) -> None:
    rows, columns = shape
    dtype = f"uint{8 * width}"
    if rows * width % 16 or columns * width % 16:
        rows, columns = -(-rows // 16) * 16, -(-columns // 16) * 16
    a = Place(device, fresh(rows * columns * width))
    b = Place(device, np.full(rows * columns * width, POISON, np.uint8))
    source = a.view(dtype, (columns, rows), (1, columns))
    form = run(device, (a, source), (b, b.view(dtype, (columns, rows))))
    assert form in ("transposed", "tile", "runs")


def test_batched_transposes(device: Device) -> None:
    a, b = Place(device, fresh(3 * 160 * 96 * 2)), Place(device, np.full(3 * 160 * 96 * 2, POISON, np.uint8))
    source = a.view("float16", (3, 96, 160), (160 * 96, 1, 96))
    assert run(device, (a, source), (b, b.view("float16", (3, 96, 160)))) in ("transposed", "tile", "runs")


@pytest.mark.parametrize("offset", range(1, 8))
@pytest.mark.parametrize("size", [(64, 128), (100, 256), (33, 8), (50, 1000)])
def test_windows_at_any_column(device: Device, offset: int, size: tuple[int, int]) -> None:
    rows, columns = size
    a, b = Place(device, fresh(128 * 2048 * 2)), Place(device, np.full(rows * columns * 2, POISON, np.uint8))
    source = a.view("bfloat16", (rows, columns), (2048, 1), 2048 + 8 + offset)
    assert run(device, (a, source), (b, b.view("bfloat16", (rows, columns)))) in ("realigned", "tile", "runs")


@pytest.mark.parametrize("shift", range(1, 16))
def test_every_shift_of_bytes(device: Device, shift: int) -> None:
    a, b = Place(device, fresh(128 * 1024)), Place(device, np.full(40 * 256, POISON, np.uint8))
    source = a.view("uint8", (40, 256), (1024, 1), 1024 + shift)
    assert run(device, (a, source), (b, b.view("uint8", (40, 256)))) in ("realigned", "tile", "runs")


@pytest.mark.parametrize("shift", [0, 1, 6, 15])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 255, 257, 100_003])
def test_runs_of_any_size_from_anywhere(device: Device, size: int, shift: int) -> None:
    a, b = Place(device, fresh(size + shift)), Place(device, np.full(size, POISON, np.uint8))
    run(device, (a, a.view("uint8", (size,), offset=shift)), (b, b.view("uint8", (size,))))


@pytest.mark.parametrize("columns", [9, 33, 61, 515])
@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("turned", [False, True])
def test_ragged_rows(device: Device, columns: int, width: int, turned: bool) -> None:
    """What lies behind each row of the destination stays as it is."""
    rows, dtype = 77, f"uint{8 * width}"
    pitch, height = (-(-size * width // 16) * 16 // width for size in (columns, rows))
    a = Place(device, fresh(max(rows * pitch, columns * height) * width))
    b = Place(device, np.full(rows * pitch * width, POISON, np.uint8))
    source = a.view(dtype, (rows, columns), (1, height) if turned else (pitch, 1))
    form = run(device, (a, source), (b, b.view(dtype, (rows, columns), (pitch, 1))))
    assert form in ("transposed" if turned else "once", "tile", "runs")


def test_a_large_copy_takes_the_ring(device: Device) -> None:
    size = 160 * 2**20
    a, b = Place(device, fresh(size)), Place(device, np.full(size, POISON, np.uint8))
    assert run(device, (a, a.view("uint8", (size,))), (b, b.view("uint8", (size,)))) == "ring"


@pytest.mark.parametrize(("op", "combine"), [("add", np.add), ("xor", np.bitwise_xor), ("max", np.maximum)])
def test_whole_tensors_can_be_reduced(device: Device, op: str, combine: Any) -> None:
    from cute_py.gpu.kernels.walk import cover
    from cute_py.tma.descriptor.encode import encode
    from cute_py.tma.descriptor.request import TensorMapTiled

    a, b = Place(device, fresh(64 * 1024, 1)), Place(device, fresh(64 * 1024, 2))
    maps = [encode(TensorMapTiled(2, p.buffer.address + GUARD, (128, 128), (512,), (32, 16))) for p in (a, b)]
    prepared = prepare_tiles(*maps, cover((128, 128), (32, 16)), 32 * 16 * 4, reduction=op, device=device)
    prepared.launch()
    prepared.check()
    got = np.frombuffer(bytes(b.buffer.read(64 * 1024, GUARD)), np.uint32)
    assert np.array_equal(got, combine(b.host.view(np.uint32), a.host.view(np.uint32)))


def test_numpy_arrays_travel(device: Device) -> None:
    source = np.arange(4096 * 3, dtype=np.float32).reshape(96, 128)
    destination = np.zeros((96, 128), np.float32)
    copy_array(source, destination)
    assert np.array_equal(source, destination)
    copy_array(source[:, 1:65], destination[:, :64])
    assert np.array_equal(source[:, 1:65], destination[:, :64])
    assert np.array_equal(source[:, 64:], destination[:, 64:])


def test_numpy_and_device_arrays_are_copied_one_way(device: Device) -> None:
    """From a host array to the device and back: neither side is written by mistake."""
    content = fresh(4096 * 3)
    place = Place(device, np.zeros_like(content))
    view = place.view("uint8", (96, 128))
    host = content.reshape(96, 128).copy()
    copy_array(host, view)
    assert np.array_equal(host.reshape(-1), content)
    assert np.array_equal(place.bytes()[GUARD : GUARD + content.size], content)
    back = np.zeros((96, 128), np.uint8)
    copy_array(view, back)
    assert np.array_equal(back.reshape(-1), content)
    frozen = np.zeros((96, 128), np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(InvalidValueError, match="the destination is read-only"):
        copy_array(view, frozen)
    assert not frozen.any()


def test_an_atom_of_another_architecture_is_refused(device: Device) -> None:
    x = np.zeros((64, 64), np.float16)
    atom = cute.tma.make_tma_copy("SM100_TMA_2SM_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))
    with pytest.raises(DeviceError, match="backend='emulator'"):
        cute.tma.copy(atom, x, backend="cuda")
    with pytest.raises(InvalidValueError, match="tune=True needs device arrays"):
        cute.tma.copy(None, x, backend="cuda", tune=True)
    with pytest.raises(InvalidValueError, match="unknown option 'isolate'"):
        cute.tma.copy(None, x, backend="cuda", isolate=True)  # type: ignore[call-overload]
    made = cute.tma.copy(None, x + 1, backend="cuda")
    assert np.array_equal(made.destination, x + 1)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(InvalidValueError, match="read-only"):
        cute.tma.copy(load_atom(x), x + 1, frozen, backend="cuda")


def test_a_copy_states_its_blocks_and_takes_a_stream_in_advance(device: Device) -> None:
    content = fresh(1 << 16)
    source, destination = Place(device, content), Place(device, np.zeros_like(content))
    prepared = prepare_copy(source.view("uint8", (256, 256)), destination.view("uint8", (256, 256)), device=device)
    assert prepared.blocks == tuple(report.blocks for report in measure_copy(prepared, rounds=1).kernels)
    with device.current():
        stream = int(call("a stream", driver().cuStreamCreate, 1))
    prepared.prepare(stream)
    before = len(prepared._launches)
    prepared.launch(stream)
    prepared.check(stream)
    assert len(prepared._launches) == before
    assert np.array_equal(destination.bytes()[GUARD : GUARD + content.size], content)


def load_atom(x: Any) -> Any:
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))


def test_options_of_a_copy_with_an_atom(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = fresh(8192).view(np.uint16).reshape(64, 64)
    atom = load_atom(x)
    digests = {
        hints: cute.tma.copy(atom, x, backend="cuda", hints=hints).details["prepared"].kernels[0].source.digest
        for hints in (False, True)
    }
    assert digests[False] == cute.tma.copy(atom, x, backend="cuda").details["prepared"].kernels[0].source.digest
    assert digests[False] != digests[True]
    for one in (atom, None):
        assert cute.tma.copy(one, x, backend="cuda").equal is True
        assert cute.tma.copy(one, x, backend="cuda", verify=False).equal is None
    turned = cute.tma.copy(None, x.T, np.zeros_like(x), backend="cuda")
    assert len(turned.details["forms"]) == len(turned.details["why"]) == 1
    place = Place(device, x)
    with pytest.raises(TmaLimitError) as caught:
        cute.tma.copy(atom, place.view("uint16", (64, 64), offset=4), np.zeros_like(x), backend="cuda")
    assert [(one.rule, one.argument) for one in caught.value.violations] == [("address", "globalAddress")]
    wrong = np.zeros_like(x)
    monkeypatch.setattr(device_copy, "emulated_copy", lambda *a: SimpleNamespace(destination=wrong))
    assert cute.tma.copy(atom, x, backend="cuda").equal is True, "compared with the source alone"
    beside = cute.tma.copy(atom, x, backend="both")
    assert beside.equal is False
    assert "emulator" in str(beside.difference) and "GPU" in str(beside.difference)


def test_a_tile_that_differs_from_the_emulator_is_an_error(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = fresh(8192).view(np.uint16).reshape(64, 64)
    atom = load_atom(x)
    tile = cute.tma.execute(atom, x, (0, 1), backend="both").smem
    assert np.array_equal(tile.view(np.uint16)[:1024].reshape(32, 32), x[:32, 32:])
    changed = tile.copy()
    changed[7] ^= 1
    monkeypatch.setattr(device_copy, "emulated_window", lambda *a: changed)
    with pytest.raises(DeviceError, match="the GPU's result differs from the emulator's"):
        cute.tma.execute(atom, x, (0, 1), backend="both")
    assert np.array_equal(cute.tma.execute(atom, x, (0, 1), backend="cuda").smem, tile)


def test_what_can_not_be_copied_is_refused(device: Device) -> None:
    place = Place(device, fresh(65536))
    a = place.view("float32", (32, 64))
    with pytest.raises(InvalidValueError, match="overlap"):
        prepare_copy(a, place.view("float32", (32, 64), offset=64), device=device)
    with pytest.raises(InvalidValueError, match="dtype"):
        prepare_copy(a, place.view("int32", (32, 64), offset=8192), device=device)
    with pytest.raises(InvalidValueError, match="2048 elements"):
        prepare_copy(a, place.view("float32", (64, 16), offset=8192), device=device)
    with pytest.raises(DeviceError, match="host memory"):
        prepare_copy(np.zeros((32, 64), np.float32), a, device=device)
