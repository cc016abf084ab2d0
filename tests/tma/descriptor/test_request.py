"""What a request accepts: integers of any origin, and nothing else."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy
import pytest

from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.descriptor.data_types import (
    Im2ColWideMode,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
)
from cute_py.tma.descriptor.request import ENUM_OF, TensorMapIm2col, TensorMapTiled
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE


def test_integers_of_any_origin_are_the_same() -> None:
    from_numpy = TensorMapTiled(
        numpy.int32(6),  # type: ignore[arg-type]
        numpy.uint64(0x1000),  # type: ignore[arg-type]
        numpy.array([512, 1024]),  # type: ignore[arg-type]
        [1024],  # type: ignore[arg-type]
        (numpy.int8(64), 128),  # type: ignore[arg-type]
        iter((1, 1)),  # type: ignore[arg-type]
        swizzle=TensorMapSwizzle.B128,
    )
    assert from_numpy == TILED
    assert hash(from_numpy) == hash(TILED)
    assert all(type(size) is int for size in from_numpy.global_dim)


def test_enums_by_number() -> None:
    got = replace(TILED, data_type=11, interleave=2, swizzle=1, l2_promotion=3, oob_fill=1)
    assert got.data_type is TensorMapDataType.TFLOAT32
    assert got.interleave is Interleave.B32
    assert got.swizzle is TensorMapSwizzle.B32
    assert got.l2_promotion is L2Promotion.B256
    assert got.oob_fill is OobFill.NAN_REQUEST_ZERO_FMA
    assert replace(WIDE, mode=1).mode is Im2ColWideMode.W128
    assert replace(TILED, swizzle=Interleave.B32).swizzle is TensorMapSwizzle.B64


def test_numbers_out_of_range_stay_numbers() -> None:
    assert replace(TILED, swizzle=77).swizzle == 77
    assert replace(TILED, data_type=-1).data_type == -1


def test_element_strides_are_ones_if_left_out() -> None:
    assert TILED.element_strides == (1, 1)
    assert IM2COL.element_strides == WIDE.element_strides == (1, 1, 1, 1)


@each_of(
    ("name", "value", "message"),
    [
        ("global_address", 1.0, "global_address must be an integer, got float 1.0"),
        ("global_address", float("nan"), "global_address must be an integer, got float nan"),
        ("global_address", True, "global_address must be an integer, got bool True"),
        ("global_address", None, "global_address must be an integer, got NoneType None"),
        ("global_address", "0x1000", "global_address must be an integer, got str '0x1000'"),
        ("data_type", 6.0, "data_type must be an integer, got float 6.0"),
        ("swizzle", None, "swizzle must be an integer, got NoneType None"),
        ("interleave", None, "interleave must be an integer, got NoneType None"),
        ("global_dim", 512, "global_dim must be a sequence of integers, got int 512"),
        ("global_dim", (512, 2.5), "global_dim[1] must be an integer, got float 2.5"),
        ("global_dim", (512, numpy.float32(4)), "global_dim[1] must be an integer, got "),
        ("global_dim", "ab", "global_dim must be a sequence of integers, got str 'ab'"),
        ("global_dim", numpy.array(4), "global_dim must be a sequence of integers, got ndarray array(4)"),
        ("global_strides", numpy.array([[1024]]), "global_strides[0] must be an integer, got ndarray array([1024])"),
        ("box_dim", (True, 1), "box_dim[0] must be an integer, got bool True"),
        ("box_dim", None, "box_dim must be a sequence of integers, got NoneType None"),
        ("element_strides", (1, None), "element_strides[1] must be an integer, got NoneType None"),
    ],
)
def test_what_is_no_integer_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError) as caught:
        replace(TILED, **{name: value})
    assert caught.value.headline.startswith(message)


def test_requests_are_values() -> None:
    assert pickle.loads(pickle.dumps(TILED)) == TILED
    assert len({TILED, replace(TILED), IM2COL, WIDE}) == 3
    with pytest.raises((FrozenInstanceError, AttributeError)):
        TILED.swizzle = 0  # type: ignore[misc]


def test_rank_and_width() -> None:
    assert (TILED.rank, IM2COL.rank, TILED.element_bits) == (2, 4, 16)
    for number in (None, 99):
        with pytest.raises(InvalidValueError, match=f"data_type = {number}; must be a known element format"):
            _ = replace(TILED, data_type=number).element_bits


def test_wide_and_im2col_convert() -> None:
    assert WIDE.as_im2col().pixel_box_lower_corner == (-1, 0)
    assert WIDE.as_im2col().as_wide() == WIDE
    flat = TensorMapIm2col(6, 0, (64, 4), (128,), (), (), 8, 8)
    with pytest.raises(
        InvalidValueError, match="an im2col-wide map needs a corner along W, but this map has no corners"
    ):
        flat.as_wide()


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("data_type", (6, TensorMapDataType.FLOAT16, "FLOAT16", "float16", "half", "CU_TENSOR_MAP_DATA_TYPE_FLOAT16")),
        ("data_type", (numpy.float16, numpy.dtype("f2"), as_dtype("f16"), "DATA_TYPE_FLOAT16")),
        ("swizzle", (3, "B128", "128B", "128b", "SWIZZLE_128B", "CU_TENSOR_MAP_SWIZZLE_128B")),
        ("swizzle", (4, "B128_ATOM_32B", "128B_ATOM_32B", "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B")),
        ("interleave", (0, "NONE", "none", "CU_TENSOR_MAP_INTERLEAVE_NONE")),
        ("interleave", (1, "B16", "16B", "INTERLEAVE_16B", "CU_TENSOR_MAP_INTERLEAVE_16B")),
        ("l2_promotion", (2, "B128", "128B", "L2_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_128B", "L2_PROMOTION_128B")),
        ("oob_fill", (1, "NAN_REQUEST_ZERO_FMA", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA")),
    ],
)
def test_enums_in_any_spelling(name: str, spellings: tuple[Any, ...]) -> None:
    assert len({replace(TILED, **{name: value}) for value in spellings}) == 1
    for value in spellings:
        assert type(getattr(replace(TILED, **{name: value}), name)) is ENUM_OF[name]


@pytest.mark.parametrize("name", sorted(ENUM_OF.keys() - {"mode"}))
def test_a_name_that_no_member_has_lists_those_that_are(name: str) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} = '129B' is not a known name\n  known : "):
        replace(TILED, **{name: "129B"})


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("swizzle", "CU_TENSOR_MAP_L2_PROMOTION_L2_128B"),
        ("swizzle", "INTERLEAVE_32B"),
        ("interleave", "CU_TENSOR_MAP_SWIZZLE_32B"),
        ("l2_promotion", "SWIZZLE_128B"),
        ("oob_fill", "CU_TENSOR_MAP_INTERLEAVE_NONE"),
    ],
)
def test_a_name_of_another_enum_is_refused(field: str, name: str) -> None:
    """B128 is a member of two of them: the driver's prefix says of which."""
    with pytest.raises(InvalidValueError, match=f"{field} = '{name}' is not a known name"):
        TensorMapTiled("f16", 0x1000, (64, 64), (128,), (64, 8), **{field: name})
