"""More atomic operations: asynchronous reductions in the shared memory of a cluster, and exchanges of 128 bits.

Source: PTX ISA 9.0, red.async; atom, .b128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cute_py.machine.faults import Refused
from cute_py.machine.instructions.mbarriers import land
from cute_py.machine.judgement.observer import AccessOrder, AsyncWork
from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import locate
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Run, broadcast

REMOTE_TYPES: Final = {
    "inc": ("u32",), "dec": ("u32",), "min": ("u32", "s32", "u64"), "max": ("u32", "s32", "u64"),
    "add": ("u32", "s32", "u64"), "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip
"""Operation of red.async -> types that it supports."""


def build_remote_reduction(site: Site, operations: Mapping[str, Callable[[Any, Any], Any]]) -> Run:
    """red.async: reduce into the shared memory of a CTA of the cluster; an mbarrier of that CTA counts the bytes.

    Args:
        operations: name -> function of the old and the new value.
    """
    site.flag("relaxed")
    site.flag("cluster")
    site.flag("shared::cluster")
    counted = site.flag("mbarrier::complete_tx::bytes")
    operation = site.choice(*REMOTE_TYPES)
    if not operation or not counted:
        raise Refused(f"{site.one.opcode} is not emulated")
    kind = site.kind(*REMOTE_TYPES[operation])
    site.finish(3)
    size, source, combine = kind.bits // 8, site.reader(1, kind), operations[operation]
    where = locate(site, 0, "shared::cluster", size, writes=True)
    barrier = locate(site, 2, "shared::cluster", 8, writes=True)

    def run(f: Frame) -> None:
        array, offsets = where(f)
        places = barrier(f)[1]
        values = np.array(broadcast(source(f), f))
        if f.m.observer.active:  # several threads may reduce into one place at once, so this is not a write
            f.m.observer.issued(f, site, AsyncWork("red.async", barriers=places.tolist(), nbytes=size))

        def complete() -> None:
            view = f.m.memory.typed(array, kind.dtype)
            for place, value in zip((offsets // size).tolist(), values, strict=True):
                view[place : place + 1] = combine(view[place : place + 1], value)
            for place, count in zip(*np.unique(places, return_counts=True), strict=True):
                land(f, site, int(place), size * int(count))

        f.m.under_way("a reduction in shared memory of the cluster", site.number, complete)

    return run


def build_wide_atomic(site: Site, space: str, operation: str, order: AccessOrder) -> Run:
    """atom.exch.b128, atom.cas.b128: run the threads one after another, in thread order."""
    if operation not in ("exch", "cas") or site.name != "atom":
        raise Refused(f"{site.one.opcode}: only atom.exch and atom.cas exist for 128 bits")
    names = [site.operand(place).base for place in (0, *range(2, 3 + (operation == "cas")))]
    site.finish((3, 4, 5) if operation == "exch" else (4, 5))
    if any(site.bits_of(name) != 128 for name in names):
        raise Refused(f"{site.one.opcode} takes registers of 128 bits")
    keys = [16 * site.slot(name) + KINDS["u64"].code for name in names]
    where = locate(site, 1, space, 16, writes=True)

    def pair(f: Frame, key: int) -> Array:
        return np.stack([f.get(key), f.get(key + 16)], axis=1)

    def run(f: Frame) -> None:
        array, offsets = where(f)
        view = f.m.memory.typed(array, np.dtype(np.uint64), 2)
        f.m.observer.updated(f, site, array, offsets, 16, order)
        rows = [pair(f, key) for key in keys[1:]]
        before = np.empty((f.n, 2), np.uint64)
        for thread, place in enumerate((offsets // 16).tolist()):
            before[thread] = view[place]
            if operation == "exch" or np.array_equal(view[place], rows[0][thread]):
                view[place] = rows[-1][thread]
        f.put(keys[0], before[:, 0])
        f.put(keys[0] + 16, before[:, 1])
        f.m.looked = True
        f.m.version += 1

    return run


def build_multimem(site: Site) -> Run:
    """multimem: not emulated, because its addresses refer to the memory of several GPUs, and the machine models one."""
    raise Refused(f"{site.one.opcode} acts on multicast memory of several GPUs, but the machine is a single GPU")
