"""The codomain of a layout: what its offsets look like.

Integer strides give integer offsets: profile `_0`. Basis strides give coordinates: (_1@0,(_1@0@1,_1@1@1)) gives
offsets of the profile (_0,(_0,_0)).

Layouts with basis strides, one codomain axis at a time.

A stride `v@i` moves along axis i by v. Inverses and complements of such a layout fall apart into one ordinary integer
problem per axis: keep the strides of that axis, and put 0 for the others. CuTe C++ does not compile these operations;
the rule is the one of arXiv 2603.02298 (per-codomain-axis inverse and complement).

A basis element is any stride with `modes` (its path) and `value`; its method `at(path, value)` makes another one.
"""

from __future__ import annotations

from typing import Any, Final

from cute_py.errors import LayoutError
from cute_py.layout.int_tuple import product_of
from cute_py.layout.layout import domain_of
from cute_py.layout.leaf import (
    Dynamic,
    Int,
    IntTuple,
    LayoutLike,
    Leaf,
    Tree,
    internal,
    internal_leaf,
    public,
    times,
    tree_text,
)
from cute_py.layout.trees import at, leaves, map_leaves, unflatten_leaves


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

    def value(d: Leaf) -> Tree:
        return internal_leaf(getattr(d, "value")) if tuple(getattr(d, "modes", ())) == path else 0

    return map_leaves(value, stride)


def on_axis(stride: Tree, path: tuple[int, ...], like: Tree) -> Tree:
    """Integer strides -> basis strides along the axis at `path`, of the module that the strides `like` are of."""
    sample = next(d for d in leaves(like) if getattr(d, "modes", None))

    def basis(d: Leaf) -> Tree:
        return 0 if type(d) is int and d == 0 else internal(sample.at(path, public(d)))

    return map_leaves(basis, stride)


MOST_MODES: Final = 4096
"""Far more than a tuple of C++ has; a coordinate is written out in full, so a mode's number must stay a small one."""


_INTEGERS: Final = (int, Dynamic)


def coprofile_of(stride: Tree) -> Tree:
    """Internal strides -> tree of zeros: the profile that the offsets have."""
    paths = [d.modes for d in leaves(stride) if type(d) not in _INTEGERS and getattr(d, "modes", None)]
    if not paths:
        return 0
    root: dict[int, Any] = {}
    for path in paths:
        node = root
        for i in path:
            node = node.setdefault(i, {})
    tree = _zeros(root)
    for path in paths:
        if type(at(tree, path)) is tuple:
            raise LayoutError("strides of incompatible hierarchy", {"strides": tree_text(stride)})
    return tree


def _zeros(node: dict[int, Any]) -> Tree:
    if not node:
        return 0
    if max(node) >= MOST_MODES:
        raise LayoutError(f"strides of mode {max(node)}: a coordinate has at most {MOST_MODES} modes")
    return tuple([_zeros(node.get(i, {})) for i in range(max(node) + 1)])


def coprofile(layout: LayoutLike) -> IntTuple:
    """The profile of the layout's offsets, static zeros.

    >>> from cute_py.layout.layout import Layout
    >>> print(coprofile(Layout((4, 8))))
    _0
    """
    return public(coprofile_of(domain_of(layout)._stride))


def coshape_of(shape: Tree, stride: Tree) -> Tree:
    """Internal: 1 + the largest offset in each codomain mode, with the absolute values of the strides."""
    profile = coprofile_of(stride)
    if profile == 0:
        return _extent(shape, stride)
    if any(not getattr(d, "modes", None) and d != 0 for d in leaves(stride)):
        raise LayoutError("an integer stride beside basis strides", {"strides": tree_text(stride)})
    return unflatten_leaves([_extent(shape, along_axis(stride, path)) for path in axis_paths(profile)], profile)


def _extent(shape: Tree, stride: Tree) -> Leaf:
    total: Leaf = 1
    for s, d in zip(leaves(shape), leaves(stride), strict=True):
        if type(d) not in _INTEGERS:
            facts = {"shape": tree_text(shape), "stride": tree_text(stride)}
            raise LayoutError(f"no cosize: stride {d} has no order", facts)
        total = total + times(s + -1, abs(d))
    return total


def coshape(layout: LayoutLike, *mode: int) -> IntTuple:
    """The smallest shape that holds every offset, of the layout or of one of its modes: one size per codomain mode.

    >>> from cute_py.layout.layout import Layout
    >>> print(coshape(Layout((4, 8), (8, 1))))
    32
    """
    inner = domain_of(layout)
    return public(coshape_of(at(inner._shape, mode), at(inner._stride, mode)))


def cosize(layout: LayoutLike, *mode: int) -> Int | int:
    """The product of the coshape: for integer strides, 1 + the largest offset.

    Negative strides count with their absolute values, as in C++. A layout with a size of 0 has cosize 0 where the
    stride of that mode is 1.

    >>> from cute_py.layout.layout import Layout
    >>> from cute_py.layout.leaf import Int
    >>> print(cosize(Layout((Int(4), Int(8)), (Int(8), Int(1)))))
    _32
    """
    return public(product_of(internal(coshape(layout, *mode))))
