"""Calls of tensor maps: requests, rules, bits, text."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

SIZES = {0: 1, 1: 2, 2: 4, 6: 2, 7: 4, 8: 8, 9: 2}


def numbers(m: Maker, legal: bool = True) -> tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Data type, address, extents, strides in bytes, box; mostly legal."""
    kind = m.choice(list(SIZES))
    rank = m.integer(1, 5) if m.chance(0.3) else 2
    inner = m.choice((64, 128, 512))
    # Modes of 1024 are 1 and 2 alone, so that no stride reaches 2**40 bytes.
    dims = (inner, *(m.choice((1, 8, 100, 1024 if mode < 2 else 16)) for mode in range(rank - 1)))
    strides, step = [], inner * SIZES[kind]
    for extent in dims[1:]:
        strides.append(step)
        step *= extent
    box = (m.choice((16, 32, 64)), *(m.choice((1, 4, 8)) if mode < 2 else m.choice((1, 2)) for mode in range(rank - 1)))
    return kind, m.choice((4096, 0x7F0000000000)), dims, tuple(strides), box


def tiled(m: Maker) -> str:
    kind, address, dims, strides, box = numbers(m)
    more = f", swizzle={m.integer(0, 3)}" if box[0] * SIZES[kind] <= 32 else ""
    more += f", l2_promotion={m.integer(0, 3)}" if m.chance(0.3) else ""
    more += ", oob_fill=1" if kind >= 6 and m.chance(0.3) else ""
    return f"tma.TensorMapTiled({kind}, {address}, {dims}, {strides}, {box}{more})"


def im2col(m: Maker) -> str:
    return (
        f"tma.TensorMapIm2col({m.choice((0, 6, 7))}, 4096, (64, 16, 8, 2), (256, 4096, 32768), "
        f"({m.integer(-2, 0)}, -1), (-1, {m.integer(-2, 0)}), {m.choice((16, 32))}, {m.choice((6, 64, 128))})"
    )


WIDE = "tma.TensorMapIm2colWide(6, 4096, (64, 16, 8, 2), (128, 2048, 16384), -1, -1, 64, 128)"


def request(m: Maker) -> str:
    return m.one_of(tiled(m), tiled(m), im2col(m), WIDE, "request()")


def map_bytes(m: Maker) -> str:
    return m.one_of(
        f"tma.encode({tiled(m)})", f"tma.encode({im2col(m)})", f"tma.payload({tiled(m)})", "bytes(64)", "bytes(128)"
    )


def tiled_bytes(m: Maker) -> str:
    return f"tma.encode({tiled(m)})"


INSTANCES.update(
    {
        "tma.TensorMapTiled": tiled,
        "tma.TensorMapIm2col": im2col,
        "tma.TensorMapIm2colWide": WIDE,
        "tma.Addition": lambda m: f"tma.ADDITIONS[{m.integer(0, 1)}]",
        "tma.Architecture": lambda m: f"tma.ARCHITECTURES[{m.integer(0, 2)}]",
        "tma.BitField": lambda m: f"tma.FIELDS[{m.integer(0, 20)}]",
        "tma.FieldDifference": "tma.diff(bytes(64), tma.encode(request())[:64]).fields[0]",
        "tma.FieldValue": lambda m: f"tma.field_table(tma.encode(request()))[{m.integer(0, 9)}]",
        "tma.FormatRow": lambda m: f"tma.FORMATS[{m.integer(0, 12)}]",
        "tma.Hazard": lambda m: f"tma.HAZARDS[{m.integer(0, 3)}]",
        "tma.LogicalSlot": lambda m: f"tma.logical_slots(tma.encode(request()))[{m.integer(0, 7)}]",
        "tma.MapDifference": "tma.diff(bytes(64), tma.encode(request())[:64])",
        "tma.Quirk": "tma.QUIRKS[0]",
        "tma.RebindStep": "tma.rebind_steps(8192, (256, 77), (512,))[1]",
        "tma.ReplaceField": lambda m: f"tma.REPLACE_FIELDS[{m.integer(0, 9)}]",
        "tma.Residue": "tma.decode(bytes(128)).residue",
        "tma.Rule": lambda m: f"tma.RULES[{m.integer(0, 9)}]",
        "tma.Violation": "tma.violations(tma.TensorMapTiled(6, 4096, (64, 8), (120,), (64, 300)))[0]",
        "tma.Diagnostic": "tma.violations(tma.TensorMapTiled(6, 4096, (64, 8), (120,), (64, 300)))[0]",
        "tma.Warned": "tma.hazards(tma.decode(bytes(64)))[0]",
    }
)

