"""Read PTX instructions in pasted text, messages of ptxas, and programs that wait forever.

`examine` checks an instruction with PTX registers (`%r1`, `%rd2`) or symbols against the instruction table. It finds
the reasons why the instruction does not assemble, the targets that support it, and a form with its modifiers that
assembles. Operands of inline assembly (`%0`) have no type in the text and are ignored.

A program of mbarrier and copy instructions runs in the emulator (`run_ptx`). Its lines become a kernel with one thread
per CTA, where each instruction keeps its line number. A copy is replaced by a complete_tx of its bytes, because the
text rarely contains the operands of a copy, but usually its box. The findings of the run name the bytes or arrivals
that a wait lacks, and a change is offered only if a run with the change has no such finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from cute_py.diagnostics import Diagnostic, Scope
from cute_py.errors import counted, unless_refused
from cute_py.explanation.cuda_pastes import REGISTERS, SHARED_AT_ONCE, most_threads
from cute_py.explanation.readings import HANG, TYPE_NAME, Reading, some, type_bits
from cute_py.explanation.rows.known_texts import first_of, rows
from cute_py.ptx.catalog import FORMS
from cute_py.ptx.check import ParsedInstruction, examine, nearest_numbers
from cute_py.ptx.render import ptx
from cute_py.targets import ARCHITECTURES, MAX_CLUSTER, version_text
from cute_py.tma.descriptor.limits import STORE_UNIT

_FURTHER: Final = {
    "prefetch.tensormap",
    "setmaxnreg.inc",
    "setmaxnreg.dec",
    "griddepcontrol.launch_dependents",
    "griddepcontrol.wait",
}
_NAMES: Final = sorted({form.opcode for form in FORMS if "." in form.opcode} | _FURTHER, reverse=True)
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
    """Read the messages of ptxas, as one reading, and every instruction that breaks a rule. If `read_waits` does not
    run `text`, also read instructions that break no rule, and judge the counts of mbarrier.init."""
    names = {row.name for row in ARCHITECTURES}
    arch = next((match[0] for match in some(_ARCH.finditer(text), 8) if match[0] in names), None)
    symbols = {match["name"]: match["space"] for match in some(_SYMBOL.finditer(text))}
    found = [*_messages(text), *_notes(text), *_usage(text), *_forms_of_atoms(text)]
    program = _IN_PROGRAM.search(text) is not None
    for match in some(_STATEMENT.finditer(text)):
        if _BARE.search(re.sub(r"\[\s{0,80}[A-Za-z_$][\w$]{0,100}", "[", match["operands"])):
            continue
        one = unless_refused(examine, match[0], symbols)
        if one is None:  # not in the table, or not an instruction
            continue
        reading = _instruction(one, match, arch)
        if not program:
            reading = replace(reading, broken=(*reading.broken, *_wrong_counts(one)))
        if reading.broken or not program:
            found.append(reading)
    return found


_IN_PROGRAM: Final = re.compile(r"mbarrier\.(?:arrive|test_wait|try_wait|expect_tx)")
"""Matches an instruction of a program that `read_waits` runs."""


def _instruction(one: ParsedInstruction, match: re.Match[str], arch: str | None) -> Reading:
    takes = [row.name for row in ARCHITECTURES if row.floor is not None and not one.check_target(row.name)]
    lines = [f"{need.what}: {need.targets.value}, PTX {version_text(need.since)} or newer" for need in one.requirements]
    broken = [Diagnostic("instruction", text=error, source="PTX ISA; ptxas 13.0.88") for error in one.errors]
    changes = []
    if one.errors and one.form is not None:
        changes = [f"{label}: {text}" for label, text in _written(one)]
    elif arch is not None and takes and arch not in takes:
        broken = one.check_target(arch)
        changes = [f"-arch={takes[0]}, or -gencode arch={takes[0].replace('sm_', 'compute_')},code={takes[0]}"]
    if takes and not one.canonical:
        lines.append(f"in the order of the PTX ISA: {one.canonical_text}")
    if takes and not broken:
        lines.append(f"it assembles for {', '.join(takes)}")
    # Keep a wrong instruction in the text: a CUDA error next to it is about this instruction.
    end = match.start() if broken and not match["name"].startswith("mbarrier") else match.end()
    return Reading(f"A PTX instruction: {match['name']}", match.start(), end, lines, broken, changes)


def _wrong_counts(one: ParsedInstruction) -> Iterator[Diagnostic]:
    """Find a number of arrivals that a barrier can't have, which ptxas does not check."""
    if one.form is None or one.form.name != "mbarrier.init":
        return
    from cute_py.ptx.phases import count_broken

    for operand, got in one.operands:
        if operand.name == "count" and got.value is not None and (found := count_broken(got.value)) is not None:
            yield found


