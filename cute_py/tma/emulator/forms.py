"""Which instruction forms exist on which architecture, and whether what we do for them was measured.

`Emulator(strict=True)` refuses what is only documented.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cute_py.argument_checks import expect
from cute_py.errors import EmissionError, InvalidValueError
from cute_py.tma.emulator.swizzle import SWIZZLES

if TYPE_CHECKING:
    from cute_py.tma.emulator.geometry import Geometry

MEASURED: Final = "measured"
DOCUMENTED: Final = "documented"


class TransactionBytes(int):
    """The bytes that an instruction completes at its barrier, with how we know what the instruction does.

    >>> TransactionBytes(4096, "measured").evidence
    'measured'
    """

    evidence: str
    why: str

    def __new__(cls, value: int, evidence: str = MEASURED, why: str = "") -> TransactionBytes:
        self = super().__new__(cls, value)
        self.evidence, self.why = evidence, why
        return self


@dataclass(frozen=True, slots=True)
class FormRow:
    """A load or store mode or modifier that not every architecture has."""

    form: str
    instruction: str
    family: bool
    """Only in the architecture-specific targets (suffix a or f) of the datacenter chips; else from sm_100 on."""
    source: str = "ptxas 13.0.88"


FORMS: Final[tuple[FormRow, ...]] = (
    FormRow("tile::gather4", "load", False),
    FormRow("tile::gather4", "prefetch", True),
    FormRow("im2col::w", "load", False),
    FormRow("im2col::w", "prefetch", True),
    FormRow("im2col::w::128", "load", False),
    FormRow("im2col::w::128", "prefetch", True),
    FormRow("tile::scatter4", "store", True),
    FormRow("cta_group::2", "load", True),
)
"""Forms that are absent here exist from sm_90 on."""

_LOADS: Final = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")

MODES_OF: Final[dict[str, tuple[str, ...]]] = {
    "load": _LOADS,
    "prefetch": _LOADS,
    "store": ("tile", "tile::scatter4", "im2col"),
    "reduce": ("tile", "im2col"),
}
"""Instruction -> its modes; the im2col of stores and reductions is PTX's im2col_no_offs. Source: ptxas 13.0.88."""

_DATACENTER: Final = (100, 101, 103, 110)


@functools.cache
def why_not_on(arch: str, form: str, instruction: str) -> str | None:
    """Why `instruction` has no `form` on `arch`, or None.

    >>> why_not_on("sm_90a", "tile::gather4", "load")
    '.tile::gather4 needs sm_100 or newer'
    >>> why_not_on("sm_100a", "tile::gather4", "load")
    """
    match = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    if match is None:
        raise InvalidValueError(f"architecture {arch!r}; must look like 'sm_90a'")
    number, suffix = int(match[1]), match[2]
    if number < 90:
        return "bulk tensor copies need sm_90 or newer"
    row = next((r for r in FORMS if r.form == form and r.instruction == instruction), None)
    if row is None:
        return None
    if number < 100:
        return f".{form} needs sm_100 or newer"
    if row.family and (number not in _DATACENTER or not suffix):
        return f".{form} needs sm_100a, sm_100f or another of that family"
    return None


def require_form(arch: str, form: str, instruction: str) -> None:
    """Raise where the assembler would refuse.

    Raises:
        EmissionError: the form does not exist on this architecture.
    """
    expect(arch, str, "arch")
    why = why_not_on(arch, form, instruction)
    if why is not None:
        raise EmissionError(f"{instruction}: {why}", {"architecture": arch})


@functools.lru_cache(maxsize=256)
def unmeasured(geometry: Geometry, instruction: str, *, pair: bool = False) -> str:
    """Why what we do for this instruction rests on the documents alone; '' if it was measured.

    Args:
        instruction: 'load', 'store', 'reduce' or 'prefetch'.
        pair: with .cta_group::2.
    """
    im2col = geometry.mode.startswith("im2col")
    # Interleaved im2col stores agreed with a device on random instructions; no recorded row holds one.
    reasons = {
        f"mode {geometry.mode}": geometry.mode not in ("tile", "im2col"),
        f"swizzle {SWIZZLES[geometry.swizzle].kind.name}": SWIZZLES[geometry.swizzle].evidence != MEASURED,
        "rows that are no multiple of 16 bytes": geometry.row_bytes % 16 != 0,
        "rows wider than the swizzle": bool(geometry.swizzle) and geometry.row_bytes > SWIZZLES[geometry.swizzle].span,
        f"element format {geometry.data_type.name}": geometry.packing is not None,
        "im2col store with interleave": instruction == "store" and im2col and geometry.interleaved,
        "cta_group::2": pair,
    }
    return "; ".join(reason for reason, holds in reasons.items() if holds)
