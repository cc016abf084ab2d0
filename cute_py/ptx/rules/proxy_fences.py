"""The rule about proxy fences: a fence.proxy.async separates a thread's ordinary writes to shared memory from a bulk
copy that reads them.

Ordinary writes use the generic proxy, and bulk copies the asynchronous proxy. The rule follows the writes that surely,
or possibly, no fence follows, on all paths to a copy.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Iterator
from typing import Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.ptx.flow import PEER, STORES, Flow, Known, Place, opposite, shared_roots
from cute_py.ptx.program import Function
from cute_py.ptx.values import Event, registers_written
from cute_py.tma.descriptor.limits import STORE_UNIT

PROXY_FENCES: Final = ("fence.proxy.async", "fence.proxy.async::generic")
_WIDTH: Final = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
_TO_SHARED: Final = ("st.shared", "st.volatile.shared", "st.weak.shared", "stmatrix", "st.relaxed.shared")
_OTHER_WRITES: Final = ("atom.shared", "red.shared", "cp.async.ca", "cp.async.cg", "st.bulk")
"""Writes to shared memory that the rule about fences does not follow."""


_Steps: TypeAlias = collections.defaultdict[int, list[tuple[int, str, Place]]]
"""For each block, the index, the kind ('write', 'read', 'fence', 'fence @%p1', 'change %p1') and the place of steps."""
_Guarded: TypeAlias = tuple[Place, str]
"""A write, and the predicate that did not hold at the last fence after it, or '' if none is known."""


def check_proxy_fences(flow: Flow) -> Iterator[Diagnostic]:
    """Find bulk stores that read shared memory after ordinary stores of the same thread, without a fence in between."""
    reads = {one.place: one for one in flow.of(*STORES, *PEER)}
    if not reads:
        return
    writes, left = _ordinary_writes(flow)
    for reason, lines in left.items():
        flow.tally.leave("write", reason, lines)
    steps: _Steps = collections.defaultdict(list)
    for place in writes:
        steps[place[0]].append((place[1], "write", place))
    for event in flow.values.events:
        if event.statement.opcode.startswith("call"):
            steps[event.block].append((event.index, "fence", (event.block, event.index)))
    for one in flow.known:
        if one.row in PROXY_FENCES and one.chosen.get("spaces") != "global":
            what = f"fence {one.event.statement.predicate}".rstrip()
            steps[one.event.block].append((one.event.index, what, one.place))
        elif one.place in reads:
            steps[one.event.block].append((one.event.index, "read", one.place))
    _add_changes(flow.function, steps)
    for found in steps.values():
        found.sort()
    on_every, on_some = _unfenced_writes(flow.function, steps)
    doubtful = []
    for number, found in steps.items():
        held, possible = set(on_every[number]), set(on_some[number])
        for _, what, place in found:
            if what == "read":
                yield from _unfenced(flow, reads[place], [writes[w] for w in sorted(held)])
                predicate = reads[place].event.statement.predicate
                open_ = {write for write, guard in possible if not predicate or predicate != guard} - held
                if any(_may_meet(flow, reads[place], writes[w]) for w in open_):
                    doubtful.append(reads[place])
            _update_sure(held, what, place)
            _update_possible(possible, what, place)
    flow.leave("bulk store", "proxy fence: on some paths, a write may reach the store without a fence", doubtful)
    flow.tally.judge("bulk store", "proxy fence", len(reads) - len(doubtful))


def _ordinary_writes(flow: Flow) -> tuple[dict[Place, Event], dict[str, list[int]]]:
    """Return the writes to shared memory through the generic proxy, and by reason the lines of writes that are not
    followed."""
    writes: dict[Place, Event] = {}
    left: dict[str, list[int]] = collections.defaultdict(list)
    for event in flow.values.events:
        opcode, line = event.statement.opcode, event.statement.line
        if opcode.startswith(_OTHER_WRITES):
            left["proxy fence: writes to shared memory by these instructions are not followed"].append(line)
        if not opcode.startswith(("st.", "stmatrix")) or opcode.startswith(("st.async", "st.bulk")):
            continue
        value = event.values[0] if event.values else None
        if opcode.startswith(_TO_SHARED) or shared_roots(flow, value):
            if event.statement.predicate:
                left["proxy fence: writes to shared memory under a predicate are not followed"].append(line)
            else:
                writes[event.block, event.index] = event
        elif value is None or (_is_generic(opcode) and not flow.values.symbols(value)):
            left["proxy fence: generic addresses that may be in shared memory are not followed"].append(line)
    return writes, left


def _is_generic(opcode: str) -> bool:
    return not {"global", "local", "param", "const"} & set(opcode.replace("::", ".").split("."))


def _add_changes(function: Function, steps: _Steps) -> None:
    """Add the writes to the predicates of the fences to the steps."""
    guards = {what.partition("@")[2].lstrip("!") for found in steps.values() for _, what, _ in found} - {""}
    for number, block in enumerate(function.blocks if guards else ()):
        for index, statement in enumerate(block.statements):
            changed = [(index, f"change {name}", (number, index)) for name in registers_written(statement)]
            if found := [one for one in changed if one[1].removeprefix("change ") in guards]:
                steps[number] += found


def _update_sure(held: set[Place], what: str, place: Place) -> None:
    """Update the writes that surely no fence follows."""
    if what == "write":
        held.add(place)
    elif what.startswith("fence"):
        held.clear()


def _update_possible(held: set[_Guarded], what: str, place: Place) -> None:
    """Update the writes that possibly no fence follows."""
    kind, _, name = what.partition(" ")
    if kind == "write":
        held.add((place, ""))
    elif kind == "fence":
        left = [(write, name) for write, guard in held if name and guard != opposite(name)]
        held.clear()
        held.update(left)
    elif kind == "change":
        lost = [(write, guard) for write, guard in held if guard.lstrip("@!") == name]
        held.difference_update(lost)
        held.update([(write, "") for write, _ in lost])


def _unfenced_writes(function: Function, steps: _Steps) -> tuple[list[frozenset[Place]], list[frozenset[_Guarded]]]:
    """Return, for each block, the writes that surely no fence follows on every path to the block, and the writes that
    possibly no fence follows on at least one path."""
    everything = frozenset(place for found in steps.values() for _, what, place in found if what == "write")

    def surely(number: int, held: frozenset[Place]) -> frozenset[Place]:
        made = set(held)
        for _, what, place in steps.get(number, ()):
            _update_sure(made, what, place)
        return frozenset(made)

    def maybe(number: int, held: frozenset[_Guarded]) -> frozenset[_Guarded]:
        made = set(held)
        for _, what, place in steps.get(number, ()):
            _update_possible(made, what, place)
        return frozenset(made)

    entering = [everything if block.before else frozenset[Place]() for block in function.blocks]
    if entering:
        entering[0] = frozenset()
    nothing = [frozenset[_Guarded]() for _ in function.blocks]
    return function.settled(entering, surely, operator.and_), function.settled(nothing, maybe, operator.or_)


def _may_meet(flow: Flow, read: Known, write: Event) -> bool:
    """Whether an ordinary write may touch bytes that a bulk store reads."""
    source, value = read.value("source"), write.values[0]
    if source is None or value is None:
        return True
    if value.base == source.base:
        size = read.constant("size")
        width = _WIDTH.get(write.statement.opcode.rpartition(".")[2].lstrip("bufs"), STORE_UNIT)
        return value.offset + width > source.offset and (size is None or value.offset < source.offset + size)
    roots, same = shared_roots(flow, source), shared_roots(flow, value)
    return not roots or not same or bool(roots & same)


def _unfenced(flow: Flow, read: Known, writes: list[Event]) -> Iterator[Diagnostic]:
    source = read.value("source")
    if not writes:
        return
    if source is None:
        flow.leave("bulk store", "proxy fence: the source is at an address that is known at run time", [read])
        return
    roots = shared_roots(flow, source)
    sure, doubtful, unknown = [], [], []
    for write in writes:
        value = write.values[0]
        same = shared_roots(flow, value)
        if value is None or (bool(roots) != bool(same) and _may_meet(flow, read, write)):
            unknown.append(write)
        elif value.base == source.base and (write.block == read.event.block or flow.values.is_fixed(source)):
            if _may_meet(flow, read, write):
                sure.append(write)
        elif (roots and roots & same) or (not roots and not same):
            doubtful.append(write)
    found = sure or doubtful
    if not found:
        lines = [write.statement.line for write in unknown]
        flow.tally.leave("write", "proxy fence: a bulk store that no fence precedes may read the written bytes", lines)
        return
    text = (
        f"{read.event.statement.opcode} reads shared memory through the async proxy, but {found[-1].statement.where} "
        f"({found[-1].statement.opcode}) wrote it through the generic proxy, and "
        "there is no fence.proxy.async between them"
    )
    fix = "fence.proxy.async.shared::cta after the last write, by the thread that wrote, before the barrier"
    yield flow.broken("proxy_fence", read, text, "membar / fence: fence.proxy", fix=fix, warning=not sure)
