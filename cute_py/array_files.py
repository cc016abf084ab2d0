"""Read and write tensors in .npy, .npz and .safetensors files. Each error about a file is one line long.

Arrays are numpy arrays; bfloat16 and 8-bit floats use the types of ml_dtypes. The header is checked before anything is
unpacked, so that a small archive that would need a lot of memory is refused immediately. Files are written atomically:
each is written under a temporary name and then renamed.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, TypeAlias

from cute_py.array_headers import HEADER_BYTES, NPY_MAGIC, npy_header, npy_lacks, truncated
from cute_py.atomic_write import unwritable_reason, write_whole
from cute_py.dtypes import SAFETENSORS_TYPES, as_dtype
from cute_py.errors import FileFormatError, counted, imported, shortened
from cute_py.tma.descriptor.fields import MAX_RANK

if TYPE_CHECKING:
    import zipfile

    import numpy
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[numpy.generic]"
SUFFIXES = (".npy", ".npz", ".safetensors")


def read_array(path: str, key: str | None = None, dtype: str | None = None) -> Array:
    """Read one array from a file.

    Args:
        key: name of the array in a .npz or .safetensors file; optional if the file holds one array.
        dtype: reinterpret the elements as this type, which has the same width ('bf16' for the uint16 elements of a
            .npy).
    Raises:
        FileFormatError: the file can't be read or has another format, the key is unknown, or a GPU tensor can't hold
            the array.
    """
    suffix = _suffix(path, SUFFIXES)
    if not os.path.exists(path):
        raise FileFormatError(f"{path}: no such file")
    if not os.path.isfile(path):
        raise FileFormatError(f"{path}: not a file")
    if suffix == ".npy" and key is not None:
        raise FileFormatError(f"{path}: a .npy file holds one array without a name; --key {key} is for .npz")
    array = _safetensors(path, key) if suffix == ".safetensors" else _numpy(path, key)
    return _checked(path, array, dtype)


def _suffix(path: str, suffixes: tuple[str, ...]) -> str:
    suffix = Path(path).suffix.lower()
    if suffixes and suffix not in suffixes:
        raise FileFormatError(f"{path}: unknown file type {suffix or '(none)'}; must be .npy, .npz or .safetensors")
    return suffix


@contextmanager
def _reading(path: str, what: str) -> Iterator[None]:
    """Convert any exception that a library raises for a damaged file to a `FileFormatError` of one line."""
    try:
        yield
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(f"{path}: {what}: {truncated(path) or _reason(error)}") from None


def _numpy(path: str, key: str | None) -> Array:
    import numpy as np

    with ExitStack() as stack:  # numpy leaves a damaged archive open
        with _reading(path, "can't be read as a numpy file"):
            file = stack.enter_context(open(path, "rb"))
            magic = file.read(len(NPY_MAGIC))
            file.seek(0)
            if magic == NPY_MAGIC:
                _check_npy(path, file, os.fstat(file.fileno()).st_size)
                file.seek(0)
            with warnings.catch_warnings():  # numpy warns about old headers, and about errors in one before it refuses
                warnings.simplefilter("ignore")
                loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            if key is not None:
                raise FileFormatError(f"{path}: it holds one array without a name; --key {key} is for .npz")
            return loaded
        stack.enter_context(loaded)
        name = _pick(path, list(loaded.files), key)
        with _reading(path, f"array {name!r} can't be read"):
            _check_entry(path, loaded.zip, name)
            array = loaded[name]
        if not isinstance(array, np.ndarray):
            raise FileFormatError(f"{path}: entry {name!r} is not an array")
        return array


def _check_entry(path: str, archive: zipfile.ZipFile, name: str) -> None:
    """Refuse an entry of a .npz that is not an array, or whose header describes an unsupported or truncated array."""
    info = archive.getinfo(name if name in archive.namelist() else f"{name}.npy")
    with archive.open(info) as stream:
        if stream.read(len(NPY_MAGIC)) != NPY_MAGIC:
            raise FileFormatError(f"{path}: entry {name!r} is not an array")
    with archive.open(info) as stream:
        _check_npy(path, stream, info.file_size)


def _check_npy(path: str, stream: IO[bytes], size: int) -> None:
    """Refuse a .npy of `size` bytes if its header describes an unsupported or truncated array."""
    start = stream.read(HEADER_BYTES)
    shape, dtype, _ = npy_header(start)
    _check_header(path, shape, dtype)
    if lacking := npy_lacks(start, size):
        raise FileFormatError(f"{path}: {lacking}")


def _reason(error: Exception) -> str:
    """One short line that explains why the library that read a file raised `error`."""
    lines = str(error).splitlines()
    text = lines[0] if lines else ""
    if "malformed node" in text:  # a Python expression, as Python's parser puts it
        return "its header is malformed"
    if isinstance(error, MemoryError):
        return "its header asks for more memory than is available"
    if "allow_pickle" in text or "pickled" in text:
        return "it holds Python objects, or is not a numpy file"
    if type(error).__name__ == "BadZipFile":
        return f"a damaged archive ({text})" if text else "a damaged archive"
    if type(error).__name__ == "SafetensorError":
        return f"a damaged header ({shortened(text.rpartition('header: ')[2] or text)})"
    if not isinstance(error, (OSError, ValueError, EOFError)):
        return "its header is malformed"
    return shortened(text) or "its header is malformed"


def _listed(names: list[str], limit: int = 20) -> str:
    """The names in alphabetical order, joined by commas; names after the first `limit` are only counted.

    >>> _listed(["b", "a"]), _listed(["x"] * 3, 2)
    ('a, b', 'x, x, ... (3 in all)')
    """
    shown = [name if name.isprintable() else repr(name) for name in sorted(names)[:limit]]
    more = [f"... ({len(names)} in all)"] if len(names) > limit else []
    return ", ".join(shown + more) or "none"


def _pick(path: str, names: list[str], key: str | None) -> str:
    if not names:
        raise FileFormatError(f"{path}: the file holds no array")
    if key is None:
        if len(names) == 1:
            return names[0]
        raise FileFormatError(f"{path}: the file holds {len(names)} arrays; choose one with --key: {_listed(names)}")
    if key not in names:
        raise FileFormatError(f"{path}: the file has no array {key!r}; it holds {_listed(names)}")
    return key


def _package(module: str, doing: str) -> ModuleType:
    return imported(module, f"{doing} .safetensors", "safetensors", "pip install 'cute-py[cli]'")


def _safetensors(path: str, key: str | None) -> Array:
    import numpy as np

    safetensors = _package("safetensors", "reading")
    with _reading(path, "can't be read as a safetensors file"):
        with safetensors.safe_open(path, framework="numpy") as file:
            name = _pick(path, list(file.keys()), key)
            kind = str(file.get_slice(name).get_dtype())
            try:
                array: Array = file.get_tensor(name)
                return array
            except (AttributeError, KeyError, TypeError):  # a type that numpy itself lacks
                entry = None
        if kind in SAFETENSORS_TYPES:
            with open(path, "rb") as raw:
                entry = dict(safetensors.deserialize(raw.read()))[name]
    if entry is None:
        raise FileFormatError(f"{path}: elements of type {kind} are not supported")
    data = np.frombuffer(bytearray(entry["data"]), as_dtype(SAFETENSORS_TYPES[kind]).numpy)
    return data.reshape(entry["shape"])


def _check_header(path: str, shape: tuple[int, ...], dtype: numpy.dtype[numpy.generic]) -> None:
    """Refuse an array whose shape or element type a tensor can't have."""
    if dtype.hasobject:
        raise FileFormatError(f"{path}: elements are Python objects; a tensor holds numbers")
    if dtype.byteorder == ">":
        raise FileFormatError(
            f"{path}: elements are big-endian ({dtype.str}); GPUs are little-endian: "
            "convert with array.astype(array.dtype.newbyteorder('<'))"
        )
    if dtype.names or dtype.subdtype:
        raise FileFormatError(f"{path}: elements are records ({shortened(str(dtype))}); a tensor holds numbers")
    if any(n < 0 for n in shape):
        raise FileFormatError(f"{path}: shape {shortened(str(shape))} has a negative size")
    if math.prod(shape) == 0:
        raise FileFormatError(f"{path}: shape {shortened(str(shape))} has no elements")
    if not 1 <= len(shape) <= MAX_RANK:
        raise FileFormatError(f"{path}: {len(shape)} dimensions; a TMA tensor has 1 to 5")