_OF_ATOMS: Final = re.compile(r"(?<![\w.])(?:wgmma\.mma_async|ldmatrix|stmatrix)(?:\.[\w:]{1,40}){1,12}")
"""An instruction whose forms CuTe's atoms all issue."""


def _forms_of_atoms(text: str) -> Iterator[Reading]:
    """Read each instruction whose shape or count no atom has."""
    for match in some(_OF_ATOMS.finditer(text)):
        from cute_py.explanation.atoms import wrong_form

        if (wrong := wrong_form(match[0])) is not None:
            broken = Diagnostic("instruction", text=wrong, source="PTX ISA; the instructions of CuTe's atoms")
            scope = Scope(("the shape and the number of matrices",), ("the operands",))
            kind = f"A PTX instruction: {match[0].split('.')[0]}"
            yield Reading(kind, match.start(), match.start(), (), (broken,), scope=scope)


def _written(one: ParsedInstruction) -> Iterator[tuple[str, str]]:
    """Yield changed instructions that assemble, each with its label. A wrong number is replaced by the nearest valid
    numbers. Otherwise, the changed instruction has the same modifiers and default operands."""
    if one.form is None:
        return
    from cute_py.explanation.offers import passes_check

    made = []
    for operand, wrong in one.wrong_numbers:
        for number in nearest_numbers(operand, wrong.value or 0):
            operands = [str(number) if got is wrong else got.text for _, got in one.operands]
            made.append((f"{operand.name} = {number}", f"{one.text.split()[0]} {', '.join(operands)};"))
    if not one.wrong_numbers:
        modifiers: dict[str, Any] = dict(one.chosen)
        text = unless_refused(ptx, one.form.name, **modifiers)  # None: the modifiers can't be combined
        made += [("a form with these modifiers that assembles", text)] if text is not None else []
    yield from [(label, text) for label, text in made if passes_check(partial(_assembled, text))]


def _assembled(text: str) -> ParsedInstruction | None:
    examined = examine(text)
    return None if examined.errors else examined


# ---- what ptxas says -----------------------------------------------------------------------------------------------

