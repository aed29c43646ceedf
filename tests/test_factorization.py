"""Decompositions (`nnrs.utils.factorization`), and the layers that begin with one."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from graph_helpers import promises_any_memory
from nnrs.utils.factorization import cpd


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5), (2, 3, 4, 3)])
def test_finds_the_terms_of_a_sum(shape):
    rng = np.random.RandomState(0)
    terms = [rng.rand(n, 2) for n in shape]
    x = cpd.ALS().approximate_tensor(terms, np.array([2.0, 3.0]))
    np.testing.assert_allclose(x, np.einsum(*[a for n, t in enumerate(terms) for a in (t, [n, 9])], [2, 3], [9]))
    matrices, weights = cpd.ALS().solve(x, 2, max_iter=2000, stopping_criterion=1e-12)
    assert [m.shape for m in matrices] == [(n, 2) for n in shape]
    assert np.abs(cpd.ALS().approximate_tensor(matrices, weights) - x).max() < 0.02 * np.abs(x).max()


def test_weights_that_repeat_and_a_penalty_are_no_trouble():
    x = np.ones((3, 2, 4))
    for reg in (0.0, 0.1):
        matrices, weights = cpd.ALS().solve(x, 3, max_iter=20, stopping_criterion=-1, lambda_reg=reg)
        made = cpd.ALS().approximate_tensor(matrices, weights)
        np.testing.assert_allclose(made, x, atol=0.3)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((np.ones(3), 1), ValueError, "argument 'X': expected an array of two axes or more"),
        ((np.ones((2, 3)), 0), ValueError, "argument 'rank': expected 1 or more, got 0"),
        ((np.ones((2, 3)), 1.5), TypeError, "argument 'rank'"),
        ((np.ones((2, 3)), 1, 0), ValueError, "argument 'max_iter'"),
    ],
)
def test_errors(arguments, kind, text):
    with pytest.raises(kind, match=text):
        cpd.ALS().solve(*arguments)


def leaf(*shape):
    return nn.Variable.from_numpy_array(np.random.RandomState(1).randn(*shape).astype(np.float32))


def test_a_decomposition_of_full_rank_is_the_layer():
    x, w = leaf(2, 3, 6, 6), np.random.RandomState(2).randn(4, 3, 3, 3)
    y = F.convolution(x, nn.Variable.from_numpy_array(w), pad=(1, 1))
    z = PF.svd_convolution(x, 4, (3, 3), 4, pad=(1, 1), uv_init=w)
    nn.forward_all([y, z])
    np.testing.assert_allclose(z.d, y.d, atol=1e-4)
    w = np.random.RandomState(2).randn(3 * 36, 5)
    y, z = F.affine(x, nn.Variable.from_numpy_array(w)), PF.svd_affine(x, 5, 5, uv_init=w)
    nn.forward_all([y, z])
    np.testing.assert_allclose(z.d, y.d, atol=1e-3)


def test_a_second_call_uses_the_factors():
    x = leaf(2, 3, 6, 6)
    first = PF.cpd3_convolution(x, 4, (3, 3), 2)
    second = PF.cpd3_convolution(x, 4, (3, 3), 2, oik_init=np.ones((4, 3, 3, 3)), fix_parameters=True)
    nn.forward_all([first, second])
    np.testing.assert_array_equal(first.d, second.d)
    assert first.need_grad and not second.need_grad


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: PF.svd_affine(x, 5, 0), ValueError, "svd_affine: argument 'r': expected a number from 1 to 5"),
        (lambda x: PF.svd_affine(x, 5, 6), ValueError, "argument 'r': expected a number from 1 to 5"),
        (lambda x: PF.svd_affine(x, 5, 2, base_axis=4), ValueError, "argument 'base_axis'"),
        (lambda x: PF.svd_affine(x, 5, 2, uv_init=np.ones((3, 5))), ValueError, "argument 'uv_init'"),
        (lambda x: PF.svd_convolution(x, 4, (3, 3), 5), ValueError, "svd_convolution: argument 'r'"),
        (lambda x: PF.svd_convolution(x, 4, (3, 3), 1.5), TypeError, "svd_convolution: argument 'r': expected int"),
        (lambda x: PF.cpd3_convolution(x, 4, (3, 3), -1), ValueError, "cpd3_convolution: argument 'r'"),
        (lambda x: PF.cpd3_convolution(x, 4, (9, 9), 1), ValueError, "argument 'x'"),
    ],
)
def test_errors_of_layers_leave_no_parameters(call, kind, text):
    with pytest.raises(kind, match=text):
        call(leaf(2, 3, 6, 6))
    assert not nn.get_parameters(grad_only=False)


WRONG = [
    ("svd_affine", {"inp": None}, "inp"),
    ("svd_affine", {"n_outmaps": None}, "n_outmaps"),
    ("svd_affine", {"n_outmaps": "ab"}, "n_outmaps"),
    ("svd_affine", {"n_outmaps": "34"}, "n_outmaps"),
    ("svd_affine", {"n_outmaps": [2.7]}, "n_outmaps"),
    ("svd_affine", {"base_axis": "a"}, "base_axis"),
    ("svd_affine", {"uv_init": np.full((108, 5), np.nan)}, "uv_init"),
    ("svd_affine", {"uv_init": np.full((108, 5), "a")}, "uv_init"),
    ("svd_affine", {"uv_init": "a"}, "uv_init"),
    ("svd_affine", {"with_bias": np.ones(2)}, "with_bias"),
    *(
        (name, wrong, argument)
        for name in ("svd_convolution", "cpd3_convolution")
        for wrong, argument in [
            ({"inp": None}, "inp"),
            ({"kernel": 3}, "kernel"),
            ({"kernel": (0, 0)}, "kernel"),
            ({"kernel": ("a", 3)}, "kernel"),
            ({"outmaps": 0}, "outmaps"),
            ({"outmaps": (4,)}, "outmaps"),
            ({"base_axis": "a"}, "base_axis"),
            ({"r": 2**62}, "r"),
            ({"r": 10**8}, "r"),
        ]
    ),
    ("svd_convolution", {"uv_init": np.full((4, 3, 3, 3), np.nan)}, "uv_init"),
    ("cpd3_convolution", {"oik_init": np.full((4, 3, 3, 3), np.nan)}, "oik_init"),
    ("cpd3_convolution", {"oik_init": np.zeros((4, 3, 3, 3))}, "oik_init"),
    ("cpd3_convolution", {"oik_init": np.full((4, 3, 3, 3), 1e300)}, "oik_init"),
    ("cpd3_convolution", {"stopping_criterion": "a"}, "stopping_criterion"),
    ("cpd3_convolution", {"lambda_reg": "a"}, "lambda_reg"),
    ("cpd3_convolution", {"lambda_reg": float("nan")}, "lambda_reg"),
    ("cpd3_convolution", {"max_iter": "a"}, "max_iter"),
]


@pytest.mark.parametrize(("name", "wrong", "argument"), WRONG)
def test_wrong_arguments_are_named_and_leave_no_parameters(name, wrong, argument):
    usual = {"n_outmaps": 5} if name == "svd_affine" else {"outmaps": 4, "kernel": (3, 3)}
    with pytest.raises(nn.Error, match=f"^{name}: argument '{argument}'"):
        getattr(PF, name)(**{"inp": leaf(2, 3, 6, 6), **usual, "r": 2, **wrong})
    assert not nn.get_parameters(grad_only=False)


@pytest.mark.skipif(promises_any_memory(), reason="this system promises memory that it does not have")
@pytest.mark.parametrize("outmaps", [2**62, 2**36])
@pytest.mark.parametrize("layer", [PF.svd_convolution, PF.cpd3_convolution])
def test_a_weight_beyond_all_memory(layer, outmaps):
    with pytest.raises(nn.Error, match="memory"):
        layer(leaf(2, 3, 6, 6), outmaps, (3, 3), 2)


def test_a_rank_above_what_is_needed_is_taken_as_in_nnabla():
    assert PF.cpd3_convolution(leaf(2, 3, 6, 6), 4, (3, 3), 120, max_iter=1).shape == (2, 4, 4, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"X": np.zeros((2, 2))},
        {"X": np.zeros((2, 0))},
        {"X": np.full((2, 2), np.nan)},
        {"X": np.full((2, 2), "a")},
        {"X": [[1], [2, 3]]},
        {"rank": 2**62},
        {"rank": 10**8},
        {"rng": 5},
        {"dtype": int},
        {"dtype": "foo"},
        {"stopping_criterion": "a"},
        {"lambda_reg": "a"},
    ],
)
def test_als_with_wrong_arguments(wrong):
    with pytest.raises(nn.Error, match=f"ALS.solve: argument '{next(iter(wrong))}'"):
        cpd.ALS().solve(**{"X": np.ones((2, 2)), "rank": 1, **wrong})
