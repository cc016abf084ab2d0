"""Pictures of the part of a sharded tensor that each device holds."""

from __future__ import annotations

from cute_py.argument_checks import expect
from cute_py.draw.element_path import tuple_text
from cute_py.draw.layouts import Value, equals, plane_of, table_of
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, tone_legend
from cute_py.layout.coordinate import idx2crd
from cute_py.layout.layout import Layout, LayoutLeft
from cute_py.layout.trees import leaves
from cute_py.mesh.sharded_layout import ShardedLayout


def draw_shards(sharded: ShardedLayout) -> Picture:
    """The tensor with the device of each element; `0+` is device 0 and replicas.

    Beyond 64 rows or columns the middle is left out, and the picture says so.

    >>> from cute_py.mesh import Shard, distribute
    >>> print(draw_shards(distribute((2, 4), 2, [Shard(1)])).tables[0].cells[3].text)
    1
    """
    shape = expect(sharded, ShardedLayout, "a sharded tensor").shape
    numbers = Layout(shape, LayoutLeft)  # its value is the coordinate's number, colexicographic

    def cell(i: int, j: int, path: str, value: Value) -> Cell:
        coordinate = leaves(idx2crd(value if isinstance(value, int) else 0, shape))
        devices = sharded.holders(coordinate)
        text = f"{devices[0]}+" if len(devices) > 1 else str(devices[0])
        return Cell(text, equals(tuple_text(coordinate), f"devices {', '.join(map(str, devices))}"), devices[0] % TONES)

    table = table_of("", plane_of(numbers), cell, legends=(tone_legend("device modulo 8"),))
    return Picture(str(sharded), (table,), ("cells are devices",))
