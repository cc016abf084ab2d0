"""cute-py atom: what it lists, finds and shows; its JSON, pictures and refusals."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.draw import draw_mma


def shell(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["atom", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_list_has_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "list")
    names = [line.split()[0] for line in out.splitlines()]
    assert status == 0
    assert names == [row.op for row in (*cute.MMA_ATOMS.values(), *cute.COPY_ATOMS.values())]
    counts = json.loads(shell(capsys, "list", "--count", "--json")[1])
    assert counts["total"] == len(names) == sum(counts["families"].values())
    assert counts["families"]["mma sm80"] == len(cute.find_mma_atoms(family="sm80"))


def test_list_of_an_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(shell(capsys, "list", "--arch", "sm_90a", "--kind", "copy", "--json")[1])
    assert {row["arch"] for row in rows} == {"sm90"}
    assert {row["kind"] for row in rows} == {"copy"}


def test_find(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = shell(capsys, "find", "--a", "bfloat16", "--arch", "sm80")
    names = [line.split()[0] for line in out.splitlines()]
    assert names == [atom.op for atom in cute.find_mma_atoms(a="bfloat16", arch="sm80")]
    rows = json.loads(shell(capsys, "find", "--family", "sm90_gmma", "--n", "64", "--sparse", "--json")[1])
    assert rows == []
    assert shell(capsys, "find", "--arch", "sm80", "--m", "4096")[1].startswith("no MMA operation")


def test_show_is_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    name = "SM90_64x128x16_F32BF16BF16_SS"
    status, out, _ = shell(capsys, "show", name)
    assert (status, out.rstrip("\n")) == (0, str(cute.explain(name)).rstrip("\n"))
    assert "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16" in out
    data = json.loads(shell(capsys, "show", name, "--json")[1])
    atom = cute.mma_atom(name)
    assert data["name"] == atom.name
    assert data["shape_mnk"] == [64, 128, 16]
    assert data["layouts"]["C"] == str(atom.layoutC_TV)
    assert data["fragments"]["A"] == "smem_desc<K>"


def test_show_reads_standard_input_and_counts_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SM75_U32x4_LDSM_N\n"))
    data = json.loads(shell(capsys, "show", "-", "--dtype", "half", "--json")[1])
    assert data["layouts"]["destination"] == "(_32,(_2,_4)):(_2,(_1,_64))"


def test_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = "SM80_16x8x8_F32F16F16F32_TN"
    _, out, _ = shell(capsys, "show", name, "--draw", "--out", str(tmp_path / "p.svg"))
    assert out.rstrip("\n") == draw_mma(name).text.rstrip("\n")
    assert (tmp_path / "p.svg").read_text() == draw_mma(name).svg + "\n"
    assert shell(capsys, "show", name, "--latex")[1] == cute.format_latex(cute.make_tiled_mma(name))
    assert "latex" in json.loads(shell(capsys, "show", name, "--latex", "--json")[1])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("show", "SM80_16x8x16_F32F16F16F32_TX"), "nearest : SM80_16x8x16_F32F16F16F32_TN"),
        (("show", "SM75_U32x1_LDSM_N", "--latex"), "--latex needs an MMA atom, but"),
        (("show", "SM75_U32x1_LDSM_N", "--dtype", "complex128"), "CopyOperation is not valid"),
        (("list", "--family", "sm81"), "no operation matches this family and architecture"),
        (("find", "--a", "float17"), "float17"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str) -> None:
    status, out, err = shell(capsys, *arguments)
    assert (status, out) == (2, "")
    assert text in err
