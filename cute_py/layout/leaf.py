"""Leaves: the numbers inside the nested tuples of shapes, strides and coordinates.

CuTe C++ separates a compile-time integer (`Int<4>`, printed `_4`) from a run-time one (`4`), and its algebra branches
on the difference: a static 1 is dropped, a run-time 1 is kept; static modes merge, run-time modes do not.

A leaf has the same form everywhere, in a layout and inside the algebra:

    what                 leaf                 prints
    static integer       Int(4)               _4
    run-time integer     4                    4
    symbolic size        sympy expression     the expression
    any other stride     the object itself    (E(0) prints _1@0)

`as_leaf` and `as_leaves` convert user input (numpy integers, subclasses of int) to these forms. Operations compute with
bare numbers: `value_of(leaf)` is an int or a sympy expression, and both types support Python's operators;
`is_static(leaf)` returns whether the number is known at compile time. `times`, `plus`, `trunc_div` and `trunc_mod`
compute with single leaves by CuTe's rules for mixed operands: the result is static if both operands are static, and a
static 0 times anything is a static 0. `same(a, b)` is the equality that C++ can decide at compile time, so a run-time
number is never the same as another number. Therefore coalesce merges (_4,_2):(_1,_4) to _8:_1, and keeps both modes of
(4,_2):(_1,4).

sympy simplifies each expression that it builds, which takes time in proportion to its size. For nested functions
(`floor`, `Min`, `Mod`), this takes a millisecond or more and simplifies nothing. Every mode that a composition steps
over wraps the previous mode's expression in another function. This module therefore simplifies only sums, products and
powers of symbols with up to `MOST_SIMPLIFIED` operations; other expressions are built unchanged.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, Final, Protocol, SupportsIndex, TypeGuard, runtime_checkable

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, PARSE_READS, check_magnitude, is_bool
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, given, integer_text
from cute_py.layout.arguments import Coordinate, IntTuple, Leaf, Shaped, Tree, Value

if TYPE_CHECKING:
    import sympy


def never_an_integer(x: sympy.Basic) -> bool:
    """Return whether a sympy object can't be an integer, such as a fraction, an infinity, nan, a relation or a matrix.

    >>> import sympy
    >>> never_an_integer(sympy.Rational(1, 2)), never_an_integer(sympy.oo), never_an_integer(sympy.Symbol("n"))
    (True, True, False)
    """
    if not hasattr(x, "as_coeff_Mul") or getattr(x, "is_Matrix", False):  # only expressions have as_coeff_Mul
        return True
    if getattr(x, "is_Boolean", False) or x.is_Float or x.is_Rational or getattr(x, "is_integer", False) is False:
        return True
    return bool(x.is_number and not x.is_finite)


@lru_cache(maxsize=4096)
def largest_integers(x: sympy.Basic) -> tuple[int, ...]:
    """Return the smallest and the largest integer in an expression, or () if it contains none.

    >>> import sympy
    >>> largest_integers(sympy.Symbol("n") * 8 - 3)
    (-3, 8)
    """
    if x.is_Symbol:
        return ()
    import sympy

    found = [int(atom) for atom in x.atoms(sympy.Integer)]
    return (min(found), max(found)) if found else ()


MOST_SIMPLIFIED = 14
"""sympy simplifies a result only if its operands have at most this many operations in total."""

_NODES_OF_AN_OPERATION = 5


def is_short(*operands: Value) -> bool:
    """Return whether an expression of these operands is short enough for sympy to simplify: they contain few sums,
    products and powers, and no functions. Only a bounded part of them is inspected.

    >>> import sympy
    >>> m, n = sympy.symbols("m n")
    >>> is_short(m + 1, n), is_short(sympy.floor(m / 2), n), is_short(m, sum(n**i for i in range(50)))
    (True, False, False)
    """
    import sympy
    from sympy.core.function import Application

    expressions = [x for x in operands if isinstance(x, sympy.Basic)]
    ahead, enough = expressions.copy(), MOST_SIMPLIFIED * _NODES_OF_AN_OPERATION
    while ahead:
        node = ahead.pop()
        if isinstance(node, Application):
            return False
        ahead.extend(node.args)
        enough -= 1
        if enough < 0:
            return False
    return bool(sum(sympy.count_ops(x) for x in expressions) <= MOST_SIMPLIFIED)


def divided(operation: Callable[[Value, Value], Value], x: Value, y: Value) -> Value:
    """Return x // y or x % y, whichever `operation` is, if x or y is a symbol.

    Raises:
        LayoutError: y is 0. InvalidTypeError: x or y is not a number or a symbol.
    """
    if isinstance(y, int) and y == 0:
        raise LayoutError("division by zero", {"dividend": x})
    import sympy

    try:
        if operation is operator.mod:
            return sympy.Mod(x, y, evaluate=is_short(x, y))
        ratio = sympy.sympify(x) / y
    except (TypeError, sympy.SympifyError):
        raise InvalidTypeError(f"can't divide {x} by {y}; both must be integers or symbols") from None
    divisor_left = any(factor.is_Pow and factor.exp.is_negative for factor in sympy.Mul.make_args(ratio))
    if not divisor_left and ratio.is_integer:
        return ratio
    return sympy.floor(ratio, evaluate=isinstance(y, int) and is_short(x))


def smaller(x: Value, y: Value) -> Value:
    """Return the smaller of two bare numbers or symbols."""
    if isinstance(x, int) and isinstance(y, int):
        return min(x, y)
    import sympy

    if is_short(x, y):
        return sympy.Min(x, y)
    first, second = sorted((sympy.sympify(x), sympy.sympify(y)), key=functools.cmp_to_key(sympy.Basic.compare))
    # Not Min(evaluate=False), which counts every node of both to order them.
    return first if first == second else sympy.Basic.__new__(sympy.Min, first, second)


def divides(y: Value, x: Value) -> sympy.Basic:
    """Return the relation x % y == 0. It is not simplified if y has symbols but none in common with x."""
    import sympy

    simple = is_short(x, y) and (isinstance(y, int) or not y.free_symbols.isdisjoint(sympy.sympify(x).free_symbols))
    return sympy.Eq(sympy.Mod(x, y, evaluate=simple), 0, evaluate=simple)


def divides_or_exceeds(y: Value, x: Value) -> sympy.Basic:
    """Return the relation x % y == 0 or x < y."""
    import sympy

    short = is_short(x, y)
    return sympy.Or(divides(y, x), sympy.Lt(x, y, evaluate=short), evaluate=short)


def substituted(
    x: sympy.Basic, values: Mapping[sympy.Basic, Value], known: dict[sympy.Basic, sympy.Basic]
) -> sympy.Basic:
    """Return an expression with symbols replaced by `values`. All symbols are replaced simultaneously, and a part that
    occurs several times is replaced only once. sympy's own `subs` replaces one symbol after another, and simplifies the
    intermediate expressions, sometimes wrongly.

    Args:
        known: maps parts of expressions to their replacements by the same values; the function adds new entries.
    """
    import sympy

    if not all(isinstance(v, int) and key.is_Symbol for key, v in values.items()):
        return x.subs(values).doit()

    def replaced(part: sympy.Basic) -> sympy.Basic:
        if part in known:
            return known[part]
        result = values.get(part, part)
        if part.args:
            arguments = [replaced(a) for a in part.args]
            changed = any(a is not b for a, b in zip(arguments, part.args, strict=True))
            result = part.func(*arguments) if changed else part
        known[part] = result = sympy.sympify(result)
        return result

    return replaced(x).doit()


MAX_RESULT = 1 << 256
"""The largest magnitude of a result of an operation; inputs end at `MAX_INTEGER`."""

MIN_RESULT = -MAX_RESULT

MAX_DEPTH = 64
"""The deepest nesting of tuples that is accepted; real layouts stay below 8."""


@runtime_checkable
class IntegerModule(Protocol):
    """The operations that any stride must support: integer * stride, stride + stride, and str().

    Two attributes are optional: `modes`, the hierarchical position of a basis element (together with `value`, its
    scale), and `is_static`, which is False if the equality of two objects is known only at run time.

    >>> from cute_py.arith_tuple import E
    >>> isinstance(E(0), IntegerModule), 3 * E(0) + 2 * E(1)
    (True, ArithTuple(3, 2))
    """

    def __rmul__(self, n: Any, /) -> Leaf: ...

    def __add__(self, other: Any, /) -> Leaf: ...


class Int(int):
    """A static integer: C++'s `Int<n>`, printed `_n`. Arithmetic on two `Int` gives an `Int`.

    >>> print(Int(4), Int(4) * Int(2), Int(4) * 2)
    _4 _8 8
    >>> print(Int(0) * 7)         # CuTe knows at compile time that this is 0
    _0
    """

    __slots__ = ()

    def __new__(cls, value: SupportsIndex = 0) -> Int:
        if isinstance(value, (bool, float, str)) or not hasattr(type(value), "__index__"):
            raise InvalidTypeError(f"Int(value) takes an integer, got {given(value)}")
        try:
            number = operator.index(value)
        except TypeError:  # a class, a symbol and an array may have __index__
            raise InvalidTypeError(f"Int(value) takes an integer, got {given(value)}") from None
        check_magnitude(number, "a static integer")
        return STATIC[number] if cls is Int else int.__new__(cls, number)

    def __repr__(self) -> str:
        return f"Int({self.real})"

    def __str__(self) -> str:
        return f"_{self.real}"

    def __format__(self, spec: str) -> str:
        if not isinstance(spec, str):
            raise InvalidTypeError(f"the format must be a str, got {given(spec)}")
        try:
            return format(int(self), spec) if spec[-1:] in tuple("bcdoxXneEfFgG%") else format(str(self), spec)
        except (ValueError, OverflowError, MemoryError):  # the width is too large, or the number is no character
            raise InvalidValueError(f"{given(spec)} is not a valid format for an integer") from None

    def __add__(self, other: int) -> int:
        return STATIC[(self | 0) + (other | 0)] if type(other) is Int else _combine(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return _combine(operator.sub, self, other)

    def __rsub__(self, other: int) -> int:
        return _combine(operator.sub, other, self)

    def __mul__(self, other: int) -> int:
        return STATIC[(self | 0) * (other | 0)] if type(other) is Int else _combine(operator.mul, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        return _combine(operator.floordiv, self, other)

    def __rfloordiv__(self, other: int) -> int:
        return _combine(operator.floordiv, other, self)

    def __mod__(self, other: int) -> int:
        return _combine(operator.mod, self, other)

    def __rmod__(self, other: int) -> int:
        return _combine(operator.mod, other, self)

    def __pow__(self, other: int, modulus: int | None = None) -> Any:
        return _power(self, other, modulus)

    def __rpow__(self, other: int, modulus: int | None = None) -> Any:
        return _power(other, self, modulus)

    def __neg__(self) -> Int:
        return int.__new__(Int, -int(self))

    def __pos__(self) -> Int:
        return self

    def __abs__(self) -> Int:
        return int.__new__(Int, abs(int(self)))


Int.__repr__ = lru_cache(maxsize=4096)(Int.__repr__)  # type: ignore[method-assign]
"""A cache of printed numbers, because a few numbers repeat, and a lookup takes half the time of printing one."""

KNOWN: Final = (int, Int)
"""The types of known numbers."""
KNOWN_KINDS: Final = frozenset(KNOWN)


def check_result(number: int) -> int:
    """Return the number, if its magnitude is at most `MAX_RESULT`.

    Raises:
        LayoutError: the magnitude is larger.
    """
    if not MIN_RESULT <= number <= MAX_RESULT:
        raise LayoutError(f"the result is {integer_text(number)}; must be at most 2**256 in magnitude")
    return number


class _Statics(dict[int, Int]):
    """A mapping from plain integers to `Int`. It stores common sizes and strides, because a lookup is faster than
    making an `Int`; other values are made at each lookup."""

    def __missing__(self, number: int) -> Int:
        return int.__new__(Int, number if MIN_RESULT <= number <= MAX_RESULT else check_result(number))


STATIC: Final = _Statics({n: int.__new__(Int, n) for n in (*range(4097), *[1 << k for k in range(13, 65)])})

STATIC_ZERO: Final = STATIC[0]
STATIC_ONE: Final = STATIC[1]


def _combine(op: Callable[[int, int], int], left: int, right: int) -> int:
    """Compute `left op right` as Python does. The result is static if both are, or if a static 0 determines it."""
    left_static, right_static = isinstance(left, Int), isinstance(right, Int)
    if left_static and right_static:
        try:
            return int.__new__(Int, check_result(op(int(left), int(right))))
        except ZeroDivisionError:
            raise LayoutError("division by zero", {"dividend": int(left)}) from None
    other: int | sympy.Expr = right if left_static else left
    if isinstance(other, bool) or not (isinstance(other, int) or (is_symbolic(other) and not never_an_integer(other))):
        return NotImplemented  # type: ignore[no-any-return]
    if op is operator.mul and ((left_static and left == 0) or (right_static and right == 0)):
        return Int(0)
    if op in (operator.floordiv, operator.mod) and left_static and left == 0:
        return Int(0)
    if op is operator.mod and right_static and abs(int(right)) == 1:
        return Int(0)
    try:
        return op(int(left) if left_static else left, int(right) if right_static else right)
    except ZeroDivisionError:
        raise LayoutError("division by zero", {"dividend": given(left)}) from None


def _power(base: int, exponent: int, modulus: int | None) -> Any:
    """Compute `base ** exponent` as Python does, with a plain integer as the result.

    Raises:
        LayoutError: the magnitude is larger than `MAX_RESULT`.
    """
    if modulus is None and isinstance(base, int) and isinstance(exponent, int):
        least = (abs(int(base)).bit_length() - 1) * exponent
        if least >= MAX_RESULT.bit_length():
            raise LayoutError(f"the result is 2**{integer_text(least)} or more; must be at most 2**256 in magnitude")
    if not isinstance(base, int):
        return NotImplemented
    try:
        return int.__pow__(int(base), exponent, modulus)
    except ZeroDivisionError:
        raise LayoutError("division by zero", {"base": int(base), "exponent": given(exponent)}) from None


def is_symbolic(value: object) -> TypeGuard[sympy.Expr]:
    """Return whether an object is a sympy expression, without importing sympy."""
    kind: Any = type(value)
    return is_symbolic_kind(kind)


@lru_cache(maxsize=4096)
def is_symbolic_kind(kind: type) -> bool:
    """Return whether a class is a class of sympy expressions, without importing sympy."""
    bases = [str(base.__module__) for base in kind.__mro__]  # None for f in sympy.Function("f")(1)
    return any(name.partition(".")[0] == "sympy" for name in bases) and hasattr(kind, "free_symbols")


def is_symbolic_size(x: object) -> bool:
    """Return whether x is a sympy expression that can be a size or stride without conversion: it may be an integer, but
    is not a known number.

    >>> import sympy
    >>> is_symbolic_size(sympy.Symbol("n")), is_symbolic_size(sympy.Integer(4)), is_symbolic_size(sympy.Rational(1, 2))
    (True, False, False)
    """
    kind: Any = type(x)
    return is_symbolic_kind(kind) and kind.__hash__ is not None and _is_size(x)


@lru_cache(maxsize=4096)
def _is_size(x: sympy.Basic) -> bool:
    if getattr(x, "is_Integer", False) or never_an_integer(x):
        return False
    return all(MIN_INTEGER <= number <= MAX_INTEGER for number in largest_integers(x))


def is_taken(leaf: Any) -> bool:
    """Return whether the algebra can use a leaf without conversion: a known number or a symbol that is not negative."""
    kind = type(leaf)
    if kind is int or kind is Int:
        return 0 <= leaf <= MAX_INTEGER  # type: ignore[no-any-return]
    return is_symbolic_size(leaf) and not leaf.is_negative


@lru_cache(maxsize=4096)
def is_symbol_kind(kind: type) -> bool:
    """Return whether a class is a class of bare sympy symbols, which are sizes unless declared otherwise."""
    return is_symbolic_kind(kind) and bool(getattr(kind, "is_Symbol", False))


def is_static(leaf: Leaf) -> bool:
    """Return whether a leaf is known at compile time.

    >>> is_static(Int(4)), is_static(4)
    (True, False)
    """
    kind: type = type(leaf)
    if kind is Int:
        return True
    if kind is int or is_symbolic_kind(kind):
        return False
    return bool(getattr(leaf, "is_static", True))


def value_of(leaf: Tree) -> Any:
    """Return the bare number in a leaf: an int or a sympy expression. Any other stride is returned unchanged.

    >>> value_of(Int(4)), value_of(4)
    (4, 4)
    """
    return leaf | 0 if type(leaf) is Int else leaf


def leaf_of(number: Value, static: bool) -> Leaf:
    """Make a leaf from a bare number and whether it is static: the inverse of `value_of` and `is_static`.

    Raises:
        LayoutError: the magnitude of the number exceeds `MAX_RESULT`.

    >>> leaf_of(4, True), leaf_of(4, False)
    (Int(4), 4)
    """
    if static:
        return STATIC[number]
    if type(number) is not int or MIN_RESULT <= number <= MAX_RESULT:
        return number
    return check_result(number)


def is_zero(leaf: Tree) -> bool:
    """Return whether a leaf is a static 0 (C++'s is_constant<0>)."""
    return type(leaf) is Int and leaf == 0


def is_one(leaf: Tree) -> bool:
    """Return whether a leaf is a static 1 (C++'s is_constant<1>)."""
    return type(leaf) is Int and leaf == 1


def times(n: Leaf, leaf: Leaf) -> Leaf:
    """Return `n * leaf` for a size and any stride. The result is static if both are static, or if one is a static 0."""
    if type(n) is Int and type(leaf) is Int:
        return STATIC[(n | 0) * (leaf | 0)]
    product: Any
    if type(n) is int and type(leaf) is int:
        product = n * leaf
    elif type(leaf) in KNOWN_KINDS or is_symbolic(leaf):
        if (type(n) is Int and n == 0) or (type(leaf) is Int and leaf == 0):
            return STATIC_ZERO
        product = value_of(n) * value_of(leaf)
    else:
        return n * leaf
    if type(product) is not int and is_symbolic(product):
        check_result(int(getattr(product.as_coeff_Mul()[0], "p", 0)))  # the numerator of the coefficient
    return product if type(product) is not int or MIN_RESULT <= product <= MAX_RESULT else check_result(product)


def plus(a: Leaf, b: Leaf) -> Leaf:
    """Return `a + b` of sizes, of strides, or of sums of strides. A static 0 can be added to any kind of stride."""
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if is_symbolic(a):
        return a + value_of(b)  # type: ignore[no-any-return]
    return a + b


def same(a: Leaf, b: Leaf) -> bool:
    """Whether two leaves are known at compile time to be equal."""
    if type(a) is Int or type(b) is Int:
        return type(a) is type(b) and a == b
    return type(a) is type(b) and is_static(a) and is_static(b) and bool(a == b)


def trunc_div(a: Leaf, b: Leaf) -> Leaf:
    """Return C++'s `a / b`, rounded toward zero. A static 0 divided by anything is static."""
    if type(a) is Int and type(b) is Int and a >= 0 < b:  # the common case
        return STATIC[(a | 0) // (b | 0)]
    static = type(a) is Int
    if static and (a == 0 and type(b) is not Int):
        return STATIC_ZERO
    return leaf_of(quotient(value_of(a), value_of(b)), static and type(b) is Int)


def trunc_mod(a: Leaf, b: Leaf) -> Leaf:
    """Return C++'s `a % b`, which has the sign of the dividend. Anything modulo a static 1 is a static 0."""
    static = type(a) is Int and type(b) is Int
    if not static and (is_zero(a) or (type(b) is Int and b in (1, -1))):
        return STATIC_ZERO
    x, y = value_of(a), value_of(b)
    if isinstance(x, int) and isinstance(y, int):
        return leaf_of(x - y * quotient(x, y), static)
    return divided(operator.mod, x, y)


def trunc_divmod(a: Leaf, b: Leaf) -> tuple[Leaf, Leaf]:
    """Return C++'s `a / b` and `a % b`."""
    if type(a) is int and type(b) is int and a >= 0 < b:  # the common case divides once
        return divmod(a, b)
    return trunc_div(a, b), trunc_mod(a, b)


def quotient(x: Value, y: Value) -> Value:
    """Return C++'s `x / y` of bare numbers or symbols, rounded toward zero."""
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            raise LayoutError("division by zero", {"dividend": x})
        return x // y if (x >= 0) == (y > 0) else -(-x // y)
    return divided(operator.floordiv, x, y)


def as_python_int(leaf: Leaf) -> int:
    """Return the int in a leaf; refuse a symbol."""
    if not isinstance(leaf, int):
        raise CoordinateError(f"this operation needs a known number, got {leaf}")
    return int(leaf)


@lru_cache(maxsize=4096)
def _is_index_kind(kind: type) -> bool:
    """Return whether a class is a class of integers, such as numpy's, that are treated as run-time integers."""
    return issubclass(kind, Integral) and hasattr(kind, "__index__") and not issubclass(kind, (bool, Int))


def as_leaf(x: Any) -> Any:
    """Convert a size, stride or coordinate that a user wrote to a leaf.

    Raises:
        InvalidTypeError: x is neither an integer nor a stride, but a boolean, a float or a string, for example.
        InvalidValueError: x is an integer beyond the range of sizes.
    """
    kind: Any = type(x)
    if kind is Int or kind is int:
        if not MIN_INTEGER <= x <= MAX_INTEGER:
            check_magnitude(int(x), "a size, stride or coordinate")
        return x
    if _is_index_kind(kind):
        number = operator.index(x)
        return number if not number >> 128 else check_magnitude(number, "a size, stride or coordinate")
    if hasattr(kind, "with_value") or (hasattr(kind, "as_tuple") and hasattr(kind, "__rmul__")):
        return x  # a basis element, or a sum of them
    if isinstance(x, Int):
        return STATIC[int(x)]
    if is_bool(x):
        raise InvalidTypeError(f"a size, stride or coordinate must be an integer, not the bool {given(x)}")
    if is_symbolic(x):
        return _as_symbol(x)
    if hasattr(kind, "__index__"):
        try:
            number = operator.index(x)
        except Exception:  # a numpy array has __index__, which works for a single integer only; a foreign one may fail
            raise InvalidTypeError(f"expected an integer, got {kind.__name__} {given(x)}") from None
        return check_magnitude(number, "a size, stride or coordinate")
    if isinstance(x, (Number, Sequence, dict, set, type, slice)) or x is None or kind.__module__ == "numpy":
        hint = {list: "shapes and strides are tuples", slice: "in a coordinate, None selects a whole mode"}.get(kind)
        if kind is str and ":" in x:
            hint = PARSE_READS
        raise InvalidTypeError(f"expected an integer, got {kind.__name__} {given(x)}", hint=hint)
    if hasattr(kind, "__rmul__") and hasattr(kind, "__add__"):  # an `IntegerModule`; `__getattr__` can't fake this
        return x
    raise InvalidTypeError(f"expected an integer or a stride, got {kind.__name__}; a stride x needs int * x and x + x")


def _as_symbol(x: sympy.Expr) -> Value:
    """Convert a sympy expression to a leaf; a known number becomes an int."""
    if is_symbolic_size(x):
        return x
    if getattr(x, "is_Integer", False):
        return check_magnitude(int(x), "a size, stride or coordinate")
    if never_an_integer(x):
        raise InvalidTypeError(f"expected an integer, got {given(x)}")
    for number in largest_integers(x):
        check_magnitude(number, f"a number in the size or stride {type(x).__name__}(...)")
    return x


def are_numbers(tree: object, depth: int = 0) -> TypeGuard[IntTuple]:
    """Return whether a plain tree holds only known numbers in the range of sizes: the common case, which needs no
    conversion.

    >>> are_numbers((4, (2, Int(8)))), are_numbers((4, True))
    (True, False)
    """
    if type(tree) is not tuple:
        tree = (tree,)
    elif depth > MAX_DEPTH:
        return False
    for x in tree:  # a third of the time of min and max, and every shape and coordinate passes here
        if type(x) is int or type(x) is Int:
            if x >> 128 and not MIN_INTEGER <= x <= MAX_INTEGER:  # 0 for nearly all numbers
                return False
        elif type(x) is not tuple or not are_numbers(x, depth + 1):
            return False
    return True


def _converted(tree: Shaped | Coordinate, leaf: Callable[[Shaped | Coordinate], Tree], depth: int = 0) -> Tree:
    """Return a plain tree with `leaf` applied to every leaf. A named tuple and a shape of PyTorch are tuples too."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    if depth > MAX_DEPTH:
        raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")
    return tuple([_converted(x, leaf, depth + 1) if isinstance(x, tuple) else leaf(x) for x in tree])


def as_leaves(tree: Shaped | Tree) -> Tree:
    """Convert a shape, stride or coordinate that a user wrote to a plain tree of leaves.

    Raises:
        InvalidTypeError: `as_leaf` refuses a leaf.
        InvalidValueError: the tuple has more than `MAX_DEPTH` levels.
    """
    return tree if are_numbers(tree) else _converted(tree, as_leaf)


def coordinate(tree: Shaped | Coordinate) -> Tree:
    """Convert a coordinate to a tree of leaves. An element of a coordinate tensor (any object with `as_tuple`), at any
    depth, becomes the tuple of its numbers."""
    return tree if are_numbers(tree) else _converted(tree, _as_coordinate)


def _as_coordinate(x: Shaped | Coordinate) -> Tree:
    kind: Any = type(x)
    if _is_index_kind(kind) or not hasattr(kind, "as_tuple"):
        return as_leaf(x)  # type: ignore[no-any-return]
    return as_leaves(x.as_tuple())  # type: ignore[union-attr]


class _StaticTexts(dict[int, str]):
    """A mapping from static integers to their printed text. It stores the text of every `Int` in `STATIC`."""

    def __missing__(self, number: int) -> str:
        return f"_{number.real}"


_STATIC_TEXTS: Final = _StaticTexts({n: f"_{n}" for n in STATIC})


def tree_text(tree: Tree) -> str:
    """Return the text that C++ prints for a tree: `(a,b)`, without blanks, and `()` for an empty tuple.

    >>> tree_text((4, (Int(2), Int(1))))
    '(4,(_2,_1))'
    """
    if type(tree) is not tuple:
        return leaf_text(tree)
    parts = []
    for x in tree:
        kind = type(x)
        parts.append(f"{x}" if kind is int else _STATIC_TEXTS[x] if kind is Int else tree_text(x))  # type: ignore[index]
    return "(" + ",".join(parts) + ")"


def leaf_text(leaf: Leaf) -> str:
    """Return the text that C++ prints for a leaf. A number with more digits than Python prints is shortened."""
    if isinstance(leaf, int) and not MIN_RESULT <= leaf <= MAX_RESULT:
        return f"{'_' if type(leaf) is Int else ''}{integer_text(leaf)}"
    return str(leaf)


def mode_text(shape: Tree, stride: Tree) -> str:
    """Return the text of shape:stride, as a layout prints it."""
    return f"{tree_text(shape)}:{tree_text(stride)}"
