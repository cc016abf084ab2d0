"""GPU architectures as ptxas names them, the sets of architectures that instructions require, and the resources of a
block.

A name is `sm_`, a number, and a suffix: none (code runs on that chip and newer ones), `a` (code runs on this chip only,
and may use all its features), or `f` (code runs on the family of this chip). An instruction needs a target that
supports it, and at least the first PTX version that the assembler accepts it in. Each architecture also has a floor:
the first PTX `.version` that knows its name.

Source: measured with ptxas 13.0.88 (an empty kernel per target and version); PTX ISA 9.0, directive .target.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import (
    NamedEnum,
    expect,
    expect_choice,
    expect_integer,
    expect_integers,
    is_integer,
    record,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, given, known_names

__all__ = ["ARCHITECTURES", "NEWEST_VERSION", "Target", "Targets", "architecture"]

Version = tuple[int, int]
"""A PTX version: (8, 6) is `.version 8.6`."""

NEWEST_VERSION: Version = (9, 0)
"""The highest `.version` that the measured assembler (ptxas 13.0.88) accepts."""


@record
class Target:
    """One target architecture. `floor` is the first PTX version that knows its name, or None if the measured
    assembler does not know the name.

    >>> architecture("sm_90a").number, architecture("sm_90a").suffix, architecture("sm_90a").floor
    (90, 'a', (8, 0))
    """

    name: str
    number: int
    suffix: str
    floor: Version | None
    chip: str


def _row(name: str, floor: Version | None, chip: str) -> Target:
    found = re.fullmatch(r"sm_(\d+)([af]?)", name)
    if found is None:
        raise InvalidValueError(f"{given(name)} is not the name of an architecture")
    return Target(name, int(found[1]), found[2], floor, chip)


ARCHITECTURES: tuple[Target, ...] = (
    _row("sm_70", None, "Volta; CUDA 13 no longer assembles for it, so it is text only"),
    _row("sm_75", (6, 3), "Turing"),
    _row("sm_80", (7, 0), "Ampere (A100)"),
    _row("sm_86", (7, 1), "Ampere"),
    _row("sm_87", (7, 4), "Orin"),
    _row("sm_88", (7, 4), "Ampere"),
    _row("sm_89", (7, 8), "Ada Lovelace"),
    _row("sm_90", (7, 8), "Hopper"),
    _row("sm_90a", (8, 0), "Hopper"),
    _row("sm_100", (8, 6), "Blackwell (B200)"),
    _row("sm_100a", (8, 6), "Blackwell (B200)"),
    _row("sm_100f", (8, 8), "Blackwell (B200)"),
    _row("sm_103", (8, 8), "Blackwell (B300)"),
    _row("sm_103a", (8, 8), "Blackwell (B300)"),
    _row("sm_103f", (8, 8), "Blackwell (B300)"),
    _row("sm_110", (9, 0), "Blackwell (Thor)"),
    _row("sm_110a", (9, 0), "Blackwell (Thor)"),
    _row("sm_110f", (9, 0), "Blackwell (Thor)"),
    _row("sm_120", (8, 7), "consumer Blackwell"),
    _row("sm_120a", (8, 7), "consumer Blackwell"),
    _row("sm_120f", (8, 8), "consumer Blackwell"),
    _row("sm_121", (8, 8), "consumer Blackwell"),
    _row("sm_121a", (8, 8), "consumer Blackwell"),
    _row("sm_121f", (8, 8), "consumer Blackwell"),
)

_BY_NAME = {row.name: row for row in ARCHITECTURES}

SHARED_MEMORY_BYTES: Final = {90: 233_472, 100: 233_472, 103: 233_472, 110: 233_472, 120: 102_400, 121: 102_400}
"""Maps the number of an architecture with TMA to the bytes of shared memory of one SM.

