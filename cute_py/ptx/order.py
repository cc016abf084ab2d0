"""Judge a PTX module: each instruction by the table, and what must come before or after it.

The rules that need more than one instruction hold on every path through the blocks of one function:

- transaction bytes that a barrier expects are those of the copies that complete on it, where all are constants (those
  of a tensor copy are in its map, which may be given);
- shared memory written by this thread is fenced (fence.proxy.async) before a bulk store reads it;
- a bulk store is committed to a group and waited for before the kernel ends;
- a barrier that a multicast load of another CTA completes on is initialised for the whole cluster;
- a tensor map that the kernel changes is released, and acquired before it is used.

What other threads, other kernels and the contents of tensor maps decide is not judged; the report lists it.
"""

from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from cute_py.argument_checks import expect_integer, record
from cute_py.diagnostics import Diagnostic
from cute_py.errors import InvalidTypeError, ParseError, UnknownFactError, counted, given, shortened
from cute_py.ptx.check import ParsedInstruction, examine
from cute_py.ptx.program import Function, Statement, parse_program
from cute_py.ptx.values import Event, Key, Value, Values
from cute_py.targets import MAX_CLUSTER, Version, architecture
from cute_py.tma.descriptor.limits import MAX_TRANSACTION_BYTES, STORE_UNIT
from cute_py.tma.descriptor.request import HasRequest, TensorMap, request_of
from cute_py.tma.descriptor.transfer import transaction_bytes

JUDGED: Final = (
    "cp.async.bulk",
    "cp.reduce.async.bulk",
    "mbarrier",
    "fence",
    "tensormap",
    "prefetch.tensormap",
    "prefetch.param.tensormap",
    "prefetch.const.tensormap",
    "barrier.cluster",
    "mapa",
    "getctarank",
    "elect.sync",
    "clusterlaunchcontrol",
    "st.async",
    "red.async",
)
"""Beginnings of the instructions that are judged one by one."""

_WANTED = frozenset({name.partition(".")[0] for name in JUDGED} | {"st", "stmatrix", "call", "atom", "red"})
_HARMLESS: Final = ("vprintf", "__assertfail", "malloc", "free", "__nv_")
_LOADS: Final = ("load", "bulk.load")
_STORES: Final = ("store", "reduce", "bulk.store", "bulk.reduce")
_PEER: Final = ("bulk.peer", "bulk.reduce.peer")
_EXPECTS: Final = ("mbarrier.expect_tx", "mbarrier.arrive.expect_tx", "mbarrier.arrive_drop.expect_tx")
_COMPLETES: Final = ("mbarrier.complete_tx", "st.async", "red.async", "clusterlaunchcontrol.try_cancel", *_PEER)
_MAP_USES: Final = ("load", "store", "reduce", "prefetch", "prefetch.tensormap")
_ISA: Final = "PTX ISA 9.0, "

Place: TypeAlias = tuple[int, int]


