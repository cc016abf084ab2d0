"""What `violations` and `cute-py desc check` judged."""

import json

import pytest

from cute_py import tma
from cute_py.cli import main
from cute_py.ptx import check_program
from cute_py.tma.descriptor.limits import RULES

CALL = ["desc", "check", "--dtype", "float16", "--dims", "64,8", "--strides", "128", "--box", "64,8"]


def test_the_list_says_what_was_judged() -> None:
    found = tma.violations(tma.TensorMapTiled(6, 4096, (64, 8), (128,), (64, 8)), arch="sm_100a")
    assert found == []
    assert found.scope.complete
    assert found.scope.judged == (f"{len(RULES)} rules of tensor maps on sm_100a",)


def test_a_value_of_unknown_bits_is_not_judged() -> None:
    found = tma.violations(tma.TensorMapTiled(6, 4096, (64, 8), (128,), (64, 8), swizzle=4), arch="sm_100a")
    assert not found.scope.complete
    assert "1 value: the bits of a tensor map that encode" in found.scope.not_judged[0]


def test_the_command_ends_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(CALL) == 0
    assert capsys.readouterr().out.splitlines() == [
        "legal on sm_90a",
        f"judged: {len(RULES)} rules of tensor maps on sm_90a",
    ]
    main([*CALL, "--json"])
    scope = json.loads(capsys.readouterr().out)["scope"]
    assert scope["complete"]
    assert scope["not_judged"] == []


def test_a_program_without_instructions_of_the_rules_is_not_approved() -> None:
    report = check_program(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(){ ret; }\n")
    assert "no rule is broken" not in str(report)
    assert "nothing to judge" in str(report)
