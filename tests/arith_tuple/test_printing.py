"""Printing: what the recorded C++ texts (tests/oracle) do not say: laws, streams, styles, refusals."""

from __future__ import annotations

import io
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import (
    ComposedLayout,
    E,
    Int,
    Layout,
    Swizzle,
    counting_iterator,
    format_latex,
    format_latex_tv,
    format_layout,
    format_tensor,
    make_gmem_ptr,
    make_identity_tensor,
    make_tensor,
    print_latex,
    print_latex_tv,
    print_layout,
    print_tensor,
    ratio,
    text,
)
from cute_py.arith_tuple.cells import c_float, cell, element_text
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, TensorAccessError
from tests.each import each_of
from tests.pace import within

STYLES = ["cute", "ostream", "python"]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from(["cute", "ostream"]))
def test_every_element_has_a_cell(shape: list[int], style: str) -> None:
    tensor = make_tensor(counting_iterator(1000), tuple(shape))
    lines = format_tensor(tensor, header=False, style=style).splitlines()
    marks = [line for line in lines if set(line) <= {"-", "="}]
    cells = [c for line in lines if line not in marks for c in line.split()]
    assert sorted(int(c) for c in cells) == list(range(1000, 1000 + int(np.prod(shape))))
    assert len(marks) == (int(np.prod(shape[2:])) - 1 if len(shape) > 2 else 0)


MODES = st.recursive(st.integers(0, 4), lambda modes: st.lists(modes, max_size=3).map(tuple), max_leaves=4)


@given(MODES, MODES, st.integers(-(2**33), 2**33), st.integers(0, 3), st.integers(0, 40))
def test_a_table_has_the_offset_of_each_cell(down: Any, along: Any, step: int, bits: int, start: int) -> None:
    inner = Layout((down, along), (Layout(down).stride, cute.transform_leaf(lambda d: d * step, Layout(along).stride)))
    for layout in (inner, ComposedLayout(Swizzle(bits, 1, 3), start, inner)):
        lines = format_layout(layout).splitlines()[3::2]
        rows, columns = (int(cute.size(inner, mode)) for mode in (0, 1))
        want = [[(layout(m, n) + 2**31) % 2**32 - 2**31 for n in range(columns)] for m in range(rows)]
        assert [[int(c) for c in line.split("|")[1:-1] if c] for line in lines] == want


def test_a_table_of_a_million_cells_is_soon_there() -> None:
    with within(600):
        assert len(format_layout(Layout((1000, 1000)))) == 20_032_933
        assert len(format_layout(Layout((1 << 18, 4)))) == 25_054_838


@given(st.lists(st.integers(0, 9), min_size=5, max_size=7))
def test_ranks_above_four_have_a_header_only(shape: list[int]) -> None:
    tensor = make_identity_tensor(tuple(shape))
    assert format_tensor(tensor) == f"{tensor}:\n"


@pytest.mark.parametrize("style", STYLES)
def test_print_is_format(style: str, capsys: pytest.CaptureFixture[str]) -> None:
    tensor = make_identity_tensor((2, 3))
    print_tensor(tensor, style=style)
    assert capsys.readouterr().out == format_tensor(tensor, style=style)
    stream = io.StringIO()
    print_tensor(tensor, file=stream, header=False, style=style)
    assert stream.getvalue() == format_tensor(tensor, header=False, style=style)


def test_tables_and_pictures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout((2, 3))
    print_layout(layout)
    print_latex(layout)
    print_latex_tv(Layout((2, 3), (E(0), E(1))), (2, 3))
    texts = format_layout(layout), format_latex(layout), format_latex_tv(Layout((2, 3), (E(0), E(1))), (2, 3))
    assert capsys.readouterr().out == "".join(texts)


@each_of("dtype", [d for d in DTYPES if d.storage != "complex128" and d.kind != "complex"], ids=str)
def test_every_type_has_a_cell(dtype: Any) -> None:
    one = np.ones(1).astype(dtype.numpy)[0]
    assert float(cell(one, dtype)) == 1
    assert float(element_text(one)) == 1


