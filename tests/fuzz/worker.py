"""Calls made one after the other in a process of their own, which may be killed at any of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import io
import json
import os
import pickle
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any

from tests.calls import arena
from tests.calls.call import Call, Entry
from tests.calls.mutations import mutated
from tests.calls.namespace import names
from tests.calls.outcome import UNHASHABLE, Overtime, frames_of, is_refusal, place_of, touch
from tests.fuzz.chains import IT, uses

SECONDS = 2.0
"""CPU time that a call may take."""

ATTEMPTS = 3
"""How many times a call may exceed SECONDS before it is a finding. A virtual machine receives its memory page by page:
the first 800 MB took 1.6 s to fill, and 0.08 s from then on."""

HARD_SECONDS = 20.0
"""Wall time after which the process is killed."""

STARTING_SECONDS = 120.0
"""Wall time that a process may take before its first call: on a busy machine longer than a short HARD_SECONDS."""

MEMORY = 2 << 30
"""Bytes of address space that calls may add to what the process has before the first one."""


MUTATIONS = (0, 1, 2, 1)
"""How many arguments of a call are mutated, by its number modulo 4. The second may be the first again."""


@dataclass(frozen=True)
class Task:
    """The `number`th call of a name; odd ones have a mutated argument, and every second even one has two."""

    name: str
    number: int


def call_of(entry: Entry, seed: object, number: int) -> Call:
    """The call of a task; the same in every process."""
    call = entry.call(f"{seed}/{number}")
    source = random.Random(f"{seed}/{number}/{entry.name}/mutation")
    for _ in range(MUTATIONS[number % 4] if entry.mutable else 0):
        call = mutated(call, source)
    return call


def _ring(signum: int, frame: Any) -> None:
    raise Overtime


Record = dict[str, Any]
Parts = tuple[Callable[..., Any], list[Any], dict[str, Any]]
"""A function, its arguments, and its keyword arguments."""
Perform = Callable[[Call, dict[str, Any]], Record | None]
"""Makes a call, and says what is to be kept of it."""


def attempt(call: Call, namespace: dict[str, Any]) -> Record | None:
    """What is wrong with a call, or with a use of what it returned; None where all return or are refused."""
    source = random.Random(f"{call.text}/uses")
    try:
        parts = call.made(namespace)
    except Exception as error:
        return finding(call, error, "arguments: ")
    wrong, result = made(call, parts, lambda: call.made(namespace))
    text = call.text
    for following in uses(source):
        if wrong or result is None:
            break
        try:
            step = following(result)
            if step is None:
                break
            parts = step.made({**namespace, IT: result})
        except Exception as error:
            if is_refusal(error, call.text):
                break
            return finding(dataclasses.replace(call, target=text, args=None), error, "arguments: ")
        text = re.sub(rf"\b{IT}\b", lambda found, whole=text: whole, step.text)  # type: ignore[misc]
        again = functools.partial(step.made, {**namespace, IT: result})
        wrong, result = made(Call(step.name, text), parts, again, step.text)
    return wrong


def made(call: Call, parts: Parts, again: Callable[[], Parts], use: str = "") -> tuple[Record | None, Any]:
    """Make one call. Return what is wrong with it, and its result.

    A call that exceeds SECONDS is made again, with new arguments from `again`, because an iterator is used up.
    """
    for _ in range(ATTEMPTS - 1):
        wrong, result = timed(call, parts, use)
        if wrong is None or not wrong["type"].endswith(Overtime.__name__):
            return wrong, result
        del result
        parts = again()
    return timed(call, parts, use)


def timed(call: Call, parts: Parts, use: str) -> tuple[Record | None, Any]:
    """Make one call once. `use` is its text if it uses a result."""
    function, args, kwargs = parts
    begin = time.process_time()
    result = None
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = function(*args, **kwargs)
                touch(result, isinstance(function, type))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except Overtime as error:
        return finding(call, error, ""), None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        if time.process_time() - begin > SECONDS:
            return finding(call, Overtime(), f"{time.process_time() - begin:.1f} s, then {type(error).__name__}"), None
        if not is_refusal(error, use or call.text) and not (use and is_of_a_use(error)):
            return finding(call, error, ""), None
        return None, None
    if time.process_time() - begin > SECONDS:
        return finding(call, Overtime(), f"{time.process_time() - begin:.1f} s"), None
    return None, result


def is_of_a_use(error: BaseException) -> bool:
    """Python refuses a use before the package has a say: a copy of a deep list, a pickle of a function, a format of a
    plain text, the hash of a record that holds a list."""
    if isinstance(error, TypeError) and str(error).startswith(UNHASHABLE):
        return True
    return not frames_of(error) and isinstance(error, pickle.PicklingError | ValueError | RecursionError | MemoryError)


def finding(call: Call, error: BaseException, prefix: str) -> Record:
    """One thing that is wrong, as plain data."""
    try:
        said = str(error)
    except Exception as second:
        said = f"(no text: {type(second).__name__})"
    return {
        "name": call.name,
        "type": prefix + type(error).__name__,
        "said": " ".join(said.split())[:160],
        "place": place_of(error),
        "text": call.text,
    }


def restrict(folder: str) -> None:
    """This process from now on: no terminal, a folder of its own, bounded memory and files."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    os.chdir(folder)
    with open("/proc/self/statm", encoding="ascii") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _ring)
    warnings.simplefilter("ignore")


