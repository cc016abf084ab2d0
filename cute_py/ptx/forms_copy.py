"""The copy instructions: cp.async.bulk.tensor (load, store, reduction, prefetch to L2), cp.async.bulk, and copies by
threads.

Tensor copies: the modes of a load are tile, im2col, and from sm_100 on also im2col::w, im2col::w::128 and
tile::gather4. A store has im2col_no_offs instead of im2col, and tile::scatter4. The address of the tensor map and the
coordinates are in the same brackets.

Bulk copies have no tensor map. Both addresses and the size, in bytes, must be multiples of 16.

Copies without TMA: cp.async with its groups (sm_80), ld.global.nc and st.shared move 4 to 16 bytes per thread and
instruction, and threads compute the addresses.
"""

from __future__ import annotations

from functools import partial

from cute_py.ptx.instruction import MOVE, FormRule, Narrow, by_space, forbid, needs, operand, row
from cute_py.targets import Targets

HINT = "cache_hint?=L2::cache_hint"
POLICY = operand("policy", "b64", cache_hint="L2::cache_hint")
TO_BARRIER = "completion=mbarrier::complete_tx::bytes"
TO_GROUP = "completion=bulk_group"
MULTICAST = "multicast?=multicast::cluster"
MASK = operand("mask", "b16", multicast="multicast::cluster")
CTA_IS_ALONE = forbid(
    "multicast::cluster requires the destination shared::cluster",
    spaces="shared::cta.global",
    multicast="multicast::cluster",
)
_SIZE = operand("size", "b32", step=16, highest=(1 << 20) - 16)
_TO_SHARED, _TO_GLOBAL = operand("destination", "shared"), operand("destination", "global")
_FROM_SHARED, _FROM_GLOBAL = operand("source", "shared"), operand("source", "global")
_BARRIER = operand("barrier", "shared")

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
"""Reduction -> element types that it supports into global memory (add of f16 and bf16 only with .noftz)."""

REDUCE_TYPES_CLUSTER: dict[str, tuple[str, ...]] = {
    op: tuple(t for t in types if t in ("u32", "s32", "b32") or (op, t) == ("add", "u64"))
    for op, types in REDUCE_TYPES_GLOBAL.items()
}
"""Reduction -> element types that it supports into another CTA's shared memory: integers of 32 bits, and add of u64."""

REDUCE_KINDS = tuple(REDUCE_TYPES_GLOBAL)
_ALL_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64", "f16", "bf16", "f32", "f64")
_HALVES = ("f16", "bf16")


def _type_rules(table: dict[str, tuple[str, ...]]) -> tuple[FormRule, ...]:
    return tuple(
        forbid(
            f"{op} takes only the types {', '.join(types)} here",
            op=op,
            type=("", *(t for t in _ALL_TYPES if t not in types)),
        )
        for op, types in table.items()
    )


PEER_TYPE_RULES = _type_rules(REDUCE_TYPES_CLUSTER)
"""The type rules for reductions into another CTA's shared memory, by cp.reduce.async.bulk and red.async."""

_bulk = partial(row, family="bulk")
_reduce = partial(row, family="bulk.reduce")

