"""`experimental.parametric_function_class`: layers as objects, with NNabla's initial values; and `function_bases`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.function_bases as FB
import nnrs.functions as F
import nnrs.initializer as I
import nnrs.parametric_functions as PF
from nnrs.experimental.parametric_function_class.affine import Affine, Linear
from nnrs.experimental.parametric_function_class.batch_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    BatchNormalization,
)
from nnrs.experimental.parametric_function_class.convolution import Conv1d, Conv2d, Conv3d, ConvNd, Convolution
from nnrs.experimental.parametric_function_class.deconvolution import Deconv1d, Deconv2d, Deconvolution
from nnrs.experimental.parametric_function_class.embed import Embed
from nnrs.experimental.parametric_function_class.module import Module

GOLDEN = json.loads((Path(__file__).parent / "golden" / "parametric_classes.json").read_text())


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    nn.seed(313)
    yield
    nn.clear_parameters()


@pytest.mark.parametrize("case", GOLDEN["layers"], ids=lambda case: case["code"])
def test_initial_values_and_outputs_are_nnablas(case):
    layer = eval(case["code"], {**globals()})
    made = layer.get_parameters(grad_only=False)
    assert list(made) == [name for name, *_ in case["parameters"]]
    for name, shape, need_grad, total, first in case["parameters"]:
        assert (list(made[name].shape), made[name].need_grad) == (shape, need_grad)
        assert [float(v).hex() for v in made[name].d.ravel()[:5]] == first
        assert made[name].d.sum(dtype=np.float64) == pytest.approx(total, rel=1e-6, abs=1e-6)
    x = nn.Variable.from_numpy_array(np.random.RandomState(1).randn(*case["input"]).astype(np.float32))
    y = layer(x)
    y.forward()
    assert list(y.shape) == case["output"]
    np.testing.assert_allclose(y.d.ravel()[:8], case["values"], rtol=1e-4, atol=1e-5)
    assert len(nn.get_parameters(grad_only=False)) == 0


class Block(Module):
    def __init__(self, channels: int) -> None:
        self.conv = Conv2d(3, channels, (3, 3), pad=(1, 1), with_bias=False)
        self.bn = BatchNorm2d(channels)

    def __call__(self, x: nn.Variable, test: bool = False) -> nn.Variable:
        return F.relu(self.bn(self.conv(x), test))


class Net(Module):
    def __init__(self) -> None:
        self.scale = nn.Variable.from_numpy_array(np.ones(1, np.float32), need_grad=True)
        self.block = Block(4)
        self.again = self.block
        self.fc = Affine(4 * 64, 2)

    def __call__(self, x: nn.Variable, test: bool = False) -> Any:
        return self.fc(self.block(x, test)) * F.reshape(self.scale, (1, 1))


NAMES = ["/scale", "block/conv/W", "block/bn/beta", "block/bn/gamma", "block/bn/mean", "block/bn/var", "fc/W", "fc/b"]


def test_names_of_a_network():
    net = Net()
    assert list(net.get_parameters(grad_only=False)) == NAMES
    assert list(net.get_parameters()) == [n for n in NAMES if n[-4:] not in ("mean", "/var")]
    assert [name for name, _ in net.get_modules()] == ["", "block", "block/conv", "block/bn", "fc"]
    assert isinstance(next(net.get_modules()), tuple)


def test_a_network_learns_and_is_tested():
    net = Net()
    x = nn.Variable.from_numpy_array(np.random.RandomState(0).randn(8, 3, 8, 8).astype(np.float32))
    t = nn.Variable.from_numpy_array((x.d.mean(axis=(1, 2, 3), keepdims=False) > 0).astype(int)[:, None])
    loss = F.mean(F.softmax_cross_entropy(net(x), t))
    solver = nn.solvers.Adam(0.01)
    solver.set_parameters(net.get_parameters())
    losses = []
    for _ in range(20):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        losses.append(float(loss.d))
    assert losses[-1] < losses[0] / 2
    assert net.block.bn.mean.d.any() and not net.block.bn.mean.need_grad
    y = net(x, test=True)
    y.forward()
    before = net.block.bn.mean.d.copy()
    y.forward()
    np.testing.assert_array_equal(before, net.block.bn.mean.d)


@pytest.mark.parametrize("ending", ["h5", "safetensors"])
def test_files(tmp_path, ending):
    path = str(tmp_path / f"net.{ending}")
    PF.affine(nn.Variable((1, 2)), 3)
    mine = nn.get_parameters()["affine/W"].d.copy()
    net, other = Net(), Net()
    assert not np.array_equal(net.fc.W.d, other.fc.W.d)
    net.save_parameters(path)
    other.load_parameters(path)
    for (name, a), b in zip(net.get_parameters(False).items(), other.get_parameters(False).values(), strict=True):
        np.testing.assert_array_equal(a.d, b.d, err_msg=name)
    assert list(nn.get_parameters()) == ["affine/W", "affine/b"]
    np.testing.assert_array_equal(nn.get_parameters()["affine/W"].d, mine)


def test_a_file_that_does_not_fit_changes_nothing(tmp_path):
    path = str(tmp_path / "block.h5")
    Block(4).save_parameters(path)
    wide = Block(5)
    before = wide.conv.W.d.copy()
    with pytest.raises(ValueError, match=r"'conv/W' of shape \(5, 3, 3, 3\)"):
        wide.load_parameters(path)
    with pytest.raises(ValueError, match="the parameter '/scale'"):
        Net().load_parameters(path)
    np.testing.assert_array_equal(before, wide.conv.W.d)
    assert len(nn.get_parameters(grad_only=False)) == 0


def test_other_names_of_the_same():
    assert Linear is Affine and Conv1d is Conv3d is ConvNd is Convolution and Deconv1d is Deconv2d is Deconvolution
    for norm, n in ((BatchNorm1d, 3), (BatchNorm2d, 4), (BatchNorm3d, 5)):
        layer = norm(3, eps=0.5)
        assert isinstance(layer, BatchNormalization) and (layer.gamma.ndim, layer.eps) == (n, 0.5)


def test_deconvolution_has_deconvolutions_weight():
    layer = Deconvolution(4, 6, (2, 2), group=2)
    y = layer(nn.Variable((1, 4, 3, 3)))
    assert (layer.W.shape, y.shape) == ((4, 3, 2, 2), (1, 6, 4, 4))


def test_arrays_and_numbers_begin_layers():
    layer = Affine(2, 3, w_init=np.full((2, 3), 2.0), b_init=I.ConstantInitializer(1), fix_parameters=True)
    assert layer.W.d.tolist() == [[2] * 3] * 2 and layer.b.d.tolist() == [1] * 3 and not layer.W.need_grad
    assert Affine(2, 3, with_bias=False).b is None
    assert Affine(2, (3, 4)).W.shape == (2, 12)
    assert Embed(4, 2, I.RangeInitializer())(nn.Variable((3,))).shape == (3, 2)


def test_initial_values_of_no_parameter_are_ignored_with_a_warning(monkeypatch):
    monkeypatch.setattr("nnrs._param_init._told", set())
    with pytest.warns(RuntimeWarning, match="'zork' is ignored: the parameters are 'beta', 'gamma'") as found:
        BatchNormalization(3, 4, param_init={"zork": 1})
    assert [w.filename for w in found] == [__file__]
    with pytest.raises(TypeError, match="'param_init': expected initial values by name, a dict"):
        BatchNormalization(3, 4, param_init=5)


WRONG = [
    lambda: Affine(2, 3, w_init=np.ones((3, 3))),
    lambda: Affine(2, 3, b_init="ones"),
    lambda: Convolution(3, 4, (3,), group=2),
    lambda: Deconvolution(4, 4, (3,), group=0),
    lambda: BatchNormalization(3, 4, axes=[1, 2]),
    lambda: BatchNormalization(3, 4, axes=[4]),
    lambda: BatchNormalization(3, 4, param_init={"beta": np.ones(3)}),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    with pytest.raises(ValueError, match="expected"):
        WRONG[number]()


# --- function_bases ---------------------------------------------------------------------------------------------------


def test_function_bases_have_nnablas_signatures():
    """But for `None` as the default where nnrs says what is meant."""
    checked = 0
    for name, code in GOLDEN["function_bases"].items():
        ours = list(inspect.signature(getattr(FB, name)).parameters)
        if not code[0].startswith("*"):
            theirs = [part.split("=")[0] for part in code]
            assert ours[: len(theirs)] == theirs, name
        checked += 1
    assert checked > 180


def test_function_bases_compute():
    x = nn.Variable.from_numpy_array(np.random.RandomState(0).randn(4, 3, 5).astype(np.float32))
    assert FB.relu is F.relu
    mean, var = nn.Variable((1, 3, 1)), nn.Variable((1, 3, 1))
    y = FB.batch_normalization(x, None, None, mean, var, (1,), no_scale=True, no_bias=True)
    three = FB.batch_normalization(x, None, None, mean, var, no_scale=True, no_bias=True, n_outputs=3)
    nn.forward_all([y, *three])
    assert len(three) == 3
    np.testing.assert_array_equal(y.d, three[0].d)
    ours = F.batch_normalization(x, None, None, mean, var)
    ours.forward()
    np.testing.assert_array_equal(y.d, ours.d)
    assert FB.fused_batch_normalization(x, None, None, mean, var, n_outputs=3)[1].shape == (1, 3, 1)
    total = FB.sum(x, axes=(0, 2), keep_dims=True)
    total.forward()
    np.testing.assert_allclose(total.d, x.d.sum(axis=(0, 2), keepdims=True), rtol=1e-5)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        FB.nonsense  # noqa: B018


def test_function_bases_leave_out_inputs_and_give_one_output():
    x, w, offset, bias = (nn.Variable(s) for s in ((1, 1, 3, 3), (1, 1, 2, 2), (1, 8, 3, 3), (1,)))
    assert FB.deformable_convolution(x, w, offset, bias=bias).shape == (1, 1, 2, 2)
    own = [nn.Variable((1, 1, 1, 1)) for _ in range(4)]
    into = nn.NdArray(x.shape)
    for more in ({}, {"n_outputs": 1}, {"outputs": [into]}):
        assert FB.min_max_quantize(x, *own, **more).shape == x.shape
    with pytest.raises(nn.Error, match="min_max_quantize: missing a required argument"):
        FB.min_max_quantize(x)


def test_function_api_gives_the_context():
    @FB.function_api
    def name_of(ctx, x, more=1):
        """What it does."""
        return ctx.backend, x, more

    with nn.context_scope(nn.Context(["cpu:half"], "CpuCachedArray", "0")):
        assert name_of(3) == (["cpu:half"], 3, 1)
    assert str(inspect.signature(name_of)) == "(x, more=1)" and name_of.__doc__ == "What it does."
    assert name_of.__function_api_base__(nn.get_current_context(), 2, 3)[1:] == (2, 3)
    with pytest.raises(ValueError, match="'ctx' as its first argument"):
        FB.function_api(lambda x: x)
