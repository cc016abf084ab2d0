"""`cute-py draw`: draw pictures in the terminal, as SVG, or as one HTML page."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import cute_py as cute
from cute_py.argument_checks import has
from cute_py.atom import CopyAtom, MmaAtom
from cute_py.atomic_write import write_whole
from cute_py.cli.arguments import integer, json_option, only_one, text_of
from cute_py.cli.desc_command import map_of
from cute_py.draw.bit_map import draw_descriptor
from cute_py.draw.boxes import draw_boxes, draw_multicast
from cute_py.draw.dispatch import draw
from cute_py.draw.layouts import COLORS, Sizes, draw_compare, draw_layout
from cute_py.draw.page import html_page
from cute_py.draw.picture import Picture
from cute_py.draw.shards import SHAPE, draw_format
from cute_py.draw.shared_memory import draw_smem, draw_swizzle
from cute_py.draw.tensor_memory import draw_tmem
from cute_py.draw.threads import draw_mma, draw_tv
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidValueError, unless_refused
from cute_py.explanation.atoms import atom_of
from cute_py.formats import Format, mxfp8, parse_format
from cute_py.page.document import explorer_page
from cute_py.page.interpreter import LICENCE, find_interpreter, interpreter_version
from cute_py.terminal import print_picture, spinner
from cute_py.tma.atom.gbasis import as_tiler
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tmem.demonstration import demonstrate

OF_ATOM = ("boxes", "smem", "multicast", "descriptor")
WHATS = ("layout", "tv", "compare", "swizzle", "tensor", *OF_ATOM, "tmem")


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Draws a layout, tensor or swizzle as CuTe prints it, such as '((2,2),4):((1,8),2)'; several layouts side by "
        "side; or an MMA or copy atom by its name. With --what boxes, smem, multicast or descriptor, TEXT is GMEM SMEM "
        "[TILE], as for `tma` and `explain`, and the picture shows the TMA copy. Pass - as TEXT to read standard "
        "input. Prints the picture as text; --out writes it as SVG, PNG or HTML. --html without a text writes the "
        "playground, a page that works offline: you type layouts, atoms, copies, formats or errors into it. Python "
        "runs in the page if the npm package pyodide is installed (npm install pyodide); otherwise the page shows "
        "only examples."
    )
    p.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help="the text that CuTe or Triton printed, a descriptor in any form that `desc` takes, or the name of a "
        "format or of an order of scales (--tile is then the shape of the tensor)",
    )
    p.add_argument("--what", choices=WHATS, help="kind of picture; default: the one that fits the text")
    p.add_argument("--smem", help="layout of the tile in shared memory; TEXT is then the global layout")
    p.add_argument(
        "--tile",
        help="tile of the copy or thread-value layout; with --color tile, the tile that determines the colours",
    )
    p.add_argument("--at", default="0", help="tile that is drawn in shared memory: an index or a coordinate")
    p.add_argument("--dtype", default="float16", help="element type; also sets the width used to count banks")
    p.add_argument("--op", default="SM90_TMA_LOAD", help="operation, such as SM90_TMA_LOAD_MULTICAST")
    p.add_argument("--operand", choices=("A", "B", "C"), help="draw only this operand of an MMA")
    p.add_argument("--multicast", type=integer, default=1, help="CTAs that share the tile")
    p.add_argument("--address", type=integer, default=4096, help="global address")
    p.add_argument("--arch", default="sm_90a", help="target architecture; default sm_90a")
    p.add_argument("--color", choices=COLORS, default="value", help="meaning of the colours of a layout")
    p.add_argument("--out", metavar="FILE", help="write FILE.svg, FILE.png, FILE.html or FILE.txt")
    p.add_argument(
        "--scale", type=float, help="for a .png: pixels per pixel of the SVG; default 2, or 1 for a large picture"
    )
    p.add_argument(
        "--dark",
        action="store_true",
        help="draw a .png in dark colours; an SVG follows the system setting of its viewer",
    )
    p.add_argument("--html", action="store_true", help="write one self-contained page with all pictures")
    p.add_argument(
        "--interpreter",
        metavar="DIR",
        help="for the playground: the folder of the npm package pyodide; default CUTE_PY_PYODIDE, or "
        "node_modules here or in a parent folder; - for none",
    )
    json_option(p, run, "print titles, texts and SVG as JSON")


def run(options: argparse.Namespace) -> int:
    """Draw the requested pictures, and print them or write them to a file."""
    if (options.dark or options.scale is not None) and (
        options.html or not (options.out or "").lower().endswith(".png")
    ):
        raise InvalidValueError("--dark and --scale need --out with a name that ends in .png")
    only_one(*options.texts, options.smem, options.tile)
    texts = [text_of(text) for text in options.texts]
    options.smem, options.tile = (None if t is None else text_of(t) for t in (options.smem, options.tile))
    # The form that `cute-py tma` takes: GMEM SMEM [TILE].
    if options.smem is None and options.what in OF_ATOM and 2 <= len(texts) <= 3:
        options.smem, options.tile = [*texts[1:], options.tile][:2]
        texts = texts[:1]
    if options.html and not texts and options.what is None and options.smem is None:
        return _explorer(options)
    if options.interpreter is not None:
        raise InvalidValueError("--interpreter needs --html without a text, the playground")
    page = options.html or (options.out or "").lower().endswith(".html")
    pictures = pictures_of(options, texts, every=page)
    title = pictures[0].title or " | ".join(texts)
    html = html_page(title, [(picture.svg, picture.text) for picture in pictures]) + "\n" if page else ""
    if options.out and page:
        _write_page(options.out, html)
    elif options.out:
        with spinner("drawing") if options.out.lower().endswith(".png") else nullcontext():
            pictures[0].save(options.out, scale=options.scale, dark=options.dark)
    if options.json:
        print(json.dumps([_data(picture, options.out) for picture in pictures], indent=2))
    elif options.out:
        print(f"{options.out}: {Path(options.out).stat().st_size} bytes, {sum(p.count for p in pictures)} cells")
    elif page:
        print(html.rstrip("\n"))
    else:
        print_picture(str(pictures[0]))
    return 0


def _explorer(options: argparse.Namespace) -> int:
    """Write the page of the playground."""
    folder = None if options.interpreter == "-" else find_interpreter(options.interpreter)
    with spinner("packing Python") if folder else nullcontext():
        page = explorer_page(interpreter=folder)
    held = (
        f"with Python: Pyodide {interpreter_version(folder)}, {LICENCE}"
        if folder
        else "view only, without an interpreter"
    )
    if options.out:
        _write_page(options.out, page)
    if options.json:
        found = {"file": options.out} if options.out else {"html": page}
        print(json.dumps([{"title": "playground", "interpreter": None if folder is None else str(folder), **found}]))
    else:
        print(f"{options.out}: {len(page.encode())} bytes, {held}" if options.out else page.rstrip("\n"))
    return 0


def _write_page(out: str, html: str) -> None:
    if not out.lower().endswith(".html"):
        raise InvalidValueError(f"{out}: the name of a page must end in .html")
    write_whole(Path(out), html)


def _data(picture: Picture, out: str | None) -> dict[str, Any]:
    data = {"title": picture.title, "notes": list(picture.notes), "cells": picture.count, "text": picture.text}
    return {**data, "file": out} if out else {**data, "svg": picture.svg}


def pictures_of(options: argparse.Namespace, texts: list[str], every: bool) -> list[Picture]:
    """The pictures that the options request. With `every`, all pictures of an atom if the options name none.

    Raises:
        InvalidValueError: there is nothing to draw, or the arguments do not fit the requested picture.
    """
    what = options.what
    if what == "tmem":
        return [draw_tmem(demonstrate())]
    if not texts:
        raise InvalidValueError("nothing to draw; pass a layout, or --what tmem")
    if options.smem is not None:
        return _of_atom(options, _single(texts, "--smem"), every)
    if what == "descriptor":
        return [draw_descriptor(map_of(_single(texts, what)))]
    if what in OF_ATOM:
        raise InvalidValueError(f"--what {what} needs --smem, the layout of a tile in shared memory")
    alone = texts[0] if what is None and len(texts) == 1 else None
    # A text that reads as a layout is one, also a layout of a compiler, whose numbers could be words of a tensor map.
    parsed, refusal = (None, None) if alone is None else _parsed_or_refusal(alone)
    if alone is not None and parsed is None and (data := unless_refused(map_of, alone)):
        return [draw_descriptor(data)]
    atom = None if alone is None else _atom_in(alone)
    if options.operand is not None:
        if not isinstance(atom, MmaAtom):
            raise InvalidValueError("--operand needs the name of an MMA atom, such as SM80_16x8x8_F32F16F16F32_TN")
        return [draw_mma(atom, operand=options.operand)]
    if atom is not None:
        return [draw(atom)]
    if alone is not None and (form := _format_in(alone)):
        return [draw_format(form, _tile(options) or SHAPE)]  # type: ignore[arg-type]
    if refusal is not None:
        raise refusal
    things: list[Any] = [cute.parse(text) for text in texts] if alone is None else [parsed]
    if what == "compare" or (what is None and len(things) > 1):
        return [draw_compare(*things, bits=as_dtype(options.dtype).bits)]
    return [_of_thing(options, things[0] if len(things) == 1 else _single(texts, str(what)))]


def _parsed_or_refusal(text: str) -> tuple[object, CuteError | None]:
    """The object that a text names, or the error that refuses the text."""
    try:
        return cute.parse(text), None
    except CuteError as error:
        return None, error


def _format_in(text: str) -> Format | None:
    """The format that a string names, as in `cute-py convert`, or MXFP8 with scales in the order that it names."""
    return unless_refused(parse_format, text) or unless_refused(lambda name: mxfp8(scales=name), text)


def _atom_in(text: str) -> MmaAtom | CopyAtom | None:
    """The atom that a string names, as in `cute-py atom show`; None if the string is not such a name.

    Raises:
        InvalidValueError: the name looks like an atom's, but does not exist; the error lists the nearest names.
    """
    if not _NAME.fullmatch(text.strip()):
        return None
    return atom_of(text) if text.strip().startswith("SM") else unless_refused(atom_of, text)


_NAME: Final = re.compile(r"(?!Sw<|S<)[A-Za-z]\w{3,}(?:<.*>)?", re.DOTALL)
"""Matches the name of an operation; a layout begins with a bracket or a number, a swizzle with Sw."""


def _single(texts: list[str], what: str) -> str:
    if len(texts) != 1:
        raise InvalidValueError(f"{what} needs one TEXT, got {len(texts)}")
    return texts[0]


def _tile(options: argparse.Namespace) -> Sizes | None:
    return as_tiler(options.tile) if options.tile else None  # type: ignore[return-value]


def _of_thing(options: argparse.Namespace, thing: Any) -> Picture:
    """The requested picture of a layout, tensor or swizzle."""
    if options.what == "tv":
        if (tile := _tile(options)) is None:
            raise InvalidValueError("--what tv needs --tile, the shape of the tile")
        return draw_tv(thing, tile)
    if has(thing, "linear"):
        if (tile := _tile(options)) is None:
            text = f"{type(thing).__name__} needs --tile, the shape of the tensor"
            raise InvalidValueError(text, hint="--tile 64x16 draws the thread of each element of a tensor of 64 x 16")
        return draw(thing.linear(tile))
    bits = as_dtype(options.dtype).bits
    if options.what == "swizzle":
        return draw_swizzle(thing, bits=bits)
    if options.what == "layout" or (options.color != "value" and isinstance(thing, (cute.Layout, cute.ComposedLayout))):
        return draw_layout(thing, options.color, bits=bits if options.color == "bank" else None, tile=_tile(options))
    return draw(thing)


def _of_atom(options: argparse.Namespace, text: str, every: bool) -> list[Picture]:
    """The requested pictures of a TMA copy."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(options.address, options.dtype), cute.parse(text))
    smem, count = cute.parse(options.smem), options.multicast
    atom = make_tma_copy(options.op, gmem, smem, _tile(options), count, None, options.arch)  # type: ignore[arg-type]
    drawn: dict[str, Callable[[], Picture]] = {
        "boxes": lambda: draw_boxes(atom),
        "smem": lambda: draw_smem(atom, _plain(cute.parse(options.at))),
        "multicast": lambda: draw_multicast(atom),
        "descriptor": lambda: draw_descriptor(atom.descriptor),
    }
    if options.what is None and every:
        return [make() for name, make in drawn.items() if name != "multicast" or count > 1]
    what = options.what or "boxes"
    if what not in drawn:
        raise InvalidValueError(f"--what {what} can't be used with --smem; possible: {', '.join(drawn)}")
    return [drawn[what]()]


def _plain(tree: Any) -> Any:
    """Convert the nested tuples that `parse` returns to plain tuples."""
    return tuple(map(_plain, tree)) if isinstance(tree, tuple) else tree
