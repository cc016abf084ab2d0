"""What an im2col atom is and why, in words: operands, stages, window, tensor map, instructions, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cute_py.tma.copy_atom.im2col import Im2colAtom


def explain_im2col(atom: Im2colAtom) -> str:
    """The whole story of an im2col atom, a section each."""
    plan, win = atom.plan, atom.plan.window
    lines = [
        f"{atom.op}: {atom.op.row.direction} of a tile of patches, {atom.arch}",
        "",
        "operands",
        f"  global tensor  {atom.gtensor}  ({atom.dtype})",
        f"  shared tile    {atom.smem_layout}",
        f"  swizzle        {atom.swizzle} on bytes = mode {atom.swizzle_row.name}",
        f"  multicast      {atom.num_multicast} CTA(s)",
        "",
        "from the tile to the box",
        *[f"  {name:<16} {value}\n  {'':<16} ({why})" for name, value, why in atom.gbasis.trace.steps()],
        "",
        "window, W first",
        *[f"  {name:<14} ({', '.join(str(int(n)) for n in getattr(win, name))})" for name in win.__slots__],
        "",
        "tensor map, innermost mode first",
    ]
    for i, extent in enumerate(plan.dims):
        step = "contiguous" if i == 0 else f"{plan.strides[i - 1]} bytes apart"
        lines.append(f"  mode {i}: {extent} elements, {step}, traversal stride {plan.element_strides[i]}")
    lines += [
        f"  one instruction: {plan.range_c} channels of {plan.range_whdn} pixels",
        "",
        "instructions",
        f"  {atom.instructions} per tile and CTA; coordinates are those of {atom.get_tma_tensor()}",
        "",
        "bytes",
        f"  one instruction delivers {atom.bytes_per_instruction} bytes to each CTA that receives it",
        f"  a CTA's barrier expects {atom.transaction_bytes} bytes a tile, pixels outside the image included",
        f"  the tile in shared memory is aligned to {atom.alignment} bytes",
    ]
    reason = atom.why_not()
    if reason is not None:
        lines += ["", "where it differs from its layouts", f"  {reason}"]
    return "\n".join(lines)
