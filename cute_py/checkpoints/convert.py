"""Convert the weights of a checkpoint to a block-scaled format, to another format, or back to plain numbers.

headers      the role of each tensor, and the names that the patterns select
plan         for each file: names, types, shapes and positions of the new tensors; nothing is written before the plan is
             complete
files        a piece of rows at a time, into a temporary file (`journal`), which is renamed when it is complete
index        the index, the checksums and the configuration follow the last file
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cute_py.argument_checks import expect, expect_choice, expect_items
from cute_py.atomic_write import write_whole
from cute_py.checkpoints.configuration import converted_configuration
from cute_py.checkpoints.journal import PartFile, Records, completed_records, sync_folder
from cute_py.checkpoints.pieces import (
    Source,
    Written,
    copied,
    dequantise,
    expect_on_device,
    quantise,
    reorder,
    shapes_of,
)
from cute_py.checkpoints.source import INDEX_SUFFIX, Checkpoint, open_checkpoint
from cute_py.copies.scaled.host import SAME_BYTES, same_bytes
from cute_py.diagnostics import Scope, refuse
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import FileFormatError, InvalidValueError, counted, given, system_reason
from cute_py.formats.format import Format, parse_format
from cute_py.formats.stored_weights import METADATA, Convention, StoredWeight, convention_row
from cute_py.mesh.stored_tensors import Progress, header_bytes

WEIGHTS: Final = ("*weight",)
"""Default patterns for the names of the tensors to convert."""
KEPT: Final = ("*norm*", "*embed*", "*lm_head*", "*router*", "*mlp.gate.weight")
"""Names of tensors that stay unchanged: published checkpoints keep them in 16 bits."""
FLOATS: Final = ("bfloat16", "float16", "float32")
DEVICES: Final = ("host", "cuda")
CHECKSUMS: Final = "checksums.json"
"""File with the SHA-256 of the bytes of every tensor that was written."""


@dataclass(frozen=True, slots=True)
class ConvertedTensor:
    """A tensor of the source, and the work that was done on it.

    Attributes:
        name: the name of the weight or tensor.
        work: 'quantise', 'requantise', 'dequantise', 'copy', or for a weight that has the format already: 'reorder' if
            the order of its scales changes, 'rename' if only names, types or shapes of its tensors change, 'keep' if
            nothing changes.
        why: the reason why a tensor is copied. file: the new file. checksums: SHA-256 of each new tensor. nan: the
            statement that some of the new scales, elements or values are NaN; "" if none is, or if the tensor is
            copied.
    """

    name: str
    work: str
    why: str
    file: Path
    checksums: Mapping[str, str]
    nan: str = ""

    def __str__(self) -> str:
        reason = f" ({self.why})" if self.why else ""
        warning = f"  warning: {self.nan}" if self.nan else ""
        return f"{self.work:10} {self.name}{reason}{warning}"


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """The result of a conversion: the tensors, the files, and the number of tensors that an earlier run wrote."""

    tensors: tuple[ConvertedTensor, ...]
    files: tuple[Path, ...]
    resumed: int

    @property
    def scope(self) -> Scope:
        """The scope of the checks of this conversion."""
        works = {one.work for one in self.tensors}
        judged = ("names", "types", "shapes", *(["NaN in the results"] if works - {"copy"} else []))
        return Scope(judged, ("the contents of copied tensors",) if "copy" in works else ())

    def __str__(self) -> str:
        return "\n".join(map(str, self.tensors))


@dataclass(frozen=True, slots=True)
class _Options:
    to: Format | DType
    row: Convention | None
    patterns: tuple[str, ...]
    keep: tuple[str, ...]
    requantize: bool
    every_quantised: bool = False
    device: str = "host"

    def matches(self, name: str, quantised: bool = False) -> bool:
        return (quantised and self.every_quantised) or any(
            fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns
        )

    def chosen(self, name: str, quantised: bool = False) -> str:
        """Return the reason why a tensor of this name is not converted; an empty string if it is."""
        if not self.matches(name, quantised):
            return "no pattern names it"
        kept = next((pattern for pattern in self.keep if fnmatch.fnmatchcase(name, pattern)), None)
        return f"kept: {kept}" if kept else ""


@dataclass(frozen=True, slots=True)
class _Work:
    """One weight or tensor: the work on it, and the resulting tensors."""

    source: Source
    work: str
    why: str
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    to: str | Format | DTypeLike,
    *,
    convention: str = "cute",
    patterns: Sequence[str] | None = None,
    keep: Sequence[str] = KEPT,
    requantize: bool = False,
    device: str = "host",
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ConversionReport:
    """Convert the weights of a checkpoint to new files with the same names in the folder `out`.

    Files are written atomically. After an interruption, the same call continues at the end of the journal, and gives
    the same bytes. Memory is bounded by the largest tensor.

    Args:
        source: a .safetensors file, an index, or a folder. out: a folder; it is created if it does not exist.
        to: a `Format` or its text, or 'bfloat16', 'float16', 'float32' for plain numbers.
        convention: names and types of the new tensors: 'cute', 'compressed-tensors', 'modelopt' or 'torchao'.
        patterns, keep: patterns of names to convert, and of names to keep unchanged. The default of `patterns` is
            `WEIGHTS` and all quantised weights, whatever their names are.
        requantize: whether a weight in another format may be dequantised and quantised again.
        device: 'host', or 'cuda': the GPU scales and rounds the blocks, or dequantises them.
        force: replace files that are in `out`.
        progress: a function that is called with the bytes done and the total bytes.
    Raises:
        FileFormatError: a file can't be read or written, or exists already.
        InvalidValueError: the convention does not store the format, a weight has another format, or the patterns match
            no name.
        DeviceError: device is 'cuda', and there is no GPU.
    """
    checkpoint = open_checkpoint(source)
    chosen = _options(to, convention, WEIGHTS if patterns is None else patterns, keep, requantize)
    options = replace(chosen, device=device, every_quantised=patterns is None)
    expect_choice(expect(device, str, "device"), DEVICES, "device")
    wrong = [*checkpoint.weights.problems, *(one for weight in checkpoint.weights.weights for one in weight.problems)]
    wrong = [one for one in wrong if one.severity == "error"]
    refuse(FileFormatError, wrong, "the checkpoint has errors, so nothing is written")
    works = _plan(checkpoint, options)
    if device == "cuda":
        expect_on_device(options.to, _dequantised_formats(works))
    _expect_a_match([one for some in works.values() for one in some], options)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    report = Progress(checkpoint.nbytes, progress)
    rows: list[ConvertedTensor] = []
    resumed, weight_map = 0, {}
    goals = {file: folder / file.name for file in checkpoint.files}
    for file, goal in goals.items():
        if goal.resolve() == file.resolve():
            raise FileFormatError(f"{goal}: the new file would replace a file of the source", hint="another folder")
    jobs = {file: _job(checkpoint, file, works[file], options) for file in checkpoint.files}
    for file, goal in goals.items():
        if goal.exists() and not force and completed_records(goal, jobs[file]) is None and not _unfinished(goal):
            raise FileFormatError(f"{goal}: the file exists already", hint="--overwrite replaces it").of_rule("exists")
    for file, goal in goals.items():
        done, taken = _file(goal, jobs[file], works[file], checkpoint, file, options, report)
        resumed += taken
        for one in works[file]:
            record = done[_key(one)]
            sums, nan = record["sums"], record.get("nan", "")
            rows.append(ConvertedTensor(one.source.name, one.work, one.why, goal, sums, nan))
        weight_map.update({name: goal.name for one in works[file] for name in one.outputs})
    _finish(checkpoint, folder, weight_map, works, rows, options)
    for goal in goals.values():
        goal.with_name(f".{goal.name}.journal").unlink(missing_ok=True)
    sync_folder(folder)
    return ConversionReport(tuple(rows), tuple(goals.values()), resumed)


def _dequantised_formats(works: Mapping[Path, Sequence[_Work]]) -> Iterator[Format]:
    for work in (one for some in works.values() for one in some):
        if work.work in ("dequantise", "requantise") and work.source.weight is not None:
            yield work.source.weight.format


def _expect_a_match(works: Sequence[_Work], options: _Options) -> None:
    """Refuse patterns that match no tensor: all files would be copies."""
    names = [one.source.name for one in works]
    if all(one.work == "copy" for one in works) and names and not any(map(options.matches, names)):
        patterns = ", ".join(map(repr, options.patterns)) or "no pattern"
        text = f"no tensor has a name that matches {patterns}; nothing is written"
        shown = ", ".join(map(given, names[:3])) + (" ..." if len(names) > 3 else "")
        raise InvalidValueError(text, {"names": shown}).of_rule("patterns")


def _unfinished(goal: Path) -> bool:
    return goal.with_name(f".{goal.name}.part").exists()


def _options(
    to: str | Format | DTypeLike, convention: str, patterns: Sequence[str], keep: Sequence[str], requantize: bool
) -> _Options:
    expect(requantize, bool, "requantize")
    texts = [tuple(expect_items(some, what)) for some, what in ((patterns, "patterns"), (keep, "keep"))]
    for some, what in zip(texts, ("patterns", "keep"), strict=True):
        for one in some:
            expect(one, str, f"one of {what}")
    made: Any = to
    row = None
    if isinstance(to, str):
        try:
            made = as_dtype(to)
        except InvalidValueError:
            made = parse_format(to)
    if not isinstance(made, Format):
        made = as_dtype(made)
        if made.name not in FLOATS:
            raise InvalidValueError(f"to = {made.name}; must be a format, or {', '.join(FLOATS)}")
    else:
        row = convention_row(convention, made)
    return _Options(made, row, texts[0], texts[1], requantize)


# ---- plan


def _plan(checkpoint: Checkpoint, options: _Options) -> dict[Path, list[_Work]]:
    """For each file, the work on its tensors, in file order. A weight belongs to the file that has its elements."""
    by_data = {weight.tensors["data"]: weight for weight in checkpoint.weights.weights}
    parts = {name for weight in checkpoint.weights.weights for name in weight.tensors.values()}
    made: dict[Path, list[_Work]] = {}
    for file, stored in checkpoint.files.items():
        made[file] = []
        for name, tensor in stored.tensors.items():
            if name in by_data:
                weight = by_data[name]
                tensors = {part: checkpoint.tensors[text] for part, text in weight.tensors.items()}
                made[file] += _weight_work(Source(weight.name, weight.shape, tensors, weight), options)
            elif name not in parts:
                made[file].append(_tensor_work(Source(name, tensor.shape, {"data": tensor}), options))
    names: dict[str, str] = {}
    for one in (work for some in made.values() for work in some):
        for name in one.outputs:
            if names.setdefault(name, one.source.name) != one.source.name:
                text = f"{given(name)} would hold {given(names[name])} and {given(one.source.name)}"
                raise FileFormatError(text, {"convention": options.row.name if options.row else "plain"})
    return made


def _copy_work(source: Source, why: str) -> list[_Work]:
    return [
        _Work(Source(t.name, t.shape, {"data": t}), "copy", why, {t.name: (t.dtype.name, t.shape)})
        for t in source.tensors.values()
    ]


def _tensor_work(source: Source, options: _Options) -> _Work:
    why = options.chosen(source.name)
    form = options.to
    if not why and isinstance(form, DType):
        why = "it has no scales"
    if not why:
        why = _unfit(source, form, options)
    if why or options.row is None or isinstance(form, DType):
        return _copy_work(source, why)[0]
    names = options.row.names(source.name)
    return _Work(source, "quantise", "", shapes_of(form, options.row, names, source.shape))


def _unfit(source: Source, form: Any, options: _Options) -> str:
    """Return the reason why a tensor of floats can't be stored in the format; an empty string if it can."""
    if source.dtype not in FLOATS:
        return f"its elements are {source.dtype}"
    if len(source.shape) not in (2, 3) or 0 in source.shape:
        return "no elements" if 0 in source.shape else counted(len(source.shape), "dimension")
    if options.row is None or options.row.name == "cute":
        return ""
    if len(source.shape) == 3:
        return f"{options.row.name} has weights of 2 dimensions"
    if options.row.name == "torchao" and "." not in source.name:
        return "torchao needs a name with a module"
    rows, columns = form.blocks(*source.shape)
    if source.shape[1] % columns or (options.row.name == "torchao" and source.shape[0] % rows):
        return f"{source.shape[1]} columns are not a multiple of {columns}"
    return ""