@each_of(
    ("value", "dtype", "shown"),
    [
        (np.uint32(2**31), "uint32", "-2147483648"),
        (np.int64(-5), "int64", "   -5"),
        (np.int8(-5), "int8", "  -5"),
        (np.float16(np.inf), "float16", "     inf"),
        (np.float32(-np.nan), "float32", "      -nan"),
        (np.float16(-np.nan), "float16", "     nan"),
        (np.float64(-0.0), "float64", " -0.000e+00"),
        (ml_dtypes.bfloat16(1.5), "bfloat16", "    1.50"),
        (np.float32(1e10), "float16", "10000000000.00"),
        (np.bool_(True), "bool", "  1"),
        (np.complex64(1), "complex64", "  (1+0j)"),
    ],
)
def test_cells(value: Any, dtype: str, shown: str) -> None:
    assert cell(value, as_dtype(dtype)) == shown


def test_texts_of_values() -> None:
    assert text((Int(4), (2, E(0)), ratio(1, 2))) == "(_4,(2,_1@0),_1/_2)"
    assert text(np.float32(1.5)) == text(1.5) == "1.500000"
    assert text((None, (3, None))) == "(_,(3,_))"
    assert text((None, Int(8), Layout(Int(2), Int(4)))) == "(_,_8,_2:_4)"
    assert text(None) == "_"
    assert text(True) == "1"
    assert text(np.int16(3)) == "3"
    assert text(make_gmem_ptr(16, "half")) == "gmem_ptr[16b](0x10)"
    assert c_float(2.0, "g") == "2"


def test_colours_can_be_chosen() -> None:
    assert "fill=white" in format_latex(Layout((2, 3)), color=lambda offset: "white")
    picture = format_latex_tv(Layout((2, 3), (E(0), E(1))), (2, 3), color=lambda thread, value: f"c{thread}v{value}")
    assert "\\node[fill=c1v2] at (1,2) {\\shortstack{T1 \\\\ V2}};" in picture


@pytest.mark.parametrize("bad", [Layout((2, 3)), 5, "tensor", None])
def test_only_tensors_are_printed_as_tensors(bad: Any) -> None:
    with pytest.raises(InvalidTypeError, match="takes a tensor"):
        format_tensor(bad)


@pytest.mark.parametrize("style", STYLES)
def test_symbols_have_no_elements(style: str) -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    with pytest.raises(InvalidTypeError, match="symbol n"):
        format_tensor(make_identity_tensor((n, 4)), style=style)


@pytest.mark.parametrize("style", ["cute", "ostream"])
def test_pointers_have_no_elements(style: str) -> None:
    with pytest.raises(TensorAccessError):
        format_tensor(make_tensor(make_gmem_ptr(0, "half"), (2, 3)), style=style)


def test_unknown_styles() -> None:
    with pytest.raises(InvalidValueError, match="numpy"):
        format_tensor(make_identity_tensor((2, 3)), style="numpy")


def test_ranks_of_tables_and_pictures() -> None:
    for layout in (Layout(4), Layout((2, 3, 4))):
        with pytest.raises(StaticAssertError, match="rank"):
            format_layout(layout)
    with pytest.raises(StaticAssertError, match="rank"):
        format_latex(Layout((2, 3, 4)))
    with pytest.raises(StaticAssertError, match="rank"):
        format_latex_tv(Layout(4, E(0)), (4, 1))


@pytest.mark.parametrize("make", [format_layout, format_latex])
def test_tables_are_of_integers(make: Any) -> None:
    with pytest.raises(InvalidTypeError, match="are coordinates"):
        make(Layout((2, 3), (E(0), E(1))))


