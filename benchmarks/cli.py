"""How long commands take, beside numpy programs: processor time of whole processes, the least of several, in turns.

    python -m benchmarks.cli [result.json]

Bounds: `cute-py --help` at most 1.3 x `python -c "import numpy"`; `cute-py copy` of 4096 x 4096 bfloat16 at most 1.8 x
a numpy program that reads the file, copies the array and compares. Exits with 1 if a bound does not hold. Byte code is
written before the first turn, as an installation does.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

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
            "--help": (["-m", "cute_py", "--help"], ["-c", "import numpy"], 1.3),
            "copy 4096 x 4096 bf16": (["-m", "cute_py", *copy], ["-c", BY_HAND, path], 1.8),
            "import cute_py": (["-c", "import cute_py"], ["-c", "import numpy"], None),
        }
        least = {name: [float("inf")] * 2 for name in pairs}
        for ours, _, _ in pairs.values():
            seconds(ours)
        for _ in range(TURNS):
            for name, (ours, theirs, _) in pairs.items():
                least[name] = [min(t, seconds(c)) for t, c in zip(least[name], (ours, theirs), strict=True)]
    rows: list[dict[str, Any]] = []
    for name, (ours_s, theirs_s) in least.items():
        ratio, bound = round(ours_s / theirs_s, 2), pairs[name][2]
        rows.append({"what": name, "ours_s": ours_s, "numpy_s": theirs_s, "ratio": ratio, "bound": bound})
        print(
            f"{name:<24} {ours_s * 1e3:7.0f} ms  numpy {theirs_s * 1e3:7.0f} ms  {ratio:5.2f} x  (bound {bound or '-'})"
        )
    if len(sys.argv) > 1:
        report = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared with other work",
            "python": platform.python_version(),
            "numpy": np.__version__,
            "rows": rows,
        }
        Path(sys.argv[1]).write_text(json.dumps(report, indent=1) + "\n")
    return int(any(row["bound"] is not None and row["ratio"] > row["bound"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
