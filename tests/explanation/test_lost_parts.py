"""Parts of a text that change its meaning: operands of a composition, a label, spills on one line, names without their
prefix."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py.errors import InvalidTypeError
from cute_py.explanation.compositions import composition_text
from cute_py.explanation.dispatch import readings_of
from cute_py.layout.recast import as_position_independent_swizzle_layout
from tests.each import each_of


@each_of(
    ("left", "right"),
    [
        ("(32,(2,4)):(2,(1,64))", "3"),
        ("(4,8):(8,1)", "_4"),
        ("(4,8):(8,1)", "(2,4)"),
        ("(4,8):(8,1)", "(_,4)"),
        ("(6,4):(4,1)", "3:5"),
    ],
)
def test_a_right_operand_is_composed(left: str, right: str) -> None:
    steps = composition_text(cute.parse(left), cute.parse(right))
    assert cute.explain(f"{left} o {right}").endswith(steps)
    said = readings_of(f"tile: {left} o {right}  // the tile\nnext: (2,2):(1,2)")
    assert said[0].meaning == tuple(steps.split("\n")) and said[1].kind == "A layout (next): (2,2):(1,2)"


def test_operands_are_composed_from_left_to_right() -> None:
    said = cute.explain("(4,8):(8,1) o (2,4) o 2")
    assert "result: (4,8):(8,1) o (2,4) = (2,4):(8,1)" in said and "result: (2,4):(8,1) o 2:_1 = (2,1):(8,1)" in said
    assert cute.explain("(4,8):(8,1) o 3 o (2,2):(1,2)").startswith("(4,8):(8,1) o 3 o (2,2):(1,2)\n\nA composition")


@each_of(("stated", "judged"), [("(3,1):(8,1)", "which is the result"), ("(3,1):(8,2)", "not the result")])
def test_a_stated_result_is_compared(stated: str, judged: str) -> None:
    (reading,) = readings_of(f"(4,8):(8,1) o 3 = {stated}")
    assert reading.meaning[-1] == f"the text states {stated}, {judged}"


@each_of("operand", ["foo", "Sw<2,0,3>", "1@0", "3) more", "(2,x:"])
def test_an_operand_that_is_not_read_is_listed(operand: str) -> None:
    (reading,) = readings_of(f"(4,8):(8,1) o {operand}")
    assert reading.missing[0] == f"not read: (4,8):(8,1) o {operand}" and not reading.meaning


def test_a_swizzle_of_bytes_gives_the_offsets_of_elements() -> None:
    text = "Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)"
    said = cute.explain(f"smem_ptr[16b](0x400) o {text}")
    elements = as_position_independent_swizzle_layout(cute.parse(text))
    assert f"one step in mode 0 : (1,0)  -> {elements(1, 0)}\n" in said
    assert f"(7,63) -> {elements(7, 63)}\n" in said and elements(7, 63) == 455
    assert "Sw<3,4,3> permutes the bits of an element's byte address" in said and "(unset) + their sum" not in said


ROWS = """\
- register=1 -> (0, 1)
  register=2 -> (8, 0)
- lane=1 -> (0, 2)
  lane=2 -> (0, 4)
  lane=4 -> (1, 0)
  lane=8 -> (2, 0)
  lane=16 -> (4, 0)
- warp is a size 1 dimension
- block is a size 1 dimension
where out dims are: [dim0 (size 16), dim1 (size 8)]"""


@each_of("label", ["layout: ", "layout:", "LL = ", "acc (warp 0): "])
def test_a_label_before_the_first_row_of_a_linear_layout(label: str) -> None:
    for rows in (ROWS, ROWS.removeprefix("- ")):
        assert readings_of(label + rows)[0].meaning == readings_of(ROWS)[0].meaning


@each_of(
    ("text", "says"),
    [
        ("Used 32 registers, 8 bytes spill stores, 12 bytes spill loads", "spills 8 bytes of stores and 12 of loads"),
        ("Used 32 registers, 0 bytes spill stores, 0 bytes spill loads", "no register is spilled"),
    ],
)
def test_spills_on_the_line_of_the_registers(text: str, says: str) -> None:
    assert says in cute.explain(f"ptxas info    : {text}")


@each_of(
    ("text", "name"),
    [
        ("cuTensorMapEncodeTiled returned INVALID_VALUE", "CUDA_ERROR_INVALID_VALUE"),
        ("cuTensorMapEncodeTiled: INVALID_VALUE", "CUDA_ERROR_INVALID_VALUE"),
        ("cudaDeviceSynchronize() failed with ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_an_error_without_its_prefix(text: str, name: str) -> None:
    assert cute.explain(text).startswith(f"{name}, a CUDA error")


@each_of("text", ["cublasGemmEx returned INVALID_VALUE", "cuBLAS returned INVALID_VALUE", "f returned INVALID_VALUE"])
def test_an_error_of_another_library_is_not_cudas(text: str) -> None:
    with pytest.raises(InvalidTypeError):
        cute.explain(text)


def test_a_box_has_at_most_five_modes() -> None:
    assert "at most 5 modes" in cute.explain("G-basis")
    assert cute.tma.construct_tma_gbasis.__module__ == "cute_py.tma.atom.gbasis"
