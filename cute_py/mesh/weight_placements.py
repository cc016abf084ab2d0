"""Named placements of weights: how tensor parallelism divides a weight (outputs, inputs) over ranks.

    "row-parallel"                                        a row of `NAMED_PLACEMENTS`, or
    "fused-qkv(heads=32, kv_heads=4, head_dim=128)"       a row with its arguments, or
    "Shard(0)"                                            a placement of `cute_py.mesh`, as Python writes it

A fused weight has sections: first the rows of Q, then the rows of K, then the rows of V. A rank holds a part of each
section, stacked by rows. A section with heads can be cut only between heads. For example, a section of 4 KV heads over
8 ranks is cut into 4 pieces, and two consecutive ranks hold the same piece, as in vLLM and Megatron-LM.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.errors import CuteError, InvalidValueError, counted, given, known_names
from cute_py.mesh.placements import KINDS, Placement, Replicate, SectionedShard, Shard, parse_placement


@record
class Section:
    """A section of a fused weight: rows that are divided over the ranks separately.

    Attributes: `label` names the section; `rows` is the number of rows of the whole weight. `heads` is the number of
        heads, which are not cut (0: the section can be cut between any rows). `repeats` is whether several ranks hold
        the same head if there are more ranks than heads.
    """

    label: str
    rows: int
    heads: int = 0
    repeats: bool = False

    def over(self, ranks: int) -> tuple[tuple[int, ...], tuple[Placement, ...]]:
        """Return the mesh that replaces a mode of `ranks` ranks for this section, and its placements.

        Raises:
            InvalidValueError: the number of heads is not a multiple of the ranks. With `repeats`, it may also be a
                divisor of the ranks.

        >>> Section("k", 512, heads=4, repeats=True).over(8)
        ((4, 2), (Shard(dim=0), Replicate()))
        """
        if self.heads == 0 or self.heads % ranks == 0:
            return (ranks,), (Shard(0),)
        if self.repeats and ranks % self.heads == 0:
            return (self.heads, ranks // self.heads), (Shard(0), Replicate())
        needs = "a multiple of the ranks, or a divisor" if self.repeats else "a multiple of the ranks"
        raise InvalidValueError(f"{self.label}: {counted(self.heads, 'head')} for {ranks} ranks; must be {needs}")


@record
class GateUp:
    """A fused weight with two sections of equal size: gate and up."""

    def whole_rows(self, held: Sequence[int]) -> int:
        """Return the number of rows of the whole weight, from the numbers of rows that the ranks of the mode hold."""
        return sum(held)

    def sections(self, rows: int) -> tuple[Section, ...]:
        """Return the sections of the weight, in order."""
        return Section("gate", rows // 2), Section("up", rows - rows // 2)


@record
class Sections:
    """A fused weight with sections of the given numbers of rows: `SectionedShard(0, rows)`."""

    rows: tuple[int, ...]

    def whole_rows(self, held: Sequence[int]) -> int:
        """Return the number of rows of the whole weight, from the numbers of rows that the ranks of the mode hold."""
        return sum(held)

    def sections(self, rows: int) -> tuple[Section, ...]:
        """Return the sections of the weight, in order."""
        SectionedShard(0, self.rows).pieces(rows, 1, 0)  # refuses sections that don't add up to the rows
        return tuple([Section(f"section {i}", n) for i, n in enumerate(self.rows)])


@record
class FusedQkv:
    """A fused weight with three sections: the heads of Q, of K and of V. A head has `head_dim` rows; by default, the
    number is computed from the rows of a rank.

    >>> fused = FusedQkv(32, 4, 128)
    >>> fused.whole_rows([768] * 8), [section.rows for section in fused.sections(5120)]
    (5120, [4096, 512, 512])
    """

    heads: int
    kv_heads: int
    head_dim: int | None = None

    def whole_rows(self, held: Sequence[int]) -> int:
        """Return the number of rows of the whole weight, from the numbers of rows that the ranks of the mode hold."""
        ranks = len(held)
        q, kv = self._over(ranks)
        size = _head_dim(held[0], q + 2 * kv, self.head_dim, f"{q} + 2 x {kv} heads of a rank")
        return (self.heads + 2 * self.kv_heads) * size

    def sections(self, rows: int) -> tuple[Section, ...]:
        """Return the sections of the weight, in order."""
        heads = self.heads + 2 * self.kv_heads
        size = _head_dim(rows, heads, self.head_dim, f"{self.heads} + 2 x {self.kv_heads} heads")
        kv = [Section(label, self.kv_heads * size, self.kv_heads, True) for label in ("k", "v")]
        return Section("q", self.heads * size, self.heads), *kv

    def _over(self, ranks: int) -> tuple[int, int]:
        """Return the number of Q heads and the number of K heads of a rank."""
        for section in (Section("q", 0, self.heads), Section("k", 0, self.kv_heads, True)):
            section.over(ranks)
        return self.heads // ranks, max(1, self.kv_heads // ranks)


@record
class KvHeads:
    """A weight with one section: the heads of K or of V."""

    kv_heads: int
    head_dim: int | None = None

    def whole_rows(self, held: Sequence[int]) -> int:
        """Return the number of rows of the whole weight, from the numbers of rows that the ranks of the mode hold."""
        Section("kv", 0, self.kv_heads, True).over(len(held))
        mine = max(1, self.kv_heads // len(held))
        return self.kv_heads * _head_dim(held[0], mine, self.head_dim, f"{counted(mine, 'head')} of a rank")

    def sections(self, rows: int) -> tuple[Section, ...]:
        """Return the sections of the weight, in order."""
        _head_dim(rows, self.kv_heads, self.head_dim, counted(self.kv_heads, "head"))
        return (Section("kv", rows, self.kv_heads, True),)


Fused = GateUp | Sections | FusedQkv | KvHeads
"""A placement of rows in sections."""

WeightPlacement = Placement | Fused


def _head_dim(rows: int, heads: int, head_dim: int | None, what: str) -> int:
    if rows % heads or (head_dim is not None and rows != heads * head_dim):
        size = "of one size" if head_dim is None else f"of {head_dim} rows"
        raise InvalidValueError(f"the weight has {rows} rows; must have {what}, {size}")
    return rows // heads


@dataclass(frozen=True, slots=True)
class NamedPlacement:
    """A named placement: its name, its arguments as written in a plan, its meaning, and the placement that it makes."""

    name: str
    arguments: str
    meaning: str
    made: Callable[..., WeightPlacement]
    """Called with the number of dimensions, and with the arguments by name."""

    names: tuple[str, ...] = ()
    """Names of the arguments; optional ones are last."""

    optional: int = 0

    @property
    def form(self) -> str:
        """The placement as it is written in a plan."""
        return f"{self.name}({self.arguments})" if self.arguments else self.name


NAMED_PLACEMENTS: Mapping[str, NamedPlacement] = {
    row.name: row
    for row in (
        NamedPlacement("replicate", "", "every rank holds the whole weight", lambda rank: Replicate()),
        NamedPlacement("column-parallel", "", "divides the outputs: Shard(0)", lambda rank: Shard(0)),
        NamedPlacement(
            "row-parallel",
            "",
            "divides the inputs: Shard of the last dimension",
            lambda rank: Shard(max(rank, 1) - 1),
        ),
        NamedPlacement("embedding", "", "divides the vocabulary: Shard(0)", lambda rank: Shard(0)),
        NamedPlacement("gate-up", "", "the rows are gate, then up; both are divided", lambda rank: GateUp()),
        NamedPlacement(
            "fused-qkv",
            "heads=32, kv_heads=8, head_dim=128",
            "the rows are the heads of Q, K and V; each is divided, and ranks share a KV head if there are more "
            "ranks than KV heads",
            lambda rank, heads, kv_heads, head_dim=None: FusedQkv(heads, kv_heads, head_dim),
            ("heads", "kv_heads", "head_dim"),
            1,
        ),
        NamedPlacement(
            "kv-heads",
            "kv_heads=4, head_dim=128",
            "the rows are the KV heads of only K or only V, divided as in fused-qkv",
            lambda rank, kv_heads, head_dim=None: KvHeads(kv_heads, head_dim),
            ("kv_heads", "head_dim"),
            1,
        ),
    )
}
"""The table of names that a plan accepts, and that `--help` and hints list."""

PYTHON_PLACEMENTS = tuple([name for name in KINDS if name != "Partial"])
"""Placements of `cute_py.mesh` that a plan accepts; Partial is missing, because files hold sums."""

MOST_HEADS = 999_999

_CALL = re.compile(r"\s*(?P<name>[a-z][a-z-]{0,30})\s*+(?:\((?P<arguments>[^()]{0,200})\)\s*)?")


def parse_weight_placement(text: str, rank: int, what: str = "a placement") -> WeightPlacement:
    """Parse the placement of a weight with `rank` dimensions: a name of `NAMED_PLACEMENTS`, or a placement in Python's
    notation.

    Raises:
        InvalidValueError: the name does not exist, or does not accept the arguments.

    >>> parse_weight_placement("row-parallel", 2), parse_weight_placement("fused-qkv(32, 8)", 2)
    (Shard(dim=1), FusedQkv(heads=32, kv_heads=8, head_dim=None))
    >>> try:
    ...     parse_weight_placement("row_parallel", 2)
    ... except InvalidValueError as error:
    ...     print(error.headline, "-", error.hint)
    a placement: 'row_parallel' is not a placement - row-parallel
    """
    found = _CALL.fullmatch(expect(text, str, what))
    row = NAMED_PLACEMENTS.get(found["name"]) if found is not None else None
    if row is not None and found is not None:
        return row.made(rank, **_arguments(row, found["arguments"], f"{what}: {given(text)}"))
    try:
        made = parse_placement(text, what)
    except InvalidValueError:
        names = [*NAMED_PLACEMENTS, *PYTHON_PLACEMENTS]
        name = re.split(r"\W", text.strip().replace("-", "_"), maxsplit=1)[0]
        facts = known_names(name.replace("_", "-") if name.islower() else name, names)
        near = facts.get("nearest", "").split(", ")[0]
        hint = NAMED_PLACEMENTS[near].form if near in NAMED_PLACEMENTS else "Shard(0)" if near == "Shard" else None
        raise InvalidValueError(f"{what}: {given(text)} is not a placement", facts, hint) from None
    return Sections(made.sections) if isinstance(made, SectionedShard) and made.dim == 0 else made


def _arguments(row: NamedPlacement, text: str | None, what: str) -> dict[str, int]:
    try:
        call = ast.parse(f"f({text or ''})", mode="eval").body
        given_here = [ast.literal_eval(one) for one in call.args]  # type: ignore[attr-defined]
        named = dict(zip(row.names, given_here, strict=False))
        named |= {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}  # type: ignore[attr-defined]
        needed = row.names[: len(row.names) - row.optional]
        if len(given_here) > len(row.names) or not set(needed) <= set(named) <= set(row.names):
            raise InvalidValueError("other arguments")
        return {name: expect_integer(value, name, 1, MOST_HEADS) for name, value in named.items()}
    except (CuteError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as problem:
        ranged = f" ({problem.headline})" if isinstance(problem, InvalidValueError) and "=" in problem.headline else ""
        takes = f"({', '.join(row.names)})" if row.names else "no arguments"
        raise InvalidValueError(f"{what}; {row.name} takes {takes}{ranged}", hint=row.form) from None


def listed_placements(width: int = 78) -> str:
    """Return the table of placements as text for `--help`: each form, with its meaning below it."""
    import textwrap

    lines = []
    for row in NAMED_PLACEMENTS.values():
        lines.append(f"  {row.form}")
        lines += textwrap.wrap(row.meaning, width, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)
