"""Which reductions exist for which element types. The partition verifier takes all eight kinds for any type, as the TMA
Atoms reference page does; a copy that the hardware would trap on is refused when it is lowered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect
from cute_py.tma.atom.modes import TmaReduceKind

_INTEGERS = ("uint32", "int32", "uint64")
_ADDS = (*_INTEGERS, "float16", "bfloat16", "float32", "float64", "tfloat32")
_ORDERED = (*_INTEGERS, "int64", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class ReductionTypes:
    """A kind and the element types that it executes on; on other types of whole bytes it traps."""

    kind: TmaReduceKind
    dtypes: tuple[str, ...]
    source: str = "measured on NVIDIA H200, driver 580.159.04"


REDUCTION_TYPES: Final[tuple[ReductionTypes, ...]] = (
    ReductionTypes(TmaReduceKind.ADD, _ADDS),
    ReductionTypes(TmaReduceKind.MIN, _ORDERED),
    ReductionTypes(TmaReduceKind.MAX, _ORDERED),
    ReductionTypes(TmaReduceKind.INC, ("uint32",)),
    ReductionTypes(TmaReduceKind.DEC, ("uint32",)),
    ReductionTypes(TmaReduceKind.AND, _INTEGERS),
    ReductionTypes(TmaReduceKind.OR, _INTEGERS),
    ReductionTypes(TmaReduceKind.XOR, _INTEGERS),
)

_DTYPES_OF: Final = {row.kind: row.dtypes for row in REDUCTION_TYPES}


def why_not_reduction(kind: TmaReduceKind, dtype: str) -> str | None:
    """Why a reduction does not run on an element type, or None.

    >>> why_not_reduction(TmaReduceKind.INC, "int32")
    'reduction INC of int32; the hardware has it for uint32'
    """
    expect(kind, TmaReduceKind, "a reduction")
    expect(dtype, str, "the name of an element type")
    if dtype in _DTYPES_OF[kind]:
        return None
    return f"reduction {kind.name} of {dtype}; the hardware has it for {', '.join(_DTYPES_OF[kind])}"
