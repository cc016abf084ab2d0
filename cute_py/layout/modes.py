"""Operations on the modes of a layout or tuple: group, take, select, append, replace, flatten.

They change the nesting, but no size or stride. All accept layouts, composed layouts, tensors and bare tuples. For an
arithmetic tuple, they return a plain tuple, as in C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cute_py.argument_checks import is_integer
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.arguments import IntTuple, Shape, Tree
from cute_py.layout.layout import Layout, apply_to_inner, assumed, make, of_shapes, regrouped
from cute_py.layout.leaf import STATIC_ONE, STATIC_ZERO
from cute_py.layout.trees import as_tree, check_depth, check_mode, leaves, modes, unflatten_leaves

MAX_RANK = 1 << 16
"""Largest accepted number of modes: far above any real layout, and few enough to fit in memory."""


def _bare(thing: Any) -> Any:
    """Convert an arithmetic tuple to the plain tuple of its modes; return anything else unchanged."""
    return thing.as_tuple() if hasattr(type(thing), "as_tuple") else thing


def _on_trees(name: str, f: Callable[[Tree], Tree], thing: Layout | Shape) -> Layout | IntTuple:
    """Apply f to the shape and stride of a layout, or to a bare tuple. Errors show the public function's `name`."""
    thing = _bare(thing)
    check_depth(thing)
    if type(thing) is Layout:
        return regrouped(thing, f)
    if isinstance(thing, (tuple, int)):
        return f(as_tree(thing))  # type: ignore[return-value]

    def operation(layout: Layout) -> Layout | IntTuple:
        return _on_trees(name, f, layout)

    operation.__name__ = name
    return apply_to_inner(operation, thing)


@of_shapes
def group_modes(thing: Layout | Shape, begin: int, end: int = -1) -> Layout | IntTuple:
    """Group the modes [begin, end) into one mode. As in C++, end = -1 means all modes from `begin` on.

    >>> print(group_modes(Layout((Int(2), Int(3), Int(4))), 0, 2))
    ((_2,_3),_4):((_1,_2),_6)
    """
    return _on_trees("group_modes", lambda tree: _grouped(modes(tree), begin, end), thing)


def _grouped(parts: tuple[Tree, ...], begin: int, end: int) -> tuple[Tree, ...]:
    check_mode(begin)
    check_mode(end)
    last = end + len(parts) + 1 if end < 0 else end
    if not 0 <= begin <= last <= len(parts):
        raise CoordinateError(f"the group [{begin},{last}) is outside the {len(parts)} modes")
    return parts if begin == last else (*parts[:begin], parts[begin:last], *parts[last:])


group = group_modes


@of_shapes
def flatten(thing: Layout | Shape) -> Layout | IntTuple:
    """Flatten the nested modes to depth 1. An integer stays an integer.

    >>> flatten(((1, 2), 3))
    (1, 2, 3)
    """
    return _on_trees("flatten", lambda tree: tuple(leaves(tree)) if type(tree) is tuple else tree, thing)


@of_shapes
def unflatten(thing: Layout | Shape, profile: Shape) -> Layout | IntTuple:
    """Arrange a flat layout or tuple in the profile of `profile`.

    >>> unflatten((1, 2, 3), ((0, 0), 0))
    ((1, 2), 3)
    """
    arranged = as_tree(profile)
    return _on_trees("unflatten", lambda tree: unflatten_leaves(modes(tree), arranged), thing)


@of_shapes
def take(thing: Layout | Shape, begin: int, end: int) -> Layout | IntTuple:
    """Return the modes [begin, end). For a bare tuple, the result may be empty, and `end` may be -1.

    >>> print(take(Layout((Int(2), Int(3), Int(4))), 1, 3))
    (_3,_4):(_2,_6)
    """

    check_mode(begin)
    check_mode(end)
    thing = _bare(thing)
    bare = isinstance(thing, (tuple, int))

    def pick(tree: Tree) -> Tree:
        stop = len(modes(tree)) if bare and end == -1 else end
        if begin > stop or (begin == stop and not bare):
            raise StaticAssertError("take: empty range error", {"range": f"[{begin},{end})"})
        if begin < 0 or stop > len(modes(tree)):
            raise StaticAssertError(
                "take: range out of bounds", {"range": f"[{begin},{end})", "rank": len(modes(tree))}
            )
        return modes(tree)[begin:stop]

    return _on_trees("take", pick, thing)


