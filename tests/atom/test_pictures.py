"""print_latex and print_svg of tiled operations, character for character; what a picture refuses."""

from __future__ import annotations

import io

import pytest

import cute_py as cute
from cute_py import Layout, Swizzle
from cute_py.atom import copy_atom, make_tiled_copy, make_tiled_mma
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.atom.cpp_text import evaluate
from tests.oracle.records import rows, tally


def test_pictures_are_cpps() -> None:
    table = rows("atom_pictures")
    wrong = []
    for row in table:
        operation = evaluate(row["cpp"])
        found = cute.format_latex(operation) if row["kind"] == "latex" else operation.svg()
        if found != row["text"]:
            wrong.append(row["id"])
    tally("atoms/pictures", len(table) - len(wrong), len(table))
    assert wrong == []


def test_print_latex_takes_a_tiled_mma_and_a_colour() -> None:
    mma = make_tiled_mma("SM80_16x8x8_F16F16F16F16_TN")
    file = io.StringIO()
    cute.print_latex(mma, file)
    assert file.getvalue() == mma.latex()
    assert "fill=red" in mma.latex(lambda thread, value: "red")
    assert 'fill="rgb(1,2,3)"' in mma.svg(lambda thread, value: "1,2,3")


@pytest.mark.parametrize("name", ["SM80_16x8x8_F16F16F16F16_TN", "SM70_8x8x4_F32F16F16F32_NT", "SM61_DP4A"])
def test_an_atom_is_shown_as_a_tiled_mma_of_it(name: str) -> None:
    """As C++'s print_latex(MMA_Atom) does; the numbers of a quad pair's threads are indices there."""
    atom, mma = cute.mma_atom(name), make_tiled_mma(name)
    assert cute.format_latex(atom) == mma.latex() and atom.svg() == mma.svg()  # type: ignore[arg-type]
    for operand in ("A", "B", "C"):
        assert str(atom.layout_TV(operand)) == str(mma.get_layout_TV(operand))


def test_refusals() -> None:
    line = make_tiled_copy(copy_atom("UniversalCopy<uint32_t>", "half"), Layout(32), Layout(2))
    with pytest.raises(InvalidTypeError, match="the tile has 1 modes; must have 2 for a picture"):
        line.latex()
    with pytest.raises(InvalidValueError, match="the picture would have 4194304 cells; must be at most 1048576"):
        make_tiled_mma("SM90_64x256x16_F32F16F16_SS", (2, 4, 1)).svg()


def test_a_function_of_colours_takes_a_thread_and_a_value() -> None:
    mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    for draw in (mma.svg, mma.latex):
        with pytest.raises(InvalidTypeError, match="must be a function of 2 arguments"):
            draw(color=Swizzle(2, 0, 3))
