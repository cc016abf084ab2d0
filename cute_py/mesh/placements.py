"""Placements: how one mode of a mesh divides a tensor. There is one placement for each mode, and they divide in
order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

from cute_py.argument_checks import expect, expect_integer, expect_integers, record
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given
from cute_py.mesh.index_intervals import Column

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy

MOST_BLOCKS = 1 << 22
"""Maximum number of blocks of one device."""


class Divides(Protocol):
    """Interface of a placement that gives each device along a mesh mode a part of one dimension. You can implement
    it."""

    @property
    def dim(self) -> int: ...

    def pieces(self, size: int, parts: int, part: int) -> Column:
        """Return the indices below `size` that part number `part` of `parts` holds, as rows (start, length) in local
        order."""
        ...


def _checked(size: int, parts: int, part: int) -> tuple[int, int, int]:
    parts = expect_integer(parts, "parts", 1)
    return expect_integer(size, "size", 0, 1 << 62), parts, expect_integer(part, "part", 0, parts - 1)


def _chunks(size: int, parts: int, part: int) -> Column:
    chunk = -(-size // parts)
    low = min(chunk * part, size)
    return numpy.array([[low, min(low + chunk, size) - low]])


@record
class Shard:
    """Divide into contiguous chunks of ceil(n / devices) indices; the last chunks may be short or empty.

    >>> Shard(0).pieces(10, 4, 3).tolist()
    [[9, 1]]
    """

    dim: int

    def pieces(self, size: int, parts: int, part: int) -> Column:
        return _chunks(*_checked(size, parts, part))


@record
class BlockCyclic:
    """Divide into blocks of `block` contiguous indices, which are assigned to the devices in turn.

    >>> BlockCyclic(0, 2).pieces(10, 3, 1).tolist()
    [[2, 2], [8, 2]]
    """

    dim: int
    block: int

    def pieces(self, size: int, parts: int, part: int) -> Column:
        return _dealt(*_checked(size, parts, part), expect_integer(self.block, "block", 1))


@record
class StridedShard:
    """Divide as DTensor's `_StridedShard`: each device gets `split_factor` chunks, which are assigned in turn.

    If a later mesh mode with `split_factor` devices divides these chunks, its parts are contiguous. This is the order
    of a dimension that tensor parallelism divided first.

    >>> StridedShard(0, split_factor=2).pieces(8, 2, 1).tolist()
    [[2, 2], [6, 2]]
    """

    dim: int
    split_factor: int

    def pieces(self, size: int, parts: int, part: int) -> Column:
        size, parts, part = _checked(size, parts, part)
        factor = expect_integer(self.split_factor, "split_factor", 1)
        return _dealt(size, parts, part, max(1, -(-size // (parts * factor))))


@record
class Zigzag:
    """Divide in the order of ring attention: of 2 * devices chunks, device d holds chunk d from the start and chunk d
    from the end.

    >>> Zigzag(0).pieces(16, 4, 1).tolist()
    [[2, 2], [12, 2]]
    """

    dim: int

    def pieces(self, size: int, parts: int, part: int) -> Column:
        size, parts, part = _checked(size, parts, part)
        return numpy.concatenate([_chunks(size, 2 * parts, part), _chunks(size, 2 * parts, 2 * parts - 1 - part)])


@record
class SectionedShard:
    """Divide each section as `Shard` does, for example the Q, K and V rows of a fused QKV weight.

    >>> SectionedShard(0, (8, 2, 2)).pieces(12, 2, 1).tolist()
    [[4, 4], [9, 1], [11, 1]]
    """

    dim: int
    sections: tuple[int, ...]

    def pieces(self, size: int, parts: int, part: int) -> Column:
        size, parts, part = _checked(size, parts, part)
        if sum(expect_integers(self.sections, "sections", 0)) != size:
            raise InvalidValueError(
                f"the sections have {sum(self.sections)} elements; must have {size}, like the dimension"
            )
        found = numpy.array([_chunks(n, parts, part)[0] for n in self.sections], numpy.int64).reshape(-1, 2)
        found[:, 0] += numpy.cumsum((0, *self.sections))[:-1]
        return found


@record
class Replicate:
    """Replicate the elements: all devices along this mesh mode hold the same elements.

    >>> import cute_py as cute
    >>> held = cute.mesh.distribute((8, 4), (2, 2), (cute.mesh.Shard(0), Replicate()))
    >>> held.local_shape(0), held.replicas
    ((4, 4), Layout((2,), (1,)))
    """


@record
class Partial:
    """Keep partial sums: the devices along this mesh mode hold summands, and the tensor is their sum.

    >>> Partial("sum")
    Partial(reduction='sum')
    """

    reduction: str = "sum"


def _dealt(size: int, parts: int, part: int, block: int) -> Column:
    if size // (parts * block) > MOST_BLOCKS:
        raise InvalidValueError(
            f"each device would get {size // (parts * block)} blocks of {block} elements; must be at most {MOST_BLOCKS}"
        )
    start = numpy.arange(part * block, size, parts * block)
    return numpy.stack([start, numpy.minimum(block, size - start)], axis=1)


Placement = Divides | Replicate | Partial


def pieces_of(placement: Divides, size: int, parts: int, part: int) -> Column:
    """Return `placement.pieces(...)`, and check the pieces of a user-defined class.

    Raises:
        InvalidTypeError, InvalidValueError: the pieces are not rows of two integers, or are outside the dimension.
    """
    found = placement.pieces(size, parts, part)
    if type(placement) in KINDS.values():
        return found
    what = f"pieces({size}, {parts}, {part}) of {type(placement).__name__}"
    if not isinstance(found, numpy.ndarray) or found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InvalidTypeError(f"{what} must be an integer array with rows (start, length), got {given(found)}")
    for start, length in found.tolist():
        if min(start, length) < 0 or start + length > size:
            raise InvalidValueError(f"{what}: a piece of {length} starts at {start}; must be within 0..{size}")
    return found.astype(numpy.int64)


KINDS = {kind.__name__: kind for kind in (Shard, BlockCyclic, StridedShard, Zigzag, SectionedShard, Replicate, Partial)}


def parse_placement(text: str, what: str = "a placement") -> Placement:
    """Parse a placement as written in Python; `Replicate` means `Replicate()`.

    Raises:
        InvalidValueError: the placement does not exist.

    >>> parse_placement("SectionedShard(0, (8, 2, 2))")
    SectionedShard(dim=0, sections=(8, 2, 2))
    """
    try:
        node = ast.parse(expect(text, str, what).strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        kind = KINDS[call.func.id]  # type: ignore[attr-defined]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        return kind(*map(ast.literal_eval, call.args), **named)
    except (CuteError, SyntaxError, KeyError, AttributeError, TypeError, ValueError, RecursionError, MemoryError):
        raise InvalidValueError(
            f"{what}: {given(text)} is not a placement", hint=f"{', '.join(KINDS)}, written as 'Shard(0)'"
        ) from None
