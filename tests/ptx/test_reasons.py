"""why_not by every name: rows, variants, modes, opcodes, mnemonics and whole texts."""

from __future__ import annotations

import pytest

from cute_py.ptx.catalog import FORMS
from cute_py.ptx.reasons import CAPABILITIES, MODE_NAMES, VARIANTS, why_not
from cute_py.targets import ARCHITECTURES
from tests.each import each_of
from tests.shares import one_in


@pytest.mark.parametrize("arch", one_in(4, [target.name for target in ARCHITECTURES]))
def test_a_variant_is_answered_as_the_table_does(arch: str) -> None:
    for variant in VARIANTS:
        cell = CAPABILITIES[variant.name][arch]
        assert (why_not(variant.name, arch) is None) == (cell.accepted_from is not None), variant.name


@each_of("name", sorted({form.name for form in FORMS}))
def test_a_row_needs_no_modifiers_to_be_asked_about(name: str) -> None:
    for arch in ("sm_80", "sm_90a", "sm_100a"):
        reason = why_not(name, arch)
        assert reason is None or "needs one of" not in reason
        assert reason is None or not reason.endswith("needs dim")


@each_of("mode", MODE_NAMES)
def test_a_mode_is_asked_about_by_its_name(mode: str) -> None:
    assert "needs sm_90 or newer; got sm_80" in str(why_not(mode, "sm_80"))
    assert why_not(mode, "sm_100a") is None


def test_opcodes_mnemonics_and_texts() -> None:
    assert why_not("cp.async.bulk.tensor", "sm_90a") is None
    assert why_not("cp.async.bulk.tensor", "sm_80") == "cp.async.bulk.tensor needs sm_90 or newer; got sm_80"
    mnemonic = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    assert why_not(mnemonic, "sm_90a") is None
    assert why_not(f"{mnemonic} [%r1], [%rd1, {{%r2, %r3}}], [%r4];", "sm_90a") is None
    assert "gather4" in str(why_not("load", "sm_90a", dim=2, mode="tile::gather4"))
    assert why_not("load", "sm_90a", mode="im2col") is None
