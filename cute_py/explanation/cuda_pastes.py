"""Errors of the CUDA driver, the runtime and compute-sanitizer in a text, and short PTX programs that wait forever.

An error has a number, two names and a message; one row of `ERRORS` has them all, and the terms of `reasons` its
meaning. What the text says of addresses (`smem + 16`) is judged by the alignment that the thing must have. A
program of mbarrier and copy instructions is run on the emulator's barrier, which then shows what each wait is short of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.reasons import TERMS, TRAP_REASONS
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.emulator.mbarrier import MAX_COUNT, Mbarrier

# number | driver's name after CUDA_ERROR_ | runtime's name after cudaError | message, without case
_ROWS: Final = """
1 | INVALID_VALUE | InvalidValue | invalid argument
2 | OUT_OF_MEMORY | MemoryAllocation | out of memory
3 | NOT_INITIALIZED | InitializationError | initialization error
100 | NO_DEVICE | NoDevice | no CUDA-capable device is detected
201 | INVALID_CONTEXT | DeviceUninitialized | invalid device context
209 | NO_BINARY_FOR_GPU | NoKernelImageForDevice | no kernel image is available
218 | INVALID_PTX | InvalidPtx | a PTX JIT compilation failed
222 | UNSUPPORTED_PTX_VERSION | UnsupportedPtxVersion | the provided PTX was compiled with an unsupported toolchain
700 | ILLEGAL_ADDRESS | IllegalAddress | an illegal memory access was encountered
701 | LAUNCH_OUT_OF_RESOURCES | LaunchOutOfResources | too many resources requested for launch
702 | LAUNCH_TIMEOUT | LaunchTimeout | the launch timed out and was terminated
715 | ILLEGAL_INSTRUCTION | IllegalInstruction | an illegal instruction was encountered
716 | MISALIGNED_ADDRESS | MisalignedAddress | misaligned address
717 | INVALID_ADDRESS_SPACE | InvalidAddressSpace | operation not supported on global/shared address space
719 | LAUNCH_FAILED | LaunchFailure | unspecified launch failure
801 | NOT_SUPPORTED | NotSupported | operation not supported
912 | INVALID_CLUSTER_SIZE | InvalidClusterSize | cluster misconfiguration
999 | UNKNOWN | Unknown | unknown error
"""


@dataclass(frozen=True, slots=True)
class CudaError:
    """One error, by its number and its names."""

    number: int
    driver: str
    runtime: str
    message: str

    @property
    def pattern(self) -> str:
        names = f"CUDA_ERROR_{self.driver}|cudaError{self.runtime}\\b|{re.escape(self.message)}"
        counted = rf"(?:\b(?:error|sync|result|status|code|returned|CUresult|rc)\b[ =:(]*){self.number}\b"
        return f"{names}|{counted}" if self.number > 3 else f"{names}|CUDA error:? *{self.number}\\b"


ERRORS: Final = tuple(
    CudaError(int(number), driver, runtime, message)
    for number, driver, runtime, message in (re.split(r" \| ", row) for row in _ROWS.strip().split("\n"))
)
"""The errors of a program with TMA."""

_SANITIZER: Final = re.compile(
    r"=+\s*(?P<what>Illegal instruction|Invalid __(?P<space>\w+)__ (?P<access>\w+) of size (?P<size>[0-9]+) bytes|"
    r"Misaligned (?:Shared or Local )?Address|Barrier error[^\n]{0,120}|Warp Illegal Instruction|"
    r"Out-of-range[^\n]{0,80})",
    re.IGNORECASE,
)
_AT: Final = re.compile(r"=+\s*at (?:0x[0-9a-f]+ in )?(?P<where>[^\n]{1,300})")
_FAULT: Final = re.compile(r"Address (?P<address>0x[0-9a-fA-F]{1,16}) is (?P<why>[^\n]{1,160})")
_OFFSET: Final = re.compile(
    r"(?P<what>smem|shared|destination|dst|source|src|stage|tile|bar(?:rier)?|mbar(?:rier)?|map|desc(?:riptor)?|tensor_?map|"
    r"global|gmem|base)\w*(?P<between>[^\n;]{0,40}?)\+\s*(?P<offset>(?:0x[0-9a-fA-F]{1,8}|[0-9]{1,8}))\b",
    re.IGNORECASE,
)
_ALIGNMENTS: Final[tuple[tuple[str, int, str], ...]] = (
    ("mbar|bar", 8, "an mbarrier must be aligned to 8 bytes"),
    ("map|desc", 64, "a tensor map must be aligned to 64 bytes (128 since CUDA 13)"),
    ("global|gmem", 16, "a global address of a bulk copy must be a multiple of 16 bytes"),
    (
        "",
        128,
        "the shared-memory address of a tensor copy must be a multiple of 128 bytes (256, 512 or 1024 with the "
        "32B, 64B or"
        " 128B swizzle, where its pattern repeats)",
    ),
)
"""(what the text names, bytes, the rule), the first that fits."""
_BULK: Final = re.compile(r"cp\.(?:reduce\.)?async\.bulk|tma|tensor_?map|CUtensorMap", re.IGNORECASE)


def read_errors(text: str) -> list[Reading]:
    """Every CUDA error in a text, with what can have caused it in a program with TMA; then the sanitizer's reports."""
    sanitizer = [*_sanitizer(text)]
    if sanitizer:
        return sanitizer
    found: list[Reading] = []
    for row in ERRORS:
        match = re.search(row.pattern, text, re.IGNORECASE)
        if match is not None:
            found.append(_error(text, match.span(), row))
    return found


