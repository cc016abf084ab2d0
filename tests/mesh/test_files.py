"""Shards in files, from one mesh to another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cute_py.cli import main
from cute_py.errors import FileFormatError, InvalidValueError, LayoutError
from cute_py.mesh.files import read_plan, reshard, stored_tensors

safetensors = pytest.importorskip("safetensors.numpy")

PLAN = """
[source]
mesh = [4]
files = "in-{device}.safetensors"

[destination]
mesh = [2]
files = "out-{device}.safetensors"

[placements]
"*.qkv" = "SectionedShard(0, (8, 4, 4))"
"*.down" = "row-parallel"
"*.up" = "column-parallel"
"*" = "replicate"
"""

WHOLE = {
    "a.qkv": np.arange(16 * 6, dtype=np.float32).reshape(16, 6),
    "a.down": np.arange(6 * 10, dtype=np.float16).reshape(6, 10),
    "a.up": np.arange(12 * 6, dtype=np.int16).reshape(12, 6),
    "norm": np.arange(7, dtype=np.float64),
    "step": np.array(3, dtype=np.int64),
}


def qkv(whole: np.ndarray, parts: int, part: int) -> np.ndarray:
    pieces = []
    for begin, n in ((0, 8), (8, 4), (12, 4)):
        pieces.append(whole[begin + n // parts * part : begin + n // parts * (part + 1)])
    return np.concatenate(pieces)


def shards(parts: int, part: int) -> dict[str, np.ndarray]:
    chunk = -(-10 // parts)
    return {
        "a.qkv": qkv(WHOLE["a.qkv"], parts, part),
        "a.down": WHOLE["a.down"][:, chunk * part : chunk * (part + 1)].copy(),
        "a.up": WHOLE["a.up"][12 // parts * part : 12 // parts * (part + 1)],
        "norm": WHOLE["norm"],
        "step": WHOLE["step"],
    }


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    for device in range(4):
        safetensors.save_file(shards(4, device), tmp_path / f"in-{device}.safetensors")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.parametrize("memory", [1 << 20, 1 << 30])
def test_four_files_become_two(plan: Path, memory: int) -> None:
    seen: list[tuple[int, int]] = []
    done = reshard(read_plan(plan), memory, lambda at, of: seen.append((at, of)))
    assert [one.name for one in done.tensors] == list(stored_tensors(plan.parent / "in-0.safetensors"))
    assert seen[-1][0] == seen[-1][1] == 4 * sum(whole.nbytes for whole in WHOLE.values())
    for device in range(2):
        got = safetensors.load_file(plan.parent / f"out-{device}.safetensors")
        for name, wanted in shards(2, device).items():
            assert got[name].dtype == wanted.dtype
            assert np.array_equal(got[name], wanted), name
    assert not list(plan.parent.glob(".*"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_no_source_file_is_overwritten(plan: Path, overwrite: bool) -> None:
    """Two of four files would be replaced, one of them through a link."""
    folder = plan.parent
    (folder / "out-1.safetensors").symlink_to(folder / "in-3.safetensors")
    plan.write_text(PLAN.replace("out-{device}", "in-{device}"))
    before = [(folder / f"in-{device}.safetensors").read_bytes() for device in range(4)]
    for text, names in ((plan.read_text(), ("in-0", "in-1")), (PLAN, ("out-1",))):
        plan.write_text(text)
        with pytest.raises(FileFormatError) as refused:
            reshard(read_plan(plan), overwrite=overwrite)
        for name in names:
            assert f"{name}.safetensors is also a source file; use another name or folder" in str(refused.value)
    assert before == [(folder / f"in-{device}.safetensors").read_bytes() for device in range(4)]


def test_the_checksum_is_that_of_the_whole_tensor(plan: Path) -> None:
    """However it is divided; and another one if two elements are exchanged."""
    first = {one.name: one.checksum for one in reshard(read_plan(plan)).tensors}
    back = plan.parent / "back.toml"
    back.write_text(
        PLAN.replace("mesh = [4]", "mesh = [2]", 1)
        .replace("in-{device}", "out-{device}", 1)
        .replace('files = "out-{device}.safetensors"\n\n[placements]', 'files = "one.safetensors"\n\n[placements]')
        .replace("[destination]\nmesh = [2]", "[destination]\nmesh = [1]")
    )
    assert {one.name: one.checksum for one in reshard(read_plan(back)).tensors} == first
    whole = safetensors.load_file(plan.parent / "one.safetensors")
    assert all(np.array_equal(whole[name], wanted) for name, wanted in WHOLE.items())
    swapped = shards(4, 2)
    swapped["a.up"] = swapped["a.up"][::-1].copy()
    safetensors.save_file(swapped, plan.parent / "in-2.safetensors")
    assert {one.name: one.checksum for one in reshard(read_plan(plan), overwrite=True).tensors}["a.up"] != first["a.up"]


def test_a_large_tensor_is_moved_in_pieces(tmp_path: Path) -> None:
    """1 MiB of maps for 32 MiB of rows and columns: the resident memory of the process stays small."""
    rows, columns = 2048, 4096
    whole = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    for device in range(2):
        half = {"w": whole[rows // 2 * device : rows // 2 * (device + 1)]}
        safetensors.save_file(half, tmp_path / f"in-{device}.safetensors")
    text = PLAN.replace("mesh = [4]", "mesh = [2]").replace('"*" = "replicate"', "")
    path = tmp_path / "plan.toml"
    path.write_text(text + '[source.placements]\n"*" = "Shard(0)"\n[destination.placements]\n"*" = "Shard(1)"\n')
    program = f"""
