"""Calls of instructions, stages, kernels and exports."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

SHAPES = (
    "copy_of()",
    "copy_of('store')",
    "copy_of('reduce')",
    "tile_atom('load', (128, 128), 'bf16', swizzle=3)",
    "tile_atom('load', (64, 64), 'float32', multicast=2)",
    "tile_atom('load', (4, 8, 64), 'uint8')",
    "window_operation()",
    "tile_atom('load', (4, 64), 'float16', op='SM100_TMA_LOAD_2D_GATHER4', arch='sm_100a')",
    "tile_atom('load', (64,), 'int32').with_(None, cache_hint=1)",
    "request()",
)
ATOMS = (
    "load_atom()",
    "load_atom('SM90_TMA_STORE')",
    "load_atom('SM90_TMA_REDUCE_ADD')",
    "load_atom('SM90_TMA_LOAD_MULTICAST', 64, 64, '128B', 2)",
    "im2col_atom()",
)
INSTRUCTIONS = (
    "'cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10}], [%r2];'",
    "'prefetch.tensormap [%rd1];'",
    "'mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;'",
    "'tensormap.replace.tile.global_dim.global.b1024.b32 [%rd1], 1, %r2;'",
    "'cp.async.bulk.commit_group;'",
    "'fence.proxy.async;'",
    "'wgmma.fence.sync.aligned;'",
)
FORM_CALLS = (
    ("'load'", {"dim": "2", "multicast": "True"}),
    ("'load'", {"dim": "3", "mode": "'im2col'"}),
    ("'load'", {"dim": "2", "operands": "{'coords': (0, 64)}"}),
    ("'store'", {"dim": "2"}),
    ("'reduce'", {"dim": "1", "op": "'add'"}),
    ("'prefetch'", {"dim": "2"}),
    ("'bulk.load'", {}),
    ("'bulk.store'", {"cp_mask": "True"}),
    ("'tensormap.replace'", {"field": "'global_dim'", "spaces": "'global'"}),
    ("'mbarrier.init'", {}),
    ("'mbarrier.arrive.expect_tx'", {}),
    ("'mbarrier.try_wait.parity'", {}),
    ("'elect.sync'", {}),
    ("'bulk.commit_group'", {}),
)


def shape(m: Maker) -> str:
    return m.choice(SHAPES)


def plain_shape(m: Maker) -> str:
    return m.choice(SHAPES[:3])


def atom(m: Maker) -> str:
    return m.choice(ATOMS)


def sm(m: Maker) -> str:
    return m.one_of("'sm_90a'", "'sm_90'", "'sm_100a'", "'sm_80'")


def damaged(m: Maker) -> str:
    text = m.choice(INSTRUCTIONS)[1:-1]
    at = m.integer(0, len(text))
    return repr(text[:at] + m.choice(("", ".", "[", "}", "%", "::", "x", ";")) + text[at + m.integer(0, 3) :])


def instruction(m: Maker) -> str:
    return damaged(m) if m.chance(0.3) else m.choice(INSTRUCTIONS)


def program(m: Maker) -> str:
    """A module of a store with what belongs to it, some of it left out."""
    body = (
        "'st.shared.b32 [smem], 1;'",
        "'fence.proxy.async.shared::cta;'",
        "'cp.async.bulk.global.shared::cta.bulk_group [%rd1], [smem], 32;'",
        "'cp.async.bulk.commit_group;'",
        "'cp.async.bulk.wait_group.read 0;'",
    )
    return f"ptx_text({', '.join(line for line in body if m.chance(0.8))})"


INSTANCES.update(
    {
        "targets.Target": lambda m: f"targets.architecture({sm(m)})",
        "tma.Capability": "tma.capability('load tile shared::cta', 'sm_90a')",
        "tma.EntryPoint": lambda m: f"tma.ENTRY_POINTS[{m.integer(0, 80)}]",
        "tma.ParsedInstruction": lambda m: f"tma.examine({m.choice(INSTRUCTIONS)})",
        "tma.ProgramReport": lambda m: f"tma.check_program({program(m)})",
        "tma.InlineAsm": "tma.inline_asm('load', dim=2, multicast=True)",
        "tma.KernelOperation": "tma.KernelOperation('%s = use %a_tile', ('A',))",
        "tma.KernelFunction": "tma.KernelFunction('sm_90a', (copy_of(), copy_of('store')))",
        "tma.Lowering": lambda m: f"tma.lower({plain_shape(m)})",
        "tma.PhaseTrace": "tma.run_phases(tma.KernelFunction('sm_90a', (copy_of(),)))",
        "tma.RebindSequence": "tma.rebind_sequence(2)",
        "tma.Variant": lambda m: f"tma.VARIANTS[{m.integer(0, 30)}]",
        "tma.Verdict": lambda m: f"tma.verdict({m.choice(INSTRUCTIONS)}, {sm(m)})",
    }
)

add("targets.architecture", Maker.arch)
add(
    "tma.check_program",
    program,
    named={"arch": sm, "maps": "{0: small_request()}", "assemble": "False", "launched": "True"},
)
add("tma.ProgramReport", "'sm_90a'", "(9, 0)", "()", "{'load': 1}")
add("targets.Target", "'sm_90a'", "90", "'a'", "(8, 0)", "'Hopper'")
add("tma.init_sequence", "request()", named={"space": lambda m: m.one_of("'global'", "'shared'")})
add(
    "tma.capability",
    lambda m: f"tma.VARIANTS[{m.integer(0, 60)}].name",
    lambda m: m.one_of("'sm_90a'", "'sm_100a'", "'sm_120a'"),
)
add("tma.Capability", "(8, 6)", "None")
add("tma.ch_opnum", "2", "0", "True")
add("tma.mcast_opnum", "4", "2")
add("tma.cuda_kernel", lambda m: m.one_of("copy_of()", "copy_of('store')"), named={"name": "'kernel'"})
add("tma.cute_cpp", "copy_of()", "request()")
add("tma.triton", "copy_of()", "request()")
add(
    "tma.encode_call",
    lambda m: m.one_of("request()", "im2col_request()"),
    named={"variable": "'map_a'", "address": "'pointer'"},
)
add("tma.entry_point", lambda m: f"tma.ENTRY_POINTS[{m.integer(0, 80)}].name")
add("tma.EntryPoint", "'SM90_TMA_LOAD_1D'", "'load'", "(('dim', 1),)", "('desc', 'mbar', 'smem', 'crd0')")
method("tma.EntryPoint.copy", "tma.entry_point('SM90_TMA_STORE_3D')", "'%rd1'", "'%r1'", "'%r2'", "'%r3'", "'%r4'")
add("tma.examine", instruction, named={"symbols": "{'smem': 'shared'}"})
add("tma.verdict", instruction, sm, named={"version": lambda m: m.one_of("(9, 0)", "(8, 0)")})
method("tma.ParsedInstruction.min_version", f"tma.examine({INSTRUCTIONS[0]})", sm)
method("tma.ParsedInstruction.reasons", f"tma.examine({INSTRUCTIONS[0]})", sm, named={"version": "(8, 0)"})
method("tma.ParsedInstruction.check_target", f"tma.examine({INSTRUCTIONS[0]})", sm, named={"version": "(8, 0)"})
method("tma.ParsedInstruction.why_not", f"tma.examine({INSTRUCTIONS[0]})", sm, named={"version": "(8, 0)"})
for name, given in (
    ("ParsedInstruction", ("text", "form", "chosen", "canonical", "canonical_text", "errors", "requirements")),
    ("Verdict", ("text", "arch", "assembles", "canonical", "canonical_text", "min_version", "reasons", "advice")),
    ("PhaseTrace", ("phases", "rewritten", "num_host_tmas", "num_device_tmas", "diagnostics", "barriers")),
    ("Lowering", ("copy", "arch", "witness", "reasons", "stages", "flow", "orders", "spaces", "phases")),
    ("InlineAsm", ("template", "operands")),
    ("RebindSequence", ("rank", "space", "scope", "steps")),
    ("Variant", ("name", "form", "text")),
):
    instances = {
        "ParsedInstruction": f"tma.examine({INSTRUCTIONS[0]})",
        "Verdict": f"tma.verdict({INSTRUCTIONS[0]}, 'sm_90a')",
        "PhaseTrace": "tma.run_phases(tma.KernelFunction('sm_90a', (copy_of(),)))",
        "Lowering": "tma.lower(copy_of())",
        "InlineAsm": "tma.inline_asm('load', dim=2)",
        "RebindSequence": "tma.rebind_sequence(2)",
        "Variant": "tma.VARIANTS[0]",
    }
    add(f"tma.{name}", *(f"{instances[name]}.{f}" for f in given), weight=0.3)
add(
    "tma.export",
    lambda m: m.choice((atom, atom, shape))(m),
    lambda m: m.one_of("'cu'", "'ptx'", "'c'", "'cute'", "'triton'"),
    named={"arch": sm, "request": "request()"},
)
add("tma.write_export", "load_atom()", lambda m: m.one_of("'ptx'", "'c'"), "'exported'", weight=0.3)
add("tma.form", lambda m: f"tma.FORMS[{m.integer(0, 60)}].name")


@calls_of("tma.ptx", weight=2)
def _ptx(m: Maker) -> Any:
    name, modifiers = m.choice(FORM_CALLS)
    more = {"predicate": "'@%p1'"} if m.chance(0.2) else {}
    more.update({"arch": sm(m)} if m.chance(0.2) else {})
    return (name,), {**modifiers, **more}


@calls_of("tma.inline_asm")
def _asm(m: Maker) -> Any:
    name, modifiers = m.choice(FORM_CALLS[:2] + FORM_CALLS[3:6])
    return (name,), modifiers


@calls_of("tma.check_target")
@calls_of("tma.why_not")
def _why_not(m: Maker) -> Any:
    if m.chance(0.4):
        return (instruction(m), sm(m)), {}
    name, modifiers = m.choice(FORM_CALLS)
    return (name, sm(m)), {k: v for k, v in modifiers.items() if k != "operands"}


add(
    "tma.KernelFunction",
    "'sm_90a'",
    "(copy_of(), copy_of('store'))",
    named={"num_host_tmas": "2", "allow_tma": "False", "device": "('A',)"},
)
add("tma.KernelOperation", "'%acc = nv_tileas.mma %a_tile'", named={"reads": "('A',)"})
add(
    "tma.run_phases",
    lambda m: m.one_of(
        "tma.KernelFunction('sm_90a', (copy_of(),))",
        "tma.KernelFunction(None, ())",
        "tma.KernelFunction('sm_80', (copy_of(), copy_of('store')))",
    ),
)
add("tma.legacy_ptx", "copy_of()", "'sm_80'", named={"kind": "''"})
add(
    "tma.single_tile_ptx", plain_shape, named={"arch": lambda m: m.one_of("'sm_90a'", "'sm_100a'"), "version": "(9, 0)"}
)
add(
    "tma.lower",
    lambda m: m.choice((shape, atom))(m),
    named={
        "tile_coord": "(0, 1)",
        "arch": lambda m: m.one_of("'sm_90a'", "'sm_100a'", "'sm_80'"),
        "allow_tma": "True",
        "device_descriptor": "True",
        "alignment": lambda m: m.one_of("64", "256"),
        "mem_semantic": lambda m: m.one_of("'acquire'", "'relaxed'"),
        "in_bounds": lambda m: m.one_of("(True,)", "(True, False)"),
    },
)
method("tma.Lowering.stage", "tma.lower(copy_of())", lambda m: m.one_of("'1'", "'3a'", "'7'"))
method("tma.Lowering.print", "tma.lower(copy_of())", named={"file": "io.StringIO()"})
add(
    "tma.mutator",
    lambda m: m.one_of("'global_address'", "'global_dim'", "'global_stride'", "'box_dim'"),
    named={"space": lambda m: m.one_of("'global'", "'shared::cta'"), "ordinal": lambda m: m.one_of("0", "3", "None")},
)
add(
    "tma.rebind_ptx", lambda m: str(m.integer(1, 5)), named={"arch": "'sm_100a'", "scope": "'sys'", "version": "(9, 0)"}
)
add(
    "tma.rebind_sequence",
    lambda m: str(m.integer(1, 5)),
    named={
        "space": lambda m: m.one_of("'global'", "'shared'"),
        "scope": lambda m: m.one_of("'cta'", "'gpu'"),
        "seed_copy": "False",
    },
)
method("tma.Targets.has", "tma.Targets.FROM_90", lambda m: f"targets.architecture({sm(m)})")
