"""Cache control: policies for the `.L2::cache_hint` operand, priorities and prefetches of lines."""

from __future__ import annotations

from cute_py.tma.lower.architectures import Targets
from cute_py.tma.lower.instruction import Form, Operand, OperandClass, Rule, Slot, when

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
