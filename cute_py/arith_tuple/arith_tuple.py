"""ArithTuple and ScaledBasis: coordinates that can be added and scaled, and strides that move along one axis.

    (1,2) + (10,20) = (11,22)      3 * (1,(2,3)) = (3,(6,9))      (1,2) + (0,0,5) = (1,2,5)

    E(1)      1@1       (0,1,0,...)
    E(0, 1)   1@1@0     ((0,1,0,...),0,...)      position 1 inside position 0; printed innermost first
    5 * E(1)  5@1       (0,5,0,...)

Modes that a tuple does not have count as zero, at every depth. A static 0 can be added to any tuple, and changes
nothing. Like CuTe C++, cute_py refuses to add any other integer, because it has no position in the tuple.

Two coordinates are equal, and have the same hash, if they have the same modes with equal values. As with C++'s tuples,
it makes no difference which values are static: ArithTuple(1,2), the tuple (1,2) and E(0) + 2*E(1) are equal, and
(1,2,0) differs from them, because it has one more mode. A basis element equals the tuple that has static zeros before
its position: 2*E(1) + 3*E(1) = 5*E(1) = (0,5). The sum of basis elements is an arithmetic tuple: 3*E(0) + 4*E(1) =
(3,4). A layout whose strides are basis elements maps coordinates to coordinates. TMA needs such layouts, because its
instructions take coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, overload

from cute_py.argument_checks import (
    MAX_INTEGER,
    MIN_INTEGER,
    Immutable,
    expect_integer,
    expect_integers,
    is_integer,
    wrong_type,
)
from cute_py.arith_tuple.ratio import Ratio, may_know
from cute_py.errors import (
    CoordinateError,
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    StaticAssertError,
    given,
    integer_text,
    shortened,
)
from cute_py.layout.arguments import LayoutLike, Leaf, Shape, Tree
from cute_py.layout.int_tuple import ceil_div_of
from cute_py.layout.layout import MOST_MODES, Layout
from cute_py.layout.leaf import MAX_DEPTH, Int, as_leaf, is_symbolic, leaf_text, trunc_div
from cute_py.layout.trees import as_tree, at, check_depth

if TYPE_CHECKING:
    import sympy

__all__ = ["ArithTuple", "E", "ScaledBasis", "as_arith_tuple", "basis_get", "basis_value", "make_basis_like"]


_ZERO = Int(0)

Scale: TypeAlias = "int | Ratio | sympy.Expr"
"""A number without a mode."""

Element: TypeAlias = "Scale | ArithTuple"
"""An element of an arithmetic tuple."""

Operand: TypeAlias = "Scale | ArithTuple | ScaledBasis | tuple[Shape, ...]"
"""A value that can be added to a coordinate. The only number among them is a static 0."""


class ArithTuple(Immutable):
    """A nested tuple of numbers that can be added and scaled. It is immutable and hashable.

    >>> print(ArithTuple(1, Int(2)) + ArithTuple(10, Int(20)))
    (11,_22)
    >>> print(ArithTuple(1, (2, 3)) - (0, (1, 1)), 2 * ArithTuple(1, 2))
    (1,(1,2)) (2,4)
    """

    __slots__ = ("depth", "items")
    __array_ufunc__ = None  # numpy integers leave the arithmetic to this class

    items: tuple[Element, ...]
    depth: int
    """Levels of tuples, at most `MAX_DEPTH`."""

    def __init__(self, *items: Operand) -> None:
        held: list[Element] = []
        x: Any
        depth = 1
        for x in items:
            kind = type(x)
            if not ((kind is int or kind is Int) and MIN_INTEGER <= x <= MAX_INTEGER):
                x = _element(x)
                if type(x) is ArithTuple and x.depth >= depth:
                    depth = x.depth + 1
            held.append(x)
        if depth > MAX_DEPTH + 1:
            raise InvalidValueError(f"a tuple is nested deeper than {MAX_DEPTH} levels")
        object.__setattr__(self, "items", tuple(held))
        object.__setattr__(self, "depth", depth)

    @property
    def is_static(self) -> bool:
        """Whether all leaves are static."""
        return all(x.is_static if isinstance(x, ArithTuple) else isinstance(x, Int) for x in self.items)

    def __getitem__(self, mode: int) -> Element:
        index = mode if type(mode) is int else expect_integer(mode, "a mode")
        if not -len(self.items) <= index < len(self.items):
            raise CoordinateError(f"mode {integer_text(index)} of {self} does not exist", {"rank": len(self.items)})
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.items)

    def as_tuple(self) -> Tree:
        """Return the leaves as plain nested tuples.

        >>> ArithTuple(1, (2, 3)).as_tuple()
        (1, (2, 3))
        """
        return tuple([x.as_tuple() if isinstance(x, ArithTuple) else x for x in self.items])

    def __add__(self, other: Operand) -> ArithTuple:
        return self._with(other, "+")

    __radd__ = __add__

    def __sub__(self, other: Operand) -> ArithTuple:
        return self._with(other, "-")

    def __rsub__(self, other: Operand) -> ArithTuple:
        return (-self)._with(other, "-") if has_no_position(other) else (-self).__add__(other)

    def __neg__(self) -> ArithTuple:
        return ArithTuple(*[-x for x in self.items])

    def __mul__(self, n: Scale) -> ArithTuple:
        return ArithTuple(*[scale(n, self) * x for x in self.items])

    __rmul__ = __mul__

    def _with(self, other: Operand, sign: str) -> ArithTuple:
        """Compute self + other or self - other. A static 0 changes nothing; other integers are refused."""
        if type(other) is ScaledBasis and sign == "+" and len(other.modes) == 1:
            mode = other.modes[0]
            items = [*self.items, *[_ZERO] * (mode + 1 - len(self.items))]
            if not isinstance(items[mode], ArithTuple):
                items[mode] = items[mode] + other.value
                return ArithTuple(*items)
        if isinstance(other, Int) and other == 0:
            return self
        if has_no_position(other):
            raise refused_integer(f"Arithmetic tuple op{sign} error!", "tuple", self, other)
        if not isinstance(other, (tuple, ArithTuple)) and not hasattr(type(other), "as_arith_tuple"):
            if may_know(other, "__radd__"):
                return NotImplemented  # type: ignore[no-any-return]
            raise wrong_type("only coordinates can be added to an arithmetic tuple", other, {"tuple": self})
        right = _element(other)
        right = right if sign == "+" else -right
        return _combined(self, right, (self, sign, right), ())  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArithTuple):
            return self.items == other.items
        if isinstance(other, tuple):
            try:
                return bool(self.as_tuple() == other)
            except (ValueError, MemoryError):  # an array among its elements has no single truth value
                return False
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __str__(self) -> str:
        return "(" + ",".join([_leaf_text(x) for x in self.items]) + ")"

    def __repr__(self) -> str:
        return f"ArithTuple({', '.join(_shown(x) for x in self.items)})"

    def __reduce__(self) -> tuple[type[ArithTuple], tuple[Element, ...]]:
        return (ArithTuple, self.items)


def _leaf_text(x: Element) -> str:
    return str(x) if isinstance(x, (ArithTuple, Ratio)) else leaf_text(as_leaf(x))


def _shown(x: Element) -> str:
    return repr(x.as_tuple()) if isinstance(x, ArithTuple) else repr(x)


def has_no_position(x: Operand) -> TypeGuard[Scale]:
    """Whether an operand is a number, which has no position: an integer, a symbol or a ratio."""
    return isinstance(x, Ratio) or is_integer(x) or is_symbolic(x)


def scale(n: Scale, element: ArithTuple | ScaledBasis) -> Scale:
    """Convert `n` to a leaf that can multiply a coordinate or basis element.

    Raises:
        InvalidTypeError: n is not an integer, a ratio or a symbol; the message shows both operands.
    """
    if isinstance(n, (int, Ratio)) and not isinstance(n, bool):
        return n
    if is_symbolic(n) or is_integer(n):
        return as_leaf(n)
    shown = n if hasattr(type(n), "as_arith_tuple") else given(n)
    raise InvalidTypeError(f"{element} can be scaled only by integers, got {type(n).__name__} {shown}")


def refused_integer(headline: str, name: str, element: Operand, integer: Scale) -> LayoutError:
    """Make the error for adding an integer to a coordinate. A static integer gives a StaticAssertError, as in C++."""
    facts = {
        name: element,
        "integer": given(integer) if type(integer) is int else shortened(str(integer)),
        "rule": "a static 0, the zero of all modes, is the only number that can be added to a basis element",
    }
    if isinstance(integer, Int):
        return StaticAssertError(headline, facts)
    return LayoutError(headline, facts)


def _element(x: Operand) -> Element:
    if isinstance(x, tuple):
        check_depth(x)
        return ArithTuple(*x)
    if isinstance(x, ArithTuple):
        return x
    if hasattr(type(x), "as_arith_tuple"):
        return _element(x.as_arith_tuple())  # type: ignore[union-attr]
    if isinstance(x, Ratio):
        return x
    if has_no_position(x):
        return as_leaf(x)
    raise wrong_type("an arithmetic tuple must hold integers and tuples", x)


def _combined(a: Element, b: Element, whole: tuple[Element, str, Element], path: tuple[int, ...]) -> Element:
    """Add a and b mode by mode. Missing modes are static 0, and a static 0 can be added to a whole subtree."""
    if isinstance(a, ArithTuple) and isinstance(b, ArithTuple):
        rank = max(len(a), len(b))
        pairs = zip((*a.items, *(_ZERO,) * (rank - len(a))), (*b.items, *(_ZERO,) * (rank - len(b))), strict=True)
        return ArithTuple(*[_combined(x, y, whole, (*path, i)) for i, (x, y) in enumerate(pairs)])
    if not isinstance(a, ArithTuple) and not isinstance(b, ArithTuple):
        return a + b
    for zero, kept in ((a, b), (b, a)):
        if isinstance(zero, Int) and zero == 0:
            return kept
    left, sign, right = whole
    facts = {
        "left": left,
        "right": -right if sign == "-" else right,
        "mode": ".".join(map(str, path)),
        "there": f"{a} in left, {-b if sign == '-' else b} in right",
        "rule": "an integer and a tuple can't be added, except for a static 0",
    }
    if isinstance(a, Int) or isinstance(b, Int):
        raise StaticAssertError("Arithmetic tuple op+ error!", facts)
    raise LayoutError("the coordinates have different profiles", facts)


@overload
def as_arith_tuple(value: tuple[Shape, ...] | ArithTuple | ScaledBasis) -> ArithTuple: ...
@overload
def as_arith_tuple(value: int) -> int: ...
def as_arith_tuple(value: Operand) -> Element:
    """Convert a tuple, basis element or arithmetic tuple to an `ArithTuple`; an integer stays an integer.

    Raises:
        InvalidTypeError: the value is none of these.

    >>> print(as_arith_tuple((1, (2, 3))))
    (1,(2,3))
    """
    return _element(value)


class ScaledBasis(Immutable):
    """A coordinate with `value` at the hierarchical position `modes` and zeros elsewhere; immutable and hashable.

    Args:
        value: an integer, static or not, a ratio or a symbol.
        modes: the position, outermost mode first; at most 64 indices, each 0 to 4095, because the equal tuple has an
            entry for every earlier mode.
    Raises:
        InvalidTypeError, InvalidValueError: value or modes is not of this form.

    >>> print(8 * E(1))         # a run-time 8, as C++ prints 8*E<1>{}
    8@1
    >>> print(E(0, 1))          # static one; innermost mode first, as CuTe prints it
    _1@1@0
    """

    __slots__ = ("modes", "value")
    __array_ufunc__ = None  # numpy integers leave the arithmetic to this class

    value: Any
    modes: tuple[int, ...]

    def __init__(self, value: Scale | ScaledBasis, *modes: int) -> None:
        if isinstance(value, ScaledBasis):
            value, modes = value.value, (*modes, *value.modes)
        if hasattr(type(value), "as_tuple"):
            raise InvalidTypeError(f"the scale of a basis element must be an integer, got the coordinate {value}")
        if not isinstance(value, Ratio):
            value = as_leaf(value)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "modes", _checked_modes(modes))

    @property
    def is_static(self) -> bool:
        return isinstance(self.value, (Int, Ratio))

    def at(self, modes: tuple[int, ...], value: Scale) -> ScaledBasis:
        """Return a basis element with this value at the position `modes`."""
        return ScaledBasis(value, *(modes if type(modes) is tuple else expect_integers(modes, "modes")))

    def with_value(self, value: Scale) -> ScaledBasis:
        """Return the basis element with another value at the same position."""
        if (type(value) is Int or type(value) is int) and MIN_INTEGER <= value <= MAX_INTEGER:
            made = object.__new__(ScaledBasis)
            object.__setattr__(made, "value", value)
            object.__setattr__(made, "modes", self.modes)
            return made
        return ScaledBasis(value, *self.modes)

    def as_arith_tuple(self) -> ArithTuple:
        """Return the coordinate as an arithmetic tuple, with static zeros before its position: (0,0,1) for E(2).

        >>> print(E(2).as_arith_tuple(), (5 * E(1, 2)).as_arith_tuple())
        (_0,_0,_1) (_0,(_0,_0,5))
        """
        result: ArithTuple = self.value
        for mode in reversed(self.modes):
            result = ArithTuple(*[_ZERO] * mode, result)
        return result

    def __mul__(self, n: Scale) -> ScaledBasis:
        return self.with_value(self.value * scale(n, self))

    __rmul__ = __mul__

    def __neg__(self) -> ScaledBasis:
        return ScaledBasis(-self.value, *self.modes)

    def __abs__(self) -> ScaledBasis:
        return ScaledBasis(abs(self.value), *self.modes)

    def __add__(self, other: Operand) -> ArithTuple:
        return self._with(other, "+")

    __radd__ = __add__

    def __sub__(self, other: Operand) -> ArithTuple:
        return self._with(other, "-")

    def __rsub__(self, other: Operand) -> ArithTuple:
        return -self._with(other, "-")

    def _with(self, other: Operand, sign: str) -> ArithTuple:
        """Compute self + other or self - other."""
        if isinstance(other, Int) and other == 0:
            return self  # type: ignore[return-value]
        mine: Any = self.as_arith_tuple()
        if isinstance(other, ScaledBasis) and not other.modes:  # a scaled E() is a number
            other = other.value
        if isinstance(mine, ArithTuple):
            if has_no_position(other):
                raise refused_integer(f"ScaledBasis op{sign} error!", "basis", self, other)
        elif isinstance(other, (tuple, ArithTuple)):
            raise refused_integer(f"ScaledBasis op{sign} error!", "tuple", other, mine)
        elif not has_no_position(other):  # a scaled E() is a number
            raise wrong_type(f"only numbers and basis elements can be added to {self}", other)
        elif not isinstance(other, Ratio):
            other = as_leaf(other)
        try:
            return mine + other if sign == "+" else mine - other  # type: ignore[no-any-return]
        except CuteError:
            raise
        except TypeError:  # neither operand supports the other's type
            raise wrong_type(f"only integers, tuples and basis elements can be added to {self}", other) from None

    def ceil_div(self, n: Scale) -> ScaledBasis:
        """Return the basis element with its value divided by n, rounded up."""
        return ScaledBasis(ceil_div_of(self._dividend("ceil_div"), scale(n, self)), *self.modes)

    def safe_div(self, n: Scale) -> ScaledBasis:
        """Return the basis element with its value divided by n. If both are static, n must divide the value."""
        if isinstance(self.value, Int) and isinstance(n, Int) and n and int(self.value) % int(n):
            raise StaticAssertError("Static safe_div requires t % u == 0", {"basis": self, "divisor": n})
        return ScaledBasis(trunc_div(self._dividend("safe_div"), scale(n, self)), *self.modes)

    def _dividend(self, operation: str) -> Leaf:
        """Return the value as a leaf. A ratio is refused, because C++ can't divide one."""
        if isinstance(self.value, Ratio):
            raise InvalidTypeError(f"{operation} needs an integer scale, but {self} has the scale {self.value}")
        return as_leaf(self.value)  # type: ignore[no-any-return]

    def __floordiv__(self, n: Scale) -> ScaledBasis:
        return self.safe_div(n)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScaledBasis):  # different modes give different tuples
            return bool(self.modes == other.modes and self.value == other.value)
        if isinstance(other, ArithTuple):
            return bool(self.modes) and self.as_arith_tuple() == other
        if isinstance(other, (int, tuple)):
            try:
                return bool(self._as_tuple() == other)
            except ValueError:  # an array in the tuple, which is no coordinate
                return False
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._as_tuple())

    def _as_tuple(self) -> Tree:
        """Return the coordinate as a plain tuple; without modes, the value."""
        result: Tree = self.value
        for mode in reversed(self.modes):
            result = (0,) * mode + (result,)
        return result

    def __str__(self) -> str:
        value = str(self.value) if isinstance(self.value, Ratio) else leaf_text(as_leaf(self.value))
        return value + "".join([f"@{mode}" for mode in reversed(self.modes)])

    def __repr__(self) -> str:
        if isinstance(self.value, Int) and self.value == 1:
            return f"E({', '.join(map(str, self.modes))})"
        return f"ScaledBasis({', '.join([repr(self.value), *map(str, self.modes)])})"

    def __reduce__(self) -> tuple[type[ScaledBasis], tuple[Scale, ...]]:
        return (ScaledBasis, (self.value, *self.modes))


