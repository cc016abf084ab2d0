"""The tab Formats: the positions in memory of the scales of a block-scaled format."""

from __future__ import annotations

from typing import Any, Final

import cute_py as cute
from cute_py import formats
from cute_py.draw.shards import draw_format
from cute_py.errors import CuteError, InvalidValueError, given
from cute_py.formats.scale_orders import ORDERS, scale_order
from cute_py.page.answer import Answer, FieldError, read
from cute_py.page.html import code, pairs, pre
from cute_py.page.spelled import cpp

MOST_SCALES: Final = 1 << 14
"""Maximum number of scales in a picture."""
MOST_ROWS: Final = 1_000_000
BUILDERS: Final = ("mxfp8", "mxfp6", "mxfp4", "nvfp4", "fp8")
BLOCKS: Final = ("row", "column", "tensor")


def _block(text: str) -> Any:
    if text in BLOCKS:
        return text
    found: Any = cute.parse(text)
    if not isinstance(found, tuple) or len(found) != 2:
        raise InvalidValueError(f"the block is {given(text)}; must be {', '.join(BLOCKS)} or two sizes such as (1,128)")
    return tuple(int(n) for n in found)


def _extent(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_ROWS:
        raise InvalidValueError(f"a size is {given(text)}; must be a number from 1 to {MOST_ROWS}")
    return int(text)


def _order(text: str) -> Any:
    found: Any = cute.parse(text) if ":" in text else text
    return scale_order(found)


def fill_formats(out: Answer, inputs: dict[str, str], fixes: bool) -> None:
    """Answer the tab Formats."""
    name = inputs["format"]
    if name not in BUILDERS:
        raise FieldError("format", InvalidValueError(f"unknown format {given(name)}", {"known": ", ".join(BUILDERS)}))
    options: dict[str, Any] = {}
    if inputs["scales"]:
        try:
            options["scales"] = _order(inputs["scales"])
        except CuteError as error:
            out.verdict = ("bad", f"Order of scales: {error.headline}")
            out.problem(error, "scales", [{"words": row.name, "inputs": {"scales": row.name}} for row in ORDERS[:4]])
            return
    if name == "fp8":
        options["block"] = read(inputs, "block", lambda text: _block(text or "row"))
    elif inputs["axis"] == "0":
        options["axis"] = 0
    rows, columns = read(inputs, "M", _extent), read(inputs, "K", _extent)
    form = getattr(formats, name)(**options)
    count = int(form.scale_size(rows, columns))
    block = " x ".join(map(str, form.blocks(rows, columns)))
    out.verdict = (
        "good",
        f"{count} scales of {form.scale_dtype.name}, one for {block} elements, in the order {form.order}",
    )
    if count > MOST_SCALES:
        raise FieldError(
            "M", InvalidValueError(f"the format has {count} scales; must have at most {MOST_SCALES} for a picture")
        )
    out.picture("picture", "The scale of each block, and memory", draw_format(form, (rows, columns)), "scales")
    told: list[tuple[str, Any]] = [
        ("data", code(form.data_layout(rows, columns))),
        ("bytes", str(form.data_size(rows, columns))),
    ]
    if form.order.is_layout:
        told.insert(0, ("scales", code(form.scale_layout(rows, columns))))
    out.section("layouts", "Layouts from (m, k)", pairs(told))
    out.section("format", "The format", pre(form.explain()))
    lines = ["import cute_py as cute", "from cute_py import formats", "", f"form = formats.{form!r}",
             f"print(form.scale_layout({rows}, {columns}))", "print(form.explain())",
             f"print(cute.draw.draw_format(form, ({rows}, {columns})))"]  # fmt: skip
    out.panel("Python", "\n".join(lines))
    if form.order.is_layout:
        native = f"auto scales = {cpp(form.scale_layout(rows, columns))};\nprint(scales);"
        out.panel("C++", f"#include <cute/tensor.hpp>\nusing namespace cute;\n\n{native}")
