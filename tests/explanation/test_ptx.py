"""PTX in a text and the messages of ptxas 13.0.88: what is wrong, and a change that assembles."""

from __future__ import annotations

import re

import pytest

import cute_py as cute
from cute_py.explanation.dispatch import readings_of
from cute_py.ptx import examine
from tests.each import each_of

LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global"
BYTES = "mbarrier::complete_tx::bytes"
WRONG = [
    (f"{LOAD}.{BYTES} [%r1], [%rd1, {{%r2}}], [%r3];", "1 elements; expected 2"),
    (f"{LOAD}.{BYTES}.multicast::cluster [%r1], [%rd1, {{%r2, %r3}}], [%r4];", "destination, tensor, barrier, mask"),
    (f"{LOAD} [%r1], [%rd1, {{%r2, %r3}}], [%r4];", f"needs one of .{BYTES}"),
    (f"cp.async.bulk.tensor.2d.shared.global.{BYTES} [%r1], [%rd1, {{%r2, %r3}}], [%r4];", ".shared::cluster.global"),
    ("cp.async.bulk.tensor.2d.global.shared::cta [%rd1, {%r1, %r2}], [%r3];", "needs one of .bulk_group"),
    ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.sum.bulk_group [%rd1, {%r1, %r2}], [%r3];", ".add, .min"),
    ("tcgen05.cp.cta_group::1.32x128b [%r1], %rd1;", "must be .warpx4"),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 48;", "expected 32, 64, 128, 256, 512"),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2;", "expected taddr, a, b, instruction"),
    ("tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 7, %r1;", "ordinal = 7; expected 0..4"),
    ("fence.proxy.tensormap::generic.acquire.gpu [%rd1];", "expected map, size"),
    ("mbarrier.try_wait.parity.b64 %p1, [%r1];", "expected done, barrier, parity"),
]


@each_of(("text", "says"), WRONG, ids=[text.split(" ")[0] for text, _ in WRONG])
def test_an_instruction_that_does_not_assemble(text: str, says: str) -> None:
    said = cute.explain(f"my kernel has\n  {text}\nand fails")
    assert says in said and "\nWrong\n" in said
    for change in re.findall(r"this assembles: ([^\n]+)", said):
        assert not examine(change).errors


@each_of(
    ("text", "wrong", "right"),
    [
        (f"cp.async.bulk.shared::cluster.global.{BYTES} [%r1], [%rd1], 100, [%r2];", "100", ("96", "112")),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile+64], 20;", "20", ("16", "32")),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd7], [%r9], 8;", "8", ("16",)),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 1048576;", "1048576", ("1048560",)),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 48;", "48", ("32", "64")),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], 5, 20;", "20", ()),  # the source is wrong as well
    ],
)
def test_a_change_of_a_wrong_number_keeps_the_instruction(text: str, wrong: str, right: tuple[str, ...]) -> None:
    said = cute.explain(text)
    changes = [line.strip() for line in said.partition("A change that works\n")[2].splitlines() if line.strip()]
    head, _, tail = text.rpartition(wrong)
    assert [change.partition(": ")[2] for change in changes] == [f"{head}{number}{tail}" for number in right]
    assert all(
        change.partition(": ")[0].endswith(f" = {number}") for change, number in zip(changes, right, strict=True)
    )


def test_a_sound_instruction_says_where_it_assembles() -> None:
    said = cute.explain(f"{LOAD}.{BYTES}.cta_group::2 [%r1], [%rd1, {{%r2, %r3}}], [%r4];")
    assert "it assembles for sm_100a, sm_100f" in said and "Wrong" not in said


def test_the_target_of_the_text_counts() -> None:
    text = (
        f".version 8.7\n.target sm_90\n{LOAD}.tile::gather4.{BYTES} [%r1], [%rd1, {{%r2, %r3, %r4, %r5, %r6}}], [%r7];"
    )
    said = cute.explain(text)
    assert "got sm_90" in said and "-arch=sm_100a" in said


