"""Write a file in one or several runs, and rename it to its final name only when it is complete.

    .NAME.part       the file: its header, then each tensor at its offset
    .NAME.journal    line 1: the job; then a line for each tensor whose bytes are on the disk

Bytes reach the disk before their line does. After an interruption, even by SIGKILL or a loss of power, the next run
reads the journal, verifies its checksums, and continues. Leftovers of another job are dropped.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cute_py.errors import FileFormatError

JOURNAL_BYTES: Final = 64 << 20
"""The journal is updated after this many bytes are written to tensors."""

CHUNK: Final = 1 << 22

Records: TypeAlias = dict[str, dict[str, Any]]
"""Name of a piece of work -> its record: the checksums of its tensors, and other notes."""


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class PartFile:
    """A file that is being written, with the journal of the work already done.

    Args:
        path: its final name. job: the description of the job; leftovers of another job are dropped.
        header: the first bytes of the file; `complete` writes a header of the same size. places: the (offset, bytes) of
            each tensor in the file.
    """

    def __init__(self, path: Path, job: str, header: bytes, places: Mapping[str, tuple[int, int]]) -> None:
        self.path, self.job, self.header, self.places = path, job, header, places
        self.part = path.with_name(f".{path.name}.part")
        self.journal = path.with_name(f".{path.name}.journal")
        self.done: Records = {}
        self.resumed = 0
        self._waiting: list[dict[str, Any]] = []
        self._unsynced = 0
        self._at: dict[str, int] = {}
        self._sums: dict[str, Any] = {}

    def __enter__(self) -> PartFile:
        self._log = self.journal.open("a+b")
        try:
            fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._log.close()
            raise FileFormatError(f"{self.path}: another conversion is writing to it") from None
        records = self._records()
        size = len(self.header) + sum(count for _, count in self.places.values())
        fresh = not records or not self.part.exists() or self.part.stat().st_size != size
        self._file: IO[bytes] = self.part.open("w+b" if fresh else "r+b")
        if fresh:
            self._file.write(self.header)
            self._file.truncate(size)
            self._log.truncate(0)
            self._append({"job": self.job})
        else:
            self.done = {record["work"]: record for record in records if self._intact(record)}
            self.resumed = len(self.done)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._log.close()

    def _records(self) -> list[dict[str, Any]]:
        """Return the records of this job's journal, and truncate the journal at the first incomplete line."""
        self._log.seek(0)
        found: list[dict[str, Any]] = []
        whole = 0
        for line in self._log.read().splitlines(keepends=True):
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                record = None
            if record is None or (not whole and record != {"job": self.job}):
                break
            found.append(record)
            whole += len(line)
        self._log.truncate(whole)
        return found[1:] if found else []

    def _intact(self, record: Mapping[str, Any]) -> bool:
        """Whether the bytes of a record's tensors match its checksums."""
        for name, wanted in record["sums"].items():
            if name not in self.places:
                return False
            at, count = self.places[name]
            self._file.seek(at)
            found = hashlib.sha256()
            while count:
                chunk = self._file.read(min(CHUNK, count))
                if not chunk:
                    return False
                found.update(chunk)
                count -= len(chunk)
            if found.hexdigest() != wanted:
                return False
        return True

    def _append(self, record: Mapping[str, Any]) -> None:
        self._log.write(json.dumps(record).encode() + b"\n")
        self._log.flush()
        os.fsync(self._log.fileno())

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Write the next elements of a tensor."""
        begin, count = self.places[name]
        at = self._at.setdefault(name, 0)
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        if at + len(data) > count:
            raise FileFormatError(f"{name} has {at + len(data)} bytes; must have at most {count}")
        self._file.seek(begin + at)
        self._file.write(data)
        self._sums.setdefault(name, hashlib.sha256()).update(data)
        self._at[name] = at + len(data)
        self._unsynced += len(data)

    def finish(self, work: str, **notes: Any) -> None:
        """Record that a piece of work is done, after a check that all bytes of its tensors were written."""
        for name, at in self._at.items():
            if at != self.places[name][1]:
                raise FileFormatError(f"{name} has {at} bytes; must have {self.places[name][1]}")
        sums = {name: found.hexdigest() for name, found in self._sums.items()}
        self.done[work] = {"work": work, "sums": sums, **notes}
        self._waiting.append(self.done[work])
        self._at, self._sums = {}, {}
        if self._unsynced >= JOURNAL_BYTES:
            self.sync()

    def sync(self) -> None:
        """Flush completed work to the disk, and then add its records to the journal."""
        self._file.flush()
        os.fsync(self._file.fileno())
        for record in self._waiting:
            self._append(record)
        self._waiting, self._unsynced = [], 0

    def complete(self, header: bytes) -> None:
        """Write the final header, and rename the file to its final name."""
        if len(header) != len(self.header):
            raise FileFormatError(f"{self.path}: the header has {len(header)} bytes; must have {len(self.header)}")
        self.sync()
        self._file.seek(0)
        self._file.write(header)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._append({"work": "", "sums": {}, "complete": True})
        os.replace(self.part, self.path)
        sync_folder(self.path.parent)


def completed_records(path: Path, job: str) -> Records | None:
    """Return the records of a file that an earlier run of the same job completed; None if there is no such file."""
    journal = path.with_name(f".{path.name}.journal")
    if not path.exists() or not journal.exists() or path.with_name(f".{path.name}.part").exists():
        return None
    try:
        lines = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    except ValueError:
        return None
    if not lines or lines[0] != {"job": job} or not lines[-1].get("complete"):
        return None
    return {record["work"]: record for record in lines[1:-1]}
