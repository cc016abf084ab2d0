"""Names of atoms, in full and short; searches; what is refused, and how; what a look-up costs."""

from __future__ import annotations

import collections
import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from cute_py.atom import COPY_ATOMS, MMA_ATOMS, copy_atom, find_mma_atoms, mma_atom
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError
from tests.each import each_of
from tests.oracle.records import rows

GMMA = "SM90_64x128x16_F32BF16BF16_SS"
UMMA = "SM100_MMA_F16BF16_SS"


@pytest.mark.parametrize("name", [f"{GMMA}<{args}>" for args in ("K,K", "K", "", "GMMA::Major::K, GMMA::Major::K")])
def test_trailing_defaults_and_namespaces_may_be_left_out(name: str) -> None:
    full = f"{GMMA}<GMMA::Major::K,GMMA::Major::K,GMMA::ScaleIn::One,GMMA::ScaleIn::One>"
    assert mma_atom(name) == mma_atom(full) == mma_atom(GMMA)
    assert mma_atom(name).name == full


def test_types_are_written_as_cpp_or_as_here() -> None:
    by_cpp = mma_atom(f"{UMMA}<bfloat16_t,cute::bfloat16_t,float,128,64,UMMA::Major::K,UMMA::Major::MN>")
    assert mma_atom(f"{UMMA}<bfloat16,bf16,float32,128,64,K,MN>") == by_cpp
    assert str(by_cpp.layouts["B"]) == "(_1,(_64,_16)):(_0,(_1,_64))"
    assert mma_atom("SM100_MMA_F16BF16_SS<half,half,float,64,8,K,MN>").idesc == 0x4030010


def test_a_row_says_what_the_operation_is() -> None:
    atom = mma_atom("SM80_16x8x16_F32BF16BF16F32_TN")
    assert str(atom.layoutA_TV) == "((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))"
    assert (atom.arch, atom.family, atom.shape_mnk) == ("sm80", "sm80", (16, 8, 16))
    assert (atom.a_dtype, atom.d_dtype) == (as_dtype("bfloat16"), as_dtype("float32"))
    assert atom.ptx == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    assert atom.registers == {"A": (4, "uint32"), "B": (2, "uint32"), "C": (4, "float32"), "D": (4, "float32")}


def test_atoms_are_values() -> None:
    for atom in (mma_atom(GMMA), mma_atom(f"{UMMA}<half,half,float,64,8,K,K>"), copy_atom("SM75_U32x4_LDSM_N", "half")):
        for other in (copy.deepcopy(atom), pickle.loads(pickle.dumps(atom))):
            assert other == atom
            assert hash(other) == hash(atom)
        with pytest.raises(AttributeError):
            setattr(atom, dataclasses.fields(atom)[0].name, None)


def test_every_recorded_operation_is_a_row_of_its_family() -> None:
    recorded = {row["op"]: (row["arch"], row["family"]) for row in rows("mma_atoms") if row["status"] == "ok"}
    assert {name: (MMA_ATOMS[name].arch, MMA_ATOMS[name].family) for name in recorded} == recorded
    counts = collections.Counter(atom.family for atom in MMA_ATOMS.values())
    assert counts["sm90_gmma"] == counts["sm90_gmma_sparse"] == 320  # 40 kinds by 8 N that GMMA has by itself
    assert counts["sm90_gmma_ext"] == counts["sm90_gmma_sparse_ext"] == 736
    assert sum(counts.values()) == len(MMA_ATOMS) == 2255


def test_every_recorded_copy_is_a_row() -> None:
    assert [row["op"] for row in rows("copy_atoms") if row["op"] not in COPY_ATOMS] == []


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"a": "bfloat16", "arch": "sm80"}, ["SM80_16x8x8_F32BF16BF16F32_TN", "SM80_16x8x16_F32BF16BF16F32_TN"]),
        ({"family": "sm61"}, ["SM61_DP4A", "SM61_DP2A"]),
        ({"family": "sm120", "k": 64, "sparse": False}, ["SM120::BLOCKSCALED::SM120_16x8x64_TN_VS"]),
        ({"arch": "sm_90a", "c": "float64", "k": 16}, ["SM90_16x8x16_F64F64F64F64_TN", "SM90_16x8x16_C64C64C64C64_TN"]),
    ],
    ids=str,
)
def test_atoms_are_found_by_what_they_are(wanted: dict[str, Any], names: list[str]) -> None:
    assert {atom.op.split("::")[-1] for atom in find_mma_atoms(**wanted)} <= {n.split("::")[-1] for n in names}
    assert find_mma_atoms(**wanted) != []


