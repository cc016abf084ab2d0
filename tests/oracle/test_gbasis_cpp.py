"""Atoms against CuTe C++: stages, G-basis, TMA tensor, partitions of every CTA, descriptor arguments, refusals."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py.errors import CuteError, InvalidValueError
from tests.oracle import gbasis_rows
from tests.oracle.records import rows, tally

TILED = [row for row in rows("gbasis_cpp") if row["kind"] == "tiled"]
HELD: dict[str, int] = {}


def padded(text: str, short: int, long: int) -> str:
    """C++'s coordinate of a map whose last modes never move is shorter than the map; ours has its rank."""
    head, _, tail = text.partition(") o ")
    return head + ",_0" * (long - short) + ") o " + tail


def expected_and_got(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    atom = gbasis_rows.atom(row, check=False)
    trace, stages, encode = atom.gbasis.trace, row["stages"], row["encode"]
    request = atom.request
    rank, coord_rank = encode["rank"], row["coord_rank"]

    def tensor_text(text: str) -> str:
        return text if coord_rank == rank else padded(text, coord_rank, rank)

    out = [
        ("inv_smem_layout", stages["inv_smem"]["str"], str(trace.inv_smem_layout)),
        ("sidx2gmode_full", stages["sidx2gmode_full"]["str"], str(trace.sidx2gmode_full)),
        ("smem_rank", str(stages["smem_rank"]), str(trace.smem_rank)),
        ("sidx2gmode", stages["sidx2gmode"]["str"], str(trace.sidx2gmode)),
        ("tile_gstride", stages["tile_gstride"]["str"], str(trace.tile_gstride)),
        ("tma_gstride", stages["tma_gstride"]["str"], str(trace.tma_gstride)),
        ("tile_gbasis", stages["tile_gbasis"]["str"], str(trace.tile_gbasis)),
        ("tma_gbasis_tile", stages["tma_gbasis_tile"]["str"], str(trace.tma_gbasis_tile)),
        ("cta_v_map", row["cta_v_map"]["str"], str(trace.cta_v_map)),
        ("tma_gbasis", row["tma_gbasis"]["str"], str(atom.gbasis)),
        ("g_stride", row["g_stride"]["str"], cute.text(atom.g_stride)),
        ("num_val_src", str(row["num_val_src"]), str(atom.num_val_src)),
        # the recorder scaled the bits of a slot by the bits of an element once more
        ("num_bits_per_tma", str(row["num_bits_per_tma"]), str(atom.num_bits_per_tma * row["dtype_bits"])),
        ("tma_tensor", tensor_text(row["tma_tensor"]["str"]), str(atom.get_tma_tensor())),
        ("dtype", str(encode["dtype"]), str(int(request.data_type))),
        ("globalAddress", str(encode["globalAddress"]), str(request.global_address)),
        ("globalDim", str(encode["globalDim"]), str(list(request.global_dim))),
        ("globalStrides", str(encode["globalStrides"]), str(list(request.global_strides))),
        ("boxDim", str(encode["boxDim"]), str(list(request.box_dim))),
        ("elementStrides", str(encode["elementStrides"]), str(list(request.element_strides))),
        ("swizzle", str(encode["swizzle"]), str(int(request.swizzle))),
        ("interleave", str(encode["interleave"]), str(int(request.interleave))),
        ("l2Promotion", str(encode["l2Promotion"]), str(int(request.l2_promotion))),
        ("oobFill", str(encode["oobFill"]), str(int(request.oob_fill))),
    ]
    tiles = cute.zipped_divide(atom.get_tma_tensor(), gbasis_rows.tiler(row["cta_tiler"]))
    out.append(("gA", tensor_text(row["gA"]["str"]), str(tiles)))
    smem = cute.make_tensor(cute.make_smem_ptr(0, row["dtype"]), gbasis_rows.layout(row["smem_full"]["str"]))
    smem = cute.group_modes(smem, 0, int(cute.rank(gbasis_rows.layout(row["smem"]["str"]))))
    ctas = cute.Layout(cute.Int(row["num_multicast"]))
    for part in row["partitions"]:
        gmem_part, smem_part = cute.tma.tma_partition(atom, part["cta"], ctas, smem, tiles)
        name = f"CTA {part['cta']}"
        out.append((f"{name} tAgA", tensor_text(part["tAgA"]["str"]), str(gmem_part)))
        out.append((f"{name} tAsA", part["tAsA"]["layout"]["str"], str(smem_part.layout)))
        if "offset_elems" in part:
            pointer = smem_part.engine
            offset = (pointer.address * 8 + pointer.bit) // pointer.dtype.bits
            out.append((f"{name} smem offset", str(part["offset_elems"]), str(offset)))
    return out


@pytest.mark.parametrize("row", [r for r in TILED if not r["rejected"]], ids=lambda r: r["name"])
def test_accepted(row: dict[str, Any]) -> None:
    wrong = [f"{what}: {want} expected, got {got}" for what, want, got in expected_and_got(row) if want != got]
    assert not wrong, "\n".join(wrong)
    HELD[row["name"]] = 1


@pytest.mark.parametrize("row", [r for r in TILED if r["rejected"]], ids=lambda r: r["name"])
def test_refused(row: dict[str, Any]) -> None:
    swizzle = row["smem"].get("swizzle", [0, 4, 3])
    smem = gbasis_rows.layout(row["smem"]["str"])
    if swizzle[0] and isinstance(smem, cute.Layout):
        smem = cute.ComposedLayout(cute.Swizzle(*swizzle), cute.smem_ptr_flag(row["dtype_bits"]), smem)
    tiler = gbasis_rows.tiler(row["cta_tiler"]) if row["cta_tiler"] else None
    with pytest.raises(CuteError) as refusal:
        cute.tma.make_tma_atom(row["op"], gbasis_rows.gmem_tensor(row), smem, tiler, row["num_multicast"])
    condition = row["reject_message"].partition(" @ ")[0].removeprefix("static assertion failed: ")
    if "is not a member of" in condition:  # a compile error that carries no condition of CuTe's
        condition = "TMA requires CTA_Tile and SLayout top-level size equivalence."
    assert condition in str(refusal.value)
    HELD[row["name"]] = 1


def test_coalesce_256() -> None:
    for row in rows("gbasis_cpp"):
        if row["kind"] == "coalesce_256":
            got = cute.tma.coalesce_256(gbasis_rows.layout(row["in"]["str"]))
            assert str(got) == row["out"]["str"], row["in"]["str"]
            HELD[row["name"]] = 1


def test_multicast_masks() -> None:
    for row in rows("gbasis_cpp"):
        if row["kind"] == "multicast_mask":
            layout = gbasis_rows.layout(row["cluster_layout_vmnk"]["str"])
            coord = tuple(row["coord"])
            mask = cute.tma.create_tma_multicast_mask(layout, coord, *row["modes"])
            # C++'s quick way for run-time layouts gives 0 where shape * stride is 0; the loop gives one CTA
            want = row["mask"] if row["mask"] else 1 << int(layout(coord))
            assert mask == want, row
            HELD[row["name"]] = 1


def test_swizzle_and_dtype_maps() -> None:
    for row in rows("gbasis_cpp"):
        if row["kind"] == "swizzle_map":
            swizzle = cute.Swizzle(*row["swizzle"])
            assert (cute.tma.why_not_swizzle(swizzle) is not None) == row["rejected"]
            if not row["rejected"]:
                assert cute.tma.swizzle_row(swizzle).code == row["cu_swizzle"]
            HELD[row["name"]] = 1
        elif row["kind"] == "dtype_map":
            from cute_py.dtypes import as_dtype

            dtype = as_dtype(row["type_name"])
            assert int(cute.tma.tensor_map_format(dtype)) == row["cu_dtype"], row
            assert dtype.bits == row["bits"]
            HELD[row["name"]] = 1


def plain(value: Any) -> Any:
    """Coordinates as nested lists of ints, basis strides as {value, path}."""
    if isinstance(value, cute.ArithTuple):
        value = value.as_tuple()
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    if isinstance(value, cute.ScaledBasis):
        return {"v": int(value.value), "e": list(value.modes)}
    return int(value)


@pytest.mark.parametrize("row", [r for r in rows("gbasis_cpp") if r["kind"] == "im2col"], ids=lambda r: r["name"])
def test_im2col(row: dict[str, Any]) -> None:
    names = ("lower_corner_whd", "upper_corner_whd", "lower_padding_whd", "upper_padding_whd", "stride_whd")
    window = {name: tuple(row[name]) for name in (*names, "lower_srt", "stride_srt")}
    atom = cute.tma.make_im2col_tma_copy(
        row["op"],
        gbasis_rows.gmem_tensor(row),
        gbasis_rows.layout(row["smem"]["str"]),
        gbasis_rows.tiler(row["cta_tiler"]),
        row["num_multicast"],
        **window,
        check=not row["rejected"],
    )
    request, encode = atom.request, row["encode"]
    got = {
        "dtype": int(request.data_type),
        "rank": len(request.global_dim),
        "globalAddress": request.global_address,
        "globalDim": list(request.global_dim),
        "globalStrides": list(request.global_strides),
        "pixelBoxLowerCorner": list(request.pixel_box_lower_corner),
        "pixelBoxUpperCorner": list(request.pixel_box_upper_corner),
        "channelsPerPixel": request.channels_per_pixel,
        "pixelsPerColumn": request.pixels_per_column,
        "elementStrides": list(request.element_strides),
        "interleave": int(request.interleave),
        "swizzle": int(request.swizzle),
        "l2Promotion": int(request.l2_promotion),
        "oobFill": int(request.oob_fill),
    }
    assert got == {name: encode[name] for name in got}
    assert atom.num_bits_per_tma == row["num_bits_per_tma"]
    tensor, want = atom.get_tma_tensor(), row["tma_tensor"]
    gemm = tensor.layout.outer.layout
    assert plain(tensor.engine.coord) == want["offset"]
    assert plain(gemm.shape) == want["gemm_shape"]
    assert plain(gemm.stride) == want["gemm_stride"]
    assert str(tensor.layout.inner) == want["linear"]["str"]
    assert plain(tensor.layout.offset) == want["inner_offset"]
    for m, k, coord in row["samples"]:
        assert plain(tensor(m, k)) == coord, (m, k)
    HELD[row["name"]] = 1


def test_im2col_with_a_pixel_for_each_cta_is_refused() -> None:
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "half"), cute.parse("((5,1),32):((32,160),_1)"))
    with pytest.raises(InvalidValueError, match="num_multicast = 8 CTAs; each CTA must load more than one pixel"):
        cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL_MULTICAST", gmem, "(_8,_8):(_8,_1)", "(_8,_8)", 8)


