"""The two populations of tensor maps of a kernel: made on the host, made on the device; their slots and counters.

Device slots stand before host slots in the block of parameters that the kernel gets appended, so that a kernel finds
its working buffer at a fixed offset. A host map is passed by value, marked `cute_nvgpu.grid_constant`, which is later
`nvvm.grid_constant`; the marked parameter is 128-byte aligned in .param.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.errors import TmaBuildError

SLOT_BYTES = 128
GRID_CONSTANT = "cute_nvgpu.grid_constant"
LIFTED_GRID_CONSTANT = "nvvm.grid_constant"
HOST_COUNTER = "nv_tileas.num-host-tmas"
DEVICE_COUNTER = "nv_tileas.num-device-tmas"


@dataclass(frozen=True, slots=True)
class DescriptorSlot:
    """One slot: its place in the block, its byte offset there, the population and the index in it (`tmaIdx`)."""

    position: int
    offset: int
    origin: str
    tma_index: int

    @property
    def attribute(self) -> str:
        """The parameter attribute: host maps are grid constants, device maps are plain pointers to working memory."""
        return GRID_CONSTANT if self.origin == "host" else ""


def descriptor_slots(num_device: int, num_host: int) -> tuple[DescriptorSlot, ...]:
    """The slots in block order: device first.

    >>> [(slot.origin, slot.offset) for slot in descriptor_slots(1, 2)]
    [('device', 0), ('host', 128), ('host', 256)]
    """
    kinds = [("device", i) for i in range(num_device)] + [("host", i) for i in range(num_host)]
    return tuple(
        DescriptorSlot(position, position * SLOT_BYTES, origin, index) for position, (origin, index) in enumerate(kinds)
    )


def counter_violations(
    host_indices: Sequence[int], device_indices: Sequence[int], num_host: int, num_device: int
) -> tuple[str, ...]:
    """Whether the counters agree with the indices in use, in the verifier's words.

    >>> counter_violations([0, 1], [], num_host=1, num_device=0)
    ('tmaIdx exceed tmaHostNum.',)
    """
    found = []
    if any(not 0 <= index < num_host for index in host_indices):
        found.append("tmaIdx exceed tmaHostNum.")
    if any(not 0 <= index < num_device for index in device_indices):
        found.append("tmaIdx exceed tmaDeviceNum.")
    return tuple(found)


def check_counters(host_indices: Sequence[int], device_indices: Sequence[int], num_host: int, num_device: int) -> None:
    """Raise the first diagnostic of `counter_violations`.

    Raises:
        TmaBuildError: an index is beyond its counter.
    """
    found = counter_violations(host_indices, device_indices, num_host, num_device)
    if found:
        raise TmaBuildError(
            found[0],
            {
                HOST_COUNTER: num_host,
                DEVICE_COUNTER: num_device,
                "host tmaIdx": list(host_indices),
                "device tmaIdx": list(device_indices),
            },
        )
