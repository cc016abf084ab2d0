"""Findings, one a name, kind and place, each with its shortest call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

Finding = dict[str, Any]

HEADER = "from tests.calls.interactive import *"


def deduplicated(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """The shortest finding of each kind, and how many there were; ordered by package, place and name."""
    shortest: dict[tuple[str, str, str], Finding] = {}
    counts: Counter[tuple[str, str, str]] = Counter()
    for finding in findings:
        key = (finding["name"], finding["type"], finding["place"])
        counts[key] += 1
        if key not in shortest or len(finding["text"]) < len(shortest[key]["text"]):
            shortest[key] = finding
    order = sorted(shortest, key=lambda key: (key[2] == "", key[2].split(" ")[0], key[0], key[1]))
    return [(shortest[key], counts[key]) for key in order]


def report(findings: Iterable[Finding]) -> str:
    """The text of a report: a package, its places, and below each the calls that end there."""
    lines, package, place = [], None, None
    for finding, count in deduplicated(findings):
        here = finding["place"].split(":")[0]
        of = "/".join(here.split("/")[:2]) if here.startswith("tma/") else here.split("/")[0] or "hangs and deaths"
        if of != package:
            lines += ["", f"== {of}"]
            package = of
        if finding["place"] != place:
            place = finding["place"]
            lines += ["", f"-- {place}"]
        lines.append(f"{finding['name']}: {finding['type']}: {finding['said']}  (x{count})")
        lines.append(f"    {shortened(finding['text'])}")
    return "\n".join(lines).lstrip("\n") + "\n"


def shortened(text: str, most: int = 600) -> str:
    return text if len(text) <= most else text[:most] + " ..."
