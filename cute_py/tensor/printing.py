"""print_tensor: print a tensor as CuTe C++'s print_tensor does, or in one of two other styles.

style="cute"      what C++'s print_tensor prints, character for character (the default)
style="ostream"   what `std::cout << tensor` prints
style="python"    aligned columns, labelled modes, long tensors shortened

"cute": rulers of `-` and `=`, with five characters for each column regardless of its width, separate the slabs of
rank-3 and rank-4 tensors. As in C++, a tensor of rank 0 or of a rank above 4 has a header and no elements. Source:
cute/util/print_tensor.hpp.

"ostream": the layout, followed by cells that are at least nine characters wide. C++ applies the width to the first item
that it writes, so only the parenthesis of a coordinate is padded. 8-bit integers are printed as characters, and floats
with six significant digits. The engine is not shown, and an unset pointer is printed as its offset 0. Source:
print_tensor_os and the operators << of cute; C++ was run for every type of the table in `cells`.

"python": a tensor for reading, not for comparing with C++.

    tensor 2x3 of float16                       what it is
      engine : ptr[16b](0x1000)                 where the elements come from
      mode 0 : size 2, stride 3, rows           what each mode is
      mode 1 : size 3, stride _1, columns
          0    1    2                           column numbers
    0 |   1  0.5    2                           row number, then the row, right aligned
    1 |   0    4    8

For each index of the modes beyond the first two, a slab with a title is printed. A long mode is shortened to its first
and last indices, and the text states how many are omitted.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final, TextIO

from cute_py.argument_checks import expect
from cute_py.arith_tuple.arith_tuple import ArithTuple, ScaledBasis
from cute_py.arith_tuple.cells import Cell, c_float, cell, dtype_of, element_text, is_number, known_integer, slabs, text
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.arith_tuple.ratio import Ratio
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, InvalidValueError, TensorAccessError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import idx2crd_colex, product, size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int, tree_text
from cute_py.layout.offsets import offsets
from cute_py.layout.trees import check_depth, leaves, map_leaves, modes
from cute_py.tensor.latex import check_cells, text_file
from cute_py.tensor.pointers import Pointer, TmemPointer
from cute_py.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

WIDTH = 9


def ostream_text(value: Any) -> str:
    """Return what `std::cout << x` prints for a layout, tensor, basis element, tuple, number, pointer or iterator.

    Raises:
        TensorAccessError: the elements of a tensor can't be read, although `std::cout` would print them.

    >>> ostream_text(Layout((4, Int(6)), (ratio(1, 2) * E(0), E(1))))
    '(4,_6):(__1/_2@0,_1@1)'
    """
    if isinstance(value, Layout):
        return f"{ostream_text(value.shape)}:{ostream_text(value.stride)}"
    if isinstance(value, Tensor):
        return format_tensor(value, style="ostream")
    if isinstance(value, ComposedLayout):
        offset = Int(int(value.offset)) if isinstance(value.offset, Int) else value.offset
        return f"{ostream_text(value.outer)} o {offset} o {ostream_text(value.inner)}"
    if isinstance(value, (tuple, ArithTuple)):
        check_depth(value)
        return "(" + ",".join([ostream_text(v) for v in value]) + ")"
    if isinstance(value, Ratio):
        return f"_{value}"
    if isinstance(value, ScaledBasis):
        return ostream_text(value.value) + "".join([f"@{mode}" for mode in reversed(value.modes)])
    if isinstance(value, int):
        return element_text(value)
    if isinstance(value, (Pointer, TmemPointer)):
        return _pointer(value)
    if isinstance(value, CountingIterator) and value.dtype.kind == "float":
        return f"counting_iter({value.value:g})"
    return text(value)


def _pointer(pointer: Pointer | TmemPointer) -> str:
    """Return a pointer's memory space and width without the address; in tensor memory, with the decimal address."""
    if isinstance(pointer, TmemPointer):
        return f"tmem_[{pointer.dtype.bits}b]({pointer.address})"
    if pointer.space not in ("gmem", "smem"):
        return f"{pointer.address:#x}" if pointer.address else "0"
    swizzle = f"{pointer.swizzle}_" if pointer.swizzle is not None and pointer.swizzle.bits else ""
    return f"{swizzle}{pointer.space}_[{pointer.dtype.bits}b]"


def _cell(value: Cell, dtype: DType | None) -> str:
    if dtype is None:
        if isinstance(value, ArithTuple):
            return " " * (WIDTH - 1) + ostream_text(value)
        if isinstance(value, ScaledBasis):
            tail = "".join([f"@{mode}" for mode in reversed(value.modes)])
            return _padded_static(value.value) + tail
        return _padded_static(value)
    if dtype.name in ("int8", "uint8"):
        return f"{chr(known_integer(value, 'an element') & 255):>{WIDTH}}"
    if dtype.kind == "float":
        return f"{c_float(value, 'g'):>{WIDTH}}"
    return f"{element_text(value):>{WIDTH}}"


