"""What every backend of copy and execute must do, held against each: the emulator, the GPU, and both side by side."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError

RNG = np.random.default_rng(11)
BACKENDS = ["emulator", pytest.param("cuda", marks=pytest.mark.gpu), pytest.param("both", marks=pytest.mark.gpu)]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    if request.param != "emulator" and not cute.tma.device_available():
        pytest.skip("no GPU with TMA")
    return str(request.param)


def tile_of(*shape: int, swizzle: tuple[int, int, int] | None = None, bits: int = 16) -> Any:
    layout = Layout(tuple(Int(n) for n in shape), LayoutRight)
    if swizzle is None:
        return layout
    return cute.ComposedLayout(cute.Swizzle(*swizzle), cute.smem_ptr_flag(bits), layout)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return RNG.integers(0, 256, size).astype(np.uint8).view(dtype).reshape(shape)


CASES = {
    "rank 1": (numbers((1003,), np.int8), tile_of(256)),
    "rank 2": (numbers((192, 256), np.float16), tile_of(64, 64)),
    "128B swizzle": (numbers((192, 256), ml_dtypes.bfloat16), tile_of(64, 64, swizzle=(3, 4, 3))),
    "32B swizzle": (numbers((96, 48), np.float32), tile_of(32, 8, swizzle=(1, 4, 3), bits=32)),
    "rank 3, residues": (numbers((7, 13, 100), np.float32), tile_of(3, 8, 32)),
    "rank 5": (numbers((3, 2, 5, 6, 10), np.float64), tile_of(1, 1, 2, 4, 8)),
    "several boxes a tile": (numbers((64, 128), np.float16), tile_of(64, 128, swizzle=(3, 4, 3))),
    "two instructions of a tile": (
        numbers((64, 128), np.float16),
        cute.tile_to_shape(tile_of(8, 64, swizzle=(3, 4, 3)), (Int(64), Int(128))),
    ),
    "column major": (np.asfortranarray(numbers((64, 96), np.float16)), Layout((Int(32), Int(32)))),
    "a strided view": (numbers((128, 256), np.uint8)[::2, 16:112], tile_of(32, 32)),
    "fp8": (numbers((64, 64), ml_dtypes.float8_e4m3fn), tile_of(32, 32)),
}


def atom_of(array: Any, tile: Any) -> Any:
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", array, tile)


@pytest.mark.parametrize("name", [name for name in CASES if name != "several boxes a tile"])
def test_a_copy_is_equal(name: str, backend: str) -> None:
    array, tile = CASES[name]
    atom = atom_of(array, tile)
    result = cute.tma.copy(atom, array, backend=backend)
    assert result.equal, result.difference
    assert result.backend == backend
    assert np.array_equal(result.destination.view(f"V{array.itemsize}"), array.view(f"V{array.itemsize}"))


def test_a_view_is_written_and_nothing_beside_it(backend: str) -> None:
    whole = numbers((64, 256), np.uint8)
    source, target = whole[:, 32:96], np.full((64, 256), 0xEE, np.uint8)
    atom = atom_of(source, tile_of(32, 32))
    assert cute.tma.copy(atom, source, target[:, 32:96], backend=backend).equal
    expected = np.full((64, 256), 0xEE, np.uint8)
    expected[:, 32:96] = source
    assert np.array_equal(target, expected)


def test_a_view_is_gathered_into_a_compact_array(backend: str) -> None:
    source = numbers((128, 256), np.uint8)[::2, 16:112]
    target = np.zeros((64, 96), np.uint8)
    assert cute.tma.copy(atom_of(source, tile_of(32, 32)), source, target, backend=backend).equal
    assert np.array_equal(target, source)


def test_a_destination_that_no_map_can_have_is_refused(backend: str) -> None:
    source = numbers((64, 96), np.uint8)
    atom = atom_of(source, tile_of(32, 32))
    with pytest.raises(TmaLimitError, match="multiple of 16"):
        cute.tma.copy(atom, source, np.zeros((64, 100), np.uint8)[:, :96], backend=backend)
    with pytest.raises(InvalidValueError, match="is not the tensor of this atom"):
        cute.tma.copy(atom, source, np.zeros((96, 64), np.uint8).T, backend=backend)


def test_rows_that_spill_leave_the_bytes_behind_them(backend: str) -> None:
    """Rows of 100 bytes in a pitch of 112: a store writes 112, the copy only 100."""
    whole, target = numbers((20, 112), np.uint8), np.full((20, 112), 0xEE, np.uint8)
    source = whole[:, :100]
    atom = atom_of(source, tile_of(8, 32))
    result = cute.tma.copy(atom, source, target[:, :100], backend=backend)
    assert result.equal
    assert "not a multiple of 16" in result.warnings[0]
    assert (target[:, 100:] == 0xEE).all()


def test_a_tile_lies_where_the_shared_layout_says(backend: str) -> None:
    array, tile = CASES["128B swizzle"]
    atom = atom_of(array, tile)
    result = cute.tma.execute(atom, array, (1, 2), backend=backend, poison=0xCD)
    offsets = 2 * np.arange(64 * 64).reshape(64, 64)
    offsets ^= (offsets >> 3) & 0x70
    there = result.smem.view(np.uint16)[offsets // 2]
    assert np.array_equal(there, array[64:128, 128:192].view(np.uint16))


def test_bytes_that_no_instruction_writes_keep_the_poison(backend: str) -> None:
    """Rows of 128 bytes that lie 256 apart: one instruction a row, and nothing between."""
    array = numbers((64, 64), np.float16)
    atom = atom_of(array, Layout((Int(16), Int(64)), (Int(128), Int(1))))
    assert atom.instructions == 16
    smem = cute.tma.execute(atom, array, (1, 0), backend=backend, poison=0xCD).smem
    rows = smem[: 15 * 256 + 128]
    rows = np.concatenate([rows, np.full(128, 0xCD, np.uint8)]).reshape(16, 256)
    assert np.array_equal(rows[:, :128], array[16:32].view(np.uint8))
    assert (rows[:, 128:] == 0xCD).all()


def test_out_of_bounds_elements_are_zero(backend: str) -> None:
    array = np.full((20, 40), 7, np.uint8)[:, :32]
    atom = atom_of(np.ascontiguousarray(array), tile_of(16, 32))
    smem = cute.tma.execute(atom, np.ascontiguousarray(array), (1, 0), backend=backend, poison=0xCD).smem
    assert (smem.reshape(16, 32)[:4] == 7).all()
    assert (smem.reshape(16, 32)[4:] == 0).all()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda x: x[:32], InvalidValueError),
        (lambda x: x.astype(np.float32), InvalidValueError),
        (lambda x: x.T, InvalidValueError),
        (lambda x: x.tolist(), (InvalidTypeError, InvalidValueError)),
        (lambda x: None, (InvalidTypeError, InvalidValueError)),
    ],
)
def test_another_tensor_is_refused(change: Any, kind: Any, backend: str) -> None:
    array, tile = CASES["rank 2"]
    atom = atom_of(array, tile)
    with pytest.raises(kind):
        cute.tma.copy(atom, change(array), backend=backend)


def test_overlap_and_read_only_destinations_are_refused(backend: str) -> None:
    array = numbers((192, 256), np.float16)
    atom = atom_of(array, tile_of(64, 64))
    with pytest.raises(InvalidValueError, match="overlap"):
        cute.tma.copy(atom, array, array, backend=backend)
    target = np.zeros_like(array)
    target.flags.writeable = False
    with pytest.raises(InvalidValueError, match="read-only"):
        cute.tma.copy(atom, array, target, backend=backend)


def test_unknown_options_and_backends_are_refused(backend: str) -> None:
    array, tile = CASES["rank 2"]
    atom = atom_of(array, tile)
    with pytest.raises(InvalidValueError, match="option 'color'"):
        cute.tma.copy(atom, array, backend=backend, color="red")
    with pytest.raises(InvalidValueError, match="backend = 'tpu'; must be 'emulator', 'cuda' or 'both'"):
        cute.tma.copy(atom, array, backend="tpu")
    with pytest.raises(InvalidValueError, match="the tensor has 12 tiles"):
        cute.tma.execute(atom, array, 12, backend=backend)


def test_without_a_gpu_the_refusal_says_so() -> None:
    if cute.tma.device_available():
        pytest.skip("there is a GPU")
    array, tile = CASES["rank 2"]
    atom = atom_of(array, tile)
    for name in ("cuda", "both"):
        with pytest.raises(CuteError) as error:
            cute.tma.copy(atom, array, backend=name)
        assert type(error.value).__name__ in ("DeviceError", "MissingPackageError")
        with pytest.raises(CuteError):
            cute.tma.execute(atom, array, 0, backend=name)


def test_progress_counts_the_tiles(backend: str) -> None:
    array, tile = CASES["rank 2"]
    seen: list[tuple[int, int]] = []
    cute.tma.copy(atom_of(array, tile), array, backend=backend, progress=lambda a, b: seen.append((a, b)))
    assert seen[-1] == (12, 12)


def test_a_boxless_tile_is_refused_when_the_atom_is_made() -> None:
    array, tile = CASES["several boxes a tile"]
    with pytest.raises(TmaLimitError):
        atom_of(array, tile)


def test_without_an_atom_only_the_gpu_copies() -> None:
    array, _ = CASES["rank 2"]
    with pytest.raises(InvalidTypeError, match="only backend='cuda' plans a copy"):
        cute.tma.copy(None, array)


@pytest.mark.gpu
def test_without_an_atom_order_and_strides_are_free() -> None:
    if not cute.tma.device_available():
        pytest.skip("no GPU with TMA")
    array = numbers((256, 512), np.uint16)
    for source in (array, array[::2], array[:, 64:320], np.asfortranarray(array)):
        target = np.zeros(source.shape, source.dtype)
        result = cute.tma.copy(None, source, target, backend="cuda")
        assert result.equal, result.difference
        assert np.array_equal(target, source)
        assert result.details["forms"]
    with pytest.raises(InvalidValueError, match="host memory"):
        cute.tma.copy(None, array, np.zeros_like(array), backend="cuda", tune=True)
