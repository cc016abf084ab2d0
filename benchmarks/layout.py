"""Speed of the layout algebra beside two Python peers, of bulk evaluation beside hand-written numpy, and of symbols.

    python -m benchmarks.layout [result.json]

Peers: pycute (part of the package nvidia-cutlass; another, unrelated package bears the name pycute) and
tensor-layouts 0.3.2, in an environment made for the benchmark only:

    python -m venv bench && bench/bin/pip install nvidia-cutlass==4.2.0.0 tensor-layouts==0.3.2 -e .

Every operation runs once on each of `COUNT` distinct layouts, made anew before each turn, so that nothing that an
object keeps answers. Before it is timed its result is compared with the peers' as a function; layouts on which a peer
refuses or differs are left out, and a peer that is left with fewer than `LEAST` of them is left out of the row.

Bounds, of our time / the faster peer's: 1.2 for an operation, 2.0 for an accessor, and 0.75 and 1.2 for the geometric
means of both. Constructing a layout, which checks here and not in pycute, has its own bound. `offsets` is bounded by
numpy written by hand, `import cute_py` by `import numpy`.
"""

from __future__ import annotations

import functools
import math
import operator
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cute_py as cute
from benchmarks.beside import MILLISECONDS, Row, condensed, medians, medians_of, ratio, report, time_of

COUNT, LEAST, TURNS, SHORT_TURNS = 60, 20, 15, 75
Pair = tuple[Any, Any]
"""(shape, stride) as plain ints."""


def flat(tree: Any) -> list[int]:
    return [y for x in tree for y in flat(x)] if isinstance(tree, tuple) else [tree]


def filled(tree: Any, items: Any) -> Any:
    return tuple(filled(t, items) for t in tree) if isinstance(tree, tuple) else next(items)


def distinct(profile: Any, pool: list[int], seed: int) -> list[Pair]:
    """`COUNT` different compact layouts of a profile, modes in every order."""
    generator = random.Random(seed)
    found: dict[Pair, None] = {}
    while len(found) < COUNT:
        count = len(flat(profile))
        sizes, steps, end = [generator.choice(pool) for _ in range(count)], [0] * count, 1
        for i in generator.sample(range(count), count):
            steps[i], end = end, end * sizes[i]
        found[filled(profile, iter(sizes)), filled(profile, iter(steps))] = None
    return list(found)


@dataclass(frozen=True)
class Case:
    """Layouts of one profile, and what goes with them."""

    name: str
    pairs: list[Pair]
    tile: Pair
    coord: Any
    construct: float
    """The bound of constructing one, as a multiple of pycute's time."""


CASES = (
    Case("rank 2", distinct((0, 0), list(range(8, 65, 2)), 1), ((2, 2), (1, 4)), (3, 2), 5.0),
    Case(
        "3x3",
        distinct(((0, 0, 0), (0, 0, 0), (0, 0, 0)), [2, 4, 8], 2),
        ((2, (2, 2)), (1, (2, 4))),
        ((1, 1, 0), (1, 0, 1), (0, 1, 1)),
        18.0,
    ),
    Case("8 modes", distinct((0,) * 8, [2, 4, 8], 3), ((2, 2), (1, 2)), (1, 0, 1, 1, 0, 1, 0, 1), 18.0),
)


def peers() -> dict[str, Any]:
    """The importable peers, by name and version."""
    found = {}
    try:
        import pycute

        if hasattr(pycute, "right_inverse"):
            found["pycute 4.2"] = pycute
    except ImportError:
        pass
    try:
        import tensor_layouts

        found[f"tensor-layouts {tensor_layouts.__version__}"] = tensor_layouts
    except ImportError:
        pass
    return found


