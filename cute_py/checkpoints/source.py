"""Open a checkpoint: a .safetensors file, the files that an index lists, or the files of a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cute_py.argument_checks import expect_path
from cute_py.errors import FileFormatError, given, system_reason
from cute_py.formats.publishers import configured_publisher
from cute_py.formats.stored_weights import StoredWeights, find_weights
from cute_py.mesh.stored_tensors import StoredFile, StoredTensor, stored_file

INDEX_SUFFIX = ".safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files of a checkpoint.

    Attributes:
        files: the tensors and metadata of each file. index: the name of the index, or None.
        tensors: every tensor by name. weights: which tensors form quantised weights, which do not, and errors.
    """

    files: Mapping[Path, StoredFile]
    index: Path | None
    tensors: Mapping[str, StoredTensor]
    weights: StoredWeights

    @property
    def folder(self) -> Path:
        """The folder that contains the files."""
        return next(iter(self.files)).parent

    @property
    def nbytes(self) -> int:
        """Number of bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Open a checkpoint; only the headers of its files are read.

    Args:
        path: a .safetensors file, an index `*.safetensors.index.json`, or a folder that contains either.
    Raises:
        FileFormatError: a file does not exist or has another format, two files have the same tensor, or an index names
            a missing file or tensor.
    """
    files, index, listed = _paths(expect_path(path, "path"))
    stored = {file: stored_file(file) for file in files}
    tensors: dict[str, StoredTensor] = {}
    metadata: dict[str, str] = {}
    formats: dict[str, object] = {}
    for file, one in stored.items():
        for name, tensor in one.tensors.items():
            if name in tensors:
                raise FileFormatError(f"{given(name)} is in {tensors[name].path} and in {file}")
            tensors[name] = tensor
        formats.update(_formats(one.metadata))
        metadata.update(one.metadata)
    if formats:
        metadata[_METADATA] = json.dumps(formats)
    for name, file in listed.items():
        if name not in tensors or tensors[name].path != file:
            raise FileFormatError(f"{index}: {given(name)} should be in {file.name}, which does not have it")
    weights = find_weights(tensors, metadata, _publisher(files[0].parent))
    return Checkpoint(stored, index, tensors, weights)


CONFIGURATIONS = ("hf_quant_config.json", "config.json")


def _publisher(folder: Path) -> str | None:
    """Return the convention that the configuration in a folder names; None if it names none, or can't be read."""
    for name in CONFIGURATIONS:
        try:
            found = configured_publisher((folder / name).read_text())
        except (OSError, UnicodeDecodeError):
            continue
        if found is not None:
            return found
    return None


_METADATA = "cute_py.formats"


def _formats(metadata: Mapping[str, str]) -> dict[str, object]:
    """Return the formats that a file's metadata lists; `find_weights` parses each of them and reports errors."""
    try:
        found = json.loads(metadata.get(_METADATA, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _paths(path: Path) -> tuple[list[Path], Path | None, dict[str, Path]]:
    if path.is_dir():
        indices = sorted(path.glob(f"*{INDEX_SUFFIX}"))
        if len(indices) > 1:
            raise FileFormatError(
                f"{path}: the folder has {len(indices)} indices; name one: {', '.join(i.name for i in indices)}"
            )
        if not indices:
            files = sorted(file for file in path.glob("*.safetensors") if not file.name.startswith("."))
            if not files:
                raise FileFormatError(f"{path}: the folder has neither a .safetensors file nor an index")
            return files, None, {}
        path = indices[0]
    if not path.name.endswith(INDEX_SUFFIX):
        return [path], None, {}
    try:
        table = json.loads(path.read_text())
        placed = {str(name): path.parent / Path(file).name for name, file in table["weight_map"].items()}
    except OSError as error:
        raise FileFormatError(f"{path}: can't be read: {system_reason(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FileFormatError(f"{path}: an index must be JSON with a weight_map of tensors and files") from None
    if not placed:
        raise FileFormatError(f"{path}: its weight_map is empty")
    return list(dict.fromkeys(placed.values())), path, placed
