"""CpPlan: the instructions of a copy from shared to tensor memory.

A plan is one form of tcgen05.cp, the fields of the matrix descriptor, and nested middle loops whose steps move the
shared address (in 16-byte units) and the tensor-memory address. A tensor-memory address is lane << 16 | column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cute_py.argument_checks import expect_fields, expect_integer, record
from cute_py.atom.smem_descriptor import SmemSwizzle, encode_matrix_descriptor
from cute_py.diagnostics import Diagnostic
from cute_py.errors import TmemError, counted, integer_text
from cute_py.tmem.cp_forms import COLUMNS, LANES, CpForm

__all__ = ["CpPlan", "MiddleLoop", "Refusal", "Tile"]

LANE_SHIFT = 16


Refusal = Diagnostic
"""The reason why a copy has no plan, under its earlier name."""

MAX_INSTRUCTIONS = LANES * COLUMNS // (4 * 8)
"""Maximum number of instructions of one copy: the smallest form, 4x256b, writes 4 lanes of 8 columns, and a copy writes
each cell once."""


@record
class MiddleLoop:
    """A loop of `extent` iterations. Each iteration moves the shared address by `smem_step` units of 16 bytes, and the
    tensor-memory address by `taddr_step` (columns, or lanes << 16).

    >>> MiddleLoop(extent=4, smem_step=32, taddr_step=4)
    MiddleLoop(extent=4, smem_step=32, taddr_step=4)
    """

    extent: int
    smem_step: int
    taddr_step: int


@record
class Tile:
    """The offsets of one instruction: in the tensor-memory address, and in the descriptor (in 16-byte units).

    >>> Tile(taddr_offset=32 << 16 | 8, smem_offset=64).column
    8
    """

    taddr_offset: int
    smem_offset: int

    @property
    def column(self) -> int:
        return self.taddr_offset & 0xFFFF

    @property
    def lane(self) -> int:
        return self.taddr_offset >> LANE_SHIFT


@dataclass(frozen=True, slots=True)
class CpPlan:
    """The plan of one copy.

    Args:
        bits: width of one element in bits: 4, 8, 16 or 32.
        ldo, sdo: leading and stride offsets of the descriptor, in 16-byte units.
        swizzle: 0 to 3.
        row_bytes: bytes from one row to the next within eight rows: 16, 32, 64 or 128.
        middle: the loops over instructions; the first loop runs fastest.
        smem_offset: the offset of the first instruction, in 16-byte units from the start of the buffer.
        taddr_offset: the offset of the first instruction from the allocated address.
        notes: reasons why a stricter planner would refuse the copy.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> plan = demonstration_copy().plan
    >>> plan.ldo, plan.sdo, plan.row_bytes, plan.count
    (16, 8, 16, 1)
    """

    form: CpForm
    bits: int
    ldo: int
    sdo: int
    swizzle: SmemSwizzle
    row_bytes: int
    middle: tuple[MiddleLoop, ...]
    smem_offset: int
    taddr_offset: int
    cta_group: int = 1
    compat: str = "reference"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)
        if self.bits not in (4, 8, 16, 32):
            raise TmemError(f"an element has {self.bits} bits; must have 4, 8, 16 or 32")
        if any(loop.extent < 1 for loop in self.middle) or self.count > MAX_INSTRUCTIONS:
            raise TmemError(f"the copy has {integer_text(self.count)} instructions; must have 1..{MAX_INSTRUCTIONS}")

    @property
    def elements_per_atom(self) -> int:
        """The number of elements of one row that one instruction moves."""
        return self.form.bits // self.bits

    @property
    def elements_per_column(self) -> int:
        """The number of elements in one 32-bit column."""
        return 32 // self.bits

    @property
    def count(self) -> int:
        """The number of instructions."""
        return math.prod(loop.extent for loop in self.middle)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Every instruction, in the order of issue: the first middle loop runs fastest."""
        out = []
        for flat in range(self.count):
            taddr, smem, rest = self.taddr_offset, self.smem_offset, flat
            for loop in self.middle:
                index, rest = rest % loop.extent, rest // loop.extent
                taddr += index * loop.taddr_step
                smem += index * loop.smem_step
            out.append(Tile(taddr, smem))
        return tuple(out)

    @property
    def columns(self) -> int:
        """One past the last 32-bit column that the plan writes, counted from the allocated address."""
        return max(tile.column for tile in self.tiles) + self.form.columns

    @property
    def rows(self) -> int:
        """The number of rows of the tile that all instructions together read."""
        lanes = [tile.lane for tile in self.tiles]
        return max(lanes) - min(lanes) + self.form.rows

    @property
    def bytes_per_row(self) -> int:
        """The number of bytes in one row of the tile that all instructions together read."""
        columns = [tile.column for tile in self.tiles]
        return (max(columns) - min(columns)) * 4 + self.form.bits // 8

    @property
    def smem_bytes(self) -> int:
        """One past the last byte that the plan reads, counted from the start of the buffer, before the swizzle."""
        groups = max(self.form.rows // 8, 1)
        rows = min(self.form.rows, 8)
        unit = 0
        if self.form.bits > 128:
            unit = self.ldo * 16 if self.swizzle is SmemSwizzle.NONE else 16
        walk = (groups - 1) * self.sdo * 16 + (rows - 1) * self.row_bytes + unit + 16
        return max(tile.smem_offset for tile in self.tiles) * 16 + walk

    def descriptor(self, address: int = 0) -> int:
        """Return the 64-bit matrix descriptor of a buffer at shared-memory `address` (bytes), without offsets."""
        return encode_matrix_descriptor(address, self.ldo, self.sdo, int(self.swizzle))

    def check_capacity(self, columns: int = COLUMNS) -> list[Diagnostic]:
        """List the reason why the copy does not fit in an allocation of `columns` columns; empty if it fits."""
        columns = expect_integer(columns, "columns", 0)
        text = f"the copy writes up to column {self.columns - 1}; the allocation has columns 0..{columns - 1}"
        return [] if self.columns <= columns else [Diagnostic("capacity", text=text)]

    def capacity_violations(self, columns: int = COLUMNS) -> list[str]:
        """Return the messages of `check_capacity` as strings."""
        return [found.text for found in self.check_capacity(columns)]

    def explain(self) -> str:
        """Return the instruction, the descriptor and the loops as lines of text."""
        loops = ", ".join(f"{m.extent} x (+{m.smem_step * 16} B, taddr +{m.taddr_step:#x})" for m in self.middle)
        lines = [
            f"tcgen05.cp.cta_group::{self.cta_group}.{self.form.name}, {counted(self.count, 'instruction')}",
            f"  rows       : {self.form.rows} of {self.form.bits} bits = {self.elements_per_atom} elements "
            f"of {self.bits} bits",
            f"  descriptor : {self.descriptor():#018x} at address 0 (ldo {self.ldo}, sdo {self.sdo}, "
            f"swizzle {int(self.swizzle)})",
            f"  first      : shared +{self.smem_offset * 16} B, taddr +{self.taddr_offset:#x}",
            f"  loops      : {loops or 'none'}",
        ]
        return "\n".join(lines + [f"  note       : {note}" for note in self.notes])
