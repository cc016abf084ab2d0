"""Objects of another kind and numbers that are none end in a typed error; large layouts are refused before a walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

import cute_py.tmem as tmem
from cute_py import Int, Layout
from cute_py.errors import CuteError, InvalidTypeError, TmemError
from tests.refusals import Refusal, assert_refused, refusals

DONE = tmem.demonstrate()
PLAN = DONE.copy.plan
SMEM = np.zeros(9, np.uint8)
N = sympy.Symbol("N", integer=True, positive=True)
HUGE = Layout((Int(2**40), Int(2**30)))

REFUSED: list[Refusal] = [
    ("plan", lambda: tmem.run(4, DONE.tmem, 0, np.zeros(4096, np.uint8), 0), InvalidTypeError, "the plan of a copy"),
    ("address", lambda: tmem.run(PLAN, tmem.TensorMemory(), 0, SMEM, "0"), InvalidTypeError, "address"),
    ("memory", lambda: tmem.read_back(2, 0, 4), InvalidTypeError, "tensor memory must be a TensorMemory"),
    ("columns", lambda: tmem.read_back(tmem.TensorMemory(), 0, 2**40), TmemError, "tensor memory has 512"),
    ("negative columns", lambda: tmem.read_back(tmem.TensorMemory(), 0, -1), TmemError, "tensor memory has 512"),
    ("pair", lambda: tmem.run_pair(1, (), 0, (), 0), InvalidTypeError, "a copy must be a CopyAsync"),
    ("side", lambda: tmem.promised(5, 5, 8, 0), InvalidTypeError, "the shared side must be a Side"),
    ("to CuTe", lambda: tmem.to_cute(2), InvalidTypeError, "a TileLayout or a ComposeLayout, got int 2"),
    ("from CuTe", lambda: tmem.from_cute_tmem((4, 8), "int8"), InvalidTypeError, "must be a Layout"),
    ("operand", lambda: tmem.canonical_operand("", 5), InvalidTypeError, "a Layout or a ComposedLayout"),
    ("huge operand", lambda: tmem.canonical_operand(HUGE, "float16"), TmemError, "are walked one by one"),
    ("request", lambda: tmem.why_not(7), InvalidTypeError, "a request of a copy must be a CopyRequest"),
    ("symbol", lambda: tmem.alloc_columns(N), InvalidTypeError, "the number of columns must be an integer"),
    ("tile", lambda: tmem.demonstrate(5), InvalidTypeError, "tile must be a ndarray"),
    ("descriptor", lambda: tmem.encode_matrix_descriptor("0", 1, 1, 0), InvalidTypeError, "the address of shared"),
    ("offset", lambda: tmem.smem_desc_add_16B_offset(0, 1.5), InvalidTypeError, "an offset must be an integer"),
    ("start", lambda: tmem.replace_start_address(0, N), InvalidTypeError, "an address must be an integer"),
    ("picture", lambda: tmem.picture(np.zeros(4)), TmemError, "must be (lanes, columns, bytes)"),
    ("sources", lambda: tmem.source_addresses(3, 3), InvalidTypeError, "a form of tcgen05.cp"),
    ("text", lambda: tmem.examine(6), InvalidTypeError, "the text of an instruction"),
    ("emission", lambda: tmem.emit_cuda(8), InvalidTypeError, "a copy must be a CopyAsync"),
    ("kernel", lambda: tmem.emit_kernel(8), InvalidTypeError, "a copy must be a CopyAsync"),
    ("form", lambda: tmem.plan_form(1, 2, 3, 8), InvalidTypeError, "a form of tcgen05.cp"),
    ("format", lambda: tmem.decompress(np.zeros(16, np.uint8), []), InvalidTypeError, "source_format must be a str"),
    ("shape", lambda: tmem.Buffer("A", 4, "int8", "shared"), InvalidTypeError, "the shape of a buffer"),
    ("name", lambda: tmem.Buffer(5, (4,), "int8", "shared"), InvalidTypeError, "the name of a buffer"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_numbers_of_numpy_are_plain_numbers() -> None:
    """A numpy integer of 32 bits overflowed where the mask of 64 bits was applied to it."""
    assert tmem.smem_desc_add_16B_offset(np.int32(4), np.uint8(200)) == 204
    assert tmem.replace_start_address(np.uint8(200), np.int32(1024)) == tmem.replace_start_address(200, 1024)
    assert tmem.alloc_columns(np.int64(33)) == 64
