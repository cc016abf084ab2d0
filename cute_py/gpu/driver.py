"""Call the driver's tensor-map encoder through cuda-python, as the reference for `cute_py.tma.descriptor.encode`.

    request -> driver_encode -> 128 bytes from the driver
    sweep(20_000): run both encoders on random requests; they must agree in every byte and in every rejection

`as_cuda_python` converts a tensor map to the type that cuda-python's functions take, and `read_map` converts back. The
TensorMapDescriptor of cuda.core 1.2 does not expose its bytes, so it can't be read.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from cute_py.argument_checks import expect_integer
from cute_py.diagnostics import Diagnostic
from cute_py.errors import InvalidTypeError, TmaError, TmaLimitError
from cute_py.gpu.bindings import driver, driver_failure
from cute_py.gpu.device import open_device
from cute_py.tma.descriptor.data_types import FORMATS
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import FUNCTIONS, TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations

_MAP: Final = struct.Struct("<16Q")
_REFUSED: Final = 1
"""CUDA_ERROR_INVALID_VALUE, the driver's only answer to a request that it refuses."""


def _arguments(request: TensorMap) -> tuple[Any, list[Any]]:
    """Return the function of cuda.bindings.driver that encodes a request, and its arguments.

    Raises:
        ValueError, OverflowError, TypeError: a value does not fit the C type of its argument.
    """
    api = driver()
    wide, narrow = api.cuuint64_t, api.cuuint32_t
    start = [
        api.CUtensorMapDataType(request.data_type),
        request.rank,
        request.global_address,
        [wide(size) for size in request.global_dim],
        # cuda-python turns an empty list into a null pointer, which the driver refuses even for rank 1
        [wide(stride) for stride in request.global_strides or (0,)],
    ]
    steps = [narrow(step) for step in request.element_strides]
    interleave = api.CUtensorMapInterleave(request.interleave)
    end = [
        api.CUtensorMapSwizzle(request.swizzle),
        api.CUtensorMapL2promotion(request.l2_promotion),
        api.CUtensorMapFloatOOBfill(request.oob_fill),
    ]
    function = getattr(api, FUNCTIONS[request.KIND])
    if isinstance(request, TensorMapTiled):
        return function, [*start, [narrow(edge) for edge in request.box_dim], steps, interleave, *end]
    counts = [request.channels_per_pixel, request.pixels_per_column]
    if isinstance(request, TensorMapIm2col):
        corners: list[Any] = [list(request.pixel_box_lower_corner), list(request.pixel_box_upper_corner)]
        return function, [*start, *corners, *counts, steps, interleave, *end]
    corners = [request.pixel_box_lower_corner_width, request.pixel_box_upper_corner_width]
    mode = api.CUtensorMapIm2ColWideMode(request.mode)
    return function, [*start, *corners, *counts, steps, interleave, mode, *end]


def driver_encode(request: TensorMap) -> bytes:
    """Return the 128 bytes of the tensor map that this machine's driver encodes for a request.

    Args:
        request: as for `encode`, except that a residue is not passed to the driver. The lengths of the tuples must
            match the rank.
    Returns:
        128 bytes.
    Raises:
        MissingPackageError: cuda-python is not installed.
        DeviceError: there is no driver or no device with TMA, or the driver reports an error other than an invalid
            request.
        TmaLimitError: the driver rejects the request; `.violations` lists cute_py's reasons, because the driver gives
            none. Also raised if a value is out of the range of the driver's argument, or a length does not match the
            rank.
        InvalidTypeError: `request` is not a request.
    Source:
        CUDA 13.0 driver API, Tensor Map Object Management.

    >>> from cute_py.gpu.device import device_available
    >>> from cute_py.tma.descriptor import TensorMapTiled, encode
    >>> request = TensorMapTiled("float16", 4096, (64, 16), (128,), (64, 8))
    >>> if device_available():
    ...     assert driver_encode(request) == encode(request)
    """
    if not isinstance(request, TensorMap):
        raise InvalidTypeError(f"expected a tensor map request, got {type(request).__name__}")
    device = open_device()
    found = violations(request, arch=device.arch)
    # The driver reads one entry for each mode of the rank, so it would read past the end of a shorter array.
    if any(violation.rule in ("length", "rank", "rank_im2col") for violation in found):
        raise _refusal(
            request, ("the lengths of the request's tuples do not fit its rank, so the driver was not called"), found
        )
    try:
        function, arguments = _arguments(request)
        with device.current():
            code, written = function(*arguments)
    except (ValueError, OverflowError, TypeError) as problem:
        raise _refusal(request, f"a value does not fit the driver's argument ({problem})", found) from None
    if int(code) == _REFUSED:
        raise _refusal(request, "CUDA_ERROR_INVALID_VALUE", found)
    if int(code) != 0:
        raise driver_failure(code, FUNCTIONS[request.KIND])
    return _MAP.pack(*(int(word) for word in written.opaque))


