"""The two notes that the driver leaves in the upper half of a map, which the hardware does not read."""

from __future__ import annotations

from cute_py.argument_checks import expect_having
from cute_py.tma.descriptor.formats import FORMATS
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled


def note_box_bytes(request: TensorMap) -> int:
    """Word 8: the driver's note of the bytes of the box.

    Element bytes times floor(box / element stride) over all modes; im2col: times channels and pixels. It is not what
    the hardware delivers where an element stride does not divide the box, nor with interleave
    (`cute_py.tma.descriptor.transfer`). 0 where the element format is not known.

    Returns:
        bytes.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> note_box_bytes(TensorMapTiled(7, 0, (64, 64), (256,), (16, 9), (1, 2)))    # 4 bytes x 16 x floor(9 / 2)
    256
    """
    expect_having(request, ("KIND",), "a request of a tensor map")
    number = request.data_type
    if number is None or not 0 <= number < len(FORMATS):
        return 0
    size = FORMATS[number].bits >> 3
    if isinstance(request, TensorMapTiled):
        for box, step in zip(request.box_dim, request.element_strides, strict=False):
            size *= box // step
        return size
    return size * request.channels_per_pixel * request.pixels_per_column
