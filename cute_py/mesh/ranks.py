"""Run a redistribution with one process (rank) for each device; each rank copies or sends its own part.

check      every rank checks its memory; all ranks learn all errors, and raise them together
map        ranks of one host whose GPUs reach each other exchange handles of their receiving memory, and open them; if
           one rank can't, all ranks use messages, and get the reason
start      a launch begins when all ranks have called it
push       with mapped memory: each rank runs the kernels of its transfers, as one process does (`peer`); after they
           have ended, it enters a barrier, which uses counts in shared host memory
rounds     otherwise: pack, send and receive messages of limited size, copy local elements meanwhile, unpack
end        when all data has arrived everywhere, scratch memory is copied to the destinations

Only memory from cudaMalloc can have a handle; PyTorch and CuPy use such memory by default. Source: CUDA driver API,
cuIpcGetMemHandle, cuIpcOpenMemHandle.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import json
import mmap
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cute_py.diagnostics import Diagnostic, diagnostics_of, refuse
from cute_py.errors import CuteError, DeviceError, InvalidValueError, shortened
from cute_py.gpu.arrays import array_view
from cute_py.gpu.bindings import call, driver, first_line
from cute_py.gpu.device import Device, open_device
from cute_py.mesh.host import Elements, Part, check_memory, destination_part, new_parts, source_part, write_sum
from cute_py.mesh.liveness import Watch
from cute_py.mesh.peer import Push, Pushes, Route, on_device, why_no_kernel
from cute_py.mesh.transfer import Plan, Transfer
from cute_py.mesh.transport import Transport
from cute_py.tensor.array_views import ArrayView

MESSAGES = 256 << 20
"""Maximum number of bytes of messages that a rank sends, and receives, at a time."""

MOST_MESSAGES = 200
"""The number of messages that share `MESSAGES`; with more ranks the total grows in proportion."""

_BUS_ID = 20
"""Characters of a device's PCI bus address."""

_HANDLE_BYTES = 64
"""CU_IPC_HANDLE_SIZE."""

_MAP_FAILED = ctypes.c_void_p(-1).value


@dataclass(slots=True)
class _Round:
    """The work of one rank in one round: elements to send, elements that stay, and sums of local and received
    elements."""

    packed: list[tuple[int, int, Part]] = field(default_factory=list)
    """(rank to send to, position in the message, elements)"""

    kept: list[tuple[Part, Part]] = field(default_factory=list)
    """(to, from), both in the memory of this rank"""

    sums: list[tuple[Part, list[tuple[int, int] | Part]]] = field(default_factory=list)
    """(elements to write, summands); a summand is (sender, position in its message), or elements of this rank"""

    sent: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    """Rank -> elements of the message"""


