"""The judges of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cute_py.machine.judgement.bars import Bars
from cute_py.machine.judgement.descriptors import operand_tiles
from cute_py.machine.judgement.ledger import Ledger
from cute_py.machine.judgement.observer import Observer, together
from cute_py.machine.judgement.register_pool import RegisterPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from cute_py.machine.code import Code

JUDGES: Final[tuple[Callable[[Code], Observer], ...]] = (Ledger, Bars, RegisterPool, operand_tiles)
"""What makes a judge of a kernel; each sees all events of a run, wave after wave."""

AGAIN: Final[tuple[Callable[[Code], Observer], ...]] = (Ledger, Bars)
"""Those that judge a second schedule too: what only the order of events shows."""


def judges(code: Code, *, first: bool = True) -> Observer:
    """One observer of all judges, for one run under one schedule.

    first: the first run of a launch. What it shows for all schedules is not looked for in the second.
    """
    return together([make(code) for make in (JUDGES if first else AGAIN)])
