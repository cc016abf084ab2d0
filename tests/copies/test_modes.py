"""Refinements against lists of offsets: the pairs of elements, their bounds, their bytes, and elements of 4 bits."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.copies.modes import (
    CopyMode,
    Refinement,
    byte_span,
    in_bytes,
    merged,
    pair_elements,
    refine,
    side_bounds,
    side_offsets,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError
from cute_py.layout.offsets import offsets
from tests.copies.pairs import random_pair

IDENTITY = Swizzle(0, 4, 3)


def pairs_of(refinement: Refinement) -> NDArray[np.int64]:
    """(destination offset, source offset) of every element, in the order of the destination."""
    found = np.stack([side_offsets(refinement, 1), side_offsets(refinement, 0)])
    return found[:, np.argsort(found[0], kind="stable")]


def listed(source: Any, destination: Any, count: int) -> NDArray[np.int64]:
    """The same from the layouts alone, coordinate by coordinate."""
    index = np.arange(count)
    found = np.stack([np.asarray(offsets(one, index), np.int64) for one in (destination, source)])
    return found[:, np.argsort(found[0], kind="stable")]


def required(source: Any, destination: Any) -> Refinement:
    found = refine(source, destination)
    assert found is not None
    return found


def follows(one: CopyMode, other: CopyMode) -> bool:
    """Whether a mode goes on where another ends, on both sides."""
    return (other.source, other.destination) == (one.size * one.source, one.size * one.destination)


@pytest.mark.parametrize("begin", range(9000, 9120, 40))
def test_a_refinement_has_the_pairs_of_the_layouts(begin: int) -> None:
    for seed in range(begin, begin + 40):
        pair = random_pair(seed)
        found = required(pair.source, pair.destination)
        assert found.count == pair.count
        assert np.array_equal(pairs_of(found), listed(pair.source, pair.destination, pair.count)), pair
        assert all(m.size > 1 and m.destination > 0 for m in found.modes)
        steps = [(m.destination, abs(m.source)) for m in found.modes]
        assert steps == sorted(steps)
        assert not any(follows(a, b) for a, b in itertools.permutations(found.modes, 2))
        swizzled = isinstance(pair.source, ComposedLayout) or isinstance(pair.destination, ComposedLayout)
        assert found.form == ("general" if found.rest[0] else "linear" if swizzled else "affine")
        if found.rest[0]:  # nothing that both sides share is left in the middle, at either end
            ours, theirs = found.rest
            assert np.gcd(ours[0][0], theirs[0][0]) == 1 or len(ours) > 1 or len(theirs) > 1


@pytest.mark.parametrize("begin", range(9500, 9580, 40))
def test_bounds_are_those_of_the_listed_offsets(begin: int) -> None:
    for seed in range(begin, begin + 40):
        pair = random_pair(seed)
        found = required(pair.source, pair.destination)
        for which in (0, 1):
            listed_here = side_offsets(found, which)
            low, high = int(listed_here.min()), int(listed_here.max())
            assert side_bounds(found, which) == (low, high), pair
            for bits in (4, 8, 16, 32, 64, 128):
                first, last = low * bits // 8, (high * bits + bits - 1) // 8
                assert byte_span(found, which, bits) == (first, last - first + 1)


def test_offsets_of_some_elements_are_those_of_all() -> None:
    dice = np.random.default_rng(2)
    for seed in range(60):
        pair = random_pair(seed)
        found = required(pair.source, pair.destination)
        index = dice.integers(0, pair.count, 17)
        for which in (0, 1):
            assert np.array_equal(side_offsets(found, which, index), side_offsets(found, which)[index])


@pytest.mark.parametrize(("size", "start"), [(2048, 0), (2048, 512), (2047, 0), (2048, 1)])
def test_bounds_of_a_swizzled_side_that_is_too_long_to_list(size: int, start: int) -> None:
    """They cover whole blocks of the swizzle; those of a side of whole blocks are its own."""
    swizzle, scale = Swizzle(3, 3, 3), 1 << 14
    large = Refinement((CopyMode(size * scale, 1, 1),), (start, 0), (swizzle, IDENTITY))
    low, high = side_bounds(large, 0)
    block = 512
    assert (low, high) == (start // block * block, -(-(start + size * scale) // block) * block - 1)
    assert side_bounds(large, 1) == (0, size * scale - 1)


def test_bounds_of_a_short_swizzled_side_are_exact() -> None:
    """3 of 8 offsets: the swizzle moves them, and the block's other offsets are not reached."""
    found = Refinement((CopyMode(3, 1, 1),), (6, 0), (Swizzle(1, 0, 2), IDENTITY))
    assert side_offsets(found, 0).tolist() == [7, 6, 8]
    assert side_bounds(found, 0) == (6, 8)


