"""Calls of formats, casts and orders of scales."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

X = "numpy.linspace(-4, 4, 4 * 64, dtype=numpy.float32).reshape(4, 64)"
NAMES = ("linear", "32_4_4", "8x4", "mn_major", "triton_blackwell", "triton_hopper(2)", "rocm_32_8", "vllm_v_4x4")


def order(m: Maker) -> str:
    return repr(m.choice(NAMES))


def form(m: Maker) -> str:
    return m.one_of(
        f"formats.mxfp8(scales={order(m)})",
        f"formats.mxfp8(axis=0, rule={m.choice(('floor', 'ceil', 'even'))!r})",
        "formats.mxfp6(packing='dense')",
        "formats.mxfp4()",
        f"formats.nvfp4(like={m.choice(('torchao', 'te', 'flashinfer'))!r})",
        f"formats.fp8({m.choice(('row', 'column', 'tensor'))!r})",
    )


def scaled(m: Maker) -> str:
    return f"copy({X}, {form(m)})"


INSTANCES.update({"formats.Format": form, "formats.ScaledTensor": scaled})

add("formats.mxfp8", named={"axis": "0", "rule": "'floor'", "scales": order, "element": "'e5m2'", "transposed": "True"})
add("formats.mxfp6", named={"rule": "'even'", "element": "'e3m2'", "packing": "'dense'", "scales": order})
add("formats.mxfp4", named={"axis": "0", "rule": "'ceil'", "packing": "'bytes'", "padding": "(128, 128)"})
add("formats.nvfp4", named={"axis": "0", "scales": order, "like": "'te'", "block": "(16, 16)"})
add(
    "formats.fp8",
    lambda m: m.one_of("'row'", "'tensor'", "(1, 128)", "(128, 128)", "(128, 1)"),
    named={"like": "'torchao'"},
)
add("formats.fp8", "(1, 128)", named={"rule": "'rceil'", "scale_dtype": "'float32'", "element": "'e5m2'"})
add("formats.scale_order", order)
add("formats.parse_format", lambda m: repr(m.choice(("nvfp4", "fp8((128, 128))", "mxfp8(scales='8x4')"))))
add("formats.scale_order", "'ragged'", named={"cu_seqlens": "(0, 100, 300)"})
add("formats.kv_cache_layout", "'LBNHC'", "{'L': 2, 'B': 3, 'H': 4, 'N': 16, 'C': 64}")
add("formats.sf_atom", lambda m: str(m.choice((16, 32))))
add("formats.number", lambda m: repr(m.choice(("e4m3", "ue8m0", "bfloat16", "int4"))))
add(
    "formats.cast",
    X,
    lambda m: repr(m.choice(("e4m3", "e5m2", "e2m1", "ue8m0", "bf16", "int8"))),
    named={"saturate": "False"},
)
add("formats.codes", f"formats.cast({X}, 'e4m3')")
add("formats.of_codes", "numpy.arange(8, dtype=numpy.uint8)", "'e4m3'")
add("formats.to_float32", "numpy.arange(8, dtype=numpy.uint8)", "'e2m1'")
add("formats.pack_elements", f"formats.cast({X}, 'e2m1')")
add("formats.unpack_elements", "numpy.arange(12, dtype=numpy.uint8)", "8", "'pairs'", "'e2m1'")
add(
    "formats.Format",
    "'e4m3'",
    "(1, 32)",
    "'floor'",
    "'ue8m0'",
    "'bytes'",
    "-1",
    lambda m: f"formats.scale_order({order(m)})",
    named={"like": "'torchao'"},
)
for name in ("data_shape", "data_size"):
    method(f"formats.Format.{name}", form, "40", "96")
for name in ("scale_layout", "scale_size", "data_layout"):
    method(
        f"formats.Format.{name}", form, lambda m: m.one_of("40", "Int(128)", "sympy.Symbol('M', positive=True)"), "96"
    )
method("formats.Format.scale_index", form, "40", "96")
method("formats.Format.blocks", form, "40", "96")
method("formats.Format.explain", form)
method("formats.Format.with_", form, named={"scales": order, "transposed": "True"})
for name in ("elements", "scale_grid"):
    method(f"formats.ScaledTensor.{name}", scaled)
method("formats.ScaledTensor.dequantize", scaled, named={"dtype": "'bf16'"})


@calls_of("formats.ScaledTensor")
def _scaled_tensor(m: Maker) -> Any:
    return ("numpy.zeros((4, 64), numpy.uint8)", "numpy.zeros((4, 2), numpy.uint8)", "formats.mxfp8(scales='linear')")


@calls_of("formats.check")
def _check(m: Maker) -> Any:
    return (f"copy({X}, formats.mxfp8()).data", f"copy({X}, formats.mxfp8()).scales", "formats.mxfp8()", "(4, 64)")


@calls_of("formats.identify")
def _identify(m: Maker) -> Any:
    linear = f"copy({X}, formats.mxfp8(scales='linear')).scales"
    return (f"copy({X}, formats.mxfp8()).scales", linear, "(4, 64)")


@calls_of("copy")
def _copy(m: Maker) -> Any:
    more = m.one_of(
        "formats.mxfp8()", "(formats.mxfp8(), formats.mxfp8(axis=0))", "numpy.zeros((4, 64), numpy.float32)"
    )
    return (X, more), ({"rows": "[3, 0, -1, 1]"} if m.chance(0.5) else {})


add("draw.draw_format", form, named={"shape": "(40, 96)", "tile_rows": "8"})
