"""Calls of pictures, of cute_py.testing, and of the exceptions' constructors."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

PICTURE = "draw.draw(Layout((2, 3)))"
INSTANCES["draw.Picture"] = lambda m: m.one_of(PICTURE, "draw.draw_swizzle(Swizzle(3, 4, 3))")
DRAWN = (
    "load_atom()",
    "request()",
    "Swizzle(2, 4, 3)",
    "make_identity_tensor((3, 4))",
    "kernel_run(32).timeline()",
    "tmem_copy()",
    "im2col_request()",
    "tma.encode(request())",
    "make_tensor(array((3, 4)))",
)


def flat_layout(m: Maker) -> str:
    return m.one_of(m.layout(2), m.layout(1), m.composed(2), m.layout(3))


@calls_of("draw.draw", weight=0.6)
def _draw(m: Maker) -> Any:
    if m.chance(0.4):
        return (m.choice(DRAWN),)
    return (m.one_of(flat_layout(m), f"[{m.layout(2)}, {m.layout(2)}]"),)


def layout_options(m: Maker) -> dict[str, str]:
    options = {
        "color": m.one_of("'value'", "'bank'", "'thread'", "'tile'"),
        "bits": m.one_of("16", "32"),
        "tile": "(2, 2)",
        "title": "'a title'",
    }
    return {k: v for k, v in options.items() if m.chance(0.3)}


@calls_of("draw.draw_layout", weight=0.7)
def _draw_layout(m: Maker) -> Any:
    return (flat_layout(m),), layout_options(m)


@calls_of("draw.draw_compare", weight=0.5)
def _draw_compare(m: Maker) -> Any:
    return (m.layout(2), m.layout(2)), {k: v for k, v in {"names": "('a', 'b')", "bits": "16"}.items() if m.chance(0.4)}


add(
    "draw.draw_tensor",
    lambda m: m.one_of(
        "make_identity_tensor((3, 4))",
        "make_tensor(array((3, 4)))",
        "make_tensor(counting_iterator(3), (4, 5))",
        "make_tensor(make_gmem_ptr(16, 'float16'), (4, 5))",
    ),
    weight=0.5,
)
add("draw.draw_boxes", lambda m: m.one_of("load_atom()", "load_atom('SM90_TMA_STORE')"), weight=0.4)
add("draw.draw_multicast", "load_atom('SM90_TMA_LOAD_MULTICAST', 64, 64, '128B', 2)", weight=0.4)
add(
    "draw.draw_descriptor",
    lambda m: m.one_of("request()", "im2col_request()", "tma.encode(request())", "bytes(64)"),
    weight=0.4,
)
add("draw.draw_im2col", "im2col_request()", named={"coords": "(0, -1, -1, 0)", "offsets": "(1, 0)"}, weight=0.4)
add(
    "draw.draw_smem",
    lambda m: m.one_of("load_atom()", "load_atom('SM90_TMA_LOAD', 8, 32, '64B')"),
    named={"tile_coord": lambda m: m.one_of("(0, 1)", "3")},
    weight=0.3,
)
add("draw.draw_smem", "im2col_request()", "(0, 0, 0, 0)", "(1, 0)", weight=0.3)
add(
    "draw.draw_swizzle",
    lambda m: m.one_of(m.swizzle(), "Swizzle(3, 4, 3)"),
    named={"layout": "Layout((8, 64), (64, 1))", "bits": "16", "on": lambda m: m.one_of("'bytes'", "'elements'")},
    weight=0.5,
)
add("draw.draw_tmem", lambda m: m.one_of("tmem_copy()", "tmem.demonstrate()", "loaded_tmem().sources"), weight=0.3)
TV = "make_layout_tv(Layout((Int(2), Int(2)), (Int(2), Int(1))), Layout((Int(1), Int(2))))"
add("draw.draw_mma", lambda m: m.one_of("tiled_mma()", "'SM80_16x8x8_F32F16F16F32_TN'"), weight=0.1)
add("draw.draw_copy", "ldmatrix()", weight=0.1)
add(
    "draw.draw_ldmatrix",
    "ldmatrix()",
    lambda m: m.one_of("Layout((Int(16), Int(16)), LayoutRight)", "Layout((Int(16), Int(16)))"),
    named={"bits": "16", "step": "0", "warp": "0"},
    weight=0.2,
)
add("draw.draw_tv", f"{TV}[1]", f"{TV}[0]", weight=0.5)
add("draw.explorer_page", weight=0.05)
add("draw.explorer_page", named={"served": "True"}, weight=0.05)
add("draw.html_page", "'a < b'", lambda m: m.one_of("[('<svg/>', 'text')]", "[]"))
add("draw.Picture", "'a title'", f"{PICTURE}.tables", named={"notes": "('a note',)"})
method("draw.Picture.png", PICTURE, named={"scale": "1.0", "dark": "True"}, weight=0.1)
method(
    "draw.Picture.save",
    PICTURE,
    lambda m: m.one_of("'p.svg'", "'p.txt'", "'p.html'"),
    named={"scale": "1.0", "dark": "False"},
    weight=0.3,
)

# ---- cute_py.testing

add("testing.assert_same_function", "Layout((2, 3), (1, 2))", "Layout(6)")
add("testing.assert_same_bytes", "[1, 2, 3]", "[1, 2, 3]")
add("testing.assert_same_bytes", "gmem_bytes(128)", "gmem_bytes(128)", "small_request()", "[(0, 0)]", "[0]")
for name, arguments in {
    "coordinates_of": ("(4, (2, 3))",),
    "injective_layouts": (),
    "layouts": (),
    "shapes": (),
    "slices_of": ("(4, (2, 3))",),
    "strides_for": ("(4, 8)", "'compact'"),
    "swizzled_layouts": (),
    "swizzles": (),
}.items():
    add(f"testing.{name}", *arguments, weight=0.1, mutable=False)

# ---- exceptions

add("CuteError", "'the headline'", named={"facts": "{'a': 1}", "hint": "'do this'"}, weight=0.1, mutable=False)
for name in (
    "TmaError",
    "TmaLimitError",
    "TmaBuildError",
    "RaceError",
    "WouldHangError",
    "UnknownFactError",
    "EmissionError",
    "GBasisError",
):
    add(f"tma.{name}", "'the headline'", named={"facts": "{'a': 1}", "hint": "'do this'"}, weight=0.03, mutable=False)
add("tma.TmaTrap", "'CUDA_ERROR_ILLEGAL_ADDRESS'", "'a cause'", weight=0.03, mutable=False)
add("tma.TmaVerifyError", "4", "'a text'", weight=0.03, mutable=False)
