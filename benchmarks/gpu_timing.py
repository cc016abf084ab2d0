"""How the GPU benchmark measures: rotating buffers, interleaved candidates, verified results, medians of events."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Candidate:
    """One way to do a task. `run(i)` enqueues it on the pair of buffers number i; `verify(i)` tells if it did it."""

    name: str
    run: Callable[[int], object]
    verify: Callable[[int], bool] | None = None
    poison: Callable[[int], object] | None = None
    samples: list[float] = field(default_factory=list)
    verified: bool | None = None
    note: str = ""

    @property
    def microseconds(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        if len(self.samples) < 4:
            return 0.0
        quartiles = statistics.quantiles(self.samples, n=4)
        return (quartiles[2] - quartiles[0]) / self.microseconds


def verify_all(torch: Any, candidates: list[Candidate], pairs: int) -> None:
    """Poison, run, compare, for every candidate on every pair. A candidate that is wrong is not timed."""
    for one in list(candidates):
        if one.verify is None:
            continue
        one.verified = True
        for i in range(pairs):
            if one.poison is not None:
                one.poison(i)
            one.run(i)
            torch.cuda.synchronize()
            one.verified = one.verified and one.verify(i)
        if not one.verified:
            print(f"WRONG RESULT: {one.name}", flush=True)


def time_events(torch: Any, candidates: list[Candidate], pairs: int, rounds: int, launches: int = 4) -> None:
    """Each round times every candidate once, in turned order every other round; a sample is `launches` launches."""
    for one in candidates:
        one.run(0)
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    turn = 0
    for number in range(rounds):
        for one in candidates if number % 2 == 0 else candidates[::-1]:
            start.record()
            for _ in range(launches):
                one.run(turn % pairs)
                turn += 1
            end.record()
            end.synchronize()
            one.samples.append(start.elapsed_time(end) * 1000 / launches)


def time_graphs(torch: Any, stream: Any, candidates: list[Candidate], pairs: int, rounds: int, copies: int) -> None:
    """The same with a graph of `copies` copies, one after the other, replayed."""
    graphs = []
    with torch.cuda.stream(stream):
        for one in candidates:
            for i in range(pairs):
                one.run(i)
        stream.synchronize()
        for one in candidates:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for i in range(copies):
                    one.run(i % pairs)
            graphs.append(graph)
        for graph in graphs:
            graph.replay()
        stream.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        order = list(range(len(candidates)))
        for number in range(rounds):
            for index in order if number % 2 == 0 else order[::-1]:
                start.record(stream)
                graphs[index].replay()
                end.record(stream)
                end.synchronize()
                candidates[index].samples.append(start.elapsed_time(end) * 1000 / copies)


def table(title: str, candidates: list[Candidate], size: int, reference: str) -> dict[str, Any]:
    """The result of one task as data; `size` is bytes read plus written, percentages are of `reference`'s rate."""
    base = next(one.microseconds for one in candidates if one.name == reference)
    rows = [
        {
            "what": one.name,
            "us": round(one.microseconds, 3),
            "GB/s": round(size / one.microseconds / 1000, 1),
            "% of reference": round(100 * base / one.microseconds, 2),
            "spread %": round(100 * one.spread, 2),
            "verified": one.verified,
            **({"note": one.note} if one.note else {}),
        }
        for one in sorted(candidates, key=lambda one: one.microseconds)
    ]
    return {"task": title, "bytes": size, "reference": reference, "rows": rows}


def markdown(result: dict[str, Any]) -> str:
    lines = [
        f"### {result['task']}",
        "",
        "| what | us | GB/s | % of reference | spread % | verified |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        bold = "**" if row["what"] == result["reference"] else ""
        shown = {True: "yes", False: "NO", None: "-"}[row["verified"]]
        cells = (f"{bold}{row['what']}{bold}", row["us"], row["GB/s"], row["% of reference"], row["spread %"], shown)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def plain(rows: list[dict[str, Any]]) -> str:
    """Rows of any one kind as a table."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    return "\n".join(lines) + "\n"


def document(data: dict[str, Any]) -> str:
    """All results of a run as one page."""
    version = data["driver"]
    head = (
        f"# {data['device']}: copies\n\n"
        f"Driver for CUDA {version // 1000}.{version % 1000 // 10}, PyTorch {data['torch']}; medians of "
        f"{data['rounds']} rounds, candidates in turn, buffers rotating, destinations poisoned and compared before the "
        "timing. GB/s counts bytes read plus bytes written. Figures compare only within one table.\n"
    )
    parts = [head]
    for result in data["tasks"]:
        rows = [{name: row[name] for name in row if name not in ("note", "verified")} for row in result["rows"]]
        parts.append(markdown(result) if "reference" in result else f"### {result['task']}\n\n{plain(rows)}")
    first = data["first copy of a process, ms"]
    if first:
        parts.append(
            f"### First copy of a process, ms\n\n{plain([{'kernel cache': k, **v} for k, v in first.items()])}"
        )
    calls = data["launch, us a call"]
    if calls:
        parts.append(f"### One launch, us of the host\n\n{plain([{'what': k, 'us': v} for k, v in calls.items()])}")
    return "\n".join(parts)
