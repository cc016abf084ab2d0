# ruff: noqa: E501, the texts of programs keep their lines
"""Pastes of the kinds that users have, made anew: other numbers, other orders and separators, mixed with other lines.

Each is (name, text, what any right answer says). What is said is computed here, or follows from the numbers by hand.
"""

from __future__ import annotations

import random

import cute_py as cute
from cute_py.tma import TensorMapIm2col, TensorMapTiled

Variant = tuple[str, str, tuple[str, ...]]
SOUND = "break no rule"


def cutlass(
    kind: int,
    dims: list[int],
    strides: list[int],
    box: list[int],
    swizzle: int = 3,
    code: int = 1,
    rank: int | None = None,
) -> str:
    """What CUTLASS prints: strides with that of mode 0, lists of five."""

    def five(values: list[int], fill: int) -> str:
        return f"({','.join(map(str, [*values, *[fill] * (5 - len(values))]))})"

    return "\n".join(
        [
            "TMA Desc Addr:   0x7ffd2a40be80",
            f"format         {kind}",
            f"dim            {rank or len(dims)}",
            "gmem_address   0x7fa4c8000000",
            f"globalDim      {five(dims, 1)}",
            f"globalStrides  {five(strides, 0)}",
            f"boxDim         {five(box, 1)}",
            "elementStrides (1,1,1,1,1)",
            "interleave     0",
            f"swizzle        {swizzle}",
            "l2Promotion    2",
            "oobFill        0",
            f"Error: Failed to initialize the TMA descriptor {code}",
        ]
    )


NOISE = "[rank0]: INFO 03-11 18:22:07 worker.py:91] step 12\nWARNING: lr (0.1) is high\n"
WIDE = TensorMapTiled(9, 0x7F0012345600, (3072, 777), (6144,), (64, 96), swizzle=3, l2_promotion=2)
DEEP = TensorMapTiled(0, 0x7F0000000400, (513, 40, 7), (528, 21120), (32, 20, 1), swizzle=1)
CONVOLUTION = TensorMapIm2col(
    6, 1 << 20, (64, 56, 58, 4), (128, 7168, 415744), (-1, -1), (-1, -1), 64, 128, (1, 1, 1, 1)
)


def words(request: TensorMapTiled | TensorMapIm2col, size: int = 8) -> list[int]:
    raw = cute.tma.encode(request)
    return [int.from_bytes(raw[i : i + size], "little") for i in range(0, 128, size)]


def xxd(raw: bytes) -> str:
    rows = [raw[i : i + 16] for i in range(0, 128, 16)]
    return "\n".join(
        f"{16 * i:08x}: {' '.join(row[j : j + 2].hex() for j in range(0, 16, 2))}" for i, row in enumerate(rows)
    )


def dumps() -> list[Variant]:
    """a: descriptors as CUTLASS prints them."""
    lower = cutlass(6, [1004, 64], [2, 2008], [64, 64])
    shuffled = lower.split("\n")
    random.Random(4).shuffle(shuffled)
    padded = NOISE + lower.replace("\n", "\r\n") + "\n" + NOISE
    twice = cutlass(9, [512, 64], [2, 1024], [64, 32]) + "\n" + cutlass(9, [500, 64], [2, 1000], [64, 32])
    return [
        ("stride of 2008", lower, ("2008", "multiple of 16", "1008")),
        ("the same in another order", "\n".join(shuffled), ("2008", "multiple of 16")),
        ("the same between other lines, from Windows", padded, ("2008", "1008")),
        ("two, of which one is sound", twice, ("1000 bytes", "1024", SOUND, "504 elements")),
        ("box above 256", cutlass(0, [4096, 4096], [1, 4096], [64, 512], 2), ("512", "256", "64b")),
        ("row beyond the span", cutlass(7, [256, 64], [4, 1024], [64, 8], 3), ("256 bytes", "128", "32")),
        ("row of 8 bytes", cutlass(6, [256, 64], [2, 512], [4, 8], 0), ("8 bytes", "multiple of 16")),
        ("a mode of size 0", cutlass(6, [256, 0], [2, 512], [64, 8]), ("globaldim[1] = 0", "float16")),
        (
            "sound, and refused",
            cutlass(11, [640, 3, 5], [4, 2560, 7680], [32, 3, 1]),
            ("tfloat32", SOUND, "check these"),
        ),
        ("sound, without a context", cutlass(0, [640, 3], [1, 640], [128, 3], code=201), (SOUND, "context")),
        ("a sticky error", cutlass(9, [640, 3], [2, 1280], [64, 3], code=700), (SOUND, "earlier kernel")),
        ("format 20", cutlass(20, [640, 3], [2, 1280], [64, 3]), ("20", "tensordatatype")),
        ("fp4 on sm_120", cutlass(14, [640, 128], [1, 320], [128, 3]), ("16u4_align16b", "sm_100")),
    ]


