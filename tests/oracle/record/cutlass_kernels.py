"""Record the kernels of CUTLASS's programs as their own host code launches them, without a GPU.

    python -m tests.oracle.record.cutlass_kernels CUTLASS OUT.jsonl.xz [--only NAME ...] [--keep FOLDER]
                                                  [--blackwell | --geforce]

CUTLASS is a checkout; nvcc and g++ are needed, no driver and no device. nvcc compiles each program, unchanged, to PTX
and host code. The host code is linked with `recording_runtime.cpp` in place of the CUDA runtime, and runs: each launch
gives the kernel's name, its grid, the bytes of its parameters, and the arguments of the tensor maps in them. A row of
the file has these and the PTX; `tests/machine/cutlass_launch.py` makes the arguments of `run_ptx` of it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cute_py.machine.cuda_source import find_nvcc
from cute_py.ptx.source import read_module

HERE = Path(__file__).resolve().parent
TUTORIAL = "examples/cute/tutorial"
EXAMPLE_48 = "examples/48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu"
MAP_WORD = b"CUTEPMAP"
TIME_LIMIT_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Program:
    """A program of CUTLASS. launches: name of a row -> words of the command line; kernel: a part of the kernel's name;
    arch: of the compiler's option; multiprocessors: that the program is told of."""

    path: str
    launches: dict[str, str]
    kernel: str = "gemm_device"
    arch: str = "90a"
    multiprocessors: int = 132

    @property
    def major(self) -> int:
        """Of the device that the program is told of."""
        return int(self.arch.rstrip("abcdef")) // 10


PROGRAMS = (
    Program(f"{TUTORIAL}/tiled_copy.cu", {"tiled_copy": ""}, "copy_kernel"),
    Program(f"{TUTORIAL}/sgemm_1.cu", {"sgemm_1_nt": "256 128 40 N T", "sgemm_1_tn": "128 256 40 T N"}),
    Program(f"{TUTORIAL}/sgemm_2.cu", {"sgemm_2_nt": "256 128 40 N T", "sgemm_2_tn": "128 256 40 T N"}),
    Program(f"{TUTORIAL}/sgemm_sm80.cu", {"sgemm_sm80_tn": "256 128 192 T N"}),
    Program(f"{TUTORIAL}/hopper/wgmma_sm90.cu", {"wgmma_nt": "256 128 256 N T", "wgmma_tn": "128 256 256 T N"}),
    Program(
        f"{TUTORIAL}/hopper/wgmma_tma_sm90.cu",
        {
            "wgmma_tma_nt": "256 128 256 N T",
            "wgmma_tma_tn": "256 256 128 T N",
            "wgmma_tma_large": "512 512 256 T N",
        },
    ),
    Program(EXAMPLE_48, {"example_48": "--m=512 --n=256 --k=160 --iterations=0"}, "device_kernel"),
    Program(
        EXAMPLE_48,  # two tiles for each CTA
        {"example_48_persistent": "--m=1024 --n=256 --k=160 --iterations=0 --alpha=2 --beta=0.5"},
        "device_kernel", multiprocessors=8,
    ),
)  # fmt: skip


BLACKWELL: Final = "examples/cute/tutorial/blackwell"
NARROW: Final = "examples/72_blackwell_narrow_precision_gemm"
BLACKWELL_PROGRAMS: Final = tuple(
    Program(path, {name: words}, kernel, "100a", 148)
    for path, name, words, kernel in (
        (f"{BLACKWELL}/01_mma_sm100.cu", "blackwell_01", "128 256 128", "gemm_device"),
        (f"{BLACKWELL}/02_mma_tma_sm100.cu", "blackwell_02", "128 256 256", "gemm_device"),
        (f"{BLACKWELL}/03_mma_tma_multicast_sm100.cu", "blackwell_03", "512 1024 64", "gemm_device"),
        (f"{BLACKWELL}/04_mma_tma_2sm_sm100.cu", "blackwell_04", "512 1024 64", "gemm_device"),
        (f"{BLACKWELL}/05_mma_tma_epi_sm100.cu", "blackwell_05", "512 1024 64", "gemm_device"),
        (
            "examples/70_blackwell_gemm/70_blackwell_fp16_gemm.cu", "example_70",
            "--m=256 --n=128 --k=128 --iterations=0", "device_kernel",
        ),
        (
            f"{NARROW}/72a_blackwell_nvfp4_bf16_gemm.cu", "example_72a", "--m=256 --n=256 --k=256 --iterations=0",
            "device_kernel",
        ),
        (
            f"{NARROW}/72b_blackwell_nvfp4_nvfp4_gemm.cu", "example_72b", "--m=256 --n=256 --k=256 --iterations=0",
            "device_kernel",
        ),
        (
            f"{NARROW}/72c_blackwell_mixed_mxfp8_bf16_gemm.cu", "example_72c",
            "--m=256 --n=256 --k=256 --iterations=0", "device_kernel",
        ),
    )
)  # fmt: skip


