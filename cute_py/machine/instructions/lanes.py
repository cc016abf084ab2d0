"""Collective operations of the lanes of a warp: shuffles, votes, matches, reductions, elections.

A collective runs when all live lanes of its mask have reached it; lanes that arrive earlier wait. Source: PTX ISA 9.0,
shfl.sync, vote.sync, match.sync, redux.sync, elect.sync, activemask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.judgement.waits import LanesWait
from cute_py.machine.moves import shuffle
from cute_py.machine.schedule import Waiting
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, Array, Control, Frame, Reader, Run, broadcast, warpgroup_of
from cute_py.ptx.parse import OperandKind

ALL: Final = 0xFFFFFFFF
_OTHERS: Final = "the other lanes in its mask"
_BITS: Final = np.uint32(1) << np.arange(LANES, dtype=np.uint32)
Gone = list[tuple[int, Frame]]


def mask_of(flags: Array) -> Array:
    """Pack flags (warps, 32) into one word per warp."""
    return np.packbits(flags, axis=1, bitorder="little").view(np.uint32)[:, 0]


def collective(site: Site, mask: Reader | None, run: Run, *, warps: int = 1, full: bool = False) -> Turn:
    """Build an instruction that runs when all lanes in a mask, or without a mask all live lanes of `warps` warps, have
    reached it.

    full: whether all 32 lanes of a warp must reach it, so that no lane may have exited.
    """
    if full:
        run = _expect_full(site, run, warps)
    if mask is not None and _names_all(site):
        mask = None
    key = ("gathered", site.number)
    after = site.number + 1

    def go(f: Frame) -> Gone | None:
        held = f.m.state.get(key)
        ready = held is None and (f.whole() if warps == 1 else f.whole_groups())
        if ready and (mask is None or bool((broadcast(mask(f), f) == ALL).all())):
            run(f)
            return None
        return gather(f)

    def complete(f: Frame) -> Array:
        """Flags (n,): whether the frame contains all live lanes that a thread's mask names."""
        if warps > 1:
            group = warpgroup_of(f.m, f.threads)
            here_, count = np.unique(group, return_counts=True)
            live_ = np.bincount(f.m.row("warpgroups", lambda: warpgroup_of(f.m, np.arange(f.m.count)))[f.m.live])
            whole: Array = (count == live_[here_])[np.searchsorted(here_, group)]
            return whole
        live = mask_of(f.m.live.reshape(-1, LANES)[f.warps])
        here = mask_of(f.present)
        place = np.searchsorted(f.warps, f.threads // LANES)
        wanted = np.full(f.n, ALL, np.uint32) if mask is None else broadcast(mask(f), f)
        wanted = wanted & live[place]
        found: Array = (wanted & here[place]) == wanted
        return found

    def gather(f: Frame) -> Gone:
        m = f.m
        held = m.state.pop(key, None)
        if held is not None:
            m.waiting.remove(held)
            f = m.union(f, held.frame)
        ready_now = complete(f)
        gone: Gone = []
        if ready_now.any():
            part = f if ready_now.all() else f.subset(ready_now)
            run(part)
            gone.append((after, part))
        if not ready_now.all():
            hold(f.subset(~ready_now))
        return gone

    def hold(f: Frame) -> None:
        waiting = Waiting(f, after, site.number, again, lambda: _OTHERS, on=LanesWait(warps))
        f.m.state[key] = waiting
        f.m.wait(waiting)

    def again(one: Waiting) -> tuple[Gone, Frame | None] | None:
        ready_now = complete(one.frame)
        if not ready_now.any():
            return None
        part = one.frame if ready_now.all() else one.frame.subset(ready_now)
        run(part)
        if ready_now.all():
            one.frame.m.state.pop(key, None)
            return [(after, part)], None
        return [(after, part)], one.frame.subset(~ready_now)

    return Turn(_noticed(site, go, mask))


def _noticed(site: Site, go: Control, mask: Reader | None) -> Control:
    """Wrap an instruction so that the observer gets an event if threads have exited and the mask names all lanes."""

    def reported(f: Frame) -> Gone | None:
        if f.m.exits:
            every = np.ones(f.n, np.bool_) if mask is None else broadcast(mask(f), f) == ALL
            if every.any():
                f.m.observer.gathered(f if every.all() else f.subset(every), site)
        return go(f)

    return reported


def _names_all(site: Site) -> bool:
    """Whether the mask, which is the last operand, is a constant that names all lanes."""
    return site.operands[-1].value in (ALL, -1)


def _expect_full(site: Site, run: Run, warps: int) -> Run:
    """Wrap an instruction so that it raises a fault unless whole warps or warpgroups execute it."""
    what = "a warp" if warps == 1 else f"a warpgroup of {warps} warps"

    def whole(f: Frame) -> None:
        if f.n != LANES * len(f.warps) or (warps > 1 and not f.whole_groups()):
            short = _incomplete(f, warps)
            verb = "executes" if short.n == 1 else "execute"
            name = site.one.opcode.split(".")[0]
            text = f"{short.text()} {verb} {name}, but all threads of {what} must execute it"
            facts = {"cause": "incomplete warpgroup"} if warps > 1 else {}
            raise site.fault("divergent aligned instruction", text, short, ".aligned", **facts)
        run(f)

    return whole


def _incomplete(f: Frame, warps: int) -> Frame:
    """The threads of a frame whose warp, or warpgroup if `warps` is not 1, is not complete in the frame."""
    group = f.threads // LANES if warps == 1 else warpgroup_of(f.m, f.threads)
    groups, count = np.unique(group, return_counts=True)
    return f.subset((count < LANES * warps)[np.searchsorted(groups, group)])


def _pair(site: Site, place: int) -> tuple[str, str | None]:
    """The two names in an operand `d|p`; the second is None for an operand `d`."""
    one = site.operand(place)
    if one.kind is OperandKind.PAIR:
        return one.elements[0], one.elements[1]
    return one.text, None


def build_shuffle(site: Site) -> Turn:
    """Build the function that runs shfl.sync."""
    site.flag("sync")
    mode = site.choice("up", "down", "bfly", "idx")
    site.kind("b32")
    site.finish(5 if "sync" in site.modifiers else 4)
    name, inside_name = _pair(site, 0)
    put = site.write(name, "b32")
    put_inside = None if inside_name is None else site.write(inside_name, "pred")
    value, source, control = (site.reader(i, "b32") for i in (1, 2, 3))
    mask = site.reader(4, "b32") if len(site.operands) > 4 else None
    fixed = all(site.operand(i).kind is OperandKind.IMMEDIATE for i in (2, 3))
    table: list[Array] = []

    def tables(f: Frame) -> list[Array]:
        if not table:
            own = np.arange(LANES, dtype=np.uint32)[None]
            words = [np.full((1, LANES), x(f), np.int64) for x in (source, control)]
            found, inside = shuffle(mode, own, *words)
            table.extend([found[0].astype(np.intp), inside[0]])
        return table

    def run(f: Frame) -> None:
        words = f.by_warp(broadcast(value(f), f))
        if fixed:
            lanes, inside = tables(f)
            found = words[:, lanes]
            if put_inside is not None:
                inside = np.broadcast_to(inside, found.shape)
        else:
            distance, clamp = (f.by_warp(broadcast(x(f), f)).astype(np.int64) for x in (source, control))
            found, inside = shuffle(mode, words, distance, clamp)
        put(f, f.of_warps(found))
        if put_inside is not None:
            put_inside(f, f.of_warps(inside))

    return collective(site, mask, run)


def build_vote(site: Site) -> Turn:
    """Build the function that runs vote.sync: all, any, uni or ballot."""
    site.flag("sync")
    mode = site.choice("all", "any", "uni", "ballot")
    site.kind("pred", "b32")
    site.finish((2, 3))
    put = site.writer(0, "b32" if mode == "ballot" else "pred")
    source = site.predicate(1)
    mask = site.reader(2, "b32") if len(site.operands) > 2 else None

    def run(f: Frame) -> None:
        flags = f.by_warp(broadcast(source(f), f)) & f.present
        if mask is not None:
            words = f.by_warp(broadcast(mask(f), f))
            named = (words[:, :, None] >> np.arange(LANES, dtype=np.uint32)) & np.uint32(1)
            taken = named.astype(np.bool_) & f.present[:, None, :]
        else:
            taken = np.broadcast_to(f.present[:, None, :], (len(flags), LANES, LANES))
        chosen = flags[:, None, :] & taken
        if mode == "ballot":
            found = (chosen * _BITS).sum(axis=2, dtype=np.uint32)
        elif mode == "any":
            found = chosen.any(axis=2)
        elif mode == "all":
            found = (chosen == taken).all(axis=2)
        else:
            found = (chosen == taken).all(axis=2) | ~chosen.any(axis=2)
        put(f, f.of_warps(found))

    return collective(site, mask, run)


def build_match(site: Site) -> Turn:
    """Build the function that runs match.sync: any or all."""
    site.flag("sync")
    mode = site.choice("any", "all")
    kind = site.kind("b32", "b64")
    site.finish(3)
    name, same_name = _pair(site, 0)
    put = site.write(name, "b32")
    put_same = None if same_name is None else site.write(same_name, "pred")
    value, mask = site.reader(1, kind), site.reader(2, "b32")

    def run(f: Frame) -> None:
        words = f.by_warp(broadcast(value(f), f))
        masks = f.by_warp(broadcast(mask(f), f))
        named = ((masks[:, :, None] >> np.arange(LANES, dtype=np.uint32)) & np.uint32(1)).astype(np.bool_)
        named &= f.present[:, None, :]
        equal = (words[:, :, None] == words[:, None, :]) & named
        if mode == "any":
            put(f, f.of_warps((equal * _BITS).sum(axis=2, dtype=np.uint32)))
            return
        same = (equal == named).all(axis=2)
        put(f, f.of_warps(np.where(same, (named * _BITS).sum(axis=2, dtype=np.uint32), np.uint32(0))))
        if put_same is not None:
            put_same(f, f.of_warps(same))

    return collective(site, mask, run)


_REDUCED: Final[Mapping[str, Callable[[Array], Any]]] = {
    "add": lambda x: np.add.reduce(x, dtype=x.dtype),
    "min": np.min,
    "max": np.max,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


def _float_extreme(smallest: bool, by_size: bool, keeps_nan: bool) -> Callable[[Array], Any]:
    """Return a function that computes the minimum or maximum of float32 values as bits; -0 is below +0. A NaN counts
    only with `.NaN`, or if all values are NaN.
    """
    sign, infinity, nan = np.uint32(1 << 31), np.uint32(0x7F800000), np.uint32(0x7FFFFFFF)

    def found(words: Array) -> Any:
        missing = (words & ~sign) > infinity
        if missing.all() or (keeps_nan and missing.any()):
            return nan
        held = words[~missing] & ~sign if by_size else words[~missing]
        order = np.where(held & sign, ~held, held | sign)
        return held[order.argmin() if smallest else order.argmax()]

    return found


def build_reduction(site: Site) -> Turn:
    """Build the function that runs redux.sync on integers or float32."""
    site.flag("sync")
    operation = site.choice(*_REDUCED)
    by_size, keeps_nan = site.flag("abs"), site.flag("NaN")
    kind = site.kind("u32", "s32", "b32", "f32")
    floats = kind.name == "f32"
    site.finish(3)
    word = "b32" if floats else kind
    put, value, mask = site.writer(0, word), site.reader(1, word), site.reader(2, "b32")
    if not operation or (floats and operation not in ("min", "max")) or (not floats and (by_size or keeps_nan)):
        raise Refused(f"{site.one.opcode} is not emulated")
    reduced = _float_extreme(operation == "min", by_size, keeps_nan) if floats else _REDUCED[operation]

    def run(f: Frame) -> None:
        words = f.by_warp(broadcast(value(f), f))
        masks = f.by_warp(broadcast(mask(f), f))
        found = np.zeros_like(words)
        for warp in range(len(words)):
            for named in np.unique(masks[warp][f.present[warp]]).tolist():
                lanes = (_BITS & np.uint32(named)).astype(np.bool_) & f.present[warp]
                if lanes.any():
                    found[warp, masks[warp] == named] = reduced(words[warp, lanes])
        put(f, f.of_warps(found))

    return collective(site, mask, run)


def build_election(site: Site) -> Turn:
    """elect.sync: elect the lowest lane of the mask."""
    site.flag("sync")
    site.finish(2)
    name, chosen_name = _pair(site, 0)
    put = site.write(name, "b32")
    put_chosen = None if chosen_name is None else site.write(chosen_name, "pred")
    mask = site.reader(1, "b32")

    def run(f: Frame) -> None:
        masks = f.by_warp(broadcast(mask(f), f)) & mask_of(f.present)[:, None]
        lowest = np.bitwise_count((masks & (~masks + np.uint32(1))) - np.uint32(1)).astype(np.uint32)
        put(f, f.of_warps(lowest))
        if put_chosen is not None:
            put_chosen(f, f.of_warps(lowest) == f.lanes)

    return collective(site, mask, run)


def build_active(site: Site) -> Run:
    """activemask: return the mask of the lanes that run together."""
    site.kind("b32")
    site.finish(1)
    put = site.writer(0, "b32")

    def run(f: Frame) -> None:
        words = np.broadcast_to(mask_of(f.present)[:, None], f.present.shape)
        put(f, f.of_warps(np.ascontiguousarray(words)))

    return run


TABLE: Final[Mapping[str, Builder]] = {
    "shfl": build_shuffle,
    "vote": build_vote,
    "match": build_match,
    "redux": build_reduction,
    "elect": build_election,
    "activemask": build_active,
}
