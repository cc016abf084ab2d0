"""What happened in a run, as a colleague would say it: each finding with its lines, the reason, and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cute_py.diagnostics import Diagnostic, Reason
from cute_py.errors import counted, shortened

MAX_LINES: Final = 8
"""Lines of the text that one finding quotes."""
WIDTH: Final = 110
_QUIET: Final = ("line", "source_line", "instruction", "threads", "cause", "barrier", "phase")
"""Facts that the message has, or the quoted lines."""


def reason_for(one: Diagnostic, reasons: Mapping[str, Reason]) -> Reason | None:
    """Why a finding is one, and what to do."""
    cause = one.facts.get("cause")
    return reasons.get(f"{one.rule}, {cause}") or reasons.get(one.rule)


def concrete_change(one: Diagnostic) -> str:
    """The change that the numbers of a finding give; empty where they give none."""
    facts = one.facts
    at = facts.get("expected at")
    expected, arrived = facts.get("bytes"), None
    if facts.get("cause") == "transaction bytes" and isinstance(at, list) and len(at) == 1:
        if isinstance(expected, str) and " of " in expected:
            arrived = expected.partition(" of ")[0]
        elif isinstance(expected, int) and "expected" in facts:
            arrived = str(expected)
        if arrived not in (None, "0"):
            return f"line {at[0]}: expect {arrived} bytes, if no copy is missing"
    missing = facts.get("missing")
    if facts.get("cause") == "arrival count" and isinstance(missing, str) and isinstance(facts.get("arrivals"), str):
        came = str(facts["arrivals"]).partition(" of ")[0]
        if came != "0":
            return f"line {facts.get('initialised at')}: initialise the barrier with a count of {came}"
    if "written with" in facts:
        return f"give the descriptor the swizzle of {facts['written with']} bytes"
    return ""


def quoted(one: Diagnostic, texts: Mapping[int, str]) -> list[str]:
    """The lines of the text that a finding names, in their order, each with its part."""
    marks: dict[int, str] = {}
    here = one.facts.get("line")
    if isinstance(here, int):
        marks[here] = "here"
    for name, value in one.facts.items():
        if name in ("line", "source_line"):
            continue
        if name.endswith((" at", "line", "come from", "run", "brought")):
            for number in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(number, int) and number in texts:
                    marks.setdefault(number, name)
    said = []
    for number in sorted(marks)[:MAX_LINES]:
        said.append(
            f"    {number:>6} | {shortened(' '.join(texts.get(number, '').split()), WIDTH)}   <- {marks[number]}"
        )
    return said


def told(one: Diagnostic, number: int, texts: Mapping[int, str], reasons: Mapping[str, Reason]) -> list[str]:
    """One finding."""
    cause = one.facts.get("cause")
    title = f"{one.rule}: {cause}" if cause and cause != one.rule else one.rule
    lines = [f"{one.severity} {number}: {title}", f"  {one.message}", *quoted(one, texts)]
    shown = {name: value for name, value in one.facts.items() if name not in _QUIET and _adds(name, value, one)}
    lines += [f"  {name}: {value}" for name, value in shown.items()]
    reason = reason_for(one, reasons)
    if reason is not None:
        lines.append(f"  why: {reason.why}")
    change = concrete_change(one)
    if one.fixes:
        lines += [f"  change: {fix}; with it the run is without this error" for fix in one.fixes]
    elif change:
        lines.append(f"  change: {change}")
    elif reason is not None:
        lines.append(f"  change: {reason.fix}")
    if one.source:
        lines.append(f"  source: {one.source}")
    return lines


def _adds(name: str, value: Any, one: Diagnostic) -> bool:
    """Whether a fact says more than the message and the quoted lines."""
    if name.endswith((" at", "come from", "did not run")) or isinstance(value, list):
        return False
    return str(value) not in one.message


def story(
    head: str, diagnostics: Sequence[Diagnostic], texts: Mapping[int, str], reasons: Mapping[str, Reason]
) -> list[str]:
    """All findings, errors first, with the number of each kind.

    Args:
        head: the kernel and how it ran. texts: line -> instruction. reasons: rule -> reason, `judge.REASONS`.
    """
    counts = {kind: sum(one.severity == kind for one in diagnostics) for kind in ("error", "warning", "note")}
    said = ", ".join(counted(count, kind) for kind, count in counts.items() if count)
    lines = [f"{head}: {said or 'no error was found'}"]
    for kind in counts:
        for number, one in enumerate([d for d in diagnostics if d.severity == kind], 1):
            lines += ["", *told(one, number, texts, reasons)]
    return lines