_PTXAS: Final = re.compile(
    r"(?:ptxas[^\n]{0,300}?(?:error|fatal)\s{0,80}:\s{0,80}(?!\s|Ptx assembly aborted)|"
    r"(?=(?:Instruction|Feature) '[^'\n]{1,80}' (?:not supported on|requires) \.target))(?P<what>[^\n]{1,300})|"
    r"(?P<advice>Advisory: '[^'\n]{1,80}' modifier on instruction[^']{1,9}'[^'\n]{1,80}'[^']{1,60}'sm_\w{1,80}'"
    r"(?:\s{1,9}instead of[^'\n]{1,60}'sm_\w{1,80}')?)"
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
_FAMILY_FEATURES: Final[tuple[tuple[re.Pattern[str], range], ...]] = (
    (re.compile("wgmma"), range(90, 91)),
    (re.compile("tensormap.replace|setmaxnreg"), range(90, 122)),
    (re.compile(r"tcgen05|cta_group|gather4|scatter4|im2col::w|'\.[0-9]+x[0-9]+b'"), range(100, 111)),
)
"""(words for a feature, the architectures whose specific targets, such as sm_90a or sm_100a, have it). A feature that
is neither listed nor on sm_90 is not on sm_90a; on sm_100 and newer, the specific target may have it."""
_FIRST_OF_FAMILIES: Final = 100
_NO_SUCH_GPU: Final = re.compile(r"Value '\w{1,80}' is not defined for option")
_TOO_MUCH_SHARED: Final = re.compile(
    r"uses too much shared data \((?P<asked>0x[0-9a-f]{1,9}) bytes, (?P<most>0x[0-9a-f]{1,9}) max"
)
_UNRESOLVED: Final = re.compile(r"Unresolved extern (?:function|variable) '")
"""A message about the whole module, which names no line of PTX."""
_STOPPED: Final = re.compile(r"ptxas fatal\s{0,80}:\s{0,80}Ptx assembly aborted due to errors", re.IGNORECASE)
"""The last line of ptxas, which follows the errors."""


def _stopped(text: str) -> Iterator[Reading]:
    """Read the last line of ptxas where the text has none of its errors."""
    if (last := _STOPPED.search(text)) is not None:
        meaning = ("ptxas stopped after the errors that it printed before this line",)
        missing = ("the lines before this one, `ptxas ..., line N; error : ...`, and the lines N of the PTX",)
        yield Reading("The last line of ptxas", *last.span(), meaning, missing=missing)


def _messages(text: str) -> Iterator[Reading]:
    """Read all messages of ptxas as one reading, because the first is often the cause of the others."""
    matches = some(_PTXAS.finditer(text), 16)
    if not matches:
        yield from _stopped(text)
        return
    lines: dict[str, None] = {}
    advice: dict[str, None] = {}
    said = [" ".join((match["what"] or match["advice"]).split()) for match in matches]
    highest = max((_floor(what) for what in said), default=0)  # this target has the features of the lower ones
    for what in said:
        why, to_do = _message(what) if not 0 < _floor(what) < highest else ("", "")
        lines |= {why: None} if why else {}
        advice |= {to_do: None} if to_do else {}
    broken = [
        Diagnostic("ptxas", text=what, source="ptxas", severity="warning" if match["advice"] else "error")
        for match, what in zip(matches, said, strict=True)
    ]
    known = advice or _INSTRUCTION.search(text) or all(map(_UNRESOLVED.search, said))
    missing = () if known else ("the line of PTX that ptxas names, with its operands",)
    begin = matches[0].start(), max(match.end() for match in matches)
    kind = "An error from ptxas" if len(matches) == 1 else f"{len(matches)} errors from ptxas"
    kind = "An advisory from ptxas" if all(match["advice"] for match in matches) else kind
    yield Reading(kind, *begin, list(lines), list(dict.fromkeys(broken)), missing=missing, advice=list(advice))


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
        lines.insert(0, "the results are right, but each wgmma waits for the previous one")
    span = matches[0].start(), max(match.end() for match in matches)
    of = "wgmma" if any("setmaxnreg" not in match[0] for match in matches) else "registers"
    yield Reading(f"A note of ptxas on {of}", *span, lines, advice=[row.change for row in found])


_USED: Final = re.compile(
    r"(?:ptxas[^\n]{0,20}|^[ \t]{1,40})(?P<stack>[0-9]{1,7}) bytes stack frame, [0-9]{1,7} bytes spill stores, "
    r"[0-9]{1,7} bytes spill loads(?:\s{1,9}ptxas info\s{0,9}: Used (?P<registers>[0-9]{1,3}) registers[^\n]{0,400})?|"
    r"ptxas info\s{0,9}: Used (?P<alone>[0-9]{1,3}) registers[^\n]{0,400}",
    re.MULTILINE,
)
_SPILLS: Final = re.compile(r"\b([0-9]{1,7}) bytes spill stores, ([0-9]{1,7}) bytes spill loads")
_SMEM: Final = re.compile(r"\b([0-9]{1,7}) bytes smem")
MOST_REGISTERS: Final = 255
"""Maximum number of registers of a thread."""


def _usage(text: str) -> Iterator[Reading]:
    """Explain the registers, stack and shared memory of each kernel, as ptxas -v prints them."""
    for match in some(_USED.finditer(text), 8):
        lines, broken, advice = [], [], []
        registers = int(match["registers"] or match["alone"] or 0)
        if registers:
            most = most_threads(registers)
            lines.append(f"{registers} registers per thread: at most {most} threads in a block")
        if smem := _SMEM.search(match[0]):
            lines.append(f"{smem[1]} bytes of static shared memory, without the dynamic shared memory of a launch")
        spills = _SPILLS.search(match[0])
        if spills is not None and int(spills[1]) + int(spills[2]):
            found = f"each thread spills {spills[1]} bytes of stores and {spills[2]} of loads: registers "
            broken.append(Diagnostic("spills", text=f"{found}that are in local memory", severity="warning"))
            more = f", or allow more than {registers or 'these'} registers: fewer threads in __launch_bounds__, no "
            more = f"{more}-maxrregcount" if registers < MOST_REGISTERS else ""
            advice.append(
                f"use fewer values per thread (a smaller tile, more warps), index arrays by constants in unrolled "
                f"loops{more}"
            )
        elif spills is not None:
            lines.append("no register is spilled")
            stack = "a stack frame without spills contains arrays with a run-time index, or the frames of calls"
            lines += [stack] if int(match["stack"] or 0) else []
        yield Reading("Register usage of a kernel, as ptxas prints it", *match.span(), lines, broken, advice=advice)


def _message(what: str) -> tuple[str, str]:
    """Explain one message of ptxas. Return the reason, and what to do; each is empty if it is not known."""
    if needed := _NEEDS_VERSION.search(what):
        version = needed["version"]
        return (
            f"the .version of the PTX is older than {version}",
            f"use .version {version} or later; a compiler writes the version of its toolkit, so use a newer toolkit",
        )
    if old := _OLD_PTXAS.search(what):
        why = f"this ptxas reads PTX up to {old['known']}; the compiler that wrote {old['version']} is newer"
        return (
            why,
            f"put the ptxas of a toolkit with PTX {old['version']} first in PATH, or use an older compiler",
        )
    if other := _OTHER_ARCH.search(what):
        why = f"the PTX is for {other['arch']}, and ptxas or the driver was asked for {other['asked']}"
        return why, _compiled(other["arch"])
    if advised := _ADVISED.search(what):
        return "legal for both targets, but an error if warnings are errors", _compiled(advised["arch"])
    if few := _FEW_REGISTERS.search(what):
        return _few_registers(int(few["had"]), int(few["needs"] or 0))
    if unknown := _NO_TARGET.search(what):
        floor = next((row.floor for row in ARCHITECTURES if row.name == unknown["arch"]), None)
        to_do = f"use .version {version_text(floor)} or later for {unknown['arch']}" if floor is not None else ""
        return "this .version of PTX is too old for the target", to_do
    if _NO_SUCH_GPU.search(what):
        to_do = "use the ptxas of a toolkit whose nvcc --list-gpu-code lists the target"
        return "this ptxas does not know the target: it is older than the GPU, or no longer supports it", to_do
    if shared := _TOO_MUCH_SHARED.search(what):
        asked, most = int(shared["asked"], 16), int(shared["most"], 16)
        why = f"the kernel declares {asked} bytes of static shared memory; the limit is {most}"
        if most == SHARED_AT_ONCE:
            return why, "declare it extern __shared__, and pass the size at the launch"
        return why, "use fewer stages, or a smaller tile"
    if (target := _TARGET.search(what)) is None:
        meaning = first_of("ptxas_errors", what)
        return "" if meaning is None else meaning.text, ""
    number, named = int(target["number"]), target["arch"]
    known = next((numbers for words, numbers in _FAMILY_FEATURES if words.search(what)), None)
    if known is not None and number >= known.stop:
        last = known.stop - 1
        have = f"sm_{known.start}" + (f" to sm_{last}" if last > known.start else "")
        why = f"only {have} GPUs support this; a {named} GPU does not, for any target"
        own = f"sm_{known.start}a"
        return why, f"compile this code only for {have} ({_compiled(own)}), and other code for {named}"
    if known is not None or target["needs"] is None:
        own = f"sm_{number if known is None or number in known else known[0]}a"
        if own == named and target["needs"]:
            return f"the target of this compilation is not {named}", _compiled(named)
        if own == named or (known is None and number < _FIRST_OF_FAMILIES):
            return f"{named} does not have this", ""
        why = (
            f"this feature belongs to one architecture and needs its specific target, {own}; later GPUs do not run "
            "that code"
        )
        return why, _compiled(own)
    return f"the target of this compilation is below {named}", _compiled(named)


def _floor(what: str) -> int:
    """The number of the lowest target that a message requires; 0 if it requires none."""
    target = _TARGET.search(what)
    return int(target["number"]) if target is not None and target["needs"] is not None else 0


def _few_registers(had: int, needs: int) -> tuple[str, str]:
    """Explain that an instruction has too few registers, and give the block size that leaves enough. Return the reason
    and the change."""
    why = (
        f"ptxas had {had} registers per thread: the {REGISTERS} registers of a multiprocessor divided by the threads "
        f"of the block, or -maxrregcount. ptxas does not count registers that setmaxnreg adds later"
    )
    warpgroups = REGISTERS // max(needs, 1) // 128
    fewer = f"use at most {128 * warpgroups} threads ({needs} registers), or " if needs and 0 < warpgroups < 8 else ""
    return why, f"{fewer}a smaller tile for each thread"


def _compiled(name: str) -> str:
    compute = name.replace("sm_", "compute_")
    return f"-arch={name}, or -gencode arch={compute},code={name}; in Triton and NVRTC the same target"


# ---- programs that wait forever ------------------------------------------------------------------------------------

_STEP: Final = re.compile(
    r"(?:^[^\n]*?|(?<=[;\s]))\b"
    r"(?P<op>mbarrier\.(?P<verb>init|arrive(?:_drop)?|expect_tx|try_wait|test_wait|complete_tx)[\w.:]*+|"
    r"cp\.(?:reduce\.)?async\.bulk[\w.:]*+)(?P<operands>[^\n;]*+);?"
    r"(?P<note>(?:(?://|#)[^\n]*+|(?!\bmbarrier\.|\bcp\.(?:reduce\.)?async\.bulk)[^\n])*+)",
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
"""Inserted after the last mbarrier.init, so that another CTA, and a copy, may use the barrier."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One mbarrier or copy instruction of a pasted program.

    Attributes:
        line: line of the text. verb: 'init', 'arrive', 'expect_tx', 'complete_tx', 'try_wait', 'copy' and others.
            barrier: the barrier's name in the text. number: a count, bytes, or a parity. threads: the number of threads
            that execute the instruction. ctas: the CTAs that execute it, if the text names them; empty: all. receivers:
            the CTAs that receive a multicast.
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
    """The mbarrier and copy instructions of a pasted text, with lines about them, and with the data that the text
    lacks."""

    text: str
    steps: list[_Step] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def add(self, step: re.Match[str]) -> None:
        """Add the instruction of a match, if it names a barrier."""
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
            self.lines.append(f"{name}: a phase needs {counted(count, 'arrival')} and the announced bytes")
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
        """Add a copy instruction with its number of bytes and the CTAs that receive them."""
        if ".tensor" in op:
            box = _BOX.search(note) or _BOX.search(self.text)
            kind = TYPE_NAME.search(note) or TYPE_NAME.search(self.text)
            if box is None or kind is None:
                missing = f"the box and the element type of {op.split('.mbarrier')[0]}"
                self.unknown.append(f"{missing}: the text does not contain its bytes")
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
        """Whether the text initialises a barrier. If it does not, every barrier is assumed to expect one arrival."""
        return any(step.verb == "init" for step in self.steps)

    def judged(self) -> list[_Step]:
        """The instructions, without the waits whose data the text lacks."""
        used = {step.barrier for step in self.steps if step.verb not in ("init", "wait")}
        found = []
        for step in self.steps:
            if step.verb == "wait" and not self.initialises and step.barrier not in used:
                self.unknown.append(f"the initialisation of {step.barrier}, and the arrivals on it")
            elif step.verb != "wait" or not self.unknown:
                found.append(step)
        return found


def _kernel_text(steps: Sequence[_Step], initialises: bool) -> tuple[str, int, list[str]]:
    """Make a kernel of these steps, each on its own line after `_HEAD`. Return the PTX, the number of CTAs, and the
    names of the barriers in the order of their addresses."""
    names = list(dict.fromkeys(step.barrier for step in steps))
    ctas = 1 + max((max(step.ctas + step.receivers, default=0) for step in steps), default=0)
    rows: list[str] = [""] * max(step.line for step in steps)
    if not initialises:
        rows[0] = "".join(f"mbarrier.init.shared.b64 [%r2+{8 * i}], 1; " for i in range(len(names))) + _READY
    last = max((step.line for step in steps if step.verb == "init"), default=0)
    for number, step in enumerate(steps):
        at, count = 8 * names.index(step.barrier), step.number
        for cta, lines in _instructions(step, at, count, number):
            guard = "" if cta is None else f"setp.eq.u32 %c, %r1, {cta}; "
            rows[step.line - 1] += guard + " ".join(f"{'' if cta is None else '@%c '}{line};" for line in lines) + " "
    if last:
        rows[last - 1] += _READY
    head = _HEAD.format(ctas=ctas, bars=len(names))
    return head + "\n".join(rows) + "\nret; }\n", ctas, names


def _instructions(step: _Step, at: int, count: int, number: int) -> Iterator[tuple[int | None, list[str]]]:
    """Yield (CTA that executes them or None for all, instructions) for a step whose barrier is `at` bytes after the
    first."""
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


def _run_errors(steps: Sequence[_Step], initialises: bool) -> list[Diagnostic]:
    """Run the steps, and return the errors that the run finds, with the barrier names and line numbers of the pasted
    text. Without a wait, the text is only a part of a program, so only errors in operands are returned."""
    if not steps:
        return []
    from cute_py.machine.run import run_ptx

    text, ctas, names = _kernel_text(steps, initialises)
    found = run_ptx(text, grid=ctas, schedule="eager", limit=1 << 16).diagnostics
    errors = [one for one in found if one.severity == "error" and (_waits(steps) or one.rule in _OF_OPERANDS)]
    return [
        replace(one, text=_in_the_text(one.message, names), fixes=tuple([_in_the_text(f, names) for f in one.fixes]))
        for one in errors
    ]


_OF_OPERANDS: Final = ("transaction count", "mbarrier count")
"""Rules that an instruction breaks alone."""


def _waits(steps: Sequence[_Step]) -> bool:
    return any(step.verb == "wait" for step in steps)


def _in_the_text(said: str, names: Sequence[str]) -> str:
    """Replace line numbers and barrier addresses in a message of `run_ptx` by the lines and barrier names of the pasted
    text."""
    said = _LINE.sub(lambda found: f"line {int(found[1]) - _HEAD_LINES}", said)
    for number, name in reversed(list(enumerate(names))):
        address = f"{_BASE + 8 * number:#x}"
        said = said.replace(f"the mbarrier at {address}", name).replace(f"mbarrier at {address}", name)
        said = said.replace(f"shared address {address}", name)
    return said


def read_waits(text: str) -> list[Reading]:
    """Run a pasted program of mbarrier and bulk copy instructions in the emulator, and explain the waits that never
    end."""
    matches = some(_STEP.finditer(text), 200)
    if not {step["verb"] for step in matches} & {"arrive", "try_wait", "test_wait", "expect_tx"}:
        return []
    program = _Program(text)
    for match in matches:
        program.add(match)
    if not program.steps and not program.unknown:
        program.unknown.append("the operands of the mbarrier instructions: barriers, counts, bytes and parities")
    steps, hangs = program.judged(), HANG.search(text)
    broken = _run_errors(steps, program.initialises)
    advice, changes = list[str](), list(dict.fromkeys(fix for one in broken for fix in one.fixes))
    if broken and not changes and not any(one.rule in _OF_OPERANDS for one in broken):
        changes = list(_tried_changes(steps, program.initialises))
    if not broken and not program.unknown and not _waits(steps):
        program.unknown.append("a wait, such as mbarrier.try_wait: without one, only the operands were judged")
    if not broken and program.unknown:  # the machine did not run the waits
        broken = [*_without_arrivals(program.steps)]
        advice = ["let one thread execute mbarrier.arrive.expect_tx with the bytes of the copy"] if broken else []
    if not broken and hangs and not program.unknown:
        where = "check the parity, other barriers, and whether all loads were issued"
        program.lines.append(f"the bytes and the arrivals balance; {where}")
    begun, waits = _ROUND.search(text), [match for match in matches if match["verb"] in _WAITS]
    constant = [match for match in waits if re.search(r",\s{0,80}[01]\s{0,80}$", match["operands"])]
    if begun is not None and constant and constant[-1].start() > begun.start():
        same = (
            "a wait in a loop uses the same parity in every iteration, so every second wait passes before its phase "
            "completes"
        )
        broken.append(Diagnostic("never completes phase", text=same, source="PTX ISA, mbarrier"))
        advice.append("flip the parity in every iteration: 0, 1, 0, 1, ...")
    kind = "A program of mbarrier and copy instructions" + (" that waits forever" if hangs else "")
    span = matches[0].start(), max(matches[-1].end(), hangs.end() if hangs else 0)
    elsewhere = "Check whether every thread that should arrive reaches its instruction, and check the addresses."
    unknown = list(dict.fromkeys(program.unknown))
    return [Reading(kind, *span, program.lines, broken, changes, unknown, elsewhere, not unknown, advice=advice)]


def _without_arrivals(steps: Sequence[_Step]) -> Iterator[Diagnostic]:
    """Find barriers that the text initialises and waits for, although none of its instructions arrives on them."""
    begun = {step.barrier: step for step in steps if step.verb == "init"}
    arrived = {step.barrier for step in steps if step.verb in ("arrive", "announce")}
    for name in dict.fromkeys(step.barrier for step in steps if step.verb == "wait"):
        if name in begun and name not in arrived:
            needed = counted(begun[name].number, "arrival")
            text = (
                f"no instruction of the text arrives on {name}: a phase needs {needed}, and a copy delivers only bytes"
            )
            yield Diagnostic("never completes phase", text=text, source="PTX ISA, mbarrier")


def _tried_changes(steps: Sequence[_Step], initialises: bool) -> Iterator[str]:
    """Find the first change of one step that makes the program run without errors: the expected bytes, the CTAs that
    announce them, or a parity."""
    left = _MOST_RUNS
    for place, step in enumerate(steps):
        if step.verb == "wait":
            other = 1 - step.number
            text = f"wait with parity {other} in line {step.line}, and flip it in every iteration"
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
            if not _run_errors([*steps[:place], changed, *steps[place + 1 :]], initialises):
                yield text
                return


def _threads(note: str) -> int:
    """The number of threads that run an instruction, from its comment: 'all 128 threads', 'thread 0', 'each of 4
    warps'."""
    found = re.search(r"(?:all|by|each of|every one of)?\s{0,80}(?:the\s{1,80})?([0-9]{1,5}) threads", note)
    if found is not None:
        return int(found[1])
    warps = re.search(r"([0-9]{1,3}) warps", note)
    return int(warps[1]) if warps else 1


_WITHOUT_BARRIER: Final = 2
"""The number of addresses of a bulk copy that completes no barrier: destination and source."""


def _barrier_of(op: str, places: Sequence[str]) -> str | None:
    """The barrier operand of an instruction: the last address of a bulk copy, the first address of any other
    instruction."""
    if op.startswith("cp."):
        named = bool(places) and ("mbarrier" in op or len(places) > _WITHOUT_BARRIER)
        return places[-1].split(",")[0].strip() if named else None
    return places[0] if places else None
