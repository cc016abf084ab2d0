"""Operand numbers and constraint letters of inline assembly."""

from __future__ import annotations

import re

import pytest

from cute_py.errors import EmissionError, InvalidValueError
from cute_py.ptx.check import examine
from cute_py.ptx.inline_asm import (
    ch_opnum,
    inline_asm,
    mcast_opnum,
)
from tests.each import each_of


@each_of("rank", range(1, 6))
@each_of("multicast", (False, True))
@each_of("hint", (False, True))
@each_of("mode", ("tile", "im2col", "im2col::w"))
def test_numbers_of_a_load(rank: int, multicast: bool, hint: bool, mode: str) -> None:
    if mode != "tile" and rank < 3:
        return
    statement = inline_asm("load", dim=rank, mode=mode, multicast=multicast, cache_hint=hint)
    count = {"tile": 0, "im2col": rank - 2, "im2col::w": 2}[mode]
    letters = ["r", "l", "r", *"r" * rank, *"h" * count, *"h" * multicast, *"l" * hint]
    assert list(statement.constraints) == letters
    assert "[%1, {%3" in statement.template
    tail = statement.template.rstrip(";").split(", ")
    if hint:
        assert tail[-1] == f"%{ch_opnum(rank, count, multicast)}"
    if multicast:
        assert tail[-1 - hint] == f"%{mcast_opnum(rank, count)}"
    assert [int(n) for n in sorted(set(re.findall(r"%(\d+)", statement.template)), key=int)] == list(
        range(len(letters))
    )


@each_of("rank", range(1, 6))
@each_of("form", ("store", "reduce"))
def test_numbers_of_a_store(form: str, rank: int) -> None:
    extra = {"op": "add"} if form == "reduce" else {}
    statement = inline_asm(form, dim=rank, cache_hint=True, **extra)
    assert statement.constraints == ("l", "r", *"r" * rank, "l")
    assert statement.template.split(" ", 1)[1].startswith("[%0, {%2")
    assert statement.template.endswith(f"[%1], %{rank + 2};")


def test_the_descriptor_is_first_on_stores_and_second_on_loads() -> None:
    for form, number in (("load", 1), ("store", 0), ("reduce", 0), ("prefetch", 0)):
        extra = {"op": "add"} if form == "reduce" else {}
        assert inline_asm(form, dim=1, **extra).operands[number].expression == "desc"
    with pytest.raises(EmissionError, match="has no tensor map operand"):
        inline_asm("mbarrier.init")


def test_the_statement_is_the_instruction() -> None:
    """With registers of the right class in the places of the operands, the template is a canonical instruction."""
    statement = inline_asm("load", dim=4, mode="im2col", multicast=True, cache_hint=True)
    text = statement.template
    for operand in reversed(statement.operands):
        register = {"r": "%r", "l": "%rd", "h": "%h"}[operand.constraint]
        text = text.replace(f"%{operand.number}", f"{register}{operand.number}")
    assert examine(text).canonical
    assert statement.text.count('"h"') == 3


@pytest.mark.parametrize(("rank", "count"), ((0, 0), (6, 0), (3, -1), (5, 4)))
def test_numbers_of_no_load(rank: int, count: int) -> None:
    with pytest.raises(InvalidValueError, match="must be"):
        mcast_opnum(rank, count)
    with pytest.raises(InvalidValueError, match="must be"):
        ch_opnum(rank, count, True)
