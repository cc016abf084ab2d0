"""Element types by the names that other programs give them."""

from __future__ import annotations

import pytest

from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.calls.hostile import Itself


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("cutlass::half_t", "float16"),
        ("cute::float_e4m3_t", "float8_e4m3fn"),
        ("cute::detail::float_e2m1_unpacksmem_t", "float4_e2m1fn_unpacksmem"),
        ("std::uint8_t", "uint8"),
        ("cuda::std::complex<float>", "complex64"),
        ("__nv_bfloat16", "bfloat16"),
        ("__half", "float16"),
        ("torch.bfloat16", "bfloat16"),
        ("np.float32", "float32"),
    ],
)
def test_a_name_may_stand_in_its_namespace(name: str, row: str) -> None:
    assert as_dtype(name).name == row


def test_every_name_and_alias_leads_to_one_row() -> None:
    names = [name for row in DTYPES for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert all(as_dtype(name) is row for row in DTYPES for name in (row.name, *row.aliases))


def test_a_dtype_of_torch_is_known_by_its_words() -> None:
    """torch is asked nothing but str()."""
    kind = type("dtype", (), {"__module__": "torch", "__str__": lambda self: "torch.float8_e5m2"})
    assert as_dtype(kind()).name == "float8_e5m2"


@pytest.mark.parametrize("name", ["torch.", "cute::", "std::std::int8_t", "half_t::cutlass", "float7", "torch.quint8"])
def test_what_is_no_type_is_refused(name: str) -> None:
    with pytest.raises(InvalidValueError, match="unknown element type"):
        as_dtype(name)


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="not an element type"):
        as_dtype(object())


@pytest.mark.parametrize("value", [(None, Itself()), ("float32", 2), [("a", "f4")], {"names": ["a"]}])
def test_a_type_has_no_parts(value: object) -> None:
    """numpy reads the shape of such a type without a limit."""
    with pytest.raises(InvalidTypeError, match="not an element type"):
        as_dtype(value)


def test_nothing_is_no_type() -> None:
    """numpy takes None for float64, and no pointer is meant to be one of those."""
    with pytest.raises(InvalidTypeError, match="not an element type: None"):
        as_dtype(None)
