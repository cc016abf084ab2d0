"""Shards of block-scaled tensors: what a device holds is what a cut of the numbers gives, and nothing is cut inside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.errors import InvalidValueError, LayoutError
from cute_py.formats.stored_weights import stored_arrays
from cute_py.mesh import BlockCyclic, Partial, Replicate, SectionedShard, Shard, Zigzag, distribute
from cute_py.mesh.files import read_plan, reshard
from cute_py.mesh.scaled_shards import ScaledSharding
from tests.checkpoints.files import load, save

X = np.random.default_rng(0).standard_normal((96, 512)).astype(np.float32)
FORMS = [formats.mxfp8(), formats.nvfp4(), formats.mxfp4(scales="8x4"), formats.fp8((32, 128)), formats.mxfp8(axis=0)]
CUTS = [
    (2, [Shard(0)]),
    (4, [Shard(1)]),
    (3, [Shard(0)]),
    ((3, 2), [Shard(0), Shard(1)]),
    (2, [BlockCyclic(1, 128)]),
    (2, [SectionedShard(0, (64, 32))]),
    (2, [Zigzag(1)]),
    ((2, 2), [Replicate(), Shard(1)]),
]


def fits(form: formats.Format, shape: tuple[int, ...], mesh: object, placements: list[object]) -> bool:
    try:
        ScaledSharding(distribute(shape, mesh, placements), form)
    except LayoutError:
        return False
    return True


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_parts_hold_the_numbers_of_a_cut_and_join_to_the_same_bytes(form: formats.Format) -> None:
    whole = cute.copy(X, form)
    tried = 0
    for mesh, placements in CUTS:
        layout = distribute(X.shape, mesh, placements)
        if not fits(form, X.shape, mesh, placements):
            continue
        tried += 1
        sharding = ScaledSharding(layout, form)
        parts = sharding.split(whole)
        numbers = whole.dequantize()
        for device, part in parts.items():
            rows, columns = (
                d.runs(p).indices() for d, p in zip(layout._dimensions, layout._boxes_of(device)[0], strict=True)
            )
            assert np.array_equal(part.dequantize(), numbers[np.ix_(rows, columns)])
            assert not [d for d in formats.check(part.data, part.scales, form, part.shape) if d.severity == "error"]
        again = sharding.join(parts)
        assert again.data.tobytes() == whole.data.tobytes() and again.scales.tobytes() == whole.scales.tobytes()
    assert tried >= 3


@pytest.mark.parametrize("form", [formats.nvfp4(), formats.mxfp8(scales="linear")], ids=str)
def test_a_redistribution_moves_the_scales_with_their_blocks(form: formats.Format) -> None:
    whole = cute.copy(X, form)
    ours = ScaledSharding(distribute(X.shape, 4, [Shard(1)]), form)
    theirs = ScaledSharding(distribute(X.shape, 4, [Shard(0)]), form)
    moved = ours.redistribute(ours.split(whole), theirs, backend="host")
    wanted = theirs.split(whole)
    assert set(moved) == set(wanted)
    for device, part in moved.items():
        assert part.data.tobytes() == wanted[device].data.tobytes()
        assert part.scales.tobytes() == wanted[device].scales.tobytes()


REFUSED = [
    (formats.mxfp8(), (64, 256), 3, [Shard(1)], "nearest 64 or 96, not 86"),
    (formats.nvfp4(), (64, 80), 2, [Shard(1)], "nearest 32 or 48, not 40"),
    (formats.fp8((128, 128)), (384, 256), 2, [Shard(0)], "nearest 128 or 256, not 192"),
    (formats.mxfp8(), (64, 256), 2, [BlockCyclic(1, 48)], "nearest 32 or 64"),
    (formats.fp8("row"), (64, 256), 2, [Shard(1)], "nearest 256, not 128"),
    (formats.mxfp8(axis=0), (96, 64), 1, [SectionedShard(0, (40, 56))], "a section of 40 rows"),
]


@pytest.mark.parametrize(("form", "shape", "mesh", "placements", "text"), REFUSED, ids=str)
def test_a_cut_inside_a_block_is_refused_with_the_nearest_sizes(
    form: formats.Format, shape: tuple[int, int], mesh: int, placements: list[object], text: str
) -> None:
    with pytest.raises(LayoutError, match=text) as refused:
        ScaledSharding(distribute(shape, mesh, placements), form)
    assert refused.value.rule == "block_cut"


def test_other_arguments_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="summands"):
        ScaledSharding(distribute((64, 64), 2, [Partial("sum")]), formats.mxfp8())
    cut = ScaledSharding(distribute((64, 64), 2, [Shard(0)]), formats.mxfp8())
    with pytest.raises(InvalidValueError, match="must have"):
        cut.split(cute.copy(X, formats.mxfp8()))
    parts = cut.split(cute.copy(X[:64, :64], formats.mxfp8()))
    with pytest.raises(InvalidValueError, match=r"the part of device 1 is missing; its shape is \(32, 64\)"):
        cut.join({0: parts[0]})


# ---- files

PLAN = """
[source]
mesh = [2]
files = "in-{device}.safetensors"
[destination]
mesh = [%d]
files = "out-{device}.safetensors"
[placements]
"*.q_proj.weight" = "column-parallel"
"*.o_proj.weight" = "row-parallel"
"*" = "replicate"
"""


def saved_shards(folder: Path, form: formats.Format, convention: str, columns: int = 256) -> None:
    layouts = {"a.q_proj.weight": [Shard(0)], "a.o_proj.weight": [Shard(1)]}
    x = X[:64, :columns]
    for device in range(2):
        held: dict[str, np.ndarray] = {}
        for name, placements in layouts.items():
            part = ScaledSharding(distribute(x.shape, 2, placements), form).split(cute.copy(x, form))[device]
            held |= stored_arrays(name, part, convention)
        save(folder / f"in-{device}.safetensors", held)


@pytest.mark.parametrize(
    ("convention", "form"),
    [("compressed-tensors", "nvfp4(scales='linear')"), ("modelopt", "mxfp8(scales='linear')")],
)
def test_files_of_block_scaled_weights_are_resharded_by_the_placement_of_the_weight(
    convention: str, form: str, tmp_path: Path
) -> None:
    pytest.importorskip("safetensors")
    saved_shards(tmp_path, formats.parse_format(form), convention)
    (tmp_path / "plan.toml").write_text(PLAN % 4)
    reshard(read_plan(tmp_path / "plan.toml"))
    whole = cute.copy(X[:64, :256], formats.parse_format(form))
    for device in range(4):
        tensors = load(tmp_path / f"out-{device}.safetensors")
        for name, placements in (("a.q_proj.weight", [Shard(0)]), ("a.o_proj.weight", [Shard(1)])):
            part = ScaledSharding(distribute(whole.shape, 4, placements), whole.format).split(whole)[device]
            for tensor, array in stored_arrays(name, part, convention).items():
                assert tensors[tensor].tobytes() == array.tobytes() and tensors[tensor].shape == array.shape


def test_files_that_would_be_cut_inside_a_block_are_not_written(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    saved_shards(tmp_path, formats.parse_format("nvfp4(scales='linear')"), "modelopt", 160)
    (tmp_path / "plan.toml").write_text(PLAN % 4)
    with pytest.raises(
        LayoutError, match=r"'a.o_proj.weight': device 0 holds columns 0 to 19; .*nearest 16 or 24, not 20"
    ):
        reshard(read_plan(tmp_path / "plan.toml"))
    assert not list(tmp_path.glob("*out-*"))


GROUPED_PLAN = """
[source]
mesh = [{a}]
files = "in-{{device}}.safetensors"
[destination]
mesh = [{b}]
files = "out-{{device}}.safetensors"
[placements]
{rules}
"""


def experts(separator: str = "_") -> dict[str, np.ndarray]:
    """MXFP4 experts of GPT-OSS: (E, N, K/32, 16) bytes and (E, N, K/32) scales."""
    dice = np.random.default_rng(1)
    sizes = {f"e.down_proj{separator}blocks": (4, 6, 8, 16), f"e.down_proj{separator}scales": (4, 6, 8)}
    return {name: dice.integers(0, 255, shape, np.uint8) for name, shape in sizes.items()}


def resharded(folder: Path, ranks: tuple[int, int], dim: int | None, rules: str, separator: str = "_") -> None:
    whole = experts(separator)
    for device in range(ranks[0]):
        held = {n: a if dim is None else np.split(a, ranks[0], dim)[device] for n, a in whole.items()}
        save(folder / f"in-{device}.safetensors", {n: np.ascontiguousarray(a) for n, a in held.items()})
    (folder / "plan.toml").write_text(GROUPED_PLAN.format(a=ranks[0], b=ranks[1], rules=rules))
    reshard(read_plan(folder / "plan.toml"))


@pytest.mark.parametrize(
    ("rule", "dim"),
    [("Shard(0)", 0), ("column-parallel", 0), ("Shard(1)", 1), ("Shard(2)", 2), ("row-parallel", 2)],
)
@pytest.mark.parametrize("ranks", [(1, 2), (2, 1)])
@pytest.mark.parametrize("separator", ["_", "."])
@pytest.mark.parametrize("pattern", ["*down_proj", "*down_proj*"])
def test_experts_of_blocks_and_scales_are_resharded_together(
    tmp_path: Path, rule: str, dim: int, ranks: tuple[int, int], separator: str, pattern: str
) -> None:
    pytest.importorskip("safetensors")
    resharded(tmp_path, ranks, dim, f'"{pattern}" = "{rule}"', separator)
    for device in range(ranks[1]):
        tensors = load(tmp_path / f"out-{device}.safetensors")
        for name, array in experts(separator).items():
            part = np.split(array, ranks[1], dim)[device]
            assert tensors[name].shape == part.shape and tensors[name].tobytes() == part.tobytes()


def test_experts_are_divided_along_k_only_between_blocks(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    resharded(tmp_path, (1, 3), None, '"*down_proj" = "Shard(2)"')  # 8 blocks: 3, 3 and 2
    shapes = [load(tmp_path / f"out-{device}.safetensors")["e.down_proj_blocks"].shape for device in range(3)]
    assert shapes == [(4, 6, 3, 16), (4, 6, 3, 16), (4, 6, 2, 16)]


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        (
            '"*_blocks" = "row-parallel"\n"*_scales" = "replicate"',
            r"'e\.down_proj': device 0 holds 8 of the 16 bytes of a block; must be whole blocks",
        ),
        (
            '"*_blocks" = "Shard(1)"\n"*_scales" = "Shard(0)"',
            r"'e\.down_proj': device 0 holds other blocks than scales; both must be divided in the same way",
        ),
    ],
)
def test_experts_that_would_lose_their_scales_are_not_written(tmp_path: Path, rules: str, text: str) -> None:
    with pytest.raises(LayoutError, match=text):
        resharded(tmp_path, (1, 2), None, rules)
    assert not list(tmp_path.glob("*out-*"))
