"""The three texts: refusals of seeded calls with a wrong argument, what commands print as JSON, and their help."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import signal
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from tests.calls import surface
from tests.calls.call import Call, Entry
from tests.calls.described import TIMES, normalised
from tests.calls.outcome import Overtime
from tests.calls.registry import registry
from tests.characterisation.commands import printed
from tests.fuzz.worker import SECONDS, Record, Task, call_of, carried_out

SEED = "characterisation"
CALLS_OF_A_NAME = 3
"""Calls with a wrong argument, of each public name."""


def _steady() -> dict[str, Entry]:
    """The names whose outcomes are the same in every process and on every machine."""
    return {
        name: entry
        for name, entry in registry().items()
        if entry.steady and not entry.device and name.rsplit(".", 1)[-1] not in TIMES
    }


def _refusal(call: Call, namespace: dict[str, Any]) -> Record:
    """The error of a call, if it is refused within its time."""
    try:
        function, args, kwargs = call.made(namespace)
        signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                str(function(*args, **kwargs))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except (Overtime, MemoryError, RecursionError):
        return {"name": call.name}
    except Exception as error:
        return {"name": call.name, "text": call.text, "said": f"{type(error).__name__}: {normalised(str(error))}"}
    return {"name": call.name}


def wrong_calls(most: int = CALLS_OF_A_NAME, every: int = 1) -> list[Task]:
    """The first so many calls with a wrong argument, of each name or of each `every`th one. Odd calls have one."""
    return [Task(name, 2 * i + 1) for name in list(_steady())[::every] for i in range(most)]


def texts_of(tasks: list[Task]) -> set[str]:
    """The calls as they are written."""
    entries = _steady()
    return {call_of(entries[task.name], SEED, task.number).text for task in tasks}


def refusals(tasks: list[Task] | None = None) -> dict[str, str]:
    """Call -> type, text and facts of its error; of all calls unless some are given."""
    records = carried_out(wrong_calls() if tasks is None else tasks, SEED, _steady(), _refusal)
    return {str(record["text"]): str(record["said"]) for record in records if record.get("said")}


def _helps(parser: Any, title: str) -> dict[str, str]:
    found = {title: parser.format_help()}
    for action in parser._actions:
        if hasattr(action, "choices") and isinstance(action.choices, Mapping):
            for name, child in action.choices.items():
                found.update(_helps(child, f"{title} {name}"))
    return found


def helps() -> dict[str, str]:
    """Command -> its help, 80 columns wide."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        return _helps(surface.command_parser(), "cute-py")
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def environment() -> str:
    """The versions that texts depend on: Python writes help, numpy and sympy write parts of messages."""
    versions = {"Python": platform.python_version(), **{name: metadata.version(name) for name in ("numpy", "sympy")}}
    return ", ".join(f"{name} {'.'.join(version.split('.')[:2])}" for name, version in versions.items())


TEXTS = {"refusals": refusals, "json": printed, "help": helps}
"""File -> what it holds."""


def as_text(found: Mapping[str, str]) -> str:
    """One block for each entry: its name after '== ', then what is said."""
    return "".join(f"== {name}\n{said.rstrip()}\n\n" for name, said in found.items())
