"""All entries: those that are written, and those that follow from the class (attributes, enumerators, constants)."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect

from tests.calls import surface
from tests.calls.call import REGISTRY, Call, Entry, Make, expression, method
from tests.calls.instances import INSTANCES, Instance

MODULES = (
    "layouts",
    "tensors",
    "descriptors",
    "atoms",
    "lowering",
    "running",
    "tensor_memory",
    "threads",
    "drawing",
    "sharded",
    "scaled",
    "encodings",
    "commands",
)

PROTOCOL = "a protocol that other classes fulfil; it has no objects of its own"
ON_A_GPU = "of an object that only a GPU makes; tests/gpu"
PREPARED = ("blocks", "check", "kernels", "launch", "machine_launches", "moved", "owned", "prepare", "update_graph")

EXCEPTIONS: dict[str, str] = {
    "IntegerModule": PROTOCOL,
    "IntegerModule.__add__": PROTOCOL,
    "IntegerModule.__rmul__": PROTOCOL,
    "tma.TransactionBarrier": PROTOCOL,
    "tma.TransactionBarrier.expect_tx": PROTOCOL,
    **{f"tma.PreparedCopy.{name}": ON_A_GPU for name in PREPARED},
    **{f"tma.PreparedGemm.{name}": ON_A_GPU for name in ("check", "launch")},
    **{f"tma.Device.{name}": ON_A_GPU for name in ("make_current", "synchronize", "wait_for")},
}
"""Public names without a call, each with its reason."""


@functools.cache
def registry() -> dict[str, Entry]:
    """Name -> entry, of every public name."""
    for module in MODULES:
        importlib.import_module(f"tests.calls.{module}")
    _derive_names()
    _derive_members()
    for name, entry in REGISTRY.items():
        if entry.room not in MODULES:
            entry.room = _room(name)
    return dict(sorted(REGISTRY.items()))


def _room(name: str) -> str:
    """The module of the class, or that of most names of the package."""
    of_class = REGISTRY.get(name.rpartition(".")[0])
    if of_class is not None and of_class.room in MODULES:
        return of_class.room
    prefix = name.partition(".")[0]
    return {
        "tma": "atoms",
        "tmem": "tensor_memory",
        "draw": "drawing",
        "testing": "drawing",
        "mesh": "sharded",
        "formats": "scaled",
    }.get(prefix, "layouts")


def _derive_names() -> None:
    for name, value in surface.exported().items():
        if name in REGISTRY or name in EXCEPTIONS:
            continue
        if inspect.isclass(value) and issubclass(value, Exception):
            continue
        if inspect.isclass(value) and issubclass(value, enum.Enum):
            members = sorted(value.__members__)
            expression(name, _enumerator(name, members), weight=0.4, mutable=True)
            REGISTRY[name].makers.append(_by_name(name, members))
            REGISTRY[name].makers.append(_by_value(name, members))
        elif not callable(value):
            expression(name, name if "." in name else f"cute_py.{name}", weight=0.03)


def _by_name(name: str, members: list[str]) -> Make:
    return lambda maker: Call(name, "operator.getitem", (name, repr(maker.choice(members))), (), 1)


def _by_value(name: str, members: list[str]) -> Make:
    return lambda maker: Call(name, name, (f"{name}.{maker.choice(members)}.value",))


def _enumerator(name: str, members: list[str]) -> Instance:
    return lambda maker: f"{name}.{maker.choice(members)}"


def instance_of(name: str) -> Instance | str | None:
    """Text of an object of a public class."""
    if name in INSTANCES:
        return INSTANCES[name]
    value = surface.exported()[name]
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return _enumerator(name, sorted(value.__members__))
    if name in REGISTRY:
        return lambda maker: maker.choice(REGISTRY[name].makers)(maker).text
    return None


def _derive_members() -> None:
    """Attributes, and methods without arguments, of the object that `instance_of` gives."""
    for name, member in surface.members().items():
        kind, attribute = name.rsplit(".", 1)
        instance = instance_of(kind)
        if name in REGISTRY or name in EXCEPTIONS or instance is None:
            continue
        if surface.is_attribute(member):
            expression(name, _read(instance, attribute), weight=0.05)
        elif not attribute.startswith("__") and _takes_nothing(member):
            method(name, instance, weight=0.3, device=kind in REGISTRY and REGISTRY[kind].device)


def _read(instance: Instance | str, attribute: str) -> Instance:
    return lambda maker: f"{instance if isinstance(instance, str) else instance(maker)}.{attribute}"


def _takes_nothing(member: object) -> bool:
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
