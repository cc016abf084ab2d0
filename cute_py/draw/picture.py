"""Class `Picture`: tables of cells that are shown as SVG in a notebook, printed as text in a terminal, or saved.

A picture is immutable and consists of tables and notes. Its SVG is self-contained: it includes its style sheet.

resvg makes a PNG from the SVG without a browser, system library or network. resvg does not support media queries, so a
PNG is light by default; `dark=True` applies the dark rules of the style sheet. resvg draws text with the fonts of the
system. If no usable font is installed, cute_py refuses to make a PNG, because the picture would have no text.
"""

from __future__ import annotations

import functools
import math
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Final

from cute_py.argument_checks import expect, expect_items, expect_path
from cute_py.atomic_write import write_whole
from cute_py.draw.page import html_page
from cute_py.draw.render_svg import FONT, render
from cute_py.draw.table import SVG_BYTES, Cell, Table
from cute_py.draw.text_renderer import text_of_picture
from cute_py.errors import InvalidTypeError, InvalidValueError, MissingPackageError, counted, given, imported, shortened

SCALE: Final = 2.0
"""Default number of PNG pixels for one pixel of the SVG, in each direction: sharp on high-density screens."""
LARGE: Final = 8_000_000
"""Above this number of pixels, a PNG is drawn at a scale of 1 by default, because each pixel takes time."""
MOST_PIXELS: Final = 16_000_000
"""Maximum number of pixels of an image, which then takes a quarter of a gigabyte."""
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
"""Font families that are tried in order as `monospace` if none of the style sheet's families is installed."""

_DARK: Final = re.compile(r"@media[^{}]{0,80}prefers-color-scheme: ?dark\)\{((?:[^{}]*+\{[^{}]*+\})*+)\}")
"""The media query of the dark rules, with the rules in it."""
_PAPER: Final = re.compile(r"\.paper\{fill:(#[0-9a-f]{6})\}")
_TITLE: Final = re.compile(r"<title>[^<]{0,4000}</title>")
_SIZE: Final = re.compile(r'<svg\b[^<>]{0,400}? width="([\d.]{1,20})"[^<>]{0,400}? height="([\d.]{1,20})"')
TITLES_LEFT_OUT: Final = "the titles of the cells are omitted: they would be too large"


@dataclass(frozen=True)
class Picture:
    """Tables side by side, with a title and notes.

    Raises:
        InvalidTypeError, InvalidValueError: a title or a note is not a string, or a table is not a `Table`.

    >>> from cute_py.draw.table import Cell
    >>> p = Picture("two cells", (Table("", ((Cell("7"), Cell("8")),), ("0",), ("0", "1")),))
    >>> print(p)
    two cells
    <BLANKLINE>
      | 0  1
    --+-----
    0 | 7  8
    >>> p.svg[:4], p.count
    ('<svg', 2)
    """

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        expect(self.title, str, "the title of a picture")
        for name, kind in (("tables", Table), ("notes", str)):
            what = f"the {name} of a picture"
            entries = enumerate(expect_items(getattr(self, name), what))
            checked = tuple([expect(entry, kind, f"{what}, entry {i},") for i, entry in entries])
            object.__setattr__(self, name, checked)

    @functools.cached_property
    def svg(self) -> str:
        """The picture as an SVG element, in dark colours if the viewer's system prefers them. The cells have titles
        (tooltips), unless the titles would make the SVG larger than two million characters.
        """
        whole = render(self.title, self.tables, self.notes)
        if len(whole) <= SVG_BYTES:
            return whole
        bare = tuple(replace(table, rows=tuple(map(_untitled, table.rows))) for table in self.tables)
        return render(self.title, bare, (*self.notes, TITLES_LEFT_OUT))

    @functools.cached_property
    def text(self) -> str:
        """The picture as text."""
        return text_of_picture(self.title, self.tables, self.notes)

    @property
    def html(self) -> str:
        """A complete HTML page with the picture."""
        return html_page(self.title, [(self.svg, self.text)])

    @property
    def count(self) -> int:
        """The number of drawn cells."""
        return sum(len(table.cells) for table in self.tables)

    def png(self, scale: float | None = None, dark: bool = False) -> bytes:
        """Render the picture as a PNG, and return the bytes of the file.

        Args:
            scale: pixels of the PNG for one pixel of the SVG, in each direction; by default `SCALE`, or 1 for a picture
                of more than `LARGE` pixels.
            dark: whether to draw light text on a dark background.
        Raises:
            MissingPackageError: the extra `png` is not installed, or the system has no font.
            InvalidTypeError, InvalidValueError: the scale is invalid, or the image has more than 16 million pixels.
        """
        return png(self.svg, scale, dark)

    def save(self, path: str | os.PathLike[str], *, scale: float | None = None, dark: bool = False) -> Path:
        """Write the picture as .svg, .png, .html or .txt; the suffix of the file name selects the format. The write is
        atomic.

        If the path is a symbolic link, the file that it points to is replaced, and the link stays.

        Args:
            scale, dark: arguments of `png` for a .png file; the other formats adapt to the size and colours of the
                viewer.
        Raises:
            InvalidTypeError: the argument is not a path. InvalidValueError: the suffix is unknown.
            FileFormatError: the file can't be written.
            MissingPackageError: a .png needs the extra `png`.
        """
        target = expect_path(path, "the file of a picture")
        forms = {".svg": "svg", ".png": "png", ".html": "html", ".txt": "text"}
        form = forms.get(target.suffix.lower())
        if form is None:
            shown = shortened(ascii(str(target))[1:-1])
            raise InvalidValueError(f"{shown}: a picture is saved as {', '.join(forms)}, not {given(target.suffix)}")
        return write_whole(target, self.png(scale, dark) if form == "png" else str(getattr(self, form)) + "\n")

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Picture {shortened(self.title, 200)!r}, {counted(self.count, 'cell')}>"


