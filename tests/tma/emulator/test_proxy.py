"""When a tensor map that the device wrote is ordered for the engine."""

from __future__ import annotations

import itertools

import pytest

from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.tensormap_proxy import SCOPES, Agent, TensormapProxy, needed_scope

OLD, NEW = (
    encode(TensorMapTiled(0, 4096, (64, 8), (64,), (32, 4))),
    encode(TensorMapTiled(0, 8192, (64, 8), (64,), (32, 4))),
)
AT = 0x1000
HERE, SAME_CLUSTER, SAME_GPU, OTHER_GPU = Agent(0, 0, 0), Agent(1, 0, 0), Agent(2, 1, 0), Agent(0, 0, 1)


def placed() -> TensormapProxy:
    proxy = TensormapProxy()
    proxy.place(AT, OLD)
    return proxy


def test_a_map_from_the_host_is_ordered() -> None:
    data, ordering = placed().read(AT)
    assert (data, ordering.ordered) == (OLD, True)


@pytest.mark.parametrize(("reader", "needs"), [(HERE, 0), (SAME_CLUSTER, 1), (SAME_GPU, 2), (OTHER_GPU, 3)])
@pytest.mark.parametrize(("release", "acquire"), list(itertools.product(range(4), range(4))))
def test_both_fences_must_take_in_both_threads(reader: Agent, needs: int, release: int, acquire: int) -> None:
    assert needed_scope(HERE, reader) == SCOPES[needs]
    proxy = placed()
    proxy.write(AT, NEW, agent=HERE)
    proxy.release(SCOPES[release], agent=HERE)
    proxy.acquire(AT, SCOPES[acquire], agent=reader)
    data, ordering = proxy.read(AT, agent=reader)
    assert ordering.ordered is (release >= needs and acquire >= needs)
    assert data == (NEW if ordering.ordered else OLD)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ("w", "unordered: no release fence after the last write"),
        ("rw", "unordered: no release fence after the last write"),
        ("wr", "unordered: no acquire fence by the reader after the release"),
        ("awr", "unordered: no acquire fence by the reader after the release"),
        ("wa", "unordered: no release fence after the last write"),
        ("wra", "ordered"),
        ("wraw", "unordered: no release fence after the last write"),
        ("wwra", "ordered"),
        ("ca", "ordered"),
        ("c", "unordered: no acquire fence by the reader after the release"),
    ],
)
def test_order_of_fences(steps: str, why: str) -> None:
    proxy = placed()
    for step in steps:
        if step == "w":
            proxy.replace(AT, "global_address", 8192)
        elif step == "r":
            proxy.release("gpu")
        elif step == "c":
            proxy.cp_fenceproxy(AT, NEW, "gpu")
        else:
            proxy.acquire(AT, "gpu")
    data, ordering = proxy.read(AT)
    assert str(ordering) == why
    assert data == (OLD if steps in ("w", "rw", "wr", "awr", "wa", "c") else NEW)


def test_an_acquire_is_for_one_address() -> None:
    proxy = placed()
    proxy.write(AT, NEW)
    proxy.release("gpu")
    proxy.acquire(AT + 128, "gpu")
    assert not proxy.read(AT)[1].ordered


def test_bad_input() -> None:
    with pytest.raises(InvalidValueError, match="must be 128 bytes"):
        TensormapProxy().place(AT + 64, OLD)
    with pytest.raises(InvalidValueError, match="must be 128 bytes"):
        placed().write(AT, OLD[:64])
    with pytest.raises(InvalidValueError, match="no tensor map at 0x2000"):
        placed().read(0x2000)
    with pytest.raises(InvalidValueError, match="scope = 'block'; must be one of 'cta'"):
        placed().release("block")
