"""Emulate mma.sync and wgmma: the thread-value layouts of the atoms gather the operands from registers and scatter the
sums.

The atom of an instruction is the row of `MMA_ATOMS` whose instruction text is the same. Its layouts map the values of a
thread to elements of the matrices. For an operand in shared memory, a descriptor gives the addresses.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS
from cute_py.atom.mma_warpgroup_atoms import register_a_layout
from cute_py.atom.smem_descriptor import Major
from cute_py.errors import InvalidValueError, given
from cute_py.layout import offsets, size
from cute_py.machine.arithmetic import (
    ORDERS,
    WIDE,
    as_elements,
    bits_of_numbers,
    count_bits,
    element_width,
    in_registers,
    numbers_of,
    sum_by_multiply_adds,
    sum_doubles,
    sum_floats,
    sum_integers,
)
from cute_py.machine.operands import operand_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

_TYPES: Final = re.compile(
    r"\.m\d{1,4}n\d{1,4}k\d{1,4}(?:\.(?:row|col)){0,2}\.(\w{1,40})\.(\w{1,40})\.(\w{1,40})(?:\.\w{1,40}){0,9}$"
)
QUAD_PAIRS: Final = 4
"""Number of quad pairs of an m8n8k4 of float16. Quad pair q, lanes 4 q to 4 q + 3 and 16 + 4 q to 16 + 4 q + 3,
computes its own product."""


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """A matrix instruction: its atom, and the types of D, A and B in PTX's notation."""

    atom: MmaAtom
    d: str
    a: str
    b: str

    @property
    def sparse(self) -> bool:
        return ".sp." in self.atom.ptx

    @property
    def saturates(self) -> bool:
        return self.atom.ptx.endswith(".satfinite")


@functools.cache
def _rows() -> Mapping[str, MmaAtom]:
    """Map each instruction text to its first atom without complex elements; a wgmma with A in registers has `RS` in its
    key.
    """
    found: dict[str, MmaAtom] = {}
    for atom in MMA_ATOMS.values():
        if atom.ptx.startswith(("mma.sync.aligned.m", "wgmma.mma_async.")):
            found.setdefault(atom.ptx + (" RS" if atom.registers["A"][0] == 4 and "wgmma" in atom.ptx else ""), atom)
    return found


@functools.lru_cache(maxsize=1024)
def matrix_instruction(opcode: str, a_in_registers: bool = True) -> MatrixInstruction:
    """Find the matrix instruction of an opcode with modifiers.

    Raises:
        InvalidValueError: `MMA_ATOMS` has no such instruction.

    >>> matrix_instruction("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32").atom.name
    'SM80_16x8x8_F32TF32TF32F32_TN'
    """
    written = opcode
    if ".satfinite." in opcode:  # before the types in the ISA, after them in CUTLASS's atoms
        opcode = opcode.replace(".satfinite", "", 1) + ".satfinite"
    atom = _rows().get(opcode + (" RS" if opcode.startswith("wgmma") and a_in_registers else ""))
    types = _TYPES.search(
        opcode.removesuffix(".satfinite").removesuffix(".popc").removesuffix(".and").removesuffix(".xor")
    )
    if atom is None or types is None:
        facts = {"emulated": "dense mma.sync of sm_70 to sm_90, and wgmma.mma_async, dense and sparse"}
        raise InvalidValueError(f"{given(written)} is not an emulated matrix instruction", facts)
    return MatrixInstruction(atom, types[1], types[2], types[3])


@functools.lru_cache(maxsize=1024)
def _places(atom: MmaAtom, operand: str) -> Array:
    """Index of each (thread, value) in the operand's matrix, with the row index fastest."""
    return np.asarray(offsets(atom.layouts[operand])).reshape(int(size(atom.thr_id)), -1, order="F")


@functools.lru_cache(maxsize=16)
def _register_places(k: int) -> Array:
    """Index m + 64 * k of each (thread, value) of a warpgroup's A in registers, where `k` elements of K are stored."""
    return np.asarray(offsets(register_a_layout(k))).reshape(128, -1, order="F")


def gathered(atom: MmaAtom, operand: str, raw: Array, extents: tuple[int, int]) -> Array:
    """Gather element bits (.., thread, value) into matrices (.., *extents)."""
    matrix = np.zeros((*raw.shape[:-2], extents[0] * extents[1]), raw.dtype)
    matrix[..., _places(atom, operand)] = raw
    return matrix.reshape(*raw.shape[:-2], extents[1], extents[0]).swapaxes(-1, -2)


def scattered(atom: MmaAtom, matrix: Array) -> Array:
    """Scatter matrices (.., m, n) to the (.., thread, value) of C."""
    flat = np.ascontiguousarray(matrix.swapaxes(-1, -2)).reshape(*matrix.shape[:-2], -1)
    found: Array = flat[..., _places(atom, "C")]
    return found


