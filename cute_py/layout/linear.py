"""The F2 view of a layout: each offset bit is an XOR of coordinate bits.

    (4,8):(8,1)     offset = i0*8 ^ i1*16 ^ j0*1 ^ j1*2 ^ j2*4        one column per coordinate bit, lowest first

A layout is linear over F2 if all its sizes are powers of two and no two of its steps have a bit in common. Then no
addition carries, and + is the same as XOR. Every swizzle is linear, so a swizzled layout is linear if the layout inside
it is linear. In contrast to layouts, any two linear maps can be composed, two maps are equal if and only if their
columns are equal, and the inverse of a swizzled layout is a single map.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from cute_py.argument_checks import expect, expect_integer, expect_integers, wrong_type
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.layout.arguments import IntCoordinate, LayoutLike, Tree
from cute_py.layout.coalesce import coalesced
from cute_py.layout.composed import ComposedLayout, OffsetFunction
from cute_py.layout.layout import Layout, coprofile_of, has_numbers, make
from cute_py.layout.leaf import STATIC, Int, as_leaves, is_symbolic, tree_text, value_of
from cute_py.layout.offsets import MAX_ELEMENTS, domain_size, has_module_strides, integer_axes, offsets
from cute_py.layout.recast import memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, map_leaves

if TYPE_CHECKING:
    import numpy
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """An F2-linear map: offset = origin ^ (XOR of columns[k] over the set bits k of the colexicographic coordinate).

    `shape` has powers of two at its leaves; `columns` has one offset per coordinate bit, lowest bit first.

    >>> view = linear(Layout((Int(2), Int(4)), (Int(4), Int(1))))
    >>> view.columns, view(5)
    ((4, 1, 2), 6)
    """

    shape: Tree
    columns: tuple[int, ...]
    origin: int = 0

    def __post_init__(self) -> None:
        shape = as_leaves(self.shape)
        sizes = [expect_integer(value_of(s), "a size", 1) for s in leaves(shape)]
        if any(s & (s - 1) for s in sizes):
            raise InvalidValueError(f"the shape is {given(self.shape)}; its sizes must be powers of 2")
        bits = sum(s.bit_length() - 1 for s in sizes)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "columns", expect_integers(self.columns, "columns", 0, count=bits))
        object.__setattr__(self, "origin", expect_integer(self.origin, "the origin", 0))

    def __call__(self, coord: IntCoordinate) -> int:
        index = expect_integer(Layout(self.shape)(coord), "the index of a coordinate", 0)
        if index >> len(self.columns):
            raise CoordinateError(f"the coordinate {given(coord)} is outside the domain", {"shape": given(self.shape)})
        return self.origin ^ combined(self.columns, index)

    def matrix(self) -> NDArray[numpy.uint8]:
        """Return a uint8 array (offset bits, coordinate bits), where entry [r, k] is bit r of column k."""
        rows = max([c.bit_length() for c in (*self.columns, self.origin)], default=0)
        out = np.zeros((rows, len(self.columns)), np.uint8)
        for k, column in enumerate(self.columns):
            out[:, k] = [column >> r & 1 for r in range(rows)]
        return out

    def rank(self) -> int:
        """Return the rank over F2, which equals the number of columns if the map is injective."""
        return len(independent(self.columns))

    def compose(self, other: LinearLayout) -> LinearLayout:
        """Return the map `self(other(coordinate))`. The offsets of `other` must be coordinates of `self`.

        Raises:
            LayoutError: an offset of `other` is outside the domain of `self`.
        """
        expect(other, LinearLayout, "the inner map")
        if any(c >> len(self.columns) for c in (*other.columns, other.origin)):
            raise LayoutError(
                "values of the inner map are outside the domain of the outer map", {"bits": len(self.columns)}
            )
        columns = tuple([combined(self.columns, c) for c in other.columns])
        return LinearLayout(other.shape, columns, combined(self.columns, other.origin) ^ self.origin)

    def inverse(self) -> LinearLayout:
        """Return the map from offsets to coordinates. The map must have origin 0 and be one-to-one onto [0, 2**n).

        Raises:
            LayoutError: the map is not one-to-one onto the n-bit offsets.
        """
        n = len(self.columns)
        if self.origin or any(c >> n for c in self.columns) or self.rank() != n:
            raise LayoutError(
                f"the map is not a bijection of {n}-bit offsets",
                {"columns": self.columns, "origin": self.origin},
            )
        rows = [(self.columns[k], 1 << k) for k in range(n)]
        for bit in range(n):
            pivot = next(i for i in range(bit, n) if rows[i][0] >> bit & 1)
            rows[bit], rows[pivot] = rows[pivot], rows[bit]
            value, tag = rows[bit]
            rows = [(v ^ value, t ^ tag) if i != bit and v >> bit & 1 else (v, t) for i, (v, t) in enumerate(rows)]
        return LinearLayout(1 << n, tuple(tag for _, tag in rows))

    def to_layout(self) -> Layout | ComposedLayout:
        """Return the map as a static Layout, or as a swizzled ComposedLayout, with one leaf per run of bits.

        Raises:
            LayoutError: no layout, with or without a swizzle, equals this map.
        """
        plain = self._plain(self.columns)
        if plain is not None and not self.origin:
            return plain
        bits = max([c.bit_length() for c in (*self.columns, self.origin)], default=0)
        for swizzle in _swizzles(bits):
            inner = self._plain(tuple([swizzle.of(c) for c in self.columns]))
            if inner is not None:
                start = swizzle.of(self.origin)
                if not start & _union([swizzle.of(c) for c in self.columns]):
                    return ComposedLayout(swizzle, Int(start), inner)
        if plain is not None and not self.origin & _union(self.columns):
            return ComposedLayout(Swizzle(0, 4, 3), Int(self.origin), plain)
        raise LayoutError("no layout, with or without a swizzle, equals this F2 map", {"columns": self.columns})

    def _plain(self, columns: tuple[int, ...]) -> Layout | None:
        if not _disjoint(columns):
            return None
        bits = iter(columns)

        def mode(size: int) -> Layout:
            own = tuple([STATIC[next(bits)] for _ in range(size.bit_length() - 1)])
            return make(*coalesced((STATIC[2],) * len(own), own))

        parts = map_leaves(mode, self.shape)  # type: ignore[arg-type]
        return make(map_leaves(lambda part: part.shape, parts), map_leaves(lambda part: part.stride, parts))


def _swizzles(bits: int) -> list[Swizzle]:
    """Return all swizzles that act within this number of bits, the smallest first."""
    return [
        Swizzle(b, m, s)
        for b in range(1, bits + 1)
        for m in range(bits)
        for s in [*range(b, bits), *range(-b, -bits, -1)]
        if m + b + abs(s) <= bits
    ]


def _union(columns: Iterable[int]) -> int:
    return functools.reduce(operator.or_, columns, 0)


def _disjoint(columns: Sequence[int]) -> bool:
    """Return whether no two columns have a bit in common."""
    return sum(c.bit_count() for c in columns) == _union(columns).bit_count()


def combined(columns: Sequence[int], bits: int) -> int:
    """Return the XOR of the columns that the set bits of `bits` select.

    >>> combined((4, 1, 2), 0b101)
    6
    """
    return functools.reduce(operator.xor, [c for k, c in enumerate(columns) if bits >> k & 1], 0)


def independent(candidates: Iterable[int], besides: Iterable[int] = ()) -> tuple[int, ...]:
    """Return the candidates, in order, that are not in the F2 span of `besides` and the earlier candidates.

    >>> independent((1, 2, 3, 4), besides=(2,))
    (1, 4)
    """
    known = tuple(besides)
    basis: list[int] = []
    found = []
    for k, vector in enumerate((*known, *candidates)):
        rest = vector
        for b in basis:
            rest = min(rest, rest ^ b)
        if rest:
            basis.append(rest)
            if k >= len(known):
                found.append(vector)
    return tuple(found)


def eliminated(pairs: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Reduce each (vector, label) by the earlier rows; return the nonzero rows, and the labels of vectors that become
    0."""
    rows: list[tuple[int, int]] = []
    vanished = []
    for vector, label in pairs:
        for value, held in rows:
            if vector ^ value < vector:
                vector, label = vector ^ value, label ^ held
        if vector:
            rows.append((vector, label))
        else:
            vanished.append(label)
    return rows, vanished


