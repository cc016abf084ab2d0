"""Tiling: a divide splits a layout into a tile and the arrangement of tiles; a product repeats a layout (the block) as
another layout (the tiler) arranges it. Both use the complement of a layout: the offsets where copies of it start,
chosen so that the copies fill a range of offsets.

    complement(4:2, 24)  ->  (2,3):(1,8)       4:2 has the offsets 0 2 4 6; copies start at 0 1 8 9 16 17

Guarantee: (filter(L), complement(L, n)) has no offset twice, and the strides of the complement ascend. If every stride
of L is a multiple of the end (stride * size) of the mode with the next smaller stride, it has every offset below the
first multiple of the last end that is at least n. Otherwise it lacks some offsets, as in C++; (2,3):(1,33), for
example, has a gap at 32.

    logical_divide(L, tiler)   ((tile,rest), ...)         by mode where the tiler is a tuple
    zipped_divide              ((tile,tile),(rest,rest))
    tiled_divide               ((tile,tile),rest,rest)
    flat_divide                (tile,tile,rest,rest)

logical_divide(A, B) = A o (B, complement(B, size(A))): the first mode moves within a tile, the second from tile to
tile. If the tile does not divide the size, the number of tiles is rounded up, and the last tiles extend past the end.

    logical_product(B, T)      (B, T')     T' = complement(B, size(B)*cosize(T)) o T: the steps of T, in copies of B
    zipped, tiled, flat_product            logical_product with other profiles
    blocked_product, raked_product         mode i of the result joins mode i of block and tiler, block or tiler first
    tile_to_shape                          a blocked product, given the shape of the result instead of the tiler
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import zip_longest
from operator import itemgetter
from typing import Any, SupportsIndex, TypeAlias

from cute_py.argument_checks import wrong_type
from cute_py.errors import InvalidTypeError, StaticAssertError, given, unless_refused
from cute_py.layout.arguments import LayoutLike, Leaf, Shaped, Tiler, Tree
from cute_py.layout.coalesce import coalesced, coalesced_shape, filtered
from cute_py.layout.composition import compose_layouts, tiler_text
from cute_py.layout.int_tuple import ceil_div_of, compact_left, compact_order, compatible, product, product_of
from cute_py.layout.layout import (
    Layout,
    LayoutLeft,
    Stride,
    along_axis,
    apply_to_inner,
    axis_paths,
    coprofile_of,
    coshape_of,
    domain_of,
    has_numbers,
    joined,
    make,
    modes_of,
    of_layouts,
    on_axis,
    regrouped,
    shape_of,
    static,
)
from cute_py.layout.leaf import (
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    as_leaves,
    leaf_text,
    mode_text,
    times,
    tree_text,
    trunc_div,
    trunc_mod,
)
from cute_py.layout.modes import append
from cute_py.layout.trees import (
    at,
    check_depth,
    is_underscore,
    leaves,
    map_leaves,
    modes,
    rank_of,
    unwrap,
    zip2_by,
    zip_pairs,
)

Step: TypeAlias = "tuple[str, tuple[Any, ...]]"
"""The name of a rule, and the leaves that it used; `steps` has a sentence for each rule."""


def _ascending(shape: Tree, stride: Tree) -> list[tuple[Any, Any]] | None:
    """Return (stride, size) of the modes that move, by ascending stride; None if the strides have no order."""
    moving = [
        (d, s)
        for s, d in zip(leaves(shape), leaves(stride), strict=True)
        if not (type(d) is Int and d == 0) and not (type(s) is Int and s == 1)
    ]
    if len(moving) == 1:
        return None if hasattr(moving[0][0], "modes") else moving
    if not all([type(d) is Int for d, _ in moving]):  # noqa: C419  (run-time numbers or bases)
        return None
    return sorted(moving, key=itemgetter(0))


def complement_of(layout: Layout, target: Tree) -> Layout:
    """Return the complement of a layout up to a size, a shape, or a size for each codomain axis."""
    return complement_by_steps(layout, target)[0]


def complement_by_steps(layout: Layout, target: Tree) -> tuple[Layout, list[Step]]:
    """Compute the complement as `complement_of` does, and also return the steps."""
    steps: list[Step] = []
    moving = _ascending(layout.shape, layout.stride)
    if moving is None or type(target) is not Int:
        profile = coprofile_of(layout.stride)
        if profile != 0:
            return _complement_by_axis(layout, profile, target), steps
        if moving is None:  # C++: static_assert
            raise StaticAssertError(
                "Dynamic-stride complement only for rank-1 layouts",
                {"layout": mode_text(*filtered(layout.shape, layout.stride))},
                _static_hint(layout, target),
            )
    if not moving:
        whole = coalesced_shape(target)
        return make(whole, compact_left(whole)[0], layout.assumptions), steps
    sizes: list[Leaf] = []
    strides: list[Leaf] = []
    end: Any = STATIC_ONE
    for d, s in moving:  # C++ folds the smallest of the remaining strides
        # Number of copies of the earlier modes that fit below this stride.
        gap: Any = trunc_div(d, end)
        if type(gap) is Int and gap < 1:
            flat = filtered(layout.shape, layout.stride)
            if flat != (layout.shape, layout.stride):  # modes with negative strides join their neighbours first
                return complement_by_steps(make(*flat, layout.assumptions), target)
            if gap == 0:  # C++: static_assert
                below = f"{leaf_text(d)} is below {leaf_text(end)}, the end of the modes with smaller strides"
                facts = {"layout": layout, "stride": below}
                raise StaticAssertError("Non-injective Layout detected in complement.", facts)
        steps.append(("gap", (s, d, gap, end)))
        if not (type(gap) is Int and gap == 1):
            sizes.append(gap)
            strides.append(end)
        end = times(d, s)
    rest = coalesced_shape(ceil_div_of(target, end))
    tail = compact_left(rest, end)[0] if type(rest) is tuple else end
    steps.append(("tail", (rest, tail, end, target)))
    for s, d in zip(modes(rest), modes(tail), strict=True):
        if not (type(s) is Int and s == 1):
            sizes.append(s)
            strides.append(d)
    if not sizes:
        return make(STATIC_ONE, STATIC_ZERO, layout.assumptions), steps
    return make(unwrap(sizes), unwrap(strides), layout.assumptions), steps


def _static_hint(layout: Layout, target: Tree) -> str | None:
    """Return a hint to use `cute.static` if static numbers have a complement; otherwise None."""
    if not has_numbers(layout):
        return None
    made = unless_refused(lambda: complement_of(static(layout), static(target)))
    return None if made is None else f"plain ints are run-time; with cute.static(layout), the complement is {made}"


def _complement_by_axis(layout: Layout, profile: Tree, target: Tree) -> Layout:
    parts = []
    for path in axis_paths(profile):
        size = at(target, path) if type(target) is tuple else target
        mine = complement_of(make(layout.shape, along_axis(layout.stride, path)), size)
        parts.append((mine.shape, on_axis(mine.stride, path, layout.stride)))
    return make(tuple([p[0] for p in parts]), tuple([p[1] for p in parts]))


def complement(layout: LayoutLike, cotarget: Shaped | None = None) -> Layout:
    """Return the layout of the start offsets of copies of `layout` that together fill 0 .. cotarget-1.

    Args:
        cotarget: a size, a shape, or a layout, whose shape is used; default: the cosize of `layout`.
    Raises:
        StaticAssertError: 'Non-injective Layout detected in complement.', 'Dynamic-stride complement only for rank-1
            layouts'.

    If modes have basis strides (which C++ does not compile), each codomain axis has a complement of its own. Then
    `cotarget` has one size per axis, and mode i of the result moves along axis i.

    >>> print(complement(Layout(Int(4), Int(2)), Int(24)))
    (_2,_3):(_1,_8)
    """
    if type(layout) is not Layout and is_underscore(layout):
        return layout  # type: ignore[return-value]
    inner = layout if type(layout) is Layout else domain_of(layout)
    profile = coprofile_of(inner.stride)
    if profile != 0:
        flat = filtered(inner.shape, inner.stride)
        if coprofile_of(flat[1]) == 0:  # no mode with a basis stride moves: an integer layout, as in C++
            return complement(make(*flat, inner.assumptions), cotarget)
    if cotarget is not None:
        target = shape_of(cotarget)
    elif profile == 0:
        target = product_of(coshape_of(inner.shape, inner.stride))
    else:
        target = coshape_of(*filtered(inner.shape, inner.stride))
    return complement_of(inner, target) if profile == 0 else _complement_by_axis(inner, profile, target)


def _by_mode(operation: Callable[[Layout, Tiler], Layout], layout: Layout, tiler: tuple[Tiler, ...]) -> Layout:
    """Apply the operation to each mode that has an item in the tiler; the other modes do not change."""
    parts = modes_of(layout)
    if len(tiler) > len(parts):
        raise StaticAssertError(
            f"{operation.__name__}: Too many modes in tiler.", {"tiler": tiler_text(tiler), "layout": layout}
        )
    return joined([operation(p, t) for p, t in zip(parts, tiler, strict=False)] + parts[len(tiler) :])


@of_layouts
def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Split a layout, or every mode that has a tile in `tiler`, into (tile, rest).

    >>> print(logical_divide(Layout((Int(8), Int(8)), (Int(8), Int(1))), (Int(2), Int(4))))
    ((_2,_4),(_4,_2)):((_8,_16),(_1,_4))
    """
    if type(layout) is not Layout:
        return apply_to_inner(logical_divide, layout, tiler)
    check_depth(tiler)
    if isinstance(tiler, Layout):
        whole = coalesced(layout.shape, layout.stride)[0]
        return compose_layouts(layout, joined([tiler, complement_of(tiler, whole)]))
    if type(tiler) is tuple:
        return _by_mode(logical_divide, layout, tiler)
    return layout if is_underscore(tiler) else logical_divide(layout, _sized(tiler))


