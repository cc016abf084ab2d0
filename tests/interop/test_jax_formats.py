"""Formats in JAX: the same bytes as `cute.copy`, under jit and vmap. Skipped without JAX."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats

jax: Any = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.random.default_rng(0).standard_normal((96, 128)).astype(np.float32)
FORMS = ["mxfp8()", "nvfp4()", "mxfp4(scales='linear')", "fp8('row')", "fp8((128, 128))", "mxfp6(packing='dense')"]


def of(text: str) -> Any:
    import cute_py.jax

    return getattr(cute_py.jax, text)


@pytest.mark.parametrize("form", FORMS)
def test_a_jitted_round_trip_is_that_of_copy(form: str) -> None:
    @jax.jit
    def trip(x: Any) -> Any:
        made = of("quantize")(x * 1.0, form)
        return made, of("dequantize")(*made, form, x.shape, "float32")

    (data, scales, total), back = trip(X)
    wanted = cute.copy(X, formats.parse_format(form))
    assert np.asarray(data).tobytes() == wanted.data.tobytes()
    assert np.asarray(scales).tobytes() == wanted.scales.tobytes()
    assert float(total) == (1.0 if wanted.tensor_scale is None else float(wanted.tensor_scale))
    assert np.array_equal(np.asarray(back), wanted.dequantize())
    assert of("scaled_of")(data, scales, total, form, X.shape).format == formats.parse_format(form)


def test_the_order_of_scales_changes_in_a_graph() -> None:
    source, destination = "mxfp8()", "mxfp8(scales='8x4')"
    move = jax.jit(lambda *a: of("convert_scaled")(*a, source, destination, X.shape))
    got = move(*of("quantize")(X, source))
    wanted = cute.copy(X, formats.parse_format(destination))
    assert np.asarray(got[1]).tobytes() == wanted.scales.tobytes()


def test_rows_and_layouts() -> None:
    index = np.array([3, -1, 0], np.int32)
    got = np.asarray(jax.jit(of("gather_rows"))(X, index, 2.0))
    assert np.array_equal(got[0], X[3]) and (got[1] == 2.0).all() and np.array_equal(got[2], X[0])
    old = np.zeros_like(X)
    new = np.asarray(jax.jit(of("scatter_rows"))(old, X[:3], index))
    assert np.array_equal(new[3], X[0]) and np.array_equal(new[0], X[2]) and not old.any()
    turned = jax.jit(lambda x: of("relayout")(x, "(96,128):(128,1)", "(96,128):(1,96)"))(X)
    assert np.array_equal(np.asarray(turned).reshape(128, 96), X.T)


def test_vmap_maps_over_a_batch() -> None:
    batch = np.stack([X, 2 * X])
    data, _, _ = jax.vmap(lambda x: of("quantize")(x, "mxfp8()"))(batch)
    assert np.asarray(data[1]).tobytes() == cute.copy(2 * X, formats.mxfp8()).data.tobytes()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e8m0fnu", "bfloat16"])
def test_dlpack_brings_narrow_types_in_and_out(name: str) -> None:
    from cute_py.dtypes import as_dtype
    from cute_py.tensor.array_views import host_view
    from cute_py.tensor.dlpack_export import DlpackArray

    array = np.arange(64, dtype=f"u{as_dtype(name).bits // 8}").view(as_dtype(name).numpy)
    made = jax.dlpack.from_dlpack(DlpackArray(array))
    assert made.dtype == array.dtype and np.asarray(made).tobytes() == array.tobytes()
    view = host_view(made)
    assert view is not None and view.dtype.name == name


def test_nothing_imports_jax_unless_it_is_used() -> None:
    program = "import sys, cute_py as cute, cute_py.jax; cute.formats.mxfp8(); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_arrays_of_jax_are_read_and_never_written() -> None:
    """Their capsules carry no flag, so a write would change what other names of the array see."""
    with jax.default_device(jax.devices("cpu")[0]):
        x, y = X[:8], jax.numpy.zeros((8, 128), jax.numpy.float32)
        for options in ({}, {"cast": True}):
            with pytest.raises(cute.errors.InvalidValueError, match="the destination is read-only"):
                cute.copy(x, y, **options)
        assert not np.asarray(y).any()
        target = np.zeros((8, 128), np.float32)
        cute.copy(jax.numpy.asarray(x), target)
    assert np.array_equal(target, x)


@pytest.mark.gpu
def test_arrays_of_jax_on_a_device_are_read_and_never_written() -> None:
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    cupy = pytest.importorskip("cupy")
    x = jax.jit(lambda y: y * 2)(jax.numpy.asarray(X))
    target = cupy.zeros(X.shape, cupy.float32)
    assert cute.copy(x, target).equal
    assert np.array_equal(target.get(), 2 * X)
    with pytest.raises(cute.errors.InvalidValueError, match="use a destination ScaledTensor in your own memory"):
        cute.copy(x, formats.mxfp8())
    with pytest.raises(cute.errors.InvalidValueError, match="the destination is read-only"):
        cute.copy(target, x)
    assert np.array_equal(np.asarray(x), 2 * X)
