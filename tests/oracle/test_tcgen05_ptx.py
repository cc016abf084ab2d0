"""What ptxas said of every recorded tcgen05 instruction, on every architecture, against the instruction table."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.assembler import assemble_each
from cute_py.errors import UnknownFactError
from cute_py.ptx.module import find_ptxas
from cute_py.targets import ARCHITECTURES, version_text
from cute_py.tmem import examine, why_not_instruction
from tests.oracle import tcgen05_mma
from tests.oracle.records import rows, tally

Row = dict[str, Any]


def holds(row: Row) -> bool:
    """Accepted or not on each architecture, and from which PTX version on."""
    found = examine(row["text"])
    for arch, said in row["archs"].items():
        if (not found.why_not(arch)) != said["ok"]:
            return False
        version = said.get("min_version") if said["ok"] else None
        if version and found.min_version(arch) != tuple(map(int, version.split("."))):
            return False
    return True


def test_every_row() -> None:
    table = [row for row in rows("ptx_matrix") if "tcgen05" in row["family"]]
    wrong, unknown = [], []
    for row in table:
        try:
            if not holds(row):
                wrong.append(row["id"])
        except UnknownFactError:
            unknown.append(row["id"])
    tally("ptx_matrix, tcgen05 families", len(table) - len(wrong) - len(unknown), len(table), [*unknown, *wrong])
    assert wrong == []
    assert len(table) > 700


def differences(row: Row) -> list[str]:
    """Architectures on which the first PTX version of a matrix instruction is not the recorded one."""
    said = {arch: version for version, archs in row["from"].items() for arch in archs}
    found = examine(row["text"])
    ours = {target.name: found.min_version(target.name) for target in ARCHITECTURES}
    return [arch for arch, since in ours.items() if (since and version_text(since)) != said.get(arch)]


def test_every_matrix_instruction() -> None:
    """Kinds with and without scale factors, sparse, weight stationary: on every architecture from the same version."""
    table = rows(tcgen05_mma.NAME)
    wrong = {row["text"]: found for row in table if (found := differences(row))}
    tally(tcgen05_mma.NAME, len(table) - len(wrong), len(table))
    assert wrong == {}
    assert [row["text"] for row in table] == list(dict.fromkeys(tcgen05_mma.texts()))
    assert sum("block_scale" in row["text"] and bool(row["from"]) for row in table) > 100


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="there is no ptxas to ask")
@pytest.mark.parametrize(("arch", "version"), [("sm_100a", (8, 6)), ("sm_100f", (9, 0)), ("sm_110a", (9, 0))])
def test_ptxas_says_so_today(arch: str, version: tuple[int, int]) -> None:
    every = list(dict.fromkeys(tcgen05_mma.texts()))
    said = assemble_each(every, arch, version)
    wrong = [
        (text, message)
        for text, message in zip(every, said, strict=True)
        if (message is None) != (why_not_instruction(text, arch, version) == [])
    ]
    assert wrong == []


def test_only_the_order_of_the_isa_is_canonical() -> None:
    """ptxas takes every order but one; of the permutations of one instruction exactly one is canonical."""
    orders: dict[frozenset[str], list[str]] = {}
    for row in rows("ptx_matrix"):
        if row["family"].startswith("order/tcgen05"):
            orders.setdefault(frozenset(row["tags"]["order"]), []).append(row["text"])
    for texts in orders.values():
        canonical = [text for text in texts if examine(text).canonical]
        assert len(canonical) <= 1
        for text in texts:
            found = examine(text)
            if not found.errors and not found.canonical:
                assert text not in canonical


def test_the_comparison_can_fail() -> None:
    row = next(row for row in rows("ptx_matrix") if row["family"] == "tcgen05.cp" and row["archs"]["sm_100a"]["ok"])
    assert holds(row)
    assert not holds({**row, "archs": {"sm_100a": {"ok": False, "msg": ""}}})
    assert not holds({**row, "archs": {"sm_100a": {"ok": True, "min_version": "8.5"}}})
    row = next(row for row in rows(tcgen05_mma.NAME) if "8.7" in row["from"])
    assert not differences(row)
    assert differences({**row, "from": {}}) == ["sm_100a", "sm_103a", "sm_110a"]
