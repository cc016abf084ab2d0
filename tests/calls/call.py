"""One call as text, its evaluation, and the registry of makers of calls.

A call is kept as source text (`coalesce(Layout((4, 2)), None)`), so that any of them can be printed, mutated in one
argument, and pasted into an interpreter after `from tests.calls.namespace import *`.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
from collections.abc import Callable
from typing import Any

from tests.calls.text import Maker


@dataclasses.dataclass(frozen=True)
class Call:
    """`target(*args, **kwargs)` as text; `args` None is an expression that is no call. The first `fixed` arguments
    are what an operator is applied to, and are never mutated."""

    name: str
    target: str
    args: tuple[str, ...] | None = None
    kwargs: tuple[tuple[str, str], ...] = ()
    fixed: int = 0

    @property
    def text(self) -> str:
        if self.args is None:
            return self.target
        return f"{self.target}({', '.join([*self.args, *(f'{k}={v}' for k, v in self.kwargs)])})"

    def made(self, names: dict[str, Any]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """The callable and its arguments, evaluated in `names`."""
        if self.args is None:
            return compiled("lambda: " + self.target, names), [], {}
        return (
            value(self.target, names),
            [value(text, names) for text in self.args],
            {key: value(text, names) for key, text in self.kwargs},
        )


@functools.lru_cache(20_000)
def code(text: str) -> Any:
    return compile(text, "<call>", "eval")


def value(text: str, names: dict[str, Any]) -> Any:
    return eval(code(text), names)


def compiled(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = value(text, names)
    return made


Make = Callable[[Maker], Call]


@dataclasses.dataclass
class Entry:
    """The makers of the calls of one public name.

    Args:
        weight: how often it is drawn; less for what is slow or trivial.
        mutable: whether its arguments are mutated (no for what is only read).
        device: needs a GPU, or says that there is none; never characterised.
        steady: its outcome is the same in every process.
        room: the module of this package that holds its calls.
    """

    name: str
    makers: list[Make] = dataclasses.field(default_factory=list)
    weight: float = 1.0
    mutable: bool = True
    device: bool = False
    steady: bool = True
    room: str = ""

    def call(self, seed: object) -> Call:
        """The valid call that a seed gives; the same in every process."""
        maker = Maker(random.Random(f"{seed}/{self.name}"))
        return maker.choice(self.makers)(maker)


REGISTRY: dict[str, Entry] = {}

Argument = str | Callable[[Maker], str]


def _caller() -> str:
    """The module of this package whose line is being run, by its last name."""
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] == __name__ and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals["__name__"]).rsplit(".", 1)[-1]


def entry(name: str, **options: Any) -> Entry:
    """The entry of a name, made when first asked for."""
    made = REGISTRY.setdefault(name, Entry(name))
    made.room = made.room or _caller()
    for key, option in options.items():
        setattr(made, key, option)
    return made


def rendered(maker: Maker, argument: Argument) -> str:
    return argument if isinstance(argument, str) else argument(maker)


def add(name: str, *arguments: Argument, named: dict[str, Argument] | None = None, **options: Any) -> None:
    """A call of `name`, a function or class. Each of `named` is left out half of the time."""

    def make(maker: Maker) -> Call:
        kwargs = [(k, rendered(maker, v)) for k, v in (named or {}).items() if maker.random.random() < 0.5]
        return Call(name, name, tuple(rendered(maker, a) for a in arguments), tuple(kwargs))

    entry(name, **options).makers.append(make)


def calls_of(name: str, **options: Any) -> Callable[[Callable[[Maker], Any]], Callable[[Maker], Any]]:
    """Decorates a function that gives the arguments (a tuple of texts, or (texts, {key: text})) of `name` at once."""

    def register(function: Callable[[Maker], Any]) -> Callable[[Maker], Any]:
        def make(maker: Maker) -> Call:
            given = function(maker)
            args, kwargs = given if len(given) == 2 and isinstance(given[1], dict) else (given, {})
            return Call(name, name, tuple(args), tuple(kwargs.items()))

        entry(name, **options).makers.append(make)
        return function

    return register


def method(
    name: str,
    instance: Argument,
    *arguments: Argument,
    named: dict[str, Argument] | None = None,
    **options: Any,
) -> None:
    """A call of `Class.method` of an instance."""

    def make(maker: Maker) -> Call:
        made = rendered(maker, instance)
        kwargs = [(k, rendered(maker, v)) for k, v in (named or {}).items() if maker.random.random() < 0.5]
        args = tuple(rendered(maker, a) for a in arguments)
        return Call(name, f"{made}.{name.rsplit('.', 1)[1]}", args, tuple(kwargs))

    entry(name, **options).makers.append(make)


def methods_of(name: str, **options: Any) -> Callable[[Callable[[Maker], Any]], Callable[[Maker], Any]]:
    """Decorates a function that gives (instance, arguments of `Class.method`, and perhaps {key: text})."""

    def register(function: Callable[[Maker], Any]) -> Callable[[Maker], Any]:
        def make(maker: Maker) -> Call:
            instance, args, *rest = function(maker)
            kwargs = rest[0] if rest else {}
            return Call(name, f"{instance}.{name.rsplit('.', 1)[1]}", tuple(args), tuple(kwargs.items()))

        entry(name, **options).makers.append(make)
        return function

    return register


def operation(name: str, symbol: str, instance: Argument, *others: Argument, **options: Any) -> None:
    """An operator: `operator.symbol(instance, other)`; a reflected one takes the instance last."""

    def make(maker: Maker) -> Call:
        made = rendered(maker, instance)
        args = tuple(rendered(maker, other) for other in others)
        if symbol.startswith("reflected_"):
            return Call(name, f"reflected(operator.{symbol[10:]})", (made, *args), (), 1)
        return Call(name, f"operator.{symbol}", (made, *args), (), 1)

    entry(name, **options).makers.append(make)


def expression(name: str, text: Argument, **options: Any) -> None:
    """An expression that is no call: a constant, an attribute."""

    def make(maker: Maker) -> Call:
        return Call(name, rendered(maker, text))

    entry(name, **{"mutable": False, **options}).makers.append(make)
