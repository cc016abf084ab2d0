"""Leaves: the numbers at the ends of shapes, strides and coordinates.

CuTe C++ separates a compile-time integer (`Int<4>`, printed `_4`) from a run-time one (`4`), and its algebra branches
on the difference: a static 1 is dropped, a run-time 1 is kept; static modes merge, run-time modes do not.

Users write `Int(4)` for the first and plain `4`, numpy integers or sympy expressions for the second. Inside the
layout package the representation is reversed, so that the algebra reads like the mathematics and runs at the speed of
plain integers:

    what                 users see            inside the layout package
    static integer       Int(4)               4
    run-time integer     4                    Dynamic(4)
    symbolic size        sympy expression     Dynamic(expression)
    any other stride     the object itself    the object itself        (E(0), an XOR stride, ...)

`to_internal` and `to_public` convert. A `Dynamic` compares equal to nothing, because C++ knows nothing about it at
compile time; its arithmetic follows CuTe's rules for mixed operands (a static 0 times anything is a static 0). So
(4,_2):(_1,4) is held as (Dynamic(4), 2) and (1, Dynamic(4)), coalesce finds no static product that equals the second
stride, and the two modes stay; in (_4,_2):(_1,_4) it finds 4 * 1 == 4, and they become _8:_1. Layouts whose leaves are
all `Int` or int, as most are, need none of these objects: see `known`.

sympy simplifies each expression that it builds, which takes time in proportion to its size, and a millisecond and more
for a function (`floor`, `Min`, `Mod`) of another one, where it finds nothing. Every mode that a composition steps over
wraps the expression of the mode before. So it is asked about sums, products and powers of symbols alone, of up to
`MOST_SIMPLIFIED` operations; other expressions are built as they are.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Number
from typing import TYPE_CHECKING, Any, Final, Protocol, SupportsIndex, TypeAlias, TypeGuard, overload, runtime_checkable

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, PARSE_READS, check_magnitude
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, given, integer_text
from cute_py.layout.arguments import Coordinate, IntTuple, Leaf, Shaped, Tree, Value

if TYPE_CHECKING:
    import sympy


def never_an_integer(x: sympy.Basic) -> bool:
    """Is a sympy object a fraction, an infinity, nan, a relation, a matrix, anything that can't be an integer?

    >>> import sympy
    >>> never_an_integer(sympy.Rational(1, 2)), never_an_integer(sympy.oo), never_an_integer(sympy.Symbol("n"))
    (True, True, False)
    """
    if not hasattr(x, "as_coeff_Mul") or getattr(x, "is_Matrix", False):  # as_coeff_Mul: of expressions alone
        return True
    if getattr(x, "is_Boolean", False) or x.is_Float or x.is_Rational or getattr(x, "is_integer", False) is False:
        return True
    return bool(x.is_number and not x.is_finite)


@lru_cache(maxsize=4096)
def largest_integers(x: sympy.Basic) -> tuple[int, ...]:
    """The least and the greatest of the integers in an expression; of a bare symbol none.

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
"""Operations in the operands, together, up to which sympy simplifies a result."""

_NODES_OF_AN_OPERATION = 5


