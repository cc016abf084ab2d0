"""Output for terminals only: colour, and progress on standard error during long work.

Output to a pipe or a file has the same bytes without colour. Colour:

    NO_COLOR set            never        (https://no-color.org)
    FORCE_COLOR set         always       (not by 0)
    TERM=dumb               never
    otherwise               on a terminal

The escape sequences and the bars come from rich; without it the text is plain. JSON does not come through here.
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
"""(pattern of a line of a report, with the painted part; its style); the first that fits is used."""


def wants_colour(stream: IO[str] | None, environment: Mapping[str, str] | None = None) -> bool:
    """Whether what goes to a stream is coloured.

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
    """A text in a style of rich, such as 'bold red'; unchanged if rich is not installed."""
    try:
        from rich.color import ColorSystem
        from rich.style import Style
    except ImportError:
        return text
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def painted_report(text: str) -> str:
    """A report with its headings, labels and verdicts in colour; the characters are those of `text`."""
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


def print_report(text: object) -> None:
    """Print a report to standard output, in colour where that is a terminal."""
    print(painted_report(str(text)) if wants_colour(sys.stdout) else text)


LONG_COPY: Final = 16 << 20
"""Bytes from which a copy takes about a second in the emulator."""


def _error_console() -> Console | None:
    """rich's console on standard error; None where that is not a terminal, or rich is not installed."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


@contextlib.contextmanager
def progress_bar(size: int, doing: str = "copying tiles") -> Iterator[Callable[[int, int], None] | None]:
    """A bar for work on `size` bytes; yields the function to call with (done, total), None if there is no bar."""
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
    """A line that moves while work of unknown length is done."""
    console = _error_console()
    with contextlib.nullcontext() if console is None else console.status(doing):
        yield
