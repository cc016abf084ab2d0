"""Fields of records against their annotations, and texts that go into sources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from types import GenericAlias
from typing import Any, Literal

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, watch
from cute_py.argument_checks import expect_expression, expect_fields, expect_function, expect_integers
from cute_py.atomic_write import write_whole
from cute_py.checkpoints import open_checkpoint
from cute_py.errors import CuteError, FileFormatError, InvalidTypeError, InvalidValueError
from cute_py.gpu.arrays import array_view
from cute_py.mesh import Shard, distribute, redistribute
from cute_py.mesh.reshard_plan import read_plan
from cute_py.mesh.stored_tensors import stored_file
from cute_py.tensor.arrays import ArrayEngine
from tests.each import each_of
from tests.refusals import Refusal, assert_refused, nested, refusals


@dataclass(frozen=True, slots=True)
class Row:
    """One field of each kind that records have."""

    name: str = "a"
    extents: tuple[int, ...] = ()
    pair: tuple[int, str] = (1, "b")
    parent: Row | None = None
    known: Mapping[str, int] | None = None
    share: float = 0.5
    call: Callable[[int], int] = abs
    side: Literal["left", "right"] = "left"
    other: Any = None

    def __post_init__(self) -> None:
        expect_fields(self)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class NowhereToGo(os.PathLike[str]):
    def __fspath__(self) -> str:
        raise RuntimeError("no path")


TAKE_PATHS: dict[str, Callable[[Any], object]] = {
    "save": lambda path: cute.draw.draw_layout(cute.Layout(4)).save(path),
    "request_of_npy": lambda path: cute.tma.request_of_npy(path, (4,)),
    "write_whole": lambda path: write_whole(path, "text"),
    "stored_file": stored_file,
    "read_plan": read_plan,
    "open_checkpoint": open_checkpoint,
    "read_records": watch.read_records,
    "dump": lambda path: watch.report_on(watch.Recording((), 0)).dump(path),
}


@each_of("name", sorted(TAKE_PATHS))
def test_what_is_no_path_is_refused(name: str) -> None:
    for wrong in (0, Int(0), b"folder", ("folder",), NowhereToGo(), None):
        with pytest.raises(InvalidTypeError, match="must be a text or a path, got "):
            TAKE_PATHS[name](wrong)


@pytest.mark.parametrize("name", ["\ud800", "a\0b"])
def test_a_path_that_no_file_has_can_not_be_read(name: str) -> None:
    with pytest.raises(FileFormatError, match="can't be read"):
        read_plan(name)


REFUSED: list[Refusal] = [
    ("name", lambda: Row(4), InvalidTypeError, "Row.name must be a str, got int 4"),
    ("no tuple", lambda: Row(extents=[1]), InvalidTypeError, "Row.extents must be a tuple, got list [1]"),
    ("item", lambda: Row(extents=(1, True)), InvalidTypeError, "Row.extents[1] must be an int, got bool True"),
    ("count", lambda: Row(pair=(1,)), InvalidTypeError, "Row.pair must have 2 items, got (1,)"),
    ("second", lambda: Row(pair=(1, 2)), InvalidTypeError, "Row.pair[1] must be a str, got int 2"),
    ("union", lambda: Row(parent=Unprintable()), InvalidTypeError, "Row.parent must be Row or None, got Unprintable"),
    ("key", lambda: Row(known={1: 1}), InvalidTypeError, "Row.known must be Mapping or None"),
    ("float", lambda: Row(share="1"), InvalidTypeError, "Row.share must be an int, got str '1'"),
    ("call", lambda: Row(call=4), InvalidTypeError, "Row.call must be a Callable, got int 4"),
    ("literal", lambda: Row(side="up"), InvalidValueError, "Row.side = 'up'; must be one of 'left', 'right'"),
    ("huge", lambda: Row(extents=(1 << 129,)), InvalidValueError, "Row.extents[0] = "),
    ("deep", lambda: Row(extents=nested(5000)), InvalidTypeError, "Row.extents[0] must be an int"),
    ("empty", lambda: expect_expression(" ", "taddr"), InvalidValueError, "taddr = ' '; must be an expression"),
    ("two lines", lambda: expect_expression("a\nb", "taddr"), InvalidValueError, "must be an expression on one"),
    ("no text", lambda: expect_expression(4, "taddr"), InvalidTypeError, "taddr must be a str"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_integers_are_stored_as_plain_ones() -> None:
    row = Row(extents=(np.int32(4), Int(2)), share=1, parent=Row(), known={"a": 1}, side="right", other=object())
    assert row.extents == (4, 2)
    assert {type(extent) for extent in row.extents} == {int}
    assert row.share == 1.0 and type(row.share) is float
    same = (1, 2)
    assert Row(extents=same).extents is same


@pytest.mark.parametrize("text", ["taddr", "slot[0] + 4u", "*pointer", "f(a, b)"])
def test_expressions(text: str) -> None:
    assert expect_expression(text, "taddr") == text


class Alias:
    """What `type Alias[T] = np.ndarray` makes, which Python 3.11 can't write."""

    __value__ = np.ndarray
    __class_getitem__ = classmethod(GenericAlias)


