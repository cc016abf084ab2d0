"""A storage format: how a logical (M, K) tensor of numbers is stored in memory, with data and scales.

    mxfp8()    e4m3, a ue8m0 scale for 32 elements of a row, scales in the order of 32_4_4
    nvfp4()    e2m1 in pairs, an e4m3 scale for 16 elements of a row, and one float32 scale for the tensor

The value of a number is element x scale (x tensor scale). `data_layout` and `scale_layout` are CuTe layouts from (m, k)
to an index.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_choice, expect_integer, is_integer
from cute_py.dtypes import DType, DTypeLike
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given, known_names
from cute_py.formats.numbers import Number, number
from cute_py.formats.packing import expect_packing, packed_width
from cute_py.formats.scale_orders import Extent, Grid, Index, ScaleOrder, mode_of, scale_order
from cute_py.formats.scale_rules import POWER_RULES, RULES, variants
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, is_symbolic
from cute_py.layout.tiling import ceil_div

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

ELEMENTS: Final = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
"""Element types of scaled formats."""
SCALES: Final = {**dict.fromkeys(POWER_RULES, ("ue8m0", "float32")), "amax": ("float32",), "nvfp4": ("ue4m3",)}
"""Types of scales of each rule, default first. Powers of two may be stored as float32, as DeepGEMM does."""
_OF_ORDER: Final = {"float32": "fp8((1, 128)", "ue8m0": "fp8((1, 128), rule='rceil'"}
"""Type of scales -> the call of a builder that makes them, without its last argument."""


@dataclass(frozen=True, slots=True)
class Format:
    """The storage format of a logical (M, K) tensor.

    Attributes:
        element: the type of the elements, by its PTX name. block: (rows, columns) of elements that share a scale; None:
            all rows, or all columns, of the tensor.
        scale_rule: floor, ceil, even, rceil, amax or nvfp4. scale: the type of the scales: ue8m0, ue4m3 or float32.
        packing: 'bytes', 'pairs' or 'dense'. axis: the axis that a matrix product sums along: -1 for the columns (K),
            0 for the rows (M). order: the order of the scales in memory. padding: the data is padded with zeros to
            multiples of these (rows, columns). tensor_scale: whether a float32 scale of the whole tensor is stored too.
        transposed: the data is stored as (K, M). like: the library whose arithmetic the rule follows.

    >>> mxfp8().scale_size(300, 1000), mxfp8().data_size(300, 1000)
    (12288, 307200)
    >>> print(mxfp8().scale_layout(256, 256))
    (((_32,_4),2),((_32,_4),2)):(((_16,_4),1024),((_0,_1),_512))
    """

    element: str
    block: tuple[int | None, int | None]
    scale_rule: str
    scale: str
    packing: str
    axis: int
    order: ScaleOrder
    padding: tuple[int, int] = (1, 1)
    tensor_scale: bool = False
    transposed: bool = False
    like: str = "torchao"
    builder: str = "Format"

    def __post_init__(self) -> None:
        for name in ("element", "scale_rule", "scale", "packing", "like", "builder"):
            expect(getattr(self, name), str, name)
        element = number(self.element)
        expect_choice(element.name, ELEMENTS, "element")
        expect_packing(self.packing, element)
        expect_choice(self.scale_rule, RULES, "rule")
        if self.scale not in SCALES[self.scale_rule]:
            allowed = " or ".join(SCALES[self.scale_rule])
            raise InvalidValueError(
                f"scales of type {self.scale} don't fit rule {self.scale_rule!r}; must be {allowed}"
            )
        if self.scale_rule == "nvfp4" and element.name != "e2m1":
            raise InvalidValueError(f"element {element.name} doesn't fit rule 'nvfp4'; must be e2m1")
        if type(self.axis) is not int or self.axis not in (0, -1):
            raise InvalidValueError(f"axis = {given(self.axis)}; must be -1 (columns, K) or 0 (rows, M)")
        expect_choice(self.like, variants(self.scale_rule), "like")
        for name in ("tensor_scale", "transposed"):
            expect(getattr(self, name), bool, name)
        object.__setattr__(self, "block", _block(self.block))
        pads = tuple(expect_integer(p, "padding", 1, unit="elements") for p in expect(self.padding, tuple, "padding"))
        if len(pads) != 2:
            raise InvalidValueError(f"padding = {given(pads)}; must be (rows, columns)")
        expect(self.order, ScaleOrder, "order")
        row = self.order.row
        if row is not None and row.scale not in ("", self.scale):
            raise InvalidValueError(
                f"scales of type {self.scale} don't fit the order {row.name}; must be {row.scale}",
                {"source": row.source},
                f"{_OF_ORDER[row.scale]}, scales={row.name!r})",
            ).of_rule("scale_type")

    @property
    def dtype(self) -> DType:
        """The element type of the data.

        >>> mxfp8().dtype, nvfp4().dtype
        (DType('float8_e4m3fn'), DType('float4_e2m1fn'))
        """
        return self.number.dtype

    @property
    def scale_dtype(self) -> DType:
        """The element type that stores a scale.

        >>> mxfp8().scale_dtype, nvfp4().scale_dtype, fp8(block="row").scale_dtype
        (DType('float8_e8m0fnu'), DType('float8_e4m3fn'), DType('float32'))
        """
        return number(self.scale).dtype

    @property
    def number(self) -> Number:
        """The numeric properties of the element type, such as its width in bits and its largest finite number."""
        return number(self.element)

    @property
    def scales(self) -> str:
        """The order of the scales, as a string."""
        return str(self.order)

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        if self.builder not in _BUILDERS:
            said = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
            return f"Format({said})"
        build: Any = _BUILDERS[self.builder]
        about = {"block": self.block, "rule": self.scale_rule} if self.builder == "fp8" else {"axis": self.axis}
        usual = build(**about)
        told = []
        for name, field in _SPELLED[self.builder]:
            value = getattr(self, field)
            if value != getattr(usual, field) or (name in about and value != getattr(build(), field)):
                told.append(f"{name}={_spelled(self, field)}")
        return f"{self.builder}({', '.join(told)})"

    def explain(self) -> str:
        """Describe the stored arrays and their layouts; `explain(format)` returns this description.

        >>> print(mxfp8().explain().splitlines()[1])
          elements : e4m3, 8 bits, bytes
        """
        rows, columns = (name if side is None else side for name, side in zip("MK", self.block, strict=True))
        summed = "M" if self.axis == 0 else "K"
        tile = self.order.tile
        lines = {
            "elements": f"{self.element}, {self.number.bits} bits, {self.packing}",
            "blocks": f"{rows} x {columns} elements share a scale; a product sums along {summed}",
            "scales": f"{self.scale}, rule {self.scale_rule}, as {self.like}",
            "order": f"{self.order}, padded to {tile[0]} x {tile[1]} scales",
        }
        if self.order.row is not None:
            lines["index"] = self.order.row.formula
            lines["source"] = self.order.row.source
        if self.order.is_layout and self.order.given_layout is None:
            lines["256 x 512"] = f"{self.scale_layout(256, 512)}"
        if self.tensor_scale:
            lines["tensor"] = "a float32 scale for the whole tensor: number = element x scale x tensor scale"
        return "\n".join([repr(self), *(f"  {name:<9}: {text}" for name, text in lines.items())])

    def with_(self, **changes: Any) -> Format:
        """Return a copy of the format with other values of `scales` (an order), `axis`, `transposed`, `padding`,
        `packing` or `rule`.

        >>> mxfp8().with_(scales="linear")
        mxfp8(scales='linear')
        """
        if "scales" in changes:
            changes["order"] = scale_order(changes.pop("scales"))
        if "rule" in changes:
            changes["scale_rule"] = changes.pop("rule")
        known = {f for _, f in _SPELLED[self.builder]}
        for name in changes:
            if name not in known:
                raise InvalidValueError(f"{self.builder} has no option {name!r}", {"known": ", ".join(sorted(known))})
        return replace(self, **changes)

    def blocks(self, M: Extent, K: Extent) -> tuple[Extent, Extent]:
        """The size (rows, columns) of a block in an (M, K) tensor."""
        M, K, _ = _extents(M, K, None)
        rows, columns = self.block
        return M if rows is None else rows, K if columns is None else columns

    def scale_layout(self, M: Extent, K: Extent, L: Extent = None) -> Layout:
        """The CuTe layout from (m, k), or (m, k, l), to the index of its scale; m and k are coordinates of an element.

        Args:
            M, K, L: ints (run-time sizes), `Int` (static) or sympy expressions. The layout's sizes include padding.
        Raises:
            LayoutError: the order is not a single layout (ragged); use `scale_index`.
        Source:
            the layout prints like CUTLASS 7107b05: Sm1xxBlockScaledConfig<V>::tile_atom_to_shape_SFA for 32_4_4,
            Sm1xxBlockwiseScaleConfig for linear and mn_major (C++ always appends the batch there).

        >>> print(nvfp4().scale_layout(128, 128, 2))
        (((_32,_4),1),((_16,_4),2),(_1,2)):(((_16,_4),1024),((_0,_1),_512),(_0,1024))
        """
        grid, swapped = _grid_of(self, *_extents(M, K, L))
        layout = self.order.layout(grid)
        if not swapped:
            return layout
        modes = [mode_of(layout, i) for i in (1, 0, *([] if L is None else [2]))]
        return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))

    def scale_index(self, M: int, K: int, L: int | None = None) -> Index:
        """The function (m, k, l) -> index of the scale, on integer arrays. It also works for orders that are not a
        single layout.

        >>> index = nvfp4(scales="ragged(cu_seqlens=(0, 100, 300))").scale_index(300, 64)
        >>> index([0, 99, 100], [0, 0, 16]).tolist()
        [0, 60, 513]
        """
        grid, swapped = _grid_of(self, *_numbers(M, K, L))
        found = self.order.index(grid)
        if not swapped:
            return found

        def turned(m: Any, k: Any, batch: Any = 0) -> NDArray[np.int64]:
            return found(k, m, batch)

        return turned

    def scale_size(self, M: Extent, K: Extent, L: Extent = None) -> Extent:
        """The number of scales to allocate, including the padding of their order.

        >>> mxfp8(scales="8x4").scale_size(300, 1000)
        9728
        """
        return self.order.count(_grid_of(self, *_extents(M, K, L))[0])

    def data_shape(self, M: int, K: int) -> tuple[int, int]:
        """The shape (rows, columns) of the stored elements, with padding; it is transposed if the format is."""
        M, K, _ = _numbers(M, K)
        rows, columns = (-(-n // p) * p for n, p in zip((M, K), self.padding, strict=True))
        return (columns, rows) if self.transposed else (rows, columns)

    def data_layout(self, M: Extent, K: Extent, L: Extent = None) -> Layout:
        """The CuTe layout from (m, k) to the index of the element: row-major over the padded data.

        >>> print(mxfp8().data_layout(300, 1000))
        (300,1024):(1024,_1)
        """
        M, K, L = _extents(M, K, L)
        padded: list[Any] = [n if p == 1 else ceil_div(n, p) for n, p in zip((M, K), self.padding, strict=True)]
        rows, columns = (n * p for n, p in zip(padded, self.padding, strict=True))
        strides = (Int(1), rows) if self.transposed else (columns, Int(1))
        if L is None:
            return Layout((rows, columns), strides)
        return Layout((rows, columns, L), (*strides, rows * columns))

    def data_size(self, M: int, K: int, L: int | None = None) -> int:
        """The size of the data in bytes, with padding.

        >>> nvfp4().data_size(128, 40), mxfp6(packing="dense").data_size(128, 32)
        (3072, 3072)
        """
        M, K, L = _numbers(M, K, L)
        rows, columns = self.data_shape(M, K)
        return rows * packed_width(columns, self.packing, self.number) * (1 if L is None else L)


def _grid_of(form: Format, M: Extent, K: Extent, L: Extent = None) -> tuple[Grid, bool]:
    """The grid of scales that the order arranges, and whether its rows are the columns of the tensor."""
    rows, columns = form.blocks(M, K)
    swapped = form.axis == 0 if form.order.each_row else form.transposed
    if form.order.given_layout is not None:
        swapped = False
    if swapped:
        return Grid(K, M, columns, rows, L), True
    return Grid(M, K, rows, columns, L), False


def _extents(M: Extent, K: Extent, L: Extent) -> tuple[Extent, Extent, Extent]:
    for name, extent in (("M", M), ("K", K), ("L", L)):
        if (extent is None and name == "L") or is_symbolic(extent):
            continue
        if not is_integer(extent):
            raise InvalidTypeError(f"{name} must be a size (an int, an Int or a sympy expression), got {given(extent)}")
        expect_integer(extent, name, 1)
    return M, K, L


def _numbers(M: Any, K: Any, L: Any = None) -> tuple[int, int, int | None]:
    return expect_integer(M, "M", 1), expect_integer(K, "K", 1), None if L is None else expect_integer(L, "L", 1)


def _mx(builder: str, element: str, allowed: tuple[str, ...], axis: int, rule: str, scales: Any, **more: Any) -> Format:
    row = number(element)
    expect_choice(row.name, allowed, "element")
    expect_choice(expect(rule, str, "rule"), POWER_RULES, "rule")
    axis = _axis(axis)
    packing = more.pop("packing", None)
    packing = "bytes" if packing is None else packing
    more = _pads(axis, 32, more)
    order = scale_order(scales)
    block = _block_of(axis, 32)[0]
    return Format(row.name, block, rule, "ue8m0", packing, axis, order, builder=builder, **more)


def _axis(axis: int) -> int:
    number_of = expect_integer(axis, "axis", -2, 1)
    return {1: -1, -2: 0}.get(number_of, number_of)


def _block_of(axis: int, width: int) -> tuple[tuple[int, int]]:
    return ((1, width) if axis == -1 else (width, 1),)


def _pads(axis: int, width: int, more: dict[str, Any]) -> dict[str, Any]:
    if more.get("padding") is None:
        more["padding"] = (1, width) if axis == -1 else (width, 1)
    return more


def mxfp8(
    axis: int = -1,
    rule: str = "rceil",
    scales: str | Layout | ScaleOrder = "32_4_4",
    element: str = "e4m3",
    *,
    transposed: bool = False,
    padding: tuple[int, int] | None = None,
) -> Format:
    """MXFP8: e4m3 or e5m2 elements, with one ue8m0 scale for 32 elements along `axis`.

    Args:
        axis: -1: blocks run along a row (32 columns share a scale); 0: blocks run along a column. rule: floor, ceil,
            even or rceil.
        scales: an order of scales by name, or a Layout. element: 'e4m3' or 'e5m2'.
        transposed: store the data as (K, M). padding: the data is padded to multiples of these (rows, columns);
            default: whole blocks.
    Source:
        OCP Microscaling Formats 1.0; arXiv 2506.08027 (rceil).

    >>> mxfp8(axis=0, rule="floor").block
    (32, 1)
    """
    return _mx("mxfp8", element, ("e4m3", "e5m2"), axis, rule, scales, transposed=transposed, padding=padding)


def mxfp6(
    axis: int = -1,
    rule: str = "rceil",
    scales: str | Layout | ScaleOrder = "32_4_4",
    element: str = "e2m3",
    *,
    packing: str = "bytes",
    transposed: bool = False,
    padding: tuple[int, int] | None = None,
) -> Format:
    """MXFP6: e2m3 or e3m2 elements, with one ue8m0 scale for 32 elements.

    packing: 'bytes' stores one element per byte, as torchao does; 'dense' stores 4 elements in 3 bytes, as tensor maps
    need.

    >>> mxfp6(element="e3m2", packing="dense")
    mxfp6(element='e3m2', packing='dense')
    """
    more = {"packing": packing, "transposed": transposed, "padding": padding}
    return _mx("mxfp6", element, ("e2m3", "e3m2"), axis, rule, scales, **more)


def mxfp4(
    axis: int = -1,
    rule: str = "rceil",
    scales: str | Layout | ScaleOrder = "32_4_4",
    *,
    packing: str = "pairs",
    transposed: bool = False,
    padding: tuple[int, int] | None = None,
) -> Format:
    """MXFP4: e2m1 elements, with one ue8m0 scale for 32 elements. A byte has two elements; the element of the even
    column is in the low half.

    >>> mxfp4().packing, mxfp4().data_size(128, 64)
    ('pairs', 4096)
    """
    more = {"packing": packing, "transposed": transposed, "padding": padding}
    return _mx("mxfp4", "e2m1", ("e2m1",), axis, rule, scales, **more)


def nvfp4(
    axis: int = -1,
    scales: str | Layout | ScaleOrder = "32_4_4",
    tensor_scale: bool = True,
    like: str = "torchao",
    *,
    block: tuple[int, int] | None = None,
    packing: str = "pairs",
    transposed: bool = False,
    padding: tuple[int, int] | None = None,
) -> Format:
    """NVFP4: e2m1 elements, with one e4m3 scale for 16 elements, and one float32 scale for the whole tensor.

    Args:
        tensor_scale: whether there is a scale for the whole tensor; can be False only with `like='torchao'`.
        like: 'torchao', 'te' (TransformerEngine) or 'flashinfer': the library whose arithmetic is used; `formats.LIKE`
            describes each.
        block: default 16 elements along `axis`; (16, 16) for weights.

    >>> nvfp4(like="te")
    nvfp4(like='te')
    """
    axis = _axis(axis)
    expect(tensor_scale, bool, "tensor_scale")
    expect_choice(expect(like, str, "like"), variants("nvfp4"), "like")
    if not tensor_scale and like != "torchao":
        raise InvalidValueError(f"tensor_scale=False with like={like!r}; only 'torchao' allows it")
    usual = _block_of(axis, 16)[0]
    more = _pads(axis, 16, {"transposed": transposed, "padding": padding})
    chosen = usual if block is None else _block(block)
    if chosen not in (usual, (16, 16)):
        raise InvalidValueError(f"block = {given(chosen)}; must be {usual} or (16, 16)")
    order = scale_order(scales)
    return Format(
        "e2m1",
        chosen,
        "nvfp4",
        "ue4m3",
        packing,
        axis,
        order,
        tensor_scale=tensor_scale,
        like=like,
        builder="nvfp4",
        **more,
    )


_FP8_BLOCKS: Final = {"row": (1, None), "column": (None, 1), "tensor": (None, None)}


def _block(block: Any) -> tuple[int | None, int | None]:
    if isinstance(block, str):
        expect_choice(block, tuple(_FP8_BLOCKS), "block")
        return _FP8_BLOCKS[block]
    parts = expect(block, tuple, "block")
    if len(parts) != 2:
        raise InvalidValueError(f"block = {given(block)}; must be (rows, columns)")
    rows, columns = (None if p is None else expect_integer(p, "a side of the block", 1, unit="elements") for p in parts)
    return rows, columns


def fp8(
    block: str | tuple[int | None, int | None] = "row",
    rule: str = "amax",
    scales: str | Layout | ScaleOrder = "linear",
    element: str = "e4m3",
    like: str | None = None,
    *,
    scale_dtype: DTypeLike | None = None,
    axis: int | None = None,
    transposed: bool = False,
    padding: tuple[int, int] | None = None,
) -> Format:
    """fp8 elements with one scale per block: a float32, the block's largest magnitude divided by the largest number of
    the element type; or a power of two.

    Args:
        block: 'row', 'column', 'tensor', or (rows, columns): (1, 128), (128, 128), (128, 1).
        rule: 'amax'; or floor, ceil, even, rceil. like: for 'amax', 'cute', 'torchao' or 'deepgemm'; see
            `formats.LIKE`.
        scale_dtype: for rules that give a power of two, ue8m0 (the default) or float32.
        axis: the axis that a matrix product sums along; default: the longer axis of the block.

    >>> fp8((128, 128)).scale_size(300, 1000), fp8("tensor").scale_size(300, 1000)
    (24, 1)
    """
    sides = _block(block)
    expect_choice(number(element).name, ("e4m3", "e5m2"), "element")
    expect_choice(expect(rule, str, "rule"), (*POWER_RULES, "amax"), "rule")
    chosen = SCALES[rule][0] if scale_dtype is None else number(scale_dtype).name
    wanted = "cute" if rule == "amax" else "torchao"
    if axis is None:
        rows, columns = (1 << 62 if side is None else side for side in sides)
        axis = 0 if rows > columns else -1
    return Format(
        number(element).name,
        sides,
        rule,
        chosen,
        "bytes",
        _axis(axis),
        scale_order(scales),
        (1, 1) if padding is None else padding,
        transposed=transposed,
        like=wanted if like is None else like,
        builder="fp8",
    )


_BUILDERS: Final = {"mxfp8": mxfp8, "mxfp6": mxfp6, "mxfp4": mxfp4, "nvfp4": nvfp4, "fp8": fp8}
_COMMON: Final = (("axis", "axis"), ("rule", "scale_rule"), ("scales", "order"))
_LAST: Final = (("transposed", "transposed"), ("padding", "padding"))
_SPELLED: Final = {
    "mxfp8": (*_COMMON, ("element", "element"), *_LAST),
    "mxfp6": (*_COMMON, ("element", "element"), ("packing", "packing"), *_LAST),
    "mxfp4": (*_COMMON, ("packing", "packing"), *_LAST),
    "nvfp4": (
        ("axis", "axis"),
        ("scales", "order"),
        ("tensor_scale", "tensor_scale"),
        ("like", "like"),
        ("block", "block"),
        ("packing", "packing"),
        *_LAST,
    ),
    "fp8": (
        ("block", "block"),
        ("rule", "scale_rule"),
        ("scales", "order"),
        ("element", "element"),
        ("like", "like"),
        ("scale_dtype", "scale"),
        ("axis", "axis"),
        *_LAST,
    ),
}
"""Builder -> (its argument, the field that it sets)."""


def _spelled(made: Format, field: str) -> str:
    value = getattr(made, field)
    if field == "order":
        return repr(str(value)) if value.given_layout is None else repr(value.given_layout)
    return repr(value)


def parse_format(text: str) -> Format:
    """Parse a format from a string: `nvfp4`, or a call of its builder as `repr` writes it.

    Raises:
        InvalidValueError: the format does not exist, or does not accept the arguments.

    >>> parse_format("nvfp4"), parse_format("fp8((128, 128), scales='mn_major')")
    (nvfp4(), fp8(block=(128, 128), scales='mn_major'))
    """
    expect(text, str, "the format")
    try:
        node = ast.parse(text.strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        build: Any = _BUILDERS[call.func.id]  # type: ignore[attr-defined]
        named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        made: Format = build(*map(ast.literal_eval, call.args), **named)
    except CuteError as problem:
        raise InvalidValueError(f"format {given(text)}: {problem.headline}", problem.facts, problem.hint) from None
    except (SyntaxError, KeyError, AttributeError, TypeError, ValueError, RecursionError, MemoryError):
        name = re.split(r"\W", text.strip(), maxsplit=1)[0]
        raise InvalidValueError(
            f"unknown format {given(text)}",
            known_names(name, tuple(_BUILDERS)),
            "a name, or a call such as nvfp4(scales='8x4')",
        ) from None
    return made


@functools.cache
def _parsed(text: str) -> Format:
    return parse_format(text)


def as_format(format: Format | str) -> Format:
    """Return a format unchanged, or the format that a string names. Parsed strings are cached.

    Raises:
        InvalidValueError: see `parse_format`.
    """
    return _parsed(format) if isinstance(format, str) else format
