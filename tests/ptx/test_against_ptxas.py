"""The table against the assembler itself: one instruction per form and one refusal per form, and random texts.

Skipped where there is no ptxas. Many instructions go into each call; the whole file takes a few seconds.
"""

from __future__ import annotations

import pytest

from benchmarks.assembler import assemble_each
from cute_py.errors import UnknownFactError
from cute_py.ptx.catalog import ABSENT, FORMS
from cute_py.ptx.catalog import form as find_form
from cute_py.ptx.check import examine, verdict
from cute_py.ptx.module import assemble_module, find_ptxas, ptxas_version
from cute_py.ptx.reasons import VARIANTS
from cute_py.targets import ARCHITECTURES, NEWEST_VERSION, Version, architecture
from cute_py.tma.dialect.lowering import module_of
from tests.ptx.refusals import REFUSALS
from tests.ptx.texts import SAID, random_texts
from tests.shares import in_part

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")
pytestmark = needs_ptxas
RANDOM_TARGETS = ("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_110f", "sm_120a")
TARGETS = ("sm_90a", "sm_100a", "sm_120a")


def differences(texts: list[str], arch: str, version: Version = NEWEST_VERSION) -> list[str]:
    said = assemble_each(texts, arch, version)
    return [
        f"{text} on {arch} at {version}: ours {verdict(text, arch, version).why_not}, ptxas {message}"
        for text, message in zip(texts, said, strict=True)
        if verdict(text, arch, version).assembles != (message is None)
    ]


@pytest.mark.parametrize("arch", TARGETS)
def test_one_instruction_per_variant(arch: str) -> None:
    assert differences([variant.text for variant in VARIANTS], arch) == []


def test_every_form_has_a_variant() -> None:
    assert {form.name for form in FORMS} <= {variant.form for variant in VARIANTS}


def refused(form: str, text: str, arch: str) -> bool:
    """Refused, or (for a row that says it is partial) not known."""
    try:
        return not verdict(text, arch).assembles
    except UnknownFactError:
        return find_form(form).partial


@pytest.mark.parametrize("arch", TARGETS)
def test_one_refusal_per_form(arch: str) -> None:
    """Each refusal is refused by both."""
    said = assemble_each([text for _, text in REFUSALS], arch, NEWEST_VERSION)
    assert [text for (_, text), message in zip(REFUSALS, said, strict=True) if message is None] == []
    assert [text for form, text in REFUSALS if not refused(form, text, arch)] == []


def test_the_refusals_cover_every_form() -> None:
    assert {form.name for form in FORMS} == {name for name, _ in REFUSALS}


def test_spellings() -> None:
    said = assemble_each(list(SAID), "sm_100a", NEWEST_VERSION)
    assert {text: message is None for text, message in zip(SAID, said, strict=True)} == SAID


@pytest.mark.slow
@pytest.mark.parametrize("arch", RANDOM_TARGETS)
def test_random_texts(arch: str) -> None:
    assert differences(random_texts(1200, seed=7), arch) == []


@pytest.mark.slow
@pytest.mark.parametrize("arch", ("sm_80", "sm_90a", "sm_100a"))
def test_the_first_version_of_each_variant(arch: str) -> None:
    """Taken from its first version on, and not with the one before."""
    known = [(7, 0), (7, 1), (7, 4), (7, 5), (7, 8), (8, 0), (8, 1), (8, 3), (8, 6), (8, 7), (8, 8)]
    floor = architecture(arch).floor
    assert floor is not None
    for version in known:
        if version >= floor:
            assert differences([variant.text for variant in VARIANTS], arch, version) == []


WIDE = (
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, %r4}, %q1;",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rq1;",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rd1;",
)


def test_registers_of_128_bits() -> None:
    """By either name that compilers give them, on every architecture."""
    for row in ARCHITECTURES:
        if row.floor is not None:
            assert differences(list(WIDE), row.name) == []
    assert verdict(WIDE[0], "sm_100").assembles
    assert not verdict(WIDE[3], "sm_100").assembles


@in_part(4)
def test_the_floor_of_each_architecture(every: int) -> None:
    """An empty kernel assembles from the floor on, and not with the version before."""
    versions = [(6, 0), (6, 3), (7, 0), (7, 1), (7, 4), (7, 8), (8, 0), (8, 6), (8, 7), (8, 8), (9, 0)]
    for row in ARCHITECTURES[::every]:
        if row.floor is None:
            assert not assemble_module(module_of("", row.name), row.name)[0]
            continue
        assert assemble_module(module_of("", row.name, row.floor), row.name)[0], row
        before = [version for version in versions if version < row.floor]
        assert not assemble_module(module_of("", row.name, before[-1]), row.name)[0], row


def test_what_is_said_to_be_absent_is_absent() -> None:
    tails = {"barrier.cluster.sync": ";"}
    texts = [f"{name}{tails.get(name, '.global.shared::cta.bulk_group [%rd1], [%r1], %r2;')}" for name in ABSENT]
    assert all(message for message in assemble_each(texts, "sm_100a", NEWEST_VERSION))
    assert not any(verdict(text, "sm_100a").assembles for text in texts)


def test_the_comparison_can_fail() -> None:
    assert examine("fence.proxy.async;").min_version("sm_90") == (8, 0)
    assert assemble_each(["fence.proxy.async;", "fence.proxy.nothing;"], "sm_90", NEWEST_VERSION)[1] is not None
    assert ptxas_version()
