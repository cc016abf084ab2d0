"""Distributions against PyTorch's and JAX's, and against a division of lists of indices."""

from __future__ import annotations

import copy
import json
import lzma
import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ArithTuple, E, Layout, as_arith_tuple
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from cute_py.mesh import (
    BlockCyclic,
    Partial,
    Replicate,
    SectionedShard,
    Shard,
    ShardedLayout,
    StridedShard,
    Zigzag,
    distribute,
    from_dtensor,
    from_partition_spec,
    redistribute,
)
from tests.each import each_of
from tests.mesh.places import indices_of, places, random_distribution, random_shape
from tests.shares import one_in

DATA = Path(__file__).parents[1] / "oracle" / "data"


def rows(name: str) -> Iterator[dict[str, Any]]:
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt") as file:
        yield from map(json.loads, file)


def test_local_shapes_and_offsets_are_those_of_dtensor() -> None:
    count = 0
    for row in rows("dtensor_shards"):
        placements = [Replicate() if one == "R" else Shard(one) for one in row["placements"]]
        sharded = distribute(row["shape"], row["mesh"], placements)
        got = [[list(sharded.local_shape(d)), list(sharded.local_offset(d))] for d in range(sharded.devices)]
        assert got == row["local"], row
        count += 1
    assert count == 341


def test_index_ranges_are_those_of_jax() -> None:
    count = 0
    for row in rows("jax_shards"):
        sharded = from_partition_spec(row["shape"], row["mesh"], row["spec"], row["axes"])
        for device, ranges in enumerate(row["local"]):
            starts, sizes = sharded.local_offset(device), sharded.local_shape(device)
            assert [[a, a + n] for a, n in zip(starts, sizes, strict=True)] == ranges, row
        count += 1
    assert count == 160


@each_of("seed", range(40))
def test_each_device_holds_what_a_division_of_lists_gives(seed: int) -> None:
    random = Random(seed)
    sharded = random_distribution(random, random_shape(random))
    for device in range(sharded.devices):
        held = indices_of(sharded, device)
        assert sharded.local_shape(device) == tuple(map(len, held))
        for coordinate in list(places(sharded, device))[:5]:
            assert device in sharded.holders(coordinate)


@pytest.mark.parametrize("seed", one_in(10, range(40)))
def test_the_single_layout_is_the_same_function(seed: int) -> None:
    random = Random(seed)
    sharded = random_distribution(random, random.choice(((64,), (32, 48), (16, 8, 24))))
    if sharded.layout is None:
        assert "dimension" in sharded.why_no_layout
        return
    for device in range(sharded.devices):
        for coordinate, place in places(sharded, device).items():
            got = (*map(int, as_arith_tuple(sharded.layout(*coordinate))), 0, 0)
            holders = sharded.holders(coordinate)
            assert device in holders
            assert got[:2] == (holders[0], place)


@pytest.mark.parametrize(
    ("arguments", "layout"),
    [
        (((1024, 256), 4, [Shard(0)]), "((256,4),256):((256@1,1@0),1@1)"),
        (((64,), 4, [BlockCyclic(0, 4)]), "((4,4,4)):((1@1,1@0,4@1))"),
        (((64, 32), (2, 4), [Shard(0), Shard(0)]), "((8,4,2),32):((32@1,1@0,4@0),1@1)"),
        (((64, 32), (2, 4), [StridedShard(0, 4), Shard(0)]), "((8,2,4),32):((32@1,4@0,1@0),1@1)"),
        ((24, 2, [SectionedShard(0, (8, 8, 8))]), "((4,2,3)):((1@1,1@0,4@1))"),
        (((8, 8), (2, 2), [Replicate(), Shard(1)]), "(8,(4,2)):(4@1,(1@1,1@0))"),
    ],
)
def test_the_single_layout(arguments: Any, layout: str) -> None:
    assert str(distribute(*arguments).layout) == layout


@pytest.mark.parametrize("later", [Shard(0), BlockCyclic(0, 1), StridedShard(0, 2)])
def test_a_division_across_blocks_steps_on_over_devices(later: Any) -> None:
    """Each device of the first mode has 2 blocks of 2, which the second mode divides into 4: half the devices each."""
    found = distribute(8, (2, 4), [StridedShard(0, 2), later])
    assert [found.layout(i) for i in range(8)] == [ArithTuple(*found.holders((i,))) for i in range(8)]


