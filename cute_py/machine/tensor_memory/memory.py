"""Class `TensorMemory`: 128 lanes x 512 columns x 32 bits in numpy, with alloc, cp, commit, ld, st and dealloc.

The emulator decodes the 64-bit matrix descriptor as the hardware does. It does not use plans or layouts of cute_py, so
it can check them. A copy reads the 16-byte unit u of row r at the address

    a = start + r//8 * stride + r%8 * W + (u * leading without a swizzle, else 16 u)

W is the width of the swizzle, 32, 64 or 128 bytes, or 16 bytes without a swizzle. The swizzle acts on the address a.

Sources: PTX ISA (address fields, allocation rules); TVM's documentation of tcgen05.cp and CUTLASS 7107b055 (addresses).
This behaviour is documented, but not measured, because no Blackwell GPU was available.

tcgen05.ld and tcgen05.st: the lane and column of register r of thread l for an instruction `.shape.xN`, relative to the
address operand:

    32x32b     lane l                        column r
    16x64b     lane l//4 + 8 (l % 2)         column l//2 % 2 + 2 r
    16x128b    lane l//4 + 8 (r % 2)         column l % 4 + 4 (r//2)
    16x256b    lane l//4 + 8 (r//2 % 2)      column r % 2 + 2 (l % 4) + 8 (r//4)
    16x32bx2   lane l % 16                   column r + (l//16) * half split

With `.pack::16b` (ld) or `.unpack::16b` (st), each column above represents two adjacent columns, whose lower halves are
the two halves of the register. Three sources agree: PTX ISA, data movement shapes; TVM's documentation of tcgen05.ld
and st; CUTLASS 7107b055, TMEM_LOAD value layouts.

tcgen05.cp with decompression: sixteen 4-bit or 6-bit elements in 16 bytes are expanded to one byte each.

    b4x16_p64    8 bytes of elements, 8 bytes of padding
    b6x16_p32   12 bytes of elements, 4 bytes of padding

Element e of a unit goes to byte e of the same unit in tensor memory.

The position of the bits is UNVERIFIED. The sizes and the padding are documented (PTX ISA, tcgen05.cp, optional
decompression), but only figures of that document show the position of the bits inside the byte. The emulator puts 4-bit
elements into bits 5:2 and 6-bit elements into bits 5:0, according to the text on kind::f8f6f4 operands. No Blackwell
GPU was available to measure the position.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from cute_py.argument_checks import expect, expect_having, expect_integer, is_integer
from cute_py.atom.smem_descriptor import ADDRESS_MASK, UNIT_BYTES, DescriptorKind, SmemDescriptor, SmemSwizzle, swizzled
from cute_py.errors import RaceError, TmemError, UnknownFactError, WouldHangError, given, integer_text
from cute_py.machine.operands import expect_fixed_bits
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS, LANES, CopyShape, find_copy_shape, place_lanes
from cute_py.ptx.forms_tcgen05 import ALLOCATIONS, COUNTS, DECOMPRESSIONS, MAX_REGISTERS, SHAPE_REGISTERS

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

__all__ = [
    "TensorMemory",
    "alloc_columns",
    "check_columns",
    "decompress",
    "image",
    "source_addresses",
    "why_not_columns",
]

STATUS = "documented, bit position unverified"
"""Evidence for the result."""

BYTE_SHIFT: dict[str, int] = {"b6x16_p32": 0, "b4x16_p64": 2}
"""Lowest bit of an element in its byte; inferred, not measured."""


def decompress(units: NDArray[numpy.uint8], source_format: str) -> NDArray[numpy.uint8]:
    """Decompress 16-byte units, as tcgen05.cp does.

    Args:
        units: (..., 16) uint8; the padding is not read.
        source_format: "b4x16_p64" or "b6x16_p32".
    Returns:
        (..., 16) uint8, one element in each byte.

    >>> unit = numpy.zeros(16, numpy.uint8)
    >>> unit[0] = 0x21                       # elements 1 and 2
    >>> decompress(unit, "b4x16_p64")[:3]
    array([4, 8, 0], dtype=uint8)
    """
    expect(source_format, str, "source_format")
    if source_format not in DECOMPRESSIONS:
        raise TmemError(f"source format {given(source_format)}; must be one of {', '.join(DECOMPRESSIONS)}")
    if expect(units, numpy.ndarray, "units").dtype != numpy.uint8:
        raise TmemError(f"units have elements of {units.dtype}; must be uint8")
    if units.shape[-1:] != (UNIT_BYTES,):
        raise TmemError(f"units have the shape {units.shape}; the last extent must be {UNIT_BYTES} bytes")
    width, used = DECOMPRESSIONS[source_format]
    bits = numpy.unpackbits(units[..., :used], axis=-1, bitorder="little")
    elements = bits.reshape(*units.shape[:-1], UNIT_BYTES, width)
    weights = (1 << numpy.arange(width, dtype=numpy.uint8)).astype(numpy.uint8)
    values = (elements * weights).sum(axis=-1, dtype=numpy.uint8)
    placed: NDArray[numpy.uint8] = numpy.left_shift(values, BYTE_SHIFT[source_format]).astype(numpy.uint8)
    return placed


def source_byte(source_format: str) -> NDArray[numpy.int64]:
    """Index of the first byte of each of the sixteen elements of a compressed unit: int64 of shape (16,)."""
    return numpy.arange(UNIT_BYTES, dtype=numpy.int64) * DECOMPRESSIONS[source_format][0] // 8


ALLOC_MIN, ALLOC_MAX = ALLOCATIONS[0], ALLOCATIONS[-1]


def why_not_columns(n_cols: int) -> str | None:
    """The reason why tcgen05.alloc does not accept `n_cols` columns; None if it does.

    Source: PTX ISA, tcgen05.alloc; ptxas 13.0.88: "out of range, expected to be in range [32..512]".

    >>> why_not_columns(32), why_not_columns(48)
    (None, 'n_cols = 48 columns; must be a power of 2')
    """
    if not is_integer(n_cols):
        return f"n_cols = {given(n_cols)}; must be an integer"
    n_cols = operator.index(n_cols)
    if not ALLOC_MIN <= n_cols <= ALLOC_MAX:
        return f"n_cols = {integer_text(n_cols)} columns; must be within {ALLOC_MIN}..{ALLOC_MAX}"
    if n_cols & (n_cols - 1):
        return f"n_cols = {n_cols} columns; must be a power of 2"
    return None


def alloc_columns(needed: int) -> int:
    """The smallest number of columns that tcgen05.alloc accepts and that is at least `needed`.

    >>> alloc_columns(4), alloc_columns(33)
    (32, 64)
    """
    needed = expect_integer(needed, "the number of columns")
    if not 0 < needed <= ALLOC_MAX:
        raise TmemError(f"{needed} columns are needed; must be 1 to {ALLOC_MAX}, the columns of tensor memory")
    return max(ALLOC_MIN, 1 << (needed - 1).bit_length())


def check_columns(n_cols: int) -> int:
    """Return `n_cols` if tcgen05.alloc accepts it.

    Raises:
        TmemError: the number is outside 32..512, or is not a power of two.

    >>> check_columns(32)
    32
    """
    reason = why_not_columns(n_cols)
    if reason is not None:
        facts = {
            "allowed": "32, 64, 128, 256, 512",
            "note": "ptxas checks an immediate, but not a number in a register",
        }
        hint = None
        if is_integer(n_cols) and 0 < operator.index(n_cols) <= ALLOC_MAX:
            hint = f"allocate n_cols={alloc_columns(n_cols)}"
        raise TmemError(reason, facts, hint)
    return operator.index(n_cols)


THREADS = 32
SLAB = 32
"""Number of lanes that one warp reaches: warp w of a warpgroup reaches lanes 32 w to 32 w + 31."""


def check_transfer(shape: str, num: int) -> int:
    """Return the number of registers per thread of a load or store.

    Raises:
        TmemError: the shape or the count does not exist, or the transfer needs more than 128 registers.

    >>> check_transfer("16x256b", 8)
    32
    """
    expect(shape, str, "shape")
    num = expect_integer(num, "num")
    if shape not in SHAPE_REGISTERS:
        raise TmemError(f"unknown tcgen05.ld shape {given(shape)}; must be one of {', '.join(SHAPE_REGISTERS)}")
    if f"x{num}" not in COUNTS:
        raise TmemError(f"count x{num}; must be one of {', '.join(COUNTS)}")
    count = SHAPE_REGISTERS[shape] * num
    if count > MAX_REGISTERS:
        raise TmemError(f"{shape}.x{num} moves {count} registers; must be at most {MAX_REGISTERS}")
    return count


Cells: TypeAlias = "tuple[NDArray[numpy.int64], NDArray[numpy.int64]]"
"""Arrays of lanes and columns, of one shape or of shapes that broadcast."""

PLACES: dict[str, Callable[[NDArray[numpy.int64], NDArray[numpy.int64]], Cells]] = {
    "32x32b": lambda t, r: (t, r),
    "16x64b": lambda t, r: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
    "16x128b": lambda t, r: (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)),
    "16x256b": lambda t, r: (t // 4 + 8 * (r // 2 % 2), r % 2 + 2 * (t % 4) + 8 * (r // 4)),
    "16x32bx2": lambda t, r: (t % 16, r),
}
"""Shape -> function (thread, register) -> (lane, column): the table above, without the half split."""


def image(shape: str, num: int) -> Cells:
    """Return the lane and column of every register of a load or store, relative to the address.

    Returns:
        two int64 arrays of shape (32 threads, registers). The half split of 16x32bx2 is not added. If the transfer
        packs, a column represents two columns.

    >>> lanes, columns = image("32x32b", 2)
    >>> lanes[:2].tolist(), columns[:2].tolist()
    ([[0, 0], [1, 1]], [[0, 1], [0, 1]])
    """
    return _image(shape, check_transfer(shape, num))


@functools.cache
def _image(shape: str, count: int) -> Cells:
    cells = PLACES[shape](numpy.arange(THREADS)[:, None], numpy.arange(count)[None, :])
    lanes, columns = (numpy.broadcast_to(one, (THREADS, count)) for one in cells)  # read-only
    return lanes, columns


NOT_A_SOURCE = -1


class Barrier(Protocol):
    """Protocol of the mbarrier that a commit signals."""

    def arrive(self) -> object: ...


class HasRows(Protocol):
    """Protocol of the shape of a copy, which reads rows of a fixed number of bits."""

    @property
    def rows(self) -> int:
        """Number of rows that one instruction reads."""

    @property
    def bits(self) -> int:
        """Number of bits in a row."""


class TensorMemory:
    """The tensor memory of one CTA.

    Args:
        cells: an array of shape (128, 512) to use as the cells. With this argument, `sources` is not tracked.
    Attributes:
        cells: (128, 512) uint32.
        sources: (128, 512, 4) int64: the shared byte that each byte of a cell was copied from, or -1.
        notes: unverified behaviour that the results depend on.

    >>> tmem = TensorMemory()
    >>> hex(tmem.alloc(32))
    '0x0'
    """

    def __init__(self, cells: NDArray[numpy.uint32] | None = None) -> None:
        if cells is None:
            self.cells: NDArray[numpy.uint32] = numpy.zeros((LANES, COLUMNS), numpy.uint32)
        else:
            self.cells = expect(cells, numpy.ndarray, "the cells of tensor memory")
            if cells.shape != (LANES, COLUMNS) or cells.dtype != numpy.uint32:
                raise TmemError(f"cells have the shape {cells.shape} and {cells.dtype}; must have (128, 512) uint32")
        self._keeps_sources = cells is None
        kept = COLUMNS if self._keeps_sources else 0
        self.sources: NDArray[numpy.int64] = numpy.full((LANES, kept, 4), NOT_A_SOURCE, numpy.int64)
        self.notes: list[str] = []
        self._allocated: dict[int, int] = {}
        self._in_flight = numpy.zeros((LANES, COLUMNS), bool)
        self._may_allocate = True
        self._cta_group = 0

    def __repr__(self) -> str:
        return f"<TensorMemory, {sum(self._allocated.values())} of {COLUMNS} columns allocated>"

    # -- allocation --------------------------------------------------------------------------------------------------

    def alloc(self, n_cols: int, cta_group: int = 1) -> int:
        """Reserve columns, and return the address of the first one (lane 0).

        The ISA does not specify the address; the emulator returns the lowest free multiple of `n_cols`.

        Raises:
            TmemError: the number is not 32, 64, 128, 256 or 512, or the CTA has given up its permit to allocate.
            WouldHangError: not enough columns are free; a GPU blocks until another CTA frees some.
        """
        n_cols = check_columns(n_cols)
        self.use_group(cta_group)
        if not self._may_allocate:
            raise TmemError("tcgen05.alloc follows relinquish_alloc_permit; the CTA can no longer allocate")
        for column in range(0, COLUMNS, n_cols):
            if all(column + n_cols <= first or first + count <= column for first, count in self._allocated.items()):
                self._allocated[column] = n_cols
                return column
        text = f"tcgen05.alloc of {n_cols} columns blocks, because no {n_cols} columns are free"
        raise WouldHangError(text, {"allocated": self._ranges()})

    def dealloc(self, taddr: int, n_cols: int) -> None:
        """Free an allocation, given its address and its number of columns.

        Raises:
            TmemError: there is no such allocation. RaceError: a copy into these columns has not been committed.
        """
        taddr, n_cols = _address(taddr), expect_integer(n_cols, "n_cols")
        if self._allocated.get(taddr) != n_cols:
            held = ", ".join(f"{count} columns at {first:#x}" for first, count in self._allocated.items()) or "none"
            raise TmemError(
                f"tcgen05.dealloc of {n_cols} columns at {taddr:#x} does not match an allocation; allocated: {held}"
            )
        if self._in_flight[:, taddr : taddr + n_cols].any():
            raise RaceError("tcgen05.dealloc follows a tcgen05.cp that may still write; commit and wait first")
        del self._allocated[taddr]

    def relinquish_alloc_permit(self) -> None:
        """Give up the right to allocate; later calls of `alloc` raise an error."""
        self._may_allocate = False

    @property
    def allocated(self) -> dict[int, int]:
        """The number of columns of each allocation, by its first column."""
        return dict(self._allocated)

    def finish(self) -> None:
        """Check at the end of the kernel that all columns are free.

        Raises:
            TmemError: columns are still allocated.
        """
        if self._allocated:
            facts = {f"at column {first}": f"{count} columns" for first, count in self._allocated.items()}
            raise TmemError("tensor memory is still allocated at the end of the kernel", facts)

    # -- copies ------------------------------------------------------------------------------------------------------

    def cp(
        self,
        taddr: int,
        descriptor: int,
        smem: NDArray[numpy.uint8],
        shape: str = "32x128b",
        multicast: str | None = None,
        *,
        cta_group: int = 1,
        decompress_from: str | None = None,
        smem_base: int = 0,
    ) -> None:
        """Run one tcgen05.cp: copy rows of shared memory to lanes and columns, starting at `taddr`.

        Args:
            taddr: lane << 16 | column.
            descriptor: the 64-bit matrix descriptor of the source.
            smem: the shared memory of the CTA, a uint8 array; `smem_base` is the address of its first byte.
            decompress_from: "b4x16_p64" or "b6x16_p32"; `notes` then lists the result as unverified.
        Raises:
            TmemError: addresses are outside the memories or the allocation.
            UnknownFactError: a field has a value whose effect on a copy is unknown.
        """
        self.use_group(cta_group)
        form = find_copy_shape(shape, multicast)
        expect(smem, numpy.ndarray, "smem")
        if smem.dtype != numpy.uint8 or smem.ndim != 1:
            raise TmemError(f"smem has the shape {smem.shape} and {smem.dtype}; must be one row of uint8")
        smem_base = expect_integer(smem_base, "smem_base", 0, ADDRESS_MASK, "bytes")
        addresses = source_addresses(form, SmemDescriptor.decode(descriptor))
        index = addresses - smem_base
        if index.min() < 0 or index.max() >= smem.size:
            raise TmemError(
                f"tcgen05.cp reads shared bytes {int(addresses.min())}..{int(addresses.max())}, but the memory "
                f"has {smem_base}..{smem_base + smem.size - 1}"
            )
        data = smem[index]
        if decompress_from is not None:
            data = decompress(data, decompress_from)
            addresses = addresses[..., source_byte(decompress_from)]
            self.notes.append(f"{form.name}.b8x16.{decompress_from}: {STATUS}")
        rows, units = data.shape[:2]
        cells = numpy.ascontiguousarray(data).view("<u4").reshape(rows, units * 4)
        lanes, columns = self._cells(form, taddr)
        self.cells[lanes, columns] = cells
        if self._keeps_sources:
            self.sources[lanes, columns] = addresses.reshape(rows, units * 4, 4)
        self._in_flight[lanes, columns] = True

    def commit(self, barrier: Barrier | None = None, cta_group: int = 1) -> None:
        """Commit the instructions so far, and arrive at `barrier`; in the emulator they complete immediately."""
        self.use_group(cta_group)
        if barrier is not None:
            expect_having(barrier, ("arrive",), "a barrier")
        self._in_flight[:] = False
        if barrier is not None:
            barrier.arrive()

    def ld(
        self, taddr: int, shape: str, num: int, warp: int = 0, *, pack: bool = False, half_split: int | None = None
    ) -> NDArray[numpy.uint32]:
        """Run tcgen05.ld for one warp, and return the registers: uint32 of shape (32 threads, registers).

        Raises:
            TmemError: the warp does not reach the lanes, or the columns are not allocated.
            RaceError: a copy to these cells has not been committed.
        """
        lanes, columns = self.places(taddr, shape, num, warp, pack, half_split)
        if self._in_flight[lanes, columns].any():
            raise RaceError("tcgen05.ld reads cells that a tcgen05.cp may still write; commit and wait first")
        if pack:
            low, high = self.cells[lanes, columns], self.cells[lanes, columns + 1]
            packed: NDArray[numpy.uint32] = numpy.bitwise_or(low & 0xFFFF, high << numpy.uint32(16))
            return packed
        return numpy.asarray(self.cells[lanes, columns], numpy.uint32)

    def st(
        self,
        taddr: int,
        registers: NDArray[numpy.uint32],
        shape: str,
        num: int,
        warp: int = 0,
        *,
        unpack: bool = False,
        half_split: int | None = None,
    ) -> None:
        """Run tcgen05.st for one warp.

        With `unpack`, each half of a register is written to the lower half of a column. The emulator sets the upper
        half to zero; the ISA does not document its value.
        """
        lanes, columns = self.places(taddr, shape, num, warp, unpack, half_split)
        if expect(registers, numpy.ndarray, "registers").dtype.kind not in "iu":
            raise TmemError(f"registers have elements of {registers.dtype}; must be integers")
        if registers.shape != lanes.shape:
            raise TmemError(f"registers have the shape {registers.shape}; must have {lanes.shape} for {shape}.x{num}")
        values = registers.astype(numpy.uint32)
        if unpack:
            self.cells[lanes, columns] = values & 0xFFFF
            self.cells[lanes, columns + 1] = values >> numpy.uint32(16)
        else:
            self.cells[lanes, columns] = values
        if self._keeps_sources:
            self.sources[lanes, columns] = NOT_A_SOURCE
            if unpack:
                self.sources[lanes, columns + 1] = NOT_A_SOURCE

    # -- addresses ---------------------------------------------------------------------------------------------------

    def _cells(self, form: CopyShape, taddr: int) -> Cells:
        taddr = _address(taddr)
        lane, column = taddr >> 16, taddr & 0xFFFF
        self.expect_allocated(column, form.columns)
        lanes = place_lanes(form.copies)[:, None] + place_lanes(form.lanes)
        if lane + int(lanes.max()) >= LANES:
            raise TmemError(f"tcgen05.cp writes lanes {lane}..{lane + int(lanes.max())}; must be within 0..{LANES - 1}")
        # (copies, rows, 1) and (columns,) broadcast against the (rows, columns) cells of one copy.
        return lane + lanes[:, :, None], column + numpy.arange(form.columns)

    def places(
        self, taddr: int, shape: str, num: int, warp: int = 0, halves: bool = False, half_split: int | None = None
    ) -> Cells:
        """Return the lanes and columns, (32 threads, registers), that a load or store of a warp accesses.

        Args:
            halves: whether the transfer packs or unpacks; each column then represents two.
        Raises:
            TmemError: the warp does not reach the lanes, or the columns are not allocated.
        """
        taddr = _address(taddr)
        lane, column = taddr >> 16, taddr & 0xFFFF
        check_transfer(shape, num)
        warp = expect_integer(warp, "warp", 0)
        expect(halves, bool, "pack or unpack")
        if half_split is not None:
            half_split = expect_integer(half_split, "half_split", 0, COLUMNS, "columns")
        if (shape == "16x32bx2") != (half_split is not None):
            raise TmemError(
                f"half_split = {half_split} with shape {shape}; must be an integer with 16x32bx2, and None otherwise"
            )
        # PTX ISA, tcgen05.ld access restrictions: a warp reaches the 32 lanes of its rank in the warpgroup.
        first, last = SLAB * (warp % 4), lane + (SLAB if shape == "32x32b" else SLAB // 2) - 1
        if lane < first or last >= first + SLAB:
            reach = f"{first}..{first + SLAB - 1}"
            raise TmemError(f"warp {warp} reaches lanes {reach}, but the transfer is on lanes {lane}..{last}")
        lanes, columns = image(shape, num)
        second_half = numpy.arange(THREADS)[:, None] // 16
        columns = columns * (1 + halves) + second_half * (half_split or 0)
        self.expect_allocated(column, int(columns.max()) + 1 + halves)
        return lane + lanes, column + columns

    def expect_allocated(self, column: int, count: int) -> None:
        """Check that columns are allocated.

        Raises:
            TmemError: the columns are not all inside one allocation.
        """
        column, count = expect_integer(column, "the first column"), expect_integer(count, "the number of columns")
        for first, size in self._allocated.items():
            if first <= column and column + count <= first + size:
                return
        raise TmemError(f"columns {column}..{column + count - 1} are not allocated", {"allocated": self._ranges()})

    def _ranges(self) -> str:
        return ", ".join(f"{first}..{first + size - 1}" for first, size in self._allocated.items()) or "none"

    def use_group(self, cta_group: int) -> None:
        """Record the `.cta_group` of an instruction.

        Raises:
            TmemError: the number is not 1 or 2, or differs from the number in earlier instructions.
        """
        cta_group = expect_integer(cta_group, "cta_group")
        if cta_group not in (1, 2):
            raise TmemError.of_value("cta_group", cta_group, "be 1 or 2")
        if self._cta_group not in (0, cta_group):
            both = f"cta_group::{cta_group} after cta_group::{self._cta_group}"
            raise TmemError(f"{both}; a kernel must use one of them throughout")
        self._cta_group = cta_group


def _address(taddr: int) -> int:
    """Check that a tensor-memory address has at most 32 bits, and return it."""
    return expect_integer(taddr, "the tensor-memory address", 0, (1 << 32) - 1)


def source_addresses(form: HasRows, descriptor: SmemDescriptor) -> NDArray[numpy.int64]:
    """Return the shared-memory address of every byte of every row that a copy reads: int64 of shape (rows, units, 16).

    Raises:
        TmemError: the descriptor is a wgmma descriptor, or its fixed bits have wrong values.
        UnknownFactError: the descriptor has a base offset, or its leading offset is an address.

    >>> from cute_py.atom.smem_descriptor import SmemDescriptor
    >>> from cute_py.machine.tensor_memory.copy_shapes import COPY_SHAPES
    >>> descriptor = SmemDescriptor(start=64, leading=16, stride=128)
    >>> source_addresses(COPY_SHAPES[0], descriptor)[:2, 0, 0].tolist()
    [1024, 1040]
    """
    expect_having(form, ("rows", "bits"), "a form of tcgen05.cp")
    expect(descriptor, SmemDescriptor, "a matrix descriptor")
    if descriptor.kind is not DescriptorKind.TCGEN05:
        raise TmemError("tcgen05.cp reads tcgen05 descriptors; got a wgmma one")
    expect_fixed_bits(descriptor)
    if descriptor.base_offset or descriptor.leading_is_address:
        text = "it is unknown how tcgen05.cp reads a descriptor with a base offset or an absolute leading address"
        facts = {"base offset": descriptor.base_offset, "leading is an address": descriptor.leading_is_address}
        raise UnknownFactError(text, facts)
    rows = numpy.arange(form.rows, dtype=numpy.int64)[:, None]
    unit = numpy.arange(form.bits // 128, dtype=numpy.int64)
    step = descriptor.leading * UNIT_BYTES if descriptor.swizzle is SmemSwizzle.NONE else UNIT_BYTES
    linear = descriptor.start * UNIT_BYTES + rows // 8 * (descriptor.stride * UNIT_BYTES) + unit * step
    linear = linear + rows % 8 * descriptor.swizzle.row_bytes
    return (swizzled(linear, descriptor.swizzle)[:, :, None] + numpy.arange(UNIT_BYTES)) & ADDRESS_MASK
