"""Why a copy is refused, traps, hangs or races, and what to do.

The tables: steps of the verifier, conditions of the G-basis, traps of the hardware, races that `diagnose` sees.
"""

from __future__ import annotations

from typing import Final

from cute_py.explanation.reason import MEASURED, Reason

VERIFIER_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "1",
        "A copy has a tensor in global memory, a layout (or tensor) in shared memory and a map from the values "
        "of the CTA "
        "to modes of the tensor; an instruction addresses one to five modes.",
        "Pass gmem_ptr tensors and a shared layout, the CTA V-map of make_cta_v_map, and group modes beyond five.",
    ),
    Reason(
        "2",
        "The tile in shared memory is a layout, or a swizzle of one; nothing else says where its elements are.",
        "Pass a Layout, or Sw<B,M,S> o offset o layout.",
    ),
    Reason(
        "3",
        "A tensor map holds sizes and strides, no function of them: a swizzled or composed global tensor has none.",
        "Pass the tensor with its plain layout; swizzle the shared side.",
    ),
    Reason(
        "4",
        "A tensor map holds one stride in bytes for each mode, in units of 16 bytes.",
        "Give integer strides; pad those that are no multiple of 16 bytes. Coordinate tensors come out of the "
        "atom, they "
        "do not go into it.",
    ),
    Reason(
        "5",
        "The engine has four patterns: none, 32B, 64B and 128B, as XOR of bits of the byte address.",
        "Take a layout of make_smem_layout, or Sw<0|1|2|3,4,3> on bytes.",
    ),
    Reason(
        "6",
        "The box is part of the map and of the type of the atom: it must be known before the kernel runs.",
        "Write the sizes of the tile and of the shared layout as Int(64).",
    ),
    Reason(
        "7",
        "Every element of the tile has one place in shared memory, so both have the same top-level shape.",
        "Give the tiler and the shared layout the same modes: a tile of (128, 64) needs a shared layout of (128, 64).",
    ),
    Reason(
        "8",
        "An instruction moves a box; elements that follow each other in shared memory must step by 1 through a global "
        "mode for there to be one.",
        "Let the innermost mode of the shared layout be one that the tile takes whole; explain(atom) shows the stages.",
    ),
    Reason(
        "9",
        "The box must be one that a map can hold: 1 to 256 elements of each mode, the contiguous mode first.",
        "Look at the printed G-basis: a size above 256 needs a smaller tile, a first mode that is not contiguous in "
        "global memory needs another order of the shared layout.",
    ),
    Reason(
        "10",
        "The coordinate tensor of the copy has a mode for each mode of the global tensor, with basis strides.",
        "Check that the global shape and the CTA V-map come from the same tensor.",
    ),
    Reason(
        "11",
        "A multicast load must say how many CTAs share the tile, and the tile must divide among them.",
        "Pass num_multicast with a multicast operation, and only there.",
    ),
)
"""Key: the number of the step. Source of the steps: the TMA Atoms reference page."""

GBASIS_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "TMA requires CTA_Tile and SLayout",
        "Every element of the tile has one place in shared memory, so both must have the same number of "
        "elements, known "
        "when the copy is made.",
        "Give the tiler and the shared layout equal static sizes: Int(128), not 128.",
        "cute/atom/copy_traits_sm90_tma.hpp",
    ),
    Reason(
        "Could not find a common tile-gmem vectorization",
        "An instruction moves a box that is contiguous in shared memory; the run that is contiguous there must "
        "step by 1 "
        "through a global mode.",
        "Make the stride-1 mode of the shared layout one that the tile selects with stride 1; a transposed "
        "shared layout "
        "needs a transposed tile, or an element type of the same width on both sides.",
        "cute/atom/copy_traits_sm90_tma.hpp",
    ),
)

