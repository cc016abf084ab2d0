"""What notebooks show: the HTML of every kind of object, and that IPython is told of them, and of nothing else."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import cute_py as cute
from cute_py.draw.layouts import draw_layout
from cute_py.draw.notebook import CELLS, CUT_NOTE, cut_table, error_html, fitted, object_html
from cute_py.draw.picture import Picture
from cute_py.draw.table import Cell, Table
from cute_py.errors import CuteError, InvalidValueError, TmaLimitError
from cute_py.notebook import FORMAT, SHOWN, register, register_where_running, unregister
from cute_py.notebook import html as shown
from cute_py.testing.strategies import layouts, shapes, swizzled_layouts, swizzles
from cute_py.tma.descriptor.request import TensorMapTiled
from tests.draw.structure import cells, words
from tests.each import each_of

SVG = "{http://www.w3.org/2000/svg}"
REQUEST = TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)


def atom() -> Any:
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(100,200):(200,_1)"))
    smem = cute.parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_32,_64):(_64,_1)")
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem)


def parsed(text: str) -> ElementTree.Element:
    """The HTML as a tree: it closes what it opens."""
    return ElementTree.fromstring(text)


@pytest.mark.parametrize(
    ("thing", "titles", "told"),
    [
        (lambda: cute.parse("(4,(2,4)):(8,(4,1))"), "(3,(1,3)) -> ", "it turns a coordinate into an offset"),
        (lambda: cute.parse("Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_16):(_16,_1)"), "bank", "A composition"),
        (lambda: cute.Swizzle(3, 4, 3), "bank", "the 128B swizzle of TMA"),
        (lambda: cute.make_identity_tensor((4, 5)), "(3,4) -> ", "A tensor of coordinates of 2 modes"),
        (lambda: atom().gtensor, "(99,199) -> ", "float16"),
        (atom, "", "from the tile to the box"),
        (lambda: REQUEST, "", "tiled tensor map, FLOAT16, rank 2"),
    ],
    ids=["layout", "composed", "swizzle", "coordinates", "tensor", "atom", "request"],
)
def test_an_object_shows_its_text_its_picture_and_its_explanation(thing: Any, titles: str, told: str) -> None:
    value = thing()
    tree = parsed(shown(value))
    pre = tree.findall("pre")
    assert [p.text for p in pre] == [str(value)]
    (svg,) = tree.iter(f"{SVG}svg")
    assert titles in "\n".join(t.text or "" for t in svg.iter(f"{SVG}title"))
    (details,) = tree.findall("details")
    assert told in "".join(details.itertext())


def test_a_picture_is_shown_in_the_page_itself() -> None:
    picture = draw_layout(cute.Layout((2, 3)))
    text = object_html(picture)
    assert picture.svg in text
    assert "<pre" not in text


def test_a_map_that_no_driver_writes_shows_every_broken_rule() -> None:
    bad = TensorMapTiled(6, 4096, (512, 1024), (1024,), (300, 300), swizzle=3)
    text = unescape("".join(parsed(shown(bad)).itertext()))
    assert "no picture: cuTensorMapEncodeTiled: the request breaks 4 rules of sm_90a" in text
    assert "boxDim[1] = 300 elements; must be 1 to 256" in text
    with pytest.raises(TmaLimitError) as caught:
        cute.tma.encode(bad)
    tree = parsed(shown(caught.value))
    assert "TmaLimitError: cuTensorMapEncodeTiled" in "".join(tree[0].itertext())
    assert tree.find("details") is not None


def test_sizes_that_are_not_known_are_said() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    text = unescape("".join(parsed(shown(cute.Layout((n, 4), (4, 1)))).itertext()))
    assert text.startswith("(n,4):(4,1)no picture: ")


def test_an_error_in_full() -> None:
    error = InvalidValueError("a < b", {"value": "1 & 2"}, "3 > 2")
    assert error_html(error) == (
        '<div class="cute-error"><div style="color:#c0392b;font-weight:bold">InvalidValueError: a &lt; b</div><table>'
        '<tr><td style="text-align:left;vertical-align:top;white-space:pre-wrap">value</td>'
        '<td style="text-align:left;vertical-align:top;white-space:pre-wrap">1 &amp; 2</td></tr>'
        '<tr><td style="color:#1e8449;text-align:left;vertical-align:top;white-space:pre-wrap">hint</td>'
        '<td style="color:#1e8449;text-align:left;vertical-align:top;white-space:pre-wrap">3 &gt; 2</td></tr>'
        "</table></div>"
    )
    assert "<table>" not in error_html(CuteError("alone"))


def test_a_large_layout_is_cut_and_says_so() -> None:
    layout = cute.Layout((128, (16, 16)), ((256), (16, 1)))
    whole = draw_layout(layout)
    small = fitted(whole)
    assert small.count <= CELLS < whole.count
    assert small.notes[-1] == CUT_NOTE
    assert "summarised: 128 x 256 cells; 31 x 31 are drawn" in small.text
    assert len(shown(layout)) < 250_000
    drawn = {cell.title: cell.text for cell in cells(small)}
    assert "32767" in drawn.values()
    assert len(drawn) == small.count == 31 * 31
    assert drawn.items() <= {cell.title: cell.text for cell in cells(whole)}.items()
    assert "…" in words(small)


@settings(max_examples=40)
@given(st.one_of(layouts(), swizzled_layouts(), swizzles(), shapes().map(cute.make_identity_tensor)))
def test_everything_shows_itself_in_bounds(thing: Any) -> None:
    text = shown(thing)
    assert parsed(text).find("pre") is not None
    assert len(text) < 400_000


def test_a_small_picture_stays_as_it_is() -> None:
    picture = draw_layout(cute.Layout((32, 32)))
    assert picture.count == CELLS
    assert fitted(picture) is picture


def test_a_table_of_cells_that_span_columns_stays_as_it_is() -> None:
    wide = Cell("x", span=2)
    table = Table("", ((wide,),) * 2000, ("0",) * 2000, ("0", "1"))
    picture = Picture("t", (table,))
    assert fitted(picture) is picture


def test_the_explanation_has_its_own_form_unless_it_is_long() -> None:
    class Words(str):
        def _repr_html_(self) -> str:
            return "<b>own</b>"

    layout = cute.Layout((2, 3))
    assert "<b>own</b>" in object_html(layout, lambda thing: Words("short"))
    assert "… (1000 more characters)" in object_html(layout, lambda thing: Words("x" * 5000))
    assert "<details>" not in object_html(layout)

    def none(thing: Any) -> str:
        raise CuteError("no words")

    assert "<details>" not in object_html(layout, none)


def test_long_texts_are_cut_and_counted() -> None:
    assert "… (1000 more characters)" in error_html(CuteError("long", {"value": "x" * 5000}))


@settings(max_examples=25)
@given(st.integers(1, 70), st.integers(1, 40), st.integers(8, 40))
def test_cutting_keeps_labels_cells_and_brackets_together(rows: int, columns: int, limit: int) -> None:
    layout = cute.Layout((rows, (columns, 2)), (1000, (1, 500)))
    (table,) = draw_layout(layout).tables
    small = cut_table(table, limit)
    assert len(small.rows) == len(small.row_labels) <= limit
    assert len(small.column_labels) <= limit
    where = {
        (r, c): table.rows[i][j] for i, r in enumerate(table.row_labels) for j, c in enumerate(table.column_labels)
    }
    for label, row in zip(small.row_labels, small.rows, strict=True):
        assert len(row) == len(small.column_labels)
        for column, cell in zip(small.column_labels, row, strict=True):
            if cell is not None:
                assert cell == where[label, column]
            else:
                assert "…" in (label, column)
    for kind in ("row_brackets", "column_brackets"):
        for bracket_row in getattr(small, kind):
            stops = [0]
            for bracket in bracket_row.brackets:
                assert stops[-1] <= bracket.start < bracket.stop
                stops.append(bracket.stop)
    assert draw_layout(layout).text if small is table else Picture("", (small,)).text


@each_of(("module", "name"), SHOWN)
def test_every_row_names_a_class_where_it_is_defined(module: str, name: str) -> None:
    found = getattr(importlib.import_module(module), name)
    assert (found.__module__, found.__qualname__) == (module, name)


class Formatter(dict[str, Any]):
    """What `register` asks of IPython's formatters."""

    def for_type_by_name(self, module: str, name: str, shower: Any) -> None:
        self[f"{module}.{name}"] = shower


