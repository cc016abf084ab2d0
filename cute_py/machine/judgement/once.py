"""Base class of judges that report a broken rule once for each instruction, for any number of threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.observer import Observer
from cute_py.machine.threads import Host

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.code import Code


class OncePerInstruction(Observer):
    """A judge that reports each rule at most once per instruction; `source` is its section of the PTX ISA."""

    active = True
    source: ClassVar[str]

    def __init__(self, code: Code) -> None:
        self.code = code
        self.m: Host
        self._found: list[Diagnostic] = []
        self._said: set[tuple[str, int]] = set()

    def findings(self) -> list[Diagnostic]:
        """Return the findings so far."""
        return self._found

    def _where(self, at: int) -> str:
        return place_text(self.code.instructions[at], self.code.files)

    def _say(
        self, at: int, rule: str, text: str, facts: Mapping[str, object], severity: str = "error", source: str = ""
    ) -> None:
        """Record a finding at the instruction with index `at`, unless the instruction already has a finding of this
        rule. The cause is the rule, unless `facts` contain a cause. source: section of the PTX ISA, if it is not the
        judge's `source`.
        """
        if (rule, at) not in self._said:
            self._said.add((rule, at))
            one, facts = self.code.instructions[at], facts if "cause" in facts else {"cause": rule, **facts}
            self._found.append(
                finding(
                    rule, text, one, files=self.code.files, source=source or self.source, facts=facts, severity=severity
                )
            )
