"""Types of arguments and results: shapes, strides, coordinates and tilers, and the underscore `_`.

    IntTuple        (4,(2,3))            a shape or coordinate that an operation returns
    Shape           (4,(2,3)), (n,4)     a shape that a user passes: integers or symbols
    Coordinate      (1,_), 5             a coordinate of a layout; `_` or None keeps a mode
    Tiler           (2,_), 4:2           a tile for each mode
    Tree, Leaf      (_1@0,4)             strides, and the values that the algebra computes with

sympy has no type annotations. A type checker that does not read sympy's source treats a symbol as `Any`.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

if TYPE_CHECKING:
    import sympy


class Underscore:
    """CuTe's `_`, which keeps a mode when it is used in a coordinate. `None` has the same meaning there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Underscore)

    def __hash__(self) -> int:
        return hash(None)


underscore = Underscore()

Value: TypeAlias = "int | sympy.Expr"
"""A bare number: known, or a symbolic expression."""


class Leaf(Protocol):
    """The operations that `Int`, int, sympy expressions and the strides of every integer module have."""

    def __add__(self, other: Any, /) -> Leaf: ...
    def __mul__(self, other: Any, /) -> Leaf: ...
    def __rmul__(self, other: Any, /) -> Leaf: ...


Tree: TypeAlias = Leaf | tuple["Tree", ...]
"""A leaf, or a tuple of trees."""

IntTuple: TypeAlias = int | tuple["IntTuple", ...]
"""A shape or coordinate that an operation returns to users; a symbolic size is a sympy expression."""


class Expression(Protocol):
    """A sympy expression."""

    @property
    def free_symbols(self) -> AbstractSet[Hashable]: ...


class AsTuple(Protocol):
    """An element of a coordinate tensor: an `ArithTuple`."""

    def as_tuple(self) -> Tree: ...


IntCoordinate: TypeAlias = "SupportsIndex | Expression | AsTuple | tuple[IntCoordinate, ...]"
"""A coordinate of numbers only."""

Coordinate: TypeAlias = "SupportsIndex | sympy.Expr | AsTuple | Underscore | tuple[Coordinate, ...] | None"
"""A coordinate that a user passes; `_` and None keep a mode."""

Shape: TypeAlias = "SupportsIndex | sympy.Expr | tuple[Shape, ...]"
"""A shape that a user passes."""


class LayoutLike(Protocol):
    """A layout, a composed layout or a tensor."""

    @property
    def shape(self) -> IntTuple: ...
    @property
    def stride(self) -> Tree: ...


Tiler: TypeAlias = "SupportsIndex | sympy.Expr | LayoutLike | Underscore | tuple[Tiler, ...] | None"
"""A tile, given by its size or layout; a tuple has one for each mode, and `_` keeps a mode."""

Shaped: TypeAlias = "SupportsIndex | sympy.Expr | AsTuple | LayoutLike | tuple[Shaped, ...]"
"""An object with a shape: a layout or tensor, or the shape itself."""
