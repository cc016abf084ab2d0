"""A run over time, and what its instructions ask of memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.draw.dispatch import draw
from cute_py.errors import CuteError
from cute_py.machine.judgement.traffic import sectors, wavefronts
from tests.machine.test_hangs import ROUNDS, program, run

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
COLUMN = """.shared .align 16 .b8 tile[4352];
.visible .entry k(.param .u64 out) .reqntid 32 {
.reg .b32 %r<20>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
mul.lo.u32 %r3, %r1, PITCH; add.u32 %r3, %r2, %r3; st.shared.u32 [%r3], %r1;
bar.sync 0;
ld.shared.u32 %r4, [%r3];
mul.wide.u32 %rd2, %r1, STEP; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r4;
ret; }
"""


def counts(pitch: int, step: int) -> dict[str, Any]:
    text = HEAD + COLUMN.replace("PITCH", str(pitch)).replace("STEP", str(step))
    found = cute.run_ptx(text, args=[np.zeros(1024, np.uint32)], traffic=True)
    assert found.ok, found.explain()
    return {one.instruction.split()[0]: one for one in found.counts}


@pytest.mark.parametrize(("pitch", "conflicts"), [(4, 0), (8, 1), (128, 31), (132, 0)])
def test_a_column_of_a_tile_has_the_bank_conflicts_of_its_pitch(pitch: int, conflicts: int) -> None:
    found = counts(pitch, 4)
    for name in ("st.shared.u32", "ld.shared.u32"):
        assert (found[name].wavefronts, found[name].bank_conflicts) == (conflicts + 1, conflicts)
    assert found["mov.u32"].bank_conflicts == 0


def test_a_pickled_run_describes_the_same_run() -> None:
    text = HEAD + COLUMN.replace("PITCH", "4").replace("STEP", "4")
    found = cute.run_ptx(text, args=[np.zeros(1024, np.uint32)])
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    for report in (lambda one: one.explain(), lambda one: one.trace(3), lambda one: str(one.timeline())):
        assert report(again) == report(found)


@pytest.mark.parametrize(("step", "expected"), [(4, 4), (8, 8), (32, 32), (128, 32)])
def test_sectors_of_a_stride(step: int, expected: int) -> None:
    assert counts(4, step)["st.global.u32"].sectors == expected


COPIES = """.shared .align 16 .b8 tile[4096];
.visible .entry k(.param .u64 from) .reqntid 32 {
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [from]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
mul.lo.u32 %r3, %r1, 128; add.u32 %r3, %r2, %r3;
mul.wide.u32 %rd2, %r1, 32; add.s64 %rd2, %rd1, %rd2;
setp.lt.u32 %p1, %r1, 20; selp.u32 %r4, 16, 0, %p1;
cp.async.cg.shared.global [%r3], [%rd2], 16, %r4;
cp.async.wait_all; bar.sync 0; ld.shared.u32 %r5, [%r3];
ret; }
"""


def test_cp_async_counts_the_sectors_of_those_who_read_and_the_banks_of_all() -> None:
    """20 of 32 threads read a sector each; the others write zeros. Rows of 128 bytes begin at one bank."""
    found = cute.run_ptx(HEAD + COPIES, args=[np.zeros(1024, np.uint8)], traffic=True)
    assert found.ok, found.explain()
    (copy,) = (one for one in found.counts if one.instruction.startswith("cp.async.cg"))
    assert (copy.sectors, copy.wavefronts, copy.bank_conflicts) == (20, 32, 28)


def test_traffic_is_counted_by_default_and_unknown_without() -> None:
    counted, without = run(program(ROUNDS)), run(program(ROUNDS), traffic=False)
    assert any(one.wavefronts for one in counted.counts) and any(one.sectors for one in counted.counts)
    assert {(one.wavefronts, one.bank_conflicts, one.sectors) for one in without.counts} == {(None, None, None)}
    assert [one.executions for one in counted.counts] == [one.executions for one in without.counts]


@pytest.mark.parametrize("nbytes", [1, 2, 4, 8, 16])
def test_conflicts_are_what_the_banks_of_each_group_say(nbytes: int) -> None:
    """Against a count of each group's words, bank by bank."""
    dice = np.random.default_rng(nbytes)
    for _ in range(20):
        threads = np.sort(dice.choice(64, dice.integers(1, 65), replace=False))
        offsets = dice.integers(0, 256, len(threads)) * nbytes
        total = groups = 0
        lanes = 128 // max(nbytes, 4)
        for group in range(64 // lanes):
            banks: dict[int, set[int]] = {}
            for thread, offset in zip(threads.tolist(), offsets.tolist(), strict=True):
                if thread // lanes == group:
                    for word in range(offset // 4, (offset + nbytes - 1) // 4 + 1):
                        banks.setdefault(word % 32, set()).add(word)
            if banks:
                groups += 1
                total += max(map(len, banks.values()))
        assert wavefronts(threads // 32, threads % 32, offsets, nbytes) == (total, total - groups)
        touched = {
            (int(t) // 32, int(o + i) // 32) for t, o in zip(threads, offsets, strict=True) for i in range(nbytes)
        }
        assert sectors(threads // 32, offsets, nbytes) == len(touched)


def test_the_timeline_of_a_ring_shows_warps_barriers_and_copies() -> None:
    found = run(program(ROUNDS), schedule="lazy")
    timeline = found.timeline()
    rows = {row.label: row for row in timeline.rows}
    assert [row.kind for row in timeline.rows] == ["warps", "warps", "barriers", "barriers", "copies"]
    assert {len(row.cells) for row in timeline.rows} == {len(timeline.rows[0].cells)}
    full, empty = rows["mbarrier at 0x600"].cells, rows["mbarrier at 0x608"].cells
    assert [sign for i, sign in enumerate(full) if sign != full[i - 1]] == [" ", "0", "1", "2", "3", "4"]
    assert full.index("1") <= empty.index("1") <= full.index("2")
    assert set(rows["warp 0"].cells) > {"c", "-"}
    assert "c" not in rows["warp 1"].cells
    copies = next(row.cells for row in timeline.rows if row.kind == "copies")
    assert set(copies) == {"1", "."}
    picture = draw(timeline)
    assert picture.title == timeline.title
    assert picture.svg.startswith("<svg")
    assert str(timeline) in str(picture)


def test_a_timeline_without_events_and_of_no_cta() -> None:
    found = run(program(ROUNDS), judge=False)
    assert {row.kind for row in found.timeline().rows} == {"warps"}
    with pytest.raises(CuteError, match="cta"):
        found.timeline(1)
