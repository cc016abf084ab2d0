"""An explanation imports what it needs: a layout the algebra, a paste the packages that judge it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cute_py.explanation.definitions import TEXTS, public_objects
from tests.shares import one_in

_COUNT = """
import contextlib, sys
from cute_py import explain
from cute_py.errors import CuteError
with contextlib.suppress(CuteError):
    explain(sys.argv[1])
own = [name for name in sys.modules if name.split(".")[0] == "cute_py"]
print(len(own), "hypothesis" in sys.modules, any(name.startswith("cute_py.gpu") for name in own))
"""


@pytest.mark.parametrize(
    ("text", "most"),
    one_in(
        3,
        [
            ("((_8,4),2):((_1,8),32)", 70),
            ("CUDA error: misaligned address", 110),
            ("block shape must have at least 16 bytes in the last dimension, but got 4 * 2 = 8 bytes", 110),
            ("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;", 118),
            ('a.hpp(3): error: static assertion failed with "Divisibility Condition"', 110),
            ("nothing that any program prints, in a sentence", 110),
        ],
    ),
)
def test_an_explanation_imports_what_it_needs(text: str, most: int) -> None:
    ran = subprocess.run([sys.executable, "-c", _COUNT, text], capture_output=True, text=True, check=True)
    count, hypothesis, kernels = ran.stdout.split()
    assert int(count) <= most
    assert (hypothesis, kernels) == ("False", "False")


def test_the_public_texts_are_known() -> None:
    """A text that is one of them is explained as the constant; they are looked for without importing all packages."""
    assert tuple(name for name, value in public_objects() if type(value) is str) == TEXTS
