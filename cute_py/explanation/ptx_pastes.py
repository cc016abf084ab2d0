"""PTX instructions in a text, judged by the instruction table, what ptxas says of them, and programs that wait forever.

An instruction with PTX's registers (`%r1`, `%rd2`) or symbols is examined as `examine` does: what keeps it from
assembling, where it assembles, and a text with its modifiers that does. Operands of inline assembly (`%0`) have no
type in the text and are left alone. A program of mbarrier and copy instructions is run on the emulator's barrier, which
then shows what each wait is short of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, counted, unless_refused
from cute_py.explanation.cuda_pastes import REGISTERS, SHARED_AT_ONCE, most_threads
from cute_py.explanation.readings import HANG, TYPE_NAME, Reading, some, type_bits
from cute_py.explanation.rows.known_texts import first_of, rows
from cute_py.ptx.catalog import FORMS
from cute_py.ptx.check import ParsedInstruction, examine
from cute_py.ptx.render import ptx
from cute_py.targets import ARCHITECTURES, MAX_CLUSTER, version_text
from cute_py.tma.descriptor.limits import STORE_UNIT

if TYPE_CHECKING:
    from cute_py.tma.emulator.mbarrier import Mbarrier

_NAMES: Final = sorted({form.opcode for form in FORMS if "." in form.opcode} | {"prefetch.tensormap"}, reverse=True)
_STATEMENT: Final = re.compile(
    rf"(?<![\w.'‘`\"%])(?P<name>(?:{'|'.join(map(re.escape, _NAMES))})(?![\w])[\w.:]*+)"
    r"(?P<operands>[^;'\"`]{0,2000}+);"
)
_SYMBOL: Final = re.compile(
    r"\.(?P<space>shared|global|param|const)\s{1,80}(?:\.(?:align\s{1,80}[0-9]{1,100}|\w{1,80})\s{1,80}){1,4}(?P<name>[A-Za-z_$][\w$]{0,100})"
)
"""A declaration: .shared .align 128 .b8 tile[16384]"""
_ARCH: Final = re.compile(r"\bsm_[0-9]{2,3}[af]?\b")
_INSTRUCTION: Final = re.compile(
    r"^\s{0,80}(?:@!?%?\w{1,80}\s{1,80})?[a-" r"z]\w{0,80}\.[\w.:]{1,100}[^;\n]{0,400};", re.MULTILINE
)
_BARE: Final = re.compile(r"(?<![%\w$.])[A-Za-z$][\w$]{0,100}|%[0-9]")


def read_instructions(text: str) -> list[Reading]:
    """The messages of ptxas in a text, as one reading, and every instruction that breaks a rule; of a text that has no
    barrier also those that break none."""
    names = {row.name for row in ARCHITECTURES}
    arch = next((match[0] for match in some(_ARCH.finditer(text), 8) if match[0] in names), None)
    symbols = {match["name"]: match["space"] for match in some(_SYMBOL.finditer(text))}
    found = [*_messages(text), *_notes(text), *_usage(text)]
    program = "mbarrier." in text
    for match in some(_STATEMENT.finditer(text)):
        if _BARE.search(re.sub(r"\[\s{0,80}[A-Za-z_$][\w$]{0,100}", "[", match["operands"])):
            continue
        one = unless_refused(examine, match[0], symbols)
        if one is None:  # no row of the table, or no instruction
            continue
        reading = _instruction(one, match, arch)
        if reading.broken or not program:
            found.append(reading)
    return found


def _instruction(one: ParsedInstruction, match: re.Match[str], arch: str | None) -> Reading:
    takes = [row.name for row in ARCHITECTURES if row.floor is not None and not one.check_target(row.name)]
    lines = [f"{need.what}: {need.targets.value}, PTX {version_text(need.since)} or newer" for need in one.requirements]
    broken = [Diagnostic("instruction", text=error, source="PTX ISA; ptxas 13.0.88") for error in one.errors]
    changes = []
    if one.errors and one.form is not None:
        changes = [f"with these modifiers this assembles: {text}" for text in _written(one)]
    elif arch is not None and takes and arch not in takes:
        broken = one.check_target(arch)
        changes = [f"-arch={takes[0]}, or -gencode arch={takes[0].replace('sm_', 'compute_')},code={takes[0]}"]
    if takes and not one.canonical:
        lines.append(f"in the order of the PTX ISA: {one.canonical_text}")
    if takes and not broken:
        lines.append(f"it assembles for {', '.join(takes)}")
    # A wrong instruction stays in the text: an error of CUDA beside it is about it.
    end = match.start() if broken and not match["name"].startswith("mbarrier") else match.end()
    return Reading(f"A PTX instruction: {match['name']}", match.start(), end, lines, broken, changes)


def _written(one: ParsedInstruction) -> Iterator[str]:
    """The instruction with these modifiers and default operands, if there is one."""
    if one.form is not None:
        from cute_py.explanation.offers import passes_check

        modifiers: dict[str, Any] = dict(one.chosen)
        text = unless_refused(ptx, one.form.name, **modifiers)  # None: the modifiers do not go together
        if text is not None and passes_check(lambda: not examine(text).errors or None):
            yield text


# ---- what ptxas says -----------------------------------------------------------------------------------------------

_PTXAS: Final = re.compile(
    r"ptxas[^\n]{0,300}?(?:error|fatal)\s{0,80}:" r"\s{0,80}(?!\s|Ptx assembly aborted)(?P<what>[^\n]{1,300})"
)
_TARGET: Final = re.compile(r"(?P<needs>requires? \.?target )?[\"']?(?P<arch>sm_(?P<number>[0-9]{2,3})[af]?)\b")
_NEEDS_VERSION: Final = re.compile(r"requires PTX ISA \.version (?P<version>[0-9]\.[0-9])")
_OLD_PTXAS: Final = re.compile(
    r"Unsupported \.version (?P<version>[0-9.]{1,100}" r"); current version is '(?P<known>[0-9.]{1,100})'"
)
_OTHER_ARCH: Final = re.compile(
    r"with \.target '(?P<arch>sm_\w{1,80})' cannot be compiled for architecture '(?P<asked>sm_\w{1,80})'"
)
_ADVISED: Final = re.compile(r"should be used on \.target '(?P<arch>sm_\w{1,80})'")
_FEW_REGISTERS: Final = re.compile(
    r"(?:Insufficient registers \(|register count of ')(?P<had>[0-9]{1,3})[)']"
    r"(?:[^\n]{0,400}?target of (?P<needs>[0-9]{1,3}))?"
)
_NO_TARGET: Final = re.compile(r"PTX \.version [0-9.]{1,100} does not support \.target (?P<arch>sm_\w{1,80})")
_FAMILY_FEATURES: Final[tuple[tuple[str, range], ...]] = (
    ("wgmma", range(90, 91)),
    ("tensormap.replace|setmaxnreg", range(90, 122)),
    (r"tcgen05|cta_group|gather4|scatter4|im2col::w|'\.[0-9]+x[0-9]+b'", range(100, 111)),
)
"""(words of a feature, the architectures whose own targets, sm_90a or sm_100a, have it). What is not here and not on
sm_90 is not on sm_90a either; from sm_100 on it may be on the own target."""
_FIRST_OF_FAMILIES: Final = 100
_NO_SUCH_GPU: Final = re.compile(r"Value '\w{1,80}' is not defined for option")
_TOO_MUCH_SHARED: Final = re.compile(
    r"uses too much shared data \((?P<asked>0x[0-9a-f]{1,9}) bytes, (?P<most>0x[0-9a-f]{1,9}) max"
)


def _messages(text: str) -> Iterator[Reading]:
    """All messages of ptxas in a text: they stand together, and the first one often is the cause of the others."""
    matches = some(_PTXAS.finditer(text), 16)
    if not matches:
        return
    lines: dict[str, None] = {}
    changes: dict[str, None] = {}
    for match in matches:
        why, change = _message(match["what"].strip())
        lines |= {why: None} if why else {}
        changes |= {change: None} if change else {}
    broken = [Diagnostic("ptxas", text=match["what"].strip(), source="ptxas") for match in matches]
    missing = () if changes or _INSTRUCTION.search(text) else ("the line of PTX that ptxas names, with its operands",)
    begin = matches[0].start(), max(match.end() for match in matches)
    kind = "An error of ptxas" if len(matches) == 1 else f"{len(matches)} errors of ptxas"
    yield Reading(kind, *begin, list(lines), list(dict.fromkeys(broken)), list(changes), missing)


_SERIALIZED: Final = "wgmma.mma_async instructions are serialized due to "
_NOTE: Final = re.compile(
    rf"(?:{re.escape(_SERIALIZED)}|warpgroup\.(?:wait|arrive) is injected|'?setmaxnreg'? ignored)[^\n]{{1,300}}"
)


def _notes(text: str) -> Iterator[Reading]:
    """Explain the notes of ptxas on wgmma pipelines and setmaxnreg, which are not errors but reduce speed."""
    matches = some(_NOTE.finditer(text), 64)
    if not matches:
        return
    found = [row for row in rows("ptxas_notes") if any(row.pattern in match[0] for match in matches)]
    lines = [row.text for row in found]
    if any(match[0].startswith(_SERIALIZED) for match in matches):
        lines.insert(0, "the results are right, but each wgmma waits for the one before it")
    span = matches[0].start(), max(match.end() for match in matches)
    of = "wgmma" if any("setmaxnreg" not in match[0] for match in matches) else "registers"
    yield Reading(f"A note of ptxas on {of}", *span, lines, (), [row.change for row in found])


_USED: Final = re.compile(
    r"(?:ptxas[^\n]{0,20}|^[ \t]{1,40})(?P<stack>[0-9]{1,7}) bytes stack frame, (?P<stores>[0-9]{1,7}) "
    r"bytes spill stores, (?P<loads>[0-9]{1,7}) bytes spill loads"
    r"(?:\s{1,9}ptxas info\s{0,9}: Used (?P<registers>[0-9]{1,3}) registers[^\n]{0,400})?|"
    r"ptxas info\s{0,9}: Used (?P<alone>[0-9]{1,3}) registers[^\n]{0,400}",
    re.MULTILINE,
)
_SMEM: Final = re.compile(r"\b([0-9]{1,7}) bytes smem")


def _usage(text: str) -> Iterator[Reading]:
    """Registers, stack and shared memory of each kernel, as ptxas -v prints them."""
    for match in some(_USED.finditer(text), 8):
        lines, broken, changes = [], [], []
        registers = int(match["registers"] or match["alone"] or 0)
        if registers:
            most = most_threads(registers)
            lines.append(f"{registers} registers a thread: at most {most} threads in a block")
        if smem := _SMEM.search(match[0]):
            lines.append(f"{smem[1]} bytes of static shared memory; what a launch adds is not counted")
        if match["stack"] is not None and int(match["stores"]) + int(match["loads"]):
            found = (
                f"{match['stores']} bytes of stores and {match['loads']} of loads of a thread are spills: registers "
            )
            broken.append(Diagnostic("spills", text=f"{found}that lie in local memory", severity="warning"))
            changes.append(
                "fewer values a thread (a smaller tile, more warps), arrays indexed by constants in unrolled loops, or "
                f"more than {registers or 'these'} registers: fewer threads in __launch_bounds__, no -maxrregcount"
            )
        elif match["stack"] is not None:
            lines.append("no register is spilled")
            stack = "a stack frame without spills holds arrays whose index is known at run time, or calls"
            lines += [stack] if int(match["stack"]) else []
        yield Reading("What ptxas says of a kernel's registers", *match.span(), lines, broken, changes)


def _message(what: str) -> tuple[str, str]:
    """Explain one message, with the change that works if the message names it."""
    if needed := _NEEDS_VERSION.search(what):
        version = needed["version"]
        return (
            f"the PTX says an older .version than {version}",
            f".version {version} or later; compilers write that of their toolkit, so take a newer toolkit",
        )
    if old := _OLD_PTXAS.search(what):
        why = f"this ptxas reads PTX up to {old['known']}; the compiler that wrote {old['version']} is newer than it"
        return (
            why,
            f"the ptxas of a toolkit with PTX {old['version']} first in PATH, or an older compiler",
        )
    if other := _OTHER_ARCH.search(what):
        why = f"the PTX is for {other['arch']}, and ptxas or the driver was asked for {other['asked']}"
        return why, _compiled(other["arch"])
    if advised := _ADVISED.search(what):
        return "legal for both targets; with warnings as errors it stops there", _compiled(advised["arch"])
    if few := _FEW_REGISTERS.search(what):
        return _few_registers(int(few["had"]), int(few["needs"] or 0))
    if unknown := _NO_TARGET.search(what):
        floor = next((row.floor for row in ARCHITECTURES if row.name == unknown["arch"]), None)
        change = f".version {version_text(floor)} or later for {unknown['arch']}" if floor is not None else ""
        return "this .version of PTX is older than the target", change
    if _NO_SUCH_GPU.search(what):
        change = "the ptxas of another toolkit, whose nvcc --list-gpu-code has the target"
        return "this ptxas does not know the target: it is older than the GPU, or has dropped it", change
    if shared := _TOO_MUCH_SHARED.search(what):
        asked, most = int(shared["asked"], 16), int(shared["most"], 16)
        why = f"the kernel declares {asked} bytes of shared memory; {most} are the most of such a block"
        if most == SHARED_AT_ONCE:
            return why, "declare it extern __shared__, whose size is given at the launch"
        return why, "fewer stages, or a smaller tile"
    if (target := _TARGET.search(what)) is None:
        meaning = first_of("ptxas_errors", what)
        return "" if meaning is None else meaning.text, ""
    number, named = int(target["number"]), target["arch"]
    known = next((numbers for words, numbers in _FAMILY_FEATURES if re.search(words, what)), None)
    if known is not None and number >= known.stop:
        last = known.stop - 1
        have = f"sm_{known.start}" + (f" to sm_{last}" if last > known.start else "")
        why = f"only GPUs of {have} have this: one of {named} does not, whatever the target"
        own = f"sm_{known.start}a"
        return why, f"this code for {have} alone ({_compiled(own)}), and code without it for {named}"
    if known is not None or target["needs"] is None:
        own = f"sm_{number if known is None or number in known else known[0]}a"
        if own == named and target["needs"]:
            return f"the target of this compilation is not {named}", _compiled(named)
        if own == named or (known is None and number < _FIRST_OF_FAMILIES):
            return f"{named} does not have this", ""
        why = f"features of one family, such as this one, need their own target, {own}; no later GPU runs that code"
        return why, _compiled(own)
    return f"the target of this compilation is below {named}", _compiled(named)


def _few_registers(had: int, needs: int) -> tuple[str, str]:
    """Explain too few registers for an instruction, and give the block size that leaves enough."""
    why = (
        f"ptxas had {had} registers a thread: {REGISTERS} of a multiprocessor by the threads of the block, or "
        "-maxrregcount; what setmaxnreg asks for later is not counted"
    )
    warpgroups = REGISTERS // max(needs, 1) // 128
    fewer = f"at most {128 * warpgroups} threads leave {needs} registers, or " if needs and 0 < warpgroups < 8 else ""
    return why, f"{fewer}a smaller tile for each thread"


def _compiled(name: str) -> str:
    compute = name.replace("sm_", "compute_")
    return f"-arch={name}, or -gencode arch={compute},code={name}; in Triton and NVRTC the same target"


# ---- programs that wait forever ------------------------------------------------------------------------------------

_STEP: Final = re.compile(
    r"^[^\n]*?\b(?P<op>mbarrier\.(?P<verb>init|arrive(?:_drop)?|expect_tx|try_wait|test_wait|complete_tx)[\w.:]*+|"
    r"cp\.(?:reduce\.)?async\.bulk[\w.:]*+)(?P<operands>[^\n;]*+);?(?P<note>[^\n]*+)$",
    re.MULTILINE,
)
_BOX: Final = re.compile(r"box\s{0,80}[{(\[]\s{0,80}(?P<box>[0-9, x]{1,60})[})\]]", re.IGNORECASE)
_CTA: Final = re.compile(r"\b(?:CTA|block|rank)\s{0,80}([0-9]{1,2})\b", re.IGNORECASE)
_MASK: Final = re.compile(r"\bmask\W{0,4}(0x[0-9a-f]{1,4}|[0-9]{1,5})\b", re.IGNORECASE)
_ROUND: Final = re.compile(r"^\W{0,200}(?:for|while|do|loop)\b", re.MULTILINE)


@dataclass(slots=True)
class _Barrier:
    """A barrier of a program, and what it has seen."""

    name: str
    barrier: Mbarrier
    expected: int = 0
    delivered: int = 0
    arrivals: int = 0
    armed: set[int] = field(default_factory=set)
    """The CTAs that the comments name where bytes are announced."""


@dataclass(slots=True)
class _Program:
    """A program of mbarrier and bulk copy instructions, run on the emulator's barriers, and what that showed."""

    text: str
    steps: list[re.Match[str]]
    barriers: dict[str, _Barrier] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    broken: list[Diagnostic] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def never(self, text: str, change: str) -> None:
        """A phase that never completes, and what completes it."""
        self.broken.append(Diagnostic("never completes phase", text=text, source="PTX ISA, mbarrier"))
        self.changes.append(change)

    def run(self, step: re.Match[str]) -> None:
        operands = [
            part.strip()
            for part in re.findall(r"\[[^\]]{0,400}\]|\{[^}" r"]{0,400}\}|[^\s,;]{1,400}", step["operands"])
        ]
        places = [part.strip("[]") for part in operands if part.startswith("[")]
        numbers = [int(part, 0) for part in operands if re.fullmatch(r"0x[0-9a-fA-F]{1,12}|[1-9][0-9]{0,11}|0", part)]
        op = step["op"]
        from cute_py.tma.emulator.mbarrier import MAX_COUNT, Mbarrier

        if step["verb"] == "init":
            count = numbers[-1] if numbers else 1
            if places and 1 <= count <= MAX_COUNT:
                self.barriers[places[0]] = _Barrier(places[0], Mbarrier(count, name=places[0]))
                taken = f"a phase takes {counted(count, 'arrival')} and the bytes that are announced"
                self.lines.append(f"{places[0]}: {taken}")
            return
        name = _barrier_of(op, places)
        if name is None:
            return
        if name not in self.barriers:
            if any(s["verb"] == "init" for s in self.steps):
                known = ", ".join(self.barriers) or "none"
                text = f"{name} is used and not initialised; the program initialises {known}"
                self.broken.append(Diagnostic("barrier", text=text))
            self.barriers[name] = _Barrier(name, Mbarrier(1, name=name))
        try:
            self.apply(step, self.barriers[name], numbers)
        except CuteError as error:
            text = f"{name}: {error.headline}"
            self.broken.append(Diagnostic("mbarrier", text=text, source="PTX ISA, mbarrier"))

    def apply(self, step: re.Match[str], held: _Barrier, numbers: Sequence[int]) -> None:
        """One instruction on its barrier."""
        from cute_py.tma.emulator.mbarrier import MAX_COUNT

        note, op, verb = step["note"], step["op"], step["verb"]
        if verb is None:
            self.load(op, numbers, note, held)
            self.multicast(op, numbers, held)
        elif verb.startswith("arrive"):
            count = _threads(note)
            if "expect_tx" in op and numbers:
                held.armed |= {int(n) for n in _CTA.findall(note)}
                held.expected += numbers[-1] * count
                held.barrier.expect_tx(min(numbers[-1] * count, MAX_COUNT))
            held.arrivals += count
            held.barrier.arrive(count)
        elif verb == "expect_tx" and numbers:
            held.expected += numbers[-1]
            held.barrier.expect_tx(numbers[-1])
        elif verb == "complete_tx" and numbers:
            held.delivered += numbers[-1]
            held.barrier.complete_tx(numbers[-1])
        elif verb in ("try_wait", "test_wait"):
            self.wait(held, numbers[-1] & 1 if numbers else 0)

    def load(self, op: str, numbers: Sequence[int], note: str, held: _Barrier) -> None:
        from cute_py.tma.emulator.mbarrier import MAX_COUNT

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
        held.delivered += count
        held.barrier.complete_tx(min(count, MAX_COUNT))

    def multicast(self, op: str, numbers: Sequence[int], held: _Barrier) -> None:
        """Which CTAs a load writes to, and whether each announces the bytes."""
        if "multicast" not in op:
            return
        stated = _MASK.search(self.text)
        mask = int(stated[1], 16 if "x" in stated[1].lower() else 10) if stated else numbers[-1] if numbers else 0
        receivers = [cta for cta in range(MAX_CLUSTER) if mask >> cta & 1]
        if not receivers:
            return
        listed = ", ".join(map(str, receivers))
        shown = f"multicast mask {mask:#x}: CTAs {listed} of the cluster each get the whole box"
        self.lines.append(f"{shown}, and the barrier at the same offset of each gets its bytes")
        silent = [cta for cta in receivers if held.armed and cta not in held.armed]
        if silent:
            named, count = ", ".join(map(str, silent)), held.delivered
            text = f"{held.name} of CTA {named}: {count} bytes are delivered and none are expected there"
            self.never(text, f"let one thread of every CTA of the mask ({listed}) announce {count} bytes")

    def wait(self, held: _Barrier, parity: int) -> None:
        """Whether a wait is satisfied; what it is short of."""
        if not (held.arrivals or held.expected or held.delivered or any(s["verb"] == "init" for s in self.steps)):
            self.unknown.append(f"how {held.name} is initialised, and what arrives on it")
        if self.unknown and not held.delivered:
            return
        if held.barrier.try_wait(parity) and (self.unknown or held.expected == held.delivered):
            return
        barrier, name = held.barrier, held.name
        if barrier.pending and held.arrivals < barrier.arrive_count:
            text = (
                f"{name}: a phase takes {counted(barrier.arrive_count, 'arrival')} and {held.arrivals} came; "
                f"{barrier.pending} {'is' if barrier.pending == 1 else 'are'} missing"
            )
            more = counted(barrier.pending, "more thread")
            self.never(text, f"initialise {name} with {max(held.arrivals, 1)}, or let {more} arrive")
        if held.expected != held.delivered:
            over = held.delivered - held.expected
            short = f"{over} bytes more than expected" if over > 0 else f"{-over} bytes never come"
            text = (
                f"{name}: {held.expected} bytes are expected and {held.delivered} are delivered: {short}, "
                "so the count does not return to zero"
            )
            self.never(text, f"expect {held.delivered} bytes")
        elif not barrier.pending or held.arrivals >= barrier.arrive_count:
            text = (
                f"{name}: the wait names parity {parity}, which is that of the current phase "
                f"{barrier.phase}; it is over after the next one"
            )
            self.never(text, f"wait with parity {1 - parity}, and flip it each time round")


