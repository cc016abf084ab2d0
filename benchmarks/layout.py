"""Speed of the layout algebra beside two Python peers, and of bulk evaluation beside hand-written numpy.

    python benchmarks/layout.py [result.json]

Peers: pycute (part of the package nvidia-cutlass; another, unrelated package bears the name pycute) and
tensor-layouts 0.3.2, in an environment made for the benchmark only:

    python -m venv bench && bench/bin/pip install nvidia-cutlass==4.2.0.0 tensor-layouts==0.3.2 -e .

Every operation runs once on each of `COUNT` distinct layouts, so that no cache answers; before it is timed, its result
is compared with the peers' as a function, element by element, and layouts on which a peer refuses or differs are left
out and counted. A time is the best of `REPEATS` runs, in microseconds of one operation. Bounds: our time / the faster
peer's at most 1.0; `offsets` at most 1.5 x hand-written numpy, and at least 1000 x (swizzled: 250 x) the faster
peer's element loop; `import cute_py` at most 1.6 x `import numpy`. Exits with 1 if a bound does not hold.
"""

from __future__ import annotations

import functools
import gc
import json
import math
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import cute_py as cute

COUNT, REPEATS = 300, 15
PEER_BOUND, NUMPY_BOUND, IMPORT_BOUND, LOOP_BOUND, SWIZZLED_LOOP_BOUND = 1.0, 1.5, 1.6, 1000.0, 250.0
Pair = tuple[Any, Any]
"""(shape, stride) as plain ints."""


def flat(tree: Any) -> list[int]:
    return [y for x in tree for y in flat(x)] if isinstance(tree, tuple) else [tree]


def filled(tree: Any, items: Any) -> Any:
    return tuple(filled(t, items) for t in tree) if isinstance(tree, tuple) else next(items)


def compact(profile: Any, sizes: list[int], order: list[int]) -> Pair:
    steps, end = [0] * len(sizes), 1
    for i in order:
        steps[i] = end
        end *= sizes[i]
    return filled(profile, iter(sizes)), filled(profile, iter(steps))


def distinct(profile: Any, pool: list[int], seed: int) -> list[Pair]:
    """`COUNT` different compact layouts of a profile, modes in every order."""
    generator = random.Random(seed)
    count = len(flat(profile))
    found: dict[Pair, None] = {}
    while len(found) < COUNT:
        order = generator.sample(range(count), count)
        found[compact(profile, [generator.choice(pool) for _ in range(count)], order)] = None
    return list(found)


CASES: dict[str, tuple[list[Pair], Pair, Any]] = {
    "rank 2": (distinct((0, 0), list(range(8, 65, 2)), 1), ((2, 2), (1, 4)), (3, 2)),
    "nested 3x3": (
        distinct(((0, 0, 0), (0, 0, 0), (0, 0, 0)), [2, 4, 8], 2),
        ((2, (2, 2)), (1, (2, 4))),
        ((1, 1, 0), (1, 0, 1), (0, 1, 1)),
    ),
}


def peers() -> dict[str, Any]:
    """The importable peers, by name."""
    found = {}
    try:
        import pycute

        if hasattr(pycute, "right_inverse"):
            found["pycute"] = pycute
    except ImportError:
        pass
    try:
        import tensor_layouts

        found["tensor-layouts"] = tensor_layouts
    except ImportError:
        pass
    return found


def function_of(library: Any, name: str) -> Callable[..., Any]:
    if name.startswith("evaluate"):
        return lambda layout, coord: layout(coord)
    if name == "composition" and not hasattr(library, "composition"):
        return library.compose  # type: ignore[no-any-return]
    return getattr(library, name)  # type: ignore[no-any-return]


def made(library: Any, pair: Pair, static: bool) -> Any:
    if library is cute and static:
        return cute.static(cute.Layout(*pair))
    return library.Layout(*pair)


def operands(library: Any, name: str, pair: Pair, tile: Pair, coord: Any, static: bool) -> tuple[Any, ...]:
    layout = made(library, pair, static)
    if name in ("composition", "logical_divide"):
        return layout, made(library, tile, static)
    if name == "complement":
        target = 4 * math.prod(flat(pair[0]))
        return layout, cute.Int(target) if library is cute and static else target
    if name == "evaluate a tuple":
        return layout, coord
    if name == "evaluate an int":
        return layout, 37
    return (layout,)


