"""The rules of tensor maps, with requirement, bounds, unit and source of each, and the additions of each GPU.

The rules are the driver's: for each recorded call, they predict whether the driver accepts or refuses it. `violations`
applies them. Arguments have the names that the driver's C functions use.

sm_90 was measured. The additions of later GPUs are documented, but their bits are not known: `encode` raises
UnknownFactError for a request that needs them.
"""

from __future__ import annotations

from typing import Final

from cute_py.argument_checks import record
from cute_py.errors import InvalidTypeError, InvalidValueError, UnknownFactError, given, known_names
from cute_py.targets import RESERVED_SHARED_BYTES, SHARED_MEMORY_BYTES
from cute_py.tma.descriptor.data_types import CUDA_H, MEASURED, TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMap

__all__ = ["ADDITIONS", "ARCHITECTURES", "Addition", "Architecture", "RULES", "Rule", "architecture"]

PTXAS: Final = "ptxas 13.0.88"
_GUIDE: Final = "CUDA 13.0 programming guide, compute capabilities; not measured"
_BOTH: Final = f"{CUDA_H}; {MEASURED}"
_DOCUMENTED: Final = f"{CUDA_H}; not measured"
_ASSEMBLED: Final = f"{CUDA_H}; {PTXAS}"

MAX_TRANSACTION_BYTES: Final = (1 << 20) - 1
"""Largest number of bytes that one phase of an mbarrier can wait for (PTX ISA, mbarrier, tx-count)."""

STORE_UNIT: Final = 16
"""Stores write the last row of a box in units of this many bytes (measured on an H200)."""


@record
class Rule:
    """One rule of tensor maps.

    `requirement` follows 'must' in a sentence ('be a multiple of 16').

    `minimum` and `maximum` are the smallest and the largest legal value, if the rule is a plain range.

    >>> Rule("stride", "be a multiple of 16", "bytes", "driver API", multiple=16).requirement
    'be a multiple of 16'
    """

    name: str
    requirement: str
    unit: str
    source: str
    minimum: int | None = None
    maximum: int | None = None
    multiple: int = 1


_GAPPED: Final = "with 16U4_ALIGN16B and 16U6_ALIGN16B"

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
    Rule("box_bytes", "fit in the shared memory of a block (ARCHITECTURES)", "bytes", MEASURED),
    Rule("channels", "be 1 to 256", "elements", _BOTH, 1, 256),
    Rule("pixels", "be 1 to 1024", "pixels", _BOTH, 1, 1024),
    Rule("corner_range", "fit in the bits of a corner", "elements", _BOTH),
    Rule("bounding_box", "be 0 or more in signed 32-bit arithmetic", "elements", MEASURED, 0),
    Rule("wide_size", "be 0 or more in signed 32-bit arithmetic", "elements", MEASURED, 0),
    Rule("packed_size_align8", "be a multiple of 2 with 16U4_ALIGN8B", "elements", _DOCUMENTED, multiple=2),
    Rule("packed_address", f"be a multiple of 32 {_GAPPED}", "bytes", _DOCUMENTED, multiple=32),
    Rule("packed_size", f"be a multiple of 128 {_GAPPED}", "elements", _DOCUMENTED, multiple=128),
    Rule("packed_stride", f"be a multiple of 32 {_GAPPED}", "bytes", _DOCUMENTED, multiple=32),
    Rule("packed_box", f"be 128 {_GAPPED}", "elements", _DOCUMENTED, 128, 128),
    Rule("packed_interleave", "be 0 (none) with 16U6_ALIGN16B", "", _DOCUMENTED, 0, 0),
    Rule("packed_swizzle", "be a swizzle that the packed format supports", "", _DOCUMENTED),
    Rule("unknown_format", "be a code that a driver has written", "", MEASURED),
    Rule("unknown_rank", "be 0 to 4 (rank - 1)", "", MEASURED, 0, 4),
)

BY_NAME: Final[dict[str, Rule]] = {row.name: row for row in RULES}


