"""call, ret, exit: calls of functions by name or address, including recursive calls.

The parameters of a function are local variables of each thread. A call copies its arguments there, and `ret` copies the
results back. A recursive function has a frame of local variables for each call. If a called function may call the
caller again, the caller's registers are saved during the call:

    local memory of a thread    variables of other functions | frame | frame | ...
    pointer                     start of the frame of the present call; a call of a recursive function advances it

The address of a function is a number, which `mov` and initial values of variables can use. A call through an address
may reach any function whose address is used, if its parameters have the same sizes as in the call.
Source: PTX ISA 9.0, call, ret, .callprototype, "Abstracting the ABI".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.machine.call_graph import BUILT_IN, called_name
from cute_py.machine.decode import Turn
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.library import build_assertion, build_free, build_malloc, build_print
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Host, Run, broadcast
from cute_py.ptx.parse import OperandKind

Gone = list[tuple[int, Frame]]

MAX_CALLS: Final = 256
"""Maximum nesting of calls."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copied parameter: (offset, whether it is relative to a frame) of the caller's and of the callee's variable."""

    own: tuple[int, bool]
    other: tuple[int, bool]
    size: int


@dataclass(frozen=True, slots=True)
class _Link:
    """A possible target of a call.

    moves: distance in bytes from the caller's frame to the target's frame. keeps: the rows of the caller's registers,
    by bank, that the call saves.
    """

    entry: int
    inward: Sequence[_Copy]
    outward: Sequence[_Copy]
    moves: int
    frame: int
    keeps: Sequence[Array]


def build_exit(site: Site) -> Turn:
    """Build the function that runs exit."""
    site.finish(0)
    return Turn(_exit)


def _exit(f: Frame) -> Gone:
    f.m.exited(f)
    return []


def build_return(site: Site) -> Turn:
    """ret: in a kernel, exit; in a function, return to the instruction after the call of each thread."""
    site.flag("uni")
    site.finish(0)
    if site.code.functions[site.function].entry:
        return Turn(_exit)

    def go(f: Frame) -> Gone:
        m = f.m
        m.depth[f.threads] -= 1
        depth = m.depth[f.threads]
        stack: Array = m.state["returns"]
        back = stack[depth, f.threads]
        gone: Gone = []
        for pc in np.unique(back).tolist():
            part = f.subset(back == pc)
            m.state["results", pc](part, site.function)
            gone.append((pc, part))
        return gone

    return Turn(go)


def build_call(site: Site) -> Turn | Run | None:
    """call: copy the arguments to the parameters of the function, and the results back when it returns."""
    site.flag("uni")
    site.finish()
    name = called_name(site.one)
    lists = [one.elements for one in site.operands if one.kind is OperandKind.VECTOR]
    at = next((i for i, one in enumerate(site.operands) if one.kind is OperandKind.REGISTER), 0)
    before = [one.elements for one in site.operands[:at] if one.kind is OperandKind.VECTOR]
    results = before[0] if before else ()
    arguments = lists[len(before)] if len(lists) > len(before) else ()
    if name in BUILT_IN and not site.code.functions.get(name):
        return _built_in(site, name, arguments, results)
    if site.code.register(site.function, name) is not None:
        return _indirect(site, name, arguments, results)
    called = site.code.functions[name]
    if len(arguments) != len(called.parameters) or len(results) != len(called.results):
        raise Refused(f"{name} has {len(called.parameters)} parameters and {len(called.results)} results")
    link = _link(site, name, arguments, results)
    return Turn(lambda f: _call(site, f, name, {name: link}))


def _built_in(site: Site, name: str, arguments: tuple[str, ...], results: tuple[str, ...]) -> Run:
    if name == "malloc":
        return build_malloc(site, arguments, results)
    build = {"vprintf": build_print, "free": build_free}.get(name, build_assertion)
    return build(site, arguments)


def _indirect(site: Site, register: str, arguments: Sequence[str], results: Sequence[str]) -> Turn:
    """Build a call through an address, where each thread may call a different function."""
    code = site.code
    sizes = [_size(site, text) for text in (*arguments, *results)]
    links: dict[str, _Link] = {}
    for name in code.addressed:
        one = code.functions[name]
        held = [variable.nbytes for variable in (*one.parameters, *one.results)]
        if len(one.parameters) == len(arguments) and held == sizes:
            links[name] = _link(site, name, arguments, results)
    read = site.reader(next(i for i, one in enumerate(site.operands) if one.base == register), "u64")
    names = {code.addresses[name]: name for name in links}

    def go(f: Frame) -> Gone:
        where = broadcast(read(f), f)
        gone: Gone = []
        for address in np.unique(where).tolist():
            part = f.subset(where == address)
            if address not in names:
                text = f"{part.text()} calls {address:#x}, but no function with these parameters begins there"
                raise site.fault("indirect call", text, part, "call")
            gone += _call(site, part, names[address], links)
        return gone

    return Turn(go)


