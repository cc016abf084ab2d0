"""What a redistribution between GPUs asks of the driver, of which this one is made up: what runs is in tests/gpu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_py.dtypes import as_dtype
from cute_py.errors import DeviceError
from cute_py.gpu.kernels.source import ERROR_RECORD
from cute_py.mesh import Placement, SectionedShard, Shard, StridedShard, Zigzag, distribute, peer, redistribute
from cute_py.mesh.peer import PeerRedistribution, Pushes
from cute_py.tensor.array_views import ArrayView, row_major
from tests.gpu.host.test_current_device import CONTEXTS
from tests.mesh.conftest import Driver
from tests.mesh.places import Alone

SHAPE, LARGE = (4096, 8192), (32768, 16384)


def ready(
    source: Placement,
    destination: Placement,
    local: Any = "row",
    sms: int = 16,
    shape: tuple[int, ...] = SHAPE,
    **how: Any,
) -> Pushes:
    sides = distribute(shape, 2, [source]), distribute(shape, 2, [destination], local=local)
    views = []
    for number, one in enumerate(sides):
        shapes = {d: one.local_shape(d) for d in (0, 1)}
        views.append(
            {
                d: ArrayView((1 + 2 * number + d) << 36, n, row_major(n), as_dtype("bf16"), d, False, None)
                for d, n in shapes.items()
            }
        )
    made = redistribute(*sides, "bf16").prepare(*views, backend="peer", sms=sms, **how)
    assert isinstance(made, PeerRedistribution)
    return made.pushes


def test_a_launch_is_few_calls_whatever_it_moves(api: Driver) -> None:
    for source in (Shard(0), StridedShard(0, 64)):
        made = ready(source, Shard(1))
        made.launch()
        del api.calls[:]
        made.launch()
        assert api.names() == [
            "cuEventRecord",  # of device 0's stream, which is current
            "cuStreamWaitEvent",
            "cuEventRecord",
            "cuGraphLaunch",
            "cuStreamWaitEvent",
            "cuGraphLaunch",
        ]
        assert [current for _, current, *_ in api.calls] == [CONTEXTS[n] for n in (0, 1, 1, 1, 0, 0)]
        assert api.current == CONTEXTS[0]
        api.current = CONTEXTS[1]
        made.launch()
        del api.calls[:]
        made.launch()
        assert [current for _, current, *_ in api.calls] == [CONTEXTS[n] for n in (1, 0, 0, 0, 1, 1)], "as many"
        assert api.current == CONTEXTS[1]
        api.current = 555
        made.launch()
        assert api.current == 555
        api.current = 0
        made.launch()
        assert api.current == CONTEXTS[0], "where there was none"


def captures(api: Driver) -> list[list[tuple[Any, ...]]]:
    """The calls of each capture, (name, context, arguments), its first one with the stream."""
    found: list[list[tuple[Any, ...]]] = []
    for one in api.calls:
        if one[0] == "cuStreamBeginCapture":
            found.append([])
        if found and "cuStreamEndCapture" not in [name for name, *_ in found[-1]]:
            found[-1].append(one)
    return found


def test_a_graph_for_each_device_whose_end_is_a_meeting(api: Driver) -> None:
    made = ready(Shard(0), Shard(1))
    assert len(captures(api)) == 2
    for n, inside in enumerate(captures(api)):
        stream, beside = made._streams[n, 0], made._streams[n, 1]
        assert inside[0][2] == stream
        assert {current for _, current, *_ in inside} == {CONTEXTS[n]}
        launched = [arguments[0].hStream for name, _, *arguments in inside if name == "cuLaunchKernelEx"]
        assert launched == [stream, beside, stream]
        waits = [tuple(arguments) for name, _, *arguments in inside if name == "cuStreamWaitEvent"]
        assert waits == [(beside, made._forked[n], 0), (stream, made._done[n, 1], 0)]
        assert [name for name, *_ in inside[-3:]] == ["cuStreamWaitEvent", "cuLaunchKernelEx", "cuStreamEndCapture"]


def test_a_meeting_of_the_devices_that_run_copies(api: Driver) -> None:
    """Each device's counts are in its own memory, and all have the addresses of all."""
    meeting = ready(Shard(0), Shard(1), seconds=2.0)._meeting
    assert meeting is not None
    addresses = [one.address for one in meeting._keep]
    for me, memory in enumerate(meeting._keep):
        assert np.frombuffer(bytes(memory.read(32)), np.uint64).tolist() == [0, 0, *addresses]
        values = meeting._launches[me].parameters.values
        assert values[:4] == (addresses[me], addresses[me] + 16, me, 2 * peer.CYCLES)
        assert meeting._launches[me].kernel.source.threads == 2
    assert ready(Alone(0), Alone(1))._meeting is None
    meeting.check()
    content = ERROR_RECORD.pack(1, 0, 5, 0, 0, 0, 0, 0, 77)  # thread 0: the first device
    meeting._records[1]._buffer.write(content)
    with pytest.raises(DeviceError, match="device 1: the copies of device 0 had not ended after 77 clock cycles"):
        meeting.check()


