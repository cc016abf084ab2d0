"""The copies of the architectures before TMA: cp.async with its groups (sm_80), ld.global.nc and st.shared.

These move 4 to 16 bytes per thread and instruction; addresses are computed by the threads.
"""

from __future__ import annotations

from cute_py.ptx.instruction import Form, Operand, OperandClass, Rule, Slot, when
from cute_py.targets import Targets

_MOVE = "Data Movement and Conversion Instructions: "
_OWN = ("shared.global", "shared::cta.global")
_FAMILY = "cp.async"
_LOAD_SLOTS = (
    Slot("spaces", ("global",)),
    Slot("nc", ("nc",)),
    Slot("vector", ("v2", "v4"), optional=True),
    Slot("type", ("b32",)),
)
_MANY = when(vector=("v2", "v4"))
_ONE = when(vector="")

LEGACY_FORMS = (
    Form(
        "cp.async",
        _FAMILY,
        "cp.async",
        (
            Slot("cache", ("ca", "cg")),
            Slot("spaces", _OWN),
            Slot("cache_hint", ("L2::cache_hint",), optional=True),
            Slot("prefetch", ("L2::64B", "L2::128B", "L2::256B"), optional=True),
        ),
        (
            Operand("destination", (OperandClass.SHARED_ADDRESS,)),
            Operand("source", (OperandClass.GLOBAL_ADDRESS,)),
            Operand("size", (OperandClass.IMMEDIATE,), when(cache="ca"), values=(4, 8, 16)),
            Operand("size", (OperandClass.IMMEDIATE,), when(cache="cg"), values=(16,)),
            Operand("source_size", (OperandClass.B32, OperandClass.PREDICATE), optional=True),
            Operand("policy", (OperandClass.B64,), when(cache_hint="L2::cache_hint")),
        ),
        _MOVE + "cp.async",
        Targets.FROM_80,
        (7, 0),
        (
            Rule((), since=(7, 5), given="source_size", predicate=True),
            Rule(when(cache_hint="L2::cache_hint"), since=(7, 4)),
            Rule(when(prefetch=("L2::64B", "L2::128B", "L2::256B")), since=(7, 4)),
        ),
    ),
    Form(
        "cp.async.commit_group", _FAMILY, "cp.async.commit_group", (), (), _MOVE + "cp.async", Targets.FROM_80, (7, 0)
    ),
    Form(
        "cp.async.wait_group",
        _FAMILY,
        "cp.async.wait_group",
        (),
        (Operand("groups", (OperandClass.IMMEDIATE,)),),
        _MOVE + "cp.async",
        Targets.FROM_80,
        (7, 0),
    ),
    Form("cp.async.wait_all", _FAMILY, "cp.async.wait_all", (), (), _MOVE + "cp.async", Targets.FROM_80, (7, 0)),
    Form(
        "cp.async.mbarrier.arrive",
        "helpers",
        "cp.async.mbarrier.arrive",
        (
            Slot("noinc", ("noinc",), optional=True),
            Slot("spaces", ("shared::cta", "shared"), optional=True, default="shared::cta"),
            Slot("type", ("b64",)),
        ),
        (
            Operand("barrier", (OperandClass.SHARED_ADDRESS,), when(spaces=("shared", "shared::cta"))),
            Operand("barrier", (OperandClass.GENERIC_ADDRESS,), when(spaces="")),
        ),
        "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive",
        Targets.FROM_80,
        (7, 0),
        (Rule(when(spaces="shared::cta"), since=(7, 8)),),
    ),
    Form(
        "ld.global.nc",
        _FAMILY,
        "ld",
        _LOAD_SLOTS,
        (
            Operand("value", (OperandClass.VECTOR,), _MANY, written=True),
            Operand("value", (OperandClass.B32,), _ONE, written=True),
            Operand("source", (OperandClass.GLOBAL_ADDRESS,)),
        ),
        _MOVE + "ld.global.nc",
        Targets.ANY,
        (3, 1),
        partial=True,
    ),
    Form(
        "st.shared",
        _FAMILY,
        "st",
        (Slot("spaces", ("shared",)), Slot("vector", ("v2", "v4"), optional=True), Slot("type", ("b32",))),
        (
            Operand("destination", (OperandClass.SHARED_ADDRESS,)),
            Operand("value", (OperandClass.VECTOR,), _MANY),
            Operand("value", (OperandClass.B32,), _ONE),
        ),
        _MOVE + "st",
        Targets.ANY,
        (1, 0),
        partial=True,
    ),
)
