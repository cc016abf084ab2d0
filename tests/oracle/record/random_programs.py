"""Record what a GPU leaves of the random programs of tests/machine/random_programs.py.

    python -m tests.oracle.record.random_programs FOLDER [modules a family] [programs a module] [families, with commas]

Needs cuda-python and a GPU of compute capability 9.0. Writes `digests.npz`, a CRC-32 of every step's 32 words, and
`outputs.npz`, all words of the first 300 programs of each family. Modules are compiled and run in parallel processes,
and each launch has a time limit; a process whose launch did not end runs no more.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from tests.machine.random_programs import FAMILIES, INPUTS, STEPS, THREADS, inputs, module

KEPT = 300
MODULES, PROGRAMS = 100, 100
LIMIT_SECONDS = 5.0
NOT_READY = 600


def _check(result):
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA error {status!r}")
    return values[0] if len(values) == 1 else values


def _start():
    from cuda.bindings import driver

    global DRIVER
    DRIVER = driver
    _check(driver.cuInit(0))
    device = _check(driver.cuDeviceGet(0))
    _check(driver.cuCtxSetCurrent(_check(driver.cuDevicePrimaryCtxRetain(device))))


def _wait():
    """Until the launch has ended."""
    global STUCK
    end = time.monotonic() + LIMIT_SECONDS
    while int(status := DRIVER.cuStreamQuery(0)[0]) == NOT_READY:
        if time.monotonic() > end:
            STUCK = True
            raise RuntimeError(f"a launch did not end within {LIMIT_SECONDS} s")
        time.sleep(0)
    _check((status,))


STUCK = False
"""Whether a launch of this process did not end."""


def run(job):
    """(family, seed, count) -> the words that each program leaves, (count, STEPS, THREADS) of 64 bits."""
    if STUCK:
        return job, "an earlier launch of the process did not end", None
    family, seed, count = job
    words = inputs(seed)
    out = np.zeros((count, STEPS, THREADS), np.uint64)
    try:
        loaded = _check(DRIVER.cuModuleLoadData(module(family, seed, count).encode() + b"\0"))
        source, target = _check(DRIVER.cuMemAlloc(words.nbytes)), _check(DRIVER.cuMemAlloc(out.nbytes))
        _check(DRIVER.cuMemcpyHtoD(source, words.ctypes.data, words.nbytes))
        _check(DRIVER.cuMemsetD8(target, 0, out.nbytes))
        for i in range(count):
            entry = _check(DRIVER.cuModuleGetFunction(loaded, f"p{i}".encode()))
            a = np.array([int(source)], np.uint64)
            b = np.array([int(target) + i * out[0].nbytes], np.uint64)
            pointers = np.array([a.ctypes.data, b.ctypes.data], np.uint64)
            _check(DRIVER.cuLaunchKernel(entry, 1, 1, 1, THREADS, 1, 1, 0, 0, pointers.ctypes.data, 0))
            _wait()
        _check(DRIVER.cuMemcpyDtoH(out.ctypes.data, target, out.nbytes))
        _check(DRIVER.cuMemFree(source))
        _check(DRIVER.cuMemFree(target))
        _check(DRIVER.cuModuleUnload(loaded))
    except Exception as error:
        return job, repr(error), None
    return job, "", out


def main() -> None:
    folder = Path(sys.argv[1])
    modules = int(sys.argv[2]) if len(sys.argv) > 2 else MODULES
    programs = int(sys.argv[3]) if len(sys.argv) > 3 else PROGRAMS
    assert INPUTS == 8
    families = sys.argv[4].split(",") if len(sys.argv) > 4 else list(FAMILIES)
    jobs = [(family, seed, programs) for family in families for seed in range(modules)]
    digests = {family: np.zeros((modules * programs, STEPS), np.uint32) for family in families}
    kept = {family: np.zeros((KEPT, STEPS, THREADS), np.uint64) for family in families}
    failed = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(14, _start, maxtasksperchild=200) as pool:
        for job, error, out in pool.imap_unordered(run, jobs, chunksize=1):
            family, seed, count = job
            if error:
                failed.append((job, error))
                print(job, error, flush=True)
                continue
            for i in range(count):
                at = seed * count + i
                digests[family][at] = [zlib.crc32(out[i, step].tobytes()) for step in range(STEPS)]
                if at < KEPT:
                    kept[family][at] = out[i]
    np.savez_compressed(folder / "digests.npz", **digests)
    np.savez_compressed(folder / "outputs.npz", **kept)
    print(len(jobs), "modules,", len(failed), "failed")


if __name__ == "__main__":
    main()
