"""Files that are truncated, damaged or larger than they look, and where files are written."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_py.array_files import check_output, read_array, write_array
from cute_py.atomic_write import write_whole
from cute_py.draw import draw
from cute_py.errors import FileFormatError, InvalidTypeError
from cute_py.layout.layout import Layout
from tests.cli.test_commands import shell
from tests.shares import one_in

safetensors_numpy = pytest.importorskip("safetensors.numpy")

ARRAY = np.arange(64, dtype=np.float32).reshape(8, 8)


def safetensors_file(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(shape: list[int], end: int) -> dict[str, Any]:
    return {"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}


WHOLE = safetensors_numpy.save({"a": ARRAY})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (WHOLE[:-5], "truncated: its header asks for 256 bytes of elements, there are 251"),
        (WHOLE[:-256], "truncated: its header asks for 256 bytes of elements, there are 0"),
        (WHOLE[:20], "truncated: its header has"),
        (WHOLE[:7], "truncated: 7 bytes; the first 8"),
        (b"", "the file is empty"),
        (safetensors_file(b"hello", b""), "a damaged header"),
        (safetensors_file([1], b""), "a damaged header"),
        (safetensors_file(b"[" * 50_000, b""), "a damaged header"),
        (safetensors_file({"a": 3}, b""), "a damaged header"),
        (safetensors_file(one([3], 8), bytes(8)), "a damaged header"),
        (safetensors_file(one([2], 8), bytes(9)), "a damaged header"),
        (safetensors_file(b'{"a":{"data_offsets":[0,' + b"9" * 5000 + b"]}}", b""), "a damaged header"),
        (struct.pack("<Q", 1 << 62) + bytes(80), "a damaged header"),
    ],
    ids=range(13),
)
def test_safetensors_that_are_cut_off_or_damaged(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as error:
        read_array(str(path))
    assert f"can't be read as a safetensors file: {words}" in str(error.value)
    assert len(str(error.value)) < 600


def bomb(header: bytes, size: int = 64 << 20) -> bytes:
    """An archive of an array of many zeros, which takes a thousandth of them."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(header)
        for _ in range(size >> 20):
            entry.write(bytes(1 << 20))
    return file.getvalue()


def npy_header(shape: str, descr: str = "'|u1'", version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


@pytest.mark.parametrize(
    ("header", "words"),
    one_in(
        3,
        [
            (npy_header("(64, 1024, 1024, 1, 1, 1)"), "6 dimensions"),
            (npy_header("()"), "0 dimensions"),
            (npy_header("(0, 5)"), "shape (0, 5) has no elements"),
            (npy_header("(-1, 5)"), "shape (-1, 5) has a negative size"),
            (
                npy_header("(67108865,)"),
                "truncated: its header asks for 67108865 bytes of elements, there are 67108864",
            ),
            (npy_header("(4,)", "'|O'"), "elements are Python objects"),
            (npy_header("(4,)", "'>i4'"), "elements are big-endian"),
            (npy_header("(4,)", "[('a', '<i4')]", version=3), "elements are records"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\x03", "array 'a' can't be read"),
            (b"no array", "entry 'a' is not an array"),
        ],
    ),
    ids=range(10),
)
def test_an_archive_is_refused_by_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: bytes, words: str
) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(bomb(header))
    read: list[int] = []
    plain = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda s, n=-1: (read.append(n), plain(s, n))[1])
    with pytest.raises(FileFormatError) as error:
        read_array(str(path))
    assert words in str(error.value)
    assert all(0 <= n <= 1 << 16 for n in read)
    assert len(read) < 8


@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_of_every_version(tmp_path: Path, version: int) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy_header("(4, 4)", version=version) + bytes(range(16)))
    assert read_array(str(path)).tolist() == np.arange(16).reshape(4, 4).tolist()
    np.savez_compressed(tmp_path / "x.npz", a=ARRAY)
    assert (read_array(str(tmp_path / "x.npz")) == ARRAY).all()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "below").mkdir()
    target, link = tmp_path / "below" / f"target{suffix}", tmp_path / f"link{suffix}"
    link.symlink_to(target)
    write_array(str(link), ARRAY)  # what it points to is not there yet
    assert link.is_symlink()
    assert (read_array(str(target)) == ARRAY).all()
    os.chmod(target, 0o640)
    write_array(str(link), ARRAY + 1)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert (read_array(str(target)) == ARRAY + 1).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["below", link.name]


def test_a_link_to_itself_is_refused_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop, other, back = tmp_path / "x.npy", tmp_path / "a.npy", tmp_path / "b.npy"
    loop.symlink_to(loop)
    other.symlink_to(back)
    back.symlink_to(other)
    np.save(tmp_path / "in.npy", ARRAY)
    words = "can't be written: a symbolic link that leads back to itself"
    for path in (loop, other):
        for make in (write_whole, check_output, lambda name: write_array(name, ARRAY)):
            with pytest.raises(FileFormatError, match=words):
                make(str(path), *([b"x"] if make is write_whole else []))  # type: ignore[operator]
        status, _, err = shell(capsys, "copy", str(tmp_path / "in.npy"), "--tile=8x8", "--out", str(path))
        assert (status, words in err) == (2, True)
        assert path.is_symlink()
    for name, command in (("x.svg", ("draw", "4:1")), ("x.html", ("draw", "--html"))):
        (tmp_path / name).symlink_to(tmp_path / name)
        status, _, err = shell(capsys, *command, "--out", str(tmp_path / name))
        assert (status, words in err) == (2, True)
        assert (tmp_path / name).is_symlink()
    assert {p.name for p in tmp_path.iterdir()} == {"x.npy", "a.npy", "b.npy", "in.npy", "x.svg", "x.html"}


def test_pictures_of_links_and_bad_names(tmp_path: Path) -> None:
    target, link = tmp_path / "t.svg", tmp_path / "l.svg"
    link.symlink_to(target)
    draw(Layout(4)).save(link)
    assert link.is_symlink()
    assert target.read_text().startswith("<svg")
    for name, words in (
        ("", "(empty name)"),
        ("a\0b", "null"),
        (str(tmp_path), "Is a directory"),
        ("/dev/null", "not a"),
    ):
        with pytest.raises(FileFormatError, match=r"can't be written") as error:
            write_whole(name, "x")
        assert words in str(error.value)
    with pytest.raises(InvalidTypeError, match="path must be a text or a path, got int 0"):
        write_whole(0, "x")  # type: ignore[arg-type]
