"""What version 0.1 deprecated is gone in 0.2, and a name that the interface promises stays."""

from __future__ import annotations

import importlib

import pytest

import cute_py as cute
from cute_py import tma, tmem
from cute_py.atom import SmemDescriptor


@pytest.mark.parametrize(
    ("package", "former"),
    [
        *((tmem, name) for name in ("promised", "CopyPlan", "CanonicalOperand", "canonical_operand")),
        *((tma, name) for name in ("Examination", "TmaTiledCopy", "birth_sequence", "make_tiled_copy")),
        *((cute, name) for name in ("thread_view", "thread_value_view")),
    ],
)
def test_a_name_that_was_deprecated_is_gone(package: object, former: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{former}'"):
        getattr(package, former)


@pytest.mark.parametrize("former", ["run", "copy_atom", "gbasis"])
def test_a_package_that_was_deprecated_is_gone(former: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"cute_py.tma.{former}")


def test_the_planner_of_the_reference_page() -> None:
    request = tmem.demonstration_copy().request
    assert request.compat == "reference"
    found = tmem.check_copy(tmem.CopyRequest(request.dst, request.src, compat="seed"))[0]
    assert "compat = 'seed'; must be one of" in found.message


def test_a_matrix_descriptor_has_two_names() -> None:
    assert tmem.MatrixDescriptor is SmemDescriptor


def test_a_name_that_never_was() -> None:
    with pytest.raises(AttributeError, match=r"module 'cute_py.tmem' has no attribute 'expected'"):
        _ = tmem.expected  # type: ignore[attr-defined]
