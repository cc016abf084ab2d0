"""A reason: why there is a rule, and what to do when it is broken."""

from __future__ import annotations

from dataclasses import dataclass

MEASURED = "measured on NVIDIA H200, driver 580.159.04"


@dataclass(frozen=True, slots=True)
class Reason:
    """One row.

    Attributes:
        key: of what: the name of a rule, the start of a headline, the number of a step, the name of a class.
        why: why the rule exists; fix: what to do.
        source: who says that the rule holds; empty where the error or another table says it.
    """

    key: str
    why: str
    fix: str
    source: str = ""
