"""Random tiled operations against what CuTe C++ printed: text for text, refusal for refusal."""

from __future__ import annotations

from typing import Any

import cute_py as cute
from cute_py import atom
from tests.oracle.records import printed, rows, tally

NAMES: dict[str, Any] = {
    **{
        name: getattr(cute, name)
        for name in (
            "Int",
            "parse",
            "make_identity_tensor",
            "make_tensor",
            "make_gmem_ptr",
            "make_smem_ptr",
            "Swizzle",
            "composition",
        )
    },
    **vars(atom),
}


def test_random_tiled_operations() -> None:
    table = rows("tiled_random")
    wrong = []
    for row in table:
        recorded = row["text"].strip() if "text" in row else row["error"].rpartition(" @ ")[0]
        found = printed(row["py"], NAMES).strip()
        if found != recorded and not (recorded == "static assertion failed" and found.startswith(recorded)):
            wrong.append((row["id"], found, recorded))
    tally("atoms/tiled_random", len(table) - len(wrong), len(table))
    assert wrong == []
    assert sum("error" in row for row in table) > 5
