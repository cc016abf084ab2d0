"""Triton's linear layouts: the encodings against what Triton computed, texts, and round trips of random layouts."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError, ParseError
from cute_py.layout.linear import LinearLayout, same_function
from cute_py.notation.triton import TritonLayout, from_triton, parse_triton, to_triton
from cute_py.notation.triton_encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    NvidiaMmaEncoding,
    NvmmaSharedEncoding,
    SliceEncoding,
    SwizzledSharedEncoding,
)
from cute_py.notation.triton_texts import parse_triton_encoding
from tests.each import each_of
from tests.oracle.records import rows, tally

MMA = NvidiaMmaEncoding(2, 0, (1, 1), (16, 8))


def test_encodings_have_the_bases_that_triton_computes() -> None:
    table, wrong = rows("triton_layouts"), []
    for row in table:
        encoding = parse_triton_encoding(row["encoding"])
        found = encoding.linear(row["shape"])
        bases = {name: [list(basis) for basis in own] for name, own in found.bases}
        texts = (str(encoding), str(found), parse_triton(row["text"]))
        if bases != row["bases"] or texts != (row["encoding"], row["text"], found):
            wrong.append(row["id"])
    tally("triton_layouts", len(table) - len(wrong), len(table))
    assert wrong == []
    assert len(table) >= 300
    assert {row["kind"] for row in table} == {
        "blocked",
        "nvidia_mma",
        "dot_op",
        "slice",
        "swizzled_shared",
        "nvmma_shared",
    }


def test_layouts_of_recorded_bases_are_the_same_function() -> None:
    """What `to_layout` gives has Triton's coordinate for every thread and value, or is refused with a reason."""
    refused = 0
    for row in rows("triton_layouts")[::3]:
        linear = parse_triton(row["text"])
        try:
            layout = linear.to_layout()
        except LayoutError as error:
            assert row["kind"] in ("swizzled_shared", "nvmma_shared"), (row["id"], error)
            refused += 1
            continue
        size, shape = linear.sizes, linear.shape
        random_ = random.Random(row["id"])
        for _ in range(20):
            at = {name: random_.randrange(n) for name, n in size.items()}
            index = sum(c * int(np.prod(shape[:i])) for i, c in enumerate(linear(**at)))
            if "offset" in size:
                assert layout(index) == at["offset"]
                continue
            place = [at["lane"] + size["lane"] * at["warp"], at["register"]]
            place += [at["block"]] if size["block"] > 1 else []
            assert layout(tuple(place)) == index
    assert 0 < refused < 60


def _bits_of(random_: random.Random, count: int, zeros: int = 0) -> list[int]:
    columns = [1 << i for i in range(count)] + [0] * zeros
    random_.shuffle(columns)
    return columns


