"""Compute D = A * B + C in numpy, through the registers of a tiled MMA.

Each thread gets its parts of A and B from `partition_A` and `partition_B`. The thread-value layouts of an atom
determine which matrix element each register of its threads contains. The atom multiplies the matrices, and distributes
the sums by C's layout. Nothing else determines the position of an element, so a wrong layout gives wrong products.

    registers of A   A[m, k] at thrfrg_A                    (ThrV, ThrM, ThrK, FrgV, RestM, RestK)
    one atom's A     registers at ALayout(ThrV, FrgV)       (AtomM, AtomK)

Integers are summed as integers, floats as float64, and the sums are rounded once to C's type. A sparse A is passed in
stored form, with metadata that gives the position of every stored element in its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_py.argument_checks import check_elements, expect, expect_integer_array, refuse_mask
from cute_py.atom.element_types import ElementType, SparseElement, cpp_type_text, stored_type
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import mma_atom
from cute_py.atom.tiled_mma import MODES, Operand, TiledMma
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout import Int, Layout, cosize, make_layout, offsets, size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[Any]
else:
    from cute_py.optional_packages import numpy as np

_ONE = Layout(Int(1), Int(0))
_COLUMN = 1 << 24
"""Stride of the second mode, which separates row and column: no operand has more rows."""


@dataclass(frozen=True, slots=True)
class SparseGroup:
    """Storage of a sparse A: of every `group` elements along K, `kept` are stored, in runs of `unit` elements.

    >>> SparseGroup.of(mma_atom("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS"))
    SparseGroup(group=4, kept=2, unit=1)
    """

    group: int
    kept: int
    unit: int

    @classmethod
    def of(cls, atom: MmaAtom) -> SparseGroup:
        """Return the group of a sparse atom: 1 of 2 for tf32; 4 of 8, in pairs, for packed fp4; otherwise 2 of 4.

        Raises:
            InvalidTypeError: the atom takes a dense A.
        """
        element = atom.a_dtype
        if not isinstance(element, SparseElement):
            raise InvalidTypeError(f"{atom.name} takes a dense A, so A can't be compressed")
        if element.ratio == 4:
            return cls(8, 4, 2)
        return cls(2, 1, 1) if element.stored.name == "tfloat32" else cls(4, 2, 1)


def compress(atom: str | MmaAtom, a: ArrayLike) -> tuple[Array, Array]:
    """Compress a matrix with enough zeros to the stored form of a sparse MMA.

    Args:
        atom: a sparse MMA atom.
        a: (M, K); at most half of the elements of each group are nonzero.
    Returns:
        (stored, metadata): the stored elements (M, K/2), and the position of each unit in its group (M, K/2/unit).
    Raises:
        InvalidValueError: a group has too many nonzero elements, or K is not a multiple of the group.

    >>> stored, places = compress("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS", [[0, 7, 0, 5, 3, 0, 0, 0]])
    >>> stored.tolist(), places.tolist()
    ([[7, 5, 3, 0]], [[1, 3, 0, 1]])
    """
    rule = SparseGroup.of(mma_atom(atom))
    matrix = _matrix(a, "A")
    rows, depth = matrix.shape
    if depth % rule.group:
        raise InvalidValueError(
            f"K is {depth}; must be a multiple of {rule.group}, the elements in a group of the sparse A"
        )
    runs = matrix.reshape(rows, depth // rule.group, rule.group // rule.unit, rule.unit)
    used = (runs != 0).any(axis=3)
    keep = rule.kept // rule.unit
    most = int(used.sum(axis=2).max(initial=0))
    if most > keep:
        row, group = np.argwhere(used.sum(axis=2) > keep)[0]
        text = f"a group of A has {most} nonzero runs; must have at most {keep} of {rule.group // rule.unit}"
        facts = {"row": int(row), "group": f"{int(group)}, from element {int(group) * rule.group}"}
        raise InvalidValueError(text, facts)
    places = np.sort(np.argsort(~used, axis=2, kind="stable")[:, :, :keep], axis=2)
    stored = np.take_along_axis(runs, places[..., None], axis=2)
    return stored.reshape(rows, -1), places.reshape(rows, -1)


def expand(atom: str | MmaAtom, stored: ArrayLike, metadata: ArrayLike) -> Array:
    """Expand the stored elements of a sparse MMA to the matrix (M, K): the inverse of `compress`.

    Raises:
        InvalidValueError: the metadata has another shape, or a position is outside its group.

    >>> expand("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS", [[7, 5]], [[1, 3]]).tolist()
    [[0, 7, 0, 5]]
    """
    rule = SparseGroup.of(mma_atom(atom))
    matrix, places = (
        _matrix(stored, "the stored A"),
        _matrix(expect_integer_array(metadata, "metadata"), "the metadata"),
    )
    rows, kept = matrix.shape
    keep, runs = rule.kept // rule.unit, rule.group // rule.unit
    if places.shape != (rows, kept // rule.unit) or kept % rule.kept:
        raise InvalidValueError(
            f"metadata has the shape {places.shape}; must be {(rows, kept // rule.unit)}, one index for every "
            f"{rule.unit} stored elements",
            {"stored A": matrix.shape},
        )
    if places.size and (places.min() < 0 or places.max() >= runs):
        raise InvalidValueError(f"a metadata index is outside its group of {runs}", {"largest": int(places.max())})
    whole = np.zeros((rows, kept // rule.kept, runs, rule.unit), matrix.dtype)
    index = places.astype(np.int64).reshape(rows, -1, keep)
    np.put_along_axis(whole, index[..., None], matrix.reshape(rows, -1, keep, rule.unit), axis=2)
    return whole.reshape(rows, -1)


def _matrix(value: ArrayLike, what: str) -> Array:
    refuse_mask(value, what)
    try:
        found = np.asarray(value)
    except Exception:  # rows of different lengths, or a foreign object that fails or has no end
        raise InvalidTypeError(f"{what} must be a matrix, got {given(value)}") from None
    check_elements(found.size, what)
    if found.ndim != 2 or found.dtype.kind in "OSUMm":
        raise InvalidTypeError(f"{what} must be a matrix of numbers, got shape {found.shape} of {found.dtype}")
    return found


def _checked(matrix: Array, element: ElementType, what: str) -> Array:
    """Round a matrix to the operand's type, and convert it to the type that is used for sums.

    Raises:
        InvalidTypeError: the elements are of another kind; InvalidValueError: an integer is out of range.
    """
    dtype = stored_type(element)
    if matrix.dtype.kind == "c" and dtype.kind != "complex":
        raise InvalidTypeError(f"{what} is complex, but the MMA takes {cpp_type_text(dtype)}")
    if dtype.kind in ("int", "uint"):
        if matrix.dtype.kind not in "iub":
            raise InvalidTypeError(f"{what} is {matrix.dtype}, but the MMA takes {cpp_type_text(dtype)}")
        half = 2 ** (dtype.bits - 1)
        low, high = (0, 2 * half - 1) if dtype.kind == "uint" else (-half, half - 1)
        if matrix.size and (matrix.min() < low or matrix.max() > high):
            raise InvalidValueError(
                f"{what} has elements from {matrix.min()} to {matrix.max()}, but {cpp_type_text(dtype)} holds "
                f"only {low} to {high}"
            )
        return matrix.astype(np.int64)
    if dtype.kind == "complex":
        return matrix.astype(np.complex128)
    rounded: Array = matrix.astype(dtype.numpy)
    return rounded.astype(np.float64)


def _places(mma: TiledMma, operand: Operand, rows: int, columns: int) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the row and column of every register of an operand, and the extents (ThrV,Thr,Thr,FrgV,Rest,Rest)."""
    first, second = MODES[operand]
    exact = rows % int(mma.tile_size(first)) == 0 and columns % int(mma.tile_size(second)) == 0
    extent = (Int(rows), Int(columns)) if exact else (rows, columns)
    divided = mma.thrfrg(operand, Layout(extent, (Int(1), Int(_COLUMN))))
    threads, values = divided[0], divided[1]
    if cosize(threads[0]) == 1:  # every thread has the whole operand, as in shared memory: one thread suffices
        threads = make_layout(_ONE, threads[1])
        divided = make_layout(threads, values)
    parts = [part for held in (threads, values) for part in (held[0], held[1][0], held[1][1])]
    extents = tuple([int(size(part)) for part in parts])
    index = np.asarray(offsets(divided)).reshape(extents, order="F")
    return index % _COLUMN, index // _COLUMN, extents


