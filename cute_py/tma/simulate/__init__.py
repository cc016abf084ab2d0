"""Programs of copies and barriers, run with their order watched: hangs, races, clusters, rings."""

from __future__ import annotations

from cute_py.tma.simulate.bulk import Cluster, bulk_load, bulk_store, bulk_to_cta
from cute_py.tma.simulate.diagnosis import Outcome, Run, diagnose
from cute_py.tma.simulate.pipeline import Ring, RingLoad, RingStore
from cute_py.tma.simulate.tensormap_proxy import Agent, TensormapProxy
from cute_py.tma.simulate.trace import Trace

__all__ = [
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
]
