"""Cubins of every kernel: a few modules, assembled by ptxas; no GPU is needed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.silicon.conversions import build_conversions
from benchmarks.silicon.forms import group_forms, matrix_forms, mover_forms
from benchmarks.silicon.kernels import REDUCE, group_kernel, matrix_kernel, module, mover_kernel

PER_MODULE = 180
"""wgmma kernels of one module."""


def modules() -> Iterator[tuple[str, str]]:
    """(name, PTX) of each module."""
    yield "matrix", module([matrix_kernel(x.form) for x in matrix_forms()])
    movers = mover_forms()
    yield "mover", module([mover_kernel(x.entry, x.instruction, x.sources, x.results, x.image) for x in movers])
    for name, sparse in (("group", False), ("sparse", True)):
        texts = [group_kernel(x.form) for x in group_forms(sparse)]
        for start in range(0, len(texts), PER_MODULE):
            yield f"{name}{start // PER_MODULE}", module(texts[start : start + PER_MODULE])


def _assemble(name: str, text: str, folder: Path) -> str:
    path = folder / f"{name}.ptx"
    path.write_text(text)
    command = ["ptxas", "-arch=sm_90a", str(path), "-o", str(folder / f"{name}.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    path.unlink()
    return f"{name}: {done.returncode} {done.stderr[:2000]}"


def build(folder: Path) -> Sequence[str]:
    """Write the cubins; returns a line for each module, with what ptxas said of it."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda x: _assemble(*x, folder), modules()))
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "reduce.cu"
        source.write_text(REDUCE)
        target = folder / "reduce.cubin"
        command = ["nvcc", "-gencode=arch=compute_90a,code=sm_90a", "-cubin", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return [*said, build_conversions(folder), f"reduce: {done.returncode} {done.stderr[:2000]}"]
