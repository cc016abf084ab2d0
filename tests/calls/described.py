"""An outcome as text that is the same in every process and wherever the code lies: no addresses of objects, no times,
no paths, and names of types without their modules."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import itertools
import os
import re
import types
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

DEPTH = 5
ITEMS = 64

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TIMES = {"seconds", "microseconds", "gigabytes_per_second", "memcpy_microseconds", "percent_of_memcpy"}

_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")
_MODULE = re.compile(r"\b(?:cute_py|tests)(?:\.\w+)*\.(\w+)")
_TIME = re.compile(r"\b\d+(?:\.\d+)?(?:e[-+]?\d+)? ?(?:ms|us|µs|s|seconds|GB/s|MB/s|GiB/s|MiB/s)\b")
_FIELD = re.compile(rf"(['\"]?\b(?:{'|'.join(sorted(TIMES))})['\"]?(?:=|: ?))[-+.\de]+")
_SET = re.compile(r"frozenset\(\{([^{}]*)\}\)")
_HEAP = re.compile(r"\b0x(?!7f0000)[57][0-9a-f]{11}\b")


def _in_order(match: re.Match[str]) -> str:
    return f"frozenset({{{', '.join(sorted(match[1].split(', ')))}}})"


def normalised(text: str) -> str:
    """Text without what differs from process to process, or with the module of a class."""
    text = _HEAP.sub("HEAP", _SET.sub(_in_order, text))
    text = _ADDRESS.sub("", text.replace(_ROOT, "FOLDER").replace(os.getcwd(), "FOLDER"))
    text = _FIELD.sub(r"\1TIME", text)
    return _TIME.sub("TIME", _MODULE.sub(r"\1", text))


def _text_of(value: Any, function: Any) -> str:
    try:
        return normalised(function(value))
    except Exception as error:
        return f"({type(error).__name__})"


def _array(value: Any) -> str:
    if value.dtype == object:
        return f"ndarray object {value.shape} {[described(x) for x in value.reshape(-1)[:ITEMS]]}"
    raw = np.ascontiguousarray(value).tobytes()
    return f"ndarray {value.dtype} {value.shape} {hashlib.sha256(raw).hexdigest()[:16]}"


def described(value: Any, depth: int = DEPTH) -> str:
    """The value as text, with the bytes of its arrays."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool | float | complex):
        return repr(value)
    if isinstance(value, str):
        return repr(normalised(value))
    if type(value) is int:
        return str(value) if -(1 << 256) < value < 1 << 256 else hex(value)
    if isinstance(value, bytes | bytearray):
        return f"{kind} {len(value)} {bytes(value).hex()[:512]}"
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return f"{value.dtype} {value!r}"
    if isinstance(value, enum.Enum):
        return f"{kind}.{value.name}"
    if isinstance(value, types.ModuleType) or inspect.isroutine(value) or isinstance(value, type):
        return f"{kind} {getattr(value, '__name__', '').rsplit('.', 1)[-1]}"
    if depth == 0:
        return f"{kind} ..."
    return f"{kind} {_compound(value, depth - 1)}"


def _compound(value: Any, depth: int) -> str:
    if isinstance(value, Mapping):
        rows = [f"{described(k, depth)}: {described(v, depth)}" for k, v in itertools.islice(value.items(), ITEMS)]
        return f"{len(value)} {{{', '.join(rows)}}}"
    if isinstance(value, Set):
        return f"{len(value)} {sorted(described(x, depth) for x in value)}"
    if isinstance(value, tuple | list):
        return f"{len(value)} [{', '.join(described(x, depth) for x in value[:ITEMS])}]"
    if isinstance(value, Iterator):
        return f"[{', '.join(described(x, depth) for x in itertools.islice(value, ITEMS))}]"
    return _object(value, depth)


def _object(value: Any, depth: int) -> str:
    """str and repr; the fields of a record, whose arrays repr shortens; the attributes of what has no repr."""
    parts = [_text_of(value, str), _text_of(value, repr)]
    names = []
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif type(value).__repr__ is object.__repr__:
        names = sorted(getattr(value, "__dict__", {}))
    for name in names:
        if not name.startswith("_") and name not in TIMES:
            parts.append(f"{name}={described(getattr(value, name, None), depth)}")
    if type(value).__name__ == "Picture":
        parts.append(_text_of(value, lambda picture: picture.svg))
    if type(value).__name__.startswith("TensorMap"):
        from cute_py import tma

        parts.append(_text_of(value, lambda request: repr(tma.to_json(request))))
    return " | ".join(parts)


def refused(error: BaseException) -> str:
    """The type and text of an error, and the facts of one of the package."""
    facts = getattr(error, "facts", None)
    return f"{type(error).__name__}: {_text_of(error, str)} {_text_of(facts, repr) if facts else ''}".rstrip()
