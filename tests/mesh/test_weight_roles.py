"""Roles of names, divisions of placements, and what is said of weights from their names and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cute_py.mesh import BlockCyclic, Replicate, SectionedShard, Shard, StridedShard, Zigzag
from cute_py.mesh.weight_placements import FusedQkv, GateUp, KvHeads, Sections
from cute_py.mesh.weight_roles import (
    COLUMNS,
    GATE_UP,
    KV_HEADS,
    MIDDLE,
    ONE_DEVICE,
    QKV,
    QKV_COLUMNS,
    ROLES,
    ROWS,
    SECTIONED_MIDDLE,
    SEVERAL,
    WHOLE,
    Weight,
    division_of,
    judge,
    role_of,
)

LAYER = "model.layers.0"
FUSED = "fused-qkv(heads=..., kv_heads=..., head_dim=...)"
HIDDEN, QUERY, KEY, INNER, RANKS = 128, 160, 32, 320, 4


# ---- names


@pytest.mark.parametrize(
    ("name", "placement", "sizes"),
    [
        ("model.layers.3.self_attn.q_proj.weight", "column-parallel", ("query rows", "hidden")),
        ("q_proj.weight", "column-parallel", ("query rows", "hidden")),
        ("model.layers.3.self_attn.q_proj.bias", "column-parallel", ("query rows",)),
        ("model.layers.3.self_attn.o_proj.bias", "replicate", ("hidden",)),
        ("model.norm.weight", "replicate", ("hidden",)),
        ("model.norm.bias", "replicate", ("hidden",)),
        ("h.0.mlp.w13_weight", "Shard(0)", ("", "2 x intermediate", "hidden")),
        (
            "h.0.attn.in_proj_weight",
            FUSED,
            ("query + 2 x key rows", "hidden"),
        ),
        (
            "blocks.0.attn.to_qkv.weight",
            FUSED,
            ("query + 2 x key rows", "hidden"),
        ),
        ("blocks.0.attn.TO_QKV_X.bias", FUSED, ("query + 2 x key rows",)),
        ("lm_head.bias", "column-parallel", ("vocabulary",)),
    ],
)
def test_names_with_a_role(name: str, placement: str, sizes: tuple[str, ...]) -> None:
    role = role_of(name)
    assert role is not None
    assert (role.placement, role.sizes) == (placement, sizes)


@pytest.mark.parametrize(
    "name",
    [
        "weight",
        "q_proj",
        "a.q_proj.scales",
        "a.q_proj.lora_A.weight",
        "a.q_proj.weight.x",
        "a.q_proj_weight",
        "a.to_qkv.scales",
        "",
    ],
)
def test_names_without_a_role(name: str) -> None:
    assert role_of(name) is None


def test_a_bias_is_divided_as_the_rows_are_or_whole() -> None:
    for role in ROLES:
        for module in role.modules:
            bias = role_of(f"a.{module}.bias")
            if module.endswith("_weight"):
                assert bias is not None and bias.sizes == role.sizes[:1]
                continue
            assert bias is not None
            assert (bias.modules, bias.sizes, bias.source) == (role.modules, role.sizes[:1], role.source)
            whole = not role.biased or COLUMNS in role.divisions
            assert bias.divisions == ((WHOLE,) if whole else role.divisions)
            assert bias.placement == ("replicate" if whole else role.placement)
            assert bias.usually_divided == (True if whole else role.usually_divided)
            assert bias.note == ""


def test_kinds_are_named_by_placement_and_module() -> None:
    kinds = [role.kind for role in ROLES]
    assert kinds[0] == "a column-parallel weight (q_proj)"
    assert "a fused-qkv weight (qkv_proj)" in kinds and "a SectionedShard weight (c_attn)" in kinds


# ---- divisions


@pytest.mark.parametrize(
    ("placement", "shape", "division"),
    [
        (Replicate(), (4, 4), WHOLE),
        (GateUp(), (4, 4), GATE_UP),
        (KvHeads(4), (4, 4), KV_HEADS),
        (FusedQkv(8, 2), (12, 4), QKV),
        (Sections((6, 6)), (12, 4), GATE_UP),
        (Sections((6, 5)), (11, 4), "sections"),
        (Sections((8, 2, 2)), (12, 4), QKV),
        (Sections((8, 2, 1)), (11, 4), "sections"),
        (Sections((2, 8, 2)), (12, 4), "sections"),
        (Sections((3, 3, 3, 3)), (12, 4), "sections"),
        (Sections((12,)), (12, 4), "sections"),
        (Shard(0), (4, 4), ROWS),
        (Shard(0), (4,), ROWS),
        (Shard(1), (4, 4), COLUMNS),
        (Shard(2), (4, 4, 4), COLUMNS),
        (Shard(1), (4, 4, 4), MIDDLE),
        (Shard(1), (4, 4, 4, 4), "other"),
        (SectionedShard(1, (2, 2)), (4, 4, 4), SECTIONED_MIDDLE),
        (SectionedShard(1, (2, 2)), (4, 4), QKV_COLUMNS),
        (SectionedShard(2, (2, 2)), (4, 4, 4), "other"),
        (BlockCyclic(1, 2), (4, 4), "other"),
        (StridedShard(0, 2), (4, 4), "other"),
        (Zigzag(0), (4, 4), "other"),
    ],
)
def test_divisions(placement: Any, shape: tuple[int, ...], division: str) -> None:
    assert division_of(placement, shape) == division


# ---- weights of a model


def weight(
    name: str, whole: Sequence[int], here: str, there: str | None = None, ranks: int = RANKS, **more: Any
) -> Weight:
    """A weight that the plan divides so, and puts together to `whole`."""
    local = list(whole)
    dims = {ROWS: 0, GATE_UP: 0, QKV: 0, KV_HEADS: 0, COLUMNS: -1, MIDDLE: 1, SECTIONED_MIDDLE: 1}
    if here in dims:
        local[dims[here]] //= ranks
    made = Weight(f"{LAYER}.{name}", tuple(whole), tuple(local), ranks, here, here if there is None else there, {})
    return replace(made, **more)


def model() -> dict[str, Weight]:
    """A layer that is divided as tensor parallelism divides it."""
    made = [
        weight("self_attn.q_proj.weight", (QUERY, HIDDEN), ROWS),
        weight("self_attn.k_proj.weight", (KEY, HIDDEN), ROWS),
        weight("self_attn.v_proj.weight", (KEY, HIDDEN), ROWS),
        weight("self_attn.o_proj.weight", (HIDDEN, QUERY), COLUMNS),
        weight("mlp.gate_proj.weight", (INNER, HIDDEN), ROWS),
        weight("mlp.up_proj.weight", (INNER, HIDDEN), ROWS),
        weight("mlp.down_proj.weight", (HIDDEN, INNER), COLUMNS),
        weight("input_layernorm.weight", (HIDDEN,), WHOLE),
    ]
    return {one.name.removeprefix(f"{LAYER}."): one for one in made}


def said(weights: dict[str, Weight], name: str) -> Any:
    return dict(zip(weights, judge(list(weights.values())), strict=True))[name]


def test_a_layer_that_is_divided_as_usual() -> None:
    weights = model()
    for name, one in zip(weights, judge(list(weights.values())), strict=True):
        role = role_of(weights[name].name)
        assert role is not None
        assert one.judged == [f"placement by name: {role.placement}", "shape by neighbouring weights"]
        assert one.not_judged == [] and one.warnings == []


def changed(name: str, **changes: Any) -> Any:
    weights = model()
    weights[name] = replace(weights[name], **changes)
    return said(weights, name)


def test_a_column_that_is_put_together_as_rows() -> None:
    """o_proj divided by rows: 4 shards of (128, 40) are no (512, 40), by the sizes of the others."""
    found = changed("self_attn.o_proj.weight", shape=(512, 40), local=(128, 40), here=ROWS, there=ROWS)
    assert found.judged == [] and found.not_judged == []
    (first,) = found.warnings
    assert first.rule == "reshard-role" and first.severity == "warning"
    assert first.argument == f"{LAYER}.self_attn.o_proj.weight"
    assert first.message == (
        f"'{LAYER}.self_attn.o_proj.weight': with the placement of the plan its shape is (512, 40): "
        "hidden = 512; other weights "
        "have 128; query rows = 40; other weights have 160; its name suggests a row-parallel weight (o_proj); with "
        "row-parallel its shape is (128, 160), "
        "which fits; usual: row-parallel"
    )
    assert first.fixes == ("row-parallel",)
    assert "transformers modeling_llama.py" in first.source


def test_a_row_that_is_put_together_as_columns() -> None:
    found = changed("mlp.up_proj.weight", shape=(80, 512), local=(80, 128), here=COLUMNS, there=ROWS)
    (only,) = found.warnings
    assert "(80, 512): intermediate = 80; other weights have 320; hidden = 512; other weights have 128" in only.message
    assert "with column-parallel its shape is (320, 128), which fits" in only.message


def test_a_plan_of_the_roles_way_with_another_shape() -> None:
    found = changed("self_attn.q_proj.weight", shape=(QUERY, 96), local=(QUERY // 4, 96))
    (only,) = found.warnings
    assert found.judged == []
    assert only.fixes == ()
    assert only.message == (f"'{LAYER}.self_attn.q_proj.weight': the plan states hidden = 96; other weights have 128")


def test_a_shape_alone_decides_for_the_plan() -> None:
    """Divided by columns where q_proj is usually by rows; only the plan's shape fits."""
    found = changed("self_attn.q_proj.weight", local=(QUERY, HIDDEN // 4), here=COLUMNS, there=COLUMNS)
    assert found.warnings == []
    assert found.judged == [
        "placement by shape: (160, 128) fits; (640, 32) of column-parallel does not",
        "shape by neighbouring weights",
    ]


def test_what_every_rank_holds_is_whole() -> None:
    found = changed("self_attn.q_proj.weight", local=(QUERY, HIDDEN), here=WHOLE, there=ROWS)
    assert found.judged == [
        "placement by shape: (160, 128) fits; (640, 128) of column-parallel does not",
        "shape by neighbouring weights",
    ]
    alone = {"x.q_proj.weight": Weight("x.q_proj.weight", (8, 8), (8, 8), 4, WHOLE, WHOLE, {})}
    assert said(alone, "x.q_proj.weight").judged == ["placement by data: every rank holds the same data"]


def test_one_device_needs_no_placement() -> None:
    found = changed("self_attn.o_proj.weight", local=(HIDDEN, QUERY), here=ONE_DEVICE, there=COLUMNS)
    assert found.judged == ["source: one device", "shape by neighbouring weights"] and found.warnings == []
    wrong = changed("self_attn.o_proj.weight", local=(HIDDEN, QUERY), here=ONE_DEVICE, there=ROWS)
    (only,) = wrong.warnings
    assert only.message == (
        f"'{LAYER}.self_attn.o_proj.weight': the destination divides it by rows, "
        "but its name suggests a row-parallel "
        "weight (o_proj); usual: row-parallel"
    )


def test_several_modes_of_the_mesh_are_not_judged() -> None:
    found = changed("self_attn.o_proj.weight", here=SEVERAL, there=SEVERAL, ranks=0)
    assert found.not_judged == ["placement by name: several modes of the mesh divide the weight"]
    assert found.judged == ["shape by neighbouring weights"] and found.warnings == []
    wrong = changed("self_attn.o_proj.weight", shape=(96, QUERY), here=SEVERAL, there=SEVERAL, ranks=0)
    (only,) = wrong.warnings
    assert "its shape is (96, 160): hidden = 96; other weights have 128; its name suggests" in only.message
    assert "which fits" not in only.message


def test_a_destination_that_leaves_a_weight_whole() -> None:
    """Where it divides other weights, this one too; a table of tokens need not be divided."""
    found = changed("mlp.down_proj.weight", there=WHOLE)
    (only,) = found.warnings
    assert "the destination divides it by whole" in only.message
    weights = model() | {"embed_tokens.weight": weight("embed_tokens.weight", (1000, HIDDEN), ROWS, WHOLE)}
    assert said(weights, "embed_tokens.weight").warnings == []
    every = {name: replace(one, there=WHOLE) for name, one in model().items()}
    assert not any(one.warnings for one in judge(list(every.values())))
    one_device = {name: replace(one, there=ONE_DEVICE) for name, one in model().items()}
    assert not any(one.warnings for one in judge(list(one_device.values())))
    several = {name: replace(one, there=SEVERAL) for name, one in model().items()}
    assert not any(one.warnings for one in judge(list(several.values())))


def test_a_destination_of_another_division_of_the_role() -> None:
    assert changed("self_attn.k_proj.weight", there=KV_HEADS).warnings == []
    (only,) = changed("self_attn.q_proj.weight", there=KV_HEADS).warnings
    assert (
        "the destination divides it by KV heads, but its name suggests a column-parallel weight (q_proj)"
        in only.message
    )


def test_names_and_dimensions_that_have_no_role() -> None:
    weights = model() | {
        "other.weight": weight("other.weight", (8, 8), ROWS),
        "mlp.fc1.weight": weight("mlp.fc1.weight", (4, 8, 8), ROWS),
    }
    assert said(weights, "other.weight").not_judged == ["placement by name: no role has this name"]
    three = said(weights, "mlp.fc1.weight")
    assert three.not_judged == ["placement by name: it has 3 dimensions; its role has 2"]
    assert three.judged == [] and three.warnings == []


def test_a_note_is_said_where_the_source_is_divided() -> None:
    fused = weight("self_attn.query_key_value.weight", (QUERY + 2 * KEY, HIDDEN), ROWS)
    found = said(model() | {"x": fused}, "x")
    assert found.not_judged == [
        "order of the rows: the rows are Q, K and V alternating by group of heads (column-parallel), "
        "or all of Q first (fused-qkv)"
    ]
    assert found.judged[0] == "placement by name: column-parallel"
    whole = said(model() | {"x": replace(fused, here=ONE_DEVICE)}, "x")
    assert whole.not_judged == []


def fused(query: int, key: int, value: int, here: str = QKV) -> Weight:
    made = weight("self_attn.qkv_proj.weight", (query + key + value, HIDDEN), here)
    return replace(made, sections={"q": query, "k": key, "v": value} if here == QKV else {})


def fused_model(one: Weight) -> dict[str, Weight]:
    """Two more weights say how many rows Q has; nothing else says how many K has."""
    weights = {
        name: w for name, w in model().items() if "q_proj" not in name and "k_proj" not in name and "v_proj" not in name
    }
    weights["self_attn.dense.weight"] = weight("self_attn.dense.weight", (HIDDEN, QUERY), COLUMNS)
    return weights | {"qkv": one}


def test_sections_of_a_fused_weight_are_sizes() -> None:
    found = said(fused_model(fused(QUERY, KEY, KEY)), "qkv")
    assert found.judged == [
        "placement by name: fused-qkv(heads=..., kv_heads=..., head_dim=...)",
        "shape by neighbouring weights",
    ]
    (only,) = said(fused_model(fused(96, 64, 64)), "qkv").warnings
    assert only.message.endswith("the plan states query rows = 96; other weights have 160")


def test_a_fused_weight_is_offered_its_numbers() -> None:
    (only,) = said(fused_model(fused(QUERY, KEY, KEY, ROWS)), "qkv").warnings
    assert only.fixes == (
        FUSED,
        "SectionedShard(0, (160, 32, 32)), if ranks do not share KV heads",
    )
    assert "its shape does not decide; its name suggests a fused-qkv weight (qkv_proj); usual: " in only.message
    for rows in (QUERY, QUERY + 3):  # no rest, and one that is no two sections
        odd = replace(fused(QUERY, KEY, KEY, ROWS), shape=(rows, HIDDEN))
        (only,) = said(fused_model(odd), "qkv").warnings
        assert only.fixes == (FUSED,)


def test_gate_and_up_are_twice_the_size() -> None:
    weights = {k: v for k, v in model().items() if "gate" not in k and "up_proj" not in k}
    weights["x"] = weight("mlp.w1.weight", (INNER, HIDDEN), ROWS)
    weights["both"] = weight("mlp.gate_up_proj.weight", (2 * INNER, HIDDEN), GATE_UP)
    assert said(weights, "both").judged == ["placement by name: gate-up", "shape by neighbouring weights"]
    weights["both"] = weight("mlp.gate_up_proj.weight", (2 * INNER + 64, HIDDEN), GATE_UP)
    (only,) = said(weights, "both").warnings
    assert "the plan states intermediate = 352; other weights have 320" in only.message


def by_rows() -> dict[str, Weight]:
    """All are divided by rows, as FSDP does."""
    weights = model()
    for name in ("self_attn.o_proj.weight", "mlp.down_proj.weight"):
        whole = weights[name].shape
        weights[name] = replace(weights[name], local=(whole[0] // 4, whole[1]), here=ROWS, there=ROWS)
    return weights


def test_a_checkpoint_that_is_divided_by_rows() -> None:
    weights = by_rows()
    found = said(weights, "self_attn.o_proj.weight")
    assert found.warnings == []
    assert found.judged[0] == "placement by shape: (128, 160) fits; (32, 640) of row-parallel does not"
    weights["both"] = weight("mlp.gate_up_proj.weight", (2 * INNER, HIDDEN), ROWS)
    beside = said(weights, "both")
    assert beside.judged[0] == "placement by neighbouring weights: all are divided by rows"
    assert beside.warnings == []
    weights["qkv"] = fused(QUERY, KEY, KEY, ROWS)
    assert said(weights, "qkv").judged[0] == "placement by neighbouring weights: all are divided by rows"
    copied = model() | {"both": weights["both"]}
    name = "self_attn.o_proj.weight"
    copied[name] = replace(copied[name], local=(HIDDEN, QUERY), here=WHOLE)
    assert len(said(copied, "both").warnings) == 1  # a copy on every rank is no division by rows
    usual = model() | {"both": weights["both"]}
    (only,) = said(usual, "both").warnings
    assert only.fixes == ("gate-up",)


# ---- scopes and votes


def test_sizes_of_a_layer_do_not_count_for_another_stack() -> None:
    """Two towers of one checkpoint: each has its own hidden size; what stands outside belongs to the nearest."""
    weights = []
    for tower, hidden in (("vision", 64), ("language.model", 128)):
        for layer in (0, 1):
            at = f"{tower}.layers.{layer}"
            weights += [
                Weight(f"{at}.attn.q_proj.weight", (hidden, hidden), (hidden // 4, hidden), 4, ROWS, ROWS, {}),
                Weight(f"{at}.attn.o_proj.weight", (hidden, hidden), (hidden, hidden // 4), 4, COLUMNS, COLUMNS, {}),
                Weight(f"{at}.norm.weight", (hidden,), (hidden,), 4, WHOLE, WHOLE, {}),
            ]
    weights.append(Weight("vision.norm.weight", (64,), (64,), 4, WHOLE, WHOLE, {}))
    weights.append(Weight("language.model.norm.weight", (128,), (128,), 4, WHOLE, WHOLE, {}))
    weights.append(Weight("norm.weight", (77,), (77,), 4, WHOLE, WHOLE, {}))  # of neither, or of both
    assert [one.warnings for one in judge(weights)] == [[]] * len(weights)
    wrong = [*weights[:-3], Weight("vision.norm.weight", (128,), (128,), 4, WHOLE, WHOLE, {})]
    (only,) = judge(wrong)[-1].warnings
    assert "hidden = 128; other weights have 64" in only.message
    assert "shape by neighbouring weights" not in judge(weights)[-1].judged


def test_without_layers_all_weights_share_the_model_s_sizes() -> None:
    names = ("a.q_proj.weight", "b.q_proj.weight", "c.q_proj.weight")
    weights = [Weight(name, (8, n), (2, n), 4, ROWS, ROWS, {}) for name, n in zip(names, (16, 16, 24), strict=True)]
    assert [len(one.warnings) for one in judge(weights)] == [0, 0, 1]
    assert "hidden = 24; other weights have 16" in judge(weights)[2].warnings[0].message


def test_one_vote_decides_nothing_and_equal_votes_neither() -> None:
    def hidden(*sizes: int) -> list[int]:
        weights = [Weight(f"a.{i}.fc1.weight", (8, n), (2, n), 4, ROWS, ROWS, {}) for i, n in enumerate(sizes)]
        return [len(one.warnings) for one in judge(weights)]

    assert hidden(16, 24) == [0, 0]
    assert hidden(16, 16, 24, 24) == [0, 0, 0, 0]
    assert hidden(16, 16, 24) == [0, 0, 1]
    assert hidden(16, 16, 24, 24, 24) == [1, 1, 0, 0, 0]


def test_sizes_of_a_module_are_its_own() -> None:
    """Rows of Q may differ from layer to layer, and those of one layer must agree."""
    weights = []
    for layer, query in ((0, 64), (1, 96)):
        at = f"m.layers.{layer}.attn"
        weights += [
            Weight(f"{at}.q_proj.weight", (query, 128), (query // 4, 128), 4, ROWS, ROWS, {}),
            Weight(f"{at}.o_proj.weight", (128, query), (128, query // 4), 4, COLUMNS, COLUMNS, {}),
            Weight(f"{at}.dense.weight", (128, query), (128, query // 4), 4, COLUMNS, COLUMNS, {}),
        ]
    assert [one.warnings for one in judge(weights)] == [[]] * 6
    weights[2] = replace(weights[2], shape=(128, 96), local=(128, 24))
    assert [len(one.warnings) for one in judge(weights)] == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("layer", ["layers.0", "h.12", "٣", "layers.x", "²"])
def test_layers_have_numbers_of_ascii_digits(layer: str) -> None:
    """A weight beside the layers belongs to them; where nothing is numbered, all weights are of one stack."""
    inside = [Weight(f"m.{layer}.{n}.fc1.weight", (8, 16), (2, 16), 4, ROWS, ROWS, {}) for n in "abc"]
    outside = Weight("m.norm.weight", (24,), (24,), 4, WHOLE, WHOLE, {})
    (only,) = judge([*inside, outside])[-1].warnings
    assert "hidden = 24; other weights have 16" in only.message
    numbered = layer in ("layers.0", "h.12")
    apart = [Weight(f"n.{layer}.fc1.weight", (8, 24), (2, 24), 4, ROWS, ROWS, {})]
    assert len(judge([*inside, *apart])[-1].warnings) == (0 if numbered else 1)


def test_shapes_as_the_role_says_count_as_votes() -> None:
    """Three weights that the plan divides in another way lead, by their roles, to one hidden size."""
    weights = [
        Weight("a.0.q_proj.weight", (64, 512), (64, 128), 4, COLUMNS, ROWS, {}),
        Weight("a.0.k_proj.weight", (16, 512), (16, 128), 4, COLUMNS, ROWS, {}),
        Weight("a.0.norm.weight", (128,), (128,), 4, WHOLE, WHOLE, {}),
    ]
    for one in judge(weights)[:2]:
        (only,) = one.warnings
        assert "hidden = 512; other weights have 128" in only.message and "which fits" in only.message
    unknown = [replace(one, ranks=0) for one in weights]
    assert "hidden = 128; other weights have 512" in judge(unknown)[2].warnings[0].message


@pytest.mark.parametrize(
    ("name", "local", "assumed"),
    [
        ("mlp.w2_weight", (8, 16, 32), (8, 16, 128)),
        ("mlp.gate_up_proj.weight", (16, 32), (64, 32)),
        ("mlp.up_proj.weight", (16, 32), (64, 32)),
        ("attn.o_proj.weight", (16, 32), (16, 128)),
        ("attn.qkv_proj.weight", (16, 32), (64, 32)),
        ("mlp.w13_weight", (8, 16, 32), (32, 16, 32)),
        ("norm.weight", (16,), (16,)),
    ],
)
def test_the_shape_that_a_role_leads_to(name: str, local: tuple[int, ...], assumed: tuple[int, ...]) -> None:
    """Where the plan's shape contradicts the others, the text has the role's shape if that fits."""
    role = role_of(f"m.layers.0.{name}")
    assert role is not None
    hidden = assumed[role.sizes.index("hidden")]
    votes = [Weight(f"m.layers.{i}.norm.weight", (hidden,), (hidden,), 4, WHOLE, WHOLE, {}) for i in range(5)]
    wrong = tuple(n * 4 if size == "hidden" else n for n, size in zip(local, role.sizes, strict=True))
    wrong = wrong if wrong != assumed else tuple(2 * n for n in wrong)
    one = Weight(f"m.layers.0.{name}", wrong, local, 4, "other", "other", {})
    if "hidden" in role.sizes and wrong[role.sizes.index("hidden")] == hidden:
        one = replace(one, shape=tuple(3 * n for n in wrong))
    found = judge([*votes, one])[-1].warnings[0].message
    assert f"with {role.placement} its shape is {assumed}, which fits" in found