def test_modes_that_follow_each_other_are_joined_in_any_order() -> None:
    modes = [CopyMode(4, 1, 1), CopyMode(8, 4, 4), CopyMode(2, 32, 32), CopyMode(3, 7, 100), CopyMode(5, 21, 300)]
    wanted = (CopyMode(64, 1, 1), CopyMode(15, 7, 100))
    for order in itertools.permutations(modes):
        assert merged(order) == wanted
    apart = [CopyMode(4, 1, 1), CopyMode(8, 4, 5)], [CopyMode(4, 1, 1), CopyMode(8, 5, 4)]
    for pair in apart:
        assert set(merged(pair)) == set(pair)
    assert merged([CopyMode(2, -3, 1), CopyMode(2, 2, 1), CopyMode(5, 1, 1)]) == (
        CopyMode(5, 1, 1),
        CopyMode(2, 2, 1),
        CopyMode(2, -3, 1),
    )


def test_a_destination_that_is_walked_backwards_is_turned() -> None:
    found = required(Layout((4, 6), (1, 4)), Layout((4, 6), (-1, 4)))
    assert found.modes == (CopyMode(4, -1, 1), CopyMode(6, 4, 4))
    assert found.starts == (3, -3)
    assert required(Layout(5, -2), Layout(5, -3)).modes == (CopyMode(5, 2, 3),)


@pytest.mark.parametrize(
    ("source", "destination", "rest"),
    [
        (Layout((6, 10), (10, 1)), Layout((4, 15), (15, 1)), (((3, 20), (2, 1)), ((2, 30), (3, 1)))),
        (Layout((3, 4), (4, 1)), Layout((4, 3), (3, 1)), (((3, 4), (4, 1)), ((4, 3), (3, 1)))),
        (
            Layout((2, 3, 4, 5), (60, 20, 5, 1)),
            Layout((2, 4, 3, 5), (60, 15, 5, 1)),
            (((3, 20), (4, 5)), ((4, 15), (3, 5))),
        ),
    ],
)
def test_what_has_no_common_refinement_is_kept_by_each_side(source: Layout, destination: Layout, rest: Any) -> None:
    found = required(source, destination)
    assert found.form == "general"
    assert found.rest == rest
    assert np.array_equal(pairs_of(found), listed(source, destination, found.count))


def test_an_offset_and_a_swizzle_are_of_their_side() -> None:
    plain, swizzled = Layout((8, 8), (8, 1)), ComposedLayout(Swizzle(2, 0, 3), Int(16), Layout((8, 8)))
    found = required(plain, swizzled)
    assert (found.starts, found.swizzles) == ((0, 16), (IDENTITY, Swizzle(2, 0, 3)))
    assert required(swizzled, plain).starts == (16, 0)
    assert found.form == "linear"
    assert np.array_equal(pairs_of(found), listed(plain, swizzled, 64))