def test_a_field_may_be_annotated_with_a_type_alias() -> None:
    """As numpy's NDArray is one from 2.5 on; the `type` statement itself needs Python 3.12."""
    kind = make_dataclass("Kept", [("table", Alias[np.uint8])])
    expect_fields(kind(np.zeros(2)))
    with pytest.raises(InvalidTypeError, match=r"Kept\.table must be a ndarray, got str"):
        expect_fields(kind("zeros"))


@pytest.mark.parametrize("call", [lambda a: a, lambda: 0, cute.Swizzle(2, 0, 3)])
def test_a_function_of_another_number_of_arguments_is_refused(call: Any) -> None:
    with pytest.raises(InvalidTypeError, match="the splitter must be a function of 2 arguments"):
        expect_function(call, "the splitter", 2)


@pytest.mark.parametrize("call", [lambda a, b: a, lambda *a: a, lambda a, b=0, c=1: a, max, cute.logical_divide])
def test_a_function_that_takes_the_arguments_passes(call: Any) -> None:
    assert expect_function(call, "the splitter", 2) is call


@pytest.mark.parametrize("unordered", [{8, 4}, frozenset((8, 4)), {8: 4}, "84", b"84", tuple])
def test_what_has_no_order_is_no_sequence(unordered: Any) -> None:
    with pytest.raises(
        InvalidTypeError, match=f"extents must be a sequence of integers, got {type(unordered).__name__}"
    ):
        expect_integers(unordered, "extents")
    assert expect_integers(iter((8, 4)), "extents") == (8, 4)


def masked(array: Any) -> Any:
    return np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) % 3 == 0)


HALVES = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
ATOM = cute.tma.make_tma_copy("SM90_TMA_LOAD", HALVES, cute.Layout((Int(32), Int(32)), cute.LayoutRight))
BYTES = np.zeros(1 << 14, np.uint8)
NUMBERS = np.arange(8)
MMA = "SM80_16x8x16_F32F16F16F32_TN"
ROWS = distribute(8, 2, [Shard(0)])

OF_ARRAYS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a copy": (lambda *arrays: cute.tma.copy(ATOM, *arrays), (HALVES, HALVES.copy())),
    "a tile": (lambda array: cute.tma.execute(ATOM, array), (HALVES,)),
    "an array on a device": (array_view, (HALVES,)),
    "a tensor": (cute.make_tensor, (HALVES,)),
    "an engine": (lambda flat: ArrayEngine(flat, 0), (HALVES.reshape(-1),)),
    "the emulator's memory": (
        lambda gmem, smem: cute.tma.Emulator().load(ATOM.descriptor, gmem, (0, 0), smem, gmem_base=HALVES.ctypes.data),
        (BYTES, BYTES.copy()),
    ),
    "coordinates of instructions": (
        lambda coords: cute.tma.Emulator().load_many(
            ATOM.descriptor, BYTES, coords, BYTES.copy(), smem_offsets=[0], gmem_base=HALVES.ctypes.data
        ),
        (np.zeros((1, 2), np.int64),),
    ),
    "a tensor map": (lambda words: cute.tma.decode(words), (np.frombuffer(ATOM.descriptor, np.uint8),)),
    "offsets": (lambda index: cute.offsets(cute.Layout(8, 2), index), (NUMBERS,)),
    "coordinates": (lambda offset: cute.coordinates(cute.Layout(8), offset), (NUMBERS,)),
    "registers": (lambda words: cute.Warps(1).write("%r", words), (np.arange(32),)),
    "gemm": (
        lambda *arrays: cute.gemm(cute.make_tiled_mma(MMA), *arrays),
        (np.zeros((16, 16), np.float16), np.zeros((8, 16), np.float16)),
    ),
    "a distribution": (
        lambda source: redistribute(ROWS, ROWS, "f32").run(
            {0: source, 1: source}, {0: np.zeros(4, np.float32), 1: np.zeros(4, np.float32)}
        ),
        (np.zeros(4, np.float32),),
    ),
}


@each_of("name", OF_ARRAYS)
def test_a_mask_is_not_lost(name: str) -> None:
    """Of each array in turn; the same call takes the arrays without a mask."""
    call, arrays = OF_ARRAYS[name]
    call(*arrays)
    for i in range(len(arrays)):
        with pytest.raises(InvalidTypeError, match="is a masked array, and its mask would be lost"):
            call(*arrays[:i], masked(arrays[i]), *arrays[i + 1 :])


def test_no_masked_element_is_stored() -> None:
    with pytest.raises(InvalidTypeError, match="the element is a masked array"):
        cute.make_tensor(np.zeros(4))[0] = np.ma.masked
