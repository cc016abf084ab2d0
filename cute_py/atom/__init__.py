"""Atoms: which thread holds which element, as CuTe C++ has it."""

from __future__ import annotations

from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS, find_mma_atoms, mma_atom

__all__ = ["MMA_ATOMS", "MmaAtom", "find_mma_atoms", "mma_atom"]