def multiplied(found: MatrixInstruction, a: Array, b: Array, c: Array) -> Array:
    """Compute D = A * B + C on element bits of shapes (m, k), (n, k) and (m, n)."""
    x, y, z = numbers_of(a, found.a), numbers_of(b, found.b), numbers_of(c, found.d)
    if found.a == "f64":
        return bits_of_numbers(sum_doubles(x, y, z), "f64")
    if found.a == "b1":
        return bits_of_numbers(count_bits(x, y, z, ".xor." in found.atom.ptx), "s32")
    if found.d == "s32":
        return bits_of_numbers(sum_integers(x, y, z, found.saturates), "s32")
    if found.atom.family == "sm70":
        return bits_of_numbers(sum_by_multiply_adds(x, y, z, found.d == "f16"), found.d)
    order = ORDERS.get((found.atom.ptx.split(".")[0], element_width(found.a)), WIDE)
    return bits_of_numbers(sum_floats(x, y, z, order, found.d == "f16"), found.d)


def run_mma(found: MatrixInstruction, a: Array, b: Array, c: Array) -> Array:
    """Run mma.sync for warps on words (.., lane, register) of A, B and C, and return D in this form."""
    m, n, k = (int(x) for x in found.atom.shape_mnk)
    d = np.empty_like(c)
    groups = [np.arange(32)]
    if found.atom.family == "sm70":
        groups = [np.r_[4 * q : 4 * q + 4, 16 + 4 * q : 20 + 4 * q] for q in range(QUAD_PAIRS)]
    operands = (("A", a, found.a, (m, k)), ("B", b, found.b, (n, k)), ("C", c, found.d, (m, n)))
    for lanes in groups:
        matrices = [
            gathered(found.atom, x, as_elements(words[..., lanes, :], element_width(kind)), extents)
            for x, words, kind, extents in operands
        ]
        raw = multiplied(found, *matrices)
        d[..., lanes, :] = in_registers(scattered(found.atom, raw), element_width(found.d), c.dtype)
    return d


@functools.lru_cache(maxsize=64)
def _metadata_places(atom: MmaAtom, group: int) -> tuple[Array, Array]:
    """Thread and first bit, for each (m, stored k), of the metadata that gives a stored element's position in its
    group.

    A group has four bits, two for each stored element. If several threads hold the same metadata, the sparsity selector
    chooses one of them; 0 chooses the first.
    """
    m, _, k = (int(x) for x in atom.shape_mnk)
    table = np.asarray(offsets(atom.layouts["E"])).reshape(int(size(atom.thr_id)), -1, order="F")
    thread, bit = np.zeros(m * k, np.int64), np.zeros(m * k, np.int64)
    for number in reversed(range(len(table))):
        thread[table[number]] = number
        bit[table[number]] = np.arange(table.shape[1]) * 32 // table.shape[1]
    stored = np.arange(k // 2)
    logical = 2 * stored if group == 2 else 4 * (stored // 2) + 2 * (stored % 2)
    index = np.arange(m)[:, None] + m * logical
    return thread[index], bit[index]


def spread_out(found: MatrixInstruction, stored: Array, metadata: Array) -> Array:
    """Expand the stored elements (m, k / 2) of a sparse A to (m, k); metadata words (thread,) give their positions."""
    group = 2 if found.a == "tf32" else 4
    thread, bit = _metadata_places(found.atom, group)
    place = (metadata[thread].astype(np.int64) >> bit & 3) >> (1 if group == 2 else 0)
    start = np.arange(stored.shape[1]) // (group // 2) * group
    whole = np.zeros((stored.shape[0], 2 * stored.shape[1]), stored.dtype)
    np.put_along_axis(whole, start + place, stored, axis=1)
    return whole


def run_wgmma(
    found: MatrixInstruction,
    memory: Array,
    a: Array | int,
    b: int,
    c: Array,
    majors: tuple[Major, Major],
    negated: tuple[bool, bool],
    metadata: Array | None = None,
    *,
    base: int = 0,
) -> Array:
    """Run wgmma for one warpgroup, and return D as words (thread, register).

    a: words (thread, register) or a descriptor. b: a descriptor. c: words (thread, register).

    metadata: one word of each thread, for a sparse A. base: address of the first byte of `memory`.
    """
    m, n, k = (int(x) for x in found.atom.shape_mnk)
    width = element_width(found.a)
    held = k if metadata is None else k // 2
    if isinstance(a, int):
        first = operand_bytes(memory, a, majors[0], m, held, width, base, operand="A")
    else:
        first = np.zeros(m * held, np.uint32)
        first[_register_places(held)] = as_elements(a, width)
        first = first.reshape(m, held, order="F")
    if metadata is not None:
        first = spread_out(found, first, metadata)
    second = operand_bytes(memory, b, majors[1], n, k, width, base, operand="B")
    sums = gathered(found.atom, "C", as_elements(c, element_width(found.d)), (m, n))
    sign = 1 << width - 1
    first = first ^ first.dtype.type(sign) if negated[0] else first
    second = second ^ second.dtype.type(sign) if negated[1] else second
    return in_registers(scattered(found.atom, multiplied(found, first, second, sums)), element_width(found.d))
