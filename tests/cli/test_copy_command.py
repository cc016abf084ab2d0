"""`cute-py copy` on real files: equal every time, or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py.array_files import write_array
from cute_py.cli.main import main
from tests.refusals import is_refusal
from tests.shares import one_in

RNG = np.random.default_rng(7)


def save(path: Path, array: Any) -> str:
    np.save(path, array)
    return str(path)


def copy(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["copy", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_bfloat16_matrix_with_swizzle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = RNG.standard_normal((1024, 512)).astype(ml_dtypes.bfloat16)
    path, out = str(tmp_path / "w.safetensors"), str(tmp_path / "o.safetensors")
    write_array(path, x, "w")
    arguments = (path, "--key", "w", "--tile", "128x64", "--swizzle", "128B", "--out", out, "--json")
    status, text, err = copy(capsys, *arguments)
    data = json.loads(text)
    assert (status, err) == (0, "")
    assert data["equal"] is True
    assert data["g_basis"] == "(_64,_128):(_1@1,_1@0)"
    assert data["tma_tensor"] == "ArithTuple(_0,_0) o (1024,512):(_1@1,_1@0)"
    assert (data["tiles"], data["instructions"], data["transaction_bytes"]) == (64, 64, 16384)
    assert data["descriptor"]["box_dim"] == [64, 128]
    from cute_py.array_files import read_array

    assert (read_array(out, "w").view(np.uint16) == x.view(np.uint16)).all()


@pytest.mark.parametrize(
    ("array", "tile", "more"),
    [
        (RNG.standard_normal((7, 13, 100)).astype(np.float32), "3x8x32", ()),
        (RNG.integers(-128, 127, 1003).astype(np.int8), "256", ()),
        (RNG.standard_normal((3, 2, 5, 6, 10)), "1x1x2x4x8", ()),
        (RNG.integers(0, 2, (64, 64)).astype(bool), "16x32", ()),
        (RNG.integers(-9, 9, (40, 24)).astype(np.int16), "16x8", ()),
        ((RNG.standard_normal((8, 12)) * (1 + 1j)).astype(np.complex64), "4x8", ()),
        (RNG.standard_normal((64, 96)).astype(np.float16), "32x32", ("--order", "col")),
        (np.asfortranarray(RNG.standard_normal((32, 48)).astype(np.float32)), "16x16", ()),
        (RNG.integers(0, 99, (64, 64)).astype(np.uint16), "32x64", ("--dtype", "bf16", "--swizzle", "128B")),
        (RNG.standard_normal((5, 64)).astype(np.float32), "64", ()),
        (RNG.standard_normal((33, 68)).astype(np.float32), "8x16", ("--swizzle", "64B")),
    ],
    ids=lambda v: v if isinstance(v, str) else getattr(v, "dtype", None) and f"{v.dtype}{list(v.shape)}",
)
def test_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str], array: Any, tile: str, more: tuple[str]) -> None:
    status, out, err = copy(capsys, save(tmp_path / "x.npy", array), "--tile", tile, *more)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "equal"


def test_npz_with_several_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "x.npz")
    np.savez(path, a=np.zeros((4, 16), np.float32), b=np.ones((8, 16), np.float32))
    assert copy(capsys, path, "--key", "b", "--tile", "4x8")[0] == 0
    status, out, err = copy(capsys, path, "--tile", "4x8")
    assert (status, out) == (2, "")
    assert err == f"cute-py: error: {path}: the file holds 2 arrays; choose one with --key: a, b\n"


def test_out_is_whole_or_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = RNG.standard_normal((16, 16)).astype(np.float32)
    path = save(tmp_path / "x.npy", x)
    assert copy(capsys, path, "--tile", "8x8", "--out", str(tmp_path / "y.npy"))[0] == 0
    assert (np.load(tmp_path / "y.npy") == x).all()
    status, _, err = copy(capsys, path, "--tile", "8x8", "--out", str(tmp_path / "no" / "y.npy"))
    assert status == 2
    assert "can't be written: No such file or directory" in err
    status, _, err = copy(capsys, path, "--tile", "8x8", "--out", str(tmp_path / "y.txt"))
    assert status == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy"]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_types_that_numpy_files_lack_are_written_as_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, suffix: str
) -> None:
    x = RNG.standard_normal((8, 64)).astype(getattr(ml_dtypes, name))
    path, out = str(tmp_path / "x.safetensors"), str(tmp_path / f"y.{suffix}")
    write_array(path, x)
    status, text, _ = copy(capsys, path, "--tile", "4x32", "--out", out)
    width = x.dtype.itemsize * 8
    assert status == 0
    assert f"warning      {name} has no .npy type: its bits are written as uint{width}" in text
    loaded = np.load(out)
    written = loaded if suffix == "npy" else loaded["tensor"]
    assert written.dtype == f"uint{width}"
    assert (written == x.view(f"u{x.dtype.itemsize}")).all()
    assert copy(capsys, out, "--tile", "4x32", "--dtype", name)[0] == 0


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], array: Any, *more: str) -> str:
    status, out, err = copy(capsys, save(tmp_path / "x.npy", array), *more)
    assert (status, out) == (2, "")
    assert err.startswith("cute-py: error: ")
    assert is_refusal(err)
    return err


def test_row_length_is_refused_with_the_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(tmp_path, capsys, np.zeros((7, 13), np.float32), "--tile", "4x8")
    assert "globalStrides[0] = 52 bytes; must be a multiple of 16" in err
    assert " : pad the row to 16 elements" in err


def test_a_padded_row_and_the_other_order_are_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(tmp_path, capsys, np.zeros((100, 130), np.float32), "--tile", "128x32")
    assert " : pad the row to 132 elements; or these work: --tile " in err
    padded = np.zeros((100, 132), np.float32)
    np.save(tmp_path / "padded.npy", padded)
    assert copy(capsys, str(tmp_path / "padded.npy"), "--tile", "128x32")[0] == 0


def test_swizzle_is_refused_with_boxes_that_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    array = np.zeros((256, 256), np.float16)
    err = refused(tmp_path, capsys, array, "--tile", "128x128", "--swizzle", "128B")
    assert "256 bytes" in err
    assert "--tile 128x64 --swizzle 128B" in err
    assert copy(capsys, str(tmp_path / "x.npy"), "--tile", "128x64", "--swizzle", "128B")[0] == 0


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        ("0x4", "every size must be at least 1"),
        ("-1x4", "every size must be at least 1"),
        ("4", ""),
        ("8X4", ""),
        ("(8, 4)", ""),
        ("(_8,_4)", ""),
        ("((8),4)", "must be sizes joined by x"),
        ("4x4x4", "the tile has 3 modes; must have at most as many as the array, of shape (16, 16)"),
        ("1x1x1x1x1x1", "at most 5"),
        ("fourxfour", "must be sizes joined by x"),
        ("", "must be sizes joined by x"),
        ("4x99999999999999999999", "shared memory has 232448"),
        ("300x16", "boxDim[1] = 300 elements; must be"),
    ],
)
def test_tiles(tmp_path: Path, capsys: pytest.CaptureFixture[str], tile: str, words: str) -> None:
    array = np.zeros((16, 16), np.float32)
    if words:
        assert words in refused(tmp_path, capsys, array, f"--tile={tile}")
    else:
        assert copy(capsys, save(tmp_path / "x.npy", array), "--tile", tile)[0] == 0


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((0, 4), np.float32), "has no elements"),
        (np.zeros((2,) * 6, np.float32), "6 dimensions; a TMA tensor has 1 to 5"),
        (np.float32(3), "0 dimensions"),
        (np.zeros((4, 4), ">f4"), "big-endian"),
        (np.zeros((4, 4), [("a", "f4")]), "elements are records"),
        (np.zeros((4, 4), "S3"), "no GPU element type"),
        (np.zeros((4, 4), np.complex128), "an element of complex128 has 16 bytes"),
        (np.zeros((4, 4), "V2"), "pass their type, such as --dtype"),
    ],
)
def test_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str], array: Any, words: str) -> None:
    assert words in refused(tmp_path, capsys, array, "--tile", "1")


def test_objects_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([{}, 1], object), allow_pickle=True)
    status, _, err = copy(capsys, str(path), "--tile", "2")
    assert (status, "Python objects" in err) == (2, True)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.safetensors"])
@pytest.mark.parametrize("content", [b"", b"garbage" * 9, b"\x93NUMPY\x01\x00\xff\xff"])
def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    status, out, err = copy(capsys, str(path), "--tile", "4")
    assert (status, out) == (2, "")
    assert f"{path}: can't be read as a" in err
    assert is_refusal(err)


def test_missing_and_unknown_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file" in copy(capsys, str(tmp_path / "x.npy"), "--tile", "4")[2]
    assert "unknown file type .txt" in copy(capsys, str(tmp_path / "x.txt"), "--tile", "4")[2]
    path = tmp_path / "x.safetensors"
    write_array(str(path), np.zeros(4, np.float32), "w")
    assert "the file has no array 'q'; it holds w" in copy(capsys, str(path), "--key", "q", "--tile", "4")[2]


def test_demo_ends_with_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "equal"
    own = save(tmp_path / "own.npy", RNG.standard_normal((3, 40, 24)).astype(np.float32))
    assert main(["demo", own]) == 0
    out = capsys.readouterr().out
    assert "ArithTuple(0,0) o (2,5):(_1@0,_1@1):" in out
    assert out.splitlines()[-1] == "equal"


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 1), (1, 1, 1), (3, 1, 1), (1,), (3,)], ids=str)
@pytest.mark.parametrize("dtype", one_in(4, [np.int8, np.float16, np.float32, np.float64]))
def test_thin_arrays_are_copied_or_told_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: tuple[int, ...], dtype: type
) -> None:
    path = save(tmp_path / "x.npy", np.arange(np.prod(shape)).reshape(shape).astype(dtype))
    err = refused_one(capsys, path)
    fixes = [fix.split() for fix in err.split("these work: ")[1].rstrip(")\n").split(", ")]
    assert fixes
    for fix in fixes:
        assert copy(capsys, path, *fix)[0] == 0, fix


def refused_one(capsys: pytest.CaptureFixture[str], path: str) -> str:
    status, out, err = copy(capsys, path, "--tile", "1")
    assert (status, out, is_refusal(err)) == (2, "", True)
    return err


@pytest.mark.parametrize(
    ("tile", "first"), [("300x64", "--tile 256x64 --swizzle none"), ("64x60", "--tile 64x64 --swizzle none")]
)
def test_the_nearest_tile_is_proposed_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tile: str, first: str
) -> None:
    path = save(tmp_path / "x.npy", np.ones((300, 200), np.float16))
    status, _, err = copy(capsys, path, "--tile", tile)
    assert (status, err.split("these work: ")[1].split(",")[0]) == (2, first)
    assert copy(capsys, path, *first.split())[0] == 0


def test_what_is_proposed_fits_into_shared_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "x.npy", np.ones((300, 300), np.float64))
    err = copy(capsys, path, "--tile", "300x64")[2]
    for fix in err.split("these work: ")[1].rstrip(")\n").split(", "):
        assert copy(capsys, path, *fix.split())[0] == 0, fix


@pytest.mark.parametrize(("kind", "example"), [("|V1", "float8_e4m3fn"), ("|V2", "bf16")])
def test_untyped_elements_are_told_a_type_of_their_width(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, example: str
) -> None:
    path = save(tmp_path / "x.npy", np.zeros((64, 64), kind))
    assert f"pass their type, such as --dtype {example}" in copy(capsys, path, "--tile=8x16")[2]
    assert copy(capsys, path, "--tile=8x16", "--dtype", example)[0] == 0


def test_one_is_told_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "x.npy", np.ones((1, 1), np.float32))
    _, out, _ = copy(capsys, path, "--tile", "1x4")
    assert "tiles        1 of 1 instruction: 1 load\n" in out
    assert main(["demo", path, "--tile", "1x4"]) == 0
    assert "\n1 tile, 1 load and store, 4 bytes copied:\n" in capsys.readouterr().out
    assert main(["demo", save(tmp_path / "y.npy", np.ones((64, 64), np.float32)), "--tile", "16x32"]) == 0
    assert "\n8 tiles, 8 loads and stores, 16384 bytes copied:\n" in capsys.readouterr().out


def test_demo_takes_the_order_that_its_refusal_proposes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "x.npy", np.arange(5, dtype=np.float32).reshape(5, 1))
    assert main(["demo", path]) == 2
    fix = capsys.readouterr().err.split("these work: ")[1].split(",")[0].split()
    assert "--order" in fix
    assert main(["demo", path, *fix]) == 0


def test_what_no_order_copies_is_told_to_lose_its_dimensions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array = np.arange(7, dtype=np.float32).reshape(1, 7, 1)
    err = refused_one(capsys, save(tmp_path / "x.npy", array))
    shape, fix = err.split("without its dimensions of size 1, as ")[1].split("; then ")
    assert shape == "(7,)"
    assert copy(capsys, save(tmp_path / "y.npy", array.reshape(7)), *fix.split(" works")[0].split())[0] == 0