def _sized(tiler: Tiler) -> Layout:
    """Convert a size to a layout. A named tuple is refused, because only a plain tuple is a by-mode tiler."""
    if isinstance(tiler, tuple):
        raise wrong_type("a tiler must be a plain tuple, a size, a layout or `_`", tiler, hint="pass tuple(tiler)")
    return Layout(tiler)


def zipped(layout: Layout, tiler: Tiler) -> Layout:
    """Regroup a logical divide or product into two modes: all first halves, and all second halves."""
    if type(layout) is not Layout:  # a product with a composed tiler
        raise InvalidTypeError(
            "zipped_product does not support a composed layout as tiler; use logical_product", {"layout": layout}
        )
    return regrouped(layout, lambda tree: zip2_by(tree, tiler))


@of_layouts
def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Divide a layout by a tiler, and group the result as ((tile modes), (rest modes)).

    >>> print(zipped_divide(Layout((Int(8), Int(8), Int(3))), (Int(2), Int(4))))
    ((_2,_4),(_4,_2,_3)):((_1,_8),(_2,_32,_64))
    """
    if type(layout) is not Layout:
        return apply_to_inner(zipped_divide, layout, tiler)
    return zipped(logical_divide(layout, tiler), tiler)


def unpacked(layout: Layout, first: bool, second: bool) -> Layout:
    """Unpack the modes inside mode 0 (if `first`) and inside mode 1 (if `second`) of a rank-2 layout.

    As C++'s slice with `repeat<R>(_)` does, a mode of rank 1 keeps its brackets, and a mode of rank 0 disappears.
    """

    def spread(tree: Tree) -> Tree:
        a, b = modes(tree)
        return (*(a if first and rank_of(a) != 1 else (a,)), *(b if second and rank_of(b) != 1 else (b,)))

    return regrouped(layout, spread)


@of_layouts
def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Divide a layout by a tiler, and arrange the result as ((tile modes), rest, rest, ...).

    >>> print(tiled_divide(Layout((Int(8), Int(8)), (Int(8), Int(1))), (Int(2), Int(4))))
    ((_2,_4),_4,_2):((_8,_1),_16,_4)
    """
    if type(layout) is not Layout:
        return apply_to_inner(tiled_divide, layout, tiler)
    return unpacked(zipped_divide(layout, tiler), False, True)


