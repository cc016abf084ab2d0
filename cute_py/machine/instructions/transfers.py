"""Asynchronous copies: cp.async and its groups, bulk copies, tensor copies, tensor maps.

A transfer runs as an agent of the machine. Under the eager schedule it completes when it is issued. Under the lazy
schedule it completes when a thread needs it: loads when all threads wait, stores and cp.async when a thread waits for
their group. The emulator executes tensor copies: it moves the same bytes as an H200, and traps in the same cases.
Source: PTX ISA 9.0, asynchronous copy instructions, tensormap.replace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from cute_py.errors import CuteError, TmaTrap
from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.accesses import SPACES
from cute_py.machine.instructions.mbarriers import arrive_at, barriers_of, landed
from cute_py.machine.judgement.observer import AsyncWork, Touched
from cute_py.machine.memory import Locate, address_reader, host_place, locate
from cute_py.machine.schedule import Pending
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Host, Reader, Run, broadcast, each_thread
from cute_py.ptx.parse import OperandKind, WrittenOperand
from cute_py.tma.descriptor.replace import replace
from cute_py.tma.descriptor.request import TensorMap
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tma.emulator.memory import MAX_CTAS
from cute_py.tma.emulator.walk import walk_rows

MAP_BYTES: Final = 128
MapLike: TypeAlias = bytes | TensorMap
_HINTS: Final = ("L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")


# ---- groups ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Issued:
    """An issued transfer: the threads that issued it, the index of each thread's group at that time, and its agent."""

    threads: Array
    groups: Array
    agent: Pending


class Groups:
    """The groups of one kind of transfer: the number of groups that each thread has committed, and the transfers in
    flight.
    """

    def __init__(self, m: Host) -> None:
        self.committed = np.zeros(m.count, np.int64)
        self.issued: list[_Issued] = []

    @staticmethod
    def of(m: Host, kind: str) -> Groups:
        """Return the groups of a machine, created on first use."""
        found = m.state.get(kind)
        if found is None:
            found = m.state[kind] = Groups(m)
        groups: Groups = found
        return groups

    def add(self, threads: Array, agent: Pending) -> None:
        """Add an issued transfer to the current group of its threads."""
        if not agent.done:
            self.issued.append(_Issued(threads, self.committed[threads].copy(), agent))

    def wait(self, f: Frame, left: int, *, uncommitted: bool = False) -> None:
        """Complete the groups of a frame's threads, except the last `left` groups."""
        if not self.issued:
            return
        limit = np.full(f.m.count, -1, np.int64)
        limit[f.threads] = self.committed[f.threads] - left + (1 if uncommitted else 0)
        kept = []
        for one in self.issued:
            if not one.agent.done and (one.groups < limit[one.threads]).any():
                f.m.finish(one.agent)
            if not one.agent.done:
                kept.append(one)
        self.issued = kept


def _build_group(site: Site, kind: str) -> Run:
    """Build the function that runs commit_group, wait_group or wait_all."""
    action = site.choice("commit_group", "wait_group", "wait_all")
    reads = site.flag("read")
    if action == "commit_group":
        site.finish(0)

        def commit(f: Frame) -> None:
            Groups.of(f.m, kind).committed[f.threads] += 1
            f.m.observer.committed(f, site, kind)

        return commit
    site.finish(1 if action == "wait_group" else 0)
    left = site.constant(0) if action == "wait_group" else 0
    everything = action == "wait_all"

    def wait(f: Frame) -> None:
        f.m.observer.waited(f, site, kind, left, reads, everything)
        Groups.of(f.m, kind).wait(f, left, uncommitted=everything)

    return wait


# ---- cp.async --------------------------------------------------------------------------------------------------------


def build_copy(site: Site) -> Run:
    """Build the function that runs a cp instruction, an asynchronous copy."""
    if site.flag("reduce"):
        site.flag("async")
        return _build_bulk(site, reduces=True)
    site.flag("async")
    if site.flag("bulk"):
        if any(word in ("commit_group", "wait_group") for word in site.modifiers):
            return _build_group(site, "bulk")
        return _build_bulk(site, reduces=False)
    if any(word in ("commit_group", "wait_group", "wait_all") for word in site.modifiers):
        return _build_group(site, "cp.async")
    if site.flag("mbarrier"):
        return _build_copy_arrival(site)
    return _build_thread_copy(site)


