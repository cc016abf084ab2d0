"""The copies of the architectures before TMA: cp.async with its groups (sm_80), ld.global.nc and st.shared.

These move 4 to 16 bytes per thread and instruction; addresses are computed by the threads.
"""

from __future__ import annotations

from cute_py.ptx.forms_bulk import HINT, POLICY
from cute_py.ptx.instruction import (
    B32,
    GLOBAL,
    IMMEDIATE,
    MOVE,
    PREDICATE,
    SHARED,
    VECTOR,
    Operand,
    Rule,
    by_space,
    operand,
    row,
    when,
)
from cute_py.targets import Targets

_FAMILY = "cp.async"
_SECTION = MOVE + "cp.async"
_VECTOR = "vector?=v2|v4"

LEGACY_FORMS = (
    row(
        "cp.async",
        f"cache=ca|cg spaces=shared.global|shared::cta.global {HINT} prefetch?=L2::64B|L2::128B|L2::256B",
        (
            operand("destination", SHARED),
            operand("source", GLOBAL),
            Operand("size", (IMMEDIATE,), when(cache="ca"), values=(4, 8, 16)),
            Operand("size", (IMMEDIATE,), when(cache="cg"), values=(16,)),
            Operand("source_size", (B32, PREDICATE), optional=True),
            POLICY,
        ),
        family=_FAMILY,
        section=_SECTION,
        targets=Targets.FROM_80,
        since=(7, 0),
        rules=(
            Rule((), since=(7, 5), given=("source_size",), predicate=True),
            Rule(when(cache_hint="L2::cache_hint"), since=(7, 4)),
            Rule(when(prefetch=("L2::64B", "L2::128B", "L2::256B")), since=(7, 4)),
        ),
    ),
    *(
        row(f"cp.async.{name}", "", operands, family=_FAMILY, section=_SECTION, targets=Targets.FROM_80, since=(7, 0))
        for name, operands in (
            ("commit_group", ()),
            ("wait_group", (operand("groups", IMMEDIATE),)),
            ("wait_all", ()),
        )
    ),
    row(
        "cp.async.mbarrier.arrive",
        "noinc?=noinc spaces?=(shared::cta)|shared type=b64",
        by_space("barrier", ("shared", "shared::cta"), ""),
        targets=Targets.FROM_80,
        since=(7, 0),
        rules=(Rule(when(spaces="shared::cta"), since=(7, 8)),),
    ),
    row(
        "ld",
        f"spaces=global nc=nc {_VECTOR} type=b32",
        (
            Operand("value", (VECTOR,), when(vector=("v2", "v4")), written=True),
            Operand("value", (B32,), when(vector=""), written=True),
            operand("source", GLOBAL),
        ),
        name="ld.global.nc",
        family=_FAMILY,
        section=MOVE + "ld.global.nc",
        targets=Targets.ANY,
        since=(3, 1),
        partial=True,
    ),
    row(
        "st",
        f"spaces=shared {_VECTOR} type=b32",
        (
            operand("destination", SHARED),
            operand("value", VECTOR, vector=("v2", "v4")),
            operand("value", B32, vector=""),
        ),
        name="st.shared",
        family=_FAMILY,
        section=MOVE + "st",
        targets=Targets.ANY,
        since=(1, 0),
        partial=True,
    ),
)
