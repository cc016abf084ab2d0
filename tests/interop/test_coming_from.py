"""The page `coming from` has the same copy in every language; where that is installed, it reads its text."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "coming-from.md"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(PAGE.read_text())


def block(mark: str) -> str:
    """The one shown text that contains the mark (not the Python that prints it)."""
    found = [body for language, body in BLOCKS if mark in body and language != "python"]
    assert len(found) == 1, mark
    return found[0]


MARKS = {
    "CuTe C++": "SM90_TMA_LOAD{}",
    "CuTe DSL": "cpasync.make_tiled_tma_atom(",
    "Triton": "tl.make_tensor_descriptor(",
    "cuda.core": "as_tensor_map(",
    "the driver": "cuTensorMapEncodeTiled(",
}


@pytest.mark.parametrize("name", MARKS)
def test_every_language_has_the_copy(name: str) -> None:
    """128 x 64 halves of 1024 x 512, under the 128-byte swizzle."""
    text = block(MARKS[name])
    assert "128" in text
    assert "64" in text
    assert name in PAGE.read_text().split("\n", 1)[0] or name == "the driver"


@pytest.mark.parametrize("name", ["CuTe DSL", "Triton", "cuda.core"])
def test_python_is_python(name: str) -> None:
    ast.parse(block(MARKS[name]))


def compiled(tmp_path: Path, module: str, rest: str) -> str:
    """What a program of the page's text and `rest` prints, run in a process of its own."""
    (tmp_path / "page.py").write_text(block(module))
    (tmp_path / "rest.py").write_text(rest)
    environment = {**os.environ, "CUTE_DSL_ARCH": "sm_90a", "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    run = subprocess.run(
        [sys.executable, "rest.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.skipif(importlib.util.find_spec("cutlass") is None, reason="CuTe DSL is not installed")
def test_the_dsl_compiles_it_to_one_tensor_copy(tmp_path: Path) -> None:
    program = (
        "import cutlass, cutlass.cute as cute\n"
        "from page import host\n"
        "from cutlass.cute.runtime import make_fake_compact_tensor as fake\n"
        "x = fake(cutlass.Float16, (1024, 512), stride_order=(1, 0), assumed_align=16)\n"
        "print(cute.compile(host, x, options='--gpu-arch sm_90a --keep-ptx').__ptx__)\n"
    )
    text = compiled(tmp_path, MARKS["CuTe DSL"], program)
    assert text.count("cp.async.bulk.tensor.2d") == 1


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_triton_compiles_it_with_the_same_swizzle(tmp_path: Path) -> None:
    program = (
        "import triton\n"
        "import use\n"
        "from triton.backends.compiler import GPUTarget\n"
        "types = {'pointer': '*fp16', 'out': '*fp16', 'm': 'i32', 'k': 'i32'}\n"
        "source = triton.compiler.ASTSource(fn=use.store_tile, signature=types, constexprs={})\n"
        "print(triton.compile(source, target=GPUTarget('cuda', 90, 32)).asm['ptx'])\n"
    )
    (tmp_path / "use.py").write_text(
        "import triton\n"
        "import triton.language as tl\n"
        "from page import load_tile\n\n\n"
        "@triton.jit\n"
        "def store_tile(pointer, out, m, k):\n"
        "    place = tl.arange(0, 128)[:, None] * 64 + tl.arange(0, 64)[None, :]\n"
        "    tl.store(out + place, load_tile(pointer, m, k))\n"
    )
    text = compiled(tmp_path, MARKS["Triton"], program)
    assert text.count("cp.async.bulk.tensor.2d.shared") == 1
    assert re.search(r"tensormap\.replace\.tile\.swizzle_mode\S* \[[^]]*\], 0x3;", text)
