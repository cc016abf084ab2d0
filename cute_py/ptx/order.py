"""Judge a PTX module: each instruction by the table, and the order of instructions on every path.

The rules about several instructions apply to every path through the blocks of one function:

- the transaction bytes that a barrier expects equal the bytes of the copies that complete on it (`cute_py.ptx.phases`),
  if all of these numbers are constants (the bytes of a tensor copy follow from its map, which you may pass);
- barriers and the shared memory of bulk copies are aligned, if the text determines their alignment;
- a fence (fence.proxy.async) separates a thread's writes to shared memory from a bulk store that reads it;
- a bulk copy stays inside its variable in shared memory, if the size and the address are constants;
- a bulk store is committed to a group, and a later wait covers this group before the kernel ends;
- a kernel with loads that complete on a barrier has an instruction that waits on a barrier;
- a barrier where a multicast load of another CTA completes is initialised for the whole cluster;
- a tensor map that the kernel changes is released, and is acquired before its use;
- a tcgen05.wait::ld precedes the uses of the registers of a tcgen05.ld; the scope lists the other uses;
- all threads of a CTA reach a barrier without a count, and all threads of a warp an aligned barrier, if the conditions
  around it are known for each thread;
- the threads that reach a barrier of a CTA with a count are as many as it counts, if the number of the barrier and the
  count are known for each thread.

Properties that depend on other threads, other kernels or the contents of tensor maps are not judged. The scope of the
report counts judged properties, and lists properties that were not judged, with the reason and the lines.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.diagnostics import Diagnostic, Scope
from cute_py.errors import InvalidTypeError, ParseError, UnknownFactError, counted, given
from cute_py.notation.source_lines import line_text
from cute_py.ptx.check import ParsedInstruction, examine
from cute_py.ptx.flow import (
    EDITS,
    LOADS,
    Flow,
    Known,
    Tally,
    barrier_count,
    dimensions,
    operand_names,
    shared_roots,
)
from cute_py.ptx.inline_asm import as_written, has_unknown_number, read_template
from cute_py.ptx.module import assembles
from cute_py.ptx.phases import check_arrival_counts, check_expected_bytes, check_first_waits
from cute_py.ptx.program import Function, Statement, parse_program
from cute_py.ptx.rules.barrier_counts import check_barrier_counts
from cute_py.ptx.rules.cta_barriers import check_cta_barriers, cta_barriers, is_cta_barrier
from cute_py.ptx.rules.groups import check_groups, check_load_waits
from cute_py.ptx.rules.proxy_fences import PROXY_FENCES, check_proxy_fences
from cute_py.ptx.rules.reach import Reach
from cute_py.ptx.rules.shared_copies import check_alignments, check_spans
from cute_py.ptx.rules.tensor_loads import TENSOR_LOAD, TENSOR_LOAD_USE, check_tensor_loads
from cute_py.ptx.values import Event, Key, Values
from cute_py.targets import MAX_CLUSTER, Version, architecture
from cute_py.tma.descriptor.request import HasRequest, TensorMap, request_of

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
"""Prefixes of the instructions that are judged one by one."""

_WANTED = frozenset(
    {name.partition(".")[0] for name in JUDGED} | {"st", "stmatrix", "call", "atom", "red", "bar", "bra", "brx"}
)
_HARMLESS: Final = ("vprintf", "__assertfail", "malloc", "free", "__nv_")
_MAP_USES: Final = ("load", "store", "reduce", "prefetch", "prefetch.tensormap")


@record
class ProgramReport:
    """The result of `check_program`: the judged instructions of a PTX module, and the rules that it breaks.

    found: every broken rule; its severity is 'warning' if the text does not prove the error. counts: the number of
    judged instructions for each row of the table. scope: what the rules judged, and what they did not judge, with the
    reason. sources: for each line of the text, the line of the source, such as 'ring.cu:21', if a `.loc` gives it.

    >>> from cute_py.ptx import check_program
    >>> report = check_program(".version 8.0\\n.target sm_90a\\n.address_size 64\\n.visible .entry nothing() { ret; }")
    >>> report.target, report.found
    ('sm_90a', ())
    """

    target: str
    version: Version
    found: tuple[Diagnostic, ...]
    counts: Mapping[str, int] = field(hash=False)
    scope: Scope = field(default_factory=Scope, repr=False, compare=False)
    sources: Mapping[int, str] = field(default_factory=dict, repr=False, compare=False, hash=False)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that the text proves, without warnings."""
        return tuple(one for one in self.found if one.severity == "error")

    @property
    def summary(self) -> str:
        """A text with the counts and the findings, without the scope."""
        judged = sum(self.counts.values())
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        lines = [
            f"{self.target or 'template'}: {counted(judged, 'instruction')} of the rules"
            + (f" ({kinds})" if kinds else "")
        ]
        for one in self.found:
            lines += [f"{one.severity:<8} {one.message}  [{one.rule}]"]
            lines += [f"{'':<8} fix: {fix}" for fix in one.fixes]
            change: Any = one.facts.get("change", {})
            places = {number: line_text(number, self.sources.get(number, "")) for number in change}
            lines += [f"{'':<8} {places[number]}: {line}" for number, line in change.items()]
        if not self.found:
            sound = (
                "no rule is broken"
                if judged or len(self.scope.judged) > 1
                else "nothing to judge: the rules apply to none of the instructions"
            )
            lines += [sound if self.scope.complete else "no broken rule found in what was judged"]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.summary}\n{self.scope}"


