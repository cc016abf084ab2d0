"""Printed atoms and tiled operations, read back."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import Int
from cute_py.atom import COPY_ATOMS, MMA_ATOMS, TiledCopy, TiledMma, copy_atom, make_tiled_mma, mma_atom
from cute_py.errors import ParseError
from tests.oracle.records import rows


@pytest.mark.parametrize("name", ["tiled_mma", "tiled_copy"])
def test_every_recorded_print_is_read(name: str) -> None:
    texts = [row["result"]["print"] for row in rows(name) if "print" in row.get("result", {})]
    assert len(texts) > 10
    for text in texts:
        found = cute.parse(text)
        assert isinstance(found, TiledMma if name == "tiled_mma" else TiledCopy)
        assert str(found) == text


def test_atoms_are_read() -> None:
    for name in list(MMA_ATOMS)[::97]:
        atom = MMA_ATOMS[name]
        assert str(cute.parse(str(atom))) == str(atom)
    for name in list(COPY_ATOMS)[::11]:
        if name.startswith(("Universal", "Auto", "SM80")):
            continue
        printed = copy_atom(name, "uint8")
        assert str(cute.parse(str(printed))) == str(printed)


def test_the_type_of_a_chooses() -> None:
    text = str(mma_atom("SM80_16x8x16_F32BF16BF16F32_TN"))
    assert cute.parse(text, dtype="bfloat16").a_dtype.name == "bfloat16"
    assert cute.parse(text).a_dtype.name == "float16"
    wide = mma_atom("SM100_MMA_F16BF16_SS<bfloat16_t,bfloat16_t,float,64,24,K,MN>")
    assert str(cute.parse(str(wide))) == str(wide)


@pytest.mark.parametrize("layout", [(2, 2, 1), (1, 4, 2), (3, 1, 1)])
@pytest.mark.parametrize(
    "name", ["SM80_16x8x16_F16F16F16F16_TN", "SM70_8x8x4_F32F16F16F32_TN", "SM90_64x64x16_F16F16F16_SS"]
)
def test_a_tiled_mma_does_as_before(name: str, layout: Any) -> None:
    permutation = (None, Int(128) if "64x64" in name else None, None)
    mma = make_tiled_mma(name, layout, permutation)
    found = cute.parse(str(mma))
    assert found.get_layoutA_TV() == mma.get_layoutA_TV()
    assert str(found.get_slice(3).thr_vmnk) == str(mma.get_slice(3).thr_vmnk)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MMA_Atom\n  ThrID:      _32:_1\n", "expected a line Shape_MNK:"),
        (
            str(mma_atom("SM70_8x8x4_F16F16F16F16_TN")).replace("(_4,_2)", "(_2,_4)"),
            "at position 23: CuTe has no MMA atom with these layouts",
        ),
        ("TiledCopy\n  Tiler_MN: (_8,_8)\n  TiledLayout_TV: _8\n", "expected a layout"),
        (str(copy_atom("DefaultCopy", "half")).replace("16b", "many"), "expected a width such as 16b"),
        (str(copy_atom("SM75_U32x1_LDSM_N", "half")).replace("_128", "_127").replace("_8)", "_9)"), "no copy atom"),
    ],
)
def test_refusals(text: str, expected: str) -> None:
    with pytest.raises(ParseError, match=expected):
        cute.parse(text)


TILED_MMA = str(make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN"))


@pytest.mark.parametrize(
    ("text", "begin", "expected"),
    [
        (TILED_MMA.replace("(_,_,_)", "(_,_,x?)"), "x?", "expected|is not a number"),
        (
            TILED_MMA.replace("(_32,_1,", "(_32,_1:"),
            "(_32,",
            r"at position 27: expected an integer or a stride, got Layout; a stride x needs int \* x and x \+ x",
        ),
        (
            "TiledCopy\n  Tiler_MN: (_8,_0)\n  TiledLayout_TV: _8:_1\n",
            "(_8",
            "expected a tiler whose extents are positive numbers",
        ),
        ("TiledCopy\n  Tiler_MN: (_8,_8)\n  TiledLayout_TV: _8:_1:\n", ":\n", "expected the end"),
    ],
)
def test_errors_are_at_their_place(text: str, begin: str, expected: str) -> None:
    with pytest.raises(ParseError, match=expected) as caught:
        cute.parse(text)
    assert caught.value.position == text.index(begin)


@pytest.mark.parametrize("n", [64, 256])
@pytest.mark.parametrize(
    "name",
    [
        "SM100_MMA_TF32_TS_INTERLEAVED_CF32CTF32CTF32CF32_TN<128,{},",
        "SM100_MMA_TF32_2x1SM_TS_INTERLEAVED_CF32CTF32CTF32CF32_TN<256,{},",
    ],
)
def test_operations_of_other_extents_come_back(name: str, n: int) -> None:
    """Also those whose M and N come first among the template arguments."""
    typical = next(one.name for one in MMA_ATOMS.values() if one.name.startswith(name.format(128)))
    atom = mma_atom(typical.replace(name.format(128), name.format(n)))
    assert cute.parse(str(atom)).name == atom.name
