"""Checkpoints of models through `cute-py reshard`: right ones come back, and no wrong one is written with status 0."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from cute_py.cli import main
from cute_py.cli.files.reshard_command import _DESCRIPTION
from cute_py.errors import FileFormatError, InvalidValueError, LayoutError
from cute_py.mesh.files import read_plan, reshard
from cute_py.mesh.weight_placements import NAMED_PLACEMENTS
from cute_py.mesh.weight_roles import ROLES, role_of
from tests.mesh.checkpoints import FAMILIES, METADATA, Family, written_plan
from tests.shares import one_in

safetensors = pytest.importorskip("safetensors.numpy")

LLAMA, QWEN, GQA, GQA_APART, MOE = FAMILIES
SMALL_MOE = dataclasses.replace(MOE, name=f"{MOE.name}, small", experts=2, vocabulary=64)


def save(family: Family, whole: Mapping[str, np.ndarray], folder: Path, ranks: int, name: str) -> None:
    """The files of so many ranks, as the package writes them."""
    (folder / name).mkdir()
    for rank in range(ranks):
        path = folder / name / f"{rank}.safetensors"
        safetensors.save_file(family.shard(whole, ranks, rank), path, METADATA)


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.mark.parametrize(
    "family",
    [LLAMA, *(pytest.param(one, marks=pytest.mark.slow) for one in (QWEN, GQA, MOE, GQA_APART)), SMALL_MOE],
    ids=lambda one: one.name,
)
def test_eight_ranks_to_four_to_eight_and_to_one(
    family: Family, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole files are byte-identical to those that numpy's slices give, in each of the steps."""
    whole = family.whole()
    for ranks, name in ((8, "eight"), (4, "four"), (1, "one")):
        save(family, whole, tmp_path, ranks, name)
    for source, destination, wanted in (
        ((8, "eight"), (4, "to-four"), "four"),
        ((4, "to-four"), (8, "back"), "eight"),
        ((8, "eight"), (1, "to-one"), "one"),
        ((1, "to-one"), (8, "again"), "eight"),
    ):
        plan = written_plan(tmp_path, source, destination, family.plan)
        assert main(["reshard", str(plan), "--json"]) == 0, capsys.readouterr()
        assert contents(tmp_path / destination[1]) == contents(tmp_path / wanted), (source, destination)
        answer = json.loads(capsys.readouterr().out)
        assert answer["warnings"] == []
        assert answer["scope"]["not_judged"] == []
        for tensor in answer["tensors"]:
            assert tensor["placements"]["source"] == tensor["placements"]["destination"]
            assert len(tensor["scope"]["judged"]) >= 2, tensor


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.name)
def test_no_wrong_checkpoint_is_written_with_status_0(
    family: Family, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line of the plan with each other placement: what is written is right, or the status says otherwise."""
    small = dataclasses.replace(family, experts=min(family.experts, 2), vocabulary=64)
    whole = small.whole()
    save(small, whole, tmp_path, 8, "eight")
    save(small, whole, tmp_path, 4, "four")
    right = contents(tmp_path / "four")
    texts = [row.form for row in NAMED_PLACEMENTS.values() if not row.arguments]
    texts += [
        "fused-qkv(32, 8)",
        "fused-qkv(32, 4)",
        "fused-qkv(16, 8)",
        "kv-heads(2)",
        "kv-heads(8)",
        "BlockCyclic(0, 2)",
    ]
    statuses = []
    for pattern in small.plan:
        for text in texts:
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            plan = written_plan(tmp_path, (8, "eight"), (4, "out"), small.plan | {pattern: text})
            status = main(["reshard", str(plan), "--json"])
            statuses.append(status)
            answer = json.loads(capsys.readouterr().out)
            assert status or contents(tmp_path / "out") == right, (pattern, text, answer["scope"])
    assert {0, 1, 2} == set(statuses)


def first_lines(lines: Mapping[str, str], family: Family) -> dict[str, str]:
    """These lines, then those of the family's plan: the first that matches counts."""
    return {**lines, **{pattern: text for pattern, text in family.plan.items() if pattern not in lines}}


def changed(family: Family, folder: Path, lines: Mapping[str, str]) -> Path:
    save(family, family.whole(), folder, 8, "eight")
    return written_plan(
        folder,
        (8, "eight"),
        (4, "out"),
        first_lines(lines, family),
    )


def test_what_every_rank_holds_is_not_divided(tmp_path: Path) -> None:
    path = changed(LLAMA, tmp_path, {"model.norm.weight": "column-parallel"})
    with pytest.raises(LayoutError) as caught:
        reshard(read_plan(path))
    assert (
        "'model.norm.weight': all 8 shards are byte-identical, but the plan divides the tensor" in caught.value.headline
    )
    assert caught.value.hint == "replicate"
    assert list((tmp_path / "out").iterdir()) == []
    done = reshard(read_plan(path), force=True)
    assert [one.rule for one in done.warnings] == ["reshard-alike", "reshard-role"]
    assert main(["reshard", str(path)]) == 2
    assert main(["reshard", str(path), "--force", "--overwrite"]) == 0


def test_what_is_divided_is_not_held_by_every_rank(tmp_path: Path) -> None:
    path = changed(LLAMA, tmp_path, {"*.down_proj.weight": "replicate"})
    with pytest.raises(FileFormatError, match="hold the same part, but differ") as caught:
        reshard(read_plan(path), force=True)
    assert caught.value.hint == "use a placement that divides it; row-parallel matches its name"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("family", "pattern", "placement", "said", "fits"),
    one_in(
        2,
        [
            (LLAMA, "*.down_proj.weight", "column-parallel", "hidden = 1024; other weights have 128", "row-parallel"),
            (LLAMA, "*.q_proj.weight", "row-parallel", "hidden = 1024; other weights have 128", "column-parallel"),
            (LLAMA, "*embed_tokens.weight", "row-parallel", "(501, 1024): vocabulary", "embedding"),
            (QWEN, "*.gate_up_proj.weight", "column-parallel", "its shape does not decide", "gate-up"),
            (QWEN, "*.qkv_proj.weight", "column-parallel", "its shape does not decide", "fused-qkv(heads=...,"),
            (QWEN, "*.qkv_proj.weight", "fused-qkv(24, 16)", "query rows = 96; other weights have 160", None),
            (MOE, "*.w2.weight", "column-parallel", "hidden = 1024; other weights have 128", "row-parallel"),
        ],
    ),
)
def test_names_that_contradict_a_placement(
    family: Family, pattern: str, placement: str, said: str, fits: str | None, tmp_path: Path
) -> None:
    done = reshard(read_plan(changed(family, tmp_path, {pattern: placement})))
    assert done.warnings
    for one in done.warnings:
        assert one.rule == "reshard-role"
        assert said in one.message
        assert str(one.fixes[0]).startswith(fits) if fits else not one.fixes, one
        assert one.source


