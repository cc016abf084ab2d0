"""The second paths, for integers in trees of known numbers, against the general ones: the same value, of the same kind,
or the same refusal, on thousands of random trees with the numbers that decide between branches among them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import Int, Layout
from cute_py.argument_checks import MAX_INTEGER
from cute_py.errors import CuteError
from cute_py.layout.int_tuple import compact_left, crd2idx_of, idx2crd_colex, inner_product_of, product_of
from cute_py.layout.layout import _checked_shape, coshape_of
from cute_py.layout.leaf import coordinate, to_internal, to_public
from cute_py.layout.trees import are_numbers, compact_numbers, map_leaves

COUNT = 3000
SIZES = (0, 1, 1, 2, 3, 4, 5, 8, 64, 1 << 64, MAX_INTEGER)
STEPS = (-MAX_INTEGER, -3, -1, 0, 0, 1, 1, 2, 5, 16, 1 << 64, MAX_INTEGER)
SMALL = (0, 1, 1, 2, 3, 4, 5, 8)
INDICES = (-MAX_INTEGER - 1, -7, -1, 0, 0, 1, 2, 3, 37, 1 << 64, MAX_INTEGER, MAX_INTEGER + 1)


def tree(dice: random.Random, pool: tuple[int, ...], depth: int = 3) -> Any:
    """A tuple of trees, `Int`, int and now and then a numpy integer."""
    if depth == 0 or dice.random() < 0.5:
        number = dice.choice(pool)
        if dice.random() < 0.03 and abs(number) < 1 << 62:
            return np.int64(number)
        return Int(number) if dice.random() < 0.5 and abs(number) <= MAX_INTEGER else number
    return tuple([tree(dice, pool, depth - 1) for _ in range(dice.randint(0 if dice.random() < 0.3 else 1, 4))])


def like(dice: random.Random, profile: Any, pool: tuple[int, ...]) -> Any:
    """A tree of the same profile; now and then with a leaf where the profile has a tuple."""
    if type(profile) is tuple and dice.random() > 0.02:
        return tuple([like(dice, x, pool) for x in profile])
    return tree(dice, pool, 0)


def pairs(seed: int, sizes: tuple[int, ...] = SIZES) -> list[tuple[Any, Any]]:
    dice = random.Random(seed)
    shapes = [tree(dice, sizes if i % 2 else SMALL) for i in range(COUNT)]
    return [(shape, like(dice, shape, STEPS)) for shape in shapes]


def layouts(seed: int) -> list[Layout]:
    found = []
    for shape, stride in pairs(seed):
        try:
            found.append(Layout(shape, stride))
        except CuteError:  # not congruent
            continue
    return found


def outcome(call: Callable[[], Any]) -> str:
    """A result with the kinds of its numbers, or the refusal."""
    try:
        return repr(call())
    except CuteError as error:
        return f"{type(error).__name__}: {error}"


def agree(got: str, want: str) -> bool:
    """A size of 0 that an int is split over has a text of its own, and may come before another refusal."""
    return got == want or ("over a mode of size 0" in got and "Error: " in want)


def taken(results: list[Any]) -> None:
    """Each of the two paths was taken by many."""
    second = sum(result is not None for result in results)
    assert len(results) / 10 < second < len(results) * 0.97


def test_compact_strides() -> None:
    shapes = [shape for shape, _ in pairs(1)]
    for shape in shapes:
        assert outcome(lambda s=shape: Layout(s).stride) == outcome(
            lambda s=shape: to_public(compact_left(to_internal(s))[0])
        )
    taken([compact_numbers(shape) for shape in shapes])


def test_what_counts_as_known_numbers_is_what_the_general_constructor_takes_as_it_is() -> None:
    for shape, stride in pairs(2):
        if are_numbers(shape, stride) is not None:
            sizes, steps = to_internal(shape), to_internal(stride)
            assert repr((shape, stride)) == repr((to_public(sizes), to_public(steps)))
            assert cute.congruent(shape, stride)


def test_symbols_are_taken_as_the_general_constructor_takes_them() -> None:
    n, m = sympy.symbols("n m")
    many = (n, n, m, 2 * m + 1, n * m, Int(4), 8, Int(1), 0, -3)
    few = (
        sympy.Integer(4),
        n / 2,
        sympy.Rational(1, 2),
        sympy.oo,
        n * (1 << 200),
        sympy.Matrix([n]),
        n < m,
        sympy.Float(2),
    )
    dice = random.Random(11)

    def leaf(_: Any) -> Any:
        return dice.choice(few) if dice.random() < 0.1 else dice.choice(many)

    kept = 0
    for i in range(COUNT // 3):
        profile = tree(dice, SMALL, i % 3)
        shape, stride = map_leaves(leaf, profile), map_leaves(leaf, profile)

        def general(shape: Any = shape, stride: Any = stride) -> Any:
            return to_public(_checked_shape(to_internal(shape))), to_public(to_internal(stride))

        def quick(shape: Any = shape, stride: Any = stride) -> Any:
            layout = Layout(shape, stride)
            return layout.shape, layout.stride

        assert outcome(quick) == outcome(general)
        kept += are_numbers(shape, stride) is not None
    assert 100 < kept < 700


def test_size_and_product() -> None:
    for shape, _ in pairs(3):
        want = outcome(lambda s=shape: to_public(product_of(to_internal(s))))
        assert outcome(lambda s=shape: cute.size(s)) == want
        assert outcome(lambda s=shape: cute.product(s)) == want
    for layout in layouts(4):
        assert outcome(lambda a=layout: cute.size(a)) == outcome(lambda a=layout: to_public(product_of(a._shape)))


def test_cosize() -> None:
    for layout in layouts(5):
        want = outcome(lambda a=layout: to_public(product_of(coshape_of(a._shape, a._stride))))
        assert outcome(lambda a=layout: cute.cosize(a)) == want


def test_offsets_at_tuples_and_at_ints() -> None:
    dice = random.Random(6)
    for layout in layouts(7):
        for c in (like(dice, layout.shape, INDICES), dice.choice(INDICES), Int(dice.choice(SMALL))):
            want = outcome(lambda a=layout, c=c: to_public(crd2idx_of(coordinate(c), a._shape, a._stride)))
            assert agree(outcome(lambda a=layout, c=c: a(c)), want)
            assert agree(outcome(lambda a=layout, c=c: cute.crd2idx(c, a.shape, a.stride)), want)


def test_coordinates_of_indices() -> None:
    dice = random.Random(8)
    for shape, _ in pairs(9):
        i = dice.choice(INDICES)
        want = outcome(lambda s=shape, i=i: to_public(idx2crd_colex(to_internal(i), to_internal(s))))
        assert outcome(lambda s=shape, i=i: cute.idx2crd(i, s)) == want


def test_inner_products() -> None:
    for a, b in pairs(10):
        for x, y in ((a, b), (b, a)):
            want = outcome(lambda x=x, y=y: to_public(inner_product_of(to_internal(x), to_internal(y))))
            assert outcome(lambda x=x, y=y: cute.inner_product(x, y)) == want


def unknown(thing: Any) -> Any:
    """The same layout, or tiler, as one that nobody has looked at: the general path takes it."""
    if isinstance(thing, tuple):
        return tuple([unknown(x) for x in thing])
    if not isinstance(thing, Layout):
        return thing
    same = Layout(thing.shape, thing.stride)
    object.__setattr__(same, "_assumptions", ())
    return same


def small_layout(dice: random.Random, static: float, depth: int = 2) -> Layout:
    """A layout of small modes, many of which follow one another; each number is static with a probability."""
    reached = [1]

    def number(n: int) -> int:
        return Int(n) if dice.random() < static else n

    def mode(depth: int) -> tuple[Any, Any]:
        if depth and dice.random() < 0.6:
            parts = [mode(depth - 1) for _ in range(dice.choice((0, 1, 2, 2, 2, 3, 3)))]
            return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
        size = dice.choice((1, 2, 2, 2, 3, 4, 4, 6, 8) if dice.random() < 0.96 else (0, 1 << 128))
        step = dice.choice(reached) if dice.random() < 0.8 else dice.choice((0, 0, 1, 2, 3, 12, -1, 1 << 128))
        reached.append(reached[-1] * max(size, 1))
        return number(size), number(max(min(step, MAX_INTEGER), -MAX_INTEGER))

    return Layout(*mode(depth))


def tilers(dice: random.Random, layout: Layout, static: float) -> list[Any]:
    """A layout, a size, and a tuple of them."""

    def one() -> Any:
        n = dice.choice((0, 1, 2, 2, 3, 4))
        choices = (small_layout(dice, static, 1), Int(n), n, None, cute._, Layout(Int(2), Int(1)), Layout(2, 1))
        return dice.choice(choices)

    return [
        small_layout(dice, static, 1),
        one(),
        tuple([one() for _ in range(dice.randint(1, int(cute.rank(layout)) + 1))]),
    ]


UNARY = ("coalesce", "filter", "right_inverse", "left_inverse", "nullspace", "complement")
BINARY = (
    *("composition", "logical_divide", "zipped_divide", "tiled_divide", "flat_divide", "logical_product"),
    *("zipped_product", "blocked_product", "raked_product", "complement", "append", "make_layout"),
)


def everything(result: Any) -> str:
    """A layout, and what its modes and sizes come to."""
    if not isinstance(result, Layout):
        return repr(result)
    inner = (cute.layout.leaf.tree_text(result._shape), cute.layout.leaf.tree_text(result._stride))
    return f"{result!r} {inner} {cute.is_static(result)} {outcome(lambda: result[0])} {outcome(lambda: result(3))}"


@pytest.mark.parametrize("static", [1.0, 0.0, 0.5])
def test_the_algebra_of_known_numbers(static: float) -> None:
    dice = random.Random(int(12 + 4 * static))
    second = 0
    for _ in range(COUNT // 6):
        layout = small_layout(dice, static)
        calls = [(name, ()) for name in UNARY]
        calls += [(name, (tiler,)) for tiler in tilers(dice, layout, static) for name in BINARY]
        calls.append(("complement", (Int(dice.choice((0, 1, 24, 96))),)))
        for name, others in calls:
            operation = getattr(cute, name)
            want = outcome(lambda f=operation, a=(layout, *others): everything(f(*unknown(a))))
            assert outcome(lambda f=operation, a=(layout, *others): everything(f(*a))) == want, (name, layout, others)
            second += "Error: " not in want
    assert second > COUNT


def columns(dice: random.Random, count: int) -> dict[str, Any]:
    """Fields of `count` maps; some of them break a rule."""
    return {
        "data_type": 6,
        "global_address": [dice.choice((16, 4096, 1 << 40, 1 << 40, 8)) * dice.randint(1, 9) for _ in range(count)],
        "global_dim": [(dice.choice((64, 512, 1 << 20)), dice.randint(1, 1000)) for _ in range(count)],
        "global_strides": [(dice.choice((128, 1024, 1 << 24)),) for _ in range(count)],
        "box_dim": [(dice.choice((8, 64)), dice.choice((1, 64, 256, 257))) for _ in range(count)],
        "swizzle": [dice.randint(0, 3) for _ in range(count)],
    }


@pytest.mark.parametrize("single", [lambda x: x, lambda x: np.array([x]), np.array], ids=["plain", "one row", "array"])
def test_one_map_is_a_row_of_many(single: Callable[[Any], Any]) -> None:
    legal = 0
    for seed in range(60):
        many = columns(random.Random(seed), 6)
        for i in range(6):
            mine = {name: value if name == "data_type" else value[i] for name, value in many.items()}
            seven = {name: value if name == "data_type" else [value] * 7 for name, value in mine.items()}
            alone = {name: value if name == "data_type" else single(value) for name, value in mine.items()}
            try:
                want = cute.tma.encode_many(seven)[0].tobytes()
            except CuteError as error:
                with pytest.raises(type(error)):
                    cute.tma.encode_many(alone)
                continue
            legal += 1
            assert cute.tma.encode_many(alone).tobytes() == want
    assert 60 < legal < 340