def is_short(*operands: Value) -> bool:
    """May sympy simplify an expression of these: of few sums, products and powers? Looks at a bounded part of them.

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
    """x // y or x % y, as `operation` says; at least one of them a symbol.

    Raises:
        LayoutError: y is 0; InvalidTypeError: a stride of another module.
    """
    if isinstance(y, int) and y == 0:
        raise LayoutError("division by zero", {"dividend": x})
    import sympy

    try:
        if operation is operator.mod:
            return sympy.Mod(x, y, evaluate=is_short(x, y))
        ratio = sympy.sympify(x) / y
    except (TypeError, sympy.SympifyError):
        raise InvalidTypeError(f"can't divide {x} by {y}; must be integers") from None
    divisor_left = any(factor.is_Pow and factor.exp.is_negative for factor in sympy.Mul.make_args(ratio))
    if not divisor_left and ratio.is_integer:
        return ratio
    return sympy.floor(ratio, evaluate=isinstance(y, int) and is_short(x))


def least(x: Value, y: Value) -> Value:
    """The smaller of two bare numbers or symbols, at least one of them a symbol."""
    import sympy

    if is_short(x, y):
        return sympy.Min(x, y)
    first, second = sorted((sympy.sympify(x), sympy.sympify(y)), key=functools.cmp_to_key(sympy.Basic.compare))
    # Not Min(evaluate=False), which counts every node of both to order them.
    return first if first == second else sympy.Basic.__new__(sympy.Min, first, second)


def divides(y: Value, x: Value) -> sympy.Basic:
    """The relation x % y == 0. Of a remainder by symbols that x lacks sympy finds nothing simpler."""
    import sympy

    simple = is_short(x, y) and (isinstance(y, int) or not y.free_symbols.isdisjoint(sympy.sympify(x).free_symbols))
    return sympy.Eq(sympy.Mod(x, y, evaluate=simple), 0, evaluate=simple)


def divides_or_exceeds(y: Value, x: Value) -> sympy.Basic:
    """The relation x % y == 0 or x < y."""
    import sympy

    short = is_short(x, y)
    return sympy.Or(divides(y, x), sympy.Lt(x, y, evaluate=short), evaluate=short)


def substituted(
    x: sympy.Basic, values: Mapping[sympy.Basic, Value], known: dict[sympy.Basic, sympy.Basic]
) -> sympy.Basic:
    """An expression with symbols replaced by `values`. Numbers go in all at once, into each part that occurs in
    several places once: sympy replaces symbol after symbol, and simplifies (sometimes wrongly) what lies between.

    Args:
        known: parts already replaced by these values; new ones are added.
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
"""The largest magnitude of a number that an operation may come to; inputs end at `MAX_INTEGER`."""

MIN_RESULT = -MAX_RESULT

MAX_DEPTH = 64
"""Deepest nesting of tuples that is accepted; real layouts stay below 8."""


@runtime_checkable
class IntegerModule(Protocol):
    """What a stride must support: integer * stride, stride + stride, and str().

    Two optional attributes: `modes`, the hierarchical position of a basis element (with `value`, its
    scale), and `is_static` (False where equality of two objects is known only at run time).
    """

    def __rmul__(self, n: Any, /) -> Leaf: ...

    def __add__(self, other: Any, /) -> Leaf: ...


class Int(int):
    """A static integer, C++'s `Int<n>`; prints `_n`. Arithmetic of two of them is static.

    >>> print(Int(4), Int(4) * Int(2), Int(4) * 2)
    _4 _8 8
    >>> print(Int(0) * 7)         # CuTe knows at compile time that this is 0
    _0
    """

    __slots__ = ()

    def __new__(cls, value: SupportsIndex = 0) -> Int:
        if isinstance(value, (bool, float, str)) or not hasattr(value, "__index__"):
            raise InvalidTypeError(f"Int takes an integer, got {given(value)}")
        try:
            number = operator.index(value)
        except TypeError:  # a class, a symbol, or an array, which have __index__ and no integer
            raise InvalidTypeError(f"Int takes an integer, got {given(value)}") from None
        return int.__new__(cls, check_magnitude(number, "a static integer"))

    def __repr__(self) -> str:
        return f"Int({self.real})"

    def __str__(self) -> str:
        return f"_{self.real}"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec[-1:] in tuple("bcdoxXneEfFgG%") else format(str(self), spec)

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

    def __neg__(self) -> Int:
        return int.__new__(Int, -int(self))

    def __pos__(self) -> Int:
        return self

    def __abs__(self) -> Int:
        return int.__new__(Int, abs(int(self)))


Int.__repr__ = lru_cache(maxsize=4096)(Int.__repr__)  # type: ignore[method-assign]
"""Of a few numbers again and again: texts are looked up in half of the time that it takes to write them."""

KNOWN: Final = (int, Int)
"""The types of known numbers, as users see them."""


def check_result(number: int) -> int:
    """The number itself, if an operation may come to it.

    Raises:
        LayoutError: it is beyond `MAX_RESULT`.
    """
    if not MIN_RESULT <= number <= MAX_RESULT:
        raise LayoutError(f"a result is {integer_text(number)}; must be at most 2**256 in magnitude")
    return number


class _Statics(dict[int, Int]):
    """Plain integers -> `Int`. Those that sizes and strides mostly are have been made, which takes longer than to find
    them; the others are made each time."""

    def __missing__(self, number: int) -> Int:
        return int.__new__(Int, number if MIN_RESULT <= number <= MAX_RESULT else check_result(number))


STATIC: Final = _Statics({n: int.__new__(Int, n) for n in (*range(4097), *[1 << k for k in range(13, 65)])})

