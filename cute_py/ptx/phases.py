"""Compare the bytes that barriers expect with the bytes that copies deliver, on every path through a function.

A phase completes when the expected number of bytes has arrived. Therefore, over all threads, phases and barriers, the
bytes that instructions expect must equal the bytes that copies deliver. The instructions of one function are divided
into sets: two instructions are in the same set if they may refer to the same barrier. Each block of a set has a
balance: the bytes that it expects minus the bytes that it delivers. An imbalance is a finding in these cases, because
it is then an error for any order of the blocks and any number of threads:

- all blocks of the set that are not balanced have balances of the same sign;
- all paths through the function that reach the set end with balances of the same sign;
- the barriers count one arrival, so that each phase has one expectation, and no number of loads delivers its bytes.

A set is correct if each barrier is balanced in each block, or if the set has one barrier, which is balanced before
every expectation and at the end of the function. All other sets are listed as not judged.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.ptx.flow import (
    EDITS,
    EXPECTS,
    ISA,
    LOADS,
    PEER,
    Flow,
    Known,
    also_at,
    barrier_count,
    line_facts,
    places_text,
    shared_roots,
)
from cute_py.ptx.values import Constant, FirstPass, Value, statements_behind
from cute_py.tma.descriptor.limits import MAX_TRANSACTION_BYTES, STORE_UNIT

_OTHERS: Final = ("mbarrier.complete_tx", "st.async", "red.async", "clusterlaunchcontrol.try_cancel", *PEER)
"""Instructions that complete bytes on a barrier, but whose bytes are not counted here."""
_SOURCE: Final = "mbarrier.expect_tx"
_MOST_UPDATES: Final = 12
"""The bounds of a block become infinite after this many changes at its beginning."""

MAX_ARRIVALS: Final = MAX_TRANSACTION_BYTES
"""Maximum number of arrivals of a phase. A barrier counts arrivals and transaction bytes up to the same limit."""
COUNT_RULE: Final = "arrival_count"
COUNT_SOURCE: Final = "mbarrier.init: count"


def wrong_count(count: int) -> str:
    """State that a barrier can't have this number of arrivals; an empty string if it can.

    >>> wrong_count(0), wrong_count(1), wrong_count(1 << 20)
    ('count = 0; must be 1..1048575', '', 'count = 1048576; must be 1..1048575')
    """
    return "" if 1 <= count <= MAX_ARRIVALS else f"count = {count}; must be 1..{MAX_ARRIVALS}"


def count_broken(count: int) -> Diagnostic | None:
    """Judge the number of arrivals of one mbarrier.init; None if a barrier can have it.

    >>> count_broken(0).source
    'PTX ISA 9.0, mbarrier.init: count'
    """
    text = wrong_count(count)
    return Diagnostic(COUNT_RULE, "count", count, text=text, source=ISA + COUNT_SOURCE) if text else None


def check_arrival_counts(flow: Flow) -> Iterator[Diagnostic]:
    """Find mbarrier.init instructions whose constant count is outside the limits of a barrier."""
    for one in flow.of("mbarrier.init"):
        count = one.constant("count")
        if text := wrong_count(count) if count is not None else "":
            fix = "initialise the barrier with the number of arrivals of one phase"
            yield flow.broken(COUNT_RULE, one, text, COUNT_SOURCE, fix=fix)


def check_expected_bytes(flow: Flow) -> Iterator[Diagnostic]:
    """Find barriers that expect more or fewer bytes than copies deliver, or more bytes than a barrier can count."""
    members = flow.of(*EXPECTS, *LOADS, *_OTHERS)
    for one in members:
        count = one.constant("bytes")
        if one.row in EXPECTS and count is not None and not 0 <= count <= MAX_TRANSACTION_BYTES:
            text = f"the barrier expects {count} bytes; a phase can count at most {MAX_TRANSACTION_BYTES}"
            yield flow.broken(
                "expect_tx_range", one, text, "mbarrier: tx-count", fix="split the copies between two barriers"
            )
    for barriers in _sets(flow, members):
        yield from _judge(flow, barriers)


def _sets(flow: Flow, members: Sequence[Known]) -> list[list[Known]]:
    """Divide the instructions into sets: two instructions that may refer to the same barrier are in the same set.

    Addresses refer to different barriers if they are the same base with different offsets, or if they come from
    different variables in shared memory.
    """
    roots = {value: shared_roots(flow, value) for value in dict.fromkeys(one.value("barrier") for one in members)}
    if not all(roots.values()):  # an address that may be any barrier
        return [list(members)] if members else []
    bases: dict[str, set[int]] = collections.defaultdict(set)
    for value, names in roots.items():
        for name in names:
            bases[name].add(-1 if value is None else value.base)
    parent: dict[object, object] = {}

    def top(one: object) -> object:
        while parent.setdefault(one, one) != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for value, names in roots.items():
        for name in names:
            if len(bases[name]) > 1:
                parent[top(value)] = top(name)
    found: dict[object, list[Known]] = collections.defaultdict(list)
    for one in members:
        found[top(one.value("barrier"))].append(one)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Sum:
    """The expectations and the loads of one barrier, and the total bytes of each. All of them occur in one pass through
    a block, under one predicate."""

    expects: tuple[Known, ...]
    loads: tuple[Known, ...]
    total: int
    brought: int

    @property
    def balance(self) -> int:
        return self.total - self.brought


def _judge(flow: Flow, members: list[Known]) -> Iterator[Diagnostic]:
    """Judge one set, or record it as not judged, with the reason."""
    barriers = barrier_count(members)
    expects = [one for one in members if one.row in EXPECTS]
    loads = [one for one in members if one.row in LOADS]
    reason = _unknown(flow, members, expects, loads)
    if reason is not None:
        flow.leave("barrier", reason[0], reason[1], barriers)
        return
    brought = {one.place: flow.bytes_of(one) for one in loads}
    whys = {why for size, why in brought.values() if size is None}
    if whys:
        yield from _partial_bytes(flow, members, expects)
        for why in sorted(whys):
            left = [one for one in loads if brought[one.place][1] == why]
            flow.leave("barrier", f"copies at {{lines}} complete on it; {why}", left, barriers)
        return
    sums = _sums(flow, members, {place: size or 0 for place, (size, _) in brought.items()})
    found = [*_of_one_sign(flow, sums)] or [*_on_paths(flow, sums)] or [*_unreachable(flow, sums)]
    yield from found
    if found or all(not one.balance for one in sums.values()) or (barriers == 1 and _settles(flow, sums)):
        flow.tally.judge("barrier", "bytes", barriers)
        return
    blocks = {(one.event.block, one.event.statement.predicate) for one in members}
    if len(blocks) > 1:
        why = (
            "used in blocks at {lines}; its bytes balance only if branches that were not decided here are taken "
            "together"
        )
    else:
        why = "used at {lines}, with addresses known only at run time"
    flow.leave("barrier", why, members, barriers)


def _unknown(
    flow: Flow, members: list[Known], expects: list[Known], loads: list[Known]
) -> tuple[str, Iterable[Known]] | None:
    """Return the reason why the bytes of a set can't be compared, and the instructions that cause it; None if they
    can."""
    others = [one for one in members if one.row in _OTHERS]
    if others:
        return "instructions at {lines} complete bytes that this check does not count", others
    if not loads:
        return "bytes are expected at {lines}, but no copy in the function is known to complete on it", expects
    if not expects:
        return "copies at {lines} complete on it, but no instruction in the function expects their bytes", loads
    if not flow.function.entry:
        return "used at {lines} in a function whose callers may expect or deliver bytes", members
    if flow.calls:
        return "used at {lines} in a kernel that calls functions, which may expect or deliver bytes", members
    varied = [one for one in expects if one.constant("bytes") is None]
    if varied:
        return "the number of bytes expected at {lines} is known only at run time", varied
    shared = [one for one in loads if "multicast" in one.chosen]
    if shared:
        return "copies at {lines} deliver bytes to barriers of several CTAs (multicast)", shared
    return None


def _partial_bytes(flow: Flow, members: list[Known], expects: list[Known]) -> Iterator[Diagnostic]:
    """Check a barrier whose loads have unknown sizes: each load delivers a multiple of `STORE_UNIT` bytes."""
    alone = len({(one.event.block, one.event.statement.predicate, one.value("barrier")) for one in members}) == 1
    total = sum(one.constant("bytes") or 0 for one in expects)
    if alone and total % STORE_UNIT:
        text = f"the barrier expects {total} bytes, but its loads deliver a multiple of {STORE_UNIT} bytes"
        yield flow.broken("expect_tx", expects[0], text, _SOURCE, fix="expect the bytes of the boxes")


_Key = tuple[int, str, int, Value | None]


def _sums(flow: Flow, members: list[Known], brought: dict[tuple[int, int], int]) -> dict[_Key, _Sum]:
    """Return the sums by (block, predicate, number of earlier writes to the predicate in the block, barrier)."""
    held: dict[_Key, list[Known]] = collections.defaultdict(list)
    for one in members:
        predicate = one.event.statement.predicate
        written = flow.writes_before(one.place, predicate) if predicate else 0
        held[one.event.block, predicate, written, one.value("barrier")].append(one)
    found = {}
    for key, ones in held.items():
        expects = tuple([one for one in ones if one.row in EXPECTS])
        loads = tuple([one for one in ones if one.row in LOADS])
        total = sum(one.constant("bytes") or 0 for one in expects)
        found[key] = _Sum(expects, loads, total, sum(brought[one.place] for one in loads))
    return found


def _of_one_sign(flow: Flow, sums: dict[_Key, _Sum]) -> Iterator[Diagnostic]:
    """Report unbalanced blocks if all balances have one sign, so that no block can compensate for another."""
    balances: collections.Counter[tuple[int, str, int]] = collections.Counter()
    for key, one in sums.items():
        balances[key[:3]] += one.balance
    signs = {balance > 0 for balance in balances.values() if balance}
    if len(signs) != 1:
        return
    blocks: dict[tuple[int, str, int], list[_Sum]] = collections.defaultdict(list)
    for key, one in sums.items():
        if balances[key[:3]] and one.balance:
            blocks[key[:3]].append(one)
    wrong: dict[tuple[int, int, int], list[_Sum]] = collections.defaultdict(list)
    for ones in blocks.values():
        apart = any(not one.expects or not one.loads for one in ones)  # two addresses may name one barrier
        for one in [_together(ones)] if apart else ones:
            wrong[one.total, one.brought, len(one.loads)].append(one)
    whole = {key: ones for key, ones in wrong.items() if ones[0].expects and ones[0].loads}
    if not whole and any(one.expects for one in sums.values()) and any(one.loads for one in sums.values()):
        yield _imbalance(flow, sums, signs == {True}, "at least", min(abs(n) for n in balances.values() if n))
        return
    for (total, real, _), ones in whole.items():
        first, places = ones[0], [one.expects[0] for one in ones]
        text = bytes_text("the barrier", total, len(first.loads), real) + also_at(places)
        edits = {one.expects[0].line: _bytes_edit(one, real) for one in ones if len(one.expects) == 1}
        facts = {**line_facts(places), **({EDITS: edits} if len(edits) == len(ones) else {})}
        yield flow.broken("expect_tx", places[0], text, _SOURCE, fix=f"expect {real} bytes", facts=facts)


def _bytes_edit(one: _Sum, real: int) -> tuple[str, str]:
    """Return the operand with the bytes of a sum's only expectation, and its correct value."""
    expects = one.expects[0]
    return expects.event.statement.operands[expects.names["bytes"]], str(real)


