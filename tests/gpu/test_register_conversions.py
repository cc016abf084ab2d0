"""Register conversions and warps on the device: random pairs of thread-value layouts, and recorded results of PTX."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.silicon.conversions import cases, run_conversions, source_text
from benchmarks.silicon.device import Runner
from benchmarks.silicon.forms import matrix_forms, mover_forms
from benchmarks.silicon.kernels import matrix_kernel, module, mover_kernel
from benchmarks.silicon.measure import run_matrix, run_mover
from cute_py.gpu.nvrtc import run_nvrtc
from cute_py.ptx.module import assemble_module, find_ptxas
from tests.oracle.records import rows


def test_conversions_move_every_element(tmp_path: Path) -> None:
    (tmp_path / "convert.cubin").write_bytes(run_nvrtc(source_text(), "convert", "sm_90a", "cubin"))
    run_conversions(Runner(tmp_path), tmp_path)
    report = json.loads((tmp_path / "conversions.json").read_text())
    assert (report["equal"], report["different"]) == (len(cases()), [])


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_instructions_give_what_is_recorded(tmp_path: Path) -> None:
    """Operands of the same seeds: the digests that the emulated warps are compared with."""
    movers = [mover_kernel(x.entry, x.instruction, x.sources, x.results, x.image) for x in mover_forms()]
    for name, text in (("matrix", module([matrix_kernel(x.form) for x in matrix_forms()])), ("mover", module(movers))):
        accepted, messages, cubin = assemble_module(text, "sm_90a")
        assert accepted, messages
        (tmp_path / f"{name}.cubin").write_bytes(cubin)
    runner = Runner(tmp_path)
    run_matrix(runner, tmp_path)
    run_mover(runner, tmp_path)
    for row in rows("h200_warps"):
        if row["kind"] in ("matrix", "mover"):
            found = json.loads((tmp_path / f"{row['kind']}.json").read_text())[row["name"]]
            assert found.get("digests", [found.get("digest")]) == row["digests"], row["name"]
