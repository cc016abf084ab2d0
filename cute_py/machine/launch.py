"""The arguments of a kernel: arrays become ranges of global memory, numbers and structures become the bytes of the
parameters.

Arrays that share host memory share addresses too, at the same distances. The machine replaces the address in a tensor
map by the address that it gives to the map's array.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from cute_py.argument_checks import expect_integer, expect_items, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, UnknownFactError, counted, given
from cute_py.machine.code import Code
from cute_py.machine.memory import Memory
from cute_py.machine.threads import Array
from cute_py.ptx.parse import Variable
from cute_py.ptx.source import Module
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.fields import MAP_BYTES
from cute_py.tma.descriptor.replace import replace
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.emulator.memory import Range

_REQUESTS: Final = (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)
_FLOATS: Final = {"f16": "<e", "f32": "<f", "f64": "<d"}
Triple = tuple[int, int, int]


class HasKernel(Protocol):
    """Protocol of an object with a CUDA C++ kernel and its launch parameters."""

    @property
    def name(self) -> str:
        """Name of the entry point."""

    @property
    def text(self) -> str:
        """CUDA C++ source of the kernel, without headers."""

    @property
    def threads(self) -> int:
        """Number of threads in a CTA."""

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a CTA, in bytes."""

    @property
    def cluster(self) -> int:
        """Number of CTAs in a cluster, all along x."""

    @property
    def arch(self) -> str:
        """Target architecture of the compiler, such as 'sm_90a'."""


@dataclass(frozen=True, slots=True, eq=False)
class Extended:
    """An array with bytes at both ends that belong to other objects. A kernel may read them as parts of whole words. A
    run neither compares nor restores them, because other code may change them at any time.

    front, back: the number of these bytes before and after the array's own bytes.
    """

    array: Array
    front: int
    back: int


@dataclass(frozen=True, slots=True, eq=False)
class MachineLaunch:
    """A launch: a kernel with its grid and arguments.

    memory: other arrays that the kernel accesses, by name.
    """

    kernel: HasKernel
    grid: int | tuple[int, ...]
    args: tuple[Any, ...]
    memory: Mapping[str, Array | Extended] = field(default_factory=dict)


class HasLaunches(Protocol):
    """Protocol of an object that defines its own kernel launches."""

    def machine_launches(self, args: Sequence[Any]) -> Sequence[MachineLaunch]:
        """Return the kernel launches for these arguments."""


def triple(value: object, what: str) -> Triple:
    """Pad one to three sizes to a triple; a missing size is 1.

    >>> triple(4, "grid"), triple((2, 3), "grid")
    ((4, 1, 1), (2, 3, 1))
    """
    items = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(items) <= 3:
        raise InvalidValueError(f"{what} has {len(items)} numbers; must have 1 to 3")
    numbers = [expect_integer(item, what, 1, (1 << 31) - 1) for item in items]
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def is_array(value: object) -> bool:
    """Whether a value is an array in host memory. A class such as `numpy.float16` has the attributes, but no memory."""
    if isinstance(value, type):
        return False
    return isinstance(value, np.ndarray) or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def host_array(value: Any, what: str) -> Array:
    """Return an argument as a numpy array over the same memory.

    Raises:
        InvalidTypeError: the argument is not a contiguous array in host memory.
    """
    if isinstance(value, np.ndarray):
        array = value
    else:
        try:
            array = np.asarray(value) if hasattr(value, "__array_interface__") else np.from_dlpack(value)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise InvalidTypeError(f"{what} must be an array in host memory: {error}") from None
    if array.dtype.hasobject:
        raise InvalidTypeError(f"{what} must be an array of numbers, got {array.dtype}")
    if not array.flags.c_contiguous:
        raise InvalidTypeError(f"{what} must be contiguous", hint="use numpy.ascontiguousarray")
    return array


def _is_global(value: object) -> bool:
    """Whether a value is an array that becomes a range of global memory. A numpy scalar is passed by value."""
    return is_array(value) and not isinstance(value, np.generic)


def _contains_pointers(value: object) -> bool:
    """Whether a value is a pair of a structure or an array and its pointers by offset."""
    return isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[1], Mapping)


