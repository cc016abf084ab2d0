"""Instruction texts for comparisons with ptxas: every variant of the catalogue, and random ones near the borders."""

from __future__ import annotations

import random
from collections.abc import Callable

MODES = ("", "tile", "tile::gather4", "tile::scatter4", "im2col", "im2col::w", "im2col::w::128", "im2col_no_offs")
FIELDS = [
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
    "l2_promotion",
]


PRIORITIES = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")


def _dot(word: str) -> str:
    return f".{word}" if word else ""


def _coords(count: int) -> str:
    return "{" + ", ".join(f"%r{10 + i}" for i in range(count)) + "}"


def _tensor(dice: random.Random) -> tuple[int, str, str, str, str]:
    """dimension, mode, coordinates, im2col operand, cache hint suffix; sometimes with a wrong count."""
    dim, mode = dice.randint(1, 5), dice.choice(MODES)
    count = 5 if "4" in mode else dim
    if dice.random() < 0.05:
        count = dice.randint(1, 5)
    offsets = {"im2col": max(1, dim - 2), "im2col::w": 2, "im2col::w::128": 2}.get(mode, 0)
    if dice.random() < 0.05:
        offsets = dice.randint(0, 3)
    vector = ", {" + ", ".join(f"%h{2 + i}" for i in range(offsets)) + "}" if offsets else ""
    return dim, mode, _coords(count), vector, dice.choice(("", "", "L2::cache_hint"))


def load_text(dice: random.Random) -> str:
    dim, mode, coords, offsets, hint = _tensor(dice)
    mask = dice.random() < 0.4
    group = dice.choice(("", "", "", "cta_group::1", "cta_group::2"))
    space = dice.choice(("shared::cluster", "shared::cluster", "shared::cta", "shared"))
    completion = "mbarrier::complete_tx::bytes" if dice.random() < 0.95 else dice.choice(("bulk_group", ""))
    words = [word for word in (mode, completion, "multicast::cluster" if mask else "", group, hint) if word]
    if dice.random() < 0.3:
        dice.shuffle(words)
    tail = offsets + (", %h1" if mask else "") + (", %rd3" if hint else "")
    name = f"cp.async.bulk.tensor.{dim}d.{space}.global{''.join(map(_dot, words))}"
    return f"{name} [%r1], [%rd1, {coords}], [%r2]{tail};"


def store_text(dice: random.Random) -> str:
    dim, mode, coords, offsets, hint = _tensor(dice)
    space = dice.choice(("shared::cta",) * 5 + ("shared::cluster", "shared"))
    name = f"cp.async.bulk.tensor.{dim}d.global.{space}{_dot(mode)}.bulk_group{_dot(hint)}"
    return f"{name} [%rd1, {coords}], [%r1]{offsets}{', %rd3' if hint else ''};"


def reduce_text(dice: random.Random) -> str:
    dim, mode, coords, offsets, hint = _tensor(dice)
    kind = dice.choice(["add", "min", "max", "inc", "dec", "and", "or", "xor", "sub", "exch"])
    name = f"cp.reduce.async.bulk.tensor.{dim}d.global.shared::cta.{kind}{_dot(mode)}.bulk_group{_dot(hint)}"
    return f"{name} [%rd1, {coords}], [%r1]{offsets}{', %rd3' if hint else ''};"


def prefetch_text(dice: random.Random) -> str:
    dim, mode, coords, offsets, hint = _tensor(dice)
    name = f"cp.async.bulk.prefetch.tensor.{dim}d.L2.global{_dot(mode)}{_dot(hint)}"
    return f"{name} [%rd1, {coords}]{offsets}{', %rd3' if hint else ''};"


