"""The forms of tcgen05.cp: which rows of shared memory go to which lanes of tensor memory, and how often.

One instruction reads `rows` rows of `bits` bits and writes each row into 32-bit columns of one lane, then repeats all
of them at the lanes of its multicast:

    shape      multicast        lane of row r          copies at lane +
    128x256b   -                r                      0
    4x256b     -                32 r                   0
    128x128b   -                r                      0
    64x128b    warpx2::02_13    r                      0, 64
    64x128b    warpx2::01_23    64 (r // 32) + r % 32  0, 32
    32x128b    warpx4           r                      0, 32, 64, 96

Sources: PTX ISA 8.8, 9.7.16.9.2 (shapes and multicasts); CUTLASS 7107b055, UTCCP value layouts, and apache-tvm 0.27.0
(lanes; TVM states that its tests hold bit for bit on a B200). Not run on hardware here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import TmemError, given, integer_text
from cute_py.tmem.iters import Iter, Row

__all__ = ["COLUMNS", "CpForm", "FORMS", "LANES", "cp_form"]

LANES = 128
"""Lanes of tensor memory."""
COLUMNS = 512
"""Columns of tensor memory, 32 bits each."""


@dataclass(frozen=True, slots=True)
class CpForm:
    """One pair of shape and multicast; `lanes` places the rows, `copies` the multicast, in steps along TLane."""

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
                f"a form of {integer_text(self.rows)} rows of {self.bits} bits; must be rows of 128 or 256 bits that "
                f"its lanes hold, at most {LANES} with its copies"
            )

    def __repr__(self) -> str:
        return f"cp_form({self.shape!r}, {self.multicast!r})"

    @property
    def name(self) -> str:
        """`32x128b.warpx4`: the modifiers of the instruction."""
        return f"{self.shape}.{self.multicast}" if self.multicast else self.shape

    @property
    def columns(self) -> int:
        """32-bit columns that one instruction writes."""
        return self.bits // 32


def _lanes(*pairs: tuple[int, int]) -> Row:
    return tuple(Iter(extent, stride, "TLane") for extent, stride in pairs)


FORMS: tuple[CpForm, ...] = (
    CpForm("128x256b", "", 128, 256, _lanes((128, 1)), ()),
    CpForm("4x256b", "", 4, 256, _lanes((4, 32)), ()),
    CpForm("128x128b", "", 128, 128, _lanes((128, 1)), ()),
    CpForm("64x128b", "warpx2::02_13", 64, 128, _lanes((64, 1)), _lanes((2, 64))),
    CpForm("64x128b", "warpx2::01_23", 64, 128, _lanes((2, 64), (32, 1)), _lanes((2, 32))),
    CpForm("32x128b", "warpx4", 32, 128, _lanes((32, 1)), _lanes((4, 32))),
)
"""In the order in which a planner tries them: the widest first."""

WARPX4 = FORMS[-1]
"""The form that scale factors take, and the only one of the reference page."""


def cp_form(shape: str, multicast: str | None = None) -> CpForm:
    """The form of a shape; the multicast may be left out where the shape has only one.

    Raises:
        TmemError: no such shape, no such multicast for the shape, or two to choose from.

    >>> cp_form("32x128b").name
    '32x128b.warpx4'
    """
    expect(shape, str, "the shape of a form")
    found = [form for form in FORMS if form.shape == shape]
    if not found:
        shapes = ", ".join(dict.fromkeys(form.shape for form in FORMS))
        raise TmemError(f"unknown tcgen05.cp shape {given(shape)}; must be one of {shapes}")
    allowed = ", ".join(repr(form.multicast) for form in found)
    if multicast is not None:
        expect(multicast, str, "multicast")
    else:
        if len(found) > 1:
            raise TmemError(f"tcgen05.cp shape {shape} has two multicasts; multicast must be one of {allowed}")
        return found[0]
    for form in found:
        if form.multicast == multicast:
            return form
    raise TmemError(f"multicast {given(multicast)} does not go with tcgen05.cp shape {shape}; must be {allowed}")
