"""Fences between memory orders and between proxies (the tensormap proxy's own are with the tensor map)."""

from __future__ import annotations

from cute_py.ptx.instruction import Form, Rule, Slot, when
from cute_py.targets import Targets

_SECTION = "Parallel Synchronization and Communication Instructions: membar / fence"
_SCOPES = ("cta", "cluster", "gpu", "sys")
_FAMILY = "fence.misc"
RESTRICTIONS = ("sync_restrict::shared::cluster", "sync_restrict::shared::cta")
TOLERATED_RESTRICTION = Slot("restrict", RESTRICTIONS, optional=True, tolerated=True)
"""ptxas takes a .sync_restrict on these fences, to no documented effect."""

RESTRICTION_NEEDS = Rule(when(restrict=RESTRICTIONS), Targets.FROM_90, (8, 6))
_CLUSTER = Rule(when(scope="cluster"), Targets.FROM_90, (7, 8))

FENCE_FORMS = (
    Form(
        "fence.proxy.async",
        _FAMILY,
        "fence.proxy",
        (
            Slot("proxy", ("async",)),
            Slot("spaces", ("global", "shared::cta", "shared::cluster"), optional=True),
            TOLERATED_RESTRICTION,
        ),
        (),
        _SECTION,
        rules=(RESTRICTION_NEEDS,),
        executed="on NVIDIA H200, driver 580.159.04",
    ),
    Form(
        "fence.proxy.alias",
        _FAMILY,
        "fence.proxy",
        (Slot("proxy", ("alias",)), TOLERATED_RESTRICTION),
        (),
        _SECTION,
        Targets.ANY,
        (7, 5),
        (RESTRICTION_NEEDS,),
    ),
    Form(
        "fence.proxy.async::generic",
        _FAMILY,
        "fence.proxy",
        (
            Slot("proxy", ("async::generic",)),
            Slot("sem", ("acquire", "release")),
            Slot("restrict", ("sync_restrict::shared::cluster", "sync_restrict::shared::cta")),
            Slot("scope", ("cluster",)),
        ),
        (),
        _SECTION,
        since=(8, 6),
        rules=(
            Rule(
                when(sem="acquire", restrict="sync_restrict::shared::cta"),
                forbid="acquire goes with sync_restrict::shared::cluster",
            ),
            Rule(
                when(sem="release", restrict="sync_restrict::shared::cluster"),
                forbid="release goes with sync_restrict::shared::cta",
            ),
        ),
    ),
    Form(
        "fence.mbarrier_init",
        _FAMILY,
        "fence.mbarrier_init",
        (Slot("sem", ("release",)), Slot("scope", ("cluster",)), TOLERATED_RESTRICTION),
        (),
        _SECTION,
        rules=(RESTRICTION_NEEDS,),
        executed="on NVIDIA H200, driver 580.159.04",
    ),
    Form(
        "fence",
        _FAMILY,
        "fence",
        (
            Slot("sem", ("sc", "acq_rel", "acquire", "release"), optional=True),
            Slot("restrict", ("sync_restrict::shared::cluster", "sync_restrict::shared::cta"), optional=True),
            Slot("scope", _SCOPES),
        ),
        (),
        _SECTION,
        Targets.ANY,
        (6, 0),
        (
            _CLUSTER,
            Rule(
                when(restrict="sync_restrict::shared::cta", sem=("", "sc", "acq_rel", "acquire")),
                forbid="sync_restrict::shared::cta goes with release",
            ),
            Rule(
                when(restrict="sync_restrict::shared::cluster", sem=("", "sc", "acq_rel", "release")),
                forbid="sync_restrict::shared::cluster goes with acquire",
            ),
            Rule(
                when(
                    restrict=RESTRICTIONS,
                    scope=("cta", "gpu", "sys"),
                ),
                forbid="sync_restrict goes with the scope cluster",
            ),
            Rule(
                when(restrict=("sync_restrict::shared::cluster", "sync_restrict::shared::cta")),
                Targets.FROM_90,
                (8, 6),
            ),
        ),
    ),
    Form(
        "membar",
        _FAMILY,
        "membar",
        (Slot("level", ("cta", "gl", "sys")),),
        (),
        _SECTION,
        Targets.ANY,
        (1, 4),
    ),
    Form(
        "membar.proxy.alias",
        _FAMILY,
        "membar.proxy",
        (Slot("proxy", ("alias",)),),
        (),
        _SECTION,
        Targets.ANY,
        (7, 5),
    ),
)
