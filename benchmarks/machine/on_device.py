"""Kernels of the machine's tests on a GPU: `run_on_device` takes the arguments of `run_ptx`, and the driver runs them.

    python -m benchmarks.machine.on_device later OUT.txt       tests of later forms, calls and fragments
    python -m benchmarks.machine.on_device cutlass OUT.npz     what kernels of CUTLASS and wmma leave of random numbers
    python -m benchmarks.machine.on_device compare OUT.npz     the same kernels on the machine, beside those results

The first two need libcuda and a GPU of compute capability 9.0. A kernel that does not end within its limit ends the
process.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cute_py.machine.code import find_kernel
from cute_py.machine.launch import Arguments, triple
from cute_py.machine.memory import Memory
from cute_py.ptx.source import read_module

LIMIT_SECONDS = 10.0
NOT_READY = 600
CLUSTER_DIMENSION = 4
DYNAMIC_SHARED = 8


class Attribute(ctypes.Structure):
    """CUlaunchAttribute with the dimensions of a cluster."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("sizes", ctypes.c_uint * 6), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    )  # fmt: skip


@functools.cache
def driver() -> ctypes.CDLL:
    """libcuda with a current context."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    for name, arguments in (
        ("cuInit", (0,)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)),
        ("cuCtxSetCurrent", (context,)),
    ):
        check(name, getattr(cuda, name)(*arguments))
    return cuda


def check(name: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{name}: CUDA error {code}")


def call(name: str, *arguments: object) -> None:
    check(name, getattr(driver(), name)(*arguments))


def run_on_device(
    text: str,
    *,
    grid: Any = 1,
    block: Any = None,
    cluster: Any = None,
    args: Sequence[Any] = (),
    kernel: str | None = None,
    dynamic_shared: int = 0,
    **_: object,
) -> SimpleNamespace:
    """A kernel as `run_ptx` runs it; arrays hold afterwards what it left."""
    found = find_kernel(read_module(text), kernel)
    arguments = Arguments(found.parameters, args)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
    call("cuModuleGetFunction", ctypes.byref(function), module, found.name.encode())
    call("cuFuncSetAttribute", function, DYNAMIC_SHARED, dynamic_shared)
    held, address = [], {}
    for _name, raw, members in arguments._groups:
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(raw.nbytes, 16)))
        call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(raw.ctypes.data), ctypes.c_size_t(raw.nbytes))
        held.append((pointer, raw))
        address.update({member: pointer.value + offset for member, offset in members.items()})
    contents = []
    for place, (one, value) in enumerate(zip(found.parameters, arguments.values, strict=True)):
        content = arguments._bytes(f"argument {place}", one, value, address, Memory())
        aligned = np.zeros(len(content) + 128, np.uint8)
        start = -aligned.ctypes.data % 128
        aligned[start : start + len(content)] = np.frombuffer(content, np.uint8)
        contents.append((aligned, aligned.ctypes.data + start))
    listed = (ctypes.c_void_p * max(len(contents), 1))(*[start for _, start in contents])
    threads = found.triple("reqntid") if block is None else triple(block, "block")
    attribute = Attribute(CLUSTER_DIMENSION, 0)
    wanted = None if cluster is None or found.triple("reqnctapercluster") else triple(cluster, "cluster")
    attribute.value[:3] = wanted or (1, 1, 1)
    configuration = Configuration(
        (ctypes.c_uint * 6)(*triple(grid, "grid"), *(threads or (1, 1, 1))), dynamic_shared, None,
        ctypes.addressof(attribute), 1 if wanted else 0,
    )  # fmt: skip
    call("cuLaunchKernelEx", ctypes.byref(configuration), function, listed, None)
    end = time.monotonic() + LIMIT_SECONDS
    while (code := driver().cuStreamQuery(None)) == NOT_READY:
        if time.monotonic() > end:
            print(f"{found.name} did not end within {LIMIT_SECONDS} s", flush=True)
            os._exit(3)
        time.sleep(0.0002)
    check("cuStreamQuery", code)
    for pointer, raw in held:
        if raw.flags.writeable:
            call("cuMemcpyDtoH_v2", ctypes.c_void_p(raw.ctypes.data), pointer, ctypes.c_size_t(raw.nbytes))
        call("cuMemFree_v2", pointer)
    call("cuModuleUnload", module)
    return SimpleNamespace(ok=True, diagnostics=(), explain=lambda: "", raise_for_diagnostics=lambda: None)


def later(out: Path) -> None:
    """The tests of forms that few compilers write, with the device in place of the machine."""
    import cute_py
    from tests.machine import forms, test_calls, test_fragments, test_later_forms

    cute_py.run_ptx = forms.run_ptx = run_on_device  # type: ignore[assignment]
    later_forms, calls = test_later_forms, test_calls
    jobs: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = []
    for table in (0x00, 0x80, 0x96, 0xE8, 0x1B):
        jobs += [("lop3", later_forms.test_lop3_with_a_predicate, (how, table)) for how in ("and", "or")]
    jobs += [
        ("red.async", later_forms.test_reductions_in_the_shared_memory_of_a_neighbour, (form, "eager"))
        for form in later_forms.REDUCED
    ]
    for shape, kinds in test_fragments.FORMS:
        jobs += [
            ("wmma", test_fragments.test_a_product_of_fragments, (shape, kinds, orders, space))
            for orders, space in ((("row", "col", "row"), "global"), (("col", "row", "col"), "shared"))
        ]
    jobs += [("call", calls.test_a_function_that_calls_itself_twice, ("eager",))]
    jobs += [("call", calls.test_two_functions_that_call_each_other_write_through_pointers_to_their_variables, ())]
    jobs += [("call", calls.test_calls_through_a_table_of_functions, ())]
    with out.open("w") as lines:
        for name, test, arguments in jobs:
            try:
                inspect.unwrap(test)(*arguments)  # one row of a test of many
                said = "equal"
            except Exception as error:
                said = "".join(traceback.format_exception_only(error)).strip()[:400]
            lines.write(f"{name} {test.__name__} {arguments}: {said}\n")
            lines.flush()


def cutlass_results(run: Callable[..., Any]) -> dict[str, Any]:
    """C of each of CUTLASS's kernels for random numbers, by the runner that is given."""
    import cute_py
    from tests.machine import cutlass_launch

    cute_py.run_ptx = run  # type: ignore[assignment]
    found: dict[str, Any] = {}
    for name, row in cutlass_launch.launches().items():
        arrays = cutlass_launch.random_allocations(name, row)
        start = time.monotonic()
        ended = cutlass_launch.run(row, arrays, "eager")
        assert ended.ok, ended.explain()
        print(name, f"{time.monotonic() - start:.2f} s", flush=True)
        for number, array in enumerate(cutlass_launch.results(row, arrays)):
            found[f"{name}:{number}"] = array
    return found


def fragment_results(run: Callable[..., Any]) -> dict[str, Any]:
    """D of each form of wmma for random numbers."""
    from tests.machine import test_fragments as forms

    found: dict[str, Any] = {}
    for shape, kinds in forms.FORMS:
        arrays = forms.random_operands(shape, kinds)
        text = forms.text(shape, kinds, ("row", "row", "row"), "global")
        ended = run(text, args=arrays)
        assert ended.ok, ended.explain()
        found[f"wmma {shape} {' '.join(kinds)}"] = arrays[3].view(np.uint8)
    return found


def results(run: Callable[..., Any]) -> dict[str, Any]:
    return fragment_results(run) | cutlass_results(run)


def main() -> None:
    command, path = sys.argv[1], Path(sys.argv[2])
    if command == "later":
        later(path)
    elif command == "cutlass":
        np.savez_compressed(path, **results(run_on_device))
    else:
        from cute_py import run_ptx

        known = np.load(path)
        for name, array in results(run_ptx).items():
            wrong = int(np.count_nonzero(known[name] != array))
            print(f"{name}: {wrong} of {array.nbytes} bytes differ")


if __name__ == "__main__":
    main()
