"""Requests from arrays and from headers of .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.dtypes import DTYPES
from cute_py.errors import CuteError, FileFormatError, InvalidTypeError, InvalidValueError
from cute_py.tma.descriptor.data_types import TensorMapDataType, format_of, format_row
from cute_py.tma.descriptor.plain_data import request_of_array, request_of_npy
from cute_py.tma.descriptor.violations import violations


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_the_request_addresses_the_array(shape: list[int], data: st.DataObject) -> None:
    """Element (i, j, ...) of the array lies where the request's strides say, in any order of the axes."""
    order = data.draw(st.permutations(range(len(shape))))
    array = numpy.zeros([shape[axis] for axis in order], numpy.uint64).transpose(numpy.argsort(order))
    assert list(array.shape) == shape
    request = request_of_array(array.shape, array.dtype, array.shape, strides=array.strides)
    assert request.box_dim == request.global_dim
    pairs = zip(request.global_dim, (8, *request.global_strides), strict=True)
    wanted = sorted((size, step) for size, step in zip(array.shape, array.strides, strict=True) if size > 1)
    assert sorted((size, step) for size, step in pairs if size > 1) == wanted


def test_row_major_and_column_major() -> None:
    rows = request_of_array((1024, 512), "float16", (128, 64), swizzle=3, address=4096)
    assert (rows.global_dim, rows.global_strides, rows.box_dim) == ((512, 1024), (1024,), (64, 128))
    columns = request_of_array((1024, 512), "float16", (128, 64), strides=(2, 2048))
    assert (columns.global_dim, columns.global_strides, columns.box_dim) == ((1024, 512), (2048,), (128, 64))
    assert violations(rows) == []


def test_axes_of_size_one() -> None:
    tall = request_of_array((1024, 1), "float32", (64, 1))
    assert (tall.global_dim, tall.global_strides) == ((1024, 1), (16,))
    assert violations(tall) == []


def test_every_type_has_its_format_or_a_reason() -> None:
    for row in DTYPES:
        try:
            found = format_of(row)
        except InvalidValueError as problem:
            assert not 8 <= row.bits <= 64 or row.kind == "complex" or row.name.startswith("float8"), problem
        else:
            assert format_row(found).bits == row.bits
    assert format_of("bfloat16") is TensorMapDataType.BFLOAT16
    assert format_of(ml_dtypes.float8_e5m2) is TensorMapDataType.UINT8
    assert format_of("tf32") is TensorMapDataType.TFLOAT32
    assert format_of(numpy.int64) is TensorMapDataType.INT64


@pytest.mark.parametrize("array", [numpy.zeros((32, 64), "f4"), numpy.asfortranarray(numpy.zeros((32, 64), "f8"))])
def test_npy_files(tmp_path: Path, array: Any) -> None:
    path = tmp_path / "a.npy"
    numpy.save(path, array)
    request = request_of_npy(path, (8, 4), address=4096)
    assert request == request_of_array(array.shape, array.dtype, (8, 4), strides=array.strides, address=4096)
    assert violations(request) == []


def test_files_that_are_no_npy(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for content in (b"", b"\x93NUMPY", b"hello" * 50, b"\x93NUMPY\x01\x00\x10\x00" + b"{" * 40):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"is not a \.npy file of numbers"):
            request_of_npy(path, (8,))
    with pytest.raises(FileFormatError, match="can't read"):
        request_of_npy(tmp_path / "none.npy", (8,))
    numpy.save(path, numpy.array([{}], object), allow_pickle=True)
    with pytest.raises(FileFormatError):
        request_of_npy(path, (8,))


@pytest.mark.parametrize(
    ("shape", "box", "options", "error", "message"),
    [
        ((4, 4), (4,), {}, InvalidValueError, "shape has 2 axes, box 1, strides 2"),
        ((), (), {}, InvalidValueError, "shape has 0 axes"),
        ((4, 4), (4, 4), {"strides": (16,)}, InvalidValueError, "strides 1"),
        ((4, 4), (4, 4), {"strides": (64, 8)}, InvalidValueError, "no axis is contiguous"),
        ((4, 4), (4, 4), {"strides": (-16, 4)}, InvalidValueError, "must not be negative"),
        ((4, 4.5), (4, 4), {}, InvalidTypeError, "shape\\[1\\] must be an integer, got float 4.5"),
        (4, (4, 4), {}, InvalidTypeError, "shape must be a sequence of integers, got int 4"),
    ],
)
def test_what_is_refused(shape: Any, box: Any, options: dict[str, Any], error: type[CuteError], message: str) -> None:
    with pytest.raises(error, match=message):
        request_of_array(shape, "float32", box, **options)


def test_types_without_a_format() -> None:
    with pytest.raises(InvalidValueError, match="no tensor map format for elements of type complex64"):
        request_of_array((4,), "complex64", (4,))
