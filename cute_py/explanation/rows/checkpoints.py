"""Read what a checkpoint states about its quantised weights: its configuration, and the header of a safetensors file.

    {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}}
    {"a.weight": {"dtype": "U8", "shape": [256, 64], "data_offsets": [0, 16384]}, ...}

`CONVENTIONS` gives the names, types and shapes of the tensors, and `find_weights` judges a header by them.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, Union

from cute_py.diagnostics import Diagnostic, Scope
from cute_py.dtypes import SAFETENSORS_HEADER_TYPES, DType, as_dtype
from cute_py.errors import counted, given, shortened
from cute_py.explanation.readings import Reading, some
from cute_py.formats.format import Format, mxfp4, mxfp8, nvfp4
from cute_py.formats.publishers import configured_publisher
from cute_py.formats.stored_weights import CONVENTIONS, Convention, StoredWeight, find_weights
from cute_py.notation.argument_lists import matching_bracket
from cute_py.notation.parse import MOST_TEXT

Json: TypeAlias = Union[str, int, float, bool, "list[Json]", "dict[str, Json]", None]
"""A value of JSON."""
MOST_TENSORS: Final = 2000
"""Maximum number of tensors of a header that are read."""
MOST_WEIGHTS: Final = 4
"""Maximum number of weights of one format that are listed with their tensors."""
_CONFIGURED: Final = re.compile(
    r"[\"']?\b(?P<part>quantization_config|hf_quant_config|quantization)[\"']?\s{0,40}[:=]\s{0,40}(?:\w{1,40}\()?(?=\{)"
)
_BARE: Final = re.compile(
    r"\{(?=\s{0,40}[\"'](?:quant_method|quant_algo|config_groups|activation_scheme)[\"']\s{0,9}:)"
)
"""A quantisation configuration without its name."""
_METHODS: Final = {"fp8": "deepseek", "mxfp4": "gpt-oss"}
"""quant_method -> the convention of its tensors, where the two names differ."""
_FORMATS: Final = (nvfp4(scales="linear"), mxfp4(scales="linear"), mxfp8(scales="linear"))
_IGNORED: Final = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
_BLOCKS: Final = {"tensor": "one for the whole weight", "channel": "one per row (output channel)"}
"""strategy of compressed-tensors -> the elements that share a scale."""


def read_checkpoints(text: str) -> list[Reading]:
    """Read each configuration and each header in `text`.

    >>> found = read_checkpoints('{"quantization_config": {"quant_method": "mxfp4"}}')
    >>> found[0].meaning[0]
    'gpt-oss mxfp4: elements of e2m1, one ue8m0 scale per 32 elements of a row'
    """
    configured = [*_configurations(text)]
    publisher = next((one.publisher for one in configured if one.publisher), None)
    return [*(_configuration_reading(one) for one in configured), *_headers(text, publisher)]


# ---- configurations ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Configuration:
    """A quantisation configuration of a text. publisher: the convention that it names, or None."""

    begin: int
    end: int
    values: Mapping[str, Json]
    publisher: str | None


def _object(text: str, begin: int) -> tuple[dict[str, Json] | None, int]:
    """The object of JSON or Python that starts at a position, and its end; None if it is not complete."""
    end = matching_bracket(text, begin + 1, MOST_TEXT) + 1
    written = text[begin:end]
    for read in (json.loads, ast.literal_eval):
        try:
            made: Json = read(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return (made if isinstance(made, dict) else None), end
    return None, end


def _configurations(text: str) -> Iterator[_Configuration]:
    last = 0
    places = sorted(
        [(one.start(), one.end()) for one in some(_CONFIGURED.finditer(text), 8)]
        + [(one.start(), one.start()) for one in some(_BARE.finditer(text), 8)]
    )
    for start, begin in places:
        if start < last:
            continue
        values, last = _object(text, begin)
        if values is not None and ({"quant_method", "quant_algo", "config_groups"} & values.keys()):
            yield _Configuration(start, last, values, _publisher(values))


def _publisher(values: Mapping[str, Json]) -> str | None:
    method = values.get("quant_method")
    try:
        found = configured_publisher(json.dumps({"quantization_config": values, "quantization": values}))
    except (TypeError, ValueError):
        found = None
    return found or (_METHODS.get(method) if isinstance(method, str) else None)


def _configuration_reading(one: _Configuration) -> Reading:
    values = one.values
    meaning: list[str] = []
    broken: list[Diagnostic] = []
    missing: list[str] = []
    compared = 0
    for algorithm, weights in _algorithms(values):
        row = _row(one.publisher, algorithm)
        blocks = _stated_blocks(values, weights)
        if row is None or (one.publisher == "deepseek" and not blocks):
            missing.append(_unknown(values, algorithm))
            continue
        meaning += _convention_lines(row, blocks)
        size = weights.get("group_size", values.get("group_size"))
        if not row.block or type(size) is not int:
            continue
        compared += 1
        if size != row.block:
            text = f"group_size = {shortened(str(size))}; must be {row.block} for {row.name} {row.algorithm}"
            broken.append(Diagnostic("group-size", text=text, source=row.source))
    kept = next((values[name] for name in _IGNORED if values.get(name)), None)
    if isinstance(kept, list):
        shown = ", ".join(str(name) for name in kept[:4]) + (f" and {len(kept) - 4} more" if len(kept) > 4 else "")
        meaning.append(f"not quantised: {shortened(shown)}")
    cache = values.get("kv_cache_quant_algo") or values.get("kv_cache_scheme")
    meaning += [f"KV cache: {shortened(str(cache))}"] if cache else []
    scope = Scope(
        (f"{counted(compared, 'block size')} of the configuration",) if compared else (),
        ("the tensors of the checkpoint: add the header of its safetensors files", "formats of activations"),
    )
    return Reading("The quantisation configuration of a checkpoint", one.begin, one.end, meaning, broken, (), missing,
                   scope=scope)  # fmt: skip


def _algorithms(values: Mapping[str, Json]) -> list[tuple[str, Mapping[str, Json]]]:
    """The name of each format in a configuration, with the settings of its weights."""
    groups = values.get("config_groups")
    found: dict[str, Mapping[str, Json]] = {}
    named = values.get("quant_algo") or values.get("format") or values.get("quant_method")
    for group in groups.values() if isinstance(groups, dict) else ():
        if isinstance(group, dict) and isinstance(weights := group.get("weights"), dict):
            found.setdefault(str(values.get("quant_algo") or group.get("format") or named), weights)
    return list(found.items()) or [(str(named), {})]


def _row(publisher: str | None, algorithm: str) -> Convention | None:
    """The row of a publisher for a format; a publisher with one format needs no name of it."""
    rows = [row for row in CONVENTIONS if row.name == publisher and row.element]
    named = [row for row in rows if row.algorithm == algorithm]
    return next(iter(named or (rows if len({row.algorithm for row in rows}) == 1 else ())), None)


def _unknown(values: Mapping[str, Json], algorithm: str) -> str:
    method = values.get("quant_method", "modelopt" if "quant_algo" in values else "not stated")
    known = ", ".join(dict.fromkeys(f"{row.name} {row.algorithm}" for row in CONVENTIONS if row.element))
    if method == "fp8" and algorithm == "fp8":
        return "weight_block_size, because without it the configuration does not state which elements share a scale"
    return f"not judged: quant_method {shortened(str(method))}, format {shortened(algorithm)}; known are {known}"


def _stated_blocks(values: Mapping[str, Json], weights: Mapping[str, Json]) -> str:
    """The elements that share a scale, if a configuration states them; otherwise ''."""
    block = weights.get("block_structure") or values.get("weight_block_size")
    if isinstance(block, list) and len(block) == 2 and all(type(n) is int for n in block):
        return f"one per block of {shortened(f'{block[0]} x {block[1]}')} elements"
    return _BLOCKS.get(str(weights.get("strategy")), "")


def _form(row: Convention) -> Format | None:
    """The format of a row, if the row alone determines it."""
    return next((one for one in _FORMATS if (one.element, one.scale) == (row.element, row.scale)), None)


def _convention_lines(row: Convention, blocks: str) -> list[str]:
    """Lines with the format of a convention, the order of its scales, and its tensors."""
    scales = f"one {row.scale} scale per {row.block} elements of a row" if row.block else f"scales of {row.scale}"
    if not row.block:
        scales += f", {blocks or 'as many as their tensor has: one, one per row, or one per block'}"
    total = ", and one float32 scale for the whole weight" if row.total else ""
    order = f"{row.order}: row by row" if row.order else "in the metadata of the file: linear, or 32_4_4 if swizzled"
    if row.block and row.order:
        order += f", (M, K / {row.block})"
    names = row.names("layer.weight")
    types = {"data": row.data_type, "scales": " or ".join(row.scale_types), "total": "float32"}
    lines = [
        f"{row.name} {row.algorithm}: elements of {row.element}, {scales}{total}",
        f"order of the scales: {order}",
        f"tensors of layer.weight: {', '.join(f'{name} ({types[part]})' for part, name in names.items())}",
    ]
    lines += [f"{names['total']} is the reciprocal of the scale of the whole weight"] if row.inverse else []
    form = _form(row)
    lines += [f"here: cute.formats.{form!r}"] if form is not None and row.order else []
    return [*lines, f"source: {row.source}"]


# ---- headers -------------------------------------------------------------------------------------------------------

_ENTRY: Final = re.compile(r"[\"'](?P<name>[^\"'\n{}]{1,300})[\"']\s{0,40}:\s{0,40}\{(?P<entry>[^{}]{1,400})\}")
_TYPE: Final = re.compile(r"[\"']dtype[\"']\s{0,40}:\s{0,40}[\"'](\w{1,20})[\"']")
_SHAPE: Final = re.compile(r"[\"']shape[\"']\s{0,40}:\s{0,40}[\[(]([0-9, \n]{0,200})[\])]")
_OFFSETS: Final = re.compile(r"[\"']data_offsets[\"']\s{0,40}:\s{0,40}[\[(]\s{0,40}([0-9]{1,20}),\s{0,40}([0-9]{1,20})")
_METADATA: Final = re.compile(r"[\"']__metadata__[\"']\s{0,40}:\s{0,40}(?=\{)")
_SHARDS: Final = "tensors in other files of the checkpoint"
_VALUES: Final = "the values of the elements and of the scales"


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor of a header."""

    dtype: DType
    shape: tuple[int, ...]


