"""Instructions that a TMA kernel needs in addition to copies: clusters, election of a thread, cache policies, address
conversion, and register allocation.

Cache control consists of policies for the `.L2::cache_hint` operand, and of priorities and prefetches of cache lines.

The consumer of a tile needs the fences of warpgroup matrix instructions, and the query of a cancelled cluster launch.
"""

from __future__ import annotations

from functools import partial

from cute_py.ptx.forms_copy import PEER_TYPE_RULES, REDUCE_KINDS, TO_BARRIER
from cute_py.ptx.instruction import MOVE, SYNC, Narrow, by_space, forbid, needs, operand, row
from cute_py.targets import Targets

PRIMARY = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
SECONDARY = ("L2::evict_first", "L2::evict_unchanged")
"""Priorities of the accesses that the primary priority does not cover."""

PAIRS = tuple(f"{first}.{second}" for first in PRIMARY for second in SECONDARY if first != second)
REGISTER_COUNTS = tuple(range(24, 257, 8))
"""Register counts that setmaxnreg accepts: 24..256 in steps of 8 registers."""

_PRIORITY = f"priority={'|'.join((*PRIMARY, *PAIRS))}"
_POLICY = operand("policy", "b64", written=True)
_LINE = (*by_space("address", "", "global", narrow=Narrow.REFUSED), operand("size", "immediate", values=(128,)))
_GLOBAL = "spaces?=global"

_from_100 = partial(row, targets=Targets.FROM_100, since=(8, 6))
_since_2 = partial(row, targets=Targets.ANY, since=(2, 0))

CACHE_FORMS = (
    *(
        row(opcode, slots, operands, section=MOVE + opcode.split(".")[0], targets=Targets.FROM_80, since=(7, 4))
        for opcode, slots, operands in (
            ("createpolicy.fractional", f"{_PRIORITY} type=b64", (_POLICY, operand("fraction", "f32", optional=True))),
            (
                "createpolicy.range",
                f"{_GLOBAL} {_PRIORITY} type=b64",
                (
                    _POLICY,
                    *by_space("address", "", "global"),
                    operand("primary_size", "b32"),
                    operand("total_size", "b32"),
                ),
            ),
            ("createpolicy.cvt", "level=L2 type=b64", (_POLICY, operand("access", "b64"))),
            ("applypriority", f"{_GLOBAL} priority=L2::evict_normal", _LINE),
            ("discard", f"{_GLOBAL} level=L2", _LINE),
        )
    ),
    _since_2(
        "prefetch",
        "spaces?=global|local level=L1|L2|L2::evict_last|L2::evict_normal",
        (operand("address", "generic", narrow=Narrow.REFUSED),),
        name="prefetch.line",
        rules=(
            needs(Targets.FROM_80, (7, 4), level=PRIMARY[:2]),
            forbid("an eviction priority requires .global, not .local", level=PRIMARY[:2], spaces="local"),
        ),
    ),
)

_AXES = ("get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z")

WARPGROUP_FORMS = (
    _from_100(
        "clusterlaunchcontrol.query_cancel",
        f"query=is_canceled|get_first_ctaid|{'|'.join(_AXES)} vector?=v4 result=pred|b32 type>result=b128",
        (
            operand("answer", "predicate", result="pred", written=True),
            operand("answer", "vector", result="b32", vector="v4", written=True),
            operand("answer", "b32", result="b32", vector="", written=True),
            operand("response", "b128"),
        ),
        rules=(
            forbid("is_canceled returns a .pred", query="is_canceled", result="b32"),
            forbid("is_canceled returns a .pred", query="is_canceled", vector="v4"),
            forbid("get_first_ctaid returns .b32", query=("get_first_ctaid", *_AXES), result="pred"),
            forbid("get_first_ctaid returns .v4.b32", query="get_first_ctaid", vector=""),
            forbid("get_first_ctaid::x, ::y and ::z return one .b32", query=_AXES, vector="v4"),
        ),
    ),
    *(
        row(
            name,
            "sync=sync aligned?=(aligned)",
            (operand("groups", "immediate", lowest=0),) if name == "wgmma.wait_group" else (),
            section="Asynchronous Warpgroup Level Matrix Instructions: wgmma.fence, commit_group, wait_group",
            targets=Targets.ONLY_90A,
        )
        for name in ("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group")
    ),
)