def arguments() -> list[Variant]:
    """f: arguments of the driver's functions in other forms."""
    packed = '["__tvm_tensormap_create_tiled", B_desc, 9, 3, B, 384, 1000, 6, 2, 768, 768000, 64, 100, 1, 1, 1, 1, 0, 3, 2, 0]'
    literal = (
        "CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, ptr, /*dim*/ {300, 64}, {1200}, "
        "{33, 8}, {1, 1}, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, "
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);"
    )
    named = (
        "uint64_t gdim[2] = {1000, 512};\nuint64_t gstride[1] = {1000 * sizeof(__half)};\nuint32_t box[2] = "
        "{64, 128};\n"
        "uint32_t es[2] = {1, 1};\nassert(cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, p, "
        "gdim, gstride, box,"
        " es, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,"
        " CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == 0);"
    )
    keywords = (
        "TMA args: data_type=BFLOAT16; global_address=0x1000010; global_dim=[256, 256]; global_strides=[512]; "
        "box_dim=[64, 64]; element_strides=[1, 1]; swizzle=B128"
    )
    deep = (
        "Making TMA desc: global memory: 7168 4096, shared memory: 128 64, outer stride: 7168, swizzle: 128, "
        "elem size: 1"
    )
    generated = (
        "\tcuuint64_t A_desc_globalDim[2]= {3004,16};\n\tcuuint64_t A_desc_globalStride[2]= {2,6008};\n"
        "\tcuuint32_t A_desc_boxDim[2]= {64,16};\n\tcuuint32_t A_desc_elementStrides[2]= {1,1};\n"
        "\tCUtensorMapDataType A_desc_type= (CUtensorMapDataType)9;"
    )
    return [
        ("TVM's packed call, sound", packed, ("bfloat16", "(384,1000,6)", "(64,100,1)", "128b", SOUND)),
        ("a call with literals", literal, ("132 bytes", "multiple of 16", "128b")),
        ("a call with variables", named, ("128 bytes", "64b", "at most 64")),
        (
            "short names",
            "create_desc: ptr=0x7f3000000000 dims=(4096, 4096) strides=(8192,) box=(64, 512) elem_size=2 swizzle=128B",
            ("float16", "512 elements", "8192", "(64, 256)"),
        ),
        (
            "short names, one a line",
            "map: type FLOAT32 rank 2\n size   [768, 1000]\n stride [3072]\n box    [64, 100]\n swizzle 3",
            ("float32", "256 bytes", "at most 128"),
        ),
        ("keywords", keywords, (SOUND, "bfloat16", "0x1000010")),
        ("DeepGEMM, sound", deep, ("7168", "128b", SOUND)),
        (
            "the same with a stride of elements",
            deep.replace("stride: 7168", "stride: 7169"),
            ("7169", "multiple of 16"),
        ),
        ("TileLang's generated source", generated, ("6008", "multiple of 16", "3008")),
        ("the repr of a request", repr(WIDE), ("(3072,777)", "(64,96)", SOUND)),
    ]