def _weight_work(source: Source, options: _Options) -> list[_Work]:
    why = options.chosen(source.name, quantised=True)
    weight = source.weight
    if why or weight is None:
        return _copy_work(source, why)
    form = options.to
    if isinstance(form, DType):
        return [_Work(source, "dequantise", "", {source.name: (form.name, source.shape)})]
    why = "" if options.row is None else _unfit(Source(source.name, source.shape, {}, weight), form, options)
    if options.row is None or why:
        raise InvalidValueError(f"{given(source.name)} can't be stored as {form}: {why}")
    shapes = shapes_of(form, options.row, options.row.names(source.name), source.shape)
    if same_bytes(weight.format, form):
        return [_Work(source, _stored_work(source, weight, form, shapes), "", shapes)]
    if not options.requantize:
        differ = [field for field in SAME_BYTES if getattr(form, field) != getattr(weight.format, field)]
        facts = {"source": weight.format, "destination": form, "differ in": ", ".join(differ)}
        text = f"{given(source.name)} already has another format"
        raise InvalidValueError(text, facts, "requantize (--requantize) dequantises and quantises again").of_rule(
            "requantize"
        )
    return [_Work(source, "requantise", "", shapes)]


def _stored_work(
    source: Source, weight: StoredWeight, form: Format, shapes: Mapping[str, tuple[str, tuple[int, ...]]]
) -> str:
    """Name the work on a weight whose elements and scales do not change."""
    if form.order != weight.format.order:
        return "reorder"
    stored = {tensor.name: (tensor.dtype.name, tensor.shape) for tensor in source.tensors.values()}
    return "keep" if shapes == stored else "rename"


