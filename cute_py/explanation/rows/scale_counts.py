"""Compare the numbers of scales in an error message with the sizes of the matrix product.

    scales of (M, K), V elements per scale, in 32_4_4:   round_up(M, 128) * round_up(ceil(K / V), 4)

A message has the expected and the actual number of scales. Each number corresponds to certain sizes of the product; the
sizes in the pasted text decide which of the two numbers is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cute_py.formats.format import mxfp8, nvfp4

TILE: Final = 128 * 4
"""Scales of a tile: 128 rows x 4 scales."""
_MOST_SIZES: Final = 8
"""Pairs of sizes that a line lists."""
MOST_DIGITS: Final = 12
"""Maximum number of digits of a number of scales."""
_LARGEST: Final = 1 << 32
_SIZE: Final = re.compile(r"(?<![\w.])(?P<name>[MNK])\s?[=:]\s?(?P<size>[0-9]{1,10})\b")
_SIXTEEN: Final = re.compile(r"nvfp4|\bNV\b|ue4m3|1x16|block(?:_?size)?\s?[=:]?\s?16\b", re.IGNORECASE)
_THIRTY_TWO: Final = re.compile(r"mxfp|\bMX\b|ue8m0|1x32|block(?:_?size)?\s?[=:]?\s?32\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ScaleCounts:
    """The result of comparing the expected and the actual number of scales.

    Attributes:
        meaning: lines with the sizes that each number corresponds to, and with the right number for the sizes in the
            text.
        padded: whether the actual number already includes padding.
        expected: False if the expected number is not one of the order, or if the sizes in the text need another one,
            so that padding can't help.
        sizes: the sizes that were read, as 'M = 384, K = 1024'. places: (begin, end) of each size in the text.
    """

    meaning: tuple[str, ...]
    padded: bool
    sizes: str = ""
    places: tuple[tuple[int, int], ...] = ()
    expected: bool = True


def scale_counts(text: str, match: re.Match[str]) -> ScaleCounts:
    """Judge the expected and the actual number of scales, which are the first two groups of a match in `text`."""
    want, have = int(match[1]), int(match[2])
    found = {one["name"]: one for one in _SIZE.finditer(text)}
    name = "N" if "scale_b" in match[0] and "scale_a" not in match[0] else "M"
    places = tuple(found[key].span() for key in (name, "K") if key in found)
    said = ", ".join(f"{key} = {found[key]['size']}" for key in (name, "K") if key in found)
    sizes = {key: int(one["size"]) for key, one in found.items()}
    rows, depth = sizes.get(name, 0), sizes.get("K", 0)
    if not 0 < max(want, have) < _LARGEST or max(rows, depth) >= _LARGEST:
        return ScaleCounts((), False)
    blocks = [block for block, words in ((32, _THIRTY_TWO), (16, _SIXTEEN)) if words.search(text)] or [32, 16]
    if not rows or not depth:
        if want == have:
            return ScaleCounts((), True)
        lines = [_tiles(count) for count in (want, have) if count == want or count % TILE == 0]
        lines.append(f"add {name} and K to the text to learn which of the two numbers is right")
        return ScaleCounts((*lines, *_of_padding(have)), have % TILE == 0, expected=want % TILE == 0)
    right = {block: _size(rows, depth, block) for block in blocks}
    lines = [
        f"{name} = {rows} and K = {depth} with {block} elements per scale need {count} scales: "
        f"{_up(rows, 128)} rows x {_up(-(-depth // block), 4)}"
        for block, count in right.items()
    ]
    if want in right.values():
        unpadded = any(have == rows * -(-depth // block) for block in blocks)
        lines += [f"{have} scales are the {rows} rows without padding"] if unpadded else [_tiles(have)]
        return ScaleCounts(tuple(lines), not unpadded, said, places)
    if have in right.values():
        lines.append(f"{have} is the right number, so padding does not help: the call computes {want} from other sizes")
    block = next((block for block, count in right.items() if count == have), blocks[0])
    lines += _others(want, rows, depth, block, name)
    operand = "mat_b is (K, N)" if name == "N" else "mat_a is (M, K)"
    lines.append(f"look at the shape of the operand that the call receives: {operand}, and packed e2m1 has K / 2 bytes")
    return ScaleCounts(tuple(lines), have in right.values() or have % TILE == 0, said, places, False)


def _size(rows: int, depth: int, block: int) -> int:
    form = mxfp8() if block == 32 else nvfp4()
    return int(form.scale_size(rows, depth))


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _of_padding(have: int) -> Iterator[str]:
    if have % TILE:
        yield f"{have} is not a multiple of {TILE}, the scales of a tile, so these scales are not padded"


def _tiles(count: int) -> str:
    """One line with the padded sizes that a number of scales corresponds to."""
    if count % TILE or not count:
        return f"no sizes have {count} scales in this order: they come in tiles of {TILE}"
    tiles = count // TILE
    pairs = [(128 * n, 4 * (tiles // n)) for n in _divisors(tiles)]
    shown = ", ".join(f"{rows} x {scales}" for rows, scales in pairs[:_MOST_SIZES])
    rest = f" and {len(pairs) - _MOST_SIZES} more" if len(pairs) > _MOST_SIZES else ""
    return f"{count} scales belong to padded rows x scales per row of {shown}{rest}"


def _divisors(number: int) -> list[int]:
    low = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*low, *(number // n for n in low)})


def _others(want: int, rows: int, depth: int, block: int, name: str) -> Iterator[str]:
    """Lines with the sizes that an expected number corresponds to, if either M (or N) or K keeps its value."""
    if want % TILE:
        yield _tiles(want)
        return
    across, along = _up(-(-depth // block), 4), _up(rows, 128)
    other = want // across if want % (128 * across) == 0 else 0
    deep = want // along if want % (4 * along) == 0 else 0
    kept = f"K = {depth} and {name} = {other - 127} to {other}" if other else f"no {name} with K = {depth}"
    depths = f"{name} = {rows} and K = {block * (deep - 4) + 1} to {block * deep}"
    depths = depths if deep else f"no K with {name} = {rows}"
    yield f"{want} scales belong to {kept}, or to {depths} ({block} elements per scale)"
