"""One copy in the form that another program takes: CUDA C++, PTX, the driver call, CuTe C++, Triton."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from cute_py.argument_checks import expect
from cute_py.errors import EmissionError, FileFormatError, InvalidTypeError, InvalidValueError, given
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.dialect.copy_shape import CopyShape, choose_witness, copy_shape_of
from cute_py.tma.dialect.legacy_copy import legacy_ptx
from cute_py.tma.exports.cuda import cuda_kernel, encode_call
from cute_py.tma.exports.frameworks import cute_cpp, triton
from cute_py.tma.exports.single_tile import single_tile_ptx

KINDS: dict[str, str] = {
    "cu": ".cu",
    "ptx": ".ptx",
    "c": ".c",
    "cute": ".cute.cu",
    "triton": ".py",
}
"""Kind of export -> ending of its file."""


def _request(atom: Any, request: Any, kind: str) -> Any:
    found = request if request is not None else getattr(atom, "request", None)
    if found is None:
        raise EmissionError(f"export {given(kind)} needs a tensor map request", {"given": type(atom).__name__})
    return found


def export(atom: Any, kind: str, *, request: Any = None, arch: str = "sm_90a") -> str:
    """The text of one export of a copy.

    Args:
        atom: a TMA atom, or a `CopyShape`.
        kind: "cu" a CUDA C++ kernel for one tile; "ptx" a module for one tile (without TMA before sm_90); "c" the
            cuTensorMapEncode* call with literal arguments; "cute" CuTe C++; "triton" a Triton kernel.
        request: the tensor map request; taken from the atom if not given. Needed for "c", "cute" and "triton".
        arch: for "ptx".
    Raises:
        InvalidValueError: no such kind or architecture.
        EmissionError: the copy has no such form, or the request is missing or not tiled.
    """
    expect(kind, str, "the kind of an export")
    if kind not in KINDS:
        raise InvalidValueError(f"export {given(kind)}; expected one of {', '.join(KINDS)}")
    if kind == "c":
        return encode_call(_request(atom, request, kind))
    shape: CopyShape = copy_shape_of(atom)
    if kind == "cu":
        return cuda_kernel(shape)
    if kind == "ptx":
        tma = choose_witness(shape, arch).is_tma
        return single_tile_ptx(shape, arch) if tma else legacy_ptx(shape, arch)
    tiled = _request(atom, request, kind)
    if not isinstance(tiled, TensorMapTiled):
        raise EmissionError(f"export {given(kind)} needs a tiled request; got {type(tiled).__name__}")
    return cute_cpp(shape, tiled) if kind == "cute" else triton(shape, tiled)


def write_export(atom: Any, kind: str, path: str | Path, *, request: Any = None, arch: str = "sm_90a") -> Path:
    """Write one export to a file; the kind's ending is added if the path has none.

    Raises:
        InvalidValueError, EmissionError: as `export`.
        FileFormatError: the file can't be written.
    """
    text = export(atom, kind, request=request, arch=arch)
    if not isinstance(path, (str, PathLike)):
        raise InvalidTypeError(f"path must be a text or a path, got {type(path).__name__} {given(path)}")
    target = Path(path)
    if not target.name:
        raise InvalidValueError(f"path = {given(path)}; must end in the name of a file")
    if not target.suffix:
        target = target.with_name(target.name + KINDS[kind])
    try:
        target.write_text(text if text.endswith("\n") else text + "\n")
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise FileFormatError(f"{given(str(target))}: can't be written: {error}") from None
    return target
