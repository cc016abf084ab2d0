"""Signs of life on standard error: on a terminal, for long work, and never in what is read by a program."""

from __future__ import annotations

import importlib.util
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cute_py.terminal import LONG_COPY, progress_bar, spinner
from tests.shares import one_in


def on_a_terminal(arguments: list[str], environment: dict[str, str]) -> tuple[str, str]:
    """(standard output through a pipe, standard error through a terminal) of a command."""
    master, slave = pty.openpty()
    names = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")} | environment
    command = [sys.executable, "-m", "cute_py", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=names) as process:
        os.close(slave)
        told = b""
        while True:
            try:
                part = os.read(master, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            told += part
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(master)
    assert process.returncode == 0
    return out.decode(), told.decode()


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs rich")
@pytest.mark.parametrize(
    ("size", "term", "bar"),
    one_in(2, [(LONG_COPY, "xterm", True), (LONG_COPY, "dumb", False), (1 << 10, "xterm", False)]),
    ids=["long", "dumb", "short"],
)
def test_a_long_copy_has_a_bar_on_a_terminal(tmp_path: Path, size: int, term: str, bar: bool) -> None:
    np.save(tmp_path / "x.npy", np.zeros((size >> 10, 1024), np.uint8))
    tile = "256x256" if size >= LONG_COPY else "1x256"
    out, told = on_a_terminal(["copy", str(tmp_path / "x.npy"), "--tile", tile], {"TERM": term})
    assert ("copying tiles" in told) is bar
    assert out.splitlines()[-1] == "equal"
    assert "\x1b" not in out


def test_there_is_none_where_standard_error_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with progress_bar(LONG_COPY) as bar, spinner("working"):
        assert bar is None


def test_there_is_none_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", type("Terminal", (), {"isatty": lambda self: True})())
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    with progress_bar(LONG_COPY) as bar, spinner("working"):
        assert bar is None