def _random_layout(random_: random.Random) -> tuple[Layout | ComposedLayout, tuple[int, ...] | None]:
    """A layout of threads and values with its tile, or one of shared memory; a third of them swizzled."""
    rank = random_.randint(1, 3)
    logs = [random_.randint(0, 3) for _ in range(rank)]
    shared = random_.random() < 0.4
    columns = _bits_of(random_, sum(logs), 0 if shared else random_.choice([0, 0, 1, 3]))
    if shared:
        shape = tuple(tuple([2] * n) if n else 1 for n in logs)
    else:
        cut = random_.randint(0, len(columns))
        shape = tuple(tuple([2] * n) if n else 1 for n in (cut, len(columns) - cut))
    own = iter(columns)
    stride = tuple(tuple(next(own) for _ in mode) if isinstance(mode, tuple) else 0 for mode in shape)
    layout: Layout | ComposedLayout = cute.static(Layout(shape, stride))
    bits = sum(logs)
    if bits >= 3 and random_.random() < 0.35:
        width = random_.randint(1, bits // 2)
        base = random_.randint(0, bits - 2 * width)
        swizzle = Swizzle(width, base, random_.randint(width, bits - base - width))
        layout = ComposedLayout(swizzle, Int(0), layout)
    return layout, None if shared else tuple(1 << n for n in logs)


@pytest.mark.slow
def test_ten_thousand_random_layouts_come_back() -> None:
    random_ = random.Random(20261122)
    for _ in range(10_000):
        layout, tile = _random_layout(random_)
        linear = to_triton(layout, tile)
        assert parse_triton(str(linear)) == linear
        back = from_triton(str(linear))
        assert same_function(back, layout), (layout, tile, back)
        assert to_triton(back, tile) == linear


@pytest.mark.parametrize("count", [500, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_bases_come_back_or_have_a_reason(count: int) -> None:
    """Any bases: a layout that gives the same bases again, or a LayoutError."""
    random_, made = random.Random(7), 0
    for _ in range(count):
        extents = (1 << random_.randint(0, 3), 1 << random_.randint(0, 3))
        logs = [random_.randint(0, 3) for _ in range(3)]
        names = ("register", "lane", "warp")
        bases = tuple(
            (name, tuple(tuple(random_.randrange(n) for n in extents) for _ in range(count)))
            for name, count in zip(names, logs, strict=True)
        )
        linear = TritonLayout(bases, (("dim0", extents[0]), ("dim1", extents[1])))
        assert parse_triton(str(linear)) == linear
        assert parse_triton(linear.attribute()).sizes | {"block": 1} == linear.sizes | {"block": 1} if sum(logs) else 1
        try:
            layout = linear.to_layout()
        except LayoutError as error:
            assert "no layout, with or without a swizzle" in error.headline
            continue
        made += 1
        again = to_triton(layout, extents, lanes=1 << logs[1])
        columns = {name: own for name, own in again.bases if name != "block"}
        if logs[1] or not logs[2]:
            assert columns == dict(bases)
    assert 100 < made < 1900


def test_the_accumulator_of_mma_sync_is_cutes() -> None:
    atom = cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN")
    assert MMA.linear((16, 8)) == to_triton(atom.layoutC_TV, (16, 8))
    assert DotOperandEncoding(0, MMA, 2).linear((16, 16)) == to_triton(atom.layoutA_TV, (16, 16))
    # Triton's B is (K, N), CuTe's (N, K).
    turned = cute.composition(Layout((16, 8), (8, 1)), Layout(128))
    of_k_n = cute.composition(cute.right_inverse(cute.static(turned)), atom.layoutB_TV)
    assert DotOperandEncoding(1, MMA, 2).linear((16, 8)) == to_triton(of_k_n, (16, 8))


def test_the_accumulator_of_wgmma_is_cutes() -> None:
    atom = cute.mma_atom("SM90_64x32x16_F32F16F16_SS")
    linear = NvidiaMmaEncoding(3, 0, (4, 1), (16, 32, 16)).linear((64, 32))
    assert linear == to_triton(atom.layoutC_TV, (64, 32))
    assert same_function(linear.to_layout(), atom.layoutC_TV)


@pytest.mark.parametrize(("swizzle", "bytes_"), [("K_SW128", 128), ("K_SW64", 64), ("K_SW32", 32)])
def test_shared_memory_of_wgmma_is_cutes(swizzle: str, bytes_: int) -> None:
    width = bytes_ // 2
    atom = cute.gmma_layout(swizzle, "float16")
    smem = cute.as_position_independent_swizzle_layout(cute.tile_to_shape(atom, (Int(64), Int(width))))
    linear = NvmmaSharedEncoding(bytes_, False, 16).linear((64, width))
    assert linear == to_triton(smem)
    assert same_function(linear.to_layout(), smem)


def test_attributes_and_gluon() -> None:
    linear = MMA.linear((16, 8))
    assert parse_triton(linear.attribute()) == linear
    gluon = (
        "DistributedLinearLayout(reg_bases=[[0, 1], [8, 0]], lane_bases=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
        "warp_bases=[], block_bases=[], shape=[16, 8])"
    )
    assert parse_triton(gluon) == linear
    shared = SwizzledSharedEncoding(8, 1, 8, (1, 0)).linear((8, 64))
    assert shared.attribute(128).endswith("}, alignment = 128>")
    assert parse_triton(shared.attribute()) == shared


def test_gluons_classes_and_earlier_versions() -> None:
    blocked = BlockedEncoding((1, 4), (8, 4), (4, 1), (1, 0))
    text = "BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0]"
    for same in (
        f"{text}, cga_layout=[])",
        f"{text}, ctas_per_cga=None)",
        "ttgl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])",
    ):
        assert parse_triton_encoding(same) == blocked
    older = "#triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]"
    assert parse_triton_encoding(f"{older}, CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0]}}>") == blocked
    with pytest.raises(ParseError, match="several CTAs"):
        parse_triton_encoding(f"{older}, CTAsPerCGA = [2, 1]}}>")
    assert parse_triton_encoding(f"SliceLayout(dim=0, parent={text}))") == SliceEncoding(0, blocked)
    wgmma = "NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16], cga_layout=[])"
    assert parse_triton_encoding(wgmma) == NvidiaMmaEncoding(3, 0, (4, 1), (16, 64, 16))
    operand = f"DotOperandLayout(operand_index=0, parent={wgmma}, k_width=2)"
    assert parse_triton_encoding(operand) == DotOperandEncoding(0, NvidiaMmaEncoding(3, 0, (4, 1), (16, 64, 16)), 2)
    shared = "NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=8, rank=2)"
    assert parse_triton_encoding(shared) == NvmmaSharedEncoding(64, False, 8)
    for span, phases in ((128, (1, 8)), (64, (2, 4)), (32, (4, 2))):
        leading = f"vec = 8, perPhase = {phases[0]}, maxPhase = {phases[1]}, order = [0, 1], hasLeadingOffset"
        assert parse_triton_encoding(f"#triton_gpu.shared<{{{leading} = true}}>") == NvmmaSharedEncoding(span, True, 16)
        assert parse_triton_encoding(f"#triton_gpu.shared<{{{leading} = false}}>").max_phase == phases[1]


def test_explain_and_parse_find_them() -> None:
    text = str(MMA.linear((16, 8)))
    assert "((_4,_8),(_2,_2)):((_32,_1),(_16,_8))" in cute.explain(parse_triton(text))
    assert "4 registers x 32 lanes x 1 warp x 1 CTA" in cute.explain(text)
    assert "warpsPerCTA" in cute.explain(str(MMA))
    assert cute.parse(text) == parse_triton(text)
    assert cute.parse(str(MMA)) == MMA
    wide = TritonLayout((("lane", ((1,), (1,))),), (("dim0", 2),))
    assert "equals this F2 map" in cute.explain(wide)


@pytest.mark.parametrize(
    ("layout", "tile", "error", "text"),
    [
        (Layout((3, 2)), (4, 2), LayoutError, "the size 3 is not a power of 2"),
        (Layout((4, 2), (1, 2)), (4, 2), LayoutError, "share a bit"),
        (Layout((4, 2)), (2, 2), LayoutError, "an index is beyond the tile"),
        (Layout((4, 2)), (3, 4), LayoutError, "powers of two"),
        (Layout((2, 2, 2, 2)), (16,), LayoutError, "must have modes (thread, value)"),
        (ComposedLayout(Swizzle(0, 4, 3), Int(8), Layout((4, 2))), (4, 4), LayoutError, "must map 0 to 0"),
        (Layout((8, 8), (16, 1)), None, LayoutError, "not a bijection"),
        (Layout((4, 2)), "tile", InvalidTypeError, "tile"),
        ("(4,2):(1,4)", (4, 2), InvalidTypeError, "needs a layout"),
    ],
)
def test_what_has_no_bases(layout: object, tile: object, error: type[CuteError], text: str) -> None:
    with pytest.raises(error) as found:
        to_triton(layout, tile)  # type: ignore[arg-type]
    assert text in str(found.value)


@pytest.mark.parametrize(
    ("bases", "text"),
    [
        ((("offset", ((1, 0), (0, 0))),), "not a bijection"),
        (
            (("offset", ((1, 0), (0, 1))), ("block", ((0, 0),))),
            "CuTe can express the shared memory of one block, but this layout has several blocks",
        ),
        (
            (("register", ((1, 0),)), ("column", ((0, 1),))),
            "CuTe can express only a layout of threads and values, or of shared memory",
        ),
        ((("lane", ((1, 1), (1, 0), (0, 1))),), "no layout, with or without a swizzle"),
    ],
)
def test_bases_that_are_no_layout(bases: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...], text: str) -> None:
    with pytest.raises(LayoutError, match=text):
        TritonLayout(bases, (("dim0", 2), ("dim1", 2))).to_layout()


@each_of(
    "text",
    [
        "",
        "lane=1 -> (0, 2)",
        "- lane=2 -> (0, 2)\nwhere out dims are: [dim0 (size 4), dim1 (size 4)]",
        "- lane=1 -> (0; 2)\nwhere out dims are: [dim0 (size 4)]",
        "where out dims are: [dim0 4]",
        "#ttg.linear<{register = [[0, 1]], lane = [[1]]}>",
        "#ttg.linear<{}>",
        "#ttg.linear<{register = [0], lane = [[1]]}>",
        "#ttg.linear<{register = [[[[0}>",
        "- lane=1 -> (" + "9" * 60 + ")\nwhere out dims are: [dim0 (size 4)]",
    ],
)
def test_texts_that_are_no_linear_layout(text: str) -> None:
    with pytest.raises(ParseError):
        parse_triton(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#ttg.blocked<{sizePerThread = [1, 1]}>",
        "#ttg.amd_mfma<{version = 3}>",
        "#ttg.slice<{dim = 0, parent = " * 9 + "}>" * 9,
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}> more",
        "#ttg.swizzled_shared<{vec = 8, vec = 8, maxPhase = 8, order = [1, 0]}>",
    ],
)
def test_texts_that_are_no_encoding(text: str) -> None:
    with pytest.raises(ParseError):
        parse_triton_encoding(text)


