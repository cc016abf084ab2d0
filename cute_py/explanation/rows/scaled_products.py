"""Read PyTorch's error for a scaled matrix product, and compare the operands with each recipe that the message lists.

    Invalid scaling configuration.
    - For <recipe> scaling, a and b should be <type>, scales should be <type>, scale_a should be (<rows>, <columns>) ...
    Got mat_a.dtype()=<type>, scale_a.dtype()=<type>, scale_a.size()=[...], scale_a.stride()=[...], ...

Source: PyTorch, aten/src/ATen/native/cuda/ScaledBlas.cpp. torch/_meta_registrations.py has a form without types, and
earlier versions print one recipe only, without the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.explanation.offers import Change, passes_check
from cute_py.explanation.readings import Reading
from cute_py.formats.format import Format, fp8, mxfp8, nvfp4
from cute_py.tensor.array_views import row_major

_BEGIN: Final = re.compile(r"Invalid scaling configuration\.|\bFor [\w ]{1,60} scaling, scale_a should be ")
_LONGEST: Final = 4000
"""Characters of the message before its last line; the last line has at most 800."""
_FIELD: Final = re.compile(
    r"\b(?:mat_)?(a|b|scale_a|scale_b)(?:\[0\])?\.(dtype|size|stride)\(\)=(?:[\[(]([0-9, ]{0,80})[\])]|(\w{1,40}))"
)
_NAME: Final = re.compile(r"\((?P<pair>[\w, ]{1,60})\),|(?P<one>[\w ]{1,60}) scaling,")
_TYPES: Final = re.compile(r"a and b should be (\w{1,20})[^,]{0,20}, scales should be (\w{1,20})")
_SHAPE: Final = re.compile(r"scale_([ab]) should be \(([0-9]{1,12}), ([0-9]{1,12})\)")
_COUNT: Final = re.compile(r"scale_([ab]) should have ([0-9]{1,12}) elements")
_LAYOUTS: Final = ("outer-dim-major", "near-inner-dim-major", "contiguous")
_SOURCE: Final = "PyTorch, _scaled_mm"
_SCALES: Final = ("scale_a", "scale_b")


@dataclass(frozen=True, slots=True)
class ScaleOrMatrix:
    """A tensor argument of the product, as the message prints it. An empty type, and strides of None, are unknown."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """One recipe that the message lists: the types of data and scales, and the shapes or counts and the layout of the
    scales."""

    name: str
    data: str
    scales: str
    shapes: dict[str, tuple[int, int]]
    counts: dict[str, int]
    layout: str

    @property
    def block(self) -> int:
        """Elements that share a scale in 32_4_4 order; 0 for other recipes."""
        return {"1x32": 32, "1x16": 16}.get(self.name.rpartition(" ")[2], 0)

    def takes(self, got: dict[str, ScaleOrMatrix]) -> bool:
        """Whether the types of the operands match the recipe. A type that is unknown on either side matches."""
        types = {name: one.dtype.lower() for name, one in got.items() if one.dtype}
        return all(
            kind.startswith(self.data) if name in "ab" else kind == (self.scales or kind)
            for name, kind in types.items()
        )

    def refuses(self, name: str, got: ScaleOrMatrix) -> Iterator[str]:
        """Yield the reasons why a tensor of scales does not fit the recipe."""
        count, want, shape = prod(got.shape), self.counts.get(name), self.shapes.get(name)
        if want is not None and count != want:
            difference = f"{want - count} are missing" if count < want else f"{count - want} are too many"
            yield f"{name} has {count} elements; {self.name} needs {want}: {difference}"
        if shape is not None and got.shape != shape:
            yield f"{name} has the shape {got.shape}; {self.name} needs {shape}"
        elif not self.lies_right(got):
            yield f"{name} has the strides {got.strides}; {self.name} needs it {self.layout}"

    def other_counts(self, got: dict[str, ScaleOrMatrix]) -> int:
        """How many tensors of scales have another number of elements than the recipe. A shape alone can be changed
        with `view`, so such a recipe is nearer."""
        wanted = self.counts | {name: prod(shape) for name, shape in self.shapes.items()}
        return sum(prod(got[name].shape) != count for name, count in wanted.items())

    def lies_right(self, got: ScaleOrMatrix) -> bool:
        """Whether the strides of a tensor match the recipe's layout. A mode of extent 1 may have any stride."""
        if got.strides is None or not self.layout:
            return True
        rows, columns = row_major(got.shape), row_major(got.shape[::-1])[::-1]
        want = {"outer-dim-major": columns, "near-inner-dim-major": (*got.strides[:-1], 1)}.get(self.layout, rows)
        return all(n == 1 or have == d for n, have, d in zip(got.shape, got.strides, want, strict=True))


