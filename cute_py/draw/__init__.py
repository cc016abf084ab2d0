"""Pictures: SVG for notebooks and pages, and the same cells as text for a terminal.

`draw(thing)` picks the picture; the functions below it are the single ones. A `Picture` shows itself in a notebook,
prints as text, and is saved as .svg, .png, .html or .txt.
"""

from __future__ import annotations

from cute_py.draw.bit_map import draw_descriptor
from cute_py.draw.boxes import draw_boxes, draw_multicast
from cute_py.draw.dispatch import draw
from cute_py.draw.explorer import explorer_page
from cute_py.draw.im2col_window import draw_im2col
from cute_py.draw.layouts import draw_compare, draw_layout, draw_tensor
from cute_py.draw.page import html_page
from cute_py.draw.picture import Picture
from cute_py.draw.shards import draw_shards
from cute_py.draw.shared_memory import draw_smem, draw_swizzle
from cute_py.draw.tensor_memory import draw_tmem
from cute_py.draw.threads import draw_copy, draw_ldmatrix, draw_mma, draw_tv
from cute_py.draw.timeline import draw_pipeline

__all__ = [
    "Picture",
    "draw",
    "draw_boxes",
    "draw_compare",
    "draw_copy",
    "draw_descriptor",
    "draw_im2col",
    "draw_layout",
    "draw_ldmatrix",
    "draw_mma",
    "draw_multicast",
    "draw_pipeline",
    "draw_shards",
    "draw_smem",
    "draw_swizzle",
    "draw_tensor",
    "draw_tmem",
    "draw_tv",
    "explorer_page",
    "html_page",
]
