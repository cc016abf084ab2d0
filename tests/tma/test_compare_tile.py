"""A dump of shared memory against what the engine leaves: each cause seeded on random atoms, named and no other.

The dumps are made without the code that names the causes: by atoms of another swizzle, by numpy, by other tiles.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.diagnostics import Scope
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.tma import compare_tile, execute, make_smem_layout, make_tma_copy

ATOMS = 50
TYPES = {"uint8": np.uint8, "uint16": np.uint16, "float32": np.uint32}
Case = tuple[Any, Any, tuple[int, int], str, int, int, str]


@functools.cache
def case(seed: int) -> Case:
    """(atom, array, tiles, dtype, rows, columns, swizzle) of a random K-major atom with at least 3x4 tiles."""
    rng = random.Random(seed)
    name = rng.choice(["uint8", "uint16"])
    width = TYPES[name]().itemsize
    swizzle = rng.choice(["128B", "64B", "32B", "none"])
    span = {"128B": 128, "64B": 64, "32B": 32, "none": 16}[swizzle] // width
    boxes = rng.choice([2, 3])
    rows, columns = 8 * rng.choice([2, 4, 8]), span * boxes
    tiles = (rng.randint(3, 5), rng.randint(4, 5))
    x = np.random.default_rng(seed).integers(0, 256, (rows * tiles[0], columns * tiles[1] * width), np.uint8)
    x = x.view(TYPES[name])
    atom = make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", swizzle, name, (rows, columns)))
    return atom, x, tiles, name, rows, columns, swizzle


def tile_of(rng: random.Random, tiles: tuple[int, int]) -> tuple[int, int]:
    return rng.randrange(tiles[0]), rng.randrange(1, tiles[1] - 1)


def seeded_swizzle(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    """The kernel's map has another swizzle: its own address bits, written out."""
    atom, x, _, _, _, _, swizzle = made
    names = ["none", "32B", "64B", "128B"]
    own, other = names.index(swizzle), rng.choice([i for i in range(4) if names[i] != swizzle])
    right = execute(atom, x, coord).smem
    wrong = np.zeros_like(right)
    for address in range(len(right)):
        row = address // 128
        plain = address ^ (row % (1 << own)) << 4
        wrong[plain ^ (row % (1 << other)) << 4] = right[address]
    return wrong