@each_of(
    ("message", "says", "never"),
    [
        ("Feature '.tile::gather4' not supported on .target 'sm_90a'", "-arch=sm_100a", "-arch=sm_90a"),
        ("Feature '.cta_group::2' not supported on .target 'sm_90a'", "-arch=sm_100a", "-arch=sm_90a"),
        ("Feature 'something' not supported on .target 'sm_90a'", "sm_90a does not have this", "-arch"),
        ("Instruction 'tensormap.replace' not supported on .target 'sm_90'", "-arch=sm_90a", "no change"),
        # What ptxas 13.0.88 prints; the own target of sm_80, sm_90 or sm_120 has none of these, or does not exist.
        ("Feature '.128x256b' not supported on .target 'sm_90'", "-arch=sm_100a", "-arch=sm_90a"),
        ("Feature '.16x64b' not supported on .target 'sm_120'", "-arch=sm_100a", "-arch=sm_120a"),
        ("Feature '.kind::f8f6f4' not supported on .target 'sm_90'", "sm_90 does not have this", "-arch"),
        ("Instruction 'tensormap.cp_fenceproxy' not supported on .target 'sm_80'", "sm_80 does not have this", "-arch"),
        ("Instruction 'setmaxnreg.inc' not supported on .target 'sm_100'", "-arch=sm_100a", "sm_90a"),
        ("Instruction 'tensormap.replace' not supported on .target 'sm_120'", "-arch=sm_120a", "sm_90a"),
        ("Instruction 'redux.f32' not supported on .target 'sm_100'", "-arch=sm_100a", "no change"),
        ("Value 'sm_70' is not defined for option 'gpu-name'", "does not know the target", "-arch"),
        ("Entry function 'k' uses too much shared data (0x39000 bytes, 0x38c00 max)", "233472 bytes", "extern"),
        ("Entry function 'k' uses too much shared data (0x10000 bytes, 0xc000 max)", "extern __shared__", "stages"),
        ("Feature 'setmaxnreg' requires .target sm_90a", "-arch=sm_90a", "sm_90a does not have this"),
        ("Feature 'x' requires PTX ISA .version 8.6 or later", ".version 8.6 or later", "-arch"),
        ("PTX .version 7.0 does not support .target sm_90a", ".version 8.0 or later for sm_90a", "-arch"),
        ("Arguments mismatch for instruction 'tcgen05.mma'", "the number or the kinds of the operands", "-arch"),
        ("State space mismatch between instruction and address in instruction 'x'", "generic address", "-arch"),
        ("Argument 2 of instruction 'x': Argument vector size mismatch", "the number of elements in braces", "-arch"),
        ("Unknown modifier '.x3'", "no instruction has this modifier", "-arch"),
    ],
)
def test_a_message_of_ptxas(message: str, says: str, never: str) -> None:
    text = f"ptxas k.ptx, line 7; error   : {message}\nptxas fatal   : Ptx assembly aborted due to errors"
    said = cute.explain(text)
    assert says in said and never not in said
    assert said.startswith("An error from ptxas\n")  # the last line is no error of its own


def test_a_program_of_barriers_is_still_run() -> None:
    program = (
        "mbarrier.init.shared::cta.b64 [%r1], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r1];\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\nThe kernel hangs."
    )
    (reading,) = readings_of(program)
    assert reading.kind.startswith("A program of mbarrier") and "2048" in str(reading)


def test_a_wait_alone_is_not_judged() -> None:
    said = cute.explain("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;")
    assert "the initialisation of bar, and the arrivals on it" in said and "Wrong" not in said


def test_a_message_about_a_barrier_is_no_program() -> None:
    text = (
        "ptxas k.ptx, line 7; error   : Sink '_' is expected as a destination operand for instruction "
        "'mbarrier.arrive.expect_tx' with '.shared::cluster'"
    )
    assert "program of mbarrier" not in cute.explain(text)


@pytest.mark.parametrize(
    "text",
    [
        f'asm volatile("{LOAD}.{BYTES} [%0], [%1, {{%3, %4}}], [%2];" :: "r"(dst));',
        f"{LOAD}.{BYTES} [dst], [map, {{c0, c1}}], [bar];",
    ],
)
def test_operands_without_a_type_are_not_judged(text: str) -> None:
    assert not any(reading.kind.startswith("A PTX instruction") for reading in readings_of(text))


@pytest.mark.parametrize(
    ("note", "means", "change"),
    [  # ptxas 13.0.88, and the change with which it was silent
        (
            "non wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline "
            "stage",
            "before it waits for their wgmma",
            "after wgmma.wait_group",
        ),
        (
            "insufficient register resources for the wgmma pipeline",
            "more registers than a thread",
            "wait_group 0 before",
        ),
        ("wgmma pipeline crossing function boundary at a function call", "there is a call between", "__forceinline__"),
        ("the presence of Extern calls", "whose code ptxas does not see", "in the same unit"),
    ],
)
def test_a_note_of_ptxas_on_wgmma(note: str, means: str, change: str) -> None:
    start = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to"
    said = cute.explain(
        f"ptxas info    : (C7514) {start} {note} in the function 'k'\nptxas info    : Used 40 registers"
    )
    assert said.startswith("A note of ptxas on wgmma\n  the results are right")
    assert means in said and change in said.partition("What to do (not tried)")[2]


