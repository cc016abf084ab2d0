"""The HTML of the site: fences are code, headings are headings, links lead somewhere, pictures follow the theme.

`make docs` builds the site and runs these tests with SITE=site; without SITE only the tests of the checks run.
mkdocs does not warn about a fence that it can't parse: the code becomes a paragraph, and headings vanish.
"""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import site_browser
from tests.draw.explorer_browser import browser
from tests.each import each_of
from tests.test_links import FENCE, HEADING, visible

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("SITE", "no-site")).resolve()
SOURCES = [
    path
    for path in sorted((ROOT / "docs").glob("**/*.md"))
    if "reference" not in path.parent.name and not path.name.startswith("0")
]
COLUMNS = 80
built = pytest.mark.skipif(not SITE.is_dir(), reason="no site was built: SITE names no folder")


@dataclass
class Page(HTMLParser):
    """What one page has: its prose outside code, headings, anchors, links, style sheets and pictures."""

    prose: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    pictures: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag in ("a", "img", "script", "link"):
            self.links += [str(given[name]) for name in ("href", "src") if given.get(name)]
        if tag == "svg" and "cute" in str(given.get("class")).split():
            self.pictures += 1
        if re.fullmatch("h[1-6]", tag):
            self.headings.append("")
        if tag not in ("img", "link", "meta", "br", "input", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            self.styles.append(data)
        elif {"code", "pre", "script", "svg"}.isdisjoint(self.open):
            self.prose.append(data)
        if any(re.fullmatch("h[1-6]", tag) for tag in self.open) and self.headings:
            self.headings[-1] += data


def page_of(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


def address(source: Path) -> Path:
    """The file of the site for a page of docs."""
    inside = source.relative_to(ROOT / "docs").with_suffix("")
    return SITE / (inside.parent if inside.name == "README" else inside) / "index.html"


def literal_fences(page: Page) -> list[str]:
    """Pieces of prose with the mark of a fence, which is one that was not parsed."""
    return [text.strip() for text in page.prose if "```" in text or "~~~" in text]


def plain(heading: str) -> str:
    return re.sub(r"[\s¶]+", " ", visible(heading).replace("¶", "")).strip()


def missing_headings(markdown: str, page: Page) -> list[str]:
    """Headings of the source that the page does not have as headings."""
    shown = {plain(heading) for heading in page.headings}
    return [h for h in HEADING.findall(FENCE.sub("", markdown)) if plain(h) not in shown]


def broken_links(file: Path, page: Page) -> list[str]:
    """Links of a page, within the site, to a file or an anchor that it does not have."""
    found = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            found.append(f"{link}: no such file")
        elif parts.fragment and target.suffix == ".html":
            other = page if target == file else page_of(target.read_text(encoding="utf-8"))
            if unquote(parts.fragment) not in other.ids:
                found.append(f"{link}: no such anchor")
    return found


@built
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_its_fences_headings_and_links(source: Path) -> None:
    file = address(source)
    page = page_of(file.read_text(encoding="utf-8"))
    assert literal_fences(page) == []
    assert missing_headings(source.read_text(encoding="utf-8"), page) == []
    assert [link for link in broken_links(file, page) if "__codelineno" not in link] == []


@built
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pictures_are_in_the_page_and_follow_its_theme(source: Path) -> None:
    page = page_of(address(source).read_text(encoding="utf-8"))
    named = re.findall(r"^!\[[^\]]*\]\([^)]*\.svg\)$", FENCE.sub("", source.read_text(encoding="utf-8")), re.MULTILINE)
    assert page.pictures == len(named)
    assert "prefers-color-scheme" not in "".join(page.styles)
    assert "".join(page.styles).count('[data-md-color-scheme="slate"] svg.cute-') >= 8 * len(named)


@each_of("source", [*SOURCES, ROOT / "README.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_code_is_at_most_80_columns_wide(source: Path) -> None:
    """Python that a reader copies; printouts are as wide as the library prints them, and wrap on the site."""
    if "measurements" in source.parts:
        return
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```", source.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if len(line) > COLUMNS] == []


def in_chromium(site: Path) -> list[list[object]]:
    """[page, window, kind, width of the content, width of its box, text] of each block that is too wide."""
    if site_browser.playwright() is None:
        pytest.skip("no node with playwright-core here; CUTE_PY_NODE_MODULES names its folder")
    pages = [f"{file.parent.relative_to(site)}/" for file in sorted(site.glob("**/index.html"))]
    return site_browser.run(site, browser(), {"pages": pages, "widths": [1280, 390]})


@built
def test_no_block_is_wider_than_the_page() -> None:
    """At 1280 px code and tables need no scroll; on a phone they scroll by themselves, and the page does not."""
    assert [row for row in in_chromium(SITE) if row[1] == 1280 or row[2] == "page"] == []


WIDE = """<div class="md-content"><h1>t</h1><pre><code>{0}</code></pre><p>{1}</p>
<div class="md-typeset__scrollwrap" style="overflow-x:auto"><table><tr><td>{0}</td></tr></table></div>
<div style="overflow:hidden"><svg class="cute" width="3000" height="9"></svg></div></div>"""


def test_blocks_that_are_too_wide_are_found(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "index.html").write_text("<style>pre{overflow:auto}</style>" + WIDE.format("x" * 900, "y"))
    (tmp_path / "broad").mkdir()
    (tmp_path / "broad" / "index.html").write_text(WIDE.format("x", "y" * 900).replace("3000", "30"))
    found = in_chromium(tmp_path)
    assert {(row[0], row[2]) for row in found if row[1] == 1280} == {
        ("bad/", "code"),
        ("bad/", "table"),
        ("bad/", "picture"),
        ("broad/", "page"),
    }


BAD = "<h1>Title</h1><p>```python no-run x = 1</p><p>prose ``` </p><pre><code>```</code></pre><a href='#gone'>x</a>"


def test_the_checks_find_what_they_are_for(tmp_path: Path) -> None:
    page = page_of(BAD)
    assert literal_fences(page) == ["```python no-run x = 1", "prose ```"]
    assert missing_headings("# Title\n\n## `Second` one\n", page) == ["`Second` one"]
    file = tmp_path / "index.html"
    file.write_text(BAD)
    assert broken_links(file, page) == ["#gone: no such anchor"]
    assert broken_links(file, page_of("<a href='x.html'>")) == ["x.html: no such file"]


def test_a_wide_picture_shrinks_until_its_labels_are_9_px_high() -> None:
    """Labels are drawn 11 px high; the style sheet lets a picture be as narrow as `min-width`."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    svg = (ROOT / "docs" / "guide" / "pictures" / "boxes.svg").read_text(encoding="utf-8")
    width = re.search(r'width="([\d.]+)"', svg)
    assert width is not None
    assert "font-size:11px" in svg
    least = re.search(r'style="min-width:(\d+)px"', pages.inline(svg))
    assert least is not None
    assert 9 <= 11 * (int(least[1]) + 1) / float(width[1]) < 9.1