@each_of(
    ("call", "error", "said"),
    [
        (
            lambda: mma_atom("SM80_16x8x16_F32F16F16F32_TT"),
            InvalidValueError,
            "CuTe has no MMA operation named 'SM80_16x8x16_F32F16F16F32_TT'\n  nearest : SM80_16x8x16_F32F16F16F32_TN",
        ),
        (
            lambda: copy_atom("SM75_U32x4_LDSM_X", "half"),
            InvalidValueError,
            "CuTe has no copy operation named 'SM75_U32x4_LDSM_X'\n  nearest : SM75_U32x4_LDSM_N",
        ),
        (lambda: mma_atom(3), InvalidTypeError, "mma_atom takes the name of an operation, got int 3"),
        (lambda: mma_atom(f"{GMMA}<K,K,One,One,One>"), InvalidValueError, f"{GMMA} takes 4 template arguments, got 5"),
        (lambda: mma_atom(f"{GMMA}<K,Q>"), InvalidValueError, "tnspB is 'Q'; must be one of K, MN"),
        (lambda: mma_atom(f"{GMMA}<K"), InvalidValueError, "its <...> does not close"),
        (lambda: mma_atom(UMMA), InvalidValueError, "needs the template arguments a_type, b_type, c_type, M, N"),
        (lambda: copy_atom("SM75_U32x4_LDSM_N", "floot"), InvalidValueError, "unknown element type 'floot'"),
        (
            lambda: find_mma_atoms(arch="sm91"),
            InvalidValueError,
            "CuTe has no MMA operation for 'sm91'\n  architectures : any,",
        ),
        (lambda: find_mma_atoms(m=0), InvalidValueError, "an extent of an MMA is 0; must be at least 1"),
        (
            lambda: mma_atom(f"{UMMA}<half,half,float,96,64,K,K>"),
            StaticAssertError,
            "SM100_MMA_F16BF16 M-mode size should be 64 or 128 for 1 CTA cluster MMA.",
        ),
        (
            lambda: mma_atom(f"{UMMA}<half,half,float,128,12,K,K>"),
            StaticAssertError,
            "SM100_MMA_F16BF16 N-mode size should be a multiple of 8 between 8 and 256.",
        ),
        (
            lambda: mma_atom(f"{UMMA}<float,half,float,128,16,K,K>"),
            StaticAssertError,
            "SM100_MMA_F16BF16_SS supports 16bit types",
        ),
        (
            lambda: mma_atom("SM100_MMA_F16BF16_TS<half,half,float,128,16,MN,K>"),
            StaticAssertError,
            "SM100_MMA_F16BF16 A from TMEM can't be transposed",
        ),
        (
            lambda: mma_atom("SM100_MMA_TF32_SS_SCALED<tfloat32,tfloat32,float,128,64,K,K,0>"),
            StaticAssertError,
            "MMA_Traits not implemented for this MMA_Operation.",
        ),
    ],
)
def test_what_is_no_atom_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert said in str(caught.value)


def test_signs_change_the_descriptor_but_where_cute_drops_them() -> None:
    def idesc(op: str, *signs: str) -> Any:
        return mma_atom(f"{op}<int8,int8,int32,256,64,K,K{''.join(',' + s for s in signs)}>").idesc

    assert idesc("SM100_MMA_S8_2x1SM_TS", "Neg", "One") == idesc("SM100_MMA_S8_2x1SM_TS") | 1 << 13
    one = "SM100_MMA_S8_TS<int8,int8,int32,128,64,K,K"
    assert mma_atom(f"{one},Neg,Neg>").idesc == mma_atom(f"{one}>").idesc


