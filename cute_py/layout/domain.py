"""What an operation on the domain does to things that are more than a layout.

A composed layout `outer o offset o inner` and a tensor `engine o layout` take their coordinates from a layout inside
them. Coalescing, grouping, dividing and tiling change only that layout; so each such object says, in one method, how
to be rebuilt around the changed layout:

    coalesce(outer o offset o inner)  =  outer o offset o coalesce(inner)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_py.argument_checks import is_integer
from cute_py.errors import InvalidTypeError, given
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, internal
from cute_py.layout.trees import leaves


def on_domain(operation: Callable[..., Any], thing: Any, *args: Any, **options: Any) -> Any:
    """Apply `operation(layout, *args)` to the layout that has the domain of `thing`, and rebuild the rest."""
    rebuild = getattr(thing, "with_domain", None)
    if rebuild is None:
        raise InvalidTypeError(
            f"{operation.__name__} takes a layout or a tensor, got {type(thing).__name__} {given(thing)}"
        )
    return rebuild(operation(thing.domain, *args, **options))


def domain_of(thing: Any) -> Layout:
    """The layout that has the domain: itself, the inner layout of a composed one, the layout of a tensor."""
    while not isinstance(thing, Layout):
        if not hasattr(thing, "domain"):
            raise InvalidTypeError(f"expected a layout or a tensor, got {type(thing).__name__} {given(thing)}")
        thing = thing.domain
    return thing


def shape_of(thing: Any) -> Tree:
    """The internal shape of a layout or a tensor; anything else is a shape itself."""
    if isinstance(thing, Layout) or hasattr(thing, "domain"):
        return domain_of(thing)._shape
    return internal(thing)


def has_numbers(layout: Layout) -> bool:
    """Whether every size and stride is a known integer: no symbol, no basis element.

    >>> has_numbers(Layout((4, 8))), has_numbers(Layout((4, 8), (E(0), E(1))))
    (True, False)
    """
    return all(is_integer(leaf) for leaf in (*leaves(layout.shape), *leaves(layout.stride)))
