"""Block-scaled weights in resharded files: the placements of their tensors, and checks that cuts are between blocks.

"*.q_proj.weight" = "column-parallel"     also places q_proj.weight_packed and q_proj.weight_scale, and copies
                                          q_proj.weight_global_scale to every rank
"""

from __future__ import annotations

import fnmatch
import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy

from cute_py.diagnostics import Diagnostic
from cute_py.errors import given
from cute_py.formats.stored_weights import METADATA, StoredWeight, find_weights
from cute_py.mesh.placements import Replicate, Shard
from cute_py.mesh.reshard_plan import MeshSide, ReshardPlan, RowSpan, held_shape
from cute_py.mesh.scaled_shards import check_block_cuts, held_indices
from cute_py.mesh.stored_tensors import StoredFile
from cute_py.mesh.weight_placements import parse_weight_placement

Parts = Mapping[str, tuple[Sequence[RowSpan], Sequence[RowSpan]]]
"""Tensor -> its parts on both sides."""


def scaled_weights(stored: Sequence[StoredFile]) -> tuple[StoredWeight, ...]:
    """Return the block-scaled weights in the files, as found in the shards of the first file."""
    return find_weights(stored[0].tensors, stored[0].metadata).weights if stored else ()


def placed_with_weights(plan: ReshardPlan, weights: Sequence[StoredWeight]) -> ReshardPlan:
    """Add a rule to the plan for each tensor of a weight: the weight's placement, unless an earlier pattern matches the
    tensor."""
    return ReshardPlan(_with_rules(plan.source, weights), _with_rules(plan.destination, weights))


def _with_rules(side: MeshSide, weights: Sequence[StoredWeight]) -> MeshSide:
    rules = []
    for weight in weights:
        own = _first(side, weight.name)
        for part, name in weight.tensors.items():
            if own is None or name == weight.name or _named_before(side, name, own):
                continue
            whole = part == "total" or (part == "scales" and weight.format.block == (None, None))
            texts = ("replicate",) * len(side.mesh_shape) if whole else side.rules[own][1]
            rules.append((glob.escape(name), _of_blocks(weight, texts) if part == "data" else texts))
    return replace(side, rules=(*rules, *side.rules))


