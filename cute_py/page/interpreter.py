"""Python for the page: CPython for WebAssembly from the npm package `pyodide`, packed with this library into strings.

Nothing is downloaded: the package comes from a folder that npm created (`npm install pyodide`). If node is installed,
the modules for the first answer are compiled to byte code in advance, so that the page starts sooner. Pyodide is
distributed under the Mozilla Public License 2.0, CPython under the PSF License 2.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from cute_py.argument_checks import expect_path
from cute_py.errors import CuteError, FileFormatError, given

VARIABLE: Final = "CUTE_PY_PYODIDE"
"""Environment variable that names the folder of the package."""
VERSION: Final = "314.0.7"
"""The version that is tested."""
LICENCE: Final = "Mozilla Public License 2.0"
FILES: Final = {
    "wasm": "pyodide.asm.wasm",
    "glue": "pyodide.asm.mjs",
    "loader": "pyodide.js",
    "stdlib": "python_stdlib.zip",
}
LOCK: Final = "pyodide-lock.json"
LEFT_OUT: Final = (
    "checkpoints", "cli", "instructions", "jax", "judgement", "testing", "torch", "watch", "web", "__pycache__",
)  # fmt: skip
"""Folders of this library that no answer needs."""
STANDARD_LEFT_OUT: Final = (
    "_pyrepl", "ensurepip", "idlelib", "imaplib.py", "mailbox.py", "multiprocessing", "pickletools.py", "pydoc_data",
    "smtplib.py", "sqlite3", "tkinter", "turtledemo", "unittest", "venv", "wsgiref", "xmlrpc",
)  # fmt: skip
"""Packages and modules of the standard library that no answer needs."""
COMPILE_SECONDS: Final = 600


def find_interpreter(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of the package `pyodide`: the given folder, or else the environment variable `CUTE_PY_PYODIDE`, or
    else `node_modules` in the current folder or a parent. None if there is none.

    Raises:
        FileFormatError: the named folder is not that package. InvalidTypeError: `folder` is not a path.
    """
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if named is not None and named != "":
        found = expect_path(named, "the folder of the interpreter")
        if not _is_package(found):
            raise FileFormatError(
                f"{given(str(found))} is not the npm package pyodide", {"needed": ", ".join(FILES.values())}
            )
        return found
    here = Path.cwd()
    for place in (here, *here.parents):
        if _is_package(place / "node_modules" / "pyodide"):
            return place / "node_modules" / "pyodide"
    return None


def _is_package(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (*FILES.values(), "pyodide.mjs", LOCK, "package.json"))


def interpreter_version(folder: Path) -> str:
    """The version of the package `pyodide` in a folder."""
    return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"])


def lock_of(folder: Path) -> dict[str, Any]:
    """The lock file for the loader, which lists the interpreter and no packages."""
    return {"info": json.loads((folder / LOCK).read_text(encoding="utf-8"))["info"], "packages": {}}


def packed_interpreter(folder: Path, *, compiled: bool = True) -> dict[str, str]:
    """The interpreter and this library as strings: gzip, then base64.

    Args:
        folder: the folder of the package. compiled: whether to compile modules in advance, if node is installed.
    """
    library = library_zip()
    if compiled and (node := shutil.which("node")):
        with contextlib.suppress(CuteError):  # slower to start, and otherwise the same
            library = _compiled(library, folder, node)
    texts = {name: _text((folder / file).read_bytes()) for name, file in FILES.items() if name != "stdlib"}
    return {
        **texts,
        "stdlib": _text(_stored((folder / FILES["stdlib"]).read_bytes())),
        "library": _text(_stored(library)),
    }


def _text(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def _stored(archive: bytes) -> bytes:
    """Rewrite a zip archive without compression: it then compresses better as a whole, and is read faster."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        needed = [name for name in source.namelist() if name.partition("/")[0] not in STANDARD_LEFT_OUT]
        names = sorted(needed, key=lambda name: (name.rpartition(".")[2], name))
        return _archive(names, source.read)


def _archive(names: list[str], read: Callable[[str], bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for name in names:
            target.writestr(zipfile.ZipInfo(name), read(name))  # without a date: the same bytes each time
    return out.getvalue()


def library_zip() -> bytes:
    """The modules and tables of this library as a zip archive that Python can import them from."""
    files: dict[str, Traversable] = {}

    def walk(folder: Traversable, path: str) -> None:
        for entry in sorted(folder.iterdir(), key=lambda one: one.name):
            if entry.is_dir() and entry.name not in LEFT_OUT:
                walk(entry, f"{path}/{entry.name}")
            elif entry.name.endswith((".py", ".toml", ".txt")):
                files[f"{path}/{entry.name}"] = entry

    walk(resources.files("cute_py"), "cute_py")
    return _archive(list(files), lambda name: files[name].read_bytes())


def _compiled(library: bytes, folder: Path, node: str) -> bytes:
    """The archive of the library with byte code, which the interpreter of the page compiles in node.

    Raises:
        FileFormatError: node or the interpreter fails.
    """
    script = resources.files("cute_py.page").joinpath("web", "compile.mjs").read_text(encoding="utf-8")
    with TemporaryDirectory() as place:
        source, target, program = (Path(place) / name for name in ("source.zip", "target.zip", "compile.mjs"))
        source.write_bytes(library)
        program.write_text(script, encoding="utf-8")
        command = [node, str(program), str(folder.resolve()), str(source), str(target)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=COMPILE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FileFormatError(f"node can't compile the library: {error}") from None
        if done.returncode or not target.is_file():
            raise FileFormatError(
                "node can't compile the library", {"said": done.stderr[-400:].decode(errors="replace")}
            )
        return target.read_bytes()
