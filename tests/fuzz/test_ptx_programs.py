"""Mutated PTX: whatever a text says, the answer is a run or a typed error, soon.

    python -m tests.fuzz.test_ptx_programs COUNT [SEED [SECONDS]]

runs so many mutants, or as many as SECONDS allow, and prints how they ended and how long the slowest took.
"""

from __future__ import annotations

import random
import re
import sys
import time

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import CuteError
from tests.calls.objects import KERNEL_TEXT
from tests.oracle.records import rows

TOKEN = re.compile(r"\s+|[\w.%$:]+|.", re.DOTALL)
WORDS = (
    "%r1", "%rd1", "%p1", "add", ".s32", ".f32", "ld", ".global", ".shared", "0", "-1", "{", "}", "[", "]", ";", ",",
    ".reg", ".b64", "4294967296", "%f99", "bra", "@%p1", "!", "|", ".param", "(", ")", "1e999", "0f7fc00000", ".loc",
    ".section", ":", "call", "ret", "cvt", ".u8", '"', "/*", "//", "<9999999>", ".v4", "_", "%tid.x", "mbarrier",
    "wgmma", "cp.async", "bar.sync",
)  # fmt: skip
TEXTS = [KERNEL_TEXT, *(row["ptx"] for row in rows("triton_kernels") if row["name"] in ("vadd", "gather", "tma_copy"))]


def mutant(dice: random.Random) -> str:
    parts = TOKEN.findall(dice.choice(TEXTS))
    for _ in range(dice.choice((1, 1, 2, 4))):
        i, kind = dice.randrange(len(parts)), dice.randrange(5)
        if kind == 0:
            parts[i] = dice.choice(WORDS)
        elif kind == 1:
            del parts[i]
        elif kind == 2:
            parts.insert(i, dice.choice(WORDS))
        elif kind == 3:
            j = dice.randrange(len(parts))
            parts[i], parts[j] = parts[j], parts[i]
        else:
            parts[i] = parts[i][: len(parts[i]) // 2]
    return "".join(parts) + "\n"


def outcome(text: str, dice: random.Random) -> str:
    """'ran' or 'refused'; what is no error of this package is raised."""
    parameters = text.count(".param .") if "tma_copy" not in text else 12
    args = [np.zeros(256, np.uint32) if i < 3 else 0 for i in range(min(parameters, 5))]
    try:
        cute.run_ptx(text, args=args, dynamic_shared=8200, limit=100_000, schedule=dice.choice(("eager", "lazy", 3)))
    except CuteError:
        return "refused"
    return "ran"


def outcomes(seed: int, count: int) -> dict[str, int]:
    """How often a mutant ran, and how often it was refused."""
    dice, found = random.Random(seed), {"ran": 0, "refused": 0}
    for _ in range(count):
        found[outcome(mutant(dice), dice)] += 1
    return found


@pytest.mark.parametrize("count", [200, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants_run_or_are_refused(count: int) -> None:
    found = outcomes(1, count)
    assert found["ran"] > 0.04 * count
    assert found["refused"] > 0.04 * count


@pytest.mark.slow
def test_many_mutants_run_or_are_refused() -> None:
    assert sum(outcomes(2, 20_000).values()) == 20_000


def main(words: list[str]) -> None:
    count, seed, seconds = (int(word) for word in (*words, *("20000", "2", "540")[len(words) :]))
    dice, found, slowest = random.Random(seed), {"ran": 0, "refused": 0}, (0.0, "")
    end = time.monotonic() + seconds
    while sum(found.values()) < count and time.monotonic() < end:
        text = mutant(dice)
        start = time.process_time()
        found[outcome(text, dice)] += 1
        slowest = max(slowest, (time.process_time() - start, text))
    print(f"{found}, the slowest took {slowest[0]:.2f} s of the processor")
    if slowest[0] > 5:
        print(slowest[1])


if __name__ == "__main__":
    main(sys.argv[1:])
