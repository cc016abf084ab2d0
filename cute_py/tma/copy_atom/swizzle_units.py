"""Where a swizzle of elements is not the swizzle of bytes that the engine applies.

A swizzle with a plain offset acts on elements; the engine swizzles bytes. At element widths other than one byte the
same three numbers are two functions.
"""

from __future__ import annotations

from typing import Any

from cute_py.layout.composed import ComposedLayout
from cute_py.layout.swizzle import Swizzle


def why_not_units(layout: Any, bits: int) -> str | None:
    """What the engine does differently with this shared layout of elements of `bits` bits, or None.

    >>> from cute_py.layout.layout import Layout
    >>> why_not_units(ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1))), 16)[-52:]
    'elements Sw<3,4,3> on bytes is Sw<3,3,3> on elements'
    """
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.outer, Swizzle) or not layout.outer.bits:
        return None
    if hasattr(layout.offset, "bits") or bits == 8 or bits % 8:
        return None
    on_bytes = layout.outer
    shift = (bits // 8).bit_length() - 1
    if on_bytes.base < shift:
        return f"{on_bytes} on elements of {bits} bits permutes parts of elements when it is read on bytes"
    on_elements = Swizzle(on_bytes.bits, on_bytes.base - shift, on_bytes.shift)
    return (
        f"{on_bytes} acts on elements in this layout, and on bytes in the TMA engine; for {bits}-bit elements "
        f"{on_bytes} on bytes is {on_elements} on elements"
    )
