"""cute.copy in host memory: every form against numpy, element by element; what is refused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.copies.modes import refine
from cute_py.errors import CuteError, DeviceError, InvalidTypeError, InvalidValueError, LayoutError
from tests.copies.pairs import DTYPES, random_pair
from tests.each import each_of
from tests.pace import within


@pytest.mark.parametrize("begin", range(5000, 5200, 20))
def test_random_pairs_are_copied(begin: int) -> None:
    for seed in range(begin, begin + 20):
        pair = random_pair(seed)
        first, second = (o // pair.element for o in pair.offsets())
        kind = f"V{pair.element}"
        lows = min(int(first.min()), 0), min(int(second.min()), 0)
        rng = np.random.default_rng(seed)
        a = np.frombuffer(rng.bytes((int(first.max()) - lows[0] + 1) * pair.element), kind)
        b = np.frombuffer(bytearray(rng.bytes((int(second.max()) - lows[1] + 1) * pair.element)), kind)
        want = b.copy()
        want[second - lows[1]] = a[first - lows[0]]
        dtype = DTYPES[pair.element]
        sides = [
            cute.make_tensor(cute.make_tensor(memory.view(dtype)).engine + -low, layout)
            for memory, low, layout in ((a, lows[0], pair.source), (b, lows[1], pair.destination))
        ]
        result = cute.copy(*sides)
        assert np.array_equal(b, want), pair
        assert result.equal
        assert result.difference is None
        assert result.bytes == pair.count * pair.element


@each_of("order", list(itertools.permutations(range(4))))
def test_arrays_correspond_by_index(order: tuple[int, ...]) -> None:
    x = np.arange(3 * 8 * 5 * 4, dtype=np.uint16).reshape(3, 8, 5, 4).transpose(order)
    y = np.zeros(x.shape, np.uint16)
    assert cute.copy(x[..., ::-1], y).equal
    assert np.array_equal(y, x[..., ::-1])


def test_shapes_that_differ_correspond_colexicographically() -> None:
    x = np.arange(60, dtype=np.float32)
    y = np.zeros(60, np.float32)
    source, destination = Layout((6, 10), (10, 1)), Layout((4, 15), (15, 1))
    result = cute.copy((x, source), (y, destination))
    assert result.plan.form == "general"
    assert [y[destination(i)] for i in range(60)] == [x[source(i)] for i in range(60)]


def test_large_transpositions_are_blocked() -> None:
    x = np.random.default_rng(0).integers(0, 2**16, (2300, 1500), np.uint16)
    y = np.zeros((1500, 2300), np.uint16)
    assert cute.copy(x.T, y).equal
    assert np.array_equal(y, x.T)


def test_the_emulator_runs_tensor_maps() -> None:
    x = np.random.default_rng(0).integers(0, 2**31, (96, 128), np.int32)
    y = np.zeros((96, 160), np.int32)
    assert cute.copy(x, y[:, 16:144], backend="emulator").equal
    assert not y[:, :16].any()
    assert not y[:, 144:].any()
    with pytest.raises(InvalidValueError, match="threads"):
        cute.copy(x[:, ::3], np.zeros((96, 43), np.int32), backend="emulator")


def test_a_difference_names_its_element() -> None:
    x, y = np.arange(6, dtype=np.uint8), np.zeros(6, np.uint8)
    result = cute.copy(x, (y, Layout((3, 2), (2, 1))))
    y[3] = 99
    assert not result.equal
    assert result.difference == "source at offset 4 has 04, destination at offset 3 63, coordinate (1, 1)"


X, Y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
FIXED = np.broadcast_to(Y[0], (12,))
REFUSED: list[tuple[str, Callable[[], Any], type[CuteError], str]] = [
    ("sizes", lambda: cute.copy(X, Y[:11]), InvalidValueError, "source has 12 elements and the destination 11"),
    ("overlap", lambda: cute.copy(X[:8], X[4:]), InvalidValueError, "overlap"),
    ("itself", lambda: cute.copy(X, (Y, Layout((3, 4), (0, 1)))), InvalidValueError, "overlaps itself"),
    ("read-only", lambda: cute.copy(X, FIXED), InvalidValueError, "read-only"),
    ("dtype", lambda: cute.copy(X, np.zeros(12)), InvalidValueError, "differs from destination dtype"),
    (
        "extent",
        lambda: cute.copy((X, Layout(12, 2)), Y),
        InvalidValueError,
        "layout has the offsets",
    ),
    ("negative", lambda: cute.copy((X, Layout(12, -1)), Y), InvalidValueError, "layout has the offsets"),
    ("sparse", lambda: cute.copy((np.zeros((4, 6))[:, ::2], Layout(12)), Y), InvalidValueError, "not dense"),
    ("no array", lambda: cute.copy(3, Y), InvalidTypeError, "int"),  # type: ignore[arg-type]
    ("no layout", lambda: cute.copy((X, "12:1"), Y), InvalidTypeError, "array, layout"),  # type: ignore[arg-type]
    ("backend", lambda: cute.copy(X, Y, backend="gpu"), CuteError, "backend"),
    ("report", lambda: cute.copy(X, Y, report=True), InvalidValueError, "report=True needs a GPU"),
    ("no GPU", lambda: cute.copy(X, Y, backend="cuda"), CuteError, ""),
    ("huge", lambda: cute.plan_copy(Layout(2**130), Layout(2**130), "u8"), InvalidValueError, "2**128"),
    ("far", lambda: cute.plan_copy(Layout(2, 2**61), Layout(2), "u8"), InvalidValueError, "2**60"),
    ("bits", lambda: cute.plan_copy(Layout(2), Layout(2), "float6_e2m3fn"), InvalidValueError, "6 bits"),
    ("alignment", lambda: cute.plan_copy(Layout(2), Layout(2), "u8", alignment=(3, 1)), InvalidValueError, "powers"),
    ("arch", lambda: cute.plan_copy(Layout(2), Layout(2), "u8", arch="H100"), InvalidValueError, "not a known arch"),
    (
        "no swizzle of a layout",
        lambda: cute.plan_copy(
            ComposedLayout(Layout(64), Int(0), ComposedLayout(Swizzle(2, 0, 3), Int(1), Layout(32))), Layout(32), "u8"
        ),
        CuteError,
        "",
    ),
]


def test_an_architecture_without_tensor_maps_copies_by_threads() -> None:
    sides = Layout((2048, 1024), (1024, 1)), Layout((2048, 1024), (1024, 1))
    turned = Layout((2048, 2048), (2048, 1)), Layout((2048, 2048))
    kernels = {
        arch: [cute.plan_copy(*s, "f32", arch=arch).kernel for s in (sides, turned)] for arch in ("sm_80", "sm_90")
    }
    assert kernels == {"sm_80": ["runs", "tile"], "sm_90": ["boxes", "boxes"]}


@pytest.mark.parametrize(("name", "call", "error", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(name: str, call: Callable[[], Any], error: type[CuteError], text: str) -> None:
    if name == "no GPU" and cute.tma.device_available():
        pytest.skip("there is one")
    before = Y.copy()
    with within(200), pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
    assert np.array_equal(Y, before)


def test_symbols_are_refused() -> None:
    import sympy

    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(InvalidTypeError, match="the source layout must consist of known integers, got n"):
        cute.plan_copy(Layout((n, 4)), Layout((n, 4)), "float32")


def test_several_rules_are_named_together() -> None:
    with pytest.raises(InvalidValueError) as caught:
        cute.copy(X, np.broadcast_to(np.zeros(1), (12,)))
    assert "float64" in str(caught.value)
    assert "read-only" in str(caught.value)


def test_a_composition_of_layouts_is_one() -> None:
    inner = ComposedLayout(Layout((8, 4), (4, 1)), Int(0), Layout(32))
    assert refine(inner, Layout(32)) == refine(Layout((8, 4), (4, 1)), Layout(32))
    with pytest.raises((LayoutError, CuteError)):
        refine(ComposedLayout(Swizzle(1, 0, 1), Int(0), ComposedLayout(Swizzle(1, 1, 1), Int(0), Layout(8))), Layout(8))


def test_sectors_are_those_of_every_offset() -> None:
    """Rows that begin within a sector, neighbours that share one, steps backwards, elements of 4 bits: by listing."""
    dice = random.Random(3)
    for _ in range(150):
        kind, bits = dice.choice([("int4", 4), ("uint8", 8), ("int16", 16), ("int32", 32), ("complex128", 128)])
        shape = [dice.choice((2, 3, 5, 8, 9, 16, 33)) for _ in range(dice.randint(1, 3))]

        def strides(shape: list[int] = shape) -> list[int]:
            found, step = [0] * len(shape), 1
            for m in dice.sample(range(len(shape)), len(shape)):
                found[m] = step * dice.choice((1, 1, 1, -1))
                step = step * shape[m] + dice.choice((0, 0, 1, 5, 16, 64))
            return found

        sides = strides(), strides()
        plan = cute.plan_copy(*(Layout(tuple(shape), tuple(side)) for side in sides), kind)
        for side, sectors in zip(sides, plan.sectors, strict=True):
            offsets = np.zeros(1, np.int64)
            for size, step in zip(shape, side, strict=True):
                offsets = (offsets[:, None] + np.arange(size) * step).ravel()
            assert sectors == len(np.unique(offsets * bits // 256)), (shape, side, kind)


def test_plans_tell_what_they_cost() -> None:
    plan = cute.plan_copy(Layout((65536, 4), (4, 1)), Layout((65536, 4)), "float16")
    assert (plan.form, plan.kernel, plan.launches) == ("affine", "tile", 1)
    assert plan.sectors == (16384, 16384)
    assert plan.wavefronts > 0
    assert 0.5 < plan.expected <= 1
    told = str(cute.explain(plan))
    assert "16384 read, 16384 written" in told
    picture = str(cute.draw.draw(cute.plan_copy(Layout((256, 260), (260, 1)), Layout((256, 260)), "float32")))
    assert "source order" in picture
    assert "destination order" in picture


def test_the_howto_shows_what_is_drawn() -> None:
    """Where this fails after a change that was meant, save it again: draw(plan).save(path)."""
    plan = cute.plan_copy(Layout((256, 260), (260, 1)), Layout((256, 260)), "float32")
    path = Path(__file__).resolve().parents[2] / "docs/howto/pictures/copy.svg"
    assert path.read_text(encoding="utf-8") == cute.draw.draw(plan).svg + "\n"


@pytest.mark.parametrize("name", ["BSHD->BHSD", "NCHW->NHWC"])
def test_tensor_maps_serve_what_they_can(name: str) -> None:
    rows = {
        "BSHD->BHSD": (Layout((2, 4, 32, 128), (16384, 128, 512, 1)), Layout((2, 4, 32, 128), (16384, 4096, 128, 1))),
        "NCHW->NHWC": (Layout((9, 512, 512), (2**18, 1, 512)), Layout((9, 512, 512), (2**18, 512, 1))),
    }
    plan = cute.plan_copy(*rows[name], "bfloat16")
    assert (plan.kernel, plan.launches) == ("boxes", 1)


class _OfAnotherLibrary:
    """An array in host memory that numpy does not own."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


def test_a_gpu_copy_moves_only_arrays_of_numpy_to_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of another library is on the device that its user chose: it is refused before anything is moved."""
    monkeypatch.setattr("cute_py.gpu.device.open_device", lambda ordinal: object())
    x = _OfAnotherLibrary(np.zeros((3, 4), np.float32))
    with pytest.raises(DeviceError, match="the source is in host memory"):
        cute.copy(x, np.zeros((3, 4), np.float32), backend="cuda")
