"""Orders of scales as layouts: against brute force, one-to-one, symbolic, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import Int, Layout, formats
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError
from cute_py.formats import Format, ScaledTensor, scale_order
from tests.each import each_of
from tests.formats import brute_force


def _random_format(rng: random.Random) -> Format:
    order = rng.choice([*brute_force.ORDERS, "triton_hopper"])
    if order == "triton_hopper":
        order = f"triton_hopper(num_warps={rng.choice((1, 2, 4, 8))})"
    axis = rng.choice((-1, 0))
    kind = rng.choice(("mxfp8", "mxfp6", "mxfp4", "nvfp4", "fp8"))
    if kind == "fp8" or order == "deepgemm_sm90":
        order = "linear" if order == "deepgemm_sm100" else order
        return formats.fp8(rng.choice(((1, 128), (1, 64))), scales=order)
    if kind == "nvfp4":
        return formats.nvfp4(axis=axis, scales="8x4" if order == "deepgemm_sm100" else order)
    build = {"mxfp8": formats.mxfp8, "mxfp6": formats.mxfp6, "mxfp4": formats.mxfp4}[kind]
    return build(axis=axis, scales=order, transposed=rng.random() < 0.3)


def _expected(form: Format, M: int, K: int) -> np.ndarray:
    """(M, K) indices: what brute force says of each element."""
    vertical = form.axis == 0
    rows, columns = form.blocks(M, K)
    name = form.order.name
    turned = vertical if form.order.each_row else form.transposed
    down, across = (K, M) if turned else (M, K)
    tall, wide = (columns, rows) if turned else (rows, columns)
    height = down if form.order.each_row else -(-down // tall)
    blocks = -(-across // wide)
    if name == "triton_hopper":
        table = brute_force.triton_hopper(height, blocks, form.order.parameter("num_warps"))
    else:
        table = brute_force.ORDERS[name](height, blocks)
    each = np.arange(down) if form.order.each_row else np.arange(down) // tall
    whole = table[each][:, np.arange(across) // wide]
    return whole.T if turned else whole


@each_of("begin", range(0, 2000, 200), every=10)
def test_random_formats_against_brute_force(begin: int) -> None:
    """2,000 random (format, M, K, order)."""
    for seed in range(begin, begin + 200):
        rng = random.Random(seed)
        form, M, K = _random_format(rng), rng.randint(1, 300), rng.randint(1, 700)
        want = _expected(form, M, K)
        m, k = np.arange(M)[:, None], np.arange(K)
        assert np.array_equal(form.scale_index(M, K)(m, k), want), (form, M, K)
        layout = form.scale_layout(M, K)
        for _ in range(4):
            i, j = rng.randrange(M), rng.randrange(K)
            assert layout((i, j)) == want[i, j], (form, M, K, i, j)
        assert want.max() < form.scale_size(M, K), (form, M, K)


@each_of("name", [*brute_force.ORDERS, "triton_hopper"])
@each_of("size", [(1, 1), (127, 129), (128, 128), (129, 4096), (300, 1000)])
def test_scales_have_places_of_their_own(name: str, size: tuple[int, int]) -> None:
    M, K = size
    form = formats.fp8((1, 32), rule="amax" if name == "deepgemm_sm90" else "rceil", scales=name)
    places = form.scale_index(M, K)(np.arange(M)[:, None], np.arange(0, K, 32))
    assert len(np.unique(places)) == places.size
    layout = form.scale_layout(M, K, 3)
    assert layout((0, 0, 1)) == form.scale_size(M, K) == form.scale_size(M, K, 3) // 3


def test_ragged_experts() -> None:
    bounds = (0, 100, 100, 356, 500)
    form = formats.nvfp4(scales=scale_order("ragged", cu_seqlens=bounds))
    table = form.scale_index(500, 80)(np.arange(500)[:, None], np.arange(0, 80, 16))
    assert np.array_equal(table, brute_force.ragged(bounds, 5))
    assert form.scale_size(500, 80) == (4 + 3) * 128 * 8 > table.max()
    with pytest.raises(LayoutError, match="not a single layout"):
        form.scale_layout(500, 80)
    with pytest.raises(InvalidValueError, match="must end with M = 499"):
        form.scale_index(499, 80)
    for wrong in (None, (5, 10), (0,), (0, 10, 5)):
        with pytest.raises(InvalidValueError):
            scale_order("ragged", cu_seqlens=wrong)


def test_a_layout_is_an_order() -> None:
    mine = Layout((4, (Int(32), 2)), (2, (Int(0), 1)))
    form = formats.mxfp8(scales=mine)
    assert form.scale_layout(4, 64) is mine
    assert form.scale_size(4, 64) == 8
    x = np.float32(2.0) ** np.arange(4, dtype=np.float32)[:, None] * np.ones((4, 64), np.float32)
    plain = cute.copy(x, formats.mxfp8(scales="linear"))
    assert np.array_equal(cute.copy(x, form).scales.view(np.uint8), plain.scales.view(np.uint8).reshape(-1))
    with pytest.raises(InvalidValueError, match="must cover"):
        form.scale_layout(5, 64)
    assert eval(repr(form), {"mxfp8": formats.mxfp8, "Layout": Layout, "Int": Int}) == form


def test_orders_of_all_sizes() -> None:
    """same_function decides layouts with symbols, or says that it can't."""
    M, K = sympy.symbols("M K", positive=True, integer=True)
    form = formats.mxfp8()

    def same(a: str, b: str, rows: object = M, columns: object = K, form: Format = form) -> bool:
        one, other = (form.with_(scales=name).scale_layout(rows, columns) for name in (a, b))
        return cute.same_function(one, other)

    assert same("32_4_4", "32_4_4")
    assert not same("32_4_4", "linear")
    assert not same("32_4_4", "triton_blackwell")
    assert same("32_4_4", "triton_blackwell", 128 * M, 256 * K)
    assert not same("mn_major", "deepgemm_sm90", form=formats.fp8((1, 32)))
    assert same("mn_major", "deepgemm_sm90", 4 * M, K, formats.fp8((1, 32)))
    assert cute.same_function(form.with_(scales="linear").scale_layout(M, K), formats.fp8((1, 32)).scale_layout(M, K))
    always_even = 2 * sympy.floor((M**2 + M) / 2)
    with pytest.raises(LayoutError, match="can't decide"):
        cute.same_function(Layout((M, 4), (1, M)), Layout((M, 4), (1, always_even - M**2)))


