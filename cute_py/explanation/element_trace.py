"""Trace one element from global memory to the tensor core: box, swizzle, ldmatrix or descriptor, lane, register.

    tensor (m,k) -> TMA coordinate, global byte -> instruction -> shared byte, bank
                 -> lanes that read it -> thread, register -> (m,k) of the MMA instruction

The bytes of the tensor map determine the first line; the thread-value layouts of a tiled copy and a tiled MMA determine
the second. For an operand that the instruction reads from shared memory, the second line shows the descriptor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cute_py.argument_checks import expect, expect_choice, expect_integers, record
from cute_py.atom.smem_descriptor import SmemDescriptor
from cute_py.atom.tiled_copy import TiledCopy
from cute_py.atom.tiled_mma import MODES, TiledMma
from cute_py.draw.element_path import tile_trace, tuple_text
from cute_py.errors import InvalidValueError
from cute_py.layout import Int, Layout, offsets, rank, size
from cute_py.tensor import Tensor, make_smem_ptr, make_tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.emulator.trace import TraceStep

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

Place = tuple[int, ...]


@record
class ElementTrace:
    """The path of one operand element from global memory to the tensor core. `str` has one line per step.

    Args:
        coord: coordinate of the element in the global tensor. tile: index of the element's tile along each mode. place:
            coordinate of the element in its tile.
        step: the trace of the TMA copy of the element to shared memory.
        readers: (thread, value) in the source of the copy from shared memory to registers; for ldmatrix, the lane that
            supplies the address of the element's row.
        holders: threads that hold the element in their fragment; empty if the instruction reads shared memory.
        register: index of the 32-bit register in the fragment. bits: first and last bit of the element in that
            register.
        descriptor: the shared-memory descriptor of the instruction's operand; None if the instruction reads registers.
        instruction: index of the MMA instruction along the operand's modes. element: coordinate of the element in the
            operand of that instruction.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.tma.make_smem_layout("K", "128B", "bfloat16", (128, 64))
    >>> mma = cute.make_tiled_mma("SM90_64x64x16_F32BF16BF16_SS", (2, 1, 1))
    >>> found = cute.trace(cute.tma.make_tma_copy("SM90_TMA_LOAD", x, tile), (133, 70), mma)
    >>> found.tile, found.place, found.operand
    ((1, 1), (5, 6), 'A')
    """

    coord: Place
    tile: Place
    place: Place
    step: TraceStep
    readers: tuple[Place, ...]
    holders: Place
    register: int | None
    bits: Place
    descriptor: SmemDescriptor | None
    instruction: Place
    element: Place
    operand: str
    mma: str
    copy: str | None

    def __str__(self) -> str:
        step = self.step
        source = f"global byte {step.global_name}" if step.inside else "outside the tensor: filled, not read"
        lines = [
            f"tensor {tuple_text(self.coord)}: {tuple_text(self.place)} of tile {tuple_text(self.tile)}",
            f"TMA {tuple_text(step.tma_coord)}: {source}, instruction at {tuple_text(step.instruction_coords)}",
            f"shared byte {step.shared_offset}, bank {step.bank}",
        ]
        if self.readers:
            shown = ", ".join(f"thread {thread} as value {value}" for thread, value in self.readers[:2])
            more = f" and {len(self.readers) - 2} more" if len(self.readers) > 2 else ""
            lines.append(f"{self.copy}: read by {shown}{more}")
        if self.descriptor is not None:
            lines.append(f"descriptor {self.descriptor}: {self.operand} of MMA {tuple_text(self.instruction)}")
        else:
            threads = ", ".join(map(str, self.holders[:4])) + (", ..." if len(self.holders) > 4 else "")
            name = "threads" if len(self.holders) > 1 else "thread"
            where = f"register {self.register}, bits {' to '.join(map(str, self.bits))}"
            lines.append(f"{name} {threads}: {where}, of MMA {tuple_text(self.instruction)}")
        lines.append(f"{self.mma}: {self.operand}{tuple_text(self.element)}")
        return "\n".join(lines)


def trace(
    atom: TmaAtom,
    coord: tuple[int, int],
    tiled_mma: TiledMma,
    *,
    operand: Literal["A", "B"] = "A",
    tiled_copy: TiledCopy | None = None,
) -> ElementTrace:
    """Trace one element of an operand from global memory to the MMA instruction that multiplies it.

    Args:
        atom: the TMA load of the operand's tiles, (M,K) or (N,K). The size of a tile must be a multiple of the MMA's
            tile.
        coord: coordinate of the element in the global tensor. tiled_mma: the MMA that reads the operand, from registers
            or through descriptors from shared memory. tiled_copy: the copy from shared memory to registers, such as
            `make_tiled_copy_A(ldmatrix, tiled_mma)`.
    Raises:
        InvalidTypeError: an argument is not a TMA atom, tiled MMA or copy. InvalidValueError: the element does not
            exist, or the tiles do not fit each other.

    >>> import cute_py as cute
    >>> from cute_py.atom.tiled_mma import make_tiled_mma
    >>> from cute_py.tensor import make_gmem_ptr
    >>> x = make_tensor(make_gmem_ptr(4096, "bfloat16"), Layout((1024, 512), (512, Int(1))))
    >>> load = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.tma.make_smem_layout("K", "128B", "bfloat16", (128, 64)))
    >>> print(trace(load, (133, 70), make_tiled_mma("SM90_64x64x16_F32BF16BF16_SS", (Int(2), Int(1), Int(1)))))
    tensor (133,70): (5,6) of tile (1,1)
    TMA (70,133): global byte 0x2248c, instruction at (64,128)
    shared byte 732, bank 23
    descriptor 0x4000004000010000: A of MMA (0,0)
    SM90_64x64x16_F32BF16BF16_SS: A(5,6)
    """
    load = expect(atom, TmaAtom, "the atom of a trace")
    mma = expect(tiled_mma, TiledMma, "the tiled MMA")
    expect_choice(operand, ("A", "B"), "operand")
    shared = load.smem_layout
    for thing, what in ((shared, "the tile in shared memory"), (load.gtensor.layout, "the tensor")):
        if int(rank(thing)) != 2:
            raise InvalidValueError(f"{what} has {int(rank(thing))} modes; must have two: M or N, and K")
    extents = tuple(int(size(shared, mode)) for mode in range(2))
    whole = tuple(int(size(load.gtensor.layout, mode)) for mode in range(2))
    wanted = expect_integers(coord, "the coordinate of an element", 0)
    if len(wanted) != 2 or any(c >= n for c, n in zip(wanted, whole, strict=True)):
        raise InvalidValueError(f"coordinate {wanted} is outside the tensor of shape {tuple_text(whole)}")
    _check_tile(mma, operand, extents)
    tile = tuple(c // n for c, n in zip(wanted, extents, strict=True))
    place = tuple(c % n for c, n in zip(wanted, extents, strict=True))
    target = [int(x) for x in load.get_tma_tensor()(wanted).as_tuple()]
    step = tile_trace(load, tile).forward(target)[0]
    lanes, value, instruction, element = _holders(mma, operand, extents, place)
    copied = None if tiled_copy is None else expect(tiled_copy, TiledCopy, "the tiled copy to registers")
    kind = mma.atom.fragment_type(operand).kind
    descriptor, register, bits = None, None, (0, 0)
    width = load.dtype.bits
    if kind == "smem_desc":
        memory = make_tensor(make_smem_ptr(0, load.dtype), shared)
        descriptor = _descriptor(mma, operand, memory, lanes[0], instruction)
        lanes = ()
    else:
        register, low = divmod(value * width, 32)
        bits = (low, low + width - 1)
    return ElementTrace(
        coord=wanted,
        tile=tile,
        place=place,
        step=step,
        readers=() if copied is None else _readers(copied, extents, place),
        holders=lanes,
        register=register,
        bits=bits,
        descriptor=descriptor,
        instruction=instruction,
        element=element,
        operand=operand,
        mma=mma.atom.op,
        copy=None if copied is None else copied.atom.op,
    )


def _check_tile(mma: TiledMma, operand: Literal["A", "B"], extents: Place) -> None:
    needed = tuple(int(mma.tile_size(mode)) for mode in MODES[operand])
    if any(n % t for n, t in zip(extents, needed, strict=True)):
        raise InvalidValueError(
            f"the tile in shared memory is {tuple_text(extents)}; must be a multiple of the tile of the MMA, "
            f"{tuple_text(needed)}"
        )


def _tile_layout(extents: Place) -> Layout:
    return Layout(tuple(Int(n) for n in extents))


def _holders(
    mma: TiledMma, operand: Literal["A", "B"], extents: Place, place: Place
) -> tuple[Place, int, Place, Place]:
    """(threads, index of the value in the fragment, index of the MMA instruction, coordinate in its operand) of a
    coordinate in the tile."""
    first, second = MODES[operand]
    divided = mma.thrfrg(operand, _tile_layout(extents))
    threads, values = divided[0], divided[1]
    counts = [int(size(x)) for x in (threads[0], threads[1][0], threads[1][1], values[0], values[1][0], values[1][1])]
    table = np.asarray(offsets(divided)).reshape(counts, order="F")
    found = np.argwhere(table == place[0] + extents[0] * place[1])
    lane, value, rest0, rest1 = (int(found[0][i]) for i in (0, 3, 4, 5))
    other = 3 - first - second
    numbers: set[int] = set()
    for row in found:
        at = [int(row[0]), 0, 0, 0]
        at[first + 1], at[second + 1] = int(row[1]), int(row[2])
        for free in range(int(size(mma.thr_layout_vmnk[other + 1]))):
            at[other + 1] = free
            numbers.add(int(mma.thr_layout_vmnk(*at)))
    within = int(np.asarray(offsets(mma.atom.layouts[operand]))[lane, value])
    rows = int(mma.atom.shape_mnk[first])
    index = value + counts[3] * (rest0 + counts[4] * rest1)
    return tuple(sorted(numbers)), index, (rest0, rest1), (within % rows, within // rows)


def _descriptor(
    mma: TiledMma, operand: Literal["A", "B"], memory: Tensor, thread: int, instruction: Place
) -> SmemDescriptor:
    """The descriptor of the tile that one MMA instruction reads."""
    part = mma.get_slice(thread).partition(operand, memory)
    fragment = mma.make_fragment_A(part) if operand == "A" else mma.make_fragment_B(part)
    found: SmemDescriptor = fragment(Int(0), *instruction)
    return found


def _readers(copy: TiledCopy, extents: Place, place: Place) -> tuple[Place, ...]:
    """(thread, value) in the source of the copy for a coordinate in the tile."""
    table = np.asarray(offsets(copy.tidfrg_S(_tile_layout(extents))))
    found = np.argwhere(table.reshape(table.shape[0], -1, order="F") == place[0] + extents[0] * place[1])
    return tuple((int(thread), int(value)) for thread, value in found)
