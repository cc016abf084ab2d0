"""The pictures of the guide are those that its code draws today; no picture grows without bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import cute_py as cute
from cute_py import formats, mesh, tmem
from cute_py.draw import (
    Picture,
    draw,
    draw_boxes,
    draw_compare,
    draw_descriptor,
    draw_im2col,
    draw_mma,
    draw_multicast,
    draw_smem,
    draw_tv,
)
from cute_py.draw.table import SVG_BYTES, Cell, Table
from cute_py.tma.atom.make import make_tma_copy
from tests.draw.ring_run import ring_timeline
from tests.draw.structure import cells, words
from tests.each import each_of

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "guide" / "pictures"


def _atom() -> Any:
    gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(20,72):(72,_1)"))
    smem = cute.parse("Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)")
    return make_tma_copy("SM90_TMA_LOAD", gmem, smem)


def _multicast() -> Any:
    gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(64,128):(128,_1)"))
    smem = cute.parse("(_32,_64):(_64,_1)")
    return draw_multicast(make_tma_copy("SM90_TMA_LOAD_MULTICAST", gmem, smem, num_multicast=4))


def _threads() -> Any:
    thread = cute.Layout((cute.Int(2), cute.Int(4)), (cute.Int(4), cute.Int(1)))
    tile, tv = cute.make_layout_tv(thread, cute.Layout((cute.Int(1), cute.Int(2))))
    return draw_tv(tv, tile)


def _divided() -> Any:
    layout = cute.Layout((4, 6), (6, 1))
    return draw_compare(layout, cute.zipped_divide(layout, (2, 3)), names=("A", "in tiles of (2,3)"))


IMAGE = cute.tma.TensorMapIm2col(6, 0x1000, (16, 7, 5, 2), (32, 224, 1120), (-1, -1), (-1, -1), 16, 16)
GUIDE: dict[str, Callable[[], Picture]] = {
    "layout": lambda: draw(cute.parse("((2,2),(4,2)):((1,8),(2,16))")),
    "compare": _divided,
    "tv": _threads,
    "mma": lambda: draw_mma("SM80_16x8x16_F32F16F16F32_TN"),
    "swizzle": lambda: draw(cute.Swizzle(3, 4, 3)),
    "boxes": lambda: draw_boxes(_atom()),
    "smem": lambda: draw_smem(_atom(), (2, 1)),
    "multicast": _multicast,
    "im2col": lambda: draw_im2col(IMAGE, (0, 3, 0, 0), (2, 1)),
    "pipeline": lambda: draw(ring_timeline()),
}


def _copy(shape: tuple[int, int], tile: tuple[int, int], dtype: str, swizzle: str = "128B") -> Any:
    gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, dtype), cute.Layout(shape, (shape[1], cute.Int(1))))
    return make_tma_copy("SM90_TMA_LOAD", gmem, cute.tma.make_smem_layout("K", swizzle, dtype, tile))


def _swizzled() -> Picture:
    plain = cute.Layout((4, 4), (4, 1))
    return draw_compare(plain, cute.ComposedLayout(cute.Swizzle(2, 0, 2), 0, plain), names=("plain", "swizzled"))


def _coordinates() -> Picture:
    iterator = cute.make_inttuple_iter((0, 0))
    return draw(cute.make_tensor(iterator, cute.Layout((4, 6), (cute.E(1), cute.E(0)))))


def _map() -> Picture:
    kinds = cute.tma.TensorMapDataType.BFLOAT16, cute.tma.TensorMapSwizzle.B128
    request = cute.tma.TensorMapTiled(kinds[0], 0x7F0000000000, (1024, 4096), (2048,), (64, 128), swizzle=kinds[1])
    return draw_descriptor(cute.tma.encode(request))


def _tensor_memory() -> Picture:
    smem = tmem.Buffer("A_smem", (32, 16), "uint8", "shared", tmem.S[(32, 16) : (16, 1)])
    layout = tmem.S[(32, 16) : (1 @ tmem.TLane, 1 @ tmem.TCol)] + tmem.R[4 : 32 @ tmem.TLane]
    buffer = tmem.Buffer("tmem", (32, 16), "uint8", "tmem", layout, tmem.TmemAllocation(32))
    return draw(tmem.copy_async(buffer[0:32, 0:16], smem[0:32, 0:16]))


def _shards() -> Picture:
    return draw(mesh.distribute((8, 12), (2, 2), [mesh.Shard(0), mesh.BlockCyclic(1, 3)]))


def _accumulator() -> Picture:
    return draw_tv(cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN").layoutC_TV, (16, 8))


OTHER_PAGES: dict[str, tuple[str, Callable[[], Picture]]] = {
    "layouts-swizzled": ("layouts", _swizzled),
    "coordinates": ("coordinate-tensors", _coordinates),
    "atoms-boxes": ("atoms", lambda: draw_boxes(_copy((300, 200), (128, 128), "bfloat16"))),
    "reference-boxes": ("reference-pages", lambda: draw_boxes(_copy((256, 128), (64, 64), "uint16"))),
    "accumulator": ("threads-and-values", _accumulator),
    "descriptor": ("descriptors", _map),
    "emulated-tile": ("emulation", lambda: draw_smem(_copy((64, 96), (16, 32), "uint16", "64B"), (0, 1))),
    "gpu-boxes": ("gpu", lambda: draw_boxes(_copy((256, 512), (128, 64), "uint16"))),
    "gemm-boxes": ("gemm", lambda: draw_boxes(_copy((520, 328), (256, 64), "bfloat16"))),
    "tensor-memory": ("tensor-memory", _tensor_memory),
    "shards": ("many-devices", _shards),
    "scales": ("formats", lambda: draw(formats.mxfp8(), shape=(40, 128))),
    "register": ("machine", lambda: draw(cute.Layout(((4, 2), 32), ((32, 128), 1)))),
}
"""Name of a picture -> (the page of the guide that shows it, its drawing)."""
ALL = {**GUIDE, **{name: make for name, (_, make) in OTHER_PAGES.items()}}


@each_of("name", ALL)
def test_the_guide_shows_what_is_drawn(name: str) -> None:
    """Where this fails after a change that was meant, save it again: ALL[name]().save(FOLDER / f"{name}.svg")."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == ALL[name]().svg + "\n"


