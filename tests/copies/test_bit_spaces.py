"""Laws of subspaces of F2**n."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cute_py.copies.registers.lanes import coefficients, common_complement, intersection, kernel, stages
from cute_py.layout.linear import combined, independent

BITS = 9
SPACE = tuple(1 << k for k in range(BITS))
vectors = st.lists(st.integers(0, (1 << BITS) - 1), max_size=BITS).map(tuple)


def span(basis: tuple[int, ...]) -> set[int]:
    return {combined(basis, k) for k in range(1 << len(basis))}


@given(vectors, vectors)
def test_independent_vectors_span_what_all_span(candidates: tuple[int, ...], besides: tuple[int, ...]) -> None:
    found = independent(candidates, besides)
    base = independent(besides)
    assert len(span((*base, *found))) == 1 << len(base) + len(found)
    assert span((*base, *found)) >= set(candidates)


@given(vectors, st.integers(0, (1 << BITS) - 1))
def test_coefficients_give_the_vector_back(candidates: tuple[int, ...], vector: int) -> None:
    basis = independent(candidates)
    found = coefficients(vector, basis)
    assert (found is None) == (vector not in span(basis))
    assert found is None or combined(basis, found) == vector


@given(vectors, vectors)
def test_the_intersection_is_what_both_have(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    first, second = independent(a), independent(b)
    assert span(intersection(first, second)) == span(first) & span(second)


@given(vectors, vectors)
def test_a_common_complement_completes_both(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    first, second = independent(a), independent(b)
    size = min(len(first), len(second))
    first, second = first[:size], second[:size]
    found = common_complement(SPACE, first, second)
    assert len(found) == BITS - size
    for side in (first, second):
        assert len(independent((*side, *found))) == BITS


@given(vectors)
def test_the_kernel_goes_to_zero(images: tuple[int, ...]) -> None:
    basis = SPACE[: len(images)]
    found = kernel(basis, images)
    assert len(found) == len(images) - len(independent(images))
    assert all(combined(images, coefficients(x, basis) or 0) == 0 for x in found)


@given(st.lists(st.integers(0, 63), max_size=7).map(tuple), st.integers(0, 127))
def test_stages_add_up_to_the_function(columns: tuple[int, ...], thread: int) -> None:
    total = 0
    for mask, step in stages(columns):
        total ^= step if (thread & mask).bit_count() % 2 else 0
    assert total == combined(columns, thread)
