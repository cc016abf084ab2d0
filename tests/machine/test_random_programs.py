"""Random programs of twelve families, bit for bit what an H200 left of them: CRC-32 digests of every step."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from tests.machine.random_programs import FAMILIES, PROGRAMS_A_SEED, STEPS, THREADS, inputs, module

DIGESTS = np.load(Path(__file__).parents[1] / "oracle" / "data" / "h200_random_programs.npz")

FOLDED = {("conversion", 145)}
"""Programs in which the compiler of the device combines two instructions into one with another result: cvt.sat.u32.u64
of a number that cvt.rpi.sat.u64.f32 made. Of 120,000 programs 52 differed (docs/measurements/machine.md)."""

FEW = {"barriers": 3}
"""Family -> programs in the default tests, where not 8."""


def wrong(family: str, number: int) -> list[int]:
    """The steps of a program whose words differ from those of the device."""
    seed, place = divmod(number, PROGRAMS_A_SEED)
    words, out = inputs(seed), np.zeros((STEPS, THREADS), np.uint64)
    run = cute.run_ptx(
        module(family, seed, 1, place), grid=1, block=THREADS, args=(words, out), schedule="eager", judge=False
    )
    assert run.ok, run.explain()
    found = [zlib.crc32(out[step].tobytes()) for step in range(STEPS)]
    return [step for step in range(STEPS) if found[step] != DIGESTS[family][number][step]]


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_few_programs_leave_the_words_of_the_device(family: str) -> None:
    for number in range(FEW.get(family, 3)):
        assert wrong(family, number) == [], number


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_programs_leave_the_words_of_the_device(family: str) -> None:
    count = 60 if family in FEW else len(DIGESTS[family])
    different = {number for number in range(count) if wrong(family, number)}
    assert {(family, number) for number in different} == {one for one in FOLDED if one[0] == family}


def test_a_wrong_word_is_seen() -> None:
    words, out = inputs(0) ^ np.uint64(1 << 33), np.zeros((STEPS, THREADS), np.uint64)
    assert cute.run_ptx(module("integer", 0, 1, 0), grid=1, block=THREADS, args=(words, out), schedule="eager").ok
    assert [zlib.crc32(row.tobytes()) for row in out] != list(DIGESTS["integer"][0])