def work(
    tasks: list[Task],
    begin: int,
    seed: object,
    registry: dict[str, Entry],
    clock: mmap,
    results: str,
    perform: Perform,
) -> None:
    """The child's life: every task from `begin` on; `clock` holds the number of the task that is being done."""
    with tempfile.TemporaryDirectory() as folder, open(results, "a", encoding="utf-8") as out:
        restrict(folder)
        namespace = names()
        for at in range(begin, len(tasks)):
            clock[:8] = struct.pack("q", at)
            task = tasks[at]
            arena.reset()
            found = perform(call_of(registry[task.name], seed, task.number), namespace)
            if found:
                out.write(json.dumps({"number": task.number, **found}) + "\n")
                out.flush()
        clock[:8] = struct.pack("q", len(tasks))
        os.chdir(os.sep)


def carried_out(
    tasks: list[Task], seed: object, registry: dict[str, Entry], perform: Perform = attempt
) -> Iterator[Record]:
    """The records of all tasks; a process that hangs or dies is one too, and the next task goes on in a fresh one."""
    clock = mmap(-1, 8)
    begin = 0
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "findings")
        while begin < len(tasks):
            gc.collect()
            gc.freeze()
            clock[:8] = struct.pack("q", ~begin)  # negative: not begun
            child = os.fork()
            if child == 0:
                try:
                    work(tasks, begin, seed, registry, clock, results, perform)
                finally:
                    os._exit(0)
            ended = _watched(child, clock)
            at = struct.unpack("q", clock[:8])[0]
            at = max(at, ~at)
            if at >= len(tasks):
                break
            task = tasks[at]
            call = call_of(registry[task.name], seed, task.number)
            yield {"number": task.number, "name": call.name, "type": ended, "said": "", "place": "", "text": call.text}
            begin = at + 1
        if os.path.exists(results):
            with open(results, encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def _watched(child: int, clock: mmap) -> str:
    """Wait for a child; kill it where one call takes too long. Returns how it ended."""
    last, since = None, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return f"process died ({os.waitstatus_to_exitcode(status)})"
        at = struct.unpack("q", clock[:8])[0]
        if at != last:
            last, since = at, time.monotonic()
        elif time.monotonic() - since > (HARD_SECONDS if at >= 0 else STARTING_SECONDS):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"hangs (killed after {HARD_SECONDS:.0f} s)"
        time.sleep(0.02)
