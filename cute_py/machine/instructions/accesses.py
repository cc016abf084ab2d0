"""Loads, stores, atomics, and addresses: ld, st, atom, red, mov, cvta, mapa, isspacep, prefetch.

Source: PTX ISA 9.0, data movement and conversion instructions; atom, red.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.floats import canonical
from cute_py.machine.instructions.reductions import build_multimem, build_remote_reduction, build_wide_atomic
from cute_py.machine.judgement.observer import WEAK, AccessOrder, AsyncWork, Touched
from cute_py.machine.kinds import KINDS, Kind
from cute_py.machine.memory import (
    GLOBAL_START,
    LOCAL_WINDOW,
    LOCAL_WINDOW_BYTES,
    RANK_SHIFT,
    SHARED_WINDOW,
    SHARED_WINDOW_BYTES,
    address_reader,
    each_range,
    in_peer,
    locate,
    parted,
)
from cute_py.machine.rounding import half_bits
from cute_py.machine.sites import Site, many
from cute_py.machine.threads import Array, Frame, Run, broadcast
from cute_py.ptx.parse import OperandKind

SPACES: Final = (
    "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry", "param::func",
)  # fmt: skip
_ORDERS: Final = ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_CACHES: Final = (
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
    "L1::evict_last", "L1::no_allocate", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", "L2::evict_last",
    "L2::evict_first", "L2::evict_normal", "unified",
)  # fmt: skip
_LOOKS: Final = ("relaxed", "acquire", "volatile", "mmio", "cv")


def hints(site: Site) -> bool:
    """Mark the modifiers of order, scope and caches as used; return whether the access may read data that other threads
    write.
    """
    looks = any(word in _LOOKS for word in site.modifiers)
    site.flag(*_ORDERS)
    site.flag(*_SCOPES)
    site.flag(*_CACHES)
    return looks


def order_of(site: Site, default: str = "weak") -> AccessOrder:
    """Return the memory order and the scope that the modifiers of an access name."""
    words = [word for word in site.modifiers if word in _ORDERS]
    scopes = [word for word in site.modifiers if word in _SCOPES]
    name = words[0] if words else default
    if name in ("volatile", "mmio"):
        return AccessOrder("volatile", "sys")
    return WEAK if name == "weak" else AccessOrder(name, scopes[0] if scopes else "gpu")


def _space(site: Site) -> str:
    return site.choice(*SPACES, default="generic")


def _vector(site: Site) -> int:
    return int(site.choice("v2", "v4", "v8", default="v1")[1:])


def build_load(site: Site) -> Run:
    """Build the function that runs ld or ldu."""
    looks, order = hints(site), order_of(site)
    space, vector, kind = _space(site), _vector(site), site.kind()
    names = site.elements(0)
    site.finish((2, 3))
    if len(names) != vector:
        raise Refused(f"{site.one.opcode} loads {vector} registers, but names {len(names)}")
    parts = 2 if kind.bits == 128 else 1
    if parts == 2:
        return _wide_load(site, space, vector, names)
    size = kind.bits // 8
    puts = [site.write(name, kind) for name in names]
    address = site.address(1)
    if address.space == "entry" and space in ("param", "param::entry"):
        return _parameter(site, address.symbol, address.added, kind, puts)
    where = locate(site, 1, space, size * vector, writes=False)
    dtype, shift = kind.dtype, (size * vector).bit_length() - 1

    def run(f: Frame) -> None:
        array, offsets = where(f)
        if looks:
            f.m.looked = True
        f.m.observer.read(f, site, array, offsets, size * vector, order)
        found = f.m.memory.typed(array, dtype, vector)[offsets >> shift]
        if vector == 1:
            puts[0](f, found)
        else:
            for place, put in enumerate(puts):
                put(f, found[:, place])

    return _done(site, run, 1, space)


def _done(site: Site, run: Run, operand: int, space: str) -> Run:
    """Wrap an access that may touch several ranges or several memories."""
    ranged = each_range(run)
    if space != "generic":
        return ranged
    return parted(ranged, address_reader(site, site.address(operand), "generic"))


def _wide_load(site: Site, space: str, vector: int, names: tuple[str, ...]) -> Run:
    where = locate(site, 1, space, 16 * vector, writes=False)
    keys = [16 * site.slot(name) + KINDS["u64"].code for name in names]

    def run(f: Frame) -> None:
        array, offsets = where(f)
        f.m.observer.read(f, site, array, offsets, 16 * vector, WEAK)
        found = f.m.memory.typed(array, np.dtype(np.uint64), 2 * vector)[offsets // (16 * vector)]
        for place, key in enumerate(keys):
            f.put(key, found[:, 2 * place])
            f.put(key + 16, found[:, 2 * place + 1])

    return _done(site, run, 1, space)


def _parameter(site: Site, symbol: str, added: int, kind: Kind, puts: list[Any]) -> Run:
    """Build the function that loads a parameter of the kernel: one value for all threads."""
    start = site.code.parameter_offsets[symbol] + added
    size = kind.bits // 8
    if start % (size * len(puts)) or start + size * len(puts) > site.code.parameter_bytes:
        raise Refused(
            f"{site.one.opcode} reads {size * len(puts)} bytes at byte {start} of the parameters, "
            "unaligned or beyond their end"
        )

    def run(f: Frame) -> None:
        raw = f.m.memory.parameters.array
        found = raw[start : start + size * len(puts)].view(kind.dtype)
        for put, value in zip(puts, found, strict=True):
            put(f, value)

    return run


def build_store(site: Site) -> Run:
    """Build the function that runs st."""
    if site.flag("async"):
        return build_remote_store(site)
    looks, order = hints(site), order_of(site)
    space, vector, kind = _space(site), _vector(site), site.kind()
    names = site.elements(1)
    site.finish((2, 3))
    if len(names) != vector:
        raise Refused(f"{site.one.opcode} stores {vector} registers, but names {len(names)}")
    if kind.bits == 128:
        return _wide_store(site, space, vector, names)
    size = kind.bits // 8
    sources = [site.read(name, kind) for name in names]
    where = locate(site, 0, space, size * vector, writes=True)
    dtype, shift = kind.dtype, (size * vector).bit_length() - 1
    quiet = space in ("local", "param", "param::func")

    def run(f: Frame) -> None:
        array, offsets = where(f)
        values = sources[0](f) if vector == 1 else many([source(f) for source in sources], f).T
        f.m.observer.wrote(f, site, array, offsets, size * vector, order, values)
        f.m.memory.typed(array, dtype, vector)[offsets >> shift] = values
        if not quiet:
            f.m.version += 1
        if looks:
            f.m.looked = True

    return _done(site, run, 0, space)


def _wide_store(site: Site, space: str, vector: int, names: tuple[str, ...]) -> Run:
    where = locate(site, 0, space, 16 * vector, writes=True)
    keys = [16 * site.slot(name) + KINDS["u64"].code for name in names]

    def run(f: Frame) -> None:
        array, offsets = where(f)
        f.m.observer.wrote(f, site, array, offsets, 16 * vector, WEAK)
        values = [f.get(key + half) for key in keys for half in (0, 16)]
        f.m.memory.typed(array, np.dtype(np.uint64), 2 * vector)[offsets // (16 * vector)] = np.stack(values, axis=1)
        f.m.version += 1

    return _done(site, run, 0, space)


def build_remote_store(site: Site) -> Run:
    """st.async: store to the shared memory of a CTA of the cluster; an mbarrier of that CTA counts the bytes."""
    from cute_py.machine.instructions.mbarriers import land

    site.flag("weak")
    site.flag("mbarrier::complete_tx::bytes")
    site.flag("shared::cluster")
    vector, kind = _vector(site), site.kind()
    names = site.elements(1)
    site.finish(3)
    size = kind.bits // 8
    sources = [site.read(name, kind) for name in names]
    where = locate(site, 0, "shared::cluster", size * vector, writes=True)
    barrier = locate(site, 2, "shared::cluster", 8, writes=True)

    def run(f: Frame) -> None:
        array, offsets = where(f)
        places = barrier(f)[1]
        values = many([source(f) for source in sources], f).T.copy()
        if f.m.observer.active:
            for place in np.unique(places).tolist():
                chosen = places == place
                span = Touched(array, 0, size * vector, offsets[chosen])
                f.m.observer.issued(f.subset(chosen), site, AsyncWork("st.async", [], [span], [place], size * vector))

        def complete() -> None:
            view = f.m.memory.typed(array, kind.dtype, vector)
            view[offsets // (size * vector)] = values if vector > 1 else values[:, 0]
            for place, count in zip(*np.unique(places, return_counts=True), strict=True):
                land(f, site, int(place), size * vector * int(count))

        f.m.under_way("a store to shared memory of the cluster", site.number, complete)

    return run


# ---- atomics ---------------------------------------------------------------------------------------------------------


def _added(a: Any, b: Any) -> Any:
    return canonical(a + b) if getattr(a, "dtype", None) == np.float32 else a + b


_ATOMIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": _added,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "inc": lambda old, new: np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - old.dtype.type(1)),
}


def build_atomic(site: Site) -> Run:
    """Build the function that runs atom or red."""
    if site.flag("async"):
        return build_remote_reduction(site, _ATOMIC)
    hints(site)
    order = order_of(site, "relaxed")
    site.flag("noftz")
    space = site.choice("global", "shared", "shared::cta", "shared::cluster", default="generic")
    operation = site.choice(*_ATOMIC, "cas")
    vector, kind = _vector(site), site.kind()
    returns = site.name == "atom"
    first = 1 if returns else 0
    if not operation:
        raise Refused(f"{site.one.opcode} is not emulated")
    if kind.bits == 128:
        return _done(site, build_wide_atomic(site, space, operation, order), first, space)
    names = site.elements(first + 1)
    sources = [site.read(name, kind) for name in names]
    other = site.reader(first + 2, kind) if operation == "cas" else None
    puts = [site.write(name, kind) for name in site.elements(0)] if returns else []
    site.finish((first + 2, first + 3, first + 4))
    size = kind.bits // 8
    where = locate(site, first, space, size * vector, writes=True)
    combine = _combination(operation, kind)

    def run(f: Frame) -> None:
        m = f.m
        array, offsets = where(f)
        view = m.memory.typed(array, kind.dtype)
        index = offsets // size
        m.looked = True
        m.observer.updated(f, site, array, offsets, size * vector, order)
        for place, source in enumerate(sources):
            values = broadcast(source(f), f)
            swapped = None if other is None else broadcast(other(f), f)
            before, changed = _atomically(view, index + place, values, swapped, combine, returns)
            if returns:
                puts[place](f, before)
            if changed:
                m.version += 1

    return _done(site, run, first, space)


def _combination(operation: str, kind: Kind) -> Callable[[Any, Any], Any]:
    if kind.name in ("f16", "bf16", "f16x2", "bf16x2"):
        return _half_operation(operation, kind)
    return _ATOMIC.get(operation, _ATOMIC["exch"])


def _half_operation(operation: str, kind: Kind) -> Callable[[Any, Any], Any]:
    element = kind.name.removesuffix("x2")

    def numbers(raw: Any) -> Any:
        halves = np.ascontiguousarray(raw).view(np.uint16)
        if element == "f16":
            return halves.view(np.float16).astype(np.float64)
        return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)

    def combine(old: Any, new: Any) -> Any:
        x, y = numbers(old), numbers(new)
        found = x + y if operation == "add" else np.fmin(x, y) if operation == "min" else np.fmax(x, y)
        return half_bits(found, element).view(kind.dtype)

    return combine


def _atomically(
    view: Array, index: Array, values: Array, swapped: Array | None, combine: Callable[[Any, Any], Any], returns: bool
) -> tuple[Array, bool]:
    """Run the operation of each thread in thread order; return the old values, and whether any value changed."""
    before = view[index]
    left = np.arange(len(index))
    changed = False
    while len(left):
        _, first = np.unique(index[left], return_index=True)
        first.sort()
        if len(first) == 1 and len(left) > 8 and swapped is None:
            return _in_turn(view, index, values, combine, left, before)
        now = left[first]
        old = view[index[now]]
        before[now] = old
        new = combine(old, values[now])
        if swapped is not None:
            new = np.where(old == values[now], swapped[now], old)
        view[index[now]] = new
        changed = changed or bool((old != new).any())
        left = np.delete(left, first)
    return before, changed


def _in_turn(
    view: Array, index: Array, values: Array, combine: Callable[[Any, Any], Any], left: Array, before: Array
) -> tuple[Array, bool]:
    """Run the operations of all remaining threads, which access the same element."""
    place = int(index[left[0]])
    start = view[place]
    if combine is _added and view.dtype.kind in "iu":
        sums = np.add.accumulate(np.r_[start, values[left]].astype(view.dtype), dtype=view.dtype)
        before[left] = sums[:-1]
        view[place] = sums[-1]
        return before, True
    current = view[place : place + 1].copy()
    for one in left.tolist():
        before[one] = current[0]
        current = np.asarray(combine(current, values[one : one + 1])).astype(view.dtype, copy=False)
    view[place] = current[0]
    return before, True


# ---- moves and addresses ---------------------------------------------------------------------------------------------


def build_move(site: Site) -> Run:
    """mov: copy a register, constant or address, or pack or unpack registers."""
    kind = site.kind()
    site.finish(2)
    target, source = site.operand(0), site.operand(1)
    if target.kind is OperandKind.VECTOR:
        return _unpacking(site, kind)
    if source.kind is OperandKind.VECTOR:
        return _packing(site, kind)
    if kind.bits == 128:
        keys = [16 * site.slot(one.base) + KINDS["u64"].code for one in (target, source)]

        def wide(f: Frame) -> None:
            for half in (0, 16):
                f.put(keys[0] + half, f.get(keys[1] + half))

        return wide
    d, a = site.writer(0, kind), site.reader(1, kind)
    return lambda f: d(f, a(f))


def _halved(kind: Kind, count: int) -> Kind:
    bits = kind.bits // count
    if bits not in (8, 16, 32, 64):
        raise Refused(f"{kind.bits} bits in {count} registers")
    return KINDS[f"b{bits}"]


def _unpacking(site: Site, kind: Kind) -> Run:
    names = site.elements(0)
    part = _halved(kind, len(names))
    puts = [site.write(name, part) for name in names]
    if kind.bits == 128:
        key = 16 * site.slot(site.operand(1).base) + KINDS["u64"].code

        def wide(f: Frame) -> None:
            for place, put in enumerate(puts):
                put(f, f.get(key + 16 * place))

        return wide
    a = site.reader(1, KINDS[f"b{kind.bits}"])

    def run(f: Frame) -> None:
        raw = np.ascontiguousarray(broadcast(a(f), f)).view(part.dtype).reshape(f.n, -1).copy()
        for place, put in enumerate(puts):
            put(f, raw[:, place])

    return run


def _packing(site: Site, kind: Kind) -> Run:
    names = site.elements(1)
    part = _halved(kind, len(names))
    sources = [site.read(name, part) for name in names]
    if kind.bits == 128:
        key = 16 * site.slot(site.operand(0).base) + KINDS["u64"].code

        def wide(f: Frame) -> None:
            values = [np.array(broadcast(source(f), f)) for source in sources]
            for place, value in enumerate(values):
                f.put(key + 16 * place, value)

        return wide
    whole = KINDS[f"b{kind.bits}"]
    d = site.writer(0, whole)

    def run(f: Frame) -> None:
        d(f, np.ascontiguousarray(many([source(f) for source in sources], f).T).view(whole.dtype)[:, 0])

    return run


_WINDOWS: Final = {"shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "shared::cluster": SHARED_WINDOW,
                   "local": LOCAL_WINDOW}  # fmt: skip


def build_convert_address(site: Site) -> Run:
    """cvta: convert an address to a generic address, or back."""
    back = site.flag("to")
    space = site.choice(*SPACES)
    kind = site.kind("u32", "u64")
    site.finish(2)
    if kind.bits == 32:
        raise Refused(f"{site.one.opcode}: addresses of 32 bits are not emulated")
    window = np.uint64(_WINDOWS.get(space, 0))
    d = site.writer(0, kind)
    a = site.reader(1, kind)
    if not window:
        return lambda f: d(f, a(f))
    return (lambda f: d(f, a(f) - window)) if back else (lambda f: d(f, a(f) + window))


def build_space_test(site: Site) -> Run:
    """isspacep: test whether a generic address is in a state space."""
    space = site.choice(*SPACES)
    site.finish(2)
    d, a = site.writer(0, "pred"), site.reader(1, "u64")

    def run(f: Frame) -> None:
        value = broadcast(a(f), f).astype(np.int64)
        shared = (value >= SHARED_WINDOW) & (value < SHARED_WINDOW + SHARED_WINDOW_BYTES)
        local = (value >= LOCAL_WINDOW) & (value < LOCAL_WINDOW + LOCAL_WINDOW_BYTES)
        if space in ("shared", "shared::cta"):
            rank = (f.ctas % f.m.cluster_size) << RANK_SHIFT
            found = shared & ((value - SHARED_WINDOW) >> RANK_SHIFT << RANK_SHIFT == rank)
        elif space == "shared::cluster":
            found = shared
        elif space == "local":
            found = local
        elif space == "global":
            found = value >= GLOBAL_START
        else:
            found = np.zeros(f.n, np.bool_)
        d(f, found)

    return run


def build_map(site: Site) -> Run:
    """mapa: map an address to the same offset in another CTA of the cluster."""
    space = site.choice("shared::cluster", default="generic")
    kind = site.kind("u32", "u64")
    site.finish(3)
    d, a, rank = site.writer(0, kind), site.reader(1, kind), site.reader(2, "u32")
    window = 0 if space != "generic" else SHARED_WINDOW

    def run(f: Frame) -> None:
        inside = np.asarray(a(f)).astype(np.int64) - window
        peer = np.asarray(rank(f)).astype(np.int64)
        if int(np.max(peer)) >= f.m.cluster_size:
            text = f"{f.text()}: CTA {int(np.max(peer))} of a cluster of {f.m.cluster_size}"
            raise site.fault("cluster rank", text, f, "mapa")
        d(f, (in_peer(inside, peer) + window).astype(kind.dtype))

    return run


def build_rank(site: Site) -> Run:
    """getctarank: get the rank of the CTA that an address belongs to."""
    space = site.choice("shared::cluster", default="generic")
    kind = site.kind("u32", "u64")
    site.finish(2)
    d, a = site.writer(0, "u32"), site.reader(1, kind)
    window = 0 if space != "generic" else SHARED_WINDOW
    return lambda f: d(f, ((np.asarray(a(f)).astype(np.int64) - window) >> RANK_SHIFT).astype(np.uint32))


def build_prefetch(site: Site) -> None:
    """prefetch, prefetchu: no effect, because a program can't observe caches."""


def build_policy(site: Site) -> Run:
    """createpolicy: return a constant, because caches are not emulated."""
    d = site.writer(0, "b64")
    return lambda f: d(f, np.uint64(0))


TABLE: Final[Mapping[str, Builder]] = {
    "ld": build_load, "ldu": build_load, "st": build_store, "atom": build_atomic, "red": build_atomic,
    "mov": build_move, "cvta": build_convert_address, "isspacep": build_space_test, "mapa": build_map,
    "getctarank": build_rank, "prefetch": build_prefetch, "prefetchu": build_prefetch, "createpolicy": build_policy,
    "multimem": build_multimem,
}  # fmt: skip
