"""Tiles that fit into no block's shared memory: the atom says so, copies and exports refuse, no fix suggests one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.cli.copy_command import SHARED_MEMORY, make_copy
from cute_py.errors import CuteError, TmaLimitError
from cute_py.gpu.kernels.source import MAX_SHARED_BYTES
from cute_py.tma import export, find_fixes, lower, make_tma_atom
from cute_py.tma.atom.tiles import first_tile
from cute_py.tma.descriptor.limits import ARCHITECTURES, architecture

LIMIT = 232_448


def atom(rows: int, columns: int, op: str = "SM90_TMA_LOAD", **options: Any) -> Any:
    dtype = options.pop("dtype", "uint8")
    x = cute.make_tensor(cute.make_gmem_ptr(4096, dtype), Layout((4096, 4096), (4096, Int(1))))
    return make_tma_atom(op, x, Layout((Int(rows), Int(columns)), LayoutRight), split_oversize=True, **options)


def test_one_fact() -> None:
    """227 KiB of a block, 228 of an SM; of sm_120 99 and 100. Every other name is this table's."""
    assert [row.shared_memory_bytes - row.block_shared_memory_bytes for row in ARCHITECTURES] == [1024] * 6
    assert architecture("sm_90a").block_shared_memory_bytes == 227 * 1024 == LIMIT
    assert architecture("sm_100a").block_shared_memory_bytes == 227 * 1024
    assert architecture("sm_120").block_shared_memory_bytes == 99 * 1024
    assert MAX_SHARED_BYTES == SHARED_MEMORY == LIMIT


@pytest.mark.parametrize(
    ("rows", "op", "arch", "fits"),
    [
        (1816, "SM90_TMA_STORE", "sm_90a", True),  # 1816 x 128 bytes = 227 KiB
        (1816, "SM90_TMA_LOAD", "sm_90a", False),  # and no room for the barrier
        (1815, "SM90_TMA_LOAD", "sm_90a", True),
        (1817, "SM90_TMA_STORE", "sm_90a", False),
        (1817, "SM90_TMA_PREFETCH", "sm_90a", True),
        (791, "SM90_TMA_LOAD", "sm_120a", True),
        (792, "SM90_TMA_LOAD", "sm_120a", False),
    ],
)
def test_the_bound(rows: int, op: str, arch: str, fits: bool) -> None:
    made = atom(rows, 128, op, arch=arch)
    reason = made.why_not()
    assert (reason is None) == fits
    if reason is not None:
        assert reason.startswith(f"the tile needs {rows * 128} bytes")
        assert f"{architecture(arch).block_shared_memory_bytes} bytes of shared memory" in reason
        assert reason in made.explain()


def short_rows(tile: tuple[int, ...], swizzle: int, op: str = "SM90_TMA_LOAD", **options: Any) -> Any:
    """An atom of rows of 64 bytes, which a swizzle of 128 bytes places 128 bytes apart."""
    shape = (64,) * (len(tile) - 2) + (4096, 64)
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout(shape, LayoutRight))
    flagged = cute.ComposedLayout(
        cute.Swizzle(swizzle, 4, 3), cute.smem_ptr_flag(16), Layout(tuple(map(Int, tile)), LayoutRight)
    )
    x = cute.make_tensor(x.engine, Layout(shape, (*x.stride[:-1], Int(1))))
    return make_tma_atom(op, x, flagged, split_oversize=True, **options)


def test_rows_that_are_shorter_than_their_swizzle_take_its_span() -> None:
    """Of 14 boxes of 16 KiB the last takes 32; one box of 128 KiB takes 256."""
    for tile, taken in (((3584, 32), 13 * 16384 + 32768), ((8, 256, 32), 262144)):
        assert str(short_rows(tile, 3).why_not()).startswith(f"the tile needs {taken} bytes and a barrier of 8")
        assert short_rows(tile, 2).why_not() is None
    assert first_tile(short_rows((3328, 32), 3)).smem_bytes == 12 * 16384 + 32768 < LIMIT


def test_four_gathered_rows_take_four_spans() -> None:
    made = short_rows((4, 32), 3, "SM100_TMA_LOAD_2D_GATHER4", arch="sm_100a")
    assert (made.bytes_per_instruction, first_tile(made).smem_bytes) == (256, 1024)
    made = short_rows((64, 32), 3, "SM100_TMA_LOAD_2D_GATHER4", arch="sm_100a")
    assert first_tile(made).smem_bytes == 15 * 256 + 512 + 768  # rounded up to the alignment


