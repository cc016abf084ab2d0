"""The tiled atoms of gbasis_cpp and gbasis_cpp_random: operands to statements, printed fields to records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.oracle.record import printed
from tests.oracle.record.family import Family, Row
from tests.oracle.record.program import Outcome

TYPES = {
    "complex<float>": "cutlass::complex<float>",
    "int4_t": "cutlass::int4b_t",
    "uint4": "cutlass::uint4b_t",
    "int2": "cutlass::int2b_t",
    "uint1": "cutlass::uint1b_t",
}
"""Element types whose C++ name is not the recorded one."""

LAYOUT_STAGES = (
    "inv_smem",
    "sidx2gmode_full",
    "sidx2gmode",
    "tile_gstride",
    "tma_gstride",
    "tile_gbasis",
    "tma_gbasis_tile",
)

_BIT_POINTER = re.compile(r"\((?:0x([0-9a-f]+)|\(nil\))\.(\d+)\)")


def cpp_type(name: str) -> str:
    return TYPES.get(name, name)


def operands(row: Row) -> dict[str, str]:
    """The C++ of a tiled row's operands.

    Where a row that does not compile has no tiler, or no `smem_full`, the shape and the layout of `smem` stand in.
    """
    smem = row["smem"]
    tiler = row["cta_tiler"] or smem["str"].split(" o ")[-1].partition(":")[0]
    smem_full = row.get("smem_full") or smem
    return {
        "types": f"{cpp_type(row['dtype'])}, {cpp_type(row['internal_type'])}",
        "address": f"{row['gmem_address']}ull",
        "op": f"{row['op']}{{}}",
        "gmem": printed.cpp(row["gmem"]["str"]),
        "smem": printed.shared_cpp(smem["str"], smem["swizzle"]),
        "smem_full": printed.shared_cpp(smem_full["str"], smem["swizzle"]),
        "tiler": printed.cpp(tiler),
        "count": f"Int<{row['num_multicast']}>{{}}",
    }


def call(function: str, words: Mapping[str, str]) -> str:
    names = ["address", "op", "gmem", "smem", "smem_full", "tiler", "count"]
    if function in ("tiled_copy", "slices"):
        names.remove("smem_full")
    return f"{function}<{words['types']}>({', '.join(words[name] for name in names)});"


def statements(row: Row) -> dict[str, str]:
    words = operands(row)
    parts = {"atom": call("atom", words)}
    if "partitions" in row:
        parts["partitions"] = call("partitions", words)
    if "tiled_copy" in row or "tiled_copy_reject" in row:
        parts["copy"] = call("tiled_copy", words) + " " + call("slices", words)
    return parts


def refused(row: Row, part: str) -> bool:
    return row.get("reject_kind") == "compile_error" or (part == "copy" and "tiled_copy_reject" in row)


def offset(text: str, bits: int) -> int:
    """Elements from the null pointer, of a printed number of elements or a printed pointer into bytes."""
    pointer = _BIT_POINTER.search(text)
    if pointer is None:
        return int(text)
    return (int(pointer[1] or "0", 16) * 8 + int(pointer[2])) // bits


def basis_stages(fields: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: printed.layout(fields[name]) for name in LAYOUT_STAGES if name in fields}
    return found | ({"smem_rank": int(fields["smem_rank"])} if "smem_rank" in fields else {})


def before_the_atom(fields: Mapping[str, str]) -> Row:
    made: Row = {name: printed.shared_layout(fields[name]) for name in ("smem", "smem_full") if name in fields}
    made |= {name: printed.layout(fields[name]) for name in ("gmem", "cta_v_map", "tma_gbasis") if name in fields}
    made |= {name: int(fields[name]) for name in ("dtype_bits", "internal_bits") if name in fields}
    made |= {name: fields[name] for name in ("cta_tiler", "mma_tiler", "cluster_shape") if name in fields}
    return made | {"stages": basis_stages(fields)}


def of_the_atom(fields: Mapping[str, str]) -> Row:
    tensor = printed.coordinate_tensor(fields["tma_tensor"])
    return {
        "g_stride": {"str": fields["g_stride"], "value": printed.values(fields["g_stride"])},
        "num_val_src": int(fields["num_val_src"]),
        "tma_tensor": tensor,
        "encode": json.loads(fields["encode"]),
        "rejected": False,
        "coord_rank": len(tensor["offset"]),
    }


def shared_part(layout: str, place: str, bits: int) -> Row:
    return {"layout": printed.shared_layout(layout), "offset_elems": offset(place, bits)}


def numbered(fields: Mapping[str, str], name: str) -> list[str]:
    """name0, name1, ... as far as there are."""
    found: list[str] = []
    while (key := f"{name}{len(found)}") in fields:
        found.append(fields[key])
    return found


def partitions(fields: Mapping[str, str], bits: int) -> Row:
    rows = [
        {
            "cta": cta,
            "tAgA": printed.coordinate_tensor(fields[f"tAgA{cta}"]),
            "tAsA": shared_part(fields[f"tAsA{cta}"], fields[f"offset{cta}"], bits),
        }
        for cta in range(len(numbered(fields, "tAgA")))
    ]
    made: Row = {"gA": printed.coordinate_tensor(fields["gA"]), "partitions": rows}
    if "default_tAgA" in fields:
        same = all(fields[f"default_{name}"] == fields[f"{name}0"] for name in ("tAgA", "tAsA"))
        made["partition_default_same"] = same
    return made


def tiled_copy(fields: Mapping[str, str], bits: int) -> Row:
    slices = [
        {
            "cta": cta,
            "partition_S": printed.coordinate_tensor(fields[f"partition_S{cta}"]),
            "partition_D": shared_part(fields[f"partition_D{cta}"], fields[f"offset{cta}"], bits),
        }
        for cta in range(len(numbered(fields, "partition_S")))
    ]
    return {"tiler_mn": fields["tiler_mn"], "layout_tv": printed.layout(fields["layout_tv"]), "slices": slices}


def rejection(kind: str, message: str) -> Row:
    return {"encode": None, "rejected": True, "reject_kind": kind, "reject_message": message}


def record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    atom = outcomes["atom"]
    made: Row = {}
    if "copy" in outcomes:
        copy = outcomes["copy"]
        if copy.compiler or copy.assertion:
            # An assertion here is the atom's own, already recorded.
            made["tiled_copy_reject"] = f"make_tma_copy(TiledCopy) rejected: {copy.compiler or copy.assertion}"
        else:
            made["tiled_copy"] = tiled_copy(copy.fields, row["dtype_bits"])
    if atom.compiler:
        return made | rejection("compile_error", atom.compiler)
    made |= before_the_atom(atom.fields)
    if atom.assertion:
        return made | rejection("runtime_assert", atom.assertion)
    made |= of_the_atom(atom.fields)
    made["num_bits_per_tma"] = made["num_val_src"] * made["dtype_bits"] ** 2  # the recorded number has the bits twice
    if "partitions" in outcomes:
        parts = outcomes["partitions"]
        if parts.compiler or parts.assertion:
            made["partitions_reject"] = parts.compiler or parts.assertion
        else:
            made |= partitions(parts.fields, made["dtype_bits"])
    return made


def random_statements(row: Row) -> dict[str, str]:
    words = {
        "types": f"{cpp_type(row['dtype'])}, {cpp_type(row['internal'])}",
        "address": "4096ull",
        "op": f"{row['op']}{{}}",
        "gmem": printed.cpp(row["gmem"]),
        "smem": printed.shared_cpp(row["smem"]),
        "smem_full": printed.shared_cpp(row["smem_full"]),
        "tiler": printed.cpp(row["tiler"]),
        "count": printed.cpp(row["multicast"]),
    }
    refused_stages = row.get("rejected", {})
    parts = {"show": call("atom", words)}
    if "parts" in row or "parts" in refused_stages:
        parts["parts"] = call("partitions", words)
    if "layout_tv" in row or "tc" in refused_stages:
        parts["tc"] = call("tiled_copy", words)
    return parts


def arguments(text: str) -> str:
    """The driver's arguments as gbasis_cpp_random holds them."""
    call = json.loads(text)
    lists = {"dim": "globalDim", "stride": "globalStrides", "box": "boxDim", "es": "elementStrides"}
    modes = {"il": "interleave", "sw": "swizzle", "l2": "l2Promotion", "oob": "oobFill"}
    words = [f"dtype={call['dtype']}", f"address={call['globalAddress']}"]
    return ";".join(words + [f"{short}={call[name]}" for short, name in (lists | modes).items()])


