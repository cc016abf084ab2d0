"""`ptx`, `why_not`: what is written, and what is refused before an assembler sees it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import EmissionError, InvalidTypeError, InvalidValueError, ParseError, UnknownFactError
from cute_py.ptx.catalog import FORMS
from cute_py.ptx.check import examine, verdict
from cute_py.ptx.reasons import VARIANTS, why_not
from cute_py.ptx.render import check_cluster_mask, complete, ptx
from cute_py.targets import ARCHITECTURES
from tests.each import each_of
from tests.oracle.emission_catalogue import COPY_TEMPLATES, instances, ranks
from tests.oracle.records import rows
from tests.ptx.texts import random_texts

LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


@each_of("variant", VARIANTS, ids=lambda v: v.name)
def test_what_is_emitted_is_canonical_and_exists_somewhere(variant: object) -> None:
    text = variant.text  # type: ignore[attr-defined]
    examined = examine(text)
    assert examined.canonical
    assert examined.canonical_text == text
    assert any(examined.min_version(row.name) is not None for row in ARCHITECTURES)


@given(seed=st.integers(0, 10_000))
def test_the_canonical_text_has_the_same_verdict(seed: int) -> None:
    """Order is not the assembler's business: canonical text and text as written agree on every architecture."""
    for text in random_texts(5, seed):
        try:
            examined = examine(text)
        except (ParseError, UnknownFactError):
            continue
        if examined.errors:
            assert not any(verdict(text, row.name).assembles for row in ARCHITECTURES)
            continue
        again = examine(examined.canonical_text)
        for row in ARCHITECTURES:
            assert (again.min_version(row.name) or (0, 0)) <= (examined.min_version(row.name) or (99, 0))


@given(seed=st.integers(0, 10_000))
def test_a_newer_version_takes_what_an_older_took(seed: int) -> None:
    for text in random_texts(5, seed):
        try:
            examined = examine(text)
        except UnknownFactError:
            continue
        for row in ARCHITECTURES:
            first = examined.min_version(row.name)
            for version in ((8, 0), (8, 6), (9, 0)):
                assert (not examined.reasons(row.name, version)) == (first is not None and first <= version)


def test_the_isa_order_of_all_modifiers_of_a_load() -> None:
    text = ptx("load", dim=3, mode="im2col", multicast=True, cta_group=2, cache_hint=True)
    assert text == (
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster"
        ".cta_group::2.L2::cache_hint [%r1], [%rd1, {%r10, %r11, %r12}], [%r2], {%h2}, %h1, %rd3;"
    )


def test_operands_are_placed_by_name() -> None:
    text = ptx(
        "load",
        dim=2,
        multicast=True,
        predicate="@%p1",
        operands={"destination": "%r7", "tensor": "%rd9", "coords": (0, "%r3"), "barrier": "smem", "mask": 3},
        cluster_size=2,
    )
    assert text == f"@%p1 {LOAD}.multicast::cluster [%r7], [%rd9, {{0, %r3}}], [smem], 3;"


@pytest.mark.parametrize(
    ("mask", "size", "count"),
    [
        (0b11, 2, 0),
        (0b100, 2, 1),
        (0xFFFF, 16, 0),
        (0x10000, 16, 1),
        (0x10000, None, 1),
        (0, 4, 1),
        (1, 1, 0),
        (0b10, 1, 1),
    ],
)
def test_masks_at_the_border(mask: int, size: int | None, count: int) -> None:
    assert len(check_cluster_mask(mask, size)) == count


