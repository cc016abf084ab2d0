"""CuTe's copy and MMA atoms: which elements each thread holds. Read `mma_atom`, `tiled_mma` and `tiled_copy` first."""

from cute_py.atom.copy_atom import CopyAtom as CopyAtom
from cute_py.atom.copy_atom import CopyTraits as CopyTraits
from cute_py.atom.copy_atoms import COPY_ATOMS as COPY_ATOMS
from cute_py.atom.copy_atoms import copy_atom as copy_atom
from cute_py.atom.copy_tiled import copy_registers as copy_registers
from cute_py.atom.copy_tiled import copy_tiled as copy_tiled
from cute_py.atom.fragments import make_fragment_A as make_fragment_A
from cute_py.atom.fragments import make_fragment_B as make_fragment_B
from cute_py.atom.fragments import make_fragment_C as make_fragment_C
from cute_py.atom.fragments import make_fragment_like as make_fragment_like
from cute_py.atom.fragments import make_tensor_like as make_tensor_like
from cute_py.atom.fragments import recast_ptr as recast_ptr
from cute_py.atom.gemm import compress as compress
from cute_py.atom.gemm import expand as expand
from cute_py.atom.gemm import gemm as gemm
from cute_py.atom.make_tiled_copy import make_cotiled_copy as make_cotiled_copy
from cute_py.atom.make_tiled_copy import make_tiled_copy as make_tiled_copy
from cute_py.atom.make_tiled_copy import make_tiled_copy_A as make_tiled_copy_A
from cute_py.atom.make_tiled_copy import make_tiled_copy_B as make_tiled_copy_B
from cute_py.atom.make_tiled_copy import make_tiled_copy_C as make_tiled_copy_C
from cute_py.atom.make_tiled_copy import make_tiled_copy_C_atom as make_tiled_copy_C_atom
from cute_py.atom.make_tiled_copy import make_tiled_copy_D as make_tiled_copy_D
from cute_py.atom.make_tiled_copy import make_tiled_copy_S as make_tiled_copy_S
from cute_py.atom.make_tiled_copy import make_tmem_copy as make_tmem_copy
from cute_py.atom.mma_atom import FragmentType as FragmentType
from cute_py.atom.mma_atom import MmaAtom as MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS as MMA_ATOMS
from cute_py.atom.mma_atoms import find_mma_atoms as find_mma_atoms
from cute_py.atom.mma_atoms import mma_atom as mma_atom
from cute_py.atom.smem_descriptor import DescriptorKind as DescriptorKind
from cute_py.atom.smem_descriptor import Major as Major
from cute_py.atom.smem_descriptor import SmemDescriptor as SmemDescriptor
from cute_py.atom.smem_descriptor import SmemSwizzle as SmemSwizzle
from cute_py.atom.smem_layouts import SmemOperand as SmemOperand
from cute_py.atom.smem_layouts import find_smem_operand as find_smem_operand
from cute_py.atom.smem_layouts import gmma_layout as gmma_layout
from cute_py.atom.smem_layouts import make_gmma_desc as make_gmma_desc
from cute_py.atom.smem_layouts import make_umma_desc as make_umma_desc
from cute_py.atom.smem_layouts import rs_smem_selector as rs_smem_selector
from cute_py.atom.smem_layouts import sm100_smem_selector as sm100_smem_selector
from cute_py.atom.smem_layouts import ss_smem_selector as ss_smem_selector
from cute_py.atom.smem_layouts import tile_to_mma_shape as tile_to_mma_shape
from cute_py.atom.smem_layouts import umma_layout as umma_layout
from cute_py.atom.tiled_copy import ThrCopy as ThrCopy
from cute_py.atom.tiled_copy import TiledCopy as TiledCopy
from cute_py.atom.tiled_mma import ThrMma as ThrMma
from cute_py.atom.tiled_mma import TiledMma as TiledMma
from cute_py.atom.tiled_mma import make_tiled_mma as make_tiled_mma
from cute_py.deprecations import export_public

export_public(__name__)
