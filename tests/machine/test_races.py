"""Faults of memory that a run may survive: each is found in a kernel that has it, and not in its mended twin."""

from __future__ import annotations

import pytest

from cute_py.machine.judgement.rules import CURES, RULES
from tests.machine.faulty_kernels import KERNELS

NAMES = list(KERNELS)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_found(name: str) -> None:
    kernel = KERNELS[name]
    run = kernel.run(mended=False)
    found = [one for one in run.diagnostics if one.rule == kernel.rule]
    assert found, run.explain()
    assert {one.severity for one in found} == {kernel.severity}
    assert run.ok == (kernel.severity != "error")
    assert all(one.source.startswith("PTX ISA") and one.facts["line"] for one in found)
    assert all(one.rule == kernel.rule or one.severity == "warning" for one in run.diagnostics), run.explain()


@pytest.mark.parametrize("schedule", ["both", 1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_its_twin_is_clean(name: str, schedule: str | int) -> None:
    run = KERNELS[name].run(mended=True, schedule=schedule)
    assert not run.diagnostics, run.explain()


@pytest.mark.parametrize("schedule", ["lazy", 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_found_under_other_schedules(name: str, schedule: str | int) -> None:
    kernel = KERNELS[name]
    run = kernel.run(mended=False, schedule=schedule)
    assert kernel.rule in [one.rule for one in run.diagnostics], run.explain()


@pytest.mark.parametrize("name", [name for name in NAMES if KERNELS[name].cure])
def test_a_change_that_cures_it_is_offered(name: str) -> None:
    kernel = KERNELS[name]
    found = [one for one in kernel.run(mended=False).diagnostics if one.rule == kernel.rule]
    assert any(kernel.cure in str(fix) for one in found for fix in one.fixes), found[0].facts


def test_without_judgement_a_run_only_ends() -> None:
    for kernel in KERNELS.values():
        assert not kernel.run(mended=False, judge=False).diagnostics


def test_each_rule_has_a_kernel_and_each_cure_a_rule() -> None:
    assert {kernel.rule for kernel in KERNELS.values()} == set(RULES)
    assert set(CURES) <= set(RULES)
