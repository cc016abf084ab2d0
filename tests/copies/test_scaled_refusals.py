"""What copies with a format, a cast or an index refuse on a device: the error, its rule and its hint, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.copies.scaled.operands import expect_unique, scaled_work
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.formats import ScaledTensor
from tests.copies.test_scaled_operands import numbers, unset

BF16 = ml_dtypes.bfloat16


def refusals() -> dict[str, tuple[Callable[[], Any], type[CuteError], str, str | None, str | None]]:
    """What is done, its error, and the headline, the rule and the hint of it."""
    x, form = numbers((64, 96)), formats.mxfp8()
    out, nv = unset(form, (64, 96)), unset(formats.nvfp4(), (64, 96), 1.0)
    column, wide = unset(formats.mxfp8(axis=0), (64, 96)), np.zeros((64, 96))
    fixed = numbers((64, 96))
    fixed.flags.writeable = False
    table = np.zeros((2, 64), np.int64)
    batch = cute.copy(np.ones((2, 64, 96), np.float32), form)
    apart = ScaledTensor(
        np.zeros((64, 256), out.data.dtype)[:, : out.data.shape[1] * 2 : 2], out.scales, form, None, (64, 96)
    )
    device, cast = "device_format", "cast=True converts"
    value, kind = InvalidValueError, InvalidTypeError
    rows2 = "a source whose rows are contiguous"
    return {
        "format": (
            lambda: scaled_work(x, form),
            kind,
            "a Format has no memory",
            None,
            "ScaledTensor(data, scales, format, shape=(M, K))",
        ),
        "format source": (
            lambda: scaled_work(form, x),
            kind,
            "a Format has no memory",
            None,
            "ScaledTensor(data, scales, format, shape=(M, K))",
        ),
        "fill": (lambda: scaled_work(x, out, fill="a"), kind, "fill must be a number, got 'a'", None, None),
        "requantize": (
            lambda: scaled_work(x, out, requantize=True),
            value,
            "requantize=True",
            device,
            "two copies: dequantise, then quantise",
        ),
        "both": (
            lambda: scaled_work(x, x, rows=[0], pages=[0]),
            value,
            "rows and pages can't be combined, because a table of pages is already an index of rows",
            None,
            None,
        ),
        "pages into": (
            lambda: scaled_work(x, x, pages=[0], into_rows=[0]),
            value,
            "pages and into_rows together",
            device,
            "one of them",
        ),
        "pages quantised": (
            lambda: scaled_work(x, out, pages=[0]),
            value,
            "pages in a quantising copy",
            device,
            "rows=, with a table of pages as an index of rows",
        ),
        "mixed": (
            lambda: scaled_work(x, (out, x)),
            value,
            "outputs that are not all ScaledTensors",
            device,
            "a tuple of ScaledTensors, or one array",
        ),
        "two arrays": (
            lambda: scaled_work(x, (x, x)),
            value,
            "outputs that are not all ScaledTensors",
            device,
            "a tuple of ScaledTensors, or one array",
        ),
        "no source": (lambda: scaled_work(None, out), kind, "the source must be an array, got None", None, None),
        "no destination": (
            lambda: scaled_work(x, None),
            kind,
            "the destination must be an array, got None",
            None,
            None,
        ),
        "by columns": (
            lambda: scaled_work(np.asfortranarray(x), unset(form, (2, 96)), rows=[0, 1]),
            value,
            "rows of a source stored by columns",
            device,
            rows2,
        ),
        "cast by columns": (
            lambda: scaled_work(np.asfortranarray(x), np.zeros((2, 96), np.float32), rows=[0, 1], cast=True),
            value,
            "rows of a source stored by columns",
            device,
            rows2,
        ),
        "entries": (
            lambda: scaled_work(x, out, into_rows=[0, 1]),
            value,
            "into_rows has 2 entries; must have 64, one for each row of the one output",
            None,
            None,
        ),
        "array entries": (
            lambda: scaled_work(x, x.copy(), into_rows=[0, 1]),
            value,
            "into_rows has 2 entries; must have 64, one for each row",
            None,
            None,
        ),
        "into several": (
            lambda: scaled_work(x[:2], (out, column), into_rows=[0, 1]),
            value,
            "into_rows has 2 entries; must have 2, one for each row of the one output",
            None,
            None,
        ),
        "shape": (
            lambda: scaled_work(x[:63], out),
            value,
            "the source has the shape (63, 96) and the destination (64, 96); they must be equal",
            None,
            None,
        ),
        "rows shape": (
            lambda: scaled_work(x, out, rows=[0]),
            value,
            "the source has the shape (1, 96) and the destination (64, 96); they must be equal",
            None,
            None,
        ),
        "columns": (
            lambda: scaled_work(x[:, :64], out),
            value,
            "the source has the shape (64, 64) and the destination (64, 96); they must be equal",
            None,
            None,
        ),
        "into shape": (
            lambda: scaled_work(x[:1, :64], out, into_rows=[3]),
            value,
            "the source has the shape (64, 64) and the destination (64, 96); they must be equal",
            None,
            None,
        ),
        "total": (
            lambda: scaled_work(x, unset(formats.nvfp4(), (64, 96))),
            value,
            "a format with an unknown tensor scale",
            device,
            "ScaledTensor(..., tensor_scale=), computed from the largest magnitude of the tensor",
        ),
        "dtype": (
            lambda: scaled_work(x, wide),
            value,
            "source dtype bfloat16 differs from destination dtype float64",
            "dtype",
            cast,
        ),
        "array shape": (
            lambda: scaled_work(x, x[:63].copy()),
            value,
            "the source has the shape (64, 96) and the destination (63, 96); they must be equal",
            None,
            None,
        ),
        "scalar": (
            lambda: scaled_work(np.array(1.0), x, rows=[0]),
            value,
            "source dtype float64 differs from destination dtype bfloat16",
            "dtype",
            cast,
        ),
        "no mode": (
            lambda: scaled_work(np.array(1.0), np.zeros(3), rows=[0]),
            value,
            "rows, into_rows and pages index arrays of at least one mode",
            None,
            None,
        ),
        "page elements": (
            lambda: scaled_work(wide, np.zeros((3, 96)), pages=[0, 1]),
            value,
            "the destination has 288 elements; must have 192",
            None,
            None,
        ),
        "page gaps": (
            lambda: scaled_work(np.zeros((3, 4, 8)), np.zeros((2, 4, 16))[:, :, :8], pages=[0, 1]),
            value,
            "pages into a destination with gaps",
            device,
            "a dense destination",
        ),
        "row shape": (
            lambda: scaled_work(x, np.zeros((3, 96), BF16), rows=[0, 1]),
            value,
            "the destination has the shape (3, 96); must be (2, 96)",
            None,
            None,
        ),
        "inner": (
            lambda: scaled_work(wide[:, ::2], np.zeros((1, 48)), rows=[0]),
            value,
            "rows of a source with strides (96, 2)",
            device,
            "rows whose elements are contiguous",
        ),
        "inner of the destination": (
            lambda: scaled_work(np.zeros((4, 48)), wide[:1, ::2], rows=[0]),
            value,
            "rows of a destination with strides (96, 2)",
            device,
            "rows whose elements are contiguous",
        ),
        "index dtype": (
            lambda: scaled_work(x, out, rows=np.zeros(64, np.int16)),
            kind,
            "rows has elements of int16; must be int32 or int64",
            None,
            None,
        ),
        "index shape": (
            lambda: scaled_work(x, out, rows=table),
            value,
            "rows has the shape (2, 64) and strides (64, 1); must be a dense list",
            None,
            None,
        ),
        "index gaps": (
            lambda: scaled_work(x, out, rows=np.zeros(128, np.int64)[::2]),
            value,
            "rows has the shape (64,) and strides (2,); must be a dense list",
            None,
            None,
        ),
        "index widths": (
            lambda: scaled_work(x, out, rows=np.zeros(64, np.int32), into_rows=np.arange(64)),
            kind,
            "rows and into_rows have different element types; the types must be equal",
            None,
            None,
        ),
        "index range": (
            lambda: scaled_work(x, out, rows=[0] * 63 + [64]),
            value,
            "rows[63] = 64; must be -1 to 63",
            "row_index",
            None,
        ),
        "into range": (
            lambda: scaled_work(x[:1], out, into_rows=[64]),
            value,
            "into_rows[0] = 64; must be -1 to 63",
            "row_index",
            None,
        ),
        "fill of 8 bytes": (
            lambda: scaled_work(wide, wide[:1].copy(), rows=[-1], fill=1.0),
            value,
            "fill = 1.0 for elements of 8 bytes",
            device,
            "fill=0 for them",
        ),
        "read-only": (lambda: scaled_work(x, fixed), value, "the destination is read-only", "read_only", None),
        "overlap": (
            lambda: scaled_work(x, x[:2], rows=[3, 4]),
            value,
            "a destination overlaps the source or another destination",
            "overlap",
            None,
        ),
        "overlapping outputs": (
            lambda: scaled_work(x, (out, out)),
            value,
            "a destination overlaps the source or another destination",
            "overlap",
            None,
        ),
        "overlapping index": (
            lambda: scaled_work(np.zeros((4, 2), np.int64), table[:1, :2], rows=table[0, :1]),
            value,
            "a destination overlaps the source or another destination",
            "overlap",
            None,
        ),
        "batch": (
            lambda: scaled_work(np.ones((2, 64, 96), np.float32), batch),
            value,
            "a destination of 3 modes",
            device,
            "scaled tensors (M, K); copy each matrix of a batch separately",
        ),
        "packing": (
            lambda: scaled_work(x, unset(formats.mxfp6(packing="dense"), (64, 96))),
            value,
            "elements of e2m3, packed as dense",
            device,
            "packing='bytes', or a copy on the host",
        ),
        "element": (
            lambda: scaled_work(x, np.zeros((64, 96), ml_dtypes.float6_e3m2fn), cast=True),
            value,
            "elements of type e3m2",
            device,
            "casts between float32, bf16, f16, e4m3, e5m2, e2m1; other types on the host",
        ),
        "data": (
            lambda: scaled_work(x, apart),
            value,
            "data of the destination with strides (256, 2)",
            device,
            "data whose rows are contiguous",
        ),
        "scaled pages": (
            lambda: scaled_work(out, x, pages=[0]),
            value,
            "pages, into_rows or several outputs of a ScaledTensor",
            device,
            "rows=, and one destination",
        ),
        "scaled into": (
            lambda: scaled_work(out, x, into_rows=[0]),
            value,
            "pages, into_rows or several outputs of a ScaledTensor",
            device,
            "rows=, and one destination",
        ),
        "scaled outputs": (
            lambda: scaled_work(out, (x, wide)),
            value,
            "pages, into_rows or several outputs of a ScaledTensor",
            device,
            "rows=, and one destination",
        ),
        "filled rows": (
            lambda: scaled_work(out, unset(form, (2, 96)), rows=[0, -1], fill=2.0),
            value,
            "fill = 2.0 for masked rows of a ScaledTensor",
            device,
            "fill=0",
        ),
        "transposed rows": (
            lambda: scaled_work(column, unset(formats.mxfp8(axis=0), (2, 96)), rows=[0, 1]),
            value,
            "rows of a ScaledTensor that is transposed, or whose blocks have several rows",
            device,
            "block=(1, 32)",
        ),
        "rows of one block": (
            lambda: scaled_work(
                unset(formats.fp8("column"), (64, 96)), unset(formats.fp8("column"), (2, 96)), rows=[0, 1]
            ),
            value,
            "rows of a ScaledTensor that is transposed, or whose blocks have several rows",
            device,
            "block=(1, 32)",
        ),
        "scaled shape": (
            lambda: scaled_work(out, unset(form, (63, 96))),
            value,
            "the source has the shape (64, 96) and the destination (63, 96); they must be equal",
            None,
            None,
        ),
        "scaled rows": (
            lambda: scaled_work(out, unset(form, (63, 96)), rows=[0]),
            value,
            "the source has the shape (1, 96) and the destination (63, 96); they must be equal",
            None,
            None,
        ),
        "tensor scales": (
            lambda: scaled_work(nv, unset(formats.nvfp4(), (64, 96), 2.0)),
            value,
            "the source has the tensor scale 1.0 and the destination 2.0; they must be equal",
            "tensor_scale",
            None,
        ),
        "dequantised rows": (
            lambda: scaled_work(out, x, rows=[0] * 64),
            value,
            "dequantised rows of a ScaledTensor",
            device,
            "a ScaledTensor as the destination, which you dequantise afterwards",
        ),
        "dequantised shape": (
            lambda: scaled_work(out, x[:3].copy()),
            value,
            "the source has the shape (64, 96) and the destination (3, 96); they must be equal",
            None,
            None,
        ),
        "dequantised into": (lambda: scaled_work(out, fixed), value, "the destination is read-only", "read_only", None),
        "unknown type": (
            lambda: scaled_work(out, np.zeros((64, 96), np.int8)),
            value,
            "elements of type int8",
            device,
            "casts between float32, bf16, f16, e4m3, e5m2, e2m1; other types on the host",
        ),
        "twice": (
            lambda: expect_unique(np.array([[1, 2], [-1, 1]])),
            value,
            "into_rows lists row 1 2 times; must list it once",
            "row_index",
            None,
        ),
    }


@pytest.mark.parametrize("name", refusals())
def test_refused_in_words(name: str) -> None:
    call, error, headline, rule, hint = refusals()[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    if rule == "device_format":
        headline, hint = f"a GPU copy does not support {headline}", f"use {hint}"
    assert (caught.value.headline, caught.value.hint) == (headline, hint)
    assert caught.value.rule == (rule or headline)


def test_flags_are_truths() -> None:
    x = numbers((4, 32))
    for name in ("cast", "requantize"):
        with pytest.raises(InvalidTypeError, match=name):
            scaled_work(x, x.copy(), **{name: 1})  # type: ignore[arg-type]
