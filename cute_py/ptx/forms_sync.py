"""What a TMA kernel needs beside the copies: clusters, election, policies, address conversion, register budget.

Cache control: policies for the `.L2::cache_hint` operand, priorities and prefetches of lines.

Around the consumer of a tile: the warpgroup matrix fences, and what a cancelled cluster launch answers.
"""

from __future__ import annotations

from cute_py.ptx.forms_bulk import PEER_TYPE_RULES, REDUCE_TYPES_CLUSTER
from cute_py.ptx.instruction import Form, Operand, OperandClass, Rule, Slot, when
from cute_py.targets import Targets

_FAMILY = "helpers"
_MOVE = "Data Movement and Conversion Instructions: "
PRIMARY = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
SECONDARY = ("L2::evict_first", "L2::evict_unchanged")
"""What the part of the accesses gets that the primary priority does not cover."""

PAIRS = tuple(f"{first}.{second}" for first in PRIMARY for second in SECONDARY if first != second)
_PRIORITY = Slot("priority", (*PRIMARY, *PAIRS))
_POLICY = Operand("policy", (OperandClass.B64,), written=True)
_LINE = Operand("size", (OperandClass.IMMEDIATE,), values=(128,))
_GENERIC = Operand("address", (OperandClass.GENERIC_ADDRESS,), when(spaces=""))
_GLOBAL = Operand("address", (OperandClass.GLOBAL_ADDRESS,), when(spaces="global"))
_SPACE = Slot("spaces", ("global",), optional=True)

CACHE_FORMS = (
    Form(
        "createpolicy.fractional",
        _FAMILY,
        "createpolicy.fractional",
        (_PRIORITY, Slot("type", ("b64",))),
        (_POLICY, Operand("fraction", (OperandClass.F32,), optional=True)),
        _MOVE + "createpolicy",
        Targets.FROM_80,
        (7, 4),
    ),
    Form(
        "createpolicy.range",
        _FAMILY,
        "createpolicy.range",
        (_SPACE, _PRIORITY, Slot("type", ("b64",))),
        (
            _POLICY,
            _GENERIC,
            _GLOBAL,
            Operand("primary_size", (OperandClass.B32,)),
            Operand("total_size", (OperandClass.B32,)),
        ),
        _MOVE + "createpolicy",
        Targets.FROM_80,
        (7, 4),
    ),
    Form(
        "createpolicy.cvt",
        _FAMILY,
        "createpolicy.cvt",
        (Slot("level", ("L2",)), Slot("type", ("b64",))),
        (_POLICY, Operand("access", (OperandClass.B64,))),
        _MOVE + "createpolicy",
        Targets.FROM_80,
        (7, 4),
    ),
    Form(
        "applypriority",
        _FAMILY,
        "applypriority",
        (_SPACE, Slot("priority", ("L2::evict_normal",))),
        (_GENERIC, _GLOBAL, _LINE),
        _MOVE + "applypriority",
        Targets.FROM_80,
        (7, 4),
    ),
    Form(
        "discard",
        _FAMILY,
        "discard",
        (_SPACE, Slot("level", ("L2",))),
        (_GENERIC, _GLOBAL, _LINE),
        _MOVE + "discard",
        Targets.FROM_80,
        (7, 4),
    ),
    Form(
        "prefetch.line",
        _FAMILY,
        "prefetch",
        (
            Slot("spaces", ("global", "local"), optional=True),
            Slot("level", ("L1", "L2", "L2::evict_last", "L2::evict_normal")),
        ),
        (Operand("address", (OperandClass.GENERIC_ADDRESS,)),),
        _MOVE + "prefetch",
        Targets.ANY,
        (2, 0),
        (
            Rule(when(level=("L2::evict_last", "L2::evict_normal")), Targets.FROM_80, (7, 4)),
            Rule(
                when(level=("L2::evict_last", "L2::evict_normal"), spaces="local"),
                forbid="an eviction priority is for .global, not for .local",
            ),
        ),
    ),
)


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


