"""One door for arguments: each spelling of an operand means the same, and what is none is refused by a typed error.

The calls are those of `tests/calls`: each argument of each public function of the algebra, the coordinates, the tensors
and the atoms is replaced by what it can't be.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.tma import (
    Interleave,
    L2Promotion,
    Op,
    TensorMapDataType,
    TensorMapSwizzle,
    TensorMapTiled,
    make_smem_layout,
)
from tests.calls import arena
from tests.calls.namespace import names
from tests.calls.outcome import is_refusal, touch
from tests.calls.registry import registry
from tests.each import each_of
from tests.refusals import Refusal, assert_refused, refusals

X = np.zeros((256, 128), np.float16)
SMEM = make_smem_layout("K", "128B", "float16", (128, 64))
MMA = cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN")
POINTER = cute.make_gmem_ptr(4096, "float16")


def request(data_type: Any = 6, **options: Any) -> TensorMapTiled:
    return TensorMapTiled(data_type, 4096, (128, 256), (256,), (32, 8), **options)


def load(tensor: Any = X, shared: Any = SMEM, *more: Any, op: Any = "SM90_TMA_LOAD", **options: Any) -> str:
    made = cute.tma.make_tma_copy(op, tensor, shared, *more, **options)
    return f"{made.gbasis} {made.op} {made.arch} {made.transaction_bytes}"


GMEM = "gmem_ptr[16b](0x1000) o (256,128):(128,_1)"
BF16 = ("bf16", "bfloat16", "BFLOAT16", "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", TensorMapDataType.BFLOAT16, 9)
B128 = ("128B", "B128", "swizzle_128b", "CU_TENSOR_MAP_SWIZZLE_128B", TensorMapSwizzle.B128, 3)
HALF = ("float16", "half", "FLOAT16", "f16", "half_t", np.float16, np.dtype("f2"))
TILES = ("128x64", "(_128,_64)", "(128, 64)", (128, 64), (Int(128), Int(64)))
LAYOUT = Layout((256, 128), (128, Int(1)))

SPELLINGS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "strides": (
        lambda options: cute.make_layout((4, 8), **options),
        ({"stride": (8, 1)}, {"stride": (np.int64(8), np.int8(1))}),
    ),
    "a swizzle of a map": (lambda s: request(swizzle=s), (*B128, "128", np.int64(3))),
    "a format of a map": (request, (*BF16, Int(9))),
    "an interleave": (lambda s: request(interleave=s, swizzle=1), ("32B", "B32", Interleave.B32, 2)),
    "a promotion": (
        lambda s: request(l2_promotion=s),
        ("128B", "L2_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_128B", L2Promotion.B128, 2),
    ),
    "a fill": (lambda s: request(oob_fill=s), ("none", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE", 0)),
    "a member by name": (TensorMapSwizzle, B128),
    "a format by name": (TensorMapDataType, (*BF16, as_dtype("bf16"))),
    "an operation": (Op, ("SM90_TMA_LOAD", "sm90_tma_load", "cute::SM90_TMA_LOAD{}", Op.SM90_TMA_LOAD)),
    "an element type": (lambda s: cute.make_gmem_ptr(4096, s), HALF),
    "a global tensor": (
        load,
        (
            GMEM,
            cute.parse(GMEM),
            (POINTER, "(256,128):(128,_1)"),
            (POINTER, LAYOUT),
            cute.make_tensor(POINTER, LAYOUT),
            (X.reshape(-1), "(256,128):(128,_1)"),
            X,
        ),
    ),
    "an operation of an atom": (lambda s: load(op=s), ("SM90_TMA_LOAD", "sm90_tma_load", Op.SM90_TMA_LOAD)),
    "a shared layout": (lambda s: load(X, s), (str(SMEM), SMEM)),
    "a tile": (lambda t: load(X, SMEM, t), TILES),
    "a tile of a shared layout": (lambda t: make_smem_layout("K", "128B", "float16", t), TILES),
    "a swizzle of a shared layout": (lambda s: make_smem_layout("K", s, "half", (128, 64)), (*B128, "128b")),
    "a type of a shared layout": (lambda t: make_smem_layout("K", "128B", t, (128, 64)), HALF),
    "an architecture": (lambda a: load(op="SM100_TMA_2SM_LOAD", arch=a), (None, "sm_100a")),
}


@each_of("what", SPELLINGS)
def test_each_spelling_means_the_same(what: str) -> None:
    make, spellings = SPELLINGS[what]
    made = [make(spelling) for spelling in spellings]
    assert len(made) > 1
    assert [str(other) for other in made] == [str(made[0])] * len(made)
    assert all(other == made[0] for other in made)


def test_a_layout_is_its_shape_and_its_strides() -> None:
    assert str(cute.make_layout((4, 8), stride=(8, 1))) == "(4,8):(8,1)"
    assert cute.make_layout((4, 8), (8, 1)) == Layout((4, 8), stride=(8, 1)) == cute.parse("(4,8):(8,1)")


REFUSED: list[Refusal] = [
    ("no swizzle", lambda: TensorMapSwizzle("130B"), InvalidValueError, "'130B' is not a valid TensorMapSwizzle"),
    ("no number", lambda: TensorMapSwizzle(9), InvalidValueError, "9 is not a valid TensorMapSwizzle"),
    ("no member", lambda: TensorMapSwizzle([3]), InvalidValueError, "[3] is not a valid TensorMapSwizzle"),
    ("no format", lambda: TensorMapDataType("int128"), InvalidValueError, "'int128' is not a valid TensorMapDataType"),
    ("no operation", lambda: Op("SM90_TMA_LODE"), InvalidValueError, "unknown TMA operation 'SM90_TMA_LODE'"),
    ("a layout as tensor", lambda: load("(4,8):(8,1)"), InvalidTypeError, "a layout has no address"),
    ("sizes as tensor", lambda: load((256, 128)), InvalidTypeError, "a layout has no address"),
    ("a tile as layout", lambda: load(X, (128, 64)), InvalidTypeError, "define an order in shared memory"),
    ("its text", lambda: load(X, "128x64"), InvalidTypeError, "sizes alone don't define an order in shared memory"),
    ("its sizes", lambda: load(X, "(128,64)"), InvalidTypeError, "sizes alone don't define an order in shared memory"),
    ("no operands", lambda: dataclasses.replace(MMA, layouts={}), InvalidValueError, "layouts of an MMA atom must"),
    ("a text as layout", lambda: Layout("(4,8):(8,1)"), InvalidTypeError, "cute_py.parse(text) reads a layout from"),
]  # fmt: skip


@refusals(REFUSED)
def test_what_is_no_operand(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda: cute.make_gmem_ptr(0, "flaot16"), "float16, bfloat16, float64"),
        (lambda: cute.make_gmem_ptr(0, "cutlass::half_tt"), "half_t, half, __half"),
        (lambda: cute.make_gmem_ptr(0, "bf17"), "bf16"),
        (lambda: Op("SM90_TMA_STROE"), "SM90_TMA_STORE, SM90_TMA_STORE_IM2COL, SM90_TMA_LOAD"),
        (lambda: Op("sm90_tma_stroe"), "SM90_TMA_STORE, SM90_TMA_STORE_IM2COL, SM90_TMA_LOAD"),
        (lambda: cute.tma.ptx("fence.proxy.asinc"), "fence.proxy.async, fence.proxy.alias, fence.proxy.async::generic"),
        (lambda: cute.copy_atom("UniversalCopy<uint32_t>", arch="sm_91"), "sm_90, sm_89, sm_90a"),
    ],
)
def test_a_misspelled_name_is_answered_by_the_nearest(call: Callable[[], Any], nearest: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        call()
    assert str(caught.value).split("\n")[1] == f"  nearest : {nearest}"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("zipped_divide", "zipped_divide(layout, tiler)"),
        ("128B", "TensorMapSwizzle.B128 = 3"),
        ("G-basis", "G-basis"),
        ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_VALUE"),
        ("bf16", "bfloat16"),
        ("SM90_TMA_LOAD", "Op.SM90_TMA_LOAD = 'SM90_TMA_LOAD'"),
        ("sm100_tma_2sm_load", "Op.SM100_TMA_2SM_LOAD = 'SM100_TMA_2SM_LOAD'"),
    ],
)
def test_names_that_explain_takes(text: str, first: str) -> None:
    assert str(cute.explain(text)).splitlines()[0] == first


ROOMS = ("layout", "arith_tuple", "tensor", "atom")
WRONG = (
    "None",
    "1.5",
    "'@@'",
    "b'x'",
    "(1, 'x')",
    "[]",
    "{}",
    "2**200",
    "Int",
    "{'a': 1}",
    "float('nan')",
    "((),)",
    "slice(None)",
)


def home(name: str) -> str:
    """The folder of a public function, '' for what is none."""
    found = names().get(name.partition(".")[0])
    module = getattr(found, "__module__", "") or ""
    return (
        module.split(".")[1] if module.startswith("cute_py.") and callable(found) and not inspect.isclass(found) else ""
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("room", ROOMS)
def test_a_wrong_argument_of_a_function_is_refused_or_taken(
    room: str, every: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a TypeError, AttributeError or IndexError of Python or of another package."""
    namespace, foreign, functions = names(), [], 0
    for name, entry in registry().items():
        if home(name) != room or entry.device or not entry.mutable:
            continue
        functions += 1
        call = entry.call("valid/0")
        args, kwargs = list(call.args or ()), list(call.kwargs)
        for at in range(call.fixed, len(args) + len(kwargs)):
            for wrong in WRONG[::every]:
                given, named = args.copy(), kwargs.copy()
                if at < len(args):
                    given[at] = wrong
                else:
                    named[at - len(args)] = (named[at - len(args)][0], wrong)
                made = dataclasses.replace(call, args=tuple(given), kwargs=tuple(named))
                arena.reset()
                try:
                    function, values, options = made.made(namespace)
                    touch(function(*values, **options))
                except Exception as error:
                    if not is_refusal(error, made.text):
                        foreign.append(f"{made.text}: {error!r}"[:300])
    capsys.readouterr()
    assert functions > 5
    assert not foreign, "\n".join(foreign[:20])
