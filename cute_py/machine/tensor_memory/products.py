"""Run tcgen05.mma: read A, B and the scale factors from shared or tensor memory, and write D.

One instruction computes D = A * B + D for the M rows and N columns of its instruction descriptor. It reads 32 bytes of
each row through its matrix descriptors (64 bytes of B if A is sparse). With two CTAs, each CTA holds half of the rows
of A and D, and half of the rows of B. The element of D in row r of the CTA and column n is at:

    one CTA, M = 128; two, M = 256          lane r                      column n
    one CTA, M = 64; two, sparse, M = 128   lane 32 (r//16) + r % 16    column n          (from lane 0 or 16 on)
    two CTAs, M = 128; .ws, M = 64          lane r + 64 (n // (N/2))    column n % (N/2)
    .ws, M = 32                             lane r + 32 (n // (N/4))    column n % (N/4)

A column holds one element of D; a float16 element is in its lower half. A in tensor memory uses the same lanes as D,
and the bytes of a row are in adjacent columns. Two CTAs with M = 128 hold A twice, in lanes 0 to 63 and in lanes 64 to
127.

A scale factor of row r is in lane r % 32 of column r // 32, at the byte that the descriptor names. The other three
groups of 32 lanes hold copies. With two CTAs and M = 128, the groups 0 and 1 hold the factors of the first half of B.

The 4-bit and 6-bit elements of kind::f8f6f4 are stored in shared memory in 16-byte units, with 16 elements packed at
the beginning of each unit. In tensor memory each element occupies a byte.

Source: PTX ISA 9.0, tcgen05: data path layouts, packing formats, scale factors, sparse matrices;
cute/atom/mma_traits_sm100_frag.hpp. The order of sums is not documented: the machine uses the order of float16 on an
H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.atom.smem_descriptor import UNIT_BYTES, DescriptorKind, Major
from cute_py.errors import TmemError
from cute_py.machine.arithmetic import (
    WIDE,
    as_elements,
    bits_of_numbers,
    codes_of_bytes,
    numbers_of_codes,
    scaled,
    sum_floats,
    sum_integers,
)
from cute_py.machine.judgement.observer import OperandRead
from cute_py.machine.operands import operand_bytes, operand_places, operand_units
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS, LANES
from cute_py.machine.tensor_memory.instruction_descriptor import MMA_KINDS, InstructionDescriptor, MmaKind
from cute_py.machine.tensor_memory.operand_layouts import GROUP, factor_places, lane_places
from cute_py.ptx.forms_tcgen05 import DECOMPRESSIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

PACKED: Final = {"e2m1": "b4x16_p64", "e2m3": "b6x16_p32", "e3m2": "b6x16_p32"}
"""Element of kind::f8f6f4 -> its format in shared memory."""
SCALE_ADDRESS: Final = 0x3FFFFFFF
"""Mask of the address of scale factors. It drops bits 30 and 31, which repeat the byte index of the instruction
descriptor."""
_WIDTHS: Final = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8}


@dataclass(frozen=True, slots=True)
class CtaMemory:
    """The memory of one CTA: shared memory `shared`, which begins at address `base`, and the `cells` (128, 512) of
    tensor memory.
    """

    shared: Array
    base: int
    cells: Array


@dataclass(frozen=True, slots=True)
class Product:
    """One execution of a tcgen05.mma.

    Attributes:
        a: matrix descriptor, or an address of tensor memory (`a_in_tmem`). b: matrix descriptor. d: address of D.
        vectors: number of scale factors per row along K, or 0. weights: whether the instruction has .ws. adds: whether
        the product is added to D. shift: D is first divided by 2**shift. disabled: flags (128,) for each CTA of the
        lanes that are not written. moves_a: whether .ashift moves the rows of A in tensor memory after the product.
        zeros: 64-bit mask descriptor of the zero columns of .ws.
    """

    descriptor: InstructionDescriptor
    ctas: int
    a: int
    a_in_tmem: bool
    b: int
    d: int
    adds: bool
    metadata: int | None = None
    vectors: int = 0
    scales_a: int = 0
    scales_b: int = 0
    weights: bool = False
    shift: int = 0
    disabled: tuple[Array, ...] | None = None
    moves_a: bool = False
    zeros: int = 0

    @property
    def kind(self) -> MmaKind:
        """The row of `MMA_KINDS` for the product's kind."""
        return MMA_KINDS[self.descriptor.kind]

    @property
    def rows(self) -> int:
        """Number of rows of A and D in one CTA."""
        return self.descriptor.m // self.ctas


