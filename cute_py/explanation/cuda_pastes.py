"""Read errors of the CUDA driver, the CUDA runtime and compute-sanitizer in pasted text.

Each error has a number, two names and a message. `rows/cuda_errors.toml` has one row per error, and a term of `reasons`
gives its meaning. Addresses in the text (`smem + 16`) are checked for the alignment that the object at the address
needs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.reasons import TERMS, TRAP_REASONS
from cute_py.explanation.rows.known_texts import tables
from cute_py.tma.descriptor.limits import GPUS, STORE_UNIT


@dataclass(frozen=True, slots=True)
class CudaError:
    """One CUDA error: its number, its names, and its causes in a program that uses TMA.

    Attributes:
        rule: the driver's name for the error; runtime: the runtime's name; message: the message of both, in upper or
            lower case.
        logged: a pattern of the kernel module's line in the system log.
        exceptions: number and title of the cuda-gdb exceptions that stop a kernel with this error.
        causes: mistakes in TMA kernels that CUDA reports as this error, the most common first.
        refused: the meaning of this error as the result of cuTensorMapEncode*.
    """

    number: int
    rule: str
    runtime: str
    message: str
    logged: str = ""
    exceptions: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    refused: str = ""

    def find(self, text: str) -> re.Match[str] | None:
        """The first match of the error in `text`."""
        return error_pattern(self).search(text)


@functools.cache
def error_pattern(error: CudaError) -> re.Pattern[str]:
    """A pattern that matches the names, the message and the number of an error, as programs print them; after the name
    of a CUDA function, also the driver's name without CUDA_ERROR_."""
    names = f"{error.rule}|{error.runtime}\\b|{re.escape(error.message)}(?! on | happened)"
    names += f"|{error.logged}" if error.logged else ""
    for exception, _, title in (one.partition(" ") for one in error.exceptions):
        names += f"|CUDA_EXCEPTION_{exception}\\b|{title}"
    counted = rf"(?:\b(?:error|sync|result|status|code|returned|CUresult|rc)\b[ =:(]{{0,40}}){error.number}\b"
    is_common = error.number <= 3 or error.number == 500  # of HTTP too
    counted = counted if not is_common else rf"CUDA error:? {{0,40}}{error.number}\b"
    short = error.rule.removeprefix("CUDA_ERROR_")
    counted += rf"|(?-i:\bcu(?:da)?[A-Z][a-z]\w{{1,40}}\b[^\w\n][^\n]{{0,60}}?\b{short}\b)" if "_" in short else ""
    return re.compile(f"{names}|{counted}", re.IGNORECASE)


ERRORS: Final = tuple(
    CudaError(**{**row, **{name: tuple(row.get(name, ())) for name in ("exceptions", "causes")}})
    for row in tables("cuda_errors")["row"]
)
"""The errors of a program with TMA."""
_BY_NUMBER: Final = {row.number: row for row in ERRORS}

