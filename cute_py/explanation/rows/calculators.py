"""Functions that compute a change from the numbers in a message; a row of a table names its function.

A calculator takes `n`, the groups of a row's pattern as integers (0 for a group that is not a number). It returns an
`Offer`: the text of the change, and a function that makes the changed object. `offers.passes_check` then decides
whether the change is shown. A calculator returns None if there is no change to offer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

Numbers = Sequence[int]


class Offer(NamedTuple):
    """A change that is offered if its object passes `passes_check`.

    Attributes:
        text: the printed text of the change.
        make: a function that makes the changed object for `passes_check`: a tensor map, or True if the numbers meet the
            rule, else None.
    """

    text: str
    make: Callable[[], object]


def _up(n: int, unit: int) -> int:
    """Round up to a multiple of `unit`."""
    return -(-n // unit) * unit


def _where(holds: bool) -> Callable[[], object]:
    """Return a function that returns True if `holds`, else None, for changes that make no object."""
    return lambda: holds or None


# ---- tensor maps ----------------------------------------------------------------------------------------------------


def _map(box: int, bits: int = 8, swizzle: int = 0, stride: int = 0, other: int = 1) -> Callable[[], object]:
    """Return a function that makes a tensor map with the innermost box extent `box`, the outer extent `other` and the
    outer stride in bytes; it returns None for an unknown width."""

    def make() -> object:
        from cute_py.tma.descriptor.request import TensorMapTiled  # imports its package, which the text does not need

        kind = {8: 0, 16: 1, 32: 2, 64: 4}.get(bits)
        if kind is None:
            return None
        width = bits // 8
        size = max(_up(box, 16), 16)
        row = stride or _up(size * width, 256)
        elements = min(size, max(row // width, 1))
        return TensorMapTiled(kind, 4096, (elements, max(other, 1)), (row,), (box, other), swizzle=swizzle)

    return make


def wider_block(n: Numbers) -> Offer:
    """Offer a last block dimension of at least 16 bytes. `n`: (elements, bytes per element)."""
    width = n[1] or 1
    least = -(-16 // width)
    text = f"use a last block dimension of at least {least}: {least} elements x {width} bytes = {least * width} bytes"
    return Offer(text, _map(least, 8 * width))


def fitted_box_row(n: Numbers) -> Offer | None:
    """Offer an innermost box extent that is a multiple of 16 bytes. `n`: (elements, bits per element)."""
    edge, bits = n[:2]
    if not bits or bits > 128:
        return None
    unit = max(1, 128 // bits)
    fitted = max(unit, _up(edge, unit))
    return Offer(f"boxDim[0] = {fitted}: {fitted} x {bits} bits = {fitted * bits // 8} bytes", _map(fitted, bits))


def span_of_elements(n: Numbers) -> Offer | None:
    """Offer an innermost box extent of one swizzle span. `n`: (bytes of the swizzle, elements, bits per element)."""
    span, _, bits = n[:3]
    if not bits or span not in _SWIZZLES:
        return None
    box = span * 8 // bits
    return Offer(f"boxDim[0] = {box} elements = {span} bytes, or a wider swizzle", _map(box, bits, _SWIZZLES[span]))


_SWIZZLES: Final = {32: 1, 64: 2, 128: 3}
"""Bytes of a span -> the driver's code of the swizzle."""


def box_part(n: Numbers) -> Offer:
    """Offer the largest divisor of a box extent that a tensor map can encode. `n`: (mode, elements)."""
    mode, edge = n[:2]
    part = next(k for k in range(256, 0, -1) if edge % k == 0)
    make = _map(part) if mode == 0 else _map(16, other=part)
    return Offer(f"boxDim[{mode}] = {part}, and several copies per tile", make)


def padded_stride(n: Numbers) -> Offer | None:
    """Offer a stride padded to a multiple of the unit. `n`: (mode, bytes, unit)."""
    if not n[2]:
        return None
    padded = _up(n[1], n[2])
    return Offer(f"pad the row to {padded} bytes from {n[1]}", _map(16, stride=padded))


def padded_row(n: Numbers) -> Offer | None:
    """Offer a row padded to a multiple of the unit. `n`: (matrix, unit, rows, elements per row)."""
    if not n[1]:
        return None
    padded = _up(n[3], n[1])
    return Offer(f"pad the row to {padded} elements", _where(padded > n[3] and padded % n[1] == 0))


