"""Source code that a text contains: calls of cuTensorMapEncode*, its constants, layouts and their calls, and types."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.errors import InvalidTypeError
from cute_py.explanation.compositions import spelled_statements, undefined_call
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.rows.source_constants import SourceConstants, Used
from tests.each import each_of

SCOPED = """\
CUtensorMap tensor_map{};
constexpr uint32_t rank = 2;  // the number of modes
uint64_t size[rank] = {1024, 1024};
uint64_t stride[rank - 1] = {1024 * sizeof(int)};
uint32_t box_size[rank] = {BOX, 32};
uint32_t elem_stride[rank] = {1, 1};
CUresult res = cuTensorMapEncodeTiled(&tensor_map,
    CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
    rank, tensor_ptr, size, stride, box_size, elem_stride,
    CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
    CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
"""
"""The form of the sample in the CUDA programming guide."""
CONSTANTS = """\
constexpr int M = 1024;
#define N 1000
constexpr int BLOCK = M / 16;
uint64_t dims[2] = {N, M};
uint64_t strides[1] = {N * sizeof(__half)};
uint32_t box[2] = {
    BLOCK,
    (BLOCK + 64) / 2};
uint32_t steps[2] = {1, 1};
cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, ptr, dims, strides, box, steps,
    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
"""
LAYOUT = "auto layout = make_layout(make_shape(Int<128>{}, Int<64>{}), make_stride(Int<64>{}, Int<1>{}));\n"


@pytest.mark.parametrize(("box", "rules"), [("256", set()), ("260", {"box"}), ("512", {"box"})])
def test_the_scope_of_an_enum_is_no_part_of_its_name(box: str, rules: set[str]) -> None:
    (reading,) = readings_of(SCOPED.replace("BOX", box))
    assert reading.judged and {one.rule for one in reading.broken} == rules
    assert "tiled tensor map, INT32, rank 2" in reading.meaning and "l2 promotion     : B128" in reading.meaning


def test_a_named_argument_may_have_the_scope_of_an_enum() -> None:
    text = "globalDim (64,64)\nglobalStrides (2,128)\nboxDim (64,64)\nswizzle CUtensorMapSwizzle::SWIZZLE_128B"
    assert "swizzle 3 is 128B" in cute.explain(text)


def test_constants_of_the_text_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    (reading,) = readings_of(CONSTANTS)
    assert reading.judged and not reading.broken
    assert "tensor           : (1000,1024):(1,1000), row-major (1024,1000):(1000,1), elements" in reading.meaning
    assert "global strides   : (2000) bytes, modes 1 up" in reading.meaning
    assert "box              : (64,64) elements, innermost first" in reading.meaning
    assert main(["explain", CONSTANTS]) == 0
    assert "Not recognised" not in capsys.readouterr().out


def test_named_arguments_use_the_constants_of_the_text() -> None:
    arrays = "uint64_t globalDim[] = {1024, N};\nuint64_t globalStrides[] = {2048};\nuint32_t boxDim[] = {64, N};"
    (reading,) = readings_of(f"const int N = 1000;\n{arrays}")
    assert [one.rule for one in reading.broken] == ["box"]


@pytest.mark.parametrize(
    ("source", "written", "number"),
    [
        ("int N = 4;", "N", "4"),
        ("int N = 4, M = N + 1;", "(N + 1) * M", "25"),
        ("const size_t N = 7u;", "{N / 2, sizeof(float)}", "{3, 4}"),
        ("#define N 0x10", "(uint64_t)N * sizeof(double)", "128"),
        ("int N = 4; int N = 4;", "N", "4"),
        ("int N = 4; int N = 5;", "N", "N"),
        ("int N = 4; N += 1;", "N", "N"),
        ("for (int i = 0; i < 4; ++i)", "i", "i"),
        ("int N = argc;", "N", "N"),
        ("int N = 4;", "p->N", "p->N"),
        ("int N = 4;", "N(3)", "N(3)"),
        # names that the code fills
        ("int M = 0, N = 0; get_shape(&M, &N);", "{N, M}", "{N, M}"),
        ("int N = 4; int* p = &N;", "N", "N"),
        ("int M = 1, N = 2; std::cin >> M >> N;", "{N, M}", "{N, M}"),
        ("int N = 2;\nfile >> N;", "N", "N"),
        ("int S = 2; int N = 16 >> S;", "{N, S}", "{4, 2}"),
        ("constexpr int M = 1024; void encode(int M, int N) {", "M", "M"),
        ("constexpr int M = 1024; void encode(void* p, const int& M) {", "M", "M"),
        ("constexpr int M = 1024; template <int M> void encode() {", "M", "M"),
        ("constexpr int M = 4, N = 5; f(M * N); g(a, M * N);", "{M, N}", "{4, 5}"),
        ("M = 4\ndef encode(x, M):", "M", "M"),
        ("M = 4\nfor M in range(3):", "M", "M"),
        ("M, N = 64, 128", "{M, N}", "{M, N}"),
        ("auto [M, N] = shape(); int M = 4;", "M", "M"),
        # other numbers than C gives
        ("#define PAD 32+32", "2*PAD", "96"),
        ("#define PAD 32+32\n#define MORE PAD*2", "MORE", "96"),
        ("#define PAD (32+32)", "2*PAD", "128"),
        ("#define N 64, 32", "N", "N"),
        ("int N = 1 << 10;", "N", "1024"),
        ("int N = 1 << 64;", "N", "N"),
        ("long N = 1 << 70;", "N", "N"),
        ("int N = 1 << -1;", "N", "N"),
        ("int N = -1;", "1 << N", "1 << N"),
        ("constexpr unsigned N = 3 - 5;", "N", "N"),
        ("size_t M = 1, N = M - 5;", "{M, N}", "{M, N}"),
        ("int N = 3u - 5;", "N", "N"),
        ("int N = 3 - 5;", "8 - N", "10"),
        ("unsigned N = 65536 * 65536;", "N", "N"),
        ("int N = 64 == x ? 1 : 2;", "N", "N"),
        ("int N = 32\n  + 32;", "N", "N"),
        ("N = 64, 32", "N", "N"),
        ("// N = 7", "N", "N"),
        ("/* N = 7; */ int M = 2;", "{N, M}", "{N, M}"),
        ("int N = 9; // N = 7", "N", "9"),
        ("M = 9\nN = M // 2", "{M, N}", "{9, 4}"),
        ("M = 9\nN = M / 2", "N", "N"),
        ("M = 65536\nN = M * M", "N", "4294967296"),
        # strings, keyword arguments and comments
        ('constexpr int N = 512; printf("N = %d\\n", N);', "N", "512"),
        ("constexpr int N = 512; f(N=N);", "N", "512"),
        ("N = 64\nf(M=N, N=2)", "N", "64"),
        ("N = 64  # rows, N = 3", "N", "64"),
        ("print('N = 3')\nN = 64", "N", "64"),
        ("int N = 4; while ((N = next()) > 0) {}", "N", "N"),
    ],
)
def test_integer_constants(source: str, written: str, number: str) -> None:
    assert SourceConstants(source).evaluate(written) == number


FILLED = """\
int M = 0, N = 0, rank = 0;
get_shape(&M, &N, &rank);
uint64_t dims[2] = {N, M};
uint64_t strides[1] = {2048};
uint32_t box[2] = {64, 64};
cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, ptr, dims, strides, box, steps, 0, 0, 0, 0);
"""


def test_variables_that_the_code_fills_are_no_sizes() -> None:
    (reading,) = readings_of(FILLED)
    assert not reading.broken and "rank 0" not in reading.meaning
    assert any(one.startswith("global_dim (`{N, M}` is not computed here") for one in reading.missing)


def test_a_comment_defines_no_constant() -> None:
    arrays = "globalDim = {N, M}\nglobalStrides = {2048}\nboxDim = {64, 64}"
    (reading,) = readings_of(f"// N = 7\nM = 5\n{arrays}")
    assert any("global_dim (`{N, M}` is not computed here" in one for one in reading.missing)


def test_a_division_of_python_is_no_comment() -> None:
    call = "cuTensorMapEncodeTiled(FLOAT16, 2, ptr, [M // 2, 64], [2048], [64, 64], [1, 1], 0, 0, 0, 0)"
    (reading,) = readings_of(f"M = 1024\n{call}")
    assert "tensor           : (512,64):(1,1024), row-major (64,512):(1024,1), elements" in reading.meaning


@pytest.mark.parametrize(
    "text", ["range(0, 5)", "max(3, 5)", "dim3(16, 16)", "dim3 grid(3, 5)", "f(1, 2)", "tan(1, 2)"]
)
def test_a_call_of_a_function_lacks_no_layout(text: str) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        cute.explain(text)
    assert "if it is a layout" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sA(3, 5)", "sA"),
        ("smem_layout(3, 5)", "smem_layout"),
        ("tAsA(0, 1)", "tAsA"),
        ("coalesce(x); x(3, 5)", "x"),
        ("print(x.shape); print(x(3, 5))", "x"),
        ("max(3, 5); L(0, 1)", "L"),
    ],
)
def test_a_call_of_a_layout_lacks_its_definition(text: str, name: str) -> None:
    assert undefined_call(text) == name


MMA = "make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2,_2>>{}, Tile<_32,_32,_16>{})"
COPY = (
    "make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{}, "
    "Layout<Shape<_16,_8>, Stride<_8,_1>>{}, Layout<Shape<_1,_8>>{})"
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (MMA, f"auto mma = {MMA}; print(mma);"),
        (MMA, f"TiledMMA mma = {MMA};\nif (thread0()) {{\n  print_latex(mma);\n}}"),
        (MMA, f'auto mma = {MMA};\nprint("mma: "); print(mma); print("\\n");'),
        (
            MMA,
            f"auto mma = {MMA};\nThrMMA thr = mma.get_slice(threadIdx.x);\nauto tC = thr.partition_C(gC);\nprint(mma);",
        ),
        (COPY, f"TiledCopy c = {COPY}; print(c);"),
    ],
)
def test_a_printed_tiled_operation_is_the_one_that_is_defined(call: str, text: str) -> None:
    assert str(cute.explain(text)) == str(cute.explain(call))


def test_a_tiled_operation_may_use_variables() -> None:
    threads = "auto t = make_layout(make_shape(_2{}, _2{})); auto op = MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>{};"
    said = str(cute.explain(f"{threads} auto mma = make_tiled_mma(op, t, Tile<_32,_32,_16>{{}}); print(mma);"))
    assert said.endswith(str(cute.explain(MMA))) and said.startswith("t = (_2,_2):(_1,_2)\n")


def test_a_refused_tiled_operation_is_refused_where_it_is_printed() -> None:
    call = "make_tiled_mma(SM80_1x1x1_F32_TN{}, Layout<Shape<_2,_2>>{})"
    said = str(cute.explain(f"auto mma = {call}; print(mma);"))
    assert "is refused: " in said and "A type of CuTe C++" not in said


def test_a_tiled_mma_that_leaves_its_tile_is_questioned() -> None:
    outside = str(cute.explain(MMA.replace("_32,_32", "_33,_32")))
    assert (
        "But for A the thread-value layout reaches index 558 and leaves the tile, because 33x16 elements have the "
        "indices 0 to 527.\nBut for C the thread-value layout reaches index 1086" in outside
    )
    assert "But for B" not in outside and "Who holds" not in outside
    assert "But for" not in str(cute.explain(MMA)) and "Who holds A" in str(cute.explain(MMA))


def test_an_array_without_a_definition_is_no_printed_address() -> None:
    said = cute.explain(CONSTANTS[CONSTANTS.index("cuTensorMap") :])
    assert "global_dim (the text does not define `dims`: add its definition, with the numbers)" in said
    assert "an address was printed" not in said


@each_of(
    ("text", "lines"),
    [
        (f'{LAYOUT}printf("%d\\n", layout(3, 5));', ["  offset: 3 * _64 + 5 * _1 = 197"]),
        (f'{LAYOUT}printf("%d %d", int(layout(3, 5)), layout(0, 1));', ["  offset: 0 * _64 + 1 * _1 = 1"]),
        (f"{LAYOUT}auto x = layout(2, 3); // 131", ["  offset: 2 * _64 + 3 * _1 = 131"]),
        (f"{LAYOUT}auto x = layout(2, 3);\nprint(x);", ["  offset: 2 * _64 + 3 * _1 = 131"]),
        (f"{LAYOUT}static_assert(layout(1, 2) == 66, 'm');", ["  the assertion that it is 66 holds"]),
        ("layout = (4,8):(8,1)\nassert layout(1,2) == 10", ["  the assertion that it is 10 holds"]),
        (
            "layout = (4,8):(8,1)\nassert layout(1,2) == 11\nprint(layout(3, 5))",
            ["  the assertion that it is 11 fails"],
        ),
    ],
)
def test_a_call_of_a_layout_is_its_value(text: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    answer = str(cute.explain(text)).splitlines()
    assert [line for line in lines if line not in answer] == [] and "A layout: " not in str(answer)
    assert main(["explain", text]) == 0
    assert "Not recognised" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["print(layout(3,5))", "assert layout(1,2) == 10", "auto x = layout(2, 3);"])
def test_a_call_of_a_name_without_a_definition_is_no_layout(text: str) -> None:
    assert spelled_statements(text) is None
    with pytest.raises(InvalidTypeError) as refused:
        cute.explain(text)
    assert str(refused.value.facts["missing"]).startswith("the definition of layout: ")


def test_a_call_of_a_name_next_to_a_layout_is_no_layout() -> None:
    (reading,) = readings_of(f"{LAYOUT}for (int i = 0; i < n; ++i) {{ use(layout(3, 5)); }}")
    assert reading.kind == "A layout: (_128,_64):(_64,_1)"


def test_a_number_has_no_modes() -> None:
    said = cute.explain("layout(3, 5)")
    assert "the first operand of layout and get must be a layout, not 3" in said and "subscriptable" not in said


@pytest.mark.parametrize("name", ["SM90_TMA_LOAD", "SM90_TMA_LOAD_MULTICAST", "zipped_divide", "SM75_U32x4_LDSM_N"])
def test_a_name_may_have_the_namespace_of_cpp(name: str) -> None:
    assert cute.explain(f"cute::{name}") == cute.explain(name)


def test_prompts_of_python_are_no_part_of_an_expression(capsys: pytest.CaptureFixture[str]) -> None:
    text = "composition((6,2):(8,2), (4,3):(3,1))"
    assert cute.explain(f">>> {text}") == cute.explain(text)
    session = ">>> L = Layout(\n...     (4, 8), (8, 1))\n>>> print(L(2, 3))\n19"
    assert "offset: 2 * 8 + 3 * 1 = 19" in cute.explain(session)
    assert main(["explain", session]) == 0
    assert "Not recognised" not in capsys.readouterr().out


def test_a_report_of_the_sanitizer_may_lack_its_margin() -> None:
    text = """\
