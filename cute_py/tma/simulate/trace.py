"""The path of one element or byte through a copy, in both directions.

    logical coordinate -> TMA coordinate -> global byte -> instruction -> shared byte -> bank

A `Trace` is a copy as a list of instructions of one descriptor. `forward` follows an element of the tensor to shared
memory, `backward` gives what a shared byte holds, `first_difference` the first byte in which two memories differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cute_py.argument_checks import expect, expect_choice, expect_function, expect_integer, expect_integers
from cute_py.errors import InvalidValueError, counted
from cute_py.targets import BANK_BYTES, BANKS
from cute_py.tma.emulator import operands
from cute_py.tma.emulator.geometry import Descriptor, Geometry, Image, geometry, row_image
from cute_py.tma.emulator.memory import (
    ADDRESS_LIMIT,
    SHARED_LIMIT,
    Bytes,
    GlobalMemory,
    Integers,
    IntegersLike,
    SharedMemory,
    as_bytes,
    unequal_bits,
)
from cute_py.tma.emulator.walk import Rows, row_coordinates, walk_rows


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One element of a copy, from its coordinate to its bank. Addresses in bytes."""

    tma_coord: tuple[int, ...]
    """Innermost mode first; with interleave mode 0 counts channel slices."""
    inside: bool
    """The element is inside the tensor; else it is filled and no global byte is read."""
    global_address: int
    global_name: str
    instruction: int
    instruction_coords: tuple[int, ...]
    shared_offset: int
    shared_address: int
    logical: tuple[int, ...] | None = None

    @property
    def bank(self) -> int:
        """The bank of shared memory, of 32 that are 4 bytes wide."""
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
    """The first byte in which two memories differ."""

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
        """The two bytes, without the step."""
        return f"byte {self.byte}: 0x{self.found:02x}, expected 0x{self.expected:02x} ({self.count} differ)"


def byte_difference(found: Bytes, expected: Bytes) -> Difference | None:
    """The first byte in which two memories of one length differ, with no step; None if they are equal."""
    first = unequal_bits(found, expected)
    return first and Difference(first[0], int(found[first[0]]), int(expected[first[0]]), first[1], None)