def _of_blocks(weight: StoredWeight, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the placements of a weight's data. Grouped data has a mode of blocks in place of the weight's last mode,
    and then a mode of bytes, so "row-parallel" divides its last mode but one."""
    last = len(weight.shape) - 1
    if not weight.convention.grouped:
        return texts
    found = [parse_weight_placement(text, last + 1, given(weight.name)) for text in texts]
    return tuple(f"Shard({last})" if one == Shard(last) else text for one, text in zip(found, texts, strict=True))


def _named_before(side: MeshSide, name: str, rule: int) -> bool:
    """Whether a pattern that precedes the weight's pattern matches a tensor."""
    first = _first(side, name)
    return first is not None and first < rule


def _first(side: MeshSide, name: str) -> int | None:
    """Return the index of the first rule whose pattern matches a name."""
    return next((i for i, (pattern, _) in enumerate(side.rules) if fnmatch.fnmatchcase(name, pattern)), None)


def check_scaled(weights: Sequence[StoredWeight], parts: Parts) -> list[Diagnostic]:
    """Check that both sides cut each weight at block boundaries, and that its scales can be cut."""
    found: list[Diagnostic] = []
    for weight in weights:
        data, scales = (parts[weight.tensors[part]] for part in ("data", "scales"))
        if not any(map(_cuts, [*data, *scales])):
            continue
        if str(weight.format.order) != "linear":
            text = f"{given(weight.name)} has its scales in the order {weight.format.order}, which can't be cut by rows"
            fix = "cute-py convert CHECKPOINT --to FORMAT --scales linear"
            found.append(Diagnostic("block_cut", weight.name, text=text, fixes=(fix,)))
            continue
        check = _check_groups if weight.convention.grouped else _check_side
        for ours, theirs in zip(data, scales, strict=True):
            found += check(weight, ours, theirs)
    return found


def _cuts(side: Sequence[RowSpan]) -> bool:
    return any(not isinstance(one, Replicate) for part in side for one in part.layout.placements)


def _check_side(weight: StoredWeight, data: Sequence[RowSpan], scales: Sequence[RowSpan]) -> list[Diagnostic]:
    """Check the cuts of one side, section by section, and report the first cut inside a block."""
    if weight.format.block == (None, None) or len(data) != len(scales):
        return []
    for ours, theirs in zip(data, scales, strict=True):
        if len(ours.layout.shape) != 2 or len(theirs.layout.shape) != 2:
            return []
        rows, columns = weight.format.block
        units = rows or ours.layout.shape[0], (columns or ours.layout.shape[1])
        stored = max(1, units[1] // 2) if weight.format.packing == "pairs" else units[1]
        for one in check_block_cuts(ours.layout, theirs.layout, (units[0], stored)):
            note = " (bytes of two columns)" if weight.format.packing == "pairs" else ""
            text = f"{given(weight.name)}{ours.place}: {one.message}{note}"
            return [Diagnostic("block_cut", weight.name, text=text, facts=dict(one.facts))]
    return []


def _check_groups(weight: StoredWeight, data: Sequence[RowSpan], scales: Sequence[RowSpan]) -> list[Diagnostic]:
    """Check the cuts of one side of grouped data: a device holds whole blocks, and the scales of these blocks."""
    if len(data) != len(scales):
        text = f"{given(weight.name)} has {len(data)} sections of blocks and {len(scales)} of scales; must be equal"
        return [Diagnostic("block_cut", weight.name, text=text)]
    for ours, theirs in zip(data, scales, strict=True):
        for device in range(ours.layout.devices):
            held, units = (
                held_indices(one.layout, device) if one.layout._boxes_of(device) else [] for one in (ours, theirs)
            )
            *blocks, bytes_of = held or [*units, numpy.arange(ours.layout.shape[-1])]
            place = f"{given(weight.name)}{ours.place}: device {device} holds"
            if len(bytes_of) != ours.layout.shape[-1]:
                text = f"{place} {len(bytes_of)} of the {ours.layout.shape[-1]} bytes of a block; must be whole blocks"
            elif len(blocks) != len(units) or not all(map(numpy.array_equal, blocks, units)):
                text = f"{place} other blocks than scales; both must be divided in the same way"
            else:
                continue
            fix = f'"{glob.escape(weight.name)}" = "Shard({len(weight.shape) - 1})"'
            return [Diagnostic("block_cut", weight.name, text=text, facts={"shape": ours.layout.shape}, fixes=(fix,))]
    return []


# ---- the metadata of a shard


def stored_columns(weights: Sequence[StoredWeight]) -> dict[str, int]:
    """Return the number of a weight's columns in one stored element, for each tensor of elements: 2 if elements are
    stored in pairs."""
    return {one.tensors["data"]: 2 if one.format.packing == "pairs" else 1 for one in weights}


StoredFormats: TypeAlias = Mapping[str, Mapping[str, "str | float | list[int] | None"]]
"""Name of a weight -> the fields of its format, as a file's metadata has them."""


def formats_of_files(stored: Sequence[StoredFile]) -> list[StoredFormats] | None:
    """Return the formats of the weights from the metadata of each file; None if a file has none, or if files differ in
    more than the shapes of their shards."""
    try:
        found = [json.loads(one.metadata[METADATA]) for one in stored]
        plain = [{name: {**entry, "shape": len(entry["shape"])} for name, entry in one.items()} for one in found]
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return found if all(one == plain[0] for one in plain) else None


def formats_of_shards(
    formats: Sequence[StoredFormats], weights: Sequence[StoredWeight], parts: Parts, devices: int
) -> list[str]:
    """Return the metadata of each destination file: the formats of the weights, with the shapes of its shards."""
    found: list[dict[str, object]] = [dict(formats[0]) for _ in range(devices)]
    columns = stored_columns(weights)
    for weight in weights:
        name = weight.tensors["data"]
        ours, theirs = parts[name]
        if weight.name not in formats[0] or weight.format.transposed or weight.format.packing == "dense":
            continue
        units = (*(1,) * (len(weight.shape) - 1), columns[name])
        shapes: list[Any] = [one[weight.name]["shape"] for one in formats]
        held = [_in_elements(held_shape(ours, device), units) for device in range(len(formats))]
        padding = [
            max(stored - said for stored, said in zip(*sides, strict=True))
            for sides in zip(zip(*held, strict=True), zip(*shapes, strict=True), strict=True)
        ]
        for device, entries in enumerate(found):
            shape = _in_elements(held_shape(theirs, device), units)
            if 0 not in shape:
                layout = theirs[-1].layout
                ends = [int(max(indices)) + 1 for indices in held_indices(layout, device)]
                for axis, (end, whole) in enumerate(zip(ends, layout.shape, strict=True)):
                    shape[axis] -= padding[axis] if end == whole else 0
            entries[weight.name] = {**formats[0][weight.name], "shape": shape}
    return [json.dumps(entries) for entries in found]


def _in_elements(stored: Sequence[int], units: Sequence[int]) -> list[int]:
    return [size * unit for size, unit in zip(stored, units, strict=True)]