def _refusal(request: TensorMap, why: str, found: list[Diagnostic]) -> TmaLimitError:
    headline = f"{FUNCTIONS[request.KIND]} refuses: {why}"
    facts = {str(i + 1): violation.message for i, violation in enumerate(found)}
    found = found or [Diagnostic("driver refusal", text=headline, source="the driver of this machine")]
    return TmaLimitError(
        headline, facts or {"reasons": ("the request breaks no rule that cute_py knows")}, violations=found
    )


def as_cuda_python(data: bytes) -> Any:
    """Convert a map to cuda-python's CUtensorMap, for calls such as cuTensorMapReplaceAddress.

    cuda-python allocates the object, and its address may not be a multiple of 64: copy the bytes to aligned memory
    before a kernel reads them.

    Args:
        data: 128 bytes, or any other argument of `read_map`; 64 bytes are padded with zeros.
    Raises:
        MissingPackageError: cuda-python is not installed.
        The errors of `read_map`.
    """
    api = driver()
    raw = read_map(data).ljust(_MAP.size, b"\0")
    made = api.CUtensorMap()
    made.opaque = [api.cuuint64_t(word) for word in _MAP.unpack(raw)]
    return made


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A request where the two encoders differ, with both results: the bytes in hexadecimal, or the rejection."""

    request: TensorMap
    ours: str
    drivers: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The result of `sweep`. It is true if the two encoders agree on every request."""

    asked: int
    same_bytes: int
    both_refuse: int
    disagreements: tuple[Disagreement, ...] = field(default=())

    def __bool__(self) -> bool:
        return self.asked > 0 and not self.disagreements and self.same_bytes + self.both_refuse == self.asked

    def __str__(self) -> str:
        lines = [
            f"{self.asked} requests: {self.same_bytes} maps equal in 128 bytes, {self.both_refuse} refused by both, "
            f"{len(self.disagreements)} disagreements"
        ]
        for one in self.disagreements[:8]:
            lines += [f"  {one.request}", f"    ours   : {one.ours}", f"    driver : {one.drivers}"]
        return "\n".join(lines)


def sweep(count: int = 2_000, seed: int = 0) -> Sweep:
    """Compare `encode` with the driver of this machine on random requests of all kinds, legal and not.

    Args:
        count: number of requests.
        seed: seed of Python's random.Random; the same seed gives the same requests.
    Raises:
        The errors of `driver_encode`, if the driver can't be called.
        InvalidValueError: `count` is below 1.
    """
    count = expect_integer(count, "count", 1)
    seed = expect_integer(seed, "seed")
    arch = open_device().arch
    generator = random.Random(seed)
    same = refused = 0
    found = []
    for _ in range(count):
        request = random_request(generator)
        ours = _outcome(lambda r: encode(r, arch=arch), request)
        drivers = _outcome(driver_encode, request)
        if ours != drivers:
            found.append(Disagreement(request, ours, drivers))
        elif ours == "refused":
            refused += 1
        else:
            same += 1
    return Sweep(count, same, refused, tuple(found))


