"""What traps, at its bounds; and that a trap leaves memory as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_py.errors import InvalidTypeError, InvalidValueError, TmaTrap, UnknownFactError
from cute_py.tma.descriptor.data_types import TensorMapDataType
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.dialect.modes import TmaReduceKind
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tma.emulator.memory import GlobalMemory
from cute_py.tma.emulator.values import REDUCTIONS
from tests.each import each_of

ENGINE = Emulator()
TILE = encode(TensorMapTiled(9, 4096, (40, 12), (96,), (16, 4)))
COLUMN = encode(TensorMapIm2col(9, 4096, (16, 7, 6, 3), (32, 224, 1344), (-1, 2), (1, -1), 16, 4))
BOUNDED = encode(TensorMapIm2col(9, 4096, (16, 7, 6, 3), (32, 224, 1344), (0, 2), (0, -1), 16, 4))


def outcome(call: Callable[..., Any], *args: Any, **more: Any) -> str | None:
    """The CUDA error, or None; memories among the arguments must be as they were if it traps."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    before = [a.copy() for a in arrays]
    try:
        call(*args, **more)
    except TmaTrap as trap:
        assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))
        return trap.cuda_error
    return None


def gmem() -> np.ndarray[Any, Any]:
    return np.arange(8192, dtype=np.uint32).astype(np.uint8)


def smem(n: int = 2048) -> np.ndarray[Any, Any]:
    return np.full(n, 0xCD, np.uint8)


ILLEGAL = "CUDA_ERROR_ILLEGAL_INSTRUCTION"
ADDRESS = "CUDA_ERROR_ILLEGAL_ADDRESS"


@each_of(
    ("coords", "error"),
    [
        ((0, 0), None),
        ((8, 0), None),
        ((4, 0), ILLEGAL),
        ((-8, 0), None),
        ((-7, 0), ILLEGAL),
        ((39, 0), ILLEGAL),
        ((0, -100), None),
        ((0, 100), None),
        ((48, 2), None),
        ((2**31 - 8, 2**31 - 1), None),
        ((-(2**31), 0), None),
    ],
)
def test_inner_coordinate_of_loads(coords: tuple[int, int], error: str | None) -> None:
    assert outcome(ENGINE.load, TILE, gmem(), coords, smem(), gmem_base=4096) == error


@each_of(
    ("coords", "error"),
    [((0, 0), None), ((8, 11), None), ((4, 0), ILLEGAL), ((-8, 0), ILLEGAL), ((0, -1), ILLEGAL), ((48, 40), None)],
)
@each_of("op", [None, "add"])
def test_coordinates_of_stores_and_reductions(coords: tuple[int, int], error: str | None, op: str | None) -> None:
    if op is None:
        assert outcome(ENGINE.store, TILE, gmem(), coords, smem(), gmem_base=4096) == error
    else:
        assert outcome(ENGINE.reduce, op, TILE, gmem(), coords, smem(), gmem_base=4096) == error


@pytest.mark.parametrize(
    ("w", "h", "error"),
    [(-1, 2, None), (-2, 2, ILLEGAL), (7, 4, None), (8, 4, ILLEGAL), (0, 1, ILLEGAL), (0, 5, ILLEGAL)],
)
def test_the_base_of_a_column_lies_in_its_box(w: int, h: int, error: str | None) -> None:
    found = outcome(ENGINE.load, COLUMN, gmem(), (0, w, h, 0), smem(), im2col_offsets=(0, 0), gmem_base=4096)
    assert found == error


def test_corners_of_im2col_stores() -> None:
    assert outcome(ENGINE.store, COLUMN, gmem(), (0, 0, 3, 0), smem(), gmem_base=4096) == ILLEGAL
    assert outcome(ENGINE.store, BOUNDED, gmem(), (0, 0, 3, 0), smem(), gmem_base=4096) is None
    assert outcome(ENGINE.store, BOUNDED, gmem(), (0, 0, 1, 0), smem(), gmem_base=4096) == ILLEGAL


