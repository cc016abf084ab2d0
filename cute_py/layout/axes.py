"""Layouts with basis strides, one codomain axis at a time.

A stride `v@i` moves along axis i by v. Inverses and complements of such a layout fall apart into one ordinary integer
problem per axis: keep the strides of that axis, and put 0 for the others. CuTe C++ does not compile these operations;
the rule is the one of arXiv 2603.02298 (per-codomain-axis inverse and complement).

A basis element is any stride with `modes` (its path) and `value`; its method `at(path, value)` makes another one.
"""

from __future__ import annotations

from typing import Any

from cute_py.layout.leaf import Tree, internal, internal_leaf, public
from cute_py.layout.trees import leaves, map_leaves


def axis_paths(profile: Tree) -> list[tuple[int, ...]]:
    """The path of every leaf of a codomain profile, in order.

    >>> axis_paths((0, (0, 0)))
    [(0,), (1, 0), (1, 1)]
    """

    def walk(tree: Tree, path: tuple[int, ...]) -> list[tuple[int, ...]]:
        if type(tree) is not tuple:
            return [path]
        return [p for i, t in enumerate(tree) for p in walk(t, (*path, i))]

    return walk(profile, ())


def along_axis(stride: Tree, path: tuple[int, ...]) -> Tree:
    """Basis strides -> integer strides: the movement along one axis, 0 where a mode moves along another."""

    def value(d: Any) -> Any:
        return internal_leaf(d.value) if tuple(getattr(d, "modes", ())) == path else 0

    return map_leaves(value, stride)


def on_axis(stride: Tree, path: tuple[int, ...], like: Tree) -> Tree:
    """Integer strides -> basis strides along the axis at `path`, of the module that the strides `like` are of."""
    sample = next(d for d in leaves(like) if getattr(d, "modes", None))

    def basis(d: Any) -> Any:
        return 0 if type(d) is int and d == 0 else internal(sample.at(path, public(d)))

    return map_leaves(basis, stride)
