"""Which elements the tiles of an atom load: against the count of every element, one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, StaticAssertError
from cute_py.tma import check_smem_address, coverage, make_smem_layout, make_tma_copy, smem_choices
from tests.each import each_of


def counted(shape: tuple[int, int], tile: tuple[int, int], tiles: list[tuple[int, int]]) -> np.ndarray:
    seen = np.zeros(shape, int)
    for i, j in tiles:
        seen[i * tile[0] : (i + 1) * tile[0], j * tile[1] : (j + 1) * tile[1]] += 1
    return seen


@each_of("seed", range(30))
def test_tiles_are_counted_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    shape, tile = (rng.randint(1, 90), 8 * rng.randint(1, 12)), (rng.choice([8, 16, 32]), rng.choice([8, 16, 32]))
    x = np.zeros(shape, np.uint16)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(tile[0]), Int(tile[1])), LayoutRight))
    grid = (-(-shape[0] // tile[0]), -(-shape[1] // tile[1]))
    tiles = [(rng.randint(0, grid[0]), rng.randint(0, grid[1])) for _ in range(rng.randint(0, 12))]
    found = coverage(atom, tiles)
    seen = counted(shape, tile, tiles)
    assert (found.missing, found.repeated) == (int((seen == 0).sum()), int((seen > 1).sum()))
    assert len(found.outside) == sum(i == grid[0] or j == grid[1] for i, j in tiles)
    if found.missing:
        assert found.first_missing == tuple(map(int, np.argwhere(seen == 0)[0][::-1]))
    assert coverage(atom).check() == []


def test_a_drain_that_issues_one_tile_too_many() -> None:
    x = np.zeros((64, 64), np.uint16)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(64)), LayoutRight))
    assert [str(d) for d in coverage(atom, [0, 1, 2]).check()] == [
        "1 tile out of range, without any element of the tensor: 2"
    ]


def test_a_shared_address_must_be_where_the_swizzle_begins() -> None:
    x = np.zeros((64, 64), np.uint16)
    for swizzle, alignment in (("128B", 1024), ("64B", 512), ("32B", 256), ("none", 128)):
        atom = make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", swizzle, "uint16", (64, 64)))
        if atom.swizzle.bits or swizzle == "none":
            assert check_smem_address(atom, 3 * alignment) == []
            assert check_smem_address(atom, alignment // 2)[0].value == alignment // 2


def test_a_tile_that_no_atom_divides_names_the_choices() -> None:
    with pytest.raises(StaticAssertError) as caught:
        make_smem_layout("K", "128B", "float16", (128, 48))
    assert caught.value.hint == "smem_choices('K', 'float16', (128, 48)) lists layouts with swizzle 32B, none"
    assert [c.swizzle for c in smem_choices("K", "float16", (128, 48))] == ["32B", "none"]
    for k in (48, 80, 96):
        for swizzle in ("128B", "64B"):
            try:
                make_smem_layout("K", swizzle, "float16", (64, k))
            except StaticAssertError as error:
                assert all(c.swizzle in str(error.hint) for c in smem_choices("K", "float16", (64, k)))


def test_bad_input_is_refused() -> None:
    x = np.zeros((64, 64), np.uint16)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(64)), LayoutRight))
    for bad in ([-1], [(0,)], ["a"], 5, [None], [(0, 1, 2)], [[0]]):
        with pytest.raises(CuteError):
            coverage(atom, bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError):
        coverage(None)  # type: ignore[arg-type]
    with pytest.raises(CuteError):
        check_smem_address(atom, -1)
    big = cute.make_tensor(cute.make_gmem_ptr(4096, "uint16"), Layout((1 << 14, 1 << 14), (1 << 14, Int(1))))
    with pytest.raises(InvalidValueError):
        coverage(make_tma_copy("SM90_TMA_LOAD", big, Layout((Int(32), Int(64)), LayoutRight)))


def test_a_cover_says_what_it_counted() -> None:
    x = np.zeros((64, 64), np.uint16)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(64)), LayoutRight))
    found = coverage(atom, [0, 0])
    assert str(found) == (
        "2048 of 4096 elements are missing, the first at (0, 32)\n2048 of 4096 elements are repeated, the first "
        "at (0, 0)\njudged: 2 tiles, 2 loads, 4096 elements\nnot judged: order: when each tile is loaded, by "
        "which CTA, and what waits for it\nnot judged: shared memory: the position of each tile, and whether it is "
        "read before the next tile overwrites it"
    )
    assert str(coverage(atom)).startswith("4096 elements, each loaded once\njudged: 2 tiles, 2 loads, 4096 elements\n")
    assert found.check().scope == found.scope and not coverage(atom).check().scope.complete
