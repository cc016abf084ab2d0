"""Chains of views with the further operations of PyTorch, NumPy and einops, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import cute_py as cute
from cute_py.errors import InvalidTypeError
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.rows.view_steps import spelled_views
from cute_py.layout.offsets import offsets
from cute_py.notation.torch_views import permuted_views

Array = NDArray[np.int64]


@pytest.mark.parametrize(
    ("text", "count", "made"),
    [
        ("x.reshape(2, 3, 4).movedim(0, -1)", 24, lambda x: np.moveaxis(x.reshape(2, 3, 4), 0, -1)),
        ("x.reshape(2, 3, 4).moveaxis(2, 0)", 24, lambda x: np.moveaxis(x.reshape(2, 3, 4), 2, 0)),
        (
            "np.moveaxis(x.reshape(2, 3, 4, 5), (0, 1), (3, 0))",
            120,
            lambda x: np.moveaxis(x.reshape(2, 3, 4, 5), (0, 1), (3, 0)),
        ),
        ("torch.movedim(x.reshape(2, 3, 4), 0, 1)", 24, lambda x: np.moveaxis(x.reshape(2, 3, 4), 0, 1)),
        ("x.view(4, 8, 2).swapdims(0, 2)", 64, lambda x: x.reshape(4, 8, 2).swapaxes(0, 2)),
        ("x.view(4, 8, 2).swapaxes(0, -1)", 64, lambda x: x.reshape(4, 8, 2).swapaxes(0, -1)),
        ("x.view(4, 8).T", 32, lambda x: x.reshape(4, 8).T),
        ("x.view(2, 4, 8).mT", 64, lambda x: x.reshape(2, 4, 8).swapaxes(1, 2)),
        (
            "x.view(8, 6).unflatten(1, (3, 2)).permute(1, 0, 2)",
            48,
            lambda x: x.reshape(8, 3, 2).transpose(1, 0, 2),
        ),
        (
            "x.view(8, 6).T.unflatten(0, (3, -1)).movedim(0, 2)",
            48,
            lambda x: np.moveaxis(x.reshape(8, 6).T.reshape(3, 2, 8), 0, 2),
        ),
        (
            "x.view(4, 8, 2).movedim(0, 2).flatten(0, 1)",
            64,
            lambda x: np.moveaxis(x.reshape(4, 8, 2), 0, 2).reshape(16, 4),
        ),
        (
            "y = x.view(4, 8, 2)\nz = y.movedim(0, -1).contiguous().unflatten(0, (2, -1))",
            64,
            lambda x: np.moveaxis(x.reshape(4, 8, 2), 0, -1).reshape(2, 4, 2, 4),
        ),
        (
            "rearrange(x, 'b (h d) n -> b h n d', b=2, h=3, d=4, n=5)",
            120,
            lambda x: x.reshape(2, 3, 4, 5).transpose(0, 1, 3, 2),
        ),
        (
            "einops.rearrange(x, '(m p) (k q) -> (m k) p q', m=2, p=3, k=4, q=5)",
            120,
            lambda x: x.reshape(2, 3, 4, 5).transpose(0, 2, 1, 3).reshape(8, 3, 5),
        ),
        (
            "torch.flatten(x.view(2, 3, 4).transpose(0, 2), 1).unflatten(-1, (2, 3))",
            24,
            lambda x: x.reshape(2, 3, 4).swapaxes(0, 2).reshape(4, 6).reshape(4, 2, 3),
        ),
        ("x.view(2, 3, 4).T.flatten(-2, -1).moveaxis([1], [0])", 24, lambda x: x.reshape(2, 3, 4).T.reshape(4, 6).T),
        ("rearrange(x, 'a b -> b 1 a', a=3, b=4)", 12, lambda x: x.reshape(3, 4).T.reshape(4, 1, 3)),
    ],
)
def test_a_chain_has_the_elements_of_numpy(text: str, count: int, made: Callable[[Array], Array]) -> None:
    view = permuted_views(spelled_views(text).text)[-1]
    wanted = made(np.arange(count))
    found = np.asarray(offsets(view.layout)).reshape(wanted.shape)
    assert np.array_equal(found, wanted)
    assert f"as CuTe writes it: {view.layout}" in cute.explain(text)


def test_sizes_of_a_pattern_may_be_examples() -> None:
    (reading,) = readings_of("rearrange(x, 'b (h d) n -> b h n d', h=8)")
    assert "sizes that the text does not contain are examples: b = 5, d = 7, n = 11" in reading.meaning


def test_an_axis_is_no_variable_of_the_code() -> None:
    (reading,) = readings_of("n = 4\ny = rearrange(x, 'm n -> n m')")
    assert any("n_size = " in line for line in reading.meaning)


@pytest.mark.parametrize(
    "text", ["y = 2\nz = rearrange(x, 'a b -> b a', a=2, b=3)  # z", "f(x.view(2, 3).movedim(0, 1))"]
)
def test_a_reading_has_its_place_in_the_text(text: str) -> None:
    (reading,) = readings_of(text)
    assert text[reading.begin : reading.end] in ("rearrange(x, 'a b -> b a', a=2, b=3)", "x.view(2, 3).movedim(0, 1)")


@pytest.mark.parametrize(
    "text",
    [
        "x.movedim(0, 1)",
        "x.view(2, 3).movedim(0, 2)",
        "x.view(2, 3).movedim((0, 1), 0)",
        "x.view(2, 3).movedim((0, 0), (0, 1))",
        "x.view(2, 3, 4).flatten(2, 0).T",
        "x.view(2, 3, 4).flatten(3).T",
        "x.view(a, 2, 2, 2, 2, 2).flatten(a).T",  # the example of a size is no mode
        "x.view(8, 16).unflatten(1, (3, 5)).T",
        "rearrange(x, 'b ... d -> b d')",
        "rearrange(x, 'a b -> b c')",
        "rearrange(x, 'a a -> a a')",
        "rearrange(x, pattern)",
        "rearrange(x, 'a b -> b a'",
        "x.reshape(4, 8, 16).swapdims(0, 2",
        "x.reshape(4,} 8, 16).movedim(0, 2",
        "np.moveaxis(x.reshape(4, 8), 0, 1",
    ],
)
def test_other_chains_are_not_read(text: str) -> None:
    with pytest.raises(InvalidTypeError):
        cute.explain(text)


def test_the_modes_of_an_ellipsis_are_one_mode() -> None:
    (reading,) = readings_of("rearrange(x, '... (h d) -> ... d h', h=8, d=64)")
    assert "as CuTe writes it: (5,64,8):(512,1,64)" in reading.meaning
    assert "the modes of `...` as one mode of 5 elements" in str(reading)
