"""Names of CUTLASS's GEMM kernels: what each part says, and the parts that are not read."""

from __future__ import annotations

import itertools

import cute_py as cute
from cute_py.explanation.dispatch import readings_of
from tests.each import each_of

NAME = (
    "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_void_f16_128x128x64_2x1x1_0_tnn_align8_"
    "warpspecialized_cooperative_epi_tma"
)
SCALED = (
    "cutlass3x_sm100_bstensorop_gemm_ue8m0xe4m3_ue4m3xe2m1_f32_void_ue8m0xe2m1_256x128x64_0x0x1_4_tnt_align32_"
    "o_vs32_2sm_epi_tma_epiVs32t"
)


@each_of(
    ("name", "lines"),
    [
        (NAME, (
            "a GEMM for sm_90, CUTLASS 3.x; tensor cores", "instruction: 64x128x16 (M x N x K), accumulator of f32",
            "A: f16, 16 bits", "B: f16, 16 bits", "accumulator: f32, 32 bits",
            "C: void, so the kernel does not read it", "D: f16, 16 bits",
            "tile: 128x128x64 (M x N x K)", "cluster: 2x1x1, 2 CTAs",
            "stages: 0, so the builder chooses as many as fit in shared memory",
            "layout of A: t, row-major, K is contiguous", "layout of B: n, column-major, K is contiguous",
            "layout of C: n, column-major, M is contiguous; the name does not give the layout of D",
            "alignment: 8 elements, the larger alignment of A and B", "schedule: warpspecialized_cooperative",
            "epilogue: stores D by TMA, through shared memory",
        )),
        (SCALED, (
            "A: e4m3 with scales of ue8m0, 8 bits", "B: e2m1 with scales of ue4m3, 4 bits", "stages: 4",
            "cluster: 0x0x1, chosen at run time", "D: e2m1 with scales of ue8m0, 4 bits",
            "  a pair of CTAs executes an MMA (cta_group::2)",
            "epilogue: writes one scale for 32 elements of D, row-major",
            "on sm_100, M and N of the tile in the name are those of the MMA instruction",
        )),
        ("cutlass_tensorop_f16_s1688gemm_f16_256x128_32x2_nt_align8", (
            "instruction: 16x8x8 (M x N x K), accumulator of f32", "A and B: f16", "C and D: f16",
            "tile: 256x128x32 (M x N x K)", "stages: 2", "layout of B: t, row-major, N is contiguous",
        )),
        ("cutlass_simt_sgemm_128x128_8x5_nn_align1", (
            "a GEMM, CUTLASS 2.x; FMA instructions of CUDA cores", "instruction: accumulator of f32",
            "A and B: the type of the accumulator, because the name has no other type",
        )),
        ("cutlass3x_sm90_tensorop_gemm_grouped_1x128f32xe4m3_128x128f32xe4m3_f32_f32_f32_128x128x128_1x2x1_3_tnn_"
         "align16_stream_k_warpspecialized_pingpong_fp8_fastaccum_epi_nosmem", (
            "a grouped GEMM for sm_90, CUTLASS 3.x; tensor cores",
            "B: e4m3 with scales of f32 for 128x128 elements, 8 bits",
            "tile scheduler: stream-K, which splits the K of some tiles over CTAs",
            "  fast accumulation of 8-bit floats, without promotion to full float32",
            "epilogue: stores D from registers, without shared memory",
        )),
    ],
)  # fmt: skip
def test_each_part_is_read(name: str, lines: tuple[str, ...]) -> None:
    (reading,) = readings_of(name)
    assert [line for line in lines if line not in reading.meaning] == []


@each_of(
    ("name", "left"),
    [
        (NAME, None),
        ("cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8", "relu"),
        (NAME.replace("_0_tnn", "_0_new_tnn"), "new"),
        (f"{NAME}_more_parts", "more, parts"),
        (SCALED, "o"),
    ],
)
def test_parts_that_are_not_read_are_listed(name: str, left: str | None) -> None:
    (reading,) = readings_of(name)
    assert reading.missing == (() if left is None else (f"not read in the name: {left}",))


@each_of(("acc", "tile"), itertools.product(("f16", "f32"), ("64x64x64", "256x128x32")))
def test_numbers_come_from_the_name(acc: str, tile: str) -> None:
    said = cute.explain(NAME.replace("_f32_void", f"_{acc}_void").replace("128x128x64", tile))
    assert f"accumulator: {acc}," in said and f"tile: {tile} (M x N x K)" in said


def test_a_name_in_a_log_and_a_name_that_is_cut_off() -> None:
    said = cute.explain(f"Operation: {NAME}\nStatus: Success")
    assert said.startswith(f"A kernel of CUTLASS: {NAME}\n")
    (reading,) = readings_of(NAME[:60])
    assert "accumulator: f32, 32 bits" in reading.meaning and not any("tile" in line for line in reading.meaning)
