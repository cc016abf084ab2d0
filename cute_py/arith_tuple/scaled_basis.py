"""ScaledBasis: a stride that moves along one coordinate axis.

    E(1)      1@1       (0,1,0,...)
    E(0, 1)   1@1@0     ((0,1,0,...),0,...)      position 1 inside position 0; printed innermost first
    5 * E(1)  5@1       (0,5,0,...)

Bases add up to arithmetic tuples: 3*E(0) + 4*E(1) = (3,4). A layout with such strides maps coordinates to
coordinates, which is what a TMA instruction takes.

A basis element equals, and hashes like, the arithmetic tuple that it is: 2*E(1) + 3*E(1) = 5*E(1) = (0,5).
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect_integers
from cute_py.arith_tuple.arith_tuple import ArithTuple, has_no_position, refused_integer, scale
from cute_py.arith_tuple.ratio import Ratio
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.coprofile import MOST_MODES
from cute_py.layout.int_tuple import ceil_div_of
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import MAX_DEPTH, Int, Tree, internal_leaf, leaf_text, public, trunc_div
from cute_py.layout.trees import at, check_depth


class ScaledBasis:
    """`value` at hierarchical position `modes`, zero everywhere else; immutable and hashable.

    Args:
        value: an integer, static or not, a ratio or a symbol.
        modes: outermost first; at most 64, each 0 to 4095, as the tuple has an entry for every mode before it.
    Raises:
        InvalidTypeError, InvalidValueError: a value or a mode that is none.

    >>> print(8 * E(1))         # a run-time 8, as C++ prints 8*E<1>{}
    8@1
    >>> print(E(0, 1))          # static one; innermost mode first, as CuTe prints it
    _1@1@0
    """

    __slots__ = ("modes", "value")
    __array_ufunc__ = None  # numpy integers leave the arithmetic to this class

    value: Any
    modes: tuple[int, ...]

    def __init__(self, value: Any, *modes: int) -> None:
        if isinstance(value, ScaledBasis):
            value, modes = value.value, (*modes, *value.modes)
        if hasattr(value, "as_tuple"):
            raise InvalidTypeError(f"the value of a basis element is an integer, got the coordinate {value}")
        if not isinstance(value, Ratio):
            value = public(internal_leaf(value))
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "modes", _checked_modes(modes))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ScaledBasis is immutable; can't set {name}")

    @property
    def is_static(self) -> bool:
        return isinstance(self.value, (Int, Ratio))

    def at(self, modes: tuple[int, ...], value: Any) -> ScaledBasis:
        """A basis element of the same module at another position."""
        return ScaledBasis(value, *(modes if type(modes) is tuple else expect_integers(modes, "modes")))

    def with_value(self, value: Any) -> ScaledBasis:
        """The same position, another scale."""
        return ScaledBasis(value, *self.modes)

    def as_arith_tuple(self) -> Any:
        """The arithmetic tuple with static zeros before it: E(2) is (0,0,1).

        >>> print(E(2).as_arith_tuple(), (5 * E(1, 2)).as_arith_tuple())
        (_0,_0,_1) (_0,(_0,_0,5))
        """
        result = self.value
        for mode in reversed(self.modes):
            result = ArithTuple(*[Int(0)] * mode, result)
        return result

    def __mul__(self, n: Any) -> Any:
        return ScaledBasis(self.value * scale(n, self), *self.modes)

    __rmul__ = __mul__

    def __neg__(self) -> ScaledBasis:
        return ScaledBasis(-self.value, *self.modes)

    def __abs__(self) -> ScaledBasis:
        return ScaledBasis(abs(self.value), *self.modes)

    def __add__(self, other: Any) -> Any:
        return self._with(other, "+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return -self._with(other, "-")

    def _with(self, other: Any, sign: str) -> Any:
        """self + other or self - other."""
        if isinstance(other, Int) and other == 0:
            return self
        if isinstance(other, ScaledBasis):
            other = other.as_arith_tuple()
        mine = self.as_arith_tuple()
        if isinstance(mine, ArithTuple):
            if has_no_position(other):
                raise refused_integer(f"ScaledBasis op{sign} error!", "basis", self, other)
        elif isinstance(other, (tuple, ArithTuple)):
            raise refused_integer(f"ScaledBasis op{sign} error!", "tuple", other, mine)
        elif not has_no_position(other):  # E() scaled: a number
            raise InvalidTypeError(f"only numbers are added to {self}, got {type(other).__name__} {given(other)}")
        elif not isinstance(other, Ratio):
            other = public(internal_leaf(other))
        return mine + other if sign == "+" else mine - other

    def ceil_div(self, n: Any) -> ScaledBasis:
        """The value divided, rounded up."""
        return ScaledBasis(public(ceil_div_of(self._divided("ceil_div"), internal_leaf(n))), *self.modes)

    def safe_div(self, n: Any) -> ScaledBasis:
        """The value divided; static numbers must divide evenly."""
        if isinstance(self.value, Int) and isinstance(n, Int) and n and int(self.value) % int(n):
            raise StaticAssertError("Static safe_div requires t % u == 0", {"basis": self, "divisor": n})
        return ScaledBasis(public(trunc_div(self._divided("safe_div"), internal_leaf(n))), *self.modes)

    def _divided(self, operation: str) -> Any:
        """The value as a dividend; of a ratio C++ has no quotient."""
        if isinstance(self.value, Ratio):
            raise InvalidTypeError(f"{operation} takes integers, and {self} has the scale {self.value}")
        return internal_leaf(self.value)

    def __floordiv__(self, n: Any) -> Any:
        return self.safe_div(n)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScaledBasis):  # of other modes, it has other modes as a tuple too
            return bool(self.modes == other.modes and self.value == other.value)
        if isinstance(other, ArithTuple):
            return bool(self.modes) and self.as_arith_tuple() == other
        if isinstance(other, (int, tuple)):
            return bool(self._as_tuple() == other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._as_tuple())

    def _as_tuple(self) -> Any:
        """The plain tuple; without modes the value."""
        result = self.value
        for mode in reversed(self.modes):
            result = (0,) * mode + (result,)
        return result

    def __str__(self) -> str:
        value = str(self.value) if isinstance(self.value, Ratio) else leaf_text(internal_leaf(self.value))
        return value + "".join([f"@{mode}" for mode in reversed(self.modes)])

    def __repr__(self) -> str:
        if isinstance(self.value, Int) and self.value == 1:
            return f"E({', '.join(map(str, self.modes))})"
        return f"ScaledBasis({', '.join([repr(self.value), *map(str, self.modes)])})"

    def __reduce__(self) -> Any:
        return (ScaledBasis, (self.value, *self.modes))


def _checked_modes(modes: tuple[Any, ...]) -> tuple[int, ...]:
    for mode in modes:
        if type(mode) is not int or not 0 <= mode < MOST_MODES:
            modes = expect_integers(modes, "the basis element's modes", 0, MOST_MODES - 1)
            break
    if len(modes) > MAX_DEPTH:
        raise InvalidValueError(f"a basis element of {len(modes)} modes within each other; must be at most {MAX_DEPTH}")
    return modes


def E(*modes: int) -> Any:
    """The unit basis element at a position, outermost mode first; `E()` is a static 1.

    >>> print(E(1), E(1, 0), E())
    _1@1 _1@0@1 _1
    """
    return ScaledBasis(Int(1), *modes) if modes else Int(1)


def basis_value(basis: Any) -> Any:
    """The scale of a basis element; an integer is its own.

    >>> print(basis_value(Int(7) * E(2)))
    _7
    """
    return basis.value if isinstance(basis, ScaledBasis) else basis


def basis_get(basis: Any, tree: Any) -> Any:
    """What a tuple, or a layout, has at the position of a basis element; an integer gives back the whole.

    >>> basis_get(E(1, 0), (4, (5, 6)))
    5
    """
    if not isinstance(basis, ScaledBasis):
        internal_leaf(basis)  # refuses what is no integer
        return tree
    check_depth(tree)
    if isinstance(tree, Layout):
        for mode in basis.modes:
            tree = tree[mode]
        return tree
    return at(tree, basis.modes)


def make_basis_like(shape: Tree) -> Tree:
    """The tree of unit basis elements of a shape's profile.

    >>> print(Layout((4, (2, 3)), make_basis_like((4, (2, 3)))))
    (4,(2,3)):(_1@0,(_1@0@1,_1@1@1))
    """

    def bases(tree: Tree, path: tuple[int, ...]) -> Tree:
        if type(tree) is tuple:
            return tuple([bases(t, (*path, i)) for i, t in enumerate(tree)])
        internal_leaf(tree)  # refuses what is no size
        return E(*path)

    tree = shape.shape if hasattr(shape, "domain") or hasattr(shape, "_shape") else shape
    check_depth(tree)
    return bases(tree, ())
