"""The words for layouts of integers, swizzles, composed layouts, stored tensors and tensor maps."""

from __future__ import annotations

from typing import Any

from cute_py.errors import CuteError
from cute_py.explanation.coordinates import basis_layout, is_basis_layout, mode_lines, sample_lines, tree_text
from cute_py.layout.analysis import footprint, is_injective
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import rank, size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.recast import SmemPtrFlag, as_position_independent_swizzle_layout
from cute_py.layout.swizzle import Swizzle


def is_integer_layout(thing: Any) -> bool:
    """A layout, and none of its strides is a basis element."""
    return isinstance(thing, Layout) and not is_basis_layout(thing)


def integer_layout(layout: Any) -> str:
    """A layout of integers: strides and why, what it covers, samples."""
    out = [str(layout), "", "A layout: it turns a coordinate into an offset, the sum of index times stride."]
    out += ["", f"The strides {tree_text(layout)}", *mode_lines(layout, "the offset")]
    facts = facts_of_layout(layout)
    out += ["", "As a whole", *facts] if facts else []
    out += ["", "Logical coordinate -> offset", *sample_lines(layout, layout)]
    return "\n".join(out)


def stored(tensor: Any) -> str:
    """A tensor of stored elements: where it is, and its layout."""
    layout = domain_of(tensor.layout)
    words = integer_layout(layout) if is_integer_layout(layout) else basis_layout(layout)
    place = f"Elements of {tensor.element_type}, stored at {tensor.engine}."
    return "\n".join([str(tensor), "", place, "", words])


def facts_of_layout(layout: Layout) -> list[str]:
    """Size and cosize of a layout of integers, and whether elements share offsets or leave gaps."""
    try:
        where = footprint(layout)
        one_to_one = is_injective(layout)
    except CuteError:
        return []  # Symbols and run-time values that numpy can't count.
    count = int(size(layout))
    out = [f"  {count} elements, {int(rank(layout))} mode(s), offsets {where.lowest} to {where.highest}"]
    if one_to_one:
        out.append("  every element has an offset of its own")
    else:
        out.append(f"  {count} elements share {where.distinct} offsets")
    gaps = where.highest - where.lowest + 1 - where.distinct
    out.append(f"  {gaps} offsets between them are not used" if gaps else "  no offset between them is left out")
    return out


def swizzle_words(swizzle: Swizzle) -> str:
    """Which bits a swizzle combines, and the bytes of the engine's mode with these numbers."""
    bits, base, shift = swizzle.bits, swizzle.base, swizzle.shift
    if not bits:
        return f"{swizzle}\n\nThe identity: no bit is changed."
    source, target = (base + shift, base) if shift > 0 else (base, base - shift)
    moved = f"{1 << bits} of them are permuted within {1 << (base + bits)}"
    if shift < 0:
        moved = f"and move by multiples of {1 << target}"
    out = [
        f"{swizzle}",
        "",
        f"An offset keeps all bits but {_range(target, bits)}, which are combined by XOR with {_range(source, bits)}.",
        f"  units of {1 << base} stay whole, {moved},",
        f"  and the pattern repeats after {1 << (base + abs(shift) + bits)}. It is its own inverse.",
    ]
    if base == 4 and shift == 3 and bits <= 3:
        out.append(f"  On byte addresses it is the {16 << bits}B swizzle of TMA, wgmma and tcgen05.")
    return "\n".join(out)


def _range(low: int, bits: int) -> str:
    return f"bit {low}" if bits == 1 else f"bits {low} to {low + bits - 1}"


def composed_words(layout: ComposedLayout) -> str:
    """The order in which a composed layout computes an offset."""
    out = [str(layout), "", "A composition: a coordinate goes from right to left."]
    out.append(f"  {layout.inner} gives an offset,")
    offset = layout.offset
    if isinstance(offset, SmemPtrFlag):
        out.append(f"  of elements of {offset.bits} bits from an address that is not known yet,")
        out.append(f"  and {layout.outer} permutes the bits of the byte address.")
        elements = as_position_independent_swizzle_layout(layout)
        out.append(f"  Counted in elements it is {elements}; offsets() and pictures show that function.")
        out.append(f"  A call applies {layout.outer} to element offsets as it stands, as in C++.")
    else:
        out.append(f"  {offset} is added, and {layout.outer} is applied to the sum, in elements.")
    if isinstance(layout.outer, Swizzle):
        out += ["", swizzle_words(layout.outer)]
    return "\n".join(out)


def map_words(thing: Any) -> str:
    """A tensor map, given as bytes or as a request."""
    from cute_py.tma.descriptor.describe import describe

    return describe(thing)


def is_map(thing: Any) -> bool:
    """Whether this is a tensor map: 64 or 128 bytes, or a request."""
    if isinstance(thing, (bytes, bytearray)):
        return len(thing) in (64, 128)
    return type(thing).__module__ == "cute_py.tma.descriptor.request"
