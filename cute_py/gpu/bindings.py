"""Import cuda-core and cuda-bindings at their first use, and convert their errors. No other module imports them.

`core` provides devices, the compiler and its cache, and loaded kernels. `driver` provides driver functions that
cuda-core lacks: contexts of other libraries, plain memory, and launches with tensor maps made by cute_py
(docs/architecture.md gives the reason for each). Every driver call goes through `call`, and every use of cuda-core is
inside `reported`. Both turn an error code into a `DeviceError` with the name of the code and of the failed step.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from enum import IntEnum
from types import ModuleType
from typing import Any

from cute_py.errors import CuteError, DeviceError, imported
from cute_py.errors import first_line as first_line

_INSTALL = "pip install 'cute-py[gpu]'"


def _load(module: str, feature: str, package: str = "cuda-python, version 13 or newer") -> ModuleType:
    return imported(module, feature, package, _INSTALL, named=True)


@functools.cache
def driver() -> ModuleType:
    """Return the module cuda.bindings.driver.

    Raises:
        MissingPackageError: cuda-python is not installed.
    """
    return _load("cuda.bindings.driver", "running on a GPU")


@functools.cache
def nvrtc() -> ModuleType:
    """Return the module cuda.bindings.nvrtc.

    Raises:
        MissingPackageError: cuda-python is not installed.
    """
    return _load("cuda.bindings.nvrtc", "compiling kernels")


@functools.cache
def core() -> ModuleType:
    """Return the module cuda.core. It is imported when a device is opened, so its import (0.1 s) does not delay a copy.

    Raises:
        MissingPackageError: cuda-core is not installed.
    """
    return _load("cuda.core", "running on a GPU", "cuda-core, version 1.2 or newer")


_ADVICE = {
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an inner coordinate that is not a multiple of 16 bytes, a negative coordinate "
    "of a store, a reduction that the format does not support, or an im2col base outside its bounding box",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "a box that overruns shared memory, or an address outside every allocation",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "a shared-memory address, a map or a bulk copy that is not aligned",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "the display watchdog ended the kernel",
}
"""The likely cause of each error of a kernel of this library; measured on NVIDIA H200, driver 580.159.04."""

STICKY = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
    }
)
"""Errors that make a context unusable."""


def driver_failure(code: IntEnum | str, doing: str) -> DeviceError:
    """Make the error for a step `doing` that failed with `code`: a CUresult, an nvrtcResult, or the name of one."""
    name = getattr(code, "name", str(code))
    facts: dict[str, object] = {"code": name}
    if name in _ADVICE:
        facts["causes"] = _ADVICE[name]
    hint = None
    if name in STICKY:
        facts["context"] = "this process can't use it again"
        hint = "run it with isolate=True, in a separate process"
    return DeviceError(f"{doing}: {name}", facts, hint)


def not_loaded(doing: str, function: str, problem: RuntimeError) -> DeviceError:
    """Make the error for a `function` whose shared library is missing."""
    return DeviceError(
        f"{doing}: can't load the library that provides {function}",
        {"cause": first_line(problem)},
        hint="install the NVIDIA driver; for NVRTC, " + _INSTALL,
    )


@contextlib.contextmanager
def reported(doing: str) -> Iterator[None]:
    """Convert exceptions of cuda-core in the block to a `DeviceError`; its message begins with the name of the driver's
    error code."""
    try:
        yield
    except CuteError:
        raise
    except Exception as problem:  # cuda-core's CUDAError has no public name
        raise driver_failure(str(problem).partition(":")[0], doing) from None


def call(doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a cuda.bindings function, check its error code, and return its other results: None, one value or a tuple.

    Raises:
        DeviceError: the code is not success, or the library that provides the function can't be loaded.
    """
    try:
        code, *values = function(*arguments)
    except RuntimeError as problem:
        raise not_loaded(doing, function.__name__, problem) from None
    if int(code) != 0:
        raise driver_failure(code, doing)
    return values[0] if len(values) == 1 else tuple(values) or None
