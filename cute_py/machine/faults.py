"""Errors that end a run, and diagnostics with the instruction, its line, its source line and its threads."""

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
    """Error that ends a run: `.diagnostic` is the reason, and `.others` are other diagnostics."""

    def __init__(self, diagnostic: Diagnostic, others: Sequence[Diagnostic] = ()) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
        self.others = tuple(others)


class Refused(Exception):
    """Error for an instruction that the machine does not emulate, or whose operands are invalid."""


def place_text(one: SourceInstruction, files: Mapping[int, str]) -> str:
    """Text of an instruction's location: its line in the PTX, and the source line that it was compiled from."""
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
    """Make a diagnostic about an instruction."""
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
