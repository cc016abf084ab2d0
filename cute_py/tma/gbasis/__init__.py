"""From a tile to its TMA box: the G-basis and the trace of its stages."""

from cute_py.tma.gbasis.basis import GBasis, construct_tma_gbasis, make_cta_v_map, split_basis
from cute_py.tma.gbasis.coalesce_256 import coalesce_256
from cute_py.tma.gbasis.trace import GBasisTrace

__all__ = [
    "GBasis",
    "GBasisTrace",
    "coalesce_256",
    "construct_tma_gbasis",
    "make_cta_v_map",
    "split_basis",
]
