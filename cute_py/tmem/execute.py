"""Execute a planned copy in the emulator, compute the expected bytes from its layouts, and compare the two.

`run` issues every instruction of a plan as a kernel would: with the descriptor of the buffer plus the instruction's
offset in 16-byte units, and with the tensor-memory address of the tile. `expected_tmem` uses only the two layouts to
compute which shared byte belongs in each byte of tensor memory.

`get_copy_s2t_smem_desc` returns the shared side of a copy as a view of matrix descriptors, one for each instruction.
The view takes the place of a shared tensor, because tcgen05.cp reads descriptors and not pointers. A TMA partition
whose result is such a view has bit 12 of its flags set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cute_py.argument_checks import expect, expect_fields, expect_integer
from cute_py.atom.smem_descriptor import SmemDescriptor, replace_start_address, smem_desc_add_16B_offset
from cute_py.errors import CoordinateError, InvalidTypeError, TmemError, counted, given
from cute_py.machine.tensor_memory.memory import NOT_A_SOURCE, SLAB, TensorMemory
from cute_py.tmem.copy_request import CopyAsync
from cute_py.tmem.cp_forms import COLUMNS, LANES
from cute_py.tmem.cp_plan import LANE_SHIFT, CpPlan
from cute_py.tmem.planner import Side
from cute_py.tmem.swizzled_layout import ComposeLayout
from cute_py.tmem.tile_layout import TileLayout

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

__all__ = ["S2TDescriptorView", "expected_tmem", "get_copy_s2t_smem_desc", "read_back", "run", "run_pair"]

READ_COLUMNS = 32
"""Columns that one tcgen05.ld of `read_back` reads."""


def tile_descriptors(plan: CpPlan, smem_address: int) -> list[int]:
    """Return the 64-bit descriptor of each instruction, for a buffer at `smem_address` (bytes).

    The older planner adds the offset to the low 32 bits of the buffer's descriptor. The newer planner inserts the start
    address into a descriptor with address 0. The results are equal for addresses below 256 KiB.
    """
    if plan.compat == "reference":
        base = plan.descriptor(smem_address)
        return [smem_desc_add_16B_offset(base, tile.smem_offset) for tile in plan.tiles]
    template = plan.descriptor()
    return [replace_start_address(template, smem_address + 16 * tile.smem_offset) for tile in plan.tiles]


def run(
    plan: CpPlan, tmem: TensorMemory, taddr: int, smem: NDArray[numpy.uint8], smem_address: int, smem_base: int = 0
) -> None:
    """Issue every instruction of `plan` in the emulator; the caller commits.

    Args:
        taddr: the allocated tensor-memory address.
        smem: the bytes of shared memory; the first byte has the address `smem_base`.
        smem_address: the address of the buffer, a multiple of the swizzle's period.
    Raises:
        TmemError: the buffer is not aligned to the swizzle's period.

    >>> import numpy
    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> memory = TensorMemory()
    >>> taddr = memory.alloc(32)
    >>> run(demonstration_copy().plan, memory, taddr, numpy.arange(512, dtype=numpy.uint8), 0)
    >>> memory.commit()
    """
    expect(plan, CpPlan, "the plan of a copy")
    expect(tmem, TensorMemory, "tensor memory")
    smem_address = expect_integer(smem_address, "the address of the buffer")
    taddr = expect_integer(taddr, "the tensor-memory address")
    period = plan.swizzle.period
    if smem_address % period:
        raise TmemError(f"the shared buffer at address {smem_address} must start at a multiple of {period}")
    form = plan.form
    for tile, descriptor in zip(plan.tiles, tile_descriptors(plan, smem_address), strict=True):
        at, group = taddr + tile.taddr_offset, plan.cta_group
        tmem.cp(at, descriptor, smem, form.shape, form.multicast, cta_group=group, smem_base=smem_base)


def read_back(tmem: TensorMemory, taddr: int, n_cols: int) -> NDArray[numpy.uint32]:
    """Read columns `taddr` to `taddr + n_cols - 1` of all lanes with four warps, as uint32 of shape (128, n_cols).

    >>> memory = TensorMemory()
    >>> read_back(memory, memory.alloc(32), 4).shape
    (128, 4)
    """
    expect(tmem, TensorMemory, "tensor memory")
    taddr, n_cols = expect_integer(taddr, "the tensor-memory address"), expect_integer(n_cols, "n_cols")
    if not 0 <= n_cols <= COLUMNS:
        raise TmemError(f"n_cols = {n_cols}; must be within 0..{COLUMNS}, the columns of tensor memory")
    out = numpy.zeros((LANES, n_cols), numpy.uint32)
    for warp in range(4):
        column = 0
        while column < n_cols:
            count = 1 << min(READ_COLUMNS, n_cols - column).bit_length() - 1  # a load reads 1, 2, 4, ... columns
            lanes = slice(SLAB * warp, SLAB * (warp + 1))
            address = taddr + (SLAB * warp << LANE_SHIFT) + column
            out[lanes, column : column + count] = tmem.ld(address, "32x32b", count, warp)
            column += count
    return out


def run_pair(
    copy: CopyAsync, tmems: Sequence[TensorMemory], taddr: int, smems: Sequence[NDArray[numpy.uint8]], smem_address: int
) -> None:
    """Run a copy with cta_group::2: each CTA of the pair copies its own shared memory to its own tensor memory, at the
    same offsets.

    >>> import numpy
    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> pair = [TensorMemory(), TensorMemory()]
    >>> taddr = [memory.alloc(32, 2) for memory in pair][0]
    >>> run_pair(demonstration_copy(cta_group=2), pair, taddr, [numpy.zeros(512, numpy.uint8)] * 2, 0)
    """
    expect(copy, CopyAsync, "a copy")
    if copy.plan.cta_group != 2:
        raise TmemError("run_pair needs a plan with cta_group::2; this plan has cta_group::1")
    for name, pair in {"tmems": tmems, "smems": smems}.items():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidTypeError(f"{name} must be two values, one for each CTA of the pair, got {given(pair)}")
    for tmem, smem in zip(tmems, smems, strict=True):
        run(copy.plan, tmem, taddr, smem, smem_address)


def _cut(side: Side) -> TileLayout | ComposeLayout:
    cut = side.layout.slice(side.shape, side.region)
    if cut is None:
        raise TmemError("the region is not a layout, because it takes uneven parts of a shard")
    return cut


def expected_tmem(smem: Side, tmem: Side, bits: int, smem_address: int) -> NDArray[numpy.int64]:
    """Return the shared byte that belongs in each byte of tensor memory: int64 of shape (128, 512, 4), with -1
    where no byte belongs.

    The function computes the result element by element from the layouts. Elements narrower than a byte must fill
    complete bytes.

    Raises:
        TmemError: the layouts place different shared bytes in one byte, or an element outside tensor memory.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> request = demonstration_copy().request
    >>> smem, tmem = (Side(r.buffer.layout, r.buffer.shape, r.region) for r in (request.src, request.dst))
    >>> expected_tmem(smem, tmem, 8, 0x400)[1, 0].tolist()
    [1040, 1041, 1042, 1043]
    """
    expect(smem, Side, "the shared side")
    expect(tmem, Side, "the tensor-memory side")
    bits = expect_integer(bits, "bits of an element", 1, 128)
    smem_address = expect_integer(smem_address, "the address of the buffer", 0, 1 << 32)
    source = _cut(smem).positions("m") * bits
    target = _cut(tmem)
    if isinstance(target, ComposeLayout):
        raise TmemError("a tensor-memory layout has no swizzle")
    places = target.places(("TLane", "TCol"))
    lanes, column_bits = places[..., 0].reshape(-1), places[..., 1].reshape(-1) * bits
    if len(source) != target.size():
        raise TmemError(
            f"the shared layout has {len(source)} elements and the tensor-memory layout {target.size()}; "
            "they must be equal"
        )
    if lanes.min() < 0 or lanes.max() >= LANES or column_bits.min() < 0 or column_bits.max() + bits > COLUMNS * 32:
        raise TmemError(f"the layout extends past tensor memory, which has {LANES} lanes of {COLUMNS} columns")
    source = numpy.repeat(source, places.shape[1])
    out = numpy.full(LANES * COLUMNS * 4, NOT_A_SOURCE, numpy.int64)
    for step in range(0, bits, 8):
        cell = lanes * COLUMNS * 4 + (column_bits + step) // 8
        address = smem_address + (source + step) // 8
        phase = (column_bits + step) % 8 == (source + step) % 8
        if not phase.all():
            raise TmemError("elements narrower than a byte would move to another position within their byte")
        out[cell] = address
        if (out[cell] != address).any():
            raise TmemError("two elements map to one byte of tensor memory")
    return out.reshape(LANES, COLUMNS, 4)


@dataclass(frozen=True, slots=True)
class S2TDescriptorView:
    """The descriptors of all instructions of a plan, for a shared buffer at `smem_address` (bytes).

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> view = S2TDescriptorView(demonstration_copy().plan, 0x400)
    >>> view.smem_address, view.plan.count
    (1024, 1)
    """

    plan: CpPlan
    smem_address: int = 0

    def __post_init__(self) -> None:
        expect_fields(self)
        self.plan.descriptor(self.smem_address)  # raises an error if no descriptor can hold the address

    @property
    def base(self) -> int:
        """The descriptor of the buffer, without the offset of an instruction."""
        return self.plan.descriptor(self.smem_address)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offset that each instruction adds to the base descriptor, in 16-byte units."""
        return tuple(tile.smem_offset for tile in self.plan.tiles)

    @property
    def values(self) -> tuple[int, ...]:
        """The 64-bit descriptor of each instruction, in the order of issue."""
        return tuple(tile_descriptors(self.plan, self.smem_address))

    def __len__(self) -> int:
        return self.plan.count

    def __getitem__(self, index: int) -> int:
        index = expect_integer(index, "the index of an instruction")
        if not -len(self) <= index < len(self):
            raise CoordinateError(f"instruction {index} does not exist; the copy has {len(self)}")
        return self.values[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)

    def explain(self) -> str:
        """Describe the fields of the first descriptor, and list the offsets of all instructions."""
        fields = SmemDescriptor.decode(self.base).explain()
        listed = ", ".join(map(str, self.offsets))
        return f"{fields}\n  {counted(len(self), 'instruction')}, offsets in 16-byte units: {listed}"


def get_copy_s2t_smem_desc(copy: CopyAsync | CpPlan, smem_address: int = 0) -> S2TDescriptorView:
    """Return the view of a planned copy's descriptors.

    Args:
        smem_address: address of the shared buffer in bytes; a multiple of 16.
    Raises:
        TmemError: the address is not a multiple of 16.
        InvalidTypeError: the arguments are not a planned copy and an address.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> get_copy_s2t_smem_desc(demonstration_copy(), 0x400).smem_address
    1024
    """
    return S2TDescriptorView(copy.plan if isinstance(copy, CopyAsync) else copy, smem_address)