@each_of("op", REDUCTIONS)
@each_of("data_type", list(TensorMapDataType)[:13])
def test_reductions_by_format(op: str, data_type: TensorMapDataType) -> None:
    tile = encode(TensorMapTiled(data_type, 4096, (16, 4), (128,), (16, 2)))
    error = outcome(ENGINE.reduce, op, tile, gmem(), (0, 0), smem(), gmem_base=4096)
    assert (error is None) is (data_type in REDUCTIONS[op])


@each_of("offset", [0, 1, 8, 16, 64, 127, 128, 129, 192, 256])
def test_windows_start_at_multiples_of_128(offset: int) -> None:
    found = outcome(ENGINE.load, TILE, gmem(), (0, 0), smem(), smem_offset=offset, gmem_base=4096)
    assert found == (None if offset % 128 == 0 else "CUDA_ERROR_MISALIGNED_ADDRESS")
    found = outcome(ENGINE.store, TILE, gmem(), (0, 0), smem(), smem_offset=offset, gmem_base=4096)
    assert found == (None if offset % 128 == 0 else "CUDA_ERROR_MISALIGNED_ADDRESS")


@pytest.mark.parametrize(
    ("size", "offset", "error"), [(128, 0, None), (127, 0, ADDRESS), (256, 128, None), (255, 128, ADDRESS)]
)
def test_the_window_ends_in_shared_memory(size: int, offset: int, error: str | None) -> None:
    assert outcome(ENGINE.load, TILE, gmem(), (0, 0), smem(size), smem_offset=offset, gmem_base=4096) == error
    assert outcome(ENGINE.store, TILE, gmem(), (0, 0), smem(size), smem_offset=offset, gmem_base=4096) == error


def test_bytes_of_the_tensor_that_no_range_holds() -> None:
    last = 3 * 96 + 80  # the row length of the tensor is 80 bytes
    whole, short = gmem()[: last - 32 - 16], gmem()[: last - 32 - 17]
    assert outcome(ENGINE.load, TILE, whole, (0, 0), smem(), gmem_base=4096) is None
    assert outcome(ENGINE.load, TILE, short, (0, 0), smem(), gmem_base=4096) == ADDRESS
    assert outcome(ENGINE.load, TILE, gmem(), (0, 0), smem(), gmem_base=8192) == ADDRESS
    # nothing of the tensor is touched, so nothing is missing
    assert outcome(ENGINE.load, TILE, short, (0, 50), smem(), gmem_base=4096) is None


def test_many_are_checked_before_one_is_done() -> None:
    coords, offsets = [(0, 0), (0, 4), (4, 8)], [0, 128, 256]
    memory, window = gmem(), smem()
    with pytest.raises(TmaTrap) as caught:
        ENGINE.load_many(TILE, memory, coords, window, smem_offsets=offsets, gmem_base=4096)
    assert caught.value.facts == {"coordinates": (4, 8), "instruction": 2}
    assert (window == 0xCD).all()
    with pytest.raises(TmaTrap):
        ENGINE.store_many(TILE, memory, [(0, 0), (0, -1)], window, smem_offsets=offsets[:2], gmem_base=4096)
    assert np.array_equal(memory, gmem())


def test_a_row_rounded_up_to_sixteen_bytes_may_end_behind_the_range() -> None:
    tile = encode(TensorMapTiled(0, 0, (20, 2), (32,), (32, 2)))
    memory = np.zeros(52, np.uint8)
    ENGINE.store(tile, memory, (0, 0), np.full(64, 7, np.uint8))
    assert memory.tolist() == [7] * 52


def test_a_descriptor_may_point_at_any_range() -> None:
    memory = GlobalMemory()
    memory.add("low", np.zeros(128, np.uint8), 4096 - 128)
    held = memory.add("tensor", gmem()[:1152].copy(), 4096)
    window = smem()
    assert outcome(ENGINE.load, TILE, memory, (0, 0), window) is None
    assert window[:32].tolist() == held.array[:32].tolist()
    split = GlobalMemory()
    split.add("first rows", gmem()[:192].copy(), 4096)
    split.add("the rest", gmem()[192:1152].copy(), 4096 + 192)
    other = smem()
    ENGINE.load(TILE, split, (0, 0), other)
    assert np.array_equal(window, other)
    assert outcome(ENGINE.store, TILE, split, (0, 0), other) is None


