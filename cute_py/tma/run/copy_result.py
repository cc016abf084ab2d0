"""What `copy` and `execute` give back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
from cute_py.argument_checks import expect, expect_fields, expect_integer, expect_integer_array
from cute_py.tma.run.memory import as_bytes


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
