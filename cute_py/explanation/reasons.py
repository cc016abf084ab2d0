"""The long form of an error: the rule that was broken, why it exists, its source, and what to do.

A reason is found by the id of its rule, never by a text: a `Diagnostic` of a tensor map has one, a step of the verifier
has its number, and every error of this library carries one as `.rule`. The tables below have a row for each rule: those
of a tensor map (`descriptor.limits`, whose reasons about bits follow from the fields that the map has), the steps of
the verifier, the conditions of the G-basis, the traps of the hardware, the races that `diagnose` sees, a barrier that
never completes, the conditions that CuTe C++ asserts in the algebra (`assertions.txt` has those on tensors, copies and
MMAs); then one row for each class of `cute_py.errors`, which apply where no rule is known. The last table has terms
without an object of their own: the vocabulary of TMA, and the errors that the CUDA driver returns.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from enum import Enum
from importlib import resources
from typing import Final

from cute_py.diagnostics import Diagnostic, Reason, reason_table
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError, TmaTrap, TmaVerifyError, unless_refused
from cute_py.explanation.definitions import filled, instance_text, listed, member_text, public_objects
from cute_py.explanation.terms import WORDS, word_of
from cute_py.tma.atom.op import Op
from cute_py.tma.descriptor.data_types import (
    MEASURED,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
    member_named,
)

_PACKED = "Documented; not measured, because no GPU with the packed formats was available."
_VERIFIER_SOURCE = "the TMA Atoms reference page, the steps of the partition verifier"


MAP_REASONS: Final = reason_table(f"""
rank | A map has room for five sizes, four strides and five sizes of the box.
    -> Merge modes that continue each other (coalesce does it), or make one map for each index of the outermost mode.
rank_im2col | An im2col map has a mode of channels, one to three spatial modes and a mode of images.
    -> Give the tensor modes of size 1 for those that it lacks.
rank_interleave | An interleaved tensor keeps its channels in slices: slices, width and images are three modes already.
    -> Give the tensor modes of size 1, or take interleave NONE.
length | Every mode has a size and a stride of elements; mode 0 has no stride in bytes, because it is contiguous.
    -> Give one size, box size and element stride for each mode, and one stride in bytes fewer.
data_type | The engine must know how wide an element is, how to fill it and how to add it; later GPUs know more
    formats.
    -> Take a format of the table FORMATS, or name the architecture that has this one (arch='sm_100a').
interleave | Two bits of the map hold it, and three values have a meaning.
    -> Take a member of Interleave.
swizzle | Two bits of the map hold it on sm_90; the ATOM variants exist from sm_100 on, and their bits are not known.
    -> Take NONE, B32, B64 or B128 of TensorMapSwizzle.
l2_promotion | Two bits of the map hold it: how much the cache fetches where less is asked for.
    -> Take a member of L2Promotion. It changes speed, never the result.
oob_fill | One bit of the map holds it: zeros, or a NaN, for elements outside the tensor.
    -> Take a member of OobFill.
wide_mode | im2col-wide has two forms: 0 (W), and 1 (W128), which has halo pixels after every 32.
    -> Take a member of Im2ColWideMode; the instruction must name the same one.
nan_fill | An integer format has no NaN to fill with.
    -> Fill with zeros (OobFill.NONE), or take a floating-point format.
address_alignment | TMA moves units of 16 bytes; a tensor that begins inside one can't be divided into them.
    -> Begin at a multiple of 16 bytes: allocators of a GPU give more; a slice of a tensor may not. Move the slice into
    the coordinates of the copy, which need no map of their own.
address_alignment_interleave_32b | With interleave 32B the pieces are slices of 32 bytes of channels.
    -> Begin at a multiple of 32 bytes, or take interleave 16B.
address_range | The driver takes addresses below 2**57; a larger number is none of its memory.
    -> Pass the address of the GPU's memory (tensor.data_ptr()), not a packed or negative number.
size | A map holds size - 1 of each mode in 32 bits, so that there is neither size 0 nor one above 2**32.
    -> Launch nothing for an empty tensor; cut a larger one into several maps.
stride_alignment | A map holds strides in units of 16 bytes (36 bits of bytes >> 4), because TMA moves units of
    16 bytes.
    -> Pad the row to a multiple of 16 bytes (8 elements of 16 bits), or copy the tensor once into one that is; where
    two modes continue each other, merge them, so that the stride is not needed.
stride_alignment_interleave_32b | With interleave 32B the pieces are slices of 32 bytes of channels.
    -> Pad to a multiple of 32 bytes, or take interleave 16B.
stride_range | A map holds strides as 36 bits of 16-byte units: less than 2**40 bytes. There is no sign.
    -> Order the modes so that no stride is negative; a reversed mode needs another copy.
element_stride | A map holds stride - 1 of each mode in 3 bits.
    -> Take 1 to 8; skip more by giving the tensor's own stride in bytes a larger value.
box | A map holds the size of the box less 1 in 8 bits of each mode.
    -> Take a smaller tile, or, if it fits into shared memory, make_tma_copy(..., split_oversize=True): several
    instructions for one tile.
inner_bytes | A row of the box is written to shared memory in units of 16 bytes.
    -> Make the innermost mode of the box a multiple of 16 bytes: 8 elements of 16 bits, 4 of 32.
inner_span | A swizzle permutes the 16-byte pieces within 32, 64 or 128 bytes; a row that is longer would leave the
    pattern.
    -> Make the rows of the tile as long as the span (64 elements of 16 bits for 128B) and put several such columns
    side by side in the shared layout, as make_smem_layout does, or take a wider swizzle or none.
