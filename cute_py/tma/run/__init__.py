"""Running copies: the emulator, the driver as an oracle, and the GPU executor."""

from __future__ import annotations

from cute_py.tma.copy_atom.tiles import Instructions, instructions
from cute_py.tma.run.bulk import bulk_load, bulk_store, bulk_to_cta
from cute_py.tma.run.cluster import Cluster
from cute_py.tma.run.copy import copy, execute
from cute_py.tma.run.copy_checks import first_difference
from cute_py.tma.run.copy_result import CopyResult, TileResult
from cute_py.tma.run.diagnosis import Outcome, Run, diagnose
from cute_py.tma.run.driver import driver_encode
from cute_py.tma.run.emulator import Emulator
from cute_py.tma.run.gpu_copy import PreparedCopy, prepare_copy
from cute_py.tma.run.gpu_device import Device, device_available, open_device
from cute_py.tma.run.gpu_host import copy_array
from cute_py.tma.run.gpu_report import CopyReport, kernel_texts, measure_copy
from cute_py.tma.run.gpu_tune import tuned_copy
from cute_py.tma.run.mbarrier import Mbarrier, init_barrier
from cute_py.tma.run.memory import GlobalMemory, SharedMemory
from cute_py.tma.run.pipeline import Ring, RingLoad, RingStore
from cute_py.tma.run.proxy import Agent, TensormapProxy
from cute_py.tma.run.trace import Trace

__all__ = [
    "Agent",
    "Cluster",
    "CopyReport",
    "CopyResult",
    "Device",
    "Emulator",
    "GlobalMemory",
    "Instructions",
    "Mbarrier",
    "Outcome",
    "PreparedCopy",
    "Ring",
    "RingLoad",
    "RingStore",
    "Run",
    "SharedMemory",
    "TensormapProxy",
    "TileResult",
    "Trace",
    "bulk_load",
    "bulk_store",
    "bulk_to_cta",
    "copy",
    "copy_array",
    "device_available",
    "diagnose",
    "driver_encode",
    "execute",
    "first_difference",
    "init_barrier",
    "instructions",
    "kernel_texts",
    "measure_copy",
    "open_device",
    "prepare_copy",
    "tuned_copy",
]