def _error(text: str, span: tuple[int, int], row: CudaError) -> Reading:
    name = f"CUDA_ERROR_{row.driver}"
    lines = [f"{row.number}, cudaError{row.runtime}: {row.message}"]
    term = TERMS.get(name)
    if term is not None:
        lines += [term.why, f"to do: {term.fix}"]
    broken = [*_offsets(text)] if row.number in (716, 715, 700, 719) else []
    lines += _causes(text, row.number, bool(broken))
    changes = [f"align {d.argument} to {d.facts['alignment']} bytes" for d in broken]
    missing = (
        ()
        if broken or row.number in (1, 3, 100, 201)
        else ("the instruction and its operands: address, coordinates, map",)
    )
    return Reading(f"{name}, an error of CUDA", *span, tuple(lines), tuple(broken), tuple(changes), missing)


def _offsets(text: str) -> Iterator[Diagnostic]:
    """Addresses that a text gives as a base and an offset, against the alignment of what they are."""
    for match in some(_OFFSET.finditer(text), 8):
        what, offset = match["what"].lower(), int(match["offset"], 16 if "x" in match["offset"].lower() else 10)
        alignment, rule = next((bytes_, text_) for name, bytes_, text_ in _ALIGNMENTS if re.search(name, what))
        if offset % alignment:
            found = f"{match[0].strip()}: {offset} is not a multiple of {alignment}; {rule}"
            yield Diagnostic(
                "shared-memory address", match["what"], text=found, source="PTX ISA", facts={"alignment": alignment}
            )


def _causes(text: str, number: int, known: bool) -> list[str]:
    """What a kernel with TMA does wrong where this error is reported, the commonest first."""
    if number == 715:
        return [
            "at a TMA instruction the commonest cause is a bad descriptor: one that was never encoded, was "
            "overwritten, was"
            " copied to the stack or is not __grid_constant__, or is not visible yet (fence.proxy.tensormap "
            "after a change)",
            *(f"or {name}: {reason.why}" for name, reason in TRAP_REASONS.items() if _is_trap(name)),
        ]
    if number == 716 and not known:
        return [rule for _, _, rule in _ALIGNMENTS]
    if number == 700:
        return [
            "at a TMA instruction: the map's address, sizes or strides reach memory that is not allocated "
            "(freed, or of "
            "another size than the map says), the descriptor itself is at an address that the GPU can't read, "
            "or the box "
            "leaves the shared memory of the block",
            "a box that is larger than the tensor is no cause: what lies outside of the tensor is filled",
        ]
    if number == 719:
        return [
            "a trap instruction of the kernel (a bounded wait that gave up), an mbarrier that overflowed its "
            "counts, or an "
            "assertion; at a wait: the bytes that were expected are not the bytes that came"
        ]
    if number == 701:
        asked = [int(n) for n in re.findall(r"\b([0-9]{5,7})\b", text)]
        over = [n for n in asked if 49152 < n < 1 << 22]
        more = [f"{over[0]} bytes are asked for"] if over else []
        return [
            *more,
            "more than 49152 bytes (48 KB) of dynamic shared memory need cuFuncSetAttribute; a block has at "
            "most 232448",
        ]
    return []


def _is_trap(name: str) -> bool:
    return name.startswith(("inner", "negative", "reduction", "base", "im2col"))


