"""Multicast masks: which CTAs of a cluster receive what one of them loads.

Bit i of the mask is CTA i of the cluster. The CTAs that share a tile are those along the modes that the mask is taken
over: a tile of A is shared along N, a tile of B along M.
Source: cute/atom/copy_traits_sm90_tma.hpp, create_tma_multicast_mask. Differs: C++ has a quicker way for run-time
layouts of rank 1 that gives 0 where shape * stride is 0; this is its generic loop.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.domain import has_numbers
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, underscore
from cute_py.layout.slicing import slice_and_offset
from cute_py.layout.trees import check_depth, has_underscore, leaves
from cute_py.targets import MAX_CLUSTER


def multicast_count(num_multicast: Any) -> int:
    """The CTAs of a multicast, from an integer, or from a shape or layout whose size counts.

    >>> multicast_count(2), multicast_count((2, 1)), multicast_count(Layout(Int(4)))
    (2, 2, 4)
    """
    shaped = Layout(num_multicast) if isinstance(num_multicast, tuple) else num_multicast  # sizes are 1 or more
    count = size(shaped) if hasattr(shaped, "shape") and not is_integer(shaped) else shaped
    return expect_integer(count, "num_multicast, a count of CTAs,")


def expect_cta(coord: Any, layout: Layout, what: str = "the coordinate of a CTA") -> None:
    """Refuse a coordinate outside the CTAs that a layout numbers; None, `_` and symbols are free.

    A layout is a function of all integers, and numbers CTAs that are not there; CuTe does not look at the bounds.

    Raises:
        InvalidValueError: a number of the coordinate is below 0, or not below the size of its mode.

    >>> expect_cta((1, 1), Layout((1, 2)))
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: the coordinate of a CTA = (1, 1); must lie in (1,2):(_1,1)
    """
    if _outside(coord, layout.shape):
        raise InvalidValueError(f"{what} = {given(coord)}; must lie in {layout}")


def _outside(coord: Any, shape: Tree) -> bool:
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            return False  # not congruent, which the layout refuses
        return any(_outside(c, s) for c, s in zip(coord, shape, strict=True))
    if not is_integer(coord):
        return False
    extent = size(shape)
    return int(coord) < 0 or (is_integer(extent) and int(coord) >= int(extent))


def create_tma_multicast_mask(cluster_layout_vmnk: Layout, coord: Tree, *modes: int) -> int:
    """The 16-bit mask of the CTAs that share a load with the CTA at `coord`.

    Args:
        cluster_layout_vmnk: CTA coordinate (v, m, n, k) -> CTA number in the cluster.
        coord: coordinate of the loading CTA; `_` (or None) in the modes that share.
        modes: modes to replace by `_`.
    Raises:
        InvalidTypeError: no layout, or a mode that is no integer.
        InvalidValueError: a coordinate outside the cluster, no such mode, a CTA number below 0 or above 15.

    >>> layout = Layout((Int(2), Int(2), Int(4), Int(1)), (Int(1), Int(2), Int(4), Int(0)))
    >>> create_tma_multicast_mask(layout, (0, 0, 0, 0), 1), create_tma_multicast_mask(layout, (0, 0, 1, 0), 1)
    (5, 80)
    """
    if not isinstance(cluster_layout_vmnk, Layout):
        raise InvalidTypeError(f"the CTAs of a cluster are numbered by a layout, got {given(cluster_layout_vmnk)}")
    coord = tuple(coord) if isinstance(coord, list) else coord
    check_depth(coord)
    expect_cta(coord, cluster_layout_vmnk)
    parts = list(coord) if isinstance(coord, tuple) else [coord]
    for mode in modes:
        number = expect_integer(mode, "a mode")
        if not 0 <= number < len(parts):
            raise InvalidValueError(f"no mode {number} in a coordinate of rank {len(parts)}", {"coordinate": coord})
        parts[number] = underscore
    coord = tuple(parts) if isinstance(coord, tuple) else parts[0]
    if not has_underscore(coord):
        numbers = [expect_integer(cluster_layout_vmnk(coord), "the number of a CTA")]
    else:
        layout, offset = slice_and_offset(coord, cluster_layout_vmnk)
        numbers = [expect_integer(offset, "the number of a CTA")]
        if not has_numbers(layout):
            raise InvalidTypeError("the CTAs of a cluster are numbered by known integers", {"layout": layout})
        for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
            steps = range(min(int(n), MAX_CLUSTER + 1)) if d else range(1)  # a stride of 0 names no further CTA
            numbers = sorted({number + i * int(d) for number in numbers for i in steps})
            _check(numbers, cluster_layout_vmnk)
    _check(numbers, cluster_layout_vmnk)
    return sum(1 << n for n in numbers)


def _check(numbers: list[int], layout: Layout) -> None:
    wrong = [n for n in numbers if not 0 <= n < MAX_CLUSTER]
    if wrong:
        raise InvalidValueError(
            f"CTA {wrong[0]} in a multicast mask; must be 0 to {MAX_CLUSTER - 1}", {"layout": layout}
        )
