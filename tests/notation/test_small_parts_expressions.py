"""Single symbolic expressions: values and their types, bounds on both sides, and what each refusal says."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import cute_py as cute
from cute_py.errors import CuteError, InvalidValueError
from cute_py.notation.expressions import checked_symbols, read_expression

M, N = sympy.symbols("M N", integer=True, positive=True)
BEYOND = "; must be at most 2**128 in magnitude"
TERMS = "expands to more than 64 terms"


def refusal(text: str) -> str:
    with pytest.raises(InvalidValueError) as caught:
        read_expression(text, {})
    return caught.value.headline


def levels(count: int) -> str:
    return "floor(" * count + "M/3" + ")" * count


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("2+3", 5),
        ("8-3-2-1", 2),
        ("8-(3-2)", 7),
        ("64/2/4", 8),
        ("64/(8/2)", 16),
        ("4/2", 2),
        ("2**-1*4", 2),
        ("7//2", 3),
        ("-7//2", -4),
        ("2//7", 0),
        ("7%4", 3),
        ("4%7", 4),
        ("--5", 5),
        ("+5", 5),
        ("0**0", 1),
        ("0**2", 0),
        ("2**10", 1024),
        ("1**999999", 1),
        ("(-1)**999999", -1),
        ("(1/2)**-3", 8),
        ("2**128", 1 << 128),
        ("-2**128", -(1 << 128)),
        ("2**100*2**28", 1 << 128),
        ("M/M", 1),
        ("M-M", 0),
        ("M*0", 0),
        ("(M+1)-M", 1),
        ("Min(3,4)", 3),
        ("Max(3,4)", 4),
        ("Min(4)", 4),
        ("Mod(7,4)", 3),
        ("Mod(4,7)", 4),
        ("floor(7/2)", 3),
        ("ceiling(7/2)", 4),
        ("Abs(-4)", 4),
    ],
)
def test_numbers_are_plain_integers(text: str, value: int) -> None:
    found = read_expression(text, {})
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("M", M),
        ("+M", M),
        ("-M", -M),
        ("2*M + 1", 2 * M + 1),
        ("M - N - 1", M - N - 1),
        ("M/2", M / 2),
        ("(M+1)/2", (M + 1) / 2),
        ("M/N", M / N),
        ("1/M", 1 / M),
        ("M*N/2/N", M / 2),
        ("M//1", M),
        ("M//2", M // 2),
        ("1//M", 1 // M),
        ("N//M", N // M),
        ("M%4", M % 4),
        ("4%M", 4 % M),
        ("M*(N+1) % 3", M * (N + 1) % 3),
        ("M**64", M**64),
        ("M**-64", M**-64),
        ("M**32*M**32", M**64),
        ("(M+N)**3", (M + N) ** 3),
        ("M*2**128", M * 2**128),
        ("Min(M,4)", sympy.Min(M, 4)),
        ("Min(M,Min(N,4))", sympy.Min(M, N, 4)),
        ("Max(M,Max(N,M),3)", sympy.Max(M, N, 3)),
        ("Max(M,Min(N,4))", sympy.Max(M, sympy.Min(N, 4))),
        ("Mod(M,4)**2", sympy.Mod(M, 4) ** 2),
        ("Mod(M,N)", sympy.Mod(M, N)),
        ("Mod(N,M)", sympy.Mod(N, M)),
        ("floor(M/2)", sympy.floor(M / 2)),
        ("ceiling(M/2)", sympy.ceiling(M / 2)),
        ("Abs(-M)", M),
        ("oo", sympy.Symbol("oo", integer=True, positive=True)),
    ],
)
def test_expressions(text: str, value: object) -> None:
    assert read_expression(text, {}) == value
    assert cute.parse(text) == value


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("1/2", "'1/2' is not an integer"),
        ("2**-1", "'2**-1' is not an integer"),
        ("(1/2)**128", "'(1/2)**128' is not an integer"),
        ("M%0", "division by zero"),
        ("M//0", "division by zero"),
        ("M%(N-N)", "division by zero"),
        ("M/0", "division by zero"),
        ("M/N/(N-N)", "division by zero"),
        ("0**-1", "division by zero"),
        ("(M-M)**-2", "division by zero"),
        ("Mod(M,0)", "'Mod(M,0)' is not a number (Modulo by zero)"),
        ("2**129", f"the number is {1 << 129}{BEYOND}"),
        ("2**130", "the power exceeds 2**128"),
        ("2**-130", "the power exceeds 2**128"),
        ("(1/2)**129", f"the number is {1 << 129}{BEYOND}"),
        ("(1/2)**130", "the power exceeds 2**128"),
        ("-2**128-1", f"the number is {-(1 << 128) - 1}{BEYOND}"),
        ("M+2**128+1", f"the number is {(1 << 128) + 1}{BEYOND}"),
        ("M*2**128*2", f"the number is {1 << 129}{BEYOND}"),
        ("M/2**128/2", f"the number is {1 << 129}{BEYOND}"),
        ("M**65", "the exponent is 65; must be at most 64"),
        ("M**-65", "the exponent is -65; must be at most 64"),
        ("(3*M)**200", "the exponent is 200; must be at most 64"),
        ("M**32*M**33", "the exponent is 65; must be at most 64"),
        ("N*M**32*M**33", "the exponent is 65; must be at most 64"),
        ("M**N", "the exponent is not an integer"),
        ("2**N", "the exponent is not an integer"),
        ("4**(1/2)", "the exponent is not an integer"),
        ("Min()", "Min needs at least one operand"),
        ("floor()", "floor needs at least one operand"),
        ("Min(M,N,key=3)", "Min takes no keyword arguments"),
        ("floor(M,evaluate=False)", "floor takes no keyword arguments"),
        ("Mod(M)", "'Mod(M)' is not a number (Mod takes exactly 2 arguments (1 given))"),
        ("~M", "'~M' is not a number"),
        ("not M", "'not M' is not a number"),
        ("M<N", "'M < N' is not a number"),
        ("f(M)", "'f(M)' is not a number"),
        ("M.f(M)", "'M.f(M)' is not a number"),
        ("_x", "'_x' is not a number"),
        ("x[0]", "'x[0]' is not a number"),
        ("'a'", "\"'a'\" is not a number"),
        ("1.5", "'1.5' is not a number"),
        ("True", "'True' is not a number"),
        ("1if M else 2", "'1 if M else 2' is not a number"),
        ("M@N", "'M @ N' is not a number"),
        ("M<<2", "'M << 2' is not a number"),
        ("M N", "'M N' is not a number"),
        ("", "'' is not a number"),
        ("(", "'(' is not a number"),
        ("x" * 50 + "!", f"'{'x' * 40}' is not a number"),
        ("*" * 41, f"'{'*' * 40}' is not a number"),
        ("f(" + "x" * 50 + ")", f"'f({'x' * 38}' is not a number"),
    ],
)
def test_refusals(text: str, headline: str) -> None:
    assert refusal(text) == headline


def test_lengths_and_levels_have_bounds() -> None:
    assert read_expression("M" + " " * 1999, {}) == M
    assert refusal("M" + " " * 2000) == "the expression has 2001 characters; must have at most 2000"
    assert read_expression("M" + "+1" * 999, {}) == M + 999
    assert read_expression(levels(32), {}) == sympy.floor(M / 3)
    assert refusal(levels(33)) == "floor is nested in more than 32 levels of //, % and functions"
    assert refusal(levels(32) + "//2") == "// is nested in more than 32 levels of //, % and functions"
    assert refusal(f"Min(1,{levels(32)})") == "Min is nested in more than 32 levels of //, % and functions"
    assert refusal(f"Min(1*2+{levels(32)},4)") == "Min is nested in more than 32 levels of //, % and functions"
    assert refusal(f"Min(1*({levels(32)})**2,4)") == "Min is nested in more than 32 levels of //, % and functions"


def test_bases_of_powers_have_64_terms() -> None:
    def squares(count: int) -> str:
        return "(" * count + "M" + "**2-3)" * count

    assert read_expression(squares(4), {}) == ((((M**2 - 3) ** 2 - 3) ** 2 - 3) ** 2) - 3
    for count in (6, 12, 60):
        assert refusal(squares(count)) == "the base of a power expands to more than 64 terms"
    assert refusal("((a+b)**64)**2") == "the base of a power expands to more than 64 terms"
    assert refusal("((a+b)**64)**-2") == "the base of a power expands to more than 64 terms"
    for exponent in (-1, 0, 1):
        assert read_expression(f"((a+b)**64)**{exponent}", {}) == read_expression("(a+b)**64", {}) ** exponent
    assert isinstance(read_expression("((a+b)**62+c)**2", {}), sympy.Pow)


@pytest.mark.parametrize(
    ("terms", "read"),
    [
        ("+".join(f"a{i}" for i in range(65)), False),
        ("(a+b+c+d+e+f+g+h)*(i+j+k+l+m+n+o+p)", True),
        ("(a+b+c+d+e+f+g+h+q)*(i+j+k+l+m+n+o+p)", False),
        ("(a+b)**63", True),
        ("(a+b)**64", False),
        ("(a*b)**64", True),
        ("a**64", True),
        ("(a+b+c)**9", True),
        ("(a+b+c)**10", False),
        ("(a+b)/(c+d)", True),
    ],
)
def test_operands_of_functions_have_64_terms(terms: str, read: bool) -> None:
    for text, name in ((f"floor(({terms})/2)", "floor"), (f"Mod({terms}, 7)", "Mod"), (f"Min(3, {terms})", "Min")):
        if read:
            assert isinstance(read_expression(text, {}), sympy.Expr | int)
        else:
            assert refusal(text) == f"an operand of {name} {TERMS}"
    if not read:
        assert refusal(f"7 % ({terms})") == f"an operand of % {TERMS}"
        assert refusal(f"({terms}) // 7") == f"an operand of // {TERMS}"
        assert refusal(f"({terms}) % 7") == f"an operand of % {TERMS}"


def test_terms_are_bounded_inside_functions_of_functions() -> None:
    eight = "+".join(f"a{i}" for i in range(8))
    nine = "+".join(f"b{i}" for i in range(9))
    assert refusal(f"floor(({eight})/2)*floor(({nine})/2) % 7") == f"an operand of % {TERMS}"


def test_many_or_deep_terms_of_min_are_taken_as_written() -> None:
    def written(count: int) -> str:
        return "Min(" + ",".join(f"M+{i}" for i in range(count)) + ")"

    assert read_expression(written(8), {}) == M
    nine: Any = read_expression(written(9), {})
    assert isinstance(nine, sympy.Min)
    assert set(nine.args) == {M + i for i in range(9)}
    twice = read_expression("Max(" + ",".join(f"M+{i}" for i in (*range(8), *range(8))) + ")", {})
    assert twice == M + 7
    joined: Any = read_expression(f"Min({written(8)},{written(8).replace('M+', 'N+')})", {})
    assert joined == sympy.Min(M, N)
    within: Any = read_expression(f"Min({written(9)},M+9)", {})
    assert set(within.args) == {M + i for i in range(10)}
    numbers: Any = read_expression("Min(" + ",".join(f"M+{i}" for i in range(9)) + ",5,3,4)", {})
    assert set(numbers.args) == {3, *(M + i for i in range(9))}
    largest: Any = read_expression("Max(" + ",".join(f"M+{i}" for i in range(9)) + ",5,3,4)", {})
    assert isinstance(largest, sympy.Max)
    assert set(largest.args) == {5, *(M + i for i in range(9))}
    four, five = levels(4), levels(5)
    assert read_expression(f"Min({four},{four}+1)", {}) == sympy.floor(M / 3)
    deep: Any = read_expression(f"Min({five},{five}+1)", {})
    assert set(deep.args) == {sympy.floor(M / 3), sympy.floor(M / 3) + 1}
    assert read_expression(f"Min({five},{five}+1) % 2 + Max({five},0)", {}) is not None


def test_symbols_have_values() -> None:
    x = sympy.Symbol("x", integer=True)
    assert checked_symbols({}) == {}
    assert checked_symbols({"M": 3, "N": x}) == {"M": sympy.Integer(3), "N": x}
    assert isinstance(checked_symbols({"M": 3})["M"], sympy.Integer)
    assert isinstance(checked_symbols({"M": cute.Int(3)})["M"], sympy.Integer)
    known = checked_symbols({"M": 4, "N": x})
    assert read_expression("M + 1", known) == 5
    assert read_expression("N // 2", known) == x // 2
    assert read_expression("K + N", known) == sympy.Symbol("K", integer=True, positive=True) + x
    wrong: Any
    for wrong, headline in (
        ([("M", 3)], "symbols must be a Mapping, got list [('M', 3)]"),
        ({3: 3}, "the name of a symbol must be a str, got int 3"),
        ({"M": True}, "symbols['M'] must be an integer, got bool True"),
        ({"N": "3"}, "symbols['N'] must be an integer, got str '3'"),
        ({"M": sympy.Rational(1, 2)}, "expected an integer, got 1/2"),
        ({"M": sympy.Symbol("x", integer=False)}, "expected an integer, got x"),
        ({"M": 1 << 129}, f"symbols['M'] = {1 << 129}{BEYOND}"),
    ):
        with pytest.raises(CuteError) as caught:
            checked_symbols(wrong)
        assert caught.value.headline == headline
