"""Faults put into CUTLASS's Blackwell kernels at places that a seed draws, and what the judges say of each.

    python -m benchmarks.machine.blackwell_faults --seed 5 --count 20 --table table.md

A fault stands at a line that the launch executes; kinds and kernels take turns. It is found where the kernel is
refused, where a finding is an error, or where a rule is broken that the kernel without the fault does not break.

A mutant that leaves the same bytes changes nothing only with a proof. "Every product adds" changes nothing where the
product adds in each execution without the fault: the sound kernel with a trap where the predicate is false ends, with
the same bytes. A barrier that is not initialised changes nothing where no run of the sound kernel uses its bytes. The
proof of other kinds is that of `seeded_faults`.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.machine.fault_sites import KINDS, Fault, matching, with_operand
from benchmarks.machine.seeded_faults import Kernel, lines_of, proof
from cute_py.errors import CuteError
from tests.machine.cutlass_launch import arguments, launch_options, launches

Sites = Iterator[tuple[str, dict[int, str]]]
NAMES: Final = ("blackwell_02", "blackwell_04", "example_70", "example_72a", "example_72b", "example_72c")


def _bits(values: Sequence[int], dtype: Any = np.uint8) -> Callable[[Any, int], Any]:
    held = np.array(values).astype(dtype)
    return lambda dice, size: dice.choice(held, size // held.itemsize).view(np.uint8)


_HALVES, _CODES = _bits(range(-3, 4), np.float16), _bits(range(256))
_UE4M3, _UE8M0, _E4M3 = _bits([0x30, 0x38, 0x40]), _bits([126, 127, 128]), _bits([0, 0x38, 0x40, 0xB8, 0xC0])
CONTENTS: Final[dict[str, dict[int, Callable[[Any, int], Any]]]] = {
    "blackwell_02": {1: _HALVES, 2: _HALVES},
    "blackwell_04": {1: _HALVES, 2: _HALVES},
    "example_70": {0: _HALVES, 1: _HALVES},
    "example_72a": {0: _CODES, 1: _CODES, 5: _UE4M3, 6: _UE4M3},
    "example_72b": {0: _CODES, 1: _CODES, 6: _bits([2], np.float32), 7: _UE4M3, 8: _UE4M3},
    "example_72c": {0: _E4M3, 1: _CODES, 5: _UE8M0, 6: _UE8M0},
}
"""Kernel -> allocation -> its numbers; the others are zero."""


def kernels() -> list[Kernel]:
    """The kernels with their launches."""
    made = []
    for name, row in launches("blackwell_kernels").items():
        if name not in NAMES:
            continue

        def new(row: Any = row, name: str = name) -> tuple[list[Any], list[Any]]:
            dice = np.random.default_rng(12)
            arrays = [
                CONTENTS[name][i](dice, size) if i in CONTENTS[name] else np.zeros(size, np.uint8)
                for i, size in enumerate(row["allocations"])
            ]
            return arguments(row, arrays), arrays

        made.append(Kernel(name, row["ptx"], launch_options(row), new))
    return made


# ---- where faults may stand ------------------------------------------------------------------------------------------


def _without(pattern: str) -> Callable[[str], Sites]:
    def make(text: str) -> Sites:
        for number, one in matching(text, pattern):
            yield f"no {one.split()[0]}", {number: ""}

    return make


def _groups(text: str) -> Sites:
    for number, one in matching(text, r"tcgen05\.\S*cta_group::[12]"):
        held = re.search(r"cta_group::([12])", one)
        if held:
            yield f"cta_group::{3 - int(held[1])}", {number: one.replace(held[0], f"cta_group::{3 - int(held[1])}")}


def _operand(
    number: int, changes: dict[str, tuple[str, int]], pattern: str = r"tcgen05\.mma"
) -> Callable[[str], Sites]:
    """Operand `number` of an instruction changed by an operation on so many bits."""

    def make(text: str) -> Sites:
        for line, one in matching(text, pattern):
            operands = re.findall(
                r"\[[^\]]*\]|\{[^}]*\}|[^,\s{}\[\]][^,]*", re.sub(r"^(@!?%?\w+\s+)?[\w.:]+", "", one.rstrip(";"))
            )
            name = operands[number].strip("[] ") if number < len(operands) else ""
            if re.fullmatch(r"%\w+", name):
                for what, (operation, bits) in changes.items():
                    yield what, {line: with_operand(one, name, operation, bits)}

    return make


def _sums(text: str) -> Sites:
    for number, one in matching(text, r"setp\.ne\.b32 \s*p,"):
        yield "every product adds", {number: re.sub(r"p,.*", "p, 1, 0;", one)}


def _sizes(text: str) -> Sites:
    for pattern, number in ((r"tcgen05\.alloc", 1), (r"tcgen05\.dealloc", 1)):
        yield from _operand(number, {"half of the columns": ("shr.u32 NEW, OLD, 1", 32)}, pattern)(text)


BLACKWELL_KINDS: Final[dict[str, Callable[[str], Sites]]] = {
    "missing commit": _without(r"tcgen05\.commit"),
    "missing dealloc": _without(r"tcgen05\.dealloc"),
    "missing copy of scales": _without(r"tcgen05\.cp"),
    "columns allocated": _sizes,
    "cta_group": _groups,
    "place of D": _operand(0, {"512 columns on": ("add.u32 NEW, OLD, 512", 32)}),
    "instruction descriptor": _operand(
        3,
        {
            "half of N": ("xor.b32 NEW, OLD, 0x600000", 32),
            "another type of A": ("xor.b32 NEW, OLD, 0x80", 32),
            "A is sparse": ("or.b32 NEW, OLD, 4", 32),
            "another M": ("add.u32 NEW, OLD, 0x1000000", 32),
        },
    ),
    "matrix descriptor": _operand(
        2,
        {
            "another swizzle": ("xor.b64 NEW, OLD, 0xC000000000000000", 64),
            "128 bytes on": ("add.u64 NEW, OLD, 8", 64),
            "another version": ("xor.b64 NEW, OLD, 0x400000000000", 64),
        },
    ),
    "place of a load": _operand(
        1,
        {"other lanes": ("xor.b32 NEW, OLD, 0x200000", 32), "512 columns on": ("add.u32 NEW, OLD, 512", 32)},
        r"tcgen05\.ld",
    ),
    "place of scales": _operand(0, {"4 columns on": ("add.u32 NEW, OLD, 4", 32)}, r"tcgen05\.cp"),
    "sums": _sums,
    **{kind: KINDS[kind] for kind in ("bytes", "counts", "parity", "missing wait", "missing load", "not initialised")},
}


def draw(made: Sequence[Kernel], seed: int, count: int) -> list[tuple[Kernel, Fault]]:
    """So many faults: kinds take turns, and each draws a kernel and a place."""
    dice = random.Random(seed)
    executed = {one.name: lines_of(one) for one in made}
    kinds = list(BLACKWELL_KINDS)
    dice.shuffle(kinds)
    found: list[tuple[Kernel, Fault]] = []
    for kind in itertools.islice(itertools.cycle(kinds), 8 * count):
        kernel = dice.choice(list(made))
        sites = [one for one in BLACKWELL_KINDS[kind](kernel.text) if set(one[1]) <= executed[kernel.name]]
        if sites and len(found) < count:
            what, lines = dice.choice(sites)
            fault = Fault(kernel.name, kind, what, lines)
            if all(fault != other for _, other in found):
                found.append((kernel, fault))
    return found


def rules_of(run: Any) -> tuple[set[str], set[str]]:
    """(rules of errors, of all findings) of a run."""
    if isinstance(run, CuteError):
        return {type(run).__name__}, {type(run).__name__}
    return {one.rule for one in run.diagnostics if one.severity == "error"}, {one.rule for one in run.diagnostics}


def no_change(fault: Fault, kernel: Kernel, digest: str) -> str:
    """Why a mutant that leaves the same bytes changes nothing; empty: it is not known to.

    A proof compares events of runs, and those do not show all that an instruction or matrix descriptor says.
    """
    if fault.kind == "sums":
        return "each product adds already" if adds_already(fault, kernel, digest) else ""
    return proof(fault, kernel) if fault.kind in KINDS else ""


def adds_already(fault: Fault, kernel: Kernel, digest: str) -> bool:
    """Whether each product that a mutant lets add to D adds in the sound kernel too, under both schedules."""
    (number,) = fault.lines
    line = kernel.text.split("\n")[number - 1]
    trapped = Fault(fault.kernel, fault.kind, "", {number: f"{line} @!p trap;"})
    run, left = kernel.run(trapped.put_into(kernel.text), "both")
    return not isinstance(run, CuteError) and run.ok and left == digest


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine.blackwell_faults")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--schedule", default="both")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args(words)
    made = kernels()
    usual: dict[str, tuple[set[str], str]] = {}
    lines = []
    found = nothing_changed = 0
    for number, (kernel, fault) in enumerate(draw(made, options.seed, options.count), 1):
        if kernel.name not in usual:
            run, digest = kernel.run(kernel.text, options.schedule)
            usual[kernel.name] = rules_of(run)[1], digest
        start = time.perf_counter()
        run, digest = kernel.run(fault.put_into(kernel.text), options.schedule)
        errors, every = rules_of(run)
        news = sorted(errors | (every - usual[kernel.name][0]))
        found += bool(news)
        same = "the same" if digest == usual[kernel.name][1] else "others"
        why = "" if news or same == "others" else no_change(fault, kernel, usual[kernel.name][1])
        nothing_changed += bool(why)
        said = ", ".join(news) or (f"changes nothing: {why}" if why else "nothing")
        cells = (number, kernel.name, fault.kind, fault.what, fault.line, said, same)
        lines.append(f"| {' | '.join(map(str, cells))} |")
        print(lines[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
    said = f"{found} of {len(lines)} found; mutants that change nothing, by proof: {nothing_changed}"
    print(said)
    if options.table:
        head = "| | kernel | kind | fault | line | new findings | bytes |\n|---|---|---|---|---|---|---|\n"
        options.table.write_text(f"Seed {options.seed}: {said}.\n\n{head}" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