def test_ranks_that_share_heads_need_a_placement_that_says_so(tmp_path: Path) -> None:
    path = changed(GQA, tmp_path, {"*.qkv_proj.*": "fused-qkv(heads=32, kv_heads=8)"})
    with pytest.raises(LayoutError) as caught:
        reshard(read_plan(path))
    text = str(caught.value)
    assert "section k: the shards of devices 0, 1 are byte-identical" in text
    assert "kv_heads=4 in fused-qkv" in text
    path = written_plan(tmp_path, (8, "eight"), (4, "out"), GQA.plan | {"*.qkv_proj.*": "fused-qkv(32, 2)"})
    with pytest.raises(FileFormatError, match="hold the same part, but differ"):
        reshard(read_plan(path))


def test_heads_that_ranks_can_not_share(tmp_path: Path) -> None:
    for text, said in (
        ("fused-qkv(heads=32, kv_heads=3)", "k: 3 heads for 8 ranks; must be a multiple of the ranks, or a divisor"),
        ("fused-qkv(heads=4, kv_heads=4)", "q: 4 heads for 8 ranks; must be a multiple of the ranks"),
        ("fused-qkv(heads=32, kv_heads=4, head_dim=128)", "24 rows; must have 4 + 2 x 1 heads of a rank, of 128 rows"),
        ("fused-qkv(heads=32)", "fused-qkv takes (heads, kv_heads, head_dim)"),
        ("fused-qkv(heads=32, kv_heads=0)", "kv_heads = 0; must be 1 to"),
        ("gate-up(3)", "gate-up takes no arguments"),
    ):
        path = written_plan(tmp_path, (8, "eight"), (4, "out"), GQA.plan | {"*.qkv_proj.*": text})
        if not (tmp_path / "eight" / "0.safetensors").exists():
            for rank in range(8):
                shard = GQA.shard(GQA.whole(), 8, rank)
                safetensors.save_file(shard, tmp_path / "eight" / f"{rank}.safetensors")
        with pytest.raises(InvalidValueError) as caught:
            reshard(read_plan(path))
        assert said in caught.value.headline


