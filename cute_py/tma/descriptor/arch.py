"""What each GPU adds to tensor maps, and which of it has known bits.

sm_90 was measured. What later GPUs add is documented, but the bits that hold it are not known here: `encode` refuses a
request that needs them with UnknownFactError, unless a driver on such a machine is there to ask.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidTypeError, InvalidValueError, UnknownFactError, given
from cute_py.tma.descriptor.formats import CUDA_H, MEASURED, TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMap

PTXAS: Final = "ptxas 13.0.88"
_GUIDE: Final = "CUDA 13.0 programming guide, compute capabilities; not measured"


RESERVED_SHARED_BYTES: Final = 1024
"""Shared memory that the system takes of each block."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One GPU family, as far as tensor maps go."""

    name: str
    shared_memory_bytes: int
    """Shared memory of one SM, in bytes. The driver lets a box hold so much, although no block can have it."""
    data_types: frozenset[int]
    """Formats beyond 0..12 that the family has."""
    swizzles: frozenset[int]
    """Swizzles beyond 0..3 that the family has."""
    source: str

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def block_shared_memory_bytes(self) -> int:
        """The most that one block can have, static and dynamic: a tile and its barriers.

        Source: CUDA programming guide, technical specifications per compute capability; on an H200 it is what
        cuDeviceGetAttribute gives as MAX_SHARED_MEMORY_PER_BLOCK_OPTIN.
        """
        return self.shared_memory_bytes - RESERVED_SHARED_BYTES

    @property
    def format_requirement(self) -> str:
        """What `tensorDataType` must be, after 'must'."""
        return "be 0 to 15" if self.data_types else f"be 0 to 12 on {self.name}; 13 to 15 need sm_100 or later"

    @property
    def swizzle_requirement(self) -> str:
        """What `swizzle` must be, after 'must'."""
        return "be 0 to 6" if self.swizzles else f"be 0 to 3 on {self.name}; 4 to 6 need sm_100 or later"


@dataclass(frozen=True, slots=True)
class Addition:
    """Something that a GPU family adds to tensor maps.

    `bits` says where it is in the map; None: not known. `field` and `numbers` are how the driver or PTX names it.
    """

    name: str
    field: str
    numbers: tuple[int, ...]
    architectures: tuple[str, ...]
    bits: str | None
    known: str
    source: str

    def __post_init__(self) -> None:
        expect_fields(self)


_BLACKWELL: Final = ("sm_100", "sm_103", "sm_110", "sm_120", "sm_121")

ADDITIONS: Final[tuple[Addition, ...]] = (
    Addition(
        "16U4_ALIGN8B",
        "data_type",
        (13,),
        _BLACKWELL,
        None,
        "16 packed 4-bit values to 8 bytes, no gaps; globalDim[0] a multiple of 2; PTX elemtype 13",
        f"{CUDA_H}; {PTXAS}",
    ),
    Addition(
        "16U4_ALIGN16B",
        "data_type",
        (14,),
        _BLACKWELL,
        None,
        "16 packed 4-bit values to 16 bytes, 8 of them a gap; globalDim[0] a multiple of 128, box 128; PTX elemtype 14",
        f"{CUDA_H}; {PTXAS}",
    ),
    Addition(
        "16U6_ALIGN16B",
        "data_type",
        (15,),
        _BLACKWELL,
        None,
        "16 packed 6-bit values to 16 bytes, 4 of them a gap; globalDim[0] a multiple of 128, box 128; PTX elemtype 15",
        f"{CUDA_H}; {PTXAS}",
    ),
    Addition(
        "128B_ATOM_32B",
        "swizzle",
        (4,),
        _BLACKWELL,
        None,
        "chunks of 32 bytes within 128; PTX swizzle_mode 3 with swizzle_atomicity 1",
        f"{CUDA_H}; {PTXAS}",
    ),
    Addition(
        "128B_ATOM_32B_FLIP_8B",
        "swizzle",
        (5,),
        _BLACKWELL,
        None,
        "as 128B_ATOM_32B, 8-byte halves swapped in every other row; PTX swizzle_atomicity 2",
        f"{CUDA_H}; {PTXAS}",
    ),
    Addition(
        "128B_ATOM_64B",
        "swizzle",
        (6,),
        _BLACKWELL,
        None,
        "chunks of 64 bytes within 128; PTX swizzle_mode 3 with swizzle_atomicity 3",
        f"{CUDA_H}; {PTXAS}",
    ),
    Addition(
        "96B",
        "swizzle_mode",
        (4,),
        ("sm_103",),
        None,
        "PTX swizzle_mode 4, on sm_103a only; the driver's enum has no number for it",
        PTXAS,
    ),
    Addition(
        "swizzle_atomicity",
        "swizzle_atomicity",
        (0, 1, 2, 3),
        _BLACKWELL,
        None,
        "an eleventh field of tensormap.replace, 0 to 3; the driver folds it into its swizzle numbers",
        PTXAS,
    ),
    Addition(
        "gather4 and scatter4",
        "instruction",
        (),
        _BLACKWELL,
        "none: the instruction says it",
        "a rank-2 map whose box is one row; the instruction takes four row coordinates",
        "PTX ISA, cp.async.bulk.tensor",
    ),
)
"""What GPUs after sm_90 add. `unknown_addition` finds the row that a request needs."""

