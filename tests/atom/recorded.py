"""One row of a recording of CuTe C++ computed here: a dictionary with the fields of the row's `result`.

Fields that the row does not have may be computed too. A part that C++ refuses is a StaticAssertError here; `Refused`
holds its text, so that rows whose parts compiled one by one can be compared part by part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cute_py as cute
from cute_py import Int, elem_less, make_identity_tensor, make_tensor, size, text, tile_to_shape
from cute_py.atom import (
    SmemDescriptor,
    copy_atom,
    gmma_layout,
    make_fragment_like,
    make_gmma_desc,
    make_tiled_copy,
    make_tiled_mma,
    make_tmem_copy,
    make_umma_desc,
    mma_atom,
    rs_smem_selector,
    sm100_smem_selector,
    ss_smem_selector,
    umma_layout,
)
from cute_py.atom.copy_atoms import copy_traits
from cute_py.atom.element_types import cpp_type_text, element_type
from cute_py.errors import StaticAssertError
from tests.atom.cpp_text import BASE, evaluate, permutation, smem_layout, tensor, tuple_of

Row = dict[str, Any]


@dataclass(frozen=True)
class Refused:
    """What C++ calls the refusal."""

    error: str


def part(compute: Callable[[], Any]) -> Any:
    """The value, or the refusal as C++ words it."""
    try:
        return compute()
    except StaticAssertError as error:
        return Refused(f"static assertion failed: {error.condition}")


def same(found: Any, recorded: Any) -> bool:
    """Equal; of an offset with static and dynamic bits, `M_0|(16&16)=16`, only the value is compared."""
    if isinstance(recorded, dict):
        return isinstance(found, dict) and all(same(found.get(k), v) for k, v in recorded.items())
    if isinstance(found, str) and isinstance(recorded, str):
        return _offsets(found) == _offsets(recorded)
    return bool(found == recorded)


def _offsets(printed: str) -> str:
    return re.sub(r"M_\d+\|\(\d+&\d+\)=(\d+)", r"\1", printed)


def mma_row(row: Row) -> Row:
    atom = mma_atom(row["cpp"])
    found: Row = {
        "op": atom.op,
        "op_name": atom.op.split("::")[-1],
        "arch": atom.arch,
        "family": atom.family,
        "cpp": atom.name,
        "shape_mnk": text(atom.shape_mnk),
        "thr_id": str(atom.thr_id),
        "registers": {k: list(v) for k, v in atom.registers.items()},
        "SFVecSize": atom.sf_vec_size,
        "idesc": None if atom.idesc is None else f"{atom.idesc:#018x}",
    }
    found |= {f"{k}Layout": str(v) for k, v in atom.layouts.items()}
    found |= {f"ValType{k}": cpp_type_text(v) for k, v in atom.types.items()}
    found |= {f"FrgType{k}": str(v) for k, v in atom.fragments.items()}
    found |= {f"FrgType{k}_kind": v.kind for k, v in atom.fragments.items()}
    return found


def copy_row(row: Row) -> Row:
    traits = copy_traits(row["cpp"])
    found: Row = {
        "op": traits.op,
        "arch": traits.arch,
        "family": traits.family,
        "cpp": traits.name,
        "thr_id": str(traits.thr_id),
        "SrcLayout": str(traits.src_layout),
        "DstLayout": str(traits.dst_layout),
        "RefLayout": str(traits.ref_layout),
        "ValID": str(traits.val_id),
        "registers": {k: list(v) for k, v in traits.registers.items()},
        "val": {},
    }
    for dtype in row.get("val", {}):
        values = part(lambda dtype=dtype: copy_atom(row["cpp"], dtype))
        found["val"][dtype] = (
            {"error": values.error}
            if isinstance(values, Refused)
            else {
                "ValLayoutSrc": str(values.layout_src_TV),
                "ValLayoutDst": str(values.layout_dst_TV),
                "ValLayoutRef": str(values.layout_ref_TV),
                "NumValSrc": values.num_val_src,
                "NumValDst": values.num_val_dst,
            }
        )
    return found


def tiled_mma_row(row: Row) -> Row:
    layout = cute.parse(row["atom_layout"]) if row["atom_layout"] else None
    mma = make_tiled_mma(row["atom"], layout, permutation(row["permutation"]))
    m, n, k = map(Int, row["shape_mnk_tile"])
    shapes = {"A": (m, k), "B": (n, k), "C": (m, n)}
    inputs = row["inputs"]
    found: Row = {
        "thr_layout_vmnk": str(mma.thr_layout_vmnk),
        "size": text(mma.size()),
        "tile_shape": part(lambda: text(mma.tile_shape())),
        "print": str(mma),
        "partition_fragment_C": part(lambda: str(mma.partition_fragment_C(shapes["C"]).layout)),
        "make_fragment_C": part(lambda: str(mma.partition_fragment_C(shapes["C"]))),
        "thr_vmnk": {str(t): text(mma.get_slice(t).thr_vmnk) for t in row["threads"]},
    }
    for x in ("A", "B", "C"):
        found[f"layout{x}_TV"] = part(lambda x=x: str(mma.get_layout_TV(x)))
        found[f"partition_shape_{x}"] = part(lambda x=x: text(mma.partition_shape(x, shapes[x])))
        if f"thrfrg_{x}" in inputs:
            found[f"thrfrg_{x}"] = part(lambda x=x: str(mma.thrfrg(x, cute.parse(inputs[f"thrfrg_{x}"]))))
        given = inputs.get(f"partition_fragment_{x}")
        if given is not None:
            space = "smem" if given.startswith("tile_to_shape") else "gmem"
            dtype = smem_layout(given)[0] if space == "smem" else cpp_type_text(mma.atom.types[x])
            if space == "smem" and row["result"].get("smem_layout") == str(smem_layout(given)[1]):
                found["smem_layout"] = str(smem_layout(given)[1])
            source = tensor(space, dtype, given)
            found[f"partition_fragment_{x}"] = part(
                lambda x=x, source=source: str(getattr(mma.get_slice(Int(0)), f"partition_fragment_{x}")(source).layout)
            )
    found |= _partitions(row, lambda t: mma.get_slice(t).partition, "operand")
    return found


def _partitions(row: Row, partition: Callable[[Any], Callable[[str, Any], Any]], which: str, shape: Any = None) -> Row:
    """The parts of every recorded thread, of coordinates and of data."""
    inputs, found = row["inputs"], {}
    identity, data = inputs.get("partition_identity"), inputs.get("partition_tensor")
    if identity:
        extent = tuple_of(identity["shape"]) if shape is None else shape
        coordinates = make_identity_tensor(extent)
        found["id"] = part(lambda: {str(t): str(partition(t)(identity[which], coordinates)) for t in row["threads"]})
    if data:
        source = tensor(data["space"], data["dtype"], data["layout"])
        found["tensor"] = str(source)
        found["tens"] = part(lambda: {str(t): str(partition(t)(data[which], source)) for t in row["threads"]})
    return found


def tiled_copy_row(row: Row) -> Row:
    inputs = row.get("inputs", {})
    found: Row = {}
    memory = None
    if row["family"] == "make_tmem_copy":
        extents = re.search(r"Shape<Int<(\d+)>,Int<(\d+)>>\{\}\)+$", row["expr"])
        operation = re.match(r"make_tmem_copy\(([\w<>:]+)\{\}", row["expr"])
        assert extents is not None
        assert operation is not None
        memory = evaluate(row["tiled_mma"]).partition_fragment_C((Int(int(extents[1])), Int(int(extents[2]))))
        found["tmem_tensor"] = str(memory)
        copy = make_tmem_copy(operation[1], memory)
    else:
        copy = evaluate(row["expr"])
    found |= {
        "Tiler_MN": text(copy.tiler_mn),
        "TiledLayout_TV": str(copy.layout_TV),
        "size": text(copy.size()),
        "layoutS_TV": str(copy.get_layoutS_TV()),
        "layoutD_TV": str(copy.get_layoutD_TV()),
        "print": str(copy),
    }
    if "partition_tmem" in inputs:
        side = inputs["partition_tmem"]
        found["tmem"] = {str(t): str(copy.get_slice(t).partition(side, memory)) for t in row["threads"]}
    if "tidfrg" in inputs:
        given = inputs["tidfrg"]
        found[f"tidfrg_{given['which']}"] = str(copy.tidfrg(given["which"], cute.parse(given["layout"])))
    if inputs:
        found |= _partitions(row, lambda t: copy.get_slice(t).partition, "which", memory and memory.shape)
    if "fragment" in inputs:
        given = inputs["fragment"]
        source = tensor("gmem", cpp_type_text(copy.atom.dtype), given["layout"])
        own = copy.get_slice(Int(0)).partition(given["which"], source)
        fragment = make_fragment_like(own)
        found["partition_layout"] = str(own.layout)
        found["make_fragment_like"] = str(fragment.layout)
        found[f"retile_{given['retile']}"] = str(copy.retile(fragment).layout)
    if "mma_fragment" in inputs:
        fragment = _mma_fragment(evaluate(row["tiled_mma"]), inputs["mma_fragment"])
        found["mma_fragment"] = str(fragment.layout)
        found[f"retile_{inputs['mma_fragment']['retile']}"] = str(copy.retile(fragment).layout)
    return found


def _mma_fragment(mma: Any, given: Row) -> Any:
    operand = given["operand"]
    if operand == "C":
        return mma.partition_fragment_C(tuple_of(given["shape"]))
    source = tensor("gmem", cpp_type_text(mma.atom.types[operand]), given["layout"])
    return getattr(mma.get_slice(Int(0)), f"partition_fragment_{operand}")(source)


def predicate_row(row: Row) -> Row:
    family = row["family"]
    steps: tuple[Any, Any] = (None, None)
    if family == "tile_partition_proj":
        source = make_tensor(cute.make_gmem_ptr(BASE, "float"), cute.parse(row["tensor"].split(" o ", 1)[1]))
        where = re.search(r"make_coord\(([^)]*)\)", row["expr"])
        assert where is not None
        coord = tuple(int(x) for x in where[1].split(","))
        steps = (_step(row["step_tile"]), _step(row["step_part"]))
    else:
        source, coord = make_identity_tensor(tuple_of(row["shape"])), tuple(row["coord"])
    tile = cute.local_tile(source, tuple_of(row["tiler"]), coord, steps[0])
    if family == "mma_pred":
        mma = make_tiled_mma(row["mma"], cute.parse(row["atom_layout"]))
        parts = {t: mma.get_slice(t).partition_C(tile) for t in row["threads"]}
    elif family == "copy_pred":
        atom = copy_atom(f"UniversalCopy<uint{32 * row['vec']}_t>", "float")
        copy = make_tiled_copy(atom, cute.parse(row["thr_layout"]), cute.parse(row["val_layout"]))
        parts = {t: copy.get_slice(t).partition_S(tile) for t in row["threads"]}
    else:
        threads = cute.parse(row["thr_layout"])
        parts = {t: cute.local_partition(tile, threads, t, steps[1]) for t in row["threads"]}
    found: Row = {"tile": str(tile), "part": {str(t): str(p) for t, p in parts.items()}}
    if "pred" in row["result"]:
        shape = tuple_of(row["shape"])
        found["pred"] = {
            str(t): "".join(str(int(bool(elem_less(p(j), shape)))) for j in range(int(size(p.layout))))
            for t, p in parts.items()
        }
    return found


def _step(printed: str) -> tuple[Any, ...]:
    return tuple(None if x == "X" else 1 for x in printed.removeprefix("Step<").removesuffix(">").split(","))


def fragment_row(row: Row) -> Row:
    family = row["family"]
    if family == "make_ordered_layout":
        return {family: str(cute.make_ordered_layout(tuple_of(row["shape"]), tuple_of(row["order"])))}
    layout = cute.parse(row["layout"])
    if family == "make_fragment_like":
        data = make_tensor(cute.make_gmem_ptr(BASE, "float"), layout)
        return {
            "make_fragment_like": str(make_fragment_like(layout)),
            "make_layout_like": str(cute.make_layout_like(layout)),
            "tensor": str(make_fragment_like(data).layout),
        }
    data = make_tensor(cute.make_gmem_ptr(BASE, element_type(row["dtype"])), layout)
    return {"fragment": str(getattr(make_tiled_mma(row["mma"]), family)(data).layout)}


def layout_row(row: Row) -> Row:
    if row["family"] == "tile_to_shape_swizzle":
        atom = tensor("gmem", "float", row["name"]).layout
    else:
        make = umma_layout if row["name"].startswith("UMMA") else gmma_layout
        atom = make(row["name"], row.get("dtype"), sparsity=row.get("sparsity", 1))
    if row["family"].startswith("tile_to_shape"):
        order = (tuple_of(row["order"]),) if row["order"] else ()
        atom = tile_to_shape(atom, tuple_of(row["shape"]), *order)
    return {"layout": str(atom)}


SELECTORS = {f.__name__: f for f in (ss_smem_selector, rs_smem_selector, sm100_smem_selector)}


def selector_row(row: Row) -> Row:
    chosen = SELECTORS[row["family"]](row["major"], row["dtype"], row["blk_mn"], row["blk_k"])
    return {"layout": str(chosen)}


def descriptor_row(row: Row) -> Row:
    order = f", {row['order']}" if row.get("order") else ""
    layout = f"tile_to_shape({row['atom']}, {row['shape']}{order})"
    memory = tensor("smem", row["dtype"], layout, row["address"])
    if row["family"].endswith("_desc"):
        tile = cute.local_tile(memory, tuple_of(row["tile"]), tuple(row["tile_coord"]))
        descriptor = (make_gmma_desc if row["family"] == "gmma_desc" else make_umma_desc)(row["major"], tile)
        assert SmemDescriptor.decode(descriptor.encode(), descriptor.kind) == descriptor
        fields = ("start_address", "leading_byte_offset", "stride_byte_offset", "base_offset", "layout_type")
        return {
            "smem_layout": str(smem_layout(layout)[1]),
            "tile": str(tile),
            "desc": f"{descriptor.encode():#018x}",
            **{name: getattr(descriptor, name) for name in (*fields, "version", "lbo_mode")},
        }
    mma = make_tiled_mma(row["mma"])
    own = mma.get_slice(0).partition(row["operand"], memory)
    fragment = getattr(mma, f"make_fragment_{row['operand']}")(own)
    return {
        "smem": str(memory),
        "partition": str(own.layout),
        "fragment_layout": str(fragment.layout),
        "descs": {
            key: f"{fragment(Int(0), *map(int, key.split(','))).encode():#018x}" for key in row["result"]["descs"]
        },
    }