def test_heads_that_ranks_share_and_another_division(tmp_path: Path) -> None:
    """One device takes the whole; eight that divide it in another way have no plan."""
    save(GQA, GQA.whole(), tmp_path, 8, "eight")
    path = written_plan(tmp_path, (8, "eight"), (1, "one"), GQA.plan)
    lines = "\n".join(f'"{pattern}" = "{text}"' for pattern, text in GQA.plan.items())
    path.write_text(
        path.read_text().replace("[placements]", "[source.placements]")
        + "\n[destination.placements]\n"
        + '"*" = "replicate"\n'
    )
    done = reshard(read_plan(path))
    whole = safetensors.load_file(tmp_path / "one" / "0.safetensors")
    assert all(np.array_equal(whole[name], wanted) for name, wanted in GQA.whole().items())
    assert done.warnings == ()
    path.write_text(
        path.read_text()
        .replace("mesh = [1]", "mesh = [2]")
        .replace(
            '"*" = "replicate"',
            f'"*.qkv_proj.*" = "Shard(0)"\n{lines}'.replace('"*.qkv_proj.*" = "fused', '"qkv" = "fused'),
        )
    )
    with pytest.raises(LayoutError, match="ranks share KV heads, but the other side is divided differently"):
        reshard(read_plan(path))


def test_every_tensor_without_a_pattern_is_listed(tmp_path: Path) -> None:
    path = written_plan(tmp_path, (8, "eight"), (4, "out"), {"*.q_proj.weight": "column-parallel"})
    for rank in range(8):
        names = ("a.q_proj.weight", "a.down_proj.weight", "a.other")
        shard = {name: np.full((2, 2), rank, np.float32) for name in names}
        safetensors.save_file(shard, tmp_path / "eight" / f"{rank}.safetensors")
    with pytest.raises(InvalidValueError, match="no pattern matches these tensors, so nothing is written") as caught:
        reshard(read_plan(path))
    assert [one.fixes for one in vars(caught.value)["diagnostics"]] == [
        ('"a.down_proj.weight" = "row-parallel"',),
        ('"a.other" = "replicate", if every rank holds the whole tensor',),
    ]


def test_a_checkpoint_that_is_divided_by_rows_is_no_tensor_parallelism(tmp_path: Path) -> None:
    """As FSDP divides: the shapes say so, and no name is warned about."""
    whole = QWEN.whole()
    (tmp_path / "eight").mkdir()
    for rank in range(8):
        shard = {name: np.split(x, 8)[rank] for name, x in whole.items()}
        safetensors.save_file(shard, tmp_path / "eight" / f"{rank}.safetensors")
    done = reshard(read_plan(written_plan(tmp_path, (8, "eight"), (4, "out"), {"*": "Shard(0)"})))
    assert done.warnings == ()
    for rank in range(4):
        got = safetensors.load_file(tmp_path / "out" / f"{rank}.safetensors")
        assert all(np.array_equal(got[name], np.split(x, 4)[rank]) for name, x in whole.items())


def test_the_destination_is_judged_by_name(tmp_path: Path) -> None:
    """One file is whole, whatever the plan says of it; eight files of another division are not what an engine reads."""
    save(LLAMA, LLAMA.whole(), tmp_path, 1, "one")
    path = written_plan(tmp_path, (1, "one"), (8, "out"), LLAMA.plan | {"*.o_proj.weight": "column-parallel"})
    done = reshard(read_plan(path))
    assert {one.argument for one in done.warnings} == {"model.layers.0.self_attn.o_proj.weight"}
    assert "the destination divides it by rows" in done.warnings[0].message


def test_constant_parts_are_not_judged(tmp_path: Path) -> None:
    """A padded vocabulary: the last ranks hold zeros alone. All ranks with the same constant are refused."""
    whole = LLAMA.whole()
    whole["model.embed_tokens.weight"][-1100:] = 0
    save(LLAMA, whole, tmp_path, 8, "eight")
    done = reshard(read_plan(written_plan(tmp_path, (8, "eight"), (4, "out"), LLAMA.plan)))
    (row,) = [one for one in done.tensors if one.name == "model.embed_tokens.weight"]
    assert row.scope.not_judged == ("equal parts: several parts are constant and equal",)
    assert "equal parts" in str(done.scope)
    whole["lm_head.weight"][:] = 1
    save(LLAMA, whole, tmp_path, 8, "ones")
    with pytest.raises(LayoutError, match="all 8 shards are byte-identical") as caught:
        reshard(read_plan(written_plan(tmp_path, (8, "ones"), (4, "others"), LLAMA.plan)))
    assert "one constant value: the tensor is replicated, or these" in str(caught.value)


