"""Functions that split and rebuild trees of tuples with leaves of any type.

A tree is a leaf or a tuple of trees. Its profile is its nesting without the values of the leaves: `((2,4),3)` and
`((a,b),c)` have the profile `((*,*),*)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, expect_integer
from cute_py.errors import CoordinateError, InvalidValueError, StaticAssertError, given, integer_text
from cute_py.layout.arguments import Coordinate, Tiler, Tree, Underscore
from cute_py.layout.leaf import (
    KNOWN,
    KNOWN_KINDS,
    MAX_DEPTH,
    as_leaf,
    is_symbol_kind,
    is_symbolic,
    is_taken,
)


def _refuse_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")


def check_depth(tree: object) -> None:
    """Refuse a tree that is nested deeper than any real layout, before a recursion reaches it.

    Raises:
        InvalidValueError: the tree has more than `MAX_DEPTH` levels.
    """
    if type(tree) is not tuple or tuple not in map(type, tree):
        return
    level: list[object] = [tree]
    for depth in range(MAX_DEPTH + 2):
        _refuse_depth(depth)
        level = [x for t in level if type(t) is tuple for x in t if type(x) is tuple]
        if not level:
            return


def as_tree(tree: Tree | Coordinate | Tiler, depth: int = 0) -> Tree:
    """Convert nested tuples to a tree of plain tuples, and check that each leaf is of an accepted type.

    Raises:
        InvalidTypeError: a leaf is not an integer, a stride, a layout, a tensor or `_`.
        InvalidValueError: the tuples have more than `MAX_DEPTH` levels.

    >>> as_tree((4, [2, 3]))
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: expected an integer, got list [2, 3]
      hint : shapes and strides are tuples
    """
    if isinstance(tree, tuple):
        _refuse_depth(depth)
        return tuple([as_tree(x, depth + 1) for x in tree])
    kind = type(tree)
    if kind not in KNOWN and not (is_underscore(tree) or hasattr(kind, "_sliced") or hasattr(kind, "domain")):
        as_leaf(tree)
    return tree  # type: ignore[return-value]


def leaves(tree: Tree) -> list[Any]:
    """Return all leaves, from left to right.

    >>> leaves(((1, 2), 3))
    [1, 2, 3]
    """
    if type(tree) is not tuple:
        return [tree]
    if tuple not in map(type, tree):
        return list(tree)
    out = []
    for x in tree:
        if type(x) is tuple:
            out += leaves(x)
        else:
            out.append(x)
    return out


def modes(tree: Tree) -> tuple[Any, ...]:
    """Return the modes of a tree as a tuple. A leaf is its own only mode."""
    return tree if type(tree) is tuple else (tree,)


def unwrap(items: Sequence[Tree]) -> Tree:
    """Return the item of a sequence of one item; otherwise the items as a tuple."""
    return items[0] if len(items) == 1 else tuple(items)


def rank_of(tree: Tree) -> int:
    return len(tree) if type(tree) is tuple else 1


def depth_of(tree: Tree) -> int:
    return 1 + max((depth_of(x) for x in tree), default=0) if type(tree) is tuple else 0


def map_leaves(f: Callable[..., Tree], tree: Tree, *others: Tree) -> Tree:
    """Apply `f` to every leaf of `tree`, together with the items of `others` at the same position."""
    if type(tree) is tuple:
        return tuple([map_leaves(f, *group) for group in zip(tree, *others, strict=True)])
    return f(tree, *others)


def congruent_trees(a: Tree, b: Tree) -> bool:
    """Return whether two trees have the same profile."""
    if type(a) is not tuple:
        return type(b) is not tuple
    if type(b) is not tuple or len(a) != len(b):
        return False
    for i, x in enumerate(a):
        if type(x) is tuple:
            if not congruent_trees(x, b[i]):
                return False
        elif type(b[i]) is tuple:
            return False
    return True


def check_mode(mode: SupportsIndex) -> None:
    """Refuse a value that is not the index of a mode."""
    if type(mode) is not int or not MIN_INTEGER <= mode <= MAX_INTEGER:
        expect_integer(mode, "a mode")


def at(tree: Tree, path: Sequence[int]) -> Tree:
    """Return the subtree at a path of indices, outermost first. A leaf is its own mode 0, as in CuTe.

    >>> at((4, (5, 6)), (1, 0))
    5
    """
    for i in path:
        check_mode(i)
        if type(tree) is tuple:
            if not -len(tree) <= i < len(tree):
                raise CoordinateError(f"mode {integer_text(i)} does not exist", {"rank": len(tree)})
            tree = tree[i]
        elif i not in (0, -1):
            raise CoordinateError(
                f"mode {integer_text(i)} does not exist, because an integer has only mode 0", {"value": tree}
            )
    return tree


def unflatten_leaves(items: Sequence[Tree], profile: Tree) -> Tree:
    """Arrange the leaves `items` in `profile`, which must have the same number of leaves."""
    rest = list(items)

    def fill(p: Tree) -> Tree:
        if type(p) is tuple:
            return tuple([fill(x) for x in p])
        if not rest:
            raise CoordinateError(
                "the profile has more leaves than the tuple or layout", {"leaves": tuple(items), "profile": profile}
            )
        return rest.pop(0)

    result = fill(profile)
    if rest:
        raise CoordinateError(
            "the profile has fewer leaves than the tuple or layout", {"leaves": tuple(items), "profile": profile}
        )
    return result


def is_underscore(x: object) -> bool:
    return x is None or isinstance(x, Underscore)


def without_underscores(tree: Tiler) -> Tiler:
    """Return a tree with None for each `_`, at any depth.

    >>> from cute_py.layout import _
    >>> without_underscores((_, (8, _)))
    (None, (8, None))
    """
    check_depth(tree)
    return map_leaves(lambda leaf: None if is_underscore(leaf) else leaf, tree)  # type: ignore[arg-type, return-value]


def has_underscore(coord: Coordinate, depth: int = 0) -> bool:
    """Return whether the coordinate keeps any mode, that is, contains `_` or None.

    Raises:
        InvalidValueError: the coordinate has more than `MAX_DEPTH` levels of tuples.
    """
    if type(coord) is tuple:
        _refuse_depth(depth)
        for x in coord:
            if x is None or (has_underscore(x, depth + 1) if type(x) is tuple else isinstance(x, Underscore)):
                return True
        return False
    return is_underscore(coord)


def all_underscore(coord: Coordinate, depth: int = 0) -> bool:
    """Return whether the coordinate keeps every mode.

    Raises:
        InvalidValueError: the coordinate has more than `MAX_DEPTH` levels of tuples.
    """
    if type(coord) is tuple:
        _refuse_depth(depth)
        return all(all_underscore(x, depth + 1) for x in coord)
    return is_underscore(coord)


def _shown(tree: Tree | Coordinate, depth: int = 0) -> str:
    """Return the text of a coordinate or shape for an error: plain numbers, and `_` for kept modes."""
    if type(tree) is tuple:
        return "(" + ",".join([_shown(x, depth + 1) for x in tree]) + ")" if depth < MAX_DEPTH else "(...)"
    if tree is None:
        return "_"
    if type(tree) in KNOWN:
        return integer_text(tree)  # type: ignore[arg-type]
    return str(tree) if is_symbolic(tree) or hasattr(tree, "modes") or isinstance(tree, Underscore) else given(tree)


def _sliced(coord: Coordinate, tree: Tree, keep: Callable[[Coordinate], bool]) -> tuple[Tree, ...]:
    """Return the modes of `tree` whose coordinate `keep` accepts, in one flat tuple."""
    if type(coord) is tuple:
        if type(tree) is not tuple or len(coord) != len(tree):
            facts = {"coordinate": _shown(coord), "rank of coordinate": len(coord), "addresses": _shown(tree)}
            raise CoordinateError("Mismatched Ranks", facts)
        out: list[Tree] = []
        for i, c in enumerate(coord):
            if type(c) is tuple:
                out += _sliced(c, tree[i], keep)
            elif keep(c):
                out.append(tree[i])
        return tuple(out)
    return (tree,) if keep(coord) else ()


def slice_tree(coord: Coordinate, tree: Tree) -> Tree:
    """Return the modes of `tree` that `coord` keeps with `_`, in one flat tuple.

    >>> slice_tree((None, (1, None)), (4, (2, 3)))
    (4, 3)
    """
    if type(coord) is tuple:
        return _sliced(coord, tree, is_underscore)
    return tree if is_underscore(coord) else ()


def dice_tree(coord: Coordinate, tree: Tree) -> Tree:
    """Return the modes of `tree` that `coord` fixes: the opposite of `slice_tree`."""
    if type(coord) is tuple:
        return _sliced(coord, tree, lambda c: not is_underscore(c))
    return () if is_underscore(coord) else tree


def wholes(rank: int) -> Coordinate:
    """Return a coordinate that keeps `rank` modes: None for one mode, because (None,) would unpack a nested mode."""
    return None if rank == 1 else (None,) * rank


def zip_pairs(a: Tree, b: Tree) -> Tree:
    """Pair the modes of two trees: mode i of the result is (a's mode i, b's mode i). A leaf a has one mode."""
    if type(a) is not tuple:
        return ((a, b),)
    if type(b) is not tuple or len(a) != len(b):
        raise StaticAssertError("Mismatched Ranks", {"first": _shown(a), "second": _shown(b)})
    return tuple(zip(a, b, strict=True))


def profile_of(tree: Tiler) -> Tree:
    """Return the profile of a value: tuples stay tuples, and any other object becomes the leaf 0."""
    return tuple([profile_of(x) for x in tree]) if type(tree) is tuple else 0


def zip2_by(tree: Tree, guide: Tiler) -> tuple[Tree, Tree]:
    """Collect the first items, and the second items, of the pairs at the leaves of `guide`. Modes beyond the guide are
    added to the second items."""
    if type(guide) is not tuple:
        if type(tree) is not tuple or len(tree) != 2:
            raise StaticAssertError("Mismatched ranks", {"expected": "a pair (tile, rest)", "got": _shown(tree)})
        return tree
    if type(tree) is not tuple or len(tree) < len(guide):
        raise StaticAssertError("Mismatched ranks", {"modes": _shown(tree), "tiler": _shown(profile_of(guide))})
    first, second = [], []
    for i, g in enumerate(guide):
        a, b = zip2_by(tree[i], g)
        first.append(a)
        second.append(b)
    return tuple(first), (*second, *tree[len(guide) :])


def fits(shape: Any, stride: Any, least: int = 0, depth: int = 0) -> bool:
    """Return whether two trees can be the shape and stride of a layout: they have one profile, no size is below
    `least`, and all numbers are in range. Also return False if only a full check can decide, as for strides that are
    not numbers.
    """
    if type(shape) is not tuple:
        shape, stride = (shape,), (stride,)
    elif type(stride) is not tuple or len(shape) != len(stride):
        return False
    for i, s in enumerate(shape):
        d = stride[i]
        if type(s) in KNOWN_KINDS and type(d) in KNOWN_KINDS:
            if (s | d) >> 127 and not least <= s <= MAX_INTEGER >= d >= MIN_INTEGER:  # 0 well within the bounds
                return False
        elif type(s) is tuple or type(d) is tuple:
            if type(s) is not tuple or depth >= MAX_DEPTH or not fits(s, d, least, depth + 1):
                return False
        elif type(s) is type(d) and is_symbol_kind(type(s)):  # type: ignore[arg-type]
            if s.is_integer is False or s.is_negative or d.is_integer is False:
                return False
        elif not (is_taken(s) and is_taken(d)):
            return False
    return True
