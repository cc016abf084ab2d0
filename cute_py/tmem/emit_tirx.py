"""The TIRx-like trace of planned copies: which descriptor is encoded, and which copies are issued, in order.

A descriptor is encoded once and used again. The older planner (`compat="seed"`) keeps one for each shared buffer and
(ldo, sdo, swizzle), encoded at the buffer; the newer one keeps one for each (ldo, sdo, swizzle), encoded at address 0,
and writes the start address into it at each use. Loops are unrolled; every offset is a literal.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.argument_checks import expect
from cute_py.ptx.render import mnemonic
from cute_py.tmem.copy_async import CopyAsync
from cute_py.tmem.matrix_descriptor import START_MASK

DESCRIPTOR = "cp_desc"


@dataclass(frozen=True, slots=True)
class Encoding:
    """One encoded descriptor: the variable, the buffer it was first needed for, and its fields."""

    variable: str
    buffer: str
    ldo: int
    sdo: int
    swizzle: int


def encodings(copies: tuple[CopyAsync, ...]) -> dict[tuple[object, ...], Encoding]:
    """The descriptors that the copies need, by cache key, in the order of first use."""
    found: dict[tuple[object, ...], Encoding] = {}
    for copy in copies:
        key = cache_key(copy)
        if key not in found:
            variable = DESCRIPTOR if not found else f"{DESCRIPTOR}_{len(found)}"
            plan = copy.plan
            found[key] = Encoding(variable, copy.src.name, plan.ldo, plan.sdo, int(plan.swizzle))
    return found


def cache_key(copy: CopyAsync) -> tuple[object, ...]:
    """What a descriptor is kept under: the buffer (older planner only) and the fields."""
    fields = (copy.plan.ldo, copy.plan.sdo, int(copy.plan.swizzle))
    return (copy.src.name, *fields) if copy.plan.compat == "seed" else ("", *fields)


def cp_mnemonic(copy: CopyAsync) -> str:
    """The instruction of a copy, as in `tcgen05.cp.cta_group::1.32x128b.warpx4`."""
    form = copy.plan.form
    modifiers = {"cta_group": f"cta_group::{copy.plan.cta_group}", "shape": form.shape}
    if form.multicast:
        modifiers["multicast"] = form.multicast
    return mnemonic("tcgen05.cp", **modifiers)


def ptx_line(copy: CopyAsync) -> str:
    """The instruction with its two operands, as inline assembly has it."""
    expect(copy, CopyAsync, "a copy")
    return f"{cp_mnemonic(copy)} [%0], %1;"


def emit_tirx(*copies: CopyAsync) -> str:
    """The trace of one or more copies. It has no commit and no wait: those are the caller's."""
    for copy in copies:
        expect(copy, CopyAsync, "a copy")
    held = encodings(copies)
    lines = []
    for key, encoding in held.items():
        at = f"T.address_of({encoding.buffer}[0])" if key[0] else "0"
        fields = f"{encoding.ldo}, {encoding.sdo}, {encoding.swizzle}"
        lines.append(f"T.ptx.tcgen05.encode_matrix_descriptor({encoding.variable}.data, {at}, {fields})")
    for copy in copies:
        lines += _copy_lines(copy, held[cache_key(copy)].variable)
    return "\n".join(lines)


def _copy_lines(copy: CopyAsync, variable: str) -> list[str]:
    plan, form = copy.plan, copy.plan.form
    address = f"{_allocation(copy)}[0]"
    settings = f'shape="{form.shape}", cta_group={plan.cta_group}'
    if form.multicast:
        settings += f', multicast="{form.multicast}"'
    lines = []
    for tile in plan.tiles:
        taddr = f"{address} + {tile.taddr_offset}" if tile.taddr_offset else address
        if plan.compat == "seed":
            lines.append(f"T.ptx.tcgen05.cp({taddr},")
            lines.append(f"                 smem_desc_add_16B_offset({variable}[0], {tile.smem_offset}),")
            lines.append(f"                 {settings})")
        else:
            source = f"{copy.src.name} + {tile.smem_offset * 16}"
            lines.append(f'T.ptx["{cp_mnemonic(copy)}"]({taddr},')
            lines.append(
                f"    {variable}[0] & ~{START_MASK:#x} | T.cvta_generic_to_shared({source}) >> 4 & {START_MASK:#x})"
            )
    return lines


def _allocation(copy: CopyAsync) -> str:
    return copy.dst.allocated_addr.name if copy.dst.allocated_addr else "tmem_addr"
