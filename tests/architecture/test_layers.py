"""Imports point down the layers, there are no cycles, files and folders stay small, input is never checked with assert.

Each rule has a test that it can fail, on a made-up package.
"""

from __future__ import annotations

import ast
import collections
from pathlib import Path

import pytest

from tests.architecture.sources import source

PACKAGE = Path(__file__).resolve().parents[2] / "cute_py"
MAX_LINES = 700
MAX_FILES = 20
"""Of a folder."""
MAX_TOGETHER = 450
"""Lines of a file and its only importer, up to which they are one file."""
VAGUE = {"util", "utils", "core", "helper", "helpers", "common", "misc"}

# Longest matching prefix decides. `cute_py` itself (the re-exports) stands above the packages, the shell above it.
LAYERS: dict[str, float] = {
    "cute_py": 9,
    "cute_py.errors": 0,
    "cute_py.dtypes": 0,
    "cute_py.argument_checks": 0,
    "cute_py.diagnostics": 0,
    "cute_py.deprecations": 0,
    "cute_py.optional_packages": 0,
    "cute_py.array_headers": 0.5,
    "cute_py.atomic_write": 0.5,
    "cute_py.array_files": 4.2,
    "cute_py.tma.run": 8,
    "cute_py.tma.copy_atom": 8,
    "cute_py.tma.gbasis": 8,
    "cute_py.targets": 0.5,
    "cute_py.layout": 1,
    "cute_py.arith_tuple": 2,
    "cute_py.tensor": 3,
    "cute_py.atom": 4,
    "cute_py.tma.descriptor": 4,
    "cute_py.formats": 4,
    "cute_py.notation": 4.5,
    "cute_py.tma.atom": 5,
    "cute_py.ptx": 5.5,
    "cute_py.tma.emulator": 6,
    "cute_py.tma.simulate": 6.1,
    "cute_py.machine": 6.2,
    "cute_py.gpu": 6.5,
    "cute_py.copies": 7,
    "cute_py.mesh": 7.05,
    "cute_py.checkpoints": 7.06,
    "cute_py.torch": 7.07,
    "cute_py.jax": 7.08,
    "cute_py.tmem": 7.1,
    "cute_py.tma.dialect": 7.2,
    "cute_py.tma.exports": 7.3,
    "cute_py.tma.gemm": 7.4,
    "cute_py.tma": 8,
    "cute_py.terminal": 8,
    "cute_py.testing": 8,
    "cute_py.explanation": 8.5,
    "cute_py.watch": 8.6,
    "cute_py.draw": 8,
    "cute_py.page": 9.5,
    "cute_py.cli": 10,
    "cute_py.__main__": 10,
}


HALVES: dict[str, str] = {
    "cute_py.atom.mma_warpgroup_atoms": "one table a family of operations, all read by mma_atoms",
    "cute_py.copies.host_copy": "the part of a copy that needs nothing of the GPU; benchmarks time it alone",
    "cute_py.cli.copy_command": "one file a command; main imports them by name",
    "cute_py.cli.desc_command": "one file a command; main imports them by name",
    "cute_py.cli.run_command": "one file a command; main imports them by name",
    "cute_py.cli.tma_command": "one file a command; main imports them by name",
    "cute_py.explanation.ptx_pastes": "one file a kind of text, all read by dispatch",
    "cute_py.explanation.rows.calculators": "the arithmetic of the rows, apart from the engine that finds them",
    "cute_py.explanation.tiled_pastes": "one file a kind of text, all read by dispatch",
    "cute_py.gpu.barrier_timeout": "the one module of the executor that may import the emulator",
    "cute_py.machine.instructions.library": "what vprintf, malloc and their like do, apart from how calls are made",
    "cute_py.machine.rules.barriers": "the prose of the rules, a table apart from who judges",
    "cute_py.machine.judgement.bars": "one file a judge, all made by judge",
    "cute_py.machine.judgement.descriptors": "one file a judge, all made by judge",
    "cute_py.machine.judgement.map_fences": "one file a judge, all made by judge",
    "cute_py.machine.judgement.register_pool": "one file a judge, all made by judge",
    "cute_py.machine.arithmetic": "what was measured of sums, without who holds them",
    "cute_py.ptx.forms_sync": "one table a family of instructions, all read by catalog",
}
"""Modules with one importer beside them that are files of their own all the same, each with the reason."""


def modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file, for every module below the package folder `root`."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = list(path.relative_to(root.parent).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def imports(path: Path, known: set[str]) -> set[str]:
    """The modules of this package that `path` imports, anywhere in it: for types only, too."""
    found: set[str] = set()
    for node in source(path.read_text()).imports:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name in known)
        elif node.module in known:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
            outer = {node.module} if len(inner) < len(node.names) else set()
            found |= inner | outer
    return found


def layer(name: str, layers: dict[str, float]) -> float:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if ".".join(parts[:end]) in layers:
            return layers[".".join(parts[:end])]
    raise KeyError(name)


def upward_imports(root: Path, layers: dict[str, float]) -> list[str]:
    names = modules(root)
    return [
        f"{name} (layer {layer(name, layers)}) imports {target} (layer {layer(target, layers)})"
        for name, path in names.items()
        for target in sorted(imports(path, set(names)))
        if layer(target, layers) > layer(name, layers)
    ]


