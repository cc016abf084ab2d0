"""Runs of indices and what two of them share, against dictionaries of single indices."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from cute_py.mesh.index_intervals import Runs, Segment, _grouped, _repetition, runs_of, segments, shared
from tests.each import each_of


def column(*values: int) -> Any:
    return np.array(values, np.int64)


def held(runs: Runs) -> dict[int, int]:
    """Index -> its offset, in the order of the runs."""
    rows = zip(*(one.tolist() for one in (runs.start, runs.length, runs.offset, runs.step)), strict=True)
    return {start + i: offset + i * step for start, length, offset, step in rows for i in range(length)}


def random_pieces(dice: Random, size: int) -> list[tuple[int, int]]:
    """Rows (start, length) within a size, apart, some of them empty, in any order."""
    cuts = sorted(dice.sample(range(size + 1), min(size + 1, 2 * dice.randint(1, 4))))
    pieces = [(a, b - a) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    pieces += [(dice.randint(0, size), 0)] * dice.randint(0, 1)
    dice.shuffle(pieces)
    return pieces


def pieces_of(pieces: list[tuple[int, int]]) -> Any:
    return np.array(pieces, np.int64).reshape(-1, 2)


def random_runs(dice: Random, size: int) -> Runs:
    """Part of a dimension; sometimes at offsets of a memory that is not in order."""
    made = Runs.of(pieces_of(random_pieces(dice, size)))
    if dice.random() < 0.4:
        return made.scaled(dice.choice((1, 2, 5)))
    if dice.random() < 0.4 and made.size:
        return made.through(np.array(dice.sample(range(200), made.size), np.int64))
    return made


@each_of("seed", range(40))
def test_pieces_are_runs_in_local_order(seed: int) -> None:
    dice = Random(seed)
    pieces = random_pieces(dice, dice.randint(1, 30))
    runs = Runs.of(pieces_of(pieces))
    wanted = [i for start, length in pieces for i in range(start, start + length)]
    assert runs.indices().tolist() == wanted
    assert runs.size == len(wanted)
    assert held(runs) == {index: place for place, index in enumerate(wanted)}
    assert all(runs.length > 0) and (runs.step == 1).all()
    assert [runs.holds(i) for i in range(-1, 32)] == [i in wanted for i in range(-1, 32)]
    if wanted:
        assert runs.first == (wanted[0], int(runs.length[0]), 0, 1)
    assert held(Runs.whole(7)) == {i: i for i in range(7)}
    assert Runs.whole(0).size == 0
    for stride in (1, 3):
        assert held(runs.scaled(stride)) == {index: stride * place for index, place in held(runs).items()}


@each_of("seed", range(60))
def test_a_part_of_a_part(seed: int) -> None:
    dice = Random(seed)
    runs = Runs.of(pieces_of(random_pieces(dice, dice.randint(4, 30)))) if seed % 3 else Runs.whole(dice.randint(1, 30))
    mine = runs.indices().tolist()
    inner = sorted(random_pieces(dice, len(mine))) if len(mine) else []
    found = runs.within(pieces_of(inner))
    wanted = [mine[i] for start, length in inner for i in range(start, start + length)]
    assert found.indices().tolist() == wanted
    assert held(found) == {index: place for place, index in enumerate(wanted)}


@each_of("seed", range(40))
def test_runs_at_given_offsets_are_as_few_as_a_walk_from_the_front_finds(seed: int) -> None:
    dice = Random(seed)
    indices, at = [], 0
    for _ in range(dice.randint(0, 20)):
        at += dice.choice((1, 1, 1, 1, 2, 5))
        indices.append(at)
    offsets, place = [], 0
    for _ in indices:
        place += dice.choice((1, 1, 1, 4, 4, -2))
        offsets.append(place)
    found = runs_of(column(*indices), column(*offsets))
    assert held(found) == dict(zip(indices, offsets, strict=True))
    count = i = 0
    while i < len(indices):
        count, j = count + 1, i + 1
        while (
            j < len(indices)
            and indices[j] == indices[j - 1] + 1
            and offsets[j] - offsets[j - 1] == offsets[i + 1] - offsets[i]
        ):
            j += 1
        i = j
    assert len(found.start) == count
    assert all(step == 1 for step, length in zip(found.step, found.length, strict=True) if length == 1)


@each_of("seed", range(30))
def test_indices_at_offsets_of_a_memory(seed: int) -> None:
    dice = Random(seed)
    runs = Runs.of(pieces_of(random_pieces(dice, 25)))
    if dice.random() < 0.5:
        runs = Runs(runs.start[::-1], runs.length[::-1], runs.offset[::-1], runs.step[::-1])
    table = np.array(dice.sample(range(90), 30), np.int64)
    places = held(runs)
    assert held(runs.through(table)) == {index: int(table[place]) for index, place in places.items()}


def expanded(found: list[Segment]) -> list[tuple[int, int]]:
    """(source, destination) of every element."""
    pairs = []
    for one in found:
        at = [(one.source, one.destination)]
        for mode in reversed(one.modes):
            at = [(s + i * mode.source, d + i * mode.destination) for s, d in at for i in range(mode.size)]
        pairs += at
    return pairs


@each_of("seed", range(120))
def test_segments_are_what_both_hold(seed: int) -> None:
    dice = Random(seed)
    size = dice.choice((6, 20, 40))
    source, destination = random_runs(dice, size), random_runs(dice, size)
    if seed % 4 == 0:
        source = Runs.whole(size)
    if seed % 8 == 0:
        destination = Runs.of(pieces_of([(dice.randint(0, size), dice.randint(1, size))]))
    ours, theirs = held(source), held(destination)
    both = ours.keys() & theirs.keys()
    assert shared(source, destination) == shared(destination, source) == len(both)
    found = segments(source, destination)
    assert sorted(expanded(found)) == sorted((ours[i], theirs[i]) for i in both)
    assert all(mode.size > 1 for one in found for mode in one.modes)


def test_equal_runs_at_equal_distances_are_one_segment() -> None:
    dealt = Runs.of(pieces_of([(4 * i, 2) for i in range(50)]))
    (only,) = segments(Runs.whole(200), dealt)
    assert (only.source, only.destination) == (0, 0)
    assert [(m.size, m.source, m.destination) for m in only.modes] == [(2, 1, 1), (50, 4, 2)]
    pairs = Runs.of(pieces_of([(10 * i + a, n) for i in range(20) for a, n in ((0, 2), (3, 1))]))
    first, second = segments(Runs.whole(200), pairs)
    assert [(m.size, m.source, m.destination) for m in first.modes] == [(2, 1, 1), (20, 10, 3)]
    assert (second.source, second.destination) == (3, 2)
    assert [(m.size, m.source, m.destination) for m in second.modes] == [(20, 10, 3)]


def longest(rows: np.ndarray, most: int = 64) -> tuple[int, int]:
    """The repetition that covers most rows, tried one by one; of equals the shortest."""
    best = (1, 1)
    for period in range(1, min(most, len(rows) // 2) + 1):
        apart, count = rows[period] - rows[0], 1
        if apart[:3].any():
            continue
        while (count + 1) * period <= len(rows) and all(
            (rows[count * period + k] - rows[(count - 1) * period + k] == apart).all() for k in range(period)
        ):
            count += 1
        if count > 1 and period * count > best[0] * best[1]:
            best = (period, count)
    return best


@each_of("seed", range(80))
def test_the_repetition_that_covers_most_rows(seed: int) -> None:
    dice = Random(seed)
    rows: list[list[int]] = []
    for _ in range(dice.randint(1, 4)):
        period, count = dice.randint(1, 3), dice.randint(1, 5)
        one = [[dice.choice((1, 2, 3)), 1, 1, dice.randint(0, 9), dice.randint(0, 9)] for _ in range(period)]
        step = dice.randint(0, 12), dice.randint(1, 12)
        rows += [[*row[:3], row[3] + i * step[0], row[4] + i * step[1]] for i in range(count) for row in one]
    table = np.array(rows, np.int64)
    assert _repetition(table) == longest(table)
    wanted = []
    for length, first, second, source, destination in rows:
        wanted += [(source + i * first, destination + i * second) for i in range(length)]
    assert sorted(expanded(_grouped(table))) == sorted(wanted)


def test_periods_beyond_64_are_not_searched() -> None:
    def rows(period: int) -> Any:
        lengths = [2 if k == 0 else 1 for k in range(period)]
        one = [[n, 1, 1, 1000 * k * k, 7 * k * k] for k, n in enumerate(lengths)]
        return np.array([[*row[:3], row[3] + i * 10**8, row[4] + i * 10**6] for i in range(3) for row in one], np.int64)

    assert _repetition(rows(64)) == (64, 3)
    assert _repetition(rows(65)) == (1, 1)


def test_nothing_is_shared_with_an_empty_part() -> None:
    """A device that holds no index sends and gets nothing, whichever side it is on."""
    empty, part = Runs.of(pieces_of([(3, 0)])), Runs.of(pieces_of([(2, 5)]))
    for one, other in ((part, empty), (empty, part), (empty, empty)):
        assert segments(one, other) == []
        assert shared(one, other) == 0