def _cluster_size(function: Function) -> int | None:
    """Return the number of CTAs in a cluster, if the kernel declares it (.reqnctapercluster)."""
    sizes = dimensions(function, ".reqnctapercluster")
    return None if sizes is None else math.prod(sizes)


def _multicast(flow: Flow) -> Iterator[Diagnostic]:
    """Check multicast loads: their barriers must be initialised for the whole cluster, and the CTAs of their masks must
    exist."""
    loads = [one for one in flow.of(*LOADS) if "multicast" in one.chosen]
    size = _cluster_size(flow.function)
    inits = flow.of("mbarrier.init")
    waits, arrives = flow.of("barrier.cluster.wait"), flow.of("barrier.cluster.arrive")
    fences = _wide_fences(flow)
    for one in loads:
        mask = one.constant("mask")
        if mask is None:
            flow.leave("multicast load", "mask: known at run time", [one])
        elif mask and size is None:
            flow.leave("multicast load", "mask: the kernel does not declare the size of its cluster", [one])
        if mask is not None and (mask == 0 or (size is not None and mask >> size)):
            text = f"mask 0x{mask:x}" + (": no CTA" if mask == 0 else f" names CTAs outside of the cluster of {size}")
            fix = f"a mask of 1 to 0x{(1 << (size or MAX_CLUSTER)) - 1:x}"
            yield flow.broken("multicast_mask", one, text, "cp.async.bulk.tensor: ctaMask", fix=fix)
        before = [init for init in inits if flow.comes_to(init.place, one.place)]
        if not before or flow.calls:
            flow.leave("multicast load", "scope: the barrier may be initialised in another function", [one])
            continue
        flow.tally.judge("multicast load", "scope of the barrier")
        ready = [
            w
            for w in waits
            if flow.comes_to(w.place, one.place) and any(flow.comes_to(i.place, w.place) for i in before)
        ]
        if not ready:
            text = (
                f"{one.event.statement.opcode} completes on barriers of other CTAs, but after mbarrier.init ("
                f"{before[0].event.statement.where}) no path to it waits for the cluster (barrier.cluster)"
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
                f"mbarrier.init ({before[0].event.statement.where}) is not released to the cluster: "
                "barrier.cluster.arrive.relaxed orders nothing, and no fence of cluster scope is between them"
            )
            fix = "fence.mbarrier_init.release.cluster after mbarrier.init"
            yield flow.broken("multicast_scope", one, text, "fence.mbarrier_init", fix=fix)