def _checked_modes(modes: tuple[int, ...]) -> tuple[int, ...]:
    for mode in modes:
        if type(mode) is not int or not 0 <= mode < MOST_MODES:
            modes = expect_integers(modes, "the basis element's modes", 0, MOST_MODES - 1)
            break
    if len(modes) > MAX_DEPTH:
        raise InvalidValueError(f"a basis element has {len(modes)} nested modes; must have at most {MAX_DEPTH}")
    return modes


def E(*modes: int) -> ScaledBasis:
    """Return the unit basis element at a position, outermost mode first; `E()` is a static 1.

    >>> print(E(1), E(1, 0), E())
    _1@1 _1@0@1 _1
    """
    return ScaledBasis(Int(1), *modes) if modes else Int(1)  # type: ignore[return-value]


def basis_value(basis: ScaledBasis | int) -> int:
    """Return the value (scale) of a basis element; for an integer, the integer itself.

    Raises:
        InvalidTypeError: the argument is neither.

    >>> print(basis_value(Int(7) * E(2)))
    _7
    """
    return basis.value if isinstance(basis, ScaledBasis) else as_leaf(basis)  # type: ignore[no-any-return]


@overload
def basis_get(basis: ScaledBasis | int, tree: Layout) -> Layout: ...
@overload
def basis_get(basis: ScaledBasis | int, tree: Tree) -> Tree: ...
def basis_get(basis: ScaledBasis | int, tree: Layout | Tree) -> Layout | Tree:
    """Return the part of a tuple or layout at a basis element's position; for an integer, the whole object.

    >>> basis_get(E(1, 0), (4, (5, 6)))
    5
    """
    if not isinstance(basis, ScaledBasis):
        as_leaf(basis)  # accepts only integers
        return tree
    if isinstance(tree, Layout):
        for mode in basis.modes:
            tree = tree[mode]
        return tree
    return at(as_tree(tree), basis.modes)


def make_basis_like(shape: Shape | LayoutLike) -> Tree:
    """Return a tree with the profile of a shape; each leaf is the unit basis element of its position.

    >>> print(Layout((4, (2, 3)), make_basis_like((4, (2, 3)))))
    (4,(2,3)):(_1@0,(_1@0@1,_1@1@1))
    """

    def bases(tree: Tree, path: tuple[int, ...]) -> Tree:
        if type(tree) is tuple:
            return tuple([bases(t, (*path, i)) for i, t in enumerate(tree)])
        as_leaf(tree)  # accepts only sizes
        return E(*path)

    like: Any = shape
    tree = like.shape if hasattr(type(shape), "domain") or hasattr(type(shape), "_sliced") else like
    return bases(as_tree(tree), ())
