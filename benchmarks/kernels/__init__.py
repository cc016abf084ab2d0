"""Kernels that measure or show one thing of the copy engine, and what launches them; no copy of the package runs them.

Their parts (the prelude, the instructions, the walk of tiles) are those of `cute_py.gpu.kernels`. `jobs` runs single
instructions side by side, `groups` copies many tensors through maps that the device rebinds.
"""
