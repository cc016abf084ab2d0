"""Random tiled operations against what CuTe C++ printed: text for text, refusal for refusal."""

from __future__ import annotations

from typing import Any

import cute_py as cute
from cute_py import atom
from tests.oracle.records import printed, rows, tally
from tests.shares import in_part

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


@in_part(6)
def test_random_tiled_operations(every: int) -> None:
    table = rows("tiled_random")[::every]
    wrong = []
    for row in table:
        recorded = row["text"].strip() if "text" in row else row["error"].rpartition(" @ ")[0]
        found = printed(row["py"], NAMES).strip()
        if found != recorded and not (recorded == "static assertion failed" and found.startswith(recorded)):
            wrong.append((row["id"], found, recorded))
    tally("atoms/tiled_random", len(table) - len(wrong), len(table), every=every)
    assert wrong == []
    assert sum("error" in row for row in table) > 5 // every
