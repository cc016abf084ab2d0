"""Every link of the pages and notebooks leads somewhere: to a file that exists, at a heading that it has.

Anchors must hold by both rules that readers meet: GitHub's and that of the site (Python-Markdown's). Links of docs stay
inside docs, since the site has nothing else. No network is used: external links are listed here, so that a new one is
looked at once by a person.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *DOCS.glob("**/*.md"),
        *DOCS.glob("**/*.ipynb"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
    ]
)
EXTERNAL: frozenset[str] = frozenset(
    {
        "https://github.com/facebookresearch/tensor-layouts",
        "https://github.com/kainzhong/CuTe-Layout-Visualizer",
    }
)
"""Addresses outside the repository that pages may name."""

FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HREF = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
ADDRESS = re.compile(r"https?://[^\s)>\"'`]+")


def source(path: Path) -> str:
    """The Markdown of a page; of a notebook, that of its cells of prose."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")


def prose(text: str) -> str:
    """Without fenced blocks and code spans, whose brackets are no links."""
    return CODE.sub("", FENCE.sub("", text))


def links(text: str) -> list[str]:
    plain = prose(text)
    return [*LINK.findall(plain), *REFERENCE.findall(plain), *HREF.findall(plain)]


def visible(heading: str) -> str:
    """A heading's text: no marks of code, emphasis or links."""
    return re.sub(r"[`*]", "", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip()


def github_slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", visible(heading).lower()).replace(" ", "-")


def site_slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", visible(heading)).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def numbered(slugs: list[str], joiner: str) -> set[str]:
    """Equal headings get numbers: GitHub with `-1`, the site with `_1`."""
    out: set[str] = set()
    for slug in slugs:
        name, count = slug, 0
        while name in out:
            count += 1
            name = f"{slug}{joiner}{count}"
        out.add(name)
    return out


def anchors(text: str) -> set[str]:
    """The names of headings on which GitHub and the site agree."""
    headings = HEADING.findall(FENCE.sub("", text))
    return numbered([github_slug(h) for h in headings], "-") & numbered([site_slug(h) for h in headings], "_")


def broken(page: Path, text: str, external: frozenset[str] = EXTERNAL) -> list[str]:
    """What is wrong with the links of one page."""
    found = []
    for link in links(text):
        parts = urlsplit(link)
        if parts.scheme or link.startswith("//"):
            if parts.scheme != "https" or not parts.netloc or link not in external:
                found.append(f"{link}: external links begin with https:// and are listed in EXTERNAL")
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        if not target.is_file():
            found.append(f"{link}: no such file")
        elif page.is_relative_to(DOCS) and not target.is_relative_to(DOCS):
            found.append(f"{link}: leaves docs, where the site ends")
        elif parts.fragment and parts.fragment not in anchors(source(target)):
            found.append(f"{link}: no such heading; there are {', '.join(sorted(anchors(source(target))))}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    found = broken(page, source(page))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_bare_addresses_are_listed(page: Path) -> None:
    assert set(ADDRESS.findall(prose(source(page)))) <= EXTERNAL


def test_listed_addresses_are_used() -> None:
    used = {link for page in PAGES for link in [*links(source(page)), *ADDRESS.findall(prose(source(page)))]}
    assert used >= EXTERNAL


def test_every_page_is_reached() -> None:
    """From the first page of the documentation, by links; what is left is named in the site's list of contents."""
    seen, open_pages = set(), [DOCS / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in seen or page.suffix not in (".md", ".ipynb"):
            continue
        seen.add(page)
        for link in links(source(page)):
            if not urlsplit(link).scheme and urlsplit(link).path:
                open_pages.append((page.parent / urlsplit(link).path).resolve())
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    left = [p for p in PAGES if p.is_relative_to(DOCS) and p not in seen]
    assert [str(p) for p in left if str(p.relative_to(DOCS)) not in contents] == []


WRONG = {
    "no-such-page.md": "no such file",
    "README.md#no-such-heading": "no such heading",
    "http://example.org/": "external links",
    "https://example.org/": "external links",
    "mailto:someone": "external links",
    "../cute_py/errors.py": "leaves docs",
    "guide": "no such file",
}


@pytest.mark.parametrize("link", WRONG)
def test_a_wrong_link_is_found(link: str) -> None:
    (found,) = broken(DOCS / "README.md", f"# A\n\nText [name]({link}) text.")
    assert WRONG[link] in found


def test_right_links_pass() -> None:
    text = (
        "# A title\n[a](tutorial.md) [b][c] ![d](guide/pictures/layout.svg) [e](#a-title) `[f](g)`\n\n[c]: README.md\n"
    )
    assert links(text) == ["tutorial.md", "guide/pictures/layout.svg", "#a-title", "README.md"]
    page = DOCS / "tutorial.md"
    assert broken(page, "[x](README.md) [y](https://example.org)", frozenset({"https://example.org"})) == []


@pytest.mark.parametrize(
    ("heading", "github", "site"),
    [
        ("What does `1@0` mean?", "what-does-10-mean", "what-does-10-mean"),
        ("A - B", "a---b", "a-b"),
        ("Tensors that *store* nothing", "tensors-that-store-nothing", "tensors-that-store-nothing"),
        ("[A link](x.md) here", "a-link-here", "a-link-here"),
        ("snake_case", "snake_case", "snake_case"),
    ],
)
def test_slugs(heading: str, github: str, site: str) -> None:
    assert github_slug(heading) == github
    assert site_slug(heading) == site
    assert anchors(f"# {heading}\n") == ({github} if github == site else set())


def test_equal_headings_are_numbered() -> None:
    assert anchors("# a\n# b\n# a\n```\n# no heading\n```\n") == {"a", "b"}
    assert numbered(["a", "a", "a"], "-") == {"a", "a-1", "a-2"}
    assert numbered(["a", "a"], "_") == {"a", "a_1"}


DOCUMENT = re.compile(
    r"PTX ISA \d\.\d|CUTLASS [0-9a-f]{8}|CUTLASS \d\.\d\.\d|apache-tvm \d+\.\d+\.\d+|ptxas \d+\.\d+\.\d+|arXiv \d+\.\d+"
    r"|driver \d{3}\.\d+\.\d+|release notes \d{3}\.\d+\.\d+|CuTe DSL \d\.\d\.\d"
)


def test_documents_named_in_the_code_are_on_the_page_of_sources() -> None:
    """The version of each, too."""
    page = (DOCS / "sources.md").read_text(encoding="utf-8")
    named = {m for path in ROOT.glob("cute_py/**/*.py") for m in DOCUMENT.findall(path.read_text(encoding="utf-8"))}
    assert len(named) >= 8
    assert [name for name in sorted(named) if name.split()[-1] not in page] == []
