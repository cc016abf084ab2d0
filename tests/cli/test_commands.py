"""The other commands of cute-py: what they print, their JSON, their exit status, and their refusals."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

import cute_py as cute
from cute_py.cli.main import main
from tests.refusals import is_refusal

RECORD = {*("rule", "severity", "argument", "value", "unit", "requirement", "source", "message", "facts", "fixes")}
COMMAND_NAMES = ("demo", "print", "copy", "tma", "desc", "tmem", "atom", "draw", "serve", "doctor", "completion")


def shell(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_print_shows_the_elements_of_a_coordinate_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "print", "ArithTuple(0,0) o (2,3):(_1@0,_1@1)")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "ArithTuple(0,0) o (2,3):(_1@0,_1@1):"
    assert lines[1].split() == ["(0,0)", "(0,1)", "(0,2)"]
    assert lines[2].split() == ["(1,0)", "(1,1)", "(1,2)"]


def test_print_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("(4,8):(8,1)\n"))
    status, out, _ = shell(capsys, "print", "-", "--json")
    assert status == 0
    data = {"text": "(4,8):(8,1)", "kind": "Layout", "shape": "(4,8)", "size": 32, "rank": 2}
    assert json.loads(out) == {**data, "stride": "(8,1)", "cosize": 32}


@pytest.mark.parametrize("text", ["((2,2),4):((1,8),2)", "_64@1", "Sw<3,4,3>", "ArithTuple(0,0) o (4,5):(_1@0,_1@1)"])
def test_print_explains(capsys: pytest.CaptureFixture[str], text: str) -> None:
    words = str(cute.explain(cute.parse(text)))
    assert shell(capsys, "print", "--explain", text) == (0, f"{words}\n", "")
    assert json.loads(shell(capsys, "print", "--explain", text, "--json")[1])["explain"] == words


def test_print_tells_a_file_from_a_layout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"")
    status, _, err = shell(capsys, "print", str(tmp_path / "x.npy"))
    assert (status, "x.npy is a file; pass the text of a layout or tensor\n" in err) == (2, True)


def test_print_of_symbols(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "print", "(m,n):(n,_1)", "--json")
    data = json.loads(out)
    assert (status, data["size"], data["rank"], data["stride"]) == (0, "m*n", 2, "(n,_1)")
    assert shell(capsys, "print", "(m,n):(n,_1)")[:2] == (0, f"(m,n):(n,_1)\nsize m*n, cosize {data['cosize']}\n")
    assert shell(capsys, "print", "(4,8):(n,_1)")[1].startswith("(4,8):(n,_1)\nsize 32, cosize ")
    assert shell(capsys, "print", "ArithTuple(0,0) o (m,n):(_1@0,_1@1)")[::2] == (
        2,
        "cute-py: error: the size is m*n; must be a known number\n",
    )


def test_print_draws_a_matrix_as_a_table_and_others_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    _, table, _ = shell(capsys, "print", "(2,3):(3,1)")
    assert "| 3 | 4 | 5 |" in table
    _, text, _ = shell(capsys, "print", "(2,3,4):(12,4,1)")
    assert text == "(2,3,4):(12,4,1)\nsize 24, cosize 24\n"
    _, latex, _ = shell(capsys, "print", "(2,3):(3,1)", "--latex")
    assert "tikzpicture" in latex


@pytest.mark.parametrize("text", ["(4,8", "", "(4,8):(1,", "hello world", "(4,8):(1)"])
def test_print_refuses_what_is_no_layout(capsys: pytest.CaptureFixture[str], text: str) -> None:
    status, out, err = shell(capsys, "print", text)
    assert (status, out) == (2, "")
    assert err.startswith("cute-py: error: ")
    assert is_refusal(err)


def test_sizes_alone_have_no_address_to_be_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["desc", "check", "--dtype=u8", "--dims=64,8", "--strides=64", "--box=64,8"]
    assert shell(capsys, *sizes) == (0, "legal on sm_90a\njudged: 37 rules of tensor maps on sm_90a\n", "")
    assert shell(capsys, *sizes, "--address=0")[1].startswith("warning  null address")


def test_words_of_a_map_need_no_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["0x1000", "0x4000006310", "0x0", "0x0", "0xff0000003f", "0x0", "0x3f00000000000000", "0x3f"]
    apart = shell(capsys, "desc", "decode", *words)
    assert apart == shell(capsys, "desc", "decode", " ".join(words))
    assert (apart[0], "box              : (64,64) elements" in apart[1]) == (0, True)


def test_tma_explains_a_tile(capsys: pytest.CaptureFixture[str]) -> None:
    smem = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
    status, out, _ = shell(capsys, "tma", "(1024,512):(512,_1)", smem, "--json")
    data = json.loads(out)
    assert status == 0
    assert data["g_basis"] == "(_64,_128):(_1@1,_1@0)"
    assert data["tma_tensor"] == "ArithTuple(_0,_0) o (1024,512):(_1@1,_1@0)"
    assert (data["box_dim"], data["swizzle"], data["transaction_bytes"], data["tiles"]) == (
        [64, 128],
        "128B",
        16384,
        64,
    )
    status, text, _ = shell(capsys, "tma", "(1024,512):(512,_1)", smem)
    assert status == 0
    for part in ("(_64,_128):(_1@1,_1@0)", "16384", "128"):
        assert part in text


@pytest.mark.parametrize(
    ("view", "part"),
    [
        ("box", "smem_rank"),
        ("partition", "CTA 0\n  gmem  ArithTuple(_0,_0) o (((_64,_128),_1),(8,8)):(((_1@0,_1@1),_0),(_128@1,_64@0))"),
        ("check", "no rule is broken"),
        ("lower", "cp.async.bulk.tensor.2d.shared::cluster.global"),
        ("ptx", "mbarrier.try_wait"),
        ("cu", "__grid_constant__"),
        ("c", "cuTensorMapEncodeTiled"),
        ("cute", "make_tma_copy"),
        ("triton", "make_tensor_descriptor"),
    ],
)
def test_tma_shows_every_view(capsys: pytest.CaptureFixture[str], view: str, part: str) -> None:
    smem = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
    status, out, err = shell(capsys, "tma", "(1024,512):(512,_1)", smem, "--show", view)
    assert (status, err) == (0, "")
    assert part in out


def test_tma_check_tells_a_hazard(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(
        capsys, "tma", "(64,20):(24,_1)", "(_16,_8):(_8,_1)", "--dtype", "float16", "--show", "check"
    )
    assert status == 0
    assert out.startswith("warning: ")
    assert "16" in out


def test_tma_refuses_a_box_beyond_the_swizzle_with_a_fix(capsys: pytest.CaptureFixture[str]) -> None:
    smem = "Sw<1,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
    status, _, err = shell(capsys, "tma", "(1024,512):(512,_1)", smem)
    assert status == 2
    assert is_refusal(err)
    assert "must be at most 32 with swizzle 32B" in err
    status, _, _ = shell(capsys, "tma", "(1024,512):(512,_1)", smem, "--no-check")
    assert status == 0


def test_tma_takes_a_printed_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    smem = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
    _, out, _ = shell(capsys, "tma", "gmem_ptr[16b](0x7f00) o (1024,512):(512,_1)", smem)
    assert "gmem_ptr[16b](0x7f00) o (1024,512):(512,_1)" in out


def test_tma_tells_how_static_sizes_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = shell(capsys, "tma", "(1024,512):(512,_1)", "(128,64):(64,1)")
    assert status == 2
    assert "hint          : write sizes known at compile time with _: '(_128,_64):(_64,_1)'" in err


@pytest.mark.parametrize(
    ("gmem", "smem", "words"),
    [
        ("Sw<3,4,3>", "(_128,_64):(_64,_1)", "the global tensor is 'Sw<3,4,3>'; must be a layout"),
        ("(4,5):(_1@0,_1@1)", "(_4,_8):(_8,_1)", "must be a layout such as (1024,512):(512,_1)"),
        ("ArithTuple(0,0) o (4,5):(_1@0,_1@1)", "(_4,_8):(_8,_1)", "the global tensor"),
        ("(1024,512):(512,_1)", "5", "the shared tile is '5'; must be a layout"),
        ("(1024,512):(512,_1)", "(5,5)", "the shared tile is '(5,5)'; must be a layout"),
    ],
)
def test_tma_refuses_other_operands(capsys: pytest.CaptureFixture[str], gmem: str, smem: str, words: str) -> None:
    status, _, err = shell(capsys, "tma", gmem, smem)
    assert (status, words in err, is_refusal(err)) == (2, True, True)


def test_print_shows_the_layout_of_a_pointer_without_its_elements(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "print", "gmem_ptr[16b](0x1000) o (2,3):(3,1)")
    assert status == 0
    assert out.startswith("gmem_ptr[16b](0x1000) o (2,3):(3,1):\n")
    assert "| 3 | 4 | 5 |" in out


def test_print_refusals_have_no_stray_caret(capsys: pytest.CaptureFixture[str]) -> None:
    text = "cute-py: error: at position 4: expected ',' or ')'\n  text : (4,8\n  here :     ^\n"
    assert shell(capsys, "print", "(4,8")[2] == text


def test_a_refusal_is_data_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("--dtype", "float16", "--dims", "512,1024", "--strides", "1022", "--box", "300,128")
    status, out, err = shell(capsys, "desc", "encode", *sizes, "--json")
    rows = json.loads(out)["error"]["diagnostics"]
    assert (status, is_refusal(err)) == (2, True)
    assert [row["rule"] for row in rows] == ["stride_alignment", "box", "inner_bytes"]
    first = {name: rows[0][name] for name in ("argument", "value", "unit", "requirement", "facts", "fixes")}
    assert first == {
        "argument": "globalStrides[0]",
        "value": 1022,
        "unit": "bytes",
        "requirement": "be a multiple of 16",
        "facts": {},
        "fixes": [],
    }
    assert rows[0]["source"].startswith("CUDA 13.0 driver API")
    _, out, _ = shell(capsys, "tma", "(1024,512):(512,_1)", "(128,64):(64,1)", "--json")
    assert json.loads(out)["error"]["diagnostics"][0]["fixes"] == [json.loads(out)["error"]["hint"]]
    with pytest.raises(SystemExit):
        main(["nothing", "--json"])
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "UsageError"


@pytest.mark.parametrize(
    "line",
    [
        ("demo", "no.npy"),
        ("print", "(4,8"),
        ("copy", "no.npy", "--tile", "8x8"),
        ("tma", "(4,8):(8,1)", "(_4"),
        ("desc", "check", "--dtype", "float16", "--dims", "8", "--box", "8", "--arch", "sm_1"),
        ("desc", "decode", "0x1"),
        ("tmem", "descriptor", "zz"),
        ("draw", "(4,8"),
        ("serve", "--port", "-1"),
        ("doctor", "--driver", "1"),
        ("completion", "cmd"),
        (),
    ],
    ids=lambda line: " ".join(line),
)
def test_every_refusal_is_diagnostics_with_json(line: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        main([*line, "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["diagnostics"]
    for found in error["diagnostics"]:
        assert set(found) >= RECORD
        assert found["rule"]
        assert found["message"]


def test_what_a_check_finds_is_diagnostics_too(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("--dtype", "float16", "--dims", "12,8", "--strides", "24", "--box", "8,8")
    found = json.loads(shell(capsys, "desc", "check", *sizes, "--json")[1])
    assert [(row["rule"], row["severity"]) for row in found["diagnostics"]][:2] == [
        ("stride_alignment", "error"),
        ("ragged rows", "warning"),
    ]
    found = json.loads(shell(capsys, "tma", "check", "(64,12):(12,_1)", "(_64,_8):(_8,_1)", "--json")[1])
    assert found["diagnostics"][0]["rule"] == "stride_alignment"
    assert [row["message"] for row in found["diagnostics"]] == [*found["violations"], *found["warnings"]]


def test_desc_encodes_decodes_and_compares(capsys: pytest.CaptureFixture[str]) -> None:
    request = ("--dtype", "float16", "--dims", "512,1024", "--strides", "1024", "--box", "64,128", "--swizzle", "128B")
    status, hexes, _ = shell(capsys, "desc", "encode", *request)
    assert status == 0
    status, text, _ = shell(capsys, "desc", "decode", hexes.strip())
    assert status == 0
    assert text.splitlines()[0] == "tiled tensor map, FLOAT16, rank 2"
    _, other, _ = shell(capsys, "desc", "encode", *request[:-1], "NONE")
    status, difference, _ = shell(capsys, "desc", "diff", hexes.strip(), other.strip())
    assert status == 1
    assert "swizzle" in difference
    status, _, _ = shell(capsys, "desc", "diff", hexes.strip(), hexes.strip())
    assert status == 0


def test_desc_check_tells_every_broken_rule(capsys: pytest.CaptureFixture[str]) -> None:
    request = ("--dtype", "float16", "--dims", "500,1024", "--strides", "1000", "--box", "60,300", "--address", "8")
    status, out, _ = shell(capsys, "desc", "check", *request, "--json")
    assert status == 1
    assert len(json.loads(out)["violations"]) >= 4


def test_desc_check_offers_a_change_that_is_legal(capsys: pytest.CaptureFixture[str]) -> None:
    check = ("desc", "check", "--dtype", "float32", "--dims", "1000,512", "--strides", "4000", "--box")
    status, out, _ = shell(capsys, *check, "40,300")
    assert status == 1
    assert "\nchange   boxDim (40, 300) -> (40, 150): 2 instructions per tile; the changed map breaks no rule\n" in out
    assert json.loads(shell(capsys, *check, "40,300", "--json")[1])["changes"]
    status, out, _ = shell(capsys, *check, "40,150", "--json")
    assert (status, json.loads(out)["changes"]) == (0, [])


def test_tmem_demo_reads_back_what_went_in(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "tmem", "demo", "--through", "tma", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["ptx"] == "tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;"
    assert data["readback"][33][:4] == [0x13121110, 0x17161514, 0x1B1A1918, 0x1F1E1D1C]


def test_tmem_refuses_the_sixteen_columns_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = shell(capsys, "tmem", "demo", "--columns", "16")
    assert status == 2
    assert "allocate n_cols=32" in err


def test_tmem_lists_forms_and_decodes_descriptors(capsys: pytest.CaptureFixture[str]) -> None:
    _, forms, _ = shell(capsys, "tmem", "forms", "--json")
    assert [row["form"] for row in json.loads(forms)][-1] == "32x128b.warpx4"
    status, text, _ = shell(capsys, "tmem", "descriptor", "0x4000404000010000")
    assert status == 0
    assert "stride-dimension offset" in text
    assert "1024 bytes" in text


def test_tmem_says_which_bits_of_a_descriptor_are_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "tmem", "descriptor", "0")
    assert status == 1
    assert out.splitlines()[-1] == "version = 0; must be 1"


def test_doctor_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "doctor", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["emulator"] == "a copy of 64 x 64 float16 is equal"
    assert data["packages"]["numpy"]
    assert data["driver"]


def test_demo_tells_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "demo")
    assert status == 0
    assert out.splitlines()[-1] == "equal"
    for part in ("Learn CuTe", "Debug a TMA copy", "Move or quantise tensors", "Shard tensors", "hint : "):
        assert part in out
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [["--help"], *([name, "--help"] for name in COMMAND_NAMES)],
)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    assert "usage: cute-py" in capsys.readouterr().out


def test_help_says_what_the_exit_statuses_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    for line in (
        "  0    success",
        "  1    the copy is not equal",
        "  2    the command refuses",
        "  130  interrupted",
        "  141  the reader",
    ):
        assert f"\n{line}" in out


@pytest.mark.parametrize(
    "command",
    [*((name,) for name in COMMAND_NAMES if name not in ("desc", "tmem"))]
    + [("desc", action) for action in ("encode", "decode", "diff", "check", "slots")]
    + [("tmem", action) for action in ("demo", "forms", "descriptor")],
    ids=" ".join,
)
def test_every_command_takes_json(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert "--json" in capsys.readouterr().out


def test_desc_diff_joins_neighbouring_bits(capsys: pytest.CaptureFixture[str]) -> None:
    zeros, ones = "00" * 64, "00" * 16 + "ff" * 8 + "00" * 40
    status, out, _ = shell(capsys, "desc", "diff", zeros, ones)
    assert status == 1
    assert out.splitlines()[0] == "64 bits differ in 64 bytes"
    assert "  word 2 bits 0-63" in out.splitlines()
    status, out, _ = shell(capsys, "desc", "diff", zeros, "01" + "00" * 63)
    assert (status, out.splitlines()[0], "  word 0 bit 0" in out.splitlines()) == (1, "1 bit differs in 64 bytes", True)


def test_print_gives_latex_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    plain = shell(capsys, "print", "(2,3):(3,1)", "--latex")[1]
    data = json.loads(shell(capsys, "print", "(2,3):(3,1)", "--latex", "--json")[1])
    assert data["latex"] == plain
    assert data["size"] == 6
