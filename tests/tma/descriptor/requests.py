"""Requests for property tests: legal ones, and ones with values of any size."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations

TILED = TensorMapTiled(6, 0x1000, (512, 1024), (1024,), (64, 128), swizzle=3)
IM2COL = TensorMapIm2col(6, 0x1000, (64, 16, 16, 2), (128, 2048, 32768), (-1, -1), (-1, -1), 64, 128, swizzle=3)
WIDE = TensorMapIm2colWide(6, 0x1000, (64, 16, 16, 2), (128, 2048, 32768), -1, -1, 64, 128, swizzle=3)


def _generated(seed: int) -> TensorMap:
    from cute_py.gpu.driver import random_request

    return random_request(random.Random(seed))


near_legal = st.integers(0, 2**32).map(_generated)
"""Two in three legal, the others with a value at or beyond the edge of its rule."""

legal = near_legal.filter(lambda request: not violations(request))

_any_number = st.one_of(
    st.integers(-3, 9),
    st.sampled_from(
        [16, 32, 64, 128, 256, 257, 1024, 1 << 31, 1 << 32, 1 << 40, 1 << 57, 1 << 63, 1 << 64, -(1 << 63)]
    ),
    st.integers(-(1 << 70), 1 << 70),
)
_any_tuple = st.lists(_any_number, max_size=6).map(tuple)


@st.composite
def wild(draw: st.DrawFn) -> TensorMap:
    """Any values at all, of any lengths."""
    start: list[Any] = [draw(st.integers(-1, 17)), draw(_any_number), draw(_any_tuple), draw(_any_tuple)]
    enums = [draw(st.integers(-1, top)) for top in (4, 8, 5, 3)]
    steps = draw(st.one_of(st.none(), _any_tuple))
    match draw(st.integers(0, 2)):
        case 0:
            return TensorMapTiled(*start, draw(_any_tuple), steps, *enums)  # type: ignore[arg-type]
        case 1:
            pair = [draw(_any_tuple), draw(_any_tuple)]
            return TensorMapIm2col(*start, *pair, draw(_any_number), draw(_any_number), steps, *enums)  # type: ignore[arg-type]
        case _:
            numbers = [draw(_any_number) for _ in range(4)]
            return TensorMapIm2colWide(*start, *numbers, steps, *enums, draw(st.integers(-1, 3)))  # type: ignore[arg-type]
