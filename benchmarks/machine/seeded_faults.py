"""Faults put into kernels at places that a seed draws, and what the judges say of each.

    python -m benchmarks.machine.seeded_faults --seed 38 --each 10 --json faults.json --table table.md

The kernels are Triton's, CUTLASS's and this package's own. Every kind of fault has the same number of mutants, at lines
that the launch executes. A mutant is found where a finding has one of the causes that fit its kind (`CAUSES`). A mutant
that leaves the same bytes under every schedule counts as one that changes nothing only with a proof (`proof`).
"""

from __future__ import annotations

import argparse
import collections
import functools
import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import cute_py as cute
from benchmarks.machine.barrier_use import BarrierUse
from benchmarks.machine.fault_sites import KINDS, Fault
from cute_py.errors import CuteError
from cute_py.machine import run as machine_run
from cute_py.machine.judgement.observer import EVENTS, AsyncWork, Observer
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, Frame

SEEDS: Final = (1, 2)
SCHEDULES: Final[tuple[str | int, ...]] = ("both", *SEEDS)
LIMIT: Final = 3 * 10**7

_BYTES = ("hang: transaction bytes", "more bytes than expected", "phase completed early", "expected bytes are missing",
          "transaction count", "tensor copy")  # fmt: skip
_ORDER = ("race in shared memory", "read before it arrives", "overwritten while in use", "never written",
          "missing proxy fence", "barrier overlapped by data", "load under way at exit",
          "store under way at exit")  # fmt: skip
CAUSES: Final[dict[str, tuple[str, ...]]] = {
    "bytes": _BYTES,
    "counts": ("hang: arrival count", "hang: completed too often", "hang: barrier count", "too many arrivals",
               "mbarrier count", "barrier count", "arrivals of one round in several phases"),
    "parity": ("hang: parity", "parity", "hang: completed too often"),
    "stage index": (*_ORDER, *_BYTES, "mbarrier not initialised", "hang: arrivals", "hang: arrival count",
                    "hang: exited", "out of bounds", "descriptor address", "too many arrivals",
                    "hang: parity", "parity"),
    "missing fence": ("missing proxy fence", "initialisation not fenced", "registers not fenced",
                      "initialisation not known"),
    "missing wait": ("read before it arrives", "overwritten while in use", "registers in use",
                     "store under way at exit", "load under way at exit", "race in shared memory",
                     "initialisation not known", "exit before a peer is done"),
    "missing bar.sync": ("race in shared memory", "race in global memory", "read before it arrives",
                         "overwritten while in use", "missing proxy fence", "initialisation not known",
                         "mbarrier not initialised", "mbarrier used after inval", "never written",
                         "initialisation not fenced"),
    "multicast mask": (*_BYTES, "never written", "read before it arrives", "exited peer", "multicast mask"),
    "descriptor": ("descriptor swizzle", "descriptor address", "tile read in part", "never written", "wgmma operand",
                   "wgmma descriptor", "read before it arrives", "overwritten while in use", "race in shared memory",
                   "missing proxy fence"),
    "missing load": ("hang: transaction bytes", "expected bytes are missing", "never written", "load never issued"),
    "early exit": ("hang: exited", "exited peer", "exit before a peer is done", "divergent aligned instruction",
                   "hang: divergent aligned instruction", "store under way at exit", "load under way at exit",
                   "barrier count", "hang: barrier count", "never written", "hang: lanes", "hang: arrivals",
                   "hang: arrival count", "exited before a barrier",
                   "exited lanes"),
    "cluster sync": ("exit before a peer is done", "initialisation not fenced", "initialisation not known",
                     "cluster barrier", "hang: cluster barrier", "exited peer", "mbarrier not initialised",
                     "race in shared memory", "load under way at exit", "store under way at exit"),
    "register pool": ("register count", "register direction", "register pool"),
    "not initialised": ("mbarrier not initialised",),
    "overlapping memory": (*_ORDER, *_BYTES, "out of bounds", "mbarrier overlapped", "mbarrier not initialised",
                           "descriptor address", "descriptor swizzle", "mbarrier initialised twice"),
}  # fmt: skip
"""Kind -> findings that name its cause, as 'rule' or 'rule: cause'."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its launch. arguments: makes new ones, with the arrays whose bytes count."""

    name: str
    text: str
    launch: dict[str, Any]
    arguments: Callable[[], tuple[list[Any], list[Any]]]

    def run(self, text: str, schedule: str | int, judge: bool = True) -> tuple[cute.PtxRun | CuteError, str]:
        """The run of a text in this kernel's place, or the error that refuses it; and a digest of the bytes."""
        args, arrays = self.arguments()
        try:
            found: Any = cute.run_ptx(text, args=args, schedule=schedule, judge=judge, limit=LIMIT, **self.launch)
        except CuteError as error:
            found = error
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(one).view(np.uint8).tobytes() for one in arrays))
        return found, digest.hexdigest()[:16]