def _imbalance(flow: Flow, sums: dict[_Key, _Sum], more: bool, bound: str, number: float) -> Diagnostic:
    """Make a finding about a whole set: its barrier expects more bytes than its loads deliver (`more`), or fewer."""
    loads = [one for held in sums.values() for one in held.loads]
    expects = sorted((one for held in sums.values() for one in held.expects), key=lambda one: one.line)
    text = (
        f"on every path the loads at {places_text(loads)} deliver {bound} {number:.0f} "
        f"bytes {'fewer' if more else 'more'} than the barrier expects; {consequence(1 if more else -1)}"
    )
    balance = int(number) if more else -int(number)
    real = (expects[0].constant("bytes") or 0) - balance if not bound and len(expects) == 1 else 0
    fix = f"expect {real} bytes" if real > 0 else ""
    return flow.broken("expect_tx", expects[0], text, _SOURCE, fix=fix, facts=line_facts(expects))


def _together(ones: list[_Sum]) -> _Sum:
    """Return the total of several sums."""
    expects = tuple([known for one in ones for known in one.expects])
    loads = tuple([known for one in ones for known in one.loads])
    return _Sum(expects, loads, sum(one.total for one in ones), sum(one.brought for one in ones))


def consequence(balance: int) -> str:
    """Describe the consequence for a barrier that expects `balance` more bytes than its loads deliver (fewer if
    negative)."""
    return "it never completes its phase" if balance > 0 else "its phase may complete too early, or never"


