"""Recorded calls of the driver as requests."""

from __future__ import annotations

from typing import Any

from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled


def request_of(row: dict[str, Any]) -> TensorMap:
    """The request of one recorded call (`driver_encode_*`).

    The driver takes the rank beside the arrays and reads as many entries as it says; a request has no other rank than
    the length of its sizes, so the arrays are cut to the recorded rank (a few calls passed rank 0).
    """
    rank = row["rank"]
    dims, strides = tuple(row["dims"])[:rank], tuple(row["strides"])[: max(rank - 1, 0)]
    start = (row["data_type"], row["address"], dims, strides)
    steps = tuple(row["element_strides"])[:rank]
    end = (steps, row["interleave"], row["swizzle"], row["l2_promotion"], row["oob_fill"])
    if row["kind"] == "tiled":
        return TensorMapTiled(*start, tuple(row["box"])[:rank], *end)
    pixels = (row["channels_per_pixel"], row["pixels_per_column"])
    if row["kind"] == "im2col":
        return TensorMapIm2col(*start, tuple(row["lower_corner"]), tuple(row["upper_corner"]), *pixels, *end)
    (low,), (high,) = row["lower_corner"], row["upper_corner"]
    return TensorMapIm2colWide(*start, low, high, *pixels, *end, row["wide_mode"])
