"""The planner: which tcgen05.cp instructions move one region of shared memory to one region of tensor memory.

`atom_split` cuts both regions into the parts of one instruction; here they are read: the rows must lie in the lanes
that the instruction writes and at the two strides that a matrix descriptor has, the elements of a row must be
neighbours on both sides, and what is left are loops.

Source: semantics measured on apache-tvm 0.27.0 and on the version before it (`compat`); the rules beyond it (one
element for each cell, shared-memory reach, whole bytes) are ours, and refuse what would be copied wrongly.

Does a plan write a cell of tensor memory twice?

Two instructions that write the same cell would leave the one that comes later; the layout then has two elements in
one place, and no copy can be right.
"""

from __future__ import annotations

import math

from cute_py.argument_checks import expect, expect_choice, expect_integer
from cute_py.tmem import iters
from cute_py.tmem.atom_split import Parts, Side, cut_regions, in_one_order, split_parts
from cute_py.tmem.copy_plan import MAX_INSTRUCTIONS, CopyPlan, MiddleLoop, Refusal
from cute_py.tmem.cp_forms import FORMS, LANES, UNIT_BYTES, WARPX4, CpForm
from cute_py.tmem.iters import Iter, Row
from cute_py.tmem.matrix_descriptor import ADDRESS_MASK, START_MASK, SmemSwizzle
from cute_py.tmem.swizzled_layout import ComposeLayout


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


COMPATS: tuple[str, ...] = ("seed", "tvm-0.27")
"""`seed`: 32x128b.warpx4 alone, ldo 16, as on the reference page.
`tvm-0.27`: every form, ldo 0 where it is not read."""

SEED_LDO = 16
ROW_SWIZZLE = {16: SmemSwizzle.NONE, 32: SmemSwizzle.B32, 64: SmemSwizzle.B64, 128: SmemSwizzle.B128}


