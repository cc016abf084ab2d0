"""What a TMA kernel needs beside the copies: clusters, election, policies, address conversion, register budget.

Cache control: policies for the `.L2::cache_hint` operand, priorities and prefetches of lines.

Around the consumer of a tile: the warpgroup matrix fences, and what a cancelled cluster launch answers.
"""

from __future__ import annotations

from cute_py.ptx.forms_copy import PEER_TYPE_RULES, REDUCE_KINDS, TO_BARRIER
from cute_py.ptx.instruction import (
    B32,
    B64,
    B128,
    GENERIC,
    IMMEDIATE,
    MOVE,
    PREDICATE,
    SHARED,
    SYNC,
    VECTOR,
    Operand,
    OperandClass,
    Rule,
    by_space,
    operand,
    row,
    when,
)
from cute_py.targets import Targets

PRIMARY = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
SECONDARY = ("L2::evict_first", "L2::evict_unchanged")
"""What the part of the accesses gets that the primary priority does not cover."""

PAIRS = tuple(f"{first}.{second}" for first in PRIMARY for second in SECONDARY if first != second)
REGISTER_COUNTS = tuple(range(24, 257, 8))
"""What setmaxnreg takes: 24..256 in steps of 8 registers."""

_PRIORITY = f"priority={'|'.join((*PRIMARY, *PAIRS))}"
_POLICY = Operand("policy", (B64,), written=True)
_LINE = (*by_space("address", "", "global"), Operand("size", (IMMEDIATE,), values=(128,)))
_GLOBAL = "spaces?=global"

CACHE_FORMS = (
    *(
        row(opcode, slots, operands, section=MOVE + opcode.split(".")[0], targets=Targets.FROM_80, since=(7, 4))
        for opcode, slots, operands in (
            (
                "createpolicy.fractional",
                f"{_PRIORITY} type=b64",
                (_POLICY, Operand("fraction", (OperandClass.F32,), optional=True)),
            ),
            (
                "createpolicy.range",
                f"{_GLOBAL} {_PRIORITY} type=b64",
                (
                    _POLICY,
                    *by_space("address", "", "global"),
                    operand("primary_size", B32),
                    operand("total_size", B32),
                ),
            ),
            ("createpolicy.cvt", "level=L2 type=b64", (_POLICY, operand("access", B64))),
            ("applypriority", f"{_GLOBAL} priority=L2::evict_normal", _LINE),
            ("discard", f"{_GLOBAL} level=L2", _LINE),
        )
    ),
    row(
        "prefetch",
        "spaces?=global|local level=L1|L2|L2::evict_last|L2::evict_normal",
        (operand("address", GENERIC),),
        name="prefetch.line",
        section=MOVE + "prefetch",
        targets=Targets.ANY,
        since=(2, 0),
        rules=(
            Rule(when(level=PRIMARY[:2]), Targets.FROM_80, (7, 4)),
            Rule(when(level=PRIMARY[:2], spaces="local"), forbid="an eviction priority is for .global, not for .local"),
        ),
    ),
)

_AXES = ("get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z")

WARPGROUP_FORMS = (
    row(
        "clusterlaunchcontrol.query_cancel",
        f"query=is_canceled|get_first_ctaid|{'|'.join(_AXES)} vector?=v4 result=pred|b32 type=b128",
        (
            Operand("answer", (PREDICATE,), when(result="pred"), written=True),
            Operand("answer", (VECTOR,), when(result="b32", vector="v4"), written=True),
            Operand("answer", (B32,), when(result="b32", vector=""), written=True),
            operand("response", B128),
        ),
        targets=Targets.FROM_100,
        since=(8, 6),
        rules=(
            Rule(when(query="is_canceled", result="b32"), forbid="is_canceled answers with a .pred"),
            Rule(when(query="is_canceled", vector="v4"), forbid="is_canceled answers with a .pred"),
            Rule(when(query=("get_first_ctaid", *_AXES), result="pred"), forbid="get_first_ctaid answers with .b32"),
            Rule(when(query="get_first_ctaid", vector=""), forbid="get_first_ctaid answers with .v4.b32"),
            Rule(when(query=_AXES, vector="v4"), forbid="get_first_ctaid::x, ::y and ::z answer with one .b32"),
        ),
    ),
    *(
        row(
            name,
            "sync=sync aligned?=(aligned)",
            (operand("groups", IMMEDIATE),) if name == "wgmma.wait_group" else (),
            section="Asynchronous Warpgroup Level Matrix Instructions: wgmma.fence, commit_group, wait_group",
            targets=Targets.ONLY_90A,
        )
        for name in ("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group")
    ),
)

