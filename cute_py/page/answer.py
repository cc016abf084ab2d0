"""Answer the page: for the input of a tab, return a verdict, problems with their fixes, sections of HTML, and code.

`answer_page({"tab": "layout", "inputs": {...}})` is the one function behind the page: a server calls it for
`cute-py serve`, and the page calls it in the browser. Both get the same JSON.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from cute_py.draw.picture import Picture
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, MissingPackageError, given
from cute_py.page.forms import TABS, Tab
from cute_py.page.html import Html, drawn

T = TypeVar("T")

LONGEST: Final = 2000
"""Maximum number of characters in a field."""
LONGEST_TEXT: Final = 65_536
"""Maximum number of characters in a pasted text."""
PARTS: Final = ("answer", "first", "fixes")
FIRST_CELLS: Final = 200
"""Cells of the part 'first', about as many as a screen shows."""


class FieldError(Exception):
    """Raised if a field can't be read; has the name of the field, and the library's error."""

    def __init__(self, name: str, error: CuteError) -> None:
        super().__init__(name)
        self.name = name
        self.error = error


class EnoughDrawn(Exception):
    """Raised if the part 'first' of an answer has as many cells as it may have."""


@dataclass
class Answer:
    """The answer to the input of a tab; the page receives `as_json()`. A tab sets the verdict and the problems before
    it draws a picture."""

    verdict: tuple[str, str] = ("good", "")
    """'good', 'bad' or 'unknown'; and a sentence."""
    problems: list[dict[str, Any]] = field(default_factory=list)
    """field, rule, message, facts, hint, fixes: [{words, inputs}]."""
    sections: list[dict[str, str]] = field(default_factory=list)
    """id, title, html."""
    code: list[dict[str, str]] = field(default_factory=list)
    """name, text."""
    more: bool = False
    """Whether the part 'fixes' adds to this answer."""
    cells: float = math.inf
    """Number of cells that may still be drawn."""
    complete: int | None = None
    """Number of complete sections, if the answer ends with a part of a picture."""

    def section(self, name: str, title: str, *parts: Html) -> None:
        """Add a section of HTML with an id and a title."""
        self.sections.append({"id": name, "title": title, "html": "".join(parts)})

    def picture(self, name: str, title: str, picture: Picture, file: str) -> None:
        """Add a section with a picture; `file` is the file name for downloading it.

        Raises:
            EnoughDrawn: the picture has more cells than may still be drawn; the section then has only the first of
                them.
        """
        if picture.count > self.cells:
            self.complete = len(self.sections)
            self.section(name, title, drawn(picture, file, int(self.cells)))
            raise EnoughDrawn
        self.cells -= picture.count
        self.section(name, title, drawn(picture, file))

    def panel(self, name: str, text: str | None) -> None:
        """Add a panel of code, if `text` is not empty."""
        if text:
            self.code.append({"name": name, "text": text.rstrip("\n")})

    def problem(self, error: CuteError, name: str | None = None, fixes: list[dict[str, Any]] | None = None) -> None:
        """Add an error to the problems of the answer."""
        facts = [f"{key}: {value}" for key, value in error.facts.items()]
        self.problems.append(
            {
                "field": name,
                "rule": type(error).__name__,
                "message": error.headline,
                "facts": [fact if len(fact) <= 400 else f"{fact[:400]}…" for fact in facts],
                "hint": error.hint,
                "fixes": fixes or [],
            }
        )

    def as_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        whole = {
            "verdict": list(self.verdict),
            "problems": self.problems,
            "sections": self.sections,
            "code": self.code,
            "more": self.more,
        }
        return whole if self.complete is None else {**whole, "complete": self.complete}


def read(inputs: Mapping[str, str], name: str, reader: Callable[[str], T]) -> T:
    """Read the text of a field with the function `reader`.

    Raises:
        FieldError: the reader refuses the text.
    """
    try:
        return reader(inputs[name])
    except CuteError as error:
        raise FieldError(name, error) from None


def closed(text: str) -> str | None:
    """A string with its open brackets closed; None if no bracket is open.

    >>> closed("((2,2),4):((1,8),2"), closed("(4)")
    ('((2,2),4):((1,8),2)', None)
    """
    missing = text.count("(") - text.count(")")
    return text.rstrip() + ")" * missing if 0 < missing <= 12 else None


def read_question(query: Mapping[str, Any]) -> tuple[Tab, dict[str, str], str]:
    """Read the tab, its fields (absent ones get their defaults), and the requested part from a query.

    Raises:
        InvalidTypeError: the query is not a mapping, or its inputs are not strings. InvalidValueError: the tab, a field
            or the part is unknown, or an input is too long.
    """
    if not isinstance(query, Mapping):
        raise InvalidTypeError(f"a query must be a JSON object, got {given(query)}")
    tab = TABS.get(query.get("tab", "layout")) if isinstance(query.get("tab", "layout"), str) else None
    if tab is None:
        raise InvalidValueError(f"unknown tab {given(query.get('tab'))}", {"known": ", ".join(TABS)})
    inputs = query.get("inputs", {})
    if not isinstance(inputs, Mapping) or not all(isinstance(t, str) for pair in inputs.items() for t in pair):
        raise InvalidTypeError("inputs must map names to texts")
    part = query.get("part", "answer")
    if part not in PARTS:
        raise InvalidValueError(f"unknown part {given(part)}", {"known": ", ".join(PARTS)})
    unknown = [name for name in inputs if name not in tab.defaults]
    if unknown:
        raise InvalidValueError(f"unknown field {given(unknown[0])}", {"known": ", ".join(tab.defaults)})
    for name, text in inputs.items():
        most = LONGEST_TEXT if name == "text" else LONGEST
        if len(text) > most:
            raise InvalidValueError(f"{name} has {len(text)} characters; must have at most {most}")
    return tab, {**tab.defaults, **{name: text.strip() for name, text in inputs.items()}}, part


def answer_page(query: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the input of a tab, as plain data.

    Args:
        query: a mapping with `tab`, a name in `forms.TABS`; `inputs`, a mapping from the tab's fields to strings, where
            absent fields get their defaults; and `part`. The part 'answer' is the answer; 'first' is the answer up to
            its first 200 cells; 'fixes' also has the buttons that fix the problems, and takes longer.
    Returns:
        verdict, problems, sections, code, more; see `Answer`. If the part 'first' is not the whole answer, its last
        section has only a part of its picture, code is empty, and `complete` is the number of complete sections.
    Raises:
        InvalidTypeError, InvalidValueError: the query is malformed. Inputs that can't be read raise no error; they are
            problems in the answer.

    >>> answer_page({"tab": "layout", "inputs": {"layout": "(4,8):(8,1)"}})["verdict"]
    ['good', '32 elements at offsets 0 to 31: each once, without gaps']
    """
    tab, inputs, part = read_question(query)
    out = Answer(cells=FIRST_CELLS if part == "first" else math.inf)
    try:
        module = importlib.import_module(f"cute_py.page.{tab.module}")
        getattr(module, f"fill_{tab.module}")(out, inputs, part == "fixes")
    except EnoughDrawn:
        pass
    except FieldError as refused:
        out.verdict = ("bad", f"{tab.label_of(refused.name)}: {refused.error.headline}")
        out.problem(refused.error, refused.name, _bracket_fix(inputs, refused.name))
    except MissingPackageError as error:
        out.verdict = ("unknown", "this needs numpy, which this page does not have")
        out.problem(error)
    except CuteError as error:
        out.verdict = ("bad", error.headline)
        out.problem(error)
    return out.as_json()


def _bracket_fix(inputs: Mapping[str, str], name: str) -> list[dict[str, Any]]:
    text = closed(inputs[name])
    return [] if text is None else [{"words": f"close the brackets: {text}", "inputs": {name: text}}]
