"""Cuts of block-scaled tensors: where blocks end, in words with the nearest sizes; rules for tensors of a weight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from cute_py.formats import ScaledTensor
from cute_py.formats.stored_weights import CONVENTIONS, StoredWeight
from cute_py.mesh import BlockCyclic, Partial, Replicate, SectionedShard, Shard, Zigzag, distribute
from cute_py.mesh.reshard_plan import MeshSide, ReshardPlan, RowSpan
from cute_py.mesh.scaled_files import check_scaled, placed_with_weights
from cute_py.mesh.scaled_shards import ScaledSharding, check_block_cuts

X = np.random.default_rng(3).standard_normal((64, 256)).astype(np.float32)


@pytest.mark.parametrize(
    "form", [formats.mxfp8(), formats.nvfp4(), formats.fp8((32, 32)), formats.mxfp8(axis=0)], ids=str
)
@pytest.mark.parametrize("placement", [Shard(0), Shard(1), BlockCyclic(1, 64), Zigzag(1), Replicate()], ids=str)
def test_scales_and_stored_elements_are_divided_as_elements_are(form: Any, placement: Any) -> None:
    layout = distribute((64, 256), 2, [placement])
    cut = ScaledSharding(layout, form)
    rows, columns = form.blocks(64, 256)
    width = 2 if form.packing == "pairs" else 1
    for device in range(2):
        m, k = (d.runs(p).indices() for d, p in zip(layout._dimensions, layout._boxes_of(device)[0], strict=True))
        for side, units in ((cut.scales, (rows, columns)), (cut.data, (1, width))):
            held = [
                d.runs(p).indices().tolist() for d, p in zip(side._dimensions, side._boxes_of(device)[0], strict=True)
            ]
            assert held == [
                list(dict.fromkeys((one // unit).tolist())) for one, unit in zip((m, k), units, strict=True)
            ]
    assert repr(cut) == f"ScaledSharding({layout!r}, {form!r})"


def test_parts_of_any_division_join_again() -> None:
    form = formats.mxfp8(scales="linear")
    whole = cute.copy(X, form)
    for mesh, placements in (
        (2, [Shard(0)]),
        ((2, 2), [Shard(1), Replicate()]),
        (3, [Shard(0)]),
        (8, [Shard(1)]),
        (10, [BlockCyclic(1, 32)]),
    ):
        cut = ScaledSharding(distribute((64, 256), mesh, placements), form)
        parts = cut.split(whole)
        holds = [d for d in range(cut.layout.devices) if min(cut.layout.local_shape(d)) > 0]
        assert list(parts) == holds
        again = cut.join(parts)
        assert again.data.tobytes() == whole.data.tobytes() and again.scales.tobytes() == whole.scales.tobytes()
        if len(holds) > 1 and not isinstance(placements[-1], Replicate):
            del parts[holds[-1]]
            with pytest.raises(InvalidValueError, match=f"the part of device {holds[-1]} is missing"):
                cut.join(parts)


def test_parts_of_another_format_shape_or_scale_are_refused() -> None:
    form = formats.nvfp4(scales="linear")
    cut = ScaledSharding(distribute((64, 256), 2, [Shard(0)]), form)
    whole = cute.copy(X, form)
    parts = cut.split(whole)
    assert all(part.tensor_scale == whole.tensor_scale and part.shape == (32, 256) for part in parts.values())
    other = replace(parts[1], tensor_scale=2 * float(whole.tensor_scale))
    for call in (lambda: cut.join({0: parts[0], 1: other}), lambda: cut.redistribute({0: parts[0], 1: other}, cut)):
        with pytest.raises(InvalidValueError) as caught:
            call()
        assert caught.value.headline == (
            f"device 1 has the tensor scale {other.tensor_scale}, but "
            f"other devices have {whole.tensor_scale}; they must be equal"
        )
    plain = cute.copy(X[:32], formats.mxfp8(scales="linear"))
    with pytest.raises(InvalidValueError) as caught:
        cut.join({0: plain, 1: parts[1]})
    assert caught.value.headline == f"the tensor has shape (32, 256) in {plain.format}; must have (32, 256) in {form}"
    with pytest.raises(InvalidValueError, match=r"the tensor has shape \(64, 256\)"):
        cut.redistribute({0: whole, 1: parts[1]}, cut)
    rule = formats.mxfp8(scales="linear", rule="ceil")
    cute_rule = ScaledSharding(distribute((64, 256), 2, [Shard(0)]), formats.mxfp8(scales="linear"))
    assert set(cute_rule.split(cute.copy(X, rule))) == {0, 1}  # how scales were found does not matter
    for thing in ([parts[0]], 3):
        with pytest.raises(InvalidTypeError, match="parts must be a dict"):
            cut.join(thing)  # type: ignore[arg-type]
        with pytest.raises(InvalidTypeError, match="parts must be a dict"):
            cut.redistribute(thing, cut)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="destination must be"):
        cut.redistribute(parts, "x")  # type: ignore[arg-type]
    elsewhere = ScaledSharding(distribute((64, 256), 2, [Shard(0)]), formats.mxfp8())
    with pytest.raises(InvalidValueError, match="the destination has another format"):
        cut.redistribute(parts, elsewhere)


@pytest.mark.parametrize(
    "form", [formats.nvfp4(scales="linear"), formats.mxfp8(scales="8x4"), formats.fp8((32, 32))], ids=str
)
def test_redistributions_of_scaled_parts(form: Any) -> None:
    whole = cute.copy(X, form)
    meshes: list[tuple[int, Any]] = [(2, Shard(0)), (4, Shard(1)), (2, Replicate())]
    sides = [ScaledSharding(distribute((64, 256), mesh, [one]), form) for mesh, one in meshes]
    for ours in sides:
        for theirs in sides:
            moved, wanted = ours.redistribute(ours.split(whole), theirs), theirs.split(whole)
            assert moved.keys() == wanted.keys()
            for device, part in moved.items():
                assert part.shape == wanted[device].shape and part.tensor_scale == whole.tensor_scale
                assert part.data.tobytes() == wanted[device].data.tobytes()
                assert part.scales.tobytes() == wanted[device].scales.tobytes()


@pytest.mark.parametrize(
    ("shape", "mesh", "placements", "form", "text"),
    [
        (
            (64, 256),
            3,
            [Shard(1)],
            formats.mxfp8(),
            "device 0 holds columns 0 to 85; a cut must be a multiple of 32 columns: nearest 64 or 96, not 86",
        ),
        (
            (64, 256),
            4,
            [Shard(1)],
            formats.fp8((1, 128)),
            "device 0 holds columns 0 to 63; a cut must be a multiple of 128 columns: nearest 128, not 64",
        ),
        (
            (64, 256),
            4,
            [Shard(0)],
            formats.fp8((32, 32)),
            "device 0 holds rows 0 to 15; a cut must be a multiple of 32 rows: nearest 32, not 16",
        ),
        (
            (64, 256),
            2,
            [BlockCyclic(1, 48)],
            formats.mxfp8(),
            "BlockCyclic of 48 columns; a cut must be a multiple of 32: nearest 32 or 64",
        ),
        (
            (64, 256),
            2,
            [BlockCyclic(1, 3)],
            formats.nvfp4(),
            "BlockCyclic of 3 columns; a cut must be a multiple of 16: nearest 16",
        ),
        (
            (64, 256),
            2,
            [SectionedShard(1, (40, 216))],
            formats.mxfp8(),
            "a section of 40 columns; a cut must be a multiple of 32: nearest 32 or 64",
        ),
        ((64, 256), 2, [SectionedShard(1, (192, 64))], formats.mxfp8(), ""),
        ((64, 250), 1, [SectionedShard(1, (192, 58))], formats.mxfp8(), ""),
        (
            (64, 250),
            2,
            [Shard(1)],
            formats.mxfp8(),
            "device 0 holds columns 0 to 124; a cut must be a multiple of 32 columns: nearest 96 or 128, not 125",
        ),
    ],
)
def test_cuts_are_told_with_the_nearest_sizes(shape: Any, mesh: Any, placements: Any, form: Any, text: str) -> None:
    layout = distribute(shape, mesh, placements)
    if not text:
        ScaledSharding(layout, form)
        return
    with pytest.raises(LayoutError) as caught:
        ScaledSharding(layout, form)
    assert caught.value.headline == text and caught.value.rule == "block_cut"


def test_cuts_of_every_device_are_listed() -> None:
    elements, blocks = distribute((8, 96), 4, [Shard(1)]), distribute((8, 3), 4, [Shard(1)])
    found = check_block_cuts(elements, blocks, (1, 32))
    assert [one.message.split(";")[0] for one in found] == [
        "device 0 holds columns 0 to 23",
        "device 1 holds columns 24 to 47",
        "device 2 holds columns 48 to 71",
        "device 3 holds columns 72 to 95",
    ]
    assert found[0].facts == {"shape": (8, 96), "mesh": (4,)} and found[0].rule == "block_cut"
    assert check_block_cuts(distribute((8, 96), 3, [Shard(1)]), distribute((8, 3), 3, [Shard(1)]), (1, 32)) == []
    short = check_block_cuts(distribute((8, 80), 3, [Shard(1)]), distribute((8, 3), 3, [Shard(1)]), (1, 32))
    assert short[0].message.startswith("device 0 holds columns 0 to 26")
    last = check_block_cuts(distribute((8, 90), 3, [BlockCyclic(1, 32)]), distribute((8, 3), 3, [Shard(1)]), (1, 32))
    assert last == []  # the last block ends with the tensor
    both = check_block_cuts(
        distribute((6, 96), (2, 2), [Shard(0), Shard(1)]), distribute((2, 3), (2, 2), [Shard(0), Shard(1)]), (4, 32)
    )
    assert {one.message.split(" holds ")[1].split(" ")[0] for one in both} == {"rows", "columns"}


@pytest.mark.parametrize(
    ("layout", "form", "text"),
    [
        (
            distribute(64, 2, [Shard(0)]),
            formats.mxfp8(),
            "the distribution has the shape (64,); must be (M, K), made by distribute",
        ),
        (
            distribute((0, 64), 2, [Shard(1)]),
            formats.mxfp8(),
            "the distribution has the shape (0, 64); must be (M, K)",
        ),
        (
            distribute((64, 64), 2, [Shard(0)]),
            formats.mxfp8(transposed=True),
            "must be row-major, with its elements in",
        ),
        (
            distribute((64, 64), 2, [Shard(0)]),
            formats.mxfp6(packing="dense"),
            "must be row-major, with its elements in",
        ),
        (
            distribute((64, 64), 2, [Partial()]),
            formats.mxfp8(),
            "Partial is not supported, because the devices hold summands, and a block has only one scale, for the sum",
        ),
    ],
)
def test_distributions_that_no_scaled_tensor_has(layout: Any, form: Any, text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        ScaledSharding(layout, form)
    assert text in caught.value.headline
    for arguments in (("x", form), (layout, "x")):
        with pytest.raises(InvalidTypeError):
            ScaledSharding(*arguments)  # type: ignore[arg-type]


def test_parts_keep_how_their_elements_are_divided() -> None:
    made = distribute((64, 256), (2, 2), [Shard(0), Shard(1)], order="column", first=(1, 0))
    cut = ScaledSharding(made, formats.mxfp8())
    for side in (cut.data, cut.scales):
        assert [side.local_offset(d)[0] * 64 // side.shape[0] for d in range(4)] == [
            made.local_offset(d)[0] for d in range(4)
        ]
        assert [side.local_offset(d)[1] * 256 // side.shape[1] for d in range(4)] == [
            made.local_offset(d)[1] for d in range(4)
        ]


# ---- files


def weight(form: Any, name: str = "a.q.weight", **tensors: str) -> StoredWeight:
    held = tensors or {"data": f"{name}_packed", "scales": f"{name}_scale", "total": f"{name}_global_scale"}
    return StoredWeight(name, CONVENTIONS[0], form, (64, 256), held)


def side(rules: Any, mesh: tuple[int, ...] = (2,)) -> MeshSide:
    return MeshSide(mesh, tuple(Path(str(i)) for i in range(int(np.prod(mesh)))), rules)


def test_tensors_of_a_weight_follow_its_placement() -> None:
    form = formats.nvfp4(scales="linear")
    rules = (("*.k.weight", ("Shard(1)",)), ("*.q.weight", ("Shard(0)",)), ("*", ("replicate",)))
    one, two = side(rules), side((("*", ("Shard(1)", "replicate")),), (2, 2))
    placed = placed_with_weights(ReshardPlan(one, two), [weight(form)])
    assert placed.source.rules == (
        ("a.q.weight_packed", ("Shard(0)",)),
        ("a.q.weight_scale", ("Shard(0)",)),
        ("a.q.weight_global_scale", ("replicate",)),
        *rules,
    )
    assert placed.destination.texts("a.q.weight_packed") == ("Shard(1)", "replicate")
    assert placed.destination.texts("a.q.weight_global_scale") == ("replicate", "replicate")
    assert placed.source.mesh_shape == (2,) and placed.source.files == one.files


def test_an_earlier_pattern_keeps_its_placement() -> None:
    form = formats.nvfp4(scales="linear")
    rules = (("*_scale", ("replicate",)), ("*.q.weight", ("Shard(0)",)))
    placed = placed_with_weights(ReshardPlan(side(rules), side(rules)), [weight(form)])
    assert [pattern for pattern, _ in placed.source.rules] == ["a.q.weight_packed", *[p for p, _ in rules]]
    later = (("*.q.weight", ("Shard(0)",)), ("*_scale", ("replicate",)))
    placed = placed_with_weights(ReshardPlan(side(later), side(later)), [weight(form)])
    assert placed.source.texts("a.q.weight_scale") == ("Shard(0)",)
    none = (("*.k.weight", ("Shard(0)",)),)
    assert placed_with_weights(ReshardPlan(side(none), side(none)), [weight(form)]).source.rules == none
    named = weight(form, "a[0].weight", data="a[0].weight", scales="a[0].weight_scale")
    whole = (("a*.weight", ("Shard(0)",)),)
    placed = placed_with_weights(ReshardPlan(side(whole), side(whole)), [named])
    assert placed.source.rules[:-1] == (("a[[]0].weight_scale", ("Shard(0)",)),)
    assert placed.source.texts("a[0].weight_scale") == ("Shard(0)",)
    tensor = weight(formats.fp8("tensor"), data="a.q.weight", scales="a.q.weight_scale")
    placed = placed_with_weights(ReshardPlan(side(later), side(later)), [tensor])
    assert placed.source.texts("a.q.weight_scale") == ("replicate",)  # one scale of the whole tensor


def spans(shape: tuple[int, ...], placement: Any, mesh: int = 2, label: str = "") -> tuple[RowSpan, ...]:
    return (RowSpan(label, 0, distribute(shape, mesh, [placement])),)


def cuts_of(one: StoredWeight, data: Any, scales: Any) -> list[Any]:
    parts = {one.tensors["data"]: (data, data), one.tensors["scales"]: (scales, scales)}
    return check_scaled([one], parts)


def test_cuts_of_weights_in_files() -> None:
    form = formats.nvfp4(scales="linear")
    one = weight(form)
    assert cuts_of(one, spans((64, 128), Shard(1)), spans((64, 16), Shard(1))) == []
    assert cuts_of(one, spans((64, 128), Replicate()), spans((64, 16), Replicate())) == []
    first, second = cuts_of(one, spans((64, 40), Shard(1)), spans((64, 5), Shard(1)))
    assert first.message == (
        "'a.q.weight': device 0 holds columns 0 to 19; a cut must be a multiple of 8 columns: nearest 16 or 24, not 20 "
        "(bytes of two columns)"
    )
    assert first.argument == "a.q.weight" and first.rule == "block_cut" and second.message == first.message
    assert first.facts == {"shape": (64, 40), "mesh": (2,)}
    labelled = cuts_of(one, spans((64, 40), Shard(1), label="k"), spans((64, 5), Shard(1)))
    assert labelled[0].message.startswith("'a.q.weight', section k: device 0 holds columns")
    bytes_form = weight(formats.mxfp8(scales="linear"))
    found = cuts_of(bytes_form, spans((64, 96), Shard(1)), spans((64, 3), Shard(1)))
    assert found[0].message.endswith("a cut must be a multiple of 32 columns: nearest 32 or 64, not 48")
    ordered = weight(formats.mxfp8())
    (told, *others) = cuts_of(ordered, spans((64, 128), Shard(1)), spans((64, 4), Shard(1)))
    assert told.message == "'a.q.weight' has its scales in the order 32_4_4, which can't be cut by rows" and not others
    assert told.fixes == ("cute-py convert CHECKPOINT --to FORMAT --scales linear",)
    assert cuts_of(ordered, spans((64, 128), Replicate()), spans((64, 4), Replicate())) == []


def test_weights_whose_scales_are_not_cut() -> None:
    tensor = weight(formats.fp8("tensor"))
    assert cuts_of(tensor, spans((63, 9), Shard(1)), spans((1,), Replicate())) == []
    rows = weight(formats.fp8("row"))
    assert cuts_of(rows, spans((64, 256), Shard(0)), spans((64, 1), Shard(0))) == []
    (first, _) = cuts_of(rows, spans((64, 256), Shard(1)), spans((64, 1), Shard(1)))
    assert "a cut must be a multiple of 256 columns: nearest 256, not 128" in first.message
    one = weight(formats.mxfp8(scales="linear"))
    assert cuts_of(one, spans((64,), Shard(0)), spans((2,), Shard(0))) == []
    two = (*spans((64, 128), Shard(0)), *spans((64, 128), Shard(0)))
    assert cuts_of(one, two, spans((64, 4), Shard(0))) == []


def test_a_scaled_tensor_is_needed() -> None:
    cut = ScaledSharding(distribute((64, 256), 2, [Shard(0)]), formats.mxfp8())
    with pytest.raises(CuteError):
        cut.split(X)  # type: ignore[arg-type]
    assert isinstance(cut.split(cute.copy(X, formats.mxfp8()))[0], ScaledTensor)
