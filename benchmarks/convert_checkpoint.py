"""Times of `cute-py convert` beside torchao's own conversion of the same checkpoint, on a CPU.

    python -m benchmarks.convert_checkpoint          prints a table

Both read a .safetensors file of bfloat16 weights and write one. torchao reads all of it, converts each weight
(`MXTensor.to_mx`, `NVFP4Tensor.to_nvfp4`), flattens the tensors and writes them with safetensors.torch. `convert` also
computes checksums, brings the file onto the disk (fsync), and keeps a journal. The bytes of the weights are compared.
Needs torch and torchao, and nothing else of the project does.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPES = {"q_proj": (2048, 2048), "o_proj": (2048, 2048), "up_proj": (5632, 2048), "down_proj": (2048, 5632)}
LAYERS = 2
"""125 MB of bfloat16."""

OURS = """
import sys, time
from cute_py.checkpoints import convert
begin = time.perf_counter(), time.process_time()
convert(sys.argv[1], sys.argv[2], sys.argv[3], convention="torchao")
"""
THEIRS = """
import os, sys, time, torch
from pathlib import Path
from safetensors.torch import load_file, save_file
from torchao.prototype.mx_formats.mx_tensor import MXTensor, ScaleCalculationMode
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
begin = time.perf_counter(), time.process_time()
made = {}
for name, w in load_file(sys.argv[1]).items():
    if sys.argv[3].startswith("nvfp4"):
        total = per_tensor_amax_to_scale(w.abs().max().float())
        made[name] = NVFP4Tensor.to_nvfp4(w, per_tensor_scale=total, is_swizzled_scales=True)
    else:
        made[name] = MXTensor.to_mx(w, torch.float8_e4m3fn, 32, ScaleCalculationMode.FLOOR, is_swizzled_scales=True)
data, metadata = flatten_tensor_state_dict(made)
Path(sys.argv[2]).mkdir(exist_ok=True)
save_file(data, os.path.join(sys.argv[2], "model.safetensors"), metadata)
"""
REPORT = """
print(time.perf_counter() - begin[0], time.process_time() - begin[1],
      [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""
FORMATS = ("mxfp8(rule='floor')", "nvfp4()")


def checkpoint(folder: Path) -> Path:
    """A file of random weights in bfloat16."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    tensors = {
        f"layers.{layer}.{name}.weight": torch.randn(shape, dtype=torch.bfloat16)
        for layer in range(LAYERS)
        for name, shape in SHAPES.items()
    }
    path = folder / "model.safetensors"
    save_file(tensors, path)
    return path


def timed(program: str, *arguments: str) -> tuple[float, float, float]:
    """Seconds of a conversion without imports, its seconds of processor time, and its peak memory in MiB."""
    command = [sys.executable, "-W", "ignore", "-c", program + REPORT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, processor, peak = map(float, done.stdout.split()[-3:])
    return seconds, processor, peak / 1024


def same(one: Path, other: Path) -> bool:
    """Whether two files hold the same tensors."""
    from safetensors.torch import load_file

    a, b = load_file(one), load_file(other)
    import torch

    return set(a) == set(b) and all(
        torch.equal(a[n].reshape(-1).view(torch.uint8), b[n].reshape(-1).view(torch.uint8)) for n in a
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--format", action="append", choices=FORMATS)
    options = parser.parse_args()
    repeat = options.repeat
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = checkpoint(folder)
        size = source.stat().st_size / 1e6
        print(f"| format, {size:.0f} MB of bfloat16 | who | seconds | processor seconds | peak memory, MiB |")
        print("|---|---|---|---|---|")
        for form in options.format or FORMATS:
            for who, program in (("cute-py convert", OURS), ("torchao", THEIRS)):
                found = []
                for i in range(repeat):
                    out = folder / f"{who.split()[0]}-{form[:5]}-{i}"
                    found.append(timed(program, str(source), str(out), form))
                seconds, processor, peak = (statistics.median(column) for column in zip(*found, strict=True))
                print(f"| `{form}` | {who} | {seconds:.2f} | {processor:.2f} | {peak:.0f} |", flush=True)
            files = [folder / f"{who}-{form[:5]}-0" / "model.safetensors" for who in ("cute-py", "torchao")]
            print(f"<!-- the same bytes: {same(*files)} -->")


if __name__ == "__main__":
    main()
