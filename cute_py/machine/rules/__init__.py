"""The rules that the judges of a run apply, each with its reason and a suggested change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cute_py.diagnostics import Reason
from cute_py.machine.rules.barriers import BARRIER_RULES
from cute_py.machine.rules.memory import RULES
from cute_py.machine.rules.tensor_memory import TENSOR_RULES

REASONS: Final[Mapping[str, Reason]] = {**RULES, **BARRIER_RULES, **TENSOR_RULES}
"""Rule of any judge, or 'hang, ' and its cause -> the reason for the rule, and the change."""