ENUMS = {
    "interleave": lambda m: str(m.integer(0, 2)),
    "swizzle": lambda m: str(m.integer(0, 6)),
    "l2_promotion": lambda m: str(m.integer(0, 3)),
    "oob_fill": lambda m: str(m.integer(0, 1)),
}


@calls_of("tma.TensorMapTiled", weight=3)
def _tiled(m: Maker) -> Any:
    kind, address, dims, strides, box = numbers(m)
    kwargs = {key: make(m) for key, make in ENUMS.items() if m.chance(0.25)}
    if m.chance(0.25):
        kwargs["element_strides"] = repr(tuple(m.choice((1, 1, 2)) for _ in dims))
    return (str(kind), str(address), repr(dims), repr(strides), repr(box)), kwargs


@calls_of("tma.TensorMapIm2col", weight=2)
def _im2col(m: Maker) -> Any:
    kwargs = {key: make(m) for key, make in ENUMS.items() if m.chance(0.2)}
    kwargs.update({"element_strides": "(1, 1, 1, 1)"} if m.chance(0.2) else {})
    return ("6", "4096", "(64, 16, 8, 2)", "(128, 2048, 16384)", "(-1, -1)", "(-1, 0)", "64", "128"), kwargs


@calls_of("tma.TensorMapIm2colWide")
def _wide(m: Maker) -> Any:
    kwargs = {"mode": str(m.integer(0, 1))} if m.chance(0.5) else {}
    return ("6", "4096", "(64, 16, 8, 2)", "(128, 2048, 16384)", "-1", "-1", "64", "128"), kwargs


method("tma.TensorMapIm2col.as_wide", f"{WIDE}.as_im2col()", lambda m: m.one_of("0", "1", "tma.Im2ColWideMode.W128"))
method("tma.TensorMapIm2colWide.as_im2col", WIDE, weight=0.2)
for kind, instance in (("Tiled", tiled), ("Im2col", im2col), ("Im2colWide", lambda m: WIDE)):

    @calls_of(f"tma.TensorMap{kind}.restore", weight=0.5)
    def _restore(m: Maker, instance: Any = instance) -> Any:
        made = instance(m)
        return f"{made}.field_values()", f"{made}.residue"


for name in ("describe", "diff", "field_table", "hazards", "logical_slots", "seed_fields", "decode", "read_map"):
    if name == "diff":
        add("tma.diff", map_bytes, map_bytes)
    elif name == "describe":
        add(
            "tma.describe",
            lambda m: m.choice((request, map_bytes))(m),
            named={"view": lambda m: m.one_of("'summary'", "'fields'", "'seed001'", "'slots'"), "arch": "'sm_90a'"},
        )
    elif name == "hazards":
        add("tma.hazards", lambda m: m.choice((request, tiled_bytes))(m))
    else:
        add(f"tma.{name}", map_bytes)
add("tma.diff", request, request)
add("tma.logical_slots", tiled_bytes, "2")
add(
    "tma.read_map",
    lambda m: m.one_of(
        "'DESC_TMA512: 0x0000000000001000 0x0000004000006310 0x0 0x0'",
        "' '.join(f'0x{w:016x}' for w in memoryview(tma.encode(request())).cast('Q'))",
        "tma.encode(request()).hex()",
        "list(tma.encode(request()))",
        "'{' + ', '.join(str(b) for b in tma.encode(request())) + '}'",
        "numpy.frombuffer(tma.encode(request()), numpy.uint64)",
    ),
    named={"order": lambda m: m.one_of("'auto'", "'little'", "'big'")},
)
for name in ("encode", "payload"):
    add(f"tma.{name}", request, named={"driver": lambda m: m.one_of("13000", "12080", "None"), "arch": Maker.arch})
add("tma.violations", request, named={"arch": Maker.arch})
for name in ("to_json", "note_box_bytes", "transaction_bytes", "driver_encode"):
    add(f"tma.{name}", request, device=name == "driver_encode")
add("tma.from_json", lambda m: f"tma.to_json({request(m)})")
add(
    "tma.from_json",
    "{'data_type': 'bfloat16', 'global_address': 0, 'global_dim': [64], 'global_strides': [], 'box_dim': [64]}",
)
add("tma.encode_many", lambda m: f"[{tiled(m)}, {tiled(m)}]")


