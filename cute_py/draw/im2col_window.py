"""Pictures of im2col loads: which pixels of the image one instruction visits, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cute_py.draw.picture import Picture
from cute_py.draw.shared_memory import tuple_text, way_of
from cute_py.draw.table import Cell, Table, axis_limit, cut_note, labels, shown
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.copy_atom.im2col import Im2colAtom
from cute_py.tma.descriptor.request import TensorMapIm2col
from cute_py.tma.run.trace import Step, Trace

VISITED = 5
"""Tone of a pixel that is loaded."""


def draw_im2col(what: Any, coords: Sequence[int] | None = None, offsets: Sequence[int] = ()) -> Picture:
    """The plane of the image (width across, height down) with the pixels that one im2col load visits numbered.

    Args:
        what: an atom of `make_im2col_tma_copy`, or a `TensorMapIm2col`, rank 3 to 5.
        coords: of the instruction, (C, W, H, D, N) as far as the rank goes; default: the first base pixel.
        offsets: of the filter position, (W, H, D); default 0.
    Raises:
        InvalidTypeError: no im2col map; InvalidValueError: the wrong number of coordinates or offsets.

    Pixels outside the image are hatched: they are filled. Of pixels in other planes the picture says how many.

    >>> request = TensorMapIm2col(0, 4096, (16, 4, 3, 1), (16, 64, 192), (-1, -1), (-1, -1), 16, 6)
    >>> print(draw_im2col(request, (0, -1, -1, 0), (1, 0)))
    im2col load at (0,-1,-1,0), offsets (1,0): 6 pixels of 16 channels
    <BLANKLINE>
      down: height; across: width
       | -1   0   1   2   3
    ---+-------------------
    -1 | ./  0/  1/  2/  3/
     0 | ./   4   5   .   .
     1 | ./   .   .   .   .
     2 | ./   .   .   .   .
    <BLANKLINE>
    base pixels run from (-1,-1) to (2,1); the offsets are added to each
    4 pixels are outside the image: filled, and counted in the bytes
    """
    request = what.request if isinstance(what, Im2colAtom) else what
    if not isinstance(request, TensorMapIm2col):
        raise InvalidTypeError(f"draw_im2col takes an im2col atom or request, got {type(what).__name__}")
    rank = request.rank
    lower = tuple(request.pixel_box_lower_corner)
    start = (0, *lower, 0) if coords is None else tuple(coords)
    by = tuple(offsets) or (0,) * (rank - 2)
    if len(start) != rank or len(by) != rank - 2:
        raise InvalidValueError(f"{len(start)} coordinates and {len(by)} offsets; must be {rank} and {rank - 2}")
    trace = Trace(request, [start], [0], mode="im2col", im2col_offsets=[by])
    visits = _visits(trace)
    plane = visits[0].tma_coord[3:] if rank > 3 else visits[0].tma_coord[2:]
    here = {_pixel(s, rank): (n, s) for n, s in reversed(list(enumerate(visits))) if _plane(s, rank) == plane}
    width, height = request.global_dim[1], request.global_dim[2] if rank > 3 else 1
    xs, ys = [x for x, _ in here], [y for _, y in here]
    across = range(min(0, lower[0], *xs), max(width, *(x + 1 for x in xs)))
    down = range(min(0, lower[1], *ys), max(height, *(y + 1 for y in ys))) if rank > 3 else range(1)
    table = _plane_table(here, across, down, (width, height))
    return Picture(
        f"im2col load at {tuple_text(start)}, offsets {tuple_text(by)}: "
        f"{len(visits)} pixels of {request.channels_per_pixel} channels",
        (table,),
        _notes(request, visits, here, plane),
    )


def _visits(trace: Trace) -> list[Step]:
    """The first element of every row, in order."""
    shape = trace.geometry
    return [step for row in range(trace.rows) if (step := trace.backward(row * shape.pitch)) is not None]


def _pixel(step: Step, rank: int) -> tuple[int, int]:
    return (step.tma_coord[1], step.tma_coord[2] if rank > 3 else 0)


def _plane(step: Step, rank: int) -> tuple[int, ...]:
    return step.tma_coord[3:] if rank > 3 else step.tma_coord[2:]


def _plane_table(
    here: dict[tuple[int, int], tuple[int, Step]], across: range, down: range, image: tuple[int, int]
) -> Table:
    limit = axis_limit(len(down), len(across))
    columns, rows = shown(len(across), limit), shown(len(down), limit)

    def cell(j: int | None, i: int | None) -> Cell | None:
        if i is None or j is None:
            return None
        x, y = across[i], down[j]
        inside = (1.0, 1.0) if 0 <= x < image[0] and 0 <= y < image[1] else (0.0, 1.0)
        found = here.get((x, y))
        if found is None:
            return Cell(".", f"pixel ({x},{y}) is not loaded", None, inside)
        return Cell(str(found[0]), f"pixel {found[0]}: {way_of(found[1])}", VISITED, inside)

    return Table(
        "",
        tuple(tuple(cell(j, i) for i in columns) for j in rows),
        labels([None if j is None else down[j] for j in rows]),
        labels([None if i is None else across[i] for i in columns]),
        "height" if len(down) > 1 or down.start else "",
        "width",
        notes=cut_note(len(down), len(across), limit),
    )


def _notes(
    request: TensorMapIm2col, visits: list[Step], here: dict[tuple[int, int], Any], plane: tuple[int, ...]
) -> tuple[str, ...]:
    lower, upper = tuple(request.pixel_box_lower_corner), tuple(request.pixel_box_upper_corner)
    spatial = request.global_dim[1:-1]
    ends = tuple(size - 1 + up for size, up in zip(spatial, upper, strict=True))
    notes = [f"base pixels run from {tuple_text(lower)} to {tuple_text(ends)}; the offsets are added to each"]
    if len(here) < len(visits):
        notes.append(f"{len(visits) - len(here)} of the pixels are in other planes than {tuple_text(plane)}")
    outside = sum(1 for step in visits if not step.inside)
    if outside:
        notes.append(f"{outside} pixels are outside the image: filled, and counted in the bytes")
    return tuple(notes)
