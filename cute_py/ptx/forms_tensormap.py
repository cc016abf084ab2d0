"""The instructions on a tensor map itself: replace one field, copy it with a fence, fence it, prefetch it.

The replace instruction is for tiled maps only: the assembler knows no `.im2col` mode, though the PTX ISA's grammar
has had one. It exists on the a and f variants only, unlike the other three.
"""

from __future__ import annotations

from cute_py.ptx.forms_fence import RESTRICTION_NEEDS, TOLERATED_RESTRICTION
from cute_py.ptx.instruction import Form, Operand, OperandClass, Rule, Slot, when
from cute_py.targets import Targets

SCOPES = ("cta", "cluster", "gpu", "sys")
REPLACE_FIELDS = (
    "global_address",
    "rank",
    "box_dim",
    "global_dim",
    "global_stride",
    "element_stride",
    "elemtype",
    "interleave_layout",
    "swizzle_mode",
    "swizzle_atomicity",
    "fill_mode",
)
"""All fields of tensormap.replace, in the ISA's order."""

WIDE_FIELDS = ("global_address", "global_stride")
"""Fields that are written as .b64; all others are .b32."""

ORDINAL_FIELDS = ("box_dim", "global_dim", "global_stride", "element_stride")
"""Fields with an ordinal, an immediate 0..4 that names the dimension (for global_stride, dimension - 1)."""

IMMEDIATE_FIELDS: dict[str, range] = {
    "elemtype": range(16),
    "interleave_layout": range(3),
    "swizzle_mode": range(5),
    "swizzle_atomicity": range(4),
    "fill_mode": range(2),
}
"""Fields whose new value is an immediate, with the values of the widest target."""

NEW_ELEMENT_TYPES = (13, 14, 15)
"""elemtype numbers of the packed 4- and 6-bit formats (sm_100 and newer)."""

_NARROW = tuple(name for name in REPLACE_FIELDS if name not in WIDE_FIELDS)

REPLACE = Form(
    "tensormap.replace",
    "tensormap.replace",
    "tensormap.replace",
    (
        Slot("mode", ("tile",)),
        Slot("field", REPLACE_FIELDS),
        Slot("spaces", ("global", "shared::cta"), optional=True),
        Slot("size", ("b1024",)),
        Slot("type", ("b32", "b64")),
    ),
    (
        Operand("map", (OperandClass.GLOBAL_ADDRESS,), when(spaces="global")),
        Operand("map", (OperandClass.SHARED_ADDRESS,), when(spaces="shared::cta")),
        Operand("map", (OperandClass.GENERIC_ADDRESS,), when(spaces="")),
        Operand("ordinal", (OperandClass.IMMEDIATE,), when(field=ORDINAL_FIELDS), values=tuple(range(5))),
        *(
            Operand("value", (OperandClass.IMMEDIATE,), when(field=name), values=tuple(values))
            for name, values in IMMEDIATE_FIELDS.items()
        ),
        Operand("value", (OperandClass.B64,), when(field=WIDE_FIELDS)),
        Operand("value", (OperandClass.B32,), when(field=("rank", "box_dim", "global_dim", "element_stride"))),
    ),
    "Tensor Map Instructions: tensormap.replace",
    Targets.SPECIFIC_FROM_90,
    (8, 3),
    (
        Rule(when(field=WIDE_FIELDS, type="b32"), forbid="global_address and global_stride are written as .b64"),
        Rule(when(field=_NARROW, type="b64"), forbid="this field is written as .b32"),
        Rule(when(field="swizzle_atomicity"), Targets.SPECIFIC_FROM_100, (8, 6)),
        Rule(
            when(field="elemtype"),
            Targets.SPECIFIC_FROM_100,
            (8, 7),
            given="value",
            values=NEW_ELEMENT_TYPES,
        ),
        Rule(when(field="swizzle_mode"), Targets.ONLY_103A, (8, 8), given="value", values=(4,)),
    ),
    executed="all ten fields of sm_90a on NVIDIA H200, driver 580.159.04",
)

CP_FENCEPROXY = Form(
    "tensormap.cp_fenceproxy",
    "tensormap.cp_fenceproxy",
    "tensormap.cp_fenceproxy",
    (
        Slot("spaces", ("global.shared::cta",)),
        Slot("proxy", ("tensormap::generic",)),
        Slot("sem", ("release",)),
        Slot("scope", SCOPES),
        Slot("sync", ("sync",)),
        Slot("aligned", ("aligned",)),
    ),
    (
        Operand("destination", (OperandClass.GLOBAL_ADDRESS,)),
        Operand("source", (OperandClass.SHARED_ADDRESS,)),
        Operand("size", (OperandClass.IMMEDIATE,), values=(128,)),
    ),
    "Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy",
    since=(8, 3),
)

FENCE_ACQUIRE = Form(
    "fence.proxy.tensormap.acquire",
    "fence.proxy.tensormap",
    "fence.proxy",
    (Slot("proxy", ("tensormap::generic",)), Slot("sem", ("acquire",)), Slot("scope", SCOPES)),
    (
        Operand("map", (OperandClass.ANY_ADDRESS,)),
        Operand("size", (OperandClass.IMMEDIATE,), values=(128,)),
    ),
    "Parallel Synchronization and Communication Instructions: membar / fence",
    since=(8, 3),
)

FENCE_RELEASE = Form(
    "fence.proxy.tensormap.release",
    "fence.proxy.tensormap",
    "fence.proxy",
    (
        Slot("proxy", ("tensormap::generic",)),
        Slot("sem", ("release",)),
        Slot("scope", SCOPES),
        TOLERATED_RESTRICTION,
    ),
    (),
    "Parallel Synchronization and Communication Instructions: membar / fence",
    since=(8, 3),
    rules=(RESTRICTION_NEEDS,),
)

PREFETCH_TENSORMAP = Form(
    "prefetch.tensormap",
    "helpers",
    "prefetch",
    (Slot("spaces", ("param", "const"), optional=True), Slot("what", ("tensormap",))),
    (
        Operand("map", (OperandClass.GENERIC_ADDRESS,), when(spaces="")),
        Operand("map", (OperandClass.PARAM_ADDRESS,), when(spaces="param")),
        Operand("map", (OperandClass.CONST_ADDRESS,), when(spaces="const")),
    ),
    "Data Movement and Conversion Instructions: prefetch",
    executed="on NVIDIA H200, driver 580.159.04",
    rules=(
        Rule(
            when(spaces=("global", "local", "shared", "shared::cta")),
            forbid="tensormap is prefetched from the generic, .param or .const space",
        ),
    ),
)

TENSORMAP_FORMS = (REPLACE, CP_FENCEPROXY, FENCE_ACQUIRE, FENCE_RELEASE, PREFETCH_TENSORMAP)
