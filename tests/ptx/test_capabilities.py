"""The capability table: edges of architecture and version, and that it is the table of the verdicts."""

from __future__ import annotations

import pytest

from cute_py.errors import InvalidValueError
from cute_py.ptx.check import verdict
from cute_py.ptx.reasons import CAPABILITIES, VARIANTS, capability
from cute_py.targets import ARCHITECTURES, Targets, architecture, version_of, version_text
from tests.each import each_of
from tests.shares import in_part


@in_part(6)
def test_every_cell_is_the_verdict(every: int) -> None:
    for variant in VARIANTS:
        for row in ARCHITECTURES[::every]:
            cell = CAPABILITIES[variant.name][row.name]
            ours = verdict(variant.text, row.name)
            assert cell.accepted_from == ours.min_version
            assert cell.why_not == ours.why_not
            assert (cell.accepted_from is None) == (cell.why_not is not None)


@each_of(
    ("variant", "accepted"),
    [
        ("load tile shared::cluster", {"sm_89": None, "sm_90": (8, 0), "sm_90a": (8, 0), "sm_120a": (8, 7)}),
        ("load tile shared::cta", {"sm_90": (8, 6), "sm_90a": (8, 6), "sm_100": (8, 6)}),
        ("load tile::gather4 shared::cta", {"sm_90a": None, "sm_100": (8, 6), "sm_120": (8, 7)}),
        ("load tile::gather4 shared::cluster", {"sm_100": None, "sm_100a": (8, 6), "sm_103f": (8, 8), "sm_120a": None}),
        ("load im2col::w::128 shared::cta", {"sm_100": None, "sm_110a": (9, 0), "sm_121a": None}),
        ("load tile shared::cta cta_group", {"sm_90a": None, "sm_100f": (8, 8), "sm_120f": None}),
        ("store tile::scatter4", {"sm_90a": None, "sm_100a": (8, 6), "sm_103": None}),
        ("prefetch im2col::w", {"sm_100": None, "sm_100a": (8, 6)}),
        ("replace rank global", {"sm_90": None, "sm_90a": (8, 3), "sm_100": None, "sm_121f": (8, 8)}),
        ("replace swizzle_mode 96B", {"sm_103a": (8, 8), "sm_103f": None, "sm_100a": None}),
        ("replace elemtype 13..15", {"sm_90a": None, "sm_100a": (8, 7)}),
        ("tensormap.cp_fenceproxy", {"sm_89": None, "sm_90": (8, 3)}),
        ("setmaxnreg", {"sm_90": None, "sm_90a": (8, 0), "sm_120a": (8, 7)}),
        ("cp.async", {"sm_75": None, "sm_80": (7, 0), "sm_89": (7, 8)}),
        ("ld.global.nc", {"sm_70": None, "sm_75": (6, 3)}),
    ],
)
def test_where_a_variant_begins(variant: str, accepted: dict[str, tuple[int, int] | None]) -> None:
    assert {arch: capability(variant, arch).accepted_from for arch in accepted} == accepted


def test_unknown_names() -> None:
    with pytest.raises(InvalidValueError, match="is not a variant"):
        capability("load", "sm_90")
    with pytest.raises(InvalidValueError, match="'sm_91' is not a known architecture"):
        capability("load tile shared::cta", "sm_91")
    with pytest.raises(InvalidValueError, match="is not a PTX version"):
        version_of("8")
    assert version_text(version_of("8.6")) == "8.6"


def test_family_suffixes() -> None:
    """An f variant has what its family has; only the a variant of one chip has what is that chip's alone."""
    assert Targets.TMA_FULL.has(architecture("sm_110f"))
    assert not Targets.TMA_FULL.has(architecture("sm_110"))
    assert Targets.ONLY_103A.has(architecture("sm_103a"))
    assert not Targets.ONLY_103A.has(architecture("sm_103f"))
    assert {target for target in Targets if not any(target.has(row) for row in ARCHITECTURES)} == set()
