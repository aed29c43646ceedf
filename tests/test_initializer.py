"""Initializers give NNabla's numbers (golden/parametric.json) and properties that can be checked by themselves."""

import json
import pathlib

import numpy as np
import pytest

import nnrs as nn
import nnrs.initializer as I  # the golden cases read it
import nnrs.random

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "parametric.json").read_text())


@pytest.mark.parametrize("case", GOLDEN["initializers"], ids=lambda case: f"{case['code']}{tuple(case['shape'])}")
def test_same_numbers_as_nnabla(case):
    nn.seed(313)
    values = eval(case["code"], {"I": I, "np": np})(tuple(case["shape"]))
    assert list(values.shape) == case["shape"]
    assert str(values.dtype) == case["dtype"]
    if "Orthogonal" in case["code"]:  # LAPACK's last bits differ between builds
        np.testing.assert_allclose(values.ravel(), np.array(case["values"], values.dtype), rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(values.ravel(), np.array(case["values"], values.dtype))


@pytest.mark.parametrize(("code", "expected"), GOLDEN["calcs"], ids=lambda v: v if isinstance(v, str) else "")
def test_same_helpers_as_nnabla(code, expected):
    np.testing.assert_array_equal(np.asarray(eval(code, {"I": I})), expected)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 3, 2)])
def test_orthogonal_rows_or_columns(shape):
    w = I.OrthogonalInitializer(2.0)(shape).reshape(shape[0], -1).astype(np.float64)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_weight_normalization_scale_is_the_norm(dim):
    w = nn.Variable.from_numpy_array(np.random.RandomState(0).randn(4, 3, 2).astype(np.float32))
    rows = np.moveaxis(w.d.astype(np.float64), dim, 0).reshape(w.shape[dim], -1)
    scale = I.WeightNormalizationScaleInitializer(w, dim, 0.1)((w.shape[dim],))
    np.testing.assert_allclose(scale, np.sqrt((rows**2).sum(1) + 0.1), rtol=1e-6)


def test_weight_normalization_scale_checks_dim():
    with pytest.raises(ValueError, match="an axis of the weight of shape"):
        I.WeightNormalizationScaleInitializer(nn.Variable((2, 3)), 2)((2,))


def test_scalars_and_shapes_without_axes():
    for initializer in (I.NormalInitializer(), I.UniformInitializer(), I.ConstantInitializer(3)):
        assert initializer(()).shape == ()
    for initializer in (I.RangeInitializer(), I.OrthogonalInitializer()):
        with pytest.raises(ValueError, match="a shape with at least one axis"):
            initializer(())


BAD = [
    (I.NormalInitializer("a"), (2,), "sigma"),
    (I.NormalInitializer(None), (2,), "sigma"),
    (I.NormalInitializer(float("nan")), (2,), "sigma"),
    (I.NormalInitializer([1, 2]), (2,), "sigma"),
    (I.UniformInitializer((0, float("inf"))), (2,), "lim"),
    (I.UniformInitializer((0, 1, 2)), (2,), "lim"),
    (I.UniformIntInitializer((3, 3)), (2,), "lim"),
    (I.RangeInitializer("a"), (2,), "start"),
    (I.RangeInitializer(0, None), (2,), "step"),
    (I.OrthogonalInitializer(float("inf")), (2, 2), "gain"),
    (I.ConstantInitializer("a"), (2,), "value"),
    (I.ConstantInitializer(None), (2,), "value"),
    (I.ConstantInitializer([1, 2, 3]), (2,), "value"),
]
KINDS = [
    I.NormalInitializer, I.UniformInitializer, I.UniformIntInitializer, I.RangeInitializer, I.OrthogonalInitializer,
    I.ConstantInitializer,
]  # fmt: skip


@pytest.mark.parametrize(("initializer", "shape", "argument"), BAD, ids=[repr(bad[0]) for bad in BAD])
def test_bad_arguments_are_errors_and_nothing_is_drawn(initializer, shape, argument):
    before = str(nnrs.random.prng.get_state())
    with pytest.raises(nn.Error, match=f"{type(initializer).__name__}: argument '{argument}': expected"):
        initializer(shape)
    assert str(nnrs.random.prng.get_state()) == before


@pytest.mark.parametrize("shape", ["ab", None, (2, -1), (2.5,), (2**40, 2**40), (None, 2), [[1, 2]]], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_shapes(kind, shape):
    with pytest.raises(nn.Error, match=f"{kind.__name__}: argument 'shape'"):
        kind()(shape)


@pytest.mark.parametrize("kind", KINDS)
def test_what_else_is_a_shape(kind):
    assert kind()(3).shape == (3,) and kind()(np.array([2, 3])).shape == kind()([np.int64(2), 3]).shape == (2, 3)
    assert kind()((0, 3)).shape == (0, 3) and kind()((3, 0)).shape == (3, 0)


def test_reprs():
    assert repr(I.NormalInitializer(0.3)) == "NormalInitializer(0.3)"
    assert repr(I.UniformInitializer((-2, 3))) == "UniformInitializer((-2, 3))"
    assert repr(I.UniformIntInitializer()) == "UniformIntInitializer((0, 10))"
    assert repr(I.OrthogonalInitializer()) == "OrthogonalInitializer(1.0)"
    assert repr(I.ConstantInitializer(2)) == "ConstantInitializer(2)"
    assert repr(I.RangeInitializer(1, 2)) == "RangeInitializer(1, 2)"


def test_base_class_must_be_derived():
    with pytest.raises(NotImplementedError):
        I.BaseInitializer()((2,))


def test_seed_replaces_the_generator():
    nn.seed(313)
    np.testing.assert_array_equal(nnrs.random.prng.rand(3), GOLDEN["prng"])
    before = I.NormalInitializer()
    nn.seed(5)
    assert nnrs.random.pseed == 5
    np.testing.assert_array_equal(I.UniformInitializer((0, 1)).rng.rand(2), np.random.RandomState(5).rand(2))
    assert before.rng is not nnrs.random.prng
    nn.seed(9, set_parameter_seed=False)
    assert nnrs.random.pseed == 5


@pytest.mark.parametrize(("value", "kind"), [("a", TypeError), (1.5, TypeError), (None, TypeError), (-1, ValueError)])
def test_bad_seeds(value, kind):
    state = nnrs.random.prng
    with pytest.raises(kind, match="seed: argument 'seed_value'"):
        nn.seed(value)
    with pytest.raises(kind):
        nnrs.random.set_parameter_seed(value)
    assert nnrs.random.prng is state
