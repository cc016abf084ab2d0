"""Minimal kernels of a permutation's access pattern, everything folded: what a copy that plans nothing reaches.

    vector   a thread gathers one vector of the destination from the source, element by element, through the caches
    shared   a block turns a tile of 32 x 32 elements between both innermost modes in padded shared memory
    maps     the copy engine's kernel for the pattern, where tensor maps can describe both sides

The best of them is the ceiling that benchmarks/relayout.py shows beside a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cute_py.copies.modes import CopyMode
from cute_py.gpu.kernels.source import KernelSource, make_kernel

TYPES: Final = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "uint4"}
SIDE: Final = 32
"""Elements of a tile along both modes."""

_VECTOR: Final = r"""
struct __align__(VECTOR_BYTES) Vector { ELEMENT part[PER]; };
extern "C" __global__ void __launch_bounds__(THREADS) ceiling(const ELEMENT* source, ELEMENT* destination) {
  const u64 number = (u64)blockIdx.x * THREADS + threadIdx.x;
  if (number >= TOTAL / PER) return;
  u64 rest = number * PER, from = 0, to = 0, digit;
%(digits)s
  Vector held;
#pragma unroll
  for (u32 v = 0; v < PER; ++v) held.part[v] = source[from + v * STEP];
  *(Vector*)(destination + to) = held;
}
"""

_SHARED: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) ceiling(const ELEMENT* source, ELEMENT* destination) {
  __shared__ ELEMENT tile[SIDE][SIDE + 1];
  u64 rest = blockIdx.x, from = 0, to = 0, digit;
  const u32 across = (u32)(rest %% ACROSS) * SIDE;
  rest /= ACROSS;
  const u32 down = (u32)(rest %% DOWN) * SIDE;
  rest /= DOWN;
%(digits)s
  const u32 x = threadIdx.x %% SIDE, y = threadIdx.x / SIDE;
#pragma unroll
  for (u32 k = 0; k < SIDE; k += THREADS / SIDE)
    if (down + x < ROWS && across + y + k < COLUMNS)
      tile[y + k][x] = source[from + down + x + (u64)(across + y + k) * STEP];
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < SIDE; k += THREADS / SIDE)
    if (across + x < COLUMNS && down + y + k < ROWS)
      destination[to + across + x + (u64)(down + y + k) * OTHER] = tile[x][y + k];
}
"""


def _digits(modes: Sequence[CopyMode]) -> str:
    lines = []
    for mode in modes:
        lines.append(f"  digit = rest % {mode.size}ull; rest /= {mode.size}ull;")
        lines.append(f"  from += digit * {mode.source}ull; to += digit * {mode.destination}ull;")
    return "\n".join(lines)


def vector_kernel(modes: Sequence[CopyMode], element: int) -> tuple[KernelSource, int]:
    """The kernel and its blocks. modes: in elements, strides positive, the destination's innermost first."""
    total, first = 1, modes[0]
    for mode in modes:
        total *= mode.size
    per = next(
        n
        for n in (16 // element, 8 // element, 4 // element, 1)
        if n and first.size % n == 0 and not any(m.destination % n for m in modes[1:])
    )
    constants = {
        "THREADS": 256,
        "PER": per,
        "TOTAL": total,
        "STEP": first.source,
        "VECTOR_BYTES": per * element,
    }
    body = f"typedef {TYPES[element]} ELEMENT;\n" + _VECTOR % {"digits": _digits(modes)}
    return make_kernel("ceiling", body, constants, 0, ("source", "destination")), -(-total // per // 256)


def shared_kernel(modes: Sequence[CopyMode], element: int) -> tuple[KernelSource, int] | None:
    """The kernel and its blocks; None where both sides walk the same mode first."""
    inner = min(range(len(modes)), key=lambda i: modes[i].source)
    if inner == 0:
        return None
    first, other = modes[0], modes[inner]
    rest = [m for i, m in enumerate(modes) if i not in (0, inner)]
    across, down = -(-first.size // SIDE), -(-other.size // SIDE)
    blocks = across * down
    for mode in rest:
        blocks *= mode.size
    constants = {
        "THREADS": 256,
        "SIDE": SIDE,
        "ACROSS": across,
        "DOWN": down,
        "COLUMNS": first.size,
        "ROWS": other.size,
        "STEP": first.source,
        "OTHER": other.destination,
    }
    body = f"typedef {TYPES[element]} ELEMENT;\n" + _SHARED % {"digits": _digits(rest)}
    return make_kernel("ceiling", body, constants, 0, ("source", "destination")), blocks
