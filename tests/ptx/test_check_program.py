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


def kernel(*body: str, arch: str = "sm_90a", directives: str = "", waits: bool = True) -> str:
    """A module of one kernel with a pointer, and a tensor map as its second parameter. A wait follows a body with a
    load and without a wait, unless `waits` is False."""
    head = f"{HEAD.format(arch=arch)}.visible .entry k(.param .u64 p, .param .align 64 .b8 map[128]){directives}\n{{\n"
    start = (
        "ld.param.u64 %rd1, [p];\nmov.b64 %rd2, map;\ncvta.param.u64 %rd3, %rd2;\n"
        "mov.u32 %r1, smem;\nmov.u32 %r2, bar;\n"
    )
    loads = any(TO_BARRIER in line for line in body) and not any("_wait" in line for line in body)
    return head + REGISTERS + start + "\n".join([*body, *[FIRST_WAIT] * (loads and waits)]) + "\nret;\n}\n"


def rules(text: str, arch: str | None = None) -> list[str]:
    return [one.rule for one in check_program(text, arch).found]


LOAD = f"cp.async.bulk.shared::cluster.global.{TO_BARRIER} [%r1], [%rd1], 2048, [%r2];"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;"
INIT = "mbarrier.init.shared::cta.b64 [%r2], 1;"
FIRST_WAIT = "mbarrier.test_wait.parity.shared::cta.b64 %p8, [%r2], 0;"
FENCE = "fence.proxy.async.shared::cta;"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 2048;"
COMMIT, WAIT = "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"
GROUPS = "cp.async.bulk.wait_group {};"
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


@pytest.mark.parametrize(
    ("body", "found", "left"),
    [
        ((STORE, COMMIT, GROUPS.format(0)), [], False),
        ((STORE, COMMIT, GROUPS.format(1)), ["wait"], False),
        ((STORE, GROUPS.format(0), COMMIT), ["wait"], False),
        ((STORE, COMMIT, COMMIT, GROUPS.format(1)), [], False),  # an empty group is newer
        ((STORE, COMMIT, STORE, COMMIT, GROUPS.format(1)), ["wait"], False),  # only the second one
        ((STORE, COMMIT, STORE, COMMIT, GROUPS.format(2)), ["wait", "wait"], False),
        ((STORE, GROUPS.format(0), COMMIT, GROUPS.format(0)), [], False),
        ((STORE, COMMIT, "@%p1 bra L;", GROUPS.format(1), "bra M;", "L:", GROUPS.format(2), "M:"), ["wait"], False),
        # The last round is not covered, but the text does not show which round is the last.
        (("L:", STORE, COMMIT, GROUPS.format(1), "@%p1 bra L;"), [], True),
        (("L:", STORE, COMMIT, GROUPS.format(1), "@%p1 bra L;", GROUPS.format(0)), [], False),
        ((STORE, COMMIT, "@%p1 bra L;", GROUPS.format(0), "L:"), [], True),
        ((STORE, COMMIT, f"@%p1 {GROUPS.format(0)}"), [], True),
        ((f"@%p1 {STORE}", f"@%p1 {COMMIT}", f"@%p1 {GROUPS.format(0)}"), [], False),
        ((STORE, COMMIT, GROUPS.format(65)), [], True),  # more groups than are counted
    ],
)
def test_a_wait_covers_the_groups_that_are_older_than_those_it_leaves(
    body: tuple[str, ...], found: list[str], left: bool
) -> None:
    report = check_program(kernel(*body))
    assert [one.rule for one in report.found] == found, str(report)
    assert any(": wait: on some paths" in line for line in report.scope.not_judged) == left
    judged = body.count(STORE) + body.count(f"@%p1 {STORE}") - left
    assert any(line.endswith("(wait)") and line.startswith(f"{judged} ") for line in report.scope.judged) == (
        judged > 0
    )


