// What CUTLASS's fill kernels name of cuRAND; they are compiled and never run.
#pragma once
struct curandState_t { unsigned state; };
static inline __device__ void curand_init(unsigned long long, unsigned long long, unsigned long long, curandState_t*) {}
static inline __device__ float curand_uniform(curandState_t*) { return 0; }
static inline __device__ double curand_uniform_double(curandState_t*) { return 0; }
static inline __device__ float curand_normal(curandState_t*) { return 0; }
static inline __device__ double curand_normal_double(curandState_t*) { return 0; }
