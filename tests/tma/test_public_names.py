"""Where names are found: all in `cute_py.tma`, imported when first asked for; old packages forward with a warning."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import rlcompleter
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

import cute_py as cute
from cute_py import tma

ON_FIRST_USE = ("cute_py.copies", "cute_py.gpu", "cute_py.ptx", "cute_py.tma.emulator", "cute_py.tma.exports")


MAIN = {
    *("copy", "execute", "Emulator", "Mbarrier", "SharedMemory", "GlobalMemory", "lower", "ptx", "export", "Trace"),
    *("make_tma_copy", "encode"),
}


def test_every_name_is_listed_and_found() -> None:
    assert set(dir(tma)) == set(tma.__all__) >= MAIN
    for name in tma.__all__:
        assert getattr(tma, name) is not None
    assert not [name for name in dir(tma) if name.startswith("_") or inspect.ismodule(getattr(tma, name))]
    given: dict[str, object] = {}
    exec("from cute_py.tma import *", given)
    assert set(given) - {"__builtins__"} == set(tma.__all__)


def test_type_checkers_read_what_the_table_has() -> None:
    """The imports under TYPE_CHECKING give each name of the table from its package, and no other."""
    seen: dict[str, set[str]] = defaultdict(set)
    for node in ast.parse(Path(tma.__file__).read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom)
                assert line.module is not None
                names = [alias.asname for alias in line.names if alias.asname]
                package = next(p for p in tma._TABLE if f"{line.module}.".startswith(p + "."))
                seen[package].update(names or importlib.import_module(line.module).__all__)
    assert seen == {package: set(names.split()) for package, names in tma._TABLE.items()}


def test_completion_at_a_prompt() -> None:
    complete = rlcompleter.Completer({"cute": cute}).complete
    for name in MAIN:
        found = []
        while text := complete(f"cute.tma.{name}", len(found)):
            found.append(text.partition("(")[0])
        assert f"cute.tma.{name}" in found


@pytest.mark.slow
def test_completion_of_jedi() -> None:
    jedi = pytest.importorskip("jedi")
    assert {found.name for found in jedi.Script("import cute_py as cute\ncute.tma.").complete()} >= MAIN
    at_prompt = {found.name for found in jedi.Interpreter("cute.tma.", [{"cute": cute}]).complete()}
    assert {name for name in at_prompt if not name.startswith("_")} == set(tma.__all__)


def test_lower_is_the_function_whatever_was_imported() -> None:
    """No submodule takes its place, at the first access or after all of them."""
    first = tma.lower
    for found in pkgutil.walk_packages(tma.__path__, "cute_py.tma."):
        importlib.import_module(found.name)
    assert inspect.isfunction(first)
    assert tma.lower is first is cute.tma.lower is importlib.import_module("cute_py.tma.dialect").lower


@pytest.mark.parametrize("package", ON_FIRST_USE)
def test_what_a_package_gives_is_given_here_too(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(tma, name) is getattr(module, name), name


ASKED = """
import sys
import cute_py as cute
tma = cute.tma
before = set(sys.modules)
assert not before & {"numpy", "sympy"}, "numpy or sympy"
def count(*_):
    global events
    events += 1
taken = []
for name in ["emulater", *(f"name_{i}" for i in range(8))]:
    for module in (tma, cute):
        events = 0
        sys.setprofile(count)
        found = hasattr(module, name)
        sys.setprofile(None)
        assert not found
        taken.append(events)
assert set(sys.modules) == before, set(sys.modules) - before
print(min(taken[::2]), min(taken[1::2]))
"""


def test_a_misspelled_name_lists_the_nearest_and_imports_nothing() -> None:
    """Nor is there a wait for it: so many calls of functions, those of C counted, as names that are compared."""
    done = subprocess.run([sys.executable, "-c", ASKED], check=True, capture_output=True, text=True)
    assert max(map(int, done.stdout.split())) < 30_000
    with pytest.raises(AttributeError, match="has no attribute 'emulater'; did you mean Emulator"):
        tma.emulater  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Layuot'; did you mean Layout"):
        cute.Layuot  # noqa: B018


def test_a_name_of_the_neighbouring_module_is_found_there() -> None:
    with pytest.raises(AttributeError, match=r"did you mean cute_py\.tma\.make_tma_copy\?"):
        cute.make_tma_copy  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean cute_py\.explain\?"):
        tma.explain  # noqa: B018


@pytest.mark.parametrize("package", ["atom", "draw", "mesh", "testing", "tma", "tmem"])
def test_a_package_shows_public_names_only_and_lists_the_nearest(package: str) -> None:
    shown = getattr(cute, package)
    names = dir(shown)
    assert {"Any", "annotations", "importlib"}.isdisjoint(names)
    assert [name for name in names if name.startswith("_") or isinstance(getattr(shown, name), ModuleType)] == []
    assert set(shown.__all__) <= set(names)
    longest = max(names, key=len)
    with pytest.raises(AttributeError, match=f"has no attribute '{longest}x'; did you mean {longest}"):
        getattr(shown, f"{longest}x")


ENDED = {
    **dict.fromkeys(("tma.Run", "tma.diagnose", "tma.Outcome"), r"use cute_py\.run_ptx\(kernel\)\.explain\(\)"),
    **dict.fromkeys(("tma.Ring", "tma.RingLoad", "tma.RingStore"), r"use cute_py\.run_ptx\(kernel\)\.timeline\(\)"),
    "draw.draw_pipeline": r"use cute_py\.draw\.draw\(run\.timeline\(\)\)",
}


@pytest.mark.parametrize("path", ENDED)
def test_a_name_that_ends_works_and_names_what_replaces_it(path: str) -> None:
    package, name = path.split(".")
    module = getattr(cute, package)
    text = rf"^the next minor version removes cute_py\.{package}\.{name}; {ENDED[path]}"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        found = getattr(module, name)
    assert found.__name__ == name
    assert caught[0].filename == __file__
    assert name not in dir(module)


def test_no_package_has_the_path_of_a_function() -> None:
    for name in tma.__all__:
        value = getattr(tma, name)
        if inspect.isroutine(value) or inspect.isclass(value):
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"cute_py.tma.{name}")
    for name in cute.__all__:
        if name != "__version__":
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"cute_py.{name}")
