"""What a tile copy leaves in shared memory, computed with numpy from the definition: boxes, rows, swizzle, zeros."""

from __future__ import annotations

from typing import Any

import numpy

from cute_py.tma.descriptor.data_types import TensorMapSwizzle
from cute_py.tma.dialect.traced_copy import Copyable, trace_copy

PHASES = {TensorMapSwizzle.NONE: 0, TensorMapSwizzle.B32: 1, TensorMapSwizzle.B64: 3, TensorMapSwizzle.B128: 7}


def swizzled(offset: int, swizzle: TensorMapSwizzle) -> int:
    """Byte offset -> byte offset: the 16-byte chunk number is XORed with the number of the 128-byte row."""
    return offset ^ (((offset >> 7) & PHASES[swizzle]) << 4)


def tile_image(atom: Copyable, tensor: numpy.ndarray[Any, Any], origin: tuple[int, ...]) -> bytes:
    """The bytes of shared memory after a load of the tile whose first element is `origin` (outermost first)."""
    shape, size = trace_copy(atom), tensor.itemsize
    image = bytearray(shape.smem_bytes)
    columns = shape.box[-1]
    for number, start in enumerate(shape.origins):
        for flat, index in enumerate(numpy.ndindex(*shape.box)):
            at = tuple(o + s + i for o, s, i in zip(origin, start, index, strict=True))
            inside = all(0 <= a < extent for a, extent in zip(at, tensor.shape, strict=True))
            value = tensor[at].tobytes() if inside else bytes(size)
            row, column = divmod(flat, columns)
            offset = number * shape.box_smem_bytes + row * shape.row_pitch + column * size
            # A swizzle keeps 16-byte chunks whole, so an element moves as one.
            offset = swizzled(offset, shape.swizzle)
            image[offset : offset + size] = value
    return bytes(image)
