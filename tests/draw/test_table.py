"""What is drawn of a long axis, brackets, and how a picture is shown and saved."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.draw.layouts import draw_layout
from cute_py.draw.picture import Picture
from cute_py.draw.render_svg import CHARACTER
from cute_py.draw.table import (
    AXIS_LIMIT,
    PICTURE_CELLS,
    Cell,
    Legend,
    Table,
    axis_limit,
    brackets,
    cut_note,
    hatch_legend,
    shown,
    shown_around,
)
from cute_py.draw.text_renderer import WIDTH
from cute_py.errors import FileFormatError, InvalidValueError
from cute_py.layout.layout import Layout
from cute_py.notation.parse import parse
from tests.draw.structure import SVG, cells, words


@given(st.integers(0, 10_000), st.integers(8, 80))
def test_an_axis_is_whole_or_cut_once(count: int, limit: int) -> None:
    indices = shown(count, limit)
    numbers = [i for i in indices if i is not None]
    assert len(indices) <= limit
    assert numbers == sorted(set(numbers))
    assert indices.count(None) == (count > limit)
    if count:
        assert (numbers[0], numbers[-1]) == (0, count - 1)


@pytest.mark.parametrize(("count", "cut"), [(AXIS_LIMIT, False), (AXIS_LIMIT + 1, True)])
def test_the_limit_itself_is_drawn_whole(count: int, cut: bool) -> None:
    assert (None in shown(count)) is cut
    assert bool(cut_note(count, 1, shown(count), [0])) is cut


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 16))
def test_a_picture_never_has_more_cells_than_its_budget(rows: int, columns: int, tables: int) -> None:
    limit = axis_limit(rows, columns, tables)
    assert min(rows, limit) * min(columns, limit) * tables <= PICTURE_CELLS


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_brackets_cover_every_index_with_the_coordinate_of_its_leaf(sizes: list[int]) -> None:
    count = 1
    for size in sizes:
        count *= size
    paths = [str(i) for i in range(len(sizes))]
    span: dict[str, int] = {}
    for leaf in range(len(sizes)):
        span[str(leaf)] = 1 if leaf == 0 else span[str(leaf - 1)] * sizes[leaf - 1]
    for row in brackets(sizes, paths, list(range(count))):
        covered = [i for bracket in row.brackets for i in range(bracket.start, bracket.stop)]
        assert covered == list(range(count))
        for bracket in row.brackets:
            for i in range(bracket.start, bracket.stop):
                assert bracket.text == str(i // span[row.name] % sizes[int(row.name)])


def test_brackets_stop_at_a_gap() -> None:
    row = brackets((4, 8), ("0", "1"), [0, 1, None, 30, 31])[0]
    assert [(b.start, b.stop, b.text) for b in row.brackets] == [(0, 2, "0"), (3, 5, "7")]


def test_the_svg_and_the_text_have_the_same_cells() -> None:
    picture = draw_layout(Layout((3, (2, 2)), (4, (1, 2))))
    drawn = cells(picture)
    assert len(drawn) == picture.count == 12
    assert [c.text for c in drawn] == ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]
    assert all(c.title for c in drawn)
    for row in ("0 | 0  1   2   3", "2 | 8  9  10  11"):
        assert row in picture.text
    assert {"1.1", "↓ mode 0 = 3:4   → mode 1 = (2,2):(1,2)"} <= words(picture)


@given(st.integers(1, 3000), st.integers(24, 80), st.data())
def test_what_is_wanted_of_a_long_axis_is_drawn(count: int, limit: int, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, count - 1), max_size=6))
    indices = shown_around(count, limit, wanted)
    numbers = [i for i in indices if i is not None]
    assert set(wanted) | {0, count - 1} <= set(numbers)
    assert numbers == sorted(set(numbers))
    for left, gap, right in zip(indices, indices[1:], indices[2:], strict=False):
        if gap is None:
            assert left is not None
            assert right is not None
            assert right > left + 1
    assert None in indices or numbers == list(range(count))


def test_names_of_row_brackets_do_not_overlap() -> None:
    picture = draw_layout(parse("(((2,2),2),((2,2),(2,2))):(((1,16),4),((2,8),(32,64)))"))
    at = {t.text: float(t.get("x", "0")) for t in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")}
    assert at["0.1"] + 1 < at["0.0.1"] - len("0.0.1") * CHARACTER
    assert at["0.1"] - len("0.1") * CHARACTER > 0


def test_every_text_stays_within_the_picture() -> None:
    picture = draw_layout(
        parse("((2,2),(4,2)):((1,8),(2,16))"), title="a long title of a small table, longer than it is wide"
    )
    root = ElementTree.fromstring(picture.svg)
    wide, high = float(root.get("width", "0")), float(root.get("height", "0"))
    for group in root.iter(f"{SVG}g"):
        move = group.get("transform", "translate(0 0)")[len("translate(") : -1].split()
        for text in group.findall(f".//{SVG}text") if group.get("class") == "table" else ():
            kind = text.get("class", "")
            length = len(text.text or "") * CHARACTER
            left = (
                float(text.get("x", "0"))
                + float(move[0])
                - (length if "end" in kind else length / 2 if "mid" in kind else 0)
            )
            assert left >= 0
            assert left + length <= wide
            assert float(text.get("y", "0")) + float(move[1]) <= high


def test_a_long_title_takes_several_lines() -> None:
    picture = draw_layout(Layout((2, 4)), title="several words " * 12)
    lines = [t.text or "" for t in ElementTree.fromstring(picture.svg).iter(f"{SVG}text") if t.get("class") == "title"]
    assert len(lines) == 2
    assert " ".join(lines).split() == ("several words " * 12).split()
    assert float(ElementTree.fromstring(picture.svg).get("width", "0")) < 1000


def test_a_wide_table_is_broken_into_parts_in_the_text() -> None:
    picture = draw_layout(Layout((3, (10, 6)), (60, (1, 10))))
    lines = picture.text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    numbers = [line.split("|")[1].split() for line in lines if line.startswith("   0 |")]
    assert [int(n) for part in numbers for n in part] == list(range(60))
    assert sum(1 for line in lines if set(line) == {"-", "+"}) == len(numbers) == 3
    assert sum(line.count("[") for line in lines if line.startswith(" 1.1 |")) == 6  # No bracket is cut in two.


def test_parts_without_brackets_have_a_multiple_of_eight_columns() -> None:
    lines = draw_layout(Layout((2, 64), (64, 1))).text.splitlines()
    first = [line.split("|")[1].split() for line in lines if line.startswith("0 |")]
    assert [len(part) for part in first] == [24, 24, 16]
    wide = draw_layout(Layout((2, 3), (10**36, 1))).text.splitlines()
    assert max(map(len, wide)) <= WIDTH + 36  # A single column is never cut.


def test_long_notes_are_broken_between_words() -> None:
    table = Table("", ((Cell("1", "t"),),), ("0",), ("0",))
    picture = Picture("t", (table,), (" ".join(["word"] * 60), "  indented"))
    assert max(len(text) for text in words(picture)) <= 120
    assert max(map(len, picture.text.splitlines())) <= WIDTH
    assert picture.text.count("word") == 60
    assert "  indented" in words(picture)


def test_a_legend_has_the_swatches_that_are_used_and_the_text_those_that_it_needs() -> None:
    legends = (
        Legend("", ((1, "one"), (2, "two"))),
        hatch_legend("outside"),
        Legend("a sentence"),
        Legend("letters", ((1, "x one"),), in_text=True),
    )
    table = Table("", ((Cell("a", "t", 1), Cell("b", "t", 3, (0.5, 1.0))),), ("0",), ("0", "1"), legends=legends)
    picture = Picture("t", (table, table))
    drawn = [t.text for t in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]
    assert [drawn.count(text) for text in ("one", "two", "outside", "a sentence", "letters:", "x one")] == [
        1,
        0,
        1,
        1,
        1,
        1,
    ]
    assert picture.text.count("/ outside") == 2
    assert "x one; letters" in picture.text
    assert "a sentence" not in picture.text


def test_texts_are_escaped() -> None:
    cell = Cell('<&">', 'a < b & "c"', inside=(0.5, 0.5))
    picture = Picture("<x>", (Table("&", ((cell, None),), ("<",), (">", "…")),), ("&amp;",))
    drawn = cells(picture)
    assert (drawn[0].text, drawn[0].title, drawn[0].hatches) == ('<&">', 'a < b & "c"', 2)
    assert {"<x>", "&", "<", ">", "&amp;", "…"} <= words(picture)
    assert "&lt;x&gt;" in picture.html


def test_a_picture_has_light_and_dark_colours_and_no_variables() -> None:
    style = ElementTree.fromstring(draw_layout(Layout(4)).svg).find(f"{SVG}style")
    assert style is not None
    assert style.text is not None
    assert "@media (prefers-color-scheme: dark)" in style.text
    assert "var(" not in style.text


def test_a_notebook_shows_the_svg() -> None:
    picture = draw_layout(Layout(4))
    assert picture._repr_svg_() == picture.svg
    assert str(picture) == picture.text


@pytest.mark.parametrize(("name", "start"), [("a.svg", "<svg"), ("b.html", "<!doctype html>"), ("c.txt", "4:1")])
def test_saving_writes_the_whole_file(tmp_path: Path, name: str, start: str) -> None:
    picture = draw_layout(Layout(4, 1))
    written = picture.save(tmp_path / name)
    assert written.read_text(encoding="utf-8").startswith(start)
    assert os.listdir(tmp_path) == [name]


def test_saving_over_a_file_replaces_it(tmp_path: Path) -> None:
    target = tmp_path / "a.svg"
    target.write_text("previous")
    draw_layout(Layout(4)).save(str(target))
    assert "previous" not in target.read_text(encoding="utf-8")


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    picture = draw_layout(Layout(4))
    with pytest.raises(InvalidValueError, match=r"a picture is saved as \.svg, \.png, \.html, \.txt, not '\.gif'"):
        picture.save(tmp_path / "a.gif")
    with pytest.raises(FileFormatError, match="can't be written: No such file or directory"):
        picture.save(tmp_path / "none" / "a.svg")
    (tmp_path / "b.svg").mkdir()
    with pytest.raises(FileFormatError, match="can't be written"):
        picture.save(tmp_path / "b.svg")
    assert os.listdir(tmp_path) == ["b.svg"]
