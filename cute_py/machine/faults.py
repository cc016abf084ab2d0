"""Errors that end a run: a diagnostic with the instruction, its line, its source line and its threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cute_py.diagnostics import Diagnostic
from cute_py.errors import shortened
from cute_py.notation.source_lines import line_text, location_text, source_file

if TYPE_CHECKING:
    from cute_py.ptx.source import SourceInstruction

ISA = "PTX ISA 9.0, "


class Fault(Exception):
    """Error that ends a run; `.diagnostic` has the reason, and `.others` has further reasons."""

    def __init__(self, diagnostic: Diagnostic, others: Sequence[Diagnostic] = ()) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
        self.others = tuple(others)


class Refused(Exception):
    """Error of an instruction that the machine does not emulate, or whose operands do not fit."""


def place_text(one: SourceInstruction, files: Mapping[int, str]) -> str:
    """The place of an instruction: its line, and the line of the source from which it was compiled."""
    return line_text(one.line, location_text(one.loc, files))


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
