"""The tab Explain: the answer of `explain` to any pasted text."""

from __future__ import annotations

import cute_py as cute
from cute_py.draw.layouts import draw_layout
from cute_py.draw.shared_memory import draw_swizzle
from cute_py.errors import CuteError, InvalidValueError, unless_refused
from cute_py.explanation.dispatch import explain
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.swizzle import Swizzle
from cute_py.page.algebra import bounded, has_known_sizes
from cute_py.page.answer import Answer, FieldError
from cute_py.page.html import Html


def fill_explain(out: Answer, inputs: dict[str, str], fixes: bool) -> None:
    """Answer the tab Explain."""
    text = inputs["text"]
    if not text:
        raise FieldError("text", InvalidValueError("is empty; paste a layout, an atom, PTX or an error"))
    drawable = len(text) <= 2000 and "\n" not in text and (":" in text or "<" in text)
    thing = unless_refused(cute.parse, text) if drawable else None
    if isinstance(thing, (Layout, ComposedLayout)):
        try:
            bounded(thing)
        except CuteError as error:
            raise FieldError("text", error) from None
    try:
        said = explain(text)
    except CuteError as error:
        out.verdict = ("unknown", error.headline)
        out.problem(error, "text")
        return
    first = str(said).partition("\n\n")[0]
    out.verdict = ("good", first if len(first) <= 400 else f"{first[:400]}…")
    out.section("said", "The explanation", Html(said._repr_html_()))
    if isinstance(thing, (Layout, ComposedLayout)) and has_known_sizes(thing):
        out.picture("picture", "Its offsets", draw_layout(thing), "layout")
    elif isinstance(thing, Swizzle):
        out.picture("picture", "Before and after", draw_swizzle(thing), "swizzle")
    quoted = f"'''{text}'''" if "\n" in text or '"' in text else f'"{text}"'
    out.panel("Python", f"import cute_py as cute\n\nprint(cute.explain({quoted}))")
    out.panel("shell", "cute-py explain -  # and paste, or: cute-py explain 'TEXT'")
