"""Copies on the GPU, alone or compared with the emulator: backend="cuda" and backend="both".

numpy arrays are copied to the device and back; arrays of other libraries are copied in place.

    copy_on_device, execute_on_device    tiles of an atom: the same instructions as in the emulator, and the atom's own
                                         descriptor with the device address of the array
    copy_without_atom, copy_array        whole arrays: the planner chooses the kernel and the boxes from addresses and
                                         strides
"""

from __future__ import annotations

import time
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING, Any

from cute_py.argument_checks import expect, expect_integer
from cute_py.copies.boxes import SOURCE
from cute_py.copies.emulated_copy import (
    CopyOptions,
    CopyResult,
    ExecuteOptions,
    HostArray,
    Progress,
    TileResult,
    check_tensor,
    destination_atom,
    emulated_copy,
    emulated_window,
    first_difference,
    new_destination,
    spilled_bytes,
)
from cute_py.copies.prepared import load_windows, prepare_copy, prepare_listed
from cute_py.copies.prepared_copy import Kept, PreparedCopy
from cute_py.copies.report import measure_copy
from cute_py.copies.tune import tuned_copy
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, TmaLimitError, counted
from cute_py.gpu.arrays import array_over, array_view, device_of_array, host_bytes, host_copy, require_pair, span
from cute_py.gpu.device import Device, DeviceBuffer, common_device, open_device
from cute_py.gpu.isolate import call_isolated
from cute_py.tensor.array_views import ArrayLike, ArrayView, StreamLike, overlap, stream_handle
from cute_py.tma.atom.op import check_op
from cute_py.tma.atom.tiles import Instructions, instructions
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.descriptor.replace import replace
from cute_py.tma.emulator.memory import Integers
from cute_py.tma.emulator.trace import Trace

if TYPE_CHECKING:
    import numpy as np

    from cute_py.tma.atom.atom import TmaAtom
else:
    from cute_py.optional_packages import numpy as np

COPY_OPTIONS = ("stream", "hints", "verify", "report")
ARRAY_OPTIONS = ("stream", "hints", "verify", "report", "tune")
EXECUTE_OPTIONS = ("stream", "isolate", "seconds")
SWITCHES = ("hints", "verify", "report", "tune", "isolate")
"""Names of the options that are True or False."""
MAX_SECONDS = 86_400.0
PLACE_UNIT = 128
"""An array that moves to the device keeps its address modulo this number of bytes, so alignment rules still apply."""


def require_options(options: CopyOptions | ExecuteOptions, names: tuple[str, ...]) -> None:
    """Raise an error for an option that is not in `names`, or whose value is out of range.

    Raises:
        InvalidValueError: the option does not exist, or a time is out of range. InvalidTypeError: a value has another
            type.
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
        seconds = expect_integer(seconds, "option seconds", hint="the time limit of the child process, in seconds")
    if not 0 < seconds <= MAX_SECONDS:
        raise InvalidValueError.of_value("option seconds", seconds, f"be above 0 and at most {MAX_SECONDS:g}")


def _require_architecture(atom: TmaAtom, device: Device) -> None:
    for found in check_op(atom.op, device.arch, atom.num_multicast):
        raise DeviceError(f"{device.name}: {found}", {"atom": str(atom.op)}, "use backend='emulator'")


def moved_to_device(
    array: ArrayLike, view: ArrayView, device: Device, room: int = 0
) -> tuple[ArrayView, DeviceBuffer | None]:
    """Copy an array to the device; return its view there and its buffer, or None if the array is already on the device.

    The first byte of the array is at offset `address % 16` of the buffer, so that a slice has the same alignment on the
    device as on the host. The buffer has `room` unused bytes after the last byte.

    Raises:
        DeviceError: an array of a library other than numpy is on the host.
    """
    if view.device is not None:
        return view, None
    if type(array).__module__ != "numpy":
        raise DeviceError(
            f"{type(array).__name__} is in host memory; a GPU copy needs device memory", hint="move it to the device"
        )
    low, size = span(view)
    buffer = DeviceBuffer(device, size + 16 + room)
    offset = low % 16
    buffer.write(bytes(host_bytes(view)), offset)
    address = buffer.address + offset + view.address - low
    return with_fields(view, address=address, device=device.ordinal, readonly=False), buffer


def _at(atom: TmaAtom, view: ArrayView) -> bytes:
    """Return the atom's descriptor with the address of `view`."""
    moved = view.address - int(atom.request.global_address)
    if moved % 16:
        past = counted(view.address % 16, "byte")
        text = f"the address {view.address:#x} is {past} past a multiple of 16"
        found = Diagnostic("address", "globalAddress", view.address, "bytes", "be a multiple of 16", SOURCE, text=text)
        refuse(TmaLimitError, [found])
    return bytes(replace(atom.descriptor, "global_address", view.address))


