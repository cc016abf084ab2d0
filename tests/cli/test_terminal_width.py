"""On a terminal of 80 columns a command writes lines of at most 80 characters; tma, draw, explain take the same words.

The texts of programs, as of `tma ptx` and `tmem demo`, are not wrapped.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cute_py.cli.main import COMMANDS, main
from cute_py.terminal import folded

GMEM, SMEM = "(1024,512):(512,_1)", "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
ATOM = "SM80_16x8x16_F32F16F16F32_TN"
MAP = "0x" + "00" * 128
PTX = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry nothing(.param .u64 out) { ret; }
"""
RUNS: dict[str, tuple[list[str], ...]] = {
    "demo": (["demo"],),
    "explain": (
        ["explain", "_1@1"],
        ["explain", "zipped_divide"],
        ["explain", GMEM, SMEM],
        ["explain", "bank", "conflict"],
    ),
    "print": (["print", "((2,2),4):((1,8),2)"], ["print", "ArithTuple(0,_0) o (4,4):(_1@1,_1@0)"]),
    "copy": (["copy", "x.npy", "--tile", "32x32"], ["copy", "x.npy", "--tile", "32x32", "--swizzle", "32B"]),
    "tma": (["tma", GMEM, SMEM], ["tma", "check", GMEM, SMEM], ["tma", "partition", GMEM, SMEM], ["tma", "4:1"]),
    "desc": (["desc", "check", MAP], ["desc", "decode", MAP]),
    "check": (["check", "x.ptx"],),
    "run": (["run", "x.ptx", "--arg", "out=zeros:4:f32"], ["run", "x.ptx"]),
    "watch": (["watch"],),
    "tmem": (["tmem", "forms"]),
    "atom": (["atom", "show", ATOM], ["atom", "list"], ["atom", "find", "--a", "half"]),
    "draw": (["draw", ATOM], ["draw", "(4,8):(8,1)"], ["draw", GMEM, SMEM, "--what", "boxes"]),
    "convert": (["convert", "none.safetensors", "--to", "nvfp4", "--out", "made"],),
    "reshard": (["reshard", "none.toml"],),
    "serve": (["serve", "--port", "-1"],),
    "doctor": (["doctor"],),
    "skill": (["skill", "--out", "skill"],),
    "completion": (["completion", "fish", "--help"],),
}
"""Command -> calls of it; some are refused."""


class Terminal(io.StringIO):
    """A text that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def seen(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a command writes on a terminal of 80 columns without colour."""
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    with contextlib.suppress(SystemExit):
        main(arguments)
    return screen.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_fits(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(64 * 64, dtype=np.float16).reshape(64, 64))
    Path("x.ptx").write_text(PTX)
    for arguments in (*RUNS[command], [command, "--help"]):
        text = seen(monkeypatch, *arguments)
        assert text, arguments
        assert [line for line in text.splitlines() if len(line) > 80] == [], arguments


@pytest.mark.parametrize("width", [20, 33, 80])
def test_no_word_is_lost(width: int) -> None:
    text = "  hint : one two  three\n" + "word " * 60 + "x" * 200 + ",y" * 90
    lines = folded(text, width)
    assert max(map(len, lines.split("\n"))) <= width
    assert re.sub(r"\s", "", lines) == re.sub(r"\s", "", text)


def test_a_misspelt_command_is_answered_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no command 'explian'; nearest: explain" in " ".join(seen(monkeypatch, "explian", "x").split())


def test_draw_takes_what_atom_show_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ATOM in seen(monkeypatch, "draw", ATOM)
    assert "nearest" in seen(monkeypatch, "draw", "SM80_16x8x16_F32F16F16F33_TN")


def test_three_commands_take_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, "explain", GMEM, SMEM, "(_128,_64)") == seen(monkeypatch, "tma", GMEM, SMEM, "(_128,_64)")
    drawn = seen(monkeypatch, "draw", GMEM, SMEM, "(_128,_64)", "--what", "boxes")
    assert drawn == seen(monkeypatch, "draw", GMEM, "--smem", SMEM, "--tile", "(_128,_64)", "--what", "boxes")