def values(result: Any) -> list[int]:
    """A result as a function: its first 4096 values."""
    if isinstance(result, int):
        return [int(result)]
    size = result.size() if callable(getattr(result, "size", None)) else None
    if size is None:
        size = math.prod(flat(result.shape))
    return [int(result(i)) for i in range(min(int(size), 4096))] + [int(size)]


def agreeing(
    name: str, pairs: list[Pair], tile: Pair, coord: Any, static: bool, libraries: dict[str, Any]
) -> list[Pair]:
    """The layouts on which all give the same function."""
    out = []
    for pair in pairs:
        seen = []
        for library in libraries.values():
            try:
                seen.append(values(function_of(library, name)(*operands(library, name, pair, tile, coord, static))))
            except (cute.errors.CuteError, AssertionError, ValueError, TypeError):
                seen.append([])
        if seen[0] and all(s == seen[0] for s in seen):
            out.append(pair)
    return out


def microseconds(turns: dict[str, tuple[Callable[..., Any], Callable[[], list[tuple[Any, ...]]]]]) -> dict[str, float]:
    """Of one call for each library: the best of several runs over fresh operands. The libraries take turns, so that
    a busy machine is busy for all of them."""
    best = dict.fromkeys(turns, math.inf)
    for _ in range(REPEATS):
        for label, (call, prepare) in turns.items():
            fresh = prepare()
            gc.disable()
            start = time.perf_counter()
            for args in fresh:
                call(*args)
            best[label] = min(best[label], (time.perf_counter() - start) / len(fresh))
            gc.enable()
    return {label: seconds * 1e6 for label, seconds in best.items()}


def algebra(libraries: dict[str, Any]) -> list[dict[str, Any]]:
    names = ["composition", "complement", "logical_divide", "right_inverse", "left_inverse", "coalesce"]
    rows = []
    for case, (pairs, tile, coord) in CASES.items():
        for static in (True, False):
            for name in [*names, "evaluate a tuple", "evaluate an int"]:
                same = agreeing(name, pairs, tile, coord, static, libraries)
                row: dict[str, Any] = {"operation": name, "layouts": case, "numbers": "Int" if static else "int"}
                row |= {"compared": len(pairs), "agreeing": len(same)}
                if len(same) >= 20:
                    times = microseconds({k: _turn(v, same, name, tile, coord, static) for k, v in libraries.items()})
                    row |= {label: round(t, 3) for label, t in times.items()}
                    others = [row[label] for label in libraries if label != "cute_py"]
                    row["ratio"] = round(row["cute_py"] / min(others), 3) if others else None
                rows.append(row)
    return rows


def _turn(library: Any, pairs: list[Pair], name: str, tile: Pair, coord: Any, static: bool) -> Any:
    def prepare() -> list[tuple[Any, ...]]:
        return [operands(library, name, pair, tile, coord, static) for pair in pairs]

    return function_of(library, name), prepare


def _best(call: Callable[[], Any], times: int = 25) -> float:
    """Microseconds of the fastest of several calls."""
    best = math.inf
    for _ in range(times):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def by_hand() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """1024 x 1024 layouts and the numpy that a person would write for each."""
    i = np.arange(1024)
    row = cute.Layout((1024, 1024), (1024, 1))
    nested = cute.Layout(((8, 128), (8, 128)), ((1, 64), (8, 8192)))

    def plain() -> Any:
        return i[:, None] * 1024 + i[None, :]

    def folded() -> Any:
        m = (np.arange(128)[:, None] * 64 + np.arange(8)[None, :]).reshape(-1)
        n = (np.arange(128)[:, None] * 8192 + np.arange(8)[None, :] * 8).reshape(-1)
        return m[:, None] + n[None, :]

    def swizzled() -> Any:
        x = plain()
        return x ^ ((x & (7 << 6)) >> 3)

    return {
        "row-major": (row, plain),
        "nested": (nested, folded),
        "swizzled": (cute.composition(cute.Swizzle(3, 3, 3), row), swizzled),
    }


