"""Copies with formats, indices and casts on the host: results, what is written and what is left, refusals in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout, formats
from cute_py.copies.machine_copy import run_on_machine, scaled_launches
from cute_py.copies.scaled.host import (
    computes,
    expect_once,
    fill_byte,
    index_of_rows,
    same_bytes,
    scaled_copy,
    takes,
)
from cute_py.copies.scaled.operands import scaled_work
from cute_py.copies.scaled.prepared import PreparedScaledCopy, copy_by_device
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.formats import Format, ScaledTensor
from cute_py.gpu.device import Device
from tests.copies.test_scaled_operands import unset


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def raw(array: np.ndarray) -> list[int]:
    return np.ascontiguousarray(array).view(np.uint8).ravel().tolist()


class Exported:
    """An array of another library, in host memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_equal_is_found_by_comparison_when_it_is_first_used() -> None:
    """A byte that is changed after the copy is seen, in rows that an index names as well."""
    x, form = numbers((40, 96)), formats.mxfp8()
    index = np.random.default_rng(1).permutation(60)[:40]
    left_out = int(np.setdiff1d(np.arange(60), index)[0])
    for part in ("data", "scales"):
        for rows, into_rows in ((40, None), (60, index)):
            into = cute.copy(np.zeros((rows, 96), np.float32), form)
            assert cute.copy(x, into, into_rows=into_rows).equal
            result = cute.copy(x, into, into_rows=into_rows)
            place = 0 if into_rows is None or part == "scales" else (int(index[3]), 5)
            changed = getattr(into, part).view(np.uint8)
            if part == "scales" and into_rows is not None:
                changed[...] ^= 1
            else:
                changed[place] ^= 1
            assert not result.equal
    out = np.zeros((60, 96), np.float32)
    first, second = (cute.copy(x, out, into_rows=index) for _ in range(2))
    out[left_out] = 7
    assert first.equal
    out[index[3], 5] += 1
    assert not second.equal
    assert first.equal, "compared once"


def test_results_name_steps_and_bytes() -> None:
    x, form, linear = numbers((40, 96)), formats.mxfp8(), formats.mxfp8(scales="linear")
    scaled, nv = cute.copy(x, form), cute.copy(x, formats.nvfp4(tensor_scale=False))
    into = unset(form, (40, 96))
    y, half = np.zeros((40, 96), np.float32), np.zeros((40, 96), np.float16)
    rows = np.zeros((60, 96), np.float32)
    results = {
        "quantise": cute.copy(x, into),
        "reorder the scales": cute.copy(scaled, unset(linear, (40, 96))),
        "dequantise, quantise": cute.copy(nv, unset(form, (40, 96)), requantize=True),
        "dequantise": cute.copy(scaled, y),
        "cast": cute.copy(x, half, cast=True),
        "rows": cute.copy(x, rows, into_rows=range(40)),
        "quantise, scatter 2 rows": cute.copy(x[:3], unset(form, (9, 96)), into_rows=[1, -1, 0]),
    }
    assert {name: one.plan for name, one in results.items()} == {name: name for name in results}
    assert all(one.equal is True for one in results.values())
    assert results["quantise"].bytes == into.data.nbytes + into.scales.nbytes
    assert results["dequantise"].bytes == y.nbytes
    assert results["cast"].bytes == half.nbytes
    assert results["rows"].bytes == x.nbytes
    assert results["quantise, scatter 2 rows"].bytes == cute.copy(x[:3], linear).nbytes
    assert results["rows"].destination is rows and results["quantise"].destination is into


def test_a_destination_that_overlaps_itself_is_refused() -> None:
    """Rows without a distance would overwrite each other."""
    x, form = numbers((4, 32)), formats.mxfp8(scales="linear")
    target = unset(form, (4, 32))
    data = np.lib.stride_tricks.as_strided(target.data, target.data.shape, (0, target.data.strides[1]))
    rows = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (4, 32), (16, 4))
    for source, destination in (
        (x, ScaledTensor(data, target.scales, form, None, (4, 32))),
        (cute.copy(x, form), rows),
    ):
        with pytest.raises(InvalidValueError, match="overlaps itself") as refused:
            cute.copy(source, destination)
        assert refused.value.rule == "overlap"


