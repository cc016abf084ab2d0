"""The cost of watching an encode, and a watch of a PyTorch + Triton program: for a machine with a GPU.

    python -m benchmarks.watched > watched.json

Look at: `ns_each_watched` - `ns_each` (the overhead per encode, less than 20 us), and the report of the Triton program:
each descriptor by libcuda's caller, with the kernel that takes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CALLS = 20_000

ENCODES = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
u64, u32 = ctypes.c_uint64, ctypes.c_uint32
raw = (ctypes.c_uint8 * 192)()
at = (ctypes.addressof(raw) + 63) & ~63
dim, strides, box, steps = (u64 * 2)(256, 128), (u64 * 1)(512), (u32 * 2)(64, 64), (u32 * 2)(1, 1)
call = cuda.cuTensorMapEncodeTiled
def encode():
    return call(ctypes.c_void_p(at), 6, u32(2), ctypes.c_void_p(1 << 20), dim, strides, box, steps, 0, 3, 0, 0)
assert encode() == 0
best = []
for _ in range(5):
    start = time.perf_counter_ns()
    for _ in range(int(sys.argv[1])): encode()
    best.append((time.perf_counter_ns() - start) / int(sys.argv[1]))
strides[0] = 520
assert encode() == 1
print(sorted(best)[2])
"""

TRITON = """
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def double(source, destination, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    destination.store([row, column], source.load([row, column]) * 2)

x = torch.randn(512, 512, device="cuda", dtype=torch.float16)
y = torch.empty_like(x)
for _ in range(20):
    a, b = TensorDescriptor.from_tensor(x, [64, 64]), TensorDescriptor.from_tensor(y, [64, 64])
    double[(8, 8)](a, b, 64, 64)
torch.cuda.synchronize()
assert torch.equal(y, x * 2)
print("doubled")
"""


def watched(folder: Path, script: str, *arguments: str) -> tuple[str, dict[str, object]]:
    """(what the script printed, the report) of a watched script."""
    path, out = folder / "script.py", folder / "report.json"
    path.write_text(script)
    command = [
        sys.executable,
        "-m",
        "cute_py",
        "watch",
        "--json",
        "--report",
        str(out),
        "--",
        sys.executable,
        str(path),
    ]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}")
    return done.stdout.strip(), json.loads(out.read_text())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "encodes.py"
        path.write_text(ENCODES)
        plain = [
            float(
                subprocess.run(
                    [sys.executable, str(path), str(CALLS)], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(3)
        ]
        with_watch = [float(watched(folder, ENCODES, str(CALLS))[0]) for _ in range(3)]
        report = watched(folder, ENCODES, str(CALLS))[1]
        found = {
            "calls": CALLS,
            "ns_each": sorted(plain)[1],
            "ns_each_watched": sorted(with_watch)[1],
            "encodes": report,
            "triton": watched(folder, TRITON)[1],
        }
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
