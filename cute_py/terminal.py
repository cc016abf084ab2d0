"""Output for terminals: colour, and progress on standard error during long work.

Output to a pipe or a file is the same text without colour. Output has colour:

    NO_COLOR set            never        (https://no-color.org)
    FORCE_COLOR set         always       (not by 0)
    TERM=dumb               never
    otherwise               on a terminal

The package rich makes the escape sequences and the progress bars; without it, output is plain text. JSON output does
not use this module.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

HEADING: Final = "bold"
FACT: Final = "dim"
HINT: Final = "green"
ERROR: Final = "red"

LINES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"^(equal\b.*|legal on .*|no rule is broken.*)$"), "bold green"),
    (re.compile(r"^(NOT EQUAL.*)$"), "bold red"),
    (re.compile(r"^(broken)\s"), ERROR),
    (re.compile(r"^(warning)\b"), "yellow"),
    (re.compile(r"^(?:  )?(trap)\s"), "yellow"),
    (re.compile(r"^  (yes)  \S"), HINT),
    (re.compile(r"^  (no)   \S"), ERROR),
    (re.compile(r"^\s+((?:hint|fix)\s+:.*)$"), HINT),
    (re.compile(r"^[^\S\n]{0,80}([A-Za-z][\w -]{0,80}?) +: "), "cyan"),
    (re.compile(r"^([A-Za-z][\w',-]*(?: [\w',-]+){0,3})  +\S"), "cyan"),
)
"""(pattern of a line of a report, whose group is the part to colour; its style). The first pattern that matches is
used."""


def wants_colour(stream: IO[str] | None, environment: Mapping[str, str] | None = None) -> bool:
    """Whether output to a stream is coloured.

    >>> wants_colour(None, {"FORCE_COLOR": "1"}), wants_colour(None, {"FORCE_COLOR": "1", "NO_COLOR": "1"})
    (True, False)
    """
    names = os.environ if environment is None else environment
    if names.get("NO_COLOR"):
        return False
    if names.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    if names.get("TERM") == "dumb":
        return False
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # No stream at all, or a closed one.
        return False


def painted(text: str, style: str) -> str:
    """A string in a style of rich, such as 'bold red'; unchanged if rich is not installed."""
    try:
        from rich.color import ColorSystem
        from rich.style import Style
    except ImportError:
        return text
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def painted_report(text: str) -> str:
    """A report with its headings, labels and verdicts in colour. Only escape sequences are added to `text`."""
    lines = text.split("\n")
    return "\n".join(_line(line, lines[i + 1] if i + 1 < len(lines) else "") for i, line in enumerate(lines))


def _line(line: str, following: str) -> str:
    for pattern, style in LINES:
        found = pattern.match(line)
        if found is not None:
            start, stop = found.span(1)
            return line[:start] + painted(line[start:stop], style) + line[stop:]
    if line and not line[0].isspace() and following.startswith("  "):
        return painted(line, HEADING)
    return line


_HANG: Final = re.compile(r"\s*(?:[-*] +|[A-Za-z][\w -]{0,24}? +: +)?")
"""The marker or label at the start of a line; continuation lines are indented to its width."""


def folded(text: str, width: int) -> str:
    """Wrap a string to lines of at most `width` characters; a continuation line is aligned with the text after the
    label.

    >>> print(folded("  hint : take a tile of 64 x 64 elements, or of 128 x 32", 40))
      hint : take a tile of 64 x 64
             elements, or of 128 x 32
    """
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def _folded(line: str, width: int) -> Iterator[str]:
    start = _HANG.match(line)
    hang = min(len(start[0]) if start is not None else 0, width // 2) or 4
    while len(line) > width:
        cut = line.rfind(" ", hang + 1, width + 1)
        if cut < 0:
            cut = line.rfind(",", hang + 1, width) + 1 or width
        yield line[:cut].rstrip()
        line = " " * hang + line[cut:].lstrip()
    yield line


def terminal_width(stream: IO[str] | None) -> int | None:
    """Columns of the terminal that a stream writes to; None for a pipe or a file.

    >>> terminal_width(None) is None
    True
    """
    try:
        if stream is None or not stream.isatty():
            return None
    except ValueError:  # a closed stream
        return None
    import shutil

    return max(shutil.get_terminal_size().columns, 20)


def print_picture(text: str) -> None:
    """Print the text of a picture to standard output. Rows of cells that are wider than the terminal are truncated."""
    width = terminal_width(sys.stdout)
    if width is None:
        print(text)
        return
    lines, cut = text.split("\n"), False
    for i, line in enumerate(lines):
        if "|" in line[:16] or "+" in line[:16]:
            cut = cut or len(line) > width
            lines[i] = line if len(line) <= width else f"{line[: width - 1]}…"
        else:
            lines[i] = folded(line, width)
    print("\n".join(lines))
    if cut:
        print(folded("rows are cut at the width of the terminal; --out FILE.svg draws the whole picture", width))


def print_report(text: object) -> None:
    """Print a report to standard output; on a terminal, in colour and wrapped to the terminal's width."""
    width = terminal_width(sys.stdout)
    shown = str(text) if width is None else folded(str(text), width)
    print(painted_report(shown) if wants_colour(sys.stdout) else shown)


LONG_COPY: Final = 16 << 20
"""A copy of this many bytes takes about a second in the emulator."""


def _error_console() -> Console | None:
    """A rich console for standard error; None if standard error is not a terminal, or rich is not installed."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


@contextlib.contextmanager
def progress_bar(size: int, doing: str = "copying tiles") -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar during work on `size` bytes. Yield the function to call with (done, total), or None if there
    is no bar."""
    console = _error_console() if size >= LONG_COPY else None
    if console is None:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def spinner(doing: str) -> Iterator[None]:
    """Show a spinner during work of unknown length."""
    console = _error_console()
    with contextlib.nullcontext() if console is None else console.status(doing):
        yield