def bytes_text(barrier: str, expected: int, loads: int, delivered: int, phase: int | None = None) -> str:
    """Return a sentence that compares the bytes that a barrier expects with the bytes that its loads deliver.

    Args:
        barrier: the name of the barrier. expected, delivered: numbers of bytes. loads: the number of loads. phase: the
            phase of the barrier, if known.

    >>> bytes_text("the barrier", 1024, 1, 2048)
    'the barrier expects 1024 bytes, but its 1 load delivers 2048; its phase may complete too early, or never'
    >>> bytes_text("full", 4096, 2, 1024, phase=3)
    'full expects 4096 bytes in phase 3, but its 2 loads deliver 1024; it never completes its phase'
    """
    when = "" if phase is None else f" in phase {phase}"
    verb = "delivers" if loads == 1 else "deliver"
    bring = f"its {counted(loads, 'load')} {verb} {delivered}"
    return f"{barrier} expects {counted(expected, 'byte')}{when}, but {bring}; {consequence(expected - delivered)}"


class _Bounds(NamedTuple):
    """The balances of the paths to a position: `plain` states whether a path contains no instruction of the set, and
    `low` and `high` are the smallest and the largest balance of all other paths."""

    plain: bool = False
    low: float = math.inf
    high: float = -math.inf
    updates: int = 0

    @property
    def met(self) -> bool:
        return self.low <= self.high

    def step(self, balance: int, optional: bool) -> _Bounds:
        """Return the bounds after instructions of the set with this balance; `optional` states whether a predicate may
        skip them."""
        lows = [self.low + balance, *((balance,) if self.plain else ()), *((self.low,) if optional else ())]
        highs = [self.high + balance, *((balance,) if self.plain else ()), *((self.high,) if optional else ())]
        return _Bounds(self.plain and optional, min(lows), max(highs), self.updates)

    def joined(self, other: _Bounds) -> _Bounds:
        """Return bounds for both paths; bounds that keep changing become infinite."""
        low, high, plain = min(self.low, other.low), max(self.high, other.high), self.plain or other.plain
        if (plain, low, high) == self[:3]:
            return self
        if self.updates >= _MOST_UPDATES:
            low, high = (-math.inf if low < self.low else low), (math.inf if high > self.high else high)
        return _Bounds(plain, low, high, self.updates + 1)


