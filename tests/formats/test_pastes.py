"""What explain says of names, types and errors of scales; what draw shows of a format."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.draw import draw
from cute_py.errors import InvalidValueError
from cute_py.explanation.dispatch import readings_of
from cute_py.formats.scale_orders import ORDERS
from tests.each import each_of
from tests.shares import one_in

SAID = [
    ("Sm1xxBlockScaledConfig<16>", ["((_32,_4),(_16,_4)):((_16,_4),(_0,_1))", "nvfp4()"]),
    ("using Cfg = cutlass::detail::Sm1xxBlockScaledConfig<32>;", ["((_32,_4),(_32,_4))", "mxfp8()"]),
    ("Sm1xxBlockScaledOutputConfig<16, UMMA::Major::MN>", ["((_16,_4),(_32,_4)):((_0,_1),(_16,_4))", "Step<_1,_2,_3>"]),
    ("Sm1xxBlockScaledConfig<8>", ["16 and 32 elements"]),
    ("Sm90BlockwiseScaleConfig<1, 128, 128>", ["MN-major", "fp8(block=(1, 128), scales='mn_major')"]),
    ("Sm100BlockwiseScaleConfig<128,128,128,UMMA::Major::K,UMMA::Major::K>", [", K-major", "fp8(block=(128, 128))"]),
    ("SfAtom", ["128 rows x 4 scales", "((_32,_4),(_16,_4)):((_16,_4),(_0,_1))"]),
    ("Shape<Shape<_32,_4>,Shape<_16,_4>>", ["SfAtom with 16 elements per scale"]),
    (
        "cute::Layout<cute::tuple<cute::tuple<cute::C<32>, cute::C<4> >, cute::tuple<cute::C<32>, cute::C<4> > >, "
        "cute::tuple<cute::tuple<cute::C<16>, cute::C<4> >, cute::tuple<cute::C<0>, cute::C<1> > > >",
        ["SfAtom with 32 elements per scale"],
    ),
    ("((_32,_4),(_16,_4)):((_16,_4),(_0,_1))", ["SfAtom with 16 elements per scale", "round_up(M, 128)"]),
    ("SWIZZLE_32_4_4", ["scale order 32_4_4", "m%128/32"]),
    ("swizzle_a=[SwizzleType.SWIZZLE_32_8]", ["rocm_32_8"]),
    ("CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3", ["32_4_4", "nvfp4()"]),
    ("QuantizationSFLayout::SWIZZLED_8x4", ["8x4", "get_sf_out_offset_8x4"]),
    ("HopperMXScaleLayout(num_warps=8)", ["triton_hopper"]),
    ("DeepGEMM: packed UE8M0 scales", ["deepgemm_sm100", "((kb/4)*align(M, 4) + m)*4 + kb%4: four ue8m0 per int32"]),
    ("float8_e8m0fnu", ["2^(e - 127)", "255 is NaN"]),
    ("torch.float8_e8m0fnu", ["2^(e - 127)"]),
    (
        "RuntimeError: Invalid blockwise scaling configuration. For blockwise scaling, scale_a should have 512 "
        "elements, got 1024, scale_b should have 512 elements, got 1024.",
        ["has 1024 scales", "twice as many"],
    ),
    (
        "for MX scaling scale_a must have 1024 (got: 800) and scale_b must have 512 (got: 512). Scales must have types "
        "torch.float8_e8m0fnu",
        ["224 scales are missing", "128"],
    ),
    ("AssertionError: the last dimension of shape torch.Size([4, 100]) must be divisible by block_size 32", ["pads K"]),
    ("AssertionError: K dim must be divisible by block_size", ["multiple of 16"]),
    ("Row slicing of NVFP4Tensor with swizzled scales requires aligned start", ["128 rows", "scales='linear'"]),
    ("    assert M % 128 == 0\nAssertionError", ["tiles of 128 rows"]),
    ("ValueError: Only TRTLLM FP4 GEMM supports 8x4 scale factor layout.", ["reads 128x4", "scales='32_4_4'"]),
    (
        "The scaling mode for A scale (VEC16_UE4M3) requires a custom pointer for A scale",
        ["no address was set", "A_SCALE_POINTER"],
    ),
    ("Shape<Shape<_32,_4>,...>", ["the beginning of the tile of scales", "((_32,_4),(_16,_4)):((_16,_4),(_0,_1))"]),
    ("Sm103BlockScaledConfig<16>", ["((_8,_4,_4),(_16,_4)):((_16,_128,_4),(_0,_1))", "the same function", "nvfp4()"]),
    ("((_8,_4,_4),(_32,_4)):((_16,_128,_4),(_0,_1))", ["SfAtom with 32 elements per scale"]),
    ("RuntimeBlockwiseScaleConfig<UMMA::Major::K>", ["run-time sizes", "fp8(block=(1, 128))"]),
    ("QuantizationSFLayout::SWIZZLED", ["scale order 32_4_4"]),
    ("swizzle_blockscale", ["scale order 32_4_4", "vLLM"]),
    ("CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F", ["a recipe of scales", "cute.formats.fp8()"]),
    ("CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F", ["128 x 128 elements share a scale"]),
    ("ScalingType.BlockWise1x16", ["nvfp4()", "1 x 16 elements share a scale"]),
    ("cutlass::nv_float4_t<cutlass::float_e2m1_t>", ["nvfp4()"]),
    ("torch.float4_e2m1fn_x2", ["two e2m1 elements per byte"]),
    ("MXFP4", ["cute.formats.mxfp4()"]),
    (
        "for MX scaling scale_a must have 1024 (got: 1024) and scale_b must have 512 (got: 512). Scales must have "
        "types torch.float8_e8m0fnu (for self: torch.uint8, mat_b: torch.float8_e8m0fnu) Must have swizzle type "
        "SwizzleType.SWIZZLE_32_4_4 (got self: SwizzleType.NO_SWIZZLE, mat_b: SwizzleType.NO_SWIZZLE)",
        ["this number is right", "scale_a has the type torch.uint8", "the swizzle SwizzleType.NO_SWIZZLE for scale_a"],
    ),
    (
        "RuntimeError: scale_a must be padded and swizzled to a shape (256x64), but got a shape (200x60)",
        ["(200, 60)", "needs (256, 64): the order 32_4_4"],
    ),
    ("scale_b must have shape [1, 500], got [500, 1]", ["scale_b has the shape (500, 1)", "fp8('row')"]),
    ("scale_a must have 128 Float elements, got 64", ["128 float32 scales"]),
    ("expected scale_a.stride(1) to be 1, but got 128", ["128 elements apart", "scale_a.contiguous()"]),
    ("RuntimeError: scale_a must be contiguous", ["refuses a slice or a transposed view"]),
    (
        "AssertionError: A_scale dim1 should be size K//block_size, got A=torch.Size([128, 512]) and "
        "A_scale=torch.Size([128, 4])",
        ["[128, 4] for data of the shape [128, 512]", "scales='linear'"],
    ),
    ("MXTensor input scales must be unswizzled for grouped GEMM", ["the plain grid (M, ceil(K / V))"]),
    ("Triton kernel only supports swizzled scales", ["is_swizzled_scales=True"]),
    ("DeepGEMM FP8 blockwise grouped GEMM expects 1x128 LHS scales", ["128 x 128 for B"]),
    (
        "RuntimeError: Assertion error (csrc/utils/layout.hpp:87): sf.size(-2) == ceil_div(mn, gran_mn)",
        ["deepgemm_sm90", "deepgemm_sm100"],
    ),
    ("ValueError: Only cudnn and auto FP4 GEMM supports mxfp4 quantization.", ["backend='cudnn'"]),
    ("ValueError: nvfp4 only supports block_size = 16 and mxfp4 only supports block_size = 32.", ["formats.mxfp4()"]),
    ("a_descale must have float8_e4m3fn or uint8 dtype, but got torch.float32.", ["have the type torch.float32"]),
    ("a and b must have float4_e2m1fn_x2 packed into uint8. Got torch.int8", ["two e2m1 elements per byte"]),
    (
        "V-scale swizzling requires page_size % 4 == 0 and head_dim % 64 == 0, got page_size=6, head_dim=64.",
        ["page_size 6", "multiple of 4"],
    ),
]


@each_of(("text", "says"), SAID, ids=[text[:40] for text, _ in SAID])
def test_explained(text: str, says: list[str]) -> None:
    answer = str(cute.explain(text))
    for part in says:
        assert part in answer, answer


def test_a_tile_of_8_by_4_is_no_order_of_scales() -> None:
    assert "scale order" not in str(cute.explain("misaligned address: tile 8x4"))


def test_a_format_explains_itself() -> None:
    text = str(cute.explain(formats.nvfp4(axis=0)))
    for part in ("16 x 1 elements share a scale", "sums along M", "ue4m3", "tensor scale", "32_4_4"):
        assert part in text


def test_a_picture_shows_where_scales_lie() -> None:
    picture = draw(formats.mxfp8(), shape=(130, 96))
    blocks, memory = picture.tables
    assert blocks.rows[1][2] is not None
    assert blocks.rows[1][2].text == str(formats.mxfp8().scale_layout(130, 96)((1, 64)))
    assert memory.rows[0][4] is not None
    assert memory.rows[0][4].text == "32,0"
    padding = memory.rows[0][3]
    assert padding is not None
    assert padding.hatched
    assert "<svg" in picture.svg
    x = cute.copy(np.ones((4, 256), np.float32), formats.fp8((1, 128)))
    assert "fp8(block=(1, 128))" in draw(x).title
    with pytest.raises(InvalidValueError, match="too many"):
        draw(formats.mxfp8(), shape=(1 << 20, 1 << 12))


def cute_ones():
    import numpy as np

    return np.ones((4, 256), np.float32)


EXPECTED_16384 = (
    "RuntimeError: scale_a and scale_b must be contiguous. For swizzled scales expected 128x4 blocks: scale_a should "
    "have 16384 elements, got 12288"
)


def test_the_sizes_in_a_text_decide_which_number_of_scales_is_right() -> None:
    answer = str(cute.explain(f"{EXPECTED_16384} (M = 384, K = 1024, mxfp8)"))
    assert "M = 384 and K = 1024 with 32 elements per scale need 12288 scales: 384 rows x 32" in answer
    assert "12288 is the right number, so padding does not help" in answer
    assert "16384 scales belong to K = 1024 and M = 385 to 512, or to no K with M = 384" in answer
    assert "contiguous memory" in answer
    assert "pad rows" not in answer and "A change that works" not in answer


def test_without_sizes_each_number_has_the_sizes_that_it_belongs_to() -> None:
    answer = str(cute.explain(EXPECTED_16384))
    assert "16384 scales belong to padded rows x scales per row of 128 x 128, 256 x 64, 512 x 32," in answer
    assert "12288 scales belong to padded rows x scales per row of 128 x 96, 256 x 48, 384 x 32," in answer
    assert "pad rows" not in answer


COUNTED = (
    "for MX scaling scale_{0} must have {1} (got: {2})",
    "For blockwise scaling, scale_{0} should have {1} elements, got {2}",
    "ValueError: scale_{0} should have {1} elements but got {2} elements",
    "expected scale_{0} to have {1} elements, got: {2}",
    "scale_{0}.numel() == {1}, but got {2}",
)


@pytest.mark.parametrize("kind", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("text", COUNTED)
@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("pairs", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_padding_is_offered_only_where_it_is_missing(text: str, kind: str, operand: str, pairs: int) -> None:
    form, rng = getattr(formats, kind)(), random.Random(f"{text}{kind}{operand}")
    for _ in range(pairs):
        rows, depth = rng.randint(1, 2000), rng.randint(1, 3000)
        right, plain = form.scale_size(rows, depth), rows * -(-depth // form.block[1])
        sizes = f"{'M' if operand == 'a' else 'N'} = {rows}, K = {depth}, {kind}"
        for want, have in ((right + 512, right), (right, plain), (right, right + 512)):
            answer = str(cute.explain(f"{text.format(operand, want, have)}\n{sizes}"))
            assert f"need {right} scales" in answer
            assert ("A change that works" in answer) == (have == plain and have != right), answer
            assert (f"{have} is the right number" in answer) == (have == right != want)
            assert ("is the right number" in answer) or want == right


@pytest.mark.parametrize("number", one_in(3, ["9" * 13, "9" * 6000, "0"]))
@pytest.mark.parametrize("sizes", ["", "M = 0, K = 0", "M = 9999999999, K = 9999999999"])
def test_numbers_that_no_size_has(number: str, sizes: str) -> None:
    for want, have in ((number, "512"), ("512", number), (number, number)):
        answer = str(cute.explain(f"scale_a should have {want} elements, got {have} {sizes}"))
        assert "An error from torch.nn.functional.scaled_mm" in answer
        assert "is the right number" not in answer


@pytest.mark.parametrize("name", [name for row in ORDERS for name in (row.name, *row.aliases)])
def test_every_name_of_an_order_is_explained(name: str) -> None:
    row = next(row for row in ORDERS if name in (row.name, *row.aliases))
    answer = str(cute.explain(name))
    assert row.formula in answer and row.source in answer
    assert f"{row.name}" in answer
    assert all(other in answer for other in row.aliases if other != name)


def test_a_name_of_an_order_that_means_something_else_too() -> None:
    assert "the F2 view of a layout" in str(cute.explain("linear"))
    assert "as a tiler (_8,_4)" in str(cute.explain("8x4"))


def test_an_order_with_parameters() -> None:
    assert "round_up(M, 256)" in str(cute.explain("triton_hopper(num_warps=8)"))
    with pytest.raises(InvalidValueError, match="no parameter 'num_warp'"):
        cute.explain("triton_hopper(num_warp=8)")


@pytest.mark.parametrize("name", ["scaled_mm", "torch._scaled_mm", "torch.nn.functional.scaled_mm"])
def test_the_operands_of_scaled_mm(name: str) -> None:
    answer = " ".join(str(cute.explain(name)).split())
    assert "round_up(M, 128) * round_up(ceil(K / V), 4) contiguous scales in the order 32_4_4" in answer
    assert "stride 1 along M" in answer


CONFIGURATION = """\
RuntimeError: Invalid scaling configuration.
- For TensorWise scaling, a and b should be float8, scales should be float and singletons.
- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be (256, 1) and scale_b \
should be (1, 500), and both should be contiguous.
- For BlockWise 1x128 scaling, a and b should be float8, scales should be float, scale_a should be (256, 8) and \
scale_b should be (8, 500), and both should be outer-dim-major.
- For BlockWise 1x32 scaling, a and b should be float8, scales should be float8_e8m0fnu, scale_a should have 8192 \
elements and scale_b should have 16384 elements, and both should be contiguous.
- For BlockWise 1x16 scaling, a and b should be float4 (packed 2x), scales should be float8_e4m3fn, scale_a should \
have 16384 elements and scale_b should have 32768 elements, and both should be contiguous.
Got mat_a.dtype()=Float8_e4m3fn, scale_a.dtype()={0}, scale_a.size()=[{1}], scale_a.stride()=[{2}], \
mat_b.dtype()=Float8_e4m3fn, scale_b.dtype()={0}, scale_b.size()=[{3}] and scale_b.stride()=[{4}]
"""
SHORT = (
    "Invalid scaling configuration. For tensorwise scaling, both scales should be scalar. For rowwise scaling, "
    "scale_a should be (256, 1), scale_b should be (1, 500). For (BlockWise1x128, BlockWise128x128), scale_a should "
    "be (256, 8), scale_b should be (8, 4). Got scale_a.size()=({0}) and scale_b.size()=({1})"
)


@pytest.mark.parametrize(
    ("text", "wrong", "change"),
    [
        (
            CONFIGURATION.format("Float", "256", "1", "500", "1"),
            [
                "scale_a has the shape (256,); RowWise needs (256, 1)",
                "scale_b has the shape (500,); RowWise needs (1, 500)",
            ],
            ["scale_a.view(256, 1)", "scale_b.view(1, 500)"],
        ),
        (
            CONFIGURATION.format("Float8_e8m0fnu", "256, 32", "32, 1", "500, 32", "32, 1"),
            ["scale_b has 16000 elements; BlockWise 1x32 needs 16384: 384 are missing"],
            ["scale_b: cute.copy(scaled, formats.mxfp8()).scales has 16384 elements"],
        ),
        (  # more scales than any size with these rows needs: no change is known
            CONFIGURATION.format("Float8_e8m0fnu", "256, 32", "32, 1", "600, 32", "32, 1"),
            ["scale_b has 19200 elements; BlockWise 1x32 needs 16384: 2816 are too many"],
            [],
        ),
        (
            CONFIGURATION.format("Float8_e8m0fnu", "256, 32", "32, 1", "512, 32", "1, 512"),
            ["scale_b has the strides (1, 512); BlockWise 1x32 needs it contiguous"],
            [],
        ),
        (
            CONFIGURATION.format("Float", "256, 8", "8, 1", "8, 500", "1, 8"),
            ["scale_a has the strides (8, 1); BlockWise 1x128 needs it outer-dim-major"],
            ["scale_a: formats.fp8(block=(1, 128), scales='mn_major') keeps these scales with stride 1 along M"],
        ),
        (
            CONFIGURATION.format("Float", "256, 1", "1, 1", "500, 1", "1, 1"),
            ["scale_b has the shape (500, 1); RowWise needs (1, 500)"],
            ["scale_b.t(), with the shape (1, 500)"],
        ),
        (
            CONFIGURATION.format("Half", "256, 1", "1, 1", "1, 500", "500, 1"),
            ["no recipe has these types: a Float8_e4m3fn, b Float8_e4m3fn, scale_a Half, scale_b Half"],
            [],
        ),
        (
            SHORT.format("256, 8", "4, 8"),
            ["scale_b has the shape (4, 8); BlockWise1x128, BlockWise128x128 needs (8, 4)"],
            ["scale_b.t(), with the shape (8, 4)"],
        ),
        (
            CONFIGURATION.format("Float", "256, 1", "1, 1", "500, 1", "1, 1").replace(".size", "[0].size"),
            ["scale_b has the shape (500, 1); RowWise needs (1, 500)"],
            ["scale_b.t(), with the shape (1, 500)"],
        ),
        (SHORT.format("256, 1", "1, 500"), [], []),
    ],
)
def test_a_scaled_product_is_compared_with_its_recipes(text: str, wrong: list[str], change: list[str]) -> None:
    (reading,) = readings_of(text)
    assert [found.text for found in reading.broken] == wrong
    assert len(reading.changes) == len(change)
    assert all(made.startswith(said) for made, said in zip(reading.changes, change, strict=True))
    assert "break no rule" not in str(reading)
    if not wrong:
        assert reading.missing == ("the condition that failed: all numbers of the text fit rowwise",)


def test_the_number_of_scales_that_is_offered_is_the_one_of_the_copy() -> None:
    x = np.ones((500, 1024), np.float32)
    scaled = cute.copy(x, formats.mxfp8(scales="linear"))
    assert cute.copy(scaled, formats.mxfp8()).scales.size == 16384


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("scale_b must be swizzled to SWIZZLE_32_4_4 format", "the call does not pass swizzle_b = SWIZZLE_32_4_4"),
        ("For Blockwise scaling both scales should be contiguous", "they refuse a slice or a transposed view"),
    ],
)
def test_demands_of_pytorch_on_scales(text: str, says: str) -> None:
    answer = str(cute.explain(f"ValueError: {text}"))
    assert says in answer
    assert "What to do (not tried)" in answer and "A change that works" not in answer


def test_padding_is_not_offered_if_it_gives_another_number() -> None:
    text = "For Blockwise scaling scale_a should have 16384 elements, got: 12000; M = 375, K = 1024, mxfp8"
    (reading,) = [one for one in readings_of(text) if one.kind.startswith("An error")]
    assert reading.changes == ()
    said = "\n".join(reading.meaning)
    assert "need 12288 scales" in said and "are missing" not in said
    assert "look at the shape of the operand" in said
    (fits,) = [one for one in readings_of(text.replace("16384", "12288")) if one.kind.startswith("An error")]
    assert len(fits.changes) == 1
