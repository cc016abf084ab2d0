"""An atom's copy on the GPU, and beside the emulator: backend="cuda" and backend="both".

numpy arrays travel to the device and back; arrays of other libraries are copied where they lie. The instructions are
those that the emulator runs (`copy_atom.tiles`), and their descriptor is the atom's, moved to where the bytes are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_py.argument_checks import expect, expect_integer
from cute_py.copies.checks import (
    CopyResult,
    TileResult,
    check_tensor,
    destination_atom,
    first_difference,
    new_destination,
    spilled_bytes,
)
from cute_py.copies.coordinate_list import load_windows, prepare_listed
from cute_py.copies.emulated_copy import emulated_copy
from cute_py.copies.host_arrays import host_bytes, moved_to_device, span
from cute_py.copies.report import measure_copy
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.gpu.arrays import ArrayView, array_view, device_of_array, require_pair, stream_handle
from cute_py.gpu.device import Device, DeviceBuffer, common_device, open_device
from cute_py.gpu.isolate import call_isolated
from cute_py.tma.atom.op import check_op
from cute_py.tma.atom.tiles import Instructions, instructions
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.descriptor.replace import replace
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.simulate.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.atom.atom import TmaAtom

COPY_OPTIONS = ("stream", "hints", "verify", "report")
EXECUTE_OPTIONS = ("stream", "isolate", "seconds")
SWITCHES = ("hints", "verify", "report", "tune", "isolate")
"""Options that are True or False."""
MAX_SECONDS = 86_400.0
PLACE_UNIT = 128
"""Bytes; how an array lies within these is kept when it moves to the device, so that alignment rules still bite."""


def require_options(options: dict[str, Any], names: tuple[str, ...]) -> None:
    """Refuse an option that is not one of `names`, or has no such value.

    Raises:
        InvalidValueError: no such option, or a time that is none. InvalidTypeError: a value of another kind.
    """
    wrong = [name for name in options if name not in names]
    if wrong:
        raise InvalidValueError(f"unknown option {wrong[0]!r}", {"options": ", ".join(names)})
    for name, value in options.items():
        if name in SWITCHES:
            expect(value, bool, f"option {name}")
    stream_handle(options.get("stream"))
    seconds = options.get("seconds", 1)
    if not isinstance(seconds, float):
        seconds = expect_integer(seconds, "option seconds", hint="the time of the child process, in seconds")
    if not 0 < seconds <= MAX_SECONDS:
        raise InvalidValueError(f"option seconds = {seconds}; must be above 0 and at most {MAX_SECONDS:g}")


def _require_architecture(atom: TmaAtom, device: Device) -> None:
    for found in check_op(atom.op, device.arch, atom.num_multicast):
        raise DeviceError(f"{device.name}: {found}", {"atom": str(atom.op)}, "use backend='emulator'")


def host_copy(view: ArrayView) -> Any:
    """A numpy array of the same shape and strides as `view`, with the bytes that lie there now."""
    import numpy as np

    low, size = span(view)
    if view.device is None:
        content = bytearray(host_bytes(low, size))
    else:
        whole = DeviceBuffer.__new__(DeviceBuffer)
        whole.device, whole.size, whole.address = open_device(view.device), size, low
        try:
            content = whole.read()
        finally:
            whole.address = 0  # The memory is another's: nothing to free.
    width = view.element_bytes
    strides = tuple(stride * width for stride in view.strides)
    return np.ndarray(view.shape, view.dtype.numpy, content, view.address - low, strides)


def _at(atom: TmaAtom, view: ArrayView) -> bytes:
    """The atom's descriptor for the tensor at `view`."""
    moved = view.address - int(atom.request.global_address)
    if moved % 16:
        raise TmaLimitError(
            f"address {view.address:#x} is {view.address % 16} bytes past a multiple of 16",
            {"rule": "globalAddress must be a multiple of 16", "source": "CUDA driver API, cuTensorMapEncodeTiled"},
        )
    return bytes(replace(atom.descriptor, "global_address", view.address))


