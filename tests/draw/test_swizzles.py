"""Swizzles before and after: the picture's offsets are the swizzle's, and its passes are counted from the banks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cute_py as cute
from cute_py.draw import draw, draw_swizzle
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from tests.draw.structure import cells, words


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 3), st.integers(0, 4), st.sampled_from([3, 4, -3]))
def test_a_bare_swizzle_moves_its_own_units(bits: int, base: int, shift: int) -> None:
    swizzle = cute.Swizzle(bits, base, shift)
    picture = draw_swizzle(swizzle)
    half = picture.count // 2
    before, after = cells(picture)[:half], cells(picture)[half:]
    assert [int(c.text.split()[0]) for c in before] == list(range(half))
    assert [int(c.text.split()[0]) << base for c in after] == [swizzle.of(n << base) for n in range(half)]


def test_units_of_the_engine_and_of_cute_differ() -> None:
    layout = cute.parse("(8,64):(64,1)")
    on_bytes = cells(draw_swizzle(cute.Swizzle(3, 4, 3), layout, 16))[512:]
    on_elements = cells(draw_swizzle(cute.Swizzle(3, 3, 3), layout, 16, on="elements"))[512:]
    assert [c.text for c in on_bytes] == [c.text for c in on_elements]
    other = cells(draw_swizzle(cute.Swizzle(3, 4, 3), layout, 16, on="elements"))[512:]
    assert [c.text for c in other] != [c.text for c in on_bytes]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", 8, 1),
        ("Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)", 4, 1),
        ("Sw<1,4,3> o smem_ptr[16b](unset) o (_8,_16):(_16,_1)", 2, 1),
        ("Sw<0,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", 8, 8),
        ("Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1)", 8, 1),
    ],
)
def test_passes_before_and_after(text: str, before: int, after: int) -> None:
    notes = draw(cute.parse(text)).notes
    assert notes[0] == f"16-byte reads of 8 rows of column 0 take {before} passes before, {after} after"


def test_cells_tell_offset_byte_and_bank() -> None:
    picture = draw(cute.parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"))
    assert {"0-3", "28-31", "colour: banks, of the 32 that are 4 bytes wide:"} <= words(picture)
    assert [t.title for t in picture.tables] == ["before: offset in elements, and bank", "after Sw<3,4,3> on bytes"]
    assert cells(picture)[512 + 64].title == "(1,0) -> 1*64 = 64 -> offset 72: byte 144, bank 4"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((cute.Layout(4),), {}, InvalidTypeError, "swizzle must be a Swizzle, got Layout"),
        ((cute.Swizzle(3, 4, 3), "x"), {}, InvalidTypeError, "layout must be a Layout, got str"),
        (
            (cute.Swizzle(3, 4, 3), cute.Layout((8, 8))),
            {"on": "bits"},
            InvalidValueError,
            "must be one of 'bytes', 'elements'",
        ),
        (
            (cute.Swizzle(3, 4, 3), cute.Layout((8, 8)), 0),
            {},
            InvalidValueError,
            "the width of an element, = 0; must be 1 to 128",
        ),
        (
            (cute.Swizzle(3, 1, 3), cute.Layout((8, 8)), 64),
            {},
            InvalidValueError,
            "it splits elements of 8 bytes",
        ),
        (
            (cute.Swizzle(3, 1, 3), cute.Layout((8, 8)), 6),
            {},
            InvalidValueError,
            "elements of 6 bits are not whole bytes",
        ),
        ((cute.parse("Sw<2,0,3> o 5 o (4,4):(4,1)"),), {}, InvalidValueError, "a swizzle is drawn for offset 0"),
        (
            (cute.parse("Sw<2,0,3> o 0 o (4,4):(4,1)"), cute.Layout(4)),
            {},
            InvalidTypeError,
            "must be omitted, because the composed layout contains a layout",
        ),
    ],
)
def test_bad_swizzles(arguments: tuple[Any, ...], options: dict[str, Any], error: type[CuteError], text: str) -> None:
    with pytest.raises(error, match=text):
        draw_swizzle(*arguments, **options)


@pytest.mark.parametrize(
    "spelled", ["128B", "SWIZZLE_128B", "B128", "CU_TENSOR_MAP_SWIZZLE_128B", 3, cute.tma.TensorMapSwizzle.B128]
)
def test_a_swizzle_in_any_spelling(spelled: str | int) -> None:
    assert cute.draw.draw_swizzle(spelled) == cute.draw.draw_swizzle(cute.Swizzle(3, 4, 3))
    layout = cute.Layout((8, 64), (64, 1))
    assert cute.draw.draw_swizzle(spelled, layout, "float16") == cute.draw.draw_swizzle(
        cute.Swizzle(3, 4, 3), layout, 16
    )
