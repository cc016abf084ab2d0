"""The words for coordinate tensors and layouts with basis strides.

They say what the iterator is, what each stride means and why it has the value that it has, and which logical
coordinate gives which element. Of more than `MOST_MODES` modes the first ones are explained and the others counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cute_py.arith_tuple.arith_tuple import ArithTuple
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.arith_tuple.ratio import Ratio
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int
from cute_py.tensor.tensor import Tensor

Path = tuple[int, ...]

MOST_MODES: Final = 32
"""Modes that are explained one by one. A coordinate of more is longer than a line, and each line would have one."""


def is_coordinates(thing: Any) -> bool:
    """A tensor of implicit coordinates."""
    return isinstance(thing, Tensor) and isinstance(thing.engine, ArithTupleIterator)


def is_counting(thing: Any) -> bool:
    """A tensor of implicit integers."""
    return isinstance(thing, Tensor) and isinstance(thing.engine, CountingIterator)


def is_basis_layout(thing: Any) -> bool:
    """A layout of which some stride is a basis element."""
    return isinstance(thing, Layout) and any(axis is not None for _, _, axis, _ in _flat_modes(thing))


def _flat_modes(layout: Layout) -> list[tuple[Path, Any, Path | None, Any]]:
    """(path of the mode, size, codomain axis or None, step) of every leaf; a step without axis is an integer's."""
    out: list[tuple[Path, Any, Path | None, Any]] = []

    def walk(shape: Any, stride: Any, path: Path) -> None:
        if isinstance(shape, tuple):
            for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
                walk(s, d, (*path, i))
        elif getattr(stride, "modes", None):
            out.append((path, shape, tuple(stride.modes), stride.value))
        else:
            out.append((path, shape, None, stride))

    walk(layout.shape, layout.stride, ())
    return out


def _dotted(path: Path) -> str:
    return ".".join(map(str, path)) if path else "0"


def _plain(value: Any) -> str:
    """A number without the underscore of static ones."""
    if isinstance(value, (tuple, ArithTuple)):
        return "(" + ",".join(map(_plain, value)) + ")"
    if isinstance(value, Int):
        return str(int(value))
    if isinstance(value, Ratio):
        return f"{value.numerator}/{value.denominator}"
    return str(value)


def _known(*numbers: Any) -> bool:
    return all(isinstance(n, int) for n in numbers)


def _stride_text(axis: Path | None, step: Any) -> str:
    return str(step) + "".join([f"@{i}" for i in reversed(axis or ())])


def _meaning(size: Any, axis: Path | None, step: Any, scalar: str) -> str:
    """What one step along a mode does."""
    if _known(size) and size == 1:
        return "a single index, so it never moves"
    if isinstance(step, int) and step == 0:
        return "a step moves nowhere: every index gives the same element"
    where = scalar if axis is None else f"coordinate mode {_dotted(axis)}"
    if isinstance(step, Ratio):
        return f"{step.denominator} steps add {step.numerator} to {where} (between them, rounded toward zero)"
    if _known(step) and step < 0:
        return f"a step takes {-int(step)} from {where}"
    return f"a step adds {_plain(step)} to {where}"


def _reason(mode: tuple[Path, Any, Path | None, Any], flat: list[tuple[Path, Any, Path | None, Any]]) -> str:
    """Why the step is as large as it is: what the finer modes of the same axis cover."""
    _, size, axis, step = mode
    if not _known(size, step) or size == 1 or step == 0:
        return ""
    same_axis = [m for m in flat if m[2] == axis and _known(m[1], m[3]) and m[1] > 1]
    finer = [m for m in same_axis if 0 < abs(m[3]) < abs(step)]
    width = abs(int(step))
    if not finer:
        return "" if width == 1 else f"only every one in {width} is reached, none of those between"
    covered = 1 + sum((int(m[1]) - 1) * abs(int(m[3])) for m in finer)
    names = " and ".join([f"mode {_dotted(m[0])} ({_plain(m[1])} x {_stride_text(m[2], m[3])})" for m in finer])
    verb = "covers" if len(finer) == 1 else "cover"
    if covered == width:
        return f"{names} {verb} {covered} there, so a step goes to the next block of {width}"
    if covered < width:
        return f"{names} {verb} {covered} there, so a step leaves {width - covered} out"
    return f"{names} {verb} {covered} there, so blocks overlap by {covered - width}"


def mode_lines(layout: Layout, scalar: str) -> list[str]:
    """One mode a line: size, stride, what a step does; then why it is as large as it is."""
    flat = _flat_modes(layout)
    explained = flat[:MOST_MODES]
    width = max((len(_dotted(path)) for path, *_ in explained), default=0)
    lines = []
    for mode in explained:
        path, size, axis, step = mode
        name = f"  mode {_dotted(path):<{width}} : "
        meaning = _meaning(size, axis, step, scalar)
        lines.append(f"{name}size {_plain(size)}, stride {_stride_text(axis, step)}: {meaning}")
        reason = _reason(mode, flat)
        if reason:
            lines.append(" " * len(name) + reason)
    if len(flat) > len(explained):
        lines.append(f"  ... and {len(flat) - len(explained)} modes more")
    return lines


def _coordinate(shape: Any, chosen: dict[Path, int], path: Path = ()) -> Any:
    """The natural coordinate with given indices at some leaves, 0 elsewhere."""
    if isinstance(shape, tuple):
        return tuple([_coordinate(s, chosen, (*path, i)) for i, s in enumerate(shape)])
    return chosen.get(path, 0)


