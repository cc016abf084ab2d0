"""What type checkers see of `cute.tma` in a user's program; skipped where none is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np

import cute_py as cute

x = np.zeros((64, 64), np.float16)
atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.Layout((cute.Int(32), cute.Int(32)), cute.LayoutRight))
result = cute.tma.copy(atom, x, backend="emulator")
reveal_type(cute.tma)
reveal_type(atom)
reveal_type(result)
reveal_type(result.equal)
reveal_type(cute.tma.Emulator())
reveal_type(cute.tma.lower(atom))
reveal_type(cute.tma.encode(atom.request))
result.equall
cute.tma.emulater
"""

TYPES = ["ModuleType", "TmaAtom", "CopyResult", "bool | None", "Emulator", "Lowering", "bytes"]

COMMANDS = {"mypy": ["--strict", "--no-error-summary"], "basedpyright": ["--pythonpath", sys.executable]}


@pytest.mark.slow
@pytest.mark.parametrize("checker", COMMANDS)
def test_types_are_real(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", checker, *COMMANDS[checker], str(tmp_path / "program.py")]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    types = re.findall(r'(?:Revealed type is|Type of ".*" is) "(.*)"$', shown, re.MULTILINE)
    plain = ["ModuleType" if "Module" in text else re.sub(r"[a-z_]+\.|\[.*\]", "", text) for text in types]
    assert plain == TYPES, shown
    errors = [line for line in shown.splitlines() if "error: " in line]
    assert len(errors) == 2, shown
    assert "equall" in errors[0]
    assert "emulater" in errors[1]