RANGES: Final = {
    **{name: name for name in ("data_type", "interleave", "swizzle", "l2_promotion", "oob_fill")},
    "mode": "wide_mode",
    "global_address": "address_range",
    "global_dim": "size",
    "global_strides": "stride_range",
    "element_strides": "element_stride",
    "box_dim": "box",
    "channels_per_pixel": "channels",
    "pixels_per_column": "pixels",
}
"""Field of a request -> the rule that is the plain range of its numbers."""


def bounds(name: str) -> tuple[int, int]:
    """Return the smallest and the largest legal value of a rule that is a plain range.

    >>> bounds("box")
    (1, 256)
    """
    rule = BY_NAME[name]
    if rule.minimum is None or rule.maximum is None:
        raise InvalidValueError(f"rule {name!r} is not a plain range")
    return rule.minimum, rule.maximum


SWIZZLE_SPAN: Final[dict[int, int | None]] = {0: None, 1: 32, 2: 64, 3: 128}
"""Swizzle -> largest number of bytes in one row without interleave (None: only the limit of the box applies)."""

SLICE_BYTES: Final[dict[int, int]] = {1: 16, 2: 32}
"""Interleave -> bytes of one channel slice."""

CORNER_BOUNDS: Final[dict[int, tuple[int, int]]] = {3: (-(1 << 15), (1 << 15) - 1), 4: (-128, 127), 5: (-16, 15)}
"""Rank -> smallest and largest corner, in elements."""


@record
class Architecture:
    """Properties of a GPU family that affect tensor maps.

    >>> [one.shared_memory_bytes for one in ARCHITECTURES if one.name == "sm_90"]
    [233472]
    """

    name: str
    shared_memory_bytes: int
    """Shared memory of one SM, in bytes. The driver accepts a box of this size, although no block can have so much."""
    data_types: frozenset[int]
    """Formats beyond 0..12 that the family has."""
    swizzles: frozenset[int]
    """Swizzles beyond 0..3 that the family has."""
    source: str

    @property
    def block_shared_memory_bytes(self) -> int:
        """Largest shared memory of one block in bytes, static and dynamic together.

        A tile and its barriers must fit in it.

        On an H200 it is cuDeviceGetAttribute's MAX_SHARED_MEMORY_PER_BLOCK_OPTIN.
        """
        return self.shared_memory_bytes - RESERVED_SHARED_BYTES

    @property
    def format_requirement(self) -> str:
        """The requirement on `tensorDataType`, as a phrase that follows 'must'."""
        return "be 0 to 15" if self.data_types else f"be 0 to 12 on {self.name}; 13 to 15 need sm_100 or later"

    @property
    def swizzle_requirement(self) -> str:
        """The requirement on `swizzle`, as a phrase that follows 'must'."""
        return "be 0 to 6" if self.swizzles else f"be 0 to 3 on {self.name}; 4 to 6 need sm_100 or later"


@record
class Addition:
    """A feature that a GPU family adds to tensor maps.

    `bits` is its position in the map (None: unknown). `field` is the field that it extends, and `numbers` are its
    values in the driver or PTX.

    >>> sorted({one.name for one in ADDITIONS})[:2]
    ['128B_ATOM_32B', '128B_ATOM_32B_FLIP_8B']
    """

    name: str
    field: str
    numbers: tuple[int, ...]
    architectures: tuple[str, ...]
    bits: str | None
    known: str
    source: str


_BLACKWELL: Final = tuple(f"sm_{number}" for number in SHARED_MEMORY_BYTES if number >= 100)

