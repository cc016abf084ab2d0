"""style="python": a tensor for reading, not for comparing with C++.

    tensor 2x3 of float16                       what it is
      engine : ptr[16b](0x1000)                 where the elements come from
      mode 0 : size 2, stride 3, rows           what each mode is
      mode 1 : size 3, stride _1, columns
          0    1    2                           column numbers
    0 |   1  0.5    2                           row number, then the row, right aligned
    1 |   0    4    8

Modes beyond the first two are slabs with a title each. A mode that is long is shortened to its first and last
indices, and the text says how many it left out: never silently.
"""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.cells import dtype_of, is_number
from cute_py.arith_tuple.ostream import ostream_text
from cute_py.errors import TensorAccessError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.domain import domain_of
from cute_py.layout.int_tuple import size
from cute_py.layout.trees import modes

EDGE = 3
"""Indices that are kept at each end of a shortened mode."""
ROWS, COLUMNS, SLABS = 24, 16, 6
"""A mode is shortened where it has more indices than this."""


def _kept(count: int, limit: int) -> list[int | None]:
    """The indices to show; None stands for those left out."""
    if count <= limit:
        return list(range(count))
    return [*range(EDGE), None, *range(count - EDGE, count)]


def _plain(value: Any) -> str:
    """An element without static underscores: numbers as Python shows them."""
    if hasattr(value, "items") and hasattr(value, "as_tuple"):
        return "(" + ",".join([_plain(x) for x in value]) + ")"
    if is_number(value):
        return str(int(value))
    if hasattr(value, "dtype"):
        if value.dtype.kind == "c":
            return f"{complex(value):g}"
        return f"{float(value):g}" if value.dtype.kind != "b" else str(bool(value))
    return ostream_text(value)


def _kind(tensor: Any) -> str:
    dtype = dtype_of(tensor)
    if dtype is not None:
        return dtype.name
    return "coordinates"


def _mode_lines(tensor: Any) -> list[tuple[str, str]]:
    layout = tensor.layout
    inner = domain_of(layout)
    roles = ("rows", "columns")
    lines = []
    count = len(modes(inner._shape))
    for i in range(count):
        mode = inner if type(inner._shape) is not tuple else inner[i]
        shape, stride = str(mode).split(":", 1)
        text = f"size {int(size(mode))}, shape {shape}, stride {stride}"
        if not isinstance(mode.shape, tuple):
            text = f"size {int(size(mode))}, stride {stride}"
        lines.append((f"mode {i}", f"{text}, {roles[i] if i < 2 else 'slabs'}"))
    return lines


def _grid(tensor: Any, rank: int, prefix: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """(lines of one slab, what was left out of it)."""
    rows = int(size(tensor, 0)) if rank else 1
    columns = int(size(tensor, 1)) if rank > 1 else 1
    show_rows, show_columns = _kept(rows, ROWS), _kept(columns, COLUMNS)

    def at(m: int, n: int) -> str:
        coordinate = () if rank == 0 else (m,) if rank == 1 else (m, n, *prefix)
        return _plain(tensor(*coordinate) if rank else tensor(()))

    header = ["" if n is None else str(n) for n in show_columns] if rank > 1 else [""]
    body = []
    for m in show_rows:
        body.append(["..." if m is None or n is None else at(m, n) for n in show_columns])
    header = ["..." if n is None else text for n, text in zip(show_columns, header, strict=True)]
    widths = [
        max(len(header[j]), *(len(line[j]) for line in body)) if body else len(header[j]) for j in range(len(header))
    ]
    margin = max((len(str(m)) for m in show_rows if m is not None), default=1)
    lines = []
    if rank > 1:
        lines.append(" " * (margin + 3) + "  ".join([f"{h:>{w}}" for h, w in zip(header, widths, strict=True)]))
    for m, line in zip(show_rows, body, strict=True):
        label = "." * min(3, margin) if m is None else str(m)
        cells = "  ".join([f"{c:>{w}}" for c, w in zip(line, widths, strict=True)])
        lines.append(f"{label:>{margin}} | {cells}" if rank else cells)
    left_out = []
    if None in show_rows:
        left_out.append(f"{rows - 2 * EDGE} of {rows} rows")
    if None in show_columns:
        left_out.append(f"{columns - 2 * EDGE} of {columns} columns")
    return lines, left_out


def _slab_numbers(sizes: list[int]) -> tuple[list[tuple[int, ...]], int]:
    """(the slabs to show, first mode fastest; how many are left out)."""
    total = 1
    for n in sizes:
        total *= n
    numbers = [k for k in _kept(total, SLABS) if k is not None]
    out = []
    for k in numbers:
        place = []
        for n in sizes:
            place.append(k % n)
            k //= n
        out.append(tuple(place))
    return out, total - len(numbers)


def python_tensor(tensor: Any, header: bool = True) -> str:
    """The text of a tensor in style "python".

    >>> print(python_tensor(make_tensor(counting_iterator(0), (2, 3), (30, 1))), end="")
    tensor 2x3 of int32
      engine : counting_iter(0)
      mode 0 : size 2, stride 30, rows
      mode 1 : size 3, stride 1, columns
         0   1   2
    0 |  0   1   2
    1 | 30  31  32
    """
    inner = domain_of(tensor.layout)
    shape = modes(inner._shape)
    rank = len(shape)
    sizes = [int(size(tensor, i)) for i in range(rank)] if type(inner._shape) is tuple else [int(size(tensor))]
    out: list[str] = []
    if header:
        dims = "x".join(map(str, sizes)) if rank else "of rank 0"
        out.append(f"tensor {dims} of {_kind(tensor)}")
        facts = [("engine", str(tensor.engine))]
        if isinstance(tensor.layout, ComposedLayout):
            facts.append(("layout", str(tensor.layout)))
        facts += _mode_lines(tensor)
        width = max(len(name) for name, _ in facts)
        out += [f"  {name:<{width}} : {fact}" for name, fact in facts]
    try:
        out += _elements(tensor, rank, sizes)
    except TensorAccessError:
        out.append("elements not shown: the engine is a pointer, and a pointer's elements can't be read here")
    return "\n".join(out) + "\n"


def _elements(tensor: Any, rank: int, sizes: list[int]) -> list[str]:
    out: list[str] = []
    if 0 in sizes:
        return ["no elements: a mode has size 0"]
    slabs, hidden = _slab_numbers(sizes[2:])
    notes: list[str] = []
    for number, place in enumerate(slabs):
        if hidden and number == EDGE:
            out.append("...")
        if place:
            out.append(f"slab (_,_,{','.join(map(str, place))})")
        lines, left_out = _grid(tensor, rank, place)
        out += lines
        notes = left_out
    if hidden:
        notes = [*notes, f"{hidden} of {hidden + len(slabs)} slabs"]
    if notes:
        out.append(f"left out: {', '.join(notes)}")
    return out