box_bytes | One instruction writes its whole box into the shared memory of one CTA, and it must fit there.
    -> Take a smaller tile; the shared memory of each GPU is in ARCHITECTURES.
channels | A map holds channels - 1 in 8 bits.
    -> Take at most 256 channels for one instruction, and issue several.
pixels | A map holds pixels - 1 in 10 bits.
    -> Take at most 1024 pixels for one instruction, and issue several.
corner_range | The corners of all spatial modes share 16 bits: one of 16, two of 8 or three of 5, by the rank.
    -> Keep the padding of a convolution below these bounds: -128 to 127 in two dimensions, -16 to 15 in three.
bounding_box | The base pixel runs from the lower corner to size - 1 + upper corner; the driver computes that in 32
    bits and refuses a box without a pixel.
    -> Give corners that leave at least one pixel: lower = -padding, upper = padding - dilation * (filter - 1).
wide_size | The driver computes size - 1 in signed 32 bits where a mode has no corner.
    -> Keep the size of such a mode at 2**31 or less.
packed_size_align8 | {_PACKED}
    -> Give the innermost mode an even number of elements.
packed_address | {_PACKED}
    -> Begin at a multiple of 32 bytes.
packed_size | {_PACKED}
    -> Give the innermost mode a multiple of 128 elements.
packed_stride | {_PACKED}
    -> Pad rows to a multiple of 32 bytes.
packed_box | {_PACKED}
    -> Take 128 elements of the innermost mode for the box.
packed_interleave | {_PACKED}
    -> Take interleave NONE.
packed_swizzle | {_PACKED}
    -> Take NONE, 128B or the ATOM variant that the text names.
unknown_format | The four bits of the format hold a code that no driver was seen to write.
    -> These bytes are not a tensor map, or one of a newer GPU: check that they are 128 bytes from the start of a map.
unknown_rank | The three bits of the rank hold more than a map has modes.
    -> These bytes are not a tensor map: check that the address that they were read from is a multiple of 64.
""")
"""Rule of a tensor map -> its reason. The source is that of the rule."""

STEP_REASONS: Final = reason_table("""
1 = invalid operand types, got | A copy has a tensor in global memory, a layout (or tensor) in shared memory and a map
    from the values of the CTA to modes of the tensor; an instruction addresses one to five modes.
    -> Pass gmem_ptr tensors and a shared layout, the CTA V-map of make_cta_v_map, and group modes beyond five.
2 = invalid smem layout type, expected LayoutType or ComposedLayoutType, got | The tile in shared memory is a layout,
    or a swizzle of one; its layout alone places the elements.
    -> Pass a Layout, or Sw<B,M,S> o offset o layout.
3 = unsupported layout for the GMEM tensor, got | A tensor map holds sizes and strides, no function of them: a
    swizzled or composed global tensor has none.
    -> Pass the tensor with its plain layout; swizzle the shared side.
4 = expected the GMEM and SMEM layouts to have integer stride elements, but got | A tensor map holds one stride in
    bytes for each mode, in units of 16 bytes.
    -> Give integer strides; pad those that are not a multiple of 16 bytes. Coordinate tensors are a result of the
    atom, not an operand.
5 = expected the SMEM layout to be a swizzle layout, but got | The engine has four patterns: none, 32B, 64B and 128B,
    as XOR of bits of the byte address.
    -> Take a layout of make_smem_layout, or Sw<0|1|2|3,4,3> on bytes.
6 = expected the SMEM layout and the CTA V-map to be static, but got | The box is part of the map and of the type of
    the atom: it must be known before the kernel runs.
    -> Write the sizes of the tile and of the shared layout as Int(64).
7 = expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got | Every element of the
    tile has one place in shared memory, so both have the same top-level shape.
    -> Give the tiler and the shared layout the same modes: a tile of (128, 64) needs a shared layout of (128, 64).
8 = failed to compute the TMA G-basis, got | An instruction moves a box; elements that follow each other in shared
    memory must step by 1 through a global mode for there to be one.
    -> Let the innermost mode of the shared layout be one that the tile takes whole; explain(atom) shows the stages.
9 = Computed TMA layout is invalid, got | The box must be one that a map can hold: 1 to 256 elements of each mode, the
    contiguous mode first.
    -> Look at the printed G-basis: a size above 256 needs a smaller tile, a first mode that is not contiguous in
    global memory needs another order of the shared layout.
10 = Failed to construct the TMA tensor type | The coordinate tensor of the copy has a mode for each mode of the
    global tensor, with basis strides.
    -> Check that the global shape and the CTA V-map come from the same tensor.
11 = missing or invalid num_multicast for a multicast TMA load | A multicast load must say how many CTAs share the
    tile, and the tile must divide among them.
    -> Pass num_multicast with a multicast operation, and only there.
""")
"""Number of a step of the verifier -> its reason; its name is the text that the step prints, without operands."""

GBASIS_REASONS: Final = reason_table("""
TMA requires CTA_Tile and SLayout top-level size equivalence. = TMA requires CTA_Tile and SLayout | Every element of
    the tile has one place in shared memory, so both must have the same number of elements, known when the copy is
    made.
    -> Give the tiler and the shared layout equal static sizes: Int(128), not 128.
    <- cute/atom/copy_traits_sm90_tma.hpp
