"""The road of one copy is short: how many files of the package a call passes, and which classes it makes.

A file is passed if a function of it is entered, import and warm-up apart. A concept is a class that a reader meets on
the road, so every class that is made on it stands in the list of concepts of docs/architecture.md.
"""

from __future__ import annotations

import enum
import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest

import cute_py as cute

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(ROOT / "cute_py") + "/"
PAGE = ROOT / "docs" / "architecture.md"

MAKE, COPY, LOWER = "make_tma_copy and its descriptor", "tma.copy on the emulator", "tma.lower"

GOALS: Final = {MAKE: 22, COPY: 30, LOWER: 26}
"""The most files that a call is to pass."""

BOUNDS: Final = {MAKE: 22, COPY: 30, LOWER: 28}
"""The most files that a call passes today, never below its goal: lower a number when the road gets shorter."""

MOST_CONCEPTS: Final = 22

X = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
TILE = cute.Layout((cute.Int(32), cute.Int(32)), cute.LayoutRight)


def make() -> Any:
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", X, TILE)
    assert len(atom.descriptor) == 128
    return atom


ATOM = make()
CALLS: Final[dict[str, Callable[[], object]]] = {
    MAKE: make,
    COPY: lambda: cute.tma.copy(ATOM, X, backend="emulator"),
    LOWER: lambda: cute.tma.lower(ATOM),
}


def traced(call: Callable[[], object], prefix: str) -> tuple[set[str], list[object]]:
    """Files below `prefix` that a call passes; the objects that its functions are called on or return."""
    files: set[str] = set()
    seen: list[object] = []

    def profile(frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix):
            files.add(code.co_filename.removeprefix(prefix))
        if event == "call" and code.co_argcount:
            seen.append(frame.f_locals.get(code.co_varnames[0]))
        elif event == "return":
            seen.append(value)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return files, seen


def objects_alive() -> list[object]:
    """All objects that the collector knows, and those that a command excluded from collection in this process."""
    gc.unfreeze()
    return gc.get_objects()


def classes_made(call: Callable[[], object], prefix: str, package: str, alive: list[object] | None = None) -> set[str]:
    """Names of the classes of a package of which a call makes an instance.

    Not counted: enums, closed sets of names without a state of their own; exceptions, which are not on the road of a
    call that succeeds; classes with a leading underscore, which a reader of their one module meets.

    `alive` are the objects from before; they are kept, so that no new object gets the identity of one that has gone.
    """
    alive = objects_alive() if alive is None else alive
    _, seen = traced(call, prefix)
    wanted = {id(thing) for thing in seen}
    old = {id(thing) for thing in alive if id(thing) in wanted}
    kinds = {type(thing) for thing in seen if id(thing) not in old}
    return {
        kind.__name__
        for kind in kinds
        if kind.__module__.split(".")[0] == package
        and not kind.__name__.startswith("_")
        and not issubclass(kind, (enum.Enum, BaseException))
    }


def concepts(page: str) -> list[str]:
    """The entries of the numbered list in the section 'Concepts'."""
    section = re.search(r"^## Concepts[^\n]*\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if section is None:
        raise LookupError("no section 'Concepts'")
    return re.findall(r"^\d+\. (.*)$", section[1], re.MULTILINE)


def unlisted(made: set[str], listed: list[str]) -> set[str]:
    """The classes that no entry names before its colon."""
    words = {word for entry in listed for word in re.findall(r"`(\w+)`", entry.partition(":")[0])}
    return made - words


@pytest.mark.parametrize("name", list(CALLS))
def test_files_passed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    CALLS[name]()
    files, _ = traced(CALLS[name], PACKAGE)
    with capsys.disabled():
        print(f"\n{name}: {len(files)} files (bound {BOUNDS[name]}, goal {GOALS[name]})")
    assert len(files) <= BOUNDS[name], "\n".join(sorted(files))
    assert BOUNDS[name] >= GOALS[name]


def test_classes_are_concepts() -> None:
    for name in (MAKE, COPY):
        CALLS[name]()
    alive = objects_alive()
    made = {kind for name in (MAKE, COPY) for kind in classes_made(CALLS[name], PACKAGE, "cute_py", alive)}
    listed = concepts(PAGE.read_text(encoding="utf-8"))
    assert unlisted(made, listed) == set(), sorted(made)


def test_the_page_lists_few_concepts() -> None:
    assert 0 < len(concepts(PAGE.read_text(encoding="utf-8"))) <= MOST_CONCEPTS


class Made:
    """A class of this package, for the tests of the rules."""


class _Private(Made):
    pass


class Kind(enum.Enum):
    ONE = 1


KEPT = Made()


def test_a_file_that_is_passed_is_seen() -> None:
    assert traced(concepts_of_nothing, str(ROOT / "tests") + "/")[0] == {"architecture/test_road.py"}
    assert traced(lambda: len(X), PACKAGE)[0] == set()


def concepts_of_nothing() -> list[str]:
    return concepts("## Concepts, in an order\n\nText.\n\n1. `A` (`B`): of `G`.\n2. `E`: a thing.\n\n## Next\n\n1. `F`")


def given_back(thing: object) -> object:
    return thing


def test_the_class_rule_can_fail() -> None:
    alive = objects_alive()

    def calls(thing: Callable[[], object]) -> set[str]:
        return classes_made(lambda: given_back(thing()), PACKAGE, "tests", alive)

    assert calls(lambda: object.__new__(Made)) == {"Made"}
    assert calls(lambda: KEPT) == calls(_Private) == calls(lambda: Kind.ONE) == calls(ValueError) == set()
    assert unlisted({"A", "E", "G"}, concepts_of_nothing()) == {"G"}


def test_entries_of_the_page() -> None:
    assert concepts_of_nothing() == ["`A` (`B`): of `G`.", "`E`: a thing."]
    with pytest.raises(LookupError, match="no section"):
        concepts("# Architecture")
