"""CuTe layout algebra with TMA tensor support.

`import cute_py as cute` imports the layout algebra and coordinate tensors. `cute.tma` and `cute.tmem` are imported on
first use; numpy and sympy are imported when an operation needs them. A notebook displays objects as pictures.
"""

import importlib
import typing

from cute_py.arith_tuple import *
from cute_py.deprecations import export_public, no_such_name
from cute_py.errors import CuteError as CuteError
from cute_py.layout import *
from cute_py.layout import _ as _underscore
from cute_py.notation import *
from cute_py.notebook import register as _register
from cute_py.notebook import register_where_running as _register_where_running
from cute_py.notebook import unregister as _unregister
from cute_py.tensor import *

if typing.TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from cute_py import atom as atom
    from cute_py import draw as draw
    from cute_py import formats as formats
    from cute_py import mesh as mesh
    from cute_py import testing as testing
    from cute_py import tma as tma
    from cute_py import tmem as tmem
    from cute_py.atom import COPY_ATOMS as COPY_ATOMS
    from cute_py.atom import MMA_ATOMS as MMA_ATOMS
    from cute_py.atom import CopyAtom as CopyAtom
    from cute_py.atom import MmaAtom as MmaAtom
    from cute_py.atom import SmemDescriptor as SmemDescriptor
    from cute_py.atom import SmemOperand as SmemOperand
    from cute_py.atom import ThrCopy as ThrCopy
    from cute_py.atom import ThrMma as ThrMma
    from cute_py.atom import TiledCopy as TiledCopy
    from cute_py.atom import TiledMma as TiledMma
    from cute_py.atom import compress as compress
    from cute_py.atom import copy_atom as copy_atom
    from cute_py.atom import copy_registers as copy_registers
    from cute_py.atom import copy_tiled as copy_tiled
    from cute_py.atom import expand as expand
    from cute_py.atom import find_mma_atoms as find_mma_atoms
    from cute_py.atom import find_smem_operand as find_smem_operand
    from cute_py.atom import gemm as gemm
    from cute_py.atom import gmma_layout as gmma_layout
    from cute_py.atom import make_cotiled_copy as make_cotiled_copy
    from cute_py.atom import make_fragment_A as make_fragment_A
    from cute_py.atom import make_fragment_B as make_fragment_B
    from cute_py.atom import make_fragment_C as make_fragment_C
    from cute_py.atom import make_fragment_like as make_fragment_like
    from cute_py.atom import make_gmma_desc as make_gmma_desc
    from cute_py.atom import make_tensor_like as make_tensor_like
    from cute_py.atom import make_tiled_copy as make_tiled_copy
    from cute_py.atom import make_tiled_copy_A as make_tiled_copy_A
    from cute_py.atom import make_tiled_copy_B as make_tiled_copy_B
    from cute_py.atom import make_tiled_copy_C as make_tiled_copy_C
    from cute_py.atom import make_tiled_copy_C_atom as make_tiled_copy_C_atom
    from cute_py.atom import make_tiled_copy_D as make_tiled_copy_D
    from cute_py.atom import make_tiled_copy_S as make_tiled_copy_S
    from cute_py.atom import make_tiled_mma as make_tiled_mma
    from cute_py.atom import make_tmem_copy as make_tmem_copy
    from cute_py.atom import make_umma_desc as make_umma_desc
    from cute_py.atom import mma_atom as mma_atom
    from cute_py.atom import recast_ptr as recast_ptr
    from cute_py.atom import rs_smem_selector as rs_smem_selector
    from cute_py.atom import sm100_smem_selector as sm100_smem_selector
    from cute_py.atom import ss_smem_selector as ss_smem_selector
    from cute_py.atom import tile_to_mma_shape as tile_to_mma_shape
    from cute_py.atom import umma_layout as umma_layout
    from cute_py.copies.layout_copy import copy as copy
    from cute_py.copies.plan import plan_copy as plan_copy
    from cute_py.copies.prepared import prepare_copy as prepare_copy
    from cute_py.copies.registers.convert_tv import convert_layout_tv as convert_layout_tv
    from cute_py.copies.shared_layout import find_smem_layout as find_smem_layout
    from cute_py.explanation import explain as explain
    from cute_py.explanation.element_trace import ElementTrace as ElementTrace
    from cute_py.explanation.element_trace import trace as trace
    from cute_py.machine import PtxError as PtxError
    from cute_py.machine import PtxRun as PtxRun
    from cute_py.machine import UmmaOperands as UmmaOperands
    from cute_py.machine import Warps as Warps
    from cute_py.machine import run_ptx as run_ptx
    from cute_py.notation.dsl import from_dsl as from_dsl
    from cute_py.notation.dsl import to_dsl as to_dsl
    from cute_py.notation.triton import TritonLayout as TritonLayout
    from cute_py.notation.triton import from_triton as from_triton
    from cute_py.notation.triton import parse_triton as parse_triton
    from cute_py.notation.triton import to_triton as to_triton
    from cute_py.notation.triton_encodings import BlockedEncoding as BlockedEncoding
    from cute_py.notation.triton_encodings import DotOperandEncoding as DotOperandEncoding
    from cute_py.notation.triton_encodings import NvidiaMmaEncoding as NvidiaMmaEncoding
    from cute_py.notation.triton_encodings import NvmmaSharedEncoding as NvmmaSharedEncoding
    from cute_py.notation.triton_encodings import SliceEncoding as SliceEncoding
    from cute_py.notation.triton_encodings import SwizzledSharedEncoding as SwizzledSharedEncoding
    from cute_py.notation.triton_texts import parse_triton_encoding as parse_triton_encoding

