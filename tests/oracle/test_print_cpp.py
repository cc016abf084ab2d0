"""print and print_tensor, character for character. Each recorded C++ expression is written here in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cute_py as cute
from cute_py import E, Int, Layout, counting_iterator, make_identity_tensor, make_inttuple_iter, make_tensor
from cute_py.dtypes import as_dtype
from tests.oracle.records import printed, rows, tally
from tests.shares import in_part


def tma_tensor() -> Any:
    """The TMA tensor of a half (256,128,3,1) tensor tiled by (_128,_64): built, not typed in."""
    gmem = make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((256, 128, 3, 1), (Int(1), 256, 32768, 98304)))
    tiler = (Int(128), Int(64))
    atom = cute.tma.make_tma_copy(cute.tma.Op.SM90_TMA_LOAD, gmem, Layout(tiler), tiler)
    return atom, atom.get_tma_tensor(gmem.shape), tiler


def tile(m: int) -> Any:
    _, tensor, tiler = tma_tensor()
    return cute.local_tile(tensor, tiler, (m, None))


def partition() -> Any:
    atom, _, tiler = tma_tensor()
    smem = make_tensor(cute.make_smem_ptr(0, "float16"), Layout(tiler))
    tiled = cute.group_modes(tile(0), 0, 2)
    return cute.tma.tma_partition(atom, Int(0), Layout(Int(1)), cute.group_modes(smem, 0, 2), tiled)[0]


I = Int  # noqa: E741
TENSOR_45 = (4, 5)
DYNAMIC_ROW = Layout((3, 4), (4, 1))

CASES: dict[str, Callable[[], Any]] = {
    "s003_counting": lambda: make_tensor(counting_iterator(42), (4, 5)),
    "s003_iter_add": lambda: (make_inttuple_iter(42, I(2), I(7)) + (I(0), 5, I(2))).deref(),  # noqa: RUF005
    "s003_E": lambda: E(),
    "s003_E0": lambda: E(0),
    "s003_E1": lambda: E(1),
    "s003_E01": lambda: E(0, 1),
    "s003_E10": lambda: E(1, 0),
    "s003_5E1": lambda: 5 * E(1),
    "s003_5E01": lambda: 5 * E(0, 1),
    "s003_s5E1": lambda: I(5) * E(1),
    "s003_s5E01": lambda: I(5) * E(0, 1),
    "s003_sum": lambda: 3 * E(0) + 4 * E(1),
    "s003_sum_static": lambda: I(3) * E(0) + I(4) * E(1),
    "s003_lincomb": lambda: 2 * (2 * E(0, 1)) + 3 * E(1) + 4 * (5 * E(1)) + 7 * E(0, 0),
    "s003_lincomb_static": lambda: I(2) * (I(2) * E(0, 1)) + I(3) * E(1) + I(4) * (I(5) * E(1)) + I(7) * E(0, 0),
    "s003_a": lambda: make_tensor(make_inttuple_iter(0, 0), (4, 5), (E(0), E(1))),
    "s003_b": lambda: make_tensor(make_inttuple_iter(0, 0), (4, 5), (E(1), E(0))),
    "s003_ij": lambda: Layout((4, 5), (E(0), E(1)))(2, 3),
    "s003_ji": lambda: Layout((4, 5), (E(1), E(0)))(2, 3),
    "s003_intro_direct": lambda: make_tensor(
        make_inttuple_iter((0, I(0), I(0), I(0))),
        Layout(((I(128), I(64)), 2, 3, 1), ((E(0), E(1)), I(64) * E(1), E(2), E(3))),
    ),
    "s003_intro_mA": lambda: tma_tensor()[1],
    "s003_intro_gA": lambda: tile(0),
    "s003_intro_full": lambda: cute.group_modes(tile(0), 0, 2),
    "s003_intro_full_m1": lambda: cute.group_modes(tile(1), 0, 2),
    "s003_intro_partition": partition,
    "id_tensor_45": lambda: make_identity_tensor((4, 5)),
    "id_tensor_45_full": lambda: make_identity_tensor((4, 5)),
    "id_tensor_static": lambda: make_identity_tensor((I(2), I(3))),
    "id_tensor_nested": lambda: make_identity_tensor(((2, 3), 4)),
    "id_tensor_1d": lambda: make_identity_tensor((5,)),
    "id_tensor_4d": lambda: make_identity_tensor((2, 2, 2, 2)),
    "id_layout_1": lambda: cute.make_identity_layout(7),
    "basis_like": lambda: cute.make_basis_like(((2, 3), 4, (5, (6, 7)))),
    "id_zipped": lambda: cute.zipped_divide(make_identity_tensor((8, 6)), (I(4), I(3))),
    "id_zipped_full": lambda: cute.zipped_divide(make_identity_tensor((8, 6)), (I(4), I(3))),
    "id_slice": lambda: make_identity_tensor((4, 5))(2, None),
    "id_slice_s": lambda: make_identity_tensor((4, 5))(I(2), None),
    "id_elem": lambda: make_identity_tensor((4, 5))(2, 3),
    "id_elem_1d": lambda: make_identity_tensor((4, 5))(7),
    "id_elem_nested": lambda: make_identity_tensor(((2, 3), 4))(5, 1),
    "comp_1": lambda: cute.composition(cute.make_identity_layout((I(8), I(6))), Layout(I(4), I(2))),
    "comp_2": lambda: cute.composition(cute.make_identity_layout((I(8), I(6))), Layout(I(16), I(1))),
    "comp_tiler": lambda: cute.composition(cute.make_identity_layout((1024, 256)), (I(128), I(64))),
    "comp_tiler3": lambda: cute.composition(cute.make_identity_layout((1024, 256, 8)), (I(128), I(64))),
    "ldivide_id": lambda: cute.logical_divide(cute.make_identity_layout((I(8), I(6))), (I(4), I(3))),
    "ar_tuple": lambda: cute.as_arith_tuple(E(2)),
    "ar_tuple2": lambda: cute.as_arith_tuple(5 * E(1, 2)),
    "ar_diff": lambda: cute.ArithTuple(5, 3) - cute.ArithTuple(1, I(1)),
    "ar_c0": lambda: I(0) + cute.ArithTuple(1, 2),
    "ar_nest": lambda: cute.ArithTuple(1, (2, 3)) + E(1, 1) * 4,
    "ar_e_eq": lambda: E(0) + E(0),
    "ar_safe_div": lambda: (I(64) * E(1)).safe_div(I(16)),
    "ar_ceil_div": lambda: cute.ceil_div(I(65) * E(1), I(16)),
    "ar_basis_value": lambda: cute.basis_value(I(7) * E(2)),
    "ar_eq3": lambda: int(E(1) == E(1, 0)),
    "ar_eq4": lambda: int(E(1) == I(1)),
    "iter_plus_e": lambda: make_inttuple_iter(0, 0) + 5 * E(1),
    "counting_row": lambda: make_tensor(counting_iterator(0), DYNAMIC_ROW),
    "coord_nested_basis": lambda: make_tensor(make_inttuple_iter(((0, 0), 0)), (2, 3, 2), (E(0, 0), E(0, 1), E(1))),
    "coord_sum_mode": lambda: cute.make_coord_tensor(Layout(((2, 2), 3), ((E(0), E(1)), I(4) * E(0)))),
}


def text(row: dict[str, Any]) -> str:
    value = CASES[row["id"]]()
    if isinstance(value, cute.Tensor) and row["text"].endswith("\n"):
        return cute.format_tensor(value)
    return cute.text(value)


def check(name: str) -> None:
    known = [row for row in rows(name) if row["id"] in CASES]
    uncovered = [row["id"] for row in rows(name) if row["id"] not in CASES]
    wrong = [f"{row['id']}: {row['text']!r} expected, got {text(row)!r}" for row in known if text(row) != row["text"]]
    tally(name, len(known) - len(wrong), len(rows(name)), uncovered)
    assert not wrong, "\n".join(wrong)
    assert not uncovered


def test_texts_of_the_tensor_tutorial() -> None:
    check("print_cpp_seed")


def test_texts() -> None:
    check("print_cpp")


def memory(name: str) -> Any:
    """The elements that the recorded C++ programs read: 4096 bytes, packed where an element is narrower than one."""
    dtype = as_dtype(name)
    octets = np.array([((i * 37 + 11) ^ (i >> 3)) & 255 for i in range(4096)], np.uint8)
    if dtype.bits >= 8:
        return octets.view(dtype.numpy)
    bits = np.unpackbits(octets, bitorder="little")
    count = len(bits) // dtype.bits
    values = (bits[: count * dtype.bits].reshape(count, dtype.bits) << np.arange(dtype.bits)).sum(1)
    if dtype.kind == "int":
        values = np.where(values >= 1 << (dtype.bits - 1), values - (1 << dtype.bits), values).astype(np.int8)
    if dtype.kind == "float":
        return values.astype(np.uint8).view(dtype.numpy)
    return values.astype(np.uint8 if dtype.kind == "uint" else np.int8).astype(dtype.numpy)


NAMES: dict[str, Any] = {**{name: getattr(cute, name) for name in cute.__all__}, "mem": memory, "np": np}


def test_texts_of_run_programs() -> None:
    """Each row is a C++ statement, what it printed, and the Python expression for the same text."""
    wrong = []
    for row in rows("print_cpp_run"):
        got = eval(row["py"], dict(NAMES))
        if got != row["text"]:
            wrong.append(f"{row['id']}: {row['cpp']}\n{row['text']!r} expected, got\n{got!r}")
    tally("print_cpp_run", len(rows("print_cpp_run")) - len(wrong), len(rows("print_cpp_run")))
    assert not wrong, "\n".join(wrong)


@in_part(6)
def test_texts_of_random_statements(every: int) -> None:
    """Random layouts, tensors, coordinates through the whole algebra; a row has `error` where C++ does not compile."""
    table = rows("print_cpp_random")[::every]
    wrong = []
    for row in table:
        recorded = row["text"] if "text" in row else row["error"].rpartition(" @ ")[0]
        if (got := printed(row["py"], NAMES)) != recorded:
            wrong.append(f"{row['id']}: {row['cpp']}\n{recorded!r} expected, got\n{got!r}")
    tally("print_cpp_random", len(table) - len(wrong), len(table), every=every)
    assert not wrong, "\n".join(wrong)
    assert sum("error" in row for row in table) > 100 // every


def test_the_comparison_can_fail() -> None:
    row = next(r for r in rows("print_cpp_run") if r["id"] == "ar_id3")
    assert eval(row["py"].replace("(2,3,2)", "(2,3,3)"), dict(NAMES)) != row["text"]