Invalid __global__ read of size 4 bytes
    at kernel(float*, int)+0x1a0 in k.cu:12
    by thread (5,0,0) in block (0,0,0)
    Address 0x7f1234001000 is out of bounds
    and is 1 bytes after the nearest allocation at 0x7f1234000000 of size 4096 bytes"""
    with_margin = "\n".join(f"========= {line}" for line in text.split("\n"))
    assert cute.explain(text) == cute.explain(with_margin)
    assert "at kernel(float*, int)+0x1a0 in k.cu:12\n" in cute.explain(text)
    assert "1 bytes after the nearest allocation at 0x7f1234000000 of size 4096 bytes" in cute.explain(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('!cute.layout<"(128,64):(64,1)">', "!cute.layout, a type of CuTe DSL (MLIR)"),
        ('%3 = !cute.layout<"(128,64):(64,1)">', "%3: !cute.layout, a type of CuTe DSL (MLIR)"),
        ('f(%arg0: !cute.layout<"(128,64):(64,1)">)', "%arg0: !cute.layout, a type of CuTe DSL (MLIR)"),
    ],
)
def test_a_type_of_the_dsl_is_one_reading(text: str, kind: str) -> None:
    (reading,) = readings_of(text)
    assert reading.kind == kind and "8192 elements, 128 x 64, cosize 8192" in reading.meaning


@pytest.mark.parametrize(("element", "on_elements"), [("f16", "Sw<3,3,3>"), ("f32", "Sw<3,2,3>"), ("i8", "Sw<3,4,3>")])
def test_a_type_of_the_dsl_has_the_width_of_its_elements(element: str, on_elements: str) -> None:
    (reading,) = readings_of(f'!cute.memref<{element}, smem, align<1024>, "S<3,4,3> o 0 o (128,64):(64,1)">')
    assert "Sw<3,4,3> on bytes is the 128B swizzle" in str(reading)
    assert f"the same function is {on_elements}" in str(reading) and "" not in map(str.strip, reading.meaning)


@pytest.mark.parametrize(("name", "says"), [("__nv_expf", "libdevice was not linked"), ("helper", "does not define")])
def test_an_unresolved_function_is_at_no_line(name: str, says: str) -> None:
    said = cute.explain(f"ptxas fatal   : Unresolved extern function '{name}'")
    assert says in said and "Missing in the text" not in said


def test_a_tiled_copy_that_leaves_its_tile_is_questioned() -> None:
    text = """\
