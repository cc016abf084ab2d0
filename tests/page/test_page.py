"""The playground: one file without network whose answers are those of `cute_py.page.answer`; texts are never markup."""

from __future__ import annotations

import base64
import functools
import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cute_py
from cute_py.cli.main import main
from cute_py.draw.explorer_answer import EXAMPLES
from cute_py.errors import CuteError
from cute_py.page.answer import FIRST_CELLS, answer_page
from cute_py.page.document import explorer_page, page_script, policy, prepared_answers, web_file
from cute_py.page.forms import TABS
from cute_py.page.interpreter import LEFT_OUT, library_zip
from cute_py.page.tma import near_types
from tests.draw.explorer_browser import dumped, page_url
from tests.pace import within

CASES = [(name, example, inputs) for name, tab in TABS.items() for example, inputs in tab.examples]


@functools.cache
def answered(tab: str, example: str) -> dict[str, Any]:
    """The answer to an example, for the tests that read it."""
    return answer_page({"tab": tab, "inputs": dict(TABS[tab].examples)[example]})


def test_the_page_is_one_file_without_network() -> None:
    page = explorer_page()
    assert len(page.encode()) < 200_000
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", page)
    assert "connect-src" not in policy(False)
    assert "connect-src 'self'" in policy(True)
    for text in (policy(False), policy(True)):
        assert text.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe-eval'" not in text.replace("wasm-unsafe-eval", "")
        assert "'unsafe-inline'" not in text.split("script-src")[1].split(";")[0]


def test_the_script_is_short() -> None:
    lines = sum(len(web_file(name).splitlines()) for name in ("page.js", "worker.js", "compile.mjs"))
    assert lines <= 900
    assert not re.search(r"\beval\(|new Function|document\.write|insertAdjacentHTML|outerHTML", page_script())
    assert page_script().count("innerHTML") == 1


@pytest.mark.parametrize(("tab", "example"), [row[:2] for row in CASES], ids=[f"{t}: {e}" for t, e, _ in CASES])
def test_every_example_is_answered(tab: str, example: str) -> None:
    found = answered(tab, example)
    assert found == json.loads(json.dumps(found))
    kind, words = found["verdict"]
    assert words
    assert (kind in ("bad", "unknown") and bool(found["problems"])) == example.startswith("error")
    if not example.startswith("error"):
        assert found["sections"]
        assert found["code"][0]["name"] == "Python"


SOUND = [case for case in CASES if not case[1].startswith("error")]


@pytest.mark.parametrize(("tab", "example"), [row[:2] for row in SOUND], ids=[f"{t}: {e}" for t, e, _ in SOUND])
def test_the_code_of_an_example_runs(tab: str, example: str) -> None:
    for panel in answered(tab, example)["code"]:
        if panel["name"] == "Python":
            exec(compile(panel["text"], f"<{tab}>", "exec"), {"__name__": "example"})


def test_the_first_answers_are_in_the_page() -> None:
    page = explorer_page()
    held = re.search(r'id="packed-prepared">([^<]*)<', page)
    assert held is not None
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(held[1])))
    assert found == json.loads(json.dumps(prepared_answers()))
    assert {address.partition("&")[0] for address in found} == {f"#tab={name}" for name in TABS}


ASKED = [tuple(row) for row in json.loads((Path(__file__).parent / "inputs.json").read_text())]