def maps() -> list[Variant]:
    """g: the bytes of a map in every form."""
    wide = ("bfloat16", "(3072,777)", "(64,96)", "128b")
    deep = ("uint8", "(513,40,7)", "(32,20,1)", "32b")
    raw, low = cute.tma.encode(WIDE), cute.tma.encode(DEEP)
    halves, quads = words(DEEP, 4), words(WIDE)
    gdb = "(gdb) x/16gx &desc\n" + "\n".join(
        f"0x7fffffffd{400 + 16 * i:03x}:\t0x{quads[2 * i]:016x}\t0x{quads[2 * i + 1]:016x}" for i in range(8)
    )
    return [
        ("C array of 64-bit words", "CUtensorMap m = {{" + ", ".join(f"0x{w:x}ull" for w in quads) + "}};", wide),
        ("32-bit words, one a line", "\n".join(f"desc32[{i}] = 0x{w:08x}" for i, w in enumerate(halves)), deep),
        ("32-bit words, separated by |", "tma map | " + " ".join(f"{w:08x}" for w in halves), deep),
        ("hexdump", f"$ xxd map.bin\n{xxd(raw)}\n$ ", wide),
        ("gdb", gdb, wide),
        ("bytes in decimal", f"desc.cpu() = tensor({list(low)}, dtype=torch.uint8)", deep),
        ("one run of digits", NOISE + raw.hex() + "\n" + NOISE, wide),
        ("a Python list of words", f"map.opaque = {quads}", wide),
        ("im2col", f"opaque = {words(CONVOLUTION)}", ("im2col", "64 channels", "128 pixels", "lower (-1,-1)")),
        ("zeros", "CUtensorMap desc = {0 <repeats 16 times>}", ("no map was encoded",)),
    ]