Source: CUDA 13.0 programming guide, technical specifications per compute capability; 90 measured on an H200.
"""

RESERVED_SHARED_BYTES: Final = 1024
"""Bytes of shared memory that the system reserves in each block (same source)."""

SM_SHARED_BYTES: Final = SHARED_MEMORY_BYTES[90]
"""Bytes of shared memory of one SM of sm_90, sm_100, sm_103 or sm_110 (same source)."""

BLOCK_SHARED_BYTES: Final = SM_SHARED_BYTES - RESERVED_SHARED_BYTES
"""Shared memory that one block of sm_90, sm_100, sm_103 or sm_110 can have, in bytes: 227 KiB (the same source)."""

SM_THREADS: Final = 2048
"""Threads that one SM of sm_90 or sm_100 runs at a time (CUDA 13.0 programming guide, compute capabilities)."""

WARP: Final = 32
"""Threads of a warp; a warp's access to memory is one request (PTX ISA, machine model)."""

BANKS, BANK_BYTES = 32, 4
"""Banks of shared memory, and the bytes that a bank delivers in a cycle (CUDA 13.0 programming guide, shared
memory)."""

SECTOR_BYTES: Final = 32
"""Bytes of a sector, the unit of transfers by memory and L2 (CUDA C++ best practices guide, coalesced access; the
sector counts of Nsight Compute on an NVIDIA H200 agree)."""

LINE_BYTES: Final = 128
"""Bytes of a line of L1 and L2, four sectors (the same source)."""

MULTIPROCESSORS: Final = 132
"""Multiprocessors that are assumed if no GPU is available, measured on one NVIDIA H200. To measure it again, ask the
device: `cute_py.gpu.device.open_device().multiprocessors`."""

MAX_CLUSTER: Final = 16
"""Maximum number of CTAs in a cluster; without the non-portable size attribute the limit is 8 (CUDA programming guide,
thread block clusters).

The mask of a multicast has a bit for each (PTX ISA, cp.async.bulk.tensor, .multicast::cluster).
"""


def architecture(name: str) -> Target:
    """Look up an architecture by its name.

    Raises:
        InvalidValueError: the table does not have the name.

    >>> architecture("sm_90a").name
    'sm_90a'
    """
    expect(name, str, "a name")
    if name not in _BY_NAME:
        raise InvalidValueError(f"{given(name)} is not a known architecture", known_names(name, [*_BY_NAME]))
    return _BY_NAME[name]


class Targets(NamedEnum):
    """A set of architectures that an instruction or modifier requires. The value of a member is the description of the
    set.

    >>> Targets.TMA_FULL.has(architecture("sm_103f")), Targets.TMA_FULL.has(architecture("sm_120a"))
    (True, False)
    """

    _value_: str
    _holds: Callable[[int, str], bool]
    """A predicate on the number and suffix of a target."""

    ANY = "any architecture", lambda n, s: True
    FROM_80 = "sm_80 or newer", lambda n, s: n >= 80
    FROM_89 = "sm_89 or newer", lambda n, s: n >= 89
    FROM_90 = "sm_90 or newer", lambda n, s: n >= 90
    FROM_100 = "sm_100 or newer", lambda n, s: n >= 100
    SPECIFIC_FROM_90 = "an a or f variant of sm_90 or newer", lambda n, s: n >= 90 and s != ""
    SPECIFIC_FROM_100 = "an a or f variant of sm_100 or newer", lambda n, s: n >= 100 and s != ""
    TMA_FULL = "an a or f variant of sm_100, sm_103 or sm_110", lambda n, s: n in (100, 103, 110) and s != ""
    TMEM_SPECIFIC = "sm_100a, sm_103a or sm_110a", lambda n, s: n in (100, 103, 110) and s == "a"
    TMEM_INTEGER = "sm_100a or sm_110a", lambda n, s: n in (100, 110) and s == "a"
    TMEM_INPUT_SCALE = "an a or f variant of sm_100 or sm_103", lambda n, s: n in (100, 103) and s != ""
    TMEM_REDUCING = "an a or f variant of sm_103 or sm_110", lambda n, s: n in (103, 110) and s != ""
    ONLY_103A = "sm_103a", lambda n, s: (n, s) == (103, "a")
    ONLY_90A = "sm_90a", lambda n, s: (n, s) == (90, "a")
    NOT_CONSUMER = "any architecture except sm_120 and sm_121", lambda n, s: n not in (120, 121)
    CONSUMER_SPECIFIC = "an a or f variant of sm_120 or sm_121", lambda n, s: n in (120, 121) and s != ""

    def __new__(cls, text: str, holds: Callable[[int, str], bool]) -> Targets:
        made = object.__new__(cls)
        made._value_, made._holds = text, holds
        return made

    def has(self, target: Target) -> bool:
        """Whether `target` is in this set."""
        expect(target, Target, "a target")
        return self._holds(target.number, target.suffix)


