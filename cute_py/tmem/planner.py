"""The planner: find the tcgen05.cp instructions that copy a region of shared memory to a region of tensor memory.

Both regions are rows of iters over the same elements. The planner sorts the two rows in the same order (lanes first,
then columns by descending stride), removes the repetitions that both sides have, and cuts each row into

    [ rows of one instruction | which instruction | elements of one row ]

where the middle parts of both sides are split at the same boundaries. The planner then checks the parts: the rows must
be in the lanes that the instruction writes and have the two strides that a matrix descriptor can express, and the
elements of a row must be contiguous on both sides. The iters of the middle part become loops.

If two instructions write the same cell of tensor memory, the layout has two elements in one location, so that no copy
can be correct: the later instruction would overwrite the first.

Source: semantics measured on apache-tvm 0.27.0 and on the version before it (`compat`); cute_py adds rules (one element
for each cell, shared-memory reach, complete bytes), to refuse copies with wrong results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_choice, expect_fields, expect_integer, record_text
from cute_py.atom.smem_descriptor import ADDRESS_MASK, START_MASK, UNIT_BYTES, SmemSwizzle
from cute_py.diagnostics import Diagnostic
from cute_py.errors import LayoutError
from cute_py.tmem import iters
from cute_py.tmem.cp_forms import FORMS, LANES, WARPX4, CpForm
from cute_py.tmem.cp_plan import LANE_SHIFT, MAX_INSTRUCTIONS, CpPlan, MiddleLoop, Refusal
from cute_py.tmem.iters import Iter, Row, canonicalize
from cute_py.tmem.swizzled_layout import ComposeLayout, Layout
from cute_py.tmem.tile_layout import Region, TileLayout, as_ranges

COMPATS: tuple[str, ...] = ("reference", "tvm-0.27")
"""`reference`: only 32x128b.warpx4, with ldo 16, as on the reference page.
`tvm-0.27`: every form, ldo 0 where it is not read."""

REFERENCE_LDO = 16
UNIT_BITS = 8 * UNIT_BYTES


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a copy: the layout and the shape of a buffer, and the region that is copied.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> request = demonstration_copy().request
    >>> Side(request.src.buffer.layout, request.src.buffer.shape, request.src.region).shape
    (32, 16)
    """

    layout: Layout
    shape: tuple[int, ...]
    region: Region

    __repr__ = record_text

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", as_ranges(self.region))
        expect_fields(self)


class _NoPlanError(Exception):
    """The rule that a copy breaks. It ends the planning of one form, and is always caught in this module."""

    def __init__(self, rule: str, text: str) -> None:
        self.found = Diagnostic(rule, text=text)


def _require(holds: bool, rule: str, text: str) -> None:
    if not holds:
        raise _NoPlanError(rule, text)


def _runs(row: Row, shape: Sequence[int], rule: str, why: str) -> tuple[Row, ...]:
    """Cut a row into runs of these sizes. If that is not possible, end the planning with the message `why`."""
    try:
        return iters.runs(row, shape)
    except LayoutError as error:
        raise _NoPlanError(rule, f"{why}: {error.headline}") from None


def _cut_regions(smem: Side, tmem: Side) -> tuple[TileLayout, TileLayout, ComposeLayout | None]:
    """Return the canonical layouts of the two regions, and the shared layout with its swizzle if it has one."""
    source, target = _cut("shared", smem), _cut("tensor-memory", tmem)
    if isinstance(target, ComposeLayout):
        raise _NoPlanError("axes", "a tensor-memory layout has no swizzle")
    swizzled = source if isinstance(source, ComposeLayout) else None
    tile = (source.tile if isinstance(source, ComposeLayout) else source).canonicalize()
    target = target.canonicalize()
    linear = set(tile.axes) <= {"m"} and not tile.replica
    _require(linear, "axes", f"a shared layout must be on the axis m, without replicas; got {tile}")
    in_tmem = set(target.axes) <= {"TLane", "TCol"}
    _require(in_tmem, "axes", f"a tensor-memory layout must be on TLane and TCol; got {target}")
    sizes = tile.size(), target.size()
    _require(
        sizes[0] == sizes[1],
        "size",
        (f"the shared region has {sizes[0]} elements and the tensor-memory region {sizes[1]}; they must be equal"),
    )
    return tile, target, swizzled


