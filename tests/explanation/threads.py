# ruff: noqa: E501, the texts of programs keep their lines
"""Texts of the forms that public threads have, with numbers of our own, and what any right answer says.

Each is (where such a text was seen, the text, what is said, whether a rule is broken). What is said was written down
before the library was asked: it is computed by hand from the rules of tensor maps, of CuTe or of the program that
printed the text.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Seen(NamedTuple):
    """One text; `broken` is None where no rule can be judged."""

    thread: str
    text: str
    says: tuple[str, ...]
    broken: bool | None = None


_KERNELS: Final = """\
Error: Failed to initialize the TMA descriptor due to {why}
tmaFormat: 9 dim: {rank} gmem: {address}
Shape: {shape}
Stride: {stride}
tileShapes: {tile}
tileStrides: 1 1 1 1 1969767282
swizzleType: 3"""


def kernels(why: str, rank: int, shape: str, stride: str, tile: str, address: str = "0xf64d740000") -> str:
    """What kernels of TensorRT-LLM print, in FlashInfer too: five numbers whatever the rank, the last ones of no map."""
    return _KERNELS.format(why=why, rank=rank, shape=shape, stride=stride, tile=tile, address=address)


_LOG: Final = """\
TMA Desc Addr:   0x7ffce131c280
format         0
dim            3
gmem_address   0x3786d36200
globalDim      (4096,1216,1,1,1)
globalStrides  (1,4096,0,0,0)
boxDim         (128,128,1,1,1)
elementStrides (1,1,1,1,1)
interleave     0
swizzle        3
l2Promotion    2
oobFill        0
Error: Failed to initialize the TMA descriptor 715"""


def quoted(prefix: str, text: str = _LOG) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


_DSL: Final = """\
loc("kernel"("/home/me/gemm.py":258:0)): error: unable to partition input tensors for TMA
sA: tensor<ptr<f16, smem, align<1024>> o S<3,4,3> o 0 o ((8,16),(64,1),(1,3)):((64,512),(1,0),(0,8192))>
gA: tensor<(0,?{div=128}) o (128,64,64):(1@1,1@0,64@0)>
tma_atom_a: Copy Atom
  ThrID:         1:0
  TV Layout Src: (1,8192):(0,1)
  TV Layout Dst: (1,8192):(0,1)
  Value type:    f16"""

_RAW: Final = """\
tensor(raw_ptr(0x0000000000000400: f16, smem, align<1024>) o ((8,16),(32,1)):((32,256),(1,0)), data=
       [[ 3.000000,  3.000000,  3.000000, ...,  0.000000,  0.000000,  0.000000, ],
        ...
        [ 0.000000,  0.000000,  0.000000, ...,  0.000000,  0.000000,  0.000000, ]])"""

_SELECTOR: Final = """\
/opt/cutlass/include/cutlass/gemm/collective/builders/sm90_common.inl(321): error: static assertion failed with "BLK_K0 must be a multiple of size<1>(GMMA::Layout_K_INTER_Atom<ElementType>{})"
        static_assert(BLK_K0 % size<1>(GMMA::Layout_K_INTER_Atom<ElementType>{}) == 0,
        ^
          detected during:
            instantiation of "auto cutlass::gemm::collective::detail::ss_smem_selector<major,ElementType,BLK_MN,BLK_K>() [with major=cute::SM90::GMMA::Major::K, ElementType=cutlass::float_e5m2_t, BLK_MN=cute::_128, BLK_K=cute::_8]" at line 138 of /opt/cutlass/include/cutlass/epilogue/collective/builders/sm120_builder.inl"""

_TMEM: Final = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 128], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x256xf32, #tmem, #ttng.tensor_memory, mutable>"""

_SLICE: Final = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
  %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>"""

_RANK: Final = """\
combine.mlir:268:8: error: Result has an invalid layout: #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [0, 1]}>.
Layout has rank 2, but the tensor it's attached to has rank 1."""

_STORE: Final = (
    "k.py:31:8: error: 'tt.descriptor_store' op tensor descriptor block and tensor types must match\n"
    "note: see current operation: tt.descriptor_store %desc[%a, %b], %v : !tt.tensordesc<tensor<128x64xf16>>, "
    "tensor<64x64xf16>"
)

_IDENTITY: Final = (
    "ArithTuple(_0,_0) o (_4,_2):(_1@0,_1@1):\n  (0,0)  (0,1)\n  (1,0)  (1,1)\n  (2,0)  (2,1)\n  (3,0)  (3,1)"
)

_IM2COL: Final = """\
InternalError: Failed to initialize the TMA descriptor 1 (CUDA_ERROR_INVALID_VALUE: invalid argument)
format         6 (CU_TENSOR_MAP_DATA_TYPE_FLOAT16)
dim            4
globalDim      [{channels}, 10, 12, 2]
smem_box_pixel 16
smem_box_channel {channels}
elementStrides [1, 1, 1, 1]
interleave     0 (CU_TENSOR_MAP_INTERLEAVE_NONE)
swizzle        3 (CU_TENSOR_MAP_SWIZZLE_128B)
l2Promotion    2 (CU_TENSOR_MAP_L2_PROMOTION_L2_128B)
oobFill        0 (CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)"""

_COPY_OP: Final = """\
DSLRuntimeError: ICE IR Verification Failed
error: "cute.copy("("k.py":41:4): 'cute.copy' op '!cute_nvgpu.atom.universal_copy<f32, 128 b>' ptr alignment does not meet requirement
 note: "cute.copy("("k.py":41:4): see current operation: "cute.copy"(%1, %2, %3) : (!cute.memref<f32, gmem, "((4,1),(1,1)):((1,0),(0,0))">, !cute.memref<f32, smem, align<16>, "((4,1),(1,1)):((1,0),(0,0))">) -> ()"""

_INTERNAL: Final = """\
cutlass error: Error Internal at: 247
gemm_universal_adapter.h:271    Setting smem size to 197632
cutlass3x_sm90_tensorop_s64x96x16gemm_bf16_bf16_f32_void_bf16_256x96x64_4x2x1_0_ttn_align8_stream_k
get_grid_shape(): Proposed GridDims by the scheduler using heuristics = (4, {rows}, 1)"""

_NO_MEMBER: Final = 'k.cuh({line}): error: namespace "cuda::device::experimental" has no member "{name}"'

_LEFT: Final = """\
cutlass.base_dsl.common.DSLCudaRuntimeError: CUDA_ERROR_ILLEGAL_INSTRUCTION (error code: 715)
    cute.arch.warpgroup_reg_dealloc(24)
    cute.printf("tile {}", tile)"""

_CONFLICTS: Final = """\
    Metric Name                                                  Metric Unit Metric Value
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum                          5,713,108
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum                            0
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum                    5,713,107"""

_MORE: Final[tuple[Seen, ...]] = (
    Seen("tilelang 2578", _IM2COL.format(channels=128), ("256 bytes", "at most 128 with swizzle 128b", "im2col", "text does not contain the strides"), True),
    Seen("tilelang 2578, sound", _IM2COL.format(channels=64), ("global_strides",), False),
    Seen("cudnn-frontend 839", "cuTensorMapEncodeTiled(rank=4, dtype=FLOAT16, globalDim=[256, 8, 1, 1], globalStrides=[512, 16384, -2147483648], boxDim=[64, 2, 1, 1], elementStrides=[1, 1, 1, 1], swizzle=128B) -> cudaErrorInvalidValue", ("-2147483648", "and never negative"), True),
    Seen("burn 4445", "Launch error An unknown error happened during launch\nCaused by:\n  Upper corner must be in range [-128, 127] for 4D im2col", ("-128 to 127", "share 16 bits"), True),
    Seen("cutlass 3033", _COPY_OP, ("assumed_align=16", "128 bits"), True),
    Seen("cutlass 2656", "MLIRError: Unable to parse attribute:\nerror: \"#cute_nvgpu.atom_copy_field_tmareduce<tma_descriptor_ptr>\":1:13: unknown attribute `atom_copy_field_tmareduce` in dialect `cute_nvgpu`", ("compiler has no atom_copy_field_tmareduce", "newer nvidia-cutlass-dsl"), True),
    Seen("cutlass 2904", "error: unknown: NVPTX compiler invocation failed, error log: ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 1582 in function kernel_cutlass_kernel_0. Try to compile with register target of 154 or higher.", ("at most 384 threads", "setmaxnreg", "65536"), True),
    Seen("triton 5017", "ptxas fatal   : (C7600) Register allocation failed with register count of '255'. Compile the program with a higher register target", ("255 registers per thread", "smaller tile"), True),
    Seen("cutlass 3406", "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.", ("__launch_bounds__(threads, 1)", "results are right"), False),
    Seen("made for ptxas", "ptxas info    : (C7505) Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.", ("-lineinfo instead of -G",), False),
    Seen("cutlass 2452", "ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.", ("-rdc=true",), False),
    Seen("triton 5017, note", "ptxas info    : (C7516) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill formed pipeline stage in the function 'k'", ("on every path", "wait_group"), False),
    Seen("SageAttention 291", "ptxas error: Instruction 'wgmma.fence' not supported on .target 'sm_120'", ("only sm_90 gpus support this", "other code for sm_120"), True),
    Seen("DeepGEMM 185", "ptxas k.ptx, line 3; error   : Instruction 'tcgen05.fence' not supported on .target 'sm_120a'", ("only sm_100 to sm_110 gpus support this",), True),
    Seen("XLA 4970", "ptxas exited with non-zero error code 65280, output: ptxas fatal: PTX with .target 'sm_90a' cannot be compiled for architecture 'sm_90'", ("was asked for sm_90", "-arch=sm_90a"), True),
    Seen("cccl 1403", "ptxas k.ptx, line 154; error   : Advisory: '.multicast::cluster' modifier on instruction 'cp.async.bulk{.tensor}' should be used on .target 'sm_90a' instead of .target 'sm_90' as this feature is expected to have substantially reduced performance", ("legal for both targets", "-arch=sm_90a"), True),
    Seen("GB-25 7", "ptxas k.ptx, line 5; fatal   : Unsupported .version 8.6; current version is '8.4'\nptxas fatal   : Ptx assembly aborted due to errors", ("reads ptx up to 8.4", "toolkit with ptx 8.6"), True),
    Seen("tilelang 931", "ptxas k.ptx, line 3617; error   : Vector type too large, exceeds 128 bit limit", ("256 bits", "sm_100", "8.8"), True),
    Seen("modular 5707", "constrained.mojo:56:6: note: constraint failed: The tcgen05 instructions are only applicable on nVidia Blackwell (sm_100a, sm_101a) hardware.", ("sm_120 and sm_121", "mma.sync"), True),
    Seen("llvm 156613", "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.tcgen05.fence.after.thread.sync", ("no instruction for tcgen05.fence.after.thread.sync", "newer llvm"), True),
    Seen("sanitizer 19", "========= Invalid __shared__ ? of size 2048 bytes\n=========     at 0x2570 in k.py:223:matmul\n=========     by thread (224,0,0) in block (4,0,0)\n=========     Address 0x1bc20 is out of bounds", ("outside the shared memory of its block",), False),
    Seen("cutlass 2905", "[TMA] desc_a=00000002002FE5A0 desc_b=0x2002fe640\nGot bad cuda status: misaligned address", ("desc_a=00000002002fe5a0: 32 bytes past a multiple of 64", "align desc to 64 bytes"), True),
    Seen("triton 6292", "NVGPUToLLVMPass.cpp:528: std::string WGMMAOpPattern::getPtxAsm(WGMMAOp) const: Assertion `supported && \"WGMMA type or shape is not supported\"' failed.", ("k-major", "an error from Triton"), True),
    Seen("sglang 913", "Allocation.cpp:43: getCvtOrder(Attribute, Attribute): Assertion `!(srcMmaLayout && dstMmaLayout && !srcMmaLayout.isAmpere()) && \"mma -> mma layout conversion is only supported on Ampere\"' failed.", ("newer triton",), True),
    Seen("triton 8606", "LLVM ERROR: Failed to find a valid layout", ("descriptor of wgmma or tcgen05", "8 rows"), True),
    Seen("triton 5133", "unsupported shared memory layout for MMAv3\nUNREACHABLE executed at TritonGPUAttrDefs.cpp.inc:385!", ("block_k of 32 bytes",), True),
    Seen("triton 6238", "unsupported NVMMA layout (MMAv3 or TMA)\nUNREACHABLE executed at TritonGPUAttrDefs.cpp.inc:385!", ("block_k of 32 bytes",), True),
    Seen("triton 6238, rows", "AssertionError: tensor descriptor block shape must have at least 8 rows, but got 4", ("4 rows", "8 rows or more"), True),
    Seen("jax 32123", "NotImplementedError: Only copies transferring a number of bytes divisible by the warpgroup size are supported", ("multiple of 128 bytes",), True),
    Seen("triton 11587", "error: 'ttng.async_tma_copy_global_to_local' op descriptor block and tensor must have the same number of elements, but got descriptor block with 8192 elements tensor with 4096 elements", ("box has 8192 elements", "block_shape of 4096"), True),
    Seen("triton 8022", "error: cp.async does not support transfers smaller than 4 bytes", ("num_stages=1", "contiguous"), True),
    Seen("tilelang 40", "InternalError: Check failed: layout_map.count(buffer) != 0 (0 vs. 0) : The layout for fragment m_max can not be inferred correctly.", ("the fragment m_max", "t.annotate_layout"), True),
    Seen("tilelang 310", "InternalError: Check failed: (src_layout->IsEqual(dst_layout, true)) is false: Layout may conflict with ParallelOp for buffer lse_local\nLHS = Fragment Shape: [8, 128] -> [8] -> replicate: 1 -> thread: 128", ("each thread would hold different elements", "t.alloc_shared"), True),
    Seen("tilelang 2642", "InternalError: Get different layout for B_s\n  current layout:  Layout((64, 64) -> (1, 8, 512), (i,j) -> (0, i//8, j))", ("own swizzles", "make_swizzled_layout"), True),
    Seen("TileOPs 1853", "AssertionError: Not a canonical GMMA_MN layout: stride<1,0>=2 != W=1", ("mn-major", "128 are one warpgroup"), True),
    Seen("tilelang 1252", "RuntimeError: Initialization failed: Failed to set the allowed dynamic shared memory size to 331776 with error: invalid argument", ("232448 on sm_90", "99328 bytes less"), True),
    Seen("FlashQLA 4", "tvm.error.InternalError: Failed to set the allowed dynamic shared memory size to 196608", ("101376 on sm_120", "95232 bytes less for sm_120"), True),
    Seen("tilelang 237", "Failed to initialize the TMA descriptor A_desc with error code 1", ("cuda_error_invalid_value", "multiples of 16 bytes"), None),
    Seen("tilelang 460", "RuntimeError: Kernel call failed: Error: Failed to initialize the TMA descriptor A_desc", ("usually it is 1", "x.stride()"), None),
    Seen("tilelang 1840", "k.cu(24): error: identifier \"mbarrier\" is undefined\n    mbarrier[0].expect_transaction(4096);", ("tl_disable_tma_lower",), True),
    Seen("TensorRT-LLM 2527", "w.h:74:37: error: ‘CUtensorMap’ has not been declared\nw.h:74:61: error: ‘CUtensorMapDataType’ has not been declared", ("cuda 12.0 or later", "#include <cuda.h>"), True),
    Seen("pie 520", _NO_MEMBER.format(line=700, name="fence_proxy_async_shared_cta") + "\n" + _NO_MEMBER.format(line=640, name="cp_async_bulk_tensor_4d_global_to_shared"), ("each -gencode is a separate compilation", "__cuda_arch__ >= 900"), True),
    Seen("cutlass 2513", "[ ERROR: CUDA Runtime ] cluster_launch.hpp:248: invalid argument\nFailed to launch the CUTLASS kernel.", ("a launch does not check them", "-arch"), None),
    Seen("cupy 8778", "CUDADriverError: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: too many blocks in cooperative launch", ("on the gpu at the same time",), None),
    Seen("cutlass 2157", _INTERNAL.format(rows=33), ("33 CTAs; must be a multiple of 2", "(4, 34, 1)"), True),
    Seen("cutlass 2932", _LEFT, ("releases registers", "printf needs many"), None),
    Seen("DeepGEMM 143", "RuntimeError: Failed: Assertion error smxx_layout.hpp:89 'dim == 2 or dim == 3'", ("2 modes, (mn, k / 128)",), True),
    Seen("cutlass 1882", _CONFLICTS, ("stores (st.shared, stmatrix): 5713107 conflicts", "bank_conflicts("), False),
    Seen("ao 4653", "RuntimeError: cudaGetDriverEntryPoint(\"cuTensorMapEncodeTiled\") failed: cudaErrorInvalidValue: invalid argument", ("cudagetdriverentrypointbyversion", "from cuda 13 on"), True),
    Seen("cccl 5010", "k.cu(3): error: identifier \"PFN_cuTensorMapEncodeTiled\" is undefined", ("cudatypedefs.h", "_v12000"), True),
    Seen("burn 2453", "[Compilation Error]\n    nvrtc: error: invalid value for --gpu-architecture (-arch)", ("older than the gpu", "sm_90a"), True),
    Seen("torchtitan 1154", "AttributeError: 'CudaUtils' object has no attribute 'fill_1d_tma_descriptor'", ("before Triton 3.4", "from_tensor"), True),
    Seen("TIRx-kernels 21", "========= Barrier error detected. Divergent thread(s) in block.\n=========     at flash_bwd+0x2b40\n=========     by thread (0,0,0) in block (0,0,0)", ("early return", "barrier.sync id, n"), None),
    Seen("cuda-gdb, a cluster", "received signal CUDA_EXCEPTION_17, Cluster out-of-range address.", ("a rank outside the cluster", "cluster_sync"), None),
    Seen("ncu, a sentence", "The memory access pattern for shared loads might not be optimal and causes on average a 8.0 - way bank conflict across all 1024 shared load requests. This results in 7168 bank conflicts, which represent 87.50% of the overall 8192 wavefronts", ("7168 conflicts, 8.0 passes per request",), False),
)  # fmt: skip

_FRONT_ENDS: Final[tuple[Seen, ...]] = (
    Seen('triton 4727', "#blocked = #triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>\n#shared = #triton_gpu.shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = true}>\n    %0 = triton_gpu.local_alloc  { allocation.offset = 0 : i32} : () -> !tt.memdesc<4x128xf32, #shared, #triton_gpu.shared_memory, mutable>\n    %1 = triton_gpu.local_load %0 : !tt.memdesc<4x128xf32, #shared, #triton_gpu.shared_memory, mutable> -> tensor<4x128xf32, #blocked>\ntriton-opt: lib/Tools/LinearLayout.cpp:512: mlir::triton::LinearLayout mlir::triton::LinearLayout::reshapeIns(llvm::ArrayRef<std::pair<mlir::StringAttr, int> >) const: Assertion `getTotalInDimSize() == std::accumulate(newInDims.begin(), newInDims.end(), 1, [&](int32_t acc, auto &inDim) { return acc * inDim.second; })' failed.", ('8 rows', 'num_warps=4'), True),
    Seen('triton 5609', 'python: triton/lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp:1008:\nmlir::triton::LinearLayout mlir::triton::gpu::{anonymous}::chooseStMatrixLayoutLeadingOffset(\nmlir::MLIRContext*, mlir::RankedTensorType, int): Assertion `instrN >= numColsPerChunk &&\n"Each chunk is filled in with a single warp"\' failed.', ('stmatrix', 'num_warps=4'), True),
    Seen('triton 3413', 'loc("k.py":42:8): error:  size mismatch when packing elements for LLVM struct expected 8 but got 4\nloc("k.py":42:8): error: \'llvm.insertvalue\' op Type mismatch: cannot insert \'f32\' into \'!llvm.struct<(i32, i32, i32, i32, i32, i32, i32, i32)>\'\nPass execution failedLLVM ERROR: Failed to translate TritonGPU to LLVM IR.', ('8 registers per thread', 'newer triton'), True),
    Seen('Triton-distributed 23', "<unknown>:0: error: failed to legalize operation 'tt.make_tensor_descriptor' that was explicitly marked illegal\n#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 2], order = [1, 0]}>\n#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 4], instrShape = [16, 8]}>", ('no tma', 'tl.load'), True),
    Seen('triton 8456', 'AssertionError: tensor descriptor layout NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2, transposed=False, fp4_padded=False, cga_layout=[]) does not match result shared memory layout SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[0], cga_layout=[])', ('desc.layout', 'the same swizzle'), True),
    Seen('gluon, SharedLayout', "ValueError: expected 'layout' to be a SharedLayout but got BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0], cga_layout=[])", ('distributed layouts', 'get_default_for'), True),
    Seen('gluon, expand_dims', 'triton.compiler.errors.CompilationError: at 12:10:\nexpected expand_dims input to have a SliceLayout, but got: BlockedLayout(size_per_thread=[4], threads_per_warp=[32], warps_per_cta=[4], order=[0], cga_layout=[])', ('gl.slicelayout(dim, parent)',), True),
    Seen('gluon, expand_dims axis', 'ValueError: expected expand_dims input layout to be sliced in axis 0 but got 1', ('SliceLayout removes dimension 1', 'gl.slicelayout(0, parent)'), True),
    Seen('gluon, broadcast', 'ValueError: Layout mismatch in broadcast: BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0], cga_layout=[]) vs BlockedLayout(size_per_thread=[4, 1], threads_per_warp=[4, 8], warps_per_cta=[1, 4], order=[0, 1], cga_layout=[])', ('need the same layout', 'gl.convert_layout'), True),
    Seen('gluon, convert trivial', 'TypeError: layout conversion from BlockedLayout(size_per_thread=[1], threads_per_warp=[32], warps_per_cta=[4], order=[0], cga_layout=[]) to BlockedLayout(size_per_thread=[2], threads_per_warp=[32], warps_per_cta=[4], order=[0], cga_layout=[]) is not trivial.\nThe linear layouts are:\nDistributedLinearLayout(reg_bases=[], lane_bases=[[1], [2], [4], [8], [16]], warp_bases=[[32], [64]], block_bases=[], shape=[128])\nDistributedLinearLayout(reg_bases=[[1]], lane_bases=[[2], [4], [8], [16], [32]], warp_bases=[[64], [0]], block_bases=[], shape=[128])', ('assert_trivial=false', 'each element is held exactly once'), True),
    Seen('gluon, block_shape swizzle', 'AssertionError: Expected block_shape[-1] to be at least 64 but got 32', ('32 elements', 'narrower swizzle'), True),
    Seen('gluon, im2col corner', 'AssertionError: pixel_box_lower_corner[0] must be in [-128, 127], got -200', ('within -128 to 127', 'share 16 bits'), True),
    Seen('triton, tma layouts', "k.py:14:5: error: 'ttng.async_tma_copy_global_to_local' op TMA descriptor layout must match shared layout, but got descriptor layout #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}> and shared memory layout #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>", ('64b swizzle', "descriptor's layout"), True),
    Seen('triton, barrier cga', "error: 'ttng.async_tma_copy_global_to_local' op TMA barrier cga_layout must be [[1]] or [[0]], got []", ('one for each pair of ctas',), True),
    Seen('triton, coords', "error: 'ttng.async_tma_copy_global_to_local' op expected 3 coordinates, but got 2", ('outermost first', '3 coordinates'), True),
    Seen('triton, wgmma kWidth', "error: 'ttng.warp_group_dot' op in-register LHS operand must have a kWidth of 2 but got 4", ('k_width=2', '32 / bits'), True),
    Seen('triton, wgmma M', "error: 'ttng.warp_group_dot' op WGMMA result M dimension must be divisible by 64", ('64 rows', 'mma_v2'), True),
    Seen('triton, mma kinds', "error: 'ttng.tc_gen5_mma' op LHS and RHS operand dtypes kinds don't match: LHS kind is f16 but RHS kind is f8f6f4", ('kind f16', '8 bits and less'), True),
    Seen('triton, mma acc', "error: 'ttng.tc_gen5_mma' op unsupported accumulator dtype for operand types 'bf16' and 'bf16', accumulator dtype is 'f16' but must be one of ['f32']", ("in 'f32', not in f16",), True),
    Seen('triton, mma col stride', "error: 'ttng.tc_gen5_mma' op The col stride of the return operand must be 32 / 16 but got 1", ('own column of 32 bits',), True),
    Seen('triton, gather offsets', "error: 'ttng.async_tma_gather' op x offsets must be broadcasted across each warp", ('gather4', 'gl.slicelayout(0'), True),
    Seen('gluon, tmem layout', "ValueError: TMEM layout '16x64b' unsupported for shape [64, 32] and num_warps 4", ('another instr_variant',), True),
    Seen('triton TLX no num-warps', 'Operand 0 (%v) has an invalid layout: Could not determine the number of warps per CTA. Operation is not in a context with `ttg.num-warps`.', ('"ttg.num-ctas" = 1',), True),
    Seen('pytorch 190363', 'Descriptor block shape must have at least 16 bytes in the last dimension,\nbut got 1 * 4 = 4 bytes', ('4 elements x 4 bytes = 16 bytes',), True),
    Seen('triton 7822', 'Failed to run autotuning code block: CUDA driver error: invalid argument', ('does not name the function',), None),
    Seen('jax 39997', 'ValueError: Failed to infer a possible set of layouts. This should only happen if user-provided layout casts are unsatisfiable.\n    plgpu.TilingTransform((8, 8 * SWIZZLE // BITWIDTH)),', ('arrays of two dimensions',), True),
    Seen('jax 38595', 'ValueError: Tiling ((64, 8), (16, 8), (8, 8), (2,)) does not apply to shape (16, 128)', ('must divide the shape (16, 128)',), True),
    Seen('jax 32123b', 'ValueError: memref<32xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>> must have a number of elements that is a multiple of 128 (got 32)', ('128 threads of a warpgroup',), True),
    Seen('mosaic gpu, swizzle slice', 'ValueError: Async copies with swizzle=128 require the last dimension of the slice to be exactly 128 bytes i.e.  64 elements, but got 32 elements.', ('rows of 64', 'tilingtransform((8, 64))'), True),
    Seen('mosaic gpu, 128 bits', 'ValueError: Async copies require the number of bits copied along the last dimension to be divisible by 128, but got 64', ('16 bytes',), True),
    Seen('mosaic gpu, 256', 'ValueError: Async copies only support copying <=256 elements along each dimension, got (512, 64)', ('the box is (512, 64)',), True),
    Seen('mosaic gpu, smem shape', 'ValueError: Expected the SMEM reference to have the same shape as the transformed slice: (64, 64) != (8, 1, 8, 64)', ('transforms=(...)',), True),
    Seen('mosaic gpu, tiling', 'ValueError: Tiling should be (8, swizzle_elems) where swizzle_elems = 8 * swizzle // bitwidth(dtype) (= 8 * 128 // 16 = 64), but got (8, 32)', ('tilingtransform((8, 64))', 'got (8, 32)'), True),
    Seen('mosaic gpu, smem', 'ValueError: Mosaic GPU kernel exceeds available shared memory: smem_bytes=262144 > max_smem_bytes=232448', ('262144 bytes', 'max_concurrent_steps'), True),
    Seen('mosaic gpu, tmem cols', 'ValueError: Total TMEM allocation exceeds memory limit. Requested 640 columns which exceeds limit of 512.', ('640 columns of tensor memory',), True),
    Seen('mosaic gpu, swizzle M64', 'ValueError: Swizzle=128 is too big for MMA with M=64. Try lowering it.', ('two halves',), True),
    Seen('mosaic gpu, wgmma mn', 'ValueError: WGMMA requires m and n to be multiples of 64 and 8, got 32 and 64', ('swap the operands',), True),
    Seen('mosaic gpu, collective', 'ValueError: Grid dimension 0 must be divisible by cluster dimension: 33 % 2 != 0', ("cluster's 2",), True),
    Seen('mlir, nvgpu last dim', 'error: the tensormap descriptor must have last dimension of 128 bytes but it is 256 bytes', ('256 bytes', 'swizzle = none'), True),
    Seen('mlir, nvgpu dims', 'error: the tensor map descriptor must have dimensions between 1 and 256 but it is 512', ('the box has 512 elements',), True),
    Seen('mlir, nvgpu shapes', "error: memref and tensor map shapes mismatch 'memref<128x32xf32, 3>' != 'memref<32x32xf32, 3>'", ('loads memref<128x32xf32, 3>', 'subview'), True),
    Seen('mlir, nvgpu mma K', "error: 'nvgpu.warpgroup.mma' op 2nd dim matrix-A ( 64 )!= 1st dim matrix-B ( 32 )", ('64 elements along k',), True),
    Seen('mlir, nvgpu mma N', "error: 'nvgpu.warpgroup.mma' op has input type 'memref<64x121xf16, 3>' n is set to 121, it is not supported", ('steps of 8',), True),
    Seen('mlir, nvvm im2col', 'error: im2col offsets must be 2 less than number of coordinates', ('each spatial mode',), True),
    Seen('tilelang 2715', 'InternalError: Check failed: (stride == 4 || stride % 8 == 0) is false: stride=12', ('12 rows', 'a multiple of 8'), True),
    Seen('tilelang 358', 'InternalError: Check failed: (warp_m % 16 == 0) is false: warp_m=4', ('16 rows for each warp',), True),
    Seen('tilelang 2547', 'tvm.error.InternalError: Get different layout for acc_o\n current layout:  Fragment((64, 64) -> (32,), ..., thread_range: I.Range(128, 256))\n previous layout: Fragment((64, 64) -> (16,), ..., thread_range: I.Range(0, 256))', ('threads 128 to 256', 'tl_disable_warp_specialized'), True),
    Seen('tilelang 2593', 'N=24:  AssertionError: Not a canonical GMMA_MN layout: stride<1,0>=3 != W=1', ('3 x 16 bytes apart', '128 are one warpgroup'), True),
    Seen('tilelang fallback', 'InternalError: T.tma_copy() cannot fall back to normal copy in LowerBulk: TMA innermost box dim 4 (=8 bytes) is not a whole 16-byte multiple, src=A, dst=A_shared', ('4 elements, 8 bytes',), True),
    Seen('tilelang wgmma_gemm', 'InternalError: T.wgmma_gemm() requires Hopper WGMMA lowering, but constraints were not satisfied. Got target=cuda -arch=sm_90a, A(scope=shared.dyn, dtype=float16), B(scope=shared.dyn, dtype=float16), C(scope=local.fragment, dtype=float32), M=32, N=128, K=64, threads=128', ('32 x 128 x 64',), True),
    Seen('tilelang tmem cols', 'InternalError: Check failed: (num_cols_total <= kTmemNumColumns) is false: This block allocates 608 TMEM columns across 4 tcgen05.alloc calls, but a CTA only has 512 columns; shrink the TMEM footprint or release a buffer earlier with T.deallocate_tmem', ('power of two of at least 32',), True),
    Seen('tilelang 2877', 'InternalError: Check failed: (have_succeeded) is false: Failed to find a suitable instruction for tcgen05.st. Check your layout.', ('16 of every 32 lanes',), True),
    Seen('tilelang 2683', 'tl::tma_store_cluster(&buf[0], &buf[0], 1, static_cast<uint32_t>(508), mbar[0]);\ncudaErrorLaunchFailure: unspecified launch failure', ('508 bytes: the size of a bulk copy must be a multiple of 16',), True),
    Seen('thunderkittens, cols', 'include/types/shared/st.cuh(80): error: static assertion failed with "Cols must be divisible by the tile dimension"\n          detected during:\n            instantiation of class "kittens::st<_T, _rows, _cols, _swizzle, _swizzle_bytes> [with _T=kittens::bf16, _rows=64, _cols=40, _swizzle=true, _swizzle_bytes=0]" at line 31 of attn.cu', ('64 x 40 of bf16', '16 elements'), True),
    Seen('thunderkittens, group load', 'include/ops/group/memory/tile/shared_to_register.cuh(17): error: static assertion failed with "Group load / store requires tile height to be a multiple of the RT height."', ('warps of the group',), True),
    Seen('thunderkittens, tensor', 'include/types/tensor/tensor.cuh(51): error: static assertion failed with "Tile allocation extends out of bounds of the tensor allocator!"', ('512 columns',), True),
    Seen('thunderkittens, warpgroup', 'include/ops/group/mma/warpgroup.cuh(14): error: static assertion failed with "Warpgroup (GROUP_WARPS=4) function called from a non-warpgroup group."', ('kittens::warpgroup::',), True),
    Seen('DeepGEMM recipe', "RuntimeError: Failed: Assertion error csrc/utils/layout.hpp:57 'Unknown recipe'", ('(1, 128, 128)', 'sm_120'), True),
    Seen('vllm 40987', 'RuntimeError: Assertion error (csrc/apis/attention.hpp:200): context_lens.is_contiguous()', ('context_lens.contiguous()',), True),
    Seen('DeepGEMM major', 'RuntimeError: Assertion error (csrc/apis/gemm.hpp:86): major_a == cute::UMMA::Major::K', ('must be K-major',), True),
    Seen('sglang 32386', 'deep_gemm/include/deep_gemm/impls/smxx_layout.cuh:131, condition: (values[j] & 0x807fffffu) == 0\nRuntimeError: CUDA driver error (csrc/jit/handle.hpp:154): 719 (CUDA_ERROR_LAUNCH_FAILED, unspecified launch failure)', ('power of two', 'torch.zeros'), True),
    Seen('flash 1290', 'RuntimeError: Only support head size 64, 128, and 256 for now', ('softmax_scale',), True),
    Seen('flash 265', 'RuntimeError: Expected q.stride(-1) == 1 to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)', ('q.contiguous()',), True),
    Seen('flash 1296', 'globalDim      (32,49152,16,1,1)\nglobalStrides  (4,128,6291456,100663296,0)\nboxDim         (32,384,1,1,1)\nelementStrides (1,1,1,1,1)\ninterleave     0\nswizzle        3\nl2Promotion    2\noobFill        0\nError: Failed to initialize the TMA descriptor 1', ('uint32', '384 elements'), True),
    Seen('dtensor, partial', 'RuntimeError: Can not redistribute from Shard(dim=0) to Partial(sum), redistributing to Partial is for internal use only!', ("can't become Partial", 'dtensor.from_local'), True),
    Seen('torchtitan 875', 'RuntimeError: aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators!', ('distribute_tensor(x, mesh, [replicate()])',), True),
    Seen('torchtitan 3753', 'RuntimeError: aten.scatter_.value: in-place operations that require placement changes are not supported. The input has placement (Shard(dim=1),), but no valid strategy preserves this placement.', ("can't change a placement", 'local_map'), True),
    Seen('pytorch 165600', "RuntimeError: ('Attempted to flatten multiple dimensions, with dimension 1 being sharded. ', 'It cannot be performed without redistribution, which is disallowed by the current operator.')", ('not the first of the flattened dimensions', '_stridedshard'), True),
    Seen('pytorch 179509', 'RuntimeError: output dimension 0 (size 16) is not evenly divisible by mesh dimension 0 (size 6)', ('6 ranks',), True),
    Seen('dtensor, strided', 'NotImplementedError: Redistribution of _StridedShard placement is only supported for _StridedShard that can be converted to ordered Shard placements. Full _StridedShard redistribution support is not yet implemented.', ('cute_py.mesh.redistribute',), True),
    Seen('pytorch 136946', '[rank0]: NotImplementedError: Operator aten.eye.m_out does not have a sharding strategy registered.', ('register_sharding',), True),
    Seen('torchtitan 3753b', 'ValueError: GroupedExperts.num_local_tokens_per_expert_E: input DTensor has placements (Replicate(),), but in_src_shardings expects (Partial(sum),).', ("can't become Partial",), True),
    Seen('pytorch 170604', 'RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: File "bug.py", line 7, in my_model\n    y = torch.matmul(x, x). To prevent overwriting, clone the tensor outside of torch.compile() or call torch.compiler.cudagraph_mark_step_begin() before each model invocation.', ('y.clone()',), True),
    Seen('pytorch 87794', 'RuntimeError: CUDA error: operation not permitted when stream is capturing', ("a graph can't record",), True),
    Seen('nccl 1788', "[1] transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot be performed in the present state'", ('ncclmemalloc', 'nccl_nvls_enable=0'), True),
    Seen('nccl 1584', "transport/nvls.cc:580 NCCL WARN Cuda failure 1 'invalid argument'\ntransport/nvls.cc:703 NCCL WARN rank 0 failed to NVLS register sendbuff 0x78c800000000 sendbuffSize 1073741824 recvbuff 0x78c800000000 recvbuffSize 1073741824", ('tensor maps are not the cause',), True),
    Seen('vllm 54626', 'File "pynccl.py", line 417, in register_comm_window_raw\n    return self.nccl.ncclCommWindowRegister(self.comm, buffer_type(ptr), size, 1)\nRuntimeError: NCCL error: unhandled cuda error', ('before the capture begins',), True),
    Seen('vllm 25937', 'File "torch/distributed/_symmetric_memory/__init__.py", line 1711, in rendezvous\n    return _SymmetricMemory.rendezvous(tensor, group_name)\nRuntimeError: CUDA driver error: invalid argument', ('torch_symm_mem_disable_multicast=1',), True),
    Seen('nccl 2331', 'NCCL WARN Allocation failed. No suitable space found to accommodate size=0x2171600000 within limit=0x2d00000000\nNCCL INFO nccl/src/dev_runtime.cc:602 (symMemoryObtain) -> 3', ('register each allocation once',), True),
    Seen('cubecl 788', 'Unable to launch matmul because the config is invalid: "This algorithm needs 40960 shared memory bytes but hardware limit is 32768. "', ('40960 bytes of shared memory',), True),
)  # fmt: skip
"""Where no number of a thread is given, the message is that of the program's sources."""

_IR: Final = """\
DSLRuntimeError
error[INTERNAL]: The compiler could not build valid IR for this code.
  error: IR verification failed: error: unknown: """

_GEMM: Final = """\
error: unknown: 'cute.gemm' op layoutA, layoutB and layoutD fail to form a gemm. A: (1,1):(0,0), B: (1,2):(0,512), D: ((2,2,8),1,1):((1,2,4),0,0)
 note: unknown: see current operation: "cute.gemm"(%13, %77) : (!cute.memref<f32, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">) -> ()"""

_TMEM_COPY: Final = """\
Tiled Copy
  Tiler MN:        ((4,32):(32,1),32:1)
  TV Layout tiled: ((32,4),(32,32)):((0,1),(128,4))
Copy Atom
  ThrID:           32:1
  TV Layout Src:   (32,1024):(0,1)
  TV Layout Dst:   (32,32):(32,1)
  Value type:      f32"""

_WGMMA: Final = """\
tiled_mma = {} Tiled MMA
  Thr Layout VMNK: (128,1,1,1):(1,0,0,0)
  Permutation MNK: (_,_,_)
MMA Atom
  ThrID:           128:1
  Shape MNK:       (64,64,16)
  TV Layout A:     (128,(64,16)):(0,(1,64))
  TV Layout B:     (128,(64,16)):(0,(1,64))
  TV Layout C:     ((4,8,4),(2,2,8)):((128,1,16),(64,8,512))"""

_OF_CUTE: Final[tuple[Seen, ...]] = (
    Seen("CuTe DSL 4.8, ldmatrix", _IR + "'cute.copy' op src ptr alignment (16 bits) does not\n         meet requirement (128 bits) of atom '!cute_nvgpu.atom.ldsm<val_type = f16, mode =\n         <\"(8,8)\">, sz_pattern = u16, num_matrices = 4, n>'", ("make each row 16 contiguous bytes", "transpose=true"), True),
    Seen("CuTe DSL 4.8, cp.async", _IR + "'cute.copy' op src ptr alignment (64 bits) does not\n         meet requirement (128 bits) of atom '!cute_nvgpu.atom.simt_async_copy<f32, cache = always,\n         128 b>'", ("num_bits_per_copy=64", "assumed_align=16"), True),
    Seen("cutlass 2392", "MLIRError: Verification failed:\nerror: \"k\"(\"k.py\":35:0): 'cute.copy' op src expects global based memref, but got generic\n note: \"k\"(\"k.py\":35:0): see current operation: \"cute.copy\"(%81, %67, %71) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !cute.memref<f32, generic, \"(8,2):(65536,32)\">) -> ()", ("must be in global memory", "host memory", "addressspace.gmem"), True),
    Seen("CuTe DSL 4.8, cp_size", _IR + "'cute.copy' op\n         '!cute_nvgpu.atom.simt_async_copy<bf16, cache = always, 16 b>' 'cp_size' only supports (32,\n         64, 128), but got 16.", ("4, 8 or 16 bytes, not 16 bits",), True),
    Seen("CuTe DSL 4.8, ranks", "error: unknown: 'cute.copy' op `src.rank() = 2` != `dst.rank() = 1`\n note: unknown: see current operation: \"cute.copy\"(%25) : (!cute.memref<f32, rmem, align<32>, \"(32):(1)\">) -> ()", ("the source has 2 modes and the destination 1", "make_fragment_like"), True),
    Seen("CuTe DSL 4.8, width", "TypeError: `copy` currently only supports equal source and destination element type bit width", ("does not convert", ".to("), True),
    Seen("CuTe DSL 4.8, gemm", _GEMM, ("along n, 2 of b and 1 of d", "partition_shape_c"), True),
    Seen("cutlass 3290", "'cute.gemm' op invalid layout of A/B/D. A: (1,1):(0,0), B: (1,1):(0,0), D:((2,2),1,1):((1,2),0,0)", ("the numbers of atoms agree", "newer nvidia-cutlass-dsl"), True),
    Seen("CuTe DSL 4.8, slices", "ValueError: `c` must have rank <= 2 when `a` has rank 1", ("slice only the mode of K",), True),
    Seen("CuTe DSL 4.8, gmma", "CompilerDiagnosticError error: compiler pass failed\n  error: unknown: failed to legalize operation 'cute_nvgpu.make_gmma_smem_desc' that was explicitly\n         marked illegal: %39 = \"cute_nvgpu.make_gmma_smem_desc\"(%37) <{layout =\n         #cute.layout<\"((64,16),1,4):((64,1),0,16)\">}>", ("canonical", "tile_to_shape of a layout atom"), True),
    Seen("CuTe DSL 4.8, N", "DSLUserCodeError\nerror: expects the N-mode to satisfy 8 <= N <= 256 and N % 8 == 0. but got 12", ("n = 16",), True),
    Seen("CuTe DSL 4.8, M", "DSLUserCodeError\nerror: expects the M-mode to be 64 or 128, but got 96", ("m = 128", "two CTAs 128 or 256"), True),
    Seen("CuTe DSL 4.8, K", "DSLUserCodeError\nerror: expects the instruction extent in the K-mode to be 16, but got 32", ("32 bytes", "2 instructions"), True),
    Seen("CuTe DSL 4.8, type", "DSLUserCodeError\nerror: expects the 'ab_dtype' Op parameter to be one of Float16 or BFloat16", ("no form with this type", "mmafp8op"), True),
    Seen("CuTe DSL 4.8, tcgen05.ld", "DSLUserCodeError\nerror: x64 and x128 repetition is not supported", ("128 registers", "x32 with 16x256b"), True),
    Seen("cutlass 2802", "cutlass.cute.nvgpu.common.OpError: OpError: expects arch to be one of ['sm_100a', 'sm_100f'], but got sm_121a\nError Code: MmaF16BF16Op error", ("sm_121 does not have", "dgx spark", "mmasm120blockscaledop"), True),
    Seen("CuTe DSL 4.8, target", "error: expects arch to be one of [base_dsl.Arch.sm_100a, base_dsl.Arch.sm_103a], but got sm_90a", ("cute_dsl_arch",), True),
    Seen("CuTe DSL 4.8, coordinate", "MLIRError: Operation creation failed:\nerror: unknown: expects `coord` and shape of view are weakly congruent, but got '!cute.layout<\"((8192,1),64,2,4):((1@1,0),1@0,128@1,64@0)\">', '!cute.coord<\"(_,0,0)\">'", ("4 modes", "3 entries", "group_modes(x, 0, 2)"), True),
    Seen("CuTe DSL 4.8, tiles", "error: unknown: expects smem and gmem have the same size in the first rank, but got smemShape: (((8,16),(64,1))) and gmemShape: ((64,64),4,4)", ("8192 elements in shared memory, but 4096", "local_tile"), True),
    Seen("CuTe DSL 4.8, V-map", "error: unknown: expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got '!cute.composed_layout<\"S<3,4,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))\">' and '!cute.layout<\"(64,64):(1@0,1@1)\">'", ("(128, 64) elements by mode", "a tiler of (128, 64)"), True),
    Seen("CuTe DSL 4.8, barrier", "ValueError: expects a pointer to an mbarrier to be provided via the tma_bar_ptr kw argument", ("tma_bar_ptr=", "stores need neither"), True),
    Seen("cutlass 3050", "error: unable to compute the following composition: '!cute.layout<\"(2,3):(4,1)\">' o '!cute.layout<\"(3,4):(3,1)\">'", ("stride divisibility condition", "_3 of the right layout"), True),
    Seen("cutlass 3470", "MLIRError: Operation creation failed:\nerror: unknown: unable to compute the following composition: '!cute.layout<\"(4096,8192):(1,4096)\">' o '!cute.layout<\"(32,?,8,128):(1@0,8@1,1@1,32@0)\">'", ("must be static",), True),
    Seen("CuTe DSL 4.8, product", "error: unknown: unable to compute product with '!cute.layout<\"(4,4):(1,8)\">' and '!cute.layout<\"(3,2):(1,3)\">'", ("shape divisibility condition",), True),
    Seen("cutlass 3471", "error: unknown: expects an input with static shape, but got '!cute.layout<\"(16,?):(1,16)\">'", ("only at run time",), True),
    Seen("CuTe DSL 4.8, partition_shape_C", "error: unknown: failed to partition `input` '!cute.shape<\"(96,128)\">' with `tiled_mma`", ("does not divide the shape (96,128)",), True),
    Seen("CuTe DSL 4.8, congruent", "ValueError: shape and stride must be congruent", ("each size needs one stride",), True),
    Seen("cutlass 2673", "RuntimeError: Expected strides[leading_dim] == 1, but got 131072.", ("not to one of size 1",), True),
    Seen("cutlass 3031", "shape=(32, 1) stride=(1, 1)\nRuntimeError: Can't decude the leading dimension from layout, please specify the leading_dim explicitly.", ("more than one mode, has stride 1", "leading_dim=k"), True),
    Seen("cutlass 2715", "RuntimeError: The stride_order is not consistent with the layout", ("largest stride to the smallest", "x.dim_order()"), True),
    Seen("CuTe DSL 4.8, divisibility", "RuntimeError: The shape(30) of mode(0) is not divisible by the divisibility(16).", ("divisibility=2", "pad the mode to 32"), True),
    Seen("cutlass 2676", "DSLRuntimeError: Unable to convert dynamic Boolean value to bool at compile time.", ("const_expr",), True),
    Seen("cutlass 2531", "ValueError: unable to convert [0, 1, 2] in type <class 'list'> to Numeric", ("assigns a list", "range_constexpr"), True),
    Seen("cutlass 2532", "MLIRError: Verification failed:\nerror: unknown: operand #0 does not dominate this use\n note: unknown: see current operation: %622 = \"arith.addf\"(%737, %621) : (f32, f32) -> f32", ("assign the variable before the branch or loop",), True),
    Seen("flash-attention 2439", "error: failed to legalize operation 'cute_nvgpu.atom.make_tmem_copy' that was explicitly marked illegal", ("no code for cute_nvgpu.atom.make_tmem_copy", "cute_dsl_arch"), True),
    Seen("cutlass 3329", "JIT session error: Symbols not found: [ cuda_dialect_unload_library_once, _cuKernelGetAttribute, _cudaLaunchKernelEx ]", ("cute_dsl_libs",), True),
    Seen("cutlass 2854", "ModuleNotFoundError: No module named 'cutlass._mlir'", ("nvidia-cutlass is a different package", "pip install nvidia-cutlass-dsl"), True),
    Seen("CuTe DSL 4.8, tcgen05.ld print", _TMEM_COPY, ("each warp as a whole reads or writes 1024 values of tensor memory",), False),
    Seen("cutlass 2431", _WGMMA, ("64x16, 1024 values of shared or tensor memory, by all threads together", "64x64, 32 values a thread"), False),
    Seen("cutlass 2364", "cute.arch.mbarrier_init_tx_bytes(mbar, 1)\nunspecified launch failure", ("mbarrier_init_arrive_cnt must come first",), None),
    Seen("cutlass 3643", "========= Barrier error detected. Missing wait.\n=========     at kernel+0x4d0 in k.py:210", ("before a thread has waited for the phase", "peer"), False),
    Seen("cutlass 2348", "========= Invalid __global__ read of size 4 bytes\n=========     at void cutlass::Kernel<cutlass::gemm::kernel::GemmGrouped<...>>\n=========     Address 0x7f2ae4d54010 is out of bounds", ("not of tma", "predicate at the edges"), False),
    Seen("cccl 1903", "========= Error: Race reported between Write access at void cub::BlockStore<float, (int)64>::Store+0xa70 in block_store.cuh:980\n=========     and Read access at void cub::BlockStore<float, (int)64>::Store+0xb10 in block_store.cuh:990 [16 hazards]", ("nothing orders the accesses", "__syncwarp()"), True),
    Seen("csarofeen 2317", "ptxas info    : Function properties for kernel1\nptxas         .     224 bytes stack frame, 284 bytes spill stores, 532 bytes spill loads\nptxas info    : Used 24 registers, 16 bytes smem, 480 bytes cmem[0]", ("284 bytes of stores and 532 of loads", "spills", "at most 1024 threads in a block"), False),
    Seen("Enzyme 428", "ptxas info    : Function properties for k\n    208 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 96 registers, 64000 bytes smem, 600 bytes cmem[0]", ("no register is spilled", "at most 640 threads"), False),
    Seen("cutlass 724", "the kernel will use 248 registers, and 512 threads per block\nCUDA error: too many resources requested for launch", ("126976: use at most 256 threads",), None),
    Seen("q8_kernels 12", "ptxas k.ptx, line 1279; error   : Unexpected instruction types specified for 'mma'", ("cuda 12.4", "f16 with f16"), True),
    Seen("cutlass 1499", "error: static assertion failed due to requirement 'C<3>::value % C<2>::value == 0 || C<2>::value % C<3>::value == 0': Static shape_div failure", ("3 and 2: neither divides the other", "divided mode by mode"), True),
    Seen("LTX-Video-Q8 7", "Assertion `0 && \"Attempting to use SM89_16x8x32_F32E4M3E4M3F32_TN without CUTE_ARCH_MMA_F16_SM89_ENABLED\"` failed.", ("-arch=sm_89",), True),
    Seen("cutlass 1884", "sm90_epilogue_array_tma_warpspecialized.hpp:432    CAN IMPLEMENT: Problem Size doesn't meet the minimum alignment requirements for TMA.\nGot cutlass error: Invalid status at: 670", ("multiple of 8 elements of 16 bits", "nosmemwarpspecialized"), True),
    Seen("cutlass 3144", "MoE grouped GEMM requires 102400 bytes shared memory but device supports 101376", ("1024 bytes less", "stagecount<n>"), True),
    Seen("cutlass 2692", "    Total kernel SharedStorage size: 87040 bytes (85 KB)\nStatus::kErrorInternal", ("initialize() or the launch failed",), True),
    Seen("cutlass 2198", "sm90_visitor_tma_warpspecialized.hpp(1): error: calling a constexpr __host__ function(\"forward\") from a __device__ function(\"ConsumerStoreCallbacks\") is not allowed. The experimental flag '--expt-relaxed-constexpr' can be used to allow this.", ("without __device__",), True),
    Seen("cutlass 1997", "error: calling a __device__ function(\"cute::cast_smem_ptr_to_uint(const void *)\") from a __host__ __device__ function(\"make_gmma_desc\") is not allowed", ("exists only on the device",), True),
    Seen("exui 66", "cuda_fp16.hpp(2044): error: asm operand type size(8) does not match type/size implied by constraint 'r'", ("__cvta_generic_to_shared", "targets 32 bits"), True),
    Seen("cutlass 3646", "sm90_epilogue_tma_warpspecialized.hpp(165): error: no instance of overloaded function \"tile_to_shape\" matches the argument list\n            argument types are: (void, cute::tuple<cute::_128, cute::_8, cute::C<1>>, cute::tuple<cute::_1, cute::_2, cute::_3>)", ("found no layout atom",), True),
    Seen("cutlass 529", "integer_subbyte.h(39): catastrophic error: cannot open source file \"cuda/std/cstdint\"", ("include/cccl",), True),
    Seen("cutlass 3110", "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", ("the NVIDIA driver, which installs it",), True),
    Seen("cutlass 2804", "- Error name: (<cudaError_t.cudaSuccess: 0>, b'cudaErrorInsufficientDriver')\n- Error code: 35", ("the driver is older",), True),
    Seen("FlashRT 21", "RuntimeError: cuBLAS error at gemm_runner.cu:125 code=15", ("cublas_status_not_supported", "transpose A and not B"), True),
    Seen("cudnn-frontend 75", "cudnn._compiled_module.cudnnGraphNotSupportedError: [cudnn_frontend] Error: No execution plans built successfully.", ("no engine", "16-byte alignment"), True),
)  # fmt: skip

SEEN: Final[tuple[Seen, ...]] = (
    Seen("flashinfer 2232", kernels("invalid argument", 4, "64 16 1 7721128 7149852580857340533", "128 2 4096 337", "64 16 1 1 1024"), ("bfloat16", "2 bytes", "multiple of 16", "(64,16,1,7721128)"), True),
    Seen("flashinfer 2274", kernels("an illegal memory access was encountered", 4, "128 7 2 24 1", "256 1792 3584 1041", "64 8 1 1 3584"), ("break no rule", "earlier kernel", "(128,7,2,24)"), False),
    Seen("sglang 13775", kernels("invalid argument", 4, "192 131072 128 1 3806834432", "49152 384 2305843007066210304 273", "64 128 1 1 49152"), ("2**40", "2305843007066210304"), True),
    Seen("SoulX-FlashTalk 9", _LOG.replace("715", "999").replace("(4096,1216,1,1,1)", "(128,257,40,1,1)").replace("(1,4096,0,0,0)", "(1,5120,128,0,0)"), ("break no rule", "cuda_error_unknown"), False),
    Seen("vllm 17442", quoted("> "), ("break no rule", "715", "earlier kernel"), False),
    Seen("xinfer 302", quoted("vllm-rs-svc1  | "), ("break no rule", "(4096,1216,1)", "earlier kernel"), False),
    Seen("sglang 6590", "Exception: Failed to encode tensor map: 700", ("700", "earlier kernel"), None),
    Seen("gpu-mode, thunderkittens", "terminate called after throwing an instance of 'std::runtime_error'\n  what():  Error in tile TMA descriptor creation: unspecified launch failure", ("719", "earlier"), None),
    Seen("thunderkittens, form", "Error in tile TMA descriptor creation: invalid argument", ("cuda_error_invalid_value", "16"), None),
    Seen("DeepGEMM 140", "RuntimeError: Failed: Assertion error csrc/jit_kernels/impls/smxx_layout.hpp:136 'mn % 4 == 0 and num_groups == 1'", ("multiple of 4", "16 bytes"), True),
    Seen("sgl DeepGEMM 39", "Making TMA desc: global memory: 1024 67968, shared memory: 128 96, outer stride: 512, swizzle: 128 (base: 0), elem size: 1, pointer: 134754319020544", ("128b", "(1024,67968)", "512", hex(134754319020544)), False),
    Seen("triton 9439", "ValueError: CUtensorMap must be aligned to 128B, but got (&map) mod 128 = 64", ("128", "alignas"), True),
    Seen("triton 8657", "triton.runtime.interpreter.InterpreterError: AssertionError('stride must be 16-byte aligned')", ("multiple of 16", "bytes"), True),
    Seen("triton 8657, second", "AssertionError: block offset start must be 16-byte aligned", ("16", "coordinate"), True),
    Seen("triton 9719", '  File "semantic.py", line 1935, in make_tensor_descriptor\n    assert isinstance(base.dtype, tl.pointer_type)\nAssertionError\ntriton.compiler.errors.CompilationError: at 4:11', ("takes a pointer",), True),
    Seen("triton 10931", "ValueError: strides must be 16-byte aligned: stride 0 is 511 elements of bf16 = 1022 bytes", ("multiple of 16",), True),
    Seen("triton, descriptor_store", _STORE, ("128x64", "64x64", "same shape"), True),
    Seen("triton 4731", "LLVM ERROR: Illegal shared layout; expected shape to be at least [8, 64], shape: [4, 64]", ("8", "4", "rows"), True),
    Seen("triton, tensor memory", "triton.runtime.errors.OutOfResources: out of resource: tensor memory, Required: 768, Hardware limit: 512. Reducing block sizes or `num_stages` may help.", ("768", "512", "columns"), True),
    Seen("triton 2622", _RANK, ("rank 2", "rank 1", "128 x 1"), True),
    Seen("triton, slice", _SLICE, ("dimension 1", "32"), None),
    Seen("gluon, slice", "SliceLayout(dim=0, parent=BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0], cga_layout=[]))", ("dimension 0", "4"), None),
    Seen("triton 9557, form", _TMEM, ("128 lanes", "256 columns", "tensor memory"), None),
    Seen("triton, unpacked", "#tmem = #ttng.tensor_memory_encoding<blockM = 64, blockN = 128, unpacked = true>", ("64", "128", "tensor memory"), None),
    Seen("triton, two CTAs", "#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, CTASplitM = 2, twoCTAs = true>", ("two ctas", "128"), None),
    Seen("gluon, tensor memory", "TensorMemoryLayout(block=(128, 64), col_stride=2, cta_split_num=None, two_ctas=False)", ("128 lanes", "64", "tensor memory"), None),
    Seen("gluon, padded", "PaddedSharedLayout(interval_padding_pairs=[[512, 16]], offset_bases=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [0, 256], [1, 0], [2, 0]], cga_layout=[], shape=[4, 512])", ("512", "16", "528"), None),
    Seen("triton, padded", "#shared = #ttg.padded_shared<[256:+8] {order = [1, 0], shape = [64, 256]}>", ("256", "8", "264"), None),
    Seen("gluon, wgmma", "NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16], cga_layout=[])", ("wgmma", "64 x 64"), None),
    Seen("triton, old shared", "#shared = #triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], hasLeadingOffset = true}>", ("128b",), None),
    Seen("triton, a dot operand", "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>\n#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>", ("mma.sync", "operand a", "16 x 8"), None),
    Seen("cutlass 2345", _DSL, ("1024", "128b", "8192", "coordinates"), None),
    Seen("cutlass 2570", _RAW, ("shared memory", "0x400", "f16", "128 x 32", "1024"), None),
    Seen("cutlass 2629", "tensor(raw_ptr(0x0000000000000400: f16, smem, align<1024>) o (8,8):(8,1), data=\n       [[", ("64 elements", "shared memory", "128 bytes in all"), None),
    Seen("cutlass 3078", "error: failed to legalize operation 'cute_nvgpu.make_gmma_smem_desc' that was explicitly marked illegal", ("canonical", "make_smem_layout"), True),
    Seen("cutlass 2507", "DSLCudaRuntimeError: DSLCudaRuntimeError: Unknown CUDA error\nError Code: 201\n\n- Error name: CUDA_ERROR_INVALID_CONTEXT", ("context", "cudafree"), None),
    Seen("cutlass 3646", _SELECTOR, ("16", "8", "blk_k"), True),
    Seen("cutlass 2545", "the result is ((_4, _8), _11):((_1, _4), _32)", ("352 elements",), None),
    Seen("cutlass 3254", "Tiled MMA\n  Thr Layout VMNK: (128,1,1,1):(1,0,0,0)\n  Permutation MNK: (_,_,_)\nMMA Atom\n  ThrID:           128:1\n  Shape MNK:       (64,8,16)\n  TV Layout A:     (128,(64,16)):(0,(1,64))\n  TV Layout B:     (128,(8,16)):(0,(1,8))\n  TV Layout C:     ((4,8,4),(2,2)):((128,1,16),(64,8))", ("64x8x16", "128 threads"), None),
    Seen("cutlass 2381", "TmaA\nTiledCopy\n  Tiler_MN:       (_128,_64)\n  TiledLayout_TV: (_2,(((_64,_128),_1))):(_64,(((_128,_1),_0)))\nCopy_Atom\n  ThrID:        _1:_0\n  ValLayoutSrc: (_1,_8192):(_0,_1)\n  ValLayoutDst: (_1,_8192):(_0,_1)\n  ValLayoutRef: (_1,_8192):(_0,_1)\n  ValueType:    16b", ("8192", "16384 bytes", "a tma copy", "2 ctas share"), None),
    Seen("cutlass 1817", "ArithTuple(_0,_0,_0,_0) o (_128,_64,1,3,1):(_1@0,_1@1,_128@0,_64@1,_1@2)", ("coordinates", "128 x 64"), None),
    Seen("print_tensor of coordinates", _IDENTITY, ("coordinates", "4 rows of 2"), None),
    Seen("applied-ai 38", "python: /opt/cutlass/include/cute/atom/copy_traits_sm90_tma.hpp:980: auto cute::detail::make_tma_copy_desc(...): Assertion `(gmem_prob_stride[1] & 0b1111) == 0' failed.", ("globalstrides[0]", "multiple of 16"), True),
    Seen("torch 2.12, sm_103", "ERROR : Arch conditional MMA instruction used without targeting appropriate compute capability. Aborting.", ("sm_90a", "target"), True),
    Seen("copy_sm90_desc", "copy_sm90_desc.hpp:315: void cute::prefetch_tma_descriptor(const TmaDescriptor *): block: [0,0,0], thread: [0,0,0] Assertion `0 && \"Trying to use TMA Descriptor Prefetch without CUTE_ARCH_TMA_SM90_ENABLED.\"` failed.", ("sm_90a",), True),
    Seen("a link error", "/usr/bin/ld: main.o: in function `main':\nmain.cu:(.text+0x1c2): undefined reference to `cuTensorMapEncodeTiled'\ncollect2: error: ld returned 1 exit status", ("-lcuda", "cudagetdriverentrypoint"), True),
    Seen("vllm, an import", "ImportError: /usr/lib/python3/vllm/_C.abi3.so: undefined symbol: cuTensorMapEncodeTiled", ("-lcuda", "driver"), True),
    Seen("cccl 405", "cuda/__barrier/barrier_arrive_tx.h:48: block: [0,0,0], thread: [0,0,0] Assertion `Barrier must be located in local shared memory.` failed.", ("__shared__", "barrier"), True),
    Seen("cccl, expect_tx", "barrier_expect_tx.h:44: Assertion `Transaction count update cannot exceed 2^20 - 1.` failed.", ("1048575",), True),
    Seen("cccl, alignment", 'error: static assertion failed with "mempcy_async_tx expects arguments to be at least 16 byte aligned."', ("16", "aligned_size_t"), True),
    Seen("jax, Triton's maps", "jaxlib.XlaRuntimeError: INTERNAL: Failed to encode TMA descriptor: invalid argument", ("cuda_error_invalid_value",), None),
    Seen("vllm, CUTLASS's status", "RuntimeError: Error Misaligned Operand", ("16 bytes", "alignment"), True),
    Seen("CUTLASS's example", "Got cutlass error: Error Internal at: 483", ("tma descriptor", "shared memory"), None),
    Seen("scaled_mm", "RuntimeError: Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: (17x40).", ("16", "40", "48"), True),
    Seen("scaled_mm, B", "RuntimeError: mat2 shape (304x100) must be divisible by 16", ("304 x 112",), True),
    Seen("scaled_mm, order", "RuntimeError: Only multiplication of row-major and column-major matrices is supported by cuBLASLt", ("w.t()",), True),
    Seen("scaled_mm, meta", "RuntimeError: Expected self.size(1) to be divisible by 16, but got self.size(1)=33", ("33 elements", "48 elements"), True),
    Seen("scaled_mm, meta, B", "RuntimeError: Expected both dimensions of mat2 to be divisible by 16 but got torch.Size([33, 48])", ("33 x 48", "48 x 48 elements"), True),
    Seen("scaled_mm, rows of A", "RuntimeError: self must be row_major, got stride (1, 1024)", ("row-major", "self.contiguous()"), True),
    Seen("scaled_mm, columns of B", "RuntimeError: mat2 must be col_major, got stride (2048, 1)", ("column-major", "w.t()"), True),
    Seen("scaled_mm, RowWise only", "RuntimeError: For RowWise scaling, scale_a should be (1024, 1) and scale_b should be (1, 2048). Got scale_a.size()=(1024, 1) and scale_b.size()=(2048, 1)", ("scale_a (1024, 1) fits rowwise", "scale_b.t()"), True),
    Seen("scaled_mm, dimensions", "RuntimeError: For non-TensorWise scaling, scale tensors must be 2-dimensional, but got scale_a.dim()=1 and scale_b.dim()=2", ("scale_a.reshape(-1, 1)",), None),
    Seen("scaled_mm, e5m2", "ValueError: Multiplication of two Float8_e5m2 matrices is not supported", ("not e5m2 by e5m2", "use e4m3"), None),
    Seen("scaled_mm, B in e5m2", "RuntimeError: Expected b.dtype() == at::kFloat8_e4m3fn to be true, but got false.", ("b must be e4m3", "cast b"), None),
    Seen("scaled_mm, a type", "RuntimeError: Expected mat2 to be Float8 or Float4_x2 matrix got BFloat16", ("mat2 has elements of type bfloat16", "formats.fp8('row')"), None),
    Seen("scaled_mm, two types", "RuntimeError: Expected both inputs to be fp8 types but got self.dtype=torch.float8_e4m3fn and mat2.dtype=torch.bfloat16", ("torch.bfloat16", "both must be quantised"), None),
    Seen("scaled_mm, output", "RuntimeError: Only bf16 high precision output types are supported for row-wise scaling.", ("out_dtype=torch.bfloat16",), None),
    Seen("scaled_mm, GPU", "RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+", ("no fp8 tensor cores", "dequantise"), None),
    Seen("scaled_mm, fast_accum", "RuntimeError: `use_fast_accum` is not supported when `mat1` or `mat2` tensors have the `Float4_e2m1fn_x2` dtype.", ("use_fast_accum=false",), None),
    Seen("scaled_mm, scales' type", "RuntimeError: Both scale_a and scale_b must be float (fp32) tensors.", ("float32 scales only",), None),
    Seen("scaled_mm, earlier rows", "RuntimeError: For row-wise scaling, scale_a must be size 1024 but got 1 and scale_b must be size 2048 but got 1", ("scale_a has 1 scales and must have 1024", "formats.fp8('row')"), None),
    Seen("scaled_mm, NVFP4", "RuntimeError: for single-level NV scaling, scale_a must have 4096 (got: 3200)", ("3200 scales", "formats.nvfp4(scales='32_4_4')"), None),
    Seen("scaled_mm, bias", "RuntimeError: Bias is not supported when out_dtype is set to Float32", ("out_dtype=torch.bfloat16",), True),
    Seen("matmul of fp8", "NotImplementedError: \"addmm_cuda\" not implemented for 'Float8_e4m3fn'", ("no kernel for fp8", "scaled_mm_operands"), None),
    Seen("view", "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.", ("coalesce", "x.reshape(...)"), None),
    Seen("an old GPU", "AssertionError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')", ("sm_89", "float8_e5m2"), None),
    Seen("a product", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (128x64 and 256x64)", ("64 columns", "256 rows", "mat2.t()"), True),
    Seen("a size after another", "RuntimeError: Expected k to be divisible by 32, but got mat1 shape: (100x304), k: 304.", ("k = 304", "320"), True),
    Seen("old driver", "RuntimeError: Failed to retrieve cuTensorMapEncodeTiled", ("encodetiled", "cuda 12"), None),
    *_MORE,
    *_FRONT_ENDS,
    *_OF_CUTE,
)  # fmt: skip