# ---- the place of D --------------------------------------------------------------------------------------------------


def split_address(taddr: int) -> tuple[int, int]:
    """Split a tensor-memory address into (lane, column)."""
    return taddr >> 16 & 0xFFFF, taddr & 0xFFFF


def columns_of_d(product: Product) -> int:
    """Number of tensor-memory columns that D uses."""
    return product.descriptor.n // lane_parts(product)


def lane_parts(product: Product) -> int:
    """Number of groups of lanes that share the columns of D."""
    if product.weights:
        return LANES // product.rows
    return 2 if product.ctas == 2 and product.rows == LANES // 2 and not product.descriptor.sparse else 1


def half_lanes(product: Product) -> bool:
    """Whether the rows of D use half of each group of 32 lanes."""
    return product.rows == LANES // 2 and not product.weights and lane_parts(product) == 1


def places_of_d(product: Product) -> tuple[Array, Array]:
    """Return the lanes and columns of D, relative to its address; the arrays broadcast to (rows of one CTA, N)."""
    return lane_places(product.rows, product.descriptor.n, lane_parts(product), halves=half_lanes(product))


def lanes_of_rows(product: Product) -> Array:
    """The lane of each row of A and D in one CTA, relative to the address."""
    lanes: Array = lane_places(product.rows, 8, 1, halves=half_lanes(product))[0][:, 0]
    return lanes


def check_places(product: Product) -> None:
    """Check that the layout of D permits its address.

    Raises:
        TmemError: D can't begin in the lane, or extends beyond the last column.
    """
    half = half_lanes(product)
    for what, address in (("D", product.d), *((("A", product.a),) if product.a_in_tmem else ())):
        lane, column = split_address(address)
        if lane not in ((0, 16) if half else (0,)):
            must = "0 or 16" if half else "0"
            raise TmemError(f"{what} begins in lane {lane}; must be lane {must} with M = {product.descriptor.m}")
        if column >= COLUMNS:
            raise TmemError(f"{what} begins in column {column}; tensor memory has {COLUMNS}")
    if product.a_in_tmem and split_address(product.a)[0] != split_address(product.d)[0]:
        raise TmemError("A and D must be in the same half of the lanes, but are in different halves")


# ---- operands --------------------------------------------------------------------------------------------------------


def _elements_in_shared(
    memory: CtaMemory,
    operand: str,
    descriptor: int,
    major: Major,
    extent: int,
    depth: int,
    kind: MmaKind,
    element: str,
) -> Array:
    """Read the element codes (extent, depth) of an operand in shared memory."""
    source = DescriptorKind.TCGEN05
    if kind.packed:
        raw = operand_bytes(
            memory.shared, descriptor, major, extent, depth // 2, 8, memory.base, source, operand=operand
        )
        return as_elements(raw, 4)
    width = _WIDTHS.get(element, 8)
    if element not in PACKED:
        return operand_bytes(
            memory.shared, descriptor, major, extent, depth, width, memory.base, source, operand=operand
        )
    operand_bytes(
        memory.shared, descriptor, major, extent, depth, 8, memory.base, source, operand=operand
    )  # checks the bounds
    places = operand_places(descriptor, major, extent, depth, 8, source)[0] - memory.base
    bits = DECOMPRESSIONS[PACKED[element]][0]
    first = places % UNIT_BYTES * bits
    at = places // UNIT_BYTES * UNIT_BYTES + first // 8
    high = memory.shared[np.minimum(at + 1, len(memory.shared) - 1)].astype(np.uint16)
    both = memory.shared[at] | high << np.uint16(8)
    found: Array = both >> (first % 8).astype(np.uint16) & np.uint16((1 << bits) - 1)
    return found.astype(np.uint8)


def _elements_in_tmem(memory: CtaMemory, product: Product, depth: int, element: str) -> Array:
    """Read the element codes (rows, depth) of A in tensor memory."""
    if product.weights and product.rows != LANES:
        raise TmemError(f"A of .ws with M = {product.rows} in tensor memory is not emulated")
    width = width_of_a(product)
    lane, column = split_address(product.a)
    count = depth * width // 32
    if column + count > COLUMNS:
        raise TmemError(f"A is in columns {column}..{column + count - 1}; tensor memory has {COLUMNS}")
    lanes = lane + (np.arange(product.rows) if lane_parts(product) > 1 else lanes_of_rows(product))
    words = memory.cells[lanes, column : column + count]
    if lane_parts(product) > 1 and (words != memory.cells[lanes + product.rows, column : column + count]).any():
        raise TmemError("A differs between lanes 0 to 63 and 64 to 127; two CTAs with M = 128 must hold it twice")
    codes = as_elements(np.ascontiguousarray(words), width)
    if element in PACKED and not product.kind.packed:
        return codes_of_bytes(codes, element)
    return codes


