"""The orders of block scales in memory, each as a CuTe layout from (m, k) to the index of the scale.

(m, k) is the coordinate of an element: the V elements of a block have stride 0. In the order of SM100 (`32_4_4`), 128
rows x 4 scales are a tile of 512 bytes, and the tiles are stored along K first:

    SfAtom   ((_32,_4),(_V,_4)):((_16,_4),(_0,_1))        tile_to_shape(SfAtom, (M,K), Step<_2,_1>)

    m: row 0, 32, 64, 96 side by side            k: the 4 scales of a row side by side
    byte  0..3 row 0  4..7 row 32  8..11 row 64  12..15 row 96  16..19 row 1 ...

In some orders each row has its own scales, so a block of several rows repeats its scale; other orders store one scale
per block. A size that is not a multiple of the tile is padded. `ragged` is not a single layout; `scale_index` computes
the indices of every order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from cute_py.argument_checks import (
    expect,
    expect_choice,
    expect_integer,
    expect_integer_array,
    expect_integers,
    is_integer,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, given, known_names
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout, cosize
from cute_py.layout.leaf import Int, is_symbolic
from cute_py.layout.offsets import offsets
from cute_py.layout.tiling import ceil_div, tile_to_shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

Extent: TypeAlias = Any
"""A number of elements: an int (a run-time number), an `Int` (static) or a sympy expression."""


class Index(Protocol):
    """A function from arrays of coordinates to the indices of their scales."""

    def __call__(self, m: Any, k: Any, batch: Any = 0) -> NDArray[np.int64]:
        """The indices of the scales of the elements (m, k) in batch entry `batch`."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of scales: rows x columns elements in blocks of (block_rows, block_columns), with a batch size or None.

    A matrix product sums along the columns.
    """

    rows: Extent
    columns: Extent
    block_rows: Extent
    block_columns: Extent
    batch: Extent = None


@dataclass(frozen=True, slots=True)
class ScaleOrderRow:
    """One named order of scales.

    Attributes:
        rows, scales: the tile size: the grid of scales is padded to multiples of it.
        each_row: whether each row has its own scales even if a block spans several rows; otherwise there is one scale
            per block.
        formula: the index of scale (m, kb), with Kb scales per row. source: where the order is defined. aliases: other
            names.
        parameters: the names of the order's parameters, with their defaults; None: the parameter is required.
        scale: the only type of scales that the order is defined for; empty if it is defined for all types.
    """

    name: str
    rows: int
    scales: int
    each_row: bool
    formula: str
    source: str
    aliases: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    scale: str = ""


ORDERS: Final = (
    ScaleOrderRow("linear", 1, 1, False, "m*Kb + kb",
             "CUTLASS 7107b05, detail/blockwise_scale_layout.hpp, Major::K; torch "
             "SwizzleType.NO_SWIZZLE; TensorRT-LLM QuantizationSFLayout::LINEAR", ("no_swizzle", "k_major")),
    ScaleOrderRow("mn_major", 1, 1, False, "kb*M + m",
             "CUTLASS 7107b05, detail/blockwise_scale_layout.hpp, Major::MN "
             "(Sm90BlockwiseScaleConfig, Sm100BlockwiseScaleConfig, Sm120BlockwiseScaleConfig)", ("m_major",)),
    ScaleOrderRow("32_4_4", 128, 4, True,
             "(m/128)*512*ceil(Kb/4) + (kb/4)*512 + (m%32)*16 + (m%128/32)*4 + kb%4",
             "CUTLASS 7107b05, detail/sm100_blockscaled_layout.hpp, Sm1xxBlockScaledConfig (SM100, SM103, SM120), and "
             "sm103_blockscaled_layout.hpp, Sm103BlockScaledConfig; "
             "cuBLAS 13.0, section 2.1.5.4.2; torch SwizzleType.SWIZZLE_32_4_4",
             ("swizzle_32_4_4", "128x4", "layout_128x4", "swizzled_128x4", "blocked", "sfatom")),
    ScaleOrderRow("8x4", 8, 4, True, "((m/8)*ceil(Kb/4) + kb/4)*32 + (m%8)*4 + kb%4",
             "TensorRT-LLM and FlashInfer, kernels/quantization_utils.cuh, get_sf_out_offset_8x4",
             ("layout_8x4", "swizzled_8x4")),
    ScaleOrderRow("triton_blackwell", 128, 8, True, "32_4_4, Kb padded to 8",
             "Triton, triton_kernels/tensor_details/layout_details/blackwell_scale.py", ("blackwell_mx_scale",)),
    ScaleOrderRow("triton_hopper", 32, 2, True,
             "reshape (M/32w, 2, w, 2, 8, Kb/2, 2), permute [0, 2, 5, 1, 4, 6, 3], w = num_warps",
             "Triton, triton_kernels/tensor_details/layout_details/hopper_scale.py", ("hopper_mx_scale",),
             (("num_warps", 4),)),
    ScaleOrderRow("rocm_32_8", 32, 8, True,
             "(m/32)*32*Kb + (kb/8)*256 + (kb%4)*64 + (m%16)*4 + (kb%8/4)*2 + m%32/16, Kb padded to 8",
             "pytorch #190290, SwizzleType.SWIZZLE_32_8 (hipBLASLt BLK32_UE8M0_32_8_EXT, gfx950)",
             ("32_8", "swizzle_32_8", "gfx950_scale", "cdna4")),
    ScaleOrderRow("deepgemm_sm90", 4, 1, False, "kb*align(M, 4) + m, float32",
             "DeepGEMM, csrc/jit_kernels/impls/smxx_layout.hpp, get_mn_major_tma_aligned_tensor",
             scale="float32"),
    ScaleOrderRow("deepgemm_sm100", 4, 4, True, "((kb/4)*align(M, 4) + m)*4 + kb%4: four ue8m0 per int32",
             "DeepGEMM, csrc/jit_kernels/impls/smxx_layout.hpp, get_mn_major_tma_aligned_packed_ue8m0_tensor (SM100, "
             "SM120)", ("packed_ue8m0",), (("granularity", 0),), "ue8m0"),
    ScaleOrderRow("vllm_v_4x4", 4, 1, True, "(m/4)*4*Kb + kb*4 + m%4: m a token of a page, k of head_dim",
             "vLLM, csrc/libtorch_stable/nvfp4_kv_cache_kernels.cu, swizzle_scale_offset (SM100 only); FlashInfer, "
             "quantization/fp4_quantization.py", ("v_4x4",)),
    ScaleOrderRow("ragged", 128, 4, True,
             "32_4_4 for each expert separately; expert b begins at tile cu_seqlens[b]/128 + b",
             "quack, AI/varlen_blockscaled_sf_layout.md", (), (("cu_seqlens", None),)),
)  # fmt: skip
"""All named orders. A `/` in a formula is an integer division."""

NAMED_ORDERS: Final = {name: row for row in ORDERS for name in (row.name, *row.aliases)}
"""Name or alias -> row."""
_CALLED: Final = re.compile(r"\s*+(\w+)\s*+(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ScaleOrder:
    """An order of scales: a named order with its parameters, or a layout.

    >>> print(scale_order("triton_hopper"), scale_order("SWIZZLE_32_4_4"))
    triton_hopper(num_warps=4) 32_4_4
    """

    name: str
    values: tuple[Any, ...] = ()
    given_layout: Layout | None = None

    @property
    def row(self) -> ScaleOrderRow | None:
        """The table row of a named order; None for a layout."""
        return NAMED_ORDERS.get(self.name) if self.given_layout is None else None

    @property
    def each_row(self) -> bool:
        """Whether each row has its own scales, even if a block spans several rows."""
        return self.row is not None and self.row.each_row

    @property
    def is_layout(self) -> bool:
        """Whether the order is a single CuTe layout. All orders are, except `ragged`."""
        return self.name != "ragged"

    def parameter(self, name: str) -> Any:
        """The value of a parameter.

        Raises:
            InvalidValueError, InvalidTypeError: the order has no parameter of this name.
        """
        names = [known for known, _ in self.row.parameters] if self.row else []
        if not names:
            raise InvalidValueError(f"the scale order {self} has no parameters")
        return self.values[names.index(expect_choice(name, names, "the parameter"))]

    @property
    def tile(self) -> tuple[int, int]:
        """The tile (rows, scales); the grid of scales is padded to multiples of it."""
        if self.row is None:
            return 1, 1
        rows = self.row.rows * (self.parameter("num_warps") if self.name == "triton_hopper" else 1)
        return rows, self.row.scales

    def __str__(self) -> str:
        if self.row is None:
            return str(self.given_layout)
        inside = [f"{n}={v}" for (n, usual), v in zip(self.row.parameters, self.values, strict=True) if v or usual != v]
        return f"{self.name}({', '.join(inside)})" if inside else self.name

    def __repr__(self) -> str:
        if self.row is None:
            return f"scale_order({self.given_layout!r})"
        inside = [f"{n}={v!r}" for (n, _), v in zip(self.row.parameters, self.values, strict=True)]
        return f"scale_order({', '.join([repr(self.name), *inside])})"

    def layout(self, grid: Grid) -> Layout:
        """The layout from (m, k) or (m, k, l) to the index of the scale.

        Raises:
            LayoutError: the order is not a single layout. InvalidTypeError: the argument is not a `Grid`.
        """
        expect(grid, Grid, "the grid of scales")
        if self.given_layout is not None:
            return _checked(self.given_layout, grid)
        if not self.is_layout:
            raise LayoutError(
                f"the scale order {self.name} is not a single layout, because each expert begins at a new tile",
                {"order": self},
                "Format.scale_index(M, K) computes the index of every scale",
            ).of_rule("scale_order_layout")
        return _BUILDERS[self.name](self, grid)

    def count(self, grid: Grid) -> Extent:
        """The number of scales to allocate, including padding.

        Raises:
            InvalidTypeError: the argument is not a `Grid`. InvalidValueError: a parameter does not fit the grid.
        """
        expect(grid, Grid, "the grid of scales")
        if self.given_layout is not None:
            return cosize(self.given_layout)
        _expect_parameters(self, grid)
        rows, scales = self.tile
        whole_rows = grid.rows if self.each_row else _blocks(grid.rows, grid.block_rows)
        if self.name == "ragged":
            bounds = self.parameter("cu_seqlens")
            whole_rows = 128 * (-(-bounds[-1] // 128) + max(len(bounds) - 2, 0))
        columns = _blocks(grid.columns, grid.block_columns)
        total = _padded(whole_rows, rows) * _padded(columns, scales)
        return total if grid.batch is None else total * grid.batch

    def index(self, grid: Grid) -> Index:
        """The function (m, k, l) -> index of the scale, on arrays of coordinates. The sizes of the grid must be known
        integers.

        Raises:
            InvalidTypeError: the argument is not a `Grid`. InvalidValueError: the order is a layout that gives a block
                several indices, or a negative index. The returned function raises it for a coordinate outside the grid.
        """
        expect(grid, Grid, "the grid of scales")
        if self.name == "ragged":
            return _ragged_index(self, grid)
        layout = self.layout(grid)
        if self.given_layout is not None:
            _expect_blocks(layout, grid)
        modes = 2 if grid.batch is None else 3
        sizes = [int(size(mode_of(layout, mode))) for mode in range(modes)]

        def indexed(m: Any, k: Any, batch: Any = 0) -> NDArray[np.int64]:
            at = [np.asarray(c, np.int64) for c in np.broadcast_arrays(m, k, batch)][:modes]
            total = np.zeros(at[0].shape, np.int64)
            for mode, where in enumerate(at):
                _expect_inside(where, "mkl"[mode], sizes[mode])
                table = np.asarray(offsets(mode_of(layout, mode), np.arange(int(where.max(initial=-1)) + 1)))
                total += table[where] if table.size else 0
            return total

        return indexed


def _expect_inside(where: NDArray[np.int64], name: str, extent: int) -> None:
    if where.size and not 0 <= int(where.min()) <= int(where.max()) < extent:
        outside = int(where.min()) if int(where.min()) < 0 else int(where.max())
        raise InvalidValueError.of_value(name, outside, f"be 0 to {extent - 1}")


def _expect_blocks(layout: Layout, grid: Grid) -> None:
    """Refuse a layout that gives the elements of one block different indices, or an index below 0."""
    least = 0
    sides = ("m", grid.rows, grid.block_rows), ("k", grid.columns, grid.block_columns), ("l", grid.batch, 1)
    for mode, (name, extent, side) in enumerate(sides[: 2 if grid.batch is None else 3]):
        at = np.arange(int(extent))
        table = np.asarray(offsets(mode_of(layout, mode), at))
        least += int(table.min(initial=0))
        wrong = np.flatnonzero(table != table[at // int(side) * int(side)])
        if len(wrong):
            found = int(wrong[0])
            raise InvalidValueError(
                f"the scale layout {layout} gives {name} = {found // int(side) * int(side)} and {found} different "
                f"indices, but they are in one block of {grid.block_rows} x {grid.block_columns} elements",
                hint="m and k count elements: the mode of the elements of a block has stride 0",
            ).of_rule("scale_layout")
    if least < 0:
        raise InvalidValueError(f"the scale layout {layout} has indices down to {least}; must be at least 0").of_rule(
            "scale_layout"
        )


def mode_of(layout: Layout, mode: int) -> Layout:
    """One mode of a layout that has several."""
    shape: Any = layout.shape
    stride: Any = layout.stride
    return Layout(shape[mode], stride[mode])


def scale_order(order: str | Layout | ScaleOrder, **parameters: Any) -> ScaleOrder:
    """Make an order of scales from its name, or from a layout.

    Args:
        order: a name or an alias of `ORDERS`, optionally followed by its parameters in parentheses, such as
            'triton_hopper(num_warps=8)'; or a `Layout` from the coordinate (m, k) of an element to an index.
        parameters: num_warps of triton_hopper (default 4); granularity of deepgemm_sm100: the number of elements that
            share a scale (default: the format's block); cu_seqlens of ragged: the first row of each expert, followed by
            the number of rows.
    Raises:
        InvalidValueError: the name is unknown, or a parameter is unknown or missing.

    >>> scale_order("ragged", cu_seqlens=(0, 100, 300))
    scale_order('ragged', cu_seqlens=(0, 100, 300))
    """
    if isinstance(order, ScaleOrder):
        return order
    if isinstance(order, Layout):
        return ScaleOrder("layout", (), order)
    if not isinstance(order, str):
        raise InvalidTypeError(f"a scale order must be a name or a Layout, got {given(order)}")
    called = _CALLED.fullmatch(order)
    name = called[1].lower() if called else order
    row = NAMED_ORDERS.get(name)
    if row is None or called is None:
        raise InvalidValueError(
            f"unknown scale order {given(order)}",
            known_names(name, [r.name for r in ORDERS], NAMED_ORDERS),
            "cuBLAS, torch, CUTLASS, FlashInfer and Triton's tutorial read 32_4_4; TensorRT-LLM also reads 8x4",
        )
    parameters = {**_written(row, called[2] or ""), **parameters}
    known = [n for n, _ in row.parameters]
    for one in parameters:
        if one not in known:
            text = f"the scale order {row.name} has no parameter {one!r}"
            raise InvalidValueError(text, {"parameters": ", ".join(known) or "none"})
    values = tuple(_value(row.name, n, parameters.get(n, usual)) for n, usual in row.parameters)
    return ScaleOrder(row.name, values)


def _written(row: ScaleOrderRow, text: str) -> dict[str, Any]:
    """Read the parameters in 'triton_hopper(num_warps=8)' or 'triton_hopper(8)'."""
    if not text.strip():
        return {}
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if isinstance(call, ast.Call) and len(call.args) <= len(row.parameters):
            named = [(n, a) for (n, _), a in zip(row.parameters, call.args, strict=False)]
            named += [(str(word.arg), word.value) for word in call.keywords]
            return {n: ast.literal_eval(a) for n, a in named}
    except (SyntaxError, ValueError):
        pass
    raise InvalidValueError(f"the parameters of the scale order {row.name}({text}) can't be read")


def _value(order: str, name: str, value: Any) -> Any:
    if name != "cu_seqlens":
        number = expect_integer(value, f"{name} of {order}", 0 if name == "granularity" else 1)
        if name == "num_warps" and number & (number - 1):
            raise InvalidValueError.of_value("num_warps", number, "be a power of 2")
        return number
    if value is None:
        raise InvalidValueError(
            "the scale order ragged needs cu_seqlens", hint="scale_order('ragged', cu_seqlens=(0, 100))"
        )
    listed = expect_integer_array(value, "cu_seqlens").reshape(-1)
    bounds = expect_integers(tuple(listed.tolist()), "cu_seqlens", 0)
    if len(bounds) < 2 or bounds[0] or any(b < a for a, b in pairwise(bounds)):
        raise InvalidValueError(f"cu_seqlens = {given(bounds)}; must begin with 0 and never decrease")
    return bounds


def _checked(layout: Layout, grid: Grid) -> Layout:
    parts: Any = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    wanted = [grid.rows, grid.columns, *([] if grid.batch is None else [grid.batch])]
    sizes = [size(part) for part in parts]
    if len(sizes) != len(wanted) or any(_less(have, want) for have, want in zip(sizes, wanted, strict=True)):
        names = ", ".join(map(str, wanted))
        raise InvalidValueError(
            f"the modes of the scale layout have {', '.join(map(str, sizes))} elements; must cover ({names})",
            {"layout": layout},
        )
    return layout


def _less(have: Any, want: Any) -> bool:
    return bool((have < want) == True)  # noqa: E712  (an inequality of symbols is neither)


def _blocks(count: Extent, block: Extent) -> Extent:
    return ceil_div(count, block)


def _padded(count: Extent, multiple: int) -> Extent:
    return ceil_div(count, multiple) * multiple if multiple > 1 else count


def _tiled(atom: Layout, grid: Grid, columns: int = 1) -> Layout:
    """Tile the atom over the grid, along K first. A static size that is not a multiple of the atom's is padded."""
    tile = [int(size(mode_of(atom, i))) for i in (0, 1)]
    tile[1] *= columns
    extents = [grid.rows, grid.columns]
    for i, extent in enumerate(extents):
        if isinstance(extent, Int):
            extents[i] = Int(-(-int(extent) // tile[i]) * tile[i])
        elif columns > 1 and i == 1:
            extents[i] = ceil_div(extent, tile[i]) * tile[i]
    if grid.batch is None:
        return tile_to_shape(atom, tuple(extents), (Int(2), Int(1)))
    return tile_to_shape(atom, (*extents, grid.batch), (Int(2), Int(1), Int(3)))


def _static(block: Extent) -> Extent:
    return Int(int(block)) if is_integer(block) else block


def sf_atom(block: Extent) -> Layout:
    """CUTLASS's SfAtom for blocks of `block` elements: 128 rows x 4 scales.

    >>> print(sf_atom(16))
    ((_32,_4),(_16,_4)):((_16,_4),(_0,_1))
    """
    if not is_symbolic(block):
        expect_integer(block, "block", 1, unit="elements")
    return Layout(((Int(32), Int(4)), (_static(block), Int(4))), ((Int(16), Int(4)), (Int(0), Int(1))))


def _blocked_tiles(order: ScaleOrder, grid: Grid) -> Layout:
    return _tiled(sf_atom(grid.block_columns), grid, 2 if order.name == "triton_blackwell" else 1)


def _eight_by_four(order: ScaleOrder, grid: Grid) -> Layout:
    return _tiled(Layout((Int(8), (_static(grid.block_columns), Int(4))), (Int(4), (Int(0), Int(1)))), grid)


def _rocm(order: ScaleOrder, grid: Grid) -> Layout:
    shape = ((Int(16), Int(2)), (_static(grid.block_columns), Int(4), Int(2)))
    return _tiled(Layout(shape, ((Int(4), Int(1)), (Int(0), Int(64), Int(2)))), grid)


def _joined(grid: Grid, rows: tuple[Any, Any], columns: tuple[Any, Any], batch_stride: Extent) -> Layout:
    """The layout of a grid whose row mode and column mode are given as (shape, stride)."""
    modes = [rows, columns] + ([] if grid.batch is None else [(grid.batch, batch_stride)])
    return Layout(tuple(shape for shape, _ in modes), tuple(stride for _, stride in modes))


def _run_time(extent: Extent) -> Extent:
    """Make a static size a run-time number, because C++ divides by a constexpr int here and so gets a run-time
    quotient."""
    return int(extent) if isinstance(extent, Int) else extent


def _block_grid(order: ScaleOrder, grid: Grid) -> Layout:
    rows = _blocks(_run_time(grid.rows), grid.block_rows)
    columns = _blocks(_run_time(grid.columns), grid.block_columns)
    whole = _padded(rows, 4) if order.name == "deepgemm_sm90" else rows
    row_step, column_step = (columns, Int(1)) if order.name == "linear" else (Int(1), whole)
    return _joined(
        grid,
        ((_static(grid.block_rows), rows), (Int(0), row_step)),
        ((_static(grid.block_columns), columns), (Int(0), column_step)),
        whole * columns,
    )


def _hopper(order: ScaleOrder, grid: Grid) -> Layout:
    warps = order.parameter("num_warps")
    pairs = _blocks(_blocks(_run_time(grid.columns), grid.block_columns), 2)
    tiles = _blocks(_run_time(grid.rows), 32 * warps)
    rows = (Int(8), Int(2), Int(warps), Int(2), tiles), (Int(4), Int(1), 64 * pairs, Int(32), 64 * pairs * warps)
    columns = (_static(grid.block_columns), Int(2), pairs), (Int(0), Int(2), Int(64))
    return _joined(grid, rows, columns, 64 * pairs * warps * tiles)


def _expect_parameters(order: ScaleOrder, grid: Grid) -> None:
    """Refuse parameters of an order that do not fit the grid."""
    if order.name == "deepgemm_sm100":
        granularity = order.parameter("granularity")
        if granularity and granularity != grid.block_columns:
            text = f"granularity = {granularity} elements; must be {grid.block_columns}, the format's block along K"
            raise InvalidValueError(text)
    if order.name == "ragged":
        last = order.parameter("cu_seqlens")[-1]
        if is_integer(grid.rows) and last != int(grid.rows):
            raise InvalidValueError(f"cu_seqlens ends with {last}; must end with M = {grid.rows} rows")
        if grid.batch is not None:
            raise InvalidValueError("ragged experts can't be batched, because cu_seqlens already divides the rows")


def _deepgemm_packed(order: ScaleOrder, grid: Grid) -> Layout:
    _expect_parameters(order, grid)
    rows, words = _run_time(grid.rows), _blocks(_blocks(_run_time(grid.columns), grid.block_columns), 4)
    whole = _padded(rows, 4)
    columns = (_static(grid.block_columns), Int(4), words), (Int(0), Int(1), 4 * whole)
    return _joined(grid, (rows, Int(4)), columns, 4 * whole * words)


def _tokens_of_four(order: ScaleOrder, grid: Grid) -> Layout:
    columns, groups = _blocks(_run_time(grid.columns), grid.block_columns), _blocks(_run_time(grid.rows), 4)
    rows = (Int(4), groups), (Int(1), 4 * columns)
    return _joined(grid, rows, ((_static(grid.block_columns), columns), (Int(0), Int(4))), 4 * columns * groups)


_BUILDERS: Final[dict[str, Callable[[ScaleOrder, Grid], Layout]]] = {
    **dict.fromkeys(("32_4_4", "triton_blackwell"), _blocked_tiles),
    **dict.fromkeys(("linear", "mn_major", "deepgemm_sm90"), _block_grid),
    "8x4": _eight_by_four,
    "triton_hopper": _hopper,
    "rocm_32_8": _rocm,
    "deepgemm_sm100": _deepgemm_packed,
    "vllm_v_4x4": _tokens_of_four,
}


def _ragged_index(order: ScaleOrder, grid: Grid) -> Index:
    _expect_parameters(order, grid)
    bounds = np.asarray(order.parameter("cu_seqlens"), np.int64)
    words = -(-int(grid.columns) // (4 * int(grid.block_columns)))

    def indexed(m: Any, k: Any, batch: Any = 0) -> NDArray[np.int64]:
        row, column = np.asarray(m, np.int64), np.asarray(k, np.int64)
        _expect_inside(row, "m", int(grid.rows))
        _expect_inside(column, "k", 4 * words * int(grid.block_columns))
        block = column // int(grid.block_columns)
        expert = np.searchsorted(bounds, row, side="right") - 1
        local = row - bounds[expert]
        tile = bounds[expert] // 128 + expert + local // 128
        found: NDArray[np.int64] = (
            (tile * words + block // 4) * 512 + local % 32 * 16 + local % 128 // 32 * 4 + block % 4
        )
        return found

    return indexed