@each_of(
    ("form", "modifiers", "operands", "words"),
    [
        ("load", {"dim": 2}, {"coords": (0,)}, "1 coordinates; .2d in mode tile takes 2"),
        ("load", {"dim": 2, "mode": "tile::gather4"}, {"coords": (0, 1)}, "takes 5"),
        ("load", {"dim": 4, "mode": "im2col"}, {"offsets": (1,)}, "1 im2col offsets; .4d in mode im2col takes 2"),
        ("load", {"dim": 3, "mode": "im2col::w"}, {"offsets": (1,)}, "takes 2"),
        ("load", {"dim": 2, "mode": "im2col"}, {}, "the im2col modes require 3d to 5d"),
        ("load", {"dim": 3, "mode": "tile::gather4"}, {}, "tile::gather4 and tile::scatter4 require 2d"),
        ("load", {"dim": 6}, {}, "load: dim = 6"),
        ("load", {"dim": 2, "cta_group": True}, {}, "True, but a slot with several choices needs the name of one"),
        (
            "load",
            {"dim": 2, "dst": "shared::cta", "multicast": True},
            {},
            "multicast::cluster requires the destination shared::cluster",
        ),
        ("load", {}, {}, "load needs dim"),
        ("store", {"dim": 2, "multicast": True}, {}, "no modifier named multicast"),
        ("store", {"dim": 2}, {"barrier": "%r1"}, "no operand barrier"),
        ("reduce", {"dim": 2, "op": "sub"}, {}, "reduce: op = sub"),
        ("tensormap.replace", {"field": "elemtype", "spaces": "global"}, {"value": 16}, "expected 0..15"),
        ("tensormap.replace", {"field": "box_dim", "spaces": "global"}, {"ordinal": 5}, "ordinal = 5; expected 0..4"),
        ("tensormap.cp_fenceproxy", {"scope": "gpu"}, {"size": 64}, "size = 64; expected 128"),
        ("bulk.load", {}, {"size": 24}, "must be a multiple of 16"),
        ("fence.proxy.async", {"restrict": "sync_restrict::shared::cta"}, {}, "no modifier named restrict"),
    ],
)
def test_refused_before_an_assembler_sees_it(
    form: str, modifiers: dict[str, object], operands: dict[str, object], words: str
) -> None:
    with pytest.raises(EmissionError) as caught:
        ptx(form, operands=operands, **modifiers)  # type: ignore[arg-type]
    assert words in str(caught.value)


@each_of("size", (-1, 0, 17, 1 << 70))
@each_of("operands", ({}, {"mask": 1}))
@each_of("multicast", (False, True))
def test_no_cluster_has_more_than_16_ctas(size: int, operands: dict[str, int], multicast: bool) -> None:
    with pytest.raises(EmissionError, match=rf"cluster_size = {size} CTAs; must be 1 to 16"):
        ptx("load", dim=2, multicast=multicast, cluster_size=size, operands=operands)


@pytest.mark.parametrize(
    ("operand", "low", "high", "bits"), (("coords", -(1 << 31), (1 << 32) - 1, 32), ("offsets", -(1 << 15), 65535, 16))
)
def test_numbers_fit_their_registers(operand: str, low: int, high: int, bits: int) -> None:
    rest = [0, 0] if operand == "coords" else []
    for number in (low, high):
        assert f"{{{number}" in ptx("load", dim=3, mode="im2col", operands={operand: [number, *rest]})
    for number in (low - 1, high + 1):
        with pytest.raises(EmissionError, match=rf"{operand}\[0\] = {number}; must fit in {bits} bits"):
            ptx("load", dim=3, mode="im2col", operands={operand: [number, *rest]})


def test_a_mask_beyond_the_cluster_is_refused() -> None:
    with pytest.raises(EmissionError, match="the multicast mask 0x4 names CTA 2, but the cluster has 2 CTAs"):
        ptx("load", dim=2, multicast=True, operands={"mask": 0b100}, cluster_size=2)
    with pytest.raises(EmissionError, match="the multicast mask 0x10000 names CTA 16, but the cluster has 16 CTAs"):
        ptx("load", dim=2, multicast=True, operands={"mask": 1 << 16})


def test_arch_refuses_what_it_does_not_have() -> None:
    with pytest.raises(EmissionError, match="needs sm_90 or newer; got sm_89"):
        ptx("load", dim=2, arch="sm_89")
    with pytest.raises(EmissionError, match=r"needs PTX 8.6 or newer; got 8.5"):
        ptx("load", dim=2, dst="shared::cta", arch="sm_90", version=(8, 5))
    assert ptx("load", dim=2, dst="shared::cta", arch="sm_90", version=(8, 6))


def test_why_not_takes_names_texts_and_mnemonics() -> None:
    assert why_not("load", "sm_90", dim=2) is None
    assert why_not(f"{LOAD} [%r1], [%rd1, {{%r10, %r11}}], [%r2];", "sm_90") is None
    assert why_not(LOAD, "sm_90") is None
    assert why_not(LOAD, "sm_80") == "cp.async.bulk.tensor needs sm_90 or newer; got sm_80"
    assert why_not("load", "sm_90", dim=7) == "load: dim = 7"
    assert why_not("fence.proxy.tensormap::generic.acquire.gpu;", "sm_90a") == "got 0 operands; expected map, size"
    assert why_not("fence.proxy.tensormap::generic.acquire.gpu", "sm_90a") is None
    assert complete("mbarrier.inval.shared::cta.b64") == "mbarrier.inval.shared::cta.b64 [%r2];"


def test_sm_70_is_text_only() -> None:
    reason = why_not("ld.global.nc", "sm_70", vector="v4")
    assert reason == "sm_70 can only be rendered as text, because its assembler (ptxas 13.0) no longer supports it"
    assert why_not("ld.global.nc", "sm_75", vector="v4") is None


