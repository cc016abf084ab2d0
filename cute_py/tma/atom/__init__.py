"""TMA atoms: operations, swizzle modes, values of a tensor map, TMA tensors, partitions and multicast."""

from cute_py.deprecations import export_public
from cute_py.tma.atom.atom import TmaAtom as TmaAtom
from cute_py.tma.atom.atom import explain_atom as explain_atom
from cute_py.tma.atom.gbasis import GBasis as GBasis
from cute_py.tma.atom.gbasis import GBasisTrace as GBasisTrace
from cute_py.tma.atom.gbasis import coalesce_256 as coalesce_256
from cute_py.tma.atom.gbasis import construct_tma_gbasis as construct_tma_gbasis
from cute_py.tma.atom.gbasis import make_cta_v_map as make_cta_v_map
from cute_py.tma.atom.gbasis import split_basis as split_basis
from cute_py.tma.atom.im2col import Im2colAtom as Im2colAtom
from cute_py.tma.atom.im2col import Im2colPlan as Im2colPlan
from cute_py.tma.atom.im2col import Im2colWindow as Im2colWindow
from cute_py.tma.atom.im2col import make_im2col_tma_copy as make_im2col_tma_copy
from cute_py.tma.atom.make import Fix as Fix
from cute_py.tma.atom.make import find_fixes as find_fixes
from cute_py.tma.atom.make import make_tma_atom as make_tma_atom
from cute_py.tma.atom.make import make_tma_copy as make_tma_copy
from cute_py.tma.atom.op import FORMAT_OF as FORMAT_OF
from cute_py.tma.atom.op import OPS as OPS
from cute_py.tma.atom.op import SWIZZLE_MODES as SWIZZLE_MODES
from cute_py.tma.atom.op import Op as Op
from cute_py.tma.atom.op import SwizzleRow as SwizzleRow
from cute_py.tma.atom.op import as_op as as_op
from cute_py.tma.atom.op import movable_type as movable_type
from cute_py.tma.atom.op import swizzle_row as swizzle_row
from cute_py.tma.atom.op import tensor_map_format as tensor_map_format
from cute_py.tma.atom.op import why_not_swizzle as why_not_swizzle
from cute_py.tma.atom.partition import create_tma_multicast_mask as create_tma_multicast_mask
from cute_py.tma.atom.partition import make_tma_copy_tiled as make_tma_copy_tiled
from cute_py.tma.atom.partition import tma_partition as tma_partition
from cute_py.tma.atom.partition import tma_tensor as tma_tensor
from cute_py.tma.atom.smem_layout import SmemChoice as SmemChoice
from cute_py.tma.atom.smem_layout import make_smem_layout as make_smem_layout
from cute_py.tma.atom.smem_layout import smem_atom as smem_atom
from cute_py.tma.atom.smem_layout import smem_choices as smem_choices
from cute_py.tma.atom.tile_atom import BrokenCondition as BrokenCondition
from cute_py.tma.atom.tile_atom import ExecutableCopy as ExecutableCopy
from cute_py.tma.atom.tile_atom import TmaPlan as TmaPlan
from cute_py.tma.atom.tile_atom import plan_tiled as plan_tiled
from cute_py.tma.atom.tiles import Coverage as Coverage
from cute_py.tma.atom.tiles import Instructions as Instructions
from cute_py.tma.atom.tiles import check_smem_address as check_smem_address
from cute_py.tma.atom.tiles import coverage as coverage
from cute_py.tma.atom.tiles import instructions as instructions
from cute_py.tma.descriptor.request import OpRow as OpRow

export_public(__name__)
