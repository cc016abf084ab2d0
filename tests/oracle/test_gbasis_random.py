"""Atoms of random tensors, tiles and shared layouts against CuTe C++, compiled and run on the host.

Nested tensors and tiles, static and run-time sizes and strides, strides of 0, ranks 1 to 7, recasts, narrow types,
swizzles, multicast, operations of sm_100. Rows that C++ rejects are refused; where CuTe states a condition, with it.
"""

from __future__ import annotations

from typing import Any

import cute_py as cute
from cute_py.errors import CuteError
from tests.oracle import gbasis_rows
from tests.oracle.records import rows, tally
from tests.oracle.test_gbasis_cpp import padded
from tests.shares import in_part


def make(row: dict[str, Any], **options: Any) -> Any:
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, row["dtype"]), gbasis_rows.layout(row["gmem"]))
    internal = None if row["internal"] == row["dtype"] else row["internal"]
    smem, tiler = gbasis_rows.layout(row["smem"]), gbasis_rows.tiler(row["tiler"])
    count, op, arch = gbasis_rows.tree(row["multicast"]), row["op"], row["arch"]
    return cute.tma.make_tma_atom(op, tensor, smem, tiler, count, internal, arch, suggest=False, **options)


def arguments(request: Any) -> str:
    """The arguments of the driver's function, as the recorder printed them."""
    lists = {"dim": request.global_dim, "stride": request.global_strides, "box": request.box_dim}
    lists["es"] = request.element_strides
    text = ";".join(f"{name}={list(numbers)}" for name, numbers in lists.items())
    modes = {"il": request.interleave, "sw": request.swizzle, "l2": request.l2_promotion, "oob": request.oob_fill}
    tail = ";".join(f"{name}={int(value)}" for name, value in modes.items())
    return f"dtype={int(request.data_type)};address={request.global_address};{text};{tail}"


def full_rank(text: str, rank: int) -> str:
    """C++'s coordinate of a map whose last modes never move is shorter than the map; ours has its rank."""
    short = text.partition(")")[0].count(",") + 1
    return text if short >= rank else padded(text, short, rank)


def differences(row: dict[str, Any]) -> list[str]:
    atom = make(row, check=False)
    rank = atom.plan.rank
    if atom.plan.broken:
        return [f"CuTe would assert: {atom.plan.broken}"]
    pairs = [
        ("V-map", row["cta_v_map"], str(atom.gbasis.trace.cta_v_map)),
        ("G-basis", row["tma_gbasis"], str(atom.gbasis)),
        ("descriptor", row["encode"], arguments(atom.request)),
        ("slot", row["num_val_src"], atom.num_val_src),
        ("g_stride", row["g_stride"], cute.text(atom.g_stride)),
        ("TMA tensor", full_rank(row["tma_tensor"], rank), str(atom.get_tma_tensor())),
    ]
    if "parts" in row:
        tiles = cute.zipped_divide(atom.get_tma_tensor(), gbasis_rows.tiler(row["tiler"]))
        pairs.append(("gA", full_rank(row["gA"], rank), str(tiles)))
        smem = cute.make_tensor(cute.make_smem_ptr(0, row["dtype"]), gbasis_rows.layout(row["smem_full"]))
        smem = cute.group_modes(smem, 0, int(cute.rank(gbasis_rows.layout(row["smem"]))))
        ctas = cute.Layout(gbasis_rows.tree(row["multicast"]))
        for cta, (gmem_text, smem_text, offset) in enumerate(row["parts"]):
            gmem_part, smem_part = cute.tma.tma_partition(atom, cta, ctas, smem, tiles)
            pairs.append((f"CTA {cta} global", full_rank(gmem_text, rank), str(gmem_part)))
            pairs.append((f"CTA {cta} shared", smem_text, str(smem_part.layout)))
            if offset is not None:
                start = smem_part.engine.address * 8 + smem_part.engine.bit
                pairs.append((f"CTA {cta} offset", offset, start // smem_part.engine.dtype.bits))
    if "layout_tv" in row:
        pairs.append(("TV layout", row["layout_tv"], str(atom.tiled_copy.layout_TV)))
        pairs.append(("tiler", row["tiler_mn"], cute.text(atom.tiled_copy.tiler_mn)))
    return [f"{what}: {want} expected, got {got}" for what, want, got in pairs if want != got]


def of_cute(condition: str) -> bool:
    """Is it a condition of CuTe's, and not a compiler's message, or an assertion without words?"""
    return condition != "static assertion failed" and "’" not in condition and "SShift" not in condition


@in_part(3)
def test_random_atoms(every: int) -> None:
    held, wrong = 0, []
    table = rows("gbasis_cpp_random")[::every]
    for row in table:
        where = f"{row['op']} {row['dtype']} {row['gmem']} {row['smem']} {row['tiler']} x{row['multicast']}"
        condition = row.get("rejected", {}).get("show")
        if condition is None:
            found = differences(row)
        else:
            try:
                make(row)
                found = [f"accepted; C++ says {condition}"]
            except CuteError as error:
                found = [str(error)] if of_cute(condition) and condition not in str(error) else []
        wrong += [f"{where}: {what}" for what in found]
        held += not found
    tally("gbasis_cpp_random", held, len(table), every=every)
    assert not wrong, "\n".join(wrong)