def new_array_like(source: ArrayLike) -> ArrayLike:
    """Return an array of zeros with the shape and type of `source`, in the same library and on the same device."""
    if isinstance(source, np.ndarray):
        return new_destination(source)
    library = type(source).__module__.partition(".")[0]
    if library in ("torch", "cupy"):
        import sys

        with device_of_array(source, array_view(source).device):
            made: ArrayLike = sys.modules[library].zeros_like(source)
            return made
    raise InvalidTypeError(f"copy needs a destination, because it can't make one for a {type(source).__name__}")


def _checked(atom: TmaAtom, array: ArrayLike, name: str) -> ArrayView:
    view = array_view(array)
    check_tensor(atom, view.shape, view.strides, view.dtype.bits, name)
    return view


def _require_writable(atom: TmaAtom, source: ArrayView, destination: ArrayView, spill: int) -> None:
    """Raise an error if the destination is read-only, or if stores write `spill` bytes past the end of each of its
    rows."""
    to_host = destination.device is None
    if destination.readonly:
        raise InvalidValueError("the destination is read-only")
    if spill and not to_host:
        facts = {"row": f"{atom.plan.dims[0] * atom.internal_dtype.bits // 8} bytes", "unit": f"{STORE_UNIT} bytes"}
        fix = "pass a numpy destination, which is written through a padded buffer"
        text = f"a store writes {spill} bytes after each row, and these bytes may belong to another array"
        refuse(TmaLimitError, [Diagnostic("spill", "row", spill, "bytes", text=text, facts={**facts}, fixes=(fix,))])
    if source.device is None and to_host and overlap(source, destination):
        raise InvalidValueError(
            "the source and the destination overlap, but a copy reads some tiles while it writes others"
        )


def _prepared_tiles(
    atom: TmaAtom,
    work: Instructions,
    source: ArrayView,
    destination: ArrayView,
    device: Device,
    options: CopyOptions,
    keep: Kept,
) -> PreparedCopy:
    """Prepare the launch that runs the instructions of an atom between two arrays on the device."""
    stores = destination_atom(atom, destination.address, destination.shape, destination.strides, destination.dtype.bits)
    return prepare_listed(
        _at(atom, source),
        _at(stores, destination),
        work.coords,
        atom.plan.rank,
        [int(place) for place in work.smem_offsets],
        atom.bytes_per_instruction,
        work.smem_bytes,
        hints=bool(options.get("hints", False)),
        device=device,
        keep=keep,
    )


def _difference(atom: TmaAtom, source: ArrayView, destination: ArrayView, backend: str) -> str | None:
    """Describe the first element that differs from the emulator's copy (backend "both") or from the source."""
    before, after = host_copy(source), host_copy(destination)
    beside = _beside_the_emulator(atom, before, after) if backend == "both" else None
    return beside or first_difference(before, after)


