"""Arrays of other libraries as plain numbers, streams, and pairs that no copy can join."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.dtypes import as_dtype
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError
from cute_py.gpu.arrays import array_view, require_pair
from cute_py.tensor.array_views import CUDA, ArrayView, row_major, stream_handle


class OnDevice:
    """A made-up array on a GPU, by `__cuda_array_interface__`."""

    def __init__(self, shape: tuple[int, ...], typestr: str = "<f4", strides: Any = None, address: int = 4096) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, False),
            "strides": strides,
            "version": 3,
        }


class OverDlpack:
    """numpy's DLPack capsule, with the device changed to a GPU."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = CUDA) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 3)

    def __dlpack__(self, stream: Any = None) -> Any:
        assert (stream == -1) == (self.device == CUDA)
        capsule = self.array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        words = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_int32))
        words[2], words[3] = self.device, 3
        return capsule


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_numpy_views_keep_address_and_strides(shape: list[int], data: st.DataObject) -> None:
    base = np.zeros(shape, np.int32)
    steps = tuple(slice(data.draw(st.integers(0, n - 1)), None, data.draw(st.integers(1, 3))) for n in shape)
    view = base[steps]
    found = array_view(view)
    assert found.address == view.ctypes.data
    assert found.shape == view.shape
    assert [s * 4 for s, n in zip(found.strides, found.shape, strict=True) if n > 1] == [
        s for s, n in zip(view.strides, view.shape, strict=True) if n > 1
    ]
    assert found.device is None
    assert found.extent()[0] >= base.ctypes.data
    assert found.extent()[1] <= base.ctypes.data + base.nbytes


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_element_types_of_ml_dtypes(dtype: str) -> None:
    assert array_view(np.zeros((4, 4), getattr(ml_dtypes, dtype))).dtype == as_dtype(dtype)


def test_readonly_numpy_is_seen() -> None:
    array = np.zeros(4)
    array.flags.writeable = False
    assert array_view(array).readonly


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64, np.complex64, np.bool_])
def test_dlpack_says_the_same_as_numpy(dtype: Any) -> None:
    array = np.zeros((6, 8), dtype)[::2, 1:7]
    found = array_view(OverDlpack(array))
    assert (found.shape, found.strides, found.device) == ((3, 6), (16, 1), 3)
    assert found.address == array.ctypes.data
    assert found.dtype == as_dtype(array.dtype)
    assert array_view(OverDlpack(array, device=1)).device is None


def test_the_array_interface_of_a_device() -> None:
    found = array_view(OnDevice((3, 4)))
    assert (found.address, found.strides, found.device, found.dtype.name) == (4096, (4, 1), 0, "float32")
    assert array_view(OnDevice((3, 4), strides=(32, 4))).strides == (8, 1)
    assert array_view(OnDevice((3,), "|b1")).dtype.name == "bool"


@pytest.mark.parametrize(
    ("array", "kind", "words"),
    [
        (lambda: [1, 2], InvalidTypeError, "list is not an array"),
        (
            lambda: OnDevice((4,), ">f4"),
            InvalidValueError,
            "element type '>f4' is big-endian; must be little-endian, as on a GPU",
        ),
        (lambda: OnDevice((4,), "|V2"), InvalidTypeError, "element type '|V2' is not known"),
        (lambda: OnDevice((4, 4), strides=(18, 4)), InvalidValueError, "stride = 18 bytes; must be a multiple of"),
    ],
)
def test_what_is_no_array(array: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        array_view(array())
    assert str(caught.value).startswith(words)


def test_an_array_that_keeps_its_memory_to_itself() -> None:
    class Closed:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (CUDA, 0)

        def __dlpack__(self, stream: Any = None) -> Any:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(InvalidValueError) as caught:
        array_view(Closed())
    assert str(caught.value) == (
        "Closed does not export its memory through DLPack\n"
        "  cause : Can't export tensors that require gradient, use tensor.detach()"
    )


def test_elements_narrower_than_a_byte_have_no_bytes() -> None:
    with pytest.raises(InvalidValueError, match="int4 has 4 bits per element, but a copy moves whole bytes"):
        _ = ArrayView(0, (4,), (1,), as_dtype("int4"), 0).element_bytes


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (7, 7),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 11)), 11),
        (SimpleNamespace(__cuda_stream__=(0, 12)), 12),
        (SimpleNamespace(cuda_stream=13), 13),
        (SimpleNamespace(ptr=14), 14),
    ],
)
def test_streams(stream: Any, handle: int) -> None:
    assert stream_handle(stream) == handle


@pytest.mark.parametrize("stream", [True, "0", SimpleNamespace(__cuda_stream__=(1, 12)), object()])
def test_what_is_no_stream(stream: Any) -> None:
    with pytest.raises(InvalidTypeError):
        stream_handle(stream)


def view(shape: tuple[int, ...], address: int = 4096, dtype: str = "float32", device: int | None = 0) -> ArrayView:
    return ArrayView(address, shape, row_major(shape), as_dtype(dtype), device)


FAR = 1 << 20
PAIRS = [
    (view((8, 8)), view((8, 8), FAR, device=None), DeviceError, "the destination is in host memory; a GPU copy needs"),
    (view((8, 8), device=1), view((8, 8), FAR), DeviceError, "the source is on device 1, but the copy runs on"),
    (view((8, 8), 0), view((8, 8), FAR), DeviceError, "the source has no memory (a null address)"),
    (view((8, 8)), view((8, 9), FAR), InvalidValueError, "the source has the shape (8, 8), the destination (8, 9)"),
    (
        view((8, 8)),
        view((8, 8), FAR, "int32"),
        InvalidValueError,
        "the source has elements of type float32, the destination int32; they must be equal",
    ),
    (
        view((8, 8)),
        view((8, 8), 4096 + 252),
        InvalidValueError,
        "source and destination overlap, but a copy moves tiles",
    ),
    (
        view((8, 8)),
        ArrayView(FAR, (8, 8), (8, 1), as_dtype("float32"), 0, readonly=True),
        InvalidValueError,
        "the destination is read-only",
    ),
]


@pytest.mark.parametrize(("a", "b", "kind", "words"), PAIRS, ids=[words[:25] for *_, words in PAIRS])
def test_pairs_that_no_copy_joins(a: ArrayView, b: ArrayView, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        require_pair(a, b, 0)
    assert str(caught.value).startswith(words)


def test_neighbours_do_not_overlap() -> None:
    require_pair(view((8, 8)), view((8, 8), 4096 + 256), 0)
