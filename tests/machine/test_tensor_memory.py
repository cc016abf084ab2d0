"""Tensor memory in small kernels: loads, stores, copies, allocation, what is refused, and what races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import tmem
from cute_py.errors import InvalidValueError
from cute_py.ptx.forms_tcgen05 import SHAPE_REGISTERS
from tests.machine import tensor_forms
from tests.machine.tensor_kernels import BUFFER, kernel, run
from tests.machine.test_tensor_matrices import descriptor, multiply, operands
from tests.oracle.records import rows
from tests.oracle.test_tcgen05_plans import plan, sides
from tests.shares import one_in

SHARED_START = 1024


def registers(count: int, first: int = 100) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


# ---- loads and stores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "num"), one_in(2, [(shape, num) for num in (1, 4) for shape in SHAPE_REGISTERS]))
@pytest.mark.parametrize("packs", [False, True])
def test_a_load_and_a_store_of_every_shape(shape: str, num: int, packs: bool) -> None:
    """What a load reads and a store writes elsewhere lies where the table of shape says."""
    count = SHAPE_REGISTERS[shape] * num
    split = "" if shape != "16x32bx2" else ", 16"
    pack, unpack = (".pack::16b", ".unpack::16b") if packs else ("", "")
    after = (
        f"tcgen05.ld.sync.aligned.{shape}.x{num}{pack}.b32 {registers(count)}, [%r9]{split};\n"
        f"tcgen05.wait::ld.sync.aligned; add.u32 %r90, %r9, 64;\n"
        f"tcgen05.st.sync.aligned.{shape}.x{num}{unpack}.b32 [%r90]{split}, {registers(count)};\n"
        "tcgen05.wait::st.sync.aligned;"
    )
    cells = np.random.default_rng(1).integers(0, 1 << 32, (128, 512), np.uint32)
    found, words = run(kernel("", commit=tcgen05_commit(), after=after, shown=128), None, cells)
    assert found.ok, found.explain()
    lanes, columns = tmem.image(shape, num)
    columns = columns * (1 + packs) + (0 if not split else np.arange(32)[:, None] // 16 * 16)
    expected = cells.copy()
    for warp in range(4):
        part = cells[32 * warp + lanes, columns]
        if packs:
            expected[32 * warp + lanes, 64 + columns] = part & 0xFFFF
            expected[32 * warp + lanes, 65 + columns] = cells[32 * warp + lanes, columns + 1] & 0xFFFF
        else:
            expected[32 * warp + lanes, 64 + columns] = part
    assert np.array_equal(words[0, :, :128], expected[:, :128])


def tcgen05_commit() -> str:
    return "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd20];".replace("%rd20", "bar")


def test_a_load_that_reduces() -> None:
    after = (
        f"tcgen05.ld.red.sync.aligned.32x32b.x8.max.s32 {registers(8)}, %r99, [%r9]; add.u32 %r90, %r9, 32;\n"
        f"tcgen05.wait::ld.sync.aligned; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r90], {{%r99}};\n"
        "tcgen05.wait::st.sync.aligned;"
    )
    cells = np.random.default_rng(1).integers(0, 1 << 32, (128, 512), np.uint32)
    found, words = run(kernel("", after=after), None, cells)
    assert found.ok, found.explain()
    assert np.array_equal(words[0, :, 32].view(np.int32), cells[:, :8].view(np.int32).max(axis=1))


# ---- copies ----------------------------------------------------------------------------------------------------------


def planned() -> list[Any]:
    """A recorded copy of each form and number of instructions."""
    found: dict[Any, Any] = {}
    for row in rows("tcgen05_plans"):
        try:
            made = plan(row, "tvm-0.27")
        except cute.CuteError:
            continue
        fits = isinstance(made, tmem.CpPlan) and made.columns <= 128 and made.smem_offset * 16 < 4096
        if fits and made.cta_group == 1:
            found.setdefault((made.form.name, int(made.swizzle)), (row, made))
    return list(found.values())


PLANNED = planned()


@pytest.mark.parametrize(("row", "made"), one_in(3, PLANNED), ids=[row["id"] for row, _ in PLANNED])
def test_planned_copies_leave_what_the_layouts_say(row: Any, made: Any) -> None:
    form = made.form
    opcode = f"tcgen05.cp.cta_group::1.{form.name}"
    values = tmem.get_copy_s2t_smem_desc(made, SHARED_START).values
    body = ""
    for tile, words in zip(made.tiles, values, strict=True):
        body += f"mov.b64 %rd11, {words:#x}; add.u32 %r50, %r8, {tile.taddr_offset}; {opcode} [%r50], %rd11;\n  "
    image = np.random.default_rng(2).integers(0, 256, BUFFER, np.uint8)
    found, cells = run(kernel(body, shown=128, used=BUFFER), image, schedule="lazy")
    assert found.ok, found.explain()
    source = tmem.expected_tmem(*sides(row), row["bits"], SHARED_START)[:, :128]
    expected = np.where(source >= 0, image[np.maximum(source - SHARED_START, 0)], 0)
    assert np.array_equal(cells[0, :, :128].copy().view(np.uint8).reshape(128, 128, 4), expected)
    held = tmem.TensorMemory()
    held.alloc(512)
    tmem.run(made, held, 0, image, SHARED_START, SHARED_START)
    assert np.array_equal(cells[0, :, :128], held.cells[:, :128])


def test_the_forms_of_copies_are_all_there() -> None:
    assert len({made.form.name for _, made in PLANNED}) >= 4


# ---- what is refused, and what races ---------------------------------------------------------------------------------

_, _, IMAGE, LOADS = operands("f16", "f16", 128, 32, 16)
GOOD = LOADS + multiply(descriptor("f16", "f16", 128, 32), "f16")
DESCRIPTORS = [
    (descriptor("f16", "f16", 128, 24), "N = 24; must be a multiple of 16"),
    (descriptor("f16", "f16", 192, 32), "M = 192; must be 64 or 128"),
    (descriptor("f16", "f16", 128, 32, more=4), "states that A is sparse"),
    (descriptor("e5m2", "e3m2", 128, 32), "type of B = 4; kind::f16 has 0 (f16), 1 (bf16)"),
]


@pytest.mark.parametrize(("bits", "words"), DESCRIPTORS)
def test_an_instruction_descriptor_that_does_not_fit(bits: int, words: str) -> None:
    found, _ = run(kernel(LOADS + multiply(bits, "f16")), IMAGE, schedule="eager")
    assert [one.rule for one in found.diagnostics] == ["instruction descriptor"]
    assert words in found.diagnostics[0].message


@pytest.mark.parametrize(("bit", "words"), [(46, "version = 0; must be 1"), (30, "reserved bits must be 0")])
@pytest.mark.parametrize("name", ["%rd11", "%rd12"])
def test_a_matrix_descriptor_with_other_fixed_bits(name: str, bit: int, words: str) -> None:
    changed = GOOD.replace("tcgen05.mma", f"xor.b64 {name}, {name}, {1 << bit:#x}; tcgen05.mma")
    found, _ = run(kernel(changed), IMAGE, schedule="eager")
    assert [one.rule for one in found.diagnostics] == ["tcgen05.mma operand"]
    assert words in found.diagnostics[0].message


def test_operands_overwritten_before_the_commit_arrives() -> None:
    """The lazy schedule multiplies when the commit completes, which is after the second store."""
    over = "mov.b32 %r70, 0; st.shared.v4.b32 [%r4], {%r70, %r70, %r70, %r70};"
    commit = f"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n  {over}"
    found, _ = run(kernel(GOOD, commit=commit), IMAGE)
    assert [one.rule for one in found.diagnostics] == ["overwritten while in use", "schedules differ"]
    late = f"{over} fence.proxy.async;"
    found, _ = run(kernel(GOOD, after=f"@%p2 bra READY; {late}\nREADY: bar.sync 0;"), IMAGE)
    assert not found.diagnostics, found.explain()


def test_a_source_overwritten_before_its_copy_is_complete() -> None:
    """tcgen05.cp reads shared memory until a commit that follows it has arrived."""
    over = "mov.b32 %r70, 0; st.shared.v4.b32 [%r4], {%r70, %r70, %r70, %r70};"
    words = tmem.get_copy_s2t_smem_desc(PLANNED[0][1], SHARED_START).values[0]
    copy = f"mov.b64 %rd11, {words:#x}; tcgen05.cp.cta_group::1.{PLANNED[0][1].form.name} [%r8], %rd11;"
    image = np.ones(BUFFER, np.uint8)
    commit = f"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n  {over}"
    late = f"@%p2 bra READY; {over} fence.proxy.async;\nREADY: bar.sync 0;"
    for parts, rules in (({"commit": commit}, ["overwritten while in use"]), ({"after": late}, [])):
        found, _ = run(kernel(copy, used=BUFFER, **parts), image, schedule="eager")
        assert [one.rule for one in found.diagnostics] == rules, found.explain()


def test_registers_that_are_read_before_the_wait() -> None:
    """A true dependency through registers is in order without wait::ld."""
    after = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r90}, [%r9]; add.u32 %r91, %r90, 1;"
    found, _ = run(kernel("", after=after + "tcgen05.wait::ld.sync.aligned;"), schedule="eager")
    assert not found.diagnostics, found.explain()


def test_operands_that_the_asynchronous_proxy_may_not_see() -> None:
    text = kernel(GOOD).replace("ALLOCATED: fence.proxy.async;", "ALLOCATED:")
    found, _ = run(text, IMAGE, schedule="eager")
    assert [(one.rule, one.severity) for one in found.diagnostics] == [("missing proxy fence", "warning")]
    assert "tcgen05.mma" in str(found.diagnostics[0].facts["instruction"])


def test_who_wrote_tensor_memory() -> None:
    """Stores of 16 columns, a product over the first 32 of them, and what is left."""
    found, words = run(kernel(GOOD), IMAGE, schedule="eager")
    contents = found.tensor_memory()
    assert np.array_equal(contents.cells[:, :64], words[0, :, :64])
    first, second = contents.written()
    assert (first.columns, first.lanes) == (range(32), range(128))
    assert (second.columns, second.lanes) == (range(32, 64), range(128))
    assert first.instruction.startswith("tcgen05.mma") and second.instruction.startswith("tcgen05.st")
    assert f"columns 0 to 31, lanes 0 to 127: line {first.line}, tcgen05.mma" in str(contents)
    drawn = str(cute.draw.draw(contents))
    assert contents.title in drawn
    assert str(contents) in drawn
    svg = cute.draw.draw(contents).svg
    assert f">{first.line}<" in svg and f">{second.line}<" in svg


def test_a_run_without_tensor_memory() -> None:
    text = ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() .reqntid 32 { ret; }\n"
    with pytest.raises(InvalidValueError, match="executed no tcgen05 instruction"):
        cute.run_ptx(text).tensor_memory()


def test_sums_that_start_from_nothing() -> None:
    """Columns 64 and up are not filled before."""
    for enable, rules in (("0", []), ("1", ["tensor memory never written"])):
        text = LOADS + "add.u32 %r50, %r8, 64;\n  " + multiply(descriptor("f16", "f16", 128, 32), "f16", enable=enable)
        found, _ = run(kernel(text.replace("[%r8]", "[%r50]")), IMAGE, schedule="eager")
        assert [one.rule for one in found.diagnostics] == rules


# ---- every form ------------------------------------------------------------------------------------------------------


def test_the_table_of_forms_that_ptxas_assembles() -> None:
    """Executed, or refused with the name of what is missing: the page says which."""
    assert tensor_forms.PAGE.read_text() == tensor_forms.page()
    refused = {why for _, _, _, left in tensor_forms.table() for why in left}
    assert refused == {"a reduction of .16x32bx2 is not emulated; only .32x32b is", "has no scale for D"}
