"""explain: the words for coordinate tensors, and that what they say is so."""

from __future__ import annotations

import enum
import importlib
import inspect
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

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
    local_tile,
    make_identity_tensor,
    make_inttuple_iter,
    make_tensor,
    ratio,
)
from cute_py.errors import InvalidTypeError
from cute_py.explanation import Explanation, explain
from cute_py.notation.parse import parse
from cute_py.tma.simulate.pipeline import Ring, RingLoad
from tests.arith_tuple.strategies import basis_layouts, coordinates
from tests.each import each_of


@given(coordinates, basis_layouts())
def test_every_sample_is_the_element(start: Any, layout: Layout) -> None:
    tensor = make_tensor(make_inttuple_iter(start), layout)
    lines = explain(tensor).splitlines()
    samples = [line for line in lines if " -> " in line and line.startswith("  ")]
    assert samples
    for line in samples:
        coordinate, element = line.split(" : ")[1].split(" -> ")
        got = tensor(parse(coordinate))
        assert str(got).replace("_", "") == element.strip()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 5))
def test_the_formula_gives_the_element(tile: int, tiles: int, first: int) -> None:
    tensor = local_tile(make_identity_tensor((Int(tile) * 3, Int(tile * tiles))), (Int(3), Int(tile)), (first, None))
    formulas = [line.split(" = ")[1] for line in explain(tensor).splitlines() if line.startswith("  coordinate mode")]
    for place in [(0, 0, 0), (1, tile - 1, tiles - 1)]:
        names = {f"c{i}": index for i, index in enumerate(place)}
        assert tensor(*place) == tuple(eval(f, {}, names) for f in formulas)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (Layout((Int(64), 2), (E(1), Int(64) * E(1))), "covers 64 there, so a step goes to the next block of 64"),
        (Layout((Int(64), 2), (E(1), Int(80) * E(1))), "covers 64 there, so a step skips 16"),
        (Layout((Int(64), 2), (E(1), Int(48) * E(1))), "covers 64 there, so blocks overlap by 16"),
        (Layout((4, 2, 3), (E(0), 4 * E(0), 8 * E(0))), "mode 0 (4 x _1@0) and mode 1 (2 x 4@0) cover 8 there"),
        (Layout((4,), (3 * E(0),)), "only one position in 3 is reached"),
        (Layout((4,), (-2 * E(0),)), "a step takes 2 from coordinate mode 0"),
        (Layout((4,), (Int(0) * E(0),)), "a step moves nowhere"),
        (Layout((Int(1),), (E(0),)), "a single index, so it never moves"),
        (Layout((4,), (ratio(3, 2) * E(0),)), "2 steps add 3 to coordinate mode 0"),
    ],
)
def test_reasons(layout: Layout, reason: str) -> None:
    assert reason in explain(make_tensor(make_inttuple_iter(0, 0), layout))
    assert reason in explain(layout)


def test_symbols_are_explained_without_a_last_element() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    out = explain(make_identity_tensor((n, 5)))
    assert "size n, stride _1@0" in out
    assert "last" not in out


def test_integers() -> None:
    assert "counts from 42 on, in int32" in explain(make_tensor(counting_iterator(42), (4, 5)))
    assert "a step adds 1 to the integer" in explain(make_identity_tensor(5))


def test_a_swizzle_is_named() -> None:
    layout = ComposedLayout(Swizzle(2, 0, 3), Int(0), Layout((8, 8), (8, 1)))
    out = explain(make_tensor(counting_iterator(0), layout))
    assert "Sw<2,0,3> is applied after the strides: it takes _0 + their sum, and returns the offset." in out
    assert "one step in mode 0 : (1,0) -> 9" in out


def test_objects_with_words_of_their_own() -> None:
    class Atom:
        def explain(self) -> str:
            return "an atom"

    assert explain(Atom()) == "an atom"


@pytest.mark.parametrize("bad", [5, "nothing known", None, b"seven", [Layout((4, 5))]])
def test_what_has_no_words(bad: Any) -> None:
    with pytest.raises(InvalidTypeError, match="no explanation"):
        explain(bad)