def operand_reads(product: Product, start: int) -> list[OperandRead]:
    """Describe the operands in shared memory: B, and A unless it is in tensor memory.

    start: offset of the CTA's shared memory. Elements of a packed type are counted as bytes.
    """
    descriptor, kind = product.descriptor, product.kind
    held = descriptor.k // 2 if descriptor.sparse else descriptor.k
    found = [("B", product.b, descriptor.b_major, descriptor.n // product.ctas, descriptor.k, descriptor.b_type)]
    if not product.a_in_tmem:
        found.append(("A", product.a, descriptor.a_major, product.rows, held, descriptor.a_type))
    return [
        OperandRead(
            name, words, major, rows, depth // 2 if kind.packed else depth, _WIDTHS.get(element or "", 8), start,
            DescriptorKind.TCGEN05, element or "",
        )
        for name, words, major, rows, depth, element in found
    ]  # fmt: skip


def units_of(operand: OperandRead) -> Array:
    """Addresses of the 16-byte units that contain an operand, in the shared memory of a CTA.

    Raises:
        TmemError, InvalidValueError: the matrix descriptor is not emulated.
    """
    return operand_units(operand.words, operand.major, operand.extent, operand.depth, operand.bits, operand.kind)


def width_of_a(product: Product) -> int:
    """Width in bits of an element of A in tensor memory."""
    return 4 if product.kind.packed else _WIDTHS.get(product.descriptor.a_type or "", 8)


def cells_read(product: Product) -> list[tuple[str, Array, Array]]:
    """Return (name, lanes, columns) of the cells that a product reads in each CTA besides D; both arrays have the same
    shape.
    """
    found = []
    descriptor = product.descriptor
    if product.a_in_tmem:
        lane, column = split_address(product.a)
        held = descriptor.k // 2 if descriptor.sparse else descriptor.k
        lanes = lane + (np.arange(LANES) if lane_parts(product) > 1 else lanes_of_rows(product))
        columns = np.arange(column, column + held * width_of_a(product) // 32)
        found.append(("A", lanes[:, None], columns[None, :]))
    if product.metadata is not None and product.rows == LANES:
        lanes, bits = _places_of_metadata(product.kind, descriptor.k)
        found.append(("the metadata of A", lanes, split_address(product.metadata)[1] + bits // 32))
    for operand, address, rows in (("A", product.scales_a, product.rows), ("B", product.scales_b, descriptor.n)):
        if product.vectors:
            column = split_address(address & SCALE_ADDRESS)[1]
            lanes, places = factor_places(rows, descriptor.k, product.vectors, scale_halves(product, operand))
            found.append((f"the scales of {operand}", lanes[..., 0], column + places[..., 0] // 4))
    both = [np.broadcast_arrays(lanes, columns) for _, lanes, columns in found]
    return [(what, lanes, columns) for (what, _, _), (lanes, columns) in zip(found, both, strict=True)]


# ---- sparse A --------------------------------------------------------------------------------------------------------


def _places_of_metadata(kind: MmaKind, k: int) -> tuple[Array, Array]:
    """Return the lane and the first bit of the four metadata bits of each group, (rows, groups along K); bits count
    from the first column of the metadata.

    A group has 4 elements; tf32 has groups of 2, and 4-bit types groups of 8.
    """
    row = np.arange(LANES)[:, None]
    size = _group_size(kind)
    first = np.arange(0, k, size)[None, :]
    if kind.depth < 32:
        half = k // 2
        lane = row % 8 + 8 * (first // half) + 16 * (row // 16)
        return lane, 4 * (first % half) // size + 16 * (row // 8 % 2)
    return np.broadcast_to(row, (LANES, k // size)), np.broadcast_to(4 * first // size, (LANES, k // size))


def _group_size(kind: MmaKind) -> int:
    return {"tf32": 2}.get(kind.name, 8 if kind.packed else 4)


def with_zeros(memory: CtaMemory, product: Product, stored: Array) -> Array:
    """Expand the stored elements (rows, K / 2) of a sparse A to (rows, K), with the metadata in tensor memory."""
    kind, k = product.kind, product.descriptor.k
    if product.rows != LANES:
        raise TmemError(f"a sparse A of {product.rows} rows per CTA is not emulated; only 128 rows are")
    column = split_address(product.metadata or 0)[1]
    lanes, bits = _places_of_metadata(kind, k)
    words = memory.cells[lanes, column + bits // 32]
    groups = (words >> (bits % 32).astype(np.uint32) & np.uint32(15)).astype(np.int64)
    size = _group_size(kind)
    whole = np.zeros((product.rows, k), stored.dtype)
    starts = np.arange(0, k, size)[None, :]
    if size == 2:  # 0b0100 is the first of two, 0b1110 the second
        np.put_along_axis(whole, starts + (groups >> 1 & 1), stored, axis=1)
        return whole
    step = size // 4
    for number in range(2):
        index = groups >> 2 * number & 3
        for part in range(step):
            np.put_along_axis(whole, starts + index * step + part, stored[:, step * number + part :: 2 * step], axis=1)
    return whole


# ---- scale factors ---------------------------------------------------------------------------------------------------


def scale_halves(product: Product, operand: str) -> int:
    """Return 2 if each half of the lanes has the scale factors of a different half of B, else 1."""
    return 2 if operand == "B" and lane_parts(product) == 2 else 1


def _scales(product: Product, memory: CtaMemory, operand: str, rows: int) -> Array:
    """Read the scale factors of A or B as numbers (rows, factors along K)."""
    address = product.scales_a if operand == "A" else product.scales_b
    first = product.descriptor.raw(f"scale_{operand.lower()}_id")
    if first % product.vectors or first + product.vectors > 4:
        text = f"scale data ID {first} of {operand}; must be a multiple of {product.vectors} below 4"
        raise TmemError(f"{text} with {product.vectors} factors per row")
    lane, column = split_address(address & SCALE_ADDRESS)
    if lane:
        raise TmemError(f"the scales of {operand} begin in lane {lane}; must be lane 0")
    lanes, places = factor_places(rows, product.descriptor.k, product.vectors, scale_halves(product, operand))
    count = int(places.max()) // 4 + 1
    if column + count > COLUMNS:
        last = column + count - 1
        raise TmemError(f"the scales of {operand} are in columns {column}..{last}; must be below {COLUMNS}")
    codes = memory.cells.view(np.uint8).reshape(LANES, -1)[lanes, 4 * column + first + places]
    if (codes != codes[:, :1]).any():
        text = f"the scales of {operand} differ between groups of 32 lanes; they must be equal"
        raise TmemError(text, {"columns": f"{column}..{column + count - 1}"})
    codes = codes[:, 0]
    return numbers_of_codes(codes, product.descriptor.scale_type or "ue8m0")


# ---- the product -----------------------------------------------------------------------------------------------------


def multiply(product: Product, memories: Sequence[CtaMemory]) -> None:
    """Run a product, and write D of each CTA.

    Args:
        memories: memory of the CTA that issued it, or memories of both CTAs of a pair, the even rank first.
    Raises:
        TmemError, InvalidValueError: an operand is outside its memory, its layout does not permit its address, or its
            form is not emulated.
    """
    descriptor, kind = product.descriptor, product.kind
    a_type, b_type, d_type = descriptor.a_type, descriptor.b_type, descriptor.d_type
    if a_type is None or b_type is None or d_type is None or descriptor.raw("long_k"):
        raise TmemError(f"instruction descriptor {descriptor} has a type or an extent that is not emulated")
    b = np.concatenate(
        [
            _elements_in_shared(
                one, "B", product.b, descriptor.b_major, descriptor.n // product.ctas, descriptor.k, kind, b_type
            )
            for one in memories
        ]
    )
    second = numbers_of_codes(b, b_type)
    if product.zeros:
        second = np.where(zero_columns(product.zeros, descriptor.m, descriptor.n)[:, None], 0, second)
    held = descriptor.k // 2 if descriptor.sparse else descriptor.k
    signs = [-1 if negative else 1 for negative in descriptor.negated]
    results = []
    for one in memories:
        if product.a_in_tmem:
            codes = _elements_in_tmem(one, product, held, a_type)
        else:
            codes = _elements_in_shared(one, "A", product.a, descriptor.a_major, product.rows, held, kind, a_type)
        if descriptor.sparse:
            codes = with_zeros(one, product, codes)
        left, right = numbers_of_codes(codes, a_type) * signs[0], second * signs[1]
        if product.vectors:
            left = scaled(left, _scales(product, one, "A", product.rows))
            right = scaled(right, _scales(product, one, "B", descriptor.n))
        results.append(_summed(product, left, right, one, d_type))
    for number, (one, words) in enumerate(zip(memories, results, strict=True)):
        _put(product, one, words, None if product.disabled is None else product.disabled[number])
        if product.moves_a:
            shift_rows(one.cells, range(0, LANES, GROUP), split_address(product.a)[1])


def zero_columns(words: int, m: int, n: int) -> Array:
    """Flags (N,) of the columns of B that a mask descriptor of .ws replaces by zero.

    The columns are divided into 128 / M parts. In each part, runs of `Use Span` + 1 used columns and `Skip Span` + 1
    skipped columns alternate. The sequence begins with used columns, or with skipped columns if `First Span` is 1. The
    part starts `Start Count` columns after the beginning of the sequence.

    >>> "".join("01"[int(one)] for one in zero_columns(1 << 39 | 2 << 40 | 3 << 48, 128, 16))
    '0000111000011100'

    Source: PTX ISA 9.0, 9.7.16.4.3, according to the examples; the table of that section exchanges the two spans.
    """
    if not words >> 39 & 1:
        return np.zeros(n, np.bool_)
    skipped, used = (words >> 40 & 0xFF) + 1, (words >> 48 & 0xFF) + 1
    parts = LANES // m
    place = np.arange(n // parts)
    found = []
    for part in range(parts):
        count, first = words >> 8 * part & 0xFF, words >> 32 + part & 1
        turn = (place + count + (used if first else 0)) % (used + skipped)
        found.append(turn >= used)
    return np.concatenate(found)


SHIFTED_COLUMNS: Final = 8
"""Number of columns that a shift moves: 32 bytes of a row."""


def shift_rows(cells: Array, firsts: Sequence[int], column: int) -> None:
    """Move rows to the previous lane in each group of 32 lanes; the last row of a group stays.

    Args:
        cells: (128, 512). firsts: first lanes of the groups. column: the first of 8 columns.
    Source: PTX ISA 9.0, tcgen05.shift (shape .31x256b). CUTLASS's 1cta_mma_a_from_tmem.py observed the direction and
        the separate groups on a B200 for .ashift.
    """
    columns = slice(column, column + SHIFTED_COLUMNS)
    for first in firsts:
        cells[first : first + GROUP - 1, columns] = cells[first + 1 : first + GROUP, columns].copy()


def _summed(product: Product, left: Array, right: Array, memory: CtaMemory, d_type: str) -> Array:
    """Compute D as words (rows, N)."""
    lanes, columns = places_of_d(product)
    lane, column = split_address(product.d)
    if column + columns_of_d(product) > COLUMNS:
        raise TmemError(f"D is in columns {column}..{column + columns_of_d(product) - 1}; must be below {COLUMNS}")
    if product.adds:
        sums = numbers_of_sums(memory.cells[lane + lanes, column + columns], d_type)
        sums = np.ldexp(sums, -product.shift) if product.shift else sums
    else:
        sums = np.zeros((len(left), len(right)), np.int64 if d_type == "s32" else np.float64)
    if d_type == "s32":
        found = sum_integers(left, right, sums, bool(product.descriptor.raw("saturate")))
    else:
        found = sum_floats(left, right, sums, WIDE, d_type == "f16")
    return bits_of_numbers(found, d_type)


def numbers_of_sums(words: Array, d_type: str) -> Array:
    """Convert words of D to numbers."""
    if d_type == "s32":
        return words.view(np.int32).astype(np.int64)
    if d_type == "f16":
        return (words & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.float32).astype(np.float64)


def _put(product: Product, memory: CtaMemory, words: Array, disabled: Array | None) -> None:
    lanes, columns = places_of_d(product)
    lane, column = split_address(product.d)
    to = np.broadcast_to(lane + lanes, words.shape), np.broadcast_to(column + columns, words.shape)
    if disabled is not None and disabled.any():
        kept = ~disabled[to[0]]
        memory.cells[to[0][kept], to[1][kept]] = words[kept]
    else:
        memory.cells[to] = words
