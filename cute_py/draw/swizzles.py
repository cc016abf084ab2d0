"""Pictures of swizzles: where each element lies before and after, coloured by the banks that hold it.

Shared memory has 32 banks of 4 bytes; a read of 8 rows of 16 bytes takes one pass where the rows lie in 8 different
groups of 4 banks. Cells of one colour lie in the same group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from cute_py.draw.axes import axes_of, equals, table_of
from cute_py.draw.layouts import BANK_LEGEND, BANKS, bank_of, byte_text, check_bits
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Table
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import coprofile
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import modes

UNIT = 16
"""Bytes that one lane reads at once."""
ROWS = 8
"""Rows that are read together."""

On = Literal["bytes", "elements"]


def draw_swizzle(swizzle: Any, layout: Any = None, bits: int = 16, *, on: On = "bytes") -> Picture:
    """A layout before and after a swizzle.

    Args:
        swizzle: a `Swizzle`, or a composed layout with one outside, which then says layout, bits and unit itself.
        layout: integer strides, in elements; default: what the swizzle moves as one is an element, a row has 2**shift
            of them, and one repeat or 8 rows are drawn.
        bits: width of an element.
        on: what the swizzle acts on: 'bytes' as the TMA engine does, or 'elements' as `Sw o 0 o layout` does.
    Raises:
        InvalidTypeError: no swizzle, or a layout whose offsets are coordinates.
        InvalidValueError: a width that is none, or another word for `on`.

    >>> picture = draw_swizzle(Swizzle(3, 4, 3))
    >>> [line for line in picture.text.splitlines() if line.startswith("1 |")][1]
    '1 |   9 b4    8 b0  11 b12   10 b8  13 b20  12 b16  15 b28  14 b24'
    >>> picture.notes[0]
    '16-byte reads of 8 rows of column 0 take 8 pass(es) before, 1 after'
    """
    if isinstance(swizzle, ComposedLayout):
        if layout is not None:
            raise InvalidTypeError(
                "a composed layout has its own layout inside", {"swizzle": swizzle, "layout": layout}
            )
        flag = isinstance(swizzle.offset, SmemPtrFlag)
        if isinstance(swizzle.outer, Swizzle) and not flag and swizzle.offset != 0:
            raise InvalidValueError(f"{swizzle}: a swizzle is drawn for offset 0", {"offset": swizzle.offset})
        on, bits = ("bytes", int(swizzle.offset.bits)) if flag else ("elements", bits)
        swizzle, layout = swizzle.outer, swizzle.inner
    if not isinstance(swizzle, Swizzle):
        raise InvalidTypeError(f"draw_swizzle takes a swizzle or a swizzled layout, got {given(swizzle)}")
    if layout is None:
        rows, columns = 1 << max(swizzle.bits, 3), 1 << abs(swizzle.shift)
        layout, on = Layout((Int(rows), Int(columns)), (Int(columns), Int(1))), "bytes"
        bits = 8 << swizzle.base
    else:
        bits = check_bits(bits)
    if not isinstance(layout, Layout) or coprofile(layout) != 0:
        raise InvalidTypeError(f"draw_swizzle takes a layout with integer strides, got {_shown(layout)}")
    if not isinstance(on, str) or on not in ("bytes", "elements"):
        raise InvalidValueError(f"on = {given(on)}; must be 'bytes' or 'elements'")
    move = _mover(swizzle, bits, on)
    tables = (
        _table("before: offset in elements, and bank", layout, bits, lambda offset: offset),
        _table(f"after {swizzle} on {on}", layout, bits, move),
    )
    return Picture(f"{swizzle} on {on}, {layout}, {bits} bits", tables, _passes(layout, bits, move))


def _shown(layout: Any) -> str:
    return str(layout) if isinstance(layout, Layout) else given(layout)


def _mover(swizzle: Swizzle, bits: int, on: str) -> Callable[[int], int]:
    """Offset in elements -> offset in elements."""
    if on == "elements":
        return swizzle.of
    if bits % 8:
        whole = max(8 // bits, 1)
        if 8 % bits:
            raise InvalidValueError(f"elements of {bits} bits do not fill bytes; a swizzle on bytes splits them")
        return lambda offset: swizzle.of(offset // whole) * whole + offset % whole
    size = bits // 8
    if swizzle.bits and (1 << swizzle.base) % size:
        raise InvalidValueError(
            f"{swizzle} moves pieces of {1 << swizzle.base} bytes; elements of {size} bytes are split by it"
        )
    return lambda offset: swizzle.of(offset * size) // size


def _table(title: str, layout: Layout, bits: int, move: Callable[[int], int]) -> Table:
    def cell(i: int, j: int, way: str, value: Any) -> Cell:
        offset = move(int(value))
        bank = bank_of(offset, bits)
        text = f"{equals(way, str(int(value)))} -> offset {offset}: {byte_text(offset, bits)}, bank {bank}"
        return Cell(f"{offset}\nb{bank}", text, bank * TONES // BANKS)

    return table_of(title, layout, cell, tables=2, legends=(BANK_LEGEND,))


def _passes(layout: Layout, bits: int, move: Callable[[int], int]) -> tuple[str, ...]:
    """How many passes a read of the first 8 rows takes, along each mode that has 8."""
    if len(modes(layout.shape)) != 2:
        return ()
    _, down, across = axes_of(layout)
    out = []
    for mode, axis in enumerate((down, across)):
        if axis.size < ROWS:
            continue
        offsets = [int(layout(i, 0) if mode == 0 else layout(0, i)) for i in range(ROWS)]
        before, after = (_conflicts(offsets, bits, f) for f in (lambda offset: offset, move))
        if before > 1 or after > 1 or mode == 0:
            what = "rows of column 0" if mode == 0 else "columns of row 0"
            out.append(f"16-byte reads of 8 {what} take {before} pass(es) before, {after} after")
    return tuple(out)


def _conflicts(offsets: list[int], bits: int, move: Callable[[int], int]) -> int:
    """The most different 16-byte units of one bank group among the offsets."""
    units = {move(offset) * bits // 8 // UNIT for offset in offsets}
    groups = [unit % (BANKS * 4 // UNIT) for unit in units]
    return max(groups.count(group) for group in groups)