@calls_of("tma.encode_many", weight=2)
def _many(m: Maker) -> Any:
    key = m.choice(
        (
            "'global_address': [4096, 8192]",
            "'global_dim': [[64, 8], [32, 4]]",
            "'box_dim': numpy.array([[64, 8], [8, 8]])",
        )
    )
    base = {
        "data_type": "6",
        "global_address": "4096",
        "global_dim": "(64, 8)",
        "global_strides": "(128,)",
        "box_dim": "(64, 8)",
    }
    rows = [f"'{k}': {v}" for k, v in base.items() if f"'{k}'" not in key]
    return ("{" + ", ".join([*rows, key]) + "}",)


FIELD_VALUES = (
    ("'global_address'", "8192", "0"),
    ("'rank'", "1", "0"),
    ("'global_dim'", "77", "1"),
    ("'global_stride'", "2048", "0"),
    ("'box_dim'", "16", "0"),
    ("'element_stride'", "1", "1"),
    ("'elemtype'", "6", "0"),
    ("'interleave_layout'", "0", "0"),
    ("'swizzle_mode'", "2", "0"),
    ("'fill_mode'", "1", "0"),
)


@calls_of("tma.replace", weight=2)
def _replace(m: Maker) -> Any:
    field, value, ordinal = m.choice(FIELD_VALUES)
    return (
        ("tma.encode(request())", field, value, ordinal) if ordinal != "0" else ("tma.encode(request())", field, value)
    )


add("tma.update_tma_descriptor", tiled_bytes, lambda m: m.one_of("'UPDATE_BASE_POINTER'", "'UPDATE_DIM'"), "0", "8192")
add("tma.rebind", "tma.encode(request())", "8192", "(256, 77)", "(512,)")
add("tma.rebind_steps", "8192", "(256, 77)", "(512,)")
add("tma.repaired", tiled_bytes, lambda m: m.one_of("13000", "12080", "13040"))
add(
    "tma.request_of_array",
    "(1024, 512)",
    Maker.dtype,
    "(128, 64)",
    named={"strides": "(1024, 1)", "address": "4096", "swizzle": "0"},
)
add("tma.request_of_array", "(8, 64, 32)", "'float16'", "(1, 8, 32)", named={"swizzle": "2"})
add(
    "tma.request_of_npy",
    lambda m: m.one_of("saved((64, 32), 'float16')", "saved((64, 32), 'float16')", "'missing.npy'"),
    "(8, 16)",
    weight=0.5,
)
add("tma.format_of", Maker.dtype)
add("tma.format_row", lambda m: str(m.integer(0, 15)))
add("tma.architecture", lambda m: m.one_of("'sm_90a'", "'sm_100a'", "'sm_103a'", "'sm_120a'"))

add("tma.Addition", "'NAME'", "'swizzle'", "(4,)", "('sm_100a',)", "None", "'a fact'", "'a source'")
add("tma.Architecture", "'sm_90a'", "233472", "frozenset({1})", "frozenset({0})", "'a source'")
add("tma.BitField", "'box_dim'", "64", "8", "'size - 1'", named={"mode": "0"})
method("tma.BitField.read", INSTANCES["tma.BitField"], "1 << 300")
add("tma.FieldDifference", "'box_dim[0]'", "'w6[56:63]'", "64", "32", "'elements'")
add("tma.FieldValue", "'rank'", "1", "4", "3", "1", "2", "''", "''")
add("tma.FormatRow", "tma.TensorMapDataType.FLOAT16", "6", "0", "16", "True", "('float16',)")
add("tma.Hazard", "'null address'", "'it traps'", "'a source'", "print")
add("tma.LogicalSlot", "'name'", "0", "'meaning'", "(('lane', 1),)", "True", "'t'", "'m'")
add("tma.MapDifference", "()", "()", "64")
add("tma.Quirk", "'name'", "1", "255", "13000", "print", "'when'", "'what'", "'a source'")
add("tma.RebindStep", "'global_dim'", "77", "1")
add("tma.ReplaceField", "'rank'", "1", "32", "5", "'rank'")
add("tma.Residue", "1", "()")
add("tma.Rule", "'box'", "'at most 256'", "'elements'", "'a source'", named={"minimum": "1", "maximum": "256"})
add("tma.Diagnostic", "'box'", "'boxDim[0]'", "300", "'elements'", named={"text": "'a text'", "severity": "'warning'"})
add(
    "tma.Violation",
    "'box'",
    "'boxDim[0]'",
    "300",
    "'elements'",
    "'at most 256'",
    "'a source'",
    named={"mode": "0", "detail": "'text'"},
)
add("tma.Warned", "'ragged rows'")
add("tma.tensor_map_format", lambda m: f"make_gmem_ptr(0, {m.dtype()}).dtype")
add("tma.movable_type", lambda m: f"make_gmem_ptr(0, {m.dtype()}).dtype")
