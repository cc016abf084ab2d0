"""What the page's engine knows: the tables of the library as plain data, so that no fact is written a second time."""

from __future__ import annotations

import functools
from typing import Any, Final

from cute_py.dtypes import DTYPES
from cute_py.layout.layout import Layout, LayoutRight, static
from cute_py.layout.swizzle import Swizzle
from cute_py.tensor.pointers import make_gmem_ptr
from cute_py.tensor.tensors import make_tensor
from cute_py.tma.atom.make import make_tma_atom
from cute_py.tma.atom.op import FORMAT_OF, OPS, SAME_WIDTH, SWIZZLE_MODES, why_not_swizzle
from cute_py.tma.atom.smem_layout import ROWS, SPANS
from cute_py.tma.atom.tile_atom import BARRIER_BYTES
from cute_py.tma.atom.tiles import SMEM_ALIGNMENT
from cute_py.tma.descriptor import fields
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.formats import FORMATS, Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.hazards import HAZARDS
from cute_py.tma.descriptor.limits import ADDITIONS, ARCHITECTURES, RULES, SWIZZLE_SPAN, bounds
from cute_py.tma.emulator.swizzle import LINE_SHIFT, SWIZZLES

DEFAULTS: Final = {
    "gmem": "",
    "dtype": "float16",
    "internal": "",
    "address": "0x1000",
    "smem": "",
    "tile": "",
    "op": "SM90_TMA_LOAD",
    "multicast": "1",
    "arch": "sm_90a",
    "split": "",
    "at": "0",
}
"""The fields of the form, in order, with what an absent one means; texts as a person types them."""

LIMITS: Final = {"most_listed": 64, "most_work": 65_536, "most_traced": 4096, "most_fixes": 2, "max_text": 2000}
"""Instructions that are listed, laid out and traced to bytes; fixes that are told; characters of one text."""

SAMPLE_BYTES: Final = tuple(k * (256 + 18) for k in range(16))
"""Bytes of a tile that are compared between the page and the library: spread over lines, units and elements."""

WANTED: Final = {
    "address": "the address is an integer such as 4096 or 0x1000",
    "multicast": "the multicast count is an integer such as 4",
}
"""What is said where a field holds no integer."""

EXAMPLES: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    (
        "K-major tile, 128B swizzle",
        {
            "gmem": "(1024,512):(512,_1)",
            "smem": "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)",
            "tile": "(128,64)",
        },
    ),
    ("plain tile over the end", {"gmem": "(100,200):(200,_1)", "smem": "(_32,_64):(_64,_1)", "dtype": "bfloat16"}),
    (
        "multicast by 4",
        {
            "gmem": "(1024,512):(512,_1)",
            "smem": "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)",
            "op": "SM90_TMA_LOAD_MULTICAST",
            "multicast": "4",
        },
    ),
    (
        "batched, nested tensor",
        {
            "gmem": "((_32,40),(_8,3)):((_1,_32),(1280,10240))",
            "smem": "((_32,_4),_8):((_1,_32),_128)",
            "tile": "(128,8)",
            "dtype": "float32",
        },
    ),
    (
        "box above 256, split",
        {"gmem": "(4096,1024):(1024,_1)", "smem": "(_512,_64):(_64,_1)", "dtype": "uint8", "split": "1"},
    ),
    ("error: inner stride not 1", {"gmem": "(256,128):(_1,256)", "smem": "(_64,_64):(_64,_1)"}),
    ("error: stride no multiple of 16 bytes", {"gmem": "(256,100):(100,_1)", "smem": "(_64,_32):(_32,_1)"}),
    (
        "error: rows wider than the swizzle",
        {"gmem": "(1024,512):(512,_1)", "smem": "Sw<2,4,3> o smem_ptr[16b](unset) o (_64,_64):(_64,_1)"},
    ),
    ("error: pieces below 128 bytes", {"gmem": "(256,256):(256,_1)", "smem": "(_32,_40):(_48,_1)"}),
    ("error: box above 256", {"gmem": "(4096,1024):(1024,_1)", "smem": "(_512,_64):(_64,_1)", "dtype": "uint8"}),
    ("error: run-time tile", {"gmem": "(256,128):(128,_1)", "smem": "(64,64):(64,1)"}),
    (
        "error: several at once",
        {"gmem": "(256,100):(100,_1)", "smem": "(_512,_20):(_20,_1)", "address": "0x1008"},
    ),
)
"""(name, fields); those whose name begins with 'error' show a frequent one."""


