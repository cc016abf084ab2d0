"""The emission catalogue of the TMA Atoms reference pages, letter by letter, beside what an assembler says of it.

`literal` is the template as the pages print it: `{1..5}` a range of ranks, `$n` an operand slot, `{0}` an address-space
token and `{1}` a decimal index. `instances` are the same modifiers filled in, in the pages' order; `verdict` judges
them. ptxas takes modifiers in any order, so they assemble; canonical (in the order of the PTX ISA) is another matter.
A row without instances is no instruction text: an intrinsic's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """One row of the emission catalogue, its columns as printed.

    tail: operands that complete an instance, with `COORDS` for the coordinates of the rank.
    """

    literal: str
    emitter: str
    mode: str
    dim: str
    multicast: str
    hint: str
    offsets: str
    descriptor: str
    tail: str = ""


_MASK, _HINT, _NA, _PER = 'opt, i16 "h"', 'opt, i64 "l"', "n/a", "per-intrinsic"
_BUILDER, _FIXED, _LLVM, _MANAGED = "runtime builder", "fixed asm", "LLVM intrinsic", "LLVM-managed"
_LOAD = "[%r1], [%rd1, {COORDS}], [%r2]"
_STORE = "[%rd1, {COORDS}], [%r1]"

COPY_TEMPLATES: tuple[Template, ...] = (
    Template(
        "cp.async.bulk.tensor.{1..5}d.shared::cluster.global.mbarrier::complete_tx::bytes",
        _BUILDER, "tile", "1–5", _MASK, _HINT, _NA, '%1 "l"', _LOAD,
    ),
    Template(
        "cp.async.bulk.tensor.{3..5}d.shared::cluster.global.mbarrier::complete_tx::bytes.im2col",
        _BUILDER, "im2col", "3–5", _MASK, _HINT, 'K offsets, "h"', '%1 "l"', _LOAD + ", {OFFSETS}",
    ),
    Template(
        "cp.async.bulk.tensor.2d.tile::gather4.shared::cta.global.mbarrier::complete_tx::bytes",
        _FIXED, "gather4", "2", _NA, _NA, _NA, '$1 "l"', "[%r1], [%rd1, {FIVE}], [%r2]",
    ),
    Template(
        "cp.async.bulk.tensor.{1..5}d.global.shared::cta.bulk_group",
        _BUILDER, "tile", "1–5", _NA, _NA, _NA, '%0 "l"', _STORE,
    ),
    Template(
        "cp.async.bulk.tensor.2d.tile::scatter4.global.shared::cta.bulk_group",
        _FIXED, "scatter4", "2", _NA, _NA, _NA, '$0 "l"', "[%rd1, {FIVE}], [%r1]",
    ),
    Template(
        "cp.async.bulk.tensor.s2g.im2col.{3..5}d",
        _LLVM, "im2col", "3–5", _NA, _PER, _PER, _MANAGED,
    ),
    Template(
        "cp.async.bulk.tensor.s2g.tile.{1..5}d",
        _LLVM, "tile", "1–5", _NA, _PER, _NA, _MANAGED,
    ),
    Template(
        "cp.async.bulk.tensor.reduce (mode + redKind)",
        _LLVM, "tile/im2col + 8-way redKind", "1–5", _NA, _NA, "per-mode", _MANAGED,
    ),
    Template(
        "cp.async.bulk.tensor.prefetch",
        _LLVM, "tile/im2col", "1–5", _NA, _PER, "per-mode", _MANAGED,
    ),
    Template(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        _LLVM, _NA, "scalar", _NA, _NA, _NA, "n/a (byte count)", "[%r1], [%rd1], %r6, [%r2]",
    ),
    Template(
        "cp.async.bulk.global.shared::cta.bulk_group (non-tensor)",
        _LLVM, _NA, "scalar", _NA, _NA, _NA, "n/a (raw byte-count)", "[%rd1], [%r1], %r6",
    ),
    Template(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
        _LLVM, _NA, "scalar", _NA, _NA, _NA, _NA, "[%r1], [%r5], %r6, [%r2]",
    ),
)  # fmt: skip
"""The cp.async.bulk template catalogue, in the order of the pages."""


@dataclass(frozen=True, slots=True)
class Mutator:
    """One of the three device-callable field mutators, as printed.

    field: of our tensormap.replace row. width: of the operation. has_ordinal: does it name a mode? count: how often a
    rebind of rank R emits it.
    """

    field: str
    width: str
    has_ordinal: bool
    count: str
    writes: str

    @property
    def literal(self) -> str:
        """The template, letter by letter."""
        ordinal = " {1}," if self.has_ordinal else ""
        return f"tensormap.replace.tile.{self.field}.{{0}}.{self.width} [$0],{ordinal} $1;"

    @property
    def constraints(self) -> dict[str, str]:
        """Inline-asm letters for a global and for a shared::cta descriptor. The pages print those of the global form
        (and r,l for the address alone)."""
        value = "l" if self.width.endswith("b64") else "r"
        return {"global": f"l,{value}", "shared::cta": f"r,{value}"}


MUTATORS: tuple[Mutator, ...] = (
    Mutator("global_address", "b1024.b64", False, "once", "DESC_TMA512+0x00 (tensor_base_ptr)"),
    Mutator(
        "global_dim", "b1024.b32", True, "rank times, i ∈ [0, rank)", "i-th 32-bit lane inside fmt_dim_stride_packed"
    ),
    Mutator(
        "global_stride",
        "b1024.b64",
        True,
        "rank-1 times, i ∈ [1, rank), {1} = i-1",
        "(i-1)-th 64-bit lane inside elem_stride_packed",
    ),
)
"""The mutators in the order of a rebind."""

SEED_COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned"
"""The seed-copy as the pages print it: without its operands `[dst], [src], 128`."""

ACQUIRE_FENCE = "fence.proxy.tensormap::generic.acquire.{cta|gpu|sys}"
"""The acquire fence as the pages print it: without its operands `[map], 128`, without which it does not assemble."""

RELEASE_FENCE = "fence.proxy.tensormap::generic.release.{cta|gpu|sys}"
"""The release fence as the pages print it; it has no operands."""

TRACE_ONLY: dict[str, str] = {
    "cp.async.bulk.tensor.encode": "no assembler has it; a descriptor is built with tensormap.replace, or on the host",
    "tensormap.replace.global_address": "the mode .tile and the types .b1024.b64 are part of the instruction",
    "tensormap.replace.dim_size": "the field is .global_dim, with an ordinal per dimension",
    "tensormap.replace.stride_size": "the field is .global_stride, with an ordinal per dimension",
    "fence.proxy.tensormap::generic.acquire": "an acquire fence has operands: [map], 128",
    "tensormap.cp_fenceproxy": "the size 128 is an operand",
}
"""Names that the pages use and no assembler takes as they stand: they appear in traces only, with the reason."""


def ranks(template: Template) -> tuple[int, ...]:
    """The ranks that a template's `{a..b}d` stands for; () if it has no such range.

    >>> ranks(COPY_TEMPLATES[1])
    (3, 4, 5)
    """
    found = re.search(r"\{(\d)\.\.(\d)\}", template.literal)
    if found is None:
        return ()
    return tuple(range(int(found[1]), int(found[2]) + 1))


def instances(template: Template) -> tuple[str, ...]:
    """Whole instructions for a template, one per rank, in the pages' modifier order; () for an intrinsic's name.

    >>> instances(COPY_TEMPLATES[3])[1]
    'cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r10, %r11}], [%r1];'
    """
    if not template.tail:
        return ()
    texts = []
    for rank in ranks(template) or (2,):
        mnemonic = re.sub(r"\{\d\.\.\d\}", str(rank), template.literal.removesuffix(" (non-tensor)"))
        tail = template.tail
        for word, first, start, count in (
            ("COORDS", "%r", 10, rank),
            ("FIVE", "%r", 10, 5),
            ("OFFSETS", "%h", 2, rank - 2),
        ):
            tail = tail.replace(word, ", ".join(f"{first}{start + n}" for n in range(count)))
        texts.append(f"{mnemonic} {tail};")
    return tuple(texts)
