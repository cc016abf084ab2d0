"""Read the records that the injected library writes in a running program: calls that encode tensor maps, and kernels
that use the maps.

Each process has one file of JSON lines, <pid>.jsonl. A line has a `kind`: "start" (the driver loaded the library),
"encode" (a call with arguments not seen before in this process), "again" (the same call again, identified by its
`key`), "launch" (a kernel that takes a map for the first time), "refused" (CUPTI could not be used). Truncated lines,
such as after a crash, are counted and skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cute_py.argument_checks import expect_path, record
from cute_py.errors import CuteError, FileFormatError, system_reason
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.fields import MAP_BYTES, MAX_RANK
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled

KINDS: Final[Mapping[str, type[TensorMap]]] = {
    "cuTensorMapEncodeTiled": TensorMapTiled,
    "cuTensorMapEncodeIm2col": TensorMapIm2col,
    "cuTensorMapEncodeIm2colWide": TensorMapIm2colWide,
}
"""The driver's function -> the request with its arguments."""

MAX_LINE: Final = 1 << 14
MAX_FILE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Taken:
    """A kernel that takes a tensor map as a parameter. parameter: the number of the parameter, or -1 if the parameters
    were passed as one buffer; offset: the offset of the map in bytes from the first parameter; shared_static,
    shared_dynamic: bytes of shared memory of the launch."""

    kernel: str
    parameter: int
    offset: int
    shared_static: int
    shared_dynamic: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory per block."""
        return self.shared_static + self.shared_dynamic


@record
class WatchedMap:
    """One distinct call that encodes a tensor map.

    call: the driver's function. request: the arguments of the call; None if they do not form a request (a null pointer,
    or a rank that no map has). result: the CUresult, 0 for success. data: the 128 bytes, or b'' if the driver refused
    the call. module: the file that contains the calling code. count: number of calls; nanoseconds: total time of these
    calls. kernels: the kernels that take the map.

    >>> WatchedMap("cuTensorMapEncodeTiled", None, 1, b"").count
    1
    """

    call: str
    request: TensorMap | None
    result: int
    data: bytes = field(repr=False)
    module: str = ""
    count: int = 1
    nanoseconds: int = 0
    kernels: tuple[Taken, ...] = ()


@record
class Recording:
    """The record of a program. maps: the distinct calls. processes: the number of processes that initialised CUDA.
    refusals: reasons why some processes could not be recorded. damaged: number of lines that could not be read.

    >>> Recording((), 0).processes
    0
    """

    maps: tuple[WatchedMap, ...]
    processes: int
    refusals: tuple[str, ...] = ()
    damaged: int = 0


class _Growing:
    """A call whose lines are still being read."""

    def __init__(self, line: Mapping[str, Any]) -> None:
        self.line = line
        self.count = 0
        self.nanoseconds = 0
        self.kernels: dict[tuple[str, int, int, int], Taken] = {}


def _request(line: Mapping[str, Any], data: bytes) -> TensorMap | None:
    kind = KINDS.get(str(line.get("call")))
    try:
        if kind is None:
            return decode(data) if data else None
        if not 1 <= int(line.get("rank", 0)) <= MAX_RANK:
            return None
        values = {name: line[name] for name in kind.FIELDS if name in line}
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = tuple(value)
        made: TensorMap = kind(**values)
        return made
    except (CuteError, TypeError, ValueError):
        return None


def _bytes(line: Mapping[str, Any]) -> bytes:
    try:
        data = bytes.fromhex(str(line.get("map", "")))
    except ValueError:
        return b""
    return data if len(data) == MAP_BYTES else b""


def _whole(line: Mapping[str, Any], *names: str) -> bool:
    """Whether these entries of a line are integers."""
    return all(isinstance(line.get(name), int) and not isinstance(line.get(name), bool) for name in names)


class Recorder:
    """Collects a recording from the lines of the record files, as they arrive."""

    def __init__(self) -> None:
        self.processes = 0
        self.damaged = 0
        self.refusals: dict[str, None] = {}
        self._calls: dict[tuple[str, str], _Growing] = {}

    def read(self, process: str, text: str) -> list[WatchedMap]:
        """Read one line of a process. Return a list with the map if this line is the first record of it, otherwise an
        empty list."""
        try:
            parsed = json.loads(text) if len(text) <= MAX_LINE else None
        except (ValueError, RecursionError):
            parsed = None
        line: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        kind = line.get("kind")
        if kind == "start":
            self.processes += 1
        elif kind == "refused":
            self.processes += 1
            said = f"{line.get('what')}: {line.get('text')}" if line.get("text") else str(line.get("what"))
            self.refusals[said] = None
        elif kind in ("encode", "again") and _whole(line, "ns") and isinstance(line.get("key"), str):
            return self._called(kind, (process, line["key"]), line)
        elif kind == "launch" and _whole(line, "parameter", "offset", "shared_static", "shared_dynamic"):
            self._launched(process, line)
        else:
            self.damaged += 1
        return []

    def _called(self, kind: str, key: tuple[str, str], line: Mapping[str, Any]) -> list[WatchedMap]:
        known = key in self._calls
        if kind == "again" and not known:
            self.damaged += 1
            return []
        if kind == "encode" and not known:
            if not _whole(line, "result"):
                self.damaged += 1
                return []
            self._calls[key] = _Growing(line)
        growing = self._calls[key]
        growing.count += 1
        growing.nanoseconds += int(line["ns"])
        return [] if known else [self._map(growing)]

    def _launched(self, process: str, line: Mapping[str, Any]) -> None:
        taken = Taken(
            str(line.get("kernel", "")),
            line["parameter"],
            line["offset"],
            line["shared_static"],
            line["shared_dynamic"],
        )
        for (owner, _), growing in self._calls.items():
            if owner == process and growing.line.get("map") == line.get("map") and growing.line.get("result") == 0:
                growing.kernels.setdefault((taken.kernel, taken.parameter, taken.offset, taken.shared), taken)

    def _map(self, growing: _Growing) -> WatchedMap:
        line, data = growing.line, _bytes(growing.line)
        kernels = tuple(growing.kernels.values())
        request, module = _request(line, data), str(line.get("module", ""))
        call, result = str(line.get("call", "")), int(line["result"])
        return WatchedMap(call, request, result, data, module, growing.count, growing.nanoseconds, kernels)

    def recording(self) -> Recording:
        """Return the recording of all lines so far. Equal calls of several processes are merged into one."""
        merged: dict[tuple[object, ...], WatchedMap] = {}
        for growing in self._calls.values():
            one = self._map(growing)
            key = (one.call, repr(one.request), one.result, one.data, one.module)
            if key in merged:
                before = merged[key]
                kernels = tuple(dict.fromkeys((*before.kernels, *one.kernels)))
                count, nanoseconds = before.count + one.count, before.nanoseconds + one.nanoseconds
                one = WatchedMap(*key_of(one), count, nanoseconds, kernels)
            merged[key] = one
        return Recording(tuple(merged.values()), self.processes, tuple(self.refusals), self.damaged)


def key_of(one: WatchedMap) -> tuple[str, TensorMap | None, int, bytes, str]:
    """The key for merging equal calls."""
    return one.call, one.request, one.result, one.data, one.module


def record_files(folder: Path) -> list[Path]:
    """The files of a recording, in the order of the process ids."""
    return sorted(folder.glob("*.jsonl"), key=lambda path: (len(path.name), path.name))


def _lines(path: Path) -> Iterable[str]:
    try:
        if path.stat().st_size > MAX_FILE:
            raise FileFormatError(f"{path}: larger than {MAX_FILE} bytes")
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        raise FileFormatError(f"{path}: can't be read: {system_reason(error)}") from None


def read_records(folder: str | Path) -> Recording:
    """The recording in a folder of <pid>.jsonl files.

    Raises:
        InvalidTypeError: the argument is not a path. FileFormatError: the folder does not exist, or a file in it can't
            be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(read_records(folder).maps)
    ()
    """
    place = expect_path(folder, "the folder of a recording")
    try:
        if not place.is_dir():
            raise FileFormatError(f"{place}: no such folder")
    except (OSError, ValueError) as error:  # a name that is too long, or that no folder can have
        raise FileFormatError(f"{str(place)[:80]!r}: {system_reason(error)}") from None
    recorder = Recorder()
    for path in record_files(place):
        for line in _lines(path):
            recorder.read(path.stem, line)
    return recorder.recording()
