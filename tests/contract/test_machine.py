"""The kernels of this package on the emulated multiprocessor: what they leave is what numpy and the emulator leave."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.copies import machine_copy, thread_kernels
from cute_py.copies import plan as plan_module
from cute_py.copies import tile as tile_module
from cute_py.copies import tile_shape as tile_shape_module
from cute_py.copies.boxes import Tuning
from cute_py.copies.machine_copy import machine_launches, run_on_machine
from cute_py.copies.operands import paired, side
from cute_py.copies.plan import box_launches, plan_pairing
from cute_py.copies.prepared import PreparedCopy
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.gpu.kernels.device_barrier import device_barrier
from cute_py.gpu.kernels.edges import copy_edges
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.machine.cuda_source import compiler_available
from cute_py.machine.launch import Arguments, Extended
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from tests.copies.pairs import permuted
from tests.copies.tile_cases import CASES as TILE_CASES
from tests.copies.tile_cases import TileCase, launches_in_form, small_tiles
from tests.shares import one_in

pytestmark = pytest.mark.skipif(not compiler_available(), reason="no compiler of CUDA C++ (nvcc, or nvidia-cuda-nvrtc)")
DICE = np.random.default_rng(13)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return DICE.integers(0, 256, size).astype(np.uint8).view(dtype).reshape(shape)


def at_offset(shape: tuple[int, int], pitch: int, offset: int) -> Any:
    """A view of bytes whose address is so many bytes behind a multiple of 128."""
    held = np.zeros(shape[0] * pitch + 256, np.uint8)
    start = -held.ctypes.data % 128 + offset
    held[start : start + shape[0] * pitch] = numbers((shape[0] * pitch,), np.uint8)
    return held[start : start + shape[0] * pitch].reshape(shape[0], pitch)[:, : shape[1]]


CASES: dict[str, tuple[str, Any, Any, str | None]] = {
    "rows": ("copy_once", numbers((33, 250), np.uint8), np.zeros((33, 250), np.uint8), None),
    "a ring of rows": ("copy_ring", numbers((64, 256), np.uint16), np.zeros((64, 256), np.uint16), "ring"),
    "a source off 16 bytes": ("copy_realigned", at_offset((64, 256), 272, 4), np.zeros((64, 256), np.uint8), None),
    "halves transposed": ("copy_transposed", numbers((96, 160), np.uint16).T, np.zeros((160, 96), np.uint16), "once"),
    "words transposed": ("copy_transposed", numbers((48, 64), np.uint64).T, np.zeros((64, 48), np.uint64), "ring"),
    "tiles by threads": ("copy_tile", numbers((256, 512), np.uint16).T, np.zeros((512, 256), np.uint16), None),
    "runs by threads": ("copy_runs", numbers((8, 12, 40), "u4").transpose(2, 0, 1), np.zeros((40, 8, 12), "u4"), None),
    "backwards": ("copy_runs", numbers((64, 64), np.uint16)[::-1], np.zeros((64, 64), np.uint16), None),
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_a_copy_of_arrays(name: str) -> None:
    kernel, source, destination, form = CASES[name]
    tuning = None if form is None else Tuning(form=form)
    assert kernel in [one.kernel.name for one in machine_launches(source, destination, tuning=tuning)]
    destination[...] = 0
    run = run_on_machine(source, destination, tuning=tuning)
    assert run is not None
    assert run.ok, run.explain()
    assert np.array_equal(source, destination)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_tiles_in_groups(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring tiles of a source whose rows start between two words run together. Bytes that follow the arrays in
    the same word are neither compared nor restored."""
    for module, name, value in (
        (plan_module, "FEW", 0), (tile_shape_module, "BLOCKS", 1), (tile_shape_module, "LINES", (64, 32)),
        (tile_shape_module, "FILLED", 1024), (tile_module, "LEAST", (512, 1024)), (thread_kernels, "APART", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    plan_module._planned.cache_clear()
    held = np.zeros((2, 150 * 77 + 16), dtype)
    source, target = (row[1 : 1 + 150 * 77].reshape(150, 77) for row in held)
    source[...], target = numbers((150, 77), dtype), target.reshape(77, 150)
    (launch,) = machine_launches(source.T, target)
    assert launch.kernel.facts["GROUPED"] == 1
    run = run_on_machine(source.T, target)
    plan_module._planned.cache_clear()
    assert run is not None and run.ok, run and run.explain()
    assert (target == source.T).all()


def test_bytes_beside_an_array_are_not_restored() -> None:
    """Another thread may change them while the kernel runs."""
    held = np.arange(64, dtype=np.uint8)
    one = Extended(held[16:48], 3, 5)
    arguments = Arguments((), [], {"an array": one})
    before = arguments.bytes_of()
    assert before["an array"].tolist() == list(range(19, 43))
    held[...] = 0
    arguments.restore(before)
    assert held.tolist() == [n if 19 <= n < 43 else 0 for n in range(64)]


ROWS_OF_RUNS = {
    "runs longer than a vector": ((7, 33, 57, 15), (1, 3, 0, 2), np.uint8),
    "runs shorter than a vector": ((3, 5, 7, 9, 11, 3), (3, 4, 1, 0, 5, 2), np.uint8),
    "whole source rows": ((3, 83, 24, 20), (3, 0, 2, 1), np.uint8),
    "two bytes, a source that ends at a multiple of 16 bytes": ((11, 51, 16, 5), (3, 0, 2, 1), np.uint16),
    "two bytes, a destination alone": ((6, 13, 37, 5), (3, 1, 0, 2), np.uint16),
    "four bytes": ((3, 13, 25, 15), (1, 2, 3, 0), np.uint32),
}


@pytest.mark.parametrize("name", one_in(3, ROWS_OF_RUNS))
def test_rows_between_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Destination rows that start between two words, and consist of several runs of the tile."""
    shape, axes, dtype = ROWS_OF_RUNS[name]
    monkeypatch.setattr(plan_module, "FEW", 0)
    plan_module._planned.cache_clear()
    source = numbers(shape, dtype).transpose(axes)
    target = np.zeros(source.shape, dtype)
    run = run_on_machine(source, target, schedule="eager")
    plan_module._planned.cache_clear()
    assert run is not None and run.ok
    assert (target == source).all()


@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "together", "runs"),
    one_in(
        3,
        [
            ((7, 75, 16), (2, 0, 1), np.uint8, 4, 0),
            ((9, 57, 64), (2, 1, 0), np.uint8, 4, 3),
            ((7, 57, 9, 16), (3, 0, 1, 2), np.uint8, 8, 0),
            ((13, 7, 16, 25), (3, 2, 0, 1), np.uint8, 4, 2),
            ((57, 33, 31), (2, 1, 0), np.uint16, 8, 2),
        ],
    ),
)
def test_rows_written_together(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any, together: int, runs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Adjacent threads have vectors of several rows; a vector has elements of `runs` listed runs, if any."""
    for module, name, value in (
        (plan_module, "FEW", 0), (tile_shape_module, "BLOCKS", 1), (tile_shape_module, "QUICK", (1 << 40, 1)),
        (tile_module, "FOLDED", 0),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    plan_module._planned.cache_clear()
    source = numbers(shape, dtype).transpose(axes)
    target = np.zeros(source.shape, dtype)
    (launch,) = machine_launches(source, target)
    run = run_on_machine(source, target, schedule="lazy")
    plan_module._planned.cache_clear()
    assert (launch.kernel.facts["TOGETHER"], launch.kernel.facts["RUNS_PER_VECTOR"]) == (together, runs)
    assert run is not None and run.ok, run and run.explain()
    assert (target == source).all()


@pytest.mark.parametrize("case", TILE_CASES)
def test_every_form_of_the_kernel_of_tiles(case: TileCase, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiles(monkeypatch)
    shape, axes, element, shifts, form = case
    launch = launches_in_form(permuted(shape, axes, element, shifts), form)[0]
    monkeypatch.setattr(machine_copy, "thread_launches", lambda _: (launch,))
    plan_module._planned.cache_clear()
    size = int(np.prod(shape)) * element
    source, target = (at_offset((1, size), size, shift).view(f"u{element}") for shift in shifts)
    source, target = source.reshape(shape).transpose(axes), target.reshape([shape[i] for i in axes])
    run = run_on_machine(source, target)
    plan_module._planned.cache_clear()
    assert run is not None and run.ok, run and run.explain()
    assert (target == source).all()


def prepared(source: Any, destination: Any, tuning: Tuning | None) -> PreparedCopy:
    """A `PreparedCopy` as `prepare_copy` leaves it, without what it holds on a device."""
    one = object.__new__(PreparedCopy)
    a, b = side(source, "source", None), side(destination, "destination", None)
    one.plan, one.plans = plan_pairing(paired(a, b), (a.alignment, b.alignment)), ()
    if one.plan.kernel == "boxes":
        refinement, element = one.plan.refinement, one.plan.bits // 8
        assert refinement is not None
        places = (a.view.address, b.view.address)
        one.plans = box_launches(refinement, element, places, 132, tuning or Tuning())
    return one


@pytest.mark.parametrize("name", one_in(3, ["rows", "a source off 16 bytes", "runs by threads", "backwards"]))
def test_a_prepared_copy_goes_in_as_it_is(name: str) -> None:
    _, source, destination, form = CASES[name]
    made = prepared(source, destination, None if form is None else Tuning(form=form))
    destination[...] = 0
    run = cute.run_ptx(made, args=(source, destination))
    assert run.ok, run.explain()
    assert np.array_equal(source, destination)


def test_a_prepared_copy_takes_two_arrays() -> None:
    _, source, destination, _ = CASES["rows"]
    with pytest.raises(InvalidValueError, match="from a source to a"):
        cute.run_ptx(prepared(source, destination, None), args=(source,))


def test_listed_tiles_lie_in_shared_memory_as_the_emulator_puts_them() -> None:
    array = numbers((64, 128), np.uint16)
    request = TensorMapTiled(1, 0, (128, 64), (256,), (64, 8), swizzle=3)
    coords = np.array([[64 * (i % 2), 8 * (i // 2)] for i in (3, 0, 9, 14)], np.int32)
    source = copy_listed(2, (0,), 1024, 1024, dump=True)
    windows, record = np.zeros((4, source.shared_bytes), np.uint8), np.zeros(64, np.uint8)
    pitch = int(str(source.facts["STAGE_BYTES"]))
    args = [(request, array), (request, array), coords, windows, 0xCDCDCDCD, record]
    run = cute.run_ptx(source, grid=4, args=args)
    assert run.ok, run.explain()
    for number, place in enumerate(coords.tolist()):
        expected = np.full(1024, 0xCD, np.uint8)
        Emulator().load(request, array.reshape(-1).view(np.uint8), place, expected)
        assert np.array_equal(windows.reshape(-1)[number * pitch : number * pitch + 1024], expected)


def test_edges_and_a_meeting_of_one_device() -> None:
    source = copy_edges(((4, 16, 32), (5, 1, 1)))
    first, second = numbers((256,), np.uint8), np.zeros(256, np.uint8)
    values: dict[str, Any] = {"tail_source": first, "tail_destination": second}
    run = cute.run_ptx(source, args=[values[name] for name in source.parameters])
    assert run.ok, run.explain()
    for i in range(4):
        assert np.array_equal(second[32 * i : 32 * i + 5], first[16 * i : 16 * i + 5])
    counts, record = np.array([6], np.uint32), np.zeros(64, np.uint8)
    met = cute.run_ptx(device_barrier(1), args=[counts, np.zeros(1, np.uint64), 0, 1000, record])
    assert [one.rule for one in met.diagnostics] == ["out of bounds"]  # a table of null pointers


@pytest.mark.parametrize(("m", "n", "k", "groups", "multicast"), [(256, 128, 128, 2, 1), (128, 192, 128, 1, 2)])
@pytest.mark.parametrize("schedule", one_in(2, ["both", 3]))
def test_a_gemm(m: int, n: int, k: int, groups: int, multicast: int, schedule: str | int) -> None:
    def matrix(rows: int, columns: int) -> Any:
        return cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), Layout((rows, columns), (columns, Int(1))))

    def stage(rows: int) -> Any:
        return cute.tma.make_smem_layout("K", "128B", "bfloat16", (rows, 64))

    width = 64 if n % 128 else 128
    mma = cute.make_tiled_mma(f"SM90_64x{width}x16_F32BF16BF16_SS", (groups, 1, 1))
    a = cute.tma.make_tma_copy("SM90_TMA_LOAD", matrix(m, k), stage(64 * groups))
    shared = {"num_multicast": 2} if multicast == 2 else {}
    load = "SM90_TMA_LOAD_MULTICAST" if multicast == 2 else "SM90_TMA_LOAD"
    b = cute.tma.make_tma_copy(load, matrix(n, k), stage(width), **shared)
    c = cute.tma.make_tma_copy("SM90_TMA_STORE", matrix(m, n), stage(64))
    kernel = cute.tma.gemm_kernel(mma, a, b, c)
    left, right = (DICE.integers(-3, 4, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k)))
    product = np.zeros((m, n), ml_dtypes.bfloat16)
    run = cute.run_ptx(kernel, args=(left, right, product), schedule=schedule)
    assert run.ok, run.explain()
    expected = (left.astype(np.float32) @ right.astype(np.float32).T).astype(ml_dtypes.bfloat16)
    assert np.array_equal(product.view(np.uint16), expected.view(np.uint16))


def test_a_tuning_of_another_type_is_refused() -> None:
    x = numbers((64, 64), np.uint8)
    with pytest.raises(InvalidTypeError, match="tuning"):
        run_on_machine(x, np.zeros_like(x), tuning=[64])  # type: ignore[arg-type]
