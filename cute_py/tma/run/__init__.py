"""Running copies: the emulator, the driver as an oracle, and the GPU executor."""

from __future__ import annotations

from cute_py.tma.run.copy import CopyResult, TileResult, copy, execute, first_difference
from cute_py.tma.run.emulator import Emulator
from cute_py.tma.run.mbarrier import Mbarrier
from cute_py.tma.run.memory import GlobalMemory, SharedMemory
from cute_py.tma.run.tiles import Instructions, instructions

__all__ = [
    "CopyResult",
    "Emulator",
    "GlobalMemory",
    "Instructions",
    "Mbarrier",
    "SharedMemory",
    "TileResult",
    "copy",
    "execute",
    "first_difference",
    "instructions",
]
