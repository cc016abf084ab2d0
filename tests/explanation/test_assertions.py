"""Static assertions of CuTe by their messages, in the forms of four compilers: each has its own reason and what to do.

The messages are those of the headers of CUTLASS 4.2; the forms are those of nvcc 13.0, NVRTC 13.5, g++ 12 and clang.
"""
# ruff: noqa: E501, the texts of compilers keep their lines

from __future__ import annotations

import re

import pytest

import cute_py as cute
from cute_py.diagnostics import Reason
from cute_py.errors import StaticAssertError
from cute_py.explanation.readings import condition_id
from cute_py.explanation.reasons import assertion_reason, assertions
from tests.each import each_of
from tests.shares import one_in

ASSERTIONS = assertions()

TOLD = """
A call of a copy
    Expected rank-1 src tensor
    Expected rank-1 dst tensor
    Expected rank-1 prd tensor
MaxVecBits is the width of the widest
    Expected MaxVecBits to be value size or 8 or 16 or 32 or 64 or 128 for alignment and performance.
    Expected MaxVecBits to be 8 or 16 or 32 or 64 or 128 for alignment and performance.
All threads share the work
    cooperative_copy expects shared gmem or smem source tensor.
    cooperative_copy expects shared gmem or smem destination tensor.
The contiguous modes of both
    Expected divisibility
    No support for subbyte copying
The engine of bulk copies
    Bulk Copy only supports gmem -> smem or smem -> gmem movement.
A bulk copy moves a multiple
    Expected at least 128-bits for BLKCP
    Bulk Copy requires copy vector size align to 16B.
copy and copy_if do not
    Unrecognized CopyPolicy.
The destination has a mode
    Error: Ambiguous scatter detected in copy
    Error: Ambiguous race-condition detected.
    Nullspace definition error
A prefetch copies global memory
    Expected global tensor for prefetch
    Expected global tensor for L2 prefetch
    Expected gmem src for SM90_BULK_PREFETCH
The bits of one value must come from one thread
    CopyOperation is not valid for Src of ValType.
    CopyOperation is not valid for Dst of ValType.
The type is not a copy
    Copy_Traits not implemented for this CopyOperation.
ldmatrix and stmatrix move 1
    sizeof(T) is not supported
One cp.async copies 4, 8 or 16
    cp.async sizeof(TS) is not supported
    cp.async requires sizeof(src_value_type) == sizeof(dst_value_type)
cp.async copies only from global
    Expected gmem source for cp.async.
    Expected smem destination for cp.async.
An address is aligned to a power
    N must be a power of 2 in alignment check
TMA and bulk copies have shared
    SM90_TMA_LOAD_IM2COL requires the destination be shared memory.
    SM90_TMA_LOAD requires the destination be shared memory.
    Expected smem src for SM90_TMA_STORE_IM2COL
    Expected smem src for SM90_TMA_REDUCE_ADD
    Expected smem src for SM90_BULK_COPY_S2G
    Expected smem dst for SM90_BULK_COPY_G2S
A bulk copy has no tensor
    Expected gmem src for SM90_BULK_COPY_G2S
    Expected gmem dst for SM90_BULK_COPY_S2G
A load completes on an mbarrier
    Extra arguments not set. Set .with() before use.
The hardware permutes pieces of 16
    Expected B = 0,1,2, or 3 when M == 4. Unsupported layout swizzle.
    Expected B = 2 when M == 5 or 6. Unsupported layout swizzle.
    Expected B = 2 when M == 5. Unsupported layout swizzle.
    Expected S = 3 when M == 4. Unsupported layout swizzle.
    Expected S = 2 when M == 5. Unsupported layout swizzle.
    Expected 128b=16B=(2^4)B to 512b=64B=(2^6)B base swizzle.
    Expected 128b=16B=(2^4)B base swizzle.
    Only 16B and 32B Atoms are supported for UMMA. Unsupported layout swizzle.
A tensor map holds the address
    Tensor must point to GPU global memory.
The box of an im2col
    IM2COL expects at least 2 modes of the smem to vectorize with gmem.
Only one CTA uses C
    Unsupported TMA Op, expected a non-multicast TMA
The function derives from the
    Unsupported TMA
In a multicast each CTA loads
    Number of active CTAs in TMA must divide domain size of slayout.
A call of an MMA
    Expected rank-1 D tensor
    Expected rank-1 A tensor
    Expected rank-1 B tensor
    Expected rank-1 C tensor
wgmma and tcgen05 read this
    Expecting ValTypeA type
    Expecting ValTypeB type
The type is not an
    MMA_Traits not implemented for this MMA_Operation.
A tiled MMA repeats its atom
    TiledMMA requires rank-3 AtomLayoutMNK
    TiledMMA requires rank-3 PermutationMNK
    TiledMMA requires independent permutations of MNK.
    TiledMMA requires static permutations of MNK.
The selector chooses the operation
    TileShape_MNK must be static.
    TileShape_MNK must be rank 3.
One wgmma has 64 rows, 8 to 256
    Tile_M must be a multiple of 64.
    Tile_N must be a multiple of 8.
    Tile_K must be a multiple of 16.
    Tile_K must be a multiple of 8.
    Tile_K must be a multiple of 64.
wgmma can transpose only operands
    MajorA must be GMMA::Major::K for this config.
    MajorB must be GMMA::Major::K for this config.
wgmma transposes an operand while
    Register source A operand GMMAs must have K-major A layout.
    Register source operand A must have K major layout.
wgmma supports fixed combinations of
    No eligible GMMA operator for request configuration.
    Unknown ElementC accumulator type.
The instruction can leave at
    WGMMA wait: N must be in range [0, 7]
A descriptor holds an address
    GMMA Descriptors can only be constructed on smem.
    UMMA Descriptors can only be constructed on smem.
    Expect vec_mode smem_tesnor.
A descriptor describes the tile
    GMMA Descriptors can only be constructed on rank-2 tensors.
    UMMA Descriptors can only be constructed on rank-2 tensors.
The swizzle of 32-byte pieces
    SWIZZLE_128B_BASE32B is invalid for Major-K
A tensor of descriptors holds
    Can only cast GmmaDescriptorIterator to uint64_t.
wgmma accumulates in place: C
    GMMA C and D value_type must match.
    GMMA C and D layouts must match.
    GMMA DRegisters must have void type.
The message belongs to another
    SM100_MMA_F8F6F4_2x1SM_TS M-mode size should be 64 or 128 for 1 CTA cluster MMA.
    SM100_MMA_F8F6F4_2x1SM_SS M-mode size should be 64 or 128 for 1 CTA cluster MMA.
With block scales each CTA
    SM100_MMA_MXF8F6F4_SS M-mode size should be 64 or 128 for 1 CTA cluster MMA.
    SM100_MMA_MXF8F6F4_2x1SM_SS M-mode size should be 128 or 256 for 2 CTA cluster MMA.
tcgen05.mma has a fixed table
    SM100_MMA_TF32 M-mode size should be 64 or 128 for 1 CTA cluster MMA.
    SM100_MMA_S8_SS M-mode size should be 64 or 128 for 1 CTA cluster MMA.
    SM100_MMA_F8F6F4_SS M-mode size should be 64 or 128 for 1 CTA cluster MMA.
    SM100_MMA_TF32 N-mode size should be a multiple of 8 between 8 and 256.
    SM100_MMA_S8_TS N-mode size should be 8 or a multiple of 16 between 16 and 256.
    SM100_MMA_MXF4NVF4_2x1SM_SS_SPARSE N-mode size should be a multiple of 16 between 16 and 256.
    MMA M-mode size should be 128 for 1 CTA cluster MMA.
    MMA M-mode size should be 128 or 256 for 2 CTA cluster MMA.
    MMA N-mode size should be a multiple of 16 between 16 and 256.
tcgen05.mma can transpose only operands
    SM100_MMA_TF32 A from TMEM can't be transposed
    SM100_MMA_F16BF16_2x1SM_TS_SCALED A from TMEM can't be transposed
    SM100_MMA_F8F6F4_2x1SM_TS A from TMEM can't be transposed
    This MMA does not support transpose
Each kind of tcgen05.mma needs
    SM100_MMA_TF32_SS supports 32bit types
    SM100_MMA_S8_SS_SPARSE supports 8bit types
    SM100_MMA_MXF4NVF4_2x1SM_SS_SPARSE supports 4bit types
tcgen05.mma accumulates integer products in
    SM100_MMA_S8_SS result type can only be int32_t.
    SM100_MMA_S8_SS_SPARSE result type can only be int32_t.
A scale belongs to a block
    SM100_MMA_MXF4_SS Vector size can only be 16 or 32.
    SM100_MMA_MXF4_2x1SM_SS Vector size can only be 16 or 32.
    SM100_MMA_MXF4NVF4_2x1SM_SS_SPARSE Vector size can only be 32 or 64.
    Vector size can only be 4x mode (VS=16) or 2x mode (VS=32) for MMA. 2x mode only supports float_e2m1_t for a/b types and ue8m0_t for sf type
    2x mode (VectorSize=32) only supports a_type and b_type=float_e2m1_t or cutlass::type_erased_dynamic_float4_t and sf_type=ue8m0_t
    2x mode (VectorSize=64) only supports a_type and b_type=float_e2m1_t or cutlass::type_erased_dynamic_float4_t and sf_type=ue8m0_t
The instruction descriptor has no
    Unknown type for F16F32Format
    Unknown type for MXF4Format
    Unknown type for CFormat
The warp-level MMAs of sm_120
    No MMA matches SM120_16x8x32_TN for given data types.
    No MMA matches SM120_SPARSE_16x8x64_TN for given data types.
    No MMA matches SM120_SPARSE_16x8x128_TN_VS for given data types.
The metadata of a sparse A
    Params must be set via .with()?
The operation works on tensor
    Expected TMEM tensor.
    Expected TMEM src.
    Expected TMEM dst.
    Expected tmem in MMA_Atom::call
    Expected tmem dst for SM100_UTCCP
tcgen05.ld and tcgen05.st copy only
    Expected RMEM src.
    Expected RMEM dst.
CuTe counts addresses of tensor
    Expected a CopyAtom with the same type-width as the Tensor.
One operation reads lanes or
    The memory pointed to by AtomTVLayout does not exist in the DataLayout.
One operation reads or writes
    Expected src to have the specific TMEM layout required by CopyOp.
This function chooses the number
    Must pass 1x tmem copy operator
The function maps each load
    No TMEM_STORE matching for provided TMEM_LOAD
tcgen05.cp reads its source in
    Expected smem_desc src for SM100_UTCCP
    Mismatched vec_mode tensor.
    Utccp copy tensor's vec_mode should be static.
The layout in tensor memory
    Expected post-partitioned shape ((M_MMA,N_MMA),...).
A CTA has 128 lanes of 512
    Requesting more TMEM than is available.
In tensor memory each value
    TMEM MMA allocations require StorageType big enough for ValueType.
The instruction determines which lanes
    UMMA_1SM only accepts Interleaved or NonInterleaved
    UMMA_2SM only accepts Interleaved or Duplicated
    Only TmemAllocMode::Interleaved is supported for UMMA_2SM M_MMA=32
    UMMA expects N_SM == 1 or N_SM == 2
    UMMA.WS expects N_SM == 1
    UMMA_1SM M-mode size should be 64 or 128.
    UMMA_2SM M-mode size should be 32 or 64 or 128.
    Weight stationary UMMA_1SM M-mode size should be 32 or 64 or 128.
    Dense weight stationary UMMA_1SM N-mode size should be 64 or 128 or 256.
Threads can't access single elements
    Attempting to dereference a tmem_ptr, want raw_pointer_cast() for address instead?
take<B,E> keeps the modes B
    take: empty range error
    take: range out of bounds
The inverse sorts the modes
    Left inverse requires static strides.
The inverse counts offsets in steps
    Left inverse divisibility condition
CuTe can't add a coordinate
    Arithmetic tuple op+ error!
    Arithmetic tuple op- error!
    ScaledBasis op+ error!
tile_to_shape repeats the block along
    Rank of layout must be <= rank of target shape.
This operation on a swizzled
    Require offset == 0.
    Require Swizzle offset == 0.
The coordinate has more structure
    Invalid parameters
The call needs one value
    Not enough values to fill with!
Swizzle<B,M,S> changes B bits above
    MBase must be positive.
    BBits must be positive.
A swizzle combines as many
    Number of bits in Y and Z don't match
CuTe can merge two swizzles
    Can only merge swizzles of the same shift.
A swizzle is an XOR
    N must be a power of two
    Only divide MixedBits by powers of two.
    Only scale MixedBits by powers of two.
    Requires pow2 shape*stride.
make_tensor<T> makes an array in registers
    Dynamic owning tensors not supported
After an optional pointer, make_tensor
    Expected layout args... in make_tensor<T>(args...)
    Expected layout args... in make_tensor(iter, args...)
The first argument must be a pointer
    Expected iterator iter in make_tensor(iter, args...)
A layout with a swizzle of shared
    Expected smem.
    Expected smem tensor.
The swizzled layout and the
    Expected a B-bit pointer type.
    Expected B-bit pointer type
CuTe counts a sparse operand
    Expected sparse iter.
    Expected sparse iter
    Expected sparse elem
    Expected sparse value_type.
    Expected sparsity S
    Enforce sparse value-type
    Enforce sparsity S
    Enforce sparse singleton
One stored element represents
    Expected a multiple of the sparsity.
    Width needs to be a multiple of sparsity.
    sizeof_bits=0 detected. Sparsity is larger than width.
A sparse shared layout counts
    Not implemented for safety
A zipped tensor steps through
    Expect same number of offsets as iterators.
    All template parameters must be layouts
    All layouts must have the same rank
append fills a tuple up
    N > tuple_size<T>::value
"""
"""How a reason begins, and messages that have it."""

