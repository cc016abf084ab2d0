"""Explanation of a composition, and a check whether it equals the composed function.

CuTe C++ computes composition(A, B) by divisions whose conditions are not sufficient: even if they hold, the result R
may differ from A(B(i)) when B's steps do not divide A's modes. Every explanation of a composition ends with this
comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_py.errors import CompositionMismatchError, CuteError, unless_refused
from cute_py.layout.arguments import LayoutLike, Tiler
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition, tiler_text
from cute_py.layout.int_tuple import is_static
from cute_py.layout.layout import Layout, has_numbers, static
from cute_py.layout.leaf import Int
from cute_py.layout.steps import steps
from cute_py.layout.swizzle import Swizzle
from cute_py.notation.parse import parse


def whether_function(left: LayoutLike, right: Tiler) -> str:
    """One sentence: is composition(left, right) the function left(right(i))?

    >>> from cute_py import Int, Layout
    >>> a = Layout((Int(6), Int(4)), (Int(4), Int(1)))
    >>> print(whether_function(a, Layout(Int(2), Int(3))))
    judged: R(i) = A(B(i)) for every i
    >>> print(whether_function(a, Layout(Int(4), Int(5))))
    R differs from A(B(i)): R(2) = 1, A(B(2)) = 17. CuTe C++ computes R without a check; strict=True refuses it.
    """
    try:
        composition(left, right, strict=True)
    except CompositionMismatchError as error:
        found = error.difference or error.headline
        return f"R differs from A(B(i)): {found}. CuTe C++ computes R without a check; strict=True refuses it."
    except CuteError as error:
        return f"not checked: whether R(i) = A(B(i)) for every i ({error.headline})"
    return "judged: R(i) = A(B(i)) for every i"


def static_lines(operation: Callable[..., Any], *operands: Any) -> list[str]:
    """Result of the operation with static operands, if it differs from the result with run-time numbers.

    CuTe C++ does not know run-time numbers at compile time, so it neither merges nor inverts their modes.
    """
    if not all(isinstance(x, (int, tuple)) or (isinstance(x, Layout) and has_numbers(x)) for x in operands):
        return []
    known = unless_refused(lambda: [static(x) for x in operands])
    if known is None or all(map(is_static, operands)):
        return []
    made = unless_refused(operation, *known)
    if made is None or operation(*operands) == made:
        return []
    name = getattr(operation, "__name__", "the operation")
    return [f"C++ does not use run-time numbers here; with cute.static operands {name} gives {made}"]


def composition_text(left: LayoutLike, right: Tiler) -> str:
    """The steps of a composition, and the sentence of `whether_function`."""
    lines = [str(step) for step in steps(composition, left, right)]
    return "\n".join([*lines, whether_function(left, right)])


def spelled_composition(text: str) -> str | None:
    """Explain a string `A o B` of two layouts, or of a swizzle and a layout; None for any other string."""
    parts = [part.strip() for part in text.split(" o ")]
    if len(parts) != 2 or "\n" in text.strip():
        return None
    left, right = (unless_refused(parse, part) for part in parts)
    if isinstance(left, Swizzle) and isinstance(right, (Layout, ComposedLayout)):
        whole = ComposedLayout(left, Int(0), right)
        return (
            f"{left} o {right}: the composition of a swizzle with a layout, written without the offset.\n  As CuTe "
            f"prints it, with the offset between them: {whole}\n  composition({left!r}, {right!r}) makes it."
        )
    if not isinstance(left, Layout) or not isinstance(right, Layout):
        return None
    head = f"composition(A, B) with A = {left}, B = {tiler_text(right)}"
    try:
        return f"{head}\n{composition_text(left, right)}"
    except CuteError as error:
        return f"{head}\nis refused: {error}"
