"""Prints of CuTe C++ that leave something open or hold more than one thing: what is said of them is what they hold."""

from __future__ import annotations

import pytest

import cute_py as cute

SWIZZLED = "smem_ptr[16b](0x400) o Sw<2,4,3> o _0 o (_8,_64):(_64,_1)"
"""make_tensor(make_smem_ptr(p), composition(Swizzle<2,4,3>{}, Int<0>{}, layout)): the swizzle acts on elements."""
WARP_MMA = str(cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", cute.Layout(cute.parse("(_2,_2,_1)"))))
RUN_TIME_MMA = str(cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", cute.Layout((2, 2, 1))))
TENSOR_MEMORY_MMA = str(
    cute.mma_atom("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,256,UMMA::Major::K,UMMA::Major::K>")
)
TILED_COPY = str(cute.make_tiled_copy(cute.copy_atom("DefaultCopy", "float32"), 32, 4))
COPY = str(cute.copy_atom("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "float16"))


def test_a_swizzle_of_elements_is_explained_by_the_elements() -> None:
    said = cute.explain(SWIZZLED)
    last = cute.parse(SWIZZLED).layout((7, 63))
    assert f"(7,63) -> {last}" in said and last != 511
    assert "Sw<2,4,3> on elements of 16 bits is Sw<2,5,3> on bytes, which is not a swizzle of TMA or wgmma" in said
    assert "the 64B swizzle, Sw<2,4,3> on bytes, is Sw<2,3,3> on these elements" in said


@pytest.mark.parametrize(
    "text",
    [
        "Sw<3,4,3>_smem_ptr[16b](0x400) o (_8,_64):(_64,_1)",
        "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
        "tensor<ptr<f16, smem, align<1024>> o S<3,4,3> o 0 o (8,64):(64,1)>",
        "tensor(raw_ptr(0x0000000000000400: f16, smem, align<1024>, S<3,4,3>) o (8,64):(64,1), data=\n  [[",
    ],
)
def test_a_swizzle_of_bytes_stays_one(text: str) -> None:
    said = cute.explain(text)
    assert "Sw<3,4,3> on bytes is the 128B swizzle" in said and "a tensor of coordinates" not in said


def test_a_swizzle_of_a_pointer_type_is_named() -> None:
    swizzled = "Sw<3,4,3> of the pointer permutes byte addresses"
    text = '!cute.memref<f16, smem, align<1024>, {}"((8,16),(64,1)):((64,512),(1,0))">'
    assert swizzled in cute.explain(text.format("S<3,4,3>, ")) and swizzled not in cute.explain(text.format(""))


@pytest.mark.parametrize(
    "text", ["#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>", "#ttg.slice<{dim = 0, parent = #mma}>"]
)
def test_an_encoding_of_a_name_asks_for_its_line(text: str) -> None:
    said = cute.explain(text)
    assert "the line of the module that begins #mma =" in said and "Wrong" not in said
    mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"
    assert "Missing" not in cute.explain(f"#mma = {mma}\n{text}")


def test_gaps_are_those_of_the_swizzled_offsets() -> None:
    assert "64 offsets between them are not used" in cute.explain("Sw<3,4,3> o 24 o (_8,_64):(_64,_1)")
    assert "no gaps" in cute.explain("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)")


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((2, 3), ("2 rows of 3\n", "from 0 to 5; the first row begins 0, 2, 4")),
        ((2, 3, 2), ("2 planes of 2 rows of 3\n", "from 0 to 11; the first row begins 0, 2, 4")),
        ((2, 3, 2, 2), ("4 planes of 2 rows of 3\n", "from 0 to 23; the first row begins 0, 2, 4")),
        ((5, 1, 2), ("2 planes of 5 rows of 1\n", "from 0 to 9; the first row begins 0")),
    ],
)
def test_values_of_all_planes_are_read(shape: tuple[int, ...], says: tuple[str, ...]) -> None:
    tensor = cute.make_tensor(cute.counting_iterator(0), cute.Layout(shape))
    said = cute.explain(cute.format_tensor(tensor)) + "\n"
    assert [part for part in says if part not in said] == []
    assert said.split("the first row begins ")[1].split("\n")[0] == says[1].split("begins ")[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (WARP_MMA, ["SM80_16x8x16_F16F16F16F16_TN", "SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x16_F32BF16BF16F32_TN"]),
        (TENSOR_MEMORY_MMA, ["SM100_MMA_F16BF16_SS<"]),
        (COPY, ["UniversalCopy<uint128_t>", "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"]),
    ],
)
def test_an_operation_that_the_print_does_not_name_is_not_stated(text: str, names: list[str]) -> None:
    said = cute.explain(text)
    assert said.startswith("The printed text does not name its operation. ")
    assert "operations of CuTe have these layouts, and the print does not name the operation" in said
    assert [name for name in names if name not in said] == []
    assert "SPARSE" not in said.split("\n\n")[1]


def test_a_print_with_run_time_numbers_is_read() -> None:
    """C++ prints it; its thread-value layouts do not compile."""
    said = cute.explain(RUN_TIME_MMA)
    assert "128 threads in all" in said and "2 x 2 x 1 atoms along M, N, K, 32 threads each" in said


def test_layouts_of_one_operation_name_it() -> None:
    said = cute.explain(str(cute.mma_atom("SM70_8x8x4_F32F16F16F32_TN")))
    assert said.startswith("SM70_8x8x4_F32F16F16F32_TN\n") and "these are the layouts of SM70_8x8x4_F32" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ThrMMA\n  Thr VMNK: (7,0,1,_0)\n" + WARP_MMA, "the slice of thread (7,0,1,_0) (V, M, N, K)"),
        (
            "ThrCopy\n  ThrIdx: 5\n" + TILED_COPY,
            "of thread 5",
        ),
        ("(_128,_2:_3)", "a tiler, whose part i divides mode i"),
        ("(_,1,_)", "a coordinate that keeps 2 modes and fixes the others"),
        ("(_128,64)", "8192 elements, compact (_128,64):(_1,_128)"),
        ("% LayoutA: (_2,_3):(_1,_2)", "A layout (LayoutA)"),
        ("<!--     A: (_2,_3):(_1,_2)  -->", "A layout (A)"),
        ("gmem_ptr[8b](0x400) o (2,3):(3,1)", "Elements of 8 bits, stored at"),
        ("gmem_ptr[8b](0x400) o (2,3):(3,1)", "moves 1 element, 1 byte\n"),
    ],
)
def test_parts_of_prints(text: str, says: str) -> None:
    assert says in cute.explain(text) + "\n"