def test_equal_looks_at_the_memory_after_the_copy() -> None:
    x, form = numbers((4, 32)), formats.mxfp8(scales="linear")
    target, y = unset(form, (4, 32)), np.zeros((4, 32), np.float32)
    into, out = cute.copy(x, target), cute.copy(cute.copy(x, form), y)
    target.data.view(np.uint8)[3, 31] ^= 1
    assert into.equal is False and out.equal is True
    out = cute.copy(cute.copy(x, form), y)
    y[0, 0] += 1
    assert out.equal is False


def test_what_a_copy_takes() -> None:
    x, form = numbers((4, 32)), formats.mxfp8()
    scaled = cute.copy(x, form)
    for given in ((x, form), (x, (form, form)), (scaled, x), (x, scaled)):
        assert takes(*given, {}) and computes(*given, {})
    assert not takes(x, (scaled, scaled), {}) and computes(x, (scaled, scaled), {})
    assert not takes(x, (), {}) and not takes(x, (form, x), {}) and computes(x, (form, x), {})
    for options in ({"rows": []}, {"cast": True}, {"fill": 0.0}, {"pages": 0}):
        assert takes(x, x, options) and computes(x, x, options)  # type: ignore[arg-type]
    assert not takes(x, x, {"rows": None, "cast": False}) and not computes(x, x, {"rows": None, "cast": False})


def test_rows_that_are_named_are_written_and_no_others() -> None:
    x, y = numbers((5, 8)), np.full((7, 8), 9.0, np.float32)
    result = cute.copy(x, y, into_rows=[6, -1, 0, 2, -1])
    assert result.equal
    assert [np.array_equal(y[i], x[j]) for i, j in ((6, 0), (0, 2), (2, 3))] == [True] * 3
    assert (y[[1, 3, 4, 5]] == 9).all()
    z = np.full((3, 8), 9.0, np.float32)
    assert cute.copy(x, z, rows=[4, -1, 4], fill=-1.5).equal
    assert np.array_equal(z[0], x[4]) and np.array_equal(z[2], x[4]) and (z[1] == -1.5).all()
    cute.copy(x, z, rows=[-1, -1, 0])
    assert (z[:2] == 0).all()
    both = np.full((4, 8), 9.0, np.float16)
    assert cute.copy(x, both, rows=[4, 3], into_rows=[3, 0], cast=True).equal
    assert np.array_equal(both[3], x[4].astype(np.float16)) and np.array_equal(both[0], x[3].astype(np.float16))
    assert (both[1:3] == 9).all()


@pytest.mark.parametrize(
    "form", [formats.mxfp8(), formats.nvfp4(scales="8x4"), formats.mxfp4(scales="linear")], ids=repr
)
def test_rows_of_a_scaled_tensor_are_gathered_as_bytes(form: Format) -> None:
    x = numbers((50, 96))
    whole, index = cute.copy(x, form), [49, 7, -1, 7]
    some = cute.copy(whole, form, rows=index)
    assert (some.shape, some.tensor_scale) == ((4, 96), whole.tensor_scale)
    wanted = whole.dequantize()[index]
    wanted[2] = 0
    assert np.array_equal(some.dequantize(), wanted)
    width = form.data_shape(1, 96)[1] // (2 if form.packing == "pairs" else 1)
    assert raw(some.data[1, :width]) == raw(whole.data[7, :width])
    grid = some.format.scale_index(4, 96)(np.array([2]), np.arange(0, 96, form.block[1]))
    assert not some.scales.view(np.uint8).reshape(-1)[grid].any()


