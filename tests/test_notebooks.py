"""The notebooks run, every cell, and show what is stored; in this process, and in Jupyter where that is installed."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "run_notebooks.py"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
HOW = "python docs/run_notebooks.py stores what they show now"
LARGEST = 250_000
"""Bytes of a notebook with its outputs."""


def load(path: Path) -> ModuleType:
    """A program as a module; `docs` is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load(SCRIPT)
site = load(ROOT / "docs" / "site_pages.py")


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_these_are_the_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "emulation-and-gpu",
        "layouts-and-coordinates",
        "one-gemm-tile",
        "one-tma-load",
        "scales-as-a-layout",
        "tensors-over-devices",
        "who-holds-what",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_shows_what_is_stored(path: Path) -> None:
    found = runner.differences(read(path))
    assert not found, "\n\n".join([*found, HOW])


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="nbclient and ipykernel are not installed (extra `notebook`)",
)
def test_jupyter_shows_the_same() -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--check", "--jupyter"], cwd=ROOT, capture_output=True, text=True, timeout=400
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}\n{HOW}"
    assert run.stdout.count("as stored") == len(NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_file_is_plain_and_small(path: Path) -> None:
    """Format 4.5 with stable cell names, one MIME type an output, no traces of the machine that ran it."""
    text, notebook = path.read_text(encoding="utf-8"), read(path)
    assert len(text.encode()) <= LARGEST
    assert text == runner.text_of(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{0,63}", name) for name in names)
    for count, cell in enumerate(runner.code_cells(notebook), 1):
        assert cell["execution_count"] == count
        assert all(len(output.get("data", {"one": 0})) == 1 for output in cell["outputs"])
        assert all(output.get("name") != "stderr" for output in cell["outputs"])
    assert notebook["cells"][0]["source"][0].startswith("# ")
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_is_prose_pictures_and_printouts(path: Path) -> None:
    notebook = read(path)
    kinds = [kind for cell in runner.code_cells(notebook) for o in cell["outputs"] for kind in o.get("data", ())]
    assert kinds.count("image/svg+xml") >= 4
    words = sum(len("".join(c["source"]).split()) for c in notebook["cells"] if c["cell_type"] == "markdown")
    assert words > 400


def test_a_changed_output_is_found() -> None:
    notebook = copy.deepcopy(read(NOTEBOOKS[1]))
    printed = next(o for c in runner.code_cells(notebook) for o in c["outputs"] if o["output_type"] == "stream")
    printed["text"] = ["something else\n"]
    assert len(runner.differences(notebook)) == 1


def test_a_changed_picture_is_found() -> None:
    notebook = copy.deepcopy(read(NOTEBOOKS[1]))
    drawn = next(o for c in runner.code_cells(notebook) for o in c["outputs"] if "data" in o)
    drawn["data"]["image/svg+xml"] = ["".join(drawn["data"]["image/svg+xml"]).replace(">19<", ">91<")]
    assert len(runner.differences(notebook)) == 1


def cell(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "source": source.splitlines(keepends=True)}


def test_a_cell_shows_its_last_value_as_jupyter_does() -> None:
    notebook = {"cells": [cell("x = 2\nprint(x)\nx + 1"), cell("x; None"), cell("import sys\nsys.stderr.write('!')")]}
    first, second, third = runner.run_plain(notebook)
    assert [runner.words(output) for output in first] == ["2\n", "3"]
    assert second == []
    assert [output.get("name") for output in third] == ["stderr", None]


def test_a_cell_that_fails_stops_the_run() -> None:
    with pytest.raises(ZeroDivisionError):
        list(runner.run_plain({"cells": [cell("1 / 0")]}))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_page_on_the_site_has_all_of_it(path: Path) -> None:
    notebook = read(path)
    page = site.notebook_page(notebook, path.name)
    assert page.splitlines()[0] == notebook["cells"][0]["source"][0].rstrip("\n")
    assert f'href="../{path.name}"' in page
    assert page.count("```python\n") == len(runner.code_cells(notebook))
    for cell in runner.code_cells(notebook):
        assert "".join(cell["source"]) in page
        for output in cell["outputs"]:
            text = "".join(output["text"] if "text" in output else next(iter(output["data"].values())))
            drawn = "image/svg+xml" in output.get("data", {})
            assert (site.inline(text) if drawn else text.rstrip("\n")) in page


def test_links_to_notebooks_lead_to_their_pages() -> None:
    class Page:
        class file:
            src_uri = "README.md"

    text = '[a](notebooks/one-tma-load.ipynb) [b](x.ipynb#c) `y.ipynb` <a href="../z.ipynb">'
    want = '[a](notebooks/one-tma-load.md) [b](x.md#c) `y.ipynb` <a href="../z.ipynb">'
    assert site.on_page_markdown(text, page=Page) == want


def test_the_links_of_the_changes_begin_in_the_folder_of_the_pages() -> None:
    page = site.changes_page(site.CHANGELOG.read_text(encoding="utf-8"))
    assert "](stability.md)" in page
    assert "](docs/" not in page