def test_a_layout_is_taken_as_it_is() -> None:
    """Device i + 2 * j, skewed: no placements make this."""
    skewed = ShardedLayout(Layout((2, 2, 4), (E(0) + E(1) * 4, E(0) * 2, E(1))), 4)
    assert skewed.local_shape(3) == (1, 1, 4)
    assert skewed.local_offset(3) == (1, 1, 0)
    assert str(skewed.local_layout(1)) == "1:1 o 4 o (1,1,4):(0,0,1)"
    with pytest.raises(LayoutError, match="has no placements"):
        skewed.to_placements()


class Mirrored:
    """Ring attention's order as a stride: chunk n lies on device n, the second half on the devices backwards."""

    def __init__(self, devices: int, chunk: int) -> None:
        self.devices, self.chunk = devices, chunk

    def __rmul__(self, n: Any) -> ArithTuple:
        return ArithTuple(min(int(n), 2 * self.devices - 1 - int(n)), self.chunk * (n >= self.devices))

    def __add__(self, other: Any) -> Any:
        return 1 * self + other

    __radd__ = __add__


def test_strides_of_ones_own() -> None:
    ring = ShardedLayout(Layout(((2, 8), 3), ((E(1) * 3, Mirrored(4, 6)), E(1))), 4)
    same = distribute((16, 3), 4, [Zigzag(0)])
    for d in range(4):
        assert (ring.local_shape(d), ring.local_offset(d)) == (same.local_shape(d), same.local_offset(d))
    plan = redistribute(ring, same, "f32")
    assert plan.bytes_moved == 0
    assert [t.elements for t in plan.transfers()] == [12] * 4


def test_a_device_may_hold_several_boxes() -> None:
    diagonal = ShardedLayout(Layout((2, 2), (E(0), E(0) + E(1))), 3)
    assert [diagonal.local_shape(d) for d in range(3)] == [(1, 1), (2,), (1, 1)]
    with pytest.raises(LayoutError, match="no single layout"):
        diagonal.local_layout(1)


def test_jax_divides_a_dimension_once() -> None:
    dtensor = distribute(10, (2, 3), [Shard(0), Shard(0)])
    jax = distribute(10, (2, 3), [Shard(0), Shard(0)], uneven="jax")
    assert [dtensor.local_shape(d)[0] for d in range(6)] == [2, 2, 1, 2, 2, 1]
    assert [jax.local_shape(d)[0] for d in range(6)] == [2, 2, 2, 2, 2, 0]


def test_local_layouts() -> None:
    assert str(distribute((8, 6), 2, [Shard(0)], local="column").local_layout(0)) == "(4,6):(_1,4)"
    transposed = distribute((8, 6), 2, [Shard(0)], local=lambda shape: Layout(shape, (1, shape[0])))
    assert str(transposed.layout) == "((4,2),6):((1@1,1@0),4@1)"
    with pytest.raises(LayoutError, match=r"extents \(4, 5\); must be \(4, 6\), the extents of the device"):
        distribute((8, 6), 2, [Shard(0)], local=Layout((4, 5), (5, 1))).local_layout(0)


def test_devices_may_count_by_columns() -> None:
    by_column = distribute((4, 4), (2, 4), [Shard(0), Shard(1)], order="column")
    assert by_column.holders((3, 1)) == (1 + 2 * 1,)


def test_no_device_holds_what_the_tensor_lacks() -> None:
    sharded = distribute((8, 6), 2, [Shard(0)])
    with pytest.raises(InvalidValueError, match=r"coordinate\[1\] = 6; must be below 6"):
        sharded.holders((7, 6))


def test_extents_may_be_numpys_integers() -> None:
    one = distribute(np.int8(8), np.int8(4), [Shard(0)])
    assert one.digest() == distribute(8, 4, [Shard(0)]).digest()
    by_name = from_partition_spec(np.int64(8), np.int64(4), ("x",), "x")
    assert by_name.digest() == from_partition_spec(8, 4, ("x",), "x").digest()


@each_of("seed", range(20))
def test_a_pickle_is_the_same_distribution(seed: int) -> None:
    random = Random(seed)
    sharded = random_distribution(random, random_shape(random))
    for again in (pickle.loads(pickle.dumps(sharded)), copy.copy(sharded), copy.deepcopy(sharded)):
        assert (again.digest(), str(again)) == (sharded.digest(), str(sharded))
        assert str(again.layout) == str(sharded.layout) and again.placements == sharded.placements


