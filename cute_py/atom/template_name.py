"""Names of C++ class templates with their arguments, as CuTe's operations have them.

    SM90_64x8x16_F16F16F16_SS<GMMA::Major::K,GMMA::Major::MN,GMMA::ScaleIn::One,GMMA::ScaleIn::One>
    SM90_64x8x16_F16F16F16_SS<K,MN>                              the same, without namespaces and trailing defaults
    SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS                the name with its namespace, without arguments

A parameter is a type, an integer, or a value of an enumeration. The last parameters of a template may have defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from cute_py.argument_checks import expect
from cute_py.atom.element_types import cpp_spelling, element_type
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.targets import ARCHITECTURES, Targets, architecture

ENUMERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Major": ("K", "MN"),
    "ScaleIn": ("One", "Neg"),
    "SparseSel": ("Zero", "One"),
    "Saturate": ("False", "True"),
}
"""Enumerations of GMMA and UMMA and their values."""


Arguments: TypeAlias = Mapping[str, Any]
"""Parameter -> its value: an element type, an integer, or the name of an enumerator."""

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a template.

    `kind` is 'type', 'int' or the name of an enumeration. `space` is the namespace of the enumeration (`GMMA`, `UMMA`).
    `default` is the value that C++ uses if the argument is omitted, or None if the argument is required; for a type, it
    is the name of another parameter, whose type is used.
    """

    name: str
    kind: str
    default: Any = None
    space: Literal["", "GMMA", "UMMA"] = ""

    def value(self, text: str) -> Any:
        """Convert an argument string to its value.

        >>> Parameter("tnspA", "Major", space="GMMA").value("GMMA::Major::MN")
        'MN'
        """
        if self.kind == "type":
            return element_type(text)
        if self.kind == "int":
            try:
                return int(text)
            except ValueError:
                why = f"template argument {self.name} must be an integer, got {given(text)}"
                raise InvalidValueError(why) from None
        value = {"Minus": "Neg", "MinusOne": "Neg", "-1": "Neg"}.get(text.rsplit("::", 1)[-1], text.rsplit("::", 1)[-1])
        if value not in ENUMERATIONS[self.kind]:
            why = f"template argument {self.name} is {given(text)}; must be one of {', '.join(ENUMERATIONS[self.kind])}"
            raise InvalidValueError(why)
        return value

    def text(self, value: Any) -> str:
        """Return the spelling of a value in C++.

        >>> Parameter("tnspA", "Major", space="GMMA").text("MN"), Parameter("M", "int").text(128)
        ('GMMA::Major::MN', '128')
        """
        if self.kind == "type":
            return cpp_spelling(value)
        return str(value) if self.kind == "int" else f"{self.space}::{self.kind}::{value}"


def split_template(name: str) -> tuple[str, tuple[str, ...]]:
    """Split a name into the template's name and its argument strings.

    Raises:
        InvalidTypeError: the name is not a string. InvalidValueError: a bracket does not close.

    >>> split_template("Op<complex<half_t>, 64>"), split_template("Op<>"), split_template("Op")
    (('Op', ('complex<half_t>', '64')), ('Op', ()), ('Op', ()))
    """
    if not isinstance(name, str):
        raise InvalidTypeError(f"the name of an operation must be a str, got {type(name).__name__} {given(name)}")
    text = name.strip()
    op, bracket, rest = text.partition("<")
    if not bracket:
        return op, ()
    parts, depth, begin = [], 0, 0
    for i, char in enumerate(rest):
        if char == "<":
            depth += 1
        elif char == ">":
            depth -= 1
        if depth < 0:
            if rest[i + 1 :].strip(" {}()"):
                break
            parts.append(rest[begin:i].strip())
            return op.strip(), tuple(p for p in parts if p)
        if char == "," and depth == 0:
            parts.append(rest[begin:i].strip())
            begin = i + 1
    raise InvalidValueError(f"{given(name)} is not the name of an operation: its <...> does not close")


def bind(op: str, parameters: tuple[Parameter, ...], texts: tuple[str, ...]) -> dict[str, Any]:
    """Convert the strings of template arguments to values, and fill in the defaults.

    Raises:
        InvalidValueError: there are too many arguments, or an argument without a default is missing.

    >>> bind("Op", (Parameter("M", "int"), Parameter("a", "Major", "K", "UMMA")), ("64",))
    {'M': 64, 'a': 'K'}
    """
    if len(texts) > len(parameters):
        facts = {"parameters": ", ".join(p.name for p in parameters) or "none"}
        raise InvalidValueError(f"{op} takes {len(parameters)} template arguments, got {len(texts)}", facts)
    values = {p.name: p.value(t) for p, t in zip(parameters, texts, strict=False)}
    missing = [p.name for p in parameters[len(texts) :] if p.default is None]
    if missing:
        facts = {"parameters": ", ".join(p.name for p in parameters)}
        raise InvalidValueError(f"{op} needs the template arguments {', '.join(missing)}", facts)
    for p in parameters[len(texts) :]:
        values[p.name] = values[p.default] if p.kind == "type" else p.default
    return values


