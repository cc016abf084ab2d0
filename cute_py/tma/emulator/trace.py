"""Trace one element or byte through a copy, in both directions.

    logical coordinate -> TMA coordinate -> global byte -> instruction -> shared byte -> bank

A `Trace` represents a copy as a list of instructions with one descriptor. `forward` follows an element of the tensor to
shared memory, `backward` returns the element that a shared-memory byte belongs to, and `first_difference` finds the
first byte that differs between two memories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_py.argument_checks import expect, expect_choice, expect_function, expect_integer, expect_integers
from cute_py.errors import InvalidValueError, counted
from cute_py.targets import BANK_BYTES, BANKS
from cute_py.tma.emulator import operands
from cute_py.tma.emulator.geometry import Descriptor, Geometry, geometry, swizzled_address
from cute_py.tma.emulator.memory import (
    ADDRESS_LIMIT,
    SHARED_LIMIT,
    Bytes,
    GlobalMemory,
    IntegersLike,
    SharedMemory,
    as_bytes,
    unequal_bits,
)
from cute_py.tma.emulator.walk import row_coordinates, row_modes

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The path of one element of a copy, from its coordinate to its bank. Addresses are in bytes."""

    tma_coord: tuple[int, ...]
    """Innermost mode first; with interleave mode 0 counts channel slices."""
    inside: bool
    """Whether the element is inside the tensor; if not, it is filled, and no global byte is read."""
    global_address: int
    global_name: str
    instruction: int
    instruction_coords: tuple[int, ...]
    shared_offset: int
    shared_address: int
    logical: tuple[int, ...] | None = None

    @property
    def bank(self) -> int:
        """The shared-memory bank of the element: one of 32 banks of 4 bytes."""
        return self.shared_address // BANK_BYTES % BANKS

    def __str__(self) -> str:
        logical = "" if self.logical is None else f"logical {self.logical} -> "
        source = self.global_name if self.inside else "outside the tensor (filled)"
        return (
            f"{logical}TMA {self.tma_coord} -> {source} -> instruction {self.instruction} at "
            f"{self.instruction_coords} -> shared byte {self.shared_offset} -> bank {self.bank}"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte that differs between two memories, and the instruction that wrote it."""

    byte: int
    found: int
    expected: int
    count: int
    """Number of bytes that differ."""
    step: TraceStep | None
    """The instruction that wrote the byte; None if no instruction touches it."""

    def __str__(self) -> str:
        return f"{self.headline}; {self.step or 'no instruction touches it'}"

    @property
    def headline(self) -> str:
        """The two bytes as text, without the step."""
        return f"byte {self.byte}: 0x{self.found:02x}, expected 0x{self.expected:02x} ({self.count} differ)"


def byte_difference(found: Bytes, expected: Bytes) -> Difference | None:
    """Find the first byte that differs between two memories of one length, without its step; None if they are equal."""
    first = unequal_bits(found, expected)
    return first and Difference(first[0], int(found[first[0]]), int(expected[first[0]]), first[1], None)


Coordinate: TypeAlias = tuple[int, ...]


def _operands(
    shape: Geometry, coords: IntegersLike, offsets: IntegersLike
) -> tuple[list[Coordinate], list[Coordinate], int]:
    """Return the coordinates and im2col offsets of the instructions, and the number of rows of one."""
    width = 5 if shape.four_rows else shape.rank
    if not shape.im2col and isinstance(coords, (list, tuple)) and isinstance(offsets, tuple) and not offsets:
        listed: list[Any] = list(coords)
        if all(type(row) is tuple and len(row) == width and all(map(_is_coordinate, row)) for row in listed):
            operands.require_box(shape, shape.row_count())
            return listed, [()] * len(listed), shape.row_count()
    where, more, rows = operands.checked(shape, coords, offsets)
    return [tuple(row) for row in where.tolist()], [tuple(row) for row in more.tolist()], rows


def _is_coordinate(value: Any) -> bool:
    return type(value) is int and -(1 << 31) <= value < 1 << 31


def _starts(offsets: IntegersLike, count: int) -> list[int]:
    """Return the start of the window of each instruction in bytes."""
    if isinstance(offsets, (list, tuple)) and len(offsets) == count and all(map(_is_coordinate, offsets)):
        return [int(start) for start in offsets]
    found: list[int] = operands.offsets_of_windows(offsets, count).tolist()
    return found


class Trace:
    """The paths of all elements through n instructions of one descriptor.

    Args:
        descriptor, mode, im2col_offsets: as for `Emulator.load`.
        coords: (n, R), innermost mode first.
        smem_offsets: (n,) bytes.
        smem: the shared memory; only its base address is used. None: the base address is 0.
        gmem: the global memory, whose range names appear in printed addresses. None: addresses print as integers.
        logical: a function from a TMA coordinate to the coordinate in the tensor's own order; None if there is none.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> tile = TensorMapTiled(6, 4096, (64, 16), (128,), (64, 8), swizzle=3)
    >>> print(Trace(tile, [(0, 0), (0, 8)], [0, 1024]).forward((8, 9))[0])
    TMA (8, 9) -> 0x1490 -> instruction 1 at (0, 8) -> shared byte 1152 -> bank 0
    """

    def __init__(
        self,
        descriptor: Descriptor,
        coords: IntegersLike,
        smem_offsets: IntegersLike,
        *,
        mode: str | None = None,
        im2col_offsets: IntegersLike = (),
        smem: SharedMemory | None = None,
        gmem: GlobalMemory | None = None,
        logical: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
    ) -> None:
        self.geometry: Geometry = geometry(descriptor, mode)
        self.coords, self.offsets, self.rows = _operands(self.geometry, coords, im2col_offsets)
        self.starts = _starts(smem_offsets, len(self.coords))
        self.base = 0 if smem is None else expect(smem, SharedMemory, "smem").base
        self.gmem = None if gmem is None else expect(gmem, GlobalMemory, "gmem")
        if logical is not None:
            expect_function(logical, "logical, called with a TMA coordinate,")
        self.logical = logical
        self._walked: tuple[int, list[Coordinate]] | None = None

    def __repr__(self) -> str:
        return f"<trace of {counted(len(self.coords), 'instruction')}, mode {self.geometry.mode}>"

    # ---- the rows of one instruction -----------------------------------------------------------------------------

    def _coordinate(self, i: int, row: int) -> Coordinate:
        """Return the tensor coordinate of byte 0 of a row of instruction i."""
        shape, start = self.geometry, self.coords[i]
        if shape.mode == "tile":
            found = list(start)
            for mode, (count, step) in enumerate(zip(shape.counts, shape.steps, strict=True)):
                row, at = divmod(row, count)
                found[mode] += at * step
            return tuple(found)
        return (start[0], start[1 + row]) if shape.four_rows else self._pixels(i)[row]

    def _pixels(self, i: int) -> list[Coordinate]:
        """Return the coordinates of all im2col rows of instruction i. The last result is cached."""
        if self._walked is None or self._walked[0] != i:
            one = (np.array([self.coords[i]], np.int64), np.array([self.offsets[i]], np.int64))
            self._walked = i, [tuple(row) for row in row_coordinates(self.geometry, *one).tolist()]
        return self._walked[1]

    def _rows_at(self, i: int, want: Coordinate) -> list[int]:
        """Find the rows of instruction i that contain the element at a TMA coordinate."""
        shape, start = self.geometry, self.coords[i]
        if not shape.interleaved and not 0 <= want[0] - start[0] < shape.row_bytes * 8 // shape.bits:
            return []
        if shape.mode != "tile":
            along = slice(0 if shape.interleaved else 1, None)
            return [row for row in range(self.rows) if self._coordinate(i, row)[along] == want[along]]
        row, rows = 0, 1
        for mode in row_modes(shape):
            at, rest = divmod(want[mode] - start[mode], shape.steps[mode])
            if rest or not 0 <= at < shape.counts[mode]:
                return []
            row, rows = row + at * rows, rows * shape.counts[mode]
        return [row]

    def _address(self, at: Coordinate) -> int:
        """Return the global address of byte 0 of the row that begins at a coordinate."""
        shape = self.geometry
        start = 0 if shape.interleaved else at[0] * shape.bits // 8
        return shape.address + start + sum(at[mode] * shape.strides[mode] for mode in row_modes(shape))

    def _inside(self, at: Coordinate, byte: int) -> bool:
        """Whether a byte of the row that begins at a coordinate is inside the tensor."""
        shape = self.geometry
        if not all(0 <= at[mode] < shape.dims[mode] for mode in row_modes(shape)):
            return False
        return shape.interleaved or 0 <= at[0] * shape.bits // 8 + byte < shape.dims[0] * shape.bits // 8

    def _step(self, i: int, row: int, byte: int) -> TraceStep:
        """Return the path (`TraceStep`) of byte `byte` in row `row` of instruction i."""
        shape, at = self.geometry, self._coordinate(i, row)
        spread = byte
        if shape.packing is not None:
            group, rest = divmod(byte, shape.packing.packed)
            spread = group * shape.packing.spread + rest
        place = swizzled_address(self.starts[i] + self.base + row * shape.pitch + spread, shape.swizzle)
        first, *outer = at
        tma = (first if shape.interleaved else first + byte * 8 // shape.bits, *outer)
        address = self._address(at) + byte
        return TraceStep(
            tma_coord=tma,
            inside=self._inside(at, byte),
            global_address=address,
            global_name=f"0x{address:x}" if self.gmem is None else self.gmem.name_of(address),
            instruction=i,
            instruction_coords=self.coords[i],
            shared_offset=place - self.base,
            shared_address=place,
            logical=None if self.logical is None else self.logical(tma),
        )

    # ---- questions -----------------------------------------------------------------------------------------------

    def forward(self, tma_coord: Sequence[int]) -> list[TraceStep]:
        """Return one step for each instruction that moves the element at a TMA coordinate.

        Raises:
            InvalidValueError: the number of coordinates is wrong.
        """
        shape = self.geometry
        want = expect_integers(tma_coord, "TMA coordinate", -ADDRESS_LIMIT, ADDRESS_LIMIT - 1, count=shape.rank)
        found = []
        for i in range(len(self.coords)):
            for row in self._rows_at(i, want):
                byte = 0 if shape.interleaved else (want[0] - self.coords[i][0]) * shape.bits // 8
                found.append(self._step(i, row, byte))
        return found

    def backward(self, shared_offset: int) -> TraceStep | None:
        """Return the last step that wrote the byte at a shared-memory offset; None if no instruction wrote it."""
        shape = self.geometry
        shared_offset = expect_integer(shared_offset, "the offset in shared memory", 0, SHARED_LIMIT - 1)
        # A swizzle is its own inverse.
        plain = swizzled_address(shared_offset + self.base, shape.swizzle) - self.base
        for i in range(len(self.coords) - 1, -1, -1):
            row, byte = divmod(plain - self.starts[i], shape.pitch)
            if shape.packing is not None:
                group, rest = divmod(byte, shape.packing.spread)
                byte = group * shape.packing.packed + rest if rest < shape.packing.packed else shape.row_bytes
            if 0 <= row < self.rows and byte < shape.row_bytes:
                return self._step(i, row, byte)
        return None

    def from_global(self, address: int) -> list[TraceStep]:
        """Return one step for each instruction that moves the byte at a global address."""
        address = expect_integer(address, "the address", 0, ADDRESS_LIMIT - 1)
        found = []
        for i in range(len(self.coords)):
            for row in range(self.rows):
                at = self._coordinate(i, row)
                byte = address - self._address(at)
                if 0 <= byte < self.geometry.row_bytes and self._inside(at, byte):
                    found.append(self._step(i, row, byte))
        return found

    def steps(self, instruction: int = 0) -> Iterator[TraceStep]:
        """Yield the step of every element of one instruction, in the order of the rows."""
        instruction = expect_integer(instruction, "the index of an instruction")
        if not 0 <= instruction < len(self.coords):
            raise InvalidValueError(f"instruction {instruction} does not exist; there are {len(self.coords)}")
        width = self.geometry.row_bytes if self.geometry.interleaved else max(self.geometry.bits // 8, 1)
        for row in range(self.rows):
            for byte in range(0, self.geometry.row_bytes, width):
                yield self._step(instruction, row, byte)

    def first_difference(
        self, found: Bytes, expected: Bytes, *, space: str = "shared", base: int = 0
    ) -> Difference | None:
        """Find the first byte that differs between two memories, and the instruction that wrote it; None if they are
        equal.

        Args:
            found, expected: uint8 arrays of one length.
            space: 'shared' or 'global'; `base` is the address of byte 0 of global memory.
        Raises:
            InvalidValueError: the lengths differ, or the space does not exist.
        """
        expect_choice(space, ("shared", "global"), "space")
        base = expect_integer(base, "base", 0, ADDRESS_LIMIT - 1, "bytes")
        found, expected = (as_bytes(b, name, writable=False) for b, name in ((found, "found"), (expected, "expected")))
        if len(found) != len(expected):
            raise InvalidValueError(f"{len(found)} and {len(expected)} bytes; must be equal")
        first = byte_difference(found, expected)
        if first is None:
            return None
        step = self.backward(first.byte) if space == "shared" else next(iter(self.from_global(base + first.byte)), None)
        return replace(first, step=step)