def coefficients(vector: int, basis: Sequence[int]) -> int | None:
    """Return bits c with `combined(basis, c) == vector`; None if the vector is outside the span of the basis. Vectors
    of the basis that depend on earlier ones get the bit 0.

    >>> coefficients(6, (4, 1, 2)), coefficients(8, (4, 1, 2))
    (5, None)
    """
    rows, _ = eliminated((b, 1 << k) for k, b in enumerate(basis))
    found = 0
    for value, tag in sorted(rows, reverse=True):
        if vector ^ value < vector:
            vector, found = vector ^ value, found ^ tag
    return None if vector else found


def kernel(basis: Sequence[int], images: Sequence[int]) -> tuple[int, ...]:
    """Return a basis of the kernel of a linear map, which is given by the images of a basis.

    >>> kernel((1, 2, 4), (3, 3, 1))
    (3,)
    """
    return tuple(eliminated(zip(images, basis, strict=True))[1])


def linear(layout: Layout | ComposedLayout) -> LinearLayout:
    """Return the F2 view of a layout, or of a swizzled layout, with known power-of-two sizes.

    Raises:
        LayoutError: a size is not a power of two, a stride is negative, or two steps have a bit in common.

    >>> linear(ComposedLayout(Swizzle(1, 0, 2), Int(0), Layout((Int(4), Int(2))))).columns
    (1, 2, 5)
    """
    view = _view(layout)
    if isinstance(view, str):
        raise LayoutError(f"this function has no F2 view, because {view}", {"layout": layout})
    return view


