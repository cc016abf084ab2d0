"""Convert the .safetensors shards of one mesh to the shards of another, with checks, streaming and checksums.

headers      the shapes of the shards give the shape of each whole tensor; every tensor needs a placement
names        placements are compared with names and shapes, which gives warnings (`weight_roles`)
data         different parts of a tensor must differ in their bytes; copies of one part must be equal
copy         section by section, one piece at a time; the checksums of the bytes read and written must agree
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cute_py.argument_checks import expect, expect_integer
from cute_py.diagnostics import Diagnostic, Scope, refuse
from cute_py.dtypes import DType
from cute_py.errors import FileFormatError, InvalidValueError, LayoutError, counted, given
from cute_py.formats.stored_weights import METADATA
from cute_py.mesh.host import HostRedistribution
from cute_py.mesh.placements import Replicate
from cute_py.mesh.redistribution import Redistribution, redistribute
from cute_py.mesh.reshard_plan import MeshSide, ReshardPlan, RowSpan, held_shape
from cute_py.mesh.reshard_plan import read_plan as read_plan
from cute_py.mesh.scaled_files import (
    check_scaled,
    formats_of_files,
    formats_of_shards,
    placed_with_weights,
    scaled_weights,
    stored_columns,
)
from cute_py.mesh.stored_tensors import (
    Progress,
    StoredFile,
    StoredTensor,
    checksum,
    equal_groups,
    has_one_value,
    new_files,
)
from cute_py.mesh.stored_tensors import stored_file as stored_file
from cute_py.mesh.stored_tensors import stored_tensors as stored_tensors
from cute_py.mesh.transfer import Transfer
from cute_py.mesh.weight_roles import ONE_DEVICE, SEVERAL, WHOLE, Judgement, Weight, division_of, judge, role_of

DEFAULT_MEMORY = 1 << 30
"""Maximum number of bytes of files that are mapped at the same time."""

SHOWN_NAMES = 3
"""Maximum number of tensor names that a message lists."""


@dataclass(frozen=True, slots=True)
class Resharded:
    """A tensor that `reshard` wrote.

    Attributes: `shape`, the shape of the whole tensor; `checksum`, the same on both sides; `bytes_moved`, the bytes
    moved between devices; `source` and `destination`, the placements as written in the plan; `scope`, the judged
    properties.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    checksum: int
    bytes_moved: int
    source: tuple[str, ...] = ()
    destination: tuple[str, ...] = ()
    scope: Scope = field(default_factory=Scope)

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"{self.checksum:016x}  {self.dtype.name:10} {shape:18} {self.name}"