class Side:
    """What one library makes of a case: `static` is whether our numbers are `Int`."""

    def __init__(self, library: Any, case: Case, static: bool) -> None:
        self.library, self.case = library, case
        self.number: Callable[[int], int] = cute.Int if library is cute and static else int

    def tree(self, tree: Any) -> Any:
        return tuple([self.tree(t) for t in tree]) if isinstance(tree, tuple) else self.number(tree)

    def layout(self, pair: Pair) -> Any:
        return self.library.Layout(self.tree(pair[0]), self.tree(pair[1]))

    @property
    def tile(self) -> Any:
        return self.layout(self.case.tile)


Operation = tuple[Callable[[Any], Callable[..., Any]], Callable[[Side, Pair], tuple[Any, ...]]]
"""(library -> what is called, (side, layout) -> fresh arguments)."""


def named(*names: str) -> Callable[[Any], Callable[..., Any]]:
    """The function that a library has under the first of these names."""
    return lambda library: next(getattr(library, name) for name in names if hasattr(library, name))


def python(call: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """The same built-in function for every library."""
    return lambda _: call


def read(name: str) -> Callable[[Any], Callable[..., Any]]:
    """What reads an attribute, a code of its own for each library: the interpreter adapts a place to the one class that
    it meets there."""
    return lambda _: eval(f"lambda layout: layout.{name}")  # type: ignore[no-any-return]


def one(side: Side, pair: Pair) -> tuple[Any, ...]:
    return (side.layout(pair),)


def and_tile(side: Side, pair: Pair) -> tuple[Any, ...]:
    return side.layout(pair), side.tile


def tile_first(side: Side, pair: Pair) -> tuple[Any, ...]:
    return side.tile, side.layout(pair)


def and_tiler(side: Side, pair: Pair) -> tuple[Any, ...]:
    return side.layout(pair), tuple([side.library.Layout(side.number(2), side.number(1)) for _ in pair[0]])


def and_target(side: Side, pair: Pair) -> tuple[Any, ...]:
    return side.layout(pair), side.number(4 * math.prod(flat(pair[0])))


def with_swizzle(side: Side, pair: Pair) -> tuple[Any, ...]:
    return side.library.Swizzle(2, 0, 3), side.layout(pair)


def at(coordinate: Callable[[Side], Any]) -> Callable[[Side, Pair], tuple[Any, ...]]:
    return lambda side, pair: (side.layout(pair), coordinate(side))


def static_coordinate(side: Side) -> Any:
    """Ours as `Int`."""
    return Side(side.library, side.case, True).tree(side.case.coord)


def numpy_coordinate(side: Side) -> Any:
    def numbers(tree: Any) -> Any:
        return tuple([numbers(t) for t in tree]) if isinstance(tree, tuple) else np.int64(tree)

    return numbers(side.case.coord)


def trees(side: Side, pair: Pair) -> tuple[Any, ...]:
    return side.tree(pair[0]), side.tree(pair[1])


ALGEBRA: dict[str, Operation] = {
    "composition": (named("composition", "compose"), and_tile),
    "composition, tiler": (named("composition", "compose"), and_tiler),
    "coalesce": (named("coalesce"), one),
    "filter": (named("filter"), one),
    "complement": (named("complement"), and_target),
    "right_inverse": (named("right_inverse"), one),
    "left_inverse": (named("left_inverse"), one),
    "logical_divide": (named("logical_divide"), and_tile),
    "logical_divide, tiler": (named("logical_divide"), and_tiler),
    "zipped_divide, tiler": (named("zipped_divide"), and_tiler),
    "tiled_divide, tiler": (named("tiled_divide"), and_tiler),
    "logical_product": (named("logical_product"), tile_first),
    "zipped_product": (named("zipped_product"), tile_first),
    "blocked_product": (named("blocked_product"), tile_first),
    "raked_product": (named("raked_product"), tile_first),
    "flat_divide, tiler": (named("flat_divide"), and_tiler),
    "nullspace": (named("nullspace"), one),
    "composition(swizzle, L)": (named("composition", "compose", "ComposedLayout"), with_swizzle),
}
ACCESSORS: dict[str, Operation] = {
    "==": (python(operator.eq), lambda side, pair: (side.layout(pair), side.layout(pair))),
    "!=": (python(operator.ne), lambda side, pair: (side.layout(pair), side.tile)),
    "hash": (python(hash), one),
    "str": (python(str), one),
    "repr": (python(repr), one),
    "shape": (read("shape"), one),
    "stride": (read("stride"), one),
    "size": (named("size"), one),
    "cosize": (named("cosize"), one),
    "L(tuple)": (python(operator.call), at(lambda side: side.case.coord)),
    "L(int)": (python(operator.call), at(lambda _: 37)),
    "L(0)": (python(operator.call), at(lambda _: 0)),
    "L(zeros)": (python(operator.call), at(lambda side: filled(side.case.coord, iter(lambda: 0, 1)))),
    "L(Int...)": (python(operator.call), at(static_coordinate)),
    "L(numpy...)": (python(operator.call), at(numpy_coordinate)),
    "L[1]": (python(operator.getitem), lambda side, pair: (side.layout(pair), 1)),
    "L(None, 0..)": (python(operator.call), at(lambda side: (None, *[0] * (len(side.case.coord) - 1)))),
    "crd2idx": (named("crd2idx"), lambda side, pair: (side.case.coord, *trees(side, pair))),
    "crd2idx of an int": (named("crd2idx"), lambda side, pair: (37, *trees(side, pair))),
    "idx2crd": (named("idx2crd"), lambda side, pair: (37, side.tree(pair[0]))),
    "product": (named("product"), lambda side, pair: (side.tree(pair[0]),)),
    "inner_product": (named("inner_product"), trees),
    "Layout(shape, stride)": (named("Layout"), trees),
    "Layout(shape)": (named("Layout"), lambda side, pair: (side.tree(pair[0]),)),
    "Swizzle(3,3,3)": (named("Swizzle"), lambda side, pair: (3, 3, 3)),
    "swizzle(offset)": (python(operator.call), lambda side, pair: (side.library.Swizzle(3, 3, 3), pair[1][0])),
    "swizzled(tuple)": (
        python(operator.call),
        lambda side, pair: (
            named("composition", "compose", "ComposedLayout")(side.library)(*with_swizzle(side, pair)),
            side.case.coord,
        ),
    ),
}


def values(result: Any) -> Any:
    """A result as what can be compared: a layout as its first 512 values and its size, a number as an int."""
    if isinstance(result, (str, bool)) or result is None:
        return result if isinstance(result, bool) else ""
    if isinstance(result, (int, np.integer)):
        return int(result)
    if isinstance(result, tuple):
        return tuple(map(values, result))
    if not callable(result) or not hasattr(result, "shape"):
        return type(result).__name__
    size = math.prod(flat(result.shape))
    return [int(result(i)) for i in range(min(int(size), 512))] + [int(size)]


def outcome(operation: Operation, side: Side, pair: Pair) -> Any:
    call, arguments = operation
    try:
        return values(call(side.library)(*arguments(side, pair)))
    except (cute.errors.CuteError, AssertionError, ValueError, TypeError, StopIteration, AttributeError, IndexError):
        return None


def beside_peers(name: str, operation: Operation, case: Case, static: bool, libraries: dict[str, Any]) -> list[Row]:
    """The row of an operation on a case, or none where no peer computes the same."""
    ours, call = Side(cute, case, static), operation[0]
    pairs = [(pair, want) for pair in case.pairs if (want := outcome(operation, ours, pair)) is not None]
    sides = {"cute_py": ours}
    for label, library in libraries.items():
        side = Side(library, case, False)
        same = [(pair, want) for pair, want in pairs if name == "hash" or outcome(operation, side, pair) == want]
        unhashable = name == "hash" and library.Layout.__hash__ is None
        if len(same) >= LEAST and not unhashable:
            pairs, sides[label] = same, side
    if len(sides) == 1:
        return []
    work = [
        (lambda side=side: [operation[1](side, pair) for pair, _ in pairs], call(side.library))
        for side in sides.values()
    ]
    ours_s, *theirs = medians_of(TURNS if name in ALGEBRA else SHORT_TURNS, *work)  # type: ignore[arg-type]
    others = dict(zip(list(sides)[1:], theirs, strict=True))
    label = f"{name}, {case.name} {'Int' if static else 'int'}"
    rows = []
    if name == "Layout(shape, stride)":
        for peer, taken in others.items():
            rows.append(ratio(label, ours_s, {peer: taken}, case.construct if "pycute" in peer else 0.5))
        return rows
    bound = 1.2 if name in ALGEBRA else 2.0
    rows.append(ratio(label, ours_s, others, bound))
    if name == "==" and case.name == "rank 2":
        rows.append(time_of(f"{label}, alone", ours_s, 0.3))
    return rows


def algebra(libraries: dict[str, Any]) -> list[Row]:
    rows = []
    for group, operations, bound in (("algebra", ALGEBRA, 0.75), ("accessors", ACCESSORS, 1.2)):
        mine: list[Row] = []
        for name, operation in operations.items():
            for case in CASES:
                for static in (True, False):
                    mine += beside_peers(name, operation, case, static, libraries)
        compared = [row.figure for row in mine if row.theirs and not row.what.startswith("Layout(")]
        rows += mine
        if compared:
            mean = math.exp(math.fsum(map(math.log, compared)) / len(compared))
            rows.append(Row(f"geometric mean of {len(compared)} rows: {group}", 0.0, {"peers": 0.0}, mean, bound))
    return rows


# ---- offsets ---------------------------------------------------------------------------------------------------------


def by_hand(n: int) -> dict[str, tuple[Any, Callable[[], Any], float]]:
    """n x n layouts, the numpy that a person would write for each, and the bound."""
    i = np.arange(n)
    row = cute.Layout((n, n), (n, 1))
    nested = cute.Layout(((8, n // 8), (8, n // 8)), ((1, 64), (8, 8 * n)))

    def plain() -> Any:
        return i[:, None] * n + i[None, :]

    def folded() -> Any:
        m = (np.arange(n // 8)[:, None] * 64 + np.arange(8)[None, :]).reshape(-1)
        k = (np.arange(n // 8)[:, None] * (8 * n) + np.arange(8)[None, :] * 8).reshape(-1)
        return m[:, None] + k[None, :]

    def swizzled() -> Any:
        x = plain()
        return x ^ ((x & (7 << 6)) >> 3)

    def stacked() -> Any:
        table = np.empty((n, n, 2), np.int64)
        table[..., 0], table[..., 1] = i[:, None], i
        return table

    small = 3.0 if n < 1024 else None
    return {
        "row-major": (row, plain, small or 1.15),
        "nested": (nested, folded, small or 1.15),
        "swizzled": (cute.composition(cute.Swizzle(3, 3, 3), row), swizzled, small or 1.15),
        "identity": (cute.make_identity_tensor((n, n)), stacked, small or 1.3),
    }


def bulk() -> list[Row]:
    rows = []
    for n in (64, 1024, 2048):
        for name, (layout, hand, bound) in by_hand(n).items():
            if not np.array_equal(cute.offsets(layout), hand()):
                raise SystemExit(f"offsets of {layout} are not what the hand-written numpy gives")
            ours, theirs = medians(301 if n < 1024 else 31, functools.partial(cute.offsets, layout), hand)
            rows.append(ratio(f"offsets, {name} {n} x {n}", ours, {"numpy": theirs}, bound))
    row, nested = cute.Layout((1024, 1024), (1024, 1)), cute.Layout(((8, 128), (8, 128)), ((1, 64), (8, 8192)))
    i, j = np.random.default_rng(0).integers(0, 1024, (2, 1 << 20))

    def plain() -> Any:
        return i * 1024 + j

    def folded() -> Any:
        return i % 8 + i // 8 * 64 + j % 8 * 8 + j // 8 * 8192

    for name, layout, hand in (("row-major", row, plain), ("nested", nested, folded)):
        if not np.array_equal(cute.offsets(layout, (i, j)), hand()):
            raise SystemExit(f"offsets of {layout} at coordinates are not what the hand-written numpy gives")
        ours, theirs = medians(31, functools.partial(cute.offsets, layout, (i, j)), hand)
        rows.append(ratio(f"offsets at 2**20 coordinates, {name}", ours, {"numpy": theirs}, 1.5))
    return rows


def deep() -> Row:
    """The exponent of the time of a call by an int over the depth of the layout."""

    def layout(depth: int) -> Any:
        shape: Any = 2
        stride: Any = 1
        for k in range(1, depth):
            shape, stride = (shape, 2), (stride, 1 << k)
        return cute.static(cute.Layout(shape, stride))

    depths = (8, 32)
    calls = [functools.partial(layout(depth), 5) for depth in depths]
    short, long = medians(301, *calls)
    grown = math.log(long / short) / math.log(depths[1] / depths[0])
    return Row(f"exponent of L(int) over depths {depths}", long * 1e6, {"depth 8": short * 1e6}, grown, 1.1)


# ---- symbols, texts and pictures -------------------------------------------------------------------------------------


def symbols(libraries: dict[str, Any]) -> list[Row]:
    import sympy

    sizes, steps = sympy.symbols("a b c d", positive=True, integer=True), sympy.symbols("p q r s", integer=True)
    rows = []
    for label, library in libraries.items():
        if "pycute" in label:
            call = [functools.partial(lib.Layout, sizes[:2], steps[:2]) for lib in (cute, library)]
            ours, theirs = medians(301, *call)
            rows.append(ratio("Layout of symbols, rank 2", ours, {label: theirs}, 2.0))
    left = cute.Layout(sizes, steps)
    right = cute.Layout(cute.Int(4), cute.Int(2))
    number = iter(range(10_000))

    def fresh() -> list[tuple[Any, ...]]:  # sympy keeps what it has simplified: new symbols each time
        k = next(number)
        names = sympy.symbols(" ".join(f"{c}{k}" for c in "abcd"), positive=True, integer=True)
        return [(cute.Layout(names, steps), right)]

    cute.composition(left, right)
    (taken,) = medians_of(TURNS, (fresh, cute.composition))
    rows.append(time_of("flat composition of 4 symbolic modes", taken, 5.0, MILLISECONDS))
    return rows


def texts() -> list[Row]:
    tensor, square = cute.make_identity_tensor((512, 512)), cute.Layout((64, 64), (64, 1))
    printed, drawn = medians(5, lambda: cute.format_tensor(tensor), lambda: cute.draw.draw_layout(square).svg)
    rows = [time_of("format_tensor of 512 x 512 coordinates, a cell", printed / (1 << 18), 2.0)]
    return [*rows, time_of("draw_layout of 64 x 64 as SVG", drawn, 100.0, MILLISECONDS)]


def imports() -> Row:
    """A fresh interpreter's import, less an empty one's: the best of several."""

    def seconds(statement: str) -> float:
        best = math.inf
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    empty = seconds("pass")
    ours, theirs = seconds("import cute_py") - empty, seconds("import numpy") - empty
    return ratio("import cute_py", ours, {"import numpy": theirs}, 1.6, MILLISECONDS)


def main() -> int:
    found = peers()
    rows = [*algebra(found), *bulk(), deep(), *symbols(found), *texts(), imports()]
    path = sys.argv[1] if len(sys.argv) > 1 else None
    return report("Layout algebra: time beside the peers", "python -m benchmarks.layout", rows, path, shown=condensed)


if __name__ == "__main__":
    raise SystemExit(main())