ADDITIONS: Final[tuple[Addition, ...]] = (
    *(
        Addition(
            name, "data_type", (number,), _BLACKWELL, None, f"16 packed {known}; PTX elemtype {number}", _ASSEMBLED
        )
        for number, name, known in (
            (13, "16U4_ALIGN8B", "4-bit values packed in 8 bytes without gaps; globalDim[0] a multiple of 2"),
            (
                14,
                "16U4_ALIGN16B",
                "4-bit values in 16 bytes, 8 of them unused; globalDim[0] a multiple of 128, box 128",
            ),
            (
                15,
                "16U6_ALIGN16B",
                "6-bit values in 16 bytes, 4 of them unused; globalDim[0] a multiple of 128, box 128",
            ),
        )
    ),
    *(
        Addition(name, "swizzle", (number,), _BLACKWELL, None, known, _ASSEMBLED)
        for number, name, known in (
            (4, "128B_ATOM_32B", "chunks of 32 bytes within 128; PTX swizzle_mode 3 with swizzle_atomicity 1"),
            (
                5,
                "128B_ATOM_32B_FLIP_8B",
                "like 128B_ATOM_32B, with 8-byte halves swapped in every other row; PTX swizzle_atomicity 2",
            ),
            (6, "128B_ATOM_64B", "chunks of 64 bytes within 128; PTX swizzle_mode 3 with swizzle_atomicity 3"),
        )
    ),
    Addition(
        "96B",
        "swizzle_mode",
        (4,),
        ("sm_103",),
        None,
        "PTX swizzle_mode 4, only on sm_103a; the driver's enum has no number for it",
        PTXAS,
    ),
    Addition(
        "swizzle_atomicity",
        "swizzle_atomicity",
        (0, 1, 2, 3),
        _BLACKWELL,
        None,
        "the eleventh field of tensormap.replace, 0 to 3; the driver folds it into its swizzle numbers",
        PTXAS,
    ),
    Addition(
        "gather4 and scatter4",
        "instruction",
        (),
        _BLACKWELL,
        "none, because the instruction carries it",
        "a rank-2 map whose box is one row; the instruction takes four row coordinates",
        "PTX ISA, cp.async.bulk.tensor",
    ),
)
"""Features that GPUs after sm_90 add. `unknown_addition` finds the row that a request needs."""

_NEW_FORMATS: Final = frozenset(int(member) for member in TensorMapDataType if member > TensorMapDataType.TFLOAT32_FTZ)
_NEW_SWIZZLES: Final = frozenset(int(member) for member in TensorMapSwizzle if member > TensorMapSwizzle.B128)

ARCHITECTURES: Final[tuple[Architecture, ...]] = tuple(
    Architecture(f"sm_{number}", size, _NEW_FORMATS, _NEW_SWIZZLES, _GUIDE)
    if number > 90
    else Architecture(f"sm_{number}", size, frozenset(), frozenset(), MEASURED)
    for number, size in SHARED_MEMORY_BYTES.items()
)
"""The GPUs with TMA, and their properties from `targets` that matter to tensor maps."""


GPUS: Final = {row.name + suffix: row for row in ARCHITECTURES for suffix in ("", "a", "f")}
"""Architecture name -> its row; a suffix makes no difference to maps."""


def architecture(name: str) -> Architecture:
    """Return the table row of a GPU. The suffixes a and f make no difference to tensor maps.

    Raises:
        InvalidValueError: the GPU is unknown, or has no TMA.

    >>> architecture("sm_90a").shared_memory_bytes, architecture("sm_90a").block_shared_memory_bytes
    (233472, 232448)
    """
    if not isinstance(name, str):
        raise InvalidTypeError(f"arch = {given(name)}; must be a name such as 'sm_90a'")
    if name not in GPUS:
        known = known_names(name, [row.name for row in ARCHITECTURES])
        raise InvalidValueError(f"{given(name)} is not a known architecture with TMA", known)
    return GPUS[name]


def unknown_addition(request: TensorMap) -> Addition | None:
    """Return the first row of ADDITIONS with unknown bits that this request needs; None if there is none."""
    for row in ADDITIONS:
        if row.bits is None and row.field in ("data_type", "swizzle") and getattr(request, row.field) in row.numbers:
            return row
    return None


def refuse_unknown(row: Addition) -> UnknownFactError:
    """Make the error for an addition with unknown bits. Its facts list the known properties of the addition."""
    return UnknownFactError(
        f"the bits of a tensor map that encode {row.name} are unknown",
        {
            "field": row.field,
            "known": row.known,
            "exists on": ", ".join(row.architectures),
            "source": row.source,
        },
        "let the driver of such a GPU encode the map: cute_py.tma.driver_encode(request)",
    )
