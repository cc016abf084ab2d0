"""The forms of tcgen05.cp as a planner uses them: the rows and the multicast copies of a shape, as iters along TLane.

The table of shapes is in `machine/tensor_memory/copy_shapes`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cute_py.argument_checks import expect_fields
from cute_py.errors import TmemError, integer_text
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS, COPY_SHAPES, LANES, Steps, find_copy_shape
from cute_py.tmem.iters import Iter, Row

__all__ = ["COLUMNS", "CpForm", "FORMS", "LANES", "cp_form"]


@dataclass(frozen=True, slots=True)
class CpForm:
    """One form of tcgen05.cp: a shape with a multicast. In steps along TLane, `lanes` are the locations of the rows,
    and `copies` are the locations of the copies that multicast makes.

    >>> [form.name for form in FORMS][:3]
    ['128x256b', '4x256b', '128x128b']
    """

    shape: str
    multicast: str
    rows: int
    bits: int
    lanes: Row
    copies: Row

    def __post_init__(self) -> None:
        expect_fields(self)
        counts = [math.prod(it.extent for it in row) for row in (self.lanes, self.copies)]
        if self.bits not in (128, 256) or counts[0] != self.rows or not 1 <= self.rows * counts[1] <= LANES:
            raise TmemError(
                f"the form has {integer_text(self.rows)} rows of {self.bits} bits; must have rows of 128 or 256 bits, "
                f"one for each of its lanes, at most {LANES} with its copies"
            )

    def __repr__(self) -> str:
        return f"cp_form({self.shape!r}, {self.multicast!r})"

    @property
    def name(self) -> str:
        """The modifiers of the instruction, such as `32x128b.warpx4`."""
        return f"{self.shape}.{self.multicast}" if self.multicast else self.shape

    @property
    def columns(self) -> int:
        """The number of 32-bit columns that one instruction writes."""
        return self.bits // 32


def _row(steps: Steps) -> Row:
    return tuple(Iter(extent, stride, "TLane") for extent, stride in steps)


FORMS: tuple[CpForm, ...] = tuple(
    CpForm(one.shape, one.multicast, one.rows, one.bits, _row(one.lanes), _row(one.copies)) for one in COPY_SHAPES
)
"""The forms in the order that a planner tries them, widest first."""

WARPX4 = FORMS[-1]
"""The form for scale factors, and the only form of the reference page."""


def cp_form(shape: str, multicast: str | None = None) -> CpForm:
    """Return the form of a shape; the multicast may be omitted if the shape has only one.

    Raises:
        TmemError: the shape does not exist or does not have this multicast, or no multicast is passed and it has two.

    >>> cp_form("32x128b").name
    '32x128b.warpx4'
    """
    return FORMS[COPY_SHAPES.index(find_copy_shape(shape, multicast))]
