"""The texts of the lowering: traces in the walkthrough's spelling, the emission catalogue's literals, every error."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from cute_py.errors import EmissionError, ParseError, UnknownFactError
from cute_py.ptx.check import examine, verdict
from cute_py.ptx.entry_points import entry_point
from cute_py.ptx.reasons import why_not
from cute_py.ptx.render import ptx
from cute_py.tma.dialect.lowering import lower
from cute_py.tma.dialect.phases import PHASES
from cute_py.tma.dialect.rebind import mutator, mutator_constraints, rebind_sequence
from tests.oracle.emission_catalogue import (
    ACQUIRE_FENCE,
    COPY_TEMPLATES,
    MUTATORS,
    RELEASE_FENCE,
    SEED_COPY,
    TRACE_ONLY,
    instances,
)
from tests.tma.dialect.atoms import tile_atom

EXAMPLE = lower(tile_atom("load", (128, 128), "bf16", swizzle=3))

STAGE_1 = """\
%a_view = cuda_tile.tensor_view %A, shape = [%M, %K], stride = [%K, 1]
: !cuda_tile.tensor_view<128x128xbf16>
%a_part = cuda_tile.partition_view %a_view, tile = [128, 128], dim_map = [0, 1]
: !cuda_tile.partition_view<128x128xbf16>
%tok0 = cuda_tile.make_token : !cuda_tile.token
%a_tile, %tok_a = cuda_tile.load_view_tko %a_part, [%bm, %bk], %tok0
: !cuda_tile.tile<128x128xbf16>, !cuda_tile.token"""

STAGE_2 = """\
%a_ref = nv_tileaa.make_memref %A, shape = [%M, %K], stride = [%K, 1],
space = #nv_tileaa.global
: !nv_tileaa.memref<?x?xbf16>
%off_a = nv_tileaa.addptr %a_ref, [%bm, %bk]
: !nv_tileaa.memref<?x?xbf16>
%a_tile, %tok_a = nv_tileaa.tiled_load %off_a, %tok0
{ atom = #cute.copy_atom<sm90_tma_load_2d_bf16>,
in_bounds = array<i1: true, true>,
mem_semantic = #nv_tileaa<mem_semantic relaxed>,
mem_scope = #nv_tileaa<mem_scope cluster> }
: !nv_tileaa.memref<?x?xbf16> -> tensor<128x128xbf16>,
!nv_tileaa.mem_token"""

STAGE_3A = """\
%a_tile, %tok_a = nv_tileas.tiled_load %off_a, %tok0
{ atom = #cute.copy_atom<sm90_tma_load_2d_bf16>,
in_bounds = array<i1: true, true>,
mem_semantic = #nv_tileas<mem_semantic relaxed>,
mem_scope = #nv_tileas<mem_scope cluster> }
: !nv_tileaa.memref<?x?xbf16> -> tensor<128x128xbf16>,
!nv_tileaa.mem_token"""

STAGE_3_BEHIND_THE_BOX = """\
atom = #cute_nvgpu.atom_copy_field_tmaload<load_2d_bf16, swizzle_128B>,
tmaIdx = 0 : i32
: !nv_tileas.tma_desc<128x128xbf16>
// ---- mbarrier reserved by phase 6 (one slot, count=1, expecting one arrival)
%mbar_a = nv_tileas.alloc_mbarrier { count = 1 : i32 }
: !nv_tileas.mbarrier
// ---- async TMA load: phase 5 emission
%tok_a = nv_tileas.async.tiled_tma_load
%desc_a, %a_smem[%bm, %bk], %mbar_a
{ atom = #cute_nvgpu.atom_copy_field_tmaload<load_2d_bf16, swizzle_128B>,
tx_count = 32768 : i32,
tmaIdx = 0 : i32 }
: !nv_tileas.tma_desc<128x128xbf16>,
!nv_tileas.smem<128x128xbf16>,
index, index,
!nv_tileas.mbarrier
-> !nv_tileas.async"""

STAGE_4 = """\
; ---- descriptor pointer (taken from the kernel's grid-constant .param slot)
%desc_a_ptr = call ptr addrspace(1) @llvm.nvvm.tma.get.descriptor.address(i32 0)
; ---- mbarrier publishes expected transaction-byte count
call void @llvm.nvvm.mbarrier.arrive.expect_tx.shared(
ptr addrspace(3) %mbar_a, i32 32768)
; ---- TMA bulk-tensor load: shared <- global, through the descriptor,
; coordinate order reversed to inner-axis-first (column-major)
call void @llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.2d(
ptr addrspace(3) %a_smem_dst, ; destination: shared base address
ptr addrspace(1) %desc_a_ptr, ; source: TMA descriptor in global
i32 %bk_coord, ; coord[0]: inner-axis (was %bm)
i32 %bm_coord, ; coord[1]: outer-axis (was %bk)
ptr addrspace(3) %mbar_a) ; completion barrier"""

STAGE_5 = """\
bb.loop:
; --- mbarrier arrives with expected transaction byte count
MBARRIER_ARRIVE_EXPECT_TX_SHARED %mbar_a:b64, 32768
; --- TMA load: shared destination, global source via descriptor, mbarrier completion
CP_ASYNC_BULK_TENSOR_2D_SHARED_CLUSTER_GLOBAL_MBARRIER
%a_smem_dst:b64, ; destination shared address (b64 SMEM ptr)
%desc_a:b64, ; descriptor address (b64 global ptr)
%bk:b32, %bm:b32, ; coordinates, inner-axis first
%mbar_a ; completion barrier (b64 SMEM ptr)"""

STAGE_6 = """\
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
[%rd_smem_dst], // destination: SMEM address of tile
[%rd_desc_a, {%r_bk, %r_bm}], // source: descriptor + coords (inner-axis first)
[%rd_mbar]; // completion barrier address"""


def test_stages_1_to_3a_are_the_walkthroughs_text() -> None:
    assert EXAMPLE.stage("1").text == STAGE_1
    assert EXAMPLE.stage("2").text == STAGE_2
    assert EXAMPLE.stage("3a").text == STAGE_3A


def test_stage_3_is_the_walkthroughs_text_but_for_the_box() -> None:
    head, tail = EXAMPLE.stage("3").text.split("box = [128, 64],\n")
    assert tail == STAGE_3_BEHIND_THE_BOX
    assert head == "// ---- descriptor materialized by phase 4\n%desc_a = nv_tileas.make_tiled_tma_desc %a_ref, "
    assert head.endswith("\n%desc_a = nv_tileas.make_tiled_tma_desc %a_ref, ")


def test_stages_4_to_6_begin_with_the_walkthroughs_text() -> None:
    """The first of the two boxes; the second follows."""
    assert EXAMPLE.stage("4").text.startswith(STAGE_4 + "\n%bk_coord_1 = add i32 %bk_coord, 64\n")
    assert EXAMPLE.stage("5").text.startswith(STAGE_5 + "\n%bk_1:b32 = ADD32ri %bk:b32, 64\n")
    assert STAGE_6 in EXAMPLE.ptx
    assert EXAMPLE.ptx.startswith(
        "// ---- mbarrier publishes the 32768-byte expectation\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], 32768;\n"
        "// ---- TMA bulk-tensor 2D load"
    )


def test_a_tile_that_fits_is_the_walkthroughs_text_whole() -> None:
    trace = lower(tile_atom("load", (128, 64), "bf16", swizzle=3))
    assert trace.stage("4").text == STAGE_4.replace("32768", "16384")
    assert trace.stage("5").text == STAGE_5.replace("32768", "16384")
    assert trace.ptx.endswith("// ---- TMA bulk-tensor 2D load\n" + STAGE_6)


def test_the_flow_table() -> None:
    assert [(row.stage, row.form, row.carrier, row.source) for row in EXAMPLE.flow] == [
        ("1 — cuda_tile", "implicit", "tile shape <128x128xbf16>", "derived at lower time"),
        ("2 — nv_tileaa", "implicit", "tensor shape <128x128xbf16> plus CopyAtom witness", "derived at lower time"),
        (
            "3 — nv_tileas",
            "explicit attr",
            "tx_count = 32768 : i32 on async.tiled_tma_load",
            "computed by LowerTMALoadStoreToAsync phase 5",
        ),
        (
            "4 — LLVM IR",
            "explicit i32 operand",
            "argument to llvm.nvvm.mbarrier.arrive.expect_tx.shared",
            "folded from tx_count attribute",
        ),
        (
            "5 — NVPTX MIR",
            "explicit immediate",
            "operand to MBARRIER_ARRIVE_EXPECT_TX_SHARED",
            "selected through ISelDAG",
        ),
        (
            "6 — PTX text",
            "explicit literal",
            "last operand to mbarrier.arrive.expect_tx.shared.b64",
            "rendered by AsmPrinter",
        ),
    ]


def test_the_address_space_trail() -> None:
    assert [(row.operand, row.trail) for row in EXAMPLE.spaces] == [
        ("Source tensor %A", "space-1 (global) at every stage"),
        ("TMA descriptor %desc_a", "space-1 (global), with grid_constant mark routing it to .param"),
        ("Destination tile (SMEM)", "space-3 (shared) starting at Stage 3, allocated from global_smem"),
        ("Mbarrier slot %mbar_a", "space-3 (shared), 64-bit aligned, lives in global_smem"),
        ("Loop iterator / coordinates", "space-0 (generic register)"),
    ]


def test_the_phases_by_name() -> None:
    assert PHASES == (
        "KernelSpec gate",
        "TMA-eligibility scan",
        "tmaIdx assignment",
        "descriptor bind",
        "async op materialization",
        "mbarrier emission",
        "wait sinking",
        "diagnostic finalization",
    )


LITERALS = [
    ("cp.async.bulk.tensor.{1..5}d.shared::cluster.global.mbarrier::complete_tx::bytes", "runtime builder"),
    ("cp.async.bulk.tensor.{3..5}d.shared::cluster.global.mbarrier::complete_tx::bytes.im2col", "runtime builder"),
    ("cp.async.bulk.tensor.2d.tile::gather4.shared::cta.global.mbarrier::complete_tx::bytes", "fixed asm"),
    ("cp.async.bulk.tensor.{1..5}d.global.shared::cta.bulk_group", "runtime builder"),
    ("cp.async.bulk.tensor.2d.tile::scatter4.global.shared::cta.bulk_group", "fixed asm"),
    ("cp.async.bulk.tensor.s2g.im2col.{3..5}d", "LLVM intrinsic"),
    ("cp.async.bulk.tensor.s2g.tile.{1..5}d", "LLVM intrinsic"),
    ("cp.async.bulk.tensor.reduce (mode + redKind)", "LLVM intrinsic"),
    ("cp.async.bulk.tensor.prefetch", "LLVM intrinsic"),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "LLVM intrinsic"),
    ("cp.async.bulk.global.shared::cta.bulk_group (non-tensor)", "LLVM intrinsic"),
    ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", "LLVM intrinsic"),
]


def test_the_emission_catalogue_letter_by_letter() -> None:
    assert [(row.literal, row.emitter) for row in COPY_TEMPLATES] == LITERALS
    first, second = COPY_TEMPLATES[:2]
    assert (first.mode, first.dim, first.multicast, first.hint) == ("tile", "1–5", 'opt, i16 "h"', 'opt, i64 "l"')
    assert (first.offsets, first.descriptor, second.offsets) == ("n/a", '%1 "l"', 'K offsets, "h"')
    assert [row.descriptor for row in COPY_TEMPLATES[2:5]] == ['$1 "l"', '%0 "l"', '$0 "l"']


def test_the_catalogues_texts_assemble_and_not_all_are_canonical() -> None:
    found = {row.literal: [verdict(text, "sm_100a") for text in instances(row)] for row in COPY_TEMPLATES}
    assert all(ours.assembles for verdicts in found.values() for ours in verdicts)
    odd = [literal for literal, verdicts in found.items() if not all(ours.canonical for ours in verdicts)]
    assert odd == [LITERALS[1][0], LITERALS[2][0], LITERALS[4][0]]


def test_the_mutators_letter_by_letter() -> None:
    assert [row.literal for row in MUTATORS] == [
        "tensormap.replace.tile.global_address.{0}.b1024.b64 [$0], $1;",
        "tensormap.replace.tile.global_dim.{0}.b1024.b32 [$0], {1}, $1;",
        "tensormap.replace.tile.global_stride.{0}.b1024.b64 [$0], {1}, $1;",
    ]
    for row, space in itertools.product(MUTATORS, ("global", "shared::cta")):
        for ordinal in range({"global_dim": 5, "global_stride": 4}.get(row.field, 1)):
            made = mutator(row.field, space, ordinal if row.has_ordinal else None)
            assert made == row.literal.replace("{0}", space).replace("{1}", str(ordinal))
            assert mutator_constraints(row.field, space) == row.constraints[space]
            slot, value = ("%rd1" if letter == "l" else "%r1" for letter in row.constraints[space].split(","))
            assert verdict(made.replace("$0", slot).replace("$1", value), "sm_90a").assembles


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("box_dim", "global", 0), "box_dim has no mutator on the rebind path; make a new map on the host"),
        (("global_dim", "bogus", 9), "the address space is bogus; must be global or shared::cta"),
        (("global_dim", "global"), "ordinal of global_dim = None; must be 0 to 4"),
        (("global_dim", "global", 5), "ordinal of global_dim = 5; must be 0 to 4"),
        (("global_stride", "global", 4), "ordinal of global_stride = 4; must be 0 to 3"),
        (("global_address", "global", 0), "global_address takes no ordinal, got 0"),
    ],
)
def test_what_no_mutator_is(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(EmissionError) as caught:
        mutator(*arguments)
    assert caught.value.headline == text


def test_the_rebind_emits_the_mutators() -> None:
    """Each replacement is its template with the operands filled in."""
    for step in rebind_sequence(3).replacements:
        row = next(row for row in MUTATORS if row.field == step.field)
        filled = row.literal.replace("{0}", "global").replace("{1}", str(step.ordinal))
        assert re.sub(r"%\w+", "$", step.text) == re.sub(r"\$\d", "$", filled)
    sequence = rebind_sequence(1, seed_copy=True)
    assert sequence.steps[0].text.startswith(SEED_COPY + " [")
    assert sequence.steps[1].text.startswith(ACQUIRE_FENCE.replace("{cta|gpu|sys}", "cta") + " [")
    assert sequence.steps[-1].text == RELEASE_FENCE.replace("{cta|gpu|sys}", "cta") + ";"


def test_what_no_assembler_takes_is_trace_text_only() -> None:
    for name, why in TRACE_ONLY.items():
        assert why
        try:
            refused = not verdict(f"{name} [%rd1], %rd2;", "sm_100a").assembles
        except UnknownFactError:
            refused = True
        assert refused, name
    assert why_not("fence.proxy.tensormap::generic.acquire.gpu;", "sm_90a") == "got 0 operands; expected map, size"
    assert why_not(SEED_COPY + " [%rd1], [%r1];", "sm_90a") == "got 2 operands; expected destination, source, size"


@pytest.mark.parametrize(
    ("text", "arch", "words"),
    [
        (
            "cp.async.bulk.tensor.2d.global.shared::cluster.bulk_group [%rd1, {%r10, %r11}], [%r1];",
            "sm_90a",
            "the state space is .global.shared::cluster; cp.async.bulk.tensor (store) needs .global.shared::cta",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10}], [%r2];",
            "sm_100a",
            "tensor [%rd1, {%r10}]: the vector has 1 elements; expected 2",
        ),
        (
            "tensormap.replace.im2col.rank.global.b1024.b32 [%rd1], %r2;",
            "sm_90a",
            ".im2col is not a modifier of tensormap.replace (tensormap.replace); tensormap.replace (tensormap.replace) "
            "needs one of .tile",
        ),
        (
            "mbarrier.arrive.shared::cluster.b64 %rd2, [%r1];",
            "sm_90a",
            "an arrival on the barrier of another CTA returns no state, so write the sink _",
        ),
        (
            "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;",
            "sm_100a",
            "ptxas 13.0.88 has no instruction of that name (PTX ISA 9.1 documents it)",
        ),
        (
            "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], 4;",
            "sm_100a",
            "tensormap.replace with .swizzle_mode and operand value needs sm_103a; got sm_100a",
        ),
        (
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group.bulk_group [%rd1, {%r10}], [%r1];",
            "sm_90",
            ".bulk_group follows .bulk_group, but at most one completion is allowed",
        ),
    ],
)
def test_reasons(text: str, arch: str, words: str) -> None:
    assert verdict(text, arch).why_not == words


