"""`cute-py desc`: encode, decode, compare and check tensor maps, and list the eight logical slots."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from cute_py.array_files import check_output
from cute_py.array_headers import truncated
from cute_py.atomic_write import write_whole
from cute_py.cli.arguments import (
    MAX_TEXT,
    add_action,
    driver_version,
    file_of,
    integer,
    json_option,
    only_one,
    report,
    sizes,
    standard_input,
    standard_text,
)
from cute_py.cli.serve_workers import diagnostic_data
from cute_py.errors import FileFormatError, InvalidValueError, ParseError, counted, system_reason
from cute_py.tma.descriptor.data_types import Interleave, L2Promotion, OobFill, TensorMapSwizzle, format_of
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.describe import describe, logical_slots
from cute_py.tma.descriptor.diff import diff
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.fixes import find_changes
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.plain_data import from_json, request_of_npy, to_json
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled, as_member
from cute_py.tma.descriptor.violations import violations

MAP_HELP = (
    "a map: hex, words (0x...), debugger output, a C or Python array, a DESC_TMA512 dump, a file that contains "
    "one of these or the bytes, or - for standard input"
)


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Encodes, decodes, compares and checks tensor maps, without a driver. A map can be a file of bytes or "
        "text, such as the output of a debugger. Every action takes --json."
    )
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)

    e = add_action(actions, "encode", "encode the 128 bytes of a map from sizes, a JSON request or a .npy header")
    _request_arguments(e)
    e.add_argument("--out", help="write the 128 bytes to this file")
    e.add_argument("--driver", type=driver_version, help="encode for this driver version, such as 13000 (CUDA 13.0)")

    d = add_action(actions, "decode", "show the fields of a map, its broken rules and warnings")
    d.add_argument("map", nargs="+", help=MAP_HELP)
    d.add_argument(
        "--view",
        choices=["summary", "fields", "seed001", "slots"],
        default="summary",
        help="summary: sizes, box, swizzle, broken rules; fields: each field with its bits; seed001: the eleven "
        "fields of the reference pages; slots: same as `desc slots`",
    )

    f = add_action(actions, "diff", "compare two maps field by field; the exit status is 1 if they differ")
    f.add_argument("first", help=MAP_HELP)
    f.add_argument("second", help=MAP_HELP)

    c = add_action(
        actions, "check", "list every rule that a map or request breaks; the exit status is 1 if there is one"
    )
    c.add_argument("map", nargs="?", help=MAP_HELP + "; without it, pass a request as for encode")
    _request_arguments(c)

    s = add_action(actions, "slots", "show a map as eight logical slots, and mark those that a device may change")
    s.add_argument("map", help=MAP_HELP)
    for action, runs in ((e, run_encode), (d, run_decode), (f, run_diff), (c, run_check), (s, run_slots)):
        json_option(action, runs)
        action.add_argument("--arch", default="sm_90a", help="the architecture whose rules apply")


def _request_arguments(p: argparse.ArgumentParser) -> None:
    p.add_argument("--request", help="a JSON request: a file, or - for standard input")
    p.add_argument(
        "--npy", help="take shape, strides and type from the header of this .npy file, or from standard input (-)"
    )
    p.add_argument("--dtype", help="element type, such as float16")
    p.add_argument("--dims", type=sizes, help="sizes in elements, innermost first: 512,1024")
    p.add_argument("--strides", type=sizes, default=(), help="strides in bytes, starting with mode 1: 1024")
    p.add_argument("--box", type=sizes, help="box in elements, innermost first; with --npy in the order of the array")
    p.add_argument("--element-strides", type=sizes, help="traversal strides, default 1")
    p.add_argument(
        "--address", type=integer, help="global address, such as 0x7f0000000000; default 0, which no copy can use"
    )
    p.add_argument("--swizzle", default="NONE", help="NONE (the default), 32B, 64B or 128B")
    p.add_argument("--interleave", default="NONE", help="NONE (the default), 16B or 32B")
    p.add_argument("--l2", default="NONE", help="L2 promotion: NONE (the default), 64B, 128B or 256B")
    p.add_argument(
        "--fill", default="NONE", help="out-of-bounds fill: NONE (zeros, the default) or NAN_REQUEST_ZERO_FMA"
    )


def _text(name: str) -> str:
    if name == "-":
        return standard_text()
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_TEXT + 1)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{name}: can't be read: {system_reason(error)}") from None
    if len(data) > MAX_TEXT:
        raise FileFormatError(f"{name}: the file has more than {MAX_TEXT} bytes, the maximum for a request")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileFormatError(f"{name}: the file is not UTF-8 text") from None


def map_of(source: str) -> bytes:
    """The bytes of a tensor map that the command line gives: a file, the text of a map, or `-` for standard input."""
    if source == "-":
        data = standard_input()  # a file with zero bytes, as every map has, is binary; others are text
        return read_map(data if b"\0" in data else data.decode("utf-8", "replace"))
    if os.path.isfile(source):  # the text of a map is too long for a file name; this is not an error
        return read_map(Path(source))
    try:
        return read_map(source)
    except ParseError:
        if "\n" in source or not re.search(r"[./\\]", source[:200]):
            raise
        raise FileFormatError(f"{source[:200]} is neither a file nor the text of a tensor map") from None


def _at_the_end(error: json.JSONDecodeError) -> bool:
    """Whether a JSON error is at the end of its text, so that the text is probably truncated."""
    return error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")


def described_request(options: argparse.Namespace) -> TensorMap:
    """The request that the arguments describe."""
    only_one(options.request, options.npy)
    if options.request is not None:
        text = _text(options.request)
        try:
            parsed = json.loads(text)
        except (RecursionError, ValueError) as error:
            name = "standard input" if options.request == "-" else options.request
            if isinstance(error, json.JSONDecodeError) and _at_the_end(error):
                kept = len(error.doc)
                what = f"truncated JSON: it ends after {counted(kept, 'character')}" if kept else "the file is empty"
                raise FileFormatError(f"{name}: {what}") from None
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise FileFormatError(f"{name}: this is not JSON: {reason}") from None
        return from_json(parsed)
    modes: dict[str, Any] = {
        "swizzle": as_member(TensorMapSwizzle, options.swizzle, "swizzle"),
        "interleave": as_member(Interleave, options.interleave, "interleave"),
        "l2_promotion": as_member(L2Promotion, options.l2, "l2_promotion"),
        "oob_fill": as_member(OobFill, options.fill, "oob_fill"),
    }
    if options.box is None:
        raise InvalidValueError("pass --box with --npy, or with --dtype, --dims and --strides; or pass --request")
    if options.npy is not None:
        if options.npy != "-" and Path(options.npy).exists() and not os.path.isfile(options.npy):
            raise FileFormatError(f"{options.npy or '(empty name)'}: this is not a file")
        with file_of(options.npy) as name:
            if lacking := truncated(name):
                raise FileFormatError(f"{name}: {lacking}")
            return request_of_npy(name, options.box, address=options.address or 0, **modes)
    if options.dtype is None or options.dims is None:
        raise InvalidValueError("pass --dtype and --dims, or --npy, or --request")
    sizes = (options.dims, options.strides, options.box, options.element_strides)
    return TensorMapTiled(format_of(options.dtype), options.address or 0, *sizes, **modes)


def run_encode(options: argparse.Namespace) -> int:
    """Encode a tensor map; print its bytes, and write them to the file of --out."""
    if options.out is not None:
        check_output(options.out)
    request = described_request(options)
    data = encode(request, driver=options.driver, arch=options.arch)
    if options.out is not None:
        write_whole(options.out, data)
    report(options, lambda: {"request": to_json(request), "bytes": data.hex()}, data.hex)
    return 0


def run_decode(options: argparse.Namespace) -> int:
    """Print the fields of the map."""
    data = map_of(" ".join(options.map))  # the shell split the text at blanks
    report(options, lambda: to_json(decode(data)), lambda: describe(data, options.view, arch=options.arch))
    return 0


def run_diff(options: argparse.Namespace) -> int:
    """Print the differences between two maps; return 1 if there are any."""
    if options.first == options.second == "-":
        raise InvalidValueError("standard input can supply only one of the two maps")
    result = diff(map_of(options.first), map_of(options.second))
    found = {"equal": not result, "same_copies": result.same_copies, "differences": [str(d) for d in result.fields]}
    report(options, lambda: found, lambda: result)
    return 1 if result else 0


def _changes(request: TensorMap, arch: str) -> list[str]:
    """List changes that make a request legal and add no hazard."""
    known = {found.rule for found in hazards(request)}
    return [
        text
        for text, changed in find_changes(request)
        if not violations(changed, arch=arch) and all(found.rule in known for found in hazards(changed))
    ]


def run_check(options: argparse.Namespace) -> int:
    """Print errors and hazards; return 1 if a rule is broken."""
    only_one(options.map, options.request, options.npy)
    request: TensorMap = decode(map_of(options.map)) if options.map is not None else described_request(options)
    broken = violations(request, arch=options.arch)
    # Sizes without an address describe no particular tensor yet.
    sized = options.map is None and options.request is None and options.address is None
    harmful = [w for w in hazards(request) if not (sized and w.rule == "null address")]
    changes = _changes(request, options.arch) if broken else []
    lines = [f"broken   {v.message}  [{v.source}]" for v in broken] + [f"warning  {w}" for w in harmful]
    lines += [f"change   {text}; the changed map breaks no rule" for text in changes]
    data = {
        "violations": [v.message for v in broken],
        "warnings": [str(w) for w in harmful],
        "changes": changes,
        "diagnostics": [diagnostic_data(found) for found in (*broken, *harmful)],
        "scope": broken.scope.to_json(),
    }
    sound = f"legal on {options.arch}" if broken.scope.complete else "no broken rule found in what was judged"
    report(options, lambda: data, lambda: "\n".join([*lines, *([] if broken else [sound]), str(broken.scope)]))
    return 1 if broken else 0


def run_slots(options: argparse.Namespace) -> int:
    """Print the eight logical slots of a map."""
    data = map_of(options.map)
    report(options, lambda: [str(s) for s in logical_slots(data)], lambda: describe(data, "slots"))
    return 0
