"""What batch_normalization and layer_normalization take and give beside numbers: kinds of axes, tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF

X = np.arange(24, dtype="float32").reshape(4, 2, 3) ** 2


@pytest.mark.parametrize("axes", [1, [1], (1,), -2, np.int64(1), np.array([1]), [np.int32(-2)], [1.0]], ids=repr)
def test_axes_of_any_kind_without_running_statistics(axes: Any) -> None:
    x = nn.Variable.from_numpy_array(X)
    y = F.batch_normalization(x, None, None, None, None, axes=axes)
    y.forward()
    mean, variance = X.mean((0, 2), keepdims=True), X.var((0, 2), keepdims=True)
    np.testing.assert_allclose(y.d, (X - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("library", [F, PF])
def test_statistics_come_in_a_tuple(library: Any) -> None:
    """As NNabla's."""
    x = nn.Variable.from_numpy_array(X)
    rest = (None, None, None, None) if library is F else ()
    made = library.batch_normalization(x, *rest, output_stat=True)
    assert type(made) is tuple and [v.shape for v in made] == [(4, 2, 3), (1, 2, 1), (1, 2, 1)]
    made = library.layer_normalization(x, *rest[:2], output_stat=True)
    assert type(made) is tuple and [v.shape for v in made] == [(4, 2, 3), (4, 1, 1), (4, 1, 1)]
    nn.clear_parameters()
