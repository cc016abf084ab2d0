"""The planner: a plan copies what the layouts say, or the copy is refused; and where the edges are."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.tmem import (
    COLUMNS,
    FORMS,
    ComposeLayout,
    CpForm,
    CpPlan,
    Iter,
    Refusal,
    Side,
    TensorMemory,
    TileLayout,
    expected_tmem,
    mma_shared_layout,
    plan_form,
    run,
)
from cute_py.tmem.cp_forms import WARPX4
from tests.each import each_of
from tests.tmem.layouts import regions, tile_layouts

DTYPES = {4: "int4", 8: "uint8", 16: "bfloat16", 32: "float32"}
ROW_BYTES = (16, 32, 64, 128)


def lanes_columns(form: CpForm, *columns: Iter, offset: int = 0) -> TileLayout:
    return TileLayout([*form.lanes, *columns], form.copies, {"TCol": offset} if offset else None)


@st.composite
def shaped(draw: Any) -> tuple[CpForm, int, Side, Side]:
    """A form, an element width, and two sides that fit it, or nearly."""
    form, bits = draw(st.sampled_from(FORMS)), draw(st.sampled_from([4, 8, 16, 32]))
    width, swizzle = form.bits // bits, draw(st.integers(0, 3))
    atom = ROW_BYTES[swizzle] * 8 // bits
    count = draw(st.integers(1, 4)) * width
    total = -(-count // atom) * atom + atom * draw(st.integers(0, 1))
    rows = max(8, form.rows * draw(st.sampled_from([1, 2])))
    layout: Any = mma_shared_layout(DTYPES[bits], swizzle, (rows, total))
    first_row = draw(st.sampled_from([0, 0, 8, 4])) if rows >= form.rows + 8 else 0
    first = draw(st.sampled_from([0, 0, width, atom]))
    count = min(count, total - first) or width
    first = min(first, total - count)
    columns = [Iter(count, 1, "TCol")]
    if count % width == 0 and count > width and draw(st.booleans()):
        step = draw(st.sampled_from([width, 2 * width, width + 32 // bits, max(width // 2, 1)]))
        columns = [Iter(count // width, step, "TCol"), Iter(width, 1, "TCol")]
    start = draw(st.sampled_from([0, 0, 4, 1, 8])) * 32 // bits
    spoil = draw(st.integers(0, 9))
    if spoil == 0 and isinstance(layout, ComposeLayout):
        layout = ComposeLayout(layout.per_element + 1, layout.swizzle_len, 3, layout.tile)
    if spoil == 1:
        layout = TileLayout([Iter(rows, total + draw(st.sampled_from([1, 8, 16, 32])), "m"), Iter(total, 1, "m")])
    target = lanes_columns(form, *columns, offset=start)
    if spoil == 2:
        target = TileLayout(target.shard, [Iter(4, 32, "TLane")], target.offset)
    if spoil == 3:
        target = TileLayout([Iter(1, 1, "TLane"), *target.shard[::-1]], form.copies, target.offset)
    smem = Side(layout, (rows, total), [(first_row, first_row + form.rows), (first, first + count)])
    return form, bits, smem, Side(target, (form.rows, count), [(0, form.rows), (0, count)])


def check(form: CpForm, bits: int, smem: Side, tmem: Side, compat: str) -> str:
    """Plan, emulate, compare with the element map; what happened, in one word."""
    plan = plan_form(form, smem, tmem, bits, compat=compat)
    if isinstance(plan, Refusal):
        assert plan.rule
        assert plan.text
        return "refused"
    if plan.capacity_violations():
        return "capacity"
    memory = TensorMemory()
    memory.alloc(COLUMNS)
    run(plan, memory, 0, numpy.zeros(1 << 18, numpy.uint8), 3072)
    assert (memory.sources == expected_tmem(smem, tmem, bits, 3072)).all()
    return "copied"


@given(shaped(), st.sampled_from(["reference", "tvm-0.27"]))
def test_a_plan_copies_what_the_layouts_say(case: tuple[CpForm, int, Side, Side], compat: str) -> None:
    check(*case, compat)


@given(st.data())
def test_random_layouts_and_regions(data: st.DataObject) -> None:
    """Layouts that mostly do not fit: a refusal with its rule, or a right copy."""
    source, target = data.draw(tile_layouts(("m",))), data.draw(tile_layouts(("TLane", "TCol")))
    smem = Side(source, (source.size(),), data.draw(regions((source.size(),))))
    tmem = Side(target, (target.size(),), data.draw(regions((target.size(),))))
    for form in FORMS:
        check(form, 8, smem, tmem, "tvm-0.27")


def demo(**changes: Any) -> tuple[Side, Side]:
    smem = Side(TileLayout([Iter(32, 16, "m"), Iter(16, 1, "m")]), (32, 16), [(0, 32), (0, 16)])
    target = TileLayout(
        changes.get("shard", [Iter(32, 1, "TLane"), Iter(16, 1, "TCol")]), WARPX4.copies, changes.get("offset")
    )
    return Side(changes.get("smem", smem.layout), (32, 16), smem.region), Side(target, (32, 16), smem.region)


def test_the_law_sees_copies_and_refusals() -> None:
    good = demo()
    assert check(WARPX4, 8, *good, "reference") == "copied"
    bad = demo(smem=TileLayout([Iter(32, 24, "m"), Iter(16, 1, "m")]))
    assert check(WARPX4, 8, *bad, "reference") == "refused"


def refused(bits: int = 8, compat: str = "reference", **changes: Any) -> str:
    found = plan_form(WARPX4, *demo(**changes), bits, compat=compat)
    return found.rule if isinstance(found, Refusal) else "planned"


def padded(row: int) -> TileLayout:
    return TileLayout([Iter(32, row, "m"), Iter(16, 1, "m")])


@each_of(
    ("changes", "rule"),
    [
        ({}, "planned"),
        ({"bits": 64}, "element"),
        ({"bits": 6}, "element"),
        ({"smem": padded(24)}, "row bytes"),
        ({"smem": padded(32)}, "swizzle mode"),
        ({"smem": padded(16) + 16}, "planned"),
        ({"smem": padded(16) + 8}, "shared offset"),
        ({"smem": padded(16) + ((1 << 18) - 512)}, "planned"),
        ({"smem": padded(16) + ((1 << 18) - 496)}, "reach"),
        ({"offset": {"TCol": 4}}, "planned"),
        ({"offset": {"TCol": 4}, "compat": "tvm-0.27"}, "column offset"),
        ({"offset": {"TCol": 16}, "compat": "tvm-0.27"}, "planned"),
        ({"offset": {"TCol": 2}}, "column offset"),
        ({"offset": {"TLane": 1}}, "lane offset"),
        ({"shard": [Iter(32, 2, "TLane"), Iter(16, 1, "TCol")]}, "lanes"),
        ({"shard": [Iter(32, 1, "TLane"), Iter(16, 2, "TCol")]}, "columns"),
        ({"shard": [Iter(32, 1, "TLane"), Iter(16, 1, "m")]}, "axes"),
    ],
)
def test_edges(changes: dict[str, Any], rule: str) -> None:
    assert refused(**changes) == rule


def test_a_region_that_leaves_its_buffer_is_a_refusal() -> None:
    smem, tmem = demo()
    for region in ([(0, 33), (0, 16)], [(0, 32)], [(4, 4), (0, 16)]):
        found = plan_form(WARPX4, Side(smem.layout, (32, 16), region), tmem, 8)
        assert isinstance(found, Refusal)
        assert found.rule == "region"
    found = plan_form(WARPX4, Side(smem.layout, (16, 16), [(0, 16), (0, 16)]), tmem, 8)
    assert isinstance(found, Refusal)
    assert found.text.startswith("the shared region: the layout can't be grouped by the shape (16, 16)")


def test_rows_eight_apart_at_whole_units() -> None:
    rows = [Iter(4, 200, "m"), Iter(8, 16, "m"), Iter(16, 1, "m")]
    assert refused(smem=TileLayout(rows)) == "stride"


def test_two_elements_in_one_cell_are_refused() -> None:
    smem = Side(
        TileLayout([Iter(2, 512, "m"), Iter(32, 16, "m"), Iter(16, 1, "m")]), (2, 32, 16), [(0, 2), (0, 32), (0, 16)]
    )
    for step, rule in ((16, "planned"), (8, "overlap")):
        target = TileLayout([Iter(2, step, "TCol"), Iter(32, 1, "TLane"), Iter(16, 1, "TCol")], WARPX4.copies)
        found = plan_form(WARPX4, smem, Side(target, (2, 32, 16), smem.region), 8)
        assert (found.rule if isinstance(found, Refusal) else "planned") == rule


def test_the_leading_offset_can_be_chosen_only_where_it_is_not_read() -> None:
    for ldo, rule in ((-1, "field"), (1 << 14, "field")):
        beyond = plan_form(WARPX4, *demo(), 8, ldo=ldo)
        assert isinstance(beyond, Refusal)
        assert beyond.rule == rule
    found = plan_form(WARPX4, *demo(), 8, ldo=5)
    assert isinstance(found, CpPlan)
    assert found.ldo == 5
    wide = FORMS[0]
    smem = Side(mma_shared_layout("uint8", 0, (128, 32)), (128, 32), [(0, 128), (0, 32)])
    tmem = Side(lanes_columns(wide, Iter(32, 1, "TCol")), (128, 32), smem.region)
    right = plan_form(wide, smem, tmem, 8, compat="tvm-0.27")
    assert isinstance(right, CpPlan)
    wrong = plan_form(wide, smem, tmem, 8, compat="tvm-0.27", ldo=right.ldo + 1)
    assert isinstance(wrong, Refusal)
    assert wrong.rule == "ldo"


def test_the_first_loop_runs_fastest() -> None:
    smem = Side(mma_shared_layout("bfloat16", 2, (128, 64)), (128, 64), [(0, 128), (0, 64)])
    tmem = Side(lanes_columns(FORMS[0], Iter(64, 1, "TCol")), (128, 64), smem.region)
    plan = plan_form(FORMS[0], smem, tmem, 16, compat="tvm-0.27")
    assert isinstance(plan, CpPlan)
    assert [(t.column, t.smem_offset) for t in plan.tiles] == [(0, 0), (16, 512), (8, 2), (24, 514)]
    assert plan.columns == 32


@pytest.mark.parametrize(("step", "rule"), [(8, "planned"), (9, "middle"), (10, "planned")])
def test_what_the_older_planner_copied_wrongly_is_refused(step: int, rule: str) -> None:
    """A loop of 9 16-bit elements on TCol is no whole number of columns; the older planner took 4 columns."""
    rows = (2, 32, 8)
    smem = Side(TileLayout([Iter(2, 256, "m"), Iter(32, 8, "m"), Iter(8, 1, "m")]), rows, [(0, 2), (0, 32), (0, 8)])
    target = TileLayout([Iter(2, step, "TCol"), Iter(32, 1, "TLane"), Iter(8, 1, "TCol")], WARPX4.copies)
    found = plan_form(WARPX4, smem, Side(target, rows, smem.region), 16)
    assert (found.rule if isinstance(found, Refusal) else "planned") == rule


@pytest.mark.parametrize(("shared", "tensor", "rule"), [(0, 0, "planned"), (512, 0, "broadcast"), (0, 16, "broadcast")])
def test_what_repeats_must_repeat_on_both_sides(shared: int, tensor: int, rule: str) -> None:
    rows = (2, 32, 16)
    smem = Side(TileLayout([Iter(2, shared, "m"), Iter(32, 16, "m"), Iter(16, 1, "m")]), rows, [(0, e) for e in rows])
    target = TileLayout([Iter(2, tensor, "TCol"), Iter(32, 1, "TLane"), Iter(16, 1, "TCol")], WARPX4.copies)
    found = plan_form(WARPX4, smem, Side(target, rows, smem.region), 8)
    assert (found.rule if isinstance(found, Refusal) else "planned") == rule
    if isinstance(found, CpPlan):
        assert found.count == 1
