"""`-` reads standard input wherever a text or a file is taken, once, and refusals name it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from cute_py.array_files import write_array
from tests.cli.test_bad_input import refused, stdin
from tests.cli.test_commands import shell

GMEM, SMEM = "(100,200):(200,_1)", "Sw<3,4,3> o smem_ptr[16b](unset) o (_32,_64):(_64,_1)"
MAP = ["--dtype=float16", "--dims=512,1024", "--strides=1024", "--box=64,128"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["print", "-"], GMEM),
        (["draw", "-"], "(4,8):(8,1)"),
        (["draw", "(4,8):(8,1)", "-"], "(4,8):(1,4)"),
        (["draw", "-", "--smem", SMEM], GMEM),
        (["draw", GMEM, "--smem", "-"], SMEM),
        (["draw", "((_8,_4),(_2,_2)):((_16,_2),(_1,_8))", "--what=tv", "--tile", "-"], "(8,16)"),
        (["tma", "-", SMEM], GMEM),
        (["tma", "box", GMEM, "-"], SMEM),
        (["tma", GMEM, SMEM, "-"], "(_32,_64)"),
        (["tmem", "descriptor", "-"], "0x4000404000010000"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_a_text_on_standard_input_is_the_same_as_one_in_the_arguments(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    stdin(monkeypatch, f"{text}\n".encode())
    piped = shell(capsys, *arguments)
    assert piped[0] == 0
    assert piped == shell(capsys, *[text if word == "-" else word for word in arguments])


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors"])
@pytest.mark.parametrize(
    "command", [["copy", "-", "--tile=8x16", "--json"], ["demo", "-", "--json"]], ids=["copy", "demo"]
)
def test_an_array_on_standard_input(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    command: list[str],
) -> None:
    path = tmp_path / f"x.{suffix}"
    write_array(str(path), np.arange(1024, dtype=np.float32).reshape(32, 32))
    stdin(monkeypatch, path.read_bytes())
    status, out, err = shell(capsys, *command)
    data = json.loads(out)
    assert (status, err, data["equal"], data["input"]) == (0, "", True, "-")


def test_the_header_of_an_array_on_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((64, 128), np.float16))
    stdin(monkeypatch, path.read_bytes())
    piped = shell(capsys, "desc", "encode", "--npy", "-", "--box=64,64")
    assert piped == shell(capsys, "desc", "encode", "--npy", str(path), "--box=64,64")
    assert piped[0] == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "standard input is empty"),
        (b"hello", "standard input: can't be read as a safetensors file"),
        (b"\x93NUMPY", "standard input: can't be read as a numpy file"),
        (b"PK\x03\x04", "standard input: can't be read as a numpy file: truncated: the directory"),
    ],
    ids=["empty", "text", "npy", "npz"],
)
def test_what_is_no_array_names_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: bytes, words: str
) -> None:
    stdin(monkeypatch, data)
    assert words in refused(capsys, "copy", "-", "--tile=4")


@pytest.mark.parametrize(
    "arguments",
    [
        ["draw", "-", "-"],
        ["draw", "-", "--smem", "-"],
        ["tma", "-", "-"],
        ["tma", "check", "-", SMEM, "-"],
        ["desc", "check", "--request", "-", "--npy", "-"],
        ["desc", "check", "-", "--request", "-"],
    ],
    ids=" ".join,
)
def test_it_can_be_read_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    stdin(monkeypatch, GMEM.encode())
    assert "2 arguments are -, but standard input can be read only once" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    "arguments", [["draw", "-"], ["print", "-"], ["tma", "-", SMEM], ["tmem", "descriptor", "-"]], ids=" ".join
)
@pytest.mark.parametrize("data", [b"\xff\xfe", b""], ids=["binary", "empty"])
def test_what_is_no_text_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], data: bytes
) -> None:
    stdin(monkeypatch, data)
    refused(capsys, *arguments)


def test_a_closed_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input is closed" in refused(capsys, "copy", "-", "--tile=4")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stdin", closed)
    assert "standard input can't be read" in refused(capsys, "draw", "-")