Could not find a common tile-gmem vectorization. Does the Tile select out major GMEM modes? = Could not find a common
    tile-gmem vectorization | An instruction moves a box that is contiguous in shared memory; the run that is
    contiguous there must step by 1 through a global mode.
    -> Make the stride-1 mode of the shared layout one that the tile selects with stride 1; a transposed shared layout
    needs a transposed tile, or an element type of the same width on both sides.
    <- cute/atom/copy_traits_sm90_tma.hpp
""")

TRAP_REASONS: Final = reason_table(f"""
inner coordinate | TMA moves units of 16 bytes, so a box can't begin inside one.
    -> Let the tiles of the contiguous mode be a multiple of 16 bytes (128 elements for packed types with gaps).
    <- {MEASURED}
base coordinate = base coordinate of mode | The base pixel of an im2col load walks the bounding box; it can't begin
    outside of it.
    -> Begin between the lower corner and size - 1 + upper corner; filter positions go into the offsets.
    <- {MEASURED}
negative coordinate = coordinate[ | A load fills what lies before the tensor, a store has nowhere to put it.
    -> Begin a store at coordinate 0 or later. Beyond the end elements are dropped, which is legal.
    <- {MEASURED}
im2col store = an im2col store | A store through a bounding box that reaches outside the tensor would write pixels that
    do not exist.
    -> Make a map with lower corners of 0 or more and upper corners of 0 or less for the store.
    <- {MEASURED}
reduction | The engine has each reduction for some element formats only.
    -> Take a reduction and a format that are a row of REDUCTION_TYPES; explain('tma.REDUCTION_TYPES') lists them.
    <- {MEASURED}
the box overruns shared memory | The whole box is written, elements outside the tensor too; it must fit behind the
    address that is given.
    -> Reserve atom.transaction_bytes for each tile and count the offsets of the stages again.
    <- {MEASURED}
the copy overruns shared memory | A bulk copy moves all of its bytes; they must fit behind the address that is given.
    -> Reserve more, or copy less.
    <- as for the box of a tensor copy; not measured for bulk copies
the copy reads or writes bytes that no memory range holds | The range leaves every allocation that the emulator knows.
    -> Check address and number of bytes against GlobalMemory; on a GPU this is CUDA_ERROR_ILLEGAL_ADDRESS.
    <- the memory that the emulator was given; a GPU knows its own allocations only
the box reads or writes bytes of the tensor that no memory range holds | Sizes and strides of the map reach beyond the
    allocation; what is outside the tensor is filled, what is inside is read, whether it exists or not.
    -> Compare address, sizes and strides of the map with the allocation: describe(map) prints them.
    <- the memory that the emulator was given; a GPU knows its own allocations only
shared-memory address | A tensor copy begins at a multiple of 128 bytes in shared memory, and a swizzled tile at its
    atom.alignment, or the pattern is another one.
    -> Declare the buffer with __align__(1024), and let stages be multiples of the alignment.
    <- PTX ISA, cp.async.bulk.tensor; the trap itself was not measured
""")
"""Cause of a trap -> its reason."""

RACE_REASONS: Final = reason_table("""
two loads into the same bytes | Loads are asynchronous: the order of two is undefined.
    -> Wait on the barrier of the first, or give the second a stage of its own.
overwrites a stage that is still being read | A load may land while threads still read the stage.
    -> Let the readers arrive at the empty barrier, and let the producer wait for it before it issues the load.
overwrites the source of a store before its group was read | A store reads shared memory some time after it was issued.
    -> cp.async.bulk.commit_group and wait_group.read before the stage is loaded again.
read before its barrier completed | The bytes of a load are there when the phase of its barrier is over, not before.
    -> Wait on the barrier with the parity of this phase before reading.
written while a load is in flight | The load and the ordinary write have no order.
    -> Wait on the load's barrier first.
changes the source of a store before its group was read | A store reads shared memory some time after it was issued.
    -> cp.async.bulk.commit_group and wait_group.read before the source is written again.
store without fence.proxy.async after ordinary writes | Ordinary writes and bulk copies see shared memory through
    different proxies.
    -> fence.proxy.async by the threads that wrote, a barrier of threads, then the store.
store before the load of its source was waited for | The store may read the stage before the load has landed.
    -> Wait on the load's barrier before issuing the store.
exit before the group was read = exit before | Shared memory is released with its CTA, and others may get it.
    -> Wait for the loads' barriers and for wait_group before the CTA ends.
tensor map is | The engine reads maps through a proxy of its own, which may hold an older copy.
    -> fence.proxy.tensormap::generic release after writing the map, and acquire by the thread that issues the copy.
""")
"""Race -> its reason. Source of all: PTX ISA, asynchronous operations and proxies."""

HANG_REASONS: Final = reason_table("""
never completes phase | A phase of a barrier is over when all threads that it was made for have arrived and as many
    bytes came as were announced. More, fewer or none: the wait never ends, and a GPU reports nothing.
    -> Announce atom.transaction_bytes for each tile, the same for tiles that hang over the end; with multicast every
    receiving CTA announces the whole tile; look for a load that was not issued or names another barrier, and for the
    parity, which changes each time round.
    <- PTX ISA, mbarrier
""")

CONDITION_REASONS: Final = reason_table("""
Stride Divisibility Condition | A o B walks through the modes of A in steps of B's stride. A step beyond a mode must be
    a multiple of it; any other ends at another place of the mode each time, which no stride can express.
    -> Take a stride that is less than the mode's size, or a multiple of it; coalesce(A) may leave fewer modes.
    <- cute/layout.hpp, composition
Shape Divisibility Condition | A o B takes B's elements from the modes of A one after the other: what the first mode
    gives (its size over the step, rounded up) must divide B's size, or no shape exists for the rest.
    -> Take a tile of at most what the mode gives, or a multiple of that: of (8,4) 6, 8, 16 or 24 in steps of 1, not
    12; pad a mode that does not divide, and let the copy mask what hangs over.
    <- cute/layout.hpp, composition
Divisibility Condition | Shapes are divided mode by mode, and a mode that is cut must be cut into equal parts.
    -> Take sizes of which one divides the other.
    <- cute/int_tuple.hpp, shape_div
Majorness of smem doesn't match majorness of gmem | Mode 0 of a box is contiguous in shared memory, and an instruction
    has no stride for mode 0 of the global tensor: it must be 1 element.
    -> Make the mode with global stride 1 the contiguous one of the shared layout; a tensor that has no such mode must
    be copied first.
    <- cute/atom/copy_traits_sm90_tma.hpp, make_tma_copy_desc
Index out of range = Index out of range | A mode that the tuple does not have is asked for; after another failed
    assertion it is a consequence of that one.
    -> Mend the first error of the output; else ask for a mode below the rank.
    <- cute/container/tuple.hpp, get
Need equal rank of shape and order | Entry i of an order is the rank of mode i of the shape among the modes.
    -> Give an entry for each mode.
    <- cute/stride.hpp, compact_order
Divisibility condition | N elements become one, so every stride must be a multiple of N, or N of the stride.
    -> Take a smaller N: max_alignment(layout) is the largest one that works.
    <- cute/layout.hpp, upcast
Static safe_div requires t % u == 0 = Static safe_div requires | Both numbers are known when the program is compiled,
    so a rest would be an error there.
    -> Take sizes of which one divides the other.
    <- cute/numeric/math.hpp, safe_div
Dynamic-stride complement only for rank-1 layouts = Dynamic-stride complement | The complement sorts the modes by
    stride, and strides that are known only at run time can't be sorted.
    -> Make the strides static with Int(...), or give each mode its own complement.
    <- cute/layout.hpp, complement
Downcast requires adjacent elements | A wide element becomes several narrow ones side by side; that needs a mode of
    static stride 1 to hold them.
    -> Give the layout a static contiguous mode, Int(1), and downcast that.
    <- cute/layout.hpp, downcast
Mismatched ranks = Mismatched | The operation goes through both operands mode by mode, so they must have equally many.
    -> Give both the same number of modes; group_modes and flatten change it, append adds modes of size 1.
    <- cute/layout.hpp
abs(SShift) must be more than BBits. = abs(SShift) must be more than BBits | A swizzle combines two groups of bits by
    XOR; groups that overlap would make it no permutation.
    -> Take |S| of at least B: Sw<3,4,3> is the widest of the engine.
    <- cute/swizzle.hpp
tile_to_shape: block shape does not divide the target shape. = tile_to_shape | The block is repeated along
    each mode, an integral number of times.
    -> Take a shape that is a multiple of the block, or a smaller block.
    <- cute/layout.hpp, tile_to_shape
logical_divide: Too many modes in tiler. = logical_divide: Too many modes | A tiler has at most one entry for each mode
    of the layout.
    -> Drop the entries at the end, or group modes of the tiler into one entry.
    <- cute/layout.hpp, logical_divide
logical_product: Too many modes in tiler. = logical_product: Too many modes | A tiler has at most one entry for each
    mode of the layout.
    -> Drop the entries at the end, or give the block more modes of size 1.
    <- cute/layout.hpp, logical_product
zipped_divide: Too many modes in tiler. = zipped_divide: Too many modes | A tiler has at most one entry for each mode
    of the layout.
    -> Drop the entries at the end, or group modes of the tiler into one entry.
    <- cute/layout.hpp, zipped_divide
Non-injective Layout detected in complement. = Non-injective Layout | The complement reaches what the layout does not.
    A layout that reaches an offset twice, by overlapping modes, has none.
    -> Let each stride be a multiple of what the smaller ones cover; filter(layout) takes out modes of stride 0.
    <- cute/layout.hpp, complement
TiledCopy uses too few thrs for selected CopyAtom = TiledCopy uses too few thrs | One operation is by so many threads
    together (ldmatrix: 32); the layout of threads has fewer, or no multiple of them.
    -> Take a layout of a multiple of those threads, or an operation of one thread (UniversalCopy, cp.async).
    <- cute/atom/copy_atom.hpp, TiledCopy
TiledCopy uses too few vals for selected CopyAtom = TiledCopy uses too few vals | One operation moves so many values of
    each thread (uint128_t of half_t: 8); the layout of values has fewer, or no multiple of them.
    -> Take more values a thread, or a narrower operation.
    <- cute/atom/copy_atom.hpp, TiledCopy
CopyAtom: Src/Dst partitioning does not match the instruction requirement. = CopyAtom: Src/Dst partitioning | The first
    mode of a partition is what one operation moves; these tensors have another number of values there.
    -> Partition source and destination with the tiled copy of this atom; bring a fragment of an MMA into its shape with
    retile_S or retile_D.
    <- cute/atom/copy_atom.hpp, Copy_Atom::call
Rank of tensor to be partitioned too small. = Rank of tensor to be partitioned | A tiled copy divides one mode of the
    tensor for each mode of its tile.
    -> Slice fewer modes off, or append modes of size 1.
    <- cute/atom/copy_atom.hpp, TiledCopy
Not a canonical = Not a canonical | wgmma and tcgen05 find an operand through a descriptor, which has an offset and two
    strides; only
    canonical layouts have that form.
    -> Make the layout with tile_to_shape of gmma_layout(...) or umma_layout(...), or make_smem_layout; its major must
    be that of the operation.
    <- cute/atom/mma_traits_sm90_gmma.hpp, mma_traits_sm100.hpp
Expected SMEM Tensor to construct a = Expected SMEM Tensor | The operation reads this operand from shared memory through
    a descriptor, and the tensor is not known to lie there.
    -> Make the tensor with make_smem_ptr(...), or take the form whose A comes from registers (_RS).
    <- cute/atom/mma_traits_sm90_gmma.hpp, make_gmma_desc
Copy_Traits: src failed to vectorize into registers = failed to vectorize | One call of a copy operation moves whole
    registers: the values of the fragment, in the order of the partition, must fill as many as it has, side by side.
    -> Partition both sides with one tiled copy; a fragment that an MMA made goes through retile_S or retile_D of
    make_tiled_copy_A, _B or _C. Or take an operation of fewer bytes, such as UniversalCopy of one value.
    <- cute/atom/copy_traits.hpp, copy_unpack
CopyAtom rank-mismatch. = CopyAtom rank-mismatch | A copy goes through both partitions mode by mode behind the first,
    which has the values of the atom.
    -> Slice or partition both sides alike; group_modes<1, R> makes their other modes one.
    <- cute/algorithm/copy.hpp, copy
Expected registers in MMA_Atom::call = Expected registers | The instruction takes registers: values, or the
    descriptors of operands in shared memory. A tensor of shared or global memory is given in their place.
    -> Give partition_fragment_A, _B, _C of the tensors (of shared memory for wgmma and tcgen05: these are descriptors),
    and copy into fragments of values before.
    <- cute/atom/mma_traits.hpp, mma_unpack; mma_traits_sm100.hpp
Unknown TMA Format! | The engine moves elements of the formats of a tensor map only.
    -> Move the bits as a type of the same width: internal_dtype='uint16' for any 16-bit type.
    <- cute/arch/copy_sm90_desc.hpp, to_CUtensorMapDataType
Unsupported layout swizzle. = Unsupported layout swizzle | The engine has four patterns: none, 32B, 64B and 128B, as
    XOR of bits of the byte address.
    -> Take a layout of make_smem_layout, or Sw<0|1|2|3,4,3> on bytes.
    <- cute/atom/copy_traits_sm90_tma_swizzle.hpp
""")
"""Condition that CuTe C++ asserts -> its reason."""

CLASS_REASONS: Final = reason_table("""
CuteError | One root, so that a program can catch what this library refuses on purpose and nothing else.
    -> Read the headline, which is the rule with the value; compare the facts; the hint, if there is one, works.
InvalidTypeError | A float, a bool or a text as a size is mostly a mistake that would show much later.
    -> Convert the argument; sizes, strides and coordinates are Int, int, numpy or sympy integers.
InvalidValueError | The type is right and the value has no meaning here.
    -> Take a value that the headline names.
UnknownNameError | An enum has a few names, and a name that it lacks is mostly a misspelled one.
    -> Take one of the names that the facts list; the nearest ones come first.
LayoutError | Not every operation of the algebra has a result for every pair of layouts.
    -> Look at steps(operation, ...) for the mode that has none.
StaticAssertError | CuTe C++ would refuse to compile this; a result here would be one that no kernel can have.
    -> Find the modes that do not divide in the facts, and change the tile or the shape that is tiled; write sizes that
    must be static as Int(8).
CoordinateError | A coordinate has the profile of the shape, or of a coarser one; another profile addresses nothing.
    -> Give one entry for each mode (nested where the mode is), or a single index.
CompositionMismatchError | composition(A, B) may differ from A(B(i)) where B's steps do not divide A's modes; CuTe C++
    accepts it silently.
    -> Change the tile so that its sizes divide the modes of A, or leave strict out to get C++'s result.
ParseError | The text is not one that CuTe prints.
    -> Look at the character at `position`; str() of any object of this library can be parsed.
TensorAccessError | A bare pointer has an address, but its memory can't be read from here.
    -> Make the tensor over an array (make_tensor(numpy_array)), or ask the layout for offsets.
TmaError | The root of everything between a tensor and a TMA copy.
    -> Look at the class that was raised; it names the stage.
GBasisError | One instruction moves one box; some pairs of tile and shared layout have no box in common.
    -> Read `condition`, CuTe's own; explain(error) explains it, explain(atom) shows the stages of one that works.
TmaLimitError | The driver returns CUDA_ERROR_INVALID_VALUE for every rule; here all broken rules are listed at once.
    -> Go through `violations`; find_fixes and the hint propose tiles and swizzles that were tried.
TmaVerifyError | The verifier asks eleven questions in a fixed order and stops at the first that fails.
    -> Read `step`; STEPS has its name, and explain(error) its reason.
TmaBuildError | A builder, a binding or a lowering entry point was given operands that its reference page does not
    take.
    -> The headline is the page's own diagnostic: compare the operands with what it names.
UnknownFactError | What was neither documented nor measured is not guessed: a wrong bit of a map moves wrong bytes
    silently.
    -> Let the driver of such a GPU encode it (cute_py.tma.driver_encode), or stay with what is known.
TmaTrap | On a GPU this ends the CUDA context with an error that names neither the instruction nor the rule.
    -> Read `cause`; explain(error) explains the rule. The emulator raises it and no context is lost.
WouldHangError | A barrier with a wrong expect_tx never completes, and the kernel hangs without a message.
    -> Compare `expected` with `arrived`: announce atom.transaction_bytes for each tile.
RaceError | An asynchronous copy that is read or overwritten too early is wrong now and then, on some machines.
    -> Put the wait, fence or group that the rule names between the two.
EmissionError | ptxas would refuse the instruction, or the architecture does not have it.
    -> Take a form and an architecture of the table CAPABILITIES; `why` says which part does not exist.
TmemError | A tcgen05.cp moves fixed shapes to fixed lanes; not every pair of layouts is one of them.
    -> The headline names the requirement; FORMS has the shapes, plan_form finds the one for a tile.
DeviceError | Something that only a machine has is missing, or failed: GPU, driver, compiler, a launch.
    -> `cute-py doctor` lists what is installed and what works; everything but the run itself works without.
RankError | The processes of a redistribution need each other; one that is lost leaves the others waiting for its data.
    -> Look at the log of the rank that is named; make a new process group, or restart; `into=` keeps the old data.
FileFormatError | A file can't be read as the tensor, or written as the picture, that was asked for.
    -> Check name, ending and shape; the headline names the one at fault.
MissingPackageError | The core needs only numpy and sympy; other packages are for single features.
    -> Install the extra that the hint names.
""")
"""Class of errors -> what is said in general."""
_VECTORIZED: Final = CONDITION_REASONS["Copy_Traits: src failed to vectorize into registers"]
SEVERAL_IDS: Final = {
    "TMA requires CTA_Tile and SLayout top-level shape equivalence.": next(iter(GBASIS_REASONS.values())),
    "exit before the load was waited for": RACE_REASONS["exit before the group was read"],
    "Static shape_div failure": CONDITION_REASONS["Divisibility Condition"],
    "Mismatched Ranks": CONDITION_REASONS["Mismatched ranks"],
    "Mismatched tuple_size": CONDITION_REASONS["Mismatched ranks"],
    "tuple index must be in range": CONDITION_REASONS["Index out of range"],
    "Copy_Traits: dst failed to vectorize into registers. Layout is incompatible with this CopyOp.": _VECTORIZED,
    **{
        f"In CopyAtom, {side} layout doesn't vectorize into registers. This {side} layout is incompatible with this "
        f"{what}.": _VECTORIZED
        for side in ("src", "dst")
        for what in ("tiled copy", "CopyOp")
    },
    "Expected desc registers in MMA_Atom::call": CONDITION_REASONS["Expected registers in MMA_Atom::call"],
}
"""Further ids of rules that have one reason."""
REASONS: Final[dict[str, Reason]] = {
    **GBASIS_REASONS,
    **TRAP_REASONS,
    **RACE_REASONS,
    **HANG_REASONS,
    **CONDITION_REASONS,
    **SEVERAL_IDS,
}
"""What `CuteError.rule` may be -> its reason."""


@functools.cache
def assertions() -> dict[str, Reason]:
    """Static assertions of CuTe C++ -> their reason, of the file `assertions.txt`, which is read when one is met.

    A row has one reason for all of its messages, with semicolons between them: `*` stands for any text, the dot at the
    end is left out, and of two rows that fit a message the first is its reason.
    """
    return reason_table(resources.files("cute_py.explanation").joinpath("assertions.txt").read_text(encoding="utf-8"))


@functools.cache
def _messages() -> list[tuple[re.Pattern[str], Reason]]:
    return [
        (re.compile("|".join(".*".join(map(re.escape, one.split("*"))) for one in row.split(" ; "))), reason)
        for row, reason in assertions().items()
    ]


def assertion_reason(message: str) -> Reason | None:
    """The reason of a message of CuTe as a whole; of one that begins or ends otherwise, None.

    >>> assertion_reason("Unrecognized CopyPolicy.").source
    'cute/algorithm/copy.hpp'
    >>> assertion_reason("Unrecognized CopyPolicy of mine") is None
    True
    """
    said = message.strip().rstrip(".")
    return next((reason for pattern, reason in _messages() if pattern.fullmatch(said)), None)


def error_text(error: CuteError) -> str:
    """The text of an error, the rules behind it with their reasons, and its place in the tree.

    >>> print(error_text(CuteError("no")).splitlines()[0])
    CuteError: no
    """
    found = [_rule(*row) for row in reasons_of(error)] or _in_general(type(error))
    return "\n\n".join([f"{type(error).__name__}: {error}", *found, _about(type(error))])


def error_class_text(kind: type[CuteError]) -> str:
    """What a class of errors means, why there is such a class, what to do, and the rules that raise it."""
    parts = [kind.__name__, inspect.getdoc(kind) or "", *_in_general(kind), _rules_of(kind), _about(kind)]
    return "\n\n".join(part for part in parts if part)


def reasons_of(error: CuteError) -> list[tuple[str, Reason, str]]:
    """(the rule in its own words, its reason, its source) of each rule behind an error; empty if none is known."""
    broken = [v for v in getattr(error, "violations", ()) if isinstance(v, Diagnostic) and v.rule in MAP_REASONS]
    if broken:
        return [(f"{v.argument}: it must {v.requirement}", MAP_REASONS[v.rule], v.source) for v in broken]
    if isinstance(error, TmaVerifyError):
        reason = STEP_REASONS.get(str(error.step))
        name = f"step {error.step}, {_step_names().get(error.step)}"
        return [] if reason is None else [(name, reason, _VERIFIER_SOURCE)]
    reason = REASONS.get(error.rule) or assertion_reason(error.rule)
    title = error.cause if isinstance(error, TmaTrap) else error.headline
    return [] if reason is None else [(title, reason, reason.source)]


def _step_names() -> dict[int, str]:
    from cute_py.tma.dialect.verifier import STEPS

    return {step.number: step.name for step in STEPS}


def _in_general(kind: type) -> list[str]:
    """The row of a class, or of the nearest one above it."""
    return [_rule("", CLASS_REASONS[c.__name__], "") for c in kind.__mro__ if c.__name__ in CLASS_REASONS][:1]


def _rule(title: str, reason: Reason, source: str) -> str:
    lines = [f"The rule: {title}"] if title else ["In general"]
    lines += [filled("  why    : ", reason.why), filled("  to do  : ", reason.fix)]
    return "\n".join([*lines, *([filled("  source : ", source)] if source else [])])


def _rules_of(kind: type[CuteError]) -> str:
    """The rules that raise an error of this class, where they are a table."""
    from cute_py.tma.descriptor.limits import RULES

    if kind.__name__ == "TmaLimitError":
        return listed("The rules of a tensor map", [(rule.name, f"must {rule.requirement}") for rule in RULES])
    if kind.__name__ == "TmaVerifyError":
        return listed("The steps", [(str(number), name) for number, name in _step_names().items()])
    tables: dict[str, tuple[str, dict[str, Reason]]] = {
        "TmaTrap": ("The causes begin with", TRAP_REASONS),
        "RaceError": ("The rules", RACE_REASONS),
        "StaticAssertError": ("The conditions begin with", CONDITION_REASONS),
        "GBasisError": ("The conditions", GBASIS_REASONS),
        "WouldHangError": ("The rule", HANG_REASONS),
    }
    title, rows = tables.get(kind.__name__, ("", {}))
    return listed(title, [(row.name or rule, row.why) for rule, row in rows.items()])


def _about(kind: type) -> str:
    words = " ".join((inspect.getdoc(kind) or "").split())
    parents = [c.__name__ for c in kind.__mro__[1:] if issubclass(c, Exception) and c is not Exception]
    caught = f"except {' or '.join(parents)} catches it as well." if parents else "It is the root of all of them."
    return "\n".join([filled("", f"About {kind.__name__}: {words}"), caught])


TERMS: Final = reason_table("""
wgmma | The multiplication of sm_90a: 128 threads multiply tiles of shared memory (A from registers as well) into
    accumulators in registers, between wgmma.fence, commit_group and wait_group.
    -> mma_atom("SM90_64x256x16_F32BF16BF16_SS"), make_gmma_desc, cute.tma.gemm_kernel; `cute-py atom show`.
    <- PTX ISA, wgmma.mma_async
tcgen05 | The tensor cores of sm_100 to sm_110, which sm_120 and sm_121 (GeForce RTX 50, DGX Spark) do not have: one
    thread issues the multiplication, and the accumulators lie in tensor memory, 128 lanes of 512 columns of 32 bits.
    -> make_umma_desc, cute_py.tmem plans tcgen05.cp.
    <- PTX ISA, tcgen05
fence.proxy.async | Orders what threads wrote to shared memory before what TMA or wgmma reads of it; without it they may
    read what was there before.
    -> `cute-py check kernel.ptx` finds stores without it.
    <- PTX ISA, membar/fence
G-basis | The box of a TMA copy as a layout, before it is cut to five modes: shared-memory order on the outside, and
    basis strides n@m that say by how much each step moves along global mode m. CuTe C++ calls it tma_gbasis.
    -> atom.gbasis; atom.gbasis.trace lists the stages; explain(atom) has the reasons.
    <- cute/atom/copy_traits_sm90_tma.hpp, construct_tma_gbasis
TMA tensor | A tensor of coordinates in place of data: partition it as the data would be, and each element is the
    coordinate that an instruction takes.
    -> atom.get_tma_tensor(); printed as ArithTuple(_0,_0) o shape:(_1@1,_1@0).
    <- CuTe documentation, TMA Tensors
tensor map | The 128 bytes (CUtensorMap) that describe a global tensor and its box to the TMA engine: address, sizes,
    byte strides, box, element strides, swizzle, interleave, fill.
    -> cute.tma.encode(request), decode(bytes), describe(bytes); `cute-py desc decode`.
    <- CUDA driver API, Tensor Map Object Management
box | What one TMA instruction moves: 1 to 256 elements along each of one to five modes of the tensor map.
    -> atom.request.box_dim; draw_boxes(atom) shows all of them on the tensor.
CTA V-map | The layout from a value of the tile to its coordinate in the global tensor.
    -> make_cta_v_map(shape, tiler).
transaction bytes | The bytes that a tile delivers to its mbarrier, elements outside the tensor included; expect_tx must
    announce exactly this number, or the phase never completes.
    -> atom.transaction_bytes.
mbarrier | A 64-bit barrier in shared memory: a phase completes when all arrivals have come and the announced bytes have
    been delivered; waits name the parity of the phase.
    -> cute.tma.Mbarrier emulates one.
    <- PTX ISA, mbarrier
expect_tx | The bytes that a phase of an mbarrier waits for, beside its arrivals; a load counts them off as it delivers.
    -> atom.transaction_bytes is the number of a tile; Mbarrier.arrive_expect_tx emulates it.
    <- PTX ISA, mbarrier
phase | What an mbarrier counts through: a wait names the parity (0, 1, 0, ...) of one phase, and passes when that phase
    is over; so a wait for parity 1 passes on a new barrier, and a barrier that is used again needs the other parity.
    -> cute.tma.Mbarrier.try_wait(parity) emulates one.
    <- PTX ISA, mbarrier
hang | A kernel that does not end mostly waits for a phase that never completes: the bytes that are expected are not
    those that come, an arrival is missing, the parity is that of the current phase, a load was not issued, or the
    barrier was initialised again.
    -> diagnose(...) runs loads and waits and says what is missing; `cute-py check kernel.ptx`; explain(WouldHangError).
multicast | One load whose box is written to the shared memory of every CTA of the mask; each CTA issues its slice, and
    every barrier expects the bytes of the whole tile.
    -> make_tma_copy("SM90_TMA_LOAD_MULTICAST", ..., num_multicast=4); create_tma_multicast_mask.
CUDA_ERROR_INVALID_VALUE | From cuTensorMapEncode*: a rule of tensor maps is broken. The driver returns one code for
    all of them and does not name the rule.
    -> violations(request) or `cute-py desc check` lists every broken rule; explain(TmaLimitError) lists all rules.
CUDA_ERROR_ILLEGAL_INSTRUCTION | From a kernel with TMA: the engine refuses how a legal map is used, such as an inner
    coordinate that is not a multiple of 16 bytes, or a reduction that the element type does not have. The CUDA
    context is lost.
    -> Run the copy in the emulator, which raises TmaTrap with the cause; explain(TmaTrap) lists the causes.
CUDA_ERROR_ILLEGAL_ADDRESS | From a kernel with TMA: the box touches bytes that no allocation holds, because of a wrong
    address, size or stride in the map. The CUDA context is lost.
    -> Compare describe(map) with the allocation; the emulator raises TmaTrap.
CUDA_ERROR_MISALIGNED_ADDRESS | From a kernel with TMA: a shared-memory address, an mbarrier or the tensor map is not
    aligned as it must be; from another one: a thread reads or writes 4, 8 or 16 bytes at once where they don't begin at
    a multiple of that.
    -> 128 bytes for tiles (atom.alignment for swizzled ones), 8 for barriers, 64 for maps (128 since CUDA 13); narrower
    vectors, or sizes, strides and offsets that are whole vectors.
CUDA_ERROR_LAUNCH_TIMEOUT | A kernel did not end: mostly a wait for a phase that never completes.
    -> diagnose(...) and explain(WouldHangError): compare the bytes that are expected with those that arrive.
CUDA_ERROR_UNSUPPORTED_PTX_VERSION | NVRTC or nvcc is newer than the driver, and PTX was loaded.
    -> Compile to a cubin, as this library does, or update the driver; `cute-py doctor`.
""")
"""Term -> what it is, where to find it, and who defines it."""
DRIVER_ENUMS: Final = (TensorMapSwizzle, TensorMapDataType, Interleave, L2Promotion, OobFill)
ENUMS: Final[tuple[type[Enum], ...]] = (*DRIVER_ENUMS, Op)


_OF_ENUM: Final = re.compile(
    rf"(?:cute\.tma\.|tma\.)?(?:{'|'.join(kind.__name__ for kind in ENUMS)}|CUtensorMap\w+)\.\w+\Z"
)
"""A member with its enum, as this library or cuda-python prints it."""


def term_text(text: str) -> str | None:
    """The explanation of a term or a word, an enum's spelling ('128B', 'FLOAT16') or an element type ('bf16'), or None.

    >>> print(term_text("gbasis").splitlines()[0], term_text("128B").splitlines()[0])
    G-basis TensorMapSwizzle.B128 = 3
    """
    if (row := word_of(text, TERMS)) is not None:
        name, term = row
        parts = [name, "", filled("", term.why), "", filled("  see    : ", term.fix)]
        return "\n".join([*parts, *([filled("  source : ", term.source)] if term.source else [])])
    owner, _, name = (
        text.strip().upper().rpartition(".") if _OF_ENUM.match(text.strip()) else ("", "", text.strip().upper())
    )
    names = (name, f"B{name.removesuffix('B')}") if name[:1].isdigit() else (name,)
    of_owner = [kind for kind in ENUMS if kind.__name__.upper() == owner.rpartition(".")[2]]
    spelled = [kind[m] for kind in of_owner or ENUMS for m in names if m in kind.__members__]
    dtype = unless_refused(as_dtype, text.strip())
    if not spelled and dtype is None:
        spelled = [found for kind in DRIVER_ENUMS if (found := member_named(kind, name)) is not None]
    if spelled:
        also = [f"{type(other).__name__}.{other.name}" for other in spelled[1:]]
        return member_text(spelled[0]) + (f"\n\nThe same spelling: {', '.join(also)}" if also else "")
    return None if dtype is None else instance_text(dtype)


def nearest(text: str) -> list[str]:
    """Names and terms that a misspelled one may mean.

    >>> nearest("ziped_divide")[0]
    'zipped_divide'
    """
    names = [name.rpartition(".")[2] for name, _ in public_objects()]
    return difflib.get_close_matches(text, dict.fromkeys([*names, *TERMS, *WORDS, *(row.name for row in DTYPES)]), 3)
