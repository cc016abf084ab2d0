"""Copy bytes that no tensor store can write, with one thread per byte: the ends of rows that are not multiples of 16
bytes.

A tensor store writes up to the next multiple of 16 bytes, and would overwrite the bytes after such a row. The copy
engine moves the full 16-byte units of such rows, and threads copy the rest. Threads also copy a run of less than 16
bytes.
"""

from __future__ import annotations

import math
from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.source import KernelSource, make_kernel

EDGE_THREADS: Final = 256

_BODY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_edges(const u8* source, u8* destination) {
  u64 rest = (u64)blockIdx.x * THREADS + threadIdx.x, from = 0, to = 0;
  if (rest >= TOTAL) return;
%(steps)s
  destination[to] = source[from];
}
"""


def copy_edges(modes: tuple[tuple[int, int, int], ...]) -> KernelSource:
    """Make a kernel that copies the bytes of `modes`, each (size, source stride in bytes, destination stride in bytes).

    Raises:
        InvalidValueError: a size is not positive, or a stride is negative.

    >>> copy_edges(((4, 1, 1), (100, 132, 160))).facts["TOTAL"]
    400
    """
    for number, (size, source, destination) in enumerate(modes):
        if size < 1 or source < 0 or destination < 0:
            raise InvalidValueError(
                f"mode {number}: size {size}, strides {source} and {destination}; "
                "a size must be positive, strides not negative"
            )
    constants = {"THREADS": EDGE_THREADS, "TOTAL": math.prod(size for size, _, _ in modes)}
    steps = [
        f"  from += rest % {size}ull * {source}ull; to += rest % {size}ull * {destination}ull; rest /= {size}ull;"
        for size, source, destination in modes
    ]
    body, parameters = _BODY % {"steps": "\n".join(steps)}, ("tail_source", "tail_destination")
    return make_kernel("copy_edges", body, constants, 0, parameters, facts={"modes": modes})
