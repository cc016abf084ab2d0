"""The long form of an error: the rule that was broken, why there is such a rule, who says so, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from cute_py.errors import CuteError, RaceError, TmaTrap, TmaVerifyError, WouldHangError
from cute_py.explanation.reason import Reason
from cute_py.explanation.reasons_of_classes import CLASS_REASONS
from cute_py.explanation.reasons_of_copies import (
    GBASIS_REASONS,
    HANG_REASON,
    RACE_REASONS,
    TRAP_REASONS,
    VERIFIER_REASONS,
)
from cute_py.explanation.reasons_of_layouts import LAYOUT_REASONS
from cute_py.explanation.reasons_of_maps import MAP_REASONS
from cute_py.explanation.wording import filled, listed

_VERIFIER_SOURCE = "the TMA Atoms reference page, the steps of the partition verifier"


def error_words(error: CuteError) -> str:
    """The text of an error, the rules behind it with their reasons, and its place in the tree.

    >>> print(error_words(CuteError("no")).splitlines()[0])
    CuteError: no
    """
    parts = [f"{type(error).__name__}: {error}"]
    found = reasons_of(error)
    parts += [_rule(title, reason, source) for title, reason, source in found]
    general = _by_class(type(error))
    if not found and general is not None:
        parts.append(_rule("", general, ""))
    return "\n\n".join([*parts, _about(type(error))])


def error_class_words(kind: type[CuteError]) -> str:
    """What a class of errors means, why there is such a class, what to do, and the rules that raise it."""
    parts = [kind.__name__, inspect.getdoc(kind) or ""]
    general = _by_class(kind)
    if general is not None:
        parts.append(_rule("", general, ""))
    parts += _rules_of(kind)
    return "\n\n".join([*[part for part in parts if part], _about(kind)])


def reasons_of(error: CuteError) -> list[tuple[str, Reason, str]]:
    """(the rule in its own words, its reason, its source) of each rule that an error tells; empty if none is known."""
    out = []
    for violation in getattr(error, "violations", ()):
        reason = _named(MAP_REASONS, getattr(violation, "rule", ""))
        if reason is not None:
            out.append((f"{violation.argument}: it must {violation.requirement}", reason, violation.source))
    if out:
        return out
    if isinstance(error, TmaVerifyError):
        reason = _named(VERIFIER_REASONS, str(error.step))
        return [] if reason is None else [(f"step {error.step}, {_step_name(error.step)}", reason, _VERIFIER_SOURCE)]
    if isinstance(error, TmaTrap):
        return _one(TRAP_REASONS, error.cause)
    if isinstance(error, RaceError):
        return _one(RACE_REASONS, error.headline)
    if isinstance(error, WouldHangError) and HANG_REASON.key in error.headline:
        return [(error.headline, HANG_REASON, HANG_REASON.source)]
    if "barrier was not complete" in error.headline:
        return [(error.headline, HANG_REASON, HANG_REASON.source)]
    return _one((*GBASIS_REASONS, *LAYOUT_REASONS), error.headline)


def _one(rows: Sequence[Reason], text: str) -> list[tuple[str, Reason, str]]:
    reason = next((row for row in rows if text.startswith(row.key)), None)
    return [] if reason is None else [(text, reason, reason.source)]


def _named(rows: Sequence[Reason], key: str) -> Reason | None:
    return next((row for row in rows if row.key == key), None)


def _step_name(number: int) -> str:
    from cute_py.tma.atom.verifier_steps import STEPS

    return next((step.name for step in STEPS if step.number == number), "unknown")


def _by_class(kind: type) -> Reason | None:
    """The row of a class, or of the nearest one above it."""
    return next((row for name in [c.__name__ for c in kind.__mro__] if (row := _named(CLASS_REASONS, name))), None)


def _rule(title: str, reason: Reason, source: str) -> str:
    lines = [f"The rule: {title}"] if title else ["In general"]
    lines += [filled("  why    : ", reason.why), filled("  to do  : ", reason.fix)]
    return "\n".join([*lines, *([filled("  source : ", source)] if source else [])])


def _rules_of(kind: type[CuteError]) -> list[str]:
    """The rules that raise an error of this class, where they are a table."""
    from cute_py.tma.descriptor.limits import RULES

    tables: dict[str, tuple[str, list[tuple[str, str]]]] = {
        "TmaLimitError": ("The rules of a tensor map", [(rule.name, f"must {rule.requirement}") for rule in RULES]),
        "TmaVerifyError": ("The steps", [(row.key, _step_name(int(row.key))) for row in VERIFIER_REASONS]),
        "TmaTrap": ("The causes begin with", [(row.key, row.why) for row in TRAP_REASONS]),
        "RaceError": ("The rules", [(row.key, row.why) for row in RACE_REASONS]),
        "StaticAssertError": ("The conditions begin with", [(row.key, row.why) for row in LAYOUT_REASONS]),
        "GBasisError": ("The conditions", [(row.key, row.why) for row in GBASIS_REASONS]),
        "WouldHangError": ("The rule", [(HANG_REASON.key, HANG_REASON.why)]),
    }
    if kind.__name__ not in tables:
        return []
    title, rows = tables[kind.__name__]
    return [listed(title, rows)]


def _about(kind: type) -> str:
    words = " ".join((inspect.getdoc(kind) or "").split())
    parents = [c.__name__ for c in kind.__mro__[1:] if issubclass(c, Exception) and c is not Exception]
    caught = f"except {' or '.join(parents)} catches it as well." if parents else "It is the root of all of them."
    return "\n".join([filled("", f"About {kind.__name__}: {words}"), caught])
