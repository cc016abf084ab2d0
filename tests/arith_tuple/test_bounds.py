"""Texts are read, and printed, in time and memory of their length; what would take more is refused with its bound."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import pytest
import sympy

import cute_py as cute
from cute_py import E, Int, Layout
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from tests.each import each_of
from tests.pace import within
from tests.refusals import Refusal, assert_refused, refusals

N, M = sympy.symbols("N M", integer=True, positive=True)
TV = Layout((4, 2), (E(1), E(0)))
HUGE = "9" * 5000


def counted(*shape: int) -> Any:
    """An implicit tensor of this shape."""
    return cute.make_tensor(cute.counting_iterator(0), Layout(shape))


GROWING: dict[str, Callable[[int], str]] = {
    "blanks behind a number": lambda n: "4" + " " * n,
    "blanks behind a symbol": lambda n: "N" + " " * n,
    "blanks within a leaf": lambda n: "N" + " " * n + "x",
    "blanks within brackets": lambda n: "(" * 60 + " " * n + "4" + " " * n + ")" * 60,
    "blanks before a bracket": lambda n: "E<" + " " * n,
    "blanks before a basis": lambda n: "2" + " " * n + "*" + " " * n + "E<1>",
    "blanks before an o": lambda n: "4:1" + " " * n + "o" + " " * n,
    "newlines": lambda n: "4" + "\n" * n + "x",
    "modes": lambda n: "(" + ",".join(["4"] * n) + "):(" + ",".join(["1"] * n) + ")",
    "sizes with blanks": lambda n: "(" + ",".join([" 4 "] * n) + ")",
    "digits": lambda n: "9" * n,
    "modes of a basis": lambda n: "1" + "@0" * n,
    "modes of E": lambda n: "E<" + "0, " * n + "x",
    "compositions": lambda n: " o ".join(["4:1"] * n),
    "an address": lambda n: "ptr[16b](" + "x" * n + ")",
    "brackets": lambda n: "(" * n,
    "tensors": lambda n: "tensor<" * n,
}


@pytest.mark.parametrize("name", GROWING)
def test_the_time_grows_with_the_length(name: str) -> None:
    """Four times the text takes about four times as long; what is quadratic would take sixteen times."""

    def seconds(n: int) -> float:
        text, best = GROWING[name](n), float("inf")
        for _ in range(2):
            begin = time.process_time()
            try:
                cute.parse(text)
            except ParseError as error:
                assert len(str(error)) < 1000
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(6_000) < 10 * seconds(1_500) + 0.05


LONG: dict[str, str] = {
    "((((9)**64)**64)**64)**64": "the power exceeds 2**128",
    "(N**64)**64": "the exponent is 4096; must be at most 64",
    "((2*N)**8)**64": "2**128",
    "9**64*9**64*9**64": "the power exceeds 2**128",
    f"{2**127}*4": "must be at most 2**128 in magnitude",
    f"{'9' * 60}*N": "must be at most 2**128",
    "(a+b+c+d)**64 % (a+b+e)**60": "an operand of % expands to more than 64 terms",
    "Mod((a+b+c+d+e+f)**30,(a+b+c)**31)": "an operand of Mod expands to more than 64 terms",
    "%".join(f"a{i}" for i in range(400)): "levels of //, % and functions",
    "Min(" * 60 + "N" + ",M)//3+1" * 60: "levels of //, % and functions",
    "N" * 3000: "the expression has 3000 characters; must have at most 2000",
    "N % 0": "division by zero",
    "Min()": "Min needs at least one operand",
    "0**-1": "division by zero",
}


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:30])
def test_expressions_are_bounded_by_their_result(text: str) -> None:
    with within(200), pytest.raises(ParseError) as caught:
        cute.parse(text)
    assert LONG[text] in caught.value.headline


def test_what_is_within_the_bounds() -> None:
    with within(400):
        names = [f"a{i}" for i in range(64)]
        many = cute.parse(f"Min({','.join(names)})")
        assert many == sympy.Min(*[sympy.Symbol(n, integer=True, positive=True) for n in names], evaluate=False)
        assert cute.parse("Min(N, N + 1)") == N
        assert cute.parse(f"Min({','.join(names)}, 7, 3, 3)").args.count(sympy.Integer(3)) == 1
        assert cute.parse("2**100 // 2**98") == 4
        assert cute.parse("N**64") == N**64
        assert cute.parse("(N**8)**8") == N**64
        assert cute.parse("(N + 1)**30 % 7") == (N + 1) ** 30 % 7
        assert cute.parse("+".join(["N"] * 500)) == 500 * N
        step = sympy.Max(1, 64 // (N * M)) * sympy.Min(N, M)
        assert cute.parse(str(step)) == step


@pytest.mark.parametrize("text", ["(M + 1)*(N + 1)*2", "2*(M + 1)*N", "-M - N - 1", "M/N*8", "2*N*(M + 1)/(M - 1)"])
def test_sums_and_products_are_what_sympy_prints(text: str) -> None:
    value = cute.parse(text)
    assert cute.parse(str(value)) == value
    assert (value - sympy.sympify(text, {"M": M, "N": N})).simplify() == 0


@each_of(
    "form",
    [
        "{}", "-{}", "_{}", "Int<{}>{{}}", "4:{}", "_1@{}", "1@0@{}", "{}@1", "E<0,{}>", "{}*E<1>", "_{}/_3", "_1/_{}",
        "R<1,{}>", "Sw<{},4,3>", "Sw<3,4,{}>", "SW_{}_4_3", "gmem_ptr[{}b](0x1000)", "gmem_ptr[16b](0x{})",
        "smem_ptr[{}b](unset)", "smem_ptr[16b](unset)+{}", "tmem_[32b](0x{}.0020)", "tmem_[{}b](0x0010.0020)",
        "counting_iter({})", "counting_iter({}.5)", "ArithTuple(0,{})", "ptr<i{}, gmem>",
        "ptr<f16, smem, align<16>, S<3,4,{}>>", "N*{}", "N//{}", "2**{}", "Sw<3,4,3> o {} o 4:1", "?{}", "{}.5",
    ],
)  # fmt: skip
def test_numbers_of_any_length(form: str) -> None:
    """No more digits than a line, in the error of any number that is too large."""
    for digits in (HUGE, "9" * 60, str(2**128 + 1)):
        with pytest.raises(ParseError) as caught:
            cute.parse(form.format(digits))
        assert len(str(caught.value)) < 700


def test_the_largest_integers() -> None:
    assert cute.parse(str(2**128)) == 2**128
    assert cute.parse(f"1:-{2**128}").stride == -(2**128)
    assert cute.parse("0" * 9000 + "7") == 7
    with pytest.raises(
        ParseError, match=r"the integer is 9{17} \.\.\. 9{17} \(5000 characters\); must be at most 2\*\*128"
    ):
        cute.parse(f"(4,{HUGE})")
    with pytest.raises(ParseError) as caught:
        cute.parse(f"(4,{HUGE})")
    assert caught.value.position == 3


@each_of(
    "text", ["\u0663:\u0661", "\uff13", "_\u0663", "1@\u0663", "E<\u0663>", "Sw<\u0663,4,3>", "ptr[\u0661\u0666b](0x0)",
             "ptr[16b](0x\u0663)", "ptr[16b](1_0)", "counting_iter(\u0663)", "counting_iter(3.\u0663)", "_1/_\u0663",
             "smem_ptr[16b](unset)+\u0663", "tmem_[\u0663\u0662b](0x0.0)", "ptr<i\u0668, gmem>", "N*\u0663"],
)  # fmt: skip
def test_digits_are_those_of_ascii(text: str) -> None:
    with pytest.raises(ParseError):
        cute.parse(text)


REFUSED: list[Refusal] = [
    ("nested tensors", lambda: cute.parse("tensor<" * 1500), ParseError, "brackets are nested deeper than 64 levels"),
    ("compositions", lambda: cute.parse("4:1 o 0 o " * 99 + "4:1"), ParseError, "nested deeper than 64 levels"),
    ("mode of a basis", lambda: cute.parse("_1@9999999"), ParseError, "modes is 9999999; must be 0 to 4095"),
    ("mode of E", lambda: E(4096), InvalidValueError, "modes is 4096; must be 0 to 4095"),
    ("modes of E", lambda: E(*[0] * 65), InvalidValueError, "a basis element has 65 nested modes; must have at most"),
    ("explained mode", lambda: cute.explain("_1@1000000"), InvalidTypeError, "must be 0 to 4095"),
    ("column of tensor memory", lambda: cute.parse("tmem_[32b](0x0.10000)"), ParseError, "does not fit into 16 bits"),
    ("bit in whole bytes", lambda: cute.parse("gmem_ptr[16b](0x10.3)"), ParseError, "must be 0 to 0"),
    ("names of arguments", lambda: cute.parse("Min(N, evaluate=1)"), ParseError, "takes no keyword arguments"),
    ("symbols", lambda: cute.parse("N", symbols=3), InvalidTypeError, "symbols must be a Mapping"),  # type: ignore[arg-type]
    ("name of a symbol", lambda: cute.parse("N", symbols={1: N}), InvalidTypeError, "the name of a symbol"),  # type: ignore[dict-item]
    ("value of a symbol", lambda: cute.parse("N", symbols={"N": 1.5}), InvalidTypeError, "symbols['N'] must be an int"),
    ("fraction", lambda: cute.parse("N", symbols={"N": sympy.Rational(1, 2)}), InvalidTypeError, "expected an"),
    ("type", lambda: cute.parse("4:1", dtype=object()), InvalidTypeError, "not an element type"),
    ("tensor", lambda: cute.format_tensor(counted(10**4, 10**4)), InvalidValueError,
     "print_tensor would print 10000 x 10000 cells; must be at most 262144"),
    ("tensor of one mode", lambda: cute.print_tensor(counted(10**8)), InvalidValueError, 'omits the middle'),
    ("slabs", lambda: cute.format_tensor(counted(2, 2, 10**6, 100)), InvalidValueError, "2 x 2 x 1000000 x 100"),
    ("empty slabs", lambda: cute.format_tensor(counted(2, 0, 10**8)), InvalidValueError, "2 x 0 x 100000000"),
    ("on a stream", lambda: cute.format_tensor(counted(10**8), style="ostream"), InvalidValueError, "at most 262144"),
    ("coordinates", lambda: cute.print_tensor(cute.make_identity_tensor((513, 512))), InvalidValueError, "most 262144"),
    ("empty rows", lambda: cute.format_layout(Layout((10**9, 0))), InvalidValueError, "1000000000 x 0 cells"),
    ("empty columns", lambda: cute.format_latex(Layout((0, 10**9))), InvalidValueError, "print one tile:"),
    ("empty pairs", lambda: cute.format_latex_tv(Layout((0, 10**9), (E(0), E(1))), (2, 2)), InvalidValueError, "most"),
    ("symbolic strides", lambda: cute.format_latex(Layout(4, N)), InvalidTypeError, "be a known number, got N"),
    ("symbolic table", lambda: cute.format_layout(Layout((4, 2), (N, 1))), InvalidTypeError, "an offset must be"),
    ("symbolic elements", lambda: cute.format_tensor(cute.make_tensor(cute.counting_iterator(0), Layout(4, N))),
     InvalidTypeError, "an element must be a known number, got N"),
    ("symbolic pairs", lambda: cute.format_latex_tv(Layout((4, 2), (N * E(1), E(0))), (2, 4)),
     InvalidTypeError, "got N"),
    ("style", lambda: cute.format_tensor(counted(2), style=1), InvalidValueError, "unknown style 1"),  # type: ignore[arg-type]
    ("header", lambda: cute.format_tensor(counted(2), header="x"), InvalidTypeError, "header must be a bool"),  # type: ignore[arg-type]
    ("color", lambda: cute.format_latex(Layout(4), 3), InvalidTypeError, "color must be a function"),  # type: ignore[arg-type]
    ("color of pairs", lambda: cute.format_latex_tv(TV, (2, 4), 3), InvalidTypeError, "color must be a function"),  # type: ignore[arg-type]
    ("text", lambda: cute.text(nested_list(100_000)), InvalidTypeError, "list <list nested too deep to print> can't"),
]  # fmt: skip


def nested_list(depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = [tree]
    return tree


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


@pytest.mark.parametrize("file", ["x", 0, b"", [], object(), 3])
def test_what_is_no_file(file: Any) -> None:
    calls: tuple[Callable[[], None], ...] = (
        lambda: cute.print_tensor(counted(2), file),
        lambda: cute.print_layout(Layout((2, 2)), file),
        lambda: cute.print_latex(Layout(2), file),
        lambda: cute.print_latex_tv(TV, (2, 4), file),
    )
    for call in calls:
        assert_refused(call, InvalidTypeError, "a file with a method write")


def test_files_and_large_tables() -> None:
    out = io.StringIO()
    cute.print_tensor(counted(2, 3), out)
    cute.print_layout(Layout((2, 3)), out)
    assert out.getvalue().startswith("counting_iter(0) o (2,3):(_1,2):\n    0    2    4\n")
    assert cute.format_tensor(counted(1, 1, 1, 2**10), header=False).count("=") == 5 * (2**10 - 1)
    with pytest.raises(InvalidValueError):
        cute.format_tensor(counted(1, 1, 1, 2**18 + 1))
    assert "omitted" in cute.format_tensor(counted(10**9), style="python")
    assert cute.format_tensor(counted(1, 1, 1, 1, 10**9)).count("\n") == 1  # a header only, as in C++


@pytest.mark.slow
def test_the_largest_table_of_slabs() -> None:
    assert cute.format_tensor(counted(1, 1, 1, 2**18), header=False).count("=") == 5 * (2**18 - 1)


def test_lists_of_modes_are_explained_in_time_of_their_length() -> None:
    def seconds(n: int) -> float:
        things = (
            Layout((2,) * n, tuple(range(n))),
            cute.make_identity_layout((2,) * n),
            cute.make_identity_tensor((2,) * n),
        )
        begin = time.process_time()
        for thing in things:
            cute.explain(thing)
        return time.process_time() - begin

    seconds(10)
    assert min(seconds(1200) for _ in range(2)) < 10 * seconds(300) + 0.2
    words = cute.explain(Layout((2,) * 40, (3,) * 40))
    assert "... and 8 more modes" in words
    assert "omitted: a coordinate has more than 32 numbers" in words
    assert "more modes" not in cute.explain(Layout((2,) * 32, (3,) * 32))
    assert "one step in mode 31" in cute.explain(Layout((2,) * 32, (3,) * 32))


def test_the_longest_basis() -> None:
    assert str(E(*[4095] * 64)).count("@4095") == 64
    assert cute.parse("_1@4095") == E(4095)
    assert len(cute.explain(E(4095))) < 2000
    assert len(E(4095).as_arith_tuple()) == 4096
    assert str(cute.ArithTuple(Int(1))) == "(_1)"
