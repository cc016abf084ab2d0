"""Around the consumer of a tile: the warpgroup matrix fences, and what a cancelled cluster launch answers."""

from __future__ import annotations

from cute_py.tma.lower.architectures import Targets
from cute_py.tma.lower.instruction import Form, Operand, OperandClass, Rule, Slot, when

_FAMILY = "helpers"
_AXES = ("get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z")

QUERY_CANCEL = Form(
    "clusterlaunchcontrol.query_cancel",
    _FAMILY,
    "clusterlaunchcontrol.query_cancel",
    (
        Slot("query", ("is_canceled", "get_first_ctaid", *_AXES)),
        Slot("vector", ("v4",), optional=True),
        Slot("result", ("pred", "b32")),
        Slot("type", ("b128",)),
    ),
    (
        Operand("answer", (OperandClass.PREDICATE,), when(result="pred"), written=True),
        Operand("answer", (OperandClass.VECTOR,), when(result="b32", vector="v4"), written=True),
        Operand("answer", (OperandClass.B32,), when(result="b32", vector=""), written=True),
        Operand("response", (OperandClass.B128,)),
    ),
    "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.query_cancel",
    Targets.FROM_100,
    (8, 6),
    (
        Rule(when(query="is_canceled", result="b32"), forbid="is_canceled answers with a .pred"),
        Rule(when(query="is_canceled", vector="v4"), forbid="is_canceled answers with a .pred"),
        Rule(when(query=("get_first_ctaid", *_AXES), result="pred"), forbid="get_first_ctaid answers with .b32"),
        Rule(when(query="get_first_ctaid", vector=""), forbid="get_first_ctaid answers with .v4.b32"),
        Rule(when(query=_AXES, vector="v4"), forbid="get_first_ctaid::x, ::y and ::z answer with one .b32"),
    ),
)

WARPGROUP_FORMS = (
    QUERY_CANCEL,
    *(
        Form(
            name,
            _FAMILY,
            name,
            (Slot("sync", ("sync",)), Slot("aligned", ("aligned",), optional=True, default="aligned")),
            (Operand("groups", (OperandClass.IMMEDIATE,)),) if name == "wgmma.wait_group" else (),
            "Asynchronous Warpgroup Level Matrix Instructions: wgmma.fence, commit_group, wait_group",
            Targets.ONLY_90A,
        )
        for name in ("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group")
    ),
)