STATIC_ZERO: Final = STATIC[0]
STATIC_ONE: Final = STATIC[1]


def _combine(op: Callable[[int, int], int], left: int, right: int) -> int:
    """`left op right` in Python's own arithmetic; static if both are, or if a static 0 decides it."""
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


def is_symbolic(value: object) -> TypeGuard[sympy.Expr]:
    """A sympy expression? Does not import sympy."""
    kind: Any = type(value)
    return is_symbolic_kind(kind)


@lru_cache(maxsize=4096)
def is_symbolic_kind(kind: type) -> bool:
    """A class of sympy's expressions? Does not import sympy."""
    bases = [str(base.__module__) for base in kind.__mro__]  # that of f in sympy.Function("f")(1) is None
    return any(name.partition(".")[0] == "sympy" for name in bases) and hasattr(kind, "free_symbols")


def is_symbolic_size(x: object) -> bool:
    """A sympy expression that is a size or stride as it is: an integer for all that is known, and no known one?

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
    """Is a public leaf a symbol that the algebra takes as it is? (Or a known number, 0 or more.)"""
    kind = type(leaf)
    if kind is int or kind is Int:
        return 0 <= leaf <= MAX_INTEGER  # type: ignore[no-any-return]
    return is_symbolic_size(leaf)


@lru_cache(maxsize=4096)
def is_symbol_kind(kind: type) -> bool:
    """A class of sympy's bare symbols, which are sizes unless they are said to be none?"""
    return is_symbolic_kind(kind) and bool(getattr(kind, "is_Symbol", False))


class Dynamic:
    """A number known only at run time in C++'s eyes: `value` is an int or a sympy expression."""

    value: Value

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Dynamic({self.value!r})"

    def __add__(self, other: Integer) -> Integer:
        return Dynamic(self.value + (other.value if type(other) is Dynamic else other))

    __radd__ = __add__

    def __mul__(self, other: Integer) -> Integer:
        if type(other) is Dynamic:
            return Dynamic(self.value * other.value)
        return Dynamic(self.value * other) if other else 0

    __rmul__ = __mul__

    def __abs__(self) -> Dynamic:
        return Dynamic(abs(self.value))


Integer: TypeAlias = "int | Dynamic"
"""An internal integer."""


def trunc_div(a: Leaf, b: Leaf) -> Integer:
    """C++'s `a / b` of internal leaves: rounds toward zero; a static 0 stays static."""
    if type(a) is int:
        if type(b) is int:
            return quotient(a, b)
        if a == 0:
            return 0
    return Dynamic(quotient(value_of(a), value_of(b)))


def trunc_mod(a: Leaf, b: Leaf) -> Integer:
    """C++'s `a % b` of internal leaves: the sign of the dividend; anything modulo a static 1 is a static 0."""
    if type(a) is int and type(b) is int:
        return a - b * quotient(a, b)
    if (type(a) is int and a == 0) or (type(b) is int and b in (1, -1)):
        return 0
    x, y = value_of(a), value_of(b)
    if isinstance(x, int) and isinstance(y, int):
        return Dynamic(x - y * quotient(x, y))
    return Dynamic(divided(operator.mod, x, y))


def trunc_divmod(a: Leaf, b: Leaf) -> tuple[Integer, Integer]:
    """C++'s `a / b` and `a % b` of internal leaves."""
    x, y = value_of(a), value_of(b)
    known = type(x) is int and type(y) is int
    if known and (type(a) is Dynamic or (type(b) is Dynamic and a != 0)):  # the common case divides once
        q = quotient(x, y)
        return Dynamic(q), 0 if type(b) is int and b in (1, -1) else Dynamic(x - y * q)
    return trunc_div(a, b), trunc_mod(a, b)


def quotient(x: Value, y: Value) -> Value:
    """C++'s `x / y` of bare numbers and symbols: rounds toward zero."""
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            raise LayoutError("division by zero", {"dividend": x})
        return x // y if (x >= 0) == (y > 0) else -(-x // y)
    return divided(operator.floordiv, x, y)


def value_of(leaf: Tree) -> Any:
    """The number in an internal leaf: int or sympy expression."""
    return leaf.value if type(leaf) is Dynamic else leaf


def as_python_int(leaf: Leaf) -> int:
    """The int in an internal leaf; symbolic leaves are refused."""
    value = leaf.value if type(leaf) is Dynamic else leaf
    if not isinstance(value, int):
        raise CoordinateError(f"needs a known number, got {to_public(leaf)}")
    return int(value)


