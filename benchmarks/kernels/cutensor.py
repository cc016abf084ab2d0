"""cuTENSOR's permutation through ctypes: the peer of copies between two orders, where its library is given by path."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

TYPES: Final = {1: (8, "32F"), 2: (14, "32F"), 4: (0, "32F"), 8: (1, "64F"), 16: (5, "64F")}
"""Element bytes -> cudaDataType_t and the compute descriptor: uint8, bfloat16, float32, float64, complex128."""
ALPHA: Final[dict[str, Any]] = {"32F": (ctypes.c_float * 2)(1, 0), "64F": (ctypes.c_double * 2)(1, 0)}
ALIGNMENT: Final = 128
DEFAULT_ALGORITHM: Final = -1
IDENTITY: Final = 1


class CuTensor:
    """The library (version 2), and a handle. Raises OSError where it can't be loaded, RuntimeError where it fails."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._handle = ctypes.c_void_p()
        if self._call("cutensorCreate", ctypes.byref(self._handle)):
            raise RuntimeError("cutensorCreate failed")

    def _call(self, name: str, *arguments: Any) -> int:
        return int(getattr(self._library, name)(*arguments))

    def _descriptor(self, sizes: Sequence[int], strides: Sequence[int], kind: int) -> ctypes.c_void_p:
        found, lists = ctypes.c_void_p(), ctypes.c_int64 * len(sizes)
        places = lists(*sizes), lists(*strides), ctypes.c_int(kind), ctypes.c_uint32(ALIGNMENT)
        self._call("cutensorCreateTensorDescriptor", self._handle, ctypes.byref(found), len(sizes), *places)
        return found

    def permutations(
        self, width: int, shape: tuple[int, ...], order: tuple[int, ...]
    ) -> list[Callable[[int, int], None]]:
        """Copies (source address, destination address) of a row-major array into its permuted order, on stream 0.

        Without the library's own compilation and with it, as far as it takes the case.
        """
        kind, compute = TYPES[width]
        there = [shape[i] for i in order]
        rows = [[math.prod(sizes[i + 1 :]) for i in range(len(sizes))] for sizes in (shape, there)]
        modes = ctypes.c_int32 * len(shape)
        a, b = self._descriptor(shape, rows[0], kind), self._descriptor(there, rows[1], kind)
        operation = ctypes.c_void_p()
        by = ctypes.c_void_p.in_dll(self._library, f"CUTENSOR_COMPUTE_DESC_{compute}")
        sides = a, modes(*range(len(shape))), IDENTITY, b, modes(*order), by
        if self._call("cutensorCreatePermutation", self._handle, ctypes.byref(operation), *sides):
            return []
        found = []
        for compiled in (0, 1):
            preference, plan = ctypes.c_void_p(), ctypes.c_void_p()
            wanted = ctypes.byref(preference), ctypes.c_int(DEFAULT_ALGORITHM), ctypes.c_int(compiled)
            self._call("cutensorCreatePlanPreference", self._handle, *wanted)
            made = ctypes.byref(plan), operation, preference, ctypes.c_uint64(0)
            if not self._call("cutensorCreatePlan", self._handle, *made):
                found.append(self._permutation(plan, compute))
        return found

    def _permutation(self, plan: ctypes.c_void_p, compute: str) -> Callable[[int, int], None]:
        def permute(source: int, destination: int) -> None:
            places = ctypes.c_void_p(source), ctypes.c_void_p(destination), ctypes.c_void_p(0)
            if self._call("cutensorPermute", self._handle, plan, ctypes.byref(ALPHA[compute]), *places):
                raise RuntimeError("cutensorPermute failed")

        return permute
