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
)  # fmt: skip
