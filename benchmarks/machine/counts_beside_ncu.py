"""Bank conflicts and global sectors of kernels: those that `PtxRun.counts` says, beside the counters of ncu.

    python -m benchmarks.machine.counts_beside_ncu measure OUT.json --seconds 95
    python -m benchmarks.machine.counts_beside_ncu compare OUT.json --table table.md

`measure` needs a GPU of compute capability 9.0, its driver and ncu. It launches each kernel once, in a process of its
own with a time limit, and writes the counters after each of them. `compare` needs no GPU: it runs the same PTX on the
emulated multiprocessor. The kernels use no TMA and at most 2 MiB of arrays: Triton's, CUTLASS's, and copies of this
package.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import cute_py as cute
from benchmarks.machine import on_device
from benchmarks.machine.seeded_faults import Kernel, triton_kernel

LIMIT_SECONDS: Final = 25
"""Time limit of one kernel in seconds, with its process and ncu."""
MOST_BYTES: Final = 2 << 20
WITHIN: Final = 0.05
HARDWARE: Final = {
    "shared load conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared store conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "shared load wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared store wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "global load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}
"""Compared count -> counter of the hardware."""
INSTRUCTIONS: Final = {
    "shared load conflicts, of instructions": "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared store conflicts, of instructions": "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "copied conflicts, of instructions": "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "copied sectors, through L1": "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "copied sectors, past L1": "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
    "shared load instructions": "smsp__inst_executed_op_shared_ld.sum",
    "shared store instructions": "smsp__inst_executed_op_shared_st.sum",
    "ldmatrix instructions": "smsp__inst_executed_op_ldsm.sum",
    "cp.async instructions": "smsp__inst_executed_op_ldgsts.sum",
    "global load instructions": "smsp__inst_executed_op_global_ld.sum",
    "global store instructions": "smsp__inst_executed_op_global_st.sum",
}
"""Counters beside them that say where a difference comes from: ncu patches the instructions, or counts them."""


def cutlass(name: str) -> Kernel:
    """A recorded kernel of CUTLASS, with random numbers."""
    from tests.machine.cutlass_launch import arguments, launch_options, launches, random_allocations

    row = launches()[name]

    def new() -> tuple[list[Any], list[Any]]:
        arrays = random_allocations(name, row)
        return arguments(row, arrays), arrays

    return Kernel(name, row["ptx"], launch_options(row), new)


def aligned(array: Any) -> Any:
    """Copy values to an address that is a multiple of 512, because the plan of a copy depends on the address."""
    raw = np.empty(array.nbytes + 512, np.uint8)
    found = raw[-raw.ctypes.data % 512 :][: array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy between host arrays whose threads move the elements. order: of the axes of the source."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    dtype: str

    def kernel(self, name: str) -> Kernel:
        """Its kernel; the compiler of CUDA C++ that is installed here makes the PTX."""
        from cute_py.copies.machine_copy import machine_launches
        from cute_py.machine.run import ptx_of

        def launches() -> tuple[Any, list[Any]]:
            values = aligned(np.random.default_rng(5).integers(0, 100, self.shape).astype(self.dtype))
            result = aligned(np.zeros([self.shape[axis] for axis in self.order], self.dtype))
            (only,) = machine_launches(values.transpose(self.order), result)
            return only, [values, result]

        def new() -> tuple[list[Any], list[Any]]:
            launch, held = launches()
            return list(launch.args), held

        launch, _ = launches()
        options = {"grid": launch.grid, "block": launch.kernel.threads, "dynamic_shared": launch.kernel.shared_bytes}
        return Kernel(name, ptx_of(launch.kernel, "sm_90a"), options, new)


COPIES: Final = {
    "copy_f32_transposed": Copy((384, 320), (1, 0), "float32"),
    "copy_u8_transposed": Copy((512, 640), (1, 0), "uint8"),
    "copy_f16_three_axes": Copy((24, 96, 80), (2, 0, 1), "float16"),
}
KERNELS: Final[dict[str, Callable[[str], Kernel]]] = {
    **dict.fromkeys(("sgemm_1_tn", "sgemm_2_tn", "sgemm_sm80_tn", "tiled_copy"), cutlass),
    **dict.fromkeys(("matmul_e4m3", "sort_rows", "transpose"), triton_kernel),
    **{name: one.kernel for name, one in COPIES.items()},
    **dict.fromkeys(
        ("matmul_small", "matmul_bf16", "softmax", "layer_norm", "matmul_tf32", "block_sums"), triton_kernel
    ),
    **dict.fromkeys(("sgemm_1_nt", "sgemm_2_nt", "wgmma_nt"), cutlass),
    **dict.fromkeys(("attention", "gather", "vadd"), triton_kernel),
}
"""Name -> what makes the kernel; first those that a short time must suffice for."""


def one(name: str) -> None:
    """Launch a kernel once; print its PTX where a compiler of this machine made it."""
    kernel = KERNELS[name](name)
    arguments, held = kernel.arguments()
    assert sum(array.nbytes for array in held) <= MOST_BYTES
    on_device.run_on_device(kernel.text, args=arguments, **kernel.launch)
    print("RAN", json.dumps(kernel.text if name in COPIES else ""), flush=True)


def counters(shown: str, asked: Mapping[str, str]) -> dict[str, float]:
    """The sums over all launches of what ncu printed as CSV; counters without a number are left out.

    >>> counters('"ID","Metric Name","Metric Value"\\n"0","a.sum","1,024"\\n"1","a.sum","6"', {"a": "a.sum"})
    {'a': 1030.0}
    """
    named = {metric: what for what, metric in asked.items()}
    found: dict[str, float] = collections.defaultdict(float)
    for row in csv.DictReader(line for line in shown.splitlines() if line.startswith('"')):
        value = (row.get("Metric Value") or "").replace(",", "")
        if row.get("Metric Name") in named and value.replace(".", "", 1).isdigit():
            found[named[row["Metric Name"]]] += float(value)
    return dict(found)


def profiled(name: str, asked: Mapping[str, str]) -> dict[str, Any]:
    """The counters of one kernel, and what was said where it did not run."""
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    words = ["timeout", "-k", "3", str(LIMIT_SECONDS), ncu, "--csv", "--clock-control", "none"]
    words += ["--metrics", ",".join(asked.values()), sys.executable, "-m", "benchmarks.machine.counts_beside_ncu"]
    done = subprocess.run([*words, "one", name], capture_output=True, text=True, check=False)
    ran = [line[4:] for line in done.stdout.splitlines() if line.startswith("RAN ")]
    row = {"name": name, "code": done.returncode, "counters": counters(done.stdout, asked)}
    if not ran or not row["counters"]:
        row["said"] = (done.stdout[-1500:] + done.stderr[-1500:]).strip() or f"ended with status {done.returncode}"
    elif json.loads(ran[0]):
        row["ptx"] = json.loads(ran[0])
    return row


def measure(out: Path, names: Sequence[str], seconds: float) -> None:
    """Write the counters of each kernel that there is time for."""
    end = time.monotonic() + seconds
    asked: Mapping[str, str] = {**HARDWARE, **INSTRUCTIONS}
    rows: list[dict[str, Any]] = []
    for name in names:
        if time.monotonic() + LIMIT_SECONDS / 3 > end:
            break
        start = time.monotonic()
        row = profiled(name, asked)
        if not row["counters"] and not rows:
            print(row["said"], flush=True)
            asked = known(asked, row["said"])
            row = profiled(name, asked)
        rows.append(row)
        said = row.get("said") or f"{len(row['counters'])} counters"
        print(name, f"{time.monotonic() - start:.1f} s", said, flush=True)
        out.write_text(json.dumps(rows, indent=1))
    print(f"{sum(not row.get('said') for row in rows)} of {len(names)} kernels")


def known(asked: Mapping[str, str], said: str) -> Mapping[str, str]:
    """The counters that a message of ncu does not name; those of the hardware where it names none.

    >>> known({"a": "smsp__a.sum", "b": "smsp__b.sum"}, "Failed to find metric smsp__b.sum")
    {'a': 'smsp__a.sum'}
    """
    kept = {what: metric for what, metric in asked.items() if metric.partition(".")[0] not in said}
    return kept if kept and len(kept) < len(asked) else HARDWARE


def counted(kernel: Kernel, text: str) -> dict[str, int]:
    """Run a text on the emulated multiprocessor; return its counts under the names of `HARDWARE`."""
    arguments, _ = kernel.arguments()
    run = cute.run_ptx(text, args=arguments, schedule="eager", judge=False, traffic=True, **kernel.launch)
    run.raise_for_diagnostics()
    found = dict.fromkeys((*HARDWARE, "copied conflicts"), 0)
    for instruction in run.counts:
        words = instruction.instruction.split()
        opcode = words[1] if words[0].startswith("@") else words[0]
        way = "load" if opcode.startswith(("ld.", "ldmatrix", "ldu.")) else "store"
        if opcode.startswith(("atom", "red")):
            continue
        if opcode.startswith("cp.async"):  # ncu counts its sectors with those of loads
            found["global load sectors"] += instruction.sectors
            found["copied conflicts"] += instruction.bank_conflicts
            continue
        found[f"shared {way} conflicts"] += instruction.bank_conflicts
        found[f"shared {way} wavefronts"] += instruction.wavefronts
        found[f"global {way} sectors"] += instruction.sectors
    return found


COMPARED: Final = ("shared load conflicts", "shared store conflicts", "global load sectors", "global store sectors")


def near(ours: float, theirs: float) -> bool:
    """Whether two counts are within `WITHIN` of the counter.

    >>> near(100, 104), near(100, 106), near(0, 0)
    (True, False, True)
    """
    return abs(ours - theirs) <= WITHIN * theirs


def compare(rows: Sequence[Mapping[str, Any]], table: str) -> None:
    """Print both counts of each kernel."""
    lines = [f"| kernel | {' | '.join(f'{what}: here / ncu' for what in COMPARED)} |", "|---" * 5 + "|"]
    held = total = 0
    for row in rows:
        if row.get("said"):
            print(f"{row['name']}: not measured: {row['said'][-300:]}")
            continue
        name, counts = row["name"], row["counters"]
        kernel = KERNELS[name](name)
        ours = counted(kernel, row.get("ptx", kernel.text))
        cells = []
        for what in COMPARED:
            if what not in counts:
                cells.append(f"{ours[what]} / -")
                continue
            total += 1
            held += (equal := near(ours[what], counts[what]))
            cells.append(f"{ours[what]} / {counts[what]:.0f}" + ("" if equal else " *"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
        print("   here:", {what: ours[what] for what in ours if what not in COMPARED})
        print("   ncu: ", {what: round(value) for what, value in counts.items() if what not in COMPARED}, flush=True)
    print(f"{held} of {total} counters within {WITHIN:.0%}")
    if table:
        Path(table).write_text("\n".join(lines) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("measure", "compare", "one"))
    parser.add_argument("path", help="the file of counters; for `one`, the name of a kernel")
    parser.add_argument("--names", nargs="*", default=list(KERNELS))
    parser.add_argument("--seconds", type=float, default=95.0, help="`measure` begins no kernel that could end later")
    parser.add_argument("--table", default="")
    options = parser.parse_args(arguments)
    if options.action == "one":
        one(options.path)
    elif options.action == "measure":
        measure(Path(options.path), options.names, options.seconds)
    else:
        rows = json.loads(Path(options.path).read_text())
        compare([row for row in rows if row["name"] in options.names], options.table)


if __name__ == "__main__":
    main()
