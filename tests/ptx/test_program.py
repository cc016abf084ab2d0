"""Modules as `check` sees them: the one reader, tolerant and with registers named after their types."""

from __future__ import annotations

import pytest

from cute_py.errors import ParseError
from cute_py.ptx import check_program
from cute_py.ptx.program import parse_program
from cute_py.ptx.source import read_module
from tests.each import each_of

HEAD = ".version 8.7\n.target sm_90a\n"


def statements(body: str) -> list[tuple[str, str, tuple[str, ...]]]:
    [function] = parse_program(f"{HEAD}.entry k() {{ {body} }}").functions
    return [(one.predicate, one.opcode, one.operands) for one in function.statements()]


def test_registers_say_their_width() -> None:
    body = ".reg .b64 a; .reg .b32 %r<2>; { .reg .pred p; .reg .b32 t1<3>; @!p mov.b32 t12, %r1; } mov.b64 a, 0; ret;"
    assert statements(body) == [
        ("@!%p_p_1", "mov.b32", ("%r_t1_1_2", "%r1")),
        ("", "mov.b64", ("%rd_a_0", "0")),
        ("", "ret", ()),
    ]


def test_the_machine_finds_registers_whose_prefix_ends_with_a_digit() -> None:
    kernel = read_module(f"{HEAD}.entry k() {{ .reg .b32 t1<3>; mov.b32 t12, 0; ret; }}").functions["k"]
    assert [kernel.register_type(name) for name in ("t12", "t13", "t1")] == ["b32", None, None]


@pytest.mark.parametrize(
    "body",
    [
        ".unheard .of this; ret;",
        ".reg .f77 %x<2>; ret;",
        ".global .texref picture; ret;",
        "add.u32 %r1, [[; ret;",
        "+nothing; ret;",
    ],
)
def test_what_the_machine_refuses_is_passed_over(body: str) -> None:
    with pytest.raises(ParseError, match="line 3: "):
        read_module(f"{HEAD}.entry k() {{ {body} }}")
    assert statements(body)[-1] == ("", "ret", ())


@each_of("read", [read_module, parse_program])
@each_of(
    ("text", "said"),
    [
        (f"{HEAD}.entry k() {{ ret }} .entry l() {{ ret; }}", "line 3: 'ret' has no semicolon"),
        (f"{HEAD}.entry k() {{ bra NOWHERE; }}", "line 3: the branch goes to 'NOWHERE'"),
        (f"{HEAD}.entry k() {{", "never closed"),
        ("nothing of PTX", "not a PTX module: the .version line is missing"),
        (".version 9.0\nret;", "not a PTX module: the .target line is missing"),
    ],
)
def test_both_refuse_with_the_same_words(read: object, text: str, said: str) -> None:
    assert callable(read)
    with pytest.raises(ParseError) as caught:
        read(text)
    assert said in str(caught.value)


def test_labels_of_several_braces_begin_blocks() -> None:
    body = "{ AGAIN: bar.sync 0; bra AGAIN; } { AGAIN: bar.sync 0; membar.gl; UNUSED: bra AGAIN; } ret;"
    [function] = parse_program(f"{HEAD}.entry k() {{ {body} }}").functions
    blocks = [(len(block.statements), block.after) for block in function.blocks]
    assert blocks == [(2, [0]), (2, [2]), (1, [1]), (1, [])]
    assert set(read_module(f"{HEAD}.entry k() {{ {body} }}").functions["k"].labels) == {"AGAIN", "AGAIN$2", "UNUSED"}


def test_a_variable_is_aligned_to_its_elements() -> None:
    """PTX ISA 9.0, .align: without it a variable is aligned to the size of its elements."""
    declared = ".shared .b64 bar;\n.shared .align 128 .b8 tile[256];\n.shared .b8 rest[16];"
    [function] = parse_program(f"{HEAD}{declared}\n.entry k() {{ ret; }}").functions
    assert dict(function.alignments) == {"bar": 8, "tile": 128, "rest": 1}
    report = check_program(
        f"{HEAD}.entry k() {{ .shared .b64 bar[2]; mbarrier.init.shared::cta.b64 [bar+4], 1; ret; }}"
    )
    assert [one.rule for one in report.errors] == ["alignment"]


def test_parameters_of_long_names() -> None:
    """The names that compilers make of C++ templates have hundreds of characters."""
    name = "_Z" + "Layout" * 200
    program = parse_program(f"{HEAD}.entry {name}(.param .align 64 .b8 {name}_param_0[128], .param .u64 p) {{ ret; }}")
    assert program.functions[0].parameters == (f"{name}_param_0", "p")
    assert set(program.functions[0].symbols.items()) == {(f"{name}_param_0", "param"), ("p", "param")}