GROUPS: dict[str, list[str]] = {}
for line in TOLD.strip().splitlines():
    if line.startswith(" "):
        GROUPS[list(GROUPS)[-1]].append(line.strip())
    else:
        GROUPS[line] = []
MESSAGES = [(message, begins) for begins, messages in GROUPS.items() for message in messages]

FORMS = {
    "nvcc, NVRTC": """\
include/cute/algorithm/copy.hpp(493): error: static assertion failed with "MESSAGE"
    static_assert(dependent_false<CopyPolicy>, "MESSAGE");
    ^
          detected during instantiation of "void cute::copy(const CopyPolicy &, const cute::Tensor<SrcEngine, SrcLayout> &, cute::Tensor<DstEngine, DstLayout> &) [with CopyPolicy=cute::UniversalCopy<float, float>, SrcEngine=cute::ViewEngine<cute::gmem_ptr<float *>>, SrcLayout=cute::Layout<cute::_8, cute::C<1>>, DstEngine=cute::ArrayEngine<float, 8UL>, DstLayout=cute::Layout<cute::_8, cute::C<1>>]" at line 3 of mine.cu
""",
    "g++": """\
include/cute/pointer_flagged.hpp: In instantiation of ‘constexpr auto cute::make_tensor(const Iterator&, const ComposedLayout<SwizzleFn, smem_ptr_flag_bits<B>, Layout>&) [with Iterator = gmem_ptr<cutlass::half_t*>; SwizzleFn = Swizzle<3, 4, 3>; int B = 16; Layout = Layout<tuple<C<8>, C<64> >, tuple<C<64>, C<1> > >]’:
mine.cpp:17:31:   required from here
include/cute/pointer_flagged.hpp:63:36: error: static assertion failed: MESSAGE
   63 |   static_assert(is_smem<Iterator>::value, "MESSAGE");
      |                                    ^~~~~
include/cute/pointer_flagged.hpp:63:36: note: ‘cute::C<false>::value’ evaluates to false
""",
    "clang": "include/cute/swizzle.hpp:61:3: error: static assertion failed due to requirement 'REQUIREMENT': MESSAGE\n",
    "clang before 16": "include/cute/swizzle.hpp:61:3: error: static_assert failed due to requirement 'REQUIREMENT' \"MESSAGE\"\n",
}


