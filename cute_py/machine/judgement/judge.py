"""The judges of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cute_py.machine.judgement.memory import MemoryJudge
from cute_py.machine.judgement.observer import Observer, together
from cute_py.machine.judgement.products import ProductJudge
from cute_py.machine.judgement.reports import Reports
from cute_py.machine.judgement.synchronisation import ClockKeeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from cute_py.machine.code import Code

JUDGES: Final[tuple[Callable[[Code], Observer], ...]] = ()
"""What makes a judge of a kernel that sees the events of every schedule; each sees all waves of a launch."""


def judges(code: Code, *, first: bool = True) -> Observer:
    """One observer of all judges, for one run under one schedule.

    first: the first run of a launch. Races are judged in it, for all schedules, and not in the second.
    """
    found = [make(code) for make in JUDGES]
    if first:
        reports = Reports(code)
        keeper = ClockKeeper(reports, code)
        found += [keeper, MemoryJudge(reports, code, keeper), ProductJudge(reports, code)]
    return together(found)
