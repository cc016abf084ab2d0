"""Names of earlier versions work for one release, with a warning."""

from __future__ import annotations

import pytest

from cute_py import tma, tmem


@pytest.mark.parametrize(
    ("package", "former", "name"),
    [(tmem, "promised", "expected_tmem"), (tmem, "CopyPlan", "CpPlan"), (tma, "Examination", "ParsedInstruction")],
)
def test_a_former_name_warns_and_works(package: object, former: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{former} is .*\.{name}; the old name ends with the next release"):
        assert getattr(package, former) is getattr(package, name)


def test_the_planner_of_the_reference_page() -> None:
    request = tmem.demonstration_copy().request
    with pytest.warns(DeprecationWarning, match='compat="seed" is compat="reference"'):
        assert tmem.CopyRequest(request.dst, request.src, compat="seed") == request


def test_a_name_that_never_was() -> None:
    with pytest.raises(AttributeError, match=r"module 'cute_py.tmem' has no attribute 'expected'"):
        _ = tmem.expected  # type: ignore[attr-defined]
