"""The mbarrier instructions: a 64-bit barrier in shared memory that counts arrivals and transaction bytes.

A phase ends when the pending arrivals are zero and the transaction bytes are zero; `expect_tx` raises the bytes,
the copies lower them. The state space says how the address is read: `.shared{::cta}` is a 32-bit address,
`.shared::cluster` one of a peer's barrier (from mapa), without one the address is generic.
"""

from __future__ import annotations

from cute_py.ptx.instruction import Form, Narrow, Operand, OperandClass, Rule, Slot, when
from cute_py.targets import Targets

_SECTION = "Parallel Synchronization and Communication Instructions: "
_OWN = ("shared", "shared::cta")
_ANY_SPACE = ("shared::cta", "shared", "shared::cluster")
_TYPE = Slot("type", ("b64",), default="b64")
_SHARED = Operand("barrier", (OperandClass.SHARED_ADDRESS,), when(spaces=_ANY_SPACE))
_GENERIC = Operand("barrier", (OperandClass.GENERIC_ADDRESS,), when(spaces=""), narrow=Narrow.REFUSED)
_STATE = Operand("state", (OperandClass.SINK, OperandClass.B64), written=True)
_BYTES = Operand("bytes", (OperandClass.B32,))

_SPACE_RULES = (Rule(when(spaces="shared::cta"), since=(7, 8)),)
_CLUSTER_RULES = (
    *_SPACE_RULES,
    Rule(when(spaces="shared::cluster"), Targets.FROM_90, (8, 0)),
)


def _order_rules(order: str) -> tuple[Rule, ...]:
    """A memory order needs a scope and a scope needs an order; the cluster scope needs a cluster."""
    named = (order, "relaxed")
    return (
        Rule(when(sem=named, scope=""), forbid="a memory order is written with its scope, .cta or .cluster"),
        Rule(when(sem="", scope=("cta", "cluster")), forbid="a scope is written with its memory order"),
        Rule(when(sem=named), since=(8, 0)),
        Rule(when(scope="cluster"), Targets.FROM_90, (8, 0)),
    )


_RELAXED_LATE = Rule(when(sem="relaxed"), Targets.FROM_90, (8, 6))
_ORDER = (Slot("sem", ("release", "relaxed"), optional=True), Slot("scope", ("cta", "cluster"), optional=True))
_WAIT_ORDER = (Slot("sem", ("acquire", "relaxed"), optional=True), Slot("scope", ("cta", "cluster"), optional=True))
_SINK_RULE = Rule(
    when(spaces="shared::cluster"), forbid="a barrier of another CTA returns no state: write the sink _", given="state"
)

INIT = Form(
    "mbarrier.init",
    "mbarrier",
    "mbarrier.init",
    (Slot("spaces", ("shared::cta", "shared"), optional=True, default="shared::cta"), _TYPE),
    (_SHARED, _GENERIC, Operand("count", (OperandClass.B32,))),
    _SECTION + "mbarrier.init",
    Targets.FROM_80,
    (7, 0),
    _SPACE_RULES,
    executed="on NVIDIA H200, driver 580.159.04",
)

INVAL = Form(
    "mbarrier.inval",
    "mbarrier",
    "mbarrier.inval",
    (Slot("spaces", ("shared::cta", "shared"), optional=True, default="shared::cta"), _TYPE),
    (_SHARED, _GENERIC),
    _SECTION + "mbarrier.inval",
    Targets.FROM_80,
    (7, 0),
    _SPACE_RULES,
)


def _sink_rules(section: str) -> tuple[Rule, ...]:
    """mbarrier.arrive takes the sink from 7.1 on, mbarrier.arrive_drop from the start."""
    return (Rule((), since=(7, 1), given="sink"),) if section == "mbarrier.arrive" else ()


def _arrive(name: str, section: str) -> Form:
    sink = _sink_rules(section)
    return Form(
        name,
        "mbarrier",
        name,
        (*_ORDER, Slot("spaces", _ANY_SPACE, optional=True, default="shared::cta"), _TYPE),
        (_STATE, _SHARED, _GENERIC, Operand("count", (OperandClass.B32,), optional=True, lowest=1)),
        _SECTION + section,
        Targets.FROM_80,
        (7, 0),
        (
            *_CLUSTER_RULES,
            *_order_rules("release"),
            _RELAXED_LATE,
            _SINK_RULE,
            *sink,
            Rule((), Targets.FROM_90, (7, 8), given="count"),
        ),
    )


