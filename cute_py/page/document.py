"""The playground: one page where users type layouts, atoms, copies, formats and errors, and this library answers.

The page itself implements no layout algebra. `cute_py.page.answer` computes the answers, either in a worker of `cute-py
serve`, or in the browser with Python for WebAssembly, which is packed into the file (`interpreter`). The file also
contains the first answer of each tab as HTML, so that it is visible before Python has started, or without an
interpreter.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
from importlib import resources
from os import PathLike
from typing import Any, Final
from urllib.parse import urlencode

from cute_py.argument_checks import expect
from cute_py.page.answer import answer_page
from cute_py.page.forms import TABS
from cute_py.page.html import Html, join_html, tag
from cute_py.page.interpreter import LICENCE, find_interpreter, interpreter_version, lock_of, packed_interpreter

STATIC_POLICY: Final = (
    "default-src 'none'; script-src 'sha256-{hash}' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src blob: data:; base-uri 'none'; form-action 'none'"
)
"""Content security policy of the file: its own script, workers and modules that this script makes (blob:), WebAssembly;
no network, no evaluation of texts. Styles are inline, because each picture has its own."""
SERVED_POLICY: Final = (
    "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; img-src blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Policy of the page of a server, which asks the server for answers and starts no worker."""


def web_file(name: str) -> str:
    """The text of a file in `cute_py/page/web`."""
    return resources.files("cute_py.page").joinpath("web", name).read_text(encoding="utf-8")


def page_address(tab: str, inputs: dict[str, str]) -> str:
    """The fragment of the page's address that encodes the input.

    >>> page_address("layout", {"layout": "4:1"})
    '#tab=layout&layout=4%3A1'
    """
    defaults = TABS[tab].defaults
    return "#" + urlencode([("tab", tab), *((name, text) for name, text in inputs.items() if text != defaults[name])])


@functools.cache
def prepared_answers() -> dict[str, Any]:
    """Address fragment -> answer, for the default input and the first example of each tab."""
    found = {}
    for name, tab in TABS.items():
        for inputs in ({}, tab.examples[0][1]):
            whole = {**tab.defaults, **inputs}
            found[page_address(name, whole)] = answer_page({"tab": name, "inputs": inputs})
    return found


def page_script() -> str:
    """The JavaScript of the page."""
    return f'"use strict";\n{web_file("page.js")}'


def policy(served: bool) -> str:
    """The content security policy of the page, with the hash of its script."""
    digest = base64.b64encode(hashlib.sha256(page_script().encode()).digest()).decode()
    return (SERVED_POLICY if served else STATIC_POLICY).format(hash=digest)


def _packed(name: str, text: str) -> Html:
    held = text.replace("</", "<\\/")
    return Html(f'<script type="text/plain" id="packed-{name}">{held}</script>')


def explorer_page(
    *, served: bool = False, interpreter: str | PathLike[str] | None = None, compiled: bool = True
) -> str:
    """The HTML of the page.

    Args:
        served: whether the page is served by `cute-py serve`, which then answers its queries; otherwise the page uses
            no network.
        interpreter: the folder of the npm package `pyodide`, which is packed into the page; None: the page shows only
            its prepared answers.
        compiled: whether to pack the library as byte code too, if node is installed.
    Raises:
        FileFormatError: the folder is not that package. InvalidTypeError: an argument is not a bool or not a path.

    >>> page = explorer_page()
    >>> page.startswith("<!doctype html>"), "packed-wasm" in page
    (True, False)
    """
    expect(served, bool, "served")
    expect(compiled, bool, "compiled")
    folder = None if interpreter is None else find_interpreter(interpreter)
    first = next(iter(TABS.values()))
    shown = answer_page({"tab": first.name})
    data: dict[str, Any] = {
        "mode": "served" if served else "static",
        "tabs": [tab.as_json() for tab in TABS.values()],
        "code": shown["code"],
        "lock": None,
    }
    parts: list[Html] = []
    about = ["Answered by cute_py, from the local library." if served else "A page of cute_py; it uses no network."]
    if not served:
        held = gzip.compress(json.dumps(prepared_answers()).encode(), 9, mtime=0)
        parts.append(_packed("prepared", base64.b64encode(held).decode()))
        if folder is None:
            about.append("It has no interpreter and shows only its examples; 'cute-py serve' answers everything.")
        else:
            data["lock"] = lock_of(folder)
            about.append(f"Python runs in it: Pyodide {interpreter_version(folder)}, under the {LICENCE}.")
            parts += [_packed(name, text) for name, text in packed_interpreter(folder, compiled=compiled).items()]
            parts.append(_packed("worker", web_file("worker.js")))
    tabs = join_html(
        tag("button", tab.title, type="button", role="tab", data_tab=name, aria_selected=str(tab is first).lower())
        for name, tab in TABS.items()
    )
    sections = join_html(
        tag("section", tag("h2", part["title"]), Html(f"<div>{part['html']}</div>"), id=f"s-{part['id']}")
        for part in shown["sections"]
    )
    # a server sends its policy as a header
    meta = "" if served else f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(False))}">'
    values = {
        "<!--POLICY-->": meta,
        "/*STYLE*/": web_file("page.css"),
        "<!--TABS-->": tabs,
        "<!--VERDICT-->": html.escape(shown["verdict"][1]),
        "<!--SECTIONS-->": sections,
        "<!--ABOUT-->": html.escape(" ".join(about)),
        "<!--DATA-->": json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
        "<!--SCRIPT-->": page_script(),
        "<!--PACKED-->": join_html(parts),
    }
    page = web_file("page.html").replace('<div id="verdict"', f'<div id="verdict" class="{shown["verdict"][0]}"')
    for place, text in values.items():
        page = page.replace(place, text, 1)
    return page