def _sanitizer(text: str) -> Iterator[Reading]:
    for match in some(_SANITIZER.finditer(text), 8):
        end = min(len(text), match.end() + 1500)
        notes = text[match.end() : end]
        what = match["what"]
        lines = [f"compute-sanitizer reports: {what}"]
        where = _AT.search(notes)
        if where is not None:
            lines.append(f"at {where['where'].strip()}")
        fault = _FAULT.search(notes)
        broken: list[Diagnostic] = []
        changes: list[str] = []
        if fault is not None:
            address = int(fault["address"], 16)
            lines.append(
                f"address {fault['address']} {'is' if 'is' not in fault['why'][:3] else ''} {fault['why'].strip()}"
            )
            if "misaligned" in fault["why"].lower():
                size = int(match["size"] or 16)
                over = address % max(size, 1)
                broken.append(
                    Diagnostic(
                        "alignment",
                        "address",
                        over,
                        "bytes",
                        text=f"{address:#x} is {over} bytes beyond a multiple of {size}",
                    )
                )
        number = 715 if "instruction" in what.lower() else 716 if "misaligned" in what.lower() else 700
        if "barrier" in what.lower():
            number = 719
        row = next(row for row in ERRORS if row.number == number)
        term = TERMS.get(f"CUDA_ERROR_{row.driver}")
        lines += [term.why] if term is not None else []
        lines += _causes(text, number, bool(broken))
        if where is not None and re.search("tma|tensormap", where["where"], re.IGNORECASE) and number != 715:
            lines.append("the place is a TMA instruction: check the descriptor first, then address and coordinates")
        broken += _offsets(notes)
        missing = (
            () if broken else ("the descriptor's bytes (print its 16 words) and the coordinates of the instruction",)
        )
        yield Reading(
            "A report of compute-sanitizer", match.start(), end, tuple(lines), tuple(broken), tuple(changes), missing
        )


# ---- programs that wait forever ------------------------------------------------------------------------------------

_STEP: Final = re.compile(
    r"^[^\n]*?\b(?P<op>mbarrier\.(?P<verb>init|arrive(?:_drop)?|expect_tx|try_wait|test_wait|complete_tx)[\w.:]*|cp\.(?:reduce\.)?async\.bulk[\w.:]*)"
    r"(?P<operands>[^\n;]*);?(?P<note>[^\n]*)$",
    re.MULTILINE,
)
_HANG: Final = re.compile(
    r"never (?:ends|completes|returns)|hangs?\b|dead ?lock|stuck|timed? ?out|infinite|forever", re.IGNORECASE
)
_BOX: Final = re.compile(r"box\s*[{(\[]\s*(?P<box>[0-9, x]{1,60})[})\]]", re.IGNORECASE)
_DTYPE: Final = re.compile(
    r"\b(float16|bfloat16|half|float32|float|float64|double|u?int8|u?int16|u?int32|u?int64|float8\w*|fp8|fp16|bf16|fp32)\b"
)
_ALIASES: Final = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "fp8": "uint8",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
}


@dataclass(slots=True)
class _Barrier:
    """A barrier of a program, and what it has seen."""

    name: str
    barrier: Mbarrier
    expected: int = 0
    delivered: int = 0
    arrivals: int = 0
    notes: list[str] = field(default_factory=list)


def read_waits(text: str) -> list[Reading]:
    """A program of mbarrier and bulk copy instructions, run on the emulator's barrier."""
    steps = some(_STEP.finditer(text), 200)
    verbs = {step["verb"] for step in steps}
    if not steps or not verbs & {"arrive", "try_wait", "test_wait", "expect_tx"}:
        return []
    barriers: dict[str, _Barrier] = {}
    lines: list[str] = []
    broken: list[Diagnostic] = []
    changes: list[str] = []
    unknown: list[str] = []
    for step in steps:
        _run(step, text, barriers, lines, broken, changes, unknown)
    hangs = _HANG.search(text)
    if not broken and hangs and not unknown:
        lines.append(
            "the bytes and the arrivals balance: look at the parity, at another barrier, or at a load that was "
            "not issued"
        )
    kind = "A program of mbarrier and copy instructions" + (" that waits forever" if hangs else "")
    end = max(steps[-1].end(), hangs.end() if hangs else 0)
    elsewhere = "Look at whether every thread that should arrive reaches its instruction, and at the addresses."
    return [
        Reading(
            kind,
            steps[0].start(),
            end,
            tuple(lines),
            tuple(broken),
            tuple(changes),
            tuple(unknown),
            elsewhere,
            judged=not unknown,
        )
    ]


def _threads(note: str) -> int:
    """How many threads run an instruction, by its comment: 'all 128 threads', 'thread 0', 'each of 4 warps'."""
    found = re.search(r"(?:all|by|each of|every one of)?\s*(?:the\s+)?([0-9]{1,5}) threads", note)
    if found is not None:
        return int(found[1])
    warps = re.search(r"([0-9]{1,3}) warps", note)
    return int(warps[1]) if warps else 1


