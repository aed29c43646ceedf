"""`backward_functions.registry` and the modules `backward_function.<name>`: all rules, called as NNabla calls them."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F
from nnrs import Variable, _core, backward_functions
from nnrs.backward_functions import registry
from test_function_objects import FIRST, TARGETS, leaf, node

NAMES = [entry["name"] for entry in _core.registry()]


def shapes(variables: list[Variable]) -> list[tuple[int, ...]]:
    return [v.shape for v in variables]


def values(parts) -> list[np.ndarray | None]:
    """The parts computed: those that there are."""
    nn.forward_all([p for p in parts if p is not None])
    return [None if p is None else p.d.copy() for p in parts]


@pytest.mark.parametrize("name", [n for n in FIRST.values() if TARGETS[n].case.differentiable])
@pytest.mark.parametrize("given", [True, False], ids=["outputs", "no_outputs"])
def test_own_rules_give_what_nn_grad_does(name, given):
    f = node(TARGETS[name], "double")
    x, y = f.inputs, f.outputs
    if not given and (TARGETS[name].case.check is not None or TARGETS[name].case.mutates or len(y) > 1):
        pytest.skip("draws numbers, or writes what it reads")
    gy = [Variable.from_numpy_array(np.cos(np.arange(v.size) + k).reshape(v.shape)) for k, v in enumerate(y)]
    with h.scope("double"):
        made = registry[f.name](gy, x, shapes(x), y if given else [None], shapes(y), **f.arguments)
    made = made if isinstance(made, tuple) else (made,)
    wanted = [i for i, v in enumerate(x) if v.need_grad]
    expected = nn.grad(y, [x[i] for i in wanted], gy)
    if len({x[i] for i in wanted}) == len(wanted):  # nn.grad adds up what equal inputs get
        for mine, theirs in zip(values([made[i] for i in wanted]), values(expected), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["pack_padded_sequence-0", "pad_packed_sequence-0", "bool_gather-elements"])
def test_rules_without_outputs_know_how_many_there_are_by_the_gradients(name):
    """The number is an argument of the function here, and none in NNabla."""
    f = node(TARGETS[name], "double")
    x, y = f.inputs, f.outputs
    gy = [Variable.from_numpy_array(np.cos(np.arange(v.size)).reshape(v.shape)) for v in y]
    with h.scope("double"):
        made = registry[f.name](gy, x, shapes(x), [None] * len(y), shapes(y), **f.arguments)
    mine, theirs = values([made[0], *nn.grad(y, x[:1], gy)])
    np.testing.assert_array_equal(mine, theirs)


def test_every_function_has_an_entry_and_a_module():
    assert set(registry) == {entry["class_name"] for entry in _core.registry()}
    for name in NAMES:
        rule = getattr(importlib.import_module(f"nnrs.backward_function.{name}"), f"{name}_backward")
        assert rule is getattr(backward_functions, f"{name}_backward") and rule in registry.values()
    for name in (
        "r_pow_scalar",
        "prod",
        "selu",
        "relu6",
        "softsign",
        "log_sigmoid",
        "maximum_scalar",
        "minimum_scalar",
    ):
        assert name in NAMES


def test_what_is_no_rule():
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("nnrs.backward_function.nonsense")
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = backward_functions.nonsense


def test_nnabla_names_of_the_modules():
    script = (
        "import nnrs.compat; nnrs.compat.install()\n"
        "from nnabla.backward_function.affine import affine_backward\n"
        "import nnabla.backward_functions as b, nnabla.backward_function.relu6\n"
        "assert b.registry['Affine'] is affine_backward and b.relu6_backward is b.registry['ReLU6']\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_a_rule_in_place_of_an_own_one_may_call_it():
    own = registry["PowScalar"]

    def doubled(*given, **arguments):
        return own(*given, **arguments) * 2

    x = leaf([3.0])
    backward_functions.register("PowScalar", doubled)
    try:
        assert registry["PowScalar"] is doubled
        (g,) = nn.grad([F.pow_scalar(x, 2)], [x])
        (h,) = nn.grad([g], [x])
        nn.forward_all([g, h])
        assert (g.d.tolist(), h.d.tolist()) == ([12.0], [4.0])
    finally:
        backward_functions.unregister("PowScalar")
    assert registry["PowScalar"] is own
    with pytest.raises(KeyError):
        backward_functions.unregister("PowScalar")


def test_rules_set_in_the_registry_are_used():
    x, own = leaf([3.0]), registry["Exp"]
    registry["Exp"] = lambda gy, *_, **__: gy[0] * 7
    try:
        (g,) = nn.grad([F.exp(x)], [x])
        g.forward()
        assert g.d.tolist() == [7.0]
    finally:
        registry["Exp"] = own
    (g,) = nn.grad([F.exp(x)], [x])
    g.forward()
    np.testing.assert_allclose(g.d, np.exp([3.0]), rtol=1e-6)


def test_inputs_that_are_not_given_have_their_shapes_alone():
    gy = leaf(np.ones((2, 3)))
    gx = registry["Sum"]([leaf(np.ones(2))], [None], [(2, 3)], [None], [(2,)], axes=[1], keep_dims=False)
    gx.forward()
    np.testing.assert_array_equal(gx.d, gy.d)


@pytest.mark.parametrize("call, kind, words", [
    (lambda x: registry["Exp"]([], [x], [x.shape], [None], [x.shape]), ValueError, "one for each of 1 outputs"),
    (lambda x: registry["MulScalar"]([x], [x], [x.shape], [None], [x.shape], val="a"), TypeError, "argument 'val'"),
    (lambda x: registry["Affine"]([x], [x], [x.shape], [None], [x.shape]), TypeError, "at least 2 inputs"),
    (lambda x: registry["Exp"]([x], [x], [x.shape], [None], [x.shape], a=1), TypeError, "keyword argument 'a'"),
    (lambda x: registry.__setitem__("Exp", 3), TypeError, "argument 'func': expected a function, got int 3"),
])  # fmt: skip
def test_wrong_calls(call, kind, words):
    with pytest.raises(kind, match=words) as e:
        call(leaf([1.0, 2.0]))
    assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("need_grad", [True, False])
def test_a_rule_that_reads_outputs_has_them_in_auto_forward(need_grad):
    with nn.auto_forward():
        x = leaf([0.5], need_grad)
        gx = registry["Tanh"]([leaf([2.0])], [x], [x.shape], [None], [x.shape])
    np.testing.assert_allclose(gx.d, 2 * (1 - np.tanh([0.5]) ** 2), rtol=1e-6)


def test_arguments_by_position():
    x, y, g = leaf([[1, 2]]), leaf([[1, 2]]), leaf([[1, 1]])
    rule = importlib.import_module("nnrs.backward_function.mul_scalar").mul_scalar_backward
    gx = rule([g], [x], [x.shape], [y], [y.shape], 3.0)
    gx.forward()
    assert gx.d.tolist() == [[3, 3]]
    with pytest.raises(nn.Error, match="mul_scalar_backward: .*at most 2"):
        rule([g], [x], [x.shape], [y], [y.shape], 3.0, False, 1)
    with pytest.raises(nn.Error, match="mul_scalar_backward: argument 'val'"):
        rule([g], [x], [x.shape], [y], [y.shape], 3.0, val=2.0)


@pytest.mark.parametrize("f", [F.sigmoid, F.exp, lambda x: x + x, lambda x: x * 2, lambda x: F.concatenate(x, x)])
@pytest.mark.parametrize("shape", [(3,), (), (2, 2), (0,), (1, 2, 3)])
def test_gradients_of_other_shapes_are_refused(f, shape):
    f = f(leaf(np.ones((2, 3)))).parent
    x, y = f.inputs, f.outputs
    rule = registry[f.info.type_name]
    with pytest.raises(nn.Error, match="grad_inputs"):
        rule([nn.Variable(shape)], x, [v.shape for v in x], y, [v.shape for v in y], **f.arguments)


def test_what_a_rule_reads_is_said_of_the_shapes_of_the_call():
    x = nn.Variable((4, 1, 4))
    for y in F.broadcast(x, (4, 5, 4)), F.concatenate(x, x, axis=1), F.tile(x, (2, 1, 1)):
        reads = y.parent.auto_grad_depends_input_data(0, 0), y.parent.auto_grad_depends_output_data(0, 0)
        for shape in (3,), (), (2, 2), (0,):
            y.reset_shape(shape, True)
            now = y.parent.auto_grad_depends_input_data(0, 0), y.parent.auto_grad_depends_output_data(0, 0)
            assert now == reads == (False, False)


@pytest.mark.parametrize("f", [F.tan, F.sigmoid, lambda x: F.add2(x, x), lambda x: x * 2])
def test_shapes_that_another_thread_changes_in_the_middle_of_a_rule(f, switching_often):
    x = leaf(np.ones((4, 5, 6)))
    y = f(x)
    y.forward()
    function, stop = y.parent, threading.Event()

    def reshape():
        while not stop.is_set():
            for shape in (3,), (4, 5, 6):
                x.reset_shape(shape, True)
                y.reset_shape(shape, True)

    other = threading.Thread(target=reshape)
    other.start()
    try:
        for _ in range(1500):
            try:
                function.backward([x] * len(function.inputs), [y])
            except nn.Error as error:
                assert "internal" not in str(error)
    finally:
        stop.set()
        other.join()
