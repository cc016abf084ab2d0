"""get_copy_s2t_smem_desc: the shared side of a copy to tensor memory as a view of matrix descriptors.

A shared-to-tensor copy does not read a pointer but descriptors, one for each instruction; this view stands in the
place of the shared tensor of such a copy. A TMA partition whose result is such a view says so in bit 12 of its flags.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.errors import CoordinateError
from cute_py.tmem.carry_out import tile_descriptors
from cute_py.tmem.copy_async import CopyAsync
from cute_py.tmem.copy_plan import CopyPlan
from cute_py.tmem.matrix_descriptor import MatrixDescriptor

S2T_DESCRIPTOR_FLAG_BIT = 12
"""Bit of the partition result's flags word: the result wraps a get_copy_s2t_smem_desc view."""


@dataclass(frozen=True, slots=True)
class S2TDescriptorView:
    """One descriptor for each instruction of a plan, for a shared buffer at `smem_address` (bytes)."""

    plan: CopyPlan
    smem_address: int = 0

    def __post_init__(self) -> None:
        expect_fields(self)
        self.plan.descriptor(self.smem_address)  # an address that no descriptor holds is refused here

    @property
    def base(self) -> int:
        """The descriptor of the buffer, before the offset of any instruction."""
        return self.plan.descriptor(self.smem_address)

    @property
    def offsets(self) -> tuple[int, ...]:
        """What each instruction adds to it, in 16-byte units."""
        return tuple(tile.smem_offset for tile in self.plan.tiles)

    @property
    def values(self) -> tuple[int, ...]:
        """The 64-bit descriptor of each instruction, in the order of issue."""
        return tuple(tile_descriptors(self.plan, self.smem_address))

    def __len__(self) -> int:
        return self.plan.count

    def __getitem__(self, index: int) -> int:
        index = expect_integer(index, "the number of an instruction")
        if not -len(self) <= index < len(self):
            raise CoordinateError(f"instruction {index}; the copy has {len(self)}")
        return self.values[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)

    def explain(self) -> str:
        """The fields of the first descriptor, and the offsets of all."""
        fields = MatrixDescriptor.decode(self.base).explain()
        return f"{fields}\n  {len(self)} instruction(s), offsets in 16-byte units: {', '.join(map(str, self.offsets))}"


def get_copy_s2t_smem_desc(copy: CopyAsync | CopyPlan, smem_address: int = 0) -> S2TDescriptorView:
    """The descriptor view of a planned copy.

    Args:
        smem_address: address of the shared buffer in bytes; a multiple of 16.
    Raises:
        TmemError: the address is no multiple of 16.
        InvalidTypeError: no plan, or no address.
    """
    return S2TDescriptorView(copy.plan if isinstance(copy, CopyAsync) else copy, smem_address)
