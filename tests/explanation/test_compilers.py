"""Assertions of CuTe without a message, as g++ and nvcc print them: the condition is that of the macro's argument."""
# ruff: noqa: E501, the texts of compilers keep their lines

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py.explanation.compiler_pastes import read_compiler

GEMM = """\
include/cute/algorithm/gemm.hpp: In instantiation of ‘void cute::gemm(const MMA_Atom<MMAOperation>&, Tensor<Engine, Layout>&, const Tensor<DEngine, DLayout>&, const Tensor<TB, BLayout>&, const Tensor<TC, CLayout>&) [with TA = ArrayEngine<float, 8>; ALayout = Layout<tuple<C<4>, C<2> >, tuple<C<1>, C<4> > >; TB = ArrayEngine<float, 16>; BLayout = Layout<tuple<C<8>, C<2> >, tuple<C<1>, C<8> > >; TC = ArrayEngine<float, 16>; CLayout = Layout<tuple<C<4>, C<4> >, tuple<C<1>, C<4> > >]’:
mine.cpp:7:134:   required from here
include/cute/config.hpp:154:64: error: static assertion failed
  154 | #define CUTE_STATIC_ASSERT_V(x,...) static_assert(decltype(x)::value, ##__VA_ARGS__)
      |                                                                ^~~~~
include/cute/algorithm/gemm.hpp:247:3: note: in expansion of macro ‘CUTE_STATIC_ASSERT_V’
  247 |   CUTE_STATIC_ASSERT_V(size<0>(B) == size<1>(C));  // BN == CN
"""
FRAGMENT = """\
include/cute/atom/mma_traits.hpp(141): error: static assertion failed
    static_assert(decltype(size(rA) == Int<RegNumA>{})::value);
    ^
          detected during:
            instantiation of "void cute::mma_unpack(const AnyMMATraits &, cute::Tensor<TD, DLayout> &, const cute::Tensor<TA, ALayout> &, const cute::Tensor<TB, BLayout> &, const cute::Tensor<TC, CLayout> &) [with AnyMMATraits=cute::MMA_Traits<cute::SM80_16x8x16_F32F16F16F32_TN>, ALayout=cute::Layout<cute::tuple<cute::_4>, cute::tuple<cute::C<1>>>, BLayout=cute::Layout<cute::tuple<cute::_4>, cute::tuple<cute::C<1>>>, CLayout=cute::Layout<cute::tuple<cute::_4>, cute::tuple<cute::C<1>>>]" at line 104 of include/cute/atom/mma_atom.hpp
"""
MAJOR = (
    "a.out: include/cute/atom/copy_traits_sm90_tma.hpp:969: auto cute::detail::make_tma_copy_desc(): Assertion "
    "`gmem_prob_stride[0] == 1 && \"Majorness of smem doesn't match majorness of gmem\"' failed."
)


def test_the_condition_of_a_macro_is_its_argument() -> None:
    said = cute.explain(GEMM)
    assert "condition: size<0>(B) == size<1>(C)\n" in said
    assert "asserted in gemm.hpp, line 247" in said
    assert "size<0>(B) = 8 and size<1>(C) = 4; they must be equal" in said
    assert "#define" not in said


def test_a_fragment_of_another_size_is_counted() -> None:
    said = cute.explain(FRAGMENT)
    assert "condition: size(rA) == Int<RegNumA>{}\n" in said
    assert "A: the fragment has 4 values, but SM80_16x8x16_F32F16F16F32_TN needs 8 per thread" in said
    assert "B: the fragment" not in said


def test_a_descriptor_is_no_fragment_of_a_wrong_size() -> None:
    shared = FRAGMENT.replace(
        "SM80_16x8x16_F32F16F16F32_TN", "SM90_64x8x16_F32F16F16_SS<GMMA::Major::K,GMMA::Major::K>"
    )
    assert "the fragment has" not in str(
        read_compiler(
            shared.replace("ALayout=cute::Layout<cute::tuple<cute::_4>", "ALayout=cute::Layout<cute::tuple<cute::_1>")
        )[0]
    )


def test_the_message_of_a_run_time_assertion_has_its_reason() -> None:
    assert "has no stride for mode 0 of the global tensor, so this stride must be 1 element" in " ".join(
        cute.explain(MAJOR).split()
    )


FEW_VALUES = """\
include/cute/atom/copy_atom.hpp: In instantiation of ‘struct cute::TiledCopy<cute::Copy_Atom<cute::OPERATION, cutlass::half_t>, cute::Layout<cute::tuple<cute::C<32>, cute::C<4> >, cute::tuple<cute::C<1>, cute::C<32> > >, cute::tuple<cute::C<32>, cute::C<4> > >’:
mine.cpp:7:150:   required from here
include/cute/config.hpp:154:64: error: static assertion failed: TiledCopy uses too few vals for selected CopyAtom
"""


@pytest.mark.parametrize(
    ("operation", "says", "change"),
    [
        ("SM75_U32x4_LDSM_N", "needs 32 threads of 8 values each", "SM75_U32x2_LDSM_N: 4 values of 16 bits per thread"),
        (
            "UniversalCopy<cutlass::uint128_t>",
            "needs 1 thread of 8 values",
            "UniversalCopy<uint64_t>: 4 values of 16 bits",
        ),
    ],
)
def test_gcc_names_a_tiled_copy_by_its_arguments(operation: str, says: str, change: str) -> None:
    said = cute.explain(FEW_VALUES.replace("OPERATION", operation))
    assert "the tiled copy has 32 threads of 4 values each" in said
    assert says in said and change in said


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (
            "Copy_Traits: src failed to vectorize into registers. Layout is incompatible with this CopyOp.",
            "whole registers",
        ),
        (
            "Copy_Traits: dst failed to vectorize into registers. Layout is incompatible with this CopyOp.",
            "whole registers",
        ),
        (
            "In CopyAtom, dst layout doesn't vectorize into registers. This dst layout is incompatible with this CopyOp.",
            "whole registers",
        ),
        (
            "CopyAtom: Src/Dst partitioning does not match the instruction requirement.",
            "the values that one operation moves",
        ),
        ("CopyAtom rank-mismatch.", "goes through the other modes one by one"),
        ("Expected registers in MMA_Atom::call", "descriptors of operands"),
        ("Expected desc registers in MMA_Atom::call", "descriptors of operands"),
    ],
)
def test_an_assertion_on_fragments_has_a_reason(condition: str, why: str) -> None:
    said = cute.explain(f'cute/atom/copy_traits.hpp(129): error: static assertion failed with "{condition}"')
    assert why in " ".join(said.split()) and "to do : " in said
