"""`cute-py tma`: compute the box and the partition of a copy from a global layout, a shared layout and a tile, with the
reasons."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final

import cute_py as cute
from cute_py.cli.arguments import integer, json_option, only_one, report, text_of
from cute_py.cli.serve_workers import diagnostic_data
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import as_dtype
from cute_py.errors import GBasisError, InvalidTypeError, InvalidValueError, counted, unless_refused
from cute_py.notation.parse import Parsed
from cute_py.tensor.pointers import Pointer
from cute_py.terminal import print_report
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.partition import tma_partition
from cute_py.tma.atom.tiles import instructions, tile_tensors
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.violations import violations

VIEWS = {
    "explain": "every step from the layouts to the bytes",
    "box": "the G-basis and its stages",
    "partition": "the coordinates and shared offsets of each CTA's instructions",
    "check": "broken rules, and legal settings that are probably unintended",
    "lower": "the stages down to machine code",
    "ptx": "a PTX module for one tile",
    "cu": "a CUDA C++ kernel for one tile",
    "c": "the driver call that encodes the map",
    "cute": "the same in CuTe C++",
    "triton": "the same in Triton",
}
"""Name of a view -> its content."""
USAGE = "%(prog)s [-h] [VIEW] GMEM SMEM [TILE] [options]"
REPORTS = ("explain", "box", "partition", "check")
"""Views that are reports, not the text of a program."""


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.usage = USAGE
    p.description = (
        "GMEM is the layout of the global tensor, in elements. SMEM is the layout of the tile in shared memory. "
        "TILE is the tile, by default the shape of SMEM. Write them as CuTe prints them:  '(1024,512):(512,_1)', "
        "'Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)', '(_128,_64)'. One of them may be - for "
        "standard input. The exit status is 1 if `check` finds a broken rule."
    )
    p.add_argument(
        "operands", nargs="+", metavar="[VIEW] GMEM SMEM [TILE]", help="see above; VIEW is one of the choices of --show"
    )
    p.add_argument("--dtype", help="element type; default: inferred from the texts, otherwise float16")
    p.add_argument("--op", default="SM90_TMA_LOAD", help="operation, such as SM90_TMA_LOAD_MULTICAST")
    p.add_argument("--multicast", type=integer, default=1, help="CTAs that share the tile")
    p.add_argument("--internal-dtype", help="element type of the tensor map, if TMA does not support --dtype")
    p.add_argument("--address", type=integer, help="global address; default 4096")
    p.add_argument("--arch", default="sm_90a", help="target architecture; default sm_90a")
    p.add_argument("--show", choices=list(VIEWS), help="; ".join(f"{k}: {v}" for k, v in VIEWS.items()))
    p.add_argument("--stages", action="store_true", help="same as the view lower")
    p.add_argument("--at", metavar="TILE_COORD", help="lower: the tile, such as 3 or '(1,0)'; default any tile")
    p.add_argument("--device-descriptor", action="store_true", help="lower: make the tensor map on the device")
    p.add_argument("--sass", action="store_true", help="lower: include the machine code; needs the extra sass")
    p.add_argument(
        "--split-oversize", action="store_true", help="split boxes above 256 into several instructions per tile"
    )
    p.add_argument("--no-check", action="store_true", help="show the atom even if the driver would refuse it")
    json_option(p, run)


def view(atom: TmaAtom, name: str, arch: str, at: str | None, device_descriptor: bool, sass: bool) -> str:
    """The text of one of `VIEWS` of an atom. The last three arguments apply only to the view `lower`."""
    if name == "explain":
        return atom.explain()
    if name == "box":
        return f"{atom.gbasis}\n{atom.gbasis.trace}"
    if name == "partition":
        return _partition(atom)
    if name == "check":
        return _check(atom, arch)
    if name == "lower":
        tile: Any = None if at is None else cute.parse(at)
        return str(cute.tma.lower(atom, tile, arch, device_descriptor=device_descriptor, sass=sass))
    text: str = cute.tma.export(atom, name, arch=arch)
    return text


def _partition(atom: TmaAtom) -> str:
    smem, tiled = tile_tensors(atom)
    ctas = cute.Layout(cute.Int(atom.num_multicast))
    lines = []
    for cta in range(atom.num_multicast):
        gmem_part, smem_part = tma_partition(atom, cute.Int(cta), ctas, smem, tiled)
        lines += [f"CTA {cta}", f"  gmem  {gmem_part}", f"  smem  {smem_part}"]
    return "\n".join(lines)


def _check(atom: TmaAtom, arch: str) -> str:
    broken, warned = judged(atom, arch)
    lines = [*map(str, broken), *(f"warning: {found}" for found in warned)]
    return "\n".join(lines) or "no rule is broken, and no hazard is known"


def judged(atom: TmaAtom, arch: str) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return the rules that an atom's tensor map breaks, and the hazards of the map and the atom."""
    return violations(atom.request, arch=arch), [*hazards(atom.request), *atom.check()]