def test_metadata_of_all_files_are_kept_and_others_are_said(tmp_path: Path) -> None:
    (tmp_path / "eight").mkdir()
    whole = LLAMA.whole()
    for rank in range(8):
        metadata = METADATA | {"rank": str(rank)}
        safetensors.save_file(LLAMA.shard(whole, 8, rank), tmp_path / "eight" / f"{rank}.safetensors", metadata)
    done = reshard(read_plan(written_plan(tmp_path, (8, "eight"), (4, "out"), LLAMA.plan)))
    assert [(one.rule, one.argument) for one in done.warnings] == [("reshard-metadata", "rank")]
    with pytest.importorskip("safetensors").safe_open(tmp_path / "out" / "0.safetensors", "numpy") as file:
        assert file.metadata() == METADATA


def test_names_of_help_and_hints_are_those_that_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["reshard", "--help"])
    text = capsys.readouterr().out
    for row in NAMED_PLACEMENTS.values():
        assert f"\n  {row.form}\n" in text
    save(LLAMA, LLAMA.whole(), tmp_path, 8, "eight")
    path = written_plan(tmp_path, (8, "eight"), (4, "out"), LLAMA.plan | {"*.o_proj.weight": "row_parallel"})
    with pytest.raises(InvalidValueError) as caught:
        reshard(read_plan(path))
    assert caught.value.hint == "row-parallel"
    for row in NAMED_PLACEMENTS.values():
        assert row.name in caught.value.facts["known"]  # type: ignore[operator]
    plan = _DESCRIPTION[_DESCRIPTION.index("  [source]") : _DESCRIPTION.index("The command refuses a tensor that")]
    (tmp_path / "to").mkdir()
    path.write_text(
        plan.replace("model-{device}-of-8", "eight/{device}").replace("out/model-{device}-of-4", "to/{device}")
    )
    assert main(["reshard", str(path)]) == 0
    save(LLAMA, LLAMA.whole(), tmp_path, 4, "four")
    assert contents(tmp_path / "to") == contents(tmp_path / "four")


def test_names_without_a_role_are_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written_plan(tmp_path, (8, "eight"), (4, "out"), {"*": "column-parallel"})
    for rank in range(8):
        safetensors.save_file({"a.b": np.full((2, 2), rank, np.float32)}, tmp_path / "eight" / f"{rank}.safetensors")
    assert main(["reshard", str(path)]) == 0
    assert "not judged: placement by name: no role has this name (a.b)" in capsys.readouterr().out
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").mkdir()
    assert main(["reshard", str(path), "--strict"]) == 1


def test_one_key_head_is_offered_as_such(tmp_path: Path) -> None:
    """Every rank has the same K and V, and other rows of Q."""
    one = dataclasses.replace(GQA, kv_heads=1)
    save(one, one.whole(), tmp_path, 8, "eight")
    plan = {"*.qkv_proj.*": "fused-qkv(32, 8)", **{k: v for k, v in one.plan.items() if "qkv" not in k}}
    with pytest.raises(LayoutError, match="kv_heads=1 in fused-qkv"):
        reshard(read_plan(written_plan(tmp_path, (8, "eight"), (4, "out"), plan)))
    assert reshard(read_plan(written_plan(tmp_path, (8, "eight"), (4, "out"), one.plan))).warnings == ()


@pytest.mark.parametrize("name", ["h.0.attn.c_attn.weight", "blocks.0.attn.to_qkv.weight", "a.in_proj_weight"])
def test_fused_weights_of_other_names_are_warned_about(name: str, tmp_path: Path) -> None:
    path = written_plan(tmp_path, (8, "eight"), (4, "out"), {"*": "column-parallel"})
    for rank in range(8):
        safetensors.save_file({name: np.full((6, 4), rank, np.float32)}, tmp_path / "eight" / f"{rank}.safetensors")
    (warning,) = reshard(read_plan(path)).warnings
    assert "its shape does not decide" in warning.message


def test_roles() -> None:
    names = [module for role in ROLES for module in role.modules]
    assert len(names) == len(set(names))
    bias = role_of("a.o_proj.bias")
    assert bias is not None and bias.placement == "replicate"
    assert role_of("a.q_proj.lora_A.weight") is None
    for role in ROLES:
        assert role.placement.partition("(")[0] in (*NAMED_PLACEMENTS, "Shard", "SectionedShard")
