"""Errors of texts at the place where they are, and what stands beside the texts that are read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import cute_py as cute
from cute_py import (
    BlockedEncoding,
    Int,
    Layout,
    NvmmaSharedEncoding,
    TritonLayout,
    from_dsl,
    parse,
    parse_triton,
    parse_triton_encoding,
    static,
    to_dsl,
)
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, LayoutError, ParseError
from tests.each import each_of

SHARED = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
BLOCKED = BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0))
TILED = cute.make_tiled_copy(cute.copy_atom("DefaultCopy", "float16"), static(Layout((4, 8))), static(Layout((2, 2))))
THREAD = cute.make_tiled_mma(cute.mma_atom("SM80_16x8x16_F32BF16BF16F32_TN"), Layout((2, 1, 1))).get_slice(3)


def without_line(text: str, name: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.strip().startswith(name))


def with_value(text: str, name: str, value: str) -> str:
    lines = text.split("\n")
    return "\n".join([f"  {name}: {value}" if line.strip().startswith(name) else line for line in lines])


NOT_NUMBERS = with_value(str(TILED), "TiledLayout_TV", "(M,4):(1,2)")
NO_TYPE = to_dsl(TILED).replace("f16", "q16")


@each_of(
    ("read", "text", "mark", "headline"),
    [
        (parse, "(1@x)", "x", "expected the index of a mode after @"),
        (parse, "tensor<(4,8):(1,4)", "", "expected '>'"),
        (parse, "Max()", "Max", "Max needs at least one operand"),
        (parse, "E<>+1@0", "+", "expected the end of the text"),
        (parse, "(2/0)", "2", "division by zero"),
        (parse, "(_2/_0)", "_2", "the ratio _2/_0 has denominator 0"),
        (parse, without_line(str(THREAD), "Thr VMNK"), "\nTiled", "expected a line Thr VMNK:"),
        (parse, NOT_NUMBERS, "(M,4)", "expected a layout of numbers"),
        (parse, NO_TYPE, "q16", "unknown element type 'q16'"),
        (parse_triton_encoding, SHARED.replace("8, per", "8 per"), "perPhase", "expected ','"),
        (parse_triton_encoding, SHARED[:-1], "", "expected '>'"),
        (
            parse_triton,
            "#ttg.linear<{lane = [[1]], colour = []}>",
            "#",
            "expected bases of register, lane, warp, block",
        ),
        (parse_triton, "#ttg.linear<{lane = [[1]], offset = [[2]]}>", "#", "expected bases of offset, block"),
        (
            parse_triton,
            " - lane=1 -> (1)\nwhere out dims are: [dim0 (size 2), dim1]",
            "where",
            "expected out dims such as dim0 (size 16)",
        ),
    ],
)
def test_the_error_is_where_the_text_is_wrong(
    read: Callable[[str], object], text: str, mark: str, headline: str
) -> None:
    place = text.index(mark) if mark else len(text)
    with pytest.raises(ParseError) as caught:
        read(text)
    assert caught.value.headline.partition(": ")[2].startswith(headline)
    assert abs(caught.value.position - place) <= 1  # before or after a blank


def test_as_many_terms_are_read_as_are_allowed() -> None:
    assert parse("+".join(["1@0"] * 64)) == cute.ArithTuple(64)
    text = "+".join(["1@0"] * 65)
    with pytest.raises(ParseError, match="the linear combination has more than 64 terms") as caught:
        parse(text)
    assert caught.value.position == text.rindex("+")


@pytest.mark.parametrize("text", ["tensor<(4):(1)>", "tensor< (4):(1) >"])
def test_the_word_tensor_stands_around_a_layout(text: str) -> None:
    assert from_dsl(text) == Layout((Int(4),), (Int(1),))


def test_a_composition_of_compositions_is_no_text_of_the_dsl() -> None:
    text = "S<1,0,2> o 0 o S<1,0,2> o 0 o (4):(1)"
    assert isinstance(parse(text), cute.ComposedLayout)
    with pytest.raises(InvalidTypeError, match="got ComposedLayout"):
        from_dsl(text)


@pytest.mark.parametrize("part", [TILED, TILED.atom], ids=["tiled", "atom"])
def test_blanks_at_the_ends_of_lines_mean_nothing(part: Any) -> None:
    text = to_dsl(part)
    spaced = "\n".join(f"  {line}  " for line in text.split("\n"))
    assert from_dsl(spaced) == from_dsl(text)
    assert to_dsl(from_dsl(spaced)) == text


def test_the_type_that_is_given_is_read_in_place_of_that_of_the_text() -> None:
    found = from_dsl(to_dsl(TILED), dtype="bfloat16")
    assert isinstance(found, cute.TiledCopy)
    assert (found.atom.dtype, TILED.atom.dtype) == (as_dtype("bfloat16"), as_dtype("float16"))
    atom = cute.mma_atom("SM80_16x8x16_F32BF16BF16F32_TN")
    assert parse(str(atom), dtype="bfloat16") == atom
    with pytest.raises(ParseError, match="CuTe has no MMA atom with these layouts"):
        parse(str(atom), dtype="int8")


def test_a_thread_of_a_tiled_operation_reads_back() -> None:
    found: Any = parse(str(THREAD), dtype="bfloat16")
    assert (str(found), found.thr_vmnk) == (str(THREAD), THREAD.thr_vmnk)


@pytest.mark.parametrize("encoding", [BLOCKED, parse_triton_encoding(SHARED)], ids=["blocked", "shared"])
@pytest.mark.parametrize("shape", [(64,), (64, 64, 64)])
def test_a_tile_has_the_dimensions_of_its_encoding(encoding: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(
        LayoutError, match=f"^the tile has {len(shape)} dimensions and the encoding 2; they must be equal"
    ):
        encoding.linear(shape)


@pytest.mark.parametrize(
    "text",
    [
        SHARED,
        "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>",
        "#ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16, rank = 3}>",
    ],
)
def test_encodings_leave_out_what_triton_leaves_out(text: str) -> None:
    assert str(parse_triton_encoding(text)) == text


@pytest.mark.parametrize(("lanes", "last"), [(8, "dimension 1"), (4, "16 threads per warp; a warp of an")])
def test_a_warp_of_another_size_is_a_fact(lanes: int, last: str) -> None:
    assert BlockedEncoding((1, 4), (4, lanes), (2, 1), (1, 0)).facts()[-1].startswith(last)


def test_facts_go_from_the_whole_to_the_bits() -> None:
    assert BLOCKED.linear((8, 32)).facts() == [
        "4 registers x 32 lanes x 2 warps x 1 CTA = 256 places",
        "a tensor of 8 x 32 = 256 elements",
        "each element is held exactly once",
        "4 neighbouring elements of the last dimension in the registers of one thread",
    ]


@pytest.mark.parametrize(
    "made",
    [
        BLOCKED.linear((8, 32)),
        parse_triton_encoding(SHARED).linear((8, 64)),
        TritonLayout((("offset", ((1,), (2,))), ("block", ((4,),))), (("dim0", 8),)),
        TritonLayout((("offset", ((1,), (2,))), ("block", ())), (("dim0", 4),)),
    ],
)
def test_attributes_read_back(made: TritonLayout) -> None:
    text = made.attribute()
    assert parse_triton(text) == made
    assert ("block = []" in text) == ("register" in made.sizes)  # a shared one without blocks has no list of them


def test_one_shared_memory_is_a_layout_and_several_are_none() -> None:
    def made(blocks: tuple[tuple[int], ...]) -> TritonLayout:
        return TritonLayout((("offset", ((1,), (2,))), ("block", blocks)), (("dim0", 4 << len(blocks)),))

    assert made(()).to_layout() == static(Layout((4,)))
    with pytest.raises(
        LayoutError, match="CuTe can express the shared memory of one block, but this layout has several blocks"
    ):
        made(((4,),)).to_layout()


def test_a_dimension_of_one_line_has_no_bases() -> None:
    text = " - lane is a size 1 dimension\n - warp=1 -> (1)\nwhere out dims are: [dim0 (size 2)]"
    assert parse_triton(text).bases == (("lane", ()), ("warp", ((1,),)))


@pytest.mark.parametrize("transposed", [False, True])
def test_without_a_swizzle_one_dimension_after_the_other_is_contiguous(transposed: bool) -> None:
    made = NvmmaSharedEncoding(0, transposed, 16).linear((4, 8))
    rows = [basis for name, own in made.bases if name == "offset" for basis in own]
    places = [row[::-1] if transposed else row for row in rows]
    sizes = (8, 4) if transposed else (4, 8)
    steps = [row * sizes[1] + column for row, column in places]
    assert all(b == 2 * a for a, b in pairwise([*steps])) and steps[0] == 1


@pytest.mark.parametrize("op_idx", [0, 1])
def test_every_thread_along_k_holds_all_of_an_operand(op_idx: int) -> None:
    made = cute.DotOperandEncoding(op_idx, BLOCKED, 0).linear((16, 32))
    k = 1 - op_idx
    moved = {name: {i for basis in own for i, n in enumerate(basis) if n} for name, own in made.bases}
    assert k not in moved["lane"] | moved["warp"]
    reached = sum(basis[k] for name, own in made.bases if name == "register" for basis in own)
    assert reached + 1 == (16, 32)[k]


@pytest.mark.parametrize("value", ["cga_layout=None", "cga_layout=[]"])
def test_none_is_no_list_of_a_class(value: str) -> None:
    text = (
        f"BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[4, 8], warps_per_cta=[2, 1], order=[1, 0], {value})"
    )
    assert parse_triton_encoding(text) == BLOCKED


def test_symbols_have_integers_as_values() -> None:
    assert parse("(M,2*M)", symbols={"M": 4}) == (4, 8)
    for value in ("4", 4.0, None):
        with pytest.raises(InvalidTypeError, match=r"^symbols\['M'\] must be an integer"):
            parse("(M,2*M)", symbols={"M": value})


@pytest.mark.parametrize("modes", [(0,), (1, 0), (0, 2, 1)])
def test_basis_elements_of_types_have_their_outermost_mode_first(modes: tuple[int, ...]) -> None:
    word = f"E<{','.join(map(str, modes))}>"
    assert parse(f"{word}{{}}") == cute.E(*modes)
    assert parse(f"3*{word}{{}}") == 3 * cute.E(*modes) == parse("3" + "".join(f"@{n}" for n in reversed(modes)))


@pytest.mark.parametrize("op_idx", [0, 1])
def test_an_operand_lies_across_threads_as_its_accumulator(op_idx: int) -> None:
    parent = BlockedEncoding((2, 4), (4, 8), (2, 1), (1, 0))
    tile, k = (16, 32), 1 - op_idx
    held, whole = dict(cute.DotOperandEncoding(op_idx, parent, 0).linear(tile).bases), dict(parent.linear(tile).bases)
    for name in ("lane", "warp"):
        assert held[name] == tuple([tuple([0 if i == k else n for i, n in enumerate(b)]) for b in whole[name]])
    assert {b[op_idx] for b in held["register"]} == {0, *(b[op_idx] for b in whole["register"])}


@pytest.mark.parametrize(
    ("word", "make"), [("", cute.make_ptr), ("smem_", cute.make_smem_ptr), ("gmem_", cute.make_gmem_ptr)]
)
def test_pointers_have_the_space_of_their_word(word: str, make: Callable[..., object]) -> None:
    assert parse(f"{word}ptr[16b](0x20)") == make(0x20, "uint16")


def test_a_swizzle_of_bytes_is_printed_in_elements() -> None:
    held: Any = parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")
    assert to_dsl(held) == "S<3,3,3> o 0 o (8,64):(64,1)"