def test_symbols_become_sizes() -> None:
    M, K = sympy.symbols("M K", positive=True, integer=True)
    for name in [*brute_force.ORDERS, "triton_hopper"]:
        form = formats.fp8((1, 32), rule="amax" if name == "deepgemm_sm90" else "rceil", scales=name)
        for m, k in ((1, 1), (100, 999), (256, 512)):
            made = form.scale_layout(M, K).subs({M: m, K: k})
            assert cute.same_function(made, form.scale_layout(m, k)), (name, m, k)
        assert sympy.sympify(form.scale_size(M, K)).subs({M: 100, K: 999}) == form.scale_size(100, 999)


def test_static_sizes() -> None:
    assert str(formats.mxfp8().scale_layout(Int(256), Int(256))) == (
        "(((_32,_4),_2),((_32,_4),_2)):(((_16,_4),_1024),((_0,_1),_512))"
    )
    assert str(formats.nvfp4().scale_layout(Int(100), Int(40))) == (
        "(((_32,_4),_1),((_16,_4),_1)):(((_16,_4),_0),((_0,_1),_0))"
    )


def test_names_and_parameters() -> None:
    assert str(scale_order("SWIZZLE_32_4_4")) == "32_4_4" == scale_order("128x4").name
    assert scale_order("triton_hopper(8)") == scale_order("triton_hopper", num_warps=8)
    for text, error in (
        ("32_4", "unknown scale order '32_4'"),
        ("8x4(2)", "can't be read|no parameter"),
        ("triton_hopper(num_warps=3)", "num_warps = 3; must be a power of 2"),
        ("triton_hopper(warps=4)", "no parameter 'warps'"),
        ("triton_hopper(", r"unknown scale order 'triton_hopper\('"),
        ("triton_hopper(1+)", "can't be read"),
    ):
        with pytest.raises(InvalidValueError, match=error):
            scale_order(text)
    with pytest.raises(InvalidTypeError):
        scale_order(4)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="granularity"):
        formats.fp8((1, 128), rule="rceil", scales="deepgemm_sm100(granularity=32)").scale_layout(8, 256)
    assert formats.fp8((1, 32), rule="rceil", scales="deepgemm_sm100(granularity=32)").scale_size(5, 100) == 32


