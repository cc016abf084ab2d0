"""gbasis_cpp: atoms, im2col windows, operands of CTA pairs, multicast masks and the small maps, by the row's `kind`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.oracle.record import atoms, printed
from tests.oracle.record.family import Family, Row
from tests.oracle.record.notation import dynamic_integer, tupled
from tests.oracle.record.program import Outcome

WINDOW = (
    "lower_corner_whd",
    "upper_corner_whd",
    "lower_padding_whd",
    "upper_padding_whd",
    "stride_whd",
    "lower_srt",
    "stride_srt",
)
"""The operands of an im2col copy after its tile, in the order of make_im2col_tma_copy."""


class Kind(NamedTuple):
    """One kind of row, as a Family is of rows of one file."""

    statements: Callable[[Row], dict[str, str]]
    record: Callable[[Row, Mapping[str, Outcome]], Row]
    inputs: tuple[str, ...]


def _mask(row: Row) -> dict[str, str]:
    modes = f"<{','.join(map(str, row['modes']))}>" if row["modes"] else ""
    coordinate = tupled([dynamic_integer(at) for at in row["coord"]])
    layout = printed.cpp(row["cluster_layout_vmnk"]["str"])
    return {
        "text": f'auto cluster = {layout}; FIELD("layout"); print(cluster); FIELD("mask"); '
        f"print(int(create_tma_multicast_mask{modes}(cluster, {coordinate})));"
    }


def _mask_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    fields = outcomes["text"].fields
    return {"cluster_layout_vmnk": printed.layout(fields["layout"]), "mask": int(fields["mask"])}


def _coalesce(row: Row) -> dict[str, str]:
    text = f'auto in = {printed.cpp(row["in"]["str"])}; FIELD("in"); print(in); FIELD("out"); '
    return {"text": text + "print(cute::detail::coalesce_256(in));"}


def _coalesce_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    return {name: printed.layout(outcomes["text"].fields[name]) for name in ("in", "out")}


def _swizzle(row: Row) -> dict[str, str]:
    swizzle = f"Swizzle<{','.join(map(str, row['swizzle']))}>{{}}"
    bits, base = f"cute::detail::get_tma_swizzle_bits({swizzle})", f"cute::detail::get_tma_swizzle_base({swizzle})"
    call = f"int({bits}), int({base}), int(TMA::to_CUtensorMapSwizzle({bits}, {base}))"
    return {"text": f'printf("[%d, %d, %d]", {call});'}


def _swizzle_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    outcome = outcomes["text"]
    if reason := outcome.compiler or outcome.assertion:
        return {"rejected": True, "reject_message": reason}
    names = ("bits", "base", "cu_swizzle")
    values = dict(zip(names, json.loads(outcome.text), strict=True))
    return {**values, "rejected": False, "reject_message": ""}


def _dtype(row: Row) -> dict[str, str]:
    name = atoms.cpp_type(row["type_name"])
    return {"text": f'printf("[%d, %d]", int(sizeof_bits_v<{name}>), int(TMA::to_CUtensorMapDataType<{name}>()));'}


def _dtype_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    return dict(zip(("bits", "cu_dtype"), json.loads(outcomes["text"].text), strict=True))


def _pair(row: Row) -> dict[str, str]:
    arguments = [
        f"{row['op']}{{}}",
        printed.cpp(row["gmem"]["str"]),
        printed.shared_cpp(row["smem"]["str"]),
        printed.cpp(row["mma_tiler"]),
        printed.cpp(row["cluster_shape"]),
    ]
    return {"text": f"two_sm_operand_a<{atoms.cpp_type(row['dtype'])}>({', '.join(arguments)});"}


def _pair_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    fields = outcomes["text"].fields
    bits = int(fields["dtype_bits"])
    parts = [
        {
            "v": int(fields[f"v{i}"]),
            "n": int(fields[f"n{i}"]),
            "tCgA": printed.coordinate_tensor(fields[f"tCgA{i}"]),
            "tAgA": printed.coordinate_tensor(fields[f"tAgA{i}"]),
            "tAsA": atoms.shared_part(fields[f"tAsA{i}"], fields[f"offset{i}"], bits),
            "mask_mode2": int(fields[f"mask{i}"]),
        }
        for i in range(len(atoms.numbered(fields, "tCgA")))
    ]
    layouts = {name: printed.layout(fields[name]) for name in ("cluster_layout_vmnk", "g_tile", "ref_layout")}
    tensors = {"gA": printed.coordinate_tensor(fields["gA"]), "partitions": parts, "thr_id": fields["thr_id"]}
    return atoms.before_the_atom(fields) | atoms.of_the_atom(fields) | layouts | tensors


def _im2col(row: Row) -> dict[str, str]:
    arguments = [
        f"{row['op']}{{}}",
        printed.cpp(row["gmem"]["str"]),
        printed.shared_cpp(row["smem"]["str"]),
        printed.cpp(row["cta_tiler"]),
        f"Int<{row['num_multicast']}>{{}}",
        "{" + ", ".join(f"{{{m}, {k}}}" for m, k, _ in row["samples"]) + "}",
        *(tupled([dynamic_integer(n) for n in row[name]]) for name in WINDOW),
    ]
    return {"text": f"im2col<{atoms.cpp_type(row['dtype'])}>({', '.join(arguments)});"}


def _im2col_record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    fields = outcomes["text"].fields
    names = ("offset", "gemm_shape", "gemm_stride", "inner_offset")
    tensor: Row = {name: printed.values(fields[name]) for name in names}
    places = [[m, k] for m, k, _ in row["samples"]]
    coordinates = [printed.values(text) for text in atoms.numbered(fields, "sample")]
    made = atoms.before_the_atom(fields)
    del made["stages"]
    return made | {
        "tma_tensor": tensor | {"linear": printed.layout(fields["linear"])},
        "num_bits_per_tma": int(fields["num_val_src"]) * int(fields["dtype_bits"]),
        "samples": [[*place, at] for place, at in zip(places, coordinates, strict=True)],
        "encode": json.loads(fields["encode"]),
        "rejected": False,
    }


KINDS: dict[str, Kind] = {
    "tiled": Kind(
        atoms.statements,
        atoms.record,
        ("op", "dtype", "internal_type", "gmem_address", "num_multicast"),
    ),
    "im2col": Kind(_im2col, _im2col_record, ("op", "dtype", "num_multicast", *WINDOW)),
    "sm100_A": Kind(_pair, _pair_record, ("op", "dtype")),
    "multicast_mask": Kind(_mask, _mask_record, ("coord", "modes")),
    "coalesce_256": Kind(_coalesce, _coalesce_record, ()),
    "swizzle_map": Kind(_swizzle, _swizzle_record, ("swizzle",)),
    "dtype_map": Kind(_dtype, _dtype_record, ("type_name",)),
}

UNPRINTED = ("dtype_bits", "internal_bits", "gmem", "smem", "cta_tiler")
"""Operands of a row that does not compile: nothing runs that could print them."""


def inputs(row: Row) -> tuple[str, ...]:
    unprinted = UNPRINTED if row.get("reject_kind") == "compile_error" else ()
    return ("kind", "name", *KINDS[row["kind"]].inputs, *unprinted)


def record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    """The row's fields; `error` where a statement failed of a kind that records no failures."""
    failed: Any = {
        part: reason for part, outcome in outcomes.items() if (reason := outcome.compiler or outcome.assertion)
    }
    if failed and row["kind"] not in ("tiled", "swizzle_map"):
        return {"error": failed}
    return KINDS[row["kind"]].record(row, outcomes)


GBASIS = Family(
    file="gbasis_cpp",
    statements=lambda row: KINDS[row["kind"]].statements(row),
    record=record,
    inputs=inputs,
    copied={
        "tags": "labels of the row",
        "driver_doc_violations": "rules of the driver's documentation, which no C++ of CuTe evaluates",
    },
    refused=lambda row, part: row["kind"] == "tiled" and atoms.refused(row, part),
    together=40,
    limits=(
        "the operands of rows with reject_kind compile_error (nothing runs that could print them)",
        "cta_tiler of such rows where it is null (not recorded; the shape of smem stands in)",
    ),
)
