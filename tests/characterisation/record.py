"""The record: one compressed file of hashes, and one readable file of the public surface.

calls.xz      line 1: what it was recorded with; then a line a name: name, then kind:hash of each of its calls
              (kind: an index into the kinds of line 2), and `* label` hash for each kernel's text
surface.txt   names, signatures, enumerators, help
"""

from __future__ import annotations

import json
import lzma
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tests.fuzz.worker import Record, Task

DATA = Path(__file__).parent / "data"
CALLS = DATA / "calls.xz"
SURFACE = DATA / "surface.txt"
REWORDED = Path(__file__).parent / "reworded.txt"


def environment() -> dict[str, str]:
    """What outcomes depend on besides this package."""
    packages = ("numpy", "sympy", "ml_dtypes", "hypothesis", "rich", "safetensors", "shtab")
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "system": platform.system()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


@dataclass(frozen=True)
class Recorded:
    """What was recorded."""

    environment: dict[str, str]
    calls: dict[Task, tuple[str, str]]
    """Task -> (kind, hash)."""
    kernels: dict[str, str]
    """Label -> hash."""


def save(calls: dict[Task, Record], kernels: dict[str, str], path: Path = CALLS) -> None:
    """Write the record."""
    kinds = sorted({record["kind"] for record in calls.values()})
    rows: dict[str, list[tuple[int, str]]] = {}
    for task, record in calls.items():
        rows.setdefault(task.name, []).append((task.number, f"{kinds.index(record['kind'])}:{record['hash']}"))
    lines = [json.dumps(environment()), json.dumps(kinds)]
    for name in sorted(rows):
        numbers = sorted(rows[name])
        if [number for number, _ in numbers] != list(range(len(numbers))):
            raise ValueError(f"the calls of {name} are not 0, 1, 2, ...")
        lines.append("\t".join([name, *(text for _, text in numbers)]))
    lines += [f"* {label}\t{digest}" for label, digest in kernels.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9))


def load(path: Path = CALLS) -> Recorded:
    """Read it."""
    lines = lzma.decompress(path.read_bytes()).decode().split("\n")
    kinds = json.loads(lines[1])
    calls: dict[Task, tuple[str, str]] = {}
    kernels: dict[str, str] = {}
    for line in lines[2:]:
        name, *cells = line.split("\t")
        if name.startswith("* "):
            kernels[name[2:]] = cells[0]
            continue
        for number, cell in enumerate(cells):
            index, digest = cell.split(":")
            calls[Task(name, number)] = (kinds[int(index)], digest)
    return Recorded(json.loads(lines[0]), calls, kernels)