def triton_kernel(name: str) -> Kernel:
    """A kernel of the recorded rows."""
    from tests.machine.test_triton import ROWS, WORKLOADS, launch, launch_workload

    row, arguments = (ROWS[name], launch) if name in ROWS else (WORKLOADS[name], launch_workload)

    def new() -> tuple[list[Any], list[Any]]:
        args, arrays = arguments(row)
        return args, list(arrays.values())

    return Kernel(name, row["ptx"], {"grid": row["grid"], "dynamic_shared": row["shared"]}, new)


def triton_kernels() -> list[Kernel]:
    """Those of Triton that faults are put into."""
    names = ("tma_copy", "matmul_bf16", "matmul_descriptors", "attention", "matmul_f16_grouped", "matmul_e4m3",
             "matmul_small", "softmax_rows", "transpose")  # fmt: skip
    return [triton_kernel(name) for name in names]


def cutlass_kernels() -> list[Kernel]:
    """Kernels of CUTLASS's programs: wgmma after cp.async, wgmma after TMA in a ring, and warp-specialised."""
    from tests.machine.cutlass_launch import arguments, launch_options, launches

    made = []
    for name, row in launches().items():
        if name not in ("wgmma_tn", "wgmma_tma_tn", "example_48"):
            continue

        def new(row: Any = row) -> tuple[list[Any], list[Any]]:
            dice = np.random.default_rng(11)
            arrays = [dice.integers(-1, 2, size // 2).astype(np.float16).view(np.uint8) for size in row["allocations"]]
            return arguments(row, arrays), arrays

        made.append(Kernel(name, row["ptx"], launch_options(row), new))
    return made


def lines_of(kernel: Kernel) -> set[int]:
    """The lines of the instructions that a kernel's launch executes."""
    run, _ = kernel.run(kernel.text, "eager", judge=False)
    if isinstance(run, CuteError):
        raise run
    return {one.line for one in run.counts}


SEEN: Final = {"initialised": 3, "landed": 4}
"""Event -> how many of its arguments count: what a barrier's count changes is what waits see; numbers of instructions
are others in a text with one more."""


class EventLog(Observer):
    """A digest of the events of a run: of each warp, in its order. The events of some lines can be left out.

    Without them the order is that of the whole run. Where synchronisation is left out, warps come in another order.
    """

    active = True

    def __init__(self, without: frozenset[int]) -> None:
        self.without = without
        self.digest = hashlib.sha256()
        self.warps: dict[int, Any] = collections.defaultdict(hashlib.sha256)
        for name in EVENTS:
            if name not in (
                "began",
                "ended",
                "time_passes",
                "phase_ended",
                "registers_set",
                *(("exited", "gathered") if without else ()),
            ):
                setattr(self, name, functools.partial(self._of_warps if without else self._note, name))

    def _of_warps(self, name: str, f: Any, *arguments: Any) -> None:
        site = arguments[0] if arguments else None
        if not isinstance(f, Frame) or (isinstance(site, Site) and site.one.line in self.without):
            return
        if name in ("block_met", "bar_arrived", "cluster_arrived", "cluster_passed"):
            name, arguments = "met", arguments[:1]  # a barrier comes in one piece or in several
        for warp in f.warps.tolist():
            mine = f.threads // LANES == warp
            said = [name.encode(), f.threads[mine].tobytes()]
            for one in arguments[: SEEN.get(name, 9) - 1]:
                if isinstance(one, Site):
                    said.append(str(one.one.line).encode())
                elif isinstance(one, np.ndarray) and len(one) == f.n:
                    said.append(np.ascontiguousarray(one[mine]).tobytes())
                elif not isinstance(one, np.ndarray):  # what an array holds may come from other warps
                    said.append(_raw(one))
            self.warps[warp].update(b"|".join(said))

    def text(self) -> str:
        """The digests in one."""
        for warp, one in sorted(self.warps.items()):
            self.digest.update(f"{warp} {one.hexdigest()}".encode())
        return self.digest.hexdigest()[:16]

    def _note(self, name: str, *arguments: Any) -> None:
        said: list[bytes] = [name.encode()]
        for one in arguments[: SEEN.get(name)]:
            if isinstance(one, Site):
                if one.one.line in self.without:
                    return
                said.append(str(one.one.line).encode())
            else:
                said.append(_raw(one))
        self.digest.update(b"|".join(said))


def _raw(one: Any) -> bytes:
    if isinstance(one, Frame):
        return one.threads.tobytes()
    if isinstance(one, np.ndarray):
        return one.tobytes() if one.size < 1 << 16 else str(one.shape).encode()
    if isinstance(one, AsyncWork):
        spans = [part for span in (*one.reads, *one.writes) for part in (span.start, span.nbytes, _raw(span.offsets))]
        return repr((one.kind, one.barriers, one.nbytes, spans, one.cells)).encode()
    return repr(one).encode() if isinstance(one, (int, str, bool, tuple, type(None))) else b""


ORDERED: Final = ("eager", "lazy")
"""The schedules of a proof: a further instruction gives the threads other turns under a seed."""


def observed(kernel: Kernel, text: str, schedule: str, observer: Observer) -> str:
    """Run a text with one observer and no judge; the digest of the bytes that it leaves."""

    def only(code: Any, *, first: bool = True, beside: Sequence[Observer] = ()) -> Observer:
        return observer

    kept, machine_run.judges = machine_run.judges, only
    try:
        return kernel.run(text, schedule)[1]
    finally:
        machine_run.judges = kept


def log_of(kernel: Kernel, text: str, without: frozenset[int]) -> list[str]:
    """The digest of the events of a run, and of its bytes, under each schedule."""
    found = []
    for schedule in ORDERED:
        log = EventLog(without)
        digest = observed(kernel, text, schedule, log)
        found.append(f"{log.text()} {digest}")
    return found


def barriers_unused(fault: Fault, kernel: Kernel) -> bool:
    """Whether the sound kernel never uses the barriers that the lines of a fault initialise, under each schedule."""
    for schedule in ORDERED:
        use = BarrierUse(frozenset(fault.lines))
        observed(kernel, kernel.text, schedule, use)
        if not (use.count and use.disjoint):
            return False
    return True


def proof(fault: Fault, kernel: Kernel) -> str:
    """Why a mutant that leaves the same bytes changes nothing; empty: it is not known to.

    A changed operand changes nothing where every event of the run is the same: the same threads access the same
    addresses, arrive, wait and copy, in the same order. A removed instruction of synchronisation changes nothing where
    all others are so and the memory judge, which knows the order of every two accesses of one place, still has an
    order for each of them. A removed initialisation changes nothing where nothing uses the barrier; no judge is asked.
    """
    removed = any(not line or line.startswith("setp.eq.u32") for line in fault.lines.values())
    removed |= "waited for" in fault.what  # the wait for another barrier counts as none
    exits = fault.kind == "early exit"
    without = frozenset(fault.lines) if removed or exits else frozenset()
    text = fault.put_into(kernel.text)
    if log_of(kernel, kernel.text, without) != log_of(kernel, text, without):
        return ""
    if exits:
        return "all accesses, arrivals and copies are the same: the threads had nothing more to do"
    if fault.kind == "register pool":  # no event shows registers
        return "the rules of setmaxnreg are kept, as its judge counts"
    if fault.kind == "not initialised":
        return "no instruction and no copy uses the barrier" if barriers_unused(fault, kernel) else ""
    if not removed:
        return "the same events in the same order, under every schedule"
    if fault.kind == "missing load":
        return "all accesses, and all that is written, are the same: nothing uses what the copy brings"
    return "all accesses keep their order: other synchronisation is between them"


def own_kernels() -> list[Kernel]:
    """GEMMs with and without multicast, and copies, as this package generates them."""
    import ml_dtypes

    from cute_py import Int, Layout
    from cute_py.machine.run import ptx_of

    def gemm(name: str, m: int, n: int, k: int, groups: int, multicast: str) -> Kernel:
        def matrix(rows: int, columns: int) -> Any:
            return cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), Layout((rows, columns), (columns, Int(1))))

        def stage(rows: int) -> Any:
            return cute.tma.make_smem_layout("K", "128B", "bfloat16", (rows, 64))

        width = 64 if n % 128 else 128
        mma = cute.make_tiled_mma(f"SM90_64x{width}x16_F32BF16BF16_SS", (groups, 1, 1))
        loads = {one: "SM90_TMA_LOAD_MULTICAST" if one == multicast else "SM90_TMA_LOAD" for one in "AB"}
        pair = {one: {"num_multicast": 2} if one == multicast else {} for one in "AB"}
        a = cute.tma.make_tma_copy(loads["A"], matrix(m, k), stage(64 * groups), **pair["A"])
        b = cute.tma.make_tma_copy(loads["B"], matrix(n, k), stage(width), **pair["B"])
        c = cute.tma.make_tma_copy("SM90_TMA_STORE", matrix(m, n), stage(64))
        kernel = cute.tma.gemm_kernel(mma, a, b, c)

        def new() -> tuple[list[Any], list[Any]]:
            dice = np.random.default_rng(7)
            left, right = (dice.integers(-3, 4, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k)))
            product = np.zeros((m, n), ml_dtypes.bfloat16)
            launch = kernel.machine_launches((left, right, product))[0]
            return list(launch.args), [product]

        launch = kernel.machine_launches(tuple(np.zeros(s, ml_dtypes.bfloat16) for s in ((m, k), (n, k), (m, n))))[0]
        source = launch.kernel
        options = {"grid": launch.grid, "block": source.threads, "dynamic_shared": source.shared_bytes}
        if source.cluster > 1:
            options["cluster"] = source.cluster
        return Kernel(name, ptx_of(source), options, new)

    return [
        gemm("gemm", 256, 128, 512, 2, ""),
        gemm("gemm_multicast_a", 128, 256, 512, 1, "A"),
        gemm("gemm_multicast_b", 128, 192, 512, 1, "B"),
        *_copies(),
    ]


