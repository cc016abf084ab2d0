"""The explorer as a page: one file without network; in a browser, what it shows is what the library says."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.draw.boxes import draw_boxes
from cute_py.draw.explorer import DEFAULTS, EXAMPLES, explorer_page
from cute_py.draw.explorer_answer import answer_query
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.op import OPS
from tests.draw.explorer_browser import Node, dumped, page_url
from tests.draw.structure import cells

FORMS = dict(EXAMPLES)


def test_the_page_is_one_file_without_network() -> None:
    page = explorer_page()
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"\b(src|href)=|@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket|sendBeacon", page)
    assert len(page) < 400_000
    assert page.count("</script>") == page.count("<script>") == 1


def test_only_the_served_page_asks() -> None:
    assert explorer_page(served=True).count("fetch(") == 1
    assert "/*SCRIPT*/" not in explorer_page()
    assert "/*STYLE*/" not in explorer_page()


def test_every_field_has_a_label() -> None:
    page = explorer_page()
    for name in DEFAULTS:
        if name != "at":  # the tile is chosen beside its picture
            assert f'id="{name}"' in page
            assert f'for="{name}"' in page


def load(folder: Path, form: dict[str, str], script: str = "") -> Node:
    """The document of a filled-in form, after `script` ran; an error in the page fails the test."""
    page = explorer_page()
    watch = "<script>window.onerror = (m) => { document.title = `FAILED ${m}`; };</script>"
    page = page.replace("</head>", f"{watch}</head>").replace("</body>", f"<script>{script}</script></body>")
    root = dumped(page_url(folder, page, urlencode(form)))
    assert root.all("title")[0].text == "TMA explorer"
    return root


def test_a_copy_is_shown_as_the_library_has_it(tmp_path: Path) -> None:
    form = FORMS["plain tile over the end"]
    root, want = load(tmp_path, form), answer_query(form)
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, form["dtype"]), cute.parse(form["gmem"]))
    atom = make_tma_copy("SM90_TMA_LOAD", gmem, cute.parse(form["smem"]))
    assert root.by_id("verdict").text == "Accepted: a tile is 1 instruction, 4096 bytes"
    assert root.by_id("hex").text == atom.descriptor[:64].hex()
    assert [b.text for b in root.all("span", "byte")] == [f"{b:02x}" for b in atom.descriptor[:64]]
    assert want["plan"]["tma_tensor"] in root.by_id("numbers").text
    stages = [row.all("code") for row in root.by_id("stages").all("tbody")[0].all("tr")]
    assert [[name.text, value.text] for name, value in stages] == [stage[:2] for stage in want["stages"]]
    fields = [[cell.text for cell in row.all("td")] for row in root.all("table", "fields")[0].all("tbody")[0].all("tr")]
    assert [row[:3] for row in fields] == [[f[0], f[1], str(f[2])] for f in want["descriptor"]["fields"]]
    boxes = root.by_id("boxes").all("g", "box")
    assert len(boxes) == len(cells(draw_boxes(atom))) == 16
    assert sum(bool(box.all("rect", "outside")) for box in boxes) == 7
    assert len(root.by_id("boxes").all("g", "chosen")) == 1
    units = root.by_id("smem-picture").all("g", "unit")
    assert len(units) == 24 * 8
    assert "summarised: 32 lines, of which 24 are drawn" in root.by_id("smem-picture").text
    assert units[9].all("title")[0].text == (
        "tensor coordinate (1,8) -> global address 0x11a0 -> TMA coordinate (8,1) -> instruction 0 at (0,0), row 1"
        " -> shared byte before the swizzle 144 -> after the swizzle 144 -> bank 4"
    )
    assert len(root.by_id("examples").all("button")) == len(EXAMPLES)
    assert len(root.by_id("op").all("option")) == len(OPS)
    assert root.by_id("problems").attributes.get("hidden") == ""
    assert root.by_id("warnings").attributes.get("hidden") == ""


def test_bytes_are_told_by_keyboard(tmp_path: Path) -> None:
    script = "const picture = document.querySelector('#smem-picture svg');" + "".join(
        f"picture.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', shiftKey: {shift}}}));"
        for key, shift in (("ArrowDown", "false"), ("ArrowRight", "false"), ("ArrowRight", "true"), ("Tab", "false"))
    )
    root = load(tmp_path, FORMS["K-major tile, 128B swizzle"], script)
    told = [node.text for node in root.all("dl", "way")[0].all("dd")]
    # byte 128 + 16 + 1 of the image is byte 129 before the swizzle: the second byte of row 1's first element
    assert told == ["(1,0)", "0x1401", "(0,1)", "0 at (0,0), row 1", "129", "145", "4"]
    assert len(root.all("g", "pointed")) == 1


def test_bytes_are_told_by_pointer(tmp_path: Path) -> None:
    script = (
        "const cell = document.querySelector('[data-byte=\"144\"]'), area = cell.getBoundingClientRect();"
        "const at = {bubbles: true, clientX: area.left + 0.6 * area.width};"
        "cell.dispatchEvent(new PointerEvent('pointermove', at));"
    )
    root = load(tmp_path, FORMS["K-major tile, 128B swizzle"], script)
    told = [node.text for node in root.all("dl", "way")[0].all("dd")]
    assert told == ["(1,4)", "0x1409", "(4,1)", "0 at (0,0), row 1", "137", "153", "6"]


@pytest.mark.parametrize("name", [name for name, _ in EXAMPLES if name.startswith("error")])
def test_errors_are_all_told_and_a_button_helps(name: str, tmp_path: Path) -> None:
    want = [p["message"] for p in answer_query(FORMS[name])["problems"]]
    script = (
        "const before = [...document.querySelectorAll('#problems strong')].map((e) => e.textContent);"
        "const fixes = [...document.querySelectorAll('#problems button.fix')];"
        "const whole = document.querySelector('#problems > button.fix');"
        "const told = document.getElementById('verdict').className;"
        "(whole ?? fixes[0]).click();"
        "document.body.prepend(Object.assign(document.createElement('pre'), "
        "{id: 'before', textContent: JSON.stringify([told, before])}));"
    )
    after = load(tmp_path, FORMS[name], script)
    assert json.loads(after.by_id("before").text) == ["bad", want]
    assert after.by_id("verdict").text.startswith("Accepted")
    assert after.by_id("problems").all("strong") == []
    assert len(after.by_id("hex").text) == 128


def test_what_is_typed_goes_into_the_address(tmp_path: Path) -> None:
    form = {"gmem": "(64,64):(64,_1)", "smem": "(_8,_64):(_64,_1)", "dtype": "bf16", "at": "3", "split": "1"}
    script = "document.getElementById('verdict').textContent = location.hash;"
    told = load(tmp_path, form, script).by_id("verdict").text
    assert dict(part.split("=") for part in told.removeprefix("#").split("&")) == {
        "gmem": "%2864%2C64%29%3A%2864%2C_1%29",
        "smem": "%28_8%2C_64%29%3A%28_64%2C_1%29",
        "dtype": "bf16",
        "split": "1",
        "at": "3",
    }


def test_texts_are_never_markup(tmp_path: Path) -> None:
    form = {"gmem": "<img src=x onerror=alert(1)>", "smem": "<b>", "dtype": "<i>x</i>"}
    root = load(tmp_path, form)
    assert root.all("img") == root.all("b") == root.all("i") == []
    assert "unknown element type '<i>x</i>'" in root.by_id("problems").text
    assert escape("<b>") not in root.by_id("verdict").text


def test_what_is_not_covered_is_said(tmp_path: Path) -> None:
    root = load(tmp_path, {**FORMS["plain tile over the end"], "op": "SM90_TMA_LOAD_IM2COL"})
    assert root.by_id("verdict").text.startswith("Not answered here: im2col (SM90_TMA_LOAD_IM2COL).")
    assert root.by_id("boxes").children == []


def test_the_command_writes_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "explorer.html"
    assert main(["draw", "--html", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == explorer_page()
    assert capsys.readouterr().out == f"{out}: {out.stat().st_size} bytes\n"
    assert main(["draw", "--html", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"title": "TMA explorer", "file": str(out)}]
    assert main(["draw", "--html"]) == 0
    assert capsys.readouterr().out == explorer_page()
    assert main(["draw", "--html", "--out", str(tmp_path / "a.svg")]) == 2
    assert "a page is written to a name that ends in .html" in capsys.readouterr().err


def test_html_of_a_picture_is_still_a_page_of_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", "--html", "--what", "tmem"]) == 0
    assert "<figure>" in capsys.readouterr().out
    assert main(["draw"]) == 2
