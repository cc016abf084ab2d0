"""Views of arrays in device memory (address, shape and strides), and their copies on the host.

An array may be on any device, not only the current one. Its device is made current while the array exports its memory,
and the previous device is restored afterwards. `tensor.array_views` contains the functions that do not need a driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cute_py.errors import CuteError, DeviceError, InvalidTypeError, InvalidValueError, first_line
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import current_context, open_device, read_memory
from cute_py.tensor.array_views import (
    ArrayLike,
    ArrayView,
    SupportsDlpack,
    exported_view,
    host_view,
    interface_view,
    is_of_jax,
    no_export,
    overlap,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np


def span(view: ArrayView) -> tuple[int, int]:
    """Return the first address that a view touches, and the number of bytes from there to its last byte."""
    low, high = view.extent()
    return low, high - low


def host_bytes(view: ArrayView) -> memoryview:
    """Return the host memory that a view touches, as a writable buffer."""
    low, size = span(view)
    return memoryview((ctypes.c_char * size).from_address(low)).cast("B")


def array_over(view: ArrayView, content: bytearray | memoryview) -> NDArray[np.generic]:
    """Return the numpy array that a view describes, over `content`: the bytes that the view touches, or a copy of
    them."""
    strides = tuple(stride * view.element_bytes for stride in view.strides)
    return np.ndarray(view.shape, view.dtype.numpy, content, view.address - span(view)[0], strides)


def host_copy(view: ArrayView) -> NDArray[np.generic]:
    """Return a numpy array with the shape, strides and current bytes of `view`."""
    low, size = span(view)
    if view.device is None:
        return array_over(view, bytearray(host_bytes(view)))
    return array_over(view, read_memory(open_device(view.device), low, size))


@contextlib.contextmanager
def device_of_array(array: ArrayLike, ordinal: int | None) -> Iterator[None]:
    """Make the device of an array current, for the driver and for the array's library (a context manager).

    PyTorch has its own current device in addition to the driver's (which may have no context yet), and refuses to
    export an array of another device. CuPy allocates on the driver's current device. If the driver does not know the
    device, or the array is in host memory (None), nothing changes.
    """
    with contextlib.ExitStack() as stack:
        libraries = {kind.__module__.partition(".")[0] for kind in type(array).__mro__}
        torch = sys.modules.get("torch") if "torch" in libraries else None
        if ordinal is not None and torch is not None:
            stack.enter_context(torch.cuda.device(ordinal))
        if ordinal is not None:
            # no cuda-python, no driver, or a device without TMA: a copy will raise
            with contextlib.suppress(CuteError):
                stack.enter_context(open_device(ordinal).current())
        yield


def device_at(address: int) -> int:
    """Return the device of an address, from the driver; 0 if there is no driver, or the driver reports no device.

    `__cuda_array_interface__` has no field for the device. This function queries the pointer's context, because
    cuda-bindings 13 returns 0 as the device ordinal of every pointer (measured on two H200, driver 580.159.04).
    Source: CUDA driver API, cuPointerGetAttribute.
    """
    try:
        open_device()  # The driver must be started, and have a context.
        api = driver()
        code, context = api.cuPointerGetAttribute(api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT, address)
        if int(code) or not int(context):
            return 0
        with current_context(context):
            return int(call("querying a pointer's device", api.cuCtxGetDevice))
    except (CuteError, RuntimeError):
        return 0


def array_view(array: ArrayLike) -> ArrayView:
    """Return a view of `array`, without a copy.

    `array` is a numpy array, an `ArrayView`, or an object with `__dlpack__` or `__cuda_array_interface__`.

    Raises:
        The errors of `host_view`, also for arrays on a device.

    >>> import numpy
    >>> array_view(numpy.zeros((4, 6), "float32")[::2]).strides
    (12, 1)
    """
    view = host_view(array)
    if view is not None:
        return view
    if isinstance(array, SupportsDlpack):
        try:
            with device_of_array(array, int(array.__dlpack_device__()[1])):
                return exported_view(array) if is_of_jax(array) else exported_view(array, stream=-1)
        except CuteError:
            raise
        except Exception as problem:  # the library may raise any exception
            raise no_export(array, problem) from None
    table = getattr(array, "__cuda_array_interface__", None)
    try:
        return interface_view(array, table, None, device_at)  # type: ignore[arg-type]
    except CuteError:
        raise
    except Exception as problem:  # a table that lacks a key, or has a value of the wrong type
        raise InvalidTypeError(
            f"{type(array).__name__} has a __cuda_array_interface__ that does not describe an array",
            {"cause": first_line(problem)},
        ) from None


def require_place(roles: Mapping[str, ArrayView], device: int) -> None:
    """Raise an error unless all arrays are on the device.

    Raises:
        DeviceError: an array is on the host, on another device, or has no memory.
    """
    for role, view in roles.items():
        if view.device is None:
            raise DeviceError(
                f"the {role} is in host memory; a GPU copy needs device memory", hint="move it to the device"
            )
        if view.device != device:
            raise DeviceError(f"the {role} is on device {view.device}, but the copy runs on device {device}")
        if not view.address and view.count:
            raise DeviceError(f"the {role} has no memory (a null address)")


def require_pair(source: ArrayView, destination: ArrayView, device: int) -> None:
    """Raise an error if no atom can copy one array to the other.

    Raises:
        DeviceError: an array is on the host, or on another device.
        InvalidValueError: shapes or element types differ, the destination is read-only, or the two overlap.
    """
    roles = {"source": source, "destination": destination}
    require_place(roles, device)
    if source.shape != destination.shape:
        raise InvalidValueError(
            f"the source has the shape {source.shape}, the destination {destination.shape}; they must be equal"
        )
    if source.dtype != destination.dtype:
        raise InvalidValueError(
            f"the source has elements of type {source.dtype}, the destination {destination.dtype}; they must be equal, "
            "because a TMA copy does not convert"
        )
    if destination.readonly:
        raise InvalidValueError("the destination is read-only")
    if source.count and overlap(source, destination):
        raise InvalidValueError(
            "source and destination overlap, but a copy moves tiles in no fixed order",
            {role: "{:#x} to {:#x}".format(*view.extent()) for role, view in roles.items()},
        )
