"""Kernels that measure or show one thing of the copy engine; no copy of the package runs them.

Their parts (the prelude, the instructions, the walk of tiles) are those of `cute_py.gpu.kernels`.
"""
