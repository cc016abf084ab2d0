"""Offsets whose strides are neither integers nor basis elements: strides of any integer module, one object each.

    offsets((2,2):(^01,^11))  =  [[^00, ^11], [^01, ^10]]        strides of bits under XOR

numpy knows no such numbers, so the result is an array of objects, made one by one.
"""

from __future__ import annotations

import itertools
from typing import Any

from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Dynamic
from cute_py.layout.trees import leaves, modes


def has_module_strides(layout: Any) -> bool:
    """Is a stride of the layout something else than an integer, a symbol or a basis element?"""
    return isinstance(layout, Layout) and any(
        type(d) is not int and type(d) is not Dynamic and getattr(d, "modes", None) is None
        for d in leaves(layout._stride)
    )


def module_offsets(layout: Layout, coords: Any = None) -> Any:
    """Array of objects: shape (size<0>, size<1>, ...), or one entry for each coordinate of the sequence `coords`."""
    import numpy as np

    if coords is not None:
        out = np.empty(len(coords), object)
        for i, coordinate in enumerate(coords):
            out[i] = layout(coordinate)
        return out
    sizes = []
    for mode in modes(layout._shape):
        n = 1
        for s in leaves(mode):
            n *= int(s.value if type(s) is Dynamic else s)
        sizes.append(n)
    out = np.empty(tuple(sizes), object)
    single = type(layout._shape) is not tuple
    for coordinate in itertools.product(*map(range, sizes)):
        out[coordinate] = layout(coordinate[0] if single else coordinate)
    return out
