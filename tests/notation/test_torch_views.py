"""Layouts of chains of reshapes and permutations are those that numpy computes."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

import cute_py as cute
from cute_py.explanation.dispatch import readings_of
from cute_py.layout.offsets import offsets
from cute_py.notation.torch_views import permuted_views


def _splits(dice: random.Random, total: int) -> list[int]:
    sizes = []
    while total > 1 and len(sizes) < 4:
        divisors = [n for n in range(2, total + 1) if total % n == 0]
        sizes.append(dice.choice(divisors))
        total //= sizes[-1]
    return [*sizes, total]


def test_random_chains_are_those_of_numpy() -> None:
    read = 0
    for seed in range(400):
        dice = random.Random(seed)
        total = prod(dice.choice((2, 2, 3, 4, 5)) for _ in range(dice.randint(2, 5)))
        sizes = _splits(dice, total)
        x, text = np.arange(total).reshape(sizes), f"x.reshape({', '.join(map(str, sizes))})"
        for _ in range(dice.randint(1, 3)):
            if x.ndim == 2 and dice.random() < 0.3:
                x, text = x.T, text + dice.choice((".T", ".t()", ".mT"))
            elif dice.random() < 0.6:
                order = dice.sample(range(x.ndim), x.ndim)
                call = dice.choice(("np.transpose({}, ({}))", "tl.trans({}, {})", "{}.permute({})", "{}.permute({})"))
                x, text = x.transpose(order), call.format(text, ", ".join(map(str, order)))
            elif dice.random() < 0.5:
                a, b = dice.randrange(x.ndim), dice.randrange(-x.ndim, 0)
                x, text = x.swapaxes(a, b), f"{text}.transpose({a}, {b})"
            else:
                sizes = _splits(dice, total)
                x, text = x.reshape(sizes), f"{text}.contiguous().view([{', '.join(map(str, sizes))}])"
        views = permuted_views(f"y = {text}; z = 3")
        if not views:
            continue
        (view,) = views
        if view.rest:  # a reshape divides a mode into parts that are not whole
            continue
        assert np.array_equal(offsets(view.layout).reshape(x.shape), x), text
        assert f"y = {text}; z = 3"[view.begin : view.end] == text
        read += 1
    assert read > 150  # the others permute nothing, or divide a mode into parts that are not whole


@pytest.mark.parametrize(
    "text",
    [
        "x.view(2, 3)",
        "x.view(M, 4).permute(1, k)",
        "x.view(M, 4).permute(1, 0, 2)",
        "x.view(dtype).permute(1, 0)",
        "x.view(torch.uint8).permute(1, 0)",
        "x.view(M / 2, 4).permute(1, 0)",
        "x.view(M - 1, 4).permute(1, 0)",
        "x.view(M // N, 4).permute(1, 0)",
        "x.view(-1, -1).permute(1, 0)",
        "np.transpose(x.reshape(2, 3, 4), (0, 1))",
        "x.view(2, 3).permute(0, 2)",
        "x.view(2, 3).permute(0, 0)",
        "x.view(0, 3).permute(1, 0)",
        "x.permute(1, 0)",
        "w.T.reshape(8, 4).T",
        "f(x).reshape(8, 4).T",
    ],
)
def test_chains_without_a_layout(text: str) -> None:
    assert permuted_views(text) == []


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("np.transpose(x.reshape(2, 3))", "x.view(2, 3).T"),
        ("np.transpose(x.reshape(2, 3), (1, 0))", "x.view(2, 3).T"),
        ("np.transpose(x.reshape(2, 3, 4), (0, 1, 2)).T", "x.view(2, 3, 4).permute(2, 1, 0)"),
        ("x.reshape(2, 3).transpose((0, 1)).T", "x.view(2, 3).T"),
        ("torch.transpose(x.reshape(2, 3), 0, 1)", "x.view(2, 3).T"),
        ("tl.trans(tl.reshape(x, (2, 3)))", "x.view(2, 3).T"),
        (
            "torch.permute(torch.reshape(x, (2, 3, 4)), (2, 0, 1)).reshape(4, 6)",
            "x.view(2, 3, 4).permute(2, 0, 1).reshape(4, 6)",
        ),
        (
            "np.reshape(np.swapaxes(np.reshape(x, [2, 3, 4]), 0, -1), (12, 2))",
            "x.view(2, 3, 4).permute(2, 1, 0).reshape(12, 2)",
        ),
    ],
)
def test_functions_are_read_as_methods_are(text: str, other: str) -> None:
    (one,), (two,) = permuted_views(text), permuted_views(other)
    assert (one.layout, text[one.begin : one.end]) == (two.layout, text)


@pytest.mark.parametrize(
    "text", ["np.transpose(x, (1, 0))", "tl.trans(x.reshape(2, 3, 4))", "xnp.transpose(x.reshape(2, 3))"]
)
def test_functions_without_a_layout(text: str) -> None:
    assert permuted_views(text) == []


@pytest.mark.parametrize(
    ("begin", "step"),
    [
        ("x.view(6, 10).permute(1, 0)", ".reshape(4, 15)"),
        ("x.view(2, 3).permute(1, 0)", ".reshape(5, 2)"),
        ("x.reshape(12, 2).T", ".reshape(3, 8)"),
    ],
)
def test_a_chain_ends_before_a_reshape_that_has_no_layout(begin: str, step: str) -> None:
    (whole,), (view,) = permuted_views(begin), permuted_views(begin + step + ".T")
    assert (view.layout, view.rest, whole.rest) == (whole.layout, step, "")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("s.view(M // 128, 4, 32, K // 4, 4).permute(0, 3, 2, 1, 4)", ["M", "K"]),
        (
            "s.view(x.shape[0] // 128, 4, 32, self.blocks, 4).permute(0, 3, 2, 1, 4).flatten()",
            ["x.shape[0]", "self.blocks"],
        ),
        ("s.reshape(-1, 4, 32, 3, 4).transpose(0, 3, 2, 1, 4)", ["-1"]),
        ("t = tl.trans(tl.reshape(s, (M // 128, 4, 32, 3, 4)), (0, 3, 2, 1, 4))", ["M"]),
        ("s.view(2 * n, 4, 32, m * n, 4).permute(0, 3, 2, 1, 4)", ["n", "m"]),
        ("M = 256\nr = s.view(M // 128, 4, 32, K, 4).permute(0, 3, 2, 1, 4)", ["K"]),
        (
            "b = s.view(rows, 128, columns, 4).permute(0, 2, 1, 3)\n"
            "r = b.reshape(-1, 4, 32, 4).transpose(1, 2).reshape(-1, 32, 16)",
            ["rows", "columns"],
        ),
    ],
)
def test_sizes_that_are_names_get_example_values(text: str, names: list[str]) -> None:
    view = permuted_views(text)[-1]
    assert [name for name, _ in view.examples] == names
    assert all(isinstance(value, int) and value > 4 for _, value in view.examples)
    reading = readings_of(text)[-1]
    assert reading.meaning[-1].endswith("and the result has the order 32_4_4")
    shown = ", ".join(f"{v} in place of -1" if name == "-1" else f"{name} = {v}" for name, v in view.examples)
    assert f"sizes that the text does not contain are examples: {shown}" in reading.meaning


@pytest.mark.parametrize(
    ("order", "made", "read"),
    [
        ("32_4_4", "view(2, 4, 32, 4, 4).permute(0, 3, 2, 1, 4)", "view(2, 4, 32, 4, 4).permute(0, 3, 2, 1, 4)"),
        ("8x4", "view(32, 8, 4, 4).permute(0, 2, 1, 3)", "view(32, 4, 8, 4).permute(0, 2, 1, 3)"),
    ],
)
def test_the_order_of_scales_that_a_chain_makes_or_reads(order: str, made: str, read: str) -> None:
    (reading,) = readings_of(f"s.{made}.reshape(-1)")
    assert reading.meaning[-1].endswith(f"plain grid of 256 x 16, and the result has the order {order}")
    (reading,) = readings_of(f"s.{read}.reshape(256, 16)")
    assert reading.meaning[-1].endswith(f"the memory has the order {order}, and the result is the plain grid")


def test_a_chain_in_a_question() -> None:
    said = str(cute.explain("in which order is s.view(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)?"))
    assert "((32,4),(4,4)):((16,4),(1,512))" in said and "the order 32_4_4" in said


@pytest.mark.parametrize("step", [".reshape(M, K)", ".contiguous().view(M, K)"])
def test_a_reshape_without_a_layout_keeps_the_order_of_scales(step: str) -> None:
    (reading,) = readings_of(f"s.view(M // 128, 4, 32, K // 4, 4).permute(0, 3, 2, 1, 4){step}")
    assert reading.meaning[-2].startswith(f"not read: {step.removeprefix('.contiguous()')}, which has no layout")
    assert reading.meaning[-1].endswith("and the result has the order 32_4_4")


@pytest.mark.parametrize("step", ["[1]", ".flip(0)", ".reshape(4, 6, order='F')", ".view(torch.int32)", ".sum(0)"])
def test_a_step_that_is_not_read_is_named(step: str) -> None:
    (reading,) = readings_of(f"x.view(2, 3, 4).permute(2, 0, 1){step}")
    assert reading.meaning[-1] == f"not read: {step}, which may change the result"
    (reading,) = readings_of("x.view(2, 3, 4).permute(2, 0, 1).to(torch.int32)")
    assert "not read" not in reading.meaning[-1]


def test_a_chain_continues_that_of_its_variable() -> None:
    text = """blocks = padded.view(2, 128, 3, 4).permute(0, 2, 1, 3)
