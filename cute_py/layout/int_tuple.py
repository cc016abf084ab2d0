"""CuTe's functions of int tuples. An int tuple is an integer, or a tuple of int tuples.

    product((2, (3, 4)))  =  24        ceil_div(100, 8)  =  13        compatible(6, (2, 3))  =  _1

The public functions accept `Int`, int, numpy integers and sympy expressions; functions of a shape also accept layouts
and tensors. They return `Int` where the result is static in C++. The algebra itself uses the functions named `..._of`
and the functions for coordinates and strides, which take trees of leaves (see `leaf`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.argument_checks import MIN_INTEGER
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, StaticAssertError, given
from cute_py.layout.arguments import IntTuple, LayoutLike, Leaf, Shape, Shaped, Tree
from cute_py.layout.leaf import (
    KNOWN_KINDS,
    MAX_DEPTH,
    MAX_RESULT,
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    are_numbers,
    as_leaves,
    check_result,
    coordinate,
    is_one,
    is_symbolic,
    is_zero,
    leaf_of,
    leaf_text,
    plus,
    times,
    tree_text,
    trunc_div,
    trunc_divmod,
    trunc_mod,
    value_of,
)
from cute_py.layout.leaf import is_static as is_static_leaf
from cute_py.layout.trees import (
    at,
    check_depth,
    congruent_trees,
    depth_of,
    fits,
    leaves,
    modes,
    rank_of,
)

if TYPE_CHECKING:
    import sympy


def product_of(tree: Tree) -> Leaf:
    """Return the product of all leaves; a static 1 for the empty tuple, and a static 0 if any leaf is a static 0."""
    if type(tree) is not tuple:
        return tree
    number: Any = 1
    static = True
    for x in leaves(tree) if tuple in map(type, tree) else tree:
        if type(x) is Int:
            if x == 0:
                return STATIC_ZERO
            number = number * (x | 0)
        else:
            number = number * x
            static = False
    return leaf_of(number, static)


def ceil_div_leaf(a: Leaf, b: Leaf) -> Leaf:
    """Return (a + b - 1) / b, truncated toward zero, as C++ computes it."""
    if type(a) in KNOWN_KINDS and type(b) in KNOWN_KINDS and a > 0 < b:  # type: ignore[operator]  # the common case
        quotient: int = -(-(a | 0) // (b | 0))  # type: ignore[operator]
        return STATIC[quotient] if type(a) is type(b) is Int else quotient
    return trunc_div(plus(plus(a, b), STATIC[-1]), b)


def ceil_div_of(a: Tree, b: Tree, exact: bool = False) -> Tree:
    """Divide as CuTe's ceil_div does: two integers; two tuples mode by mode; or a tuple by an integer, which is itself
    divided by each mode before it is passed to the next. With `exact`, divide as shape_div does: the ranks must be
    equal, and one of two static integers must divide the other."""
    if type(a) is tuple:
        if type(b) is tuple:
            if len(a) < len(b) or (exact and len(a) > len(b)):
                raise StaticAssertError("Mismatched ranks", {"dividend": tree_text(a), "divisor": tree_text(b)})
            return tuple([ceil_div_of(x, y, exact) for x, y in zip_longest(a, b, fillvalue=STATIC_ONE)])
        out = []
        for x in a:  # from the left: the rest of b goes on to the next mode
            out.append(ceil_div_of(x, b, exact))
            b = ceil_div_of(b, x, exact)
        return tuple(out)
    if type(b) is tuple:
        return ceil_div_of(a, product_of(b), exact)
    if exact and type(a) is type(b) is Int and trunc_mod(a, b) != 0 and trunc_mod(b, a) != 0:
        raise StaticAssertError("Divisibility Condition", {"dividend": leaf_text(a), "divisor": leaf_text(b)})
    return ceil_div_leaf(a, b)


def compact_left(shape: Tree, current: Leaf = STATIC_ONE, order: int = 1) -> tuple[Tree, Leaf]:
    """Return compact strides that begin at `current`, and the next stride. Modes of static size 1 get stride 0.

    Args:
        order: 1 for column-major (the first mode is contiguous), -1 for row-major.
    """
    if type(shape) is not tuple:
        return (STATIC_ZERO, current) if is_one(shape) else (current, times(current, shape))
    out: list[Tree] = []
    for s in shape if order > 0 else reversed(shape):
        if type(s) is tuple:
            stride, current = compact_left(s, current, order)
            out.append(stride)
        elif type(s) is Int and s == 1:
            out.append(STATIC_ZERO)
        else:
            out.append(current)
            if type(s) is type(current) is int:
                current *= s
                if current > MAX_RESULT:
                    check_result(current)
            else:
                current = times(current, s)
    return tuple(out) if order > 0 else tuple(reversed(out)), current


def product_like(tree: Tree, guide: Tree) -> Tree:
    """Return, for each leaf of `guide`, the product of the subtree of `tree` at the same position."""
    if type(guide) is tuple:
        if type(tree) is not tuple or len(tree) != len(guide):
            raise StaticAssertError("Mismatched Ranks", {"shape": tree_text(tree), "guide": tree_text(guide)})
        return tuple([product_like(t, g) for t, g in zip(tree, guide, strict=True)])
    return product_of(tree)


def compact_order(shape: Tree, order: Tree) -> Tree:
    """Return compact strides that increase in the order of `order`: the mode with the smallest order is contiguous.

    A run-time order is treated as larger than every static order, and run-time orders as ascending from left to right.
    """
    reference = leaves(product_like(shape, order))
    flat = leaves(order)
    largest = max([0, *(x | 0 for x in flat if type(x) is Int)])
    resolved = [x | 0 if type(x) is Int else largest + 1 + i for i, x in enumerate(flat)]
    ranks = iter(resolved)

    def strides(s: Tree, o: Tree) -> Tree:
        if type(o) is tuple:
            if type(s) is not tuple or len(s) != len(o):
                raise StaticAssertError("Need equal rank of shape and order", {"shape": tree_text(s)})
            return tuple([strides(x, y) for x, y in zip(s, o, strict=True)])
        mine = next(ranks)
        start: Leaf = STATIC_ONE
        for size, other in zip(reference, resolved, strict=True):
            if other < mine:
                start = times(start, size)
        return compact_left(s, start)[0]

    return strides(shape, order)


Sizes: TypeAlias = dict[int, Leaf]
"""The sizes of nested modes, by the identity of the mode: each is computed once, however deep it lies."""


def _size_of(mode: tuple[Tree, ...], sizes: Sizes) -> Leaf:
    """Return the size of a nested mode, and keep it and the sizes of the modes inside it in `sizes`."""
    if id(mode) not in sizes:
        sizes[id(mode)] = product_of(tuple([_size_of(s, sizes) if type(s) is tuple else s for s in mode]))
    return sizes[id(mode)]


def _split(coord: Leaf, shape: tuple[Tree, ...], sizes: Sizes) -> tuple[Leaf, ...]:
    """Split an integer coordinate over modes, the first mode fastest. The last mode takes the remaining quotient
    without a modulo, so that coordinates beyond the shape continue along it, as in C++."""
    parts: list[Leaf] = []
    rest: Any = coord
    part: Any
    for i, mode in enumerate(shape[:-1]):
        size: Any = _size_of(mode, sizes) if type(mode) is tuple else mode
        if type(rest) is int and rest >= 0 and (type(size) is int or type(size) is Int) and size > 1:
            rest, part = divmod(rest, size | 0)
        elif is_zero(rest):
            part = rest
        elif value_of(size) == 0:
            raise LayoutError("the coordinate can't be divided among the modes, because a mode has size 0", {"mode": i})
        else:
            rest, part = trunc_divmod(rest, size)
        parts.append(part)
    return (*parts, rest) if shape else ()


def _scaled(x: Leaf, stride: Leaf) -> Leaf:
    """Return a coordinate times a stride, if either of them is not a known number."""
    if type(x) not in KNOWN_KINDS and not is_symbolic(x):
        raise InvalidTypeError(
            f"a coordinate must be an integer or a tuple of integers, got {type(x).__name__} {given(x)}"
        )
    return times(x, stride)


def crd2idx_of(coord: Tree, shape: Tree, stride: Tree, start: int = 0, sizes: Sizes | None = None) -> Leaf:
    """Return the static `start` plus the inner product of a coordinate with the strides. An integer coordinate is split
    over the modes first.

    The sum is static if every term is static. A static 0 can be added to any kind of stride.
    """
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"coordinate": tree_text(coord), "shape": tree_text(shape)})
    elif type(shape) is tuple:
        sizes = {} if sizes is None else sizes
        coord = _split(coord, shape, sizes)
    else:
        coord, stride = (coord,), (stride,)
    total: Any = start
    static = True
    others: tuple[Leaf, ...] = ()
    x: Any
    for i, x in enumerate(coord):
        d: Any = stride[i]  # type: ignore[index]
        factor, step = type(x), type(d)
        if step is int and factor is int:
            total += x * d
            static = False
        elif step is Int and factor is int:
            if d:
                total += x * (d | 0)
                static = False
        elif step is Int and factor is Int:
            total += (x | 0) * (d | 0)
        elif step is int and factor is Int:
            if x:
                total += (x | 0) * d
                static = False
        else:
            nested = factor is tuple or step is tuple
            term: Any = crd2idx_of(x, shape[i], d, 0, sizes) if nested else _scaled(x, d)  # type: ignore[index]
            if type(term) in KNOWN_KINDS:
                total += term | 0
                static = static and type(term) is Int
            else:
                others += (term,)
    if total >> 256:  # 0 for nearly all numbers
        check_result(total)
    sum_: Leaf = STATIC[total] if static else total
    return functools.reduce(plus, others, sum_) if others else sum_


def crd2idx_horner(coord: Tree, shape: Tree) -> Leaf:
    """The colexicographic index of a coordinate within a shape."""
    if type(coord) is not tuple:
        return coord
    if type(shape) is not tuple or len(coord) != len(shape):
        raise CoordinateError("Mismatched Ranks", {"coordinate": tree_text(coord), "shape": tree_text(shape)})
    flat_coord, flat_shape = leaves(coord), leaves(product_like(shape, coord))
    if not flat_coord:
        return STATIC_ZERO
    result: Leaf = flat_coord[-1]
    for c, s in zip(reversed(flat_coord[:-1]), reversed(flat_shape[:-1]), strict=True):
        result = plus(c, times(s, result))
    return result


def idx2crd_colex(idx: Tree, shape: Tree, sizes: Sizes | None = None) -> Tree:
    """Return the coordinate of a colexicographic index in a shape. The last mode is not reduced modulo its size."""
    if type(idx) is tuple:
        if type(shape) is not tuple or len(idx) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"index": tree_text(idx), "shape": tree_text(shape)})
    elif type(shape) is tuple:
        sizes = {} if sizes is None else sizes
        idx = _split(idx, shape, sizes)
    else:
        return idx
    return tuple([c if type(shape[i]) is not tuple else idx2crd_colex(c, shape[i], sizes) for i, c in enumerate(idx)])


def idx2crd_strided(idx: Tree, shape: Tree, stride: Tree) -> Tree:
    """Return (idx / stride) % shape at every leaf, which is the coordinate of an index only for compact layouts."""
    if type(idx) is tuple:
        if type(shape) is not tuple or not len(idx) == len(shape) == len(modes(stride)):
            raise CoordinateError("Mismatched Ranks", {"index": tree_text(idx), "shape": tree_text(shape)})
        return tuple([idx2crd_strided(*t) for t in zip(idx, shape, modes(stride), strict=True)])
    if type(shape) is tuple:
        if type(stride) is not tuple:
            stride = compact_left(shape, stride)[0]
        elif len(stride) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"shape": tree_text(shape), "stride": tree_text(stride)})
        return tuple([idx2crd_strided(idx, s, d) for s, d in zip(shape, modes(stride), strict=True)])
    if type(stride) is tuple:
        raise CoordinateError("Mismatched Ranks", {"shape": tree_text(shape), "stride": tree_text(stride)})
    if is_one(shape):
        return STATIC_ZERO
    return trunc_mod(trunc_div(idx, stride), shape)


def _shape_of(thing: Shaped, depth: int = 0) -> Tree:
    """Return the shape of a layout or tensor as a tree of leaves; in a bare tuple, convert each item."""
    if type(thing) is tuple:
        if depth == 0 and are_numbers(thing):
            return thing
        if depth > MAX_DEPTH:
            raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")
        return tuple([_shape_of(x, depth + 1) for x in thing])
    if hasattr(type(thing), "_sliced"):
        return thing.shape  # type: ignore[union-attr]
    return coordinate(thing.shape if hasattr(type(thing), "domain") else thing)  # type: ignore[union-attr]


def shape(thing: Shaped, *mode: int) -> IntTuple:
    """The shape of a layout or tensor, or of one of its modes.

    >>> shape(Layout((4, (2, 3))), 1)
    (2, 3)
    """
    return at(_shape_of(thing), mode)  # type: ignore[return-value]


def stride(thing: LayoutLike, *mode: int) -> Tree:
    """The stride of a layout or tensor, or of one of its modes.

    >>> print(stride(Layout((Int(4), Int(8))), 1))
    _4
    """
    if not hasattr(type(thing), "stride") or isinstance(thing, (tuple, int)):
        raise InvalidTypeError(f"stride takes a layout or a tensor, got {type(thing).__name__} {given(thing)}")
    return at(thing.stride, mode)


def rank(thing: Shaped, *mode: int) -> Int:
    """The number of modes of a shape or layout, or of one of its modes; 1 for an integer.

    >>> print(rank((4, (2, 3))), rank((4, (2, 3)), 0))
    _2 _1
    """
    return Int(rank_of(at(_shape_of(thing), mode)))


def depth(thing: Shaped, *mode: int) -> Int:
    """The number of nested levels of tuples; 0 for an integer.

    >>> print(depth((4, (2, 3))))
    _2
    """
    return Int(depth_of(at(_shape_of(thing), mode)))


def size(thing: Shaped, *mode: int) -> Int | int:
    """The number of elements: the product of the shape, or of one mode. For a tiled MMA or copy, the number of threads.

    >>> print(size((Int(4), (Int(2), Int(3)))), size(Layout((4, 8)), 1))
    _24 8
    """
    is_tiled = hasattr(type(thing), "threads_of_size")
    whole = _shape_of(thing.threads_of_size if is_tiled else thing)  # type: ignore[union-attr]
    return product_of(at(whole, mode) if mode else whole)  # type: ignore[return-value]


def product(tree: Shaped) -> Int | int:
    """The product of all leaves; `_1` for the empty tuple.

    >>> print(product((2, (3, 4))), product((Int(2), Int(3))))
    24 _6
    """
    return product_of(_shape_of(tree))  # type: ignore[return-value]


def product_each(tree: Shaped) -> tuple[Int | int, ...]:
    """The product of each mode.

    >>> product_each(((2, 3), 4))
    (6, 4)
    """
    return tuple([product_of(s) for s in modes(_shape_of(tree))])  # type: ignore[misc]


def inner_product(a: Tree, b: Tree) -> Int | int:
    """The sum of products of corresponding leaves.

    >>> inner_product((1, (2, 3)), (10, (20, 30)))
    140
    """
    if not fits(a, b, least=MIN_INTEGER):
        a, b = as_leaves(a), as_leaves(b)
        _expect_paired(a, b)
    return crd2idx_of(a, b, b)  # type: ignore[return-value]


def _expect_paired(a: Tree, b: Tree) -> None:
    """Refuse two trees of different profiles."""
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        for i, x in enumerate(a):
            if type(x) is tuple or type(b[i]) is tuple:
                _expect_paired(x, b[i])
    elif type(a) is tuple or type(b) is tuple:
        raise StaticAssertError("Mismatched ranks", {"a": tree_text(a), "b": tree_text(b)})


def shape_div(a: Shaped, b: Shaped) -> IntTuple:
    """Divide shapes, rounding up. If both integers of a division are static, one must divide the other.

    Raises:
        StaticAssertError: neither of two static integers divides the other ('Divisibility Condition').

    >>> shape_div((Int(12), Int(4)), (Int(3), Int(2)))
    (Int(4), Int(2))
    """
    return ceil_div_of(_shape_of(a), _shape_of(b), True)  # type: ignore[return-value]


def round_up(a: Shape, b: Shape) -> IntTuple:
    """Round each integer of a up to a multiple of the corresponding integer of b.

    >>> round_up((10, 7), (4, 7))
    (12, 7)
    """

    def up(x: Tree, y: Tree) -> Tree:
        if type(x) is tuple and type(y) is tuple:
            if len(x) < len(y):
                raise StaticAssertError("Mismatched ranks", {"a": tree_text(x), "b": tree_text(y)})
            return tuple([up(p, q) for p, q in zip_longest(x, y, fillvalue=STATIC_ONE)])
        if type(x) is tuple or type(y) is tuple:
            raise InvalidTypeError(
                "round_up takes two integers or two tuples, got a tuple and an integer",
                {"a": tree_text(x), "b": tree_text(y)},
            )
        return times(ceil_div_leaf(x, y), y)

    return up(as_leaves(a), as_leaves(b))  # type: ignore[return-value]


def elem_scale(a: Tree, b: Tree) -> IntTuple:
    """Multiply each leaf of a by the product of the subtree of b at the same position.

    >>> elem_scale((2, 3), (4, (5, 6)))
    (8, 90)
    """

    def scale(x: Tree, y: Tree) -> Tree:
        if isinstance(x, tuple):
            if type(y) is not tuple or len(x) != len(y):
                raise StaticAssertError("Mismatched tuple_size", {"a": tree_text(x), "b": tree_text(y)})
            return tuple([scale(p, q) for p, q in zip(x, y, strict=True)])
        return times(x, product_of(y))

    return scale(as_leaves(a), as_leaves(b))  # type: ignore[return-value]


def congruent(a: Shaped, b: Shaped) -> Int:
    """Return whether a and b have the same profile, that is, the same nesting of tuples.

    >>> print(congruent((2, (3, 4)), (1, (1, 1))), congruent((2, 3), 6))
    _1 _0
    """
    return Int(int(congruent_trees(_shape_of(a), _shape_of(b))))


def weakly_congruent(a: Shaped, b: Shaped) -> Int:
    """Return whether b has the profile of a, except that leaves of a may be tuples in b.

    >>> print(weakly_congruent((6, 4), ((2, 3), 4)))
    _1
    """

    def weak(x: Tree, y: Tree) -> bool:
        if type(x) is tuple and type(y) is tuple:
            return len(x) == len(y) and all(map(weak, x, y))
        return type(x) is not tuple

    return Int(int(weak(_shape_of(a), _shape_of(b))))


Verdict: TypeAlias = tuple[bool, bool]
"""(whether the result is known at compile time, the result)."""

_FALSE: Final = (True, False)
"""A false that is known at compile time, as profiles are."""


def _verdict(test: Callable[[Tree, Tree], Verdict], a: Shaped, b: Shaped) -> Int | bool:
    """Return the result of a test of two shapes: a static `_1` or `_0` if it is known at compile time, else a bool."""
    static, true = test(_shape_of(a), _shape_of(b))
    return Int(int(true)) if static else true


def _decided(relation: sympy.Basic | bool) -> bool:
    """Convert a relation to a bool. A relation of symbols must be true for all of their values, or false for all."""
    verdict = str(relation)
    if verdict not in ("True", "False"):
        raise LayoutError(
            f"the answer depends on the values of the symbols: {relation}",
            None,
            "use .subs({...}) to replace the symbols with numbers",
        )
    return verdict == "True"


def _equal(x: Leaf, y: Leaf) -> Verdict:
    a, b = value_of(x), value_of(y)
    if is_symbolic(a) or is_symbolic(b):
        import sympy

        try:
            return False, _decided(sympy.Eq(a, b))
        except (TypeError, sympy.SympifyError):  # a stride
            raise InvalidTypeError(f"sizes must be integers, got {a} and {b}") from None
    return type(x) is type(y) is Int, bool(a == b)


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the logical AND of verdicts; a static false makes the result static."""
    parts = list(verdicts)
    return _FALSE if _FALSE in parts else (all(static for static, _ in parts), all(true for _, true in parts))


