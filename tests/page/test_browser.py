"""The page in Chromium, typed into by Playwright: each answer is compared with Python's. `make page` runs it.

It needs node, Chromium, and the npm packages playwright-core and pyodide (`npm install playwright-core pyodide` in a
folder that CUTE_PY_NODE_MODULES names, or here); without them it is skipped. Screenshots go to CUTE_PY_SCREENSHOTS.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cute_py.draw import explorer_page
from cute_py.page.answer import FIRST_CELLS, answer_page
from cute_py.page.forms import TABS
from cute_py.page.interpreter import find_interpreter
from tests.cli.test_serve_command import serving
from tests.draw.explorer_browser import browser

HERE = Path(__file__).parent
INPUTS: list[tuple[str, dict[str, str]]] = [tuple(row) for row in json.loads((HERE / "inputs.json").read_text())]
BAD = 10
pytestmark = pytest.mark.slow


def modules() -> Path:
    """The folder of npm's packages."""
    return Path(os.environ.get("CUTE_PY_NODE_MODULES", Path.cwd() / "node_modules"))


def typed(url: str, mode: str, folder: Path) -> dict[str, Any]:
    node = shutil.which("node")
    playwright = modules() / "playwright-core"
    if node is None or not playwright.is_dir():
        pytest.skip("no node with playwright-core here; CUTE_PY_NODE_MODULES names its folder")
    shots = os.environ.get("CUTE_PY_SCREENSHOTS", str(folder))
    command = [node, str(HERE / "browser.mjs"), str(playwright), browser(), url, str(HERE / "inputs.json"), shots, mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if record := os.environ.get("CUTE_PY_PAGE_RECORD"):
        Path(f"{record}-{mode}.json").write_text(json.dumps(found, indent=1))
    return found


@pytest.fixture(scope="module", params=["served", "static"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("shots")
    if request.param == "served":
        with serving(seconds=60.0) as port:  # its time limit has its own test; here other work may take the machine
            yield typed(f"http://127.0.0.1:{port}/", "served", folder)
        return
    try:
        interpreter = find_interpreter(modules() / "pyodide")
    except Exception:
        pytest.skip("no npm package pyodide here")
    page = folder / "page.html"
    page.write_text(explorer_page(interpreter=interpreter), encoding="utf-8")
    assert page.stat().st_size <= 11_000_000
    yield typed(page.as_uri(), "static", folder)


def test_each_answer_is_pythons(found: dict[str, Any]) -> None:
    assert len(INPUTS) == len(found["answers"]) == 40
    bad = 0
    for (tab, fields), got in zip(INPUTS, found["answers"], strict=True):
        want = answer_page({"tab": tab, "inputs": fields})
        assert got["verdict"] == want["verdict"], fields
        assert got["problems"] == [problem["message"] for problem in want["problems"]]
        assert got["sections"] == [section["title"] for section in want["sections"]]
        assert got["cells"] == sum(section["html"].count('<g class="c"') for section in want["sections"])
        steps = next((section["html"] for section in want["sections"] if section["id"] == "steps"), "")
        assert [html.escape(step) for step in got["steps"]] == re.findall("<li>(.*?)</li>", steps)
        if want["code"]:
            assert got["code"] == [panel["name"] for panel in want["code"]]
            assert got["listing"] in [panel["text"] for panel in want["code"]]
        assert got["images"] == 0
        bad += bool(want["problems"])
    assert bad >= BAD


def test_nothing_goes_wrong_and_nothing_is_fetched(found: dict[str, Any]) -> None:
    assert found["troubles"] == []
    places = {url.partition(":")[0] for url in found["asked"]}
    assert places <= {"file", "blob", "http"}
    assert all("127.0.0.1" in url for url in found["asked"] if url.startswith("http"))


def test_a_fix_back_and_forward(found: dict[str, Any]) -> None:
    assert found["fixed"].startswith("Accepted")
    assert found["moved"]
    assert found["back"] == [True, "(256,100):(100,_1)"]
    assert found["forward"] == found["fixed"]


def test_examples_and_code_in_every_language(found: dict[str, Any]) -> None:
    assert [tab for tab, _ in found["examples"]] == list(TABS)
    for name, verdict in found["examples"]:
        want = answer_page({"tab": name, "inputs": TABS[name].examples[1][1]})
        assert verdict == want["verdict"][1]
        assert found["listings"][name] == {panel["name"]: panel["text"] for panel in want["code"]}
    assert {"Python", "C++", "CuTe DSL"} <= found["listings"]["layout"].keys()
    assert {"Python", "C++", "Triton", "PTX"} <= found["listings"]["tma"].keys()


def test_keys_links_and_addresses_from_elsewhere(found: dict[str, Any]) -> None:
    assert found["keyed"] == ["banks", "#tab=banks"]
    assert found["hostile"] == ["<img src=x onerror=alert(1)>", 0]
    if "shared" in found:
        mine, other, told = found["shared"]
        assert mine == other == "coalesce is (_6,_7):(_7,_1)"
        assert told


def test_the_policy_holds(found: dict[str, Any]) -> None:
    assert found["policy"] == {"ran": False, "evaluated": False, "fetched": False}
    assert found["blocked"] >= 2


def test_an_answer_that_takes_too_long_is_ended(found: dict[str, Any]) -> None:
    if "ended" in found:  # the server's own time limit has its test beside the server
        assert found["ended"] == "no answer within 0.001 s: the computation was ended"
        assert found["after"] == "15 elements at offsets 0 to 14: each once, without gaps"


def test_cells_and_downloads(found: dict[str, Any]) -> None:
    assert found["told"].partition("(")[0] in ("A", "B", "C")
    assert "thread" in found["told"]
    assert found["below"] != found["told"]
    assert found["same"] >= 4
    assert found["downloads"] == [["mma.svg", "<svg"], ["mma.png", "\x89PNG"]]


def test_the_first_cells_come_before_the_others(found: dict[str, Any]) -> None:
    first, whole = found["parts"]
    want = answer_page({"tab": "threads", "inputs": {"atoms": "(1,2,1)"}})
    assert first == [FIRST_CELLS, 2]  # a part of a picture is not downloaded
    assert whole == [sum(section["html"].count('<g class="c"') for section in want["sections"]), 0]


def test_the_other_tabs_are_loaded_while_the_page_is_idle(found: dict[str, Any]) -> None:
    if "opened" in found:
        assert found["opened"] < found["times"]["boot"]  # its modules alone take a third of a start


def test_a_wide_picture_shrinks_to_its_column(found: dict[str, Any]) -> None:
    own, drawn, room, scrolled = found["shrunk"]
    assert own > room >= drawn >= 0.6 * own
    assert scrolled <= room


def test_the_verdict_is_in_the_first_screen(found: dict[str, Any]) -> None:
    assert len(found["places"]) == 24
    for name, (bottom, height, wide, width) in found["places"].items():
        assert bottom < height, name
        assert wide <= width, name
