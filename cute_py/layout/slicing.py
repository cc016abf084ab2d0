"""Slice and dice: fix some modes of a layout, keep the others.

slice_(coord, L)           the modes that coord keeps with `_`
dice(coord, L)             the modes that coord fixes
slice_and_offset(coord, L) the kept modes, and the offset of the fixed ones
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError, given
from cute_py.layout.composed import ComposedLayout, slice_parts
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import Tree
from cute_py.layout.trees import check_depth, dice_tree, has_underscore, slice_tree


def slice_(coord: Tree, layout: Any) -> Any:
    """The sublayout that the coordinate keeps; of a bare tuple, the kept modes.

    >>> print(slice_((None, (1, None)), Layout((Int(4), (Int(2), Int(3))), (Int(1), (Int(4), Int(8))))))
    (_4,_3):(_1,_8)
    """
    check_depth(coord)
    if isinstance(layout, (Layout, ComposedLayout)):
        return slice_parts(coord, layout)[0]
    if isinstance(layout, (tuple, int)):
        return slice_tree(coord, layout)
    if not hasattr(layout, "with_domain"):
        raise InvalidTypeError(f"slice_ takes a layout, a tensor or a tuple, got {given(layout)}")
    return layout(coord)


def dice(coord: Tree, layout: Any) -> Any:
    """The sublayout that the coordinate fixes; of a bare tuple, the fixed modes.

    >>> dice((None, 1), (4, 8))
    (8,)
    """
    check_depth(coord)
    check_depth(layout)
    if isinstance(layout, Layout):
        return make(dice_tree(coord, layout._shape), dice_tree(coord, layout._stride), layout._assumptions)
    if isinstance(layout, ComposedLayout):
        return layout.with_domain(dice(coord, layout.inner))
    if isinstance(layout, (tuple, int)):
        return dice_tree(coord, layout)
    raise InvalidTypeError(f"dice takes a layout or a tuple, got {given(layout)}")


def slice_and_offset(coord: Tree, layout: Any) -> tuple[Any, Any]:
    """(kept sublayout, offset of the fixed modes).

    >>> kept, offset = slice_and_offset((2, None), Layout((4, 8), (8, 1)))
    >>> print(kept, offset)
    (8):(1) 16
    """
    check_depth(coord)
    if isinstance(layout, (Layout, ComposedLayout)):
        return slice_parts(coord, layout)
    raise InvalidTypeError(f"slice_and_offset takes a layout, got {given(layout)}")


def domain_offset(coord: Tree, thing: Any) -> Any:
    """(layout, offset) as seen from `coord`; of a tensor, the tensor with its engine moved there.

    >>> layout, offset = domain_offset((1, 2), Layout((4, 8), (8, 1)))
    >>> print(layout, offset)
    (4,8):(8,1) 10
    """
    if has_underscore(coord):
        raise InvalidTypeError("domain_offset takes a coordinate without `_`", {"coordinate": given(coord)})
    if isinstance(thing, Layout):
        return thing, thing(coord)
    if hasattr(thing, "domain_offset"):
        return thing.domain_offset(coord)
    raise InvalidTypeError(f"domain_offset takes a layout or a tensor, got {given(thing)}")