BULK_FORMS = (
    _bulk(
        "cp.async.bulk",
        f"spaces=shared::cluster.global|shared::cta.global {TO_BARRIER} {MULTICAST} {HINT}",
        (_TO_SHARED, operand("source", "global", narrow=Narrow.NOT_CONSUMER), _SIZE, _BARRIER, MASK, POLICY),
        name="bulk.load",
        rules=(needs(since=(8, 6), spaces="shared::cta.global"), CTA_IS_ALONE),
    ),
    _bulk(
        "cp.async.bulk",
        f"spaces=shared::cluster.shared::cta {TO_BARRIER}",
        (_TO_SHARED, _FROM_SHARED, _SIZE, _BARRIER),
        name="bulk.peer",
    ),
    _bulk(
        "cp.async.bulk",
        f"spaces=global.shared::cta {TO_GROUP} {HINT} cp_mask?=cp_mask",
        (_TO_GLOBAL, _FROM_SHARED, _SIZE, POLICY, operand("byte_mask", "b16", cp_mask="cp_mask")),
        name="bulk.store",
        rules=(needs(Targets.FROM_100, (8, 6), cp_mask="cp_mask"),),
    ),
    row(
        "cp.async.bulk.prefetch",
        f"level=L2 spaces=global {HINT}",
        (_FROM_GLOBAL, _SIZE, POLICY),
        name="bulk.prefetch",
        family="bulk",
    ),
    _reduce(
        "cp.reduce.async.bulk",
        f"spaces=global.shared::cta {TO_GROUP} {HINT} op={'|'.join(REDUCE_KINDS)} noftz?=noftz "
        f"type={'|'.join(_ALL_TYPES)}",
        (_TO_GLOBAL, _FROM_SHARED, _SIZE, POLICY),
        name="bulk.reduce",
        rules=(
            *_type_rules(REDUCE_TYPES_GLOBAL),
            forbid("add of f16 or bf16 requires .noftz", op="add", type=_HALVES, noftz=""),
            forbid("noftz requires add", op=REDUCE_KINDS[1:], noftz="noftz"),
            forbid(
                "noftz requires f16 or bf16",
                op="add",
                type=tuple(t for t in _ALL_TYPES if t not in _HALVES),
                noftz="noftz",
            ),
        ),
    ),
    _reduce(
        "cp.reduce.async.bulk",
        f"spaces=shared::cluster.shared::cta {TO_BARRIER} op={'|'.join(REDUCE_KINDS)} type={'|'.join(_ALL_TYPES)}",
        (_TO_SHARED, _FROM_SHARED, _SIZE, _BARRIER),
        name="bulk.reduce.peer",
        rules=PEER_TYPE_RULES,
    ),
    row("cp.async.bulk.commit_group", name="bulk.commit_group", family="bulk.group"),
    row(
        "cp.async.bulk.wait_group",
        "read?=read",
        (operand("groups", "immediate"),),
        name="bulk.wait_group",
        family="bulk.group",
    ),
)

DIMS = ("1d", "2d", "3d", "4d", "5d")
LOAD_MODES = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
STORE_MODES = ("tile", "tile::scatter4", "im2col_no_offs")
IM2COL_MODES = LOAD_MODES[2:]

_DIM = f"dim={'|'.join(DIMS)}"
_LOAD_MODE, _STORE_MODE = (f"mode?=({modes[0]})|{'|'.join(modes[1:])}" for modes in (LOAD_MODES, STORE_MODES))
_TENSOR = operand("tensor", "tensor")
_SOURCE = operand("source", "shared", bare=True)
_OFFSETS = operand("offsets", "offsets", mode=IM2COL_MODES)

_SHAPE_RULES = (
    forbid("the im2col modes require 3d to 5d", mode=(*IM2COL_MODES, "im2col_no_offs"), dim=DIMS[:2]),
    forbid(
        "tile::gather4 and tile::scatter4 require 2d", mode=("tile::gather4", "tile::scatter4"), dim=("1d", *DIMS[2:])
    ),
)
_SCATTER = needs(Targets.TMA_FULL, (8, 6), mode="tile::scatter4")