def _at_leaves_of_a(test: Callable[[Leaf, Leaf], Verdict]) -> Callable[[Tree, Tree], Verdict]:
    """Extend a test of sizes to shapes: apply it to every leaf of the first shape and its counterpart in the second."""

    def both(x: Tree, y: Tree) -> Verdict:
        if type(x) is not tuple:
            return test(x, product_of(y))
        return _all(map(both, x, y)) if type(y) is tuple and len(x) == len(y) else _FALSE

    return both


def compatible(a: Shaped, b: Shaped) -> Int | bool:
    """Return whether every coordinate of a is a coordinate of b: b has the same size at every leaf of a.

    >>> print(compatible((Int(6), Int(4)), ((Int(2), Int(3)), Int(4))))
    _1
    """
    return _verdict(_at_leaves_of_a(_equal), a, b)


def weakly_compatible(a: Shaped, b: Shaped) -> Int | bool:
    """Return whether the size of b is a multiple of the size of a at every leaf of a (see `compatible`).

    >>> print(weakly_compatible(Int(4), (Int(2), Int(4))))
    _1
    """

    def test(x: Leaf, n: Leaf) -> Verdict:
        if value_of(x) == 0:
            raise LayoutError("division by zero", {"dividend": tree_text(n)})
        return type(x) is type(n) is Int, _equal(trunc_mod(n, x), STATIC_ZERO)[1]

    return _verdict(_at_leaves_of_a(test), a, b)


