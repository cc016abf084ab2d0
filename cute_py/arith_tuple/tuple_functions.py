"""Functions of nested tuples of integers: products, comparisons, folds, and transposition of modes.

The leaves are the same as in shapes, strides and coordinates: `Int`, int, sympy expressions and basis elements. A
result is static if all operands are static.

    prefix_product((2,3,4))   (1,2,6)       the strides of a column-major layout
    zip_(((a,b),(c,d)))       ((a,c),(b,d))
    elem_leq, lex_less, ...   element by element, or lexicographic; colex compares the last mode first

Source: cute/int_tuple.hpp, cute/algorithm/tuple_algorithms.hpp, cute/layout.hpp, cute/stride.hpp; pycute/int_tuple.py,
pycute/layout.py (prefix_product, suffix_product, hier_unzip); cute/02_layout_algebra.md (shape_mod).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

from cute_py.argument_checks import expect, expect_function, expect_integer, is_integer, wrong_type
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.arguments import Leaf, Shape, Tiler, Tree
from cute_py.layout.int_tuple import elem_less, product, rank
from cute_py.layout.layout import Layout, apply_to_inner, make_layout, make_ordered_layout
from cute_py.layout.leaf import Int, as_leaf, is_symbolic, never_an_integer
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tiling import zipped
from cute_py.layout.trees import as_tree, check_depth, leaves, modes

Folded = TypeVar("Folded")
Called = TypeVar("Called")


def _expect_function(f: Called, what: str) -> Called:
    """Return a function unchanged. Layouts and swizzles are refused, although they can be called with a coordinate."""
    if isinstance(f, (Layout, Swizzle)):
        raise wrong_type(f"{what} must be a function", f)
    return expect_function(f, what)


def transform_leaf(f: Callable[..., Tree], t: Tree, *more: Tree) -> Tree:
    """Apply f to every leaf, and keep the profile of t. With several tuples of one profile, apply f to the leaves at
    the same position.

    Raises:
        StaticAssertError: the profiles differ.

    >>> transform_leaf(lambda x: x + 1, (1, (2, 3))), transform_leaf(lambda x, y: x * y, (1, (2, 3)), (4, (5, 6)))
    ((2, (3, 4)), (4, (10, 18)))
    """
    _expect_function(f, "the function of the leaves")
    for tree in (t, *more):
        _checked_leaves(tree, "transform_leaf")
    return _mapped(f, (t, *more))


def _mapped(f: Callable[..., Tree], trees: tuple[Tree, ...]) -> Tree:
    if not any(isinstance(t, tuple) for t in trees):
        return f(*trees)
    if len({len(t) if isinstance(t, tuple) else None for t in trees}) != 1:
        raise StaticAssertError("Mismatched tuple_size", {"tuples": ", ".join(map(given, trees))})
    return tuple(_mapped(f, parts) for parts in zip(*trees, strict=True))


def fold(t: Tree, start: Folded, f: Callable[[Folded, Tree], Folded]) -> Folded:
    """Compute f(... f(f(start, t0), t1) ..., tn) over the modes of t; for an integer, f(start, t).

    >>> fold((2, 3, 4), 1, lambda a, b: a * b)
    24
    """
    expect_function(f, "the function that folds", 2)
    for part in modes(as_tree(t)):
        start = f(start, part)
    return start


def _checked_leaves(t: Tree, what: str) -> list[Any]:
    check_depth(t)
    found = leaves(t)
    for leaf in found:
        number = is_integer(leaf) or (is_symbolic(leaf) and not never_an_integer(leaf))
        if not (number or hasattr(type(leaf), "with_value")):
            raise InvalidTypeError(f"{what} takes integers and tuples of integers, got {given(t)}")
    return found


def sum_(t: Tree) -> int:
    """Return the sum of all leaves.

    >>> sum_((1, (2, Int(3)))), sum_((Int(1), Int(2)))
    (6, Int(3))
    """
    return sum(map(as_leaf, _checked_leaves(t, "sum_")), Int(0))  # type: ignore[no-any-return]


def tuple_max(t: Tree) -> int:
    """Return the largest leaf; the result is static if all leaves are static.

    Raises:
        InvalidValueError: the tuple has no leaves.

    >>> tuple_max((1, (Int(7), 3))), tuple_max((Int(7), Int(3)))
    (7, Int(7))
    """
    found = _checked_leaves(t, "tuple_max")
    if not found:
        raise InvalidValueError("tuple_max needs at least one element, got an empty tuple")
    largest = max(found, key=lambda leaf: expect_integer(leaf, "a number of tuple_max"))
    return largest if all(isinstance(x, Int) for x in found) else int(largest)


def gcd(*numbers: Tree) -> int:
    """Return the greatest common divisor of integers, or of all leaves of tuples; static if all of them are static.

    >>> gcd(12, 18), gcd((Int(8), (Int(12), Int(20))))
    (6, Int(4))
    """
    found = _checked_leaves(numbers, "gcd")
    result = math.gcd(*(expect_integer(x, "a number of gcd") for x in found))
    return Int(result) if all(isinstance(x, Int) for x in found) else result


def product_like(t: Tree, guide: Tree) -> Tree:
    """Return, for each leaf of `guide`, the product of the subtree of t at the same position.

    >>> product_like((2, (3, 4)), (0, 0)), product_like((2, (3, 4)), 0)
    ((2, 12), 24)
    """
    check_depth(t)
    check_depth(guide)
    if not isinstance(guide, tuple):
        return product(t)
    if not isinstance(t, tuple) or len(t) != len(guide):
        raise StaticAssertError("Mismatched tuple_size", {"tuple": given(t), "guide": given(guide)})
    return tuple(product_like(a, b) for a, b in zip(t, guide, strict=True))


def prefix_product(t: Tree, start: int | None = None) -> Tree:
    """Return, for every leaf, the product of the leaves before it: the strides of a compact column-major layout.

    `Layout` differs in one case: it gives a mode with the static extent 1 the static stride 0.

    >>> prefix_product((2, (3, 4))), prefix_product((Int(2), Int(1), Int(5)))
    ((1, (2, 6)), (Int(1), Int(2), Int(2)))
    """
    _checked_leaves(t, "prefix_product")
    return _running(t, _start(start), 1)[0]


def suffix_product(t: Tree, start: int | None = None) -> Tree:
    """Return, for every leaf, the product of the leaves after it: the strides of a compact row-major layout.

    >>> suffix_product((2, (3, 4)))
    (12, (4, 1))
    """
    _checked_leaves(t, "suffix_product")
    return _running(t, _start(start), -1)[0]


def _start(start: int | None) -> Leaf:
    """Return the start value of running products: a static 1, or the user's value."""
    return Int(1) if start is None else as_leaf(start)