def test_devices_that_meet_have_access_to_each_other(api: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Device 1 keeps what it has, and writes nothing to device 0 but its count."""
    ready(Shard(0), Alone(1))
    assert [current for name, current, *_ in api.calls if name == "cuCtxEnablePeerAccess"][-2:] == list(CONTEXTS)
    monkeypatch.setattr(peer, "has_peer_access", lambda device, other: (device.ordinal, other.ordinal) != (1, 0))
    made = ready(Shard(0), Alone(1))
    assert made._meeting is None
    del api.calls[:]
    made.launch()
    assert api.names().count("cuLaunchKernelEx") + api.names().count("cuMemcpyAsync") == 2
    assert api.names().count("cuEventRecord") > 4


@pytest.mark.parametrize("blocking", [False, True])
def test_a_stream_that_is_captured_gets_the_kernels(
    api: Driver, monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    """And no meeting, whose parts need not run at once there; nor do they where the launches of kernels block."""
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", str(int(blocking)))
    made = ready(Shard(0), Shard(1))
    api.capturing = {7}
    del api.calls[:]
    made.launch({0: 7, 1: 8})
    assert "cuGraphLaunch" not in api.names()
    assert api.names().count("cuLaunchKernelEx") == 4
    waits = [tuple(arguments) for name, _, *arguments in api.calls if name == "cuStreamWaitEvent"]
    between = [(8, made._begun[0], 0), (7, made._begun[1], 0), (8, made._ended[0], 0), (7, made._ended[1], 0)]
    assert [one for one in waits if one in between] == between
    api.capturing = set()
    made.launch({0: 7, 1: 8})
    assert api.names().count("cuGraphLaunch") == 2 * (not blocking)


def test_streams_that_are_not_given_are_not_ordered(api: Driver) -> None:
    exchange, one_way = ready(Shard(0), Shard(1)), ready(Alone(0), Alone(1))
    inner = exchange._runs[1]
    led = [("cuEventRecord", 7), ("cuGraphLaunch", 7), ("cuStreamWaitEvent", inner), ("cuGraphLaunch", inner)]
    own = one_way._runs[0]
    behind = [("cuEventRecord", 7), ("cuStreamWaitEvent", 8)]
    for made, given, expected in (
        (exchange, {0: 7}, led),
        (one_way, {0: 7}, [("cuGraphLaunch", 7)]),
        (one_way, 7, [("cuGraphLaunch", 7)]),
        (one_way, {0: 7, 1: 8}, [("cuEventRecord", 8), ("cuStreamWaitEvent", 7), ("cuGraphLaunch", 7), *behind]),
        (one_way, {1: 8}, [("cuEventRecord", 8), ("cuStreamWaitEvent", own), ("cuGraphLaunch", own)]),
    ):
        del api.calls[:]
        made.launch(given)
        place = {"cuEventRecord": 1, "cuGraphLaunch": 1, "cuStreamWaitEvent": 0}
        done = [(name, rest[place[name]]) for name, _, *rest in api.calls if name in place]
        assert done[: len(expected)] == expected
        assert done[len(expected) :] == ([("cuEventRecord", own), ("cuStreamWaitEvent", 8)] if given == {1: 8} else [])


def test_a_launch_that_failed_ends_the_meetings(api: Driver) -> None:
    made = ready(Shard(0), Shard(1))
    api.fails = "cuGraphLaunch"
    with pytest.raises(DeviceError, match="CUDA_ERROR_UNKNOWN"):
        made.launch()
    api.fails = ""
    with pytest.raises(DeviceError, match="an earlier launch failed, so the devices are out of step"):
        made.launch()


def test_what_stays_takes_as_many_multiprocessors_as_take_as_long_as_the_links(api: Driver) -> None:
    def blocks(made: Pushes) -> dict[tuple[int, int], list[int]]:
        return {key: [n for one in copies for n in one.blocks] for key, copies in made._copies.items()}

    pushed = {(0, 1): [16], (1, 0): [16]}
    assert blocks(ready(Shard(0), Shard(1))) == {(0, 0): [16], (1, 1): [16], **pushed}
    assert blocks(ready(Shard(0), Shard(0))) == {(0, 0): [132], (1, 1): [132]}
    quarter = blocks(ready(Shard(0), SectionedShard(0, (3072, 1024))))  # device 1 keeps two parts, one after the other
    assert quarter == {(0, 0): [48], (1, 1): [48, 48], **pushed}
    turned = blocks(ready(Shard(0), Shard(1), local="column", sms=8))
    assert turned == {key: [8 * 13] for key in ((0, 0), (0, 1), (1, 0), (1, 1))}, "13 blocks fit on one"


@pytest.mark.parametrize("source", [SectionedShard(0, (2048, 1024, 1024)), StridedShard(0, 4)])
def test_long_rows_move_in_whole_tiles(api: Driver, source: Placement) -> None:
    for copies in ready(source, Shard(0))._copies.values():
        assert {one.kernels[0].source.facts["TILE_BYTES"] for one in copies} == {1 << 14}


def test_the_copy_engine_moves_much_of_long_rows(api: Driver) -> None:
    made = ready(Zigzag(0), Shard(1), shape=LARGE)
    assert {route.how for route in made.routes} == {"local", "engine"}
    copies = [arguments[0] for name, _, *arguments in api.calls if name == "cuMemcpy2DAsync"]
    assert {(one.WidthInBytes, one.srcPitch, one.dstPitch) for one in copies} == {(16384, 32768, 16384)}
    assert sum(one.WidthInBytes * one.Height for one in copies) == 2 * 2 * 8192 * 16384
    first = made._keep[1 if made._keep[0].to == 0 else 0]
    assert first.transfer.source_device != first.transfer.destination_device
    del api.calls[:]
    whole = ready(Shard(0), Zigzag(0), shape=LARGE)
    assert [arguments[2] for name, _, *arguments in api.calls if name == "cuMemcpyAsync"] == [1 << 28, 1 << 28]
    assert {route.how for route in whole.routes} == {"local", "engine"}
    assert {route.how for route in ready(Shard(0), Shard(1), "column", shape=LARGE).routes} == {"local", "push"}


@pytest.mark.parametrize("fails", ["cuEventRecord", "cuGraphLaunch", "cuStreamWaitEvent"])
def test_a_call_that_fails_is_reported_and_the_context_is_back(api: Driver, fails: str) -> None:
    made = ready(Shard(0), Shard(1))
    api.fails = fails
    with pytest.raises(DeviceError, match="launching a redistribution: CUDA_ERROR_UNKNOWN"):
        made.launch()
    assert api.current == CONTEXTS[0]


def test_a_capture_that_fails_is_ended(api: Driver) -> None:
    api.fails = "cuLaunchKernelEx"
    with pytest.raises(DeviceError, match="CUDA_ERROR_UNKNOWN"):
        ready(Shard(0), Shard(1))
    assert "cuStreamEndCapture" in api.names()
    assert "cuGraphInstantiate" not in api.names()
