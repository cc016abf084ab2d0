"""What both backends ask of the arrays of a copy, and how its result is compared.

What `copy` and `execute` give back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cute_py.argument_checks import expect, expect_fields, expect_integer, expect_integer_array
from cute_py.errors import InvalidValueError
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, Tree
from cute_py.layout.modes import unflatten
from cute_py.layout.trees import leaves
from cute_py.tensor.pointers import make_gmem_ptr
from cute_py.tensor.tensor import make_tensor
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.tiles import known
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.emulator.memory import as_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.atom.atom import TmaAtom


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no one equality
class CopyResult:
    """What a copy did.

    Attributes:
        destination: the array that was written; equal: whether it has the source's elements (None:
            not compared, as a copy on a stream of the caller's).
        tiles, instructions: how many loads (and as many stores) ran; transaction_bytes: what a barrier expects a tile.
        bytes: bytes of the tensor; seconds: time of the copy itself.
        warnings: what was legal and may surprise; difference: the first element that differs, in words.
    """

    destination: Any
    equal: bool | None
    tiles: int
    instructions: int
    transaction_bytes: int
    bytes: int
    seconds: float
    backend: str
    warnings: tuple[str, ...] = ()
    difference: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no one equality
class TileResult:
    """One tile in shared memory: `smem` (uint8 bytes as the hardware leaves them), and how they came there."""

    smem: NDArray[Any]
    coords: NDArray[Any]
    smem_offsets: NDArray[Any]
    transaction_bytes: int
    backend: str

    def __post_init__(self) -> None:
        as_bytes(self.smem, "smem", writable=False)
        for name in ("coords", "smem_offsets"):
            expect_integer_array(getattr(self, name), name)
        expect_integer(self.transaction_bytes, "transaction_bytes", 0, unit="bytes")
        expect(self.backend, str, "backend")


def check_tensor(atom: TmaAtom, shape: Sequence[int], strides: Sequence[int], bits: int, name: str) -> None:
    """The array must be the tensor that the atom was made for: same shape and strides, elements of the same width.

    Raises:
        InvalidValueError: it is not. Strides in elements; those of modes of size 1 are not compared.
    """
    if not _same_tensor(atom, shape, strides):
        raise _another_tensor(atom, shape, strides, name)
    if bits != atom.dtype.bits:
        raise InvalidValueError(f"{name} has elements of {bits} bits, the atom {atom.dtype.bits}")


def integers(tree: Tree) -> list[int]:
    """The leaves of a shape or stride as plain numbers."""
    return [int(n) for n in leaves(known(tuple(leaves(tree))))]


def _same_tensor(atom: TmaAtom, shape: Sequence[int], strides: Sequence[int]) -> bool:
    want_shape, want_strides = integers(atom.gtensor.shape), integers(atom.gtensor.stride)
    if list(shape) != want_shape:
        return False
    want = [d for n, d in zip(want_shape, want_strides, strict=True) if n > 1]
    return want == [d for n, d in zip(shape, strides, strict=True) if n > 1]


def _another_tensor(atom: TmaAtom, shape: Sequence[int], strides: Sequence[int], name: str) -> InvalidValueError:
    return InvalidValueError(
        f"{name} is not the tensor of the atom",
        {"atom": f"{atom.gtensor.layout}", name: f"shape {tuple(shape)}, strides {tuple(strides)} in elements"},
        "make the atom from this array",
    )


def destination_atom(atom: TmaAtom, address: int, shape: Sequence[int], strides: Sequence[int], bits: int) -> TmaAtom:
    """The atom of the stores: the load's own, or one for a destination of the same shape and other strides, if the
    same boxes at the same coordinates serve it.

    Args:
        address: of the destination's first element; its place within 16 bytes counts. strides: in elements.
    Raises:
        InvalidValueError: another shape or element width, or strides that make other boxes.
        TmaLimitError: strides or an address that no tensor map can have.
    """
    if list(shape) != integers(atom.gtensor.shape) or bits != atom.dtype.bits or _same_tensor(atom, shape, strides):
        check_tensor(atom, shape, strides, bits, "destination")
        return atom
    turned = [
        have
        for n, have, want in zip(shape, strides, integers(atom.gtensor.stride), strict=True)
        if n > 1 and (have == 1) != (want == 1)
    ]
    if turned:
        raise _another_tensor(atom, shape, strides, "destination")
    steps = [
        want if n == 1 else Int(1) if have == want == 1 else have
        for n, have, want in zip(shape, strides, integers(atom.gtensor.stride), strict=True)
    ]
    layout = unflatten(Layout(tuple(shape), tuple(steps)), atom.gtensor.shape)
    target = make_tensor(make_gmem_ptr(address, atom.dtype), layout)
    other = make_tma_copy("SM90_TMA_STORE", target, atom.smem_layout, atom.cta_tiler, 1, atom.internal_dtype, atom.arch)
    same_boxes = (other.plan.dims, other.plan.box, str(other.gbasis)) == (
        atom.plan.dims,
        atom.plan.box,
        str(atom.gbasis),
    )
    if not same_boxes:
        raise _another_tensor(atom, shape, strides, "destination")
    return other


def spilled_bytes(atom: TmaAtom) -> int:
    """Bytes that a store writes behind the end of each row of the tensor. The same for all its destinations."""
    row = atom.plan.dims[0] * atom.internal_dtype.bits // 8
    return -row % STORE_UNIT


def first_difference(source: Any, destination: Any) -> str | None:
    """The first element, in row-major order, whose bits differ; None if none does."""
    import numpy as np

    source, destination = expect(source, np.ndarray, "source"), expect(destination, np.ndarray, "destination")
    if source.shape != destination.shape or source.dtype != destination.dtype or not source.ndim:
        raise InvalidValueError(
            "arrays of different shapes or types have no first difference",
            {"source": f"{source.shape} {source.dtype}", "destination": f"{destination.shape} {destination.dtype}"},
        )
    kind = np.dtype(f"u{source.dtype.itemsize}") if source.dtype.itemsize in (1, 2, 4, 8) else None
    a = source.view(kind) if kind is not None else source
    b = destination.view(kind) if kind is not None else destination
    differs = a != b
    if not differs.any():
        return None
    at = np.unravel_index(int(np.argmax(differs)), source.shape)
    where = tuple(int(i) for i in at)
    return f"element {where}: source {source[at]!r}, destination {destination[at]!r}"


def new_destination(source: Any) -> Any:
    """A numpy array of zeros with the shape, type and strides of `source`, which may be a view with gaps."""
    import numpy as np

    array = np.zeros_like(source, order="K")
    if array.strides == source.strides or not source.size:
        return array
    reach = sum((n - 1) * abs(step) for n, step in zip(source.shape, source.strides, strict=True))
    first = sum((n - 1) * -step for n, step in zip(source.shape, source.strides, strict=True) if step < 0)
    return np.ndarray(source.shape, source.dtype, bytearray(reach + source.itemsize), first, source.strides)