_SYNC = "Parallel Synchronization and Communication Instructions: "
_WIDTH = Slot("type", ("u32", "u64"), default="u32")
_R32, _R64 = when(type="u32"), when(type="u64")
_SPACES = ("shared", "shared::cta", "shared::cluster", "global", "param", "const", "local")
_SPACE_RULES = (
    Rule(when(spaces="shared::cluster"), Targets.FROM_90, (7, 8)),
    Rule(when(spaces="shared::cta"), since=(7, 8)),
    Rule(when(spaces="param"), since=(7, 7)),
)
REGISTER_COUNTS = tuple(range(24, 257, 8))
"""What setmaxnreg takes: 24..256 in steps of 8 registers."""

CLUSTER_FORMS = (
    Form(
        "mapa",
        _FAMILY,
        "mapa",
        (Slot("spaces", ("shared::cluster",), optional=True, default="shared::cluster"), _WIDTH),
        (
            Operand("peer", (OperandClass.B32,), _R32, written=True),
            Operand("peer", (OperandClass.B64,), _R64, written=True),
            Operand("address", (OperandClass.B32,), _R32),
            Operand("address", (OperandClass.B64,), _R64),
            Operand("cta", (OperandClass.B32,)),
        ),
        _MOVE + "mapa",
        Targets.FROM_90,
        (7, 8),
    ),
    Form(
        "getctarank",
        _FAMILY,
        "getctarank",
        (Slot("spaces", ("shared::cluster",), optional=True, default="shared::cluster"), _WIDTH),
        (
            Operand("cta", (OperandClass.B32,), written=True),
            Operand("address", (OperandClass.B32,), _R32),
            Operand("address", (OperandClass.B64,), _R64),
        ),
        _MOVE + "getctarank",
        Targets.FROM_90,
        (7, 8),
    ),
    Form(
        "elect.sync",
        _FAMILY,
        "elect",
        (Slot("sync", ("sync",)),),
        (
            Operand("leader", (OperandClass.REGISTER_AND_PREDICATE,), written=True),
            Operand("members", (OperandClass.B32,)),
        ),
        _SYNC + "elect.sync",
    ),
    Form(
        "barrier.cluster.arrive",
        _FAMILY,
        "barrier.cluster.arrive",
        (Slot("sem", ("release", "relaxed"), optional=True), Slot("aligned", ("aligned",), optional=True)),
        (),
        _SYNC + "barrier.cluster",
        since=(7, 8),
        rules=(Rule(when(sem=("release", "relaxed")), since=(8, 0)),),
    ),
    Form(
        "barrier.cluster.wait",
        _FAMILY,
        "barrier.cluster.wait",
        (Slot("sem", ("acquire",), optional=True), Slot("aligned", ("aligned",), optional=True)),
        (),
        _SYNC + "barrier.cluster",
        since=(7, 8),
        rules=(Rule(when(sem="acquire"), since=(8, 0)),),
    ),
    Form(
        "griddepcontrol",
        _FAMILY,
        "griddepcontrol",
        (Slot("action", ("launch_dependents", "wait")),),
        (),
        _SYNC + "griddepcontrol",
        since=(7, 8),
    ),
    Form(
        "setmaxnreg",
        _FAMILY,
        "setmaxnreg",
        (
            Slot("action", ("inc", "dec")),
            Slot("sync", ("sync",)),
            Slot("aligned", ("aligned",)),
            Slot("type", ("u32",)),
        ),
        (Operand("registers", (OperandClass.IMMEDIATE,), values=REGISTER_COUNTS),),
        "Miscellaneous Instructions: setmaxnreg",
        Targets.SPECIFIC_FROM_90,
    ),
    Form(
        "clusterlaunchcontrol.try_cancel",
        _FAMILY,
        "clusterlaunchcontrol.try_cancel",
        (
            Slot("async", ("async",)),
            Slot("spaces", ("shared::cta",), optional=True),
            Slot("completion", ("mbarrier::complete_tx::bytes",)),
            Slot("multicast", ("multicast::cluster::all",), optional=True),
            Slot("type", ("b128",)),
        ),
        (
            Operand("destination", (OperandClass.SHARED_ADDRESS,), when(spaces="shared::cta")),
            Operand("destination", (OperandClass.GENERIC_ADDRESS,), when(spaces="")),
            Operand("barrier", (OperandClass.SHARED_ADDRESS,), when(spaces="shared::cta")),
            Operand("barrier", (OperandClass.GENERIC_ADDRESS,), when(spaces="")),
        ),
        _SYNC + "clusterlaunchcontrol.try_cancel",
        Targets.FROM_100,
        (8, 6),
        (Rule(when(multicast="multicast::cluster::all"), Targets.SPECIFIC_FROM_100, (8, 6)),),
    ),
)

