"""tcgen05: allocations, loads, stores and copies of tensor memory; commits, waits and fences.

A load writes its registers immediately, because the compiler tracks registers. Under the lazy schedule a store
completes at its wait::st. Copies and matrix products are agents (`tensor_memory/in_flight`). Fences have no effect
here, because the machine runs one instruction after another; `tensor_memory/fences` checks that they are used.
Source: PTX ISA 9.0, tcgen05 instructions. None of this was run on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from cute_py.atom.smem_descriptor import UNIT_BYTES, SmemDescriptor
from cute_py.errors import CuteError
from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.lanes import collective
from cute_py.machine.instructions.matrices import _put_rows, _rows
from cute_py.machine.instructions.mbarriers import arrive_at, barriers_of
from cute_py.machine.judgement.observer import WEAK, AsyncWork, TensorColumns, Touched
from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import locate
from cute_py.machine.sites import Site
from cute_py.machine.tensor_memory.copy_shapes import CopyShape, find_copy_shape, place_lanes
from cute_py.machine.tensor_memory.in_flight import ALL_LANES, Region, TensorState, region_of
from cute_py.machine.tensor_memory.memory import check_transfer, source_addresses
from cute_py.machine.tensor_memory.products import SHIFTED_COLUMNS, shift_rows, split_address
from cute_py.machine.threads import LANES, Array, Frame, Run, broadcast, each_thread
from cute_py.ptx.forms_tcgen05 import CP_MULTICASTS, DECOMPRESSIONS, SHAPE_REGISTERS
from cute_py.tma.emulator.memory import MAX_CTAS

LANE_MASK: Final = 127


# ---- common parts ----------------------------------------------------------------------------------------------------


@contextmanager
def errors_as_faults(site: Site, f: Frame, rule: str = "tensor memory") -> Iterator[None]:
    """Convert errors of the tensor-memory emulator to faults at this instruction."""
    try:
        yield
    except CuteError as error:
        facts: dict[str, Any] = {key: str(value) for key, value in error.facts.items()}
        source = ".".join(site.one.opcode.split(".")[:2])
        raise site.fault(rule, f"{f.text()}: {error.headline}", f, source, **facts) from None


def group_of(site: Site) -> int:
    """The number of CTAs that `.cta_group` names, 1 or 2."""
    found = site.choice("cta_group::1", "cta_group::2")
    if not found:
        raise Refused(f"{site.one.opcode} has no .cta_group")
    return int(found[-1])


def pair_of(f: Frame, site: Site, group: int) -> list[int]:
    """The CTAs of an instruction: the CTA of the thread, or both CTAs of its pair, the even rank first."""
    cta = int(f.ctas[0])
    if group == 1:
        return [cta]
    if f.m.cluster_size % 2:
        text = f"{f.text()}: cta_group::2 in a cluster of {f.m.cluster_size}, which has no pair for this CTA"
        raise site.fault("cta_group", text, f, "CTA pair")
    return [cta - cta % 2, cta - cta % 2 + 1]


def tmem_address(site: Site, place: int) -> Callable[[Frame], Array]:
    """Return a function of a frame that computes the addresses of an operand `[taddr + offset]`, int64 (n,)."""
    one = site.address(place)
    if one.base is None:
        raise Refused(f"the operand {site.operand(place).text} of {site.one.opcode} is not an address of tensor memory")
    base, added = one.base, one.added
    return lambda f: (broadcast(base(f), f).astype(np.int64) + added) & 0xFFFFFFFF


def _each_warp(f: Frame) -> Iterator[tuple[int, int]]:
    """Iterate over the warps of a frame of whole warps: (index of the first thread in the frame, CTA)."""
    for place in range(0, f.n, LANES):
        yield place, int(f.ctas[place])


def _aligned(site: Site) -> None:
    site.flag("sync")
    site.flag("aligned")


# ---- allocation ------------------------------------------------------------------------------------------------------


def _build_alloc(site: Site) -> Turn:
    group = group_of(site)
    _aligned(site)
    space = site.choice("shared::cta", default="generic")
    site.kind("b32")
    site.finish(2)
    where, columns = locate(site, 0, space, 4, writes=True), site.reader(1, "u32")

    def run(f: Frame) -> None:
        state = TensorState.of(f.m)
        array, places = where(f)
        counts = broadcast(columns(f), f)
        for place, cta in _each_warp(f):
            with errors_as_faults(site, f):
                taddr = state.memories[cta].alloc(int(counts[place]), group)
            first = f.m.span(int(f.threads[place]), int(f.threads[place]) + 1)
            state.allocates(first, site, cta, int(counts[place]))
            # .sync: the warp meets before the store and after it; the ISA's first example reads the address there.
            warp = f.m.span(int(f.threads[place]), int(f.threads[place]) + LANES)
            f.m.observer.warp_met(warp, site)
            f.m.observer.wrote(first, site, array, places[place : place + 1], 4, WEAK, np.uint32(taddr))
            f.m.memory.typed(array, np.dtype(np.uint32))[places[place] >> 2] = taddr
            f.m.observer.warp_met(warp, site)
            state.allocations[cta, taddr] = site
            state.written[cta, :, taddr : taddr + int(counts[place])] = 0
        state.version += 1
        f.m.changed()

    return collective(site, None, run, full=True)


def _build_dealloc(site: Site) -> Turn:
    group = group_of(site)
    _aligned(site)
    site.kind("b32")
    site.finish(2)
    address, columns = site.reader(0, "u32"), site.reader(1, "u32")

    def run(f: Frame) -> None:
        state = TensorState.of(f.m)
        addresses, counts = broadcast(address(f), f), broadcast(columns(f), f)
        for place, cta in _each_warp(f):
            taddr, count = int(addresses[place]), int(counts[place])
            state.expect_still(f, site, cta, (ALL_LANES, taddr & 0xFFFF, (taddr & 0xFFFF) + count), "deallocates")
            with errors_as_faults(site, f):
                state.memories[cta].use_group(group)
                state.memories[cta].dealloc(taddr, count)
            state.allocations.pop((cta, taddr), None)
        state.version += 1

    return collective(site, None, run, full=True)


def _build_relinquish(site: Site) -> Turn:
    group = group_of(site)
    _aligned(site)
    site.finish(0)

    def run(f: Frame) -> None:
        state = TensorState.of(f.m)
        for _, cta in _each_warp(f):
            with errors_as_faults(site, f):
                state.memories[cta].use_group(group)
            state.memories[cta].relinquish_alloc_permit()

    return collective(site, None, run, full=True)


# ---- loads and stores ------------------------------------------------------------------------------------------------


class _Transfer:
    """The cells that the warps of a frame access with one load or store."""

    def __init__(self, site: Site, shape: str, num: int, halves: bool, split: int | None) -> None:
        self.site, self.shape, self.num, self.halves, self.split = site, shape, num, halves, split
        self._known: dict[tuple[int, int, int], tuple[Array, Array, Region]] = {}
        self._state: tuple[TensorState, int] | None = None

    def cells(self, f: Frame, addresses: Array, does: str) -> tuple[Array, Array, Array]:
        """Return the CTA (warps, 1, 1), and the lane and column (warps, 32, registers), of each cell."""
        state = TensorState.of(f.m)
        if self._state != (state, state.version):
            self._known.clear()
            self._state = state, state.version
        by_warp = addresses.reshape(-1, LANES)
        if (by_warp != by_warp[:, :1]).any():
            text = f"{f.text()}: the threads of a warp have different addresses of tensor memory"
            raise self.site.fault("tensor memory", text, f, self._name())
        found = []
        for place, cta in _each_warp(f):
            lanes, columns, region = self._of_warp(f, state, cta, int(addresses[place]), int(f.threads[place]) // LANES)
            first = int(f.threads[place])
            one = f if f.n == LANES else f.m.span(first, first + LANES)
            state.expect_still(one, self.site, cta, region, does)
            state.moves(one, self.site, "ld" if does == "reads" else "st", cta, region)
            f.m.observer.tensor_used(one, self.site, cta, region, does != "reads", False)
            found.append((lanes, columns))
        ctas = f.ctas[::LANES]
        if len(found) == 1:
            return ctas[:, None, None], found[0][0][None], found[0][1][None]
        return ctas[:, None, None], np.stack([one[0] for one in found]), np.stack([one[1] for one in found])

    def _of_warp(self, f: Frame, state: TensorState, cta: int, taddr: int, warp: int) -> tuple[Array, Array, Region]:
        rank = warp % (f.m.cta_threads // LANES) % 4
        known = self._known.get((cta, taddr, rank))
        if known is None:
            with errors_as_faults(self.site, f):
                memory = state.memories[cta]
                lanes, columns = memory.places(taddr, self.shape, self.num, rank, self.halves, self.split)
            known = self._known[cta, taddr, rank] = lanes, columns, region_of(lanes, columns)
        return known

    def _name(self) -> str:
        return ".".join(self.site.one.opcode.split(".")[:2])


def _transfer(site: Site, halves: str) -> tuple[str, int, bool]:
    """Parse a load or store: shape, repetitions, and whether 16-bit values of two columns share a register."""
    _aligned(site)
    shape = site.choice(*SHAPE_REGISTERS)
    count = site.choice(*(f"x{1 << power}" for power in range(8)))
    packs = site.flag(halves)
    if not shape or not count:
        raise Refused(f"{site.one.opcode} is not emulated")
    return shape, int(count[1:]), packs


def _registers(site: Site, place: int, wanted: int) -> tuple[str, ...]:
    names = site.elements(place)
    if len(names) != wanted:
        raise Refused(f"{site.one.opcode} has {len(names)} registers; must have {wanted}")
    return names


def _build_load(site: Site) -> Turn:
    if site.flag("red"):
        return _build_reducing_load(site)
    shape, num, packs = _transfer(site, "pack::16b")
    site.kind("b32")
    split = shape == "16x32bx2"
    site.finish(3 if split else 2)
    put = _put_rows(site, _registers(site, 0, check_transfer(shape, num)), KINDS["b32"])
    address = tmem_address(site, 1)
    transfer = _Transfer(site, shape, num, packs, site.constant(2) if split else None)

    def run(f: Frame) -> None:
        words = _loaded(f, transfer, address(f), packs)
        put(f, words)

    return collective(site, None, run, full=True)


def _loaded(f: Frame, transfer: _Transfer, addresses: Array, packs: bool) -> Array:
    """Load words (threads, registers)."""
    ctas, lanes, columns = transfer.cells(f, addresses, "reads")
    state = TensorState.of(f.m)
    state.expect_written(f, transfer.site, (ctas, lanes, columns), "reads", "warning")
    cells = state.cells
    words = cells[ctas, lanes, columns]
    if packs:
        words = words & np.uint32(0xFFFF) | cells[ctas, lanes, columns + 1] << np.uint32(16)
    return words.reshape(f.n, -1)


def _build_reducing_load(site: Site) -> Turn:
    """tcgen05.ld.red: load registers, and compute their minimum or maximum for each thread."""
    shape, num, _ = _transfer(site, "")
    operation = site.choice("min", "max")
    magnitudes, keeps_nan = site.flag("abs"), site.flag("NaN")
    kind = site.kind("u32", "s32", "f32")
    if shape != "32x32b":
        raise Refused(f"{site.one.opcode}: a reduction of .{shape} is not emulated; only .32x32b is")
    site.finish(3)
    put = _put_rows(site, _registers(site, 0, check_transfer(shape, num)), KINDS["b32"])
    reduced, address = site.writer(1, kind), tmem_address(site, 2)
    transfer = _Transfer(site, shape, num, False, None)

    def run(f: Frame) -> None:
        words = _loaded(f, transfer, address(f), False)
        numbers = np.ascontiguousarray(words).view(kind.dtype)
        numbers = np.abs(numbers) if magnitudes else numbers
        if kind.letter == "f" and not keeps_nan:
            found = (np.fmin if operation == "min" else np.fmax).reduce(numbers, axis=1)
        else:
            found = numbers.min(axis=1) if operation == "min" else numbers.max(axis=1)
        put(f, words)
        reduced(f, found)

    return collective(site, None, run, full=True)


def _build_store(site: Site) -> Turn:
    shape, num, unpacks = _transfer(site, "unpack::16b")
    site.kind("b32")
    split = shape == "16x32bx2"
    site.finish(3 if split else 2)
    read = _rows(site, _registers(site, 2 if split else 1, check_transfer(shape, num)), KINDS["b32"])
    address = tmem_address(site, 0)
    transfer = _Transfer(site, shape, num, unpacks, site.constant(1) if split else None)

    def one(f: Frame) -> None:
        state = TensorState.of(f.m)
        ctas, lanes, columns = transfer.cells(f, address(f), "writes")
        words = np.array(read(f)).reshape(1, LANES, -1)
        state.written[ctas, lanes, columns] = site.number + 1
        if unpacks:
            state.written[ctas, lanes, columns + 1] = site.number + 1

        def complete() -> None:
            if unpacks:
                state.cells[ctas, lanes, columns] = words & np.uint32(0xFFFF)
                state.cells[ctas, lanes, columns + 1] = words >> np.uint32(16)
            else:
                state.cells[ctas, lanes, columns] = words

        state.store(f, site, complete)

    def run(f: Frame) -> None:
        for place in range(0, f.n, LANES):
            first = int(f.threads[place])
            one(f if f.n == LANES else f.m.span(first, first + LANES))

    return collective(site, None, run, full=True)


def _build_wait(site: Site, what: str) -> Turn:
    _aligned(site)
    site.finish(0)

    def run(f: Frame) -> None:
        state = TensorState.of(f.m)
        if what == "wait::st":
            state.wait_for_stores(f)
        state.waits(f, what.removeprefix("wait::"))

    return collective(site, None, run, full=True)


# ---- copies and commits ----------------------------------------------------------------------------------------------


def _build_copy(site: Site) -> Run:
    group = group_of(site)
    shape = site.choice(*CP_MULTICASTS)
    multicast = site.choice("warpx2::02_13", "warpx2::01_23", "warpx4")
    site.flag("b8x16")
    source = site.choice(*DECOMPRESSIONS) or None
    site.finish(2)
    form = find_copy_shape(shape, multicast)
    lanes = (place_lanes(form.copies)[:, None] + place_lanes(form.lanes)).reshape(-1)
    address, descriptor = tmem_address(site, 0), site.reader(1, "b64")

    def one(f: Frame) -> None:
        m, state = f.m, TensorState.of(f.m)
        taddr, words = int(address(f)[0]), int(broadcast(descriptor(f), f)[0])
        ctas = pair_of(f, site, group)
        column = taddr & 0xFFFF
        region = region_of(lanes + (taddr >> 16), np.arange(column, column + form.columns))

        def complete() -> None:
            with errors_as_faults(site, f):
                for cta in ctas:
                    shared = m.shared[cta * m.shared_stride : cta * m.shared_stride + m.shared_bytes]
                    memory = state.memories[cta]
                    memory.cp(
                        taddr, words, shared, shape, multicast, cta_group=group, decompress_from=source,
                        smem_base=m.shared_base,
                    )  # fmt: skip
                    memory.commit(None, group)

        for cta in ctas:
            with errors_as_faults(site, f):
                state.memories[cta].use_group(group)
                state.memories[cta].expect_allocated(column, form.columns)
            state.expect_still(f, site, cta, region, "writes", pipelined=True)
            m.observer.tensor_used(f, site, cta, region, True, True)
            reached = (lanes + (taddr >> 16))[:, None] & LANE_MASK
            state.written[cta, reached, np.arange(column, column + form.columns)] = site.number + 1
        if m.observer.active:
            _report(f, site, form, words, ctas, column)
        state.issue(f, site, "a tcgen05.cp", complete, [(cta, region) for cta in ctas])

    return each_thread(one)


def _report(f: Frame, site: Site, form: CopyShape, words: int, ctas: list[int], column: int) -> None:
    """Report to the observer which bytes of shared memory a copy reads."""
    m = f.m
    with errors_as_faults(site, f):
        units = np.unique(source_addresses(form, SmemDescriptor.decode(words))[..., 0]) - m.shared_base
    if int(units.min()) >= 0 and int(units.max()) + UNIT_BYTES <= m.shared_bytes:
        reads = [Touched(m.shared, 0, UNIT_BYTES, units + cta * m.shared_stride) for cta in ctas]
        cells = [TensorColumns("copy", cta, column, column + form.columns) for cta in ctas]
        m.observer.issued(f, site, AsyncWork("tcgen05.cp", reads, group="tcgen05", cells=cells))


def _build_commit(site: Site) -> Run:
    group = group_of(site)
    site.flag("mbarrier::arrive::one")
    space = site.choice("shared::cluster", default="generic")
    multicast = site.flag("multicast::cluster")
    site.kind("b64")
    site.finish(2 if multicast else 1)
    where = locate(site, 0, space, 8, writes=True)
    mask = site.reader(1, "u16") if multicast else None

    def one(f: Frame) -> None:
        m, state = f.m, TensorState.of(f.m)
        place = int(where(f)[1][0])
        places = [place]
        if mask is not None:
            bits = int(broadcast(mask(f), f)[0])
            first = int(f.ctas[0]) // m.cluster_size * m.cluster_size
            inside = place % m.shared_stride
            ranks = [rank for rank in range(MAX_CTAS) if bits >> rank & 1]
            if any(rank >= m.cluster_size for rank in ranks):
                text = f"{f.text()}: a commit to CTA {ranks[-1]}, outside a cluster of {m.cluster_size}"
                raise site.fault("out of bounds", text, f, "tcgen05.commit", mask=hex(bits))
            places = [(first + rank) * m.shared_stride + inside for rank in ranks]
        with errors_as_faults(site, f):
            state.memories[int(f.ctas[0])].use_group(group)
        found = [barriers_of(f, site, at) for at in places]

        def arrive() -> None:
            for at, barrier in zip(places, found, strict=True):
                m.observer.products_arrive(f, site, at)
                arrive_at(f, site, at, barrier, 1)
            m.changed()

        state.commit(f, site, arrive)

    return each_thread(one)


def _build_shift(site: Site) -> Run:
    """tcgen05.shift: move 32 bytes of 31 rows to the previous lane, in one group of lanes."""
    group = group_of(site)
    site.flag("down")
    site.finish(1)
    address = tmem_address(site, 0)

    def one(f: Frame) -> None:
        m, state = f.m, TensorState.of(f.m)
        lane, column = split_address(int(address(f)[0]))
        if lane % LANES or lane > LANE_MASK:
            text = f"{f.text()}: tcgen05.shift from lane {lane}; must be lane 0, 32, 64 or 96"
            raise site.fault("tensor memory", text, f, "tcgen05.shift")
        region = ((1 << LANES) - 1 << lane, column, column + SHIFTED_COLUMNS)
        ctas = pair_of(f, site, group)
        for cta in ctas:
            with errors_as_faults(site, f):
                state.memories[cta].use_group(group)
                state.memories[cta].expect_allocated(column, SHIFTED_COLUMNS)
            state.expect_still(f, site, cta, region, "writes", pipelined=True)
            m.observer.tensor_used(f, site, cta, region, True, True)
            cells = (cta, lane + np.arange(LANES)[:, None], np.arange(column, column + SHIFTED_COLUMNS))
            state.expect_written(f, site, cells, "shifts", "error")
            state.written[cells] = site.number + 1

        def complete() -> None:
            for cta in ctas:
                shift_rows(state.cells[cta], [lane], column)

        state.issue(f, site, "a tcgen05.shift", complete, [(cta, region) for cta in ctas])

    return each_thread(one)


def _build_fence(site: Site, *, after: bool) -> Run:
    site.finish(0)
    return lambda f: f.m.observer.tensor_fenced(f, site, after)


# ---- all -------------------------------------------------------------------------------------------------------------

BUILDERS: Final[Mapping[str, Builder]] = {
    "alloc": _build_alloc,
    "dealloc": _build_dealloc,
    "relinquish_alloc_permit": _build_relinquish,
    "ld": _build_load,
    "st": _build_store,
    "wait::ld": lambda site: _build_wait(site, "wait::ld"),
    "wait::st": lambda site: _build_wait(site, "wait::st"),
    "cp": _build_copy,
    "commit": _build_commit,
    "shift": _build_shift,
    "fence::before_thread_sync": lambda site: _build_fence(site, after=False),
    "fence::after_thread_sync": lambda site: _build_fence(site, after=True),
}
"""Second word of an opcode, except mma -> its builder."""
