// Runs recorded statements, each in a process of its own, and stands in for the driver's functions that CuTe calls.
//
// A row's output: \1 index \2, then what the statement prints, where \3 key \4 starts a named field; \6 reason, if an
// assertion or a signal ended it; \5 at its end.
#pragma once

#define __CUDACC_VER_MAJOR__ 13  // CuTe's host code encodes descriptors only for a compiler that knows TMA
#define __CUDACC_VER_MINOR__ 0
#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL  // calls cuTensorMapEncode* by name: the ones below

#include <sys/wait.h>
#include <unistd.h>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include <cuda.h>

#include <cute/tensor.hpp>
#include <cute/atom/copy_traits_sm90_im2col.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/copy_traits_sm100_tma.hpp>
#include <cute/atom/mma_traits_sm100.hpp>
#include <cute/util/print_latex.hpp>
#include <cutlass/core_io.h>
#include <cutlass/numeric_types.h>

using namespace cute;

alignas(1024) static uint8_t BUF[4096];  // the memory that printed tensors read

template <class T>
T* P() {
  return (T*)BUF;
}

static void flush() {
  std::cout.flush();
  fflush(stdout);
}

#define FIELD(name) printf("\003%s\004", name)

template <class Statement>
void row(int index, Statement statement) {
  printf("\001%d\002", index);
  flush();
  pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a statement that does not end
    statement();
    flush();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("\006signal %d", WTERMSIG(status));
  printf("\005");
  flush();
}

extern "C" [[noreturn]] void __assert_fail(const char* condition, const char* file, unsigned line, const char*) noexcept {
  printf("\006%s @ %s:%u", condition, file, line);
  flush();
  _exit(0);
}

static std::string ENCODED;  // the arguments of the last call of the driver's function, as JSON

template <class Numbers>
void note(const char* name, Numbers numbers, int count) {
  ENCODED += std::string(", \"") + name + "\": [";
  for (int i = 0; i < count; ++i) ENCODED += (i ? ", " : "") + std::to_string(numbers[i]);
  ENCODED += "]";
}

static void note(const char* name, unsigned long long value) {
  ENCODED += std::string(", \"") + name + "\": " + std::to_string(value);
}

static void note_modes(CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill) {
  note("interleave", interleave);
  note("swizzle", swizzle);
  note("l2Promotion", promotion);
  note("oobFill", fill);
  ENCODED += "}";
}

extern "C" CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dim,
    const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  ENCODED = "{\"fn\": \"cuTensorMapEncodeTiled\"";
  note("dtype", type);
  note("rank", rank);
  note("globalAddress", (unsigned long long)address);
  note("globalDim", dim, rank);
  note("globalStrides", strides, rank - 1);
  note("globalDim5", dim, 5);  // CuTe's arrays are always of five
  note("globalStrides4", strides, 4);
  note("boxDim", box, rank);
  note("boxDim5", box, 5);
  note("elementStrides", steps, rank);
  note_modes(interleave, swizzle, promotion, fill);
  return CUDA_SUCCESS;
}

extern "C" CUresult CUDAAPI cuTensorMapEncodeIm2col(
    CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dim,
    const cuuint64_t* strides, const int* lower, const int* upper, cuuint32_t channels, cuuint32_t pixels,
    const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  ENCODED = "{\"fn\": \"cuTensorMapEncodeIm2col\"";
  note("dtype", type);
  note("rank", rank);
  note("globalAddress", (unsigned long long)address);
  note("globalDim", dim, rank);
  note("globalStrides", strides, rank - 1);
  note("pixelBoxLowerCorner", lower, rank - 2);
  note("pixelBoxUpperCorner", upper, rank - 2);
  note("channelsPerPixel", channels);
  note("pixelsPerColumn", pixels);
  note("elementStrides", steps, rank);
  note_modes(interleave, swizzle, promotion, fill);
  return CUDA_SUCCESS;
}

// A driver above 13.1: CuTe then leaves the words of the descriptor as the encoder made them.
extern "C" CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = 13020;
  return CUDA_SUCCESS;
}

extern "C" cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}

extern "C" CUresult CUDAAPI cuDeviceGetAttribute(int*, CUdevice_attribute, CUdevice) { return CUDA_SUCCESS; }
