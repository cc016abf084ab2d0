"""clusterlaunchcontrol: a cluster requests the work of another cluster that has not been launched yet.

try_cancel cancels the launch of the next cluster in the grid that does not run yet, if there is one, and writes a
response of 16 bytes to shared memory. query_cancel reads the response. The ISA does not define the bits of the
response; here they are a flag and the coordinates of the first CTA:

    word 0    1 if a cluster was cancelled           words 1 to 3    x, y, z of its first CTA

The number of clusters that fit on the device determines whether a cluster is cancelled, and which one; the machine has
132 multiprocessors. Under the lazy schedule no cluster is cancelled, so all clusters are launched.
Source: PTX ISA 9.0, clusterlaunchcontrol.try_cancel, clusterlaunchcontrol.query_cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.mbarriers import barriers_of, landed
from cute_py.machine.judgement.observer import AsyncWork, Touched
from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import locate
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Run, each_thread

ANSWER_BYTES: Final = 16


def build_launch_control(site: Site) -> Run:
    """Build the function that runs try_cancel or query_cancel."""
    if site.flag("try_cancel"):
        return _build_cancel(site)
    if not site.flag("query_cancel"):
        raise Refused(f"{site.one.opcode} is not emulated")
    if site.flag("is_canceled"):
        return _build_is_cancelled(site)
    return _build_first_cta(site)


def _build_cancel(site: Site) -> Run:
    site.flag("async")
    space = site.choice("shared::cta", default="generic")
    site.flag("mbarrier::complete_tx::bytes")
    everywhere = site.flag("multicast::cluster::all")
    site.kind("b128")
    site.finish(2)
    answer = locate(site, 0, space, ANSWER_BYTES, writes=True)
    barrier = locate(site, 1, space, 8, writes=True)

    def one(f: Frame) -> None:
        m = f.m
        ctas = [int(f.ctas[0])]
        if everywhere:
            first = ctas[0] // m.cluster_size * m.cluster_size
            ctas = list(range(first, first + m.cluster_size))
        to, signals = (int(where(f)[1][0]) % m.shared_stride for where in (answer, barrier))
        places = [cta * m.shared_stride + signals for cta in ctas]
        for place in places:
            barriers_of(f, site, place)
        starts = [cta * m.shared_stride + to for cta in ctas]
        if m.observer.active:
            writes = [Touched(m.shared, start, ANSWER_BYTES) for start in starts]
            m.observer.issued(f, site, AsyncWork("bulk load", [], writes, places, ANSWER_BYTES))

        def complete() -> None:
            words = np.zeros(4, np.uint32)
            rest = m.state.get("not launched")
            if rest and m.eager:
                words[0], words[1:] = 1, rest.popleft()[0]
            for start, place in zip(starts, places, strict=True):
                m.shared[start : start + ANSWER_BYTES] = words.view(np.uint8)
                landed(f, place, barriers_of(f, site, place), ANSWER_BYTES, site.number)
            m.changed()

        m.under_way("a clusterlaunchcontrol.try_cancel", site.number, complete)

    return each_thread(one)


def _word(site: Site, operand: int, number: int) -> Callable[[Frame], Array]:
    """Return a function of a frame that reads a word of a response in a 128-bit register."""
    name = site.operand(operand).base
    if site.bits_of(name) != 128:
        raise Refused(f"the register {name} of {site.one.opcode} has {site.bits_of(name)} bits; must have 128")
    key = 16 * (site.slot(name) + number // 2) + KINDS["u64"].code
    shift = np.uint64(32 * (number % 2))
    return lambda f: (f.get(key) >> shift).astype(np.uint32)


def _build_is_cancelled(site: Site) -> Run:
    site.flag("pred")
    site.flag("b128")
    site.finish(2)
    put, flag = site.writer(0, "pred"), _word(site, 1, 0)
    return lambda f: put(f, flag(f) != 0)


def _build_first_cta(site: Site) -> Run:
    one = site.choice("get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z")
    vector = site.flag("get_first_ctaid") and site.flag("v4")
    site.flag("b32")
    site.flag("b128")
    site.finish(2)
    if not one and not vector:
        raise Refused(f"{site.one.opcode} is not emulated")
    numbers = ["xyz".index(one[-1])] if one else [0, 1, 2]
    puts = [site.write(name, "b32") for name in site.elements(0)[: len(numbers)]]
    words = [_word(site, 1, 1 + number) for number in numbers]

    def run(f: Frame) -> None:
        for put, word in zip(puts, words, strict=True):
            put(f, word(f))

    return run


TABLE: Final[Mapping[str, Builder]] = {"clusterlaunchcontrol": build_launch_control}