def tiled_copy_rows() -> list[dict[str, Any]]:
    return [r for r in TILED if not r["rejected"] and (r.get("tiled_copy") or r.get("tiled_copy_reject"))]


@pytest.mark.parametrize("row", tiled_copy_rows(), ids=lambda r: r["name"])
def test_tiled_copy(row: dict[str, Any]) -> None:
    atom = gbasis_rows.atom(row, check=False)
    if row.get("tiled_copy_reject"):
        with pytest.raises(CuteError):
            _ = atom.tiled_copy
        return
    want = row["tiled_copy"]
    copy = atom.tiled_copy
    assert cute.text(copy.tiler_mn) == want["tiler_mn"]
    assert str(copy.layout_TV) == want["layout_tv"]["str"]
    if row["coord_rank"] != row["encode"]["rank"]:
        return
    tiler = gbasis_rows.tiler(row["cta_tiler"])
    tile = cute.local_tile(atom.get_tma_tensor(), tiler, (0,) * int(cute.rank(tiler)))
    smem = cute.make_tensor(cute.make_smem_ptr(0, row["dtype"]), gbasis_rows.layout(row["smem"]["str"]))
    for part in want["slices"]:
        assert str(copy.get_slice(part["cta"]).partition_S(tile)) == part["partition_S"]["str"]
        shared = copy.get_slice(part["cta"]).partition_D(smem)
        assert str(shared.layout) == part["partition_D"]["layout"]["str"]
        if "offset_elems" in part:
            offset = (shared.engine.address * 8 + shared.engine.bit) // shared.engine.dtype.bits
            assert offset == part["offset_elems"]


