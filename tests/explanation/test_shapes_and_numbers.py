"""The shape of an instruction alone, and a number of 64 bits alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py.atom.smem_descriptor import DescriptorKind, SmemDescriptor, SmemSwizzle
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.each import each_of

WGMMA = "0x4000004000010002"
TCGEN05 = "0x0000400800100000"


@each_of("shape", ["m64n256k16", "m16n8k16", "M8N8K4", "m64n64k32"])
def test_a_shape_lists_every_operation_with_its_types(shape: str) -> None:
    m, n, k = (int(part) for part in shape.lower().replace("m", "").replace("n", " ").replace("k", " ").split())
    said = cute.explain(shape)
    atoms = [one for one in cute.find_mma_atoms(m=m, n=n, k=k) if not one.family.endswith("_umma")]
    rows = [line.split(None, 2) for line in said.splitlines() if line.startswith("  SM")]
    assert [(name, arch) for name, arch, _ in rows] == [(one.op, one.arch) for one in atoms]
    assert all(kinds.startswith("A ") and ", C " in kinds for _, _, kinds in rows)


def test_a_shape_without_operations_names_the_nearest() -> None:
    with pytest.raises(InvalidValueError, match="no MMA operation of CuTe has the shape m64n8k9") as refused:
        cute.explain("m64n8k9")
    assert refused.value.facts == {"nearest": "m64n8k8, m64n8k16, m64n16k8"}
    said = cute.explain("m64n100k16")
    assert said.startswith("No MMA operation of CuTe has the fixed shape m64n100k16.")
    assert "nearest: m64n96k16, m64n104k16" in said and "M and N of tcgen05 operations are template arguments" in said


@each_of(
    ("number", "kind"),
    [(WGMMA, "wgmma"), (f"{WGMMA}ULL", "wgmma"), (str(int(WGMMA, 16)), "wgmma"), (TCGEN05, "tcgen05")],
)
def test_a_number_may_be_a_descriptor(number: str, kind: str) -> None:
    said = cute.explain(number)
    value = int(number.removesuffix("ULL"), 0)
    assert SmemDescriptor.decode(value, DescriptorKind(kind)).explain() in said
    assert "may be a shared-memory matrix descriptor" in said and "Not certain\n" in said
    assert f"the kind, {kind}: bits 46-48" in said


@given(st.integers(0, (1 << 14) - 1), st.integers(0, (1 << 14) - 1), st.sampled_from(["wgmma", "tcgen05"]))
def test_every_swizzled_descriptor_is_read_as_its_kind(start: int, stride: int, kind: str) -> None:
    one = SmemDescriptor(start, 1, stride, SmemSwizzle.B64, DescriptorKind(kind), version=int(kind == "tcgen05"))
    assert one.explain() in cute.explain(f"{int(one):#x}")


@each_of(
    "number",
    [
        "0x7f3b2e20a280",  # an address of a device
        "0xffffffffffffffff",
        "0x12345678",
        "12345678901234",  # a number of bytes
        "0x40000040000100020",
        "99999999999999999999",
    ],
)
def test_other_numbers_are_refused(number: str) -> None:
    with pytest.raises(InvalidTypeError, match="no explanation"):
        cute.explain(number)
