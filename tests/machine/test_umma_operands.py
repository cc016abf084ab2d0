"""How one tcgen05.mma reads its operands: tensors beside CuTe's, words, pictures, and the operands of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.atom import SmemSwizzle, find_smem_operand
from cute_py.atom.smem_descriptor import Major
from cute_py.errors import InvalidTypeError, InvalidValueError, TmemError
from cute_py.layout import offsets
from tests.machine.tensor_kernels import kernel, layout_of, run
from tests.machine.test_tensor_matrices import descriptor, multiply
from tests.machine.test_tensor_matrices import operands as shared_operands
from tests.oracle.records import rows, tally

A, B = 0x4000404000010040, 0x4000404000010440
F16 = 0x08400010
KINDS = {
    "f16": ("f16", "f16", "float16", 16), "bf16": ("f16", "bf16", "bfloat16", 16),
    "tf32": ("tf32", "tf32", "float32", 32),
    "s8": ("i8", "s8", "int8", 8), "e4m3": ("f8f6f4", "e4m3", "float8_e4m3fn", 8),
}  # fmt: skip
SCALED_TYPES = {1: 1 << 23, 2: 1 << 23, 4: 0}
SCALED = {1: "mxf8f6f4", 2: "mxf4nvf4", 4: "mxf4nvf4"}


def scaled(factors: int, m: int, n: int) -> int:
    """An instruction descriptor of a kind with scale factors."""
    types = 0 if factors == 1 else 1 << 7 | 1 << 10
    return types | SCALED_TYPES[factors] | n // 8 << 17 | m // 16 << 24


def operands_of(row: dict[str, Any]) -> cute.UmmaOperands:
    """The operands of an instruction whose fragment a record has."""
    m = row["rows"] * row["ctas"]
    if row["factors"]:
        m, n = (m, 128) if row["operand"] == "SFA" else (128, row["rows"])
        kind, vector = SCALED[row["factors"]], row["factors"]
        return cute.UmmaOperands(scaled(row["factors"], m, n), A, B, kind, row["ctas"], scale_vec=vector)
    if row["operand"] == "A":
        kind, a = {16: ("f16", "f16"), 32: ("tf32", "tf32"), 8: ("i8", "s8")}[row["bits"]]
        d = "s32" if kind == "i8" else "f32"
        return cute.UmmaOperands(descriptor(a, a, m, 32, d=d), 0, B, kind, a_in_tmem=True)
    d = "f32" if row["bits"] == 32 else "f16"
    idesc = descriptor("f16", "f16", m, row["columns"], d=d)
    return cute.UmmaOperands(idesc, A, B, "f16", row["ctas"], weights=row["ws"])


def test_tensor_memory_as_cute_prints_it() -> None:
    found = rows("umma_fragments")
    for row in found:
        fragment: Any = cute.parse(row["text"])
        operands = operands_of(row)
        mine = getattr(operands, row["operand"])
        assert str(mine.layout) == str(fragment.layout[0]), row
        assert str(mine.engine) == str(fragment.engine), row
    tally("umma_fragments", len(found), len(found))


CASES = [
    (kind, swizzle, major)
    for kind, row in KINDS.items()
    for swizzle in SmemSwizzle
    for major in Major
    if swizzle is not SmemSwizzle.B128_ATOM32 or (major is Major.MN and row[3] == 32)
]


@pytest.mark.parametrize(("kind", "swizzle", "major"), CASES)
def test_addresses_in_shared_memory_are_those_of_the_layout(kind: str, swizzle: SmemSwizzle, major: Major) -> None:
    name, short, dtype, bits = KINDS[kind]
    step = 256 // bits
    layout = layout_of(major, swizzle, bits, (128, 4 * step))
    whole = np.asarray(offsets(layout)).reshape(128, 4 * step) * bits // 8
    found = find_smem_operand(layout, dtype, major=major, swizzle=swizzle)
    idesc = descriptor(short, short, 128, 128, d="s32" if kind == "s8" else "f32", majors=f"{major}"[0] * 2)
    for i in range(len(found.starts)):
        word = found.descriptor(0x4000, i).encode()
        operands = cute.UmmaOperands(idesc, word, word, name)
        for tensor in (operands.A, operands.B):
            plain = tensor.engine.address + np.asarray(offsets(tensor.layout)) * bits // 8
            b, base, shift = swizzle.cute
            moved = plain ^ (plain >> shift & ((1 << b) - 1) << base)
            assert (moved == 0x4000 + whole[:, i * step : (i + 1) * step]).all()


# ---- words -----------------------------------------------------------------------------------------------------------


def test_a_paste_of_three_descriptors() -> None:
    said = str(cute.explain(f"tcgen05.mma kind::f16\nidesc = {F16:#010x}\ndesc_a: {A:#x}\ndesc_b: {B:#x}"))
    assert "The operands of tcgen05.mma of kind::f16, cta_group::1" in said
    assert "tensor       : Sw<3,4,3>_smem_ptr[16b](0x4400) o ((_8,_32),(_16,_1)):((_64,_512),(_1,_8))" in said
    assert "row 1        : 0x490 0x480" in said
    assert "D(r, n)      : lane r, column n" in said
    picture = said.partition("a picture: cute.draw.draw(")[2].partition("\n")[0]
    assert eval(picture.removesuffix(")"), {"cute": cute}) == cute.UmmaOperands(F16, A, B)


def test_a_paste_without_one_of_the_descriptors() -> None:
    assert "The operands of" not in str(cute.explain(f"idesc = {F16:#010x}\ndesc_a: {A:#x}"))


def test_a_paste_of_a_pair() -> None:
    text = f"cta_group::2 kind::mxf4nvf4 scale_vec::4X idesc={scaled(4, 256, 128):#010x} a_desc={A:#x} b_desc={B:#x}"
    said = str(cute.explain(text))
    assert "rows 0 to 127 of A and D and rows 0 to 63 of B" in said
    assert "SFB in tensor memory: 128 rows x 4 of ue4m3, each for 16 elements of K" in said


@pytest.mark.parametrize(
    ("m", "cta_group", "weights", "place"),
    [
        (128, 1, False, "lane r, column n"),
        (64, 1, False, "lane 32 * (r // 16) + r % 16, column n"),
        (256, 2, False, "lane r, column n"),
        (128, 2, False, "lane r + 64 * (n // 64), column n % 64"),
        (32, 1, True, "lane r + 32 * (n // 32), column n % 32"),
    ],
)
def test_where_d_is(m: int, cta_group: int, weights: bool, place: str) -> None:
    operands = cute.UmmaOperands(descriptor("f16", "f16", m, 128), A, B, cta_group=cta_group, weights=weights)
    assert f"D(r, n)      : {place}" in operands.explain()
    picture = cute.draw.draw(operands)
    lanes = picture.tables[2]
    row = lanes.row_labels.index("32")
    expected = {"lane r": "32,0", "lane 32": "16,0"}.get(place.split(",")[0].split(" *")[0])
    if expected is not None:
        cell = lanes.rows[row][0]
        assert cell is not None and cell.text == expected
    assert picture.svg.startswith("<svg")


def test_a_picture_has_addresses_and_rows_of_scale_factors() -> None:
    operands = cute.UmmaOperands(scaled(4, 128, 128), A, B, "mxf4nvf4", scales=(256, 260))
    a, b, _, sfa, sfb = cute.draw.draw(operands).tables
    assert [cell.text for cell in a.rows[1] if cell is not None] == ["0x490", "0x480"]
    assert b.title == "B: shared addresses, K-major"
    assert sfa.column_labels == ("256", "257", "258", "259")
    assert sfb.column_labels == ("260", "261", "262", "263")
    assert [cell.text for cell in sfb.rows[2] if cell is not None] == ["2", "34", "66", "98"]
    assert "shared address 0x490, bank 4" in next(cell.title for cell in a.rows[1] if cell is not None)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (TmemError, "M = 256; must be 64 or 128", {"idesc": descriptor("f16", "f16", 256, 64)}),
        (TmemError, "D begins in lane 4", {"d": 4 << 16}),
        (TmemError, "scale_vec = 4; must be None with kind::f16", {"scale_vec": 4}),
        (TmemError, "swizzle code is 7", {"a": 7 << 61 | 1 << 46}),
        (InvalidValueError, "base offset 1", {"a": A | 1 << 49}),
        (InvalidTypeError, "wgmma", {"b": cute.SmemDescriptor(0, 1, 64, SmemSwizzle.B128, "wgmma")}),
        (TmemError, "scales has 1 address; must have two", {"scales": (0,)}),
    ],
)
def test_operands_that_no_instruction_takes(error: type[Exception], words: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=words):
        cute.UmmaOperands(**({"idesc": F16, "a": A, "b": B} | arguments))


# ---- of a run --------------------------------------------------------------------------------------------------------


def test_the_operands_of_an_instruction_that_ran() -> None:
    _, _, image, loads = shared_operands("f16", "f16", 128, 32, 16)
    idesc = descriptor("f16", "f16", 128, 32)
    text = kernel(loads + multiply(idesc, "f16"))
    found, _ = run(text, image, schedule="eager")
    line = next(i for i, one in enumerate(text.split("\n"), 1) if "tcgen05.mma" in one)
    operands = found.umma_operands(line)
    assert operands.idesc == idesc and operands.kind == "f16"
    assert str(operands.A.layout) == "((_8,_16),(_16,_1)):((_16,_128),(_1,_8))"
    with pytest.raises(InvalidValueError, match=f"no product at line {line + 1}") as error:
        found.umma_operands(line + 1)
    assert str(line) in str(error.value.facts)
    with pytest.raises(InvalidValueError, match="CTA 7"):
        found.umma_operands(line, 7)