def _running(t: Tree, current: Leaf, step: int) -> tuple[Tree, Leaf]:
    if not isinstance(t, tuple):
        return (int(current) if isinstance(current, Int) and not isinstance(t, Int) else current), current * t
    parts = []
    for part in t[::step]:
        found, current = _running(part, current, step)
        parts.append(found)
    return tuple(parts[::step]), current


def compact_order(shape: Shape, order: Tree) -> Tree:
    """Return the strides that `make_ordered_layout` chooses: compact, and increasing in the order of `order`.

    >>> compact_order((Int(2), Int(3), Int(4)), (Int(2), Int(0), Int(1)))
    (Int(12), Int(1), Int(3))
    """
    return make_ordered_layout(shape, order).stride


def shape_mod(shape: Tree, count: int) -> Tree:
    """Return the extent that the first `count` elements of a shape cover in each mode; 1 for modes that they do not
    reach.

    Raises:
        StaticAssertError: neither the extent of a mode nor the remaining count divides the other.

    >>> shape_mod((3, 6, 2, 8), 9), shape_mod((6, 2), 12), shape_mod((Int(6), (Int(2), Int(4))), Int(24))
    ((3, 3, 1, 1), (6, 2), (Int(6), (Int(2), Int(2))))
    """
    _checked_leaves(shape, "shape_mod")
    left = expect_integer(count, "the elements of shape_mod", 1)

    def taken(leaf: Leaf) -> int:
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


def lex_less(a: Tree, b: Tree) -> Int | bool:
    """Return whether a comes before b, comparing mode by mode from the first. A prefix comes before the longer tuple.
    The result is static if the numbers that decide it are static.

    >>> lex_less((1, 9), (2, 0)), lex_less((1, 2), (1, 2)), lex_less((1,), (1, 0))
    (True, False, True)
    """
    return _verdict(*_before(a, b, 1))


def colex_less(a: Tree, b: Tree) -> Int | bool:
    """Return whether a comes before b, comparing mode by mode from the last. Coordinates in this order have ascending
    indices. The result is static if the numbers that decide it are static.

    >>> colex_less((1, 9), (2, 0)), colex_less((2, 0), (1, 9))
    (False, True)
    """
    return _verdict(*_before(a, b, -1))


def _verdict(static: bool, true: bool) -> Int | bool:
    return Int(int(true)) if static else true