def test_parameters_that_fit_no_encoding() -> None:
    blocked = BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0))
    for make in (
        lambda: BlockedEncoding((1, 3), (4, 8), (2, 1), (1, 0)),
        lambda: BlockedEncoding((1, 4), (4, 8), (2,), (1, 0)),
        lambda: BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 1)),
        lambda: BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0), ((1,),)),
        lambda: NvidiaMmaEncoding(1, 0, (1, 1), (16, 8)),
        lambda: NvidiaMmaEncoding(3, 0, (4, 1), (16, 8)),
        lambda: DotOperandEncoding(2, MMA, 2),
        lambda: DotOperandEncoding(0, blocked, 2),
        lambda: DotOperandEncoding(1, NvidiaMmaEncoding(3, 0, (4, 1), (16, 8, 16)), 2),
        lambda: SliceEncoding(2, blocked),
        lambda: SwizzledSharedEncoding(3, 1, 8, (1, 0)),
        lambda: NvmmaSharedEncoding(48, False, 16),
        lambda: NvmmaSharedEncoding(64, False, 8, True),
    ):
        with pytest.raises(InvalidValueError):
            make()
    with pytest.raises(InvalidTypeError):
        DotOperandEncoding(0, "mma", 2)  # type: ignore[arg-type]
    for shape in ((64,), (64, 48)):
        with pytest.raises(LayoutError):
            blocked.linear(shape)
    for shape in ((4, 64), (64, 32)):
        with pytest.raises(LayoutError, match="the swizzle needs"):
            NvmmaSharedEncoding(128, False, 16).linear(shape)