GEFORCE_PROGRAMS: Final = (
    Program(
        "examples/79_blackwell_geforce_gemm/79a_blackwell_geforce_nvfp4_bf16_gemm.cu",
        {
            "example_79a": "--m=128 --n=128 --k=256 --iterations=0",
            "example_79a_tiles": "--m=256 --n=128 --k=384 --iterations=0",
        },
        "device_kernel", "120a", 188,
    ),
)  # fmt: skip


def build(program: Program, cutlass: Path, folder: Path) -> tuple[Path, str]:
    """(executable, PTX) of a program."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise SystemExit("nvcc is not on PATH")
    root = Path(shutil.which(nvcc) or nvcc).resolve().parent.parent
    if not (root / "include/cuda.h").exists():  # a script that starts it
        root = Path("/usr/local/cuda")
    folders = [
        cutlass / "include", cutlass / "tools/util/include", cutlass / "examples/common", HERE / "cutlass_include",
        root / "include", root / "include/cccl",
    ]  # fmt: skip
    include = [f"-I{one}" for one in folders]
    folder.mkdir(parents=True, exist_ok=True)
    name = Path(program.path).stem
    target = f"arch=compute_{program.arch},code=compute_{program.arch}"
    words = [nvcc, "-std=c++17", "-gencode", target, "--expt-relaxed-constexpr", "--keep", "--keep-dir", str(folder)]
    _call([*words, *include, "-c", str(cutlass / program.path), "-o", str(folder / "host.o")])
    _call(
        [
            "g++",
            "-std=c++17",
            "-O1",
            *include,
            "-c",
            str(HERE / "recording_runtime.cpp"),
            "-o",
            str(folder / "runtime.o"),
        ]
    )
    _call(["g++", "-o", str(folder / "program"), str(folder / "host.o"), str(folder / "runtime.o")])
    return folder / "program", (folder / f"{name}.ptx").read_text()


def _call(words: Sequence[str], **options: Any) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", check=False, timeout=TIME_LIMIT_SECONDS, **options
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:3])} ...: exit status {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def launch(executable: Path, words: str, ptx: str, program: Program) -> dict[str, Any]:
    """The launch that a program makes of the kernel whose name has `program.kernel` in it."""
    module = read_module(ptx)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [
            " ".join([entry, *[str(one.nbytes) for one in module.functions[entry].parameters]])
            for entry in module.entries
        ]
        (folder / "sizes.txt").write_text("\n".join(lines))
        environment = {**os.environ, "CUTE_PY_SIZES": str(folder / "sizes.txt"), "CUTE_PY_RECORD": name}
        environment["CUTE_PY_MULTIPROCESSORS"] = str(program.multiprocessors)
        environment["CUTE_PY_MAJOR"] = str(program.major)
        subprocess.run(
            [str(executable), *words.split()], capture_output=True, check=False, env=environment,
            timeout=TIME_LIMIT_SECONDS, cwd=name,
        )  # fmt: skip
        made = folder / "launches.txt"
        text = made.read_text() if made.exists() else ""
    found = [part for part in re.split(r"^launch ", text, flags=re.MULTILINE)[1:] if program.kernel in part.split()[0]]
    if len(found) != 1:
        raise SystemExit(f"{executable.name} {words}: {len(found)} launches of {program.kernel}")
    return row_of(found[0])


def row_of(text: str) -> dict[str, Any]:
    """The lines of one launch as a row."""
    head, *lines = text.splitlines()
    name, *numbers = head.split()
    sizes = [int(number) for number in numbers]
    parts: dict[str, list[list[str]]] = {"parameter": [], "allocation": [], "map": []}
    for line in lines:
        word, *rest = line.split()
        parts[word].append(rest)
    allocations = [(int(address), int(size)) for address, size in parts["allocation"]]
    maps = {int(one[0]): _map(one[1:], allocations) for one in parts["map"]}
    parameters = [bytes.fromhex(one[0]) for one in parts["parameter"]]
    return {
        "kernel": name,
        "grid": sizes[:3],
        "block": sizes[3:6],
        "cluster": sizes[6:9],
        "shared": sizes[9],
        "allocations": [size for _, size in allocations],
        "parameters": [_parameter(raw, allocations, maps) for raw in parameters],
    }


def _place(address: int, allocations: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """(number of the allocation, bytes from its start) of an address."""
    for number, (start, size) in enumerate(allocations):
        if start <= address < start + max(size, 1):
            return number, address - start
    return None


def _map(words: Sequence[str], allocations: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The arguments of a tensor map."""
    numbers = [int(word) for word in words]
    kind, rank, address = numbers[:3]
    rest = iter(numbers[3:])
    take = lambda count: [next(rest) for _ in range(count)]  # noqa: E731
    found: dict[str, Any] = {"data_type": kind, "place": _place(address, allocations)}
    found |= {"global_dim": take(rank), "global_strides": take(rank - 1), "box_dim": take(rank)}
    found |= {"element_strides": take(rank)}
    return found | dict(zip(("interleave", "swizzle", "l2_promotion", "oob_fill"), rest, strict=True))


