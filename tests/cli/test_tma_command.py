"""`cute-py tma`: a view in front of the layouts, JSON of every view, exit status of check."""

from __future__ import annotations

import json

import pytest

from cute_py.cli.main import main
from cute_py.cli.tma_command import VIEWS
from tests.cli.test_bad_input import refused
from tests.cli.test_commands import shell

GMEM, SMEM = "(1024,512):(512,_1)", "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
NARROW = "Sw<1,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_can_stand_in_front(capsys: pytest.CaptureFixture[str], view: str) -> None:
    named = shell(capsys, "tma", view, GMEM, SMEM)
    assert named == shell(capsys, "tma", GMEM, SMEM, "--show", view)
    assert named == shell(capsys, "tma", view, GMEM, SMEM, "--show", view)
    assert named[0] == 0
    status, out, _ = shell(capsys, "tma", view, GMEM, SMEM, "--json")
    data = json.loads(out)
    assert status == 0
    assert (data["show"], data["text"].rstrip("\n")) == (view, named[1].rstrip("\n"))
    assert data["box_dim"] == [64, 128]


def test_explain_is_the_view_without_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell(capsys, "tma", GMEM, SMEM) == shell(capsys, "tma", "explain", GMEM, SMEM)


def test_check_has_the_exit_status_of_its_finding(capsys: pytest.CaptureFixture[str]) -> None:
    rule = "boxDim[0] in bytes = 128 bytes; must be at most 32 with swizzle 32B"
    assert shell(capsys, "tma", "check", GMEM, NARROW)[:2] == (1, f"{rule}\n")
    assert shell(capsys, "tma", "check", GMEM, NARROW, "--no-check")[:2] == (1, f"{rule}\n")
    assert shell(capsys, "tma", "box", GMEM, NARROW)[0] == 2
    status, out, _ = shell(capsys, "tma", "check", GMEM, NARROW, "--no-check", "--json")
    assert (status, json.loads(out)["violations"]) == (1, [rule])
    assert shell(capsys, "tma", "box", GMEM, NARROW, "--no-check")[0] == 0
    status, out, _ = shell(capsys, "tma", "check", "(64,20):(24,_1)", "(_16,_8):(_8,_1)", "--json")
    data = json.loads(out)
    assert (status, data["violations"]) == (0, [])
    assert data["text"] == "\n".join(f"warning: {text}" for text in data["warnings"])
    assert data["warnings"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["box"], "0 operands; must be GMEM SMEM or GMEM SMEM TILE"),
        ([GMEM], "1 operand; must be GMEM SMEM or GMEM SMEM TILE"),
        (["box", GMEM], "1 operand; must be"),
        ([GMEM, SMEM, "(_128,_64)", "(_128,_64)"], "4 operands; must be"),
        (["box", GMEM, SMEM, "--show", "ptx"], "--show ptx can't be used with the view box"),
    ],
)
def test_too_few_and_too_many_words(capsys: pytest.CaptureFixture[str], words: list[str], part: str) -> None:
    assert part in refused(capsys, "tma", *words)


def test_help_names_every_view(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        shell(capsys, "tma", "--help")
    out = capsys.readouterr().out
    assert "cute-py tma [-h] [VIEW] GMEM SMEM [TILE] [options]" in out
    for view in VIEWS:
        assert view in out


STAGES = {
    "column-major": (("(256,128):(_1,256)", "(_64,_32):(_1,_64)", "--at", "(1,0)"), "(64, 0)", "stride = [1, %M]"),
    "padded": (("(256,100):(128,_1)", "(_64,_32):(_32,_1)", "--at", "(0,3)"), "(96, 0)", "stride = [%sm, 1]"),
    "rank 4": (
        ("(2,8,64,64):(32768,4096,_1,64)", "(_1,_4,_32,_16):(_0,_512,_1,_32)", "--at", "(1,1,0,2)"),
        "(0, 32, 4, 1)",
        "tile = [1, 4, 16, 32], dim_map = [0, 1, 3, 2]",
    ),
    "two boxes": ((GMEM, "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,(_64,_2)):(_64,(_1,_8192))", "--at", "1"),
                  "(0, 128)", "%bk_1:b32 = ADD32ri %bk:b32, 64"),
    "device-born": ((GMEM, SMEM, "--device-descriptor"), "", "tensormap.replace.tile.global_dim.global.b1024.b32 [$0]"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAGES)
def test_stages(capsys: pytest.CaptureFixture[str], name: str) -> None:
    arguments, start, piece = STAGES[name]
    status, out, _ = shell(capsys, "tma", *arguments, "--stages")
    assert status == 0 and piece in out
    assert f"first element of the tile, innermost first: {start}" in out or not start
    assert shell(capsys, "tma", "lower", *arguments)[1] == out
    assert all(f"Stage {number}:" in out for number in ("1", "2", "3a", "3", "4", "5", "6", "7", "3w", "6w"))


def test_options_of_the_stages_are_of_no_other_view(capsys: pytest.CaptureFixture[str]) -> None:
    assert "apply to the view lower, not to box" in refused(capsys, "tma", "box", GMEM, SMEM, "--stages")
    assert "the tensor has 64 tiles" in refused(capsys, "tma", GMEM, SMEM, "--at", "(0,9)")


def test_a_tile_in_any_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    whole = shell(capsys, "tma", "box", GMEM, SMEM)
    for tile in ("128x64", "128X64", "(128, 64)", "(_128,_64)"):
        assert shell(capsys, "tma", "box", GMEM, SMEM, tile) == whole


def test_a_tile_of_several_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    tile = "(_512,_64):(_64,_1)"
    assert "split_oversize=True" in refused(capsys, "tma", "(1024,1024):(1024,_1)", tile)
    status, out, _ = shell(capsys, "tma", "(1024,1024):(1024,_1)", tile, "--split-oversize")
    assert status == 0 and "cut to 256, so a tile takes several instructions" in out


def test_the_width_of_the_texts_gives_the_type_or_contradicts_it(capsys: pytest.CaptureFixture[str]) -> None:
    """float32 rows of 1200 bytes are legal; as float16 they would have 600 bytes, which are not."""
    gmem, smem = "(2048,300):(300,_1)", "Sw<3,4,3> o smem_ptr[{0}b](unset) o (_32,_32):(_32,_1)"
    for words in (["tma"], ["explain"]):
        assert main([*words, gmem, smem.format(32)]) == 0
        assert "4096 bytes" in capsys.readouterr().out
    assert main(["tma", gmem, smem.format(32), "--dtype", "int32"]) == 0
    capsys.readouterr()
    for wrong in (["--dtype", "float16"], ["--dtype", "uint8"]):
        assert main(["tma", gmem, smem.format(32), *wrong]) == 2
        assert "but a text has elements of 32 bits" in capsys.readouterr().err
    assert main(["tma", "(64,64):(64,_1)", smem.format(128)]) == 2
    assert "the texts have elements of 128 bits" in capsys.readouterr().err
