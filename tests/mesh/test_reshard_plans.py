"""Plans of reshard: placements by name, sections of fused weights, shapes of wholes and parts, refusals in words."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cute_py.errors import CuteError, FileFormatError, InvalidValueError, LayoutError
from cute_py.mesh import BlockCyclic, Replicate, SectionedShard, Shard
from cute_py.mesh.reshard_plan import MeshSide, RowSpan, held_shape, plain_placements, read_plan
from cute_py.mesh.weight_placements import (
    NAMED_PLACEMENTS,
    FusedQkv,
    GateUp,
    KvHeads,
    Section,
    Sections,
    listed_placements,
    parse_weight_placement,
)


def side(mesh: tuple[int, ...], *texts: str) -> MeshSide:
    count = int(np.prod(mesh))
    return MeshSide(mesh, tuple(Path(f"{i}.safetensors") for i in range(count)), (("*", texts),))


# ---- placements by name


@pytest.mark.parametrize(
    ("text", "rank", "placement"),
    [
        ("replicate", 2, Replicate()),
        ("column-parallel", 2, Shard(0)),
        ("row-parallel", 2, Shard(1)),
        ("row-parallel", 3, Shard(2)),
        ("row-parallel", 1, Shard(0)),
        ("row-parallel", 0, Shard(0)),
        ("embedding", 2, Shard(0)),
        ("gate-up", 2, GateUp()),
        ("gate-up()", 2, GateUp()),
        (" fused-qkv ( 32 , 8 ) ", 2, FusedQkv(32, 8)),
        ("fused-qkv(heads=32, kv_heads=8, head_dim=128)", 2, FusedQkv(32, 8, 128)),
        ("fused-qkv(32, kv_heads=8)", 2, FusedQkv(32, 8)),
        ("kv-heads(4)", 2, KvHeads(4)),
        ("kv-heads(4, 64)", 2, KvHeads(4, 64)),
        ("Shard(1)", 2, Shard(1)),
        ("BlockCyclic(0, 64)", 2, BlockCyclic(0, 64)),
        ("SectionedShard(0, (4, 2))", 2, Sections((4, 2))),
        ("SectionedShard(1, (4, 2))", 2, SectionedShard(1, (4, 2))),
    ],
)
def test_texts_of_placements(text: str, rank: int, placement: Any) -> None:
    assert parse_weight_placement(text, rank) == placement


@pytest.mark.parametrize(
    ("text", "headline", "hint"),
    [
        (
            "fused-qkv(32)",
            "x: 'fused-qkv(32)'; fused-qkv takes (heads, kv_heads, head_dim)",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        (
            "fused-qkv(1, 2, 3, 4)",
            "x: 'fused-qkv(1, 2, 3, 4)'; fused-qkv takes (heads, kv_heads, head_dim)",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        (
            "fused-qkv(32, 8, dim=3)",
            "x: 'fused-qkv(32, 8, dim=3)'; fused-qkv takes (heads, kv_heads, head_dim)",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        (
            "fused-qkv(32, kv_heads=0)",
            "x: 'fused-qkv(32, kv_heads=0)'; fused-qkv takes (heads, kv_heads, head_dim) (kv_heads = 0; must be 1 to "
            "999999)",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        (
            "fused-qkv(32, 1000000)",
            "x: 'fused-qkv(32, 1000000)'; fused-qkv takes (heads, kv_heads, head_dim) (kv_heads = 1000000; must be 1 "
            "to 999999)",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        (
            "fused-qkv(32, 'a')",
            "x: \"fused-qkv(32, 'a')\"; fused-qkv takes (heads, kv_heads, head_dim)",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        ("kv-heads()", "x: 'kv-heads()'; kv-heads takes (kv_heads, head_dim)", "kv-heads(kv_heads=4, head_dim=128)"),
        (
            "kv-heads(4 4)",
            "x: 'kv-heads(4 4)'; kv-heads takes (kv_heads, head_dim)",
            "kv-heads(kv_heads=4, head_dim=128)",
        ),
        ("replicate(1)", "x: 'replicate(1)'; replicate takes no arguments", "replicate"),
        ("row_parallel", "x: 'row_parallel' is not a placement", "row-parallel"),
        (
            "fused_qkv(32, 8)",
            "x: 'fused_qkv(32, 8)' is not a placement",
            "fused-qkv(heads=32, kv_heads=8, head_dim=128)",
        ),
        ("Shards(0)", "x: 'Shards(0)' is not a placement", "Shard(0)"),
        ("shard", "x: 'shard' is not a placement", "Shard(0)"),
        ("zzz", "x: 'zzz' is not a placement", None),
        ("", "x: '' is not a placement", None),
    ],
)
def test_texts_that_are_no_placement(text: str, headline: str, hint: str | None) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_weight_placement(text, 2, "x")
    assert (caught.value.headline, caught.value.hint) == (headline, hint)
    if "is not a placement" in headline:
        known = str(caught.value.facts["known"]).split(", ")
        assert known == [
            *NAMED_PLACEMENTS,
            "Shard",
            "BlockCyclic",
            "StridedShard",
            "Zigzag",
            "SectionedShard",
            "Replicate",
        ]


def test_the_table_is_listed_for_help() -> None:
    lines = listed_placements(60).split("\n")
    assert [line.strip() for line in lines if line.startswith("  ") and line[2] != " "] == [
        row.form for row in NAMED_PLACEMENTS.values()
    ]
    assert all(len(line) <= 60 for line in lines)
    for row in NAMED_PLACEMENTS.values():
        text = " ".join(line.strip() for line in lines)
        assert row.meaning in text
    assert NAMED_PLACEMENTS["kv-heads"].form == "kv-heads(kv_heads=4, head_dim=128)"
    assert NAMED_PLACEMENTS["gate-up"].form == "gate-up"


# ---- sections


def test_sections_over_ranks() -> None:
    assert Section("x", 12).over(5) == ((5,), (Shard(0),))
    assert Section("q", 12, 8).over(4) == ((4,), (Shard(0),))
    assert Section("q", 12, 4).over(4) == ((4,), (Shard(0),))
    assert Section("k", 12, 4, True).over(8) == ((4, 2), (Shard(0), Replicate()))
    assert Section("k", 12, 1, True).over(8) == ((1, 8), (Shard(0), Replicate()))
    for section, ranks, text in (
        (Section("q", 12, 4), 8, "q: 4 heads for 8 ranks; must be a multiple of the ranks"),
        (Section("k", 12, 1), 2, "k: 1 head for 2 ranks; must be a multiple of the ranks"),
        (Section("k", 12, 3, True), 8, "k: 3 heads for 8 ranks; must be a multiple of the ranks, or a divisor"),
        (Section("k", 12, 6, True), 4, "k: 6 heads for 4 ranks; must be a multiple of the ranks, or a divisor"),
    ):
        with pytest.raises(InvalidValueError) as caught:
            section.over(ranks)
        assert caught.value.headline == text


def test_rows_of_fused_weights() -> None:
    assert GateUp().whole_rows([5, 5, 4]) == 14
    assert GateUp().sections(14) == (Section("gate", 7), Section("up", 7))
    assert GateUp().sections(15) == (Section("gate", 7), Section("up", 8))
    assert Sections((4, 2)).whole_rows([3, 3]) == 6
    assert Sections((4, 2)).sections(6) == (Section("section 0", 4), Section("section 1", 2))
    qkv = FusedQkv(32, 4)
    assert qkv.whole_rows([48] * 8) == (32 + 8) * 8
    assert qkv.whole_rows([80] * 4) == 320
    assert qkv.sections(320) == (
        Section("q", 256, 32),
        Section("k", 32, 4, True),
        Section("v", 32, 4, True),
    )
    assert FusedQkv(32, 8).whole_rows([96] * 4) == 48 * 8
    assert KvHeads(4).whole_rows([8] * 8) == 32
    assert KvHeads(8).whole_rows([16] * 4) == 64
    assert KvHeads(4).sections(32) == (Section("kv", 32, 4, True),)
    for call, text in (
        (lambda: Sections((4, 2)).sections(7), "the sections have 6 elements; must have 7, like the dimension"),
        (lambda: qkv.whole_rows([47] * 8), "the weight has 47 rows; must have 4 + 2 x 1 heads of a rank, of one size"),
        (
            lambda: FusedQkv(32, 4, 4).whole_rows([48] * 8),
            "the weight has 48 rows; must have 4 + 2 x 1 heads of a rank, of 4 rows",
        ),
        (lambda: qkv.sections(321), "the weight has 321 rows; must have 32 + 2 x 4 heads, of one size"),
        (lambda: FusedQkv(32, 4, 4).sections(320), "the weight has 320 rows; must have 32 + 2 x 4 heads, of 4 rows"),
        (lambda: FusedQkv(12, 4).whole_rows([8] * 8), "q: 12 heads for 8 ranks; must be a multiple of the ranks"),
        (
            lambda: FusedQkv(16, 3).whole_rows([8] * 8),
            "k: 3 heads for 8 ranks; must be a multiple of the ranks, or a divisor",
        ),
        (
            lambda: KvHeads(3).whole_rows([8] * 8),
            "kv: 3 heads for 8 ranks; must be a multiple of the ranks, or a divisor",
        ),
        (lambda: KvHeads(4, 4).whole_rows([8] * 8), "the weight has 8 rows; must have 1 head of a rank, of 4 rows"),
        (lambda: KvHeads(16).whole_rows([9] * 8), "the weight has 9 rows; must have 2 heads of a rank, of one size"),
        (lambda: KvHeads(4).sections(33), "the weight has 33 rows; must have 4 heads, of one size"),
        (lambda: KvHeads(4, 7).sections(32), "the weight has 32 rows; must have 4 heads, of 7 rows"),
    ):
        with pytest.raises(InvalidValueError) as caught:
            call()
        assert caught.value.headline == text
    assert FusedQkv(32, 4, 8).sections(320)[0].rows == 256 and KvHeads(4, 8).sections(32)[0].rows == 32


# ---- sides


def parts_of(part: RowSpan) -> Any:
    return part.label, part.first_row, part.rows, part.layout.mesh_shape, part.layout.placements


def test_parts_of_a_tensor() -> None:
    (whole,) = side((4,), "Shard(1)").parts("x", (6, 8))
    assert parts_of(whole) == ("", 0, 6, (4,), (Shard(1),))
    gate, up = side((4,), "gate-up").parts("x", (12, 8))
    assert parts_of(gate) == ("gate", 0, 6, (4,), (Shard(0),))
    assert parts_of(up) == ("up", 6, 6, (4,), (Shard(0),))
    q, k, v = side((2, 8), "Replicate()", "fused-qkv(16, 4)").parts("x", (48, 8))
    assert parts_of(q) == ("q", 0, 32, (2, 8), (Replicate(), Shard(0)))
    assert parts_of(k) == ("k", 32, 8, (2, 4, 2), (Replicate(), Shard(0), Replicate()))
    assert parts_of(v) == ("v", 40, 8, (2, 4, 2), (Replicate(), Shard(0), Replicate()))
    one, two = side((2, 3), "SectionedShard(0, (4, 8))", "Shard(1)").parts("x", (12, 9))
    assert parts_of(one) == ("section 0", 0, 4, (2, 3), (Shard(0), Shard(1)))
    assert parts_of(two) == ("section 1", 4, 8, (2, 3), (Shard(0), Shard(1)))
    (joined,) = side((2, 2), "SectionedShard(0, (4, 8))", "Shard(0)").parts("x", (12,))
    assert parts_of(joined) == ("", 0, 12, (2, 2), (SectionedShard(0, (4, 8)), Shard(0)))
    (scalar,) = side((2,), "replicate").parts("x", ())
    assert scalar.rows == 0
    assert plain_placements([Sections((1, 2)), Shard(1)]) == [SectionedShard(0, (1, 2)), Shard(1)]
    for texts, text in (
        (("gate-up", "Shard(0)"), "two modes of the mesh divide the rows, but only SectionedShard may be one of them"),
        (
            ("Shard(0)", "kv-heads(4)"),
            "two modes of the mesh divide the rows, but only SectionedShard may be one of them",
        ),
        (
            ("SectionedShard(0, (4, 8))", "gate-up"),
            "two modes of the mesh divide the rows, but only SectionedShard may be",
        ),
        (("SectionedShard(0, (4, 9))", "Shard(1)"), "the sections have 13 elements; must have 12, like the dimension"),
    ):
        with pytest.raises(InvalidValueError) as caught:
            side((2, 2), *texts).parts("x", (12, 8))
        assert caught.value.headline.startswith(f"'x' of shape (12, 8): {text}")


def test_layouts_of_a_tensor() -> None:
    assert side((4,), "Shard(1)").layout("x", (6, 8)).placements == (Shard(1),)
    assert side((4,), "gate-up").layout("x", (12, 8)).placements == (SectionedShard(0, (6, 6)),)
    assert side((2, 2), "gate-up", "Shard(1)").layout("x", (12, 8)).placements == (SectionedShard(0, (6, 6)), Shard(1))
    assert side((2,), "fused-qkv(4, 2)").layout("x", (16, 8)).placements == (SectionedShard(0, (8, 4, 4)),)
    assert side((2,), "kv-heads(2)").layout("x", (16, 8)).placements == (SectionedShard(0, (16,)),)
    with pytest.raises(LayoutError) as caught:
        side((4,), "kv-heads(2)").layout("x", (16, 8))
    assert caught.value.headline == "'x': ranks share KV heads, but the other side is divided differently"
    assert caught.value.hint == "use the same placement on both sides, or 'replicate' on the other side"


def test_parts_where_each_device_has_all() -> None:
    parts = side((4,), "fused-qkv(4, 4)").parts("x", (24, 8))
    for mesh, texts in (((2,), ("replicate",)), ((1, 3), ("Shard(0)", "replicate")), ((1,), ("gate-up",))):
        found = side(mesh, *texts).whole("x", (24, 8), parts)
        assert found is not None
        assert [parts_of(one) for one in found] == [
            (part.label, part.first_row, part.rows, mesh, (Replicate(),) * len(mesh)) for part in parts
        ]
    assert side((2,), "Shard(0)").whole("x", (24, 8), parts) is None
    assert side((2, 2), "replicate", "Shard(1)").whole("x", (24, 8), parts) is None


@pytest.mark.parametrize("seed", range(40))
def test_the_shape_of_the_whole_follows_from_its_shards(seed: int) -> None:
    dice = Random(seed)
    mesh = dice.choice(((1,), (2,), (4,), (2, 2), (2, 4), (3,)))
    texts = []
    used = set()
    for _ in mesh:
        text = dice.choice(("Shard(0)", "Shard(1)", "replicate", "BlockCyclic(1, 2)", "gate-up", "kv-heads(2)"))
        if text in ("gate-up", "kv-heads(2)") and (0 in used or len(mesh) > 1):
            text = "replicate"
        used.add(int("(0" in text))
        texts.append(text)
    shape = dice.choice((8, 16, 12)), dice.choice((8, 7, 16))
    one = side(mesh, *texts)
    if any("kv" in text for text in texts) and mesh[0] == 3:
        return
    parts = one.parts("x", shape)
    shards = [held_shape(parts, device) for device in range(int(np.prod(mesh)))]
    assert one.shape_of("x", shards) == shape
    for device, shard in enumerate(shards):
        rows = sum(part.layout.local_shape(device)[0] for part in parts)
        assert shard == (rows, parts[0].layout.local_shape(device)[1])
    if len(shards) == 1:
        return
    wrong = [*shards]
    wrong[-1] = (shards[-1][0] + 1, shards[-1][1] + 1)
    with pytest.raises(CuteError):
        one.shape_of("x", wrong)


def test_shards_of_another_shape_are_named() -> None:
    with pytest.raises(LayoutError) as caught:
        side((2,), "Shard(0)").shape_of("x", [(3, 4), (3, 5)])
    assert caught.value.headline == "'x': the shard of device 1 has shape (3, 5); must be (3, 4)"
    assert caught.value.facts == {"file": "1.safetensors", "whole tensor": (6, 4), "placements": ("Shard(0)",)}
    with pytest.raises(InvalidValueError) as refused:
        side((2,), "fused-qkv(4, 2)").shape_of("x", [(9, 4), (9, 4)])
    assert refused.value.headline == (
        "'x', shards of shape (9, 4): the weight has 9 rows; must have 2 + 2 x 1 heads of a rank, of one size"
    )
    with pytest.raises(LayoutError):
        side((2,), "Shard(0)").shape_of("x", [(3, 4), (3,)])
    assert side((2, 2), "SectionedShard(0, (4, 4))", "Shard(0)").shape_of("x", [(2, 3)] * 4) == (8, 3)


def test_rules_are_tried_in_order() -> None:
    one = MeshSide((2,), (Path("a"), Path("b")), (("*.q.weight", ("Shard(0)",)), ("a.*", ("replicate",))))
    assert one.texts("a.q.weight") == ("Shard(0)",)
    assert one.texts("a.other") == ("replicate",) and one.texts("b.other") is None
    assert one.texts("A.other") is None
    assert one.placements("a.q.weight", 2) == (Shard(0),)
    with pytest.raises(InvalidValueError, match=r"^no placement matches 'b'$"):
        one.placements("b", 2)
    with pytest.raises(InvalidValueError, match="'b' is Partial, but files can hold only sums"):
        side((2,), "Partial()").placements("b", 2)


# ---- files of plans

TEXT = """
[source]
mesh = {mesh}
files = {files}
[destination]
mesh = 2
files = "out/{{device}}.st"
[placements]
"a*" = "Shard(0)"
"*" = {all}
"""


def written(
    tmp_path: Path, mesh: str = "[2, 2]", files: str = '"in-{device}"', every: str = '["Shard(0)", "replicate"]'
) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(TEXT.format(mesh=mesh, files=files, all=every))
    return path


def test_plans_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        """
[source]
mesh = [2, 2]
files = "in-{device}-{device}"
[source.placements]
"*" = ["Shard(0)", "replicate"]
"b" = "replicate"
[destination]
mesh = 2
files = ["x", "/y"]
[placements]
"a*" = "Shard(0)"
"""
    )
    plan = read_plan(path)
    assert plan.source.mesh_shape == (2, 2) and plan.destination.mesh_shape == (2,)
    assert plan.source.files == tuple(tmp_path / f"in-{i}-{i}" for i in range(4))
    assert plan.destination.files == (tmp_path / "x", Path("/y"))
    assert plan.source.rules == (("*", ("Shard(0)", "replicate")), ("b", ("replicate", "replicate")))
    assert plan.destination.rules == (("a*", ("Shard(0)",)),)
    one = written(tmp_path, "1", '"in"', '"replicate"')
    assert read_plan(one).source.files == (tmp_path / "in",)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mesh": '"x"'}, "[source] mesh"),
        ({"mesh": "[0]"}, "[source] mesh[0] = 0; must be 1 to 65536"),
        ({"mesh": "[65537]"}, "[source] mesh[0] = 65537; must be 1 to 65536"),
        ({"mesh": "[256, 257]"}, "[source] mesh = [256, 257]; must have 1 to 65536 devices"),
        ({"files": '"in"'}, "[source] files = 'in' for 4 devices; must contain {device}"),
        ({"files": '["a", "b"]'}, "[source] has 2 files for 4 devices; must have one path for each"),
        ({"files": '["a", "b", "c", 4]'}, "[source] has 4 files for 4 devices; must have one path for each"),
        ({"files": "3"}, "[source] files"),
        ({"every": '"Shard(0)"'}, "[source] has 1 placement for '*'; must have 2, one for each mode of the mesh"),
        ({"every": "3"}, "[source] placements of '*' = 3; must be a string or a list of strings"),
    ],
)
def test_plans_that_are_refused(tmp_path: Path, changes: dict[str, str], text: str) -> None:
    path = written(tmp_path, **changes)
    path.write_text(path.read_text().replace('"a*" = "Shard(0)"\n', ""))
    with pytest.raises(CuteError) as caught:
        read_plan(path)
    assert caught.value.headline.startswith(f"{path}: {text}")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("[source]", "[sources]", "unknown table 'sources'; must be source, destination or placements"),
        ('[destination]\nmesh = 2\nfiles = "out/{device}.st"\n', "", "[destination] is missing"),
        ("mesh = 2\n", "", "[destination] has no key 'mesh'"),
        ('files = "out/{device}.st"\n', "", "[destination] has no key 'files'"),
        ("mesh = 2\n", "mesh = 2\nmode = 1\n", "[destination]: unknown key 'mode'; must be mesh, files or placements"),
        (
            '"out/{device}.st"',
            '["x", "x"]',
            "[destination] files names one file for two devices; each device needs its own file",
        ),
        ('"out/{device}.st"', '["x", "y\\u0000"]', "[destination] files: a file name can't contain NUL"),
        ("mesh = 2", "mesh = = 2", "not valid TOML: "),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, old: str, new: str, text: str) -> None:
    path = written(tmp_path, "[2]", every='"replicate"')
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(FileFormatError) as caught:
        read_plan(path)
    assert caught.value.headline.startswith(f"{path}: {text}")


def test_plans_without_placements(tmp_path: Path) -> None:
    path = written(tmp_path, "[2]", every='"replicate"')
    path.write_text(path.read_text().split("[placements]")[0])
    with pytest.raises(FileFormatError) as caught:
        read_plan(path)
    assert caught.value.headline == (
        f"{path}: [source] has no placements; add lines 'pattern = placement' here or in [placements]"
    )
    path.write_text(path.read_text() + "[placements]\n")
    with pytest.raises(FileFormatError, match="has no placements"):
        read_plan(path)
    with pytest.raises(FileFormatError, match="can't be read: No such file or directory"):
        read_plan(tmp_path / "none")
    path.write_bytes(b"\xff")
    with pytest.raises(FileFormatError, match="not valid TOML"):
        read_plan(path)
