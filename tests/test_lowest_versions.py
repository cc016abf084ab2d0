"""The lowest versions with which CI tries the package are the ones that it promises."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRIED_EXTRAS = ("cli", "png", "test")


def promised() -> list[tuple[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = []
    for requirement in [*project["dependencies"], *(r for extra in TRIED_EXTRAS for r in extras[extra])]:
        match = re.fullmatch(r"([A-Za-z0-9_-]+)>=(\d+\.\d+\.\d+)", requirement)
        assert match, f"{requirement}: must be name>=x.y.z"
        bounds.append((match[1], match[2]))
    return bounds


def tried() -> list[tuple[str, str]]:
    text = (ROOT / "tests" / "lowest-versions.txt").read_text(encoding="utf-8")
    return re.findall(r"^([A-Za-z0-9_-]+)==(\S+)", text, re.MULTILINE)


def test_every_lower_bound_is_tried() -> None:
    assert sorted(tried()) == sorted(set(promised()))


def test_ci_tries_them() -> None:
    assert "make lowest" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "--constraint tests/lowest-versions.txt" in (ROOT / "Makefile").read_text(encoding="utf-8")
