"""A few processes that answer the queries of `cute-py serve`, so that a query that never ends delays only its sender.

Workers are processes and not threads, because a query that hangs is one operation on huge integers or one regular
expression, which holds Python's global lock and can't be interrupted from within. A worker is started when it is
needed. It reads queries from standard input and writes answers to standard output, as lines of JSON. A worker that
exceeds its time limit is killed and replaced. A worker exits when its standard input closes, so none is left after the
server exits for any reason. If the server exits during an endless query, the worker's own timer ends the worker.

`concurrent.futures.ProcessPoolExecutor` can't do this, because it can't end a running task. If the process of a hanging
task is killed, the whole executor breaks (BrokenProcessPool), and the answers of its other processes are lost.
`multiprocessing.Pool` replaces a killed process, but the task of that process never returns.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from cute_py.diagnostics import Diagnostic, diagnostics_of
from cute_py.errors import CuteError, DeviceError, integer_text, system_reason

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
Answer = Callable[[Mapping[str, str]], Mapping[str, Json]]

MEMORY: Final = 4 << 30
"""Maximum number of bytes that a worker may allocate, if the system can limit it."""
WORKERS: Final = 4
ANSWER_SECONDS: Final = 5.0
"""Seconds for one answer; the page's largest examples take a tenth of a second."""
START_SECONDS: Final = 60.0
"""Seconds for the imports of a worker, on a slow disk."""
WAIT_SECONDS: Final = 10.0
"""Seconds for a worker to become free."""

_START: Final = """\
import json, sys
setup = json.loads(sys.stdin.buffer.readline())
sys.path[:] = setup["path"]
from cute_py.cli.serve_workers import work
work(setup["answer"], setup["seconds"])
"""


def plain_error(kind: str, message: str) -> dict[str, Json]:
    """An error without facts or a hint, as JSON data."""
    found = [diagnostic_data(Diagnostic(kind, text=message))]
    return {"error": {"type": kind, "message": message, "facts": {}, "hint": None, "diagnostics": found}}


def refusal(error: CuteError) -> dict[str, Json]:
    """An error of this library as JSON data: its parts, and a record for each broken rule."""
    data: dict[str, Json] = {"type": type(error).__name__, "message": error.headline, "facts": _texts(error.facts)}
    return {"error": {**data, "hint": error.hint, "diagnostics": [diagnostic_data(d) for d in diagnostics_of(error)]}}


def diagnostic_data(found: Diagnostic) -> Json:
    """A diagnostic as JSON data: its fields, and its message."""
    value = found.value if found.value is None or found.value.bit_length() < 64 else integer_text(found.value)
    names = ("rule", "severity", "argument", "unit", "requirement", "source", "mode", "message")
    named: dict[str, Json] = {name: getattr(found, name) for name in names}
    return {**named, "value": value, "facts": _texts(found.facts), "fixes": [str(fix) for fix in found.fixes]}


def _texts(facts: Mapping[str, object]) -> dict[str, Json]:
    return {name: str(value) for name, value in facts.items()}


