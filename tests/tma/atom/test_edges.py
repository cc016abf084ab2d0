"""Edges of atoms: counts in explanations, the smallest swizzle that elements can have, counts that do not divide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import CuteError
from cute_py.tma.atom.tile_atom import check_units
from tests.calls.namespace import names
from tests.each import each_of

X = np.zeros((64, 128), np.float16)


def atom(smem: str, x: Any = X, op: str = "SM90_TMA_LOAD", **options: Any) -> Any:
    return cute.tma.make_tma_copy(op, x, cute.parse(smem), **options)


def test_counts_of_an_explanation() -> None:
    text = atom("(_32,(_32,_2)):(_32,(_1,_1024))").explain()
    assert "2 per tile and CTA, 4 tiles, 8 in all" in text
    assert "bytes; another order of the tile's modes may give one" in text
    one = atom("(_32,_64):(_64,_1)").explain()
    assert "1 per tile and CTA, 4 tiles, 4 in all" in one
    assert "instructions a tile" not in one


def test_bytes_of_an_explanation_are_those_of_its_direction() -> None:
    """A barrier counts the bytes of loads alone."""
    expected = {
        "SM90_TMA_LOAD": "a CTA's barrier expects 4096 bytes per tile",
        "SM90_TMA_STORE": "complete by bulk group",
        "SM90_TMA_REDUCE_ADD": "complete by bulk group",
        "SM90_TMA_PREFETCH": "prefetches 4096 bytes into the L2 cache",
    }
    for op, text in expected.items():
        explained = atom("(_32,_64):(_64,_1)", op=op).explain()
        assert text in explained
        assert ("CTA's barrier expects" in explained) == (op == "SM90_TMA_LOAD")
        assert ("in shared memory is aligned" in explained) == (op != "SM90_TMA_PREFETCH")


def test_what_would_help() -> None:
    """Rows of 128 bytes without a swizzle, of a tile of more than one mode; rows below 64 bytes."""
    assert "no swizzle: 8 rows" in atom("(_32,_64):(_64,_1)").explain()
    assert "no swizzle" not in atom("(_32,_32):(_32,_1)").explain()
    assert "no swizzle" not in atom("_64:_1", np.zeros(256, np.float16)).explain()
    assert "rows of 32 bytes" in atom("(_32,_16):(_16,_1)").explain()


def test_bytes_of_an_im2col_instruction() -> None:
    made: Any = names()["im2col_atom"]()
    assert made.bytes_per_instruction == made.plan.range_c * made.plan.range_whdn * 2
    assert made.bytes_per_instruction * 8 == made.num_bits_per_tma


@pytest.mark.parametrize("count", [3, 5])
def test_a_count_that_does_not_divide_the_innermost_mode(count: int) -> None:
    with pytest.raises(CuteError, match=rf"= {count} CTAs; must divide or be divided by boxDim\[0\] = 64"):
        atom("_64:_1", np.zeros(256, np.float16), "SM90_TMA_LOAD_MULTICAST", num_multicast=count)


def test_the_smallest_swizzle_on_elements() -> None:
    """Sw<3,1,3> on elements of 16 bits as bytes is Sw<3,0,3> on elements; with base 0 it would cut elements."""
    found = {}
    for base in (0, 1):
        smem = cute.make_composed_layout(cute.Swizzle(3, base, 3), Int(0), Layout((Int(8), Int(64)), (Int(64), Int(1))))
        found[base] = " ".join(d.text for d in check_units(smem, 16))
    assert "to bytes, where it splits the elements of" in found[0]
    assert "Sw<3,0,3> on elements" in found[1]


@pytest.mark.parametrize("major", ["K", "MN"])
def test_choices_of_a_tile_with_stages(major: str) -> None:
    """The stages lie behind each other, and cost no pass."""
    staged, plain = (cute.tma.smem_choices(major, "float16", tile) for tile in ((64, 32, 3), (64, 32)))
    assert [c.passes for c in staged] == [c.passes for c in plain]
    assert [c.swizzle for c in staged] == [c.swizzle for c in plain]
    for one, single in zip(staged, plain, strict=True):
        table = cute.offsets(one.layout)
        assert all((table[:, :, i] == cute.offsets(single.layout) + 2048 * i).all() for i in range(3))


# A row of 2-byte columns is at most the span of its swizzle.
SPANNED = [(columns, swizzle) for columns in (8, 16, 32, 64) for swizzle in range(4) if columns <= 8 << (swizzle or 3)]


@each_of(("columns", "swizzle"), SPANNED)
@each_of("rows", [1, 8])
def test_swizzled_rows_shorter_than_their_swizzle_are_placed_apart(rows: int, columns: int, swizzle: int) -> None:
    """What the engine leaves in shared memory is what the layout says, or the atom says why it is not."""
    x = np.arange(64 * 128, dtype=np.uint16).reshape(64, 128)
    made = atom(f"Sw<{swizzle},4,3> o smem_ptr[16b](unset) o (_{rows},_{columns}):(_{columns},_1)", x)
    smem = cute.tma.execute(made, x, 0).smem.view(np.uint16)
    places = cute.offsets(made.smem_layout)
    agrees = bool((smem[np.minimum(places, len(smem) - 1)] == x[:rows, :columns]).all())
    assert agrees == (made.why_not() is None)
    if not agrees:
        span = 16 << swizzle
        assert made.why_not() == (
            f"rows of {2 * columns} bytes; with swizzle {span}B the engine places them {span} bytes apart, but "
            f"the shared layout {2 * columns} bytes apart"
        )
        assert f"places them {span} bytes apart" in made.explain()
