"""Layouts and descriptors of operands in shared memory."""

from __future__ import annotations

import re
from typing import Any

import pytest

import cute_py as cute
from cute_py import Int, make_smem_ptr, make_tensor, tile_to_shape
from cute_py.atom import (
    SmemDescriptor,
    gmma_layout,
    make_gmma_desc,
    make_umma_desc,
    sm100_smem_selector,
    ss_smem_selector,
    umma_layout,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError
from tests.each import each_of

NAMES = [f"{major}_{swizzle}" for major in ("K", "MN") for swizzle in ("INTER", "SW32", "SW64", "SW128")]


def operand(name: str, dtype: str, mn: int, k: int, address: int = 0x1000) -> Any:
    layout = tile_to_shape(gmma_layout(name, dtype), (Int(mn), Int(k)))
    return make_tensor(make_smem_ptr(address, cute.dtypes.as_dtype(dtype)), layout)


def descriptor(major: str, name: str, dtype: str, mn: int, k: int) -> SmemDescriptor:
    """Of the part of one instruction: 64 by 32 bytes."""
    depth = 256 // cute.dtypes.as_dtype(dtype).bits
    tile = cute.local_tile(operand(name, dtype, mn, k), (Int(64), Int(depth)), (0, 0))
    return make_gmma_desc(major, tile)


@each_of("name", NAMES)
@each_of("dtype", ["float16", "bfloat16"])
def test_a_descriptor_reaches_every_byte_of_its_tile(name: str, dtype: str) -> None:
    """Offsets of 16-byte rows by the descriptor's fields, written out as the PTX ISA has them, against the layout."""
    major, swizzle = name.split("_")
    found = descriptor(major, name, dtype, 64, 64)
    places = cute.offsets(tile_to_shape(gmma_layout(name, dtype), (Int(64), Int(64)))) * 2
    lbo, sbo = found.leading_byte_offset * 16, found.stride_byte_offset * 16
    width = {"INTER": 16, "SW32": 32, "SW64": 64, "SW128": 128}[swizzle]
    bits = width.bit_length() - 5
    swizzled = cute.Swizzle(bits, 4, 3)
    for mn in range(0, 64, 1 if major == "K" else 8):
        for k in range(0, 16, 8 if major == "K" else 1):
            if major == "K":
                inside, along = (k * 2) % width, (k * 2) // width
                at = mn // 8 * sbo + mn % 8 * width + inside + along * lbo
            else:
                inside, along = (mn * 2) % width, (mn * 2) // width
                steps = (lbo, sbo) if swizzle != "INTER" else (sbo, lbo)
                at = k // 8 * steps[1] + k % 8 * width + inside + along * steps[0]
            assert places[mn, k] == swizzled(at), (mn, k)


def test_fields_are_encoded_and_decoded() -> None:
    found = descriptor("K", "K_SW128", "float16", 128, 64)
    assert (found.start_address, found.stride_byte_offset) == (0x1000 // 16, 64)
    assert SmemDescriptor.decode(int(found), found.kind) == found
    assert int(SmemDescriptor.decode(int(found), found.kind)) == int(found)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda: gmma_layout("K_SW127", "half"),
            InvalidValueError,
            "'K_SW127' names an unknown swizzle\n  known : INTER, SW32",
        ),
        (lambda: umma_layout("N_SW128", "half"), InvalidValueError, "'N_SW128'"),
        (lambda: gmma_layout("K_SW128", "hal"), InvalidValueError, "unknown element type 'hal'"),
        (
            lambda: ss_smem_selector("K", "half", 63, 64),
            StaticAssertError,
            "BLK_MN0 must be a multiple of 8.\n  BLK_MN0 : 63",
        ),
        (lambda: sm100_smem_selector("Q", "half", 64, 64), InvalidValueError, "must be 'K' or 'MN'"),
        (lambda: make_gmma_desc("K", 3), InvalidTypeError, "a descriptor needs a tensor, got int 3"),
        (
            lambda: make_gmma_desc("K", cute.make_identity_tensor((8, 8))),
            StaticAssertError,
            "GMMA Descriptors can only be constructed on smem.",
        ),
        (
            lambda: make_umma_desc("K", cute.make_identity_tensor((8, 8))),
            StaticAssertError,
            "UMMA Descriptors can only be constructed on smem.",
        ),
    ],
)
def test_what_has_no_descriptor_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert said in str(caught.value)


