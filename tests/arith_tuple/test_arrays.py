"""Array engines: no copy, any strides, and objects of other libraries by their protocols."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, LayoutRight, local_tile, make_tensor, recast
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, TensorAccessError
from cute_py.tensor.arrays import ArrayEngine
from tests.each import each_of

BASE = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4)

VIEWS = {
    "whole": BASE,
    "transposed": BASE.transpose(2, 0, 1),
    "reversed": BASE[::-1, :, ::-1],
    "every other": BASE[:, ::2, 1::2],
    "one row": BASE[1, 2],
    "broadcast": np.broadcast_to(BASE[0, 0], (3, 4)),
    "reversed slice": BASE[:, ::-2, ::-3],
    "scalar": BASE[1, 1, 1:2].reshape(()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_element_is_the_arrays(name: str) -> None:
    array = VIEWS[name]
    tensor = make_tensor(array)
    assert tensor.shape == array.shape
    for place in np.ndindex(array.shape):
        assert tensor(*place) == array[place] if place else tensor(()) == array[()]
    assert tensor.engine.address == array.ctypes.data
    assert np.shares_memory(tensor.engine.flat, BASE)


@given(st.data())
def test_slicing_then_reading_is_reading_then_slicing(data: Any) -> None:
    array = VIEWS[data.draw(st.sampled_from(["whole", "transposed", "reversed", "every other"]))]
    tensor = make_tensor(array)
    kept = data.draw(st.lists(st.booleans(), min_size=3, max_size=3))
    place = [data.draw(st.integers(0, n - 1)) for n in array.shape]
    part = tensor(*[None if k else p for k, p in zip(kept, place, strict=True)])
    if any(kept):
        assert part(tuple(p for k, p in zip(kept, place, strict=True) if k)) == array[tuple(place)]
    else:
        assert part == array[tuple(place)]


def test_writing_goes_to_the_array() -> None:
    array = np.zeros((3, 4), np.float32)
    tensor = make_tensor(array[:, ::-1])
    tensor[1, 0] = 5
    local_tile(tensor, (Int(1), Int(2)), (2, 1))[0, 1] = 7
    assert array[1, 3] == 5
    assert array[2, 0] == 7
    with pytest.raises(TensorAccessError, match="one element"):
        tensor[1, None] = 5


def test_bad_values_and_offsets() -> None:
    tensor = make_tensor(np.zeros((2, 3), np.uint8))
    for bad in ("x", 300, None, [1, 2]):
        with pytest.raises(TensorAccessError, match="is not a valid"):
            tensor[0, 0] = bad
    by_coordinates = cute.Tensor(tensor.engine, cute.make_identity_layout((2, 3)))
    with pytest.raises(InvalidTypeError, match=r"integer offsets, got \(1,2\)"):
        by_coordinates(1, 2)
    with pytest.raises(InvalidTypeError, match="moved only by an integer"):
        by_coordinates(1, None)


BEYOND: list[tuple[str, Any, str]] = [
    ("uint8", 300, "is not a valid"),
    ("uint8", -1, "is not a valid"),
    ("uint8", np.int64(300), "is not a valid"),
    ("uint8", np.array(300), "is not a valid"),
    ("uint8", np.array(300.0), "is not a valid"),
    ("uint8", 256.0, "is not a valid"),
    ("uint8", float("nan"), "is not a valid"),
    ("int8", Int(128), "is not a valid"),
    ("int64", 2**63, "is not a valid"),
    ("int4", 8, "is not a valid"),
    ("int32", float("inf"), "is not a valid"),
    ("float16", 65520, "is not a valid"),
    ("float16", -1e6, "is not a valid"),
    ("float32", 10**400, "is not a valid"),
    ("bfloat16", 3.4e38, "is not a valid"),
    ("float8_e4m3fn", 464, "is not a valid"),
    ("float4_e2m1fn", np.float32(7), "is not a valid"),
    ("float8_e8m0fnu", 0, "is not a valid"),
    ("float16", None, "None is not a valid float16; it must be a number"),
    ("bool", None, "None is not a valid bool; it must be a number"),
    ("bool", "x", "'x' is not a valid bool; it must be a number"),
    ("int32", "3", "'3' is not a valid int32; it must be a number"),
    ("float32", b"3", "b'3' is not a valid float32; it must be a number"),
]
WITHIN: list[tuple[str, Any]] = [
    ("uint8", 255), ("uint8", 255.9), ("uint8", True), ("int8", -128), ("int64", -(2**63)), ("int4", -8),
    ("float16", 65519), ("float16", float("inf")), ("float32", 1e300 * 0), ("bfloat16", 3.38e38),
    ("float8_e4m3fn", -463), ("float4_e2m1fn", 6.9), ("float8_e8m0fnu", 0.5), ("complex64", 1e300j * 0),
]  # fmt: skip


def _engine(kind: str) -> ArrayEngine:
    dtype = as_dtype(kind)
    return ArrayEngine(np.ones(1, dtype.numpy), 0, dtype)


@each_of(("kind", "value", "words"), BEYOND, ids=[f"{kind} {value}" for kind, value, _ in BEYOND])
def test_a_value_beyond_the_type_is_not_stored(kind: str, value: Any, words: str) -> None:
    """Whatever numpy does with it: version 1.26 wraps 300 to 44, and all versions wrap scalars and small types."""
    engine = _engine(kind)
    with pytest.raises(TensorAccessError) as refusal:
        engine.store(0, value)
    assert words in str(refusal.value)
    assert engine[0] == 1


@each_of(("kind", "value"), WITHIN)
def test_a_value_within_the_type_is_stored(kind: str, value: Any) -> None:
    engine = _engine(kind)
    engine.store(0, value)
    stored = complex(engine[0])
    assert stored == complex(value) or abs(stored - complex(value)) <= max(abs(stored) / 8, 1)


def test_a_read_only_array_is_not_written() -> None:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    tensor = make_tensor(array)
    assert tensor(1) == 0
    with pytest.raises(TensorAccessError, match="read-only"):
        tensor[1] = 1


def test_a_unit_stride_is_static() -> None:
    assert str(make_tensor(BASE).layout) == "(2,3,4):(12,4,_1)"
    assert str(make_tensor(BASE.transpose(2, 1, 0)).layout) == "(4,3,2):(_1,4,12)"
    assert str(make_tensor(BASE[:, :, ::-1]).layout) == "(2,3,4):(12,4,-1)"


def test_a_layout_of_ones_own() -> None:
    tensor = make_tensor(BASE, Layout((Int(4), Int(6)), LayoutRight))
    assert tensor(3, 5) == 23
    with pytest.raises(TensorAccessError, match="outside the array"):
        tensor(4, 0)


def test_an_empty_array() -> None:
    tensor = make_tensor(np.zeros((0, 3), np.float32))
    assert tensor.shape == (0, 3)
    assert cute.format_tensor(tensor, header=False) == ""


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int8, np.uint64, np.float16, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4],
)
def test_every_type_is_read(dtype: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)[:, ::-1]
    tensor = make_tensor(array)
    assert all(tensor(i, j) == array[i, j] for i in range(2) for j in range(3))


class Memory:
    """A numpy array behind `__dlpack__` only."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self._array = array
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)