def new_array_like(source: Any) -> Any:
    """An array like `source`, of the library and on the device that it is from, filled with zeros."""
    library = type(source).__module__.partition(".")[0]
    if library == "numpy":
        return new_destination(source)
    if library in ("torch", "cupy"):
        import sys

        with device_of_array(source, array_view(source).device):
            return sys.modules[library].zeros_like(source)
    raise InvalidTypeError(f"no destination given, and none can be made like {type(source).__name__}")


def _checked(atom: TmaAtom, array: Any, name: str) -> ArrayView:
    view = array_view(array)
    check_tensor(atom, view.shape, view.strides, view.dtype.bits, name)
    return view


def copy_on_device(
    atom: TmaAtom,
    source: Any,
    destination: Any,
    backend: str,
    progress: Callable[[int, int], None] | None,
    options: dict[str, Any],
) -> CopyResult:
    """`copy` with backend "cuda" or "both".

    Options: stream (the copy is enqueued there and neither waited for nor verified, for device arrays), hints (L2
    policies), verify (default True: compare on the host), report (measure against a memcpy: `details["report"]`).

    Raises:
        DeviceError: no GPU with TMA, a barrier that did not complete, arrays on two devices.
        InvalidValueError: not the atom's tensor, overlap, unknown option; TmaLimitError: a misaligned address.
    """
    require_options(options, COPY_OPTIONS)
    a = _checked(atom, source, "source")
    if destination is None:
        destination = new_array_like(source)
    b = array_view(destination)
    device = open_device(common_device({"source": a.device, "destination": b.device}))
    _require_architecture(atom, device)
    host = a.device is None, b.device is None
    if b.readonly:
        raise InvalidValueError("destination is read-only")
    spill = spilled_bytes(atom)
    if spill and not host[1]:
        raise TmaLimitError(
            f"a store writes {spill} bytes behind each row, which may be another's",
            {"row": f"{atom.plan.dims[0] * atom.internal_dtype.bits // 8} bytes", "unit": f"{STORE_UNIT} bytes"},
            "give a numpy destination: it is written through a padded buffer",
        )
    if host == (True, True) and a.extent()[0] < b.extent()[1] and b.extent()[0] < a.extent()[1]:
        raise InvalidValueError("source and destination overlap; a copy reads tiles while others are written")
    stream = options.get("stream")
    handle = stream_handle(stream)
    work = instructions(atom)
    buffers = []
    there, here = a, b
    if host[0]:
        there, first = moved_to_device(source, a, device)
        buffers.append(first)
    if host[1]:
        here, second = moved_to_device(destination, b, device, STORE_UNIT)
        buffers.append(second)
    require_pair(there, here, device.ordinal)
    stores = destination_atom(atom, here.address, here.shape, here.strides, here.dtype.bits)
    prepared = prepare_listed(
        _at(atom, there),
        _at(stores, here),
        work.coords,
        atom.plan.rank,
        [int(place) for place in work.smem_offsets],
        atom.bytes_per_instruction,
        work.smem_bytes,
        hints=bool(options.get("hints", False)),
        device=device,
        keep=(a.owner, b.owner, *buffers),
    )
    wait = stream is None or any(host) or backend == "both"
    start = time.perf_counter()
    prepared.launch(handle)
    if wait:
        prepared.check(handle)
    seconds = time.perf_counter() - start
    if host[1]:
        _write_back(here, b)
    details: dict[str, Any] = {
        "device": device.name,
        "kernels": [kernel.source.name for kernel in prepared.kernels],
        "blocks": list(prepared.blocks),
        "prepared": prepared,
    }
    if options.get("report"):
        details["report"] = measure_copy(prepared, stream=handle)
    if progress is not None:
        progress(work.tiles, work.tiles)
    difference, equal = None, None
    if wait and (options.get("verify", True) or backend == "both"):
        before, after = host_copy(a), host_copy(b)
        if backend == "both":
            difference = _beside_the_emulator(atom, before, after)
        difference = difference or first_difference(before, after)
        equal = difference is None
    warnings = (f"rows are no multiple of {STORE_UNIT} bytes; copied through a padded buffer",) if spill else ()
    size = a.count * a.element_bytes
    return CopyResult(
        destination,
        equal,
        work.tiles,
        len(work.coords),
        atom.transaction_bytes,
        size,
        seconds,
        backend,
        warnings,
        difference,
        details,
    )


