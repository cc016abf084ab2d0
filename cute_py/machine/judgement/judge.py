"""Combine the judges of a run into one observer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cute_py.machine.judgement.bars import Bars
from cute_py.machine.judgement.descriptors import operand_tiles
from cute_py.machine.judgement.hangs import TimeLimits
from cute_py.machine.judgement.ledger import Ledger
from cute_py.machine.judgement.map_fences import map_fences
from cute_py.machine.judgement.observer import Observer, together
from cute_py.machine.judgement.races.memory import MemoryJudge
from cute_py.machine.judgement.races.products import ProductJudge
from cute_py.machine.judgement.races.reports import Reports
from cute_py.machine.judgement.races.synchronisation import ClockKeeper
from cute_py.machine.judgement.register_pool import RegisterPool
from cute_py.machine.tensor_memory.fences import thread_fences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cute_py.machine.code import Code

JUDGES: Final[tuple[Callable[[Code], Observer], ...]] = (Ledger, Bars, TimeLimits)
"""A function that makes a judge of a kernel. The judge sees the events of every schedule and all waves of a launch."""


def judges(code: Code, *, first: bool = True, beside: Sequence[Observer] = ()) -> Observer:
    """Combine all judges into one observer, for one run under one schedule.

    first: whether this is the first run of a launch. Only the first run judges races and descriptors, because the
    result holds for all schedules. beside: other observers, which do not judge.
    """
    found = [*beside, *(make(code) for make in JUDGES)]
    if first:
        found += [thread_fences(code), map_fences(code)]
        reports = Reports(code)
        keeper = ClockKeeper(reports, code)
        found += [RegisterPool(code), operand_tiles(code), keeper, MemoryJudge(reports, code, keeper)]
        found.append(ProductJudge(reports, code))
    return together(found)
