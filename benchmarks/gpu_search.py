"""The sweep that the defaults of the executor were chosen from: `PYTHONPATH=. python3 -m benchmarks.gpu_search`.

Forms, tiles, stages and padding of contiguous copies of several sizes, of transpositions and of cluster loads, each
interleaved with cuMemcpyDtoD and verified before it is timed.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

from benchmarks.gpu import GIB, MIB, Bench
from benchmarks.gpu_peers import memcpy
from benchmarks.gpu_timing import Candidate, time_events, verify_all
from cute_py.copies.boxes import Tuning
from cute_py.copies.prepared_copy import PreparedCopy, Work
from cute_py.gpu.kernels.transpose import copy_transposed
from cute_py.gpu.launch import load_kernel
from cute_py.tma.descriptor.encode import encode


def named(t: Tuning) -> str:
    base = f"{t.form} {t.row_bytes} B x {t.rows}"
    how = f"{t.stages}/{t.stores}/{t.per_multiprocessor}" if t.form == "ring" else f"x{t.per_block} pad {t.pad_shared}"
    return f"{base} {how}{f' pitch {t.pitch}' * bool(t.pitch)}{' early' * t.early}{' hints' * t.hints}"


def contiguous(bench: Bench, size: int, pairs: int, tunings: list[Tuning]) -> None:
    torch = bench.torch
    buffers = bench.pairs(pairs, size // 32768, 16384)
    reference = bench.candidate("cuMemcpyDtoD", buffers, lambda i: memcpy(buffers[i][1], buffers[i][0], size, torch))
    made = [bench.ours(named(t), buffers, tuning=t) for t in tunings]
    candidates = [one for one in made if one is not None]
    verify_all(torch, candidates, 1)
    time_events(torch, [*(one for one in candidates if one.verified), reference], pairs, bench.rounds)
    bench.report(f"contiguous {size // MIB} MiB", [*candidates, reference], 2 * size, "cuMemcpyDtoD")


def rings() -> list[Tuning]:
    found = []
    for pitch, early in product((0, 32768), (False, True)):
        for rows, stages, stores, per in (
            (32, 2, 1, 1),
            (32, 3, 1, 1),
            (32, 4, 1, 1),
            (32, 3, 0, 1),
            (32, 4, 2, 1),
            (16, 4, 1, 1),
            (16, 6, 1, 1),
            (16, 3, 1, 2),
            (64, 2, 1, 1),
            (64, 2, 0, 1),
        ):
            found.append(Tuning("ring", 512, rows, stages, stores, per, pitch=pitch, early=early))
    return found


def shots() -> list[Tuning]:
    found = [
        Tuning("once", 512, rows, per_block=per, pad_shared=pad)
        for rows, per, pad in product((2, 4, 8), (1, 2), (0, 2048, 4096, 8192, 12288))
    ]
    return [*found, *(Tuning("once", 512, rows, pitch=32768) for rows in (4, 8, 16, 32))]


def transpositions(bench: Bench) -> None:
    torch = bench.torch
    bits = [
        (bench.random(32768, 16384), torch.empty(16384, 32768, device="cuda", dtype=torch.bfloat16)) for _ in range(4)
    ]
    turned = [(a.t(), b) for a, b in bits]
    flat = [(a.view(-1), b.view(-1)) for a, b in bits]
    base = bench.ours("default", turned)
    candidates: list[Candidate] = [] if base is None else [base]
    square = (128, 128)
    shapes = [(square, band, 512, False, 0, paired) for band in (1, 2, 4) for paired in (False, True)]
    shapes += [(square, 1, 256, False, 0, True), (square, 1, 512, False, 49152, True), (square, 1, 512, True, 0, True)]
    shapes += [(tile, 1, 256, False, 0, True) for tile in ((128, 64), (64, 128), (256, 64), (64, 256))]
    shapes += [(tile, 1, 512, True, 0, True) for tile in ((256, 128), (128, 256), square)]
    shapes += [(square, 2, 256, True, 49152, True), ((64, 256), 2, 256, False, 0, True)]
    for tile, band, threads, in_place, pad, paired in shapes:
        source = copy_transposed(
            32768, 16384, 2, tile=tile, band=band, threads=threads, in_place=in_place, pad_shared=pad, paired=paired
        )
        kernel = load_kernel(source, bench.device)
        prepared = [transposed(bench, kernel, tile, paired, a, b) for a, b in bits]

        def run(i: int, prepared: list[Any] = prepared) -> None:
            prepared[i].launch()

        per = kernel.blocks_per_multiprocessor()
        name = (
            f"{tile} band {band}, {threads} threads{' in place' * in_place}{' paired' * paired} pad {pad}, {per} a SM"
        )
        candidates.append(bench.candidate(name, turned, run))
    reference = bench.candidate("cuMemcpyDtoD", flat, lambda i: memcpy(flat[i][1], flat[i][0], GIB, torch))
    verify_all(torch, candidates, 1)
    time_events(torch, [*(one for one in candidates if one.verified), reference], 4, bench.rounds)
    bench.report("transpose bf16", [*candidates, reference], 2 * GIB, "cuMemcpyDtoD")


def transposed(bench: Bench, kernel: Any, tile: tuple[int, int], paired: bool, a: Any, b: Any) -> PreparedCopy:
    from cute_py.tma.descriptor.request import TensorMapTiled

    height, across = tile
    p, q = a.data_ptr(), b.data_ptr()
    maps = (
        TensorMapTiled(1, p, (16384, 32768), (32768,), (64, height), swizzle=3, l2_promotion=2),
        TensorMapTiled(1, q, (32768, 16384), (65536,), (64, across), swizzle=3, l2_promotion=2),
    )
    if paired:
        box, other = (64, across // 64, height), (64, height // 64, across)
        maps = (
            TensorMapTiled(1, p, (64, 256, 32768), (128, 32768), box, swizzle=3, l2_promotion=2),
            TensorMapTiled(1, q, (64, 512, 16384), (128, 65536), other, swizzle=3, l2_promotion=2),
        )
    blocks = 32768 // height * (16384 // across)
    return PreparedCopy(bench.device, [Work(kernel, (encode(maps[0]), encode(maps[1])), blocks)], GIB)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only-transpose", action="store_true")
    options = parser.parse_args()
    bench = Bench(options.rounds, True)
    if options.only_transpose:
        transpositions(bench)
        return
    contiguous(bench, GIB, 4, [*rings(), *shots()])
    transpositions(bench)
    best = [
        Tuning("once", 512, 8),
        Tuning("once", 512, 4),
        Tuning("once", 512, 4, pad_shared=4096),
        Tuning("ring", 512, 32, 3),
        Tuning("ring", 512, 32, 3, pitch=32768),
        Tuning("ring", 512, 32, 4),
    ]
    for size in (128 * MIB, 256 * MIB, 512 * MIB):
        contiguous(bench, size, 8, best)


if __name__ == "__main__":
    main()
