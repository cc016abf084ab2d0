"""Quantised weights in checkpoints: conventions for the names, types and shapes of the tensors that store a weight.

    layer.weight_packed         uint8         (M, K/2)       two e2m1 per byte
    layer.weight_scale          float8_e4m3   (M, K/16)      one scale per block, row by row
    layer.weight_global_scale   float32       (1,)           the reciprocal of the tensor scale

This is one row of `CONVENTIONS` (compressed-tensors, nvfp4-pack-quantized). `find_weights` finds the weights in a file
that follow a row, from the names, types and shapes of its tensors and from its metadata. `stored_arrays` makes the
arrays that a row stores for a weight.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, InvalidValueError, counted, given, known_names, shortened
from cute_py.formats.format import Format, fp8, mxfp4, mxfp6, mxfp8, nvfp4, parse_format
from cute_py.formats.numbers import codes, of_codes, to_float32
from cute_py.formats.scaled_tensor import ScaledTensor, extents, stored_elements, stored_shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

METADATA: Final = "cute_py.formats"
"""The format of each weight is stored as JSON under this key of a file's metadata."""


@dataclass(frozen=True, slots=True)
class Convention:
    """The convention of one publisher for weights of one format.

    Attributes:
        name: the publisher. algorithm: the publisher's name for the format. element, scale: types of elements and
            scales.
        block: number of columns that share a scale; 0 if it is computed from the shape of the scales.
        data, scales, total: names of the tensors; `{weight}` is the weight's name, `{module}.{leaf}` its parts.
        data_type, scale_types: element types in the file. inverse: whether `total` is the reciprocal of the tensor
            scale.
        total_shape: shape of the tensor scale. needs_metadata: whether only the file's metadata identifies the weight.
        order: order of the scales; empty if the metadata names it. grouped: whether the data has a mode of blocks and
            a mode of the bytes of a block. read_only: whether `stored_arrays` does not write it. source: where the
            convention is defined.
    """

    name: str
    algorithm: str
    element: str
    scale: str
    block: int
    data: str
    scales: str
    data_type: str
    scale_types: tuple[str, ...]
    total: str = ""
    inverse: bool = False
    total_shape: tuple[int, ...] = ()
    needs_metadata: bool = False
    order: str = "linear"
    grouped: bool = False
    read_only: bool = False
    source: str = ""

    def names(self, weight: str) -> dict[str, str]:
        """The tensor names of a weight, by part: 'data', 'scales', and 'total' if the convention has a tensor scale.

        >>> CONVENTIONS[0].names("layer.weight")["scales"]
        'layer.weight_scale'
        """
        module, _, leaf = weight.rpartition(".")
        parts = {"data": self.data, "scales": self.scales, "total": self.total}
        return {part: text.format(weight=weight, module=module, leaf=leaf) for part, text in parts.items() if text}

    def weight_of(self, tensor: str, part: str = "data") -> str | None:
        """The name of the weight whose data, or other part, has this tensor name; None if only the metadata can tell,
        or if it is the name of no weight.

        >>> CONVENTIONS[0].weight_of("layer.weight_scale", "scales")
        'layer.weight'
        """
        suffix = {"data": self.data, "scales": self.scales}[part].removeprefix("{weight}")
        return None if self.needs_metadata or not tensor.endswith(suffix) else tensor.removesuffix(suffix)

    def takes_blocks(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape ends with the modes of blocks and of the bytes of a block."""
        return len(shape) > 2 and shape[-1] == self.block_bytes

    @property
    def title(self) -> str:
        """The publisher, with its name for the format if it has one: 'modelopt FP8', 'cute'."""
        return self.name if self.algorithm == "any" else f"{self.name} {self.algorithm}"

    @property
    def block_bytes(self) -> int:
        """Number of bytes of a block of e2m1 elements."""
        return self.block // 2


_CT: Final = "compressed-tensors 0.20.1, compressors/"
_MODELOPT: Final = "nvidia-modelopt 0.47.0, torch/"
_AO: Final = "torchao 0.18, prototype/safetensors/safetensors_support.py; prototype/mx_formats/"
_QDATA, _AO_SCALE = "{module}._{leaf}_qdata", "{module}._{leaf}_scale"

CONVENTIONS: Final = (
    Convention(
        "compressed-tensors", "nvfp4-pack-quantized", "e2m1", "ue4m3", 16, "{weight}_packed", "{weight}_scale",
        "uint8", ("float8_e4m3fn",), "{weight}_global_scale", True, (1,), source=_CT + "nvfp4/base.py",
    ),
    Convention(
        "compressed-tensors", "mxfp4-pack-quantized", "e2m1", "ue8m0", 32, "{weight}_packed", "{weight}_scale",
        "uint8", ("uint8", "float8_e8m0fnu"), source=_CT + "mxfp4/base.py",
    ),
    Convention(
        "compressed-tensors", "mxfp8-quantized", "e4m3", "ue8m0", 32, "{weight}", "{weight}_scale",
        "float8_e4m3fn", ("uint8", "float8_e8m0fnu"), source=_CT + "mxfp8/base.py",
    ),
    Convention(
        "compressed-tensors", "float-quantized", "e4m3", "float32", 0, "{weight}", "{weight}_scale",
        "float8_e4m3fn", ("float32", "bfloat16", "float16"), source=_CT + "naive_quantized/base.py",
    ),
    Convention(
        "modelopt", "NVFP4", "e2m1", "ue4m3", 16, "{weight}", "{weight}_scale",
        "uint8", ("float8_e4m3fn",), "{weight}_scale_2", source=_MODELOPT + "quantization/qtensor/nvfp4_tensor.py",
    ),
    Convention(
        "modelopt", "MXFP8", "e4m3", "ue8m0", 32, "{weight}", "{weight}_scale",
        "float8_e4m3fn", ("uint8",), source=_MODELOPT + "quantization/qtensor/mxfp8_tensor.py",
    ),
    Convention(
        "modelopt", "FP8", "e4m3", "float32", 0, "{weight}", "{weight}_scale",
        "float8_e4m3fn", ("float32",), source=_MODELOPT + "export/quant_utils.py",
    ),
    Convention(
        "autofp8", "fp8", "e4m3", "float32", 0, "{weight}", "{weight}_scale", "float8_e4m3fn", ("float32",),
        read_only=True, source="AutoFP8, auto_fp8/quantize.py, per_tensor_quantize and save_quantized_model",
    ),
    Convention(
        "deepseek", "fp8", "e4m3", "float32", 0, "{weight}", "{weight}_scale_inv",
        "float8_e4m3fn", ("float32", "bfloat16"), read_only=True,
        source="DeepSeek-V3, inference/kernel.py, weight_dequant",
    ),
    Convention(
        "gpt-oss", "mxfp4", "e2m1", "ue8m0", 32, "{weight}_blocks", "{weight}_scales", "uint8", ("uint8",),
        grouped=True, read_only=True, source="Transformers, integrations/mxfp4.py, convert_moe_packed_tensors",
    ),
    Convention(
        "gpt-oss", "mxfp4", "e2m1", "ue8m0", 32, "{weight}.blocks", "{weight}.scales", "uint8", ("uint8",),
        grouped=True, read_only=True, source="gpt-oss, gpt_oss/torch/weights.py",
    ),
    Convention(
        "torchao", "NVFP4Tensor", "e2m1", "ue4m3", 16, _QDATA, _AO_SCALE, "uint8", ("float8_e4m3fn",),
        "{module}._{leaf}_per_tensor_scale", needs_metadata=True, order="", source=_AO + "nvfp4_tensor.py",
    ),
    Convention(
        "torchao", "MXTensor", "e4m3", "ue8m0", 32, _QDATA, _AO_SCALE, "float8_e4m3fn", ("float8_e8m0fnu",),
        needs_metadata=True, order="", source=_AO + "mx_tensor.py",
    ),
    Convention(
        "torchao", "MXTensor", "e2m1", "ue8m0", 32, _QDATA, _AO_SCALE, "uint8", ("float8_e8m0fnu",),
        needs_metadata=True, order="", source=_AO + "mx_tensor.py",
    ),
    Convention(
        "cute", "any", "", "", 0, "{weight}", "{weight}_scale", "", (), "{weight}_scale_2", needs_metadata=True,
        order="", source=f"this library: the format of each weight is in the metadata, key {METADATA}",
    ),
)  # fmt: skip
"""Scales are row by row (M, K / block). If `order` is empty, the metadata gives the order."""

NAMES: Final = tuple(dict.fromkeys(row.name for row in CONVENTIONS if not row.read_only))
"""Conventions that `stored_arrays` writes."""


class TensorRow(Protocol):
    """A tensor of a file: its element type and its shape."""

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """A quantised weight that was found in a file.

    Attributes:
        name: the name of the weight. convention: the row that its tensors follow. format, shape: the format and logical
            shape of the weight.
        tensors: the names of its tensors, by part: 'data', 'scales', 'total'. dtype: the original type of the weight,
            if the file names it. total_bits: the exact tensor scale, if the file has a rounded reciprocal.
        problems: errors in the names, types and shapes. alike: other publishers' rows that the tensors fit equally.
    """

    name: str
    convention: Convention
    format: Format
    shape: tuple[int, ...]
    tensors: Mapping[str, str]
    dtype: str | None = None
    total_bits: int | None = None
    problems: tuple[Diagnostic, ...] = field(default=())
    alike: tuple[Convention, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """The tensors of a file, sorted into quantised weights and other tensors, with the problems found."""

    weights: tuple[StoredWeight, ...]
    others: tuple[str, ...]
    problems: tuple[Diagnostic, ...]


def find_weights(
    tensors: Mapping[str, TensorRow], metadata: Mapping[str, str], publisher: str | None = None
) -> StoredWeights:
    """Find the quantised weights among the tensors of a checkpoint.

    Args:
        tensors: a mapping from names to types and shapes. metadata: the file's metadata, as strings.
        publisher: the convention that the checkpoint's configuration names (`publishers.configured_publisher`), or
            None. It decides if the tensors fit the rows of several conventions.
    """
    found: dict[str, StoredWeight] = {}
    problems: list[Diagnostic] = []
    reported: set[str] = set()
    listed, wrong = _of_metadata(metadata)
    problems += wrong
    for name, (row, form, shape, dtype, bits) in listed.items():
        names = {part: text for part, text in row.names(name).items() if part != "total" or form.tensor_scale}
        missing = [text for text in names.values() if text not in tensors]
        if missing:
            text = f"{given(name)} is {row.title}, but the file lacks {', '.join(missing)}"
            problems.append(Diagnostic("weight-tensor", name, text=text))
            reported.update(names.values())
            continue
        whole = _whole_shape(row, form, shape, tensors[names["data"]].shape)
        found[name] = _judged(StoredWeight(name, row, form, whole, names, dtype, bits), tensors)
    taken = {text for weight in found.values() for text in weight.tensors.values()}
    for name in tensors:
        if name not in taken and (weight := _recognised(name, tensors, taken, publisher)) is not None:
            problems += _twice(found.setdefault(weight.name, weight), weight)
            taken.update(weight.tensors.values())
    problems += [one for weight in found.values() for one in _beside_plain(weight, tensors)]
    others = tuple(name for name in tensors if name not in taken)
    problems += [one for name in others if name not in reported for one in _orphan(name, tensors)]
    problems += _without_scales(others, found.values(), tensors) if found else _only_fp8(others, tensors)
    return StoredWeights(tuple(found.values()), others, tuple(problems))


def _of_metadata(metadata: Mapping[str, str]) -> tuple[dict[str, Any], list[Diagnostic]]:
    """The weights that the metadata names: name -> (row, format, shape or None, type or None, exact tensor scale or
    None). Also return the problems found."""
    found: dict[str, Any] = {}
    problems = []
    own = CONVENTIONS[-1]
    try:
        for name, entry in _object(metadata.get(METADATA, "{}")).items():
            row = convention_row(entry.get("convention", "cute"), parse_format(entry["format"]))
            bits = entry.get("tensor_scale")
            shape = tuple(map(int, entry["shape"]))
            if row is own or bits is not None:
                said = int(bits, 16) if bits is not None else None
                found[name] = row, parse_format(entry["format"]), shape, entry.get("dtype"), said
    except (CuteError, KeyError, TypeError, ValueError, AttributeError) as problem:
        text = f"the metadata {METADATA!r} can't be read: {shortened(str(problem).splitlines()[0])}"
        problems.append(Diagnostic("weight-metadata", text=text))
    for name, text in metadata.items():
        if name == METADATA or not text.startswith("{"):
            continue
        try:
            entry = _object(text)
            if entry.get("_type") in ("MXTensor", "NVFP4Tensor"):
                found[name] = _torchao(entry)
        except (CuteError, KeyError, TypeError, ValueError, AttributeError) as problem:
            why = shortened((str(problem) or type(problem).__name__).splitlines()[0])
            problems.append(
                Diagnostic("weight-metadata", name, text=f"the metadata of {given(name)} can't be read: {why}")
            )
    return found, problems


def _object(text: str) -> dict[str, Any]:
    made = json.loads(text)
    if not isinstance(made, dict):
        raise InvalidValueError("it is not a JSON object")
    return made


def _torchao(entry: Mapping[str, Any]) -> tuple[Convention, Format, None, str | None, None]:
    """The entry of `_of_metadata` for a tensor subclass that torchao flattened into plain tensors."""
    data = entry["_data"]
    order = "32_4_4" if data.get("is_swizzled_scales") else "linear"
    dtype = (data.get("orig_dtype") or {}).get("_data")
    if entry["_type"] == "NVFP4Tensor":
        form = nvfp4(scales=order, tensor_scale="per_tensor_scale" in entry["_tensor_data_names"])
    else:
        kind = str(data["elem_dtype"]["_data"] if isinstance(data["elem_dtype"], dict) else data["elem_dtype"])
        if kind.startswith("float4"):
            form = mxfp4(scales=order)
        elif kind.startswith("float8"):
            form = mxfp8(scales=order, element=as_dtype(kind).name.split("_")[1].removesuffix("fn"))
        else:
            form = mxfp6(scales=order, element=kind.removeprefix("fp6_"))
    if data["block_size"] != form.block[1]:
        raise InvalidValueError(
            f"the metadata gives blocks of {data['block_size']} elements, but {entry['_type']} has blocks of "
            f"{form.block[1]}"
        )
    row = next(r for r in CONVENTIONS if (r.name, r.algorithm) == ("torchao", entry["_type"]))
    return row, form, None, dtype, None


def _whole_shape(
    row: Convention, form: Format, said: tuple[int, ...] | None, stored: tuple[int, ...]
) -> tuple[int, ...]:
    if said is not None:
        return said
    return (*stored[:-1], stored[-1] * 2) if form.packing == "pairs" and stored else stored


def _twice(first: StoredWeight, weight: StoredWeight) -> list[Diagnostic]:
    """Report a weight that is stored a second time under other names."""
    if first is weight:
        return []
    places = " and by ".join(f"{one.tensors['data']} ({one.convention.title})" for one in (first, weight))
    text = f"{given(weight.name)} is stored by {places}; must be stored once"
    return [Diagnostic("weight-twice", weight.name, text=text, source=weight.convention.source)]


def _beside_plain(weight: StoredWeight, tensors: Mapping[str, TensorRow]) -> list[Diagnostic]:
    """Report a weight beside another tensor that has the weight's name."""
    if weight.name not in tensors or weight.name in weight.tensors.values():
        return []
    text = f"{given(weight.name)} is stored by {weight.tensors['data']} ({weight.convention.title}) "
    text += f"and as a tensor of {tensors[weight.name].dtype}; must be stored once"
    return [Diagnostic("weight-twice", weight.name, text=text, source=weight.convention.source)]


def _recognised(
    name: str, tensors: Mapping[str, TensorRow], taken: Iterable[str], publisher: str | None
) -> StoredWeight | None:
    """Recognise the weight whose data tensor is `name`, only from names, types and shapes; None if there is none.

    If the tensors fit several rows, a row of the publisher wins, then a row that stores scales of exactly this shape,
    then the first row.
    """
    found = [one for row in CONVENTIONS if (one := _of_row(row, name, tensors, taken)) is not None]

    def fits(weight: StoredWeight) -> tuple[bool, bool]:
        row = weight.convention
        stored = tensors[weight.tensors["scales"]].shape
        return row.name == publisher, stored == stored_scale_shape(row, weight.format, weight.shape)

    if not found:
        return None
    best = max(found, key=fits)
    rivals = [one for one in found if fits(one) == fits(best) and _fits(one.convention, one.format)]
    alike = tuple(one.convention for one in rivals if one.convention.name != best.convention.name)
    return replace(_judged(best, tensors), alike=alike)


def _of_row(row: Convention, name: str, tensors: Mapping[str, TensorRow], taken: Iterable[str]) -> StoredWeight | None:
    """The weight whose data tensor is `name` if its tensors follow a row; otherwise None."""
    weight = row.weight_of(name)
    if weight is None or tensors[name].dtype.name != row.data_type:
        return None
    names = row.names(weight)
    scales = tensors.get(names["scales"])
    if scales is None or scales.dtype.name not in row.scale_types or names["scales"] in taken:
        return None
    if "total" in names and names["total"] not in tensors:
        return None
    shape = tensors[name].shape
    if row.grouped:
        if not row.takes_blocks(shape):
            return None
        shape = (*shape[:-2], shape[-2] * shape[-1])
    if len(shape) not in (2, 3) or 0 in shape:
        return None
    form = _format_of(row, shape, scales.shape)
    if form is None or (not row.block and len(shape) != 2):
        return None
    return StoredWeight(weight, row, form, _whole_shape(row, form, None, shape), names)


def _format_of(row: Convention, data: tuple[int, ...], scales: tuple[int, ...]) -> Format | None:
    """The format of a weight that follows a row, from the shapes of its data and scales; None if the scales do not fit
    the row."""
    if row.element == "e2m1":
        return nvfp4(scales="linear") if row.scale == "ue4m3" else mxfp4(scales="linear")
    if row.scale == "ue8m0":
        return mxfp8(scales="linear")
    M, K = data[-2:]
    if math.prod(scales) == 1 and (M, K) != (1, 1):
        return fp8("tensor")
    if scales in ((M, 1), (M,)):
        return fp8("row")
    if len(scales) != 2:
        return None
    if scales == (-(-M // 128), -(-K // 128)):
        return fp8((128, 128))
    return fp8((1, 128)) if scales == (M, -(-K // 128)) else None


def _judged(weight: StoredWeight, tensors: Mapping[str, TensorRow]) -> StoredWeight:
    """Return the weight with the problems found in its types and shapes."""
    row, form = weight.convention, weight.format
    data, scales = (tensors[weight.tensors[part]] for part in ("data", "scales"))
    found = []
    kinds = {
        "data": (form.dtype.name if form.number.bits == 8 else "uint8",),
        "scales": row.scale_types or (form.scale_dtype.name,),
    }
    for part, kind in kinds.items():
        have_kind = tensors[weight.tensors[part]].dtype.name
        if have_kind not in kind:
            text = f"{weight.tensors[part]} has the type {have_kind}; must be {' or '.join(kind)}"
            found.append(Diagnostic("weight-type", weight.name, text=text, source=row.source))
    known = len(weight.shape) in (2, 3) and 0 not in weight.shape
    wanted = stored_data_shape(row, form, weight.shape) if known else weight.shape
    if data.shape != wanted and 0 not in data.shape:  # a device may hold no rows
        text = f"{weight.tensors['data']} has the shape {data.shape}; must be {wanted}"
        found.append(Diagnostic("weight-shape", weight.name, text=text))
    need, have = _scale_count(weight), math.prod(scales.shape)
    if need is not None and have != need:
        text = f"{weight.tensors['scales']} has {have} scales of shape {scales.shape}; must have {need} in the order "
        text += f"{form.order}{_fitting(weight, have)}"
        found.append(Diagnostic("weight-scales", weight.name, text=text, source=row.source))
    elif need is not None:
        grid = stored_scale_shape(row, form, weight.shape)
        if len(scales.shape) == len(grid) and scales.shape != grid:
            text = f"{weight.tensors['scales']} has the shape {scales.shape}; must be {grid} in the order {form.order}"
            found.append(Diagnostic("weight-scales", weight.name, text=text, source=row.source))
    if "total" in weight.tensors:
        total = tensors[weight.tensors["total"]]
        if math.prod(total.shape) != 1 or total.dtype.name != "float32":
            text = f"{weight.tensors['total']} has the shape {total.shape} of {total.dtype}; must be one float32"
            found.append(Diagnostic("weight-total", weight.name, text=text))
    return StoredWeight(**{name: getattr(weight, name) for name in _FIELDS}, problems=tuple(found))


_FIELDS: Final = ("name", "convention", "format", "shape", "tensors", "dtype", "total_bits")


def _scale_count(weight: StoredWeight) -> int | None:
    if len(weight.shape) not in (2, 3) or min(weight.shape) < 1:
        return None
    return int(weight.format.scale_size(*extents(weight.shape)))


FITTING: Final = ("linear", "32_4_4", "8x4", "triton_blackwell", "rocm_32_8")
"""Orders whose sizes are compared with the size of a buffer."""


def orders_that_fit(form: Format, shape: tuple[int, ...], count: int) -> tuple[str, ...]:
    """The names of the orders in `FITTING` that have this number of scales for a tensor of this shape.

    >>> orders_that_fit(nvfp4(), (100, 64), 400), orders_that_fit(nvfp4(), (100, 64), 512)
    (('linear',), ('32_4_4',))
    """
    sizes = {name: int(form.with_(scales=name).scale_size(*extents(shape))) for name in FITTING}
    return tuple(name for name, size in sizes.items() if size == count)


def _fitting(weight: StoredWeight, count: int) -> str:
    fits = orders_that_fit(weight.format, weight.shape, count)
    return f"; {count} is the size of the order {' and of '.join(fits)}" if fits else ""


def _without_scales(
    others: Iterable[str], weights: Iterable[StoredWeight], tensors: Mapping[str, TensorRow]
) -> list[Diagnostic]:
    """Find fp8 matrices without scales in a checkpoint whose other weights of this type have scales."""
    rows = {one.convention.data_type: one.convention for one in weights if one.convention.data == "{weight}"}
    found = []
    for name in others:
        row = rows.get(tensors[name].dtype.name)
        if row is None or row.data_type == "uint8" or not name.endswith("weight") or len(tensors[name].shape) != 2:
            continue
        scales = row.names(name)["scales"]
        if scales not in tensors:
            text = f"{name} has elements of {row.data_type}, but the file lacks {scales}"
            found.append(Diagnostic("weight-tensor", name, text=text))
    return found


def _only_fp8(others: Iterable[str], tensors: Mapping[str, TensorRow]) -> list[Diagnostic]:
    """Warn of fp8 matrices in a checkpoint where no tensor's name has 'scale'; a plain cast to fp8 needs none."""
    names = [
        n for n in others if tensors[n].dtype.name in ("float8_e4m3fn", "float8_e5m2") and len(tensors[n].shape) > 1
    ]
    if not names or any("scale" in name for name in tensors):
        return []
    text = (
        f"{counted(len(names), 'tensor')} of fp8 elements, such as {names[0]}, and no scales: either a plain cast made "
        "them, or the scales are missing"
    )
    return [Diagnostic("weight-tensor", names[0], text=text, severity="warning")]


def _lacking_total(name: str, tensors: Mapping[str, TensorRow]) -> str | None:
    """If a scale tensor and its data lack only the tensor scale to form a weight, return a text that says so; otherwise
    return None."""
    for row in CONVENTIONS:
        weight = row.weight_of(name, "scales")
        if weight is None or not row.total:
            continue
        names = row.names(weight)
        data = tensors.get(names["data"])
        if data is not None and (data.dtype.name, tensors[name].dtype.name) == (row.data_type, row.scale_types[0]):
            return f"{names['data']} and {name} are {row.title}, but the file lacks {names['total']}"
    return None


def _orphan(name: str, tensors: Mapping[str, TensorRow]) -> list[Diagnostic]:
    """Describe a scale without its data, or data without its scale."""
    if (lacking := _lacking_total(name, tensors)) is not None:
        return [Diagnostic("weight-tensor", name, text=lacking)]
    for suffix in ("_global_scale", "_scale_inv", "_scale_2", "_scale", "_scales"):
        weight = name.removesuffix(suffix)
        if weight == name:
            continue
        data = next((one for one in (f"{weight}_packed", f"{weight}_blocks", weight) if one in tensors), None)
        if data is None and not weight.endswith("weight"):
            continue
        if data is None:
            return [Diagnostic("weight-tensor", name, text=f"{name} is a scale, but the file lacks {weight}")]
        have, scale = tensors[data], tensors[name]
        text = (
            f"{name} ({scale.dtype}, {scale.shape}) and {data} ({have.dtype}, {have.shape}) match no known convention"
        )
        # In other pairs, it is uncertain that one scales the other.
        known = weight.endswith("weight") or (data == f"{weight}_blocks" and _are_blocks(have))
        return [Diagnostic("weight-tensor", name, text=text, severity="error" if known else "warning")]
    for row in CONVENTIONS:
        weight_name = row.weight_of(name)
        if weight_name is None or weight_name == name or tensors[name].dtype.name != row.data_type:
            continue
        lacking = row.names(weight_name)["scales"]
        if lacking not in tensors and (not row.grouped or _are_blocks(tensors[name])):
            return [Diagnostic("weight-tensor", name, text=f"{name} has packed elements, but the file lacks {lacking}")]
    return []


def _are_blocks(tensor: TensorRow) -> bool:
    """Whether a tensor can be the data of a convention that groups them by blocks."""
    rows = (row for row in CONVENTIONS if row.grouped and row.data_type == tensor.dtype.name)
    return any(row.takes_blocks(tensor.shape) for row in rows)


# ---- arrays


def convention_row(convention: str, form: Format) -> Convention:
    """Look up the row of a convention that stores a format.

    Raises:
        InvalidValueError: the convention has no row of this format.

    >>> convention_row("modelopt", nvfp4(scales="linear")).algorithm
    'NVFP4'
    """
    rows = [row for row in CONVENTIONS if row.name == convention]
    if not rows or rows[0].read_only:
        raise InvalidValueError(f"unknown convention {given(convention)}", known_names(convention, NAMES))
    if convention == "cute":
        return rows[0]
    for row in rows:
        if (row.element, row.scale) == (form.element, form.scale) and _fits(row, form):
            return row
    stores = ", ".join(f"{row.algorithm} ({row.element}, {row.scale})" for row in rows)
    order = "linear, or 32_4_4 in torchao" if convention == "torchao" else "linear"
    ordered = str(form.order) != "linear" and _fits_linear(rows, form)
    raise InvalidValueError(
        f"{convention} does not store scales in the order {form.order}" if ordered else
        f"{convention} does not store {form}",
        {"format": form, "stores": stores, "order of scales": order},
        "scales='linear' is the order of this convention" if ordered else None,
    ).of_rule("weight-convention")  # fmt: skip


def _fits_linear(rows: Iterable[Convention], form: Format) -> bool:
    plain = form.with_(scales="linear")
    return any((r.element, r.scale) == (form.element, form.scale) and _fits(r, plain) for r in rows)


def _fits(row: Convention, form: Format) -> bool:
    orders = (row.order,) if row.order else ("linear", "32_4_4")
    block = (1, row.block)
    if form.transposed or form.padding not in ((1, 1), block) or str(form.order) not in orders:
        return False
    if form.packing != ("pairs" if form.element == "e2m1" else "bytes"):
        return False
    if row.block:
        return form.block == block and (not row.total or form.tensor_scale or row.name == "torchao")
    return row.name not in ("modelopt", "autofp8") or form.block == (None, None)


def stored_arrays(name: str, scaled: ScaledTensor, convention: str) -> dict[str, NDArray[Any]]:
    """The arrays that a convention stores for a weight, by tensor name.

    >>> made = cute.copy(np.ones((32, 64), np.float32), cute.formats.nvfp4(scales="linear"))
    >>> {name: array.shape for name, array in stored_arrays("a.weight", made, "modelopt").items()}
    {'a.weight': (32, 32), 'a.weight_scale': (32, 4), 'a.weight_scale_2': ()}
    """
    row = convention_row(convention, scaled.format)
    names, made = row.names(name), {}
    made[names["data"]] = stored_data(scaled.data, scaled.format)
    made[names["scales"]] = stored_scale_array(scaled.scales, row, scaled.format, scaled.shape)
    if scaled.tensor_scale is not None:
        made[names["total"]] = stored_total(scaled.tensor_scale, row)
    return made


def stored_data(data: NDArray[Any], form: Format) -> NDArray[Any]:
    """The elements as a file stores them: e4m3 and e5m2 in their own type, narrower elements as bytes."""
    return of_codes(data, form.element) if form.number.bits == 8 else data.view(np.uint8)


def stored_data_shape(row: Convention, form: Format, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the elements' array in a file."""
    whole = stored_shape(form, shape)
    return (*whole[:-1], whole[-1] // row.block_bytes, row.block_bytes) if row.grouped else whole


def stored_scale_array(scales: NDArray[Any], row: Convention, form: Format, shape: tuple[int, ...]) -> NDArray[Any]:
    """The scales in the type and shape that a convention stores."""
    flat = of_codes(np.ascontiguousarray(scales).reshape(-1), form.scale_dtype)
    kind = row.scale_types[0] if row.scale_types else ""
    if kind == "uint8":
        flat = flat.view(np.uint8)
    return flat.reshape(stored_scale_shape(row, form, shape))


def stored_scale_shape(row: Convention, form: Format, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the scales' array in a file."""
    M, K = shape[-2:]
    rows, columns = form.blocks(M, K)
    if str(form.order) == "linear":
        if (rows, columns) == (M, K) and row.name in ("modelopt", "autofp8", "compressed-tensors"):
            return (1,) if row.name == "compressed-tensors" else ()
        grid = -(-M // rows), -(-K // columns)
        return (*shape[:-2], *(grid[::-1] if form.transposed else grid))
    count = int(form.scale_size(*extents(shape)))
    if row.name == "torchao":  # 32 x 16 bytes are a tile of 128 x 4 scales
        return (*shape[:-2], -(-M // 128) * 32, -(-K // (4 * columns)) * 16)
    return (count,)


def stored_total(total: Any, row: Convention) -> NDArray[np.float32]:
    """The tensor scale as a convention stores it."""
    with np.errstate(divide="ignore"):
        value = np.float32(1) / np.float32(total) if row.inverse else np.float32(total)
    return np.full(row.total_shape, value, np.float32)


def read_total(weight: StoredWeight, stored: NDArray[Any]) -> np.float32:
    """Read the tensor scale of a weight from the array in its file."""
    value = np.float32(stored.reshape(-1)[0])
    if not weight.convention.inverse:
        return value
    with np.errstate(divide="ignore"):
        if weight.total_bits is not None:
            exact = np.uint32(weight.total_bits).view(np.float32)
            if np.float32(1) / exact == value:  # the file still holds its reciprocal
                return exact
        return np.float32(1) / value


def read_scales(weight: StoredWeight, stored: NDArray[Any]) -> NDArray[Any]:
    """Read the scales of a weight for a `ScaledTensor`; float16 and bfloat16 become float32, which is exact."""
    if weight.format.scale == "float32":
        return to_float32(np.ascontiguousarray(stored)).reshape(-1)
    return of_codes(codes(np.ascontiguousarray(stored)).reshape(-1), weight.format.scale_dtype)


def read_weight(weight: StoredWeight, arrays: Mapping[str, NDArray[Any]]) -> ScaledTensor:
    """Make the ScaledTensor of a weight from its arrays, given by part: 'data', 'scales', 'total'.

    Raises:
        InvalidValueError: the sizes of the arrays do not fit the format.
    """
    total = read_total(weight, arrays["total"]) if "total" in arrays else None
    stored = codes(np.ascontiguousarray(arrays["data"]))
    if weight.convention.grouped:
        stored = stored.reshape(stored_shape(weight.format, weight.shape))
    data = stored_elements(stored, weight.format)
    return ScaledTensor(data, read_scales(weight, arrays["scales"]), weight.format, total, weight.shape)
