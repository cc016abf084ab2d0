"""The program that makes the records of CuTe C++ again: what it writes in C++, and how it reads what comes back.

The last test compiles a few rows of each family; it needs CUTLASS_PATH, g++ and the CUDA headers.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.each import each_of
from tests.oracle.record import algebra, atoms, gbasis, notation, printed, printing
from tests.oracle.record.__main__ import CUDA, FAMILIES, compare, cuda_includes, main, not_made, write
from tests.oracle.record.batches import again, difference, moved, programs
from tests.oracle.record.family import Family, Row
from tests.oracle.record.program import ENDED, FIRST_LINE, HEAD, Outcome, compiler, first_messages, in_headers, outcome
from tests.oracle.records import rows

EXPRESSIONS = [
    ("L((4,8),(8,1))", "make_layout(cute::make_tuple(Int<4>{},Int<8>{}),cute::make_tuple(Int<8>{},Int<1>{}))"),
    ("L(4,-1)", "make_layout(Int<4>{},Int<-1>{})"),
    ("L((16,),(1,))", "make_layout(cute::make_tuple(Int<16>{}),cute::make_tuple(Int<1>{}))"),
    ("L((4,8),'LayoutRight{}')", "make_layout(cute::make_tuple(Int<4>{},Int<8>{}),LayoutRight{})"),
    ("L((D(4),8),(1,D(4)))", "make_layout(cute::make_tuple(4,Int<8>{}),cute::make_tuple(Int<1>{},4))"),
    ("L(D(2**3),1)", None),
    ("D(8589934592)", "8589934592ll"),
    ("E()", "E<>{}"),
    ("E([0,1])", "E<0,1>{}"),
    ("2*E([0,1])", "(Int<2>{}*E<0,1>{})"),
    ("S(2,0)+S(3,0)", "((Int<2>{}*E<0>{})+(Int<3>{}*E<0>{}))"),
    ("SW(2,0,3)(9)", "Swizzle<2,0,3>{}(Int<9>{})"),
    ("L(4)((None,(1,None)))", "make_layout(Int<4>{})(cute::make_tuple(_,cute::make_tuple(Int<1>{},_)))"),
    (
        "composition(L(4),(L(2,2),None))",
        "composition(make_layout(Int<4>{}),cute::make_tuple(make_layout(Int<2>{},Int<2>{}),_))",
    ),
    ("upcast(L(8,1),4)", "upcast<4>(make_layout(Int<8>{},Int<1>{}))"),
    ("group(L((4,8,2)),0,2)", "group<0,2>(make_layout(cute::make_tuple(Int<4>{},Int<8>{},Int<2>{})))"),
    (
        "slice_((3,None),L((8,8)))",
        "slice(cute::make_tuple(Int<3>{},_),make_layout(cute::make_tuple(Int<8>{},Int<8>{})))",
    ),
    ("complement(L(4,1099511627776))", "complement(make_layout(Int<4>{},C<1099511627776ll>{}))"),
    ("idx2crd(17,(4,(2,4)))", "idx2crd(Int<17>{},cute::make_tuple(Int<4>{},cute::make_tuple(Int<2>{},Int<4>{})))"),
]


@each_of(("expression", "cpp"), EXPRESSIONS)
def test_an_expression_in_cpp(expression: str, cpp: str | None) -> None:
    if cpp is None:
        with pytest.raises((notation.NotationError, ValueError)):
            notation.cpp(expression)
    else:
        assert notation.cpp(expression) == cpp


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("L(x, 1)", "x: not a form of the notation"),
        ("L(4, 1, 2)", "L does not take 3 arguments"),
        ("SW(1, True, 3)", "True: an integer is wanted here"),
        ("L(4) / 2", "L(4) / 2: not a form of the notation"),
        ("coalesce(L(4), by=1)", "coalesce(L(4), by=1): not a form of the notation"),
    ],
)
def test_what_is_not_of_the_notation(expression: str, words: str) -> None:
    with pytest.raises(notation.NotationError) as error:
        notation.cpp(expression)
    assert str(error.value) == words


def test_edges_of_static_integers() -> None:
    assert notation.static_integer(2**31 - 1) == "Int<2147483647>{}"
    assert notation.static_integer(2**31) == "C<2147483648ll>{}"
    assert notation.static_integer(-(2**31)) == "Int<-2147483648>{}"
    assert notation.static_integer(-(2**31) - 1) == "C<-2147483649ll>{}"


@pytest.mark.parametrize(
    ("text", "cpp"),
    [
        ("_4", "Int<4>{}"),
        ("(_128,64)", "cute::make_tuple(Int<128>{},64)"),
        ("(1024):(_1)", "make_layout(cute::make_tuple(1024),cute::make_tuple(Int<1>{}))"),
        ("(_32:_2,_8)", "cute::make_tuple(make_layout(Int<32>{},Int<2>{}),Int<8>{})"),
        (
            "((_2,_32):(_32,_1),_32:_1)",
            "cute::make_tuple(make_layout(cute::make_tuple(Int<2>{},Int<32>{}),cute::make_tuple(Int<32>{},Int<1>{})),"
            "make_layout(Int<32>{},Int<1>{}))",
        ),
        ("(4):(1099511627776)", "make_layout(cute::make_tuple(4),cute::make_tuple(1099511627776ll))"),
    ],
)
def test_a_printed_value_in_cpp(text: str, cpp: str) -> None:
    assert printed.cpp(text) == cpp


def test_a_printed_shared_layout_in_cpp() -> None:
    plain = "make_layout(cute::make_tuple(Int<8>{}),cute::make_tuple(Int<1>{}))"
    assert printed.shared_cpp("(_8):(_1)") == plain
    assert printed.shared_cpp("(_8):(_1)", [0, 4, 3]) == plain
    assert printed.shared_cpp("(_8):(_1)", [3, 5, 3]) == f"composition(Swizzle<3,5,3>{{}},Int<0>{{}},{plain})"
    assert printed.shared_cpp("Sw<2,4,3> o _0 o (_8):(_1)") == f"composition(Swizzle<2,4,3>{{}},Int<0>{{}},{plain})"
    flagged = printed.shared_cpp("Sw<2,4,3> o smem_ptr[16b](unset) o (_8):(_1)")
    assert flagged == f"composition(Swizzle<2,4,3>{{}},smem_ptr_flag_bits<16>{{}},{plain})"
    with pytest.raises(ValueError, match="not a shared layout"):
        printed.shared_cpp("Sw<2,4,3> o _3 o (_8):(_1)")


def test_only_integers_become_cpp() -> None:
    with pytest.raises(ValueError, match="only integers are written as C"):
        printed.cpp("(_4):(_1@0)")


def test_printed_texts_are_read_as_the_records_have_them() -> None:
    """Every layout and coordinate tensor that a record holds is what its own text reads as."""

    def check(value: Any) -> int:
        if isinstance(value, list):
            return sum(map(check, value))
        if not isinstance(value, dict):
            return 0
        if "str" not in value or not {"layout", "shape"} & value.keys():
            return sum(map(check, value.values()))
        if "offset" in value:
            assert printed.coordinate_tensor(value["str"]) == value
        elif "nonswizzle" in value:
            assert printed.shared_layout(value["str"]) == value
        else:
            assert printed.layout(value["str"]) == {name: value[name] for name in ("str", "shape", "stride")}
        return 1

    assert sum(map(check, rows("gbasis_cpp"))) > 3000


@pytest.mark.parametrize("family", [f for group in FAMILIES.values() for f in group], ids=lambda f: f.file)
def test_every_stored_row_has_its_statements(family: Family) -> None:
    batches = programs(family, rows(family.file))
    assert {index for batch in batches for index, _, _ in batch} == set(range(len(rows(family.file))))
    for batch in batches:
        assert len({family.refused(rows(family.file)[index], part) for index, part, _ in batch}) == 1
        assert all(
            statement.count("(") == statement.count(")") for _, _, statement in batch if "print(" not in statement
        )


def row_named(name: str) -> Row:
    return next(row for row in rows("gbasis_cpp") if row["name"] == name)


def test_the_statements_of_an_atom() -> None:
    parts = atoms.statements(row_named("it_complex64_u64"))
    gmem = "make_layout(cute::make_tuple(256,64),cute::make_tuple(64,Int<1>{}))"
    smem = "make_layout(cute::make_tuple(Int<32>{},Int<16>{}),cute::make_tuple(Int<16>{},Int<1>{}))"
    ends = f"4096ull, SM90_TMA_LOAD{{}}, {gmem}, {smem}", "cute::make_tuple(Int<32>{},Int<16>{}), Int<1>{});"
    assert parts["atom"] == f"atom<cutlass::complex<float>, uint64_t>({ends[0]}, {smem}, {ends[1]}"
    assert parts["copy"].startswith(f"tiled_copy<cutlass::complex<float>, uint64_t>({ends[0]}, {ends[1]} slices<")
    assert list(parts) == ["atom", "partitions", "copy"]


def test_the_statements_of_the_other_kinds() -> None:
    mask = next(row for row in rows("gbasis_cpp") if row["kind"] == "multicast_mask" and row["modes"] == [1, 2])
    assert "create_tma_multicast_mask<1,2>(cluster, cute::make_tuple(" in gbasis.GBASIS.statements(mask)["text"]
    assert (
        "in = make_layout(cute::make_tuple(Int<16>{}" in gbasis.GBASIS.statements(row_named("coalesce_256_000"))["text"]
    )
    assert "get_tma_swizzle_bits(Swizzle<2,6,3>{})" in gbasis.GBASIS.statements(row_named("swizzle_map_431"))["text"]
    assert "sizeof_bits_v<float_e5m2_t>" in gbasis.GBASIS.statements(row_named("dtype_map_436"))["text"]
    pair = gbasis.GBASIS.statements(row_named("sm100_2sm"))["text"]
    assert pair.startswith("two_sm_operand_a<half_t>(SM100_TMA_2SM_LOAD{}, make_layout(")
    window = gbasis.GBASIS.statements(row_named("fprop2d_3x3_p2_d2"))["text"]
    assert window.endswith("cute::make_tuple(1,1), cute::make_tuple(0,0), cute::make_tuple(2,2));")
    assert "{{0, 0}, {0, 1}, {0, 64}" in window


def test_messages_of_the_compiler_go_to_the_statement_of_their_line() -> None:
    stderr = (
        "/a/include/cute/layout.hpp: In instantiation of 'f':\n"
        "/t/x.cpp:4:20:   required from here\n"
        "/a/include/cute/layout.hpp:780:3: error: static assertion failed: No rank\n"
        "/a/include/cute/layout.hpp:781:3: error: a second one\n"
        "/t/x.cpp:7:1: error: 'foo' was not declared\n"
    )
    found = first_messages(stderr, "/t/x.cpp")
    assert found[4] == "static assertion failed: No rank @ cute/layout.hpp:780"
    assert found[7].startswith("'foo' was not declared @ ")
    assert len(found) == 2
    assert HEAD.splitlines()[-1].startswith("int main()")
    assert len(HEAD.splitlines()) + 1 == FIRST_LINE


def test_the_output_of_a_statement_is_taken_apart() -> None:
    output = "\0010\002text\005\0013\002\003a\0041\n2\003b\004\006x > 0 @ /u/include/cute/a.hpp:9\005"
    found = dict(ENDED.findall(output))
    assert outcome(found["0"]) == Outcome("text")
    assert outcome(found["3"]) == Outcome("", {"a": "1\n2", "b": ""}, assertion="x > 0 @ cute/a.hpp:9")
    assert in_headers("a / b @ cute/x.hpp:1") == "a / b @ cute/x.hpp:1"


def test_offsets_of_narrow_types_are_read_from_the_pointer() -> None:
    assert atoms.offset("6144", 16) == 6144
    assert atoms.offset("smem_ptr[4b](subptr[4b]((nil).0))", 4) == 0
    assert atoms.offset("smem_ptr[4b](subptr[4b](0x20.4))", 4) == 65


class Spoken:
    """In place of a compiler: gives each statement the outcome that it is told."""

    def __init__(self, outcomes: dict[str, Outcome]) -> None:
        self.outcomes = outcomes

    def run(self, name: str, statements: Sequence[str]) -> list[Outcome]:
        return [self.outcomes[statement] for statement in statements]


ALGEBRA = algebra.FAMILIES[0]


def spoken(family: Family, stored: Sequence[Row], outcomes: dict[str, Outcome]) -> list[Row]:
    return again(family, stored, Spoken(outcomes))  # type: ignore[arg-type]


def test_a_row_is_made_from_the_outcome_and_not_from_the_stored_row() -> None:
    stored = [
        {"expr": "size(L(4))", "op": "size", "status": "ok", "text": "_4"},
        {"expr": "size(L(5))", "op": "size", "status": "ok", "text": "_5"},
        {"expr": "complement(L(4,1),2)", "op": "complement", "status": "nocompile", "error": "Rule"},
    ]
    first, second, third = (ALGEBRA.statements(row)["text"] for row in stored)
    assert first == "print(size(make_layout(Int<4>{})));"
    outcomes = {
        first: Outcome("_4"),
        second: Outcome(compiler="Rule @ cute/layout.hpp:3"),
        third: Outcome("_1"),
    }
    made = spoken(ALGEBRA, stored, outcomes)
    assert made[0] == stored[0]
    assert made[1] == {"expr": "size(L(5))", "op": "size", "status": "nocompile", "error": "Rule"}
    assert made[2] == {"expr": "complement(L(4,1),2)", "op": "complement", "status": "ok", "text": "_1"}
    assert [bool(difference(old, new)) for old, new in zip(stored, made, strict=True)] == [False, True, True]


def test_a_field_that_the_program_does_not_print_is_missing() -> None:
    stored = row_named("multicast_mask_016")
    made = gbasis.GBASIS.again(stored, {"text": Outcome(compiler="no @ cute/a.hpp:1")})
    assert "mask" not in made
    assert difference(stored, made) == "error: stored 'missing', made again {'text': 'no @ cute/a.hpp:1'}"
    del made["error"]
    assert difference(stored, made).startswith("cluster_layout_vmnk: stored {")


def test_another_line_of_a_header_is_not_a_difference() -> None:
    stored = {"reject_message": "x @ cute/atom/a.hpp:780", "name": "a"}
    at_another_line = {"reject_message": "x @ cute/atom/a.hpp:774", "name": "a"}
    assert difference(stored, at_another_line) == ""
    assert moved(stored, at_another_line)
    assert not moved(stored, dict(stored))
    assert difference(stored, stored | {"name": "b"}) == "name: stored 'a', made again 'b'"
    assert difference(stored, stored | {"extra": 1}) == "extra: stored 'missing', made again 1"


def test_the_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    stored: list[Row] = [{"id": "a", "text": "1"}, {"id": "b", "text": "2 @ cute/a.hpp:1"}]
    assert compare("print_cpp", stored, [{"id": "a", "text": "3"}, {"id": "b", "text": "2 @ cute/a.hpp:9"}]) == 1
    assert capsys.readouterr().out == (
        "print_cpp: 1 of 2 rows equal (1 of them but for the line of a header), 1 different\n"
        "  a\n    text: stored '1', made again '3'\n"
    )


def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path), "--out", str(tmp_path), "--every", "2"])
    assert stopped.value.code == 2
    assert "--every leaves rows out" in capsys.readouterr().err
    (tmp_path / "cuda.h").touch()
    assert main([str(tmp_path), "--check", "--cuda", str(tmp_path)]) == 2
    words = f"{tmp_path}: no CUTLASS checkout; cute/layout.hpp is not in it nor in its include/\n"
    assert capsys.readouterr().err == words
    nowhere = tmp_path / "nowhere"
    assert main([str(tmp_path), "--check", "--cuda", str(nowhere)]) == 2
    assert capsys.readouterr().err == f"no cuda.h in {nowhere}; --cuda names the CUDA headers\n"


def test_the_headers_of_cccl_are_found_beside_the_others(tmp_path: Path) -> None:
    (tmp_path / "cuda.h").touch()
    assert cuda_includes([tmp_path]) == [tmp_path]
    (tmp_path / "cccl").mkdir()
    assert cuda_includes([tmp_path]) == [tmp_path, tmp_path / "cccl"]


def test_written_rows_are_the_rows(tmp_path: Path) -> None:
    write(tmp_path / "new", "print_cpp", rows("print_cpp"))
    with lzma.open(tmp_path / "new" / "print_cpp.jsonl.xz", "rt") as lines:
        assert [json.loads(line) for line in lines] == rows("print_cpp")


def test_what_is_not_made_again_is_said() -> None:
    for family in (family for group in FAMILIES.values() for family in group):
        assert not_made(family, rows(family.file))
        inputs = {name for row in rows(family.file) for name in family.inputs(row)}
        assert not inputs & family.copied.keys()
    assert not_made(ALGEBRA, rows("algebra_cpp")) == ["op (a label of the expression)"]


def sample(family: Family) -> list[Row]:
    """A few rows: one of each kind, one that does not compile, one that an assertion ends."""
    stored = rows(family.file)
    if family is gbasis.GBASIS:
        atoms_of = ("2d_tile_gt_256", "2d_gmem_1x1", "mc_row_4", "s_int4_u8", "fprop2d_mc2", "sm100_2sm")
        maps = ("swizzle_map_429", "dtype_map_436", "multicast_mask_102", "coalesce_256_002")
        return [row_named(name) for name in atoms_of + maps]
    if family is atoms.RANDOM:
        return [row for row in stored if "rejected" not in row and row["op"] == "SM90_TMA_LOAD"][:1]
    refused = [row for row in stored if family.refused(row, "text")]
    return stored[:3] + refused[:2]


@pytest.mark.slow
def test_a_few_rows_of_each_family_come_out_again() -> None:
    """With CUTLASS_PATH set to a checkout: translated, compiled, run, and equal to the stored rows."""
    path = os.environ.get("CUTLASS_PATH")
    if not path:
        pytest.skip("CUTLASS_PATH names no CUTLASS checkout")
    if not shutil.which("g++") or not (CUDA / "cuda.h").is_file():
        pytest.skip("g++ or the CUDA headers are not there")
    with compiler(Path(path), cuda_includes([CUDA])) as made:
        for family in (*ALGEBRA_AND_PRINT, gbasis.GBASIS, atoms.RANDOM):
            stored = sample(family)
            result = again(family, stored, made)
            assert [text for old, new in zip(stored, result, strict=True) if (text := difference(old, new))] == []
        broken = dataclasses.replace(ALGEBRA, statements=lambda row: {"text": "print(Int<7>{});"})
        assert difference(rows("algebra_cpp")[0], again(broken, rows("algebra_cpp")[:1], made)[0])


ALGEBRA_AND_PRINT = (ALGEBRA, printing.FAMILIES[0])