import resource
from cute_py.mesh.files import read_plan, reshard
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reshard(read_plan({str(path)!r}), 1 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert int(ran.stdout) < 16 << 10  # KiB
    got = safetensors.load_file(tmp_path / "out-1.safetensors")["w"]
    assert np.array_equal(got, whole[:, columns // 2 :])


def test_a_stack_of_matrices_that_do_not_fit_is_moved(tmp_path: Path) -> None:
    """The rows of one matrix fit into the memory with all matrices, and those of all matrices do not."""
    whole = np.random.default_rng(0).integers(0, 1 << 16, (8, 256, 64), np.uint16)
    for device in range(4):
        safetensors.save_file({"x": whole[2 * device : 2 * device + 2]}, tmp_path / f"in-{device}.safetensors")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace('"*" = "replicate"', '"*" = "Shard(0)"'))
    reshard(read_plan(path), 1 << 20)
    for device in range(2):
        got = safetensors.load_file(tmp_path / f"out-{device}.safetensors")["x"]
        assert np.array_equal(got, whole[4 * device : 4 * device + 4])


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("out-{device:05d}.safetensors", ("out-00000.safetensors", "out-00001.safetensors")),
        ("out-{device:02}-of-{device:d}.safetensors", ("out-00-of-0.safetensors", "out-01-of-1.safetensors")),
    ],
)
def test_numbers_of_devices_with_a_width(plan: Path, pattern: str, names: tuple[str, ...]) -> None:
    plan.write_text(PLAN.replace("out-{device}.safetensors", pattern))
    reshard(read_plan(plan))
    assert sorted(path.name for path in plan.parent.glob("out-*")) == list(names)


def test_existing_files_stay(plan: Path) -> None:
    """The refusal names the one file that exists; the other file is not written."""
    there = plan.parent / "out-1.safetensors"
    there.write_bytes(b"mine")
    with pytest.raises(FileFormatError) as refused:
        reshard(read_plan(plan))
    assert str(refused.value) == f"{there}: the file exists already; --overwrite replaces it"
    assert there.read_bytes() == b"mine"
    assert not (plan.parent / "out-0.safetensors").exists()
    reshard(read_plan(plan), overwrite=True)
    assert there.read_bytes() != b"mine"


