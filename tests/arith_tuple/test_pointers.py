"""Pointers: their texts, how they move, what they become when recast."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py
from cute_py import (
    Int,
    Pointer,
    Swizzle,
    make_gmem_ptr,
    make_ptr,
    make_rmem_ptr,
    make_smem_ptr,
    make_tensor,
    make_tmem_ptr,
    smem_ptr_flag,
)
from cute_py.dtypes import DTYPES
from cute_py.errors import InvalidTypeError, InvalidValueError, TensorAccessError

KINDS = [d for d in DTYPES if d.bits in (1, 2, 4, 6, 8, 16, 32, 64)]


@given(st.sampled_from(KINDS), st.integers(0, 2**40), st.integers(0, 1000), st.integers(0, 1000))
def test_moving_adds_up(dtype: Any, address: int, a: int, b: int) -> None:
    pointer = make_gmem_ptr(address, dtype)
    assert (pointer + a) + b == pointer + (a + b)
    assert (pointer + a) + (-a) == pointer
    here = pointer + a
    assert (here.address - address) * 8 + here.bit == a * dtype.bits
    assert 0 <= here.bit < 8


@pytest.mark.parametrize(
    ("pointer", "text"),
    [
        (make_gmem_ptr(0x1000, "float16") + 4, "gmem_ptr[16b](0x1008)"),
        (make_gmem_ptr(0, "float16"), "gmem_ptr[16b]((nil))"),
        (make_smem_ptr(0x400, np.float32), "smem_ptr[32b](0x400)"),
        (make_smem_ptr(0, "half", Swizzle(3, 4, 3)), "Sw<3,4,3>_smem_ptr[16b]((nil))"),
        (make_smem_ptr(0, "half", Swizzle(0, 4, 3)), "smem_ptr[16b]((nil))"),
        (make_smem_ptr(0x400, "e2m1", Swizzle(3, 4, 3)) + 3, "Sw<3,4,3>_smem_subptr[4b](0x401.4)"),
        (make_rmem_ptr(0x10, "int8"), "ptr[8b](0x10)"),
        (make_rmem_ptr(0x10, "uint1") + 9, "subptr[1b](0x11.1)"),
        (make_ptr(0x10, "float64"), "ptr[64b](0x10)"),
        (make_gmem_ptr(0x1230, "float6_e2m3fn") + 1, "gmem_subptr[6b](0x1230.6)"),
        (make_gmem_ptr(0x1000, "bool") + 3, "gmem_ptr[1b](0x1003)"),
        (make_gmem_ptr(8, "float64") + (-2), "gmem_ptr[64b](0xfffffffffffffff8)"),
        (make_tmem_ptr(0x100020, "float32"), "tmem_[32b](0x0010.0020)"),
        (make_tmem_ptr(0x100020, "float16") + 3, "tmem_[16b](0x8010.0021)"),
        (make_tmem_ptr(0x100020, "e2m3") + 3, "tmem_[6b](0x6010.0020)"),
        (make_tmem_ptr(0x100020, "uint64") + 3, "tmem_[64b](0x0010.0026)"),
        (smem_ptr_flag(16), "smem_ptr[16b](unset)"),
        (smem_ptr_flag(16).upcast(2), "smem_ptr[32b](unset)"),
        (smem_ptr_flag(16).downcast(4), "smem_ptr[4b](unset)"),
        (make_gmem_ptr(0x1000, "half").recast("float32"), "gmem_ptr[32b](0x1000)"),
        ((make_gmem_ptr(0x1000, "uint4") + 1).recast("uint2"), "gmem_subptr[2b](0x1000.4)"),
    ],
)
def test_texts(pointer: Any, text: str) -> None:
    assert str(pointer) == text
    assert pickle.loads(pickle.dumps(pointer)) == pointer
    assert eval(repr(pointer), vars(cute_py)) == pointer


def test_elements_are_refused_with_a_reason() -> None:
    for pointer in (make_gmem_ptr(0x1000, "half"), make_tmem_ptr(0, "float32")):
        tensor = make_tensor(pointer, (4, 5))
        with pytest.raises(TensorAccessError, match="can't be read"):
            tensor(1, 2)
        with pytest.raises(TensorAccessError, match="this tensor is read-only"):
            tensor[1, 2] = 3


def test_a_whole_byte_does_not_start_inside_a_byte() -> None:
    with pytest.raises(InvalidValueError, match="bit 4"):
        (make_gmem_ptr(0x1000, "uint4") + 1).recast("uint8")
    assert (make_gmem_ptr(0x1000, "uint4") + 2).recast("uint8").address == 0x1001


@pytest.mark.parametrize("make", [make_gmem_ptr, make_smem_ptr, make_rmem_ptr, make_ptr, make_tmem_ptr])
def test_bad_addresses(make: Any) -> None:
    with pytest.raises(InvalidValueError, match="-1"):
        make(-1, "half")
    for bad in (1.5, True, "0x10", None):
        with pytest.raises(InvalidTypeError):
            make(bad, "half")
    with pytest.raises(InvalidValueError, match="halve"):
        make(0, "halve")


def test_a_tensor_memory_address_has_32_bits() -> None:
    make_tmem_ptr(2**32 - 1, "half")
    with pytest.raises(InvalidValueError):
        make_tmem_ptr(2**32, "half")


@pytest.mark.parametrize("bad", [1.5, True, "1", None, (1,)])
def test_pointers_move_by_integers(bad: Any) -> None:
    for pointer in (make_gmem_ptr(0, "half"), make_tmem_ptr(0, "half")):
        with pytest.raises(InvalidTypeError, match=r"a step of \w+\[16b\]\(.*\) must be an integer"):
            pointer + bad


def test_flags_and_swizzles_are_checked() -> None:
    for bad, kind in (
        (0, InvalidValueError),
        (-1, InvalidValueError),
        (True, InvalidTypeError),
        (1.5, InvalidTypeError),
    ):
        with pytest.raises(kind):
            smem_ptr_flag(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError):
        make_smem_ptr(0, "half", "Sw<3,4,3>")  # type: ignore[arg-type]


def test_a_flag_is_a_static_zero() -> None:
    assert isinstance(smem_ptr_flag(16), Int)
    assert smem_ptr_flag(16) == 0


def test_parts() -> None:
    pointer = Pointer("gmem", 0x1000, "uint4", bit=4)  # type: ignore[arg-type]
    assert (pointer.space, pointer.address, pointer.bit, pointer.element_type.bits) == ("gmem", 0x1000, 4, 4)
