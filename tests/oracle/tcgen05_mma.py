"""What ptxas says of the matrix instructions of tcgen05: the texts, and how data/ptx_tcgen05_mma.jsonl.xz is made.

    python -m tests.oracle.tcgen05_mma        # asks ptxas and writes the file (a minute)

Each row is a text and `from`: PTX version -> the architectures that take it from there on, of all that the table
of architectures lists; what is in no version is refused.
"""

from __future__ import annotations

import itertools
import json
import lzma
from collections.abc import Iterator
from typing import Any

from benchmarks.assembler import assemble_each
from cute_py.targets import ARCHITECTURES, Version, version_text
from tests.oracle.records import DATA

NAME = "ptx_tcgen05_mma"
VERSIONS: tuple[Version, ...] = ((8, 6), (8, 7), (8, 8), (9, 0))
"""PTX versions from the first with tcgen05 on; what an older one takes would be a row of 8.6 here as well."""

OPCODES = ("mma", "mma.sp", "mma.ws", "mma.ws.sp")
PLAIN = ("f16", "tf32", "f8f6f4", "i8")
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
SIZES = ("", ".scale_vec::1X", ".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32")
FIRST = ("%rd1", "[%r2]")
"""A by its descriptor, or in tensor memory."""


def vector(count: int) -> str:
    return ", {" + ", ".join(f"%r{20 + index}" for index in range(count)) + "}" if count else ""


def text(opcode: str, group: int, kind: str, mods: str, first: str, lanes: str = "", last: str = "") -> str:
    """One instruction with the operands that its modifiers call for."""
    metadata = ", [%r6]" if opcode.endswith("sp") else ""
    scales = ", [%r4], [%r5]" if "block_scale" in mods else ""
    name = f"tcgen05.{opcode}.cta_group::{group}.kind::{kind}{mods}"
    return f"{name} [%r1], {first}, %rd2{metadata}, %r3{scales}{lanes}, %p1{last};"


ODD = (
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, 1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, -1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, 1.0;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, !%p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %r4;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, 5, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], 5, 6, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], 1.5, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1+4], [%r2+4], %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%rd1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 %r1, %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], [%rd2], %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, [%r2], %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %rd3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, {%rd1, %rd2, %rd3, %rd4}, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, {1, 2, 3, 4}, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, {%f1, %f2, %f3, %f4}, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r6], %r3, %p1;",
    "tcgen05.mma.kind::f16.cta_group::1 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::3.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16.kind::tf32 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.sp.kind::f16 [%r1], %rd1, %rd2, [%r6], %r3, %p1;",
    "tcgen05.mma.sp.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r6], %r3, %p1;",
    "tcgen05.mma.cta_group::1.ws.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r6, %r3, %p1;",
    "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, [%r6], %p1;",
    "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%rd6], %r3, %p1;",
    "tcgen05.mma.ws.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1, %r9;",
    "tcgen05.mma.cta_group::1.kind::f16.collector::a::lastuse.ashift [%r1], [%r2], %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.collector::a::fill.kind::f16 [%r1], [%r2], %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16.collector::a [%r1], [%r2], %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill.collector::a::use [%r1], [%r2], %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block32 [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4 [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r3, [%r4], %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r3, [%r4+4], [%rd5], %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r3, %r4, %r5, %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32.block32 [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4.scale_vec::2X.block_scale [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
    "tcgen05.mma.block_scale.cta_group::1.block32.kind::mxf4 [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::8X [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
    "@!%p2 tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;",
    "tcgen05.wait::cp.sync.aligned;",
    "tcgen05.wait::mma.sync.aligned;",
    "tcgen05.wait.sync.aligned;",
    "tcgen05.wait::ld.wait::st.sync.aligned;",
    "tcgen05.fence::after;",
    "tcgen05.free;",
    "tcgen05;",
)
"""Other orders, operands of other kinds, modifiers that are missing or there twice, and names that do not exist."""


def texts() -> Iterator[str]:
    """Combinations of kind and scale vector, of collector and shift, and of the optional operands, legal or not."""
    for opcode, group, kind, size, first in itertools.product(OPCODES, (1, 2), PLAIN + SCALED, (None, *SIZES), FIRST):
        yield text(opcode, group, kind, "" if size is None else f".block_scale{size}", first)
    collectors = [f".collector::a::{use}" for use in ("fill", "use", "lastuse", "discard")]
    collectors += [".collector::b0::fill", ".collector::b1::use", ".collector::b2::lastuse", ".collector::b3::discard"]
    kinds = [(kind, "") for kind in PLAIN]
    kinds += [
        ("mxf8f6f4", ".block_scale"),
        ("mxf4", ".block_scale.scale_vec::2X"),
        ("mxf4nvf4", ".block_scale.block16"),
    ]
    for opcode, (kind, scale), shift, collector, first in itertools.product(
        OPCODES, kinds, ("", ".ashift"), ("", *collectors), FIRST
    ):
        if shift or collector:
            yield text(opcode, 1, kind, scale + shift + collector, first)
    for opcode, group, (kind, scale), lanes, last in itertools.product(
        OPCODES, (1, 2), kinds, (0, 3, 4, 8), ("", ", 0", ", 15", ", 16", ", -1", ", %r9", ", %rd9")
    ):
        if lanes or last:
            yield text(opcode, group, kind, scale, "%rd1", vector(lanes), last)
    yield from ODD


def measured() -> list[dict[str, Any]]:
    """Every text with what ptxas says of it."""
    every = list(dict.fromkeys(texts()))
    taken: dict[str, dict[str, list[str]]] = {one: {} for one in every}
    for row in ARCHITECTURES:
        known: set[str] = set()
        for version in VERSIONS:
            if row.floor is None or version < row.floor:
                continue
            left = [one for one in every if one not in known]
            for one, message in zip(left, assemble_each(left, row.name, version), strict=True):
                if message is None:
                    known.add(one)
                    taken[one].setdefault(version_text(version), []).append(row.name)
    return [{"text": one, "from": found} for one, found in taken.items()]


def main() -> None:
    with lzma.open(DATA / f"{NAME}.jsonl.xz", "wt", preset=9) as file:
        for row in measured():
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