def elem_less(a: Shaped, b: Shaped) -> Int | bool:
    """Return whether every leaf of a is less than the corresponding leaf of b. Leaves that a lacks count as less.

    >>> print(elem_less((Int(1), Int(2)), (Int(4), Int(8))), elem_less((1, 9), (4, 8)))
    _1 False
    """

    def test(x: Tree, y: Tree) -> Verdict:
        if type(x) is tuple and type(y) is tuple:
            return _all([*map(test, x, y), (True, len(x) <= len(y))])
        if type(x) is tuple or type(y) is tuple:
            raise InvalidTypeError(
                "elem_less takes two integers or two tuples, got a tuple and an integer", {"a": a, "b": b}
            )
        try:
            less = _decided(value_of(x) < value_of(y))
        except TypeError:  # a stride
            raise InvalidTypeError("elem_less compares only integers", {"a": a, "b": b}) from None
        return type(x) is type(y) is Int, less

    return _verdict(test, a, b)


def is_static(thing: Shaped) -> bool:
    """Return whether all numbers of a tuple, layout or swizzle, or of a tuple of these, are static.

    >>> is_static((Int(4), 8)), is_static((Layout(Int(8)), Int(32))), is_static(Swizzle(3, 4, 3))
    (False, True, True)
    """
    check_depth(thing)
    return _is_static(thing)


def _is_static(thing: Any) -> bool:
    kind = type(thing)
    if isinstance(thing, tuple):
        return all(map(_is_static, thing))
    if hasattr(kind, "yyy_mask"):  # a swizzle is a type in C++
        return True
    if hasattr(kind, "outer"):  # a composed layout
        return _is_static(thing.outer) and _is_static(thing._offset) and _is_static(thing.inner)
    if hasattr(kind, "_sliced"):
        return _is_static(thing.shape) and _is_static(thing.stride)
    return all(map(is_static_leaf, leaves(as_leaves(thing))))
