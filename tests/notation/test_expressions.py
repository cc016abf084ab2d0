"""Expressions at their bounds: the last one that is read, and the first that is refused, with what it says."""

from __future__ import annotations

import pytest
import sympy

import cute_py as cute
from cute_py.errors import ParseError

N, M = sympy.symbols("N M", integer=True, positive=True)
EIGHT, NINE = ("(" + "+".join("abcdefghi"[:n]) + ")" for n in (8, 9))
OTHERS = "(" + "+".join("pqrstuvw") + ")"
TERMS = "an operand of % expands to more than 64 terms"
LEVELS = "levels of //, % and functions"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f"{EIGHT}*{OTHERS} % 7", ""),
        (f"{NINE}*{OTHERS} % 7", TERMS),
        ("(a+b)**63 % 7", ""),
        ("(a+b)**64 % 7", TERMS),
        ("N" + " % 7" * 32, ""),
        ("N" + " % 7" * 33, LEVELS),
        ("7" + " % N" * 32, ""),
        ("7" + " % N" * 33, LEVELS),
        ("2**129", "must be at most 2**128 in magnitude"),
        ("2**130", "the power exceeds 2**128"),
        ("0**-1", "division by zero"),
    ],
)
def test_the_last_that_is_read(text: str, refused: str) -> None:
    if not refused:
        cute.parse(text)
        return
    with pytest.raises(ParseError) as caught:
        cute.parse(text)
    assert refused in caught.value.headline


def test_powers() -> None:
    assert cute.parse("N*4*2**-1") == 2 * N
    assert cute.parse("(N*M)**3") == (N * M) ** 3
    assert cute.parse("1**1000000") == 1


def test_an_error_shows_30_characters_on_both_sides() -> None:
    text = "(" + ",".join(str(n % 10) for n in range(60)) + ",?," + ",".join(str(n % 10) for n in range(60)) + ")"
    with pytest.raises(ParseError) as caught:
        cute.parse(text)
    at = caught.value.position
    assert at == text.index("?")
    assert caught.value.facts["text"] == f"...{text[at - 30 : at + 30]}..."
    assert caught.value.facts["here"] == " " * 33 + "^"


def test_a_combination_of_64_terms() -> None:
    terms = "+".join(f"1@{i}" for i in range(64))
    assert cute.parse(terms) == sum((cute.E(i) for i in range(1, 64)), cute.E(0))
    with pytest.raises(ParseError, match="the linear combination has more than 64 terms"):
        cute.parse(f"{terms}+1@64")


@pytest.mark.parametrize("text", ["32_4_4", "1_0", "(1_0,2):(1,10)"])
def test_an_underscore_between_digits_is_no_number(text: str) -> None:
    with pytest.raises(ParseError):
        cute.parse(text)