rearranged = blocks.reshape(
    6, 4, 32, 4
).transpose(1, 2).reshape(6, 32, 16)
"""
    first, second = permuted_views(text)
    x = np.arange(256 * 12).reshape(2, 128, 3, 4).transpose(0, 2, 1, 3)
    assert np.array_equal(offsets(first.layout).reshape(x.shape), x)
    x = x.reshape(6, 4, 32, 4).swapaxes(1, 2).reshape(6, 32, 16)
    assert np.array_equal(offsets(second.layout).reshape(x.shape), x)
    assert "plain grid of 256 x 12, and the result has the order 32_4_4" in readings_of(text)[-1].meaning[-1]


def test_a_view_that_needs_a_copy() -> None:
    (view,) = permuted_views("x.reshape(2, 3, 4).permute(0, 2, 1).view(2, 12)")
    assert view.copied
    for text in ("contiguous().view(2, 12)", "reshape(2, 12)", "view(2, 2, 2, 3)", "reshape(24).view(8, 3)"):
        (view,) = permuted_views(f"x.reshape(2, 3, 4).permute(0, 2, 1).{text}")
        assert not view.copied, text


@pytest.mark.parametrize(
    "text", ["x.view(4, 8).permute(1, 0)", "x.view(256, 4).t()", "x.view(4, 32, 8, 1).permute(0, 1, 3, 2)"]
)
def test_a_transpose_is_no_order_of_scales(text: str) -> None:
    (reading,) = readings_of(text)
    assert "scales" not in " ".join(reading.meaning)
