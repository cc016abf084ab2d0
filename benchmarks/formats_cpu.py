"""Casts and quantisation on a CPU beside PyTorch and torchao, with the same number of threads.

    python -m benchmarks.formats_cpu [result.json]

Casts of 1 Mi to 64 Mi random normal float32 numbers, and MXFP8, MXFP4 and NVFP4 of a random matrix of float32 and of
bfloat16. The programs take turns; a time is the best of several rounds. PyTorch is eager; torchao has the formats.
Both need to be installed. The last rows are the calls of numpy in one batch of a cast.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import cute_py as cute
from benchmarks.beside import MILLISECONDS, Row, ratio, report, time_of
from cute_py import formats
from cute_py.formats import numbers
from cute_py.formats import threads as shared

SIZES = (20, 22, 24, 26)
"""Casts of 2 to these powers of elements."""
SIDE = 4096
"""Rows and columns of a quantised matrix."""
ROUNDS, ELEMENTS = 7, 1 << 27
"""The least rounds of one row; elements that all rounds of a row read, if these are more rounds."""
PAUSE = 0.02
"""Seconds before a work with several threads: PyTorch's threads wait actively for a few milliseconds after a work. This
thread waits actively too, because a processor that sleeps takes long to wake up."""
BOUND = 1.0


def best(count: int, *works: Callable[[], Any]) -> list[float]:
    """Seconds of each, taking turns, for works that read `count` elements."""
    times: list[list[float]] = [[] for _ in works]
    rounds = max(ROUNDS, ELEMENTS // count) if shared.MOST_THREADS == 1 else ROUNDS
    for _ in range(rounds + 2):
        for work, taken in zip(works, times, strict=True):
            begin = time.perf_counter()
            while shared.MOST_THREADS > 1 and time.perf_counter() < begin + PAUSE:
                pass
            begin = time.perf_counter()
            made = work()
            taken.append(time.perf_counter() - begin)
            del made
    return [min(taken[2:]) for taken in times]


def casts() -> Iterator[tuple[str, int, Callable[[], Any], Callable[[], Any]]]:
    """Yield (name, number of elements, function of cute_py, function of PyTorch) for each cast."""
    import torch

    for power in SIZES:
        x = np.random.default_rng(0).standard_normal(1 << power).astype(np.float32)
        theirs = torch.from_numpy(x)
        for name, dtype in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
            yield (
                f"{1 << power - 20} Mi float32 to {name}",
                x.size,
                lambda x=x, name=name: formats.cast(x, name),  # type: ignore[misc]
                lambda theirs=theirs, dtype=dtype: theirs.to(dtype),  # type: ignore[misc]
            )


def quantisations() -> Iterator[tuple[str, int, Callable[[], Any], Callable[[], Any]]]:
    """Yield (name, number of elements, function of cute_py, function of torchao, or of PyTorch for a cast)."""
    import torch
    from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

    e4m3, e2m1 = torch.float8_e4m3fn, torch.float4_e2m1fn_x2
    floor, rceil = ScaleCalculationMode.FLOOR, ScaleCalculationMode.RCEIL
    x = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)
    whole = torch.from_numpy(x)
    total = per_tensor_amax_to_scale(whole.abs().max())
    for name, mine, theirs in (
        ("float32", x, whole),
        ("bfloat16", x.astype(ml_dtypes.bfloat16), whole.to(torch.bfloat16)),
    ):

        def here(form: formats.Format, mine: Any = mine) -> Callable[[], Any]:
            return lambda: cute.copy(mine, form)

        def there(work: Callable[..., Any], *arguments: Any, theirs: Any = theirs) -> Callable[[], Any]:
            return lambda: work(theirs, *arguments)

        linear = {"scales": "linear"}
        for what, ours, other in (
            ("MXFP8, floor", here(formats.mxfp8(rule="floor", **linear)), there(to_mx, e4m3, 32, floor)),
            ("MXFP8, rceil", here(formats.mxfp8(**linear)), there(to_mx, e4m3, 32, rceil)),
            ("MXFP4, floor", here(formats.mxfp4(rule="floor", **linear)), there(to_mx, e2m1, 32, floor)),
            ("NVFP4", here(formats.nvfp4(**linear)), there(nvfp4_quantize, 16, total)),
        ):
            yield f"{what}, {name} {SIDE} x {SIDE}", x.size, ours, other
        if name == "bfloat16":
            yield (
                f"cast to e4m3, {name} {SIDE} x {SIDE}",
                x.size,
                lambda mine=mine: formats.cast(mine, "e4m3"),  # type: ignore[misc]
                lambda theirs=theirs: theirs.to(e4m3),  # type: ignore[misc]
            )


def operations() -> Iterator[Row]:
    """The calls of numpy that a cast of float32 to e4m3 makes for each batch, whose times bound that of the cast."""
    count = numbers.BATCH
    x = np.random.default_rng(0).standard_normal(ELEMENTS // 8).astype(np.float32)
    rounding = numbers.rounding_of(formats.number("e4m3"), x.dtype, True)
    size_of, total, sign, negative = rounding.buffers(count)
    out = np.empty(count, np.uint8)
    parts = [x[at : at + count] for at in range(0, x.size, count)]
    calls: dict[str, Callable[[NDArray[np.float32]], Any]] = {
        "magnitudes, of float32 in memory": lambda part: np.bitwise_and(
            part.view(np.uint32), rounding.magnitude, out=size_of
        ),
        "signs": lambda part: np.signbit(part, out=negative),
        "largest magnitude": lambda _: np.maximum.reduce(size_of),
        "limits of the exponent": lambda _: np.clip(size_of, rounding.smallest, rounding.top, out=total),
        "exponent": lambda _: np.right_shift(total, rounding.mantissa, out=total),
        "product": lambda _: np.multiply(total, rounding.step, out=total),
        "bits of C": lambda _: np.add(total, rounding.start, out=total),
        "sum": lambda _: np.add(size_of.view(np.float32), total.view(np.float32), out=total.view(np.float32)),
        "bytes": lambda _: np.copyto(out, total, casting="unsafe"),
        "sign bits": lambda _: np.multiply(negative.view(np.uint8), rounding.sign, out=sign),
        "codes": lambda _: np.bitwise_or(out, sign, out=out),
    }
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for part in parts:
        for name, call in calls.items():
            begin = time.perf_counter()
            call(part)
            taken[name].append(time.perf_counter() - begin)
    for name, times in taken.items():
        yield time_of(f"{name}, {count >> 10} Ki elements", float(np.median(times)), None)


def rows() -> Iterator[Row]:
    """Every work with one thread, and with as many as there are processors."""
    import torch

    for threads in dict.fromkeys((1, os.cpu_count() or 1)):
        torch.set_num_threads(threads)
        shared.MOST_THREADS = threads
        for works, peer in ((casts, "PyTorch"), (quantisations, "torchao")):
            for what, count, ours, theirs in works():
                with mock.patch.object(os, "cpu_count", lambda threads=threads: threads):
                    mine, other = best(count, ours, theirs)
                named = "PyTorch" if what.startswith("cast") else peer
                what += ", 1 thread" if threads == 1 else f", {threads} threads"
                yield ratio(what, mine, {named: other}, BOUND, MILLISECONDS)


def main() -> int:
    import torch
    import torchao

    notes = f"PyTorch {torch.__version__}, torchao {torchao.__version__}."
    path = sys.argv[1] if len(sys.argv) > 1 else None
    return report(
        "Casts and quantisation on a CPU", "python -m benchmarks.formats_cpu", [*rows(), *operations()], path, notes
    )


if __name__ == "__main__":
    sys.exit(main())