TRAP_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "inner coordinate",
        "TMA moves whole pieces of 16 bytes, so a box can't begin within one.",
        "Let the tiles of the contiguous mode be a multiple of 16 bytes (128 elements for packed types with gaps).",
        MEASURED,
    ),
    Reason(
        "base coordinate of mode",
        "The base pixel of an im2col load walks the bounding box; it can't begin outside of it.",
        "Begin between the lower corner and size - 1 + upper corner; filter positions go into the offsets.",
        MEASURED,
    ),
    Reason(
        "coordinate[",
        "A load fills what lies before the tensor, a store has nowhere to put it.",
        "Begin a store at coordinate 0 or later. Beyond the end elements are dropped, which is legal.",
        MEASURED,
    ),
    Reason(
        "an im2col store",
        "A store through a bounding box that reaches outside the tensor would write pixels that do not exist.",
        "Make a map with lower corners of 0 or more and upper corners of 0 or less for the store.",
        MEASURED,
    ),
    Reason(
        "reduction",
        "The engine has each reduction for some element formats only.",
        "Take a reduction and a format that are a row of REDUCTION_TYPES; explain('tma.REDUCTION_TYPES') lists them.",
        MEASURED,
    ),
    Reason(
        "the box overruns shared memory",
        "The whole box is written, elements outside the tensor too; it must fit behind the address that is given.",
        "Reserve atom.transaction_bytes for each tile and count the offsets of the stages again.",
        MEASURED,
    ),
    Reason(
        "the copy overruns shared memory",
        "A bulk copy moves all of its bytes; they must fit behind the address that is given.",
        "Reserve more, or copy less.",
        "as for the box of a tensor copy; not measured for bulk copies",
    ),
    Reason(
        "the copy reads or writes bytes that no memory range holds",
        "The range leaves every allocation that the emulator knows.",
        "Check address and number of bytes against GlobalMemory; on a GPU this is CUDA_ERROR_ILLEGAL_ADDRESS.",
        "the memory that the emulator was given; a GPU knows its own allocations only",
    ),
    Reason(
        "the box reads or writes bytes of the tensor that no memory range holds",
        "Sizes and strides of the map reach beyond the allocation; what is outside the tensor is filled, what is "
        "inside "
        "is read, whether it exists or not.",
        "Compare address, sizes and strides of the map with the allocation: describe(map) prints them.",
        "the memory that the emulator was given; a GPU knows its own allocations only",
    ),
    Reason(
        "shared-memory address",
        "A tensor copy begins at a multiple of 128 bytes in shared memory, and a swizzled tile at its "
        "atom.alignment, or "
        "the pattern is another one.",
        "Declare the buffer with __align__(1024), and let stages be multiples of the alignment.",
        "PTX ISA, cp.async.bulk.tensor; the trap itself was not measured",
    ),
)
"""Key: how the cause begins."""

HANG_REASON: Final = Reason(
    "never completes phase",
    "A phase of a barrier is over when all threads that it was made for have arrived and as many bytes came as were "
    "announced. More, fewer or none: the wait never ends, and a GPU says nothing.",
    "Announce atom.transaction_bytes for each tile, the same for tiles that hang over the end; with multicast every "
    "receiving CTA announces the whole tile; look for a load that was not issued or names another barrier, and for the "
    "parity, which changes each time round.",
    "PTX ISA, mbarrier",
)

RACE_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "two loads into the same bytes",
        "Loads are asynchronous: which of two lands last is not said.",
        "Wait on the barrier of the first, or give the second a stage of its own.",
    ),
    Reason(
        "overwrites a stage that is still being read",
        "A load may land while threads still read the stage.",
        "Let the readers arrive at the empty barrier, and let the producer wait for it before it issues the load.",
    ),
    Reason(
        "overwrites the source of a store before its group was read",
        "A store reads shared memory some time after it was issued.",
        "cp.async.bulk.commit_group and wait_group.read before the stage is loaded again.",
    ),
    Reason(
        "read before its barrier completed",
        "The bytes of a load are there when the phase of its barrier is over, not before.",
        "Wait on the barrier with the parity of this phase before reading.",
    ),
    Reason(
        "written while a load is in flight",
        "The load and the ordinary write have no order.",
        "Wait on the load's barrier first.",
    ),
    Reason(
        "changes the source of a store before its group was read",
        "A store reads shared memory some time after it was issued.",
        "cp.async.bulk.commit_group and wait_group.read before the source is written again.",
    ),
    Reason(
        "store without fence.proxy.async after ordinary writes",
        "Ordinary writes and bulk copies see shared memory through different proxies.",
        "fence.proxy.async by the threads that wrote, a barrier of threads, then the store.",
    ),
    Reason(
        "store before the load of its source was waited for",
        "The store may read the stage before the load has landed.",
        "Wait on the load's barrier before issuing the store.",
    ),
    Reason(
        "exit before",
        "Shared memory is gone with its CTA, and others may get it.",
        "Wait for the loads' barriers and for wait_group before the CTA ends.",
    ),
    Reason(
        "tensor map is",
        "The engine reads maps through a proxy of its own, which may hold an older copy.",
        "fence.proxy.tensormap::generic release after writing the map, and acquire by the thread that issues the copy.",
    ),
)
"""Key: how the rule begins. Source of all: PTX ISA, asynchronous operations and proxies."""
