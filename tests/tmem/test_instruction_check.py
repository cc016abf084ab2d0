"""The instruction table beyond the recorded rows: values at their bounds, operands, versions, order."""

from __future__ import annotations

import pytest

from benchmarks.assembler import assemble_each
from cute_py import tma
from cute_py.errors import EmissionError, ParseError, UnknownFactError
from cute_py.ptx.forms_tcgen05 import CP_MULTICASTS
from cute_py.ptx.module import find_ptxas
from cute_py.tmem import FORMS, FORMS_TABLE, examine, mnemonic, why_not_instruction
from tests.each import each_of

ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], {};"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {};"
CP = "tcgen05.cp.cta_group::1.32x128b.warpx4 {};"
TEXTS: list[tuple[str, bool]] = [
    *((ALLOC.format(n), n in (32, 64, 128, 256, 512)) for n in (16, 31, 32, 33, 64, 96, 128, 256, 511, 512, 1024)),
    *((DEALLOC.format(n), n % 32 == 0) for n in (0, 16, 32, 96, 1024)),
    (ALLOC.format("%r2"), True),
    (ALLOC.format("%rd2"), False),
    (CP.format("[%r1+4], %rd2"), True),
    (CP.format("[%r1], 0x4000000080000"), True),
    (CP.format("[%rd1], %rd2"), False),
    (CP.format("[%r1], %r2"), False),
    (CP.format("%r1, %rd2"), False),
    (CP.format("[smem], %rd2"), False),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [gmap], 32;", True),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [gmap], 32;", False),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [16], 32;", False),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%h1], 32;", False),
    ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 5, 32;", True),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%h1];", False),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [gmap];", False),
    ("@%p1 " + CP.format("[%r1], %rd2"), True),
    ("tcgen05.cp.cta_group::1.cta_group::2.32x128b.warpx4 [%r1], %rd2;", False),
    ("tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.b4x16_p64.b6x16_p32 [%r1], %rd2;", False),
    ("tcgen05.wait::ld.sync.aligned;", True),
    ("tcgen05.wait::st.sync.aligned;", True),
    ("tcgen05.wait::ld;", False),
    ("tcgen05.fence::before_thread_sync;", True),
    ("tcgen05.fence::before_thread_sync.aligned;", False),
    ("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;", True),
    ("tcgen05.shift.cta_group::1.up [%r1];", False),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1], %h1;", False),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], 3;", False),
    ("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %h1;", True),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11, %r12}, [%r1];", False),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%f10, %f11}, [%r1];", True),
    ("tcgen05.ld.sync.aligned.32x32b.x1.unpack::16b.b32 {%r10}, [%r1];", False),
    ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r10}, [%r1];", False),
    ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r10}, [%r1], %r2;", False),
    ("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {5};", False),
    ("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r1], 4, {%r10};", True),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;", True),
    ("tcgen05.mma.cta_group::2.kind::i8 [%r1], [%r2], %rd2, %r3, %p1;", True),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, !%p1;", True),
    ("tcgen05.wait::cp.sync.aligned;", False),
    ("tcgen05.wait.sync.aligned;", False),
    ("tcgen05.free;", False),
    ("tcgen05;", False),
]


@each_of(("text", "taken"), TEXTS)
def test_verdicts_on_sm_100a(text: str, taken: bool) -> None:
    assert (why_not_instruction(text, "sm_100a") == []) == taken


@pytest.mark.skipif(find_ptxas() is None, reason="there is no ptxas to ask")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_ptxas_agrees(arch: str) -> None:
    answers = assemble_each([text for text, _ in TEXTS], arch, (9, 0))
    for (text, _), answer in zip(TEXTS, answers, strict=True):
        assert (answer is None) == (why_not_instruction(text, arch) == []), (text, answer)


def test_versions_and_architectures() -> None:
    text = "tcgen05.wait::ld.sync.aligned;"
    assert why_not_instruction(text, "sm_103a", (8, 7)) == ["sm_103a needs PTX 8.8 or newer; got 8.7"]
    assert why_not_instruction(text, "sm_103a", (8, 8)) == []
    assert why_not_instruction(text, "sm_120a") == [
        "tcgen05.wait::ld needs an a or f variant of sm_100, sm_103 or sm_110; got sm_120a"
    ]
    assert examine("tcgen05.shift.cta_group::1.down [%r1];").min_version("sm_100f") is None
    assert why_not_instruction("tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r3, %p1;", "sm_103a")


def test_order() -> None:
    assert examine("tcgen05.wait::ld.sync.aligned;").canonical
    swapped = examine("tcgen05.wait::ld.aligned.sync;")
    assert not swapped.errors
    assert not swapped.canonical
    decompress = "tcgen05.cp.cta_group::1.128x128b.{}.{} [%r1], %rd2;"
    assert examine(decompress.format("b8x16", "b4x16_p64")).canonical
    assert examine(decompress.format("b4x16_p64", "b8x16")).errors


SCALED = "tcgen05.mma.cta_group::1.kind::{} [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;"


