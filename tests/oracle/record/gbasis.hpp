// What a gbasis row holds of one atom, printed field by field.
#pragma once

#include "harness.hpp"

using namespace cutlass;

// The values on the way from a shared layout to the G-basis, each made by the function that CuTe makes it with.
template <class Internal, class Gmem, class Smem, class VMap>
void stages(Gmem const& gmem, Smem const& smem, VMap const& v_map) {
  auto inverse = right_inverse(get_nonswizzle_portion(smem));
  auto modes = coalesce(composition(v_map, inverse));
  auto first_scaled = find_if(stride(modes), [](auto basis) {
    return not is_constant<1, decltype(basis_value(basis))>{};
  });
  if constexpr (decltype(first_scaled)::value > 0) {
    auto vector = take<0, decltype(first_scaled)::value>(modes);
    auto strides = recast<Internal>(gmem.compose(vector)).layout();
    auto merged = cute::detail::coalesce_256(strides);
    auto bases = make_layout(shape(strides), stride(make_identity_layout(shape(gmem)).compose(vector)));
    FIELD("inv_smem"); print(inverse);
    FIELD("sidx2gmode_full"); print(modes);
    FIELD("smem_rank"); print(int(first_scaled));
    FIELD("sidx2gmode"); print(vector);
    FIELD("tile_gstride"); print(strides);
    FIELD("tma_gstride"); print(merged);
    FIELD("tile_gbasis"); print(bases);
    FIELD("tma_gbasis_tile"); print(bases.compose(make_layout(wrap(shape(merged)))));
  }
}

template <class T, class Layout>
auto global_tensor(Layout const& layout, unsigned long long address) {
  return make_tensor(make_gmem_ptr<T>((void*)address), layout);
}

template <class Atom, class Gmem>
void fields_of_atom(Atom const& atom, Gmem const& gmem) {
  printf("\003encode\004%s", ENCODED.c_str());
  FIELD("num_val_src"); print(int(Atom::NumValSrc));
  FIELD("g_stride"); print(atom.aux_params_.g_stride_);
  FIELD("tma_tensor"); print(atom.get_tma_tensor(shape(gmem)));
}

template <class T, class Internal, class Op, class G, class S, class F, class Tiler, class Count>
void atom(unsigned long long address, Op op, G g, S smem, F smem_full, Tiler tiler, Count count) {
  auto gmem = global_tensor<T>(g, address);
  FIELD("gmem"); print(g);
  FIELD("smem"); print(smem);
  FIELD("smem_full"); print(smem_full);
  FIELD("cta_tiler"); print(tiler);
  FIELD("dtype_bits"); print(int(sizeof_bits_v<T>));
  FIELD("internal_bits"); print(int(sizeof_bits_v<Internal>));
  auto v_map = make_identity_layout(shape(gmem)).compose(tiler);
  FIELD("cta_v_map"); print(v_map);
  auto basis = cute::detail::construct_tma_gbasis<Internal>(gmem, get_nonswizzle_portion(smem), v_map);
  stages<Internal>(gmem, smem, v_map);
  FIELD("tma_gbasis"); print(basis);
  auto made = make_tma_atom<Internal>(op, gmem, smem, tiler, count);
  fields_of_atom(made, gmem);
}

// Elements from the null pointer to a tensor's first element; a pointer into bytes is printed, with the bit it is at.
template <class T, class Tensor>
void offset_of(int index, Tensor const& tensor) {
  printf("\003offset%d\004", index);
  if constexpr (sizeof_bits_v<T> >= 8) {
    printf("%lld", (long long)(uintptr_t)raw_pointer_cast(tensor.data()) / (long long)sizeof(T));
  } else {
    print(tensor.data());
  }
}

template <class T, class Internal, class Op, class G, class S, class F, class Tiler, class Count>
void partitions(unsigned long long address, Op op, G g, S smem, F smem_full, Tiler tiler, Count count) {
  auto gmem = global_tensor<T>(g, address);
  auto made = make_tma_atom<Internal>(op, gmem, smem, tiler, count);
  auto tiles = zipped_divide(made.get_tma_tensor(shape(gmem)), tiler);
  FIELD("gA"); print(tiles);
  auto shared = group_modes<0, rank_v<S>>(make_tensor(make_smem_ptr<T>((void*)0), smem_full));
  for (int cta = 0; cta < int(size(count)); ++cta) {
    auto parts = tma_partition(made, cta, make_layout(count), shared, tiles);
    printf("\003tAgA%d\004", cta); print(get<0>(parts));
    printf("\003tAsA%d\004", cta); print(get<1>(parts).layout());
    offset_of<T>(cta, get<1>(parts));
  }
  if constexpr (is_constant<1, Count>::value) {  // without a CTA and a layout of CTAs: the same types and texts
    auto parts = tma_partition(made, shared, tiles);
    FIELD("default_tAgA"); print(get<0>(parts));
    FIELD("default_tAsA"); print(get<1>(parts).layout());
  }
}

template <class T, class Internal, class Op, class G, class S, class Tiler, class Count>
void tiled_copy(unsigned long long address, Op op, G g, S smem, Tiler tiler, Count count) {
  auto copy = make_tma_copy<Internal>(op, global_tensor<T>(g, address), smem, tiler, count);
  FIELD("tiler_mn"); print(typename decltype(copy)::Tiler_MN{});
  FIELD("layout_tv"); print(typename decltype(copy)::TiledLayout_TV{});
}

