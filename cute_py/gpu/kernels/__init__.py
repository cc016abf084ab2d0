"""The kernels, as CUDA C++ sources with sizes as compile-time constants."""
