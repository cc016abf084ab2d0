"""Describe checkpoints: the format of each weight, the order of its scales, whether that order is certain, and
errors."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cute_py.checkpoints.convert import CHECKSUMS, FLOATS
from cute_py.checkpoints.source import CONFIGURATIONS, Checkpoint, open_checkpoint
from cute_py.diagnostics import Diagnostic, Scope
from cute_py.errors import CuteError, counted, given, unless_refused
from cute_py.formats.buffers import check
from cute_py.formats.known_orders import CANDIDATES, identify
from cute_py.formats.numbers import codes
from cute_py.formats.scaled_tensor import ScaledTensor, quantized, scale_places, stored_scales
from cute_py.formats.stored_weights import FITTING, StoredWeight, orders_that_fit, read_weight
from cute_py.mesh.stored_tensors import StoredTensor

SHOWN: Final = 12
"""Maximum number of other tensors that are listed by name."""
IN_A_FILE: Final = ("address",)
"""Rules of `formats.check` that a file can't break, because an array gets its address when it is loaded."""
_BROKEN: Final = "the weight has errors"
NOT_A_NUMBER: Final = ("nan_scale", "nan_element")
"""Rules of `formats.check` that are warnings there, but errors in a weight, because each product with NaN is NaN."""


@dataclass(frozen=True, slots=True)
class DescribedWeight:
    """A quantised weight, the name of the order of its scales, whether that order is certain, and its diagnostics."""

    weight: StoredWeight
    order: str
    certain: bool
    found: tuple[Diagnostic, ...]
    left: str = ""
    """The reason why the weight was not compared with an original checkpoint; "" if it was, or there is none."""

    def __str__(self) -> str:
        weight = self.weight
        size = " x ".join(map(str, weight.shape))
        publishers = " or ".join(row.title for row in (weight.convention, *weight.alike))
        lines = [
            f"{weight.name}  {size}",
            f"  format  : {weight.format}",
            f"  stored  : {publishers}: {', '.join(weight.tensors.values())}",
            f"  order   : {self.order}",
        ]
        lines += [f"  {'wrong' if one.severity == 'error' else 'warning':8}: {one.message}" for one in self.found]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class CheckpointDescription:
    """Description of a checkpoint.

    Attributes: `weights`, the quantised weights; `others`, the type and shape of each other tensor, by name;
        `problems`, diagnostics that belong to no weight; `scope`, what was checked.
    """

    title: str
    weights: tuple[DescribedWeight, ...]
    others: Mapping[str, str]
    problems: tuple[Diagnostic, ...]
    scope: Scope = field(default_factory=Scope)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """All errors, without warnings."""
        every = [*self.problems, *(one for weight in self.weights for one in weight.found)]
        return tuple(one for one in every if one.severity == "error")

    def __str__(self) -> str:
        lines = [self.title, ""]
        for weight in self.weights:
            lines += [str(weight), ""]
        if self.others:
            lines.append(f"{counted(len(self.others), 'tensor')} without scales")
            shown = list(self.others.items())[:SHOWN]
            lines += [f"  {name}  {text}" for name, text in shown]
            if len(self.others) > len(shown):
                kinds = Counter(text.split()[0] for text in list(self.others.values())[SHOWN:])
                lines.append(f"  and {', '.join(f'{count} of {kind}' for kind, count in kinds.items())}")
            lines.append("")
        lines += [f"{'wrong' if one.severity == 'error' else one.severity}: {one.message}" for one in self.problems]
        return "\n".join([*lines, str(self.scope)])


