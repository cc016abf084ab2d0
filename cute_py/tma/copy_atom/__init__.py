"""The TMA atom: G-basis, plan and descriptor of one copy, as one value."""

from cute_py.tma.copy_atom.binding import ExecutableCopy
from cute_py.tma.copy_atom.copy_atom import TmaAtom
from cute_py.tma.copy_atom.explain import explain_atom
from cute_py.tma.copy_atom.fixes import Fix, find_fixes
from cute_py.tma.copy_atom.formats import FORMAT_OF, movable_type, tensor_map_format
from cute_py.tma.copy_atom.im2col import Im2colAtom, make_im2col_tma_copy
from cute_py.tma.copy_atom.make import make_tma_atom, make_tma_copy
from cute_py.tma.copy_atom.tiles import Instructions, instructions

__all__ = [
    "ExecutableCopy",
    "FORMAT_OF",
    "Fix",
    "Im2colAtom",
    "Instructions",
    "TmaAtom",
    "explain_atom",
    "find_fixes",
    "instructions",
    "make_im2col_tma_copy",
    "make_tma_atom",
    "make_tma_copy",
    "movable_type",
    "tensor_map_format",
]