def _view(layout: OffsetFunction) -> LinearLayout | str:
    """Return the F2 view, or the reason why the layout has none, as a string."""
    if isinstance(layout, ComposedLayout):
        return _composed_view(layout)
    if not isinstance(layout, Layout):
        raise wrong_type("linear takes a layout", layout)
    shape, stride = _known(layout)
    columns: list[int] = []
    for s, d in zip(leaves(shape), leaves(stride), strict=True):
        if s < 1 or s & (s - 1):
            return f"the size {s} is not a power of 2"
        if d < 0 and s > 1:
            return f"the stride {d} is negative"
        columns += [d << k for k in range(s.bit_length() - 1)]
    if not _disjoint(columns):
        return f"two strides of {layout} share a bit, so their sum carries"
    return LinearLayout(shape, tuple(columns))


def _known(layout: Layout) -> tuple[Tree, Tree]:
    """Return the shape and the stride with bare integers as leaves."""
    shape, stride = (map_leaves(value_of, tree) for tree in (layout.shape, layout.stride))
    for value in (*leaves(shape), *leaves(stride)):
        if type(value) is not int:
            raise InvalidTypeError(f"an F2 view needs known integers, got {value}")
    return shape, stride


def _composed_view(layout: ComposedLayout) -> LinearLayout | str:
    inner = _view(layout.inner)
    if isinstance(inner, str):
        return inner
    start = value_of(layout._offset)
    if type(start) is not int or start < 0:
        return f"the offset is {tree_text(layout._offset)}; must be a known integer of at least 0"
    if start and (inner.origin or start & _union(inner.columns)):
        return f"the offset {start} shares a bit with a stride, so their sum carries"
    origin = inner.origin ^ start
    if isinstance(layout.outer, Swizzle):
        apply = layout.outer.of
        return LinearLayout(inner.shape, tuple([apply(c) for c in inner.columns]), apply(origin))
    if not isinstance(layout.outer, (Layout, ComposedLayout)):
        return f"the outer function {layout.outer} is not known to be linear"
    outer = _view(layout.outer)
    if isinstance(outer, str):
        return outer
    if any(c >> len(outer.columns) for c in (*inner.columns, origin)):
        return "the inner layout has values outside the domain of the outer layout"
    return outer.compose(LinearLayout(inner.shape, inner.columns, origin))


def same_function(a: LayoutLike, b: LayoutLike) -> bool:
    """Return whether two layouts have the same size, and the same offset at every integer coordinate.

    The result is exact. The function compares plain layouts, and layouts under the same swizzle, by their normal form:
    it coalesces them in time proportional to the rank, and basis strides axis by axis. It compares F2-linear functions
    by their columns, and all others by their arrays of offsets, up to the first difference. The profiles of the shapes
    may differ, and it makes no difference which numbers are static. Layouts with symbols are compared for all positive
    sizes: they are the same if their normal forms are equal, and different if a search finds sizes where they differ.

    Raises:
        InvalidTypeError: there is a symbol, and one operand is not a plain layout. LayoutError: for two layouts with
            symbols, the normal forms differ and the search finds no difference. InvalidValueError: no rule applies, and
            the first 2**28 offsets of two larger layouts are equal.

    >>> same_function(Layout((2, 4), (1, 2)), Layout(8))
    True
    >>> sw = Swizzle(2, 0, 2)
    >>> same_function(ComposedLayout(sw, Int(0), Layout(16)), Layout(16))
    False
    >>> import sympy
    >>> m, k = sympy.symbols("m k", positive=True, integer=True)
    >>> same_function(Layout((8, m, k), (1, 8, 8 * m)), Layout((8 * m, k)))
    True
    """
    a, b = (memory_layout(thing, "call") for thing in (a, b))
    if isinstance(a, Layout) and isinstance(b, Layout) and (symbols_of(a) or symbols_of(b)):
        return _for_all_sizes(a, b)
    decided = _by_algebra(a, b)
    return _by_arrays(a, b) if decided is None else decided


