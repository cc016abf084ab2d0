"""The explorer: one page on which you type layouts and see the TMA copy that they make.

The page is a single file without network. Its engine is JavaScript (`web/`), which works on the tables of this library
as plain data (`facts`), so that no fact is written a second time; `explorer_answer` gives the library's own answer, for
tests and for `cute-py serve`.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, Final

from cute_py.argument_checks import expect
from cute_py.draw.explorer_answer import DEFAULTS, EXAMPLES, LIMITS, SAMPLE_BYTES, WANTED
from cute_py.draw.render_svg import DARK, LIGHT
from cute_py.dtypes import DTYPES
from cute_py.layout.layout import Layout, LayoutRight, static
from cute_py.layout.swizzle import Swizzle
from cute_py.tensor.pointers import make_gmem_ptr
from cute_py.tensor.tensor import make_tensor
from cute_py.tma.atom.make import make_tma_atom
from cute_py.tma.atom.op import FORMAT_OF, OPS, SAME_WIDTH, SWIZZLE_MODES, why_not_swizzle
from cute_py.tma.atom.smem_layout import ROWS, SPANS
from cute_py.tma.atom.tile_atom import BARRIER_BYTES
from cute_py.tma.atom.tiles import SMEM_ALIGNMENT
from cute_py.tma.descriptor import fields
from cute_py.tma.descriptor.data_types import FORMATS, Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.hazards import HAZARDS
from cute_py.tma.descriptor.limits import ADDITIONS, ARCHITECTURES, RULES, SWIZZLE_SPAN, bounds
from cute_py.tma.emulator.geometry import LINE_SHIFT, SWIZZLES

_ENGINE = ("leaf", "algebra", "parse", "gbasis", "plan", "descriptor", "tile", "fixes", "engine")
ENGINE: Final = tuple(f"{name}.js" for name in _ENGINE)
"""The files of the engine, in the order in which they are loaded."""
DOM: Final = ("pictures.js", "sections.js", "page.js")
"""Scripts that draw and listen, loaded after the engine."""
CHECK: Final = "checked.js"
"""Asks the server for the library's answer; only in the page that a server sends."""


def _stage_reasons() -> dict[str, str]:
    gmem = make_tensor(make_gmem_ptr(0, "float16"), static(Layout((64, 64), LayoutRight)))
    atom = make_tma_atom("SM90_TMA_LOAD", gmem, gmem.layout)
    return {name: reason for name, _, reason in atom.gbasis.trace.steps()}


def _row(row: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _text(bound: int | None) -> str | None:
    """JavaScript has no integers of 64 bits."""
    return None if bound is None else str(bound)


@functools.cache
def facts() -> dict[str, Any]:
    """The tables as JSON data; treat it as read-only.

    >>> facts()["max_box"], facts()["rules"]["stride_alignment"]["multiple"]
    (256, 16)
    """
    refused = {
        "bits": (4, 4, 4),
        "shift": (3, 4, 4),
        "wide_bits": (3, 5, 3),
        "wide_shift": (2, 5, 3),
        "other": (3, 3, 3),
    }
    enums = {"interleave": Interleave, "swizzle": TensorMapSwizzle, "l2_promotion": L2Promotion, "oob_fill": OobFill}
    return {
        "dtypes": [_row(d, "name", "bits", "aliases") | {"format": FORMAT_OF.get(d.name)} for d in DTYPES],
        "formats": [{"name": r.data_type.name} | _row(r, "bits", "code", "tf32_round") for r in FORMATS],
        "same_width": {str(bits): name for bits, name in SAME_WIDTH.items()},
        "ops": {str(op): _row(row, "mode", "direction", "multicast", "ctas", "arch") for op, row in OPS.items()},
        "swizzle_modes": [_row(r, "name", "bits", "base", "code", "span", "alignment") for r in SWIZZLE_MODES],
        "swizzle_refusals": {name: why_not_swizzle(Swizzle(*numbers)) for name, numbers in refused.items()},
        "swizzle_span": {str(code): span for code, span in SWIZZLE_SPAN.items()},
        "atom_span": 128,
        "spans": [_row(r, "name", "bits", "span") for r in SPANS],
        "atom_rows": ROWS,
        "engine_swizzles": [_row(r, "bits", "base", "span") for r in SWIZZLES[: len(SWIZZLE_SPAN)]],
        "line_shift": LINE_SHIFT,
        "rules": {
            r.name: _row(r, "requirement", "unit", "source")
            | {"minimum": _text(r.minimum), "maximum": _text(r.maximum), "multiple": r.multiple}
            for r in RULES
        },
        "architectures": [
            _row(r, "name", "shared_memory_bytes", "block_shared_memory_bytes")
            | {"swizzles": sorted(r.swizzles), "swizzle_requirement": r.swizzle_requirement}
            for r in ARCHITECTURES
        ],
        "additions": [_row(r, "name", "field", "numbers", "known") for r in ADDITIONS if r.bits is None],
        "fields": [
            _row(r, "name", "label", "mode", "position", "width", "encoding", "unit", "kinds") for r in fields.FIELDS
        ],
        "names": {name: [member.name for member in kind] for name, kind in enums.items()},
        "l2_promotion": int(L2Promotion.B128),
        "note_alignment": {str(code): n for code, n in enumerate(fields.SMEM_ALIGNMENT)},
        "payload_bytes": fields.PAYLOAD_BYTES,
        "hazards": [_row(r, "name", "effect") for r in HAZARDS],
        "stages": _stage_reasons(),
        "barrier_bytes": BARRIER_BYTES,
        "max_box": bounds("box")[1],
        "max_rank": MAX_RANK,
        "smem_alignment": SMEM_ALIGNMENT,
        **LIMITS,
        "sample_bytes": SAMPLE_BYTES,
        "defaults": DEFAULTS,
        "wanted": WANTED,
        "examples": [{"name": name, "fields": values} for name, values in EXAMPLES],
    }


def web_file(name: str) -> str:
    """The text of a file of `cute_py/draw/web`."""
    return resources.files("cute_py.draw").joinpath("web", name).read_text(encoding="utf-8")


def engine_source() -> str:
    """The engine as one script: the facts, then its files. It needs no document.

    >>> engine_source().startswith('"use strict";')
    True
    """
    table = json.dumps(facts(), separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return "\n".join(['"use strict";', f"const FACTS = {table};", *(web_file(name) for name in ENGINE)])


def explorer_page(*, served: bool = False) -> str:
    """The page as text.

    Args:
        served: the page comes from `cute-py serve` and may ask it for the library's answer; else it has no code that
            could reach a network.

    >>> page = explorer_page()
    >>> page.startswith("<!doctype html>"), "fetch(" in page
    (True, False)
    """
    names = (*DOM, CHECK) if expect(served, bool, "served") else DOM
    script = "\n".join([engine_source(), *(web_file(name) for name in names), "start();"])
    style = web_file("page.css").replace("/*LIGHT*/", _tones(LIGHT)).replace("/*DARK*/", _tones(DARK))
    style += "".join(f"svg.picture .tone{i} {{ fill: var(--tone{i}); }}\n" for i in range(len(LIGHT)))
    return web_file("page.html").replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)


def _tones(colours: tuple[str, ...]) -> str:
    return "".join(f"  --tone{i}: {colour};" for i, colour in enumerate(colours))
