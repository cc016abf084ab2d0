"""coalesce_256: merge contiguous modes as long as the result fits in one TMA box mode.

    (16,16):(1,16)  ->  256:1          (64,4,2):(1,64,256)  ->  (256,2):(1,256)

As `coalesce`, but from the front, and a merge may not exceed 256, the largest extent of a box mode. It never splits:
a mode that is longer than 256 to begin with stays so, and is refused later.
Source: cute/atom/copy_traits_sm90_tma.hpp, detail::coalesce_256.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import same, times
from cute_py.layout.trees import leaves

MAX_BOX_EXTENT = 256
"""Elements; the limit of boxDim in cuTensorMapEncodeTiled."""


def coalesce_256(layout: Layout) -> Layout:
    """Merge static neighbours whose strides continue each other, up to 256 elements.

    Raises:
        InvalidTypeError: no plain layout.

    >>> print(coalesce_256(Layout((Int(2), Int(2), Int(2), Int(64)), (Int(1), Int(2), Int(4), Int(8)))))
    (_8,_64):(_1,_8)
    """
    if not isinstance(layout, Layout):
        raise InvalidTypeError(f"coalesce_256 takes a layout, got {type(layout).__name__}")
    shapes, strides = leaves(layout._shape), leaves(layout._stride)
    if not shapes:
        return make(1, 0)
    new_shape: list[Any] = [shapes[0]]
    new_stride: list[Any] = [strides[0]]
    for s, d in zip(shapes[1:], strides[1:], strict=True):
        back, step = new_shape[-1], new_stride[-1]
        if s == 1:
            continue
        if len(new_shape) == 1 and back == 1:
            new_shape[0], new_stride[0] = s, d
        elif type(s) is int and type(back) is int and same(times(back, step), d) and s * back <= MAX_BOX_EXTENT:
            new_shape[-1] = s * back
        else:
            new_shape.append(s)
            new_stride.append(d)
    if len(new_shape) == 1:
        return make(1, 0) if new_shape[0] == 1 else make(new_shape[0], new_stride[0])
    return make(tuple(new_shape), tuple(new_stride))
