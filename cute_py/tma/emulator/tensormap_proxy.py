"""Check whether the TMA engine reads the newest version of a tensor map that a kernel writes to memory.

The engine reads a tensor map through the tensormap proxy. A map that ordinary stores or tensormap.replace wrote is
visible to the engine only after a pair of fences:

    writer:  fence.proxy.tensormap::generic.release.scope         after the last write
    reader:  fence.proxy.tensormap::generic.acquire.scope [map]   after the release, before the copy

The scope of each fence must include both threads. tensormap.cp_fenceproxy writes the map and releases it in one
instruction. Without both fences, the engine may see the old map, the new map, or a mixture. In this emulator it sees
the old map, and `Ordering` has the reason.

The emulator treats successive calls as ordered, as if the threads synchronised between them.

Source: PTX ISA 9.0, membar/fence, tensormap.cp_fenceproxy; scopes: the TMA Atoms reference pages (.cta inside a CTA,
.gpu across the CTAs of a cluster).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cute_py.argument_checks import expect, expect_choice, expect_integer
from cute_py.diagnostics import Diagnostic
from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.read import read_map

SCOPES: Final = ("cta", "cluster", "gpu", "sys")
"""Scopes of a fence, narrowest first."""

MAP_BYTES: Final = 128


@dataclass(frozen=True, slots=True)
class Agent:
    """The position of a thread: its CTA, cluster and GPU.

    >>> Agent(cta=1, cluster=2)
    Agent(cta=1, cluster=2, gpu=0)
    """

    cta: int = 0
    cluster: int = 0
    gpu: int = 0

    def __post_init__(self) -> None:
        for name in ("cta", "cluster", "gpu"):
            object.__setattr__(self, name, expect_integer(getattr(self, name), f"{name} of an agent", 0))


_HERE: Final = Agent()


def needed_scope(a: Agent, b: Agent) -> str:
    """Return the narrowest fence scope that includes both threads.

    >>> needed_scope(Agent(0), Agent(1)), needed_scope(Agent(0), Agent(0))
    ('cluster', 'cta')
    """
    if a.gpu != b.gpu:
        return "sys"
    if a.cluster != b.cluster:
        return "gpu"
    return "cluster" if a.cta != b.cta else "cta"


@dataclass(frozen=True, slots=True)
class Ordering:
    """Whether a read of a tensor map is ordered after the last write, and the reason if it is not."""

    ordered: bool
    why: str = ""

    def __str__(self) -> str:
        return "ordered" if self.ordered else f"unordered: {self.why}"


@dataclass(slots=True)
class _Version:
    data: bytes
    writer: Agent | None
    time: int


@dataclass(slots=True)
class _Fence:
    scope: str
    time: int


@dataclass(slots=True)
class TensormapProxy:
    """Tensor maps in memory by address, with the writes and fences that affect them.

    >>> proxy = TensormapProxy()
    >>> proxy.place(0x1000, bytes(128))
    >>> proxy.write(0x1000, bytes([1] * 128)); print(proxy.read(0x1000)[1])
    unordered: no release fence after the last write
    >>> proxy.release("cta"); proxy.acquire(0x1000, "cta"); print(proxy.read(0x1000)[1])
    ordered
    """

    _versions: dict[int, list[_Version]] = field(default_factory=dict, init=False)
    _releases: dict[Agent, list[_Fence]] = field(default_factory=dict, init=False)
    _acquires: dict[tuple[Agent, int, str], _Fence] = field(default_factory=dict, init=False)
    _clock: int = field(default=0, init=False)

    def __repr__(self) -> str:
        return f"<tensor maps at {', '.join(map(hex, self._versions)) or 'no address'}>"

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _latest(self, address: int) -> _Version:
        address = _address(address)
        if address not in self._versions:
            raise InvalidValueError(f"no tensor map at 0x{address:x}")
        return self._versions[address][-1]

    def place(self, address: int, data: bytes) -> None:
        """Add a map that exists before the kernel starts: a kernel parameter, or a map that the host wrote.

        Raises:
            InvalidValueError: the map does not have 128 bytes, or the address is not a multiple of 128.
        """
        address, data = _placed_map(address, data)
        self._versions[address] = [_Version(data, None, self._tick())]

    def write(self, address: int, data: bytes, *, agent: Agent = _HERE) -> None:
        """Write a new map with ordinary stores of one thread."""
        address, data = _placed_map(address, data)
        expect(agent, Agent, "agent")
        self._versions.setdefault(address, [_Version(bytes(MAP_BYTES), None, 0)])
        self._versions[address].append(_Version(data, agent, self._tick()))

    def replace(self, address: int, field: str, value: int, ordinal: int = 0, *, agent: Agent = _HERE) -> None:
        """Write one field of the map in memory by tensormap.replace, executed by one thread."""
        from cute_py.tma.descriptor.replace import replace

        self.write(address, replace(self._latest(address).data, field, value, ordinal), agent=agent)

    def release(self, scope: str, *, agent: Agent = _HERE) -> None:
        """Execute fence.proxy.tensormap::generic.release.scope in the thread that wrote the map."""
        made = _fence(agent, scope, self._tick())
        self._releases.setdefault(agent, []).append(made)

    def acquire(self, address: int, scope: str, *, agent: Agent = _HERE) -> None:
        """Execute fence.proxy.tensormap::generic.acquire.scope [address], 128 in the thread that issues the copy."""
        made = _fence(agent, scope, self._tick())
        self._acquires[agent, _address(address), scope] = made

    def cp_fenceproxy(self, address: int, data: bytes, scope: str, *, agent: Agent = _HERE) -> None:
        """Copy a map from shared memory to `address` and release it in one instruction (tensormap.cp_fenceproxy)."""
        expect_choice(scope, SCOPES, "scope")
        self.write(address, data, agent=agent)
        self.release(scope, agent=agent)

    def read(self, address: int, *, agent: Agent = _HERE) -> tuple[bytes, Ordering]:
        """Return the map that the TMA engine sees for a copy issued by `agent`, and whether that read is ordered.

        Returns:
            the newest version of the map whose read is ordered, and the ordering of the newest version.
        """
        newest = self._latest(address)
        found = self._check_order(address, newest, expect(agent, Agent, "agent"))
        versions = reversed(self._versions[address])  # the oldest version has no writer, and needs no order
        seen = next(version for version in versions if not self._check_order(address, version, agent))
        return seen.data, Ordering(not found, found[0].message if found else "")

    def _check_order(self, address: int, version: _Version, reader: Agent) -> list[Diagnostic]:
        """Return the reason why a read is not ordered after the write of a version; empty if it is ordered."""
        if version.writer is None:
            return []
        scope = needed_scope(version.writer, reader)
        releases = [f for f in self._releases.get(version.writer, ()) if f.time > version.time]
        if not releases:
            return [Diagnostic("release", text="no release fence after the last write")]
        wide = [f for f in releases if _covers(f.scope, scope)]
        if not wide:
            return [_narrow("release", releases, scope)]
        first = min(f.time for f in wide)
        held = [self._acquires.get((reader, address, one)) for one in SCOPES]
        acquires = [f for f in held if f is not None and f.time > first]
        if not acquires:
            return [Diagnostic("acquire", text="no acquire fence by the reader after the release")]
        return [] if any(_covers(f.scope, scope) for f in acquires) else [_narrow("acquire", acquires, scope)]


def _address(value: int) -> int:
    return expect_integer(value, "the address of a tensor map", 0)


def _placed_map(address: int, data: bytes) -> tuple[int, bytes]:
    address, raw = _address(address), read_map(data)
    if len(raw) != MAP_BYTES or address % MAP_BYTES:
        raise InvalidValueError(
            f"tensor map of {len(raw)} bytes at 0x{address:x}; must be {MAP_BYTES} bytes at a multiple of {MAP_BYTES}"
        )
    return address, raw


def _fence(agent: Agent, scope: str, time: int) -> _Fence:
    expect(agent, Agent, "agent")
    return _Fence(expect_choice(scope, SCOPES, "scope"), time)


def _covers(scope: str, needed: str) -> bool:
    return SCOPES.index(scope) >= SCOPES.index(needed)


def _narrow(rule: str, fences: Iterable[_Fence], scope: str) -> Diagnostic:
    widest = max((f.scope for f in fences), key=SCOPES.index)
    return Diagnostic(rule, text=f"the {rule} fence has scope .{widest}; the two threads need .{scope}")
