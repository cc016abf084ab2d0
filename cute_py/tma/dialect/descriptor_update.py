"""The changes that a kernel may make to a descriptor of the dialect on the device.

Three fields may change: the base pointer, the extents, and the strides of axes 1 and up. All other fields are fixed
when the descriptor is built. Axes are innermost first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cute_py.argument_checks import NamedEnum, expect, expect_having, expect_integer
from cute_py.errors import InvalidValueError, TmaBuildError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.trees import at, leaves
from cute_py.layout.trees import modes as tree_modes
from cute_py.tensor.pointers import make_gmem_ptr
from cute_py.tensor.tensor import Tensor
from cute_py.tma.descriptor.limits import BY_NAME, bounds
from cute_py.tma.descriptor.replace import IM2COL_HOST_ONLY
from cute_py.tma.dialect import diagnostics
from cute_py.tma.dialect.descriptors import TmaDescriptorIm2col, TmaDescriptorTiled

__all__ = ["TmaUpdate", "TmaUpdateKind", "apply_update"]

_GRAIN = BY_NAME["stride_alignment"].multiple
"""Addresses and strides are multiples of this number of bytes."""


class TmaUpdateKind(NamedEnum):
    """The changes that a device may make to a descriptor, each with its field of tensormap.replace.

    >>> [kind.name for kind in TmaUpdateKind]
    ['UPDATE_BASE_POINTER', 'UPDATE_DIM', 'UPDATE_STRIDE']
    """

    UPDATE_BASE_POINTER = "global_address"
    UPDATE_DIM = "global_dim"
    UPDATE_STRIDE = "global_stride"


def as_update_kind(value: TmaUpdateKind | str) -> TmaUpdateKind:
    """Return the kind of update with this name.

    Raises:
        TmaBuildError: the name is not a field that a device may change.
    """
    if isinstance(value, TmaUpdateKind):
        return value
    if isinstance(value, str) and value in TmaUpdateKind.__members__:
        return TmaUpdateKind[value]
    shown = value if isinstance(value, str) else given(value)
    facts = {"update": shown, "device-mutable": ", ".join(TmaUpdateKind.__members__)}
    raise TmaBuildError(diagnostics.TEXTS["not_device_mutable"], facts)


@dataclass(frozen=True, slots=True)
class TmaUpdate:
    """One change of a descriptor.

    `value` is in bytes for the base pointer and strides, and in elements for an extent. `axis` counts innermost first;
    the base pointer ignores it.

    Raises:
        TmaBuildError: 'TMA descriptor field is not device-mutable', for any other kind and for the stride of axis 0,
            which is the size of an element and is never written.

    >>> TmaUpdate("UPDATE_DIM", 1, 700).kind.value
    'global_dim'
    """

    kind: TmaUpdateKind
    axis: int
    value: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", as_update_kind(self.kind))
        for name in ("axis", "value"):
            object.__setattr__(self, name, expect_integer(getattr(self, name), name))
        if self.kind is TmaUpdateKind.UPDATE_STRIDE and self.axis == 0:
            facts = {"update": "UPDATE_STRIDE of axis 0", "rule": "it is the size of one element"}
            raise TmaBuildError(diagnostics.TEXTS["not_device_mutable"], facts)


Descriptor = TypeVar("Descriptor", TmaDescriptorTiled, TmaDescriptorIm2col)


def apply_update(descriptor: Descriptor, update: TmaUpdate) -> Descriptor:
    """Return the descriptor after one update. Rank, type, swizzle, box and mode stay the same.

    Args:
        descriptor: a descriptor of tiled movement. update: the change.
    Raises:
        TmaBuildError: the descriptor is an im2col descriptor, which only the host can make; or the axis consists of
            several modes of the tensor, so that the new extent does not determine which of them changes.
        InvalidValueError: the axis does not exist, a value is out of range, or an address or stride is not a multiple
            of 16.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> made = cute.tma.build_tma_descriptor(x, Layout((Int(128), Int(64)), (Int(64), Int(1))))
    >>> changed = apply_update(made, TmaUpdate("UPDATE_DIM", 1, 700))
    >>> changed.shape, changed.box
    ((512, 700), (64, 128))
    """
    expect(update, TmaUpdate, "an update")
    expect_having(descriptor, ("rank", "base", "shape"), "a descriptor of the dialect")
    im2col = isinstance(descriptor, TmaDescriptorIm2col)
    diagnostics.refuse_operation(diagnostics.broken((im2col, "host_only", IM2COL_HOST_ONLY)))
    tiled = expect(descriptor, TmaDescriptorTiled, "a descriptor that is updated")
    rule, unit = {
        TmaUpdateKind.UPDATE_BASE_POINTER: (None, "bytes"),
        TmaUpdateKind.UPDATE_DIM: ("size", "elements"),
        TmaUpdateKind.UPDATE_STRIDE: ("stride_range", "bytes"),
    }[update.kind]
    low, high = bounds(rule) if rule else (0, 2**64 - 1)
    if not low <= update.value <= high:
        raise InvalidValueError(f"{update.kind.name} to {update.value} {unit}; must be {low} to {high}")
    if unit == "bytes" and update.value % _GRAIN:
        raise InvalidValueError(f"{update.kind.name} to {update.value} bytes; must be a multiple of {_GRAIN}")
    layout, request = descriptor.tensor.layout, descriptor.request
    if update.kind is TmaUpdateKind.UPDATE_BASE_POINTER:
        moved = Tensor(make_gmem_ptr(update.value, descriptor.tensor.element_type), layout)
        return replace(descriptor, tensor=moved, request=replace(request, global_address=update.value))
    axis: int = update.axis
    if not 0 <= axis < descriptor.rank:
        raise InvalidValueError(f"axis {axis}; must be 0 to {descriptor.rank - 1}")
    # If the axis is one mode of the tensor, the tensor changes with its map.
    owners = leaves(tree_modes(tiled.layout.stride)[axis])
    if len(owners) != 1:
        named = ", ".join(map(str, owners))
        hint = "build the descriptor of a tensor where this axis is one mode, with one size and one stride"
        raise TmaBuildError(
            f"{update.kind.name} needs an axis that is one mode of the tensor; axis {axis} combines "
            f"{len(owners)} modes ({named})",
            {"tensor": layout, "box": tiled.layout},
            hint,
        )
    path = tuple(getattr(owners[0], "modes", ()))
    of_dim = update.kind is TmaUpdateKind.UPDATE_DIM
    trees = [layout.shape, layout.stride]
    number = update.value if of_dim else update.value * 8 // descriptor.element_bits
    before = at(trees[not of_dim], path)
    # A static number stays static, because the V-map of a static mode is static too.
    trees[not of_dim] = _with_leaf(trees[not of_dim], path, Int(number) if isinstance(before, Int) else number)
    field, place = ("global_dim", axis) if of_dim else ("global_strides", axis - 1)
    changed: dict[str, Any] = {field: _with_leaf(getattr(request, field), (place,), update.value)}
    tensor = Tensor(descriptor.tensor.engine, Layout(*trees))
    return replace(descriptor, tensor=tensor, request=replace(request, **changed))


def _with_leaf(tree: Tree, path: tuple[int, ...], value: int) -> Tree:
    """Return a copy of a nested tuple with the leaf at a path replaced."""
    if not path or type(tree) is not tuple:
        return value
    return tuple([_with_leaf(part, path[1:], value) if i == path[0] else part for i, part in enumerate(tree)])
