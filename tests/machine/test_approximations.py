"""Approximate functions beside an H200: the machine rounds correctly, and its results differ by a few units at most."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from tests.each import each_of
from tests.oracle.record.approximations import COUNT, FUNCTIONS, operands, program

RECORDED = np.load(Path(__file__).parents[1] / "oracle" / "data" / "h200_approximations.npz")
EVERY = 32
"""The data keeps the results of every 32nd operand."""

MOST = {"div": 2, "ex2": 2, "rcp": 1, "rsqrt": 1, "sqrt": 1, "tanh.approx.f16": 1, "tanh.approx.bf16": 1}
"""Function -> units in the last place, as measured on all 65,536 operands; the ISA permits as many or more."""

FORMS = {"f32": (32, 0x7F800000), "f16": (16, 0x7C00), "bf16": (16, 0x7F80)}


def results(function: str) -> tuple[np.ndarray, np.ndarray]:
    """(of the machine, of the device), as bits."""
    words = np.concatenate([x[::EVERY] for x in operands(function)])
    out = np.zeros(COUNT // EVERY, np.uint64)
    text = program(function, COUNT // EVERY)
    run = cute.run_ptx(text, grid=len(out) // 256, block=256, args=(words, out), schedule="eager")
    assert run.ok and run.approximate
    return out.astype(RECORDED[function].dtype), RECORDED[function]


def ordered(bits: np.ndarray, width: int) -> np.ndarray:
    """Floats in their order, as integers."""
    wide = bits.astype(np.int64)
    return np.where(wide >> width - 1 != 0, (1 << width - 1) - wide, wide)


def bound(function: str) -> int | None:
    return next((most for name, most in MOST.items() if function.startswith(name)), None)


@each_of("function", [name for name in FUNCTIONS if bound(name) and not name.endswith("f64")])
def test_results_lie_within_the_bound(function: str) -> None:
    found, device = results(function)
    width, infinite = FORMS[function.rsplit(".", 1)[1].removesuffix("x2")]
    if function.endswith("x2"):
        found, device = (np.ascontiguousarray(x).view(np.uint16) for x in (found, device))
    missing = (device & (1 << width - 1) - 1) > infinite
    assert (((found & (1 << width - 1) - 1) > infinite) == missing).all()
    apart = np.abs(ordered(found, width) - ordered(device, width))[~missing]
    assert apart.max() <= (bound(function) or 0)


@pytest.mark.parametrize("function", ["sin.approx.f32", "cos.approx.f32", "lg2.approx.f32", "tanh.approx.f32"])
def test_results_lie_within_the_absolute_error_of_the_isa(function: str) -> None:
    """sin and cos within 2**-20.5 in [-pi, pi], lg2 within 2**-22 in [0.5, 2], tanh within 2**-10.987 of its value."""
    rows = [*results(function), operands(function)[0][::EVERY].astype(np.uint32)]
    with np.errstate(invalid="ignore"):
        found, device, x = (row.view(np.float32).astype(np.float64) for row in rows)
        inside = {"lg2": (x >= 0.5) & (x <= 2), "tan": np.isfinite(x)}.get(function[:3], np.abs(x) <= np.pi)
        error = {"lg2": 2**-22, "tan": 2**-10.987 * np.abs(found)}.get(function[:3], 2**-20.5)
        apart = np.abs(found - device)
    assert inside.sum() > 5
    assert (apart <= error)[inside].all()
