// The peer of the GPU benchmark in CuTe C++: one 32 x 256 tile of bf16 a block, one TMA load and one TMA store.
//
//   nvcc -O3 -std=c++17 -arch=sm_90a --expt-relaxed-constexpr -shared -Xcompiler -fPIC -I CUTLASS/include \
//        benchmarks/cute_cpp_peer.cu -o build/cute_cpp_peer.so
//
// The tile is the fastest of those measured for this form.

#include <cuda_runtime.h>

#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>

using namespace cute;

using Element = cute::bfloat16_t;
using Rows = Int<32>;
using Columns = Int<256>;
using Box = Layout<Shape<Rows, Columns>, Stride<Columns, _1>>;
constexpr int kTileBytes = int(cosize_v<Box>) * int(sizeof(Element));

template <class Load, class Store, class Extent>
__global__ void __launch_bounds__(32) copy_tile(const __grid_constant__ Load load, const __grid_constant__ Store store,
                                                Extent extent) {
  extern __shared__ __align__(128) unsigned char bytes[];
  __shared__ uint64_t barrier;
  if (threadIdx.x != 0) return;

  auto shared = make_tensor(make_smem_ptr(reinterpret_cast<Element*>(bytes)), Box{});
  auto where = make_coord(blockIdx.y, blockIdx.x);
  auto from = local_tile(load.get_tma_tensor(extent), shape(Box{}), where);
  auto to = local_tile(store.get_tma_tensor(extent), shape(Box{}), where);
  auto [load_global, load_shared] =
      tma_partition(load, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(shared), group_modes<0, 2>(from));
  auto [store_global, store_shared] =
      tma_partition(store, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(shared), group_modes<0, 2>(to));

  initialize_barrier(barrier, 1);
  cutlass::arch::fence_barrier_init();
  set_barrier_transaction_bytes(barrier, kTileBytes);
  copy(load.with(barrier), load_global, load_shared);
  wait_barrier(barrier, 0);
  copy(store, store_shared, store_global);
  tma_store_arrive();
  tma_store_wait<0>();
}

struct Copy {
  virtual ~Copy() = default;
  virtual int launch(cudaStream_t stream) = 0;
};

template <class Load, class Store, class Extent>
struct Prepared final : Copy {
  Load load;
  Store store;
  Extent extent;
  dim3 grid;

  Prepared(Load load, Store store, Extent extent, dim3 grid) : load(load), store(store), extent(extent), grid(grid) {}

  int launch(cudaStream_t stream) override {
    copy_tile<<<grid, 32, kTileBytes, stream>>>(load, store, extent);
    return int(cudaGetLastError());
  }
};

// A prepared copy of a row-major (rows, columns) tensor of bf16; both sizes are multiples of the tile's.
extern "C" void* prepare(const void* source, void* destination, int rows, int columns) {
  auto layout = make_layout(make_shape(rows, columns), make_stride(columns, _1{}));
  auto from = make_tensor(make_gmem_ptr(static_cast<const Element*>(source)), layout);
  auto to = make_tensor(make_gmem_ptr(static_cast<Element*>(destination)), layout);
  auto load = make_tma_copy(SM90_TMA_LOAD{}, from, Box{});
  auto store = make_tma_copy(SM90_TMA_STORE{}, to, Box{});
  dim3 grid(columns / Columns::value, rows / Rows::value);
  return new Prepared<decltype(load), decltype(store), decltype(layout.shape())>(load, store, layout.shape(), grid);
}

// 0, or the number of a CUDA error.
extern "C" int launch(void* prepared, void* stream) {
  return static_cast<Copy*>(prepared)->launch(static_cast<cudaStream_t>(stream));
}
