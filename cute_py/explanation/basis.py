"""Words for one basis element, such as 1@0."""

from __future__ import annotations

from cute_py.arith_tuple.scaled_basis import ScaledBasis
from cute_py.errors import shortened
from cute_py.layout.leaf import Int


def basis_words(element: ScaledBasis) -> str:
    """What a basis element is, and what it does as a stride.

    >>> from cute_py.arith_tuple.scaled_basis import E
    >>> print(basis_words(8 * E(1)).splitlines()[2])
    A basis element: 8 in mode 1 of a coordinate, 0 in every other mode.
    """
    where = " of ".join(f"mode {mode}" for mode in reversed(element.modes)) or "the only mode"
    known = "known at compile time" if isinstance(element.value, Int) else "known at run time"
    step = shortened(str(element.as_arith_tuple()))
    lines = [
        str(element),
        "",
        f"A basis element: {element.value} in {where} of a coordinate, 0 in every other mode.",
        f"Before the first @ stands how far ({known}), after it where, modes counted from 0.",
    ]
    if len(element.modes) > 1:
        lines.append("Modes within modes are written from the inside out.")
    lines += [
        "",
        "As a stride",
        f"  one step along its mode adds {step} to the coordinate. A layout with such strides",
        "  gives coordinates in place of offsets, which is what a TMA instruction is given.",
    ]
    return "\n".join(lines)
