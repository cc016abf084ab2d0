"""Who holds what: MMAs, copies and ldmatrix addresses, checked against the thread-value layouts themselves."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.draw import draw, draw_copy, draw_ldmatrix, draw_mma, draw_tv
from cute_py.draw.picture import Picture
from cute_py.draw.table import Cell
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError

WARP = "SM80_16x8x16_F32F16F16F32_TN"
TILED = cute.make_tiled_mma(WARP, Layout(cute.static((2, 2, 1))), cute.static((32, 32, 16)))
LOAD = cute.make_tiled_copy_A(cute.copy_atom("SM75_U32x4_LDSM_N", "half"), TILED)


def _at(picture: Picture, row: int, column: int, table: int = 0) -> Cell:
    cell = picture.tables[table].rows[row][column]
    assert cell is not None
    return cell


def _pair(cell: Cell) -> tuple[int, int]:
    thread, value = cell.text.split(" ")[0].split("\n")
    return int(thread[1:]), int(value[1:])


def test_operands_are_around_each_other() -> None:
    picture, mma = draw_mma(WARP), cute.make_tiled_mma(WARP)
    assert len(picture.tables[0].rows) == 16 + 1 + 16
    for row in range(33):
        for column in range(25):
            cell = _at(picture, row, column)
            if column < 16 and row > 16:
                assert mma.get_layoutA_TV()(*_pair(cell)) == row - 17 + 16 * column
            elif column > 16 and row < 16:
                assert mma.get_layoutB_TV()(*_pair(cell)) == column - 17 + 8 * row
            elif column > 16 and row > 16:
                assert mma.get_layoutC_TV()(*_pair(cell)) == row - 17 + 16 * (column - 17)
            else:
                assert cell.blank
    assert picture.svg.count("<rect") == 16 * 16 + 16 * 8 + 16 * 8 + 1  # the paper


def test_one_operand_alone_has_the_cells_of_the_whole() -> None:
    whole = draw_mma(WARP)
    for operand, (rows, columns), (down, across) in (
        ("A", (16, 16), (17, 0)),
        ("B", (16, 8), (0, 17)),
        ("C", (16, 8), (17, 17)),
    ):
        picture = draw(cute.mma_atom(WARP), operand=operand)
        for i in range(rows):
            for j in range(columns):
                place = (j, i) if operand == "B" else (i, j)  # B is (N, K), and K runs down in the whole
                assert _at(picture, *place).text == _at(whole, down + i, across + j).text
        assert picture.title == f"{operand} of {whole.title}"
    shared = draw_mma("SM90_64x64x16_F32F16F16_SS", operand="A")
    assert _at(shared, 3, 5).text == "3,5"
    assert shared.notes == ("A is read from shared memory through a descriptor: no thread holds it",)
    with pytest.raises(InvalidValueError, match="operand"):
        draw_mma(WARP, operand="D")  # type: ignore[arg-type]


def test_each_thread_has_a_colour() -> None:
    picture = draw_mma(WARP)
    tones = {cell.tone for cell in picture.tables[0].cells if not cell.blank}
    assert tones == set(range(32))
    assert {cell.tone for cell in draw(TILED).tables[0].cells if not cell.blank} == tones  # of 128 threads
    assert all(f".tone{i}{{" in picture.svg for i in range(32))


def test_tiled_mma_says_who_else_holds_an_element() -> None:
    picture = draw(TILED)
    assert _at(picture, 17, 0).text == "T0\nV0 +1"  # both warps along N
    assert "thread 0 value 0, thread 64 value 0" in _at(picture, 17, 0).title
    for made, there in ((picture, True), (draw_mma(WARP), False)):
        for text in (made.svg, made.text):
            assert ("+1: one more thread or value holds the element" in text) is there


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("SM75_U32x4_LDSM_N", "half", (32, 8)),
        ("SM75_U32x1_LDSM_N", "half", (8, 8)),
        ("UniversalCopy<uint128_t>", "float32", (1, 4)),
        ("UniversalCopy<uint32_t>", "half", (1, 2)),
        ("SM90_U32x4_STSM_N", "float32", (32, 4)),
    ],
)
def test_an_atom_alone_has_16_bytes_in_a_row(name: str, dtype: str, shape: tuple[int, int]) -> None:
    atom = cute.copy_atom(name, dtype)
    for table, layout in zip(draw(atom).tables, (atom.layout_src_TV, atom.layout_dst_TV), strict=True):
        assert (len(table.rows), len(table.rows[0])) == shape
        for label, row in zip(table.row_labels, table.rows, strict=True):
            for across, cell in zip(table.column_labels, row, strict=True):
                assert cell is not None
                assert layout(*_pair(cell)) == int(label) + int(across)


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("SM90_64x32x16_F32F16F16_SS", ("A is read from shared memory", "B is read from shared memory")),
        ("SM90_64x32x16_F32F16F16_RS", ("B is read from shared memory",)),
        ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,K,K>", ("A is read", "B is read", "C is in tensor memory")),
    ],
)
def test_operands_that_no_thread_holds(name: str, notes: tuple[str, ...]) -> None:
    picture = draw_mma(name)
    assert len(picture.notes) == len(notes)
    assert all(note.startswith(begin) for note, begin in zip(picture.notes, notes, strict=True))


def test_source_and_destination_of_a_copy() -> None:
    picture = draw_copy(LOAD)
    assert [table.title.split(":")[0] for table in picture.tables] == ["source", "destination"]
    for table, layout in enumerate((LOAD.get_layoutS_TV(), LOAD.get_layoutD_TV())):
        for i in range(32):
            for j in range(16):
                assert layout(*_pair(_at(picture, i, j, table))) == i + 32 * j
    assert draw(cute.copy_atom("SM75_U32x1_LDSM_N", "half")).tables[1].rows[0][2].text == "T1\nV0"  # type: ignore[union-attr]


def test_ldmatrix_addresses_are_those_of_the_partition() -> None:
    plain = Layout(cute.static((32, 32)), cute.static((32, 1)))
    coordinates = cute.make_identity_tensor(cute.static((32, 32)))
    for step in (0, 1):
        table = draw_ldmatrix(LOAD, plain, step=step).tables[0]
        found = {}
        for label, row in zip(table.row_labels, table.rows, strict=True):
            for unit, cell in enumerate(row):
                assert cell is not None
                for lane in filter(None, cell.text.split(",")):
                    found[int(lane[1:])] = int(label) + 16 * unit
        for lane in range(32):
            start = LOAD.get_slice(lane).partition_S(coordinates)((0, 0), 0, step)
            assert found[lane] == 2 * int(plain(tuple(start.as_tuple())))


def test_passes_of_ldmatrix_are_bank_conflicts() -> None:
    plain = Layout(cute.static((32, 32)), cute.static((32, 1)))
    swizzled = cute.tile_to_shape(cute.gmma_layout("K_SW64", "half"), cute.static((32, 32)))
    assert all("4 passes" in note for note in draw_ldmatrix(LOAD, plain).notes)
    assert cute.bank_conflicts(plain, "half", access=LOAD).ways == 4
    assert all("1 pass" in note for note in draw_ldmatrix(LOAD, swizzled, warp=1).notes)


def test_one_convention_of_thread_value_layouts() -> None:
    """Indices, coordinates as a layout, coordinates as a tensor: the same cells."""
    tv = cute.make_tiled_mma(WARP).get_layoutC_TV()
    coordinates = cute.composition(cute.make_identity_layout(cute.static((16, 8))), tv)
    tensor = cute.composition(cute.make_identity_tensor(cute.static((16, 8))), tv)
    texts = [[cell.text for cell in draw_tv(x, (16, 8)).tables[0].cells] for x in (tv, coordinates, tensor)]
    assert texts[0] == texts[1] == texts[2]
    assert cute.format_latex_tv(tv, cute.static((16, 8))) == cute.format_latex_tv(coordinates, cute.static((16, 8)))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: draw_mma(4), InvalidTypeError, "draw_mma takes"),  # type: ignore[arg-type]
        (lambda: draw_mma("SM80_16x8x17"), InvalidValueError, "has no MMA operation"),
        (lambda: draw_copy(TILED), InvalidTypeError, "draw_copy takes"),  # type: ignore[arg-type]
        (lambda: draw_ldmatrix(LOAD, Layout((32, 32)), step=2), InvalidValueError, "step"),
        (lambda: draw_ldmatrix(LOAD, Layout((32, 32)), warp=4), InvalidValueError, "warp"),
        (lambda: draw_ldmatrix(LOAD, 4), InvalidTypeError, "a layout of shared memory"),  # type: ignore[arg-type]
        (
            lambda: draw_ldmatrix(
                cute.make_tiled_copy_A(cute.copy_atom("DefaultCopy", "half"), TILED), Layout((32, 32))
            ),
            InvalidTypeError,
            "is not ldmatrix or stmatrix",
        ),
    ],
)
def test_refusals(make: object, error: type[CuteError], text: str) -> None:
    with pytest.raises(error, match=text):
        make()  # type: ignore[operator]


def test_stmatrix_addresses_are_of_the_destination() -> None:
    store = cute.make_tiled_copy_C(cute.copy_atom("SM90_U32x2_STSM_N", "half"), cute.make_tiled_mma(WARP))
    picture = draw_ldmatrix(store, Layout(cute.static((16, 8)), (Int(8), Int(1))))
    assert picture.title.startswith("SM90_U32x2_STSM_N stores to")
    assert len(picture.notes) == 2
