"""Record what a GPU leaves of the random programs of tests/machine/random_programs.py, and compare the machine with it.

    python -m tests.oracle.record.random_programs FOLDER [modules a family] [programs a module] [families, with commas]
    python -m tests.oracle.record.random_programs compare FOLDER

The first needs cuda-python and a GPU of compute capability 9.0. It writes `digests.npz`, a CRC-32 of every step's 32
words, and `outputs.npz`, all words of the first 300 programs of each family. A digest of zeros is not recorded.

Each module has a process, and each program of it a stream of its own. After `LIMIT_SECONDS` the process ends, whatever
still runs; the programs that had no result go on in two halves, down to one program, which is reported.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tests.machine.random_programs import FAMILIES, INPUTS, PROGRAMS_A_SEED, STEPS, THREADS, inputs, module

KEPT = 300
MODULES = 100
LIMIT_SECONDS = 5.0
PROCESS_SECONDS = 60.0
PROCESSES = 14
NOT_READY = 600
CONTEXT = multiprocessing.get_context("spawn")


def _check(result):
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA error {status!r}")
    return values[0] if len(values) == 1 else values


def _launched(job):
    """Launch the programs of a job; (indices that ended, the words that they leave)."""
    from cuda.bindings import driver

    family, seed, programs = job
    _check(driver.cuInit(0))
    _check(driver.cuCtxSetCurrent(_check(driver.cuDevicePrimaryCtxRetain(_check(driver.cuDeviceGet(0))))))
    words, out = inputs(seed), np.zeros((len(programs), STEPS, THREADS), np.uint64)
    text = module(family, seed, programs[-1] + 1 - programs[0], programs[0])
    loaded = _check(driver.cuModuleLoadData(text.encode() + b"\0"))
    source, target = _check(driver.cuMemAlloc(words.nbytes)), _check(driver.cuMemAlloc(out.nbytes))
    _check(driver.cuMemcpyHtoD(source, words.ctypes.data, words.nbytes))
    _check(driver.cuMemsetD8(target, 0, out.nbytes))
    _check(driver.cuCtxSynchronize())
    streams = [_check(driver.cuStreamCreate(1)) for _ in programs]
    for i, (program, stream) in enumerate(zip(programs, streams, strict=True)):
        entry = _check(driver.cuModuleGetFunction(loaded, f"p{program}".encode()))
        a, b = np.array([int(source)], np.uint64), np.array([int(target) + i * out[0].nbytes], np.uint64)
        pointers = np.array([a.ctypes.data, b.ctypes.data], np.uint64)
        _check(driver.cuLaunchKernel(entry, 1, 1, 1, THREADS, 1, 1, 0, stream, pointers.ctypes.data, 0))
    end = time.monotonic() + LIMIT_SECONDS
    ended = []
    for i, stream in enumerate(streams):
        while int(status := driver.cuStreamQuery(stream)[0]) == NOT_READY and time.monotonic() < end:
            time.sleep(0)
        if int(status) == NOT_READY:
            continue
        _check((status,))
        place = int(target) + i * out[0].nbytes
        _check(driver.cuMemcpyDtoHAsync(out[i].ctypes.data, place, out[0].nbytes, stream))
        _check(driver.cuStreamSynchronize(stream))
        ended.append(programs[i])
    return ended, out[[programs.index(one) for one in ended]]


def _child(job, channel) -> None:
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"
    try:
        channel.send(("", *_launched(job)))
    except Exception as error:
        channel.send((repr(error), [], None))
    os._exit(0)  # what still runs would block an ordinary end


def run(job):
    """(family, seed, programs) -> [(program, words of its steps)], and what is said of those without a result."""
    family, seed, programs = job
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_child, args=(job, theirs))
    process.start()
    error, ended, words = ours.recv() if ours.poll(PROCESS_SECONDS) else ("no answer", [], None)
    process.join(1)
    process.kill()
    found, said = list(zip(ended, words, strict=True)) if ended else [], []
    rest = [one for one in programs if one not in ended]
    if len(rest) == 1 and len(programs) == 1:
        said.append(f"{family} {seed} {rest[0]}: {error or 'did not end'}")
    elif rest:
        for part in filter(None, (rest[: len(rest) // 2], rest[len(rest) // 2 :])):
            more, why = run((family, seed, part))
            found += more
            said += why
    return found, said


def record(folder: Path, modules: int, programs: int, families: list[str]) -> None:
    assert INPUTS == 8
    jobs = [(family, seed, list(range(programs))) for family in families for seed in range(modules)]
    digests = {family: np.zeros((modules * programs, STEPS), np.uint32) for family in families}
    kept = {family: np.zeros((KEPT, STEPS, THREADS), np.uint64) for family in families}
    recorded = 0
    with ThreadPoolExecutor(PROCESSES) as pool:
        for (family, seed, _), (found, said) in zip(jobs, pool.map(run, jobs), strict=True):
            for one in said:
                print(one, flush=True)
            for program, words in found:
                at = seed * programs + program
                digests[family][at] = [zlib.crc32(words[step].tobytes()) for step in range(STEPS)]
                if at < KEPT:
                    kept[family][at] = words
            recorded += len(found)
    np.savez_compressed(folder / "digests.npz", **digests)
    np.savez_compressed(folder / "outputs.npz", **kept)
    print(f"{recorded} of {len(jobs) * programs} programs recorded")


def _differs(job):
    """The steps of a program whose words on the machine have other digests than those recorded."""
    import cute_py as cute

    family, number, digests = job
    seed, place = divmod(number, PROGRAMS_A_SEED)
    words, out = inputs(seed), np.zeros((STEPS, THREADS), np.uint64)
    text = module(family, seed, 1, place)
    ended = cute.run_ptx(text, grid=1, block=THREADS, args=(words, out), schedule="eager", judge=False)
    if not ended.ok:
        return family, number, list(range(STEPS))
    return family, number, [step for step in range(STEPS) if zlib.crc32(out[step].tobytes()) != digests[step]]


def compare(folder: Path) -> None:
    with np.load(folder / "digests.npz") as held:
        jobs = [(family, at, row) for family in held for at, row in enumerate(held[family]) if row.any()]
    wrong = 0
    with CONTEXT.Pool() as pool:
        for family, number, steps in pool.imap_unordered(_differs, jobs, chunksize=50):
            if steps:
                wrong += 1
                print(f"{family} {number}: steps {steps} differ", flush=True)
    print(f"{wrong} of {len(jobs)} recorded programs differ")


def main() -> None:
    words = sys.argv[1:]
    if words[0] == "compare":
        compare(Path(words[1]))
        return
    modules = int(words[1]) if len(words) > 1 else MODULES
    programs = int(words[2]) if len(words) > 2 else PROGRAMS_A_SEED
    record(Path(words[0]), modules, programs, words[3].split(",") if len(words) > 3 else list(FAMILIES))


if __name__ == "__main__":
    main()
