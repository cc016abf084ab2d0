"""vprintf, __assertfail, malloc and free: functions without a body that the machine implements.

Source: CUDA C++ programming guide, formatted output, assertion, dynamic global memory allocation.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

import numpy as np

from cute_py.machine.faults import Refused
from cute_py.machine.memory import LOCAL_WINDOW, LOCAL_WINDOW_BYTES, host_place
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Host, Run
from cute_py.tma.emulator.memory import POISON

HEAP_BYTES: Final = 8 << 20
"""Size of the heap of `malloc`, as CUDA's default limit."""

HEAP_ALIGNMENT: Final = 16
_FORMAT: Final = re.compile(r"%([-+ #0]*+)(\d++|\*)?(?:\.(\d+|\*))?(hh|h|ll|l|j|z|t)?([diouxXeEfFgGaAcsp%])")
MAX_TEXT: Final = 1 << 16
MAX_LINES: Final = 1 << 16
"""Maximum number of calls of vprintf whose output is kept."""


def _parameter(site: Site, text: str) -> Callable[[Frame], Array]:
    """Return a function of a frame that computes the offset of a call parameter in each thread's local memory."""
    key, space = site.code.symbol(site.function, text.strip())
    if space != "local":
        raise Refused(f"{text} is not a parameter of a call")
    offset, framed = site.code.local_place(key)
    return (lambda f: f.m.frame_starts(f) + offset) if framed else (lambda f: np.full(f.n, offset))


def build_print(site: Site, arguments: tuple[str, ...]) -> Run:
    """vprintf(format, arguments): print one string for each thread, in thread order."""
    if len(arguments) != 2:
        raise Refused("vprintf must have 2 parameters")
    places = [_parameter(site, text) for text in arguments]

    def run(f: Frame) -> None:
        m = f.m
        local = m.local.reshape(-1, m.local_stride)
        starts = [place(f).tolist() for place in places]
        for number, thread in enumerate(f.threads.tolist()):
            row = local[thread]
            form, values = (int(row[at[number] : at[number] + 8].view(np.uint64)[0]) for at in starts)
            if len(m.totals.printed) < MAX_LINES:
                m.totals.printed.append(printed(m, thread, form, values))

    return run


def build_assertion(site: Site, arguments: tuple[str, ...]) -> Run:
    """__assertfail(message, file, line, function, size): end the run with a fault."""
    places = [_parameter(site, text) for text in arguments[:4]]

    def run(f: Frame) -> None:
        m = f.m
        row = m.local.reshape(-1, m.local_stride)[int(f.threads[0])]
        starts = [int(place(f)[0]) for place in places]
        words = [int(row[start : start + 8].view(np.uint64)[0]) for start in starts]
        said = [text_at(m, int(f.threads[0]), words[i]) for i in (0, 1, 3)]
        text = f"{m.thread_text(f.threads[0])}: assertion {said[0]!r} failed in {said[2]} ({said[1]})"
        raise site.fault("assertion", text, f)

    return run


def build_malloc(site: Site, arguments: tuple[str, ...], results: tuple[str, ...]) -> Run:
    """Build the function that runs malloc(size). It returns null if the heap has no room."""
    if (len(arguments), len(results)) != (1, 1):
        raise Refused("malloc must have a parameter and a result")
    given, made = (_parameter(site, text) for text in (arguments[0], results[0]))

    def run(f: Frame) -> None:
        sizes = _load_u64(f, given(f))
        heap = _heap(f.m)
        _store_u64(f, made(f), np.array([heap.take(int(size)) for size in sizes], np.uint64))

    return run


def build_free(site: Site, arguments: tuple[str, ...]) -> Run:
    """Build the function that runs free(pointer). The pointer is one that malloc returned, or null."""
    if len(arguments) != 1:
        raise Refused("free must have a parameter")
    given = _parameter(site, arguments[0])

    def run(f: Frame) -> None:
        heap = _heap(f.m)
        for place, address in enumerate(_load_u64(f, given(f)).tolist()):
            if address and not heap.give_back(address):
                text = f"{f.m.thread_text(f.threads[place])} frees {address:#x}, which malloc did not return"
                raise site.fault("out of bounds", text, f, "state spaces, global state space", address=address)

    return run


