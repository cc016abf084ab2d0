"""Every recorded plan and rejection of a shared-to-tensor-memory copy, of both planners, and what the emulator makes
of each plan."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from cute_py.errors import CuteError
from cute_py.tmem import (
    Buffer,
    CopyRequest,
    CpPlan,
    Refusal,
    Side,
    TensorMemory,
    TmemAllocation,
    expected_tmem,
    plan_form,
    run,
    why_not,
)
from cute_py.tmem.cp_forms import COLUMNS, WARPX4, cp_form
from cute_py.tmem.planner import candidates
from tests.oracle.records import rows, tally
from tests.oracle.test_tile_layout import read

Row = dict[str, Any]

RULES = {
    "replica mismatch": "replica",
    "isolate split mismatch": "broadcast",
    "is not a multiple of one": "atom",
    "t_lane for": "lanes",
    "t_col must": "columns",
    "s_lane must": "rows",
    "s_lane row-group stride": "stride",
    "atom_K_byte": "row bytes",
    "swizzle mode mismatch": "swizzle mode",
    "swizzle family mismatch": "swizzle family",
    "swizzle direction mismatch": "swizzle direction",
    "s_col": "unit",
    "t TCol offset": "column offset",
    "t TLane offset": "lane offset",
    "s offset": "shared offset",
    "middle": "middle",
    "ZeroDivisionError": "element",
}
"""Words of a recorded rejection -> the rule that ours names."""


def layout_of(form: Row) -> Any:
    tile = {"shard": form["shard"], "replica": form["replica"], "offset": form["offset"]}
    if not form["swizzle"]:
        return read(tile)
    names = ("per_element", "swizzle_len", "atom_len", "swizzle_inner")
    return read({"tile": tile, "swizzle": [form["swizzle"][name] for name in names]})


def sides(row: Row) -> tuple[Side, Side]:
    smem, tmem = (
        Side(layout_of(form), tuple(form["shape"]), [(begin, end) for begin, end in form["region"]])
        for form in (row["smem"], row["tmem"])
    )
    return smem, tmem


def plan(row: Row, compat: str) -> CpPlan | list[tuple[str, Refusal]]:
    """The first plan of the forms that the row's settings name, or a refusal for each of them."""
    smem, tmem = sides(row)
    config = row["config"]
    if compat == "reference":
        forms = [WARPX4]  # That planner reads neither shape nor multicast.
    elif "shape" in config:
        forms = [cp_form(config["shape"], config.get("multicast"))]
    else:
        forms = [form for form in candidates(compat) if config.get("multicast") in (None, form.multicast)]
    refusals = []
    for form in forms:
        found = plan_form(form, smem, tmem, row["bits"], compat=compat)
        if isinstance(found, CpPlan):
            return found
        refusals.append((form.name, found))
    return refusals


def requested(row: Row, compat: str) -> CpPlan | list[Refusal]:
    """The same through the dispatch, predicates and capacity included."""
    smem, tmem = sides(row)
    columns = TmemAllocation(COLUMNS)
    src = Buffer("A_smem", smem.shape, row["dtype"], "shared", smem.layout)
    dst = Buffer("tmem", tmem.shape, row["tmem"]["dtype"], "tmem", tmem.layout, columns)
    settings = {key: value for key, value in row["config"].items() if compat != "reference" or key == "cta_group"}
    request = CopyRequest(dst.whole(), src.whole(), compat=compat, **settings)
    request = CopyRequest(
        type(request.dst)(dst, tuple(tmem.region)),
        type(request.src)(src, tuple(smem.region)),
        compat=compat,
        **settings,
    )
    return why_not(request)


def newer_holds(row: Row) -> bool:
    """The plan of the newer planner, field for field, tile for tile, or a rejection by the same rules."""
    if row["status"] == "ok":
        found = plan(row, "tvm-0.27")
        if not isinstance(found, CpPlan):
            return False
        want = row["plan"]
        loops = [{"extent": m.extent, "smem_step_16B": m.smem_step, "taddr_step": m.taddr_step} for m in found.middle]
        got = {
            "shape": found.form.shape,
            "multicast": found.form.multicast,
            "ldo": found.ldo,
            "sdo": found.sdo,
            "swizzle": int(found.swizzle),
            "elem_per_atom": found.elements_per_atom,
            "elem_per_32b": found.elements_per_column,
            "atom_K_byte": found.row_bytes,
            "middle_iters": loops,
            "init_off_16B": found.smem_offset,
            "t_addr_off": found.taddr_offset,
        }
        tiles = [(tile.taddr_offset, tile.lane, tile.column, tile.smem_offset) for tile in found.tiles]
        recorded = [(t["taddr_off"], t["lane_off"], t["col_off"], t["smem_off_16B"]) for t in row["tiles"]]
        return bool(got == want and tiles == recorded and f"{found.descriptor():#018x}" == row["desc_base_hex"])
    try:
        refused = not isinstance(requested(row, "tvm-0.27"), CpPlan)
    except CuteError:
        return True
    return refused and same_rules(row)