def _recipe(text: str) -> Recipe | None:
    name, types = _NAME.match(text), _TYPES.search(text)
    if name is None:
        return None
    shapes = {f"scale_{x[1]}": (int(x[2]), int(x[3])) for x in _SHAPE.finditer(text)}
    counts = {f"scale_{x[1]}": int(x[2]) for x in _COUNT.finditer(text)}
    if "singletons" in text or "should be scalar" in text:
        counts = dict.fromkeys(_SCALES, 1)
    layout = next((word for word in _LAYOUTS if f"should be {word}" in text), "")
    data, scales = (types[1].lower(), types[2].lower()) if types else ("", "")
    return Recipe(name["pair"] or name["one"], data, scales, shapes, counts, layout) if shapes or counts else None


def read_scaled_products(text: str) -> list[Reading]:
    """Read the message, if it lists the recipes and the operands."""
    head = _BEGIN.search(text)
    begin = head.start() if head else 0
    middle = text.find("Got ", begin, begin + _LONGEST) if head else -1
    if middle < 0:
        return []
    listed, got = text[begin:middle], text[middle : middle + 800].partition("\n")[0]
    parts: dict[str, dict[str, str]] = {}
    for field in _FIELD.finditer(got):
        parts.setdefault(field[1], {})[field[2]] = field[3] if field[3] is not None else field[4]
    operands = {name: _operand(parts.get(name, {})) for name in ("a", "b", *_SCALES)}
    recipes = [made for part in re.split(r"\bFor ", listed)[1:] if (made := _recipe(part)) is not None]
    known = recipes and all(operands[name].shape for name in _SCALES)
    return [_judged(recipes, operands, (begin, middle + len(got)))] if known else []


def _operand(found: dict[str, str]) -> ScaleOrMatrix:
    strides = _numbers(found["stride"]) if "stride" in found else None
    shape = _numbers(found.get("size", ""))
    known = strides is not None and len(strides) == len(shape)
    return ScaleOrMatrix(found.get("dtype", ""), shape, strides if known else None)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _judged(recipes: list[Recipe], got: dict[str, ScaleOrMatrix], span: tuple[int, int]) -> Reading:
    kind = "Operands that torch._scaled_mm refuses"
    types = ", ".join(f"{name} {one.dtype}" for name, one in got.items() if one.dtype)
    fitting = [one for one in recipes if one.takes(got)]
    if not fitting:
        wanted = "; ".join(f"{one.name}: data {one.data}, scales {one.scales}" for one in recipes)
        wrong = Diagnostic("scale_types", text=f"no recipe has these types: {types}", source=_SOURCE)
        return Reading(kind, *span, [f"recipes: {wanted}"], [wrong])
    chosen = min(fitting, key=lambda one: (len(_broken(one, got)), one.other_counts(got)))
    if _broken(chosen, got) and (blocks := _blocks(recipes, got)):
        listed = f"the message lists {'; '.join(one.name for one in recipes)}, and no recipe for such blocks"
        wrong = Diagnostic("scale_configuration", text=f"the scales belong to {blocks}; {listed}", source=_SOURCE)
        return Reading(kind, *span, [f"{name} {got[name].shape}" for name in _SCALES], [wrong], advice=[_NEWER])
    meaning = [f"types: {types}" if types else "the text has no types, so only shapes were compared"]
    meaning.append(f"recipes with these types: {'; '.join(one.name for one in fitting)}")
    if len(fitting) > 1:
        meaning.append(f"{chosen.name} is the nearest of them")
    wrong_lines = _broken(chosen, got)
    meaning += [
        f"{name} {got[name].shape} fits {chosen.name}"
        for name in _SCALES
        if not any(line.startswith(name) for line in wrong_lines)
    ]
    if chosen.block:
        meaning.append("not judged: the order of the scales in memory, which must be 32_4_4; see formats.identify")
    missing = [] if wrong_lines else [f"the condition that failed: all numbers of the text fit {chosen.name}"]
    broken = [Diagnostic("scale_configuration", text=line, source=_SOURCE) for line in wrong_lines]
    changes = [text for text, change in _candidates(chosen, got) if passes_check(change)]
    return Reading(kind, *span, meaning, broken, changes, missing)


