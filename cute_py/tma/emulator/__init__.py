"""A TMA engine in numpy: from the bytes of a tensor map, it computes the bytes that a copy leaves on an H200."""

from cute_py.deprecations import export_public
from cute_py.tma.emulator.emulator import Emulator as Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier as Mbarrier
from cute_py.tma.emulator.mbarrier import init_barrier as init_barrier
from cute_py.tma.emulator.memory import GlobalMemory as GlobalMemory
from cute_py.tma.emulator.memory import SharedMemory as SharedMemory

export_public(__name__)
