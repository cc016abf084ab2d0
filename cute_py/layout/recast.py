"""Recast layouts, which count the same bytes in other units, and swizzles, which act on bytes or on elements.

upcast(L, n)     units n times as large: the contiguous mode becomes n times shorter, other strides n times smaller
downcast(L, n)   units n times as small
recast_layout    from one element type to another; from 8 to 6 bits, for example, upcast by 3, then downcast by 4

The hardware swizzles bits of a byte address. CuTe prints such a swizzle with a placeholder for the shared-memory
pointer, which is not set yet. If the tile starts where the swizzle's pattern starts, a swizzle of element offsets has
the same effect:

    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)      on bytes, as the pointer swizzles
    Sw<3,3,3> o _0 o (_8,_64):(_64,_1)                        on 16-bit elements: the base is one bit lower

C++ uses both functions for a layout with such a placeholder (a flagged layout): a call applies Sw<3,4,3> to element
offsets, while print_layout and every access through a pointer use the second function. In cute_py, a call does the same
as in C++, and every function that indexes memory (`offsets`, `bank_conflicts`, `make_tensor` of an array, pictures)
uses the second.
Source: cute/layout.hpp, cute/pointer_flagged.hpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsIndex, TypeGuard, TypeVar, overload

from cute_py.argument_checks import expect, expect_choice, expect_integer, wrong_type
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, LayoutError, StaticAssertError, unless_refused
from cute_py.layout.arguments import Coordinate, LayoutLike, Leaf, Tree
from cute_py.layout.coalesce import coalesced
from cute_py.layout.composed import ComposedLayout, slice_parts
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import ceil_div_leaf, is_static, product_of
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, domain_of, has_numbers, make, static
from cute_py.layout.leaf import (
    KNOWN,
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    as_leaf,
    is_one,
    is_symbolic,
    leaf_text,
    times,
    trunc_div,
    trunc_mod,
)
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tiling import logical_divide
from cute_py.layout.trees import leaves, modes

Recast = TypeVar("Recast", bound=Layout | ComposedLayout | Swizzle)
OneLayout = TypeVar("OneLayout", bound=Layout | ComposedLayout)


def _recast(
    rule: Callable[[Leaf, Leaf, Int], tuple[Leaf, Leaf]], shape: Tree, stride: Tree, n: Int
) -> tuple[Tree, Tree]:
    """Apply a rule (size, integer stride, n) -> (size, stride) to every mode, with the value of a basis stride."""
    if type(shape) is tuple:
        pairs = [_recast(rule, s, d, n) for s, d in zip(shape, modes(stride), strict=True)]
        return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
    if type(stride) in KNOWN or is_symbolic(stride):
        return rule(shape, stride, n)
    if not hasattr(stride, "with_value"):
        raise InvalidTypeError(f"recast requires integer or basis strides, got {stride}")
    size, step = rule(shape, as_leaf(stride.value), n)  # type: ignore[union-attr]
    return size, as_leaf(stride.with_value(step))


def _up(size: Leaf, stride: Leaf, n: Int) -> tuple[Leaf, Leaf]:
    if type(stride) is not Int:  # C++ treats it as larger than N and divisible
        return size, trunc_div(stride, n)
    if stride == 0:  # C++: is_constant<0>
        return size, STATIC_ZERO
    if stride % n and n % stride:  # C++: static_assert
        raise StaticAssertError(
            "Divisibility condition", {"stride": leaf_text(stride), "N": int(n), "size": leaf_text(size)}
        )
    step = abs(stride)
    larger: Any = ceil_div_leaf(step, n)
    return ceil_div_leaf(size, ceil_div_leaf(n, step)), larger if stride > 0 else -larger


@overload
def upcast(layout: Recast, n: SupportsIndex) -> Recast: ...
@overload
def upcast(layout: int, n: SupportsIndex) -> int: ...
def upcast(layout: LayoutLike | Swizzle | int, n: SupportsIndex) -> LayoutLike | Swizzle | int:
    """Return the layout counted in units of n elements.

    Raises:
        StaticAssertError: 'Divisibility condition': a static stride neither divides n nor is divided by it.

    >>> print(upcast(Layout((Int(8), Int(64)), (Int(64), Int(1))), 2))
    (_8,_32):(_32,_1)
    """
    n = expect_integer(n, "the factor of a recast", 1)
    if type(layout) is Layout:
        return make(*_recast(_up, layout.shape, layout.stride, STATIC[n]), layout.assumptions)
    if isinstance(layout, int):
        leaf = as_leaf(layout)
        if type(leaf) is Int and trunc_mod(leaf, STATIC[n]) != 0:
            raise StaticAssertError("Static safe_div requires t % u == 0", {"offset": leaf_text(leaf), "N": n})
        return trunc_div(leaf, STATIC[n])  # type: ignore[return-value]
    return _recast_composed(upcast, layout, n)


def _down(size: Leaf, stride: Leaf, n: Int) -> tuple[Leaf, Leaf]:
    return (times(size, n), stride) if type(stride) is Int and stride in (1, -1) else (size, times(stride, n))


@overload
def downcast(layout: Recast, n: SupportsIndex) -> Recast: ...
@overload
def downcast(layout: int, n: SupportsIndex) -> int: ...
def downcast(layout: LayoutLike | Swizzle | int, n: SupportsIndex) -> LayoutLike | Swizzle | int:
    """Return the layout counted in units of 1/n element.

    Raises:
        StaticAssertError: 'Downcast requires adjacent elements': no stride is a static 1.

    >>> print(downcast(Layout((Int(8), Int(64)), (Int(64), Int(1))), 2))
    (_8,_128):(_128,_1)
    """
    n = expect_integer(n, "the factor of a recast", 1)
    if type(layout) is Layout:
        steps = [as_leaf(d.value) if hasattr(d, "modes") else d for d in leaves(layout.stride)]
        if not any(map(is_one, steps)):
            known = has_numbers(layout)
            made = unless_refused(lambda: downcast(static(layout), n)) if known and not is_static(layout) else None
            hint = None if made is None else f"plain ints are run-time; with cute.static(layout), the result is {made}"
            raise StaticAssertError("Downcast requires adjacent elements", {"layout": layout}, hint)
        return make(*_recast(_down, layout.shape, layout.stride, STATIC[n]), layout.assumptions)
    if isinstance(layout, int):
        return layout * Int(n)
    return _recast_composed(downcast, layout, n)


def _recast_composed(
    operation: Callable[..., LayoutLike | Swizzle | int], layout: LayoutLike | Swizzle, n: int
) -> Swizzle | ComposedLayout:
    """Upcast or downcast a swizzle, or the three parts of a composed layout."""
    name = operation.__name__
    if isinstance(layout, Swizzle):
        return layout.upcast(n) if operation is upcast else layout.downcast(n)
    if not isinstance(layout, ComposedLayout):
        raise wrong_type(f"{name} takes a layout or a swizzle", layout)
    inner, own = operation(layout.inner, n), getattr(layout.offset, name, None)
    if own is not None:  # an unset pointer: bytes stay bytes, its element changes
        return ComposedLayout(layout.outer, own(n), inner)  # type: ignore[arg-type]
    return ComposedLayout(operation(layout.outer, n), operation(layout.offset, n), inner)  # type: ignore[arg-type]


def bits_of(kind: DTypeLike | int) -> int:
    """Return the width of an element type in bits. A number of bits is returned unchanged."""
    if isinstance(kind, int) and not isinstance(kind, bool):
        return expect_integer(kind, "the width of an element", 1, unit="bits")
    return as_dtype(kind).bits


@overload
def recast_layout(layout: Recast, old: DTypeLike | int, new: DTypeLike | int) -> Recast: ...
@overload
def recast_layout(layout: DTypeLike | int, old: DTypeLike | int, new: Recast) -> Recast: ...
def recast_layout(
    layout: LayoutLike | Swizzle | DTypeLike | int,
    old: DTypeLike | int | None = None,
    new: LayoutLike | Swizzle | DTypeLike | int | None = None,
) -> LayoutLike | Swizzle:
    """Return the layout counted in elements of another type.

    Args:
        layout: layout, swizzle or composed layout, in elements of `old`.
        old, new: element types (any object that `as_dtype` accepts), or their widths in bits. The arguments may also
            have C++'s order `(old, new, layout)`.

    >>> print(recast_layout(Layout((Int(8), Int(64)), (Int(64), Int(1))), "float16", "float32"))
    (_8,_32):(_32,_1)
    """
    thing: Any = layout
    if not isinstance(layout, (Layout, Swizzle, ComposedLayout)):
        thing, old, new = new, layout, old  # type: ignore[assignment]
    old_bits, new_bits = bits_of(old), bits_of(new)  # type: ignore[arg-type]
    g = math.gcd(old_bits, new_bits)
    up, down = new_bits // g, old_bits // g
    if up > 1:
        thing = upcast(thing, up)
    if down > 1:
        thing = downcast(thing, down)
    return thing  # type: ignore[no-any-return]


BYTE = 8


class SmemPtrFlag(Int):
    """C++'s smem_ptr_flag_bits<B>: a static 0 as the placeholder of a shared-memory pointer that is not set yet.

    In `Sw<B,M,S> o smem_ptr_flag(bits) o layout`, the swizzle acts on bytes. The value of the flag is the position, in
    elements, where a tile starts in the swizzle's pattern. C++ never prints a value other than 0, because its tiles
    have a pointer.

    >>> print(smem_ptr_flag(16), smem_ptr_flag(16, 64))
    smem_ptr[16b](unset) smem_ptr[16b](unset)+64
    """

    bits: int

    def __new__(cls, bits: int = 1, offset: int = 0) -> SmemPtrFlag:
        flag = int.__new__(cls, expect_integer(offset, "the offset of an unset pointer", unit="elements"))
        flag.bits = expect_integer(bits, "the width of an unset pointer's elements", 1, unit="bits")
        return flag

    def upcast(self, n: int) -> SmemPtrFlag:
        n = expect_integer(n, "the factor of a recast", 1)
        if int(self) % n:
            raise StaticAssertError("Static safe_div requires t % u == 0", {"offset": int(self), "N": n})
        return SmemPtrFlag(self.bits * n, int(self) // n)

    def downcast(self, n: int) -> SmemPtrFlag:
        n = expect_integer(n, "the factor of a recast", 1)
        return SmemPtrFlag(self.bits // n, int(self) * n)

    def __neg__(self) -> Int:
        return self if int(self) == 0 else Int(-int(self))

    def __str__(self) -> str:
        return f"smem_ptr[{self.bits}b](unset)" + (f"+{int(self)}" if int(self) else "")

    def __repr__(self) -> str:
        return f"smem_ptr_flag({self.bits}{f', {int(self)}' if int(self) else ''})"

    def __reduce__(self) -> tuple[type[SmemPtrFlag], tuple[int, int]]:
        return (SmemPtrFlag, (self.bits, int(self)))


def smem_ptr_flag(bits: int, offset: int = 0) -> SmemPtrFlag:
    """Make the placeholder of an unset shared-memory pointer to elements of `bits` bits, moved by `offset` elements.

    >>> print(ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), static(Layout((8, 64), (64, 1)))))
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
    """
    return SmemPtrFlag(bits, offset)


def is_flagged(layout: Layout | ComposedLayout) -> TypeGuard[ComposedLayout]:
    """Whether a layout's swizzle acts on the bytes of an unset pointer."""
    return isinstance(layout, ComposedLayout) and isinstance(layout.offset, SmemPtrFlag)