def _cut(name: str, side: Side) -> Layout:
    try:
        cut = side.layout.slice(side.shape, side.region)
    except LayoutError as error:
        raise _NoPlanError("region", f"the {name} region: {error.headline}") from None
    if cut is None:
        raise _NoPlanError("region", f"the {name} region is not a layout, because it takes uneven parts of a shard")
    return cut


def _in_one_order(source: TileLayout, target: TileLayout) -> tuple[Row, Row]:
    """Sort both rows in the same order, lanes first, then columns by descending stride; drop the iters of stride 0."""
    shards = target.shard
    perm = sorted(range(len(shards)), key=lambda at: (shards[at].axis != "TLane", -shards[at].stride))
    why = "the shared layout can't be split at the same boundaries as the tensor-memory layout"
    runs = _runs(source.shard, target.extents, "group", why)
    rows = (
        canonicalize(tuple(it for position in perm for it in runs[position])),
        canonicalize(tuple(shards[position] for position in perm)),
    )
    # If both sides repeat alike, one copy serves all repeats.
    repeats = [_repeats(row) for row in rows]
    text = f"elements repeat as {repeats[1]} in tensor memory and as {repeats[0]} in shared memory"
    _require(repeats[0] == repeats[1], "broadcast", text)
    kept = [tuple(it for it in row if it.stride) for row in rows]
    return kept[0], kept[1]


def _repeats(row: Row) -> list[int]:
    """Return the extents of the iters of stride 0, and the sizes of the ranges between them, in order."""
    sequence: list[int] = []
    for repeated, group in itertools.groupby(row, lambda it: it.stride == 0):
        extents = [it.extent for it in group]
        sequence += extents if repeated else [size for size in (math.prod(extents),) if size > 1]
    return sequence


_Parts = tuple[Row, Row, Row]
"""(rows, middle, elements) of one side."""


