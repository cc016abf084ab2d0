"""`cute-py print`: what a printed layout or tensor is: its table, its elements, as C++ prints them."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import cute_py as cute
from cute_py.layout.trees import modes


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


def run(options: argparse.Namespace) -> int:
    """Print it."""
    text = sys.stdin.read().strip() if options.text == "-" else options.text
    thing = cute.parse(text)
    if options.json:
        data: dict[str, Any] = {"text": cute.text(thing), "kind": type(thing).__name__}
        if hasattr(thing, "shape"):
            data |= {"shape": cute.text(thing.shape), "size": int(cute.size(thing)), "rank": int(cute.rank(thing))}
        print(json.dumps(data, indent=2))
    elif isinstance(thing, cute.Tensor):
        cute.print_tensor(thing)
    elif isinstance(thing, (cute.Layout, cute.ComposedLayout)):
        if options.latex:
            cute.print_latex(thing)
        elif len(modes(thing.shape)) == 2 and cute.coprofile(thing) == 0:
            cute.print_layout(thing)
        else:
            print(thing)
            print(f"size {int(cute.size(thing))}, cosize {int(cute.cosize(thing))}")
    else:
        print(cute.text(thing))
    return 0
