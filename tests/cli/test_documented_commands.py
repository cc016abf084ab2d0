"""The command lines of README and docs run: each `cute-py` line of a ```sh block, on files that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cute_py.array_files import write_array
from cute_py.cli.main import main
from tests.calls.objects import KERNEL_TEXT

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Every documented `cute-py` line, joined where it ends in a backslash, without its comment."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        for block in BLOCK.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0].endswith("cute-py"):
                    found.append(shlex.join(words[1:]))
    return found


@pytest.mark.parametrize("line", commands())
def test_a_documented_command_succeeds(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    array = np.random.default_rng(3).standard_normal((256, 128)).astype(ml_dtypes.bfloat16)
    write_array("weights.safetensors", array, "w")
    Path("twice.ptx").write_text(KERNEL_TEXT)
    write_array("x.npy", np.zeros(32, np.uint32))
    assert main(shlex.split(line)) == 0


def test_there_are_documented_commands() -> None:
    assert any(line.startswith("copy ") for line in commands())
    assert "demo" in commands()
