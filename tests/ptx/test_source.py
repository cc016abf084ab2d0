"""Modules as compilers print them: declarations, scopes, labels, operands, lines; and texts that are no module."""

from __future__ import annotations

import contextlib
import time

import pytest

from cute_py.errors import ParseError
from cute_py.ptx.parse import OperandKind
from cute_py.ptx.source import read_body, read_module
from tests.each import each_of

HEAD = ".version 8.7\n.target sm_90a, debug\n.address_size 64\n"
MODULE = (
    HEAD
    + """
// a comment; with { braces
.extern .func (.param .b32 result) vprintf (.param .b64 f, .param .b64 a) ;
.global .align 4 .b8 table[2][3] = {{1, 2, 3}, {0x4, -1, 6}};
.visible .const .f32 pi = 0f40490FDB;
.global .u64 link = generic(table)+4;
.extern .shared .align 1024 .b8 dynamic[];
.func (.param .b32 out) f (.param .b32 x, .param .align 8 .b8 s[12])
{
  .reg .b32 %r<3>;
  st.param.b32 [out], %r1; ret;
}
.visible .entry k(
  .param .align 64 .b8 map[128],
  .param .u64 .ptr .global .align 16 p
)
.maxntid 128, 1, 1
.reqnctapercluster 2
.explicitcluster
.pragma "nounroll";
{
  .reg .pred %p<4>; .reg .b32 %r<10>, single; .reg .b64 %rd<4>; .reg .v2_is_no_type_here .b32 x;
}
""".replace(" .reg .v2_is_no_type_here .b32 x;", "")
)


def test_declarations() -> None:
    module = read_module(MODULE)
    assert (module.version, module.target, module.entries) == ((8, 7), "sm_90a", ("k",))
    table, link = module.variables["table"], module.variables["link"]
    assert (table.count, table.nbytes, table.initial) == (6, 6, (1, 2, 3, 4, -1, 6))
    assert link.initial == (("table", 4, True),)
    assert module.variables["pi"].initial == ("0f40490FDB",)
    assert (module.variables["dynamic"].count, module.variables["dynamic"].align) == (0, 1024)
    assert not module.functions["vprintf"].defined
    f, k = module.functions["f"], module.functions["k"]
    assert [(one.name, one.nbytes, one.align) for one in f.parameters] == [("x", 4, 4), ("s", 12, 8)]
    assert [(one.name, one.nbytes, one.align) for one in k.parameters] == [("map", 128, 64), ("p", 8, 8)]
    assert (k.triple("maxntid"), k.triple("reqnctapercluster"), k.triple("reqntid")) == ((128, 1, 1), (2, 1, 1), None)
    assert "explicitcluster" in k.directives
    names = ("%r9", "%r10", "single", "%p3", "%rd0")
    assert [k.register_type(name) for name in names] == ["b32", None, "b32", "pred", "b64"]


def test_a_list_of_variables() -> None:
    """Each of them has its own size and initial value, as ptxas reads them."""
    module = read_module(
        ".version 8.7\n.target sm_90\n"
        ".global .align 16 .u32 a[2] = {1, 2}, b[3][4], c = 7;\n.extern .shared .align 128 .b8 d[], e[8];\n"
    )
    found = {name: (one.count, one.align, one.initial) for name, one in module.variables.items()}
    assert found == {
        "a": (2, 16, (1, 2)),
        "b": (12, 16, ()),
        "c": (1, 16, (7,)),
        "d": (0, 128, ()),
        "e": (8, 128, ()),
    }
    assert {one.linkage for one in module.variables.values()} == {"", "extern"}


@pytest.mark.parametrize("name", ["r[4]", "a" * 64_000 + "!", "a[" * 32_000, "a " * 32_000, "[a" * 32_000])
def test_what_is_no_name_of_a_register_or_variable(name: str) -> None:
    """ptxas allocates no array in registers; a long text without a name is refused soon."""
    for declared in (f".reg .b32 {name};", f".global .b32 a, {name}!;"):
        with pytest.raises(ParseError):
            read_module(f".version 8.7\n.target sm_90\n.visible .entry k()\n{{ {declared} ret; }}")


def test_names_in_braces_hide_those_outside() -> None:
    body = read_body("""
    .reg .pred done; .reg .b32 %r<3>;
    { .reg .pred done; .reg .b32 t<2>; LOOP: setp.eq.u32 done, t1, %r1; @!done bra.uni LOOP; }
    { .reg .b64 done; LOOP: mov.b64 done, 1; bra LOOP; }
    @done bra LAST; LAST: ret;""")
    first = body.instructions[0].operands[0].base
    assert first != "done"
    assert body.register_type(first) == "pred"
    assert body.instructions[1].predicate == (first, True)
    assert body.register_type(body.instructions[0].operands[1].base) == "b32"
    third = body.instructions[2].operands[0].base
    assert body.register_type(third) == "b64"
    assert [one.targets for one in body.instructions] == [(), (0,), (), (2,), (5,), ()]
    assert body.instructions[4].predicate == ("done", False)


