"""Swizzle<B,M,S>: XOR B bits of an offset with the B bits that lie S above them.

    0b xxx YYY xxx ZZZ xxxx        M = 4 low bits stay (Sw<3,4,3>: ZZZ = bits 4..6, YYY = bits 7..9)
                   ^^^             Z ^= Y; applying it twice gives the offset back

A swizzle is linear over F2 and is no layout by itself; `composition(swizzle, layout)` gives the composed layout
`Sw<B,M,S> o 0 o layout`.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import check_magnitude, expect_integer, is_integer
from cute_py.errors import InvalidTypeError, StaticAssertError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.decay import active_bits, slice_swizzled
from cute_py.layout.leaf import Int, internal_leaf, public
from cute_py.layout.product import logical_product

MAX_BITS = 128
"""Bits of the largest offset that is taken (`argument_checks.MAX_INTEGER`): no swizzle reaches beyond them."""


def _checked_bits(name: str, value: Any) -> int:
    return expect_integer(value, f"Swizzle {name}", -MAX_BITS, MAX_BITS, "bits")


class Swizzle:
    """The functor Sw<bits,base,shift>: call it with an int, an `Int`, a numpy array or a layout.

    Args:
        bits: B, how many bits are XORed; 0 is the identity.
        base: M, how many low bits stay.
        shift: S, how far the Y bits lie above the Z bits; negative: below. At least B in magnitude. Default B.
    Raises:
        StaticAssertError: negative bits or base, or |shift| < bits.

    >>> sw = Swizzle(2, 0, 3)
    >>> print(sw, sw(9), sw(Int(9)))
    Sw<2,0,3> 8 _8
    """

    __slots__ = ("base", "bits", "shift", "yyy_mask", "zzz_mask")

    bits: int
    base: int
    shift: int
    yyy_mask: int
    """The bits that are read."""
    zzz_mask: int
    """The bits that are changed."""

    def __init__(self, bits: int, base: int, shift: int | None = None) -> None:
        numbers = (bits, base, bits if shift is None else shift)
        b, m, s = (
            value if type(value) is int and -MAX_BITS <= value <= MAX_BITS else _checked_bits(name, value)
            for name, value in zip(("bits", "base", "shift"), numbers, strict=True)
        )
        if m < 0:
            raise StaticAssertError("MBase must be positive.", {"swizzle": f"Sw<{b},{m},{s}>", "MBase": m})
        if b < 0:
            raise StaticAssertError("BBits must be positive.", {"swizzle": f"Sw<{b},{m},{s}>", "BBits": b})
        if abs(s) < b:
            facts = {"swizzle": f"Sw<{b},{m},{s}>", "abs(SShift)": abs(s), "BBits": b}
            raise StaticAssertError("abs(SShift) must be more than BBits.", facts)
        mask = (1 << b) - 1
        for put, number in zip(_SLOTS, (b, m, s, mask << m + max(0, s), mask << m - min(0, s)), strict=True):
            put(self, number)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Swizzle is immutable; can't set {name}")

    num_bits = property(lambda self: self.bits)
    num_base = property(lambda self: self.base)
    num_shft = property(lambda self: self.shift)

    def __call__(self, offset: Any) -> Any:
        if isinstance(offset, int) and not isinstance(offset, bool):
            swizzled = self.of(check_magnitude(int(offset), "an offset"))
            return Int(swizzled) if isinstance(offset, Int) else swizzled
        if hasattr(offset, "dtype") and hasattr(offset, "__array__") and not isinstance(offset, type):
            return self._of_array(offset)
        if hasattr(offset, "shape"):
            return self._compose_with(offset, None)
        if hasattr(offset, "__index__") and not isinstance(offset, bool):
            return self.of(expect_integer(offset, f"an offset under {self}"))
        raise InvalidTypeError(f"{self} takes an integer, an integer array or a layout, got {given(offset)}")

    def of(self, offset: int) -> int:
        """The swizzled offset of a plain int."""
        if type(offset) is not int:
            offset = expect_integer(offset, f"an offset under {self}")
        y = offset & self.yyy_mask
        return offset ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def _of_array(self, offsets: Any) -> Any:
        if offsets.dtype.kind not in "iuO" or (offsets.dtype.kind == "O" and not all(map(is_integer, offsets.flat))):
            raise InvalidTypeError(f"{self} takes integers, got an array of {offsets.dtype}")
        if self.bits == 0:
            return offsets.copy()
        if offsets.dtype.kind == "O":
            return self._of_wide(offsets)
        top = (1 << (8 * offsets.dtype.itemsize - (offsets.dtype.kind == "i"))) - 1
        reads_signs = self.yyy_mask > top and offsets.dtype.kind == "i" and bool((offsets < 0).any())
        if self.zzz_mask > top or reads_signs:  # bits that this type has no room for
            wide = "int64" if (self.yyy_mask | self.zzz_mask) < 1 << 63 else object
            swizzled = self._of_wide(offsets.astype(wide))
            return swizzled if self.zzz_mask > top else swizzled.astype(offsets.dtype)
        if self.yyy_mask & top == 0:
            return offsets.copy()
        kind = offsets.dtype.type
        y = offsets & kind(self.yyy_mask & top)
        return offsets ^ (y >> kind(self.shift) if self.shift >= 0 else y << kind(-self.shift))

    def _of_wide(self, offsets: Any) -> Any:
        """Of an array whose elements have room for every bit that is read or changed."""
        y = offsets & self.yyy_mask
        return offsets ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def _compose_with(self, other: Any, offset: Any) -> Any:
        """`self o other` for a swizzle or a layout; `self o offset o other` when an offset is given."""
        if isinstance(other, Swizzle):
            return self._merged(other)
        if isinstance(other, ComposedLayout) and offset is None:
            if isinstance(other.outer, Swizzle) and other.offset == 0:
                return self._merged(other.outer)._compose_with(other.inner, None)
            return ComposedLayout(self, Int(0), other)
        start = Int(0) if offset is None else offset
        if self.bits == 0 and type(start) is Int and start == 0:
            return other
        return ComposedLayout(self, start, other)

    def _composed_after(self, layout: Any) -> Any:
        """`layout o self` as `Sw' o layout`: the same bits seen after the layout, where a Swizzle can say it."""
        y = public(internal_leaf(layout(Int(self.yyy_mask))))
        z = public(internal_leaf(layout(Int(self.zzz_mask))))
        if not (is_integer(y) and is_integer(z)):
            raise InvalidTypeError(
                "a layout of coordinates has no bits to swizzle", {"layout": layout, "swizzle": self}
            )
        return make_swizzle(int(y), int(z))._compose_with(layout, None)

    def _merged(self, other: Swizzle) -> Swizzle:
        if self.shift != other.shift:
            raise StaticAssertError("Can only merge swizzles of the same shift.", {"left": self, "right": other})
        return make_swizzle(self.yyy_mask ^ other.yyy_mask, self.zzz_mask ^ other.zzz_mask)

    def _slice_composed(self, coord: Any, offset: Any, inner: Any) -> tuple[Any, Any]:
        """Slice `self o offset o inner`: (what is kept, offset); a plain layout where no swizzle is left."""
        return slice_swizzled(self, coord, offset, inner)

    def _product_with(self, block: Any, tiler: Any) -> Any:
        """`logical_product(block, self o 0 o inner)`: the copies are swizzled as self swizzles the tiler's offsets."""
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
        """In units n times as large."""
        base = self.base - _log2(n)
        return Swizzle(self.bits, base, self.shift) if base >= 0 else Swizzle(max(self.bits + base, 0), 0, self.shift)

    def downcast(self, n: int) -> Swizzle:
        """In units n times as small."""
        return Swizzle(self.bits, self.base + _log2(n), self.shift)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Swizzle):
            return NotImplemented
        return (self.bits, self.base, self.shift) == (other.bits, other.base, other.shift)

    def __hash__(self) -> int:
        return hash((Swizzle, self.bits, self.base, self.shift))

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"

    def __reduce__(self) -> Any:
        return (Swizzle, (self.bits, self.base, self.shift))


_SLOTS = [getattr(Swizzle, name).__set__ for name in ("bits", "base", "shift", "yyy_mask", "zzz_mask")]
"""What writes an immutable swizzle's slots, once, without the search of object.__setattr__."""


def _log2(factor: Any) -> int:
    n = expect_integer(factor, "the factor of a recast", 1)
    if n & (n - 1):
        raise StaticAssertError("N must be a power of two", {"N": n})
    return n.bit_length() - 1


def make_swizzle(y: int, z: int) -> Swizzle:
    """The swizzle with these Y and Z bits.

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