def test_words_of_a_wait_that_covers_no_store() -> None:
    (few,) = check_program(kernel(STORE, COMMIT, GROUPS.format(1))).found
    (early,) = check_program(kernel(STORE, GROUPS.format(0), COMMIT)).found
    name = "line 14, kernel k: cp.async.bulk.global.shared::cta.bulk_group is never waited for: "
    assert few.message == (
        f"{name}wait_group 1 at line 16 leaves the 1 most recent group pending, and the group of the store is one of "
        "them; the wait_group must leave at most as many groups as the kernel commits after this group"
    )
    assert early.message == (
        f"{name}the wait_group at line 15 precedes the commit_group at line 16, and covers only groups that are "
        "committed before it"
    )


TILE = ".shared .align 128 .b8 tile[4096];"
PEER_COPY = f"cp.async.bulk.shared::cluster.shared::cta.{TO_BARRIER} [%r9], [tile], 8192, [%r2];"


@pytest.mark.parametrize(
    ("copy", "wrong"),
    [
        (LOAD.replace("[%r1]", "[tile]"), False),
        (LOAD.replace("[%r1]", "[tile]").replace("2048", "4096"), False),
        (LOAD.replace("[%r1]", "[tile]").replace("2048", "8192"), True),
        (LOAD.replace("[%r1]", "[tile+2048]"), False),
        (LOAD.replace("[%r1]", "[tile+2064]"), True),
        (LOAD.replace("[%r1]", "[tile+-16]"), True),
        (STORE.replace("[%r1]", "[%r6+1024]"), True),
        (STORE.replace("[%r1]", "[%r6]"), False),
        (PEER_COPY, True),
    ],
)
def test_bulk_copies_stay_inside_their_variable(copy: str, wrong: bool) -> None:
    text = kernel(TILE, "mov.u32 %r5, tile;", "add.s32 %r6, %r5, 2048;", copy)
    found = [one for one in check_program(text).found if one.rule == "extent"]
    assert [one.severity for one in found] == ["error"] * wrong
    judged = "1 transfer (extent)" in check_program(text).scope.judged
    assert judged == (copy is not PEER_COPY)  # its destination is in another CTA
    if copy.startswith("cp.async.bulk.shared::cluster.global") and "8192" in copy:
        assert found[0].message == (
            "line 17, kernel k: the destination of the copy is 8192 bytes at byte 0 of tile; the copy ends at byte "
            "8192; tile has 4096 bytes"
        )
        assert found[0].source == "PTX ISA 9.0, cp.async.bulk: size"
        assert found[0].fixes == ("copy at most 4096 bytes, or declare tile with at least 8192 bytes",)


def test_extents_that_are_not_judged() -> None:
    """The size or the address is known only at run time, or a launch determines the size of the buffer."""
    unknown = LOAD.replace("[%r1]", "[tile]").replace("2048", "%r5")
    moved = LOAD.replace("[%r1]", "[%r6]")
    found = check_program(kernel(TILE, "mov.u32 %r5, %tid.x;", "add.s32 %r6, %r5, tile;", unknown, moved, LOAD))
    assert found.found == ()
    assert (
        "3 transfers: extent: the size of a bulk copy, its address or its buffer is known only at run time; "
        "lines 17, 18, 19"
    ) in found.scope.not_judged
    assert not any("extent" in line for line in found.scope.judged)


@pytest.mark.parametrize(
    "declared", [".extern .shared .align 128 .b8 tile[4096];", ".shared .align 128 .b8 tile[8192];"]
)
def test_a_copy_is_compared_with_the_variable_of_its_own_function(declared: str) -> None:
    text = kernel(TILE, LOAD.replace("[%r1]", "[tile]").replace("2048", "8192"))
    other = f".visible .entry other()\n{{\n{declared}\nret;\n}}\n"
    assert "extent" in rules(text)
    assert "extent" in rules(text + other)
    # ptxas 13.0.88 allocates only the variable of the function, which hides that of the module
    assert "extent" in rules(text.replace(HEAD.format(arch="sm_90a"), HEAD.format(arch="sm_90a") + declared))


