"""Products through the registers of every distinct triple of thread-value layouts, against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_py.atom import MMA_ATOMS, compress, expand, find_mma_atoms, gemm, make_tiled_mma, mma_atom
from cute_py.atom.element_types import SparseElement
from cute_py.atom.gemm import SparseGroup
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.each import each_of


def distinct() -> list[str]:
    """One operation for every triple (A, B, C) of thread-value layouts, sparse ones apart."""
    found: dict[tuple[Any, ...], str] = {}
    for name, atom in MMA_ATOMS.items():
        complex_parts = atom.a_dtype.name.startswith("complex") and atom.c_dtype.name == "float32"
        if not complex_parts:
            found.setdefault((*map(str, (atom.layouts[x] for x in "ABC")), "E" in atom.types), name)
    return list(found.values())


def pruned(matrix: Any, rule: SparseGroup, rng: Any) -> Any:
    """The matrix with as many zeros in each group as a sparse A needs."""
    runs = matrix.reshape(matrix.shape[0], -1, rule.group // rule.unit, rule.unit)
    dropped = np.argsort(rng.random(runs.shape[:3]), axis=2)[:, :, : (rule.group - rule.kept) // rule.unit]
    np.put_along_axis(runs, dropped[..., None], 0, axis=2)
    return runs.reshape(matrix.shape)


@pytest.mark.parametrize(
    ("tiles", "every"),
    [(1, 10), pytest.param(1, 1, marks=pytest.mark.slow), (2, 48), pytest.param(2, 16, marks=pytest.mark.slow)],
)
def test_integers_are_exact_through_every_layout(tiles: int, every: int) -> None:
    rng = np.random.default_rng(tiles)
    names = distinct()
    assert len(names) > 400
    wrong = []
    for name in names[::every]:
        atom = MMA_ATOMS[name]
        mma = make_tiled_mma(atom)
        m, n, k = (int(e) * tiles for e in atom.shape_mnk)
        high = 2 if atom.b_dtype.name == "uint1" else 4
        a, b = rng.integers(0, high, (m, k)), rng.integers(0, high, (n, k))
        c = rng.integers(0, 9, (m, n))
        if isinstance(atom.a_dtype, SparseElement):
            a = pruned(a, SparseGroup.of(atom), rng)
            stored, places = compress(atom, a)
            found = gemm(mma, stored, b, c, metadata=places)
        else:
            found = gemm(mma, a, b, c)
        expected = (a[:, None, :] ^ b[None]).sum(2) if "XORPOPC" in name else a @ b.T
        if not (found == expected + c).all():
            wrong.append(name)
    assert wrong == []


@each_of(
    ("name", "atoms", "permutation"),
    [
        ("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), (None, None, None)),
        ("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), (32, 32, 16)),
        ("SM80_16x8x8_F32TF32TF32F32_TN", (1, 2, 2), (None, None, None)),
        ("SM70_8x8x4_F32F16F16F32_NT", (2, 2, 1), (None, None, None)),
        ("SM90_64x64x16_F32F16F16_SS", (2, 1, 1), (None, None, None)),
        ("SM100_MMA_F16BF16_2x1SM_SS<half_t,half_t,float,128,64,K,K>", (1, 1, 1), (None, None, None)),
    ],
)
@each_of("extents", [(128, 128, 64), (100, 72, 40), (1, 1, 1)])
def test_tiles_and_tails(name: str, atoms: Any, permutation: Any, extents: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(3)
    m, n, k = extents
    a, b, c = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (n, k)), rng.integers(-4, 5, (m, n))
    mma = make_tiled_mma(name, atoms, permutation)
    assert (gemm(mma, a, b, c) == a @ b.T + c).all()


def test_sums_saturate_or_wrap() -> None:
    a = np.full((16, 32), 127)
    big = np.full((16, 8), 2**31 - 1)
    wrapped = gemm(make_tiled_mma("SM80_16x8x32_S32S8S8S32_TN"), a, a[:8], big)
    kept = gemm(make_tiled_mma("SM80_16x8x32_S32S8S8S32_TN_SATURATE"), a, a[:8], big)
    assert wrapped[0, 0] == 127 * 127 * 32 + 2**31 - 1 - 2**32
    assert kept[0, 0] == 2**31 - 1


def test_scale_factors() -> None:
    rng = np.random.default_rng(5)
    atom = find_mma_atoms(family="sm100_umma", a="float_e4m3_t", m=128, sparse=False)[-1]
    assert atom.sf_vec_size == 32
    m, n, k = map(int, atom.shape_mnk)
    a, b = rng.integers(0, 4, (m, 2 * k)), rng.integers(0, 4, (n, 2 * k))
    sa, sb = 2.0 ** rng.integers(-2, 3, (m, 2)), 2.0 ** rng.integers(-2, 3, (n, 2))
    found = gemm(make_tiled_mma(atom), a, b, scale_a=sa, scale_b=sb)
    assert (found == (a * sa.repeat(32, 1)) @ (b * sb.repeat(32, 1)).T).all()


def test_compress_and_expand_are_inverse() -> None:
    rng = np.random.default_rng(6)
    for name in ("GMMA_64x8x32_F16F16F16_SS", "GMMA_64x8x16_F32TF32TF32_SS_TN", "SM100_MMA_MXF4NVF4_SS_SPARSE"):
        atom = MMA_ATOMS[name]
        a = pruned(rng.integers(1, 9, (8, 64)), SparseGroup.of(atom), rng)
        assert (expand(atom, *compress(atom, a)) == a).all()


@pytest.mark.parametrize(("m", "n", "k"), [(0, 4, 16), (4, 0, 16), (3, 5, 0), (0, 0, 0)])
@pytest.mark.parametrize("name", ["SM80_16x8x16_F32F16F16F32_TN", "SM80_8x8x128_S32U1U1S32_TN_XORPOPC"])
def test_an_empty_sum_is_c(name: str, m: int, n: int, k: int) -> None:
    c = np.arange(m * n).reshape(m, n)
    found = gemm(make_tiled_mma(name, (2, 1, 1)), np.zeros((m, k), int), np.zeros((n, k), int), c)
    assert found.shape == (m, n) and (found == c).all()


SPARSE = mma_atom("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS")


def test_refusals() -> None:
    mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    with pytest.raises(InvalidValueError, match="A has K = 16 and B has K = 8; must be equal"):
        gemm(mma, np.zeros((16, 16)), np.zeros((8, 8)))
    with pytest.raises(InvalidTypeError, match=r"A must be a matrix of numbers, got shape \(16,\) of float64"):
        gemm(mma, np.zeros(16), np.zeros((8, 8)))
    with pytest.raises(InvalidTypeError, match="the MMA takes int8"):
        gemm(make_tiled_mma("SM80_16x8x32_S32S8S8S32_TN"), np.zeros((16, 32)), np.zeros((8, 32)))
    with pytest.raises(InvalidValueError, match="int8 holds only -128 to 127"):
        gemm(make_tiled_mma("SM80_16x8x32_S32S8S8S32_TN"), np.full((16, 32), 128), np.zeros((8, 32), int))
    with pytest.raises(InvalidTypeError, match="needs the metadata"):
        gemm(make_tiled_mma(SPARSE), np.zeros((64, 16)), np.zeros((8, 32)))
    with pytest.raises(
        InvalidTypeError, match="SM80_16x8x16_F32F16F16F32_TN takes a dense A, so gemm takes no metadata"
    ):
        gemm(mma, np.zeros((16, 16)), np.zeros((8, 16)), metadata=np.zeros((16, 8)))
    with pytest.raises(InvalidValueError, match="a group of A has 3 nonzero runs; must have at most 2 of 4"):
        compress(SPARSE, [[1, 1, 1, 0]])
    with pytest.raises(InvalidValueError, match="a metadata index is outside its group of 4"):
        expand(SPARSE, [[1, 1]], [[0, 4]])
    with pytest.raises(InvalidValueError, match="C has the shape"):
        gemm(mma, np.zeros((16, 16)), np.zeros((8, 16)), np.zeros((8, 16)))
    with pytest.raises(InvalidTypeError, match="takes no scale factors"):
        gemm(mma, np.zeros((16, 16)), np.zeros((8, 16)), scale_a=np.ones((16, 1)))