@pytest.mark.parametrize(
    ("text", "says", "never"),
    [
        ("cuTensorMapEncodeIm2col returned 1", "an argument breaks a rule", "no explanation"),
        ("cuTensorMapEncodeTiled failed with error 201", "no context is current", "no explanation"),
        (
            "NVRM: Xid (PCI:0000:c1:00): 13, pid=1, name=python, Graphics SM Warp Exception on (GPC 2, TPC 4, SM 0): "
            "Illegal Instruction Encoding",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "ILLEGAL_ADDRESS",
        ),
        (
            "NVRM: Xid (PCI:0000:c1:00): 31, pid=1, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE "
            "GRAPHICS GPC0 GPCCLIENT_T1_0 faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "ILLEGAL_INSTRUCTION",
        ),
        (
            "========= Invalid __shared__ write of size 4 bytes\n=========     at k+0x90\n"
            "=========     Address 0x38010 is out of bounds",
            "a thread accessed memory outside the shared memory of its block",
            "the map's address",
        ),
    ],
)
def test_errors_of_a_running_kernel(text: str, says: str, never: str) -> None:
    said = cute.explain(text)
    assert says in said and never not in said


@pytest.mark.parametrize(
    "text",
    [
        "Sw<3,4,3> o smem_ptr[16b](0x400) o (8,64):(64,1)",
        "sA: Sw<3,4,3> o smem_ptr[16b](0x400) o (8,64):(64,1)",
        "smem_ptr[16b](0x400) o Sw<3,4,3>_smem_ptr(unset) o (8,64):(64,1)",
        "Sw<3,4,3>_smem_ptr[16b](unset) o (8,64):(64,1)",
        "smem_ptr_S<9,4,3>_16b(0x0) o (8,64):(64,1)",
    ],
)
def test_a_layout_is_not_read_without_its_swizzle(text: str) -> None:
    answer = cute.explain(f"{text}\nnext line")
    assert answer.startswith("A composition with a swizzle\n\nMissing in the text\n  not read: ")
    assert "no gaps" not in answer and "ArithTuple" not in answer


def test_a_layout_on_another_line_is_read() -> None:
    answer = cute.explain("a Sw<3,4,3> o smem_ptr[16b](0x400) o (8,64):(64,1)\nb (4,2):(2,1)")
    assert "A layout (b): (4,2):(2,1)" in answer


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("smem_ptr_16b(0x400) o (8,64):(64,1)", "smem_ptr[16b](0x400) o (8,64):(64,1)"),
        ("gmem_ptr_32b(0x400) o (8,64):(64,1)", "gmem_ptr[32b](0x400) o (8,64):(64,1)"),
        ("smem_ptr_S<3,4,3>_16b(0x400) o (8,64):(64,1)", "Sw<3,4,3>_smem_ptr[16b](0x400) o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr_16b(unset) o (8,64):(64,1)", "Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)"),
    ],
)
def test_pointers_of_cutlass_3_0(older: str, newer: str) -> None:
    assert str(cute.parse(older)) == newer and cute.explain(older) == cute.explain(newer)


@pytest.mark.parametrize(
    "traits", ["{}", "Copy_Traits<{}, C<16384>, Aux>", "cute::Copy_Traits<cute::{}, cute::C<16384>>"]
)
def test_an_atom_of_tma_is_its_operation(traits: str) -> None:
    answer = cute.explain(f"Copy_Atom<{traits.format('SM90_TMA_LOAD')}, half_t>")
    assert answer.startswith("A copy atom of SM90_TMA_LOAD\n  elements: half_t\n")
    assert ("one instruction moves 16384 bits, 2048 bytes" in answer) == ("C<16384>" in traits)


def test_the_traits_of_an_atom_name_its_operation() -> None:
    plain = cute.explain("Copy_Atom<SM75_U32x4_LDSM_N, half_t>")
    assert cute.explain("Copy_Atom<Copy_Traits<SM75_U32x4_LDSM_N>, half_t>") == plain
