"""The ledger of tests: none is lost when code moves.

`before.txt.xz` holds every test and doctest, with its number of cases, as they were before the package was rearranged;
`moved.tsv` says of each that has another name now, which, or why it was deleted. A doctest belongs to its object,
whatever module that lies in.
"""

from __future__ import annotations

import collections
import lzma
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent


def entry(node_id: str) -> str:
    """The entry of a case: a test function by file and name, a doctest by its object.

    >>> entry("tests/layout/test_size.py::test_size[4]"), entry("cute_py/layout/leaf.py::cute_py.layout.leaf.Int.x")
    ('tests/layout/test_size.py::test_size', 'doctest::Int.x')
    """
    path, _, name = node_id.partition("::")
    if not path.startswith("cute_py/"):
        return node_id.partition("[")[0]
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return "doctest::" + (name.removeprefix(module).lstrip(".") or f"of the module {module.rpartition('.')[2]}")


def counted(node_ids: Iterable[str]) -> dict[str, int]:
    """Entry -> number of cases."""
    return dict(collections.Counter(entry(x) for x in node_ids))


def room_of(name: str) -> str:
    """What an entry counts for: the folder of the test, or 'doctest'.

    >>> room_of("tests/tma/atom/test_make.py::test_x"), room_of("doctest::Int")
    ('tests/tma', 'doctest')
    """
    path = name.partition("::")[0]
    return "/".join(path.split("/")[:2]) if path.count("/") > 1 else path.split("/")[0]


def before() -> dict[str, int]:
    lines = lzma.decompress((FOLDER / "before.txt.xz").read_bytes()).decode().splitlines()
    rows = (line.rpartition("\t") for line in lines)
    return {name: int(count) for name, _, count in rows}


def moved() -> dict[str, str]:
    """Earlier entry -> entry now, or 'deleted: reason'."""
    rows = (line.split("\t") for line in (FOLDER / "moved.tsv").read_text().splitlines() if line)
    return dict(rows)


def missing(now: dict[str, int], earlier: dict[str, int], renamed: dict[str, str]) -> list[str]:
    """Entries that are gone without a row, or have fewer cases than before; rows that lead nowhere."""
    found = []
    wanted: dict[str, int] = collections.Counter()
    for name, count in earlier.items():
        new = renamed.get(name, name)
        if not new.startswith("deleted: "):
            wanted[new] += count
    for name, count in wanted.items():
        if now.get(name, 0) < count:
            found.append(f"{name}: {now.get(name, 0)} of {count} cases")
    return found + [f"{name}: no such entry before" for name in renamed if name not in earlier]
