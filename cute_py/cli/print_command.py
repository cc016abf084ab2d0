"""`cute-py print`: print a layout or tensor as CuTe C++ does, with its table or its elements."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import cute_py as cute
from cute_py.cli.arguments import json_option, text_of
from cute_py.errors import FileFormatError, InvalidValueError, ParseError, TensorAccessError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.trees import modes
from cute_py.tensor.latex import format_latex
from cute_py.tensor.printing import format_tensor
from cute_py.tensor.tensor import Tensor
from cute_py.terminal import print_report

SHOWN_ELEMENTS = 1 << 16
"""Largest number of elements that are printed. A larger layout shows its text and size; a larger tensor or picture is
refused."""


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Prints a layout or tensor, such as '(4,8):(8,1)' or 'ArithTuple(0,0) o (4,5):(_1@0,_1@1)', completely and at "
        "full width. `cute-py draw` shortens a large one."
    )
    p.add_argument("text", help="the text that CuTe printed, or - for standard input")
    p.add_argument("--latex", action="store_true", help="print a TikZ picture of a layout")
    p.add_argument(
        "--explain", action="store_true", help="explain the layout or tensor instead of printing its elements"
    )
    json_option(p, run)


def _print_layout(layout: Layout | ComposedLayout) -> None:
    """Print a layout of rank 2 as a table of its offsets; for any other layout, print its text, its coordinates and its
    sizes."""
    size = _number(cute.size(layout))
    if isinstance(size, int) and size <= SHOWN_ELEMENTS and len(modes(layout.shape)) == 2 and _has_numbers(layout):
        cute.print_layout(layout)
        return
    print(layout)
    start = cute.coprofile(layout)
    if not isinstance(start, tuple):
        print(f"size {size}, cosize {_number(cute.cosize(layout))}")
        return
    if isinstance(size, int) and size <= SHOWN_ELEMENTS:
        tensor = cute.make_tensor(cute.make_inttuple_iter(start), layout)
        print(format_tensor(tensor, header=False).rstrip("\n"))
    print(f"size {size}, coordinates below {cute.text(cute.coshape(layout))}")


def _number(number: Any) -> int | str:
    """An integer as an int; a symbolic number or a tuple as a string."""
    return cute.text(number) if isinstance(number, tuple) or getattr(number, "free_symbols", None) else int(number)


def _has_numbers(layout: Layout | ComposedLayout) -> bool:
    """Whether all offsets are known integers, neither coordinates nor symbols."""
    return bool(cute.coprofile(layout) == 0) and isinstance(_number(cute.cosize(layout)), int)


def _few(thing: Layout | ComposedLayout | Tensor, what: str) -> None:
    size = _number(cute.size(thing))
    if isinstance(size, str):
        raise InvalidValueError(f"the size is {size}; must be a known number")
    if size > SHOWN_ELEMENTS:
        raise InvalidValueError(
            f"the layout has {size} elements, but at most {SHOWN_ELEMENTS} {what} (--json has the size)"
        )


def run(options: argparse.Namespace) -> int:
    """Print the layout or tensor."""
    text = text_of(options.text)
    try:
        thing = cute.parse(text)
    except ParseError:
        if os.path.isfile(options.text):
            raise FileFormatError(f"{options.text} is a file; pass the text of a layout or tensor") from None
        raise
    if options.json:
        print(json.dumps(_data(thing, options), indent=2))
    elif options.explain:
        print_report(cute.explain(thing))
    elif isinstance(thing, cute.Tensor):
        _print_tensor(thing)
    elif not isinstance(thing, (cute.Layout, cute.ComposedLayout)):
        print(cute.text(thing))
    elif options.latex:
        _few(thing, "cells can be drawn")
        cute.print_latex(thing)
    else:
        _print_layout(thing)
    return 0


def _data(thing: Any, options: argparse.Namespace) -> dict[str, str | int]:
    """The data that --json prints."""
    data: dict[str, str | int] = {"text": cute.text(thing), "kind": type(thing).__name__}
    if hasattr(thing, "shape"):
        data |= {"shape": cute.text(thing.shape), "size": _number(cute.size(thing)), "rank": int(cute.rank(thing))}
    if isinstance(thing, cute.Layout):
        data |= {"stride": cute.text(thing.stride), "cosize": _number(cute.cosize(thing))}
    if options.latex and isinstance(thing, (cute.Layout, cute.ComposedLayout)):
        _few(thing, "cells can be drawn")
        data["latex"] = format_latex(thing)
    return data | ({"explain": str(cute.explain(thing))} if options.explain else {})


def _print_tensor(tensor: Tensor) -> None:
    """Print the elements of a tensor. If their memory can't be read, because another program printed the pointer, print
    the layout."""
    _few(tensor, "elements can be printed")
    try:
        print(format_tensor(tensor).rstrip("\n"))
    except TensorAccessError:
        print(f"{tensor}:\nthe memory of the elements can't be read; the layout is:")
        _print_layout(tensor.layout)
