"""Why the rules of a tensor map exist, one row for each rule of `descriptor.limits`, and what to do about each.

The reasons about bits follow from the fields that the map has (`descriptor.fields`).
"""

from __future__ import annotations

from typing import Final

from cute_py.explanation.reason import Reason

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
