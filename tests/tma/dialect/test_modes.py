"""Mode enums with the reference page's numbers, and cache modes."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.dialect.modes import (
    CACHE_MODES,
    CacheMode,
    TmaLoadMode,
    TmaReduceKind,
    TmaStoreMode,
    as_cache_mode,
    as_load_mode,
    as_reduce_kind,
    as_store_mode,
    check_cache_mode,
)
from tests.each import each_of

NUMBERS: list[tuple[Any, str, dict[str, int]]] = [
    (TmaLoadMode, "TMA_LOAD_", {"NO_MULTICAST": 0, "TWO_CTA": 1, "W_MULTICAST": 2, "W128_MULTICAST": 3}),
    (TmaStoreMode, "TMA_STORE_", {"TILED": 0, "IM2COL": 1, "IM2COL_W": 2, "IM2COL_W128": 3}),
    (
        TmaReduceKind,
        "TMA_REDUCE_",
        {"ADD": 0, "MIN": 1, "MAX": 2, "INC": 3, "DEC": 4, "AND": 5, "OR": 6, "XOR": 7},
    ),
]
READ = {TmaLoadMode: as_load_mode, TmaStoreMode: as_store_mode, TmaReduceKind: as_reduce_kind}


@pytest.mark.parametrize(("kind", "prefix", "numbers"), NUMBERS)
def test_numbers_and_both_names(kind: Any, prefix: str, numbers: dict[str, int]) -> None:
    assert {m.name: int(m) for m in kind} == numbers
    for name, number in numbers.items():
        assert kind[prefix + name] is kind[name] is kind(number)
        for spelling in (number, name, prefix + name, kind[name]):
            assert READ[kind](spelling) is kind[name]


@pytest.mark.parametrize("spelling", ["tiled", "tma_load_mode<tiled>", "#cute_nvgpu.tma_load_mode<tiled>"])
def test_tiled_is_no_multicast(spelling: str) -> None:
    assert as_load_mode(spelling) is TmaLoadMode.NO_MULTICAST


@pytest.mark.parametrize("value", [4, -1, "im2col", "no multicast", "tma_store_mode<tiled>", ""])
def test_unknown_load_modes(value: Any) -> None:
    with pytest.raises(InvalidValueError, match="unknown load mode"):
        as_load_mode(value)


@pytest.mark.parametrize("value", [True, None, 1.0, TmaStoreMode.TILED, TmaReduceKind.ADD])
def test_modes_of_another_kind(value: Any) -> None:
    with pytest.raises(InvalidTypeError, match="load mode must be a TmaLoadMode"):
        as_load_mode(value)


def test_multicast_is_by_meaning() -> None:
    assert [m.name for m in TmaLoadMode if m.is_multicast] == ["W_MULTICAST", "W128_MULTICAST"]


def test_every_cache_mode_has_a_row() -> None:
    assert {row.mode for row in CACHE_MODES} == set(CacheMode)
    assert all(row.loads or row.stores for row in CACHE_MODES)


HINTS = {
    "ca": None,
    "cg": None,
    "cs": 0x12F0000000000000,
    "lu": 0x12F0000000000000,
    "cv": None,
    "wb": None,
    "wt": None,
    "evict_normal": 0x1000000000000000,
    "evict_first": 0x12F0000000000000,
    "evict_last": 0x14F0000000000000,
}


@each_of(("name", "hint"), HINTS.items())
def test_cache_hints(name: str, hint: int | None) -> None:
    assert as_cache_mode(name).cache_hint == hint
    assert as_cache_mode(f"load_cache_mode<{name}>") is as_cache_mode(f"#cute_nvgpu.store_cache_mode<{name}>")


def test_loads_and_stores_have_their_own() -> None:
    assert [m.value for m in CacheMode if check_cache_mode(m, "load")] == ["wb", "wt"]
    assert [m.value for m in CacheMode if check_cache_mode(m, "store")] == ["ca", "lu", "cv"]
    assert [d.text for d in check_cache_mode(CacheMode.CA, "reduce")] == ["reduce does not support cache mode ca"]


def test_unknown_cache_modes() -> None:
    with pytest.raises(InvalidValueError, match="unknown cache mode 'nc'"):
        as_cache_mode("nc")
    with pytest.raises(InvalidTypeError):
        as_cache_mode(0)
