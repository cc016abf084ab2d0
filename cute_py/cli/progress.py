"""Signs of life on standard error while long work is done: only on a terminal, only where rich is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG_COPY = 16 << 20
"""Bytes from which a copy takes about a second in the emulator."""


def _on_a_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress_bar(size: int, doing: str = "copying tiles") -> Iterator[Callable[[int, int], None] | None]:
    """A bar for work on `size` bytes; yields the function to call with (done, total), None where there is no bar."""
    if size < LONG_COPY or not _on_a_terminal():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell


@contextmanager
def spinner(doing: str) -> Iterator[None]:
    """A line that moves while work of unknown length is done."""
    if not _on_a_terminal():
        yield
        return
    try:
        from rich.console import Console
    except ImportError:
        yield
        return
    with Console(stderr=True).status(doing):
        yield
