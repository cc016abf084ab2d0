"""`cute-py draw`: what it prints and writes, its JSON, and its refusals."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.draw.dispatch import draw
from cute_py.draw.picture import monospace_family
from cute_py.notation.parse import parse
from tests.cli.test_commands import shell
from tests.refusals import is_refusal

GMEM, SMEM = "(100,200):(200,_1)", "Sw<3,4,3> o smem_ptr[16b](unset) o (_32,_64):(_64,_1)"


def test_a_layout_is_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "draw", "((2,2),4):((1,8),2)")
    assert status == 0
    assert out.splitlines()[0] == "((2,2),4):((1,8),2)"
    assert out.splitlines()[-1] == ": 3 | 9  11  13  15"


@pytest.mark.parametrize("text", ["((2,2),4):((1,8),2)", "(4,8", "mxfp8", "SM80_16x8x8_F32F16F16F32_TN"])
def test_a_text_is_parsed_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    parsed = []
    monkeypatch.setattr(cute, "parse", lambda given: (parsed.append(given), parse(given))[1])
    shell(capsys, "draw", text)
    assert parsed == [text]


def test_standard_input_and_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("(4,8):(8,1)\n"))
    status, out, _ = shell(capsys, "draw", "-", "--json")
    data = json.loads(out)
    assert status == 0
    assert [(d["title"], d["cells"]) for d in data] == [("(4,8):(8,1)", 32)]
    assert ElementTree.fromstring(data[0]["svg"]).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["Sw<2,4,3>"], "after Sw<2,4,3> on bytes"),
        (["(4,4):(4,1)", "(4,4):(1,4)"], "(4,4):(1,4)"),
        (["((_8,_4),(_2,_2)):((_16,_2),(_1,_8))", "--what", "tv", "--tile", "(8,16)"], "T31 V3"),
        (["ArithTuple(0,0) o (2,3):(_1@0,_1@1)"], "(1,2)"),
        (["(4,8):(8,1)", "--color", "bank", "--dtype", "float32"], "24 b24  25 b25"),
        (["(4,8):(8,1)", "--color", "tile", "--tile", "(2,4)"], "24  25"),
        (["(4,8):(8,1)", "--color", "tile", "--tile", "2x4"], "24  25"),
        (["((_8,_4),(_2,_2)):((_16,_2),(_1,_8))", "--what", "tv", "--tile", "8x16"], "T31 V3"),
        (["SM80_16x8x16_F32F16F16F32_TN", "--operand", "B"], "N 8 0 |  T0 V0   T0 V1   T1 V0"),
        (["--what", "tmem"], "32-127 | as lanes 0-31"),
        ([GMEM, "--smem", SMEM], "(192,96)/"),
        ([GMEM, "--smem", SMEM, "--what", "smem", "--at", "(3,3)"], "tile (3,3) in shared memory"),
        ([GMEM, "--smem", SMEM, "--what", "descriptor"], "global_dim[0] = 199"),
        (
            [GMEM, "--smem", SMEM, "--what", "multicast", "--op", "SM90_TMA_LOAD_MULTICAST", "--multicast", "2"],
            "CTA 1 (0,16)",
        ),
        (["00" * 64, "--what", "descriptor"], "tensor map, tiled, rank 1, 64 bytes"),
    ],
)
def test_every_picture_has_its_text(capsys: pytest.CaptureFixture[str], arguments: list[str], part: str) -> None:
    status, out, err = shell(capsys, "draw", *arguments)
    assert (status, err) == (0, "")
    assert part in out


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "SM75_U32x4_LDSM_N"])
def test_only_an_mma_has_operands(capsys: pytest.CaptureFixture[str], text: str) -> None:
    status, out, err = shell(capsys, "draw", text, "--operand", "B")
    assert (status, out) == (2, "")
    assert "--operand needs the name of an MMA atom" in err


def test_files_are_written_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    svg, page, text = (str(tmp_path / name) for name in ("a.svg", "b.html", "c.txt"))
    assert shell(capsys, "draw", GMEM, "--smem", SMEM, "--out", svg)[:2] == (
        0,
        f"{svg}: {os.path.getsize(svg)} bytes, 16 cells\n",
    )
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert shell(capsys, "draw", GMEM, "--smem", SMEM, "--out", page)[0] == 0
    written = Path(page).read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    assert written.count("<figure>") == 3
    assert "http" not in written.replace("http://www.w3.org/2000/svg", "")
    assert shell(capsys, "draw", "(4,4):(4,1)", "--out", text)[0] == 0
    assert Path(text).read_text(encoding="utf-8").startswith("(4,4):(4,1)")
    _, out, _ = shell(capsys, "draw", "(4,4):(4,1)", "--out", svg, "--json")
    assert json.loads(out)[0]["file"] == svg
    assert sorted(os.listdir(tmp_path)) == ["a.svg", "b.html", "c.txt"]


def test_a_descriptor_is_drawn_however_it_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = bytes.fromhex(shell(capsys, "desc", "encode", "--dtype=u8", "--dims=64,8", "--strides=64", "--box=64,8")[1])
    dump = "\n".join(f"0x7ffe{i:04x}:\t0x{int.from_bytes(data[i : i + 8], 'little'):016x}" for i in range(0, 128, 8))
    (tmp_path / "map").write_bytes(data)
    (tmp_path / "map.txt").write_text(dump)
    picture = shell(capsys, "draw", data.hex())
    assert picture[0] == 0
    assert picture[1].startswith("tensor map, tiled, rank 2, 128 bytes")
    assert shell(capsys, "draw", str(tmp_path / "map")) == shell(capsys, "draw", str(tmp_path / "map.txt")) == picture
    assert shell(capsys, "draw", "--what=descriptor", dump) == picture
    monkeypatch.setattr("sys.stdin", io.StringIO(dump))
    assert shell(capsys, "draw", "-") == picture


@pytest.mark.parametrize("more", [[], ["--dark"], ["--scale=0.5"]], ids=str)
def test_a_png_is_the_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path, more: list[str]) -> None:
    pytest.importorskip("resvg_py", reason="needs the extra png")
    out = tmp_path / "a.png"
    status, told, err = shell(capsys, "draw", "(4,4):(4,1)", "--out", str(out), *more)
    data = out.read_bytes()
    assert (status, told, err) == (0, f"{out}: {len(data)} bytes, 16 cells\n", "")
    assert data == draw(parse("(4,4):(4,1)")).png(0.5 if "--scale=0.5" in more else 2, "--dark" in more)


def test_a_png_without_the_package_names_the_extra(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    monospace_family.cache_clear()
    assert shell(capsys, "draw", "(4,4):(4,1)", "--out", str(tmp_path / "a.png")) == (
        2,
        "",
        "cute-py: error: a picture as .png needs the package resvg-py\n  hint : pip install 'cute-py[png]'\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_page_goes_to_standard_output_too(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "draw", "(4,4):(4,1)", "--html")
    assert status == 0
    assert out.startswith("<!doctype html>")
    assert out.endswith("</body></html>\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "nothing to draw"),
        (["(4,8"], ""),
        (["(4,4)"], "there is no picture of tuple"),
        (["(4,4):(4,1)", "--what", "smem"], "--what smem needs --smem"),
        (["(4,4):(4,1)", "--what", "tv"], "--what tv needs --tile"),
        (["(4,4):(4,1)", "(4,4):(4,1)", "--what", "layout"], "layout needs one TEXT, got 2"),
        (["(4,4):(4,1)", "(4,4):(4,1)", "--smem", SMEM], "--smem needs one TEXT, got 2"),
        ([GMEM, "--smem", SMEM, "--what", "tv"], "--what tv can't be used with --smem"),
        ([GMEM, "--smem", SMEM, "--what", "smem", "--at", "16"], "the tensor has (4, 4) tiles"),
        (["(4,4):(4,1)", "--out", "/nonexistent/a.svg"], "can't be written"),
        (["(4,4):(4,1)", "--out", "a.gif"], "not '.gif'"),
        (["(4,4):(4,1)", "--out", "a.svg", "--dark"], "--dark and --scale need --out with a name that ends in .png"),
        (["(4,4):(4,1)", "--scale", "3"], "--dark and --scale need --out with a name that ends in .png"),
        (["(4,4):(4,1)", "--out", "a.png", "--scale", "0"], "scale = 0.0; must be a positive number"),
        (["(4,4):(4,1)", "--html", "--out", "a.svg"], "the name of a page must end in .html"),
        (["(4,4):(4,1)", "--dtype", "float17"], "float17"),
        (["zz", "--what", "descriptor"], ""),
    ],
)
def test_refusals_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], part: str) -> None:
    status, out, err = shell(capsys, "draw", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("cute-py: error: ")
    assert is_refusal(err)
    assert part in err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["draw", "--help"])
    assert end.value.code == 0
    assert "--smem" in capsys.readouterr().out


BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"


def test_a_triton_layout_is_not_read_as_a_tensor_map(capsys: pytest.CaptureFixture[str]) -> None:
    """Its eight numbers could be eight words."""
    assert main(["draw", BLOCKED]) == 2
    assert "needs --tile, the shape of the tensor" in capsys.readouterr().err
    assert main(["draw", BLOCKED, "--tile", "64x16"]) == 0
    third = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" 3 |")]
    assert third[0].split("|")[1].split()[10:12] == ["T13", "V1"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("32_4_4", "mxfp8() of 128 x 128"),
        ("nvfp4(scales='8x4')", "nvfp4(scales='8x4') of 128 x 128"),
        ("(4,8):(8,1)", "(4,8):(8,1)"),
    ],
)
def test_formats_and_orders_of_scales_by_name(text: str, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", text]) == 0
    assert capsys.readouterr().out.startswith(title)
