"""Record the tensor maps of a running CUDA program, and check them."""

from cute_py.watch.injector import Injector, build_injector
from cute_py.watch.program import watch
from cute_py.watch.records import Recording, WatchedMap, read_records
from cute_py.watch.report import WatchReport, report_on

__all__ = ["Injector", "Recording", "WatchReport", "WatchedMap", "build_injector", "read_records", "report_on", "watch"]
