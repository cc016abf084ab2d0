"""What a call returned is used: its methods and properties, indexing, calls, operators, texts, copies; and what those
return is used in turn. Half of the uses have one argument mutated."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import random
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.calls.call import Call
from tests.calls.mutations import JUNK, mutated
from tests.calls.registry import registry
from tests.calls.surface import exported
from tests.calls.text import Maker

IT = "_it"
"""The name of the result in the text of a use."""

LONGEST = 4
"""Uses of one call."""

COMPARISONS = ("eq", "ne", "lt", "le")
ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "truediv", "and_", "or_", "xor", "matmul", "pow")
OF_ALL = ("hash", "str", "repr", "copies.copy", "copies.deepcopy", "bool", "len", "list_of", "round_trip", "dir")
SPECS = ("''", "'>20'", "'...'", "'d'", "'x'", "'.3f'", "'?'", "'{'", "'ostream'")

UNSAFE = frozenset(("abort", "close", "main", "run_forever", "serve", "show", "wait"))
"""Methods that are left alone: they wait for a process, a terminal or a browser."""


@functools.cache
def of_class(kind: type) -> str | None:
    """The public name of a class, as the registry writes it."""
    return next((name for name, value in exported().items() if value is kind), None)


def is_ours(value: object) -> bool:
    """An object or a class of the package."""
    kind = value if isinstance(value, type) else type(value)
    return str(kind.__module__).split(".")[0] == "cute_py"


@functools.cache
def members_of(kind: type) -> tuple[str, ...]:
    """The public members of a class, and those of a record that only its objects have."""
    own = [base for base in kind.__mro__ if is_ours(base)]
    names = {name for base in own for name in vars(base) if not name.startswith("_")}
    if dataclasses.is_dataclass(kind):
        names |= {field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")}
    return tuple(sorted(names - UNSAFE))


def argument(source: random.Random, thing: Any) -> str:
    """Text of an argument: what the package often takes, the result itself, or junk."""
    maker = Maker(source)
    makers: tuple[Callable[[], str], ...] = (
        lambda: source.choice(JUNK),
        lambda: source.choice(JUNK),
        lambda: IT,
        maker.layout,
        maker.any_layout,
        maker.shape,
        maker.dtype,
        maker.swizzle,
        lambda: maker.tree(maker.coord_tree(getattr_shape(thing), 0.3)),
        lambda: str(source.randint(-1, 9)),
        lambda: f"Int({source.randint(0, 9)})",
    )
    return source.choice(makers)()


def getattr_shape(thing: Any) -> Any:
    """A tree of plain numbers like the shape of a result, if it has one of small numbers."""
    shape = getattr(thing, "shape", None) if is_ours(thing) and not isinstance(thing, type) else None

    def plain(tree: Any) -> Any:
        if isinstance(tree, tuple):
            return tuple(plain(one) for one in tree[:8])
        return int(tree) if isinstance(tree, int) and 0 < tree < 1 << 30 else 4

    return plain(shape) if isinstance(shape, tuple | int) else (4, 8)


def arguments_of(name: str, member: Any, source: random.Random, thing: Any) -> tuple[str, ...]:
    """Arguments of a method: those of its entry, or as many as its signature takes."""
    entry = registry().get(name)
    if entry is not None and source.random() < 0.6:
        given = entry.call(source.random())
        if given.args is not None and not given.fixed:
            return (*given.args, *(f"{key}={text}" for key, text in given.kwargs))
    try:
        parameters = [*inspect.signature(member).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]
    texts = [argument(source, thing) for _ in needed]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        texts += [argument(source, thing) for _ in range(source.randint(0, 3))]
    texts += [f"{p.name}={argument(source, thing)}" for p in named if source.random() < 0.3]
    return tuple(texts)


def split(name: str, target: str, texts: tuple[str, ...], fixed: int = 0) -> Call:
    """A call of positional and named argument texts."""
    named = [text for text in texts if text.partition("=")[0].isidentifier() and "=" in text]
    pairs = [(text.partition("=")[0], text.partition("=")[2]) for text in named]
    return Call(name, target, tuple(text for text in texts if text not in named), tuple(pairs), fixed)


def member_use(thing: Any, source: random.Random) -> Call | None:
    kind = thing if isinstance(thing, type) else type(thing)
    names = members_of(kind)
    if not names:
        return None
    member = source.choice(names)
    name = f"{of_class(kind) or kind.__name__}.{member}"
    static = inspect.getattr_static(kind, member, None)
    if callable(static) or isinstance(static, classmethod | staticmethod):
        bound = getattr(thing, member)
        return split(name, f"{IT}.{member}", arguments_of(name, bound, source, thing))
    return Call(name, f"{IT}.{member}")


def use(thing: Any, source: random.Random) -> Call | None:
    """One use of a result as a call on `_it`; None where there is nothing to use."""
    if isinstance(thing, tuple | list) and thing:
        return Call("getitem", f"{IT}[{source.randrange(len(thing))}]")
    if isinstance(thing, Mapping) and thing and not is_ours(thing):
        return Call("getitem", f"list({IT}.values())[{source.randrange(len(thing))}]")
    if not is_ours(thing) or isinstance(thing, types.ModuleType):
        return None
    name = of_class(type(thing)) or type(thing).__name__
    if isinstance(thing, enum.EnumMeta):
        return split(name, source.choice(("operator.getitem", "call")), (IT, argument(source, thing)), 1)
    chosen = source.random()
    if chosen < 0.55:
        return member_use(thing, source)
    if chosen < 0.62:
        return split(name, "operator.getitem", (IT, argument(source, thing)), 1)
    if chosen < 0.72 and callable(thing):
        texts = tuple(argument(source, thing) for _ in range(source.choice((1, 1, 1, 2, 3))))
        return split(name, IT, texts)
    if chosen < 0.78:
        return split(name, f"operator.{source.choice(COMPARISONS)}", (IT, argument(source, thing)), 1)
    if chosen < 0.86:
        operator = f"operator.{source.choice(ARITHMETIC)}"
        target = f"reflected({operator})" if source.random() < 0.4 else operator
        return split(name, target, (IT, argument(source, thing)), 1)
    if chosen < 0.91:
        return split(name, "format", (IT, source.choice(SPECS)), 1)
    if chosen < 0.93:
        return Call(name, f"operator.contains({IT}, {argument(source, thing)})")
    return split(name, source.choice(OF_ALL), (IT,), 1)


def uses(source: random.Random) -> Iterator[Callable[[Any], Call | None]]:
    """A few makers of uses, each for what the one before returned."""
    for _ in range(source.randint(1, LONGEST)):
        mutate = source.random() < 0.5

        def made(thing: Any, mutate: bool = mutate) -> Call | None:
            chosen = use(thing, source)
            return mutated(chosen, source) if chosen is not None and mutate else chosen

        yield made
