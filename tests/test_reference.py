"""The API reference has every public name once, with a row for each parameter."""

from __future__ import annotations

import html
import importlib.util
import inspect
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cute_py as cute

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("SITE", "no-site")).resolve()
WITHOUT_EXAMPLE = {
    "cute.load_ipython_extension": "a running shell of IPython",
    "cute.unload_ipython_extension": "a running shell of IPython",
    "cute.prepare_copy": "arrays on a GPU",
    "cute.tma.PreparedCopy": "arrays on a GPU",
    "cute.tma.PreparedGemm": "arrays on a GPU",
    "cute.tma.kernel_texts": "a kernel that a GPU has loaded",
    "cute.tma.measure_copy": "a copy that runs on a GPU",
    "cute.tma.run_on_machine": "a compiler of CUDA C++",
    "cute.tma.tuned_copy": "arrays on a GPU",
    "cute.watch.build_injector": "CUPTI and a C compiler",
    "cute.watch.watch": "CUPTI and a program that uses CUDA",
}
"""Public functions and classes without an example that runs everywhere, and what an example would need."""


def loaded(name: str) -> ModuleType:
    """A module of docs, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


reference = loaded("reference_entries")


def shown() -> dict[str, list[Any]]:
    """Page of the reference -> its entries."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    found = {page.stem: reference.DIRECTIVE.findall(page.read_text(encoding="utf-8")) for page in pages}
    return {page: [one for modules in lines for one in reference.entries(modules)] for page, lines in found.items()}


def test_every_public_name_is_on_one_page() -> None:
    counts = Counter(one for entries in shown().values() for one in entries)
    assert [one.typed for one in reference.public_names() if counts[one] != 1] == []
    typed = {name for one in reference.public_names() for name in one.all_typed}
    for names, thing in (("cute", cute), ("cute.tma", cute.tma), ("cute.formats", cute.formats)):
        public = [n for n in dir(thing) if not n.startswith("_") and not inspect.ismodule(getattr(thing, n))]
        assert [name for name in public if f"{names}.{name}" not in typed] == []


def test_no_directive_is_without_entries() -> None:
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for modules in reference.DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            assert [prefix for prefix in modules.split() if not reference.entries(prefix)] == [], page


def test_names_lead_to_their_definitions() -> None:
    for one in reference.public_names():
        module = sys.modules[one.module]
        for typed in one.all_typed:
            *packages, name = typed.split(".")[1:]
            inside: Any = cute
            for package in packages:
                inside = getattr(inside, package)
            assert getattr(inside, name) is getattr(module, one.name), typed


def test_every_class_and_function_has_an_example() -> None:
    without = []
    for one in reference.public_names():
        thing = getattr(sys.modules[one.module], one.name)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        if ">>>" not in (inspect.getdoc(thing) or ""):
            without.append(one.typed)
    assert sorted(without) == sorted(WITHOUT_EXAMPLE)


SHARED = """An order.

    Attributes:
        rows, scales: a tile, in rows
            and scales. each: one scale a row.
        formula: the index; not rows: of anything.

    Raises:
        KeyError: rows, scales: both.
"""


def test_every_parameter_has_a_row_of_its_own() -> None:
    pytest.importorskip("griffe")
    split = loaded("griffe_doctests").one_row_each(SHARED, {"rows", "scales", "each", "formula"})
    assert "        rows: a tile, in rows and scales.\n        scales: a tile, in rows and scales.\n" in split
    assert "        each: one scale a row.\n        formula: the index; not rows: of anything.\n" in split
    assert split.endswith("    Raises:\n        KeyError: rows, scales: both.\n")


ERRORS = """Read it.

    Raises:
        FileFormatError: the file
            can't be read; LayoutError: no shape. InvalidTypeError, InvalidValueError: another argument.
    """


def test_every_error_has_a_row_of_its_own() -> None:
    """The docstrings have no blank line above Raises, which griffe needs; other lines than errors stay text."""
    pytest.importorskip("griffe")
    rows = loaded("griffe_doctests").errors_in_rows(ERRORS)
    assert "\n    Raises:\n        FileFormatError: the file can't be read\n        LayoutError: no shape.\n" in rows
    assert "\n        InvalidTypeError, InvalidValueError: another argument.\n" in rows
    prose = "    Raises:\n        the errors of `encode`.\n"
    assert loaded("griffe_doctests").errors_in_rows(prose) == prose


@pytest.mark.skipif(not SITE.is_dir(), reason="no site was built: SITE names no folder")
@pytest.mark.parametrize("page", sorted(page.stem for page in (ROOT / "docs" / "reference").glob("*.md")))
def test_the_site_has_the_entries(page: str) -> None:
    html = (SITE / "reference" / page / "index.html").read_text(encoding="utf-8")
    names = [typed for one in shown()[page] for typed in one.all_typed]
    assert [name for name in names if html.count(f'id="{name}"') != 1] == []


def visible_title(entry: dict[str, str]) -> str:
    return re.sub(r"<code>.*?</code>|<[^>]+>|[\s¶]", "", html.unescape(entry["title"]))


@pytest.mark.skipif(not SITE.is_dir(), reason="no site was built: SITE names no folder")
def test_a_search_for_a_name_finds_its_entry_first() -> None:
    """Titles weigh most in the search of the site: only the reference has a section that is called as a name is."""
    found = json.loads((SITE / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    places: dict[str, list[str]] = {}
    for entry in found:
        places.setdefault(visible_title(entry), []).append(entry["location"])
    names = {one.short for one in reference.public_names() if one.short != "_"}
    assert sorted(name for name in names if not places.get(name)) == []
    assert [(n, at) for n in sorted(names) for at in places[n] if not at.startswith("reference/")] == []
