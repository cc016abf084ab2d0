"""Deviations of driver versions from the bits that `fields` describes, by name, condition and source.

`encode` writes none of them; `replace.repaired` applies what is known against them to a map that such a driver wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.tma.descriptor.request import TensorMap


def extent_bytes(request: TensorMap) -> int:
    """Bytes from the first element to just past the last one, strides included (not negative, in any order).

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> extent_bytes(TensorMapTiled(6, 0, (8, 4), (32,), (8, 4)))
    112
    """
    inner = request.global_dim[0] if request.global_dim else 1
    bits = 8 if request.data_type is None else request.element_bits
    last = (inner - 1) * bits // 8 + -(-bits // 8)
    return last + sum(
        (size - 1) * step for size, step in zip(request.global_dim[1:], request.global_strides, strict=False)
    )


@dataclass(frozen=True, slots=True)
class Quirk:
    """One deviation: drivers that `drivers` describes may set `mask` in `word`; clearing it is the known remedy."""

    name: str
    word: int
    mask: int
    last_driver: int
    """Newest version (1000 x major + 10 x minor) for which the remedy is applied."""
    applies: Callable[[TensorMap], bool]
    """The condition on the tensor."""
    condition: str
    effect: str
    source: str

    def __post_init__(self) -> None:
        expect_fields(self)


SMALL_TENSOR_BYTES: Final = 131_072

QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk(
        "bit 85",
        1,
        1 << 21,
        13030,
        lambda request: extent_bytes(request) < SMALL_TENSOR_BYTES,
        "driver up to 13030 (CuTe: up to 13010), tensor below 131072 bytes",
        "sporadic illegal memory accesses on Blackwell where the allocation is below 128 KiB and not dense",
        "NVIDIA release notes 595.71.05, known issues; CUTLASS copy_traits_sm90_tma.hpp, make_tma_copy_desc. "
        "Never set by driver 580.159.04 on an NVIDIA H200",
    ),
)


def active_quirks(request: TensorMap, driver: int) -> tuple[Quirk, ...]:
    """The rows whose condition holds for this request and this driver version.

    Args:
        driver: version as cuDriverGetVersion gives it: 13000 is CUDA 13.0.
    Raises:
        InvalidTypeError: not an integer.
    """
    driver = expect_integer(driver, "driver, a version such as 13000,")
    return tuple(row for row in QUIRKS if driver <= row.last_driver and row.applies(request))


def clear_mask(request: TensorMap, driver: int) -> int:
    """Ones on the bits, in the whole map, that the remedies for this driver clear."""
    mask = 0
    for row in active_quirks(request, driver):
        mask |= row.mask << (64 * row.word)
    return mask