def test_lines_and_source_lines() -> None:
    body = ".loc 1 17 3 // kernel.py:17\nadd.s32 %r1, %r1,\n 1;\n/* two\nlines */ ret;\n"
    text = f'{HEAD}.file 1 "dir/kernel.py"\n.entry k() {{\n{body}}}'
    module = read_module(text)
    first, second = module.functions["k"].instructions
    assert (first.line, first.loc, first.text) == (7, (1, 17), "add.s32 %r1, %r1, 1")
    assert second.line == 10
    assert module.files == {1: "dir/kernel.py"}


def test_operands() -> None:
    body = read_body("""
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1+64, {%r1, -2}], [tile+0x10];
    shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1; st.shared.v2.b32 [ %r3 + 0 ], {%r1, _};
    call.uni (result), f, (x, y); mov.f64 %fd1, 0d3FF0000000000000; mov.u32 %r1, %ctaid.x;""")
    tensor, address = body.instructions[0].operands
    assert (tensor.kind, tensor.base, tensor.added, tensor.elements) == (OperandKind.TENSOR, "%rd1", 64, ("%r1", "-2"))
    assert (address.base, address.added) == ("tile", 16)
    assert body.instructions[1].operands[0].elements == ("%r1", "%p1")
    assert body.instructions[2].operands[1].elements == ("%r1", "_")
    assert [one.elements for one in body.instructions[3].operands] == [("result",), (), ("x", "y")]
    assert body.instructions[5].operands[1].base == "%ctaid.x"


@each_of(
    ("text", "said"),
    [
        ("", r"not a PTX module: the \.version line is missing"),
        (".version 8.7\n", r"not a PTX module: the \.target line is missing"),
        (HEAD + ".entry k() {", "never closed"),
        (HEAD + "}", "line 4: found a closing brace without an opening one"),
        (HEAD + "{ }", "line 4: found a brace outside a function"),
        (HEAD + ".entry k() { add.u32 %r1, 1 }", r"line 4: 'add\.u32 %r1, 1' has no semicolon"),
        (
            HEAD + ".entry k() { bra NOWHERE; }",
            "line 4: the branch goes to 'NOWHERE', but the function has no such label",
        ),
        (HEAD + ".entry k() { add.u32 %r1, [[; }", "can't be read"),
        (HEAD + ".entry k() { .entry l() { } }", "found a function inside a function"),
        (HEAD + ".entry k() { .reg .b32 %r<99999999>; }", "registers"),
        (HEAD + ".global .b8 x[99999999999];", "elements"),
        (HEAD + ".global .align 3 .b8 x[4];", r"line 4: the alignment is 3; must be a power of 2"),
        (HEAD + "garbage here", "line 4: 'garbage here' is not a directive"),
        (HEAD + ".entry k() " + "{" * 400, "line 4: braces nest deeper than 256"),
        (HEAD + ".section .debug { .b8 1", "line 4: the section has no braces"),
    ],
)
def test_texts_that_are_no_module(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        read_module(text)


def test_the_time_grows_with_the_length_alone() -> None:
    """Ten times the text takes far less than a hundred times the time, whatever it repeats."""
    for part in ("add.u32 %r1, %r1, 1; ", "/* ", '"', "{ } ", "L: ", ". ", "( ", "@%p1 ", "a" * 20):
        seconds = []
        for count in (400, 4000):
            started = time.thread_time()
            with contextlib.suppress(ParseError):
                read_module(HEAD + ".entry k() { " + part * count + " }")
            seconds.append(time.thread_time() - started)
        assert seconds[1] < 60 * seconds[0] + 0.5, part


def test_vectors_of_registers() -> None:
    """`v.y` is a register, `v` alone is all of them, and `rgba` names them too; braces bound the name."""
    text = """.version 8.7
.target sm_90a
.entry k() {
  .reg .f32 %f<4>; .reg .v2 .f32 m; { .reg .v4 .f32 m, n; mov.f32 m.w, n.g; ld.shared.v4.f32 m, [%f1]; }
  max.f32 m.x, m.y, %f1; ret;
}
"""
    kernel = read_module(text).functions["k"]
    inner, load, outer, _ = kernel.instructions
    assert [one.base for one in inner.operands] == ["m$w$1", "n$y$1"]
    assert load.operands[0].elements == ("m$x$1", "m$y$1", "m$z$1", "m$w$1")
    assert [one.base for one in outer.operands] == ["m$x", "m$y", "%f1"]
    assert {kernel.register_type(name) for name in ("m$y", "m$w$1", "n$x$1")} == {"f32"}
    assert kernel.register_type("m$z") is None


def test_a_range_hides_only_its_own_registers() -> None:
    text = """.version 8.7
.target sm_90a
.entry k() { .reg .f32 %f<40>; { .reg .f32 %f<3>; add.f32 %f2, %f3, %f39; } ret; }
"""
    kernel = read_module(text).functions["k"]
    assert [one.base for one in kernel.instructions[0].operands] == ["%f$1$2", "%f3", "%f39"]
