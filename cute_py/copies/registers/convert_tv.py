"""Convert registers from one thread-value layout to another, by moves, shuffles or shared memory.

    source        (thread, value) -> element         the element in each value before the conversion
    destination   (thread, value) -> element         the element in each value after the conversion

The values of a thread are in consecutive 32-bit registers, the first value in the low bits: a register holds two 16-bit
values, and a 64-bit value uses two registers. The methods are tried in this order:

1. moves: if every thread already has its elements, and the moves are the same in all threads, registers are renamed
2. shuffles (`lanes`): if the conversion is linear over F2, and no element leaves its warp
3. shared memory (`shared`): in all other cases, and if it takes fewer cycles than shuffles

The result is PTX that reads the registers %s0, %s1, ... and writes %d0, %d1, ...; `run` executes it on emulated warps,
and `cuda` returns it as a device function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.argument_checks import expect_choice, expect_integer
from cute_py.copies.registers.lanes import LanePlan, Sides, plan_lanes
from cute_py.copies.registers.shared import WORD, TiledSide, best_sides, counted_side
from cute_py.copies.registers.steps import (
    LANES,
    ConversionCost,
    ConversionStep,
    ConversionText,
    in_order,
    shuffled,
    through_memory,
)
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, counted, given
from cute_py.layout import ComposedLayout, Int, Layout, coalesce, flatten, offsets, rank, size
from cute_py.layout.linear import LinearLayout, linear
from cute_py.machine.warps import Warps, as_array
from cute_py.targets import BLOCK_SHARED_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[Any]
else:
    from cute_py.optional_packages import numpy as np

MAX_THREADS: Final = 1024
MAX_REGISTERS: Final = 255
"""Maximum number of 32-bit registers of one thread."""
MAX_TILE: Final = BLOCK_SHARED_BYTES
"""Maximum bytes of shared memory of a block on sm_90 and sm_100."""
BY: Final = ("moves", "shuffles", "shared memory")
_NAMES: Final = re.compile(r"%%[a-z]+\d*\b(?!\.)")


@dataclass(frozen=True, slots=True)
class RegisterConversion:
    """Conversion of registers from one thread-value layout to another. `str` is `explain()`.

    >>> held, wanted = Layout(((2, 16), 2), ((1, 4), 2)), Layout(((2, 16), 2), ((2, 4), 1))
    >>> found = convert_layout_tv(held, wanted)
    >>> found.by, found.cost.shuffles, found.cost.selects
    ('shuffles', 1, 4)
    """

    source: Layout | ComposedLayout
    destination: Layout | ComposedLayout
    dtype: DType
    by: str
    """`moves`, `shuffles` or `shared memory`."""
    steps: tuple[ConversionStep, ...]
    cost: ConversionCost
    smem_layout: Layout | ComposedLayout | None = None
    """The layout from an element to its offset in the tile, if there is a tile."""

    @property
    def threads(self) -> int:
        """The number of participating threads."""
        return int(size(self.source[0]))

    @property
    def registers(self) -> tuple[int, int]:
        """The number of 32-bit registers per thread, for (source, destination)."""
        bits = self.dtype.bits
        return tuple(-(-int(size(x[1])) * bits // 32) for x in (self.source, self.destination))  # type: ignore[return-value]

    @property
    def ptx(self) -> str:
        """The PTX instructions, which read registers %s0, ... and write %d0, ...; %base is the shared-memory address of
        the tile."""
        return "\n".join(line for step in self.steps for line in step.ptx)

    def run(self, values: ArrayLike) -> Array:
        """Run the conversion on emulated warps.

        Args:
            values: array (thread, value) of the values that each thread holds, with the type `dtype`.
        Returns:
            an array (thread, value) with the values after the conversion.
        Raises:
            InvalidTypeError: the values have another shape or type.

        >>> import numpy
        >>> found = convert_layout_tv(Layout((32, 2), (2, 1)), Layout((32, 2), (1, 32)))
        >>> found.run(numpy.arange(64, dtype=numpy.float32).reshape(32, 2))[3].tolist()
        [3.0, 35.0]
        """
        held = as_array(values, "what threads hold")
        shape = (self.threads, int(size(self.source[1])))
        if held.shape != shape or held.dtype != self.dtype.numpy:
            raise InvalidTypeError(
                f"the source must have values of shape {shape} and type {self.dtype}, got {held.shape} of {held.dtype}"
            )
        warps = -(-self.threads // LANES)
        first, second = self.registers
        raw = np.zeros((warps * LANES, first * WORD), np.uint8)
        given_bytes = np.ascontiguousarray(held).view(np.uint8).reshape(self.threads, -1)
        raw[: self.threads, : given_bytes.shape[1]] = given_bytes
        machine = Warps(warps, shared=self.cost.bytes)
        machine.write("%s", raw.view(np.uint32))
        machine.write("%base", np.zeros(warps * LANES, np.uint32))
        machine.run(self.ptx.replace("%base", "%base0"))
        found = np.ascontiguousarray(machine.read("%d", second)[: self.threads]).view(np.uint8)
        count = int(size(self.destination[1]))
        found = np.ascontiguousarray(found[:, : count * self.dtype.bits // 8])
        result: Array = found.view(self.dtype.numpy).reshape(self.threads, count)
        return result

    def cuda(self, name: str = "convert") -> str:
        """Return the conversion as a CUDA C++ device function that takes and returns registers.

        Args:
            name: the name of the function. Its third argument is the shared-memory address of a tile of `cost.bytes`
                bytes, aligned to 1024; a conversion without a tile ignores it.
        """
        first, second = self.registers
        body = "\\n\\t".join(line.replace("%", "%%") for step in self.steps for line in step.ptx)
        operands = {f"%%d{n}": f"%{n}" for n in range(second)}
        operands |= {f"%%s{n}": f"%{second + n}" for n in range(first)} | {"%%base": f"%{second + first}"}
        used = sorted(set(_NAMES.findall(body)) - set(operands))
        kinds = {"%%p": ".pred", "%%t": ".b32"}
        declared = "".join(f".reg {kinds[x[:3]]} {x[2:]}; " for x in used if x[:3] in kinds)
        text = _NAMES.sub(lambda m: operands.get(m[0], m[0][2:] if m[0][:3] in kinds else m[0]), body)
        outs = ", ".join(f'"=&r"(destination[{n}])' for n in range(second))
        ins = ", ".join([*(f'"r"(source[{n}])' for n in range(first)), '"r"(tile)'])
        lines = "\n".join(f'      "{line}\\n\\t"' for line in text.split("\\n\\t") if line)
        return (
            f"// {self.source} -> {self.destination} of {self.dtype}: {self.cost}\n"
            f"__device__ __forceinline__ void {name}(const unsigned (&source)[{first}],"
            f" unsigned (&destination)[{second}], unsigned tile) {{\n  asm volatile(\n"
            f'      "{{ {declared}\\n\\t"\n{lines}\n      "}}"\n'
            f'      : {outs}\n      : {ins}\n      : "memory");\n}}\n'
        )

    def explain(self) -> str:
        """List the steps of the conversion and their cost."""
        head = [
            f"{self.dtype} in registers of {counted(self.threads, 'thread')}, by {self.by}",
            f"  from  {self.source}",
            f"  to    {self.destination}",
            f"  cost  {self.cost}",
        ]
        if self.smem_layout is not None:
            head.append(f"  tile  {self.smem_layout}")
        return "\n".join([*head, *(f"  {n}. {step}" for n, step in enumerate(self.steps, 1))])

    def __str__(self) -> str:
        return self.explain()


# ---- planning -------------------------------------------------------------------------------------------------------


def convert_layout_tv(
    source: Layout | ComposedLayout,
    destination: Layout | ComposedLayout,
    dtype: DTypeLike = "float32",
    *,
    by: str | None = None,
) -> RegisterConversion:
    """Convert registers from one thread-value layout to another.

    Args:
        source, destination: layouts (thread, value) -> index of an element, with the same number of threads; the source
            must contain every element of the destination.
        dtype: element type of 8, 16, 32 or 64 bits.
        by: `moves`, `shuffles` or `shared memory`; default `moves` if they suffice, otherwise the method with fewer
            cycles.
    Returns:
        the conversion with its steps, cost and PTX.
    Raises:
        InvalidValueError: the numbers of threads differ, the source lacks an element, the type has another width, a
            thread has too few registers, or the tile does not fit in shared memory; with `by`, the method can't do the
            conversion.
        InvalidTypeError: an argument is not a layout of (thread, value).

    >>> from cute_py.atom import mma_atom
    >>> print(convert_layout_tv(mma_atom("SM80_16x8x16_F32F16F16F32_TN").layoutC_TV, Layout((32, 4), (4, 1)), "half"))
    float16 in registers of 32 threads, by shared memory
      from  ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
      to    (32,4):(4,1)
      cost  18 moves, 1 store, 1 load, 4 wavefronts, 256 bytes, 13 cycles
      tile  Sw<1,3,3> o _0 o _128:_1
      1. store   1 x stmatrix.x2.trans, 8 bytes per thread; 2 wavefronts
      2. wait    for the warp
      3. load    1 x ld.shared, 8 bytes per thread; 2 wavefronts
    """
    kind = as_dtype(dtype)
    if kind.bits not in (8, 16, 32, 64):
        raise InvalidValueError(f"an element has {kind.bits} bits; must have 8, 16, 32 or 64")
    by = None if by is None else expect_choice(by, BY, "how a conversion is made")
    first, second = _table(source, "source", kind), _table(destination, "destination", kind)
    if first.shape[0] != second.shape[0]:
        raise InvalidValueError(
            f"the source has {first.shape[0]} threads and the destination {second.shape[0]}; they must be equal"
        )
    _expect_elements(first, second)
    warps = -(-first.shape[0] // LANES)
    found: list[RegisterConversion] = []

    def made(way: str, text: ConversionText, tile: Layout | ComposedLayout | None = None, size_bytes: int = 0) -> None:
        cost = text.total(warps, size_bytes)
        found.append(RegisterConversion(source, destination, kind, way, tuple(text.steps), cost, tile))

    moved = _moves(first, second) if by in (None, "moves") else None
    if moved is not None:
        made("moves", in_order(moved, kind.bits))
        return found[0]
    if by == "moves":
        raise InvalidValueError(
            "register moves are not enough: elements change threads, or the threads move their values differently"
        )
    views = _view(source), _view(destination)
    lanes = None
    if by in (None, "shuffles") and views[0] is not None and views[1] is not None:
        lanes = _lanes(views[0], views[1], kind.bits, first.shape[0])
    if lanes is not None:
        made("shuffles", shuffled(lanes, min(kind.bits, 32), second.shape[1] * max(1, kind.bits // 32)))
    if by == "shuffles" and not found:
        raise InvalidValueError(
            "shuffles are not enough: elements change warps, elements are replicated, or the "
            "layouts are not linear over F2"
        )
    size_bytes = (int(first.max()) + 1) * kind.bits // 8
    if by == "shared memory" or (by is None and (not found or (lanes and lanes.shuffles and size_bytes <= MAX_TILE))):
        if size_bytes > MAX_TILE:
            raise InvalidValueError(
                f"the tile has {size_bytes} bytes; must have at most {MAX_TILE}, the shared memory of a block"
            )
        made("shared memory", *_memory(source, destination, kind, first, second, views), size_bytes)
    return min(found, key=lambda x: x.cost.cycles)


def _table(layout: Layout | ComposedLayout, what: str, kind: DType) -> Array:
    """Return the array (thread, value) -> element of a layout, after checks of its sizes."""
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise InvalidTypeError(
            f"the {what} must be a layout of (thread, value), got {type(layout).__name__} {given(layout)}"
        )
    if int(rank(layout)) != 2:
        raise InvalidTypeError(
            f"the {what} has {int(rank(layout))} modes; must have two, thread and value", {what: layout}
        )
    threads = expect_integer(size(layout[0]), f"the number of threads of the {what}")
    values = expect_integer(size(layout[1]), f"the number of values of the {what}")
    if not 1 <= threads <= MAX_THREADS:
        raise InvalidValueError(f"the {what} has {threads} threads; must have 1 to {MAX_THREADS}")
    if not 1 <= values * kind.bits <= MAX_REGISTERS * 32:
        raise InvalidValueError(
            f"the {what} has {values} values of {kind.bits} bits per thread; must fit into {MAX_REGISTERS} registers"
        )
    listed = np.asarray(offsets(layout))
    if listed.size != threads * values:
        raise InvalidTypeError(f"the {what} maps to coordinates; must map to element numbers", {what: layout})
    table = listed.reshape(threads, values, order="F")
    if table.min() < 0:
        raise InvalidValueError(f"the {what} maps to element {int(table.min())}; must be at least 0")
    return table.astype(np.int64)


def _expect_elements(first: Array, second: Array) -> None:
    lost = np.setdiff1d(second, first)
    if lost.size:
        thread, value = np.argwhere(second == lost[0])[0]
        raise InvalidValueError(
            f"no thread of the source holds element {int(lost[0])}",
            {"needed by": f"thread {int(thread)}, value {int(value)}", "missing elements": int(lost.size)},
        )


def _moves(first: Array, second: Array) -> list[int] | None:
    """For each value of the destination, return the value of the source that it copies, if it is the same in every
    thread."""
    held = {int(element): value for value, element in reversed(list(enumerate(first[0].tolist())))}
    table = [held.get(element) for element in second[0].tolist()]
    if any(value is None for value in table):
        return None
    found = [value for value in table if value is not None]
    return found if (first[:, found] == second).all() else None


def _view(layout: Layout | ComposedLayout) -> LinearLayout | None:
    try:
        found = linear(layout)
    except LayoutError:
        return None
    return None if found.origin else found


def _columns(view: LinearLayout, threads: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    bits = threads.bit_length() - 1
    return view.columns[:bits], view.columns[bits:]


def _lanes(first: LinearLayout, second: LinearLayout, bits: int, threads: int) -> LanePlan | None:
    (a, b), (c, d) = _columns(first, threads), _columns(second, threads)
    if bits == 64:  # two words per value
        a, c = (tuple(2 * x for x in part) for part in (a, c))
        b, d = ((1, *(2 * x for x in part)) for part in (b, d))
    return plan_lanes(Sides(a, b, c, d), max(0, (32 // bits).bit_length() - 1))


def _memory(
    source: Layout | ComposedLayout,
    destination: Layout | ComposedLayout,
    kind: DType,
    first: Array,
    second: Array,
    views: tuple[LinearLayout | None, LinearLayout | None],
) -> tuple[ConversionText, Layout | ComposedLayout]:
    """Return the steps of a conversion through a tile in shared memory, and the layout of the tile."""
    threads, count = second.shape
    element = kind.bits // 8
    extent = int(first.max()) + 1
    tile: Layout | ComposedLayout = Layout(Int(extent))
    if views[0] is not None and views[1] is not None:
        sides = [tuple(tuple(c * element for c in part) for part in _columns(view, threads)) for view in views if view]
        bits = (extent * element - 1).bit_length()
        swizzle, store, load = best_sides(sides[0], sides[1], element, bits)  # type: ignore[arg-type]
        if swizzle.bits:
            tile = ComposedLayout(swizzle.upcast(element), Int(0), tile)
    else:
        store, load = (_counted(layout, table, element) for layout, table in ((source, first), (destination, second)))
    warp = all(set(second[w : w + LANES].flat) <= set(first[w : w + LANES].flat) for w in range(0, threads, LANES))
    return through_memory(store, load, kind.bits, threads, count, warp and threads % LANES == 0), tile


def _counted(layout: Layout | ComposedLayout, table: Array, element: int) -> TiledSide:
    if not isinstance(layout, Layout):
        raise InvalidValueError(
            "a swizzled layout that is not linear over F2 can't be addressed by modes", {"layout": layout}
        )
    flat = flatten(coalesce(layout[0]))
    shape, stride = (x if isinstance(x, tuple) else (x,) for x in (flat.shape, flat.stride))
    modes = tuple((int(s), int(d) * element) for s, d in zip(shape, stride, strict=True))
    return counted_side(modes, table[0] * element, element)
