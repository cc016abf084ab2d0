"""A process that has loaded pytest and the libraries, and forks for every run of tests: loading them takes longer than
most mutants live.

It is started as a file, not as a module, in the folder of the copy: no part of the project is loaded before the fork.
A line of input is a JSON list: the options of pytest, the file for the output, and the seconds that the run may take. A
line of output is the exit status, or `time`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time

LIBRARIES = ("numpy", "pytest", "hypothesis", "hypothesis.strategies", "sympy", "ml_dtypes")

PAUSE = 0.02
"""Seconds between two looks whether a run has ended."""


def forked(options: list[str], out: str) -> int:
    """Starts the run; its process is the first of a new group, with all that it starts."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    status = 1
    with contextlib.suppress(BaseException):
        import pytest

        status = int(pytest.main(options))
    sys.stdout.flush()
    os._exit(status)


def waited(child: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return str(os.waitstatus_to_exitcode(status))
        time.sleep(PAUSE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time"


def main() -> None:
    sys.path[0] = os.getcwd()
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        options, out, seconds = json.loads(line)
        print(waited(forked(options, out), seconds), flush=True)


if __name__ == "__main__":
    main()