def is_static(leaf: Leaf) -> bool:
    """Known at compile time? (internal leaf)"""
    if type(leaf) is int:
        return True
    if type(leaf) is Dynamic:
        return False
    return bool(getattr(leaf, "is_static", True))


def sign(leaf: Integer) -> Integer:
    """-1, 0 or 1 of an internal leaf. A symbol's sign is taken as positive: sizes and strides of unknown sign have
    no layout in C++ either."""
    if isinstance(leaf, Dynamic):
        value = leaf.value
        if isinstance(value, int):
            return Dynamic((value > 0) - (value < 0))
        return Dynamic(-1 if value.could_extract_minus_sign() and not value.is_positive else 1)
    return (leaf > 0) - (leaf < 0)


def times(n: Leaf, leaf: Leaf) -> Leaf:
    """`n * leaf` with `n` an internal integer and `leaf` any internal stride."""
    if type(leaf) is int or type(leaf) is Dynamic:
        return n * leaf
    return to_internal(to_public(n) * leaf)


def plus(a: Leaf, b: Leaf) -> Leaf:
    """`a + b` of internal strides or of their sums; a static 0 is the zero of every module."""
    if type(a) is int and a == 0:
        return b
    if type(b) is int and b == 0:
        return a
    if type(a) in (int, Dynamic) and type(b) in (int, Dynamic):
        return a + b
    return to_internal(to_public(a) + to_public(b))


def same(a: Leaf, b: Leaf) -> bool:
    """Equal, and known to be so at compile time."""
    if type(a) is int and type(b) is int:
        return a == b
    return is_static(a) and is_static(b) and type(a) is type(b) and bool(a == b)


def internal_leaf(x: Any) -> Any:
    """One public leaf -> internal. Booleans, floats and strings are refused."""
    kind = type(x)
    if kind is Int or kind is int:
        if not MIN_INTEGER <= x <= MAX_INTEGER:
            check_magnitude(int(x), "a size, stride or coordinate")
        return x.real if kind is Int else Dynamic(x)
    if kind is Dynamic:
        return x
    if hasattr(kind, "with_value") or (hasattr(kind, "as_tuple") and hasattr(kind, "__rmul__")):
        return x  # a basis element, or a sum of them
    if isinstance(x, Int):
        return int(x)
    if isinstance(x, bool) or kind.__name__ in ("bool_", "bool"):
        raise InvalidTypeError(f"a boolean is no size, stride or coordinate: {given(x)}")
    if is_symbolic(x):
        if is_symbolic_size(x):
            return Dynamic(x)
        if getattr(x, "is_Integer", False):
            return Dynamic(check_magnitude(int(x), "a size, stride or coordinate"))
        if never_an_integer(x):
            raise InvalidTypeError(f"not an integer: {given(x)}")
        for number in largest_integers(x):
            check_magnitude(number, f"a number in the size or stride {type(x).__name__}(...)")
        return Dynamic(x)
    if hasattr(x, "__index__"):
        try:
            return Dynamic(check_magnitude(operator.index(x), "a size, stride or coordinate"))
        except TypeError:  # a numpy array has __index__, and only a single integer uses it
            raise InvalidTypeError(f"expected an integer, got {kind.__name__} {given(x)}") from None
    if isinstance(x, (Number, Sequence, dict, set, type)) or x is None or kind.__module__ == "numpy":
        hint = "shapes and strides are tuples" if kind is list else None
        if kind is str and ":" in x:
            hint = PARSE_READS
        raise InvalidTypeError(f"expected an integer, got {kind.__name__} {given(x)}", hint=hint)
    if isinstance(x, IntegerModule):
        return x
    raise InvalidTypeError(f"{kind.__name__} is neither an integer nor a stride (it needs int * x and x + x)")