def bulk(libraries: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name, (layout, hand) in by_hand().items():
        whole = functools.partial(cute.offsets, layout)
        if not np.array_equal(cute.offsets(layout), hand()):
            raise SystemExit(f"offsets of {layout} are not what the hand-written numpy gives")
        row: dict[str, Any] = {
            "layout": f"{name} 1024x1024",
            "offsets_us": round(_best(whole), 1),
        }
        row["numpy_us"] = round(_best(hand), 1)
        row["ratio"] = round(row["offsets_us"] / row["numpy_us"], 3)
        inner = layout if name != "swizzled" else layout.inner
        loops = {}
        for label, library in libraries.items():
            if label != "cute_py":
                peer = library.Layout(_ints(inner.shape), _ints(inner.stride))
                sw = library.Swizzle(3, 3, 3) if name == "swizzled" and hasattr(library, "Swizzle") else None
                loops[label] = _loop(peer, sw, cute.offsets(layout))
        row["loops_us"] = {label: round(t) for label, t in loops.items()}
        if loops:
            row["times_faster"] = round(min(loops.values()) / row["offsets_us"])
        rows.append(row)
    return rows


def _ints(tree: Any) -> Any:
    return tuple(_ints(t) for t in tree) if isinstance(tree, tuple) else int(tree)


def _loop(layout: Any, swizzle: Any, want: Any) -> float:
    """Microseconds of a peer's element loop over the whole layout: one eighth of it is run and compared."""
    count = want.size // 8
    start = time.perf_counter()
    if swizzle is None:
        got = [layout(i) for i in range(count)]
    else:
        got = [swizzle(layout(i)) for i in range(count)]
    took = time.perf_counter() - start
    if got != want.ravel(order="F")[:count].tolist():
        raise SystemExit(f"a peer's offsets of {layout} differ")
    return took * 8e6


def processor() -> str:
    """The processor's name where the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def imports() -> dict[str, float]:
    """Seconds of a fresh interpreter's import, less an empty one's: best of several."""

    def seconds(statement: str) -> float:
        best = math.inf
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    empty = seconds("pass")
    ours, theirs = seconds("import cute_py") - empty, seconds("import numpy") - empty
    return {"cute_py_s": round(ours, 4), "numpy_s": round(theirs, 4), "ratio": round(ours / theirs, 3)}


def broken(report: dict[str, Any]) -> list[str]:
    out = [
        f"{r['operation']} ({r['layouts']}, {r['numbers']}): {r['ratio']} > {PEER_BOUND}"
        for r in report["algebra"]
        if r.get("ratio") is not None and r["ratio"] > PEER_BOUND
    ]
    for r in report["bulk"]:
        if r["ratio"] > NUMPY_BOUND:
            out.append(f"offsets {r['layout']}: {r['ratio']} x numpy > {NUMPY_BOUND}")
        bound = SWIZZLED_LOOP_BOUND if "swizzled" in r["layout"] else LOOP_BOUND
        if r.get("times_faster", bound) < bound:
            out.append(f"offsets {r['layout']}: {r['times_faster']} x the peers' loops < {bound}")
    if report["imports"]["ratio"] > IMPORT_BOUND:
        out.append(f"import: {report['imports']['ratio']} > {IMPORT_BOUND}")
    return out


def table(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    names = [n for n in report["libraries"] if n != "cute_py"]
    head = [
        "operation",
        "layouts",
        "numbers",
        "same results",
        "cute_py us",
        *[f"{n} us" for n in names],
        "ours / faster peer",
    ]
    lines = [f"Machine: {report['machine']}; Python {report['python']}; {report['date']}.", ""]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in report["algebra"]:
        cells = [r["operation"], r["layouts"], r["numbers"], f"{r['agreeing']} of {r['compared']}"]
        cells += [str(r.get(n, "-")) for n in ["cute_py", *names]] + [str(r.get("ratio", "-"))]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "| 1024x1024 | offsets us | numpy by hand us | ratio | peers' loops | times faster |",
        "|---|---|---|---|---|---|",
    ]
    for r in report["bulk"]:
        loops = ", ".join(f"{k} {v / 1e6:.2f} s" for k, v in r["loops_us"].items()) or "-"
        cells = [r["layout"], r["offsets_us"], r["numpy_us"], r["ratio"], loops, r.get("times_faster", "-")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    i = report["imports"]
    lines += ["", f"`import cute_py` {i['cute_py_s']} s, `import numpy` {i['numpy_s']} s: ratio {i['ratio']}."]
    return "\n".join(lines)


def main() -> int:
    libraries = {"cute_py": cute, **peers()}
    report: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "libraries": list(libraries),
        "algebra": algebra(libraries),
        "bulk": bulk(libraries),
        "imports": imports(),
    }
    report["broken"] = broken(report)
    print(table(report))
    for line in report["broken"]:
        print("BOUND BROKEN:", line)
    if len(sys.argv) > 1:
        target = Path(sys.argv[1])
        target.write_text(json.dumps(report, indent=1) + "\n")
        target.with_suffix(".md").write_text("# Layout algebra: time beside the peers\n\n" + table(report) + "\n")
    return 1 if report["broken"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
