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
)  # fmt: skip


@each_of("case", CASES, ids=lambda case: case.name)
def test_the_cause_of_a_paste(case: Case) -> None:
    said = cute.explain(case.text)
    assert [part for part in case.says if part not in said] == []
    assert [part for part in case.never if part in said] == []
