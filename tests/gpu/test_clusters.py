"""Multicast over clusters, exchange between CTAs, plain bulk copies, and copies of groups."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.kernels.bulk import copy_bulk, exchange_bulk
from benchmarks.kernels.groups import prepare_groups
from benchmarks.kernels.jobs import Job, run_jobs
from benchmarks.kernels.multicast import load_cluster
from cute_py.dtypes import as_dtype
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.gpu.kernels.walk import cover
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.tensor.array_views import ArrayView, row_major
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled


def fresh(count: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8).tobytes()


@pytest.mark.parametrize("cluster", [2, 4, 8, 16])
def test_a_mask_says_who_receives(device: Device, cluster: int) -> None:
    """Every mask with the issuer in and out of it: CTAs in the mask have the box, the others their old window."""
    gmem = fresh(64 * 1024)
    row = encode(TensorMapTiled(1, 0, (256, 128), (512,), (64, 8)))
    masks = [1, 2**cluster - 1, 0b10, 2 ** (cluster - 1), 0b0101 & (2**cluster - 1) or 1]
    jobs = [
        Job(
            CopyOp("load", 2, multicast=True),
            row,
            (64 * (i % 4), 5 * i),
            window=b"\x11" * 1024,
            expected=1024,
            gmem=gmem,
            mask=mask,
            issuer=i % cluster,
        )
        for i, mask in enumerate(masks)
    ]
    tensor = np.frombuffer(gmem, np.uint16).reshape(128, 256)
    for job, outcome in zip(jobs, run_jobs(jobs, cluster=cluster, device=device), strict=True):
        x, y = job.coords
        box = np.ascontiguousarray(tensor[y : y + 8, x : x + 64]).tobytes()
        assert outcome.completed
        assert [w == (box if job.mask >> r & 1 else job.window) for r, w in enumerate(outcome.windows)] == [
            True
        ] * cluster


@pytest.mark.parametrize("multicast", [False, True])
@pytest.mark.parametrize(("cluster", "tile_rows"), [(1, 16), (2, 16), (4, 64), (8, 64)])
def test_a_cluster_ring_brings_every_tile_to_every_block(
    device: Device, cluster: int, tile_rows: int, multicast: bool
) -> None:
    """Weighted sums of all words, of many turns through the ring, and the first tile byte for byte."""
    width, height, clusters = 256, 3200, 5
    content = fresh(width * height * 2)
    tile_bytes = tile_rows * width * 2
    walk = cover((width, height), (width, tile_rows))
    source = load_cluster(
        walk,
        tile_bytes,
        (0, tile_rows // cluster),
        cluster=cluster,
        clusters=clusters,
        stages=3,
        multicast=multicast,
        check=True,
    )
    blocks = cluster * clusters
    record = WaitRecord(device)
    with (
        DeviceBuffer(device, len(content)) as gmem,
        DeviceBuffer(device, blocks * tile_bytes) as dump,
        DeviceBuffer(device, 4 * blocks) as sums,
    ):
        gmem.write(content)
        tensor_map = encode(
            TensorMapTiled(1, gmem.address, (width, height), (width * 2,), (width, tile_rows // cluster))
        )
        kernel = load_kernel(source, device)
        PreparedLaunch(kernel, blocks, Parameters((tensor_map, dump.address, sums.address, record.address))).launch()
        record.check("load_cluster")
        got = np.frombuffer(bytes(sums.read()), np.uint32)
        first = bytes(dump.read())
    tiles = np.frombuffer(content, np.uint32).reshape(walk.tiles, tile_bytes // 4)
    weights = 2 * np.arange(tile_bytes // 4, dtype=np.uint32) + 1
    sum_of = (tiles * weights).sum(axis=1, dtype=np.uint32)
    for block in range(blocks):
        mine = range(block // cluster, walk.tiles, clusters)
        assert got[block] == np.uint32(sum(int(sum_of[t]) for t in mine) & 0xFFFFFFFF), block
        assert first[block * tile_bytes : (block + 1) * tile_bytes] == tiles[block // cluster].tobytes()


@pytest.mark.parametrize("size", [1, 15, 16, 1000, 16384, 100_001])
def test_bulk_copies(device: Device, size: int) -> None:
    content = fresh(size)
    record = WaitRecord(device)
    with DeviceBuffer(device, size + 64) as a, DeviceBuffer(device, size + 64) as b:
        b.fill(0xA5)
        a.write(content)
        kernel = load_kernel(copy_bulk(4096), device)
        PreparedLaunch(kernel, -(-size // 4096), Parameters((a.address, b.address, size, record.address))).launch()
        record.check("copy_bulk")
        assert bytes(b.read()) == content + b"\xa5" * 64


@pytest.mark.parametrize("cluster", [2, 4, 8])
def test_blocks_of_a_cluster_exchange_their_windows(device: Device, cluster: int) -> None:
    tile, blocks = 2048, 3 * cluster
    content = fresh(tile * blocks)
    record = WaitRecord(device)
    with DeviceBuffer(device, tile * blocks) as a, DeviceBuffer(device, tile * blocks) as b:
        a.write(content)
        kernel = load_kernel(exchange_bulk(tile, cluster), device)
        PreparedLaunch(kernel, blocks, Parameters((a.address, b.address, record.address))).launch()
        record.check("exchange_bulk")
        got = bytes(b.read())
    for block in range(blocks):
        there = block // cluster * cluster + (block + 1) % cluster
        assert got[there * tile : there * tile + tile] == content[block * tile : block * tile + tile]


@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_groups_are_rebound_on_the_device(device: Device, rank: int, split: int) -> None:
    """More tensors than blocks, of many sizes: each is copied, and nothing between them is touched."""
    rng = np.random.default_rng(rank)
    count, room = 700, 64 * 1024
    content = fresh(count * room, 3)
    with DeviceBuffer(device, count * room) as a, DeviceBuffer(device, count * room) as b:
        a.write(content)
        b.fill(0xA5)
        wanted = np.full((count, room), 0xA5, np.uint8)
        source = np.frombuffer(content, np.uint8).reshape(count, room)
        pairs = []
        for i in range(count):
            shape = tuple(int(x) for x in (*rng.integers(1, 9, rank - 1), 8 * rng.integers(1, 40)))
            pitch = list(row_major((*shape[:-1], shape[-1] + 8 * int(rng.integers(0, 3)))))
            views = [
                ArrayView(p.address + i * room, shape, tuple(s), as_dtype("bfloat16"), device.ordinal)
                for p, s in ((a, pitch), (b, list(row_major(shape))))
            ]
            pairs.append((views[0], views[1]))
            size = int(np.prod(shape))
            taken = np.lib.stride_tricks.as_strided(source[i].view(np.uint16), shape, [2 * s for s in pitch])
            wanted[i].view(np.uint16)[:size] = taken.reshape(-1)
        prepared = prepare_groups(pairs, split=split, device=device)
        for _ in range(2):
            b.fill(0xA5)
            prepared.launch()
            prepared.check()
            got = np.frombuffer(bytes(b.read()), np.uint8).reshape(count, room)
            bad = np.flatnonzero((got != wanted).any(axis=1))
            assert bad.size == 0, (bad.size, bad[:5], [pairs[j][0].shape for j in bad[:3]])


def test_a_barrier_that_expects_too_much_is_reported(device: Device) -> None:
    """The wait ends, the record names the bytes, and the device goes on working."""
    from cute_py.errors import DeviceError
    from cute_py.gpu.kernels.copy import copy_once

    record = WaitRecord(device)
    with DeviceBuffer(device, 65536) as a:
        tensor_map = encode(TensorMapTiled(1, a.address, (256, 128), (512,), (256, 8)))
        source = copy_once(cover((256, 128), (256, 8)), 4096 + 16)
        kernel = load_kernel(source, device)
        values = (tensor_map, tensor_map, 0, 0, record.address)
        PreparedLaunch(kernel, 1, Parameters(values)).launch()
        with pytest.raises(DeviceError, match="4112 bytes") as caught:
            record.check("copy_once", loads=[(tensor_map, 1)])
        assert caught.value.facts["emulator"] == "4096 bytes"
        record.check("copy_once")