@each_of(
    ("text", "first"),
    [
        ("zipped_divide", "zipped_divide(layout, tiler)"),
        ("128B", "TensorMapSwizzle.B128 = 3"),
        ("CU_TENSOR_MAP_SWIZZLE_128B", "TensorMapSwizzle.B128 = 3"),
        ("CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE", "TensorMapSwizzle.NONE = 0"),
        ("CU_TENSOR_MAP_L2_PROMOTION_L2_128B", "L2Promotion.B128 = 2"),
        ("L2Promotion.B128", "L2Promotion.B128 = 2"),
        ("CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", "TensorMapDataType.BFLOAT16 = 9"),
        ("G-basis", "G-basis"),
        ("gbasis", "G-basis"),
        ("lbo", "LBO, the leading byte offset of a shared-memory descriptor; 14 bits, in units of 16 bytes"),
        ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_VALUE"),
        ("FLOAT16", "TensorMapDataType.FLOAT16 = 6"),
        ("bf16", "bfloat16"),
    ],
)
def test_names_terms_and_spellings(text: str, first: str) -> None:
    assert explain(text).splitlines()[0] == first


def test_a_misspelled_name_lists_the_nearest() -> None:
    with pytest.raises(InvalidTypeError, match="nearest : zipped_divide"):
        explain("zipped_devide")


def test_an_integer_layout_says_what_it_covers() -> None:
    text = explain(Layout((4, 8), (0, 2)))
    assert "mode 0 : size 4, stride 0: a step moves nowhere" in text
    assert "32 elements share 8 offsets" in text
    assert "7 offsets between them are not used" in text
    text = explain(Layout((4, 8)))
    assert "each element has a different offset" in text
    assert "no gaps" in text
    assert "last" in text.splitlines()[-1]
    assert text.splitlines()[-1].endswith("-> 31")


@given(st.integers(0, 3), st.integers(0, 5), st.integers(-4, 4))
def test_a_swizzle_says_which_bits(bits: int, base: int, shift: int) -> None:
    if abs(shift) < bits:
        return
    swizzle = Swizzle(bits, base, shift)
    text = explain(swizzle)
    if not bits:
        assert "identity" in text
        return
    changed = 0
    for offset in range(1 << 12):
        changed |= swizzle(offset) ^ offset
    low = (changed & -changed).bit_length() - 1
    assert changed == ((1 << bits) - 1) << low
    name = f"bit {low}" if bits == 1 else f"bits {low} to {low + bits - 1}"
    assert f"keeps all bits but {name}," in text


def test_composed_layouts_maps_tensors_and_errors_have_words() -> None:
    text = explain(parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"))
    assert "permutes the bits of the byte address" in text
    assert "128B swizzle of TMA" in text
    request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    assert explain(request) == explain(cute.tma.encode(request)) == cute.tma.describe(request)
    assert "Elements of float32" in explain(make_tensor(np.zeros((4, 4), np.float32)))
    with pytest.raises(cute.tma.TmaLimitError) as error:
        cute.tma.encode(cute.tma.TensorMapTiled(6, 4, (512, 1024), (1000,), (64, 300)))
    text = cute.explain(error.value)
    assert text.startswith("TmaLimitError: ")
    assert "globalAddress = 0x4; must be a multiple of 16" in text
    assert "300" in text


def test_an_operation_is_explained_by_its_steps() -> None:
    a, b = Layout((Int(4), Int(6)), (Int(1), Int(4))), Layout(Int(8), Int(3))
    text = explain(cute.composition, a, b)
    *told, last = text.splitlines()
    assert told == [str(step) for step in cute.steps(cute.composition, a, b)]
    assert str(cute.composition(a, b)) in told[-1]
    assert last == "judged: R(i) = A(B(i)) for every i"
    with pytest.raises(InvalidTypeError, match="steps can't explain len"):
        explain(len, a)


# ---- every public name ---------------------------------------------------------------------------------------------

PACKAGES = ("", "tma", "targets", "tmem", "draw", "testing", "errors")


def public() -> list[tuple[str, Any]]:
    """(name, object) of all that the packages list, read from them here, not asked of the code that is tested."""
    found = []
    for package in PACKAGES:
        module = importlib.import_module(f"cute_py.{package}".rstrip("."))
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
        for name in [*getattr(module, "__all__", own), *getattr(module, "_STRATEGIES", ())]:
            found.append((f"{package}.{name}".lstrip("."), getattr(module, name)))
    return [
        *found,
        *((name, importlib.import_module(f"cute_py.{name}")) for name in ("tma", "tmem", "draw", "testing")),
    ]


def test_everything_public_is_explained() -> None:
    names = public()
    assert len(names) > 500
    short = []
    for name, thing in names:
        words = cute.explain(thing)
        assert isinstance(words, Explanation), name
        assert ElementTree.fromstring(words._repr_html_()) is not None
        doc = (inspect.getdoc(thing) or "") if isinstance(thing, (type, ModuleType)) or inspect.isroutine(thing) else ""
        first = doc.split("\n")[0]
        if first and first not in words:
            short.append(f"{name}: its docstring is missing")
        body = "\n".join(words.split("\n")[1:])
        if (
            len(body.split()) < 4
            or words.strip() in (repr(thing), str(thing))
            or " object at 0x" in words.split("\n")[0]
        ):
            short.append(f"{name}: {words[:80]}")
    assert short == []


def test_every_member_of_every_enum_is_explained() -> None:
    kinds = [thing for _, thing in public() if isinstance(thing, type) and issubclass(thing, enum.Enum)]
    assert len(kinds) > 12
    for kind in kinds:
        for member in kind:
            words = cute.explain(member)
            assert words.startswith(f"{kind.__name__}.{member.name} = ")
            assert (inspect.getdoc(kind) or "").split("\n")[0] in words


def test_rows_of_tables_say_their_values() -> None:
    row = next(row for row in cute.tma.RULES if row.name == "box")
    words = cute.explain(row)
    assert "  maximum     : 256" in words
    assert "  source      : " in words
    words = cute.explain(cute.tma.Op.SM90_TMA_REDUCE_ADD)
    assert "  reduction : add" in words
    assert "  bits       : 16" in cute.explain(cute.tma.TensorMapDataType.BFLOAT16)
    assert "  span      : 128" in cute.explain(cute.tma.TensorMapSwizzle.B128)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("tmem.COLUMNS", "Columns of tensor memory, 32 bits each."),
        ("cute.composition", "The steps with their values: explain(composition, a, b)"),
        ("tma.RULES", "The rules of tensor maps"),
        ("cute_py.tma.Trace", "n instructions of one descriptor"),
        ("tma.TensorMap", "  TensorMapIm2colWide"),
        ("tmem.LANES", "cute_py.tmem.LANES = 128"),
    ],
)
def test_a_name_stands_for_its_object(name: str, part: str) -> None:
    assert part in cute.explain(name)


