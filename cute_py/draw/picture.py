"""Picture: an SVG and its text twin, shown in a notebook, printed in a terminal, or saved.

A picture is a value: tables and notes. Its SVG carries its own style sheet and needs nothing else.

Files appear whole or not at all: they are written beside their name, then renamed. A name that is a symbolic link
stands for what it points to: that file is written, beside itself, and the link stays. So it is with a link to a name
that is not there yet, which is made. A link that leads back to itself points to nothing and is refused; it is never
replaced.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cute_py.argument_checks import expect
from cute_py.draw.page import html_page
from cute_py.draw.png import SCALE, png
from cute_py.draw.render_svg import render
from cute_py.draw.table import SVG_BYTES, Cell, Table
from cute_py.draw.text_twin import picture_text
from cute_py.errors import FileFormatError, InvalidTypeError, InvalidValueError, given, shortened

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
        for name, kind in (("tables", Table), ("notes", str)):
            entries, what = getattr(self, name), f"the {name} of a picture"
            if not isinstance(entries, (tuple, list)):
                got = f"{type(entries).__name__} {given(entries)}"
                raise InvalidTypeError(f"{what} must be a tuple of {kind.__name__}, got {got}")
            checked = tuple([expect(entry, kind, f"{what}, entry {i},") for i, entry in enumerate(entries)])
            object.__setattr__(self, name, checked)

    @cached_property
    def svg(self) -> str:
        """The picture as an SVG element: light, or dark where the reader's system is. The cells have titles, unless
        it would be larger than two million characters for them."""
        whole = render(self.title, self.tables, self.notes)
        if len(whole) <= SVG_BYTES:
            return whole
        bare = tuple(replace(table, rows=tuple(map(_untitled, table.rows))) for table in self.tables)
        return render(self.title, bare, (*self.notes, TITLES_LEFT_OUT))

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


def why_not_written(path: str | os.PathLike[str]) -> str | None:
    """Why no file can be written under this name, or None: no such folder, no plain file, a link to itself.

    >>> why_not_written("/"), why_not_written("no such folder/file")
    ('Is a directory', 'No such file or directory')
    """
    try:
        target = os.path.realpath(path)
        if os.path.islink(target):
            return "a symbolic link that leads back to itself"
        os.stat(os.path.dirname(target) or ".")
        mode = os.stat(target).st_mode if os.path.exists(target) else stat.S_IFREG
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    if not os.fspath(path) or not stat.S_ISREG(mode):
        return "Is a directory" if not os.fspath(path) or stat.S_ISDIR(mode) else "not a plain file"
    return None


def write_whole(path: str | os.PathLike[str], content: str | bytes | Callable[[Any], None]) -> Path:
    """Write a file; returns its name. A file that was there keeps its permissions.

    Args:
        path: the name; of a symbolic link what it points to is written.
        content: a text, bytes, or what writes them into an open file.
    Raises:
        FileFormatError: it can't be written there. InvalidTypeError: the name is no text and no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"path must be a text or a path, got {type(path).__name__} {given(path)}")
    shown = os.fspath(path) if os.fspath(path).isprintable() else given(os.fspath(path))
    reason = why_not_written(path)
    if reason is not None:
        raise FileFormatError(f"{shown or '(empty name)'}: can't be written: {reason}")
    target = os.path.realpath(path)
    temporary = ""
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".")
        with os.fdopen(handle, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileFormatError(f"{shown}: can't be written: {error.strerror or error}") from None
        raise
    return Path(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
