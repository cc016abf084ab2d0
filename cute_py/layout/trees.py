"""Trees of tuples with any leaves: functions that split and rebuild them.

A tree is a leaf or a tuple of trees. Its profile is its nesting without the values of the leaves: `((2,4),3)` and
`((a,b),c)` have the profile `((*,*),*)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, expect_integer
from cute_py.errors import CoordinateError, InvalidValueError, StaticAssertError, integer_text
from cute_py.layout.arguments import Coordinate, Tiler, Tree, Underscore
from cute_py.layout.leaf import (
    KNOWN,
    MAX_DEPTH,
    Int,
    as_leaf,
    is_symbol_kind,
    is_taken,
)


def check_depth(tree: object) -> None:
    """Refuse a tree that is nested deeper than any real layout, before a recursion reaches it.

    Raises:
        InvalidValueError: the tree has more than `MAX_DEPTH` levels.
    """
    if type(tree) is not tuple or tuple not in map(type, tree):
        return
    level: list[object] = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [x for t in level if type(t) is tuple for x in t if type(x) is tuple]
        if not level:
            return
    raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")


def as_tree(tree: Tree | Coordinate | Tiler, depth: int = 0) -> Tree:
    """Convert an argument of a function of modes to a tree of plain tuples; leaves stay unchanged.

    Raises:
        InvalidTypeError: a leaf is not an integer, a stride, a layout, a tensor or `_`.
        InvalidValueError: more than `MAX_DEPTH` levels.

    >>> as_tree((4, [2, 3]))
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: expected an integer, got list [2, 3]
      hint : shapes and strides are tuples
    """
    if isinstance(tree, tuple):
        if depth > MAX_DEPTH:
            raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")
        return tuple([as_tree(x, depth + 1) for x in tree])
    kind = type(tree)
    if kind not in KNOWN and not (is_underscore(tree) or hasattr(kind, "_sliced") or hasattr(kind, "domain")):
        as_leaf(tree)
    return tree  # type: ignore[return-value]


def leaves(tree: Tree) -> list[Any]:
    """All leaves, left to right.

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
    """The tree as a tuple: a leaf is its own only mode."""
    return tree if type(tree) is tuple else (tree,)


def unwrap(items: Sequence[Tree]) -> Tree:
    """The only element of a sequence of one, or a tuple of all elements."""
    return items[0] if len(items) == 1 else tuple(items)


def rank_of(tree: Tree) -> int:
    return len(tree) if type(tree) is tuple else 1


def depth_of(tree: Tree) -> int:
    return 1 + max((depth_of(x) for x in tree), default=0) if type(tree) is tuple else 0


def map_leaves(f: Callable[..., Tree], tree: Tree, *others: Tree) -> Tree:
    """Apply `f` to every leaf of `tree` together with the items of `others` at the same places."""
    if type(tree) is tuple:
        return tuple([map_leaves(f, *group) for group in zip(tree, *others, strict=True)])
    return f(tree, *others)


def congruent_trees(a: Tree, b: Tree) -> bool:
    """Same profile?"""
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
    """The subtree at a path of indices, outermost first; a leaf is its own mode 0, as in CuTe.

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


def has_underscore(coord: Coordinate, depth: int = 0) -> bool:
    """Does the coordinate keep any mode?

    Raises:
        InvalidValueError: more than `MAX_DEPTH` levels of tuples.
    """
    if type(coord) is tuple:
        if depth > MAX_DEPTH:
            raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")
        for x in coord:
            if x is None or (has_underscore(x, depth + 1) if type(x) is tuple else isinstance(x, Underscore)):
                return True
        return False
    return is_underscore(coord)


def all_underscore(coord: Coordinate) -> bool:
    """Does the coordinate keep every mode? `has_underscore` must have checked it before."""
    if type(coord) is tuple:
        return all(all_underscore(x) for x in coord)
    return is_underscore(coord)


def _shown(tree: Tree | Coordinate, depth: int = 0) -> str:
    """A coordinate or shape in an error: plain numbers, `_` for kept modes."""
    if type(tree) is tuple:
        return "(" + ",".join([_shown(x, depth + 1) for x in tree]) + ")" if depth < MAX_DEPTH else "(...)"
    if tree is None:
        return "_"
    return integer_text(tree) if type(tree) in KNOWN else str(tree)  # type: ignore[arg-type]


def _sliced(coord: Coordinate, tree: Tree, keep: Callable[[Coordinate], bool]) -> tuple[Tree, ...]:
    """The kept modes as a tuple with one level for each kept `_` (CuTe's lift)."""
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
    """The modes of `tree` that `coord` keeps with `_`, in one flat tuple of kept modes.

    >>> slice_tree((None, (1, None)), (4, (2, 3)))
    (4, 3)
    """
    if type(coord) is tuple:
        return _sliced(coord, tree, is_underscore)
    return tree if is_underscore(coord) else ()


def dice_tree(coord: Coordinate, tree: Tree) -> Tree:
    """The modes of `tree` that `coord` fixes: the opposite of `slice_tree`."""
    if type(coord) is tuple:
        return _sliced(coord, tree, lambda c: not is_underscore(c))
    return () if is_underscore(coord) else tree


def wholes(rank: int) -> Coordinate:
    """A coordinate that keeps `rank` modes; a single mode stays as it is and is not unpacked."""
    return None if rank == 1 else (None,) * rank


def zip_pairs(a: Tree, b: Tree) -> Tree:
    """Mode i of the result is (a's mode i, b's mode i); an integer a gives one such mode."""
    if type(a) is not tuple:
        return ((a, b),)
    if type(b) is not tuple or len(a) != len(b):
        raise StaticAssertError("Mismatched Ranks", {"first": _shown(a), "second": _shown(b)})
    return tuple(zip(a, b, strict=True))


def profile_of(tree: Tiler) -> Tree:
    """The profile of a value: tuples stay tuples, and everything else is a leaf."""
    return tuple([profile_of(x) for x in tree]) if type(tree) is tuple else 0


def zip2_by(tree: Tree, guide: Tiler) -> tuple[Tree, Tree]:
    """Gather the first and the second halves of the pairs at the leaves of `guide`; modes beyond the guide go to the
    second half."""
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


def fits(shape: Any, stride: Any, depth: int = 0) -> bool:
    """Can two trees be the shape and stride of a layout: one profile, no negative size, all numbers in range? The
    answer is also False if only a full check can tell, as for strides of another module.
    """
    if type(shape) is not tuple:
        shape, stride = (shape,), (stride,)
    elif type(stride) is not tuple or len(shape) != len(stride) or depth > MAX_DEPTH:
        return False
    for s, d in zip(shape, stride, strict=True):
        kind = type(s)
        other = type(d)
        if (kind is int or kind is Int) and (other is int or other is Int):
            if (s | d) >> 127 and not 0 <= s <= MAX_INTEGER >= d >= MIN_INTEGER:  # 0 if both are far within the range
                return False
        elif kind is tuple or other is tuple:
            if kind is not tuple or not fits(s, d, depth + 1):
                return False
        elif kind is other and is_symbol_kind(kind):  # type: ignore[arg-type]
            if s.is_integer is False or d.is_integer is False:
                return False
        elif not (is_taken(s) and is_taken(d)):
            return False
    return True