def element_swizzle(swizzle: Swizzle, dtype: DTypeLike | int) -> Swizzle:
    """Return the swizzle of element offsets that has the effect of `swizzle` on byte addresses.

    Args:
        swizzle: a swizzle on bytes, as on a shared-memory pointer.
        dtype: the element type, or its width in bits; the width must be a power of two.
    Raises:
        StaticAssertError: the width is not a power of two.
        LayoutError: the swizzle moves bytes within an element, which no swizzle of elements can do.

    >>> print(element_swizzle(Swizzle(3, 4, 3), "float16"), element_swizzle(Swizzle(2, 4, 3), 4))
    Sw<3,3,3> Sw<2,5,3>
    """
    return _whole(swizzle, "bytes", BYTE, "an element", bits_of(dtype), dtype)


def byte_swizzle(swizzle: Swizzle, dtype: DTypeLike | int) -> Swizzle:
    """Return the swizzle of byte addresses that has the effect of `swizzle` on element offsets.

    Args:
        swizzle: a swizzle on element offsets, as in `Sw<B,M,S> o 0 o layout`.
        dtype: the element type, or its width in bits; the width must be a power of two.
    Raises:
        StaticAssertError: the width is not a power of two.
        LayoutError: the swizzle moves elements within a byte.

    >>> print(byte_swizzle(Swizzle(3, 3, 3), "float16"))
    Sw<3,4,3>
    """
    return _whole(swizzle, "elements", bits_of(dtype), "a byte", BYTE, dtype)


