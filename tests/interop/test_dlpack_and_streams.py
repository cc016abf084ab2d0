"""DLPack both ways, and everything that says which CUDA stream it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, TensorAccessError
from cute_py.gpu.arrays import array_view
from cute_py.tensor.array_views import stream_handle
from cute_py.tensor.dlpack_export import DlpackArray


class Foreign:
    """An array of another library: DLPack and nothing else."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "complex64"])
def test_a_foreign_array_is_read_where_it_lies(dtype: str) -> None:
    array = np.arange(24).reshape(4, 6).astype(dtype)
    tensor = cute.make_tensor(Foreign(array.T))
    assert tensor.engine.address == array.ctypes.data
    assert str(tensor.layout) == "(6,4):(_1,6)"
    assert all(tensor(j, i) == array[i, j] for i in range(4) for j in range(6))
    view = array_view(Foreign(array))
    assert (view.address, view.shape, view.strides) == (array.ctypes.data, (4, 6), (6, 1))
    assert (view.dtype.name, view.device) == (dtype, None)


class Exporter(Foreign):
    """An array of a type that numpy does not export."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: str | None = None) -> None:
        super().__init__(array)
        self._export = DlpackArray(array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._export.__dlpack__(**options)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"])
def test_a_foreign_array_of_a_type_that_numpy_lacks_is_read_where_it_lies(name: str) -> None:
    packed = name == "float4_e2m1fn"
    bits = np.arange(1, 25, dtype="u2" if name == "bfloat16" else "u1").reshape(4, 6)
    array = bits if packed else bits.view(as_dtype(name).numpy)
    tensor = cute.make_tensor(Exporter(array.T, name if packed else None))
    assert tensor.engine.address == array.ctypes.data
    assert str(tensor.layout) == "(6,4):(_1,6)"
    assert tensor.engine.dtype.name == ("uint8" if packed else name)
    assert all(tensor(j, i) == array[i, j] for i in range(4) for j in range(6))
    with pytest.raises(TensorAccessError, match="read-only"):
        tensor[0] = 1
    out = np.zeros_like(array)
    assert cute.copy(Exporter(array, name if packed else None), out).equal
    assert out.tobytes() == array.tobytes()


def test_a_foreign_array_that_exports_nothing_is_refused() -> None:
    class Shy(Foreign):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("not today")

    with pytest.raises(InvalidTypeError, match="through DLPack: not today"):
        cute.make_tensor(Shy(np.zeros(4, np.float32)))


def test_an_atom_of_a_foreign_array_copies_its_numpy_view() -> None:
    array = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", Foreign(array), Layout((Int(32), Int(32)), LayoutRight))
    assert int(atom.request.global_address) == array.ctypes.data
    result = cute.tma.copy(atom, np.from_dlpack(Foreign(array)))
    assert result.equal
    assert np.array_equal(np.from_dlpack(result.destination), array)


def test_a_read_only_export_is_not_written() -> None:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    tensor = cute.make_tensor(Foreign(array))
    assert tensor(0) == 0
    with pytest.raises(TensorAccessError, match="read-only"):
        tensor[0] = 1


def test_the_memory_outlives_its_owner() -> None:
    tensor = cute.make_tensor(Foreign(np.full(1000, 7, np.int64)))
    assert all(tensor(i) == 7 for i in range(0, 1000, 99))


class Method:
    """As cuda.core's Stream."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 0x55D0)


class Attribute:
    """As older programs have it."""

    __cuda_stream__ = (0, 0x55D0)


class Torch:
    """As torch.cuda.Stream."""

    cuda_stream = 0x55D0


class Cupy:
    """As cupy.cuda.Stream."""

    ptr = 0x55D0


@pytest.mark.parametrize("stream", [Method(), Attribute(), Torch(), Cupy(), 0x55D0], ids=lambda s: type(s).__name__)
def test_a_stream_is_its_handle(stream: Any) -> None:
    assert stream_handle(stream) == 0x55D0


def test_no_stream_is_the_default_one() -> None:
    assert stream_handle(None) == 0


class Newer:
    """A version of the protocol that is not known."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return (1, 0x55D0)


@pytest.mark.parametrize(
    ("stream", "words"), [(Newer(), r"version 1; must be 0"), ("0", "str is not a CUDA stream"), (True, "bool is not")]
)
def test_what_is_no_stream(stream: Any, words: str) -> None:
    with pytest.raises(InvalidTypeError, match=words):
        stream_handle(stream)