def prints() -> list[Variant]:
    """b: layouts, tensors and tiled operations."""
    mma = """TiledMMA
  ThrLayoutVMNK:  (_128,_2,_1,_1):(_1,_128,_0,_0)
  PermutationMNK: (_,_,_)
MMA_Atom
  ThrID:      _128:_1
  Shape_MNK:  (_64,_256,_16)
  LayoutA_TV: (_128,(_64,_16)):(_0,(_1,_64))
  LayoutB_TV: (_128,(_256,_16)):(_0,(_1,_256))
  LayoutC_TV: ((_4,_8,_4),(_2,_2,_32)):((_128,_1,_16),(_64,_8,_512))"""
    copy = """smem copy B:
TiledCopy
  Tiler_MN:       (_64,_32)
  TiledLayout_TV: ((_4,_32),_8):((_512,_1),_64)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
  ValLayoutDst: (_1,_8):(_0,_1)
  ValLayoutRef: (_1,_8):(_0,_1)
  ValueType:    8b"""
    lost = (
        "sA  : Sw<2,4,3>_smem_ptr[8b](0x7f2200000400) o (_64,_64):(_64,_1)\n"
        "sA2 : smem_ptr[8b](0x7f2200000400) o (_64,_64):(_64,_1)"
    )
    values = (
        "gC: gmem_ptr[16b](0x7f2200000400) o (_2,_3):(_3,_1):\n  5.00e-01  1.00e+00  1.50e+00\n  2.00e+00  "
        "2.50e+00  7.25e+00\n"
    )
    ldmatrix = "Copy_Atom\n  ThrID:        _32:_1\n  ValLayoutSrc: (_32,_8):(_8,_1)\n"
    ldmatrix += (
        "  ValLayoutDst: (_32,(_2,_4)):(_2,(_1,_64))\n  ValLayoutRef: (_32,(_2,_4)):(_2,(_1,_64))\n  ValueType:    16b"
    )
    of_dsl = cute.to_dsl(cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", (2, 4, 1)))
    copy_of_dsl = cute.to_dsl(
        cute.make_tiled_copy(
            cute.copy_atom("UniversalCopy<uint64_t>", "bfloat16"), cute.Layout((4, 8)), cute.Layout((4, 1))
        )
    )
    descriptor = cute.make_gmma_desc(
        "K", cute.make_tensor(cute.make_smem_ptr(4096, "half_t"), cute.gmma_layout("K_SW64", "half_t"))
    )
    grid = "(_3,_2):(_2,_1)\n      0    1 \n    +----+----+\n 0  |  0 |  1 |\n    +----+----+\n 1  |  2 |  3 |\n"
    grid += "    +----+----+\n 2  |  4 |  5 |\n    +----+----+\n"
    return [
        ("print_layout", grid, ("3 rows of 2", "6 elements")),
        ("ldmatrix", ldmatrix, ("sm75_u32x4_ldsm_n", "8 values of 16 bits")),
        ("CuTe DSL's tiled MMA", of_dsl, ("256 threads", "32x32x16", "sm80_16x8x16")),
        (
            "CuTe DSL's tiled copy",
            copy_of_dsl,
            ("32 threads", "4 values", "8 bytes per thread", "universalcopy<uint64_t>"),
        ),
        (
            "a descriptor",
            f"GmmaDescriptor: {descriptor}\n  start_addr :  0x0100\n  layout_type:  0x2 (B64)",
            ("4096 bytes", "b64", "wgmma"),
        ),
        ("a descriptor of tcgen05", "smem desc = 0x4000404000010040", ("tcgen05", "1024 bytes", "b128")),
        (
            "descriptors of tiles",
            "tCrA: GMMA::DescriptorIterator o (_1,_2,_4):(_0,_512,_2)",
            ("8192 bytes", "32 bytes"),
        ),
        ("tensor memory", "tmem_[32b](0x0000.0040) o ((_128,_64),_1):((_65536,_1),_0)", ("128 lanes", "64 columns")),
        ("wgmma, two warpgroups", mma, ("256 threads", "128x256x16")),
        ("a tiled copy below a label", copy, ("128 threads", "64x32", "8 bytes")),
        ("a swizzle that was lost", lost, ("lost the swizzle", "64b")),
        ("print_tensor of halves", values, ("2 rows of 3", "7.25", "global memory")),
        (
            "a swizzled layout",
            "layout: Sw<1,4,3> o smem_ptr[8b](unset) o (_64,_32):(_32,_1)\ndone",
            ("32b swizzle", "256 bytes"),
        ),
        (
            "elements that share offsets",
            "tiled = ((12,4),(2,3)):((_5,_1),(31,7))\n size=280",
            ("not as the text says", "288"),
        ),
        ("coordinates", "mA(0): ArithTuple(_0,32,_0) o (_128,_64,4):(_1@0,_1@1,_1@2)\nnext", ("32768 coordinates",)),
        ("a broadcast", "tCsA = smem_ptr[16b](0x7f00) o (_8,_4):(_0,_1)\nok", ("share", "4 offsets")),
    ]


def assertions() -> list[Variant]:
    """c: assertions in the output of compilers and programs."""
    gcc = """cute/layout.hpp: In instantiation of 'constexpr auto cute::composition(const cute::Layout<LShape, LStride>&, const \
cute::Layout<RShape, RStride>&) [with LShape = cute::tuple<cute::C<10>, cute::C<4> >; LStride = cute::tuple<cute::C<4>, \
cute::C<1> >; RShape = cute::C<4>; RStride = cute::C<5>]':
mine.cu:31:12:   required from here
cute/layout.hpp:1101:84: error: static assertion failed: Shape Divisibility Condition"""
    nvcc = """ninja: build stopped
/x/cutlass/include/cute/layout.hpp(1792): error: static assertion failed with "tile_to_shape: block shape does not divide \
the target shape."
          detected during:
            instantiation of "auto cute::tile_to_shape(const cute::Layout<Shape, Stride> &, const TrgShape &, const ModeOrder \
&) [with Shape=cute::tuple<cute::C<8>, cute::C<128>>, Stride=cute::tuple<cute::C<128>, cute::_1>, \
TrgShape=cute::tuple<cute::_64, cute::C<96>>, ModeOrder=cute::GenColMajor]" at line 12 of attn.cu
2 errors detected in the compilation of "attn.cu"."""
    tiler = nvcc.replace(
        "tile_to_shape: block shape does not divide the target shape.", "logical_divide: Too many modes in tiler."
    )
    tiler = tiler[: tiler.index("instantiation")] + (
        'instantiation of "auto cute::zipped_divide(const cute::Layout<LShape, LStride> &, const Tiler &) [with '
        'LShape=cute::tuple<int, int>, LStride=cute::tuple<int, cute::_1>, Tiler=cute::tuple<cute::_64, cute::_64, cute::_1>]"'
        " at line 9 of gemm.cu"
    )
    clang = """a.cu:5:3: error: static assertion failed due to requirement 'decltype(cute::rank(a))::value == 2': Mismatched ranks"""
    rank = (
        "prog: copy_traits_sm90_tma.hpp:970: auto cute::detail::make_tma_copy_desc(...) [with TmaInternalType = float]: \
Assertion `(gmem_prob_stride[2] & 0b1111) == 0' failed."
    )
    step = rank.replace("(gmem_prob_stride[2] & 0b1111) == 0", "smem_box_stride[0] <= (uint32_t(8))")
    base = rank.replace(
        "(gmem_prob_stride[2] & 0b1111) == 0", "(reinterpret_cast<uint64_t>(gmem_address) & 0b1111) == 0"
    )
    box = rank.replace("(gmem_prob_stride[2] & 0b1111) == 0", "smem_box_shape[0] <= (uint32_t(1) << 8)").replace(
        "= float]", "= float; TShape = cute::tuple<cute::C<300>, cute::C<8> >; int B = 0; int M = 4; int S = 3]"
    )
    part = "cute::Layout<cute::tuple<cute::_{0}>, cute::tuple<cute::_1>>"
    values = """copy_atom.hpp(193): error: static assertion failed with "TiledCopy uses too few vals for selected CopyAtom"
            instantiation of "cute::TiledCopy<Copy_Atom, LayoutCopy_TV, ShapeTiler_MN>::TiledCopy() [with Copy_Atom=\
cute::Copy_Atom<cute::Copy_Traits<cute::SM80_CP_ASYNC_CACHEALWAYS<cute::uint128_t, cute::uint128_t>>, float>, LayoutCopy_TV=\
cute::Layout<cute::tuple<cute::tuple<cute::_16, cute::_8>, cute::_2>, cute::tuple<cute::tuple<cute::_2, cute::C<32>>, \
cute::_1>>, ShapeTiler_MN=cute::tuple<cute::C<32>, cute::_8>]" at line 12 of a.cu"""
    called = f"""copy_atom.hpp(103): error: static assertion failed with "CopyAtom: Src/Dst partitioning does not match \
the instruction requirement."
            instantiation of "void cute::Copy_Atom<cute::Copy_Traits<Args...>, CopyInternalType>::call(const \
cute::Tensor<SEngine, SLayout> &, cute::Tensor<DEngine, DLayout> &) const [with Args=<cute::SM75_U32x4_LDSM_N>, \
CopyInternalType=cutlass::half_t, SLayout={part.format(4)}, DLayout={part.format(4)}]" at line 20 of b.cu"""
    multiplied = """gemm.hpp(310): error: static assertion failed
    CUTE_STATIC_ASSERT_V(size<1>(A) == size<1>(C));  // AM == CM
            instantiation of "void cute::gemm(const cute::MMA_Atom<MMA> &, const cute::Tensor<TA, ALayout> &, \
cute::Tensor<TC, CLayout> &) [with ALayout=cute::Layout<cute::tuple<cute::_8, cute::_4>, cute::tuple<cute::_1, \
cute::_8>>, CLayout=cute::Layout<cute::tuple<cute::_4, cute::_2>, cute::tuple<cute::_1, cute::_4>>]" at line 4 of g.cu"""
    return [
        (
            "a tiled copy of too few values",
            values,
            ("128 threads of 2 values", "4 values each", "<uint64_t>: 2 values"),
        ),
        ("an atom called on other sizes", called, ("reads 8 values", "the source has 4", "retile_d")),
        ("gemm of other sizes", multiplied, ("size<1>(a) = 4", "size<1>(c) = 2")),
        ("g++, composition", gcc, ("shape divisibility", "(_10,_4):(_4,_1)", "_4:_5", "mine.cu")),
        ("nvcc, tile_to_shape", nvcc, ("128 does not divide 96", "attn.cu", "32")),
        ("nvcc, a tiler of three modes", tiler, ("3 modes, but the layout has 2", "(_64,_64)", "gemm.cu")),
        ("clang", clang, ("mismatched ranks", "rank(a)")),
        ("a stride at run time", rank, ("globalstrides[1]", "multiple of 16", "4 elements of 32 bits")),
        ("an element stride", step, ("elementstrides[0]", "1 to 8")),
        ("the address", base, ("globaladdress", "16")),
        ("a box of 300", box, ("boxdim[0] = 300", "256", "150")),
    ]


def messages() -> list[Variant]:
    """e, i, j: errors of front ends and of CUDA, and programs that wait."""
    triton = (
        "triton.compiler.errors.CompilationError: at 9:4:\n    desc = tl.make_tensor_descriptor(x, "
        "shape=[M, N], strides=[N, 1], block_shape=[64, 4])\n    ^\nDescriptor block shape must have at least "
        "16 bytes in the last dimension, but got 4 * 2 = 8 bytes"
    )
    wait = """mbarrier.init.shared.b64 [full], {count};
mbarrier.arrive.expect_tx.shared.b64 _, [full], {bytes};   // thread 0
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [map, {{0, 0}}], [full];  // bfloat16, box {{{box}}}
mbarrier.try_wait.parity.shared.b64 p, [full], {parity};
-> hangs"""
    load = (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes{} [{}], [map, {{0, 0}}], [full]{};"
    )
    two = f"""mbarrier.init.shared.b64 [full], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 16384;
{load.format("", "a", "")}  // bfloat16, box {{64, 128}}
{load.format("", "b", "")}  // bfloat16, box {{64, 64}}
mbarrier.try_wait.parity.shared.b64 p, [full], 0;
-> the wait never ends"""
    cluster = f"""// cluster of 2, mask 0x3
mbarrier.init.shared.b64 [full], 1;   // in both CTAs
mbarrier.arrive.expect_tx.shared.b64 _, [full], 8192;  // CTA 0 only
{load.format(".multicast::cluster", "a", ", 3")}  // float16, box {{64, 64}}
mbarrier.try_wait.parity.shared.b64 p, [full], 0;
-> CTA 1 hangs"""
    rounds = """mbarrier.init.shared.b64 [full], 1;
for (int k = 0; k < 4; ++k) {
  mbarrier.arrive.expect_tx.shared.b64 _, [full], 8192;
  cp.async.bulk.tensor.2d... [a], [map, {0, k}], [full];  // float16, box {64, 64}
  mbarrier.try_wait.parity.shared.b64 p, [full], 0;
}
the second tile is stale"""
    written = """========= Invalid __shared__ write of size 16 bytes
=========     at kernel(CUtensorMap)+0x2b0 in k.cu:33
=========     Address 0x408 is misaligned"""
    return [
        ("two loads, bytes of one", two, ("24576", "16384", "2 loads deliver 24576")),
        ("multicast, one barrier armed", cluster, ("full of cta (1, 0, 0)", "every cta of the mask (0, 1)")),
        ("one parity in a loop", rounds, ("parity in every iteration", "0, 1, 0, 1")),
        ("a write that is misaligned", written, ("address 0x408 is misaligned", "8 bytes past", "is misaligned")),
        ("cuda-gdb", "received signal CUDA_EXCEPTION_4, Warp Illegal Instruction.", ("715", "never encoded")),
        ("a bulk copy of 1000 bytes", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [d], [s], 1000, "
        "[b];\nsync 716", ("1000 bytes: the size of a bulk copy must be a multiple of 16",)),
        ("dynamic shared memory", "k<<<dim3(8), 128, 65536>>>: invalid argument", ("49152", "cudafuncsetattribute")),
        ("no context", "cuTensorMapEncodeTiled: CUDA_ERROR_NOT_INITIALIZED", ("cuinit(0)",)),
        ("ptxas, below sm_90", "ptxas error   : Feature '.multicast::cluster' requires .target sm_90 or higher",
        ("-arch=sm_90,",)),
        ("ptxas, sm_90 for wgmma", "ptxas k.ptx, line 4; error   : Instruction 'wgmma.fence' cannot be compiled for "
        "architecture 'sm_90'", ("-arch=sm_90a",)),
        ("Triton, 8 bytes", triton, ("8 bytes", "8 elements x 2 bytes")),
        ("Triton, rank", "AssertionError: tensor descriptor rank must be between 1 and 5", ("1 to 5 modes",)),
        ("Triton, before 3.4", "AttributeError: module 'triton.language' has no attribute 'make_tensor_descriptor'", (
        "3.4",)),
        ("Triton, base", "AssertionError: base must be 16-byte aligned\n", ("16", "view")),
        ("Triton, strides", "  File x.py, line 4\nAssertionError: strides must be 16-byte aligned", ("multiple of 16",)),
        ("Triton, gather", "AssertionError: descriptor gather of fp8e4nv must have at least 32 columns, but got "
        "16", ("32",)),
        ("TileLang, span", "[1] boxDim[0] * elementSize must be <= swizzle span (64 bytes) when swizzle is "
        "enabled, but got 64 * 16 bits", ("64", "32 elements")),
        ("TileLang, stride", "effective cuda globalStrides[0] (raw globalStride[1] = 6932) must be a multiple "
        "of 16 bytes", ("6932", "6944")),
        ("another front end", "ValueError: tma descriptor: innermost dimension must be contiguous", ("stride 1",)),
        ("shared memory", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
        "262144, Hardware limit: 232448. Reducing block sizes", ("262144", "29696")),
        ("misaligned barrier", "mbar = smem + 4\nCUDA error: misaligned address", ("mbarrier", "multiple of 8")),
        ("misaligned tile", "// stage 1: dst = base + 0x840\nsync 716", ("2112", "128")),
        ("illegal instruction", "RuntimeError: CUDA error: an illegal instruction was encountered", ("descriptor", "16 bytes")),
        ("no kernel image", "error 209: no kernel image is available for execution on the device", ("no_binary_for_gpu",)),
        ("half the bytes", wait.format(count=1, bytes=32768, box="64,128", parity=0), ("16384", "32768", "16384 missing bytes")),
        ("two arrivals", wait.format(count=2, bytes=16384, box="64,128", parity=0), ("2 arrivals", "made 1 arrival")),
        ("sound bytes", wait.format(count=1, bytes=16384, box="64,128", parity=0), ("16384", "parity")),
        ("the wrong parity", wait.format(count=1, bytes=16384, box="64 x 128", parity=1), ("parity 1", "parity 0")),
    ]  # fmt: skip


def spellings() -> list[Variant]:
    """h, and the spellings of Python: Triton's layouts, CuTe DSL, PyTorch."""
    linear = (
        " - register=1 -> (0, 1)\n   register=2 -> (0, 2)\n - lane=1 -> (1, 0)\n   lane=2 -> (2, 0)\n   "
        "lane=4 -> (0, 0)\n   lane=8 -> (4, 0)\n   lane=16 -> (8, 0)\nwhere out dims are: [dim0 (size 16), dim1 "
        "(size 4)]"
    )
    blocked = (
        "#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], "
        "order = [1, 0]}>"
    )
    shared = "#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8}>"
    return [
        ("a linear layout with copies", linear, ("lane bit 2", "held 2 times", "64 elements")),
        ("MLIR, blocked", blocked, ("32 x 64", "256 threads")),
        ("MLIR, shared", shared, ("64b swizzle", "mn-major", "512 bytes")),
        (
            "SwizzledSharedLayout",
            "SwizzledSharedLayout(vec=4, per_phase=2, max_phase=4, order=[1, 0])",
            ("64b", "8 rows"),
        ),
        ("DSL layout", 'x = !cute.layout<"(8,(4,?)):(1,(8,32))">', ("run time",)),
        (
            "DSL memref",
            '!cute.memref<bf16, smem, align<1024>, "S<3,4,3> o 0 o (8,64):(64,1)">',
            ("bf16", "1024", "512 elements"),
        ),
        ("DSL coordinates", '!cute.coord_tensor<"(0,?)", "(128,64):(1@0,1@1)">', ("coordinates", "8192")),
        (
            "PyTorch",
            "q.shape=torch.Size([4, 1001]) q.stride()=(1001, 1) torch.bfloat16",
            ("2002", "1008", "multiple of 16"),
        ),
        ("PyTorch, transposed", "torch.Size([64, 32]), (1, 64), torch.float16", ("mode 0 is contiguous", SOUND)),
        ("a pair", "((8, 4), (4, 1))", ("(8,4):(4,1)", "32 elements")),
        ("Python's Layout", "Layout((16,(2,4)),(8,(1,2)))", ("128 elements",)),
        ("a tile", "192x48", ("9216 elements", "16 bits")),
    ]


def variants() -> list[Variant]:
    return [*dumps(), *arguments(), *maps(), *prints(), *assertions(), *messages(), *spellings()]
