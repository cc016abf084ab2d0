"""The tensor copies: cp.async.bulk.tensor (load, store), cp.reduce.async.bulk.tensor, the prefetch to L2.

Modes of a load: tile, im2col, and from sm_100 on im2col::w, im2col::w::128 and tile::gather4. A store has
im2col_no_offs in place of im2col, and tile::scatter4. The tensor map's address and the coordinates share a bracket.
"""

from __future__ import annotations

from cute_py.ptx.forms_bulk import (
    CTA_IS_ALONE,
    HINT,
    MASK,
    MULTICAST,
    POLICY,
    REDUCE_KINDS,
    TO_BARRIER,
    TO_GROUP,
)
from cute_py.ptx.instruction import MOVE, SHARED, Narrow, Operand, OperandClass, Rule, operand, row, when
from cute_py.targets import Targets

DIMS = ("1d", "2d", "3d", "4d", "5d")
LOAD_MODES = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
STORE_MODES = ("tile", "tile::scatter4", "im2col_no_offs")
IM2COL_MODES = LOAD_MODES[2:]

_DIM = f"dim={'|'.join(DIMS)}"
_LOAD_MODE, _STORE_MODE = (f"mode?=({modes[0]})|{'|'.join(modes[1:])}" for modes in (LOAD_MODES, STORE_MODES))
_TENSOR = operand("tensor", OperandClass.TENSOR)
_SOURCE = Operand("source", (SHARED,), bare=True)
_OFFSETS = operand("offsets", OperandClass.OFFSETS, mode=IM2COL_MODES)
_COPY = MOVE + "cp.async.bulk.tensor"

_SHAPE_RULES = (
    Rule(when(mode=(*IM2COL_MODES, "im2col_no_offs"), dim=DIMS[:2]), forbid="the im2col modes are for 3d to 5d"),
    Rule(
        when(mode=("tile::gather4", "tile::scatter4"), dim=("1d", *DIMS[2:])),
        forbid="tile::gather4 and tile::scatter4 are 2d only",
    ),
)
_SCATTER = Rule(when(mode="tile::scatter4"), Targets.TMA_FULL, (8, 6))

TENSOR_FORMS = (
    row(
        "cp.async.bulk.tensor",
        f"{_DIM} spaces=shared::cluster.global|shared::cta.global {_LOAD_MODE} {TO_BARRIER} {MULTICAST} "
        f"cta_group?=cta_group::1|cta_group::2 {HINT}",
        (
            Operand("destination", (SHARED,), bare=True),
            Operand("tensor", (OperandClass.TENSOR,), narrow=Narrow.NOT_CONSUMER),
            Operand("barrier", (SHARED,), bare=True),
            _OFFSETS,
            MASK,
            POLICY,
        ),
        name="load",
        family="bulk.tensor.load",
        section=_COPY,
        rules=(
            *_SHAPE_RULES,
            CTA_IS_ALONE,
            Rule(when(spaces="shared::cta.global"), since=(8, 6)),
            Rule(when(mode=("tile::gather4", "im2col::w"), spaces="shared::cta.global"), Targets.FROM_100, (8, 6)),
            Rule(when(mode=("tile::gather4", "im2col::w"), spaces="shared::cluster.global"), Targets.TMA_FULL, (8, 6)),
            Rule(when(mode="im2col::w::128"), Targets.TMA_FULL, (8, 6)),
            Rule(when(cta_group=("cta_group::1", "cta_group::2")), Targets.TMA_FULL, (8, 6)),
        ),
        executed="tile and im2col on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "cp.async.bulk.tensor",
        f"{_DIM} spaces=global.shared::cta {_STORE_MODE} {TO_GROUP} {HINT}",
        (_TENSOR, _SOURCE, POLICY),
        name="store",
        family="bulk.tensor.store",
        section=_COPY,
        rules=(*_SHAPE_RULES, _SCATTER),
        executed="tile and im2col_no_offs on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "cp.reduce.async.bulk.tensor",
        f"{_DIM} spaces=global.shared::cta op={'|'.join(REDUCE_KINDS)} {_STORE_MODE} {TO_GROUP} {HINT}",
        (_TENSOR, _SOURCE, POLICY),
        name="reduce",
        family="bulk.tensor.reduce",
        section=MOVE + "cp.reduce.async.bulk.tensor",
        rules=(*_SHAPE_RULES, _SCATTER),
        executed="tile on NVIDIA H200, driver 580.159.04",
    ),
    row(
        "cp.async.bulk.prefetch.tensor",
        f"{_DIM} level=L2 spaces=global {_LOAD_MODE} {HINT}",
        (_TENSOR, _OFFSETS, POLICY),
        name="prefetch",
        family="bulk.tensor.prefetch",
        section=MOVE + "cp.async.bulk.prefetch.tensor",
        rules=(
            *_SHAPE_RULES,
            Rule(when(mode=("tile::gather4", "im2col::w", "im2col::w::128")), Targets.TMA_FULL, (8, 6)),
        ),
    ),
)