def _stage_reasons() -> dict[str, str]:
    gmem = make_tensor(make_gmem_ptr(0, "float16"), static(Layout((64, 64), LayoutRight)))
    atom = make_tma_atom("SM90_TMA_LOAD", gmem, gmem.layout)
    return {name: reason for name, _, reason in atom.gbasis.trace.steps()}


def _dtypes() -> list[dict[str, Any]]:
    def number(name: str) -> int | None:
        return int(FORMAT_OF[name]) if name in FORMAT_OF else None

    return [{"name": d.name, "bits": d.bits, "aliases": list(d.aliases), "format": number(d.name)} for d in DTYPES]


def _fields() -> list[dict[str, Any]]:
    names = ("name", "label", "mode", "position", "width", "encoding", "unit", "kinds")
    return [{name: getattr(row, name) for name in names} for row in fields.FIELDS]


@functools.cache
def facts() -> dict[str, Any]:
    """The tables as JSON data; treat it as read-only.

    >>> facts()["max_box"], facts()["rules"]["stride_alignment"]["multiple"]
    (256, 16)
    """
    return {
        "dtypes": _dtypes(),
        "formats": [
            {"name": r.data_type.name, "bits": r.bits, "code": r.code, "tf32_round": r.tf32_round} for r in FORMATS
        ],
        "same_width": {str(bits): name for bits, name in SAME_WIDTH.items()},
        "ops": {
            str(op): {
                "mode": r.mode,
                "direction": r.direction,
                "multicast": r.multicast,
                "ctas": r.ctas,
                "arch": r.arch,
            }
            for op, r in OPS.items()
        },
        "swizzle_modes": [
            {"name": r.name, "bits": r.bits, "base": r.base, "code": r.code, "alignment": r.alignment}
            for r in SWIZZLE_MODES
        ],
        "swizzle_refusals": {
            "bits": why_not_swizzle(Swizzle(4, 4, 4)),
            "shift": why_not_swizzle(Swizzle(3, 4, 4)),
            "wide_bits": why_not_swizzle(Swizzle(3, 5, 3)),
            "wide_shift": why_not_swizzle(Swizzle(2, 5, 3)),
            "other": why_not_swizzle(Swizzle(3, 3, 3)),
        },
        "swizzle_span": {str(code): span for code, span in SWIZZLE_SPAN.items()},
        "atom_span": 128,
        "spans": [{"name": r.name, "bits": r.bits, "span": r.span} for r in SPANS],
        "atom_rows": ROWS,
        "engine_swizzles": [{"bits": r.bits, "base": r.base, "span": r.span} for r in SWIZZLES[: len(SWIZZLE_SPAN)]],
        "line_shift": LINE_SHIFT,
        "rules": {
            r.name: {
                "requirement": r.requirement,
                "unit": r.unit,
                "source": r.source,
                "minimum": None if r.minimum is None else str(r.minimum),
                "maximum": None if r.maximum is None else str(r.maximum),
                "multiple": r.multiple,
            }
            for r in RULES
        },
        "architectures": [
            {
                "name": r.name,
                "shared_memory_bytes": r.shared_memory_bytes,
                "block_shared_memory_bytes": r.block_shared_memory_bytes,
                "swizzles": sorted(r.swizzles),
                "swizzle_requirement": r.swizzle_requirement,
            }
            for r in ARCHITECTURES
        ],
        "additions": [
            {"name": r.name, "field": r.field, "numbers": list(r.numbers), "known": r.known}
            for r in ADDITIONS
            if r.bits is None
        ],
        "fields": _fields(),
        "names": {
            "interleave": [member.name for member in Interleave],
            "swizzle": [member.name for member in TensorMapSwizzle],
            "l2_promotion": [member.name for member in L2Promotion],
            "oob_fill": [member.name for member in OobFill],
        },
        "l2_promotion": int(L2Promotion.B128),
        "note_alignment": {str(code): n for code, n in fields.SMEM_ALIGNMENT.items()},
        "payload_bytes": fields.PAYLOAD_BYTES,
        "hazards": [{"name": r.name, "effect": r.effect} for r in HAZARDS],
        "stages": _stage_reasons(),
        "barrier_bytes": BARRIER_BYTES,
        "max_box": bounds("box")[1],
        "max_rank": MAX_RANK,
        "smem_alignment": SMEM_ALIGNMENT,
        **LIMITS,
        "sample_bytes": list(SAMPLE_BYTES),
        "defaults": dict(DEFAULTS),
        "wanted": dict(WANTED),
        "examples": [{"name": name, "fields": dict(values)} for name, values in EXAMPLES],
    }