def test_the_command(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reshard", str(plan), "--json", "--memory", "4M"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in answer["tensors"]] == list(stored_tensors(plan.parent / "in-0.safetensors"))
    assert main(["reshard", str(plan)]) == 2
    assert "out-1.safetensors: the file exists already; --overwrite replaces it" in capsys.readouterr().err
    assert main(["reshard", str(plan), "--overwrite"]) == 0
    assert "5 tensors in 2 files" in capsys.readouterr().out
    assert main(["reshard", str(plan.parent / "none.toml")]) == 2
    assert "can't be read: No such file" in capsys.readouterr().err


def test_a_shard_of_another_shape(plan: Path) -> None:
    wrong = shards(4, 1) | {"a.up": np.zeros((2, 6), np.int16)}
    safetensors.save_file(wrong, plan.parent / "in-1.safetensors")
    with pytest.raises(LayoutError, match=r"'a.up': the shard of device 1 has shape \(2, 6\); must be \(3, 6\)"):
        reshard(read_plan(plan))
    assert not list(plan.parent.glob("*out*"))


def test_a_folder_that_does_not_exist(plan: Path) -> None:
    plan.write_text(plan.read_text().replace("out-{device}", "none/out-{device}"))
    with pytest.raises(FileFormatError, match=r"none/out-0\.safetensors: can't be written: No such file"):
        reshard(read_plan(plan))


def test_replicas_that_differ(plan: Path) -> None:
    safetensors.save_file(shards(4, 3) | {"norm": np.ones(7)}, plan.parent / "in-3.safetensors")
    with pytest.raises(FileFormatError, match="hold the same part, but differ"):
        reshard(read_plan(plan))
    assert not list(plan.parent.glob("*out*"))
    assert not list(plan.parent.glob(".*"))


def test_presets_are_their_placements(plan: Path) -> None:
    written = plan.read_text()
    shapes = {"a.qkv": (16, 6), "a.down": (6, 10), "a.up": (12, 6)}
    other = written.replace("SectionedShard(0, (8, 4, 4))", "fused-qkv(8, 4)").replace("row-parallel", "Shard(1)")
    (plan.parent / "other.toml").write_text(other.replace('"column-parallel"', '"SectionedShard(0, (6, 6))"'))
    one, two = read_plan(plan).source, read_plan(plan.parent / "other.toml").source
    assert [one.layout(n, s).digest() == two.layout(n, s).digest() for n, s in shapes.items()] == [True, True, False]
    plan.write_text(written.replace('"column-parallel"', '"gate-up"'))
    assert read_plan(plan).source.layout("a.up", (12, 6)).digest() == two.layout("a.up", (12, 6)).digest()
    plan.write_text(written.replace("SectionedShard(0, (8, 4, 4))", "fused-qkv(12, 4)"))
    with pytest.raises(
        InvalidValueError, match=r"the weight has 4 rows; must have 3 \+ 2 x 1 heads of a rank, of one size"
    ):
        reshard(read_plan(plan))


def test_tensors_that_no_pattern_matches(plan: Path) -> None:
    plan.write_text(PLAN.replace('"*" = "replicate"', ""))
    with pytest.raises(InvalidValueError, match=r"no placement matches '(norm|step)'"):
        reshard(read_plan(plan))


def test_files_that_lack_a_tensor_or_an_end(plan: Path) -> None:
    path = plan.parent / "in-2.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    with pytest.raises(FileFormatError, match=r"truncated: its header asks for \d+ bytes of elements, there are \d+"):
        reshard(read_plan(plan))
    path.write_bytes(content[:5])
    with pytest.raises(FileFormatError, match=r"not a \.safetensors file: truncated: 5 bytes"):
        reshard(read_plan(plan))
    safetensors.save_file({"norm": WHOLE["norm"]}, path)
    with pytest.raises(FileFormatError, match="some files lack some of the tensors"):
        reshard(read_plan(plan))


@pytest.mark.parametrize(
    ("header", "length", "text"),
    [
        ({"data_offsets": [0, 20]}, 0, "invalid shape, data type, or offset"),
        ({"data_offsets": [4, 16]}, 0, "invalid offset for tensor"),
        ({"data_offsets": [0]}, 0, "invalid length 1"),
        ({}, 1 << 40, "header too large"),
    ],
)
def test_headers_that_are_wrong(tmp_path: Path, header: dict[str, object], length: int, text: str) -> None:
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} | header
    content = json.dumps({"x": entry}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes((len(content) + length).to_bytes(8, "little") + content + bytes(64))
    with pytest.raises(FileFormatError, match=text):
        stored_tensors(path)


def test_an_empty_tensor_of_a_long_dimension(plan: Path) -> None:
    content = json.dumps({"x.up": {"dtype": "F32", "shape": [1 << 59, 0], "data_offsets": [0, 0]}}).encode()
    for device in range(4):
        (plan.parent / f"in-{device}.safetensors").write_bytes(len(content).to_bytes(8, "little") + content)
    (done,) = reshard(read_plan(plan)).tensors
    assert (done.shape, done.checksum) == ((1 << 61, 0), 0)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("mesh = [4]", "", "[source] has no key 'mesh'"),
        ("[placements]", "[placement]", "unknown table 'placement'"),
        ("in-{device}", "in", "devices; must contain {device}"),
        ('"in-{device}.safetensors"', '["a"]', "has 1 files for 4 devices"),
        ("mesh = [4]", "mesh = [4]\nmehs = 3", "unknown key 'mehs'"),
        (
            '"row-parallel"',
            '["Shard(0)", "Shard(1)"]',
            "has 2 placements for '*.down'; must have 1, one for each mode of the mesh",
        ),
        ("mesh", "mesh mesh", "not valid TOML: "),
        ("mesh = [4]", "mesh = []", "mesh = []; must have 1 to 65536 devices"),
        ("mesh = [4]", "mesh = [65536, 65536]", "mesh = [65536, 65536]; must have 1 to 65536 devices"),
        ('"row-parallel"', "3", "placements of '*.down' = 3; must be a string or a list of strings"),
        ('"row-parallel"', "[true]", "placements of '*.down' = [True]; must be a string or a list of strings"),
        ('"row-parallel"', '{a = "Shard(0)"}', "must be a string or a list of strings"),
        ('"out-{device}.safetensors"', '["a", "a\\u0000"]', "files: a file name can't contain NUL"),
        ('"out-{device}.safetensors"', '["a", "a"]', "one file for two devices"),
    ],
)
def test_bad_plans(plan: Path, old: str, new: str, text: str) -> None:
    plan.write_text(PLAN.replace(old, new, 1))
    with pytest.raises(FileFormatError) as caught:
        read_plan(plan)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        ("Shard", "'a.up': 'Shard' is not a placement"),
        ("__import__('os')", r"'a.up': \"__import__\('os'\)\" is not a placement"),
        ("Partial()", "files can hold only sums"),
        ("Shard(2)", r"'a.up' of shape \(3, 6\): placements\[0\].dim = 2; must be 0 to 1"),
        ("SectionedShard(0, (-4, 16))", r"sections\[0\] = -4; must be at least 0"),
    ],
)
def test_bad_placements(plan: Path, placement: str, text: str) -> None:
    plan.write_text(PLAN.replace('"column-parallel"', f'"{placement}"'))
    with pytest.raises(InvalidValueError, match=text):
        reshard(read_plan(plan))
