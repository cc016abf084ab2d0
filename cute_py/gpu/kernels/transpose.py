"""The transposing copy kernel, for a source and a destination with different innermost modes.

A block loads a tile in boxes of 128-byte rows with the 128B swizzle. Its threads transpose the tile in shared memory,
and the block stores the transposed tile in boxes of the same kind. The swizzle puts the eight rows that a matrix
instruction reads into eight different groups of banks (with paired lines, two rows share a group).

Elements of 2 bytes use ldmatrix (transposing) and stmatrix. Elements of other widths move in blocks of E x E elements
with E = 16 / width: a thread reads E chunks of 16 bytes, transposes them in registers and writes E chunks. The eight
threads of a phase process blocks along a diagonal, so that their 16-byte chunks are in eight different groups of banks
for both reads and writes.

Rows of a box have 128 bytes. A tile of two boxes moves its left half first and its right half later, and therefore
accesses every row of memory twice. `paired` maps have an additional mode: whole rows then move in one instruction with
the same swizzle, and the lines of a row are adjacent in shared memory (2 % faster for 2-byte elements; measured on
NVIDIA H200).

Blocks take the tiles along the rows of the destination, so that they write in their starting order. Large tensors are
copied 6 % faster in this order. If tiles share lines of the source, but are far apart in this order, `band` of them run
one after the other.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import BARRIER_BYTES
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import MAX_SHARED_BYTES, KernelSource, make_kernel
from cute_py.tma.descriptor.limits import bounds

ROW_BYTES: Final = 128
"""Bytes of a row of a box: the span of the 128B swizzle."""

TILES: Final[dict[int, tuple[int, int]]] = {1: (128, 128), 2: (128, 128), 4: (64, 64), 8: (64, 64)}
"""Element bytes -> rows and columns of a source tile, in elements. They are multiples of a box row and of eight
chunks."""

STAYING_TILES: Final = {**TILES, 2: (64, 64)}
"""Tile sizes of persistent blocks. With 2-byte elements, 13 small tiles on an SM are faster than 3 large ones between
two devices (0.78 ms instead of 0.87 ms for 268 MB each way with 16 SMs; two NVIDIA H200, driver 580.159.04)."""

RESERVED_BYTES: Final = 1024
"""Bytes of shared memory that the system reserves in each block. CUDA programming guide, compute capability 9.0."""

_LINES: Final = r"""
// Lines of 128 bytes: of one row side by side (paired), or of one box below each other.
__device__ __forceinline__ u32 load_line(u32 row, u32 box) {
  return PAIRED ? row * (TILE_WIDTH / BOX_ELEMENTS) + box : box * TILE_HEIGHT + row;
}
__device__ __forceinline__ u32 store_line(u32 column, u32 box) {
  return PAIRED ? column * (TILE_HEIGHT / BOX_ELEMENTS) + box : box * TILE_WIDTH + column;
}
__device__ __forceinline__ u32 chunk_offset(u32 line, u32 chunk) {
  return line * ROW_BYTES + (chunk ^ (line % 8)) * 16;
}
"""

_MATRIX: Final = r"""
constexpr u32 GROUPS = (TILE_HEIGHT / 8) * (TILE_WIDTH / 8) / 4 / (THREADS / 32);
template <bool WRITE> __device__ __forceinline__ void move_matrices(u32 from, u32 to, u32 (&held)[GROUPS][4]) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane % 8, part = lane / 8;
#pragma unroll
  for (u32 i = 0; i < GROUPS; ++i) {
    // Four 8x8 matrices: two blocks along the rows, two along the columns.
    const u32 group = i * (THREADS / 32) + warp;
    const u32 block_row = group % (TILE_HEIGHT / 16) * 2 + part % 2;
    const u32 block_column = group / (TILE_HEIGHT / 16) * 2 + part / 2;
    const u32 read = from + chunk_offset(load_line(block_row * 8 + row, block_column / CHUNKS), block_column % CHUNKS);
    const u32 written = to + chunk_offset(store_line(block_column * 8 + row, block_row / CHUNKS), block_row % CHUNKS);
    if (WRITE) {
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                   ::"r"(written), "r"(held[i][0]), "r"(held[i][1]), "r"(held[i][2]), "r"(held[i][3]) : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(held[i][0]), "=r"(held[i][1]), "=r"(held[i][2]), "=r"(held[i][3]) : "r"(read) : "memory");
    }
  }
}
__device__ __forceinline__ void transpose_tile(u32 from, u32 to) {
  u32 held[GROUPS][4];
  move_matrices<false>(from, to, held);
  if (IN_PLACE) __syncthreads();
  move_matrices<true>(from, to, held);
}
"""

_CHUNKS: Final = r"""
union Chunk { uint4 whole; ELEMENT part[PER_CHUNK]; };
__device__ __forceinline__ uint4 read_chunk(u32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
  return v;
}
__device__ __forceinline__ void write_chunk(u32 address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
               ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ void transpose_tile(u32 from, u32 to) {
  constexpr u32 ACROSS = TILE_WIDTH / PER_CHUNK, DOWN = TILE_HEIGHT / PER_CHUNK;  // blocks
  for (u32 i = threadIdx.x; i < ACROSS * DOWN; i += THREADS) {
    const u32 near = i % 8, far = i / 8 % 8, group = i / 64;
    const u32 block_column = group % (ACROSS / 8) * 8 + near, block_row = group / (ACROSS / 8) * 8 + (near ^ far);
    Chunk in[PER_CHUNK], out[PER_CHUNK];
#pragma unroll
    for (u32 k = 0; k < PER_CHUNK; ++k) {
      const u32 line = load_line(block_row * PER_CHUNK + k, block_column / CHUNKS);
      in[k].whole = read_chunk(from + chunk_offset(line, block_column % CHUNKS));
    }
#pragma unroll
    for (u32 k = 0; k < PER_CHUNK; ++k)
#pragma unroll
      for (u32 j = 0; j < PER_CHUNK; ++j) out[j].part[k] = in[k].part[j];
#pragma unroll
    for (u32 k = 0; k < PER_CHUNK; ++k) {
      const u32 line = store_line(block_column * PER_CHUNK + k, block_row / CHUNKS);
      write_chunk(to + chunk_offset(line, block_row % CHUNKS), out[k].whole);
    }
  }
}
"""

_BODY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_transposed(
    const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap destination, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  const u32 from = shared_address(stages), to = from + (IN_PLACE ? 0 : TILE_BYTES), barrier = to + TILE_BYTES;
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_done();
    await_previous();
    allow_next();
  }
  u32 number = blockIdx.x, phase = 0;
  do {
    const u32 tile = number %% (TILE_ROWS * TILE_COLUMNS);
    const u32 band = tile / (TILE_ROWS * BAND), inside = tile %% (TILE_ROWS * BAND);
    // The last band may be narrower than the others.
    const u32 width = (band + 1) * BAND <= TILE_COLUMNS ? BAND : TILE_COLUMNS %% BAND;
    const u32 tile_row = inside / width, tile_column = band * BAND + inside %% width;
    const int batch = (int)(number / (TILE_ROWS * TILE_COLUMNS));
    const int row = (int)(tile_row * TILE_HEIGHT), column = (int)(tile_column * TILE_WIDTH);
    if (threadIdx.x == 0) {
      if (IN_PLACE) wait_group_read<0>();
%(loads)s
      if (number == blockIdx.x) prefetch_map(&destination);
      // The barrier completes only after the previous tile has also left.
      wait_group_read<0>();
      expect_bytes(barrier, TILE_BYTES);
    }
    __syncthreads();
    if (!wait(barrier, phase, 0, TILE_BYTES, record)) return;
    transpose_tile(from, to);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
%(stores)s
      commit_group();
    }
    number += BLOCKS;
    phase ^= 1;
  } while (STAY && number < TILES);
  if (threadIdx.x == 0) wait_group_read<0>();
}
"""

_BOXES: Final = (
    r"""#pragma unroll
      for (u32 b = 0; b < TILE_WIDTH / BOX_ELEMENTS; ++b)
        %(load)s(from + b * LOAD_BYTES, &source, barrier, column + (int)(b * BOX_ELEMENTS), row%(batch)s);""",
    r"""#pragma unroll
      for (u32 b = 0; b < TILE_HEIGHT / BOX_ELEMENTS; ++b)
        if (b == 0 || row + b * BOX_ELEMENTS < ROWS)
          %(store)s(to + b * STORE_BYTES, &destination, row + (int)(b * BOX_ELEMENTS), column%(batch)s);""",
)
_PAIRED: Final = (
    "      %(load)s(from, &source, barrier, 0, column / (int)BOX_ELEMENTS, row%(batch)s);",
    "      %(store)s(to, &destination, 0, row / (int)BOX_ELEMENTS, column%(batch)s);",
)

_ELEMENT: Final = {1: "u8", 4: "u32", 8: "u64"}


def fitting_blocks(tile: tuple[int, int], element_bytes: int) -> int:
    """Return the number of blocks with such a tile whose shared memory fits on one SM.

    >>> fitting_blocks((128, 128), 2), fitting_blocks((64, 64), 2)
    (3, 13)
    """
    height, across = tile
    shared = 2 * height * across * element_bytes + BARRIER_BYTES
    return (MAX_SHARED_BYTES + RESERVED_BYTES) // (shared + RESERVED_BYTES)


def copy_transposed(
    rows: int,
    columns: int,
    element_bytes: int,
    *,
    batches: int = 1,
    threads: int | None = None,
    tile: tuple[int, int] | None = None,
    band: int = 1,
    paired: bool = False,
    in_place: bool = False,
    pad_shared: int = 0,
    stay: int | None = None,
    load_hint: str | None = None,
    store_hint: str | None = None,
) -> KernelSource:
    """Make the kernel for destination[b][c][r] = source[b][r][c], with one tile per block or with persistent blocks.

    Args:
        rows, columns: size of one source matrix, in elements; columns are contiguous in the source.
        element_bytes: 1, 2, 4 or 8.
        batches: number of matrices; with more than one, maps have rank 3.
        tile: rows and columns of a source tile, in elements; by default from `TILES`.
        band: number of tile columns that are walked together: tiles run across a band first, then down.
        paired: whether the maps have an additional mode, (128-byte lines, lines of a row, rows), so that a row of a
            tile moves in one instruction; rows and columns must then be multiples of a line.
        in_place: overwrite the tile with the transposed tile, through registers (2-byte elements).
        pad_shared: additional shared memory in bytes, so that fewer blocks fit on an SM.
        stay: number of persistent blocks, which take the tiles in turn; None for one tile per block.
        threads: threads per block, a multiple of 32. The default for 2-byte elements is one thread per 32 elements (512
            for 128 x 128, the fastest measured value), otherwise one thread per block of E x E elements, at most 256,
            where E = 16 / element_bytes.
    Returns:
        the kernel. Its maps have boxes of 128-byte rows with the 128B swizzle. The source's boxes have as many rows as
            a source tile has rows, and the destination's boxes as many rows as it has columns. With `paired`, the
            second mode of a box covers all lines of a tile's row. The number of blocks is `stay`, or the number of
            source tiles x batches.
    Raises:
        InvalidValueError: the element width is not in `TILES`, or boxes or blocks do not divide the tile.
    """
    if element_bytes not in TILES:
        raise InvalidValueError(
            f"element = {element_bytes} bytes; a transposing copy takes {', '.join(map(str, TILES))}"
        )
    height, across = tile or TILES[element_bytes]
    unit = 8 * max(16 // element_bytes, ROW_BYTES // element_bytes // 8)
    if height % unit or across % unit or max(height, across) > bounds("box")[1] or band < 1:
        raise InvalidValueError(
            f"tile = {height} x {across} elements, band = {band}; edges must be multiples of {unit} and at most 256"
        )
    blocks = height * across * element_bytes**2 // 256
    threads = threads or (height * across // 32 if element_bytes == 2 else min(256, blocks))
    box_elements = ROW_BYTES // element_bytes
    if paired and (rows % box_elements or columns % box_elements):
        raise InvalidValueError(f"{rows} x {columns} elements; paired lines need multiples of {box_elements}")
    rank = 2 + (batches > 1) + paired
    load, store = CopyOp("load", rank, hint=load_hint), CopyOp("store", rank, hint=store_hint)
    tiles = -(-rows // height) * -(-columns // across) * batches
    constants = {
        "THREADS": threads,
        "TILES": tiles,
        "BLOCKS": stay or tiles,
        "STAY": int(stay is not None),
        "ROWS": rows,
        "COLUMNS": columns,
        "TILE_HEIGHT": height,
        "TILE_WIDTH": across,
        "TILE_ROWS": -(-rows // height),
        "TILE_COLUMNS": -(-columns // across),
        "BAND": min(band, -(-columns // across)),
        "ROW_BYTES": ROW_BYTES,
        "CHUNKS": ROW_BYTES // 16,
        "BOX_ELEMENTS": box_elements,
        "LOAD_BYTES": ROW_BYTES * height,
        "STORE_BYTES": ROW_BYTES * across,
        "TILE_BYTES": height * across * element_bytes,
        "PER_CHUNK": 16 // element_bytes,
        "PAIRED": int(paired),
        "IN_PLACE": int(in_place and element_bytes == 2),
    }
    middle = _MATRIX if element_bytes == 2 else f"typedef {_ELEMENT[element_bytes]} ELEMENT;\n{_CHUNKS.strip()}\n"
    names = {"load": load.name, "store": store.name, "batch": ", batch" if batches > 1 else ""}
    moves = [part % names for part in (_PAIRED if paired else _BOXES)]
    return make_kernel(
        "copy_transposed",
        _LINES + middle + _BODY % {"loads": moves[0], "stores": moves[1]},
        constants,
        (2 - constants["IN_PLACE"]) * constants["TILE_BYTES"] + BARRIER_BYTES + pad_shared,
        ("source", "destination", "record"),
        header=copy_functions(load, store),
        facts={"batches": batches},
        loads=1 if paired else constants["TILE_BYTES"] // constants["LOAD_BYTES"],
        awaits=True,
    )