def _arrive_no_complete(name: str, section: str) -> Form:
    sink = _sink_rules(section)
    return Form(
        name,
        "mbarrier",
        name,
        (
            Slot("sem", ("release",), optional=True),
            Slot("scope", ("cta", "cluster"), optional=True),
            Slot("spaces", ("shared::cta", "shared"), optional=True, default="shared::cta"),
            _TYPE,
        ),
        (_STATE, _SHARED, _GENERIC, Operand("count", (OperandClass.B32,), lowest=1)),
        _SECTION + section,
        Targets.FROM_80,
        (7, 0),
        (*_SPACE_RULES, *_order_rules("release"), *sink),
    )


def _arrive_expect(name: str, section: str) -> Form:
    return Form(
        name,
        "mbarrier",
        name,
        (*_ORDER, Slot("spaces", _ANY_SPACE, optional=True, default="shared::cta"), _TYPE),
        (_STATE, _SHARED, _GENERIC, _BYTES),
        _SECTION + section,
        Targets.FROM_90,
        (8, 0),
        (*_order_rules("release"), _RELAXED_LATE, _SINK_RULE),
        executed="on NVIDIA H200, driver 580.159.04",
    )


def _tx(name: str) -> Form:
    return Form(
        name,
        "mbarrier",
        name,
        (
            Slot("sem", ("relaxed",), optional=True),
            Slot("scope", ("cta", "cluster"), optional=True),
            Slot("spaces", _ANY_SPACE, optional=True, default="shared::cta"),
            _TYPE,
        ),
        (_SHARED, _GENERIC, _BYTES),
        _SECTION + name,
        Targets.FROM_90,
        (8, 0),
        _order_rules("relaxed"),
    )


def _wait(name: str, parity: bool, suspends: bool) -> Form:
    phase = Operand("parity", (OperandClass.B32,), values=(0, 1)) if parity else Operand("state", (OperandClass.B64,))
    hint = (Operand("suspend_hint", (OperandClass.B32,), optional=True),) if suspends else ()
    return Form(
        name,
        "mbarrier",
        name,
        (*_WAIT_ORDER, Slot("spaces", ("shared::cta", "shared"), optional=True, default="shared::cta"), _TYPE),
        (Operand("done", (OperandClass.PREDICATE,), written=True), _SHARED, _GENERIC, phase, *hint),
        _SECTION + "mbarrier.test_wait / mbarrier.try_wait",
        Targets.FROM_90 if suspends else Targets.FROM_80,
        (7, 8) if suspends else (7, 1) if parity else (7, 0),
        (*_SPACE_RULES, *_order_rules("acquire"), _RELAXED_LATE),
        executed="on NVIDIA H200, driver 580.159.04" if parity and suspends else "not executed",
    )


MBARRIER_FORMS = (
    INIT,
    INVAL,
    _arrive("mbarrier.arrive", "mbarrier.arrive"),
    _arrive_expect("mbarrier.arrive.expect_tx", "mbarrier.arrive"),
    _arrive_no_complete("mbarrier.arrive.noComplete", "mbarrier.arrive"),
    _arrive("mbarrier.arrive_drop", "mbarrier.arrive_drop"),
    _arrive_expect("mbarrier.arrive_drop.expect_tx", "mbarrier.arrive_drop"),
    _arrive_no_complete("mbarrier.arrive_drop.noComplete", "mbarrier.arrive_drop"),
    _tx("mbarrier.expect_tx"),
    _tx("mbarrier.complete_tx"),
    Form(
        "mbarrier.pending_count",
        "mbarrier",
        "mbarrier.pending_count",
        (_TYPE,),
        (Operand("count", (OperandClass.B32,), written=True), Operand("state", (OperandClass.B64,))),
        _SECTION + "mbarrier.pending_count",
        Targets.FROM_80,
        (7, 0),
    ),
    _wait("mbarrier.test_wait", parity=False, suspends=False),
    _wait("mbarrier.test_wait.parity", parity=True, suspends=False),
    _wait("mbarrier.try_wait", parity=False, suspends=True),
    _wait("mbarrier.try_wait.parity", parity=True, suspends=True),
)