def random_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    made: Row = {}
    rejected = {}
    for part, outcome in outcomes.items():
        fields = outcome.fields
        if outcome.compiler or outcome.assertion:
            condition = (outcome.compiler or outcome.assertion).rpartition(" @ ")[0]
            rejected[part] = condition.removeprefix("static assertion failed: ")
        elif part == "show":
            made |= {name: fields[name] for name in ("cta_v_map", "tma_gbasis", "g_stride", "tma_tensor")}
            made |= {"encode": arguments(fields["encode"]), "num_val_src": int(fields["num_val_src"])}
        elif part == "parts":
            columns = [numbered(fields, name) for name in ("tAgA", "tAsA", "offset")]
            whole = [[gmem, smem, int(at) if at.isdigit() else None] for gmem, smem, at in zip(*columns, strict=True)]
            made |= {"gA": fields["gA"], "parts": whole}
        else:
            made |= {"tiler_mn": fields["tiler_mn"], "layout_tv": fields["layout_tv"]}
    return made | ({"rejected": rejected} if rejected else {})


def random_refused(row: Row, part: str) -> bool:
    """Was the recorded condition the compiler's? The row does not say; assertions name CuTe's run-time arrays."""
    condition = row.get("rejected", {}).get(part, "gmem_")
    return not condition.lstrip("(").startswith(("gmem_", "smem_box"))


RANDOM = Family(
    file="gbasis_cpp_random",
    statements=random_statements,
    record=random_record,
    inputs=lambda row: ("op", "dtype", "internal", "multicast", "gmem", "smem", "smem_full", "tiler"),
    copied={"arch": "the architecture that the operation is for; the host compiler is not told"},
    refused=random_refused,
    together=40,
    limits=("parts and TV layouts that a row does not have (not asked for when it was recorded)",),
)
