"""The kernels, as CUDA C++ sources with all sizes folded."""
