"""Errors that end a run: a diagnostic with the instruction, its line, its source line and the threads that did it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cute_py.diagnostics import Diagnostic
from cute_py.errors import shortened
from cute_py.ptx.locations import line_text, source_file, source_text

if TYPE_CHECKING:
    from cute_py.ptx.source import SourceInstruction

ISA = "PTX ISA 9.0, "


class Fault(Exception):
    """A run that can't go on; `.diagnostic` says why, `.others` has what else keeps it from going on."""

    def __init__(self, diagnostic: Diagnostic, others: Sequence[Diagnostic] = ()) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
        self.others = tuple(others)


class Refused(Exception):
    """An instruction that the machine does not have, or that its operands don't fit."""


def place_text(one: SourceInstruction, files: Mapping[int, str]) -> str:
    """Where an instruction stands: its line, and the line of the source that it came from."""
    return line_text(one.line, source_text(one.loc, files))


def finding(
    rule: str,
    text: str,
    one: SourceInstruction | None = None,
    *,
    files: Mapping[int, str] | None = None,
    source: str = "",
    severity: str = "error",
    facts: Mapping[str, object] | None = None,
) -> Diagnostic:
    """A diagnostic at an instruction."""
    said: dict[str, object] = {}
    if one is not None:
        text = f"{place_text(one, files or {})}: {text}"
        said = {"line": one.line, "instruction": shortened(one.text, 160)}
        if one.loc is not None:
            said["source_line"] = one.loc[1]
            said["source_file"] = source_file(one.loc[0], files or {})
    return Diagnostic(
        rule, text=text, source=source and ISA + source, severity=severity, facts={**said, **(facts or {})}
    )
