"""The TMA engine in numpy: the bytes that an H200 leaves, from the bytes of a descriptor."""

from __future__ import annotations

from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier, init_barrier
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory

__all__ = [
    "Emulator",
    "GlobalMemory",
    "Mbarrier",
    "SharedMemory",
    "init_barrier",
]
