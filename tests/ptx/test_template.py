"""Templates of inline assembly, which no module surrounds: what check judges, and what it lists as not judged."""

from __future__ import annotations

import pytest

from cute_py.errors import ParseError
from cute_py.ptx import check_program
from tests.each import each_of

WAIT = """{
.reg .pred P1;
AGAIN%=:
mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;
@!P1 bra AGAIN%=;
}"""
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%1], [%0], %2;"
TENSOR = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%0], [%1, {%3, %4}], [%2], %5;"
)


@each_of(
    ("text", "arch", "rules"),
    [
        (WAIT, None, []),
        (WAIT, "sm_90a", []),
        (WAIT, "sm_80", ["target"]),
        (TENSOR, None, []),
        (TENSOR, "sm_100a", []),
        ("mov.u32 %0, %%laneid;\nfence.proxy.async;", None, []),
        ("mbarrier.init.shared::cta.b64 %0, %1;", None, ["instruction"]),
        (STORE.replace("%2", "20"), None, ["instruction"]),
        (f"st.shared.b32 [%0], %3;\n{STORE}", None, ["proxy_fence"]),
        (f"st.shared.b32 [%0], %3;\nfence.proxy.async;\n{STORE}", None, []),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1048576;", None, ["expect_tx_range"]),
    ],
)
def test_what_the_template_itself_shows_is_judged(text: str, arch: str | None, rules: list[str]) -> None:
    report = check_program(text, arch)
    assert [one.rule for one in report.found] == rules, str(report)
    assert not any("_op_" in part for part in (str(report), *(str(one.facts) for one in report.found)))
    assert any("target: the text names no architecture" in one for one in report.scope.not_judged) is (arch is None)
    assert report.target == (arch or "")


def test_what_the_code_around_the_template_decides_is_listed() -> None:
    left = check_program(f"{WAIT}\n{STORE}").scope.not_judged
    for part in (
        "2 instructions: value of its operands: ",
        "commit and wait: they may be in another function",
        "parity: ",
    ):
        assert any(part in one for one in left), left
    report = check_program("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group %0;", "sm_90a")
    said = "1 instruction: cp.async.bulk.wait_group: the code around the template sets a number that it needs; line 2"
    assert (report.found, dict(report.counts)) == ((), {"bulk.commit_group": 1})
    assert said in report.scope.not_judged
    wgmma = check_program("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;")
    assert any(one.startswith("1 wgmma instruction: ") for one in wgmma.scope.not_judged)


@each_of("text", ["", "hello; world;", "mov.u32 %0, 1;", "{ fence.proxy.async; } }", "fence.proxy.async"])
def test_other_texts_are_no_templates(text: str) -> None:
    with pytest.raises(ParseError, match="not a PTX module"):
        check_program(text)


def test_a_module_is_no_template() -> None:
    with pytest.raises(ParseError, match=r"not a PTX module: the \.target line is missing"):
        check_program(f".version 9.0\n.entry k() {{ {STORE} }}")
