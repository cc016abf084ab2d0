"""The kernels, as CUDA C++ sources in which sizes are compile-time constants."""
