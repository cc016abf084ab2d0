"""Element types of ml_dtypes: named, copied bit by bit, and found again in arrays that have lost their name."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import InvalidTypeError, InvalidValueError

TYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu"]
MOVED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]
"""Those that CuTe moves by their own name; the others as `internal_dtype="uint8"`."""


def every_pattern(name: str) -> np.ndarray[Any, Any]:
    """64 x 64 elements with all bit patterns of 8 bits (of the upper byte, for 16), NaNs too."""
    kind = np.dtype(getattr(ml_dtypes, name))
    bits = np.arange(64 * 64).astype(np.uint8)
    whole = bits if kind.itemsize == 1 else bits.astype(np.uint16) << 8
    return whole.view(kind).reshape(64, 64)


@pytest.mark.parametrize("name", TYPES)
def test_the_tensor_has_the_type(name: str) -> None:
    x = every_pattern(name)
    tensor = cute.make_tensor(x)
    assert tensor.element_type.name == name
    assert np.array(tensor(1, 2)).tobytes() == x[1, 2].tobytes()


@pytest.mark.parametrize("name", TYPES)
def test_every_bit_pattern_is_copied(name: str) -> None:
    x = every_pattern(name)
    internal = None if name in MOVED else "uint8"
    options = {} if internal is None else {"internal_dtype": internal}
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight), **options)
    result = cute.tma.copy(atom, x)
    assert result.equal
    assert result.destination.dtype == x.dtype
    assert result.destination.tobytes() == x.tobytes()


def test_an_array_that_lost_its_type() -> None:
    x = every_pattern("bfloat16")
    nameless = x.view("V2")
    with pytest.raises(InvalidValueError, match="no GPU element type"):
        cute.make_tensor(nameless)
    assert cute.make_tensor(nameless, dtype="bfloat16")(0, 3) == x[0, 3]
    with pytest.raises(InvalidTypeError) as refusal:
        cute.make_tensor(nameless, dtype="float8_e5m2")
    assert str(refusal.value) == (
        "an array of |V2 (2 bytes) can't hold float8_e5m2\n  stored as : float8_e5m2 (1 byte)"
    )


def test_elements_narrower_than_a_byte_are_a_byte_in_numpy() -> None:
    x = np.arange(16).astype(ml_dtypes.int4)
    assert x.itemsize == 1
    assert cute.make_tensor(x).element_type.bits == 4
    assert str(cute.make_tensor(cute.make_gmem_ptr(0x1000, "int4"), (16,)).engine).startswith("gmem_subptr[4b]")