class _Heap:
    """The heap of `malloc`, which gives bytes in order of address. Freed bytes are used again when the heap is full."""

    def __init__(self, start: int) -> None:
        self.next, self.end = start, start + HEAP_BYTES
        self.given: dict[int, int] = {}
        self.freed: dict[int, list[int]] = {}

    def take(self, size: int) -> int:
        """Return the address of `size` new bytes, or 0 if there is no room."""
        whole = -(-max(size, 1) // HEAP_ALIGNMENT) * HEAP_ALIGNMENT
        if whole <= self.end - self.next:
            found, self.next = self.next, self.next + whole
        elif self.freed.get(whole):
            found = self.freed[whole].pop(0)
        else:
            return 0
        self.given[found] = whole
        return found

    def give_back(self, address: int) -> bool:
        """Free the bytes at an address. Return False if `take` did not return this address."""
        whole = self.given.pop(address, 0)
        if whole:
            self.freed.setdefault(whole, []).append(address)
        return bool(whole)


def _heap(m: Host) -> _Heap:
    memory = m.memory
    if memory.heap is None:
        memory.heap = _Heap(memory.add("the heap of malloc", np.full(HEAP_BYTES, POISON, np.uint8)).address)
    found: _Heap = memory.heap
    return found


def _load_u64(f: Frame, places: Array) -> Array:
    """Return the 64-bit word (n,) at an offset of each thread's local memory."""
    local = f.m.local.reshape(-1, f.m.local_stride)
    found: Array = local[f.threads[:, None], places[:, None] + np.arange(8)].view(np.uint64)[:, 0]
    return found


def _store_u64(f: Frame, places: Array, words: Array) -> None:
    local = f.m.local.reshape(-1, f.m.local_stride)
    local[f.threads[:, None], places[:, None] + np.arange(8)] = words.view(np.uint8).reshape(-1, 8)


def text_at(m: Host, thread: int, address: int) -> str:
    """Return the zero-terminated string at a thread's generic address."""
    raw = bytes_behind(m, thread, address)
    return raw.split(b"\0")[0].decode(errors="replace")


def bytes_behind(m: Host, thread: int, address: int) -> bytes:
    """Return the bytes that begin at a thread's generic address; empty if the address is not in memory."""
    if LOCAL_WINDOW <= address < LOCAL_WINDOW + LOCAL_WINDOW_BYTES:
        start = thread * m.local_stride + address - LOCAL_WINDOW
        return m.local[start : (thread + 1) * m.local_stride].tobytes()
    found = host_place(m, thread // m.cta_threads, address)
    return b"" if found is None else found[0][found[1] : found[1] + MAX_TEXT].tobytes()


def printed(m: Host, thread: int, form: int, values: int) -> str:
    """Format the output of one call of vprintf."""
    raw, at = bytes_behind(m, thread, values), 0

    def word(size: int) -> bytes:
        nonlocal at
        at = -(-at // size) * size
        part = raw[at : at + size].ljust(size, b"\0")
        at += size
        return part

    def replaced(found: re.Match[str]) -> str:
        flags, width, precision, length, letter = found.groups()
        if letter == "%":
            return "%"
        numbers = [str(int.from_bytes(word(4), "little", signed=True)) if x == "*" else x for x in (width, precision)]
        form_ = f"%{flags}{numbers[0] or ''}{'.' + numbers[1] if numbers[1] is not None else ''}"
        if letter in "eEfFgGaA":
            number = struct.unpack("<d", word(8))[0]
            return str(number.hex()) if letter in "aA" else str(f"{form_}{letter}" % number)
        if letter == "s":
            return f"{form_}s" % text_at(m, thread, int.from_bytes(word(8), "little"))
        if letter == "p":
            return f"{form_}s" % hex(int.from_bytes(word(8), "little"))
        size = 8 if length in ("l", "ll", "j", "z", "t") else 4
        number = int.from_bytes(word(size), "little", signed=letter in "di")
        return (
            f"{form_}s" % chr(number & 255) if letter == "c" else f"{form_}{'d' if letter == 'u' else letter}" % number
        )

    return _FORMAT.sub(replaced, text_at(m, thread, form))