def _bounds(flow: Flow, sums: dict[_Key, _Sum]) -> tuple[list[_Bounds], _Bounds]:
    """Return the bounds at the beginning of each block, and at the end of the function."""
    balances: collections.Counter[tuple[int, str, int]] = collections.Counter()
    for key, one in sums.items():
        balances[key[:3]] += one.balance
    steps: dict[int, list[tuple[int, bool]]] = collections.defaultdict(list)
    for (block, predicate, _), balance in balances.items():
        steps[block].append((balance, bool(predicate)))

    def leaving(number: int, entered: _Bounds) -> _Bounds:
        if entered.plain or entered.met:
            for balance, optional in steps.get(number, ()):
                entered = entered.step(balance, optional)
        return entered

    entering = [_Bounds(plain=not i) for i in range(len(flow.function.blocks))]
    entering = flow.function.settled(entering, leaving, _Bounds.joined)
    end = _Bounds()
    for number, entered in enumerate(entering):
        if flow.ends(number):
            left = leaving(number, entered)
            end = end.joined(left._replace(updates=0))._replace(updates=0)
    return entering, end


def _on_paths(flow: Flow, sums: dict[_Key, _Sum]) -> Iterator[Diagnostic]:
    """Find a set whose balance has the same sign at the end of every path through the function."""
    _, end = _bounds(flow, sums)
    if not end.met or end.low <= 0 <= end.high:
        return
    least, most = sorted((abs(end.low), abs(end.high)))
    yield _imbalance(flow, sums, end.low > 0, "" if least == most else "at least", least)


def _settles(flow: Flow, sums: dict[_Key, _Sum]) -> bool:
    """Whether one barrier at a fixed address is balanced on every path, at the end and before each expectation."""
    roots = [key for _, _, _, value in sums if value is not None for key in flow.values.roots(value)]
    if any(key[0] != "symbol" for key in roots):
        return False
    entering, end = _bounds(flow, sums)
    before = [entering[key[0]] for key, one in sums.items() if one.expects]
    return all(not one.met or one.low == one.high == 0 for one in (*before, end))


