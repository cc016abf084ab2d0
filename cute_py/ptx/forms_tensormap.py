"""The instructions on a tensor map itself: replace one field, copy it with a fence, fence it, prefetch it.

The replace instruction is for tiled maps only: the assembler knows no `.im2col` mode, though the PTX ISA's grammar
has had one. It exists on the a and f variants only, unlike the other three.
"""

from __future__ import annotations

from functools import partial

from cute_py.ptx.forms_barrier import H200, RESTRICTION_NEEDS, SCOPES, TOLERATED_RESTRICTION
from cute_py.ptx.instruction import SYNC, by_space, forbid, needs, operand, row
from cute_py.targets import Targets

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

REPLACE_FIELDS = ("global_address", "rank", *ORDINAL_FIELDS, *IMMEDIATE_FIELDS)
"""All fields of tensormap.replace, in the ISA's order."""

NEW_ELEMENT_TYPES = (13, 14, 15)
"""elemtype numbers of the packed 4- and 6-bit formats (sm_100 and newer)."""

_SIZE = operand("size", "immediate", values=(128,))
_FENCE = SYNC + "membar / fence"
_PROXY_FAMILY = "fence.proxy.tensormap"
_SCOPE = f"scope={'|'.join(SCOPES)}"

_fence = partial(row, family=_PROXY_FAMILY, section=_FENCE, since=(8, 3))

TENSORMAP_FORMS = (
    row(
        "tensormap.replace",
        f"mode=tile field={'|'.join(REPLACE_FIELDS)} spaces?=global|shared::cta size=b1024 type=b32|b64",
        (
            *by_space("map", "global", "shared::cta", ""),
            operand("ordinal", "immediate", field=ORDINAL_FIELDS, values=tuple(range(5))),
            *(
                operand("value", "immediate", field=name, values=tuple(values))
                for name, values in IMMEDIATE_FIELDS.items()
            ),
            operand("value", "b64", field=WIDE_FIELDS),
            operand("value", "b32", field=("rank", "box_dim", "global_dim", "element_stride")),
        ),
        family="tensormap.replace",
        section="Tensor Map Instructions: tensormap.replace",
        targets=Targets.SPECIFIC_FROM_90,
        since=(8, 3),
        rules=(
            forbid("global_address and global_stride are written as .b64", field=WIDE_FIELDS, type="b32"),
            forbid(
                "this field is written as .b32",
                field=tuple(name for name in REPLACE_FIELDS if name not in WIDE_FIELDS),
                type="b64",
            ),
            needs(Targets.SPECIFIC_FROM_100, (8, 6), field="swizzle_atomicity"),
            needs(Targets.SPECIFIC_FROM_100, (8, 7), given=("value",), values=NEW_ELEMENT_TYPES, field="elemtype"),
            needs(Targets.ONLY_103A, (8, 8), given=("value",), values=(4,), field="swizzle_mode"),
        ),
        executed="all ten fields of sm_90a on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "tensormap.cp_fenceproxy",
        f"spaces=global.shared::cta proxy=tensormap::generic sem=release {_SCOPE} sync=sync aligned=aligned",
        (operand("destination", "global"), operand("source", "shared"), _SIZE),
        family="tensormap.cp_fenceproxy",
        since=(8, 3),
    ),
    _fence(
        "fence.proxy",
        f"proxy=tensormap::generic sem=acquire {_SCOPE}",
        (operand("map", "any"), _SIZE),
        name="fence.proxy.tensormap.acquire",
    ),
    _fence(
        "fence.proxy",
        f"proxy=tensormap::generic sem=release {_SCOPE} {TOLERATED_RESTRICTION}",
        name="fence.proxy.tensormap.release",
        rules=(RESTRICTION_NEEDS,),
    ),
    row(
        "prefetch",
        "spaces?=param|const what=tensormap",
        by_space("map", "", "param", "const"),
        name="prefetch.tensormap",
        rules=(
            forbid(
                "tensormap is prefetched from the generic, .param or .const space",
                spaces=("global", "local", "shared", "shared::cta"),
            ),
        ),
        executed=H200,
    ),
)