__version__ = "0.2.0"

_ON_FIRST_USE = ("tma", "tmem", "draw", "testing", "atom", "mesh", "formats")

_LATER = {
    "cute_py.atom": (
        "COPY_ATOMS MMA_ATOMS CopyAtom MmaAtom SmemDescriptor SmemOperand ThrCopy ThrMma TiledCopy "
        "TiledMma compress copy_atom copy_registers copy_tiled expand find_mma_atoms find_smem_operand gemm "
        "gmma_layout make_cotiled_copy make_fragment_A make_fragment_B make_fragment_C make_fragment_like "
        "make_gmma_desc make_tensor_like make_tiled_copy make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C "
        "make_tiled_copy_C_atom make_tiled_copy_D make_tiled_copy_S make_tiled_mma make_tmem_copy make_umma_desc "
        "mma_atom recast_ptr rs_smem_selector sm100_smem_selector ss_smem_selector tile_to_mma_shape umma_layout"
    ),
    "cute_py.notation.dsl": "from_dsl to_dsl",
    "cute_py.notation.triton": "TritonLayout from_triton parse_triton to_triton",
    "cute_py.notation.triton_encodings": (
        "BlockedEncoding DotOperandEncoding NvidiaMmaEncoding NvmmaSharedEncoding SliceEncoding SwizzledSharedEncoding"
    ),
    "cute_py.explanation": "explain",
    "cute_py.notation.triton_texts": "parse_triton_encoding",
    "cute_py.explanation.element_trace": "ElementTrace trace",
    "cute_py.copies.registers.convert_tv": "convert_layout_tv",
    "cute_py.copies.layout_copy": "copy",
    "cute_py.copies.plan": "plan_copy",
    "cute_py.copies.prepared": "prepare_copy",
    "cute_py.copies.shared_layout": "find_smem_layout",
    "cute_py.machine": "PtxError PtxRun UmmaOperands Warps run_ptx",
}
"""Maps a module to its public names; the module is imported when one of them is first used."""

_HOME = {name: module for module, names in _LATER.items() for name in names.split()}

_ = _underscore
_PUBLIC = export_public(__name__, "_", "__version__", *_HOME)

_register_where_running()


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Make a running notebook display cute_py's objects as pictures; `%load_ext cute_py` calls this function.

    Importing cute_py in a notebook has the same effect.
    """
    _register(shell)


def unload_ipython_extension(shell: "InteractiveShell") -> None:
    """Make a notebook display cute_py's objects as text again; `%unload_ext cute_py` calls this function."""
    _unregister(shell)


if not typing.TYPE_CHECKING:  # type checkers then report misspelled names

    def __getattr__(name):
        if name in _ON_FIRST_USE:
            return importlib.import_module(f"cute_py.{name}")
        if name in _HOME:
            return getattr(importlib.import_module(_HOME[name]), name)
        if name.startswith("_"):
            raise no_such_name("cute_py", name, ())
        raise no_such_name("cute_py", name, __dir__(), "cute_py.tma", importlib.import_module("cute_py.tma").__all__)


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, *_ON_FIRST_USE, "load_ipython_extension", "unload_ipython_extension"])