def test_what_an_offset_means_is_found_by_its_name() -> None:
    said = cute.explain("LBO")
    assert "K-major, swizzled   : unused" in said
    assert descriptor("MN", "MN_SW64", "half", 128, 64).explain("MN").count("swizzle width") == 1


NUMBERS_AT_RUN_TIME = [  # family, major, swizzle, layout in 16-bit elements; C++ gives bits, or does not compile
    ("GMMA", "MN", 3, "((_64,2),(_8,_2)):((_1,_1024),(_64,_512))", 0x4000004000800000),
    ("UMMA", "MN", 3, "((_64,2),(_8,_2)):((_1,_1024),(_64,_512))", 0x4000404000800000),
    ("GMMA", "MN", 3, "((_64,_2),(_8,2)):((_1,_1024),(_64,_512))", "Expected K-size 256/sizeof_bits<T>"),
    ("UMMA", "MN", 3, "((_64,_2),(_8,2)):((_1,_1024),(_64,_512))", 0x4000404000800000),
    ("GMMA", "MN", 3, "((_64,_2),(_8,_2)):((_1,1024),(_64,_512))", "GMMA_MN Layout: Expected stride failure."),
    ("UMMA", "MN", 3, "((_64,_2),(_8,_2)):((_1,_1024),(_64,512))", "UMMA_MN Layout: Expected stride failure."),
    ("GMMA", "MN", 0, "((_8,_1),(_8,_2)):((_1,128),(_8,_256))", "GMMA_MN Layout: Expected stride failure."),
    ("UMMA", "MN", 0, "((_8,_1),(_8,_2)):((_1,128),(_8,_256))", 0x0000400000200000),
    ("UMMA", "MN", 0, "((_8,_2),(_8,_2)):((_1,128),(_8,_256))", "UMMA_MN Layout: Expected stride failure."),
    ("GMMA", "K", 3, "((_8,8),_16):((_64,_512),_1)", "GMMA_K Layout: Expected MN-size multiple of 8."),
    ("UMMA", "K", 3, "((_8,8),_16):((_64,_512),_1)", "UMMA_K Layout: Expected MN-size multiple of 8."),
    ("UMMA", "K", 3, "((_8,_8),_16):((_64,512),_1)", "UMMA_K Layout: Expected stride failure."),
    ("GMMA", "K", 0, "((_8,_8),(_8,_2)):((_8,_64),(_1,512))", "GMMA_K Layout: Expected stride failure."),
    ("GMMA", "K", 3, "((_8,_1),_16):((_64,512),_1)", 0x4000000000010000),
]


@each_of(("family", "major", "bits", "text", "found"), NUMBERS_AT_RUN_TIME)
def test_a_descriptor_is_made_of_static_numbers(
    family: str, major: str, bits: int, text: str, found: int | str
) -> None:
    """CUTLASS 4.2.0, g++ 12."""
    layout = cute.ComposedLayout(cute.Swizzle(bits, 4, 3), cute.smem_ptr_flag(16), cute.parse(text))
    tile = cute.make_tensor(cute.make_smem_ptr(0, "half"), layout)
    make = make_gmma_desc if family == "GMMA" else make_umma_desc
    if isinstance(found, int):
        assert int(make(major, tile)) == found
    else:
        with pytest.raises(StaticAssertError, match=re.escape(found)):
            make(major, tile)
