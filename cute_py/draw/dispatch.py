"""The function `draw(thing)`, which draws a picture of any object that cute_py can draw."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_py.argument_checks import PARSE_READS
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.tiled_copy import TiledCopy
from cute_py.atom.tiled_mma import TiledMma
from cute_py.draw.bit_map import draw_descriptor
from cute_py.draw.boxes import draw_boxes
from cute_py.draw.im2col_window import draw_im2col
from cute_py.draw.layouts import AnyLayout, draw_compare, draw_layout, draw_tensor
from cute_py.draw.picture import Picture
from cute_py.draw.shards import draw_format, draw_shards
from cute_py.draw.shared_memory import draw_swizzle
from cute_py.draw.threads import draw_copy, draw_mma, draw_tv
from cute_py.dtypes import DTypeLike
from cute_py.errors import InvalidTypeError, given, shortened
from cute_py.formats.format import Format
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, coprofile
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.descriptor.request import TensorMap

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from cute_py.copies.plan import CopyPlan
    from cute_py.formats.scaled_tensor import ScaledTensor
    from cute_py.machine.judgement.timeline import RunTimeline
    from cute_py.machine.tensor_memory.umma_operands import UmmaOperands
    from cute_py.mesh.sharded_layout import ShardedLayout
    from cute_py.notation.triton import TritonLayout
    from cute_py.tma.simulate.pipeline import Timeline
    from cute_py.tmem.copy_request import CopyAsync
    from cute_py.tmem.demonstration import Demonstration

_Layouts: TypeAlias = "Swizzle | AnyLayout | Sequence[AnyLayout] | Tensor | ShardedLayout"
_Copies: TypeAlias = "TmaAtom | Im2colAtom | CopyAtom | TiledCopy | CopyAsync | CopyPlan | Demonstration"
_Bytes: TypeAlias = "TensorMap | bytes | bytearray | memoryview | NDArray[numpy.integer]"
Drawable: TypeAlias = (
    "Picture | _Layouts | _Copies | _Bytes | MmaAtom | TiledMma | UmmaOperands | Timeline | RunTimeline | Format | "
    "ScaledTensor | TritonLayout"
)
"""An object that has a picture."""
Option: TypeAlias = int | str | tuple[int, ...] | Sequence[int] | Sequence[str] | Layout | None
"""An option of one of the drawing functions."""


def _later(module: str, name: str) -> Callable[..., Picture]:
    """Return a drawing function that imports its module when it is called."""

    def drawn(thing: Drawable, **options: Option) -> Picture:
        picture: Picture = getattr(importlib.import_module(module), name)(thing, **options)
        return picture

    return drawn


draw_tmem = _later("cute_py.draw.tensor_memory", "draw_tmem")
draw_pipeline = _later("cute_py.draw.timeline", "draw_pipeline")
draw_run = _later("cute_py.draw.timeline", "draw_run")
draw_umma = _later("cute_py.draw.tensor_memory", "draw_umma")
draw_writers = _later("cute_py.draw.tensor_memory", "draw_writers")


def _is(*paths: str) -> Callable[[Drawable], bool]:
    """Return a predicate: whether an object is an instance of one of these classes, given by their full names. The
    names avoid an import: if a package is not loaded, no instance of its classes can exist.
    """
    return lambda thing: any(f"{kind.__module__}.{kind.__name__}" in paths for kind in type(thing).__mro__)


def _is_sources(thing: Drawable) -> bool:
    """Whether `thing` is an array of shape (lanes, columns, 4), like the `sources` of a `TensorMemory`."""
    shape: tuple[int, ...] = getattr(thing, "shape", ()) if type(thing).__module__ == "numpy" else ()
    return len(shape) == 3 and shape[2] == 4


def _is_swizzled(thing: Drawable) -> bool:
    """Whether `thing` is a swizzle composed with an integer layout and offset 0. Its picture shows the layout before
    and after the swizzle.
    """
    if not isinstance(thing, ComposedLayout) or not isinstance(thing.outer, Swizzle):
        return False
    plain = isinstance(thing.inner, Layout) and coprofile(thing.inner) == 0
    return plain and (isinstance(thing.offset, SmemPtrFlag) or thing.offset == 0)


def _is_layouts(thing: Drawable) -> bool:
    return isinstance(thing, (list, tuple)) and bool(thing) and all(_is_layout(part) for part in thing)


def _is_layout(thing: Drawable) -> bool:
    return isinstance(thing, (Layout, ComposedLayout))


def _compare(things: Sequence[AnyLayout], names: Sequence[str] = (), bits: DTypeLike | int | None = None) -> Picture:
    return draw_compare(*things, names=names, bits=bits)


def _plan(plan: CopyPlan) -> Picture:
    """Draw the tile of a planned copy in its global and its shared order, and the positions of its elements in shared
    memory.
    """
    layouts = [*plan.orders, *([] if plan.shared_layout is None else [plan.shared_layout])]
    return draw_compare(*layouts, names=("source order", "destination order", "shared memory")[: len(layouts)])


def _triton(layout: TritonLayout, **options: Any) -> Picture:
    """Draw the thread and value of each element, or the offsets of a layout in shared memory."""
    held = layout.to_layout()
    return draw_tv(held, layout.shape, **options) if isinstance(held, Layout) else draw(held, **options)


def _scaled(scaled: ScaledTensor) -> Picture:
    return draw_format(scaled.format, scaled.shape[-2:])


_KINDS: tuple[tuple[Callable[[Drawable], bool], Callable[..., Picture]], ...] = (
    (lambda thing: isinstance(thing, Picture), lambda thing: thing),
    (lambda thing: isinstance(thing, TmaAtom), draw_boxes),
    (lambda thing: isinstance(thing, Im2colAtom), draw_im2col),
    (lambda thing: isinstance(thing, (MmaAtom, TiledMma)), draw_mma),
    (lambda thing: isinstance(thing, (CopyAtom, TiledCopy)), draw_copy),
    (lambda thing: isinstance(thing, Swizzle) or _is_swizzled(thing), draw_swizzle),
    (_is_layout, draw_layout),
    (lambda thing: isinstance(thing, Tensor), draw_tensor),
    (_is("cute_py.notation.triton.TritonLayout"), _triton),
    (_is_layouts, _compare),
    (_is("cute_py.tma.simulate.pipeline.Timeline"), draw_pipeline),
    (_is("cute_py.machine.judgement.timeline.RunTimeline"), draw_run),
    (_is("cute_py.machine.tensor_memory.writers.TensorContents"), draw_writers),
    (_is("cute_py.machine.tensor_memory.umma_operands.UmmaOperands"), draw_umma),
    (_is("cute_py.mesh.sharded_layout.ShardedLayout"), draw_shards),
    (_is("cute_py.tmem.copy_request.CopyAsync", "cute_py.tmem.demonstration.Demonstration"), draw_tmem),
    (_is("cute_py.copies.plan.CopyPlan"), _plan),
    (lambda thing: isinstance(thing, Format), draw_format),
    (_is("cute_py.formats.scaled_tensor.ScaledTensor"), _scaled),
    (_is_sources, draw_tmem),
    (lambda thing: isinstance(thing, TensorMap), draw_descriptor),
    (lambda thing: isinstance(thing, (bytes, bytearray, memoryview)) or hasattr(thing, "opaque"), draw_descriptor),
)


def draw(thing: Drawable, **options: Option) -> Picture:
    """Draw a layout, swizzle, tensor, atom, descriptor, pipeline, run or copy to tensor memory.

    Args:
        thing: the object to draw. For an atom, the picture shows its boxes; for a swizzled layout, the tables before
            and after the swizzle; for a list, its layouts side by side; for bytes or a request, the bits of the tensor
            map.
        options: keyword arguments of the function that draws this kind of object.
    Raises:
        InvalidTypeError: cute_py can't draw such an object, or the option does not exist.

    >>> draw(Layout((2, 3))).title
    '(2,3):(_1,2)'
    """
    for takes, drawn in _KINDS:
        if takes(thing):
            try:
                return drawn(thing, **options)
            except TypeError as error:
                if isinstance(error, InvalidTypeError) or "keyword argument" not in str(error):
                    raise
                raise InvalidTypeError(f"draw of {type(thing).__name__}: {error}") from None
    raise InvalidTypeError(
        f"there is no picture of {type(thing).__name__} {shortened(given(thing), 80)}",
        {
            "takes": "layouts, swizzles, tensors, atoms, tensor maps, timelines of a ring or a run, "
            "copies to tensor memory, operands of tcgen05.mma, sharded tensors, formats, layouts of Triton"
        },
        PARSE_READS if isinstance(thing, str) else None,
    )