class Trace:
    """n instructions of one descriptor, and where they move each element.

    Args:
        descriptor, mode, im2col_offsets: as for `Emulator.load`.
        coords: (n, R), innermost mode first.
        smem_offsets: (n,) bytes.
        smem: gives the base address; None: 0.
        gmem: gives names to addresses; None: plain addresses.
        logical: TMA coordinate -> coordinate in the tensor's own order, if there is one.

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
        self.coords, self.offsets, self.rows = operands.checked(self.geometry, coords, im2col_offsets)
        self.starts = operands.offsets_of_windows(smem_offsets, len(self.coords))
        self.base = 0 if smem is None else expect(smem, SharedMemory, "smem").base
        self.gmem = None if gmem is None else expect(gmem, GlobalMemory, "gmem")
        if logical is not None:
            expect_function(logical, "logical, called with a TMA coordinate,")
        self.logical = logical
        self._walked: tuple[int, Rows, Integers] | None = None

    def __repr__(self) -> str:
        return f"<trace of {counted(len(self.coords), 'instruction')}, mode {self.geometry.mode}>"

    # ---- the walk of one instruction -----------------------------------------------------------------------------

    def _rows(self, i: int) -> tuple[Rows, Integers]:
        """Rows of instruction i, and the (R, rank) tensor coordinates of their first elements; the last is kept."""
        if self._walked is None or self._walked[0] != i:
            one = self.geometry, self.coords[i : i + 1], self.offsets[i : i + 1]
            self._walked = i, walk_rows(*one), row_coordinates(*one)
        return self._walked[1:]

    def _image(self, i: int) -> Image:
        return row_image(self.geometry, self.rows, int(self.starts[i]) + self.base)

    def _step(self, i: int, rows: Rows, table: Integers, row: int, byte: int) -> TraceStep:
        """The step of byte `byte` of row `row` of instruction i."""
        shape, picture = self.geometry, self._image(i)
        unit = row * (shape.row_bytes // picture.unit) + byte // picture.unit
        offset = int(self.starts[i]) + int(picture.positions[unit]) + byte % picture.unit
        first, *outer = table[row].tolist()
        tma = (first if shape.interleaved else first + byte * 8 // shape.bits, *outer)
        address = int(rows.address[0, row]) + byte
        inside = bool(rows.inside[0, row]) and int(rows.first[0]) <= byte < int(rows.last[0])
        return TraceStep(
            tma_coord=tma,
            inside=inside,
            global_address=address,
            global_name=f"0x{address:x}" if self.gmem is None else self.gmem.name_of(address),
            instruction=i,
            instruction_coords=tuple(self.coords[i].tolist()),
            shared_offset=offset,
            shared_address=offset + self.base,
            logical=None if self.logical is None else self.logical(tma),
        )

    # ---- questions -----------------------------------------------------------------------------------------------

    def forward(self, tma_coord: Sequence[int]) -> list[TraceStep]:
        """Trace the element at a TMA coordinate: one step for each time that an instruction touches it.

        Raises:
            InvalidValueError: the wrong number of coordinates.
        """
        shape = self.geometry
        numbers = expect_integers(tma_coord, "TMA coordinate", -ADDRESS_LIMIT, ADDRESS_LIMIT - 1, count=shape.rank)
        want = np.asarray(numbers, np.int64)
        found = []
        per_row = 1 if shape.interleaved else shape.row_bytes * 8 // shape.bits
        for i in range(len(self.coords)):
            rows, table = self._rows(i)
            ahead = want[0] - table[:, 0]
            hit = (table[:, 1:] == want[1:]).all(axis=1) & (ahead >= 0) & (ahead < per_row)
            for row in np.flatnonzero(hit).tolist():
                byte = 0 if shape.interleaved else int(ahead[row]) * shape.bits // 8
                found.append(self._step(i, rows, table, row, byte))
        return found

    def backward(self, shared_offset: int) -> TraceStep | None:
        """Trace the byte that a shared offset holds after the instructions ran in order; None if none wrote it."""
        shape = self.geometry
        shared_offset = expect_integer(shared_offset, "the offset in shared memory", 0, SHARED_LIMIT - 1)
        for i in range(len(self.coords) - 1, -1, -1):
            picture = self._image(i)
            inside = shared_offset - int(self.starts[i]) - picture.positions
            hit = np.flatnonzero((inside >= 0) & (inside < picture.unit))
            if len(hit):
                rows, table = self._rows(i)
                row, unit = divmod(int(hit[0]), shape.row_bytes // picture.unit)
                return self._step(i, rows, table, row, unit * picture.unit + int(inside[hit[0]]))
        return None

    def from_global(self, address: int) -> list[TraceStep]:
        """The steps of the byte at a global address: one for each time that an instruction touches it."""
        address = expect_integer(address, "the address", 0, ADDRESS_LIMIT - 1)
        found = []
        for i in range(len(self.coords)):
            rows, table = self._rows(i)
            byte = address - rows.address[0]
            hit = rows.inside[0] & (byte >= rows.first[0]) & (byte < rows.last[0])
            for row in np.flatnonzero(hit).tolist():
                found.append(self._step(i, rows, table, row, int(byte[row])))
        return found

    def steps(self, instruction: int = 0) -> Iterator[TraceStep]:
        """Every element of one instruction, in the order of the rows."""
        instruction = expect_integer(instruction, "the number of an instruction")
        if not 0 <= instruction < len(self.coords):
            raise InvalidValueError(f"instruction {instruction}; there are {len(self.coords)}")
        rows, table = self._rows(instruction)
        width = self.geometry.row_bytes if self.geometry.interleaved else max(self.geometry.bits // 8, 1)
        for row in range(self.rows):
            for byte in range(0, self.geometry.row_bytes, width):
                yield self._step(instruction, rows, table, row, byte)

    def first_difference(
        self, found: Bytes, expected: Bytes, *, space: str = "shared", base: int = 0
    ) -> Difference | None:
        """The first byte in which two memories differ, and what it should hold; None if they are equal.

        Args:
            found, expected: uint8 arrays of one length.
            space: 'shared' or 'global'; `base` is the address of byte 0 of global memory.
        Raises:
            InvalidValueError: different lengths, or no such space.
        """
        expect_choice(space, ("shared", "global"), "space")
        base = expect_integer(base, "base", 0, ADDRESS_LIMIT - 1, "bytes")
        found, expected = (as_bytes(b, name, writable=False) for b, name in ((found, "found"), (expected, "expected")))
        if len(found) != len(expected):
            raise InvalidValueError(f"{len(found)} and {len(expected)} bytes; must be as many")
        first = byte_difference(found, expected)
        if first is None:
            return None
        step = self.backward(first.byte) if space == "shared" else next(iter(self.from_global(base + first.byte)), None)
        return replace(first, step=step)
