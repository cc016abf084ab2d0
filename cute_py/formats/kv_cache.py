"""Layouts of a KV cache [L, B, H, N, C]: layers, blocks, heads, tokens of a block, channels.

Inference servers store these five modes in different orders. Each order is a layout with the modes (l, b, h, n, c) and
its own strides.
"""

from __future__ import annotations

from typing import Final

from cute_py.argument_checks import expect, expect_integer
from cute_py.errors import InvalidValueError, given
from cute_py.layout.layout import Layout

MODES: Final = "LBHNC"
"""Letters of the modes, in the order of a coordinate."""


def kv_cache_layout(order: str, sizes: dict[str, int]) -> Layout:
    """The layout from (l, b, h, n, c) to the index in a KV cache whose modes are stored in `order`, the slowest-varying
    mode first.

    Args:
        order: a permutation of the letters L (layers), B (blocks), H (heads), N (tokens of a block), C (channels):
            'LBHNC', 'LBNHC', 'BLHNC', 'BLNHC', 'LHBNC', 'BHLNC'. sizes: letter -> size.

    >>> print(kv_cache_layout("LBNHC", {"L": 2, "B": 3, "H": 4, "N": 16, "C": 64}))
    (2,3,4,16,64):(12288,4096,64,256,1)
    """
    expect(order, str, "order")
    if sorted(order) != sorted(MODES) or set(expect(sizes, dict, "sizes")) != set(MODES):
        raise InvalidValueError(f"order = {given(order)}; must be a permutation of LBHNC, with a size for each letter")
    stride, step = {}, 1
    for letter in reversed(order):
        stride[letter] = step
        step *= expect_integer(sizes[letter], f"the size of {letter}", 1)
    return Layout(tuple(int(sizes[x]) for x in MODES), tuple(stride[x] for x in MODES))
