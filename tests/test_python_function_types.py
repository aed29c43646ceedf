"""PythonFunction: the element types of what it writes."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
from cube_function import Cube, X, fusion, leaf, registry  # noqa: F401 - fixtures


class Written(Cube):
    """Its output is what `forward` gives for the data of the input."""

    def forward_impl(self, inputs, outputs):
        outputs[0].d = self.forward(inputs[0].d)
        self.seen = outputs[0].d.dtype

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = np.array([1, 2, 3])
        self.seen = inputs[0].g.dtype


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "values", [np.array([1, 2, 3]), X > 0, np.uint8([1, 2, 3]), np.float64([0.1, 0.2, 0.3]), np.float16([1, 2, 3])]
)
def test_results_are_stored_in_the_type_of_the_context(values, at_once):
    """As in NNabla 1.39: float32, whatever is assigned; the next function computes in it."""
    first, second = Written(forward=lambda x: values), Written(forward=lambda x: x - 2)
    with nn.auto_forward(at_once):
        a = first(leaf())
        b = second(a)
    if not at_once:
        b.forward()
    assert first.seen == a.d.dtype == b.d.dtype == np.float32
    np.testing.assert_array_equal(b.d, np.float32(values) - 2)
    a.backward()
    assert first.seen == np.float32


def test_results_keep_a_type_that_their_array_was_given():
    def forward(inputs, outputs):
        outputs[0].data.data = np.int32([1, 2, 3])

    y = Cube(forward=forward)(leaf())
    y.forward()
    assert y.d.dtype == np.int32
