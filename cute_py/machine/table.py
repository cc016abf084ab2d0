"""The table of emulated instructions: name -> builder. A family is a file; what both integers and floats have is
shared out by the type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cute_py.machine.code import Code
from cute_py.machine.decode import Builder, Turn, decode_into
from cute_py.machine.instructions import (
    accesses,
    control,
    conversions,
    floats,
    fragments,
    integers,
    kind_matrices,
    lanes,
    launch_control,
    matrices,
    mbarriers,
    predicates,
    special,
    tensor_matrices,
    transfers,
)
from cute_py.machine.sites import Site
from cute_py.machine.threads import Run
from cute_py.ptx.source import Module, SourceFunction


def _by_type(name: str) -> Builder:
    """The builder of the floats where the last type is one, else that of the integers."""
    whole, real = integers.TABLE[name], floats.TABLE[name]

    def build(site: Site) -> Run | Turn | None:
        kinds = [word for word in site.modifiers if word in floats.TYPES or word in integers.TYPES]
        return real(site) if kinds and kinds[-1] in floats.TYPES else whole(site)

    return build


_FAMILIES: Final = (
    integers, floats, conversions, predicates, accesses, lanes, control, mbarriers, transfers, matrices, kind_matrices,
    fragments, tensor_matrices, launch_control,
)  # fmt: skip
_SHARED: Final = tuple(name for name in integers.TABLE if name in floats.TABLE)

INSTRUCTIONS: Final[Mapping[str, Builder]] = {
    **{name: build for family in _FAMILIES for name, build in family.TABLE.items()},
    **{name: _by_type(name) for name in _SHARED},
}
"""First word of an opcode -> what builds it."""


def decoded(module: Module, kernel: SourceFunction) -> Code:
    """A kernel of a module, ready to run.

    Raises:
        InvalidValueError: instructions that are not emulated; all of them are listed with their lines.
    """
    code = Code(module, kernel, special.TABLE)
    decode_into(code, INSTRUCTIONS)
    return code
