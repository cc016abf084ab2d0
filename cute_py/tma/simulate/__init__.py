"""Programs of copies and barriers, run with their order watched: hangs, races, clusters, rings."""

from cute_py.deprecations import export_public
from cute_py.tma.emulator.bulk import Cluster as Cluster
from cute_py.tma.emulator.bulk import bulk_load as bulk_load
from cute_py.tma.emulator.bulk import bulk_store as bulk_store
from cute_py.tma.emulator.bulk import bulk_to_cta as bulk_to_cta
from cute_py.tma.emulator.tensormap_proxy import Agent as Agent
from cute_py.tma.emulator.tensormap_proxy import TensormapProxy as TensormapProxy
from cute_py.tma.emulator.trace import Trace as Trace
from cute_py.tma.simulate.diagnosis import Outcome as Outcome
from cute_py.tma.simulate.diagnosis import Run as Run
from cute_py.tma.simulate.diagnosis import diagnose as diagnose
from cute_py.tma.simulate.pipeline import Ring as Ring
from cute_py.tma.simulate.pipeline import RingLoad as RingLoad
from cute_py.tma.simulate.pipeline import RingStore as RingStore

export_public(__name__)
