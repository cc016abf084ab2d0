"""Swizzle<B,M,S>: XOR B bits of an offset with the B bits that are S positions above them.

    0b xxx YYY xxx ZZZ xxxx        the M = 4 lowest bits are not changed (Sw<3,4,3>: ZZZ = bits 4..6, YYY = bits 7..9)
                   ^^^             Z ^= Y; a second application restores the offset

A swizzle is linear over F2. By itself it is not a layout; `composition(swizzle, layout)` gives the composed layout
`Sw<B,M,S> o 0 o layout`.

Slicing a swizzled layout fixes some of its modes. If the kept modes never change both bits of a pair that is XORed, the
swizzle only adds or subtracts constants: the slice is then a plain layout, and the signs of its strides depend on the
fixed modes. Otherwise the slice keeps the swizzle, and the fixed modes add to the offset in the middle.

    Sw<2,0,3> o 0 o (8,8):(8,1)  at row 3   ->   ((4,2)):((-1,4)), offset 27

If the fixed modes have run-time sizes or strides, which C++ does not compile, the slice keeps the swizzle. An offset
with both static and run-time bits, which C++ prints as `M_0|(8&8)=8`, is a plain int in cute_py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from cute_py.argument_checks import check_elements, check_magnitude, expect_integer, is_integer, wrong_type
from cute_py.errors import CompositionMismatchError, InvalidTypeError, LayoutError, StaticAssertError
from cute_py.layout.arguments import Coordinate, LayoutLike, Leaf, Tiler, Tree
from cute_py.layout.composed import ComposedLayout, Sliced, composed_of, slice_parts
from cute_py.layout.composition import compose_layouts, composition
from cute_py.layout.int_tuple import crd2idx_of, idx2crd_colex, product_of
from cute_py.layout.layout import Layout, domain_of, make, static
from cute_py.layout.leaf import (
    STATIC_ZERO,
    Int,
    as_leaf,
    as_leaves,
    as_python_int,
    leaf_of,
    plus,
    value_of,
)
from cute_py.layout.tiling import logical_product
from cute_py.layout.trees import dice_tree, leaves, slice_tree

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def _projection(bits: int, base: int, span: int, strides: tuple[int, int, int, int, int]) -> Layout:
    """Return a layout that scales the bit fields of an offset (low, Z or Y, between, Y or Z, high) by `strides`."""
    return make(static((1 << base, 1 << bits, 1 << (span - bits), 1 << bits, 1)), static(strides))


def _field_strides(bits: int, base: int, span: int) -> tuple[int, int, int, int, int]:
    return 1, 1 << base, 1 << (base + bits), 1 << (base + span), 1 << (base + span + bits)


def active_bits(swizzle: Swizzle, layout: Layout) -> int:
    """Return a mask of the Y and Z bits of a swizzle that the offsets of a static layout can have."""
    b, m, s = swizzle.bits, swizzle.base, abs(swizzle.shift)
    one, low, _, high, _ = _field_strides(b, m, s)
    only = compose_layouts(_projection(b, m, s, (0 * one, low, 0, high, 0)), layout)
    last = Int(as_python_int(product_of(only.shape)) - 1)
    return as_python_int(crd2idx_of(last, only.shape, only.stride))


def _mixed_offset(only: Layout, coord: Tree) -> tuple[int, int]:
    """Return the offset of the modes that a coordinate fixes, and a mask of the bits that are known only at run time.
    As in C++, a coordinate beyond the shape contributes only the bits that coordinates within it can have."""
    value = mask = 0
    natural = leaves(idx2crd_colex(coord, only.shape))
    for c, s, d in zip(natural, leaves(only.shape), leaves(only.stride), strict=True):
        reach = (int(s) - 1) * int(d)
        value ^= as_python_int(c) * int(d) & reach
        if type(c) is not Int:
            mask |= reach
    return value, mask


def _is_static(layout: Layout) -> bool:
    return all(type(x) is Int for x in (*leaves(layout.shape), *leaves(layout.stride)))


def _slices_to_layout(swizzle: Swizzle, anti: Layout, sliced: Layout) -> bool:
    """Return whether the swizzle can be dropped for kept modes with run-time numbers. C++ always drops it, whatever
    their values; cute_py keeps it if dropping it would change the function."""
    if not all(isinstance(x, int) for tree in (sliced.shape, sliced.stride) for x in leaves(tree)):
        return False
    layout = make(static(sliced.shape), static(sliced.stride))
    try:
        compose_layouts(anti, layout)
        active = active_bits(swizzle, layout)
    except LayoutError:
        return False
    return not active & ~swizzle.of(active)


def _most(modes: Sequence[tuple[int, int]], bits: int) -> int:
    """Return an upper bound on the sum of the lowest `bits` bits of all modes, which must have positive strides."""
    field = 1 << bits
    return sum(min((s - 1) * d, field - min(d & -d, field)) for s, d in modes)


def _adds_by_fields(swizzle: Swizzle, value: int, passed: int, sliced: Layout, decays: bool) -> bool:
    """Return whether the swizzle acts independently on the bits of `value` and of `sliced`.

    In C++, the swizzle reads one part of the fixed modes' offset, `value`, and the other part, `passed`, is added
    afterwards. C++ does not check whether a sum carries from one bit field to the next. A carry makes the slice a
    different function. This check excludes that, but also refuses some harmless overlaps of bits.
    """
    known = zip(*([value_of(x) for x in leaves(tree)] for tree in (sliced.shape, sliced.stride)), strict=True)
    moving = [(s, d) for s, d in known if s > 1 and d]
    if any(type(x) is not int or x < 0 for x in (value, passed, *(x for mode in moving for x in mode))):
        return False
    low, bits, span, yyy = swizzle.base, swizzle.bits, abs(swizzle.shift), swizzle.yyy_mask

    def fits(edge: int, numbers: Sequence[int]) -> bool:
        return sum(n % (1 << edge) for n in numbers) + _most(moving, edge) < 1 << edge

    if not decays:  # the passed part must not carry into a swizzled field
        return all(
            fits(edge, (value, passed))
            for edge, start in ((low, 0), (low + span, low + bits))
            if passed % (1 << edge) >> start
        )
    reached = [value, passed, *((1 << ((s - 1) * d).bit_length()) - (d & -d) for s, d in moving)]
    if not any(one & yyy for one in reached) and (not yyy or fits((yyy & -yyy).bit_length() - 1, (value, passed))):
        return True  # no Y bit is ever set: the swizzle does nothing
    taken = 0
    for one in reached:
        if taken & one & (yyy | swizzle.zzz_mask):
            return False
        taken |= one
    return all(fits(edge, (value, passed)) for edge in (low, low + bits, low + span, low + span + bits))


_MOST_FOLDED = 4096
"""Largest kept mode, in elements, that is checked one by one; with a longer mode the swizzle stays."""


def _folds(plain: Layout, sliced: Layout) -> bool:
    """Return whether composing `plain`, whose sizes are powers of two, with each kept mode gives the composed function.
    C++ does not check this, although a mode of 3 or 6 elements, for example, may cross a mode of `plain`."""
    low, whole = value_of(leaves(plain.shape)[0]), value_of(product_of(plain.shape))
    for s, d in zip(map(value_of, leaves(sliced.shape)), map(value_of, leaves(sliced.stride)), strict=True):
        if s & s - 1 == d & d - 1 == 0 or 0 <= (s - 1) * d < low or d % whole == 0:
            continue
        if s > _MOST_FOLDED:
            return False
        try:
            composition(plain, make(s, d), strict=True)
        except CompositionMismatchError:
            return False
        except LayoutError:
            return _is_static(sliced)  # the composition of all modes is refused, as in C++
    return True


def slice_swizzled(swizzle: Swizzle, coord: Coordinate, offset: Leaf, inner: Layout) -> Sliced:
    """Slice `swizzle o offset o inner` at a coordinate with `_`: return (sliced layout, offset)."""
    b, m, span = swizzle.bits, swizzle.base, abs(swizzle.shift)
    one, low, between, high, top = _field_strides(b, m, span)
    anti = _projection(b, m, span, (one, 0, between, 0, top))
    only = _projection(b, m, span, (0, low, 0, high, 0))

    sliced = make(slice_tree(coord, inner.shape), slice_tree(coord, inner.stride))
    diced = make(dice_tree(coord, inner.shape), dice_tree(coord, inner.stride))
    fixed = as_leaves(dice_tree(coord, coord))  # type: ignore[arg-type]

    def whole() -> Sliced:
        """Return the slice with the swizzle unchanged; a swizzle of 0 bits is dropped."""
        kept, left = slice_parts(coord, inner)
        there: Any = plus(offset, left)
        return (ComposedLayout(swizzle, there, kept), Int(0)) if b else (kept, there)

    if not _is_static(diced) or not (_is_static(sliced) or _slices_to_layout(swizzle, anti, sliced)):
        return whole()

    anti_layout = compose_layouts(anti, diced)
    only_layout = compose_layouts(only, diced)
    for s, d in zip(leaves(only_layout.shape), leaves(only_layout.stride), strict=True):
        reach = int(s) * int(d)
        if reach & (reach - 1):
            raise StaticAssertError("Requires pow2 shape*stride.", {"mode": f"{s}:{d}", "swizzle": swizzle})
    passed = crd2idx_of(fixed, anti_layout.shape, anti_layout.stride)
    value, mask = _mixed_offset(only_layout, fixed)
    start = as_python_int(offset)
    active = active_bits(swizzle, sliced)
    decays = not active & ~swizzle.of(active)

    natural = leaves(idx2crd_colex(fixed, diced.shape))
    inside = all(as_python_int(c) < n for c, n in zip(natural, leaves(diced.shape), strict=True))
    seen, there = swizzle.yyy_mask | swizzle.zzz_mask, as_python_int(crd2idx_of(fixed, diced.shape, diced.stride))
    if inside and (value, as_python_int(passed)) != (there & seen, there & ~seen):
        return whole()  # C++ splits steps such as 3 or 6 into bits
    if value & start or not _adds_by_fields(swizzle, value ^ start, as_python_int(passed), sliced, decays):
        return whole()
    value ^= start
    if type(offset) is not Int:
        mask = ~0

    def known(bit_value: int, bits: int) -> Leaf:
        """Return a number, which is static if no run-time bit affects it."""
        return leaf_of(bit_value, not mask & bits)

    if not decays:
        return ComposedLayout(swizzle, known(value, ~0), sliced), passed  # type: ignore[return-value]

    z, y = (low, high) if swizzle.shift > 0 else (high, low)
    lows: list[Tree] = []
    highs: list[Tree] = []
    for i in range(b):
        flip_z = known(z << i, y << i) if not value & (y << i) else known(-(z << i), y << i)
        flip_y = known((y + z if not value & (z << i) else y - z) << i, z << i)
        (lows if z < y else highs).append(flip_z)
        (highs if z < y else lows).append(flip_y)
    sizes = static((1 << m, (2,) * b, 1 << (span - b), (2,) * b, 1))
    plain = make(sizes, (Int(1), tuple(lows), Int(1 << (m + b)), tuple(highs), Int(top)))
    moved = known(swizzle.of(value), ~0)
    if not _folds(plain, sliced):
        return whole()
    return compose_layouts(plain, sliced), plus(moved, passed)  # type: ignore[return-value]


MAX_BITS = 128
"""Bits of the largest accepted offset (`argument_checks.MAX_INTEGER`); no swizzle acts on higher bits."""

_ONES = [(1 << n) - 1 for n in range(MAX_BITS + 1)]
"""The number whose n low bits are 1, for each n. A lookup takes a third of the time of computing it."""


def _checked_swizzle(bits: SupportsIndex, base: SupportsIndex, shift: SupportsIndex) -> tuple[int, int, int]:
    b, m, s = (
        expect_integer(value, f"Swizzle {name}", -MAX_BITS, MAX_BITS, "bits")
        for name, value in (("bits", bits), ("base", base), ("shift", shift))
    )
    if m < 0:
        raise StaticAssertError("MBase must be positive.", {"swizzle": f"Sw<{b},{m},{s}>", "MBase": m})
    if b < 0:
        raise StaticAssertError("BBits must be positive.", {"swizzle": f"Sw<{b},{m},{s}>", "BBits": b})
    if abs(s) < b:
        facts = {"swizzle": f"Sw<{b},{m},{s}>", "abs(SShift)": abs(s), "BBits": b, "must be": "abs(SShift) >= BBits"}
        raise StaticAssertError("abs(SShift) must be more than BBits.", facts)
    return b, m, s


class Swizzle:
    """The function Sw<bits,base,shift> of an int, an `Int`, a numpy array or a layout; immutable and hashable.

    Args:
        bits: B, the number of bits that are changed by XOR; with 0, the swizzle is the identity.
        base: M, the number of low bits that are not changed.
        shift: S, the distance from the Z bits up to the Y bits, at least B in magnitude; if negative, Y is below Z. The
            default is B.
    Raises:
        StaticAssertError: bits or base is negative, or |shift| < bits.

    >>> sw = Swizzle(2, 0, 3)
    >>> print(sw, sw(9), sw(Int(9)))
    Sw<2,0,3> 8 _8
    """

    __slots__ = ("_base", "_bits", "_shift", "_yyy")

    def __init__(self, bits: int, base: int, shift: int | None = None) -> None:
        distance: Any = shift
        if not (type(bits) is type(base) is type(shift) is int and 0 <= bits <= distance <= MAX_BITS >= base >= 0):
            bits, base, distance = _checked_swizzle(bits, base, bits if shift is None else shift)
        self._bits = bits
        self._base = base
        self._shift: int = distance
        self._yyy = _ONES[bits] << (base + distance if distance > 0 else base)

    @property
    def bits(self) -> int:
        return self._bits

    @property
    def base(self) -> int:
        return self._base

    @property
    def shift(self) -> int:
        return self._shift

    @property
    def yyy_mask(self) -> int:
        """A mask of the Y bits, which are read."""
        return self._yyy

    @property
    def zzz_mask(self) -> int:
        """A mask of the Z bits, which are changed."""
        return self._yyy >> self._shift if self._shift > 0 else self._yyy << -self._shift

    num_bits = property(lambda self: self.bits)
    num_base = property(lambda self: self.base)
    num_shft = property(lambda self: self.shift)

    @overload
    def __call__(self, offset: NDArray[numpy.int64]) -> NDArray[numpy.int64]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, offset: SupportsIndex) -> int: ...
    @overload
    def __call__(self, offset: Layout | ComposedLayout) -> Layout | ComposedLayout: ...
    def __call__(
        self, offset: SupportsIndex | NDArray[numpy.int64] | LayoutLike
    ) -> int | NDArray[numpy.int64] | LayoutLike:
        if type(offset) is int and not offset >> 128:
            try:
                return offset ^ (offset & self._yyy) >> self._shift
            except ValueError:  # a negative shift
                pass
        if isinstance(offset, int) and not isinstance(offset, bool):
            swizzled = self.of(check_magnitude(int(offset), "an offset"))
            return Int(swizzled) if isinstance(offset, Int) else swizzled
        kind = type(offset)
        if hasattr(kind, "dtype") and hasattr(kind, "__array__"):
            return self._of_array(offset)  # type: ignore[arg-type]
        if hasattr(kind, "shape"):
            return self._compose_with(offset, None)
        if hasattr(type(offset), "__index__") and not isinstance(offset, bool):
            return self.of(expect_integer(offset, f"an offset under {self}"))
        raise wrong_type(f"{self} takes an integer, an integer array or a layout", offset)

    def of(self, offset: int) -> int:
        """Return the swizzled offset for a plain int."""
        if type(offset) is not int:
            offset = expect_integer(offset, f"an offset under {self}")
        y = offset & self._yyy
        return offset ^ (y >> self._shift if self._shift >= 0 else y << -self._shift)

    def _of_array(self, offsets: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        if offsets.dtype.kind not in "iuO" or (offsets.dtype.kind == "O" and not all(map(is_integer, offsets.flat))):
            raise InvalidTypeError(f"{self} takes integers, got an array of {offsets.dtype}")
        check_elements(offsets.size, f"the offsets under {self}")
        if self.bits == 0:
            return offsets.copy()
        if offsets.dtype.kind == "O":
            return self._of_wide(offsets)
        top = (1 << (8 * offsets.dtype.itemsize - (offsets.dtype.kind == "i"))) - 1
        if (self.yyy_mask | self.zzz_mask) > top:  # bits beyond this type's width; a sign reads as ones
            wide = "int64" if (self.yyy_mask | self.zzz_mask) < 1 << 63 else object
            swizzled = self._of_wide(offsets.astype(wide))
            return swizzled if self.zzz_mask > top else swizzled.astype(offsets.dtype)
        return self._of_wide(offsets)

    def _of_wide(self, offsets: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        """Swizzle an array whose element type is wide enough for every bit that is read or changed."""
        y = offsets & self.yyy_mask
        return offsets ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def _compose_with(self, other: Tiler, offset: Leaf | None) -> Layout | ComposedLayout:
        """Return `self o other` for a swizzle or a layout; with an offset, `self o offset o other`."""
        if type(other) is Layout and offset is None and self._bits:
            return ComposedLayout(self, STATIC_ZERO, other)
        if isinstance(other, Swizzle):
            return self._merged(other)  # type: ignore[return-value]
        if isinstance(other, ComposedLayout) and offset is None:
            if isinstance(other.outer, Swizzle) and other.offset == 0:
                return self._merged(other.outer)._compose_with(other.inner, None)
            return ComposedLayout(self, Int(0), other)
        return composed_of(self, STATIC_ZERO if offset is None else offset, other)  # type: ignore[arg-type]

    def _composed_after(self, layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
        """Return `layout o self` as `Sw' o layout`, where Sw' swizzles the bits that `layout` maps Y and Z to."""
        y, z = as_leaf(layout(Int(self.yyy_mask))), as_leaf(layout(Int(self.zzz_mask)))
        if not (is_integer(y) and is_integer(z)):
            raise InvalidTypeError(
                "a layout whose values are coordinates has no bits to swizzle", {"layout": layout, "swizzle": self}
            )
        return make_swizzle(int(y), int(z))._compose_with(layout, None)

    def _merged(self, other: Swizzle) -> Swizzle:
        if self.shift != other.shift:
            raise StaticAssertError("Can only merge swizzles of the same shift.", {"left": self, "right": other})
        return make_swizzle(self.yyy_mask ^ other.yyy_mask, self.zzz_mask ^ other.zzz_mask)

    def _slice_composed(self, coord: Coordinate, offset: Leaf, inner: Layout) -> Sliced:
        """Slice `self o offset o inner`: return (kept layout, offset). The layout is plain if it needs no swizzle."""
        return slice_swizzled(self, coord, offset, inner)

    def _product_with(self, block: Layout, tiler: ComposedLayout) -> Layout | ComposedLayout:
        """Return `logical_product(block, self o 0 o inner)`: the copies are swizzled as the tiler's offsets are."""
        if not (isinstance(tiler.offset, Int) and tiler.offset == 0):
            raise StaticAssertError("Require Swizzle offset == 0.", {"tiler": tiler})
        layout = logical_product(block, tiler.inner)
        active = active_bits(self, tiler.inner)

        def moved(bits: int) -> int:
            return expect_integer(layout(Int(0), Int(tiler.inner(Int(bits)))), "a swizzled offset of the product")

        return make_swizzle(moved(active & self.yyy_mask), moved(active & self.zzz_mask))._compose_with(layout, None)

    def right_inverse(self) -> Swizzle:
        return self

    left_inverse = right_inverse

    def upcast(self, n: int) -> Swizzle:
        """Return the swizzle for offsets that are counted in units n times as large."""
        base = self.base - _log2(n)
        return Swizzle(self.bits, base, self.shift) if base >= 0 else Swizzle(max(self.bits + base, 0), 0, self.shift)

    def downcast(self, n: int) -> Swizzle:
        """Return the swizzle for offsets that are counted in units 1/n as large."""
        return Swizzle(self.bits, self.base + _log2(n), self.shift)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Swizzle:
            return NotImplemented
        return self._bits == other._bits and self._base == other._base and self._shift == other._shift

    def __hash__(self) -> int:
        return hash((self._bits, self._base, self._shift))

    def __reduce__(self) -> tuple[type[Swizzle], tuple[int, int, int]]:
        return (Swizzle, (self._bits, self._base, self._shift))

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"


