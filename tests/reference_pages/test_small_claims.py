"""Claims of the reference pages that no other test is about."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py import tma
from cute_py.errors import TmaVerifyError, TmemError
from cute_py.tmem import copy_async
from tests.calls.objects import gtensor
from tests.tma.lower.atoms import tile_atom
from tests.tmem.test_copy_async import buffers


@pytest.mark.parametrize(("smem", "shown"), [(None, "None"), (42, "!cute.shape<42>"), ([1], "a Python list")])
def test_a_shared_operand_without_a_layout_is_step_1(smem: Any, shown: str) -> None:
    with pytest.raises(TmaVerifyError) as caught:
        tma.partition(smem, gtensor())
    assert caught.value.headline.startswith(f"invalid operand types, got {shown}, ")


def test_the_token_becomes_a_constant() -> None:
    notes = tma.lower(tile_atom("load", (64, 64), "float16")).stage("4").notes
    assert "the token %tok_a becomes the constant i32 0: an ordering edge without hardware state" in notes


def test_elements_of_64_bits_are_refused() -> None:
    tmem, smem = buffers(src="float64", dst="float64")
    with pytest.raises(TmemError, match="elements of 64 bits; must be 4, 8, 16 or 32"):
        copy_async(tmem[0:32, 0:16], smem[0:32, 0:16], cta_group=1)