def _headers(text: str, publisher: str | None) -> Iterator[Reading]:
    """The reading of the tensors that a header lists, if the text has any."""
    tensors: dict[str, _Tensor] = {}
    broken: list[Diagnostic] = []
    unknown: list[str] = []
    found = []
    for one in some(_ENTRY.finditer(text), MOST_TENSORS):
        kind, shape = _TYPE.search(one["entry"]), _SHAPE.search(one["entry"])
        if kind is None or shape is None:
            continue
        found.append(one)
        name, sizes = one["name"], tuple(int(n) for n in shape[1].split(",") if n.strip().isdecimal())
        if kind[1] not in SAFETENSORS_HEADER_TYPES:
            unknown.append(f"{shortened(name)} ({kind[1]})")
            continue
        if name in tensors:
            broken.append(Diagnostic("header-name", text=f"{shortened(name)} is listed twice; must be listed once"))
        tensors[name] = _Tensor(as_dtype(SAFETENSORS_HEADER_TYPES[kind[1]]), sizes)
        broken += _wrong_offsets(name, tensors[name], _OFFSETS.search(one["entry"]))
    if not found:
        return
    begin, end, is_whole = _extent(text, found[0].start(), found[-1].end())
    metadata: dict[str, Json] = {}
    if (stated := _METADATA.search(text)) is not None:
        metadata = _object(text, stated.end())[0] or {}
    plain = {key: value for key, value in metadata.items() if isinstance(key, str) and isinstance(value, str)}
    sorted_ = find_weights(tensors, plain, publisher)
    unplaced = [one["name"] for one in found if _OFFSETS.search(one["entry"]) is None]
    problems = [*sorted_.problems, *(one for weight in sorted_.weights for one in weight.problems)]
    missing = [f"the type of {counted(len(unknown), 'tensor')} is not known here: {', '.join(unknown[:4])}"] * bool(
        unknown
    )
    missing += (
        [f"data_offsets of {counted(len(unplaced), 'tensor')}, such as {shortened(unplaced[0])}"] if unplaced else []
    )
    is_packed = any(tensor.dtype.bits < 8 for tensor in tensors.values())  # every convention stores them as U8
    if not is_whole or is_packed:
        lacking = [one for one in problems if one.rule == "weight-tensor"]
        problems = [one for one in problems if one not in lacking]
        missing += ["the rest of the header: the text is only a part of it"] * (not is_whole)
        missing += ["the convention of weights whose type has 4 or 6 bits; the known ones store them as U8"] * is_packed
        where = "the header" if is_whole else "this part of the header"
        missing += [f"in {where}: {one.message}" for one in lacking[:MOST_WEIGHTS]]
    listed = "tensor of this header" if len(tensors) == 1 else "tensors of this header"
    judged = f"names, types and shapes of the {len(tensors)} {listed}"
    yield Reading(
        f"The header of a safetensors file: {counted(len(found), 'tensor')}",
        begin,
        end,
        _weight_lines(sorted_.weights, len(sorted_.others), len(tensors)),
        [*broken, *problems[: 4 * MOST_WEIGHTS]],
        missing=missing,
        judged=is_whole and not unknown and not unplaced and not is_packed,
        scope=Scope((judged,), (_VALUES, _SHARDS)),
    )


