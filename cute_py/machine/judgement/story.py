"""The report of a run: each finding with the lines that it names, the reason for the rule, and a suggested change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cute_py.diagnostics import Diagnostic, Reason
from cute_py.errors import counted, shortened
from cute_py.machine.judgement.tried import CLEARED
from cute_py.notation.source_lines import line_text

MAX_LINES: Final = 8
"""Maximum number of lines of the text that one finding quotes."""
WIDTH: Final = 110
_QUIET: Final = (
    "line", "other_line", "released_line", "source_line", "instruction", "threads", "cause", "barrier", "phase",
    "change", CLEARED,
)  # fmt: skip
"""Facts that the message or the quoted lines already contain."""
_ROLES: Final = {"other_line": "the other instruction", "released_line": "the early arrival"}
"""Roles of quoted lines whose fact has the name of a field."""


def reason_for(one: Diagnostic, reasons: Mapping[str, Reason]) -> Reason | None:
    """Return the reason for a finding's rule and the suggested change; None if the rule has none."""
    cause = one.facts.get("cause")
    return reasons.get(f"{one.rule}, {cause}") or reasons.get(one.rule)


def concrete_change(one: Diagnostic, sources: Mapping[int, str]) -> str:
    """Text of the change that follows from the values in a finding; empty if there is none."""
    change = one.facts.get("change")
    if isinstance(change, tuple):
        line, old, new = change
        place = line_text(line, sources.get(line, ""))
        return f"{place}: {new} instead of {old}, if no arrival or copy is missing"
    if "written with" in one.facts:
        return f"give the descriptor the swizzle of {one.facts['written with']} bytes"
    return ""


def advice(one: Diagnostic, reasons: Mapping[str, Reason], sources: Mapping[int, str]) -> str:
    """Text of a suggested change for a finding; empty if there is none, or if the finding already has a change that was
    tried.
    """
    if one.fixes:
        return ""
    reason = reason_for(one, reasons)
    return concrete_change(one, sources) or ("" if reason is None else reason.fix)


def quoted(one: Diagnostic, texts: Mapping[int, str], sources: Mapping[int, str]) -> list[str]:
    """Quote the PTX lines that a finding names, in order, each with its role and its source line."""
    marks: dict[int, str] = {}
    here = one.facts.get("line")
    if isinstance(here, int):
        marks[here] = "here"
    for name, value in one.facts.items():
        if name in ("line", "source_line"):
            continue
        if name.endswith((" at", "line", "come from", "run", "delivered")):
            for number in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(number, int) and number in texts:
                    marks.setdefault(number, _ROLES.get(name, name))
    said = []
    for number in sorted(marks)[:MAX_LINES]:
        text = one.facts.get("instruction") if number == here else texts.get(number)
        source = f" ({sources[number]})" if number in sources else ""
        said.append(f"    {number:>6} | {shortened(' '.join(str(text).split()), WIDTH)}   <- {marks[number]}{source}")
    return said


def told(
    one: Diagnostic, number: int, texts: Mapping[int, str], reasons: Mapping[str, Reason], sources: Mapping[int, str]
) -> list[str]:
    """Return the lines of the report for one finding."""
    cause = one.facts.get("cause")
    title = f"{one.rule}: {cause}" if cause and cause != one.rule else one.rule
    lines = [f"{one.severity} {number}: {title}", f"  {one.message}", *quoted(one, texts, sources)]
    shown = {name: value for name, value in one.facts.items() if name not in _QUIET and _adds(name, value, one)}
    if one.facts.get("other_line") in texts:
        shown.pop("other", None)
    lines += [f"  {name}: {value}" for name, value in shown.items()]
    reason = reason_for(one, reasons)
    if reason is not None:
        lines.append(f"  why: {reason.why}")
    cured = "any error" if one.facts.get(CLEARED) else f"this {one.severity}"
    lines += [f"  change: {fix}; with this change the run does not have {cured}" for fix in one.fixes]
    if untried := advice(one, reasons, sources):
        lines.append(f"  try: {untried}")
    if one.source:
        lines.append(f"  source: {one.source}")
    return lines


def _adds(name: str, value: Any, one: Diagnostic) -> bool:
    """Whether a fact adds information to the message and the quoted lines."""
    if name.endswith((" at", "come from", "did not run")) or isinstance(value, list):
        return False
    return str(value) not in one.message


def story(
    head: str,
    diagnostics: Sequence[Diagnostic],
    texts: Mapping[int, str],
    reasons: Mapping[str, Reason],
    sources: Mapping[int, str],
) -> list[str]:
    """Report all findings, errors first, with the number of each kind.

    Args:
        head: text about the kernel and how it ran. texts: instruction of each line. reasons: reason for each rule,
            `machine.rules.REASONS`.
        sources: source line of each PTX line.
    """
    counts = {kind: sum(one.severity == kind for one in diagnostics) for kind in ("error", "warning", "note")}
    said = ", ".join(counted(count, kind) for kind, count in counts.items() if count)
    lines = [f"{head}: {said or 'no error was found'}"]
    for kind in counts:
        for number, one in enumerate([d for d in diagnostics if d.severity == kind], 1):
            lines += ["", *told(one, number, texts, reasons, sources)]
    return lines
