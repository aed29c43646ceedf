"""`core.modules`: parameters, shapes and functions as in NNabla 1.39."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs.core.modules import ConvBn, ResUnit, complete_dims, get_conv_same_pad

LAYER = ["conv/W", "bn/beta", "bn/gamma", "bn/mean", "bn/var"]


def functions(y):
    found = []
    y.visit(lambda f: found.append((f.name, f.args.get("batch_stat"))))
    return found


def test_res_unit():
    unit = ResUnit(8, 2)
    y = unit(nn.Variable((1, 4, 16, 16)))
    assert y.shape == (1, 8, 8, 8)
    names = [f"@{part}/{name}" for part in ("conv1", "conv2", "conv3", "skip") for name in LAYER]
    assert list(unit.get_parameters()) == names
    assert unit.get_parameters()["@conv2/conv/W"].shape == (2, 2, 3, 3)


def test_res_unit_for_inference():
    """NNabla leaves `training` out, and normalizes by the batch whatever it says."""
    layer = ["Convolution", "BatchNormalization"]
    y = ResUnit(4, 1, False)(nn.Variable((1, 4, 16, 16)), training=False)
    assert [name for name, _ in functions(y)] == [*layer, "ReLU", *layer, "ReLU", *layer, "Add2", "ReLU"]
    assert {stat for name, stat in functions(y) if name == "BatchNormalization"} == {False}


def test_conv_bn():
    x = np.random.default_rng(1).normal(size=(2, 3, 5, 5)).astype(np.float32)
    layer = ConvBn(4, kernel=(3, 1), stride=2, act=F.elu)
    y = layer(nn.Variable.from_numpy_array(x))
    y.forward()
    assert y.shape == (2, 4, 3, 3) and list(layer.get_parameters(grad_only=False)) == LAYER
    w = layer.get_parameters()["conv/W"].d
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    h = np.stack(
        [np.einsum("nchw,ochw->no", padded[:, :, i : i + 3, j : j + 1], w) for i in (0, 2, 4) for j in (0, 2, 4)]
    )
    h = h.reshape(3, 3, 2, 4).transpose(2, 3, 0, 1)
    h = (h - h.mean((0, 2, 3), keepdims=True)) / np.sqrt(h.var((0, 2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.d, np.where(h > 0, h, np.exp(np.minimum(h, 0)) - 1), rtol=1e-4, atol=1e-5)


def test_sizes():
    assert complete_dims(3, 2) == (3, 3) and complete_dims([1, 2], 2) == [1, 2] and complete_dims({4: 5}, 1) == (4,)
    assert get_conv_same_pad((1, 3, 4)) == (0, 1, 2)
    with pytest.raises(ValueError, match="expected a number, or 2 of them"):
        complete_dims((1, 2, 3), 2)
    with pytest.raises(ValueError, match="ResUnit: argument 'channels': expected 4 or more, got 3"):
        ResUnit(3)