TiledCopy
  Tiler_MN:       (_128,_8)
  TiledLayout_TV: ((_16,_16),_4):((STEP,_1),_128)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_1):(_0,_1)
  ValLayoutDst: (_1,_1):(_0,_1)
  ValLayoutRef: (_1,_1):(_0,_1)
  ValueType:    16b"""
    outside = cute.explain(text.replace("STEP", "_512"))
    leaves = "reaches index 8079 and leaves the tile, because 128x8 elements have the indices 0 to 1023"
    assert outside.count(leaves) == 2 and "(0,20)" not in outside
    last, first = (cute.explain(text.replace("STEP", step)) for step in ("_41", "_42"))  # 15 * 41 + 15 + 384 = 1014
    assert "leaves the tile" not in last and "Who reads element" in last
    assert "reaches index 1029" in first


@pytest.mark.parametrize(
    ("call", "head", "made"),
    [
        (
            "make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2,_2,_1>>{}, Tile<_32,_32,_16>{})",
            "make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN, (_2,_2,_1):(_1,_2,_0), (_32,_32,_16))",
            "TiledMMA of SM80_16x8x16_F32F16F16F32_TN",
        ),
        (
            "make_tiled_mma(MMA_Atom<SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>>{})",
            "make_tiled_mma(SM90_64x64x16_F32F16F16_SS)",
            "TiledMMA of SM90_64x64x16_F32F16F16_SS",
        ),
        (
            "make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, cutlass::half_t>{}, "
            "Layout<Shape<_16,_8>, Stride<_8,_1>>{}, Layout<Shape<_1,_8>>{})",
            "make_tiled_copy(SM80_CP_ASYNC_CACHEALWAYS, (_16,_8):(_8,_1), (_1,_8):(_0,_1))",
            "A tile of 16 x 64 over 128 threads, 8 values each, in 1 instruction of 8.",
        ),
    ],
)
def test_tiled_operations_in_source_code_are_evaluated(call: str, head: str, made: str) -> None:
    for text in (call, f"TiledCopy x = {call};", f"auto x = cute::{call};"):
        answer = str(cute.explain(text))
        assert answer.startswith(head) and made in answer, text


def test_a_tiled_operation_of_an_unknown_atom_is_refused() -> None:
    answer = str(cute.explain("make_tiled_mma(SM80_1x1x1_F32_TN{}, Layout<Shape<_2,_2,_1>>{})"))
    assert "is refused: " in answer and "SM80_1x1x1_F32_TN" in answer.split("is refused: ")[1]


@pytest.mark.parametrize(
    ("session", "same"),
    [
        (
            "In [1]: L = Layout(\n   ...:     (4, 8), (8, 1))\n\nIn [2]: print(L(2, 3))\n19",
            "offset: 2 * 8 + 3 * 1 = 19",
        ),
        ("In [3]: (4,8):(8,1)", "a step adds 8 to the offset"),
        ("In [3]: import cute_py as cute\n   ...: L = (4,8):(8,1)\n   ...: L(2, 3)", "offset: 2 * 8 + 3 * 1 = 19"),
        (
            "In [ ]: composition((6,2):(8,2), (4,3):(3,1))",
            "result: (6,2):(8,2) o (4,3):(3,1) = ((2,2),(3,1)):((24,2),(8,2))",
        ),
    ],
)
def test_prompts_of_ipython_are_no_part_of_an_expression(session: str, same: str) -> None:
    assert same in cute.explain(session)


def test_a_result_of_ipython_is_a_print() -> None:
    (reading,) = readings_of("In [3]: cute.make_layout((4,8), stride=(8,1))\nOut[3]: (4,8):(8,1)")[1:]
    assert reading.kind == "A layout: (4,8):(8,1)"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("cute.make_ordered_layout((4, 8), order=(1, 0))", "result: (_4,_8):(_8,_1)"),
        ("cute.make_ordered_layout((4, 8), (0, 1))", "result: (_4,_8):(_1,_4)"),
        ("cute.make_ordered_layout((4, 8, 3), order=(1, 0, 2))", "result: (_4,_8,_3):(_8,_1,_32)"),
        ("L = cute.make_ordered_layout(order=(1, 0), shape=(4, 8)); print(L(2, 3))", "offset: 2 * _8 + 3 * _1 = 19"),
        ("cute.make_layout((4, 8), order=(1, 0))", "result: (_4,_8):(_8,_1)"),
        ("cute.make_layout((4, 8), order=(1, 0))", "make_layout of CuTe DSL and C++ has no argument order"),
        ("cute.make_ordered_layout((4, 8), ordr=(1, 0))", "is refused: make_ordered_layout has no argument ordr here"),
        ("cute.zipped_divide((16,8):(8,1), tiler=(4,4))", "= ((4,4),(4,2)):((8,1),(32,4))"),
        ("cute.make_identity_tensor((4, 8))", "result: ArithTuple(_0,_0) o (4,8):(_1@0,_1@1)"),
    ],
)
def test_calls_may_have_keywords(call: str, result: str) -> None:
    assert result in cute.explain(call)


@pytest.mark.parametrize(
    ("text", "atom"),
    [
        ("MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>", "SM80_16x8x16_F32F16F16F32_TN"),
        ("using Atom = cute::MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>;", "SM80_16x8x16_F32F16F16F32_TN"),
    ],
)
def test_the_type_of_an_atom_is_the_atom(text: str, atom: str) -> None:
    assert cute.explain(text) == cute.explain(atom)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("RuntimeError: CUDA error: device-side assert triggered", "an assert() of a kernel failed"),
        ("CUDA_ERROR_NOT_FOUND: named symbol not found", "the module has no kernel or variable of this name"),
        ("cudaErrorHardwareStackError", "714, cudaErrorHardwareStackError"),
        ("CUDA error: invalid program counter", "718, cudaErrorInvalidPc"),
        ("CUDA error: system not yet initialized", "the fabric manager does not run"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_100a'", "does not compile for sm_100a"),
        ('a.cu(1): catastrophic error: cannot open source file "cuda_runtime.h"', "no folder of the include path has"),
        ("========= Uninitialized __global__ memory read of size 4 bytes", "a thread reads 4 bytes of memory"),
        ("torch.Size([128, 64]) torch.float16 (65, 1)", "pad mode 0: stride 65 -> 72 elements (144 bytes)"),
    ],
)
def test_further_messages(text: str, says: str) -> None:
    assert says in cute.explain(text)


def test_an_error_of_http_is_no_error_of_cuda() -> None:
    with pytest.raises(InvalidTypeError):
        cute.explain("HTTP error 500")


ENCODED = """\
{code}
cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, ptr, dims, strides, box, ones, 0, 3, 0, 0);
"""
LISTS = "uint64_t dims[2] = {512, 1024}; uint64_t strides[1] = {1024}; uint32_t box[2] = {64, 64}; uint32_t ones[2]; "


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < 2; ++i) ones[i] = 1;",
        "for (uint32_t i = 0; i < 2; i++) { ones[i] = 1; }",
        "for (int i = 0; i <= 1; i += 1) { x = 3; ones[i] = 1; }",
        "constexpr int R = 2; for (int i = 0; i != R; ++i)\n  ones[i] = 2 - 1;",
        "ones[0] = 1; for (int i = 1; i < 2; ++i) ones[i] = ones[i - 1];",
    ],
)
def test_a_loop_with_constant_bounds_sets_elements(loop: str) -> None:
    (reading,) = readings_of(ENCODED.replace("{code}", LISTS + loop))
    assert "element strides  : (1,1)" in reading.meaning and reading.judged


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < n; ++i) ones[i] = 1;",
        "for (int i = 0; i < 2; ++i) { if (i) ones[i] = 1; }",
        "for (int i = 0; i < 2; ++i) { if (x) continue; ones[i] = 1; }",
        "for (int i = 0; i < 2; i += 2) ones[i] = 1;",
        "for (int i = 0; i < 1; ++i) ones[i] = 1;",
        "for (int i = 0; i < 2; ++i) f(); ones[i] = 1;",
        "for (int i = 0; i < 2; ++i) ones[i] += 1;",
        "for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) ones[i] = j;",
    ],
)
def test_another_loop_sets_elements_that_are_not_known(loop: str) -> None:
    (reading,) = readings_of(ENCODED.replace("{code}", LISTS + loop))
    assert any("element_strides" in one for one in reading.missing) and not reading.judged


def test_a_loop_of_python_sets_elements() -> None:
    text = "ones = [0] * 2\nfor i in range(2):\n    ones[i] = 1\n"
    assert SourceConstants(text).sets_elements("ones")
    assert SourceConstants("for i in range(1, 3):\n    s[i] = 4\ns[0] = 2\n").elements("s", Used()) == "{2, 4, 4}"


ARRAY = "a = cupy.empty((1024, 512), dtype=cupy.float16)\n"


@pytest.mark.parametrize(
    "call",
    [
        "TensorMapDescriptor.from_tiled(a, box_dim=(64, 64), swizzle=TensorMapSwizzle.SWIZZLE_128B)",
        "a.as_tensor_map((64, 64), swizzle=TensorMapSwizzle.SWIZZLE_128B)",
        "StridedMemoryView.from_any_interface(a, stream_ptr=-1).as_tensor_map(box_dim=(64, 64), swizzle=SWIZZLE_128B)",
        "v = StridedMemoryView.from_dlpack(a, stream_ptr=-1)\nv.as_tensor_map(box_dim=(64, 64), swizzle=SWIZZLE_128B)",
    ],
)
def test_calls_of_cuda_core_are_judged(call: str) -> None:
    (reading,) = [one for one in readings_of(ARRAY + call) if one.kind == "A tensor map of cuda.core"]
    assert reading.judged and not reading.broken and not reading.missing
    assert "tensor           : (512,1024):(1,512), row-major (1024,512):(512,1), elements" in reading.meaning
    wider = ARRAY.replace("512)", "500)") + call.replace("(64, 64)", "(64, 128)")
    (wrong,) = [one for one in readings_of(wider) if one.kind == reading.kind]
    assert [one.rule for one in wrong.broken if one.severity == "error"] == ["stride_alignment", "inner_span"]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("TensorMapDescriptor.from_tiled(a, box_dim=(64, 64))", "the shape and the type of a"),
        ("a = cupy.empty((64, 128), cupy.float16).T\na.as_tensor_map((64, 64))", "the shape and the type of a"),
        (
            "a = cupy.empty((4, 64), order='F', dtype=cupy.float32)\na.as_tensor_map((4, 64))",
            "the shape and the type of a",
        ),
        (ARRAY + "a = a[:, 1:]\na.as_tensor_map((64, 64))", "the shape and the type of a"),
        (ARRAY + "a.as_tensor_map(options=o)", "box_dim, as numbers"),
        (ARRAY + "a.as_tensor_map((64, 64), swizzle=mode)", "not read: swizzle=mode"),
    ],
)
def test_a_call_of_cuda_core_without_numbers_is_not_judged(text: str, missing: str) -> None:
    (reading,) = [one for one in readings_of(text) if one.kind == "A tensor map of cuda.core"]
    assert not reading.judged and any(missing in one for one in reading.missing)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('a.cu(3): error: identifier "__nv_fp8_e4m3" is undefined', "include the header: cuda_fp8.h for __nv_fp8"),
        ("NVRTC error: NVRTC_ERROR_COMPILATION", "print the log: nvrtcGetProgramLogSize"),
        ("nvcc error   : 'cicc' died due to signal 11", "cicc ended with signal 11 and without an error message"),
    ],
)
def test_messages_of_compilers_without_an_error_of_cute(text: str, says: str) -> None:
    assert says in cute.explain(text)


def test_a_word_after_a_name_is_no_layout() -> None:
    with pytest.raises(InvalidTypeError):
        cute.explain("Status: CUTLASS_STATUS_ERROR_MISALIGNED_OPERAND")
    assert cute.explain("M:D").startswith("M:D\n")
