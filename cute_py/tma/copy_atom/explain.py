"""What an atom is and why, in words: operands, stages, box, instructions, coordinates, bytes, alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_py.argument_checks import expect_having
from cute_py.errors import CuteError, counted
from cute_py.layout.trees import leaves
from cute_py.tma.copy_atom.check import layout_modes
from cute_py.tma.copy_atom.tiles import tile_work

if TYPE_CHECKING:
    from cute_py.tma.copy_atom.copy_atom import TmaAtom


def explain_atom(atom: TmaAtom) -> str:
    """The whole story of an atom, a section each."""
    expect_having(atom, ("gbasis", "plan", "gtensor"), "a TMA atom")
    plan = atom.plan
    gmem = atom.gtensor.layout
    lines = [
        f"{atom.op}: {atom.op.row.direction} of a tile, {atom.arch}",
        "",
        "operands",
        f"  global tensor  {atom.gtensor}  ({atom.dtype}, counted in {atom.internal_dtype})",
        f"  shared tile    {atom.smem_layout}",
        f"  swizzle        {atom.swizzle} on bytes = mode {atom.swizzle_row.name}",
        f"  multicast      {atom.num_multicast} CTA(s)",
        "",
        "from the tile to the box",
        *[f"  {name:<16} {value}\n  {'':<16} ({why})" for name, value, why in atom.gbasis.trace.steps()],
        *[f"  note: {note}" for note in atom.gbasis.trace.notes],
        "",
        "tensor map, innermost mode first",
    ]
    for i in range(plan.rank):
        step = "contiguous" if i == 0 else f"{plan.strides[i - 1]} bytes apart"
        lines.append(f"  mode {i}: {plan.dims[i]} elements, {step}, box {plan.box[i]}; {layout_modes(plan, gmem, i)}")
    lines += ["", "instructions", *_instructions(atom), "", "bytes"]
    lines += [
        f"  one instruction delivers {atom.bytes_per_instruction} bytes to each CTA that receives it",
        f"  a CTA's barrier expects {atom.transaction_bytes} bytes a tile, tiles that hang over the end included",
        f"  the tile in shared memory is aligned to {atom.alignment} bytes",
    ]
    reason = atom.why_not()
    if reason is not None:
        lines += ["", "where it differs from its layouts", f"  {reason}"]
    better = improvements(atom)
    if better:
        lines += ["", "what would be better", *[f"  {b}" for b in better]]
    return "\n".join(lines)


def _instructions(atom: TmaAtom) -> list[str]:
    try:
        work = tile_work(atom)
    except CuteError as error:
        return [f"  {line}" for line in str(error).splitlines()]
    tiles = counted(work.tiles, "tile")
    return [
        f"  {atom.instructions} per tile and CTA, {tiles}, {work.tiles * len(work.coords)} in all",
        f"  first at {_coord(work.coords[0].tolist())}, last at {_coord(work.last)} (innermost first)",
        f"  partition of CTA 0: {work.gmem_partition}",
    ]


def _coord(numbers: list[int]) -> str:
    return "(" + ", ".join(map(str, numbers)) + ")"


def improvements(atom: TmaAtom) -> list[str]:
    """What would make the copy larger-grained or free of conflicts; empty if nothing is seen."""
    out = []
    inner = atom.plan.box[0] * atom.internal_dtype.bits // 8
    if atom.instructions > 1:
        out.append(
            f"{atom.instructions} instructions a tile: shared memory is contiguous along the box for "
            f"{atom.bytes_per_instruction} bytes only; another order of the tile's modes may give one larger box"
        )
    if inner < 64:
        out.append(f"rows of {inner} bytes: boxes with rows of 64 bytes or more move at the full rate")
    if atom.swizzle.bits == 0 and inner % 128 == 0 and len(leaves(atom.tile._shape)) > 1:
        out.append("no swizzle: 8 rows at one column lie in the same banks; a 128B swizzle spreads them")
    reason = atom.why_not()
    if reason:
        out.append(reason)
    return out
