"""`cute-py print`: what a printed layout or tensor is: its table, its elements, as C++ prints them."""

from __future__ import annotations

import argparse
import json
from typing import Any

import cute_py as cute
from cute_py.arith_tuple.latex import format_latex
from cute_py.arith_tuple.printing import format_tensor
from cute_py.cli.standard_input import text_of
from cute_py.errors import InvalidValueError, TensorAccessError
from cute_py.layout.trees import modes

SHOWN_ELEMENTS = 1 << 16
"""A layout of more elements is told by its text and size; a tensor or picture of more is refused."""


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser(
        "print",
        help="a layout or tensor as CuTe prints it: table or elements",
        description="Takes the text of a layout or tensor, such as '(4,8):(8,1)' or "
        "'ArithTuple(0,0) o (4,5):(_1@0,_1@1)', and prints it; - reads standard input.",
    )
    p.add_argument("text", help="what CuTe printed")
    p.add_argument("--latex", action="store_true", help="a TikZ picture of a layout")
    p.add_argument("--json", action="store_true", help="the result as JSON")
    p.set_defaults(run=run)


def _print_layout(layout: Any) -> None:
    """The table of a matrix of numbers, the text and the sizes of other layouts."""
    if len(modes(layout.shape)) == 2 and cute.coprofile(layout) == 0 and _size(layout) <= SHOWN_ELEMENTS:
        cute.print_layout(layout)
        return
    print(layout)
    print(f"size {_size(layout)}, cosize {int(cute.cosize(layout))}")


def _size(thing: Any) -> int:
    return int(cute.size(thing))


def _few(thing: Any, what: str) -> None:
    if _size(thing) > SHOWN_ELEMENTS:
        raise InvalidValueError(f"{_size(thing)} elements; at most {SHOWN_ELEMENTS} {what} (--json tells the size)")


def run(options: argparse.Namespace) -> int:
    """Print it."""
    text = text_of(options.text)
    thing = cute.parse(text)
    if options.json:
        data: dict[str, Any] = {"text": cute.text(thing), "kind": type(thing).__name__}
        if hasattr(thing, "shape"):
            data |= {"shape": cute.text(thing.shape), "size": int(cute.size(thing)), "rank": int(cute.rank(thing))}
        if options.latex and isinstance(thing, (cute.Layout, cute.ComposedLayout)):
            _few(thing, "cells can be drawn")
            data["latex"] = format_latex(thing)
        print(json.dumps(data, indent=2))
    elif isinstance(thing, cute.Tensor):
        _few(thing, "elements can be printed")
        try:
            text = format_tensor(thing)
        except TensorAccessError:  # a pointer of another program: its address and layout are all there is
            print(f"{thing}:\nthe elements lie in memory that is not here; its layout:")
            _print_layout(thing.layout)
        else:
            print(text.rstrip("\n"))
    elif isinstance(thing, (cute.Layout, cute.ComposedLayout)):
        if options.latex:
            _few(thing, "cells can be drawn")
            cute.print_latex(thing)
        else:
            _print_layout(thing)
    else:
        print(cute.text(thing))
    return 0