template <class T, class Internal, class Op, class G, class S, class Tiler, class Count>
void slices(unsigned long long address, Op op, G g, S smem, Tiler tiler, Count count) {
  auto gmem = global_tensor<T>(g, address);
  auto copy = make_tma_copy<Internal>(op, gmem, smem, tiler, count);
  auto origin = transform_leaf(repeat<rank_v<Tiler>>(Int<0>{}), [](auto) { return 0; });
  auto tile = local_tile(copy.get_tma_tensor(shape(gmem)), tiler, origin);
  auto shared = make_tensor(make_smem_ptr<T>((void*)0), smem);
  for (int cta = 0; cta < int(size(count)); ++cta) {
    auto slice = copy.get_slice(cta);
    printf("\003partition_S%d\004", cta); print(slice.partition_S(tile));
    auto part = slice.partition_D(shared);
    printf("\003partition_D%d\004", cta); print(part.layout());
    offset_of<T>(cta, part);
  }
}

template <class T, class Op, class G, class S, class Tiler, class Cluster>
void two_sm_operand_a(Op op, G g, S smem, Tiler mma_tiler, Cluster cluster_shape) {
  using Mma = SM100_MMA_F16BF16_2x1SM_SS<T, T, float, size<0>(Tiler{}), size<1>(Tiler{}), UMMA::Major::K, UMMA::Major::K>;
  auto mma = make_tiled_mma(Mma{});
  auto gmem = global_tensor<T>(g, 4096);
  auto cluster = tiled_divide(make_layout(cluster_shape), make_tile(typename decltype(mma)::AtomThrID{}));
  auto tile = make_identity_layout(shape(gmem)).compose(remove<1>(mma_tiler));
  auto v_map = cute::layout<1>(mma.thrfrg_A(tile))(_, repeat<2>(_));
  FIELD("gmem"); print(g);
  FIELD("smem"); print(smem);
  FIELD("mma_tiler"); print(mma_tiler);
  FIELD("cluster_shape"); print(cluster_shape);
  FIELD("dtype_bits"); print(int(sizeof_bits_v<T>));
  FIELD("cluster_layout_vmnk"); print(cluster);
  FIELD("g_tile"); print(tile);
  FIELD("cta_v_map"); print(v_map);
  stages<T>(gmem, smem, v_map);
  FIELD("tma_gbasis"); print(cute::detail::construct_tma_gbasis<T>(gmem, get_nonswizzle_portion(smem), v_map));
  auto made = make_tma_atom_A_sm100(op, gmem, smem, mma_tiler, mma, cluster);
  using Atom = decltype(made);
  fields_of_atom(made, gmem);
  FIELD("thr_id"); print(typename Atom::ThrID{});
  FIELD("ref_layout"); print(typename Atom::Traits::RefLayout{});
  auto block = local_tile(made.get_tma_tensor(shape(gmem)), mma_tiler, make_coord(0, 0, _), Step<_1, X, _1>{});
  FIELD("gA"); print(block);
  auto count = [&] {  // a non-multicast load's CTAs share nothing
    if constexpr (is_constant<1, decltype(size<2>(cluster))>::value) return Int<1>{};
    else return size<2>(cluster);
  }();
  auto shared = group_modes<0, 3>(make_tensor(make_smem_ptr<T>((void*)0), smem));
  int index = 0;
  for (int v = 0; v < int(size<0>(cluster)); ++v) {
    for (int n = 0; n < int(size(count)); ++n, ++index) {
      auto fragment = mma.get_slice(v).partition_A(block);
      auto parts = tma_partition(made, n, make_layout(count), shared, group_modes<0, 3>(fragment));
      printf("\003v%d\004%d\003n%d\004%d", index, v, index, n);
      printf("\003tCgA%d\004", index); print(fragment);
      printf("\003tAgA%d\004", index); print(get<0>(parts));
      printf("\003tAsA%d\004", index); print(get<1>(parts).layout());
      offset_of<T>(index, get<1>(parts));
      printf("\003mask%d\004%d", index, int(create_tma_multicast_mask<2>(cluster, make_coord(v, 0, n, 0))));
    }
  }
}

template <class T, class Op, class G, class S, class Tiler, class Count, class... Window>
void im2col(Op op, G g, S smem, Tiler tiler, Count count, std::initializer_list<std::pair<int, int>> samples,
            Window... window) {
  auto gmem = global_tensor<T>(g, 4096);
  auto copy = make_im2col_tma_copy(op, gmem, smem, tiler, count, window...);
  printf("\003encode\004%s", ENCODED.c_str());
  FIELD("gmem"); print(g);
  FIELD("smem"); print(smem);
  FIELD("cta_tiler"); print(tiler);
  FIELD("dtype_bits"); print(int(sizeof_bits_v<T>));
  FIELD("cta_v_map"); print(make_identity_layout(product_each(shape(gmem))).compose(tiler));
  FIELD("num_val_src"); print(int(decltype(copy)::NumValSrc));
  auto coordinates = copy.get_tma_tensor(shape(gmem));
  auto composed = coordinates.layout();
  FIELD("offset"); print(coordinates.data().coord_);
  FIELD("gemm_shape"); print(transform_leaf(composed.layout_a().shape(), [](auto size) { return int(size); }));
  FIELD("gemm_stride"); print(composed.layout_a().stride());
  FIELD("linear"); print(composed.layout_b());
  FIELD("inner_offset"); print(composed.offset());
  int index = 0;
  for (auto [m, k] : samples) {
    printf("\003sample%d\004", index++);
    print(coordinates(m, k));
  }
}
