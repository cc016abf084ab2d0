"""What ptxas said of every recorded tcgen05 instruction, on every architecture, against the instruction table."""

from __future__ import annotations

from typing import Any

from cute_py.errors import UnknownFactError
from cute_py.tmem import examine
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
