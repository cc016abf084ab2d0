"""What every TMA atom of a tile can tell, tiled or im2col, once its plan is known.

An atom bound to the state of one execution, as C++'s `.with(...)` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cute_py.argument_checks import expect_fields, expect_having, expect_integer
from cute_py.dtypes import DType
from cute_py.errors import InvalidValueError
from cute_py.layout.domain import domain_of
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.swizzle import Swizzle
from cute_py.tma.atom.op import Op, receives_slices
from cute_py.tma.atom.swizzle_mode import SwizzleRow, swizzle_row
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import OpRow


@dataclass(frozen=True, slots=True, eq=False)  # a barrier may be an array, which has no one equality
class ExecutableCopy:
    """An atom bound to the state of one execution: `barrier`, `multicast_mask` (0: none), `cache_hint` (None: none).

    `atom` is a `TmaAtom` or an `Im2colAtom`.
    """

    atom: Any
    barrier: Any
    multicast_mask: int = 0
    cache_hint: int | None = None

    def __post_init__(self) -> None:
        expect_fields(self)


def bind(atom: Any, barrier: Any, multicast_mask: int, cache_hint: int | None) -> ExecutableCopy:
    """The executable atom.

    Raises:
        InvalidTypeError: a mask or a cache hint that is no integer. InvalidValueError: a mask on an operation without
            multicast, or of more than 16 bits; a hint of more than 64.
    """
    mask = expect_integer(multicast_mask, "the multicast mask", 0, (1 << 16) - 1)
    if mask and not atom.op.row.multicast:
        raise InvalidValueError(f"{atom.op} takes no multicast mask, got {mask:#x}")
    hint = None if cache_hint is None else expect_integer(cache_hint, "the cache hint", 0, (1 << 64) - 1)
    return ExecutableCopy(atom, barrier, mask, hint)


class TileAtom:
    """The common part of `TmaAtom` and `Im2colAtom`; they hold the fields and say what an instruction slot is."""

    op: Op
    smem_layout: Any
    plan: Any
    request: Any
    swizzle: Swizzle
    dtype: DType
    arch: str

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_having(self.smem_layout, ("shape",), "the layout of a tile in shared memory")

    @cached_property
    def descriptor(self) -> bytes:
        """The 128 bytes of the tensor map.

        Raises:
            TmaLimitError: the driver would refuse it (an atom made with check=False).
        """
        return encode(self.request, arch=self.arch)

    @property
    def instruction(self) -> OpRow:
        """What the instruction of this copy does: direction, load mode, multicast, CTAs, reduction."""
        return self.op.row

    @property
    def num_multicast(self) -> int:
        """CTAs that share the tile."""
        count: int = self.plan.num_multicast
        return count

    @property
    def num_val_src(self) -> int:
        """Elements (of `dtype`) of one instruction slot, all CTAs of a multicast together."""
        raise NotImplementedError

    @property
    def num_bits_per_tma(self) -> int:
        """Bits of one instruction slot: of the whole box, not divided by a multicast count."""
        raise NotImplementedError

    @property
    def tile(self) -> Layout:
        """The plain layout of one tile in shared memory."""
        return domain_of(self.smem_layout)

    @property
    def instructions(self) -> int:
        """Instructions that one CTA issues for a tile."""
        return -(-int(size(self.tile)) // self.num_val_src) if self.num_val_src else 0

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a CTA's barrier must expect for one tile.

        The whole tile, also where it hangs over the tensor's end: out-of-bounds elements are filled and counted. With
        multicast every receiving CTA gets the whole tile, a part from each of the CTAs that issue; an operation without
        multicast that is divided among CTAs brings each of them its slice alone.
        """
        slices = self.num_multicast if receives_slices(self.op, self.num_multicast) else 1
        return self.instructions * self.num_bits_per_tma // 8 // slices

    @property
    def swizzle_row(self) -> SwizzleRow:
        """The mode of the tensor map that swizzles so."""
        return swizzle_row(self.swizzle)

    @property
    def alignment(self) -> int:
        """Alignment of the tile in shared memory, bytes: 128, or where the swizzle pattern repeats."""
        return self.swizzle_row.alignment

    def with_(self, barrier: Any, multicast_mask: int = 0, cache_hint: int | None = None) -> ExecutableCopy:
        """The executable atom: bound to a barrier, a multicast mask and an L2 cache hint, as C++'s `.with(...)`.

        Raises:
            InvalidValueError: a mask on an operation without multicast, or of more than 16 bits; InvalidTypeError: a
                mask that is no integer.
        """
        return bind(self, barrier, multicast_mask, cache_hint)
