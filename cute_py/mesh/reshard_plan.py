"""The plan of `reshard`: two meshes, the file of each device, and the placements of tensors by name."""

from __future__ import annotations

import fnmatch
import math
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect_integers, expect_items, expect_path
from cute_py.errors import FileFormatError, InvalidValueError, LayoutError, counted, given, shortened, system_reason
from cute_py.mesh.placements import Partial, Placement, Replicate, SectionedShard
from cute_py.mesh.sharded_layout import MOST_DEVICES, ShardedLayout, distribute
from cute_py.mesh.weight_placements import Fused, Section, Sections, WeightPlacement, parse_weight_placement

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Rows of a whole tensor that are divided separately: a section of a fused weight, or the whole tensor."""

    label: str
    """Label of the section; empty for the tensor itself."""

    first_row: int
    layout: ShardedLayout

    @property
    def place(self) -> str:
        """Text that messages append to the tensor's name: `, section k` for a section, empty for the tensor itself."""
        return f", section {self.label.removeprefix('section ')}" if self.label else ""

    @property
    def rows(self) -> int:
        """Number of rows; 0 for a scalar."""
        return self.layout.shape[0] if self.layout.shape else 0


@dataclass(frozen=True, slots=True)
class MeshSide:
    """One side of a plan: a mesh, the file of each device, and placements by name. The first pattern that matches a
    name applies."""

    mesh_shape: tuple[int, ...]
    files: tuple[Path, ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]
    """(pattern, one placement string for each mode of the mesh)"""

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return the placements of a tensor as written in the plan; None if no pattern matches its name."""
        return next((texts for pattern, texts in self.rules if fnmatch.fnmatchcase(name, pattern)), None)

    def placements(self, name: str, rank: int) -> tuple[WeightPlacement, ...]:
        """Return the placements of a tensor with `rank` dimensions, one for each mode of the mesh.

        Raises:
            InvalidValueError: no pattern matches, or its value is not a placement.
        """
        texts = self.texts(name)
        if texts is None:
            raise InvalidValueError(f"no placement matches {given(name)}")
        found = tuple([parse_weight_placement(text, rank, f"{given(name)}") for text in texts])
        if any(isinstance(placement, Partial) for placement in found):
            raise InvalidValueError(f"{given(name)} is Partial, but files can hold only sums")
        return found

    def parts(self, name: str, shape: tuple[int, ...]) -> tuple[RowSpan, ...]:
        """Return the distribution of each section of the tensor with this name and whole shape.

        Raises:
            InvalidValueError: the placements don't fit the shape.
        """
        placements = self.placements(name, len(shape))
        try:
            mode = self._fused_mode(placements)
            if mode is None:
                return (RowSpan("", 0, distribute(shape, self.mesh_shape, plain_placements(placements))),)
            found, at = [], 0
            for section in placements[mode].sections(shape[0] if shape else 0):  # type: ignore[union-attr]
                found.append(RowSpan(section.label, at, self._section(section, mode, placements, shape)))
                at += section.rows
            return tuple(found)
        except InvalidValueError as error:
            raise InvalidValueError(
                f"{given(name)} of shape {shape}: {error.headline}", error.facts, error.hint
            ) from None

    def layout(self, name: str, shape: tuple[int, ...]) -> ShardedLayout:
        """Return the distribution of the tensor with this name and shape, as one layout.

        Raises:
            InvalidValueError: the placements don't fit the shape; LayoutError: ranks share KV heads.
        """
        parts = self.parts(name, shape)
        if len(parts) == 1 and not parts[0].label:
            return parts[0].layout
        if any(part.layout.mesh_shape != self.mesh_shape for part in parts):
            raise LayoutError(
                f"{given(name)}: ranks share KV heads, but the other side is divided differently",
                hint="use the same placement on both sides, or 'replicate' on the other side",
            )
        sections = SectionedShard(0, tuple([part.rows for part in parts]))
        placements = [sections if isinstance(one, Fused) else one for one in self.placements(name, len(shape))]
        return distribute(shape, self.mesh_shape, placements)

    def whole(self, name: str, shape: tuple[int, ...], parts: Sequence[RowSpan]) -> tuple[RowSpan, ...] | None:
        """Return the sections, each replicated, if each device holds the whole tensor; otherwise None."""
        placements = self.placements(name, len(shape))
        if not all(n == 1 or isinstance(one, Replicate) for n, one in zip(self.mesh_shape, placements, strict=True)):
            return None
        copies = [Replicate()] * len(self.mesh_shape)
        return tuple(
            [
                RowSpan(part.label, part.first_row, distribute((part.rows, *shape[1:]), self.mesh_shape, copies))
                for part in parts
            ]
        )

    def shape_of(self, name: str, shards: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the shape of the whole tensor, computed from the shapes of its shards.

        Raises:
            LayoutError: no shape of the whole tensor gives these shards.
        """
        whole = list(shards[0])
        devices = numpy.arange(len(shards)).reshape(self.mesh_shape)
        placements = self.placements(name, len(whole))
        for dim in range(len(whole)):
            divides = [_dim(placement) == dim for placement in placements]
            held = devices[tuple([slice(None) if one else 0 for one in divides])].ravel().tolist()
            rows = [shards[device][dim] if dim < len(shards[device]) else 0 for device in held]
            fused = next((one for one in placements if isinstance(one, Fused)), None) if dim == 0 else None
            try:
                whole[dim] = sum(rows) if fused is None or divides.count(True) > 1 else fused.whole_rows(rows)
            except InvalidValueError as error:
                raise InvalidValueError(
                    f"{given(name)}, shards of shape {shards[0]}: {error.headline}", error.facts, error.hint
                ) from None
        parts = self.parts(name, tuple(whole))
        for device, shard in enumerate(shards):
            wanted = held_shape(parts, device)
            if shard != wanted:
                raise LayoutError(
                    f"{given(name)}: the shard of device {device} has shape {shard}; must be {wanted}",
                    {"file": str(self.files[device]), "whole tensor": tuple(whole), "placements": self.texts(name)},
                )
        return tuple(whole)

    def _fused_mode(self, placements: Sequence[WeightPlacement]) -> int | None:
        """Return the mode whose placement has sections; None if there is none, or if another mode also divides the rows
        of a `SectionedShard`."""
        fused = [mode for mode, one in enumerate(placements) if isinstance(one, Fused)]
        if not fused:
            return None
        others = [one for mode, one in enumerate(placements) if mode != fused[0] and _dim(one) == 0]
        if not others:
            return fused[0]
        if all(isinstance(one, Sections) for one in placements if isinstance(one, Fused)):
            return None
        raise InvalidValueError("two modes of the mesh divide the rows, but only SectionedShard may be one of them")

    def _section(
        self, section: Section, mode: int, placements: Sequence[WeightPlacement], shape: tuple[int, ...]
    ) -> ShardedLayout:
        """Return the layout of a section; the mode that divides it may be replaced by two modes."""
        extents, divided = section.over(self.mesh_shape[mode])
        mesh = (*self.mesh_shape[:mode], *extents, *self.mesh_shape[mode + 1 :])
        each = (*plain_placements(placements[:mode]), *divided, *plain_placements(placements[mode + 1 :]))
        return distribute((section.rows, *shape[1:]), mesh, each)