def _whole(swizzle: Swizzle, units: str, bits: int, within: str, new_bits: int, dtype: DTypeLike | int) -> Swizzle:
    """Return the recast swizzle, or raise a LayoutError if it loses some of its bits."""
    found: Swizzle = recast_layout(expect(swizzle, Swizzle, f"a swizzle of {units}"), bits, new_bits)
    if swizzle.bits and found.bits != swizzle.bits:
        facts = {f"swizzle, on {units}": swizzle, "element": f"{bits_of(dtype)} bits"}
        raise LayoutError(f"the swizzle moves {units} within {within}, which the new units can't express", facts)
    return found


def as_position_independent_swizzle_layout(layout: OneLayout) -> OneLayout:
    """Convert a layout with an unset pointer to one whose swizzle acts on elements, for a tile that starts where the
    swizzle's pattern starts. Any other layout, or a swizzle, is returned unchanged.

    Raises:
        InvalidTypeError: the argument is neither.

    >>> tile = static(Layout((8, 64), (64, 1)))
    >>> print(as_position_independent_swizzle_layout(ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), tile)))
    Sw<3,3,3> o _0 o (_8,_64):(_64,_1)
    """
    if not is_flagged(layout):
        if not isinstance(layout, Swizzle):
            domain_of(layout)  # raises the error for other objects
        return layout
    flag = layout.offset
    return composition(recast_layout(layout.outer, BYTE, flag.bits), Int(int(flag)), layout.inner)  # type: ignore[no-any-return]


