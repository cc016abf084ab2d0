"""Instruction descriptors of tcgen05.mma: 32 bits that encode types, extents, majors and signs.

    bits    f16, tf32, f8f6f4, i8         mxf8f6f4                   mxf4, mxf4nvf4
    0-1     sparsity selector             the same                   the same
    2       sparse                        the same                   the same
    3       saturate (i8)                 -                          -
    4-5     type of D                     scale data ID of B         the same
    7-9     type of A                     the same                   the same
    10-12   type of B                     the same                   10-11
    13, 14  negate A, B                   the same                   the same
    15, 16  A, B are MN-major             the same                   the same
    17-22   N / 8                         the same                   the same
    23      -                             type of the scales         the same
    24-28   M / 16                        27-28: M / 128             the same
    29-30   30-31: reach of .ws           scale data ID of A         the same
    31      -                             -                          K of 96 (sm_103a)

`atom.mma_tensor_memory_atoms.instruction_descriptor` makes the descriptor of an atom; this module decodes descriptors.
Source: PTX ISA 9.0, tcgen05 instruction descriptor; cute/arch/mma_sm100_desc.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect_choice, expect_integer
from cute_py.atom.smem_descriptor import DescriptorField, Major
from cute_py.diagnostics import Diagnostic
from cute_py.errors import TmemError, given

_SMALL: Final = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}


@dataclass(frozen=True, slots=True)
class MmaKind:
    """The operand types of a kind of tcgen05.mma.

    Attributes:
        factors: PTX type of A or B for each code in the descriptor. sums: PTX type of D for each code.
        depth: K of a dense instruction, which is 32 bytes of each row. scaled: whether the kind has scale factors.
    """

    name: str
    factors: dict[int, str]
    sums: dict[int, str]
    depth: int
    scaled: bool = False

    @property
    def integer(self) -> bool:
        """Whether the kind multiplies integers."""
        return self.name == "i8"

    @property
    def packed(self) -> bool:
        """Whether two elements of A and of B share a byte of shared memory."""
        return self.name in ("mxf4", "mxf4nvf4")


MMA_KINDS: Final = {
    kind.name: kind
    for kind in (
        MmaKind("f16", {0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}, 16),
        MmaKind("tf32", {2: "tf32"}, {1: "f32"}, 8),
        MmaKind("f8f6f4", _SMALL, {0: "f16", 1: "f32"}, 32),
        MmaKind("i8", {0: "u8", 1: "s8"}, {2: "s32"}, 32),
        MmaKind("mxf8f6f4", _SMALL, {}, 32, True),
        MmaKind("mxf4", {1: "e2m1"}, {}, 64, True),
        MmaKind("mxf4nvf4", {1: "e2m1"}, {}, 64, True),
    )
}
SCALE_TYPES: Final = ("ue4m3", "ue8m0")
"""Code of bit 23 -> type of the scale factors."""

_SHARED: Final = (
    DescriptorField("sparsity_selector", 0, 2, "sparsity selector"),
    DescriptorField("sparse", 2, 1, "A is sparse"),
)
_FACTORS: Final = (
    DescriptorField("a_format", 7, 3, "type of A"),
    DescriptorField("b_format", 10, 3, "type of B"),
    DescriptorField("negate_a", 13, 1, "negate A"),
    DescriptorField("negate_b", 14, 1, "negate B"),
    DescriptorField("a_is_mn", 15, 1, "major of A"),
    DescriptorField("b_is_mn", 16, 1, "major of B"),
    DescriptorField("n_steps", 17, 6, "N / 8"),
)
_PLAIN: Final = (
    *_SHARED,
    DescriptorField("saturate", 3, 1, "saturate"),
    DescriptorField("d_format", 4, 2, "type of D"),
    *_FACTORS,
    DescriptorField("m_steps", 24, 5, "M / 16"),
    DescriptorField("reach", 30, 2, "reach of .ws along B"),
)
_SCALED: Final = (
    *_SHARED,
    DescriptorField("scale_b_id", 4, 2, "scale data ID of B"),
    *_FACTORS,
    DescriptorField("scale_type", 23, 1, "type of the scales"),
    DescriptorField("m_steps", 24, 5, "M / 16"),
    DescriptorField("scale_a_id", 29, 2, "scale data ID of A"),
    DescriptorField("long_k", 31, 1, "K of 96"),
)


@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """A 32-bit instruction descriptor, decoded for one kind of tcgen05.mma.

    Args:
        value: the 32 bits. kind: 'f16', 'tf32', 'f8f6f4', 'i8', 'mxf8f6f4', 'mxf4' or 'mxf4nvf4'.
    Raises:
        TmemError: the value does not fit into 32 bits. UnknownNameError, InvalidValueError: the kind is unknown.

    >>> one = InstructionDescriptor(0x08400010, "f16")
    >>> one.m, one.n, one.k, one.a_type, one.d_type, one.a_major
    (128, 256, 16, 'f16', 'f32', <Major.K: 'K'>)
    """

    value: int
    kind: str = "f16"

    def __post_init__(self) -> None:
        value = expect_integer(self.value, "an instruction descriptor")
        if not 0 <= value < 1 << 32:
            raise TmemError(f"instruction descriptor {value:#x}; must have 32 bits")
        object.__setattr__(self, "value", value)
        expect_choice(self.kind, tuple(MMA_KINDS), "the kind of a matrix instruction")

    @property
    def fields(self) -> tuple[DescriptorField, ...]:
        """The descriptor fields of this kind."""
        return _SCALED if MMA_KINDS[self.kind].scaled else _PLAIN

    def raw(self, name: str) -> int:
        """The bits of a field; 0 if the kind has no such field."""
        for field in self.fields:
            if field.name == name:
                return (self.value & field.mask) >> field.low
        return 0

    @property
    def m(self) -> int:
        """Number of rows of D; for a CTA pair, of both CTAs together."""
        return 16 * self.raw("m_steps")

    @property
    def n(self) -> int:
        """Number of columns of D."""
        return 8 * self.raw("n_steps")

    @property
    def k(self) -> int:
        """Number of elements along K; for a sparse A, twice the number of stored elements."""
        if self.raw("long_k"):
            return 96 << self.raw("sparse")
        return MMA_KINDS[self.kind].depth << self.raw("sparse")

    @property
    def sparse(self) -> bool:
        """Whether A is sparse."""
        return bool(self.raw("sparse"))

    @property
    def a_type(self) -> str | None:
        """The type of A; None if the kind does not define the code in the field."""
        return MMA_KINDS[self.kind].factors.get(self.raw("a_format"))

    @property
    def b_type(self) -> str | None:
        """The type of B; None if the kind does not define the code in the field."""
        return MMA_KINDS[self.kind].factors.get(self.raw("b_format"))

    @property
    def d_type(self) -> str | None:
        """The type of D; None if the kind does not define the code in the field."""
        kind = MMA_KINDS[self.kind]
        return "f32" if kind.scaled else kind.sums.get(self.raw("d_format"))

    @property
    def scale_type(self) -> str | None:
        """The type of the scale factors; None for kinds without scale factors."""
        return SCALE_TYPES[self.raw("scale_type")] if MMA_KINDS[self.kind].scaled else None

    @property
    def a_major(self) -> Major:
        """The mode whose adjacent indices of A are adjacent in memory."""
        return Major.MN if self.raw("a_is_mn") else Major.K

    @property
    def b_major(self) -> Major:
        """The mode whose adjacent indices of B are adjacent in memory."""
        return Major.MN if self.raw("b_is_mn") else Major.K

    @property
    def negated(self) -> tuple[bool, bool]:
        """Whether A and B are negated."""
        return bool(self.raw("negate_a")), bool(self.raw("negate_b"))

    def check(self, cta_group: int = 1, *, weights: bool = False) -> list[Diagnostic]:
        """Return a diagnostic for each rule of the PTX ISA that the fields break.

        Args:
            cta_group: number of participating CTAs, 1 or 2. weights: whether the instruction has .ws.

        >>> [found.text for found in InstructionDescriptor(0x08400030, "f16").check()]
        ['type of D = 3; kind::f16 has 0 (f16), 1 (f32)']
        """
        kind = MMA_KINDS[self.kind]
        found = []
        for name, allowed in (("a_format", kind.factors), ("b_format", kind.factors), ("d_format", kind.sums)):
            if allowed and self.raw(name) not in allowed:
                listed = ", ".join(f"{code} ({type_})" for code, type_ in allowed.items())
                meaning = next(field.meaning for field in self.fields if field.name == name)
                text = f"{meaning} = {self.raw(name)}; kind::{self.kind} has {listed}"
                found.append(Diagnostic(name, text=text))
        found += self._check_extents(cta_group, weights)
        if kind.packed and (self.raw("a_is_mn") or self.raw("b_is_mn")):
            found.append(Diagnostic("major", text=f"kind::{self.kind} takes only K-major operands"))
        if self.kind in ("mxf8f6f4", "mxf4") and not self.raw("scale_type"):
            found.append(Diagnostic("scale_type", text=f"kind::{self.kind} takes only ue8m0 scales (bit 23 is 1)"))
        if kind.integer and any(self.negated):
            found.append(Diagnostic("negate", text="kind::i8 can't negate an operand"))
        if self.raw("saturate") and not kind.integer:
            found.append(Diagnostic("saturate", text=f"kind::{self.kind} can't saturate"))
        return found

    def _check_extents(self, cta_group: int, weights: bool) -> list[Diagnostic]:
        kind, m, n = MMA_KINDS[self.kind], self.m, self.n
        rows: tuple[int, ...]
        columns: tuple[int, ...]
        if weights:
            rows, columns = (32, 64, 128), (64, 128, 256)
        else:
            one = (128,) if kind.scaled else (64, 128)
            rows = one if cta_group == 1 else (128, 256)
            step = 16 if cta_group == 2 or (m == 128 and not kind.scaled) or kind.integer else 8
            small = (8, 24) if kind.integer and m == 64 else ()
            columns = (*small, *range(step, 257, step))
        found = []
        if m not in rows:
            text = f"M = {m}; must be {' or '.join(map(str, rows))} with cta_group::{cta_group}"
            found.append(Diagnostic("m", text=text))
        if n not in columns:
            step = columns[-1] - columns[-2]
            must = f"a multiple of {step} up to 256" if not weights else "64, 128 or 256"
            found.append(Diagnostic("n", text=f"N = {n}; must be {must} with M = {m}"))
        return found

    def explain(self) -> str:
        """Return one line for each field: its bits, its value and its meaning.

        >>> print("\\n".join(InstructionDescriptor(0x08400010, "f16").explain().splitlines()[:6]))
        instruction descriptor 0x08400010 of kind::f16: D 128 x 256 of f32, K = 16
          bits 0-1   sparsity selector      : 0
          bit 2      A is sparse            : 0
          bit 3      saturate               : 0
          bits 4-5   type of D              : 1, f32
          bits 7-9   type of A              : 0, f16
        """
        said = {
            "a_format": self.a_type, "b_format": self.b_type, "d_format": self.d_type, "scale_type": self.scale_type,
            "a_is_mn": f"{self.a_major}-major", "b_is_mn": f"{self.b_major}-major", "n_steps": f"N = {self.n}",
            "m_steps": f"M = {self.m}",
        }  # fmt: skip
        lines = [
            f"instruction descriptor {self.value:#010x} of kind::{self.kind}: D {self.m} x {self.n} of "
            f"{self.d_type or 'no type'}, K = {self.k}"
        ]
        held = 0
        for field in self.fields:
            held |= field.mask
            last = field.low + field.width - 1
            bits = f"bits {field.low}-{last}" if field.width > 1 else f"bit {field.low}"
            more = f", {said[field.name] or 'no type of this kind'}" if field.name in said else ""
            lines.append(f"  {bits:<10} {field.meaning:<23}: {self.raw(field.name)}{more}")
        if self.value & ~held:
            lines.append(f"  {'other bits':<34}: {self.value & ~held:#x}, which must be 0")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.value:#010x}"


def as_mma_kind(name: str) -> MmaKind:
    """Return the row of `MMA_KINDS` for a kind; the name may have the prefix `kind::`.

    >>> as_mma_kind("kind::tf32").depth
    8
    """
    found = MMA_KINDS.get(name.removeprefix("kind::"))
    if found is None:
        raise TmemError(f"kind {given(name)}; must be one of {', '.join(MMA_KINDS)}")
    return found