def to_internal(tree: Shaped | Tree, depth: int = 0, changed: list[Tree] | None = None) -> Tree:
    """A public tree of integers or strides -> internal.

    Args:
        changed: receives every leaf or tuple that `to_public` returns as something else (a numpy integer as an int).
    """
    if type(tree) is tuple:
        if depth > MAX_DEPTH:
            raise InvalidValueError(f"nested deeper than {MAX_DEPTH} tuples")
        out: list[Tree] = []
        x: Any
        for x in tree:
            kind = type(x)
            if kind is Int and MIN_INTEGER <= x <= MAX_INTEGER:
                out.append(x.real)  # the plain int, without a call
            elif kind is int and MIN_INTEGER <= x <= MAX_INTEGER:
                out.append(Dynamic(x))
            else:
                out.append(to_internal(x, depth + 1, changed))
        return tuple(out)
    if isinstance(tree, tuple):  # a class of its own: a named tuple, a shape of PyTorch
        leaf = to_internal(tuple(tree), depth)
    else:
        leaf = internal_leaf(tree)
    if changed is not None and type(tree) is not Int and value_of(leaf) is not tree:
        changed.append(tree)  # type: ignore[arg-type]
    return leaf


def inner_tree(tree: Tree) -> Tree:
    """A public tree that was checked before -> internal."""
    if type(tree) is tuple:
        return tuple([x.real if type(x) is Int else Dynamic(x) if type(x) is int else inner_tree(x) for x in tree])
    return tree.real if type(tree) is Int else Dynamic(tree) if type(tree) is int else internal_leaf(tree)


def coordinate(tree: Shaped | Coordinate) -> Tree:
    """A public coordinate -> internal, as `to_internal`; an element of a coordinate tensor (anything with `as_tuple`)
    is the tuple of its numbers, at any depth."""
    if hasattr(tree, "as_tuple"):
        tree = tree.as_tuple()  # type: ignore[union-attr]
    if type(tree) is tuple:
        return to_internal(tuple([x.as_tuple() if hasattr(x, "as_tuple") else x for x in tree]))
    return to_internal(tree)


@overload
def to_public(tree: tuple[Tree, ...]) -> tuple[IntTuple, ...]: ...
@overload
def to_public(tree: Leaf) -> int: ...
def to_public(tree: Tree) -> Tree:
    """An internal tree -> what users see: `Int` for static leaves, plain int or sympy for the others."""
    if type(tree) is tuple:
        out: list[Tree] = []
        for x in tree:
            if type(x) is int:
                out.append(STATIC[x])
            elif type(x) is Dynamic and type(x.value) is int and MIN_RESULT <= x.value <= MAX_RESULT:
                out.append(x.value)  # as below, without a call
            else:
                out.append(to_public(x))
        return tuple(out)
    if type(tree) is int:
        return STATIC[tree]
    if type(tree) is Dynamic:
        return check_result(tree.value) if type(tree.value) is int else tree.value
    return tree


def leaf_text(leaf: Leaf) -> str:
    """An internal leaf as C++ prints it."""
    if type(leaf) is int:
        return f"_{leaf}" if MIN_RESULT <= leaf <= MAX_RESULT else f"_{integer_text(leaf)}"
    if type(leaf) is Dynamic:
        return integer_text(leaf.value) if type(leaf.value) is int else str(leaf.value)
    return str(leaf)


def tree_text(tree: Tree) -> str:
    """An internal tree as C++ prints it: `(a,b)`, no blanks, `()` if empty.

    >>> tree_text((4, (Dynamic(2), 1)))
    '(_4,(2,_1))'
    """
    if type(tree) is tuple:
        return "(" + ",".join([tree_text(x) for x in tree]) + ")"
    return leaf_text(tree)


class _StaticTexts(dict[int, str]):
    """Static integers -> their texts; of those in `STATIC` they have been written."""

    def __missing__(self, number: int) -> str:
        return f"_{number.real}"


_STATIC_TEXTS: Final = _StaticTexts({n: f"_{n}" for n in STATIC})


def public_text(tree: Tree) -> str:
    """A public tree as C++ prints it.

    >>> public_text((4, (Int(2), Int(1))))
    '(4,(_2,_1))'
    """
    if type(tree) is not tuple:
        return str(tree)
    parts = []
    for x in tree:
        kind = type(x)
        parts.append(f"{x}" if kind is int else _STATIC_TEXTS[x] if kind is Int else public_text(x))  # type: ignore[index]
    return "(" + ",".join(parts) + ")"


def mode_text(shape: Tree, stride: Tree) -> str:
    """Internal shape and stride as a layout prints."""
    return f"{tree_text(shape)}:{tree_text(stride)}"


Recorder: TypeAlias = Callable[..., None]
"""Called with each step of an operation: its rule, then the internal numbers of the rule. Operations take a recorder,
None by default; `steps.steps` passes one that makes sentences."""
