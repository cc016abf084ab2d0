# ruff: noqa: E501, the texts of programs keep their lines
"""Texts of the forms that users paste, what a right answer says, and what only a wrong answer says."""

from __future__ import annotations

from typing import Final, NamedTuple

import cute_py as cute
from tests.each import each_of


class Case(NamedTuple):
    """A text, the parts of a right answer, and the parts that no right answer has."""

    name: str
    text: str
    says: tuple[str, ...]
    never: tuple[str, ...] = ()


_DESCRIPTOR: Final = """\
TMA Desc Addr:   0x7ffd7d2800c0
format         6
dim            3
gmem_address   {address}
globalDim      (512,512,1,1,1)
globalStrides  (2,1024,524288,0,0)
boxDim         (64,128,1,1,1)
elementStrides (1,1,1,1,1)
interleave     0
swizzle        3
l2Promotion    0
oobFill        0
Error: Failed to initialize the TMA descriptor {result}"""

_KERNELS: Final = """\
Error: Failed to initialize the TMA descriptor due to {why}
tmaFormat: 9 dim: 4 gmem: 0xf64d740000
Shape: 64 16 1 {outer} 1
Stride: 128 {stride} 4096 337
tileShapes: 64 16 1 1 1024
tileStrides: 1 1 1 1 1969767282
swizzleType: 3"""

