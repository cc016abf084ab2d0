"""An SVG of this library as PNG, through resvg: no browser, no system library, no network.

resvg knows no media queries, so that a picture is light on it; the dark rules of `style` are laid open where they are
asked for. Text needs a font of the system: where none is found that the pictures can use, that is said, as the
picture would have no text at all.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
from typing import Any, Final

from cute_py.argument_checks import expect
from cute_py.draw.render_svg import FONT
from cute_py.errors import InvalidTypeError, InvalidValueError, MissingPackageError, given

SCALE: Final = 2.0
"""Pixels of the PNG for one of the SVG, each way, if nothing else is said: sharp on screens of high density."""
MOST_PIXELS: Final = 64_000_000
"""A larger image is refused: its pixels alone take a quarter of a gigabyte."""
FALLBACK_FONTS: Final = (
    "Liberation Mono",
    "Noto Sans Mono",
    "Ubuntu Mono",
    "Cascadia Mono",
    "FreeMono",
    "Courier New",
    "Nimbus Mono PS",
    "DejaVu Sans",
    "Liberation Sans",
    "Noto Sans",
    "FreeSans",
    "Arial",
    "Helvetica",
)
"""Families that stand for `monospace` where none of the style sheet's is installed, the first that is."""

_DARK: Final = re.compile(r"@media[^{}]*prefers-color-scheme: *dark\)\{((?:[^{}]*\{[^{}]*\})*)\}")
"""The media query of the dark rules, with the rules in it."""
_PAPER: Final = re.compile(r"\.paper\{fill:(#[0-9a-f]{6})\}")
_SIZE: Final = re.compile(r'<svg\b[^>]*? width="([\d.]+)"[^>]*? height="([\d.]+)"')


def _resvg() -> Any:
    try:
        return importlib.import_module("resvg_py")
    except ImportError:
        raise MissingPackageError(
            "a picture as .png needs the package resvg-py", hint="pip install 'cute-py[png]'"
        ) from None


@functools.cache
def monospace_family() -> str | None:
    """The family that resvg is told to take for `monospace`; None: the style sheet's own are there.

    Raises:
        MissingPackageError: resvg-py is not installed, or no font of the system is one that pictures can use.
    """
    resvg = _resvg()
    size = 'width="20" height="20"'
    blank = resvg.svg_to_bytes(svg_string=f'<svg xmlns="http://www.w3.org/2000/svg" {size}/>')
    letter = f'<text y="15" style="font-family:{FONT.replace(chr(34), chr(39))};font-size:11px">8</text>'
    probe = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{letter.replace(chr(39), "&quot;")}</svg>'
    for family in (None, *FALLBACK_FONTS):
        if resvg.svg_to_bytes(svg_string=probe, monospace_family=family) != blank:
            return family
    raise MissingPackageError(
        "no font for a .png: the picture would have no text",
        {"looked for": f"{FONT}, {', '.join(FALLBACK_FONTS)}"},
        hint="install the font DejaVu Sans Mono, or save the picture as .svg",
    )


def opened(svg: str) -> str:
    """An SVG of this library with its dark rules in force whatever the reader's system says.

    >>> opened("<style>a{}@media screen and (prefers-color-scheme: dark){b{x:y}c{}}d{}</style>")
    '<style>a{}b{x:y}c{}d{}</style>'
    """
    return _DARK.sub(lambda found: found[1], svg, count=1)


def png(svg: str, scale: float = SCALE, dark: bool = False) -> bytes:
    """The bytes of a PNG file.

    Args:
        svg: an SVG that `render` made.
        scale: pixels of the PNG for one pixel of the SVG, each way.
        dark: light text on dark paper, which an SVG decides by itself.
    Raises:
        MissingPackageError: resvg-py is not installed, or there is no font.
        InvalidTypeError, InvalidValueError: a scale that is no positive number; an image of more than 64 million
            pixels, or of none.
    """
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise InvalidTypeError(f"scale = {given(scale)}; must be a number such as 2")
    if not 0 < scale < MOST_PIXELS:  # no nan, no infinity, nothing that is no float
        bound = "a positive number" if not 0 < scale < math.inf else f"below {MOST_PIXELS}"
        raise InvalidValueError(f"scale = {given(scale)}; must be {bound}")
    expect(dark, bool, "dark")
    found = _SIZE.search(svg)
    wide, high = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
    if min(wide, high) * scale < 1:
        raise InvalidValueError(f"scale = {scale}: the picture of {wide:g} x {high:g} would have no pixel")
    if wide * high * scale**2 > MOST_PIXELS:
        most = math.floor(100 * math.sqrt(MOST_PIXELS / (wide * high))) / 100
        raise InvalidValueError(
            f"an image of {wide * scale:.0f} x {high * scale:.0f} pixels; must have at most {MOST_PIXELS}",
            {"picture": f"{wide:g} x {high:g}", "scale": scale},
            hint=f"a scale of {most:g}" if most > 0 else None,
        )
    family = monospace_family()
    papers = _PAPER.findall(svg) or [None]  # the light one, then the dark one; the last column may be half a pixel
    options = {"zoom": scale, "monospace_family": family, "background": papers[-1 if dark else 0]}
    try:
        return bytes(_resvg().svg_to_bytes(svg_string=opened(svg) if dark else svg, **options))
    except ValueError as error:
        raise InvalidValueError(f"the picture can't be drawn as .png: {error}") from None