@pytest.mark.parametrize("name", ["whole", "transposed", "reversed", "every other"])
def test_dlpack_on_the_host(name: str) -> None:
    array = VIEWS[name].astype(np.float32) if name == "reversed" else VIEWS[name]
    tensor = make_tensor(Memory(array))
    assert tensor.engine.address == array.ctypes.data
    assert all(tensor(*p) == array[p] for p in np.ndindex(array.shape))
    assert str(tensor.layout) == str(make_tensor(array).layout)


def test_dlpack_writes_through() -> None:
    array = np.zeros(4, np.int64)
    make_tensor(Memory(array))[2] = 9
    assert array[2] == 9


def test_dlpack_of_a_device_without_an_address() -> None:
    with pytest.raises(InvalidTypeError, match="type 2"):
        make_tensor(Memory(BASE, device=2))


def test_a_type_that_dlpack_cannot_name() -> None:
    with pytest.raises(InvalidTypeError, match="DLPack"):
        make_tensor(Memory(np.zeros(3, ml_dtypes.bfloat16)))


class TorchLike(Memory):
    """What a torch tensor tells of itself: data_ptr(), stride() in elements, a dtype that prints with a prefix."""

    def __init__(self, array: Any, device: int = 1) -> None:
        super().__init__(array, device)
        self.shape = array.shape

    @property
    def dtype(self) -> str:
        return f"torch.{self._array.dtype.name}"

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self._array.itemsize for s in self._array.strides)

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)


