"""Which swizzle of a shared-memory layout the TMA engine can write, and its code in the tensor map.

A swizzle on bytes Sw<B,M,S> permutes units of 2**M bytes within spans of 2**(M+B) bytes by the row number above them.
The engine knows units of 16 bytes with spans 32, 64 and 128, and on sm_100 two larger units in a span of 128.
Source: cute/atom/copy_traits_sm90_tma_swizzle.hpp; codes: CUtensorMapSwizzle in cuda.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import StaticAssertError
from cute_py.layout.swizzle import Swizzle


@dataclass(frozen=True, slots=True)
class SwizzleRow:
    """One mode: `bits` is B, `base` is M, `shift` is S (None: any), `code` the driver's number, `span` in bytes,
    `alignment` of the shared-memory tile in bytes."""

    name: str
    bits: int
    base: int
    shift: int | None
    code: int
    span: int
    alignment: int

    def __post_init__(self) -> None:
        expect_fields(self)


SWIZZLE_MODES: tuple[SwizzleRow, ...] = (
    SwizzleRow("NONE", 0, 4, 3, 0, 0, 128),
    SwizzleRow("32B", 1, 4, 3, 1, 32, 256),
    SwizzleRow("64B", 2, 4, 3, 2, 64, 512),
    SwizzleRow("128B", 3, 4, 3, 3, 128, 1024),
    SwizzleRow("128B_ATOM_32B", 2, 5, 2, 4, 128, 1024),
    SwizzleRow("128B_ATOM_64B", 2, 6, None, 6, 128, 1024),
)


def why_not_swizzle(swizzle: Swizzle) -> str | None:
    """CuTe's condition that a swizzle on bytes breaks, or None if TMA can write it.

    >>> why_not_swizzle(Swizzle(3, 5, 3))
    'Expected B = 2 when M == 5 or 6. Unsupported layout swizzle.'
    """
    expect(swizzle, Swizzle, "a swizzle of bytes")
    b, m, s = swizzle.bits, swizzle.base, swizzle.shift
    if m == 4:
        if not 0 <= b <= 3:
            return "Expected B = 0,1,2, or 3 when M == 4. Unsupported layout swizzle."
        if s != 3:
            return "Expected S = 3 when M == 4. Unsupported layout swizzle."
        return None
    if m in (5, 6):
        if b != 2:
            return "Expected B = 2 when M == 5 or 6. Unsupported layout swizzle."
        if m == 5 and s != 2:
            return "Expected S = 2 when M == 5. Unsupported layout swizzle."
        return None
    return "Unsupported layout swizzle."


def swizzle_row(swizzle: Swizzle) -> SwizzleRow:
    """The mode of a swizzle on bytes.

    Raises:
        StaticAssertError: with CuTe's condition.

    >>> swizzle_row(Swizzle(3, 4, 3)).name
    '128B'
    """
    reason = why_not_swizzle(swizzle)
    if reason is not None:
        raise StaticAssertError(
            reason,
            {"swizzle": f"{swizzle}, read as a permutation of bytes", "TMA knows": _known()},
        )
    for row in SWIZZLE_MODES:
        if (row.bits, row.base) == (swizzle.bits, swizzle.base) and row.shift in (None, swizzle.shift):
            return row
    raise StaticAssertError("Unsupported layout swizzle.", {"swizzle": swizzle, "TMA knows": _known()})


def _known() -> str:
    return ", ".join(f"Sw<{r.bits},{r.base},{r.shift if r.shift is not None else 3}> = {r.name}" for r in SWIZZLE_MODES)
