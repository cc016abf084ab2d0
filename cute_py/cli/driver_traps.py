"""What is known to go wrong with a driver, by its version, the GPU and the compiler, as a table with sources.

Versions are those of cuDriverGetVersion: 1000 x major + 10 x minor of the CUDA version that the driver supports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cute_py.tma.descriptor.formats import CUDA_H, MEASURED
from cute_py.tma.descriptor.quirks import QUIRKS
from cute_py.tma.run.gpu_device import MIN_DRIVER

MEASURED_DRIVER: Final = 13000
"""The version of the driver that was measured: 580.159.04."""
MEASURED_CAPABILITY: Final = (9, 0)

_COMPATIBILITY: Final = "CUDA Compatibility guide, minor version compatibility; documented, not measured"


@dataclass(frozen=True, slots=True)
class Installation:
    """What the rows are asked about; None: not known.

    `driver` and `compiler` (NVRTC) as 1000 x major + 10 x minor, `capability` of the GPU as (major, minor).
    """

    driver: int
    capability: tuple[int, int] | None = None
    compiler: int | None = None


@dataclass(frozen=True, slots=True)
class DriverTrap:
    """One row: with drivers `first` to `last` (None: no bound is known) on GPUs below `below`, `what` happens.

    `measured` says that it was seen with driver 580.159.04 on an NVIDIA H200; other versions may differ.
    """

    name: str
    what: str
    remedy: str
    source: str
    first: int | None = None
    last: int | None = None
    below: tuple[int, int] | None = None
    from_capability: tuple[int, int] | None = None
    newer_compiler: str | None = None
    """'minor': NVRTC is of a newer release than the driver, same major; 'major': of a newer major."""
    measured: bool = False

    def applies(self, here: Installation) -> bool:
        """Whether the row is about such an installation; what is not known of it is no reason against."""
        if (self.first is not None and here.driver < self.first) or (self.last is not None and here.driver > self.last):
            return False
        if here.capability is not None:
            if self.below is not None and here.capability >= self.below:
                return False
            if self.from_capability is not None and here.capability < self.from_capability:
                return False
        if self.newer_compiler is not None:
            if here.compiler is None or here.compiler <= here.driver:
                return False
            major = here.compiler // 1000 > here.driver // 1000
            return major == (self.newer_compiler == "major")
        return True


TRAPS: Final[tuple[DriverTrap, ...]] = (
    DriverTrap(
        "no tensor maps",
        "the driver's API has no cuTensorMapEncode",
        "a driver for CUDA 12.0 or newer; the emulator and the encoder here need none",
        "CUDA driver API, cuTensorMapEncodeTiled",
        last=MIN_DRIVER - 10,
    ),
    DriverTrap(
        QUIRKS[0].name,
        f"{QUIRKS[0].condition}: {QUIRKS[0].effect}",
        "cute.tma.encode(request, driver=version) clears it in a map that the driver wrote",
        QUIRKS[0].source,
        last=QUIRKS[0].last_driver,
        from_capability=(10, 0),
    ),
    DriverTrap(
        "no reasons",
        "every refusal of a tensor map is CUDA_ERROR_INVALID_VALUE",
        "cute-py desc check lists every broken rule",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "null address",
        "a map of address 0 is accepted; a copy through it faults",
        "cute-py desc check warns",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "overlapping strides",
        "strides that do not nest are accepted, also 0 and less than a row",
        "cute-py desc check warns",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "accepted against the manual",
        "interleave 32B with a swizzle other than 32B, and im2col-wide maps with none or 32B, are accepted",
        "keep to the manual: other drivers may refuse them",
        f"{CUDA_H}; {MEASURED}",
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "byte note",
        "with element strides, word 8 of a map is not what the hardware delivers: a barrier that expects it hangs",
        "atom.transaction_bytes, or transaction_bytes(request)",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "coordinates",
        "an inner coordinate that is no multiple of 16 bytes, a negative coordinate of a store, or an im2col base "
        "outside the bounding box is an illegal instruction, and ends the CUDA context",
        "the emulator raises TmaTrap in its place; isolate=True runs in a process of its own",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "reductions",
        "add, min, max, inc, dec, and, or, xor are illegal instructions with some element formats, though the map and "
        "the PTX are accepted",
        "the emulator raises TmaTrap in their place",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "row ends",
        "a store overwrites up to the next 16 bytes past the end of a row whose bytes are no multiple of 16",
        "rows of a multiple of 16 bytes, or a pitch with room behind them",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "FLOAT32_FTZ",
        "loads through a map of this type do not flush denormals",
        "flush them in the kernel",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "replaced element type",
        "tensormap.replace of a tf32 element type by another one keeps the rounding to tf32",
        "encode the map anew, or start from one that is not tf32",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "formats of sm_100",
        "data types 13 to 15 (packed 4 and 6 bits) and swizzles 4 to 6 are refused on this GPU",
        "a GPU of compute capability 10.0 or newer",
        MEASURED,
        first=MIN_DRIVER,
        below=(10, 0),
        measured=True,
    ),
    DriverTrap(
        "alignment of a map",
        "a map must lie at a multiple of 128 bytes since CUDA 13.0 (64 before); cuda-python's CUtensorMap does not",
        "copy the bytes into memory of your own; this library does",
        "CUDA 13.0 driver API, CUtensorMap; cuda-bindings 13.3: 12 of 12 objects at 48 modulo 64",
        first=13000,
    ),
    DriverTrap(
        "empty strides",
        "cuda-python passes an empty list of strides as a null pointer, which the driver refuses even for rank 1",
        "pass one unused stride; this library does",
        MEASURED,
        first=MIN_DRIVER,
        measured=True,
    ),
    DriverTrap(
        "newer NVRTC",
        "NVRTC is newer than the driver: its cubins run, its PTX is refused (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)",
        "compile to a cubin, as this library does, or update the driver",
        _COMPATIBILITY,
        newer_compiler="minor",
    ),
    DriverTrap(
        "NVRTC of a newer CUDA",
        "NVRTC is of a newer major version than the driver: neither its cubins nor its PTX are sure to load",
        "update the driver, or install an NVRTC of the driver's major version",
        _COMPATIBILITY,
        newer_compiler="major",
    ),
)
"""Every row, in the order in which they are told."""


def traps(here: Installation) -> list[DriverTrap]:
    """The rows about an installation.

    >>> [row.name for row in traps(Installation(11080))][0]
    'no tensor maps'
    >>> "newer NVRTC" in [row.name for row in traps(Installation(13000, (9, 0), 13030))]
    True
    """
    return [row for row in TRAPS if row.applies(here)]
