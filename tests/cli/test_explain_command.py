"""`cute-py explain`: a text, a file, standard input; what is no text, and what nothing is known about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import cute_py as cute
from cute_py.cli.main import main
from tests.explanation.variants import cutlass

PRINT = cutlass(6, [1001, 512], [2, 2002], [64, 64])
CHANGE = "pad each row to 1008 elements"


def test_a_text_a_file_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "build.log"
    file.write_text(PRINT)
    for arguments in ([PRINT], [str(file)], ["-"], []):
        monkeypatch.setattr("sys.stdin", io.StringIO(PRINT))
        assert main(["explain", *arguments]) == 0
        assert CHANGE in capsys.readouterr().out


def test_json_has_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", PRINT]) == 0
    data = json.loads(capsys.readouterr().out)
    (part,) = data["parts"]
    assert [d["rule"] for d in part["broken"] if d["severity"] == "error"] == ["stride_alignment"]
    assert CHANGE in part["changes"][0] and CHANGE in data["explain"]
    assert part["scope"]["complete"] and len(part["scope"]["judged"]) == 1
    assert data["explain"].splitlines()[-1] == f"judged: {part['scope']['judged'][0]}"


def test_junk_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "junk"
    file.write_bytes(bytes(range(256)) * 40)
    assert main(["explain", str(file)]) == 2
    assert capsys.readouterr().err.startswith("cute-py: error: no explanation of str")
    for text in ("x" * 65_537, "€" * 65_537):
        file.write_text(text)
        assert main(["explain", str(file)]) == 2
        assert "more than 65536 characters" in capsys.readouterr().err
    assert main(["explain", "x" * 65_537]) == 2
    assert "the text has 65537 characters; must have at most 65536" in capsys.readouterr().err
    assert main(["explain", "it does not work"]) == 2
    assert "recognised : nothing" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["build.log", "/nowhere/error.txt", "./nvcc.out"])
def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["explain", name]) == 2
    assert f"{name}: the file does not exist" in capsys.readouterr().err


def test_lines_that_were_not_recognised_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = "my program begins\nCUDA error: misaligned address\n----\nmy program ends"
    assert main(["explain", text]) == 0
    assert capsys.readouterr().out.endswith("Not recognised: 2 lines, the first: my program begins\n")
    assert main(["explain", "--json", text]) == 0
    assert json.loads(capsys.readouterr().out)["not_recognised"] == ["my program begins", "my program ends"]
    assert main(["explain", "CUDA error: misaligned address"]) == 0
    assert "Not recognised" not in capsys.readouterr().out


def test_a_line_of_which_only_names_were_read_is_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    text = "ValueError: Expected scale_b to be float8_e8m0fnu, contiguous and swizzled, but got [4096, 32]"
    assert main(["explain", text]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "float8_e8m0fnu, a power of two"
    assert said.endswith(f"Read only in part: 1 line; this requirement was not judged: {text}\n")
    assert main(["explain", "--json", text]) == 0
    assert json.loads(capsys.readouterr().out)["read_in_part"] == [text]
    for judged in ("CUDA error: misaligned address", "float8_e8m0fnu", "scale_a and scale_b must be contiguous"):
        assert main(["explain", "--json", judged]) == 0
        assert json.loads(capsys.readouterr().out)["read_in_part"] == []


def test_an_operation_and_its_operands_give_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "zipped_divide", "(4,8):(8,1)", "2"]) == 0
    said = capsys.readouterr().out
    assert said.rstrip("\n") == str(cute.explain(cute.zipped_divide, cute.parse("(4,8):(8,1)"), 2))
    assert main(["explain", "--json", "coalesce", "(2,4):(1,2)"]) == 0
    assert "coalesces to (2,4):(1,2)" in json.loads(capsys.readouterr().out)["explain"]
    assert main(["explain", "zipped_divide"]) == 0
    assert capsys.readouterr().out.startswith("zipped_divide(layout, tiler)")
    assert main(["explain", "what", "is", "composition"]) == 0
    assert capsys.readouterr().out.startswith("composition(")


@pytest.mark.parametrize("text", [".visible .entry k(.param .u64 x) { ret; }", "__global__ void k(int* x) { *x = 1; }"])
def test_a_kernel_is_sent_to_its_commands(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["explain", text]) == 2
    assert "hint       : `cute-py check FILE` and `cute-py run FILE` judge a kernel" in capsys.readouterr().err
