"""Two plain arrays of different shapes: their elements correspond in an order that numpy does not have."""

import warnings

import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout


def test_arrays_of_other_shapes_are_copied_with_a_warning() -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((4, 3), np.float32)
    with pytest.warns(UserWarning, match=r"an array of \(3, 4\) to one of \(4, 3\) in colexicographic order"):
        cute.copy(x, y)
    assert (y.ravel(order="F") == x.ravel(order="F")).all()


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (np.zeros((3, 4)), np.zeros((3, 4), order="F")),
        (np.zeros((3, 1, 4)), np.zeros((3, 4))),
        (np.zeros((3, 4)), (np.zeros(12), Layout((4, 3)))),
        (cute.make_tensor(np.zeros((3, 4))), np.zeros((4, 3))),
    ],
)
def test_others_are_copied_without(source: object, destination: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cute.copy(source, destination)  # type: ignore[arg-type]