def _checked(path: str, array: Array, dtype: str | None) -> Array:
    _check_header(path, array.shape, array.dtype)
    width = array.dtype.itemsize
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise FileFormatError(f"{path}: the array is not contiguous")
    if dtype is not None:
        wanted = as_dtype(dtype)
        if wanted.numpy.itemsize != width:
            raise FileFormatError(
                f"{path}: {wanted} has {counted(wanted.numpy.itemsize, 'byte')}, the file's {array.dtype} has "
                f"{width}; --dtype names a type of the same width"
            )
        array = array.view(wanted.numpy)
    elif array.dtype.type.__name__ == "void":
        example = "float8_e4m3fn" if width == 1 else "bf16"
        raise FileFormatError(
            f"{path}: elements have no type ({array.dtype}); name it with --dtype, for example {example}"
        )
    try:
        as_dtype(array.dtype)
    except Exception:
        raise FileFormatError(f"{path}: no GPU element type for numpy dtype {array.dtype}") from None
    return array


def write_array(path: str, array: Array, key: str = "tensor") -> str:
    """Write an array atomically. Return a warning, or an empty string.

    The formats .npy and .npz have no bfloat16 or 8-bit floats; the bits of such elements are written as unsigned
    integers.
    """
    import numpy as np

    suffix = check_output(path, SUFFIXES)
    note = ""
    if suffix != ".safetensors" and array.dtype.type.__module__ != "numpy":
        note = f"{array.dtype} has no .npy type: its bits are written as uint{array.dtype.itemsize * 8}"
        array = array.view(f"u{array.dtype.itemsize}")

    def fill(file: IO[bytes]) -> None:
        if suffix == ".npy":
            np.save(file, array)
        elif suffix == ".npz":  # by hand, as np.savez takes names such as 'file' for its own arguments
            import zipfile  # loads five packers: other suffixes need none

            with zipfile.ZipFile(file, "w") as archive, archive.open(f"{key}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        else:
            file.write(_serialized(array, key))

    write_whole(path, fill)
    return note


def check_output(path: str, suffixes: tuple[str, ...] = ()) -> str:
    """Refuse a path that no file can be written to, before any work is done. Return the suffix of the path.

    A symbolic link is treated as its target; see `atomic_write`.

    Raises:
        FileFormatError: the suffix is not one of `suffixes`, the folder does not exist, or the path is not a plain file
            or is a link to itself.
    """
    suffix = _suffix(path, suffixes)
    reason = unwritable_reason(path)
    if reason is not None:
        raise FileFormatError(f"{path or '(empty name)'}: can't be written: {reason}")
    return suffix


def _serialized(array: Array, key: str) -> bytes:
    import numpy as np

    save = _package("safetensors.numpy", "writing").save
    name = as_dtype(array.dtype).name
    if name not in SAFETENSORS_TYPES.values():
        raise FileFormatError(f"safetensors has no type for {name}")
    return bytes(save({key: np.ascontiguousarray(array)}))
