"""explain: the words for coordinate tensors, and that what they say is so."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from cute_py import (
    ComposedLayout,
    E,
    Int,
    Layout,
    Swizzle,
    counting_iterator,
    local_tile,
    make_identity_tensor,
    make_inttuple_iter,
    make_tensor,
    ratio,
)
from cute_py.arith_tuple.parse import parse
from cute_py.errors import InvalidTypeError
from cute_py.explanation import explain
from tests.arith_tuple.strategies import basis_layouts, coordinates


@given(coordinates, basis_layouts())
def test_every_sample_is_the_element(start: Any, layout: Layout) -> None:
    tensor = make_tensor(make_inttuple_iter(start), layout)
    lines = explain(tensor).splitlines()
    samples = [line for line in lines if " -> " in line and line.startswith("  ")]
    assert samples
    for line in samples:
        coordinate, element = line.split(" : ")[1].split(" -> ")
        got = tensor(parse(coordinate))
        assert str(got).replace("_", "") == element.strip()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 5))
def test_the_formula_gives_the_element(tile: int, tiles: int, first: int) -> None:
    tensor = local_tile(make_identity_tensor((Int(tile) * 3, Int(tile * tiles))), (Int(3), Int(tile)), (first, None))
    formulas = [line.split(" = ")[1] for line in explain(tensor).splitlines() if line.startswith("  coordinate mode")]
    for place in [(0, 0, 0), (1, tile - 1, tiles - 1)]:
        names = {f"c{i}": index for i, index in enumerate(place)}
        assert tensor(*place) == tuple(eval(f, {}, names) for f in formulas)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (Layout((Int(64), 2), (E(1), Int(64) * E(1))), "covers 64 there, so a step goes to the next block of 64"),
        (Layout((Int(64), 2), (E(1), Int(80) * E(1))), "covers 64 there, so a step leaves 16 out"),
        (Layout((Int(64), 2), (E(1), Int(48) * E(1))), "covers 64 there, so blocks overlap by 16"),
        (Layout((4, 2, 3), (E(0), 4 * E(0), 8 * E(0))), "mode 0 (4 x _1@0) and mode 1 (2 x 4@0) cover 8 there"),
        (Layout((4,), (3 * E(0),)), "only every one in 3 is reached"),
        (Layout((4,), (-2 * E(0),)), "a step takes 2 from coordinate mode 0"),
        (Layout((4,), (Int(0) * E(0),)), "a step moves nowhere"),
        (Layout((Int(1),), (E(0),)), "a single index, so it never moves"),
        (Layout((4,), (ratio(3, 2) * E(0),)), "2 steps add 3 to coordinate mode 0"),
    ],
)
def test_reasons(layout: Layout, reason: str) -> None:
    assert reason in explain(make_tensor(make_inttuple_iter(0, 0), layout))
    assert reason in explain(layout)


def test_symbols_are_explained_without_a_last_element() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    out = explain(make_identity_tensor((n, 5)))
    assert "size n, stride _1@0" in out
    assert "last" not in out


def test_integers() -> None:
    assert "counts from 42 on, in int32" in explain(make_tensor(counting_iterator(42), (4, 5)))
    assert "a step adds 1 to the integer" in explain(make_identity_tensor(5))


def test_a_swizzle_is_named() -> None:
    layout = ComposedLayout(Swizzle(2, 0, 3), Int(0), Layout((8, 8), (8, 1)))
    out = explain(make_tensor(counting_iterator(0), layout))
    assert "Sw<2,0,3> comes after the strides: it gets _0 + their sum, and gives the offset." in out
    assert "one step in mode 0 : (1,0) -> 9" in out


def test_objects_with_words_of_their_own() -> None:
    class Atom:
        def explain(self) -> str:
            return "an atom"

    assert explain(Atom()) == "an atom"


@pytest.mark.parametrize("bad", [5, "text", None, b"seven", [Layout((4, 5))]])
def test_what_has_no_words(bad: Any) -> None:
    with pytest.raises(InvalidTypeError, match="no words"):
        explain(bad)


def test_an_integer_layout_says_what_it_covers() -> None:
    text = explain(Layout((4, 8), (0, 2)))
    assert "mode 0 : size 4, stride 0: a step moves nowhere" in text
    assert "32 elements share 8 offsets" in text
    assert "7 offsets between them are not used" in text
    text = explain(Layout((4, 8)))
    assert "every element has an offset of its own" in text
    assert "no offset between them is left out" in text
    assert "last" in text.splitlines()[-1]
    assert text.splitlines()[-1].endswith("-> 31")


@given(st.integers(0, 3), st.integers(0, 5), st.integers(-4, 4))
def test_a_swizzle_says_which_bits(bits: int, base: int, shift: int) -> None:
    if abs(shift) < bits:
        return
    swizzle = Swizzle(bits, base, shift)
    text = explain(swizzle)
    if not bits:
        assert "identity" in text
        return
    changed = 0
    for offset in range(1 << 12):
        changed |= swizzle(offset) ^ offset
    low = (changed & -changed).bit_length() - 1
    assert changed == ((1 << bits) - 1) << low
    name = f"bit {low}" if bits == 1 else f"bits {low} to {low + bits - 1}"
    assert f"keeps all bits but {name}," in text


def test_composed_layouts_maps_tensors_and_errors_have_words() -> None:
    import numpy as np

    import cute_py as cute

    text = explain(parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"))
    assert "permutes the bits of the byte address" in text
    assert "128B swizzle of TMA" in text
    request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    assert explain(request) == explain(cute.tma.encode(request)) == cute.tma.describe(request)
    assert "Elements of float32" in explain(make_tensor(np.zeros((4, 4), np.float32)))
    with pytest.raises(cute.tma.TmaLimitError) as error:
        cute.tma.encode(cute.tma.TensorMapTiled(6, 4, (512, 1024), (1000,), (64, 300)))
    text = cute.explain(error.value)
    assert text.startswith("TmaLimitError: ")
    assert "4 bytes; must be a multiple of 16" in text
    assert "300" in text


def test_an_operation_is_explained_by_its_steps() -> None:
    import cute_py as cute

    a, b = Layout((Int(4), Int(6)), (Int(1), Int(4))), Layout(Int(8), Int(3))
    text = explain(cute.composition, a, b)
    assert text.splitlines() == [str(step) for step in cute.steps(cute.composition, a, b)]
    assert str(cute.composition(a, b)) in text.splitlines()[-1]
    with pytest.raises(InvalidTypeError, match="no steps are known of len"):
        explain(len, a)
