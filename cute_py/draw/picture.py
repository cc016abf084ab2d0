"""Picture: an SVG and its text twin, shown in a notebook, printed in a terminal, or saved.

A picture is a value: tables and notes. Its SVG carries its own style sheet and needs nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cute_py.argument_checks import expect
from cute_py.draw.page import html_page
from cute_py.draw.png import SCALE, png
from cute_py.draw.render_svg import render
from cute_py.draw.table import SVG_BYTES, Cell, Table, expect_entries
from cute_py.draw.text_twin import picture_text
from cute_py.draw.whole_file import write_whole
from cute_py.errors import InvalidTypeError, InvalidValueError, given, shortened

TITLES_LEFT_OUT = "the titles of the cells are left out: there is too much of them"


@dataclass(frozen=True)
class Picture:
    """Tables side by side, with a title and notes.

    Raises:
        InvalidTypeError, InvalidValueError: a title or a note that is no text, or something else than tables.

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
        tables = expect_entries(self.tables, Table, "the tables of a picture")
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "notes", expect_entries(self.notes, str, "the notes of a picture"))

    @cached_property
    def svg(self) -> str:
        """The picture as an SVG element: light, or dark where the reader's system is. The cells have titles, unless
        it would be larger than two million characters for them."""
        whole = render(self.title, self.tables, self.notes)
        if len(whole) <= SVG_BYTES:
            return whole
        bare = tuple(replace(table, rows=tuple(map(_untitled, table.rows))) for table in self.tables)
        return render(
            self.title, bare, (*self.notes, "the titles of the cells are left out: there is too much of them")
        )

    @cached_property
    def text(self) -> str:
        """The same cells as text."""
        return picture_text(self.title, self.tables, self.notes)

    @property
    def html(self) -> str:
        """A page of its own with the picture in it."""
        return html_page(self.title, [(self.svg, self.text)])

    @property
    def count(self) -> int:
        """Cells that are drawn."""
        return sum(len(table.cells) for table in self.tables)

    def png(self, scale: float = SCALE, dark: bool = False) -> bytes:
        """The picture as the bytes of a PNG file.

        Args:
            scale: pixels for one of the SVG, each way.
            dark: light text on dark paper.
        Raises:
            MissingPackageError: the extra `png` is not installed, or the system has no font.
            InvalidTypeError, InvalidValueError: no such scale, or more than 64 million pixels.
        """
        return png(self.svg, scale, dark)

    def save(self, path: str | os.PathLike[str], *, scale: float = SCALE, dark: bool = False) -> Path:
        """Write the picture: .svg, .png, .html or .txt by the name's end. The file appears whole or not at all.

        Of a symbolic link what it points to is written; the link stays.

        Args:
            scale, dark: of a .png, as for `png`; the others are drawn to the reader's own size and colours.
        Raises:
            InvalidTypeError: no path. InvalidValueError: another ending.
            FileFormatError: the file can't be written.
            MissingPackageError: a .png without the extra `png`.
        """
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
            raise InvalidTypeError(f"a picture is saved to a path, got {type(path).__name__} {given(path)}")
        target = Path(path)
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


def _untitled(row: tuple[Cell | None, ...]) -> tuple[Cell | None, ...]:
    return tuple(None if cell is None else replace(cell, title="") for cell in row)
