"""Emulated instructions and whole copies beside numpy programs written by hand.

    python -m benchmarks.emulator [result.json]

A single load of 16 KiB with a 128-byte swizzle beside a gather through an index made beforehand; reductions of 4 MiB of
every type, in 256 boxes, beside the same with numpy's own operators; the nine loads of a 3 x 3 im2col beside windows of
a padded tensor; copies of 64 MiB by tiles of 128 x 64 beside a program that gathers each tile into shared memory and
from there into the tensor. The bytes are compared before anything is timed.
"""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import numpy as np

from benchmarks.beside import MILLISECONDS, Row, medians, ratio, report
from cute_py.dtypes import as_dtype
from cute_py.tma.descriptor import TensorMapDataType, TensorMapIm2col, TensorMapTiled, encode, format_row
from cute_py.tma.emulator import Emulator
from cute_py.tma.emulator.values import REDUCTIONS

SIDE, BOX = 4096, 16384
"""Bytes of a row of the tensor, which has 1024; bytes of a box of 128 rows."""
LINE = np.arange(128)[:, None]
PLACE = np.arange(8) ^ (LINE % 8)
ENGINE = Emulator()


def require_equal(what: str, ours: Any, theirs: Any) -> None:
    if not np.array_equal(ours, theirs):
        raise SystemExit(f"{what}: the bytes are not those of the program by hand")


