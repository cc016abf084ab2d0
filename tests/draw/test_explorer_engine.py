"""The page's engine by itself: texts, the way of bytes, ways out of a refusal, large inputs, what it leaves out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import cute_py as cute
from cute_py.draw.explorer import DOM, ENGINE, EXAMPLES, engine_source, web_file
from cute_py.draw.explorer_answer import answer_query
from cute_py.layout.trees import leaves
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.tiles import instructions
from cute_py.tma.simulate.trace import Trace
from tests.draw.explorer_node import ask, covered, run
from tests.pace import within

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [*ENGINE, *DOM, "checked.js"])
def test_every_file_says_what_it_follows(name: str) -> None:
    text = web_file(name)
    head = text[: text.index("*/")]
    named = re.findall(r"cute_py/[\w/]+\.py", head)
    assert text.startswith("/* ")
    assert named or "no Python module" in head
    assert all((ROOT / path).exists() for path in named)
    assert len(text.splitlines()) <= 400


def test_the_engine_touches_no_document() -> None:
    source = engine_source().split("\n", 2)[2]
    assert not re.search(r"document\.|window\.|location\.|fetch\(|XMLHttpRequest|localStorage|eval\(|import\(", source)


@pytest.mark.parametrize(
    "text",
    [
        "(_4,8):(_1,4)",
        "((_2,(3,_4)),_5):((_1,(2@0,_6@1@0)),0)",
        "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
        "Sw<2,0,-3> o _0 o (_8,_64):(_64,_1)",
        "(_8):(_-1)",
        "8:_1",
        "(4,8):(1180591620717411303424,_1)",
        "(_,(4,_))",
    ],
)
def test_texts_are_read_and_printed(text: str) -> None:
    assert run([("text", text)]) == [text] == [cute.text(cute.parse(text))]


WALKED: list[dict[str, str]] = [
    {"gmem": "(1024,512):(512,_1)", "smem": "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"},
    {"gmem": "(100,200):(200,_1)", "smem": "(_32,_64):(_64,_1)", "dtype": "bfloat16"},
    {
        "gmem": "(64,64,7):(_1,64,4096)",
        "smem": "Sw<2,4,3> o smem_ptr[32b](unset) o (_16,_8):(_1,_16)",
        "dtype": "float32",
    },
    {"gmem": "(40,3,48):(144,48,_1)", "smem": "(_8,_3,_32):(_96,_32,_1)", "dtype": "uint8"},
    {"gmem": "(512,256):(256,_1)", "smem": "Sw<1,4,3> o smem_ptr[16b](unset) o (_64,(_16,_2)):(_16,(_1,_1024))"},
    {"gmem": "(512,256):(256,_1)", "smem": "(_64,_64):(_64,_1)", "internal": "uint32"},
    {
        "gmem": "(1024,512):(512,_1)",
        "smem": "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)",
        "op": "SM90_TMA_LOAD_MULTICAST",
        "multicast": "4",
    },
]
"""Copies whose bytes are followed: swizzles, overhang, several boxes a tile, another type, multicast."""


@pytest.mark.parametrize("form", WALKED, ids=range(len(WALKED)))
@pytest.mark.parametrize("which", [0, 3])
def test_the_way_of_bytes(form: dict[str, str], which: int) -> None:
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, form.get("dtype", "float16")), cute.parse(form["gmem"]))
    count = int(form.get("multicast", "1"))
    op, internal = form.get("op", "SM90_TMA_LOAD"), form.get("internal")
    atom = make_tma_copy(op, gmem, cute.parse(form["smem"]), None, count, internal)
    work = instructions(atom)
    coords = work.coords[which * work.per_tile : (which + 1) * work.per_tile]
    trace = Trace(atom.descriptor, coords, work.smem_offsets)
    end = int(trace.starts.max()) + (trace.rows - 1) * trace.geometry.pitch + trace.geometry.row_bytes
    places = sorted({0, 1, 15, 16, end - 1, *range(7, end, max(end // 97, 1))})
    got = run([("bytes", {"form": {**form, "at": str(which)}, "places": places})])[0]
    for place, way in zip(places, got, strict=True):
        step = trace.backward(place)
        if step is None:
            assert way is None
            continue
        want = (list(step.tma_coord), step.inside, step.global_address, step.instruction, step.bank, step.shared_offset)
        found = (way["coord"], way["inside"], way["address"], way["instruction"], way["bank"], way["after"])
        assert found == want, place
        if step.inside:  # the tensor's own layout gives the same address
            offset = int(gmem.layout(tuple(way["tensor"]))) * atom.dtype.bits // 8
            assert 0 <= way["address"] - 4096 - offset < atom.internal_dtype.bits // 8


def test_modes_that_share_a_tma_mode_are_told_apart() -> None:
    form = {**EXAMPLES[3][1], "at": "4"}
    places = list(range(0, 4096, 52))
    gmem = cute.parse(form["gmem"])
    for way in run([("bytes", {"form": form, "places": places})])[0]:
        coord = tuple(tuple(part) for part in way["tensor"])
        assert 0x1000 + 4 * int(gmem(*coord)) == way["address"] - way["address"] % 4
        assert len(leaves(coord)) == 4


@pytest.mark.parametrize(("name", "form"), [e for e in EXAMPLES if e[0].startswith("error")], ids=lambda x: str(x)[:24])
def test_a_way_out_leaves_what_it_says(name: str, form: dict[str, str]) -> None:
    found = run([("ways", form)])[0]
    assert found["ways"], "an error without a fix"
    messages = {p["message"] for p in answer_query(form)["problems"]}
    for way in found["ways"]:
        after = answer_query({**form, **way["changes"]})["problems"]
        assert len(after) == way["left"]
        assert set(way["removes"]) == messages - {p["message"] for p in after} != set()
    best = found["ways"][0] if not found["ways"][0]["left"] else found["chain"]
    assert answer_query({**form, **best["changes"]})["problems"] == []


def test_what_needs_several_changes_has_a_chain() -> None:
    form = dict(EXAMPLES[-1][1])
    found = run([("ways", form)])[0]
    assert found["ways"][0]["left"] > 0
    assert len(found["chain"]["words"]) == 4
    assert run([("ways", {"gmem": "(64,64):(64,_1)", "smem": "(_64,_64):(_64,_1)"})])[0] == {
        "ways": [],
        "chain": {"words": [], "changes": {}},
    }


UNCOVERED = [
    ({"op": "SM90_TMA_LOAD_IM2COL"}, "im2col (SM90_TMA_LOAD_IM2COL)"),
    ({"op": "SM100_TMA_2SM_LOAD"}, "pairs of CTAs (SM100_TMA_2SM_LOAD)"),
    ({"op": "SM100_TMA_LOAD_2D_GATHER4"}, "gather4 (SM100_TMA_LOAD_2D_GATHER4)"),
    ({"dtype": "e2m1"}, "elements of 4 bits (float4_e2m1fn)"),
    ({"gmem": "(M,64):(64,_1)"}, "symbols and arithmetic such as 2*K"),
    ({"smem": "Layout<Shape<_8,_64>>"}, "C++ spellings such as Int<4>{} and make_layout(...)"),
    ({"smem": "(_8,_64):(_1@1,_1@0)"}, "shared layouts with basis strides"),
    ({"smem": "smem_ptr[16b](0x0) o (_8,_64):(_64,_1)"}, "tensors and pointers with an address"),
    ({"tile": "(_8:_1@0,_64:_1)"}, "tiles with basis strides"),
]


@pytest.mark.parametrize(("change", "words"), UNCOVERED, ids=[words for _, words in UNCOVERED])
def test_what_is_not_covered_is_named(change: dict[str, str], words: str) -> None:
    form = {"gmem": "(64,64):(64,_1)", "smem": "(_8,_64):(_64,_1)", **change}
    got = ask([form])[0]
    assert got["not_covered"] == [words]
    assert got["plan"] is None
    assert got["descriptor"] is None
    assert covered(form) or "op" in change or "dtype" in change


LARGE: list[dict[str, str]] = [
    {"gmem": "(4294967296,4294967296):(4294967296,_1)", "smem": "(_1048576,_1048576):(_1048576,_1)"},
    {"gmem": "(1048576,1048576):(1048576,_1)", "smem": "(_65536,_8):(_72,_1)"},
    {
        "gmem": "(2,2,2,2,2,2,2,2):(_1,2,4,8,16,32,64,128)",
        "smem": "((_2,_2,_2,_2),(_2,_2,_2,_2)):((_1,_2,_4,_8),(_16,_32,_64,_128))",
    },
    {"gmem": "(" + ",".join(["2"] * 300) + "):(" + ",".join(["_1"] * 300) + ")", "smem": "(_8):(_1)"},
    {"gmem": f"({10**40},64):({10**30},_1)", "smem": "(_8,_64):(_64,_1)"},
    {"gmem": "8:_1", "smem": "(" * 900},
    {"gmem": "1" * 5000, "smem": "8:_1"},
]


@pytest.mark.parametrize("form", LARGE, ids=range(len(LARGE)))
def test_large_inputs_are_answered_soon(form: dict[str, str]) -> None:
    with within(1000):
        got: list[Any] = run([("answer", form), ("ways", form)])
    assert got[0]["problems"] == [] or got[1]["ways"] is not None
    with within(1000):
        answer_query(form)