def _before(a: Tree, b: Tree, step: int) -> tuple[bool, bool]:
    """Return (whether the result is known at compile time, whether a comes before b)."""
    check_depth(a)
    check_depth(b)
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        less = expect_integer(a, "an integer to compare") < expect_integer(b, "an integer to compare")
        return isinstance(a, Int) and isinstance(b, Int), less
    if not (isinstance(a, tuple) and isinstance(b, tuple)):
        raise InvalidTypeError("a tuple can be compared only with a tuple", {"a": given(a), "b": given(b)})
    known = True
    for x, y in zip(a[::step], b[::step], strict=False):
        static, less = _before(x, y, step)
        known = known and static
        if less or _before(y, x, step)[1]:
            return known, less
    return known, len(a) < len(b)


def _negated(verdict: Int | bool) -> Int | bool:
    return _verdict(isinstance(verdict, Int), not verdict)


def elem_leq(a: Shape, b: Shape) -> Int | bool:
    """Return C++'s `!elem_less(b, a)`: true if any element of b is at least the corresponding element of a. The result
    is static if all numbers are static.

    >>> elem_leq((1, 2), (1, 2)), elem_leq((3, 3), (1, 2))
    (True, False)
    """
    return _negated(elem_less(b, a))


def elem_gtr(a: Shape, b: Shape) -> Int | bool:
    """Return `elem_less(b, a)`: whether every element of b is less than the corresponding element of a.

    >>> elem_gtr((3, 3), (1, 2)), elem_gtr((3, 2), (1, 2))
    (True, False)
    """
    return elem_less(b, a)


def elem_geq(a: Shape, b: Shape) -> Int | bool:
    """Return C++'s `!elem_less(a, b)`: true if any element of a is at least the corresponding element of b.

    >>> elem_geq((3, 0), (1, 2)), elem_geq((0, 0), (1, 2))
    (True, False)
    """
    return _negated(elem_less(a, b))


@overload
def zip_(first: Layout, *more: Layout) -> Layout: ...
@overload
def zip_(first: Tree, *more: Tree) -> Tree: ...
def zip_(first: Layout | Tree, *more: Layout | Tree) -> Layout | Tree:
    """Transpose modes of modes: `((a,b),(c,d))` becomes `((a,c),(b,d))`. Several arguments are treated as the modes of
    one tuple.

    Args:
        first, more: tuples or layouts whose modes have the same rank.
    Raises:
        StaticAssertError: the ranks differ.

    >>> zip_(((1, 2), (3, 4))), zip_((1, 2), (3, 4))
    (((1, 3), (2, 4)), ((1, 3), (2, 4)))
    >>> print(zip_(Layout(((2, 4), (3, 5)))))
    ((2,3),(4,5)):((_1,8),(2,24))
    """
    if not more and hasattr(type(first), "with_domain"):
        return apply_to_inner(zip_, first)
    parts: Any = (first, *more)
    if all(isinstance(p, Layout) for p in parts):
        shapes, strides = ([getattr(p, x) for p in parts] for x in ("shape", "stride"))
        return Layout(zip_(*shapes), zip_(*strides))
    if any(isinstance(p, Layout) for p in parts):
        raise InvalidTypeError("zip_ takes either tuples or layouts, not both", {"got": given(parts)})
    rows: Any = as_tree(parts if more else first)
    if not isinstance(rows, tuple):
        return first
    if not rows or not isinstance(rows[0], tuple):
        return (rows,)
    if not all(isinstance(t, tuple) and len(t) == len(rows[0]) for t in rows):
        raise StaticAssertError("Mismatched Ranks", {"modes": given(rows)})
    return tuple(zip(*rows, strict=True))


def hier_unzip(splitter: Callable[[Layout, Tiler], Layout], layout: Layout, tiler: Tiler) -> Layout:
    """Gather the pairs of modes that a splitter makes: ((A,B,...), (a,b,..., modes beyond the tiler)).

    Args:
        splitter: (layout, tiler) -> layout of two modes, such as `logical_divide`.
        tiler: a tuple of tilers, one for each mode; None keeps a mode.
    Raises:
        StaticAssertError: there are more tilers than modes, or the splitter does not return two modes.

    >>> from cute_py.layout.tiling import logical_divide
    >>> print(hier_unzip(logical_divide, Layout((Int(8), Int(6), Int(3))), (Int(2), Int(3))))
    ((_2,_3),(_4,_2,_3)):((_1,_8),(_2,_24,_48))
    """
    check_depth(tiler)
    if tiler is None:
        return make_layout(Layout(Int(1), Int(0)), layout)
    if not isinstance(tiler, tuple):
        found = expect_function(splitter, "the splitter", 2)(layout, tiler)
        if rank(found) != 2:
            raise StaticAssertError("the splitter must return two modes", {"layout": found})
        return found
    modes = int(rank(expect(layout, Layout, "the layout of a tuple of tilers")))
    if len(tiler) > modes:
        raise StaticAssertError("logical_divide: Too many modes in tiler.", {"tiler": given(tiler), "layout": layout})
    pairs = [hier_unzip(splitter, layout[i], t) for i, t in enumerate(tiler)]
    rest = [layout[i] for i in range(len(tiler), modes)]
    return make_layout(make_layout(*(p[0] for p in pairs)), make_layout(*(p[1] for p in pairs), *rest))


