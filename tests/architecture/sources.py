"""What the rules read of a source: it is parsed and walked once, whichever rule asks first.

The tree itself is not kept: the trees of the whole package are a million objects, which each collection of garbage
would visit again.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import gc
from collections.abc import Iterator
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclasses.dataclass(frozen=True)
class Source:
    """The parts of one module, each in the order of `ast.walk`."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    imports_at_once: frozenset[ast.Import | ast.ImportFrom]
    """Those of `imports` that are made when the module is loaded."""
    asserts: tuple[int, ...]
    """Lines of the assert statements."""
    constants: tuple[ast.Assign | ast.AnnAssign, ...]
    """Assignments of a literal or of arithmetic."""
    constants_at_top: tuple[ast.Assign | ast.AnnAssign, ...]
    """Those of `constants` that stand in no class and no function."""
    compares: tuple[ast.Compare, ...]
    """Comparisons with a literal or with arithmetic."""
    functions: tuple[tuple[str, int], ...]
    """Name and lines, without its docstring, of each function and method."""
    definitions: frozenset[str]
    """Names of the classes and functions that stand in no class and no function."""


_LEAVES: Final = frozenset(
    [
        *(ast.Name, ast.Constant, ast.alias),
        *(
            kind
            for group in (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
            for kind in group.__subclasses__()
        ),
    ]
)


def walked(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree in the order of `ast.walk`, without names, literals and operators, which are most of them."""
    nodes = [tree]
    for node in nodes:
        for field in node._fields:
            value = getattr(node, field, None)
            if type(value) is list:
                nodes += [part for part in value if isinstance(part, ast.AST) and type(part) not in _LEAVES]
            elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
                nodes.append(value)
    return nodes


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.Constant, ast.BinOp))


def _lines(function: Function) -> int:
    first = function.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if text else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No garbage is collected meanwhile: a tree is many objects and no cycle, which collections visit in vain."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@functools.cache
@no_collection()
def source(text: str) -> Source:
    """The parts of a module, given as text.

    >>> found = source("import os\\ndef f(x):\\n    import ast\\n    return 1 < x")
    >>> [ast.unparse(node) for node in found.imports], [ast.unparse(node) for node in found.imports_at_once]
    (['import os', 'import ast'], ['import os'])
    >>> found.functions, [ast.unparse(node) for node in found.compares]
    ((('f', 3),), ['1 < x'])
    """
    tree = ast.parse(text)
    nodes = walked(tree)
    imports = tuple(node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
    sides = [(node, (node.left, *node.comparators)) for node in nodes if isinstance(node, ast.Compare)]
    return Source(
        imports=imports,
        imports_at_once=frozenset(imports) & frozenset(tree.body),
        asserts=tuple(node.lineno for node in nodes if isinstance(node, ast.Assert)),
        constants=tuple(node for node in nodes if _is_constant(node)),  # type: ignore[misc]
        constants_at_top=tuple(node for node in tree.body if _is_constant(node)),  # type: ignore[misc]
        compares=tuple(
            node for node, both in sides if any(isinstance(side, (ast.Constant, ast.BinOp)) for side in both)
        ),
        functions=tuple((node.name, _lines(node)) for node in nodes if isinstance(node, _FUNCTIONS)),
        definitions=frozenset(node.name for node in tree.body if isinstance(node, (ast.ClassDef, *_FUNCTIONS))),
    )
