"""Copies between random layouts on the device, element by element; nothing around them is touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout
from cute_py.copies import plan as plan_module
from cute_py.copies.boxes import Tuning
from cute_py.copies.operands import OperandSide
from cute_py.copies.plan import _planned
from cute_py.copies.prepared import prepare_copy, prepare_sides
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidValueError
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.layout.offsets import offsets as layout_offsets
from cute_py.tensor.array_views import ArrayView
from tests.copies.pairs import DTYPES, permuted, random_pair
from tests.copies.test_nibbles import memories

GUARD = 256
PAIRS = 2000
UNEVEN = (8, 539, 1368, 4804, 4807, 4842)
"""Random pairs with vectors whose first and last place tell nothing of those between."""


def arrives(device: Device, seed: int, pair: object) -> tuple[str, set[str]]:
    """Copy a pair, compare every byte of both buffers; its form and the digests of its kernels."""
    first, second = pair.offsets()  # type: ignore[attr-defined]
    element = pair.element  # type: ignore[attr-defined]
    inside, sides, buffers, contents, places = np.arange(element), [], [], [], []
    rng = np.random.default_rng(seed)
    for role, offsets, layout, shift in zip(
        ("source", "destination"),
        (first, second),
        (pair.source, pair.destination),  # type: ignore[attr-defined]
        pair.shifts,  # type: ignore[attr-defined]
        strict=True,
    ):
        low = -(min(int(offsets.min()), 0) // GUARD) * GUARD + GUARD + shift
        content = rng.integers(0, 256, low + int(offsets.max()) + element + GUARD, dtype=np.uint8)
        buffer = DeviceBuffer(device, len(content))
        buffer.write(content.tobytes())
        view = ArrayView(buffer.address + low, (), (), as_dtype(DTYPES[element]), device.ordinal)
        sides.append(OperandSide(role, view, layout, None))
        buffers.append(buffer)
        contents.append(content)
        places.append((offsets + low)[:, None] + inside)
    prepared = prepare_sides(sides[0], sides[1], device=device)
    prepared.launch()
    prepared.check()
    contents[1][places[1]] = contents[0][places[0]]
    for buffer, content in zip(buffers, contents, strict=True):
        assert np.array_equal(np.frombuffer(bytes(buffer.read()), np.uint8), content), (seed, pair, prepared.plan)
        buffer.close()
    assert prepared.plan is not None
    return prepared.plan.form, {kernel.source.digest for kernel in prepared.kernels}


def test_random_pairs_arrive_with_few_kernels(device: Device) -> None:
    kernels: set[str] = set()
    forms: set[str] = set()
    for seed in range(PAIRS):
        form, digests = arrives(device, seed, random_pair(seed))
        forms.add(form)
        kernels |= digests
    assert forms == {"affine", "linear", "general"}


def test_random_pairs_arrive_in_tiles(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """As larger ones do."""
    monkeypatch.setattr(plan_module, "FEW", 0)
    _planned.cache_clear()
    try:
        for seed in (*range(PAIRS, PAIRS + 200), *UNEVEN):
            arrives(device, seed, random_pair(seed))
    finally:
        _planned.cache_clear()


def test_copies_wait_for_the_one_before_them(device: Device) -> None:
    """Kernels of every kind, there and back between two buffers: powers of a permutation, in a stream and a graph."""
    api = driver()
    for size in (2**16, 2**20, 2**23):
        for shape, order in (
            (((size // 512), 256), (1, 0)),
            ((size // 502, 251), (1, 0)),
            ((size // 4096, 64, 32), (1, 0, 2)),
        ):
            pair = permuted(shape, order, 2)
            content = np.random.default_rng(size).integers(0, 2**16, pair.count, dtype=np.uint16)
            made = [filled(device, content), filled(device, np.zeros_like(content))]
            copies = [
                prepare_copy((made[i][1], pair.source), (made[1 - i][1], pair.destination), device=device)
                for i in (0, 1)
            ]
            first, second = (part // 2 for part in pair.offsets())
            step, wanted = np.empty_like(first), content
            step[second] = first
            for _ in range(20):
                wanted = wanted[step]
            with device.current():
                stream = call("a stream", api.cuStreamCreate, 1)
                mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                for one in copies:
                    one.prepare(int(stream))
                for captured in (False, True):
                    made[0][0].write(content.tobytes())
                    if captured:
                        call("capturing", api.cuStreamBeginCapture, stream, mode)
                    for i in range(20):
                        copies[i % 2].launch(int(stream))
                    if captured:
                        graph = call("captured", api.cuStreamEndCapture, stream)
                        executable = call("instantiating", api.cuGraphInstantiate, graph, 0)
                        call("launching", api.cuGraphLaunch, executable, stream)
                    call("waiting", api.cuStreamSynchronize, stream)
                    assert np.array_equal(np.frombuffer(bytes(made[0][0].read()), np.uint16), wanted)
                call("destroying", api.cuGraphExecDestroy, executable)
                call("destroying", api.cuGraphDestroy, graph)
            for one in copies:
                one.check()


@pytest.mark.parametrize("element", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_odd_and_even_sizes_arrive_in_vectors(device: Device, element: int, order: tuple[int, ...]) -> None:
    for number, shape in enumerate(((64, 96, 128), (33, 65, 129), (3, 512, 510), (130, 4, 4096))):
        pair = permuted(shape, order, element)
        for shifts in ((0, 0), (element % 16, 3 * element % 16)):
            arrives(device, number, replace(pair, shifts=shifts))


@pytest.mark.parametrize("begin", range(0, 60, 20))
def test_elements_of_four_bits_arrive(device: Device, begin: int) -> None:
    for seed in range(begin, begin + 20):
        pair = random_pair(seed)
        found = memories(pair, seed)
        if found is None:
            continue
        for nibbles in (("low", "low"), ("low", "high"), ("high", "low")):
            operands = (found[0], pair.source), (found[1].copy(), pair.destination)
            assert cute.copy(*operands, dtype="uint4", nibbles=nibbles, backend="both").equal


def filled(device: Device, content: np.ndarray) -> tuple[DeviceBuffer, ArrayView]:
    buffer = DeviceBuffer(device, content.nbytes)
    buffer.write(content.tobytes())
    return buffer, ArrayView(buffer.address, content.shape, (1,), as_dtype(content.dtype.name), device.ordinal)


MOVED = (
    (Layout((1000, 999), (999, 1)), Layout((1000, 999))),
    (Layout((1024, 512), (512, 1)), Layout((1024, 512))),
    (Layout((60, 1000), (1000, 1)), Layout((40, 1500), (1500, 1))),
)


@pytest.mark.parametrize(
    ("size", "shift", "tuning"),
    [(2**16, 0, Tuning()), (2**16 - 3, 0, Tuning()), (2**16, 1, Tuning()), (2**16 - 3, 2, None), (2**24 - 3, 0, None)],
)
def test_a_copy_of_one_run_moves_to_other_memory(device: Device, size: int, shift: int, tuning: Tuning | None) -> None:
    """By tensor maps, with a tail that threads copy, and from a place of another alignment."""
    content = np.random.default_rng(size).random((2, size + 4), dtype=np.float32)
    sources = [filled(device, one) for one in content]
    targets = [filled(device, np.zeros(size, np.float32)) for _ in range(2)]

    def pair(number: int) -> list[ArrayView]:
        source = replace(sources[number][1], address=sources[number][1].address + 4 * shift, shape=(size,))
        return [source, targets[number][1]]

    first = prepare_copy(*pair(0), device=device, tuning=tuning)
    assert bool(first.plans) == (tuning is not None or (first.plan is not None and first.plan.kernel == "boxes"))
    assert first.blocks == tuple(one.blocks for one in first._default)
    moved = first.moved(*pair(1))
    for number, one in enumerate((first, moved)):
        one.launch()
        one.check()
        got = np.frombuffer(bytes(targets[number][0].read()), np.float32)
        assert np.array_equal(got, content[number][shift : shift + size])
    source, target = pair(1)
    for wrong in (
        [replace(source, address=source.address + 4), target],
        [source, replace(target, address=target.address + 4)],
        [replace(source, dtype=as_dtype("int32")), replace(target, dtype=as_dtype("int32"))],
        [replace(source, strides=(2,)), target],
    ):
        with pytest.raises(InvalidValueError, match="differs from the one that was prepared"):
            first.moved(*wrong)


def test_a_prepared_copy_runs_on_the_machine(device: Device) -> None:
    x = np.random.default_rng(5).random((24, 36), dtype=np.float32)
    there, here = filled(device, x.reshape(-1)), filled(device, np.zeros(x.size, np.float32))
    layouts = Layout((24, 36), (36, 1)), Layout((24, 36))
    prepared = prepare_copy((there[1], layouts[0]), (here[1], layouts[1]), device=device)
    source, destination = x.reshape(-1).copy(), np.zeros(x.size, np.float32)
    run = cute.run_ptx(prepared, args=((source, layouts[0]), (destination, layouts[1])), schedule="eager")
    assert run.ok, run.explain()
    assert np.array_equal(destination.reshape(36, 24).T, x)
    assert np.array_equal(source, x.reshape(-1))


def test_a_copy_without_elements(device: Device) -> None:
    one = filled(device, np.zeros(4, np.float32))[1]
    empty = replace(one, shape=(0, 4), strides=(4, 1))
    prepared = prepare_copy(empty, empty, device=device)
    assert (prepared.bytes, prepared.kernels, prepared.blocks) == (0, (), ())
    prepared.launch()
    prepared.check()


@pytest.mark.parametrize("layouts", MOVED)
def test_a_copy_moves_to_other_memory(device: Device, layouts: tuple[Layout, Layout]) -> None:
    """Without a plan, launched and as the node of a graph that was captured before."""
    count, rng, api = int(cute.size(layouts[0])), np.random.default_rng(0), driver()
    made = [filled(device, rng.random(count, dtype=np.float32)) for _ in range(4)]
    sides = [(view, layouts[i % 2]) for i, (_, view) in enumerate(made)]
    first = prepare_copy(sides[0], sides[1], device=device)
    moved = first.moved(sides[2], sides[3])
    wanted = {}
    for source, destination in ((0, 1), (2, 3)):
        content = np.frombuffer(bytes(made[source][0].read()), np.float32)
        wanted[destination] = np.zeros(count, np.float32)
        index = np.arange(count)
        wanted[destination][layout_offsets(layouts[1], index)] = content[layout_offsets(layouts[0], index)]
    for one, at in ((first, 1), (moved, 3)):
        one.launch()
        one.check()
        assert np.array_equal(np.frombuffer(bytes(made[at][0].read()), np.float32), wanted[at])
    made[1][0].fill(0)
    made[3][0].fill(0)
    with device.current():
        stream = call("a stream", api.cuStreamCreate, 1)
        mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        first.prepare(int(stream))
        call("capturing", api.cuStreamBeginCapture, stream, mode)
        first.launch(int(stream))
        graph = call("captured", api.cuStreamEndCapture, stream)
        nodes, _ = call("nodes", api.cuGraphGetNodes, graph, 8)
        executable = call("instantiating", api.cuGraphInstantiate, graph, 0)
        moved.update_graph(int(executable), [int(node) for node in nodes][: len(moved.kernels)])
        call("launching", api.cuGraphLaunch, executable, stream)
        call("waiting", api.cuStreamSynchronize, stream)
        call("destroying", api.cuGraphExecDestroy, executable)
        call("destroying", api.cuGraphDestroy, graph)
    assert np.array_equal(np.frombuffer(bytes(made[3][0].read()), np.float32), wanted[3])
    assert not np.frombuffer(bytes(made[1][0].read()), np.float32).any()
