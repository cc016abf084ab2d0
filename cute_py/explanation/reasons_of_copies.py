"""Why a copy is refused, traps, hangs or races, and what to do.

The tables: steps of the verifier, conditions of the G-basis, traps of the hardware, races that `diagnose` sees.

Why the rules of a tensor map exist, one row for each rule of `descriptor.limits`, and what to do about each.

The reasons about bits follow from the fields that the map has (`descriptor.fields`).
"""

from __future__ import annotations

from typing import Final

from cute_py.explanation.reason import MEASURED, Reason

_PIECES = "TMA moves whole pieces of 16 bytes"
_PACKED = "The packed formats are documented so; no GPU that has them was at hand, so nothing of it was measured."

MAP_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "rank",
        "A map has room for five sizes, four strides and five sizes of the box.",
        "Merge modes that continue each other (coalesce does it), or make one map for each index of the "
        "outermost mode.",
    ),
    Reason(
        "rank_im2col",
        "An im2col map has a mode of channels, one to three spatial modes and a mode of images.",
        "Give the tensor modes of size 1 for those that it lacks.",
    ),
    Reason(
        "rank_interleave",
        "An interleaved tensor keeps its channels in slices: slices, width and images are three modes already.",
        "Give the tensor modes of size 1, or take interleave NONE.",
    ),
    Reason(
        "length",
        "Every mode has a size and a stride of elements; mode 0 has no stride in bytes, because it is contiguous.",
        "Give one size, box size and element stride for each mode, and one stride in bytes fewer.",
    ),
    Reason(
        "data_type",
        "The engine must know how wide an element is, how to fill it and how to add it; later GPUs know more formats.",
        "Take a format of the table FORMATS, or name the architecture that has this one (arch='sm_100a').",
    ),
    Reason(
        "interleave",
        "Two bits of the map hold it, and three values have a meaning.",
        "Take a member of Interleave.",
    ),
    Reason(
        "swizzle",
        "Two bits of the map hold it on sm_90; the ATOM variants exist from sm_100 on, and their bits are not known.",
        "Take NONE, B32, B64 or B128 of TensorMapSwizzle.",
    ),
    Reason(
        "l2_promotion",
        "Two bits of the map hold it: how much the cache fetches where less is asked for.",
        "Take a member of L2Promotion. It changes speed, never the result.",
    ),
    Reason(
        "oob_fill",
        "One bit of the map holds it: zeros, or a NaN, for elements outside the tensor.",
        "Take a member of OobFill.",
    ),
    Reason(
        "wide_mode",
        "im2col-wide has two forms: 0 (W), and 1 (W128), which has halo pixels after every 32.",
        "Take a member of Im2ColWideMode; the instruction must name the same one.",
    ),
    Reason(
        "nan_fill",
        "An integer format has no NaN to fill with.",
        "Fill with zeros (OobFill.NONE), or take a floating-point format.",
    ),
    Reason(
        "address_alignment",
        f"{_PIECES}; a tensor that begins within one can't be cut into them.",
        "Begin at a multiple of 16 bytes: allocators of a GPU give more; a slice of a tensor may not. Move the "
        "slice into "
        "the coordinates of the copy, which need no map of their own.",
    ),
    Reason(
        "address_alignment_interleave_32b",
        "With interleave 32B the pieces are slices of 32 bytes of channels.",
        "Begin at a multiple of 32 bytes, or take interleave 16B.",
    ),
    Reason(
        "address_range",
        "The driver takes addresses below 2**57; a larger number is none of its memory.",
        "Pass the address of the GPU's memory (tensor.data_ptr()), not a packed or negative number.",
    ),
    Reason(
        "size",
        "A map holds size - 1 of each mode in 32 bits, so that there is neither size 0 nor one above 2**32.",
        "Launch nothing for an empty tensor; cut a larger one into several maps.",
    ),
    Reason(
        "stride_alignment",
        "A map holds strides in units of 16 bytes (36 bits of bytes >> 4), because TMA moves whole pieces of 16 bytes.",
        "Pad the row to a multiple of 16 bytes (8 elements of 16 bits), or copy the tensor once into one that "
        "is; where "
        "two modes continue each other, merge them, so that the stride is not needed.",
    ),
    Reason(
        "stride_alignment_interleave_32b",
        "With interleave 32B the pieces are slices of 32 bytes of channels.",
        "Pad to a multiple of 32 bytes, or take interleave 16B.",
    ),
    Reason(
        "stride_range",
        "A map holds strides as 36 bits of 16-byte units: less than 2**40 bytes. There is no sign.",
        "Order the modes so that no stride is negative; a reversed mode needs another copy.",
    ),
    Reason(
        "element_stride",
        "A map holds stride - 1 of each mode in 3 bits.",
        "Take 1 to 8; skip more by giving the tensor's own stride in bytes a larger value.",
    ),
    Reason(
        "box",
        "A map holds the size of the box less 1 in 8 bits of each mode.",
        "Take a smaller tile, or, if it fits into shared memory, make_tma_copy(..., split_oversize=True): several "
        "instructions for one tile.",
    ),
    Reason(
        "inner_bytes",
        "A row of the box lands in shared memory in whole pieces of 16 bytes.",
        "Make the innermost mode of the box a multiple of 16 bytes: 8 elements of 16 bits, 4 of 32.",
    ),
    Reason(
        "inner_span",
        "A swizzle permutes the 16-byte pieces within 32, 64 or 128 bytes; a row that is longer would leave the "
        "pattern.",
        "Make the rows of the tile as long as the span (64 elements of 16 bits for 128B) and put several such "
        "columns side "
        "by side in the shared layout, as make_smem_layout does, or take a wider swizzle or none.",
    ),
    Reason(
        "box_bytes",
        "One instruction writes its whole box into the shared memory of one CTA, and it must fit there.",
        "Take a smaller tile; the shared memory of each GPU is in ARCHITECTURES.",
    ),
    Reason(
        "channels",
        "A map holds channels - 1 in 8 bits.",
        "Take at most 256 channels for one instruction, and issue several.",
    ),
    Reason(
        "pixels",
        "A map holds pixels - 1 in 10 bits.",
        "Take at most 1024 pixels for one instruction, and issue several.",
    ),
    Reason(
        "corner_range",
        "The corners of all spatial modes share 16 bits: one of 16, two of 8 or three of 5, by the rank.",
        "Keep the padding of a convolution below these bounds: -128 to 127 in two dimensions, -16 to 15 in three.",
    ),
    Reason(
        "bounding_box",
        "The base pixel runs from the lower corner to size - 1 + upper corner; the driver computes that in 32 bits and "
        "refuses a box without a pixel.",
        "Give corners that leave at least one pixel: lower = -padding, upper = padding - dilation * (filter - 1).",
    ),
    Reason(
        "wide_size",
        "The driver computes size - 1 in signed 32 bits where a mode has no corner.",
        "Keep the size of such a mode at 2**31 or less.",
    ),
    Reason("packed_size_align8", _PACKED, "Give the innermost mode an even number of elements."),
    Reason("packed_address", _PACKED, "Begin at a multiple of 32 bytes."),
    Reason("packed_size", _PACKED, "Give the innermost mode a multiple of 128 elements."),
    Reason("packed_stride", _PACKED, "Pad rows to a multiple of 32 bytes."),
    Reason("packed_box", _PACKED, "Take 128 elements of the innermost mode for the box."),
    Reason("packed_interleave", _PACKED, "Take interleave NONE."),
    Reason("packed_swizzle", _PACKED, "Take NONE, 128B or the ATOM variant that the text names."),
    Reason(
        "unknown_format",
        "The four bits of the format hold a code that no driver was seen to write.",
        "These bytes are no tensor map, or one of a newer GPU: look whether they are 128 bytes from the start of "
        "a map.",
    ),
    Reason(
        "unknown_rank",
        "The three bits of the rank hold more than a map has modes.",
        "These bytes are no tensor map: look at the address that they were read from, which is a multiple of 64.",
    ),
)


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
