"""`check_program` on compiled PTX: no finding as it is, and which of twenty seeded bugs are found.

    python -m benchmarks.seeded_ptx FOLDER --page docs/measurements

FOLDER holds the .ptx files, each compiled from one example or test for the architecture that it is written for. Every
bug is one change to one file, at a place that a seeded generator chooses among all places of its kind.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.beside import into_page
from cute_py.ptx.order import check_program
from cute_py.ptx.program import Function, Statement, parse_program

SEED = 20
EACH = 4


@dataclass(frozen=True, slots=True)
class Kernel:
    file: str
    function: Function

    def lines(self, pattern: str) -> list[Statement]:
        return [one for one in self.function.statements() if re.match(pattern, one.opcode)]


@dataclass(frozen=True, slots=True)
class Bug:
    kind: str
    file: str
    what: str
    text: str


def changed(text: str, edits: dict[int, Callable[[str], str]]) -> str:
    """A text with some of its lines (from 1) changed."""
    lines = text.split("\n")
    for number, edit in edits.items():
        lines[number - 1] = edit(lines[number - 1])
    return "\n".join(lines)


def dropped(line: str) -> str:
    return f"// {line}"


def guards(kernel: Kernel, fence: Statement, stores: str) -> bool:
    """Whether a fence has a write to shared memory in front of it and a bulk store behind it, up to the next fences."""
    code = list(kernel.function.statements())
    at = code.index(fence)
    fences = [i for i, one in enumerate(code) if one.opcode.startswith("fence.proxy.async")]
    start, end = max([i for i in fences if i < at], default=0), min([i for i in fences if i > at], default=len(code))
    written = any(re.match(r"st\.shared|stmatrix", one.opcode) for one in code[start:at])
    return written and any(re.match(stores, one.opcode) for one in code[at:end])


def seeded(kernels: list[Kernel], texts: dict[str, str], random_: random.Random) -> list[Bug]:
    bugs: list[Bug] = []

    def sites(pattern: str, *beside: str) -> list[tuple[Kernel, Statement]]:
        """Instructions of kernels that hold one of each kind of `beside` too, from as many files as there are."""
        found = [(k, one) for k in kernels if all(k.lines(p) for p in beside) for one in k.lines(pattern)]
        random_.shuffle(found)
        order: dict[str, int] = {}
        ranked = []
        for kernel, one in found:
            order[kernel.file] = order.get(kernel.file, 0) + 1
            ranked.append((order[kernel.file], len(ranked), kernel, one))
        return [(kernel, one) for _, _, kernel, one in sorted(ranked, key=lambda r: r[:2])]

    def add(kind: str, kernel: Kernel, what: str, edits: dict[int, Callable[[str], str]]) -> None:
        bugs.append(Bug(kind, kernel.file, what, changed(texts[kernel.file], edits)))

    bulk = r"cp\.async\.bulk\.shared::cluster\.global"
    stores = r"cp\.(reduce\.)?async\.bulk\..*bulk_group"
    for (kernel, one), wrong in zip(sites(r"mbarrier\.arrive\.expect_tx", bulk), (16, 32, 4096, 100_000), strict=False):
        edit = lambda line, wrong=wrong: re.sub(r"%r\d+;", f"{wrong};", line)  # noqa: E731
        add("wrong expect_tx", kernel, f"line {one.line}: {wrong} bytes", {one.line: edit})
    for kernel, one in [found for found in sites(r"fence\.proxy\.async", stores) if guards(*found, stores)][:EACH]:
        add("missing proxy fence", kernel, f"line {one.line}: {one.opcode} left out", {one.line: dropped})
    commits, waits = r"cp\.async\.bulk\.commit_group", r"cp\.async\.bulk\.wait_group"
    seen: set[str] = set()
    for number, (kernel, _) in enumerate(
        (k, s) for k, s in sites(stores) if k.file not in seen and not seen.add(k.file)
    ):
        if number == EACH:
            break
        gone = kernel.lines(waits if number % 2 else commits)
        add(
            "missing commit or wait",
            kernel,
            f"{'waits' if number % 2 else 'commits'} of one kernel left out ({len(gone)})",
            {one.line: dropped for one in gone},
        )
    multicast = r"cp\.async\.bulk\.tensor.*multicast"
    arrives = r"barrier\.cluster\.arrive"
    kinds = 0
    seen.clear()
    for kernel, load in sites(multicast, arrives):
        if kernel.file in seen or kinds == EACH:
            continue
        seen.add(kernel.file)
        fences = kernel.lines(r"fence\.mbarrier_init")
        if kinds == 0:
            what = f"line {load.line}: .shared::cta in place of .shared::cluster"
            edits: dict[int, Callable[[str], str]] = {
                load.line: lambda line: line.replace(".shared::cluster.global", ".shared::cta.global")
            }
        elif kinds == 1 and not fences:
            continue
        elif kinds == 1:
            what = f"line {fences[0].line}: fence.acq_rel.cta in place of fence.mbarrier_init.release.cluster"
            edits = {
                one.line: lambda line: line.replace("fence.mbarrier_init.release.cluster", "fence.acq_rel.cta")
                for one in fences
            }
        else:
            what = "bar.sync in place of barrier.cluster in one kernel"
            edits = {
                one.line: lambda line: re.sub(r"barrier\.cluster[\w.]*", "bar.sync 0", line)
                for one in kernel.lines(arrives)
            }
            edits |= {one.line: dropped for one in kernel.lines(r"barrier\.cluster\.wait")}
        kinds += 1
        add("wrong multicast scope", kernel, what, edits)
    for kernel, one in sites(r"fence\.proxy\.tensormap::generic\.acquire")[:EACH]:
        add("missing tensormap fence", kernel, f"line {one.line}: {one.opcode} left out", {one.line: dropped})
    return bugs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path, help="folder of the page that has the marks of check-cutlass")
    options = parser.parse_args()
    texts = {path.name: path.read_text() for path in sorted(options.folder.glob("*.ptx"))}
    kernels, rows, clean = [], [], 0
    for name, text in texts.items():
        program, report = parse_program(text), check_program(text)
        kernels += [Kernel(name, function) for function in program.functions]
        clean += not report.found
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        judged = sum(report.counts.values())
        rows.append(f"| {name.removesuffix('.ptx')} | {program.target} | {judged} | {len(report.found)} | `{digest}` |")
    found_count, table = 0, []
    bugs = seeded(kernels, texts, random.Random(SEED))
    for bug in bugs:
        found = check_program(bug.text).found
        found_count += bool(found)
        rules = ", ".join(sorted({f"{one.rule} ({one.severity})" for one in found})) or "**not found**"
        table.append(f"| {bug.kind} | {bug.file.removesuffix('.ptx')} | {bug.what} | {rules} |")
    lines = [
        "| example or test | architecture | instructions judged | findings | SHA-256 of the PTX |",
        "|---|---|---:|---:|---|",
        *rows,
        "",
        f"{clean} of {len(texts)} without a finding.",
        "",
        "| bug | file | change | found as |",
        "|---|---|---|---|",
        *table,
        "",
        f"{found_count} of {len(bugs)} found.",
    ]
    print("\n".join(lines))
    if options.page is not None:
        into_page(options.page, "check-cutlass", "\n".join(lines))


if __name__ == "__main__":
    main()
