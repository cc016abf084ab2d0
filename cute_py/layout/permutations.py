"""What a layout does to the numbers of its domain: cycles, order, contiguity, and which offsets it reaches.

    cycles((2,2):(2,1))      [[0], [1, 2], [3]]       0 -> 0, 1 -> 2 -> 1, 3 -> 3
    contiguity((4,8):(1,8))  4                        four elements from the first on are neighbours

Offsets are counted from the lowest one where a layout does not begin at 0.
"""

from __future__ import annotations

import math
from typing import Any

from cute_py.argument_checks import expect_integer
from cute_py.errors import LayoutError
from cute_py.layout.analysis import footprint, is_injective
from cute_py.layout.int_tuple import size
from cute_py.layout.offsets import offsets


def is_surjective(layout: Any, codomain: int | None = None) -> bool:
    """Does the layout reach every offset from its lowest to its highest one; with `codomain`, all of 0 .. codomain-1?

    >>> is_surjective(parse("4:1")), is_surjective(parse("4:2")), is_surjective(parse("4:1"), 8)
    (True, False, False)
    """
    reached = footprint(layout)
    if codomain is None:
        return reached.distinct == reached.span
    count = expect_integer(codomain, "the size of the codomain", 0)
    if count == 0:
        return reached.distinct == 0
    return reached.lowest == 0 and reached.highest == count - 1 and reached.distinct == count


def is_contiguous(layout: Any) -> bool:
    """Is every offset of a block reached once: no gaps, no two elements at one place?

    >>> is_contiguous(parse("(2,2):(2,1)")), is_contiguous(parse("(4,2):(0,1)")), is_contiguous(parse("4:2"))
    (True, False, False)
    """
    return is_surjective(layout) and is_injective(layout)


def contiguity(layout: Any) -> int:
    """How many elements from the first on have offsets one after another: the widest vector access, in elements.

    >>> contiguity(parse("(4,8):(1,8)")), contiguity(parse("(4,8):(8,1)")), contiguity(parse("(4,8):(1,4)"))
    (4, 1, 32)
    """
    import numpy as np

    table = np.asarray(offsets(layout)).reshape(-1, order="F")
    if not len(table):
        return 0
    steps = np.flatnonzero(np.diff(table) != 1)
    return int(steps[0]) + 1 if len(steps) else len(table)


def _permutation(layout: Any) -> list[int]:
    import numpy as np

    if not is_contiguous(layout):
        raise LayoutError(
            "a layout with gaps or repeated offsets is no permutation",
            {"layout": layout, "elements": size(layout), "reached": footprint(layout)},
        )
    table = np.asarray(offsets(layout)).reshape(-1, order="F")
    return [int(x) for x in table - table.min()] if len(table) else []


def cycles(layout: Any) -> list[list[int]]:
    """The cycles of a layout as a permutation of its indices, those of one element too.

    Raises:
        LayoutError: offsets with gaps, or reached twice.

    >>> cycles(parse("(2,2):(2,1)"))
    [[0], [1, 2], [3]]
    """
    targets = _permutation(layout)
    seen = [False] * len(targets)
    found = []
    for start in range(len(targets)):
        cycle = []
        current = start
        while not seen[current]:
            seen[current] = True
            cycle.append(current)
            current = targets[current]
        if cycle:
            found.append(cycle)
    return found


def order(layout: Any) -> int:
    """How often a layout must be applied to itself to be the identity: the least common multiple of its cycles.

    >>> order(parse("(2,2):(2,1)")), order(parse("(2,4):(4,1)")), order(parse("8:1"))
    (2, 3, 1)
    """
    return math.lcm(*(len(c) for c in cycles(layout)))
