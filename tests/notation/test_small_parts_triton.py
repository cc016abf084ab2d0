"""Single layouts and encodings of Triton: bases, facts, bounds of parameters, texts and what each refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py import ComposedLayout, Int, Layout, Swizzle, parse, static
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError, ParseError
from cute_py.notation.triton import TritonLayout, from_triton, parse_triton, to_triton
from cute_py.notation.triton_encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    NvidiaMmaEncoding,
    NvmmaSharedEncoding,
    SliceEncoding,
    SwizzledSharedEncoding,
)
from cute_py.notation.triton_texts import parse_any, parse_triton_encoding

BLOCKED = BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0))
MMA = NvidiaMmaEncoding(2, 0, (2, 2), (16, 8))
ONE_WARP = NvidiaMmaEncoding(2, 0, (1, 1), (16, 8))
WGMMA = NvidiaMmaEncoding(3, 0, (4, 1), (16, 64, 16))
POWERS = "; must be powers of two, at most 2**30"
RANKS = "the parameters of an encoding must have the same rank, 1 to 8"
OF_BLOCKED = [
    "1 x 4 registers, 4 x 8 lanes, 2 x 1 warps: a tile of 8 x 32",
    "64 threads, 4 elements each",
    "dimension 1 is contiguous: 4 neighbouring elements per thread",
]
CTA_KEYS = "CGALayout, CTAsPerCGA, CTASplitNum, CTAOrder, ctas_per_cga, cta_split_num, cta_order once"
BLOCKED_KEYS = f"expected each of sizePerThread, threadsPerWarp, warpsPerCTA, order, {CTA_KEYS}"
SHARED_KEYS = f"expected each of vec, perPhase, maxPhase, order, {CTA_KEYS}"
OUT = "\nwhere out dims are: [dim0 (size 2)]"


def refusal(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(CuteError) as caught:
        call(*arguments, **named)
    return caught.value.headline


def bases(layout: TritonLayout) -> str:
    return layout.attribute().partition("<{")[2].partition("}>")[0].partition("}, al")[0]


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "expected a line `where out dims are: [...]`"),
        (" - lane=1 -> (0)", 16, "expected a line `where out dims are: [...]`"),
        ("  nonsense", 0, "expected a basis such as lane=1 -> (0, 2)"),
        (" - lane=1 -> (x)" + OUT, 0, "expected a basis such as lane=1 -> (0, 2)"),
        (" - lane=1 -> (-)" + OUT, 0, "expected integers of a basis"),
        (" - register=1 -> (1)\n - lane=1 -> (1 1)" + OUT, 21, "expected integers of a basis"),
        (" - lane=2 -> (1)" + OUT, 0, "expected lane=1"),
        (" - lane=1 -> (1)\n   lane=4 -> (1)" + OUT, 17, "expected lane=2"),
        ("\n - lane=1 -> (1)\nwhere out dims are: [dim0]", 18, "expected out dims such as dim0 (size 16)"),
        ("#ttg.linear<{register = [[0, 1]], lane = [[1]]}>", 0, "expected bases of one rank"),
        ("#ttg.linear<{register = [], lane = [], warp = []}>", 0, "no basis defines the rank of the tile"),
        ("#ttg.linear<{register = [1], lane = []}>", 0, "expected lists of integers as bases"),
        ("#ttg.linear<{register = [[[1]]], lane = []}>", 0, "expected lists of integers as bases"),
        ("#ttg.linear<{register = [[1], lane = []}>", 24, "expected a list of bases of register"),
        ("#ttg.linear<{}>", 0, "expected bases of register, lane, warp, block"),
        ("#ttg.linear<{block = [[1]]}>", 0, "expected bases of register, lane, warp, block"),
        ("#ttg.shared_linear<{offset = [[1]], lane = [[1]]}>", 0, "expected bases of offset, block"),
        ("DistributedLinearLayout(reg_bases=[[0, 1]], shape=[2])", 0, "expected bases of one rank"),
    ],
)
def test_texts_of_bases_that_are_refused(text: str, position: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_triton(text)
    assert caught.value.headline == f"at position {position}: {expected}"
    assert (caught.value.position, caught.value.facts) == (position, {"text": text})


def test_texts_of_bases() -> None:
    for text, shown in {
        "(empty layout)": "\n(empty layout)",
        "\n(empty layout)\n": "\n(empty layout)",
        "(empty layout with out-dims [dim0 (size 4)])": "\n(empty layout with out-dims [dim0 (size 4)])",
        "where out dims are: []": "\n(empty layout)",
    }.items():
        found = parse_triton(text)
        assert (found.bases, str(found)) == ((), shown)
        assert parse_triton(str(found)) == found
    assert parse_triton("(empty layout with out-dims [dim0 (size 4)])").out_dims == (("dim0", 4),)
    one = TritonLayout((("lane", ()),), (("dim0", 1),))
    assert str(one) == "\n - lane is a size 1 dimension\nwhere out dims are: [dim0 (size 1)]"
    assert parse_triton(str(one)) == one
    scalar = TritonLayout((("lane", ((),)),), ())
    assert str(scalar) == "\n - lane=1 -> ()\nwhere out dims are: []"
    assert parse_triton(str(scalar)) == scalar
    assert parse_triton("#ttg.linear<{register = [[3]]}>").out_dims == (("dim0", 4),)
    assert parse_triton("#ttg.linear<{register = [[1, 0]], lane = [[0, 8]]}>").shape == (2, 16)
    sized = parse_triton("DistributedLinearLayout(reg_bases=[[0, 1]], lane_bases=[[1, 0]], shape=[4, 8])")
    assert (sized.shape, sized.sizes) == ((4, 8), {"register": 2, "lane": 2, "warp": 1, "block": 1})
    empty = parse_triton("DistributedLinearLayout(reg_bases=[], lane_bases=[], shape=[2])")
    assert empty.shape == (2,)
    shared = parse_triton("SharedLinearLayout(offset_bases=[[0, 1], [1, 0]], block_bases=[], alignment=16)")
    assert shared == parse_triton("#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>")
    assert shared == parse_any("#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>")
    assert refusal(parse_triton, 5) == "the text of a linear layout must be a str, got int 5"


@pytest.mark.parametrize(
    ("own", "out", "headline"),
    [
        ((("lane", ((2,),)),), (("dim0", 2),), "the basis of lane=1, along dim0 is 2; must be 0 to 1"),
        ((("lane", ((1,), (-1,))),), (("dim0", 2),), "the basis of lane=2, along dim0 is -1; must be 0 to 1"),
        (
            (("lane", ((1, 1),)),),
            (("dim0", 2),),
            "the basis of lane=1 is (1, 1); must have 1 entries, one for each out dim",
        ),
        ((("lane", ()), ("lane", ())), (("dim0", 2),), "each in dim must be listed once"),
        ((), (("a", 2), ("a", 2)), "each out dim must be listed once"),
        ((("lane", ((0,),) * 33),), (("a", 1),), "lane has 33 bits; must have at most 32"),
        ((), (("a", 1 << 33),), "the size of a is 8589934592; must be 1 to 4294967296"),
        ((), (("a", 0),), "the size of a is 0; must be 1 to 4294967296"),
        ((), (("a", 6),), "the size of a is 6; must be a power of 2"),
        ((), (("a", 1 << 16), ("b", 1 << 17)), "the tile has 8589934592 elements; must have at most 2**32"),
    ],
)
def test_bases_that_are_refused(own: Any, out: Any, headline: str) -> None:
    assert refusal(TritonLayout, own, out) == headline


def test_bases_at_their_bounds() -> None:
    assert TritonLayout((("lane", ((0,),) * 32),), (("a", 1),)).sizes == {"lane": 1 << 32}
    assert TritonLayout((), (("a", 1 << 16), ("b", 1 << 16))).shape == (1 << 16, 1 << 16)
    assert TritonLayout((("lane", ((3,),)),), (("dim0", 4),))(lane=1) == (3,)


WHOLE = parse_triton(
    "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 8]], "
    "block = [[16, 0]]}>"
)


def test_places_of_a_layout() -> None:
    assert WHOLE() == (0, 0)
    assert WHOLE(register=3, lane=31, warp=1, block=1) == (31, 15)
    assert WHOLE(lane=4) == (1, 0)
    assert refusal(WHOLE, register=4) == "register = 4; must be 0 to 3"
    assert refusal(WHOLE, lane=-1) == "lane = -1; must be 0 to 31"
    with pytest.raises(InvalidValueError) as caught:
        WHOLE(x=1)
    assert caught.value.headline == "'x' is not an in dim of this layout"
    assert caught.value.facts == {"in dims": "register, lane, warp, block"}
    assert str(WHOLE.to_layout()) == "((_4,_8,_2),(_2,_2),_2):((_64,_1,_256),(_32,_8),_16)"
    assert parse_triton(WHOLE.attribute()) == WHOLE
    assert from_triton(WHOLE) == from_triton(str(WHOLE)) == WHOLE.to_layout()


@pytest.mark.parametrize(
    ("text", "facts", "layout"),
    [
        (
            WHOLE.attribute(),
            [
                "4 registers x 32 lanes x 2 warps x 2 CTAs = 512 places",
                "a tensor of 32 x 16 = 512 elements",
                "each element is held exactly once",
                "2 neighbouring elements of the last dimension in the registers of one thread",
            ],
            "((_4,_8,_2),(_2,_2),_2):((_64,_1,_256),(_32,_8),_16)",
        ),
        (
            "#ttg.linear<{register = [[0, 1]], lane = [[0, 0], [1, 0]], warp = [[0, 0]], block = []}>",
            [
                "2 registers x 4 lanes x 2 warps x 1 CTA = 16 places",
                "a tensor of 2 x 2 = 4 elements",
                "lane bit 0 (value 1) moves no dimension, so lanes that differ only there hold copies",
                "warp bit 0 (value 1) moves no dimension, so warps that differ only there hold copies",
                "each element is held 4 times",
                "2 neighbouring elements of the last dimension in the registers of one thread",
            ],
            "((_2,_2,_2),_2):((_0,_1,_0),_2)",
        ),
        (
            "#ttg.linear<{register = [[0, 1]], lane = [[0, 0], [0, 0]], warp = [], block = [[0, 0]]}>",
            [
                "2 registers x 4 lanes x 1 warp x 2 CTAs = 16 places",
                "a tensor of 1 x 2 = 2 elements",
                "lane bit 0 (value 1) and lane bit 1 (value 2) move no "
                "dimension, so lanes that differ only there hold "
                "copies",
                "block bit 0 (value 1) moves no dimension, so CTAs that differ only there hold copies",
                "each element is held 8 times",
                "2 neighbouring elements of the last dimension in the registers of one thread",
            ],
            "(_4,_2,_2):(_0,_1,_0)",
        ),
        (
            "#ttg.linear<{register = [[0, 1], [0, 2], [0, 8]], lane = [[0, 4]], warp = [], block = []}>",
            [
                "8 registers x 2 lanes x 1 warp x 1 CTA = 16 places",
                "a tensor of 1 x 16 = 16 elements",
                "each element is held exactly once",
                "4 neighbouring elements of the last dimension in the registers of one thread",
            ],
            "(_2,(_4,_2)):(_4,(_1,_8))",
        ),
        (
            "#ttg.linear<{register = [[1, 0]], lane = [[0, 1]], warp = [], block = []}>",
            [
                "2 registers x 2 lanes x 1 warp x 1 CTA = 4 places",
                "a tensor of 2 x 2 = 4 elements",
                "each element is held exactly once",
                "1 neighbouring element of the last dimension in the registers of one thread",
            ],
            "(_2,_2):(_2,_1)",
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 1], [2, 2]]}, alignment = 16>",
            [
                "16 offsets x 1 CTA = 16 places",
                "a tensor of 4 x 4 = 16 elements",
                "each element is held exactly once",
                "rows are permuted in units of 1 elements over 4 rows (2 bits are plain)",
            ],
            "Sw<2,0,2> o _0 o (_4,_4):(_4,_1)",
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [1, 2], [2, 0], [0, 2]]}, alignment = 16>",
            [
                "16 offsets x 1 CTA = 16 places",
                "a tensor of 4 x 4 = 16 elements",
                "each element is held exactly once",
                "rows are permuted in units of 2 elements over 2 rows (3 bits are plain)",
            ],
            "Sw<1,1,-2> o _0 o (_4,(_2,_2)):(_2,(_1,_8))",
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 16>",
            [
                "4 offsets x 2 CTAs = 8 places",
                "a tensor of 4 x 2 = 8 elements",
                "each element is held exactly once",
                "no swizzle: every offset bit moves along one dimension",
            ],
            "none: CuTe can express the shared memory of one block, but this layout has several blocks",
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 0], [1, 0]]}, alignment = 16>",
            [
                "16 offsets x 1 CTA = 16 places",
                "a tensor of 2 x 4 = 8 elements",
                "offset bit 2 (value 4) moves no dimension, so offsets that differ only there hold copies",
                "each element is held 2 times",
                "no swizzle: every offset bit moves along one dimension",
            ],
            "none: the map is not a bijection of 4-bit offsets",
        ),
    ],
)
def test_facts_of_layouts(text: str, facts: list[str], layout: str) -> None:
    found = parse_triton(text)
    assert found.facts() == facts
    assert found.attribute() == text
    sizes = ", ".join(f"{name} {size}" for name, size in found.sizes.items())
    shape = " x ".join(map(str, found.shape))
    kind = "coordinate -> offset" if "offset" in found.sizes else "(thread, value) -> index in the tile"
    assert found.explain().split("\n") == [
        f"Triton linear layout: {sizes} -> {shape}",
        *[f"  {fact}" for fact in facts],
        "",
        f"In CuTe ({kind})",
        f"  {layout}",
        "",
        "Bases",
        *str(found).split("\n")[1:],
    ]
    if layout.startswith("none: "):
        assert refusal(found.to_layout) == layout.removeprefix("none: ")
    else:
        assert str(found.to_layout()) == layout


def test_layouts_with_few_or_other_in_dims() -> None:
    lane = TritonLayout((("lane", ((1,),)),), (("dim0", 4),))
    assert lane.facts() == ["2 lanes = 2 places", "a tensor of 4 = 4 elements"]
    none = TritonLayout((), (("dim0", 4),))
    assert none.facts() == ["a tensor of 4 = 4 elements"]
    assert none.explain().split("\n")[0] == "Triton linear layout: nothing -> 4"
    assert none.attribute() == "#ttg.linear<{register = [], lane = [], warp = [], block = []}>"
    assert str(none.to_layout()) == "(_1,_1):(_0,_0)"
    block = TritonLayout((("block", ((1,),)), ("register", ((2,),))), (("dim0", 4),))
    assert str(block.to_layout()) == "(_1,_2,_2):(_0,_2,_1)"
    no_block = TritonLayout((("block", ()), ("register", ((1,),))), (("dim0", 2),))
    assert str(no_block.to_layout()) == "(_1,_2):(_0,_1)"
    other = TritonLayout((("x", ((1,),)),), (("dim0", 2),))
    with pytest.raises(LayoutError) as caught:
        other.to_layout()
    assert caught.value.headline == "CuTe can express only a layout of threads and values, or of shared memory"
    assert caught.value.facts == {
        "in dims": "x",
        "of threads": "register, lane, warp, block",
        "of shared memory": "offset, block",
    }
    assert refusal(other.attribute) == "this attribute supports only the in dims register, lane, warp, block"
    mixed = TritonLayout((("offset", ((1,),)), ("lane", ((1,),))), (("dim0", 2),))
    assert refusal(mixed.attribute) == "this attribute supports only the in dims offset, block"
    shared = parse_triton("#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>")
    assert shared.attribute(32) == "#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 32>"
    assert refusal(shared.attribute, 0) == "the alignment is 0 bytes; must be 1 to 1048576"
    padded = parse_triton("#ttg.shared_linear<{offset = [[1, 0]]}, alignment = 16>")
    assert str(padded.to_layout()) == "(_2,_1):(_1,_0)"
    wide = TritonLayout((("offset", ((1,),)),), (("dim0", 4),))
    assert isinstance(refusal(wide.to_layout), str)


def test_layouts_of_cute_become_bases() -> None:
    for layout, tile, lanes, found in (
        (
            Layout((4, 8), (8, 1)),
            (8, 4),
            32,
            "register = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2]], warp = [], block = []",
        ),
        (
            Layout((64, 2), (2, 1)),
            (8, 16),
            32,
            "register = [[1, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8]], block = []",
        ),
        (
            Layout((64, 2), (2, 1)),
            (8, 16),
            16,
            "register = [[1, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2]], warp = [[0, 4], [0, 8]], block = []",
        ),
        (
            Layout((4, 8, 2), (8, 1, 32)),
            (8, 8),
            32,
            "register = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2]], warp = [], block = [[0, 4]]",
        ),
    ):
        assert bases(to_triton(layout, tile, lanes=lanes)) == found
    assert bases(to_triton(static(Layout((2, 4), (4, 1))))) == "offset = [[0, 1], [0, 2], [1, 0]]"
    swizzled = ComposedLayout(Swizzle(1, 0, 2), Int(0), static(Layout((2, 4), (4, 1))))
    assert bases(to_triton(swizzled)) == "offset = [[0, 1], [0, 2], [1, 1]]"
    wide = Layout((64, 2), (2, 1))
    wrong = "a layout of threads must have modes (thread, value) or (thread, value, block)"
    assert refusal(to_triton, wide, (8, 16), lanes=3) == "lanes = 3; must be a power of two"
    assert refusal(to_triton, wide, (8, 16), lanes=0) == "lanes = 0; must be 1 to 1024"
    assert refusal(to_triton, wide, (8, 16), lanes=2048) == "lanes = 2048; must be 1 to 1024"
    assert refusal(to_triton, wide, (8, 8)) == "an index is beyond the tile"
    assert refusal(to_triton, wide, (8, 12)) == "the extents of a Triton tile must be powers of two"
    assert refusal(to_triton, Layout((4,), (1,)), (4,)) == f"{wrong}, but this layout has 1"
    assert refusal(to_triton, Layout((2, 2, 2, 2), (1, 2, 4, 8)), (16,)) == f"{wrong}, but this layout has 4"
    assert refusal(to_triton, 5) == "to_triton needs a layout, got int 5"
    start = ComposedLayout(Swizzle(1, 0, 2), Int(8), Layout((2, 4), (4, 1)))
    assert refusal(to_triton, start) == "a linear layout must map 0 to 0, but this layout begins at 8"


@pytest.mark.parametrize(
    ("arguments", "headline"),
    [
        (((1, 4), (4, 8, 1), (2, 1), (1, 0)), RANKS),
        (((1, 4), (4, 8), (2, 1), (1, 0, 2)), RANKS),
        (((), (), (), ()), RANKS),
        (((1,) * 9, (1,) * 9, (1,) * 9, tuple(range(9))), RANKS),
        (((3, 4), (5, 8), (2, 7), (1, 0)), f"size_per_thread = (3, 4){POWERS}"),
        (((1, 4), (5, 8), (2, 7), (1, 0)), f"threads_per_warp = (5, 8){POWERS}"),
        (((1, 4), (4, 8), (2, 0), (1, 0)), f"warps_per_cta = (2, 0){POWERS}"),
        (((1 << 31,), (1,), (1,), (0,)), f"size_per_thread = ({1 << 31},){POWERS}"),
        (((1, 4), (4, 8), (2, 1), (1, 1)), "order = (1, 1); must name every dimension once, the fastest first"),
        (((1, 4), (4, 8), (2, 1), (1, 0), ((1,),)), "a basis of cga_layout is (1,); must have 2 entries"),
        (
            ((1, 4), (4, 8), (2, 1), (1, 0), ((1, 0),) * 5),
            "cga_layout has 5 bases, but a cluster has at most 16 CTAs",
        ),
        *(
            (
                ((1, 4), (4, 8), (2, 1), (1, 0), ((1, 0), (0, n))),
                "the entries of cga_layout must be 0, or powers of two up to 8",
            )
            for n in (3, 16, -1)
        ),
    ],
)
def test_blocked_encodings_that_are_refused(arguments: Any, headline: str) -> None:
    assert refusal(BlockedEncoding, *arguments) == headline


def test_the_ranks_are_named_in_their_order() -> None:
    with pytest.raises(InvalidValueError) as caught:
        BlockedEncoding((1, 4), (4, 8, 1), (2,), (0, 1, 2, 3))
    assert list(caught.value.facts.items()) == [
        *(("size_per_thread", 2), ("threads_per_warp", 3), ("warps_per_cta", 1), ("order", 4))
    ]


def test_blocked_encodings() -> None:
    assert BLOCKED.facts() == OF_BLOCKED
    assert BLOCKED.explain().split("\n")[2] == (
        "Each thread has a block; the blocks of a warp's threads are side "
        "by side, then the blocks of the warps, in one order "
        "of dimensions."
    )
    few = BlockedEncoding((1, 4), (2, 8), (2, 1), (0, 1)).facts()
    assert few[1:] == [
        "32 threads, 4 elements each",
        "dimension 0 is contiguous: 1 neighbouring element per thread",
        "16 threads per warp; a warp of an NVIDIA GPU has 32 lanes",
    ]
    assert BlockedEncoding((1 << 30,), (1,), (1,), (0,), ((8,),) * 4).rank == 1
    clusters = BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0), ((1, 0), (0, 1)))
    other = BlockedEncoding((1, 4), (4, 8), (2, 1), (0, 1))
    lanes = "lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]]"
    few_lanes = "lane = [[0, 4], [0, 8], [0, 0], [1, 0], [2, 0]]"
    for encoding, shape, found in (
        (BLOCKED, (8, 32), f"register = [[0, 1], [0, 2]], {lanes}, warp = [[4, 0]], block = []"),
        (BLOCKED, (16, 64), f"register = [[0, 1], [0, 2], [0, 32], [8, 0]], {lanes}, warp = [[4, 0]], block = []"),
        (BLOCKED, (4, 16), f"register = [[0, 1], [0, 2]], {few_lanes}, warp = [[0, 0]], block = []"),
        (
            other,
            (16, 64),
            "register = [[0, 1], [0, 2], [8, 0], [0, 32]], lane = [[1, 0], [2, 0], [0, 4], [0, 8], [0, 16]], "
            "warp = [[4, 0]], block = []",
        ),
        (
            clusters,
            (32, 128),
            f"register = [[0, 1], [0, 2], [0, 32], [8, 0]], {lanes}, warp = [[4, 0]], block = [[16, 0], [0, 64]]",
        ),
        (
            clusters,
            (8, 32),
            f"register = [[0, 1], [0, 2]], {few_lanes}, warp = [[0, 0]], block = [[4, 0], [0, 16]]",
        ),
    ):
        assert bases(encoding.linear(shape)) == found
    assert refusal(BLOCKED.linear, (8,)) == "the tile has 1 dimensions and the encoding 2; they must be equal"
    assert refusal(BLOCKED.linear, (8, 12)) == "the sizes of a Triton tile must be powers of two, got 12"
    assert refusal(BLOCKED.linear, (0, 8)) == "shape[0] = 0; must be 1 to 4611686018427387904"


SHAPES = (
    "; must be (M, N) for mma.sync, preceded by a 1 for each batch dimension, or (16, N, K) for wgmma in two dimensions"
)


@pytest.mark.parametrize(
    ("arguments", "headline"),
    [
        ((1, 0, (1, 1), (16, 8)), "version 1; must be 2 (mma.sync) or 3 (wgmma)"),
        ((4, 0, (1, 1), (16, 8)), "version 4; must be 2 (mma.sync) or 3 (wgmma)"),
        ((2, 0, (1,), (16,)), f"instr_shape = (16,) for 1 dimensions{SHAPES}"),
        ((2, 0, (1, 1), (16, 8, 16)), f"instr_shape = (16, 8, 16) for 2 dimensions{SHAPES}"),
        ((3, 0, (1, 1), (16, 8)), f"instr_shape = (16, 8) for 2 dimensions{SHAPES}"),
        ((3, 0, (1, 1, 1), (16, 8, 16)), f"instr_shape = (16, 8, 16) for 3 dimensions{SHAPES}"),
        ((2, 0, (1, 1), (16, 4)), "instr_shape = (16, 4); M and N must be 8 or more"),
        ((2, 0, (1, 1), (4, 8)), "instr_shape = (4, 8); M and N must be 8 or more"),
        ((3, 0, (4, 1), (16, 4, 16)), "instr_shape = (16, 4, 16); M and N must be 8 or more"),
        ((2, 0, (3, 1), (16, 8)), f"warps_per_cta = (3, 1){POWERS}"),
        ((2, 0, (1, 1), (12, 8)), f"instr_shape = (12, 8){POWERS}"),
        ((2, 0, (), (16, 8)), RANKS),
    ],
)
def test_encodings_of_an_mma_that_are_refused(arguments: Any, headline: str) -> None:
    assert refusal(NvidiaMmaEncoding, *arguments) == headline


def test_encodings_of_an_mma() -> None:
    assert NvidiaMmaEncoding(2, 0, (1, 1), (8, 8)).instr_shape == (8, 8)
    assert MMA.facts() == [
        "version 2: mma.sync (sm_80)",
        "2 x 2 warps: 128 threads",
        "instruction 16 x 8 (M x N)",
        "one step of all warps covers 32 x 16 of the accumulator",
    ]
    wgmma = "instruction 16 x 64 x 16 (M x N x K: M is for one warp, so 4 warps compute 64 rows)"
    for warps, line, step in (
        ((4, 1), "4 x 1 warps, 1 warpgroup: 128 threads", "64 x 64"),
        ((8, 1), "8 x 1 warps, 2 warpgroups: 256 threads", "128 x 64"),
        ((2, 1), "2 x 1 warps: 64 threads", "32 x 64"),
    ):
        assert NvidiaMmaEncoding(3, 0, warps, (16, 64, 16)).facts() == [
            *("version 3: wgmma (sm_90)", line, wgmma, f"one step of all warps covers {step} of the accumulator")
        ]
    lanes = "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]"
    for encoding, shape, found in (
        (MMA, (32, 16), f"register = [[0, 1], [8, 0]], {lanes}, warp = [[0, 8], [16, 0]]"),
        (MMA, (64, 64), f"register = [[0, 1], [8, 0], [0, 16], [0, 32], [32, 0]], {lanes}, warp = [[0, 8], [16, 0]]"),
        (
            WGMMA,
            (64, 64),
            f"register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], {lanes}, warp = [[16, 0], [32, 0]]",
        ),
        (
            NvidiaMmaEncoding(3, 0, (2, 2), (16, 64, 16)),
            (32, 128),
            f"register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], {lanes}, warp = [[16, 0], [0, 64]]",
        ),
        (
            NvidiaMmaEncoding(2, 0, (2, 2, 2), (1, 16, 8)),
            (2, 32, 16),
            "register = [[0, 0, 1], [0, 8, 0]], lane = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]], "
            "warp = [[0, 0, 8], [0, 16, 0], [1, 0, 0]]",
        ),
    ):
        assert bases(encoding.linear(shape)) == f"{found}, block = []"


def test_operands_of_a_dot_product() -> None:
    vector = BlockedEncoding((1,), (32,), (1,), (0,))
    for arguments, headline in (
        ((2, ONE_WARP, 2), "opIdx = 2; must be 0 (A) or 1 (B)"),
        ((-1, ONE_WARP, 2), "opIdx = -1; must be 0 (A) or 1 (B)"),
        ((0, ONE_WARP, 0), f"k_width = 0{POWERS}"),
        ((0, ONE_WARP, 3), f"k_width = 3{POWERS}"),
        ((0, ONE_WARP, 128), "kWidth = 128; must be at most 64"),
        ((0, BLOCKED, 2), "kWidth = 2; must be 0 for a blocked parent"),
        ((1, WGMMA, 2), "B of wgmma is read from shared memory; it has no dot operand encoding"),
        ((0, vector), "the parent of a dot operand must have at least two dimensions"),
    ):
        assert refusal(DotOperandEncoding, *arguments) == headline
    assert DotOperandEncoding(0, ONE_WARP, 64).k_width == 64
    assert DotOperandEncoding(0, BLOCKED).facts() == ["operand A (M x K) in registers. Its accumulator:", *OF_BLOCKED]
    assert DotOperandEncoding(1, BLOCKED).facts() == ["operand B (K x N) in registers. Its accumulator:", *OF_BLOCKED]
    one = DotOperandEncoding(0, ONE_WARP, 1).facts()
    assert one[0] == "operand A (M x K) in registers, 1 element along K side by side in a thread. Its accumulator:"
    four = DotOperandEncoding(1, ONE_WARP, 4).facts()
    assert four[0] == "operand B (K x N) in registers, 4 elements along K side by side in a thread. Its accumulator:"
    assert four[1:] == ONE_WARP.facts()
    lanes_a = "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]"
    lanes_b = "lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]"
    clusters = NvidiaMmaEncoding(2, 0, (2, 2), (16, 8), ((1, 0), (0, 1)))
    for operand, parent, width, shape, found in (
        (
            0,
            MMA,
            2,
            (32, 32),
            f"register = [[0, 1], [8, 0], [0, 8], [0, 16]], {lanes_a}, warp = [[0, 0], [16, 0]], block = []",
        ),
        (
            1,
            MMA,
            2,
            (32, 32),
            f"register = [[1, 0], [8, 0], [16, 0], [0, 16]], {lanes_b}, warp = [[0, 8], [0, 0]], block = []",
        ),
        (
            0,
            WGMMA,
            2,
            (64, 16),
            f"register = [[0, 1], [8, 0], [0, 8]], {lanes_a}, warp = [[16, 0], [32, 0]], block = []",
        ),
        (
            *(1, BLOCKED, 0, (16, 64)),
            "register = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0], [8, 0], [0, 32]], "
            "lane = [[0, 4], [0, 8], [0, 16], [0, 0], [0, 0]], warp = [[0, 0]], block = []",
        ),
        (
            *(0, BLOCKED, 0, (16, 16)),
            "register = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], "
            "lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0]], block = []",
        ),
        (
            *(0, clusters, 2, (64, 32)),
            f"register = [[0, 1], [8, 0], [0, 8], [0, 16]], {lanes_a}, warp = [[0, 0], [16, 0]], "
            "block = [[32, 0], [0, 0]]",
        ),
        (
            *(1, clusters, 2, (64, 32)),
            f"register = [[1, 0], [8, 0], [16, 0], [32, 0]], {lanes_b}, warp = [[0, 8], [0, 0]], "
            "block = [[0, 0], [0, 16]]",
        ),
    ):
        assert bases(DotOperandEncoding(operand, parent, width).linear(shape)) == found


def test_slices() -> None:
    parent: Any
    for dim, parent in ((2, BLOCKED), (-1, BLOCKED), (0, BlockedEncoding((1,), (32,), (1,), (0,)))):
        assert (
            refusal(SliceEncoding, dim, parent)
            == f"dim = {dim}; must be a dimension of the parent, which must have at least two"
        )
    assert SliceEncoding(0, BLOCKED).facts() == [
        "dimension 0 of its parent is removed, as after a reduction along "
        "it: threads that differ along this dimension "
        "hold copies. The parent:",
        *OF_BLOCKED,
    ]
    for dim, parent, size, found in (
        (1, BLOCKED, 8, "register = [], lane = [[0], [0], [0], [1], [2]], warp = [[4]], block = []"),
        (0, BLOCKED, 32, "register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0]], block = []"),
        (1, MMA, 64, "register = [[8], [32]], lane = [[0], [0], [1], [2], [4]], warp = [[0], [16]], block = []"),
    ):
        assert bases(SliceEncoding(dim, parent).linear((size,))) == found


@pytest.mark.parametrize(
    ("arguments", "bits", "swizzle", "rows"),
    [
        ((8, 1, 8, (1, 0)), 16, "128B swizzle as in TMA and wgmma", 64),
        ((8, 2, 4, (1, 0)), 16, "64B swizzle as in TMA and wgmma", 32),
        ((8, 4, 2, (1, 0)), 16, "32B swizzle as in TMA and wgmma", 16),
        ((16, 1, 8, (1, 0)), 8, "128B swizzle as in TMA and wgmma", 128),
        ((4, 1, 8, (1, 0)), 32, "128B swizzle as in TMA and wgmma", 32),
        ((8, 2, 8, (1, 0)), 16, "128B swizzle", 32),
        ((8, 1, 4, (1, 0)), 16, "64B swizzle", 64),
        ((8, 1, 2, (1, 0)), 16, "32B swizzle", 64),
        ((2, 1, 8, (1, 0)), 64, "", 0),
        ((8, 1, 16, (1, 0)), 16, "", 0),
    ],
)
def test_facts_of_a_swizzle(arguments: Any, bits: int, swizzle: str, rows: int) -> None:
    vec, phase, most, _ = arguments
    pattern = (
        f"units of {vec} elements; every {phase} rows the unit is XORed with the next of {most} numbers: the pattern "
        f"repeats after {phase * most} rows"
    )
    same = (
        f"for elements of {bits} bits the units are 16 bytes, and the XOR is that of the {swizzle} (rows of {rows} "
        "elements)"
    )
    assert SwizzledSharedEncoding(*arguments).facts() == [pattern, *([same] if swizzle else [])]


def test_encodings_of_swizzled_memory() -> None:
    arguments: Any
    for order in ((1, 0), (0, 1)):
        plain = SwizzledSharedEncoding(8, 1, 1, order)
        assert plain.facts() == [f"max phase 1: no swizzle, dimension {order[0]} is contiguous"]
    for arguments, headline in (
        ((3, 1, 8, (1, 0)), f"vec = 3{POWERS}"),
        ((8, 3, 8, (1, 0)), f"per_phase = 3{POWERS}"),
        ((8, 1, 3, (1, 0)), f"max_phase = 3{POWERS}"),
        ((8, 1, 8, (0, 0)), "order = (0, 0); must name every dimension once, the fastest first"),
        ((8, 1, 8, ()), RANKS),
    ):
        assert refusal(SwizzledSharedEncoding, *arguments) == headline
    for arguments, shape, found in (
        ((4, 2, 4, (0, 1)), (32, 8), "offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [4, 2], [8, 4]]"),
        ((8, 1, 8, (0,)), (8,), "offset = [[1], [2], [4]]"),
        (
            (2, 1, 2, (1, 0), ((1, 0),)),
            (8, 8),
            "offset = [[0, 1], [0, 2], [0, 4], [1, 2], [2, 0]], block = [[4, 0]]",
        ),
        (
            (2, 1, 4, (2, 1, 0)),
            (2, 4, 8),
            "offset = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 1, 2], [0, 2, 4], [1, 0, 0]]",
        ),
    ):
        assert bases(SwizzledSharedEncoding(*arguments).linear(shape)) == found


def test_encodings_of_memory_for_wgmma() -> None:
    named: Any
    widths, bits = "; must be 0, 32, 64 or 128 bytes", "; must be 8, 16, 32 or 64 bits"
    for width in (16, 96, 256, -32):
        assert refusal(NvmmaSharedEncoding, width, False, 16) == f"swizzlingByteWidth = {width}{widths}"
    for element in (4, 12, 128):
        assert refusal(NvmmaSharedEncoding, 128, False, element) == f"elementBitWidth = {element}{bits}"
        assert refusal(NvmmaSharedEncoding, 0, False, element) == f"elementBitWidth = {element}{bits}"
    padded = "fp4Padded needs 8-bit elements and a swizzle of 128 bytes"
    for width, element in ((128, 16), (64, 8), (0, 8)):
        assert refusal(NvmmaSharedEncoding, width, False, element, True) == padded
    assert refusal(NvmmaSharedEncoding, 128, False, 4, True) == f"elementBitWidth = 4{bits}"
    for rank in (0, 9):
        assert refusal(NvmmaSharedEncoding, 128, False, 16, rank=rank) == f"rank = {rank}; must be 1 to 8"
    assert NvmmaSharedEncoding(128, False, 16, rank=8).rank == 8
    assert NvmmaSharedEncoding(128, False, 16, cga_layout=((1, 0, 0),)).rank == 3
    assert refusal(NvmmaSharedEncoding, 128, False, 16, cga_layout=((3, 0),)) == (
        "the entries of cga_layout must be 0, or powers of two up to 8"
    )
    turned = {
        False: "not transposed: the last dimension is contiguous, so A (M, K) is K-major and B (K, N) is MN-major",
        True: "transposed: the first dimension is contiguous, so A (M, K) is MN-major and B (K, N) is K-major",
    }
    for transposed, line in turned.items():
        for element in (8, 16, 32, 64):
            plain = NvmmaSharedEncoding(0, transposed, element)
            assert plain.facts() == ["shared memory without a swizzle", line]
            for width, bits_of, align in ((128, 3, 1024), (64, 2, 512), (32, 1, 256)):
                assert NvmmaSharedEncoding(width, transposed, element).facts() == [
                    f"shared memory with the {width}B swizzle of TMA and wgmma, Sw<{bits_of},4,3> on bytes; align to "
                    f"{align} bytes",
                    f"a row of the atom has {width * 8 // element} elements of {element} bits; 8 rows are an atom",
                    line,
                ]
    few = NvmmaSharedEncoding(128, False, 16).linear
    assert refusal(few, (4, 64)) == "the tile has 4 rows, but the swizzle needs 8"
    assert refusal(few, (8, 32)) == ("the tile has 32 elements in its contiguous dimension, but the swizzle needs 64")
    turned_few = NvmmaSharedEncoding(128, True, 16).linear
    assert refusal(turned_few, (64, 4)) == "the tile has 4 rows, but the swizzle needs 8"
    assert refusal(turned_few, (32, 8)) == (
        "the tile has 32 elements in its contiguous dimension, but the swizzle needs 64"
    )
    row = "[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]"
    for arguments, named, shape, found in (
        ((128, False, 16), {}, (8, 64), f"{row}, [1, 8], [2, 16], [4, 32]"),
        ((128, True, 16), {}, (64, 8), "[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4]"),
        (
            (64, False, 16),
            {},
            (16, 64),
            "[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [0, 32]",
        ),
        ((32, False, 16), {}, (8, 32), "[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [0, 16]"),
        ((0, False, 16), {}, (4, 4), "[0, 1], [0, 2], [1, 0], [2, 0]"),
        ((0, True, 16), {}, (4, 8), "[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]"),
        (
            (128, False, 16),
            {"rank": 3},
            (2, 8, 64),
            "[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 0, 16], [0, 0, "
            "32], [0, 1, 8], [0, 2, 16], [0, 4, 32], [1, 0, 0]",
        ),
        (
            (128, True, 16),
            {"rank": 3},
            (64, 2, 8),
            "[1, 0, 0], [2, 0, 0], [4, 0, 0], [8, 0, 0], [16, 0, 0], [32, 0, "
            "0], [8, 0, 2], [16, 0, 4], [32, 1, 0], [0, 0, 1]",
        ),
        (
            (128, False, 8, True),
            {},
            (8, 64),
            "[0, 1], [0, 2], [0, 4], [0, 0], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]",
        ),
        (
            (128, False, 16),
            {},
            (512, 64),
            f"{row}, [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0]",
        ),
        ((0, False, 8), {}, (2, 512), f"{row}, [0, 64], [0, 128], [1, 0], [0, 256]"),
    ):
        assert bases(NvmmaSharedEncoding(*arguments, **named).linear(shape)) == f"offset = [{found}]"


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "expected an encoding such as #ttg.blocked<{...}>"),
        (
            "#ttg.xx<{}>",
            9,
            "expected one of blocked, nvidia_mma, dot_op, slice, swizzled_shared, nvmma_shared, got 'xx'",
        ),
        (
            "XxLayout()",
            9,
            "expected one of Blocked, NVMMADistributed, DotOperand, Slice, SwizzledShared, NVMMAShared, got 'Xx'",
        ),
        ("#ttg.blocked<{sizePerThread = [1, 4]}>", 38, "expected a value of threadsPerWarp"),
        ("#ttg.blocked<{sizePerThread = [1], sizePerThread = [1]}>", 51, BLOCKED_KEYS),
        ("#ttg.blocked<{colour = 1}>", 23, BLOCKED_KEYS),
        ("#ttg.swizzled_shared<{8, 1, 8, [1, 0]}>", 22, SHARED_KEYS),
        ("#ttg.swizzled_shared<{vec = 8 perPhase = 1}>", 29, "expected ','"),
        ("#ttg.swizzled_shared<{vec = x}>", 28, "expected an encoding such as #ttg.blocked<{...}>"),
        ("#ttg.swizzled_shared<{vec = [[[[[[[[[1]]]]]]]]]}>", 36, "expected at most 8 nested brackets"),
        ("SliceLayout(0, " * 9, 119, "expected at most 8 nested encodings"),
        ("NVMMASharedLayout(128)", 22, "expected a value of transposed"),
        (
            "NVMMADistributedLayout(version=[2], warps_per_cta=[2, 1], instr_shape=[16, 8])",
            78,
            "expected a version of two numbers",
        ),
        (
            "NVMMADistributedLayout(version=2, warps_per_cta=[2, 1], instr_shape=[16, 8])",
            76,
            "expected a version of two numbers",
        ),
    ],
)
def test_texts_of_encodings_that_are_refused(text: str, position: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_triton_encoding(text)
    assert caught.value.headline == f"at position {position}: {expected}"
    assert caught.value.position == position


def test_texts_of_encodings() -> None:
    own = "sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]"
    for text in (
        f"#ttg.blocked<{{{own}}}>",
        f"  #blocked<{{{own}}}>\n",
        f"#triton_gpu.blocked<{{{own}, CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]}}>",
        "BlockedLayout([1, 4], [4, 8], [2, 1], [1, 0])",
        "gl.BlockedLayout([1, 4], [4, 8], warps_per_cta=[2, 1], order=[1, 0], cga_layout=None)",
    ):
        assert parse_triton_encoding(text) == BLOCKED
    assert str(BLOCKED) == f"#ttg.blocked<{{{own}}}>"
    several = f"#blocked<{{{own}, CTAsPerCGA = [2, 1]}}>"
    assert refusal(parse_triton_encoding, several).endswith(
        "expected one CTA, or cga_layout, because CTAsPerCGA with several CTAs is not supported"
    )
    assert refusal(parse_triton_encoding, f"#ttg.blocked<{{{own}}}> x").endswith("expected the end of the text")
    mma = "NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])"
    assert parse_triton_encoding(mma) == MMA
    assert parse_triton_encoding(f"DotOperandLayout(1, {mma}, 2)") == DotOperandEncoding(1, MMA, 2)
    assert parse_triton_encoding(f"SliceLayout(dim=0, parent={mma})") == SliceEncoding(0, MMA)
    shared = "#ttg.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = "
    for order, transposed in (("[1, 0]", False), ("[0, 1]", True), ("[2, 1, 0]", False)):
        found = parse_triton_encoding(f"{shared}{order}, hasLeadingOffset = true}}>")
        assert found == NvmmaSharedEncoding(128, transposed, 16)
    plain = SwizzledSharedEncoding(8, 1, 8, (1, 0))
    assert parse_triton_encoding(f"{shared}[1, 0], hasLeadingOffset = false}}>") == plain
    assert parse_triton_encoding(f"{shared}[1, 0]}}>") == plain
    assert parse_triton_encoding("SwizzledSharedLayout(8, 1, 8, [1, 0])") == plain
    narrow = "#ttg.shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [1, 0], hasLeadingOffset = true}>"
    assert parse_triton_encoding(narrow) == NvmmaSharedEncoding(64, False, 32)
    wide = "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2"
    assert parse_triton_encoding(f"{wide})") == NvmmaSharedEncoding(128, False, 16)
    assert parse_triton_encoding(f"{wide}, transposed=True, cga_layout=None)") == NvmmaSharedEncoding(128, True, 16)
    assert refusal(parse_triton_encoding, 5) == "the text of an encoding must be a str, got int 5"
    large = f"#ttg.swizzled_shared<{{vec = {'9' * 39}, perPhase = 1, maxPhase = 8, order = [1, 0]}}>"
    assert refusal(parse_triton_encoding, large) == (f"a parameter is {'9' * 39}; must be at most 2**128 in magnitude")
    with pytest.raises(InvalidTypeError):
        parse_triton_encoding("SwizzledSharedLayout([8], 1, 8, [1, 0])")
    encoded: Any = parse(str(WGMMA))
    assert encoded == WGMMA
