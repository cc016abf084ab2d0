"""The files of known texts: each row is well formed, its texts take its groups, and its calculator is right."""

from __future__ import annotations

import re
from importlib import resources

import pytest

import cute_py as cute
from cute_py.explanation.rows.calculators import CALCULATORS, NOTES
from cute_py.explanation.rows.known_texts import Row, compiled, rows, tables
from cute_py.formats.scale_orders import scale_order
from cute_py.tma.descriptor.limits import GPUS

FILES = (
    "programs", "messages", "cute_dsl", "cute_dsl_operands", "demands", "marks", "ptxas_notes", "ptxas_errors",
    "scale_errors", "shape_errors",
)  # fmt: skip
ROWS = [(name, row) for name in FILES for row in rows(name)]


def test_every_file_of_rows_is_read() -> None:
    names = [file.name for file in resources.files("cute_py.explanation.rows").iterdir()]
    held = {name.removesuffix(".toml") for name in names if name.endswith(".toml")}
    assert held == {*FILES, "assertions", "reasons", "cuda_errors", "scale_names"}


@pytest.mark.parametrize("name", FILES)
def test_a_row_is_well_formed(name: str) -> None:
    for row in rows(name):
        groups = [str(i) for i in range(compiled(row.pattern).groups)]
        assert row.pattern and (row.text or row.program)
        assert "{" not in row.text.format(*groups)
        assert not row.change or row.change.format(*groups)
        assert not row.calculator or row.calculator in CALCULATORS
        assert not row.note or row.note in NOTES


def test_every_calculator_has_a_row() -> None:
    assert {row.calculator for _, row in ROWS if row.calculator} == set(CALCULATORS)
    assert {row.note for _, row in ROWS if row.note} == set(NOTES)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [((1024, 800), "224 scales are missing"), ((512, 1024), "twice as many"), ((512, 600), "88 scales too many")],
)
def test_a_note_compares_the_numbers(numbers: tuple[int, ...], said: str) -> None:
    assert said in NOTES["count_of_scales"](numbers)


def test_every_order_that_a_name_means_is_known() -> None:
    for row in tables("scale_names")["row"]:
        assert set(row) == {"pattern", "order", "block", "program"} and row["block"] in (16, 32, 128)
        assert scale_order(row["order"]).name == row["order"]


def test_a_blank_of_a_pattern_is_any_white_space() -> None:
    row = Row(pattern="must be [0-9 ]+ bytes ?long", text="x")
    assert [match[0] for match in row.finds("must\n  be 16  bytes\nlong; must be 4 byteslong")] == [
        "must\n  be 16  bytes\nlong",
        "must be 4 byteslong",
    ]


def test_no_text_is_answered_by_two_rows_of_one_pattern() -> None:
    seen = [row.pattern for name, row in ROWS if name not in ("marks", "ptxas_notes")]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    ("name", "numbers", "change"),
    [
        ("wider_block", (4, 2, 8), "at least 8: 8 elements x 2 bytes = 16 bytes"),
        ("fitted_box_row", (12, 16), "boxDim[0] = 16: 16 x 16 bits = 32 bytes"),
        ("span_of_elements", (128, 100, 16), "boxDim[0] = 64 elements = 128 bytes"),
        ("box_part", (1, 300), "boxDim[1] = 150"),
        ("padded_stride", (0, 2002, 16), "2016 bytes from 2002"),
        ("padded_stride", (0, 2002, 0), ""),
        ("instruction_extent", (8, 256, 8, 300), "N = 256"),
        ("instruction_extent", (32, 256, 32, 48), "N = 64, or another multiple of 32"),
        ("transposed_matrix", (8, 10, 6, 10), "pass mat2.t()"),
        ("transposed_matrix", (8, 10, 8, 8), "pass mat1.t(), if the product is the sum over the 8 rows"),
        ("transposed_matrix", (8, 10, 7, 9), ""),
        ("divisibility", (100, 0, 64), "divisibility=4, or pad the mode to 128"),
        ("instruction_depth", (16, 64), "K = 16 here, and issue 4 instructions"),
    ],
)
def test_a_calculator_computes_the_change(name: str, numbers: tuple[int, ...], change: str) -> None:
    made = CALCULATORS[name](numbers)
    assert (change in made.text and made.make() is not None) if made is not None else not change


def test_shared_memory_in_a_row_is_that_of_the_gpus() -> None:
    row = next(row for row in rows("messages") if row.calculator == "fewer_stages")
    for name in ("sm_90", "sm_120"):
        assert f"{GPUS[name].block_shared_memory_bytes} on {name}" in row.text


def test_the_numbers_of_cuda_errors_are_in_order() -> None:
    numbers = [row["number"] for row in tables("cuda_errors")["row"]]
    assert numbers == sorted(set(numbers)) and len(numbers) == 25


def test_the_message_on_num_multicast_is_step_11() -> None:
    said = cute.explain("error: got num_multicast of 2")
    assert said.startswith("Step 11 of the partition verifier") and len(re.findall("^Wrong$", said, re.MULTILINE)) == 1