class RankRedistribution:
    """One rank's part of a redistribution, ready to launch. All ranks must launch it, and each launch returns when all
    data has arrived everywhere."""

    def __init__(
        self,
        plan: Plan,
        watch: Watch,
        sources: Mapping[int, Any],
        destinations: Mapping[int, Any],
        into: Mapping[int, Any] | None,
        sms: int,
    ) -> None:
        self.destinations = destinations
        self._watch = watch
        self._elements = watch.transport.elements(plan.dtype)
        self._into = into
        written = destinations if into is None else into
        self._mapped, self._why_messages = map_ranks(plan, watch, sources, written, sms)
        self._rounds = _rounds(plan, watch, self._elements, sources, written) if self._mapped is None else []
        self._messages = [
            {peer: self._elements.empty(count) for peer, count in _largest(self._rounds, name).items()}
            for name in ("sent", "received")
        ]

    def launch(self, stream: Any = None) -> None:
        """Move the data; every rank must call this method. The copy is ordered with the calling thread's current
        stream.

        Raises:
            RankError: a rank ended, stalled or failed; all other ranks raise it.
        """
        with self._watch.together():
            self._watch.outcome = "the destinations are unchanged"
            if self._mapped is None:
                self._watch.gather()
            else:
                self._elements.settle()  # others write to this rank's memory once they have called launch
                self._mapped.meet()
            if self._into is None:
                self._watch.outcome = "the contents of the destinations are undefined"
            if self._mapped is None:
                for one in self._rounds:
                    self._run(one)
                self._elements.settle()
                self._watch.gather()
            else:
                self._mapped.push()
            for device, array in (self._into or {}).items():
                self._watch.outcome = "the contents of the destinations are undefined"
                if device in self.destinations:  # an empty part may be missing
                    self._elements.flat(self.destinations[device])[...] = self._elements.flat(array)
                self._elements.settle()

    def report(self) -> str:
        """List the routes of this rank's data, one transfer per line, or the reason why all ranks use messages."""
        if self._why_messages:
            return f"messages ({self._why_messages})"
        return "\n".join(map(str, self._mapped.routes if self._mapped else ()))

    def _run(self, one: _Round) -> None:
        outgoing, incoming = [
            {peer: buffers[peer][:count] for peer, count in counts.items()}
            for buffers, counts in zip(self._messages, (one.sent, one.received), strict=True)
        ]
        for peer, at, part in one.packed:
            values = part.read()
            outgoing[peer][at : at + part.count].reshape(part.shape)[...] = values
        done = self._watch.transport.start(outgoing, incoming)
        for goal, source in one.kept:
            goal.write(source.read())
        self._watch.until(done, lambda: incoming.keys() | outgoing.keys())
        for goal, summands in one.sums:
            values = [
                one.read()
                if isinstance(one, Part)
                else incoming[one[0]][one[1] : one[1] + goal.count].reshape(goal.shape)
                for one in summands
            ]
            write_sum(self._elements, goal, values)


def prepare_ranks(
    plan: Plan,
    transport: Transport,
    sources: Mapping[int, Any],
    destinations: Mapping[int, Any] | None,
    into: Mapping[int, Any] | None,
    sms: int,
    seconds: float,
) -> RankRedistribution:
    """Check the arrays of all ranks, and prepare the transfers of this rank; see `Redistribution.run`."""
    elements, rank = transport.elements(plan.dtype), transport.rank
    found: list[Diagnostic] = []
    try:
        if destinations is None:
            destinations = new_parts(elements, plan.destination, [rank] if rank < plan.destination.devices else [])
        found += _check_ranks(plan, transport) or check_memory(elements, plan, sources, destinations, into, only=rank)
    except CuteError as problem:
        found += diagnostics_of(problem)
    watch = Watch(transport, seconds)
    with watch.together():
        report = {"plan": plan.digest(), "shown": shortened(str(plan)), "found": [[d.rule, d.message] for d in found]}
        reports = [json.loads(text) for text in watch.gather(json.dumps(report))]
    of_all = [
        Diagnostic(rule, f"rank {r}", text=f"rank {r}: {message}")
        for r, one in enumerate(reports)
        for rule, message in one["found"]
    ]
    of_all += [
        Diagnostic(
            "mesh-plan", f"rank {r}", text=f"rank {r} has a different redistribution from rank 0's: {one['shown']}"
        )
        for r, one in enumerate(reports)
        if one["plan"] != reports[0]["plan"]
    ]
    refuse(
        InvalidValueError, of_all, f"there are {len(of_all)} problems on {transport.ranks} ranks, so no data was moved"
    )
    with watch.together():
        return RankRedistribution(plan, watch, sources, destinations or {}, into, sms)


def _check_ranks(plan: Plan, transport: Transport) -> list[Diagnostic]:
    devices = max(plan.source.devices, plan.destination.devices)
    if devices == transport.ranks:
        return []
    needs = f"be {devices}, one for each device of the larger mesh"
    return [Diagnostic("mesh-ranks", "ranks", transport.ranks, "processes", needs)]


