"""Order of the findings of a run: first the cause, a wait or an arrival in a wrong phase, then what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cute_py.diagnostics import Diagnostic

_ARRIVALS: Final = ("arrival not ordered", "round not ordered")
_CONSEQUENCES: Final = (
    "too many arrivals", "read before it arrives", "race in shared memory", "overwritten while in use", "hang",
    "arrival not ordered", "released before the read",
)  # fmt: skip
"""Rules that a wait or an arrival in a wrong phase breaks later."""


def with_cause_first(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Put waits and arrivals in wrong phases first, and make the waits errors, if errors of the run follow from them.

    >>> wrong = Diagnostic("parity", severity="warning", facts={"cause": "parity"})
    >>> [(one.rule, one.severity) for one in with_cause_first([Diagnostic("hang", text="waits"), wrong])]
    [('parity', 'error'), ('hang', 'error')]
    """
    if not any(one.severity == "error" and one.rule in _CONSEQUENCES for one in found):
        return list(found)
    ranked = sorted(found, key=lambda one: (one.facts.get("cause") != "parity", one.rule not in _ARRIVALS))
    return [replace(one, severity="error") if one.rule == "parity" else one for one in ranked]
