"""The text of every kernel for 300 fixed copies, of every form of instruction, and of what is exported.

Identifiers are numbered by their first appearance and comments left out, so that a renamed variable is no difference.
The planner of GPU copies is no public name: it is found by its name and parameters, wherever it lies.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import cute_py
from cute_py import tma, tmem
from tests.calls.described import normalised, refused
from tests.calls.objects import im2col_atom, load_atom, tile_atom, window_operation

PLANS = 300
FORM_TEXTS = 150
"""Most texts of one form; a form with more combinations of modifiers gives a seeded choice of them."""

_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|[A-Za-z_]\w*|\d[\w.]*|\s+|.', re.DOTALL)
_KEPT = set(
    re.findall(
        r"\w+",
        """alignas asm auto bool break case char const constexpr continue do double else enum extern false float for if
        inline int long namespace operator return short signed sizeof static struct switch template true typedef
        typename uint16_t uint32_t uint64_t uint8_t int32_t int64_t union unsigned using void volatile while
        blockDim blockIdx gridDim threadIdx x y z include pragma unroll define ifdef ifndef endif""",
    )
)
"""Tokens that are no identifiers of a kernel's own."""


def anonymous(text: str) -> str:
    """CUDA C++ with its identifiers numbered, without comments and with single blanks."""
    numbers: dict[str, str] = {}
    found = []
    for token in _TOKENS.findall(text):
        if token.isspace():
            found.append(" ")
        elif token.startswith(("//", "/*")):
            continue
        elif (token[0].isalpha() or token[0] == "_") and token not in _KEPT and not token.startswith("__"):
            found.append(numbers.setdefault(token, f"id{len(numbers)}"))
        else:
            found.append(token)
    return " ".join("".join(found).split())


@functools.cache
def _modules() -> tuple[Any, ...]:
    names = [m.name for m in pkgutil.walk_packages(cute_py.__path__, "cute_py.") if not m.name.endswith("__main__")]
    return tuple(importlib.import_module(name) for name in names)


@functools.cache
def found(name: str, *parameters: str) -> Any:
    """The function or class of this name whose parameters include these."""
    for module in _modules():
        value = vars(module).get(name)
        own = callable(value) and getattr(value, "__module__", "") == module.__name__
        if own and set(parameters) <= set(inspect.signature(value).parameters):
            return value
    raise LookupError(f"the package has no {name}({', '.join(parameters)})")


def _said(make: Callable[[], str]) -> str:
    try:
        return normalised(make())
    except Exception as error:
        return refused(error)


def _view(dice: random.Random, shape: tuple[int, ...], order: list[int], width: int, at: int) -> Any:
    """An array on the device, as its address, shape and strides; its modes in this order, innermost first."""
    strides, step = [0] * len(shape), 1
    for place, mode in enumerate(order):
        strides[mode] = step
        step *= shape[mode]
        if place == 0 and dice.random() < 0.3:
            step += 16 * dice.randint(1, 4) // width if 16 % width == 0 else 0
    dtype = cute_py.make_gmem_ptr(0, {1: "uint8", 2: "float16", 4: "float32", 8: "float64"}[width]).dtype
    return found("ArrayView", "address", "shape")(at, shape, tuple(strides), dtype, 0, None)