def _padded_static(value: Cell) -> str:
    """Pad a number. C++ writes a static number in two parts, so the width applies only to its underscore."""
    if isinstance(value, Int):
        return f"{'_':>{WIDTH}}{int(value)}"
    if is_number(value):
        return f"{int(value):>{WIDTH}}"
    shown = ostream_text(value)
    return f"{shown[:1]:>{WIDTH}}{shown[1:]}"


def ostream_tensor(tensor: Tensor, header: bool = True) -> str:
    """Return what `std::cout << tensor` prints; without `header`, omit the line with the layout."""
    dtype = dtype_of(tensor)
    head = ostream_text(tensor.layout) + "\n" if header else ""
    return head + "".join(_slabs(tensor, lambda value: _cell(value, dtype), WIDTH))


def _slabs(tensor: Tensor, show: Callable[[Cell], str], column: int) -> list[str]:
    """Return the lines of `cells.slabs`. The cells of a coordinate tensor are made in one step."""
    texts = _coordinate_cells(tensor, show)
    return slabs(tensor, show, column, tensor) if texts is None else slabs(tensor, str, column, texts)


EDGE = 3
"""Number of indices that are shown at each end of a shortened mode."""
ROWS, COLUMNS, SLABS = 24, 16, 6
"""A mode with more indices than this is shortened."""


def _kept(count: int, limit: int) -> list[int | None]:
    """Return the indices to show, with None in place of the omitted ones."""
    if count <= limit:
        return list(range(count))
    return [*range(EDGE), None, *range(count - EDGE, count)]


def _plain(value: Cell) -> str:
    """Return the text of an element without the underscores of static numbers; other numbers as Python shows them."""
    if isinstance(value, ArithTuple):
        return "(" + ",".join([_plain(x) for x in value]) + ")"
    if is_number(value):
        return str(int(value))
    if hasattr(value, "dtype"):
        number: Any = value
        if value.dtype.kind == "c":
            return f"{complex(number):g}"
        return f"{float(number):g}" if value.dtype.kind != "b" else str(bool(number))
    return ostream_text(value)


def _kind(tensor: Tensor) -> str:
    dtype = dtype_of(tensor)
    return "coordinates" if dtype is None else dtype.name


def _mode_lines(tensor: Tensor) -> list[tuple[str, str]]:
    layout = tensor.layout
    inner = domain_of(layout)
    roles = ("rows", "columns")
    lines = []
    count = len(modes(inner.shape))
    for i in range(count):
        mode = inner if type(inner.shape) is not tuple else inner[i]
        shape, stride = str(mode).split(":", 1)
        text = f"size {int(size(mode))}, shape {shape}, stride {stride}"
        if not isinstance(mode.shape, tuple):
            text = f"size {int(size(mode))}, stride {stride}"
        lines.append((f"mode {i}", f"{text}, {roles[i] if i < 2 else 'slabs'}"))
    return lines