def padded_matrix(n: Numbers) -> Offer | None:
    """Offer a matrix padded to multiples of the unit in both modes. `n`: (matrix, rows, columns, unit)."""
    if not n[3]:
        return None
    rows, columns = _up(n[1], n[3]), _up(n[2], n[3])
    return Offer(f"pad the matrix to {rows} x {columns} elements", _where((rows, columns) != (n[1], n[2])))


def transposed_matrix(n: Numbers) -> Offer | None:
    """Offer to transpose one of two matrices whose product is refused. `n`: (rows, columns, rows, columns)."""
    if n[1] == n[3]:
        return Offer("pass mat2.t()", _where(n[1] != n[2]))
    text = f"pass mat1.t(), if the product is the sum over the {n[0]} rows of mat1"
    return Offer(text, _where(n[1] != n[2])) if n[0] == n[2] else None


# ---- shared memory and targets --------------------------------------------------------------------------------------


def smaller_block(n: Numbers) -> Offer:
    """Offer fewer stages or a smaller block, with the number of bytes to save. `n`: (requested bytes, available
    bytes)."""
    return Offer(f"use fewer stages or a smaller block: {n[0] - n[1]} bytes less", _where(n[0] > n[1] > 0))


def fewer_staged_bytes(n: Numbers) -> Offer:
    """Offer fewer stages or a smaller tile in a CUTLASS collective, with the number of bytes to save. `n`: (requested
    bytes, available bytes)."""
    text = f"use fewer stages (StageCount<n> instead of Auto) or a smaller tile: {n[0] - n[1]} bytes less"
    return Offer(text, _where(n[0] > n[1] > 0))


def fewer_stages(n: Numbers) -> Offer:
    """Offer fewer stages or smaller tiles, with the number of bytes to save on the GPUs with the most and the least
    shared memory. `n`: (requested bytes,)."""
    from cute_py.tma.descriptor.limits import GPUS  # imports its whole package, which other rows do not need

    over = [(n[0] - row.block_shared_memory_bytes, row.name) for row in (GPUS["sm_90"], GPUS["sm_120"])]
    parts = [f"{k} bytes less for {name}" for k, name in over if k > 0]
    return Offer(f"use fewer stages, or smaller tiles: {'; '.join(parts)}", _where(bool(parts)))


def own_target(n: Numbers) -> Offer:
    """Offer the compiler option for the GPU's own target. `n`: (number of the architecture or 0,)."""
    if not n[0]:
        text = "compile for the GPU's own target: -arch=sm_90a (sm_100a, sm_103a, sm_120a), not sm_90 or an older PTX"
        return Offer(text, _targets("sm_90a", "sm_100a", "sm_103a", "sm_120a"))
    name = f"sm_{n[0]}{'a' * (n[0] >= 90)}"
    return Offer(f"compile for the target that has them, if it is the GPU's own: -arch={name}", _targets(name))


def _targets(*names: str) -> Callable[[], object]:
    """Return a function that looks up architectures by name, and refuses an unknown name."""

    def make() -> object:
        from cute_py.targets import architecture

        return [architecture(name) for name in names]

    return make


def listed_target(n: Numbers) -> Offer:
    """Offer a replacement for wgmma and tcgen05 on a GPU that lacks them. `n`: (number of the architecture,)."""
    if n[0] // 10 == 12:
        text = "use the warp-level operations: MmaF16BF16Op, MmaSM120BlockScaledOp of cute.nvgpu.warp"
        return Offer(text, _where(True))
    text = (
        "use a GPU of the list, and set CUTE_DSL_ARCH to its own name (sm_90a, sm_100a); this also compiles on a "
        "machine without a GPU"
    )
    return Offer(text, _targets("sm_90a", "sm_100a"))


# ---- operations of CuTe DSL -----------------------------------------------------------------------------------------