def replace_text(dice: random.Random) -> str:
    field = dice.choice(FIELDS)
    wide = (field in ("global_address", "global_stride")) != (dice.random() < 0.1)
    space = dice.choice(("", "global", "shared::cta", "global", "shared::cta", "shared", "const", "shared::cluster"))
    number = str(dice.choice((-1, 0, 1, 2, 3, 4, 5, 12, 13, 15, 16)))
    value = number if dice.random() < 0.6 else dice.choice(("%r2", "%rd2"))
    indexed = (field in ("box_dim", "global_dim", "global_stride", "element_stride")) != (dice.random() < 0.05)
    ordinal = f"{dice.randint(-1, 5)}, " if indexed else ""
    address = dice.choice(("[%r1]", "[%rd1]", "[gmap]", "[smem]", "[%rd1+64]"))
    mode = dice.choice(("tile.",) * 8 + ("", "im2col."))
    name = f"tensormap.replace.{mode}{field}{_dot(space)}.b1024.{'b64' if wide else 'b32'}"
    return f"{name} {address}, {ordinal}{value};"


def proxy_text(dice: random.Random) -> str:
    if dice.random() < 0.5:
        spaces = dice.choice(("global.shared::cta",) * 5 + ("global.shared", "shared::cta.global"))
        order = dice.choice(("release",) * 5 + ("acquire",))
        scope = dice.choice(("cta", "cluster", "gpu", "sys", ""))
        aligned = dice.choice((".sync.aligned",) * 5 + (".sync", ""))
        size = dice.choice(("128", "128", "64", "%r2"))
        name = f"tensormap.cp_fenceproxy.{spaces}.tensormap::generic.{order}{_dot(scope)}{aligned}"
        return f"{name} [%rd1], [%r1], {size};"
    kind = dice.choice(("proxy.tensormap::generic",) * 3 + ("proxy.async::generic", "mbarrier_init"))
    words = [kind]
    for choices, odds in (
        (("acquire", "release", "acq_rel", "sc"), 0.8),
        (("sync_restrict::shared::cta", "sync_restrict::shared::cluster"), 0.2),
        (("cta", "cluster", "gpu", "sys"), 0.8),
    ):
        if dice.random() < odds:
            words.append(dice.choice(choices))
    tail = dice.choice((" [%rd1], 128", " [%rd1], 128", "", "", " [%rd1]", " [gmap], 128", " [%rd1], 64"))
    return f"fence{''.join(map(_dot, words))}{tail};"


def mbarrier_text(dice: random.Random) -> str:
    name = dice.choice(
        [
            "init",
            "inval",
            "arrive",
            "arrive.expect_tx",
            "arrive.noComplete",
            "arrive_drop",
            "arrive_drop.expect_tx",
            "expect_tx",
            "complete_tx",
            "test_wait",
            "test_wait.parity",
            "try_wait",
            "try_wait.parity",
        ]
    )
    order = _dot(dice.choice(("", "", "acquire", "release", "relaxed")))
    scope = _dot(dice.choice(("", "", "cta", "cluster", "gpu")))
    space = _dot(dice.choice(("", "shared", "shared::cta", "shared::cta", "shared::cluster", "global")))
    result = ""
    if name.startswith("arrive"):
        result = dice.choice(("_, ", "_, ", "%rd2, ", ""))
    elif "wait" in name:
        result = dice.choice(("%p1, ", "%p1, ", "%p1, ", "%r3, "))
    tail = dice.choice(("", ", 1", ", %r2", ", %rd4", ", %r2, 100", ", %rd4, %r5", ", 0", ", 2"))
    return f"mbarrier.{name}{order}{scope}{space}.b64 {result}{dice.choice(('[%rd1]', '[smem]'))}{tail};"