# ---- files


def _key(work: _Work) -> str:
    return " ".join(work.outputs)


def _job(checkpoint: Checkpoint, file: Path, works: Sequence[_Work], options: _Options) -> str:
    """A string that is the same if a second run would write the same bytes."""
    read = sorted({tensor.path for work in works for tensor in work.source.tensors.values()} | {file})
    said: list[Any] = [repr(options)]
    for path in read:
        status = path.stat()
        said.append((str(path.resolve()), status.st_size, status.st_mtime_ns))
    said.append([(work.work, list(work.outputs.items())) for work in works])
    return hashlib.sha256(json.dumps(said, default=str).encode()).hexdigest()


def _ordered(works: Sequence[_Work]) -> dict[str, tuple[DType, tuple[int, ...]]]:
    """The new tensors in the order of safetensors: wider elements first, so that all are aligned, then by name."""
    found = {name: (as_dtype(kind), shape) for work in works for name, (kind, shape) in work.outputs.items()}
    return dict(sorted(found.items(), key=lambda item: (-item[1][0].bits, item[0])))


def _file(
    goal: Path,
    job: str,
    works: Sequence[_Work],
    checkpoint: Checkpoint,
    file: Path,
    options: _Options,
    report: Progress,
) -> tuple[Records, int]:
    """Write a file; returns the record of each work in the journal, and how many an earlier run had done."""
    before = completed_records(goal, job)
    if before is not None:
        report.add(sum(work.source.nbytes for work in works))
        return before, len(before)
    tensors = _ordered(works)
    plain = {key: text for key, text in checkpoint.files[file].metadata.items() if not _of_formats(key, text)}
    header = header_bytes(tensors, _metadata(plain, works, options, {}))
    places, at = {}, len(header)
    for name, (dtype, shape) in tensors.items():
        places[name] = at, math.prod(shape) * dtype.bits // 8
        at += places[name][1]
    try:
        with PartFile(goal, job, header, places) as made:
            for work in works:
                if _key(work) not in made.done:
                    written = _run(work, options, made)
                    made.finish(_key(work), bits=written.bits, nan=written.nan)
                report.add(work.source.nbytes)
            bits_of = {work.source.name: made.done[_key(work)].get("bits") for work in works}
            made.complete(header_bytes(tensors, _metadata(plain, works, options, bits_of)))
    except OSError as error:
        raise FileFormatError(f"{goal}: can't be written: {system_reason(error)}") from None
    return made.done, made.resumed