def copy_on_device(
    atom: TmaAtom,
    source: ArrayLike,
    destination: ArrayLike | None,
    backend: str,
    progress: Progress,
    options: CopyOptions,
) -> CopyResult[ArrayLike]:
    """Run `copy` with backend "cuda" or "both".

    The options are the same as for `copy`: stream, hints, verify and report.

    Raises:
        DeviceError: there is no GPU with TMA, a barrier did not complete, or the arrays are on two devices.
            InvalidValueError: an array does not match the atom's tensor, arrays overlap, or an option is unknown;
            TmaLimitError: an address is misaligned.
    """
    require_options(options, COPY_OPTIONS)
    a = _checked(atom, source, "source")
    if destination is None:
        destination = new_array_like(source)
    b = array_view(destination)
    device = open_device(common_device({"source": a.device, "destination": b.device}))
    _require_architecture(atom, device)
    from_host, to_host = a.device is None, b.device is None
    spill = spilled_bytes(atom)
    _require_writable(atom, a, b, spill)
    stream = options.get("stream")
    handle = stream_handle(stream)
    work = instructions(atom)
    there, first = moved_to_device(source, a, device)
    here, second = moved_to_device(destination, b, device, STORE_UNIT)
    require_pair(there, here, device.ordinal)
    prepared = _prepared_tiles(atom, work, there, here, device, options, keep=(a, b, first, second))
    wait = stream is None or from_host or to_host or backend == "both"
    start = time.perf_counter()
    prepared.launch(handle)
    if wait:
        prepared.check(handle)
    seconds = time.perf_counter() - start
    if to_host:  # Write only the elements; the bytes between them stay.
        array_over(b, host_bytes(b))[...] = host_copy(here)
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
        difference = _difference(atom, a, b, backend)
        equal = difference is None
    warnings = (
        (f"the rows are not a multiple of {STORE_UNIT} bytes, so they were copied through a padded buffer",)
        if spill
        else ()
    )
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


def _beside_the_emulator(atom: TmaAtom, source: HostArray, copied: HostArray) -> str | None:
    """Describe the first element that differs between the GPU's copy and the emulator's."""
    difference = first_difference(emulated_copy(atom, source, None, None).destination, copied)
    return None if difference is None else difference.replace("source", "emulator", 1).replace("destination", "GPU", 1)