def shell() -> Any:
    return SimpleNamespace(display_formatter=SimpleNamespace(formatters={FORMAT: Formatter()}))


def test_registering_and_taking_it_back() -> None:
    made = shell()
    register(made)
    rows = made.display_formatter.formatters[FORMAT]
    assert set(rows) == {f"{module}.{name}" for module, name in SHOWN}
    assert all("<" in shower(cute.Layout((2, 3))) for shower in rows.values())
    unregister(made)
    unregister(made)
    assert not rows


@pytest.mark.parametrize(
    ("module", "registered"),
    [
        (None, False),
        (SimpleNamespace(), False),
        (SimpleNamespace(get_ipython=lambda: None), False),
        (SimpleNamespace(get_ipython=lambda: SimpleNamespace()), False),
        (SimpleNamespace(get_ipython=lambda: SimpleNamespace(display_formatter=SimpleNamespace(formatters={}))), False),
        (SimpleNamespace(get_ipython=shell), True),
    ],
    ids=["absent", "half imported", "not running", "other", "no html", "running"],
)
def test_only_a_running_ipython_is_told(monkeypatch: pytest.MonkeyPatch, module: Any, registered: bool) -> None:
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert register_where_running() is registered


def test_importing_the_library_imports_neither_ipython_nor_pictures() -> None:
    script = "import sys, cute_py; print([m for m in ('IPython', 'cute_py.draw', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


SESSION = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.display_formatter.active_types = shell.display_formatter.format_types
def formats(cell):
    return dict(shell.display_formatter.format(shell.run_cell(cell, store_history=False).result)[0])
before = "cute_py" in sys.modules
out = {"layout": formats("import cute_py as cute; cute.Layout((4, 8))")}
out["draw before"] = "cute_py.draw" in sys.modules
out["tensor"] = formats("cute.make_identity_tensor((2, 3))")
out["error"] = formats("cute.errors.ParseError('no layout', {'text': '(4,8'})")
out["number"] = formats("cute.Int(4)")
shell.run_line_magic("load_ext", "cute_py")
shell.run_line_magic("unload_ext", "cute_py")
out["after"] = formats("cute.Layout((4, 8))")
print("RESULT" + json.dumps([before, out]))
"""


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="needs IPython")
def test_in_a_real_ipython(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        check=True,
    )
    before, out = json.loads(done.stdout.rsplit("RESULT", 1)[1])
    assert not before
    assert "<svg" in out["layout"]["text/html"]
    assert out["layout"]["text/plain"].startswith("Layout(")
    assert "(1,2) -> " in unescape(out["tensor"]["text/html"])
    assert "ParseError: no layout" in out["error"]["text/html"]
    assert list(out["number"]) == list(out["after"]) == ["text/plain"]