def _run(work: _Work, options: _Options, made: PartFile) -> Written:
    source, form = work.source, options.to
    if work.work == "copy":
        copied(source.tensors["data"], source.name, made.write)
    elif isinstance(form, DType):
        return dequantise(source, form, source.name, made.write, options.device)
    elif options.row is not None:
        names = options.row.names(source.name)
        if work.work in ("reorder", "rename", "keep"):
            return reorder(source, form, options.row, names, made.write)
        return quantise(source, form, options.row, names, made.write, options.device)
    return Written()


def _of_formats(key: str, text: str) -> bool:
    """Whether an entry of the source's metadata describes formats. The conversion replaces such entries."""
    return key in (METADATA, "tensor_names") or '"_type"' in text


def _metadata(
    plain: Mapping[str, str], works: Sequence[_Work], options: _Options, bits: Mapping[str, int | None]
) -> dict[str, str]:
    """The metadata of a new file, by name, because a file of another convention has its tensors in another order. The
    exact tensor scales have a fixed width, because they are known last."""
    found = dict(plain)
    entries: dict[str, Any] = {}
    works = sorted(works, key=lambda work: work.source.name)
    for work in works:
        row, form = options.row, options.to
        if row is None or isinstance(form, DType) or work.work == "copy":
            if options.row is not None and options.row.name == "torchao":
                found.update({name: json.dumps({"_type": "Tensor"}) for name in work.outputs})
            continue
        if row.name == "torchao":
            found[work.source.name] = json.dumps(_torchao_entry(work, row, form))
        elif row.name == "cute" or (row.inverse and form.tensor_scale):
            entry: dict[str, Any] = {"format": repr(form), "shape": work.source.shape, "dtype": work.source.dtype}
            if row.name != "cute":
                entry |= {"convention": row.name, "tensor_scale": f"{bits.get(work.source.name) or 0:#010x}"}
            entries[work.source.name] = entry
    if options.row is not None and options.row.name == "torchao":
        names = [name for one in works for name in ([one.source.name] if one.work != "copy" else one.outputs)]
        found["tensor_names"] = json.dumps(names)
    if entries:
        found[METADATA] = json.dumps(entries)
    return found


