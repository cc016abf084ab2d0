"""Pyodide in node says what Python says here: layouts, atoms, plans, descriptors, explanations, pictures."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cute_py.page.interpreter import VERSION, find_interpreter, library_zip, version_of
from tests import without_numpy
from tests.page.test_browser import modules
from tests.test_without_numpy import NEEDS

HERE = Path(__file__).parent


@pytest.mark.slow
def test_pyodide_says_the_same(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (modules() / "pyodide").is_dir():
        pytest.skip("no node with the npm package pyodide here; CUTE_PY_NODE_MODULES names its folder")
    folder = find_interpreter(modules() / "pyodide")
    assert folder is not None
    assert version_of(folder) == VERSION
    library = tmp_path / "library.zip"
    library.write_bytes(library_zip())
    script = str(HERE.parent / "without_numpy.py")
    command = [node, str(HERE / "pyodide.mjs"), str(folder.resolve()), str(library), script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    here = without_numpy.run()
    assert found.keys() == here.keys()
    assert [name for name in here if name not in NEEDS and here[name] != found[name]] == []
    assert all("needs the package numpy" in found[name] for name in NEEDS)