def _atom_matrix(mma: TiledMma, operand: Operand, matrix: Array) -> Array:
    """Return the operand, assembled from its atoms: ((AtomM, ThrM, RestM), (AtomK, ThrK, RestK))."""
    row, column, extents = _places(mma, operand, *matrix.shape)
    inside = (row < matrix.shape[0]) & (column < matrix.shape[1])
    registers = np.where(inside, matrix[np.where(inside, row, 0), np.where(inside, column, 0)], 0)
    first, second = MODES[operand]
    shape = mma.atom.shape_mnk
    where = np.asarray(offsets(mma.atom.layouts[operand]))[: extents[0]]
    atom = np.zeros((int(shape[first] * shape[second]), *extents[1:3], *extents[4:]), registers.dtype)
    atom[where] = np.moveaxis(registers, 3, 1)
    whole = atom.reshape(int(shape[first]), int(shape[second]), *extents[1:3], *extents[4:], order="F")
    m, k, t1, t2, r1, r2 = whole.shape
    found: Array = whole.transpose(0, 2, 4, 1, 3, 5).reshape(m * t1 * r1, k * t2 * r2)
    return found


def _sums_of_bits(atom: MmaAtom, a: Array, b: Array) -> Array:
    """Return the products of one-bit matrices: the number of set bits of a AND b, or of a XOR b."""
    both: Array = a @ b.T
    if "XORPOPC" not in atom.name:
        return both
    either: Array = a.sum(axis=1)[:, None] + b.sum(axis=1)[None, :] - 2 * both
    return either


