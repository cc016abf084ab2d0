"""How many parameters and results of the package have no type: Any and object, in any part of an annotation, and casts.

Names that are bound to Any or object (`Given: TypeAlias = Any`) count as these do, also where another module imports
them. The comparison `__eq__` takes an object, as Python has it.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

import pytest

from tests.architecture.sources import no_collection, walked
from tests.architecture.test_layers import PACKAGE, modules

MOST = 1071
"""Of the whole package; lower it when there are fewer."""


def expression(node: ast.expr) -> ast.expr:
    """An annotation, read if it is written as text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with contextlib.suppress(SyntaxError):
            return ast.parse(node.value, mode="eval").body
    return node


def names(node: ast.expr) -> set[str]:
    """The names in an annotation, and in the texts that are annotations within it."""
    found = set()
    for part in ast.walk(expression(node)):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            found.add(part.value)
    return found


def aliases(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Module -> Any, object, and the names that are bound there to one of them, or imported from where they are."""
    found = {module: {"Any", "object"} for module in trees}
    while True:
        before = sum(map(len, found.values()))
        for module, tree in trees.items():
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and node.module in found:
                    there = found[node.module]
                    found[module] |= {a.asname or a.name for a in node.names if a.name in there}
                elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                    value = expression(node.value)
                    if isinstance(target, ast.Name) and isinstance(value, ast.Name) and value.id in found[module]:
                        found[module].add(target.id)
        if sum(map(len, found.values())) == before:
            return found


def untyped(trees: dict[str, ast.Module]) -> Iterator[str]:
    """One line for each parameter, result and cast."""
    untyped_names = aliases(trees)
    for module, tree in trees.items():
        nothing = untyped_names[module]
        for node in walked(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
                yield f"{module}:{node.lineno} cast"
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name == "__eq__":
                continue
            a = node.args
            given = [x for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None]
            for name, annotation in [*((x.arg, x.annotation) for x in given), ("its result", node.returns)]:
                if annotation is not None and names(annotation) & nothing:
                    yield f"{module}:{node.lineno} {node.name}: {name}"


def test_few_parameters_and_results_have_no_type() -> None:
    with no_collection():
        trees = {name: ast.parse(path.read_text()) for name, path in modules(PACKAGE).items()}
        found = list(untyped(trees))
        del trees
    assert len(found) <= MOST, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(x: int) -> str: ...", 0),
        ("def f(x: Any, *y: object, **z: list['Any']) -> 'tuple[Any, ...]': ...", 4),
        ("def __eq__(self, other: object) -> bool: ...", 0),
        ("Tree: TypeAlias = Any\nLeaf: TypeAlias = 'Tree'\ndef f(x: Leaf) -> Tree: ...", 2),
        ("Thing = object\ndef f(x: typing.Any, y: Thing): return cast(int, x)", 3),
        ("Leaf: TypeAlias = 'int | str'\ndef f(x: Leaf, y: Many) -> None: ...", 0),
    ],
)
def test_the_count(source: str, count: int) -> None:
    assert len(list(untyped({"m": ast.parse(source)}))) == count


def test_an_alias_of_another_module_counts() -> None:
    sources = {"a": "Tree = object", "b": "from a import Tree as T\ndef f(x: T) -> Tree: ..."}
    assert list(untyped({name: ast.parse(text) for name, text in sources.items()})) == ["b:2 f: x"]
