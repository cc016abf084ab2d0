"""copy_async: the dispatch, its predicates, and the settings."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py.errors import InvalidTypeError, TmemError
from cute_py.tmem import (
    DISPATCHES,
    Buffer,
    CopyRequest,
    CpPlan,
    R,
    S,
    TCol,
    TLane,
    TmemAllocation,
    alloc_columns,
    copy_async,
    demonstration_copy,
    get_copy_s2t_smem_desc,
    mma_shared_layout,
    tmem_datapath_layout,
    why_not,
    why_not_columns,
)

DEMO = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
PLAIN = S[(32, 16) : (16, 1)]


def buffers(**changes: Any) -> tuple[Buffer, Buffer]:
    smem = Buffer("A_smem", (32, 16), changes.get("src", "uint8"), changes.get("src_scope", "shared.dyn"), PLAIN)
    allocation = changes.get("allocation", TmemAllocation(32))
    tmem = Buffer("tmem", (32, 16), changes.get("dst", "uint8"), "tmem", changes.get("layout", DEMO), allocation)
    return tmem, smem


def test_the_registration_of_the_reference_page() -> None:
    (way,) = DISPATCHES
    assert (way.op, way.target, way.variant, way.priority) == ("copy_async", "cuda", "smem->tmem", 10)
    assert [predicate.name for predicate in way.when] == ["validate_smem_tmem_copy", "exec_scope"]
    tmem, smem = buffers()
    assert copy_async(tmem[0:32, 0:16], smem[0:32, 0:16], cta_group=1).plan.count == 1  # by the only way there is


def test_the_plan_of_the_reference_page() -> None:
    tmem, smem = buffers()
    plan = copy_async(tmem[0:32, 0:16], smem[0:32, 0:16], cta_group=1).plan
    assert (plan.form.name, plan.ldo, plan.sdo, int(plan.swizzle), plan.count) == ("32x128b.warpx4", 16, 8, 0, 1)
    newer = copy_async(tmem[:, :], smem[:, :], compat="tvm-0.27").plan
    assert (newer.ldo, newer.sdo, int(newer.swizzle)) == (0, 8, 0)
    assert copy_async(tmem.whole(), smem.whole(), ldo=0).plan.descriptor() == newer.descriptor()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"src_scope": "global"}, "expected shared->tmem, got global->tmem"),
        ({"layout": None}, "both buffers must have layouts"),
        ({"allocation": None}, "tmem buffer must have allocated_addr"),
        ({"layout": S[(32, 16) : (1 @ TLane, 1 @ TCol)]}, "requires R[4:32@TLane] on tmem, got []"),
        (
            {"layout": S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[2 : 64 @ TLane]},
            "requires R[4:32@TLane] on tmem, got [2 : 64 @ TLane]",
        ),
        ({"dst": "float16"}, "uint8 has 8 bits, but float16 has 16; copy_async does not convert types"),
    ],
)
def test_predicates(changes: dict[str, Any], words: str) -> None:
    tmem, smem = buffers(**changes)
    with pytest.raises(TmemError) as caught:
        copy_async(tmem.whole(), smem.whole())
    assert caught.value.headline == words


@pytest.mark.parametrize("scope", ["warp", "warpgroup", "cta"])
def test_one_thread_issues(scope: str) -> None:
    tmem, smem = buffers()
    found = why_not(CopyRequest(tmem.whole(), smem.whole(), scope=scope))
    assert not isinstance(found, CpPlan)
    assert found[0].text == f"expected thread exec_scope, got {scope}"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cta_group": 3}, "cta_group = 3; must be 1 or 2"),
        ({"compat": "tvm-0.26"}, "compat = 'tvm-0.26'"),
        ({"decompress": "b4x16_p64"}, "copies that decompress"),
        ({"shape": "96x128b", "compat": "tvm-0.27"}, "unknown tcgen05.cp shape '96x128b'"),
        ({"shape": "64x128b", "compat": "tvm-0.27"}, "has two multicasts"),
        ({"shape": "128x256b", "multicast": "warpx4", "compat": "tvm-0.27"}, "does not fit tcgen05.cp shape"),
        ({"shape": "128x256b"}, "compat = 'reference' plans only 32x128b.warpx4"),
        ({"multicast": "warpx2::02_13"}, "no form supports the multicast"),
    ],
)
def test_settings(settings: dict[str, Any], words: str) -> None:
    tmem, smem = buffers()
    with pytest.raises(TmemError, match=words):
        copy_async(tmem.whole(), smem.whole(), **settings)


def test_same_width_other_type_is_a_reinterpretation() -> None:
    tmem, smem = buffers(dst="float8_e4m3fn")
    assert copy_async(tmem.whole(), smem.whole()).plan.count == 1


def test_every_form_is_told_when_none_fits() -> None:
    smem = Buffer("A", (64, 32), "bfloat16", "shared", mma_shared_layout("bfloat16", 2, (64, 32)))
    tmem = Buffer("t", (64, 32), "bfloat16", "tmem", tmem_datapath_layout("F", 64, 32), TmemAllocation(32))
    with pytest.raises(TmemError, match=r"no tcgen05\.cp form fits") as caught:
        copy_async(tmem.whole(), smem.whole(), compat="tvm-0.27")
    assert len(caught.value.facts) == 7


@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("name", ["A", "D"])
def test_full_data_paths_are_copied_to(name: str, cta_group: int) -> None:
    smem = Buffer("A", (128, 32), "bfloat16", "shared", mma_shared_layout("bfloat16", 2, (128, 32)))
    tmem = Buffer("t", (128, 32), "bfloat16", "tmem", tmem_datapath_layout(name, 128, 32), TmemAllocation(32))
    plan = copy_async(tmem.whole(), smem.whole(), compat="tvm-0.27", cta_group=cta_group).plan
    assert plan.form.name == "128x256b"
    assert [(tile.column, tile.smem_offset) for tile in plan.tiles] == [(0, 0), (8, 2)]


@pytest.mark.parametrize(("columns", "fits"), [(508, True), (512, False)])
def test_the_last_column(columns: int, fits: bool) -> None:
    layout = S[(32, 16 * 129) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    tmem = Buffer("tmem", (32, 16 * 129), "uint8", "tmem", layout, TmemAllocation(512))
    smem = Buffer("A_smem", (32, 16), "uint8", "shared", PLAIN)
    region = tmem[0:32, 4 * columns : 4 * columns + 16]
    if fits:
        assert copy_async(region, smem.whole()).plan.columns == 512
    else:
        with pytest.raises(TmemError, match=r"up to column 515; the allocation has columns 0\.\.511"):
            copy_async(region, smem.whole())


@pytest.mark.parametrize(
    ("n_cols", "fits"), [(0, False), (16, False), (31, False), (32, True), (33, False), (48, False), (64, True)]
)
def test_allocations(n_cols: int, fits: bool) -> None:
    assert (why_not_columns(n_cols) is None) == fits


def test_allocations_up_to_the_end() -> None:
    assert why_not_columns(512) is None
    assert why_not_columns(1024) is not None
    assert why_not_columns(True) is not None
    assert [alloc_columns(n) for n in (1, 32, 33, 512)] == [32, 32, 64, 512]
    with pytest.raises(TmemError):
        alloc_columns(513)


def test_the_descriptor_view() -> None:
    smem = Buffer("A", (4, 32, 16), "uint8", "shared", S[4, 32, 16])
    layout = S[(4, 32, 16) : (16 @ TCol, 1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    tmem = Buffer("t", (4, 32, 16), "uint8", "tmem", layout, TmemAllocation(32))
    view = get_copy_s2t_smem_desc(copy_async(tmem.whole(), smem.whole()), 1024)
    assert len(view) == 4
    assert view.offsets == (0, 32, 64, 96)
    assert [hex(value) for value in view] == ["0x400800100040", "0x400800100060", "0x400800100080", "0x4008001000a0"]
    assert view[2] == view.values[2]
    assert "offsets in 16-byte units: 0, 32, 64, 96" in view.explain()


def test_both_cta_groups_plan_the_demonstration() -> None:
    assert demonstration_copy(cta_group=2).plan.cta_group == 2


def test_whole_buffers_and_operands_that_are_none() -> None:
    tmem, smem = buffers()
    assert copy_async(tmem, smem).plan == copy_async(tmem[0:32, 0:16], smem[0:32, 0:16]).plan
    with pytest.raises(InvalidTypeError, match="copy_async takes buffers and their regions, got tuple"):
        copy_async(tmem, (32, 16))  # type: ignore[arg-type]
