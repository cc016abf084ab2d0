"""explain of atoms, tiled operations, their printed texts and their names: what it says is so."""

from __future__ import annotations

import re

import pytest

import cute_py as cute
from cute_py import Layout, explain
from cute_py.errors import CuteError, InvalidValueError

WARP = "SM80_16x8x16_F32F16F16F32_TN"
TILED = cute.make_tiled_mma(WARP, Layout(cute.static((2, 2, 1))), cute.static((32, 32, 16)))
LOAD = cute.make_tiled_copy_A(cute.copy_atom("SM75_U32x4_LDSM_N", "half"), TILED)


def held(text: str, operand: str) -> dict[int, list[tuple[int, int]]]:
    """Thread -> the elements that the text says it has."""
    found = {}
    for line in text.splitlines():
        if match := re.match(rf"  thread (\d+) +(?={operand}\()", line):
            pairs = re.findall(rf"{operand}\((\d+),(\d+)\)", line)
            found[int(match[1])] = [(int(row), int(column)) for row, column in pairs]
    return found


@pytest.mark.parametrize("operand", ["A", "B", "C"])
def test_who_holds_what_is_the_partition(operand: str) -> None:
    text = str(explain(TILED))
    rows, columns = {"A": (32, 16), "B": (32, 16), "C": (32, 32)}[operand]
    tensor = cute.make_identity_tensor(cute.static((rows, columns)))
    threads = held(text, operand)
    assert sorted(threads) == list(range(6))
    for thread, places in threads.items():
        part = TILED.get_slice(thread).partition(operand, tensor)  # type: ignore[arg-type]
        assert [tuple(part(i).as_tuple()) for i in range(len(places))] == places


def test_an_atom_by_object_name_and_print() -> None:
    atom = cute.mma_atom(WARP)
    assert explain(atom) == explain(WARP) == explain(f"cute::{WARP}")
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in explain(atom)
    assert "4 registers of uint32" in explain(atom)
    for thing in (TILED, LOAD, atom, cute.copy_atom("SM75_U32x4_LDSM_N", "half")):
        assert "Thread-value layouts" in explain(str(thing))
    from_dsl = explain(cute.to_dsl(TILED))
    assert "A tile of 32 x 32 x 16 (M x N x K) over 128 threads" in from_dsl


def test_operands_elsewhere() -> None:
    assert "A  bfloat16, shared memory, through a descriptor" in explain("SM90_64x128x16_F32BF16BF16_SS")
    assert "in the registers of C" in explain("SM90_64x128x16_F32BF16BF16_SS")
    assert "C  float32, tensor memory" in explain("SM100_MMA_F16BF16_SS")


def test_tiled_copy_and_threads() -> None:
    text = explain(LOAD)
    assert "A tile of 32 x 16 over 128 threads, 8 values each, in 1 instruction of 8." in text
    tensor = cute.make_identity_tensor(cute.static((32, 16)))
    lines = text.splitlines()
    for side, title in (("S", "Who reads"), ("D", "Who writes")):
        start = next(i for i, line in enumerate(lines) if line.startswith(title)) + 1
        for thread in range(6):
            places = [(int(a), int(b)) for a, b in re.findall(r"\((\d+),(\d+)\)", lines[start + thread])]
            part = LOAD.get_slice(thread).partition(side, tensor)  # type: ignore[arg-type]
            assert [tuple(part(i).as_tuple()) for i in range(8)] == places
    assert explain(LOAD.get_slice(3)).startswith("Thread 3 of a tiled copy")
    assert explain(TILED.get_slice(33)).startswith("One thread of a tiled MMA: (ThrV,ThrM,ThrN,ThrK) = (1,1,0,0)")


def test_every_operation_has_a_text() -> None:
    for name in [*list(cute.MMA_ATOMS)[::60], *list(cute.COPY_ATOMS)[::15]]:
        assert "Thread-value layouts" in explain(name), name


def test_unknown_names_have_near_ones() -> None:
    with pytest.raises(InvalidValueError, match="nearest : SM80_16x8x16_F32F16F16F32_TN"):
        explain("SM80_16x8x17_F32F16F16F32_TN")
    with pytest.raises(CuteError):
        explain("SM90_64x128x16_F32BF16BF16_SS<X>")


def test_a_misspelled_name_lists_what_begins_with_it() -> None:
    with pytest.raises(CuteError, match="nearest : SM80_16x8x16_F16F16F16F16_TN, SM80_16x8x16_F32F16F16F32_TN"):
        cute.mma_atom("SM80_16x8x16")
    with pytest.raises(AttributeError, match="did you mean make_tiled_copy or"):
        getattr(cute, "make_tiled_coppy")  # noqa: B009, a checker refuses the plain form