def plans() -> Iterator[tuple[str, str]]:
    """Label and text of the launches of each copy."""
    refine = found("refine", "source", "destination")
    box_launches = found("box_launches", "refinement", "addresses", "multiprocessors")
    tuning = found("Tuning", "form", "stages")
    for number in range(PLANS):
        dice = random.Random(f"plan/{number}")
        rank = dice.randint(1, 4)
        shape = tuple(dice.choice((3, 8, 32, 64, 100, 256, 1024)) for _ in range(rank))
        order = list(range(rank))[::-1]
        turned = dice.sample(order, rank) if dice.random() < 0.4 else order
        width = dice.choice((1, 2, 4, 8))
        a = _view(dice, shape, turned, width, 0x7F0000000000 + dice.choice((0, 0, 0, 2, 8, 16)) // width * width)
        b = _view(dice, shape, order, width, 0x7F8000000000)
        chosen = dice.choice((None, None, tuning(form="ring"), tuning(form="once", per_block=2), tuning(hints=True)))

        def made(a: Any = a, b: Any = b, chosen: Any = chosen) -> str:
            parts = []
            refinement = refine(*(cute_py.Layout(view.shape, view.strides) for view in (a, b)))
            for plan in box_launches(refinement, a.element_bytes, (a.address, b.address), 132, chosen):
                kernel = plan.kernel
                parts.append(
                    f"{plan.form} {plan.blocks} blocks {plan.bytes} bytes {plan.tail} {plan.maps!r} {plan.why}"
                )
                parts.append(
                    f"{kernel.threads} threads {kernel.shared_bytes} shared {kernel.cluster} {kernel.parameters}"
                )
                parts.append(anonymous(kernel.text))
            return "\n".join(parts)

        yield f"plan {number}", _said(made)


def forms() -> Iterator[tuple[str, str]]:
    """Every form with its modifiers, and the fixed texts of the tables."""
    for form in tma.FORMS:
        slots = [[(s.name, c) for c in (*((None,) if s.optional else ()), *s.choices)] for s in form.slots]
        combinations = list(itertools.product(*slots))
        if len(combinations) > FORM_TEXTS:
            combinations = random.Random(form.name).sample(combinations, FORM_TEXTS)
        for combination in combinations:
            modifiers = {name: choice for name, choice in combination if choice is not None}
            label = f"ptx {form.name} {' '.join(f'{k}={v}' for k, v in modifiers.items())}"
            yield label, _said(lambda name=form.name, modifiers=modifiers: tma.ptx(name, **modifiers))
    for variant in tma.VARIANTS:
        yield f"variant {variant.name}", variant.text
    for entry in tma.ENTRY_POINTS:
        yield f"entry point {entry.name}", _said(lambda entry=entry: repr((entry.asm, entry.parameters)))
    for rank in range(1, 6):
        for arch in ("sm_90a", "sm_100a"):
            yield f"rebind {rank} {arch}", _said(lambda rank=rank, arch=arch: tma.rebind_ptx(rank, arch))


def exports() -> Iterator[tuple[str, str]]:
    """Exports, stages and kernels of a few copies."""
    shapes = {
        "load": tile_atom("load", (128, 64), "bf16", swizzle=3),
        "split load": tile_atom("load", (128, 128), "bf16", swizzle=3),
        "multicast": tile_atom("load", (64, 64), "float32", multicast=2),
        "3d": tile_atom("load", (4, 8, 64), "uint8"),
        "1d": tile_atom("load", (64,), "int32").with_(None, cache_hint=1),
        "im2col": window_operation((1, 2)),
        "gather": tile_atom("load", (4, 64), "float16", op="SM100_TMA_LOAD_2D_GATHER4", arch="sm_100a"),
        "store": tile_atom("store", (64, 64), "float32"),
        "reduce": tile_atom("reduce", (64, 64), "float16", reduce_kind="max"),
    }
    request = tma.TensorMapTiled(9, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    atoms = {
        "an atom": load_atom(),
        "a store": load_atom("SM90_TMA_STORE"),
        "a multicast": load_atom("SM90_TMA_LOAD_MULTICAST", 64, 64, "128B", 2),
        "im2col atom": im2col_atom(),
    }
    for name, what in {**shapes, **atoms}.items():
        for kind in ("cu", "ptx", "c", "cute", "triton"):
            for arch in ("sm_90a", "sm_100a", "sm_80"):
                given = None if name in atoms else request

                def exported(what: Any = what, kind: str = kind, arch: str = arch, given: Any = given) -> str:
                    text: str = tma.export(what, kind, request=given, arch=arch)
                    return anonymous(text) if kind in ("cu", "cute") else text

                yield f"export {name} {kind} {arch}", _said(exported)
        for arch in ("sm_90a", "sm_100a", "sm_80"):
            yield f"lower {name} {arch}", _said(lambda what=what, arch=arch: str(tma.lower(what, arch=arch)))
    for columns, group in itertools.product((32, 64), (1, 2)):
        copy = tmem.demonstration_copy(columns, group)
        label = f"{columns} columns, cta_group::{group}"
        yield f"tmem kernel {label}", _said(lambda copy=copy: anonymous(tmem.emit_kernel(copy)))
        yield f"tmem cuda {label}", _said(lambda copy=copy: anonymous(tmem.emit_cuda(copy)))
        yield f"tmem tirx {label}", _said(lambda copy=copy: tmem.emit_tirx(copy))


def texts() -> dict[str, str]:
    """Label -> text, of all of it."""
    return dict(itertools.chain(plans(), forms(), exports()))
