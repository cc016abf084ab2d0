"""TMA: from layouts to boxes, atoms, tensor maps, instructions and copies.

`descriptor` holds the bytes of a tensor map and its rules, `atom` the way from layouts to it, `dialect` the surface of
the reference pages, `emulator` and `simulate` run copies without a GPU, `export` writes them for other programs.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any, Final

from cute_py.errors import (
    EmissionError,
    GBasisError,
    RaceError,
    TmaBuildError,
    TmaError,
    TmaLimitError,
    TmaTrap,
    TmaVerifyError,
    UnknownFactError,
    WouldHangError,
)
from cute_py.tma.atom import *  # noqa: F403
from cute_py.tma.atom import __all__ as _atom
from cute_py.tma.descriptor import *  # noqa: F403
from cute_py.tma.descriptor import __all__ as _descriptor
from cute_py.tma.dialect import *  # noqa: F403
from cute_py.tma.dialect import __all__ as _dialect

_ON_FIRST_USE: Final = {
    "cute_py.copies": (
        "CopyReport",
        "CopyResult",
        "PreparedCopy",
        "TileResult",
        "copy",
        "copy_array",
        "execute",
        "first_difference",
        "kernel_texts",
        "measure_copy",
        "prepare_copy",
        "tuned_copy",
    ),
    "cute_py.gpu": (
        "Device",
        "device_available",
        "driver_encode",
        "open_device",
    ),
    "cute_py.ptx": (
        "CAPABILITIES",
        "Capability",
        "ENTRY_POINTS",
        "EntryPoint",
        "FORMS",
        "InlineAsm",
        "ParsedInstruction",
        "VARIANTS",
        "Variant",
        "Verdict",
        "capability",
        "ch_opnum",
        "check_target",
        "entry_point",
        "examine",
        "form",
        "inline_asm",
        "mcast_opnum",
        "ptx",
        "verdict",
        "why_not",
    ),
    "cute_py.targets": (
        "NEWEST_VERSION",
        "Targets",
    ),
    "cute_py.tma.emulator": (
        "Emulator",
        "GlobalMemory",
        "Mbarrier",
        "SharedMemory",
        "init_barrier",
    ),
    "cute_py.tma.exports": (
        "RebindSequence",
        "birth_sequence",
        "cuda_kernel",
        "cute_cpp",
        "encode_call",
        "export",
        "rebind_ptx",
        "rebind_sequence",
        "single_tile_ptx",
        "triton",
        "write_export",
    ),
    "cute_py.tma.simulate": (
        "Agent",
        "Cluster",
        "Outcome",
        "Ring",
        "RingLoad",
        "RingStore",
        "Run",
        "TensormapProxy",
        "Trace",
        "bulk_load",
        "bulk_store",
        "bulk_to_cta",
        "diagnose",
    ),
}
"""Package -> its names that are given here too, imported when one is first asked for."""

_RENAMED: Final = {"Examination": "cute_py.ptx"}
"""Former name -> the package that still takes it, with a warning, for one release."""

_HOME: Final = {name: package for package, names in _ON_FIRST_USE.items() for name in names}

__all__ = [
    "EmissionError",
    "GBasisError",
    "RaceError",
    "TmaBuildError",
    "TmaError",
    "TmaLimitError",
    "TmaTrap",
    "TmaVerifyError",
    "UnknownFactError",
    "WouldHangError",
    *_atom,
    *_descriptor,
    *_dialect,
    *_HOME,
]


def __getattr__(name: str) -> Any:
    """A name that is imported when it is first asked for.

    Raises:
        AttributeError: no such name; the text lists the nearest ones.
    """
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _RENAMED:
        return getattr(importlib.import_module(_RENAMED[name]), name)
    near = difflib.get_close_matches(name, __all__, 3) if not name.startswith("_") else []
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"module 'cute_py.tma' has no attribute {name!r}{meant}")


def __dir__() -> list[str]:
    return sorted(__all__)