def _grid(tensor: Tensor, rank: int, prefix: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Return the lines of one slab, and notes that list the omitted rows and columns."""
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


def python_tensor(tensor: Tensor, header: bool = True) -> str:
    """Return the text of a tensor in the style "python".

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
    shape = modes(inner.shape)
    rank = len(shape)
    sizes = [int(size(tensor, i)) for i in range(rank)] if type(inner.shape) is tuple else [int(size(tensor))]
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
        out.append("elements not shown: the memory of a pointer can't be read")
    return "\n".join(out) + "\n"


def _elements(tensor: Tensor, rank: int, sizes: list[int]) -> list[str]:
    out: list[str] = []
    if 0 in sizes:
        return ["no elements: one mode has size 0"]
    total = prod(sizes[2:])
    shown = [k for k in _kept(total, SLABS) if k is not None]
    hidden = total - len(shown)
    notes: list[str] = []
    for number, k in enumerate(shown):
        place: Any = idx2crd_colex(k, tuple(sizes[2:]))  # first mode fastest
        if hidden and number == EDGE:
            out.append("...")
        if place:
            out.append(f"slab (_,_,{','.join(map(str, place))})")
        lines, left_out = _grid(tensor, rank, place)
        out += lines
        notes = left_out
    if hidden:
        notes = [*notes, f"{hidden} of {total} slabs"]
    if notes:
        out.append(f"omitted: {', '.join(notes)}")
    return out


STYLES = ("cute", "ostream", "python")
MAX_ELEMENTS: Final = 1 << 18
"""Largest number of elements that are printed. Each may take a call of the layout, so this many take seconds."""
_SHORTER: Final = 'style="python" omits the middle of long modes; tensor(0, None) is one row of a matrix'


def _coordinate_cells(tensor: Tensor, show: Callable[[Cell], str]) -> Callable[..., str] | None:
    """Return a function from mode indices to the text of a coordinate tensor's cell; None if it can't be exact.

    A single cell takes a call of the layout and 50 to 270 us. If all cells are made together, each takes one
    microsecond. This requires that the same leaves are static, and therefore printed with `_`, in every cell. The first
    and the last cell are compared with the strings that `show` returns.
    """
    sizes = [int(product(mode)) for mode in modes(domain_of(tensor.layout).shape)]
    if not isinstance(tensor.engine, ArithTupleIterator) or not isinstance(tensor.layout, Layout):
        return None
    if not 1 <= len(sizes) <= 4 or prod(sizes) < 64:
        return None
    first = tensor(*[0] * len(sizes))
    numbers = leaves(first.as_tuple()) if hasattr(type(first), "as_tuple") else [first]
    table = offsets(tensor.layout)
    if not all(isinstance(n, int) for n in numbers) or table.ndim != len(sizes) + 1 or table.shape[-1] != len(numbers):
        return None
    table = table + ([int(n) for n in numbers] - table[(0,) * len(sizes)])
    form = tree_text(map_leaves(lambda n: "_%d" if isinstance(n, Int) else "%d", first.as_tuple()))
    blanks = show(first).partition("(")[0]
    cells = np.empty(prod(sizes), object)
    cells[:] = ("\n".join([blanks + form] * cells.size) % tuple(table.ravel().tolist())).split("\n")
    at = cells.reshape(sizes).item
    ends = [0] * len(sizes), [n - 1 for n in sizes]
    return at if all(at(*index) == show(tensor(*index)) for index in ends) else None


def format_tensor(tensor: Tensor, header: bool = True, style: str = "cute") -> str:
    """Return the text of print_tensor.

    Args:
        tensor: a tensor of coordinates, integers or array elements. The elements of a bare pointer can't be shown.
        header: whether to print the first line: the engine and the layout, or in the style "ostream" only the layout.
        style: "cute", "ostream" or "python".
    Raises:
        InvalidTypeError: the object is not a tensor, or has symbols. TensorAccessError: the engine can't be read.
            InvalidValueError: the style is unknown, or the tensor has more than 2**18 cells and the style is not
            "python", which omits elements.

    >>> print(format_tensor(make_tensor(counting_iterator(42), (4, 5))), end="")
    counting_iter(42) o (4,5):(_1,4):
       42   46   50   54   58
       43   47   51   55   59
       44   48   52   56   60
       45   49   53   57   61
    """
    check_depth(tensor)
    if not isinstance(tensor, Tensor):
        shown = tensor if isinstance(tensor, (Layout, ComposedLayout)) else given(tensor)  # type: ignore[unreachable]
        raise InvalidTypeError(f"print_tensor takes a tensor, got {type(tensor).__name__} {shown}")
    shape = domain_of(tensor.layout).shape
    unknown = [n for n in leaves(shape) if not isinstance(n, int)]
    if unknown:
        raise InvalidTypeError(
            f"print_tensor needs known sizes, got the symbol {unknown[0]}",
            {"tensor": tensor},
            "print(tensor) shows it without its elements; layout.subs({...}) replaces symbols by numbers",
        )
    if not isinstance(style, str) or style not in STYLES:
        raise InvalidValueError(f"unknown style {given(style)}", {"known": ", ".join(STYLES)})
    expect(header, bool, "header")
    if style == "python":
        return python_tensor(tensor, header)
    if 1 <= len(modes(shape)) <= 4:  # others have no cells
        sizes = [int(product(mode)) for mode in modes(shape)]
        check_cells(sizes, "print_tensor", {"tensor": tensor}, _SHORTER, MAX_ELEMENTS)
    if style == "ostream":
        return ostream_tensor(tensor, header)
    dtype = dtype_of(tensor)
    return (f"{tensor}:\n" if header else "") + "".join(_slabs(tensor, lambda value: cell(value, dtype), 5))


def print_tensor(tensor: Tensor, file: TextIO | None = None, header: bool = True, style: str = "cute") -> None:
    """Print a tensor as C++'s print_tensor does, or in another style.

    >>> print_tensor(make_identity_tensor((2, 3)))
    ArithTuple(_0,_0) o (2,3):(_1@0,_1@1):
      (0,0)  (0,1)  (0,2)
      (1,0)  (1,1)  (1,2)
    >>> print_tensor(make_tensor(counting_iterator(5), (2, 3)), header=False)
        5    7    9
        6    8   10
    """
    out = text_file(file)
    out.write(format_tensor(tensor, header, style))
