"""Plain bulk copies, bulk groups, and the memories."""

from __future__ import annotations

import numpy as np
import pytest

from cute_py.errors import InvalidTypeError, InvalidValueError, TmaTrap
from cute_py.tma.descriptor.data_types import TensorMapDataType
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.bulk import Cluster, bulk_load, bulk_store, bulk_to_cta, check_bulk
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
from cute_py.tma.simulate.diagnosis import Run


def test_load_and_store() -> None:
    memory, smem = GlobalMemory(), SharedMemory(256)
    source = memory.add("A", np.arange(256, dtype=np.uint8), 0x10000)
    target = memory.allocate("B", 256)
    barrier = Mbarrier(1)
    barrier.arrive_expect_tx(64)
    assert bulk_load(memory, source.address + 32, smem, 128, 64, barrier=barrier).evidence == "documented"
    assert barrier.try_wait(0)
    assert smem.array[128:192].tolist() == list(range(32, 96))
    assert smem.array[127] == smem.array[192] == 0xCD
    bulk_store(smem, 128, memory, target.address + 16, 64)
    assert target.array.tolist() == [0] * 16 + list(range(32, 96)) + [0] * 176


def test_reduction() -> None:
    memory = np.full(4, 5, np.uint32).view(np.uint8)
    bulk_store(
        np.arange(4, dtype=np.uint32).view(np.uint8), 0, memory, 0, 16, op="add", data_type=TensorMapDataType.UINT32
    )
    assert memory.view(np.uint32).tolist() == [5, 6, 7, 8]
    with pytest.raises(InvalidValueError, match="does not exist"):
        bulk_store(memory, 0, memory.copy(), 0, 16, op="min", data_type=TensorMapDataType.FLOAT32)


def test_to_another_cta() -> None:
    cluster = Cluster(2, 256)
    barrier = cluster.init_barriers(128, 1)[1]
    cluster[0].array[:32] = 9
    bulk_to_cta(cluster[0], 0, cluster[1], 32, 32, barrier=128)
    assert cluster[1].array[32:64].tolist() == [9] * 32
    assert barrier.tx_count == -32
    with pytest.raises(InvalidValueError, match="belong to different clusters"):
        bulk_to_cta(cluster[0], 0, SharedMemory(64), 0, 16, barrier=barrier)


@pytest.mark.parametrize(("size", "address", "reasons"), [(16, 32, 0), (0, 0, 0), (8, 32, 1), (16, 8, 1), (24, 8, 2)])
def test_sizes_and_addresses(size: int, address: int, reasons: int) -> None:
    assert len(check_bulk(size, address=address)) == reasons
    if reasons:
        with pytest.raises(InvalidValueError, match="must be a multiple of 16"):
            bulk_load(np.zeros(64, np.uint8), address, np.zeros(64, np.uint8), 0, size)


def test_outside_of_memory() -> None:
    for address, offset in ((64, 0), (0, 64)):
        with pytest.raises(TmaTrap, match="ILLEGAL_ADDRESS"):
            bulk_load(np.zeros(64, np.uint8), address, np.zeros(64, np.uint8), offset, 16)


def test_groups_are_waited_for_oldest_first() -> None:
    tile = TensorMapTiled(TensorMapDataType.UINT8, 4096, (1024,), (), (64,))
    gmem = GlobalMemory()
    gmem.add("A", np.zeros(1024, np.uint8), 4096)
    run = Run(Emulator(), gmem, SharedMemory(1024))

    def unread() -> list[int]:
        """Places that a write races with a store: those of stores that may still read them."""
        run.races.clear()
        for i in range(4):
            run.write(128 * i, np.zeros(64, np.uint8))
        run.fence_proxy_async()
        return [race.start // 128 for race in run.races]

    for i in range(3):
        run.store(tile, (64 * i,), 128 * i)
        run.commit_group()
    assert unread() == [0, 1, 2]
    run.wait_group_read(7)
    assert unread() == [0, 1, 2]
    run.wait_group_read(2)
    assert unread() == [1, 2]
    run.wait_group(1)
    assert unread() == [2]
    run.store(tile, (192,), 384)
    run.wait_group(0)
    assert unread() == [3]  # not committed, so not waited for
    with pytest.raises(InvalidValueError):
        run.wait_group(-1)


def test_ranges() -> None:
    memory = GlobalMemory()
    memory.add("A", np.zeros(16, np.uint8), 100)
    assert (memory.find(99), memory.find(116)) == (None, None)
    assert memory.name_of(115) == "A + 15" and memory.name_of(116) == "0x74"
    assert memory["A"].end == 116
    for name, address in (("A", 500), ("B", 115), ("B", 90)):
        with pytest.raises(InvalidValueError):
            memory.add(name, np.zeros(16, np.uint8), address)
    memory.add("B", np.zeros(16, np.uint8), 116)
    assert memory.allocate("C", 10).address == 256
    with pytest.raises(InvalidValueError, match="no range named 'D'"):
        memory["D"]
    with pytest.raises(InvalidTypeError):
        memory.add("E", np.zeros(4, np.int8), 4096)


def test_shared_memory() -> None:
    assert set(SharedMemory(64, poison=7).array.tolist()) == {7}
    with pytest.raises(InvalidValueError, match="multiple of 16"):
        SharedMemory(64, base=8)