def describe_checkpoint(
    path: str | os.PathLike[str], reference: str | os.PathLike[str] | None = None
) -> CheckpointDescription:
    """Describe each tensor of a checkpoint: its role, the order of its scales, and its faults.

    Args:
        path: a .safetensors file, an index, or a folder. reference: the original checkpoint; its values determine the
            order of the scales.
    Raises:
        FileFormatError: a file can't be read.
    """
    checkpoint = open_checkpoint(path)
    original = None if reference is None else open_checkpoint(reference)
    rows = [_described(weight, checkpoint, original) for weight in checkpoint.weights.weights]
    others = {
        name: f"{checkpoint.tensors[name].dtype.name} {'x'.join(map(str, checkpoint.tensors[name].shape)) or 'scalar'}"
        for name in checkpoint.weights.others
    }
    sums, judged = _check_sums(checkpoint)
    files = counted(len(checkpoint.files), "file")
    title = f"{path}: {files}, {counted(len(checkpoint.tensors), 'tensor')}, {counted(len(rows), 'weight')} in a format"
    unsure = [row.weight.name for row in rows if not row.certain]
    left = [f"order of scales: {counted(len(unsure), 'weight')}; several orders have this size"] if unsure else []
    if reference is None and any(len(row.weight.shape) == 2 for row in rows if not row.certain):
        left[0] += "; the original checkpoint decides for matrices (--reference ORIGINAL)"
    doubtful = [row for row in rows if row.weight.alike]
    if doubtful:
        fit = f"{counted(len(doubtful), 'weight')}; the tensors fit several"
        left.append(f"publisher: {fit}, and {' and '.join(CONFIGURATIONS)} name none")
    if not judged:
        left.append(f"checksums: no {CHECKSUMS}")
    reasons = Counter(row.left for row in rows) if reference is not None else Counter[str]()
    compared = reasons.pop("", 0)
    left += [f"comparison with the original: {counted(n, 'weight')}; {why}" for why, n in reasons.items()]
    scope = ["names", "types", "shapes", *(["scales", "padding"] if rows else []), *(["checksums"] if judged else [])]
    scope += [f"elements and scales compared with the original: {counted(compared, 'weight')}"] if compared else []
    problems = (*checkpoint.weights.problems, *sums)
    return CheckpointDescription(title, tuple(rows), others, problems, Scope(tuple(scope), tuple(left)))


def _described(weight: StoredWeight, checkpoint: Checkpoint, original: Checkpoint | None) -> DescribedWeight:
    tensors = {part: checkpoint.tensors[name] for part, name in weight.tensors.items()}
    if weight.problems:
        return DescribedWeight(
            weight, f"{weight.format.order}, as {weight.convention.name} specifies", True, weight.problems, _BROKEN
        )
    if 0 in weight.shape:
        return DescribedWeight(weight, "no scales, because the weight has no elements", True, (), "no elements")
    try:
        scaled = read_weight(weight, {part: _array(tensor) for part, tensor in tensors.items()})
        grid = tensors["scales"].shape
        scales = scaled.scales.reshape(grid) if len(grid) == 2 else scaled.scales
        found = list(check(scaled.data, scales, weight.format, weight.shape))
    except CuteError as problem:
        wrong = Diagnostic("weight-shape", weight.name, text=problem.headline)
        return DescribedWeight(weight, str(weight.format.order), True, (wrong,), _BROKEN)
    found = [
        replace(one, severity="error") if one.rule in NOT_A_NUMBER else one
        for one in found
        if one.rule not in IN_A_FILE
    ]
    found += _check_total(weight, scaled)
    order = _order(weight, scaled, original)
    return DescribedWeight(weight, order.text, order.certain, (*order.found, *found), order.left)


def _check_total(weight: StoredWeight, scaled: ScaledTensor) -> list[Diagnostic]:
    """Report a tensor scale that is not positive and finite; no quantiser produces one."""
    total = scaled.tensor_scale
    if total is None or 0 < total < np.inf:
        return []
    inverse = ", the reciprocal of the stored number" if weight.convention.inverse else ""
    text = f"{weight.tensors['total']}: the tensor scale is {total}{inverse}; must be positive and finite"
    return [Diagnostic("weight-total", weight.name, text=text)]


def _array(tensor: StoredTensor) -> NDArray[Any]:
    return tensor.mapped().reshape(tensor.shape)


class _Order(NamedTuple):
    """A description of the order of the scales, whether it is certain, what an original checkpoint contradicts, and the
    reason why the weight was not compared with it; "" if it was, or if there is no original."""

    text: str
    certain: bool
    found: tuple[Diagnostic, ...] = ()
    left: str = ""


