"""Does a plan write a cell of tensor memory twice?

Two instructions that write the same cell would leave the one that comes later; the layout then has two elements in
one place, and no copy can be right.
"""

from __future__ import annotations

from cute_py.tmem.copy_plan import CopyPlan


def overlapping(plan: CopyPlan) -> tuple[int, int] | None:
    """(lane, column) of a cell that two instructions write, or None.

    Every instruction of a plan writes the same pattern of lanes, moved by less than the distance of its lanes, and
    the same number of columns in each; so two of them meet where their first lanes are equal and columns meet.
    """
    seen: set[tuple[int, int]] = set()
    for tile in plan.tiles:
        for column in range(tile.column, tile.column + plan.form.columns):
            if (tile.lane, column) in seen:
                return tile.lane, column
            seen.add((tile.lane, column))
    return None
