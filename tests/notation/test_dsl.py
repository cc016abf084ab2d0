"""What CuTe DSL prints: recorded texts, written and read; what its texts can't hold."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py import Layout
from cute_py.errors import CuteError, InvalidTypeError, LayoutError, ParseError
from cute_py.notation.dsl import from_dsl, to_dsl
from tests.oracle.records import rows, tally


def _made(row: dict[str, object]) -> object:
    """The object of a row, made from its arguments."""
    if row["kind"] in ("layout", "composed"):
        return cute.parse(str(row["cpp"]))
    if row["kind"] == "tiled_copy":
        both = [
            cute.make_ordered_layout(cute.static(tuple(shape)), cute.static(tuple(order)))
            for shape, order in (row["threads"], row["values"])  # type: ignore[attr-defined]
        ]
        return cute.make_tiled_copy(cute.copy_atom(row["atom"], row["dtype"]), *both)  # type: ignore[arg-type]
    if row["kind"] == "tiled_mma":
        letters = {"float16": "F16", "bfloat16": "BF16"}[str(row["dtype"])]
        name = f"SM80_16x8x{row['k']}_F32{letters}{letters}F32_TN"
        tile = row["permutation"]
        permuted = None if tile is None else cute.static(tuple(tile))  # type: ignore[arg-type]
        return cute.make_tiled_mma(name, Layout(cute.static(tuple(row["atoms"]))), permuted)  # type: ignore[arg-type]
    return None


def test_recorded_texts_are_written_and_read() -> None:
    table, wrong = rows("dsl_prints"), []
    for row in table:
        read = from_dsl(row["text"], dtype=row.get("dtype") if row["kind"] == "tiled_mma" else None)
        made = _made(row)
        if to_dsl(read) != row["text"] or (
            made is not None and (to_dsl(made) != row["text"] or str(read) != str(made))
        ):  # type: ignore[arg-type]
            wrong.append(row["id"])
    tally("dsl_prints", len(table) - len(wrong), len(table))
    assert wrong == []


def test_copy_atoms_come_back_with_their_reference() -> None:
    """The text has no reference layout; the first atom with the same source and destination has the same one."""
    for name in list(cute.COPY_ATOMS)[::7]:
        try:
            atom = cute.copy_atom(name, "float16")
        except CuteError:
            continue
        found = from_dsl(to_dsl(atom))
        assert str(found) == str(atom)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: to_dsl(Layout((4, 2))), LayoutError, "CuTe DSL prints ? for a number that is known only at run"),
        (lambda: to_dsl(cute.copy_atom("DefaultCopy", "uint8")), LayoutError, "no name for"),
        (lambda: to_dsl(4), InvalidTypeError, "to_dsl needs"),  # type: ignore[arg-type]
        (lambda: from_dsl("(?,8):(8,1)"), ParseError, "position"),
        (lambda: from_dsl("4"), InvalidTypeError, "from_dsl reads"),
        (lambda: from_dsl("Tiled Copy\n  Tiler MN: (8:1)\n"), ParseError, "expected a line"),
        (lambda: from_dsl("Copy Atom\n  ThrID: 1:0\n  Value type: q7"), CuteError, "q7"),
    ],
)
def test_refusals(make: object, error: type[CuteError], text: str) -> None:
    with pytest.raises(error) as found:
        make()  # type: ignore[operator]
    assert text in str(found.value)


COPY_ATOM = to_dsl(cute.copy_atom("SM75_U32x4_LDSM_N", "half"))
MMA_ATOM = to_dsl(cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN"))


@pytest.mark.parametrize(
    ("text", "begin", "expected"),
    [
        (COPY_ATOM.replace("f16", "f17"), "f17", "unknown element type 'f17'"),
        (COPY_ATOM.replace("f16", ""), "", "unknown element type ''"),
        (COPY_ATOM.replace("Dst", "Dist"), "", "expected a line TV Layout Dst:"),
        (MMA_ATOM[: MMA_ATOM.index("  TV Layout C")], "", "expected a line TV Layout C:"),
        ("\n" + MMA_ATOM.replace("32:1", "32:2"), "32:2", "CuTe has no MMA atom with these layouts"),
        (f"Tiled MMA\n  Thr Layout VMNK: (32,1,?\n{MMA_ATOM}", "(32,1,?", "known only at run time"),
    ],
)
def test_errors_are_at_their_place(text: str, begin: str, expected: str) -> None:
    """In the text as it is given, not as C++ would print it, which is longer."""
    with pytest.raises(ParseError, match=expected) as caught:
        from_dsl(text)
    assert caught.value.position == (text.index(begin) if begin else len(text))


@pytest.mark.parametrize(
    "text",
    [
        "#ttg.swizzled_shared<{vec = \u0668, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
        "#ttg.linear<{register = [[0, \u0661]], lane = [], warp = [], block = []}>",
    ],
)
def test_digits_are_those_of_ascii(text: str) -> None:
    with pytest.raises(ParseError):
        cute.parse(text)
