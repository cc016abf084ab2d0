"""Tensor and box of a map in CuTe's notation, in elements."""

from __future__ import annotations

from typing import Final

from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled
from cute_py.tma.descriptor.transfer import SLICE_BYTES, element_bytes, measured_width, row_bytes, row_pitch, visited

SWIZZLE_BITS: Final = {1: 1, 2: 2, 3: 3}
"""Swizzle -> B of CuTe's Sw<B,4,3>, which acts on bytes."""


def layout_text(shape: tuple[int, ...], stride: tuple[int, ...]) -> str:
    """A flat layout of run-time numbers as CuTe prints it.

    >>> layout_text((64, 128), (1, 64)), layout_text((8,), (1,))
    ('(64,128):(1,64)', '(8):(1)')
    """
    return f"({','.join(map(str, shape))}):({','.join(map(str, stride))})"


def _elements(sizes: tuple[int, ...], width: int) -> tuple[int, ...] | None:
    return tuple(size // width for size in sizes) if all(size % width == 0 for size in sizes) else None


def tensor_layout(request: TensorMap) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Shape and strides of the tensor in global memory, innermost mode first, and the unit of the strides.

    Strides are in elements; in bytes where the format is not known or a stride is not whole elements. With
    interleave, mode 0 counts channel slices.
    """
    width = measured_width(request)
    inner = SLICE_BYTES.get(request.interleave, width)
    sizes = (inner, *request.global_strides)
    strides = _elements(sizes, width) if width else None
    return (request.global_dim, sizes, "bytes") if strides is None else (request.global_dim, strides, "elements")


def box_shape(request: TensorMap) -> tuple[int, ...]:
    """What one instruction visits, innermost first: coordinates of a tile, or (channels, pixels) of im2col.

    With interleave an im2col load moves one channel slice: (pixels,).
    """
    if isinstance(request, TensorMapTiled):
        return visited(request)
    pixels = request.pixels_per_column
    return (pixels,) if request.interleave else (request.channels_per_pixel, pixels)


def box_layout(request: TensorMap) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Shape and strides of the box in shared memory, innermost mode first, and the unit of the strides.

    The shape counts what is visited (element strides divided out); rows lie the swizzle's span apart if that is more.
    The swizzle permutes bytes on top of it. With interleave, mode 0 counts channel slices.

    Raises:
        UnknownFactError: the format was not measured.

    >>> box_layout(TensorMapTiled(6, 0, (64, 64), (128,), (16, 9), (1, 2), swizzle=3))
    ((16, 5), (1, 64), 'elements')
    """
    shape = box_shape(request)
    width = element_bytes(request)
    if request.interleave:
        step, strides, rest = row_bytes(request), [], shape
    else:
        step, strides, rest = row_pitch(request), [width], shape[1:]
    for count in rest:
        strides.append(step)
        step *= count
    elements = _elements(tuple(strides), width)
    return (shape, tuple(strides), "bytes") if elements is None else (shape, elements, "elements")