def memory_layout(thing: LayoutLike, of: str = "memory") -> Layout | ComposedLayout:
    """Return the layout that memory accesses through `thing` use; with `of="call"`, the layout that a call uses.

    Raises:
        LayoutError: the address of a swizzled pointer is not a multiple of the period of its swizzle.
    """
    expect_choice(of, ("memory", "call"), "of")
    engine: Any = getattr(thing, "engine", None)
    layout: Layout | ComposedLayout = thing if engine is None else thing.layout  # type: ignore[assignment, attr-defined]
    if of == "call":
        return layout
    swizzle = getattr(engine, "swizzle", None)
    if not isinstance(swizzle, Swizzle) or swizzle.bits == 0:
        return as_position_independent_swizzle_layout(layout)
    period = 1 << (swizzle.yyy_mask | swizzle.zzz_mask).bit_length()
    if engine.address % period:
        raise LayoutError(
            f"the pointer's address is {engine.address:#x}; must be a multiple of {period} bytes, the period of "
            "its swizzle's pattern",
            {"tensor": thing},
            'offsets(..., of="call") evaluates the layout without the pointer\'s swizzle',
        )
    return ComposedLayout(recast_layout(swizzle, BYTE, engine.dtype.bits), Int(0), layout)


def slice_flagged(layout: ComposedLayout, coord: Coordinate) -> ComposedLayout:
    """Slice a layout with an unset pointer as memory. The value of the new placeholder is the offset of the modes that
    `coord` fixes, modulo the period of the swizzle. Complete periods are dropped, as in slicing a layout."""
    kept, fixed = slice_parts(coord, layout.inner)
    if not isinstance(fixed, int):
        raise InvalidTypeError(
            f"slicing a swizzled tile needs a known offset, got {fixed}",
            {"layout": layout},
            "use layout.subs({...}) to replace the symbols with numbers",
        )
    flag = layout.offset
    moved: Swizzle = recast_layout(layout.outer, BYTE, flag.bits)
    period = 1 << (moved.yyy_mask | moved.zzz_mask).bit_length()
    return ComposedLayout(layout.outer, SmemPtrFlag(flag.bits, (int(flag) + int(fixed)) % period), kept)


def max_alignment(layout: LayoutLike | Swizzle) -> Int | int:
    """Return the largest N such that the static sizes and strides allow upcast(layout, N); for a tensor, N is in bits.

    >>> print(max_alignment(Layout((Int(8), Int(64)), (Int(64), Int(1)))))
    _512
    """
    if isinstance(layout, Swizzle):
        return STATIC[1 << layout.base]
    if hasattr(type(layout), "_max_alignment"):
        return layout._max_alignment()  # type: ignore[attr-defined, no-any-return]
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.outer, Swizzle):
            return STATIC_ONE
        return STATIC[math.gcd(1 << layout.outer.base, int(layout.offset), int(max_alignment(layout.inner)))]
    inner = domain_of(layout)
    shape, stride = coalesced(inner.shape, inner.stride)
    known = make(
        tuple([s if type(s) is Int else STATIC_ONE for s in leaves(shape)]),
        tuple([d if type(d) is Int else STATIC_ZERO for d in leaves(stride)]),
    )
    permuted = logical_divide(known, right_inverse(known))
    size: Any = product_of(permuted[0].shape)
    return STATIC[math.gcd(size, *leaves(permuted[1].stride))]
