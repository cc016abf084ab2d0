"""Elements of 4 bits, either half of a byte first: on the host, and by the interpreter of the kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout
from cute_py.copies.plan import thread_launches
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.copies.interpreter import Bytes, Memory, run
from tests.copies.pairs import Pair, random_pair
from tests.shares import one_in

PLACES = 1 << 40, 1 << 44
ORDERS = ("low", "high")


def element(memory: Bytes, at: int, order: str) -> int:
    byte = int(memory[at // 2])
    return byte >> 4 if (at % 2 == 1) == (order == "low") else byte & 15


def with_element(memory: Bytes, at: int, order: str, value: int) -> None:
    upper = (at % 2 == 1) == (order == "low")
    byte = int(memory[at // 2])
    memory[at // 2] = byte & 0x0F | value << 4 if upper else byte & 0xF0 | value


def memories(pair: Pair, seed: int) -> tuple[Bytes, Bytes] | None:
    """Memory for both sides; None: a side goes below its offset 0."""
    first, second = (o // pair.element for o in pair.offsets())
    if min(int(first.min()), int(second.min())) < 0:
        return None
    made = [
        np.random.default_rng(seed + i).integers(0, 256, int(o.max()) // 2 + 1, dtype=np.uint8)
        for i, o in enumerate((first, second))
    ]
    return made[0], made[1]


@pytest.mark.parametrize("begin", one_in(3, range(0, 120, 20)))
def test_random_pairs_arrive(begin: int) -> None:
    for seed in range(begin, begin + 20):
        pair, dice = random_pair(seed), random.Random(seed)
        found = memories(pair, seed)
        if found is None:
            continue
        nibbles = dice.choice(ORDERS), dice.choice(ORDERS)
        source, before = found
        wanted = before.copy()
        first, second = (o // pair.element for o in pair.offsets())
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            with_element(wanted, b, nibbles[1], element(source, a, nibbles[0]))
        after = before.copy()
        result = cute.copy((source, pair.source), (after, pair.destination), dtype="uint4", nibbles=nibbles)
        assert np.array_equal(after, wanted), result.plan
        assert result.equal
        plan = cute.plan_copy(pair.source, pair.destination, "uint4", nibbles=nibbles, alignment=(1, 1))
        if plan.kernel in ("tile", "runs"):
            destination = Memory(PLACES[1], before.copy())
            for launch in thread_launches(plan):
                run(launch, Memory(PLACES[0], source), destination, PLACES)
            assert np.array_equal(destination.content, wanted), plan


def test_bytes_of_two_are_copied_as_bytes() -> None:
    source, destination = Layout((64, 128, 64), (64 * 128, 64, 1)), Layout((64, 128, 64), (64, 64 * 64, 1))
    whole = cute.plan_copy(source, destination, "float4_e2m1fn")
    assert (whole.bits, whole.bytes, whole.launches) == (8, 64 * 128 * 32, 1)
    assert cute.plan_copy(source, destination, "int4", nibbles=("low", "high")).bits == 4


def test_halves_of_a_byte_take_two_launches() -> None:
    odd = cute.plan_copy(Layout((7, 9), (9, 1)), Layout((7, 9)), "int4")
    even = cute.plan_copy(Layout((8, 9), (9, 1)), Layout((8, 9)), "int4")
    assert (odd.launches, even.launches) == (2, 1)


def test_what_is_refused() -> None:
    x = np.zeros(8, np.uint8)
    with pytest.raises(
        InvalidTypeError,
        match=r"dtype needs a pair \(memory, layout\), but the source is array\(\[0, 0, 0, 0, 0, 0, 0, 0\],",
    ):
        cute.copy(x, x.copy(), dtype="int4")
    with pytest.raises(
        InvalidValueError,
        match=r"has the offsets 0 to 16, but its memory at 0x[0-9a-f]+ has only 0 to 15, in elements of 4 bits",
    ):
        cute.copy((x, Layout(17)), (np.zeros(9, np.uint8), Layout(17)), dtype="int4")
    with pytest.raises(
        InvalidValueError, match="the memory of the source is 6 bytes; must be a multiple of 32 bits, one float32"
    ):
        cute.copy((x[:6], Layout(1)), (x[:6].copy(), Layout(1)), dtype="float32")
    for few in ((), ("low",), ("low", "low", "high")):
        with pytest.raises(InvalidValueError, match="must be a pair for "):
            cute.plan_copy(Layout(8), Layout(8), "int4", nibbles=few)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="an order of nibbles"):
        cute.plan_copy(Layout(4), Layout(4), "int4", nibbles=("low", "big"))
    with pytest.raises(InvalidValueError, match="6 bits per element"):
        cute.plan_copy(Layout(4), Layout(4), "float6_e2m3fn")
