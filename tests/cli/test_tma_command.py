"""`cute-py tma`: a view in front of the layouts, JSON of every view, exit status of check."""

from __future__ import annotations

import json

import pytest

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
        (["box", GMEM, SMEM, "--show", "ptx"], "two views: box and --show ptx"),
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
