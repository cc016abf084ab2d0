"""The seeded calls whose outcomes are recorded, and the hash of each."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import signal
import zlib
from typing import Any

from tests.calls.call import Call, Entry
from tests.calls.described import TIMES, described, refused
from tests.calls.outcome import Overtime
from tests.calls.registry import registry
from tests.fuzz.worker import SECONDS, Record, Task, carried_out

SEED = "characterisation"
CALLS = 20_000
UNSTEADY = "unsteady"
"""Kind of a call that ran out of time or memory: its outcome is that of the machine."""


def steady() -> dict[str, Entry]:
    """The entries whose outcomes are the same in every process and on every machine."""
    return {
        name: entry
        for name, entry in registry().items()
        if entry.steady and not entry.device and name.rsplit(".", 1)[-1] not in TIMES
    }


def tasks(calls: int = CALLS) -> list[Task]:
    """So many calls of each name, by its weight: a name that is added changes no calls of the others."""
    entries = steady()
    total = sum(entry.weight for entry in entries.values())
    found = []
    for name, entry in entries.items():
        count = max(2, 2 * math.ceil(calls * entry.weight / total / 2 - 0.5))
        found += [Task(name, number) for number in range(count)]
    return found


def sample(of: list[Task], one_in: int) -> list[Task]:
    """Some of them, the same ones every time."""
    return [task for task in of if zlib.crc32(f"{task.name}/{task.number}".encode()) % one_in == 0]


def outcome(call: Call, namespace: dict[str, Any]) -> tuple[str, str]:
    """(kind, text): 'result' or the type of the error, and all that the call gave, printed and wrote into arrays."""
    try:
        function, args, kwargs = call.made(namespace)
        printed = io.StringIO()
        signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
        try:
            with contextlib.redirect_stdout(printed):
                result = function(*args, **kwargs)
                said = described(result)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except (Overtime, MemoryError):
        return UNSTEADY, ""
    except RecursionError as error:
        return type(error).__name__, ""
    except Exception as error:
        return type(error).__name__, refused(error)
    changed = [described(x) for x in [*args, *kwargs.values()] if _may_change(x)]
    return "result", "\n".join([said, described(printed.getvalue()), *changed])


def _may_change(argument: Any) -> bool:
    return type(argument).__name__ in ("ndarray", "SharedMemory", "StringIO", "Mbarrier", "GlobalMemory", "Run")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def recorded(call: Call, namespace: dict[str, Any]) -> Record:
    """What is kept of a call."""
    kind, text = outcome(call, namespace)
    return {"name": call.name, "kind": kind, "hash": digest(kind + text)}


def in_full(call: Call, namespace: dict[str, Any]) -> Record:
    """A call with its whole outcome, to be shown."""
    kind, text = outcome(call, namespace)
    return {"name": call.name, "kind": kind, "hash": digest(kind + text), "text": call.text, "said": text}


def outcomes(of: list[Task], perform: Any = recorded) -> dict[Task, Record]:
    """Every task with its record; one whose process ended is unsteady."""
    found = {}
    for record in carried_out(of, SEED, steady(), perform):
        if "kind" not in record:
            record = {**record, "kind": UNSTEADY, "hash": "0" * 16}
        found[Task(record["name"], record["number"])] = record
    return found
