"""The encoder and the decoder check each other, so neither may reach the other through any import."""

from __future__ import annotations

from tests.architecture.test_layers import PACKAGE, imports, modules


def reached(start: str) -> set[str]:
    """Modules that `start` imports, directly or not, re-exports of packages aside."""
    files = {name: path for name, path in modules(PACKAGE).items() if path.name != "__init__.py"}
    known = set(modules(PACKAGE))
    seen: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name in seen or name not in files:
            continue
        seen.add(name)
        todo += imports(files[name], known)
    return seen


def test_neither_reaches_the_other() -> None:
    package = "cute_py.tma.descriptor"
    assert f"{package}.encode" not in reached(f"{package}.decode")
    assert f"{package}.decode" not in reached(f"{package}.encode")


def test_reaching_is_found() -> None:
    package = "cute_py.tma.descriptor"
    assert {f"{package}.encode", f"{package}.decode"} <= reached(f"{package}.describe")
