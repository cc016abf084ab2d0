"""Copy host arrays by running the GPU kernels on the emulated multiprocessor.

    run_on_machine(a, b)        plan the copy as for a GPU, compile its kernels, and run their PTX without a GPU

The plan, the maps and the parameters are the same as in `prepare_copy`, with host addresses instead of device
addresses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect
from cute_py.atom.smem_descriptor import UNIT_BYTES
from cute_py.copies.boxes import Tuning
from cute_py.copies.operands import Operand, OperandSide, paired, side
from cute_py.copies.plan import box_launches, plan_pairing, thread_launches
from cute_py.copies.scaled.host import computes, refuse_layout_options
from cute_py.copies.scaled.operands import matrix, memory_view, scaled_work
from cute_py.copies.scaled.plan import kind_of, plan_largest
from cute_py.dtypes import DTypeLike
from cute_py.gpu.kernels.source import ERROR_RECORD_BYTES
from cute_py.machine.launch import Extended, MachineLaunch
from cute_py.machine.run import PtxRun, run_launches
from cute_py.machine.threads import Array
from cute_py.tensor.array_views import ArrayView

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

RING_SMS: Final = 4
"""Number of SMs in the plan of a ring; it is small, so that the emulated grid stays small."""


class _Memory:
    """The bytes of one side, with access to arrays at addresses within them.

    The bytes extend to 16-byte boundaries, because the tensor map of an unaligned source begins and ends at such
    boundaries.
    """

    def __init__(self, view: ArrayView) -> None:
        low, high = view.extent()
        self.low, self.high = low // UNIT_BYTES * UNIT_BYTES, -(-high // UNIT_BYTES) * UNIT_BYTES
        raw = (ctypes.c_uint8 * max(self.high - self.low, 1)).from_address(self.low)
        self.bytes: Array = np.ctypeslib.as_array(raw)
        self.foreign = low - self.low, len(self.bytes) - (high - self.low)
        self.owner = view.owner

    def extended(self) -> Extended:
        """Return the bytes, and how many of them at each end belong to other objects."""
        return Extended(self.bytes, *self.foreign)

    def at(self, address: int) -> Array | None:
        """Return the bytes that start at an address; None for a null pointer."""
        if address == 0:
            return None
        offset = address - self.low
        # A slice does not work here: an empty slice has the address of the array's start.
        return np.ndarray(len(self.bytes) - offset, np.uint8, self.bytes, offset)


def machine_launches(
    source: Operand, destination: Operand, *, tuning: Tuning | None = None, dtype: DTypeLike | None = None
) -> tuple[MachineLaunch, ...]:
    """Return the launches of a copy between arrays in host memory.

    Args:
        source, destination, dtype: as in `prepare_copy`. tuning: the form and the tiles of kernels with tensor maps.
    """
    if tuning is not None:
        expect(tuning, Tuning, "tuning")
    a, b = side(source, "source", dtype), side(destination, "destination", dtype)
    plan = plan_pairing(paired(a, b), (a.alignment, b.alignment))
    refinement = plan.refinement
    if refinement is None:
        return ()
    both = _Memory(a.view), _Memory(b.view)
    memory = {"the source": both[0].extended(), "the destination": both[1].extended()}
    if plan.kernel != "boxes" and not (tuning is not None and plan.form == "affine"):
        return tuple(_by_threads(launch, a, b, memory) for launch in thread_launches(plan))
    element = plan.bits // 8
    places = [one.view.address + start * element for one, start in zip((a, b), refinement.starts, strict=True)]
    boxes = box_launches(refinement, element, (places[0], places[1]), RING_SMS, tuning or Tuning())
    return tuple(_by_boxes(one, both, memory) for one in boxes)


def scaled_launches(source: Any, destination: Any, **options: Any) -> tuple[MachineLaunch, ...]:
    """Return the launches of a computing copy between host arrays and scaled tensors; none for a copy of no elements.
    For the options, see `scaled_work`."""
    work = scaled_work(source, destination, **options)
    if not work.launch.blocks:
        return ()
    record = np.full(8, 0xFF, np.uint8)
    block, at = work.parameters(0), work.launch.pointers()
    held = {name: _Memory(view) for name, view in work.places.items()}
    pointers: dict[int, Any] = {at[name]: held[name].at(view.address) for name, view in work.places.items()}
    pointers[at["record"]] = record
    memory = {name: one.extended() for name, one in held.items()}
    return (MachineLaunch(work.launch.kernel, work.launch.blocks, ((block, pointers),), memory),)


def emulated_largest_magnitude(source: Any) -> float:
    """Find the largest magnitude in a host matrix with the GPU kernel. NaN elements are ignored; 0 if all are NaN."""
    view = memory_view(source)
    side = matrix(view, "source", kind_of(view.dtype))
    launch, record = plan_largest(side), np.zeros(8, np.uint8)
    held, at = _Memory(view), launch.pointers()
    block = launch.parameters({"source": view.address}, [(0, 0)])
    pointers: dict[int, Any] = {at["source"]: held.at(view.address), at["record"]: record}
    run_launches([MachineLaunch(launch.kernel, launch.blocks, ((block, pointers),), {"source": held.extended()})])
    return float(record[:4].view(np.float32)[0])


def _by_boxes(plan: Any, both: tuple[_Memory, _Memory], memory: dict[str, Extended]) -> MachineLaunch:
    values: dict[str, Any] = {
        "tail_source": both[0].at(plan.tail[0]) if plan.tail[2] else None,
        "tail_destination": both[1].at(plan.tail[1]) if plan.tail[2] else None,
        "record": np.zeros(ERROR_RECORD_BYTES, np.uint8),
        "counter": np.zeros(256, np.uint8),
    }
    for name, request, one in zip(("source", "destination"), plan.maps or (), both, strict=False):
        values[name] = _mapped(request, one)
    names = plan.kernel.parameters
    return MachineLaunch(plan.kernel, plan.blocks, tuple(values[name] for name in names), memory)


def _mapped(request: Any, one: _Memory) -> tuple[Any, Array]:
    """Return a tensor map and the bytes that start at its address."""
    found = one.at(request.global_address)
    return request, one.bytes if found is None else found


def _by_threads(launch: Any, a: OperandSide, b: OperandSide, memory: dict[str, Extended]) -> MachineLaunch:
    block = launch.parameters(a.view.address, b.view.address, 0)
    held = _Memory(a.view), _Memory(b.view)
    pointers: dict[int, Any] = {0: held[0].at(a.view.address), 8: held[1].at(b.view.address)}
    if launch.kernel.name != "copy_runs":
        pointers[16] = held[0].at(a.view.address + launch.reach)
        pointers[24] = np.frombuffer(launch.tables, np.uint8).copy() if launch.tables else None
    return MachineLaunch(launch.kernel, launch.blocks, ((block, pointers),), memory)


def run_on_machine(
    source: Any,
    destination: Any,
    *,
    tuning: Tuning | None = None,
    dtype: DTypeLike | None = None,
    schedule: str | int = "both",
    **options: Any,
) -> PtxRun | None:
    """Copy between host memory by emulating the GPU kernels; return None for a copy without elements.

    Args:
        source, destination: an array, or a `ScaledTensor` for a copy that computes; several outputs are a tuple.
        tuning, dtype: as in `prepare_copy`, for copies between layouts. schedule: as in `run_ptx`.
        options: rows, into_rows, pages, fill and cast, as in `copy`.
    Raises:
        MissingPackageError: there is no compiler of CUDA C++. InvalidValueError: the device does not support the copy.
            For other errors, see `prepare_copy`.
    """
    launches: Sequence[MachineLaunch]
    if computes(source, destination, options):
        refuse_layout_options(tuning, dtype)
        launches = scaled_launches(source, destination, **options)
    else:
        launches = machine_launches(source, destination, tuning=tuning, dtype=dtype)
    return run_launches(launches, schedule=schedule) if launches else None
