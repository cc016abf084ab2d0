"""Convert distributions from PyTorch's DTensor and from JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cute_py.argument_checks import expect, expect_having, expect_integers, expect_items, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.mesh.placements import Partial, Placement, Replicate, Shard, StridedShard
from cute_py.mesh.sharded_layout import Local, ShardedLayout, distribute


def from_partition_spec(
    shape: int | Sequence[int],
    mesh_shape: int | Sequence[int],
    spec: Sequence[str | Sequence[str] | None],
    axis_names: Sequence[str],
    *,
    local: Local = "row",
) -> ShardedLayout:
    """Convert JAX's NamedSharding to a distribution. The spec lists the mesh axes that divide each dimension, major
    axis first.

    Args:
        spec: a PartitionSpec, or its contents: an axis, a tuple of axes, or None. Dimensions at the end may be omitted.
        axis_names: the names of the mesh's modes.
    Raises:
        InvalidValueError: the spec names an axis that the mesh does not have, or names an axis twice.

    >>> print(from_partition_spec((8, 8), (2, 4), (None, ("y", "x")), "xy").layout)
    (8,(2,4)):(1@1,(4@0,1@0))
    """
    names = expect_items(list(axis_names) if isinstance(axis_names, str) else axis_names, "axis_names")
    for name in names:
        expect(name, str, "an axis of the mesh")
        if names.count(name) > 1:
            raise InvalidValueError(f"axis_names has {given(name)} twice", {"axis_names": tuple(names)})
    entries = expect_items(spec, "spec")
    mesh = expect_integers((mesh_shape,) if is_integer(mesh_shape) else mesh_shape, "mesh_shape", 1, count=len(names))
    of_dimension: list[list[int]] = []
    used: set[str] = set()
    for i, entry in enumerate(entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else expect_items(entry, f"spec[{i}]")
        for axis in axes:
            known = isinstance(axis, str) and axis in names
            if not known or axis in used:
                why = "is used twice" if known else "is not an axis of the mesh"
                raise InvalidValueError(f"spec[{i}]: {given(axis)} {why}", {"axis_names": tuple(names)})
            used.add(axis)
        of_dimension.append([names.index(axis) for axis in axes])
    # JAX divides a dimension once, by the product of its axes in the order of the spec; this module uses the order of
    # the mesh.
    order = [mode for modes in of_dimension for mode in modes]
    order += [mode for mode in range(len(mesh)) if mode not in order]
    placements: dict[int, Placement] = {mode: Replicate() for mode in range(len(mesh))}
    placements |= {mode: Shard(dim) for dim, modes in enumerate(of_dimension) for mode in modes}
    return distribute(
        shape, mesh, [placements[mode] for mode in range(len(mesh))], uneven="jax", local=local, first=order
    )


def from_dtensor(tensor: Any) -> ShardedLayout:
    """Convert a DTensor to a distribution over the DTensor's mesh. Device d is the d-th device of the mesh in row-major
    order.

    The function reads `shape`, `placements` and `device_mesh.shape`, and does not import PyTorch.

    Raises:
        InvalidTypeError: the object is not a DTensor, or has an unsupported placement.

    >>> from types import SimpleNamespace
    >>> class Shard:
    ...     dim = 0
    ...     def is_shard(self, dim=None):
    ...         return True
    >>> mesh = SimpleNamespace(shape=(2,))
    >>> from_dtensor(SimpleNamespace(shape=(8, 4), placements=(Shard(),), device_mesh=mesh)).local_shape(0)
    (4, 4)
    """
    expect_having(tensor, ("shape", "placements", "device_mesh"), "a DTensor")
    placements = [_placement(one) for one in tensor.placements]
    return distribute(tuple(tensor.shape), tuple(tensor.device_mesh.shape), placements)


def _placement(one: Any) -> Placement:
    kind = type(one).__name__
    if kind in ("_StridedShard", "StridedShard"):
        return StridedShard(int(one.dim), int(one.split_factor))
    if kind == "Shard":
        return Shard(int(one.dim))
    if kind == "Replicate":
        return Replicate()
    if kind in ("Partial", "_Partial"):
        return Partial(str(one.reduce_op))
    raise InvalidTypeError(
        f"{kind} {given(one)} is not a supported placement", hint="Shard, _StridedShard, Replicate, Partial"
    )
