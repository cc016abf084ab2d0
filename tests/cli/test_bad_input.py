"""Bad input on the command line: a refusal on standard error, exit status 2, no traceback, no half-written file."""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_py.cli.main import main
from tests.refusals import is_refusal

MAP = ["--dtype=float16", "--dims=512,1024", "--strides=1024", "--box=64,128"]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that has to be refused. Returns what it says."""
    try:
        status: Any = main(list(arguments))
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert is_refusal(err)
    assert len(err) < 1200
    return err


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def npy_with_header(text: str) -> bytes:
    body = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body + bytes(256)


@pytest.fixture
def array(tmp_path: Path) -> str:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(256, dtype=np.float32).reshape(16, 16))
    return str(path)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("(99999999999, 99999999999)", "truncated: its header asks for 39999999999200000000004 bytes"),
        ("(-4, 4)", "shape (-4, 4) has a negative size"),
        ("(4.5, 4)", "shape is not valid"),
        ("(2**62,)", "its header is malformed"),
        ("(True, 4)", "its header is malformed"),
        ("(" * 3000 + ")" * 3000, "can't be read as a numpy file"),
        ("4" * 9000, "can't be read as a numpy file"),
    ],
    ids=lambda value: value[:12],
)
def test_headers_that_lie(tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: str, words: str) -> None:
    path = tmp_path / "h.npy"
    path.write_bytes(npy_with_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"))
    assert words in refused(capsys, "copy", str(path), "--tile=4")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"readme.txt": b"hello"}, "entry 'readme.txt' is not an array"),
        ({"a.npy": b"hello"}, "entry 'a' is not an array"),
        ({}, "holds no array"),
        ({f"w{i:03}.npy": b"" for i in range(400)}, "w018, w019, ... (400 in all)"),
        ({"a\nb.npy": b"", "c.npy": b""}, "choose one with --key: 'a\\nb', c"),
    ],
    ids=["text", "no npy", "empty", "many", "line break"],
)
def test_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str], entries: dict[str, bytes], words: str) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    assert words in refused(capsys, "copy", str(path), "--tile=4")


@pytest.mark.parametrize("tile", ["1e9", "1.5", "+8", "1_0", "１６", "x", "8x", "9" * 5000, "inf", "1x1x1x1x1x1"])
def test_tiles_that_are_none(capsys: pytest.CaptureFixture[str], array: str, tile: str) -> None:
    assert "tile" in refused(capsys, "copy", array, f"--tile={tile}")


def test_a_tile_without_a_box_is_refused_with_tiles_that_work(capsys: pytest.CaptureFixture[str], array: str) -> None:
    err = refused(capsys, "copy", array, "--tile=8x1")
    fix = err.split("these work: ")[1].split(",")[0].rstrip(")\n").split()
    assert main(["copy", array, *fix]) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/y.npy", "No such file or directory"),
        ("x.npy/y.npy", "Not a directory"),
        ("folder.npy", "Is a directory"),
        ("pipe.npy", "not a plain file"),
        ("y.txt", "unknown file type .txt"),
        ("", "unknown file type (none)"),
        ("a\0.npy", "embedded null"),
        ("y" * 300 + ".npy", "File name too long"),
    ],
    ids=lambda value: value[:10].replace("\0", "0"),
)
def test_output_places(tmp_path: Path, capsys: pytest.CaptureFixture[str], array: str, name: str, words: str) -> None:
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    before = sorted(os.listdir(tmp_path))
    assert words in refused(capsys, "copy", array, "--tile=8x8", "--out", str(tmp_path / name) if name else "")
    assert sorted(os.listdir(tmp_path)) == before


def test_output_over_the_input_and_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], array: str
) -> None:
    before = np.load(array)
    link = tmp_path / "link.npy"
    link.symlink_to("x.npy")
    for out in (array, str(link)):
        assert main(["copy", array, "--tile=8x8", "--out", out]) == 0
        assert (np.load(array) == before).all()
    assert link.is_symlink()


@pytest.mark.parametrize("key", ["file", "allow_pickle", "a/b", "."])
def test_names_that_are_arguments_of_numpy(tmp_path: Path, array: str, key: str) -> None:
    source, out = tmp_path / "x.npz", tmp_path / "y.npz"
    with zipfile.ZipFile(source, "w") as archive:
        archive.write(array, f"{key}.npy")
    assert main(["copy", str(source), "--key", key, "--tile=8x8", "--out", str(out)]) == 0
    with np.load(out) as written:
        assert written.files == [key]
        assert (written[key] == np.load(array)).all()


@pytest.mark.parametrize(
    "arguments",
    [
        ["copy", "x.npy"],
        ["copy", "x.npy", "--tile", "-1x4"],
        ["copy", "x.npy", "--tile=4", "--swizzle=13B"],
        ["desc", "encode", *MAP, "--dims=1.5,4"],
        ["desc", "encode", *MAP, "--address=zz"],
        ["demo", "--tile="],
        ["nothing"],
        [],
    ],
    ids=lambda value: " ".join(value[:3]) or "none",
)
def test_wrong_arguments_are_one_line_too(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert "_" not in refused(capsys, *arguments).split("(see")[0]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            ["--tile", "8x8", "--swizle", "128B"],
            "cute-py copy: error: unrecognized arguments: --swizle 128B; nearest: --swizz",
        ),
        (["other.npy", "--tile", "8x8"], "unrecognized arguments: other.npy (see cute-py copy --help)"),
        (["--permute", "1,0", "--swizzle", "128B"], "--swizzle needs --tile; omit it with --permute"),
        (["--permute", "1,0", "--order", "col"], "--order needs --tile; omit it with --permute"),
    ],
)
def test_an_option_that_does_not_apply(
    capsys: pytest.CaptureFixture[str], array: str, more: list[str], words: str
) -> None:
    try:
        status: object = main(["copy", array, *more])
    except SystemExit as stop:
        status = stop.code
    assert status == 2 and words in capsys.readouterr().err


def test_an_order_may_be_written_as_a_tuple(array: str) -> None:
    assert main(["copy", array, "--permute", "(1,0)"]) == 0


def test_demo_takes_the_swizzle_that_its_refusal_proposes(capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(capsys, "demo", "--tile=300x8")
    fix = err.split("these work: ")[1].split(",")[0].split()
    assert main(["demo", *fix]) == 0


def test_desc_out_is_whole_or_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "map.bin"
    assert "No such file" in refused(capsys, "desc", "encode", *MAP, "--out", str(tmp_path / "no" / "map"))
    assert "Is a directory" in refused(capsys, "desc", "encode", *MAP, "--out", str(tmp_path))
    refused(capsys, "desc", "encode", *MAP, "--box=300,300", "--out", str(out))
    assert list(tmp_path.iterdir()) == []
    assert main(["desc", "encode", *MAP, "--out", str(out)]) == 0
    assert len(out.read_bytes()) == 128


def test_headers_for_a_map_come_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    path = tmp_path / "h.npy"
    path.write_bytes(npy_with_header("{'descr': '<f4', 'shape': " + "(" * 3000))
    for name, words in (("pipe.npy", "not a file"), ("", "not a file"), ("no.npy", "No such file")):
        assert words in refused(capsys, "desc", "encode", "--box=8", "--npy", str(tmp_path / name))
    assert main(["desc", "encode", "--box=8", "--npy", str(path)]) == 2
    assert len(capsys.readouterr().err) < 2100


def test_maps_on_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["desc", "encode", *MAP]) == 0
    text = capsys.readouterr().out
    told = []
    for data in (bytes.fromhex(text), text.encode()):
        stdin(monkeypatch, data)
        assert main(["desc", "decode", "-"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    stdin(monkeypatch, text.encode())
    assert "only one of the two" in refused(capsys, "desc", "diff", "-", "-")
    for data in (b"", b"\xff\xfe", bytes(17)):
        stdin(monkeypatch, data)
        refused(capsys, "desc", "decode", "-")
    assert "neither a file nor the text of a tensor map" in refused(capsys, "desc", "decode", "nope.bin")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b"1" * 5000], ids=lambda d: repr(d[:4])
)
def test_requests_that_are_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    stdin(monkeypatch, data)
    refused(capsys, "desc", "encode", "--request", "-")


@pytest.fixture(scope="module")
def request_of_map() -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main(["desc", "encode", *MAP, "--json"])
    return json.loads(printed.getvalue())["request"]


@pytest.mark.parametrize("value", [None, "zz", 1.5, True, {"a": 1}, [1, "a"], [[1]], float("inf")], ids=repr)
@pytest.mark.parametrize("name", ["kind", "global_address", "global_dim", "global_strides", "box_dim", "swizzle"])
def test_requests_with_wrong_types(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, value: Any, request_of_map: Any
) -> None:
    stdin(monkeypatch, json.dumps(request_of_map | {name: value}).encode())
    refused(capsys, "desc", "encode", "--request", "-")


def test_large_layouts_are_told_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["print", "(100000,100000):(1,100000)"]) == 0
    assert capsys.readouterr().out == "(100000,100000):(1,100000)\nsize 10000000000, cosize 10000000000\n"
    assert "at most 65536" in refused(capsys, "print", "(100000,100000):(1,100000)", "--latex")
    assert "at most 65536" in refused(capsys, "print", "ArithTuple(0,0) o (4000,5000):(_1@0,_1@1)")


def test_a_layout_of_coordinates_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    """It has no cosize: its values are no offsets."""
    assert main(["print", "(2,3):(_1@1,_2@0)"]) == 0
    lines = ["(2,3):(_1@1,_2@0)", "  (0,0)  (2,0)  (4,0)", "  (0,1)  (2,1)  (4,1)", "size 6, coordinates below (5,2)"]
    assert capsys.readouterr().out.splitlines() == lines
    assert main(["print", "(1000,1000):(1@0,1@1)"]) == 0
    assert capsys.readouterr().out == "(1000,1000):(1@0,1@1)\nsize 1000000, coordinates below (1000,1000)\n"


@pytest.mark.parametrize(
    ("redirection", "status"),
    [("> /dev/full", 2), (">&-", 2), ("| true; exit ${PIPESTATUS[0]}", None)],
    ids=["full", "closed", "pipe"],
)
def test_output_that_goes_nowhere(redirection: str, status: int | None) -> None:
    command = f"{sys.executable} -m cute_py print '(64,64):(1,64)' {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode in ((0, 141) if status is None else (status,))
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (1 if status == 2 else 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["print", "(4,8):(8,1)"], False),
        (["print", "(4,8", "--json"], True),
        (["print", "(4,8):(8,1)", "--jsn", "--json"], False),
    ],
    ids=["answer", "refusal", "usage"],
)
def test_a_reader_that_went_away_is_status_141(words: list[str], said: bool) -> None:
    """Also where a refusal is printed as JSON: its text is on standard error, without a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "cute_py", *words]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert ("expected ',' or ')'" in done.stderr) == said


def test_a_file_that_fails_is_told_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["desc", "encode", *MAP, "--npy", "a" * 5000, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["message"].endswith("File name too long")


@pytest.mark.parametrize(
    "command", [["demo", "--tile=--"], ["copy", "x.npy", "--out=--"], ["check", __file__, "--map=--"]]
)
def test_an_option_whose_value_is_two_dashes(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    option = command[-1].removesuffix("=--")
    words = f"argument {option}: expected one argument" if sys.version_info < (3, 13) else "--"
    assert words in refused(capsys, *command)


def test_names_that_the_terminal_cannot_show(tmp_path: Path, array: str) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xc3\xbc.npy"
    Path(os.fsdecode(name)).write_bytes(Path(array).read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "cute_py", "copy", name, "--tile=8x8"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines()[-1] == b"equal"
