"""Run a program with the library that watches it, and read the records."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from cute_py.argument_checks import expect
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, given, shortened, system_reason
from cute_py.watch.injector import Injector, build_injector
from cute_py.watch.records import Recorder, Recording, WatchedMap, record_files

POLL_SECONDS: Final = 0.2

HOLDERS: Final = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")


def environment(injector: Injector, records: Path, base: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of the watched program.

    Raises:
        DeviceError: a profiler already uses the driver's injection hook.
    """
    holder = base.get(HOLDERS[0])
    if holder:
        raise DeviceError(
            "a profiler already uses the driver's injection hook: CUDA_INJECTION64_PATH is set",
            {"to": shortened(holder)},
            "run the program without the profiler (nsys, ncu), or unset the variable",
        )
    return {
        **base,
        "CUDA_INJECTION64_PATH": str(injector.library),
        "CUTE_PY_WATCH_RECORDS": str(records),
        "CUTE_PY_WATCH_CUPTI": str(injector.cupti),
    }


class _Tail:
    """Reads the record files while they grow; a line is read once it is complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorder = Recorder()
        self._at: dict[Path, int] = {}

    def read(self, last: bool = False) -> list[WatchedMap]:
        new: list[WatchedMap] = []
        for path in record_files(self.folder):
            with open(path, "rb") as file:
                file.seek(self._at.get(path, 0))
                data = file.read()
            end = len(data) if last else data.rfind(b"\n") + 1
            self._at[path] = self._at.get(path, 0) + end
            for line in data[:end].decode("utf-8", "replace").splitlines():
                new += self.recorder.read(path.stem, line)
        return new


def watch(
    command: Sequence[str], live: Callable[[WatchedMap], None] | None = None, injector: Injector | None = None
) -> tuple[int, Recording]:
    """Run a program and record the tensor maps that it and its child processes encode.

    The program uses this process's standard input, output and error, and runs unchanged.

    Args:
        command: the program and its arguments. live: a function that is called with each distinct map when it is first
            encoded.
        injector: the library; None: `build_injector()`.
    Returns:
        (the program's exit status, or 128 + n if signal n ended it; the recording).
    Raises:
        InvalidTypeError, InvalidValueError: `command` is not a command. MissingPackageError, DeviceError: this machine
            can't watch programs.
    """
    if isinstance(command, str) or not isinstance(command, Sequence):
        raise InvalidTypeError(f"command must be a list of strings, got {type(command).__name__} {given(command)}")
    parts = [expect(part, str, "a part of the command") for part in command]
    if not parts or any("\0" in part for part in parts):
        raise InvalidValueError(f"command = {given(command)}; must be a program and its arguments")
    made = build_injector() if injector is None else expect(injector, Injector, "injector")
    with tempfile.TemporaryDirectory(prefix="cute-py-watch-") as folder:
        tail = _Tail(Path(folder))
        status = _run(parts, environment(made, tail.folder, os.environ), tail, live)
        for one in tail.read(last=True):
            if live is not None:
                live(one)
        return status, tail.recorder.recording()


def _run(
    command: list[str], variables: Mapping[str, str], tail: _Tail, live: Callable[[WatchedMap], None] | None
) -> int:
    try:
        process = subprocess.Popen(command, env=dict(variables))
    except UnicodeError:
        raise InvalidValueError(f"command = {given(command)}; must be strings that the system can encode") from None
    except FileNotFoundError:
        raise DeviceError(f"{shortened(command[0])}: no such program").of_rule("not found") from None
    except OSError as error:
        raise DeviceError(f"{shortened(command[0])}: can't be run: {system_reason(error)}").of_rule("not run") from None
    before = signal.getsignal(signal.SIGINT)
    in_main = _is_main_thread()
    if in_main:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program gets it too, and decides
    try:
        if live is None:
            code = process.wait()
        else:
            while (polled := process.poll()) is None:
                for one in tail.read():
                    live(one)
                time.sleep(POLL_SECONDS)
            code = polled
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
        if process.poll() is None:
            process.kill()
            process.wait()
    return 128 - code if code < 0 else code


def _is_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()