_NEW_FORMATS: Final = frozenset(int(member) for member in TensorMapDataType if member > TensorMapDataType.TFLOAT32_FTZ)
_NEW_SWIZZLES: Final = frozenset(int(member) for member in TensorMapSwizzle if member > TensorMapSwizzle.B128)

ARCHITECTURES: Final[tuple[Architecture, ...]] = (
    Architecture("sm_90", 233_472, frozenset(), frozenset(), MEASURED),
    Architecture("sm_100", 233_472, _NEW_FORMATS, _NEW_SWIZZLES, _GUIDE),
    Architecture("sm_103", 233_472, _NEW_FORMATS, _NEW_SWIZZLES, _GUIDE),
    Architecture("sm_110", 233_472, _NEW_FORMATS, _NEW_SWIZZLES, _GUIDE),
    Architecture("sm_120", 102_400, _NEW_FORMATS, _NEW_SWIZZLES, _GUIDE),
    Architecture("sm_121", 102_400, _NEW_FORMATS, _NEW_SWIZZLES, _GUIDE),
)


@functools.cache
def _by_name(name: str) -> Architecture | None:
    base = name[:-1] if name[-1:] in ("a", "f") else name
    return next((row for row in ARCHITECTURES if row.name == base), None)


def architecture(name: str) -> Architecture:
    """The row of a GPU; a suffix a or f makes no difference to maps.

    Raises:
        InvalidValueError: no such GPU, or one without TMA.

    >>> architecture("sm_90a").shared_memory_bytes, architecture("sm_90a").block_shared_memory_bytes
    (233472, 232448)
    """
    if not isinstance(name, str):
        raise InvalidTypeError(f"arch = {given(name)}; must be a name such as 'sm_90a'")
    row = _by_name(name)
    if row is None:
        known = ", ".join(known.name for known in ARCHITECTURES)
        raise InvalidValueError(f"unknown architecture {given(name)}, or one without TMA", {"known": known})
    return row


def unknown_addition(request: TensorMap) -> Addition | None:
    """The row of ADDITIONS that this request needs and whose bits are not known; None if all its bits are known."""
    for row in ADDITIONS:
        if row.bits is None and row.field in ("data_type", "swizzle") and getattr(request, row.field) in row.numbers:
            return row
    return None


def refuse_unknown(row: Addition) -> UnknownFactError:
    """The error that says what is known of an addition."""
    return UnknownFactError(
        f"the bits of {row.name} in a tensor map are not known",
        {
            "field": row.field,
            "known": row.known,
            "exists on": ", ".join(row.architectures),
            "source": row.source,
        },
        "let the driver of such a GPU encode it: cute_py.tma.driver_encode(request)",
    )