ADDRESS_FORMS = (
    Form(
        "cvta",
        _FAMILY,
        "cvta",
        (Slot("to", ("to",), optional=True), Slot("spaces", _SPACES), Slot("type", ("u64",))),
        (Operand("result", (OperandClass.B64,), written=True), Operand("address", (OperandClass.B64,))),
        _MOVE + "cvta",
        Targets.ANY,
        (2, 0),
        _SPACE_RULES,
    ),
    Form(
        "isspacep",
        _FAMILY,
        "isspacep",
        (Slot("spaces", _SPACES),),
        (
            Operand("result", (OperandClass.PREDICATE,), written=True),
            Operand("address", (OperandClass.B64, OperandClass.B32)),
        ),
        _MOVE + "isspacep",
        Targets.ANY,
        (2, 0),
        _SPACE_RULES,
    ),
    Form(
        "st.bulk",
        _FAMILY,
        "st.bulk",
        (
            Slot("weak", ("weak",), optional=True),
            Slot("spaces", ("shared::cta",), optional=True),
        ),
        (
            Operand("destination", (OperandClass.SHARED_ADDRESS,), when(spaces="shared::cta")),
            Operand("destination", (OperandClass.GENERIC_ADDRESS,), when(spaces="")),
            Operand("size", (OperandClass.B64,), step=8),
            Operand("value", (OperandClass.IMMEDIATE,), values=(0,)),
        ),
        _MOVE + "st.bulk",
        Targets.FROM_100,
        (8, 6),
    ),
)

REMOTE_FORMS = (
    Form(
        "st.async",
        _FAMILY,
        "st.async",
        (
            Slot("weak", ("weak",), optional=True),
            Slot("spaces", ("shared::cluster",)),
            Slot("completion", ("mbarrier::complete_tx::bytes",)),
            Slot("vector", ("v2", "v4"), optional=True),
            Slot("type", ("b32", "u32", "s32")),
        ),
        (
            Operand("destination", (OperandClass.SHARED_ADDRESS,)),
            Operand("value", (OperandClass.VECTOR,), when(vector=("v2", "v4"))),
            Operand("value", (OperandClass.B32,), when(vector="")),
            Operand("barrier", (OperandClass.SHARED_ADDRESS,)),
        ),
        _MOVE + "st.async",
        since=(8, 1),
        partial=True,
    ),
    Form(
        "red.async",
        _FAMILY,
        "red.async",
        (
            Slot("sem", ("relaxed",)),
            Slot("scope", ("cluster",)),
            Slot("spaces", ("shared::cluster",)),
            Slot("completion", ("mbarrier::complete_tx::bytes",)),
            Slot("op", tuple(REDUCE_TYPES_CLUSTER)),
            Slot("type", ("u32", "s32", "u64", "b32")),
        ),
        (
            Operand("destination", (OperandClass.SHARED_ADDRESS,)),
            Operand("value", (OperandClass.B32,), when(type=("u32", "s32", "b32"))),
            Operand("value", (OperandClass.B64,), when(type="u64")),
            Operand("barrier", (OperandClass.SHARED_ADDRESS,)),
        ),
        _SYNC + "red.async",
        since=(8, 1),
        rules=PEER_TYPE_RULES,
    ),
)

SYNC_FORMS = (*CLUSTER_FORMS, *ADDRESS_FORMS, *REMOTE_FORMS)
