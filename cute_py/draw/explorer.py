"""The explorer: one page on which a person types layouts and sees the TMA copy that they make.

The page is a single file without network. Its engine is JavaScript (`web/`), which works on the tables of this
library (`explorer_facts`); `explorer_answer` gives the library's own answer, for tests and for `cute-py serve`.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Final

from cute_py.draw.explorer_facts import facts
from cute_py.draw.style import DARK, LIGHT

ENGINE: Final = (
    "leaf.js",
    "algebra.js",
    "parse.js",
    "gbasis.js",
    "plan.js",
    "descriptor.js",
    "tile.js",
    "fixes.js",
    "engine.js",
)
"""The files of the engine, in the order in which they are loaded."""
DOM: Final = ("pictures.js", "sections.js", "page.js")
"""What draws and listens, after the engine."""
CHECK: Final = "checked.js"
"""Asks the server for the library's answer; only in the page that a server sends."""


def web_file(name: str) -> str:
    """The text of a file of `cute_py/draw/web`."""
    return resources.files("cute_py.draw").joinpath("web", name).read_text(encoding="utf-8")


def engine_source() -> str:
    """The engine as one script: the facts, then its files. It needs no document.

    >>> engine_source().startswith('"use strict";')
    True
    """
    table = json.dumps(facts(), separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return "\n".join(['"use strict";', f"const FACTS = {table};", *(web_file(name) for name in ENGINE)])


def explorer_page(*, served: bool = False) -> str:
    """The page as text.

    Args:
        served: the page comes from `cute-py serve` and may ask it for the library's answer; else it has no code that
            could reach a network.

    >>> page = explorer_page()
    >>> page.startswith("<!doctype html>"), "fetch(" in page
    (True, False)
    """
    names = (*DOM, CHECK) if served else DOM
    script = "\n".join([engine_source(), *(web_file(name) for name in names), "start();"])
    style = web_file("page.css").replace("/*LIGHT*/", _tones(LIGHT)).replace("/*DARK*/", _tones(DARK))
    style += "".join(f"svg.picture .tone{i} {{ fill: var(--tone{i}); }}\n" for i in range(len(LIGHT)))
    return web_file("page.html").replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)


def _tones(colours: tuple[str, ...]) -> str:
    return "".join(f"  --tone{i}: {colour};" for i, colour in enumerate(colours))
