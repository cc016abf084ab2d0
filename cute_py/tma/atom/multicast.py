"""Multicast masks: which CTAs of a cluster receive what one of them loads.

Bit i of the mask is CTA i of the cluster. The CTAs that share a tile are those along the modes that the mask is taken
over: a tile of A is shared along N, a tile of B along M.
Source: cute/atom/copy_traits_sm90_tma.hpp, create_tma_multicast_mask. Differs: C++ has a quicker way for run-time
layouts of rank 1 that gives 0 where shape * stride is 0; this is its generic loop.
"""

from __future__ import annotations

from cute_py.argument_checks import expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.domain import has_numbers
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, underscore
from cute_py.layout.slicing import slice_and_offset
from cute_py.layout.trees import check_depth, has_underscore, leaves

MAX_CLUSTER = 16
"""CTAs; the mask operand has 16 bits (PTX ISA, cp.async.bulk.tensor, .multicast::cluster)."""


def create_tma_multicast_mask(cluster_layout_vmnk: Layout, coord: Tree, *modes: int) -> int:
    """The 16-bit mask of the CTAs that share a load with the CTA at `coord`.

    Args:
        cluster_layout_vmnk: CTA coordinate (v, m, n, k) -> CTA number in the cluster.
        coord: coordinate of the loading CTA; `_` (or None) in the modes that share.
        modes: modes to replace by `_`.
    Raises:
        InvalidTypeError: no layout, or a mode that is no integer. InvalidValueError: a CTA number below 0 or above 15.

    >>> layout = Layout((Int(2), Int(2), Int(4), Int(1)), (Int(1), Int(2), Int(4), Int(0)))
    >>> create_tma_multicast_mask(layout, (0, 0, 0, 0), 1), create_tma_multicast_mask(layout, (0, 0, 1, 0), 1)
    (5, 80)
    """
    if not isinstance(cluster_layout_vmnk, Layout):
        raise InvalidTypeError(f"the CTAs of a cluster are numbered by a layout, got {given(cluster_layout_vmnk)}")
    coord = tuple(coord) if isinstance(coord, list) else coord
    check_depth(coord)
    parts = list(coord) if isinstance(coord, tuple) else [coord]
    for mode in modes:
        if not is_integer(mode):
            raise InvalidTypeError(f"a mode is an integer, got {given(mode)}")
        if not 0 <= mode < len(parts):
            raise InvalidValueError(f"no mode {mode} in a coordinate of rank {len(parts)}", {"coordinate": coord})
        parts[mode] = underscore
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