def test_unknown_names() -> None:
    with pytest.raises(InvalidValueError, match="is not an instruction form"):
        ptx("loads", dim=2)
    with pytest.raises(InvalidValueError, match="is not a known architecture"):
        why_not("load", "sm_91", dim=2)
    with pytest.raises(InvalidValueError, match="only names of forms accept modifiers"):
        why_not(LOAD, "sm_90", dim=2)
    with pytest.raises(UnknownFactError):
        why_not("add.s32 %r1, %r2, %r3;", "sm_90")
    with pytest.raises(ParseError):
        examine("load [")


def test_forms_are_distinct_and_sourced() -> None:
    assert len({form.name for form in FORMS}) == len(FORMS)
    for form in FORMS:
        assert form.section and form.assembled and form.executed
        slots = [slot.name for slot in form.slots]
        assert len(set(slots)) == len(slots)
        tokens = [choice for slot in form.slots for choice in slot.choices if slot.name != "spaces"]
        assert len(set(tokens)) == len(tokens), form.name


def test_recorded_texts_are_what_their_modifiers_render() -> None:
    """Every recorded form that exists somewhere, from its family and its modifiers."""
    families = ("bulk.tensor.load", "bulk.tensor.store", "bulk.tensor.reduce", "bulk.tensor.prefetch", "bulk")
    count = 0
    for row in rows("ptx_matrix"):
        if row["kind"] != "form" or row["family"] not in (*families, "tensormap.replace") or not row["accepted_on"]:
            continue
        if row["family"] == "bulk" and "dst" not in row["tags"]:
            continue  # its modifiers alone do not say which bulk form it is
        operands = {"value": 0} if row["text"].endswith(", 0;") and row["family"] == "tensormap.replace" else {}
        mixed = row["family"] == "bulk"  # an empty tag may be that of another row
        chosen = {name: choice for name, choice in row["tags"].items() if choice or not mixed}
        assert ptx(row["family"], operands=operands, **chosen) == row["text"]
        count += 1
    assert count > 250


@each_of("value", (True, False, None, "", "x", 0))
@each_of(("form", "name"), [("load", "bogus"), ("elect.sync", "dst"), ("bulk.prefetch", "multicast")])
def test_an_unknown_modifier_is_refused_whatever_its_value(form: str, name: str, value: Any) -> None:
    with pytest.raises(EmissionError, match=f"{re.escape(form)} has no modifier named {name}"):
        ptx(form, **({"dim": 2} if form == "load" else {}), **{name: value})


def test_canonical_false_is_the_order_of_the_templates() -> None:
    """Each template of the emission page that is an instruction, its operands filled in, at every rank that it has."""
    rendered = {
        0: ("load", {}),
        1: ("load", {"mode": "im2col"}),
        2: ("load", {"mode": "tile::gather4", "dst": "shared::cta"}),
        3: ("store", {}),
        4: ("store", {"mode": "tile::scatter4"}),
        9: ("bulk.load", {}),
        10: ("bulk.store", {}),
        11: ("bulk.peer", {}),
    }
    assert [n for n, template in enumerate(COPY_TEMPLATES) if template.tail] == list(rendered)
    count = 0
    for number, (form, modifiers) in rendered.items():
        template = COPY_TEMPLATES[number]
        dims = [{"dim": rank} for rank in ranks(template)] or [{"dim": 2} if ".tensor." in template.literal else {}]
        for dim, text in zip(dims, instances(template), strict=True):
            assert ptx(form, canonical=False, **dim, **modifiers) == text
            count += 1
    assert count == 5 + 3 + 1 + 5 + 1 + 3
    tails = ".im2col.multicast::cluster.L2::cache_hint [%r1]"
    whole = ptx("load", dim=3, mode="im2col", multicast=True, cache_hint=True, canonical=False)
    assert f".mbarrier::complete_tx::bytes{tails}" in whole
    assert examine(whole).canonical_text == ptx("load", dim=3, mode="im2col", multicast=True, cache_hint=True)
    with pytest.raises(InvalidTypeError, match="canonical"):
        ptx("load", dim=2, canonical=0)  # type: ignore[arg-type]


def test_an_opcode_or_a_family_names_its_rows() -> None:
    assert ptx("cp.async.bulk.tensor", dim=2, src="shared::cta") == ptx("store", dim=2)
    assert ptx("cp.async.bulk", dst="global", src="shared::cta") == ptx("bulk.store")
    assert why_not("bulk.tensor.load", "sm_90", dim=2) is None
    with pytest.raises(EmissionError):
        ptx("cp.async.bulk.tensor", dim=7)
