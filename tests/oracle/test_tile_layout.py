"""Every recorded tile-layout fact: canonicalize, group, slice, span, tile, apply, permute, pack, operand layouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from cute_py import tmem
from cute_py.errors import CuteError
from cute_py.tmem import ComposeLayout, Iter, TileLayout
from tests.oracle.records import rows, tally

Json = Any
NAMES = {name: getattr(tmem, name) for name in ("S", "R", "TileLayout", "ComposeLayout", "TLane", "TCol", "m")}


def read(form: Json) -> TileLayout | ComposeLayout:
    if "tile" in form:
        per_element, swizzle_len, atom_len, inner = form["swizzle"]
        tile = read(form["tile"])
        assert isinstance(tile, TileLayout)
        return ComposeLayout(per_element, swizzle_len, atom_len, tile, inner)
    return TileLayout([Iter(*it) for it in form["shard"]], [Iter(*it) for it in form["replica"]], form["offset"])


def write(layout: TileLayout | ComposeLayout | None) -> Json:
    if layout is None:
        return None
    if isinstance(layout, ComposeLayout):
        swizzle = [layout.per_element, layout.swizzle_len, layout.atom_len, layout.swizzle_inner]
        return {"tile": write(layout.tile), "swizzle": swizzle}
    return {
        "shard": [[it.extent, it.stride, it.axis] for it in layout.shard],
        "replica": sorted([it.extent, it.stride, it.axis] for it in layout.replica),
        "offset": layout.offset.as_dict(),
    }


def as_set(form: Json) -> Json:
    """Replicas have no order."""
    if isinstance(form, dict):
        return {key: sorted(value) if key == "replica" else as_set(value) for key, value in form.items()}
    return form


def sliced(layout: Any, args: Json) -> Any:
    return layout.slice(args["shape"], [tuple(bounds) for bounds in args["region"]])


def canonical(layout: Any) -> Any:
    return None if layout is None else layout.canonicalize()


def grouped(layout: Any, args: Json) -> Json:
    out, seps = layout.group(args["shape"])
    return {"layout": write(out), "seps": list(seps)}


def grouped_many(layout: Any, args: Json) -> Json:
    out, seps = layout.group_many(args["shapes"])
    return {"layout": write(out), "seps": [list(one) for one in seps]}


def round_trip(layout: Any, args: Json) -> Json:
    outer = read(args["outer"])
    tiled = layout.tile(outer, args["outer_shape"], args["inner_shape"])
    both = [o * i for o, i in zip(args["outer_shape"], args["inner_shape"], strict=True)]
    return {"inner->outer": write(layout.outer_of(tiled, both, args["inner_shape"]))}


OPERATIONS: dict[str, Callable[[Any, Json], Json]] = {
    "canonicalize": lambda layout, args: write(layout.canonicalize()),
    "size": lambda layout, args: layout.size(),
    "span": lambda layout, args: layout.span(args.get("axis")),
    "apply": lambda layout, args: layout.apply(args["coord"], args["shape"]),
    "group": grouped,
    "group_many": grouped_many,
    "slice": lambda layout, args: write(sliced(layout, args)),
    "slice_canon": lambda layout, args: write(canonical(sliced(layout, args))),
    "permute_dims": lambda layout, args: write(layout.permute_dims(args["perm"])),
    "tile": lambda layout, args: write(layout.tile(read(args["outer"]), args["outer_shape"], args["inner_shape"])),
    "direct_sum": lambda layout, args: write(
        layout.direct_sum(read(args["left"]), args["left_shape"], args["right_shape"])
    ),
    "is_tile_inner(roundtrip)": round_trip,
    "pack": lambda layout, args: write(layout.pack(args["num"])),
    "unpack": lambda layout, args: write(layout.unpack(args["num"])),
    "mma_shared_layout": lambda layout, args: write(
        tmem.mma_shared_layout(args["dtype"], args["swizzle"], args["shape"])
    ),
    "mma_atom_layout": lambda layout, args: write(tmem.mma_atom_layout(args["dtype"], args["swizzle"])),
    "tmem_datapath_layout": lambda layout, args: write(
        tmem.tmem_datapath_layout(args["datapath"], args["rows"], args["cols"], args["sub_slab"])
    ),
}


def applied_to_all(layout: Any, row: Json) -> bool:
    """The recorded places are those of the first element of each of the first n units of 16 bytes."""
    places = layout.positions("m")[:: 1 << layout.per_element][: row["args"]["n"]]
    return bool(places.tolist() == row["result"])


def outcome(row: Json) -> bool:
    layout = read(row["layout"]) if row["layout"] else None
    if row["op"] == "swizzle_apply_all":
        return applied_to_all(layout, row)
    try:
        got = OPERATIONS[row["op"]](layout, row["args"])
    except CuteError:
        return bool(row["status"] == "error")
    if row["status"] == "error":
        return False
    return bool(as_set(got) == as_set(row["result"]))


def test_every_row() -> None:
    table = rows("tile_layout")
    wrong, unknown = [], Counter[str]()
    for row in table:
        if row["op"] not in OPERATIONS and row["op"] != "swizzle_apply_all":
            unknown[row["op"]] += 1
        elif not outcome(row):
            wrong.append(row["id"])
    tally("tile_layout", len(table) - len(wrong) - sum(unknown.values()), len(table), [*unknown, *wrong])
    assert wrong == []


def test_the_texts_of_the_rows_read_as_written() -> None:
    """`S[...] + R[...]` evaluates to the layout that was recorded beside the text, and so does our own text."""
    for row in rows("tile_layout"):
        if row["layout"]:
            want = read(row["layout"])
            text = row["text"].replace("T.", "").replace("Axis.", "")
            assert eval(text, dict(NAMES)) == want, row["id"]
            assert eval(repr(want), dict(NAMES)) == want, row["id"]


def test_the_comparison_can_fail() -> None:
    row = dict(next(row for row in rows("tile_layout") if row["op"] == "span" and row["status"] == "ok"))
    row["result"] += 1
    assert not outcome(row)
