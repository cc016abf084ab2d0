"""The style sheet of all pictures: light by default and on paper (a browser that prints takes the light rules), dark on
screens of readers who ask for it.

Colours stand in plain rules and are overridden in the media query, not in CSS variables: programs that turn SVG into
PNG or PDF do not know variables and would paint every cell black. The tones differ in lightness too, every cell has a
text, and what is outside is hatched, so nothing is said by hue alone.
"""

from __future__ import annotations

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
CHARACTER = 6.7
"""Width of a character of cell text, pixels, for the widest of the fonts."""
LINE = 14.0
"""Height of a line of text, pixels."""

LIGHT = ("#cfe0fb", "#f2a866", "#dff6d6", "#e587ab", "#d9c8f4", "#fbf4bc", "#66bdb4", "#b9c1c9")
"""Fills of the tones on light paper: text is dark."""
DARK = ("#1b3a60", "#8a4a1c", "#1c4420", "#86305a", "#57458a", "#4d4208", "#17706b", "#59626c")
"""Fills of the tones in the dark: text is light."""


def _sheet(paper: str, ink: str, faint: str, line: str, tones: tuple[str, ...]) -> str:
    rules = [
        f"svg.cute .paper{{fill:{paper}}}",
        f"svg.cute text{{fill:{ink}}}",
        f"svg.cute .faint{{fill:{faint}}}",
        f"svg.cute .cell{{fill:{paper};stroke:{line}}}",
        f"svg.cute .out{{fill:{paper};fill-opacity:.6}}",
        f"svg.cute .halo{{stroke:{paper};stroke-width:4px;paint-order:stroke}}",
        f"svg.cute .rule{{stroke:{faint}}}",
        f"svg.cute .edge{{stroke:{ink}}}",
        f"svg.cute .hatch{{stroke:{faint}}}",
    ]
    rules += [f"svg.cute .tone{i}{{fill:{fill}}}" for i, fill in enumerate(tones)]
    return "".join(rules)


def style_sheet() -> str:
    """The text of the <style> element."""
    common = (
        f"svg.cute text{{font-family:{FONT};font-size:11px;white-space:pre}}"
        "svg.cute .title{font-size:13px;font-weight:bold}"
        "svg.cute .mid{text-anchor:middle}svg.cute .end{text-anchor:end}"
        "svg.cute .cell{stroke-width:1}svg.cute .hatch{stroke-opacity:.55}svg.cute .rule{stroke-width:1;fill:none}"
        "svg.cute .edge{stroke-width:1.5}"
        "svg.cute g.c:hover .cell{stroke-width:2.5}"
    )
    light = _sheet("#ffffff", "#14181d", "#5b6570", "#8a939d", LIGHT)
    dark = _sheet("#12161b", "#eef1f4", "#a3adb8", "#6d7782", DARK)
    return f"{common}{light}@media (prefers-color-scheme: dark){{{dark}}}"