def _tensormaps(flow: Flow) -> Iterator[Diagnostic]:
    """Check tensor maps that the kernel changes: they must be released after the change and acquired before their
    use."""
    copies, replaced = flow.of("tensormap.cp_fenceproxy"), flow.of("tensormap.replace")
    releases = [*copies, *flow.of("fence.proxy.tensormap.release")]
    acquires = flow.of("fence.proxy.tensormap.acquire")
    if not copies and not replaced:
        return
    alone = flow.function.entry and not flow.calls
    if not alone:
        flow.leave("tensormap.replace", "release: another function may release the map", replaced)
    for one in replaced:
        if alone and not any(flow.comes_to(one.place, r.place) for r in releases):
            text = (
                "the map that tensormap.replace changes is never released, because no path from the change has a "
                "fence.proxy.tensormap"
            )
            fix = "tensormap.cp_fenceproxy (from shared memory), or fence.proxy.tensormap::generic.release"
            yield flow.broken("tensormap_release", one, text, "membar / fence: fence.proxy.tensormap", fix=fix)
            break
    changed = [one.value("destination") for one in copies]
    changed += [v for one in replaced if not shared_roots(flow, v := one.value("map"))]
    roots = [flow.values.roots(value) for value in changed if value is not None]
    for one in flow.of(*_MAP_USES):
        address = one.value("map" if one.row == "prefetch.tensormap" else "tensor")
        if address is None:
            flow.leave("tensor map use", "changed maps: the map is at an address that is known at run time", [one])
            continue
        mine = flow.values.roots(address)
        if _is_parameter(mine, flow.function.symbols):
            flow.tally.judge("tensor map use", "acquire")
            continue
        if not any(mine & other for other in roots):
            flow.leave("tensor map use", "changed maps: it is not known whether the kernel changes its map", [one])
            continue
        before = [a for a in acquires if flow.comes_to(a.place, one.place)]
        held = [a.value("map") for a in before]
        if not alone:
            flow.leave("tensor map use", "changed maps: another function may acquire the map", [one])
            continue
        if address in held:
            flow.tally.judge("tensor map use", "acquire")
            continue
        others = {value for value in changed if value is not None and value != address}
        accounted = all(v is not None and (v.base == address.base or v in others) for v in held)
        if before and not (accounted and address in changed):
            flow.leave("tensor map use", "changed maps: the acquire fence names another register", [one])
            continue
        flow.tally.judge("tensor map use", "acquire")
        text = (
            f"{one.event.statement.opcode} uses a map that the kernel changes ("
            f"{(copies or replaced)[0].event.statement.where}), but no path to it acquires that map"
        )
        fix = "fence.proxy.tensormap::generic.acquire.gpu [map], 128 before the use, by the thread that uses it"
        yield flow.broken("tensormap_acquire", one, text, "membar / fence: fence.proxy.tensormap", fix=fix)


def _is_parameter(roots: frozenset[Key], symbols: Mapping[str, str]) -> bool:
    """Whether a tensor map is a kernel parameter or a constant, which a kernel can't change."""
    return all(key[0] == "symbol" and symbols.get(str(key[1])) in ("param", "const") for key in roots)


@lru_cache(maxsize=4096)
def _examined(text: str, symbols: tuple[tuple[str, str], ...]) -> ParsedInstruction | None:
    try:
        return examine(text, dict(symbols))
    except (UnknownFactError, ParseError):
        return None


def _known_of(event: Event, symbols: Mapping[str, str]) -> tuple[Known, ParsedInstruction] | None:
    """Match an event with its row; None if no row covers it."""
    statement = event.statement
    named = [part for text in statement.operands for part in (text.strip("[]{} ").partition("+")[0].strip(),)]
    used = tuple(sorted((name, symbols[name]) for name in named if name in symbols))
    examined = _examined(statement.text, used)
    if examined is None or examined.form is None:
        return None
    return Known(event, examined.form.name, examined.chosen, operand_names(examined, statement)), examined


