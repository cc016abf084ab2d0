"""Everything that CuTe C++ printed for atoms, tiled operations, fragments and shared memory, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cute_py.errors import StaticAssertError
from tests.atom import recorded
from tests.atom.recorded import Refused, Row, same
from tests.oracle.records import rows, tally
from tests.shares import in_part

LABELS = {"id", "status", "template_args", "bits", "error"}
"""Fields of a row that are no output."""

CONGRUENT = {"SM80_16x8x128_S32U1U1S32_TN_ANDPOPC", "SM80_16x8x128_S32U1U1S32_TN_XORPOPC"}
"""C++ writes the stride of A's values with one bracket too many, ((_16,_8)), and can't use the layout. Ours has the
profile of its shape."""


def flat(row: Row) -> Row:
    return {k: v for k, v in row.items() if k not in LABELS}


FILES: dict[str, tuple[Callable[[Row], Row], Callable[[Row], Row]]] = {
    "mma_atoms": (recorded.mma_row, flat),
    "copy_atoms": (recorded.copy_row, flat),
    **{
        name: (compute, lambda row: row.get("result", {}))
        for name, compute in (
            ("tiled_mma", recorded.tiled_mma_row),
            ("tiled_copy", recorded.tiled_copy_row),
            ("predicates", recorded.predicate_row),
            ("fragments", recorded.fragment_row),
            ("smem_layouts", recorded.layout_row),
            ("smem_selectors", recorded.selector_row),
            ("smem_desc", recorded.descriptor_row),
        )
    },
}


def difference(row: Row, compute: Callable[[Row], Row], expected: Row) -> str:
    """What differs in a row; empty where nothing does."""
    try:
        found = compute(row)
    except StaticAssertError as error:
        if row["status"] == "ok":
            return f"refused: {error}"
        text = f"static assertion failed: {error.condition}"
        return "" if text.startswith(row["error"]) else f"refused with {text!r}, not {row['error']!r}"
    refused = {v.error for v in found.values() if isinstance(v, Refused)}
    if row["status"] != "ok":
        return "" if row["error"] in refused else f"accepted, C++: {row['error']}"
    for error in row.get("errors", {}).values():
        if error not in refused:
            return f"a part was accepted, C++: {error}"
    expected = {k: v for k, v in expected.items() if not (k == "smem_layout" and k not in found)}
    wrong: dict[str, Any] = {k: (found.get(k), v) for k, v in expected.items() if not same(found.get(k), v)}
    if row.get("cpp") in CONGRUENT:
        wrong.pop("ALayout", None)
    return str(wrong) if wrong else ""


@pytest.mark.parametrize("name", FILES)
@in_part(6)
def test_every_row_is_what_cpp_printed(name: str, every: int) -> None:
    compute, expected = FILES[name]
    table = rows(name)[::every]
    wrong = [(row["id"], text) for row in table if (text := difference(row, compute, expected(row)))]
    tally(f"atoms/{name}", len(table) - len(wrong), len(table), every=every)
    assert wrong == []


def test_a_wrong_row_would_be_seen() -> None:
    row = next(r for r in rows("mma_atoms") if r["status"] == "ok")
    changed = {**row, "CLayout": "(_8,_8):(_8,_1)"}
    assert "CLayout" in difference(changed, recorded.mma_row, flat(changed))
    accepted = {**row, "status": "rejected", "error": "static assertion failed: no"}
    assert difference(accepted, recorded.mma_row, flat(accepted)) == "accepted, C++: static assertion failed: no"
