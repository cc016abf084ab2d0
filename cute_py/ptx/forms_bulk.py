"""The copies without a tensor map: cp.async.bulk and its reduction, the prefetch, and the bulk groups.

Addresses and sizes are in bytes; both addresses and the size are multiples of 16.
"""

from __future__ import annotations

from cute_py.ptx.instruction import (
    B16,
    B32,
    B64,
    GLOBAL,
    IMMEDIATE,
    MOVE,
    SHARED,
    Narrow,
    Operand,
    Rule,
    operand,
    row,
    when,
)
from cute_py.targets import Targets

HINT = "cache_hint?=L2::cache_hint"
POLICY = operand("policy", B64, cache_hint="L2::cache_hint")
TO_BARRIER = "completion=mbarrier::complete_tx::bytes"
TO_GROUP = "completion=bulk_group"
MULTICAST = "multicast?=multicast::cluster"
MASK = operand("mask", B16, multicast="multicast::cluster")
CTA_IS_ALONE = Rule(
    when(spaces="shared::cta.global", multicast="multicast::cluster"),
    forbid="multicast::cluster needs the destination shared::cluster",
)
_SIZE = Operand("size", (B32,), step=16)
_TO_SHARED, _TO_GLOBAL = operand("destination", SHARED), operand("destination", GLOBAL)
_FROM_SHARED, _FROM_GLOBAL = operand("source", SHARED), operand("source", GLOBAL)
_BARRIER = operand("barrier", SHARED)
_COPY = MOVE + "cp.async.bulk"
_REDUCE = MOVE + "cp.reduce.async.bulk"

REDUCE_TYPES_GLOBAL: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
"""Reduction -> element types that it takes towards global memory (add of f16 and bf16 with .noftz only)."""

REDUCE_TYPES_CLUSTER: dict[str, tuple[str, ...]] = {
    op: tuple(t for t in types if t in ("u32", "s32", "b32") or (op, t) == ("add", "u64"))
    for op, types in REDUCE_TYPES_GLOBAL.items()
}
"""Reduction -> element types that it takes towards another CTA's shared memory: integers of 32 bits, and add of u64."""

REDUCE_KINDS = tuple(REDUCE_TYPES_GLOBAL)
_ALL_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64", "f16", "bf16", "f32", "f64")
_HALVES = ("f16", "bf16")


def _type_rules(table: dict[str, tuple[str, ...]]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            when(op=op, type=("", *(t for t in _ALL_TYPES if t not in types))),
            forbid=f"{op} takes the types {', '.join(types)} here",
        )
        for op, types in table.items()
    )


PEER_TYPE_RULES = _type_rules(REDUCE_TYPES_CLUSTER)
"""The type rules towards another CTA's shared memory, for cp.reduce.async.bulk and red.async."""

BULK_FORMS = (
    row(
        "cp.async.bulk",
        f"spaces=shared::cluster.global|shared::cta.global {TO_BARRIER} {MULTICAST} {HINT}",
        (_TO_SHARED, Operand("source", (GLOBAL,), narrow=Narrow.NOT_CONSUMER), _SIZE, _BARRIER, MASK, POLICY),
        name="bulk.load",
        family="bulk",
        section=_COPY,
        rules=(Rule(when(spaces="shared::cta.global"), since=(8, 6)), CTA_IS_ALONE),
    ),
    row(
        "cp.async.bulk",
        f"spaces=shared::cluster.shared::cta {TO_BARRIER}",
        (_TO_SHARED, _FROM_SHARED, _SIZE, _BARRIER),
        name="bulk.peer",
        family="bulk",
        section=_COPY,
    ),
    row(
        "cp.async.bulk",
        f"spaces=global.shared::cta {TO_GROUP} {HINT} cp_mask?=cp_mask",
        (_TO_GLOBAL, _FROM_SHARED, _SIZE, POLICY, operand("byte_mask", B16, cp_mask="cp_mask")),
        name="bulk.store",
        family="bulk",
        section=_COPY,
        rules=(Rule(when(cp_mask="cp_mask"), Targets.FROM_100, (8, 6)),),
    ),
    row(
        "cp.async.bulk.prefetch",
        f"level=L2 spaces=global {HINT}",
        (_FROM_GLOBAL, _SIZE, POLICY),
        name="bulk.prefetch",
        family="bulk",
        section=_COPY + ".prefetch",
    ),
    row(
        "cp.reduce.async.bulk",
        f"spaces=global.shared::cta {TO_GROUP} {HINT} op={'|'.join(REDUCE_KINDS)} noftz?=noftz "
        f"type={'|'.join(_ALL_TYPES)}",
        (_TO_GLOBAL, _FROM_SHARED, _SIZE, POLICY),
        name="bulk.reduce",
        family="bulk.reduce",
        section=_REDUCE,
        rules=(
            *_type_rules(REDUCE_TYPES_GLOBAL),
            Rule(when(op="add", type=_HALVES, noftz=""), forbid="add of f16 or bf16 is written with .noftz"),
            Rule(when(op=REDUCE_KINDS[1:], noftz="noftz"), forbid="noftz goes with add only"),
            Rule(
                when(op="add", type=tuple(t for t in _ALL_TYPES if t not in _HALVES), noftz="noftz"),
                forbid="noftz goes with f16 and bf16 only",
            ),
        ),
    ),
    row(
        "cp.reduce.async.bulk",
        f"spaces=shared::cluster.shared::cta {TO_BARRIER} op={'|'.join(REDUCE_KINDS)} type={'|'.join(_ALL_TYPES)}",
        (_TO_SHARED, _FROM_SHARED, _SIZE, _BARRIER),
        name="bulk.reduce.peer",
        family="bulk.reduce",
        section=_REDUCE,
        rules=PEER_TYPE_RULES,
    ),
    row(
        "cp.async.bulk.commit_group",
        name="bulk.commit_group",
        family="bulk.group",
        section=_COPY + ".commit_group",
    ),
    row(
        "cp.async.bulk.wait_group",
        "read?=read",
        (operand("groups", IMMEDIATE),),
        name="bulk.wait_group",
        family="bulk.group",
        section=_COPY + ".wait_group",
    ),
)
