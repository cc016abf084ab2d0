"""tensormap.replace on the device: one field of a map in shared memory, written by the hardware itself.

A job names a case (field, ordinal, or the immediate value where the instruction takes only that) and the value; the
block copies the map into shared memory, replaces, and copies it back.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from benchmarks.kernels.rebind import replace_call
from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.source import KernelSource, make_kernel

REPLACE_JOB: Final = struct.Struct("<QQII")
"""Address of the map (128 bytes, read and written back); value; index of the case; padding."""

ORDINAL_FIELDS: Final = frozenset({"box_dim", "global_dim", "global_stride", "element_stride"})
IMMEDIATE_FIELDS: Final = frozenset({"elemtype", "interleave_layout", "swizzle_mode", "fill_mode"})
PLAIN_FIELDS: Final = frozenset({"global_address", "rank"})


@dataclass(frozen=True, slots=True)
class ReplaceCase:
    """One instruction: the field, its ordinal (modes or strides count from 0), the immediate value if it needs one."""

    field: str
    ordinal: int = 0
    immediate: int | None = None

    def call(self, address: str, value: str) -> str:
        """One inline-assembly statement that replaces the field of the map at a shared-memory `address`.

        >>> ReplaceCase("global_dim", 2).call("map", "size")[:80]
        'asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %'
        """
        if self.field in IMMEDIATE_FIELDS:
            text = f"tensormap.replace.tile.{self.field}.shared::cta.b1024.b32 [%0], {self.immediate};"
            return f'asm volatile("{text}" ::"r"({address}) : "memory");'
        return replace_call(self.field, address, value, self.ordinal if self.field in ORDINAL_FIELDS else None)


_BODY: Final = r"""
struct Job { u64 map, value; u32 which, spare; };
extern "C" __global__ void __launch_bounds__(THREADS) replace_fields(const Job* jobs) {
  __shared__ __align__(128) u64 words[16];
  const Job job = jobs[blockIdx.x];
  u64* map = reinterpret_cast<u64*>(job.map);
  if (threadIdx.x < 16) words[threadIdx.x] = map[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0) {
    const u32 address = shared_address(words);
    switch (job.which) {
%(cases)s
    }
  }
  __syncwarp();
  if (threadIdx.x < 16) map[threadIdx.x] = words[threadIdx.x];
}
"""


def replace_fields(cases: tuple[ReplaceCase, ...]) -> KernelSource:
    """The kernel that runs jobs whose `which` is an index into `cases`; one block of a warp a job.

    Raises:
        InvalidValueError: no cases, an unknown field, or an immediate that is missing.
    """
    if not cases:
        raise InvalidValueError("no fields to replace; at least one is needed")
    for case in cases:
        if case.field not in ORDINAL_FIELDS | IMMEDIATE_FIELDS | PLAIN_FIELDS:
            raise InvalidValueError(f"tensormap.replace has no field {case.field!r}")
        if (case.immediate is None) == (case.field in IMMEDIATE_FIELDS):
            raise InvalidValueError(f"{case.field}: an immediate value is for {', '.join(sorted(IMMEDIATE_FIELDS))}")
    lines = "\n".join(
        f"      case {number}: {case.call('address', 'job.value')} break;" for number, case in enumerate(cases)
    )
    return make_kernel(
        "replace_fields", _BODY % {"cases": lines}, {"THREADS": 32}, 0, ("jobs",), facts={"cases": cases}
    )
