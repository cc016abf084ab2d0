"""Evaluate the recorded expressions of layout algebra: `L((4,8),(8,1))`, `E([0,1])`, `S(2,0)`, `SW(3,4,3)`, `D(4)`.

Every integer literal is a static one, except inside `D(...)`.
"""

from __future__ import annotations

import ast
from typing import Any

import cute_py as cute


class _Static(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id in ("D", "E", "S", "SW"):
            return node
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, int):
            return ast.Call(ast.Name("Int", ast.Load()), [node], [])
        return node


def _layout(shape: Any, stride: Any = None) -> Any:
    if isinstance(stride, str):
        stride = {"LayoutRight{}": cute.LayoutRight, "LayoutLeft{}": cute.LayoutLeft}[stride]
    return cute.Layout(shape, stride)


def _path(modes: Any) -> tuple[int, ...]:
    return tuple(modes) if isinstance(modes, list) else (modes,)


NAMES: dict[str, Any] = {
    **{name: getattr(cute, name) for name in cute.__all__},
    "L": _layout,
    "E": lambda modes: cute.E(*_path(modes)),
    "S": lambda value, modes: cute.Int(value) * cute.E(*_path(modes)),
    "SW": cute.Swizzle,
    "D": lambda n: n,
    "group": cute.group_modes,
}


def evaluate(expression: str) -> Any:
    tree = ast.fix_missing_locations(_Static().visit(ast.parse(expression, mode="eval")))
    return eval(compile(tree, expression, "eval"), NAMES)


def shown(value: Any) -> str:
    """The text that C++ prints for a result."""
    if isinstance(value, tuple):
        return "(" + ",".join(shown(v) for v in value) + ")"
    return str(value)