def load() -> Row:
    source, tile = np.random.default_rng(0).integers(0, 256, 1024 * SIDE, np.uint8), np.zeros(BOX, np.uint8)
    tensor_map = encode(TensorMapTiled(9, 0, (SIDE // 2, 1024), (SIDE,), (64, 128), swizzle=3))
    want = np.zeros(BOX, np.uint8)
    pieces, out = source.view("V16").reshape(1024, SIDE // 16), want.view("V16").reshape(128, 8)

    def by_hand() -> None:
        out[...] = pieces[128:256, 8:16][LINE, PLACE]

    def ours() -> None:
        ENGINE.load(tensor_map, source, (64, 128), tile)

    by_hand()
    ours()
    require_equal("load", tile, want)
    mine, theirs = medians(301, ours, by_hand)
    return ratio("single load of 16 KiB", mine, {"numpy": theirs}, 2.0)


def operate(op: str, is_float: bool, old: Any, new: Any) -> None:
    """`old` becomes `old OP new`."""
    plain = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add}
    plain |= {"min": np.fmin if is_float else np.minimum, "max": np.fmax if is_float else np.maximum}
    if op in plain:
        with np.errstate(all="ignore"):
            plain[op](old, new, out=old)
    elif op == "inc":
        old[...] = np.where(old >= new, 0, old + 1)
    else:
        old[...] = np.where((old == 0) | (old > new), new, old - 1)


def reduction(op: str, data_type: TensorMapDataType) -> Row:
    row = format_row(data_type)
    kind, size = as_dtype(row.dtypes[0]).numpy, row.bits // 8
    values = np.random.default_rng(1).standard_normal(1024 * SIDE // size) * 1000
    tensor = values.astype(kind if row.is_float else np.int64).astype(kind).view(np.uint8).copy()
    shared = tensor.copy()
    columns, wide = SIDE // size, 128 // size
    tensor_map = encode(TensorMapTiled(data_type, 0, (columns, 1024), (SIDE,), (wide, 128), swizzle=3))
    grid = np.stack(np.meshgrid(np.arange(0, columns, wide), np.arange(0, 1024, 128)), -1).reshape(-1, 2)
    offsets = np.arange(len(grid)) * BOX
    old = tensor.view(kind).reshape(8, 128, SIDE // 128, wide)
    tiles = shared.view("V16").reshape(8, SIDE // 128, 128, 8)

    def by_hand() -> None:
        rows = np.ascontiguousarray(tiles[:, :, LINE, PLACE].transpose(0, 2, 1, 3))
        operate(op, row.is_float, old, rows.view(np.uint8).view(kind).reshape(old.shape))

    def ours() -> None:
        ENGINE.store_many(tensor_map, tensor, grid, shared, smem_offsets=offsets, op=op)

    mine, theirs = medians(7, ours, by_hand)
    return ratio(f"{op} {data_type.name}, 4 MiB", mine, {"numpy": theirs}, 3.0)


def im2col() -> Row:
    images, high, wide, channels, pixels = 8, 32, 32, 64, 256
    source = np.random.default_rng(0).integers(0, 256, images * high * wide * channels * 2, np.uint8)
    strides = (channels * 2, channels * 2 * wide, channels * 2 * wide * high)
    dims = (channels, wide, high, images)
    tensor_map = encode(TensorMapIm2col(9, 0, dims, strides, (-1, -1), (-1, -1), channels, pixels, swizzle=3))
    bases = [(0, -1, y - 1, n) for n in range(images) for y in range(0, high, pixels // wide)]
    coords = np.array(bases * 9)
    filters = np.array([(s, r) for r in range(3) for s in range(3) for _ in bases])
    smem = np.zeros(len(coords) * pixels * channels * 2, np.uint8)
    places = np.arange(len(coords)) * (pixels * channels * 2)
    line = np.arange(images * high * wide)[:, None]
    place = np.arange(8) ^ (line % 8)
    want = np.zeros(smem.shape, np.uint8)
    out, image = want.view("V16").reshape(9, -1, 8), source.view("V16").reshape(images, high, wide, 8)

    def by_hand() -> None:
        padded = np.zeros((images, high + 2, wide + 2, 8), "V16")
        padded[:, 1:-1, 1:-1] = image
        for k in range(9):
            r, s = divmod(k, 3)
            out[k] = padded[:, r : r + high, s : s + wide].reshape(-1, 8)[line, place]

    def ours() -> None:
        ENGINE.load_many(tensor_map, source, coords, smem, smem_offsets=places, im2col_offsets=filters)

    by_hand()
    ours()
    require_equal("im2col", smem, want)
    mine, theirs = medians(9, ours, by_hand)
    return ratio("im2col 3 x 3, 9 MiB", mine, {"numpy": theirs}, 2.0)


def whole() -> list[Row]:
    rows, columns, windows = 8192, 4096, 128
    source = np.random.default_rng(0).integers(0, 256, rows * columns * 2, np.uint8)
    target, other = np.zeros_like(source), np.zeros_like(source)
    base, there = 0x7F00_0000_0000, 0x7F10_0000_0000
    maps = [
        encode(TensorMapTiled(9, at, (columns, rows), (columns * 2,), (64, 128), swizzle=3)) for at in (base, there)
    ]
    grid = np.stack(np.meshgrid(np.arange(0, columns, 64), np.arange(0, rows, 128)), -1).reshape(-1, 2)
    smem, offsets = np.zeros(windows * BOX, np.uint8), np.arange(windows) * BOX
    pieces, back = (array.view("V16").reshape(rows // 128, 128, columns // 64, 8) for array in (source, other))
    ring = np.zeros((columns // 64, 128, 8), "V16")

    def by_hand() -> None:
        for y in range(rows // 128):
            ring[...] = pieces[y].transpose(1, 0, 2)[:, LINE, PLACE]
            back[y].transpose(1, 0, 2)[:, LINE, PLACE] = ring

    def ours() -> None:
        ENGINE.copy_many(
            *(maps[0], source, grid, maps[1], target, grid, smem),
            smem_offsets=offsets,
            source_base=base,
            destination_base=there,
        )

    by_hand()
    ours()
    require_equal("copy", target, source)
    require_equal("copy by hand", other, source)
    mine, theirs = medians(7, ours, by_hand)
    tracemalloc.start()
    ours()
    peak = tracemalloc.get_traced_memory()[1] + 2 * source.nbytes
    tracemalloc.stop()
    memory = Row("memory of that copy / its tensors", 0.0, {"tensors": 0.0}, peak / (2 * source.nbytes), 3.0)
    return [ratio("copy of 64 MiB by 4096 tiles", mine, {"numpy": theirs}, 1.0, MILLISECONDS), memory]


def main() -> int:
    rows = [load(), im2col(), *whole()]
    rows += [reduction(op, t) for op, types in REDUCTIONS.items() for t in sorted(types)]
    path = sys.argv[1] if len(sys.argv) > 1 else None
    return report("Emulated instructions beside numpy by hand", "python -m benchmarks.emulator", rows, path)


if __name__ == "__main__":
    sys.exit(main())