def test_nothing_to_copy_has_no_refinement() -> None:
    assert refine(Layout((0, 4)), Layout((4, 0))) is None
    pairing = pair_elements(Layout((0, 4)), Layout((4, 0)), "float32")
    assert (pairing.refinement, pairing.bytes, pairing.bits) == (None, 0, 32)
    one = required(Layout(1, 5), Layout((1, 1)))
    assert (one.modes, one.count, one.form) == ((), 1, "affine")


def test_sixteen_modes_are_copied_and_seventeen_refused() -> None:
    def apart(rank: int) -> tuple[Layout, Layout]:
        steps = [3**i for i in range(rank)]
        return Layout((2,) * rank, tuple(5**i for i in range(rank))), Layout((2,) * rank, tuple(steps))

    assert len(required(*apart(16)).modes) == 16
    with pytest.raises(InvalidValueError, match="the copy has 17 modes that do not merge; must have at most 16"):
        refine(*apart(17))


@pytest.mark.parametrize(
    ("source", "destination", "error", "text"),
    [
        (
            Layout(12),
            Layout((3, 5)),
            InvalidValueError,
            "the source has 12 elements and the destination 15",
        ),
        (Layout(6), Layout((3, 2), (1, 2)), InvalidValueError, "the destination overlaps itself"),
        (Layout(6), Layout((3, 2), (1, 0)), InvalidValueError, "the destination overlaps itself"),
        (
            Layout((2, 2), (1, 1 << 60)),
            Layout(4),
            InvalidValueError,
            "the source layout has offsets beyond 2**60 elements",
        ),
        (Layout(4), Layout((2, 2), (1, -(1 << 60))), InvalidValueError, "the destination layout has offsets beyond"),
        ("4:1", Layout(4), InvalidTypeError, "the source must be a layout, got str '4:1'"),
        (Layout(4), 4, InvalidTypeError, "the destination must be a layout, got int 4"),
        (
            ComposedLayout(Layout((2, 4), (4, 1)), 1, Layout(4)),
            Layout(4),
            LayoutError,
            "the source must be a layout or a swizzled layout",
        ),
        (
            Layout(4),
            ComposedLayout(Swizzle(1, 0, 1), Int(0), ComposedLayout(Swizzle(1, 1, 1), Int(0), Layout(4))),
            LayoutError,
            "the destination must be a layout or a swizzled layout",
        ),
    ],
)
def test_pairs_without_a_refinement(source: Any, destination: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        refine(source, destination)
    assert str(caught.value).startswith(text)


def test_a_destination_may_interleave() -> None:
    """Steps that are no multiples of each other, and no two offsets equal; and a reach of exactly 2**60."""
    assert required(Layout((2, 3)), Layout((2, 3), (3, 2))).modes == (CopyMode(3, 2, 2), CopyMode(2, 1, 3))
    assert required(Layout((2, 2), (1, (1 << 60) - 1)), Layout(4)).modes[1].source == (1 << 60) - 1


def nibbles_by_bytes(found: Refinement) -> NDArray[np.int64] | None:
    """(destination byte, source byte) of every byte, where each is a byte of the other side in the same order."""
    whole = pairs_of(found)
    if whole.shape[1] % 2:
        return None
    low, high = whole[:, ::2], whole[:, 1::2]
    if (low % 2).any() or (high != low + 1).any():
        return None
    return low // 2


def random_nibbles(dice: random.Random) -> Refinement:
    """Of a few modes; often of whole bytes."""
    modes, step = [], 1
    first = dice.choice((2, 4, 6, 8, 3))
    strides = dice.choice((1, 1, 1, 2, -1)), 1
    modes.append(CopyMode(first, *strides))
    step = first + dice.choice((0, 0, 0, 1))
    reach = first * 2
    for _ in range(dice.randint(0, 2)):
        size = dice.randint(2, 5)
        modes.append(CopyMode(size, dice.choice((reach, reach, -reach, reach + 1)), step))
        step *= size
        reach *= size * 2
    starts = dice.choice((0, 0, 0, 2, 1)), dice.choice((0, 0, 0, 4, 3))
    swizzles = dice.choice((IDENTITY, IDENTITY, Swizzle(1, 1, 2), Swizzle(2, 0, 3), Swizzle(1, 2, -1)))
    return Refinement(merged(modes), starts, (swizzles, IDENTITY) if dice.random() < 0.5 else (IDENTITY, swizzles))


def test_elements_of_four_bits_in_pairs() -> None:
    """Where they move in bytes, the bytes are those of the elements; else some byte is split."""
    dice, counts = random.Random(8), [0, 0]
    for _ in range(600):
        found = random_nibbles(dice)
        if side_offsets(found, 0).min() < 0:
            continue
        whole, wanted = in_bytes(found), nibbles_by_bytes(found)
        counts[whole is None] += 1
        if whole is None:
            splits = any(s.bits and (s.yyy_mask | s.zzz_mask) & 1 for s in found.swizzles)
            assert wanted is None or splits, found
        else:
            assert wanted is not None and np.array_equal(pairs_of(whole), wanted), found
            assert whole.count * 2 == found.count
            assert all(m.size > 1 for m in whole.modes)
    assert min(counts) > 60


def test_general_copies_of_four_bits_in_pairs() -> None:
    first = CopyMode(2, 1, 1)
    rest = (((3, 2), (4, 6)), ((4, 2), (3, 8)))
    found = in_bytes(Refinement((first,), (0, 2), rest=rest))
    assert found == Refinement((), (0, 1), rest=(((3, 1), (4, 3)), ((4, 1), (3, 4))))
    for split in ((((3, 3), (4, 9)), ((4, 2), (3, 8))), (((3, 2), (4, 6)), ((4, 2), (3, 9)))):
        assert in_bytes(Refinement((first,), rest=split)) is None
    assert in_bytes(Refinement((), rest=rest)) is None


@pytest.mark.parametrize(
    ("nibbles", "flips", "bits"),
    [
        (("low", "low"), (0, 0), 8),
        (("high", "high"), (1, 1), 8),
        (("low", "high"), (0, 1), 4),
        (("high", "low"), (1, 0), 4),
    ],
)
def test_pairings_of_four_bits(nibbles: tuple[str, str], flips: tuple[int, int], bits: int) -> None:
    pairing = pair_elements(Layout((8, 4)), Layout((8, 4)), "int4", nibbles)
    assert (pairing.flips, pairing.bits, pairing.bytes) == (flips, bits, 16)
    odd = pair_elements(Layout(7), Layout(7), "int4", nibbles)
    assert (odd.bits, odd.bytes) == (4, 4)
    wide = pair_elements(Layout(8), Layout(8), "int8", nibbles)
    assert (wide.bits, wide.bytes, wide.nibbles) == (8, 8, ("low", "low"))


@pytest.mark.parametrize(
    ("nibbles", "error", "text"),
    [
        (("low",), InvalidValueError, "must be a pair for (source, destination)"),
        (("low", "low", "low"), InvalidValueError, "must be a pair for (source, destination)"),
        (("low", "up"), InvalidValueError, "an order of nibbles is 'up'; must be one of 'low', 'high'"),
        (("low", 1), InvalidTypeError, "an order of nibbles"),
        ("low", InvalidTypeError, "nibbles"),
    ],
)
def test_orders_of_nibbles_that_are_none(nibbles: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        pair_elements(Layout(8), Layout(8), "int4", nibbles)
    assert text in str(caught.value)


@pytest.mark.parametrize(("dtype", "bits"), [("float6_e2m3fn", 6), ("uint1", 1), ("int2", 2)])
def test_widths_that_no_copy_moves(dtype: str, bits: int) -> None:
    with pytest.raises(InvalidValueError, match=f"has {bits} bits per element; must have 4 bits, or 1, 2"):
        pair_elements(Layout(8), Layout(8), dtype)