def check_program(
    text: str,
    arch: str | None = None,
    *,
    maps: Mapping[int, TensorMap | HasRequest] | None = None,
    assemble: bool = False,
    launched: bool = False,
) -> ProgramReport:
    """Judge the TMA, bulk, mbarrier, fence, tensormap and cluster instructions of a PTX module.

    Args:
        text: the module, or a template of inline assembly: instructions with operands %0, %1, ... A template is part of
            a function, so the rules about whole kernels do not judge it.
        arch: the architecture to judge it for; by default, the architecture of its `.target`. A template without an
            architecture is judged without the rules of one architecture.
        maps: the tensor map (or atom) that is passed to each parameter of a kernel, by the parameter's index; it
            determines the bytes of loads.
        assemble: suggest a changed line (the fact `change` of a finding) only if ptxas accepts the changed module. The
            scope lists changes that were not assembled.
        launched: whether `run_ptx` also judges a launch of the module. The scope then omits the properties that a run
            shows: bytes, phases, arrivals, order, memory fences, and the asynchronous instructions that no rule reads.
    Raises:
        ParseError: the text is not a PTX module.
        InvalidValueError: the architecture is unknown. InvalidTypeError: a key of `maps` is not an integer, or a value
            is not a tensor map.

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
    if not isinstance(maps, Mapping | None):
        raise InvalidTypeError(f"maps must map the number of a parameter to a tensor map, got {given(maps)}")
    made = {expect_integer(i, "the number of a parameter", 0): request_of(one) for i, one in (maps or {}).items()}
    expect(assemble, bool, "assemble")
    expect(launched, bool, "launched")
    judged = _judge_module(text, arch, made)
    for number in [i for i, one in enumerate(judged.found) if EDITS in one.facts]:
        tried = number < MOST_TRIED
        judged.found[number] = _with_change(judged.found[number], text, judged, made, assemble, tried=tried)
    left = (_ORDER,) if (judged.counts or judged.ordered) and not launched else ()
    scope = Scope(
        (counted(sum(judged.counts.values()), "instruction"), *judged.tally.judged),
        (*judged.tally.not_judged(_NO_RUN_SHOWS if launched else None), *left),
    )
    found, sources = tuple(judged.found), judged.tally.sources
    return ProgramReport(judged.target, judged.version, found, dict(judged.counts), scope, sources)


_ANY_TARGET: Final = "sm_100a"
"""Architecture that stands for an unknown one; the rules of one architecture are then not applied."""
PREVIOUS_WAIT: Final = "griddepcontrol.wait"
READ_ONLY_LOAD: Final = "read-only load"
_MOVED_LOADS: Final = (
    "previous kernel: if it writes the data, these loads may read old data, because ptxas may move ld.global.nc "
    f"(__ldg) above {PREVIOUS_WAIT}; ld.global stays below it"
)
_NO_RUN_SHOWS: Final = ("instruction", "change", READ_ONLY_LOAD, TENSOR_LOAD_USE, "tensor map use", "tensormap.replace")
"""Kinds of unjudged instructions that a run does not judge either."""

MOST_TRIED: Final = 8
"""Maximum number of findings whose change is tried."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """The judgement of a module by all rules."""

    target: str
    version: Version
    found: list[Diagnostic]
    counts: collections.Counter[str]
    tally: Tally
    ordered: bool
    """Whether barriers order threads."""


def _judge_module(text: str, arch: str | None, maps: Mapping[int, TensorMap]) -> _Judged:
    template = read_template(text, _READ, _ANY_TARGET if arch is None else architecture(arch).name)
    program = parse_program(text) if template is None else template.program
    named = program.target if arch is None else arch
    target = "" if template is not None and arch is None else architecture(named).name
    statements = [one for function in program.functions for one in function.statements()]
    ordered = any(is_cta_barrier(one.opcode) for one in statements)
    judged = _Judged(target, program.version, [], collections.Counter(), Tally(program.sources), ordered)
    for function in program.functions:
        values = Values(function, _WANTED)
        waits = any(one.opcode.startswith(_WAITS) for one in function.statements())
        flow = Flow(function, values, maps, target, program.version, judged.tally, waits)
        judged.found.extend(_check_function(flow, judged.counts))
    if template is not None:
        _leave_template(statements, judged)
    _leave_asynchronous(statements, judged.tally)
    if any(one.opcode == PREVIOUS_WAIT for one in statements):
        lines = [
            one.line for one in statements if one.opcode.startswith("ld.global.") and "nc" in one.opcode.split(".")
        ]
        judged.tally.leave(READ_ONLY_LOAD, _MOVED_LOADS, lines)
    return judged


def _leave_template(statements: Sequence[Statement], judged: _Judged) -> None:
    """List what the code around a template determines, and write the operands in the findings as in the template."""
    lines = [one.line for one in statements if one.text != as_written(one.text)]
    judged.tally.leave("instruction", "value of its operands: the code around the template sets them", lines)
    lines = [one.line for one in statements if one.opcode.startswith(JUDGED)]
    if not judged.target:
        judged.tally.leave("instruction", "target: the text names no architecture, and none was passed", lines)
    for number, one in enumerate(judged.found):
        facts = {**one.facts, "instruction": as_written(str(one.facts["instruction"]))}
        judged.found[number] = replace(one, text=as_written(one.text), facts=facts)


_ASYNCHRONOUS: Final = {
    "wgmma": ("wgmma.",),
    "tcgen05": ("tcgen05.",),
    "cp.async": ("cp.async.",),
    "multimem": ("multimem.cp.async.", "multimem.cp.reduce.async."),
}
"""Asynchronous instructions that no rule of this check reads, by family: prefixes of their opcodes."""
_READ: Final = (*JUDGED, *itertools.chain.from_iterable(_ASYNCHRONOUS.values()))
"""Prefixes of the instructions that make a text without a `.version` a template."""
_UNREAD: Final = (
    "no rule of this check applies to them{but}; a run judges their order, fences and waits (run_ptx, or a launch of "
    "cute-py check)"
)
_REGISTER_RULE: Final = ", except the rule about the registers of tcgen05.ld, which a run does not judge"


def _leave_asynchronous(statements: Sequence[Statement], tally: Tally) -> None:
    """List the asynchronous instructions that no rule reads, by family."""
    for family, prefixes in _ASYNCHRONOUS.items():
        lines = [
            one.line for one in statements if one.opcode.startswith(prefixes) and not one.opcode.startswith(JUDGED)
        ]
        loads = family == "tcgen05" and any(one.opcode.startswith(TENSOR_LOAD) for one in statements)
        tally.leave(f"{family} instruction", _UNREAD.replace("{but}", _REGISTER_RULE if loads else ""), lines)


def _with_change(
    one: Diagnostic, text: str, judged: _Judged, maps: Mapping[int, TensorMap], assemble: bool, *, tried: bool
) -> Diagnostic:
    """Replace the edits of a finding with the changed lines (the fact `change`), if the change removes the finding and,
    with `assemble`, ptxas accepts the changed module."""
    facts: dict[str, Any] = dict(one.facts)
    edits = facts.pop(EDITS)
    lines, change = text.split("\n"), {}
    for number, (old, new) in edits.items():
        head, operand, tail = lines[number - 1].rpartition(old)
        if operand and "expect_tx" in head:
            change[number] = lines[number - 1] = f"{head}{new}{tail}"
    changed = "\n".join(lines)
    if tried and len(change) == len(edits) and _mends(one, changed, judged, maps):
        taken = assembles(changed, judged.target) if assemble else None
        if taken is None:
            why = "no ptxas on PATH" if assemble else "assemble=True was not passed"
            judged.tally.leave("change", f"not assembled: {why}", change, 1)
        if taken is not False:
            facts["change"] = {number: line.strip() for number, line in change.items()}
    return replace(one, facts=facts)


def _mends(one: Diagnostic, changed: str, judged: _Judged, maps: Mapping[int, TensorMap]) -> bool:
    """Whether a changed module has one finding fewer and no new finding."""
    left = [(found.rule, found.facts["line"]) for found in _judge_module(changed, judged.target, maps).found]
    before = [(found.rule, found.facts["line"]) for found in judged.found]
    before.remove((one.rule, one.facts["line"]))
    return left == before


_ORDER: Final = "order of threads: the actions of other threads and CTAs between two instructions of a thread"
_WAITS: Final = tuple(f"mbarrier.{name}_wait{parity}" for name in ("test", "try") for parity in ("", ".parity"))
_TENSOR_COPIES: Final = ("load", "store", "reduce")


def _wide_fences(flow: Flow) -> list[Known]:
    """Return the fences that make the initialisation of a barrier known to other CTAs."""
    wide = [one for one in flow.of("fence") if one.chosen.get("scope") in ("cluster", "gpu", "sys")]
    return [*flow.of("fence.mbarrier_init"), *wide]


def _run_time(flow: Flow) -> Iterator[Diagnostic]:
    """List the properties that the text does not determine: the order of threads, the phases of waits, and the size of
    buffers."""
    inits, waits, copies = flow.of("mbarrier.init"), flow.of(*_WAITS), flow.of(*_TENSOR_COPIES)
    barriers = barrier_count(inits) if inits else 0
    flow.leave("barrier", "arrival count: the number of arriving threads is known only at run time", inits, barriers)
    fences = [*_wide_fences(flow), *flow.of(*PROXY_FENCES)]
    unfenced = [one for one in inits if not any(flow.comes_to(one.place, fence.place) for fence in fences)]
    why = "initialisation: copies or other CTAs that use it may not know it, because no fence follows mbarrier.init"
    flow.leave("barrier", why, unfenced)
    flow.leave("wait", "parity: the phase that a wait waits for depends on the earlier phases", waits)
    flow.leave("transfer", "extent: it is not known whether the box fits in its buffer in shared memory", copies)
    yield from ()


def _cta_barriers(flow: Flow) -> Iterator[Diagnostic]:
    """Check which threads reach the barriers of a CTA, and how many."""
    if cta_barriers(flow):
        reach = Reach(flow)
        yield from check_cta_barriers(flow, reach)
        yield from check_barrier_counts(flow, reach)


_RULES: Final = (
    check_expected_bytes,
    check_first_waits,
    check_arrival_counts,
    check_alignments,
    check_spans,
    check_proxy_fences,
    check_groups,
    check_load_waits,
    _cta_barriers,
    check_tensor_loads,
    _multicast,
    _tensormaps,
    _run_time,
)


def _check_function(flow: Flow, counts: collections.Counter[str]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for event in flow.values.events:
        statement = event.statement
        if statement.opcode.startswith("call"):
            flow.calls |= not any(part.strip("() ").startswith(_HARMLESS) for part in statement.operands)
        if not statement.opcode.startswith(JUDGED):
            continue
        if has_unknown_number(statement.text):
            reason = f"{statement.opcode}: the code around the template sets a number that it needs"
            flow.tally.leave("instruction", reason, [statement.line])
            continue
        matched = _known_of(event, flow.function.symbols)
        if matched is None:
            reason = f"{statement.opcode}: no row of the instruction table covers it"
            flow.tally.leave("instruction", reason, [statement.line])
            continue
        one, examined = matched
        flow.known.append(one)
        counts[one.row] += 1
        for broken in examined.check_target(flow.target or _ANY_TARGET, flow.version):
            if not flow.target and broken.rule != "instruction":
                continue
            text = f"{statement.opcode}: {broken.message}"
            found.append(flow.broken(broken.rule, one, text, str(examined.form and examined.form.section)))
    found += itertools.chain.from_iterable(rule(flow) for rule in _RULES)
    return sorted(found, key=lambda one: int(str(one.facts["line"])))
