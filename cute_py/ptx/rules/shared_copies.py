"""Rules about the operands of copies in shared memory: the alignment of their addresses, and the bytes of bulk copies
that are outside their variable."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted, shortened
from cute_py.ptx.flow import PEER, Flow, Known, also_at, line_facts
from cute_py.ptx.values import Value
from cute_py.tma.descriptor.limits import STORE_UNIT

_ALIGNED: Final = {
    "load": ("destination", 128, "cp.async.bulk.tensor: dstMem"),
    "store": ("source", 128, "cp.async.bulk.tensor: srcMem"),
    "reduce": ("source", 128, "cp.reduce.async.bulk.tensor: srcMem"),
    "bulk.load": ("destination", STORE_UNIT, "cp.async.bulk: dstMem"),
    "bulk.store": ("source", STORE_UNIT, "cp.async.bulk: srcMem"),
    "bulk.reduce": ("source", STORE_UNIT, "cp.reduce.async.bulk: srcMem"),
    "bulk.peer": ("source", STORE_UNIT, "cp.async.bulk: srcMem"),
    "bulk.reduce.peer": ("source", STORE_UNIT, "cp.reduce.async.bulk: srcMem"),
    "mbarrier.init": ("barrier", 8, "mbarrier: size and alignment of mbarrier object"),
}
"""Row -> its operand in shared memory, the alignment of the address in bytes, and the source."""


def check_alignments(flow: Flow) -> Iterator[Diagnostic]:
    """Find addresses in shared memory that are misaligned wherever their variable is allocated."""
    for row, (name, need, source) in _ALIGNED.items():
        unknown: list[Known] = []
        wrong: dict[tuple[int, int], list[Known]] = collections.defaultdict(list)
        formed = [one for one in flow.of(row) if one.names]
        for one in formed:
            value = one.value(name)
            sure = 1 if value is None else min(flow.values.multiple(value, flow.function.alignments), need)
            rest = 0 if value is None else value.offset % sure
            if rest:
                wrong[rest, sure].append(one)
            elif sure < need:
                unknown.append(one)
        for (rest, sure), ones in wrong.items():
            text = (
                f"the address of the {name} is {counted(rest, 'byte')} more than a multiple of {sure}; must be a "
                f"multiple of {need}{also_at(ones)}"
            )
            fix = f"place the {name} at a multiple of {need} bytes"
            yield flow.broken("alignment", ones[0], text, source, fix=fix, facts=line_facts(ones))
        flow.tally.judge("shared-memory address", "alignment", len(formed) - len(unknown))
        why = (
            f"alignment: declarations and constants do not show whether the address of the {name} is a multiple "
            f"of {need} bytes"
        )
        flow.leave("shared-memory address", why, unknown)


_SPANS: Final[Mapping[str, tuple[str, ...]]] = {
    "bulk.load": ("destination",),
    "bulk.store": ("source",),
    "bulk.reduce": ("source",),
    **dict.fromkeys(PEER, ("source", "destination")),
}
"""Row -> the operands with the addresses of its bytes in shared memory."""


def check_spans(flow: Flow) -> Iterator[Diagnostic]:
    """Find bulk copies that pass the beginning or the end of their variable in shared memory."""
    unknown: list[Known] = []
    for row, names in _SPANS.items():
        for one in flow.of(row):
            size = one.constant("size")
            spans = [(name, value) for name in names if (value := _declared(flow, one, name)) is not None]
            for name, value in spans if size is not None else ():
                yield from _passed_end(flow, one, name, value, size or 0)
            if size is None or len(spans) < len(names):
                unknown.append(one)
            else:
                flow.tally.judge("transfer", "extent")
    why = "extent: the size of a bulk copy, its address or its buffer is known only at run time"
    flow.leave("transfer", why, unknown)


def _declared(flow: Flow, one: Known, name: str) -> Value | None:
    """Return the address of an operand if it is in a variable in shared memory, whose size is declared, at a constant
    offset."""
    value = one.value(name)
    symbol = "" if value is None else flow.values.symbol(value)
    return value if symbol in flow.function.sizes and flow.function.symbols.get(symbol) == "shared" else None


def _passed_end(flow: Flow, one: Known, name: str, value: Value, size: int) -> Iterator[Diagnostic]:
    """Report the bytes of a copy that are outside its variable."""
    begin, symbol = value.offset, flow.values.symbol(value)
    end, declared, shown = begin + size, flow.function.sizes[symbol], shortened(symbol, 60)
    most = (declared - begin) // STORE_UNIT * STORE_UNIT
    if begin < 0:
        text = f"the {name} of the copy is {counted(-begin, 'byte')} before {shown}; must not be before it"
        fix = f"begin at an address in {shown}"
    elif end > declared:
        text = (
            f"the {name} of the copy is {counted(size, 'byte')} at byte {begin} of {shown}; the copy ends at "
            f"byte {end}; {shown} has {counted(declared, 'byte')}"
        )
        fix = f"{f'copy at most {most} bytes, or ' if most > 0 else ''}declare {shown} with at least {end} bytes"
    else:
        return
    source = f"{one.event.statement.opcode.partition('.bulk')[0]}.bulk: size"
    yield flow.broken("extent", one, text, source, fix=fix)
