"""Colour on terminals only: the same characters with and without it, JSON never, and the rules of the environment."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.cli.main import main, refusal_text
from cute_py.errors import CuteError
from cute_py.terminal import painted, painted_report, wants_colour
from tests.each import each_of

ANSI = re.compile(r"\x1b\[[0-9;]*m")
SMEM = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
MAP = ["--dtype=float16", "--dims=512,1024", "--strides=1024", "--box=64,128"]
TEXT = st.text(st.characters(exclude_characters="\x1b"), max_size=40)
needs_rich = pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs rich")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@each_of(
    ("environment", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_the_environment_decides(environment: dict[str, str], terminal: bool, pipe: bool) -> None:
    assert wants_colour(Terminal(), environment) is terminal
    assert wants_colour(io.StringIO(), environment) is pipe
    assert wants_colour(None, environment) is pipe


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert wants_colour(stream, {}) is False


@pytest.fixture
def array(tmp_path: Path) -> str:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(256, dtype=np.float32).reshape(16, 16))
    return str(path)


COMMANDS: dict[str, list[str]] = {
    "copy": ["copy", "{array}", "--tile=8x8"],
    "demo": ["demo"],
    "tma": ["tma", "(1024,512):(512,_1)", SMEM],
    "box": ["tma", "box", "(1024,512):(512,_1)", SMEM],
    "check": ["desc", "check", *MAP],
    "broken": ["desc", "check", "--dtype=float16", "--dims=500,1024", "--strides=1000", "--box=60,300"],
    "slots": ["tmem", "descriptor", "0x4000404000010000"],
    "print": ["print", "(2,3):(3,1)"],
    "draw": ["draw", "(2,3):(3,1)"],
}


def run(monkeypatch: pytest.MonkeyPatch, arguments: list[str], stream: io.StringIO) -> str:
    monkeypatch.setattr("sys.stdout", stream)
    main(arguments)
    return stream.getvalue()


def timeless(text: str) -> str:
    return re.sub(r"in [0-9.]+ s \([0-9.]+ GB/s", "in T s (R GB/s", text)


@needs_rich
@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_shows_the_same_characters(monkeypatch: pytest.MonkeyPatch, array: str, name: str) -> None:
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "1000")  # a narrow terminal breaks lines
    arguments = [word.replace("{array}", array) for word in COMMANDS[name]]
    plain = run(monkeypatch, arguments, io.StringIO())
    coloured = run(monkeypatch, arguments, Terminal())
    assert "\x1b" not in plain
    assert timeless(ANSI.sub("", coloured)) == timeless(plain)
    assert ("\x1b" in coloured) is (name not in ("print", "draw"))


@needs_rich
def test_equal_is_green_and_labels_are_marked(monkeypatch: pytest.MonkeyPatch, array: str) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = run(monkeypatch, ["copy", array, "--tile=8x8"], io.StringIO()).splitlines()
    assert lines[-1] == "\x1b[1;32mequal\x1b[0m"
    assert lines[0].startswith("\x1b[36mtensor\x1b[0m       ")
    assert "\x1b[1mTMA tensor\x1b[0m" in lines


@needs_rich
@pytest.mark.parametrize("name", ["copy", "demo", "tma", "check"])
def test_json_is_never_coloured(monkeypatch: pytest.MonkeyPatch, array: str, name: str) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    arguments = [word.replace("{array}", array) for word in [*COMMANDS[name], "--json"]]
    text = run(monkeypatch, arguments, Terminal())
    assert text.startswith("{")
    assert "\x1b" not in text


@needs_rich
def test_errors_are_red_with_dim_facts_and_a_green_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    arguments = ["tma", "(1024,512):(512,_1)", "(128,64):(64,1)"]
    assert main(arguments) == 2
    plain = capsys.readouterr().err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(arguments) == 2
    coloured = capsys.readouterr().err
    assert "\x1b" not in plain
    assert ANSI.sub("", coloured) == plain
    assert coloured.startswith("cute-py: \x1b[1;31merror:\x1b[0m \x1b[31mTMA requires ")
    assert "\x1b[2m  shared layout : " in coloured
    assert "\x1b[32m  hint          : write sizes known" in coloured
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "\x1b[1;31merror:\x1b[0m" in capsys.readouterr().err


@needs_rich
@given(TEXT, st.dictionaries(TEXT, TEXT, max_size=3), TEXT)
def test_the_painted_line_has_the_characters_of_the_plain_one(headline: str, facts: dict[str, str], hint: str) -> None:
    error = CuteError(headline, facts, hint or None)
    assert ANSI.sub("", refusal_text(error, coloured=True)) == refusal_text(error)


@needs_rich
@given(st.lists(TEXT, max_size=9).map("\n".join))
def test_a_painted_report_has_the_characters_of_the_plain_one(text: str) -> None:
    assert ANSI.sub("", painted_report(text)) == text


def test_without_rich_the_text_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rich", "rich.color", "rich.style"):
        monkeypatch.setitem(sys.modules, name, None)
    assert painted("equal", "bold green") == "equal"


@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb"}])
def test_a_pipe_gets_no_escape(environment: dict[str, str], array: str) -> None:
    names = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")} | environment
    command: Any = [sys.executable, "-m", "cute_py", "copy", array, "--tile=8x8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=names)
    assert (done.returncode, "\x1b" in done.stdout + done.stderr) == (0, False)
    assert done.stdout.splitlines()[-1] == "equal"
