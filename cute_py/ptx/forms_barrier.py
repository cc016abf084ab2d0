"""The mbarrier instructions, and fences between memory orders and between proxies.

An mbarrier is a 64-bit barrier in shared memory that counts arrivals and transaction bytes. A phase ends when the
number of pending arrivals and the number of transaction bytes are both zero. `expect_tx` increases the transaction
bytes, and the copies decrease them. The state space determines how the address is interpreted: `.shared{::cta}` takes a
32-bit address, `.shared::cluster` the address of a peer's barrier (from mapa), and without a state space, the address
is generic.

The last rows are the instructions on a tensor map itself: replace a field, copy the map with a fence, fence it,
prefetch it. The replace instruction supports only tiled maps: the assembler has no `.im2col` mode, although an earlier
grammar of the PTX ISA had it. Unlike the other three, it exists only on the a and f variants of architectures.
"""

from __future__ import annotations

from functools import partial

from cute_py.ptx.instruction import SYNC, FormRule, InstructionForm, Narrow, by_space, forbid, needs, operand, row
from cute_py.targets import Targets

SCOPES = ("cta", "cluster", "gpu", "sys")
_FENCE = SYNC + "membar / fence"
_FENCES = "fence.misc"
_CLUSTER, _CTA = RESTRICTIONS = ("sync_restrict::shared::cluster", "sync_restrict::shared::cta")
TOLERATED_RESTRICTION = f"restrict~={_CLUSTER}|{_CTA}"
"""ptxas accepts .sync_restrict on these fences, without a documented effect."""

RESTRICTION_NEEDS = needs(Targets.FROM_90, (8, 6), restrict=RESTRICTIONS)
H200 = "on NVIDIA H200, driver 580.159.04"

_fence = partial(row, family=_FENCES, section=_FENCE)

FENCE_FORMS = (
    _fence(
        "fence.proxy",
        f"proxy=async spaces?=global|shared::cta|shared::cluster {TOLERATED_RESTRICTION}",
        name="fence.proxy.async",
        rules=(RESTRICTION_NEEDS,),
        executed=H200,
    ),
    _fence(
        "fence.proxy",
        f"proxy=alias {TOLERATED_RESTRICTION}",
        name="fence.proxy.alias",
        targets=Targets.ANY,
        since=(7, 5),
        rules=(RESTRICTION_NEEDS,),
    ),
    _fence(
        "fence.proxy",
        f"proxy=async::generic sem=acquire|release restrict={_CLUSTER}|{_CTA} scope=cluster",
        name="fence.proxy.async::generic",
        since=(8, 6),
        rules=(
            forbid(f"acquire requires {_CLUSTER}", sem="acquire", restrict=_CTA),
            forbid(f"release requires {_CTA}", sem="release", restrict=_CLUSTER),
        ),
    ),
    _fence(
        "fence.mbarrier_init",
        f"sem=release scope=cluster {TOLERATED_RESTRICTION}",
        rules=(RESTRICTION_NEEDS,),
        executed=H200,
    ),
    _fence(
        "fence",
        f"sem?=sc|acq_rel|acquire|release restrict?={_CLUSTER}|{_CTA} scope={'|'.join(SCOPES)}",
        targets=Targets.ANY,
        since=(6, 0),
        rules=(
            needs(Targets.FROM_90, (7, 8), scope="cluster"),
            forbid(f"{_CTA} requires release", restrict=_CTA, sem=("", "sc", "acq_rel", "acquire")),
            forbid(f"{_CLUSTER} requires acquire", restrict=_CLUSTER, sem=("", "sc", "acq_rel", "release")),
            forbid("sync_restrict requires the scope cluster", restrict=RESTRICTIONS, scope=("cta", "gpu", "sys")),
            RESTRICTION_NEEDS,
        ),
    ),
    _fence("membar", "level=cta|gl|sys", targets=Targets.ANY, since=(1, 4)),
    _fence("membar.proxy", "proxy=alias", name="membar.proxy.alias", targets=Targets.ANY, since=(7, 5)),
)

_FAMILY = "mbarrier"
_OWN = "spaces?=(shared::cta)|shared type=(b64)"
_ANY_SPACE = "spaces?=(shared::cta)|shared|shared::cluster type=(b64)"
_BARRIER = by_space("barrier", ("shared::cta", "shared", "shared::cluster"), "", narrow=Narrow.REFUSED)
_STATE = operand("state", "sink b64", written=True)
_BYTES = operand("bytes", "b32")

_SPACE_RULES = (needs(since=(7, 8), spaces="shared::cta"),)
_CLUSTER_RULES = (*_SPACE_RULES, needs(Targets.FROM_90, (8, 0), spaces="shared::cluster"))
_RELAXED_LATE = needs(Targets.FROM_90, (8, 6), sem="relaxed")
_SINK_RULE = forbid(
    "an arrival on the barrier of another CTA returns no state, so write the sink _",
    given=("state",),
    spaces="shared::cluster",
)


_mbarrier = partial(row, family=_FAMILY)
_from_80 = partial(_mbarrier, targets=Targets.FROM_80, since=(7, 0))