def test_host_memory_by_its_address() -> None:
    array = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16).T
    tensor = make_tensor(TorchLike(array))
    assert tensor.element_type.name == "bfloat16"
    assert tensor(2, 1) == 5
    tensor[2, 1] = ml_dtypes.bfloat16(7)
    assert array[2, 1] == 7


def test_device_memory_by_its_address() -> None:
    source = TorchLike(np.zeros((3, 4), np.float16), device=2)
    tensor = make_tensor(source)
    assert str(tensor) == f"gmem_ptr[16b]({source.data_ptr():#x}) o (3,4):(4,_1)"
    assert tensor.engine.owner is source
    assert tensor(1, None).engine.owner is source


class CudaArray:
    """An object with `__cuda_array_interface__`."""

    def __init__(self, **entries: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (0x7F0000000000, False),
            "version": 3,
            **entries,
        }


def test_cuda_array_interface() -> None:
    source = CudaArray()
    tensor = make_tensor(source)
    assert str(tensor) == "gmem_ptr[32b](0x7f0000000000) o (3,4):(4,_1)"
    assert tensor.engine.owner is source
    assert str(make_tensor(CudaArray(strides=(4, 12))).layout) == "(3,4):(_1,3)"
    assert str(make_tensor(CudaArray(strides=(-16, 4))).layout) == "(3,4):(-4,_1)"
    assert str(make_tensor(CudaArray(strides=None)).layout) == "(3,4):(4,_1)"
    assert (
        str(make_tensor(CudaArray(typestr="<V2"), dtype="bfloat16")) == "gmem_ptr[16b](0x7f0000000000) o (3,4):(4,_1)"
    )
    assert str(make_tensor(CudaArray(shape=(0, 4), data=(0, False)))) == "gmem_ptr[32b]((nil)) o (0,4):(4,_1)"
    with pytest.raises(TensorAccessError):
        tensor(0, 0)


def test_a_type_that_a_typestr_can_not_name_is_asked_of_the_object() -> None:
    """PyTorch gives bfloat16 as two bytes, and raises KeyError for the 8-bit floats."""
    source = CudaArray(typestr="<V2")
    source.dtype = "torch.bfloat16"  # type: ignore[attr-defined]
    assert make_tensor(source).element_type.name == "bfloat16"

    class Refusing(TorchLike):
        @property
        def __cuda_array_interface__(self) -> object:
            raise KeyError("torch.float8_e4m3fn")

    refusing = Refusing(np.zeros((3, 4), ml_dtypes.float8_e4m3fn), device=2)
    assert make_tensor(refusing).element_type.name == "float8_e4m3fn"


