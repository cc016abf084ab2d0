"""The tab Swizzle and banks: the threads of an access whose bank accesses conflict, and the swizzle that avoids the
conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import cute_py as cute
from cute_py.draw.layouts import draw_layout
from cute_py.draw.picture import Picture
from cute_py.draw.shared_memory import draw_swizzle
from cute_py.draw.table import TONES, Cell, Legend, Table, grid
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, InvalidValueError, counted, given, unless_refused
from cute_py.layout import BankConflicts
from cute_py.layout.analysis import accessed, bank_conflicts, coalescing
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.offset_table import MOST_LISTED
from cute_py.layout.offsets import domain_size
from cute_py.layout.recast import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle
from cute_py.page.algebra import layout_of
from cute_py.page.answer import Answer, FieldError, read
from cute_py.page.html import Child, code, html_table, pairs, tag
from cute_py.page.spelled import cpp, dsl
from cute_py.targets import BANK_BYTES, BANKS, WARP
from cute_py.tma.atom.smem_layout import SPANS, span_row

WORDS: Final = ("row", "column", "ldmatrix")
MOST_PHASES: Final = 8
"""Maximum number of phases that are drawn; the phases of a tile repeat."""
MOST_BESIDE: Final = 300
"""Largest tile, in elements, that is drawn before and after the swizzle; a larger tile is drawn only after it."""


@dataclass(frozen=True)
class BankAccess:
    """An access to memory: the layout, the pattern of threads and values, the element type, and the width in bits."""

    layout: Any
    pattern: Any
    dtype: DType
    width: int | None

    @cached_property
    def cost(self) -> Callable[[Layout | ComposedLayout], BankConflicts]:
        """A cached function from a layout to the bank conflicts of the same access through that layout."""
        return cache(lambda layout: bank_conflicts(layout, self.dtype, access=self.pattern, vector_bits=self.width))


def _swizzle(text: str) -> Swizzle | None:
    if not text:
        return None
    if text.lower().startswith("sw<"):
        found = cute.parse(text)
        if isinstance(found, Swizzle):
            return found
    row = span_row(text)
    return Swizzle(row.bits, 4, 3) if row.bits else None


def _pattern(text: str, numbers: str) -> Any:
    if text in WORDS:
        return text
    return None if text in ("", "thread") else layout_of(text, numbers)


def _width(text: str) -> int | None:
    if not text:
        return None
    if not text.isdigit() or int(text) not in (8, 16, 32, 64, 128):
        raise InvalidValueError(f"bits at once = {given(text)}; must be 8, 16, 32, 64 or 128")
    return int(text)


def behind_swizzle(layout: Any, swizzle: Swizzle | None, on: str, bits: int) -> Any:
    """Compose a layout with a swizzle on byte offsets or on element offsets."""
    if swizzle is None:
        return layout
    return ComposedLayout(swizzle, smem_ptr_flag(bits) if on == "bytes" else Int(0), layout)


def fill_banks(out: Answer, inputs: dict[str, str], fixes: bool) -> None:
    """Answer the tab Swizzle and banks."""
    layout = read(inputs, "layout", lambda text: layout_of(text, inputs["static"]))
    if (count := domain_size(layout)) > 8 * MOST_LISTED:
        error = InvalidValueError(f"the tile has {count} elements; must have at most {8 * MOST_LISTED} on this page")
        raise FieldError("layout", error)
    swizzle = read(inputs, "swizzle", _swizzle)
    if swizzle is not None and isinstance(layout, ComposedLayout):
        raise FieldError(
            "swizzle", InvalidValueError("the layout already has a swizzle", hint="leave this field empty")
        )
    dtype = read(inputs, "dtype", as_dtype)
    pattern = read(inputs, "access", lambda text: _pattern(text, inputs["static"]))
    access = BankAccess(layout, pattern, dtype, read(inputs, "width", _width))
    whole = behind_swizzle(layout, swizzle, inputs["on"], dtype.bits)
    cost = access.cost(whole)
    phases = len(cost.wavefronts)
    without = ""
    plain = layout.inner if isinstance(layout, ComposedLayout) else layout
    if isinstance(whole, ComposedLayout):
        without = f"; without the swizzle {access.cost(plain).total}"
    told = "no conflicts" if not cost.conflicts else f"{cost.ways}-way conflicts"
    text = (
        f"{told}: {counted(phases, 'phase')} of {cost.vector_bits} bits a thread take {cost.total} wavefronts{without}"
    )
    out.verdict = ("good" if not cost.conflicts else "bad", text)
    _choices(out, access, plain, whole)
    _global(out, access, whole)
    out.picture("phases", "Banks, phase by phase", _phase_picture(access, whole, cost), "banks")
    if count <= MOST_LISTED:
        picture = (
            draw_swizzle(whole, bits=dtype.bits)
            if _is_simple(whole) and count <= MOST_BESIDE
            else draw_layout(whole, "bank", bits=dtype.bits)
        )
        out.picture("tile", "The tile, and the bank of each element", picture, "tile")
    _code(out, inputs, whole, dtype, swizzle)


def _is_simple(whole: Any) -> bool:
    return isinstance(whole, ComposedLayout) and isinstance(whole.outer, Swizzle) and isinstance(whole.inner, Layout)


def _choices(out: Answer, access: BankAccess, plain: Any, whole: Any) -> None:
    """Add a section with the cost of the same access under each swizzle of the TMA engine."""
    rows: list[tuple[Child, ...]] = []
    for row in SPANS:
        swizzle = Swizzle(row.bits, 4, 3) if row.bits else None
        try:
            cost = access.cost(behind_swizzle(plain, swizzle, "bytes", access.dtype.bits))
        except CuteError as error:
            rows.append((row.name, code(swizzle or "none"), tag("small", error.headline), ""))
            continue
        here = "drawn" if behind_swizzle(plain, swizzle, "bytes", access.dtype.bits) == whole else ""
        rows.append((row.name, code(swizzle or "none"), f"{cost.total} wavefronts, {cost.ways}-way", here))
    out.section("choices", "With each swizzle of the TMA engine", html_table(("mode", "swizzle", "cost", ""), rows))


def _global(out: Answer, access: BankAccess, whole: Any) -> None:
    """Add a section with the cost of the same access to global memory."""
    cost = unless_refused(lambda: coalescing(whole, access.dtype, access=access.pattern, vector_bits=access.width))
    if cost is not None:
        rows = (("sectors of 32 bytes", str(cost.sectors)), ("lines of 128 bytes", str(cost.lines)),
                ("bytes requested", f"{cost.bytes_requested}, {cost.efficiency:.0%} of the bytes moved"))  # fmt: skip
        out.section("global", "The same access to global memory", pairs(rows))


def phases_of(access: BankAccess, layout: Any, bits_at_once: int) -> list[dict[int, dict[int, list[int]]]]:
    """For each phase of the access, return a mapping: bank -> word -> threads."""
    bits = access.dtype.bits
    rows = accessed(layout, access.pattern, bits, access.width)
    each, size = bits_at_once // bits, bits_at_once // 8
    together = WARP * BANK_BYTES // max(size, BANK_BYTES)
    out = []
    for i in range(0, len(rows[0]), each):
        for begin in range(0, len(rows), together):
            banks: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
            for thread in range(begin, min(begin + together, len(rows))):
                start = rows[thread][i] * bits // 8
                for word in range(start // BANK_BYTES, (start + size - 1) // BANK_BYTES + 1):
                    banks[word % BANKS][word].append(thread)
            out.append(banks)
    return out


def _phase_picture(access: BankAccess, layout: Any, cost: BankConflicts) -> Picture:
    """A picture with one row per phase and one column per bank. A cell counts the words, which the bank serves one
    after the other."""
    phases = phases_of(access, layout, cost.vector_bits)

    def cell(phase: int, bank: int) -> Cell:
        words = phases[phase].get(bank, {})
        if not words:
            return Cell("", f"phase {phase}, bank {bank}: idle", None)
        told = "; ".join(
            f"word {word} to thread{'s' if len(threads) > 1 else ''} {', '.join(map(str, threads[:8]))}"
            for word, threads in sorted(words.items())[:8]
        )
        return Cell(str(len(words)), f"phase {phase}, bank {bank}: {told}", min(len(words) - 1, TONES - 1))

    kept = range(min(len(phases), MOST_PHASES))
    notes = () if len(kept) == len(phases) else (f"{len(kept)} of {len(phases)} phases are drawn",)
    shown: Table = grid(
        kept,
        range(BANKS),
        cell,
        lambda phase: f"{phase}: {cost.wavefronts[phase]}",
        str,
        row_axis="phase: wavefronts",
        column_axis="bank",
        notes=notes,
        legends=(Legend("in a cell: how many words the bank serves one after the other; 1 is no conflict"),),
    )
    return Picture("", (shown,), ())


def _code(out: Answer, inputs: dict[str, str], whole: Any, dtype: DType, swizzle: Swizzle | None) -> None:
    access = inputs["access"]
    shown = (
        ""
        if access in ("", "thread")
        else f', access="{access}"'
        if access in WORDS
        else f', access=cute.parse("{access}")'
    )
    width = f", vector_bits={inputs['width']}" if inputs["width"] else ""
    lines = [
        "import cute_py as cute",
        "",
        f'tile = cute.static(cute.parse("{whole}"))',
        f'print(cute.bank_conflicts(tile, "{dtype.name}"{shown}{width}))',
    ]
    out.panel("Python", "\n".join(lines))
    out.panel(
        "C++", f"#include <cute/tensor.hpp>\nusing namespace cute;\n\nauto tile = {cpp(whole)};\nprint_layout(tile);"
    )
    if (spelled := dsl(whole)) is not None:
        out.panel("CuTe DSL", f"import cutlass.cute as cute\n\ntile = {spelled}  # inside @cute.jit")