@record
class ProgramReport:
    """What a PTX module holds and what is wrong with it.

    found: every broken rule; severity 'warning' where the text leaves a doubt. counts: the instructions that were
    judged, by their row of the table. not_analysed: what the rules could not decide, a line each.
    """

    target: str
    version: Version
    found: tuple[Diagnostic, ...]
    counts: Mapping[str, int] = field(hash=False)
    not_analysed: tuple[str, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that hold on every path."""
        return tuple(one for one in self.found if one.severity == "error")

    def __str__(self) -> str:
        judged = sum(self.counts.values())
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        lines = [f"{self.target}: {counted(judged, 'instruction')} judged" + (f" ({kinds})" if kinds else "")]
        for one in self.found:
            lines += [f"{one.severity:<8} {one.message}  [{one.rule}]"]
            lines += [f"{'':<8} fix: {fix}" for fix in one.fixes]
        if not self.found:
            lines += ["no rule is broken where it could be decided"]
        lines += [f"not analysed: {line}" for line in self.not_analysed]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Known:
    """An event with its row of the table."""

    event: Event
    row: str
    chosen: Mapping[str, str]
    names: Mapping[str, int]

    @property
    def place(self) -> Place:
        return self.event.block, self.event.index

    def value(self, name: str) -> Value | None:
        """What the operand of that name holds."""
        return self.event.values[self.names[name]] if name in self.names else None

    def constant(self, name: str) -> int | None:
        value = self.value(name)
        return value.offset if value is not None and not value.base else None


def _names(examined: ParsedInstruction, statement: Statement) -> dict[str, int]:
    """Operand name -> its place. Optional operands that are left out are the first ones."""
    if examined.form is None:
        return {}
    expected = [one.name for one in examined.form.expected(dict(examined.chosen))]
    count = len(statement.operands)
    return {name: count - 1 - back for back, name in enumerate(reversed(expected)) if back < count}


@dataclass(slots=True)
class _Flow:
    """One function: its judged instructions, what is reached from where, and what is noted as not judged."""

    function: Function
    values: Values
    symbols: Mapping[str, str]
    maps: Mapping[int, TensorMap]
    notes: collections.Counter[str]
    known: list[_Known] = field(default_factory=list)
    calls: bool = False
    _reached: dict[int, frozenset[int]] = field(default_factory=dict)

    def of(self, *rows: str) -> list[_Known]:
        return [one for one in self.known if one.row in rows]

    def reached(self, block: int) -> frozenset[int]:
        """The blocks that a path from the end of a block comes to."""
        if block not in self._reached:
            seen: set[int] = set()
            todo = list(self.function.blocks[block].after)
            while todo:
                number = todo.pop()
                if number not in seen:
                    seen.add(number)
                    todo += self.function.blocks[number].after
            self._reached[block] = frozenset(seen)
        return self._reached[block]

    def comes_to(self, first: Place, second: Place) -> bool:
        """Whether a path leads from one instruction to the other."""
        return (first[0] == second[0] and first[1] < second[1]) or second[0] in self.reached(first[0])

    def broken(
        self, rule: str, one: _Known, text: str, source: str, *, fix: str = "", warning: bool = False
    ) -> Diagnostic:
        """A finding at an instruction."""
        at = one.event.statement
        name = self.function.name
        return Diagnostic(
            rule,
            text=f"line {at.line}, {'kernel' if self.function.entry else 'function'} {shortened(name, 60)}: {text}",
            source=_ISA + source,
            severity="warning" if warning else "error",
            facts={"line": at.line, "function": name, "instruction": at.text},
            fixes=(fix,) if fix else (),
        )


def _bytes_of_load(flow: _Flow, one: _Known) -> int | None:
    """What one load brings: a constant of the instruction, or of the map that it loads through, if that is known."""
    if one.row == "bulk.load":
        return one.constant("size")
    tensor = one.value("tensor")
    names = frozenset() if tensor is None else flow.values.symbols(tensor)
    known = {name: flow.maps[i] for i, name in enumerate(flow.function.parameters) if i in flow.maps}
    return transaction_bytes(known[next(iter(names))]) if len(names) == 1 and names <= known.keys() else None


def _expected_bytes(flow: _Flow) -> Iterator[Diagnostic]:
    """A barrier that waits for more or fewer bytes than the copies bring, and one that can't count them."""
    expects, loads = flow.of(*_EXPECTS), flow.of(*_LOADS)
    others = flow.of(*_COMPLETES)
    for one in expects:
        count = one.constant("bytes")
        if count is None:
            flow.notes["expect_tx with a number of bytes that is known at run time"] += 1
        elif not 0 <= count <= MAX_TRANSACTION_BYTES:
            text = f"expects {count} bytes; a phase of a barrier counts to {MAX_TRANSACTION_BYTES}"
            yield flow.broken(
                "expect_tx_range", one, text, "mbarrier: tx-count", fix="split the copies over two barriers"
            )
    if loads and not expects:
        flow.notes["loads onto barriers that no instruction of the function expects bytes on"] += 1
        return
    alone = not others and not flow.calls
    for barrier in dict.fromkeys(one.value("barrier") for one in expects):
        mine = [one for one in expects if one.value("barrier") == barrier]
        arriving = [one for one in loads if one.value("barrier") == barrier]
        where = {(one.event.block, one.event.statement.predicate) for one in (*mine, *arriving)}
        if barrier is None or not arriving or len(where) != 1:
            continue
        if any(_may_be(one.value("barrier"), barrier) for one in (*expects, *loads) if one not in mine + arriving):
            continue
        said = [one.constant("bytes") for one in mine]
        if None in said or not alone or any("multicast" in one.chosen for one in arriving):
            continue
        total = sum(count for count in said if count is not None)
        brought = [_bytes_of_load(flow, one) for one in arriving]
        if None not in brought:
            real = sum(count for count in brought if count is not None)
            if real != total:
                verb = "never completes its phase" if total > real else "completes its phase too early or underflows"
                bring = "1 load on it brings" if len(arriving) == 1 else f"{len(arriving)} loads on it bring"
                text = f"the barrier expects {total} bytes; {bring} {real}; it {verb}"
                yield flow.broken("expect_tx", mine[0], text, "mbarrier.expect_tx", fix=f"expect {real} bytes")
        elif total % STORE_UNIT:
            text = f"the barrier expects {total} bytes; what the loads on it bring is a multiple of {STORE_UNIT}"
            yield flow.broken("expect_tx", mine[0], text, "mbarrier.expect_tx", fix="expect the bytes of the boxes")


def _may_be(other: Value | None, barrier: Value) -> bool:
    """Whether another operand can be the same barrier: unless both are numbers on one base."""
    if other is None:
        return True
    return other.base != barrier.base or other.offset == barrier.offset


def _shared_roots(flow: _Flow, value: Value | None) -> frozenset[str]:
    """The symbols in shared memory that an address is computed from."""
    names = frozenset() if value is None else flow.values.symbols(value)
    return frozenset(name for name in names if flow.symbols.get(name) == "shared")


_PROXY_FENCES: Final = ("fence.proxy.async", "fence.proxy.async::generic")
_WIDTH: Final = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def _proxy_fences(flow: _Flow) -> Iterator[Diagnostic]:
    """Shared memory that this thread wrote with ordinary stores, and a bulk store reads, without a fence between."""
    reads = {one.place: one for one in flow.of(*_STORES, *_PEER)}
    if not reads:
        return
    writes: dict[Place, Event] = {}
    steps: dict[int, list[tuple[int, str, Place]]] = collections.defaultdict(list)
    for event in flow.values.events:
        opcode, place = event.statement.opcode, (event.block, event.index)
        shared = opcode.startswith(
            ("st.shared", "st.volatile.shared", "st.weak.shared", "stmatrix", "st.relaxed.shared")
        )
        shared |= opcode.startswith("st.") and bool(_shared_roots(flow, event.values[0]))
        if opcode.startswith("st") and shared and not opcode.startswith(("st.async", "st.bulk")):
            if not event.statement.predicate:
                writes[place] = event
                steps[event.block].append((event.index, "write", place))
        elif opcode.startswith("call"):
            steps[event.block].append((event.index, "fence", place))
    for one in flow.known:
        if one.row in _PROXY_FENCES and one.chosen.get("spaces") != "global":
            steps[one.event.block].append((one.event.index, "fence", one.place))
        elif one.place in reads:
            steps[one.event.block].append((one.event.index, "read", one.place))
    for found in steps.values():
        found.sort()
    entering = _on_every_path(flow.function, steps)
    for number, found in steps.items():
        held = set(entering[number])
        for _, what, place in found:
            if what == "read":
                yield from _unfenced(flow, reads[place], [writes[w] for w in sorted(held)])
            _step(held, what, place)


def _step(held: set[Place], what: str, place: Place) -> None:
    if what == "write":
        held.add(place)
    elif what == "fence":
        held.clear()


def _on_every_path(function: Function, steps: Mapping[int, list[tuple[int, str, Place]]]) -> list[frozenset[Place]]:
    """For each block, the writes that no fence follows on any path to it, and that every path to it holds."""
    everything = frozenset(place for found in steps.values() for _, what, place in found if what == "write")
    entering = [everything if block.before else frozenset[Place]() for block in function.blocks]
    if entering:
        entering[0] = frozenset()

    def leaving(number: int, entered: frozenset[Place]) -> frozenset[Place]:
        held = set(entered)
        for _, what, place in steps.get(number, ()):
            _step(held, what, place)
        return frozenset(held)

    return function.settled(entering, leaving, operator.and_)


def _unfenced(flow: _Flow, read: _Known, writes: list[Event]) -> Iterator[Diagnostic]:
    source = read.value("source")
    if not writes or source is None:
        return
    roots, size = _shared_roots(flow, source), read.constant("size")
    sure, doubtful = [], []
    for write in writes:
        value = write.values[0]
        if value is None:
            continue
        same = _shared_roots(flow, value)
        if value.base == source.base and (write.block == read.event.block or flow.values.is_fixed(source)):
            width = _WIDTH.get(write.statement.opcode.rpartition(".")[2].lstrip("bufs"), STORE_UNIT)
            if value.offset + width > source.offset and (size is None or value.offset < source.offset + size):
                sure.append(write)
        elif (roots and roots & same) or (not roots and not same):
            doubtful.append(write)
    found = sure or doubtful
    if not found:
        return
    line = found[-1].statement.line
    text = (
        f"{read.event.statement.opcode} reads shared memory through the async proxy; line {line} "
        f"({found[-1].statement.opcode}) wrote it through the generic one, and no fence.proxy.async is between"
    )
    fix = "fence.proxy.async.shared::cta after the last write, by the thread that wrote, before the barrier"
    yield flow.broken("proxy_fence", read, text, "membar / fence: fence.proxy", fix=fix, warning=not sure)


def _groups(flow: _Flow) -> Iterator[Diagnostic]:
    """Stores that no commit or no wait follows on any path."""
    if not flow.function.entry or flow.calls:
        if flow.of(*_STORES):
            flow.notes["bulk stores whose commit or wait may be in another function"] += 1
        return
    for rule, row, verb, fix in (
        (
            "commit",
            "bulk.commit_group",
            "is never committed to a bulk group",
            "cp.async.bulk.commit_group after the stores",
        ),
        ("wait", "bulk.wait_group", "is never waited for", "cp.async.bulk.wait_group.read 0 before the kernel ends"),
    ):
        ends = flow.of(row)
        for one in flow.of(*_STORES):
            if not any(flow.comes_to(one.place, end.place) for end in ends):
                text = f"{one.event.statement.opcode} {verb}: no path from it to the end of the kernel has a {row[5:]}"
                yield flow.broken(rule, one, text, f"cp.async.bulk.{row[5:]}", fix=fix)


def _cluster_size(function: Function) -> int | None:
    """CTAs of a cluster where the kernel says it (.reqnctapercluster)."""
    parts = function.directives.replace(",", " ").split()
    if ".reqnctapercluster" not in parts:
        return None
    size = 1
    for part in parts[parts.index(".reqnctapercluster") + 1 :]:
        if not part.isascii() or not part.isdigit() or len(part) > 9:
            break
        size *= int(part)
    return size


def _multicast(flow: _Flow) -> Iterator[Diagnostic]:
    """Loads into several CTAs: their barriers are initialised for the whole cluster, and the CTAs are there."""
    loads = [one for one in flow.of(*_LOADS) if "multicast" in one.chosen]
    size = _cluster_size(flow.function)
    inits = flow.of("mbarrier.init")
    waits, arrives = flow.of("barrier.cluster.wait"), flow.of("barrier.cluster.arrive")
    fences = flow.of("fence.mbarrier_init") + [
        one for one in flow.of("fence") if one.chosen.get("scope") in ("cluster", "gpu", "sys")
    ]
    for one in loads:
        mask = one.constant("mask")
        if mask is not None and (mask == 0 or (size is not None and mask >> size)):
            text = f"mask 0x{mask:x}" + (": no CTA" if mask == 0 else f" names CTAs outside of the cluster of {size}")
            fix = f"a mask of 1 to 0x{(1 << (size or MAX_CLUSTER)) - 1:x}"
            yield flow.broken("multicast_mask", one, text, "cp.async.bulk.tensor: ctaMask", fix=fix)
        before = [init for init in inits if flow.comes_to(init.place, one.place)]
        if not before or flow.calls:
            flow.notes["multicast loads whose barrier is initialised elsewhere"] += 1
            continue
        ready = [
            w
            for w in waits
            if flow.comes_to(w.place, one.place) and any(flow.comes_to(i.place, w.place) for i in before)
        ]
        if not ready:
            text = (
                f"{one.event.statement.opcode} completes on barriers of other CTAs; after mbarrier.init (line "
                f"{before[0].event.statement.line}) no path to it waits for the cluster (barrier.cluster)"
            )
            fix = "fence.mbarrier_init.release.cluster, then barrier.cluster.arrive and .wait, after mbarrier.init"
            yield flow.broken("multicast_scope", one, text, "cp.async.bulk.tensor: .multicast::cluster", fix=fix)
            continue
        met = [
            a
            for a in arrives
            if any(flow.comes_to(i.place, a.place) for i in before)
            and any(flow.comes_to(a.place, w.place) for w in ready)
        ]
        relaxed = bool(met) and all(a.chosen.get("sem") == "relaxed" for a in met)
        fenced = any(
            flow.comes_to(f.place, a.place) and any(flow.comes_to(i.place, f.place) for i in before)
            for f in fences
            for a in met
        )
        if relaxed and not fenced:
            text = (
                f"mbarrier.init (line {before[0].event.statement.line}) is not released to the cluster: "
                "barrier.cluster.arrive.relaxed orders nothing, and no fence of cluster scope is between"
            )
            fix = "fence.mbarrier_init.release.cluster after mbarrier.init"
            yield flow.broken("multicast_scope", one, text, "fence.mbarrier_init", fix=fix)


def _tensormaps(flow: _Flow) -> Iterator[Diagnostic]:
    """Maps that the kernel changes: released after the change, acquired before the use."""
    copies, replaced = flow.of("tensormap.cp_fenceproxy"), flow.of("tensormap.replace")
    releases = [*copies, *flow.of("fence.proxy.tensormap.release")]
    acquires = flow.of("fence.proxy.tensormap.acquire")
    if not copies and not replaced:
        return
    for one in replaced:
        if not flow.calls and not any(flow.comes_to(one.place, r.place) for r in releases):
            text = (
                "the map that tensormap.replace changes is never released: no path from it has a fence.proxy.tensormap"
            )
            fix = "tensormap.cp_fenceproxy (from shared memory), or fence.proxy.tensormap::generic.release"
            yield flow.broken("tensormap_release", one, text, "membar / fence: fence.proxy.tensormap", fix=fix)
            break
    changed = [one.value("destination") for one in copies]
    changed += [v for one in replaced if not _shared_roots(flow, v := one.value("map"))]
    roots = [flow.values.roots(value) for value in changed if value is not None]
    for one in flow.of(*_MAP_USES):
        address = one.value("map" if one.row == "prefetch.tensormap" else "tensor")
        if address is None:
            flow.notes["maps at addresses that are known at run time"] += 1
            continue
        mine = flow.values.roots(address)
        if not any(mine & other for other in roots) or _is_parameter(mine, flow.symbols):
            continue
        before = [a for a in acquires if flow.comes_to(a.place, one.place)]
        held = [a.value("map") for a in before]
        if address in held or flow.calls:
            continue
        others = {value for value in changed if value is not None and value != address}
        accounted = all(v is not None and (v.base == address.base or v in others) for v in held)
        if before and not (accounted and address in changed):
            flow.notes["uses of changed maps whose acquire fence names another register"] += 1
            continue
        text = (
            f"{one.event.statement.opcode} uses a map that the kernel changes (line "
            f"{(copies or replaced)[0].event.statement.line}); no path to it acquires that map"
        )
        fix = "fence.proxy.tensormap::generic.acquire.gpu [map], 128 before the use, by the thread that uses it"
        yield flow.broken("tensormap_acquire", one, text, "membar / fence: fence.proxy.tensormap", fix=fix)


def _is_parameter(roots: frozenset[Key], symbols: Mapping[str, str]) -> bool:
    """Whether a map is a parameter or a constant itself, which no kernel changes."""
    return all(key[0] == "symbol" and symbols.get(str(key[1])) in ("param", "const") for key in roots)


@lru_cache(maxsize=4096)
def _examined(text: str, symbols: tuple[tuple[str, str], ...]) -> ParsedInstruction | None:
    try:
        return examine(text, dict(symbols))
    except (UnknownFactError, ParseError):
        return None


def _known_of(event: Event, symbols: Mapping[str, str]) -> tuple[_Known, ParsedInstruction] | None:
    """An event matched with its row; None: no row covers it."""
    statement = event.statement
    named = [part for text in statement.operands for part in (text.strip("[]{} ").partition("+")[0].strip(),)]
    used = tuple(sorted((name, symbols[name]) for name in named if name in symbols))
    examined = _examined(statement.text, used)
    if examined is None or examined.form is None:
        return None
    return _Known(event, examined.form.name, examined.chosen, _names(examined, statement)), examined


def check_program(
    text: str, arch: str | None = None, *, maps: Mapping[int, TensorMap | HasRequest] | None = None
) -> ProgramReport:
    """Judge the TMA, bulk, mbarrier, fence, tensormap and cluster instructions of a PTX module.

    Args:
        text: the module. arch: the architecture to judge for; None: the one of its `.target`.
        maps: number of a kernel's parameter -> the tensor map (or atom) that is passed there, for the bytes of loads.
    Raises:
        ParseError: not a PTX module.
        InvalidValueError: no such architecture. InvalidTypeError: no numbers, or no maps.

    >>> report = check_program('''.version 8.0
    ... .target sm_90a
    ... .visible .entry k(.param .u64 p) {
    ... .shared .align 16 .b8 smem[32]; .reg .b64 %rd<2>;
    ... ld.param.u64 %rd1, [p];
    ... st.shared.b32 [smem], 1;
    ... cp.async.bulk.global.shared::cta.bulk_group [%rd1], [smem], 32;
    ... cp.async.bulk.commit_group;
    ... ret; }''')
    >>> [one.rule for one in report.errors]
    ['proxy_fence', 'wait']
    """
    program = parse_program(text)
    if not isinstance(maps, Mapping | None):
        raise InvalidTypeError(f"maps are given by the number of their parameter, got {given(maps)}")
    made = {expect_integer(i, "the number of a parameter", 0): request_of(one) for i, one in (maps or {}).items()}
    target = architecture(program.target if arch is None else arch).name
    found: list[Diagnostic] = []
    counts: collections.Counter[str] = collections.Counter()
    notes: collections.Counter[str] = collections.Counter()
    for function in program.functions:
        flow = _Flow(function, Values(function, _WANTED), program.symbols, made, notes)
        found += _check_function(flow, target, program.version, counts)
    listed = tuple(f"{count} x {note}" for note, count in sorted(notes.items()))
    always = "what other threads and CTAs do between two instructions of a thread"
    return ProgramReport(target, program.version, tuple(found), dict(counts), (*listed, always))


_RULES: Final = (_expected_bytes, _proxy_fences, _groups, _multicast, _tensormaps)


def _check_function(flow: _Flow, target: str, version: Version, counts: collections.Counter[str]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for event in flow.values.events:
        statement = event.statement
        if statement.opcode.startswith("call"):
            flow.calls |= not any(part.strip("() ").startswith(_HARMLESS) for part in statement.operands)
        if not statement.opcode.startswith(JUDGED):
            continue
        matched = _known_of(event, flow.symbols)
        if matched is None:
            flow.notes[f"{statement.opcode}: no row of the instruction table covers it"] += 1
            continue
        one, examined = matched
        flow.known.append(one)
        counts[one.row] += 1
        for broken in examined.check_target(target, version):
            text = f"{statement.opcode}: {broken.message}"
            found.append(flow.broken(broken.rule, one, text, str(examined.form and examined.form.section)))
        if one.row in ("load", "store", "reduce", "prefetch") and not flow.maps:
            flow.notes["tensor copies: their bytes and their box are in the map, which is made at run time"] += 1
    if flow.calls:
        flow.notes["functions that call others: what needs the whole function is not judged in them"] += 1
    found += itertools.chain.from_iterable(rule(flow) for rule in _RULES)
    return sorted(found, key=lambda one: int(str(one.facts["line"])))