def test_of_a_place() -> None:
    linear = MMA.linear((16, 8))
    assert linear(lane=5, register=3) == (9, 3)
    with pytest.raises(InvalidValueError, match="not an in dim"):
        linear(thread=0)
    with pytest.raises(InvalidValueError):
        linear(lane=32)


def test_bases_beyond_the_tile_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="the basis of lane=1, along dim0"):
        TritonLayout((("lane", ((4,),)),), (("dim0", 4),))
    with pytest.raises(InvalidValueError, match="the size of dim0 is 3; must be a power of 2"):
        TritonLayout((), (("dim0", 3),))
    with pytest.raises(
        InvalidValueError, match=r"the tile has 2361183241434822606848 elements; must have at most 2\*\*32"
    ):
        TritonLayout((), (("dim0", 1 << 31), ("dim1", 1 << 31), ("dim2", 1 << 9)))
    with pytest.raises(InvalidValueError, match="must be listed once"):
        TritonLayout((("lane", ()), ("lane", ())), ())


def test_the_columns_are_those_of_the_f2_view() -> None:
    view = LinearLayout((4, 2), (1, 2, 4))
    assert to_triton(view.to_layout(), (4, 2)).sizes == {"register": 2, "lane": 4, "warp": 1, "block": 1}


@pytest.mark.parametrize("seed", range(40))
def test_holders_of_an_element_are_all_places_that_have_it(seed: int) -> None:
    dice = random.Random(seed)
    sizes = dice.choice((1, 2, 8)), dice.choice((2, 4))

    def bases(count: int) -> tuple[tuple[int, int], ...]:
        return tuple([(dice.randrange(sizes[0]), dice.randrange(sizes[1])) for _ in range(count)])

    layout = TritonLayout(
        tuple([(name, bases(dice.randrange(4))) for name in ("register", "lane", "warp")]),
        (("dim0", sizes[0]), ("dim1", sizes[1])),
    )
    places = [dict(zip(layout.sizes, at, strict=True)) for at in itertools.product(*map(range, layout.sizes.values()))]
    for coordinate in itertools.product(*map(range, sizes)):
        found = layout.holders(*coordinate)
        assert sorted(map(repr, found)) == sorted(repr(at) for at in places if layout(**at) == coordinate)


