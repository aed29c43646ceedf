"""What functions of labels and maxima make of NaN: an error or NaN, never a number that looks right."""

from __future__ import annotations

import numpy as np
import pytest

import backend
import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf

NAN = float("nan")
SCORES = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]


@pytest.mark.parametrize("function", [F.softmax_cross_entropy, F.categorical_cross_entropy, F.top_n_error])
def test_a_label_that_is_no_number(function):
    x, labels = leaf(SCORES), nn.Variable.from_numpy_array(np.float32([[NAN], [1]]))
    y = function(x, labels)
    if backend.BACKEND == "cpu":
        with pytest.raises(ValueError, match=r"target.*labels less than 3.*no index \(NaN"):
            y.forward()
        return
    y.forward()  # a GPU would have to wait for the check
    assert np.isnan(y.d[0, 0]) and not np.isnan(y.d[1, 0])


@pytest.mark.parametrize("function", [F.softmax_cross_entropy, F.categorical_cross_entropy])
def test_a_negative_label_is_left_out(function):
    x, labels = leaf(SCORES), nn.Variable.from_numpy_array(np.float32([[-1], [1]]))
    y = function(x, labels)
    x.g = 0
    y.forward()
    y.backward()
    assert y.d[0, 0] == 0 and y.d[1, 0] > 1 and x.g[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("n, expected", [(1, [1, 1, 0, 1]), (2, [1, 1, 0, 0]), (3, [0, 0, 0, 0])])
def test_top_n_error_of_scores_that_are_no_numbers(n, expected):
    """One's own score is NaN; all are; the others are numbers; one of the others is NaN."""
    scores = [[0, NAN, 1], [NAN, NAN, NAN], [0, 2, 1], [NAN, 2, 1]]
    labels = nn.Variable.from_numpy_array(np.float32([[1]] * 4))
    y = F.top_n_error(nn.Variable.from_numpy_array(np.float32(scores)), labels, n=n)
    y.forward()
    assert y.d.ravel().tolist() == expected


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("kernel", [(2, 2), (2, 4)])
def test_max_pooling_keeps_what_is_no_number(place, kernel):
    x = np.arange(64, dtype=np.float32).reshape(2, 1, 4, 8)
    x[1, 0, place // 2, place % 2] = NAN
    v = leaf(x)
    y = F.max_pooling(v, kernel)
    v.g = 0
    y.forward()
    y.backward()
    h, w = kernel
    windows = x.reshape(2, 1, 4 // h, h, 8 // w, w).max(axis=(3, 5))  # NumPy's keeps NaN too
    np.testing.assert_array_equal(y.d, windows)
    assert v.g[1, 0, place // 2, place % 2] == 1 and v.g.sum() == y.size


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_second_derivatives_of_norms_at_zero(p):
    x = leaf([[1.0, 0.0, 0.0]])
    g = nn.grad([F.norm(x, p=p, axis=1)], [x])[0]
    s = F.sum(g * leaf([[0.3, 1.0, -0.7]], need_grad=False))
    x.g = 0
    s.forward()
    s.backward()
    assert x.g.tolist() == [[0.0, np.inf, -np.inf] if p < 2 else [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("values", [[1.0, NAN, 2.0, 0.5], [NAN, 1.0, 2.0, 0.5], [1.0, 2.0, 0.5, NAN]])
def test_second_derivatives_of_max_pooling_follow_nan(values):
    """The gradient goes to the NaN, and so does the derivative by the gradient that arrives."""
    x, gy = leaf([[[values[:2], values[2:]]]]), leaf([[[[1.0]]]])
    w = np.float32([[[[1, 2], [3, 4]]]])
    g = nn.grad([F.max_pooling(x, (2, 2))], [x], [gy])[0]
    s = F.sum(g * leaf(w, need_grad=False))
    gy.g = 0
    s.forward()
    s.backward()
    assert gy.g.item() == w[np.isnan(x.d)].item()