def same_rules(row: Row) -> bool:
    """Each line of a planner's rejection names the rule that our refusal names."""
    if row.get("stage") != "planner":
        return True
    try:
        found = plan(row, "tvm-0.27")
    except CuteError:
        return True
    if isinstance(found, CpPlan):
        return False
    lines = [line.strip() for line in row["error"].splitlines()]
    if len(lines) > 1:
        recorded = dict(line.split(": ", 1) for line in lines[1:])
    else:
        recorded = {found[0][0]: lines[0]}
    for name, refusal in found:
        rules = [rule for words, rule in RULES.items() if words in recorded.get(name, "")]
        if rules and refusal.rule not in rules:
            return False
    return True


def older_holds(row: Row) -> bool:
    """The plan of the older planner, or a refusal: of the predicate in the page's words, or of what would be wrong.

    Where the older planner accepted and the newer rejects, ours follows the older one if only the alignment of the
    first column is at stake, and refuses what would be copied wrongly.
    """
    want = row["seed_era"]
    found = plan(row, "reference")
    if want is None:
        return not isinstance(requested(row, "reference"), CpPlan)
    if want["status"] != "ok":
        if isinstance(found, CpPlan):
            return False
        refusals = requested(row, "reference")
        if want["stage"] != "predicate":
            return not isinstance(refusals, CpPlan)
        if isinstance(refusals, CpPlan):
            return False
        (said, found_there), (wanted, _) = (text.split("got ") for text in (refusals[0].text, want["error"]))
        return said == wanted and found_there == str(list(sides(row)[1].layout.replica))
    if not isinstance(found, CpPlan):
        # Only what the newer planner rejects as well, and not for the alignment of the first column.
        return row["status"] == "reject" and "TCol offset" not in row["error"]
    loops = [{"extent": m.extent, "smem_step_16B": m.smem_step, "tmem_col_step": m.taddr_step} for m in found.middle]
    got = {
        "status": "ok",
        "shape": found.form.shape,
        "multicast": found.form.multicast,
        "ldo": found.ldo,
        "sdo": found.sdo,
        "swizzle": int(found.swizzle),
        "atom_K_byte": found.row_bytes,
        "elem_per_128b": 128 // found.bits,
        "middle_iters": loops,
        "init_off_16B": found.smem_offset,
        "t_col0": found.taddr_offset,
        "desc_base_hex": f"{found.descriptor():#018x}",
    }
    return bool({key: got[key] for key in want} == want)


@pytest.mark.parametrize("name", ["newer", "older"])
def test_every_row(name: str) -> None:
    table = rows("tcgen05_plans")
    holds = newer_holds if name == "newer" else older_holds
    wrong = [row["id"] for row in table if not holds(row)]
    tally(f"tcgen05_plans, {name} planner", len(table) - len(wrong), len(table), wrong)
    assert wrong == []


def test_every_plan_copies_what_its_layouts_say() -> None:
    """The emulator, driven by the descriptors alone, leaves each byte where the tensor-memory layout has it."""
    checked, beyond = 0, []
    for row in rows("tcgen05_plans"):
        smem, tmem = sides(row)
        for compat in ("reference", "tvm-0.27"):
            try:
                found = plan(row, compat)
            except CuteError:
                continue
            if not isinstance(found, CpPlan):
                continue
            if found.capacity_violations():
                beyond.append(row["id"])
                continue
            memory = TensorMemory()
            memory.alloc(COLUMNS)
            run(found, memory, 0, numpy.zeros(1 << 18, numpy.uint8), 2048)
            assert (memory.sources == expected_tmem(smem, tmem, row["bits"], 2048)).all(), (row["id"], compat)
            checked += 1
    assert checked > 150
    # A plan past column 511 is equal to the recorded one, and refused by everything that issues it.
    for row in rows("tcgen05_plans"):
        if row["id"] in beyond:
            refusals = requested(row, "tvm-0.27")
            assert not isinstance(refusals, CpPlan)
            assert refusals[0].rule == "capacity"


def test_the_comparison_can_fail() -> None:
    row = next(row for row in rows("tcgen05_plans") if row["status"] == "ok")
    assert newer_holds(row)
    assert not newer_holds({**row, "desc_base_hex": "0x0000000000000000"})
    older = next(row for row in rows("tcgen05_plans") if row["seed_era"] and row["seed_era"]["status"] == "ok")
    assert not older_holds({**older, "seed_era": {**older["seed_era"], "sdo": 7}})
