"""The copies without a tensor map: cp.async.bulk and its reduction, the prefetch, and the bulk groups.

Addresses and sizes are in bytes; both addresses and the size are multiples of 16.
"""

from __future__ import annotations

from cute_py.ptx.instruction import Form, Narrow, Operand, OperandClass, Rule, Slot, when
from cute_py.targets import Targets

_HINT = Slot("cache_hint", ("L2::cache_hint",), optional=True)
_POLICY = Operand("policy", (OperandClass.B64,), when(cache_hint="L2::cache_hint"))
_SIZE = Operand("size", (OperandClass.B32,), step=16)
_SHARED_DESTINATION = Operand("destination", (OperandClass.SHARED_ADDRESS,))
_GLOBAL_DESTINATION = Operand("destination", (OperandClass.GLOBAL_ADDRESS,))
_SHARED_SOURCE = Operand("source", (OperandClass.SHARED_ADDRESS,))
_GLOBAL_SOURCE = Operand("source", (OperandClass.GLOBAL_ADDRESS,))
_BARRIER = Operand("barrier", (OperandClass.SHARED_ADDRESS,))
_COPY = "Data Movement and Conversion Instructions: cp.async.bulk"
_REDUCE = "Data Movement and Conversion Instructions: cp.reduce.async.bulk"

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
    "add": ("u32", "s32", "u64"),
    "min": ("u32", "s32"),
    "max": ("u32", "s32"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32",),
    "or": ("b32",),
    "xor": ("b32",),
}
"""Reduction -> element types that it takes towards another CTA's shared memory."""

_ALL_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64", "f16", "bf16", "f32", "f64")


def _type_rules(table: dict[str, tuple[str, ...]]) -> tuple[Rule, ...]:
    rules = [
        Rule(
            when(op=op, type=("", *(t for t in _ALL_TYPES if t not in types))),
            forbid=f"{op} takes the types {', '.join(types)} here",
        )
        for op, types in table.items()
    ]
    wanted = when(op="add", type=("f16", "bf16"), noftz="")
    rules.append(Rule(wanted, forbid="add of f16 or bf16 is written with .noftz"))
    other = ("min", "max", "inc", "dec", "and", "or", "xor")
    rules.append(Rule(when(op=other, noftz="noftz"), forbid="noftz goes with add only"))
    plain = tuple(t for t in _ALL_TYPES if t not in ("f16", "bf16"))
    rules.append(Rule(when(op="add", type=plain, noftz="noftz"), forbid="noftz goes with f16 and bf16 only"))
    return tuple(rules)


PEER_TYPE_RULES = tuple(rule for rule in _type_rules(REDUCE_TYPES_CLUSTER) if "noftz" not in rule.forbid)
"""The type rules towards another CTA's shared memory, for cp.reduce.async.bulk and red.async."""

BULK_LOAD = Form(
    "bulk.load",
    "bulk",
    "cp.async.bulk",
    (
        Slot("spaces", ("shared::cluster.global", "shared::cta.global")),
        Slot("completion", ("mbarrier::complete_tx::bytes",)),
        Slot("multicast", ("multicast::cluster",), optional=True),
        _HINT,
    ),
    (
        _SHARED_DESTINATION,
        Operand("source", (OperandClass.GLOBAL_ADDRESS,), narrow=Narrow.NOT_CONSUMER),
        _SIZE,
        _BARRIER,
        Operand("mask", (OperandClass.B16,), when(multicast="multicast::cluster")),
        _POLICY,
    ),
    _COPY,
    rules=(
        Rule(when(spaces="shared::cta.global"), since=(8, 6)),
        Rule(
            when(spaces="shared::cta.global", multicast="multicast::cluster"),
            forbid="multicast::cluster needs the destination shared::cluster",
        ),
    ),
)

BULK_PEER = Form(
    "bulk.peer",
    "bulk",
    "cp.async.bulk",
    (Slot("spaces", ("shared::cluster.shared::cta",)), Slot("completion", ("mbarrier::complete_tx::bytes",))),
    (_SHARED_DESTINATION, _SHARED_SOURCE, _SIZE, _BARRIER),
    _COPY,
)

BULK_STORE = Form(
    "bulk.store",
    "bulk",
    "cp.async.bulk",
    (
        Slot("spaces", ("global.shared::cta",)),
        Slot("completion", ("bulk_group",)),
        _HINT,
        Slot("cp_mask", ("cp_mask",), optional=True),
    ),
    (
        _GLOBAL_DESTINATION,
        _SHARED_SOURCE,
        _SIZE,
        _POLICY,
        Operand("byte_mask", (OperandClass.B16,), when(cp_mask="cp_mask")),
    ),
    _COPY,
    rules=(Rule(when(cp_mask="cp_mask"), Targets.FROM_100, (8, 6)),),
)

BULK_PREFETCH = Form(
    "bulk.prefetch",
    "bulk",
    "cp.async.bulk.prefetch",
    (Slot("level", ("L2",)), Slot("spaces", ("global",)), _HINT),
    (_GLOBAL_SOURCE, _SIZE, _POLICY),
    "Data Movement and Conversion Instructions: cp.async.bulk.prefetch",
)

BULK_REDUCE = Form(
    "bulk.reduce",
    "bulk.reduce",
    "cp.reduce.async.bulk",
    (
        Slot("spaces", ("global.shared::cta",)),
        Slot("completion", ("bulk_group",)),
        _HINT,
        Slot("op", tuple(REDUCE_TYPES_GLOBAL)),
        Slot("noftz", ("noftz",), optional=True),
        Slot("type", _ALL_TYPES),
    ),
    (_GLOBAL_DESTINATION, _SHARED_SOURCE, _SIZE, _POLICY),
    _REDUCE,
    rules=_type_rules(REDUCE_TYPES_GLOBAL),
)

BULK_REDUCE_PEER = Form(
    "bulk.reduce.peer",
    "bulk.reduce",
    "cp.reduce.async.bulk",
    (
        Slot("spaces", ("shared::cluster.shared::cta",)),
        Slot("completion", ("mbarrier::complete_tx::bytes",)),
        Slot("op", tuple(REDUCE_TYPES_CLUSTER)),
        Slot("type", _ALL_TYPES),
    ),
    (_SHARED_DESTINATION, _SHARED_SOURCE, _SIZE, _BARRIER),
    _REDUCE,
    rules=PEER_TYPE_RULES,
)

COMMIT_GROUP = Form(
    "bulk.commit_group",
    "bulk.group",
    "cp.async.bulk.commit_group",
    (),
    (),
    "Data Movement and Conversion Instructions: cp.async.bulk.commit_group",
)

WAIT_GROUP = Form(
    "bulk.wait_group",
    "bulk.group",
    "cp.async.bulk.wait_group",
    (Slot("read", ("read",), optional=True),),
    (Operand("groups", (OperandClass.IMMEDIATE,)),),
    "Data Movement and Conversion Instructions: cp.async.bulk.wait_group",
)

BULK_FORMS = (
    BULK_LOAD,
    BULK_PEER,
    BULK_STORE,
    BULK_PREFETCH,
    BULK_REDUCE,
    BULK_REDUCE_PEER,
    COMMIT_GROUP,
    WAIT_GROUP,
)
