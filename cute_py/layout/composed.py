"""ComposedLayout: outer o offset o inner, for functions that no single layout can express.

    (outer o offset o inner)(coord)  =  outer(offset + inner(coord))

The inner layout defines the coordinates, so tiling, grouping and dividing change only the inner layout. `outer` is
a swizzle, a layout, or any function of one offset. A swizzled layout is always a composed layout; the class `Layout`
has no swizzle.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, overload

from cute_py.argument_checks import Immutable
from cute_py.errors import CuteError, InvalidTypeError, LayoutError, StaticAssertError, given
from cute_py.layout.arguments import Coordinate, IntCoordinate, IntTuple, LayoutLike, Leaf, Tiler, Tree
from cute_py.layout.composition import compose_tiler, composition
from cute_py.layout.int_tuple import crd2idx_of, product_of
from cute_py.layout.inverse import left_inverse, max_common_layout, max_common_vector, right_inverse
from cute_py.layout.layout import Layout, coprofile_of, cosize, domain_of
from cute_py.layout.leaf import STATIC_ZERO, Int, as_leaf, as_leaves, as_python_int
from cute_py.layout.trees import all_underscore, check_depth, has_underscore, is_underscore, map_leaves


class OffsetFunction(Protocol):
    """A function of one offset: a swizzle, a layout, or any other callable."""

    def __call__(self, offset: int, /) -> Any: ...


class ComposedLayout(Immutable):
    """`outer o offset o inner`, immutable and hashable.

    Args:
        outer: Swizzle, Layout, or a callable of one offset.
        offset: the number that is added to inner's offsets before outer is applied.
        inner: Layout, ComposedLayout, or another function, such as the swizzle in the inverse of a swizzled layout.

    >>> from cute_py.layout.swizzle import Swizzle
    >>> a = ComposedLayout(Swizzle(2, 0, 3), Int(0), Layout((8, 8), (8, 1)))
    >>> print(a, a(1, 1))
    Sw<2,0,3> o _0 o (8,8):(8,1) 8
    """

    __slots__ = ("inner", "offset", "outer")
    _state = operator.attrgetter("outer", "offset", "inner")

    outer: Any
    offset: Any
    inner: Any

    def __init__(self, outer: OffsetFunction, offset: Leaf, inner: OffsetFunction) -> None:
        if not (callable(outer) and callable(inner)) or isinstance(outer, type) or isinstance(inner, type):
            raise InvalidTypeError(
                "ComposedLayout takes (outer, offset, inner); outer and inner must be functions of an offset",
                {"outer": given(outer), "inner": given(inner)},
            )
        if not isinstance(offset, Int):
            offset = as_leaves(offset)  # which refuses anything but an offset
            if isinstance(offset, tuple) and (hasattr(type(outer), "_slice_composed") or has_integer_offsets(inner)):
                raise InvalidTypeError(
                    "offset must be an integer, because it is added to integers",
                    {"offset": given(offset), "outer": given(outer), "inner": given(inner)},
                )
        _put_outer(self, outer)
        _put_offset(self, offset)
        _put_inner(self, inner)

    @property
    def _offset(self) -> Tree:
        """The offset as a leaf; for the placeholder of an unset pointer, its value."""
        return as_leaf(self.offset)  # type: ignore[no-any-return]

    @property
    def domain(self) -> Layout | ComposedLayout:
        """The layout whose coordinates this composed layout accepts: the inner layout."""
        return self.inner  # type: ignore[no-any-return]

    def with_domain(self, inner: OffsetFunction) -> Layout | ComposedLayout:
        """Return `outer o offset o inner` with another inner layout, or only `inner` if the other two are trivial."""
        return composed_of(self.outer, self.offset, inner)

    layout_a = property(lambda self: self.outer)
    layout_b = property(lambda self: self.inner)

    @property
    def shape(self) -> IntTuple:
        try:
            return self.inner.shape  # type: ignore[no-any-return]
        except AttributeError:  # an inverse: a swizzle, which has no domain of its own
            raise LayoutError(
                "this composed layout has no shape, because its inner function has none", {"layout": self}
            ) from None

    @property
    def stride(self) -> Tree:
        raise LayoutError("a composed layout has no stride", {"layout": self}, "use layout.inner.stride")

    @overload
    def __call__(self, *coord: IntCoordinate) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *coord: Coordinate) -> Layout | ComposedLayout: ...
    def __call__(self, *coord: Coordinate) -> int | Layout | ComposedLayout:
        c = coord[0] if len(coord) == 1 else coord
        check_depth(c)
        if has_underscore(c):
            return self.slice_and_offset(c)[0]
        return self.outer(self._shifted(c))  # type: ignore[no-any-return]

    def _shifted(self, coord: Coordinate) -> Leaf:
        """Return offset + inner(coord).

        Raises:
            InvalidTypeError: the two can't be added, because one is a tuple and the other a number, or because a user's
                function returned some other object.
        """
        moved = self.inner(coord)
        try:
            return self.offset + moved  # type: ignore[no-any-return]
        except CuteError:
            raise
        except TypeError:
            facts = {"coordinate": given(coord), "layout": given(self)}
            raise InvalidTypeError(f"can't add {given(moved)} to the offset {given(self.offset)}", facts) from None

    def _with_domain(self, what: str) -> Layout | ComposedLayout:
        """Return the inner layout, for an operation on its modes.

        Raises:
            LayoutError: the inner function is not a layout, as in the inverse of a swizzled layout.
        """
        if not has_domain(self.inner):
            raise LayoutError(
                f"this composed layout has no {what}, because its inner function has no modes", {"layout": self}
            )
        return self.inner  # type: ignore[no-any-return]

    def __getitem__(self, mode: int) -> Layout | ComposedLayout:
        return self.with_domain(self._with_domain(f"mode {given(mode)}")[mode])

    __iter__ = None

    def slice_and_offset(self, coord: Coordinate) -> Sliced:
        """Return the sliced layout, and the part of the fixed modes' offset that the caller must add."""
        whole = has_underscore(coord) and all_underscore(coord)
        if whole and not has_domain(self.inner):
            return self, Int(0)
        unset = hasattr(self.offset, "bits")  # C++'s smem_ptr_flag_bits
        hook = None if whole or unset else getattr(self.outer, "_slice_composed", None)
        if hook is not None and isinstance(self.inner, Layout):
            return hook(coord, self._offset, self.inner)  # type: ignore[no-any-return]
        kept, offset = slice_parts(coord, self._with_domain("slice"))
        if whole or (unset and isinstance(offset, Int) and offset == 0):
            found = self.with_domain(kept)
            return self if found == self else found, Int(0)
        return ComposedLayout(self.outer, self.offset + offset, kept), Int(0)

    def domain_offset(self, coord: Coordinate) -> tuple[ComposedLayout, int]:
        """Return the layout with its origin at `coord`. The shift is added to the offset, because outer is not
        linear."""
        if has_underscore(coord):
            raise InvalidTypeError(
                "domain_offset takes a coordinate without `_`",
                {"coordinate": given(coord)},
            )
        return ComposedLayout(self.outer, self._shifted(coord), self.inner), Int(0)

    def _compose_with(self, other: Tiler, offset: Leaf | None) -> Layout | ComposedLayout:
        """Return `self o other` for a layout or a tiler."""
        if offset is not None:
            return ComposedLayout(self, offset, other)  # type: ignore[arg-type]
        return self.with_domain(composition(self.inner, other))

    def _composed_after(self, layout: Layout) -> ComposedLayout:
        """Return `layout o self`, for an offset of 0."""
        if not (isinstance(self.offset, Int) and self.offset == 0):
            raise StaticAssertError("Require offset == 0.", {"layout": self})
        return composition(composition(layout, self.outer), self.inner)  # type: ignore[no-any-return]

    def right_inverse(self) -> ComposedLayout:
        return self._inverted(right_inverse)

    def left_inverse(self) -> ComposedLayout:
        return self._inverted(left_inverse)

    def _inverted(self, invert: Callable[..., OffsetFunction]) -> ComposedLayout:
        inner = invert(self.inner)
        if hasattr(type(self.outer), "_slice_composed") and isinstance(self.offset, Int) and self.offset == 0:
            return composition(inner, self.outer)  # type: ignore[no-any-return]
        if isinstance(self.offset, tuple):
            raise LayoutError(
                "the inverse of this layout is not defined, because its offset is a tuple",
                {"offset": given(self.offset)},
            )
        return ComposedLayout(inner, -self.offset, invert(self.outer))

    def max_common_layout(self, other: LayoutLike) -> Layout:
        if isinstance(other, ComposedLayout):
            raise InvalidTypeError("CuTe does not define max_common_layout for two composed layouts")
        common = max_common_layout(self.inner, other)
        base = 1 << base_of(self.outer)
        if base < as_python_int(product_of(common.shape)):
            return compose_tiler(common, Int(base))
        return common

    def max_common_vector(self, other: LayoutLike) -> Int | int:
        mine = Int(1 << base_of(self.outer))
        if isinstance(other, ComposedLayout):
            shared: int = max_common_vector(self.inner, other.inner)
            if other.outer == self.outer:
                return shared
            return Int(min(int(shared), int(mine), 1 << base_of(other.outer)))
        return Int(min(int(max_common_vector(self.inner, other)), int(mine)))

    def _as_product_tiler(self, block: Layout) -> Layout | ComposedLayout:
        """Return `logical_product(block, self)`: the swizzle permutes the copies as it permutes the offsets of self."""
        if not hasattr(type(self.outer), "_product_with"):
            raise InvalidTypeError(
                f"a product needs a tiler whose outer function is a swizzle, got {given(self.outer)}"
            )
        return self.outer._product_with(block, self)  # type: ignore[no-any-return]

    def cosize(self) -> Int | int:
        return cosize(self.inner)

    def __str__(self) -> str:
        return f"{self.outer} o {self.offset} o {self.inner}"

    def __repr__(self) -> str:
        return f"ComposedLayout({self.outer!r}, {self.offset!r}, {self.inner!r})"