def _parameter(raw: bytes, allocations: Sequence[tuple[int, int]], maps: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """A parameter: its bytes, with 0 for pointers and maps, and what stands there."""
    content = bytearray(raw)
    found: dict[str, Any] = {"pointers": {}, "maps": {}}
    at = 0
    while at + 8 <= len(raw):
        if raw[at : at + 8] == MAP_WORD and at + 128 <= len(raw):
            found["maps"][str(at)] = maps[int.from_bytes(raw[at + 8 : at + 16], "little")]
            content[at : at + 128] = bytes(128)
            at += 128
            continue
        place = _place(int.from_bytes(raw[at : at + 8], "little"), allocations)
        if place is not None:
            found["pointers"][str(at)] = place
            content[at : at + 8] = bytes(8)
        at += 8
    return {"bytes": content.hex(), **found}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.record.cutlass_kernels")
    parser.add_argument("cutlass", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs: sgemm_1, ...")
    parser.add_argument(
        "--keep", type=Path, help="a folder for what is compiled; programs that are there are not built"
    )
    parser.add_argument("--blackwell", action="store_true", help="the programs for sm_100a")
    parser.add_argument("--geforce", action="store_true", help="the programs for sm_120a")
    options = parser.parse_args(words)
    programs = BLACKWELL_PROGRAMS if options.blackwell else GEFORCE_PROGRAMS if options.geforce else PROGRAMS
    keep = options.keep or Path(tempfile.mkdtemp())
    made = []
    for program in programs:
        stem = Path(program.path).stem
        if options.only and stem not in options.only:
            continue
        print(stem, file=sys.stderr, flush=True)
        folder = keep / stem
        if (folder / "program").exists():
            executable, ptx = folder / "program", (folder / f"{stem}.ptx").read_text()
        else:
            executable, ptx = build(program, options.cutlass, folder)
        for name, line in program.launches.items():
            row = {
                "name": name,
                "program": program.path,
                "words": line,
                **launch(executable, line, ptx, program),
            }
            known = any(one["program"] == program.path for one in made)
            made.append(row | {"ptx": "" if known else ptx})
    with lzma.open(options.out, "wt", preset=9 | lzma.PRESET_EXTREME) as out:
        out.writelines(json.dumps(row) + "\n" for row in made)


if __name__ == "__main__":
    main()