@each_of(
    ("change", "error"),
    [
        ({"coords": (0,)}, InvalidValueError),
        ({"coords": (0, 0, 0)}, InvalidValueError),
        ({"coords": (0, 2**31)}, InvalidValueError),
        ({"coords": (0, -(2**31) - 1)}, InvalidValueError),
        ({"coords": (0, 2**70)}, InvalidValueError),
        ({"coords": (0.0, 0.0)}, InvalidTypeError),
        ({"smem_offset": -128}, InvalidValueError),
        ({"im2col_offsets": (1, 1)}, InvalidValueError),
        ({"mode": "im2col"}, InvalidValueError),
        ({"mode": "sideways"}, InvalidValueError),
        ({"gmem": np.zeros(64, np.float32)}, InvalidTypeError),
        ({"gmem": [0, 1]}, InvalidTypeError),
        ({"smem": np.zeros(64, np.uint8)[::2]}, InvalidTypeError),
        ({"descriptor_bytes": b"short"}, InvalidValueError),
        ({"descriptor_bytes": 7}, InvalidTypeError),
        ({"multicast_mask": 0}, InvalidValueError),
        ({"multicast_mask": 2}, InvalidValueError),
        ({"multicast_mask": 0x10000}, InvalidValueError),
        ({"cta_group": 3}, InvalidValueError),
    ],
)
def test_operands_that_no_instruction_has(change: dict[str, Any], error: type[Exception]) -> None:
    call: dict[str, Any] = {"descriptor_bytes": TILE, "gmem": gmem(), "coords": (0, 0), "smem": smem()}
    with pytest.raises(error):
        ENGINE.load(**{**call, "gmem_base": 4096, **change})


def test_stores_and_reductions_take_the_arguments_of_a_load() -> None:
    call: dict[str, Any] = {"mode": None, "im2col_offsets": (), "barrier": None, "multicast_mask": None}
    by_order, by_name = gmem(), gmem()
    window = smem()
    ENGINE.store(TILE, by_order, (0, 0), window, gmem_base=4096)
    ENGINE.store(descriptor_bytes=TILE, gmem=by_name, coords=(0, 0), smem=window, gmem_base=4096, **call)
    assert np.array_equal(by_order, by_name) and not np.array_equal(by_order, gmem())
    ENGINE.reduce("add", TILE, by_order, (0, 0), window, gmem_base=4096)
    ENGINE.reduce(TmaReduceKind.ADD, TILE, by_name, (0, 0), window, gmem_base=4096, **call)
    assert np.array_equal(by_order, by_name)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"im2col_offsets": (0, 0)}, "store has no operand for im2col offsets; only loads have one"),
        ({"barrier": Mbarrier(1)}, "store has no operand for a barrier; only loads have one"),
        (
            {"barrier": 8, "multicast_mask": 1},
            "store has no operand for a barrier and a multicast mask; only loads have one",
        ),
    ],
)
def test_what_only_loads_have(more: dict[str, Any], said: str) -> None:
    memory = gmem()
    with pytest.raises(InvalidValueError) as refusal:
        ENGINE.store(TILE, memory, (0, 0), smem(), gmem_base=4096, **more)
    assert str(refusal.value) == said
    assert np.array_equal(memory, gmem())


@pytest.mark.parametrize("op", ["mul", 0, None, ["add"], 1.5])
def test_reductions_that_do_not_exist(op: object) -> None:
    with pytest.raises(InvalidValueError, match="must be one of add, min"):
        ENGINE.reduce(op, TILE, gmem(), (0, 0), smem(), gmem_base=4096)


@pytest.mark.parametrize(("offsets", "fits"), [((255, 255), True), ((256, 0), False), ((0, -1), False), ((1,), False)])
def test_im2col_offsets(offsets: tuple[int, ...], fits: bool) -> None:
    def load() -> None:
        ENGINE.load(COLUMN, gmem(), (0, 0, 3, 0), smem(), im2col_offsets=offsets, gmem_base=4096)

    if fits:
        load()
    else:
        with pytest.raises(InvalidValueError, match="im2col offsets"):
            load()


