"""Programs of mbarrier and bulk copy instructions in a text that wait forever: they run on the machine.

The lines of the text become a kernel of one thread in each CTA, every instruction on the line that it has in the text.
A copy becomes the bytes that it brings to its barrier: its operands are rarely in the text, its box is. The machine's
findings say what a wait is short of, and a change is offered after a run without the finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.explanation.readings import HANG, TYPE_NAME, Reading, some, type_bits
from cute_py.targets import MAX_CLUSTER
from cute_py.tma.descriptor.limits import STORE_UNIT

_STEP: Final = re.compile(
    r"^[^\n]*?\b(?P<op>mbarrier\.(?P<verb>init|arrive(?:_drop)?|expect_tx|try_wait|test_wait|complete_tx)[\w.:]*+|"
    r"cp\.(?:reduce\.)?async\.bulk[\w.:]*+)(?P<operands>[^\n;]*+);?(?P<note>[^\n]*+)$",
    re.MULTILINE,
)
_OPERAND: Final = re.compile(r"\[[^\]]{0,400}\]|\{[^}]{0,400}\}|[^\s,;]{1,400}")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]{1,12}|[1-9][0-9]{0,11}|0")
_BOX: Final = re.compile(r"box\s{0,80}[{(\[]\s{0,80}(?P<box>[0-9, x]{1,60})[})\]]", re.IGNORECASE)
_CTA: Final = re.compile(r"\b(?:CTA|block|rank)\s{0,80}([0-9]{1,2})\b", re.IGNORECASE)
_MASK: Final = re.compile(r"\bmask\W{0,4}(0x[0-9a-f]{1,4}|[0-9]{1,5})\b", re.IGNORECASE)
_ROUND: Final = re.compile(r"^\W{0,200}(?:for|while|do|loop)\b", re.MULTILINE)
_LINE: Final = re.compile(r"\bline ([0-9]{1,9})")
_WAITS: Final = ("try_wait", "test_wait")
_MOST_RUNS: Final = 8
"""Changes that are tried."""
_MOST_BYTES: Final = (1 << 31) - 1
_BASE: Final = 1024
"""Shared address of the first barrier of a kernel."""
_HEAD: Final = """.version 9.0
.target sm_90a
.entry paste() .reqntid 1 .reqnctapercluster {ctas} {{ .reg .pred %p; .reg .pred %c; .reg .b32 %r<4>;
.shared .align 8 .b64 bars[{bars}]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, bars;
"""
_HEAD_LINES: Final = _HEAD.count("\n")
_READY: Final = "fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait; "
"""Behind the last mbarrier.init: what another CTA, and a copy, need to use it."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction of the text.

    Attributes:
        line: of the text. verb: 'init', 'arrive', 'expect_tx', 'complete_tx', 'try_wait' and others; 'copy'.
        barrier: as the text names it. number: a count, bytes, or a parity. threads: that execute it. ctas: that the
            text names; empty for all. receivers: CTAs of a multicast.
    """

    line: int
    verb: str
    barrier: str
    number: int
    threads: int = 1
    ctas: tuple[int, ...] = ()
    receivers: tuple[int, ...] = ()
    drops: bool = False


@dataclass(slots=True)
class _Program:
    """The instructions of a text, and what it says beside them."""

    text: str
    steps: list[_Step] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def add(self, step: re.Match[str]) -> None:
        """One more instruction."""
        operands = [part.strip() for part in _OPERAND.findall(step["operands"])]
        places = [" ".join(part.strip("[]").split()) for part in operands if part.startswith("[")]
        numbers = [min(int(part, 0), _MOST_BYTES) for part in operands if _NUMBER.fullmatch(part)]
        verb, op = step["verb"], step["op"]
        name = _barrier_of(op, places)
        if name is None:
            return
        line = self.text.count("\n", 0, step.start("op")) + 1
        ctas = tuple(sorted({int(n) for n in _CTA.findall(step["note"]) if int(n) < MAX_CLUSTER}))
        if verb is None:
            self.copy(_Step(line, "copy", name, 0, ctas=ctas), op, numbers, step["note"])
        elif verb == "init":
            count = numbers[-1] if numbers else 1
            self.steps.append(_Step(line, verb, name, count, ctas=ctas))
            self.lines.append(f"{name}: a phase takes {counted(count, 'arrival')} and the bytes that are announced")
        elif verb.startswith("arrive"):
            threads, drops = _threads(step["note"]), verb == "arrive_drop"
            expects = "expect_tx" in op and bool(numbers)
            made = _Step(line, "arrive", name, 0, threads, ctas, drops=drops)
            self.steps.append(replace(made, verb="announce", number=numbers[-1]) if expects else made)
        elif verb in _WAITS:
            self.steps.append(_Step(line, "wait", name, numbers[-1] & 1 if numbers else 0, ctas=ctas))
        elif numbers:
            self.steps.append(_Step(line, verb, name, numbers[-1], ctas=ctas))

    def copy(self, step: _Step, op: str, numbers: Sequence[int], note: str) -> None:
        """A copy, with the bytes that it brings, and to whom."""
        if ".tensor" in op:
            box = _BOX.search(note) or _BOX.search(self.text)
            kind = TYPE_NAME.search(note) or TYPE_NAME.search(self.text)
            if box is None or kind is None:
                missing = f"the box and the element type of {op.split('.mbarrier')[0]}"
                self.unknown.append(f"{missing}: its bytes are not in the text")
                return
            sizes, bits = [int(n) for n in re.findall(r"[0-9]{1,9}", box["box"])], type_bits(kind[1])
            count = math.prod(sizes) * bits // 8
            shown = f"a box of {' x '.join(map(str, sizes))} elements of {bits} bits: {count} bytes"
        else:
            sized = [n for n in numbers if n >= STORE_UNIT]
            if not sized:
                self.unknown.append(f"the number of bytes of {op}")
                return
            count = sized[-1]
            shown = f"{count} bytes"
        self.lines.append(f"the copy moves {shown}")
        receivers: tuple[int, ...] = ()
        if "multicast" in op:
            stated = _MASK.search(self.text)
            mask = int(stated[1], 16 if "x" in stated[1].lower() else 10) if stated else numbers[-1] if numbers else 0
            receivers = tuple(cta for cta in range(MAX_CLUSTER) if mask >> cta & 1)
        if receivers:
            listed = ", ".join(map(str, receivers))
            said = f"multicast mask {mask:#x}: CTAs {listed} of the cluster each get the whole box"
            self.lines.append(f"{said}, and the barrier at the same offset of each gets its bytes")
        self.steps.append(replace(step, number=min(count, _MOST_BYTES), receivers=receivers))

    @property
    def initialises(self) -> bool:
        """Whether the text initialises a barrier; in one that does not, each takes one arrival."""
        return any(step.verb == "init" for step in self.steps)

    def judged(self) -> list[_Step]:
        """The instructions, without waits of which the text lacks something."""
        used = {step.barrier for step in self.steps if step.verb not in ("init", "wait")}
        found = []
        for step in self.steps:
            if step.verb == "wait" and not self.initialises and step.barrier not in used:
                self.unknown.append(f"how {step.barrier} is initialised, and what arrives on it")
            elif step.verb != "wait" or not self.unknown:
                found.append(step)
        return found


def _kernel(steps: Sequence[_Step], initialises: bool) -> tuple[str, list[str]]:
    """The text of a kernel that makes these steps, each on its line behind `_HEAD`, and its barriers in order."""
    names = list(dict.fromkeys(step.barrier for step in steps))
    ctas = 1 + max((max(step.ctas + step.receivers, default=0) for step in steps), default=0)
    rows: list[str] = [""] * max(step.line for step in steps)
    if not initialises:
        rows[0] = "".join(f"mbarrier.init.shared.b64 [%r2+{8 * i}], 1; " for i in range(len(names))) + _READY
    last = max((step.line for step in steps if step.verb == "init"), default=0)
    for number, step in enumerate(steps):
        at, count = 8 * names.index(step.barrier), step.number
        for cta, lines in _written(step, at, count, number):
            guard = "" if cta is None else f"setp.eq.u32 %c, %r1, {cta}; "
            rows[step.line - 1] += guard + " ".join(f"{'' if cta is None else '@%c '}{line};" for line in lines) + " "
    if last:
        rows[last - 1] += _READY
    head = _HEAD.format(ctas=ctas, bars=len(names))
    return head + "\n".join(rows) + "\nret; }\n", names


def _written(step: _Step, at: int, count: int, number: int) -> Iterator[tuple[int | None, list[str]]]:
    """(the CTA that executes them, None for all; instructions) of a step at the barrier `at` bytes from the first."""
    arrive = "mbarrier.arrive_drop" if step.drops else "mbarrier.arrive"
    expect = f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2+{at}]"
    lines = {
        "init": [f"mbarrier.init.shared.b64 [%r2+{at}], {count}"],
        "arrive": [f"{arrive}.shared.b64 _, [%r2+{at}], {step.threads}"],
        "announce": [f"{arrive}.expect_tx.shared.b64 _, [%r2+{at}], {count}"],
        "expect_tx": [f"{expect}, {count}"],
        "complete_tx": [f"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r2+{at}], {count}"],
        "copy": [f"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r2+{at}], {count}"],
    }
    if step.threads > 1:
        lines["announce"] = [f"{expect}, {min(count * step.threads, _MOST_BYTES)}", *lines["arrive"]]
    if step.verb == "wait":
        tried = f"mbarrier.try_wait.parity.shared.b64 %p, [%r2+{at}], {count}"
        if not step.ctas:
            yield None, [f"W{number}: {tried}; @!%p bra W{number}"]
        for cta in step.ctas:
            label = f"{number}_{cta}"
            skipped = f"setp.ne.u32 %c, %r1, {cta}; @%c bra E{label}; W{label}: {tried}; @!%p bra W{label}"
            yield None, [f"{skipped}; E{label}: mov.u32 %r3, 0"]
    elif step.receivers:
        for receiver in step.receivers:
            yield (
                (step.ctas or (0,))[0],
                [
                    f"mapa.shared::cluster.u32 %r3, %r2, {receiver}",
                    f"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r3+{at}], {count}",
                ],
            )
    elif step.ctas:
        yield from ((cta, lines[step.verb]) for cta in step.ctas)
    else:
        yield None, lines[step.verb]


def _errors(steps: Sequence[_Step], initialises: bool) -> list[Diagnostic]:
    """What a run of the steps finds of its barriers, in the names and lines of the text."""
    if not any(step.verb == "wait" for step in steps):
        return []
    from cute_py.machine.run import run_ptx

    text, names = _kernel(steps, initialises)
    ctas = 1 + max(max(step.ctas + step.receivers, default=0) for step in steps)
    found = run_ptx(text, grid=ctas, schedule="eager", limit=1 << 16).diagnostics
    errors = [one for one in found if one.severity == "error"]
    return [
        replace(one, text=_in_the_text(one.message, names), fixes=tuple([_in_the_text(f, names) for f in one.fixes]))
        for one in errors
    ]


def _in_the_text(said: str, names: Sequence[str]) -> str:
    """A text of the machine with the lines and the barriers of the pasted one."""
    said = _LINE.sub(lambda found: f"line {int(found[1]) - _HEAD_LINES}", said)
    for number, name in reversed(list(enumerate(names))):
        address = f"{_BASE + 8 * number:#x}"
        said = said.replace(f"the mbarrier at {address}", name).replace(f"mbarrier at {address}", name)
        said = said.replace(f"shared address {address}", name)
    return said


def read_waits(text: str) -> list[Reading]:
    """A program of mbarrier and bulk copy instructions, run on the machine."""
    matches = some(_STEP.finditer(text), 200)
    if not {step["verb"] for step in matches} & {"arrive", "try_wait", "test_wait", "expect_tx"}:
        return []
    program = _Program(text)
    for match in matches:
        program.add(match)
    steps, hangs = program.judged(), HANG.search(text)
    broken = _errors(steps, program.initialises)
    changes = [fix for one in broken for fix in one.fixes]
    if broken and not changes:
        changes = list(_changes(steps, program.initialises))
    if not broken and hangs and not program.unknown:
        where = "look at the parity, at another barrier, or at a load that was not issued"
        program.lines.append(f"the bytes and the arrivals balance: {where}")
    begun, waits = _ROUND.search(text), [match for match in matches if match["verb"] in _WAITS]
    constant = [match for match in waits if re.search(r",\s{0,80}[01]\s{0,80}$", match["operands"])]
    if begun is not None and constant and constant[-1].start() > begun.start():
        same = "a wait in a loop names the same parity in every round: every second wait is over before its phase is"
        broken.append(Diagnostic("never completes phase", text=same, source="PTX ISA, mbarrier"))
        changes.append("flip the parity each time round: 0, 1, 0, 1, ...")
    kind = "A program of mbarrier and copy instructions" + (" that waits forever" if hangs else "")
    span = matches[0].start(), max(matches[-1].end(), hangs.end() if hangs else 0)
    elsewhere = "Look at whether every thread that should arrive reaches its instruction, and at the addresses."
    unknown = list(dict.fromkeys(program.unknown))
    return [Reading(kind, *span, program.lines, broken, changes, unknown, elsewhere, not unknown)]


def _changes(steps: Sequence[_Step], initialises: bool) -> Iterator[str]:
    """The first change of one number that a run without errors follows: of bytes, of who announces them, a parity."""
    left = _MOST_RUNS
    for place, step in enumerate(steps):
        if step.verb == "wait":
            other = 1 - step.number
            text = f"wait with parity {other} in line {step.line}, and flip it each time round"
            tried = [(text, replace(step, number=other))]
        elif step.verb == "announce":
            copies = [one for one in steps if one.verb == "copy" and one.barrier == step.barrier]
            total = sum(one.number for one in copies)
            everyone = sorted({cta for one in copies for cta in one.receivers})
            whom = f"let one thread of every CTA of the mask ({', '.join(map(str, everyone))}) announce {total} bytes"
            tried = [(f"expect {total} bytes in line {step.line}", replace(step, number=total // max(step.threads, 1)))]
            tried += [(whom, replace(step, number=total, ctas=()))] if everyone and step.ctas else []
        else:
            continue
        for text, changed in tried[:left]:
            left -= 1
            if not _errors([*steps[:place], changed, *steps[place + 1 :]], initialises):
                yield text
                return


def _threads(note: str) -> int:
    """How many threads run an instruction, by its comment: 'all 128 threads', 'thread 0', 'each of 4 warps'."""
    found = re.search(r"(?:all|by|each of|every one of)?\s{0,80}(?:the\s{1,80})?([0-9]{1,5}) threads", note)
    if found is not None:
        return int(found[1])
    warps = re.search(r"([0-9]{1,3}) warps", note)
    return int(warps[1]) if warps else 1


_WITHOUT_BARRIER: Final = 2
"""Addresses of a bulk copy that completes no barrier: destination and source."""


def _barrier_of(op: str, places: Sequence[str]) -> str | None:
    """The barrier that an instruction names: the last address of a load, the first one of others."""
    if op.startswith("cp."):
        named = bool(places) and ("mbarrier" in op or len(places) > _WITHOUT_BARRIER)
        return places[-1].split(",")[0].strip() if named else None
    return places[0] if places else None