def _split_parts(form: CpForm, source: Row, target: Row, bits: int) -> tuple[_Parts, _Parts]:
    """Cut both sides into (rows, middle, elements), the shared side first. The middles have the same extents."""
    width = form.bits // bits
    atom = form.rows * width
    cut = []
    for side, row in (("tensor-memory", target), ("shared", source)):
        total = iters.iteration_count(row)
        text = f"the {side} region has {total} elements; must be a multiple of {form.rows} x {width}, one {form.name}"
        _require(total % atom == 0, "atom", text)
        why = f"the {side} region does not split into {form.rows} rows of {width} elements"
        cut.append(_runs(row, (form.rows, total // atom, width), "group", why))
    (t_rows, t_middle, t_columns), (s_rows, s_middle, s_columns) = cut
    t_middle, s_middle = _aligned(canonicalize(t_middle), canonicalize(s_middle))
    return (s_rows, s_middle, canonicalize(s_columns)), (canonicalize(t_rows), t_middle, canonicalize(t_columns))


def _aligned(target: Row, source: Row) -> tuple[Row, Row]:
    """Split both middles at every boundary of either, so that they have the same extents."""
    why = "the loops of the two sides do not nest"
    products = (itertools.accumulate((it.extent for it in row), lambda a, b: a * b) for row in (target, source))
    edges = sorted(set(itertools.chain(*products)))
    nested = all(outer % inner == 0 for inner, outer in itertools.pairwise(edges))
    _require(nested, "middle", f"{why}: boundaries {edges}")
    shape = [outer // inner for inner, outer in itertools.pairwise((1, *edges))]
    out = []
    for row in (target, source):
        runs = [canonicalize(run) for run in _runs(row, shape, "middle", why)]
        _require(all(len(run) == 1 for run in runs), "middle", f"{why}: {runs}")
        out.append(tuple(run[0] for run in runs))
    return out[0], out[1]


def plan_form(
    form: CpForm,
    smem: Side,
    tmem: Side,
    bits: int,
    *,
    compat: str = "reference",
    cta_group: int = 1,
    ldo: int | None = None,
) -> CpPlan | Refusal:
    """Return the plan of one copy with one form of the instruction, or the rule that it breaks.

    Args:
        bits: bits of one element.
        ldo: leading offset in 16-byte units; replaces the offset that the planner computes.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> request = demonstration_copy().request
    >>> smem, tmem = (Side(r.buffer.layout, r.buffer.shape, r.region) for r in (request.src, request.dst))
    >>> plan_form(WARPX4, smem, tmem, 8).count
    1
    """
    expect(form, CpForm, "a form of tcgen05.cp")
    expect(smem, Side, "the shared side")
    expect(tmem, Side, "the tensor-memory side")
    bits = expect_integer(bits, "bits of an element")
    compat = expect_choice(compat, COMPATS, "compat")
    cta_group = expect_integer(cta_group, "cta_group", 1, 2)
    if ldo is not None:
        ldo = expect_integer(ldo, "ldo")
    try:
        return _planned(form, smem, tmem, bits, compat, cta_group, ldo)
    except _NoPlanError as end:
        return end.found


def _planned(form: CpForm, smem: Side, tmem: Side, bits: int, compat: str, cta_group: int, ldo: int | None) -> CpPlan:
    known = bits in (4, 8, 16, 32)
    _require(known, "element", f"an element has {bits} bits; must have 4, 8, 16 or 32 (a column holds 32 bits)")
    source, target, swizzled = _cut_regions(smem, tmem)
    text = f"the tensor-memory layout has replicas {list(target.replica)}; must be {list(form.copies)}"
    _require(sorted(target.replica, key=repr) == sorted(form.copies, key=repr), "replica", text)
    source_row, target_row = _in_one_order(source, target)
    source_parts, target_parts = _split_parts(form, source_row, target_row, bits)
    _check_lanes_and_columns(form, target_parts, bits)
    leading, stride, swizzle, row_bytes = _descriptor(form, source_parts, swizzled, bits)
    offsets = target.offset.as_dict()
    column, lane = offsets.get("TCol", 0), offsets.get("TLane", 0)
    start = source.offset.as_dict().get("m", 0)
    _check_offsets(form, column, lane, target_row, start, swizzle, bits, compat)
    middle = _middle(source_parts[1], target_parts[1], bits)
    count = math.prod(loop.extent for loop in middle)
    text = f"the copy has {count} instructions; must have at most {MAX_INSTRUCTIONS}, which fill tensor memory"
    _require(count <= MAX_INSTRUCTIONS, "reach", text)
    if form.bits == 128 and compat == "reference":
        leading = REFERENCE_LDO  # A row of one unit has no second unit, so the field is not read.
    if ldo is not None:
        _require(0 <= ldo <= START_MASK, "field", f"ldo = {ldo} units of 16 bytes; must be within 0..{START_MASK}")
        text = f"ldo = {ldo}; must be {leading}, because the {form.name} instruction reads it"
        _require(ldo == leading or form.bits == 128, "ldo", text)
    uneven = f"first column {column * bits // 32} is not a multiple of 4; apache-tvm 0.27.0 refuses it"
    plan = CpPlan(
        form=form,
        bits=bits,
        ldo=leading if ldo is None else ldo,
        sdo=stride,
        swizzle=swizzle,
        row_bytes=row_bytes,
        middle=middle,
        smem_offset=start * bits // UNIT_BITS,
        taddr_offset=column * bits // 32 + (lane << LANE_SHIFT),
        cta_group=cta_group,
        compat=compat,
        notes=(uneven,) if column % (128 // bits) else (),
    )
    _check_reach(plan)
    return plan


def candidates(compat: str) -> tuple[CpForm, ...]:
    """Return the forms of tcgen05.cp; the planner of this version tries them in this order."""
    return (WARPX4,) if compat == "reference" else FORMS


def _check_lanes_and_columns(form: CpForm, parts: _Parts, bits: int) -> None:
    width = form.bits // bits
    rows, _, columns = parts
    text = f"{form.name} writes its rows to lanes {list(form.lanes)}; the layout has {list(rows)}"
    _require(rows == form.lanes, "lanes", text)
    text = f"one row must be {width} neighbouring elements on TCol; the layout has {list(columns)}"
    _require(columns == (Iter(width, 1, "TCol"),), "columns", text)


def _descriptor(
    form: CpForm, parts: _Parts, swizzled: ComposeLayout | None, bits: int
) -> tuple[int, int, SmemSwizzle, int]:
    """Return the leading and stride offsets in 16-byte units, the swizzle, and the bytes from row to row."""
    per_group = min(form.rows, 8)
    shape = (form.rows // per_group, per_group)
    why = f"the rows do not form groups of {per_group}"
    groups, rows = (canonicalize(run) for run in _runs(parts[0], shape, "rows", why))
    text = (
        f"a descriptor has one stride between groups of 8 rows and one within a group; the rows are {[*groups, *rows]}"
    )
    _require(len(groups) == len(rows) == 1, "rows", text)
    stride_bits = groups[0].stride * bits if form.rows > per_group else 0
    row_bits = rows[0].stride * bits
    text = f"{stride_bits / 8:g} bytes between groups of 8 rows; must be a multiple of 16"
    _require(stride_bits % UNIT_BITS == 0, "stride", text)
    swizzles = {swizzle.row_bytes: swizzle for swizzle in list(SmemSwizzle)[:4]}
    row_bytes, bits_left = divmod(row_bits, 8)
    text = f"{row_bits / 8:g} bytes from row to row; must be 16, 32, 64 or 128"
    _require(not bits_left and row_bytes in swizzles, "row bytes", text)
    swizzle = swizzles[row_bytes]
    _check_swizzle(swizzled, swizzle, row_bytes, bits)
    leading = _leading(form, parts[2], swizzle, bits)
    for name, value in (("leading", leading), ("stride", stride_bits // UNIT_BITS)):
        text = f"{name} offset of {value} units of 16 bytes; must be within 0..{START_MASK}"
        _require(0 <= value <= START_MASK, "field", text)
    return leading, stride_bits // UNIT_BITS, swizzle, row_bytes


def _check_swizzle(swizzled: ComposeLayout | None, swizzle: SmemSwizzle, row_bytes: int, bits: int) -> None:
    has = swizzled.swizzle_len if swizzled else 0
    text = f"rows of {row_bytes} bytes need swizzle mode {int(swizzle)}; the shared layout has {has}"
    _require(has == swizzle, "swizzle mode", text)
    if swizzled is None:
        return
    unit = (128 // bits).bit_length() - 1
    text = (
        f"the hardware swizzles units of 16 bytes three bits apart (per_element {unit}, atom_len 3); "
        f"the shared layout has per_element {swizzled.per_element}, atom_len {swizzled.atom_len}"
    )
    _require((swizzled.per_element, swizzled.atom_len) == (unit, 3), "swizzle family", text)
    text = "the hardware does not support a mirrored swizzle; the shared layout has swizzle_inner=False"
    _require(not has or swizzled.swizzle_inner, "swizzle direction", text)


def _leading(form: CpForm, columns: Row, swizzle: SmemSwizzle, bits: int) -> int:
    """Return the leading offset: from the first 16-byte unit of a row to the second; 0 for rows of one unit."""
    unit = 128 // bits
    shape = (form.bits // 128, unit)
    units, elements = (
        canonicalize(run) for run in _runs(columns, shape, "unit", "one row is not made of units of 16 bytes")
    )
    text = f"16 bytes of a row must be {unit} neighbouring elements; the shared layout has {[*units, *elements]}"
    _require(elements == (Iter(unit, 1, "m"),) and len(units) == 1, "unit", text)
    if form.bits == 128:
        return 0
    step = units[0].stride * bits
    text = f"{step / 8:g} bytes between the two units of a row; must be a multiple of 16"
    _require(step % UNIT_BITS == 0, "unit", text)
    # A swizzled row is contiguous before the swizzle, so its second unit is the next one.
    next_one = swizzle is SmemSwizzle.NONE or step == UNIT_BITS
    _require(next_one, "unit", f"{step // 8} bytes between the two units of a swizzled row; must be 16")
    return step // UNIT_BITS


def _check_offsets(
    form: CpForm, column: int, lane: int, target: Row, start: int, swizzle: SmemSwizzle, bits: int, compat: str
) -> None:
    cell = 32 // bits * (1 if compat == "reference" else 4)
    text = f"TCol offset of {column} elements; must be a multiple of {cell} ({cell * bits} bits)"
    _require(column % cell == 0, "column offset", text)
    reaches = [(it.extent - 1) * it.stride for it in (*target, *form.copies) if it.axis == "TLane"]
    first = lane + sum(min(0, reach) for reach in reaches)
    last = lane + sum(max(0, reach) for reach in reaches)
    text = f"the copy writes lanes {first}..{last}; tensor memory has lanes 0..{LANES - 1}"
    _require(first >= 0 and last < LANES, "lane offset", text)
    text = f"the region starts at byte {start * bits / 8:g}; must be a multiple of {swizzle.period}"
    _require(start * bits % (8 * swizzle.period) == 0, "shared offset", text)


def _middle(sources: Row, targets: Row, bits: int) -> tuple[MiddleLoop, ...]:
    loops = []
    for target, source in zip(targets, sources, strict=True):
        if target.extent == 1:
            continue
        along, down = target.stride * bits, source.stride * bits
        step = target.stride << LANE_SHIFT
        if target.axis == "TCol":
            step, rest = divmod(along, 32)
            _require(rest == 0, "middle", f"{along} bits between instructions on TCol; must be a multiple of 32")
            text = f"the stride between instructions on TCol is {target.stride}; must be positive"
            _require(along >= 0, "middle", text)
        text = f"{down / 8:g} bytes between instructions in shared memory; must be a multiple of 16"
        _require(down % UNIT_BITS == 0, "middle", text)
        loops.append(MiddleLoop(target.extent, down // UNIT_BITS, step))
    return tuple(loops)


def _check_reach(plan: CpPlan) -> None:
    """Refuse a plan with addresses that do not exist, or with a cell that two instructions would write."""
    tiles = plan.tiles
    first = min(min(tile.smem_offset, tile.taddr_offset) for tile in tiles)
    _require(first >= 0, "reach", "the copy reaches before the start of a buffer")
    text = f"the copy reads up to shared byte {plan.smem_bytes - 1}; a descriptor reaches only byte {ADDRESS_MASK}"
    _require(plan.smem_bytes <= ADDRESS_MASK + 1, "reach", text)
    # Every instruction writes the same pattern of lanes, moved by less than the distance of its lanes, and the same
    # number of columns in each; so two of them overlap if their first lanes are equal and their columns overlap.
    seen: set[tuple[int, int]] = set()
    for tile in tiles:
        for column in range(tile.column, tile.column + plan.form.columns):
            if (tile.lane, column) in seen:
                text = f"two elements go to lane {tile.lane}, column {column}; each cell can hold only one"
                raise _NoPlanError("overlap", text)
            seen.add((tile.lane, column))
