"""The pages of docs/measurements: each begins with its question, is in the index, and shows the figures of its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.beside import Row, condensed, into_page, table
from tests.each import each_of
from tests.test_links import links

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "measurements"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
BESIDE = {
    "layout-x86": condensed,
    "descriptor-x86": table,
    "emulator-x86": table,
    "cli-x86": table,
    "page-x86": table,
    "formats-x86": table,
}
"""What `benchmarks.beside.report` writes, and how the page shows its rows."""


def rows(content: dict[str, Any]) -> list[Row]:
    return [Row(**{name: value for name, value in row.items() if name != "holds"}) for row in content["rows"]]


@each_of("page", PAGES, ids=lambda path: path.name)
def test_a_page_is_in_the_index_and_begins_with_its_question(page: Path) -> None:
    assert page.name in links((FOLDER / "README.md").read_text())
    title, opening = page.read_text().split("\n\n")[:2]
    assert title.startswith("# ")
    assert "?" in opening


@pytest.mark.parametrize("name", BESIDE)
def test_a_page_shows_the_figures_of_its_json(name: str) -> None:
    content = json.loads((FOLDER / f"{name}.json").read_text())
    (page,) = [text for text in map(Path.read_text, PAGES) if f"<!-- {name} -->" in text]
    shown = page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end of {name} -->")[0]
    assert BESIDE[name](rows(content)) in shown
    assert {content["date"], content["machine"]} <= set(shown.strip().splitlines()[0].split("; "))


def test_the_machine_s_page_quotes_the_list_of_tcgen05_forms() -> None:
    words = r"assembles (\d+) recorded.*?executes (\d+) of them\s+and\s+refuses (\d+)"
    found = re.search(words, (FOLDER / "tcgen05-forms.md").read_text(), re.DOTALL)
    assert found is not None
    recorded, executed, refused = found.groups()
    assert (
        f"{executed} of {recorded} recorded instructions run, {refused} are refused"
        in (FOLDER / "machine.md").read_text()
    )


def test_a_table_goes_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- end of x -->\nafter\n")
    assert into_page(tmp_path, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nafter\n"
    assert not into_page(tmp_path, "y", "new")
    assert page.read_text() == "before\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nafter\n"


def test_rows_of_one_operation_become_one_line() -> None:
    found = [
        Row("add, small", 2.0, {"peer": 4.0}, 0.5, 1.0),
        Row("add, large", 30.0, {"peer": 20.0, "other": 25.0}, 1.5, 1.0),
        Row("alone", 3.0, {}, 3.0, None),
    ]
    assert condensed(found).splitlines()[2:] == [
        "| add | 2 | 2 to 30 us | 4 to 20 us | 0.5 to 1.5 x | 1.0 | 1 |",
        "| alone | 1 | 3 us | - | 3 us | - | 0 |",
    ]
