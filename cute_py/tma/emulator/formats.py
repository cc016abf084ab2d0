"""What happens to the bytes of a row on a load: the fill of what is outside, and the rounding to tf32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAN_FILL: Final = 0x7FF7
"""Every 16 bits of NaN fill, whatever the format. Source: measured on NVIDIA H200, driver 580.159.04."""

TF32_NAN: Final = 0x7FFFE000
"""What an in-bounds NaN becomes when it is rounded to tf32. Source: measured, as above."""

_TF32_DROPPED: Final = 13


def fill_rows(rows: NDArray[np.uint8], nan_fill: bool) -> None:
    """Fill (m, row_bytes) bytes with what a load writes outside the tensor."""
    if not nan_fill:
        rows[...] = 0
        return
    rows[..., 0::2] = NAN_FILL & 0xFF
    rows[..., 1::2] = NAN_FILL >> 8


def round_to_tf32(rows: NDArray[np.uint8]) -> None:
    """Round the float32 words of contiguous bytes to tf32 (10 bits of fraction), in place.

    To nearest, ties to even. A NaN becomes 0x7FFFE000; what rounds past the largest number becomes infinity.
    Denormals are not flushed.

    Source: measured on NVIDIA H200, driver 580.159.04.

    >>> words = np.array([0x3F801000, 0x3F801001, 0x3F803000], np.uint32)
    >>> round_to_tf32(words.view(np.uint8)); [hex(word) for word in words]
    ['0x3f800000', '0x3f802000', '0x3f804000']
    """
    words = rows.reshape(-1).view(np.uint32)
    nan = (words & 0x7FFFFFFF) > 0x7F800000
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1) + ((words >> np.uint32(_TF32_DROPPED)) & np.uint32(1))
    rounded = (words + half) & np.uint32(~((1 << _TF32_DROPPED) - 1) & 0xFFFFFFFF)
    words[...] = np.where(nan, np.uint32(TF32_NAN), rounded)
