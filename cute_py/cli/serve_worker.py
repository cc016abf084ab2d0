"""What a worker process of `cute-py serve` does: queries on standard input, answers on standard output, a line each.

A worker ends with its standard input, so none is left when the server goes away, however it goes. A query that never
ends is ended from outside, by `serve_workers`; should nobody be left to do so, the worker's own clock ends it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from cute_py.errors import CuteError

Answer = Callable[[Mapping[str, str]], dict[str, Any]]

MEMORY: Final = 4 << 30
"""Bytes that one worker may allocate, where the system can limit them."""


def plain_error(kind: str, message: str) -> dict[str, Any]:
    """An error without facts, as JSON data."""
    return {"error": {"type": kind, "message": message, "facts": {}, "hint": None}}


def refusal(error: CuteError) -> dict[str, Any]:
    """A typed error as JSON data."""
    facts = {name: str(value) for name, value in error.facts.items()}
    return {"error": {"type": type(error).__name__, "message": error.headline, "facts": facts, "hint": error.hint}}


def answered(answer: Answer, query: Mapping[str, str]) -> str:
    """[HTTP status, JSON data]: 200 with the answer, 400 with a refusal, 500 where the library failed."""
    try:
        return json.dumps([200, answer(query)])
    except CuteError as error:
        return json.dumps([400, refusal(error)])
    except Exception as error:  # the page shows it
        return json.dumps([500, plain_error(type(error).__name__, f"the library failed: {error}")])


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # no such limit on this system, or a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def work(answer: str, seconds: float) -> None:
    """Answer queries until standard input ends.

    Args:
        answer: `module:function`, which takes the fields of a query and returns plain data.
        seconds: after twice as many for one query the process ends itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stdout.fileno())  # what a library prints must not come between the answers
    _limit_memory()
    module, _, name = answer.partition(":")
    function: Answer = getattr(importlib.import_module(module), name)
    out.write(b"ready\n")
    out.flush()
    with open(os.devnull, "w") as nowhere:
        for line in sys.stdin.buffer:
            faulthandler.dump_traceback_later(2 * seconds, exit=True, file=nowhere)
            text = answered(function, json.loads(line))
            faulthandler.cancel_dump_traceback_later()
            out.write(text.encode() + b"\n")
            out.flush()