_CLUSTER = "spaces?=(shared::cluster) type=(u32)|u64"
_ADDRESS = (
    operand("address", "b32", symbol=True, type="u32"),
    operand("address", "b64", symbol=True, type="u64"),
)
_ALIGNED = "aligned?=aligned"

CLUSTER_FORMS = (
    row(
        "mapa",
        _CLUSTER,
        (
            operand("peer", "b32", type="u32", written=True),
            operand("peer", "b64", type="u64", written=True),
            *_ADDRESS,
            operand("cta", "b32"),
        ),
        since=(7, 8),
    ),
    row("getctarank", _CLUSTER, (operand("cta", "b32", written=True), *_ADDRESS), since=(7, 8)),
    row(
        "elect",
        "sync=sync",
        (operand("leader", "register_and_predicate", written=True), operand("members", "b32")),
        name="elect.sync",
        section=SYNC + "elect.sync",
    ),
    *(
        row(
            f"barrier.cluster.{name}",
            f"sem?={'|'.join(orders)} {_ALIGNED}",
            section=SYNC + "barrier.cluster",
            since=(7, 8),
            rules=(needs(since=(8, 0), sem=orders),),
        )
        for name, orders in (("arrive", ("release", "relaxed")), ("wait", ("acquire",)))
    ),
    row("griddepcontrol", "action=launch_dependents|wait", since=(7, 8)),
    row(
        "setmaxnreg",
        "action=inc|dec sync>action=sync aligned>action=aligned type>action=u32",
        (operand("registers", "immediate", values=REGISTER_COUNTS),),
        section="Miscellaneous Instructions: setmaxnreg",
        targets=Targets.SPECIFIC_FROM_90,
    ),
    _from_100(
        "clusterlaunchcontrol.try_cancel",
        f"async=async spaces>async?=shared::cta {TO_BARRIER.replace('=', '>async=')} "
        "multicast>async?=multicast::cluster::all type>async=b128",
        (*by_space("destination", "shared::cta", ""), *by_space("barrier", "shared::cta", "")),
        rules=(needs(Targets.SPECIFIC_FROM_100, (8, 6), multicast="multicast::cluster::all"),),
    ),
)

_SPACES = "spaces=shared|shared::cta|shared::cluster|global|param|const|local"
_SPACE_RULES = (
    needs(Targets.FROM_90, (7, 8), spaces="shared::cluster"),
    needs(since=(7, 8), spaces="shared::cta"),
    needs(since=(7, 7), spaces="param"),
)

ADDRESS_FORMS = (
    _since_2(
        "cvta",
        f"to?=to {_SPACES.replace('=', '>to=')} type>to=u64",
        (
            operand("result", "b64", written=True),
            operand("address", "b64", symbol=True, to=""),
            operand("address", "b64", to="to"),
        ),
        rules=_SPACE_RULES,
    ),
    _since_2(
        "isspacep",
        _SPACES,
        (operand("result", "predicate", written=True), operand("address", "b64 b32")),
        rules=_SPACE_RULES,
    ),
    _from_100(
        "st.bulk",
        "weak?=weak spaces?=shared::cta",
        (
            *by_space("destination", "shared::cta", ""),
            operand("size", "b64", step=8, highest=1 << 24),
            operand("value", "immediate", values=(0,)),
        ),
    ),
)

_TO_PEER, _BARRIER = operand("destination", "shared"), operand("barrier", "shared")

REMOTE_FORMS = (
    row(
        "st.async",
        f"weak?=weak spaces?=(shared::cluster) {TO_BARRIER} vector?=v2|v4 type=b32|u32|s32",
        (_TO_PEER, operand("value", "vector", vector=("v2", "v4")), operand("value", "b32", vector=""), _BARRIER),
        since=(8, 1),
        partial=True,
    ),
    row(
        "red.async",
        f"sem=relaxed scope=cluster spaces?=(shared::cluster) {TO_BARRIER} op={'|'.join(REDUCE_KINDS)} "
        "type=u32|s32|u64|b32",
        (_TO_PEER, operand("value", "b32", type=("u32", "s32", "b32")), operand("value", "b64", type="u64"), _BARRIER),
        since=(8, 1),
        rules=PEER_TYPE_RULES,
    ),
)

SYNC_FORMS = (*CLUSTER_FORMS, *ADDRESS_FORMS, *REMOTE_FORMS)
