"""The two descriptor types of the dialect as values: what a descriptor records before it is 128 bytes.

Axes are innermost first. Three fields may change on a device: the base pointer, the extents and the strides of axes 1
and up. Everything else is fixed when the descriptor is built.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from cute_py.argument_checks import expect, expect_fields, expect_having, expect_integer
from cute_py.errors import InvalidValueError, TmaBuildError, given
from cute_py.layout.layout import Layout
from cute_py.tensor.tensor import Tensor
from cute_py.tma.dialect.cache_mode import CacheMode
from cute_py.tma.dialect.diagnostics import NOT_DEVICE_MUTABLE
from cute_py.tma.dialect.modes import TmaLoadMode, TmaStoreMode


@dataclass(frozen=True, slots=True)
class TmaDescriptorTiled:
    """A descriptor of tiled movement.

    Attributes:
        tensor: the global tensor; layout: the box over global modes (the G-basis).
        base: address in bytes; shape: elements per axis; strides: bytes of axes 1 and up; box: elements per axis, of
            one CTA.
        swizzle: the driver's code; paddings: fill values, as given; cache_policy: the default one.
        alignment: of the descriptor itself, in bytes.
        operand_segment_sizes: operands of the building operation: tensor, layout, shapes, strides, paddings.
    """

    tensor: Tensor
    layout: Layout
    base: int
    element_bits: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    mode: TmaLoadMode | None
    store_mode: TmaStoreMode | None
    num_multicast: int = 1
    paddings: tuple[Any, ...] = ()
    cache_policy: CacheMode = CacheMode.CG
    alignment: int = 128
    operand_segment_sizes: tuple[int, ...] = (1, 1, 0, 0, 0)

    mnemonic = "!cute_nvgpu.tma_descriptor_tiled"

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def attributes(self) -> dict[str, Any]:
        """As the building operation prints them."""
        mode = self.mode if self.store_mode is None else self.store_mode
        return {"mode": mode, "elementBitWidth": self.element_bits, "num_multicast": self.num_multicast}

    def __str__(self) -> str:
        return self.mnemonic


@dataclass(frozen=True, slots=True)
class TmaDescriptorIm2col:
    """A descriptor of im2col movement over axes C, W, (H, (D,)) N.

    Attributes:
        lower_corner, upper_corner: of the pixel box, elements of W, H, D; channels_per_pixel, pixels_per_column: the
            box; element_strides: per axis. The rest is as in `TmaDescriptorTiled`.
    """

    tensor: Tensor
    base: int
    element_bits: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    lower_corner: tuple[int, ...]
    upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...]
    swizzle: int
    paddings: tuple[Any, ...] = ()
    cache_policy: CacheMode = CacheMode.CG
    alignment: int = 128

    mnemonic = "!cute_nvgpu.tma_descriptor_im2col"

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def box(self) -> tuple[int, int]:
        """(channels, pixels): the two modes that an im2col box keeps."""
        return (self.channels_per_pixel, self.pixels_per_column)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"mode": "im2col", "elementBitWidth": self.element_bits}

    def __str__(self) -> str:
        return self.mnemonic


class TmaUpdateKind(Enum):
    """The changes of a descriptor that a device may make, with the field of tensormap.replace that each is."""

    UPDATE_BASE_POINTER = "global_address"
    UPDATE_DIM = "global_dim"
    UPDATE_STRIDE = "global_stride"


@dataclass(frozen=True, slots=True)
class TmaUpdate:
    """One change: `value` in bytes for the base pointer and strides, in elements for an extent. `axis` is innermost
    first and of no meaning for the base pointer.

    Raises:
        TmaBuildError: 'TMA descriptor field is not device-mutable': another kind, or the stride of axis 0, which is
            the element's own size and is never written.
    """

    kind: Any
    axis: int
    value: int

    def __post_init__(self) -> None:
        kind = self.kind
        if isinstance(kind, str) and kind in TmaUpdateKind.__members__:
            object.__setattr__(self, "kind", TmaUpdateKind[kind])
        elif not isinstance(kind, TmaUpdateKind):
            raise TmaBuildError(
                NOT_DEVICE_MUTABLE,
                {
                    "update": kind if isinstance(kind, str) else given(kind),
                    "device-mutable": ", ".join(TmaUpdateKind.__members__),
                },
            )
        for name in ("axis", "value"):
            object.__setattr__(self, name, expect_integer(getattr(self, name), name))
        if self.kind is TmaUpdateKind.UPDATE_STRIDE and self.axis == 0:
            raise TmaBuildError(
                NOT_DEVICE_MUTABLE, {"update": "UPDATE_STRIDE of axis 0", "rule": "it is the size of one element"}
            )


_LIMITS: Final = {
    TmaUpdateKind.UPDATE_BASE_POINTER: (0, 2**64 - 1, "bytes"),
    TmaUpdateKind.UPDATE_DIM: (1, 2**32, "elements"),
    TmaUpdateKind.UPDATE_STRIDE: (0, 2**40 - 1, "bytes"),
}


def apply_update(descriptor: Any, update: TmaUpdate) -> Any:
    """The descriptor after one update; rank, type, swizzle, box and mode stay.

    Raises:
        InvalidValueError: no such axis, a value out of range, or an address or stride that is no multiple of 16.
    """
    expect(update, TmaUpdate, "an update")
    expect_having(descriptor, ("rank", "base", "shape"), "a descriptor of the dialect")
    low, high, unit = _LIMITS[update.kind]
    if not low <= update.value <= high:
        raise InvalidValueError(f"{update.kind.name} to {update.value} {unit}; must be {low} to {high}")
    if unit == "bytes" and update.value % 16:
        raise InvalidValueError(f"{update.kind.name} to {update.value} bytes; must be a multiple of 16")
    if update.kind is TmaUpdateKind.UPDATE_BASE_POINTER:
        return replace(descriptor, base=update.value)
    if not 0 <= update.axis < descriptor.rank:
        raise InvalidValueError(f"axis {update.axis}; must be 0 to {descriptor.rank - 1}")
    name, index = ("shape", update.axis) if update.kind is TmaUpdateKind.UPDATE_DIM else ("strides", update.axis - 1)
    values = list(getattr(descriptor, name))
    values[index] = update.value
    return replace(descriptor, **{name: tuple(values)})