def read_operands(options: argparse.Namespace) -> None:
    """Set `show`, `gmem`, `smem` and `tile` from the arguments of the command line.

    Raises:
        InvalidValueError: there are too few or too many arguments, or two views.
    """
    operands = list(options.operands)
    if operands[0] in VIEWS:
        named = operands.pop(0)
        if options.show not in (None, named):
            raise InvalidValueError(f"--show {options.show} can't be used with the view {named}")
        options.show = named
    lowers = options.stages or options.at is not None or options.device_descriptor or options.sass
    if lowers and options.show not in (None, "lower"):
        text = f"--stages, --at, --device-descriptor and --sass apply to the view lower, not to {options.show}"
        raise InvalidValueError(text)
    options.show = options.show or ("lower" if lowers else "explain")
    if not 2 <= len(operands) <= 3:
        raise InvalidValueError(
            f"got {counted(len(operands), 'operand')}; must be GMEM SMEM or GMEM SMEM TILE, with or without a "
            f"view ({', '.join(VIEWS)}) before them"
        )
    only_one(*operands)
    options.gmem, options.smem, options.tile = [*map(text_of, operands), None][:3]


_OF_WIDTH: Final = {8: "uint8", 16: "float16", 32: "float32", 64: "float64"}


def _width(thing: Parsed) -> int | None:
    """Bits per element, from the pointer of a parsed tensor or of a composed layout such as `Sw<...> o
    smem_ptr[16b](unset) o ...`; None without a pointer."""
    if isinstance(thing, cute.Tensor) and isinstance(thing.engine, Pointer):
        return thing.engine.dtype.bits
    if isinstance(thing, cute.ComposedLayout) and isinstance(thing.offset, cute.SmemPtrFlag):
        return thing.offset.bits
    return None


def _dtype(options: argparse.Namespace) -> str:
    """The element type from --dtype, or else the default type of the width that a pointer in the layouts gives,
    such as smem_ptr[32b].

    Raises:
        InvalidValueError: a pointer has another width than --dtype, or there is no default type of its width.
    """
    widths = set(filter(None, map(_width, map(cute.parse, (options.gmem, options.smem)))))
    if len(widths) == 1 and options.dtype is None:
        (bits,) = widths
        if bits not in _OF_WIDTH:
            raise InvalidValueError(f"the texts have elements of {bits} bits", hint="pass their type as --dtype")
        return _OF_WIDTH[bits]
    dtype: str = options.dtype or "float16"
    if wrong := sorted(widths - {as_dtype(dtype).bits}):
        raise InvalidValueError(
            f"the element type {dtype} has {as_dtype(dtype).bits} bits, but a text has elements of {wrong[0]} bits"
        )
    return dtype


def _gmem(options: argparse.Namespace) -> cute.Tensor:
    """The global tensor: a layout at --address, or a tensor that CuTe printed with its pointer."""
    given = cute.parse(options.gmem)
    address = options.address
    if isinstance(given, cute.Tensor) and isinstance(given.engine, Pointer):
        address = given.engine.address if options.address is None else address
        given = given.layout
    if not isinstance(given, cute.Layout) or cute.coprofile(given) != 0:
        raise InvalidTypeError(f"the global tensor is {options.gmem!r}; must be a layout such as (1024,512):(512,_1)")
    return cute.make_tensor(cute.make_gmem_ptr(4096 if address is None else address, _dtype(options)), given)


def _atom(options: argparse.Namespace, smem: str) -> TmaAtom:
    shared = cute.parse(smem)
    if not isinstance(shared, (cute.Layout, cute.ComposedLayout, cute.Tensor)):
        raise InvalidTypeError(f"the shared tile is {smem!r}; must be a layout such as (_128,_64):(_64,_1)")
    return make_tma_copy(
        options.op,
        _gmem(options),
        shared,
        options.tile,
        options.multicast,
        options.internal_dtype,
        options.arch,
        check=not (options.no_check or options.show == "check"),
        split_oversize=options.split_oversize,
    )


def _static_sizes(options: argparse.Namespace) -> str | None:
    """Suggest the shared layout with static sizes (`_128` instead of `128`), if that is enough to make the atom."""
    before, joint, layout = options.smem.rpartition(" o ")
    static = before + joint + re.sub(r"(?<![\w@])(\d+)", r"_\1", layout)
    if unless_refused(_atom, options, static) is None:
        return None
    return f"write sizes known at compile time with _: {static!r}"


def run(options: argparse.Namespace) -> int:
    """Show the atom. Returns 1 if the view is `check` and a rule is broken, else 0."""
    read_operands(options)
    try:
        atom = _atom(options, options.smem)
    except GBasisError as error:
        raise GBasisError(error.condition, error.facts, _static_sizes(options) or error.hint) from None
    broken, warned = judged(atom, options.arch)
    text = view(atom, options.show, options.arch, options.at, options.device_descriptor, options.sass)
    found = {
        "violations": list(map(str, broken)),
        "warnings": list(map(str, warned)),
        "diagnostics": [diagnostic_data(found) for found in (*broken, *warned)],
        "show": options.show,
        "text": text,
    }
    say = print_report if options.show in REPORTS else print
    report(options, lambda: {**_data(atom), **found}, lambda: text, say)
    return 1 if broken and options.show == "check" else 0


def _data(atom: TmaAtom) -> dict[str, object]:
    """The data that --json prints for an atom."""
    work = instructions(atom)
    return {
        "g_basis": str(atom.gbasis),
        "stages": {name: str(value) for name, value, _ in atom.gbasis.trace.steps()},
        "tma_tensor": str(atom.get_tma_tensor()),
        "partition": {"gmem": str(work.gmem_partition), "smem": str(work.smem_partition)},
        "global_dim": list(atom.plan.dims),
        "global_strides": list(atom.plan.strides),
        "box_dim": list(atom.plan.box),
        "swizzle": atom.swizzle_row.name,
        "instructions_per_tile": atom.instructions,
        "tiles": work.tiles,
        "transaction_bytes": atom.transaction_bytes,
        "alignment": atom.alignment,
    }
