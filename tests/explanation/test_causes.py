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
)  # fmt: skip


@each_of("case", CASES, ids=lambda case: case.name)
def test_the_cause_of_a_paste(case: Case) -> None:
    said = cute.explain(case.text)
    assert [part for part in case.says if part not in said] == []
    assert [part for part in case.never if part in said] == []
