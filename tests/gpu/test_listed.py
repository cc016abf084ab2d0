"""Tiles listed one by one; measurements; searches; bytes that a load leaves unwritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kernels.jobs import Job, run_isolated, run_jobs
from cute_py.copies import tune
from cute_py.copies.boxes import Tuning
from cute_py.copies.prepared import load_windows, prepare_copy, prepare_listed, prepare_tiles
from cute_py.copies.report import kernel_texts, measure_copy
from cute_py.copies.tune import candidate_tunings, geometry_key, tuned_copy
from cute_py.dtypes import as_dtype
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.gpu.kernels.walk import cover
from cute_py.tensor.array_views import ArrayView, row_major
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled


def fresh(count: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8).tobytes()


def tensor(address: int) -> bytes:
    return encode(TensorMapTiled(1, address, (256, 128), (512,), (64, 16), swizzle=3))


@pytest.mark.parametrize("form", ["once", "ring", "listed", "windows"])
def test_a_wait_that_runs_out_says_what_should_have_come(device: Device, form: str) -> None:
    """Each kernel is told of 128 bytes more than a load brings: it ends, and the next copy runs."""
    coords = np.array([(x, y) for y in range(0, 128, 16) for x in (0, 64, 192, 128)])
    with DeviceBuffer(device, 65536) as a, DeviceBuffer(device, 65536) as b:
        maps = tensor(a.address), tensor(b.address)
        with pytest.raises(DeviceError, match=r"was not complete after \d{10} clock cycles") as caught:
            if form == "windows":
                load_windows(maps[0], coords, 2, (0, 2048), 2048 + 128, 4352, device=device)
            else:
                if form == "listed":
                    prepared = prepare_listed(*maps, coords, 2, (0, 2048), 2048 + 128, 4352, device=device)
                else:
                    walk = cover((256, 128), (64, 16))
                    prepared = prepare_tiles(*maps, walk, 2048 + 128, form=form, device=device)
                prepared.launch()
                prepared.check()
        facts = caught.value.facts
        if form in ("listed", "windows"):
            assert (facts["expected"], facts["emulator"]) == ("4352 bytes", "4096 bytes, 2 loads of 2048")
        else:
            assert (facts["expected"], facts["emulator"]) == ("2176 bytes", "2048 bytes")
        assert "stage" in str(facts["barrier"]) and "phase 0" in str(facts["barrier"])
        a.write(fresh(65536))
        again = prepare_tiles(*maps, cover((256, 128), (64, 16)), 2048, device=device)
        again.launch()
        again.check()
        assert bytes(b.read()) == fresh(65536)


@pytest.mark.parametrize("irregular", [False, True])
def test_listed_tiles_copy_a_tensor(device: Device, irregular: bool) -> None:
    """Two boxes a tile, side by side; the irregular list is shuffled."""
    content = fresh(65536)
    tiles = [[(x, y), (x + 64, y)] for y in range(0, 128, 16) for x in (0, 128)]
    if irregular:
        np.random.default_rng(3).shuffle(tiles)
    with DeviceBuffer(device, 65536) as a, DeviceBuffer(device, 65536) as b:
        a.write(content)
        b.fill(0xA5)
        coords = np.array(tiles).reshape(-1, 2)
        prepared = prepare_listed(tensor(a.address), tensor(b.address), coords, 2, (0, 2048), 2048, 4096, device=device)
        prepared.launch()
        prepared.check()
        assert bytes(b.read()) == content
        windows = load_windows(tensor(a.address), coords, 2, (2048, 0), 2048, 5120, poison=0x77, device=device)
    values = np.frombuffer(content, np.uint16).reshape(128, 256)
    at = np.arange(2048)
    for (first, second), window in zip(tiles, windows, strict=True):
        for (x, y), start in ((first, 2048), (second, 0)):
            box = np.ascontiguousarray(values[y : y + 16, x : x + 64]).view(np.uint8).reshape(-1)
            assert window[start : start + 2048] == box[at ^ (((at >> 7) & 7) << 4)].tobytes()
        assert window[4096:] == b"\x77" * 1024


def test_a_regular_list_takes_a_folded_kernel(device: Device) -> None:
    content = fresh(65536)
    coords = [(x, y) for y in range(0, 128, 16) for x in range(0, 256, 64)]
    with DeviceBuffer(device, 65536) as a, DeviceBuffer(device, 65536) as b:
        a.write(content)
        prepared = prepare_listed(tensor(a.address), tensor(b.address), coords, 2, (0,), 2048, 2048, device=device)
        assert prepared.kernels[0].source.name == "copy_once"
        prepared.launch()
        prepared.check()
        assert bytes(b.read()) == content


def test_a_box_that_does_not_start_at_the_window_takes_the_listed_kernel(device: Device) -> None:
    content = fresh(65536)
    coords = [(x, y) for y in range(0, 128, 16) for x in range(0, 256, 64)]
    with DeviceBuffer(device, 65536) as a, DeviceBuffer(device, 65536) as b:
        a.write(content)
        maps = tensor(a.address), tensor(b.address)
        prepared = prepare_listed(*maps, coords, 2, (1024,), 2048, 3072, device=device)
        assert prepared.kernels[0].source.name == "copy_listed"
        prepared.launch()
        prepared.check()
        assert bytes(b.read()) == content
        with pytest.raises(InvalidValueError, match="got 31 coordinates; must be a multiple of 2, the number per tile"):
            prepare_listed(*maps, coords[1:], 2, (0, 2048), 2048, 4096, device=device)


def test_a_ring_is_measured_in_tiles(device: Device) -> None:
    """A block of a ring moves many tiles: the loads of all of them are counted."""
    size = 8 * 2**20
    with DeviceBuffer(device, size) as a, DeviceBuffer(device, size) as b:
        views = [ArrayView(x.address, (size,), (1,), as_dtype("uint8"), device.ordinal) for x in (a, b)]
        prepared = prepare_copy(*views, device=device, tuning=Tuning("ring"))
        (kernel,) = measure_copy(prepared, rounds=1).kernels
        assert kernel.blocks < kernel.loads
        assert kernel.bytes_per_barrier * kernel.loads == size


def test_only_copies_with_a_choice_are_searched(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of rows between places of different alignment has one kernel. Geometries are told apart."""
    monkeypatch.setenv("CUTE_PY_CACHE_DIR", str(tmp_path))
    with DeviceBuffer(device, 2**21) as a, DeviceBuffer(device, 2**21) as b:
        views = [
            [ArrayView(x.address + shift, (size,), (1,), as_dtype("uint8"), device.ordinal) for x, shift in places]
            for size, places in ((2**20, ((a, 3), (b, 0))), (2**20, ((a, 0), (b, 0))), (2**19, ((a, 0), (b, 0))))
        ]
        realigned, *aligned = (prepare_copy(*pair, device=device, tuning=Tuning()) for pair in views)
        assert realigned.plans[0].form not in ("once", "ring")
        keys = {geometry_key(one, *views[1], False) for one in aligned}
        assert len(keys) == 2

        def measured(*arguments: object) -> list[float]:
            raise AssertionError("a search")

        monkeypatch.setattr(tune, "median_times", measured)
        assert tuned_copy(*views[0], device=device).plan == prepare_copy(*views[0], device=device).plan
        large = [ArrayView(x.address, (2**21,), (1,), as_dtype("uint8"), device.ordinal) for x in (a, b)]
        with pytest.raises(AssertionError, match="a search"):
            tuned_copy(*large, device=device)


