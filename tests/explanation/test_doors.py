"""Every change that explain offers goes through one check: `offers.passes_check`."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.explanation import offers
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.rows import known_texts
from cute_py.explanation.rows.calculators import CALCULATORS, Offer
from cute_py.explanation.rows.known_texts import Row, rows
from cute_py.tma import TensorMapTiled
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.violations import violations

FOLDER = Path(offers.__file__).parent
COMPUTED = [row for name in ("messages", "cute_dsl", "programs") for row in rows(name) if row.calculator]
NUMBERS = st.one_of(st.integers(0, 600), st.integers(0, 1 << 48), st.sampled_from((8, 16, 32, 64, 90, 120, 128, 256)))

DOORS = {
    "passes_check",
    "composes",
    "divides_whole",
    "remedies",
    "_offered",
    "_written",
    "copies_padded",
    "copies_dense",
}
"""Functions that decide whether a change is shown; the last five call `passes_check`."""
IN_WORDS = {
    "cuda_pastes._clusters": "the grid is the next multiple of the cluster, which is the whole rule",
    "cuda_pastes._error": "options that are listed, without numbers of the text",
    "compiler_pastes._run_copy_atom": "an atom of the table that moves these numbers of values",
    "compiler_pastes._static": "what the run of the operation offers",
    "compiler_pastes._backtrace": "what the run of the operation offers",
    "dsl_pastes._computed": "what the reader of the operands offers",
    "map_pastes._sourced": "expressions that were evaluated with their cast, and do not overflow",
    "messages._no_multiple": "the multiples on both sides, which is the whole rule",
    "ptx_pastes.read_waits": "numbers with which a run of the program has no finding",
    "checkpoints._configuration_reading": "no change: its place is empty",
    "shape_errors._broadcast": "the only shape that broadcasts, found by a comparison of the modes",
    "source_constants.widened": "expressions that were evaluated with their cast, and do not overflow",
}
"""Functions that make changes without a check, and why no check applies."""


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "id", getattr(function, "attr", ""))


def _makes_changes(function: ast.FunctionDef) -> bool:
    nodes = list(ast.walk(function))
    readings = [node for node in nodes if isinstance(node, ast.Call) and _called(node) == "Reading"]
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    given_changes = any(len(one.args) > 5 or any(k.arg == "changes" for k in one.keywords) for one in readings)
    return given_changes or bool(stored & {"change", "changes"})


def unchecked(folder: Path) -> set[str]:
    """The functions of a folder that make changes and call no door."""
    return {
        f"{file.stem}.{one.name}"
        for file in (*folder.glob("*.py"), *folder.glob("rows/*.py"))
        for one in ast.walk(ast.parse(file.read_text()))
        if isinstance(one, ast.FunctionDef) and _makes_changes(one) and not DOORS & set(map(_called, ast.walk(one)))
    }


def test_every_place_that_offers_a_change_checks_it_or_is_listed() -> None:
    assert unchecked(FOLDER) == set(IN_WORDS)


def test_a_place_without_a_check_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def offer(n):\n    return Reading('', 0, 1, changes=[n + 1])\n")
    (tmp_path / "good.py").write_text("def offer(n):\n    changes = [n] if passes_check(n) else []\n")
    assert unchecked(tmp_path) == {"bad.offer"}


def _shown(row: Row, numbers: list[int]) -> str:
    """The change or the advice of a row for the groups of a match."""
    match: Any = SimpleNamespace(groups=lambda: tuple(map(str, numbers)))
    changes, advice = row.remedies(match)
    return "".join([*changes, *advice])


def _in_words(row: Row, numbers: list[int]) -> str:
    return row.change.format(*map(str, numbers))


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row.calculator)
@given(data=st.data())
def test_a_computed_change_passes_the_check_of_its_kind(row: Row, data: st.DataObject) -> None:
    count = re.compile(row.pattern).groups
    numbers = data.draw(st.lists(NUMBERS, min_size=count, max_size=count))
    said = _shown(row, numbers)
    offer = CALCULATORS[row.calculator](numbers)
    if offer is None or said != offer.text:
        assert said == _in_words(row, numbers)
        return
    made = offer.make()
    assert made is not None
    if isinstance(made, TensorMapTiled):
        assert violations(made) == [] and hazards(made) == []
    if edge := re.search(r"boxDim\[(\d)\] = (\d+)", said):
        assert 1 <= int(edge[2]) <= 256
        assert made.box_dim[min(int(edge[1]), 1)] == int(edge[2])  # type: ignore[attr-defined]


def _refused() -> object:
    raise InvalidValueError("no such box")


@pytest.mark.parametrize(
    "make",
    [
        lambda: TensorMapTiled(0, 4096, (512, 8), (512,), (300, 1)),
        lambda: TensorMapTiled(0, 0, (512, 8), (512,), (16, 1)),
        lambda: None,
        _refused,
    ],
    ids=["a rule", "a hazard", "nothing", "refused"],
)
def test_an_unsound_calculator_is_caught(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    row = next(row for row in COMPUTED if row.calculator == "fitted_box_row")
    monkeypatch.setitem(known_texts.CALCULATORS, "fitted_box_row", lambda numbers: Offer("boxDim[0] = 300", make))
    assert _shown(row, [3, 8]) == _in_words(row, [3, 8])


def test_all_calculators_belong_to_a_row() -> None:
    assert {row.calculator for row in COMPUTED} == set(CALCULATORS)


@pytest.mark.parametrize("strides", [(33, 1), (1001, 1), (7, 1)])
def test_padded_strides_of_an_array_make_a_map(strides: tuple[int, int]) -> None:
    (reading,) = readings_of(f"torch.Size([64, {strides[0]}]) stride {strides}, torch.float16")
    (change,) = reading.changes
    padded = int(re.search(r"-> (\d+) elements", change)[1])  # type: ignore[index]
    assert violations(TensorMapTiled(6, 4096, (strides[0], 64), (2 * padded,), (8, 1))) == []
