"""Changes that need arithmetic: functions of the numbers in a message, by the name that a row has for them.

A calculator takes the groups of a row's pattern, as integers (0 where a group is no number), and returns the change;
an empty text means that there is none to offer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

Numbers = Sequence[int]


def _up(n: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-n // unit) * unit


# ---- tensor maps ----------------------------------------------------------------------------------------------------


def wider_block(n: Numbers) -> str:
    """Of (elements, bytes of one): a last block dimension of 16 bytes."""
    width = n[1] or 1
    least = -(-16 // width)
    return f"a last block dimension of at least {least}: {least} elements x {width} bytes = {least * width} bytes"


def fitted_box_row(n: Numbers) -> str:
    """Of (elements, bits of one): the innermost box as a multiple of 16 bytes."""
    edge, bits = n[:2]
    if not bits or bits > 128:
        return ""
    unit = max(1, 128 // bits)
    fitted = max(unit, _up(edge, unit))
    return f"boxDim[0] = {fitted}: {fitted} x {bits} bits = {fitted * bits // 8} bytes"


def span_of_elements(n: Numbers) -> str:
    """Of (bytes of the swizzle, elements, bits of one): the innermost box that is one span."""
    span, _, bits = n[:3]
    return f"boxDim[0] = {span * 8 // bits} elements = {span} bytes, or a wider swizzle" if bits else ""


def box_part(n: Numbers) -> str:
    """Of (mode, elements): the largest part of a box along a mode that a map holds."""
    part = next(k for k in range(256, 0, -1) if n[1] % k == 0)
    return f"boxDim[{n[0]}] = {part}, several copies a tile"


def padded_stride(n: Numbers) -> str:
    """Of (mode, bytes, unit): a stride that is a multiple of the unit."""
    return f"pad the row: {_up(n[1], n[2])} bytes in place of {n[1]}" if n[2] else ""


def padded_row(n: Numbers) -> str:
    """Of (matrix, unit, rows, elements of a row): a row that is a multiple of the unit."""
    return f"pad the row to {_up(n[3], n[1])} elements" if n[1] else ""


# ---- shared memory and targets --------------------------------------------------------------------------------------


def smaller_block(n: Numbers) -> str:
    """Of (bytes that are asked for, bytes that there are): how many less."""
    return f"fewer stages or a smaller block: {n[0] - n[1]} bytes less"


def fewer_staged_bytes(n: Numbers) -> str:
    """The same of a collective of CUTLASS."""
    return f"fewer stages (StageCount<n> in place of Auto) or a smaller tile: {n[0] - n[1]} bytes less"


def fewer_stages(n: Numbers) -> str:
    """Of (bytes that are asked for): how many less for the GPUs with the most and the least shared memory."""
    from cute_py.tma.descriptor.limits import GPUS  # with all of its package, which the rows of words do without

    over = [(n[0] - row.block_shared_memory_bytes, row.name) for row in (GPUS["sm_90"], GPUS["sm_120"])]
    return "fewer stages, or smaller tiles: " + "; ".join(f"{k} bytes less for {name}" for k, name in over if k > 0)


def own_target(n: Numbers) -> str:
    """Of (number of the architecture, or 0): the option that names the GPU's own target."""
    if n[0]:
        return f"the target that has them, if it is the GPU's own: -arch=sm_{n[0]}{'a' * (n[0] >= 90)}"
    return "the GPU's own target: -arch=sm_90a (sm_100a, sm_103a, sm_120a), not sm_90 or an older PTX"


def listed_target(n: Numbers) -> str:
    """Of (number of the architecture): what a GPU that lacks wgmma and tcgen05 has instead."""
    if n[0] // 10 == 12:
        return "the warp's operations: MmaF16BF16Op, MmaSM120BlockScaledOp of cute.nvgpu.warp"
    return (
        "a GPU of the list, with CUTE_DSL_ARCH set to its own name (sm_90a, sm_100a), which also compiles for it where "
        "there is no GPU"
    )


# ---- operations of CuTe DSL -----------------------------------------------------------------------------------------


def _bytes_of(bits: int) -> int:
    return max(bits // 8, 1)


def matrix_rows(n: Numbers) -> str:
    """Of (bits that are known, bits of a row): how ldmatrix and stmatrix want their rows."""
    need = _bytes_of(n[1])
    return (
        f"rows of {need} bytes that lie side by side: K-major tiles as they are, MN-major ones with transpose=True; "
        f"the other strides multiples of {need} bytes, byte_alignment={need} of the shared memory"
    )


def aligned_values(n: Numbers) -> str:
    """Of (bits that are known, bits that one operation moves): how a thread's values must lie."""
    have, need = n[:2]
    narrower = f"; or a copy of {have} bits (num_bits_per_copy={have})" if have in (32, 64) else ""
    return (
        f"{_bytes_of(need)} bytes side by side for each thread: values along the mode of stride 1, as many as fill "
        f"them, the other strides multiples of {_bytes_of(need)} bytes; assumed_align={_bytes_of(need)} of "
        f"from_dlpack, byte_alignment={_bytes_of(need)} of shared memory{narrower}"
    )


def assumed_alignment(n: Numbers) -> str:
    """Of (bits that one operation moves): what CuTe DSL must be told of the pointer."""
    return (
        f"from_dlpack(x, assumed_align={n[0] // 8}) and strides known to be multiples of it "
        f"(mark_compact_shape_dynamic(divisibility=...), cute.assume), or fewer than {n[0]} bits a copy"
    )


def instruction_extent(n: Numbers) -> str:
    """Of (N): the nearest N of an instruction."""
    return f"N = {min(max(_up(n[0], 8), 8), 256)}, or another multiple of 8 up to 256"


def instruction_rows(n: Numbers) -> str:
    """Of (one M, the other M, the M that is asked for): the M of one instruction."""
    return f"M = {n[0] if n[2] <= n[0] else n[1]}; other tiles are several instructions, or padded"


def instruction_depth(n: Numbers) -> str:
    """Of (K of an instruction, K of the tile): how many instructions."""
    return f"K = {n[0]} here, and {-(-n[1] // max(n[0], 1))} instructions, one for each k of A[None, None, k]"


def divisibility(n: Numbers) -> str:
    """Of (size, mode, divisor that was declared): the divisor that holds, and the size for the declared one."""
    return f"divisibility={math.gcd(n[0], n[2])}, or a mode padded to {_up(n[0], n[2]) if n[2] else 0}"


CALCULATORS: Final[dict[str, Callable[[Numbers], str]]] = {
    function.__name__: function
    for function in (
        wider_block,
        fitted_box_row,
        span_of_elements,
        box_part,
        padded_stride,
        padded_row,
        smaller_block,
        fewer_staged_bytes,
        fewer_stages,
        own_target,
        listed_target,
        matrix_rows,
        aligned_values,
        assumed_alignment,
        instruction_extent,
        instruction_rows,
        instruction_depth,
        divisibility,
    )
}
"""Name -> calculator."""