@pytest.mark.parametrize("name", ["compositions", "tma.NOTHING", "tma.", ".", "a b.c", "os.path", "tma.run.nothing"])
def test_other_texts_are_no_names(name: str) -> None:
    with pytest.raises(InvalidTypeError, match="no explanation of str"):
        cute.explain(name)


@each_of("thing", [int, dict, Exception, len, np, np.zeros(3), object(), 3.5, True, (1, 2), {}])
def test_what_is_not_ours_has_no_words(thing: Any) -> None:
    with pytest.raises(InvalidTypeError, match="no explanation of"):
        cute.explain(thing)


def instances() -> dict[str, Any]:
    memory = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", memory, Layout((Int(32), Int(32)), cute.LayoutRight))
    tile = cute.tma.TensorMapTiled(2, 0x1000, (1024,), (), (64,))
    gmem = cute.tma.GlobalMemory()
    gmem.add("A", np.zeros(4096, np.uint8), 0x1000)
    loads = [RingLoad(tile, [(64 * i,) for i in range(4)])]
    ring = Ring(cute.tma.Emulator(), gmem, cute.tma.SharedMemory(4096), loads, depth=2)
    timeline = ring.simulate()
    broken = cute.tma.TensorMapTiled(6, 4, (512, 1024), (1000,), (64, 300))
    return {
        "layout": Layout((4, 8)),
        "negative": Layout((4, 8), (-8, 1)),
        "empty": Layout((0, 3)),
        "unit": Layout(()),
        "composed": parse("Sw<2,0,3> o 5 o (4,4):(4,1)"),
        "negative swizzle": Swizzle(2, 1, -3),
        "int": Int(4),
        "basis": E(0, 1),
        "tuple": make_identity_tensor((4, 5))(1, 2),
        "pointer": cute.make_gmem_ptr(0x1000, "float16"),
        "tensor": make_tensor(memory),
        "atom": atom,
        "plan": atom.plan,
        "gbasis": atom.gbasis,
        "request": atom.request,
        "broken request": broken,
        "violation": cute.tma.violations(broken)[0],
        "bytes": atom.descriptor,
        "instructions": cute.tma.instructions(atom),
        "memory": gmem,
        "ring": ring,
        "timeline": timeline,
        "outcome": timeline.outcome,
        "event": timeline.events[0],
        "barrier": cute.tma.Mbarrier(1),
        "emulator": cute.tma.Emulator(),
        "picture": cute.draw.draw(Layout((2, 3))),
        "step": cute.steps(cute.coalesce, Layout((2, 3)))[0],
        "demonstration": cute.tmem.demonstrate(),
        "copy": cute.tmem.demonstration_copy(),
        "axis": cute.tmem.TLane,
        "tile layout": cute.tmem.S[(32, 16) : (1 @ cute.tmem.TLane, 1 @ cute.tmem.TCol)],
        "dtype": atom.dtype,
        "table": cute.tma.SWIZZLE_MODES[:2],
    }


