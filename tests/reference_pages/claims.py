"""The claims of the reference pages; `python -m tests.reference_pages.claims` writes the page that lists them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = Path(__file__).with_name("claims.txt")
PAGE = ROOT / "docs" / "reference-pages-map.md"
DIFFERENCES = ROOT / "docs" / "differences.md"


@dataclass(frozen=True)
class Claim:
    """`count` claims of one kind on a page: the tests that hold them, and the row of differences.md if they differ."""

    page: str
    count: int
    text: str
    tests: tuple[str, ...]
    row: str

    def verdict(self, functions: dict[str, set[str]], rows: set[str]) -> str:
        """'holds', 'differs with a row', or 'missing': without a test, or with a test or a row that is not there."""
        there = [name.partition("::")[2] in functions.get(name.partition("::")[0], ()) for name in self.tests]
        if not there or not all(there) or (self.row and self.row not in rows):
            return "missing"
        return "differs with a row" if self.row else "holds"


def claims(text: str) -> Iterator[Claim]:
    """The claims of a text in the form of claims.txt."""
    page, short = "", {}
    for line in text.splitlines():
        if line.startswith("@ "):
            letter, path = line[2:].split()
            short[letter] = path
        elif line.startswith("= "):
            page = line[2:]
        elif line and not line.startswith("#"):
            count, said, tests, row = [part.strip() for part in (line + " ").split(" | ", 3)]
            names = [name.partition("::") for name in tests.split()]
            named = tuple([f"{short.get(file, file)}::{function}" for file, _, function in names])
            yield Claim(page, int(count), said, named, row)


def functions_of(found: list[Claim]) -> dict[str, set[str]]:
    """File -> the test functions in it, of every file that a claim names."""
    out: dict[str, set[str]] = {}
    for path in {name.partition("::")[0] for claim in found for name in claim.tests}:
        tree = ast.parse((ROOT / path).read_text()) if (ROOT / path).is_file() else ast.Module([], [])
        out[path] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return out


def rows_of(text: str) -> set[str]:
    """The first cells of the rows of all tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return {re.split(r"(?<!\\)\|", line)[1].strip() for line in lines}


def counts(found: list[Claim]) -> Counter[str]:
    """Verdict -> claims."""
    functions, rows = functions_of(found), rows_of(DIFFERENCES.read_text())
    out: Counter[str] = Counter({"holds": 0, "differs with a row": 0, "missing": 0})
    for claim in found:
        out[claim.verdict(functions, rows)] += claim.count
    return out


def page(found: list[Claim]) -> str:
    """docs/reference-pages-map.md."""
    number = counts(found)
    lines = [
        "# Which test checks which claim of the reference pages",
        "",
        "`python -m tests.reference_pages.claims` generates this page from tests/reference_pages/claims.txt. A test",
        "compares the two files. It also checks that every named test and every named row of",
        "[differences.md](differences.md) exists, and that each test calls functions of the package that the claim is",
        "about. A row with a count covers that many claims of one kind.",
        "",
        ", ".join(f"{verdict}: {count}" for verdict, count in number.items()) + f"; {sum(number.values())} in all.",
    ]
    shown = ""
    for claim in found:
        if claim.page != shown:
            shown = claim.page
            lines += [
                "",
                f"## {shown}",
                "",
                "| claims | | tests | differs: the row of differences.md |",
                "|---|---|---|---|",
            ]
        tests = ", ".join(name.removeprefix("tests/") for name in claim.tests)
        lines.append(f"| {claim.count} | {claim.text} | {tests} | {claim.row} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(list(claims(CLAIMS.read_text()))))