def _samples(layout: Layout) -> list[tuple[str, Any]]:
    """(name, coordinate): the first element, one step along each mode that moves, the last element."""
    flat = _flat_modes(layout)
    samples = [("first", _coordinate(layout.shape, {}))]
    for path, size, _, _ in flat:
        if not _known(size) or size > 1:
            samples.append((f"one step in mode {_dotted(path)}", _coordinate(layout.shape, {path: 1})))
    if flat and all(_known(size) and size > 0 for _, size, _, _ in flat):
        last = {path: int(size) - 1 for path, size, _, _ in flat}
        samples.append(("last", _coordinate(layout.shape, last)))
    return samples


def sample_lines(layout: Layout, element: Callable[[Any], Any]) -> list[str]:
    """The first element, one step along each mode, the last element."""
    if _has_many_modes(layout):
        return [f"  left out: a coordinate has more than {MOST_MODES} numbers"]
    samples = _samples(layout)
    width = max(len(name) for name, _ in samples)
    places = max(len(_plain(c)) for _, c in samples)
    return [f"  {name:<{width}} : {_plain(c):<{places}} -> {_plain(element(c))}" for name, c in samples]


def _has_many_modes(layout: Layout) -> bool:
    return len(_flat_modes(layout)) > MOST_MODES


def _formula(layout: Layout, start: Any) -> list[str]:
    """One line for each codomain axis: where it starts and what each mode adds."""
    flat = _flat_modes(layout)
    axes: dict[Path, list[str]] = {}
    for path, size, axis, step in flat:
        if axis is None or (_known(size) and size == 1):
            continue
        factor = "" if _known(step) and step == 1 else f"{_plain(step)} * "
        axes.setdefault(axis, []).append(f"{factor}c{_dotted(path)}")
    lines = []
    for axis in _leaf_paths(start):
        value = start
        for i in axis:
            value = value[i]
        terms = list(axes.get(axis, []))
        if not (_known(value) and value == 0) or not terms:
            terms.insert(0, _plain(value))
        lines.append(f"  coordinate mode {_dotted(axis)} = {' + '.join(terms)}")
    return lines


def _leaf_paths(coordinate: Any, path: Path = ()) -> list[Path]:
    if isinstance(coordinate, ArithTuple):
        return [p for i, x in enumerate(coordinate) for p in _leaf_paths(x, (*path, i))]
    return [path]


_INTEGERS = "A tensor of implicit integers. Nothing is stored: an element is computed from where it is."


def coordinates(tensor: Any) -> str:
    """A tensor of coordinates: its iterator, its strides and why, samples, a formula for each coordinate."""
    layout = domain_of(tensor.layout)
    start = tensor.engine.coord
    out = [str(tensor), ""]
    if isinstance(start, ArithTuple):
        count = len(_leaf_paths(start))
        modes = f"{count} mode" if count == 1 else f"{count} modes"
        out.append(f"A tensor of coordinates of {modes}. Nothing is stored: an element is computed from where it is.")
        out.append("To a TMA instruction such an element says where the box lies; its mode 0 is the contiguous one.")
    else:
        out.append(_INTEGERS)
    out += ["", f"The iterator {tensor.engine}"]
    out.append(f"  stands at {_plain(start)}; an element is this plus the value of the layout at its coordinate.")
    if not all(_is_zero(_at(start, p)) for p in _leaf_paths(start)):
        out.append("  It is not the origin: the tensor begins there, as a slice or a tile of a larger one does.")
    out.append("  Numbers with an underscore are known at compile time, the others at run time.")
    out += _through(tensor.layout)
    out += ["", f"The strides {tree_text(layout)}", *mode_lines(layout, "the integer")]
    out += ["", "Logical coordinate -> element", *sample_lines(layout, tensor)]
    if isinstance(start, ArithTuple) and not isinstance(tensor.layout, ComposedLayout) and not _has_many_modes(layout):
        out += ["", "With cI the index in mode I", *_formula(layout, tensor(_coordinate(layout.shape, {})))]
    return "\n".join(out)


def _through(layout: Any) -> list[str]:
    """What stands between the strides and the iterator, if anything does."""
    if not isinstance(layout, ComposedLayout):
        return []
    return ["", f"{layout.outer} comes after the strides: it gets {layout.offset} + their sum, and gives the offset."]


def _at(value: Any, path: Path) -> Any:
    for i in path:
        value = value[i]
    return value


def _is_zero(value: Any) -> bool:
    return isinstance(value, int) and value == 0


def tree_text(layout: Layout) -> str:
    """The strides as printed."""
    return str(layout).split(":", 1)[1]


def counting(tensor: Any) -> str:
    """A tensor of implicit integers."""
    layout = domain_of(tensor.layout)
    out = [str(tensor), "", _INTEGERS]
    out += ["", f"The iterator {tensor.engine}", f"  counts from {tensor.engine.value} on, in {tensor.engine.dtype}."]
    out += _through(tensor.layout)
    out += ["", f"The strides {tree_text(layout)}", *mode_lines(layout, "the integer")]
    out += ["", "Logical coordinate -> element", *sample_lines(layout, tensor)]
    return "\n".join(out)


def basis_layout(layout: Any) -> str:
    """A layout whose values are coordinates."""
    out = [str(layout), "", "A layout whose values are coordinates: its strides are basis elements, `value@mode`."]
    out += ["", f"The strides {tree_text(layout)}", *mode_lines(layout, "the integer")]
    out += ["", "Logical coordinate -> value", *sample_lines(layout, layout)]
    return "\n".join(out)
