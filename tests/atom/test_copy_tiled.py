"""Instructions against the PTX ISA, and tiled copies against the arrays that they copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_py import Layout, cosize, size
from cute_py.atom import (
    COPY_ATOMS,
    copy_atom,
    copy_registers,
    copy_tiled,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_mma,
)
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.each import each_of


def ldmatrix(rows: Any, matrices: int, transposed: bool) -> Any:
    """PTX ISA, ldmatrix .m8n8 .b16: thread t gets two elements of row t/4; transposed, of column t/4."""
    found = []
    for t in range(32):
        values = []
        for j in range(matrices):
            matrix = rows[8 * j : 8 * j + 8]
            for e in range(2):
                values.append(matrix[2 * (t % 4) + e][t // 4] if transposed else matrix[t // 4][2 * (t % 4) + e])
        found.append(values)
    return np.array(found)


@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_and_stmatrix(matrices: int, transposed: bool) -> None:
    rows = np.arange(256).reshape(32, 8)
    letters = f"U16x{2 * matrices}" if transposed else f"U32x{matrices}"
    tail = "T" if transposed else "N"
    expected = ldmatrix(rows, matrices, transposed)
    load = copy_atom(f"SM75_{letters}_LDSM_{tail}", "half")
    assert (copy_registers(load, rows) == expected).all()  # lanes beyond 8 for each matrix give no address
    store = copy_atom(f"SM90_{letters}_STSM_{tail}", "half")
    assert (copy_registers(store, expected)[: 8 * matrices] == rows[: 8 * matrices]).all()


def test_movmatrix_transposes() -> None:
    matrix = np.arange(64, dtype=np.float16).reshape(8, 8)
    registers = matrix.reshape(32, 2)
    found = copy_registers(copy_atom("SM75_U32x1_MOVM_T", "half"), registers)
    assert (found.reshape(8, 8) == matrix.T).all()


def test_shuffles_transpose_two_by_two() -> None:
    registers = np.arange(64, dtype=np.uint32).reshape(32, 2)
    found = copy_registers(copy_atom("SM50_Shuffle_U32_2x2Trans_XOR1", "uint32"), registers)
    for lane in range(32):
        pair = [lane & ~1, lane | 1]
        assert found[lane].tolist() == [registers[p][lane & 1] for p in pair]


MMA = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), (32, 32, 16))


@each_of(
    ("copy", "shape"),
    [
        (make_tiled_copy_A(copy_atom("SM75_U32x4_LDSM_N", "half"), MMA), (64, 32)),
        (make_tiled_copy_A(copy_atom("SM75_U16x8_LDSM_T", "half"), MMA), (64, 32)),
        (make_tiled_copy_B(copy_atom("SM75_U32x2_LDSM_N", "half"), MMA), (64, 32)),
        (make_tiled_copy_B(copy_atom("SM75_U16x4_LDSM_T", "half"), MMA), (32, 16)),
        (make_tiled_copy_C(copy_atom("SM90_U32x2_STSM_N", "half"), MMA), (64, 64)),
        (make_tiled_copy_C(copy_atom("SM90_U16x4_STSM_T", "half"), MMA), (64, 64)),
        (
            make_tiled_copy(copy_atom("UniversalCopy<uint128_t>", "half"), Layout((32, 4), (4, 1)), Layout((1, 8))),
            (64, 64),
        ),
        (
            make_tiled_copy(copy_atom("UniversalCopy<uint32_t>", "half"), Layout((8, 8), (8, 1)), Layout((2, 2))),
            (37, 41),
        ),
        (make_tiled_copy(copy_atom("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", "half"), Layout(64), Layout(2)), (300,)),
        (
            make_tiled_copy(copy_atom("SM50_Shuffle_U32_2x2Trans_XOR4", "half"), Layout((32, 1)), Layout((1, 4))),
            (64, 8),
        ),
    ],
    ids=lambda x: str(getattr(getattr(x, "atom", x), "name", x)),
)
def test_an_array_arrives_as_it_was(copy: Any, shape: tuple[int, ...]) -> None:
    source = np.random.default_rng(1).integers(-999, 999, shape).astype(np.float16)
    before = source.copy()
    assert (copy_tiled(copy, source) == before).all()
    target = np.full(shape, 7, np.float16)
    assert copy_tiled(copy, source, target) is target
    assert (target == before).all()


def test_registers_and_memory_of_as_many_values_are_a_permutation() -> None:
    for name, row in COPY_ATOMS.items():
        if name == "SM75_U32x1_MOVM_T" or row.family in ("universal", "sm100_utccp"):
            continue
        atom = copy_atom(row.name, "int8")
        if atom.num_val_src != atom.num_val_dst or int(size(atom.layout_src_TV)) != int(cosize(atom.layout_src_TV)):
            continue
        registers = np.arange(int(size(atom.layout_src_TV))).reshape(-1, atom.num_val_src)
        assert sorted(copy_registers(atom, registers).flat) == sorted(registers.flat), name


def test_refusals() -> None:
    copy = make_tiled_copy(copy_atom("UniversalCopy<uint32_t>", "half"), Layout((8, 4), (4, 1)), Layout((1, 2)))
    with pytest.raises(InvalidTypeError, match="src has elements of 32 bits, but the copy moves 16 bits"):
        copy_tiled(copy, np.zeros((8, 8), np.float32))
    with pytest.raises(InvalidTypeError, match="dst must be an array of shape"):
        copy_tiled(copy, np.zeros((8, 8), np.float16), np.zeros((8, 4), np.float16))
    with pytest.raises(InvalidValueError, match="src has 1 modes; must have 2, like the tile of this copy"):
        copy_tiled(copy, np.zeros(8, np.float16))
    with pytest.raises(InvalidValueError, match="registers have the shape"):
        copy_registers(copy_atom("SM75_U32x1_LDSM_N", "half"), np.zeros((31, 8)))
    with pytest.raises(InvalidTypeError, match="a tiled copy needs an element type"):
        make_tiled_copy("SM75_U32x1_LDSM_N", Layout(32))
