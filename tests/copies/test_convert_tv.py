"""Conversions between thread-value layouts: random pairs run on emulated warps, their texts compiled, their costs."""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest
import sympy

import cute_py as cute
from benchmarks.silicon.conversions import random_pairs
from cute_py import ComposedLayout, Int, Layout, Swizzle, static
from cute_py.copies.registers.convert_tv import RegisterConversion
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.ptx.module import assemble_module, find_ptxas, ptx_module
from tests.each import each_of

EXCHANGE = Layout(((2, 16), 2), ((1, 4), 2)), Layout(((2, 16), 2), ((2, 4), 1))
"""Neighbouring lanes exchange one of their two values."""


def expect_moved(found: RegisterConversion, seed: int = 0) -> None:
    """Run it on random bytes, and compare every bit with what the layouts say."""
    first, second = (
        np.asarray(cute.offsets(x)).reshape(found.threads, -1, order="F") for x in (found.source, found.destination)
    )
    kind = as_dtype(found.dtype).numpy
    content = np.random.default_rng(seed).integers(0, 256, (int(first.max()) + 1) * kind.itemsize, dtype=np.uint8)
    values = content.view(kind)
    assert found.run(values[first]).tobytes() == values[second].tobytes(), str(found)


@pytest.mark.parametrize("pairs", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_pairs(pairs: int) -> None:
    counts: Counter[str] = Counter()
    for number, (source, destination, dtype) in enumerate(random_pairs(pairs, 77)):
        found = cute.convert_layout_tv(source, destination, dtype)
        expect_moved(found, number)
        counts[found.by] += 1
    assert min(counts["moves"], counts["shuffles"], counts["shared memory"]) >= 0.03 * pairs, counts


@pytest.mark.parametrize("pairs", [4, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("by", ["shuffles", "shared memory"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_either_way_gives_the_same(by: str, dtype: str, pairs: int) -> None:
    dice = random.Random(by + dtype)
    for number in range(pairs):
        bits = dice.choice((1, 2, 3, 4))
        source, destination = (_within_warps(dice, bits, number % 3) for _ in range(2))
        found = cute.convert_layout_tv(source, destination, dtype, by=by)
        assert found.by == by or found.by == "moves"
        expect_moved(found, number)


def _within_warps(dice: random.Random, bits: int, warp_bits: int) -> Layout:
    """A thread-value layout whose warps keep their elements."""
    places = list(range(5 + bits))
    dice.shuffle(places)
    steps = [1 << p for p in places] + [1 << 5 + bits + w for w in range(warp_bits)]
    threads = (*steps[:5], *steps[5 + bits :])
    return Layout(((2,) * len(threads), (2,) * bits), (threads, tuple(steps[5 : 5 + bits])))


def test_warps_may_differ() -> None:
    """Of a swizzled destination each warp moves its elements in another order."""
    plain = Layout(((4, 8, 4), 4), ((1, 4, 128), 32))
    for base, shift in ((0, 7), (2, 5), (5, 2), (0, 6)):
        swizzled = ComposedLayout(Swizzle(2, base, shift), Int(0), plain)
        found = cute.convert_layout_tv(plain, swizzled, "float16", by="shuffles")
        expect_moved(found)


def test_warps_that_exchange_all_they_have_need_shared_memory() -> None:
    """Each lane keeps its place, and its values are those of the lane of another warp."""
    lanes = (1, 2, 4, 8, 16)
    source, destination = (Layout(((2,) * 7, 2), ((*lanes, *warps), 32)) for warps in ((64, 128), (128, 64)))
    found = cute.convert_layout_tv(source, destination)
    assert found.by == "shared memory"
    expect_moved(found)
    with pytest.raises(InvalidValueError, match="elements change warps"):
        cute.convert_layout_tv(source, destination, by="shuffles")


def test_the_exchange_of_two_lanes_is_one_shuffle() -> None:
    found = cute.convert_layout_tv(*EXCHANGE)
    assert (found.by, found.cost.shuffles, found.cost.selects) == ("shuffles", 1, 4)
    assert "shfl.sync.bfly.b32" in found.ptx
    expect_moved(found)


def test_halves_that_stay_together_travel_in_one_word() -> None:
    source, destination = (Layout((*x.shape[:1], (2, 2)), (x.stride[0], (64, x.stride[1]))) for x in EXCHANGE)
    apart = cute.convert_layout_tv(source, destination, "float32", by="shuffles")
    together = cute.convert_layout_tv(source, destination, "float16", by="shuffles")
    assert (apart.cost.shuffles, together.cost.shuffles) == (2, 1)
    expect_moved(together)


def test_registers_alone_where_threads_have_their_elements() -> None:
    source = cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN").layoutC_TV
    found = cute.convert_layout_tv(source, Layout(((4, 8), (2, 2)), ((32, 1), (8, 16))), "float16")
    assert (found.by, found.cost.shuffles, found.cost.wavefronts) == ("moves", 0, 0)
    expect_moved(found)


def test_ldmatrix_and_stmatrix_where_they_apply() -> None:
    """A warpgroup's accumulator to rows, and rows to the A of an MMA."""
    sums = cute.mma_atom("SM90_64x64x16_F32F16F16_SS").layoutC_TV
    rows = Layout(static((128, 32)), static((32, 1)))
    found = cute.convert_layout_tv(sums, rows, "bfloat16")
    assert "stmatrix.sync.aligned.m8n8.x4.trans" in found.ptx
    expect_moved(found)
    a = cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN").layoutA_TV
    by_columns = Layout(static((32, 8)), static((8, 1)))
    load = cute.convert_layout_tv(by_columns, a, "float16")
    assert "ldmatrix.sync.aligned.m8n8.x4.trans" in load.ptx
    assert load.cost.wavefronts == 8
    expect_moved(load)


def test_wavefronts_are_those_of_find_smem_layout() -> None:
    rows, columns = Layout((32, 32), (1, 32)), Layout((32, 32), (32, 1))
    found = cute.convert_layout_tv(rows, columns, by="shared memory")
    assert cute.same_function(found.smem_layout, cute.find_smem_layout(rows, columns, "float32"))
    assert found.cost.wavefronts == 64


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
@pytest.mark.parametrize("pairs", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_ptxas_takes_the_texts(pairs: int) -> None:
    for source, destination, dtype in random_pairs(pairs, 78):
        found = cute.convert_layout_tv(source, destination, dtype)
        body = found.ptx
        names = sorted(set(re.findall(r"%[a-z]+\d*\b(?!\.)", body)))
        kinds = {"%p": ".pred", "%t": ".b32", "%s": ".b32", "%d": ".b32", "%b": ".b32"}
        lines = [f".reg {kinds[name[:2]]} {name};" for name in names]
        accepted, messages, _ = assemble_module(ptx_module("convert", [*lines, body, "ret;"], "sm_90a"), "sm_90a")
        assert accepted, messages


def test_nvrtc_takes_the_device_function() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from cute_py.gpu.nvrtc import run_nvrtc

    found = cute.convert_layout_tv(*EXCHANGE)
    kernel = (
        found.cuda("exchange") + 'extern "C" __global__ void k(unsigned* x) { unsigned a[2] = {x[0], x[1]}, b[2];'
        " exchange(a, b, 0); x[0] = b[0]; x[1] = b[1]; }\n"
    )
    assert run_nvrtc(kernel, "k", "sm_90a", "cubin")


def test_explain() -> None:
    assert str(cute.convert_layout_tv(*EXCHANGE)) == (
        "float32 in registers of 32 threads, by shuffles\n"
        "  from  ((2,16),2):((1,4),2)\n"
        "  to    ((2,16),2):((2,4),1)\n"
        "  cost  5 moves, 4 selects, 1 shuffle, 5.5 cycles\n"
        "  1. move    the thread's index\n"
        "  2. select  each lane arranges its words in the order of the rounds\n"
        "  3. shuffle 1 word move to another lane; 1 stay\n"
        "  4. select  each lane arranges the received words in its own order\n"
        "  5. move    words to the registers of the destination"
    )


@each_of(
    ("call", "error", "text"),
    [
        (lambda: cute.convert_layout_tv(Layout((32, 2)), Layout((64, 1))), InvalidValueError, "must be equal"),
        (
            lambda: cute.convert_layout_tv(Layout((32, 2)), Layout((32, 4))),
            InvalidValueError,
            "no thread of the source",
        ),
        (
            lambda: cute.convert_layout_tv(Layout((32, 2)), Layout((32, 2)), "int4"),
            InvalidValueError,
            "8, 16, 32 or 64",
        ),
        (
            lambda: cute.convert_layout_tv(Layout(32), Layout((32, 1))),
            InvalidTypeError,
            "the source has 1 modes; must have two, thread and value",
        ),
        (
            lambda: cute.convert_layout_tv(Layout((sympy.Symbol("n"), 2)), Layout((32, 2))),
            InvalidTypeError,
            "the number of threads of the source must be an integer, got Symbol n",
        ),
        (lambda: cute.convert_layout_tv("x", Layout((32, 1))), InvalidTypeError, "layout of"),
        (
            lambda: cute.convert_layout_tv(Layout((2048, 1)), Layout((2048, 1))),
            InvalidValueError,
            "the source has 2048 threads; must have 1 to 1024",
        ),
        (
            lambda: cute.convert_layout_tv(*EXCHANGE, by="moves"),
            InvalidValueError,
            "register moves are not enough: elements change threads, or the threads move their values differently",
        ),
        (lambda: cute.convert_layout_tv(*EXCHANGE, by="magic"), InvalidValueError, "magic"),
        (
            lambda: cute.convert_layout_tv(Layout((64, 2), (2, 1)), Layout((64, 2), (1, 64)), by="shuffles"),
            InvalidValueError,
            "shuffles are not enough: elements change warps, elements",
        ),
        (
            lambda: cute.convert_layout_tv(*EXCHANGE).run(np.zeros((32, 2))),
            InvalidTypeError,
            r"the source must have values of shape \(32, 2\) and type float32, got \(32, 2\) of float64",
        ),
        (
            lambda: cute.convert_layout_tv(Layout((1024, 128), (128, 1)), Layout((1024, 128), (1, 1024))),
            InvalidValueError,
            "shared memory of a block",
        ),
    ],
)
def test_refused(call: object, error: type[CuteError], text: str) -> None:
    with pytest.raises(error, match=text):
        call()  # type: ignore[operator]