_SANITIZER: Final = re.compile(
    r"(?:(?<!=)=++\s{0,80}+|(?<!\w)(?=Invalid __))(?P<what>Illegal instruction|Invalid __(?P<space>"
    r"\w{1,80})__ (?P<access>[\w?]{1,100}) of size (?P<size>[0-9]{1,100}) bytes|"
    r"Misaligned (?:Shared or Local )?Address|Barrier error[^\n]{0,120}|Warp Illegal Instruction|"
    r"Out-of-range[^\n]{0,80})",
    re.IGNORECASE,
)
_AT: Final = re.compile(r"(?:(?<!=)=++\s{0,80}+|\n[ \t]{0,80}+)at (?:0x[0-9a-f]{1,100} in )?(?P<where>[^\n]{1,300})")
_IN_TMA: Final = re.compile(
    r"SM[0-9]{2,3}_\w{0,80}TMA_\w{1,80}::|copy_sm[0-9]{2,3}_tma|UTMA[A-Z]{2,6}|async_bulk|\btma::", re.IGNORECASE
)
"""Matches the place of a TMA instruction, in contrast to a place in a kernel whose name or arguments mention TMA."""
_BEYOND_SHARED: Final = re.compile(r"Out-of-range shared or local", re.IGNORECASE)
_FAULT: Final = re.compile(r"Address (?P<address>0x[0-9a-fA-F]{1,16}) is (?P<why>[^\n]{1,160})")
_NEAREST: Final = re.compile(
    r"and is (?P<gap>[0-9,]{1,20} bytes (?:before|after) the nearest allocation at 0x[0-9a-fA-F]{1,16} of size "
    r"[0-9,]{1,20} bytes)"
)
_OFFSET: Final = re.compile(
    r"(?P<what>smem|shared|destination|dst|source|src|stage|tile|bar(?:rier)?|mbar(?:rier)?|map|desc(?:riptor)?|tensor_?map|"
    r"global|gmem|base)\w{0,80}(?P<between>(?:(?!\)\+0x)[^\n;]){0,40}?)\+\s{0,80}(?P<offset>(?:0x[0-9a-fA-F]{1,8}|[0-9]{1,8}))\b",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(
    r"(?P<what>mbar(?:rier)?|desc(?:riptor)?|tensor_?map|tma_desc|bar(?:rier)?)\w{0,80}\s?(?:[:=]|at)\s?"
    r"(?:0x(?P<hex>[0-9a-fA-F]{3,16})|(?P<address>[0-9a-fA-F]{16}))\b",
    re.IGNORECASE,
)
"""Matches a printed address of a map or a barrier."""
_NO_ADDRESS: Final = 1 << 48
"""From this number on, numbers are descriptors of wgmma or tcgen05, not addresses."""
_ALIGNMENTS: Final[tuple[tuple[re.Pattern[str], int, str], ...]] = (
    (re.compile("mbar|bar"), 8, "an mbarrier must be aligned to 8 bytes"),
    (re.compile("map|desc"), 64, "a tensor map must be aligned to 64 bytes (128 since CUDA 13)"),
    (re.compile("global|gmem"), 16, "a global address of a bulk copy must be a multiple of 16 bytes"),
    (
        re.compile(""),
        128,
        "the shared-memory address of a tensor copy must be a multiple of 128 bytes; with the 32B, 64B or 128B "
        "swizzle it must be a multiple of 256, 512 or 1024, or TMA writes a different pattern without a trap",
    ),
)
"""(words of the text, alignment in bytes, the rule); the first match applies."""
_SWIZZLED: Final = re.compile(
    r"swizzle\w{0,12}\W{0,4}(?:CU_TENSOR_MAP_SWIZZLE_)?(32|64|128) ?B\b|\b(32|64|128) ?B[ -]swizzle", re.IGNORECASE
)
_BULK_COPY: Final = re.compile(
    r"cp\.(?:reduce\.)?async\.bulk\.(?:shared|global)[\w.:]{0,100}\s[^\n;]{0,400}?\],\s{0,80}(?P<bytes>[0-9]{1,9})\s{0,80}[,;\n]|"
    r"tl::tma_store_cluster\([^\n;]{0,300}?<uint32_t>\((?P<cluster>[0-9]{1,9})\)"
)
_MAX_DYNAMIC: Final = re.compile(
    r"(?:(?:MaxDynamicSharedMemorySize|MAX_DYNAMIC_SHARED_SIZE_BYTES)\W{1,4}(?:=\s{0,80})?|"
    r"dynamic shared memory(?: size)? (?:to|of) )([0-9]{4,9})\b",
    re.IGNORECASE,
)
_LAUNCH: Final = re.compile(r"<<<[^,<>]{1,80},[^,<>]{1,80},\s{0,80}([0-9]{4,9})\s{0,80}(?:,[^<>]{1,40})?>>>")
_MOST_SHARED: Final = GPUS["sm_90"].block_shared_memory_bytes
SHARED_AT_ONCE: Final = 48 << 10
"""Bytes of shared memory that a kernel may declare, or a launch may request, without an attribute."""
_WITHOUT_ATTRIBUTE: Final = (
    "the limit of a launch without a call of cudaFuncSetAttribute(kernel, "
    "cudaFuncAttributeMaxDynamicSharedMemorySize, n) before it"
)


_BEYOND: Final = {
    "shared": (
        "a thread accessed memory outside the shared memory of its block: the launch requested fewer bytes than "
        "stages x bytes per stage, or an index is too large. Tensor maps are not the cause",
        "the dynamic shared memory of the launch, and the offset that the kernel adds",
    ),
    "global": (
        "a load or store of a thread, not of TMA, accessed memory outside its allocation: check the index, the "
        "predicate at the edges (sizes that the tile does not divide), the units of the strides, and whether the "
        "memory was freed",
        "the sizes and strides of the arrays, and the grid with its tile",
    ),
}
"""State space -> the meaning of an access beyond its end, and what is missing in the text."""
_REFUSED: Final = re.compile(
    r"(?:initiali[sz]e|encode|creat\w{0,12})[^\n]{0,30}?(?:TMA desc|tensor ?map)\w{0,80}|TMA descriptor creation|"
    r"(?<!EntryPoint\(\")(?<!Version\(\")cuTensorMapEncode(?:Tiled|Im2col(?:Wide)?)",
    re.IGNORECASE,
)
"""Pattern for the output of programs when cuTensorMapEncode* fails."""
_REFUSED_CODE: Final = re.compile(
    rf"(?:{_REFUSED.pattern})(?!\s{{0,80}}\((?!\s{{0,80}}\)))"
    r"(?:\D{0,20}|[^\d\n]{0,30} (?:code|error|result)\W{1,3})([0-9]{1,4})\b",
    re.IGNORECASE,
)
_REFUSED_WITHOUT: Final = re.compile(
    r"Failed to (?:initiali[sz]e|encode|create) (?:the )?(?:TMA"
    r" desc\w{0,80}|tensor ?map)(?: [A-Za-z_]\w{0,80})?\s{0,80}$",
    re.IGNORECASE | re.MULTILINE,
)
"""Pattern for such output without a result code: the name of the map, or nothing."""
EARLIER: Final = (700, 702, 715, 716, 717, 719)
"""Errors of a kernel that a later call reports."""


def refused_code(text: str) -> int:
    """The result of cuTensorMapEncode* that a text gives as a number or as a message; -1 if it gives none.

    >>> refused_code("Failed to initialize the TMA descriptor 700"), refused_code("box 700")
    (700, -1)
    """
    if (refused := _REFUSED.search(text)) is None:
        return -1
    code = _REFUSED_CODE.search(text)
    said = [row for row in ERRORS if row.message.lower() in text[refused.end() : refused.end() + 200].lower()]
    return int(code[1]) if code is not None else said[0].number if said else -1


def refused_why(text: str) -> list[str]:
    """Explain the result of cuTensorMapEncode* in `text`, which may be a number or a message."""
    number = refused_code(text)
    return [f"the driver returned {number}: {why}"] if (why := result_of_encode(number)) else []


def refused_at(text: str) -> list[tuple[int, int]]:
    """The spans of the numeric results of cuTensorMapEncode* in `text`."""
    return [match.span() for match in some(_REFUSED_CODE.finditer(text))]


def result_of_encode(number: int) -> str:
    """The name of a result of cuTensorMapEncode* and what it means there; empty for an unknown result.

    >>> result_of_encode(201)
    'CUDA_ERROR_INVALID_CONTEXT: no context is current on this thread'
    """
    if not number:
        return "CUDA_SUCCESS: the driver accepted it"
    row = _BY_NUMBER.get(number)
    return f"{row.rule}: {row.refused}" if row is not None and row.refused else ""


def read_errors(text: str) -> list[Reading]:
    """Read every CUDA error in `text`, with its possible causes in a program that uses TMA; then read the reports of
    compute-sanitizer."""
    sanitizer = [*_sanitizer(text)]
    if sanitizer:
        return sanitizer
    found: list[Reading] = []
    refused = _REFUSED_CODE.search(text)
    for row in ERRORS:
        match = row.find(text)
        if match is None and refused is not None and int(refused[1]) == row.number:
            match = refused
        if match is not None:
            found.append(_error(text, match.span(), row))
    if not found and (failed := _REFUSED_WITHOUT.search(text)) is not None:
        lines = ["the text does not contain the driver's result; usually it is 1", result_of_encode(1)]
        missing = ("the arguments of the map: its sizes, strides, box, type and swizzle, or x.shape and x.stride()",)
        found.append(Reading("A tensor map that the driver refused", *failed.span(), lines, missing=missing))
    return [*found, *_clusters(text)]


_GRID: Final = re.compile(
    r"Grid_?Dims?\b[^\n(\[]{0,60}[(\[]\s{0,80}([0-9]{1,9})\s{0,80},"
    r"\s{0,80}([0-9]{1,6})\s{0,80},\s{0,80}([0-9]{1,6})\s{0,80}[)\]]",
    re.IGNORECASE,
)
_CLUSTER: Final = re.compile(
    r"cluster\w{0,80}\s?(?:dims?|size|shape)?\W{1,4}([0-9]{1,2})\s?[,x]\s?([0-9]{1,2})\s?[,x]\s?([0-9]{1,2})\b|"
    r"_[0-9]{1,100}x[0-9]{1,100}x[0-9]{1,100}_([0-9]{1,2})x([0-9]{1,2})x([0-9]{1,2})_[0-9]_[nt]{3}_",
    re.IGNORECASE,
)
"""Matches a printed cluster, or the cluster in the name of a CUTLASS kernel: _256x96x64_4x2x1_0_ttn_align8."""


def _clusters(text: str) -> Iterator[Reading]:
    """Find a launch whose grid is not a multiple of its cluster."""
    grid, cluster = _GRID.search(text), _CLUSTER.search(text)
    if grid is None or cluster is None:
        return
    blocks = [int(n) for n in grid.groups()]
    sizes = [int(n) for n in cluster.groups() if n is not None]
    broken = [
        Diagnostic("cluster", "grid", count, text=f"grid mode {mode} has {count} CTAs; must be a multiple of {size}")
        for mode, (count, size) in enumerate(zip(blocks, sizes, strict=True))
        if size and count % size
    ]
    if broken:
        rounded = ", ".join(str(-(-n // s) * s if s else n) for n, s in zip(blocks, sizes, strict=True))
        lines = [
            f"grid ({', '.join(map(str, blocks))}), cluster ({', '.join(map(str, sizes))})",
            *_BY_NUMBER[912].causes,
        ]
        changes = [f"use a grid of ({rounded}), or a cluster that divides the grid"]
        yield Reading("A launch with clusters", *grid.span(), lines, broken, changes)


def _error(text: str, span: tuple[int, int], row: CudaError) -> Reading:
    name = row.rule
    lines = [f"{row.number}, {row.runtime}: {row.message}", *refused_why(text)]
    term = TERMS.get(name)
    refused = _REFUSED.search(text) is not None
    of_map = refused or re.search("tma|tensor_?map|descriptor", text, re.IGNORECASE)
    if row.number == 1 and not refused and _LAUNCHED.search(text):
        lines += _INVALID_LAUNCH
    elif row.number == 1 and not of_map:
        lines += _INVALID_ANYWHERE
    elif term is not None:
        lines += [term.why, f"to do: {term.fix}"]
    broken = [*_addresses(text)] if row.number == 716 else []
    broken += [*_offsets(text), *_bulk_sizes(text)] if row.number in (716, 715, 700, 719) else []
    broken += _shared_sizes(text) if row.number in (1, 701) else ()
    lines += _causes(text, row.number, bool(broken))
    aligned = [f"align {d.argument} to {d.facts['alignment']} bytes" for d in broken if "alignment" in d.facts]
    changes = list(dict.fromkeys(aligned))
    of_kernel = not broken and row.number in (*EARLIER, 999)
    missing = ("the instruction and its operands: address, coordinates, map",) if of_kernel else ()
    return Reading(f"{name}, a CUDA error", *span, lines, broken, changes, missing)


def _offsets(text: str) -> Iterator[Diagnostic]:
    """Check addresses written as a base and an offset for the alignment that the object at the address needs."""
    for match in some(_OFFSET.finditer(text), 8):
        what, offset = match["what"].lower(), int(match["offset"], 16 if "x" in match["offset"].lower() else 10)
        alignment, rule = next((bytes_, text_) for name, bytes_, text_ in _ALIGNMENTS if name.search(what))
        swizzled = _SWIZZLED.search(text) if alignment == _ALIGNMENTS[-1][1] else None
        if swizzled is not None:
            alignment = 8 * int(swizzled[1] or swizzled[2])
        if offset % alignment:
            found = f"{match[0].strip()}: {offset} is not a multiple of {alignment}; {rule}"
            yield _misplaced(match["what"], found, alignment)


def _addresses(text: str) -> Iterator[Diagnostic]:
    """Check the alignment of printed addresses of tensor maps and barriers."""
    for match in some(_ADDRESS.finditer(text), 8):
        what, address = match["what"].lower(), int(match["hex"] or match["address"], 16)
        alignment, rule = next((bytes_, text_) for name, bytes_, text_ in _ALIGNMENTS if name.search(what))
        if address % alignment and address < _NO_ADDRESS:
            found = f"{match[0].strip()}: {address % alignment} bytes past a multiple of {alignment}; {rule}"
            yield _misplaced(match["what"], found, alignment)


def _misplaced(what: str, found: str, alignment: int) -> Diagnostic:
    """Make the diagnostic of a misaligned address. A tile in shared memory breaks another rule than a map or a
    barrier."""
    tile = alignment >= _ALIGNMENTS[-1][1]
    rule = "shared-memory address" if tile else "alignment"
    return Diagnostic(rule, what, text=found, source="PTX ISA", facts={"alignment": alignment})


def _bulk_sizes(text: str) -> Iterator[Diagnostic]:
    """Find bulk copies without a tensor map whose size is not a multiple of 16 bytes."""
    for match in some(_BULK_COPY.finditer(text), 8):
        count = int(match["bytes"] or match["cluster"])
        if count % STORE_UNIT:
            found = f"{count} bytes: the size of a bulk copy must be a multiple of {STORE_UNIT}"
            yield Diagnostic("bulk size", "size", count, "bytes", text=found, source="PTX ISA, cp.async.bulk")


def _shared_sizes(text: str) -> Iterator[Diagnostic]:
    """Find launches and attributes that request too much dynamic shared memory."""
    asked = [(_MAX_DYNAMIC, _MOST_SHARED, "the limit of a block on sm_90 and sm_100")]
    asked += [] if _MAX_DYNAMIC.search(text) else [(_LAUNCH, SHARED_AT_ONCE, _WITHOUT_ATTRIBUTE)]
    source = "CUDA programming guide, compute capabilities"
    for pattern, most, meaning in asked:
        for match in some(pattern.finditer(text), 4):
            if (count := int(match[1])) > most:
                found = f"{count} bytes of dynamic shared memory exceed {most} bytes, {meaning}"
                yield Diagnostic("dynamic shared memory", "shared memory", count, "bytes", text=found, source=source)


_LAUNCHED: Final = re.compile(r"(?<![a-z_])launch|<<<|dynamic shared memory|MaxDynamicSharedMemorySize", re.IGNORECASE)
_INVALID_LAUNCH: Final = (
    "tensor maps are not the cause, because a launch does not check them: this GPU does not accept the grid, the "
    "block, the cluster or the dynamic shared memory, or the kernel was compiled for another GPU",
    "to do: compare the bytes of shared memory with the GPU's (ARCHITECTURES), the grid with the cluster, and the "
    "-arch of the program with the GPU",
)
_INVALID_ANYWHERE: Final = (
    "many functions of CUDA return this error, and the text does not name the function",
    "from cuTensorMapEncode*: the arguments break a rule of tensor maps, and violations(request) lists the broken "
    "rules; from a launch: check grid, block, cluster and shared memory; from a call that shares or maps memory: "
    "check its size, its address and the kind of handle",
    "to do: the line of the call, CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer, which names the function",
)
_TMA_TRAPS: Final = ("inner", "negative", "reduction", "base", "im2col")


def _causes_of(number: int) -> tuple[str, ...]:
    """Common mistakes of TMA kernels for a reported error, the most common first."""
    causes = _BY_NUMBER[number].causes if number in _BY_NUMBER else ()
    if number == 715:
        traps = [(name, reason) for name, reason in TRAP_REASONS.items() if name.startswith(_TMA_TRAPS)]
        return (*causes, *(f"or {name}: {reason.why}" for name, reason in traps))
    return (*causes, *(rule for _, _, rule in _ALIGNMENTS)) if number == 716 else causes


_NO_SUCH_CTA: Final = (
    "the address belongs to a CTA that the cluster does not have, or that has exited: a multicast mask, mapa or a "
    "remote arrive names a rank outside the cluster, or a CTA exited before the others arrived on its barriers (add a "
    "cluster_sync at the end)"
)
_FEW_LEFT: Final = (
    "the text has setmaxnreg: a warpgroup fails like this if it releases registers that its code uses (a printf needs "
    "many), or if not all of its 4 warps execute setmaxnreg"
)


REGISTERS: Final = 1 << 16
"""The registers of a multiprocessor."""


def most_threads(registers: int) -> int:
    """The largest number of threads in a block, in whole warpgroups, if each thread has this many registers. The
    hardware allocates registers in multiples of 8.

    >>> most_threads(168), most_threads(24)
    (384, 1024)
    """
    return min(REGISTERS // max(-(-registers // 8) * 8, 8) // 128 * 128, 1024)


_NOT_INITIALISED: Final = (
    "mbarrier_init_tx_bytes arrives and announces bytes, so mbarrier_init_arrive_cnt must come first"
)


def _causes(text: str, number: int, known: bool) -> list[str]:
    """The causes of an error that fit `text`. `known`: whether the text already shows a broken rule."""
    asked = [int(n) for n in re.findall(r"\b([0-9]{5,7})\b", text)] if number == 701 else []
    over = [f"the launch requests {n} bytes" for n in asked if SHARED_AT_ONCE < n < 1 << 22]
    if number == 700 and re.search("cluster out-of-range", text, re.IGNORECASE):
        over = [_NO_SUCH_CTA]
    registers, threads = re.search(r"\b([0-9]{2,3}) registers", text), re.search(r"\b([0-9]{2,4}) threads", text)
    if number == 701 and registers is not None and threads is not None:
        count, of = int(registers[1]), int(threads[1])
        most = most_threads(count)
        over = [
            f"{count} registers x {of} threads = {count * of}: use at most {most} threads, or __launch_bounds__({of})"
        ]
    if number == 719 and "mbarrier_init_tx_bytes" in text:
        over = [_NOT_INITIALISED]
    if number == 715 and re.search("reg_?(?:de)?alloc|setmaxn?reg", text, re.IGNORECASE):
        over = [_FEW_LEFT]
    return [*over[:1], *(() if number == 716 and known else _causes_of(number))]


_OF_BARRIERS: Final = {
    "divergent": (
        "not all threads that the barrier waits for reach this instruction, because of a branch, a loop or an early "
        "return before it",
        "to do: move __syncthreads() out of branches that only some warps take. Warps of different roles can use a "
        "named barrier with the number of their threads (barrier.sync id, n; bar.sync needs one instruction for all), "
        "or an mbarrier",
    ),
    "missing wait": (
        "the kernel reuses the barrier of a copy, or its block exits, before a thread has waited for the phase",
        "to do: wait in every CTA whose barrier receives bytes, including the peer CTA of a pair, before the barrier "
        "is reused and before the CTA exits",
    ),
}
"""Words of a report about barriers -> the meaning of the report."""


def _sanitizer(text: str) -> Iterator[Reading]:
    for match in some(_SANITIZER.finditer(text), 8):
        end = min(len(text), match.end() + 1500)
        notes, what = text[match.end() : end], match["what"]
        lines = [f"compute-sanitizer reports: {what}"]
        where = _AT.search(notes)
        if where is not None:
            lines.append(f"at {where['where'].strip()}")
        broken: list[Diagnostic] = []
        misaligned = "misaligned" in what.lower()
        if fault := _FAULT.search(notes):
            nearest = _NEAREST.search(notes)
            further = f", {nearest['gap']}" if nearest else ""
            lines.append(f"address {fault['address']} is {fault['why'].strip()}{further}")
            if "misaligned" in fault["why"].lower():
                misaligned = True
                address, size = int(fault["address"], 16), int(match["size"] or 16)
                over = address % max(size, 1)
                beyond = f"{address:#x} is {over} bytes past a multiple of {size}"
                broken.append(Diagnostic("alignment", "address", over, "bytes", text=beyond))
        number = 715 if "instruction" in what.lower() else 716 if misaligned else 700
        if "barrier" in what.lower():
            number = 719
        meaning = next((meaning for words, meaning in _OF_BARRIERS.items() if words in what.lower()), None)
        if meaning is not None:
            yield Reading("A report of compute-sanitizer", match.start(), end, [*lines, *meaning])
            continue
        row = next(row for row in ERRORS if row.number == number)
        of_tma = where is not None and _IN_TMA.search(where["where"]) is not None
        space = match["space"] or ("shared" if _BEYOND_SHARED.match(what) else "")
        if number == 700 and (space == "shared" or (space == "global" and not of_tma)):
            beyond, needed = _BEYOND[space]
            lines.append(beyond)
            yield Reading("A report of compute-sanitizer", match.start(), end, lines, broken, missing=(needed,))
            continue
        term = TERMS.get(row.rule)
        lines += [term.why] if term is not None else []
        lines += _causes(text, number, bool(broken))
        if of_tma and number != 715:
            lines.append(
                "the error is at a TMA instruction: check the descriptor first, then the address and the coordinates"
            )
        broken += _offsets(notes)
        asked = "the descriptor's bytes (print its 16 words) and the coordinates of the instruction"
        missing = () if broken else (asked,)
        yield Reading("A report of compute-sanitizer", match.start(), end, lines, broken, missing=missing)
