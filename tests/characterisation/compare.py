"""What differs from the record, and which of it was reviewed."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from tests.characterisation import surface_text, texts
from tests.characterisation.outcomes import UNSTEADY, digest, in_full, outcomes
from tests.characterisation.record import REWORDED, SURFACE, Recorded
from tests.fuzz.worker import Record, Task


@dataclass(frozen=True)
class Reviewed:
    """A line of `reworded.txt`: a regular expression for names, one for the new outcome, and whether the kind of the
    outcome may be another (lines that begin with !)."""

    names: re.Pattern[str]
    text: re.Pattern[str]
    kind_too: bool

    def takes(self, name: str, said: str, same_kind: bool) -> bool:
        fits = self.names.fullmatch(name) is not None and self.text.search(said) is not None
        return fits and (same_kind or self.kind_too)


def reviewed(text: str) -> list[Reviewed]:
    """The lines of a list; # begins a comment, ` / ` stands between the two expressions.

    >>> [line] = reviewed("! tma[.]encode / InvalidTypeError: a request")
    >>> line.takes("tma.encode", "InvalidTypeError: a request must be ...", False)
    True
    """
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        names, _, text = line.removeprefix("!").strip().partition(" / ")
        found.append(Reviewed(re.compile(names), re.compile(text, re.DOTALL), line.startswith("!")))
    return found


@dataclass(frozen=True)
class Difference:
    """One call or text that is not as recorded."""

    name: str
    number: int
    before: str
    now: str
    text: str
    said: str

    def __str__(self) -> str:
        said = "\n".join(f"    {line}" for line in self.said[:1500].splitlines()[:20])
        return f"{self.name} #{self.number}: {self.before} -> {self.now}\n  {self.text[:600]}\n{said}"


def calls_that_differ(recorded: Recorded, of: list[Task]) -> tuple[list[Difference], int, list[Task]]:
    """(what is not reviewed, how many are, tasks that the record lacks)."""
    known = [task for task in of if task in recorded.calls]
    lines = reviewed(REWORDED.read_text()) if REWORDED.exists() else []
    found = outcomes(known)
    changed = [task for task in known if _differs(recorded.calls[task], found.get(task))]
    again = outcomes(changed, in_full) if changed else {}
    differences, accepted = [], 0
    for task in changed:
        record = again.get(task, found.get(task, {}))
        before, now = recorded.calls[task][0], record.get("kind", "nothing")
        said = record.get("said", "")
        if any(line.takes(task.name, said, before == now) for line in lines):
            accepted += 1
        else:
            differences.append(Difference(task.name, task.number, before, now, record.get("text", ""), said))
    return differences, accepted, [task for task in of if task not in recorded.calls]


def _differs(before: tuple[str, str], now: Record | None) -> bool:
    if before[0] == UNSTEADY:
        return False
    return now is None or before != (now["kind"], now["hash"])


def texts_that_differ(recorded: Recorded) -> list[str]:
    """Labels, with the text as it is now."""
    now = texts.texts()
    changed = [label for label, text in now.items() if recorded.kernels.get(label) != digest(text)]
    gone = [label for label in recorded.kernels if label not in now]
    return [f"{label}:\n{now[label][:1500]}" for label in changed] + [f"{label}: is gone" for label in gone]


def surface_that_differs() -> list[str]:
    """Lines of a unified diff."""
    before = SURFACE.read_text(encoding="utf-8").splitlines()
    return list(difflib.unified_diff(before, surface_text.text().splitlines(), "recorded", "now", lineterm="", n=1))