_CLUSTER = "spaces?=(shared::cluster) type=(u32)|u64"
_ADDRESS = (operand("address", B32, type="u32"), operand("address", B64, type="u64"))
_ALIGNED = "aligned?=aligned"

CLUSTER_FORMS = (
    row(
        "mapa",
        _CLUSTER,
        (
            Operand("peer", (B32,), when(type="u32"), written=True),
            Operand("peer", (B64,), when(type="u64"), written=True),
            *_ADDRESS,
            operand("cta", B32),
        ),
        section=MOVE + "mapa",
        since=(7, 8),
    ),
    row(
        "getctarank",
        _CLUSTER,
        (Operand("cta", (B32,), written=True), *_ADDRESS),
        section=MOVE + "getctarank",
        since=(7, 8),
    ),
    row(
        "elect",
        "sync=sync",
        (Operand("leader", (OperandClass.REGISTER_AND_PREDICATE,), written=True), operand("members", B32)),
        name="elect.sync",
        section=SYNC + "elect.sync",
    ),
    *(
        row(
            f"barrier.cluster.{name}",
            f"sem?={'|'.join(orders)} {_ALIGNED}",
            section=SYNC + "barrier.cluster",
            since=(7, 8),
            rules=(Rule(when(sem=orders), since=(8, 0)),),
        )
        for name, orders in (("arrive", ("release", "relaxed")), ("wait", ("acquire",)))
    ),
    row("griddepcontrol", "action=launch_dependents|wait", since=(7, 8)),
    row(
        "setmaxnreg",
        "action=inc|dec sync=sync aligned=aligned type=u32",
        (Operand("registers", (IMMEDIATE,), values=REGISTER_COUNTS),),
        section="Miscellaneous Instructions: setmaxnreg",
        targets=Targets.SPECIFIC_FROM_90,
    ),
    row(
        "clusterlaunchcontrol.try_cancel",
        f"async=async spaces?=shared::cta {TO_BARRIER} multicast?=multicast::cluster::all type=b128",
        (*by_space("destination", "shared::cta", ""), *by_space("barrier", "shared::cta", "")),
        targets=Targets.FROM_100,
        since=(8, 6),
        rules=(Rule(when(multicast="multicast::cluster::all"), Targets.SPECIFIC_FROM_100, (8, 6)),),
    ),
)

_SPACES = "spaces=shared|shared::cta|shared::cluster|global|param|const|local"
_SPACE_RULES = (
    Rule(when(spaces="shared::cluster"), Targets.FROM_90, (7, 8)),
    Rule(when(spaces="shared::cta"), since=(7, 8)),
    Rule(when(spaces="param"), since=(7, 7)),
)

ADDRESS_FORMS = (
    row(
        "cvta",
        f"to?=to {_SPACES} type=u64",
        (Operand("result", (B64,), written=True), operand("address", B64)),
        section=MOVE + "cvta",
        targets=Targets.ANY,
        since=(2, 0),
        rules=_SPACE_RULES,
    ),
    row(
        "isspacep",
        _SPACES,
        (Operand("result", (PREDICATE,), written=True), operand("address", B64, B32)),
        section=MOVE + "isspacep",
        targets=Targets.ANY,
        since=(2, 0),
        rules=_SPACE_RULES,
    ),
    row(
        "st.bulk",
        "weak?=weak spaces?=shared::cta",
        (
            *by_space("destination", "shared::cta", ""),
            Operand("size", (B64,), step=8),
            Operand("value", (IMMEDIATE,), values=(0,)),
        ),
        section=MOVE + "st.bulk",
        targets=Targets.FROM_100,
        since=(8, 6),
    ),
)

_TO_PEER, _BARRIER = operand("destination", SHARED), operand("barrier", SHARED)

REMOTE_FORMS = (
    row(
        "st.async",
        f"weak?=weak spaces=shared::cluster {TO_BARRIER} vector?=v2|v4 type=b32|u32|s32",
        (_TO_PEER, operand("value", VECTOR, vector=("v2", "v4")), operand("value", B32, vector=""), _BARRIER),
        section=MOVE + "st.async",
        since=(8, 1),
        partial=True,
    ),
    row(
        "red.async",
        f"sem=relaxed scope=cluster spaces=shared::cluster {TO_BARRIER} op={'|'.join(REDUCE_KINDS)} "
        "type=u32|s32|u64|b32",
        (_TO_PEER, operand("value", B32, type=("u32", "s32", "b32")), operand("value", B64, type="u64"), _BARRIER),
        since=(8, 1),
        rules=PEER_TYPE_RULES,
    ),
)

SYNC_FORMS = (*CLUSTER_FORMS, *ADDRESS_FORMS, *REMOTE_FORMS)