TENSOR_FORMS = (
    row(
        "cp.async.bulk.tensor",
        f"{_DIM} spaces=shared::cluster.global|shared::cta.global {_LOAD_MODE} {TO_BARRIER} {MULTICAST} "
        f"cta_group?=cta_group::1|cta_group::2 {HINT}",
        (
            operand("destination", "shared", bare=True),
            operand("tensor", "tensor", narrow=Narrow.NOT_CONSUMER),
            operand("barrier", "shared", bare=True),
            _OFFSETS,
            MASK,
            POLICY,
        ),
        name="load",
        family="bulk.tensor.load",
        rules=(
            *_SHAPE_RULES,
            CTA_IS_ALONE,
            needs(since=(8, 6), spaces="shared::cta.global"),
            needs(Targets.FROM_100, (8, 6), mode=("tile::gather4", "im2col::w"), spaces="shared::cta.global"),
            needs(Targets.TMA_FULL, (8, 6), mode=("tile::gather4", "im2col::w"), spaces="shared::cluster.global"),
            needs(Targets.TMA_FULL, (8, 6), mode="im2col::w::128"),
            needs(Targets.TMA_FULL, (8, 6), cta_group=("cta_group::1", "cta_group::2")),
        ),
        executed="tile and im2col on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "cp.async.bulk.tensor",
        f"{_DIM} spaces=global.shared::cta {_STORE_MODE} {TO_GROUP} {HINT}",
        (_TENSOR, _SOURCE, POLICY),
        name="store",
        family="bulk.tensor.store",
        rules=(*_SHAPE_RULES, _SCATTER),
        executed="tile and im2col_no_offs on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "cp.reduce.async.bulk.tensor",
        f"{_DIM} spaces=global.shared::cta op={'|'.join(REDUCE_KINDS)} {_STORE_MODE} {TO_GROUP} {HINT}",
        (_TENSOR, _SOURCE, POLICY),
        name="reduce",
        family="bulk.tensor.reduce",
        rules=(*_SHAPE_RULES, _SCATTER),
        executed="tile on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "cp.async.bulk.prefetch.tensor",
        f"{_DIM} level=L2 spaces=global {_LOAD_MODE} {HINT}",
        (_TENSOR, _OFFSETS, POLICY),
        name="prefetch",
        family="bulk.tensor.prefetch",
        rules=(*_SHAPE_RULES, needs(Targets.TMA_FULL, (8, 6), mode=("tile::gather4", "im2col::w", "im2col::w::128"))),
    ),
)

_THREAD_COPY = "cp.async"
_BY_THREADS = MOVE + "cp.async"
_VECTOR = "vector?=v2|v4"

_cp_async = partial(row, family=_THREAD_COPY, section=_BY_THREADS, targets=Targets.FROM_80, since=(7, 0))

LEGACY_FORMS = (
    _cp_async(
        "cp.async",
        f"cache=ca|cg spaces=shared.global|shared::cta.global {HINT} prefetch?=L2::64B|L2::128B|L2::256B",
        (
            operand("destination", "shared"),
            operand("source", "global"),
            operand("size", "immediate", cache="ca", values=(4, 8, 16)),
            operand("size", "immediate", cache="cg", values=(16,)),
            operand("source_size", "b32 predicate", optional=True, lowest=0, at_most="size"),
            POLICY,
        ),
        rules=(
            needs(since=(7, 5), given=("source_size",), predicate=True),
            needs(since=(7, 4), cache_hint="L2::cache_hint"),
            needs(since=(7, 4), prefetch=("L2::64B", "L2::128B", "L2::256B")),
        ),
    ),
    *(
        _cp_async(opcode, "", operands)
        for opcode, operands in (
            ("cp.async.commit_group", ()),
            ("cp.async.wait_group", (operand("groups", "immediate"),)),
            ("cp.async.wait_all", ()),
        )
    ),
    row(
        "cp.async.mbarrier.arrive",
        "noinc?=noinc spaces?=(shared::cta)|shared type=b64",
        by_space("barrier", ("shared", "shared::cta"), ""),
        targets=Targets.FROM_80,
        since=(7, 0),
        rules=(needs(since=(7, 8), spaces="shared::cta"),),
    ),
    row(
        "ld",
        f"spaces=global nc=nc {_VECTOR} type=b32",
        (
            operand("value", "vector", vector=("v2", "v4"), written=True),
            operand("value", "b32", vector="", written=True),
            operand("source", "global", narrow=Narrow.REFUSED),
        ),
        name="ld.global.nc",
        family=_THREAD_COPY,
        section=MOVE + "ld.global.nc",
        targets=Targets.ANY,
        since=(3, 1),
        partial=True,
    ),
    row(
        "st",
        f"spaces=shared {_VECTOR} type=b32",
        (
            operand("destination", "shared"),
            operand("value", "vector", vector=("v2", "v4")),
            operand("value", "b32", vector=""),
        ),
        name="st.shared",
        family=_THREAD_COPY,
        targets=Targets.ANY,
        since=(1, 0),
        partial=True,
    ),
)
