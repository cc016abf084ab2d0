"""The playground in Chromium: its size, its first paint, the start of Python in it, and each answer to what is typed.

    CUTE_PY_NODE_MODULES=FOLDER python -m benchmarks.page [result.json] [--boots N] [--rounds N]

FOLDER has npm's packages pyodide and playwright-core. An answer is timed from the last key to the frame that shows it,
the pause of typing included; of a large answer that frame has the verdict, the sections up to the first 200 cells and
these cells, and the rest follows. Times are
wall clock: the least of several rounds for a row of inputs, and the least of several starts for a start, so that other
work of the machine counts as little as it can. The start of Python is compared with that
of Pyodide alone, which takes
turns with it, each in a browser of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.beside import MILLISECONDS, Row, ratio, report, time_of
from cute_py.cli.serve_command import make_server
from cute_py.page.document import explorer_page, web_file
from cute_py.page.interpreter import find_interpreter, interpreter_version

HERE = Path(__file__).parent
INPUTS = HERE.parent / "tests" / "page" / "inputs.json"
SCRIPTS = ("page.js", "worker.js", "compile.mjs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PAINT, BOOT, FIRST, NEXT, SERVED = 500.0, 1.1, 2000.0, 150.0, 100.0
"""Bounds: milliseconds, and of the start the ratio."""


def browser_run(folder: Path, page: Path, modules: Path, boots: int, rounds: int) -> dict[str, Any]:
    """The figures that benchmarks/page.mjs measured."""
    node = shutil.which("node")
    browser = os.environ.get("CUTE_PY_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if node is None or browser is None:
        raise SystemExit("needs node and Chromium on PATH")
    server = make_server(port=0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    settings = {
        "playwright": str(modules / "playwright-core"),
        "chromium": browser,
        "file": str(page),
        "served": server.url,
        "pyodide": str((modules / "pyodide").resolve()),
        "inputs": json.loads(INPUTS.read_text()),
        "boots": boots,
        "rounds": rounds,
    }
    configuration = folder / "configuration.json"
    configuration.write_text(json.dumps(settings))
    try:
        command = [node, str(HERE / "page.mjs"), str(configuration)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    finally:
        server.shutdown()
        server.server_close()
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def sizes(page: str) -> list[Row]:
    """Bytes on disk and sent, and lines of JavaScript."""
    whole, alone = page.encode(), explorer_page().encode()
    lines = sum(len(web_file(name).splitlines()) for name in SCRIPTS)
    rows = (
        ("the file with the interpreter", len(whole) / 1e6, 11.0, "MB"),
        ("the same, compressed by gzip as a server does", len(gzip.compress(whole, 9)) / 1e6, 9.0, "MB"),
        ("the file without the interpreter", len(alone) / 1e3, 200.0, "kB"),
        ("JavaScript", float(lines), 900.0, "lines"),
    )
    return [Row(what, figure, {}, figure, bound, unit) for what, figure, bound, unit in rows]


def starts(found: dict[str, Any]) -> list[Row]:
    """The first paint, the start of Python, and the first answers."""
    boots = found["boots"]
    least = {name: min(boot[name] for boot in boots) for name in boots[0]}
    rows = [
        time_of("first paint of the file", least["paint"] / 1e3, PAINT, MILLISECONDS),
        ratio("start of the interpreter", least["since"] / 1e3, {"Pyodide": min(found["bare"]) / 1e3}, BOOT, 1e3),
        time_of("loading the library", least["library"] / 1e3, None, MILLISECONDS),
        time_of("first typed answer", least["first"] / 1e3, FIRST, MILLISECONDS),
    ]
    for tab, (shown, loaded) in found["static"]["opened"].items():
        rows.append(time_of(f"the tab {tab} opened for the first time: shown", shown / 1e3, FIRST, MILLISECONDS))
        rows.append(time_of(f"the tab {tab}: its modules loaded, and answered", loaded / 1e3, FIRST, MILLISECONDS))
    return rows


def answered(found: dict[str, Any], mode: str, bound: float) -> list[Row]:
    """For each tab the median and the slowest of its inputs."""
    taken: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for (tab, values), times in zip(json.loads(INPUTS.read_text()), found[mode]["rows"], strict=True):
        words = " ".join(values.values()) or "as it opens"
        taken[tab].append((min(seen for seen, _ in times), min(whole for _, whole in times), words))
    rows = []
    for tab, times in taken.items():
        middle, (worst, _, words) = statistics.median(seen for seen, _, _ in times), max(times)
        whole = max(whole for _, whole, _ in times)
        shown = words.replace("|", "/")[:60]
        rows.append(time_of(f"{mode}, {tab}: median of {len(times)} inputs", middle / 1e3, bound, MILLISECONDS))
        rows.append(time_of(f"{mode}, {tab}: slowest, `{shown}`", worst / 1e3, bound, MILLISECONDS))
        rows.append(time_of(f"{mode}, {tab}: slowest until the last cell is drawn", whole / 1e3, None, MILLISECONDS))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", nargs="?")
    parser.add_argument("--boots", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--raw", help="keep what the browser measured in this file")
    options = parser.parse_args()
    modules = Path(os.environ.get("CUTE_PY_NODE_MODULES", Path.cwd() / "node_modules"))
    interpreter = find_interpreter(modules / "pyodide")
    if interpreter is None:
        raise SystemExit("needs the npm package pyodide; CUTE_PY_NODE_MODULES names its folder")
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "page.html"
        page.write_text(explorer_page(interpreter=interpreter), encoding="utf-8")
        found = browser_run(Path(place), page, modules, options.boots, options.rounds)
        rows = sizes(page.read_text(encoding="utf-8"))
    if options.raw:
        Path(options.raw).write_text(json.dumps(found))
    rows += [*starts(found), *answered(found, "static", NEXT), *answered(found, "served", SERVED)]
    notes = (
        f"Pyodide {interpreter_version(interpreter)}; {options.boots} starts, {options.rounds} rounds of the inputs."
    )
    command = f"python -m benchmarks.page --boots {options.boots} --rounds {options.rounds}"
    return report("The playground", command, rows, options.result, notes)


if __name__ == "__main__":
    sys.exit(main())
