"""CuTe layout algebra with TMA tensor support."""