def test_pickles_keep_what_a_distribution_was_made_of() -> None:
    options = {"order": "column", "uneven": "jax", "local": "column", "first": (1, 0)}
    made = distribute((9, 6), (2, 2), [Shard(0), Shard(0)], **options)  # type: ignore[arg-type]
    given = ShardedLayout(Layout(((4, 2), 6), ((E(1) * 6, E(0)), E(1))), 4, Layout(2, 2))
    for sharded in (made, given):
        again = pickle.loads(pickle.dumps(sharded))
        assert (again.digest(), again.mesh_shape) == (sharded.digest(), sharded.mesh_shape)
        assert [again.local_offset(d) for d in range(4)] == [sharded.local_offset(d) for d in range(4)]
    plan = redistribute(distribute((9, 6), 4, [Shard(0)]), made, "bf16")
    again = pickle.loads(pickle.dumps(plan))
    assert again.digest() == plan.digest() and list(again.transfers()) == list(plan.transfers())


def test_equal_arguments_make_equal_distributions() -> None:
    rows = Layout(((256, 4), 256), ((E(1) * 256, E(0)), E(1)))
    made = [
        lambda: distribute((10, 4), 4, [Shard(0)]),
        lambda: distribute((10, 4), (2, 2), [Shard(0), Replicate()]),
        lambda: distribute((10, 4), (2, 2), [Shard(0), Replicate()], order="column"),
        lambda: distribute((9, 6), (2, 2), [Shard(0), Shard(0)], uneven="jax", first=(1, 0)),
        lambda: distribute((8, 4), 4, [Shard(0)], local=Layout((2, 4), (1, 2))),
        lambda: ShardedLayout(rows, 4),
        lambda: ShardedLayout(rows, 8, Layout(2, 4)),
    ]
    for i, make in enumerate(made):
        assert make() == make() and hash(make()) == hash(make())
        assert pickle.loads(pickle.dumps(make())) == make() != str(make())
        assert eval(repr(make()), {**vars(cute), **vars(cute.mesh)}) == make()
        assert all(make() != other() for j, other in enumerate(made) if i != j)
    assert distribute(np.int64(8), [4], (Shard(0),), first=[0]) == distribute((8,), 4, [Shard(0)], order="row")
    assert repr(distribute((10, 4), 4, [Shard(0)])) == "distribute((10, 4), (4,), (Shard(dim=0),))"


class Mesh:
    shape = (2, 2)


class _StridedShard:
    dim, split_factor = 0, 2


class Sharded:
    """What from_dtensor reads of a DTensor."""

    shape = (8, 6)
    device_mesh = Mesh()

    def __init__(self, *placements: Any) -> None:
        self.placements = placements


def test_dtensors_are_read() -> None:
    assert from_dtensor(Sharded(Shard(0), Replicate())).to_placements() == (Shard(0), Replicate())
    assert from_dtensor(Sharded(_StridedShard(), Shard(0))).to_placements() == (StridedShard(0, 2), Shard(0))
    with pytest.raises(InvalidTypeError, match="int 4 is not a supported placement"):
        from_dtensor(Sharded(4, 5))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (((8,), 2, [Shard(1)]), InvalidValueError, r"placements\[0\].dim = 1; must be 0 to 0"),
        (((8,), 2, []), InvalidValueError, "placements has 0 entries; must have 1, one for each mode of the mesh"),
        (((8,), 2, [Shard]), InvalidTypeError, r"placements\[0\] must be a placement"),
        (((8,), 2, [BlockCyclic(0, 0)]), InvalidValueError, "block = 0; must be at least 1"),
        (((8,), 0, [Shard(0)]), InvalidValueError, r"mesh_shape\[0\] = 0; must be at least 1"),
        (
            ((8,), 1 << 20, [Shard(0)]),
            InvalidValueError,
            "the mesh has 1048576 devices in 1 modes; must have 1 to 65536",
        ),
        (((-8,), 2, [Shard(0)]), InvalidValueError, r"shape\[0\] = -8"),
        (((8,), 2, [Partial("max")]), InvalidValueError, "reduction = 'max'; must be one of 'sum'"),
    ],
)
def test_bad_distributions(arguments: Any, error: type[CuteError], text: str) -> None:
    with pytest.raises(error, match=text):
        distribute(*arguments)


def test_sections_must_be_the_dimension() -> None:
    with pytest.raises(InvalidValueError, match="the sections have 10 elements; must have 12, like the dimension"):
        distribute(12, 2, [SectionedShard(0, (8, 2))])