@of_shapes
def select(thing: Layout | Shape, *indices: int | Sequence[int]) -> Layout | IntTuple:
    """Return the modes at these indices, in this order. The indices may also be passed as one list or tuple.

    >>> print(select(Layout((Int(2), Int(3), Int(4))), 2, 0))
    (_4,_2):(_6,_1)
    """
    wanted: Sequence[Any] = indices
    if len(indices) == 1 and isinstance(indices[0], (list, tuple)):
        wanted = indices[0]

    def pick(tree: Tree) -> Tree:
        parts = modes(tree)
        for i in wanted:
            if not (isinstance(i, int) or is_integer(i)) or not -len(parts) <= i < len(parts):
                raise CoordinateError(f"mode {given(i)} does not exist", {"rank": len(parts)})
        return tuple([parts[i] for i in wanted])

    return _on_trees("select", pick, thing)


def _padded(tree: Tree, x: Tree, up_to_rank: int | None, front: bool) -> Tree:
    parts = modes(tree)
    if up_to_rank is not None:
        check_mode(up_to_rank)
        if up_to_rank > MAX_RANK:
            raise InvalidValueError(f"up_to_rank = {up_to_rank}; must be at most {MAX_RANK}")
    count = 1 if up_to_rank is None else up_to_rank - len(parts)
    if count < 0:
        raise StaticAssertError(
            f"the rank is {len(parts)}, already more than up_to_rank = {up_to_rank}", {"modes": tree}
        )
    if count == 0:
        return tree
    return (x,) * count + parts if front else parts + (x,) * count


def _extended(
    operation: Callable[..., Layout | IntTuple],
    thing: Layout | Shape,
    x: Layout | Shape | None,
    up_to_rank: int | None,
) -> Layout | IntTuple:
    """Implement `append` and `prepend`."""
    front = operation is prepend
    thing, x = _bare(thing), _bare(x)
    check_depth(thing)
    check_depth(x)
    if type(thing) is Layout:
        extra = make(STATIC_ONE, STATIC_ZERO) if x is None else x
        if type(extra) is not Layout:
            raise InvalidTypeError(f"append and prepend can add only a layout to a layout, got {given(x)}")
        return make(
            _padded(thing.shape, extra.shape, up_to_rank, front),
            _padded(thing.stride, extra.stride, up_to_rank, front),
            assumed((thing, extra)),
        )
    if isinstance(thing, (tuple, int)):
        return _padded(as_tree(thing), as_tree(x), up_to_rank, front)  # type: ignore[return-value]
    return apply_to_inner(operation, thing, x, up_to_rank)


@of_shapes
def append(thing: Layout | Shape, x: Layout | Shape | None = None, up_to_rank: int | None = None) -> Layout | IntTuple:
    """Add a mode at the end (default 1:0), repeated until the rank is `up_to_rank` if you pass one.

    >>> print(append(Layout(Int(4)), Layout(Int(2), Int(9))))
    (_4,_2):(_1,_9)
    """
    return _extended(append, thing, x, up_to_rank)


@of_shapes
def prepend(thing: Layout | Shape, x: Layout | Shape | None = None, up_to_rank: int | None = None) -> Layout | IntTuple:
    """Add a mode at the front (default 1:0), repeated until the rank is `up_to_rank` if you pass one.

    >>> print(prepend(Layout(Int(4)), Layout(Int(2), Int(9))))
    (_2,_4):(_9,_1)
    """
    return _extended(prepend, thing, x, up_to_rank)


@of_shapes
def replace(thing: Layout | Shape, mode: int, x: Layout | Shape) -> Layout | IntTuple:
    """Replace the mode at index `mode` by x.

    >>> print(replace(Layout((Int(4), Int(8))), 0, Layout(Int(2), Int(9))))
    (_2,_8):(_9,_4)
    """
    thing, x = _bare(thing), _bare(x)
    check_mode(mode)

    def put(tree: Tree, new: Tree) -> Tree:
        parts = list(modes(tree))
        if not -len(parts) <= mode < len(parts):
            raise CoordinateError(f"mode {mode} does not exist", {"rank": len(parts)})
        parts[mode] = new
        return tuple(parts) if type(tree) is tuple else new

    if type(thing) is Layout:
        if type(x) is not Layout:
            raise InvalidTypeError(f"replace can put only a layout into a layout, got {given(x)}")
        return make(put(thing.shape, x.shape), put(thing.stride, x.stride), assumed((thing, x)))
    if isinstance(thing, (tuple, int)):
        return put(as_tree(thing), as_tree(x))  # type: ignore[return-value]
    return apply_to_inner(replace, thing, mode, x)