def said(form: str, message: str, requirement: str = "num_base >= 0") -> str:
    return " ".join(cute.explain(FORMS[form].replace("MESSAGE", message).replace("REQUIREMENT", requirement)).split())


@each_of(("message", "begins"), MESSAGES, every=8)
def test_a_message_has_its_reason_and_its_fix(message: str, begins: str) -> None:
    row = assertion_reason(message)
    assert row is not None and row.why.startswith(begins)
    answer = said("nvcc, NVRTC", message)
    assert f"why : {row.why} to do : {row.fix}" in answer


@pytest.mark.parametrize("form", one_in(4, FORMS))
def test_each_compiler_is_read(form: str) -> None:
    for begins, (message, *_) in GROUPS.items():
        assert f"why : {begins}" in said(form, message), (form, message)


def test_a_long_requirement_of_clang_does_not_hide_the_message() -> None:
    requirement = "std::is_same<cutlass::half_t, cutlass::float_e2m1_t>::value || " * 20 + "false"
    assert "why : MBase" not in said("clang", "MBase must be positive.", requirement)
    assert "why : Swizzle<B,M,S> changes B bits" in said("clang", "MBase must be positive.", requirement)


def test_every_row_has_a_message_here() -> None:
    used = [row for row in ASSERTIONS.values() if any(row.why.startswith(begins) for begins in GROUPS)]
    assert len(used) == len(ASSERTIONS) == len(GROUPS)
    for messages in ASSERTIONS:
        for one in messages.split(" ; "):
            pattern = re.compile(".*".join(map(re.escape, one.split("*"))) + r"\.?")
            assert any(pattern.fullmatch(message) for message, _ in MESSAGES), one