def bulk_text(dice: random.Random) -> str:
    if dice.random() < 0.5:
        kind = dice.choice(["add", "min", "max", "inc", "dec", "and", "or", "xor"])
        type_ = dice.choice(["u32", "s32", "b32", "u64", "s64", "b64", "f16", "bf16", "f32", "f64"])
        noftz = dice.choice(("", "", ".noftz"))
        if dice.random() < 0.5:
            return f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{kind}{noftz}.{type_} [%rd1], [%r1], %r6;"
        name = f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{kind}{noftz}.{type_}"
        return f"{name} [%r1], [%r5], %r6, [%r2];"
    to = dice.choice(("shared::cluster", "shared::cta", "global", "shared"))
    source = dice.choice(("global", "shared::cta", "shared::cluster", "global"))
    mask, hint, bytes_ = dice.random() < 0.25, dice.random() < 0.3, dice.random() < 0.15
    grouped = to == "global"
    name = f"cp.async.bulk.{to}.{source}.{'bulk_group' if grouped else 'mbarrier::complete_tx::bytes'}"
    name += ".multicast::cluster" * mask + ".L2::cache_hint" * hint + ".cp_mask" * bytes_
    tail = "" if grouped else ", [%r2]"
    tail += ", %h1" * mask + ", %rd3" * hint + ", %h2" * bytes_
    size = dice.choice(("%r6", "%r6", "64", "8", "%rd6"))
    return f"{name} {'[%rd1]' if grouped else '[%r1]'}, {'[%rd1]' if source == 'global' else '[%r5]'}, {size}{tail};"


def helper_text(dice: random.Random) -> str:
    pick = dice.choice
    makers: tuple[Callable[[], str], ...] = (
        lambda: (
            f"mapa{pick(('', '.shared::cluster', '.shared::cta'))}.{pick(('u32 %r2, %r1', 'u64 %rd2, %rd1'))}, %r3;"
        ),
        lambda: (
            f"cvta{pick(('', '.to'))}.{pick(('shared', 'shared::cta', 'shared::cluster', 'param'))}.u64 %rd2, %rd1;"
        ),
        lambda: f"barrier.cluster.{pick(('arrive', 'wait'))}{pick(('', '.release', '.acquire', '.relaxed'))}.aligned;",
        lambda: f"cp.async.{pick(('ca', 'cg'))}.shared.global [%r1], [%rd1], {pick(('4', '8', '16', '2'))};",
        lambda: f"prefetch{pick(('', '.param', '.const'))}.tensormap {pick(('[%rd1]', '[%r1]', '[gmap]', '[pmap]'))};",
        lambda: f"setmaxnreg.inc{pick(('.sync.aligned', '.aligned'))}.u32 {pick((16, 24, 41, 240, 264))};",
        lambda: f"st.bulk{pick(('', '.weak'))}{pick(('', '.shared::cta'))} [%rd1], {pick(('4096', '%rd2', '12'))}, 0;",
        lambda: f"elect.sync {pick(('%r2|%p1', '_|%p1', '%p1'))}, {pick(('0xffffffff', '%r2'))};",
        lambda: (
            f"createpolicy.fractional.{pick(PRIORITIES)}{pick(('', '', '.L2::evict_first', '.L2::evict_last'))}.b64 "
            f"%rd1, {pick(('1.0', '0.5', '0.0', '1', '%f1'))};"
        ),
        lambda: (
            f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{pick(('add', 'and', 'inc'))}."
            f"{pick(('u32', 's32', 'b32', 'u64'))} [%r1], {pick(('%r2', '%rd2'))}, [%r3];"
        ),
        lambda: f"{pick(('discard.global.L2', 'applypriority.global.L2::evict_normal'))} [%rd1], {pick((64, 128))};",
        lambda: f"prefetch{pick(('', '.global', '.local'))}.{pick(('L1', 'L2', 'L2::evict_last'))} [%rd1];",
        lambda: f"griddepcontrol{pick(('.wait', '.launch_dependents', ''))};",
    )
    return pick(makers)()


MAKERS = (
    load_text,
    load_text,
    store_text,
    reduce_text,
    prefetch_text,
    replace_text,
    replace_text,
    proxy_text,
    mbarrier_text,
    mbarrier_text,
    bulk_text,
    helper_text,
)