def seeded_major(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    """The kernel fills the stage in the other major: a column-major tile, plain or behind the swizzle."""
    _, x, _, _, rows, columns, swizzle = made
    tile = x[coord[0] * rows :][:rows, coord[1] * columns :][:, :columns]
    plain = np.ascontiguousarray(tile.T).view(np.uint8).reshape(-1)
    if rng.random() < 0.5:
        return plain
    bits = {"none": 0, "32B": 1, "64B": 2, "128B": 3}[swizzle]
    return plain[[a ^ (a // 128 % (1 << bits)) << 4 for a in range(len(plain))]]


def seeded_order(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    """The boxes of the stage are put at each other's places."""
    atom, x = made[:2]
    loaded = execute(atom, x, coord)
    starts, size = [int(n) for n in loaded.smem_offsets], atom.bytes_per_instruction
    order = starts[1:] + starts[:1]
    wrong = loaded.smem.copy()
    for here, there in zip(starts, order, strict=True):
        wrong[here : here + size] = loaded.smem[there : there + size]
    return wrong


def seeded_shift(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    atom, x, tiles = made[:3]
    mode = rng.randrange(2)
    step = rng.choice([s for s in (-1, 1) if 0 <= coord[mode] + s < tiles[mode]])
    return execute(atom, x, (coord[0] + step * (mode == 0), coord[1] + step * (mode == 1))).smem


def seeded_absence(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    """Some of the stage, or all of it, still holds what it was filled with."""
    atom, x = made[:2]
    wrong = execute(atom, x, coord).smem.copy()
    begin = rng.choice([0, 128 * rng.randrange(len(wrong) // 128)])
    wrong[begin:] = rng.choice([0, 0xCD, 0xFF])
    return wrong


def seeded_stale(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    """Some of the stage is of an earlier tile; or all of it, of one that is not beside this one."""
    atom, x, tiles = made[:3]
    right = execute(atom, x, coord).smem
    number = coord[0] + coord[1] * tiles[0]
    earlier = rng.randrange(number)
    old = execute(atom, x, earlier).smem
    beside = {number - 1, number - tiles[0]}
    if earlier not in beside and rng.random() < 0.5:
        return old
    cut = 128 * rng.randrange(1, len(right) // 128)
    return np.concatenate([right[:cut], old[cut:]])


def seeded_exchange(made: Case, coord: tuple[int, int], rng: random.Random) -> Any:
    """The coordinates of each load in the order of the array, rows first: what lies there, and zeros outside."""
    _, x, _, _, rows, columns, swizzle = made
    wide = np.zeros((x.shape[0] + x.shape[1] + rows, x.shape[0] + x.shape[1] + columns), x.dtype)
    wide[: x.shape[0], : x.shape[1]] = x
    span = {"128B": 128, "64B": 64, "32B": 32, "none": 16}[swizzle] // x.itemsize
    boxes = []
    for i in range(columns // span):
        row, column = coord[1] * columns + i * span, coord[0] * rows
        boxes.append(wide[row : row + rows, column : column + span].copy().view(np.uint8).reshape(-1))
    if not np.concatenate(boxes).any():  # wholly outside of the tensor: no more than a stage that holds zeros
        return execute(made[0], x, coord).smem
    plain, bits = np.concatenate(boxes), {"none": 0, "32B": 1, "64B": 2, "128B": 3}[swizzle]
    return plain[[a ^ (a // 128 % (1 << bits)) << 4 for a in range(len(plain))]]


SEEDED: dict[str, Callable[[Case, tuple[int, int], random.Random], Any]] = {
    "other swizzle": seeded_swizzle,
    "other major": seeded_major,
    "other box order": seeded_order,
    "shifted by one tile": seeded_shift,
    "exchanged coordinates": seeded_exchange,
    "not yet arrived": seeded_absence,
    "stale phase": seeded_stale,
}


@pytest.mark.parametrize("atoms", [ATOMS // 8, pytest.param(ATOMS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cause", SEEDED)
def test_a_seeded_cause_is_named(cause: str, atoms: int) -> None:
    named = seeded = 0
    for seed in range(atoms):
        rng = random.Random(1000 + seed)
        made = case(seed)
        coord = tile_of(rng, made[2])
        dump = SEEDED[cause](made, coord, rng)
        found = compare_tile(made[0], made[1], coord, dump)
        if found.equal:  # one box: its places are those of the other pattern
            continue
        seeded += 1
        named += found.cause == cause
        assert found.cause in (cause, ""), (seed, made[6], str(found))
        assert found.difference is not None and found.difference.step is not None
    assert seeded >= (0.3 if cause == "exchanged coordinates" else 0.8) * atoms
    assert named >= 0.95 * seeded


def test_the_right_bytes_are_equal_and_noise_has_no_cause() -> None:
    for seed in range(10):
        atom, x, tiles, *_ = case(seed)
        coord = (tiles[0] - 1, tiles[1] - 1)
        right = execute(atom, x, coord).smem
        assert compare_tile(atom, x, coord, right).equal
        noise = right.copy()
        noise[::7] ^= 0x5A
        found = compare_tile(atom, x, coord, noise)
        assert (found.equal, found.cause) == (False, "")
        assert "no known cause" in str(found)


def test_the_first_difference_is_a_coordinate_a_byte_and_a_bank() -> None:
    x = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    atom = make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", "128B", "uint16", (32, 64)))
    dump = execute(atom, x, (1, 0)).smem.copy()
    dump[132] ^= 1
    found = compare_tile(atom, x, (1, 0), dump)
    assert str(found).startswith("byte 132: 0x4b, expected 0x4a (1 differ); TMA (10, 33) -> 0x")
    assert found.difference is not None and found.difference.step is not None
    assert (found.difference.byte, found.difference.step.bank) == (132, 1)


def test_a_ring_says_which_phase_is_stale() -> None:
    made = case(3)
    atom, x = made[:2]
    found = compare_tile(atom, x, 5, execute(atom, x, 4).smem, stages=1)
    assert (found.cause, found.detail) == (
        "stale phase",
        "all bytes belong to tile 4, which the stage held 1 stage earlier",
    )


def test_bad_input_is_refused() -> None:
    atom, x, *_ = case(0)
    dump = execute(atom, x, 0).smem
    for bad, error in (((atom, x, 0, dump[:-1]), InvalidValueError), ((atom, x, 10**6, dump), InvalidValueError),
                       ((None, x, 0, dump), InvalidTypeError), ((atom, x, 0, "dump"), CuteError),
                       ((atom, x, 0, None), CuteError), ((atom, x, "a", dump), CuteError)):  # fmt: skip
        with pytest.raises(error):
            compare_tile(*bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError):
        compare_tile(atom, x, 0, dump, stages=0)
    assert compare_tile(atom, x, 0, dump.tobytes()).equal


def test_the_scope_is_what_was_compared_and_tried() -> None:
    """Bytes of the tile and behind it; causes up to the one that gives the dump."""
    x = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    atom = make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", "128B", "uint16", (32, 64)))
    right = execute(atom, x, (1, 0)).smem
    assert str(compare_tile(atom, x, (1, 0), right)) == "equal in every byte that the loads write\njudged: 4096 bytes"
    longer = compare_tile(atom, x, (1, 0), np.concatenate([right, right[:7]]))
    assert longer.scope == Scope(("4096 bytes",), ("7 bytes of the dump after the tile",))
    shifted = compare_tile(atom, x, (1, 0), execute(atom, x, (0, 0)).smem)
    assert shifted.scope == Scope(
        ("4096 bytes", "4 causes (other swizzle; other major; other box order; shifted by one tile)"),
        ("3 causes, because an earlier cause explains the dump: exchanged coordinates, stale phase, not yet arrived",),
    )
    noise = right.copy()
    noise[::7] ^= 0x5A
    unknown = compare_tile(atom, x, (1, 0), noise)
    assert unknown.scope.judged[1].startswith("7 causes (") and str(unknown).endswith(str(unknown.scope))


def test_bytes_that_no_load_writes_are_not_compared() -> None:
    """Five rows of 32 bytes: a stage is a multiple of 128 bytes, and its last 96 are not written."""
    x = np.arange(60 * 32, dtype=np.uint32).astype(np.uint8).reshape(60, 32)
    atom = make_tma_copy("SM90_TMA_LOAD", x, cute.Layout((cute.Int(5), cute.Int(32)), cute.LayoutRight))
    compared = compare_tile(atom, x, (0, 0), execute(atom, x, (0, 0)).smem)
    assert (compared.equal, compared.scope) == (
        True,
        Scope(("160 bytes",), ("96 bytes of the tile that no load writes",)),
    )


def test_a_ring_of_stages_tries_the_earlier_phase_first() -> None:
    atom, x, *_ = case(3)
    found = compare_tile(atom, x, 5, execute(atom, x, 4).smem, stages=1)
    assert found.scope.judged[1] == "1 cause (stale phase)"
    assert found.scope.not_judged[0].startswith("6 causes, because an earlier cause explains the dump: other swizzle, ")
