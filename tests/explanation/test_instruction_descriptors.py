"""Instruction descriptors of tcgen05.mma in pasted texts."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py.atom import mma_atom
from cute_py.errors import TmemError, UnknownNameError
from cute_py.machine.tensor_memory.instruction_descriptor import InstructionDescriptor

ATOMS = [
    ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,256,K,MN>", "f16", (128, 256, 16), "f16", "f32"),
    ("SM100_MMA_TF32_SS<tfloat32_t,tfloat32_t,float,64,8,K,K>", "tf32", (64, 8, 8), "tf32", "f32"),
    ("SM100_MMA_S8_SS<int8_t,uint8_t,int32_t,128,32,K,K>", "i8", (128, 32, 32), "s8", "s32"),
]


@pytest.mark.parametrize(("name", "kind", "extents", "a", "d"), ATOMS)
def test_what_an_atom_makes_is_read(name: str, kind: str, extents: tuple[int, int, int], a: str, d: str) -> None:
    atom = mma_atom(name)
    assert atom.idesc is not None
    found = InstructionDescriptor(atom.idesc, kind)
    assert (found.m, found.n, found.k) == extents
    assert (found.a_type, found.d_type) == (a, d)
    assert found.b_major == name.rsplit(",", 1)[1].rstrip(">")
    assert not found.check()


def test_a_paste_with_a_kind() -> None:
    said = str(cute.explain("idesc = 0x08400010 of tcgen05.mma.cta_group::1.kind::tf32"))
    assert "type of A = 0; kind::tf32 has 2 (tf32)" in said


def test_a_paste_without_a_kind() -> None:
    said = str(cute.explain("instruction descriptor 0x08400090"))
    assert "of kind::f16: D 128 x 256 of f32, K = 16" in said
    assert "the value also fits kind::f8f6f4" in said


def test_bits_that_no_field_holds() -> None:
    assert "0x800000, which must be 0" in InstructionDescriptor(0x08C00010, "f16").explain()


def test_values_that_are_no_descriptors() -> None:
    with pytest.raises(TmemError, match="32 bits"):
        InstructionDescriptor(1 << 32)
    with pytest.raises((UnknownNameError, ValueError)):
        InstructionDescriptor(0, "f32")
