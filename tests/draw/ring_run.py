"""The ring of docs/guide/pictures.md, run by the machine."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import cute_py as cute
from cute_py.machine.judgement.timeline import RunTimeline

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "pictures.md"


def ring_timeline() -> RunTimeline:
    """Four pieces of an array through two stages."""
    text = re.search(r'RING = """(.*?)"""', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    source = np.arange(128, dtype=np.uint32)
    out = np.zeros_like(source)
    run = cute.run_ptx(text[1], args=[out, source], schedule="lazy")
    assert run.ok, run.explain()
    assert np.array_equal(out, source)
    return run.timeline()