def test_the_reason_names_what_is_wrong() -> None:
    four = SCALED.format("mxf4nvf4.block_scale.scale_vec::4X")
    assert examine(four).min_version("sm_100a") == (8, 7)
    assert why_not_instruction(four, "sm_100a", (8, 6)) == [
        "tcgen05.mma with .kind::mxf4nvf4 needs PTX 8.7 or newer; got 8.6"
    ]
    assert why_not_instruction(four, "sm_103f") == [
        "tcgen05.mma with .scale_vec::4X needs sm_100a, sm_103a or sm_110a; got sm_103f"
    ]
    assert examine(SCALED.format("mxf4nvf4.block_scale")).errors == (
        "kind::mxf4nvf4 needs one of .scale_vec::2X, .scale_vec::4X, .block16, .block32",
    )
    assert examine(SCALED.format("mxf4.block_scale.block16")).errors == ("kind::mxf4 takes .scale_vec::2X, .block32",)
    dense = "tcgen05.mma.cta_group::1.kind::{} [%r1], %rd1, %rd2, %r3, %p1{};"
    assert why_not_instruction(dense.format("f16", ", 3"), "sm_110a") == [
        "tcgen05.mma with operand input_scale needs an a or f variant of sm_100 or sm_103; got sm_110a"
    ]
    assert examine(dense.format("f8f6f4", ", 3")).errors == ("kind::f8f6f4 has no input scale",)
    assert examine(dense.format("tf32", ", 16")).errors == ("input_scale = 16; expected 0..15",)
    assert examine(dense.format("f16.ashift", "")).errors == (
        "a %rd1: expected a tensor-memory address in a 32-bit register",
    )
    assert examine(ALLOC.format(96)).errors == ("columns = 96; expected 32, 64, 128, 256, 512",)
    assert why_not_instruction("tcgen05.wait::cp.sync.aligned;", "sm_100a") == [
        "ptxas 13.0.88 has no instruction tcgen05.wait::cp.sync.aligned"
    ]


def test_the_name_of_a_scaled_instruction() -> None:
    name = mnemonic(
        "tcgen05.mma.block_scale", cta_group="cta_group::2", kind="kind::mxf4nvf4", scale="block16", sparse="sp"
    )
    assert name == "tcgen05.mma.sp.cta_group::2.kind::mxf4nvf4.block_scale.block16"
    with pytest.raises(EmissionError, match="kind::mxf4 takes"):
        mnemonic("tcgen05.mma.block_scale", cta_group="cta_group::1", kind="kind::mxf4", scale="block16")


def test_what_the_table_does_not_cover() -> None:
    with pytest.raises(UnknownFactError, match=r"the instruction table has no row for the opcode of mov\.b32"):
        examine("mov.b32 %r1, %r2;")
    with pytest.raises(ParseError):
        examine("")


def test_every_row_has_a_source() -> None:
    assert all(row.section.startswith("tcgen05.") and row.targets for row in FORMS_TABLE)


def test_one_table_judges_all_instructions() -> None:
    """The verdict and why_not of `cute.tma` take what `why_not_instruction` takes, and for the same reasons."""
    assert set(FORMS_TABLE) <= set(tma.FORMS)
    for text, _ in TEXTS:
        for arch in ("sm_90a", "sm_100a", "sm_103f"):
            said = tma.verdict(text, arch)
            assert list(said.reasons) == why_not_instruction(text, arch)
            assert tma.why_not(text, arch) == said.why_not
    absent = tma.verdict("tcgen05.wait::cp.sync.aligned;", "sm_100a")
    assert not absent.assembles
    assert absent.why_not == "ptxas 13.0.88 has no instruction tcgen05.wait::cp.sync.aligned"
    assert tma.verdict(SCALED.format("mxf4nvf4.block_scale.scale_vec::4X"), "sm_100a").assembles
    assert tma.verdict("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;", "sm_100").assembles


def test_the_writer_writes_them() -> None:
    assert tma.ptx("tcgen05.mma.block_scale", kind="mxf4nvf4", scale="scale_vec::4X", cta_group=1, arch="sm_100a") == (
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r1], %rd2, %rd2, %r4, [%r1], [%r1], %p1;"
    )
    load = tma.ptx("tcgen05.ld", shape="32x32b", num="x2", operands={"registers": ("%r1", "%r2"), "taddr": "%r9"})
    assert load == "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r9];"
    with pytest.raises(EmissionError, match="moves 256 registers; must be at most 128"):
        tma.ptx("tcgen05.st", shape="16x128b", num="x128")
    with pytest.raises(EmissionError, match=r"tcgen05\.wait::ld needs an a or f variant"):
        tma.ptx("tcgen05.wait::ld", arch="sm_120a")


def test_the_forms_of_a_copy_are_those_of_the_table() -> None:
    assert [(shape, multicast) for shape, some in CP_MULTICASTS.items() for multicast in some] == [
        (form.shape, form.multicast) for form in FORMS
    ]