_NEWER: Final = (
    "use a PyTorch whose message lists BlockWise1x128 and BlockWise128x128 (CUDA 12.9 or newer); under torch.compile, "
    "compare with eager mode, because the checks of the compiler learned these recipes later"
)


def _blocks(recipes: list[Recipe], got: dict[str, ScaleOrMatrix]) -> str:
    """The blocks of 128 elements along K that the shapes of the scales fit, if no recipe has blocks; else ''."""
    rows = next((one.shapes for one in recipes if set(one.shapes) == set(_SCALES)), None)
    a, b = got["scale_a"].shape, got["scale_b"].shape
    if rows is None or len(a) != 2 or len(b) != 2 or any("1x" in one.name or "128" in one.name for one in recipes):
        return ""
    m, n = rows["scale_a"][0], rows["scale_b"][1]
    if a[0] != m or a[1] < 2 or b[0] != a[1]:
        return ""
    if b[1] == n:
        return "blocks of 1 x 128 of A and of B"
    return "blocks of 1 x 128 of A and of 128 x 128 of B" if b[1] == -(-n // 128) else ""


def _broken(recipe: Recipe, got: dict[str, ScaleOrMatrix]) -> list[str]:
    return [line for name in _SCALES for line in recipe.refuses(name, got[name])]


def _candidates(recipe: Recipe, got: dict[str, ScaleOrMatrix]) -> Iterator[tuple[str, Change]]:
    """Yield (text of a change, function that makes the changed object). The function returns None if the object does
    not have the number of scales, the shape and the strides of the recipe."""
    for name in _SCALES:
        one, want = got[name], recipe.counts.get(name)
        if recipe.block and want is not None and len(one.shape) == 2 and prod(one.shape) != want:
            form = mxfp8() if recipe.block == 32 else nvfp4()
            rows, columns = one.shape[0], one.shape[1] * recipe.block
            text = (
                f"{name}: cute.copy(scaled, formats.{form!r}).scales has {want} elements, with padding; scaled is "
                f"formats.ScaledTensor(data, {name}, formats.{form.with_(scales='linear')!r})"
            )
            yield text, partial(_if, form, int(form.scale_size(rows, columns)) == want)
        shape = recipe.shapes.get(name)
        if shape is not None and len(one.shape) == 1 and one.strides in ((1,), None) and prod(shape) == one.shape[0]:
            viewed = replace(one, shape=shape, strides=row_major(shape))
            yield f"{name}.view{shape}", partial(_if, viewed, not any(recipe.refuses(name, viewed)))
        turned = replace(one, shape=one.shape[::-1], strides=one.strides and one.strides[::-1])
        if turned.shape != one.shape and recipe.shapes.get(name) == turned.shape:
            yield f"{name}.t(), with the shape {turned.shape}", partial(_if, turned, recipe.lies_right(turned))
        if recipe.layout == "outer-dim-major" and recipe.shapes.get(name) == one.shape and not recipe.lies_right(one):
            form = fp8((1, 128), scales="mn_major")
            layout = form.scale_layout(one.shape[0], one.shape[1] * 128)
            strides = tuple(int(layout((i, j * 128))) for i, j in ((1, 0), (0, 1)))
            text = f"{name}: formats.{form!r} keeps these scales with stride 1 along M"
            yield text, partial(_if, form, recipe.lies_right(replace(one, strides=strides)))


def _if(made: Format | ScaleOrMatrix, holds: bool) -> Format | ScaleOrMatrix | None:
    return made if holds else None