def _order(*orders: str) -> str:
    return f"sem?={'|'.join(orders)} scope?=cta|cluster"


def _order_rules(order: str) -> tuple[FormRule, ...]:
    """Return the rules of memory orders: an order needs a scope, a scope needs an order, and the cluster scope needs a
    target with clusters."""
    named = (order, "relaxed")
    return (
        forbid("a memory order requires a scope, .cta or .cluster", sem=named, scope=""),
        forbid("a scope requires a memory order", sem="", scope=("cta", "cluster")),
        needs(since=(8, 0), sem=named),
        needs(Targets.FROM_90, (8, 0), scope="cluster"),
    )


def _arrivals(name: str, sink: tuple[FormRule, ...]) -> tuple[InstructionForm, ...]:
    """Return the rows of an arrive instruction: the plain form, the form with expected bytes, and the form that must
    not complete the phase."""
    section = SYNC + name
    return (
        _from_80(
            name,
            f"{_order('release', 'relaxed')} {_ANY_SPACE}",
            (_STATE, *_BARRIER, operand("count", "b32", optional=True, lowest=1)),
            section=section,
            rules=(
                *_CLUSTER_RULES,
                *_order_rules("release"),
                _RELAXED_LATE,
                _SINK_RULE,
                *sink,
                needs(Targets.FROM_90, (7, 8), given=("count",)),
            ),
        ),
        _mbarrier(
            f"{name}.expect_tx",
            f"{_order('release', 'relaxed')} {_ANY_SPACE}",
            (_STATE, *_BARRIER, _BYTES),
            section=section,
            rules=(*_order_rules("release"), _RELAXED_LATE, _SINK_RULE),
            executed=H200,
        ),
        _from_80(
            f"{name}.noComplete",
            f"{_order('release')} {_OWN}",
            (_STATE, *_BARRIER, operand("count", "b32", lowest=1)),
            section=section,
            rules=(
                *_SPACE_RULES,
                *_order_rules("release"),
                *sink,
                forbid("noComplete requires the scope cta", scope="cluster"),
            ),
        ),
    )


def _tx(name: str) -> InstructionForm:
    return _mbarrier(name, f"{_order('relaxed')} {_ANY_SPACE}", (*_BARRIER, _BYTES), rules=_order_rules("relaxed"))


def _wait(name: str, suspends: bool) -> InstructionForm:
    parity = name.endswith(".parity")
    phase = operand("parity", "b32", values=(0, 1)) if parity else operand("state", "b64")
    hint = (operand("suspend_hint", "b32", optional=True),) if suspends else ()
    return _mbarrier(
        name,
        f"{_order('acquire', 'relaxed')} {_OWN}",
        (operand("done", "predicate", written=True), *_BARRIER, phase, *hint),
        section=SYNC + "mbarrier.test_wait / mbarrier.try_wait",
        targets=Targets.FROM_90 if suspends else Targets.FROM_80,
        since=(7, 8) if suspends else (7, 1) if parity else (7, 0),
        rules=(*_SPACE_RULES, *_order_rules("acquire"), _RELAXED_LATE),
        executed=H200 if parity and suspends else "not executed",
    )


MBARRIER_FORMS = (
    _from_80("mbarrier.init", _OWN, (*_BARRIER, operand("count", "b32")), rules=_SPACE_RULES, executed=H200),
    _from_80("mbarrier.inval", _OWN, _BARRIER, rules=_SPACE_RULES),
    # mbarrier.arrive takes the sink from 7.1 on, mbarrier.arrive_drop from the start.
    *_arrivals("mbarrier.arrive", (needs(since=(7, 1), given=("sink",)),)),
    *_arrivals("mbarrier.arrive_drop", ()),
    _tx("mbarrier.expect_tx"),
    _tx("mbarrier.complete_tx"),
    _from_80("mbarrier.pending_count", "type=(b64)", (operand("count", "b32", written=True), operand("state", "b64"))),
    _wait("mbarrier.test_wait", suspends=False),
    _wait("mbarrier.test_wait.parity", suspends=False),
    _wait("mbarrier.try_wait", suspends=True),
    _wait("mbarrier.try_wait.parity", suspends=True),
)


# ---- tensor maps -----------------------------------------------------------------------------------------------------

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
_PROXY_FAMILY = "fence.proxy.tensormap"
_SCOPE = f"scope={'|'.join(SCOPES)}"

_map_fence = partial(row, family=_PROXY_FAMILY, section=_FENCE, since=(8, 3))

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
            forbid("global_address and global_stride require .b64", field=WIDE_FIELDS, type="b32"),
            forbid(
                "this field requires .b32",
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
    _map_fence(
        "fence.proxy",
        f"proxy=tensormap::generic sem=acquire {_SCOPE}",
        (operand("map", "any"), _SIZE),
        name="fence.proxy.tensormap.acquire",
    ),
    _map_fence(
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
                "tensormap requires the generic, .param or .const space",
                spaces=("global", "local", "shared", "shared::cta"),
            ),
        ),
        executed=H200,
    ),
)