def plan_form(
    form: CpForm, smem: Side, tmem: Side, bits: int, *, compat: str = "seed", cta_group: int = 1, ldo: int | None = None
) -> CopyPlan | Refusal:
    """The plan of one copy with one form of the instruction, or the rule that it breaks.

    Args:
        bits: bits of one element.
        ldo: in place of the leading offset that the planner would write, in 16-byte units.
    """
    expect(form, CpForm, "a form of tcgen05.cp")
    expect(smem, Side, "the shared side")
    expect(tmem, Side, "the tensor-memory side")
    bits = expect_integer(bits, "bits of an element")
    expect_choice(compat, COMPATS, "compat")
    cta_group = expect_integer(cta_group, "cta_group", 1, 2)
    if ldo is not None:
        ldo = expect_integer(ldo, "ldo")
    if bits not in (4, 8, 16, 32):
        return Refusal("element", f"elements of {bits} bits; must be 4, 8, 16 or 32 (a column holds 32 bits)")
    cut = cut_regions(smem, tmem)
    if isinstance(cut, Refusal):
        return cut
    source, target, swizzled = cut
    if tuple(sorted(target.replica, key=repr)) != tuple(sorted(form.copies, key=repr)):
        return Refusal(
            "replica", f"the tensor-memory layout has replicas {list(target.replica)}; must be {list(form.copies)}"
        )
    rows = in_one_order(source, target)
    if isinstance(rows, Refusal):
        return rows
    source_row, target_row = rows
    parts = split_parts(form, source_row, target_row, bits)
    if isinstance(parts, Refusal):
        return parts
    refusal = _lanes_and_columns(form, parts, bits)
    if refusal:
        return refusal
    found = _descriptor(form, parts, swizzled, bits)
    if isinstance(found, Refusal):
        return found
    leading, stride, swizzle, row_bytes = found
    offsets = target.offset.as_dict()
    column, lane = offsets.get("TCol", 0), offsets.get("TLane", 0)
    refusal = _offsets(form, column, lane, target_row, source.offset.as_dict().get("m", 0), swizzle, bits, compat)
    if refusal:
        return refusal
    middle = _middle(parts, bits)
    if isinstance(middle, Refusal):
        return middle
    count = math.prod(loop.extent for loop in middle)
    if count > MAX_INSTRUCTIONS:
        return Refusal("reach", f"a copy of {count} instructions; tensor memory holds at most {MAX_INSTRUCTIONS}")
    if form.bits == 128 and compat == "seed":
        leading = SEED_LDO  # A row of one unit has no second one: the field is not read.
    if ldo is not None and not 0 <= ldo <= START_MASK:
        return Refusal("field", f"ldo = {ldo} units of 16 bytes; must be within 0..{START_MASK}")
    if ldo is not None and ldo != leading and form.bits > 128:
        return Refusal("ldo", f"ldo = {ldo}; must be {leading}, the {form.name} instruction reads it")
    notes = []
    if column % (128 // bits):
        notes.append(f"first column {column * bits // 32} is no multiple of 4; apache-tvm 0.27.0 refuses it")
    plan = CopyPlan(
        form=form,
        bits=bits,
        ldo=leading if ldo is None else ldo,
        sdo=stride,
        swizzle=swizzle,
        row_bytes=row_bytes,
        middle=middle,
        smem_offset=source.offset.as_dict().get("m", 0) * bits // 8 // UNIT_BYTES,
        taddr_offset=column * bits // 32 + (lane << 16),
        cta_group=cta_group,
        compat=compat,
        notes=tuple(notes),
    )
    return _reach(plan) or plan


def candidates(compat: str) -> tuple[CpForm, ...]:
    """The forms that a planner of this compatibility tries, in its order."""
    return (WARPX4,) if compat == "seed" else FORMS


def _lanes_and_columns(form: CpForm, parts: Parts, bits: int) -> Refusal | None:
    width = form.bits // bits
    rows, _, columns = parts.target
    if rows != form.lanes:
        return Refusal(
            "lanes", f"the rows of {form.name} are written to lanes {list(form.lanes)}; the layout has {list(rows)}"
        )
    if columns != (Iter(width, 1, "TCol"),):
        return Refusal("columns", f"one row is {width} neighbours on TCol; the layout has {list(columns)}")
    return None


def _descriptor(
    form: CpForm, parts: Parts, swizzled: ComposeLayout | None, bits: int
) -> tuple[int, int, SmemSwizzle, int] | Refusal:
    """(leading, stride) in 16-byte units, swizzle, bytes of a row."""
    per_group = min(form.rows, 8)
    grouped = iters.group(parts.source[0], (form.rows // per_group, per_group))
    if isinstance(grouped, str):
        return Refusal("rows", f"the rows do not form groups of {per_group}: {grouped}")
    groups, rows = (iters.canonicalize(run) for run in iters.split(*grouped))
    if len(groups) != 1 or len(rows) != 1:
        return Refusal(
            "rows", f"a descriptor has one stride between 8 rows and one within; the rows are {[*groups, *rows]}"
        )
    stride_bits = groups[0].stride * bits if form.rows > per_group else 0
    row_bits = rows[0].stride * bits
    if stride_bits % (8 * UNIT_BYTES):
        return Refusal("stride", f"{stride_bits / 8:g} bytes between groups of 8 rows; must be a multiple of 16")
    if row_bits % 8 or row_bits // 8 not in ROW_SWIZZLE:
        return Refusal("row bytes", f"{row_bits / 8:g} bytes from row to row; must be 16, 32, 64 or 128")
    row_bytes = row_bits // 8
    swizzle = ROW_SWIZZLE[row_bytes]
    refusal = _swizzle_fits(swizzled, swizzle, row_bytes, bits)
    if refusal:
        return refusal
    leading = _leading(form, parts.source[2], swizzle, bits)
    if isinstance(leading, Refusal):
        return leading
    for name, value in (("leading", leading), ("stride", stride_bits // (8 * UNIT_BYTES))):
        if not 0 <= value <= START_MASK:
            return Refusal("field", f"{name} offset of {value} units of 16 bytes; must be within 0..{START_MASK}")
    return leading, stride_bits // (8 * UNIT_BYTES), swizzle, row_bytes


def _swizzle_fits(swizzled: ComposeLayout | None, swizzle: SmemSwizzle, row_bytes: int, bits: int) -> Refusal | None:
    has = swizzled.swizzle_len if swizzled else 0
    if has != int(swizzle):
        return Refusal(
            "swizzle mode", f"rows of {row_bytes} bytes take swizzle mode {int(swizzle)}; the shared layout has {has}"
        )
    if swizzled is None:
        return None
    unit = (128 // bits).bit_length() - 1
    if swizzled.per_element != unit or swizzled.atom_len != 3:
        return Refusal(
            "swizzle family",
            f"the hardware swizzles units of 16 bytes three bits apart (per_element {unit}, atom_len 3); "
            f"the shared layout has per_element {swizzled.per_element}, atom_len {swizzled.atom_len}",
        )
    if has and not swizzled.swizzle_inner:
        return Refusal(
            "swizzle direction", "the hardware has no mirrored swizzle; the shared layout has swizzle_inner=False"
        )
    return None


def _leading(form: CpForm, columns: Row, swizzle: SmemSwizzle, bits: int) -> int | Refusal:
    unit = 128 // bits
    grouped = iters.group(columns, (form.bits // 128, unit))
    if isinstance(grouped, str):
        return Refusal("unit", f"one row is no whole units of 16 bytes: {grouped}")
    units, elements = (iters.canonicalize(run) for run in iters.split(*grouped))
    if elements != (Iter(unit, 1, "m"),) or len(units) != 1:
        return Refusal("unit", f"16 bytes of a row are {unit} neighbours; the shared layout has {[*units, *elements]}")
    if form.bits == 128:
        return 0
    step = units[0].stride * bits
    if step % (8 * UNIT_BYTES):
        return Refusal("unit", f"{step / 8:g} bytes between the two units of a row; must be a multiple of 16")
    if swizzle is not SmemSwizzle.NONE:
        if step != 8 * UNIT_BYTES:
            return Refusal("unit", f"{step // 8} bytes between the two units of a swizzled row; must be 16")
        return 1
    return step // (8 * UNIT_BYTES)


def _offsets(
    form: CpForm, column: int, lane: int, target: Row, start: int, swizzle: SmemSwizzle, bits: int, compat: str
) -> Refusal | None:
    cell = 32 // bits * (1 if compat == "seed" else 4)
    if column % cell:
        return Refusal(
            "column offset", f"TCol offset of {column} elements; must be a multiple of {cell} ({cell * bits} bits)"
        )
    lanes = [it for it in (*target, *form.copies) if it.axis == "TLane"]
    first = lane + sum(min(0, (it.extent - 1) * it.stride) for it in lanes)
    last = lane + sum(max(0, (it.extent - 1) * it.stride) for it in lanes)
    if first < 0 or last >= LANES:
        return Refusal("lane offset", f"the copy writes lanes {first}..{last}; tensor memory has lanes 0..{LANES - 1}")
    period = swizzle.period
    if start * bits % (8 * period):
        return Refusal(
            "shared offset", f"the region starts at byte {start * bits / 8:g}; must be a multiple of {period}"
        )
    return None


def _middle(parts: Parts, bits: int) -> tuple[MiddleLoop, ...] | Refusal:
    loops = []
    for target, source in zip(parts.target[1], parts.source[1], strict=True):
        if target.extent == 1:
            continue
        if target.axis == "TCol" and target.stride * bits % 32:
            return Refusal(
                "middle", f"{target.stride * bits} bits between instructions on TCol; must be a multiple of 32"
            )
        if target.axis == "TCol" and target.stride < 0:
            return Refusal("middle", f"a stride of {target.stride} on TCol between instructions; must be positive")
        if source.stride * bits % (8 * UNIT_BYTES):
            return Refusal(
                "middle",
                f"{source.stride * bits / 8:g} bytes between instructions in shared memory; must be a multiple of 16",
            )
        step = target.stride * bits // 32 if target.axis == "TCol" else target.stride << 16
        loops.append(MiddleLoop(target.extent, source.stride * bits // (8 * UNIT_BYTES), step))
    return tuple(loops)


def _reach(plan: CopyPlan) -> Refusal | None:
    """Addresses that do not exist, and cells that two instructions would write."""
    tiles = plan.tiles
    if min(tile.smem_offset for tile in tiles) < 0 or min(tile.taddr_offset for tile in tiles) < 0:
        return Refusal("reach", "the copy reaches before the start of a buffer")
    if plan.smem_bytes > ADDRESS_MASK + 1:
        return Refusal("reach", f"the copy reads up to shared byte {plan.smem_bytes - 1}; a descriptor reaches 262143")
    clash = overlapping(plan)
    if clash is not None:
        return Refusal("overlap", f"two elements go to lane {clash[0]}, column {clash[1]}; each cell takes one")
    return None