@pytest.mark.parametrize("row", [r for r in rows("gbasis_cpp") if r["kind"] == "sm100_A"], ids=lambda r: r["name"])
def test_two_sm_loads(row: dict[str, Any]) -> None:
    ctas = 1 + max(part["n"] for part in row["partitions"])
    v_map = gbasis_rows.layout(row["cta_v_map"]["str"])
    smem = gbasis_rows.layout(row["smem"]["str"])
    atom = cute.tma.make_tma_atom(
        row["op"], gbasis_rows.gmem_tensor(row), smem, None, ctas, arch="sm_100a", cta_v_map=v_map
    )
    assert str(atom.gbasis) == row["tma_gbasis"]["str"]
    assert cute.text(atom.g_stride) == row["g_stride"]["str"]
    assert str(atom.get_tma_tensor()) == row["tma_tensor"]["str"]
    assert atom.num_val_src == row["num_val_src"]
    encode = row["encode"]
    assert list(atom.request.box_dim) == encode["boxDim"]
    assert list(atom.request.global_dim) == encode["globalDim"]
    assert list(atom.request.global_strides) == encode["globalStrides"]
    assert int(atom.request.swizzle) == encode["swizzle"]
    cluster = gbasis_rows.layout(row["cluster_layout_vmnk"]["str"])
    shared = cute.make_tensor(cute.make_smem_ptr(0, row["dtype"]), smem)
    shared = cute.group_modes(shared, 0, int(cute.rank(smem)))
    for part in row["partitions"]:
        _, text = part["tCgA"]["str"].split(" o ")
        start = gbasis_rows.tree(part["tCgA"]["str"].removeprefix("ArithTuple").split(" o ")[0])
        tensor = cute.make_tensor(cute.make_inttuple_iter(start), gbasis_rows.layout(text))
        grouped = cute.group_modes(tensor, 0, int(cute.rank(v_map)))
        gmem_part, smem_part = cute.tma.tma_partition(atom, part["n"], cute.Layout(cute.Int(ctas)), shared, grouped)
        assert str(gmem_part) == part["tAgA"]["str"]
        assert str(smem_part.layout) == part["tAsA"]["layout"]["str"]
        assert smem_part.engine.address * 8 // smem_part.engine.dtype.bits == part["tAsA"]["offset_elems"]
        mask = cute.tma.create_tma_multicast_mask(cluster, (part["v"], 0, part["n"], 0), 2)
        assert mask == part["mask_mode2"]
    HELD[row["name"]] = 1


def test_tally() -> None:
    """Last: how many rows held."""
    uncovered = sorted({r["kind"] for r in rows("gbasis_cpp") if r["name"] not in HELD})
    tally("gbasis_cpp", len(HELD), len(rows("gbasis_cpp")), uncovered)
    assert not uncovered
