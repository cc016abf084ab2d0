"""Make the records of CuTe C++ again, from a CUTLASS checkout: `python -m tests.oracle.record CUTLASS --check`."""
