"""A refusal of run-time numbers names `cute.static`, and shows the result that static numbers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import StaticAssertError


def descriptor(layout: Layout) -> str:
    tile = cute.make_tensor(cute.make_smem_ptr(0, "float16"), layout)
    return hex(cute.make_gmma_desc("K", tile).encode())


@pytest.mark.parametrize(
    ("operation", "layout"),
    [
        (cute.left_inverse, Layout((4, 8), (1, 4))),
        (lambda x: cute.complement(x, Int(64)), Layout((4, 8), (1, 8))),
        (lambda x: cute.downcast(x, 2), Layout((4, 8), (1, 4))),
        (lambda x: cute.tile_to_shape(x, (Int(8), Int(16))), Layout((4, 8), (1, 4))),
        (descriptor, Layout(((8, 8), (8, 2)), ((8, 128), (1, 64)))),
    ],
    ids=["left inverse", "complement", "downcast", "tile to shape", "descriptor"],
)
def test_the_hint_shows_the_static_result(operation: Callable[[Any], Any], layout: Layout) -> None:
    with pytest.raises(StaticAssertError) as refused:
        operation(layout)
    hint = str(refused.value.hint)
    assert hint.startswith("plain ints are run-time; with cute.static(")
    assert hint.endswith(f" is {operation(cute.static(layout))}")


def test_a_layout_that_static_numbers_do_not_help_has_no_hint() -> None:
    with pytest.raises(StaticAssertError) as refused:
        cute.downcast(Layout((4, 8), (3, 12)), 2)
    assert refused.value.hint is None
