"""Why the layout algebra has no result for some operands: the conditions that CuTe C++ asserts, and what to do."""

from __future__ import annotations

from typing import Final

from cute_py.explanation.reason import Reason

_CUTE = "cute/layout.hpp"

LAYOUT_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "Stride Divisibility Condition",
        "A o B walks through the modes of A in steps of B's stride. A step beyond a mode must be whole turns "
        "of it; any "
        "other ends at another place of the mode each time, and no stride says that.",
        "Take a stride that is less than the mode's size, or a multiple of it; coalesce(A) may leave fewer modes.",
        f"{_CUTE}, composition",
    ),
    Reason(
        "Shape Divisibility Condition",
        "A o B takes B's elements from the modes of A one after the other: what the first mode gives (its "
        "size over the "
        "step, rounded up) must go into B's size whole times, or no shape says how often.",
        "Take a tile of at most what the mode gives, or a multiple of that: of (8,4) 6, 8, 16 or 24 in steps of 1, "
        "not 12; pad a mode that does not divide, and let the copy mask what hangs over.",
        f"{_CUTE}, composition",
    ),
    Reason(
        "Divisibility Condition",
        "Shapes are divided mode by mode, and a mode that is cut must be cut into equal parts.",
        "Take sizes of which one divides the other.",
        "cute/int_tuple.hpp, shape_div",
    ),
    Reason(
        "Divisibility condition",
        "N elements become one, so every stride must be a multiple of N, or N of the stride.",
        "Take a smaller N: max_alignment(layout) is the largest one that works.",
        f"{_CUTE}, upcast",
    ),
    Reason(
        "Static safe_div requires",
        "Both numbers are known when the program is compiled, so a rest would be an error there.",
        "Take sizes of which one divides the other.",
        "cute/numeric/math.hpp, safe_div",
    ),
    Reason(
        "Dynamic-stride complement",
        "The complement sorts the modes by stride, and strides that are known only at run time can't be sorted.",
        "Make the strides static with Int(...), or give each mode its own complement.",
        f"{_CUTE}, complement",
    ),
    Reason(
        "Downcast requires adjacent elements",
        "A wide element becomes several narrow ones side by side; that needs a mode of static stride 1 to hold them.",
        "Give the layout a static contiguous mode, Int(1), and downcast that.",
        f"{_CUTE}, downcast",
    ),
    Reason(
        "Mismatched",
        "The operation goes through both operands mode by mode, so they must have equally many.",
        "Give both the same number of modes; group_modes and flatten change it, append adds modes of size 1.",
        _CUTE,
    ),
    Reason(
        "abs(SShift) must be more than BBits",
        "A swizzle combines two groups of bits by XOR; groups that overlap would make it no permutation.",
        "Take |S| of at least B: Sw<3,4,3> is the widest of the engine.",
        "cute/swizzle.hpp",
    ),
    Reason(
        "tile_to_shape",
        "The block is repeated whole times along each mode.",
        "Take a shape that is a multiple of the block, or a smaller block.",
        f"{_CUTE}, tile_to_shape",
    ),
    Reason(
        "logical_divide: Too many modes",
        "A tiler has at most one entry for each mode of the layout.",
        "Drop the entries at the end, or group modes of the tiler into one entry.",
        f"{_CUTE}, logical_divide",
    ),
    Reason(
        "logical_product: Too many modes",
        "A tiler has at most one entry for each mode of the layout.",
        "Drop the entries at the end, or give the block more modes of size 1.",
        f"{_CUTE}, logical_product",
    ),
    Reason(
        "Unknown TMA Format!",
        "The engine moves elements of the formats of a tensor map only.",
        "Move the bits as a type of the same width: internal_dtype='uint16' for any 16-bit type.",
        "cute/arch/copy_sm90_desc.hpp, to_CUtensorMapDataType",
    ),
    Reason(
        "Unsupported layout swizzle",
        "The engine has four patterns: none, 32B, 64B and 128B, as XOR of bits of the byte address.",
        "Take a layout of make_smem_layout, or Sw<0|1|2|3,4,3> on bytes.",
        "cute/atom/copy_traits_sm90_tma_swizzle.hpp",
    ),
)
"""Key: how the condition begins."""
