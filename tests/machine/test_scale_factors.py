"""Scale factors of block-scaled products in the wrong order or place, in CUTLASS's example 72b."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cute_py import PtxRun
from cute_py.atom.smem_descriptor import Major
from cute_py.machine.judgement.scale_factors import factors_of
from tests.machine.cutlass_launch import launches, run

ROW = {**launches("blackwell_kernels")["example_72b"], "grid": [1, 1, 1]}
SCALES = re.compile(r"(tcgen05\.mma\S+ \[)(%r\d+)(\],.*)\[(%r\d+)\], \[(%r\d+)\], p;")
B_MAP, SFA_MAP, SFB_MAP = ("384", "1408"), ("640", "1664"), ("896", "1920")
"""Bytes of the structure at which the maps are."""


def ran(row: dict[str, Any]) -> PtxRun:
    return run(row, [np.zeros(size, np.uint8) for size in row["allocations"]], "eager")


def judged(found: PtxRun) -> list[Any]:
    """The findings about scale factors of a run."""
    return [one for one in found.diagnostics if one.rule == "scale factors"]


def changed(text: str, number: int, to: str) -> str:
    """The PTX with other places of scale factors in product `number`, or in all of them (-1)."""
    places = list(SCALES.finditer(text))
    assert len(places) == 4
    for match in reversed(places if number < 0 else places[number : number + 1]):
        text = text[: match.start()] + match.expand(to) + text[match.end() :]
    return text


def with_maps(row: dict[str, Any], changes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A row with other fields in some tensor maps."""
    parameters = []
    for one in row["parameters"]:
        maps = {at: fields | changes.get(at, {}) for at, fields in one["maps"].items()}
        parameters.append({**one, "maps": maps})
    return {**row, "parameters": parameters}


def left_out(found: PtxRun) -> list[str]:
    """What a run says about scale factors that it did not judge."""
    assert not judged(found)
    return [text for text in found.scope.not_judged if text.startswith("scale factors of")]


def test_a_sound_kernel() -> None:
    found = ran(ROW)
    assert judged(found) == []
    assert left_out(found) == []


def test_factors_that_no_copy_wrote_are_named_in_the_scope() -> None:
    copied = re.compile(r"tcgen05\.cp\.[^;]*;")
    assert copied.search(ROW["ptx"])
    texts = left_out(ran({**ROW, "ptx": copied.sub("", ROW["ptx"])}))
    assert texts
    assert all("that no tcgen05.cp from one tensor map wrote" in text for text in texts)


@pytest.mark.parametrize(
    ("number", "to", "cause", "words"),
    [
        (1, r"\1\2\3[\5], [\4], p;", "exchanged", "uses for the other operand"),
        pytest.param(0, r"\1\2\3[\5], [\4], p;", "exchanged", "one of the two uses is wrong", marks=pytest.mark.slow),
        pytest.param(1, r"\1\2\3[\5], [\5], p;", "exchanged", "the scale factors of A come", marks=pytest.mark.slow),
        pytest.param(1, r"\1\2\3[\4], [\2], p;", "sums", "overwrote with its accumulators", marks=pytest.mark.slow),
    ],
)
def test_one_product_with_other_factors(number: int, to: str, cause: str, words: str) -> None:
    (found,) = judged(ran({**ROW, "ptx": changed(ROW["ptx"], number, to)}))
    assert found.facts["cause"] == cause
    assert words in found.text
    assert found.severity == "error"


@pytest.mark.slow
def test_factors_of_two_maps() -> None:
    """The fourth product takes the last two columns of A's factors, and the first two of B's."""
    moved = r"add.u32 \4, \4, 2; \1\2\3[\4], [\5], p;"
    (found,) = judged(ran({**ROW, "ptx": changed(ROW["ptx"], 3, moved)}))
    assert found.facts["cause"] == "two tensor maps"


def narrow() -> dict[str, Any]:
    """The row with 128 rows of B, and as many factors."""
    fewer = {at: {"global_dim": [256, 128, 1]} for at in B_MAP}
    return with_maps(ROW, fewer | {at: {"global_dim": [256, 4, 1, 1]} for at in SFB_MAP})


@pytest.mark.slow
def test_a_sound_kernel_of_another_extent() -> None:
    assert judged(ran(narrow())) == []


@pytest.mark.slow
def test_all_products_with_exchanged_factors_of_another_extent() -> None:
    exchanged = changed(ROW["ptx"], -1, r"\1\2\3[\5], [\4], p;")
    (found,) = judged(ran({**narrow(), "ptx": exchanged}))
    assert found.facts["cause"] == "exchanged"
    assert (
        "A needs 4096 scale factors and B 2048; the tensor map of A's factors has 2048 and that of B's 4096"
        in found.text
    )


@pytest.mark.slow
def test_all_products_with_exchanged_factors_of_the_same_extent_are_not_known() -> None:
    assert judged(ran({**ROW, "ptx": changed(ROW["ptx"], -1, r"\1\2\3[\5], [\4], p;")})) == []


def test_the_number_of_factors() -> None:
    for rows, k, block in ((1, 16, 16), (128, 64, 16), (129, 65, 16), (256, 256, 32)):
        expected = -(-rows // 128) * 128 * -(-k // (4 * block)) * 4
        assert factors_of((k, rows), Major.K, block) == factors_of((rows, k), Major.MN, block) == expected
