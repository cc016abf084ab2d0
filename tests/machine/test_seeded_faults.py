"""Faults that are put into a kernel: where they may stand, and that each changes its lines alone."""

from __future__ import annotations

import random

import pytest

from benchmarks.machine.fault_sites import KINDS, Fault
from tests.machine.test_hangs import CLUSTER, COPY, REGISTERS_POOL, program, run

TEXTS = {
    "copy": program(COPY.replace("WAIT: mbarrier", "WAIT:\nmbarrier")),
    "cluster": program(CLUSTER),
    "registers": program(REGISTERS_POOL, 384, ".minnctapersm 1"),
}
WITH = {"bytes": 4, "counts": 2, "parity": 1, "stage index": 2, "missing fence": 1, "missing wait": 1,
        "missing bar.sync": 0, "missing load": 1, "not initialised": 1}  # fmt: skip
"""Kind -> faults of the copy; an instruction that shares its line with a label is no site."""


def test_every_kind_has_its_sites() -> None:
    found = {kind: len(list(make(TEXTS["copy"]))) for kind, make in KINDS.items()}
    assert {kind: found[kind] for kind in WITH} == WITH
    assert len(list(KINDS["cluster sync"](TEXTS["cluster"]))) == 3
    assert len(list(KINDS["register pool"](TEXTS["registers"]))) == 7


@pytest.mark.parametrize("name", list(TEXTS))
def test_a_fault_changes_its_lines_and_nothing_else(name: str) -> None:
    text = TEXTS[name]
    before = text.split("\n")
    for kind, make in KINDS.items():
        for what, lines in make(text):
            after = Fault(name, kind, what, lines).put_into(text).split("\n")
            assert len(after) == len(before)
            assert {i for i, (x, y) in enumerate(zip(before, after, strict=True), 1) if x != y} <= set(lines)


def test_faults_of_the_copy_are_found() -> None:
    dice = random.Random(3)
    for kind in ("bytes", "counts", "not initialised"):
        what, lines = dice.choice(list(KINDS[kind](TEXTS["copy"])))
        found = run(Fault("copy", kind, what, lines).put_into(TEXTS["copy"]))
        assert not found.ok, (kind, what)
