"""What reshard says of small checkpoints: what was judged, what was not, what is refused, and what it hints at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_py.diagnostics import Scope
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, FileFormatError, InvalidTypeError, InvalidValueError, LayoutError
from cute_py.mesh.files import Resharded, ReshardReport, _touched, read_plan, reshard
from cute_py.mesh.transfer import Transfer

safetensors = pytest.importorskip("safetensors.numpy")


def saved(folder: Path, shards: Sequence[Mapping[str, np.ndarray]], metadata: Sequence[Mapping[str, str]] = ()) -> None:
    for number, shard in enumerate(shards):
        plain = {name: array.copy(order="C") for name, array in shard.items()}
        safetensors.save_file(plain, folder / f"in-{number}", dict(metadata[number]) if metadata else None)


def plan(
    folder: Path, mesh: Any, to: Any, placements: Mapping[str, Any], destination: Mapping[str, Any] | None = None
) -> Path:
    """A plan file, with placements of its own for the destination where they are given."""

    def lines(of: Mapping[str, Any]) -> str:
        return "\n".join(f'"{name}" = {text!r}'.replace("'", '"') for name, text in of.items())

    path = folder / "plan.toml"
    path.write_text(
        f'[source]\nmesh = {mesh}\nfiles = "in-{{device}}"\n[source.placements]\n{lines(placements)}\n'
        f'[destination]\nmesh = {to}\nfiles = "out-{{device}}"\n'
        f"[destination.placements]\n{lines(placements if destination is None else destination)}\n"
    )
    return path


def written(folder: Path, count: int) -> list[dict[str, np.ndarray]]:
    return [safetensors.load_file(folder / f"out-{number}") for number in range(count)]


def rows(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def test_a_row_tells_what_was_written(tmp_path: Path) -> None:
    x = rows((8, 6))
    saved(tmp_path, [{"a.q_proj.weight": part, "s": np.array(3.0)} for part in np.split(x, 4)])
    steps: list[tuple[int, int]] = []
    done = reshard(
        read_plan(plan(tmp_path, 4, 2, {"a.*": "column-parallel", "s": "replicate"})),
        progress=lambda at, of: steps.append((at, of)),
    )
    first, second = sorted(done.tensors, key=lambda one: one.name)
    assert (first.name, first.shape, first.dtype) == ("a.q_proj.weight", (8, 6), as_dtype("float32"))
    assert (first.source, first.destination) == (("column-parallel",), ("column-parallel",))
    assert first.bytes_moved == (2 + 4) * 6 * 4  # rows 2 and 3 to device 0, rows 4 to 7 to device 1
    assert first.scope.judged == (
        "placement by name: column-parallel",
        "parts differ: 4 of them",
        "checksum: both sides agree",
    )
    assert second.scope.judged == ("copies are equal: 4 of each part", "checksum: both sides agree")
    assert second.scope.not_judged == ("placement by name: no role has this name",)
    assert (second.shape, second.bytes_moved) == ((), 0)
    assert all(
        np.array_equal(got["a.q_proj.weight"], half)
        for got, half in zip(written(tmp_path, 2), np.split(x, 2), strict=True)
    )
    total = 4 * (x.nbytes + 8)
    assert steps[-1] == (total, total)
    assert [at for at, _ in steps] == sorted(at for at, _ in steps)
    assert {(b - a) for (a, _), (b, _) in zip([(0, 0), *steps], steps, strict=False)} == {x.nbytes, 2 * x.nbytes, 8, 16}


def test_reports_count_tensors_and_list_three_names() -> None:
    def row(name: str, *judged: str, left: Sequence[str] = ()) -> Resharded:
        return Resharded(name, (2, 3), as_dtype("float16"), 0xABC, 6, scope=Scope(judged, tuple(left)))

    made = ReshardReport(
        (
            *tuple(row(n, "checksum: both", "parts differ: 2", left=("order: x",)) for n in "abcde"),
            row("f", "checksum: no"),
        ),
        (),
    )
    assert made.scope.judged == ("checksum (6 tensors)", "parts differ (5 tensors)")
    assert made.scope.not_judged == ("order: x (a, b, c and 2 more)",)
    assert str(row("a")) == "0000000000000abc  float16    2x3                a"
    assert str(Resharded("s", (), as_dtype("float64"), 1, 0)) == "0000000000000001  float64    scalar             s"
    assert str(made).split("\n")[0] == str(row("a")) and str(made).endswith(str(made.scope))
    three = ReshardReport(tuple(row(n, left=("y",)) for n in "abc"), ())
    assert three.scope.not_judged == ("y (a, b, c)",)


def test_two_modes_that_divide_a_tensor(tmp_path: Path) -> None:
    x = rows((8, 12))
    parts = [quarter for half in np.split(x, 2) for quarter in np.split(half, 3, axis=1)]
    saved(tmp_path, [{"a.q_proj.weight": part} for part in parts])
    done = reshard(read_plan(plan(tmp_path, [2, 3], [3, 1], {"*": ["Shard(0)", "Shard(1)"]})))
    (one,) = done.tensors
    assert "placement by name: several modes of the mesh divide the weight" in one.scope.not_judged
    got = [one["a.q_proj.weight"] for one in written(tmp_path, 3)]
    assert np.array_equal(np.concatenate(got), x)
    assert done.warnings == ()


def test_a_mode_of_one_device_divides_nothing(tmp_path: Path) -> None:
    x = rows((8, 12))
    saved(tmp_path, [{"a.o_proj.weight": part} for part in np.split(x, 2, axis=1)])
    placements = {"*": ["Shard(0)", "Shard(1)"]}
    (one,) = reshard(read_plan(plan(tmp_path, [1, 2], [1, 1], placements))).tensors
    assert "placement by name: row-parallel" in one.scope.judged
    saved(tmp_path, [{"a.o_proj.weight": x}])
    (alone,) = reshard(read_plan(plan(tmp_path, [1, 1], [1, 2], placements)), force=True, overwrite=True).tensors
    assert "source: one device" in alone.scope.judged


def refusal(folder: Path, mesh: Any, to: Any, placements: Mapping[str, Any], *more: Any, **options: Any) -> CuteError:
    with pytest.raises(CuteError) as caught:
        reshard(read_plan(plan(folder, mesh, to, placements, *more)), **options)
    assert not list(folder.glob("*out*"))
    return caught.value


def test_equal_parts_are_copies(tmp_path: Path) -> None:
    x = rows((2, 6))
    shards = [{"n": x, "a.q_proj.weight": x + (i // 2) * 100} for i in range(4)]
    saved(tmp_path, shards)
    found = refusal(tmp_path, 4, 2, {"n": "Shard(0)", "a.*": "Shard(0)"})
    assert isinstance(found, LayoutError)
    alike = {one.argument: one for one in found.diagnostics if one.rule == "reshard-alike"}
    every = [one for one in found.diagnostics if one.argument == "a.q_proj.weight"]
    assert alike["n"].message == (
        "'n': all 4 shards are byte-identical, but the plan divides the tensor; "
        "possible placements: replicate; --force accepts the shards as different parts"
    )
    assert alike["n"].fixes == ("replicate",)
    assert alike["n"].facts["files"] == f"{tmp_path / 'in-0'}, {tmp_path / 'in-1'}"
    assert [one.message for one in every] == [
        f"'a.q_proj.weight': the shards of devices {a}, {a + 1} are byte-identical, "
        "but the plan divides the tensor; possible placements: "
        "kv-heads(kv_heads=2); --force accepts the shards as different parts"
        for a in (0, 2)
    ]
    assert every[0].fixes == ("kv-heads(kv_heads=2)",)
    done = reshard(read_plan(plan(tmp_path, 4, 2, {"n": "Shard(0)", "a.*": "Shard(0)"})), force=True, overwrite=True)
    assert [one.rule for one in done.warnings] == ["reshard-alike"] * 3
    assert all(np.array_equal(one["n"], np.concatenate([x, x])) for one in written(tmp_path, 2))


def test_many_equal_parts_are_listed_shortly(tmp_path: Path) -> None:
    saved(tmp_path, [{"n": rows((1, 4)) + (100 if i == 0 else 0)} for i in range(11)])
    found = refusal(tmp_path, 11, 1, {"n": "Shard(0)"})
    assert "the shards of devices 1, 2, 3, 4, 5, 6, 7, 8, ... are byte-identical" in found.headline
    saved(tmp_path, [{"n": rows((1, 4)) + (100 if i == 0 else 0)} for i in range(9)])
    found = refusal(tmp_path, 9, 1, {"n": "Shard(0)"})
    assert "the shards of devices 1, 2, 3, 4, 5, 6, 7, 8 are byte-identical" in found.headline


def test_sections_of_equal_parts(tmp_path: Path) -> None:
    """K and V of one head on both ranks: as two heads they would be one below the other."""
    q, k, v = rows((4, 3)), rows((2, 3)) + 100, rows((2, 3)) + 200
    saved(tmp_path, [{"a.qkv_proj.weight": np.concatenate([half, k, v])} for half in np.split(q, 2)])
    found = refusal(tmp_path, 2, 1, {"*": "SectionedShard(0, (4, 4, 4))"})
    texts = [one.message for one in found.diagnostics]
    assert texts[0] == (
        "'a.qkv_proj.weight', section 1: all 2 shards are byte-identical, "
        "but the plan divides the tensor; possible placements: "
        "replicate; --force accepts the shards as different parts"
    )
    found = refusal(tmp_path, 2, 1, {"*": "fused-qkv(4, 4)"})
    assert isinstance(found, (LayoutError, InvalidValueError))
    found = refusal(tmp_path, 2, 1, {"*": "fused-qkv(4, 2, 1)"})
    assert isinstance(found, (LayoutError, InvalidValueError))
    done = reshard(read_plan(plan(tmp_path, 2, 1, {"*": "fused-qkv(2, 1)"})))
    assert np.array_equal(written(tmp_path, 1)[0]["a.qkv_proj.weight"], np.concatenate([q, k, v]))
    (one,) = done.tensors
    assert {
        "copies are equal: k: 2 of each part",
        "copies are equal: v: 2 of each part",
        "parts differ: q: 2 of them",
    } <= set(one.scope.judged)
    assert "copies are equal (1 tensor)" in done.scope.judged, "the sections k and v are of one tensor"


def test_equal_heads_are_offered_their_number(tmp_path: Path) -> None:
    q, k = rows((8, 3)), rows((4, 3)) + 100
    shards = [
        np.concatenate([part, k[2 * (i // 2) :][:2], k[2 * (i // 2) :][:2] + 50])
        for i, part in enumerate(np.split(q, 4))
    ]
    saved(tmp_path, [{"a.qkv_proj.weight": one} for one in shards])
    found = refusal(tmp_path, 4, 1, {"*": "fused-qkv(4, 4)"})
    alike = [one for one in found.diagnostics if one.rule == "reshard-alike"]
    assert {one.fixes for one in alike} == {("kv_heads=2 in fused-qkv",)}
    assert "section k: the shards of devices 0, 1 are byte-identical" in alike[0].message


def test_constant_parts_are_not_told_apart(tmp_path: Path) -> None:
    x = rows((4, 6)) + 1
    x[2:] = 0
    saved(tmp_path, [{"a.q_proj.weight": part} for part in np.split(x, 4)])
    (one,) = reshard(read_plan(plan(tmp_path, 4, 2, {"*": "Shard(0)"}))).tensors
    assert one.scope.not_judged == ("equal parts: several parts are constant and equal",)
    saved(tmp_path, [{"a.q_proj.weight": np.ones((2, 6), np.float32)}] * 4)
    for path in tmp_path.glob("out-*"):
        path.unlink()
    found = refusal(tmp_path, 4, 2, {"*": "Shard(0)"})
    assert found.diagnostics[0].facts["elements"] == (
        "one constant value: the tensor is replicated, or these parts of it are constant"
    )


def test_a_part_that_one_device_holds_is_compared_with_nothing(tmp_path: Path) -> None:
    saved(tmp_path, [{"x": rows((1, 3))}, {"x": np.zeros((0, 3), np.float32)}])
    (one,) = reshard(read_plan(plan(tmp_path, 2, 1, {"*": "Shard(0)"}))).tensors
    assert one.scope.judged == ("checksum: both sides agree",)


def test_replicas_that_differ_hint_at_a_placement(tmp_path: Path) -> None:
    for name, hint in (
        ("a.o_proj.weight", "use a placement that divides it; row-parallel matches its name"),
        ("a.norm.weight", None),
        ("other", None),
    ):
        saved(tmp_path, [{name: rows((2, 4)) + i} for i in range(2)])
        found = refusal(tmp_path, 2, 1, {"*": "replicate"})
        assert type(found) is FileFormatError and found.hint == hint
        assert found.headline == f"'{name}': {tmp_path / 'in-1'} and {tmp_path / 'in-0'} hold the same part, but differ"


def test_files_with_other_tensors(tmp_path: Path) -> None:
    saved(tmp_path, [{"a": rows((2,)), "b": rows((2,))}, {"b": rows((2,)), "c": rows((2,))}])
    found = refusal(tmp_path, 2, 1, {"*": "replicate"})
    assert [one.message for one in found.diagnostics] == [
        f"{tmp_path / 'in-0'} has no tensor 'c'",
        f"{tmp_path / 'in-1'} has no tensor 'a'",
    ]
    assert found.headline.startswith("some files lack some of the tensors")
    saved(tmp_path, [{"a": rows((2,))}, {"a": rows((2,), np.int32)}])
    found = refusal(tmp_path, 2, 1, {"*": "Shard(0)"})
    assert found.headline == "'a' has several element types: float32, int32"


def test_tensors_without_a_placement_on_either_side(tmp_path: Path) -> None:
    saved(tmp_path, [{"a.q_proj.weight": rows((2, 2)), "b": rows((2,))}])
    for here, there in (({"a*": "Shard(0)"}, {"*": "Shard(0)"}), ({"*": "Shard(0)"}, {"a*": "Shard(0)"})):
        found = refusal(tmp_path, 1, 2, here, there)
        assert type(found) is InvalidValueError
        (one,) = found.diagnostics
        assert (one.rule, one.message) == ("reshard-placement", "no placement matches 'b'")
        assert one.fixes == ('"b" = "replicate", if every rank holds the whole tensor',)
    found = refusal(tmp_path, 1, 2, {"b": "replicate"})
    assert found.diagnostics[0].fixes == ('"a.q_proj.weight" = "column-parallel"',)


def test_metadata_that_all_files_share(tmp_path: Path) -> None:
    saved(tmp_path, [{"a": rows((2,))}] * 2, [{"k": "v", "r": "0", "x": "y"}, {"k": "v", "r": "1"}])
    done = reshard(read_plan(plan(tmp_path, 2, 2, {"*": "replicate"})))
    warnings = sorted(done.warnings, key=lambda one: str(one.argument))
    assert [(one.rule, one.argument, one.severity) for one in warnings] == [
        ("reshard-metadata", "r", "warning"),
        ("reshard-metadata", "x", "warning"),
    ]
    assert warnings[0].message == "metadata 'r' differs between files, so it is not written"
    for number in range(2):
        with pytest.importorskip("safetensors").safe_open(tmp_path / f"out-{number}", "numpy") as file:
            assert file.metadata() == {"k": "v"}


def test_sections_on_one_side_alone(tmp_path: Path) -> None:
    """The other side takes the sections where each device has all, in either direction; else all rows as one."""
    x = rows((12, 4))
    gate, up = np.split(x, 2)
    shards = [np.concatenate([np.split(gate, 3)[i], np.split(up, 3)[i]]) for i in range(3)]
    saved(tmp_path, [{"a.gate_up_proj.weight": one} for one in shards])
    reshard(read_plan(plan(tmp_path, 3, 2, {"*": "gate-up"}, {"*": "replicate"})))
    assert all(np.array_equal(one["a.gate_up_proj.weight"], x) for one in written(tmp_path, 2))
    reshard(read_plan(plan(tmp_path, 3, 2, {"*": "gate-up"}, {"*": "Shard(0)"})), force=True, overwrite=True)
    assert np.array_equal(np.concatenate([one["a.gate_up_proj.weight"] for one in written(tmp_path, 2)]), x)
    saved(tmp_path, [{"a.gate_up_proj.weight": x}] * 2)
    reshard(read_plan(plan(tmp_path, 2, 3, {"*": "replicate"}, {"*": "gate-up"})), force=True, overwrite=True)
    for got, wanted in zip(written(tmp_path, 3), shards, strict=True):
        assert np.array_equal(got["a.gate_up_proj.weight"], wanted)
    reshard(read_plan(plan(tmp_path, 2, 4, {"*": "replicate"}, {"*": "kv-heads(2)"})), force=True, overwrite=True)
    for i, got in enumerate(written(tmp_path, 4)):
        assert np.array_equal(got["a.gate_up_proj.weight"], np.split(x, 2)[i // 2])


def test_options_are_checked(tmp_path: Path) -> None:
    saved(tmp_path, [{"a": rows((2,))}])
    one = read_plan(plan(tmp_path, 1, 1, {"*": "replicate"}))
    with pytest.raises(InvalidValueError, match=r"memory = 1048575 bytes; must be at least 1048576"):
        reshard(one, (1 << 20) - 1)
    with pytest.raises(InvalidTypeError, match="force must be a bool"):
        reshard(one, force=1)  # type: ignore[arg-type]
    assert reshard(one, 1 << 20).warnings == ()


def test_pages_that_a_transfer_touches() -> None:
    """Each run of neighbours is in whole pages, and may begin and end within one; on both sides."""
    page = 4096
    whole = Transfer(0, 1, 1000, 0, 0, ((1000, 1, 1),))  # type: ignore[arg-type]
    assert _touched(whole, 4) == 2 * (4000 + 2 * page)
    turned = Transfer(0, 1, 6, 0, 0, ((2, 1, 3), (3, 2, 1)))  # type: ignore[arg-type]
    assert _touched(turned, 4) == (24 + 2 * page) + 2 * (12 + 2 * page)
    rows_of_4 = Transfer(0, 1, 12, 0, 0, ((4, 1, 1), (3, 4, 10)))  # type: ignore[arg-type]
    assert _touched(rows_of_4, 2) == (24 + 2 * page) + 3 * (8 + 2 * page)
    assert _touched(Transfer(0, 1, 1, 5, 5, ()), 8) == 2 * (8 + 2 * page)
