"""Redistribute a tensor: the copies between devices, as pairs of layouts."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cute_py.argument_checks import expect, expect_choice, expect_integer, is_integer
from cute_py.arith_tuple import E, ScaledBasis
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidValueError, LayoutError
from cute_py.layout import Int, Layout, composition, right_inverse, size, static
from cute_py.mesh import host, peer, ranks
from cute_py.mesh.index_intervals import Column, segments, shared
from cute_py.mesh.sharded_layout import SHOWN, ShardedLayout
from cute_py.mesh.transfer import Transfer, transfer_of
from cute_py.mesh.transport import Transport

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy

BACKENDS = ("auto", "host", "peer", "torch")

DEFAULT_SECONDS = 60.0
"""A rank that ended or stalled is detected within this many seconds."""


_BALANCING: Final = threading.Lock()
"""Lock that a thread holds while it makes new choices for a plan. It is global because a plan with a lock could not
be pickled."""

Box = tuple[int, ...]


class _Meeting(NamedTuple):
    """The parts of a source dimension that share indices with a destination part, with the number of shared indices and
    the part's contribution to the device index."""

    parts: list[int]
    counts: Column
    devices: Column


class Prepared(Protocol):
    """A redistribution between given arrays, ready to launch."""

    @property
    def destinations(self) -> Mapping[int, Any]: ...

    def launch(self, stream: Any = None) -> None:
        """Move the data."""
        ...


