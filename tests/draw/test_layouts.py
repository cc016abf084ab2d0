"""Tables of layouts: every cell says the layout's value at its coordinate; colours follow what they are said to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cute_py as cute
from cute_py.draw import draw, draw_compare, draw_layout, draw_tensor, draw_tv
from cute_py.draw.table import PICTURE_CELLS
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.tensor.partition import make_layout_tv
from tests.draw.structure import cells, words

SIZES = st.integers(1, 4)
MODES = st.one_of(SIZES, st.tuples(SIZES, SIZES), st.tuples(SIZES, st.tuples(SIZES, SIZES)))


@settings(max_examples=40, deadline=None)
@given(st.tuples(MODES, MODES))
def test_every_cell_is_the_layout_at_its_coordinate(shape: object) -> None:
    layout = cute.Layout(shape)
    drawn = cells(draw_layout(layout))
    rows, columns = (int(cute.size(layout, i)) for i in range(2))
    assert [int(c.text) for c in drawn] == [int(layout(i, j)) for i in range(rows) for j in range(columns)]
    for cell, index in zip(drawn, [(i, j) for i in range(rows) for j in range(columns)], strict=True):
        coordinate = tuple(cute.idx2crd(n, layout.shape[mode]) for mode, n in enumerate(index))
        assert cell.title.startswith(str(coordinate).replace(" ", "") + " -> ")


@pytest.mark.parametrize(
    ("text", "count", "axis"),
    [
        ("8:2", 8, "→ mode 0 = 8:2"),
        ("():()", 1, ""),
        ("(2,3,4):(12,4,1)", 24, "↓ mode 0 = 2:12   → modes 1..2 = (3,4):(4,1)"),
        ("(4,8):(-8,1)", 32, "↓ mode 0 = 4:-8   → mode 1 = 8:1"),
        ("(0,3):(1,2)", 0, "↓ mode 0 = 0:1   → mode 1 = 3:2"),
        ("Sw<2,0,3> o 5 o (4,4):(4,1)", 16, "↓ mode 0 = 4:4   → mode 1 = 4:1"),
        ("(2,3):(_1@0,_1@1)", 6, "↓ mode 0 = 2:_1@0   → mode 1 = 3:_1@1"),
    ],
)
def test_layouts_of_every_rank(text: str, count: int, axis: str) -> None:
    picture = draw_layout(cute.parse(text))
    assert len(cells(picture)) == picture.count == count
    assert not axis or axis in words(picture)
    assert picture.title == text


def test_a_swizzle_on_bytes_is_drawn_in_elements_as_print_layout_does() -> None:
    layout = cute.parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")
    second = [c for c in cells(draw_layout(layout)) if c.title.startswith("(1,")]
    assert [int(c.text) for c in second[:16]] == [*range(72, 80), *range(64, 72)]


@settings(max_examples=25, deadline=None)
@given(st.tuples(MODES, MODES), st.integers(-3, 5), st.integers(1, 9))
def test_a_title_is_a_sum_that_is_the_offset(shape: object, scale: int, other: int) -> None:
    def moved(tree: object) -> object:
        return tuple(map(moved, tree)) if isinstance(tree, tuple) else int(tree) * scale + other  # type: ignore[call-overload]

    layout = cute.Layout(shape, moved(cute.Layout(shape).stride))
    for cell in cells(draw_layout(layout)):
        coordinate, way = cell.title.split(" -> ")
        sum_of = way.split(" = ")
        assert eval(sum_of[0]) == int(sum_of[-1]) == int(cell.text) == layout(cute.parse(coordinate))


def test_a_composed_layout_tells_what_comes_after_the_strides() -> None:
    layout = cute.parse("Sw<2,0,3> o 5 o (8,8):(8,1)")
    cell = cells(draw_layout(layout))[8 * 7 + 2]
    assert cell.title == f"(7,2) -> 7*8 + 2*1 -> Sw<2,0,3>(5 + 58) = {layout(7, 2)}"
    assert int(cell.text) == int(layout(7, 2))


@pytest.mark.parametrize(
    ("text", "legend", "tones"),
    [
        ("(4,8):(8,1)", "colour: offset modulo 8:", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("(3,4):(0,100000000)", "colour: offset / 100000000 modulo 8:", [0, 1, 2, 3]),
        ("(2,4):(-16,48)", "colour: offset / 16 modulo 8:", [0, 3, 6, 1]),
        ("(2,3):(_64@0,_1@1)", "colour: mode 0 of the coordinate / 64 modulo 8:", [0, 0, 0]),
    ],
)
def test_colours_change_with_the_offset_whatever_the_strides(text: str, legend: str, tones: list[int]) -> None:
    picture = draw_layout(cute.parse(text))
    assert legend in words(picture)
    assert [c.tone for c in cells(picture)][: len(tones)] == [f"tone{t}" for t in tones]
    assert "colour" not in picture.text


def test_colour_by_bank_needs_a_width() -> None:
    layout = cute.parse("(8,64):(64,1)")
    with pytest.raises(InvalidTypeError, match="the width of an element, must be an integer, got NoneType"):
        draw_layout(layout, "bank")
    by_bank = cells(draw_layout(layout, "bank", bits=16))
    assert draw_layout(layout, "bank", bits="bf16") == draw_layout(layout, "bank", bits=16)
    assert draw_compare(layout, bits="float16") == draw_compare(layout, bits=16)
    assert by_bank[0].title == "(0,0) -> 0, byte 0, bank 0"
    assert by_bank[9].title == "(0,9) -> 9*1 = 9, byte 18, bank 4"
    assert [by_bank[i].tone for i in (0, 7, 8, 63, 64)] == ["tone0", "tone0", "tone1", "tone7", "tone0"]


def test_colour_by_thread_and_tile() -> None:
    layout = cute.Layout((4, 4))
    assert [c.tone for c in cells(draw_layout(layout, "thread"))[::4]] == ["tone0", "tone1", "tone2", "tone3"]
    tiles = cells(draw_layout(layout, "tile", tile=(2, 2)))
    assert tiles[0].tone == tiles[1].tone == tiles[5].tone
    assert len({tiles[i].tone for i in (0, 2, 8, 10)}) == 4
    assert tiles[11].title.endswith("tile (1,1)")
    said = "tiles of 2 x 2; cells of one colour side by side are one of them"
    picture = draw_layout(layout, "tile", tile=(2, 2))
    assert said in words(picture)
    assert picture.text.splitlines()[-1] == said


@pytest.mark.parametrize(
    ("options", "words_of_it"),
    [
        ({"color": "rainbow"}, "color = 'rainbow'; must be one of 'value', 'bank', 'thread', 'tile'"),
        ({"color": "tile"}, "color='tile' needs the tile"),
        ({"color": "tile", "tile": (0, 2)}, r"tile\[0\] = 0; must be at least 1"),
        ({"color": "bank", "bits": 0}, "the width of an element, = 0; must be 1 to 128"),
        ({"color": "bank", "bits": True}, "the width of an element, must be an integer, got bool True"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words_of_it: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=words_of_it):
        draw_layout(cute.Layout((4, 4)), **options)  # type: ignore[arg-type]


def test_a_large_layout_is_summarised_and_says_so() -> None:
    picture = draw_layout(cute.parse("(1000000,1000000):(1000000,1)"))
    assert picture.count == 63 * 63
    assert "summarised: 1000000 x 1000000 cells; 63 x 63 are drawn" in picture.text
    assert "summarised: 1000000 x 1000000 cells; 63 x 63 are drawn" in words(picture)
    assert len(picture.svg) < 1_500_000
    assert cells(picture)[-1].text == "999999999999"


def test_many_large_layouts_share_one_budget() -> None:
    picture = draw_compare(*[cute.parse("(512,512):(512,1)")] * 16)
    assert picture.count <= PICTURE_CELLS
    assert picture.text.count("summarised: 512 x 512") == 16
    assert len(picture.svg) < 1_500_000


def test_comparing_draws_one_table_each() -> None:
    layout = cute.Layout((4, 8), (8, 1))
    divided = cute.zipped_divide(layout, (2, 4))
    picture = draw_compare(layout, divided, names=("A", "by (2,4)"))
    assert len(picture.tables) == 2
    assert {"A: (4,8):(8,1)", f"by (2,4): {divided}"} <= words(picture)
    by_offset: dict[str, set[str]] = {}
    for cell in cells(picture):
        by_offset.setdefault(cell.text, set()).add(cell.tone)
    assert len(by_offset) == 32
    assert all(len(tones) == 1 for tones in by_offset.values())


def test_a_divided_layout_tells_where_its_elements_were() -> None:
    layout = cute.Layout((4, 8), (8, 1))
    divided = cute.zipped_divide(layout, (2, 4))
    drawn = cells(draw_compare(layout, divided, names=("A", "tiles")))
    assert all("has it at" not in cell.title for cell in drawn[:32])
    for cell in drawn[32:]:
        place = cell.title.split("; A has it at ")[1]
        assert int(layout(cute.parse(place))) == int(cell.text)


def test_a_composition_tells_what_the_left_side_does() -> None:
    a, b = cute.Layout(20, 2), cute.Layout((5, 4), (4, 1))
    drawn = cells(draw_compare(a, b, cute.composition(a, b), names=("A", "B", "A o B")))
    assert drawn[-1].title == "(4,3) -> 4*8 + 3*2 = 38; A has it at 19"
    assert int(b(4, 3)) == 19


def test_comparing_refuses_what_it_cannot_draw() -> None:
    layout = cute.Layout(4)
    with pytest.raises(InvalidValueError, match="takes 1 to 16 layouts, got 0"):
        draw_compare()
    with pytest.raises(InvalidValueError, match="takes 1 to 16 layouts, got 17"):
        draw_compare(*[layout] * 17)
    with pytest.raises(InvalidValueError, match="1 names for 2 layouts"):
        draw_compare(layout, layout, names=("a",))
    with pytest.raises(InvalidTypeError, match="must be a Layout, got int 4"):
        draw_compare(layout, 4)


def test_coordinate_tensors_show_coordinates_and_strides() -> None:
    picture = draw_tensor(cute.parse("ArithTuple(1,0) o (2,3):(_1@1,_2@0)"))
    assert [c.text for c in cells(picture)] == ["(1,0)", "(3,0)", "(5,0)", "(1,1)", "(3,1)", "(5,1)"]
    assert "↓ mode 0 = 2:_1@1   → mode 1 = 3:_2@0" in words(picture)
    assert [c.title for c in cells(picture)][-1] == "(1,2) -> (1,0) + 1*1@1 + 2*2@0 = (5,1)"
    assert [c.tone for c in cells(picture)] == ["tone0", "tone1", "tone2"] * 2


def test_other_tensors_show_offsets() -> None:
    counted = draw_tensor(cute.make_tensor(cute.counting_iterator(5), cute.Layout((2, 2))))
    assert [c.text for c in cells(counted)] == ["5", "7", "6", "8"]
    pointed = draw_tensor(cute.parse("gmem_ptr[16b](0x1000) o (2,2):(2,1)"))
    assert [c.title for c in cells(pointed)][-1] == "(1,1) -> 1*2 + 1*1 = 3, byte 6, bank 1"
    with pytest.raises(InvalidTypeError, match="tensor must be a Tensor, got int 3"):
        draw_tensor(3)


def test_symbols_are_refused() -> None:
    import sympy

    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(InvalidTypeError, match="a picture needs known sizes, got n"):
        draw(cute.Layout((n, 4)))


def test_each_element_of_a_tile_names_its_thread_and_value() -> None:
    tile, tv = make_layout_tv(cute.parse("(_4,_8):(_8,_1)"), cute.parse("(_2,_2):(_1,_2)"))
    picture = draw_tv(tv, tile)
    drawn = cells(picture)
    assert len(drawn) == 8 * 16
    for i in range(8):
        for j in range(16):
            thread, value = (int(part[1:]) for part in drawn[16 * i + j].text.split("\n"))
            assert int(tv(thread, value)) == i + 8 * j
    assert picture.notes == ()


def test_holes_and_copies_of_a_tile_are_told() -> None:
    picture = draw_tv(cute.Layout((2, 2), (0, 2)), (4, 1))
    drawn = cells(picture)
    assert [c.text for c in drawn] == ["T0\nV0 +1", "", "T0\nV1 +1", ""]
    assert drawn[2].title == ("(2,0) -> thread 0 value 1, thread 1 value 1; layout -> 1*2 = 2, its index in the tile")
    assert [c.hatches for c in drawn] == [0, 1, 0, 1]
    assert picture.notes == (
        "2 of 4 elements belong to no thread",
        "2 elements are held more than once: +n counts the further holders",
    )


@pytest.mark.parametrize(
    ("layout", "tile", "error", "text"),
    [
        ("(4,4):(4,1)", (2, 2), InvalidValueError, "value 0 of thread 1 is element 4; the tile has 4"),
        ("8:1", (8,), InvalidValueError, "8:1 has 1 modes; must be 2, threads and values"),
        ("(2,2):(1,2)", (1, 2, 2), InvalidValueError, "must have one or two modes"),
        ("(2,2):(1,2)", "x", InvalidTypeError, "must be a shape of known sizes"),
        ("(2,2):(1@0,1@2)", (2, 2), InvalidTypeError, "needs coordinates"),
        ("(2,4):(1@0,1@1)", (2, 2), InvalidValueError, "value 2 of thread 0 is element"),
        ("(2,2)", (2, 2), InvalidTypeError, "draw_tv takes a layout"),
        ("(100000,100000):(0,0)", (2, 2), InvalidValueError, "must have at most 1048576"),
    ],
)
def test_bad_thread_value_layouts(layout: str, tile: object, error: type[CuteError], text: str) -> None:
    with pytest.raises(error, match=text):
        draw_tv(cute.parse(layout), tile)