def test_fences_and_waits_that_ptxas_adds() -> None:
    said = cute.explain(
        "ptxas info    : (C7519) warpgroup.arrive is injected in around line 67 by compiler to allow use of registers "
        "in GMMA in function 'k'\nptxas info    : (C7517) warpgroup.wait is injected in around line 159 by compiler to"
        " allow use of registers defined by GMMA in function 'k'"
    )
    assert "ptxas inserts a wait" in said and "ptxas inserts a fence" in said and "the results are right" not in said


@each_of(
    ("instruction", "wrong"),
    [
        ("wgmma.mma_async.sync.aligned.m64n100k16.f32.f16.f16", "must be a multiple of 8 from 8 to 256"),
        ("wgmma.mma_async.sync.aligned.m64n264k16.f32.bf16.bf16", "must be a multiple of 8 from 8 to 256"),
        ("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8", "must be 8, 16, 24, 32, 48, 64"),
        ("wgmma.mma_async.sync.aligned.m32n64k16.f32.f16.f16", "m is 32 in m32n64k16; must be 64"),
        ("wgmma.mma_async.sync.aligned.m64n64k32.f32.f16.f16", "k is 32 in m64n64k32; must be 16"),
        ("ldmatrix.sync.aligned.m8n8.x3.shared.b16", "is x3; must be x1, x2 or x4"),
        ("ldmatrix.sync.aligned.m8n8.x8.trans.shared::cta.b16", "is x8; must be x1, x2 or x4"),
        ("stmatrix.sync.aligned.m8n8.x3.shared.b16", "is x3; must be x1, x2 or x4"),
    ],
)
def test_the_shape_of_an_instruction_is_that_of_an_atom(instruction: str, wrong: str) -> None:
    for text in (instruction, f"{instruction} {{%r1}}, [%r4];", f'asm volatile("{instruction} %0, %1;");'):
        (reading,) = [one for one in readings_of(text) if one.broken]
        assert wrong in str(reading) and "not judged: the operands" in str(reading)


def test_instructions_of_atoms_are_not_wrong() -> None:
    from cute_py.explanation.atoms import COPY_ATOMS, MMA_ATOMS, wrong_form

    instructions = {row.ptx for table in (MMA_ATOMS, COPY_ATOMS) for row in table.values() if row.ptx}
    assert len(instructions) > 1000
    assert not [one for one in instructions if wrong_form(one)]


def test_the_last_line_of_ptxas_alone() -> None:
    last = "ptxas fatal   : Ptx assembly aborted due to errors"
    assert "the lines before this one" in cute.explain(last)
    both = cute.explain(f"ptxas a.ptx, line 7; error   : Unknown modifier '.x3'\n{last}")
    assert "The last line of ptxas" not in both and "An error from ptxas" in both


def test_no_thread_can_have_more_than_255_registers() -> None:
    spilled = "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\nptxas info    : Used {} registers"
    assert "allow more than 254 registers" in cute.explain(spilled.format(254))
    assert "allow more than" not in cute.explain(spilled.format(255))


@each_of(("count", "wrong"), [(0, True), (1, False), ((1 << 20) - 1, False), (1 << 20, True), (-1, True)])
def test_the_count_of_a_barrier(count: int, wrong: bool) -> None:
    said = cute.explain(f"mbarrier.init.shared.b64 [%r1], {count};")
    assert (f"count = {count}; must be 1..1048575\n    source: PTX ISA 9.0, mbarrier.init: count" in said) is wrong
    assert "A PTX instruction: mbarrier.init.shared.b64" in said


def test_several_instructions_on_one_line_run() -> None:
    lines = ["mbarrier.init.shared.b64 [bar], 1;", "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4096;",
             "mbarrier.try_wait.parity.shared.b64 p, [bar], 0; // waits; mbarrier.arrive is missing"]  # fmt: skip
    for joint in ("\n", " "):
        assert "0 of 4096 bytes arrived" in cute.explain(joint.join(lines))
    assert "mbarrier.init with count 0; must be 1 to 1048575" in cute.explain(" ".join(lines).replace("], 1;", "], 0;"))
