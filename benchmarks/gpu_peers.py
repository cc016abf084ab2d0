"""The peers of the GPU benchmark: the driver's memcpy, PyTorch, CuTe C++, and Triton through maps and pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_py.gpu.bindings import call, driver


def memcpy(destination: Any, source: Any, size: int, torch: Any) -> None:
    """cuMemcpyDtoDAsync on PyTorch's current stream."""
    api = driver()
    stream = torch.cuda.current_stream().cuda_stream
    call("memcpy", api.cuMemcpyDtoDAsync, destination.data_ptr(), source.data_ptr(), size, stream)


def triton_tma(pairs: list[tuple[Any, Any]], rows: int, columns: int, warps: int = 4) -> Callable[[int], object]:
    """A copy by Triton's tensor descriptors, one tile a program. Raises ImportError without Triton."""
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    globals()["tl"] = tl

    @triton.jit
    def kernel(source, destination, across, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
        tile = tl.program_id(0)
        row = tile // across * ROWS
        column = tile % across * COLUMNS
        destination.store([row, column], source.load([row, column]))

    described = [tuple(TensorDescriptor.from_tensor(t, [rows, columns]) for t in pair) for pair in pairs]
    height, width = pairs[0][0].shape
    grid = (height // rows * (width // columns),)

    def run(i: int) -> None:
        source, destination = described[i]
        kernel[grid](source, destination, width // columns, rows, columns, num_warps=warps)

    return run


def cute_cpp(pairs: list[tuple[Any, Any]], library: str, torch: Any) -> Callable[[int], object]:
    """A copy by CuTe C++, `cute_cpp_peer.cu` built as a shared library. Raises OSError without it."""
    import ctypes

    peer = ctypes.CDLL(library)
    peer.prepare.restype = ctypes.c_void_p
    peer.prepare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    peer.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    prepared = [peer.prepare(a.data_ptr(), b.data_ptr(), *a.shape) for a, b in pairs]

    def run(i: int) -> None:
        error = peer.launch(prepared[i], torch.cuda.current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"CUDA error {error}")

    return run


def triton_transpose(pairs: list[tuple[Any, Any]], edge: int = 128, warps: int = 8) -> Callable[[int], object]:
    """A transposition by Triton through pointers and tl.trans. Raises ImportError without Triton."""
    import triton
    import triton.language as tl

    globals()["tl"] = tl

    @triton.jit
    def kernel(source, destination, rows, columns, EDGE: tl.constexpr):  # type: ignore[no-untyped-def]
        down = rows // EDGE
        tile = tl.program_id(0)
        r = tile % down * EDGE + tl.arange(0, EDGE)
        c = tile // down * EDGE + tl.arange(0, EDGE)
        x = tl.load(source + r[:, None].to(tl.int64) * columns + c[None, :])
        tl.store(destination + c[:, None].to(tl.int64) * rows + r[None, :], tl.trans(x))

    rows, columns = pairs[0][0].shape
    grid = (rows // edge * (columns // edge),)

    def run(i: int) -> None:
        source, destination = pairs[i]
        kernel[grid](source, destination, rows, columns, edge, num_warps=warps)

    return run