def _write_back(here: ArrayView, target: ArrayView) -> None:
    """Elements of the device array into the host array; bytes between its elements stay."""
    import numpy as np

    low, size = span(target)
    width = target.element_bytes
    strides = tuple(stride * width for stride in target.strides)
    view: Any = np.ndarray(target.shape, target.dtype.numpy, host_bytes(low, size), target.address - low, strides)
    view[...] = host_copy(here)


def _beside_the_emulator(atom: TmaAtom, source: Any, copied: Any) -> str | None:
    """The first element that the emulator leaves otherwise than the GPU did, in words."""
    difference = first_difference(emulated_copy(atom, source, None, None).destination, copied)
    return None if difference is None else difference.replace("source", "emulator", 1).replace("destination", "GPU", 1)


def _device_windows(
    descriptor: bytes,
    content: bytes,
    base: int,
    coords: NDArray[Any],
    places: list[int],
    box_bytes: int,
    window_bytes: int,
    poison: int,
    ordinal: int,
) -> bytes:
    """One tile's window, from global memory given as bytes; `base` is the map's address of content[0]."""
    device = open_device(ordinal)
    offset = base % PLACE_UNIT
    with DeviceBuffer(device, offset + len(content)) as buffer:
        buffer.write(content, offset)
        address = int.from_bytes(descriptor[:8], "little") - base + buffer.address + offset
        moved = bytes(replace(descriptor, "global_address", address))
        rank = coords.shape[1]
        return load_windows(moved, coords, rank, places, box_bytes, window_bytes, poison=poison, device=device)[0]


def execute_on_device(
    atom: TmaAtom,
    source: Any,
    coords: NDArray[Any],
    work: Instructions,
    backend: str,
    poison: int,
    options: dict[str, Any],
) -> TileResult:
    """`execute` with backend "cuda" or "both".

    Options: isolate (run in a child process, so that a trap leaves this one's context as it is), seconds (of the
    child, default 60). What the emulator says would trap is refused before a launch, unless isolated.

    Raises:
        TmaTrap: the hardware would trap; DeviceError: no GPU, or a barrier that did not complete.
    """
    import numpy as np

    require_options(options, EXECUTE_OPTIONS)
    view = _checked(atom, source, "source")
    device = open_device(view.device)
    _require_architecture(atom, device)
    image = host_copy(view)
    low, size = span(array_view(image))
    base = int(atom.request.global_address) - (array_view(image).address - low)
    content = bytes(host_bytes(low, size))
    places = [int(place) for place in work.smem_offsets]
    emulated = np.full(work.smem_bytes, poison, np.uint8)
    isolate = bool(options.get("isolate", False))
    if not isolate or backend == "both":
        Emulator(atom.arch).load_many(
            atom.descriptor,
            np.frombuffer(content, np.uint8),
            coords,
            emulated,
            smem_offsets=work.smem_offsets,
            gmem_base=base,
        )
    arguments = (
        atom.descriptor,
        content,
        base,
        coords,
        places,
        atom.bytes_per_instruction,
        work.smem_bytes,
        poison,
        device.ordinal,
    )
    if isolate:
        window = call_isolated(_device_windows, *arguments, seconds=float(options.get("seconds", 60.0)))
    else:
        window = _device_windows(*arguments)
    smem = np.frombuffer(window, np.uint8).copy()
    if backend == "both":
        difference = Trace(atom.descriptor, coords, work.smem_offsets).first_difference(smem, emulated)
        if difference is not None:
            raise DeviceError(f"the GPU differs from the emulator: {difference}", {"device": device.name})
    return TileResult(smem, coords, work.smem_offsets, atom.transaction_bytes, backend)