def gemm(
    tiled_mma: TiledMma,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    metadata: ArrayLike | None = None,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> Array:
    """Compute D = A * B + C as a tiled MMA does: every element passes through a thread's registers.

    Args:
        tiled_mma: the MMA; its tile need not divide the operands. Elements beyond them count as 0.
        a: (M, K); for a sparse MMA, the stored elements (M, K/2). b: (N, K). c: (M, N), default zeros; it is not
            changed.
        metadata: the metadata of a sparse A, as `compress` returns it.
        scale_a, scale_b: scale factors (M, K/V) and (N, K/V) of a block-scaled MMA, where V is its `sf_vec_size`.
    Returns:
        D of shape (M, N), with C's element type. Sums are rounded once, to that type.
    Raises:
        InvalidTypeError, InvalidValueError: an operand is not a matrix, extents or types do not fit, or metadata is
            missing. Complex operands with real sums are refused too, because tcgen05 stores the real and imaginary
            parts separately.

    >>> import numpy as np
    >>> from cute_py.atom.tiled_mma import make_tiled_mma
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 1, 1))
    >>> a, b = np.arange(32 * 16).reshape(32, 16) % 7, np.arange(8 * 16).reshape(8, 16) % 5
    >>> bool((gemm(mma, a, b) == a @ b.T).all())
    True
    """
    mma = expect(tiled_mma, TiledMma, "the tiled MMA")
    atom = mma.atom
    sparse = isinstance(atom.a_dtype, SparseElement)
    if sparse != (metadata is not None):
        text = (
            f"{atom.name} takes a sparse A, so gemm needs the metadata"
            if sparse
            else (f"{atom.name} takes a dense A, so gemm takes no metadata")
        )
        raise InvalidTypeError(text, hint="compress(atom, A) returns the stored A and its metadata" if sparse else None)
    first = _matrix(a, "A")
    first = expand(atom, first, metadata) if metadata is not None else first
    second = _matrix(b, "B")
    (m, k), (n, depth) = first.shape, second.shape
    if k != depth:
        raise InvalidValueError(f"A has K = {k} and B has K = {depth}; must be equal", {"A": (m, k), "B": (n, depth)})
    left = _scaled(_checked(first, _compute_type(atom, "A"), "A"), scale_a, atom, "scale_a")
    right = _scaled(_checked(second, _compute_type(atom, "B"), "B"), scale_b, atom, "scale_b")
    x, y = _atom_matrix(mma, "A", _not_empty(left)), _atom_matrix(mma, "B", _not_empty(right))
    bits = isinstance(atom.a_dtype, DType) and atom.a_dtype.name == "uint1"
    sums = _sums_of_bits(atom, x, y) if bits else x @ y.T
    d = atom.d_dtype
    if not isinstance(d, DType) or (sums.dtype.kind == "c" and d.kind != "complex"):
        raise InvalidTypeError(
            f"gemm does not support {atom.name}, which does not multiply and add", {"D": cpp_type_text(d)}
        )
    start = np.zeros((m, n), sums.dtype) if c is None else _start(_matrix(c, "C"), d, (m, n)).astype(sums.dtype)
    return _rounded(start + _collected(mma, sums, max(m, 1), max(n, 1))[:m, :n], d, "_SATURATE" in atom.name)


def _not_empty(matrix: Array) -> Array:
    """Return the matrix, with a row or column of zeros if it has none: an empty sum is 0."""
    return matrix if matrix.size else np.zeros((max(matrix.shape[0], 1), max(matrix.shape[1], 1)), matrix.dtype)


def _compute_type(atom: MmaAtom, operand: str) -> ElementType:
    """Return the type of an operand's values. SM120 stores narrow floats in containers of 8 or 4 bits."""
    narrow: ElementType | None = atom.template_args.get(f"{operand.lower()}_type")
    return narrow or atom.types[operand]


def _scaled(matrix: Array, factors: ArrayLike | None, atom: MmaAtom, what: str) -> Array:
    if factors is None:
        return matrix
    if atom.sf_vec_size is None:
        raise InvalidTypeError(f"{atom.name} takes no scale factors", {"given": what})
    scale = _matrix(factors, what).astype(np.float64)
    expected = (matrix.shape[0], -(-matrix.shape[1] // atom.sf_vec_size))
    if scale.shape != expected:
        raise InvalidValueError(
            f"{what} has the shape {scale.shape}; must be {expected}, one factor for each {atom.sf_vec_size} "
            "elements of K"
        )
    return matrix * np.repeat(scale, atom.sf_vec_size, axis=1)[:, : matrix.shape[1]]


def _start(c: Array, dtype: DType, shape: tuple[int, int]) -> Array:
    if c.shape != shape:
        raise InvalidValueError(f"C has the shape {c.shape}; must be {shape}")
    return _checked(c, dtype, "C")


def _collected(mma: TiledMma, sums: Array, m: int, n: int) -> Array:
    """Move the sums of the atoms to the threads' registers by C's layout, and from there to the matrix."""
    row, column, extents = _places(mma, "C", m, n)
    _, t1, t2, _, r1, r2 = extents
    shape = mma.atom.shape_mnk
    parts = sums.reshape(int(shape[0]), t1, r1, int(shape[1]), t2, r2).transpose(0, 3, 1, 4, 2, 5)
    atom = parts.reshape(int(shape[0] * shape[1]), t1, t2, r1, r2, order="F")
    where = np.asarray(offsets(mma.atom.layouts["C"]))[: extents[0]]
    registers = np.moveaxis(atom[where], 1, 3)
    inside = (row < m) & (column < n)
    found = np.zeros((m, n), sums.dtype)
    found[row[inside], column[inside]] = registers[inside]
    return found


def _rounded(sums: Array, dtype: DType, saturate: bool) -> Array:
    if dtype.kind == "int" and dtype.bits == 32:
        if saturate:
            sums = np.clip(sums, -(2**31), 2**31 - 1)
        return sums.astype(np.int64).astype(np.int32)
    with np.errstate(over="ignore"):
        return sums.astype(dtype.numpy)
