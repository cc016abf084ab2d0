"""Atoms measured on a device: operands placed one-hot and read back, without the tables of this package.

    python -m benchmarks.silicon build FOLDER         cubins of every form (ptxas and nvcc, no GPU needed)
    python -m benchmarks.silicon STAGE FOLDER OUT     run one stage of them on a device, and write what was measured:
                                                      matrix, mover, group, sparse, random, tiles, conversions
    python -m benchmarks.silicon record OUT           compare with the tables, and write what is kept

See docs/measurements/atoms-h200.md.
"""