def _unreachable(flow: Flow, sums: dict[_Key, _Sum]) -> Iterator[Diagnostic]:
    """Find expectations, of barriers with one arrival, whose number of bytes is not a sum of sizes of loads."""
    expects = [one for held in sums.values() for one in held.expects]
    values = {key[3] for key in sums}
    inits = _may_initialise(flow, values)
    if not inits or any(one.constant("count") != 1 for one in inits) or flow.of("mbarrier.expect_tx"):
        return
    sizes = {flow.bytes_of(one)[0] or 0 for held in sums.values() for one in held.loads}
    for one in expects:
        total = one.constant("bytes") or 0
        if total and not _is_sum(total, sizes):
            bring = " or ".join(map(str, sorted(sizes)))
            text = (
                f"the barrier expects {total} bytes with one arrival per phase; each load that may complete on "
                f"it delivers {bring}, and no number of these loads gives {total}"
            )
            yield flow.broken("expect_tx", one, text, _SOURCE, fix="expect the bytes of the loads of one phase")


def _may_initialise(flow: Flow, values: set[Value | None]) -> list[Known]:
    """Return the mbarrier.init instructions whose barrier may be one of these."""
    names: set[str] = set()
    for value in values:
        roots = shared_roots(flow, value)
        if not roots:
            return flow.of("mbarrier.init")
        names |= roots
    found = [(one, shared_roots(flow, one.value("barrier"))) for one in flow.of("mbarrier.init")]
    return [one for one, roots in found if not roots or roots & names]


def _is_sum(total: int, sizes: set[int]) -> bool:
    """Whether a total of at most `MAX_TRANSACTION_BYTES` is a sum of these sizes; each size may be used repeatedly."""
    unit = math.gcd(*sizes)
    if unit == 0 or total % unit or total > MAX_TRANSACTION_BYTES:
        return False
    goal = total // unit
    reached, parts = 1, [size // unit for size in sizes if size]
    mask = (1 << goal + 1) - 1
    for part in parts:
        step = part
        while step <= goal:
            reached |= reached << step & mask
            step *= 2
    return bool(reached >> goal & 1)


_PARITY_WAITS: Final = ("mbarrier.test_wait.parity", "mbarrier.try_wait.parity")
_NAMED: Final = frozenset({"barrier", "parity"})
_MOST_WAITS: Final = 64
"""Maximum number of waits whose first execution is followed."""


def check_first_waits(flow: Flow) -> Iterator[Diagnostic]:
    """Find first waits for parity 1 on a barrier that expects the bytes of its first phase. Such a wait returns
    immediately.

    A wait is judged if one expectation and no other wait on its barrier come before it, and if the address and the
    parity are constants when the wait first runs. Other functions may complete phases of a barrier before it.
    """
    waits, expects = flow.of(*_PARITY_WAITS), flow.of(*EXPECTS)
    if not waits or not expects or flow.calls or not flow.function.entry:
        return
    operands = [
        one.event.statement.operands[one.names[name]]
        for one in (*waits, *expects)
        for name in _NAMED & one.names.keys()
    ]
    steps = statements_behind(flow.function, operands)
    found: list[tuple[Known, Known]] = []
    for wait in waits[:_MOST_WAITS]:
        first = FirstPass(flow.function, flow.values.generic, steps, wait.place)
        parity = first.operand(wait.place, wait.event.statement.operands[wait.names["parity"]]) if wait.names else None
        barrier = _address(first, wait)
        if parity != ("", 1) or barrier is None:
            continue
        before = [one for one in expects if first.precedes(one.place) and _address(first, one) in (None, barrier)]
        others = [one for one in waits if one is not wait and first.precedes(one.place)]
        if len(before) != 1 or first.repeats(before[0].place) or _address(first, before[0]) is None:
            continue
        if any(_address(first, one) in (None, barrier) for one in others):
            continue
        found.append((wait, before[0]))
    if found:
        at = [wait for wait, _ in found]
        text = (
            "the first wait on a barrier waits for parity 1, which is the phase before the first one, so it "
            f"returns immediately; the bytes expected at {places_text(one for _, one in found)} may not have "
            f"landed yet{also_at(at)}"
        )
        facts = line_facts(at)
        yield flow.broken(
            "parity", at[0], text, "mbarrier.try_wait: phaseParity", fix="wait for parity 0 first", facts=facts
        )


def _address(first: FirstPass, one: Known) -> Constant | None:
    if "barrier" not in one.names:
        return None
    return first.operand(one.place, one.event.statement.operands[one.names["barrier"]])