def _log2(factor: SupportsIndex) -> int:
    n = expect_integer(factor, "the factor of a recast", 1)
    if n & (n - 1):
        raise StaticAssertError("N must be a power of two", {"N": n})
    return n.bit_length() - 1


def make_swizzle(y: int, z: int) -> Swizzle:
    """Return the swizzle with these masks of Y and Z bits.

    >>> print(make_swizzle(0b11000000, 0b00000110))
    Sw<2,1,5>
    """
    for name, bits_of_it in (("Y", y), ("Z", z)):
        expect_integer(bits_of_it, f"the {name} bits of a swizzle", 0)
    y, z = int(y), int(z)
    if y.bit_count() != z.bit_count():
        raise StaticAssertError("Number of bits in Y and Z don't match", {"Y": bin(y), "Z": bin(z)})
    if y == 0:
        return Swizzle(0, 0, 0)
    low_y, low_z = (y & -y).bit_length() - 1, (z & -z).bit_length() - 1
    bits = y.bit_count()
    if abs(low_y - low_z) < bits:
        raise StaticAssertError("abs(SShift) must be more than BBits.", {"Y": bin(y), "Z": bin(z)})
    swizzle = Swizzle(bits, min(low_y, low_z), low_y - low_z)
    if swizzle.yyy_mask != y or swizzle.zzz_mask != z:
        raise StaticAssertError("Something went wrong.", {"Y": bin(y), "Z": bin(z)})
    return swizzle


def get_swizzle_portion(layout: LayoutLike) -> Swizzle:
    """Return the swizzle of a composed layout; for a plain layout, the identity Sw<0,4,3>, as in C++.

    >>> print(get_swizzle_portion(Layout(8)))
    Sw<0,4,3>
    """
    if isinstance(layout, ComposedLayout):
        return _outer_swizzle(layout)
    domain_of(layout)
    return Swizzle(0, 4, 3)


def _outer_swizzle(layout: ComposedLayout) -> Swizzle:
    if isinstance(layout.outer, Swizzle):
        return layout.outer
    raise InvalidTypeError(f"the outer function must be a swizzle, got {layout}")


def get_nonswizzle_portion(layout: LayoutLike) -> Layout:
    """Return the layout that a swizzle is composed with; for a plain layout, the layout itself.

    Raises:
        InvalidTypeError: the outer function of a composed layout is not a swizzle.

    >>> print(get_nonswizzle_portion(ComposedLayout(Swizzle(2, 0, 2), 0, Layout((4, 4)))))
    (4,4):(_1,4)
    """
    if isinstance(layout, ComposedLayout):
        _outer_swizzle(layout)
        inner: Layout = layout.inner
        return inner
    return domain_of(layout)