@pytest.mark.parametrize(
    ("name", "k", "factor", "vector", "count", "register"),
    [
        ("SM120_16x8x64_TN_VS", 64, "float_ue8m0_t", 32, 2, "uint16"),
        ("SM120_16x8x64_TN_VS", 64, "float_ue8m0_t", 16, 2, "uint32"),
        ("SM120_16x8x64_TN_VS", 64, "float_ue4m3_t", 32, 4, "uint16"),
        ("SM120_16x8x64_TN_VS", 64, "float_ue4m3_t", 0, 4, "uint32"),
        ("SM120_SPARSE_16x8x128_TN_VS", 128, "float_ue8m0_t", 64, 2, "uint16"),
        ("SM120_SPARSE_16x8x128_TN_VS", 128, "float_ue8m0_t", 32, 2, "uint32"),
        ("SM120_SPARSE_16x8x128_TN_VS", 128, "float_ue4m3_t", 16, 4, "uint32"),
        ("SM120_SPARSE_16x8x128_TN_VS", 128, "float_ue4m3_t", 32, 4, "uint32"),
    ],
)
def test_the_type_of_the_factors_names_the_instruction_of_sm120(
    name: str, k: int, factor: str, vector: int, count: int, register: str
) -> None:
    """As in cute/arch/mma_sm120*.hpp; ptxas 13.0 refuses 4X of ue8m0, 2X of ue4m3 and 8X."""
    atom = mma_atom(f"{name}<float_e2m1_t,float_e2m1_t,float,{factor},{vector}>")
    assert f".scale_vec::{count}X.m16n8k{k}." in atom.ptx
    assert atom.registers["SFA"] == atom.registers["SFB"] == (1, register)


@pytest.mark.parametrize(
    ("name", "has", "lacks", "said"),
    [
        (GMMA, ("sm_90a", "sm90", "sm90a"), ("sm_90", "sm_100a", "sm80"), "has it      : sm_90a"),
        ("SM80_16x8x16_F32F16F16F32_TN", ("sm_80", "sm_90", "sm120"), ("sm_75", "sm75"), "sm_80 or newer"),
        (f"{UMMA}<half_t,half_t,float,128,64,K,K>", ("sm_100a", "sm_103f", "sm100"), ("sm_100", "sm_90a"), "sm_110"),
        ("SM100_MMA_S8_SS<int8,int8,int32,128,64,K,K>", ("sm_100a", "sm_110a"), ("sm_103a",), "sm_100a or sm_110a"),
        ("UniversalFMA<float,float,float,float>", ("sm_70", "sm90"), (), ""),
    ],
)
def test_an_architecture_that_lacks_an_atom_is_refused(
    name: str, has: tuple[str, ...], lacks: tuple[str, ...], said: str
) -> None:
    for arch in has:
        assert mma_atom(name, arch=arch) == mma_atom(name)
    for arch in lacks:
        with pytest.raises(InvalidValueError, match=f"{arch} lacks {name.split('<')[0]}") as caught:
            mma_atom(name, arch=arch)
        assert said in str(caught.value)
    with pytest.raises(InvalidValueError, match="'sm_12' is not a known architecture"):
        mma_atom(name, arch="sm12")


def test_copies_have_architectures_too() -> None:
    assert copy_atom("SM75_U32x4_LDSM_N", "half", arch="sm_80").op == "SM75_U32x4_LDSM_N"
    for name, arch in (
        ("SM90_U32x4_STSM_N", "sm_80"),
        ("SM100_TMEM_LOAD_32dp32b1x", "sm_120a"),
        ("SM100_U8x8_LDSM_T", "sm_100"),
    ):
        with pytest.raises(InvalidValueError, match=f"{arch} lacks {name}"):
            copy_atom(name, arch=arch)


def test_rows_are_made_when_asked_for() -> None:
    """Importing makes none; all of them are made in a bounded time."""
    code = (
        "import cute_py.atom.mma_atoms as m\n"
        "from tests.pace import within\n"
        "assert m._operations.cache_info().currsize == 0\n"
        "with within(200):\n"
        "    assert len(list(m.MMA_ATOMS.values())) == 2255\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
