"""A sample of the recorded calls, all recorded texts and the public surface, compared with the record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.characterisation.compare import reviewed, surface_that_differs, texts_that_differ
from tests.characterisation.kernels import anonymous
from tests.characterisation.record import environment, load

ROOT = Path(__file__).parents[2]

same_machine = pytest.mark.skipif(
    load().environment != environment(), reason="recorded with other versions of Python or of its packages"
)
"""Texts of errors of numpy and sympy are part of some outcomes."""


@same_machine
def test_a_tenth_of_the_calls_end_as_recorded() -> None:
    """`python -m tests.characterisation` compares all of them."""
    command = [sys.executable, "-m", "tests.characterisation", "--one-in", "10", "--names", "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@same_machine
def test_texts_are_as_recorded() -> None:
    assert texts_that_differ(load()) == []


@same_machine
def test_the_public_surface_is_as_recorded() -> None:
    assert surface_that_differs() == []


def test_a_reviewed_line_takes_the_same_kind_only() -> None:
    plain, marked = reviewed("# a comment\n\na[.]b / new\n! a[.]b / new\n")
    assert plain.takes("a.b", "the new text", True)
    assert not plain.takes("a.b", "the new text", False)
    assert marked.takes("a.b", "the new text", False)
    assert not plain.takes("a.bc", "the new text", True)


def test_identifiers_of_kernels_do_not_count() -> None:
    a = 'int first = 1; /* why */ asm volatile("mov.b32 %0, 1;" : "=r"(first));'
    b = 'int  other = 1;\nasm volatile("mov.b32 %0, 1;" : "=r"(other)); // because'
    assert anonymous(a) == anonymous(b)
    assert anonymous(a) != anonymous(a.replace("b32", "b64"))


@same_machine
def test_outcomes_are_the_same_in_another_process() -> None:
    code = (
        "import json; from tests.characterisation.outcomes import outcomes, sample, tasks;"
        "found = outcomes(sample(tasks(), 60));"
        "print(json.dumps({f'{t.name} {t.number}': [r['kind'], r['hash']] for t, r in found.items()}))"
    )
    found = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