def _copies() -> list[Kernel]:
    from cute_py.copies.boxes import Tuning
    from cute_py.copies.machine_copy import machine_launches
    from cute_py.machine.run import ptx_of

    made = []
    for name, transposed in (("copy_ring", False), ("copy_transposed", True)):
        source = np.arange(64 * 256, dtype=np.uint16).reshape(64, 256)
        if transposed:
            source = source.T
        launches = machine_launches(source, np.zeros(source.shape, np.uint16), tuning=Tuning(form="ring"))
        one = launches[-1]

        def new(source: Any = source) -> tuple[list[Any], list[Any]]:
            target = np.zeros(source.shape, np.uint16)
            found = machine_launches(source, target, tuning=Tuning(form="ring"))[-1]
            return list(found.args), [target]

        options = {"grid": one.grid, "block": one.kernel.threads, "dynamic_shared": one.kernel.shared_bytes}
        made.append(Kernel(name, ptx_of(one.kernel), options, new))
    return made


def drawn(kernels: Sequence[Kernel], seed: int, each: int) -> list[Fault]:
    """Draw an equal number of faults of each kind. Kernels take turns; the seed draws sites and variants."""
    dice = random.Random(seed)
    lines = {one.name: lines_of(one) for one in kernels}
    found = []
    for kind, make in KINDS.items():
        pools = {
            one.name: [Fault(one.name, kind, what, new) for what, new in make(one.text) if set(new) <= lines[one.name]]
            for one in kernels
        }
        pools = {name: pool for name, pool in pools.items() if pool}
        for pool in pools.values():
            dice.shuffle(pool)
        order = list(pools)
        dice.shuffle(order)
        chosen: list[Fault] = []
        while len(chosen) < each and any(pools.values()):
            for name in order:
                if pools[name] and len(chosen) < each:
                    chosen.append(pools[name].pop())
        found += chosen
    return found


