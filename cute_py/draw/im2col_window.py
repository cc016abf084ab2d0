"""Pictures of im2col loads: the pixels of the image that one instruction visits, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from cute_py.argument_checks import expect_integers
from cute_py.draw.element_path import element_path, tuple_text
from cute_py.draw.picture import Picture
from cute_py.draw.table import AXIS_LIMIT, Cell, Legend, Table, cut_note, grid, hatch_legend, shown_around
from cute_py.errors import InvalidTypeError, InvalidValueError, counted
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide, load_mode_of
from cute_py.tma.emulator.geometry import Geometry, geometry, row_image
from cute_py.tma.emulator.trace import Trace, TraceStep

Im2col: TypeAlias = Im2colAtom | TensorMapIm2col | TensorMapIm2colWide
VISITED = 5
"""The tone of a pixel that is loaded."""
ENDS = 12
"""Number of pixels at the start, and at the end, of a load that are drawn in preference to others."""


def draw_im2col(what: Im2col, coords: Sequence[int] | None = None, offsets: Sequence[int] = ()) -> Picture:
    """Draw a plane of the image (width across, height down), with the pixels that one im2col load visits numbered.

    Args:
        what: an atom of `make_im2col_tma_copy`, a `TensorMapIm2col` or a `TensorMapIm2colWide`, rank 3 to 5.
        coords: the coordinates of the instruction, one for each mode of the rank: (C, W, N) to (C, W, H, D, N);
            default: the first base pixel.
        offsets: the offsets of the filter position, (W, H, D); for a wide map (halo, offset), both along W; default 0.
    Raises:
        InvalidTypeError: the argument is not an im2col map, or coordinates are not integers.
        InvalidValueError: the number of coordinates or offsets is wrong.

    Pixels outside the image are hatched, because the load fills them instead of reading them. A note counts the pixels
    in other planes. For a large image, the picture shows the edges and the region around the visited pixels.

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
    / outside the image: filled where it is loaded
    <BLANKLINE>
    numbers: the pixel's row of the tile in shared memory
    base pixels run from (-1,-1) to (2,1); the offsets are added to each
    4 pixels are outside the image: filled, and counted in the bytes
    """
    trace = im2col_trace(what, coords, offsets, "draw_im2col")
    shape, start, by = trace.geometry, trace.coords[0], trace.offsets[0]
    visits = _visits(trace)
    plane = _plane(visits[0], shape)
    here = {_pixel(s, shape): (n, s) for n, s in reversed(list(enumerate(visits))) if _plane(s, shape) == plane}
    sizes = (shape.dims[shape.spatial[0]], shape.dims[shape.spatial[1]] if len(shape.spatial) > 1 else 1)
    lower = (*shape.lower, 0, 0)[:2]
    across, down = (
        range(min(0, low, *(p[k] for p in here)), max(size, *(p[k] + 1 for p in here)))
        for k, (low, size) in enumerate(zip(lower, sizes, strict=True))
    )
    said = "offsets" if shape.mode == "im2col" else "halo and offset"
    return Picture(
        f"{shape.mode} load at {tuple_text(start)}, {said} {tuple_text(by)}: "
        f"{len(visits)} pixels of {shape.row_bytes * 8 // shape.bits} channels",
        (_plane_table(here, across, down, sizes),),
        _notes(shape, visits, here, plane),
    )


def im2col_trace(what: Im2col, coords: Sequence[int] | None, offsets: Sequence[int], operation: str) -> Trace:
    """Trace one im2col load.

    Raises:
        InvalidTypeError: the argument is not an im2col map; InvalidValueError: the number of coordinates or offsets is
            wrong.
    """
    request = what.request if isinstance(what, Im2colAtom) else what
    if not isinstance(request, (TensorMapIm2col, TensorMapIm2colWide)):
        raise InvalidTypeError(f"{operation} takes an im2col atom or request, got {type(what).__name__}")
    shape = geometry(request, load_mode_of(request))
    start = _first_pixel(shape) if coords is None else expect_integers(coords, "coords")
    wanted = shape.rank - 2 if shape.mode == "im2col" else 2
    by = expect_integers(offsets, "offsets") or (0,) * wanted
    if len(start) != shape.rank or len(by) != wanted:
        sizes = f"{counted(len(start), 'coordinate')} and {counted(len(by), 'offset')}"
        raise InvalidValueError(f"got {sizes}; the map needs {shape.rank} and {wanted}")
    return Trace(request, [start], [0], mode=shape.mode, im2col_offsets=[by])


def _first_pixel(shape: Geometry) -> tuple[int, ...]:
    """The lower corner of the bounding box in channel 0 of image 0."""
    corner = dict(zip(shape.spatial, shape.lower, strict=False))
    return tuple(corner.get(mode, 0) for mode in range(shape.rank))


def _visits(trace: Trace) -> list[TraceStep]:
    """Trace steps of the first element of each row, in order; a swizzle may have moved this element within the row."""
    placed = row_image(trace.geometry, trace.rows, 0)
    units = trace.geometry.row_bytes // placed.unit
    starts = [int(placed.positions[row * units]) for row in range(trace.rows)]
    return [step for start in starts if (step := trace.backward(start)) is not None]


def _pixel(step: TraceStep, shape: Geometry) -> tuple[int, int]:
    where = [step.tma_coord[mode] for mode in shape.spatial]
    return where[0], where[1] if len(where) > 1 else 0


def _plane(step: TraceStep, shape: Geometry) -> tuple[int, ...]:
    """The plane that holds the pixel of a step: (depth, if there is one, image)."""
    return (*(step.tma_coord[mode] for mode in shape.spatial[2:]), step.tma_coord[-1])


def _plane_table(
    here: dict[tuple[int, int], tuple[int, TraceStep]], across: range, down: range, image: tuple[int, int]
) -> Table:
    ordered = sorted(here, key=lambda pixel: here[pixel][0])
    ordered = [*ordered[:ENDS], *ordered[-ENDS:], *ordered]
    columns = shown_around(len(across), AXIS_LIMIT, [x - across.start for x, _ in ordered])
    rows = shown_around(
        len(down), AXIS_LIMIT // 2 if None in columns else AXIS_LIMIT, [y - down.start for _, y in ordered]
    )

    def cell(j: int, i: int) -> Cell:
        x, y = across[i], down[j]
        inside = (1.0, 1.0) if 0 <= x < image[0] and 0 <= y < image[1] else (0.0, 1.0)
        found = here.get((x, y))
        if found is None:
            return Cell(".", f"pixel ({x},{y}) is not loaded", None, inside)
        return Cell(str(found[0]), f"pixel {found[0]}: {element_path(found[1])}", VISITED, inside)

    return grid(
        rows,
        columns,
        cell,
        lambda j: str(down[j]),
        lambda i: str(across[i]),
        row_axis="height" if len(down) > 1 or down.start else "",
        column_axis="width",
        notes=cut_note(len(down), len(across), rows, columns, "pixels"),
        legends=(
            Legend("", ((VISITED, "loaded"), (None, "not loaded"))),
            hatch_legend("outside the image: filled where it is loaded"),
        ),
    )


def _notes(
    shape: Geometry, visits: list[TraceStep], here: dict[tuple[int, int], tuple[int, TraceStep]], plane: tuple[int, ...]
) -> tuple[str, ...]:
    bounded = list(zip(shape.spatial, shape.lower, shape.upper, strict=False))
    first = tuple(low for _, low, _ in bounded)
    last = tuple(shape.dims[mode] - 1 + up for mode, _, up in bounded)
    notes = ["numbers: the pixel's row of the tile in shared memory"]
    if shape.mode == "im2col":
        notes.append(f"base pixels run from {tuple_text(first)} to {tuple_text(last)}; the offsets are added to each")
    else:
        notes.append(f"base pixels run along W from {first[0]} to {last[0]}; the offset is added, halo pixels follow")
    if len(here) < len(visits):
        notes.append(f"{len(visits) - len(here)} of the pixels are in other planes than {tuple_text(plane)}")
    outside = sum(1 for step in visits if not step.inside)
    if outside:
        notes.append(f"{outside} pixels are outside the image: filled, and counted in the bytes")
    return tuple(notes)