def tile_unzip(layout: Layout, tiler: Tiler) -> Layout:
    """Regroup a logical divide or product, which has a pair of modes for each mode of the tiler.

    Mode 0 of the result collects the first modes of the pairs, and mode 1 the second modes.

    >>> from cute_py.layout.tiling import logical_divide
    >>> whole = Layout((Int(8), Int(6), Int(3)))
    >>> print(tile_unzip(logical_divide(whole, (Int(2), Int(3))), (Int(2), Int(3))))
    ((_2,_3),(_4,_2,_3)):((_1,_8),(_2,_24,_48))
    """
    check_depth(tiler)
    return zipped(layout, tiler) if type(layout) is Layout else apply_to_inner(tile_unzip, layout, tiler)


def transform_layout(first: Layout | Tree, *rest: Layout | Tree | Callable[..., Layout]) -> Layout:
    """Apply f to every mode of a layout: `transform_layout(layout, f)`. With two layouts, f gets the modes of both;
    modes that only one of them has are appended.

    >>> print(transform_layout(Layout((2, 3)), lambda mode: Layout(mode.shape, 7)))
    (2,3):(7,7)
    """
    if not 1 <= len(rest) <= 2:
        raise InvalidTypeError("transform_layout takes one or two layouts, then a function")
    f: Any = _expect_function(rest[-1], "the function of the modes")
    parts: list[list[Any]] = []
    for thing in (first, *rest[:-1]):
        if not isinstance(thing, (tuple, Layout)):
            raise wrong_type("transform_layout takes layouts or tuples", thing)
        parts.append(list(thing) if isinstance(thing, tuple) else [thing[i] for i in range(int(rank(thing)))])
    shared = min(map(len, parts))
    made = [f(*modes) for modes in zip(*parts, strict=False)]
    return make_layout(*made, *(m for p in parts for m in p[shared:]))


def _counted(ranges: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield each tuple of numbers from several ranges, the last range fastest. Unlike `itertools.product`, store no
    range."""
    if not all(ranges):
        return
    at = [one.start for one in ranges]
    while True:
        yield tuple(at)
        for i in reversed(range(len(ranges))):
            at[i] += 1
            if at[i] < ranges[i].stop:
                break
            at[i] = ranges[i].start
        else:
            return


def make_coord_iterator(shape: Tree, start: Tree | None = None, order: Tree | None = None) -> Iterator[Tree]:
    """Iterate over the coordinates of a shape, first mode fastest.

    Args:
        shape: the extents. start: the first coordinate, default zeros; each mode restarts from it.
        order: integers in the profile of the shape; the mode with the smallest integer runs fastest.
    Raises:
        StaticAssertError: start or order has another profile.

    >>> list(make_coord_iterator((2, 2))), list(make_coord_iterator((2, 2), order=(1, 0)))
    ([(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 0), (0, 1), (1, 0), (1, 1)])
    """
    extents = transform_leaf(lambda e: expect_integer(e, "an extent", 0, (1 << 63) - 1), shape)
    first = transform_leaf(lambda _: 0, shape) if start is None else start
    bounds = transform_leaf(lambda e, s: (expect_integer(s, "a coordinate", -(1 << 63)), e), extents, first)
    flat = leaves(bounds)
    ranges = [range(*pair) for pair in zip(flat[::2], flat[1::2], strict=True)]
    ranks = list(range(len(ranges)))
    if order is not None:
        ranks = leaves(transform_leaf(lambda _, o: expect_integer(o, "an order"), shape, order))
    slowest_first = sorted(range(len(ranges)), key=lambda i: ranks[i], reverse=True)

    def generate() -> Iterator[Tree]:
        for values in _counted([ranges[i] for i in slowest_first]):
            placed = dict(zip(slowest_first, values, strict=True))
            numbers = iter(range(len(ranges)))
            yield transform_leaf(lambda _, numbers=numbers, placed=placed: placed[next(numbers)], extents)

    return generate()
