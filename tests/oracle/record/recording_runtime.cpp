// A CUDA runtime without a device: memory is host memory, copies are copies, and a launch is written to a file.
//
// A program of CUTLASS that is linked with this file instead of libcudart runs its own host code to the launch. Then
// the kernel's name, its grid, the bytes of its parameters and the sizes of all allocations are known. Nothing is
// executed.
//
//   CUTE_PY_SIZES    text: on each line the name of a kernel and the bytes of each of its parameters
//   CUTE_PY_MAJOR, CUTE_PY_MULTIPROCESSORS   of the device that the program is told of: 9 and 132 by default
//   CUTE_PY_RECORD   folder: launches.txt, with the first launch of each kernel
//
// A tensor map is 128 bytes: the word "CUTEPMAP", a number, and its address; launches.txt has what it was made of.

#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr std::uintptr_t kStart = 0x500000000000;  // device memory: no other number of a kernel looks like it
constexpr std::size_t kGap = 1 << 20;

struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};

struct State {
  std::map<std::uintptr_t, std::size_t> allocations;
  std::uintptr_t top = kStart;
  std::map<const void*, std::string> kernels;
  std::map<std::string, std::vector<std::size_t>> sizes;
  std::set<std::string> seen;
  std::vector<std::string> maps;
  Configuration pushed;
};

State& state() {  // kernels are registered before the constructors of this file run
  static State* made = new State;
  return *made;
}

std::string folder() {
  const char* name = std::getenv("CUTE_PY_RECORD");
  return name ? name : ".";
}

void read_sizes() {
  if (!state().sizes.empty() || !std::getenv("CUTE_PY_SIZES")) return;
  std::ifstream file(std::getenv("CUTE_PY_SIZES"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    auto& found = state().sizes[name];
    for (std::size_t size; words >> size;) found.push_back(size);
  }
}

void write_launch(const void* function, dim3 grid, dim3 block, dim3 cluster, std::size_t shared, void** args) {
  read_sizes();
  const std::string name = state().kernels.count(function) ? state().kernels[function] : "?";
  if (!state().seen.insert(name).second) return;
  std::ofstream out(folder() + "/launches.txt", std::ios::app);
  out << "launch " << name << " " << grid.x << " " << grid.y << " " << grid.z << " " << block.x << " " << block.y << " "
      << block.z << " " << cluster.x << " " << cluster.y << " " << cluster.z << " " << shared << "\n";
  for (std::size_t i = 0; i < state().sizes[name].size(); ++i) {
    out << "parameter ";
    const auto* bytes = static_cast<const unsigned char*>(args[i]);
    for (std::size_t j = 0; j < state().sizes[name][i]; ++j) out << std::hex << std::setw(2) << std::setfill('0') << int(bytes[j]);
    out << std::dec << "\n";
  }
  for (const auto& [address, size] : state().allocations) {
    out << "allocation " << address << " " << size << "\n";
  }
  for (const auto& text : state().maps) out << text << "\n";
}

int multiprocessors() {
  const char* count = std::getenv("CUTE_PY_MULTIPROCESSORS");
  return count ? std::atoi(count) : 132;
}

dim3 cluster_of(const cudaLaunchConfig_t* config) {
  dim3 cluster(1, 1, 1);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& one = config->attrs[i];
    if (one.id == cudaLaunchAttributeClusterDimension) {
      cluster = dim3(one.val.clusterDim.x, one.val.clusterDim.y, one.val.clusterDim.z);
    }
  }
  return cluster;
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  std::uint64_t words[16] = {0x50414d5045545543, state().maps.size(), reinterpret_cast<std::uintptr_t>(address)};
  std::memcpy(map, words, sizeof words);
  std::ostringstream out;
  out << "map " << state().maps.size() << " " << type << " " << rank << " " << words[2];
  for (cuuint32_t i = 0; i < rank; ++i) out << " " << extents[i];
  for (cuuint32_t i = 0; i + 1 < rank; ++i) out << " " << strides[i];
  for (cuuint32_t i = 0; i < rank; ++i) out << " " << box[i];
  for (cuuint32_t i = 0; i < rank; ++i) out << " " << element_strides[i];
  out << " " << interleave << " " << swizzle << " " << promotion << " " << fill;
  state().maps.push_back(out.str());
  return CUDA_SUCCESS;
}

CUresult encode_other() { return CUDA_ERROR_NOT_SUPPORTED; }

cudaError_t entry_point(const char* name, void** found, cudaDriverEntryPointQueryResult* status) {
  const bool tiled = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
  *found = tiled ? reinterpret_cast<void*>(encode_tiled) : reinterpret_cast<void*>(encode_other);
  if (status) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // namespace

extern "C" {

// ---- registration by the compiler's code

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  state().kernels[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  state().pushed = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = state().pushed.grid, *block = state().pushed.block, *shared = state().pushed.shared;
  *static_cast<cudaStream_t*>(stream) = state().pushed.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t) {
  write_launch(kernel, grid, block, dim3(1, 1, 1), shared, args);
  return cudaSuccess;
}

// ---- launches

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t) {
  write_launch(function, grid, block, dim3(1, 1, 1), shared, args);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  write_launch(function, config->gridDim, config->blockDim, cluster_of(config), config->dynamicSmemBytes, args);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void*) {
  std::memset(found, 0, sizeof *found);
  found->ptxVersion = found->binaryVersion = 90;
  found->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void*, int, size_t) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void*, int, size_t, unsigned) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void*, const cudaLaunchConfig_t* config) {
  const dim3 size = cluster_of(config);
  *count = multiprocessors() / (size.x * size.y * size.z);
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMalloc(void** found, size_t size) {
  const size_t whole = (size + 4095) / 4096 * 4096 + 4096;
  void* made = mmap(reinterpret_cast<void*>(state().top), whole, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (made == MAP_FAILED) return cudaErrorMemoryAllocation;
  state().allocations[state().top] = size;
  state().top += whole + kGap;
  *found = made;
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  state().allocations.erase(reinterpret_cast<std::uintptr_t>(address));
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  std::memmove(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t) {
  std::memmove(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t size) {
  std::memset(to, value, size);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t) { return cudaMemset(to, value, size); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = size_t(1) << 36, cudaSuccess; }

// ---- the device

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
  std::memset(found, 0, sizeof *found);
  const char* arch = std::getenv("CUTE_PY_MAJOR");
  found->major = arch ? std::atoi(arch) : 9;
  found->multiProcessorCount = multiprocessors();
  found->sharedMemPerBlockOptin = 232448;
  found->maxThreadsPerBlock = 1024;
  found->warpSize = 32;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = multiprocessors(); break;
    case cudaDevAttrComputeCapabilityMajor: *value = device.major; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return entry_point(name, found, status);
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  return encode_tiled(map, type, rank, address, extents, strides, box, element_strides, interleave, swizzle, promotion,
                      fill);
}
CUresult cuTensorMapReplaceAddress(CUtensorMap*, void*) { return encode_other(); }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = "an error", CUDA_SUCCESS; }

// ---- events

cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* time, cudaEvent_t, cudaEvent_t) { return *time = 1, cudaSuccess; }

}  // extern "C"
