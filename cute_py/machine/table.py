"""The table of emulated instructions: name -> builder.

Each family of instructions has a file. If an opcode exists for both integers and floats, its type selects the family.
"""

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
    """Return a builder that uses the float instruction if the last type modifier is a float, else the integer
    instruction.
    """
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
"""First word of an opcode -> its builder."""


def decoded(module: Module, kernel: SourceFunction) -> Code:
    """Decode a kernel of a module, with the functions that it calls.

    Raises:
        InvalidValueError: some instructions are not emulated; the error lists them with their lines.
    """
    code = Code(module, kernel, special.TABLE)
    decode_into(code, INSTRUCTIONS)
    return code