def _bytes_of(bits: int) -> int:
    return max(bits // 8, 1)


def _are_copied(bits: int) -> Callable[[], object]:
    """Return a function that checks whether one copy operation can move this many bits: a power of two from 8 to
    256."""
    return _where(bits in (8, 16, 32, 64, 128, 256))


def matrix_rows(n: Numbers) -> Offer:
    """Offer rows as ldmatrix and stmatrix need them. `n`: (known bits, bits per row)."""
    need = _bytes_of(n[1])
    text = (
        f"make each row {need} contiguous bytes: use K-major tiles unchanged and MN-major ones with transpose=True. "
        f"Make the other strides multiples of {need} bytes, and allocate shared memory with byte_alignment={need}"
    )
    return Offer(text, _are_copied(n[1]))


def aligned_values(n: Numbers) -> Offer:
    """Offer the order of a thread's values that a vectorised copy needs. `n`: (known bits, bits that one operation
    moves)."""
    have, need = n[:2]
    narrower = f". Or use a copy of {have} bits (num_bits_per_copy={have})" if have in (32, 64) and have < need else ""
    text = (
        f"give each thread {_bytes_of(need)} contiguous bytes: values along the mode of stride 1 that fill them, and "
        f"other strides that are multiples of {_bytes_of(need)} bytes. Pass assumed_align={_bytes_of(need)} to "
        f"from_dlpack, and byte_alignment={_bytes_of(need)} for shared memory{narrower}"
    )
    return Offer(text, _are_copied(need))


def assumed_alignment(n: Numbers) -> Offer:
    """Offer the alignment to declare in CuTe DSL. `n`: (bits that one operation moves,)."""
    text = (
        f"use from_dlpack(x, assumed_align={n[0] // 8}) and strides that are known multiples of it "
        f"(mark_compact_shape_dynamic(divisibility=...), cute.assume), or copy fewer than {n[0]} bits at once"
    )
    return Offer(text, _are_copied(n[0]))


def instruction_extent(n: Numbers) -> Offer | None:
    """Offer the N rounded up to a multiple of the unit. `n`: (least, most, unit, N)."""
    least, most, unit, asked = n[:4]
    if not unit:
        return None
    extent = min(max(_up(asked, unit), least), most)
    return Offer(f"N = {extent}, or another multiple of {unit} up to {most}", _where(extent > 0 and extent % unit == 0))


def instruction_rows(n: Numbers) -> Offer:
    """Offer an M that an instruction supports. `n`: (first supported M, second supported M, requested M)."""
    rows = n[0] if n[2] <= n[0] else n[1]
    text = f"use M = {rows}: pad a smaller tile, and issue several instructions for a larger one"
    return Offer(text, _where(rows in n[:2] and rows > 0))


def instruction_depth(n: Numbers) -> Offer:
    """Offer the number of instructions for a tile. `n`: (K of an instruction, K of the tile)."""
    depth, tile = n[:2]
    count = -(-tile // max(depth, 1))
    text = f"use K = {depth} here, and issue {count} instructions, one for each k of A[None, None, k]"
    return Offer(text, _where(depth > 0 and count * depth == tile))


def divisibility(n: Numbers) -> Offer:
    """Offer a divisor that divides the size, or a padded size that the declared divisor divides. `n`: (size, mode,
    declared divisor)."""
    size, _, declared = n[:3]
    divisor, padded = math.gcd(size, declared), _up(size, declared) if declared else 0
    holds = declared > 0 and size > 0 and size % divisor == 0 and padded % declared == 0
    return Offer(f"use divisibility={divisor}, or pad the mode to {padded}", _where(holds))


# ---- notes ----------------------------------------------------------------------------------------------------------


def count_of_scales(n: Numbers) -> str:
    """Explain the difference between the expected and the actual number of scales, usually by the padding. `n`:
    (expected, actual)."""
    want, have = n[:2]
    if have == want:
        return "this number is right: compare the number of the other operand, the types and the swizzles"
    if have < want:
        return f"{want - have} scales are missing: pad rows to 128 and the scales of a row to 4"
    if have == 2 * want:
        return (
            "there are twice as many: either torch counts K of packed float4 in bytes (before #176357), or V is 16 "
            "instead of 32"
        )
    return f"{have - want} scales too many"


NOTES: Final[dict[str, Callable[[Numbers], str]]] = {"count_of_scales": count_of_scales}
"""Name -> function that compares the numbers of a message."""

CALCULATORS: Final[dict[str, Callable[[Numbers], Offer | None]]] = {
    function.__name__: function
    for function in (
        wider_block,
        fitted_box_row,
        span_of_elements,
        box_part,
        padded_stride,
        padded_row,
        padded_matrix,
        transposed_matrix,
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