def _untitled(row: tuple[Cell | None, ...]) -> tuple[Cell | None, ...]:
    return tuple(None if cell is None else replace(cell, title="") for cell in row)


def _resvg() -> ModuleType:
    return imported("resvg_py", "a picture as .png", "resvg-py", "pip install 'cute-py[png]'")


@functools.cache
def monospace_family() -> str | None:
    """The font family for resvg to use as `monospace`; None if a font family of the style sheet is installed.

    Raises:
        MissingPackageError: resvg-py is not installed, or the system has no usable font.
    """
    resvg = _resvg()
    size = 'width="20" height="20"'
    blank = resvg.svg_to_bytes(svg_string=f'<svg xmlns="http://www.w3.org/2000/svg" {size}/>')
    letter = f'<text y="15" style="font-family:{FONT.replace(chr(34), chr(39))};font-size:11px">8</text>'
    probe = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{letter.replace(chr(39), "&quot;")}</svg>'
    for family in (None, *FALLBACK_FONTS):
        if resvg.svg_to_bytes(svg_string=probe, monospace_family=family) != blank:
            return family
    text = "no font for a .png, so the picture would have no text"
    facts = {"looked for": f"{FONT}, {', '.join(FALLBACK_FONTS)}"}
    raise MissingPackageError(text, facts, hint="install the font DejaVu Sans Mono, or save the picture as .svg")


def opened(svg: str) -> str:
    """Return an SVG of this library with its dark rules always applied, instead of only on systems that prefer dark
    colours.

    >>> opened("<style>a{}@media screen and (prefers-color-scheme: dark){b{x:y}c{}}d{}</style>")
    '<style>a{}b{x:y}c{}d{}</style>'
    """
    return _DARK.sub(lambda found: found[1], svg, count=1)


def png(svg: str, scale: float | None = None, dark: bool = False) -> bytes:
    """Render an SVG as a PNG, and return the bytes of the file.

    Args:
        svg: an SVG that `render` made.
        scale: pixels of the PNG for one pixel of the SVG, in each direction; by default `SCALE`, or 1 for a picture of
            more than `LARGE` pixels.
        dark: whether to draw light text on a dark background.
    Raises:
        MissingPackageError: resvg-py is not installed, or there is no font.
        InvalidTypeError, InvalidValueError: the scale is not a positive number, or the image has no pixels or more than
            16 million pixels.
    """
    found = _SIZE.search(svg)
    wide, high = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
    if scale is None:
        scale = SCALE if wide * high * SCALE**2 <= LARGE else 1.0
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise InvalidTypeError(f"scale = {given(scale)}; must be a number such as 2")
    if not 0 < scale < MOST_PIXELS:  # neither nan nor infinity, nor an integer beyond floats
        bound = "a positive number" if not 0 < scale < math.inf else f"below {MOST_PIXELS}"
        raise InvalidValueError(f"scale = {given(scale)}; must be {bound}")
    expect(dark, bool, "dark")
    if min(wide, high) * scale < 1:
        raise InvalidValueError(f"scale = {scale}: the picture of {wide:g} x {high:g} would have no pixels")
    if wide * high * scale**2 > MOST_PIXELS:
        most = math.floor(100 * math.sqrt(MOST_PIXELS / (wide * high))) / 100
        text = f"an image of {wide * scale:.0f} x {high * scale:.0f} pixels; must have at most {MOST_PIXELS}"
        facts = {"picture": f"{wide:g} x {high:g}", "scale": scale}
        raise InvalidValueError(text, facts, hint=f"a scale of {most:g}" if most > 0 else None)
    family = monospace_family()
    papers = _PAPER.findall(svg) or [None]  # the light one, then the dark one; the last column may be half a pixel
    options = {"zoom": scale, "monospace_family": family, "background": papers[-1 if dark else 0]}
    drawn = _TITLE.sub("", opened(svg) if dark else svg)  # a pixel has no title, and reading them takes time
    try:
        return bytes(_resvg().svg_to_bytes(svg_string=drawn, **options))
    except ValueError as error:
        raise InvalidValueError(f"the picture can't be drawn as .png: {error}") from None