def test_no_sections_are_an_empty_dimension() -> None:
    assert distribute((0, 3), 2, [SectionedShard(0, ())]).local_shape(1) == (0, 3)


class Pieces:
    """A placement of one's own that gives each device the same."""

    dim = 0

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def pieces(self, size: int, parts: int, part: int) -> Any:
        return self.rows


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        (None, InvalidTypeError, r"pieces\(8, 2, 0\) of Pieces must be an integer array with rows"),
        ([[0, 4]], InvalidTypeError, "array with rows"),
        (np.array([0, 4]), InvalidTypeError, "array with rows"),
        (np.array([[0.0, 4.0]]), InvalidTypeError, "array with rows"),
        (np.array([[-1, 4]]), InvalidValueError, r"a piece of 4 starts at -1; must be within 0\.\.8"),
        (np.array([[0, 4], [4, -1]]), InvalidValueError, "a piece of -1 starts at 4"),
        (np.array([[5, 4]]), InvalidValueError, "a piece of 4 starts at 5"),
    ],
)
def test_pieces_of_ones_own_are_checked(rows: Any, error: type[CuteError], text: str) -> None:
    with pytest.raises(error, match=text):
        distribute(8, 2, [Pieces(rows)]).local_shape(0)


def test_a_source_that_lacks_elements() -> None:
    part, whole = distribute(8, 2, [Pieces(np.array([[0, 3]], np.int8))]), distribute(8, 1, [Replicate()])
    assert part.local_shape(1) == (3,)
    assert len(list(redistribute(whole, part, "f32").transfers())) == 2
    with pytest.raises(LayoutError, match="dimension 0: the source holds 6 of 8 indices that a device needs"):
        list(redistribute(part, whole, "f32").transfers())


def test_a_layout_beyond_its_mesh() -> None:
    with pytest.raises(LayoutError, match="devices 0 to 3; a mesh of 2 has devices 0 to 1"):
        ShardedLayout(Layout((4, 4), (E(0), E(1))), 2)
    with pytest.raises(InvalidTypeError, match=r"a layout over devices must give \(device, offset\)"):
        ShardedLayout(Layout((4, 4), (4, 1)), 4)


def test_a_device_is_no_replica_of_itself() -> None:
    with pytest.raises(LayoutError, match="device 0 is a replica of itself"):
        ShardedLayout(Layout(4, E(0)), 4, Layout(2, 0))


@pytest.mark.parametrize("mesh", [(2,), (2, 3)])
@pytest.mark.parametrize("placement", [Shard(0), BlockCyclic(0, 2), StridedShard(0, 2), Zigzag(0)])
def test_an_empty_dimension_has_no_single_layout(placement: Any, mesh: tuple[int, ...]) -> None:
    empty = distribute((0, 4), mesh, [placement] * len(mesh))
    assert empty.layout is None
    assert empty.why_no_layout == f"{placement} over 2 does not divide dimension 0 of 0 evenly"
    assert {empty.local_shape(d) for d in range(empty.devices)} == {(0, 4)}


def test_partition_specs_that_name_no_axis() -> None:
    with pytest.raises(InvalidValueError, match=r"spec\[0\]: 'z' is not an axis of the mesh"):
        from_partition_spec((8,), (2,), ["z"], "x")
    with pytest.raises(InvalidValueError, match=r"spec\[1\]: \[\[1\], \[2\]\] is not an axis of the mesh"):
        from_partition_spec((8, 6), (2, 2), (None, ("y", [[1], [2]])), "xy")
    with pytest.raises(InvalidValueError, match=r"spec\[1\]: 'x' is used twice"):
        from_partition_spec((8, 8), (2,), ["x", "x"], "x")


def test_axes_have_names_of_their_own() -> None:
    with pytest.raises(InvalidValueError, match="axis_names has 'x' twice"):
        from_partition_spec((8, 8), (2, 4), ("x",), "xx")


def test_explained_and_drawn() -> None:
    ring = distribute((8, 2), 2, [Zigzag(0)])
    assert "no single layout: Zigzag(dim=0) over 2 does not divide dimension 0 of 8 evenly" in cute.explain(ring)
    table = cute.draw.draw(ring).tables[0]
    devices = [[cell.text for cell in row if cell is not None] for row in table.rows]
    assert devices == [[d, d] for d in "00111100"]
