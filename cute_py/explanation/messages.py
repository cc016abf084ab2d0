"""Read error messages about TMA, layouts and placements from Triton, TileLang, CuTe DSL, CUTLASS, CCCL, JAX, PyTorch
and others.

A message states a rule, and usually the values that break it. `rows/programs.toml` lists the messages that identify the
program that printed them, and `rows/messages.toml` lists the others. For a message in neither file, explain reads its
requirement: an alignment, a power of two, a contiguous mode, a rank, or a size of the box. This module also reads the
bank-conflict counts of Nsight Compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.rows.known_texts import Row, first_of, found, rows
from cute_py.tma.descriptor.limits import BY_NAME

_IS_ERROR: Final = re.compile(
    r"error|assert|must|expected|failed|invalid|illegal|require|cannot|can't|not supported|not divisible|exception",
    re.IGNORECASE,
)
_ABOUT_TMA: Final = re.compile(
    r"tma|descriptor|tensor_?map|cp\.async\.bulk|stride|block_shape|boxDim|triton|tilelang|smem", re.IGNORECASE
)


_WRAPPED: Final = re.compile(
    r"static[ _]assert(?:ion)? failed (?:with )?[\"'][^\"\n]{1,300}[\"']|Assertion [`'\"][^\n]{1,400}?['`\"] failed",
    re.IGNORECASE,
)
"""Matches an assertion. If its text is a message of the table, the whole assertion is the message."""


def by_program() -> tuple[Row, ...]:
    """The rows of messages that identify the program that printed them."""
    return rows("programs")


def read_messages(text: str) -> list[Reading]:
    """Read every message about TMA from Triton, TileLang or another front end."""
    return messages_of(text, (*by_program(), *rows("messages")))


def messages_of(text: str, known: Sequence[Row]) -> list[Reading]:
    """Read every message in `text` that a row of `known` matches. If two rows match at the same position, the first one
    is used."""
    readings: list[Reading] = []
    wrapped = some(_WRAPPED.finditer(text), 32)
    for row, match in found(text, known):
        if not any(one.begin <= match.start() < one.end for one in readings):
            whole = next((w for w in wrapped if w.start() <= match.start() < w.end()), match)
            span = min(whole.start(), match.start()), max(whole.end(), match.end())
            readings.append(_message(text, match, row, span))
    return readings


def read_steps(text: str) -> list[Reading]:
    """Read every error message of the partition verifier, by its step.

    >>> [reading.kind for reading in read_steps("failed to compute the TMA G-basis, got !cute.layout<...>")]
    ['Step 8 of the partition verifier of the TMA reference pages']
    """
    readings = []
    for row, match in found(text, rows("reasons", "step")):
        kind = f"Step {row.rule} of the partition verifier of the TMA reference pages"
        source = "TMA Atoms page, Eleven-Step Partition Verifier"
        broken = Diagnostic(f"step {row.rule}", text=row.text, source=source)
        readings.append(Reading(kind, *match.span(), _context(text, match), (broken,), advice=(row.change,)))
    return readings


def _message(text: str, match: re.Match[str], row: Row, span: tuple[int, int]) -> Reading:
    changes, advice = row.remedies(match)
    rule = BY_NAME.get(row.rule)
    source = "" if row.program else _SOURCES.get(_named(text), "")
    broken = Diagnostic(row.rule, text=row.says(match), source=rule.source if rule else source)
    return Reading(_kind(text, row.program), *span, _context(text, match), (broken,), changes, advice=advice)


_SOURCES: Final = {"Triton": "Triton, tensor descriptors", "CCCL": "libcu++, cuda::barrier"}


def _named(text: str) -> str:
    """The program that printed `text`, recognised by its contents; an empty string if it is unknown."""
    mark = first_of("marks", text)
    return "" if mark is None else mark.program


def _kind(text: str, program: str = "") -> str:
    return f"An error from {program or _named(text) or 'a front end'}"


def _context(text: str, match: re.Match[str]) -> list[str]:
    """Lines with the message, and with the shape, strides and block shape of the descriptor that the text mentions."""
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    message = " ".join(text[begin : end if end >= 0 else len(text)].split())  # blanks replace its layouts
    lines = [f"message: {message[:300]}"]
    for name in ("shape", "strides", "block_shape"):
        if given := re.search(rf"\b{name}=(\[[^\]\n]{{0,80}}\])", text):
            lines.append(f"{name} = {given[1]}, outermost first")
    return lines


_MULTIPLE: Final = re.compile(
    r"(?:multiples? of|divisible by|aligned to|(?P<name>[A-Za-z_][\w.]{0,40})\s?%)\s?"
    r"(?:[A-Za-z][\w ]{0,30}[ =]\s?\(?)?(?P<unit>[0-9]{1,7})\b",
    re.IGNORECASE,
)
_HAD: Final = re.compile(
    r"(?P<name>[A-Za-z_][\w.\[\]]{0,40})(?:\s?[=:(]\s?|\s(?=[0-9]{1,12} (?:is|must|should|needs?|has|not)\b))"
    r"(?P<value>[0-9]{1,12})\b"
)
_SELECTED: Final = re.compile(r"\b(?:sizes?|shape|strides?|dim)[(\[][0-9]{1,2}[)\]]")
"""Matches a selected mode, such as size(1). Its brackets and digits are replaced by letters, so that it is a name."""
_AS_LETTERS: Final = {ord(c): chr(0x1401 + i) for i, c in enumerate("()[]0123456789")}
_FROM_LETTERS: Final = {ord(new): chr(old) for old, new in _AS_LETTERS.items()}
_GOT: Final = re.compile(
    r"\b(?:got|found|given|received|but|is|was|actual\w{0,80})\b[^\d\[\n]{0,24}?(?<!\w)(?P<value>[0-9]{1,12})\b"
)


def _no_multiple(line: re.Match[str]) -> Reading | None:
    """Read a message that has a size and the number that must divide it; None if the size is a multiple of the
    number."""
    text = _SELECTED.sub(lambda mode: mode[0].translate(_AS_LETTERS), line[0])
    demand = _MULTIPLE.search(text)
    if demand is None or not int(demand["unit"]):
        return None
    before, unit = text[: demand.start()], int(demand["unit"])
    had = some(_HAD.finditer(before))[-1:]
    named = some(re.finditer(r"(\w{1,80}) (?:must|should|needs?|has to|to be|is)\b", before))[-1:]
    name = demand["name"] or next((m["name"] for m in had), "") or next((m[1] for m in named), "") or "the size"
    after = [m for m in some(_HAD.finditer(text, demand.end())) if m["name"] == name]
    got = after[0] if after else _GOT.search(text, demand.end())
    value = int(got["value"] if got else had[0]["value"] if had else 0)
    name = name.translate(_FROM_LETTERS)
    if value % unit == 0:
        return None
    low = value - value % unit
    broken = Diagnostic("multiple", name, value, text=f"{name} = {value} is {low // unit} x {unit} + {value % unit}")
    padded = f"{low + unit}, which pads by {unit - value % unit}"
    change = f"{padded}; or {low}" if low else padded
    return Reading("A size between two multiples", line.start(), line.end(), (line[0].strip(),), (broken,), (change,))


def read_demands(text: str) -> Iterator[Reading]:
    """Read the requirements in error messages that no table lists."""
    about_tma = _ABOUT_TMA.search(text) is not None
    for line in some(re.finditer(r"[^\n]{8,500}", text), 200):
        if not _IS_ERROR.search(line[0]):
            continue
        if about_tma and (demand := first_of("demands", line[0])) is not None:
            rule = BY_NAME.get(demand.rule)
            broken = Diagnostic(demand.rule, text=demand.text, source=rule.source if rule else "")
            said = (f"message: {line[0].strip()[:300]}",)
            yield Reading(_kind(text), line.start(), line.end(), said, (broken,))
        elif (reading := _no_multiple(line)) is not None:
            yield reading


# ---- bank conflicts, as Nsight Compute counts them -------------------------------------------------------------

_METRIC: Final = re.compile(
    r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared(?:_op_(?P<op>\w{1,80}))?\.sum\b[^\n0-9-]{0,60}(?P<count>[0-9][0-9,]{0,20})"
)
"""A metric and its count. A hyphen between them begins an option of the command line."""
_WAYS: Final = re.compile(
    r"causes on average an?\s{1,80}(?P<ways>[0-9.]{1,6})\s{0,80}-"
    r"\s{0,80}way bank conflict across all (?P<requests>[0-9]{1,15}) "
    r"shared (?P<op>load|store) requests[^\n]{0,30}?This results in (?P<count>[0-9]{1,15}) bank conflicts"
)
_COUNTED: Final = {
    "ld": "loads (ld.shared, ldmatrix)",
    "load": "loads (ld.shared, ldmatrix)",
    "st": "stores (st.shared, stmatrix)",
    "store": "stores (st.shared, stmatrix)",
    "ldgsts": "cp.async",
    "gmma": "operands of wgmma",
    "atom": "atomics",
}
"""The end of a metric's name -> the quantity that it counts."""
_CONFLICTS: Final = (
    "one pass (wavefront) serves 32 banks of 4 bytes; each pass beyond those that the bytes of a request need is a "
    "conflict",
    "the metrics also count waits for other traffic to the same memory, so a few remain even without conflicts",
)
_APART: Final = (
    "bank_conflicts(layout, dtype, access=...) shows which threads access the same bank. A swizzle separates them: "
    "make_smem_layout for TMA and wgmma, composition(Swizzle(3, 3, 3), ...) for rows of 64 elements of 16 bits"
)


def read_metrics(text: str) -> list[Reading]:
    """Read all counts of bank conflicts as one reading, even if all of them are zero."""
    matches = sorted([*some(_METRIC.finditer(text), 32), *some(_WAYS.finditer(text), 8)], key=re.Match.start)
    if not matches:
        return []
    found = []
    for match in matches:
        count = int(match["count"].replace(",", ""))
        if count and (match["op"] or len(matches) == 1):
            each = f", {match['ways']} passes per request" if "ways" in match.groupdict() else ""
            shown = f"{_COUNTED.get(match['op'] or '', match['op'] or 'all')}: {count} conflicts{each}"
            found.append(Diagnostic("bank conflicts", text=shown, severity="warning"))
    meaning = _CONFLICTS if found else (*_CONFLICTS, "no operation has a conflict")
    span = matches[0].start(), max(match.end() for match in matches)
    missing = ("the shared layout, the element type, and the elements of each thread",) if found else ()
    advice = (_APART,) if found else ()
    kind = "Bank conflicts, as Nsight Compute counts them"
    return [Reading(kind, *span, meaning, found, missing=missing, advice=advice)]
