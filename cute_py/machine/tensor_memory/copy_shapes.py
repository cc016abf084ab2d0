"""The shapes of tcgen05.cp: the tensor-memory lane of each row of shared memory, and the copies that a multicast makes.

One instruction reads `rows` rows of `bits` bits and writes each row into 32-bit columns of one lane. It then repeats
all rows at the lanes of its multicast:

    shape      multicast        lane of row r          copies at lane +
    128x256b   -                r                      0
    4x256b     -                32 r                   0
    128x128b   -                r                      0
    64x128b    warpx2::02_13    r                      0, 64
    64x128b    warpx2::01_23    64 (r // 32) + r % 32  0, 32
    32x128b    warpx4           r                      0, 32, 64, 96

Sources: PTX ISA 8.8, 9.7.16.9.2 (shapes and multicasts); CUTLASS 7107b055, UTCCP value layouts, and apache-tvm 0.27.0
(lanes; TVM states that its tests pass bit for bit on a B200). The table itself was not tested on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from cute_py.argument_checks import expect
from cute_py.errors import TmemError, given

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

LANES: Final = 128
"""Lanes of tensor memory."""
COLUMNS: Final = 512
"""Columns of tensor memory, 32 bits each."""

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""(extent, distance in lanes) of each digit of a row's number; the last digit is the fastest."""


@dataclass(frozen=True, slots=True)
class CopyShape:
    """A shape of tcgen05.cp with its multicast.

    lanes: (extent, stride) steps of the lanes of the rows. copies: (extent, stride) steps of the lanes of the
    multicast's copies.
    """

    shape: str
    multicast: str
    rows: int
    bits: int
    lanes: Steps
    copies: Steps = ()

    @property
    def name(self) -> str:
        """The modifiers of the instruction, such as `32x128b.warpx4`."""
        return f"{self.shape}.{self.multicast}" if self.multicast else self.shape

    @property
    def columns(self) -> int:
        """Number of 32-bit columns that one instruction writes."""
        return self.bits // 32


COPY_SHAPES: Final = (
    CopyShape("128x256b", "", 128, 256, ((128, 1),)),
    CopyShape("4x256b", "", 4, 256, ((4, 32),)),
    CopyShape("128x128b", "", 128, 128, ((128, 1),)),
    CopyShape("64x128b", "warpx2::02_13", 64, 128, ((64, 1),), ((2, 64),)),
    CopyShape("64x128b", "warpx2::01_23", 64, 128, ((2, 64), (32, 1)), ((2, 32),)),
    CopyShape("32x128b", "warpx4", 32, 128, ((32, 1),), ((4, 32),)),
)
"""The shapes in the order that a planner tries them, widest first."""


def place_lanes(steps: Steps) -> NDArray[np.int64]:
    """The lane of each row, or of each copy, from (extent, stride) steps.

    >>> place_lanes(((2, 64), (2, 1))).tolist()
    [0, 1, 64, 65]
    """
    found = np.zeros(1, np.int64)
    for extent, stride in steps:
        found = (found[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
    return found


def find_copy_shape(shape: str, multicast: str | None = None) -> CopyShape:
    """Find a shape in `COPY_SHAPES`; the multicast may be omitted if the shape has only one.

    Raises:
        TmemError: the shape does not exist, the multicast does not exist for it, or two multicasts fit.

    >>> find_copy_shape("32x128b").name
    '32x128b.warpx4'
    """
    expect(shape, str, "the shape of a form")
    found = [form for form in COPY_SHAPES if form.shape == shape]
    if not found:
        shapes = ", ".join(dict.fromkeys(form.shape for form in COPY_SHAPES))
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
    raise TmemError(f"multicast = {given(multicast)} does not fit tcgen05.cp shape {shape}; must be {allowed}")
