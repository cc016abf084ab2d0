"""Where tcgen05.mma expects an operand in tensor memory: lanes, columns, and how tiles lie beside each other.

Tensor memory has 128 lanes and 512 columns of 32 bits. An M of 128 takes all lanes; of 64 it takes half of each warp's
32, and the next tile the other half (Interleaved), or leaves it free (NonInterleaved). With two CTAs each of them has
half of M, and of 64 rows both halves of N lie one above the other (2x2).

The layouts are first made with lanes of stride 1 and columns of stride 128, then counted in addresses of elements.
Source: cute/atom/mma_traits_sm100_frag.hpp; cute/arch/tmem_allocator_sm100.hpp.
"""

from __future__ import annotations

from typing import Any, Final

from cute_py.atom.element_types import ElementType, SparseElement
from cute_py.atom.mma_atom import FragmentType, static_layout
from cute_py.errors import InvalidTypeError, StaticAssertError
from cute_py.layout import Int, Layout, composition, depth, make_layout, rank, size, take, tiled_product, upcast
from cute_py.tensor import Tensor, make_tensor, make_tmem_ptr

LANES: Final = 128
CAPACITY_BITS: Final = 128 * 512 * 32


def lane_stride(bits: int) -> int:
    """Addresses of elements from one lane to the next: 2**16 for 32 bits, twice that for each halving.

    >>> lane_stride(32), lane_stride(16)
    (65536, 131072)
    """
    return (1 << 16) * 32 // bits if bits <= 32 else (1 << 16) >> ((bits // 32).bit_length() - 1)


def tensor_memory_fragment(kind: FragmentType, shape: Any) -> Tensor:
    """A tensor of tensor memory, address 0, for a partition ((M,N), tiles of M, tiles of N, ...).

    Args:
        kind: C++'s fragment type: `tmem_frg`, `tmem_e_frg` or `tmem_sf_frg`.
        shape: the partition's, static.
    Raises:
        StaticAssertError: more than there is, or a shape that the instruction has not; the text is C++'s.

    >>> from cute_py.atom.mma_atoms import mma_atom
    >>> kind = mma_atom("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,K,K>").fragment_type("C")
    >>> print(tensor_memory_fragment(kind, ((Int(128), Int(64)), Int(1), Int(2))))
    tmem_[32b](0x0000.0000) o ((_128,_64),_1,_2):((_65536,_1),_0,_64)
    """
    if not isinstance(shape, tuple) or len(shape) < 2:
        raise InvalidTypeError(f"tensor memory is made for a partition ((M,N), ...), got the shape {shape}")
    if rank(shape[0]) != 2:
        raise StaticAssertError("Expected post-partitioned shape ((M_MMA,N_MMA),...).", {"shape": shape})
    if kind.name == "tmem_frg":
        return _accumulator(kind, shape)
    if kind.name == "tmem_e_frg":
        return _metadata(kind.parameters[0], shape)
    return _scale_factors(kind, shape)


def _tiles(shape: Any, step: int = 1) -> Layout:
    """The modes behind the first, compact; with `step` tiles between neighbours."""
    rest = take(shape, 1, int(rank(shape)))
    layout = Layout(rest)
    if step == 1:
        return layout
    return Layout(rest, _scaled(layout.stride, step))


def _scaled(stride: Any, step: int) -> Any:
    return tuple(_scaled(d, step) for d in stride) if isinstance(stride, tuple) else stride * Int(step)


def _counted(stored: ElementType, columns: int, tile: Layout, tiles: Layout) -> Tensor:
    """The tile and its copies, in addresses of elements."""
    restride = static_layout((LANES, 16384), (lane_stride(stored.bits), columns))
    engine = make_tmem_ptr(0, stored)
    return make_tensor(engine, composition(restride, tiled_product(tile, tiles)))