@dataclass(frozen=True, slots=True)
class ReshardReport:
    """The tensors that were written, and warnings about their placements."""

    tensors: tuple[Resharded, ...]
    warnings: tuple[Diagnostic, ...]

    @property
    def scope(self) -> Scope:
        """The scope of the judgement, with counts over all tensors."""
        judged: dict[str, dict[str, None]] = {}
        not_judged: dict[str, dict[str, None]] = {}
        for one in self.tensors:  # the sections of a fused weight each have a text
            for text in one.scope.judged:
                judged.setdefault(text.partition(":")[0], {})[one.name] = None
            for text in one.scope.not_judged:
                not_judged.setdefault(text, {})[one.name] = None
        return Scope(
            tuple([f"{text} ({counted(len(names), 'tensor')})" for text, names in judged.items()]),
            tuple([f"{text} ({_listed(list(names))})" for text, names in not_judged.items()]),
        )

    def __str__(self) -> str:
        warned = [f"warning: {one.message}" for one in self.warnings]
        return "\n".join([*map(str, self.tensors), *warned, str(self.scope)])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def reshard(
    plan: ReshardPlan,
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[int, int], None] | None = None,
    force: bool = False,
    overwrite: bool = False,
) -> ReshardReport:
    """Read the source files' shards, and write all destination files, or none of them.

    Files are written under temporary names, and renamed when the checksums of each whole tensor agree on both sides.
    Metadata that is the same in all source files is written to each destination file, and its descriptions of formats
    get the shapes of the shards in that file. The tensors of a block-scaled weight have the weight's placement.

    Args:
        memory: the maximum number of bytes of files that are mapped at a time.
        progress: a function that is called with the number of bytes done and the total number.
        force: accept byte-identical shards that should be different parts of a tensor, with a warning.
        overwrite: replace destination files that exist.
    Returns:
        a report with a row for each tensor, and warnings about placements that contradict names or shapes. Warnings do
            not prevent the files from being written.
    Raises:
        FileFormatError: a file can't be read or written, a destination file exists or is also a source file, or
            replicas differ; LayoutError: a shard does not have the shape that its placement requires, shards of
            different parts are byte-identical, or a cut is inside a block; InvalidValueError: a tensor has no
            placement. After an error, no file is written.
    """
    expect_integer(memory, "memory", 1 << 20, unit="bytes")
    expect(force, bool, "force")
    expect(overwrite, bool, "overwrite")
    refuse(FileFormatError, _overwritten(plan), "destination files are also source files; nothing is written")
    stored = [stored_file(path) for path in plan.source.files]
    names = list(stored[0].tensors)
    refuse(FileFormatError, _missing(plan.source, stored), "some files lack some of the tensors")
    weights = scaled_weights(stored)
    plan = placed_with_weights(plan, weights)
    refuse(InvalidValueError, _unplaced(plan, stored[0]), "no pattern matches these tensors, so nothing is written")
    works = [_work(plan, name, [one.tensors[name] for one in stored]) for name in names]
    parts = {work.name: (work.ours, work.theirs) for work in works}
    cuts = check_scaled(weights, parts)
    refuse(LayoutError, cuts, "a cut falls inside a block of a block-scaled weight, so nothing is written")
    if not overwrite:
        refuse(FileFormatError, _existing(plan), "destination files exist already; nothing is written")
    columns = stored_columns(weights)
    judged = judge([_weight(plan, work, columns.get(work.name, 1)) for work in works])
    alike = [found for work, one in zip(works, judged, strict=True) for found in _check_alike(work, one)]
    if alike and not force:
        named = {one.argument for one in alike}
        others = [found for one in judged for found in one.warnings if found.argument not in named]
        refuse(LayoutError, [*alike, *others], "shards that should differ are byte-identical, so nothing is written")
    metadata = {
        key: value for key, value in stored[0].metadata.items() if all(one.metadata.get(key) == value for one in stored)
    }
    new = [
        (
            work.name,
            work.shards[0].dtype,
            [held_shape(work.theirs, device) for device in range(len(plan.destination.files))],
        )
        for work in works
    ]
    formats, devices = formats_of_files(stored), len(plan.destination.files)
    each = [metadata] * devices
    if formats is not None:
        each = [{**metadata, METADATA: text} for text in formats_of_shards(formats, weights, parts, devices)]
    with new_files(plan.destination.files, new, each) as written:
        progressed = Progress(4 * sum(work.nbytes for work in works), progress)
        sums = [_written(work, [tensors[work.name] for tensors in written], memory, progressed) for work in works]
    return ReshardReport(
        tuple([_row(plan, *one) for one in zip(works, sums, judged, strict=True)]),
        (*alike, *_lost_metadata(stored, each[0]), *[found for one in judged for found in one.warnings]),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """A tensor with its shards, and its sections on both sides, which have the same rows."""

    name: str
    shape: tuple[int, ...]
    shards: list[StoredTensor]
    ours: tuple[RowSpan, ...]
    theirs: tuple[RowSpan, ...]
    redistributions: tuple[Redistribution, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.shards[0].dtype.bits // 8


def _overwritten(plan: ReshardPlan) -> list[Diagnostic]:
    """Report destination files that are also source files, even through a link."""
    sources = {Path(path).resolve() for path in plan.source.files}
    text = "destination file {} is also a source file; use another name or folder"
    return [
        Diagnostic("reshard-overwrites", str(path), text=text.format(path))
        for path in plan.destination.files
        if Path(path).resolve() in sources
    ]


def _existing(plan: ReshardPlan) -> list[Diagnostic]:
    """Report destination files that exist already."""
    return [
        Diagnostic("reshard-exists", str(path), text=f"{path}: the file exists already; --overwrite replaces it")
        for path in plan.destination.files
        if path.exists()
    ]


def _missing(side: MeshSide, stored: list[StoredFile]) -> list[Diagnostic]:
    every = dict.fromkeys(name for one in stored for name in one.tensors)
    return [
        Diagnostic("reshard-tensor", str(path), text=f"{path} has no tensor {given(name)}")
        for path, one in zip(side.files, stored, strict=True)
        for name in every
        if name not in one.tensors
    ]


def _unplaced(plan: ReshardPlan, stored: StoredFile) -> list[Diagnostic]:
    """Report tensors that no pattern of a side matches, with the placement that their names suggest."""
    found = []
    for name in stored.tensors:
        if plan.source.texts(name) is None or plan.destination.texts(name) is None:
            role = role_of(name)
            fix = (
                f'"{name}" = "{role.placement}"'
                if role
                else (f'"{name}" = "replicate", if every rank holds the whole tensor')
            )
            found.append(
                Diagnostic("reshard-placement", name, text=f"no placement matches {given(name)}", fixes=(fix,))
            )
    return found


def _work(plan: ReshardPlan, name: str, shards: list[StoredTensor]) -> _Work:
    kinds = {shard.dtype.name for shard in shards}
    if len(kinds) > 1:
        raise LayoutError(f"{given(name)} has several element types: {', '.join(sorted(kinds))}")
    shape = plan.source.shape_of(name, [shard.shape for shard in shards])
    ours, theirs = plan.source.parts(name, shape), plan.destination.parts(name, shape)
    if [part.rows for part in ours] != [part.rows for part in theirs]:
        again, there = plan.source.whole(name, shape, theirs), plan.destination.whole(name, shape, ours)
        if there is not None:
            theirs = there
        elif again is not None:
            ours = again
        else:
            ours, theirs = [(RowSpan("", 0, side.layout(name, shape)),) for side in (plan.source, plan.destination)]
    pairs = zip(ours, theirs, strict=True)
    dtype = shards[0].dtype
    return _Work(name, shape, shards, ours, theirs, tuple([redistribute(a.layout, b.layout, dtype) for a, b in pairs]))


def _sections(parts: Sequence[RowSpan], index: int, shards: Sequence[StoredTensor]) -> list[StoredTensor]:
    """Return the rows of one section in each shard; they follow the rows of earlier sections."""
    if len(parts) == 1:
        return list(shards)
    found = []
    for device, shard in enumerate(shards):
        held = [part.layout.local_shape(device)[0] for part in parts[: index + 1]]
        found.append(shard.rows(sum(held[:-1]), held[-1]))
    return found


# ---- what names, shapes and data say


def _weight(plan: ReshardPlan, work: _Work, columns: int) -> Weight:
    """Return the weight with its shapes in elements; one stored element contains `columns` elements."""
    shapes = [(*one[:-1], one[-1] * columns) if one else one for one in (work.shape, work.shards[0].shape)]
    here, ranks = _division(plan.source, work)
    there, _ = _division(plan.destination, work)
    sections = {part.label: part.rows for part in work.ours}
    return Weight(work.name, shapes[0], shapes[1], ranks, here, there, sections)


def _division(side: MeshSide, work: _Work) -> tuple[str, int]:
    """Return how a side divides a tensor, and the number of parts if a single mode divides it or could divide it."""
    modes = [
        (n, one) for n, one in zip(side.mesh_shape, side.placements(work.name, len(work.shape)), strict=True) if n > 1
    ]
    if not modes:
        return ONE_DEVICE, 1
    divides = [(n, one) for n, one in modes if not isinstance(one, Replicate)]
    if not divides:
        return WHOLE, modes[0][0] if len(modes) == 1 else 0
    if len(divides) > 1:
        return SEVERAL, 0
    return division_of(divides[0][1], work.shape), divides[0][0]


def _check_alike(work: _Work, judgement: Judgement) -> list[Diagnostic]:
    """Report shards of different parts that are byte-identical: they are probably copies, although the plan divides the
    tensor."""
    found = []
    for index, part in enumerate(work.ours):
        shards = _sections(work.ours, index, work.shards)
        first: dict[tuple[int, ...], int] = {}
        for device in range(part.layout.devices):
            for box in part.layout._boxes_of(device):
                first.setdefault(box, device)
        label = f"{part.label}: " if part.label else ""
        held = {device: shards[device] for device in first.values() if shards[device].nbytes}
        copies = part.layout.devices // max(1, len(first))
        if copies > 1:
            judgement.judged.append(f"copies are equal: {label}{copies} of each part")
        if len(held) < 2:
            continue
        groups = equal_groups(held)
        for group in groups:
            constant = has_one_value(held[group[0]])
            if constant and len(group) < len(held):
                judgement.not_judged.append(f"equal parts: {label}several parts are constant and equal")
            else:
                found.append(_alike(work, part, group, len(held), constant))
        if not groups:
            judgement.judged.append(f"parts differ: {label}{len(held)} of them")
    return found


def _alike(work: _Work, part: RowSpan, group: list[int], count: int, constant: bool) -> Diagnostic:
    devices = ", ".join(map(str, group[:8])) + (", ..." if len(group) > 8 else "")
    which = f"all {count} shards" if len(group) == count else f"the shards of devices {devices}"
    facts: dict[str, object] = {"files": ", ".join(str(work.shards[device].path) for device in group[:2])}
    distinct = count // len(group)
    fixes: tuple[str, ...] = ()
    if constant:
        facts["elements"] = "one constant value: the tensor is replicated, or these parts of it are constant"
    if part.label in ("k", "v"):
        fixes = (f"kv_heads={distinct} in fused-qkv",)
    elif len(group) == count:
        fixes = ("replicate",)
    elif not part.label and part.rows:
        fixes = (f"kv-heads(kv_heads={distinct})",)
    return Diagnostic(
        "reshard-alike",
        work.name,
        text=f"{given(work.name)}{part.place}: {which} are byte-identical, but the plan divides the tensor; possible "
        f"placements: {' or '.join(fixes) or 'another placement'}; --force accepts the shards as different parts",
        facts=facts,
        fixes=fixes,
        severity="error",
    )


def _lost_metadata(stored: list[StoredFile], kept: Mapping[str, str]) -> list[Diagnostic]:
    """Return a warning for each metadata key whose values differ between source files."""
    lost = dict.fromkeys(key for one in stored for key in one.metadata if key not in kept)
    return [
        Diagnostic(
            "reshard-metadata",
            key,
            text=f"metadata {given(key)} differs between files, so it is not written",
            severity="warning",
        )
        for key in lost
    ]


def _row(plan: ReshardPlan, work: _Work, value: int, judgement: Judgement) -> Resharded:
    moved = sum(one.bytes_moved for one in work.redistributions)
    texts = [side.texts(work.name) or () for side in (plan.source, plan.destination)]
    scope = Scope((*judgement.judged, "checksum: both sides agree"), tuple(judgement.not_judged))
    return Resharded(work.name, work.shape, work.shards[0].dtype, value, moved, texts[0], texts[1], scope)


# ---- the copy


def _written(work: _Work, shards: list[StoredTensor], memory: int, progress: Progress) -> int:
    """Copy a tensor to the destination files; return the checksum of the whole tensor."""
    before = after = 0
    for index, (ours, theirs, plan) in enumerate(zip(work.ours, work.theirs, work.redistributions, strict=True)):
        sources, goals = _sections(work.ours, index, work.shards), _sections(work.theirs, index, shards)
        size = math.prod(plan.source.shape) * plan.dtype.bits // 8
        before += _checksum(work, ours, sources, memory)
        progress.add(size)
        _copy(plan, sources, goals, memory)
        progress.add(2 * size)
        after += checksum(theirs.layout, goals, memory, theirs.first_row)
        progress.add(size)
    before, after = before & _WORD, after & _WORD
    if before != after:
        raise FileFormatError(
            f"{given(work.name)}: checksum {before:016x} when reading, {after:016x} after writing",
            hint="a file changed in the meantime, or the disk is full; no output was renamed into place",
        )
    return after


_WORD = (1 << 64) - 1


def _checksum(work: _Work, part: RowSpan, shards: list[StoredTensor], memory: int) -> int:
    """Compute the checksum of a source; if copies differ, the error suggests a placement that fits."""
    try:
        return checksum(part.layout, shards, memory, part.first_row)
    except FileFormatError as error:
        role = role_of(work.name)
        fits = role is not None and WHOLE not in role.divisions
        hint = f"use a placement that divides it; {role.placement} matches its name" if role and fits else None
        raise FileFormatError(error.headline, error.facts, error.hint or hint) from None


def _copy(plan: Redistribution, sources: list[StoredTensor], written: list[StoredTensor], memory: int) -> None:
    for transfer in plan.transfers():
        for piece in transfer.pieces(lambda one: _touched(one, plan.dtype.bits // 8) <= memory):
            ends = {piece.source_device: sources[piece.source_device].mapped()}
            goal = {piece.destination_device: written[piece.destination_device].mapped("r+")}
            HostRedistribution([[piece]], plan.dtype, ends, goal).launch()
            # unmap here, so that the pages no longer count


PAGE = 4096


def _touched(transfer: Transfer, itemsize: int) -> int:
    """Return an upper bound of the size of all pages that a transfer touches on both sides, in bytes."""
    total = 0
    for side in ("source", "destination"):
        runs, run = transfer.elements, 1
        for mode in transfer.modes:
            if getattr(mode, side) == run:
                run, runs = run * mode.size, runs // mode.size
        total += runs * (run * itemsize + 2 * PAGE)
    return total
