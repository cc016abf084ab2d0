"""Results of copies between layouts: what differs, what the emulator runs, what is warned about, operands, refusals."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.copies.layout_copy import LayoutCopyResult
from cute_py.copies.modes import side_offsets
from cute_py.copies.operands import paired, side
from cute_py.errors import CuteError, DeviceError, InvalidTypeError, InvalidValueError
from cute_py.layout.offsets import offsets


def on_a_boundary(size: int, shift: int = 0) -> np.ndarray:
    """Zero bytes whose address is a multiple of 256, and `shift`."""
    memory = np.zeros(size + 512, np.uint8)
    start = -int(memory.__array_interface__["data"][0]) % 256 + shift
    return memory[start : start + size]


def random_bytes(size: int, shift: int = 0) -> np.ndarray:
    made = on_a_boundary(size, shift)
    made[:] = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    return made


# ---- results


def test_a_result_names_what_was_copied() -> None:
    x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    result = cute.copy(x, (y, Layout((3, 4), (4, 1))))
    assert isinstance(result, LayoutCopyResult)
    assert (result.bytes, result.backend, result.report, result.equal, result.difference) == (
        48,
        "host",
        None,
        True,
        None,
    )
    assert result.destination[1] == Layout((3, 4), (4, 1))
    assert result.seconds >= 0
    assert result.plan.source == Layout((12,), (1,)) and result.plan.kernel == "runs"
    assert repr(result).startswith("LayoutCopyResult(destination=(array(") and "backend='host', plan=" in repr(result)
    nothing = cute.copy(np.zeros(0, np.uint8), np.zeros(0, np.uint8))
    assert (nothing.bytes, nothing.seconds, nothing.equal, nothing.backend) == (0, 0.0, True, "host")


@pytest.mark.parametrize("seed", range(30))
def test_the_first_difference_in_order_of_the_copy_is_named(seed: int) -> None:
    dice = random.Random(seed)
    shape = dice.choice(((6, 4), (5, 3), (2, 3, 4)))
    strides = [1] * len(shape)
    step = 1
    for m in dice.sample(range(len(shape)), len(shape)):
        strides[m], step = step, step * shape[m]
    kind = dice.choice((np.uint8, np.uint16, np.float64))
    x = np.arange(1, step + 1).astype(kind)
    y = np.zeros(step, kind)
    layout = Layout(shape, tuple(strides))
    result = cute.copy(x, (y, layout))
    places = offsets(layout, np.arange(step)).tolist()
    wrong = sorted(dice.sample(range(step), 2), key=lambda i: places[i])
    for i in wrong:
        y[places[i]] += 1
    told = result.difference
    refinement = result._pairing.refinement
    assert told is not None and refinement is not None and not result.equal
    first = min(wrong, key=lambda i: side_offsets(refinement, 1).tolist().index(places[i]))
    coordinate = cute.idx2crd(first, layout.shape)
    assert told == (
        f"source at offset {first} has {x[first].tobytes().hex()}, destination at offset {places[first]} "
        f"{y[places[first]].tobytes().hex()}, coordinate {coordinate}"
    )


@pytest.mark.parametrize("nibbles", [("low", "low"), ("low", "high"), ("high", "low"), ("high", "high")])
def test_differences_of_four_bits(nibbles: tuple[str, str]) -> None:
    x, y = np.arange(1, 9, dtype=np.uint8), np.zeros(8, np.uint8)
    sides = (x, Layout(15)), (y, Layout((3, 5), (5, 1)))
    result = cute.copy(*sides, dtype="int4", nibbles=nibbles)
    assert result.equal and result.bytes == 8

    def nibble(memory: np.ndarray, at: int, order: str) -> int:
        return int(memory[at // 2]) >> 4 * ((at % 2) ^ (order == "high")) & 15

    for i in range(15):
        place = i % 3 * 5 + i // 3
        assert nibble(y, place, nibbles[1]) == nibble(x, i, nibbles[0])
    result = cute.copy(*sides, dtype="int4", nibbles=nibbles)
    y[3] ^= 0xFF
    told = result.difference
    assert told is not None and "destination at offset" in told
    at = int(told.split("destination at offset ")[1].split()[0])
    assert at in (6, 7)
    assert told.endswith(f"{nibble(y, at, nibbles[1]):02x}, coordinate ({at // 5}, {at % 5})")


def test_a_large_difference_has_no_coordinate() -> None:
    size = (1 << 22) + 8
    x, y = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    result = cute.copy(x, y)
    y[size - 3] = 5
    assert result.difference == f"source at offset {size - 3} has 00, destination at offset {size - 3} 05"
    small, there = np.zeros(1 << 22, np.uint8), np.zeros(1 << 22, np.uint8)
    result = cute.copy(small, there)
    there[9] = 1
    assert result.difference is not None and result.difference.endswith("01, coordinate (9,)")


# ---- the emulator


@pytest.mark.parametrize(("size", "form"), [(16, 1), (512, 1), (1000, 1), (513, 1), (100_000, 1), (511, 1), (48, 1)])
def test_contiguous_runs_by_tensor_maps_with_their_tails(size: int, form: int) -> None:
    x, y = random_bytes(size), on_a_boundary(size + 32)
    y[:] = 0x55
    result = cute.copy(x, y[:size], backend="emulator")
    assert result.equal and result.backend == "emulator" and result.bytes == size
    assert np.array_equal(y[:size], x) and (y[size:] == 0x55).all()


@pytest.mark.parametrize(
    ("shape", "pitches", "starts"),
    [((7, 64), (80, 64), (0, 0)), ((30, 1024), (1024, 1040), (16, 32)), ((3, 5, 48), (48, 64), (0, 0))],
)
def test_rows_by_tensor_maps(shape: tuple[int, ...], pitches: tuple[int, int], starts: tuple[int, int]) -> None:
    sides = []
    for pitch, start in zip(pitches, starts, strict=True):
        rows = int(np.prod(shape[:-1]))
        memory = random_bytes(rows * pitch + 64)
        sides.append(memory[start : start + rows * pitch].reshape(*shape[:-1], pitch)[..., : shape[-1]])
    x, y = sides
    assert cute.copy(x, y, backend="emulator").equal
    assert np.array_equal(x, y)


def test_a_copy_of_one_element_by_the_emulator_is_made_by_threads() -> None:
    x, y = on_a_boundary(8).view(np.float64), on_a_boundary(8).view(np.float64)
    with pytest.raises(InvalidValueError) as caught:
        cute.copy(x, y, backend="emulator")
    assert (
        caught.value.headline
        == "backend 'emulator' runs only tensor maps, but a part of this copy needs threads (edges)"
    )


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ((random_bytes(4096)[1:4000], on_a_boundary(3999)), "a part of this copy needs threads (realigned)"),
        (
            (random_bytes(64 * 64).reshape(64, 64).T, on_a_boundary(64 * 64).reshape(64, 64)),
            "a part of this copy needs threads (transposed)",
        ),
        (
            (random_bytes(65 * 63).reshape(65, 63).T, on_a_boundary(63 * 65).reshape(63, 65)),
            "this copy needs threads (runs)",
        ),
        (
            ((random_bytes(60), Layout((6, 10), (10, 1))), (on_a_boundary(60), Layout((4, 15), (15, 1)))),
            "this copy needs threads (runs)",
        ),
    ],
)
def test_copies_that_the_emulator_does_not_run(arrays: Any, text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        cute.copy(*arrays, backend="emulator")
    assert caught.value.headline.endswith(text)


# ---- operands


def test_sides_of_operands() -> None:
    x = random_bytes(960).view(np.float32).reshape(12, 20)
    at = int(x.__array_interface__["data"][0])
    plain = side(x[2:, ::2], "source")
    assert (plain.view.address, plain.layout, plain.room, plain.role) == (
        at + 160,
        Layout((10, 10), (20, 2)),
        None,
        "source",
    )
    pair = side((x, Layout((3, 4))), "source")
    assert (pair.view.address, pair.layout, pair.room) == (at, Layout((3, 4)), (0, 240))
    turned = side((x.T, Layout(240)), "source")  # dense in another order
    assert turned.room == (0, 240)
    counted = side((x, Layout(8)), "source", "int16")
    assert (str(counted.view.dtype), counted.room) == ("int16", (0, 480))
    nibbles = side((x, Layout(8)), "source", "int4")
    assert nibbles.room == (0, 1920)
    tensor = cute.make_tensor(cute.make_tensor(x.reshape(-1)).engine + 6, Layout(4))
    found = side(tensor, "source")
    assert (found.view.address, found.layout, found.room) == (at + 24, Layout(4), (-6, 234))
    assert [side(random_bytes(64, shift)[:32], "s").alignment for shift in (0, 1, 2, 4, 8, 12, 16)] == [
        16,
        1,
        2,
        4,
        8,
        4,
        16,
    ]


def refusals() -> dict[str, tuple[Callable[[], Any], type[CuteError], str]]:
    x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    memory = np.arange(24, dtype=np.float32)
    fixed = np.zeros(12)
    fixed.flags.writeable = False
    gaps = np.zeros((4, 6), np.float32)[:, ::2]
    value, kind = InvalidValueError, InvalidTypeError
    at = int(x.__array_interface__["data"][0])
    twelve = f"its memory at {at:#x} has only 0 to 11, in elements of 4 bytes"
    return {
        "dtype of an array": (
            lambda: cute.copy(x, y, dtype="int8"),
            kind,
            f"dtype needs a pair (memory, layout), but the source is {x!r}".replace("\n", " "),
        ),
        "triple": (
            lambda: cute.copy((x, Layout(12), 1), y),
            kind,
            "the source is a tuple; must be (array, layout), got",
        ),
        "no layout": (lambda: cute.copy((x, 12), y), kind, "the source is a tuple; must be (array, layout), got"),
        "gaps": (lambda: cute.copy((gaps, Layout(12)), y), value, "the memory of the source is not dense"),
        "part of an element": (
            lambda: cute.copy((np.zeros(6, np.uint8), Layout(1)), (np.zeros(8, np.uint8), Layout(1)), dtype="int32"),
            value,
            "the memory of the source is 6 bytes; must be a multiple of 32 bits, one int32",
        ),
        "reach": (
            lambda: cute.copy((x, Layout(12, 2)), y),
            value,
            f"the source layout has the offsets 0 to 22, but {twelve}",
        ),
        "reach below": (
            lambda: cute.copy((x, Layout(12, -1)), y),
            value,
            f"the source layout has the offsets -11 to 0, but {twelve}",
        ),
        "one too many": (
            lambda: cute.copy((x, Layout((2, 6), (7, 1))), y),
            value,
            f"the source layout has the offsets 0 to 12, but {twelve}",
        ),
        "overlap": (
            lambda: cute.copy(memory[:12], memory[11:23]),
            value,
            "the source and the destination overlap, but a copy has no defined order of elements",
        ),
        "overlap from below": (
            lambda: cute.copy(memory[11:23], memory[:12]),
            value,
            "the source and the destination overlap, but a copy has no defined order of elements",
        ),
        "backend": (
            lambda: cute.copy(x, y, backend="gpu"),
            value,
            "backend = 'gpu'; must be one of 'auto', 'host', 'emulator', 'cuda', 'both'",
        ),
        "backend type": (lambda: cute.copy(x, y, backend=1), kind, "backend must be a str, got int 1"),
        "report type": (lambda: cute.copy(x, y, report=1), kind, "report must be a bool, got int 1"),
        "report of the host": (
            lambda: cute.copy(x, y, report=True),
            value,
            "report=True needs a GPU, but the backend is 'host'",
        ),
        "report of the emulator": (
            lambda: cute.copy(x, y, report=True, backend="emulator"),
            value,
            "report=True needs a GPU, but the backend is 'emulator'",
        ),
        "report of a format": (
            lambda: cute.copy(x.reshape(1, 12), cute.formats.mxfp8(), report=True),
            value,
            "report and dtype apply to a copy between layouts, not to one with a format",
        ),
        "dtype of a format": (
            lambda: cute.copy(x.reshape(1, 12), cute.formats.mxfp8(), dtype="int8"),
            value,
            "report and dtype apply to a copy between layouts, not to one with a format",
        ),
        "emulated format": (
            lambda: cute.copy(x.reshape(1, 12), cute.formats.mxfp8(), backend="emulator"),
            value,
            "backend = 'emulator'; must be 'auto', 'host' or 'cuda' for a copy with a format, an index or a cast",
        ),
        "format of both": (
            lambda: cute.copy(x.reshape(1, 12), cute.formats.mxfp8(), backend="both"),
            value,
            "backend = 'both'; must be 'auto', 'host' or 'cuda' for a copy with a format, an index or a cast",
        ),
        "stream of a format": (
            lambda: cute.copy(x.reshape(1, 12), cute.formats.mxfp8(), stream=3),
            value,
            "stream applies to a copy on a device, but this copy runs on the host",
        ),
    }


@pytest.mark.parametrize("name", refusals())
def test_refused_in_words(name: str) -> None:
    call, error, text = refusals()[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert caught.value.headline.startswith(text)


def test_all_that_is_wrong_with_memory_is_listed() -> None:
    memory = np.arange(24, dtype=np.float32)
    with pytest.raises(InvalidValueError) as caught:
        cute.copy((memory[:12], Layout(13)), (memory[6:18], Layout(13)))
    assert [one.rule for one in caught.value.diagnostics] == ["extent", "extent", "overlap"]
    at = int(memory.__array_interface__["data"][0])
    assert caught.value.diagnostics[2].facts == {
        "source": f"{at:#x} to {at + 52:#x}",
        "destination": f"{at + 24:#x} to {at + 76:#x}",
    }


def test_neighbours_in_memory_do_not_overlap() -> None:
    memory = np.arange(24, dtype=np.float32)
    assert cute.copy(memory[:12], memory[12:]).equal
    assert cute.copy(memory[12:], memory[:12]).equal
    pairing = paired(side(memory[:12], "source"), side(memory[12:], "destination"))
    assert pairing.bytes == 48


def test_layouts_of_four_bits_stay_in_their_memory() -> None:
    memory, there = np.zeros(4, np.uint8), np.zeros(4, np.uint8)
    assert cute.copy((memory, Layout(8)), (there, Layout(8)), dtype="int4").equal
    with pytest.raises(InvalidValueError) as caught:
        cute.copy((memory, Layout((2, 4), (1, 3))), (there, Layout(8)), dtype="int4")
    assert "has the offsets 0 to 10, " in caught.value.headline
    assert caught.value.headline.endswith("has only 0 to 7, in elements of 4 bits")
    with pytest.raises(InvalidValueError, match="has the offsets 0 to 9, "):
        cute.copy((memory, Layout(10)), (there, Layout(10)), dtype="int4")


# ---- warnings


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            ((3, 4), (4, 3)),
            r"copies an array of \(3, 4\) to one of \(4, 3\) in colexicographic order \(first mode fastest\)",
        ),
        (((12,), (3, 4)), r"copies an array of \(12,\) to one of \(3, 4\)"),
        (((3, 1, 4), (3, 4)), None),
        (((1, 12), (12, 1)), None),
    ],
)
def test_arrays_of_other_shapes_are_warned_about(shapes: Any, text: str | None) -> None:
    x, y = (np.zeros(shape, np.int16) for shape in shapes)
    x[...] = np.arange(12).reshape(x.shape)
    if text is None:
        cute.copy(x, y)
        assert np.array_equal(y.ravel(), x.ravel())
        return
    with pytest.warns(UserWarning, match=text):
        cute.copy(x, y)
    assert np.array_equal(y.ravel(order="F"), x.ravel(order="F"))


def test_a_layout_on_one_side_says_what_is_meant() -> None:
    x, y = np.zeros((3, 4), np.int16), np.zeros(12, np.int16)
    cute.copy(x, (y, Layout((4, 3))))  # a warning is an error here
    cute.copy(cute.make_tensor(x), y)


# ---- forms of host copies


@pytest.mark.parametrize("kind", ["uint8"])
def test_blocks_of_large_transpositions(kind: str) -> None:
    """Lines that are walked across, in blocks; more modes outside; ends that are no whole block."""
    dtype = np.dtype(kind)
    values = np.random.default_rng(1).integers(0, 256, 2 * 1100 * 1030 * dtype.itemsize, np.uint8).view(np.uint8)
    x = values.view(f"V{dtype.itemsize}").reshape(2, 1100, 1030)
    y = np.zeros((2, 1030, 1100), x.dtype)
    source = Layout((1030, 1100, 2), (1, 1030, 1100 * 1030))
    target = Layout((1030, 1100, 2), (1100, 1, 1100 * 1030))
    views = x.reshape(-1).view(kind), y.reshape(-1).view(kind)
    with np.errstate(all="ignore"):
        assert cute.copy((views[0], source), (views[1], target)).equal
    assert y.tobytes() == x.transpose(0, 2, 1).tobytes()


def test_a_broadcast_source_is_read_again_and_again() -> None:
    x, y = np.arange(1100, dtype=np.int32), np.zeros((1100, 1200), np.int32)
    assert cute.copy((x, Layout((1200, 1100), (0, 1))), (y, Layout((1200, 1100), (1, 1200)))).equal
    assert (y == x[:, None]).all()


def test_swizzled_copies_of_more_elements_than_are_listed_at_once() -> None:
    swizzled = ComposedLayout(Swizzle(3, 3, 3), Int(0), Layout((1 << 10, 1 << 9)))
    x = np.random.default_rng(2).integers(0, 1 << 16, 1 << 19, np.uint16)
    y = np.zeros(1 << 19, np.uint16)
    assert cute.copy((x, swizzled), (y, Layout((1 << 10, 1 << 9)))).equal
    at = np.arange(1 << 19)
    assert np.array_equal(y, x[at ^ (at >> 3 & 7 << 3)])
    z = np.zeros(1 << 18, np.uint8)
    assert cute.copy(
        (y.view(np.uint8)[: 1 << 18], Layout(1 << 19)), (z, Layout((2, 1 << 18), (1 << 18, 1))), dtype="int4"
    ).equal
    first = y.view(np.uint8)[: 1 << 18]
    nibbles = np.stack([first & 15, first >> 4], axis=1).reshape(-1)
    want = nibbles.reshape(-1, 2).T.reshape(-1)
    assert np.array_equal(np.stack([z & 15, z >> 4], axis=1).reshape(-1), want)


def test_a_device_that_is_not_there() -> None:
    if cute.tma.device_available():
        pytest.skip("there is one")
    x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
    for backend in ("cuda", "both"):
        with pytest.raises((DeviceError, CuteError)):
            cute.copy(x, y, backend=backend)
