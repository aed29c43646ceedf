"""Graphs that are rebuilt compute what they computed, or what the modifier says; the old graph stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

import function_harness as harness
import nnrs as nn
import nnrs.experimental.graph_converters as GC
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.function import PythonFunction

pytestmark = pytest.mark.host
TARGETS = harness.targets()


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


@pytest.fixture
def x():
    return nn.Variable.from_numpy_array(np.random.default_rng(0).random((2, 3, 8, 8), np.float32))


def types(y):
    found = []
    y.visit(lambda f: found.append(f.info.type_name))
    return found


def convert(y, *modifiers):
    return GC.GraphConverter(list(modifiers)).convert(y)


def value(y):
    y.forward()
    return y.d.copy()


def check_same(y, *modifiers, tolerance=1e-5):
    """The converted graph of y, which gives what y gives; y itself still does, too."""
    before = value(y)
    parameters = {n: v.d.copy() for n, v in nn.get_parameters(grad_only=False).items() if "folded" not in n}
    z = convert(y, *modifiers)
    np.testing.assert_allclose(value(z), before, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(value(y), before)
    now = nn.get_parameters(grad_only=False)
    assert all(np.array_equal(now[name].d, v) for name, v in parameters.items())
    return z


def normalized(h, name="bn", axes=(1,)):
    """Batch normalization with statistics that are not the usual ones."""
    h = PF.batch_normalization(h, axes=list(axes), batch_stat=False, name=name)
    rng = np.random.default_rng(1)
    for path, v in nn.get_parameters(grad_only=False).items():
        if path.startswith(f"{name}/"):
            v.d = rng.random(v.shape) + 0.5
    return h


def test_every_function_is_rebuilt_to_the_same_bits():
    """All cases of tests/function, which have the same arguments then."""
    count = 0
    for target in TARGETS:
        if target.case.check or target.case.mutates:
            continue
        values = target.inputs("float")
        ys = target.call(harness.variables(values, [False] * len(values)))
        if not all(isinstance(y, nn.Variable) and y.parent is not None for y in ys):
            continue
        zs = convert(ys, GC.IdentityModifier())
        nn.forward_all(ys)
        nn.forward_all(zs)
        count += 1
        for y, z in zip(ys, zs, strict=True):
            assert z.parent is not y.parent and np.array_equal(y.d, z.d, equal_nan=True), target.id
    assert count > 1000


def test_one_variable_or_a_list(x):
    h = F.relu(x)
    y, z = h * 2, h + 1
    assert isinstance(convert(y, GC.FunctionModifier()), nn.Variable)
    both = convert([y, z], GC.FunctionModifier())
    assert isinstance(both, list) and both[0].parent.inputs[0] == both[1].parent.inputs[0] != h
    assert len(convert((y, z), GC.FunctionModifier())) == 2
    assert GC.GraphConverter().convert(y) is y
    assert convert(x, GC.FunctionModifier()) == x
    for wrong in (3, [3], None):
        with pytest.raises(TypeError, match="argument 'o'"):
            convert(wrong, GC.FunctionModifier())
    for wrong in (3, [3], ["relu"]):
        with pytest.raises(TypeError, match="argument 'modifiers'"):
            GC.GraphConverter(wrong)


def test_modifiers_of_ones_own(x):
    class Squared(GC.FunctionModifier):
        def __init__(self):
            super().__init__()
            self.seen, self.finished = [], 0

        def modify(self, f, inputs):
            self.seen.append((f.info.type_name, [v.shape for v in inputs]))
            return inputs[0] ** 2 if f.info.type_name == "ReLU" else None

        def __finish__(self):
            self.finished += 1

    modifier = Squared()
    z = convert(F.relu(x) * 2, modifier)
    assert modifier.seen == [("ReLU", [x.shape]), ("MulScalar", [x.shape]), ("Sink", [x.shape])]
    assert modifier.finished == 1
    np.testing.assert_allclose(value(z), 2 * x.d**2, rtol=1e-6)

    class Wrong(GC.FunctionModifier):
        def modify(self, f, inputs):
            return 3

    with pytest.raises(TypeError, match="Wrong.modify: expected None, a Variable or several"):
        convert(F.relu(x), Wrong())


def test_several_outputs_and_functions_in_python(x):
    class Half(PythonFunction):
        name = "Half"
        runs = 0

        def min_outputs(self):
            return 1

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            Half.runs += 1
            outputs[0].d = inputs[0].d / 2

        def backward_impl(self, inputs, outputs, propagate_down, accum):
            pass

    parts = F.split(x, 1)
    y = Half(nn.get_current_context())(parts[0]) + parts[2]
    z = convert(y, GC.FunctionModifier())
    assert Half.runs == 0
    np.testing.assert_allclose(value(z), x.d[:, 0] / 2 + x.d[:, 2])


def test_functions_come_depth_first(x):
    order = []

    class Noted(GC.FunctionModifier):
        def modify(self, f, inputs):
            order.append(f.info.type_name)

    convert(F.add2(F.tanh(F.sin(x)), F.cos(F.exp(x))), Noted())
    assert order == ["Sin", "Tanh", "Exp", "Cos", "Add2", "Sink"]  # NNabla's order


def test_a_long_chain(x):
    y = x
    for _ in range(3000):
        y = y + 1
    np.testing.assert_allclose(value(convert(y, GC.FunctionModifier())), x.d + 3000, rtol=1e-6)


def test_other_inputs(x):
    other = nn.Variable.from_numpy_array(np.ones((5, 3, 8, 8), np.float32))
    y = F.add2(F.sin(x), x)
    z = convert(y, GC.IdentityModifier({x: other}))
    np.testing.assert_allclose(value(z), np.sin(1) + other.d, rtol=1e-6)
    assert x not in [v for f in (z.parent, z.parent.inputs[0].parent) for v in f.inputs]
    copy = nn.Variable(x.shape)
    x.g = 3
    z = convert(y, GC.IdentityModifier({x: copy}, copy_value=True))
    assert np.array_equal(copy.d, x.d) and (copy.g == 3).all()
    with pytest.raises(ValueError, match="copy_value=True"):
        GC.IdentityModifier({x: other}, copy_value=True)


def test_gradients_are_those_of_the_same_parameters(x):
    y = PF.affine(F.relu(PF.convolution(x, 4, (3, 3), name="c")), 2, name="a")
    z = convert(y, GC.IdentityModifier())
    for v in nn.get_parameters().values():
        v.grad.zero()
    z.forward()
    z.backward()
    found = {name: v.g.copy() for name, v in nn.get_parameters().items()}
    for v in nn.get_parameters().values():
        v.grad.zero()
    y.forward()
    y.backward()
    assert all(np.array_equal(v.g, found[name]) and v.g.any() for name, v in nn.get_parameters().items())


def test_no_grad(x):
    y = PF.affine(F.relu(PF.affine(x, 3, name="a")), 2, name="b")
    z = check_same(y, GC.NoGradModifier())
    assert not any(v.need_grad for v in z.parent.inputs) and not z.need_grad
    assert all(v.need_grad for v in nn.get_parameters().values())


def test_removal(x):
    y = F.tanh(F.dropout(F.relu(x), 0.5))
    z = convert(y, GC.RemoveFunctionModifier(["Dropout"]))
    assert types(z) == ["ReLU", "Tanh"]
    np.testing.assert_allclose(value(z), np.tanh(x.d), rtol=1e-5)
    assert types(convert(y, GC.RemoveFunctionModifier(["ReLU", "Tanh"]))) == ["Dropout"]
    assert convert(F.relu(x), GC.RemoveFunctionModifier(["ReLU"])) == x


def test_networks_in_use(x):
    y = F.dropout(PF.batch_normalization(x, no_scale=True), 0.5)
    y.forward()
    z = convert(y, GC.TestModeModifier(["Dropout"]))
    mean, variance = (nn.get_parameters(grad_only=False)[f"bn/{name}"] for name in ("mean", "var"))
    np.testing.assert_allclose(value(z), (x.d - mean.d) / np.sqrt(variance.d + 1e-5), rtol=1e-4)
    assert [type(m) for m in GC.TestModeModifier()] == [GC.BatchNormBatchStatModifier, GC.RemoveFunctionModifier]


LAYERS = {
    "convolution": lambda h, **args: PF.convolution(h, 4, (3, 3), name="l", **args),
    "groups": lambda h, **args: PF.convolution(h, 6, (3, 3), group=3, pad=(1, 1), name="l", **args),
    "deconvolution": lambda h, **args: PF.deconvolution(h, 4, (3, 3), name="l", **args),
    "deconvolution by groups": lambda h, **args: PF.deconvolution(h, 6, (3, 3), group=3, name="l", **args),
    "affine": lambda h, **args: PF.affine(h, 4, name="l", **args),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("with_bias", [False, True])
def test_folding_into_the_layer_before(layer, with_bias, x):
    y = F.relu(normalized(LAYERS[layer](x, with_bias=with_bias)))
    z = check_same(y, GC.BatchNormalizationFoldingModifier())
    assert len(types(z)) == 2 and "BatchNormalization" not in types(z)
    folded = [name for name in nn.get_parameters() if name.endswith("-folded")]
    assert [name.rpartition("/")[2] for name in folded] == ["w-folded", "b-folded"]


@pytest.mark.parametrize("no", [{"no_scale": True}, {"no_bias": True}, {"no_scale": True, "no_bias": True}])
def test_folding_without_scale_or_bias(no, x):
    y = PF.batch_normalization(PF.convolution(x, 4, (3, 3)), batch_stat=False, **no)
    for mod in (GC.BatchNormalizationFoldingModifier(), GC.BatchNormalizationSelfFoldingModifier()):
        assert "BatchNormalization" not in types(check_same(y, mod))


@pytest.mark.parametrize(
    "layer, folds", [("convolution", True), ("affine", True), ("groups", False), ("deconvolution", False)]
)
@pytest.mark.parametrize("with_bias", [False, True])
def test_folding_into_the_layer_behind(layer, folds, with_bias, x):
    y = F.relu(LAYERS[layer](normalized(F.tanh(x)), with_bias=with_bias))
    z = check_same(y, GC.BatchNormalizationFoldingModifier(opposite=True))
    assert ("BatchNormalization" in types(z)) is not folds  # only where it is exact


def test_what_others_read_is_not_folded(x):
    h = PF.convolution(x, 4, (3, 3))
    assert "BatchNormalization" in types(check_same(F.relu(normalized(h) + h), GC.BatchNormalizationFoldingModifier()))
    h = normalized(F.tanh(x), "b2")
    y = F.sum(PF.convolution(h, 4, (3, 3))) + F.sum(h)
    assert "BatchNormalization" in types(check_same(y, GC.BatchNormalizationFoldingModifier(opposite=True)))
    y = normalized(PF.convolution(x, 4, (3, 3)), "b3", axes=(2,))
    assert "BatchNormalization" in types(check_same(y, GC.BatchNormalizationFoldingModifier()))


def test_weights_that_layers_share_are_folded_for_each(x):
    h = normalized(PF.convolution(x, 3, (3, 3), pad=(1, 1), name="c"), "b1")
    y = normalized(PF.convolution(F.relu(h), 3, (3, 3), pad=(1, 1), name="c"), "b2")
    nn.get_parameters()["b2/bn/gamma"].d = 0.1
    check_same(y, GC.BatchNormalizationFoldingModifier())
    assert "c/conv/w-folded-1" in nn.get_parameters()


def test_folding_again_takes_the_values_of_now(x):
    y = normalized(PF.convolution(x, 4, (3, 3)))
    check_same(y, GC.BatchNormalizationFoldingModifier())
    nn.get_parameters()["conv/W"].d = 0.5
    names = list(nn.get_parameters())
    check_same(y, GC.BatchNormalizationFoldingModifier())
    assert list(nn.get_parameters()) == names


def test_folding_all_ways_at_once(x):
    h = F.relu(normalized(PF.convolution(x, 4, (3, 3), name="c1"), "b1"))
    h = normalized(h, "b2")
    y = PF.convolution(h, 3, (3, 3), name="c2") + F.sum(F.tanh(normalized(F.sin(x), "b3")))
    modifiers = [GC.BatchNormalizationFoldingModifier(opposite) for opposite in (False, True)]
    z = check_same(y, *modifiers, GC.BatchNormalizationSelfFoldingModifier(), tolerance=1e-4)
    assert "BatchNormalization" not in types(z)


def test_self_folding(x):
    y = normalized(normalized(F.tanh(x), "b1"), "b2")
    z = check_same(y, GC.BatchNormalizationSelfFoldingModifier("sf"))
    assert types(z) == ["Tanh", "Mul2", "Add2", "Mul2", "Add2"]
    made = [name for name in nn.get_parameters() if name.startswith("sf/")]
    assert made == ["sf/c0-sf-0", "sf/c1-sf-0", "sf/c0-sf-1", "sf/c1-sf-1"]


def test_weights_without_a_name(x):
    w = nn.Variable.from_numpy_array(np.random.default_rng(2).random((4, 3, 3, 3), np.float32))
    y = normalized(F.convolution(x, w))
    names = list(nn.get_parameters())
    check_same(y, GC.BatchNormalizationFoldingModifier())
    assert list(nn.get_parameters()) == names


def test_fused_and_unfused(x):
    y = F.relu(normalized(PF.convolution(x, 3, (3, 3), pad=(1, 1))) + F.tanh(x))
    z = check_same(y, GC.FusedBatchNormalizationModifier())
    check_same(z, GC.UnfusedBatchNormalizationModifier())
    y = F.relu(F.tanh(x) + normalized(F.sin(x)))
    check_same(y, GC.FusedBatchNormalizationModifier())
    check_same(F.relu(F.tanh(x) + 1), GC.FusedBatchNormalizationModifier())


def test_pruning(x):
    y = PF.affine(F.relu(PF.convolution(x, 4, (3, 3), name="c")), 3, name="a")
    w, b = (nn.get_parameters()[f"c/conv/{name}"] for name in "Wb")
    w.d = np.random.default_rng(3).random(w.shape)
    w.d[1] = 0.01
    b.d = 1
    z = convert(y, GC.PruningModifier(0.9, ("Convolution",)))
    pruned = nn.get_parameters()["c/conv/w-pruned"]
    assert not pruned.d[1].any() and np.array_equal(pruned.d[[0, 2, 3]], w.d[[0, 2, 3]])
    assert nn.get_parameters()["c/conv/b-pruned"].d.tolist() == [1, 0, 1, 1]
    assert "a/affine/w-pruned" not in nn.get_parameters()
    assert w.d[1].any() and pruned == z.parent.inputs[0].parent.inputs[0].parent.inputs[1]
    convert(y, GC.PruningModifier(1e9))
    assert not nn.get_parameters()["a/affine/w-pruned"].d.any()


@pytest.mark.parametrize(
    "layer",
    [
        lambda h: PF.depthwise_convolution(h, (3, 3), multiplier=2),
        lambda h: PF.depthwise_deconvolution(h, (3, 3)),
        lambda h: PF.deconvolution(h, 6, (3, 3), group=3),
    ],
)
def test_pruning_of_other_layers(layer, x):
    check_same(layer(x), GC.PruningModifier(0))
    assert not value(convert(layer(x), GC.PruningModifier(1e9))).any()


def layout_network(h):
    h = PF.convolution(h, 4, (3, 3), pad=(1, 1), name="c1")
    h = F.relu(normalized(h, "b1"))
    h = F.concatenate(F.max_pooling(h, (2, 2)), F.average_pooling(h, (2, 2)), F.sum_pooling(h, (2, 2)), axis=1)
    h = PF.deconvolution(h, 5, (2, 2), stride=(2, 2), name="d1", with_bias=False)
    h = F.unpooling(F.interpolate(h, scale=(0.5, 0.5), mode="nearest"), (2, 2))
    return PF.affine(F.relu(PF.affine(h, 6, name="a1")), 3, name="a2")


def test_channels_in_the_last_axis(x):
    y = layout_network(x)
    modifier = GC.ChannelLastModifier([x])
    z = check_same(y, modifier)
    assert modifier.inputs_cl[0].shape == (2, 8, 8, 3)
    assert nn.get_parameters()["c1/conv/W_cl"].shape == (4, 3, 3, 3)
    modifier.inputs_cl[0].d = 0
    x.d = 0
    np.testing.assert_allclose(value(z), value(y), rtol=1e-5)


def test_channels_there_and_back(x):
    y = layout_network(x)
    last = GC.ChannelLastModifier([x])
    z = convert(y, last)
    back = GC.ChannelFirstModifier(last.inputs_cl)
    again = check_same(z, back)
    assert np.array_equal(back.inputs_cf[0].d, x.d)
    np.testing.assert_allclose(value(again), value(y), rtol=1e-4, atol=1e-5)
    own = nn.Variable.from_numpy_array(x.d.transpose(0, 2, 3, 1))
    np.testing.assert_allclose(value(convert(y, GC.ChannelLastModifier([x], [own]))), value(y), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="4 axes"):
        GC.ChannelLastModifier([nn.Variable((2, 3))])
    with pytest.raises(ValueError, match="1 variables"):
        GC.ChannelLastModifier([x, x], [own])