def _order(weight: StoredWeight, scaled: ScaledTensor, original: Checkpoint | None) -> _Order:
    form, name = weight.format, str(weight.format.order)
    says = f"{name}, as {weight.convention.name} specifies"
    left = "" if original is None else _incomparable(weight, original)
    if original is not None and not left:
        matched = _matched(weight, scaled, original.tensors[weight.name])
        if matched is not None:
            return matched
        left = "no order reproduces the original's scales"
    if form.block == (None, None):
        return _Order("one scale", True, left=left)
    count = int(scaled.scales.size * scaled.scales.dtype.itemsize // form.scale_dtype.numpy.itemsize)
    fits = orders_that_fit(form, weight.shape, count)
    places = scale_places(form, weight.shape)
    others = [one for one in fits if not np.array_equal(scale_places(form.with_(scales=one), weight.shape), places)]
    if name not in FITTING or others:
        more = f"; the same size as {', '.join(others)}" if others else ""
        return _Order(f"{says}{more}", False, left=left)
    return _Order(f"{says}; no other common order has {count} scales", True, left=left)


def _incomparable(weight: StoredWeight, original: Checkpoint) -> str:
    """The reason why a weight can't be compared with an original checkpoint; "" if it can."""
    tensor = original.tensors.get(weight.name)
    if tensor is None:
        return "the original has no tensor of this name"
    if tensor.shape != weight.shape:
        return f"the original has the shape {tensor.shape}"
    if tensor.dtype.name not in FLOATS:
        return f"the original has elements of {tensor.dtype.name}"
    if len(weight.shape) != 2 or weight.format.axis != -1 or weight.format.block[0] != 1:
        return "only matrices in blocks of one row are compared"
    return ""


def _matched(weight: StoredWeight, scaled: ScaledTensor, tensor: StoredTensor) -> _Order | None:
    """Find the order that makes the scales equal to those computed from the original; None if no order matches."""
    form, name = weight.format, str(weight.format.order)
    largest = None
    if scaled.tensor_scale is not None:
        largest = float(scaled.tensor_scale) * 448.0 * 6.0
    made = quantized(_array(tensor), form.with_(scales="linear"), largest=largest)
    equal = float((_scale_codes(scaled) == _scale_codes(made)).mean())
    if equal > 0.9:
        share = "all" if equal == 1.0 else f"{equal:.1%} of the"
        text = f"{name}: {share} scales equal the reference in this order"
        return _Order(text, True, tuple(_differences(scaled, made)))
    stored, orders = codes(scaled.scales.reshape(-1)), tuple(one for one in CANDIDATES if one != name)
    shape = weight.shape[0], weight.shape[1]
    matches = unless_refused(lambda: identify(stored, codes(made.scales), shape, orders=orders)) or []
    best = next((m for m in matches if not m.transposed), None)
    if best is None or best.equal < 0.9:
        return None
    text = f"the scales are in the order {best.order}, but {weight.convention.name} specifies {name}: {best.text}"
    wrong = Diagnostic("scale-order", weight.name, text=text, fixes=(f"cute-py convert --scales '{best.order}'",))
    return _Order(f"{best.order}, found by the reference", True, (wrong,), "its scales are in another order")


def _scale_codes(scaled: ScaledTensor) -> NDArray[np.generic]:
    """The codes of the scales as a grid of blocks; codes of NaN are equal, numbers may not be."""
    grid: NDArray[np.generic] = codes(stored_scales(scaled.scales, scaled.format))[
        scale_places(scaled.format, scaled.shape)
    ]
    return grid


def _differences(scaled: ScaledTensor, made: ScaledTensor) -> Iterator[Diagnostic]:
    """Yield warnings of scales, and of elements below equal scales, that differ from those of the original. They are no
    errors, because calibration chooses other numbers than rounding to nearest does."""
    scales = _scale_codes(scaled) != _scale_codes(made)
    M, K = scaled.shape[-2:]
    rows, columns = scaled.format.blocks(M, K)
    elements = codes(np.ascontiguousarray(scaled.elements())) != codes(np.ascontiguousarray(made.elements()))
    elements &= ~scales[..., np.arange(M) // rows, :][..., np.arange(K) // columns]
    for what, wrong, place in (("scale", scales, "(row, block)"), ("element", elements, "(row, column)")):
        if wrong.any():
            differ = f"{counted(int(wrong.sum()), what)} {'differs' if wrong.sum() == 1 else 'differ'}"
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            text = f"{differ} from the reference, rounded to nearest; the first is at {place} {first}"
            yield Diagnostic(f"reference-{what}", text=text, severity="warning")


def _check_sums(checkpoint: Checkpoint) -> tuple[list[Diagnostic], bool]:
    """Report tensors whose bytes do not match their checksum; also return whether the checkpoint has checksums."""
    path = checkpoint.folder / CHECKSUMS
    if not path.is_file():
        return [], False
    try:
        wanted = dict(json.loads(path.read_text())["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return [Diagnostic("checksum", text=f"{path}: the file is not JSON with checksums of tensors")], False
    found = []
    for name, tensor in checkpoint.tensors.items():
        if name not in wanted:
            found.append(Diagnostic("checksum", name, text=f"{given(name)} has no checksum in {CHECKSUMS}"))
        elif sha256(tensor) != wanted[name]:
            found.append(Diagnostic("checksum", name, text=f"{given(name)}: the bytes do not match the checksum"))
    return found, True


def sha256(tensor: StoredTensor) -> str:
    """Return the SHA-256 of a tensor's bytes, in hexadecimal."""
    found = hashlib.sha256()
    for at in range(0, tensor.nbytes, 1 << 22):
        found.update(tensor.part(at, min(1 << 22, tensor.nbytes - at)).data)
    return found.hexdigest()