def _rounds(
    plan: Plan, watch: Watch, elements: Elements, sources: Mapping[int, Any], written: Mapping[int, Any]
) -> list[_Round]:
    rank = watch.transport.rank
    flat = elements.flat(sources[rank]) if rank in sources else elements.empty(0)
    goal = elements.flat(written[rank]) if rank in written else elements.empty(0)
    itemsize = plan.dtype.numpy.itemsize
    most = max(1, MESSAGES // min(watch.transport.ranks, MOST_MESSAGES) // itemsize)
    found: list[_Round] = []

    def at(number: int) -> _Round:
        found.extend(_Round() for _ in range(number + 1 - len(found)))
        return found[number]

    for device in range(plan.destination.devices):
        watch.step()
        if device == rank or rank >= plan.source.devices:
            continue
        for number, place, pieces in _placed(plan.groups(device, rank), most):
            for t in pieces:
                if t.source_device == rank:
                    one = at(number)
                    one.packed.append((device, place, source_part(elements, flat, t)))
                    one.sent[device] = place + t.elements
    for number, place, pieces in _placed(plan.groups(rank) if rank < plan.destination.devices else [], most):
        one = at(number)
        part = destination_part(elements, goal, pieces[0])
        if len(pieces) == 1 and pieces[0].source_device == rank:
            one.kept.append((part, source_part(elements, flat, pieces[0])))
            continue
        summands: list[tuple[int, int] | Part] = []
        for t in pieces:
            if t.source_device == rank:
                summands.append(source_part(elements, flat, t))
            else:
                summands.append((t.source_device, place))
                one.received[t.source_device] = place + t.elements
        one.sums.append((part, summands))
    return found


def _placed(groups: Iterable[list[Transfer]], most: int) -> Iterator[tuple[int, int, list[Transfer]]]:
    """Yield the groups in pieces: (index of the round, position in the message, one transfer for each summand).

    A message has at most `most` elements. If two ranks contribute summands to one group, they contribute to the same
    groups throughout. Their messages are therefore split at the same positions, and the sender and the receiver compute
    the same split.
    """
    full: dict[int, tuple[int, int]] = {}
    for group in groups:
        sender = group[0].source_device
        for pieces in zip(*[t.pieces(lambda one: one.elements <= most) for t in group], strict=True):
            number, place = full.get(sender, (0, 0))
            if place and place + pieces[0].elements > most:
                number, place = number + 1, 0
            full[sender] = (number, place + pieces[0].elements)
            yield number, place, list(pieces)


def _largest(rounds: list[_Round], name: str) -> dict[int, int]:
    """Return a mapping from each rank to the number of elements of the largest message."""
    found: dict[int, int] = {}
    for peer, count in itertools.chain.from_iterable(getattr(one, name).items() for one in rounds):
        found[peer] = max(found.get(peer, 0), count)
    return found


class Opened:
    """Memory of another process, which stays mapped until this object is deleted."""

    def __init__(self, device: Device, handle: str, offset: int) -> None:
        api = driver()
        self._device = device
        given = api.CUipcMemHandle()
        ctypes.memmove(given.getPtr(), bytes.fromhex(handle), _HANDLE_BYTES)
        with device.current():
            lazy = api.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
            self._base = int(call("opening another rank's memory", api.cuIpcOpenMemHandle, given, lazy))
        self.address = self._base + offset

    def __del__(self) -> None:
        with contextlib.suppress(Exception), self._device.current():  # not opened, or the interpreter exits
            driver().cuIpcCloseMemHandle(self._base)


def _handle(device: Device, address: int) -> tuple[str, int]:
    """Return the handle that another process uses to open an allocation, and the offset of an address in the
    allocation. Raises DeviceError if there is no handle."""
    api = driver()
    with device.current():
        capable = api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
        if not call("querying an allocation", api.cuPointerGetAttribute, capable, address):
            raise DeviceError(
                "its memory has no IPC handle, because it comes from expandable segments, symmetric memory or a pool"
            )
        base, _ = call("querying an allocation", api.cuMemGetAddressRange, address)
        handle = call("making a handle of memory", api.cuIpcGetMemHandle, base)
    return ctypes.string_at(handle.getPtr(), _HANDLE_BYTES).hex(), address - int(base)


class MeetingPlace:
    """A barrier in host memory that all ranks share: it contains a count for each rank.

    Rank 0 creates the memory as an unnamed file and the other ranks open it, so it disappears when all ranks have
    ended. A token after the counts identifies it as rank 0's file.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._kind = ctypes.c_uint64 * watch.transport.ranks
        self._size = ctypes.sizeof(self._kind)
        self._file = -1
        self._address = 0
        self._counts = self._kind()

    def offer(self) -> dict[str, str]:
        """Return the data that other ranks need to open the file. Raises DeviceError if the system does not support
        such files."""
        token = uuid.uuid4().bytes
        with _shared("making memory for all ranks"):
            self._file = os.memfd_create("cute_py")
            os.pwrite(self._file, bytes(self._size) + token, 0)
        return {"file": f"/proc/{os.getpid()}/fd/{self._file}", "token": token.hex()}

    def open(self, offer: Mapping[str, str]) -> None:
        """Map the file. Raises DeviceError if this process can't open it, for example from another container."""
        token = bytes.fromhex(offer["token"])
        with _shared("opening the memory of rank 0"):
            file = os.open(offer["file"], os.O_RDWR)
            try:
                if os.pread(file, len(token), self._size) != token:
                    raise OSError("it belongs to another process")
                how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED
                address = _libc().mmap(None, self._size, *how, file, 0)
                if address == _MAP_FAILED:
                    raise OSError(ctypes.get_errno(), "mmap")
            finally:
                os.close(file)
        self._address, self._counts = address, self._kind.from_address(address)

    def opened(self) -> None:
        """Close the file after all ranks have mapped it."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def meet(self) -> None:
        """Wait until all ranks have called this method."""
        rank = self._watch.transport.rank
        self._counts[rank] += 1
        count = self._counts[rank]
        self._watch.until(
            lambda: min(self._counts) >= count, lambda: [r for r, n in enumerate(self._counts) if n < count]
        )

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at interpreter exit
            self.opened()
            if self._address:
                _libc().munmap(self._address, self._size)


@contextlib.contextmanager
def _shared(doing: str) -> Iterator[None]:
    """Raise a DeviceError if a call of the operating system fails, or the function does not exist."""
    try:
        yield
    except (AttributeError, OSError) as problem:
        raise DeviceError(f"{doing}: {first_line(problem)}") from None


@functools.cache
def _libc() -> Any:
    """Return the C library, because Python's mmap would keep a file open for each mapping."""
    found = ctypes.CDLL(None, use_errno=True)
    found.mmap.restype = ctypes.c_void_p
    found.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    found.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return found


class MappedRanks:
    """One rank's access to the memory of the other ranks, and the barrier of all ranks."""

    def __init__(self, watch: Watch, device: Device | None) -> None:
        self._watch = watch
        self._device = open_device() if device is None else device
        self._place = MeetingPlace(watch)
        self._pushes: Pushes | None = None

    def offer(self) -> dict[str, Any]:
        """Return the data that other ranks need to reach this rank's device; rank 0 adds the data of the shared
        barrier."""
        api = driver()
        with self._device.current():
            number = call("opening a device", api.cuDeviceGet, self._device.ordinal)
            bus = call("querying a device's address", api.cuDeviceGetPCIBusId, _BUS_ID, number)
        place = {"place": self._place.offer()} if self._watch.transport.rank == 0 else {}
        return {"bus": bus.split(b"\0")[0].decode(), **place}

    def open(
        self,
        offers: list[dict[str, Any]],
        transfers: list[Transfer],
        source: ArrayView | None,
        goal: ArrayView | None,
        sms: int,
    ) -> None:
        """Map the shared barrier and the memory that this rank writes to, and prepare this rank's kernels."""
        rank, device = self._watch.transport.rank, self._device
        numbers = [self._number(r, one["bus"]) for r, one in enumerate(offers)]
        self._place.open(offers[0]["place"])
        goals = {rank: goal} if goal is not None else {}
        pushes = []
        for t in transfers:
            to = t.destination_device
            if to not in goals and source is not None:
                memory = Opened(device, *offers[to]["memory"])
                goals[to] = ArrayView(memory.address, (1,), (1,), source.dtype, numbers[to], False, memory)
            if source is not None:
                pushes.append(Push(t, source, goals[to], device, numbers[to]))
        self._pushes = Pushes(pushes, {device.ordinal: device}, sms)

    def _number(self, rank: int, bus: str) -> int:
        """Return the index of a rank's device in this process. Raises DeviceError if the device can't be reached."""
        api = driver()
        here = call("opening a device", api.cuDeviceGet, self._device.ordinal)
        there = call(f"looking up the device of rank {rank}", api.cuDeviceGetByPCIBusId, bus.encode())
        if int(here) != int(there) and not int(call("querying peer access", api.cuDeviceCanAccessPeer, here, there)):
            raise DeviceError(f"rank {rank} can't be accessed as a peer")
        return int(there)

    @property
    def routes(self) -> list[Route]:
        """The routes of this rank's transfers."""
        return self._pushes.routes if self._pushes is not None else []

    def push(self) -> None:
        """Write to the memory of the other ranks, and return when all ranks have done so."""
        if self._pushes is not None:
            self._pushes.launch()
            with self._device.current():
                self._pushes.check(0)
        self.meet()

    def opened(self) -> None:
        """Close the file of the shared barrier after all ranks have mapped it."""
        self._place.opened()

    def meet(self) -> None:
        """Wait for all ranks; each rank arrives after its launches have ended."""
        self._place.meet()


def map_ranks(
    plan: Plan, watch: Watch, sources: Mapping[int, Any], written: Mapping[int, Any], sms: int
) -> tuple[MappedRanks | None, str]:
    """Map the other ranks' memory for this rank's writes; return None and the reason if all ranks use messages. All
    ranks must call it."""
    rank = watch.transport.rank
    transfers: list[Transfer] = []
    mine: dict[str, Any] = {"why": "this transport can't map memory"}
    mapped: MappedRanks | None = None
    source: ArrayView | None = None
    goal: ArrayView | None = None
    try:
        if watch.transport.maps:
            mine = {"why": _why_messages(plan, watch, sources, written, transfers)}
        if not mine["why"]:
            source, goal = [array_view(one[rank]) if rank in one else None for one in (sources, written)]
            one = source or goal
            mapped = MappedRanks(watch, open_device(one.device) if one is not None else None)
            boot = Path("/proc/sys/kernel/random/boot_id")
            mine |= {"host": f"{socket.gethostname()} {boot.read_text() if boot.exists() else ''}", **mapped.offer()}
            if goal is not None and goal.count:
                mine |= {"memory": _handle(open_device(goal.device), goal.address)}
    except CuteError as problem:
        mine = {"why": problem.headline}
    offers = [json.loads(text) for text in watch.gather(json.dumps(mine))]
    why = next((f"rank {r}: {one['why']}" for r, one in enumerate(offers) if one["why"]), "")
    if not why and len({one["host"] for one in offers}) > 1:
        why = "the ranks are on several hosts"
    if why or mapped is None:
        return None, why
    failed = ""
    try:
        mapped.open(offers, transfers, source, goal, sms)
    except CuteError as problem:
        failed = problem.headline
    failures = watch.gather(failed)
    mapped.opened()
    why = next((f"rank {r}: {one}" for r, one in enumerate(failures) if one), "")
    return (None, why) if why else (mapped, "")


def _why_messages(
    plan: Plan, watch: Watch, sources: Mapping[int, Any], written: Mapping[int, Any], transfers: list[Transfer]
) -> str:
    """Return the reason why this rank must use messages; empty if it need not. The function appends the rank's
    transfers to `transfers`."""
    rank = watch.transport.rank
    arrays = [one[rank] for one in (sources, written) if rank in one]
    if not all(map(on_device, arrays)):
        return "its memory is host memory"
    if len({array_view(one).device for one in arrays}) > 1:
        return "its memory is on two devices"
    for number in range(plan.destination.devices):
        watch.step()
        for group in plan.groups(number, rank) if rank < plan.source.devices else ():
            why = why_no_kernel(group)
            if why:
                return why
            transfers += group
    return ""