def _by_algebra(a: LayoutLike, b: LayoutLike) -> bool | None:
    """Compare two layouts by their normal forms or columns; return None if neither comparison applies."""
    if isinstance(a, Layout) and isinstance(b, Layout):
        if has_numbers(a) and has_numbers(b):
            return _normal(a) == _normal(b)
        if has_module_strides(a) or has_module_strides(b) or coprofile_of(a.stride) != coprofile_of(b.stride):
            return None
        return [_merged(*axis) for axis in integer_axes(a)] == [_merged(*axis) for axis in integer_axes(b)]
    if isinstance(a, ComposedLayout) and isinstance(b, ComposedLayout) and (a.outer, a.offset) == (b.outer, b.offset):
        inner = _by_algebra(a.inner, b.inner)
        # A swizzle is one-to-one, so it keeps every difference.
        if inner or (inner is not None and isinstance(a.outer, Swizzle)):
            return inner
    x, y = (_view(t) if _of_numbers(t) else None for t in (a, b))
    if isinstance(x, LinearLayout) and isinstance(y, LinearLayout):
        return (x.columns, x.origin) == (y.columns, y.origin)
    return None


def _of_numbers(thing: LayoutLike) -> TypeGuard[Layout | ComposedLayout]:
    while isinstance(thing, ComposedLayout):
        thing = thing.inner
    return isinstance(thing, Layout) and has_numbers(thing)


def _normal(layout: Layout) -> tuple[Tree, Tree]:
    return _merged(layout.shape, layout.stride)


def _merged(shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    """Return the normal form: the coalesced layout with static numbers."""
    sizes, steps = ([STATIC[value_of(x)] for x in leaves(tree)] for tree in (shape, stride))
    return (0, 0) if 0 in sizes else coalesced(tuple(sizes), tuple(steps))


TRIED: Final = (1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 127, 128, 129, 130, 256, 257, 300)
"""Values to try for each symbol in the search for sizes where two layouts differ."""
COMPARED: Final = 1 << 16
"""Largest layout, in elements, whose offsets are compared one by one for one choice of values."""


def symbols_of(layout: Layout) -> set[Any]:
    """Return the sympy symbols in a layout's sizes and strides.

    >>> symbols_of(Layout((4, 8)))
    set()
    """
    found = [leaf.free_symbols for leaf in (*leaves(layout.shape), *leaves(layout.stride)) if is_symbolic(leaf)]
    return set().union(*found)


def _for_all_sizes(a: Layout, b: Layout) -> bool:
    """Return True if the normal forms are equal expressions, False if the layouts differ for some values."""
    one, other = (_symbolic_normal(thing) for thing in (a, b))
    if len(one) == len(other) and all(
        _equal(x, y) for p, q in zip(one, other, strict=True) for x, y in zip(p, q, strict=True)
    ):
        return True
    symbols = sorted(symbols_of(a) | symbols_of(b), key=str)
    tried = 0
    for shift in range(len(TRIED)):
        for step in (0, 1, 3, 7):
            values = {x: TRIED[(shift + step * i) % len(TRIED)] for i, x in enumerate(symbols)}
            left, right = a.subs(values), b.subs(values)
            same = _by_algebra(left, right)
            if same is None and max(domain_size(left), domain_size(right)) <= COMPARED:
                same = _by_arrays(left, right)
            if same is False:
                return False
            tried += same is not None
    raise LayoutError(
        "same_function can't decide whether the layouts are equal for all sizes; they were equal for all "
        f"{tried} choices of sizes that it tried",
        {"a": a, "b": b, "symbols": ", ".join(map(str, symbols))},
    ).of_rule("undecided")


def _equal(x: Any, y: Any) -> bool:
    import sympy

    return bool(x == y) or sympy.simplify(sympy.sympify(x) - sympy.sympify(y)) == 0


def _symbolic_normal(layout: Layout) -> list[tuple[Any, Any]]:
    """Return (size, stride) of all modes whose size is not 1; merge neighbours if the expressions allow it."""
    out: list[tuple[Any, Any]] = []
    for s, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        extent, step = value_of(s), value_of(d)
        if extent == 1:
            continue
        if out and _equal(out[-1][0] * out[-1][1], step):
            out[-1] = out[-1][0] * extent, out[-1][1]
        else:
            out.append((extent, step))
    return out


FIRST_PIECE: Final = 1 << 12
PIECE: Final = MAX_ELEMENTS // 256
"""Largest number of offsets that are compared at a time. Most layouts that differ do so near the start."""


def _by_arrays(a: LayoutLike, b: LayoutLike) -> bool:
    count = domain_size(a)
    if count != domain_size(b):
        return False
    start = 0
    while start < count:
        if start >= MAX_ELEMENTS:
            text = f"the first {start} of {count} offsets are equal; at most {MAX_ELEMENTS} are compared"
            raise InvalidValueError(text, {"a": a, "b": b})
        stop = min(start + min(max(start, FIRST_PIECE), PIECE), count)
        coords = np.arange(start, stop)
        from_a, from_b = (offsets(t, coords, of="call") for t in (a, b))
        if from_a.shape != from_b.shape or not np.array_equal(from_a, from_b):
            return False
        start = stop
    return True