def _run(
    step: re.Match[str],
    text: str,
    barriers: dict[str, _Barrier],
    lines: list[str],
    broken: list[Diagnostic],
    changes: list[str],
    unknown: list[str],
) -> None:
    operands = [part.strip() for part in re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^\s,;]+", step["operands"])]
    places = [part.strip("[]") for part in operands if part.startswith("[")]
    numbers = [
        int(part, 16 if part.startswith("0x") else 10)
        for part in operands
        if re.fullmatch(r"0x[0-9a-fA-F]{1,12}|[1-9][0-9]{0,11}|0", part)
    ]
    note, op, verb = step["note"], step["op"], step["verb"]
    if verb == "init":
        count = numbers[-1] if numbers else 1
        if places and 1 <= count <= MAX_COUNT:
            barriers[places[0]] = _Barrier(places[0], Mbarrier(count, name=places[0]))
            lines.append(f"{places[0]}: a phase takes {count} arrivals and the bytes that are announced")
        return
    name = _barrier_of(op, places)
    if name is None:
        return
    if name not in barriers:
        if any(s["verb"] == "init" for s in some(_STEP.finditer(text), 200)):
            broken.append(
                Diagnostic(
                    "barrier",
                    text=f"{name} is used and not initialised; the program initialises {', '.join(barriers) or 'none'}",
                )
            )
        barriers[name] = _Barrier(name, Mbarrier(1, name=name))
    held = barriers[name]
    try:
        if verb is None:
            _load(op, operands, numbers, note, text, held, lines, unknown)
        elif verb.startswith("arrive"):
            count = _threads(note)
            if "expect_tx" in op and numbers:
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
            parity = numbers[-1] & 1 if numbers else 0
            _wait(held, parity, broken, changes, unknown)
    except CuteError as error:
        broken.append(Diagnostic("mbarrier", text=f"{name}: {error.headline}", source="PTX ISA, mbarrier"))


def _barrier_of(op: str, places: Sequence[str]) -> str | None:
    """The barrier that an instruction names: the last address of a load, the first one of others."""
    if op.startswith("cp."):
        return places[-1].split(",")[0].strip() if "mbarrier" in op and places else None
    return places[0].split("+")[0].strip() if places else None


def _load(
    op: str,
    operands: Sequence[str],
    numbers: Sequence[int],
    note: str,
    text: str,
    held: _Barrier,
    lines: list[str],
    unknown: list[str],
) -> None:
    count = 0
    if ".tensor" in op:
        box = _BOX.search(note) or _BOX.search(text)
        kind = _DTYPE.search(note) or _DTYPE.search(text)
        if box is None or kind is None:
            unknown.append(f"the box and the element type of {op.split('.mbarrier')[0]}: its bytes are not in the text")
            return
        sizes = [int(n) for n in re.findall(r"[0-9]{1,9}", box["box"])]
        bits = as_dtype(_ALIASES.get(kind[1], kind[1] if not kind[1].startswith("float8") else "uint8")).bits
        count = math.prod(sizes) * bits // 8
        lines.append(f"the copy moves a box of {' x '.join(map(str, sizes))} elements of {bits} bits: {count} bytes")
    else:
        sized = [n for n in numbers if n >= STORE_UNIT]
        if not sized:
            unknown.append(f"the number of bytes of {op}")
            return
        count = sized[-1]
        lines.append(f"the copy moves {count} bytes")
    held.delivered += count
    held.barrier.complete_tx(min(count, MAX_COUNT))


def _wait(held: _Barrier, parity: int, broken: list[Diagnostic], changes: list[str], unknown: list[str]) -> None:
    """Whether a wait is satisfied; what it is short of."""
    if held.barrier.try_wait(parity):
        return
    if unknown and not held.delivered:
        return
    barrier = held.barrier
    if barrier.pending and held.arrivals < barrier.arrive_count:
        text = (
            f"{held.name}: {barrier.arrive_count} arrivals complete a phase and {held.arrivals} came; "
            f"{barrier.pending} are missing"
        )
        broken.append(Diagnostic("never completes phase", text=text, source="PTX ISA, mbarrier"))
        changes.append(
            f"initialise {held.name} with {max(held.arrivals, 1)}, or let {barrier.pending} more threads arrive"
        )
    if held.expected != held.delivered:
        more = held.delivered - held.expected
        short = f"{more} bytes more than expected" if more > 0 else f"{-more} bytes never come"
        text = (
            f"{held.name}: {held.expected} bytes are expected and {held.delivered} are delivered: {short}, "
            "so the count does not return to zero"
        )
        broken.append(Diagnostic("never completes phase", text=text, source="PTX ISA, mbarrier"))
        changes.append(f"expect {held.delivered} bytes")
    elif not barrier.pending or held.arrivals >= barrier.arrive_count:
        text = (
            f"{held.name}: the wait names parity {parity}, which is that of the current phase "
            f"{barrier.phase}; it is over after the next one"
        )
        broken.append(Diagnostic("never completes phase", text=text, source="PTX ISA, mbarrier"))
        changes.append(f"wait with parity {1 - parity}, and flip it each time round")
    return