class Redistribution:
    """The transfers that convert the distribution `source` to `destination`. See `redistribute`.

    Attributes: `source`, `destination`, `dtype`, `devices_per_host`.

    >>> from cute_py.mesh import Shard, distribute, redistribute
    >>> rows, columns = (distribute((8, 8), 2, [Shard(dim)]) for dim in (0, 1))
    >>> plan = redistribute(rows, columns, "float32")
    >>> plan.bytes_moved, plan.minimum_bytes, len(list(plan.transfers()))
    (128, 128, 4)
    """

    def __init__(self, source: ShardedLayout, destination: ShardedLayout, dtype: DType, devices_per_host: int) -> None:
        self.source = expect(source, ShardedLayout, "source")
        self.destination = expect(destination, ShardedLayout, "destination")
        self.dtype = expect(dtype, DType, "dtype")
        self.devices_per_host = expect_integer(devices_per_host, "devices_per_host", 1)
        if source.shape != destination.shape:
            raise LayoutError(
                "the source and the destination have different shapes",
                {"source": source.shape, "destination": destination.shape},
            )
        if len(destination.partial_devices) > 1:
            raise LayoutError(
                "the destination must hold sums; it has a Partial placement",
                {"destination": str(destination)},
                hint="Replicate()",
            )
        self._met: dict[tuple[int, int], _Meeting] = {}
        self._balance: list[dict[Box, Column]] = []
        self._load = numpy.zeros(source.devices, numpy.int64)

    def transfers(self, device: int | None = None) -> Iterator[Transfer]:
        """Iterate over the copies to one device, or to all devices in increasing order. The copies are computed one by
        one.

        The source of an element is the destination device itself if it holds the element, otherwise a device of the
        same host, otherwise any device. Among several candidates, it is the device with the fewest elements to send so
        far, and among equals the first.

        >>> from cute_py.mesh import Shard, distribute
        >>> rows, columns = distribute((4, 6), 2, [Shard(0)]), distribute((4, 6), 2, [Shard(1)])
        >>> for transfer in redistribute(rows, columns, "bf16").transfers(device=1):
        ...     print(transfer)
        0 -> 1: 6 elements, 1:1 o 3 o (3,2):(1,6) to (3,2):(1,3)
        1 -> 1: 6 elements, 1:1 o 3 o (3,2):(1,6) to 1:1 o 6 o (3,2):(1,3)
        """
        return itertools.chain.from_iterable(self.groups(device))

    def groups(self, device: int | None = None, source: int | None = None) -> Iterator[list[Transfer]]:
        """Iterate over the transfers in groups: a group contains the transfers whose elements are added, in the order
        of devices.

        Args:
            source: a device; return only the groups that include it.
        """
        last = self.destination.devices - 1
        to = range(last + 1) if device is None else (expect_integer(device, "device", 0, last),)
        if source is not None:
            source = expect_integer(source, "source", 0, self.source.devices - 1)
        return (group for one in to for group in self._to(one, source))

    def digest(self) -> str:
        """A string that identifies the redistribution, the same in every process."""
        parts = (self.source.digest(), self.destination.digest(), self.dtype.name, str(self.devices_per_host))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @functools.cached_property
    def bytes_moved(self) -> int:
        """The total bytes that move between devices."""
        return -(-self._elements_moved * self.dtype.bits // 8)

    @functools.cached_property
    def minimum_bytes(self) -> int:
        """The total bytes that devices need and do not hold; no plan can move fewer."""
        needed = sum(math.prod(self.destination.local_shape(d)) for d in range(self.destination.devices))
        kept = sum(self._kept(d) for d in range(self.destination.devices))
        return -(-(needed * len(self.source.partial_devices) - kept) * self.dtype.bits // 8)

    @functools.cached_property
    def layout(self) -> Layout | None:
        """The layout from (device, offset in its memory) of the destination to ArithTuple(device, offset) of the
        source.

        On both sides, it uses the first of several replicas. It is None if one side has no single layout.
        """
        if self.source.layout is None or self.destination.layout is None:
            return None
        try:
            found = composition(_static(self.source.layout), right_inverse(_static(self.destination.layout)))
        except LayoutError:
            return None
        return found if size(found) == math.prod(self.source.shape) else None

    def explain(self) -> str:
        """Describe how many elements move from each device to each device; equal rows share a line.

        >>> from cute_py.mesh import Shard, Replicate, distribute
        >>> print(redistribute(distribute(8, 4, [Shard(0)]), distribute(8, 4, [Replicate()]), "f32").explain())
        8 over 4 devices: Shard(dim=0)
        to 8 over 4 devices: Replicate()
        elements from device (row) to device (column), float32:
                     0        1        2        3
            0        2        2        2        2
            1        2        2        2        2
            2        2        2        2        2
            3        2        2        2        2
        96 bytes move between devices, the minimum
        """
        lines = [str(self.source), f"to {self.destination}"]
        matrix = numpy.zeros((self.source.devices, self.destination.devices), numpy.int64)
        for transfer in self.transfers():
            matrix[transfer.source_device, transfer.destination_device] += transfer.elements
        lines.append(f"elements from device (row) to device (column), {self.dtype.name}:")
        if max(matrix.shape) <= SHOWN:
            lines.append("     " + "".join(f"{j:9d}" for j in range(matrix.shape[1])))
            lines += [f"{i:5d}" + "".join(f"{n:9d}" for n in row) for i, row in enumerate(matrix.tolist())]
        else:
            values, counts = numpy.unique(matrix[matrix > 0], return_counts=True)
            lines += [
                f"  {n} pairs of {value} elements" for value, n in zip(values.tolist(), counts.tolist(), strict=True)
            ]
        fewest = "the minimum" if self.bytes_moved == self.minimum_bytes else f"at least {self.minimum_bytes}"
        lines.append(f"{self.bytes_moved} bytes move between devices, {fewest}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination}, {self.dtype.name}"

    def __repr__(self) -> str:
        return f"<Redistribution {self}>"[:300]

    def prepare(
        self,
        sources: Mapping[int, Any],
        destinations: Mapping[int, Any] | None = None,
        *,
        backend: str | Transport = "auto",
        into: Mapping[int, Any] | None = None,
        sms: int = 16,
        seconds: float = DEFAULT_SECONDS,
    ) -> Prepared:
        """Check the arrays and prepare the work of `run`, with the same arguments. Call `launch()` each time the data
        changes."""
        expect_integer(sms, "sms", 1, 1 << 16)
        if is_integer(seconds):
            seconds = float(expect_integer(seconds, "seconds", 1, 1 << 20))
        if expect(seconds, float, "seconds") <= 0 or not math.isfinite(seconds):
            raise InvalidValueError.of_value("seconds", seconds, "be above 0")
        if not isinstance(backend, Transport):
            expect_choice(backend, BACKENDS, "backend, unless a Transport,")
        chosen = _chosen(sources, destinations) if backend == "auto" else backend
        if chosen == "host":
            return host.prepare_host(self, sources, destinations, into)
        if chosen == "peer":
            return peer.prepare_peer(self, sources, destinations, into, sms, seconds)
        if isinstance(chosen, Transport):
            transport = chosen
        else:
            from cute_py.mesh.torch_transport import TorchTransport  # Only PyTorch ranks need it.

            transport = TorchTransport()
        return ranks.prepare_ranks(self, transport, sources, destinations, into, sms, seconds)

    def run(
        self,
        sources: Mapping[int, Any],
        destinations: Mapping[int, Any] | None = None,
        *,
        backend: str | Transport = "auto",
        into: Mapping[int, Any] | None = None,
        sms: int = 16,
        seconds: float = DEFAULT_SECONDS,
    ) -> Mapping[int, Any]:
        """Move the data, after all arguments have been checked.

        Args:
            sources: mapping from each device to its part, in the order of the device's local layout.
            destinations: the memory for the part of each device, or None for new arrays.
            backend: "host": numpy arrays in one process. "peer": arrays on several GPUs in one process. "torch": one
                process for each device; every process calls this method with its own part, with its rank as the key.
                GPUs of one host write to each other's memory, and other devices exchange messages. "auto": "torch" for
                PyTorch's tensors if torch.distributed is initialised, "peer" for other arrays on GPUs, otherwise
                "host". A `Transport` object: like "torch", over that transport.
            into: scratch memory for the part of each device. It is written first, so that the destinations keep their
                contents until all data has arrived.
            sms: multiprocessors of a GPU for its transfers; 16 saturate the links of an H200.
            seconds: with one process for each device, the maximum time to detect a rank that ended or stalled;
                with one process for several GPUs, the time limit of a GPU's wait for the copies of the other GPUs.
        Returns:
            The destinations.
        Raises:
            InvalidTypeError, InvalidValueError, LayoutError: a device lacks its part, a part has another shape or
                element type, or memory is shared or read-only. The error contains all findings as `Diagnostic` objects;
                every rank gets the findings of all ranks.
            RankError: a rank ended, stalled or failed.

        >>> import numpy
        >>> from cute_py.mesh import Shard, distribute
        >>> rows, columns = distribute((2, 4), 2, [Shard(0)]), distribute((2, 4), 2, [Shard(1)])
        >>> x = numpy.arange(8, dtype=numpy.int32).reshape(2, 4)
        >>> redistribute(rows, columns, "int32").run({0: x[:1].copy(), 1: x[1:].copy()})[1].tolist()
        [[2, 3], [6, 7]]
        """
        prepared = self.prepare(sources, destinations, backend=backend, into=into, sms=sms, seconds=seconds)
        prepared.launch()
        return prepared.destinations

    # ---- planning

    def _to(self, device: int, source: int | None = None) -> Iterator[list[Transfer]]:
        summands = self.source.partial_devices
        for box in self.destination._boxes_of(device):
            mine, destination_swizzle = self.destination._memory(box)
            for parts, taken in self._taken(device, box):
                if source is not None and source - taken not in summands:
                    continue
                theirs, source_swizzle = self.source._memory(parts)
                ends = (source_swizzle, destination_swizzle)
                for chosen in itertools.product(*map(segments, theirs, mine)):
                    # the devices of the other summands hold the same parts, at the same offsets
                    yield [transfer_of(taken + other, device, chosen, ends, other > 0) for other in summands]

    def _taken(self, device: int, box: Box) -> list[tuple[Box, int]]:
        """Return the parts of the source that intersect a box, each with the device that supplies it."""
        meeting = [self._meeting(i, part).parts for i, part in enumerate(box)]
        replicated = len(self.source._replica_devices) > 1
        taken = self._balanced(device)[box] if replicated else self._first(box)[0]
        return list(zip(itertools.product(*meeting), taken.tolist(), strict=True))

    def _meeting(self, dimension: int, part: int) -> _Meeting:
        """Return the parts of the source that share indices with a part of the destination."""
        if (dimension, part) not in self._met:
            mine, theirs = self.destination._dimensions[dimension].runs(part), self.source._dimensions[dimension]
            counts = [shared(theirs.runs(other), mine) for other in range(len(theirs.devices))]
            parts = [other for other, n in enumerate(counts) if n]
            found = numpy.array([counts[other] for other in parts], numpy.int64)
            if found.sum() < mine.size:
                raise LayoutError(
                    f"dimension {dimension}: the source holds {found.sum()} of {mine.size} indices that a device needs",
                    {"source": str(self.source), "destination": str(self.destination)},
                )
            self._met[dimension, part] = _Meeting(parts, found, theirs.devices[parts])
        return self._met[dimension, part]

    def _first(self, box: Box) -> tuple[Column, Column]:
        """For each part that intersects a box, return the first device that holds it and the number of shared
        elements."""
        devices, counts = numpy.zeros(1, numpy.int64), numpy.ones(1, numpy.int64)
        for i, part in enumerate(box):
            meeting = self._meeting(i, part)
            if len(meeting.parts) == 1:  # the common case needs no outer product
                devices, counts = devices + meeting.devices, counts * meeting.counts
            else:
                devices = (devices[:, None] + meeting.devices).ravel()
                counts = (counts[:, None] * meeting.counts).ravel()
        return devices, counts

    def _balanced(self, device: int) -> dict[Box, Column]:
        """Choose, for a source with replicas, the device that supplies each part that intersects a box; return the
        choices by box.

        Threads can share a plan: a lock allows only one thread at a time to make new choices.
        """
        far, load, replicas = 1 << 62, self._load, self.source._replica_devices
        summands = numpy.array(self.source.partial_devices)
        one_host = self.devices_per_host >= max(self.source.devices, self.destination.devices)
        with _BALANCING:
            for one in range(len(self._balance), device + 1):  # the choice depends on the earlier boxes' choices
                rows: dict[Box, Column] = {}
                for box in self.destination._boxes_of(one):
                    first, counts = self._first(box)
                    held = first[:, None] + replicas
                    cost = load[held]
                    if not one_host:
                        cost += far * (held // self.devices_per_host != one // self.devices_per_host)
                    cost[(held[..., None] + summands == one).any(axis=-1)] = -1
                    taken = first + replicas[cost.argmin(axis=1)]
                    numpy.add.at(load, taken, counts * (taken != one))
                    rows[box] = taken
                self._balance.append(rows)
        return self._balance[device]

    @functools.cached_property
    def _elements_moved(self) -> int:
        return sum(t.elements for t in self.transfers() if t.source_device != t.destination_device)

    def _kept(self, device: int) -> int:
        """Return the number of elements, or summands, that a device needs and already holds."""
        if device >= self.source.devices:
            return 0
        return sum(
            math.prod(
                shared(one.runs(a), other.runs(b))
                for one, other, a, b in zip(
                    self.source._dimensions, self.destination._dimensions, mine, wanted, strict=True
                )
            )
            for mine in self.source._boxes_of(device)
            for wanted in self.destination._boxes_of(device)
        )


def _static(layout: Layout) -> Layout:
    """Return the layout with static extents and strides, because `right_inverse` uses only static ones."""

    def stride(tree: Any) -> Any:
        if isinstance(tree, tuple):
            return tuple([stride(one) for one in tree])
        return Int(int(tree.value)) * E(*tree.modes) if isinstance(tree, ScaledBasis) else static(tree)

    return Layout(static(layout.shape), stride(layout.stride))


def _chosen(*given: Mapping[int, Any] | None) -> str:
    """Return the backend for these arrays."""
    arrays = [array for one in given if isinstance(one, Mapping) for array in one.values()]
    torch = sys.modules.get("torch")
    tensors = torch is not None and any(isinstance(array, torch.Tensor) for array in arrays)
    if torch is not None and tensors and torch.distributed.is_available() and torch.distributed.is_initialized():
        return "torch"
    return "peer" if any(map(peer.on_device, arrays)) else "host"


def redistribute(
    source: ShardedLayout, destination: ShardedLayout, dtype: DTypeLike, *, devices_per_host: int | None = None
) -> Redistribution:
    """Plan the copies from one distribution of a tensor to another.

    Args:
        source, destination: distributions with the same tensor shape. The meshes may differ; device d is the same
            device in both.
        dtype: the element type, in any spelling.
        devices_per_host: the number of consecutive devices that share a host; None: all.
    Raises:
        LayoutError: the shapes differ, or the destination holds summands.

    >>> from cute_py.mesh import Shard, distribute
    >>> plan = redistribute(distribute((8, 8), 4, [Shard(0)]), distribute((8, 8), 4, [Shard(1)]), "bf16")
    >>> plan.bytes_moved, len(list(plan.transfers(device=0)))
    (96, 4)
    """
    expect(source, ShardedLayout, "source")
    expect(destination, ShardedLayout, "destination")
    most = max(source.devices, destination.devices)
    hosts = most if devices_per_host is None else expect_integer(devices_per_host, "devices_per_host", 1)
    return Redistribution(source, destination, as_dtype(dtype), hosts)
