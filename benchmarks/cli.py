"""How long commands take, beside numpy programs: processor time of whole processes, the least of several, in turns.

    python -m benchmarks.cli [result.json]

Byte code is written before the first turn, as an installation does.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.beside import MILLISECONDS, ratio, report

TURNS = 9
BY_HAND = """
import sys, numpy
a = numpy.load(sys.argv[1]); b = numpy.zeros_like(a); numpy.copyto(b, a); assert numpy.array_equal(a, b)
"""


def seconds(arguments: list[str]) -> float:
    """Processor time of one process, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "a.npy")
        np.save(path, np.random.default_rng(0).integers(0, 1 << 16, (4096, 4096), np.uint16))
        copy = ["copy", path, "--tile", "128x64", "--swizzle", "128B", "--dtype", "bf16"]
        pairs: dict[str, tuple[list[str], list[str], float | None]] = {
            "cute-py --help": (["-m", "cute_py", "--help"], ["-c", "import numpy"], 1.3),
            "cute-py copy, 4096 x 4096 bf16": (["-m", "cute_py", *copy], ["-c", BY_HAND, path], 1.8),
            "import cute_py": (["-c", "import cute_py"], ["-c", "import numpy"], None),
        }
        least = {name: [float("inf")] * 2 for name in pairs}
        for ours, _, _ in pairs.values():
            seconds(ours)
        for _ in range(TURNS):
            for name, (ours, theirs, _) in pairs.items():
                least[name] = [min(t, seconds(c)) for t, c in zip(least[name], (ours, theirs), strict=True)]
    rows = [
        ratio(name, ours_s, {"numpy": numpy_s}, pairs[name][2], MILLISECONDS)
        for name, (ours_s, numpy_s) in least.items()
    ]
    result = sys.argv[1] if len(sys.argv) > 1 else None
    return report("Commands beside numpy programs", "python -m benchmarks.cli", rows, result)


if __name__ == "__main__":
    sys.exit(main())
