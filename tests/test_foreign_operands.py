"""What an operator, a comparison or an argument is given that it cannot take: an error, never a silent guess.

What NNabla 1.39 says to each was asked of it.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F


def leaf(values=(1, 2, 3)):
    return nn.Variable.from_numpy_array(np.array(values, np.float32))


MAKERS = {"variable": leaf, "array": lambda: leaf().data}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    "apply",
    [
        lambda h: h % np.float32(2),
        lambda h: h // np.ones(3),
        lambda h: np.ones(3) % h,
        lambda h: h % 2,
        lambda h: np.ones(3, int) << h,
        lambda h: np.ones(3, int) ^ h,
        lambda h: divmod(h, np.ones(3)),
    ],
)
def test_numpy_does_not_step_in_for_operators_that_are_not_there(make, apply):
    with pytest.raises(TypeError):
        apply(F.exp(make()))


@pytest.mark.parametrize("apply", [np.exp, lambda h: np.maximum(h, 1), lambda h: np.add(np.ones(3), h)])
def test_numpy_functions_do_not_take_the_values_that_a_variable_happens_to_have(apply):
    with pytest.raises(TypeError):
        apply(F.exp(leaf()))
    assert np.sum(leaf().data) == 6  # an NdArray has no graph that would be cut


def test_an_array_is_not_bound_to_another_by_an_operator_it_has_not():
    a = leaf().data
    with pytest.raises(TypeError):
        a %= np.ones(3)


def test_numpy_numbers_and_explicit_conversions_work():
    x = leaf()
    y = np.float32(2) * x + np.float64(1)
    y.forward()
    assert y.d.tolist() == [3, 5, 7]
    assert np.asarray(x).tolist() == [1, 2, 3] and np.exp(x.d).shape == (3,)
    assert np.asarray(x.data).dtype == np.float32


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_comparison_has_no_truth_as_a_whole(make):
    h = make()
    for compare in (lambda: h == 2, lambda: h != 2, lambda: h < 2, lambda: 2 >= h, lambda: h < make()):
        with pytest.raises(TypeError, match="no truth as a whole"):
            bool(compare())
    for find in (lambda: h in [2], lambda: 2 in [h], lambda: 0 if h == 2 else 1):
        with pytest.raises(TypeError):
            find()
    assert h and h in [1.5 * 0 or h] and (h == h) is True and (h != h) is False
    assert (h == None) is False and (h == "a") is False  # noqa: E711 - this is the question


def test_the_truth_of_a_comparison_of_one_element_is_known_of_an_array():
    a = leaf([3]).data
    assert (a == 3) and not (a < 3)
    with pytest.raises(TypeError):
        bool(leaf([3]) == 3)  # a Variable has no value before it runs


def test_none_is_no_number():
    for x in (leaf(), leaf().data):
        for key in (0, slice(2), np.array([True, False, True])):
            with pytest.raises(TypeError, match="value"):
                x[key] = None
        assert np.asarray(x).tolist() == [1, 2, 3]


@pytest.mark.parametrize("wrong", [leaf([1.0]), leaf([1.0]).data, leaf([1, 2])])
def test_a_second_array_is_no_number_of_outputs(wrong):
    with pytest.raises(TypeError, match="n_outputs"):
        F.exp(leaf(), wrong)


def test_a_number_of_outputs_may_be_any_number():
    for n in (1, 1.0, np.int64(1), np.float32(1), True, -1, None):
        assert F.exp(leaf(), n).shape == (3,)


def test_the_shape_of_an_array_may_be_a_number():
    assert nn.NdArray(3).shape == (3,) and nn.NdArray([3]).shape == (3,)
    with pytest.raises(TypeError):
        nn.NdArray(2.5)


def test_elements_are_copied_into_another_shape():
    a, b = nn.NdArray((2, 3)), nn.NdArray.from_numpy_array(np.arange(6, dtype=np.float32))
    assert a.copy_from(b) is a
    assert a.data.tolist() == [[0, 1, 2], [3, 4, 5]] and a.shape == (2, 3)
    with pytest.raises(ValueError, match="shape"):
        a.copy_from(nn.NdArray((2,)))


def test_what_nnabla_says_of_functions():
    x, y = leaf(), leaf()
    again = [F.dropout(x), F.rand(shape=(2,)), F.randint(shape=(2,)), F.randn(shape=(2,)), F.exp(x)]
    assert [v.parent.need_setup_recompute(0) for v in again] == [True, True, True, True, False]
    stats = [nn.Variable((1, 3)) for _ in range(4)]
    assert not F.batch_normalization(nn.Variable((2, 3)), *stats).parent.need_setup_recompute(0)
    assert [(x * y).parent.inplace_data_with(i) for i in range(2)] == [0, 0]
    f, g = F.exp(x).parent, F.exp(x).parent
    assert not (f < g or f <= g or f > g or f >= f or f == g) and f == f and f != g and not f < 2
