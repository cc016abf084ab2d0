"""The rules of `violations` over columns: which maps break any of them.

Only the answer yes or no is computed here; the reasons come from `violations`, map by map, and a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_py.tma.descriptor.arch import Architecture
from cute_py.tma.descriptor.columns import Columns
from cute_py.tma.descriptor.formats import FORMATS
from cute_py.tma.descriptor.limits import CORNER_BOUNDS, SWIZZLE_SPAN, bounds
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


def broken_rows(table: Columns, gpu: Architecture) -> NDArray[numpy.bool_]:
    """(n,) bool: the maps that break a rule, or that need bits that are not known."""
    import numpy

    broken = numpy.zeros(table.count, numpy.bool_)
    if not _form_fits(table):
        broken[:] = True
        return broken
    for mask in _masks(table, gpu):
        if mask.any():
            broken |= mask
    return broken


def _form_fits(table: Columns) -> bool:
    """Rank and lengths, which all maps share."""
    tiled = table.kind is TensorMapTiled
    if not (1 if tiled else 3) <= table.rank <= 5:
        return False
    wanted = {"global_strides": table.rank - 1, "element_strides": table.rank, "box_dim": table.rank}
    wanted |= {"pixel_box_lower_corner": table.rank - 2, "pixel_box_upper_corner": table.rank - 2}
    return all(table.values[name].shape[1] == length for name, length in wanted.items() if name in table.kind.TUPLES)


def _outside(values: Any, name: str) -> Any:
    least, most = bounds(name)
    return (values < least) | (values > most)


def _any_mode(mask: Any) -> Any:
    return mask.any(axis=1)


def _masks(table: Columns, gpu: Architecture) -> list[Any]:
    """Masks of (1 or n,) bool, true where a rule is broken."""
    import numpy

    v = table.values
    tiled = table.kind is TensorMapTiled
    masks = [_outside(v[name], name) for name in ("data_type", "interleave", "swizzle", "l2_promotion", "oob_fill")]
    data_type = numpy.clip(v["data_type"], 0, len(FORMATS) - 1)
    swizzle = numpy.clip(v["swizzle"], 0, 3)
    floats = numpy.array([row.is_float for row in FORMATS])
    size = numpy.array([row.bits >> 3 for row in FORMATS], numpy.int64)[data_type]
    masks.append((v["oob_fill"] == 1) & ~floats[data_type])
    if table.rank < 3:
        masks.append((v["interleave"] == 1) | (v["interleave"] == 2))
    grain = numpy.where(v["interleave"] == 2, 31, 15)
    masks.append(v["global_address"] & grain != 0)
    masks.append(_outside(v["global_address"], "address_range"))
    masks.append(_any_mode(_outside(v["global_dim"], "size")))
    masks.append(_any_mode(_outside(v["element_strides"], "element_stride")))
    if table.rank > 1:
        masks.append(_any_mode(v["global_strides"] & grain[:, None] != 0))
        masks.append(_any_mode(_outside(v["global_strides"], "stride_range")))
    inner = v["box_dim"][:, 0] if tiled else v["channels_per_pixel"]
    span = numpy.array([SWIZZLE_SPAN[i] or 1 << 62 for i in range(4)])[swizzle]
    row = numpy.clip(inner, 0, 1 << 16) * size
    masks.append(row & 15 != 0)
    masks.append((v["interleave"] == 0) & (row > span))
    if tiled:
        masks.append(_any_mode(_outside(v["box_dim"], "box")))
        visits = numpy.clip(v["box_dim"], 0, 256) // numpy.clip(v["element_strides"], 1, 8)
        masks.append(size * visits.prod(axis=1) > gpu.shared_memory_bytes)
        return masks
    masks.append(_outside(v["channels_per_pixel"], "channels"))
    masks.append(_outside(v["pixels_per_column"], "pixels"))
    pixels = numpy.clip(v["pixels_per_column"], 0, 1024)
    masks.append(row * pixels > gpu.shared_memory_bytes)
    if table.kind is not TensorMapIm2col:
        masks.append(_outside(v["mode"], "wide_mode"))
    return masks + _corner_masks(table)


def _corner_masks(table: Columns) -> list[Any]:
    import numpy

    v = table.values
    if table.kind is TensorMapIm2col:
        lower, upper = v["pixel_box_lower_corner"], v["pixel_box_upper_corner"]
    else:
        lower, upper = v["pixel_box_lower_corner_width"][:, None], v["pixel_box_upper_corner_width"][:, None]
    least, most = CORNER_BOUNDS[table.rank]
    masks = [_any_mode((corner < least) | (corner > most)) for corner in (lower, upper)]
    bounded = lower.shape[1]
    spatial = table.rank - 2
    interleaved = (v["interleave"] == 1) | (v["interleave"] == 2)
    sizes = v["global_dim"]
    last = numpy.where(interleaved[:, None], sizes[:, :spatial], sizes[:, 1 : spatial + 1]) - 1
    last = last.astype(numpy.int32).astype(numpy.int64)
    room = (last[:, :bounded] + upper - lower).astype(numpy.int32)
    masks.append(_any_mode(room < 0))
    if spatial > bounded:
        masks.append(_any_mode(last[:, bounded:] < 0))
    return masks
