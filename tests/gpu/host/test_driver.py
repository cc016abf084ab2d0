"""How the driver is asked, against a stand-in for cuda-python: arguments, refusals, words."""

from __future__ import annotations

import random
from collections import namedtuple
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from cute_py.diagnostics import Diagnostic, diagnostics_of
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.gpu import driver as module
from cute_py.gpu.driver import as_cuda_python, driver_encode, random_request, sweep
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE


class Word:
    """As cuda-python's: made of an integer of its width, turned back with int()."""

    def __init__(self, value: int, bits: int = 64) -> None:
        if not 0 <= value < 1 << bits:
            raise OverflowError("out of range")
        self.value = value

    def __int__(self) -> int:
        return self.value


def _enum(top: int) -> Any:
    return IntEnum("Closed", [(f"V{i}", i) for i in range(top + 1)])


Written = namedtuple("Written", "opaque")


def _words(raw: bytes) -> Written:
    return Written([Word(int.from_bytes(raw[i : i + 8], "little")) for i in range(0, 128, 8)])


class StandIn:
    """Names of cuda.bindings.driver; its encoders are ours, so that each argument must arrive in its place."""

    cuuint64_t = staticmethod(lambda value: Word(value, 64))
    cuuint32_t = staticmethod(lambda value: Word(value, 32))
    CUtensorMapDataType = staticmethod(_enum(15))
    CUtensorMapInterleave = staticmethod(_enum(2))
    CUtensorMapSwizzle = staticmethod(_enum(6))
    CUtensorMapL2promotion = staticmethod(_enum(3))
    CUtensorMapFloatOOBfill = staticmethod(_enum(1))
    CUtensorMapIm2ColWideMode = staticmethod(_enum(1))
    CUtensorMap = staticmethod(lambda: SimpleNamespace(opaque=None))

    def __init__(self, code: int | None = None, spoil: Callable[[bytes], bytes] = bytes) -> None:
        self.code, self.spoil = code, spoil

    def _written(self, request: TensorMap) -> tuple[int, Any]:
        if self.code is not None or violations(request):
            return (1 if self.code is None else self.code), None
        return 0, _words(self.spoil(encode(request)))

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> tuple[int, Any]:
        form, rank, address, dims, strides, box, steps, interleave, *end = arguments
        assert len(dims) == len(box) == len(steps) == rank
        assert strides, "cuda-python makes a null pointer of an empty list, which the driver refuses"
        assert len(strides) == max(rank - 1, 1)
        rows = [tuple(map(int, row)) for row in (dims, strides[: rank - 1], box, steps)]
        return self._written(TensorMapTiled(form, address, *rows, interleave, *end))

    def cuTensorMapEncodeIm2col(self, *arguments: Any) -> tuple[int, Any]:
        form, rank, address, dims, strides, lower, upper, channels, pixels, steps, interleave, *end = arguments
        assert len(dims) == rank == len(lower) + 2
        start = (form, address, tuple(map(int, dims)), tuple(map(int, strides)))
        return self._written(
            TensorMapIm2col(*start, lower, upper, channels, pixels, tuple(map(int, steps)), interleave, *end)
        )

    def cuTensorMapEncodeIm2colWide(self, *arguments: Any) -> tuple[int, Any]:
        form, _, address, dims, strides, lower, upper, channels, pixels, steps, interleave, mode, *end = arguments
        start = (form, address, tuple(map(int, dims)), tuple(map(int, strides)))
        return self._written(
            TensorMapIm2colWide(*start, lower, upper, channels, pixels, tuple(map(int, steps)), interleave, *end, mode)
        )


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StandIn]:
    def use(*arguments: Any, **named: Any) -> StandIn:
        api = StandIn(*arguments, **named)
        monkeypatch.setattr(module, "driver", lambda: api)
        device = SimpleNamespace(arch="sm_90a", current=nullcontext)
        monkeypatch.setattr(module, "open_device", lambda: device)
        return api

    return use


@pytest.mark.parametrize("request_", [TILED, IM2COL, WIDE, replace(WIDE, mode=1)], ids=lambda request: request.KIND)
def test_each_argument_arrives_in_its_place(stand_in: Any, request_: TensorMap) -> None:
    stand_in()
    assert driver_encode(request_) == encode(request_)


def test_random_requests_arrive(stand_in: Any) -> None:
    stand_in()
    got = sweep(300, seed=4)
    assert got and got.asked == 300
    assert min(got.same_bytes, got.both_refuse) > 30
    assert str(got).startswith("300 requests: ")


def test_a_sweep_can_fail(stand_in: Any) -> None:
    stand_in(spoil=lambda raw: b"\1" + raw[1:])
    got = sweep(20, seed=4)
    assert not got and got.disagreements
    assert "ours   : " in str(got)
    stand_in(code=1)
    assert not sweep(20, seed=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"box_dim": (65, 8)}, "cuTensorMapEncodeTiled refuses: CUDA_ERROR_INVALID_VALUE"),
        ({"box_dim": (64,)}, "the lengths of the request's tuples do not fit its rank"),
        ({"global_dim": (1 << 70, 1)}, "a value does not fit the driver's argument"),
        ({"swizzle": 9}, "a value does not fit the driver's argument"),
        ({"data_type": None}, "a value does not fit the driver's argument"),
    ],
)
def test_refusals_have_reasons(stand_in: Any, change: dict[str, Any], message: str) -> None:
    stand_in()
    with pytest.raises(TmaLimitError, match=message) as caught:
        driver_encode(replace(TILED, **change))
    assert caught.value.violations
    assert all(isinstance(found, Diagnostic) for found in caught.value.violations)


def test_a_refusal_that_no_rule_explains(stand_in: Any) -> None:
    stand_in(code=1)
    with pytest.raises(TmaLimitError) as caught:
        driver_encode(TILED)
    assert caught.value.facts == {"reasons": "the request breaks no rule that cute_py knows"}
    assert [found.rule for found in diagnostics_of(caught.value)] == ["driver refusal"]


def test_other_codes_are_errors_of_the_device(stand_in: Any) -> None:
    stand_in(code=201)
    with pytest.raises(DeviceError, match="cuTensorMapEncodeTiled: 201"):
        driver_encode(TILED)


def test_what_is_no_request(stand_in: Any) -> None:
    stand_in()
    with pytest.raises(InvalidTypeError, match="expected a tensor map request, got"):
        driver_encode(b"")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="count = 0; must be at least 1"):
        sweep(0)


def test_maps_travel_both_ways(stand_in: Any) -> None:
    stand_in()
    raw = encode(TILED)
    assert read_map(as_cuda_python(raw)) == raw
    assert read_map(as_cuda_python(raw[:64])) == raw[:64] + bytes(64)


def test_the_same_seed_gives_the_same_requests() -> None:
    first, second = ([random_request(random.Random(seed)) for seed in range(20)] for _ in range(2))
    assert first == second
