"""Dumps of a tile that differ in one known way: the cause with its numbers, no other; results of copies by atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.copies.compare_tile import TileComparison, _neighbours, _swizzled, _Tile, _units
from cute_py.copies.emulated_copy import (
    CopyResult,
    TileResult,
    check_tensor,
    destination_atom,
    first_difference,
    new_destination,
    spilled_bytes,
)
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.tma import compare_tile, copy, execute, make_smem_layout, make_tma_copy
from cute_py.tma.atom.tiles import instructions


def matrix(rows: int = 96, columns: int = 256, kind: Any = np.uint16) -> np.ndarray:
    """No two chunks of 16 bytes are equal."""
    return np.random.default_rng(5).integers(0, 1 << 16, (rows, columns)).astype(kind)


def atom_of(x: np.ndarray, swizzle: str = "128B", tile: tuple[int, int] = (32, 64)) -> Any:
    return make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", swizzle, str(x.dtype), tile))


X = matrix()
ATOM = atom_of(X)
TILES = 3, 4


def permuted(dump: np.ndarray, bits: int) -> np.ndarray:
    """Chunks of 16 bytes at the places of the swizzle of so many bits; of 0 bits as they are."""
    place = np.arange(len(dump))
    return dump[place ^ (place // 128 % (1 << bits)) << 4]


@pytest.mark.parametrize("bits", range(4))
def test_places_behind_a_swizzle(bits: int) -> None:
    found = _swizzled(2048, bits)
    assert found.tolist() == [at ^ (at // 128 % (1 << bits)) * 16 for at in range(2048)]
    assert found[found].tolist() == list(range(2048))


@pytest.mark.parametrize(("own", "bits"), [("128B", 3), ("64B", 2), ("32B", 1), ("none", 0)])
def test_another_swizzle_is_named(own: str, bits: int) -> None:
    names = ["none", "32B", "64B", "128B"]
    atom = atom_of(X, own, {0: (96, 8), 1: (32, 16), 2: (32, 32), 3: (32, 64)}[bits])
    right = execute(atom, X, (0, 1)).smem
    for other in range(4):
        dump = permuted(permuted(right, bits), other)
        found = compare_tile(atom, X, (0, 1), dump)
        if np.array_equal(dump, right):
            assert found.equal and found.difference is None and found.cause == found.detail == ""
            continue
        assert (found.cause, found.detail) == (
            "other swizzle",
            f"the dump has swizzle {names[other]}, but the map has {names[bits] if bits else 'NONE'}",
        )


def test_the_other_major_is_named() -> None:
    tile = X[32:64, 64:128]
    dump = np.ascontiguousarray(tile.T).view(np.uint8).reshape(-1)
    for bits in range(4):
        found = compare_tile(ATOM, X, (1, 1), permuted(dump, bits))
        assert found.cause == "other major"
        assert found.detail == f"mode 0 is contiguous in the dump, but another mode in {ATOM.tile}"
    whole = make_tma_copy("SM90_TMA_LOAD", X.T, make_smem_layout("MN", "128B", "uint16", (64, 32)))
    rows = np.ascontiguousarray(tile).view(np.uint8).reshape(-1)
    turned = compare_tile(whole, X.T, (1, 1), np.ascontiguousarray(tile.T).view(np.uint8).reshape(-1))
    assert turned.cause == "other major" and "mode 1 is contiguous in the dump" in turned.detail
    assert compare_tile(whole, X.T, (1, 1), permuted(rows, 3)).equal


def test_boxes_at_each_other_s_places_are_named() -> None:
    atom = atom_of(X, "64B", (32, 96))
    right = execute(atom, X, (0, 1)).smem
    size = atom.bytes_per_instruction
    boxes = [right[i : i + size] for i in range(0, len(right), size)]
    assert len(boxes) == 3
    found = compare_tile(atom, X, (0, 1), np.concatenate([boxes[i] for i in (2, 0, 1)]))
    assert (found.cause, found.detail) == ("other box order", "the boxes are in the order 2, 0, 1")


def test_modes_of_a_box_that_are_swapped_are_named() -> None:
    x = np.random.default_rng(2).integers(0, 256, (4, 8, 32), np.uint8)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(2), Int(4), Int(32)), LayoutRight))
    right = execute(atom, x, 0).smem
    assert atom.plan.box == (32, 4, 2) and len(right) == 256
    swapped = np.ascontiguousarray(right.reshape(2, 4, 32).swapaxes(0, 1)).reshape(-1)
    found = compare_tile(atom, x, 0, swapped)
    assert (found.cause, found.detail) == ("other box order", "modes 2 and 1 of the box are swapped")
    other = np.concatenate([swapped[:128], swapped[128:][::-1]])
    assert compare_tile(atom, x, 0, other).cause == ""


@pytest.mark.parametrize(
    ("coord", "other", "detail"),
    [
        ((1, 1), (0, 1), "the dump is tile 3, -1 along tile mode 0"),
        ((1, 1), (2, 1), "the dump is tile 5, +1 along tile mode 0"),
        ((1, 1), (1, 0), "the dump is tile 1, -1 along tile mode 1"),
        ((1, 1), (1, 2), "the dump is tile 7, +1 along tile mode 1"),
    ],
)
def test_a_tile_beside_is_named(coord: Any, other: Any, detail: str) -> None:
    found = compare_tile(ATOM, X, coord, execute(ATOM, X, other).smem)
    assert (found.cause, found.detail) == ("shifted by one tile", detail)
    index = coord[0] + 3 * coord[1]
    assert compare_tile(ATOM, X, index, execute(ATOM, X, other).smem).detail == detail


def tile_of(number: int, found: np.ndarray | None = None) -> _Tile:
    right = execute(ATOM, X, number).smem
    return _Tile(
        ATOM, X, instructions(ATOM), number, right, right if found is None else found, np.ones(len(right), np.uint8)
    )


@pytest.mark.parametrize("number", range(12))
def test_tiles_beside_a_tile(number: int) -> None:
    row, column = number % 3, number // 3
    wanted = [(row + s, column, 0, s) for s in (-1, 1) if 0 <= row + s < 3]
    wanted += [(row, column + s, 1, s) for s in (-1, 1) if 0 <= column + s < 4]
    assert list(_neighbours(tile_of(number))) == [(r + 3 * c, mode, step) for r, c, mode, step in wanted]


def test_exchanged_coordinates_are_named() -> None:
    """The loads of tile (1, 1) at (64, 32): taken at (32, 64)."""
    dump = execute(ATOM, X, (1, 1)).smem
    wrong = np.zeros_like(dump)
    box = np.zeros((32, 64), np.uint16)
    part = X[64:96, 32:96]
    box[: part.shape[0], : part.shape[1]] = part
    wrong[:] = permuted(box.view(np.uint8).reshape(-1), 3)
    found = compare_tile(ATOM, X, (1, 1), wrong)
    assert (found.cause, found.detail) == (
        "exchanged coordinates",
        "the dump was loaded at (32, 64); TMA takes the innermost coordinate first: (64, 32)",
    )


def test_an_earlier_phase_is_named() -> None:
    right, old, units = (execute(ATOM, X, n).smem for n in (8, 3, 0))
    found = compare_tile(ATOM, X, 8, old)
    assert (found.cause, found.detail) == (
        "stale phase",
        "256 of 256 units of 16 bytes belong to tile 3, from an earlier phase",
    )
    part = np.concatenate([right[:1024], old[1024:]])
    found = compare_tile(ATOM, X, 8, part)
    assert found.detail == "192 of 256 units of 16 bytes belong to tile 3, from an earlier phase"
    beside = compare_tile(ATOM, X, 8, np.concatenate([right[:1024], execute(ATOM, X, 7).smem[1024:]]))
    assert beside.detail == "192 of 256 units of 16 bytes belong to tile 7, from an earlier phase"
    later = compare_tile(ATOM, X, 3, np.concatenate([old[:1024], right[1024:]]))
    assert later.cause == ""
    ring = compare_tile(ATOM, X, 8, execute(ATOM, X, 5).smem, stages=3)
    assert (ring.cause, ring.detail) == (
        "stale phase",
        "all bytes belong to tile 5, which the stage held 3 stages earlier",
    )
    first = compare_tile(ATOM, X, 2, execute(ATOM, X, 1).smem, stages=3)
    assert first.cause == "shifted by one tile"
    assert compare_tile(ATOM, X, 3, execute(ATOM, X, 0).smem, stages=3).detail == (
        "all bytes belong to tile 0, which the stage held 3 stages earlier"
    )
    assert len(_units(tile_of(0))) == 256 and len(units) == 4096


def test_tiles_long_before_are_not_tried() -> None:
    x = np.random.default_rng(1).integers(0, 256, (70 * 8, 16), np.uint8)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(8), Int(16)), LayoutRight))
    for number, old, named in ((69, 5, True), (69, 4, False), (64, 0, True), (65, 0, False)):
        found = compare_tile(atom, x, number, execute(atom, x, old).smem)
        assert (found.cause == "stale phase") is named, (number, old)
        told = "stale phase: only the 64 tiles before this one were tried" in found.scope.not_judged
        assert told is (number > 64 and not named)


@pytest.mark.parametrize("fill", [0, 0xCD])
def test_what_has_not_arrived_is_named(fill: int) -> None:
    dump = execute(ATOM, X, (2, 3)).smem.copy()
    dump[512:576] = fill
    found = compare_tile(ATOM, X, (2, 3), dump)
    assert (found.cause, found.detail) == ("not yet arrived", f"4 of 256 units of 16 bytes contain only 0x{fill:02x}")
    dump[528] = 0x11
    assert compare_tile(ATOM, X, (2, 3), dump).cause == ""
    single = execute(ATOM, X, (2, 3)).smem.copy()
    single[512:528] = fill
    assert compare_tile(ATOM, X, (2, 3), single).detail == f"1 of 256 units of 16 bytes contain only 0x{fill:02x}"


def test_comparisons_are_checked_and_told() -> None:
    equal = TileComparison(True)
    assert str(equal).startswith("equal in every byte that the loads write\n")
    for arguments in ((1,), (False, 3), (False, None, 4), (False, None, "", 5), (False, None, "", "", 6)):
        with pytest.raises(CuteError):
            TileComparison(*arguments)  # type: ignore[arg-type]
    dump = execute(ATOM, X, (1, 0)).smem.copy()
    dump[132] ^= 1
    found = compare_tile(ATOM, X, (1, 0), dump)
    assert "\n  cause : no known cause gives these bytes\n" in str(found)
    shifted = compare_tile(ATOM, X, (1, 1), execute(ATOM, X, (0, 1)).smem)
    assert "\n  cause : shifted by one tile: the dump is tile 3, -1 along tile mode 0\n" in str(shifted)
    short = execute(ATOM, X, 0).smem[:-1]
    with pytest.raises(
        InvalidValueError, match="the dump has 4095 bytes; must have at least 4096, the size of the tile"
    ):
        compare_tile(ATOM, X, 0, short)


def test_a_map_without_swizzle_whose_rows_are_closer_together() -> None:
    """A stage of 32-byte rows behind 128 bytes is not one permuted chunk by chunk: the other map is tried itself."""
    x = matrix(64, 64)
    wide = make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", "32B", "uint16", (32, 16)))
    plain = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(16)), LayoutRight))
    found = compare_tile(wide, x, (1, 2), execute(plain, x, (1, 2)).smem)
    assert found.cause == "other swizzle" and found.detail.endswith("has swizzle none, but the map has 32B")


# ---- copies by an atom


@pytest.mark.parametrize(
    ("shape", "tile"), [((96, 256), (32, 64)), ((100, 250), (32, 64)), ((33, 65), (16, 64)), ((5, 16), (8, 16))]
)
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_copies_are_what_numpy_makes(shape: tuple[int, int], tile: tuple[int, int], kind: Any) -> None:
    x = matrix(*shape, kind)
    if shape[1] * x.itemsize % 16:
        x = np.ascontiguousarray(np.pad(x, ((0, 0), (0, 16))))[:, : shape[1]]
        whole = np.zeros((shape[0], -(-x.strides[0] // 16) * 16 // x.itemsize), kind)
        whole[:, : shape[1]] = x
        x = whole[:, : shape[1]]
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(tile[0]), Int(tile[1])), LayoutRight))
    seen: list[tuple[int, int]] = []
    result = copy(atom, x, progress=lambda done, total: seen.append((done, total)))
    tiles = -(-shape[0] // tile[0]) * -(-shape[1] // tile[1])
    assert np.array_equal(result.destination, x) and result.equal and result.difference is None
    assert (result.tiles, result.bytes, result.backend) == (tiles, x.nbytes, "emulator")
    assert result.transaction_bytes == tile[0] * tile[1] * x.itemsize
    assert result.instructions == len(instructions(atom).coords) and result.seconds > 0
    assert seen[-1] == (tiles, tiles) and [a for a, _ in seen] == sorted(a for a, _ in seen)
    spill = -shape[1] * x.itemsize % 16
    assert spilled_bytes(atom) == spill
    assert len(result.warnings) == (spill > 0)
    if spill:
        assert result.warnings[0] == (
            f"rows of {shape[1] * x.itemsize} bytes are not a multiple of 16, "
            f"and stores write up to {spill} bytes after "
            "each row, so the copy uses a padded buffer"
        )


def test_a_destination_of_other_strides() -> None:
    """What lies between its elements stays; another contiguous mode or another shape is refused."""
    whole = np.full((96, 320), 0x7777, np.uint16)
    there = whole[:, 32:288]
    result = copy(ATOM, X, there)
    assert result.equal and np.array_equal(there, X) and result.destination is there
    assert (whole[:, :32] == 0x7777).all() and (whole[:, 288:] == 0x7777).all()
    refused = [
        (np.zeros((256, 96), np.uint16).T, "destination is not the tensor of this atom"),
        (np.zeros((95, 256), np.uint16), "destination is not the tensor of this atom"),
        (np.zeros((96, 256), np.uint8), "destination has elements of 8 bits, but the atom copies 16-bit elements"),
        (np.zeros((96, 256), np.float32), "destination has elements of 32 bits, but the atom copies 16-bit elements"),
        (X, "the source and the destination overlap, but a copy reads some tiles while it writes others"),
    ]
    for array, text in refused:
        with pytest.raises(InvalidValueError) as caught:
            copy(ATOM, X, array)
        assert caught.value.headline == text
    with pytest.raises(InvalidValueError) as caught:
        copy(ATOM, np.zeros((96, 512), np.uint16)[:, ::2])
    assert caught.value.headline == "source is not the tensor of this atom"
    assert caught.value.facts == {
        "atom": f"{ATOM.gtensor.layout}",
        "source": "shape (96, 256), strides (512, 2) in elements",
    }
    assert caught.value.hint == "make the atom from this array"
    fixed = np.zeros_like(X)
    fixed.flags.writeable = False
    with pytest.raises(InvalidValueError, match="the destination is read-only"):
        copy(ATOM, X, fixed)
    with pytest.raises(InvalidTypeError, match="source is a list, but the emulator copies only numpy arrays"):
        copy(ATOM, [1])


def test_the_atom_of_the_stores() -> None:
    shape = 96, 256
    assert destination_atom(ATOM, 1 << 41, shape, (256, 1), 16) is ATOM
    other = destination_atom(ATOM, 1 << 41, shape, (512, 1), 16)
    assert other.request.global_address == 1 << 41
    assert other.request.global_strides == (1024,) and other.plan.box == ATOM.plan.box
    check_tensor(ATOM, shape, (256, 1), 16, "x")
    single = matrix(1, 256)
    atom = atom_of(single, "128B", (8, 64))
    check_tensor(atom, (1, 256), (77, 1), 16, "x")  # the stride of one row does not count
    assert destination_atom(atom, 1 << 41, (1, 256), (99, 1), 16) is atom
    for strides in ((1, 96), (255, 1), (513, 1)):
        with pytest.raises(CuteError):
            destination_atom(ATOM, 1 << 41, shape, strides, 16)


def test_new_destinations_have_the_strides_of_the_source() -> None:
    whole = np.arange(240, dtype=np.int32).reshape(12, 20)
    for view in (whole, whole.T, whole[::2, 1::3], whole[::-1], whole[:, ::-1], whole[:0], whole[::-2, ::-2]):
        made = new_destination(view)
        assert made.shape == view.shape and made.dtype == view.dtype
        assert not made.size or made.strides == view.strides
        assert not made.any()
        made[...] = view
        assert np.array_equal(made, view)


def test_the_first_element_that_differs() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = a.copy()
    assert first_difference(a, b) is None
    b[1, 2] = 7.5
    b[2, 0] = 1
    assert first_difference(a, b) == f"element (1, 2): source {a[1, 2]!r}, destination {b[1, 2]!r}"
    zero, minus = np.zeros(2), np.array([0.0, -0.0])
    assert first_difference(zero, minus) is not None  # by bits
    for one, other in ((a, a[:2]), (a, a.astype(np.int32)), (np.array(1.0), np.array(1.0))):
        with pytest.raises(
            InvalidValueError, match="the arrays have different shapes or types, so no first difference is defined"
        ):
            first_difference(one, other)
    with pytest.raises(InvalidTypeError):
        first_difference([1], a)  # type: ignore[arg-type]


def test_results_are_told() -> None:
    def made(equal: Any) -> CopyResult[Any]:
        return CopyResult(np.zeros(1), equal, 1, 2, 128, 256, 0.5, "emulator", (), "element (0,): one")

    assert repr(made(True)) == "<copy of 256 bytes by emulator: 1 tile, 2 loads of 128 bytes; equal>"
    assert repr(made(False)).endswith("; element (0,): one>") and repr(made(None)).endswith("; not compared>")
    tile = execute(ATOM, X, (1, 1))
    assert repr(tile) == "<tile of 4096 bytes by emulator: 1 load of 4096 bytes>"
    assert tile.coords.tolist() == [[64, 32]] and tile.smem_offsets.tolist() == [0]
    for arguments in (
        ("x", tile.coords, tile.smem_offsets, 4096, "emulator"),
        (tile.smem, "x", tile.smem_offsets, 4096, "emulator"),
        (tile.smem, tile.coords, 1.5, 4096, "emulator"),
        (tile.smem, tile.coords, tile.smem_offsets, -1, "emulator"),
        (tile.smem, tile.coords, tile.smem_offsets, 4096, 3),
    ):
        with pytest.raises(CuteError):
            TileResult(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("poison", [0, 7, 255])
def test_places_that_no_load_writes_hold_the_poison(poison: int) -> None:
    x = np.arange(60 * 32, dtype=np.uint32).astype(np.uint8).reshape(60, 32)
    atom = make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(5), Int(32)), LayoutRight))
    smem = execute(atom, x, (3, 0), poison=poison).smem
    assert smem[:160].tolist() == x[15:20].ravel().tolist()
    assert (smem[160:] == poison).all() and len(smem) == 256


def test_a_tile_by_index_by_coordinate_and_by_default() -> None:
    assert np.array_equal(execute(ATOM, X).smem, execute(ATOM, X, 0).smem)
    for number in range(12):
        found = execute(ATOM, X, (number % 3, number // 3))
        assert np.array_equal(found.smem, execute(ATOM, X, number).smem)
        assert found.coords.tolist() == [[64 * (number // 3), 32 * (number % 3)]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: copy(ATOM, X, backend="gpu"),
            InvalidValueError,
            "backend = 'gpu'; must be 'emulator', 'cuda' or 'both'",
        ),
        (lambda: copy(ATOM, X, backend=3), InvalidTypeError, "backend must be a str, got int 3"),
        (
            lambda: copy(ATOM, X, hints=True),
            InvalidValueError,
            "the option 'hints' needs backend='cuda'; the backend is",
        ),
        (lambda: execute(ATOM, X, isolate=True), InvalidValueError, "the option 'isolate' needs backend='cuda'"),
        (lambda: copy(3, X), InvalidTypeError, "a TMA atom of tiles"),
        (lambda: copy(ATOM, X, progress=4), InvalidTypeError, "progress, called with two counts,"),
        (lambda: execute(ATOM, X, poison=256), InvalidValueError, "poison = 256; must be 0 to 255"),
        (lambda: execute(ATOM, X, poison=-1), InvalidValueError, "poison = -1; must be 0 to 255"),
        (lambda: execute(ATOM, X, 12), InvalidValueError, "12"),
        (
            lambda: copy(make_tma_copy("SM90_TMA_STORE", X, make_smem_layout("K", "128B", "uint16", (32, 64))), X),
            InvalidValueError,
            "copy needs an atom of a tile load, got ",
        ),
        (lambda: copy(None, X), CuteError, ""),
    ],
)
def test_refused_in_words(call: Any, error: type[CuteError], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in caught.value.headline


def test_names_of_the_package() -> None:
    assert set(cute.copies.__all__) <= set(dir(cute.copies)) | set(cute.copies._ON_FIRST_USE)
    assert cute.copies.CopyResult is CopyResult
    with pytest.raises(AttributeError, match="copy_arrays"):
        cute.copies.copy_arrays  # noqa: B018