def test_holders_are_refused() -> None:
    layout = TritonLayout((("lane", ((0, 1),)),), (("dim0", 2), ("dim1", 2)))
    assert layout.holders(1, 0) == ()
    with pytest.raises(InvalidValueError, match="the coordinate has 1 number; must have 2"):
        layout.holders(1)
    with pytest.raises(InvalidValueError, match="dim1 = 2"):
        layout.holders(0, 2)
    with pytest.raises(InvalidValueError, match="at most 2\\*\\*16"):
        TritonLayout((("lane", ((0, 0),) * 20),), (("dim0", 2), ("dim1", 2))).holders(0, 0)


@pytest.mark.parametrize("text", ["#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>"])
def test_an_alias_before_an_attribute(text: str) -> None:
    assert cute.parse(f"#linear = {text}") == cute.parse(text) == cute.parse(f"  #a1={text}")
    assert "T1 V0" in str(cute.draw.draw(cute.parse(f"#linear = {text}")))


@pytest.mark.parametrize(
    ("swizzle", "dtype"), [("128B", "float16"), ("64B", "float32"), ("32B", "uint8"), ("64B", "uint8")]
)
def test_a_tile_of_swizzled_bytes_is_the_layout_of_its_elements(swizzle: str, dtype: str) -> None:
    tile = cute.tma.make_smem_layout("K", swizzle, dtype, (64, 64))
    back = from_triton(to_triton(tile))
    assert (cute.offsets(tile).reshape(64, 64) == cute.offsets(back).reshape(64, 64)).all()
    if swizzle == "128B":
        shared = parse_triton_encoding(
            "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
        )
        assert to_triton(tile) == shared.linear((64, 64))


@pytest.mark.parametrize("prefix", ["ttgl.", "gl.", "triton.experimental.gluon.", ""])
def test_classes_of_gluon_behind_the_name_of_a_module(prefix: str) -> None:
    blocked = "BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])"
    bases = "reg_bases=[[0, 1]], lane_bases=[[1, 0]], warp_bases=[], block_bases=[]"
    linear = f"DistributedLinearLayout({bases}, shape=[2, 2])"
    assert cute.parse(f"{prefix}SliceLayout(1, {prefix}{blocked})") == cute.parse(f"SliceLayout(1, {blocked})")
    assert cute.parse(prefix + linear) == cute.parse(linear)


@pytest.mark.parametrize(
    "text",
    [
        "#ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>",
        "#ttg.padded_shared<[128:+4] {order = [1, 0], shape = [16, 128]}>",
        "ttgl.TensorMemoryLayout([128, 128], col_stride=1)",
    ],
)
def test_a_layout_that_only_explain_reads(text: str) -> None:
    with pytest.raises(ParseError, match="is not an encoding that parse supports") as refused:
        cute.parse(text)
    assert "explain(text)" in str(refused.value)
    assert "A layout of Triton" in str(cute.explain(text))


def test_an_encoding_of_another_gpu() -> None:
    with pytest.raises(ParseError, match="'amd_mfma' is not an encoding") as refused:
        cute.parse("#ttg.amd_mfma<{version = 3}>")
    assert "explain" not in str(refused.value) and "nvidia_mma" in str(refused.value)