def answered(answer: Answer, query: Mapping[str, Any]) -> str:
    """The response to a query, as HTTP status, a space and JSON: 200 with the answer, 400 with an error of this
    library, 500 if the library failed."""
    try:
        return f"200 {json.dumps(answer(query))}"
    except CuteError as error:
        return f"400 {json.dumps(refusal(error))}"
    except Exception as error:  # the page shows it
        return f"500 {json.dumps(plain_error(type(error).__name__, f'the library failed: {error}'))}"


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # no such limit on this system, or a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def work(answer: str, seconds: float) -> None:
    """Answer queries until standard input ends.

    Args:
        answer: `module:function`; the function takes the fields of a query and returns plain data.
        seconds: the time limit for one query; after twice this time the process ends itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stdout.fileno())  # output of a library must not come between the answers
    _limit_memory()
    module, _, name = answer.partition(":")
    function: Answer = getattr(importlib.import_module(module), name)
    gc.freeze()  # what the imports have made stays: no collection within an answer searches it
    out.write(b"ready\n")
    out.flush()
    with open(os.devnull, "w") as nowhere:
        for line in sys.stdin.buffer:
            faulthandler.dump_traceback_later(2 * seconds, exit=True, file=nowhere)
            text = answered(function, json.loads(line))
            faulthandler.cancel_dump_traceback_later()
            out.write(text.encode() + b"\n")
            out.flush()


class NoAnswer(Exception):
    """Raised if a worker gives no answer; `status` is the HTTP status to send."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Worker:
    """One worker process. Only one thread may use it at a time."""

    def __init__(self, answer: str, seconds: float) -> None:
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        command = [sys.executable, "-P", "-c", _START]  # -P: nothing is imported from the current folder
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null)
        if self._process.stdin is None or self._process.stdout is None:  # never: both are pipes
            raise DeviceError("a worker process has no pipes")
        self._in, self._out = self._process.stdin, self._process.stdout
        self._seconds = seconds
        self._ready = False
        self.ended = False
        self._send({"path": [p for p in sys.path if isinstance(p, str)], "answer": answer, "seconds": seconds})

    def ask(self, query: Mapping[str, Any]) -> tuple[int, bytes]:
        """Send a query; return the HTTP status and the answer as JSON, which the server sends unchanged.

        Raises:
            NoAnswer: the answer took too long, or the process ended. In both cases the worker has ended.
        """
        if not self._ready:
            self._line(START_SECONDS)
            self._ready = True
        self._send(query)
        status, _, data = self._line(self._seconds).rstrip().partition(b" ")
        return int(status), data

    def _send(self, data: Mapping[str, object]) -> None:
        with contextlib.suppress(OSError):  # the process has ended; reading the next line will report it
            self._in.write(json.dumps(data).encode() + b"\n")
            self._in.flush()

    def _line(self, seconds: float) -> bytes:
        """Read the next line, if it arrives in time. A line that arrives just before the timer kills the worker still
        counts."""
        clock = threading.Timer(seconds, self.end)
        clock.daemon = True
        clock.start()
        line = self._out.readline()
        clock.cancel()
        if line.endswith(b"\n"):
            return line
        if self.ended:
            raise NoAnswer(504, f"no answer within {seconds:g} s; the worker was stopped")
        self.end()
        raise NoAnswer(500, "the worker process ended without an answer")

    def end(self) -> None:
        """End the process, even if it is busy."""
        self.ended = True
        self._process.kill()

    def close(self) -> None:
        """End the process, and close its pipes."""
        self.end()
        self._process.wait()
        for stream in (self._in, self._out):
            with contextlib.suppress(OSError):
                stream.close()


class Workers:
    """Up to `size` workers, each started when it is needed."""

    def __init__(self, answer: str, size: int = WORKERS, seconds: float = ANSWER_SECONDS) -> None:
        if not sys.executable:
            raise DeviceError("sys.executable is not set, so no worker process can be started")
        self._answer, self._seconds = answer, seconds
        self._turns = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._closed = False
        self._all: set[Worker] = set()
        self._free: list[Worker] = []

    def start(self) -> None:
        """Start the first worker in advance, without waiting until it is ready."""
        with self._lock, contextlib.suppress(OSError):  # the next query tries again
            self._free.append(self._new())

    def _new(self) -> Worker:
        worker = Worker(self._answer, self._seconds)
        self._all.add(worker)
        return worker

    def ask(self, query: Mapping[str, Any]) -> tuple[int, bytes]:
        """Send a query to a free worker; return the HTTP status and the answer as JSON.

        Raises:
            NoAnswer: no worker became free in time; or as in `Worker.ask`.
        """
        if not self._turns.acquire(timeout=WAIT_SECONDS):
            raise NoAnswer(503, "all workers are busy")
        try:
            worker = self._take()
            try:
                return worker.ask(query)
            finally:
                self._give_back(worker)
        finally:
            self._turns.release()

    def _take(self) -> Worker:
        with self._lock:
            if self._closed:
                raise NoAnswer(503, "the server is shutting down")
            try:
                return self._free.pop() if self._free else self._new()
            except OSError as error:
                raise NoAnswer(503, f"no worker process can be started: {system_reason(error)}") from None

    def _give_back(self, worker: Worker) -> None:
        """Return a worker, or its replacement, to the pool."""
        with self._lock:
            if not (worker.ended or self._closed):
                self._free.append(worker)
                return
            self._all.discard(worker)
            if not self._closed:
                with contextlib.suppress(OSError):  # the next query tries again
                    self._free.append(self._new())
        worker.close()

    def close(self) -> None:
        """End all workers. The pipes of a busy worker are closed by the thread that waits for its answer."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
            for worker in self._all:
                worker.end()
        for worker in free:
            worker.close()