def test_thread_value_pictures_are_of_coordinates_or_indices() -> None:
    """One convention: an index m + M*n of the tile is shown as its coordinate, in C++'s text."""
    indices = Layout((Int(3), Int(2)), (Int(2), Int(1)))
    assert format_latex_tv(indices, (Int(2), Int(3))) == format_latex_tv(
        Layout((Int(3), Int(2)), (E(1), E(0))), (Int(2), Int(3))
    )
    with pytest.raises(InvalidTypeError, match=r"needs coordinates \(m,n\)"):
        format_latex_tv(Layout((2, 3), (E(0), E(2))), (2, 3))
    with pytest.raises(InvalidValueError, match=r"at \(1,0\)"):
        format_latex_tv(Layout((2, 3), (E(0), E(1))), (1, 3))


def test_python_style_says_what_it_left_out() -> None:
    tensor = make_tensor(counting_iterator(0), (25, 17, 7), (1000, 1, 100000))
    out = format_tensor(tensor, style="python")
    assert out.splitlines()[-1] == "omitted: 19 of 25 rows, 11 of 17 columns, 1 of 7 slabs"
    assert "slab (_,_,6)" in out
    assert "slab (_,_,3)" not in out


@given(st.integers(0, 24), st.integers(0, 16))
def test_python_style_shows_everything_that_fits(m: int, n: int) -> None:
    out = format_tensor(make_tensor(counting_iterator(1000), (m, n)), header=False, style="python")
    assert "left out" not in out
    if m * n:
        rows = [line.partition("|")[2].split() for line in out.splitlines()[1:]]
        assert [[int(x) for x in row] for row in rows] == [[1000 + i + m * j for j in range(n)] for i in range(m)]
        assert len({len(line) for line in out.splitlines()}) == 1
    else:
        assert "no elements" in out


def test_python_style_of_other_ranks_and_engines() -> None:
    assert format_tensor(make_tensor(counting_iterator(7), ()), style="python").splitlines()[-1] == "7"
    assert format_tensor(make_tensor(counting_iterator(7), 2), header=False, style="python") == "0 | 7\n1 | 8\n"
    assert "pointer" in format_tensor(make_tensor(make_gmem_ptr(0, "half"), (2, 3)), style="python")
    five = make_identity_tensor((2, 1, 1, 1, 2))
    assert "(1,0,0,0,1)" in format_tensor(five, style="python")


@pytest.mark.parametrize(
    "tensor",
    [
        cute.make_identity_tensor((16, 8)),
        cute.make_identity_tensor(((cute.Int(4), 2), (cute.Int(1), 8))),
        cute.make_tensor(
            cute.make_inttuple_iter(3, (cute.Int(5), 7)),
            cute.Layout((8, (2, 4)), (cute.E(0), (2 * cute.E(1, 0), cute.E(1, 1)))),
        ),
        cute.make_tensor(cute.make_inttuple_iter(cute.Int(3), 5), cute.Layout((8, 16), (cute.E(1), cute.Int(0)))),
        cute.make_tensor(
            cute.make_inttuple_iter(0, 0), cute.Layout((4, 4, 4, 2), (cute.E(0), cute.E(1), 2 * cute.E(0), cute.E(1)))
        ),
        cute.make_tensor(cute.make_inttuple_iter(1, 2, 3), cute.Layout((100,), (cute.E(1),))),
    ],
    ids=str,
)
def test_cells_of_coordinates_are_those_of_the_elements(tensor: Any) -> None:
    """All cells at once, as one by one."""
    sizes = [int(cute.size(tensor, i)) for i in range(int(cute.rank(tensor)))]
    text = cute.format_tensor(tensor, header=False).replace("-", "").replace("=", "").split()
    order = itertools.product(*map(range, [*sizes[:1:-1], *sizes[:2]]))
    want = [cute.text(tensor(*place[len(sizes) - 2 :], *place[: len(sizes) - 2][::-1])) for place in order]
    if len(sizes) == 1:
        want = [cute.text(tensor(i)) for i in range(sizes[0])]
    assert text == want