def written(op: str, parameters: tuple[Parameter, ...], values: Arguments) -> str:
    """Return the C++ name of an operation with all its template arguments.

    >>> written("Op", (Parameter("M", "int"), Parameter("a", "Major", "K", "UMMA")), {"M": 64, "a": "K"})
    'Op<64,UMMA::Major::K>'
    """
    return op if not parameters else f"{op}<{','.join(p.text(values[p.name]) for p in parameters)}>"


@dataclass(frozen=True)
class Operation(Generic[Made]):
    """One operation of CuTe C++ (a struct or a struct template), and the function that makes its atom or copy traits.

    Attributes:
        arch, family: the architecture that introduced the operation, such as `sm90`, and its group of operations.
        build: makes the atom from template arguments; raises StaticAssertError where C++ has a static_assert.
        typical: the template arguments, in C++'s spelling, that tables of atoms use for a template.
        details: the inputs of `build` that are not template arguments.
        namespace: the namespace within `cute`, such as `SM90::GMMA::SPARSE::`.
        aliases: other names of the same struct in C++.
    """

    name: str
    arch: str
    family: str
    build: Callable[[Operation[Made], Arguments], Made]
    parameters: tuple[Parameter, ...] = ()
    typical: tuple[str, ...] = ()
    details: tuple[Any, ...] = ()
    namespace: str = ""
    aliases: tuple[str, ...] = ()

    def made(self, *texts: str) -> Made:
        """Make the atom from template arguments, given as strings.

        Raises:
            InvalidValueError: the arguments do not fit the parameters (see `bind`). StaticAssertError: C++ refuses
                them.
        """
        return self.build(self, bind(self.name, self.parameters, texts))


class OperationRows(Mapping[str, Made]):
    """A mapping from an operation's name to its atom with typical template arguments. Atoms are made on lookup."""

    def __init__(self, title: str, listed: Callable[[], Mapping[str, object]], find: Callable[[str], Made]) -> None:
        """Store `title`, the repr; `listed`, which returns the names; and `find`, which returns the row of a name or
        raises KeyError."""
        self._title, self._listed, self._find = title, listed, find

    def __getitem__(self, name: str) -> Made:
        if not isinstance(name, str):
            raise KeyError(name)
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed())

    def __len__(self) -> int:
        return len(self._listed())

    def __repr__(self) -> str:
        return self._title


def static_assert(holds: bool, condition: str, facts: Callable[[], Mapping[str, object]]) -> None:
    """Raise an error with the text of C++'s static_assert if its condition is false.

    Raises:
        StaticAssertError: `holds` is False.
    """
    if not holds:
        raise StaticAssertError(condition, facts())


_SETS: Final[Mapping[str, Targets]] = {
    "sm90_gmma": Targets.ONLY_90A,
    "sm90_gmma_ext": Targets.ONLY_90A,
    "sm90_gmma_sparse": Targets.ONLY_90A,
    "sm90_gmma_sparse_ext": Targets.ONLY_90A,
    "sm100_umma": Targets.TMA_FULL,
    "sm103_umma": Targets.ONLY_103A,
    "sm120": Targets.CONSUMER_SPECIFIC,
    "sm120_sparse": Targets.CONSUMER_SPECIFIC,
    "sm100_tmem_load": Targets.TMA_FULL,
    "sm100_tmem_store": Targets.TMA_FULL,
    "sm100_utccp": Targets.TMA_FULL,
}
"""Family -> architectures that support it, if later ones dropped it (PTX ISA, "Target ISA Notes")."""


class AtomRow(Protocol):
    """The interface that MMA atoms and copy traits have in common."""

    @property
    def name(self) -> str: ...
    @property
    def arch(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def ptx(self) -> str: ...


def expect_target(row: AtomRow, arch: str | None) -> None:
    """Refuse an architecture that lacks an instruction.

    Args:
        arch: an architecture as named by ptxas, such as `sm_90a`, or by CuTe, such as `sm90`, which includes all its
            variants; with None, nothing is checked.
    Raises:
        InvalidValueError: the architecture lacks this instruction, or does not exist.
    """
    if arch is None:
        return
    name = expect(arch, str, "an architecture").lower()
    cute = re.fullmatch(r"sm(\d+)", name)
    known = [t for t in ARCHITECTURES if cute is not None and t.number == int(cute[1])]
    targets = known or [architecture(re.sub(r"^sm(?=\d)", "sm_", name))]
    wanted = _SETS.get(row.family)
    if wanted is Targets.TMA_FULL and "kind::i8" in row.ptx:
        wanted = Targets.TMEM_INTEGER
    elif row.family == "sm100" and "matrix" in row.ptx:
        wanted = Targets.SPECIFIC_FROM_100
    first = int(row.arch[2:]) if row.arch != "any" else 0
    if not any(t.number >= first if wanted is None else wanted.has(t) for t in targets):
        has = f"sm_{first} or newer" if wanted is None else wanted.value
        raise InvalidValueError(f"{arch} lacks {row.name}", {"instruction": row.ptx, "has it": has})
