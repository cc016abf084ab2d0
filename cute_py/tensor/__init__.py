"""Tensors: engines (pointers, arrays, iterators) over layouts, their tiles, and how they print."""

from cute_py.moved import export_public
from cute_py.tensor.arrays import ArrayEngine as ArrayEngine
from cute_py.tensor.latex import format_latex as format_latex
from cute_py.tensor.latex import format_latex_tv as format_latex_tv
from cute_py.tensor.latex import format_layout as format_layout
from cute_py.tensor.latex import print_latex as print_latex
from cute_py.tensor.latex import print_latex_tv as print_latex_tv
from cute_py.tensor.latex import print_layout as print_layout
from cute_py.tensor.partition import inner_partition as inner_partition
from cute_py.tensor.partition import local_partition as local_partition
from cute_py.tensor.partition import local_tile as local_tile
from cute_py.tensor.partition import make_layout_tv as make_layout_tv
from cute_py.tensor.partition import outer_partition as outer_partition
from cute_py.tensor.pointers import Pointer as Pointer
from cute_py.tensor.pointers import TmemPointer as TmemPointer
from cute_py.tensor.pointers import make_gmem_ptr as make_gmem_ptr
from cute_py.tensor.pointers import make_ptr as make_ptr
from cute_py.tensor.pointers import make_rmem_ptr as make_rmem_ptr
from cute_py.tensor.pointers import make_smem_ptr as make_smem_ptr
from cute_py.tensor.pointers import make_tmem_ptr as make_tmem_ptr
from cute_py.tensor.printing import format_tensor as format_tensor
from cute_py.tensor.printing import ostream_text as ostream_text
from cute_py.tensor.printing import print_tensor as print_tensor
from cute_py.tensor.tensor import Tensor as Tensor
from cute_py.tensor.tensor import make_coord_tensor as make_coord_tensor
from cute_py.tensor.tensor import make_identity_layout as make_identity_layout
from cute_py.tensor.tensor import make_identity_tensor as make_identity_tensor
from cute_py.tensor.tensor import make_tensor as make_tensor
from cute_py.tensor.tensor import recast as recast

export_public(__name__)
