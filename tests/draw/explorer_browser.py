"""Load the explorer in a headless browser and read the document that it made."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser() -> str:
    """The program; the test is skipped where there is none."""
    found = os.environ.get("CUTE_PY_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here to load the page; CUTE_PY_CHROMIUM names one")
    return found


def dumped(url: str, *more: str) -> Node:
    """The document of a page after its scripts ran; `more` are options of the browser."""
    program = browser()
    with TemporaryDirectory() as folder:
        options = ["--headless=new", "--disable-gpu", f"--user-data-dir={folder}", "--virtual-time-budget=5000", *more]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        command = [program, *options, "--dump-dom", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    reader = _Reader()
    reader.feed(done.stdout)
    return reader.root


class Node:
    """An element: name, attributes, children; `text` is all text in it."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Node | str] = []

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, name: str = "", class_: str = "") -> list[Node]:
        """Every element below, by name and class, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                classes = child.attributes.get("class", "").split()
                if (not name or child.name == name) and (not class_ or class_ in classes):
                    found.append(child)
                found += child.all(name, class_)
        return found

    def by_id(self, name: str) -> Node:
        return next(node for node in self.all() if node.attributes.get("id") == name)


class _Reader(HTMLParser):
    ALONE = frozenset(("meta", "input", "br", "link"))

    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in self.ALONE:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag in (node.name for node in self.open):
            while self.open.pop().name != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def page_url(folder: Path, page: str, hash_: str) -> str:
    """The page as a file, with what its address holds."""
    path = folder / "explorer.html"
    path.write_text(page, encoding="utf-8")
    return f"{path.as_uri()}#{hash_}"