_put_outer, _put_offset, _put_inner = [getattr(ComposedLayout, name).__set__ for name in ("outer", "offset", "inner")]
"""Setters of the slots of a new object, whose own `__setattr__` refuses to set them."""


def has_domain(inner: OffsetFunction) -> bool:
    """Whether an inner function is a layout, which has modes."""
    return type(inner) is Layout or isinstance(inner, (Layout, ComposedLayout))


def has_integer_offsets(inner: OffsetFunction) -> bool:
    """Whether an inner function is a layout whose offsets are integers, not coordinates."""
    return has_domain(inner) and coprofile_of(domain_of(inner).stride) == 0  # type: ignore[arg-type]


def base_of(outer: OffsetFunction) -> int:
    """Return the number of low bits that a swizzle does not move (its base); 0 for any other function."""
    return outer.base if hasattr(type(outer), "_slice_composed") else 0  # type: ignore[attr-defined]


def _composed_of_layouts(outer: Layout, inner: OffsetFunction, offset: Leaf) -> ComposedLayout:
    return ComposedLayout(outer, offset, inner)


Layout._compose_with = _composed_of_layouts  # type: ignore[attr-defined]  # layouts know no composed ones


def composed_of(outer: OffsetFunction, offset: Leaf, inner: OffsetFunction) -> Layout | ComposedLayout:
    """Return `outer o offset o inner`; `inner` itself if `outer` is a swizzle of 0 bits and `offset` a static 0.

    This is C++'s composition of the three. All of C++'s operations on composed layouts use it for their result, except
    upcast and downcast.

    >>> print(composed_of(Swizzle(0, 4, 3), Int(0), Layout(8)), composed_of(Swizzle(0, 4, 3), 0, Layout(8)))
    8:_1 Sw<0,4,3> o 0 o 8:_1
    """
    if type(inner) is Layout and type(offset) is Int and offset == 0 and getattr(outer, "bits", None) == 0:
        return inner
    return ComposedLayout(outer, offset, inner)


def make_composed_layout(outer: OffsetFunction, offset: Leaf, inner: OffsetFunction) -> ComposedLayout:
    """Make a `ComposedLayout`; this is C++'s name for the constructor.

    >>> print(make_composed_layout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))))
    Sw<3,3,3> o 0 o (8,64):(64,1)
    """
    return ComposedLayout(outer, offset, inner)


Sliced: TypeAlias = tuple[Layout | ComposedLayout, int]
"""The result of slicing: a layout, and the offset of the fixed modes."""


def slice_parts(coord: Coordinate, layout: Layout | ComposedLayout) -> Sliced:
    """Slice a layout or composed layout: return the kept sublayout and the offset of the fixed modes."""
    if isinstance(layout, ComposedLayout):
        return layout.slice_and_offset(coord)
    kept = layout._sliced(coord)
    fixed = map_leaves(lambda c: STATIC_ZERO if is_underscore(c) else as_leaf(c), coord)  # type: ignore[arg-type]
    return kept, crd2idx_of(fixed, layout.shape, layout.stride)  # type: ignore[return-value]