def random_texts(count: int, seed: int) -> list[str]:
    """`count` different texts, most of them close to a rule's border; the same for the same seed."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[dice.choice(MAKERS)(dice)] = None
    return list(found)


_TO = "mbarrier::complete_tx::bytes"
_BULK = f"cp.async.bulk.shared::cluster.global.{_TO} [%r1], [%rd1], {{}}, [%r2];"
SAID: dict[str, bool] = {
    "@%r1 fence.proxy.async;": False, "@!%rd1 fence.proxy.async;": False, "@ ! %p1 fence.proxy.async;": True,
    "prefetch .L1 /* a, [b] */ [%rd1];": True, "prefetch.L1[%rd1];": True, "prefetch . L1 [%rd1];": False,
    "prefetch.tensormap [_];": False, "prefetch.L1 [%r1];": False, "discard.global.L2 [%r1], 128;": False,
    "ld.global.nc.b32 %r2, [%r1];": False,
    "setmaxnreg.inc.aligned.sync.u32 40;": True, "setmaxnreg.sync.inc.aligned.u32 40;": False,
    f"clusterlaunchcontrol.try_cancel.async.b128.{_TO} [%r1], [%r2];": True,
    f"clusterlaunchcontrol.try_cancel.{_TO}.async.b128 [%r1], [%r2];": False,
    f"clusterlaunchcontrol.try_cancel.shared::cta.async.{_TO}.b128 [%r1], [%r2];": False,
    "clusterlaunchcontrol.query_cancel.is_canceled.b128.pred %p1, %q1;": False,
    "cvta.to.u64.shared %rd1, %rd2;": True, "cvta.shared.to.u64 %rd1, %rd2;": False,
    "cvta.shared.u64 %rd1, smem;": True, "cvta.shared.u64 %rd1, gmap;": False, "cvta.param.u64 %rd1, pmap;": True,
    "cvta.global.u64 %rd1, gmap;": True, "cvta.to.shared.u64 %rd1, smem;": False, "isspacep.shared %p1, smem;": False,
    "cvta.shared.u64 %rd1+8, %rd2;": False, "createpolicy.fractional.L2::evict_last.b64 %rd1+8;": False,
    "mapa.u32 %r1, smem, %r2;": True, "mapa.u32 %r1, gmap, %r2;": False, "getctarank.u64 %r1, pmap;": False,
    _BULK.format("1048560"): True, _BULK.format("1048576"): False, _BULK.format("-16"): False,
    _BULK.format("16*(1<<2)"): True, _BULK.format("99999999999999999999"): False,
    "st.bulk [%rd1], 16777216, 0;": True, "st.bulk [%rd1], 16777224, 0;": False,
    "mbarrier.arrive.shared.b64 _, [%r1], 18446744073709551600;": False, "mapa.u32 %r1, 0x, %r2;": False,
    "mbarrier.arrive.noComplete.release.cta.shared.b64 _, [%r1], 1;": True,
    "mbarrier.arrive.noComplete.release.cluster.shared.b64 _, [%r1], 1;": False,
    "mapa.u32 %r1, 08, %r2;": False, "mapa.u32 %r1, ~0, %r2;": True, "mapa.u32 %r1, -(7/2), %r2;": True,
    "cp.async.ca.shared.global [%r1], [%rd1], 8, 8;": True, "cp.async.ca.shared.global [%r1], [%rd1], 8, 16;": False,
    "cp.async.ca.shared.global [%r1], [%rd1], 8, -1;": False,
    "tcgen05.ld.sync.32x32b.x1.b32 {%r1}, [%r2];": True, "tcgen05.st.sync.32x32b.x1.b32 [%r2], {%r1};": True,
    "tcgen05.alloc.cta_group::1.sync.b32 [%r1], 32;": False,
    f"red.async.relaxed.cluster.{_TO}.add.u32 [%rd1], %r2, [%rd2];": True,
    f"st.async.{_TO}.b32 [%rd1], %r2, [%rd2];": True,
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {(1+1)}], [%r1];": True,
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], %tid.x;": False,
}  # fmt: skip
"""Texts on sm_100a and whether ptxas 13.0.88 takes them: spellings, order, symbols and numbers at their bounds."""
