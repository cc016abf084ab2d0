"""python -m tests.fuzz: seeded calls of the public names, half of them with one argument mutated, a quarter with
two; and uses of what they return, whose results are used in turn.

A finding is an exception outside `CuteError`, a call or use above 2 s of CPU time, or one above 2 GB.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import random
import re
import sys
import time
from typing import Any

from tests.calls.call import Entry
from tests.calls.registry import registry
from tests.fuzz.findings import HEADER, deduplicated, report
from tests.fuzz.worker import Task, call_of, carried_out


def drawn(entries: dict[str, Entry], calls: int, seed: object) -> list[Task]:
    """As many tasks, of names by their weights; the numbers of a name count up from 0."""
    source = random.Random(f"{seed}/names")
    chosen = source.choices(list(entries), [entry.weight for entry in entries.values()], k=calls)
    numbers: dict[str, int] = {}
    tasks = []
    for name in chosen:
        numbers[name] = numbers.get(name, -1) + 1
        tasks.append(Task(name, numbers[name]))
    return tasks


def findings_of(tasks: list[Task], seed: object) -> list[dict[str, Any]]:
    return list(carried_out(tasks, seed, registry()))


def fuzzed(entries: dict[str, Entry], calls: int, seed: object, jobs: int) -> list[dict[str, Any]]:
    """All findings. Each job's process forks the processes that make the calls."""
    tasks = drawn(entries, calls, seed)
    shares = [tasks[i::jobs] for i in range(jobs)]
    if jobs == 1:
        return findings_of(tasks, seed)
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        return [finding for found in pool.map(findings_of, shares, [seed] * jobs) for finding in found]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--names", default="", help="a regular expression that the names must match")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="a file for the report, besides standard output")
    parser.add_argument("--json", help="a file for the findings as JSON")
    parser.add_argument("--show", type=int, metavar="N", help="print the first N calls of the names, make none")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    entries = {name: e for name, e in registry().items() if re.search(options.names, name)}
    if options.show:
        for task in drawn(entries, options.show, options.seed):
            print(call_of(entries[task.name], options.seed, task.number).text)
        return 0
    begin = time.monotonic()
    found = fuzzed(entries, options.calls, options.seed, options.jobs)
    text = report(found)
    said = f"{options.calls} calls of {len(entries)} names, seed {options.seed}, {time.monotonic() - begin:.0f} s: "
    said += f"{len(found)} findings, {len(deduplicated(found))} different\n{HEADER}\n\n"
    sys.stdout.write(said + text)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as out:
            out.write(said + text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(found, out)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