def read_waits(text: str) -> list[Reading]:
    """A program of mbarrier and bulk copy instructions, run on the emulator's barrier."""
    steps = some(_STEP.finditer(text), 200)
    if not {step["verb"] for step in steps} & {"arrive", "try_wait", "test_wait", "expect_tx"}:
        return []
    ran = _Program(text, steps)
    for step in steps:
        ran.run(step)
    hangs = HANG.search(text)
    if not ran.broken and hangs and not ran.unknown:
        where = "look at the parity, at another barrier, or at a load that was not issued"
        ran.lines.append(f"the bytes and the arrivals balance: {where}")
    waits = [step for step in steps if step["verb"] in ("try_wait", "test_wait")]
    begun = _ROUND.search(text)
    constant = [step for step in waits if re.search(r",\s{0,80}[01]\s{0,80}$", step["operands"])]
    if begun is not None and constant and constant[-1].start() > begun.start():
        same = "a wait in a loop names the same parity in every round: every second wait is over before its phase is"
        ran.never(same, "flip the parity each time round: 0, 1, 0, 1, ...")
    kind = "A program of mbarrier and copy instructions" + (" that waits forever" if hangs else "")
    span = steps[0].start(), max(steps[-1].end(), hangs.end() if hangs else 0)
    elsewhere = "Look at whether every thread that should arrive reaches its instruction, and at the addresses."
    found = Reading(kind, *span, ran.lines, ran.broken, ran.changes, ran.unknown, elsewhere, not ran.unknown)
    return [found]


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
    return places[0].split("+")[0].strip() if places else None