@each_of("row", ASSERTIONS.values(), ids=[row.why[:30] for row in ASSERTIONS.values()])
def test_a_row_says_why_what_to_do_and_where(row: Reason) -> None:
    assert row.why.endswith(".") and row.fix.endswith(".") and row.source.startswith("cute/")


@pytest.mark.parametrize(
    "message",
    [
        "Tile size must be a multiple of 32",
        "Unrecognized CopyPolicy of mine",
        "Unrecognized Copy",
        "Expected rank-1 bias tensor",
        "my kernel: Expected smem.",
        "Expected",
        "Not implemented",
        "Unknown type for my table",
        "MMA size should be 64",
        "A from TMEM can't be transposed",
        "My A from TMEM can't be transposed",
        "Bulk Copy only supports gmem",
        "supports 16bit types",
        "box",
        "rank",
        "reduction must commute",
        "* MMA*",
        "",
    ],
)
def test_a_message_that_cute_does_not_print_has_no_reason(message: str) -> None:
    assert condition_id(message) is None
    if message:
        assert all("why :" not in said(form, message) for form in FORMS)


@each_of(
    ("message", "why"),
    [
        ("Divisibility condition", "N elements become one"),
        ("Divisibility Condition", "Shapes are divided mode by mode"),
        ("Left inverse divisibility condition", "The inverse counts offsets"),
        ("Expected smem src for SM90_TMA_STORE", "TMA and bulk copies have shared memory on one side"),
        ("Expected smem_desc src for SM100_UTCCP", "tcgen05.cp reads its source"),
        ("Unsupported TMA", "The function derives from"),
        ("Unsupported TMA Op, expected a non-multicast TMA", "Only one CTA uses C and D"),
        ("Unsupported layout swizzle", "The engine has four swizzle patterns"),
        ("Expected S = 3 when M == 4. Unsupported layout swizzle.", "The hardware permutes pieces"),
        ("UMMA_1SM M-mode size should be 64 or 128.", "The instruction determines which lanes"),
        ("Expected desc registers in MMA_Atom::call", "The instruction takes registers"),
        ("Expected tmem in MMA_Atom::call", "The operation works on tensor memory"),
    ],
)
def test_messages_that_are_alike_are_kept_apart(message: str, why: str) -> None:
    assert f"why : {why}" in said("nvcc, NVRTC", message)


def test_an_error_of_this_library_has_the_reason_of_its_message() -> None:
    with pytest.raises(StaticAssertError) as caught:
        cute.make_umma_desc(
            "K",
            cute.make_tensor(
                cute.make_smem_ptr(1024, "half"), cute.parse("Sw<3,3,3> o smem_ptr[16b](unset) o (8,64):(64,1)")
            ),
        )
    assert "why : The hardware permutes pieces of 16 bytes" in " ".join(cute.explain(caught.value).split())


@pytest.mark.parametrize(("place", "whose"), [("gemm.hpp", False), ("include/cute/layout.hpp", True)])
def test_an_assertion_is_of_cute_if_anything_says_so(place: str, whose: bool) -> None:
    said = cute.explain(f'{place}(12): error: static assertion failed with "Invalid CUDA version"')
    assert ("assertion of CuTe" in str(said)) is whose
    assert ("CuTe C++" in str(said)) is whose