def held_shape(parts: Sequence[RowSpan], device: int) -> tuple[int, ...]:
    """Return the extents of a device's part of a tensor; the parts of the sections are stacked by rows."""
    shapes = [part.layout.local_shape(device) for part in parts]
    return shapes[0] if len(shapes) == 1 else (sum(shape[0] for shape in shapes), *shapes[0][1:])


def plain_placements(placements: Sequence[WeightPlacement]) -> list[Placement]:
    """Convert the placements of a plan to placements of `cute_py.mesh`."""
    return [SectionedShard(0, one.rows) if isinstance(one, Sections) else one for one in placements]  # type: ignore[misc]


def _dim(placement: WeightPlacement) -> int | None:
    return 0 if isinstance(placement, Fused) else getattr(placement, "dim", None)


@dataclass(frozen=True, slots=True)
class ReshardPlan:
    """The plan of `reshard`: the files that it reads, and the files that it writes."""

    source: MeshSide
    destination: MeshSide


def read_plan(path: str | os.PathLike[str]) -> ReshardPlan:
    """Read a plan in TOML.

    The tables `[source]` and `[destination]` have the keys `mesh`, the extents of the mesh, and `files`, a list of
    paths, or a string with `{device}` (`{device:05d}` for five digits). In the table `[placements]`, either one for
    both sides or one in each side's table, each line is `pattern = placements`. Placements are one string, or a list
    with one string for each mode of the mesh. Each string is a row of `NAMED_PLACEMENTS`, or a placement as written in
    Python: "Shard(0)", "BlockCyclic(0, 64)", "Replicate()", "SectionedShard(0, (4096, 1024, 1024))".

    Raises:
        FileFormatError: the file is not TOML, or a key is missing or unknown.
    """
    place = expect_path(path, "path")
    try:
        with place.open("rb") as file:
            table = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path}: not valid TOML: {shortened(str(error))}") from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise FileFormatError(f"{path}: can't be read: {system_reason(error)}") from None
    unknown = [key for key in table if key not in ("source", "destination", "placements")]
    if unknown:
        raise FileFormatError(f"{path}: unknown table {given(unknown[0])}; must be source, destination or placements")
    return ReshardPlan(*[_side(table, name, place.parent, str(path)) for name in ("source", "destination")])


