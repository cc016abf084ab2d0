"""A picture of tensor memory, as text: the shared bytes that each lane and column received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_py.argument_checks import expect, expect_integer
from cute_py.errors import TmemError, given
from cute_py.machine.tensor_memory.memory import NOT_A_SOURCE, SLAB

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

MAX_ADDRESS = 1 << 48

Line = tuple[str, "list[str] | str"]
"""A name, and its cells in columns or as one string."""


def cell_text(bytes_of_cell: NDArray[numpy.int64]) -> str:
    """Return the text of a cell: `0-3` for four consecutive bytes, otherwise each byte; `.` for an empty cell."""
    first = int(bytes_of_cell[0])
    if (bytes_of_cell == NOT_A_SOURCE).all():
        return "."
    if (bytes_of_cell == first + numpy.arange(4)).all():
        return f"{first}-{first + 3}"
    return ",".join("." if byte == NOT_A_SOURCE else str(byte) for byte in bytes_of_cell.tolist())


def picture(sources: NDArray[numpy.int64], columns: range | None = None, *, base: int = 0, lanes_shown: int = 4) -> str:
    """Return a picture of tensor memory, as text, with the shared bytes that each cell received.

    Args:
        sources: (128, 512, 4), in the format of `TensorMemory.sources`.
        columns: the columns to show; by default, all columns that data was copied to.
        base: the shared-memory address that is shown as byte 0.
        lanes_shown: how many lanes to show at the beginning of each slab (32 lanes); the last lane is always shown.

    A slab with the same contents as an earlier slab takes one line.

    >>> empty = numpy.full((128, 512, 4), NOT_A_SOURCE)
    >>> empty[0, 0] = [16, 17, 18, 19]
    >>> print(picture(empty, base=16, lanes_shown=1))
       lane |   0
    --------+----
          0 | 0-3
        ... |
         31 |   .
      32-63 |   .
     64-127 | as lanes 32-63
    """
    expect(sources, numpy.ndarray, "sources")
    lanes_shown = expect_integer(lanes_shown, "lanes_shown", 1, SLAB)
    base = expect_integer(base, "base", -MAX_ADDRESS, MAX_ADDRESS)
    if sources.ndim != 3 or sources.shape[2] != 4 or not sources.size or sources.shape[0] % SLAB:
        raise TmemError(
            f"sources has the shape {sources.shape}; must be (lanes, columns, bytes), in slabs of {SLAB} lanes"
        )
    if sources.dtype.kind not in "iu":
        raise TmemError(f"sources has the type {sources.dtype}; must hold integers")
    used = (sources != NOT_A_SOURCE).any(axis=(0, 2))
    if columns is None:
        columns = range(int(used.argmax()), len(used) - int(used[::-1].argmax())) if used.any() else range(1)
    elif not isinstance(columns, range) or columns.step != 1 or not 0 <= columns.start < columns.stop <= len(used):
        raise TmemError(f"columns = {given(columns)}; must be a range within 0..{len(used)}, in steps of 1")
    shown = numpy.where(sources == NOT_A_SOURCE, NOT_A_SOURCE, sources - base)[:, columns.start : columns.stop]
    lines: list[Line] = [("lane", [str(column) for column in columns])]
    seen: list[int] = []
    for slab in range(0, len(shown), SLAB):
        part = shown[slab : slab + SLAB]
        last = slab + SLAB - 1
        twin = next((first for first in seen if (shown[first : first + SLAB] == part).all()), None)
        if twin is None:
            seen.append(slab)
            lines += _slab(part, slab, lanes_shown)
            continue
        said = f"as lanes {twin}-{twin + SLAB - 1}"
        if lines[-1][1] == said:
            slab = int(lines.pop()[0].split("-")[0])
        lines.append((f"{slab}-{last}", said))
    return _table(lines)


def _slab(part: NDArray[numpy.int64], slab: int, lanes_shown: int) -> list[Line]:
    if (part == part[0]).all():
        return [(f"{slab}-{slab + SLAB - 1}", [cell_text(cell) for cell in part[0]])]
    lines: list[Line] = []
    for lane in range(SLAB):
        if lane < lanes_shown or lane == SLAB - 1:
            lines.append((str(slab + lane), [cell_text(cell) for cell in part[lane]]))
        elif lines[-1][0] != "...":
            lines.append(("...", ""))
    return lines


def _table(lines: list[Line]) -> str:
    """Return lines of right-aligned cells, with a rule after the first line; rows that are strings are not changed."""
    cells = [what for _, what in lines if isinstance(what, list)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    names = max(len(name) for name, _ in lines) + 1
    out = []
    for name, what in lines:
        text = what if isinstance(what, str) else "  ".join(c.rjust(w) for c, w in zip(what, widths, strict=True))
        out.append(f"{name:>{names}} | {text}".rstrip())
    out.insert(1, "-" * (names + 1) + "+" + "-" * (sum(widths) + 2 * len(widths) - 1))
    return "\n".join(out)