def _size(site: Site, text: str) -> int:
    for variable in site.code.functions[site.function].variables:
        if variable.name == text.strip():
            return variable.nbytes
    raise Refused(f"{text} is not a parameter of a call")


def _link(site: Site, name: str, arguments: Sequence[str], results: Sequence[str]) -> _Link:
    code = site.code
    inward = [_copied(site, text, code.parameter_of(name, i)) for i, text in enumerate(arguments)]
    outward = [_copied(site, text, code.parameter_of(name, i, True)) for i, text in enumerate(results)]
    deep = name in code.recursive and site.function in code.recursive
    keeps = code.rows_of(site.function) if deep else ()
    moves = code.frame_bytes(site.function) if site.function in code.recursive else 0
    return _Link(code.entry_of[name], inward, outward, moves, code.frame_bytes(name), keeps)


def _copied(site: Site, text: str, parameter: tuple[str, Any]) -> _Copy:
    key, space = site.code.symbol(site.function, text.strip())
    if space != "local":
        raise Refused(f"{text} is not a parameter of a call")
    code = site.code
    return _Copy(code.local_place(key), code.local_place(parameter[0]), parameter[1].nbytes)


def _call(site: Site, f: Frame, name: str, links: dict[str, _Link]) -> Gone:
    m, link, after = f.m, links[name], site.number + 1
    depth = m.depth[f.threads]
    if int(depth.max()) >= MAX_CALLS:
        raise site.fault("call depth", f"{f.text()}: more than {MAX_CALLS} nested calls", f)
    stack: Array | None = m.state.get("returns")
    if stack is None or int(depth.max()) >= len(stack):
        grown = np.zeros((2 * len(stack) if stack is not None else 16, m.count), np.int64)
        grown[: 0 if stack is None else len(stack)] = 0 if stack is None else stack
        stack = m.state["returns"] = grown
    if link.moves or link.frame:
        needed = int(m.frame_starts(f).max()) + link.moves + link.frame
        if not m.grow_local(needed):
            text = f"{f.text()}: the call frames take {needed} bytes of each thread's local memory"
            raise site.fault("call depth", text, f)
    _copy(f, link.inward, link.moves)
    for level in np.unique(depth).tolist() if link.keeps else ():
        _keep(f.subset(depth == level), link.keeps, m.state, (level, site.number))
    stack[depth, f.threads] = after
    m.depth[f.threads] += 1
    if link.moves:
        m.frames[f.threads] += link.moves
    m.state["results", after] = lambda part, function: _back(part, links[function], site.number)
    return [(link.entry, f)]


def _back(f: Frame, link: _Link, number: int) -> None:
    """Restore the caller's frame and registers after a return, and copy the results."""
    m = f.m
    if link.moves:
        m.frames[f.threads] -= link.moves
    if link.keeps:
        depth = m.depth[f.threads]
        for level in np.unique(depth).tolist():
            part = f.subset(depth == level)
            for bank, rows in enumerate(link.keeps):
                held = m.state["kept", level, number][bank]
                m.registers.banks[bank][rows[:, None], part.threads] = held[:, part.threads]
    _copy(f, link.outward, link.moves, back=True)


def _keep(f: Frame, keeps: Sequence[Array], state: dict[Any, Any], key: tuple[int, int]) -> None:
    m: Host = f.m
    held = state.get(("kept", *key))
    if held is None:
        banks = m.registers.banks
        held = [np.zeros((len(rows), m.count), bank.dtype) for rows, bank in zip(keeps, banks, strict=True)]
        state["kept", *key] = held
    for bank, rows in enumerate(keeps):
        held[bank][:, f.threads] = m.registers.banks[bank][rows[:, None], f.threads]


def _copy(f: Frame, pairs: Sequence[_Copy], moves: int, back: bool = False) -> None:
    """Copy parameters from the caller to the callee, or back; the callee's frame begins `moves` bytes after the
    caller's.
    """
    m = f.m
    for one in pairs:
        own, other = (
            (f.threads * m.local_stride + offset + (m.frame_starts(f) + behind if framed else 0))[:, None]
            + np.arange(one.size)
            for (offset, framed), behind in ((one.own, 0), (one.other, moves))
        )
        source, target = (other, own) if back else (own, other)
        m.local[target] = m.local[source]
