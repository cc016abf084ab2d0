"""The table of tcgen05 forms: which of those that ptxas assembles the machine executes, and which it refuses by name.

python -m tests.machine.tensor_forms        # writes docs/measurements/tcgen05-forms.md
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from cute_py.errors import InvalidValueError
from cute_py.machine.table import decoded
from cute_py.ptx.source import read_module
from tests.oracle import tcgen05_mma
from tests.oracle.records import rows

PAGE = Path(__file__).parents[2] / "docs/measurements/tcgen05-forms.md"
KERNEL = """.version 8.8
.target sm_103a
.address_size 64
.shared .align 8 .b64 smem;
.visible .entry k() .reqntid 128 {{
  .reg .pred %p<9>; .reg .b16 %rs<9>, %h<9>; .reg .b32 %r<400>; .reg .b64 %rd<10>; .reg .b32 %f<200>;
  {0}
  ret;
}}
"""
SECTIONS: Mapping[str, str] = {
    "alloc": "9.7.16.7.1", "dealloc": "9.7.16.7.1", "relinquish_alloc_permit": "9.7.16.7.1", "ld": "9.7.16.8.3",
    "st": "9.7.16.8.4", "wait::ld": "9.7.16.8.5", "wait::st": "9.7.16.8.5", "cp": "9.7.16.9.2", "shift": "9.7.16.9.3",
    "mma": "9.7.16.10.9.1", "mma.sp": "9.7.16.10.9.2", "mma.ws": "9.7.16.10.9.3", "mma.ws.sp": "9.7.16.10.9.4",
    "fence::before_thread_sync": "9.7.16.11.1", "fence::after_thread_sync": "9.7.16.11.1", "commit": "9.7.16.12.1",
}  # fmt: skip
"""Name -> paragraph of the PTX ISA 9.0."""
_SHAPES = r"\d+x\d+b(?:x2)?"
_KEPT = [
    re.compile(words)
    for words in (
        "red", _SHAPES, r"warpx\w+(?:::\w+)?", r"b\dx16_p\d+", "(?:un)?pack::16b", "cta_group::2", r"kind::\w+",
        "block_scale", r"scale_vec::\dX|block\d+", "ashift", "collector", "multicast::cluster",
    )
]  # fmt: skip
"""Modifiers that a row of the table tells apart, in the order in which it has them; others are counted together."""


def texts() -> list[str]:
    """Every recorded tcgen05 instruction that ptxas assembles for some target."""
    found = [row["text"] for row in rows("ptx_matrix") if "tcgen05" in row["family"] and row["accepted_on"]]
    return found + [row["text"] for row in rows(tcgen05_mma.NAME) if row["from"]]


def refusal(text: str) -> str:
    """Why the machine does not have an instruction; '' where it has."""
    module = read_module(KERNEL.format(text))
    try:
        decoded(module, module.functions["k"])
    except InvalidValueError as error:
        return error.headline
    return ""


def form_of(text: str) -> tuple[str, str]:
    """(name, what tells it apart) of an instruction.

    >>> form_of("tcgen05.mma.sp.cta_group::1.kind::f16.collector::a::fill [%r1], [%r2], %rd2, [%r6], %r3, %p1;")
    ('mma.sp', 'kind::f16.collector, A in tensor memory')
    """
    opcode, _, operands = text[text.index("tcgen05") :].partition(" ")
    words = opcode.rstrip(";").split(".")[1:]
    name = ".".join([words[0], *(word for word in ("ws", "sp") if word in words[1:])])
    kept = ["collector" if word.startswith("collector") else word for word in words[1:]]
    parts = ".".join(word for pattern in _KEPT for word in kept if pattern.fullmatch(word))
    if name.startswith("mma"):
        if operands.replace(" ", "").split(",")[1].startswith("["):
            parts += ", A in tensor memory"
        if re.search(r"\{[^}]*\}", operands):
            parts += ", disabled lanes"
    return name, parts


@functools.cache
def table() -> list[tuple[str, str, int, Counter[str]]]:
    """(name, what tells it apart, texts, reason of a refusal -> texts) of each form, in the order of the ISA."""
    found: dict[tuple[str, str], tuple[list[str], Counter[str]]] = {}
    for text in texts():
        held = found.setdefault(form_of(text), ([], Counter()))
        held[0].append(text)
        why = refusal(text)
        if why:
            held[1][why.partition(text.split()[0])[2].lstrip(": ")] += 1
    order = list(SECTIONS)
    keys = sorted(found, key=lambda key: (order.index(key[0]), key))
    return [(*key, len(found[key][0]), found[key][1]) for key in keys]


def page() -> str:
    """The document."""
    made = table()
    count, refused = sum(one[2] for one in made), sum(sum(one[3].values()) for one in made)
    lines = [
        "# tcgen05, form by form",
        "",
        "Which forms of tcgen05 does `run_ptx` execute, and which does it refuse?",
        "",
        f"ptxas 13.0.88 assembles {count} recorded tcgen05 instructions for at least one target. `run_ptx` executes "
        f"{count - refused} of them and",
        f"refuses {refused} by name, before anything runs. The last column is the paragraph of the PTX ISA 9.0 that a "
        "form follows, because",
        "no Blackwell GPU was available. `python -m tests.machine.tensor_forms` writes this page.",
        "",
        "| instruction | form | recorded | executed | refused | PTX ISA |",
        "|---|---|---|---|---|---|",
    ]
    for name, parts, some, why in made:
        left = "; ".join(f"{number}: {reason}" for reason, number in sorted(why.items())) or "-"
        runs = some - sum(why.values())
        lines.append(f"| `tcgen05.{name}` | {_shown(parts)} | {some} | {runs} | {left} | {SECTIONS[name]} |")
    return "\n".join(lines) + "\n"


def _shown(parts: str) -> str:
    words, *more = parts.split(", ")
    return ", ".join(([f"`.{words}`"] if words else []) + more) or "-"


def main() -> None:
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
