"""Arrays and streams of CuPy, which has none without a GPU; and cuda.core's streams and tensor maps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.gpu.device import device_available

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no GPU with TMA (or no driver, or no cuda-python)"),
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "coming-from.md"
TILE = Layout((Int(32), Int(32)), LayoutRight)


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy", reason="CuPy is not installed")


def test_an_array_is_copied_where_it_lies(cupy: Any) -> None:
    x = cupy.arange(256 * 128, dtype=cupy.float32).reshape(256, 128)
    tensor = cute.make_tensor(x)
    assert str(tensor) == f"gmem_ptr[32b]({x.data.ptr:#x}) o (256,128):(128,_1)"
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, TILE)
    result = cute.tma.copy(atom, x, backend="both")
    assert result.equal
    assert bool((result.destination == x).all())


def test_a_view_and_a_stream(cupy: Any) -> None:
    x = cupy.arange(256 * 128, dtype=cupy.float32).reshape(256, 128)[16:80, 32:96]
    y, stream = cupy.zeros_like(x), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, TILE)
    assert cute.tma.copy(atom, x, y, backend="cuda", stream=stream).equal is None
    stream.synchronize()
    assert bool((x == y).all())


def test_the_program_for_cuda_core_leaves_the_bytes_of_the_emulator(cupy: Any) -> None:
    pytest.importorskip("cuda.core.utils", reason="cuda.core is not installed")
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (program,) = [block for block in blocks if "cuda.core" in block]
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    exec(program, names)
    tile = cute.tma.execute(names["atom"], names["array"].get(), (1, 1)).smem
    assert names["image"].get().view(np.uint8).tobytes() == tile.tobytes()
