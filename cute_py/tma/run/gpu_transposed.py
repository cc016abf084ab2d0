"""The plan of a transposing copy: source and destination have different innermost modes.

Where both sizes are whole 128-byte lines, the maps get one mode more, (line, lines of a row, rows), so that a row of a
tile moves at once and not box by box.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import TmaLimitError
from cute_py.tma.descriptor.formats import TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.lower.kernel_transpose import ROW_BYTES, TILES, copy_transposed
from cute_py.tma.run.gpu_modes import HINTS, CopyPlan, Mode, Tuning, ceil_div, copy_map

_UNSIGNED: Final = {
    1: TensorMapDataType.UINT8,
    2: TensorMapDataType.UINT16,
    4: TensorMapDataType.UINT32,
    8: TensorMapDataType.UINT64,
}


def plan_transposed(
    source: int, destination: int, modes: tuple[Mode, ...], inner: int, width: int, tuning: Tuning
) -> CopyPlan:
    """The plan for `modes`, of which mode 0 is contiguous in the destination and mode `inner` in the source.

    Rows of the destination are whole 16 bytes.

    Raises:
        TmaLimitError: an element width without a tile.
    """
    if width not in TILES:
        raise TmaLimitError(f"element = {width} bytes; a transposing copy takes {', '.join(map(str, TILES))}")
    rows, columns = modes[0], modes[inner]
    others = [mode for index, mode in enumerate(modes) if index not in (0, inner)]
    batches = others[0].size if others else 1
    load, store = HINTS if tuning.hints else (None, None)
    (height, across), line = TILES[width], ROW_BYTES // width
    paired = tuning.paired and rows.size % line == 0 and columns.size % line == 0
    kernel = copy_transposed(
        rows.size, columns.size, width, batches=batches, paired=paired, load_hint=load, store_hint=store
    )

    def side(address: int, inner: int, outer: int, pitch: int, far: list[int], box: tuple[int, int]) -> TensorMapTiled:
        tail, ones = tuple(mode.size for mode in others), (1,) * len(others)
        sizes, strides, boxes = (inner, outer, *tail), (pitch, *far), (line, box[1], *ones)
        if paired:
            sizes, strides = (line, inner // line, *sizes[1:]), (ROW_BYTES, *strides)
            boxes = (line, box[0] // line, *boxes[1:])
        return copy_map(address, sizes, strides, boxes, _UNSIGNED[width], TensorMapSwizzle.B128)

    maps = (
        side(source, columns.size, rows.size, rows.source, [mode.source for mode in others], (across, height)),
        side(
            destination,
            rows.size,
            columns.size,
            columns.destination,
            [mode.destination for mode in others],
            (height, across),
        ),
    )
    blocks = ceil_div(rows.size, height) * ceil_div(columns.size, across) * batches
    total = rows.size * columns.size * batches * width
    return CopyPlan("transposed", kernel, maps, blocks, total, "source and destination have different innermost modes")