class Arguments:
    """The arrays and the parameter bytes of a launch.

    Args:
        values: one value for each parameter. `None` is a null pointer, a pair (map, array) is a tensor map, and a pair
            (bytes, {offset: array or map}) is a structure that contains pointers or maps. With an array in place of the
            bytes, the array in global memory contains them: each run stores the addresses or maps in it.
        arch: the architecture that tensor maps are encoded for.
    Raises:
        InvalidTypeError, InvalidValueError: a value does not fit its parameter, or the number of values is wrong.
    """

    def __init__(
        self,
        parameters: Sequence[Variable],
        values: Sequence[Any],
        memory: Mapping[str, Array | Extended] | None = None,
        arch: str = "sm_90a",
    ) -> None:
        self.parameters, self.arch = parameters, arch
        self.unknown_maps: dict[bytes, TensorMap] = {}
        """Bytes that represent a map with unknown bits -> its request."""
        self._assumed: list[tuple[int, str]] = []
        """(index, name) of each trailing pointer that was not passed, so it is null."""
        values = expect_items(values, "args")
        if len(values) != len(parameters):
            rest = parameters[len(values) :]
            if len(values) > len(parameters) or any(one.kind not in ("u64", "b64") for one in rest):
                text = f"{counted(len(values), 'argument')}; the kernel has {counted(len(parameters), 'parameter')}"
                raise InvalidValueError(text, {"parameters": ", ".join(f"{p.name} ({_type(p)})" for p in parameters)})
            self._assumed = [(len(values) + i, one.name) for i, one in enumerate(rest)]
            values = (*values, *[None] * len(rest))
        self.values = list(values)
        self.arrays: dict[str, Array] = {}
        """Name -> array."""
        self._foreign: dict[str, tuple[int, int]] = {}
        """Name of an `Extended` -> (bytes before, bytes after) its own bytes."""
        for name, held in (memory or {}).items():
            self.arrays[name] = held.array if isinstance(held, Extended) else held
            if isinstance(held, Extended):
                self._foreign[name] = held.front, held.back
        for place, value in enumerate(self.values):
            self._collect(f"argument {place}", value)
        self._groups = _grouped(self.arrays)

    def assumed(self, code: Code) -> tuple[str, ...]:
        """Text about each pointer that was not passed, if the kernel reads it."""
        read = {operand.base for one in code.kernel.instructions for operand in one.operands} if self._assumed else ()
        return tuple(
            f"argument {place} ({name}) is a null pointer, because it was not passed"
            for place, name in self._assumed
            if name in read
        )

    def _collect(self, name: str, value: Any) -> None:
        if _contains_pointers(value):
            if _is_global(value[0]):
                self.arrays[name] = held = host_array(value[0], name)
                if not held.flags.writeable:
                    raise InvalidTypeError(f"{name} must be writable, because each run stores addresses in it")
            for offset, one in value[1].items():
                self._collect(f"{name}, byte {offset}", one)
        elif isinstance(value, (tuple, list)) and len(value) == 2 and is_array(value[1]):
            self.arrays[name] = host_array(value[1], name)
        elif _is_global(value):
            self.arrays[name] = host_array(value, name)

    def _own(self) -> Iterator[tuple[str, list[Array]]]:
        """Yield the name of each group of writable arrays, and views of the bytes that belong to its arrays."""
        for name, raw, members in self._groups:
            if not raw.flags.writeable:
                continue
            spans = []
            for member, at in members.items():
                if member in self._foreign:
                    front, back = self._foreign[member]
                    spans.append((at + front, at + self.arrays[member].nbytes - back))
            parts, end = [], 0
            for start, stop in sorted(spans) if spans else [(0, len(raw))]:
                parts.append(raw[max(start, end) : max(stop, end)])
                end = max(stop, end)
            yield name, parts

    def bytes_of(self) -> dict[str, Array]:
        """Return copies of the bytes of each writable array."""
        return {name: np.concatenate(parts) for name, parts in self._own()}

    def restore(self, held: Mapping[str, Array]) -> None:
        """Restore bytes that `bytes_of` copied."""
        for name, parts in self._own():
            if name in held:
                ends = np.cumsum([len(part) for part in parts])
                for part, content in zip(parts, np.split(held[name], ends[:-1]), strict=True):
                    part[...] = content

    def place(self, memory: Memory, code: Code) -> None:
        """Add ranges of global memory for the arrays, the module's variables and the parameters."""
        address: dict[str, int] = {}
        for name, raw, members in self._groups:
            made = memory.add(name, raw, writable=raw.flags.writeable)
            address.update({member: made.address + offset for member, offset in members.items()})
        self.unknown_maps.clear()
        memory.unknown_maps = self.unknown_maps
        content = bytearray(code.parameter_bytes)
        for place, (one, value) in enumerate(zip(self.parameters, self.values, strict=True)):
            start = code.parameter_offsets[one.name]
            name = f"argument {place}"
            content[start : start + one.nbytes] = self._bytes(name, one, value, address, memory)
        raw = np.frombuffer(bytes(content), np.uint8).copy()
        memory.parameters = memory.add("the parameters", raw, writable=False)

    def _bytes(self, name: str, one: Variable, value: Any, address: Mapping[str, int], memory: Memory) -> bytes:
        what = f"{name} ({one.name}, {_type(one)})"
        if _contains_pointers(value):
            if name not in address:
                made = bytearray(_plain(value[0], one, what))
                self._store_pointers(name, memoryview(made), value[1], address)
                return bytes(made)
            value, pointers = self.arrays[name], value[1]
            content = value.reshape(-1).view(np.uint8) if value.nbytes else value.tobytes()
            self._store_pointers(name, memoryview(content), pointers, address)
        if name in address:
            raw = self._pointer(name, value, address)
            if len(raw) == MAP_BYTES and one.nbytes == 8:
                held = memory.add(f"the map of {name}", np.frombuffer(raw, np.uint8).copy())
                raw = struct.pack("<Q", held.address)
            if len(raw) != one.nbytes:
                text = f"{what} has {one.nbytes} bytes; got an address or a map of {len(raw)} bytes"
                hint = "a tensor map is a pair (request, array); in a shell --map NUMBER=MAP:ARRAY"
                raise InvalidTypeError(text, hint=hint if one.nbytes == MAP_BYTES else None)
            return raw
        return _plain(value, one, what)

    def _store_pointers(
        self, name: str, content: memoryview, pointers: Mapping[Any, Any], address: Mapping[str, int]
    ) -> None:
        """Store the addresses and maps at their offsets."""
        for offset, inner in pointers.items():
            part = self._pointer(f"{name}, byte {offset}", inner, address)
            at = expect_integer(offset, f"an offset in {name}", 0, len(content) - len(part))
            content[at : at + len(part)] = part

    def _pointer(self, name: str, value: Any, address: Mapping[str, int]) -> bytes:
        if is_array(value):
            return struct.pack("<Q", address[name])
        if value is None:
            return bytes(8)
        return self._map_bytes(value[0], address[name], name)

    def _map_bytes(self, given_map: Any, address: int, name: str) -> bytes:
        if isinstance(given_map, _REQUESTS):
            try:
                given_map = encode(given_map, arch=self.arch)
            except UnknownFactError:  # the bits are unknown for GPUs after sm_90, so the bytes name the request
                raw = b"a map whose bits are not known" + len(self.unknown_maps).to_bytes(8, "little")
                self.unknown_maps[raw.ljust(MAP_BYTES, b"\0")] = dataclasses.replace(given_map, global_address=address)
                return raw.ljust(MAP_BYTES, b"\0")
        raw = bytes(given_map) if isinstance(given_map, (bytes, bytearray, memoryview, np.ndarray)) else b""
        if len(raw) not in (64, MAP_BYTES):
            raise InvalidTypeError(f"{name}: a tensor map must be a request or 128 bytes, got {given(given_map)}")
        return replace(raw.ljust(MAP_BYTES, b"\0"), "global_address", address)


