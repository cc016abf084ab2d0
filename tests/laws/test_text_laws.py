"""Texts: parse(str(x)) == x and eval(repr(x)) == x."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.testing.strategies import layouts, shapes, swizzled_layouts, swizzles

ANY = layouts(kinds=("compact", "gaps", "zeros", "wild", "negative"), static=None)
NAMES = {name: getattr(cute, name) for name in cute.__all__}


def there_and_back(x: Any) -> None:
    text = str(x)
    again = cute.parse(text)
    assert again == x
    assert str(again) == text
    rebuilt = eval(repr(x), dict(NAMES))
    assert rebuilt == x
    assert str(rebuilt) == text
    copied = pickle.loads(pickle.dumps(x))
    assert copied == x
    assert str(copied) == text


@given(ANY)
def test_layouts(a: Layout) -> None:
    there_and_back(a)


@given(swizzled_layouts(static=None), st.one_of(st.integers(0, 99), st.integers(0, 99).map(Int)))
def test_composed_layouts(a: ComposedLayout, offset: Any) -> None:
    there_and_back(ComposedLayout(a.outer, offset, a.inner))


@given(swizzles())
def test_swizzles(sw: Swizzle) -> None:
    there_and_back(sw)
    assert cute.parse(f"S<{sw.bits},{sw.base},{sw.shift}>") == sw
    assert cute.parse(f"SW_{sw.bits}_{sw.base}_{sw.shift}") == sw


@given(shapes(), st.integers(1, 9))
def test_basis_strides(shape: Any, scale: int) -> None:
    a = cute.make_identity_layout(shape)
    assert cute.parse(str(a)) == a
    assert cute.parse(str(scale * cute.E(2, 1))) == scale * cute.E(2, 1)


@given(shapes())
def test_coordinate_tensors(shape: Any) -> None:
    tensor = cute.make_identity_tensor(shape if isinstance(shape, tuple) else (shape,))
    assert str(cute.parse(str(tensor))) == str(tensor)


@given(st.text(alphabet="()_,:@0123456789 oSw<>-?ME{}gp[].x", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        cute.parse(text)
    except cute.errors.ParseError as error:
        assert 0 <= error.position <= len(text)
