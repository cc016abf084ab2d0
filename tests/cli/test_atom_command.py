"""cute-py atom: what it lists, finds and shows; its JSON, pictures and refusals."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.draw import draw_mma
from cute_py.errors import InvalidValueError
from cute_py.explanation.atoms import atom_of
from cute_py.layout import size


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


NAMES = (
    "SM80_16x8x16_F32BF16BF16F32_TN",
    "SM80_16x8x32_S32S8S8S32_TN",
    "SM70_8x8x4_F16F16F16F16_TN",
    "SM90_64x16x16_F32BF16BF16_RS",
    "UniversalFMA",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operand", ["A", "B", "C"])
def test_the_holders_of_an_element_are_those_of_the_layout(name: str, operand: Any) -> None:
    """Every thread and value whose place is the element's, and no other."""
    atom = atom_of(name)
    assert isinstance(atom, cute.MmaAtom)
    m, n, k = (int(size(extent)) for extent in atom.shape_mnk)
    rows, columns = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
    layout = atom.layouts[operand]
    if atom.fragment_type(operand).kind != "value":
        with pytest.raises(InvalidValueError, match="is in shared memory; no thread holds its elements"):
            atom.holders(operand, 0, 0)
        return
    held: dict[int, set[tuple[int, int]]] = {}
    for index in range(int(size(layout[0]))):
        for value in range(int(size(layout[1]))):
            held.setdefault(int(layout(index, value)), set()).add((int(atom.thr_id(index)), value))
    for row, column in {(0, 0), (rows - 1, columns - 1), (rows // 2, columns // 3), (rows // 3, columns // 2)}:
        found = atom.holders(operand, row, column)
        assert set(found) == held[row + rows * column] and len(found) == len(set(found))
    with pytest.raises(InvalidValueError):
        atom.holders(operand, rows, 0)


def test_show_at_an_element(capsys: pytest.CaptureFixture[str]) -> None:
    show = ("show", "SM90_64x128x16_F32BF16BF16_SS", "--at", "17,42")
    status, out, _ = shell(capsys, *show)
    assert (status, out) == (0, "C(17,42)  thread 37, value 20 of 64; register 20 of 64 (float32)\n")
    held = [{"thread": 37, "value": 20, "register": 20}]
    assert json.loads(shell(capsys, *show, "--json")[1])["holders"] == held
    out = shell(capsys, "show", "SM90_64x128x16_F32BF16BF16_RS", "--at", "17,4", "--operand", "A")[1]
    assert out == "A(17,4)  thread 38, value 0 of 8; register 0 of 4 (uint32)\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["SM90_64x128x16_F32BF16BF16_SS", "--at", "17,4", "--operand", "A"], "is in shared memory"),
        (["SM80_16x8x16_F32BF16BF16F32_TN", "--at", "1,2,3"], "--at has 3 numbers; must have 2"),
        (["SM80_16x8x16_F32BF16BF16F32_TN", "--at", "16,0"], "row = 16"),
        (["SM75_U32x4_LDSM_N", "--at", "1,1"], "--at needs an MMA atom"),
    ],
)
def test_elements_that_no_thread_holds(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = shell(capsys, "show", *words)
    assert status == 2 and said in err


def test_a_shape_shows_the_operations_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    names = [atom.op for atom in cute.find_mma_atoms(m=64, n=256, k=16)]
    status, out, _ = shell(capsys, "show", "m64n256k16")
    assert (status, out.splitlines()[0]) == (0, f"m64n256k16 is the shape of {len(names)} MMA operations of CuTe.")
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  SM90")] == names
    assert [row["op"] for row in json.loads(shell(capsys, "show", "m64n256k16", "--json")[1])] == names
    for option in (["--draw"], ["--at", "0,0"], ["--latex"]):
        status, _, err = shell(capsys, "show", "m64n256k16", *option)
        assert status == 2 and f"{option[0]} needs one operation, but m64n256k16 is a shape" in err
    assert "nearest : m64n8k8" in shell(capsys, "show", "m64n8k9")[2]
