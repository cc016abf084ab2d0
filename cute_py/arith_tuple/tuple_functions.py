"""Functions of nested tuples of integers: products, comparisons, folds, and transposing of modes.

They take what shapes, strides and coordinates are made of: `Int`, int, sympy expressions, basis elements. A result is
static where all that it is made of is.

    prefix_product((2,3,4))   (1,2,6)       what each mode is a multiple of, in a column-major layout
    zip_(((a,b),(c,d)))       ((a,c),(b,d))
    elem_leq, lex_less, ...   element by element, or as words in a dictionary; colex compares the last first

Source: cute/int_tuple.hpp, cute/algorithm/tuple_algorithms.hpp, cute/layout.hpp, cute/stride.hpp; pycute/int_tuple.py,
pycute/layout.py (prefix_product, suffix_product, hier_unzip); cute/02_layout_algebra.md (shape_mod).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from cute_py.argument_checks import expect_function, expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.int_tuple import elem_less, product, rank
from cute_py.layout.layout import Layout, make_layout, make_ordered_layout
from cute_py.layout.leaf import Int, is_symbolic, never_an_integer
from cute_py.layout.trees import check_depth

IntTuple: TypeAlias = Any


def _is_tuple(t: Any) -> bool:
    return isinstance(t, tuple)


def transform_leaf(f: Callable[..., Any], t: IntTuple, *more: IntTuple) -> IntTuple:
    """f of every leaf, in the profile of t; of several tuples of one profile, of the leaves at each place.

    Raises:
        StaticAssertError: the profiles differ.

    >>> transform_leaf(lambda x: x + 1, (1, (2, 3))), transform_leaf(lambda x, y: x * y, (1, (2, 3)), (4, (5, 6)))
    ((2, (3, 4)), (4, (10, 18)))
    """
    expect_function(f, "the function of the leaves")
    for tree in (t, *more):
        _checked_leaves(tree, "transform_leaf")
    return _mapped(f, (t, *more))


def _mapped(f: Callable[..., Any], trees: tuple[IntTuple, ...]) -> IntTuple:
    if not any(map(_is_tuple, trees)):
        return f(*trees)
    if not all(_is_tuple(t) and len(t) == len(trees[0]) for t in trees):
        raise StaticAssertError("Mismatched tuple_size", {"tuples": ", ".join(map(given, trees))})
    return tuple(_mapped(f, parts) for parts in zip(*trees, strict=True))


def fold(t: IntTuple, start: Any, f: Callable[[Any, Any], Any]) -> Any:
    """f(... f(f(start, t0), t1) ..., tn) of the modes of t; of an integer f(start, t).

    >>> fold((2, 3, 4), 1, lambda a, b: a * b)
    24
    """
    expect_function(f, "the function that folds")
    check_depth(t)
    for part in t if _is_tuple(t) else (t,):
        start = f(start, part)
    return start


def _leaves(t: IntTuple) -> Iterator[Any]:
    if _is_tuple(t):
        for part in t:
            yield from _leaves(part)
    else:
        yield t


def _checked_leaves(t: IntTuple, what: str) -> list[Any]:
    check_depth(t)
    found = list(_leaves(t))
    for leaf in found:
        number = is_integer(leaf) or (is_symbolic(leaf) and not never_an_integer(leaf))
        if not (number or hasattr(type(leaf), "with_value")):
            raise InvalidTypeError(f"{what} takes integers and tuples of them, got {given(t)}")
    return found


def sum_(t: IntTuple) -> Any:
    """The sum of all leaves.

    >>> sum_((1, (2, Int(3)))), sum_((Int(1), Int(2)))
    (6, Int(3))
    """
    return sum(_checked_leaves(t, "sum_"), Int(0))


def tuple_max(t: IntTuple) -> Any:
    """The largest leaf.

    Raises:
        InvalidValueError: there is none.

    >>> tuple_max((1, (7, 3)))
    7
    """
    found = _checked_leaves(t, "tuple_max")
    if not found:
        raise InvalidValueError("tuple_max of an empty tuple")
    return max(found, key=lambda leaf: expect_integer(leaf, "a number of tuple_max"))


def gcd(*numbers: Any) -> Any:
    """The greatest common divisor of integers, or of all leaves of tuples; static where all are.

    >>> gcd(12, 18), gcd((Int(8), (Int(12), Int(20))))
    (6, Int(4))
    """
    found = _checked_leaves(tuple(numbers), "gcd")
    result = math.gcd(*(expect_integer(x, "a number of gcd") for x in found))
    return Int(result) if all(isinstance(x, Int) for x in found) else result


def product_like(t: IntTuple, guide: IntTuple) -> IntTuple:
    """The products of t's parts, in the profile of the guide.

    >>> product_like((2, (3, 4)), (0, 0)), product_like((2, (3, 4)), 0)
    ((2, 12), 24)
    """
    check_depth(t)
    check_depth(guide)
    if not _is_tuple(guide):
        return product(t)
    if not _is_tuple(t) or len(t) != len(guide):
        raise StaticAssertError("Mismatched tuple_size", {"tuple": given(t), "guide": given(guide)})
    return tuple(product_like(a, b) for a, b in zip(t, guide, strict=True))


def prefix_product(t: IntTuple, start: Any = None) -> IntTuple:
    """For every leaf the product of the leaves before it: the strides of a compact column-major layout.

    Other than a layout's own strides, which are static 0 for static extents of 1, all leaves count.

    >>> prefix_product((2, (3, 4))), prefix_product((Int(2), Int(1), Int(5)))
    ((1, (2, 6)), (Int(1), Int(2), Int(2)))
    """
    _checked_leaves(t, "prefix_product")
    return _running(t, Int(1) if start is None else start, 1)[0]


def suffix_product(t: IntTuple, start: Any = None) -> IntTuple:
    """For every leaf the product of the leaves behind it: the strides of a compact row-major layout.

    >>> suffix_product((2, (3, 4)))
    (12, (4, 1))
    """
    _checked_leaves(t, "suffix_product")
    return _running(t, Int(1) if start is None else start, -1)[0]


def _running(t: IntTuple, current: Any, step: int) -> tuple[IntTuple, Any]:
    if not _is_tuple(t):
        return (int(current) if isinstance(current, Int) and not isinstance(t, Int) else current), current * t
    parts = []
    for part in t[::step]:
        found, current = _running(part, current, step)
        parts.append(found)
    return tuple(parts[::step]), current


def compact_order(shape: IntTuple, order: IntTuple) -> IntTuple:
    """The strides of a compact layout that grow in the order of `order`: those of `make_ordered_layout`.

    >>> compact_order((Int(2), Int(3), Int(4)), (Int(2), Int(0), Int(1)))
    (Int(12), Int(1), Int(3))
    """
    return make_ordered_layout(shape, order).stride


def shape_mod(shape: IntTuple, count: Any) -> IntTuple:
    """What the first `count` elements of a shape take of each mode; the rest of the modes are 1.

    Raises:
        StaticAssertError: a mode and what is left of the count have no whole ratio.

    >>> shape_mod((3, 6, 2, 8), 9), shape_mod((6, 2), 12), shape_mod((Int(6), (Int(2), Int(4))), Int(24))
    ((3, 3, 1, 1), (6, 2), (Int(6), (Int(2), Int(2))))
    """
    _checked_leaves(shape, "shape_mod")
    left = expect_integer(count, "the elements of shape_mod", 1)

    def taken(leaf: Any) -> Any:
        nonlocal left
        extent = expect_integer(leaf, "an extent of a shape", 0)
        if extent == 0 or (left % extent and extent % left):
            raise StaticAssertError(
                "Shape Divisibility Condition", {"shape": given(shape), "elements": count, "mode": extent, "left": left}
            )
        found = min(extent, left)
        left = max(1, left // extent)
        return Int(found) if isinstance(leaf, Int) else found

    return transform_leaf(taken, shape)


def lex_less(a: IntTuple, b: IntTuple) -> bool:
    """Is a before b, compared mode by mode from the first? A tuple that has run out is before one that has not.

    >>> lex_less((1, 9), (2, 0)), lex_less((1, 2), (1, 2)), lex_less((1,), (1, 0))
    (True, False, True)
    """
    return _before(a, b, 1)


def colex_less(a: IntTuple, b: IntTuple) -> bool:
    """Is a before b, compared mode by mode from the last? So compare coordinates in the order of their indices.

    >>> colex_less((1, 9), (2, 0)), colex_less((2, 0), (1, 9))
    (False, True)
    """
    return _before(a, b, -1)


def _before(a: IntTuple, b: IntTuple, step: int) -> bool:
    check_depth(a)
    check_depth(b)
    if not _is_tuple(a) and not _is_tuple(b):
        return expect_integer(a, "an integer to compare") < expect_integer(b, "an integer to compare")
    if not (_is_tuple(a) and _is_tuple(b)):
        raise InvalidTypeError("a tuple is compared with a tuple", {"a": given(a), "b": given(b)})
    for x, y in zip(a[::step], b[::step], strict=False):
        if _before(x, y, step):
            return True
        if _before(y, x, step):
            return False
    return len(a) < len(b)


def elem_leq(a: IntTuple, b: IntTuple) -> bool:
    """As C++: is b not less than a in every element, `!elem_less(b, a)`? True where any element of b is at least a's.

    >>> elem_leq((1, 2), (1, 2)), elem_leq((3, 3), (1, 2))
    (True, False)
    """
    return not elem_less(b, a)


def elem_gtr(a: IntTuple, b: IntTuple) -> bool:
    """Is every element of b less than a's? `elem_less(b, a)`.

    >>> elem_gtr((3, 3), (1, 2)), elem_gtr((3, 2), (1, 2))
    (True, False)
    """
    return bool(elem_less(b, a))


def elem_geq(a: IntTuple, b: IntTuple) -> bool:
    """As C++: `!elem_less(a, b)`, true where any element of a is at least b's.

    >>> elem_geq((3, 0), (1, 2)), elem_geq((0, 0), (1, 2))
    (True, False)
    """
    return not elem_less(a, b)


def zip_(first: Any, *more: Any) -> Any:
    """Modes of modes transposed: `((a,b),(c,d))` becomes `((a,c),(b,d))`; several arguments are modes of one.

    Args:
        first, more: tuples, or layouts, of modes of one rank.
    Raises:
        StaticAssertError: the ranks differ.

    >>> zip_(((1, 2), (3, 4))), zip_((1, 2), (3, 4))
    (((1, 3), (2, 4)), ((1, 3), (2, 4)))
    >>> print(zip_(Layout(((2, 4), (3, 5)))))
    ((2,3),(4,5)):((_1,8),(2,24))
    """
    parts = (first, *more)
    if all(isinstance(p, Layout) for p in parts):
        shapes, strides = ([getattr(p, x) for p in parts] for x in ("shape", "stride"))
        return Layout(zip_(*shapes), zip_(*strides))
    if any(isinstance(p, Layout) for p in parts):
        raise InvalidTypeError("zip_ takes tuples or layouts, not both", {"got": given(parts)})
    check_depth(parts)
    if more:
        return zip_(parts)
    if not _is_tuple(first):
        return first
    if not first or not _is_tuple(first[0]):
        return (first,)
    if not all(_is_tuple(t) and len(t) == len(first[0]) for t in first):
        raise StaticAssertError("Mismatched Ranks", {"modes": given(first)})
    return tuple(zip(*first, strict=True))


def hier_unzip(splitter: Callable[[Any, Any], Any], layout: Any, tiler: Any) -> Any:
    """The modes that a splitter makes pairs of, gathered: ((A,B,...), (a,b,..., modes that the tiler does not name)).

    Args:
        splitter: (layout, tiler) -> layout of two modes, such as `logical_divide`.
        tiler: a tuple of tilers for the modes, None for one that is left whole.
    Raises:
        StaticAssertError: more tilers than modes, or a splitter's result that has not two modes.

    >>> from cute_py.layout.tiling import logical_divide
    >>> print(hier_unzip(logical_divide, Layout((Int(8), Int(6), Int(3))), (Int(2), Int(3))))
    ((_2,_3),(_4,_2,_3)):((_1,_8),(_2,_24,_48))
    """
    if tiler is None:
        return make_layout(Layout(Int(1), Int(0)), layout)
    if not _is_tuple(tiler):
        found = expect_function(splitter, "the splitter")(layout, tiler)
        if rank(found) != 2:
            raise StaticAssertError("the splitter makes two modes", {"layout": found})
        return found
    modes = int(rank(layout))
    if len(tiler) > modes:
        raise StaticAssertError("logical_divide: Too many modes in tiler.", {"tiler": given(tiler), "layout": layout})
    pairs = [hier_unzip(splitter, layout[i], t) for i, t in enumerate(tiler)]
    rest = [layout[i] for i in range(len(tiler), modes)]
    return make_layout(make_layout(*(p[0] for p in pairs)), make_layout(*(p[1] for p in pairs), *rest))


def tile_unzip(layout: Layout, tiler: Any) -> Layout:
    """Pairs of modes, as a logical divide or product makes them, gathered by the tiler's profile: firsts, then seconds.

    >>> from cute_py.layout.tiling import logical_divide
    >>> whole = Layout((Int(8), Int(6), Int(3)))
    >>> print(tile_unzip(logical_divide(whole, (Int(2), Int(3))), (Int(2), Int(3))))
    ((_2,_3),(_4,_2,_3)):((_1,_8),(_2,_24,_48))
    """
    if not isinstance(layout, Layout):
        raise InvalidTypeError(f"tile_unzip takes a layout, got {given(layout)}")
    found: Layout = hier_unzip(lambda part, _: part, layout, tiler)
    return found


def transform_layout(first: Any, *rest: Any) -> Layout:
    """A layout of f of every mode: `transform_layout(layout, f)`; of two, modes that only one has are appended.

    >>> print(transform_layout(Layout((2, 3)), lambda mode: Layout(mode.shape, 7)))
    (2,3):(7,7)
    """
    if not 1 <= len(rest) <= 2:
        raise InvalidTypeError("transform_layout takes one or two layouts and a function")
    f = expect_function(rest[-1], "the function of the modes")
    parts = [_modes(first)] + [_modes(t) for t in rest[:-1]]
    shared = min(map(len, parts))
    made = [f(*modes) for modes in zip(*parts, strict=False)]
    whole: Layout = make_layout(*made, *(m for p in parts for m in p[shared:]))
    return whole


def _modes(thing: Any) -> list[Any]:
    if isinstance(thing, tuple):
        return list(thing)
    if not isinstance(thing, Layout):
        raise InvalidTypeError(f"transform_layout takes layouts and tuples, got {given(thing)}")
    return [thing[i] for i in range(int(rank(thing)))]


def make_coord_iterator(shape: IntTuple, start: IntTuple = None, order: IntTuple = None) -> Iterator[IntTuple]:
    """The coordinates of a shape one after another, first mode fastest.

    Args:
        shape: extents. start: first coordinate, default zeros; each mode begins anew at it.
        order: numbers in the profile of the shape's modes: the mode with the smallest runs fastest.
    Raises:
        StaticAssertError: start or order of another profile.

    >>> list(make_coord_iterator((2, 2))), list(make_coord_iterator((2, 2), order=(1, 0)))
    ([(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 0), (0, 1), (1, 0), (1, 1)])
    """
    extents = transform_leaf(lambda e: expect_integer(e, "an extent", 0), shape)
    first = transform_leaf(lambda _: 0, shape) if start is None else start
    ranges = list(_leaves(transform_leaf(lambda e, s: range(expect_integer(s, "a coordinate"), e), extents, first)))
    ranks = list(range(len(ranges)))
    if order is not None:
        ranks = list(_leaves(transform_leaf(lambda _, o: expect_integer(o, "an order"), shape, order)))
    slowest_first = sorted(range(len(ranges)), key=lambda i: ranks[i], reverse=True)

    def generate() -> Iterator[IntTuple]:
        for values in itertools.product(*(ranges[i] for i in slowest_first)):
            placed = dict(zip(slowest_first, values, strict=True))
            numbers = iter(range(len(ranges)))
            yield transform_leaf(lambda _, numbers=numbers, placed=placed: placed[next(numbers)], extents)

    return generate()
