"""A barrier across devices: a kernel on each device, which ends only after the kernels of all devices have started.

When the barrier completes, the work before it on each device is finished, and its writes are visible to the work after
it on any device. Each device counts its barriers, and writes the count to the memory of every other device. It waits
for the counts of the other devices in its own memory.
"""

from __future__ import annotations

from typing import Final

from cute_py.gpu.kernels.source import KernelSource, make_kernel

_BODY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) meet(
    volatile u32* counts, volatile u32* const* others, u64 me, u64 cycles, ErrorRecord* record) {
  const u32 count = counts[me] + 1;
  __syncthreads();
  __threadfence_system();
  others[threadIdx.x][me] = count;
  const u64 start = clock64();
  while ((int)(counts[threadIdx.x] - count) < 0) {
    const u64 waited = clock64() - start;
    if (waited > cycles) {
      if (atomicCAS(&record->state, 0u, 2u) == 0u) {
        record->phase = count; record->thread = threadIdx.x; record->cycles = waited;
        __threadfence();
        record->state = 1u;
      }
      return;
    }
  }
  __threadfence_system();
}
"""


def device_barrier(devices: int) -> KernelSource:
    """Make the barrier kernel for `devices` devices: one block, with a thread for each device.

    Its parameters are: the 32-bit counts of all devices, in this device's memory; a table of the addresses of the
    counts on each device; the index of this device; the maximum number of clock cycles of a wait; and the record of a
    wait that timed out, whose thread index is the index of the missing device.

    >>> device_barrier(2).parameters
    ('counts', 'others', 'me', 'cycles', 'record')
    """
    return make_kernel("meet", _BODY, {"THREADS": devices}, 0, ("counts", "others", "me", "cycles", "record"))
