"""Fences between memory orders and between proxies (the tensormap proxy's own are with the tensor map)."""

from __future__ import annotations

from cute_py.ptx.instruction import SYNC, Rule, row, when
from cute_py.targets import Targets

SCOPES = ("cta", "cluster", "gpu", "sys")
_SECTION = SYNC + "membar / fence"
_FAMILY = "fence.misc"
_CLUSTER, _CTA = RESTRICTIONS = ("sync_restrict::shared::cluster", "sync_restrict::shared::cta")
TOLERATED_RESTRICTION = f"restrict~={_CLUSTER}|{_CTA}"
"""ptxas takes a .sync_restrict on these fences, to no documented effect."""

RESTRICTION_NEEDS = Rule(when(restrict=RESTRICTIONS), Targets.FROM_90, (8, 6))
H200 = "on NVIDIA H200, driver 580.159.04"

FENCE_FORMS = (
    row(
        "fence.proxy",
        f"proxy=async spaces?=global|shared::cta|shared::cluster {TOLERATED_RESTRICTION}",
        name="fence.proxy.async",
        family=_FAMILY,
        section=_SECTION,
        rules=(RESTRICTION_NEEDS,),
        executed=H200,
    ),
    row(
        "fence.proxy",
        f"proxy=alias {TOLERATED_RESTRICTION}",
        name="fence.proxy.alias",
        family=_FAMILY,
        section=_SECTION,
        targets=Targets.ANY,
        since=(7, 5),
        rules=(RESTRICTION_NEEDS,),
    ),
    row(
        "fence.proxy",
        f"proxy=async::generic sem=acquire|release restrict={_CLUSTER}|{_CTA} scope=cluster",
        name="fence.proxy.async::generic",
        family=_FAMILY,
        section=_SECTION,
        since=(8, 6),
        rules=(
            Rule(when(sem="acquire", restrict=_CTA), forbid=f"acquire goes with {_CLUSTER}"),
            Rule(when(sem="release", restrict=_CLUSTER), forbid=f"release goes with {_CTA}"),
        ),
    ),
    row(
        "fence.mbarrier_init",
        f"sem=release scope=cluster {TOLERATED_RESTRICTION}",
        family=_FAMILY,
        section=_SECTION,
        rules=(RESTRICTION_NEEDS,),
        executed=H200,
    ),
    row(
        "fence",
        f"sem?=sc|acq_rel|acquire|release restrict?={_CLUSTER}|{_CTA} scope={'|'.join(SCOPES)}",
        family=_FAMILY,
        section=_SECTION,
        targets=Targets.ANY,
        since=(6, 0),
        rules=(
            Rule(when(scope="cluster"), Targets.FROM_90, (7, 8)),
            Rule(when(restrict=_CTA, sem=("", "sc", "acq_rel", "acquire")), forbid=f"{_CTA} goes with release"),
            Rule(when(restrict=_CLUSTER, sem=("", "sc", "acq_rel", "release")), forbid=f"{_CLUSTER} goes with acquire"),
            Rule(
                when(restrict=RESTRICTIONS, scope=("cta", "gpu", "sys")),
                forbid="sync_restrict goes with the scope cluster",
            ),
            RESTRICTION_NEEDS,
        ),
    ),
    row("membar", "level=cta|gl|sys", family=_FAMILY, section=_SECTION, targets=Targets.ANY, since=(1, 4)),
    row(
        "membar.proxy",
        "proxy=alias",
        name="membar.proxy.alias",
        family=_FAMILY,
        section=_SECTION,
        targets=Targets.ANY,
        since=(7, 5),
    ),
)
