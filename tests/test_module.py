"""`nn.Module`, `nn.Sequential`: parameters of their own; `nnrs.testing`."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.core.module import snake_case
from nnrs.testing import assert_allclose
from nnrs.testing import clear_called_flag_recorder as recorder


class Block(nn.Module):
    def __init__(self, n=2):
        self.n = n

    def call(self, x):
        return F.relu(PF.affine(x, self.n, name="fc"))


class Net(nn.Module):
    def __init__(self):
        self.a = Block(4)
        self.b = Block(2)

    def call(self, x, scale=1.0):
        h = self.b(self.a(x)) * scale
        with nn.parameter_scope("sc"):
            h = PF.affine(h, 3)
        return PF.affine(h, 2, name="out")


@pytest.fixture
def net():
    nn.clear_parameters()
    net = Net()
    net(nn.Variable((1, 3)), scale=2.0)
    return net


NAMES = ["@a/fc/affine/W", "@a/fc/affine/b", "@b/fc/affine/W", "@b/fc/affine/b"]
OWN = ["sc/affine/W", "sc/affine/b", "out/affine/W", "out/affine/b"]


def test_parameters_belong_to_the_module(net):
    assert list(net.get_parameters()) == NAMES + OWN and not nn.get_parameters()
    assert list(net.get_parameters(recursive=False)) == OWN
    assert list(net.a.get_parameters()) == ["fc/affine/W", "fc/affine/b"]
    before = net.get_parameters()
    y = net(nn.Variable((1, 3)))
    assert net.get_parameters() == before and y.parent.inputs[1] == before["out/affine/W"]
    net.get_parameters()["out/affine/b"].need_grad = False
    assert "out/affine/b" not in net.get_parameters(grad_only=True)


def test_names_and_tree(net):
    assert (net.name, net.a.name, net.b.name) == ("net", "a", "b")
    assert net.is_root() and not net.a.is_root() and net.a.parent is net and net.parent is None
    assert (net.a.get_scope_name(), net.a.get_path_name()) == ("@a", "@net/@a")
    assert list(net.submodules) == ["a", "b"] and len(net) == 2 and net
    assert list(net.parameter_scope) == ["sc", "out"]
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'zork'"):
        net.zork  # noqa: B018
    net.a = Block(3)
    assert list(net.submodules) == ["a", "b"] and not net.a.get_parameters()
    net.a = 3
    assert net.a == 3 and list(net.submodules) == ["b"]
    del net.b
    assert not net.submodules
    names = {
        "ConvBN": "conv_b_n",
        "B": "b",
        "HTTPNet2D": "h_t_t_p_net2_d",
        "my_Net": "my__net",
        "_P": "__p",
        "X2Y": "x2_y",
    }
    assert {n: snake_case(n) for n in names} == names  # as NNabla 1.39 says


def test_training_is_set_for_all_within(net):
    assert net.training and net.a.training
    net.training = False
    assert not net.a.training and not net.b.training
    net.a.training = True
    assert not net.training and net.a.training


def test_a_shared_parameter_is_listed_once(net):
    w = net.get_parameters()["@a/fc/affine/W"]
    net.set_parameter("copy/W", w)
    assert list(net.get_parameters()) == NAMES + OWN
    net.again = net.a
    assert list(net.get_parameters()) == NAMES + OWN


def test_parameters_can_be_set(net):
    w = nn.Variable.from_numpy_array(np.ones((3, 4), np.float32), need_grad=True)
    net.set_parameters({"@a/fc/affine/W": w})
    net.update_parameter()
    assert net.a.get_parameters()["fc/affine/W"] == w
    y = net.a(nn.Variable((1, 3)))
    assert y.parent.inputs[0].parent.inputs[1] == w
    net.set_parameter("@none/W", w)
    with pytest.raises(ValueError, match="'none'"):
        net.set_parameter("@none/W", w, raise_if_missing=True)
    for v in net.get_parameters().values():
        v.g = 3
    net.zero_grad()
    assert all(not v.g.any() for v in net.get_parameters().values())


@pytest.mark.parametrize("suffix", [".h5", ".safetensors"])
def test_files(net, tmp_path, suffix):
    path = str(tmp_path / f"p{suffix}")
    net.save_parameters(path)
    for other in (Net(), Net()):
        if other.parent is None:
            other(nn.Variable((1, 3)))
        other.load_parameters(path)
        assert list(other.get_parameters()) == NAMES + OWN
        for key, v in other.get_parameters().items():
            assert np.array_equal(v.d, net.get_parameters()[key].d)
    fresh = Net()
    fresh.load_parameters(path)
    assert fresh(nn.Variable((1, 3))).parent.inputs[1] == fresh.get_parameters()["out/affine/W"]
    with pytest.raises(ValueError, match="'a'"):
        Block().load_parameters(path)
    block = Block()
    block.load_parameters(path, raise_if_missing=False)
    assert list(block.get_parameters()) == OWN


class Coder(nn.Module):
    """Makes parameters in `__init__`, in methods, and in methods of its base and of a module within."""

    def __init__(self):
        self.inner = Block()
        self.w = nn.parameter.get_parameter_or_create("w", (2, 3))
        with nn.parameter_scope("i"):
            PF.affine(nn.Variable((1, 2)), 3)

    def encode(self, x):
        """Of x."""
        return PF.affine(x, 3, name="e")

    def call(self, x):
        with nn.parameter_scope("unseen"):
            return self.encode(self.inner(x))

    @property
    def outside(self):
        return PF.affine(nn.Variable((1, 2)), 3, name="p")


class Deeper(Coder):
    def __init__(self):
        super().__init__()
        self.v = nn.parameter.get_parameter_or_create("v", (2,))


def test_all_methods_have_the_modules_parameters():
    c = Coder()
    assert list(c.get_parameters(recursive=False)) == ["w", "i/affine/W", "i/affine/b"]
    Coder().encode(nn.Variable((1, 5)))  # of its own
    c.encode(nn.Variable((1, 2)))
    c(nn.Variable((1, 2)))
    own = ["e/affine/W", "e/affine/b", "i/affine/W", "i/affine/b", "w"]
    assert sorted(c.get_parameters(recursive=False)) == own
    assert sorted(Deeper().get_parameters(recursive=False)) == ["i/affine/W", "i/affine/b", "v", "w"]
    assert not nn.get_parameters()
    assert c.outside.shape == (1, 3) and sorted(nn.get_parameters()) == ["p/affine/W", "p/affine/b"]
    assert Coder.encode.__doc__ == "Of x." and repr(c) == "Coder"


def test_a_call_that_raises_leaves_the_scope(net):
    class Bad(nn.Module):
        def call(self, x):
            raise KeyError("x")

    with pytest.raises(KeyError):
        Bad()(3)
    PF.affine(nn.Variable((1, 2)), 2)
    assert list(nn.get_parameters()) == ["affine/W", "affine/b"]
    nn.clear_parameters()
    with pytest.raises(NotImplementedError, match="call"):
        nn.Module()(3)


def test_copies_have_their_own_parameters(net):
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(other.get_parameters()) == NAMES + OWN and other.a.parent is other
        other.get_parameters()["out/affine/W"].d[...] = 7
        assert not (net.get_parameters()["out/affine/W"].d == 7).any()


def test_sequential():
    s = nn.Sequential(Block(3), ("last", Block(2)))
    y = s(nn.Variable((1, 4)))
    assert y.shape == (1, 2) and list(s.submodules) == ["block_0", "last"] and len(s) == 2
    assert list(s.get_parameters())[::2] == ["@block_0/fc/affine/W", "@last/fc/affine/W"]
    assert s.last.n == 2
    for wrong in (3, F.relu, [Block()], {"x": Block()}, ("a", 3)):
        with pytest.raises(TypeError, match="Module"):
            nn.Sequential(wrong)
    with pytest.raises(ValueError, match="no module"):
        nn.Sequential()(3)


# nnrs.testing


def test_assert_allclose():
    assert_allclose([1.0, np.nan], [1.0000001, np.nan])
    assert_allclose(nn.Variable.from_numpy_array([1.0]), 1.0)
    for wrong in (([1.0], [1.1]), (np.ones(2), np.ones(3)), ([np.nan], [1.0])):
        with pytest.raises(AssertionError):
            assert_allclose(*wrong)
    with pytest.raises(AssertionError):
        assert_allclose([np.nan], [np.nan], equal_nan=False)


def chain():
    x = nn.Variable.from_numpy_array(np.array([1.0, 2.0], np.float32), need_grad=True)
    return F.exp(F.sin(F.tanh(x)))


def test_recorder_of_cleared_arrays():
    """What NNabla 1.39 records for these runs."""
    y = chain()
    no, data = (False, False), (True, False)
    runs = {
        (False, False): [[no], [no], [no]],
        (True, False): [[no], [data], [data]],
        (False, True): [[no], [no], [data]],
    }
    for flags, inputs in runs.items():
        recorder.activate_clear_called_flag_recorder()
        y.forward(*flags)
        assert recorder.get_input_clear_called_flags() == inputs
        assert recorder.get_output_clear_called_flags() == [[no]] * 3
    y.backward(clear_buffer=True)
    assert recorder.get_output_clear_called_flags()[3:] == [[(False, True)], [(True, True)], [(True, True)]]
    recorder.deactivate_clear_called_flag_recorder()
    assert recorder.get_input_clear_called_flags() == []
    y.forward(clear_buffer=True)
    assert recorder.get_input_clear_called_flags() == []


def test_recorder_of_shared_inputs():
    x = nn.Variable.from_numpy_array(np.array([1.0, 2.0], np.float32))
    h = F.tanh(x)
    k = F.sin(h)
    y = F.exp(k * h) + k
    no, data = (False, False), (True, False)
    recorder.activate_clear_called_flag_recorder()
    y.forward(clear_buffer=True)
    assert recorder.get_input_clear_called_flags() == [[no], [no], [no, data], [data], [data, data]]
    recorder.deactivate_clear_called_flag_recorder()