@pytest.mark.parametrize(("tab", "inputs"), ASKED, ids=[f"{tab} {' '.join(row.values())}" for tab, row in ASKED])
def test_the_first_part_is_the_beginning_of_the_answer(tab: str, inputs: dict[str, str]) -> None:
    whole = answer_page({"tab": tab, "inputs": inputs})
    first = answer_page({"tab": tab, "inputs": inputs, "part": "first"})
    drawn = ("".join(section["html"] for section in found["sections"]) for found in (whole, first))
    cells = [re.findall('<g class="c">.*?</g>', text) for text in drawn]
    if len(cells[0]) <= FIRST_CELLS:
        assert first == whole
        return
    complete = first.pop("complete")
    assert {**first, "sections": [], "code": []} == {**whole, "sections": [], "code": []}
    assert first["sections"][:complete] == whole["sections"][:complete]
    last, own = first["sections"][complete:], whole["sections"][complete]
    assert [(part["id"], part["title"]) for part in last] == [(own["id"], own["title"])]
    assert cells[1] == cells[0][:FIRST_CELLS]
    size = re.compile('<svg[^>]* viewBox="[^"]*"')
    assert size.findall(last[0]["html"]) == size.findall(own["html"])


FIXED = [
    ("gmem_ptr[16b](0x2000) o (1024,512):(512,_1)", "gmem", None),
    ("64x64", "tile", "leave the tile empty"),
    ("Sw<3,4,3> o (_128,_64):(_64,_1)", "smem", "with its offset: Sw<3,4,3> o smem_ptr[16b](unset) o (_128,"),
    ("((2,2),4):((1,8),2)", "smem", "a row-major tile of 4x8"),
    ("fp8", "dtype", "float8_e4m3fn"),
    ("(1024,512):(512,_1", "gmem", "close the brackets: (1024,512):(512,_1)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "field", "words"), FIXED, ids=[text for text, _, _ in FIXED])
def test_texts_that_had_no_help(text: str, field: str, words: str | None) -> None:
    found = answer_page({"tab": "tma", "inputs": {field: text}, "part": "fixes"})
    fixes = [fix for problem in found["problems"] for fix in problem["fixes"]]
    if words is None:
        assert found["verdict"] == ["good", "Accepted: a tile is 1 instruction, 16384 bytes"]
        return
    assert any(fix["words"].startswith(words) for fix in fixes)
    assert "float16" not in [fix["words"] for fix in fixes]


def test_a_tile_with_an_x_is_read() -> None:
    inputs = {"smem": "(_64,_64):(_64,_1)", "tile": "64x64"}
    assert answer_page({"tab": "tma", "inputs": inputs})["verdict"][0] == "good"
    assert near_types("fp8") == ["float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize(("name", "form"), [row for row in EXAMPLES if row[0].startswith("error")])
def test_a_fix_removes_its_problem(name: str, form: dict[str, str]) -> None:
    found = answer_page({"tab": "tma", "inputs": form, "part": "fixes"})
    assert answer_page({"tab": "tma", "inputs": form})["more"]
    solved = False
    for problem in found["problems"]:
        assert problem["fixes"], problem["message"]
        for fix in problem["fixes"]:
            after = answer_page({"tab": "tma", "inputs": {**form, **fix["inputs"]}})
            messages = [other["message"] for other in after["problems"]]
            assert problem["message"] not in messages
            assert set(messages) <= {other["message"] for other in found["problems"]}
            solved = solved or not messages
    assert solved


LARGE = [
    ("layout", {"layout": "(4294967296,4294967296):(1,4294967296)"}, "at most 1000000"),
    ("layout", {"layout": "(2097152):(1)"}, "at most 1000000"),
    ("banks", {"layout": "(512,1024):(1024,1)"}, "at most 32768"),
    ("threads", {"atoms": "(64,64,1)"}, "at most 16384"),
    ("threads", {"kind": "tv", "layout": "(65536,1):(1,1)", "tile": "(256,256)"}, "at most 16384"),
    ("formats", {"M": "1000000", "K": "1000000"}, "at most 16384"),
    ("explain", {"text": "(99999999,99):(1,99999999)"}, "at most 1000000"),
]


@pytest.mark.parametrize(("tab", "inputs", "bound"), LARGE)
def test_what_is_too_large_is_refused_with_its_bound(tab: str, inputs: dict[str, str], bound: str) -> None:
    answer_page({"tab": tab})  # what it imports is not counted
    with within(10):  # about 100 ms
        found = answer_page({"tab": tab, "inputs": inputs})
    assert bound in json.dumps(found["problems"])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([], "a query must be a JSON object"),
        ({"tab": "x"}, "unknown tab 'x'"),
        ({"tab": 1}, "unknown tab 1"),
        ({"inputs": []}, "inputs must map names to texts"),
        ({"inputs": {"layout": 1}}, "inputs must map names to texts"),
        ({"inputs": {"x": ""}}, "unknown field 'x'"),
        ({"part": "x"}, "unknown part 'x'"),
        ({"inputs": {"layout": "1" * 2001}}, "layout has 2001 characters; must have at most 2000"),
    ],
)
def test_queries_that_are_none(query: Any, words: str) -> None:
    with pytest.raises(CuteError) as refused:
        answer_page(query)
    assert words in str(refused.value)


MARKUP = "<img src=x onerror=alert(1)><b>&amp;</b>"


@pytest.mark.parametrize("tab", list(TABS))
def test_texts_are_never_markup(tab: str) -> None:
    for name in TABS[tab].defaults:
        found = answer_page({"tab": tab, "inputs": {name: MARKUP}, "part": "fixes"})
        for section in found["sections"]:
            assert "<img" not in section["html"]
            assert "<b>" not in section["html"]
    said = answer_page({"tab": "explain", "inputs": {"text": f"CUDA_ERROR_INVALID_VALUE {MARKUP}"}})
    assert "<img" not in json.dumps(said["sections"])


def test_the_page_without_an_interpreter(tmp_path: Path) -> None:
    page = explorer_page()
    first = dumped(page_url(tmp_path, page, ""))
    assert first.by_id("verdict").text == "16 elements at offsets 0 to 15: each once, without gaps"
    assert len(first.by_id("s-offsets").all("g", "c")) == 16
    assert first.by_id("listing").text.startswith("import cute_py as cute")
    other = dumped(page_url(tmp_path, page, "tab=layout&layout=%3Cb%3E"))
    assert "no interpreter" in other.by_id("verdict").text
    assert other.by_id("layout").text in ("", "<b>")
    assert other.by_id("sections").children == []


def test_the_command_writes_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert main(["draw", "--html", "--interpreter", "-", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == explorer_page()
    size = out.stat().st_size
    assert capsys.readouterr().out == f"{out}: {size} bytes, view only, without an interpreter\n"
    assert main(["draw", "--html", "--interpreter", "-", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"title": "playground", "interpreter": None, "file": str(out)}]
    assert main(["draw", "--html", "--interpreter", str(tmp_path)]) == 2
    assert "is not the npm package pyodide" in capsys.readouterr().err
    assert main(["draw", "--html", "--interpreter", "-", "--out", str(tmp_path / "a.svg")]) == 2
    assert "the name of a page must end in .html" in capsys.readouterr().err
    assert main(["draw", "4:1", "--interpreter", "-"]) == 2
    assert "--interpreter needs --html without a text" in capsys.readouterr().err


def test_html_of_a_picture_is_still_a_page_of_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", "--html", "--what", "tmem"]) == 0
    assert "<figure>" in capsys.readouterr().out
    assert main(["draw"]) == 2


def test_the_packed_library_has_every_file_that_it_reads() -> None:
    names = set(zipfile.ZipFile(io.BytesIO(library_zip())).namelist())
    root = Path(cute_py.__file__).parent
    kept = [
        path.relative_to(root.parent).as_posix()
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".typed") and not {*path.parts} & {*LEFT_OUT}
    ]
    assert len(kept) > 300
    assert [name for name in kept if name not in names] == []


def test_a_worker_of_the_server_has_loaded_every_tab() -> None:
    """So that the time limit of an answer does not count imports."""
    ask = "import sys; import cute_py.page.served; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=120, check=True)
    assert {f"cute_py.page.{tab.module}" for tab in TABS.values()} <= set(done.stdout.split())