def test_unknown_bits_are_refused_but_not_those_of_a_known_quirk() -> None:
    window = smem()
    odd = bytearray(TILE)
    odd[8] |= 2  # bit 1 of word 1
    with pytest.raises(UnknownFactError, match="meaning is unknown"):
        ENGINE.load(bytes(odd), gmem(), (0, 0), window, gmem_base=4096)
    quirk, upper = bytearray(TILE), bytearray(TILE)
    quirk[10] |= 0x20  # bit 21 of word 1
    upper[64:] = b"\xff" * 64
    for data in (quirk, upper, TILE[:64]):
        ENGINE.load(bytes(data), gmem(), (0, 0), window, gmem_base=4096)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_a_descriptor_may_be_any_buffer(kind: Callable[[bytes], Any]) -> None:
    assert ENGINE.load(kind(TILE), gmem(), (0, 0), smem(), gmem_base=4096) == 128


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (TensorMapTiled(9, 4096, (40, 12), (), (16, 4)), "global_strides = (); must have 1 entries"),
        (TensorMapTiled(9, 4096, (40, 12), (96,), (16,)), "box_dim = (16,); must have 2 entries"),
        (TensorMapTiled(9, 4096, (40,) * 6, (96,) * 5, (16,) * 6), "rank = 6; must be 1 to 5"),
        (TensorMapTiled(9, 4096, (40, 12), (96,), (16, 4), (1, 0)), "must be 1 or more"),
        (TensorMapIm2col(9, 4096, (40, 12), (96,), (), (), 16, 4), "im2col with rank 2; must be 3 to 5"),
        (
            TensorMapTiled(9, 4096, (40, 12), (96,), (16, 4), None, 1),
            "a map with interleave has rank 2; must be 3 to 5",
        ),
        (TensorMapTiled(13, 4096, (40, 12), (96,), (24, 4)), "not a multiple of a group"),
    ],
)
def test_requests_that_make_no_sense(request_: Any, text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        ENGINE.load(request_, gmem(), (0, 0), smem(), gmem_base=4096)
    assert text in str(caught.value)


@pytest.mark.parametrize("address", [2**57 - 16, 2**63, 2**64 - 16])
def test_addresses_that_no_memory_has(address: int) -> None:
    tile = encode(TensorMapTiled(9, 4096, (40, 12), (96,), (16, 4)))
    odd = address.to_bytes(8, "little") + tile[8:]
    assert outcome(ENGINE.load, odd, gmem(), (0, 0), smem(), gmem_base=4096) == ADDRESS


def test_read_only_arrays() -> None:
    memory, window = gmem(), smem()
    memory.setflags(write=False)
    ENGINE.load(TILE, memory, (0, 0), window, gmem_base=4096)
    with pytest.raises(InvalidTypeError, match="writable"):
        ENGINE.store(TILE, memory, (0, 0), window, gmem_base=4096)
    held = GlobalMemory()
    held.add("A", memory, 4096)
    for coords in ((0, 0), (32, 10)):
        with pytest.raises(InvalidTypeError, match="range 'A' must be a writable array"):
            ENGINE.store(TILE, held, coords, window)
    window.setflags(write=False)
    ENGINE.store(TILE, gmem(), (0, 0), window, gmem_base=4096)
    with pytest.raises(InvalidTypeError, match="writable"):
        ENGINE.load(TILE, memory, (0, 0), window, gmem_base=4096)


@pytest.mark.parametrize("descriptor", (bytes(64), bytes(128)))
def test_a_map_of_zeros_traps(descriptor: bytes) -> None:
    # Measured on NVIDIA H200, driver 580.159.04: CUDA_ERROR_ILLEGAL_INSTRUCTION (715).
    assert outcome(ENGINE.load, descriptor, gmem(), (0,), smem()) == ILLEGAL
    assert outcome(ENGINE.store, descriptor, gmem(), (0,), smem()) == ILLEGAL
