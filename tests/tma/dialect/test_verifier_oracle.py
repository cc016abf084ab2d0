"""The partition verifier against CuTe C++: what both accept has C++'s G-basis, box, swizzle and coordinate tensor; what
only the verifier refuses is refused by a gate of its own, found here by other means."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py.dtypes import as_dtype
from cute_py.layout.trees import leaves
from cute_py.tma.atom.op import receives_slices
from cute_py.tma.dialect.verifier import verify_partition
from tests.each import each_of
from tests.oracle import gbasis_rows
from tests.oracle.records import rows, tally

TILED = [row for row in rows("gbasis_cpp") if row["kind"] == "tiled" and row["internal_type"] == row["dtype"]]
HELD: set[str] = set()


def ints_taken_as_static(row: dict[str, Any]) -> bool:
    """C++ refuses a plain int in a tile, and the verifier takes it as static."""
    static = gbasis_rows.layout(row["smem"]["str"])
    return "is not a member of" in row["reject_message"] and all(isinstance(n, cute.Int) for n in leaves(static.shape))


def smem_of(row: dict[str, Any]) -> Any:
    swizzle, layout = row["smem"].get("swizzle", [0, 4, 3]), gbasis_rows.layout(row["smem"]["str"])
    if swizzle[0] and isinstance(layout, cute.Layout):
        return cute.ComposedLayout(cute.Swizzle(*swizzle), cute.smem_ptr_flag(row["dtype_bits"]), layout)
    return layout


def walk_of(row: dict[str, Any]) -> Any:
    count = row["num_multicast"]
    return verify_partition(
        smem_of(row),
        gbasis_rows.gmem_tensor(row),
        gbasis_rows.tiler(row["cta_tiler"]) if row["cta_tiler"] else None,
        load_mode="W_MULTICAST" if count > 1 else None,
        num_multicast=count,
        arch="sm_100a",
    )


def gate(row: dict[str, Any]) -> int:
    """The step of the verifier's own gate that this accepted row meets; 0 for none."""
    shape = gbasis_rows.layout(row["gmem"]["str"]).shape
    strides = leaves(gbasis_rows.layout(row["gmem"]["str"]).stride)
    if len(shape) > 5 or len(gbasis_rows.layout(row["smem"]["str"]).shape) > 5:
        return 1
    bits = as_dtype(row["dtype"]).bits
    if any(int(d) > 1 and int(d) * bits % 128 for d in strides) or sum(int(d) == 1 for d in strides) > 1:
        return 4
    if len(leaves(gbasis_rows.tree(row["tma_gbasis"]["str"].partition(":")[0]))) > 5:
        return 9
    return 0


@each_of("row", [r for r in TILED if not r["rejected"]], ids=lambda r: r["name"])
def test_accepted(row: dict[str, Any]) -> None:
    walk = walk_of(row)
    assert (walk.failed or 0) == gate(row), walk.text
    if walk.failed is None:
        [record] = walk.results
        atom, encode = record.body, row["encode"]
        assert str(atom.gbasis) == row["tma_gbasis"]["str"]
        assert (record.rank, record.cu_swizzle) == (encode["rank"], encode["swizzle"])
        if "GATHER4" not in row["op"] and "SCATTER4" not in row["op"]:
            assert list(atom.box) == encode["boxDim"]
            assert atom.slot_elements == row["num_val_src"]
        if row["coord_rank"] == encode["rank"]:
            assert str(record.tensor_type.tensor) == row["tma_tensor"]["str"]
    HELD.add(row["name"])


@each_of("row", [r for r in TILED if r["rejected"]], ids=lambda r: r["name"])
def test_refused(row: dict[str, Any]) -> None:
    assert (walk_of(row).failed is None) == ints_taken_as_static(row)
    HELD.add(row["name"])


@each_of("row", [r for r in TILED if not r["rejected"] and "4" not in r["op"]], ids=lambda r: r["name"])
def test_instructions_are_the_partitions(row: dict[str, Any]) -> None:
    """First coordinate and shared offset of every CTA's first instruction, as recorded from tma_partition."""
    walk = walk_of(row)
    if walk.failed is not None or row["coord_rank"] != row["encode"]["rank"]:
        return
    atom = walk.results[0].body
    for part in row["partitions"]:
        first = atom.instruction(0, part["cta"])
        offset = part["tAgA"]["str"].partition(" o ")[0].removeprefix("ArithTuple")
        assert first.coord == tuple(int(n) for n in leaves(gbasis_rows.tree(offset)))
        if "offset_elems" in part:
            assert first.smem_offset == part["offset_elems"]


@each_of("row", [r for r in TILED if not r["rejected"] and "4" not in r["op"]], ids=lambda r: r["name"])
def test_the_atoms_of_make_tma_atom_are_the_same(row: dict[str, Any]) -> None:
    """Two ways to one copy: the verified atom and the one that follows C++ agree on what they share."""
    walk = walk_of(row)
    if walk.failed is None:
        ours, other = walk.results[0].body, gbasis_rows.atom(row, check=False)
        assert (ours.box, ours.rank, ours.instructions) == (other.plan.box, other.plan.rank, other.instructions)
        # The verified atom is a multicast one wherever CTAs share the tile; a load without it gets its slice alone.
        slices = row["num_multicast"] if receives_slices(other.op, row["num_multicast"]) else 1
        assert ours.bytes_per_instruction == other.bytes_per_instruction
        assert ours.transaction_bytes == other.transaction_bytes * slices
        assert ours.tensor_type.tensor == other.get_tma_tensor()


@pytest.mark.parametrize("row", [r for r in rows("gbasis_cpp") if r["kind"] == "sm100_A"], ids=lambda r: r["name"])
def test_two_cta_tiles_with_their_own_v_map(row: dict[str, Any]) -> None:
    """The V-map of an MMA that two CTAs share is given, not derived from a tile."""
    count = int(gbasis_rows.tree(row["cluster_shape"])[1])  # a tile of A is shared along N
    walk = verify_partition(
        smem_of({**row, "dtype_bits": 16}),
        gbasis_rows.gmem_tensor(row),
        None,
        gbasis_rows.layout(row["cta_v_map"]["str"]),
        load_mode="W_MULTICAST" if count > 1 else "TWO_CTA",
        num_multicast=count,
        arch="sm_100a",
    )
    [record] = walk.results
    assert str(record.body.gbasis) == row["tma_gbasis"]["str"]
    assert list(record.body.box) == row["encode"]["boxDim"]
    assert record.body.slot_elements == row["num_val_src"]
    assert str(record.tensor_type.tensor) == row["tma_tensor"]["str"]


def test_tally() -> None:
    tally("gbasis_cpp through the verifier", len(HELD), len(TILED))
    assert len(HELD) == len(TILED)