@of_layouts
def flat_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Divide a layout by a tiler, and arrange the result as (tile, tile, ..., rest, rest, ...).

    >>> print(flat_divide(Layout((Int(8), Int(8)), (Int(8), Int(1))), (Int(2), Int(4))))
    (_2,_4,_4,_2):(_8,_1,_16,_4)
    """
    if type(layout) is not Layout:
        return apply_to_inner(flat_divide, layout, tiler)
    return unpacked(zipped_divide(layout, tiler), True, True)


def ceil_div(a: Shaped, b: Shaped) -> Tree:
    """Return the number of tiles of size b that cover a: (a + b - 1) / b for integers, mode by mode for tuples. If only
    a is a tuple, an integer b is itself divided by each mode before it is passed to the next. For a layout in b, the
    result is the shape of its complement in a.

    >>> print(ceil_div((Int(10), Int(7)), (Int(4), Int(7))), ceil_div(100, 8))
    (Int(3), Int(1)) 13
    >>> ceil_div((Int(12), 7), (Layout(Int(2), Int(3)), 4))
    ((Int(3), Int(2)), 2)
    """
    if isinstance(b, Layout):
        return complement(b, a).shape
    if hasattr(type(a), "ceil_div"):
        return a.ceil_div(b)  # type: ignore[no-any-return, union-attr]
    if type(b) is tuple:
        check_depth(b)
        parts: Any = shape_of(a)
        if type(parts) is tuple and any(isinstance(tile, (tuple, Layout)) for tile in b):
            if len(b) > len(parts):
                raise StaticAssertError("Mismatched ranks", {"dividend": given(a), "divisor": given(b)})
            return tuple([ceil_div(x, tile) for x, tile in zip_longest(parts, b, fillvalue=Int(1))])
    return ceil_div_of(shape_of(a), as_leaves(b))


def evenly_divides(a: Shaped, tiler: Shaped) -> Int | bool:
    """Return whether a tiler of sizes and layouts divides the shape a without remainder.

    >>> print(evenly_divides((Int(12), Int(8)), (Int(4), Layout(Int(2), Int(5)))), evenly_divides(Int(10), Int(5)))
    _0 _1
    """
    if type(tiler) is not tuple:
        return compatible(product(a), product(tiler) * product(ceil_div(a, tiler)))
    check_depth(tiler)
    parts = modes(shape_of(a))
    if len(tiler) > len(parts):
        return Int(0)
    found = [evenly_divides(x, tile) for x, tile in zip(parts, tiler, strict=False)]
    if any(type(one) is Int and one == 0 for one in found):
        return Int(0)
    return Int(1) if all(type(one) is Int for one in found) else all(found)


def _of_block(operation: Callable[..., Any], block: LayoutLike, *args: Any) -> Layout:
    """Compute a product with a composed layout as the block. As in C++, a tensor is refused, because its copies would
    be outside its memory."""
    if hasattr(type(block), "engine"):
        raise wrong_type(
            f"{operation.__name__} takes a layout", block, hint="pass tensor.layout to get the product as a layout"
        )
    return apply_to_inner(operation, block, *args)


@of_layouts
def logical_product(block: Layout, tiler: Tiler) -> Layout:
    """Repeat a block: the result is (block, copies), whose mode 1 gives the offsets where the copies start, in the
    order of the tiler.

    Raises:
        StaticAssertError: the block is not injective, or the tiler does not compose with its complement.

    >>> print(logical_product(Layout((Int(2), Int(2)), (Int(4), Int(1))), Layout(Int(6), Int(1))))
    ((_2,_2),(_2,_3)):((_4,_1),(_2,_8))
    """
    if type(block) is not Layout:
        return _of_block(logical_product, block, tiler)
    check_depth(tiler)
    if isinstance(tiler, Layout):
        span = times(product_of(block.shape), product_of(coshape_of(tiler.shape, tiler.stride)))
        profile = coprofile_of(block.stride)
        target = span if profile == 0 else map_leaves(lambda _: span, profile)
        return joined([block, compose_layouts(complement_of(block, target), tiler)])
    if hasattr(type(tiler), "_as_product_tiler"):
        return tiler._as_product_tiler(block)  # type: ignore[union-attr, no-any-return]
    if type(tiler) is tuple:
        return _by_mode(logical_product, block, tiler)
    return block if is_underscore(tiler) else logical_product(block, _sized(tiler))


@of_layouts
def zipped_product(block: Layout, tiler: Tiler) -> Layout:
    """Return the logical product, grouped as ((block modes), (copies)).

    >>> print(zipped_product(Layout((Int(4), Int(8))), (Int(3), Int(2))))
    ((_4,_8),(_3,_2)):((_1,_4),(_4,_1))
    """
    if type(block) is not Layout:
        return _of_block(zipped_product, block, tiler)
    return zipped(logical_product(block, tiler), tiler)


@of_layouts
def tiled_product(block: Layout, tiler: Tiler) -> Layout:
    """Return the product with the modes of the block in mode 0: ((block modes), copies, copies, ...).

    >>> print(tiled_product(static(Layout((2, 2))), static(Layout((3, 4)))))
    ((_2,_2),_3,_4):((_1,_2),_4,_12)
    """
    if type(block) is not Layout:
        return _of_block(tiled_product, block, tiler)
    return unpacked(zipped_product(block, tiler), False, True)


@of_layouts
def flat_product(block: Layout, tiler: Tiler) -> Layout:
    """Return the product as a flat list of modes: (block, block, ..., copies, copies, ...).

    >>> print(flat_product(static(Layout((2, 2))), static(Layout((3, 4)))))
    (_2,_2,_3,_4):(_1,_2,_4,_12)
    """
    if type(block) is not Layout:
        return _of_block(flat_product, block, tiler)
    return unpacked(zipped_product(block, tiler), True, True)


def _interleaved(block: Layout, tiler: LayoutLike, first: int) -> Layout:
    """Pair mode i of the block with mode i of the copies; half number `first` comes first in each pair."""
    tiles = getattr(tiler, "layout", tiler)
    tiler = domain_of(tiles)
    if tiles is not tiler:
        raise InvalidTypeError(
            "blocked_product and raked_product do not support a composed layout as tiler; use logical_product",
            {"tiler": tiles},
        )
    mine, other = rank_of(block.shape), rank_of(tiler.shape)
    block = append(block, None, other) if mine < other else block
    tiler = append(tiler, None, mine) if other < mine else tiler
    result = logical_product(block, tiler)
    order = slice(None, None, 1 - 2 * first)
    return regrouped(result, lambda tree: zip_pairs(*tree[order]))  # type: ignore[index]


@of_layouts
def blocked_product(block: Layout, tiler: LayoutLike) -> Layout:
    """Repeat a block as whole blocks: mode i of the result is (block's mode i, tiler's mode i).

    >>> print(blocked_product(Layout(Int(2), Int(1)), Layout((Int(3), Int(4)))))
    ((_2,_3),(_1,_4)):((_1,_2),(_0,_6))
    """
    if type(block) is not Layout:
        return _of_block(blocked_product, block, tiler)
    return _interleaved(block, tiler, 0)


@of_layouts
def raked_product(block: Layout, tiler: LayoutLike) -> Layout:
    """Repeat a block with its elements interleaved: mode i of the result is (tiler's mode i, block's mode i).

    >>> print(raked_product(Layout(Int(2), Int(1)), Layout(Int(3))))
    ((_3,_2)):((_2,_1))
    """
    if type(block) is not Layout:
        return _of_block(raked_product, block, tiler)
    return _interleaved(block, tiler, 1)


@of_layouts
def tile_to_shape(block: Layout, shape: Shaped, order: Stride = LayoutLeft) -> Layout:
    """Repeat the block until the result has the shape `shape`; the modes are filled in the order `order`.

    Raises:
        StaticAssertError: 'tile_to_shape: block shape does not divide the target shape.' if both are static;
            'Rank of layout must be <= rank of target shape.'

    >>> print(tile_to_shape(Layout((Int(8), Int(64)), (Int(64), Int(1))), (Int(16), Int(128))))
    ((_8,_2),(_64,_2)):((_64,_512),(_1,_1024))
    """
    if type(block) is not Layout:
        return _of_block(tile_to_shape, block, shape, order)
    target = shape_of(shape)
    rank = len(modes(target))
    if len(modes(block.shape)) > rank:
        raise StaticAssertError(
            "Rank of layout must be <= rank of target shape.",
            {"layout": block, "target shape": tree_text(target)},
        )
    padded = append(block, None, rank)
    block_shape = tuple([product_of(s) for s in modes(padded.shape)])
    target_shape = tuple([product_of(s) for s in modes(target)])
    if all(type(s) is Int for s in target_shape):
        for i, (t, b) in enumerate(zip(target_shape, block_shape, strict=True)):
            _check_division(i, t, b, lambda: tile_to_shape(static(block), shape, order))
    counts = ceil_div_of(target_shape, block_shape)
    ordered = isinstance(order, (tuple, int))
    tiler = make(counts, compact_order(counts, as_leaves(order))) if ordered else Layout(counts, order)
    return blocked_product(padded, tiler)


def _check_division(mode: int, target: Leaf, block: Leaf, with_static: Callable[[], Layout]) -> None:
    """Refuse a block that does not divide a static target, or is known only at run time, as C++ does."""
    known = type(block) is Int
    if not known or block == 0 or trunc_mod(target, block) != 0:
        shown = leaf_text(block) if known else f"{tree_text(block)}, known only at run time"
        made = unless_refused(with_static) if type(block) is int else None  # `static` leaves symbols as they are
        raise StaticAssertError(
            "tile_to_shape: block shape does not divide the target shape.",
            {"mode": mode, "block": shown, "target": leaf_text(target)},
            None if made is None else f"plain ints are run-time; with cute.static(block), the result is {made}",
        )


def domain_distribute(shape: Shaped, size: SupportsIndex) -> Layout:
    """Spread `size` indices over a shape: each mode in turn takes the gcd of its extent and the rest of `size`.

    >>> print(domain_distribute((Int(15), Int(14)), Int(6)))
    (_3,_2):(_1,_15)
    """
    flat = leaves(shape_of(shape))
    rest: Any = as_leaves(size)
    if type(rest) is not Int or not all(type(s) is Int for s in flat):
        raise StaticAssertError("is_static<ShapeB>::value", {"shape": tree_text(tuple(flat)), "size": tree_text(rest)})
    counts = []
    for s in flat:
        counts.append(STATIC[math.gcd(s, rest)])
        rest = trunc_div(rest, counts[-1])
    starts, _ = compact_left(tuple(flat))
    return make(*coalesced(tuple(counts), starts))