@pytest.mark.parametrize("kind", ["cu", "ptx", "cute", "triton"])
def test_exports_refuse(kind: str) -> None:
    text = "the tile needs 262144 bytes and a barrier of 8; a block has at most 232448"
    with pytest.raises(TmaLimitError, match=text) as error:
        export(atom(256, 512, dtype="float16"), kind)
    assert [(found.rule, found.value) for found in error.value.violations] == [("shared_memory", 262144)]


@pytest.mark.parametrize("op", ("SM90_TMA_LOAD", "SM90_TMA_STORE"))
def test_the_target_is_what_a_tile_must_fit(op: str) -> None:
    """An atom of sm_90 with 99 KiB and with 128: sm_120 has 99 for a block, 8 of them for the barrier of a load."""
    barrier = " and a barrier of 8" if op.endswith("LOAD") else ""
    for rows, fits in ((395, True), (396, not barrier), (512, False)):
        made = atom(rows, 256, op)
        for call in (lower, lambda it, arch: export(it, "ptx", arch=arch)):
            call(made, arch="sm_100a")
            if fits:
                call(made, arch="sm_120a")
                continue
            text = f"the tile needs {rows * 256} bytes{barrier}; a block has at most 101376 bytes of shared memory on"
            with pytest.raises(TmaLimitError, match=text):
                call(made, arch="sm_120a")


def test_lowering_and_copies_refuse() -> None:
    array = np.zeros((512, 1024), np.float16)
    tile = Layout((Int(256), Int(512)), LayoutRight)
    made = make_tma_atom("SM90_TMA_LOAD", array, tile, split_oversize=True)
    for call in (
        lambda: cute.tma.copy(made, array),
        lambda: cute.tma.execute(made, array),
        lambda: lower(made),
    ):
        with pytest.raises(TmaLimitError, match="the tile needs 262144 bytes"):
            call()


def test_no_hint_leads_to_a_tile_that_does_not_fit() -> None:
    """Every fix of a refused tile is made again: it fits, its instructions start where they may, and it copies."""
    tried = 0
    for dtype in ("uint8", "float16", "float32"):
        array = np.arange(1024 * 1024, dtype=dtype).reshape(1024, 1024)
        x = cute.make_tensor(array)
        for shape in ((256, 512), (512, 256), (512, 512), (1024, 8), (8, 1024), (300, 32), (512, 20)):
            tile = Layout(tuple(map(Int, shape)), LayoutRight)
            given = {"op": "SM90_TMA_LOAD", "gtensor": x, "smem_layout": tile, "num_multicast": 1, "suggest": False}
            for fix in find_fixes(make_tma_atom, given, most=6):
                made = make_tma_atom(**{**given, **fix.arguments})
                reason = made.why_not()
                assert reason is None or "shared memory" not in reason, (dtype, shape, fix)
                if "gtensor" not in fix.arguments and reason is None:
                    assert cute.tma.copy(made, array).equal, (dtype, shape, fix)
                    tried += 1
    assert tried > 20


def test_the_hint_of_a_refusal() -> None:
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((1024, 1024), (1024, Int(1))))
    for rows, split in ((256, False), (64, True)):
        with pytest.raises(TmaLimitError) as error:
            make_tma_atom("SM90_TMA_LOAD", x, Layout((Int(rows), Int(512)), LayoutRight))
        assert ("split_oversize" in str(error.value.hint)) == split


def test_tiles_of_the_command() -> None:
    """No tile that the command suggests is refused when it is taken."""
    for shape, tile in (((512, 512), (512, 256)), ((512, 300), (256, 300)), ((64, 1024), (64, 1024))):
        array = np.ones(shape, np.float32)
        with pytest.raises(CuteError) as error:
            make_copy(array, tile)
        for hint in str(getattr(error.value, "hint", None) or "").removeprefix("these work: ").split(", "):
            if hint.startswith("--tile"):
                words = hint.split()
                sizes = tuple(int(n) for n in words[1].split("x"))
                work = make_copy(array, sizes, words[3], *(["col"] if "col" in hint else []))
                assert work.atom.why_not() is None