def cycle(root: Path) -> list[str]:
    names = modules(root)
    graph = {name: imports(path, set(names)) - {name} for name, path in names.items()}
    state: dict[str, int] = {}

    def visit(name: str, trail: list[str]) -> list[str]:
        state[name] = 1
        for target in sorted(graph[name]):
            if state.get(target) == 1:
                return [*trail[trail.index(target) :], target] if target in trail else [name, target]
            if target not in state and (found := visit(target, [*trail, target])):
                return found
        state[name] = 2
        return []

    for name in graph:
        if name not in state and (found := visit(name, [name])):
            return found
    return []


def long_files(root: Path) -> list[str]:
    return [f"{p}: {n} lines" for p in sorted(root.rglob("*.py")) if (n := len(p.read_text().splitlines())) > MAX_LINES]


def full_folders(root: Path) -> list[str]:
    counts = collections.Counter(p.parent for p in root.rglob("*.py"))
    return [f"{folder}: {n} files" for folder, n in sorted(counts.items()) if n > MAX_FILES]


def halves(root: Path) -> list[str]:
    """Modules with one importer, in their own folder: a part of that importer, so long as the two fit one file."""
    names = modules(root)
    importers: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for target in imports(path, set(names)) - {name}:
            importers[target].add(name)
    found = []
    for name, path in names.items():
        if path.name == "__init__.py" or len(importers[name]) != 1:
            continue
        (importer,) = importers[name]
        beside = names[importer]
        together = sum(len(p.read_text().splitlines()) for p in (path, beside))
        if beside.parent == path.parent and beside.name != "__init__.py" and together <= MAX_TOGETHER:
            found.append(f"{name} is only imported by {importer}")
    return found


def assert_statements(root: Path) -> list[str]:
    return [f"{p}:{line}" for p in sorted(root.rglob("*.py")) for line in source(p.read_text()).asserts]


def vague_names(root: Path) -> list[str]:
    return [str(p) for p in sorted(root.rglob("*.py")) if p.stem in VAGUE]


def test_imports_point_down() -> None:
    assert upward_imports(PACKAGE, LAYERS) == []


def test_no_cycles() -> None:
    assert cycle(PACKAGE) == []


def test_files_are_short() -> None:
    assert long_files(PACKAGE) == []


def test_folders_are_small() -> None:
    assert full_folders(PACKAGE) == []


def test_no_module_is_half_of_another() -> None:
    assert [line for line in halves(PACKAGE) if line.split()[0] not in HALVES] == []


def test_no_assert_in_the_package() -> None:
    assert assert_statements(PACKAGE) == []


def test_file_names_name_a_concept() -> None:
    assert vague_names(PACKAGE) == []


def test_emulator_and_executor_stay_apart() -> None:
    """The emulator reads descriptors and never writes them; the executor gets bytes and never reads them."""
    names = modules(PACKAGE)
    for name, path in names.items():
        used = imports(path, set(names))
        if name.startswith("cute_py.tma.emulator"):
            bad = {m for m in used if m.startswith(("cute_py.tma.descriptor.encode", "cute_py.gpu", "cute_py.copies"))}
            assert not bad, (name, bad)
        if name.startswith("cute_py.gpu") and name != "cute_py.gpu.barrier_timeout":
            bad = {m for m in used if m.startswith(("cute_py.tma.emulator", "cute_py.tma.descriptor.decode"))}
            assert not bad, (name, bad)
            # The report of a wait that ran out is the one thing that both have a part in.
            if name != "cute_py.gpu.launch":
                assert "cute_py.gpu.barrier_timeout" not in used, name


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "pkg"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "low.py").write_text("")
    (root / "high.py").write_text("import pkg.low\n")
    return root


MADE_UP = {"pkg": 9, "pkg.low": 0, "pkg.high": 1}


def test_the_layer_rule_can_fail(package: Path) -> None:
    assert upward_imports(package, MADE_UP) == []
    (package / "low.py").write_text("def late():\n    from pkg.high import x\n")
    assert upward_imports(package, MADE_UP) == ["pkg.low (layer 0) imports pkg.high (layer 1)"]


def test_the_cycle_rule_can_fail(package: Path) -> None:
    assert cycle(package) == []
    (package / "low.py").write_text("from pkg import high\n")
    assert set(cycle(package)) == {"pkg.low", "pkg.high"}


def test_the_length_rule_can_fail(package: Path) -> None:
    (package / "low.py").write_text("x = 1\n" * MAX_LINES)
    assert long_files(package) == []
    (package / "low.py").write_text("x = 1\n" * (MAX_LINES + 1))
    assert len(long_files(package)) == 1


def test_the_folder_rule_can_fail(package: Path) -> None:
    assert full_folders(package) == []
    for i in range(MAX_FILES):
        (package / f"m{i}.py").write_text("")
    assert full_folders(package) == [f"{package}: {MAX_FILES + 3} files"]


def test_the_rule_of_halves_can_fail(package: Path) -> None:
    assert halves(package) == ["pkg.low is only imported by pkg.high"]
    (package / "low.py").write_text("x = 1\n" * MAX_TOGETHER)
    assert halves(package) == []


def test_the_assert_rule_can_fail(package: Path) -> None:
    assert assert_statements(package) == []
    (package / "low.py").write_text("assert 1\n")
    assert len(assert_statements(package)) == 1


def test_the_name_rule_can_fail(package: Path) -> None:
    (package / "utils.py").write_text("")
    assert len(vague_names(package)) == 1