CASES: Final = (
    Case("rank 6", "torch.Size([2,3,2,3,2,64]) stride (65536,16384,4096,1024,256,1) torch.float16", ("tensorRank = 6",), ("TMA can copy it",)),
    Case("dense rank 6", "torch.Size([4,3,5,7,9,64]) stride (60480,20160,4032,576,64,1) torch.float16", ("TMA can copy it",), ("tensorRank",)),
    Case("no elements", "torch.Size([64, 0]), stride=(64, 1), dtype=torch.float16", ("globalDim[0] = 0",), ("TMA can copy it",)),
    Case("wide stride", "torch.Size([128, 64]) stride (1099511627776, 1) torch.float16", ("2**40 - 1",), ("TMA can copy it",)),
    Case("a box beside", "make_tensor_descriptor(p, shape=[128, 64], strides=[64, 1], block_shape=[128, 3]) float16", ("128,64",), ("TMA can copy it",)),
    Case(
        "the name of a kernel is no place of a TMA instruction",
        "========= Invalid __global__ read of size 4 bytes\n"
        "=========     at void cutlass::device_kernel<cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<(int)6>>>+0x90\n"
        "=========     Address 0x7f3b2e20a280 is out of bounds",
        ("a load or store of a thread, not of TMA",),
        ("the error is at a TMA instruction", "the map's address"),
    ),
    Case(
        "the function of a TMA copy is the place of a TMA instruction",
        "========= Invalid __global__ read of size 128 bytes\n"
        "=========     at cute::SM90_TMA_LOAD_2D::copy(const void *, unsigned long *)+0x90 in copy_sm90_tma.hpp:100\n"
        "=========     Address 0x7f3b2e20a280 is out of bounds",
        ("the error is at a TMA instruction",),
        ("not of TMA",),
    ),
    Case(
        "an address beyond shared memory",
        "========= Out-of-range shared or local address\n"
        "=========     at 0xbd0 in cutlass/arch/barrier.h:169:cutlass::arch::ClusterBarrier::init(const unsigned long *)",
        ("outside the shared memory of its block", "the dynamic shared memory of the launch"),
        ("the map's address",),
    ),
    Case(
        "the command line of Nsight Compute has no counts",
        "ncu --metrics l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum --launch-count 1 ./copy\n"
        "    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum                        384",
        ("384 conflicts",),
        (": 1 conflicts",),
    ),
    Case(
        "a null address that the driver refused",
        _DESCRIPTOR.format(address="0", result=1),
        ("The address is null", "other drivers have\nreturned 1 for it"),
    ),
    Case(
        "an earlier error",
        _DESCRIPTOR.format(address="0x7f0000000000", result=700),
        ("the error of an earlier kernel", "CUDA_LAUNCH_BLOCKING=1"),
        ("If the driver still refused it", "The address is null"),
    ),
    Case(
        "an earlier error of a kernel of TensorRT-LLM",
        _KERNELS.format(why="an illegal memory access was encountered", outer=24, stride=2048),
        ("the error of an earlier kernel",),
        ("If the driver still refused it",),
    ),
    Case(
        "a dimension of one element has a stride that no copy uses",
        _KERNELS.format(why="invalid argument", outer=7721, stride=2),
        ("globalStrides (128, 2, 4096) -> (128, 2048, 4096) bytes: dimension 2 has one element, so no copy uses its stride",),
        ("round the stride of dimension 2",),
    ),
    Case(
        "a dimension of one element has a stride out of range",
        _KERNELS.format(why="invalid argument", outer=1, stride=2048).replace("4096 337", "2305843007066210304 337").replace("64 16 1 1 1\n", "64 16 2 1 1\n"),
        ("(128, 2048, 4096) bytes: dimension 3 has one element",),
    ),
    Case(
        "an advisory of ptxas that a log wrapped",
        "Advisory: '.multicast::cluster' modifier on instruction 'cp.async.bulk{.tensor}' should be used \non .target 'sm_90a' instead of .target 'sm_90' as this feature is expected to",
        ("An advisory from ptxas", "-arch=sm_90a"),
        ("\nWrong",),
    ),
    Case(
        "one target for several features",
        "ptxas k.ptx, line 6; error   : Feature 'cp.async' requires .target sm_80 or higher\nptxas k.ptx, line 9; error   : Feature '.acq_rel' requires .target sm_70 or higher",
        ("-arch=sm_80",),
        ("sm_70,code", "below sm_70"),
    ),
    Case(
        "scales of blocks, and a message without recipes for blocks",
        "Invalid scaling configuration. For tensorwise scaling, both scales should be scalar. For rowwise scaling, scale_a should be (512, 1), scale_b should be (1, 1024). Got scale_a.size()=(512, 32) and scale_b.size()=(32, 8)",
        ("blocks of 1 x 128 of A and of 128 x 128 of B", "no recipe for such blocks"),
        ("too many",),
    ),
    Case(
        "scales of other rows",
        "Invalid scaling configuration. For tensorwise scaling, both scales should be scalar. For rowwise scaling, scale_a should be (512, 1), scale_b should be (1, 1024). Got scale_a.size()=(4096, 1) and scale_b.size()=(1, 1024)",
        ("rowwise needs (512, 1)",),
        ("blocks",),
    ),
    Case(
        "a division that does not come out even",
        'cute/int_tuple.hpp(362): error: static assertion failed with "Static shape_div failure"\n'
        '  instantiation of "auto cute::shape_div(const IntTupleA &, const IntTupleB &) [with IntTupleA=cute::_80, IntTupleB=cute::C<64>]" at line 941\n'
        '  instantiation of "auto cute::zipped_divide(const cute::Layout<LShape, LStride> &, const Tile &) [with LShape=cute::tuple<cute::tuple<cute::_64, cute::C<5>>, cute::_32>, LStride=cute::tuple<cute::tuple<cute::_1, cute::C<2048>>, cute::_64>, Tile=cute::tuple<cute::Layout<cute::_80, cute::_1>, cute::Layout<cute::_16, cute::_1>>]"',
        ("80 and 64: neither divides the other", "dividing ((_64,_5),_32):((_1,_2048),_64) by the tiler (_80:_1,_16:_1)", "_80 remaining of the right layout"),
    ),
    Case(
        "instantiations without their error",
        'instantiation of "auto cute::zipped_divide(const cute::Layout<LShape, LStride> &, const Tile &) [with LShape=cute::tuple<cute::_64, cute::_32>, LStride=cute::tuple<cute::_1, cute::_64>, Tile=cute::tuple<cute::_48, cute::_16>]" at line 10 of k.cu',
        ("dividing (_64,_32):(_1,_64) by the tiler (_48,_16)", "the tiler (_16,_16), which divides the layout", "the error before these instantiations"),
        ("LShape:LStride", "\nWrong"),
    ),
    Case(
        "instantiations that compile",
        'instantiation of class "cute::TiledCopy<Copy_Atom, LayoutCopy_TV, ShapeTiler_MN> [with Copy_Atom=cute::Copy_Atom<cute::SM75_U32x4_LDSM_N, cutlass::half_t>, LayoutCopy_TV=cute::Layout<cute::tuple<cute::_32, cute::_8>, cute::tuple<cute::_8, cute::_1>>, ShapeTiler_MN=cute::tuple<cute::_32, cute::_8>]" at line 414',
        ("32 threads of 8 values each; SM75_U32x4_LDSM_N of float16 needs 32 threads of 8 values each",),
        ("A change that works",),
    ),
    Case(
        "a swizzle of a type acts on elements",
        "using Atom = decltype(composition(Swizzle<2,2,3>{}, Layout<Shape<_8,_16>, Stride<_16,_1>>{}));",
        ("Sw<2,2,3> on elements of 32 bits is the 64B swizzle, Sw<2,4,3> on bytes",),
        ("is not a swizzle of TMA",),
    ),
    Case(
        "several layouts of one line",
        "The code printed A=`(_8,_2,_1):(_1,_64,_0)`. Now it prints B=(_8,_2):(_1,_64), and Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1) follows.",
        ("(_8,_2,_1):(_1,_64,_0)", "A layout (B): (_8,_2):(_1,_64)", "A swizzled layout: Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1)"),
        ("A layout: (_8,_128)",),
    ),
    Case(
        "layouts of C++ source",
        "auto a = make_layout(Shape<_5,Shape<_2,_4>>{}, Stride<_16,Stride<_80,_4>>{});\nauto b = cute::make_layout(make_shape(_6{}, Int<9>{}), GenRowMajor{});\nauto c = make_layout(make_shape(m, k));",
        ("A layout: (_5,(_2,_4)):(_16,(_80,_4))", "A layout: (_6,_9):(_9,_1)"),
        ("(m,k)",),
    ),
    Case(
        "a composed layout of CuTe DSL",
        "sA = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))",
        ("A swizzled layout: Sw<3,3,3> o 0 o (8,64):(64,1)", "the 128B swizzle"),
        ("A layout: (8,64)",),
    ),
    Case(
        "the demangled types of a backtrace",
        "kernel<cute::Layout<cute::tuple<cute::C<(int)64>, int>, cute::tuple<cute::ScaledBasis<cute::C<(int)1>, (int)1>, cute::ScaledBasis<cute::C<(int)32>, (int)0>>>>(T1::Params)",
        ("(_64,n0):(1@1,32@0)",),
    ),
    Case(
        "an assertion that a log wrapped",
        'copy_traits.hpp(130): error: static assertion failed with "Copy_Traits: dst failed to vectorize into registers. Layout is incompatible with this Cop\nyOp."\n',
        ("condition: Copy_Traits: dst failed to vectorize into registers. Layout is incompatible with this CopyOp.", "One call of a copy operation moves whole registers"),
    ),
    Case(
        "the tile of a type of six bits",
        'sm120_builder.inl(158): error: static assertion failed with "CTA tile for FP6 ElementD must have a contiguous extent that is a multiple of 128."',
        ("TMA stores elements of 6 bits in groups of 128",),
    ),
    Case(
        "a layout with other warps than its module",
        '#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>\nmodule attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {',
        ("the layout has 1 warp; the module states num-warps = 4",),
        ("threads per warp; the module",),
    ),
    Case(
        "the partitions of a specialised module",
        '#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>\nmodule attributes {"ttg.num-warps" = 4 : i32} {\n ttg.warp_specialize(%0)',
        ("1 x 1 warps",),
        ("the module states",),
    ),
    Case(
        "a layout without its name",
        "{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}",
        ("a tile of 1024", "256 threads, 4 elements each"),
    ),
    Case(
        "a layout with a second name",
        "#mma1 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>\n#mma = #mma1\n%0 : tensor<64x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>",
        ("operand A (M x K) in registers",),
        ("the definition of #mma",),
    ),
    Case(
        "operations without their layouts",
        "ttng.async_tma_copy_local_to_global %a[%b, %c] %d : !tt.tensordesc<tensor<32x16xf32, #shared>>, !ttg.memdesc<32x16xf32, #shared, #smem, mutable>",
        ("the definition of #shared: the line of the module that begins #shared =",),
    ),
    Case(
        "a fault of Triton's warp specialization",
        "k.py:8:51: error: 'arith.addi' op does not have expected attribute ttg.partition which is expected for ops whose parent has partitions",
        ("a fault of this Triton", "warp_specialize=False"),
    ),
    Case(
        "the source of a row of CUTLASS",
        "RuntimeError: Error Internal",
        ("An error from CUTLASS", "kErrorInternal"),
        ("Triton", "about a tensor map"),
    ),
    Case(
        "a problem that can_implement refuses",
        "RuntimeError: cutlass_gemm_caller, csrc/c3x/cutlass_gemm_caller.cuh:52, Invalid status",
        ("can_implement() is false", "multiple of 16 bytes"),
    ),
    Case(
        "the messages of cuBLAS",
        "RuntimeError: cublaslt_gemm.cu:326 in function cublas_gemm: cuBLAS Error: the requested functionality is not supported\ncuBLAS Error: the function failed to launch on the GPU",
        ("15 CUBLAS_STATUS_NOT_SUPPORTED", "CUBLAS_STATUS_EXECUTION_FAILED"),
    ),
    Case(
        "shapes of quantised operands",
        "cuBLAS GEMM RHS tensor's outer and inner dimensions must be a multiple of 16 when using quantized inputs. Got shape=(48, 12), shape_2d=(48, 12)",
        ("the shape (48, 12); cuBLAS needs multiples of 16",),
    ),
    Case(
        "scales of an Intel GPU",
        "ValueError: For XPU MX/NVFP4 gemm, scale_b swizzle entries must all be NO_SWIZZLE",
        ("an Intel GPU reads the scales in rows", "scales='linear'"),
    ),
    Case(
        "scales of another order of FlashInfer",
        "Check failed: scaleFP8SF.numel() == expectedScaleSize (1024 vs. 256) : scaleFP8SF size does not match the selected SF layout: expected 256 elements, got 1024.",
        ("the tensor has 1024 scales; the order that the call selects has 256", "layout_128x4 is 32_4_4"),
    ),
    Case(
        "an assertion of DeepGEMM in Python",
        "    assert n % 64 == 0 and k % 128 == 0\nAssertionError",
        ("K in multiples of 128",),
    ),
    Case(
        "a stride that TileLang refuses",
        "TMA global stride 40 must be a 16-byte multiple below 2^40",
        ("a global stride is 40 bytes; must be a multiple of 16",),
    ),
    Case(
        "bitcode that is newer than the compiler",
        "ptxas application ptx input, line 47; fatal : Parsing error near '.nvvm': syntax error",
        ("an intrinsic of LLVM",),
        ("no instruction has this modifier",),
    ),
    Case(
        "a tensor before its values",
        "tile = raw_ptr(0x0000759d4e800000: f32, gmem, align<8>) o (4,2):(8,1) = \n  ( 0.6, -0.1, -1.1, -0.5 )",
        ("A tensor, as CuTe DSL prints it: raw_ptr(0x0000759d4e800000: f32, gmem, align<8>) o (4,2):(8,1)", "aligned to 8 bytes"),
        ("A layout:",),
    ),
    Case(
        "a map in misaligned memory",
        "RuntimeError: CUtensorMap must be aligned",
        ("multiple of 64 bytes (128 since CUDA 13)",),
    ),
    Case(
        "a load that no thread announces",
        "mbarrier.init.shared.b64 [full], 1;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [smem], [desc, {0, 0}], [full];\nmbarrier.try_wait.parity.shared.b64 p, [full], 0;\n// hangs",
        ("no instruction of the text arrives on full: a phase needs 1 arrival", "mbarrier.arrive.expect_tx"),
    ),
    Case(
        "a load of unknown size that a thread announces",
        "mbarrier.init.shared.b64 [full], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [full], 4096;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [smem], [desc, {0, 0}], [full];\nmbarrier.try_wait.parity.shared.b64 p, [full], 0;\n// hangs",
        ("the text does not contain its bytes",),
        ("no instruction of the text arrives",),
    ),
    Case(
        "a tile of shared memory in source",
        "using Smem = decltype(tile_to_shape(composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{}), make_shape(Int<32>{}, Int<64>{}, Int<3>{})));\nusing Other = Layout<Shape<_6,_4>>;",
        ("A swizzled layout: Sw<3,3,3> o _0 o ((_8,_4),(_64,_1),(_1,_3))", "the 128B swizzle", "A type of CuTe C++: (_6,_4):(_1,_6)"),
        ("(_8,_64):(_64,_1)",),
    ),
    Case(
        "a tile in source that its atom does not divide",
        "auto s = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_12,_64>{});",
        ("An operation of C++ source that CuTe refuses", "\nWrong"),
        ("no gaps",),
    ),
    Case(
        "a tile in source whose sizes the text lacks",
        "auto l = make_layout(Shape<_4,_2>{});\nauto s = tile_to_shape(atom, make_shape(bM, bK, bP));",
        ("A layout: (_4,_2):(_1,_4)",),
        ("refuses",),
    ),
    Case(
        "a tiled copy of one value per thread",
        "TiledCopy\n  Tiler_MN:       (_32,_8)\n  TiledLayout_TV: (_256,_1):(_1,_0)\nCopy_Atom\n  ThrID:        _1:_0\n  ValLayoutSrc: (_1,_1):(_0,_0)\n  ValLayoutDst: (_1,_1):(_0,_0)\n  ValLayoutRef: (_1,_1):(_0,_0)\n  ValueType:    32b",
        ("256 threads, 1 value each",),
        ("0 elements apart",),
    ),
    Case(
        "scales on a GPU without a kernel",
        "RuntimeError: Assertion error (csrc/apis/layout.hpp:59): Unknown SF transformation",
        ("on another GPU, such as sm_120",),
    ),
    Case(
        "scales of a blockwise kernel",
        "RuntimeError: Scale tensor size mismatch. Expected at least 2048 elements, got 1024",
        ("the tensor has 1024 scales; the blockwise kernel reads 2048",),
    ),
    Case(
        "a compiler that DeepGEMM starts",
        "RuntimeError: Assertion error (csrc/jit/kernel_runtime.hpp:45): exit_code == 0",
        ("its output stands before this line",),
    ),
    Case(
        "a tiled copy of Mosaic GPU",
        "NotImplementedError: Only 2D copies implemented",
        ("only arrays with two modes",),
    ),
)  # fmt: skip


@each_of("case", CASES, ids=lambda case: case.name)
def test_the_cause_of_a_paste(case: Case) -> None:
    said = cute.explain(case.text)
    assert [part for part in case.says if part not in said] == []
    assert [part for part in case.never if part in said] == []
