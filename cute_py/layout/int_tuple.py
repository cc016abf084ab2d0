"""Int tuples: integers and tuples of int tuples, and what CuTe computes with them.

Every function takes public leaves (`Int`, int, numpy integers, sympy) and returns `Int` where C++ has a static result.
Functions of a shape take layouts and tensors too.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError, LayoutError, StaticAssertError, given
from cute_py.layout.arithmetic import (
    ceil_div_of,
    inner_product_of,
    product_of,
    shape_div_of,
)
from cute_py.layout.leaf import (
    Dynamic,
    Int,
    Tree,
    coordinate,
    internal,
    is_symbolic,
    public,
    tree_text,
    trunc_mod,
    value_of,
)
from cute_py.layout.trees import at, check_depth, congruent_trees, depth_of, modes, rank_of


def _shape_of(thing: Any) -> Tree:
    """Internal shape of a layout or tensor, or the internal form of a bare tuple of integers and layouts."""
    check_depth(thing)
    inner = getattr(thing, "_shape", None)
    if inner is not None and not isinstance(thing, type):
        return inner
    if type(thing) is tuple:
        return tuple([_shape_of(t) for t in thing])
    if hasattr(thing, "shape") and hasattr(thing, "domain"):
        return internal(thing.shape)
    return coordinate(thing)


def shape(thing: Any, *mode: int) -> Tree:
    """The shape of a layout or tensor, or of one of its modes.

    >>> shape(Layout((4, (2, 3))), 1)
    (2, 3)
    """
    return public(at(_shape_of(thing), mode))


def stride(thing: Any, *mode: int) -> Tree:
    """The stride of a layout or tensor, or of one of its modes.

    >>> print(stride(Layout((Int(4), Int(8))), 1))
    _4
    """
    if not hasattr(thing, "stride") or isinstance(thing, (tuple, int)):
        raise InvalidTypeError(f"stride takes a layout or a tensor, got {type(thing).__name__} {given(thing)}")
    return at(thing.stride, mode)


def rank(thing: Any, *mode: int) -> Int:
    """The number of modes; 1 for an integer.

    >>> print(rank((4, (2, 3))), rank((4, (2, 3)), 0))
    _2 _1
    """
    return Int(rank_of(at(_shape_of(thing), mode)))


def depth(thing: Any, *mode: int) -> Int:
    """How deep tuples are nested; 0 for an integer.

    >>> print(depth((4, (2, 3))))
    _2
    """
    return Int(depth_of(at(_shape_of(thing), mode)))


def size(thing: Any, *mode: int) -> Any:
    """The product of the shape, or of one of its modes.

    >>> print(size((Int(4), (Int(2), Int(3)))), size(Layout((4, 8)), 1))
    _24 8
    """
    return public(product_of(at(_shape_of(thing), mode)))


def product(tree: Tree) -> Any:
    """The product of all leaves; `_1` of the empty tuple.

    >>> print(product((2, (3, 4))), product((Int(2), Int(3))))
    24 _6
    """
    return public(product_of(_shape_of(tree)))


def product_each(tree: Tree) -> tuple[Any, ...]:
    """The product of each mode.

    >>> product_each(((2, 3), 4))
    (6, 4)
    """
    return tuple([public(product_of(s)) for s in modes(_shape_of(tree))])


def inner_product(a: Tree, b: Tree) -> Any:
    """The sum of products of corresponding leaves.

    >>> inner_product((1, (2, 3)), (10, (20, 30)))
    140
    """
    return public(inner_product_of(internal(a), internal(b)))


def shape_div(a: Tree, b: Tree) -> Tree:
    """Divide shapes, rounding up; of static integers one must divide the other.

    Raises:
        StaticAssertError: 'Divisibility Condition'.

    >>> shape_div((Int(12), Int(4)), (Int(3), Int(2)))
    (Int(4), Int(2))
    """
    return public(shape_div_of(_shape_of(a), _shape_of(b)))


def round_up(a: Tree, b: Tree) -> Tree:
    """The least multiples of b that are at least a.

    >>> round_up((10, 7), (4, 7))
    (12, 7)
    """

    def up(x: Tree, y: Tree) -> Tree:
        if type(x) is tuple and type(y) is tuple:
            if len(x) < len(y):
                raise StaticAssertError("Mismatched ranks", {"a": tree_text(x), "b": tree_text(y)})
            return tuple([up(p, q) for p, q in zip(x, (*y, *(1,) * (len(x) - len(y))), strict=True)])
        if type(x) is tuple or type(y) is tuple:
            raise InvalidTypeError("round_up of a tuple and an integer", {"a": tree_text(x), "b": tree_text(y)})
        return ceil_div_of(x, y) * y

    return public(up(internal(a), internal(b)))


def elem_scale(a: Tree, b: Tree) -> Tree:
    """The profile of a, each leaf times the product of b's mode at its place.

    >>> elem_scale((2, 3), (4, (5, 6)))
    (8, 90)
    """

    def scale(x: Tree, y: Tree) -> Tree:
        if type(x) is tuple:
            if type(y) is not tuple or len(x) != len(y):
                raise StaticAssertError("Mismatched tuple_size", {"a": tree_text(x), "b": tree_text(y)})
            return tuple([scale(p, q) for p, q in zip(x, y, strict=True)])
        return x * product_of(y)

    return public(scale(internal(a), internal(b)))


def _verdict(static: bool | None, dynamic: bool) -> Any:
    """A static bool (prints `_1` or `_0`, true or false to Python) where it is known at compile time."""
    return Int(int(dynamic)) if static is None or static else bool(dynamic)


def congruent(a: Any, b: Any) -> Int:
    """Same profile?

    >>> print(congruent((2, (3, 4)), (1, (1, 1))), congruent((2, 3), 6))
    _1 _0
    """
    return Int(int(congruent_trees(_shape_of(a), _shape_of(b))))


def weakly_congruent(a: Any, b: Any) -> Int:
    """Does b have the profile of a, or split a's leaves further?

    >>> print(weakly_congruent((6, 4), ((2, 3), 4)))
    _1
    """

    def weak(x: Tree, y: Tree) -> bool:
        if type(x) is tuple and type(y) is tuple:
            return len(x) == len(y) and all(map(weak, x, y))
        return type(x) is not tuple

    return Int(int(weak(_shape_of(a), _shape_of(b))))


def _compared(test: Any, a: Any, b: Any) -> Any:
    """Evaluate a three-valued test on internal trees: (known statically?, verdict)."""
    known, verdict = test(_shape_of(a), _shape_of(b))
    return _verdict(known, verdict)


def _decided(relation: Any) -> bool:
    """A relation of numbers as a bool; one of symbols must hold, or fail, for all of their values."""
    verdict = str(relation)
    if verdict not in ("True", "False"):
        raise LayoutError(
            f"this can't be decided for these symbols: {relation}", None, "replace the symbols with .subs({...}) first"
        )
    return verdict == "True"


def _equal(x: Any, y: Any) -> tuple[bool, bool]:
    a, b = value_of(x), value_of(y)
    if is_symbolic(a) or is_symbolic(b):
        import sympy

        try:
            return False, _decided(sympy.Eq(a, b))
        except (TypeError, sympy.SympifyError):  # a stride
            raise InvalidTypeError(f"sizes are integers, got {a} and {b}") from None
    return type(x) is int and type(y) is int, bool(a == b)


def _both(parts: list[tuple[bool, bool]]) -> tuple[bool, bool]:
    """Logical and: a static false decides it."""
    if any(known and not verdict for known, verdict in parts):
        return True, False
    return all(known for known, _ in parts), all(verdict for _, verdict in parts)


def compatible(a: Any, b: Any) -> Any:
    """Can every coordinate of a be used in b? Same size at every leaf of a.

    >>> print(compatible((Int(6), Int(4)), ((Int(2), Int(3)), Int(4))))
    _1
    """

    def test(x: Tree, y: Tree) -> tuple[bool, bool]:
        if type(x) is tuple and type(y) is tuple:
            if len(x) != len(y):
                return True, False
            return _both([test(p, q) for p, q in zip(x, y, strict=True)])
        if type(x) is not tuple:
            return _equal(x, product_of(y))
        return True, False

    return _compared(test, a, b)


def weakly_compatible(a: Any, b: Any) -> Any:
    """As compatible, but b's size need only be a multiple of a's at every leaf of a.

    >>> print(weakly_compatible(Int(4), (Int(2), Int(4))))
    _1
    """

    def test(x: Tree, y: Tree) -> tuple[bool, bool]:
        if type(x) is tuple and type(y) is tuple:
            if len(x) != len(y):
                return True, False
            return _both([test(p, q) for p, q in zip(x, y, strict=True)])
        if type(x) is not tuple:
            n = product_of(y)
            if value_of(x) == 0:
                raise LayoutError("division by zero", {"dividend": tree_text(n)})
            return type(x) is int and type(n) is int, _equal(trunc_mod(n, x), 0)[1]
        return True, False

    return _compared(test, a, b)


def evenly_divides(a: Any, tiler: Any) -> Any:
    """Does the tiler divide the shape a without rest?

    >>> print(evenly_divides((Int(12), Int(8)), (Int(4), Int(8))), evenly_divides(Int(10), Int(4)))
    _1 _0
    """

    def test(x: Tree, t: Tree) -> tuple[bool, bool]:
        if type(t) is tuple:
            if rank_of(t) > rank_of(x):
                return True, False
            return _both([test(p, q) for p, q in zip(modes(x), t, strict=False)])
        return _equal(product_of(x), product_of(t) * product_of(ceil_div_of(x, t)))

    return _compared(test, a, tiler)


def elem_less(a: Any, b: Any) -> Any:
    """Is every leaf of a less than the leaf of b at its place? Missing leaves of a are less.

    >>> print(elem_less((Int(1), Int(2)), (Int(4), Int(8))), elem_less((1, 9), (4, 8)))
    _1 False
    """

    def test(x: Tree, y: Tree) -> tuple[bool, bool]:
        if type(x) is tuple and type(y) is tuple:
            parts = [test(p, q) for p, q in zip(x, y, strict=False)]
            return _both([*parts, (True, len(x) <= len(y))])
        if type(x) is tuple or type(y) is tuple:
            raise InvalidTypeError("elem_less of a tuple and an integer", {"a": a, "b": b})
        try:
            less = _decided(value_of(x) < value_of(y))
        except TypeError:  # a stride
            raise InvalidTypeError("elem_less compares integers", {"a": a, "b": b}) from None
        return type(x) is int and type(y) is int, less

    return _compared(test, a, b)


def is_static(thing: Any) -> bool:
    """Are all numbers of a tuple or layout known at compile time?

    >>> is_static((Int(4), 8))
    False
    """
    parts = [thing._shape, thing._stride] if hasattr(thing, "_shape") else [internal(thing)]

    def known(tree: Tree) -> bool:
        if type(tree) is tuple:
            return all(known(t) for t in tree)
        return type(tree) is not Dynamic and bool(getattr(tree, "is_static", True))

    return all(known(p) for p in parts)