def test_variables_of_two_kernels_with_one_name() -> None:
    """Each kernel is judged with the alignment, the size and the state space of its own variable."""
    name, space, copy = ".visible .entry {}", ".shared .align {} .b8 tile[{}];", LOAD.replace("[%r1]", "[tile+16]")
    first = kernel(space.format(128, 4096), INIT, EXPECT, copy)
    second = kernel(space.format(8, 2056), INIT, EXPECT, copy).removeprefix(HEAD.format(arch="sm_90a"))
    other = second.replace(name.format("k"), name.format("other"))
    for text in (first + other, HEAD.format(arch="sm_90a") + other + first.removeprefix(HEAD.format(arch="sm_90a"))):
        report = check_program(text)
        assert [(one.rule, one.facts["function"]) for one in report.found] == [("extent", "other")]
        assert any("whether the address of the destination is a multiple of 16" in x for x in report.scope.not_judged)
        assert "4 shared-memory addresses (alignment)" not in report.scope.judged
    local = kernel(space.format(128, 4096).replace("shared", "local"), "st.shared.b32 [%r1], 0;")
    local = local.replace(name.format("k"), name.format("other")).removeprefix(HEAD.format(arch="sm_90a"))
    assert rules(kernel(space.format(128, 2048), INIT, EXPECT, copy) + local) == ["extent"]


@pytest.mark.parametrize(("convert", "found"), [("cvta.to.shared.u64 %rd9, %rd8;", ["extent"]), ("", [])])
def test_a_generic_address_of_32_bits_is_not_an_address_in_shared_memory(convert: str, found: list[str]) -> None:
    """cvta makes an address whose upper bits matter; the lower 32 bits of an address in shared memory are all of it."""
    start = ("mov.u64 %rd7, tile;", "cvta.shared.u64 %rd6, %rd7;", "add.s64 %rd8, %rd6, 4096;")
    narrow = convert, f"cvt.u32.u64 %r9, {'%rd9' if convert else '%rd8'};"
    assert rules(kernel(TILE, *start, *narrow, INIT, EXPECT, LOAD.replace("[%r1]", "[%r9]"))) == found
    moved = ("mov.u64 %rd7, tile;", "add.s64 %rd8, %rd7, 4096;", "cvt.u32.u64 %r9, %rd8;")
    assert rules(kernel(TILE, *moved, INIT, EXPECT, LOAD.replace("[%r1]", "[%r9]"))) == ["extent"]


def test_waits_and_maps_of_functions_without_a_kernel() -> None:
    """A caller may complete phases before the wait of a function, and may release and acquire the map it changes."""
    wait = FIRST_WAIT.replace("[%r2], 0", "[%r2], 1")
    replace = "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd1;"
    body = (EXPECT, LOAD, wait, replace, USE.replace("%rd3", "%rd1"))
    assert {"parity", "tensormap_release"} <= set(rules(kernel(*body)))
    function = kernel(*body).replace(".visible .entry k(", ".func k(")
    report = check_program(function)
    assert report.found == ()
    assert any("release: " in line for line in report.scope.not_judged)
    assert any("parity: " in line for line in report.scope.not_judged)


def test_a_wrong_size_leaves_the_other_operands_known() -> None:
    """The barrier, the bytes and the alignment of a load whose only error is the number of bytes."""
    report = check_program(kernel(TILE, INIT, EXPECT, LOAD.replace("[%r1]", "[tile]")).replace("2048", "1000"))
    assert [one.rule for one in report.found] == ["instruction"]
    assert {"1 barrier (bytes)", "2 shared-memory addresses (alignment)"} <= set(report.scope.judged)
    assert not any("alignment" in line or "copies at" in line for line in report.scope.not_judged)
    formless = check_program(kernel(INIT, EXPECT, LOAD.replace("[%r1]", "%r1")))
    assert "1 barrier: copies at line 16 complete on it; their form is wrong" in formless.scope.not_judged
    assert not any("alignment" in line for line in formless.scope.not_judged)