@pytest.mark.parametrize(
    ("build", "scale", "wanted", "layout"),
    [
        (lambda: formats.mxfp8(scales="deepgemm_sm90"), "ue8m0", "float32", "deepgemm_sm90"),
        (lambda: formats.nvfp4(scales="deepgemm_sm90"), "ue4m3", "float32", "deepgemm_sm90"),
        (lambda: formats.fp8((1, 128), rule="ceil", scales="deepgemm_sm90"), "ue8m0", "float32", "deepgemm_sm90"),
        (lambda: formats.mxfp4().with_(scales="deepgemm_sm90"), "ue8m0", "float32", "deepgemm_sm90"),
        (lambda: formats.fp8((1, 128), scales="packed_ue8m0"), "float32", "ue8m0", "deepgemm_sm100"),
    ],
)
def test_an_order_of_one_type_of_scales(build: Callable[[], Format], scale: str, wanted: str, layout: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        build()
    error = caught.value
    assert error.rule == "scale_type"
    assert error.headline == f"scales of type {scale} don't fit the order {layout}; must be {wanted}"
    assert str(error.facts["source"]).startswith("DeepGEMM, csrc/jit_kernels/impls/smxx_layout.hpp, get_mn_major_tma_")
    assert error.hint is not None and formats.parse_format(error.hint).order.name == layout


def test_powers_of_two_as_float32_in_an_order_of_float32() -> None:
    form = formats.fp8((1, 128), rule="rceil", scales="deepgemm_sm90", scale_dtype="float32")
    assert cute.copy(np.full((5, 256), 500, np.float32), form).scale_grid().tolist() == [[2.0, 2.0]] * 5


def test_sizes_with_an_offset_are_decided() -> None:
    """A size at which two orders differ is found for large layouts too: their normal forms are compared."""
    M, K = sympy.symbols("M K", positive=True, integer=True)
    form = formats.mxfp8()
    names = ("linear", "mn_major", "32_4_4", "8x4", "triton_blackwell", "triton_hopper(1)", "rocm_32_8")
    for one, other in ((a, b) for a in names for b in names if a < b):
        layouts = [form.with_(scales=name).scale_layout(128 * M + 1, 32 * K) for name in (one, other)]
        assert not cute.same_function(*layouts), (one, other)


def test_layouts_that_can_not_hold_scales() -> None:
    x = np.ones((4, 64), np.float32)
    for layout, says in (
        (Layout((4, 64), (64, 1)), "k = 0 and 1 different indices, but they are in one block of 1 x 32"),
        (Layout((4, (Int(32), 2)), (-2, (Int(0), 1))), "indices down to -6"),
        (Layout((4, (Int(32), 2)), (0, (Int(0), 1))), "gives several blocks one index"),
    ):
        with pytest.raises(InvalidValueError, match=says):
            cute.copy(x, formats.mxfp8(scales=layout))


def test_coordinates_outside_the_grid_and_parameters_of_another() -> None:
    index = formats.mxfp8(scales="linear").scale_index(4, 64)
    for m, k, says in ((-1, 0, "m = -1; must be 0 to 3"), (4, 0, "m = 4; must be 0 to 3"), (0, 64, "k = 64")):
        with pytest.raises(InvalidValueError, match=says):
            index(m, k)
    ragged = formats.mxfp8(scales="ragged(cu_seqlens=(0, 10, 63))")
    with pytest.raises(InvalidValueError, match="must be 0 to 62"):
        ragged.scale_index(63, 64)(63, 0)
    with pytest.raises(InvalidValueError, match="must end with M = 64"):
        ragged.scale_size(64, 96)
    with pytest.raises(InvalidValueError, match="must be 32"):
        formats.mxfp8(scales="deepgemm_sm100(granularity=128)").scale_size(3, 64)


def test_identify_reads_the_memory_of_a_view() -> None:
    grid = np.random.default_rng(0).random((510, 6)).astype(np.float32)
    assert str(formats.identify(np.asfortranarray(grid), grid, (510, 768))[0].order) == "mn_major"
    buffer = np.zeros((6, 512), np.float32)
    buffer[:, :510] = grid.T
    for view in (buffer.T[:510], buffer):
        match = formats.identify(view, grid, (510, 768))[0]
        assert match.explains and str(match.order) == "deepgemm_sm90"


@pytest.mark.parametrize("step", [1, -1])
def test_identify_finds_the_order_of_exponents_that_another_rule_rounded(step: int) -> None:
    x = np.random.default_rng(0).standard_normal((128, 256)).astype(np.float32)
    plain = cute.copy(x, formats.mxfp8(scales="linear")).scales.view(np.uint8)
    match = formats.identify(
        cute.copy(x, formats.mxfp8()).scales.view(np.uint8) + np.uint8(step % 256), plain, x.shape
    )[0]
    assert str(match.order) == "32_4_4" and match.nearly and not match.explains
    assert str(match).startswith("32_4_4: explains 0 of 1024") and "rounded by another rule" in match.text
    mixed = formats.identify(np.random.default_rng(1).permutation(plain.reshape(-1)), plain, x.shape)[0]
    assert not mixed.nearly and str(mixed).startswith("no order explains the buffer")


def test_identify_finds_reciprocals() -> None:
    grid = np.random.default_rng(0).random((24, 6)).astype(np.float32) + np.float32(0.1)
    match = formats.identify((1 / grid).T.copy(), grid, (24, 768))[0]
    assert str(match.order) == "mn_major" and "one side has 1 / scale" in match.text


def test_identify_refuses_the_shape_of_the_grid() -> None:
    grid = np.zeros((128, 4), np.uint8)
    with pytest.raises(InvalidValueError, match="4 blocks per row of 4 elements") as caught:
        formats.identify(grid.reshape(-1), grid, (128, 4))
    assert caught.value.hint is not None and "(M, K) = (128, 128)" in caught.value.hint


def test_scales_that_are_not_contiguous_are_refused() -> None:
    x = np.random.default_rng(0).standard_normal((508, 768)).astype(np.float32)
    made = cute.copy(x, formats.fp8((1, 128)))
    strided = np.asfortranarray(made.scales.reshape(508, 6))
    with pytest.raises(
        InvalidValueError, match="the scales are not contiguous, but mn_major is an order in memory"
    ) as caught:
        ScaledTensor(made.data, strided, formats.fp8((1, 128), scales="mn_major"))
    assert caught.value.hint == "scales.T is contiguous, with the same memory"
    right = ScaledTensor(made.data, strided.T, formats.fp8((1, 128), scales="mn_major"))
    assert np.array_equal(right.dequantize(), made.dequantize())


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(8, 2), (5, 3), (6, 7)])
def test_identify_finds_a_plain_grid_in_a_larger_matrix(rows: int, columns: int, turned: bool) -> None:
    grid = np.arange(1, 11, dtype=np.uint8).reshape(5, 2)
    buffer = np.zeros((rows, columns), np.uint8)
    buffer[:5, :2] = grid
    if turned:
        buffer = np.ascontiguousarray(buffer.T)
    found = [match for match in formats.identify(buffer, grid, (5, 64)) if match.explains]
    strides = f"((0,1),(0,{rows}))" if turned else f"((0,{columns}),(0,1))"
    text = f"((1,{rows}),(32,{columns})):{strides}: explains all 10 scales"
    assert any(str(match).startswith(text) for match in found)
    assert not found[0].transposed
    view = formats.identify(buffer[:2, :5] if turned else buffer[:5, :2], grid, (5, 64))
    assert view[0].explains


def test_identify_names_an_order_before_its_layout() -> None:
    grid = np.arange(1, 11, dtype=np.float32).reshape(5, 2)
    buffer = np.zeros((2, 8), np.float32)
    buffer[:, :5] = grid.T
    assert str(formats.identify(buffer, grid, (5, 256))[0]).startswith("deepgemm_sm90: explains all 10 scales")