@each_of("name", instances())
def test_instances_are_explained(name: str) -> None:
    thing = instances()[name]
    words = cute.explain(thing)
    assert len(words.splitlines()) >= 3
    assert words.strip() != str(thing).strip()
    assert ElementTree.fromstring(words._repr_html_()).get("class") == "cute-explanation"


def test_the_html_form_has_the_same_words() -> None:
    words = cute.explain(cute.composition)
    page = ElementTree.fromstring(words._repr_html_())
    assert " ".join(page.itertext()).split() == words.split()
    assert "&lt; b" in Explanation("a < b")._repr_html_()


def test_a_basis_element_in_words() -> None:
    """Also from its text, as it is read in a printout."""
    assert cute.explain("_1@1@0").splitlines() == [
        "_1@1@0",
        "",
        "A basis element: _1 in mode 1 of mode 0 of a coordinate, 0 in every other mode.",
        "The distance comes before the first @ (known at compile time), the mode after it, counted from 0.",
        "Modes within modes are written from the inside out.",
        "",
        "As a stride",
        "  one step along its mode adds ((_0,_1)) to the coordinate. A layout with such strides",
        "  gives coordinates instead of offsets, as a TMA instruction needs them.",
    ]
    assert cute.explain(cute.E(0)) == cute.explain("_1@0")


def test_a_text_that_parse_reads_is_explained_as_what_it_shows() -> None:
    assert cute.explain("(4,8):(8,1)") == cute.explain(cute.Layout((4, 8), (8, 1)))
    with pytest.raises(InvalidTypeError, match="texts that `parse` reads"):
        cute.explain("(4,8")


def test_explain_counts_the_modes_that_strides_reach_beyond_the_iterator() -> None:
    tensor = cute.parse("ArithTuple(0,_0) o (_64,(4,2)):(_1@0,(_64@1,_1@2))")
    assert "A tensor of coordinates of 3 modes." in str(cute.explain(tensor))


def test_a_spelling_is_no_part_of_another() -> None:
    assert "Other objects with this spelling: L2Promotion.B128" in cute.explain("128B")
    assert "Other objects with this spelling" not in cute.explain("FLOAT16")


def test_an_address_behind_a_cast_is_judged() -> None:
    rest = "{512, 512}, {1024}, {64, 128}, {1, 1}, 0, 3, 0, 0)"
    for address in ("(void*)0x7f0000000008", "(void *) 0x7f0000000008", "(cuuint64_t)0x7f0000000008", "0x7f0000000008"):
        text = explain(f"cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, {address}, {rest}")
        assert "0x7f0000000008" in text and "\nWrong\n" in text


def test_what_print_of_shape_stride_and_dtype_shows() -> None:
    assert "as CuTe writes it: (128,100):(100,1)" in explain("torch.Size([128, 100]) (100, 1) torch.float16")


def test_sizes_and_strides_outermost_first_are_read_from_the_last() -> None:
    """The order of an array: by the last stride, which is the element's; the box in the order that breaks no rule."""
    rest = "swizzle=128B dtype=bf16"
    for box in ("[64, 256]", "[256, 64]"):
        text = explain(f"make_tensor_map: shape=[4096, 1000] stride=[2000, 2] box={box} {rest}")
        assert "row-major (4096,1000):(1000,1)" in text and "box              : (64,256)" in text
        assert "break no rule" in text
        assert ("the box is innermost first" in text) == (box == "[64, 256]")
    text = explain(f"tma desc shape=[4096, 1001] strides=[1001, 1] box=[256, 64] {rest}")
    assert "globalStrides[0] = 2002 bytes; must be a multiple of 16" in text
    text = explain(f"tma desc shape=[1000, 4096] strides=[2, 2000] box=[64, 256] {rest}")
    assert "row-major (4096,1000):(1000,1)" in text and "from the last" not in text