def test_a_copy_can_be_measured_and_shown(device: Device) -> None:
    size = 8 * 2**20
    with DeviceBuffer(device, size) as a, DeviceBuffer(device, size) as b:
        views = [ArrayView(x.address, (size,), (1,), as_dtype("uint8"), device.ordinal) for x in (a, b)]
        prepared = prepare_copy(*views, device=device)
        report = measure_copy(prepared, rounds=3)
        assert report.bytes == size
        assert 20 < report.percent_of_memcpy < 200
        assert report.kernels[0].registers > 0
        assert report.kernels[0].bytes_per_barrier * report.kernels[0].loads == size
        assert "copy_once" in str(report)
        texts = kernel_texts(prepared.kernels[0])
        assert "cp.async.bulk.tensor.2d.shared::cluster.global" in texts[".ptx"]
        assert "UTMALDG" in texts.get(".sass", "UTMALDG")


def test_a_search_is_done_once(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_PY_CACHE_DIR", str(tmp_path))
    shape = (512, 1024)
    with DeviceBuffer(device, 2 * 2**20) as a, DeviceBuffer(device, 2**20) as b:
        a.write(fresh(2 * 2**20))
        source = ArrayView(a.address, shape, (2048, 1), as_dtype("float16"), device.ordinal)
        destination = ArrayView(b.address, shape, row_major(shape), as_dtype("float16"), device.ordinal)
        tuned_copy(source, destination, rounds=2, device=device)
        kept = len(list((tmp_path / "entries").glob("*/*")))
        b.fill(0)
        again = tuned_copy(source, destination, device=device)
        again.launch()
        again.check()
        got = np.frombuffer(bytes(b.read()), np.uint16).reshape(shape)
        assert np.array_equal(got, np.frombuffer(bytes(a.read()), np.uint16).reshape(512, 2048)[:, :1024])
        assert len(list((tmp_path / "entries").glob("*/*"))) == kept, "found, and not searched and compiled again"
    assert len(candidate_tunings(True)) > 3


def test_a_search_among_tiles_keeps_the_fastest(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tile of the search copies the array; the one that took the shortest time is found again."""
    monkeypatch.setenv("CUTE_PY_CACHE_DIR", str(tmp_path))
    shape, size = (301, 75, 130), 301 * 75 * 130
    content = np.frombuffer(fresh(size), np.uint8).reshape(shape)
    with DeviceBuffer(device, size) as a, DeviceBuffer(device, size) as b:
        a.write(content.tobytes())
        source = ArrayView(a.address, (130, 75, 301), (1, 130, 9750), as_dtype("uint8"), device.ordinal)
        destination = ArrayView(b.address, (130, 75, 301), row_major((130, 75, 301)), as_dtype("uint8"), device.ordinal)
        times = []

        def measured(device: Device, works: list[Callable[[], object]], *arguments: int) -> list[float]:
            for work in works:
                b.fill(0xA5)
                work()
                got = np.frombuffer(bytes(b.read()), np.uint8).reshape(130, 75, 301)
                assert np.array_equal(got, content.transpose(2, 1, 0))
            times[:] = [float(len(works) - i) for i in range(len(works))]
            return times

        monkeypatch.setattr(tune, "median_times", measured)
        found = tuned_copy(source, destination, device=device)
        assert len(times) == tune.TILES and found.plan is not None
        assert found.plan != prepare_copy(source, destination, device=device).plan, "the last one was the fastest"
        times.clear()
        assert tuned_copy(source, destination, device=device).plan == found.plan
        assert not times


def swizzled_row() -> Job:
    """Rows of 64 bytes in a 128-byte swizzle: every other 64 bytes (permuted) stay as they were."""
    row = encode(TensorMapTiled(1, 0, (32, 8), (64,), (32, 8), swizzle=3))
    return Job(CopyOp("load", 2), row, (0, 0), window=bytes(2048), expected=512, gmem=fresh(512))


def test_unwritten_bytes_are_found(device: Device) -> None:
    """Of two fills without a bit in common, a byte that keeps both was not written."""
    fills = (0xCD, 0x32)
    jobs = [replace(swizzled_row(), window=bytes([fill]) * 2048) for fill in fills]
    windows = [outcome.windows[0] for outcome in run_jobs(jobs, device=device)]
    kept = [pair == fills for pair in zip(*windows, strict=True)]
    assert sum(kept) == 2048 - 512
    assert kept[-1]


def test_isolated_instructions_give_what_direct_ones_give() -> None:
    (outcome,) = run_isolated([swizzled_row()])
    assert outcome.completed
    with pytest.raises(InvalidValueError, match="pass its bytes as gmem"):
        run_isolated([Job(CopyOp("load", 2), bytes(128), (0, 0))])


def test_a_window_beyond_shared_memory_is_refused(device: Device) -> None:
    job = Job(CopyOp("load", 2), swizzled_row().descriptor, (0, 0), window=bytes(2**18), gmem=fresh(512))
    with pytest.raises(DeviceError, match="shared memory"):
        run_isolated([job])