def _accumulator(kind: FragmentType, shape: Any) -> Tensor:
    value, storage, ctas, mode = kind.parameters
    _refuse(
        int(size(shape)) * storage.bits > CAPACITY_BITS,
        "Requesting more TMEM than is available.",
        {"shape": shape, "bits": int(size(shape)) * storage.bits, "available": CAPACITY_BITS},
    )
    m, n = int(size(shape[0][0])), int(size(shape[0][1]))
    step = 1
    if ctas == 1:
        _refuse(m not in (64, 128), "UMMA_1SM M-mode size should be 64 or 128.", {"M": m})
        tile = static_layout((LANES, n), (1, 128)) if m == 128 else static_layout(((16, 4), n), ((1, 32), 128))
        step = 2 if m == 64 and mode == "NonInterleaved" else 1
    else:
        _refuse(m not in (32, 64, 128), "UMMA_2SM M-mode size should be 32 or 64 or 128.", {"M": m})
        _refuse(
            m == 32 and mode != "Interleaved",
            "Only TmemAllocMode::Interleaved is supported for UMMA_2SM M_MMA=32",
            {"mode": mode},
        )
        if m == 128 or mode == "Duplicated":
            tile = static_layout((LANES, n), (1, 128))
        else:
            beside = LANES // m
            tile = static_layout((m, (n // beside, beside)), (1, (128, m)))
    return _counted(value, max(1, storage.bits // value.bits), tile, _tiles(shape, step))


def _refuse(wrong: bool, condition: str, facts: dict[str, object]) -> None:
    if wrong:
        raise StaticAssertError(condition, facts)


def _metadata(value: ElementType, shape: Any) -> Tensor:
    """Metadata of a sparse A: 2 bits for each stored element, in the lanes of its rows."""
    m, k = int(size(shape[0][0])), int(size(shape[0][1]))
    _refuse(m != 128, "Only 128 implemented right now.", {"M": m})
    expected = {32: 16, 16: 32, 8: 64, 4: 128}[value.bits]
    _refuse(k != expected, f"N_MMA == {expected}", {"K": k})
    restride = static_layout((LANES, 16384), (1 << 21, 1))
    ratio = {32: 4, 4: 16}.get(value.bits, 8)
    if value.bits == 32:
        restride = upcast(restride, 2)
        tile = static_layout(((8, 2, 8), (8, 2)), ((1, 1024, 16), (128, 8)))
    elif value.bits == 16:
        tile = static_layout(((8, 2, 8), (16, 2)), ((1, 2048, 16), (128, 8)))
    else:
        tile = static_layout((128, k), (1, 128))
        if value.bits == 4:
            restride = static_layout((LANES, 32768), (1 << 22, 1))
    layout = composition(restride, tiled_product(tile, _tiles(shape)))
    stored = SparseElement(ratio, make_tmem_ptr(0, "uint8").dtype)
    return make_tensor(make_tmem_ptr(0, stored.stored), layout)


def _scale_factors(kind: FragmentType, shape: Any) -> Tensor:
    """Scale factors: 32 lanes hold those of 32 rows, repeated for each of the four warps."""
    value, _, ctas, is_a, mode = kind.parameters
    _refuse(len(shape) < 3, "Expected an MMA partitioned tensor", {"shape": shape})
    inner = shape[0][1]
    _refuse(depth(inner) == 0 or len(inner) != 2, "Expected an MMA-SF partitioned tensor", {"shape": shape})
    rows, vector, factors = int(size(shape[0][0])), int(size(inner[0])), int(size(inner[1]))
    if is_a == "true" or mode == "ScaleFactorDuplicated4by1":
        lanes: tuple[Any, Any] = (((32, rows // 32), 4), ((1, 512), 32))
    else:
        _refuse(ctas != 2, "Should be 2x2 Datapath", {"CTAs": ctas})
        lanes = (((32, rows // 64), 2, 2), ((1, 512), 64, 32))
    tile = static_layout((lanes[0], (vector, factors)), (lanes[1], (0, 128)))
    return _counted(value, 1, tile, make_layout(_tiles(shape).shape))
