"""Rebinding a map on the device: the sequence, its laws, what is refused, and that the bytes come out right."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import EmissionError
from cute_py.ptx.check import examine
from cute_py.ptx.module import assemble_module, find_ptxas
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.replace import replace
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.dialect.lowering import module_of
from cute_py.tma.dialect.rebind import (
    RebindInstruction,
    check_host_only,
    check_rebind,
    init_sequence,
    ptx_elemtype,
    rebind_ptx,
    rebind_sequence,
)
from cute_py.tma.dialect.traced_copy import trace_copy
from tests.each import each_of
from tests.shares import one_in
from tests.tma.dialect.atoms import tile_atom

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")


@each_of("rank", range(1, 6))
@each_of("space", ("global", "shared::cta"))
def test_two_times_rank_replacements_in_a_fixed_order(rank: int, space: str) -> None:
    sequence = rebind_sequence(rank, space=space)
    fields = [(step.field, step.ordinal) for step in sequence.replacements]
    assert len(fields) == 2 * rank
    assert fields == [
        ("global_address", None),
        *(("global_dim", mode) for mode in range(rank)),
        *(("global_stride", mode - 1) for mode in range(1, rank)),
    ]
    assert [step.role for step in sequence.steps][:: len(sequence.steps) - 1] == ["acquire", "release"]
    assert all(examine(step.text).canonical for step in sequence.steps)
    assert all(f".{space}." in step.text for step in sequence.replacements)


def test_the_seed_copy_comes_first() -> None:
    sequence = rebind_sequence(2, seed_copy=True, zeroed=True, scope="gpu", crosses_cta=True)
    assert sequence.steps[0].text == (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        "[%rd_map], [%r_seed], 128;"
    )
    assert sequence.steps[1].text == "fence.proxy.tensormap::generic.acquire.gpu [%rd_map], 128;"
    assert sequence.steps[-1].text == "fence.proxy.tensormap::generic.release.gpu;"


def test_scopes() -> None:
    assert check_rebind(2, scope="cta", crosses_cta=False) == []
    assert check_rebind(2, scope="sys", crosses_cta=True) == []
    assert len(check_rebind(2, scope="cta", crosses_cta=True)) == 1
    assert len(check_rebind(2, scope="cluster")) == 1


@pytest.mark.parametrize(("rank", "count"), [(0, 1), (1, 0), (5, 0), (6, 1)])
def test_ranks(rank: int, count: int) -> None:
    assert len(check_rebind(rank)) == count


def test_everything_is_told_together() -> None:
    found = check_rebind(
        6,
        ("box_dim", "swizzle_mode"),
        space="shared::cluster",
        scope="cta",
        crosses_cta=True,
        zeroed=True,
    )
    assert len(found) == 6
    with pytest.raises(EmissionError, match="rank = 0; must be 1 to 5"):
        rebind_sequence(0)
    with pytest.raises(EmissionError, match="a zeroed slot has no rank, box or format"):
        rebind_sequence(2, zeroed=True)
    with pytest.raises(EmissionError, match="the seed copy goes from shared::cta to a slot in global memory"):
        rebind_sequence(2, space="shared::cta", seed_copy=True)


def test_maps_that_are_made_on_the_host_only() -> None:
    im2col = TensorMapIm2col(6, 4096, (64, 8, 8, 1), (128, 1024, 8192), (0, 0), (0, 0), 64, 8)
    [found] = check_host_only(im2col)
    assert found.text == "im2col descriptors can only be made on the host: no mutator writes the im2col fields"
    pair = trace_copy(tile_atom("load", (128, 64), "bf16", op="SM100_TMA_2SM_LOAD", arch="sm_100a"))
    [found] = check_host_only(pair)
    assert (
        found.text
        == "2-CTA descriptors can only be made on the host: the CTA V-map folds into the box, which has no mutator"
    )
    assert check_host_only(trace_copy(tile_atom("load", (128, 64), "bf16"))) == []
    with pytest.raises(EmissionError, match="im2col descriptors can only be made on the host: no mutator"):
        init_sequence(im2col)  # type: ignore[arg-type]


def apply(data: bytes, steps: tuple[RebindInstruction, ...], values: list[int]) -> bytes:
    for step, value in zip(steps, values, strict=True):
        data = replace(data, step.field, value, step.ordinal or 0)
    return data


@given(
    data_type=st.integers(0, 12),
    rank=st.integers(1, 5),
    swizzle=st.integers(0, 3),
    fill=st.integers(0, 1),
    extents=st.lists(st.integers(1, 1 << 20), min_size=5, max_size=5),
)
def test_ten_fields_make_a_map_from_zeros(
    data_type: int, rank: int, swizzle: int, fill: int, extents: list[int]
) -> None:
    """The full set of replacements on a zeroed slot leaves the driver's 64 live bytes."""
    size = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)[data_type]
    if fill and data_type in (0, 1, 2, 3, 4, 5):
        fill = 0
    box = (32 // size, 4, 2, 1, 1)[:rank]
    strides = list(
        itertools.accumulate([16 * (1 + extents[0] * size // 16), *extents[1:]], lambda a, b: a * min(b, 50))
    )
    request = TensorMapTiled(
        data_type, 1 << 33, tuple(extents[:rank]), tuple(strides[: rank - 1]), box, swizzle=swizzle, oob_fill=fill
    )
    steps = init_sequence(request)
    assert len({step.field for step in steps}) == (10 if rank > 1 else 9)
    made = apply(bytes(128), steps, [int(step.text.rstrip(";").split(", ")[-1]) for step in steps])
    assert made[:64] == encode(request)[:64]


def test_a_rebind_is_a_new_encoding_of_the_same_format_and_box() -> None:
    before = TensorMapTiled(9, 4096, (512, 1024, 8), (1024, 1 << 20), (64, 128, 1), swizzle=3)
    after = TensorMapTiled(9, 1 << 20, (256, 77, 3), (512, 1 << 16), (64, 128, 1), swizzle=3)
    steps = rebind_sequence(3).replacements
    made = apply(encode(before), steps, [after.global_address, *after.global_dim, *after.global_strides])
    assert made[:64] == encode(after)[:64]


def test_ptx_numbers_formats_its_own_way() -> None:
    numbers = [ptx_elemtype(TensorMapTiled(n, 4096, (64,), (), (64,))) for n in range(13)]
    assert numbers == [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12]
    with pytest.raises(EmissionError, match="was not measured"):
        ptx_elemtype(TensorMapTiled(13, 4096, (64,), (), (64,)))


@needs_ptxas
@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize("arch", one_in(3, ("sm_90a", "sm_100a", "sm_120a")))
def test_modules_assemble(rank: int, arch: str) -> None:
    accepted, messages, _ = assemble_module(rebind_ptx(rank, arch), arch)
    assert accepted, messages


@pytest.mark.parametrize(
    ("arch", "version", "reason"),
    (
        ("sm_80", (9, 0), "needs sm_90 or newer; got sm_80"),
        ("sm_90", (9, 0), "tensormap.replace needs an a or f variant of sm_90 or newer; got sm_90"),
        ("sm_90a", (8, 2), "needs PTX 8.3 or newer; got 8.2"),
    ),
)
def test_modules_of_targets_without_a_rebind_are_refused(arch: str, version: tuple[int, int], reason: str) -> None:
    with pytest.raises(EmissionError, match=re.escape(reason)):
        rebind_ptx(2, arch, version=version)


@needs_ptxas
@pytest.mark.parametrize("space", ("global", "shared::cta"))
def test_sequences_assemble(space: str) -> None:
    request = TensorMapTiled(9, 4096, (512, 1024, 8), (1024, 1 << 20), (64, 128, 1), swizzle=3)
    init = "\n".join(step.text for step in init_sequence(request, space=space))
    for text in (init, rebind_sequence(5, space=space).text, rebind_sequence(3, seed_copy=space == "global").text):
        accepted, messages, _ = assemble_module(module_of(text, "sm_90a"), "sm_90a")
        assert accepted, messages