def expect_version(value: object) -> Version:
    """Return a PTX version as two integers.

    Raises:
        InvalidTypeError, InvalidValueError: the value is not a PTX version; 8.6 and (8,) are not.

    >>> expect_version((8, 6))
    (8, 6)
    """
    if not (isinstance(value, tuple) and len(value) == 2 and all(is_integer(number) for number in value)):
        raise InvalidTypeError(f"a PTX version must be two integers such as (9, 0), got {given(value)}")
    major, minor = expect_integers(value, "the PTX version", 0)
    return major, minor


def version_text(version: Version) -> str:
    """Format a PTX version: (8, 6) becomes `8.6`.

    Raises:
        InvalidTypeError, InvalidValueError: the value is not a PTX version.

    >>> version_text((8, 6))
    '8.6'
    """
    major, minor = expect_version(version)
    return f"{major}.{minor}"


def version_of(text: str) -> Version:
    """Parse a PTX version: `8.6` becomes (8, 6).

    Raises:
        InvalidValueError: the string is not two numbers with a point between them.

    >>> version_of("8.6")
    (8, 6)
    """
    found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", expect(text, str, "a PTX version"))
    if found is None:
        raise InvalidValueError(f"{given(text)} is not a PTX version such as '8.6'")
    return (int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """The shared-memory cost of an access.

    `wavefronts`: the number of rounds that each phase of each warp takes; 1 is conflict-free. `vector_bits`: the width
    of one thread's access.

    >>> import cute_py as cute
    >>> found = cute.bank_conflicts(cute.parse("32:32"), "float32")
    >>> found.vector_bits, found.wavefronts, found.ways
    (32, (32,), 32)
    """

    vector_bits: int
    wavefronts: tuple[int, ...]

    def __post_init__(self) -> None:
        width = expect_choice(expect_integer(self.vector_bits, "vector_bits"), (8, 16, 32, 64, 128), "vector_bits")
        rounds = expect_integers(self.wavefronts, "wavefronts", 1, unit="rounds")
        if not rounds:
            raise InvalidValueError("wavefronts is empty; a warp access has at least one phase")
        object.__setattr__(self, "vector_bits", width)
        object.__setattr__(self, "wavefronts", rounds)

    @property
    def total(self) -> int:
        """The sum of the rounds of all phases."""
        return sum(self.wavefronts)

    @property
    def conflicts(self) -> int:
        """The number of rounds beyond one per phase; 0 is conflict-free."""
        return self.total - len(self.wavefronts)

    @property
    def ways(self) -> int:
        """The degree of the worst conflict: n if a phase has an n-way conflict."""
        return max(self.wavefronts)


@dataclass(frozen=True, slots=True)
class Coalescing:
    """The global-memory cost of an access, summed over warps: 32-byte sectors, 128-byte lines, and requested bytes.

    >>> import cute_py as cute
    >>> cute.coalescing(cute.parse("32:2"), "float32")
    Coalescing(sectors=8, lines=2, bytes_requested=128)
    """

    sectors: int
    lines: int
    bytes_requested: int

    def __post_init__(self) -> None:
        for name in ("sectors", "lines", "bytes_requested"):
            object.__setattr__(self, name, expect_integer(getattr(self, name), name, 0))

    @property
    def efficiency(self) -> float:
        """The ratio of distinct bytes requested to bytes moved; 1.0 is perfectly coalesced."""
        return self.bytes_requested / (self.sectors * SECTOR_BYTES) if self.sectors else 1.0