@pytest.mark.parametrize("fill", [None, 2.0])
def test_rows_of_data_with_padding_below_it(fill: float | None) -> None:
    """The result has its own padding, of zeros, and the padding of the source is not read."""
    form = formats.mxfp8(padding=(8, 64), scales="linear")
    whole = cute.copy(np.ones((5, 33), np.float32), form)
    whole.data.view(np.uint8)[5:], whole.data.view(np.uint8)[:, 33:] = 0x55, 0x55
    for rows in ([4, -1], list(range(5)) * 3):
        made = cute.copy(whole, form, rows=rows, fill=fill)
        data = made.data.view(np.uint8)
        assert data.shape == (8 * -(-len(rows) // 8), 64)
        assert not data[len(rows) :].any() and not data[:, 33:].any()
        wanted = np.array([[0.0 if row < 0 and fill is None else fill if row < 0 else 1.0] for row in rows])
        assert (made.dequantize() == wanted).all()


def test_rows_scattered_into_a_scaled_tensor_leave_the_others() -> None:
    form = formats.mxfp8(scales="8x4")
    before, x = cute.copy(numbers((20, 64)), form), numbers((3, 64), np.float64)
    old = before.dequantize()
    cute.copy(x, before, into_rows=np.array([19, -1, 4]))
    new = before.dequantize()
    assert np.array_equal(new[[19, 4]], cute.copy(x, form).dequantize()[[0, 2]])
    others = [i for i in range(20) if i not in (4, 19)]
    assert np.array_equal(new[others], old[others])


def test_pages_of_any_table() -> None:
    cache = numbers((6, 4, 3))
    for table in (np.array([5, -1]), np.array([[5, 0], [-1, 2]]), np.array([[[1], [2]], [[3], [4]]])):
        size = table.shape[-1] * 4
        out = np.zeros((*table.shape[:-1], size, 3), np.float32)
        assert cute.copy(cache, out, pages=table, fill=7.0).equal
        wanted = np.where((table >= 0)[..., None, None], cache[table], 7.0).reshape(out.shape)
        assert np.array_equal(out, wanted)


@pytest.mark.parametrize("fill", [None, 0.0, 1.0, 2.0**-3, float("nan")])
def test_padding_of_the_scales(fill: float | None) -> None:
    code = {None: 0, 0.0: 0, 1.0: 127, 2.0**-3: 124}.get(fill, 255)  # type: ignore[arg-type]
    if fill == 0.0:
        code = fill_byte(0.0, formats.mxfp8())
    assert fill_byte(fill, formats.mxfp8()) == code
    assert fill_byte(fill, formats.fp8((1, 128))) == 0  # scales of float32 have no padding byte
    made = cute.copy(numbers((3, 40)), formats.mxfp8(), fill=fill)
    flat = made.scales.view(np.uint8).reshape(-1)
    used = np.zeros(flat.size, bool)
    used[made.format.scale_index(3, 40)(np.arange(3)[:, None], np.array([0, 32]))] = True
    assert (flat[~used] == code).all()
    moved = cute.copy(made, formats.mxfp8(scales="8x4"), fill=fill)
    again = moved.scales.view(np.uint8).reshape(-1)
    used = np.zeros(again.size, bool)
    used[moved.format.scale_index(3, 40)(np.arange(3)[:, None], np.array([0, 32]))] = True
    assert (again[~used] == code).all()


def test_the_same_bytes() -> None:
    first = formats.mxfp8()
    for other in (formats.mxfp8(scales="linear"), formats.mxfp8(rule="ceil"), formats.mxfp8(rule="even", scales="8x4")):
        assert same_bytes(first, other)
    for other in (
        formats.mxfp8(element="e5m2"),
        formats.mxfp8(axis=0),
        formats.mxfp8(transposed=True),
        formats.mxfp8(padding=(1, 1)),
        formats.mxfp4(),
        formats.fp8((1, 32), rule="rceil"),
    ):
        assert not same_bytes(first, other), other
    assert not same_bytes(formats.nvfp4(), formats.nvfp4(tensor_scale=False))


def test_formats_that_differ_are_listed() -> None:
    scaled = cute.copy(numbers((32, 64)), formats.mxfp8())
    with pytest.raises(InvalidValueError) as caught:
        cute.copy(scaled, formats.mxfp8(element="e5m2", axis=0))
    assert caught.value.facts["differ in"] == "element, block, axis, padding"
    assert (caught.value.facts["source"], caught.value.rule) == (scaled.format, "requantize")
    assert caught.value.hint == "requantize=True dequantises and quantises again"


def test_an_index_of_rows() -> None:
    assert index_of_rows([0, -1, 4], 5, "rows").tolist() == [0, -1, 4]
    assert index_of_rows(range(3), 3, "rows", masked=False).tolist() == [0, 1, 2]
    assert index_of_rows(np.array([[1], [0]], np.uint8), 2, "rows").shape == (2, 1)
    for index, masked, text in (
        ([0, 5, 7], True, "rows[1] = 5; must be -1 to 4"),
        ([[0, 1], [-2, 9]], True, "rows[2] = -2; must be -1 to 4"),
        ([-1], False, "rows[0] = -1; must be 0 to 4"),
    ):
        with pytest.raises(InvalidValueError) as caught:
            index_of_rows(index, 5, "rows", masked)
        assert (caught.value.headline, caught.value.rule, caught.value.facts) == (text, "row_index", {"rows": 5})
    expect_once(np.array([3, -1, -1, 2]))
    with pytest.raises(InvalidValueError, match="into_rows lists row 2 3 times; must list it once"):
        expect_once(np.array([3, 2, -1, 2, 2, -1]))


def test_memory_of_other_libraries() -> None:
    x = numbers((8, 64))
    y = np.zeros((4, 64), np.float32)
    assert cute.copy(Exported(x[::2]), Exported(y), rows=range(4)).equal
    assert np.array_equal(y, x[::2])
    turned = np.zeros((64, 8), np.float32).T
    assert cute.copy(Exported(x), Exported(turned), rows=range(8)).equal
    assert np.array_equal(turned, x)
    with pytest.raises(InvalidValueError, match="the array has negative strides"):
        cute.copy(Exported(x[::-1]), y, rows=[0])
    assert cute.copy(Exported(x[:0]), y, into_rows=[]).bytes == 0
    with pytest.raises(InvalidValueError, match=r"rows\[0\] = 0; must be -1"):
        cute.copy(Exported(x[:0]), y, rows=[0])


def refusals() -> dict[str, tuple[Callable[[], Any], type[CuteError], str, str | None, str | None]]:
    """What is done, its error, and the headline, the rule and the hint of it."""
    x, form = numbers((40, 96)), formats.mxfp8()
    scaled, target = cute.copy(x, form), unset(form, (40, 96))
    other, nv = np.zeros((40, 96), np.float16), cute.copy(x, formats.nvfp4())
    plain = unset(form.with_(scales="linear"), (40, 96))
    gaps = np.zeros((*plain.scales.shape, 2), plain.scales.dtype)[..., 0]
    strided = ScaledTensor(plain.data, gaps, plain.format, None, (40, 96))
    shared = np.zeros(128 * 128, np.uint8)
    alias = unset(form, (40, 96))
    own = ScaledTensor(
        shared[: alias.data.size].reshape(alias.data.shape).view(alias.data.dtype),
        shared[: alias.scales.size].view(alias.scales.dtype),
        *(form, None, (40, 96)),
    )
    value, kind, cast = InvalidValueError, InvalidTypeError, "cast=True converts"
    both = "rows and pages can't be combined, because a table of pages is already an index of rows"
    return {
        "backend": (
            lambda: scaled_copy(x, form, "emulator"),
            *(
                value,
                "backend = 'emulator'; must be 'auto' or 'host' for a copy with a format, an index or a cast",
                None,
            ),
            None,
        ),
        "fill": (lambda: scaled_copy(x, form, "host", fill="1"), kind, "fill must be a number, got '1'", None, None),  # type: ignore[arg-type]
        "both": (lambda: scaled_copy(x, x, "host", rows=[0], pages=[0]), value, both, None, None),
        "format": (
            lambda: scaled_copy(form, x, "host"),
            *(kind, "the source of the copy is a Format, which has no data", None, "copy(array, format)"),
        ),
        "into format": (
            lambda: scaled_copy(x, form, "host", into_rows=[0]),
            *(value, "into_rows scatters into memory, but the destination is a Format", None, None),
        ),
        "into formats": (
            lambda: scaled_copy(x, (form, form), "host", into_rows=[0]),
            *(value, "into_rows scatters into memory, but the destination is a tuple of formats", None, None),
        ),
        "destination": (
            lambda: scaled_copy(x, "y", "host"),
            *(kind, "the destination must be an array, Format or ScaledTensor, got 'y'", None, None),
        ),
        "source": (
            lambda: scaled_copy("x", other, "host"),
            *(kind, "the source must be an array or a ScaledTensor, got 'x'", None, None),
        ),
        "overlap": (
            lambda: scaled_copy(x, x[:3], "host", rows=[0, 1, 2]),
            *(value, "the source and the destination overlap, but this copy does not work in place", "overlap", None),
        ),
        "overlap of scales": (
            lambda: scaled_copy(scaled, ScaledTensor(target.data, scaled.scales, form, None, (40, 96)), "host"),
            *(value, "the source and the destination overlap, but this copy does not work in place", "overlap", None),
        ),
        "overlap within": (
            lambda: scaled_copy(x, own, "host"),
            *(value, "the data and the scales of the destination overlap", "overlap", None),
        ),
        "scales with gaps": (
            lambda: scaled_copy(x, strided, "host"),
            *(value, "the scales of the destination are not dense", None, None),
        ),
        "rows of nothing": (
            lambda: scaled_copy("x", other, "host", rows=[0]),
            *(kind, "rows and pages need an array or a ScaledTensor as the source, got 'x'", None, None),
        ),
        "rows of a scalar": (
            lambda: scaled_copy(np.array(1.0), other, "host", rows=[0]),
            *(kind, "rows and pages need an array or a ScaledTensor as the source, got array(1.)", None, None),
        ),
        "pages of a list": (
            lambda: scaled_copy(x[0], other, "host", pages=[0]),
            *(value, "a paged cache must be an array (pages, page_size, ...)", None, None),
        ),
        "rows of two modes": (
            lambda: scaled_copy(x, other, "host", rows=[[0]]),
            *(value, "rows has 2 modes; must have 1, a list of rows", None, None),
        ),
        "pages of a scaled tensor": (
            lambda: scaled_copy(scaled, form, "host", pages=[0]),
            *(value, "pages index an array (pages, page_size, ...), but the source is a ScaledTensor", None, "rows="),
        ),
        "rows of blocks": (
            lambda: scaled_copy(cute.copy(x, formats.mxfp8(axis=0)), form, "host", rows=[0]),
            value,
            "rows can't index a ScaledTensor with blocks of 32 rows; "
            "must be (M, K) with one row per block, not transposed",
            *(None, None),
        ),
        "a table as rows of a scaled tensor": (
            lambda: scaled_copy(scaled, form, "host", rows=[[0, 1]]),
            *(value, "rows has 2 modes; must have 1, a list of rows", None, None),
        ),
        "no rows of a scaled tensor": (
            lambda: scaled_copy(scaled, form, "host", rows=[]),
            *(
                value,
                "rows has no entries; must have at least 1, because a ScaledTensor has at least 1 row",
                None,
                None,
            ),
        ),
        "a truth as the fill": (
            lambda: scaled_copy(x, form, "host", rows=[-1], fill=True),
            *(InvalidTypeError, "fill must be a number, got True", None, None),
        ),
        "rows of a block of all rows": (
            lambda: scaled_copy(cute.copy(x, formats.fp8("column")), form, "host", rows=[0]),
            value,
            "rows can't index a ScaledTensor with blocks of all rows; "
            "must be (M, K) with one row per block, not transposed",
            *(None, None),
        ),
        "rows of a transposed one": (
            lambda: scaled_copy(cute.copy(x, formats.mxfp8(transposed=True)), form, "host", rows=[0]),
            value,
            "rows can't index a ScaledTensor that is transposed; must be (M, K) with one row per block, not transposed",
            *(None, None),
        ),
        "rows of a batch": (
            lambda: scaled_copy(cute.copy(numbers((2, 40, 96)), form), form, "host", rows=[0]),
            value,
            "rows can't index a ScaledTensor of 3 modes; must be (M, K) with one row per block, not transposed",
            *(None, None),
        ),
        "rows of an order of its size": (
            lambda: scaled_copy(cute.copy(x, formats.mxfp8(scales="ragged((0, 40))")), form, "host", rows=[0]),
            *(
                value,
                "the order of the scales, ragged(cu_seqlens=(0, 40)), "
                "has no rows of a fixed size; must be an order for any size",
                None,
                None,
            ),
        ),
        "into rows of blocks": (
            lambda: scaled_copy(x, cute.copy(x, formats.mxfp8(axis=0)), "host", into_rows=[0]),
            value,
            "into_rows can't index a ScaledTensor with blocks of 32 rows; "
            "must be (M, K) with one row per block, not transposed",
            *(None, None),
        ),
        "shape": (
            lambda: scaled_copy(x[:5], target, "host"),
            *(value, "the source has the shape (5, 96) and the destination (40, 96); they must be equal", None, None),
        ),
        "scattered shape": (
            lambda: scaled_copy(x[:5], target, "host", into_rows=[0, 1]),
            *(value, "the source has the shape (5, 96); must be (2, 96) for this index", None, None),
        ),
        "scattered columns": (
            lambda: scaled_copy(x[:2, :64], target, "host", into_rows=[0, 1]),
            *(value, "the source has the shape (2, 64); must be (2, 96) for this index", None, None),
        ),
        "scattered range": (
            lambda: scaled_copy(x[:2], target, "host", into_rows=[0, 40]),
            *(value, "into_rows[1] = 40; must be -1 to 39", "row_index", None),
        ),
        "scattered twice": (
            lambda: scaled_copy(x[:2], target, "host", into_rows=[7, 7]),
            *(value, "into_rows lists row 7 2 times; must list it once", "row_index", None),
        ),
        "tensor scale": (
            lambda: scaled_copy(nv, ScaledTensor(nv.data.copy(), nv.scales.copy(), nv.format, 2.0, (40, 96)), "host"),
            value,
            f"the source has the tensor scale {nv.tensor_scale} and the destination 2.0; they must be equal",
            *("tensor_scale", "copy(source, format) makes a ScaledTensor with its own tensor scale"),
        ),
        "dtype": (
            lambda: scaled_copy(x, other, "host"),
            *(value, "source dtype float32 differs from destination dtype float16", "dtype", cast),
        ),
        "array shape": (
            lambda: scaled_copy(x, np.zeros((3, 96), np.float32), "host"),
            *(value, "the source has the shape (40, 96) and the destination (3, 96); they must be equal", None, None),
        ),
        "array index": (
            lambda: scaled_copy(x, np.zeros((50, 96), np.float32), "host", into_rows=[0, 1]),
            *(value, "the source has the shape (40, 96); must be (2, 96) for this index", None, None),
        ),
        "array index of two modes": (
            lambda: scaled_copy(x, np.zeros((50, 96), np.float32), "host", into_rows=[list(range(40))]),
            *(value, "into_rows has 2 modes; must have 1, a list of rows", None, None),
        ),
        "array twice": (
            lambda: scaled_copy(x[:2], np.zeros((50, 96), np.float32), "host", into_rows=[4, 4]),
            *(value, "into_rows lists row 4 2 times; must list it once", "row_index", None),
        ),
        "array columns": (
            lambda: scaled_copy(x[:2, :64], np.zeros((50, 96), np.float32), "host", into_rows=[4, 3]),
            *(value, "the source has the shape (2, 64); must be (2, 96) for this index", None, None),
        ),
    }


@pytest.mark.parametrize("name", refusals())
def test_refused_in_words(name: str) -> None:
    call, error, headline, rule, hint = refusals()[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert (caught.value.headline, caught.value.hint) == (headline, hint)
    assert caught.value.rule == (rule or headline)


def test_a_copy_of_no_rows() -> None:
    """It writes nothing: on the host, and on a GPU, where it launches no kernel."""
    x, none = np.ones((5, 96), np.float32), np.zeros((0, 96), np.float32)
    target = np.zeros((5, 96), np.float32)
    assert scaled_copy(x, none.copy(), "host", rows=[]).bytes == 0
    assert scaled_copy(none, target, "host", into_rows=[]).bytes == 0 and not target.any()
    cast = scaled_copy(none, np.zeros((0, 96), ml_dtypes.bfloat16), "host", cast=True)
    assert cast.bytes == 0 and cast.equal
    for source, destination, options in (
        (x, none.copy(), {"rows": np.zeros(0, np.int64)}),
        (x, none.copy(), {"rows": []}),
        (none, target, {"into_rows": np.zeros(0, np.int32)}),
        (none, np.zeros((0, 96), ml_dtypes.bfloat16), {"cast": True}),
        (np.zeros((96, 0), np.float32), np.zeros((96, 0), ml_dtypes.bfloat16), {"cast": True}),
    ):
        launch = scaled_work(source, destination, **options).launch
        assert (launch.blocks, launch.moved) == (0, 0)
        assert scaled_launches(source, destination, **options) == ()
        assert run_on_machine(source, destination, **options) is None
        assert copy_by_device(source, destination, **options).bytes == 0 and not target.any()
    with pytest.raises(InvalidValueError, match="they must be equal"):
        scaled_work(none, np.zeros((1, 96), ml_dtypes.bfloat16), cast=True)


def test_an_array_without_elements_overlaps_none() -> None:
    memory = np.ones((5, 96), np.float32)
    assert scaled_work(memory[2:2], memory, into_rows=np.zeros(0, np.int32)).launch.blocks == 0


def test_a_plan_of_no_elements_has_no_launches() -> None:
    plan = cute.plan_copy(Layout((0, 64)), Layout((0, 64)), "float16", cast_to="float32")
    assert (plan.kernel, plan.launches, plan.bytes) == ("none", 0, 0)
    assert "0 launches" in str(plan) and plan.explain().endswith("The copy has no elements.")


def test_a_prepared_copy_of_no_elements_has_no_launches() -> None:
    device = object.__new__(Device)
    none = np.zeros((0, 96), np.float32)
    options = {"into_rows": []}
    work = scaled_work(none, np.zeros((5, 96), np.float32), **options)
    prepared = PreparedScaledCopy(device, work, (), options)
    assert (prepared.kernels, prepared.blocks, prepared.bytes, prepared.owned()) == ((), (), 0, ())
    prepared.launch()
    prepared.check()
    assert prepared.machine_launches((none, np.zeros((5, 96), np.float32))) == ()


def test_read_only_memory_is_not_written() -> None:
    x, form = numbers((40, 96)), formats.mxfp8()
    for part in ("data", "scales"):
        target = unset(form, (40, 96))
        getattr(target, part).flags.writeable = False
        with pytest.raises(InvalidValueError, match="the destination is read-only") as caught:
            cute.copy(x, target)
        assert caught.value.rule == "read_only"
    y = np.zeros((40, 96), np.float32)
    y.flags.writeable = False
    with pytest.raises(InvalidValueError, match="the destination is read-only"):
        cute.copy(x, y, rows=range(40))


def test_flags_are_truths() -> None:
    x = numbers((4, 32))
    for name in ("cast", "requantize"):
        with pytest.raises(InvalidTypeError, match=name):
            scaled_copy(x, x.copy(), "host", **{name: 1})  # type: ignore[arg-type]


def test_tensor_scales_of_both_or_of_neither() -> None:
    x, form = numbers((16, 64)), formats.nvfp4()
    made = cute.copy(x, form)
    same = ScaledTensor(made.data.copy(), made.scales.copy(), form, made.tensor_scale, (16, 64))
    assert cute.copy(made, same).equal
    none = ScaledTensor(made.data.copy(), made.scales.copy(), form, None, (16, 64))
    with pytest.raises(InvalidValueError, match="the destination None; they must be equal"):
        cute.copy(made, none)
    assert cute.copy(none, ScaledTensor(made.data.copy(), made.scales.copy(), form, None, (16, 64))).equal
    whole = ScaledTensor(made.data.copy(), made.scales.copy(), form, np.float32(made.tensor_scale), (16, 64))
    assert cute.copy(x.astype(ml_dtypes.bfloat16).astype(np.float32), whole).equal
