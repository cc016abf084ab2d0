"""Permutations with extents that are rarely powers of two, beside memcpys of as many bytes, on a GPU.

    PYTHONPATH=. python3 -m benchmarks.permutations 19940417 61 71
    PYTHONPATH=. python3 -m benchmarks.permutations --tune 19940417     with the fastest of several tiles

Each seed draws 60 permutations of rank 2 to 7, of 64, 256 or 512 MiB, with elements of 1 to 16 bytes. A time is the
median of several rounds of two launches, with two pairs of buffers; the memcpy of as many bytes is timed in the same
way, right after the copy. Each result is compared with PyTorch's, bit for bit. Needs PyTorch.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from functools import partial
from typing import Any, Final, NamedTuple

from benchmarks.relayout import Bench
from cute_py.copies.prepared import prepare_copy
from cute_py.copies.tune import tuned_copy

COUNT, ROUNDS, LOW = 60, 7, 60.0
"""Permutations of a seed; rounds of a time; percent of a memcpy's speed below which a permutation is listed."""
WIDTHS: Final = (1, 2, 2, 4, 4, 8, 16)


class Permutation(NamedTuple):
    """An array of this shape, its axes in the order of the copy, and the bytes of an element."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    width: int

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape))} ({','.join(map(str, self.axes))}) {self.width} B"


def permutations(seed: int, count: int = COUNT) -> list[Permutation]:
    """Draw permutations; the same ones for a seed.

    >>> print(permutations(19940417)[0])
    32x32x83x24x128 (0,4,1,3,2) 1 B
    """
    dice, found = random.Random(seed), list[Permutation]()
    while len(found) < count:
        width, rank = dice.choice(WIDTHS), dice.randint(2, 7)
        left, shape = dice.choice((1 << 26, 1 << 28, 1 << 29)) // width, []
        for at in range(rank - 1):
            size = max(1, min(int(left ** (1 / (rank - at)) * dice.uniform(0.3, 3)), 300))
            shape.append(dice.choice((size, 1 << size.bit_length() - 1, size | 1)))
            left //= shape[-1]
        shape.append(max(1, left))
        dice.shuffle(shape)
        axes = list(range(rank))
        dice.shuffle(axes)
        if axes != sorted(axes):
            found.append(Permutation(tuple(shape), tuple(axes), width))
    return found


def percent(bench: Bench, one: Permutation, tune: bool = False) -> float:
    """Percent of the speed of a memcpy of as many bytes. Raises AssertionError if a byte is wrong."""
    torch: Any = bench.torch
    count, size = math.prod(one.shape), math.prod(one.shape) * one.width
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}[one.width]
    flat = bench.pool.view(torch.uint8)[:size]
    x = flat.view(kind)[:count].view(one.shape).permute(one.axes)
    outs = [torch.empty(size, device="cuda", dtype=torch.uint8) for _ in range(2)]
    prepare = tuned_copy if tune else prepare_copy
    prepared = [prepare(x, out.view(kind).view(x.shape), device=bench.device) for out in outs]
    ours = bench.time([copy.launch for copy in prepared], ROUNDS)
    want = x.contiguous().view(-1).view(torch.uint8)
    assert torch.equal(outs[0], want) and torch.equal(outs[1], want), f"wrong bytes: {one}"
    return 100 * bench.time([partial(out.copy_, flat) for out in outs], ROUNDS) / ours


def print_row(name: str, found: list[float]) -> None:
    below = sum(value < LOW for value in found)
    print(f"| {name} | {statistics.geometric_mean(found):.1f} | {min(found):.1f} | {below} |", flush=True)


def main() -> None:
    bench, low, by_width = Bench(ROUNDS, rated=False), list[str](), dict[int, list[float]]()
    print("| seed | geometric mean, % | minimum | below 60 |\n|---|---|---|---|")
    tune = "--tune" in sys.argv
    for seed in [int(word) for word in sys.argv[1:] if word != "--tune"] or [19940417]:
        drawn = permutations(seed)
        found = [percent(bench, one, tune) for one in drawn]
        low += [f"{value:.1f} {one}" for one, value in zip(drawn, found, strict=True) if value < LOW]
        for one, value in zip(drawn, found, strict=True):
            by_width.setdefault(one.width, []).append(value)
        print_row(str(seed), found)
    for width, found in sorted(by_width.items()):
        print_row(f"{width} B, {len(found)}", found)
    print(*low, sep="\n")


if __name__ == "__main__":
    main()