def named(run: cute.PtxRun | CuteError) -> list[str]:
    """The findings of a run, as 'rule' and 'rule: cause'; errors first."""
    if isinstance(run, CuteError):
        return [f"refused: {run.headline}"]
    said = []
    for one in sorted(run.diagnostics, key=lambda one: one.severity):
        cause = one.facts.get("cause")
        said.append(f"{one.rule}: {cause}" if cause and one.rule == "hang" else one.rule)
    return said


def judged(fault: Fault, kernel: Kernel, sound: dict[str | int, tuple[list[str], str]]) -> dict[str, Any]:
    """Return the verdict on a mutant (right cause, another cause, or not found) and the first finding."""
    text = fault.put_into(kernel.text)
    row: dict[str, Any] = {"kernel": fault.kernel, "kind": fault.kind, "line": fault.line, "what": fault.what}
    others: list[str] = []
    same = True
    for schedule in SCHEDULES:
        run, digest = kernel.run(text, schedule)
        known = collections.Counter(sound[schedule][0])
        new = list((collections.Counter(named(run)) - known).elements())
        same &= digest == sound[schedule][1] and not isinstance(run, CuteError)
        hits = [one for one in new if one in CAUSES[fault.kind] or one.startswith("refused")]
        if hits:
            first = "" if isinstance(run, CuteError) else next(
                (one.message for one in run.diagnostics if one.rule == hits[0].partition(":")[0]), ""
            )  # fmt: skip
            return {**row, "result": "found", "schedule": str(schedule), "findings": new, "message": first}
        others += new
    if others or not same:
        return {**row, "result": "other cause" if others else "missed", "findings": sorted(set(others))}
    why = proof(fault, kernel)
    return {**row, "result": "no change" if why else "same bytes", "findings": [why] if why else []}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=38)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--kinds", nargs="*", default=None)
    parser.add_argument("--json", default="")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    options = parser.parse_args(arguments)
    machine_run.TRIED_STEPS = -1  # changes that may cure a fault are not tried here
    kernels = {one.name: one for one in (*triton_kernels(), *cutlass_kernels(), *own_kernels())}
    faults = [f for f in drawn(list(kernels.values()), options.seed, options.each)
              if options.kinds is None or f.kind in options.kinds]  # fmt: skip
    sound: dict[str, dict[str | int, tuple[list[str], str]]] = {}
    rows = []
    start = time.monotonic()
    for fault in faults:
        if time.monotonic() - start > options.seconds:
            break
        kernel = kernels[fault.kernel]
        if fault.kernel not in sound:
            sound[fault.kernel] = {}
            for schedule in SCHEDULES:
                run, digest = kernel.run(kernel.text, schedule)
                sound[fault.kernel][schedule] = (named(run), digest)
        row = judged(fault, kernel, sound[fault.kernel])
        rows.append(row)
        print(f"{row['result']:<12} {row['kind']:<20} {row['kernel']:<18} line {row['line']:<5} {row['what']:<40} "
              f"{'; '.join(row['findings'])[:110]}", flush=True)  # fmt: skip
    counts = collections.Counter(row["result"] for row in rows)
    print(dict(counts), f"{time.monotonic() - start:.0f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
