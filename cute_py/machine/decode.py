"""Decode every instruction of a kernel into a Python function, and group them into stretches that run without
interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import InvalidValueError, ParseError, counted
from cute_py.machine.code import Code, Stretch
from cute_py.machine.faults import Refused, finding
from cute_py.machine.sites import Site
from cute_py.machine.threads import Control, Frame, Run
from cute_py.ptx.source import SourceInstruction

MAX_REFUSALS: Final = 20
"""Maximum number of instructions that one error lists."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Result of a builder for an instruction that may make threads wait, jump or end."""

    run: Control


Builder = Callable[[Site], "Run | Turn | None"]


def decode_into(code: Code, tables: Mapping[str, Builder]) -> None:
    """Decode the instructions of a kernel into its stretches.

    Args:
        tables: builder for each first word of an opcode.
    Raises:
        InvalidValueError: some instructions are not emulated; the error lists them with their lines.
    """
    starts = set(code.entry_of.values())
    for name, one in code.functions.items():
        base = code.entry_of[name]
        for step in one.instructions:
            starts.update(base + target for target in step.targets)
    found: list[Diagnostic] = []
    stretch = Stretch(0, 0)
    for number, step in enumerate(code.instructions):
        if number in starts and number != stretch.start:
            stretch = _closed(stretch, number)
        code.blocks[stretch.start] = stretch
        made = _built(code, number, step, tables, found)
        stretch.length += 1
        if isinstance(made, Turn):
            stretch.control = made.run
            stretch = _closed(stretch, number + 1)
        elif made is not None:
            stretch.runs.append(made)
    _closed(stretch, len(code.instructions))
    listed = found[:MAX_REFUSALS]
    more = f", {len(found)} in all" if len(found) > len(listed) else ""
    refuse(InvalidValueError, listed, f"{counted(len(found), 'instruction')} can't be run{more}")


def _closed(stretch: Stretch, number: int) -> Stretch:
    stretch.after = number
    return Stretch(number, number)


def _built(
    code: Code, number: int, step: SourceInstruction, tables: Mapping[str, Builder], found: list[Diagnostic]
) -> Run | Turn | None:
    build = tables.get(step.opcode.split(".")[0])
    try:
        if build is None:
            raise Refused(f"{step.opcode} is not emulated")
        site = Site(code, number, step, code.function_of[number])
        made = build(site)
        return made if made is None or step.predicate is None else _predicated(site, made)
    except Refused as error:
        found.append(finding("not emulated", str(error), step, files=code.files))
    except (ParseError, InvalidValueError) as error:
        found.append(finding("not emulated", error.headline, step, files=code.files))
    except (LookupError, ValueError):  # the builder does not expect such operands
        text = f"{step.opcode} has operands of the wrong kind"
        found.append(finding("not emulated", text, step, files=code.files))
    return None


def _predicated(site: Site, made: Run | Turn) -> Run | Turn:
    """Wrap an instruction so that it runs only in the threads whose predicate is true."""
    name, negated = site.one.predicate or ("", False)
    if site.code.register(site.function, name) != "pred":
        raise Refused(f"{name} is not a declared predicate")
    key = 16 * site.slot(name)
    count = np.count_nonzero
    if isinstance(made, Turn):
        control, after = made.run, site.number + 1

        def go(f: Frame) -> list[tuple[int, Frame]] | None:
            flags = ~f.get(key) if negated else f.get(key)
            some = int(count(flags))
            if some == f.n:
                return control(f)
            if not some:
                return None
            rest = f.subset(~flags)
            chosen = f.subset(flags)
            gone = control(chosen)
            return [*([(after, chosen)] if gone is None else gone), (after, rest)]

        return Turn(go)
    run = made

    def step(f: Frame) -> None:
        flags = ~f.get(key) if negated else f.get(key)
        some = int(count(flags))
        if some == f.n:
            run(f)
        elif some:
            run(f.subset(flags))

    return step