@pytest.mark.parametrize(
    ("entries", "error", "words"),
    [
        ({"typestr": ">f4"}, InvalidValueError, "big-endian"),
        ({"typestr": "<V3"}, InvalidValueError, "no GPU element type"),
        ({"mask": object()}, InvalidTypeError, "masked"),
        (
            {"strides": (17, 4)},
            InvalidValueError,
            "axis 0 has a stride of 17 bytes; must be a multiple of the element's 4 bytes",
        ),
        ({"shape": None}, InvalidTypeError, "__cuda_array_interface__ of this CudaArray does not describe an array"),
        ({"strides": 5}, InvalidTypeError, "does not describe an array\n  cause : 'int' object is not iterable"),
        ({"typestr": None}, InvalidTypeError, "the typestr of a __cuda_array_interface__ must be a str"),
    ],
)
def test_bad_cuda_arrays(entries: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make_tensor(CudaArray(**entries))


@pytest.mark.parametrize("table", ["__cuda_array_interface__", "__array_interface__"])
def test_a_table_that_is_no_table(table: str) -> None:
    with pytest.raises(InvalidTypeError, match=f"the {table} of this Foreign does not describe an array"):
        make_tensor(type("Foreign", (), {table: 5})())


def test_a_cuda_array_without_data() -> None:
    source = CudaArray()
    del source.__cuda_array_interface__["data"]
    with pytest.raises(InvalidTypeError, match="'data'"):
        make_tensor(source)


@pytest.mark.parametrize("bad", [5, "text", [1, 2], None, object()])
def test_what_is_no_array(bad: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected an engine or an array"):
        make_tensor(bad, (4,))


def test_bad_arrays() -> None:
    with pytest.raises(InvalidValueError, match="big-endian"):
        make_tensor(np.zeros(3, ">f4"))
    with pytest.raises(InvalidValueError):
        make_tensor(np.zeros(3, object))
    with pytest.raises(InvalidValueError):
        make_tensor(np.array(["a"]))
    odd = np.zeros(4, [("a", "u1"), ("b", "<f4")])["b"]
    with pytest.raises(
        InvalidValueError, match="axis 0 has a stride of 5 bytes; must be a multiple of the element's 4 bytes"
    ):
        make_tensor(odd)
    with pytest.raises(InvalidTypeError, match=r"an array of int16 \(2 bytes\) can't hold float32"):
        make_tensor(np.zeros(4, np.int16), dtype="float32")


def test_tfloat32_reads_19_bits() -> None:
    array = np.array([1 + 2**-20, 1 + 2**-10], np.float32)
    tensor = make_tensor(array, dtype="tfloat32")
    assert (tensor(0), tensor(1)) == (1, 1 + 2**-10)


@pytest.mark.parametrize("new", ["uint8", "int16", "uint16", "float32", "uint64", "bfloat16"])
def test_recast_is_numpys_view(new: str) -> None:
    array = np.arange(64, dtype=np.uint16).reshape(4, 16)
    tensor = recast(make_tensor(array, Layout((Int(4), Int(16)), LayoutRight)), new)
    viewed = array.view(tensor.element_type.numpy)
    assert all(
        np.array(tensor(i, j)).tobytes() == viewed[i, j].tobytes() for i in range(4) for j in range(viewed.shape[1])
    )
    assert np.shares_memory(tensor.engine.flat, array)


def test_recast_of_a_slice_and_of_negative_strides() -> None:
    array = np.arange(32, dtype=np.uint16)
    wide = array.view(np.uint32)
    part = make_tensor(array, Layout((Int(4), Int(8)), LayoutRight))(1, None)
    assert [recast(part, "uint32")(i) for i in range(4)] == wide[4:8].tolist()
    backwards = cute.Tensor(make_tensor(array[::-1]).engine, Layout(Int(32), Int(-1)))
    assert [recast(backwards, "uint32")(i) for i in range(16)] == wide[::-1].tolist()


def test_recasts_that_are_refused() -> None:
    with pytest.raises(InvalidTypeError, match="4 bits"):
        recast(make_tensor(np.zeros(4, np.uint8), (Int(4),)), "int4")
    with pytest.raises(InvalidValueError, match="the array of 3 bytes has no room for an element of 64 bits at byte 0"):
        make_tensor(np.zeros(3, np.uint8), (Int(3),)).engine.recast("uint64")
    with pytest.raises(
        InvalidTypeError, match="recast needs a tensor in memory, but this engine computes its elements"
    ):
        recast(cute.make_identity_tensor((4, 5)), "float32")
    with pytest.raises(InvalidTypeError, match="takes a tensor"):
        recast(Layout((4, 5)), "float32")  # type: ignore[arg-type]