def test_the_guide_has_these_pictures_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(ALL)
    shown = [("pictures", name) for name in GUIDE] + [(page, name) for name, (page, _) in OTHER_PAGES.items()]
    for page, name in shown:
        assert f"](pictures/{name}.svg)" in (FOLDER.parent / f"{page}.md").read_text(encoding="utf-8"), (page, name)


def test_every_page_of_the_guide_has_a_picture() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("*.md")}
    assert [name for name, text in pages.items() if "](pictures/" not in text] == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: draw(cute.Layout((2,) * 24)),
        lambda: draw(cute.Layout((10**6, 10**6), (10**17, 10**11))),
        pytest.param(lambda: draw_tv(cute.Layout((1024, 1024), (0, 1)), (1024,)), marks=pytest.mark.slow),
        lambda: draw(cute.make_identity_tensor((100, 100, 100, 100, 100))),
        lambda: draw([cute.Layout((2,) * 24)] * 16),
        lambda: draw(cute.Swizzle(3, 0, 30)),
    ],
)
def test_no_picture_is_huge(make: Any) -> None:
    picture = make()
    ElementTree.fromstring(picture.svg)
    assert len(picture.svg) < SVG_BYTES
    assert len(picture.text) < 1_000_000
    assert "summarised: " in picture.text


def test_titles_go_where_they_are_too_much() -> None:
    long = Cell("1", "x" * 1000)
    rows = tuple((long,) * 64 for _ in range(64))
    picture = Picture("large", (Table("", rows, ("",) * 64, ("",) * 64),))
    assert len(picture.svg) < SVG_BYTES
    assert "the titles of the cells are omitted: they would be too large" in words(picture)
    assert {c.title for c in cells(picture)} == {""}


def test_a_long_name_is_clipped_in_the_drawing_only() -> None:
    name = "n" * 5000
    picture = Picture(name, (Table("", ((Cell("1", "t"),),), ("0",), ("0",)),))
    root = ElementTree.fromstring(picture.svg)
    assert float(root.get("width", "0")) < 2000
    assert picture.text.startswith(name)


@pytest.mark.parametrize("title", ["a\x00b", "\x1b[31m", "\uffff", "\ud800", "<&>\"'"])
def test_any_title_makes_a_picture_that_can_be_read(title: str, tmp_path: Path) -> None:
    picture = draw(cute.parse("(2,3):(1,2)"), title=title)
    shown = "".join("\ufffd" if c in "\x00\x1b\uffff\ud800" else c for c in title)
    assert shown in words(picture) and len(cells(picture)) == 6
    assert "<figure>" in picture.html
    for ending in ("svg", "html", "txt"):
        assert picture.save(tmp_path / f"picture.{ending}").read_bytes()