def _type(one: Variable) -> str:
    return f".{one.kind}" if one.count == 1 else f"{one.nbytes} bytes"


def _plain(value: Any, one: Variable, what: str) -> bytes:
    """Convert a number, bytes or None to the bytes of a parameter."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        if len(raw) != one.nbytes:
            raise InvalidValueError(f"{what} got {len(raw)} bytes; must be {one.nbytes}")
        return raw
    if value is None:
        return bytes(one.nbytes)
    if isinstance(value, np.generic) and value.dtype.itemsize == one.nbytes:
        return value.tobytes()
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if is_integer(value):
        number = int(value)
        if one.kind in _FLOATS:
            return struct.pack(_FLOATS[one.kind], float(number))
        if one.nbytes > 16 or not -(1 << 8 * one.nbytes - 1) <= number < 1 << 8 * one.nbytes:
            raise InvalidValueError(f"{what} can't hold {number}")
        return (number % (1 << 8 * one.nbytes)).to_bytes(one.nbytes, "little")
    if isinstance(value, (float, np.floating)):
        form = _FLOATS.get(one.kind) or {2: "<e", 4: "<f", 8: "<d"}.get(one.nbytes)
        if form is None or one.kind[0] in "us":
            raise InvalidTypeError(f"{what} can't hold the float {value}")
        try:
            return struct.pack(form, float(value))
        except OverflowError:
            raise InvalidValueError(f"{what} can't hold {value}") from None
    raise InvalidTypeError(
        f"{what} must be an array, a number, bytes, a map and its array, or None; got {given(value)}"
    )


def _grouped(arrays: Mapping[str, Array]) -> list[tuple[str, Array, dict[str, int]]]:
    """Group arrays that share host memory; return (name, bytes, offset of each array) for each group."""
    spans = []
    for name, array in arrays.items():
        start = int(array.__array_interface__["data"][0])
        spans.append((start, start + array.nbytes, name))
    spans.sort(key=lambda span: (span[0], -span[1]))
    groups: list[tuple[int, int, list[tuple[int, str]]]] = []
    for start, end, name in spans:
        if groups and (start < groups[-1][1] or (start == end and start == groups[-1][1])):
            low, high, members = groups[-1]
            groups[-1] = (low, max(high, end), [*members, (start, name)])
        else:
            groups.append((start, end, [(start, name)]))
    found = []
    for low, high, members in groups:
        first = members[0][1]
        held = arrays[first]
        if held.nbytes == high - low:
            raw = held.reshape(-1).view(np.uint8) if held.nbytes else np.zeros(0, np.uint8)
        else:  # arrays that overlap in part: take their union; the arrays keep its memory alive
            raw = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
        found.append((first, raw, {name: start - low for start, name in members}))
    order = {name: place for place, name in enumerate(arrays)}
    return sorted(found, key=lambda group: order[group[0]])


# ---- variables of the module -----------------------------------------------------------------------------------------


def place_variables(memory: Memory, code: Code) -> dict[str, Range]:
    """Add ranges of global memory for the module variables that a kernel uses, and store their initial values."""
    made = {}
    memory.symbols.update(code.addresses)
    for name, one in code.globals.items():
        array = np.zeros(max(one.nbytes, 1), np.uint8)
        made[name] = memory.add(name, array, alignment=max(one.align, 256), writable=one.space != "const")
        memory.symbols[name] = made[name].address
    for name, one in code.globals.items():
        raw = b"".join(_initial(one, value, memory, code.module) for value in one.initial)
        array = made[name].array
        array[: len(raw)] = np.frombuffer(raw[: len(array)], np.uint8)
    return made


def _initial(one: Variable, value: Any, memory: Memory, module: Module) -> bytes:
    size = one.element_bytes
    if isinstance(value, tuple):
        name, added, _ = value
        if name not in memory.symbols:
            raise InvalidValueError(f"line {one.line}: the initial value of {one.name} names {given(name)}")
        value = memory.symbols[name] + added
    if isinstance(value, str):
        return _float_bytes(value, size, one)
    if one.kind in _FLOATS:
        return struct.pack(_FLOATS[one.kind], float(value))
    return int(value % (1 << 8 * size)).to_bytes(size, "little")


@functools.lru_cache(maxsize=4096)
def _float_bytes(text: str, size: int, one: Variable) -> bytes:
    if text[:2] in ("0f", "0F", "0d", "0D"):
        try:
            raw = bytes.fromhex(text[2:])[::-1]
        except ValueError:
            raw = b""
        if len(raw) == size:
            return raw
    try:
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], float(text))
    except (KeyError, ValueError, OverflowError):
        raise InvalidValueError(f"line {one.line}: the initial value {given(text)} of {one.name} is unknown") from None
