"""Plans of copies that compute: which kernel, which geometry, what is refused; and orders of scales as digits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout, formats
from cute_py.copies.scaled.operands import scaled_work
from cute_py.copies.scaled.plan import digits_of, scales_of
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.formats import Format, ScaledTensor
from tests.each import each_of

DICE = np.random.default_rng(41)


def matrix(shape: tuple[int, int], dtype: Any = ml_dtypes.bfloat16) -> Any:
    return DICE.standard_normal(shape).astype(dtype)


def unset(form: Format, shape: tuple[int, int], total: float | None = None) -> ScaledTensor:
    made = cute.copy(np.ones(shape, np.float32), form)
    return ScaledTensor(made.data, made.scales, form, total if form.tensor_scale else None, shape)


@pytest.mark.parametrize(
    ("form", "kernel"),
    [
        (formats.mxfp8(), "rows"),
        (formats.nvfp4(), "rows"),
        (formats.fp8((1, 128)), "rows"),
        (formats.fp8("row"), "whole"),
        (formats.mxfp8(transposed=True), "tile"),
        (formats.mxfp8(axis=0), "tile"),
        (formats.fp8((128, 128)), "tile"),
        (formats.mxfp8(axis=0, transposed=True), "tile"),
    ],
    ids=repr,
)
def test_the_kernel_of_a_format(form: Format, kernel: str) -> None:
    x, out = matrix((256, 512)), unset(form, (256, 512), 1.0)
    assert scaled_work(x, out).launch.name == kernel
    if kernel == "whole":
        with pytest.raises(InvalidValueError, match="two passes"):
            scaled_work(np.asfortranarray(x), out)
    else:
        turned = "rows" if form.axis == 0 and form.transposed else "tile"
        assert scaled_work(np.asfortranarray(x), out).launch.name == turned


@pytest.mark.parametrize("form", [formats.mxfp8(), formats.fp8("row"), formats.mxfp8(axis=0)], ids=repr)
def test_no_load_may_move_above_the_wait_for_the_previous_kernel(form: Format) -> None:
    """ptxas orders ld.global after griddepcontrol.wait, but ld.global.nc only if it happens to."""
    kernel = scaled_work(matrix((256, 512)), unset(form, (256, 512))).launch.kernel
    assert kernel.awaits
    assert '"ld.global' in kernel.text
    assert '"ld.global.nc' not in kernel.text and "__ldg" not in kernel.text


def test_a_plan_counts_the_bytes_that_it_moves() -> None:
    form = formats.mxfp8(scales="linear")
    work = scaled_work(matrix((128, 1024)), unset(form, (128, 1024)))
    assert work.launch.moved == 128 * 1024 * 3 + 128 * 32
    plan = cute.plan_copy(Layout((128, 1024), (1024, 1)), form, "bfloat16")
    assert (plan.form, plan.kernel, plan.launches, plan.bytes) == ("scaled", "rows", 1, work.launch.moved)
    assert str(work.launch.blocks) in str(plan)
    assert plan.explain().startswith(str(plan))


def test_plans_of_casts_and_of_several_outputs() -> None:
    rows, columns = Layout((256, 512), (512, 1)), Layout((256, 512))
    assert cute.plan_copy(rows, rows, "bfloat16", cast_to="e4m3").kernel == "rows"
    assert cute.plan_copy(rows, columns, "bfloat16", cast_to="e4m3").kernel == "tile"
    both = formats.mxfp8(), formats.mxfp8(axis=0, transposed=True)
    assert cute.plan_copy(rows, both, "bfloat16").kernel == "tile"
    assert cute.plan_copy(formats.mxfp8(), rows, "bfloat16").kernel == "rows"
    assert cute.plan_copy(rows, Layout((300, 512), (512, 1)), "bfloat16", rows=300).bytes == 1024 * (300 + 300)


def test_a_plan_of_a_cast_to_the_same_type_moves_bytes() -> None:
    for layout in (Layout((64, 512), (512, 1)), Layout((64, 512), (1, 64))):
        plan = cute.plan_copy(layout, layout, "bfloat16", cast_to="bfloat16")
        assert plan.kernel == "rows" and plan.bytes == 2 * 2 * 64 * 512
        with pytest.raises(InvalidValueError, match="a transposed cast of a type to itself"):
            other = Layout((64, 512), (1, 64) if layout.stride == (512, 1) else (512, 1))
            cute.plan_copy(layout, other, "bfloat16", cast_to="bfloat16")
    columns = Layout((64, 512), (1, 64))
    with pytest.raises(InvalidValueError, match="rows of a source stored by columns"):
        cute.plan_copy(columns, Layout((8, 512), (512, 1)), "bfloat16", rows=8)


ORDERS = ("linear", "32_4_4", "8x4", "mn_major", "triton_blackwell", "triton_hopper(2)", "rocm_32_8", "deepgemm_sm90")


def format_of(order: str, axis: int, transposed: bool = False) -> formats.Format:
    """A format of blocks of 32, with scales of the type that the order is defined for."""
    if order == "deepgemm_sm90":
        return formats.fp8((1, 32) if axis else (32, 1), scales=order, transposed=transposed)
    return formats.mxfp8(axis=axis, scales=order, transposed=transposed)


def index_by(digits: tuple[tuple[int, int], ...], x: Any) -> Any:
    """The sum of digits of x by their steps, as a kernel has it; the last digit has no end."""
    total, below = 0 * x, 1
    for number, (size, step) in enumerate(digits):
        total = total + (x // below % size if number < len(digits) - 1 else x // below) * step
        below *= size
    return total


@each_of("order", [*ORDERS, "deepgemm_sm100", "vllm_v_4x4"])
@each_of("axis", [-1, 0])
@each_of("transposed", [False, True])
def test_digits_give_every_scale_and_its_padding_a_place_of_its_own(order: str, axis: int, transposed: bool) -> None:
    form = format_of(order, axis, transposed)
    for M, K in ((1, 40), (5, 1), (33, 300), (128, 128), (130, 16)):
        scales = scales_of(form, (M, K), False, 16)
        rows, columns = scales.block
        m, k = np.arange(scales.extents[0]) * rows, np.arange(scales.extents[1]) * columns
        places = index_by(scales.digits.rows, m)[:, None] + index_by(scales.digits.columns, k)
        assert sorted(places.reshape(-1).tolist()) == list(range(int(form.scale_size(M, K)))), (M, K)
        m, k = np.arange(0, M, rows)[:, None], np.arange(0, K, columns)
        found = index_by(scales.digits.rows, m) + index_by(scales.digits.columns, k)
        assert np.array_equal(found, form.scale_index(M, K)(m, k)), (M, K)


@pytest.mark.parametrize("order", [*ORDERS, "deepgemm_sm100", "vllm_v_4x4"])
def test_four_scales_are_a_word_where_they_follow_each_other(order: str) -> None:
    """Of the inner axis, that along which a block has most elements: blocks 4 i to 4 i + 3 at places 4 j to 4 j + 3."""
    forms = [format_of(order, axis) for axis in (-1, 0)]
    forms += [formats.nvfp4(scales=order, block=(16, 16))] if order in ("linear", "mn_major") else []
    rule = "amax" if order == "deepgemm_sm90" else "rceil"
    forms += [formats.fp8((1, 128), rule=rule, scales=order), formats.fp8((1, 32), rule=rule, scales=order)]
    for form in forms:
        for M, K in ((1, 40), (33, 320), (128, 128), (256, 1024), (128, 24), (48, 64)):
            for exchanged in (False, True):
                scales = scales_of(form, (M, K), exchanged, 16)
                (rows, columns), extents = scales.block, scales.extents
                m, k = np.arange(extents[0]) * rows, np.arange(extents[1]) * columns
                places = index_by(scales.digits.rows, m)[:, None] + index_by(scales.digits.columns, k)
                inner = 0 if columns == 1 and rows != 1 else 1
                along = places if inner else places.T
                whole = along.shape[1] % 4 == 0
                grouped = along[:, : along.shape[1] // 4 * 4].reshape(len(along), -1, 4)
                together = whole and (grouped % 4 == np.arange(4)).all() and (np.diff(grouped, axis=2) == 1).all()
                wanted = together and form.scale_dtype.bits == 8 and scales.block[inner] <= 32
                if wanted != scales.words:  # one row of blocks tells nothing of the step to the next
                    assert wanted and 1 in along.shape, (form, M, K, exchanged)
                assert not scales_of(form, (M, K), exchanged, 2).words
                other = scales.digits.rows if inner else scales.digits.columns
                assert scales.split == (bool(other) and other[0][0] == 32 and dict(other[:2]).get(4) == 4)


def _refusals() -> list[tuple[str, Any, type[Exception]]]:
    x, form, ragged = matrix((64, 96)), formats.mxfp8(), formats.mxfp8(scales="ragged((0, 64))")
    out = unset(form, (64, 96))
    one = formats.fp8("column")
    return [
        ("two passes", lambda: scaled_work(x, unset(one, (64, 96))), InvalidValueError),
        ("tensor scale", lambda: scaled_work(x, unset(formats.nvfp4(), (64, 96))), InvalidValueError),
        (
            "packed as dense",
            lambda: scaled_work(x, unset(formats.mxfp6(packing="dense"), (64, 96))),
            InvalidValueError,
        ),
        ("has the shape", lambda: scaled_work(x[:63], out), InvalidValueError),
        ("cast=True", lambda: scaled_work(x, np.zeros(x.shape, np.float32)), InvalidValueError),
        ("no memory", lambda: scaled_work(x, form), InvalidTypeError),
        ("a GPU copy does not", lambda: scaled_work(out, unset(formats.mxfp4(), (64, 96))), InvalidValueError),
        ("must be -1 to 63", lambda: scaled_work(x, np.zeros((1, 96), x.dtype), rows=[64]), InvalidValueError),
        ("int32 or int64", lambda: scaled_work(x, x[:1].copy(), rows=np.array([1], np.uint8)), InvalidTypeError),
        ("overlaps", lambda: scaled_work(x, x[:2], rows=[1, 2]), InvalidValueError),
        ("along rows", lambda: scaled_work(x, unset(formats.mxfp8(axis=0), (2, 96)), rows=[1, 2]), InvalidValueError),
        ("elements of type int8", lambda: scaled_work(x, np.zeros(x.shape, np.int8), cast=True), InvalidValueError),
        ("contiguous", lambda: scaled_work(x[:, ::2], x[:, ::2].astype(np.float32), cast=True), InvalidValueError),
        ("one layout", lambda: scaled_work(x, unset(ragged, (64, 96))), InvalidValueError),
        ("requantize", lambda: scaled_work(x, out, requantize=True), InvalidValueError),
    ]  # fmt: skip


@each_of("number", range(15))
def test_what_the_device_does_not_make_is_refused_with_what_it_does(number: int) -> None:
    text, call, kind = _refusals()[number]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(
    ("layout", "digits"),
    [
        (Layout((4, 8), (1, 4)), ((32, 1),)),
        (Layout((4, 8, 2), (0, 0, 1)), ((32, 0), (2, 1))),
        (Layout((4, 8), (0, -1)), ((4, 0), (8, -1))),
        (Layout((4, 8), (-1, 0)), ((4, -1),)),
        (Layout((1, 4, (1, 2)), (9, 3, (5, 24))), ((4, 3), (2, 24))),
    ],
)
def test_digits_are_joined_only_where_they_follow_each_other(
    layout: Layout, digits: tuple[tuple[int, int], ...]
) -> None:
    assert digits_of(layout) == digits


@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_copies_that_compute_need_sm_90(arch: str) -> None:
    layout = Layout((64, 128), (128, 1))
    with pytest.raises(InvalidValueError, match="sm_90 or newer"):
        cute.plan_copy(layout, formats.mxfp8(), "bfloat16", arch=arch)
    assert cute.plan_copy(layout, formats.mxfp8(), "bfloat16", arch="sm_100a").kernel == "rows"