def _side(table: dict[str, Any], name: str, folder: Path, path: str) -> MeshSide:
    what, side = f"{path}: [{name}]", table.get(name)
    if not isinstance(side, dict):
        raise FileFormatError(f"{what} is missing")
    for key in ("mesh", "files"):
        if key not in side:
            raise FileFormatError(f"{what} has no key {key!r}")
    unknown = [key for key in side if key not in ("mesh", "files", "placements")]
    if unknown:
        raise FileFormatError(f"{what}: unknown key {given(unknown[0])}; must be mesh, files or placements")
    mesh = (side["mesh"],) if isinstance(side["mesh"], int) else side["mesh"]
    shape = expect_integers(mesh, f"{what} mesh", 1, MOST_DEVICES)
    count = math.prod(shape)
    if not shape or count > MOST_DEVICES:
        raise FileFormatError(f"{what} mesh = {list(shape)}; must have 1 to {MOST_DEVICES} devices")
    files = _files(side["files"], count, what)
    if name == "destination" and len(set(files)) < count:
        raise FileFormatError(f"{what} files names one file for two devices; must name one for each")
    rules = side.get("placements", table.get("placements"))
    if not isinstance(rules, dict) or not rules:
        raise FileFormatError(f"{what} has no placements; add lines 'pattern = placement' here or in [placements]")
    return MeshSide(shape, tuple([folder / file for file in files]), _rules(rules, len(shape), what))


_DEVICE: Final = re.compile(r"\{device(?::(0?[0-9]{0,2}d?))?\}")
"""The number of a device in a file name, with a width as in Python's format specifications."""


def _file_of(pattern: str, device: int) -> str:
    return _DEVICE.sub(lambda found: format(device, found[1] or ""), pattern)


def _files(files: Any, count: int, what: str) -> tuple[str, ...]:
    if isinstance(files, str):
        if count > 1 and not _DEVICE.search(files):
            text = "must contain {device}, or {device:05d} for five digits"
            raise FileFormatError(f"{what} files = {given(files)} for {count} devices; {text}")
        files = [_file_of(files, device) for device in range(count)]
    found = expect_items(files, f"{what} files")
    if len(found) != count or not all(isinstance(file, str) for file in found):
        raise FileFormatError(f"{what} has {len(found)} files for {count} devices; must have one path for each")
    if any("\0" in file for file in found):
        raise FileFormatError(f"{what} files: a file name can't contain NUL")
    return found


def _rules(rules: dict[str, Any], modes: int, what: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for pattern, value in rules.items():
        texts = [value] * modes if value == "replicate" else value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise FileFormatError(
                f"{what} placements of {given(pattern)} = {given(value)}; must be a string or a list of strings"
            )
        if len(texts) != modes:
            raise FileFormatError(
                f"{what} has {counted(len(texts), 'placement')} for {given(pattern)}; "
                f"must have {modes}, one for each mode of the mesh"
            )
        found.append((pattern, tuple(texts)))
    return tuple(found)
