"""The tensor copies: cp.async.bulk.tensor (load, store), cp.reduce.async.bulk.tensor, the prefetch to L2.

Modes of a load: tile, im2col, and from sm_100 on im2col::w, im2col::w::128 and tile::gather4. A store has
im2col_no_offs in place of im2col, and tile::scatter4. The tensor map's address and the coordinates share a bracket.
"""

from __future__ import annotations

from cute_py.ptx.instruction import Form, Narrow, Operand, OperandClass, Rule, Slot, when
from cute_py.targets import Targets
from cute_py.tma.descriptor.request import REDUCTIONS

DIMS = ("1d", "2d", "3d", "4d", "5d")
LOAD_MODES = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
STORE_MODES = ("tile", "tile::scatter4", "im2col_no_offs")
IM2COL_MODES = ("im2col", "im2col::w", "im2col::w::128")
REDUCE_KINDS = REDUCTIONS

_DIM = Slot("dim", DIMS)
_HINT = Slot("cache_hint", ("L2::cache_hint",), optional=True)
_POLICY = Operand("policy", (OperandClass.B64,), when(cache_hint="L2::cache_hint"))
_TENSOR = Operand("tensor", (OperandClass.TENSOR,))
_SOURCE = Operand("source", (OperandClass.SHARED_ADDRESS,), bare=True)

_SHAPE_RULES = (
    Rule(
        when(mode=("im2col", "im2col::w", "im2col::w::128", "im2col_no_offs"), dim=("1d", "2d")),
        forbid="the im2col modes are for 3d to 5d",
    ),
    Rule(
        when(mode=("tile::gather4", "tile::scatter4"), dim=("1d", "3d", "4d", "5d")),
        forbid="tile::gather4 and tile::scatter4 are 2d only",
    ),
)

LOAD = Form(
    "load",
    "bulk.tensor.load",
    "cp.async.bulk.tensor",
    (
        _DIM,
        Slot("spaces", ("shared::cluster.global", "shared::cta.global")),
        Slot("mode", LOAD_MODES, optional=True, default="tile"),
        Slot("completion", ("mbarrier::complete_tx::bytes",)),
        Slot("multicast", ("multicast::cluster",), optional=True),
        Slot("cta_group", ("cta_group::1", "cta_group::2"), optional=True),
        _HINT,
    ),
    (
        Operand("destination", (OperandClass.SHARED_ADDRESS,), bare=True),
        Operand("tensor", (OperandClass.TENSOR,), narrow=Narrow.NOT_CONSUMER),
        Operand("barrier", (OperandClass.SHARED_ADDRESS,), bare=True),
        Operand("offsets", (OperandClass.OFFSETS,), when(mode=IM2COL_MODES)),
        Operand("mask", (OperandClass.B16,), when(multicast="multicast::cluster")),
        _POLICY,
    ),
    "Data Movement and Conversion Instructions: cp.async.bulk.tensor",
    rules=(
        *_SHAPE_RULES,
        Rule(
            when(spaces="shared::cta.global", multicast="multicast::cluster"),
            forbid="multicast::cluster needs the destination shared::cluster",
        ),
        Rule(when(spaces="shared::cta.global"), since=(8, 6)),
        Rule(when(mode=("tile::gather4", "im2col::w"), spaces="shared::cta.global"), Targets.FROM_100, (8, 6)),
        Rule(when(mode=("tile::gather4", "im2col::w"), spaces="shared::cluster.global"), Targets.TMA_FULL, (8, 6)),
        Rule(when(mode="im2col::w::128"), Targets.TMA_FULL, (8, 6)),
        Rule(when(cta_group=("cta_group::1", "cta_group::2")), Targets.TMA_FULL, (8, 6)),
    ),
    executed="tile and im2col on NVIDIA H200, driver 580.159.04",
)

STORE = Form(
    "store",
    "bulk.tensor.store",
    "cp.async.bulk.tensor",
    (
        _DIM,
        Slot("spaces", ("global.shared::cta",)),
        Slot("mode", STORE_MODES, optional=True, default="tile"),
        Slot("completion", ("bulk_group",)),
        _HINT,
    ),
    (_TENSOR, _SOURCE, _POLICY),
    "Data Movement and Conversion Instructions: cp.async.bulk.tensor",
    rules=(*_SHAPE_RULES, Rule(when(mode="tile::scatter4"), Targets.TMA_FULL, (8, 6))),
    executed="tile and im2col_no_offs on NVIDIA H200, driver 580.159.04",
)

REDUCE = Form(
    "reduce",
    "bulk.tensor.reduce",
    "cp.reduce.async.bulk.tensor",
    (
        _DIM,
        Slot("spaces", ("global.shared::cta",)),
        Slot("op", REDUCE_KINDS),
        Slot("mode", STORE_MODES, optional=True, default="tile"),
        Slot("completion", ("bulk_group",)),
        _HINT,
    ),
    (_TENSOR, _SOURCE, _POLICY),
    "Data Movement and Conversion Instructions: cp.reduce.async.bulk.tensor",
    rules=(*_SHAPE_RULES, Rule(when(mode="tile::scatter4"), Targets.TMA_FULL, (8, 6))),
    executed="tile on NVIDIA H200, driver 580.159.04",
)

PREFETCH = Form(
    "prefetch",
    "bulk.tensor.prefetch",
    "cp.async.bulk.prefetch.tensor",
    (
        _DIM,
        Slot("level", ("L2",)),
        Slot("spaces", ("global",)),
        Slot("mode", LOAD_MODES, optional=True, default="tile"),
        _HINT,
    ),
    (_TENSOR, Operand("offsets", (OperandClass.OFFSETS,), when(mode=IM2COL_MODES)), _POLICY),
    "Data Movement and Conversion Instructions: cp.async.bulk.prefetch.tensor",
    rules=(
        *_SHAPE_RULES,
        Rule(when(mode=("tile::gather4", "im2col::w", "im2col::w::128")), Targets.TMA_FULL, (8, 6)),
    ),
)

TENSOR_FORMS = (LOAD, STORE, REDUCE, PREFETCH)