def test_errors_word_for_word() -> None:
    with pytest.raises(EmissionError) as caught:
        ptx("load", dim=2, multicast=True, operands={"mask": 0x30}, cluster_size=4)
    assert str(caught.value) == "the multicast mask 0x30 names CTA 5, but the cluster has 4 CTAs"
    with pytest.raises(EmissionError) as caught:
        ptx("load", dim=2, mode="tile::gather4", arch="sm_90a")
    assert str(caught.value) == (
        "cp.async.bulk.tensor with .shared::cluster.global and .tile::gather4 needs an a or f variant of sm_100, "
        "sm_103 or sm_110; got sm_90a\n"
        "  instruction : cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {%r10, %r11, %r12, %r13, %r14}], [%r2];"
    )
    with pytest.raises(EmissionError) as caught:
        ptx("reduce", dim=1, op="mul")
    assert str(caught.value) == "reduce: op = mul\n  one of : add, min, max, inc, dec, and, or, xor"
    with pytest.raises(EmissionError) as caught:
        entry_point("SM90_TMA_STORE_3D").copy("%rd1", "%r1", 0)
    assert str(caught.value) == (
        "SM90_TMA_STORE_3D::copy takes 5 arguments; got 3\n  parameters : desc, smem, crd0, crd1, crd2"
    )
    with pytest.raises(ParseError) as parse:
        examine("prefetch.tensormap [%rd1;")
    assert str(parse.value) == "unbalanced []\n  instruction : prefetch.tensormap [%rd1;"


def test_advice_of_the_assembler() -> None:
    text = ptx("load", dim=1, multicast=True)
    assert verdict(text, "sm_90a").advice == ()
    assert verdict(text, "sm_120a").advice == (
        ".multicast::cluster is optimised for sm_90a, sm_100a, sm_100f, sm_103a, sm_103f, sm_110a, sm_110f; the "
        "PTX documentation expects it to be slow on sm_120a",
    )