def test_loads_in_a_kernel_without_waits() -> None:
    loads = (INIT, EXPECT.replace("2048", "4096"), LOAD, LOAD)
    (found,) = check_program(kernel(*loads, waits=False)).found
    assert (found.rule, found.severity, found.facts["lines"]) == ("wait", "error", [16, 17])
    assert found.message == (
        f"line 16, kernel k: cp.async.bulk.shared::cluster.global.{TO_BARRIER} is never waited for: no instruction of "
        "the kernel waits on an mbarrier (also at line 17)"
    )
    assert rules(kernel(*loads)) == []
    assert rules(kernel(*loads, "mbarrier.try_wait.shared::cta.b64 %p8, [%r2], %rd9;", waits=False)) == []
    called = check_program(kernel(*loads, "call foo;", waits=False))
    assert called.found == ()
    assert "2 loads: wait: it may be in another function; lines 16, 17" in called.scope.not_judged


@pytest.mark.parametrize(
    ("lines", "family"),
    [
        (("wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"), "wgmma"),
        (("tcgen05.fence::before_thread_sync;", "tcgen05.wait::ld.sync.aligned;"), "tcgen05"),
        (("cp.async.cg.shared.global [%r1], [%rd1], 16;", "cp.async.wait_all;"), "cp.async"),
    ],
)
def test_asynchronous_instructions_that_no_rule_reads(
    lines: tuple[str, str], family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = kernel("st.shared.b32 [smem], 1;", *lines)
    said = f"2 {family} instructions: no rule of this check applies to them; a run judges"
    assert [line.startswith(said) for line in check_program(text).scope.not_judged] == [True]
    assert "nothing to judge" not in str(check_program(text))
    assert check_program(text, launched=True).scope.complete
    path = tmp_path / "kernel.ptx"
    path.write_text(text)
    assert (main(["check", str(path)]), main(["check", str(path), "--strict"])) == (0, 1)
    assert said in capsys.readouterr().out
    assert check_program(kernel(STORE, COMMIT, WAIT)).scope.not_judged[-1].startswith("order of threads")


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
        "sm_90a: 2 instructions of the rules (1 load, 1 mbarrier.test_wait.parity)",
        "no broken rule found in what was judged",
        "judged: 2 instructions, 1 shared-memory address (alignment)",
        "not judged: 1 barrier: copies at line 14 complete on it, "
        "but no instruction in the function expects their bytes",
        "not judged: 1 instruction: mbarrier.bogus.b64: no row of the instruction table covers it; line 15",
        "not judged: 1 load: wait: it is not known whether a wait of the function waits for the load; line 14",
        "not judged: 1 multicast load: mask: known at run time; line 14",
        "not judged: 1 multicast load: scope: the barrier may be initialised in another function; line 14",
        "not judged: 1 transfer: extent: it is not known whether the box fits in its buffer in shared memory; line 14",
        "not judged: 1 wait: parity: the phase that a wait waits for depends on the earlier phases; line 16",
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


HAND_HEAD = """.version 8.3
.target sm_90a
.address_size 64
"""


def hand(*body: str, name: str = "k", size: int = 1024) -> str:
    """A kernel with a variable `smem` of its own, whose address is in %r1, and the index of the thread in %r9."""
    start = (
        f".visible .entry {name}(.param .u64 p) {{",
        ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b16 %rs<4>;",
        f".shared .align 128 .b8 smem[{size}]; .shared .align 8 .b64 bar;",
        "ld.param.u64 %rd1, [p]; mov.u32 %r1, smem; mov.u32 %r9, %tid.x;",
    )
    return "\n".join((*start, *body, "ret;", "}", ""))


def sent(address: str, size: object) -> str:
    return f"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [{address}], {size};"


def left_of(text: str) -> str:
    return "\n".join(check_program(text).scope.not_judged)


@pytest.mark.parametrize(
    ("steps", "address", "size", "result"),
    [
        ("mov.u32 %r2, -1; mul.lo.s32 %r3, %r2, 16; add.s32 %r4, %r1, %r3; add.s32 %r5, %r4, 32;", "%r5", 64, ""),
        ("mov.u32 %r2, -1; mul.lo.s32 %r3, %r2, 16; add.s32 %r4, %r1, %r3;", "%r4", 64, "16 bytes before smem"),
        ("mov.u32 %r2, -1; mul.lo.s32 %r3, %r2, 16; add.s32 %r4, %r1, %r3;", "%r4+1040", 16, "ends at byte 1040"),
        ("add.s32 %r2, %r1, 1024; add.s32 %r3, %r2, 0xFFFFFFF0;", "%r3", 16, ""),
        ("add.s32 %r2, %r1, 1024; sub.s32 %r3, %r2, 0xFFFFFFF0;", "%r3", 16, "ends at byte 1056"),
        ("mov.u32 %r2, 256; mul.hi.u32 %r3, %r2, 16; add.s32 %r4, %r3, 64;", "%r1", "%r4", ""),
        ("mov.u32 %r2, 0x80000000; mul.hi.u32 %r3, %r2, 4096; add.s32 %r4, %r3, 0;", "%r1", "%r4", "ends at byte 2048"),
        ("mov.u32 %r2, 0x10000; mul.lo.u32 %r3, %r2, 0x10000; add.s32 %r4, %r3, 64;", "%r1", "%r4", ""),
        ("mov.u32 %r2, 0x10000; mad.lo.u32 %r4, %r2, 0x10000, 64;", "%r1", "%r4", ""),
        ("mov.u32 %r2, 65600; cvt.u16.u32 %rs1, %r2; cvt.u32.u16 %r4, %rs1;", "%r1", "%r4", ""),
        ("mov.u32 %r2, 65600; cvt.u32.u16 %r4, %r2;", "%r1", "%r4", ""),
        ("mov.u32 %r2, -64; cvt.s64.s32 %rd2, %r2; cvt.u32.u64 %r3, %rd2; add.s32 %r4, %r3, 128;", "%r1", "%r4", ""),
        ("mov.u32 %r2, -2; shr.u32 %r3, %r2, 20; and.b32 %r4, %r3, -16;", "%r1", "%r4", "ends at byte 4080"),
        ("mov.u32 %r2, -2; shr.s32 %r3, %r2, 20; add.s32 %r4, %r3, 65;", "%r1", "%r4", ""),
        ("mov.u32 %r2, 3; shl.b32 %r3, %r2, 32; add.s32 %r4, %r3, 64;", "%r1", "%r4", ""),
        ("mov.b64 %rd2, smem; add.s64 %rd3, %rd2, -16; cvt.u32.u64 %r4, %rd3;", "%r4+16", 1024, ""),
    ],
)
def test_constants_have_the_width_of_their_instruction(steps: str, address: str, size: object, result: str) -> None:
    report = check_program(HAND_HEAD + hand(steps, sent(address, size), COMMIT, WAIT))
    assert [one.rule for one in report.found] == ["extent"] * bool(result), str(report)
    assert not result or result in report.found[0].message
    assert "1 transfer (extent)" in report.scope.judged


@pytest.mark.parametrize(
    "steps",
    ["cvt.u16.u32 %rs1, %r1; cvt.u32.u16 %r4, %rs1;", "cvt.u32.u8 %r4, %r1;", "add.sat.s32 %r4, %r1, 2000;"],
)
def test_instructions_that_change_an_unknown_value_leave_it_unknown(steps: str) -> None:
    report = check_program(HAND_HEAD + hand(steps, sent("%r4+2048", 64), COMMIT, WAIT))
    assert not report.found
    assert "1 transfer: extent" in left_of(HAND_HEAD + hand(steps, sent("%r4+2048", 64), COMMIT, WAIT))


def test_bytes_that_an_upper_half_gives_are_those_that_a_barrier_expects() -> None:
    steps = "mov.u32 %r5, 256; mul.hi.u32 %r6, %r5, 16; add.s32 %r7, %r6, 2048;"
    assert rules(kernel(INIT, steps, EXPECT, LOAD.replace("2048", "%r7"))) == []


def test_the_same_name_in_two_kernels() -> None:
    small = hand(sent("smem", 2048), COMMIT, WAIT)
    large = hand(sent("smem", 2048), COMMIT, WAIT, name="k2", size=2048)
    for text in (small + large, large + small):
        (found,) = check_program(HAND_HEAD + text).found
        assert (found.rule, found.facts["function"]) == ("extent", "k")
        assert "2 transfers (extent)" in check_program(HAND_HEAD + text).scope.judged


SOURCE, HELD = sent("smem", 64), "setp.eq.u32 %p1, %r9, 0;"


@pytest.mark.parametrize(
    ("body", "found", "commit", "wait"),
    [
        ((HELD, f"@%p1 {SOURCE}", f"@%p1 {COMMIT}", f"@%p1 {WAIT}"), [], True, True),
        (
            (HELD, f"@%p1 {SOURCE}", "setp.eq.u32 %p1, %r9, 1;", f"@%p1 {COMMIT}", f"@%p1 {WAIT}"),
            [],
            False,
            False,
        ),
        ((HELD, f"@%p1 {SOURCE}", f"@%p1 {COMMIT}", "setp.eq.u32 %p1, %r9, 1;", f"@%p1 {WAIT}"), [], True, False),
        ((HELD, f"@%p1 {SOURCE}", f"@%p1 {COMMIT}", "bra L;", "L:", f"@%p1 {WAIT}"), [], True, True),
        (
            (HELD, f"@%p1 {SOURCE}", f"@%p1 {COMMIT}", "setp.eq.u32 %p1, %r9, 1;", "bra L;", "L:", f"@%p1 {WAIT}"),
            [],
            True,
            False,
        ),
        ((HELD, f"@%p1 {SOURCE}", f"@!%p1 {COMMIT}", f"@!%p1 {WAIT}"), ["commit"], True, False),
        ((HELD, f"@%p1 {SOURCE}", f"@%p1 {COMMIT}", f"@!%p1 {WAIT}"), ["wait"], True, True),
        ((HELD, SOURCE, f"@%p1 {COMMIT}", WAIT), [], False, False),
        ((HELD, SOURCE, f"@%p2 {COMMIT}", COMMIT, WAIT), [], True, True),
        ((HELD, f"@%p1 {SOURCE}", f"@%p2 {COMMIT}", WAIT), [], False, False),
        ((HELD, f"@%p1 {SOURCE}", COMMIT, WAIT), [], True, True),
    ],
)
def test_predicates_of_commits_and_waits(body: tuple[str, ...], found: list[str], commit: bool, wait: bool) -> None:
    report = check_program(HAND_HEAD + hand(*body))
    assert [one.rule for one in report.found] == found, str(report)
    assert ("1 bulk store (commit)" in report.scope.judged) == commit
    assert ("1 bulk store (wait)" in report.scope.judged) == wait


def test_words_of_instructions_that_run_only_without_the_store() -> None:
    (found,) = check_program(HAND_HEAD + hand(HELD, f"@%p1 {SOURCE}", f"@!%p1 {COMMIT}", WAIT)).found
    assert found.message.endswith("the commit_group at line 10 runs only if the store does not run")
    (found,) = check_program(HAND_HEAD + hand(HELD, f"@%p1 {SOURCE}", COMMIT, f"@!%p1 {WAIT}")).found
    assert found.message.endswith("the wait_group at line 11 runs only if the store does not run")


@pytest.mark.parametrize(
    ("body", "judged"),
    [
        (("@%p1 fence.proxy.async;", SOURCE), False),
        (("@%p1 fence.proxy.async;", f"@%p1 {SOURCE}"), True),
        (("@!%p1 fence.proxy.async;", f"@%p1 {SOURCE}"), False),
        (("@%p1 fence.proxy.async;", "@!%p1 fence.proxy.async;", SOURCE), True),
        (("@%p1 fence.proxy.async;", "bra L;", "L:", f"@%p1 {SOURCE}"), True),
        (("@%p1 fence.proxy.async;", "setp.eq.u32 %p1, %r9, 1;", f"@%p1 {SOURCE}"), False),
        (("@%p1 fence.proxy.async;", "fence.proxy.async;", SOURCE), True),
    ],
)
def test_predicates_of_proxy_fences(body: tuple[str, ...], judged: bool) -> None:
    report = check_program(HAND_HEAD + hand(HELD, "st.shared.u32 [smem], %r9;", *body, COMMIT, WAIT))
    assert report.found == (), str(report)
    assert ("1 bulk store (proxy fence)" in report.scope.judged) == judged
    assert any("proxy fence: on some paths" in line for line in report.scope.not_judged) != judged


def test_each_kernel_waits_for_its_own_loads() -> None:
    load = (
        "mbarrier.init.shared::cta.b64 [bar], 1;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;",
        f"cp.async.bulk.shared::cluster.global.{TO_BARRIER} [smem], [%rd1], 64, [bar];",
    )
    waits = "mbarrier.try_wait.parity.shared::cta.b64 %p8, [bar], 0;"
    text = HAND_HEAD + hand(*load, waits) + hand(*load, name="k2")
    (found,) = check_program(text).found
    assert (found.rule, found.facts["function"]) == ("wait", "k2")
    assert "1 load (wait)" in check_program(text).scope.judged
    assert "1 load: wait: it is not known whether a wait of the function waits for the load; line 10" in left_of(text)
    called = HAND_HEAD + hand(*load, waits) + hand(*load, "call foo;", name="k2")
    assert "1 load: wait: it may be in another function" in left_of(called)


@pytest.mark.parametrize("function", [".visible .entry k() {}", ".func f() { .reg .b32 %r<4>; }"])
def test_functions_without_instructions(function: str) -> None:
    assert check_program(HAND_HEAD + function).found == ()


@pytest.mark.parametrize("body", [("trap;",), ("L:", "bra L;")])
def test_a_kernel_that_never_ends_needs_no_wait(body: tuple[str, ...]) -> None:
    text = HAND_HEAD + hand(SOURCE, COMMIT, *body).replace("ret;\n", "")
    assert check_program(text).found == ()
    assert "1 bulk store: commit and wait: there are no paths from the store to the end of the kernel" in left_of(text)


@pytest.mark.parametrize(
    ("fence", "left"), [("", True), (FENCE, False), (CLUSTER[0], False), ("fence.acq_rel.cluster;", False)]
)
def test_an_initialisation_without_a_fence_is_listed(fence: str, left: bool) -> None:
    report = check_program(kernel(INIT, fence, EXPECT, LOAD))
    assert report.found == ()
    assert any("no fence follows mbarrier.init" in line for line in report.scope.not_judged) is left


def test_a_store_with_a_commit_and_a_wait_has_one_walk() -> None:
    """A store under a predicate, whose commit and wait are in loops: both answers come from the same states."""
    loop = ("L:", STORE, "@%p1 {};", "setp.eq.u32 %p2, %r3, 0;", "@%p2 bra L;", "{}")
    for commit, wait, found in (
        (COMMIT, WAIT, []),
        (COMMIT, "membar.gl;", ["wait"]),
        ("membar.gl;", WAIT, ["commit"]),
    ):
        body = [line.format(commit.rstrip(";") if number == 2 else wait) for number, line in enumerate(loop)]
        assert rules(kernel(*body)) == found, body