def _outcome(encoder: Callable[[TensorMap], bytes], request: TensorMap) -> str:
    try:
        return str(encoder(request).hex())
    except TmaLimitError:
        return "refused"
    except TmaError as problem:
        return type(problem).__name__


def random_request(generator: random.Random) -> TensorMap:
    """Make a random request of any kind. About two thirds of the requests are legal, and a quarter have a value at or
    beyond the limit of its rule."""
    pick = generator.choice
    kind = pick((TensorMapTiled, TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide))
    interleave = pick((0, 0, 0, 1, 2)) if kind is not TensorMapIm2colWide else pick((0, 0, 1))
    rank = generator.randint(1 if kind is TensorMapTiled and not interleave else 3, 5)
    data_type = generator.randint(0, 12)
    grain = 32 if interleave == 2 else 16
    swizzle = generator.randint(0 if kind is not TensorMapIm2colWide else 1, 3)
    span = (256, 32, 64, 128)[swizzle] if not interleave else 64
    width = FORMATS[data_type].bytes
    inner = generator.randint(1, max(span // 16, 1)) * 16 // width or 1
    values: dict[str, int | tuple[int, ...]] = {
        "data_type": data_type,
        "global_address": generator.randrange(0, 1 << generator.randint(10, 57), grain),
        "global_dim": tuple(_size(generator) for _ in range(rank)),
        "global_strides": tuple(generator.randrange(0, 1 << generator.randint(6, 40), grain) for _ in range(rank - 1)),
        "element_strides": tuple(pick((1, 1, 1, generator.randint(1, 8))) for _ in range(rank)),
        "interleave": interleave,
        "swizzle": swizzle,
        "l2_promotion": generator.randint(0, 3),
        "oob_fill": int(FORMATS[data_type].is_float and generator.random() < 0.3),
    }
    if kind is TensorMapTiled:
        values["box_dim"] = (inner, *(generator.randint(1, pick((2, 16, 256))) for _ in range(rank - 1)))
    else:
        least = {3: -(1 << 15), 4: -128, 5: -16}[rank]
        values["channels_per_pixel"] = inner
        values["pixels_per_column"] = generator.randint(1, 1024)
        close = [generator.randint(max(least, -4), 3) for _ in range(2 * (rank - 2))]
        near = tuple([generator.randint(least, -least - 1) if generator.random() < 0.2 else edge for edge in close])
        if kind is TensorMapIm2col:
            values["pixel_box_lower_corner"], values["pixel_box_upper_corner"] = near[: rank - 2], near[rank - 2 :]
        else:
            values["pixel_box_lower_corner_width"], values["pixel_box_upper_corner_width"] = near[:2]
            values["mode"] = generator.randint(0, 1)
    if generator.random() < 0.25:
        _corrupt(generator, values)
    request: TensorMap = kind(**values)  # type: ignore[arg-type]  # values of any kind's fields
    return request


def _size(generator: random.Random) -> int:
    return generator.randint(1, 1 << generator.choice((4, 12, 31, 32)))


def _corrupt(generator: random.Random, values: dict[str, int | tuple[int, ...]]) -> None:
    """Replace one value by a value at or beyond the limit of its rule that is still in the range of the driver's
    argument."""
    name = generator.choice(sorted(values))
    edges = {
        "data_type": (13, 14, 15),
        "global_address": (8, 16, 24, 1 << 57, (1 << 57) - 16),
        "global_dim": (0, 1, 1 << 32, (1 << 32) + 1),
        "global_strides": (0, 8, 16, (1 << 40) - 16, 1 << 40),
        "box_dim": (0, 1, 256, 257),
        "element_strides": (0, 1, 8, 9),
        "channels_per_pixel": (0, 256, 257),
        "pixels_per_column": (0, 1024, 1025),
    }.get(name)
    if edges is None:
        return
    value = values[name]
    if isinstance(value, tuple):
        if value:
            changed = list(value)
            changed[generator.randrange(len(changed))] = generator.choice(edges)
            values[name] = tuple(changed)
    else:
        values[name] = generator.choice(edges)
