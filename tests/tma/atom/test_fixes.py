"""A fix that is shown was made; these are made again here, and copied through where the tensor itself stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError
from cute_py.tma.atom.make import find_fixes, fix_candidates, make_tma_atom


def tensor(shape: Any, stride: Any, dtype: str = "float16") -> Any:
    return cute.make_tensor(cute.make_gmem_ptr(4096, dtype), Layout(shape, stride))


def row_tile(*shape: int) -> Any:
    return Layout(tuple(Int(n) for n in shape), LayoutRight)


def swizzled(bits: int, *shape: int) -> Any:
    return cute.ComposedLayout(cute.Swizzle(bits, 4, 3), cute.smem_ptr_flag(16), row_tile(*shape))


ROWS = tensor((1024, 512), (512, Int(1)))
CASES = {
    "row of 1000 bytes": (tensor((1024, 500), (500, Int(1))), row_tile(64, 64), 1, "pad the row to 504 elements"),
    "box beyond the swizzle": (ROWS, swizzled(2, 64, 64), 1, 'make_smem_layout("K", "128B", "float16", (64, 64))'),
    "box of two swizzle rows": (ROWS, swizzled(3, 64, 128), 1, 'make_smem_layout("K", "128B", "float16", (64, 128))'),
    "box mode above 256": (ROWS, row_tile(4, 512), 1, "split_oversize=True: several instructions per tile"),
    "two rules: the stride and the box": (
        tensor((1024, 500), (500, Int(1))),
        row_tile(300, 64),
        1,
        "pad the row to 504 elements, and split_oversize=True: several instructions per tile",
    ),
    "rows of 8 bytes": (ROWS, row_tile(64, 4), 1, "a tile of 64x8"),
    "rows of 40 bytes": (ROWS, row_tile(64, 20), 1, "a tile of 64x16"),
    "multicast that does not divide": (tensor((64,), (Int(1),)), row_tile(8), 3, "num_multicast=1"),
}


def arguments(name: str) -> dict[str, Any]:
    gtensor, smem, count, _ = CASES[name]
    op = "SM90_TMA_LOAD_MULTICAST" if count > 1 else "SM90_TMA_LOAD"
    return {
        "op": op,
        "gtensor": gtensor,
        "smem_layout": smem,
        "cta_tiler": None,
        "num_multicast": count,
        "suggest": False,
    }


@pytest.mark.parametrize("name", list(CASES))
def test_a_refusal_tells_a_fix_and_the_fix_works(name: str) -> None:
    given = arguments(name)
    with pytest.raises(CuteError) as error:
        make_tma_atom(**{**given, "suggest": True})
    assert error.value.hint is not None
    assert CASES[name][3] in error.value.hint
    found = find_fixes(make_tma_atom, given)
    assert 1 <= len(found) <= 2
    for fix in found:
        assert str(fix) in error.value.hint
        atom = make_tma_atom(**{**given, **fix.arguments})
        if "gtensor" in fix.arguments:
            continue  # Another tensor: nothing to copy here.
        shape = tuple(int(n) for n in given["gtensor"].shape)
        array = np.arange(int(np.prod(shape))).astype(np.uint16).view(np.float16).reshape(shape)
        assert cute.tma.copy(atom, array).equal


def test_nothing_is_told_where_nothing_works() -> None:
    """No mode is contiguous: no change of one argument that is tried makes a legal map."""
    given = {**arguments("row of 1000 bytes"), "gtensor": tensor((1024, 512), (1024, 2))}
    assert find_fixes(make_tma_atom, given) == []
    with pytest.raises(CuteError) as error:
        make_tma_atom(**{**given, "suggest": True})
    assert error.value.hint is None or "make_smem_layout" not in error.value.hint


def test_the_smallest_change_comes_first() -> None:
    gtensor, smem, count, _ = CASES["row of 1000 bytes"]
    words = [str(fix) for fix in fix_candidates(gtensor, smem, count)]
    assert words[0] == "pad the row to 504 elements"
    assert words.index("split_oversize=True: several instructions per tile") < len(words) - 1


def test_at_most_as_many_as_asked_for() -> None:
    given = arguments("box beyond the swizzle")
    assert [len(find_fixes(make_tma_atom, given, most)) for most in (0, 1, 2, 3)] == [0, 1, 2, 3]


def test_explain_tells_the_whole_way() -> None:
    atom = make_tma_atom("SM90_TMA_LOAD", ROWS, swizzled(3, 128, 64))
    text = atom.explain()
    for part in (
        "global tensor  gmem_ptr[16b](0x1000) o (1024,512):(512,_1)",
        "Sw<3,4,3> on bytes = mode 128B",
        "tma_gbasis       (_64,_128):(_1@1,_1@0)",
        "mode 0: 512 elements, contiguous, box 64",
        "mode 1: 1024 elements, 1024 bytes apart, box 128",
        "1 per tile and CTA, 64 tiles, 64 in all",
        "first at (0, 0), last at (448, 896)",
        "a CTA's barrier expects 16384 bytes per tile",
        "aligned to 1024 bytes",
    ):
        assert part in text


def test_explain_says_what_would_be_better() -> None:
    plain = make_tma_atom("SM90_TMA_LOAD", ROWS, row_tile(128, 64))
    best = make_tma_atom("SM90_TMA_LOAD", ROWS, swizzled(3, 128, 64))
    assert "possible improvements" in plain.explain()
    assert "possible improvements" not in best.explain()


def test_nothing_is_proposed_for_what_is_symbolic() -> None:
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(64,64):(64,_1)"))
    arguments = {"op": "SM90_TMA_LOAD", "gtensor": tensor, "num_multicast": 1, "suggest": False}
    for text in ("(n,_8):(_8,_1)", "Sw<2,4,3> o smem_ptr[16b](unset) o (n,_64):(_64,_1)"):
        assert cute.tma.find_fixes(cute.tma.make_tma_atom, {**arguments, "smem_layout": cute.parse(text)}) == []