def _wrong_offsets(name: str, tensor: _Tensor, offsets: re.Match[str] | None) -> list[Diagnostic]:
    """The rules that a tensor has whole bytes, and that its offsets are as far apart as its type and shape demand."""
    bits = math.prod(tensor.shape) * tensor.dtype.bits
    if bits % 8:
        text = f"{given(name)} has {bits} bits by its type and shape; must be a multiple of 8"
        return [Diagnostic("header-offsets", text=text, source="safetensors, format of the header")]
    wanted = bits // 8
    if offsets is None or int(offsets[2]) - int(offsets[1]) == wanted:
        return []
    have = counted(int(offsets[2]) - int(offsets[1]), "byte")
    text = f"{given(name)} has {have} by its data_offsets; must have {wanted} by its type and shape"
    return [Diagnostic("header-offsets", text=text, source="safetensors, format of the header")]


def _extent(text: str, begin: int, end: int) -> tuple[int, int, bool]:
    """The span of a header with its brackets, and whether the text has all of it."""
    opened = text.rfind("{", 0, begin)
    before = text.rfind("{", 0, opened) if "__metadata__" in text[max(0, opened - 40) : opened] else opened
    if before < 0:
        return begin, end, False
    closing = matching_bracket(text, before + 1, MOST_TEXT)
    is_whole = text[closing : closing + 1] == "}" and closing >= end
    return before, (closing + 1 if is_whole else end), is_whole


def _weight_lines(weights: Sequence[StoredWeight], others: int, tensors: int) -> list[str]:
    """Lines with the weights of a header, by convention and format."""
    kinds: dict[tuple[str, str, str], list[StoredWeight]] = {}
    for weight in weights:
        row = weight.convention
        kinds.setdefault((row.name, row.algorithm, str(weight.format)), []).append(weight)
    lines: list[str] = []
    for (name, algorithm, _), held in kinds.items():
        form = held[0].format
        lines.append(f"{counted(len(held), 'weight')} of {name} {algorithm}: cute.formats.{form!r}")
        lines.append(f"  order of the scales: {form.order}")
        for weight in held[:MOST_WEIGHTS]:
            lines.append(f"  {shortened(weight.name)} {weight.shape}: {', '.join(weight.tensors.values())}")
        lines += [f"  and {counted(len(held) - MOST_WEIGHTS, 'weight')} more"] * (len(held) > MOST_WEIGHTS)
    if not weights:
        lines = ["no quantised weight that follows a convention"]
    return [*lines, f"{counted(others, 'other tensor')} of {tensors}"] if others else lines
