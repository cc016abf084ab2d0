"""Tensor memory at the end of a run: the value of each cell, and the instruction that wrote it last."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.argument_checks import record
from cute_py.errors import shortened
from cute_py.machine.tensor_memory.copy_shapes import LANES

if TYPE_CHECKING:
    from cute_py.machine.threads import Array

NOTHING: Final = 0
"""The line of a cell that nothing has written since its columns were allocated."""


@record
class WrittenCells:
    """A rectangle of cells that the same instruction wrote last.

    Attributes:
        lanes, columns: ranges of lanes and columns. line: line of the instruction in the PTX. instruction: text of the
            instruction.
    """

    lanes: range
    columns: range
    line: int
    instruction: str

    def __str__(self) -> str:
        lanes, columns = (f"{one.start} to {one.stop - 1}" for one in (self.lanes, self.columns))
        return f"columns {columns}, lanes {lanes}: line {self.line}, {shortened(self.instruction, 100)}"


@record
class TensorContents:
    """The tensor memory of one CTA at the end of a run.

    Attributes:
        title: the kernel and the CTA. cells: (128, 512) uint32. lines: (128, 512), PTX line of the instruction that
        wrote each cell last, 0 if none did. instructions: text of the instruction at each line.

    `str` is a table of the written cells; `cute_py.draw.draw` makes a picture. Freed columns keep their values.
    """

    title: str
    cells: Any
    lines: Any
    instructions: Mapping[int, str]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorContents):
            return NotImplemented
        same = self.title == other.title and self.instructions == other.instructions
        return same and np.array_equal(self.cells, other.cells) and np.array_equal(self.lines, other.lines)

    def written(self) -> list[WrittenCells]:
        """Return the written cells as rectangles, sorted by columns and lanes."""
        found = []
        for columns in column_runs(self.lines):
            held = self.lines[:, columns.start]
            edges = [0, *(np.flatnonzero(np.diff(held)) + 1).tolist(), LANES]
            for first, last in itertools.pairwise(edges):
                line = int(held[first])
                if line != NOTHING:
                    found.append(WrittenCells(range(first, last), columns, line, self.instructions[line]))
        return found

    def __str__(self) -> str:
        rows = [f"  {one}" for one in self.written()] or ["  nothing was written"]
        return "\n".join([self.title, *rows])


def column_runs(lines: Array) -> list[range]:
    """Return the ranges of adjacent columns that are equal: in every lane, the same line wrote their cells last."""
    edges = [0, *(np.flatnonzero((np.diff(lines, axis=1) != 0).any(axis=0)) + 1).tolist(), lines.shape[1]]
    return [range(first, last) for first, last in itertools.pairwise(edges)]
