"""The tab Layout: a layout, the result of an operation on it, its offsets, and its properties as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import cute_py as cute
from cute_py.draw.layouts import draw_layout
from cute_py.errors import (
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    MissingPackageError,
    counted,
    given,
)
from cute_py.layout import analysis
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, domain_of, static
from cute_py.layout.leaf import is_symbolic
from cute_py.layout.offset_table import MOST_LISTED
from cute_py.layout.offsets import domain_size
from cute_py.layout.steps import explained, steps
from cute_py.layout.trees import leaves
from cute_py.page.answer import Answer, FieldError, read
from cute_py.page.forms import DIVIDES, OPERATIONS, PRODUCTS
from cute_py.page.html import Child, code, list_html, pairs
from cute_py.page.spelled import cpp, dsl

MOST_ELEMENTS: Final = 1_000_000
"""Maximum number of elements of a layout on this tab; pictures show only the edges of large layouts."""
NO_DSL: Final = ("nullspace", "filter")
"""Operations that CuTe DSL does not have."""


def parsed(text: str, numbers: str = "1") -> Any:
    """Parse the text of a field. If `numbers` is "1", make the sizes and strides of a layout static.

    Raises:
        CuteError: see `parse`. InvalidValueError: the layout has more than `MOST_ELEMENTS` elements.
    """
    if not text:
        raise InvalidValueError("is empty; write a layout such as (4,8):(8,1)")
    thing: Any = cute.parse(text)
    if hasattr(thing, "engine"):
        thing = thing.layout
    if isinstance(thing, (Layout, ComposedLayout)):
        thing = static(thing) if numbers == "1" and has_known_sizes(thing) else thing
        bounded(thing)
    return thing


def has_known_sizes(thing: Layout | ComposedLayout) -> bool:
    """Whether all sizes and strides are known numbers, or basis elements with known numbers."""
    domain = domain_of(thing)
    return not any(map(is_symbolic, (*leaves(domain.shape), *leaves(domain.stride))))


def bounded(thing: Layout | ComposedLayout) -> None:
    """Refuse a layout with too many elements.

    Raises:
        InvalidValueError: the layout has more than `MOST_ELEMENTS` elements.
    """
    if not has_known_sizes(thing):
        return
    count = domain_size(thing)
    if count > MOST_ELEMENTS:
        raise InvalidValueError(f"the layout has {count} elements; must have at most {MOST_ELEMENTS} on this page")


def layout_of(text: str, numbers: str = "1") -> Layout | ComposedLayout:
    """Read a layout, plain or composed.

    Raises:
        InvalidTypeError: the text is not a layout. Other errors: as in `parsed`.
    """
    thing = parsed(text, numbers)
    if not isinstance(thing, (Layout, ComposedLayout)):
        raise InvalidTypeError(f"{given(text)} is {type(thing).__name__}; write a layout such as (4,8):(8,1)")
    return thing


def _operand(text: str, numbers: str) -> Any:
    """Read the second operand of an operation: a layout, a tiler of numbers and layouts, or a number."""
    return _static_tree(parsed(text, numbers), numbers)


def _static_tree(thing: Any, numbers: str) -> Any:
    if isinstance(thing, tuple):
        return tuple(_static_tree(part, numbers) for part in thing)
    if isinstance(thing, Layout):
        return static(thing) if numbers == "1" else thing
    return cute.Int(thing) if numbers == "1" and type(thing) is int else thing


def fill_algebra(out: Answer, inputs: dict[str, str], fixes: bool) -> None:
    """Answer the tab Layout."""
    numbers = inputs["static"]
    thing = read(inputs, "layout", lambda text: layout_of(text, numbers))
    name = inputs["op"]
    if name not in OPERATIONS:
        raise FieldError("op", InvalidValueError(f"unknown operation {given(name)}"))
    operand = read(inputs, "operand", lambda text: _operand(text, numbers)) if _takes(name, inputs["operand"]) else None
    result = None
    if name == "none":
        out.verdict = function_verdict(thing)
    else:
        operation: Callable[..., Any] = getattr(cute, name)
        operands = [thing] if operand is None else [thing, operand]
        try:
            result = operation(*operands)
        except CuteError as error:
            out.verdict = ("bad", f"{name}: {error.headline}")
            out.problem(error, "operand" if operand is not None else "layout", _with_static(inputs, error))
            result = None
        else:
            out.verdict = ("good", f"{name} is {result}")
            if isinstance(result, (Layout, ComposedLayout)):
                bounded(result)
            _steps_section(out, operation, operands, result)
    _pictures(out, inputs, thing, result)
    _facts(out, thing, "about", "A as a function")
    if isinstance(result, (Layout, ComposedLayout)):
        _facts(out, result, "result-facts", "The result as a function")
    _code(out, inputs, thing, name, operand)


def _takes(name: str, text: str) -> bool:
    """Whether an operation takes a second operand; for complement it is optional."""
    return name == "composition" or name in DIVIDES or name in PRODUCTS or (name == "complement" and bool(text))


def _with_static(inputs: dict[str, str], error: CuteError) -> list[dict[str, Any]]:
    if inputs["static"] == "1" or "static" not in f"{error.hint}{error.headline}".lower():
        return []
    return [{"words": "read the sizes as static", "inputs": {"static": "1"}}]


def _steps_section(out: Answer, operation: Callable[..., Any], operands: list[Any], result: Any) -> None:
    """Add a section with the steps of the operation."""
    if operation in explained():
        rows = steps(operation, *operands)
        out.section("steps", "Steps", list_html([str(step) for step in rows], "ol"))
    else:
        out.section("steps", "Result", code(result))


def _pictures(out: Answer, inputs: dict[str, str], thing: Any, result: Any) -> None:
    color = inputs["color"]
    if color not in ("value", "thread", "bank"):
        raise FieldError("color", InvalidValueError(f"unknown meaning of colours {given(color)}"))
    bits = 16 if color == "bank" else None
    for name, title, layout in (("result", "Offsets of the result", result), ("offsets", "Offsets of A", thing)):
        if isinstance(layout, (Layout, ComposedLayout)) and has_known_sizes(layout):
            out.picture(name, title, draw_layout(layout, color, bits=bits), f"layout-{name}")  # type: ignore[arg-type]


def function_verdict(layout: Layout | ComposedLayout) -> tuple[str, str]:
    """The verdict about a layout as a function: its offsets, whether each is reached once, and gaps."""
    if not has_known_sizes(layout):
        return ("unknown", f"{layout}: some sizes are not numbers")
    count = domain_size(layout)
    try:
        reached, once = analysis.footprint(layout), analysis.is_injective(layout)
    except (InvalidTypeError, LayoutError, MissingPackageError):
        return ("good", f"{counted(count, 'element')}: {layout}")
    if not count:
        return ("unknown", "no elements")
    gaps = "without gaps" if not reached.holes else f"{counted(reached.holes, 'gap')} between them"
    times = "each once" if once else f"{reached.distinct} different offsets, some reached more than once"
    return (
        "good" if once else "unknown",
        f"{counted(count, 'element')} at offsets {reached.lowest} to {reached.highest}: {times}, {gaps}",
    )


def _facts(out: Answer, layout: Layout | ComposedLayout, name: str, title: str) -> None:
    rows: list[tuple[str, Child]] = [("layout", code(layout))]
    asked: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("rank", cute.rank),
        ("depth", cute.depth),
        ("size", cute.size),
        ("cosize", cute.cosize),
        ("injective", analysis.is_injective),
        ("onto its range", analysis.is_surjective),
        ("holes", lambda x: analysis.footprint(x).holes),
        ("contiguous from the start", analysis.contiguity),
    )
    for label, function in asked:
        try:
            rows.append((label, str(function(layout)).replace("_", "")))
        except MissingPackageError:
            rows.append((label, f"not counted: above {MOST_LISTED} elements this needs numpy"))
        except CuteError:
            continue
    out.section(name, title, pairs(rows))


def _code(out: Answer, inputs: dict[str, str], thing: Any, name: str, operand: Any) -> None:
    read_a = (
        f'cute.parse("{inputs["layout"]}")' if "\n" not in inputs["layout"] else f'cute.parse("""{inputs["layout"]}""")'
    )
    made = "cute.static({})" if inputs["static"] == "1" and isinstance(thing, (Layout, ComposedLayout)) else "{}"
    lines = ["import cute_py as cute", "", f"A = {made.format(read_a)}"]
    if operand is not None:
        lines.append(
            f"B = {operand!r}"
            if not isinstance(operand, Layout)
            else f'B = {made.format(f"""cute.parse("{operand}")""")}'
        )
        if not isinstance(operand, Layout):
            lines[0] = "import cute_py as cute\nfrom cute_py import Int, Layout"
    arguments = "A" if operand is None else "A, B"
    lines += ["print(cute.draw.draw(A))"] if name == "none" else [f"print(cute.{name}({arguments}))"]
    if name != "none" and name not in ("flatten", "filter", "nullspace"):
        lines.append(f"print(cute.explain(cute.{name}, {arguments}))")
    out.panel("Python", "\n".join(lines))
    native = [f"auto A = {cpp(thing)};", *([] if operand is None else [f"auto B = {cpp(operand)};"])]
    native.append("print_layout(A);" if name == "none" else f"print({name}({arguments}));")
    out.panel("C++", "\n".join(["#include <cute/tensor.hpp>", "using namespace cute;", "", *native]))
    first, second = dsl(thing), None if operand is None else dsl(operand)
    if first is None or (operand is not None and second is None) or name in NO_DSL:
        return
    body = [f"A = {first}", *([] if second is None else [f"B = {second}"])]
    body.append("print(A)" if name == "none" else f"print(cute.{name}({arguments}))")
    lines = ["import cutlass.cute as cute", "", "@cute.jit", "def main():", *(f"    {line}" for line in body)]
    out.panel("CuTe DSL", "\n".join([*lines, "", "main()"]))
