"""Small kernels, each sound, and each with one seeded bug: what is found, and what is left alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cute_py.cli.main import main
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.ptx import check_program
from cute_py.tma import TensorMapDataType, TensorMapTiled, encode

HEAD = """.version 8.6
.target {arch}
.address_size 64
.extern .shared .align 128 .b8 smem[];
.shared .align 8 .b64 bar;
"""
REGISTERS = ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n"
TO_BARRIER = "mbarrier::complete_tx::bytes"


def kernel(*body: str, arch: str = "sm_90a", directives: str = "") -> str:
    """A module of one kernel with a pointer, and a tensor map as its second parameter."""
    head = f"{HEAD.format(arch=arch)}.visible .entry k(.param .u64 p, .param .align 64 .b8 map[128]){directives}\n{{\n"
    start = (
        "ld.param.u64 %rd1, [p];\nmov.b64 %rd2, map;\ncvta.param.u64 %rd3, %rd2;\n"
        "mov.u32 %r1, smem;\nmov.u32 %r2, bar;\n"
    )
    return head + REGISTERS + start + "\n".join(body) + "\nret;\n}\n"


def rules(text: str, arch: str | None = None) -> list[str]:
    return [one.rule for one in check_program(text, arch).found]


LOAD = f"cp.async.bulk.shared::cluster.global.{TO_BARRIER} [%r1], [%rd1], 2048, [%r2];"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;"
INIT = "mbarrier.init.shared::cta.b64 [%r2], 1;"
FENCE = "fence.proxy.async.shared::cta;"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 2048;"
COMMIT, WAIT = "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"
TENSOR_LOAD = (
    f"cp.async.bulk.tensor.2d.shared::cluster.global.{TO_BARRIER}.multicast::cluster "
    "[%r1], [%rd3, {%r3, %r4}], [%r2], %rs1;"
)
CLUSTER = (
    "fence.mbarrier_init.release.cluster;",
    "barrier.cluster.arrive.relaxed.aligned;",
    "barrier.cluster.wait.aligned;",
)
CHANGE = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"
USE = f"cp.async.bulk.tensor.2d.shared::cluster.global.{TO_BARRIER} [%r1], [%rd1, {{%r3, %r4}}], [%r2];"


@pytest.mark.parametrize("wrong", [0, 16, 1024, 2032, 4096, 1_048_575])
def test_bytes_expected(wrong: int) -> None:
    assert rules(kernel(INIT, EXPECT, LOAD)) == []
    assert rules(kernel(INIT, EXPECT.replace("2048", str(wrong)), LOAD)) == ["expect_tx"]
    # The same through registers, and with the barrier and the bytes computed.
    computed = ("mov.u32 %r5, 2048;", "add.s32 %r6, %r2, 8;", "add.s32 %r7, %r6, -8;", EXPECT.replace("%r2", "%r7"))
    assert rules(kernel(*computed, LOAD.replace("2048", "%r5"))) == []
    assert rules(kernel(*computed, LOAD, LOAD)) == ["expect_tx"]


def test_bytes_expected_are_not_judged() -> None:
    """Where another instruction may bring or take bytes of the same barrier, or the number is not constant."""
    half = EXPECT.replace("2048", "1024")
    other = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 1024;"
    for body in (
        (half, "@%p1 bra L;", LOAD, "L:"),
        (half, f"@%p1 {LOAD}"),
        (half, "ld.global.u32 %r9, [%rd1];", other, LOAD),
        (half, LOAD.replace("2048", "%r9")),
        (half, "mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%r2], 1024;", LOAD),
        (half, "call foo;", LOAD),
    ):
        assert [rule for rule in rules(kernel(*body)) if rule.startswith("expect")] == [], body


def test_bytes_that_no_barrier_counts() -> None:
    assert rules(kernel(EXPECT.replace("2048", "1048576"))) == ["expect_tx_range"]
    assert rules(kernel(EXPECT.replace("2048", "-16"))) == ["expect_tx_range"]
    tensor = f"cp.async.bulk.tensor.2d.shared::cluster.global.{TO_BARRIER} [%r1], [%rd3, {{%r3, %r4}}], [%r2];"
    assert rules(kernel(EXPECT, tensor)) == []
    assert rules(kernel(EXPECT.replace("2048", "2040"), tensor)) == ["expect_tx"]


def test_bytes_of_tensor_copies_are_those_of_the_maps_that_are_given() -> None:
    """The map is the second parameter; its box is 64 x 16 elements of 2 bytes."""
    tensor = f"cp.async.bulk.tensor.2d.shared::cluster.global.{TO_BARRIER} [%r1], [%rd3, {{%r3, %r4}}], [%r2];"
    passed = TensorMapTiled(TensorMapDataType.FLOAT16, 4096, (128, 256), (256,), (64, 16))

    def found(*body: str, number: int = 1) -> list[str]:
        return [one.rule for one in check_program(kernel(*body), maps={number: passed}).found]

    assert found(EXPECT, tensor) == []
    assert found(EXPECT.replace("2048", "1024"), tensor) == ["expect_tx"]
    assert found(EXPECT, tensor, tensor) == ["expect_tx"]
    assert found(EXPECT.replace("2048", "4096"), tensor, LOAD) == []
    assert found(EXPECT.replace("2048", "1024"), tensor, number=0) == []  # another parameter's map
    text = kernel(EXPECT, tensor)
    missing = (
        "1 barrier: copies at line 15 complete on it; the byte count is in the tensor map of parameter 1, which "
        "was not passed (--map 1=FILE, maps={1: ...})"
    )
    for maps in (None, {0: passed}):
        assert missing in check_program(text, maps=maps).scope.not_judged
    assert missing not in check_program(text, maps={1: passed}).scope.not_judged
    for wrong in ({"map": passed}, {1: b"bytes"}, [passed]):
        with pytest.raises(InvalidTypeError):
            check_program(text, maps=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("write", ["st.shared.b32 [smem], 1;", "st.shared.v4.b32 [%r1+2032], {%r3, %r3, %r3, %r3};"])
def test_a_fence_between_proxies(write: str) -> None:
    rest = (STORE, COMMIT, WAIT)
    assert rules(kernel(write, FENCE, *rest)) == []
    assert rules(kernel(write, "fence.proxy.async;", "bar.sync 0;", *rest)) == []
    assert rules(kernel(write, "bar.sync 0;", "@%p1 bra L;", *rest, "L:")) == ["proxy_fence"]
    assert rules(kernel(write, "fence.proxy.async.global;", *rest)) == ["proxy_fence"]
    assert rules(kernel("@%p1 bra L;", write, "L:", *rest)) == []  # not on every path
    assert rules(kernel("@%p1 bra L;", write, "bra M;", "L:", write, "M:", *rest)) == []  # two instructions, either one
    assert rules(kernel(f"@%p1 {write}", *rest)) == []


def test_writes_beside_the_source() -> None:
    rest = (STORE, COMMIT, WAIT)
    assert rules(kernel("st.shared.b32 [smem+2048], 1;", *rest)) == []
    assert rules(kernel("st.shared.b64 [bar], 0;", *rest)) == []
    found = check_program(
        kernel("mov.u32 %r5, %tid.x;", "add.s32 %r6, %r1, %r5;", "st.shared.b32 [%r6], 1;", *rest)
    ).found
    assert [(one.rule, one.severity) for one in found] == [("proxy_fence", "warning")]


def test_stores_are_committed_and_waited_for() -> None:
    assert rules(kernel(STORE, COMMIT, WAIT)) == []
    assert rules(kernel(STORE, COMMIT)) == ["wait"]
    assert rules(kernel(STORE, WAIT)) == ["commit"]
    assert rules(kernel(COMMIT, WAIT, STORE)) == ["commit", "wait"]
    assert rules(kernel(COMMIT, "L:", STORE, COMMIT, "@%p1 bra L;", WAIT)) == []
    assert rules(kernel("L:", COMMIT, WAIT, STORE, "@%p1 bra L;")) == []  # the next round commits
    assert rules(kernel(STORE, "call foo;")) == []


def test_registers_by_their_declarations() -> None:
    """Of any name, alone or counted, in braces or not; `t1` in braces is another than outside."""
    poll = "mbarrier.init.shared::cta.b64 [{a}], {b};"
    for outer, inner in (
        (".reg .b32 t<4>;", ".reg .b64 x;"),
        (".reg .b64 t<4>, u;", ".reg .u32 t<2>, v;"),
        (".reg .b64 %r9x<4>;", ".reg .b32 $t, t<3>;"),
        (".reg .pred t<4>;", ".reg .s32\n t1\n ,\tt2;"),
    ):
        assert rules(kernel(outer, "{", inner, poll.format(a="t1", b="t1"), "}")) == [], inner
    wrong = poll.format(a="t1", b="t2")
    assert rules(kernel(".reg .b32 t<4>;", "{", ".reg .b64 t<4>;", wrong, "}")) == ["instruction"]
    assert rules(kernel(".reg .b32 t<4>;", "{", ".reg .b64 t<4>;", "}", wrong)) == []
    assert rules(kernel(".reg .b32 $t<4>;", "@ !%p1 mbarrier.init.shared::cta.b64 [%r2], $t2;")) == []
    assert rules(kernel("mov , x;", "@%r1 mbarrier.inval.shared::cta.b64 [%r2];")) == ["instruction"]


def test_multicast() -> None:
    assert rules(kernel(INIT, *CLUSTER, EXPECT, TENSOR_LOAD)) == []
    assert rules(kernel(INIT, "bar.sync 0;", EXPECT, TENSOR_LOAD)) == ["multicast_scope"]
    assert rules(kernel(INIT, *CLUSTER[1:], EXPECT, TENSOR_LOAD)) == ["multicast_scope"]
    assert rules(kernel(INIT, "fence.acq_rel.cta;", *CLUSTER[1:], EXPECT, TENSOR_LOAD)) == ["multicast_scope"]
    assert rules(kernel(INIT, "fence.acq_rel.cluster;", *CLUSTER[1:], EXPECT, TENSOR_LOAD)) == []
    assert rules(kernel(INIT, "barrier.cluster.arrive.aligned;", CLUSTER[2], EXPECT, TENSOR_LOAD)) == []
    cta = TENSOR_LOAD.replace(".shared::cluster.", ".shared::cta.")
    assert rules(kernel(INIT, *CLUSTER, EXPECT, cta)) == ["instruction"]


@pytest.mark.parametrize(("mask", "found"), [("3", []), ("0", ["multicast_mask"]), ("4", ["multicast_mask"])])
def test_multicast_masks(mask: str, found: list[str]) -> None:
    text = kernel(INIT, *CLUSTER, TENSOR_LOAD.replace("%rs1", mask), directives=" .reqnctapercluster 2, 1, 1")
    assert rules(text) == found


def test_changed_maps() -> None:
    assert rules(kernel(CHANGE, ACQUIRE, USE)) == []
    assert rules(kernel(CHANGE, USE)) == ["tensormap_acquire"]
    assert rules(kernel(CHANGE, "prefetch.tensormap [%rd1];")) == ["tensormap_acquire"]
    other = ("add.s64 %rd4, %rd1, 128;", ACQUIRE.replace("%rd1", "%rd4"))
    assert rules(kernel(CHANGE, *other, USE)) == ["tensormap_acquire"]
    assert rules(kernel(CHANGE, USE.replace("%rd1", "%rd3"))) == []  # a parameter, which no kernel changes
    replace = "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd1;"
    assert rules(kernel(replace, CHANGE, ACQUIRE, USE)) == []
    assert rules(kernel(replace)) == ["tensormap_release"]


@pytest.mark.parametrize(
    ("instruction", "arch", "found"),
    [
        ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;", "sm_90", ["target", "tensormap_release"]),
        ("fence.proxy.async.bogus;", "sm_90a", ["instruction"]),
        ("mbarrier.init.shared::cta.b64 [%rd1], 1, 2;", "sm_90a", ["instruction"]),
        ("elect.sync %r3|%p1, 0xffffffff;", "sm_80", ["target"]),
    ],
)
def test_forms_and_architectures(instruction: str, arch: str, found: list[str]) -> None:
    assert rules(kernel(instruction, arch=arch)) == found


def test_another_architecture() -> None:
    text = kernel("elect.sync %r3|%p1, -1;")
    assert (rules(text), rules(text, "sm_80")) == ([], ["target"])
    with pytest.raises(InvalidValueError):
        check_program(text, "sm_1")


def test_inline_assembly_has_its_own_registers_and_labels() -> None:
    poll = "mbarrier.try_wait.parity.shared::cta.b64 P1, [%r2], 0;"
    wait = f"{{\n.reg .pred P1;\nLAB:\n{poll}\n@P1 bra DONE;\nbra LAB;\nDONE:\n}}"
    report = check_program(kernel(wait, wait))
    assert (report.found, report.counts) == ((), {"mbarrier.try_wait.parity": 2})


def test_the_report_says_what_it_did_not_judge() -> None:
    text = str(check_program(kernel(TENSOR_LOAD, "mbarrier.bogus.b64 [%r2];")))
    assert text.split("\n") == [
        "sm_90a: 1 instruction of the rules (1 load)",
        "no broken rule found in what was judged",
        "judged: 1 instruction, 1 shared-memory address (alignment)",
        "not judged: 1 barrier: copies at line 14 complete on it, "
        "but no instruction in the function expects their bytes",
        "not judged: 1 instruction: mbarrier.bogus.b64: no row of the instruction table covers it; line 15",
        "not judged: 1 multicast load: mask: known at run time; line 14",
        "not judged: 1 multicast load: scope: the barrier may be initialised in another function; line 14",
        "not judged: 1 transfer: extent: it is not known whether the box fits in its buffer in shared memory; line 14",
        "not judged: order of threads: the actions of other threads and CTAs between two instructions of a thread",
    ]
    assert str(check_program(kernel())) == (
        "sm_90a: 0 instructions of the rules\nnothing to judge: the rules apply to none of the instructions\n"
        "judged: 0 instructions"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        ".version 8.0",
        ".version 8.0\n.target sm_90a\n.entry k(){",
        ".version 8.0\n.target sm_90a\n}",
        ".version 8.0\n.target sm_90a\n.entry k(){ bra nowhere; }",
        ".version 8.0\n.target sm_90a\n.entry k(){ ret }",
        ".version 8.0\n.target sm_90a\n{ ret; }",
    ],
)
def test_what_is_no_module(text: str) -> None:
    with pytest.raises(ParseError):
        check_program(text)


@pytest.mark.parametrize("bad", [None, 3, b".version", [], 1 << 200])
def test_what_is_no_text(bad: object) -> None:
    with pytest.raises(CuteError):
        check_program(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [400, pytest.param(1500, marks=pytest.mark.slow)])
def test_mutated_modules_raise_nothing_foreign(count: int) -> None:
    """Characters dropped, doubled and swapped in sound modules: a report, or an error of this library."""
    made = random.Random(4)
    texts = [kernel(INIT, *CLUSTER, EXPECT, TENSOR_LOAD), kernel(CHANGE, ACQUIRE, USE, STORE, COMMIT, WAIT)]
    for _ in range(count):
        text = list(made.choice(texts))
        for _ in range(made.randint(1, 6)):
            at = made.randrange(len(text))
            text[at : at + made.randint(0, 4)] = made.choice(
                ("", ";", "{", "}", "[", ":", "%", "\0", ".reg .b32 x;", "@", "+")
            )
        try:
            str(check_program("".join(text)))
        except CuteError:
            continue


@pytest.mark.parametrize(("text", "status"), [(kernel(STORE, COMMIT, WAIT), 0), (kernel(STORE), 1), ("junk", 2)])
def test_the_command(text: str, status: int, tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/kernel.ptx"
    with open(path, "w") as file:
        file.write(text)
    assert main(["check", path]) == status
    assert main(["check", path, "--json"]) == status
    capsys.readouterr()


def test_the_command_takes_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parameter 1 is a map whose box is 2048 bytes, as a file and as digits."""
    tensor = f"cp.async.bulk.tensor.2d.shared::cluster.global.{TO_BARRIER} [%r1], [%rd3, {{%r3, %r4}}], [%r2];"
    content = encode(TensorMapTiled(TensorMapDataType.FLOAT16, 4096, (128, 256), (256,), (64, 16)))
    path, passed = tmp_path / "kernel.ptx", tmp_path / "map.bin"
    passed.write_bytes(content)
    for expected, status in ((2048, 0), (1024, 1)):
        path.write_text(kernel(EXPECT.replace("2048", str(expected)), tensor))
        assert main(["check", str(path)]) == 0
        for given in (passed, content.hex()):
            assert main(["check", str(path), "--map", f"1={given}"]) == status
    assert "its 1 load delivers 2048" in capsys.readouterr().out
    for wrong in (str(passed), f"one={passed}", "1=", f"-1={passed}"):
        assert main(["check", str(path), f"--map={wrong}"]) == 2
    assert "must be N=MAP" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(60), b"\xff\xfe\x00", b"\x50\xed\x55\xba" + bytes(9)])
def test_files_that_hold_no_module(data: bytes, tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/kernel.bin"
    with open(path, "wb") as file:
        file.write(data)
    assert main(["check", path]) == 2
    assert main(["check", "/no/such/file"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("load", "waits", "left"),
    [
        ("ld.global.nc.b32 %r3, [%rd1];", True, True),
        ("ld.global.nc.L1::no_allocate.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1];", True, True),
        ("ld.global.b32 %r3, [%rd1];", True, False),
        ("ld.global.nc.b32 %r3, [%rd1];", False, False),
    ],
)
@pytest.mark.parametrize("launched", [False, True])
def test_read_only_loads_after_the_wait_for_the_previous_kernel_are_not_judged(
    load: str, waits: bool, left: bool, launched: bool
) -> None:
    text = kernel(*(["griddepcontrol.wait;"] if waits else []), load)
    report = check_program(text, launched=launched)
    assert not report.found
    said = [one for one in report.scope.not_judged if one.startswith("1 read-only load: previous kernel")]
    assert len(said) == left
    if left:
        assert f"line {text.splitlines().index(load) + 1}" in said[0]
