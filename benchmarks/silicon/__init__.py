"""Atoms measured on a device: operands placed one-hot and read back, without the tables of this package.

    python -m benchmarks.silicon build FOLDER        cubins of every form (ptxas, no GPU needed)
    python -m benchmarks.silicon run FOLDER OUT      run them on a device and write what was measured
    python -m benchmarks.silicon assemble OUT        forms of newer architectures through ptxas

What the device returns is compared with the tables afterwards; see docs/measurements/atoms-h200.md.
"""