def _torchao_entry(work: _Work, row: Convention, form: Format) -> dict[str, Any]:
    """The metadata of a tensor subclass, as torchao's flatten_tensor_state_dict writes it."""

    def dtype(name: str) -> dict[str, str]:
        return {"_type": "torch.dtype", "_data": name}

    data: dict[str, Any] = {"block_size": row.block, "orig_dtype": dtype(work.source.dtype), "act_quant_kwargs": None}
    data["is_swizzled_scales"] = str(form.order) == "32_4_4"
    parts = ["qdata", "scale"]
    if row.algorithm == "NVFP4Tensor":
        data["use_triton_kernel"] = False
        parts = [*(["per_tensor_scale"] if form.tensor_scale else []), *parts]
    else:
        data["elem_dtype"] = dtype("float4_e2m1fn_x2" if form.element == "e2m1" else form.dtype.name)
        data["kernel_preference"] = {"_type": "KernelPreference", "_data": "EMULATED"}
    return {"_type": row.algorithm, "_data": data, "_tensor_data_names": parts}


def _finish(
    checkpoint: Checkpoint,
    folder: Path,
    weight_map: Mapping[str, str],
    works: Mapping[Path, Sequence[_Work]],
    rows: Sequence[ConvertedTensor],
    options: _Options,
) -> None:
    """The index, the checksums and the configuration, after the files that they name."""
    outputs = list(_outputs(works))
    if checkpoint.index is not None:
        size = sum(math.prod(shape) * as_dtype(kind).bits // 8 for _, (kind, shape) in outputs)
        index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
        write_whole(folder / checkpoint.index.name, json.dumps(index, indent=2) + "\n")
    sums = {name: value for row in rows for name, value in row.checksums.items()}
    write_whole(folder / CHECKSUMS, json.dumps({"sha256": dict(sorted(sums.items()))}, indent=1) + "\n")
    config = checkpoint.folder / "config.json"
    if config.is_file():
        kept = [one.name for one in rows if one.work == "copy" and one.name.endswith(".weight") and one.why]
        text = converted_configuration(config.read_text(), options.row, kept)
        write_whole(folder / "config.json", text)


def _outputs(works: Mapping[Path, Sequence[_Work]]) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    for some in works.values():
        for work in some:
            yield from work.outputs.items()


__all__ = ["INDEX_SUFFIX", "ConversionReport", "ConvertedTensor", "convert"]
