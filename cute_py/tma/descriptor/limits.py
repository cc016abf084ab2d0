"""The rules that a tensor map must keep, one row each: what, the bound, the unit, who says so.

The rules are the driver's: together they explain every recorded call, accepted or refused. `violations` applies them.
The names of arguments are those of the driver's C functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.formats import CUDA_H, MEASURED

_BOTH = f"{CUDA_H}; {MEASURED}"

_DOCUMENTED = f"{CUDA_H}; not measured"

STORE_UNIT: Final = 16
"""Bytes; stores write the last row of a box up to a multiple of this (measured on an H200)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `requirement` reads after 'must' ('be a multiple of 16').

    `minimum` and `maximum` are the least and the greatest legal value, where the rule is a plain range.
    """

    name: str
    requirement: str
    unit: str
    source: str
    minimum: int | None = None
    maximum: int | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        expect_fields(self)


RULES: Final[tuple[Rule, ...]] = (
    Rule("rank", "be 1 to 5", "modes", _BOTH, 1, 5),
    Rule("rank_im2col", "be 3 to 5 for im2col", "modes", _BOTH, 3, 5),
    Rule("rank_interleave", "be 3 to 5 with interleave", "modes", _BOTH, 3, 5),
    Rule("length", "have one entry for each mode that it describes", "entries", CUDA_H),
    Rule("data_type", "be a format that this GPU has", "", _BOTH, 0, 12),
    Rule("interleave", "be 0 (none), 1 (16B) or 2 (32B)", "", _BOTH, 0, 2),
    Rule("swizzle", "be a swizzle that this GPU has", "", _BOTH, 0, 3),
    Rule("l2_promotion", "be 0 to 3", "", _BOTH, 0, 3),
    Rule("oob_fill", "be 0 (zeros) or 1 (NaN)", "", _BOTH, 0, 1),
    Rule("wide_mode", "be 0 (W) or 1 (W128)", "", _BOTH, 0, 1),
    Rule("nan_fill", "be 0 (zeros) with an integer format", "", _BOTH),
    Rule("address_alignment", "be a multiple of 16", "bytes", _BOTH, multiple=16),
    Rule("address_alignment_interleave_32b", "be a multiple of 32 with interleave 32B", "bytes", _BOTH, multiple=32),
    Rule("address_range", "be 0 to 2**57 - 1", "bytes", MEASURED, 0, (1 << 57) - 1),
    Rule("size", "be 1 to 2**32", "elements", _BOTH, 1, 1 << 32),
    Rule("stride_alignment", "be a multiple of 16", "bytes", _BOTH, multiple=16),
    Rule("stride_alignment_interleave_32b", "be a multiple of 32 with interleave 32B", "bytes", _BOTH, multiple=32),
    Rule("stride_range", "be 0 to 2**40 - 1", "bytes", _BOTH, 0, (1 << 40) - 1),
    Rule("element_stride", "be 1 to 8", "elements", _BOTH, 1, 8),
    Rule("box", "be 1 to 256", "elements", _BOTH, 1, 256),
    Rule("inner_bytes", "be a multiple of 16", "bytes", _BOTH, multiple=16),
    Rule("inner_span", "be at most the span of the swizzle", "bytes", _BOTH),
    Rule("box_bytes", "fit in the shared memory of the GPU (arch.ARCHITECTURES)", "bytes", MEASURED),
    Rule("channels", "be 1 to 256", "elements", _BOTH, 1, 256),
    Rule("pixels", "be 1 to 1024", "pixels", _BOTH, 1, 1024),
    Rule("corner_range", "fit in the bits of a corner", "elements", _BOTH),
    Rule("bounding_box", "be 0 or more in signed 32-bit arithmetic", "elements", MEASURED, 0),
    Rule("wide_size", "be 0 or more in signed 32-bit arithmetic", "elements", MEASURED, 0),
    Rule("packed_size_align8", "be a multiple of 2 with 16U4_ALIGN8B", "elements", _DOCUMENTED, multiple=2),
    Rule(
        "packed_address", "be a multiple of 32 with 16U4_ALIGN16B and 16U6_ALIGN16B", "bytes", _DOCUMENTED, multiple=32
    ),
    Rule(
        "packed_size",
        "be a multiple of 128 with 16U4_ALIGN16B and 16U6_ALIGN16B",
        "elements",
        _DOCUMENTED,
        multiple=128,
    ),
    Rule(
        "packed_stride", "be a multiple of 32 with 16U4_ALIGN16B and 16U6_ALIGN16B", "bytes", _DOCUMENTED, multiple=32
    ),
    Rule("packed_box", "be 128 with 16U4_ALIGN16B and 16U6_ALIGN16B", "elements", _DOCUMENTED, 128, 128),
    Rule("packed_interleave", "be 0 (none) with 16U6_ALIGN16B", "", _DOCUMENTED, 0, 0),
    Rule("packed_swizzle", "be a swizzle that the packed format takes", "", _DOCUMENTED),
    Rule("unknown_format", "be a code that a driver has written", "", MEASURED),
    Rule("unknown_rank", "be 0 to 4 (rank - 1)", "", MEASURED, 0, 4),
)

BY_NAME: Final[dict[str, Rule]] = {row.name: row for row in RULES}


def bounds(name: str) -> tuple[int, int]:
    """The least and the greatest legal value of a rule that is a plain range.

    >>> bounds("box")
    (1, 256)
    """
    rule = BY_NAME[name]
    if rule.minimum is None or rule.maximum is None:
        raise InvalidValueError(f"rule {name!r} is no plain range")
    return rule.minimum, rule.maximum


SWIZZLE_SPAN: Final[dict[int, int | None]] = {0: None, 1: 32, 2: 64, 3: 128}
"""Swizzle -> bytes that one row may have at most without interleave (None: no limit but the box's)."""

CORNER_BOUNDS: Final[dict[int, tuple[int, int]]] = {3: (-(1 << 15), (1 << 15) - 1), 4: (-128, 127), 5: (-16, 15)}
"""Rank -> least and greatest corner, elements."""