def _device_windows(
    descriptor: bytes,
    content: bytes,
    base: int,
    coords: Integers,
    places: list[int],
    box_bytes: int,
    window_bytes: int,
    poison: int,
    ordinal: int,
) -> bytes:
    """Load the window of one tile from global memory that `content` gives as bytes; `base` is the address of content[0]
    in the tensor map."""
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
    source: ArrayLike,
    coords: Integers,
    work: Instructions,
    backend: str,
    poison: int,
    options: ExecuteOptions,
) -> TileResult:
    """Run `execute` with backend "cuda" or "both".

    The options are the same as for `execute`: isolate and seconds. If the loads trap in the emulator, this function
    raises the error before the launch, unless the call is isolated.

    Raises:
        TmaTrap: the hardware would trap; DeviceError: there is no GPU, or a barrier did not complete.
    """
    require_options(options, EXECUTE_OPTIONS)
    view = _checked(atom, source, "source")
    device = open_device(view.device)
    _require_architecture(atom, device)
    image = host_copy(view)
    of_image = array_view(image)
    base = int(atom.request.global_address) - (of_image.address - span(of_image)[0])
    content = bytes(host_bytes(of_image))
    isolate = bool(options.get("isolate", False))
    if not isolate or backend == "both":
        emulated = emulated_window(atom, np.frombuffer(content, np.uint8), base, coords, work, poison)
    arguments = (
        atom.descriptor,
        content,
        base,
        coords,
        [int(place) for place in work.smem_offsets],
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
            raise DeviceError(f"the GPU's result differs from the emulator's: {difference}", {"device": device.name})
    return TileResult(smem, coords, work.smem_offsets, atom.transaction_bytes, backend)


def copy_array(
    source: ArrayLike, destination: ArrayLike, *, stream: StreamLike = None, hints: bool = False
) -> PreparedCopy:
    """Copy one array to another once: prepare, launch on `stream`, and, if no stream is given, wait and check.

    numpy arrays on either side are copied to the device and back; the call then returns only when the result is on the
    host.

    Raises:
        DeviceError: there is no device, or an array of another library is on the host.
        InvalidValueError, TmaLimitError: see `prepare_copy`.

    >>> import numpy
    >>> from cute_py.gpu.device import device_available
    >>> x = numpy.arange(4096, dtype=numpy.float32).reshape(64, 64)
    >>> y = numpy.empty_like(x)
    >>> if device_available():
    ...     _ = copy_array(x.T, y)
    ...     assert (y == x.T).all()
    """
    a, b = array_view(source), array_view(destination)
    if a.device is not None and b.device is not None:
        prepared = prepare_copy(a, b, hints=hints)
        prepared.launch(stream)
        if stream is None:
            prepared.check()
        return prepared
    handle = stream_handle(stream)
    if b.readonly:
        raise InvalidValueError("the destination is read-only")
    device = open_device(common_device({"source": a.device, "destination": b.device}))
    there, first = moved_to_device(source, a, device)
    here, second = moved_to_device(destination, b, device)
    require_pair(there, here, device.ordinal)
    prepared = prepare_copy(there, here, hints=hints, device=device)
    prepared.launch(handle)
    prepared.check(handle)
    if second is not None:
        low, size = span(b)
        host_bytes(b)[:] = second.read(size, low % 16, handle)
    for buffer in (first, second):
        if buffer is not None:
            buffer.close()
    return prepared


def copy_without_atom(
    source: ArrayLike, destination: ArrayLike | None, backend: str, progress: Progress, options: CopyOptions
) -> CopyResult[ArrayLike]:
    """Run `copy(None, source, destination, backend="cuda")` for arrays of any order and strides that TMA boxes can
    move.

    The options are the same as for a copy with an atom, plus `tune`, which times a few tilings on the device and keeps
    the fastest.

    Raises:
        InvalidTypeError: the backend is not "cuda"; only the GPU executor plans copies without an atom.
        DeviceError: there is no GPU with TMA, or the arrays are on two devices. TmaLimitError: no box can move these
            arrays.
    """
    if backend != "cuda":
        raise InvalidTypeError(f"backend={backend!r} needs an atom; only backend='cuda' plans a copy without one")
    require_options(options, ARRAY_OPTIONS)
    if destination is None:
        destination = new_array_like(source)
    a, b = array_view(source), array_view(destination)
    device = open_device(common_device({"source": a.device, "destination": b.device}))
    stream = options.get("stream")
    hints = bool(options.get("hints", False))
    on_host = a.device is None or b.device is None
    if on_host and options.get("tune"):
        raise InvalidValueError("tune=True needs device arrays, but these are in host memory")
    start = time.perf_counter()
    prepared: PreparedCopy
    if on_host:
        prepared = copy_array(source, destination, stream=stream, hints=hints)
    else:
        prepare = tuned_copy if options.get("tune") else prepare_copy
        prepared = prepare(source, destination, hints=hints, device=device)
        start = time.perf_counter()
        prepared.launch(stream)
        if stream is None:
            prepared.check()
    seconds = time.perf_counter() - start
    details: dict[str, Any] = {
        "device": device.name,
        "forms": [plan.form for plan in prepared.plans] or [prepared.plan.kernel if prepared.plan else "none"],
        "why": [plan.why for plan in prepared.plans] or [prepared.plan.why if prepared.plan else ""],
        "prepared": prepared,
    }
    if options.get("report"):
        details["report"] = measure_copy(prepared, stream=stream_handle(stream))
    difference, equal = None, None
    if options.get("verify", True) and (stream is None or on_host):
        difference = first_difference(host_copy(a), host_copy(b))
        equal = difference is None
    boxes = sum(plan.blocks for plan in prepared.plans if plan.maps)
    if progress is not None:
        progress(boxes, boxes)
    return CopyResult(
        destination, equal, boxes, boxes, 0, a.count * a.element_bytes, seconds, backend, (), difference, details
    )
