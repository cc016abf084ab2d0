"""The table of threads: every row is run, or says why it is not; none is open."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, StaticAssertError, UnknownFactError
from cute_py.tma import TensorMapTiled
from tests.each import each_of
from tests.explanation.threads import SEEN
from tests.explanation.variants import cutlass
from tests.oracle.records import rows

PAGE = Path(__file__).parents[1] / "docs/howto/threads.md"
PASTES = {row["id"]: row["text"] for row in rows("pastes")}


def atom(swizzle: str = "128B", shape: tuple[int, int] = (256, 128)) -> cute.tma.TmaAtom:
    x = np.zeros(shape, np.uint16)
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.tma.make_smem_layout("K", swizzle, "uint16", (64, 64)))


def said(text: str) -> str:
    return str(cute.explain(text))


def table() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().split("\n") if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]


def dsl_layout() -> bool:
    return "1024 bytes in all" in said("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")


def refused_tile() -> bool:
    try:
        cute.tma.make_smem_layout("K", "128B", "float16", (128, 48))
    except StaticAssertError as error:
        return "lists layouts with swizzle 32B, none" in str(error.hint)
    return False


def unknown_format() -> bool:
    request = TensorMapTiled(14, 4096, (640, 128), (320,), (128, 3))
    try:
        cute.tma.encode(request, arch="sm_120")
    except UnknownFactError:
        return "sm_100 or later" in said(cutlass(14, [640, 128], [1, 320], [128, 3]))
    return False


def outside_the_cluster() -> bool:
    emulator, x = cute.tma.Emulator(), np.zeros(4096, np.uint8)
    request = TensorMapTiled(0, 4096, (64, 64), (64,), (64, 8))
    smem = cute.tma.SharedMemory(4096)
    try:
        emulator.load(cute.tma.encode(request), x, (0, 0), smem, gmem_base=4096, multicast_mask=0b100)
    except CuteError:
        return True
    return False


def larger_box() -> bool:
    text = said(cutlass(9, [40, 3], [2, 80], [64, 8]))
    return "box beyond tensor" in text and "\nWrong" not in text


def diagnosed_hang() -> bool:
    text = said(PASTES["j-toomany"])
    return "line 2 expects 16384 bytes, line 3 delivered 8192 bytes" in text


def without_conflicts() -> bool:
    rows, columns = Layout((32, 32), (1, 32)), Layout((32, 32), (32, 1))
    return str(cute.find_smem_layout(rows, columns, "float32")).startswith("Sw<")


def another_gpu() -> bool:
    """The plan runs between two halves in host memory, `backend="peer"` takes arrays on GPUs alone.

    On two devices it is run by tests/gpu/test_mesh_peer.py.
    """
    rows, columns = (cute.mesh.distribute((8, 8), 2, [cute.mesh.Shard(mode)]) for mode in (0, 1))
    plan = cute.mesh.redistribute(rows, columns, "float32")
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    halves = {0: x[:4].copy(), 1: x[4:].copy()}
    moved = plan.run(halves, backend="host")
    if not all(np.array_equal(moved[d], x[:, 4 * d : 4 * d + 4]) for d in (0, 1)):
        return False
    with pytest.raises(CuteError, match="on the GPU"):
        plan.run(halves, backend="peer")
    return True


ANSWERS = {
    "cutlass 2345": lambda: callable(cute.tma.tma_partition),
    "cutlass 1744": lambda: "1 in mode 1 of a coordinate" in said("1@1"),
    "cutlass 2381": lambda: cute.tma.create_tma_multicast_mask(Layout((1, 2, 2, 1)), (0, 0, 0, 0), 2) == 0b101,
    "cutlass 2094": lambda: str(cute.left_inverse(Layout((Int(128), Int(160)), (Int(65536), Int(1))))) != "",
    "cutlass 3471": lambda: cute.right_inverse(Layout((4, 8), (8, 1)))(1) is not None,
    "cutlass 3469": lambda: "uint32, int32, uint64, float16, bfloat16" in said("tma.REDUCTION_TYPES"),
    "cutlass 2656": lambda: (
        cute.tma.make_tma_copy(
            "SM90_TMA_REDUCE_ADD", np.zeros((64, 64), np.float32), Layout((Int(32), Int(32)), LayoutRight)
        ).instruction.direction
        != "load"
    ),
    "cutlass 2879": diagnosed_hang,
    "mirage 705": lambda: atom(shape=(100, 100 - 100 % 8)).transaction_bytes == 64 * 64 * 2,
    "FlashKDA 24": lambda: "store without fence.proxy.async" in str(cute.explain(cute.errors.RaceError)),
    "cutlass 2365": lambda: bool(cute.tma.check_smem_address(atom(), 512)) and atom().alignment == 1024,
    "cutlass 2570": lambda: cute.tma.coverage(atom(), [0, 1]).missing > 0,
    "tilelang 2555": refused_tile,
    "cutlass 3172": lambda: cute.tma.smem_choices("K", "float16", (64, 64))[0].passes == 1,
    "cutlass 1688": dsl_layout,
    "cutlass 2872": lambda: said("LBO").startswith("LBO, the leading byte offset"),
    "cutlass 947": lambda: "pad each row to 1008 elements" in said(PASTES["a-460"]),
    "recsys-examples 86": lambda: "break no rule" in said(PASTES["a-garbled"]),
    "cutlass 3236": unknown_format,
    "cutlass 3658": outside_the_cluster,
    "cutlass 1943": another_gpu,
    "cutlass 2944": lambda: cute.tma.coverage(atom(), [*range(8), 8]).outside == (8,),
    "helion 2555": larger_box,
    "cutlass 1272": lambda: "256 threads, 8 values each" in said(PASTES["b-1545c"]),
    "cutlass 1397": lambda: bool(cute.elem_less((3, 4), (4, 5))) and not cute.elem_less((3, 5), (4, 5)),
    "cutlass 1028": lambda: "a tile of 32x16x16" in said(PASTES["b-1365"]),
    "cutlass 2700": lambda: cute.atom.copy_atom("SM100_TMEM_LOAD_32dp32b1x", "uint32").arch == "sm100",
    "pytorch 182675": lambda: "at least 8 rows" in said(PASTES["e-gather"]),
    "cutlass 1234": without_conflicts,
    "cutlass 2443": lambda: "each element is held exactly once" in said(PASTES["h-ll2"]),
}
"""First thread of a row -> whether the answer is what the page says."""
OUTSIDE = ("quack, note on ragged TMA", "sglang 40278")


def first_thread(cell: str) -> str:
    """The first thread that a row names.

    >>> first_thread("[cutlass 2365](https://x), [ao 4647](https://y)"), first_thread("cutlass 1 2; triton 8")
    ('cutlass 2365', 'cutlass 1')
    """
    plain = re.sub(r"\]\([^)]*\)", "", cell.replace("[", ""))
    found = re.match(r"[\w-]+ [0-9]+", plain)
    return found[0] if found else plain


def test_every_row_is_an_answer_or_out_of_scope() -> None:
    named = [first_thread(row[0]) for row in table()]
    assert sorted(named) == sorted([*ANSWERS, *OUTSIDE])
    for row in table():
        assert len(row) == 4, row
        first = first_thread(row[0])
        assert row[3].startswith("out of scope") == (first in OUTSIDE), row


def test_the_page_counts_its_rows() -> None:
    counted = [(max(1, len(re.findall(r"\b[0-9]{2,6}\b", row[0]))), first_thread(row[0]) in OUTSIDE) for row in table()]
    whole, outside = sum(n for n, _ in counted), sum(n for n, out in counted if out)
    said = (
        f"{whole} threads in {len(counted)} rows: {whole - outside} are answered, {outside} are out of scope, "
        "and none is open"
    )
    text = " ".join(PAGE.read_text().split())
    assert f"{said}. `explain` also reads the messages of {len(SEEN)} more" in text


@each_of("thread", ANSWERS)
def test_an_answer_is_what_the_page_says(thread: str) -> None:
    assert ANSWERS[thread]()