def _build_thread_copy(site: Site) -> Run:
    site.flag("ca", "cg")
    space = site.choice("shared", "shared::cta", "shared::cluster")
    site.flag("global")
    hint = site.flag("L2::cache_hint")
    site.flag(*_HINTS)
    site.finish((3, 4, 5))
    size = site.constant(2)
    if size not in (4, 8, 16):
        raise Refused(f"{site.one.opcode} copies {size} bytes; must copy 4, 8 or 16")
    rest = site.operands[3 : -1 if hint else None]
    ignores = bool(rest) and site.code.register(site.function, rest[0].base) == "pred"
    given = None if not rest else site.read(rest[0], "pred" if ignores else "u32")
    target = locate(site, 0, space, size, writes=True)
    source = locate(site, 1, "global", size, writes=False)
    unit = np.dtype(f"V{size}")

    def run(f: Frame) -> None:
        m = f.m
        array, offsets = target(f)
        taken = np.full(f.n, size, np.int64)
        if given is not None:
            value = broadcast(given(f), f)
            taken = np.where(value, 0, size) if ignores else np.minimum(value.astype(np.int64), size)
        reads = f if int(taken.min()) > 0 else None if int(taken.max()) == 0 else f.subset(taken > 0)
        parts = [] if reads is None else _sources(reads, source)
        m.asynchronous = True
        if m.observer.active:
            held_spans = [Touched(held, 0, size, places) for held, places, _ in parts]
            m.observer.issued(
                f,
                site,
                AsyncWork("cp.async", held_spans, [Touched(array, 0, size, offsets)], group="cp.async", readers=reads),
            )
        if m.eager and len(parts) == 1 and int(taken.min()) == size:
            held, places, _ = parts[0]
            m.memory.typed(array, unit)[offsets // size] = m.memory.typed(held, unit)[places // size]
            m.version += 1
            return

        def complete() -> None:
            content = np.zeros((f.n, size), np.uint8)
            for held, places, threads in parts:
                rows = held[places[:, None] + np.arange(size)]
                content[np.searchsorted(f.threads, threads)] = rows
            content[np.arange(size) >= taken[:, None]] = 0
            m.memory.typed(array, unit)[offsets // size] = content.view(unit)[:, 0]

        agent = m.under_way("a cp.async", site.number, complete, waited_for=True)
        Groups.of(m, "cp.async").add(f.threads, agent)

    return run


def _sources(f: Frame, source: Locate) -> list[tuple[Array, Array, Array]]:
    """Return (array of bytes, offsets, threads) for each range that a frame reads."""
    from cute_py.machine.memory import SeveralRanges

    try:
        array, offsets = source(f)
        return [(array, offsets, f.threads)]
    except SeveralRanges as several:
        found = []
        for which in np.unique(several.index).tolist():
            part = f.subset(several.index == which)
            array, offsets = source(part)
            found.append((array, offsets, part.threads))
        return found


def _build_copy_arrival(site: Site) -> Run:
    """cp.async.mbarrier.arrive: arrive when the copies that a thread has issued are complete."""
    site.flag("arrive")
    once = site.flag("noinc")
    space = site.choice("shared", "shared::cta", default="generic")
    site.kind("b64")
    site.finish(1)
    where = locate(site, 0, space, 8, writes=True)

    def run(f: Frame) -> None:
        m = f.m
        places = where(f)[1]
        found = [barriers_of(f, site, place) for place in places.tolist()]
        m.observer.copies_arrive(f, site, places, not once)
        if not once:
            for barrier in found:
                barrier.pending += 1
        groups = Groups.of(m, "cp.async")

        def complete() -> None:
            groups.wait(f, 0, uncommitted=True)
            for thread, place, barrier in zip(f.threads.tolist(), places.tolist(), found, strict=True):
                arrive_at(m.span(thread, thread + 1), site, place, barrier, 1)

        m.under_way("the arrival of cp.async", site.number, complete)

    return run


# ---- bulk copies -----------------------------------------------------------------------------------------------------


def _build_bulk(site: Site, *, reduces: bool) -> Run:
    if reduces:
        site.flag("bulk")
    prefetches = site.flag("prefetch")
    tensor = site.flag("tensor")
    if tensor:
        return _build_tensor(site, reduces=reduces, prefetches=prefetches)
    if prefetches:
        return lambda f: None
    spaces = [word for word in site.modifiers if word in SPACES]
    site.flag(*SPACES)
    to_barrier = site.flag("mbarrier::complete_tx::bytes")
    site.flag("bulk_group")
    multicast = site.flag("multicast::cluster")
    site.flag("L2::cache_hint")
    masks = site.flag("cp_mask")
    operation = site.choice("add", "min", "max", "inc", "dec", "and", "or", "xor") if reduces else ""
    site.flag("noftz")
    kind = site.kind() if reduces else None
    site.finish()
    if masks or len(spaces) != 2 or (reduces and not operation):
        raise Refused(f"{site.one.opcode} is not emulated")
    target, source = (locate(site, place, space, 16, writes=not place) for place, space in enumerate(spaces))
    size = site.reader(2, "u32")
    barrier = locate(site, 3, "shared::cluster", 8, writes=True) if to_barrier else None
    mask = site.reader(4, "u16") if multicast else None
    return _bulk(site, (target, source, size, barrier, mask), operation, kind)


def _bulk(
    site: Site, how: tuple[Locate, Locate, Reader, Locate | None, Reader | None], operation: str, kind: Any
) -> Run:
    target, source, size, barrier, mask = how
    from cute_py.machine.instructions.accesses import _combination

    combine = _combination(operation, kind) if operation else None

    def one(f: Frame) -> None:
        m = f.m
        nbytes = int(broadcast(size(f), f)[0])
        if nbytes % 16:
            text = f"{f.text()}: a bulk copy has {nbytes} bytes; must be a multiple of 16"
            raise site.fault("bulk size", text, f, "cp.async.bulk")
        to, places = target(f)
        held, sources = source(f)
        start, begin = int(places[0]), int(sources[0])
        starts, signalled = [start], []
        if mask is not None:
            bits = int(broadcast(mask(f), f)[0])
            expect_ctas(f, site, bits)
            first = int(f.ctas[0]) // m.cluster_size * m.cluster_size
            starts = [(first + i) * m.shared_stride + start % m.shared_stride for i in range(MAX_CTAS) if bits >> i & 1]
        if barrier is not None:
            place = int(barrier(f)[1][0])
            signalled = [place // m.shared_stride * m.shared_stride + place % m.shared_stride]
            if mask is not None:
                signalled = [at // m.shared_stride * m.shared_stride + place % m.shared_stride for at in starts]
        for array, at, what in ((held, begin, "reads"), *((to, at, "writes") for at in starts)):
            limit = at // m.shared_stride * m.shared_stride + m.shared_bytes if array is m.shared else len(array)
            if at + nbytes > limit:
                text = f"{f.text()}: a bulk copy {what} {at + nbytes - limit} bytes past the end of its memory"
                raise site.fault("out of bounds", text, f, "cp.async.bulk", bytes=nbytes)
        found = [barriers_of(f, site, place) for place in signalled]
        if m.observer.active:
            reads, writes = [Touched(held, begin, nbytes)], [Touched(to, at, nbytes) for at in starts]
            kind_ = "bulk load" if found else "bulk reduction" if operation else "bulk store"
            m.observer.issued(f, site, AsyncWork(kind_, reads, writes, signalled, nbytes, "" if found else "bulk"))

        def complete() -> None:
            content = held[begin : begin + nbytes].copy()
            for at in starts:
                if combine is not None:
                    old = to[at : at + nbytes].view(kind.dtype)
                    old[...] = np.asarray(combine(old.copy(), content.view(kind.dtype))).astype(old.dtype, copy=False)
                else:
                    to[at : at + nbytes] = content
            for place_, one_barrier in zip(signalled, found, strict=True):
                landed(f, place_, one_barrier, nbytes, site.number)

        agent = m.under_way("a bulk copy", site.number, complete, waited_for=not found)
        if not found:
            Groups.of(m, "bulk").add(f.threads, agent)

    return each_thread(one)


# ---- tensor copies ---------------------------------------------------------------------------------------------------

_MODES: Final = ("tile", "im2col", "im2col_no_offs", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4")


def _map_reader(site: Site, place: int) -> Callable[[Frame], MapLike]:
    """Return a function of a frame that reads the 128 bytes of an operand's tensor map, or returns its request if the
    bits are unknown.
    """
    address = site.address_of(site.operand(place))
    read = address_reader(site, address, "generic")

    def find(f: Frame) -> MapLike:
        where = int(read(f)[0])
        found = host_place(f.m, int(f.ctas[0]), where)
        if found is None or found[1] + MAP_BYTES > len(found[0]):
            text = f"{f.text()}: {f.m.address_text(where)} does not contain a tensor map"
            raise site.fault("out of bounds", text, f, "cp.async.bulk.tensor", address=where)
        if where % 64:
            text = f"{f.text()}: a tensor map is at {f.m.address_text(where)}; must be at a multiple of 64 bytes"
            raise site.fault("misaligned", text, f, "tensor map", address=where)
        f.m.observer.map_read(f, site, *found)
        raw = found[0][found[1] : found[1] + MAP_BYTES].tobytes()
        return f.m.memory.unknown_maps.get(raw, raw) if f.m.memory.unknown_maps else raw

    return find


@dataclass(frozen=True, slots=True)
class _TensorCopy:
    """A tensor copy instruction: its modifiers, and its operands as functions of a frame.

    operation: the operation, if the copy is a reduction. mode: the emulator's name of the mode. map: the 128
    bytes of the tensor map. mask: the CTAs that a multicast writes. shared: the tile in shared memory; None for a
    prefetch. barrier: the mbarrier of a load.
    """

    operation: str
    mode: str
    cta_pair: bool
    emulator: Emulator
    map: Callable[[Frame], MapLike]
    coords: Sequence[Reader]
    offsets: Sequence[Reader]
    mask: Reader | None
    shared: Locate | None
    barrier: Locate | None

    def arguments(self, f: Frame) -> tuple[MapLike, list[int], dict[str, Any]]:
        """Return the tensor map, coordinates and keyword arguments for the emulator, given a frame of one thread."""
        words = self.map(f)
        coords = [int(broadcast(c(f), f)[0]) for c in self.coords]
        keywords: dict[str, Any] = {"mode": self.mode}
        if self.offsets:
            keywords["im2col_offsets"] = [int(broadcast(c(f), f)[0]) for c in self.offsets]
        if self.mask is not None:
            keywords["multicast_mask"] = int(broadcast(self.mask(f), f)[0])
        if self.cta_pair:
            keywords["cta_group"] = 2
        return words, coords, keywords


def _build_tensor(site: Site, *, reduces: bool, prefetches: bool) -> Run:
    copy = _tensor_copy(site, reduces=reduces, prefetches=prefetches)
    if copy.shared is None:
        return each_thread(_tensor_prefetch(site, copy))
    if copy.barrier is not None:
        return each_thread(_tensor_load(site, copy, copy.shared, copy.barrier))
    return each_thread(_tensor_store(site, copy, copy.shared))


def _tensor_copy(site: Site, *, reduces: bool, prefetches: bool) -> _TensorCopy:
    """Parse the modifiers and the operands of a tensor copy.

    The first operand of a prefetch is the tensor. A store has its shared-memory address after the tensor. A load has
    its shared-memory address before the tensor, and its mbarrier after the tensor. Offsets, a mask and a cache policy
    may follow.
    """
    dimension = int(site.choice("1d", "2d", "3d", "4d", "5d")[0])
    spaces = [word for word in site.modifiers if word in SPACES]
    site.flag(*SPACES)
    site.flag("L2")
    mode = site.choice(*_MODES)
    loads = not prefetches and site.flag("mbarrier::complete_tx::bytes")
    site.flag("bulk_group")
    multicast = site.flag("multicast::cluster")
    pair = site.choice("cta_group::1", "cta_group::2")
    hint = site.flag("L2::cache_hint")
    operation = site.choice("add", "min", "max", "inc", "dec", "and", "or", "xor") if reduces else ""
    site.finish()
    named = {"im2col_no_offs": "im2col"}.get(mode, mode) or "tile"
    place = 1 if loads else 0
    coords = _tensor_coords(site, place, 5 if "::gather4" in mode or "::scatter4" in mode else dimension)
    rest = list(site.operands[1 if prefetches else place + 2 :])
    if hint and rest:
        rest.pop()
    mask = site.read(rest.pop(), "u16") if multicast and rest else None
    shared_space = spaces[0] if loads else spaces[-1] if spaces else "shared::cta"
    return _TensorCopy(
        operation=operation,
        mode=named,
        cta_pair=pair == "cta_group::2",
        emulator=Emulator("sm_90a" if not pair and named in ("tile", "im2col") else "sm_100a"),
        map=_map_reader(site, place),
        coords=coords,
        offsets=_im2col_offsets(site, rest),
        mask=mask,
        shared=None if prefetches else locate(site, 1 - place, shared_space, 16, writes=loads),
        barrier=locate(site, 2, "shared::cluster", 8, writes=True) if loads else None,
    )


def _tensor_coords(site: Site, place: int, count: int) -> list[Reader]:
    tensor = site.operand(place)
    if tensor.kind is not OperandKind.TENSOR:
        raise Refused(f"the operand {tensor.text} of {site.one.opcode} must be a tensor")
    if len(tensor.elements) != count:
        raise Refused(f"{site.one.opcode} has {len(tensor.elements)} coordinates; must have {count}")
    return [site.read(text, "s32") for text in tensor.elements]


def _im2col_offsets(site: Site, rest: Sequence[WrittenOperand]) -> list[Reader]:
    if not rest or rest[0].kind is not OperandKind.VECTOR:
        return []
    return [site.read(text, "u16") for text in rest[0].elements]


def _tensor_prefetch(site: Site, copy: _TensorCopy) -> Callable[[Frame], None]:
    def one(f: Frame) -> None:
        words, coords, keywords = copy.arguments(f)
        with _errors_as_faults(site, f):
            copy.emulator.prefetch(words, f.m.memory.ranges, coords, **keywords)

    return one


def _tensor_load(site: Site, copy: _TensorCopy, shared: Locate, barrier: Locate) -> Callable[[Frame], None]:
    def one(f: Frame) -> None:
        m = f.m
        words, coords, keywords = copy.arguments(f)
        cta, offset = divmod(int(shared(f)[1][0]), m.shared_stride)
        place = int(barrier(f)[1][0])
        expect_ctas(f, site, keywords.get("multicast_mask", 0))
        signal = barriers_of(f, site, place)
        counted: list[int] = []
        nbytes = 0
        if m.observer.active:
            with _errors_as_faults(site, f):
                shape = copy.emulator.geometry(words, copy.mode)
                nbytes = int(shape.transaction_bytes)
            targets, counted = _destinations(m, copy, cta, place, keywords.get("multicast_mask"))
            span = nbytes if shape.packing is None else nbytes // shape.packing.packed * shape.packing.spread
            writes = [Touched(m.shared, one * m.shared_stride + offset, span) for one in targets]
            rows = functools.partial(_rows, m, copy, words, coords, keywords)
            m.observer.issued(
                f,
                site,
                AsyncWork(
                    "tensor load",
                    [],
                    writes,
                    counted,
                    nbytes,
                    rows=rows,
                    swizzle=_width(shape.swizzle),
                    map_key=words,
                    data_type=shape.data_type.name,
                    dims=tuple(int(one) for one in shape.dims),
                    bits=int(shape.bits),
                ),
            )

        def complete() -> None:
            before = _before(f, site, counted, nbytes)
            with _errors_as_faults(site, f):
                ranges, window = m.memory.ranges, m.windows[cta]
                copy.emulator.load(words, ranges, coords, window, barrier=signal, smem_offset=offset, **keywords)
            for at, held, phase in before:
                if held.phase != phase:
                    m.observer.phase_ended(m, at, held)

        m.under_way("a tensor load", site.number, complete)

    return one


def _width(swizzle: int) -> int:
    """Width in bytes of a tensor map's swizzle; 16 without a swizzle."""
    return (16, 32, 64, 128)[swizzle] if swizzle < 4 else 128


def _tensor_store(site: Site, copy: _TensorCopy, shared: Locate) -> Callable[[Frame], None]:
    """Build a tensor store or reduction for one thread."""

    def one(f: Frame) -> None:
        m = f.m
        words, coords, keywords = copy.arguments(f)
        cta, offset = divmod(int(shared(f)[1][0]), m.shared_stride)
        same = (site.number, m.totals.clock, cta, offset, *coords)  # in CUTLASS all lanes of a warp store one tile
        if m.observer.active and (copy.operation or m.state.get("last store") != same):
            m.state["last store"] = same
            with _errors_as_faults(site, f):
                nbytes = int(copy.emulator.geometry(words, copy.mode).transaction_bytes)
            rows = functools.partial(_rows, m, copy, words, coords, dict(keywords))
            reads = [Touched(m.shared, cta * m.shared_stride + offset, nbytes)]
            kind = "tensor reduction" if copy.operation else "tensor store"
            m.observer.issued(f, site, AsyncWork(kind, reads, [], [], nbytes, "bulk", rows))
        keywords["smem_offset"] = offset

        def complete() -> None:
            with _errors_as_faults(site, f):
                ranges, window = m.memory.ranges, m.windows[cta]
                if copy.operation:
                    copy.emulator.reduce(copy.operation, words, ranges, coords, window, **keywords)
                else:
                    copy.emulator.store(words, ranges, coords, window, **keywords)

        agent = m.under_way("a tensor store", site.number, complete, waited_for=True)
        Groups.of(m, "bulk").add(f.threads, agent)

    return one


def expect_ctas(f: Frame, site: Site, mask: int) -> None:
    """Check that the cluster has the CTAs of a mask of a multicast.

    Raises:
        MachineFault: the mask names another CTA.
    """
    if mask >> f.m.cluster_size:
        text = f"{f.text()}: a multicast to the CTAs of the mask {mask:#x}; the cluster has {f.m.cluster_size}"
        raise site.fault("cluster rank", text, f, "cp.async.bulk")


def _destinations(m: Host, copy: _TensorCopy, cta: int, barrier: int, mask: int | None) -> tuple[list[int], list[int]]:
    """The CTAs whose memory a load writes, and the offsets of the mbarriers that count its bytes."""
    if mask is None:
        return [cta], [barrier]
    first = cta // m.cluster_size * m.cluster_size
    targets = [first + i for i in range(m.cluster_size) if mask >> i & 1]
    owner, at = divmod(barrier, m.shared_stride)
    if copy.cta_pair:
        pairs = [one - (one - first & 1) + (owner - first & 1) for one in targets]
        return targets, [one * m.shared_stride + at for one in pairs]
    return targets, [one * m.shared_stride + at for one in targets]


def _before(f: Frame, site: Site, counted: Sequence[int], nbytes: int) -> list[tuple[int, Mbarrier, int]]:
    """Report to the observer that bytes arrive; return (offset, barrier, phase) of each mbarrier that counts them."""
    found = []
    for place in counted:
        cta, offset = divmod(place, f.m.shared_stride)
        barrier = f.m.windows[cta].barriers.get(offset)
        if isinstance(barrier, Mbarrier):
            f.m.observer.landed(f.m, place, barrier, nbytes, site.number)
            found.append((place, barrier, barrier.phase))
    return found


def _rows(
    m: Host, copy: _TensorCopy, words: MapLike, coords: Sequence[int], keywords: Mapping[str, Any]
) -> list[Touched]:
    """The rows of global memory that a tensor copy touches."""
    geometry = copy.emulator.geometry(words, copy.mode)
    offsets = np.asarray([keywords.get("im2col_offsets", [0] * max(len(coords) - 2, 0))], np.int64)
    rows = walk_rows(geometry, np.asarray([coords], np.int64), offsets)
    low, high = int(rows.first[0]), int(rows.last[0])
    addresses = rows.address[rows.inside] + low
    if not len(addresses) or high <= low:
        return []
    ranges = m.memory.ranges
    index = ranges.index_of(addresses)
    found = []
    for which in np.unique(index).tolist():
        held = ranges.ranges[which]
        found.append(Touched(held.array, 0, high - low, addresses[index == which] - held.address))
    return found


@contextmanager
def _errors_as_faults(site: Site, f: Frame) -> Iterator[None]:
    """Convert errors of the TMA emulator to faults at this instruction."""
    try:
        yield
    except TmaTrap as trap:
        text = f"{f.text()}: {trap.headline}"
        raise site.fault("tensor copy trap", text, f, "cp.async.bulk.tensor", **_known(trap)) from None
    except CuteError as error:
        text = f"{f.text()}: {error.headline}"
        raise site.fault("tensor copy", text, f, "cp.async.bulk.tensor", **_known(error)) from None


def _known(error: CuteError) -> dict[str, object]:
    return {
        f"map {key}" if key in ("threads", "line", "instruction") else key: str(v) for key, v in error.facts.items()
    }


# ---- tensor maps in memory -------------------------------------------------------------------------------------------


def build_tensormap(site: Site) -> Run:
    """Build the function that runs tensormap.replace or tensormap.cp_fenceproxy."""
    if site.flag("cp_fenceproxy"):
        return _build_map_copy(site)
    site.flag("replace")
    site.flag("tile")
    field = site.choice(
        "global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride", "elemtype",
        "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity",
    )  # fmt: skip
    space = site.choice("global", "shared::cta", default="generic")
    site.flag("b1024")
    kind = site.kind("b32", "b64")
    site.finish((2, 3))
    where = locate(site, 0, space, 128, writes=True)
    ordinal = site.reader(1, "u32") if len(site.operands) == 3 else None
    value = site.reader(len(site.operands) - 1, kind)

    def one(f: Frame) -> None:
        array, places = where(f)
        start = int(places[0])
        number = int(broadcast(value(f), f)[0])
        place = 0 if ordinal is None else int(broadcast(ordinal(f), f)[0])
        try:
            made = replace(array[start : start + MAP_BYTES].tobytes(), field, number, place)
        except CuteError as error:
            raise site.fault("tensor map", f"{f.text()}: {error.headline}", f, "tensormap.replace") from None
        array[start : start + MAP_BYTES] = np.frombuffer(made, np.uint8)
        f.m.observer.map_changed(f, site, int(f.ctas[0]), array, start, "")
        f.m.changed()

    return each_thread(one)


def _build_map_copy(site: Site) -> Run:
    site.flag("global", "shared::cta", "tensormap::generic", "release", "sync", "aligned")
    scope = site.choice("cta", "cluster", "gpu", "sys")
    site.finish(3)
    target, source = locate(site, 0, "global", 128, writes=True), locate(site, 1, "shared::cta", 128, writes=False)

    def run(f: Frame) -> None:
        to, places = target(f)
        held, sources = source(f)
        for place, begin in zip(places.tolist(), sources.tolist(), strict=True):
            to[place : place + MAP_BYTES] = held[begin : begin + MAP_BYTES]
        for cta, part in f.parts:
            for place in np.unique(places[part]).tolist():
                f.m.observer.map_changed(f, site, cta, to, place, scope)
        f.m.changed()

    return run


TABLE: Final[Mapping[str, Builder]] = {"cp": build_copy, "tensormap": build_tensormap}
