"""The pictures of the how-to pages and of the tutorial are those that the library draws today.

`python -m tests.draw.test_howto_pictures` saves all of them again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats, mesh
from cute_py.draw import (
    Picture,
    draw,
    draw_boxes,
    draw_compare,
    draw_descriptor,
    draw_im2col,
    draw_multicast,
    draw_smem,
    draw_tv,
)
from tests.draw.ring_run import ring_timeline

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "howto" / "pictures"


def load(shape: tuple[int, int], tile: tuple[int, int], dtype: str, swizzle: str = "none", **options: Any) -> Any:
    """A load of tiles of a row-major tensor."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, dtype), cute.Layout(shape, (shape[1], cute.Int(1))))
    smem: Any = cute.Layout(cute.static(tile), cute.LayoutRight)
    if swizzle != "none":
        smem = cute.tma.make_smem_layout("K", swizzle, dtype, tile)
    op = "SM90_TMA_LOAD_MULTICAST" if options else "SM90_TMA_LOAD"
    return cute.tma.make_tma_copy(op, gmem, smem, **options)


def coordinates() -> Picture:
    row_major = cute.Layout((3, 5), (cute.E(1), cute.E(0)))
    return draw(cute.make_tensor(cute.make_inttuple_iter((0, 0)), row_major))


def conflicts() -> Picture:
    plain = cute.Layout((8, 8), (8, 1))
    swizzled = cute.ComposedLayout(cute.Swizzle(3, 0, 3), 0, plain)
    return draw_compare(plain, swizzled, names=("units of 16 bytes", "swizzled"))


def one_thread() -> Picture:
    tile, tv = cute.make_layout_tv(cute.parse("(_4,_8):(_8,_1)"), cute.parse("(_2,_1):(_1,_0)"))
    return draw_tv(tv, tile)


def image() -> Picture:
    request = cute.tma.TensorMapIm2col(6, 0x1000, (16, 7, 5, 2), (32, 224, 1120), (-1, -1), (-1, -1), 16, 16)
    return draw_im2col(request, (0, 3, 0, 0), (2, 1))


def divided() -> Picture:
    layout = cute.Layout((4, 8), (8, 1))
    return draw_compare(layout, cute.zipped_divide(layout, (2, 4)), names=("a layout", "its tiles of (2,4)"))


def one_copy() -> Picture:
    return draw_boxes(load((1024, 512), (128, 64), "float16", "128B"))


def four_boxes() -> Picture:
    """The boxes of an operand like B of the kernel on the page, MN-major, and smaller."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(1 << 40, "bfloat16"), cute.Layout((512, 256), (cute.Int(1), 512)))
    stage = cute.tma.make_smem_layout("MN", "128B", "bfloat16", (256, 64), (cute.Int(2), cute.Int(1)))
    return draw_boxes(cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, stage))


def changed_map() -> Picture:
    """The second map of the page."""
    swizzle = cute.tma.TensorMapSwizzle.B128
    request = cute.tma.TensorMapTiled(6, 0x7F0000400000, (512, 300), (1024,), (64, 128), swizzle=swizzle)
    return draw_descriptor(cute.tma.encode(request))


def views() -> Picture:
    """An array of 4 x 8 and two views of it: equal offsets are one element."""
    layouts = ((4, 8), (8, 1)), ((8, 4), (1, 8)), ((4, 4), (8, 2))
    return draw_compare(*(cute.Layout(*layout) for layout in layouts), names=("x", "x.T", "x[:, ::2]"))


def look_alike() -> Picture:
    return draw_compare(cute.parse("(4,8):(8,1)"), cute.parse("(4,8):(1,4)"), names=("row-major", "column-major"))


def permuted() -> Picture:
    """C of the permuted MMA of the page."""
    columns = cute.Layout(cute.static((2, 4, 2)), cute.static((1, 4, 2)))
    mma = cute.make_tiled_mma(
        "SM80_16x8x16_F32F16F16F32_TN", cute.Layout(cute.static((1, 1, 1))), (cute.Int(16), columns, cute.Int(16))
    )
    return draw_tv(mma.get_layoutC_TV(), (16, 16))


def timeline() -> Picture:
    """The run at the end of the page: its kernel, with both mistakes mended."""
    page = (DOCS / "howto" / "hang-without-a-gpu.md").read_text(encoding="utf-8")
    text = page.split('PTX = """')[1].split('"""')[0]
    text = text.replace("EMPTY:\n", "  xor.b32 %r7, %r7, 1;\nEMPTY:\n").replace("[full], 512;", "[full], 256;")
    arrays = [np.zeros(64, np.uint32), np.arange(64, dtype=np.uint32)]
    return draw(cute.run_ptx(text, args=arrays, schedule="lazy").timeline())


PICTURES: dict[str, tuple[str, Callable[[], Picture]]] = {
    "one-at-zero": ("howto/what-does-1-at-0-mean.md", coordinates),
    "transposed": ("howto/transposed-coordinates.md", lambda: draw_boxes(load((6, 8), (2, 4), "float32"))),
    "swizzled-box": ("howto/which-swizzle.md", lambda: draw_smem(load((64, 64), (8, 64), "float16", "128B"))),
    "slices": (
        "howto/multicast-masks.md",
        lambda: draw_multicast(load((64, 128), (32, 64), "float16", num_multicast=4)),
    ),
    "conflicts": ("howto/bank-conflicts.md", conflicts),
    "scales-8x4": ("howto/scale-orders.md", lambda: draw(formats.mxfp8(scales="8x4"), shape=(16, 256))),
    "sections": (
        "howto/tensor-parallel-8-to-4.md",
        lambda: draw(mesh.distribute((12, 4), 2, [mesh.SectionedShard(0, (8, 2, 2))])),
    ),
    "sharded": (
        "howto/from-dtensor-and-jax.md",
        lambda: draw(mesh.distribute((7, 6), (2, 2), [mesh.Shard(0), mesh.Shard(1)])),
    ),
    "one-thread": ("howto/tiled-copies-and-mma.md", one_thread),
    "window": ("howto/other-forms.md", image),
    "tiles": ("howto/layout-questions.md", divided),
    "shared-bytes": ("howto/wrong-numbers.md", lambda: draw_smem(load((64, 32), (8, 32), "uint16", "64B"))),
    "over-the-end": ("howto/bytes-to-expect.md", lambda: draw_boxes(load((10, 24), (4, 16), "float32"))),
    "ring": ("howto/why-does-it-hang.md", lambda: draw(ring_timeline())),
    "one-copy": ("howto/coming-from.md", one_copy),
    "four-boxes": ("howto/eight-ways-to-break-it.md", four_boxes),
    "changed-map": ("howto/grouped-descriptors.md", changed_map),
    "views": ("howto/interop.md", views),
    "look-alike": ("howto/testing.md", look_alike),
    "permuted": ("howto/tiled-copies-and-mma.md", permuted),
    "timeline": ("howto/hang-without-a-gpu.md", timeline),
    "weights": ("tutorial.md", lambda: draw_boxes(load((200, 256), (64, 64), "float16", "128B"))),
}
"""Name of a picture -> (the page that shows it, its drawing)."""


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_shows_what_is_drawn(name: str) -> None:
    page, make = PICTURES[name]
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == make().svg + "\n"
    assert f"pictures/{name}.svg)" in (DOCS / page).read_text(encoding="utf-8")


def save() -> None:
    for name, (_, make) in PICTURES.items():
        make().save(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    save()
